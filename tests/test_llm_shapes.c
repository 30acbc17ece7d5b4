// Language models on a GPU, of the shapes for which its kernels are made: wide rows, heads of 64 and 128, prompts of
// several blocks, steps of several sequences. The judge is the CPU with the same weights, which are random.
#include "../models/llm/gpu.h"
#include "support/llm_pair.h"
#include "support/testing.h"

#include <math.h>
#include <string.h>

enum { N_SEQUENCES = 3, N_SINGLES = 24, MANY_SINGLES = 300, FEW_SMS = 8, OTHER_SMS = 4 };

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

/// Gate and up are many short rows, which fewer warps share, two and four (kernels/llm/llm_stream.cu).
static const wt_model_config many_rows[] = {
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 264, .d_ff = 16400, .qk_norm = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 1160, .d_ff = 16400},
};

/// Down of quantised weights is shared by two blocks, which finish more than a tile each (kernels/llm/llm_quant.cu).
static const wt_model_config long_rows = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 4608, .d_ff = 8192};

/// On FEW_SMS a pair of blocks finishes 12 tiles of down, a block 64 of gate and up: more than it has places for.
static const wt_model_config many_tiles = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 1536, .d_ff = 8192};

/// Gate and up are 1920 tiles: on 124 processors 15 for each of 128 blocks.
static const wt_model_config even_rows = {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 288, .d_ff = 15360};

/// Experts of one token (kernels/llm/llm_experts.cu): more shares of columns than warps, the last of each short; two
/// passes over gate and up; rows that are no whole tiles, of fewer shares than warps. The router in two blocks, in one
/// that takes two turns of columns, and with rows to spare.
static const wt_model_config experts[] = {
    {.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 256, .d_ff_expert = 1352, .n_experts = 12,
     .n_experts_used = 4, .norm_expert_weights = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 4352, .d_ff_expert = 360, .n_experts = 8,
     .n_experts_used = 2, .norm_expert_weights = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 104, .d_ff_expert = 48, .n_experts = 5,
     .n_experts_used = 5},
};

/// Quantised (kernels/llm/llm_quant.cu): down shared by two blocks, with more tiles than they have places for; all in
/// boxes, with gaps between the experts' scales; lanes that copy; boxes of scales in rows that end with zeros.
static const wt_model_config quantised_experts[] = {
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 1024, .d_ff_expert = 8192, .n_experts = 3,
     .n_experts_used = 2, .norm_expert_weights = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 512, .d_ff_expert = 2048, .n_experts = 6,
     .n_experts_used = 3, .norm_expert_weights = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 256, .d_ff_expert = 1408, .n_experts = 12,
     .n_experts_used = 4},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 1024, .d_ff_expert = 768, .n_experts = 12,
     .n_experts_used = 6, .norm_expert_weights = true},
};

/// More than llm_stream and llm_quant choose among in registers (WT_LLM_ROUTED): llm_choose does, with seven and 32 a
/// lane. Of a prompt whose pairs are more than four an expert the tokens stand together by expert, else they do not.
static const wt_model_config many_experts[] = {
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 128, .d_ff_expert = 64, .n_experts = 200,
     .n_experts_used = 8, .norm_expert_weights = true},
    {.n_heads = 4, .n_kv_heads = 2, .d_head = 64, .d_model = 64, .d_ff_expert = 32, .n_experts = 1000,
     .n_experts_used = 10},
};

// ---- the same on both

static void feed(llm_pair *p, int n, int first, const char *what)
{
    int32_t ids[N_POSITIONS];
    for (int k = 0; k < n; k++) ids[k] = (first + k * 37) % VOCAB;
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_prefill(p->session[b], ids, n));
    llm_pair_compare(p, wt_llm_logits(p->session[1]), wt_llm_logits(p->session[0]), what);
}

static void step(llm_pair *p, int n, int first)
{
    wt_llm_turn turns[N_SEQUENCES] = {0};
    int32_t best[N_SEQUENCES];
    float logits[2][N_SEQUENCES * VOCAB];
    for (int k = 0; k < n; k++) turns[k] = (wt_llm_turn){.sequence = k, .id = first + k};
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_step(p->session[b], turns, n, best, logits[b]));
    for (int k = 0; k < n; k++) llm_pair_compare(p, logits[1] + k * VOCAB, logits[0] + k * VOCAB, "a step");
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

