// Language models on a GPU, with random weights of a known shape: loading, a prompt, and greedy tokens one by one. The
// weights of all matrices are the same random bytes on the host and lie one after the other on the GPU. A step reads
// every weight once and the keys and values of the context: its rate stands beside that of a plain kernel that reads.
//
//   bench_llm_cuda [SHAPE [CONTEXT [TOKENS]]]     SHAPE: qwen3-8b (default), qwen3-0.6b, llama3-8b, mixtral
//
//   read              4651 GB/s
//   qwen3-8b  load    16.4 GB      7.9 GB/s
//   qwen3-8b  prompt  4096 tokens  30391 tok/s
//   qwen3-8b  decode  at 1024      255.0 tok/s   3.92 ms   3900 GB/s   0.84 of read
// (The figures above only show the form.)
#include "../models/llm/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { PROMPT = 4096 };

typedef struct shape {
    const char *name;
    wt_model_config config;
} shape;

static const shape shapes[] = {
    {"qwen3-8b",
     {.family = WT_MODEL_QWEN3,
      .n_layers = 36,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 151936,
      .d_ff = 12288,
      .qk_norm = true}},
    {"qwen3-0.6b",
     {.family = WT_MODEL_QWEN3,
      .n_layers = 28,
      .d_model = 1024,
      .n_heads = 16,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 151936,
      .d_ff = 3072,
      .qk_norm = true,
      .tied_head = true}},
    {"llama3-8b",
     {.family = WT_MODEL_LLAMA,
      .n_layers = 32,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 128256,
      .d_ff = 14336}},
    {"mixtral",
     {.family = WT_MODEL_MIXTRAL,
      .n_layers = 32,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .d_head = 128,
      .vocab_size = 32000,
      .n_experts = 8,
      .n_experts_used = 2,
      .d_ff_expert = 14336,
      .norm_expert_weights = true}},
};

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_llm_cuda: %s\n", wt_last_error());
    exit(1);
}

static double seconds_since(int64_t begin) { return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9; }

// ---- a model of random numbers

static uint16_t *random_bytes; ///< bf16 of +-0.03
static float *ones;

static wt__linear matrix(int64_t rows, int64_t columns)
{
    return (wt__linear){.weight = {random_bytes, WT_DTYPE_BF16, 2, {rows, columns}}};
}

static void make_layer(const wt_model_config *c, wt__layer *w)
{
    const int64_t d = c->d_model, q = (int64_t)c->n_heads * c->d_head, kv = (int64_t)c->n_kv_heads * c->d_head;
    *w = (wt__layer){.attention_norm = {ones, NULL}, .ffn_norm = {ones, NULL}};
    if (c->qk_norm) w->q_norm.weight = w->k_norm.weight = ones;
    w->q = matrix(q, d);
    w->k = w->v = matrix(kv, d);
    w->o = matrix(d, q);
    if (!c->n_experts) {
        w->gate = w->up = matrix(c->d_ff, d);
        w->down = matrix(d, c->d_ff);
        return;
    }
    w->router = matrix(c->n_experts, d);
    w->experts = calloc((size_t)c->n_experts, sizeof *w->experts);
    for (int e = 0; e < c->n_experts; e++)
        w->experts[e] = (wt__expert){matrix(c->d_ff_expert, d), matrix(c->d_ff_expert, d), matrix(d, c->d_ff_expert)};
}

static void make_model(const shape *s, wt_llm *m)
{
    *m = (wt_llm){.config = s->config};
    wt_model_config *c = &m->config;
    c->max_positions = 40960;
    c->activation = WT_ACTIVATION_SILU;
    c->norm_eps = 1e-6;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT, .theta = 1e6, .n_dims = c->d_head, .factor = 1};
    const size_t most = (size_t)c->vocab_size * (size_t)c->d_model;
    random_bytes = malloc((most + 8) * sizeof *random_bytes);
    ones = malloc(sizeof *ones * (size_t)c->d_model);
    uint64_t seed = 1;
    for (size_t k = 0; k < most + 8; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        random_bytes[k] = (uint16_t)((seed >> 63) << 15 | (0x3c80 + (seed >> 50 & 0x7f))); // 2^-6 .. 2^-5
    }
    for (int k = 0; k < c->d_model; k++) ones[k] = 1;
    m->embedding = matrix(c->vocab_size, c->d_model).weight;
    m->head = matrix(c->vocab_size, c->d_model);
    if (!c->tied_head) m->head.weight.data = random_bytes + 8; // not the embedding
    m->norm.weight = ones;
    m->layers = calloc((size_t)c->n_layers, sizeof *m->layers);
    for (int l = 0; l < c->n_layers; l++) make_layer(c, &m->layers[l]);
}

// ---- reading

static const char read_text[] =
    "extern \"C\" __global__ void __launch_bounds__(1024) read_all(const uint4 *p, unsigned long long n, unsigned "
    "*out)\n"
    "{\n"
    "    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n"
    "    unsigned sum = 0;\n"
    "    for (unsigned long long k = blockIdx.x * blockDim.x + threadIdx.x; k + 3 * step < n; k += 4 * step) {\n"
    "        const uint4 a = p[k], b = p[k + step], c = p[k + 2 * step], d = p[k + 3 * step];\n"
    "        sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;\n"
    "    }\n"
    "    if (sum == 1) *out = sum;\n"
    "}\n";

