// warptone generate: a prompt through a language model, the answer as it comes.
#include "answer_json.h"
#include "command.h"
#include "generate_lines.h"
#include "interrupt.h"
#include "language_model.h"
#include "terminal_model.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 64 };

typedef struct generation {
    language_options o;
    const char *prompt, *ids_text;
    bool json, split_thinking;
    int n_top, n_lines;
    language_model model;
    int32_t *ids; ///< [n_positions]
    int n_prompt;
    int n_refused; ///< lines
    bool any;      ///< a token was shown
    wt_generation report;
    answer_json answer;
} generation;

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone generate --model PATH [--prompt TEXT] [options]\n\n"
           "Continue a text with a language model. PATH is a folder of the hub (GPT-2, Llama, Mistral, Mixtral,\n"
           "Qwen2, Qwen3, Qwen3-MoE), a *.gguf or a checkpoint *.bin of llama2.c. Without --prompt and --ids the\n"
           "prompt is standard input. The text goes to stdout, timings to stderr.\n");
    wt_options_print(stdout, options, n);
    return EXIT_OK;
}

// ---- the prompt

/// All of standard input; caller frees.
static wt_status read_input(char **input, size_t *length)
{
    size_t size = 0, got;
    *input = NULL;
    *length = 0;
    do {
        char *larger = *length < size ? *input : realloc(*input, size = size ? 2 * size : 4096);
        if (!larger) {
            free(*input);
            return wt_fail(WT_ERR_NO_MEMORY, "generate: prompt");
        }
        *input = larger;
        got = fread(*input + *length, 1, size - *length, stdin);
        *length += got;
    } while (got);
    return WT_OK;
}

static wt_status read_prompt(generation *g)
{
    const language_model *m = &g->model;
    const int most = m->n_positions - 1; // one is the answer's
    if (g->ids_text) return wt_options_list("--ids", g->ids_text, 0, INT32_MAX, g->ids, most, &g->n_prompt);
    if (g->prompt) return language_model_encode(m, g->prompt, strlen(g->prompt), true, g->ids, most, &g->n_prompt);
    char *input;
    size_t length;
    wt_status status = read_input(&input, &length);
    if (status) return status;
    status = language_model_encode(m, input, length, true, g->ids, most, &g->n_prompt);
    free(input);
    return status;
}

// ---- the answer

static bool show(void *user, const wt_generated *token)
{
    generation *g = user;
    if (!g->json) {
        if (g->ids_text && token->id >= 0) printf(g->any ? " %d" : "%d", token->id);
        fwrite(token->text.answer, 1, token->text.n_answer, stdout);
        fflush(stdout);
        g->any = true;
        return true;
    }
    answer_json_add(&g->answer, token);
    return true;
}

static wt_status answer_lines(generation *g)
{
    char *input;
    size_t length;
    wt_status status = read_input(&input, &length);
    if (status) return status;
    status = generate_lines(&(lines_config){.model = &g->model,
                                            .options = &g->o,
                                            .text = input,
                                            .length = length,
                                            .n_top = g->n_top,
                                            .split_thinking = g->split_thinking},
                            &g->n_refused);
    free(input);
    if (wt_interrupted()) g->report.finish = WT_FINISH_CANCELLED;
    return status;
}

static wt_status generate(generation *g)
{
    wt_status status = language_model_open(&g->o,
                                           &(language_use){.numbers = g->ids_text != NULL,
                                                           .logprobs = g->json,
                                                           .n_top = g->json ? g->n_top : 0,
                                                           .n_sequences = g->n_lines,
                                                           .max_tokens = 256,
                                                           .text = {.split_thinking = g->split_thinking},
                                                           .on_token = show,
                                                           .progress = terminal_model_progress,
                                                           .user = g},
                                           &g->model);
    if (status) return status;
    if (g->n_lines) return answer_lines(g);
    if (!(g->ids = calloc((size_t)g->model.n_positions, sizeof *g->ids)))
        return wt_fail(WT_ERR_NO_MEMORY, "generate: %d tokens", g->model.n_positions);
    status = answer_json_begin(&g->answer, g->n_top);
    if (status) return status;
    status = read_prompt(g);
    return status ? status : wt_generator_run(g->model.generator, g->ids, g->n_prompt, &g->report);
}

