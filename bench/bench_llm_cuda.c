// Language models on a GPU, with random weights of a known shape: loading, a prompt, and greedy tokens one by one. The
// weights of all matrices are the same random bytes on the host and lie one after the other on the GPU. A step reads
// every weight once and the keys and values of the context: its rate stands beside that of a plain kernel that reads.
//
//   bench_llm_cuda [SHAPE [CONTEXT [TOKENS [TYPE [WHAT]]]]]     SHAPE: qwen3-8b (default), qwen3-0.6b, llama3-8b,
//   mixtral, qwen3-30b-a3b
//
// TYPE of the matrices: bf16 (default), fp8, int8, int4, q8_0, q4_0, q4_k, q6_k. WHAT: prompt, decode, draw, verify,
// ngram, steps, or some of them in one word; without it all of them, of the other types the decode alone. With `exact`
// among them, in a session with exact_guesses, with `rough` with rough_guesses; with `repeat`, a model whose answer to
// the prompt of ngram is that prompt again (random_llm_repeat), where random weights soon leave it.
//
//   read              4651 GB/s
//   qwen3-8b  load    16.4 GB      7.9 GB/s
//   qwen3-8b  prompt  4096 tokens  30391 tok/s
//   qwen3-8b  decode  at 1024      255.0 tok/s   3.92 ms   3900 GB/s   0.84 of read
// (The figures above only show the form.)
#include "support/random_llm.h"
#include "support/read_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/generate.h>

enum { PROMPT = 4096 };

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_llm_cuda: %s\n", wt_last_error());
    exit(1);
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

// ---- rows

/// Returns the seconds it took.
static double fill(wt_llm_session *session, int n)
{
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    for (int k = 0; k < n; k++) ids[k] = k * 37 % 30000;
    need(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_prefill(session, ids, n));
    const double s = seconds_since(begin);
    free(ids);
    return s;
}

/// Returns tokens a second.
static double bench_prompt(const char *name, wt_llm_session *session, int n)
{
    double best = 1e30;
    fill(session, n); // kernels and forms of this size come with the first
    for (int k = 0; k < 3 && (!k || best < 2); k++) {
        const double s = fill(session, n);
        best = s < best ? s : best;
    }
    printf("%-10s prompt  %5d tokens  %8.0f tok/s  %8.2f ms\n", name, n, n / best, best * 1e3);
    return n / best;
}

static void bench_decode(const char *name, wt_llm_session *session, const wt_llm *m, int context, int n, double read)
{
    const wt_model_config *c = &m->config;
    const double kv = 4.0 * c->n_layers * c->n_kv_heads * c->d_head * (context + n / 2);
    const double bytes = (double)wt_llm_step_bytes(m) + kv;
    fill(session, context);
    need(wt_llm_run(session, 1, &(wt_llm_run_config){.n_tokens = 8})); // records the step
    need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_run(session, 1, &(wt_llm_run_config){.n_tokens = n}));
    const double s = seconds_since(begin) / n, rate = bytes / s * 1e-9;
    printf("%-10s decode  at %-5d  %10.1f tok/s  %8.3f ms  %6.0f GB/s  %.2f of read\n", name, context, 1 / s, s * 1e3,
           rate, rate / read);
}

/// Tokens drawn on the device, beside the most probable ones: of all, of what filters leave, with penalties, told of.
static void bench_draw(const char *name, wt_llm_session *session, const wt_llm *m, int context, int n)
{
    static const struct {
        const char *what;
        wt_sampler_config config;
        int n_top;
    } rows[] = {{"greedy", {.temperature = 0}, 0},
                {"all", {.temperature = 1}, 0},
                {"top-k, top-p", {.temperature = 0.7, .top_k = 20, .top_p = 0.8}, 0},
                {"top-p, penalties", {.temperature = 1, .top_p = 0.95, .repetition_penalty = 1.1}, 0},
                {"typical", {.temperature = 1, .typical_p = 0.9}, 0},
                {"top-k, 5 told", {.temperature = 1, .top_k = 20}, 5}};
    double greedy = 0;
    fill(session, context);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        wt_sampler *sampler;
        need(wt_sampler_create(&rows[k].config, m->config.vocab_size, &sampler));
        wt_llm_run_config run = {.n_tokens = 8, .sampler = k ? sampler : NULL, .n_top = rows[k].n_top};
        need(wt_llm_run(session, 1, &run)); // records the step
        need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
        run.n_tokens = n;
        const int64_t begin = wt_clock_now_ns(NULL);
        need(wt_llm_run(session, 1, &run));
        const double s = seconds_since(begin) / n;
        if (!k) greedy = s;
        printf("%-10s draw    %-18s %8.1f tok/s  %8.3f ms  %+.0f us\n", name, rows[k].what, 1 / s, s * 1e3,
               (s - greedy) * 1e6);
        need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
        wt_sampler_destroy(sampler);
    }
}

