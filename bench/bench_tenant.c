// A language model beside audio on one device: what a block of the live voice pays, and what decoding and prompts keep.
//
//   bench_tenant [--shape NAME] [--type TYPE] [--work WORDS] [--blocks N] [--sms N] [--context N]
//                [--layout llm|borrow|fine]
//
// TYPE of the matrices: bf16, or another of random_llm_retype. WORDS, some of: decode, prompt, first, steps8, steps64;
// decode,prompt without it.
//
// The voice chain (high-pass, four bands, compressor, 512 taps, limiter; stereo, 48 kHz, 64 frames) runs at real pace
// on a guaranteed partition of --sms SMs, resident; a model of random weights (support/random_llm.h; qwen3-8b) in a
// best-effort partition of the rest. `borrow` puts a third partition of 56 SMs between them, which is idle and lends;
// `fine` cuts SMs in units of two where the device can, for an audio partition of fewer than eight.
// `alone` is the same session in the same partition with no audio, not armed; `beside` is measured while the blocks of
// the row are. Decoding goes from --context on, again and again, and its tokens are compared with those alone; a prompt
// is PROMPT tokens from the beginning, in one batch, `first` FIRST of them; `steps` are of as many sequences of
// SHARED tokens each, in a session of their own. Without a GPU the same is done on the CPU's partitions.
#include "support/gpu_load.h"
#include "support/live_chains.h"
#include "support/random_llm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/histogram.h>
#include <warptone/live.h>

#define RATE 48000.0
enum {
    BLOCK = 64,
    WARM_BLOCKS = 500,
    PROMPT = 4096,
    CPU_PROMPT = 32,
    FIRST = 128,
    TOKENS = 128,
    SHARED = 256,
    MOST_TURNS = 64,
    STEPS = 32
};

typedef enum work { NOTHING, DECODE, PREFILL, FIRST_TOKEN, STEPS_8, STEPS_64, N_WORKS } work;
static const char *const work_names[] = {"idle", "decode", "prompt", "first", "steps8", "steps64"};

typedef struct bench {
    const char *shape, *type, *layout_name, *works;
    int n_blocks, n_sms, context, n_prompt;
    wt_device *device;
    bool on_gpu;
    wt_layout *layout;
    wt_llm model;
    wt_llm_resident *resident;
    wt_llm_session *session, *many; ///< many: of MOST_TURNS sequences, where steps are asked for
    int32_t prompt[PROMPT], alone[TOKENS];
    double rate_alone[N_WORKS];
    wt_live *live;
    wt_histogram *took;
    float in[2][BLOCK], out[2][BLOCK];
    // of the model's thread
    work what;
    int n_run; ///< tokens of the run so far
    atomic_llong n_tokens, n_different;
    atomic_bool quit;
    wt_status status;
    pthread_t thread;
} bench;

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_tenant: %s\n", wt_last_error());
    exit(1);
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

// ---- the model

static bool on_token(void *user, const wt_llm_pick *pick)
{
    bench *b = user;
    b->n_different += pick->id != b->alone[b->n_run++];
    b->n_tokens++;
    return !b->quit;
}

static wt_status decode(bench *b)
{
    b->n_run = 0;
    wt_status status = wt_llm_session_restore(b->session, (wt_llm_snapshot){b->context, 0});
    if (status) return status;
    return wt_llm_run(b->session, 1, &(wt_llm_run_config){.n_tokens = TOKENS, .on_token = on_token, .user = b});
}

static wt_status prefill(bench *b, int n)
{
    wt_status status = wt_llm_session_restore(b->session, (wt_llm_snapshot){0, 0});
    if (!status) status = wt_llm_prefill(b->session, b->prompt, n);
    if (!status) b->n_tokens += n;
    return status;
}

