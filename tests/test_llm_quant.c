// Quantised language models. Checkpoints of the hub's kinds are packed here, number by number as their formats say,
// with a plain model of the same weights beside; weights quantised at load are held against what they were.
#include "../models/llm/matrix.h"
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/llm_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/llm.h>

enum { GROUP = 32, N_TOKENS = 40 };

// ---- packing: each fills the tensors of a linear layer and gives the floats that they mean

typedef struct packing {
    const char *name, *config;
    llm_fill pack;
    double bound; ///< of the logits, against the plain model
} packing;

static int below(uint64_t *seed, int n)
{
    const int k = (int)((noise(seed) + 1) * 0.5f * (float)n);
    return k < n ? k : n - 1;
}

static float a_scale(uint64_t *seed) { return ldexpf((float)(8 + below(seed, 8)), -9); } // 4 bits: exact as F16

/// OCP FP8: sign, 4 bits of exponent with bias 7, 3 of mantissa.
static float e4m3(unsigned b)
{
    const int e = b >> 3 & 15, m = b & 7;
    return (b & 0x80 ? -1.0f : 1.0f) * (e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9));
}

/// A scale for every `high` rows of `broad` columns.
static void pack_fp8(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide, int high,
                     int broad, const float *scales)
{
    unsigned char *q = llm_file_add(f, stem, "weight", "F8_E4M3", 1, rows, columns);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < columns; k++) {
            unsigned char *b = &q[r * columns + k];
            *b = (unsigned char)(below(seed, 2) * 128 + below(seed, 80)); // up to 2^3
            wide[r * columns + k] = e4m3(*b) * scales[r / high * (columns / broad) + k / broad];
        }
}

static float *put_fp8_scales(llm_file *f, const char *stem, const char *part, int down, int across, uint64_t *seed)
{
    float *scales = llm_file_add(f, stem, part, "F32", 4, down, across);
    for (int k = 0; k < down * (across ? across : 1); k++) scales[k] = a_scale(seed) / 8;
    return scales;
}

static void pack_fp8_blocks(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    const float *scales = put_fp8_scales(f, stem, "weight_scale_inv", rows / 32, columns / 32, seed);
    pack_fp8(f, stem, rows, columns, seed, wide, 32, 32, scales);
}

/// With a scale of the inputs, as static schemes of compressed-tensors have.
static void pack_fp8_tensor(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    put_fp8_scales(f, stem, "input_scale", 1, 0, seed);
    pack_fp8(f, stem, rows, columns, seed, wide, rows, columns, put_fp8_scales(f, stem, "weight_scale", 1, 0, seed));
}

/// Scales of rows as compressed-tensors stores them, the upper half of a float's bits.
static void pack_fp8_rows(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    uint16_t *stored = llm_file_add(f, stem, "weight_scale", "BF16", 2, rows, 1);
    float *scales = calloc((size_t)rows, sizeof *scales);
    for (int r = 0; r < rows; r++) {
        scales[r] = a_scale(seed) / 8;
        memcpy(&stored[r], (const char *)&scales[r] + 2, 2);
    }
    pack_fp8(f, stem, rows, columns, seed, wide, 1, columns, scales);
    free(scales);
}

static void pack_int8(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    signed char *q = llm_file_add(f, stem, "weight", "I8", 1, rows, columns);
    float *scales = llm_file_add(f, stem, "weight_scale", "F32", 4, rows, 1);
    for (int r = 0; r < rows; r++) {
        scales[r] = a_scale(seed) / 16;
        for (int k = 0; k < columns; k++) {
            q[r * columns + k] = (signed char)(below(seed, 256) - 128);
            wide[r * columns + k] = (float)q[r * columns + k] * scales[r];
        }
    }
}

static uint16_t half_of(float x) // an ordinary number with 10 bits or fewer
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10)));
}

/// Number `k` of a row of words that hold them in order, `bits` each.
static void put_number(uint32_t *words, int64_t k, int bits, int value)
{
    words[k * bits / 32] |= (uint32_t)value << k * bits % 32;
}

typedef struct packed_weights {
    int *q, *zeros, *groups; ///< [rows][columns], [rows][n_groups], [columns]
    float *scales;           ///< [rows][n_groups]
    int n_groups;
} packed_weights;

