// A language model from files: loading, a prompt, greedy tokens one by one, and the logits of given tokens.
//
//   bench_llm_model MODEL [--backend cuda|cpu] [--threads N] [--context N] [--tokens N] [--prompt N]
//                   [--ids FILE --first N --logits FILE] [--quantize fp8|int8|int4|all]
//
//   load  as stored  16.4 GB   2.05 s   8.0 GB/s   of the file's bytes; twice: the first opens kernels too, the second
//                                                  finds the files in memory. With --quantize made of that type there
//   read     4651 GB/s                             a plain kernel over the loaded weights; on the CPU left out
//   logits   4 x 151936                            with --ids
//   prompt   4096 tokens   30391 tok/s
//   decode   at 1024   255.0 tok/s   3.92 ms   3900 GB/s    by the type loaded last
// (The figures above only show the form.) --tokens 0 leaves prompt and decode out. A line comes as soon as it is known.
//
// The cache is bf16, on the CPU and with a checkpoint of float32 float32. --ids: int32 tokens; the first N are a
// prompt, the others follow one by one. --logits gets float32 [count - N + 1][vocab_size]: after the prompt and after
// each that follows. bench/peers/llm.py compares them.
#include "support/random_llm.h"
#include "support/read_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { MAX_IDS = 1 << 16, MOST_BATCH = 4096 };

typedef struct options {
    const char *model, *backend, *ids, *logits, *quantize;
    int threads, context, tokens, prompt, first;
} options;

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_llm_model: %s\n", wt_last_error());
    exit(1);
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

static bool read_options(int argc, char **argv, options *o)
{
    const struct {
        const char *name, **text;
        int *number;
    } all[] = {{"--backend", &o->backend, NULL},   {"--ids", &o->ids, NULL},         {"--logits", &o->logits, NULL},
               {"--quantize", &o->quantize, NULL}, {"--threads", NULL, &o->threads}, {"--context", NULL, &o->context},
               {"--tokens", NULL, &o->tokens},     {"--prompt", NULL, &o->prompt},   {"--first", NULL, &o->first}};
    if (argc < 2 || argc % 2) return false;
    o->model = argv[1];
    for (int k = 2; k < argc; k += 2) {
        size_t n = 0;
        while (n < sizeof all / sizeof *all && strcmp(all[n].name, argv[k])) n++;
        if (n == sizeof all / sizeof *all) return false;
        if (all[n].text)
            *all[n].text = argv[k + 1];
        else
            *all[n].number = atoi(argv[k + 1]);
    }
    return o->context >= 0 && o->tokens >= 0 && o->prompt >= 1 && o->first >= 1;
}

// ---- rows

static void note_bytes(void *user, size_t done, size_t all)
{
    (void)done;
    *(size_t *)user = all;
}

static wt_llm_resident *load_twice(const wt_llm *m, wt_device *device, wt_llm_quantization kind, const char *name)
{
    wt_llm_resident *resident = NULL;
    size_t bytes = 0;
    const wt_llm_resident_config config = {
        .device = device, .quantization = kind, .progress = note_bytes, .user = &bytes};
    for (int k = 0; k < 2; k++) {
        wt_llm_resident_destroy(resident);
        const int64_t begin = wt_clock_now_ns(NULL);
        need(wt_llm_resident_create(m, &config, &resident));
        const double s = seconds_since(begin), gb = (double)bytes * 1e-9;
        printf("load  %-9s %6.2f GB  %8.3f s  %8.1f GB/s\n", name, gb, s, gb / s);
    }
    return resident;
}

static wt_llm_resident *bench_load(const wt_llm *m, wt_device *device, const char *quantize)
{
    static const char *const names[] = {"as stored", "fp8", "int8", "int4"};
    wt_llm_resident *resident = load_twice(m, device, WT_LLM_AS_STORED, names[0]);
    for (int k = WT_LLM_FP8; quantize && k <= WT_LLM_INT4; k++) {
        if (strcmp(quantize, names[k]) && strcmp(quantize, "all")) continue;
        wt_llm_resident_destroy(resident);
        resident = load_twice(m, device, (wt_llm_quantization)k, names[k]);
    }
    wt_stream *stream;
    double rate;
    need(wt_stream_create(device, NULL, &stream));
    need(bench_read_rate(device, stream, wt_device_get_info(device)->n_sms, (uintptr_t)resident->llm.embedding.data,
                         wt_pool_arena_used_bytes(resident->arena) / 2, &rate));
    wt_stream_destroy(stream);
    printf("read    %8.0f GB/s\n", rate);
    return resident;
}