// ---- the report

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static void report(generation *g)
{
    const wt_generation *r = &g->report;
    const double n_after = r->n_tokens > 1 ? r->n_tokens - 1 : 0; // the first token is the prompt's
    const double speed = rate(n_after, r->decode_s);
    const double read = rate(r->n_steps + r->n_repeated, r->decode_s) * (double)g->model.step_bytes * 1e-9;
    if (!g->json) {
        fprintf(
            stderr,
            "\n%d + %d tokens, end: %s; loading %.2f s, prompt %.3f s (%.0f tok/s), answer %.3f s (%.1f tok/s, %.2f "
            "GB/s of weights)\n",
            r->n_prompt, r->n_tokens, answer_end_name(r), g->model.load_s, r->prefill_s,
            rate(r->n_prompt, r->prefill_s), r->decode_s, speed, read);
        if (r->n_guessed)
            fprintf(stderr,
                    "%d steps, %d of %d guesses right, switched off %d times, %d tokens in doubt, %d steps for them\n",
                    r->n_steps, r->n_correct, r->n_guessed, r->n_switched_off, r->n_doubtful, r->n_repeated);
        return;
    }
    json_t *object = g->answer.object;
    answer_json_end(&g->answer, r, g->split_thinking);
    if (g->ids_text) json_object_set_new(object, "text", json_null()); // tokens in, tokens out
    json_object_set_new(object, "dropped", json_integer(r->n_dropped));
    json_object_set_new(object, "timings",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "load_s", g->model.load_s, "prefill_s",
                                  r->prefill_s, "decode_s", r->decode_s, "prefill_tokens_s",
                                  rate(r->n_prompt, r->prefill_s), "decode_tokens_s", speed, "read_gb_s", read));
    json_object_set_new(object, "guesses",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "steps", r->n_steps, "guessed", r->n_guessed,
                                  "right", r->n_correct, "switched_off", r->n_switched_off, "doubtful", r->n_doubtful,
                                  "repeated", r->n_repeated, "differing", r->n_differing));
    answer_json_print(&g->answer);
}

static void close_all(generation *g)
{
    language_model_close(&g->model);
    answer_json_free(&g->answer);
    free(g->ids);
}

/// An option that would do nothing is refused.
static wt_status check_use(const generation *g)
{
    const language_options *o = &g->o;
    if (g->n_top && !g->json && !g->n_lines)
        return wt_fail(WT_ERR_BAD_ARG, "--logprobs is given alone, want --json or --lines with it");
    if (g->prompt && g->ids_text) return wt_fail(WT_ERR_BAD_ARG, "--prompt and --ids are both given, want one of them");
    const char *other = !g->n_lines               ? NULL
                        : g->prompt               ? "prompt"
                        : g->ids_text             ? "ids"
                        : o->strategy || o->draft ? "strategy"
                        : o->keep                 ? "keep"
                                                  : NULL;
    return other
               ? wt_fail(WT_ERR_BAD_ARG, "--lines takes prompts from standard input and single steps, not --%s", other)
               : WT_OK;
}

int cmd_generate(int argc, char **argv)
{
    generation g = {0};
    bool help;
    const wt_option options[] = {
        LANGUAGE_OPTIONS(&g.o),
        OPTION_TEXT("prompt", 'p', &g.prompt, "TEXT", "what the answer continues"),
        OPTION_TEXT("ids", 0, &g.ids_text, "LIST", "the prompt as tokens, 1,2,3; the answer is tokens too"),
        OPTION_FLAG("split-thinking", 0, &g.split_thinking, "leave out what is between <think> tags"),
        OPTION_INT("lines", 0, &g.n_lines, "N", 1, MOST_LINES,
                   "each line of standard input is a prompt, N at a time; JSON lines as they end"),
        OPTION_INT("logprobs", 0, &g.n_top, "N", 1, WT_LLM_MOST_TOP,
                   "of the N most probable tokens each time, in the JSON"),
        OPTION_FLAG("json", 0, &g.json, "one JSON object: text, tokens, logprobs, timings"),
    };
    enum { N_OPTIONS = sizeof options / sizeof *options };
    wt_status status = wt_options_parse(options, N_OPTIONS, &argc, argv, &help);
    if (status) return command_fail("generate", status);
    if (help) return print_help(options, N_OPTIONS);
    if (!g.o.model)
        return command_fail("generate", wt_fail(WT_ERR_BAD_ARG, "no model was named, want --model PATH "
                                                            "(`warptone generate --help`)"));
    if (argc != 1)
        return command_fail("generate",
                            wt_fail(WT_ERR_BAD_ARG, "\"%s\" is not expected, want --prompt TEXT", argv[1]));
    status = check_use(&g);
    if (!status) status = wt_interrupt_install();
    if (!status) status = generate(&g);
    if (!status && !g.n_lines) report(&g);
    const bool interrupted = g.report.finish == WT_FINISH_CANCELLED;
    int code = status ? command_fail("generate", status) : exit_code_of(interrupted ? WT_ERR_CANCELLED : WT_OK);
    if (!code && g.n_refused) code = EXIT_FAILED; // of the lines
    close_all(&g);
    return code;
}
