// Weights on their way to a GPU: copied, and quantised there to the bits that the host makes.
#include "../models/llm/gpu.h"
#include "../models/llm/quant.h"
#include "support/device_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/array.h>

static uint64_t seed = 1;

/// Of any size between 2^-8 and 1, now and then 0.
static float draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const int m = (int)(seed >> 33 & 0xffff) - 0x8000, e = (int)(seed >> 60) % 8;
    return seed >> 55 & 31 ? ldexpf((float)m, -15 - e) : 0;
}

/// Weights of a type, of this size each at most; caller frees .weight.data.
static wt__linear matrix(wt_dtype type, int64_t rows, int64_t columns, float size)
{
    const int64_t n = rows * columns;
    const wt__linear m = {.weight = {malloc(wt_dtype_bytes(type, n)), type, 2, {rows, columns}}};
    void *data = (void *)(uintptr_t)m.weight.data;
    for (int64_t k = 0; k < n; k++) {
        const float x = draw() * size;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (type == WT_DTYPE_F64)
            ((double *)data)[k] = (double)x;
        else if (type == WT_DTYPE_F32)
            ((float *)data)[k] = x;
        else
            ((uint16_t *)data)[k] = (uint16_t)(type == WT_DTYPE_F16 ? wt_weight_half(x) : bits >> 16);
    }
    return m;
}

enum { N_MATRICES = 7 };

/// One layer, its head the embedding. The first matrix goes in several strips, the last but one has scales that F16 has
/// not, the columns of v have no groups.
typedef struct made {
    wt_llm llm;
    wt__layer layer;
} made;

static wt__linear *matrix_of(wt__layer *w, int k)
{
    wt__linear *all[N_MATRICES] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
    return all[k];
}

static void make(made *m, wt_dtype type)
{
    static const int64_t shapes[N_MATRICES][2] = {{2100, 1024}, {130, 96}, {5, 200}, {256, 64},
                                                  {64, 32},     {40, 128}, {1, 384}};
    *m = (made){.llm.config = {.n_layers = 1, .d_model = 64, .d_head = 32}};
    for (int k = 0; k < N_MATRICES; k++)
        *matrix_of(&m->layer, k) = matrix(type, shapes[k][0], shapes[k][1], k == 5 ? 1e-6f : 1);
    m->layer.router = matrix(type == WT_DTYPE_F64 ? WT_DTYPE_F32 : type, 3, 64, 1); // which is not quantised
    m->llm.head = matrix(type, 300, 64, 1);
    m->llm.embedding = m->llm.head.weight;
    m->llm.layers = &m->layer;
}

static void unmake(made *m)
{
    for (int k = 0; k < N_MATRICES; k++) free((void *)(uintptr_t)matrix_of(&m->layer, k)->weight.data);
    free((void *)(uintptr_t)m->layer.router.weight.data);
    free((void *)(uintptr_t)m->llm.embedding.data);
}

// ---- what is there

typedef struct rig {
    wt_device *device;
    wt_stream *stream;
    wt_arrays *arrays;
} rig;

