// Whole models in GGUF, written here in every type of it, and models quantised at load: on the CPU against the same
// weights as F32, on a GPU against the CPU.
#include "support/audio_files.h"
#include "support/model_files.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/llm.h>

enum { LAYERS = 2, D_MODEL = 256, D_HEAD = 64, HEADS = 4, KV_HEADS = 2, D_FF = 2304, VOCAB = 152, N_TOKENS = 12 };
enum { MAX_TENSORS = 9 * LAYERS + 3 };

// ---- weights: random elements, and scales that make them numbers of 0.25 at most

/// How a type lies in a file; the number is GGUF's.
typedef struct type {
    wt_dtype dtype;
    uint32_t number;
    int columns, bytes; ///< of a block
} type;

static const type types[] = {
    {WT_DTYPE_F32, 0, 1, 4},       {WT_DTYPE_F16, 1, 1, 2},    {WT_DTYPE_BF16, 30, 1, 2},
    {WT_DTYPE_Q8_0, 8, 32, 34},    {WT_DTYPE_Q4_0, 2, 32, 18}, {WT_DTYPE_Q4_K, 12, 256, 144},
    {WT_DTYPE_Q6_K, 14, 256, 210},
};

static const type *type_of(wt_dtype dtype)
{
    const type *t = types;
    while (t->dtype != dtype) t++;
    return t;
}

static unsigned bits_of(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/// F16 of an ordinary number with 10 bits or fewer.
static void put_half(uint8_t *to, float x)
{
    const unsigned bits = bits_of(x), half = (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10));
    to[0] = (uint8_t)half;
    to[1] = (uint8_t)(half >> 8);
}

/// A scale of 4 bits below `most`, so that no two blocks are alike.
static float a_scale(uint64_t *seed, float most) { return most * (12 + floorf(4 * (noise(seed) + 1) / 2)) / 16; }

static void draw_block(const type *t, uint8_t *to, uint64_t *seed)
{
    const float x = noise(seed) / 4;
    for (int k = 0; k < t->bytes; k++) to[k] = (uint8_t)(int)((noise(seed) + 1) * 127.9f);
    switch (t->dtype) {
    case WT_DTYPE_F32:
        memcpy(to, &x, sizeof x);
        break;
    case WT_DTYPE_BF16:
        to[0] = (uint8_t)(bits_of(x) >> 16);
        to[1] = (uint8_t)(bits_of(x) >> 24);
        break;
    case WT_DTYPE_F16:
        put_half(to, roundf(x * 256) / 256 + 0x1p-9f); // no zero
        break;
    case WT_DTYPE_Q6_K: // scales of 8 bits
        put_half(to + 208, a_scale(seed, 0x1p-14f));
        break;
    case WT_DTYPE_Q4_K: // scale and minimum of 6 bits: the middle is near zero
        put_half(to, a_scale(seed, 0x1p-11f));
        put_half(to + 2, a_scale(seed, 0x1p-8f));
        break;
    default:
        put_half(to, a_scale(seed, t->dtype == WT_DTYPE_Q8_0 ? 0x1p-9f : 0x1p-5f));
    }
}

// ---- files

/// A tensor of the model; columns 0 = a vector of `rows`.
typedef struct made_tensor {
    char name[48];
    int rows, columns;
    const type *type;
    uint8_t *data;
    size_t bytes;
} made_tensor;

typedef struct made_model {
    made_tensor tensors[MAX_TENSORS];
    int n;
} made_model;

static void add(made_model *m, wt_dtype dtype, int rows, int columns, const char *name, uint64_t *seed)
{
    made_tensor *t = &m->tensors[m->n++];
    *t = (made_tensor){.rows = rows, .columns = columns, .type = type_of(columns ? dtype : WT_DTYPE_F32)};
    snprintf(t->name, sizeof t->name, "%s.weight", name);
    const size_t n_blocks = (size_t)rows * (size_t)(columns ? columns : 1) / (size_t)t->type->columns;
    t->bytes = n_blocks * (size_t)t->type->bytes;
    t->data = malloc(t->bytes);
    assert_non_null(t->data);
    for (size_t k = 0; k < n_blocks; k++) draw_block(t->type, t->data + k * (size_t)t->type->bytes, seed);
    for (int k = 0; !columns && k < rows; k++) memcpy(t->data + 4 * k, &(float){1 + noise(seed) / 4}, 4);
}

