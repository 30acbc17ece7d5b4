// warptone generate: a prompt through a language model, the answer as it comes.
#include "command.h"
#include "generate_text.h"
#include "interrupt.h"
#include "options.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/llm.h>

typedef struct arguments {
    const char *model, *prompt, *ids, *tokenizer;
    int max_tokens, seed, top_k, threads, context;
    double temperature, top_p, min_p, repetition, presence, frequency;
    bool json, ignore_eos;
} arguments;

typedef struct generation {
    arguments a;
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    wt_sampler *sampler;
    generate_text *text;
    int32_t *ids; ///< [n_prompt + max_tokens]
    int n_prompt, n_ids;
    const char *end; ///< why it ended
    double load_s, prefill_s, decode_s;
    json_t *answer, *tokens, *logprobs;
} generation;

static int print_help(FILE *out, const wt_option *options, int n)
{
    fprintf(out,
            "usage: warptone generate --model PATH [--prompt TEXT] [options]\n\n"
            "Continue a text with a language model, on the CPU. PATH is a folder of the hub (GPT-2, Llama, Mistral,\n"
            "Mixtral, Qwen2, Qwen3, Qwen3-MoE), a *.gguf or a checkpoint *.bin of llama2.c. Without --prompt and\n"
            "--ids the prompt is standard input. The text goes to stdout, timings to stderr.\n\noptions:\n");
    wt_options_print(out, options, n);
    return out == stdout ? EXIT_OK : EXIT_USAGE;
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

// ---- the prompt

/// All of standard input; caller frees.
static wt_status read_input(char **text, size_t *length)
{
    size_t size = 0, got;
    *text = NULL;
    *length = 0;
    do {
        char *larger = *length < size ? *text : realloc(*text, size = size ? 2 * size : 4096);
        if (!larger) {
            free(*text);
            return wt_fail(WT_ERR_NO_MEMORY, "generate: prompt");
        }
        *text = larger;
        got = fread(*text + *length, 1, size - *length, stdin);
        *length += got;
    } while (got);
    return WT_OK;
}

static wt_status read_prompt(generation *g, int32_t *ids, int max_ids)
{
    const arguments *a = &g->a;
    if (a->ids) return wt_options_list("--ids", a->ids, 0, INT32_MAX, ids, max_ids, &g->n_prompt);
    if (a->prompt) return generate_text_encode(g->text, a->prompt, strlen(a->prompt), ids, max_ids, &g->n_prompt);
    char *text;
    size_t length;
    wt_status status = read_input(&text, &length);
    if (status) return status;
    status = generate_text_encode(g->text, text, length, ids, max_ids, &g->n_prompt);
    free(text);
    return status;
}

// ---- opening

static wt_status open_all(generation *g)
{
    const arguments *a = &g->a;
    const int64_t begin = wt_clock_now_ns(NULL);
    wt_status status = wt_llm_open(a->model, &g->llm);
    if (status) return status;
    const wt_model_config *c = wt_llm_config(g->llm);
    const int context = a->context ? a->context : c->max_positions < 4096 ? c->max_positions : 4096;
    status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = a->threads}, &g->device);
    if (!status)
        status = wt_llm_session_create(g->llm, &(wt_llm_session_config){.device = g->device, .n_positions = context},
                                       &g->session);
    if (!status)
        status = wt_sampler_create(&(wt_sampler_config){.temperature = a->temperature,
                                                        .top_k = a->top_k,
                                                        .top_p = a->top_p,
                                                        .min_p = a->min_p,
                                                        .repetition_penalty = a->repetition,
                                                        .presence_penalty = a->presence,
                                                        .frequency_penalty = a->frequency,
                                                        .seed = (uint64_t)a->seed},
                                   c->vocab_size, &g->sampler);
    if (!status) status = generate_text_open(a->model, a->tokenizer, c->vocab_size, a->ids != NULL, &g->text);
    if (!status && !(g->ids = calloc((size_t)context, sizeof *g->ids)))
        status = wt_fail(WT_ERR_NO_MEMORY, "generate: %d tokens", context);
    if (!status) status = read_prompt(g, g->ids, context);
    g->n_ids = g->n_prompt;
    g->load_s = seconds_since(begin);
    if (!status && g->a.max_tokens > context - g->n_prompt) g->a.max_tokens = context - g->n_prompt;
    return status;
}

