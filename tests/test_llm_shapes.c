// Language models on a GPU, of the shapes for which its kernels are made: wide rows, heads of 64 and 128, prompts of
// several blocks, steps of several sequences. The judge is the CPU with the same weights, which are random.
#include "../models/llm/gpu.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_LAYERS = 2,
    N_POSITIONS = 320,
    N_SEQUENCES = 3,
    N_SINGLES = 24,
    MANY_SINGLES = 300,
    VOCAB = 500,
    FEW_SMS = 8,
    OTHER_SMS = 4
};

/// 16 bits a vector, a query and a share: errors of 2^-12 (F16) and 2^-9 (BF16) in each of some fifteen products, of
/// which the logits keep a few.
static const struct {
    wt_dtype dtype;
    double bound;
} types[] = {{WT_DTYPE_F16, 5e-3}, {WT_DTYPE_BF16, 4e-2}};

static const wt_model_config shapes[] = {
    // two passes of a product with 8192 columns, which begins while the one before it runs (kernels/llm/llm_stream.cu)
    {.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 256, .d_ff = 8192, .qk_norm = true},
    {.n_heads = 6, .n_kv_heads = 2, .d_head = 64, .d_model = 416, .d_ff = 1536, .sliding_window = 70},
    {.n_heads = 4, .n_kv_heads = 4, .d_head = 80, .d_model = 96, .d_ff = 352},
};

/// Gate and up are many short rows, which fewer warps share (kernels/llm/llm_stream.cu).
static const wt_model_config many_rows = {
    .n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 264, .d_ff = 16400, .qk_norm = true};

/// Down of quantised weights is shared by two blocks, which finish more than a tile each (kernels/llm/llm_quant.cu).
static const wt_model_config long_rows = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 4608, .d_ff = 8192};

/// On FEW_SMS a pair of blocks finishes 12 tiles of down, a block 64 of gate and up: more than it has places for.
static const wt_model_config many_tiles = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 1536, .d_ff = 8192};

/// Gate and up are 1920 tiles: on 124 processors 15 for each of 128 blocks.
static const wt_model_config even_rows = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 288, .d_ff = 15360};

// ---- a model of random numbers

typedef struct model {
    wt_llm llm;
    void *memory[64];
    int n;
    uint64_t seed;
} model;

static void *take(model *m, size_t bytes)
{
    assert_true(m->n < 64);
    return m->memory[m->n++] = calloc(1, bytes);
}

static wt__linear floats(model *m, int rows, int columns)
{
    float *x = take(m, sizeof *x * (size_t)rows * (size_t)columns);
    for (size_t k = 0; k < (size_t)rows * (size_t)columns; k++) x[k] = noise(&m->seed) / 16;
    return (wt__linear){.weight = {x, WT_DTYPE_F32, 2, {rows, columns}}};
}

static wt__linear matrix(model *m, wt_dtype dtype, int rows, int columns)
{
    if (dtype == WT_DTYPE_F32) return floats(m, rows, columns);
    uint16_t *x = take(m, sizeof *x * (size_t)rows * (size_t)columns);
    for (size_t k = 0; k < (size_t)rows * (size_t)columns; k++) {
        const uint32_t r = (uint32_t)(noise(&m->seed) * 0x7fffff + 0x800000);
        const int exponent = dtype == WT_DTYPE_F16 ? 15 - 5 : 127 - 5, digits = dtype == WT_DTYPE_F16 ? 10 : 7;
        x[k] = (uint16_t)((r & 1) << 15 | (uint32_t)exponent << digits | (r >> 3 & ((1u << digits) - 1)));
    }
    return (wt__linear){.weight = {x, dtype, 2, {rows, columns}}};
}

static const float *vector(model *m, int n)
{
    float *x = take(m, sizeof *x * (size_t)n);
    for (int k = 0; k < n; k++) x[k] = 1 + noise(&m->seed) / 4;
    return x;
}