/// What AWQ and GPTQ have in common: numbers of `bits`, a scale and a zero a group.
static packed_weights draw_weights(int rows, int columns, int bits, int fixed_zero, bool act_order, uint64_t *seed,
                                   float *wide)
{
    packed_weights p = {.n_groups = columns / GROUP};
    p.q = calloc((size_t)(rows * columns), sizeof *p.q);
    p.zeros = calloc((size_t)(rows * p.n_groups), sizeof *p.zeros);
    p.scales = calloc((size_t)(rows * p.n_groups), sizeof *p.scales);
    p.groups = calloc((size_t)columns, sizeof *p.groups);
    for (int k = 0; k < columns; k++) p.groups[k] = act_order ? (k * 7 + k / GROUP) % p.n_groups : k / GROUP;
    for (int k = 0; k < rows * p.n_groups; k++) {
        p.scales[k] = a_scale(seed) / (bits == 8 ? 16 : 1);
        p.zeros[k] = fixed_zero ? fixed_zero : 1 + below(seed, (1 << bits) - 1);
    }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < columns; k++) {
            const int g = r * p.n_groups + p.groups[k];
            p.q[r * columns + k] = below(seed, 1 << bits);
            wide[r * columns + k] = (float)(p.q[r * columns + k] - p.zeros[g]) * p.scales[g];
        }
    return p;
}

static void free_weights(packed_weights *p) { free(p->q), free(p->zeros), free(p->groups), free(p->scales); }

static void put_scales(llm_file *f, const char *stem, const packed_weights *p, int rows)
{
    uint16_t *scales = llm_file_add(f, stem, "scales", "F16", 2, p->n_groups, rows);
    for (int g = 0; g < p->n_groups; g++)
        for (int r = 0; r < rows; r++) scales[g * rows + r] = half_of(p->scales[r * p->n_groups + g]);
}

/// AutoAWQ packs outputs 0, 2, 4, 6, 1, 3, 5, 7 of eight from the low bits up.
static void pack_awq(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    packed_weights p = draw_weights(rows, columns, 4, 0, false, seed, wide);
    uint32_t *q = llm_file_add(f, stem, "qweight", "I32", 4, columns, rows / 8);
    uint32_t *zeros = llm_file_add(f, stem, "qzeros", "I32", 4, p.n_groups, rows / 8);
    for (int r = 0; r < rows; r += 8)
        for (int i = 0; i < 8; i++) {
            const int from = r + order[i];
            for (int k = 0; k < columns; k++) put_number(q + k * rows / 8, r + i, 4, p.q[from * columns + k]);
            for (int g = 0; g < p.n_groups; g++)
                put_number(zeros + g * rows / 8, r + i, 4, p.zeros[from * p.n_groups + g]);
        }
    put_scales(f, stem, &p, rows);
    free_weights(&p);
}

static void pack_gptq(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide, int bits,
                      int less, int fixed_zero, bool act_order)
{
    packed_weights p = draw_weights(rows, columns, bits, fixed_zero, act_order, seed, wide);
    const int a_word = 32 / bits;
    uint32_t *q = llm_file_add(f, stem, "qweight", "I32", 4, columns / a_word, rows);
    uint32_t *zeros = llm_file_add(f, stem, "qzeros", "I32", 4, p.n_groups, rows / a_word);
    int32_t *groups = llm_file_add(f, stem, "g_idx", "I32", 4, columns, 0);
    for (int k = 0; k < columns; k++) {
        groups[k] = p.groups[k];
        for (int r = 0; r < rows; r++) q[k / a_word * rows + r] |= (uint32_t)p.q[r * columns + k] << k % a_word * bits;
    }
    for (int g = 0; g < p.n_groups; g++)
        for (int r = 0; r < rows; r++)
            put_number(zeros + g * (rows / a_word), r, bits, p.zeros[r * p.n_groups + g] - less);
    put_scales(f, stem, &p, rows);
    free_weights(&p);
}

static void pack_gptq_v1(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    pack_gptq(f, stem, rows, columns, seed, wide, 4, 1, 0, false);
}

static void pack_gptq_v2(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    pack_gptq(f, stem, rows, columns, seed, wide, 4, 0, 8, false);
}

static void pack_gptq_order(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    pack_gptq(f, stem, rows, columns, seed, wide, 4, 1, 0, true);
}

static void pack_gptq_8(llm_file *f, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    pack_gptq(f, stem, rows, columns, seed, wide, 8, 1, 0, false);
}