/// STEPS tokens of each of n sequences, which go on from SHARED again.
static wt_status steps(bench *b, int n)
{
    wt_llm_turn turns[MOST_TURNS] = {0};
    int32_t best[MOST_TURNS];
    wt_status status = WT_OK;
    for (int k = 0; k < n && !status; k++) {
        turns[k] = (wt_llm_turn){.sequence = k, .id = 100 + k};
        status = wt_llm_select(b->many, k);
        if (!status) status = wt_llm_session_restore(b->many, (wt_llm_snapshot){SHARED, 0});
    }
    for (int i = 0; i < STEPS && !status && !b->quit; i++) {
        status = wt_llm_step(b->many, turns, n, best, NULL);
        for (int k = 0; k < n; k++) turns[k].id = best[k];
        if (!status) b->n_tokens += n;
    }
    return status;
}

static int first_tokens(const bench *b) { return b->n_prompt < FIRST ? b->n_prompt : FIRST; }

static wt_status work_once(bench *b, work what)
{
    switch (what) {
    case DECODE:
        return decode(b);
    case FIRST_TOKEN:
        return prefill(b, first_tokens(b));
    case STEPS_8:
        return steps(b, 8);
    case STEPS_64:
        return steps(b, MOST_TURNS);
    default:
        return prefill(b, b->n_prompt);
    }
}

static bool wants(const bench *b, work what) { return !what || strstr(b->works, work_names[what]); }

static void *work_thread(void *user)
{
    bench *b = user;
    while (!b->quit && !b->status) b->status = work_once(b, b->what);
    if (b->status) fprintf(stderr, "bench_tenant: %s: %s\n", work_names[b->what], wt_last_error());
    return NULL;
}

static void start(bench *b, work what)
{
    b->what = what;
    b->quit = false;
    b->n_tokens = b->n_different = 0;
    if (what && pthread_create(&b->thread, NULL, work_thread, b)) exit(1);
    spin_until(wt_clock_now_ns(NULL) + 300000000);
}

static void stop(bench *b)
{
    b->quit = true;
    if (b->what) pthread_join(b->thread, NULL);
    if (b->status) exit(1);
}

static bool keep_token(void *user, const wt_llm_pick *pick)
{
    bench *b = user;
    b->alone[b->n_run++] = pick->id;
    return true;
}

static void fill_context(bench *b)
{
    for (int at = b->n_prompt; at < b->context; at += b->n_prompt) // the context's tokens matter little
        need(wt_llm_prefill(b->session, b->prompt, b->n_prompt));
}

/// For about so many seconds, whole runs of TOKENS or STEPS and whole prompts.
static void measure_alone(bench *b, double seconds)
{
    for (int k = 0; k < b->n_prompt; k++) b->prompt[k] = k * 37 % 30000;
    for (int k = 0; b->many && k < MOST_TURNS; k++) {
        need(wt_llm_select(b->many, k));
        need(wt_llm_prefill(b->many, b->prompt, SHARED));
    }
    need(prefill(b, b->n_prompt));
    fill_context(b);
    need(wt_llm_session_restore(b->session, (wt_llm_snapshot){b->context, 0}));
    need(wt_llm_run(b->session, 1, &(wt_llm_run_config){.n_tokens = TOKENS, .on_token = keep_token, .user = b}));
    for (work what = DECODE; what < N_WORKS; what++) {
        if (!wants(b, what)) continue;
        need(work_once(b, what)); // a batch is recorded when it comes again
        b->n_tokens = 0;
        const int64_t begin = wt_clock_now_ns(NULL);
        do need(work_once(b, what));
        while (seconds_since(begin) < seconds);
        b->rate_alone[what] = (double)b->n_tokens / seconds_since(begin);
    }
    need(prefill(b, b->n_prompt)); // first tokens have left fewer
    fill_context(b);
}

// ---- audio

static void run_blocks(bench *b, int n)
{
    const float *ins[2] = {b->in[0], b->in[1]};
    float *outs[2] = {b->out[0], b->out[1]};
    const int64_t begin_ns = wt_clock_now_ns(NULL) + 1000000;
    wt_histogram_reset(b->took);
    for (int k = 0; k < n; k++) {
        spin_until(begin_ns + (int64_t)(k * BLOCK / RATE * 1e9));
        const int64_t start_ns = wt_clock_now_ns(NULL);
        const wt_status status = wt_live_process(b->live, ins, outs, BLOCK);
        if (status && status != WT_ERR_TIMEOUT) need(status); // late blocks are the live engine's to count
        wt_histogram_record(b->took, wt_clock_now_ns(NULL) - start_ns);
    }
}