static wt_partition *partition_of(llm_pair *p, where on)
{
    if (on == ALL) return NULL;
    const wt_layout_config config = layout_with(on);
    assert_ok(wt_layout_create(p->device[1], &config, &p->layout));
    return wt_layout_at(p->layout, 0);
}

static void open_both(llm_pair *p, const llm_model *m, wt_dtype kv_type, where on)
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

/// Prompts, tokens and steps from empty sequences on.
static void feed_all(llm_pair *p)
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
    llm_model m;
    llm_pair p = {.bound = bound};
    llm_model_make(&m, shape, dtype);
    open_both(&p, &m, dtype, on);
    feed_all(&p);
    print_message("heads of %3d, %-4s %.1e of the largest logit\n", shape->d_head, wt_dtype_name(dtype), p.worst);
    llm_pair_close(&p, &m);
}

/// Products of one vector do not round it to the weights' type.
static void check_singles(const wt_model_config *shape, wt_dtype dtype, wt_llm_quantization kind, where on)
{
    llm_model m;
    llm_pair p = {.bound = 1e-5}; // as against transformers in float32
    llm_model_make(&m, shape, dtype);
    assert_ok(wt_llm_quantize(&m.llm, kind, NULL, NULL));
    open_both(&p, &m, WT_DTYPE_F32, on);
    const bool is_small = shape->d_ff < 4096 && shape->d_model < 4096;
    const bool many = is_small && kind == WT_LLM_AS_STORED; // a block of attention takes turns then
    for (int k = 0; k < (many ? MANY_SINGLES : N_SINGLES); k++) feed(&p, 1, k * 11, "a token");
    print_message("one by one, rows of %4d, %-5s kind %d: %.1e of the largest logit\n", shape->d_ff,
                  wt_dtype_name(dtype), kind, p.worst);
    llm_pair_close(&p, &m);
}

static void single_tokens_have_whole_vectors(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check_singles(&shapes[k], types[t].dtype, WT_LLM_AS_STORED, ALL);
    for (size_t k = 0; k < sizeof many_rows / sizeof *many_rows; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check_singles(&many_rows[k], types[t].dtype, WT_LLM_AS_STORED, ALL);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) // the first in boxes alone
        for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
            check_singles(&shapes[k], WT_DTYPE_BF16, (wt_llm_quantization)kind, ALL);
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
        check_singles(&long_rows, WT_DTYPE_BF16, (wt_llm_quantization)kind, ALL);
}

static void single_tokens_have_whole_vectors_for_experts(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof experts / sizeof *experts; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            check_singles(&experts[k], types[t].dtype, WT_LLM_AS_STORED, ALL);
    check_singles(&experts[0], WT_DTYPE_BF16, WT_LLM_AS_STORED, FEW);
}

/// Nothing is rounded to 16 bits, neither of single tokens nor of prompts.
static void more_experts_than_fit_registers(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof many_experts / sizeof *many_experts; k++) {
        assert_true(many_experts[k].n_experts > WT_LLM_ROUTED);
        check(&many_experts[k], WT_DTYPE_F32, 1e-5, ALL);
        check_singles(&many_experts[k], WT_DTYPE_BF16, WT_LLM_AS_STORED, ALL);
    }
    check_singles(&many_experts[0], WT_DTYPE_BF16, WT_LLM_INT4, ALL);
}

static void also_for_quantised_experts(void **state)
{
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof quantised_experts / sizeof *quantised_experts; k++)
        for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
            check_singles(&quantised_experts[k], WT_DTYPE_BF16, (wt_llm_quantization)kind, k ? ALL : FEW);
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
    llm_model m;
    llm_pair p = {.bound = types[1].bound};
    (void)state;
    skip_without_gpu();
    llm_model_make(&m, &shapes[0], WT_DTYPE_BF16);
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
    llm_pair_close(&p, &m);
}

// ---- tokens one by one and together