#define CT_FLOAT(strategy)                                                                                             \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"group_0\":{" \
    "\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"" strategy "\",\"symmetric\":true}}}}"

/// Weights of 8 bits times scales of 4 are rounded to 11 bits in F16; of 4 bits they are exact.
static const packing packings[] = {
    {"fp8, blocks", "{\"quant_method\":\"fp8\",\"weight_block_size\":[32,32]}", pack_fp8_blocks, 1e-5},
    {"fp8, tensor", "{\"quant_method\":\"fp8\"}", pack_fp8_tensor, 1e-5},
    {"int8",
     "{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"config_groups\":{\"group_0\":{"
     "\"weights\":"
     "{\"num_bits\":8,\"type\":\"int\",\"strategy\":\"channel\",\"symmetric\":true}}}}",
     pack_int8, 1e-5},
    {"awq", "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"zero_point\":true,\"version\":\"gemm\"}",
     pack_awq, 1e-5},
    {"gptq", "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"sym\":false,\"desc_act\":false}", pack_gptq_v1,
     1e-5},
    {"gptq v2, middle",
     "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"sym\":true,\"checkpoint_format\":\"gptq_v2\"}",
     pack_gptq_v2, 1e-5},
    {"gptq, act order", "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"sym\":false,\"desc_act\":true}",
     pack_gptq_order, 1e-5},
    {"gptq, 8 bits", "{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":32,\"sym\":false}", pack_gptq_8, 2e-3},
    {"fp8, rows", CT_FLOAT("channel"), pack_fp8_rows, 1e-5},
    {"fp8, tensor too", CT_FLOAT("tensor"), pack_fp8_tensor, 1e-5},
};

/// Two models in the test's folder: `quantised` by the packing (NULL = not written) and `plain`, which means the same.
static void write_models(void **state, const packing *p)
{
    static llm_file quantised, plain;
    llm_llama_add(&plain, p ? &quantised : NULL, p ? p->pack : NULL, 11);
    if (p) llm_file_write(&quantised, test_path(state, "quantised.safetensors"));
    llm_file_write(&plain, test_path(state, "plain.safetensors"));
}

// ---- running

typedef struct running {
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    int vocab;
} running;

static void start(running *r, bool exact)
{
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &r->device));
    assert_ok(wt_llm_session_create(
        r->llm, &(wt_llm_session_config){.device = r->device, .n_positions = 320, .exact_products = exact},
        &r->session));
    r->vocab = wt_llm_config(r->llm)->vocab_size;
}

static void stop(running *r)
{
    wt_llm_session_destroy(r->session);
    wt_device_close(r->device);
}

/// Logits after each of the ids.
static float *logits_of(wt_llm *llm, bool exact, const int32_t *ids, int n)
{
    running r = {.llm = llm};
    start(&r, exact);
    float *logits = malloc(sizeof *logits * (size_t)(n * r.vocab));
    assert_non_null(logits);
    assert_ok(wt_llm_verify(r.session, ids, n, logits));
    stop(&r);
    return logits;
}

/// The largest difference as a share of the largest logit.
static double difference(const float *a, const float *b, int n)
{
    double peak = 0, error = 0;
    for (int k = 0; k < n; k++) {
        peak = fmax(peak, fabs(b[k]));
        error = fmax(error, fabs((double)a[k] - b[k]));
        if (!isfinite(a[k])) return INFINITY;
    }
    return error / peak;
}

static const int32_t *some_ids(void)
{
    static int32_t ids[N_TOKENS];
    for (int k = 0; k < N_TOKENS; k++) ids[k] = k * 37 % 128;
    return ids;
}

/// Exact products give what the weights mean; rounded vectors stay near.
static void checkpoints_of_the_hub_mean_their_floats(void **state)
{
    for (size_t k = 0; k < sizeof packings / sizeof *packings; k++) {
        const packing *p = &packings[k];
        write_models(state, p);
        wt_llm *quantised, *plain;
        llm_config_write(test_path(state, "config.json"), NULL);
        assert_ok(wt_llm_open(test_path(state, "plain.safetensors"), &plain));
        llm_config_write(test_path(state, "config.json"), p->config);
        assert_ok(wt_llm_open(test_path(state, "quantised.safetensors"), &quantised));
        float *want = logits_of(plain, true, some_ids(), N_TOKENS),
              *exact = logits_of(quantised, true, some_ids(), N_TOKENS);
        float *rounded = logits_of(quantised, false, some_ids(), N_TOKENS);
        const double e = difference(exact, want, N_TOKENS * 128), d = difference(rounded, want, N_TOKENS * 128);
        print_message("%-16s exact %.1e, rounded %.1e of the largest logit\n", p->name, e, d);
        if (!(e <= p->bound)) fail_msg("%s: logits differ by %.2g of the largest", p->name, e);
        // noise in, noise out: no logit stands out of those of random weights; measured up to 4.3e-2
        if (!(d <= 0.1)) fail_msg("%s, rounded: logits differ by %.2g of the largest", p->name, d);
        free(want), free(exact), free(rounded);
        wt_llm_close(quantised);
        wt_llm_close(plain);
    }
}