/// `finer` is the type of v, down and head.
static void make_model(made_model *m, wt_dtype dtype, wt_dtype finer)
{
    static const struct {
        const char *name;
        int rows, columns, finer;
    } of_layer[] = {{"attn_norm", D_MODEL, 0, 0},
                    {"attn_q", HEADS * D_HEAD, D_MODEL, 0},
                    {"attn_k", KV_HEADS * D_HEAD, D_MODEL, 0},
                    {"attn_v", KV_HEADS * D_HEAD, D_MODEL, 1},
                    {"attn_output", D_MODEL, HEADS * D_HEAD, 0},
                    {"ffn_norm", D_MODEL, 0, 0},
                    {"ffn_gate", D_FF, D_MODEL, 0},
                    {"ffn_up", D_FF, D_MODEL, 0},
                    {"ffn_down", D_MODEL, D_FF, 1}};
    uint64_t seed = 7;
    m->n = 0;
    add(m, dtype, VOCAB, D_MODEL, "token_embd", &seed);
    add(m, dtype, D_MODEL, 0, "output_norm", &seed);
    add(m, finer, VOCAB, D_MODEL, "output", &seed);
    for (int l = 0; l < LAYERS; l++)
        for (size_t k = 0; k < sizeof of_layer / sizeof *of_layer; k++) {
            char name[40];
            snprintf(name, sizeof name, "blk.%d.%s", l, of_layer[k].name);
            add(m, of_layer[k].finer ? finer : dtype, of_layer[k].rows, of_layer[k].columns, name, &seed);
        }
}

static void free_model(made_model *m)
{
    for (int k = 0; k < m->n; k++) free(m->tensors[k].data);
}

/// The same numbers as F32.
static void widen_model(made_model *m)
{
    for (int k = 0; k < m->n; k++) {
        made_tensor *t = &m->tensors[k];
        if (!t->columns) continue;
        const wt_tensor narrow = {t->data, t->type->dtype, 2, {t->rows, t->columns}};
        const size_t n = (size_t)t->rows * (size_t)t->columns;
        float *wide = malloc(n * sizeof *wide);
        assert_non_null(wide);
        wt_tensor_to_f32(&narrow, 0, (int64_t)n, wide);
        free(t->data);
        t->data = (uint8_t *)wide;
        t->bytes = n * sizeof *wide;
        t->type = type_of(WT_DTYPE_F32);
    }
}

static void write_model(const made_model *m, const char *path)
{
    static bytes head;
    gguf_begin(&head, 3, (uint64_t)m->n, 10);
    gguf_text_key(&head, "general.architecture", "llama");
    gguf_u32_key(&head, "llama.block_count", LAYERS);
    gguf_u32_key(&head, "llama.embedding_length", D_MODEL);
    gguf_u32_key(&head, "llama.context_length", 512);
    gguf_u32_key(&head, "llama.feed_forward_length", D_FF);
    gguf_u32_key(&head, "llama.attention.head_count", HEADS);
    gguf_u32_key(&head, "llama.attention.head_count_kv", KV_HEADS);
    gguf_u32_key(&head, "llama.attention.key_length", D_HEAD);
    gguf_f32_key(&head, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_u32_key(&head, "llama.vocab_size", VOCAB);
    size_t at = 0;
    for (int k = 0; k < m->n; k++) {
        const made_tensor *t = &m->tensors[k];
        const uint64_t shape[] = {(uint64_t)(t->columns ? t->columns : t->rows), (uint64_t)t->rows};
        gguf_tensor(&head, t->name, t->columns ? 2 : 1, shape, t->type->number, at);
        at += (t->bytes + 31) / 32 * 32;
    }
    put_zeros(&head, (32 - head.n % 32) % 32);
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(head.at, 1, head.n, file);
    for (int k = 0; k < m->n; k++) {
        const made_tensor *t = &m->tensors[k];
        fwrite(t->data, 1, t->bytes, file);
        fwrite((const char[32]){0}, 1, (32 - t->bytes % 32) % 32, file);
    }
    assert_int_equal(fclose(file), 0);
}

// ---- running

/// Logits after each token: one by one, or all in one batch.
static float *logits_of(wt_llm *llm, wt_backend backend, bool one_by_one)
{
    wt_device *device;
    wt_llm_session *session;
    int32_t ids[N_TOKENS];
    float *logits = malloc(sizeof *logits * N_TOKENS * VOCAB);
    assert_non_null(logits);
    for (int k = 0; k < N_TOKENS; k++) ids[k] = k * 37 % VOCAB;
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &device));
    assert_ok(wt_llm_session_create(
        llm, &(wt_llm_session_config){.device = device, .n_positions = 64, .exact_products = true}, &session));
    for (int k = 0; k < N_TOKENS && one_by_one; k++) {
        assert_ok(wt_llm_decode(session, ids[k]));
        memcpy(logits + k * VOCAB, wt_llm_logits(session), sizeof *logits * VOCAB);
    }
    if (!one_by_one) assert_ok(wt_llm_verify(session, ids, N_TOKENS, logits));
    wt_llm_session_destroy(session);
    wt_device_close(device);
    return logits;
}