static void make(model *m, const wt_model_config *shape, wt_dtype t)
{
    *m = (model){.llm.config = *shape, .seed = 1};
    wt_model_config *c = &m->llm.config;
    c->family = WT_MODEL_QWEN3;
    c->n_layers = N_LAYERS;
    c->vocab_size = VOCAB;
    c->max_positions = N_POSITIONS;
    c->activation = WT_ACTIVATION_SILU;
    c->norm_eps = 1e-6;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT,
                               .theta = 1e4,
                               .n_dims = c->rope.n_dims ? c->rope.n_dims : c->d_head,
                               .interleaved = c->rope.interleaved,
                               .factor = 1};
    c->layer_slides[1] = c->sliding_window;
    m->llm.embedding = matrix(m, t, VOCAB, c->d_model).weight;
    m->llm.head = matrix(m, t, VOCAB, c->d_model);
    m->llm.norm.weight = vector(m, c->d_model);
    m->llm.layers = take(m, sizeof *m->llm.layers * N_LAYERS);
    for (int l = 0; l < N_LAYERS; l++) {
        const int q = c->n_heads * c->d_head, kv = c->n_kv_heads * c->d_head;
        wt__layer *w = &m->llm.layers[l];
        w->attention_norm.weight = vector(m, c->d_model);
        w->ffn_norm.weight = vector(m, c->d_model);
        if (c->qk_norm) w->q_norm.weight = vector(m, c->d_head);
        if (c->qk_norm) w->k_norm.weight = vector(m, c->d_head);
        w->q = matrix(m, t, q, c->d_model);
        w->k = matrix(m, t, kv, c->d_model);
        w->v = matrix(m, t, kv, c->d_model);
        w->o = matrix(m, t, c->d_model, q);
        w->gate = matrix(m, t, c->d_ff, c->d_model);
        w->up = matrix(m, t, c->d_ff, c->d_model);
        w->down = matrix(m, t, c->d_model, c->d_ff);
    }
}

// ---- the same on both

typedef struct pair {
    wt_device *device[2];
    wt_layout *layout; ///< of the GPU, where the session has not all of it
    wt_llm_session *session[2];
    double bound, worst;
} pair; ///< CPU, GPU

static void compare(pair *p, const float *got, const float *want, const char *what)
{
    double peak = 0, error = 0;
    for (int k = 0; k < VOCAB; k++) {
        peak = fmax(peak, fabs(want[k]));
        error = fmax(error, isnan(got[k]) ? INFINITY : fabs(got[k] - want[k]));
    }
    p->worst = fmax(p->worst, error / peak);
    if (!(error <= p->bound * peak)) fail_msg("%s: logits differ by %.2g of %.3g", what, error, peak);
}

static void feed(pair *p, int n, int first, const char *what)
{
    int32_t ids[N_POSITIONS];
    for (int k = 0; k < n; k++) ids[k] = (first + k * 37) % VOCAB;
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_prefill(p->session[b], ids, n));
    compare(p, wt_llm_logits(p->session[1]), wt_llm_logits(p->session[0]), what);
}

static void step(pair *p, int n, int first)
{
    wt_llm_turn turns[N_SEQUENCES] = {0};
    int32_t best[N_SEQUENCES];
    float logits[2][N_SEQUENCES * VOCAB];
    for (int k = 0; k < n; k++) turns[k] = (wt_llm_turn){.sequence = k, .id = first + k};
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_step(p->session[b], turns, n, best, logits[b]));
    for (int k = 0; k < n; k++) compare(p, logits[1] + k * VOCAB, logits[0] + k * VOCAB, "a step");
}

/// Processors of the GPU that a session has: all, FEW_SMS, what those leave, or what OTHER_SMS leave of a finer cut.
typedef enum where { ALL, FEW, BESIDE, FINE } where;

static wt_layout_config layout_with(where on)
{
    static const wt_partition_config parts[][2] = {[FEW] = {{.name = "few", .n_sms = FEW_SMS}, {.name = "rest"}},
                                                   [BESIDE] = {{.name = "rest"}, {.name = "few", .n_sms = FEW_SMS}},
                                                   [FINE] = {{.name = "rest"}, {.name = "few", .n_sms = OTHER_SMS}}};
    return (wt_layout_config){.partitions = parts[on], .n_partitions = 2, .fine = on == FINE};
}