/// One token after the other on a GPU, whose products keep 16 bits of a vector or more: 2^-17 of each term. All at once
/// vectors are rounded, but beside fp8: measured 8.1e-3 at most, and 9.0e-6 (H200).
static void check_on_gpu(const packing *p, wt_llm *llm, wt_device *device)
{
    wt_llm_session *session;
    float *want = logits_of(llm, true, some_ids(), N_TOKENS), *got = malloc(sizeof *got * N_TOKENS * 128);
    assert_non_null(got);
    assert_ok(wt_llm_session_create(llm, &(wt_llm_session_config){.device = device, .n_positions = 64}, &session));
    const wt_llm_snapshot empty = wt_llm_session_snapshot(session);
    for (int k = 0; k < N_TOKENS; k++) {
        assert_ok(wt_llm_decode(session, some_ids()[k]));
        memcpy(got + k * 128, wt_llm_logits(session), sizeof *got * 128);
    }
    const double e = difference(got, want, N_TOKENS * 128);
    assert_ok(wt_llm_session_restore(session, empty));
    assert_ok(wt_llm_prefill(session, some_ids(), N_TOKENS));
    const double all = difference(wt_llm_logits(session), want + (N_TOKENS - 1) * 128, 128);
    print_message("%-16s GPU %.1e of the largest logit, as a prompt %.1e\n", p->name, e, all);
    if (!(e <= 1e-4)) fail_msg("%s: logits of the GPU differ by %.2g of the largest", p->name, e);
    if (!(all <= (strstr(p->name, "fp8") ? 1e-4 : 2e-2)))
        fail_msg("%s: logits of a prompt differ by %.2g of the largest", p->name, all);
    wt_llm_session_destroy(session);
    free(want), free(got);
}