/// Guesses that are verified together, beside a single step: with the most probable tokens after them, with tokens
/// drawn on the device, and with their logits on the host.
static void bench_verify(const char *name, wt_llm_session *session, const wt_llm *m, int context)
{
    enum { MOST = 16, TIMES = 24 };
    float *logits = malloc(sizeof *logits * MOST * (size_t)m->config.vocab_size);
    static const char *const ways[] = {"greedy", "drawn", "logits"};
    const wt_sampler_config config = {.temperature = 0.7, .top_k = 20, .top_p = 0.8};
    const int32_t ids[MOST] = {1, 20, 300, 4, 50, 600, 7, 80, 2, 30, 400, 5, 60, 700, 8, 90};
    int32_t next[MOST];
    double single[3] = {0, 0, 0};
    wt_sampler *sampler;
    need(wt_sampler_create(&config, m->config.vocab_size, &sampler));
    fill(session, context);
    for (int n = 1; n <= MOST; n *= 2) {
        printf("%-10s verify  of %-5d", name, n);
        for (int way = 0; way < 3; way++) {
            int64_t begin = 0;
            for (int k = -3; k < TIMES; k++) {
                if (!k) begin = wt_clock_now_ns(NULL);
                need(way == 0   ? wt_llm_verify_greedy(session, ids, n, next, NULL)
                     : way == 1 ? wt_llm_verify_drawn(session, ids, n, sampler, next)
                                : wt_llm_verify(session, ids, n, logits));
                need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
            }
            const double s = seconds_since(begin) / TIMES;
            if (n == 1) single[way] = s;
            printf("   %s %8.3f ms  %.2f of one", ways[way], s * 1e3, s / single[way]);
        }
        printf("\n");
    }
    wt_sampler_destroy(sampler);
    free(logits);
}

/// An answer to a prompt that repeats itself, token by token and with guesses from its n-grams, and by the strategies
/// that need neither such a text nor another model. `walks`: the prompt goes down the vocabulary and ends with its
/// first token.
static void bench_ngram(const char *name, wt_llm_session *session, const wt_llm *m, int n_positions, bool walks)
{
    enum { N_PROMPT = 256, PERIOD = 32, N_ANSWER = 160 };
    static const struct {
        wt_strategy strategy;
        int n_guesses;
    } rows[] = {{WT_STRATEGY_SINGLE, 1}, {WT_STRATEGY_NGRAM, 3},     {WT_STRATEGY_NGRAM, 7}, {WT_STRATEGY_NGRAM, 15},
                {WT_STRATEGY_JACOBI, 7}, {WT_STRATEGY_LOOKAHEAD, 7}, {WT_STRATEGY_EARLY, 3}};
    int32_t prompt[N_PROMPT];
    double single = 0;
    for (int k = 0; k < N_PROMPT; k++) prompt[k] = walks ? 1000 - k % (N_PROMPT - 1) : k % PERIOD * 37;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        wt_sampler *sampler;
        wt_generator *generator;
        wt_generation report = {0};
        need(wt_sampler_create(&(wt_sampler_config){.temperature = 0}, m->config.vocab_size, &sampler));
        need(wt_generator_create(&(wt_generator_config){.session = session,
                                                        .sampler = sampler,
                                                        .n_positions = n_positions,
                                                        .max_tokens = N_ANSWER,
                                                        .ignore_eos = true,
                                                        .strategy = rows[k].strategy,
                                                        .n_guesses = rows[k].n_guesses},
                                 &generator));
        for (int times = 0; times < 2; times++) need(wt_generator_run(generator, prompt, N_PROMPT, &report));
        const double rate = report.n_tokens / report.decode_s;
        if (!k) single = rate;
        printf("%-10s %-9s of %-3d  %10.1f tok/s  %.2f of single   %d steps, %d of %d guesses right, off %d times\n",
               name, wt_strategy_name(rows[k].strategy), rows[k].n_guesses, rate, rate / single, report.n_steps,
               report.n_correct, report.n_guessed, report.n_switched_off);
        wt_generator_destroy(generator);
        wt_sampler_destroy(sampler);
    }
}