static void bench_row(bench *b, work what)
{
    wt_live_stats before, after;
    wt_histogram_summary s;
    start(b, what);
    run_blocks(b, WARM_BLOCKS);
    wt_live_get_stats(b->live, &before);
    const long long n_before = b->n_tokens;
    const int64_t begin = wt_clock_now_ns(NULL);
    run_blocks(b, b->n_blocks);
    const double rate = (double)(b->n_tokens - n_before) / seconds_since(begin);
    wt_live_get_stats(b->live, &after);
    stop(b);
    wt_histogram_summarize(b->took, &s);
    printf("tenant  %-10s %-4s %-7s n=%llu  p50 %.1f  p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f us | misses %llu",
           b->shape, b->type, work_names[what], (unsigned long long)s.count, (double)s.p50 * 1e-3, (double)s.p99 * 1e-3,
           (double)s.p99_9 * 1e-3, (double)s.p99_99 * 1e-3, (double)s.max * 1e-3,
           (unsigned long long)(after.n_misses - before.n_misses));
    for (int k = 0; k < WT_N_LIVE_MISSES; k++)
        if (after.misses[k] > before.misses[k])
            printf(" (%s %llu)", wt_live_miss_name((wt_live_miss)k),
                   (unsigned long long)(after.misses[k] - before.misses[k]));
    printf(", launches %llu", (unsigned long long)(after.n_launches - before.n_launches));
    if (what)
        printf(" | %.1f tok/s, %.1f %% of %.1f alone", rate, 100 * rate / b->rate_alone[what], b->rate_alone[what]);
    if (what == FIRST_TOKEN) printf(", %.2f ms each", 1e3 * first_tokens(b) / rate);
    if (what == DECODE) printf(", %lld tokens other than alone", (long long)b->n_different);
    printf("\n");
    fflush(stdout);
}

// ---- setting up

static void open_layout(bench *b)
{
    const int n = wt_device_get_info(b->device)->n_sms, middle = b->on_gpu ? 56 : 1;
    const bool borrow = !strcmp(b->layout_name, "borrow");
    const wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .n_sms = b->n_sms},
                                       {.name = "llm"}};
    const wt_partition_config three[] = {two[0],
                                         {.name = "speech", .tier = WT_TIER_GUARANTEED, .n_sms = middle, .lends = true},
                                         {.name = "llm", .borrows = true}};
    need(wt_layout_create(b->device,
                          &(wt_layout_config){.partitions = borrow ? three : two,
                                              .n_partitions = borrow ? 3 : 2,
                                              .fine = !strcmp(b->layout_name, "fine")},
                          &b->layout));
    if (borrow) need(wt_partition_idle(wt_layout_at(b->layout, 1), true));
    wt_partition_info info;
    wt_partition_get_info(wt_layout_find(b->layout, "llm"), &info);
    printf("bench_tenant: %s, audio on %d of %d, %s on %d%s\n", wt_device_get_info(b->device)->name, b->n_sms, n,
           b->shape, info.n_sms, borrow ? " and what speech lends" : "");
}

static void open_model(bench *b)
{
    wt_partition *llms = wt_layout_find(b->layout, "llm");
    const int longest = b->context + TOKENS > b->n_prompt ? b->context + TOKENS + b->n_prompt : b->n_prompt;
    if (b->on_gpu)
        need(wt_llm_resident_create(&b->model, &(wt_llm_resident_config){.device = b->device, .partition = llms},
                                    &b->resident));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_session_create(&b->model,
                               &(wt_llm_session_config){.device = b->device,
                                                        .partition = llms,
                                                        .resident = b->resident,
                                                        .n_positions = longest,
                                                        .n_batch = b->n_prompt,
                                                        .kv_type = b->on_gpu ? WT_DTYPE_BF16 : WT_DTYPE_F32},
                               &b->session));
    if (wants(b, STEPS_8) || wants(b, STEPS_64))
        need(wt_llm_session_create(&b->model,
                                   &(wt_llm_session_config){.device = b->device,
                                                            .partition = llms,
                                                            .resident = b->resident,
                                                            .n_positions = SHARED + STEPS,
                                                            .n_batch = SHARED,
                                                            .n_sequences = MOST_TURNS,
                                                            .kv_type = b->on_gpu ? WT_DTYPE_BF16 : WT_DTYPE_F32},
                                   &b->many));
    printf("sessions of batches up to %d made ready in %.2f s\n", b->n_prompt, seconds_since(begin));
}