/// With exact_guesses: up to 8 of them give the same bits as each alone, in larger batches 8 at a time; runs too, whose
/// steps are recorded.
static void check_alike(const wt_model_config *shape, wt_dtype dtype, wt_llm_quantization kind, int n_rounds)
{
    enum { N = 13, BEFORE = 130 };
    static float all[N][VOCAB];
    llm_model m;
    wt_device *device;
    wt_llm_resident *resident;
    wt_llm_session *s;
    int32_t ids[BEFORE];
    llm_model_make(&m, shape, dtype);
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
    llm_model_free(&m);
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

/// How far verified tokens are from single ones, as a part of the logits' range: what the most probable one leads the
/// second by, and any other.
typedef struct difference {
    double second, any;
    float doubt; ///< of the session
} difference;

static void measure(const float *want, const float *got, difference *d)
{
    int best = 0, second = -1;
    float lowest = want[0];
    for (int j = 1; j < VOCAB; j++) {
        if (want[j] > want[best]) best = j;
        lowest = fminf(lowest, want[j]);
    }
    for (int j = 0; j < VOCAB; j++)
        if (j != best && (second < 0 || want[j] > want[second])) second = j;
    for (int j = 0; j < VOCAB; j++) {
        const double more = fabs(((double)got[best] - got[j]) - ((double)want[best] - want[j])) / (want[best] - lowest);
        d->any = fmax(d->any, more);
        if (j == second) d->second = fmax(d->second, more);
    }
}

/// Without exact_guesses, after tokens that were verified 8 at a time from the prompt on.
static difference difference_of(const wt_model_config *shape, wt_dtype dtype, wt_llm_quantization kind)
{
    enum { N = 64, TOGETHER = 8, BEFORE = 130 };
    static float single[N][VOCAB], verified[TOGETHER][VOCAB];
    difference d = {0};
    llm_model m;
    wt_device *device;
    wt_llm_resident *resident;
    wt_llm_session *s;
    int32_t ids[BEFORE + N];
    llm_model_make(&m, shape, dtype);
    for (int k = 0; k < BEFORE + N; k++) ids[k] = k * 37 % VOCAB;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    assert_ok(
        wt_llm_resident_create(&m.llm, &(wt_llm_resident_config){.device = device, .quantization = kind}, &resident));
    assert_ok(wt_llm_session_create(
        &m.llm,
        &(wt_llm_session_config){
            .device = device, .resident = resident, .n_positions = N_POSITIONS, .kv_type = WT_DTYPE_F16},
        &s));
    assert_ok(wt_llm_prefill(s, ids, BEFORE));
    const wt_llm_snapshot at = wt_llm_session_snapshot(s);
    for (int k = 0; k < N; k++) {
        assert_ok(wt_llm_decode(s, ids[BEFORE + k]));
        memcpy(single[k], wt_llm_logits(s), sizeof single[k]);
    }
    assert_ok(wt_llm_session_restore(s, at));
    for (int k = 0; k < N; k++) {
        if (k % TOGETHER == 0) assert_ok(wt_llm_verify(s, ids + BEFORE + k, TOGETHER, verified[0]));
        measure(single[k], verified[k % TOGETHER], &d);
    }
    d.doubt = wt__llm_doubt(s);
    wt_llm_session_destroy(s);
    wt_llm_resident_destroy(resident);
    wt_device_close(device);
    llm_model_free(&m);
    return d;
}

/// What is in doubt (wt__llm_doubt) is more than twice as far as a second token comes.
static void verified_tokens_are_near_single_ones(void **state)
{
    static const wt_dtype dtypes[] = {WT_DTYPE_F32, WT_DTYPE_BF16};
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int t = 0; t < 2; t++)
            for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++) {
                const difference d = difference_of(&shapes[k], dtypes[t], (wt_llm_quantization)kind);
                print_message("heads of %d, %s, quantised as %d: %.2g, of any token %.2g, in doubt %.2g\n",
                              shapes[k].d_head, wt_dtype_name(dtypes[t]), kind, d.second, d.any, (double)d.doubt);
                assert_true(2 * d.second < (double)d.doubt);
            }
}