static wt_partition *partition_of(pair *p, where on)
{
    if (on == ALL) return NULL;
    const wt_layout_config config = layout_with(on);
    assert_ok(wt_layout_create(p->device[1], &config, &p->layout));
    return wt_layout_at(p->layout, 0);
}

static void open_both(pair *p, const model *m, wt_dtype kv_type, where on)
{
    static const wt_backend backends[] = {WT_BACKEND_CPU, WT_BACKEND_CUDA};
    for (int b = 0; b < 2; b++) {
        assert_ok(wt_device_open(&(wt_device_config){.backend = backends[b], .n_threads = 2}, &p->device[b]));
        assert_ok(wt_llm_session_create(&m->llm,
                                        &(wt_llm_session_config){.device = p->device[b],
                                                                 .partition = b ? partition_of(p, on) : NULL,
                                                                 .n_positions = N_POSITIONS,
                                                                 .n_batch = 256,
                                                                 .n_sequences = N_SEQUENCES,
                                                                 .exact_products = true,
                                                                 .kv_type = b ? kv_type : WT_DTYPE_F32},
                                        &p->session[b]));
    }
}

static void close_both(pair *p, model *m)
{
    for (int b = 0; b < 2; b++) {
        wt_llm_session_destroy(p->session[b]);
        if (b) assert_ok(wt_layout_destroy(p->layout));
        wt_device_close(p->device[b]);
    }
    wt__llm_give_back(&m->llm);
    for (int k = 0; k < m->n; k++) free(m->memory[k]);
}

/// Prompts, tokens and steps from empty sequences on.
static void feed_all(pair *p)
{
    for (int s = 0; s < N_SEQUENCES; s++) {
        for (int b = 0; b < 2; b++) assert_ok(wt_llm_select(p->session[b], s));
        for (int b = 0; b < 2; b++) assert_ok(wt_llm_session_restore(p->session[b], (wt_llm_snapshot){0, 0}));
        feed(p, 150 + 20 * s, s, "a prompt");
        feed(p, 1, 7, "a token");
        feed(p, 11, 3, "eleven tokens");
    }
    for (int n = N_SEQUENCES; n; n--) step(p, n, 40 + n);
}

static void check(const wt_model_config *shape, wt_dtype dtype, double bound, where on)
{
    model m;
    pair p = {.bound = bound};
    make(&m, shape, dtype);
    open_both(&p, &m, dtype, on);
    feed_all(&p);
    print_message("heads of %3d, %-4s %.1e of the largest logit\n", shape->d_head, wt_dtype_name(dtype), p.worst);
    close_both(&p, &m);
}

static void skip_without_gpu(void)
{
    if (wt_device_count()) return;
    print_message("skipped: %s\n", wt_last_error());
    skip();
}

/// Products of one vector do not round it to the weights' type.
static void check_singles(const wt_model_config *shape, wt_dtype dtype, wt_llm_quantization kind, where on)
{
    model m;
    pair p = {.bound = 1e-5}; // as against transformers in float32
    make(&m, shape, dtype);
    assert_ok(wt_llm_quantize(&m.llm, kind, NULL, NULL));
    open_both(&p, &m, WT_DTYPE_F32, on);
    const bool many = shape->d_ff < 4096 && kind == WT_LLM_AS_STORED; // a block of attention takes turns then
    for (int k = 0; k < (many ? MANY_SINGLES : N_SINGLES); k++) feed(&p, 1, k * 11, "a token");
    print_message("one by one, rows of %4d, %-5s kind %d: %.1e of the largest logit\n", shape->d_ff,
                  wt_dtype_name(dtype), kind, p.worst);
    close_both(&p, &m);
}

static void single_tokens_have_whole_vectors(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check_singles(&shapes[k], types[t].dtype, WT_LLM_AS_STORED, ALL);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        check_singles(&many_rows, types[t].dtype, WT_LLM_AS_STORED, ALL);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) // the first in boxes alone
        for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
            check_singles(&shapes[k], WT_DTYPE_BF16, (wt_llm_quantization)kind, ALL);
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
        check_singles(&long_rows, WT_DTYPE_BF16, (wt_llm_quantization)kind, ALL);
}