static void open_live(bench *b)
{
    const wt_live_config config = {.rate_hz = RATE,
                                   .channels = 2,
                                   .max_frames = BLOCK,
                                   .device = b->on_gpu ? b->device : NULL,
                                   .partition = b->on_gpu ? wt_layout_find(b->layout, "audio") : NULL,
                                   .path = b->on_gpu ? WT_LIVE_RESIDENT : WT_LIVE_CPU};
    need(wt_live_create(&config, &b->live));
    need(wt_live_load(b->live, &bench_voice, NULL));
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < BLOCK; n++) b->in[c][n] = 0.3f * sinf(0.07f * (float)n + (float)c);
}

static bool read_options(int argc, char **argv, bench *b)
{
    for (int k = 1; k < argc; k++) {
        if (k + 1 == argc) return false;
        if (!strcmp(argv[k], "--shape"))
            b->shape = argv[++k];
        else if (!strcmp(argv[k], "--layout"))
            b->layout_name = argv[++k];
        else if (!strcmp(argv[k], "--type"))
            b->type = argv[++k];
        else if (!strcmp(argv[k], "--work"))
            b->works = argv[++k];
        else if (!strcmp(argv[k], "--blocks"))
            b->n_blocks = atoi(argv[++k]);
        else if (!strcmp(argv[k], "--sms"))
            b->n_sms = atoi(argv[++k]);
        else if (!strcmp(argv[k], "--context"))
            b->context = atoi(argv[++k]);
        else
            return false;
    }
    return b->n_blocks > 0 && b->n_sms > 0 && b->context >= 1;
}

int main(int argc, char **argv)
{
    static bench b;
    b.on_gpu = wt_device_count() > 0;
    b.shape = b.on_gpu ? "qwen3-8b" : "qwen3-0.6b";
    b.type = "bf16";
    b.works = "decode,prompt";
    b.layout_name = "llm";
    b.n_blocks = b.on_gpu ? 5000 : 3000;
    b.n_sms = b.on_gpu ? 8 : 1;
    b.n_prompt = b.on_gpu ? PROMPT : CPU_PROMPT;
    b.context = b.on_gpu ? 1024 : CPU_PROMPT;
    if (!read_options(argc, argv, &b) || !random_llm_make(b.shape, &b.model) || !random_llm_retype(&b.model, b.type)) {
        fprintf(stderr, "bench_tenant: want [--shape qwen3-8b|qwen3-0.6b|llama3-8b|mixtral] [--type bf16|fp8|int8|...] "
                        "[--work decode,prompt,first,steps8,steps64] [--blocks N] [--sms N] [--context N] "
                        "[--layout llm|borrow|fine]\n");
        return 1;
    }
    need(wt_device_open(&(wt_device_config){.backend = b.on_gpu ? WT_BACKEND_CUDA : WT_BACKEND_CPU}, &b.device));
    if (wt_device_get_info(b.device)->n_sms < 2) {
        printf("bench_tenant: one processor cannot be shared out\n");
        return 0;
    }
    need(wt_histogram_create(&b.took));
    open_layout(&b);
    open_model(&b);
    measure_alone(&b, b.on_gpu ? 1 : 2);
    open_live(&b);
    for (work what = NOTHING; what < N_WORKS; what++)
        if (wants(&b, what)) bench_row(&b, what);
    wt_live_destroy(b.live);
    wt_llm_session_destroy(b.many);
    wt_llm_session_destroy(b.session);
    wt_llm_resident_destroy(b.resident);
    need(wt_layout_destroy(b.layout));
    wt_histogram_destroy(b.took);
    wt_device_close(b.device);
    return 0;
}