/// The weights themselves, several times over.
static double read_rate(wt_device *device, uintptr_t weights, size_t bytes)
{
    wt_module *module;
    wt_kernel *kernel;
    wt_stream *stream;
    wt_event *begin, *end;
    wt_buffer *out;
    unsigned long long n = bytes / 16;
    need(wt_module_create(device, &(wt_module_config){.name = "read.cu", .source = read_text}, &module));
    need(wt_module_get_kernel(module, "read_all", &kernel));
    need(wt_stream_create(device, NULL, &stream));
    need(wt_event_create(device, &begin));
    need(wt_event_create(device, &end));
    need(wt_buffer_create(device, WT_MEMORY_DEVICE, 4, &out));
    const uintptr_t sum = wt_buffer_address(out);
    const wt_arg args[] = {WT_ARG(weights), WT_ARG(n), WT_ARG(sum)};
    const wt_launch launch = {.grid = {2 * wt_device_get_info(device)->n_sms}, .block = {1024}};
    double best = 0;
    for (int k = 0; k < 5; k++) {
        double us;
        need(wt_event_record(begin, stream));
        need(wt_kernel_launch(kernel, stream, &launch, args, 3));
        need(wt_event_record(end, stream));
        need(wt_event_synchronize(end));
        need(wt_event_elapsed_us(begin, end, &us));
        best = (double)bytes / us / 1e3 > best ? (double)bytes / us / 1e3 : best;
    }
    wt_event_destroy(begin);
    wt_event_destroy(end);
    wt_stream_destroy(stream);
    wt_buffer_destroy(out);
    wt_module_destroy(module);
    return best;
}

// ---- rows

/// Returns tokens a second.
static double bench_prompt(const char *name, wt_llm_session *session, int n)
{
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    double best = 1e30;
    for (int k = 0; k < n; k++) ids[k] = k * 37 % 30000;
    for (int k = 0; k < 3; k++) {
        need(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
        const int64_t begin = wt_clock_now_ns(NULL);
        need(wt_llm_prefill(session, ids, n));
        const double s = seconds_since(begin);
        best = s < best ? s : best;
        if (s > 2) break;
    }
    printf("%-10s prompt  %5d tokens  %8.0f tok/s  %8.2f ms\n", name, n, n / best, best * 1e3);
    free(ids);
    return n / best;
}

static void bench_decode(const char *name, wt_llm_session *session, const wt_llm *m, int context, int n, double read)
{
    const wt_model_config *c = &m->config;
    const double kv = 4.0 * c->n_layers * c->n_kv_heads * c->d_head * (context + n / 2);
    const double bytes = (double)wt_llm_step_bytes(m) + kv;
    need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
    need(wt_llm_run(session, 1, &(wt_llm_run_config){.n_tokens = 8})); // records the step
    need(wt_llm_session_restore(session, (wt_llm_snapshot){context, 0}));
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_run(session, 1, &(wt_llm_run_config){.n_tokens = n}));
    const double s = seconds_since(begin) / n, rate = bytes / s * 1e-9;
    printf("%-10s decode  at %-5d  %10.1f tok/s  %8.3f ms  %6.0f GB/s  %.2f of read\n", name, context, 1 / s, s * 1e3,
           rate, rate / read);
}

/// Steps of several sequences of BATCH_CONTEXT tokens each, most probable tokens, not recorded.
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

int main(int argc, char **argv)
{
    const shape *s = shapes;
    const int context = argc > 2 ? atoi(argv[2]) : 1024, n = argc > 3 ? atoi(argv[3]) : 128;
    for (size_t k = 0; argc > 1 && k < sizeof shapes / sizeof *shapes; k++)
        if (!strcmp(argv[1], shapes[k].name)) s = &shapes[k];
    if (!wt_device_count()) {
        printf("skipped: %s\n", wt_last_error());
        return 0;
    }
    wt_device *device;
    wt_llm_resident *resident;
    wt_llm_session *session;
    wt_llm m;
    need(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    make_model(s, &m);
    const int64_t begin = wt_clock_now_ns(NULL);
    need(wt_llm_resident_create(&m, &(wt_llm_resident_config){.device = device}, &resident));
    const double seconds = seconds_since(begin);
    const size_t bytes = wt_pool_arena_used_bytes(resident->arena);
    const double read = read_rate(device, (uintptr_t)resident->llm.embedding.data, bytes / 2);
    printf("read              %8.0f GB/s\n", read);
    printf("%-10s load    %5.1f GB      %8.1f GB/s\n", s->name, (double)bytes * 1e-9, (double)bytes * 1e-9 / seconds);
    need(wt_llm_session_create(&m,
                               &(wt_llm_session_config){.device = device,
                                                        .resident = resident,
                                                        .n_positions = (context > PROMPT ? context : PROMPT) + n + 8,
                                                        .n_batch = PROMPT,
                                                        .kv_type = WT_DTYPE_BF16},
                               &session));
    const double rate = bench_prompt(s->name, session, 128);
    bench_prompt(s->name, session, context > PROMPT || rate < 1000 ? context : PROMPT);
    bench_decode(s->name, session, &m, context, n, read);
    wt_llm_session_destroy(session);
    bench_batch(s->name, &m, device, resident, 8);
    bench_batch(s->name, &m, device, resident, 64);
    wt_llm_resident_destroy(resident);
    wt_device_close(device);
    return 0;
}