static void few_processors_finish_many_tiles(void **state)
{
    (void)state;
    skip_without_gpu();
    for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++)
        check_singles(&many_tiles, WT_DTYPE_BF16, (wt_llm_quantization)kind, FEW);
}

static void there_may_be_more_blocks_than_processors(void **state)
{
    (void)state;
    skip_without_gpu();
    check_singles(&even_rows, WT_DTYPE_BF16, WT_LLM_AS_STORED, BESIDE);
}

static void a_gpu_gives_the_logits_of_the_cpu(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check(&shapes[k], types[t].dtype, types[t].bound, ALL);
}

/// Where large clusters find no room there are smaller ones, of attention, of draws and of long rows.
static void a_fine_cut_gives_the_logits_of_the_cpu(void **state)
{
    (void)state;
    skip_without_gpu();
    check(&shapes[0], WT_DTYPE_F16, types[0].bound, FINE);
    check(&shapes[1], WT_DTYPE_BF16, types[1].bound, FINE);
    check_singles(&long_rows, WT_DTYPE_BF16, WT_LLM_FP8, FINE);
}

/// A session goes on where its partition is cut finer, and back in whole units: with the numbers of processors and the
/// kernels of then, and with the keys and values of before.
static void a_resize_may_cut_finer(void **state)
{
    static const where rounds[] = {FINE, BESIDE};
    model m;
    pair p = {.bound = types[1].bound};
    (void)state;
    skip_without_gpu();
    make(&m, &shapes[0], WT_DTYPE_BF16);
    open_both(&p, &m, WT_DTYPE_BF16, BESIDE);
    feed_all(&p);
    for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++) {
        const wt_layout_config config = layout_with(rounds[k]);
        wt_partition_info info;
        assert_ok(wt_layout_resize(p.layout, &config));
        for (int n = N_SEQUENCES; n; n--) step(&p, n, 60 + n);
        wt_partition_get_info(wt_layout_at(p.layout, 0), &info);
        assert_int_equal(info.fine, rounds[k] == FINE);
        assert_int_equal(p.session[1]->gpu->own_sms, info.n_sms);
        feed_all(&p);
    }
    close_both(&p, &m);
}

// ---- tokens one by one and together

/// With exact_guesses: up to 8 of them give the same bits as each alone, in larger batches 8 at a time; runs too, whose
/// steps are recorded.
static void check_alike(const wt_model_config *shape, wt_dtype dtype, wt_llm_quantization kind, int n_rounds)
{
    enum { N = 13, BEFORE = 130 };
    static float all[N][VOCAB];
    model m;
    wt_device *device;
    wt_llm_resident *resident;
    wt_llm_session *s;
    int32_t ids[BEFORE];
    make(&m, shape, dtype);
    for (int k = 0; k < BEFORE; k++) ids[k] = k * 37 % VOCAB;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    assert_ok(
        wt_llm_resident_create(&m.llm, &(wt_llm_resident_config){.device = device, .quantization = kind}, &resident));
    assert_ok(wt_llm_session_create(&m.llm,
                                    &(wt_llm_session_config){.device = device,
                                                             .resident = resident,
                                                             .n_positions = N_POSITIONS,
                                                             .kv_type = dtype,
                                                             .exact_guesses = true},
                                    &s));
    assert_ok(wt_llm_prefill(s, ids, BEFORE));
    const wt_llm_snapshot at = wt_llm_session_snapshot(s);
    for (int round = 0; round < n_rounds; round++) { // a batch is recorded when it comes again
        const int n = round % 3 == 1 ? 5 : N;
        assert_ok(wt_llm_verify(s, ids, n, all[0]));
        assert_ok(wt_llm_session_restore(s, at));
        for (int k = 0; k < n; k++) {
            if (round % 3 == 2)
                assert_ok(wt_llm_run(s, ids[k], &(wt_llm_run_config){.n_tokens = 1}));
            else
                assert_ok(wt_llm_decode(s, ids[k]));
            const float *got = wt_llm_logits(s);
            for (int j = 0; j < VOCAB; j++)
                if (got[j] != all[k][j])
                    fail_msg("heads of %d, %s, quantised as %d, round %d: token %d, logit %d is %.9g, verified %.9g",
                             shape->d_head, wt_dtype_name(dtype), (int)kind, round, k, j, got[j], all[k][j]);
        }
        assert_ok(wt_llm_session_restore(s, at));
    }
    wt_llm_session_destroy(s);
    wt_llm_resident_destroy(resident);
    wt_device_close(device);
    for (int k = 0; k < m.n; k++) free(m.memory[k]);
}