static void close_all(generation *g)
{
    free(g->ids);
    generate_text_close(g->text);
    wt_sampler_destroy(g->sampler);
    wt_llm_session_destroy(g->session);
    wt_device_close(g->device);
    wt_llm_close(g->llm);
    json_decref(g->answer);
}

// ---- the answer

static void show(const generation *g, const char *piece, size_t length)
{
    if (g->a.json) return;
    fwrite(piece, 1, length, stdout);
    fflush(stdout);
}

static void tell(generation *g, int32_t before, int32_t id)
{
    size_t length;
    const char *piece = generate_text_push(g->text, before, id, &length);
    show(g, piece, length);
    if (!g->a.json) return;
    const double logprob = wt_llm_logprob(wt_llm_logits(g->session), wt_llm_config(g->llm)->vocab_size, id);
    json_array_append_new(g->tokens, json_integer(id));
    json_array_append_new(g->logprobs, json_real(logprob));
}

/// Ends at a token of the end, at the longest length, at a signal.
static wt_status answer(generation *g)
{
    wt_status status = WT_OK;
    g->end = "length";
    wt_sampler_see(g->sampler, g->ids, g->n_prompt);
    const int64_t begin = wt_clock_now_ns(NULL);
    for (int n = 0; n < g->a.max_tokens; n++) {
        int32_t id;
        if (wt_interrupted()) {
            g->end = "interrupted";
            break;
        }
        if (n) status = wt_llm_decode(g->session, g->ids[g->n_ids - 1]);
        if (!status) status = wt_sampler_pick(g->sampler, wt_llm_logits(g->session), &id);
        if (status) break;
        if (!g->a.ignore_eos && wt_llm_ends(g->llm, id)) {
            g->end = "eos";
            break;
        }
        tell(g, g->ids[g->n_ids - 1], id);
        g->ids[g->n_ids++] = id;
    }
    g->decode_s = seconds_since(begin);
    size_t length;
    const char *rest = generate_text_flush(g->text, &length);
    show(g, rest, length);
    return status;
}

static wt_status generate(generation *g)
{
    wt_status status = open_all(g);
    if (status) return status;
    g->answer = json_pack("{s:[], s:[]}", "ids", "logprobs");
    g->tokens = json_object_get(g->answer, "ids");
    g->logprobs = json_object_get(g->answer, "logprobs");
    const int64_t begin = wt_clock_now_ns(NULL);
    status = wt_llm_prefill(g->session, g->ids, g->n_prompt);
    g->prefill_s = seconds_since(begin);
    return status ? status : answer(g);
}

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static void report(generation *g)
{
    const int n = g->n_ids - g->n_prompt, n_steps = n > 1 ? n - 1 : 0; // the first token is the prefill's
    const double speed = rate(n_steps, g->decode_s), read = speed * (double)wt_llm_step_bytes(g->llm) * 1e-9;
    if (!g->a.json) {
        fprintf(stderr,
                "\n%d + %d tokens, end: %s; loading %.2f s, prompt %.3f s (%.0f tok/s), answer %.3f s (%.1f "
                "tok/s, %.2f GB/s of weights)\n",
                g->n_prompt, n, g->end, g->load_s, g->prefill_s, rate(g->n_prompt, g->prefill_s), g->decode_s, speed,
                read);
        return;
    }
    size_t length;
    const char *text = generate_text_all(g->text, &length);
    json_t *value = json_stringn(text, length);
    json_object_set_new(g->answer, "text", value ? value : json_null());
    json_object_set_new(g->answer, "prompt_tokens", json_integer(g->n_prompt));
    json_object_set_new(g->answer, "tokens", json_integer(n));
    json_object_set_new(g->answer, "end", json_string(g->end));
    json_object_set_new(g->answer, "timings",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "load_s", g->load_s, "prefill_s", g->prefill_s,
                                  "decode_s", g->decode_s, "prefill_tokens_s", rate(g->n_prompt, g->prefill_s),
                                  "decode_tokens_s", speed, "read_gb_s", read));
    json_dumpf(g->answer, stdout, JSON_REAL_PRECISION(9));
    putchar('\n');
}