/// The largest difference as a share of the largest logit; the most probable tokens are the same where `bound` says
/// that they can be told apart.
static double check(const char *name, const float *got, const float *want, double bound)
{
    double peak = 0, error = 0;
    int worst = 0;
    for (int k = 0; k < N_TOKENS * VOCAB; k++) {
        const double e = fabs((double)got[k] - want[k]);
        peak = fmax(peak, fabs(want[k]));
        if (!(e <= error)) {
            error = e;
            worst = k;
        }
    }
    if (!(error <= bound * peak))
        fail_msg("%s: token %d, logit %d is %g, want %g of at most %g", name, worst / VOCAB, worst % VOCAB, got[worst],
                 want[worst], peak);
    for (int t = 0; t < N_TOKENS; t++) {
        const float *g = got + t * VOCAB, *w = want + t * VOCAB;
        int a = 0, b = 0;
        for (int k = 1; k < VOCAB; k++) {
            if (g[k] > g[a]) a = k;
            if (w[k] > w[b]) b = k;
        }
        if (a != b && w[b] - w[a] > 2 * error) fail_msg("%s: after token %d comes %d, want %d", name, t, a, b);
    }
    return error / peak;
}

/// One vector at a time the products of a GPU keep 16 bits of it or more, 2^-17 of each of some thousand terms; in a
/// batch 8 bits, 2^-9, in each of 14 products. Noise in, noise out: no logit stands out of those of random weights.
static void check_on_gpu(const char *name, wt_llm *llm, const float *want)
{
    float *single = logits_of(llm, WT_BACKEND_CUDA, true), *batch = logits_of(llm, WT_BACKEND_CUDA, false);
    const double s = check(name, single, want, 1e-4), b = check(name, batch, want, 4e-2);
    print_message("%-8s GPU: one by one %.1e, in a batch %.1e of the largest logit\n", name, s, b);
    free(single), free(batch);
}

/// `quantised` at the test's path against what it means as F32.
static void check_model(void **state, const char *name, made_model *m, bool on_gpu)
{
    wt_llm *narrow, *wide;
    write_model(m, test_path(state, "narrow.gguf"));
    assert_ok(wt_llm_open(test_path(state, "narrow.gguf"), &narrow));
    float *got = logits_of(narrow, WT_BACKEND_CPU, true);
    if (on_gpu)
        check_on_gpu(name, narrow, got);
    else {
        widen_model(m);
        write_model(m, test_path(state, "wide.gguf"));
        assert_ok(wt_llm_open(test_path(state, "wide.gguf"), &wide));
        float *want = logits_of(wide, WT_BACKEND_CPU, true);
        print_message("%-8s CPU: %.1e of the largest logit\n", name, check(name, got, want, 1e-5));
        free(want);
        wt_llm_close(wide);
    }
    free(got);
    wt_llm_close(narrow);
}

static void check_types(void **state, bool on_gpu)
{
    static made_model m;
    static const struct {
        const char *name;
        wt_dtype dtype, finer;
    } cases[] = {{"F16", WT_DTYPE_F16, WT_DTYPE_F16},     {"BF16", WT_DTYPE_BF16, WT_DTYPE_BF16},
                 {"Q8_0", WT_DTYPE_Q8_0, WT_DTYPE_Q8_0},  {"Q4_0", WT_DTYPE_Q4_0, WT_DTYPE_Q4_0},
                 {"Q4_K", WT_DTYPE_Q4_K, WT_DTYPE_Q4_K},  {"Q6_K", WT_DTYPE_Q6_K, WT_DTYPE_Q6_K},
                 {"Q4_K_M", WT_DTYPE_Q4_K, WT_DTYPE_Q6_K}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        make_model(&m, cases[k].dtype, cases[k].finer);
        check_model(state, cases[k].name, &m, on_gpu);
        free_model(&m);
    }
}

static void gguf_models_mean_their_floats(void **state) { check_types(state, false); }

static void skip_without_gpu(void)
{
    if (wt_device_count()) return;
    print_message("skipped: %s\n", wt_last_error());
    skip();
}

static void gguf_models_run_on_a_gpu(void **state)
{
    skip_without_gpu();
    check_types(state, true);
}

static void models_quantised_at_load_run_on_a_gpu(void **state)
{
    static made_model m;
    static const char *const names[] = {[WT_LLM_FP8] = "fp8", [WT_LLM_INT8] = "int8", [WT_LLM_INT4] = "int4"};
    skip_without_gpu();
    make_model(&m, WT_DTYPE_F32, WT_DTYPE_F32);
    write_model(&m, test_path(state, "wide.gguf"));
    free_model(&m);
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++) {
        wt_llm *llm;
        assert_ok(wt_llm_open(test_path(state, "wide.gguf"), &llm));
        assert_ok(wt_llm_quantize(llm, (wt_llm_quantization)kind, NULL, NULL));
        float *want = logits_of(llm, WT_BACKEND_CPU, true);
        check_on_gpu(names[kind], llm, want);
        free(want);
        wt_llm_close(llm);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(gguf_models_mean_their_floats),
        IN_FOLDER(gguf_models_run_on_a_gpu),
        IN_FOLDER(models_quantised_at_load_run_on_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