static void exact_guesses_have_the_bits_of_single_steps(void **state)
{
    (void)state;
    skip_without_gpu();
    // copies to shared memory that came before loads of what was there spoilt a step of seven (matmul_few.cu)
    check_alike(&shapes[0], WT_DTYPE_BF16, WT_LLM_AS_STORED, 60);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++)
                check_alike(&shapes[k], types[t].dtype, (wt_llm_quantization)kind, 3);
}

// ---- tokens after others in small caches: one by one, with weights of 16 bits (kernels/llm/llm_attend_one.cu), or
// together, with weights of 32, whose products do not round vectors (kernels/llm/llm_attend_16.cu)

typedef struct single {
    wt_model_config shape;
    int before, n; ///< tokens
} single;

static const single near_tokens[] = {
    {{.n_heads = 2, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 4352, .qk_norm = true}, 0, 20},
    {{.n_heads = 2, .n_kv_heads = 2, .d_head = 128, .d_model = 128, .d_ff = 256, .rope.n_dims = 64}, 60, 8},
};

/// The warps of a cluster have 1024 positions at once: behind that and twice that the second and third turn begin.
static const single far_tokens[] = {
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 1020, 8},
    {{.n_heads = 8, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.interleaved = true}, 2040, 12},
    {{.n_heads = 3, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .sliding_window = 1100}, 1400, 4},
};

/// Likewise; of 16 tokens the warps of a cluster have 512 positions at once.
static const single guesses[] = {
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 0, 13},
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 1020, 8},
    {{.n_heads = 8, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.interleaved = true}, 2047, 2},
    {{.n_heads = 12, .n_kv_heads = 4, .d_head = 64, .d_model = 128, .d_ff = 256, .sliding_window = 1100}, 1400, 16},
    {{.n_heads = 9, .n_kv_heads = 3, .d_head = 128, .d_model = 128, .d_ff = 256, .sliding_window = 9}, 500, 11},
    {{.n_heads = 64, .n_kv_heads = 32, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.n_dims = 32}, 300, 16},
};

static void compare_verified(pair *p, int n)
{
    enum { MOST = 16 };
    static float logits[2][MOST * VOCAB];
    int32_t ids[MOST];
    for (int k = 0; k < n; k++) ids[k] = k * 11;
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_verify(p->session[b], ids, n, logits[b]));
    for (int k = 0; k < n; k++) compare(p, logits[1] + k * VOCAB, logits[0] + k * VOCAB, "a guess");
}

/// What was before is the CPU's, so that both have the same cache and few kernels run: sanitizers come to an end.
static void check_single(const single *x, wt_dtype dtype, wt_dtype kv_type, bool together)
{
    enum { MOST = 2100 };
    static const wt_backend backends[] = {WT_BACKEND_CPU, WT_BACKEND_CUDA};
    const int before = x->before;
    int32_t ids[MOST];
    model m;
    // numbers of the cache whose last bit falls the other way; alone without one 4e-7, together 7.4e-5 (H200)
    pair p = {.bound = together ? 3e-4 : 1e-4};
    make(&m, &x->shape, dtype);
    m.llm.config.max_positions = MOST;
    for (int b = 0; b < 2; b++) {
        assert_ok(wt_device_open(&(wt_device_config){.backend = backends[b], .n_threads = 2}, &p.device[b]));
        assert_ok(wt_llm_session_create(&m.llm,
                                        &(wt_llm_session_config){.device = p.device[b],
                                                                 .n_positions = MOST,
                                                                 .n_batch = !b         ? 256
                                                                            : together ? 16
                                                                                       : 1,
                                                                 .exact_products = true,
                                                                 .kv_type = kv_type},
                                        &p.session[b]));
    }
    for (int k = 0; k < before; k++) ids[k] = k * 37 % VOCAB;
    if (before) {
        assert_ok(wt_llm_prefill(p.session[0], ids, before));
        const size_t bytes = wt_llm_session_saved_bytes(p.session[0]);
        void *saved = malloc(bytes);
        assert_ok(wt_llm_session_save(p.session[0], saved, bytes));
        assert_ok(wt_llm_session_load(p.session[1], saved, bytes));
        free(saved);
    }
    for (int k = 0; k < x->n && !together; k++) {
        for (int b = 0; b < 2; b++) assert_ok(wt_llm_decode(p.session[b], k * 11));
        compare(&p, wt_llm_logits(p.session[1]), wt_llm_logits(p.session[0]), "a token");
    }
    if (together) compare_verified(&p, x->n);
    print_message("after %4d, %d heads of %3d, %-4s, cache of %-7s %.1e of the largest logit\n", before,
                  x->shape.n_heads, x->shape.d_head, wt_dtype_name(dtype), wt_dtype_name(kv_type), p.worst);
    close_both(&p, &m);
}