static void bench_prompt(wt_llm_session *session, int vocab, int n)
{
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    double best = 1e30;
    for (int k = 0; k < n; k++) ids[k] = k * 37 % vocab;
    for (int k = 0; k < 4; k++) { // kernels are compiled in the first
        need(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
        const int64_t begin = wt_clock_now_ns(NULL);
        need(wt_llm_prefill(session, ids, n));
        const double s = seconds_since(begin);
        if (k && s < best) best = s;
        if (k && s > 2) break;
    }
    printf("prompt  %5d tokens  %10.1f tok/s  %8.2f ms\n", n, n / best, best * 1e3);
    free(ids);
}

/// From `context` tokens on, best of three runs.
static void bench_decode(wt_llm_session *session, const wt_llm *m, const options *o, size_t number_bytes)
{
    const wt_model_config *c = &m->config;
    const double kv = 2.0 * (double)number_bytes * c->n_layers * c->n_kv_heads * c->d_head;
    const double bytes = (double)wt_llm_step_bytes(m) + kv * (o->context + o->tokens / 2);
    double best = 1e30;
    for (int k = 0; k < 4; k++) { // the first records the step
        need(wt_llm_session_restore(session, (wt_llm_snapshot){o->context, 0}));
        const int64_t begin = wt_clock_now_ns(NULL);
        need(wt_llm_run(session, 1, &(wt_llm_run_config){.n_tokens = o->tokens}));
        const double s = seconds_since(begin) / o->tokens;
        if (k) best = s < best ? s : best;
    }
    printf("decode  at %-5d  %10.1f tok/s  %8.3f ms  %7.1f GB/s\n", o->context, 1 / best, best * 1e3,
           bytes / best * 1e-9);
}

static void write_logits(wt_llm_session *session, int vocab, const options *o)
{
    static int32_t ids[MAX_IDS];
    FILE *in = fopen(o->ids, "rb"), *out = fopen(o->logits ? o->logits : "/dev/null", "wb");
    const int n = in ? (int)fread(ids, sizeof *ids, MAX_IDS, in) : 0;
    if (!out || n < o->first) {
        fprintf(stderr, "bench_llm_model: %d tokens in %s, want %d or more, or the logits cannot be written\n", n,
                o->ids, o->first);
        exit(1);
    }
    need(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
    need(wt_llm_prefill(session, ids, o->first));
    for (int k = o->first;; k++) {
        fwrite(wt_llm_logits(session), sizeof(float), (size_t)vocab, out);
        if (k == n) break;
        need(wt_llm_decode(session, ids[k]));
    }
    fclose(in);
    fclose(out);
    printf("logits  %d x %d\n", n - o->first + 1, vocab);
}

int main(int argc, char **argv)
{
    options o = {.backend = "auto", .context = 1024, .tokens = 128, .prompt = 4096, .first = 1};
    if (!read_options(argc, argv, &o)) {
        printf("bench_llm_model: left out, want MODEL [--backend cuda|cpu] [--threads N] [--context N] [--tokens N] "
               "[--prompt N] [--ids FILE --first N --logits FILE] [--quantize fp8|int8|int4|all]\n");
        return argc > 1;
    }
    const wt_backend backend = !strcmp(o.backend, "cpu")    ? WT_BACKEND_CPU
                               : !strcmp(o.backend, "cuda") ? WT_BACKEND_CUDA
                                                            : WT_BACKEND_AUTO;
    wt_device *device;
    wt_llm *m;
    wt_llm_session *session;
    setvbuf(stdout, NULL, _IOLBF, 0);
    need(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = o.threads}, &device));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_open(o.model, &m));
    printf("open    %s  %.3f s\n", wt_model_family_name(m->config.family), seconds_since(begin));
    const bool on_gpu = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    const wt_dtype kv_type = on_gpu && m->embedding.dtype != WT_DTYPE_F32 ? WT_DTYPE_BF16 : WT_DTYPE_F32;
    wt_llm_resident *resident = on_gpu ? bench_load(m, device, o.quantize) : NULL;
    const int n_prompt = o.context > o.prompt ? o.context : o.prompt;
    const wt_llm_session_config config = {.device = device,
                                          .resident = resident,
                                          .n_positions = n_prompt + o.tokens,
                                          .n_batch = !on_gpu                 ? 0
                                                     : n_prompt < MOST_BATCH ? n_prompt
                                                                             : MOST_BATCH,
                                          .kv_type = kv_type};
    need(wt_llm_session_create(m, &config, &session));
    if (o.ids) write_logits(session, m->config.vocab_size, &o);
    if (o.tokens) bench_prompt(session, m->config.vocab_size, n_prompt);
    if (o.tokens) bench_decode(session, resident ? &resident->llm : m, &o, kv_type == WT_DTYPE_F32 ? 4 : 2);
    wt_llm_session_destroy(session);
    wt_llm_resident_destroy(resident);
    wt_llm_close(m);
    wt_device_close(device);
    return 0;
}