int cmd_generate(int argc, char **argv)
{
    generation g = {.a = {.max_tokens = 256}};
    arguments *a = &g.a;
    bool help;
    const wt_option options[] = {
        {"model", 'm', WT_OPTION_TEXT, &a->model, "PATH", "folder, *.gguf or *.bin", 0, 0},
        {"prompt", 'p', WT_OPTION_TEXT, &a->prompt, "TEXT", "what the answer continues", 0, 0},
        {"ids", 0, WT_OPTION_TEXT, &a->ids, "LIST", "the prompt as tokens, 1,2,3; the answer is tokens too", 0, 0},
        {"tokenizer", 0, WT_OPTION_TEXT, &a->tokenizer, "PATH", "when it does not lie with the model", 0, 0},
        {"max-tokens", 'n', WT_OPTION_INT, &a->max_tokens, "N", "of the answer (256)", 1, 1 << 20},
        {"temperature", 't', WT_OPTION_NUMBER, &a->temperature, "T", "0: the most probable token (0)", 0, 1000},
        {"top-k", 0, WT_OPTION_INT, &a->top_k, "K", "of the K most probable; 0: all (0)", 0, 1 << 22},
        {"top-p", 0, WT_OPTION_NUMBER, &a->top_p, "P", "of the most probable that sum to P (1)", 0, 1},
        {"min-p", 0, WT_OPTION_NUMBER, &a->min_p, "P", "of those with P of the most probable's share (0)", 0, 1},
        {"repetition-penalty", 0, WT_OPTION_NUMBER, &a->repetition, "X", "divides logits of what was seen (1)", 0,
         1000},
        {"presence-penalty", 0, WT_OPTION_NUMBER, &a->presence, "X", "off logits of what was generated (0)", -1000,
         1000},
        {"frequency-penalty", 0, WT_OPTION_NUMBER, &a->frequency, "X", "the same, each time (0)", -1000, 1000},
        {"seed", 's', WT_OPTION_INT, &a->seed, "S", "same seed, same answer (0)", 0, INT32_MAX},
        {"context", 0, WT_OPTION_INT, &a->context, "N", "tokens of prompt and answer (the model's, at most 4096)", 1,
         1 << 22},
        {"threads", 0, WT_OPTION_INT, &a->threads, "N", "0: one a processor (0)", 0, 4096},
        {"ignore-eos", 0, WT_OPTION_FLAG, &a->ignore_eos, NULL, "go on after the model's end", 0, 0},
        {"json", 0, WT_OPTION_FLAG, &a->json, NULL, "one JSON object: text, tokens, logprobs, timings", 0, 0},
    };
    enum { N_OPTIONS = sizeof options / sizeof *options };
    wt_status status = wt_options_parse(options, N_OPTIONS, &argc, argv, &help);
    if (status) return command_fail("generate", status);
    if (help) return print_help(stdout, options, N_OPTIONS);
    if (argc != 1 || !a->model) return print_help(stderr, options, N_OPTIONS);
    status = wt_interrupt_install();
    if (!status) status = generate(&g);
    if (!status) report(&g);
    const bool interrupted = !status && !strcmp(g.end, "interrupted");
    const int code = status ? command_fail("generate", status) : interrupted ? EXIT_INTERRUPTED : EXIT_OK;
    close_all(&g);
    return code;
}