static void check_small_caches(const single *cases, size_t n, bool together)
{
    static const wt_dtype all[][2] = {{WT_DTYPE_F16, WT_DTYPE_F16},
                                      {WT_DTYPE_BF16, WT_DTYPE_BF16},
                                      {WT_DTYPE_BF16, WT_DTYPE_F8_E4M3}}; ///< weights, cache
    skip_without_gpu();
    for (size_t k = 0; k < n; k++)
        for (size_t t = 0; t < sizeof all / sizeof *all; t++)
            check_single(&cases[k], together ? WT_DTYPE_F32 : all[t][0], all[t][1], together);
}

static void single_tokens_with_small_caches(void **state)
{
    (void)state;
    check_small_caches(near_tokens, sizeof near_tokens / sizeof *near_tokens, false);
}

static void single_tokens_far_into_small_caches(void **state)
{
    (void)state;
    check_small_caches(far_tokens, sizeof far_tokens / sizeof *far_tokens, false);
}

static void guesses_with_small_caches(void **state)
{
    (void)state;
    check_small_caches(guesses, sizeof guesses / sizeof *guesses, true);
}

/// Of the third of three, attention's parts are added by the last block instead of all.
static void three_sessions_give_the_same(void **state)
{
    enum { N = 40 };
    static float want[N][VOCAB];
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        model m;
        wt_device *device;
        wt_llm_session *s[3];
        make(&m, &shapes[k], WT_DTYPE_BF16);
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
        for (int i = 0; i < 3; i++)
            assert_ok(wt_llm_session_create(
                &m.llm,
                &(wt_llm_session_config){.device = device, .n_positions = N_POSITIONS, .kv_type = WT_DTYPE_BF16},
                &s[i]));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < N; j++) {
                assert_ok(wt_llm_decode(s[i], j * 37 % VOCAB));
                if (!i) memcpy(want[j], wt_llm_logits(s[i]), sizeof want[j]);
                assert_memory_equal(wt_llm_logits(s[i]), want[j], sizeof want[j]);
            }
        for (int i = 0; i < 3; i++) wt_llm_session_destroy(s[i]);
        wt_device_close(device);
        for (int i = 0; i < m.n; i++) free(m.memory[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_guesses_have_the_bits_of_single_steps),
                                       cmocka_unit_test(a_fine_cut_gives_the_logits_of_the_cpu),
                                       cmocka_unit_test(a_resize_may_cut_finer),
                                       cmocka_unit_test(there_may_be_more_blocks_than_processors),
                                       cmocka_unit_test(few_processors_finish_many_tiles),
                                       cmocka_unit_test(three_sessions_give_the_same),
                                       cmocka_unit_test(a_gpu_gives_the_logits_of_the_cpu),
                                       cmocka_unit_test(single_tokens_with_small_caches),
                                       cmocka_unit_test(single_tokens_far_into_small_caches),
                                       cmocka_unit_test(guesses_with_small_caches),
                                       cmocka_unit_test(single_tokens_have_whole_vectors)};
    return cmocka_run_group_tests_name("llm shapes", tests, NULL, NULL);
}