static void checkpoints_of_the_hub_run_on_a_gpu(void **state)
{
    wt_device *device;
    if (!wt_device_count()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    for (size_t k = 0; k < sizeof packings / sizeof *packings; k++) {
        wt_llm *llm;
        write_models(state, &packings[k]);
        llm_config_write(test_path(state, "config.json"), packings[k].config);
        assert_ok(wt_llm_open(test_path(state, "quantised.safetensors"), &llm));
        if (k)
            check_on_gpu(&packings[k], llm, device);
        else { // blocks of 32 x 32
            wt_llm_session *session = NULL;
            assert_fails(wt_llm_session_create(llm, &(wt_llm_session_config){.device = device}, &session),
                         WT_ERR_UNSUPPORTED, "llm: layer 0 has scales of blocks of 32 x 32, want 128 x 128");
            assert_null(session);
        }
        wt_llm_close(llm);
    }
    wt_device_close(device);
}

static void note_layer(void *user, int done, int of)
{
    int *n = user;
    assert_int_equal(done, ++*n);
    assert_int_equal(of, 2);
}

/// Layers that are turned to rows are told, one after the other; those read in place are there at once.
static void unpacking_is_told_layer_by_layer(void **state)
{
    for (size_t k = 0; k < sizeof packings / sizeof *packings; k++) {
        const bool turned = strstr(packings[k].config, "awq") || strstr(packings[k].config, "gptq");
        int n = 0;
        wt_llm *llm;
        write_models(state, &packings[k]);
        llm_config_write(test_path(state, "config.json"), packings[k].config);
        const char *path = test_path(state, "quantised.safetensors");
        assert_ok(wt_llm_load(&(wt_llm_load_config){.path = path, .progress = note_layer, .user = &n}, &llm));
        assert_int_equal(n, turned ? 2 : 0);
        wt_llm_close(llm);
    }
}

static void wrong_checkpoints_are_refused(void **state)
{
    static const struct {
        int config, file; ///< of packings
        wt_status status;
        const char *message;
    } cases[] = {
        {2, 0, WT_ERR_FORMAT, "llm: model.layers.0.self_attn.q_proj.weight is [64][64] F8_E4M3, want [64][64] I8"},
        {8, 2, WT_ERR_FORMAT, "llm: model.layers.0.self_attn.q_proj.weight is [64][64] I8, want [64][64] F8_E4M3"},
        {3, 4, WT_ERR_FORMAT, "llm: model.layers.0.self_attn.q_proj.qweight is [8][64] I32, want [64][8] I32"},
        {4, 2, WT_ERR_NOT_FOUND, "llm: there is no tensor model.layers.0.self_attn.q_proj.qweight"},
        {7, 4, WT_ERR_FORMAT, "llm: model.layers.0.self_attn.q_proj.qweight is [8][64] I32, want [16][64] I32"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_llm *llm = NULL;
        write_models(state, &packings[cases[k].file]);
        llm_config_write(test_path(state, "config.json"), packings[cases[k].config].config);
        const wt_status status = wt_llm_open(test_path(state, "quantised.safetensors"), &llm);
        assert_int_equal(status, cases[k].status);
        assert_null(llm);
        if (strncmp(wt_last_error(), cases[k].message, strlen(cases[k].message)))
            fail_msg("%s\nwant %s", wt_last_error(), cases[k].message);
    }
}

// ---- at load

/// Half a step of the type: of int8 the largest of the row by 127, of int4 the group's range by 15, and as much again
/// as the zero is rounded too; of fp8 2^-4 of the weight, or half the smallest step of the block's scale.
static double step_of(const wt__linear *m, const float *w, int64_t r, int64_t k)
{
    const int64_t n = (m->weight.shape[1] + m->scale_columns - 1) / m->scale_columns;
    const double scale = m->scales[r / m->scale_rows * n + k / m->scale_columns];
    if (m->weight.dtype == WT_DTYPE_F8_E4M3) return fmax(fabs(w[k]) / 16, scale * 0x1p-10) * 1.0001;
    return m->nibbles ? scale * 1.0001 : scale * 0.5001;
}

static void check_matrix(const wt__linear *m, const wt__linear *was)
{
    const int64_t columns = was->weight.shape[1];
    float *a = malloc(sizeof *a * (size_t)columns), *b = malloc(sizeof *b * (size_t)columns);
    assert_ptr_not_equal(m->weight.data, was->weight.data);
    for (int64_t r = 0; r < was->weight.shape[0]; r++) {
        wt__row_widen(m, r, a);
        wt__row_widen(was, r, b);
        for (int64_t k = 0; k < columns; k++)
            if (!(fabs((double)a[k] - b[k]) <= step_of(m, b, r, k)))
                fail_msg("[%d][%d] is %g, was %g", (int)r, (int)k, (double)a[k], (double)b[k]);
    }
    free(a), free(b);
}

static void count_progress(void *user, int done, int of)
{
    int *last = user;
    assert_int_equal(done, *last + 1);
    assert_true(done <= of);
    *last = done;
}

/// Each weight is the nearest that the type has; single steps and batches give the same bits.
static void weights_quantised_at_load_are_the_nearest(void **state)
{
    write_models(state, NULL);
    llm_config_write(test_path(state, "config.json"), NULL);
    wt_llm *plain;
    assert_ok(wt_llm_open(test_path(state, "plain.safetensors"), &plain));
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++) {
        wt_llm *llm;
        int last = 0;
        assert_ok(wt_llm_open(test_path(state, "plain.safetensors"), &llm));
        const size_t before = wt_llm_step_bytes(llm);
        assert_ok(wt_llm_quantize(llm, (wt_llm_quantization)kind, count_progress, &last));
        assert_int_equal(last, 3);
        assert_true(wt_llm_step_bytes(llm) <= before / (kind == WT_LLM_INT4 ? 5 : 4)); // the head of int4 is int8
        for (int l = 0; l < 2; l++) {
            check_matrix(&llm->layers[l].q, &plain->layers[l].q);
            check_matrix(&llm->layers[l].down, &plain->layers[l].down);
        }
        check_matrix(&llm->head, &plain->head);
        float *want = logits_of(llm, false, some_ids(), N_TOKENS);
        running r = {.llm = llm};
        start(&r, false);
        for (int k = 0; k < N_TOKENS; k++) {
            assert_ok(wt_llm_decode(r.session, some_ids()[k]));
            assert_memory_equal(wt_llm_logits(r.session), want + k * r.vocab, sizeof *want * (size_t)r.vocab);
        }
        free(want);
        stop(&r);
        wt_llm_close(llm);
    }
    assert_fails(wt_llm_quantize(plain, (wt_llm_quantization)4, NULL, NULL), WT_ERR_BAD_ARG,
                 "llm: quantise to kind 4, want 0..3");
    wt_llm_close(plain);
}

/// Mean of - log p of each next token.
static double surprise(const float *logits, int vocab, const int32_t *ids, int n)
{
    double sum = 0;
    for (int k = 0; k + 1 < n; k++) sum -= wt_llm_logprob(logits + k * vocab, vocab, ids[k + 1]);
    return sum / (n - 1);
}

/// What quantising does to a trained model: on a story that it told, the mean surprise a token.
static void a_trained_model_keeps_its_story(void **state)
{
    (void)state;
    const char *path = shared_data("llm/TinyStories-656K/models/story");
    if (!path) skip();
    // measured: fp8 adds 0.011 nats, int8 takes 0.008, int4 adds 0.46, of which a model of 656,000 weights has none to
    // spare; rounding the vectors changes these by 0.0024 at most
    static const struct {
        const char *name;
        wt_llm_quantization kind;
        double bound;
    } cases[] = {{"fp8", WT_LLM_FP8, 0.02}, {"int8", WT_LLM_INT8, 0.02}, {"int4", WT_LLM_INT4, 0.6}};
    char golden[512];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(golden, sizeof golden, "%s/llm/tinystories/ids.npy", folder ? folder : "tests/golden");
    npy ids;
    assert_ok(npy_read(golden, &ids));
    const int n = (int)ids.count;
    wt_llm *plain;
    assert_ok(wt_llm_open(path, &plain));
    const int vocab = wt_llm_config(plain)->vocab_size;
    float *was = logits_of(plain, true, ids.data, n);
    const double before = surprise(was, vocab, ids.data, n);
    print_message("%-5s %.4f nats a token\n", "f32", before);
    for (int k = 0; k < 3; k++) {
        wt_llm *llm;
        assert_ok(wt_llm_open(path, &llm));
        assert_ok(wt_llm_quantize(llm, cases[k].kind, NULL, NULL));
        float *exact = logits_of(llm, true, ids.data, n), *rounded = logits_of(llm, false, ids.data, n);
        const double e = surprise(exact, vocab, ids.data, n), d = surprise(rounded, vocab, ids.data, n);
        print_message("%-5s %.4f exact, %.4f rounded; logits differ by %.1e, rounding by %.1e of the largest\n",
                      cases[k].name, e, d, difference(exact, was, n * vocab), difference(rounded, exact, n * vocab));
        if (!(fabs(e - before) <= cases[k].bound && fabs(d - e) <= 0.01))
            fail_msg("%s: %.4f exact, %.4f rounded, was %.4f", cases[k].name, e, d, before);
        free(exact), free(rounded);
        wt_llm_close(llm);
    }
    free(was);
    npy_free(&ids);
    wt_llm_close(plain);
}

typedef struct opening {
    const char *path;
    wt_llm *llm;
} opening;

static wt_status open_quantised(void *user)
{
    opening *o = user;
    wt_status status = wt_llm_open(o->path, &o->llm);
    if (!status) status = wt_llm_quantize(o->llm, WT_LLM_INT4, NULL, NULL);
    if (!status) return WT_OK;
    wt_llm_close(o->llm);
    o->llm = NULL;
    return status;
}

static void close_it(void *user) { wt_llm_close(((opening *)user)->llm); }

static void quantising_survives_failing_allocations(void **state)
{
    (void)state;
    opening o = {.path = shared_data("llm/stories260K/stories260K.bin")};
    if (!o.path) skip();
    assert_survives_failing_alloc(open_quantised, close_it, &o);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(checkpoints_of_the_hub_mean_their_floats),
        IN_FOLDER(checkpoints_of_the_hub_run_on_a_gpu),
        IN_FOLDER(unpacking_is_told_layer_by_layer),
        IN_FOLDER(wrong_checkpoints_are_refused),
        IN_FOLDER(weights_quantised_at_load_are_the_nearest),
        cmocka_unit_test(a_trained_model_keeps_its_story),
        cmocka_unit_test(quantising_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