/// Steps of several sequences of BATCH_CONTEXT tokens each, most probable tokens.
static void bench_batch(const char *name, const wt_llm *m, wt_device *device, wt_llm_resident *resident, int n)
{
    enum { BATCH_CONTEXT = 256, STEPS = 32 };
    wt_llm_session *session;
    wt_llm_turn turns[64];
    int32_t best[64], prompt[BATCH_CONTEXT];
    need(wt_llm_session_create(m,
                               &(wt_llm_session_config){.device = device,
                                                        .resident = resident,
                                                        .n_positions = BATCH_CONTEXT + STEPS + 8,
                                                        .n_batch = BATCH_CONTEXT,
                                                        .n_sequences = n,
                                                        .kv_type = WT_DTYPE_BF16},
                               &session));
    for (int k = 0; k < BATCH_CONTEXT; k++) prompt[k] = k * 37 % 30000;
    for (int q = 0; q < n; q++) {
        need(wt_llm_select(session, q));
        need(wt_llm_prefill(session, prompt, BATCH_CONTEXT));
        turns[q] = (wt_llm_turn){.sequence = q, .id = 100 + q};
    }
    int64_t begin = 0;
    for (int k = -4; k < STEPS; k++) {
        if (!k) begin = wt_clock_now_ns(NULL);
        need(wt_llm_step(session, turns, n, best, NULL));
        for (int q = 0; q < n; q++) turns[q].id = best[q];
    }
    const double s = seconds_since(begin) / STEPS;
    printf("%-10s steps   of %-5d  %10.1f tok/s  %8.3f ms\n", name, n, n / s, s * 1e3);
    wt_llm_session_destroy(session);
}

static bool wants(const char *what, const char *row) { return !what || strstr(what, row); }

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "qwen3-8b";
    const int context = argc > 2 ? atoi(argv[2]) : 1024, n = argc > 3 ? atoi(argv[3]) : 128;
    const char *type = argc > 4 ? argv[4] : "bf16";
    const bool plain = !strcmp(type, "bf16");
    const char *what = argc > 5 ? argv[5] : plain ? NULL : "decode";
    wt_llm m;
    if (!random_llm_make(name, &m)) {
        fprintf(stderr,
                "bench_llm_cuda: shape \"%s\", want qwen3-8b, qwen3-0.6b, llama3-8b, mixtral or qwen3-30b-a3b\n",
                name);
        return 1;
    }
    if (!random_llm_retype(&m, type)) {
        fprintf(stderr, "bench_llm_cuda: type \"%s\", want bf16, fp8, int8, int4, q8_0, q4_0, q4_k or q6_k\n", type);
        return 1;
    }
    if (!wt_device_count()) {
        printf("skipped: %s\n", wt_last_error());
        return 0;
    }
    const bool repeats = what && strstr(what, "repeat");
    if (repeats) random_llm_repeat(&m);
    wt_device *device;
    wt_llm_resident *resident;
    wt_llm_session *session;
    wt_stream *stream;
    double read;
    need(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_resident_create(&m, &(wt_llm_resident_config){.device = device}, &resident));
    const double seconds = seconds_since(begin);
    const size_t bytes = wt_pool_arena_used_bytes(resident->arena);
    need(wt_stream_create(device, NULL, &stream));
    need(bench_read_rate(device, stream, wt_device_get_info(device)->n_sms, (uintptr_t)resident->llm.embedding.data,
                         bytes / 2, &read));
    wt_stream_destroy(stream);
    printf("read              %8.0f GB/s\n", read);
    printf("%-10s load    %5.1f GB      %8.1f GB/s\n", name, (double)bytes * 1e-9, (double)bytes * 1e-9 / seconds);
    need(wt_llm_session_create(&m,
                               &(wt_llm_session_config){.device = device,
                                                        .resident = resident,
                                                        .n_positions = (context > PROMPT ? context : PROMPT) + n + 8,
                                                        .n_batch = PROMPT,
                                                        .kv_type = WT_DTYPE_BF16,
                                                        .exact_guesses = what && strstr(what, "exact"),
                                                        .rough_guesses = what && strstr(what, "rough")},
                               &session));
    if (wants(what, "prompt")) {
        const double rate = bench_prompt(name, session, 128);
        bench_prompt(name, session, context > PROMPT || rate < 1000 ? context : PROMPT);
    }
    if (wants(what, "decode")) bench_decode(plain ? name : type, session, &m, context, n, read);
    if (wants(what, "draw")) bench_draw(name, session, &m, context, n);
    if (wants(what, "verify")) bench_verify(name, session, &m, context);
    if (wants(what, "ngram")) bench_ngram(name, session, &m, (context > PROMPT ? context : PROMPT) + n + 8, repeats);
    wt_llm_session_destroy(session);
    if (wants(what, "steps")) {
        static const int sizes[] = {8, 16, 32, 48, 64};
        for (int k = 0; k < 5; k++) bench_batch(name, &m, device, resident, sizes[k]);
    }
    wt_llm_resident_destroy(resident);
    wt_device_close(device);
    return 0;
}