static void assert_there(const rig *r, const char *what, int k, const void *there, const void *want, size_t bytes)
{
    const int64_t n = (int64_t)bytes;
    unsigned char *got = malloc(bytes);
    wt_buffer *buffer;
    assert_ok(wt_buffer_create(r->device, WT_MEMORY_DEVICE, bytes, &buffer));
    const wt_array from = wt_array_of((uintptr_t)there, WT_DTYPE_U8, 1, &n);
    const wt_array to = wt_array_of(wt_buffer_address(buffer), WT_DTYPE_U8, 1, &n);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &from, &to));
    assert_ok(wt_stream_download(r->stream, got, buffer, 0, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    for (size_t j = 0; j < bytes; j++)
        if (got[j] != ((const unsigned char *)want)[j])
            fail_msg("%s of matrix %d: byte %zu of %zu is %#x, want %#x", what, k, j, bytes, got[j],
                     ((const unsigned char *)want)[j]);
    wt_buffer_destroy(buffer);
    free(got);
}

/// `there` is on the GPU, `want` on the host. `words`: scales and zeros lie in words of both, too, where F16 has them.
static void assert_same(const rig *r, int k, const wt__linear *there, const wt__linear *want, bool words)
{
    const size_t n = (size_t)wt_tensor_elements(&want->weight);
    assert_int_equal(there->weight.dtype, want->weight.dtype);
    assert_int_equal(there->scale_rows, want->scale_rows);
    assert_int_equal(there->scale_columns, want->scale_columns);
    assert_int_equal(there->nibbles, want->nibbles);
    assert_there(r, "weights", k, there->weight.data, want->weight.data,
                 want->nibbles ? n / 2 : wt_tensor_bytes(&want->weight));
    assert_int_equal(!there->scales, !want->scales);
    if (!want->scales) return;
    const int64_t n_scales = wt__quant_scales(want, want->weight.shape[0]);
    assert_there(r, "scales", k, there->scales, want->scales, sizeof(float) * (size_t)n_scales);
    const size_t bytes = 4 * (size_t)wt__quant_scales(want, want->weight.shape[0]) /
                         (size_t)wt__quant_scales(want, 1) * (size_t)wt__quant_words(want);
    unsigned char *padded = malloc(bytes);
    if (there->padded) {
        wt__llm_padded_scales(want, 0, bytes, padded);
        assert_there(r, "padded scales", k, there->padded, padded, bytes);
    }
    free(padded);
    const bool is_blocks = want->weight.dtype == WT_DTYPE_F8_E4M3 && want->scale_columns < want->weight.shape[1];
    assert_int_equal(!there->padded, !is_blocks || wt__quant_scales(want, 1) == wt__quant_words(want));
    if (!want->nibbles) return;
    assert_there(r, "zeros", k, there->zeros, want->zeros, (size_t)n_scales);
    assert_int_equal(!there->both, !words || !wt__llm_are_halves(want->scales, n_scales));
    if (!there->both) return;
    unsigned char *both = malloc(bytes);
    wt__llm_scales_and_zeros(want, 0, bytes, both);
    assert_there(r, "scales and zeros", k, there->both, both, bytes);
    free(both);
}

static void check(const rig *r, wt_dtype type, wt_llm_quantization kind)
{
    static made m;
    make(&m, type);
    wt_llm_resident *resident;
    assert_ok(wt_llm_resident_create(&m.llm, &(wt_llm_resident_config){.device = r->device, .quantization = kind},
                                     &resident));
    wt_llm host = m.llm;
    wt__layer layer = m.layer;
    host.layers = &layer;
    assert_ok(wt_llm_quantize(&host, kind, NULL, NULL));
    wt_llm *there = &resident->llm;
    assert_int_equal(wt_llm_step_bytes(wt_llm_resident_model(resident)), wt_llm_step_bytes(&host));
    // gate does without words because up, whose scales F16 has not, does: one launch reads both
    for (int k = 0; k < N_MATRICES; k++) assert_same(r, k, matrix_of(there->layers, k), matrix_of(&layer, k), k != 4);
    assert_same(r, N_MATRICES, &there->head, &host.head, true);
    assert_same(r, N_MATRICES + 1, &there->layers->router, &layer.router, true);
    if (kind == WT_LLM_INT4) assert_null(there->layers->up.both);
    if (kind == WT_LLM_INT4) assert_non_null(there->layers->q.both);
    assert_true((there->head.weight.data == there->embedding.data) == (kind == WT_LLM_AS_STORED));
    wt_llm_resident_destroy(resident);
    wt__llm_give_back(&host);
    unmake(&m);
}

static void weights_arrive_as_the_host_has_them(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_BF16, WT_DTYPE_F16, WT_DTYPE_F32, WT_DTYPE_F64};
    rig r = {.device = device_of(state)};
    assert_ok(wt_stream_create(r.device, NULL, &r.stream));
    assert_ok(wt_arrays_create(&(wt_arrays_config){.device = r.device}, &r.arrays));
    for (int t = 0; t < 4; t++)
        for (int kind = types[t] == WT_DTYPE_F64; kind <= WT_LLM_INT4; kind++) // F64 itself becomes F32
            check(&r, types[t], (wt_llm_quantization)kind);
    wt_arrays_destroy(r.arrays);
    wt_stream_destroy(r.stream);
}

/// One launch reads all experts' gates and ups by what the first has, and one their downs. Of the last expert's gate
/// the scales are no F16.
static void experts_have_words_of_all_or_none(void **state)
{
    enum { N = 3 };
    static made m;
    wt__expert experts[N];
    make(&m, WT_DTYPE_BF16);
    m.llm.config.n_experts = N;
    m.layer.experts = experts;
    for (int e = 0; e < N; e++)
        experts[e] = (wt__expert){.gate = matrix(WT_DTYPE_BF16, 32, 64, e == N - 1 ? 1e-6f : 1),
                                  .up = matrix(WT_DTYPE_BF16, 32, 64, 1),
                                  .down = matrix(WT_DTYPE_BF16, 64, 32, 1)};
    wt_llm_resident *resident;
    assert_ok(wt_llm_resident_create(
        &m.llm, &(wt_llm_resident_config){.device = device_of(state), .quantization = WT_LLM_INT4}, &resident));
    for (int e = 0; e < N; e++) {
        const wt__expert *there = &resident->llm.layers->experts[e];
        assert_null(there->gate.both);
        assert_null(there->up.both);
        assert_non_null(there->down.both);
        free((void *)(uintptr_t)experts[e].gate.weight.data);
        free((void *)(uintptr_t)experts[e].up.weight.data);
        free((void *)(uintptr_t)experts[e].down.weight.data);
    }
    wt_llm_resident_destroy(resident);
    unmake(&m);
}

