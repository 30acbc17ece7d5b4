// warptone generate: a prompt through a language model, the answer as it comes.
#include "command.h"
#include "interrupt.h"
#include "language_model.h"
#include "terminal_model.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *at;
    size_t n, size;
} text;

typedef struct generation {
    language_options o;
    const char *prompt, *ids_text;
    bool json, split_thinking;
    language_model model;
    int32_t *ids; ///< [n_positions]
    int n_prompt;
    bool any; ///< a token was shown
    wt_generation report;
    json_t *answer, *tokens, *logprobs;
    text said, thought;
} generation;

static int print_help(FILE *out, const wt_option *options, int n)
{
    fprintf(out,
            "usage: warptone generate --model PATH [--prompt TEXT] [options]\n\n"
            "Continue a text with a language model. PATH is a folder of the hub (GPT-2, Llama, Mistral, Mixtral,\n"
            "Qwen2, Qwen3, Qwen3-MoE), a *.gguf or a checkpoint *.bin of llama2.c. Without --prompt and --ids the\n"
            "prompt is standard input. The text goes to stdout, timings to stderr.\n");
    wt_options_print(out, options, n);
    return out == stdout ? EXIT_OK : EXIT_USAGE;
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
    if (g->ids_text) return wt_options_list("--ids", g->ids_text, 0, INT32_MAX, g->ids, m->n_positions, &g->n_prompt);
    if (g->prompt)
        return language_model_encode(m, g->prompt, strlen(g->prompt), true, g->ids, m->n_positions, &g->n_prompt);
    char *input;
    size_t length;
    wt_status status = read_input(&input, &length);
    if (status) return status;
    status = language_model_encode(m, input, length, true, g->ids, m->n_positions, &g->n_prompt);
    free(input);
    return status;
}

// ---- the answer

/// Without memory the text stays shorter.
static void keep(text *t, const char *piece, size_t length)
{
    if (t->n + length > t->size) {
        const size_t size = 2 * (t->n + length) + 256;
        char *larger = realloc(t->at, size);
        if (!larger) return;
        t->at = larger;
        t->size = size;
    }
    memcpy(t->at + t->n, piece, length);
    t->n += length;
}

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
    keep(&g->said, token->text.answer, token->text.n_answer);
    keep(&g->thought, token->text.thinking, token->text.n_thinking);
    if (token->id < 0) return true;
    json_array_append_new(g->tokens, json_integer(token->id));
    json_array_append_new(g->logprobs, json_real(token->logprob));
    return true;
}

static wt_status generate(generation *g)
{
    wt_status status = language_model_open(&g->o,
                                           &(language_use){.numbers = g->ids_text != NULL,
                                                           .logprobs = g->json,
                                                           .text = {.split_thinking = g->split_thinking},
                                                           .on_token = show,
                                                           .progress = terminal_model_progress,
                                                           .user = g},
                                           &g->model);
    if (status) return status;
    g->answer = json_pack("{s:[], s:[]}", "ids", "logprobs");
    g->tokens = json_object_get(g->answer, "ids");
    g->logprobs = json_object_get(g->answer, "logprobs");
    g->ids = calloc((size_t)g->model.n_positions, sizeof *g->ids);
    if (!g->ids || !g->answer) return wt_fail(WT_ERR_NO_MEMORY, "generate: %d tokens", g->model.n_positions);
    status = read_prompt(g);
    return status ? status : wt_generator_run(g->model.generator, g->ids, g->n_prompt, &g->report);
}

// ---- the report

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static const char *end_of(const generation *g)
{
    return g->report.finish == WT_FINISH_CANCELLED ? "interrupted" : wt_finish_name(g->report.finish);
}

static void put_text(json_t *object, const char *key, const text *t)
{
    json_t *value = json_stringn(t->at ? t->at : "", t->n);
    json_object_set_new(object, key, value ? value : json_null());
}

static void report(generation *g)
{
    const wt_generation *r = &g->report;
    const double n_after = r->n_tokens > 1 ? r->n_tokens - 1 : 0; // the first token is the prompt's
    const double speed = rate(n_after, r->decode_s);
    const double read = rate(r->n_steps, r->decode_s) * (double)g->model.step_bytes * 1e-9;
    if (!g->json) {
        fprintf(
            stderr,
            "\n%d + %d tokens, end: %s; loading %.2f s, prompt %.3f s (%.0f tok/s), answer %.3f s (%.1f tok/s, %.2f "
            "GB/s of weights)\n",
            r->n_prompt, r->n_tokens, end_of(g), g->model.load_s, r->prefill_s, rate(r->n_prompt, r->prefill_s),
            r->decode_s, speed, read);
        if (r->n_guessed)
            fprintf(stderr, "%d steps, %d of %d guesses right, switched off %d times\n", r->n_steps, r->n_correct,
                    r->n_guessed, r->n_switched_off);
        return;
    }
    put_text(g->answer, "text", &g->said);
    if (g->split_thinking) put_text(g->answer, "thinking", &g->thought);
    json_object_set_new(g->answer, "prompt_tokens", json_integer(r->n_prompt));
    json_object_set_new(g->answer, "tokens", json_integer(r->n_tokens));
    json_object_set_new(g->answer, "end", json_string(end_of(g)));
    json_object_set_new(g->answer, "timings",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "load_s", g->model.load_s, "prefill_s",
                                  r->prefill_s, "decode_s", r->decode_s, "prefill_tokens_s",
                                  rate(r->n_prompt, r->prefill_s), "decode_tokens_s", speed, "read_gb_s", read));
    json_object_set_new(g->answer, "guesses",
                        json_pack("{s:i, s:i, s:i, s:i}", "steps", r->n_steps, "guessed", r->n_guessed, "right",
                                  r->n_correct, "switched_off", r->n_switched_off));
    json_dumpf(g->answer, stdout, JSON_REAL_PRECISION(9));
    putchar('\n');
}

static void close_all(generation *g)
{
    language_model_close(&g->model);
    json_decref(g->answer);
    free(g->ids);
    free(g->said.at);
    free(g->thought.at);
}

int cmd_generate(int argc, char **argv)
{
    generation g = {.o = {.max_tokens = 256}};
    bool help;
    const wt_option options[] = {
        LANGUAGE_OPTIONS(&g.o),
        {"prompt", 'p', WT_OPTION_TEXT, &g.prompt, "TEXT", "what the answer continues", 0, 0},
        {"ids", 0, WT_OPTION_TEXT, &g.ids_text, "LIST", "the prompt as tokens, 1,2,3; the answer is tokens too", 0, 0},
        {"split-thinking", 0, WT_OPTION_FLAG, &g.split_thinking, NULL, "leave out what is between <think> tags", 0, 0},
        {"json", 0, WT_OPTION_FLAG, &g.json, NULL, "one JSON object: text, tokens, logprobs, timings", 0, 0},
    };
    enum { N_OPTIONS = sizeof options / sizeof *options };
    wt_status status = wt_options_parse(options, N_OPTIONS, &argc, argv, &help);
    if (status) return command_fail("generate", status);
    if (help) return print_help(stdout, options, N_OPTIONS);
    if (argc != 1 || !g.o.model) return print_help(stderr, options, N_OPTIONS);
    status = wt_interrupt_install();
    if (!status) status = generate(&g);
    if (!status) report(&g);
    const bool interrupted = !status && g.report.finish == WT_FINISH_CANCELLED;
    const int code = status ? command_fail("generate", status) : interrupted ? EXIT_INTERRUPTED : EXIT_OK;
    close_all(&g);
    return code;
}