/// Tokens that follow a prompt, the most probable one after each and what it leads by: verified `together` at a time.
static void lead_all(wt_llm_session *s, const int32_t *ids, int n, int together, int32_t *next, float *leads)
{
    const wt_llm_snapshot at = wt_llm_session_snapshot(s);
    for (int k = 0; k < n; k += together)
        assert_ok(wt_llm_verify_greedy(s, ids + k, together, next + k, leads + k));
    assert_ok(wt_llm_session_restore(s, at));
}

/// Verified tokens take the experts that single ones take, and then the same token comes next, unless a router or the
/// logits are in doubt; what logits lead by is never less than what is told.
static void routers_that_nearly_tie_are_in_doubt(void **state)
{
    enum { N = 96, TOGETHER = 8, BEFORE = 24 };
    static float logits[TOGETHER][VOCAB], leads[2][N];
    int32_t ids[BEFORE + N], next[2][N];
    int n_alike = 0, n_routers = 0;
    (void)state;
    skip_without_gpu();
    for (int k = 0; k < BEFORE + N; k++) ids[k] = k * 37 % VOCAB;
    for (size_t e = 0; e < sizeof experts / sizeof *experts; e++) {
        llm_model m;
        wt_device *device;
        wt_llm_session *s;
        llm_model_make(&m, &experts[e], WT_DTYPE_BF16);
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
        assert_ok(wt_llm_session_create(
            &m.llm,
            &(wt_llm_session_config){.device = device, .n_positions = N_POSITIONS, .kv_type = WT_DTYPE_F16}, &s));
        assert_ok(wt_llm_prefill(s, ids, BEFORE));
        lead_all(s, ids + BEFORE, N, 1, next[0], leads[0]);
        lead_all(s, ids + BEFORE, N, TOGETHER, next[1], leads[1]);
        int k = 0;
        for (; k < N && leads[1][k] >= wt__llm_doubt(s); k++) {
            assert_int_equal(next[0][k], next[1][k]);
            assert_true(fabsf(leads[0][k] - leads[1][k]) < wt__llm_doubt(s) / 2);
        }
        n_alike += k;
        assert_ok(wt_llm_verify(s, ids + BEFORE, TOGETHER, logits[0]));
        for (k = 0; k < TOGETHER; k++) {
            float lead;
            assert_int_equal(wt__llm_most_probable(logits[k], VOCAB, &lead), next[1][k]);
            assert_true(leads[1][k] <= lead + 1e-6f);
            n_routers += leads[1][k] < lead - 1e-3f;
        }
        print_message("%d experts: %d of %d tokens, then one in doubt\n", experts[e].n_experts, n_alike, N);
        wt_llm_session_destroy(s);
        wt_device_close(device);
        llm_model_free(&m);
    }
    assert_true(n_alike > 0);
    assert_true(n_routers > 0);
}

/// Of the third of three, attention's parts are added by the last block instead of all.
static void three_sessions_give_the_same(void **state)
{
    enum { N = 40 };
    static float want[N][VOCAB];
    (void)state;
    skip_without_gpu();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        llm_model m;
        wt_device *device;
        wt_llm_session *s[3];
        llm_model_make(&m, &shapes[k], WT_DTYPE_BF16);
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
        llm_model_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_guesses_have_the_bits_of_single_steps),
                                       cmocka_unit_test(verified_tokens_are_near_single_ones),
                                       cmocka_unit_test(routers_that_nearly_tie_are_in_doubt),
                                       cmocka_unit_test(a_fine_cut_gives_the_logits_of_the_cpu),
                                       cmocka_unit_test(a_resize_may_cut_finer),
                                       cmocka_unit_test(there_may_be_more_blocks_than_processors),
                                       cmocka_unit_test(few_processors_finish_many_tiles),
                                       cmocka_unit_test(three_sessions_give_the_same),
                                       cmocka_unit_test(a_gpu_gives_the_logits_of_the_cpu),
                                       cmocka_unit_test(single_tokens_have_whole_vectors),
                                       cmocka_unit_test(single_tokens_have_whole_vectors_for_experts),
                                       cmocka_unit_test(more_experts_than_fit_registers),
                                       cmocka_unit_test(also_for_quantised_experts)};
    return cmocka_run_group_tests_name("llm shapes", tests, NULL, NULL);
}