/// As boxes want it (kernels/llm/llm_quant.cu): 384 bytes a row of down and 32 of its words in int4, 768 and 32 in fp8,
/// whose scales and zeros lie between, if anything does.
static void experts_lie_whole_rows_apart(void **state)
{
    enum { N = 3 };
    static made m;
    wt__expert experts[N];
    make(&m, WT_DTYPE_BF16);
    m.llm.config.n_experts = N;
    m.layer.experts = experts;
    for (int e = 0; e < N; e++)
        experts[e] = (wt__expert){.gate = matrix(WT_DTYPE_BF16, 768, 256, 1),
                                  .up = matrix(WT_DTYPE_BF16, 768, 256, 1),
                                  .down = matrix(WT_DTYPE_BF16, 256, 768, 1)};
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++) {
        wt_llm_resident *resident;
        assert_ok(wt_llm_resident_create(
            &m.llm,
            &(wt_llm_resident_config){.device = device_of(state), .quantization = (wt_llm_quantization)kind},
            &resident));
        const wt__expert *there = resident->llm.layers->experts;
        for (int e = 1; e < N; e++) {
            const wt__linear *one = &there[e - 1].down, *next = &there[e].down;
            const uintptr_t row = kind == WT_LLM_INT4 ? 384 : 768;
            assert_int_equal(((uintptr_t)next->weight.data - (uintptr_t)one->weight.data) % row, 0);
            if (kind == WT_LLM_INT8) continue; // its scales are no groups'
            assert_int_equal(((uintptr_t)wt__llm_scales_read(next) - (uintptr_t)wt__llm_scales_read(one)) % 32, 0);
        }
        wt_llm_resident_destroy(resident);
    }
    for (int e = 0; e < N; e++) {
        free((void *)(uintptr_t)experts[e].gate.weight.data);
        free((void *)(uintptr_t)experts[e].up.weight.data);
        free((void *)(uintptr_t)experts[e].down.weight.data);
    }
    unmake(&m);
}

/// From the middle of a row on, too.
static void rows_of_words_end_with_zeros(void **state)
{
    (void)state;
    static const float scales[] = {1, 2, 3, 0.5f, 0.25f, 4};
    static const uint8_t zeros[] = {1, 2, 3, 4, 5, 6};
    static const uint32_t words[] = {0x13c00, 0x24000, 0x34200, 0, 0x43800, 0x53400, 0x64400, 0};
    const wt__linear m = {.weight = {NULL, WT_DTYPE_U8, 2, {2, 384}}, .scales = scales, .zeros = zeros,
                          .scale_rows = 1, .scale_columns = 128, .nibbles = true};
    uint32_t got[8];
    for (size_t begin = 0; begin < 8; begin++) {
        wt__llm_scales_and_zeros(&m, 4 * begin, sizeof got, (unsigned char *)got);
        assert_memory_equal(got, words + begin, sizeof got - 4 * begin);
        wt__llm_padded_scales(&m, 4 * begin, sizeof got, (unsigned char *)got);
        for (size_t k = begin; k < 8; k++) {
            const float want = k % 4 < 3 ? scales[k / 4 * 3 + k % 4] : 0;
            assert_memory_equal(got + k - begin, &want, sizeof want);
        }
    }
}

static void unknown_kinds_are_refused(void **state)
{
    static made m;
    wt_llm_resident *resident = NULL;
    make(&m, WT_DTYPE_F32);
    assert_fails(wt_llm_resident_create(
                     &m.llm, &(wt_llm_resident_config){.device = device_of(state), .quantization = 4}, &resident),
                 WT_ERR_BAD_ARG, "llm: quantise to kind 4, want 0..3");
    assert_null(resident);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_arrive_as_the_host_has_them),
        cmocka_unit_test(experts_have_words_of_all_or_none),
        cmocka_unit_test(experts_lie_whole_rows_apart),
        cmocka_unit_test(rows_of_words_end_with_zeros),
        cmocka_unit_test(unknown_kinds_are_refused),
    };
    return cmocka_run_group_tests_name("cuda", tests, open_cuda, close_device);
}
