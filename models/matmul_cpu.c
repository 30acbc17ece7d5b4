// Products on the CPU: an item is four rows of W with up to 16 rows of x. A stretch of both is widened to floats once
// and multiplied 16 columns at a time; what is summed for an element of y, and in which order, depends on nothing else.
#include "matmul_internal.h"

#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16, ROWS = 4, VECTORS = 16, STRETCH = 256 };

static const wt_dtype dtypes[] = {
    [WT_MM_F32] = WT_DTYPE_F32,      [WT_MM_F16] = WT_DTYPE_F16,      [WT_MM_BF16] = WT_DTYPE_BF16,
    [WT_MM_E4M3] = WT_DTYPE_F8_E4M3, [WT_MM_E5M2] = WT_DTYPE_F8_E5M2, [WT_MM_I8] = WT_DTYPE_I8,
    [WT_MM_I32] = WT_DTYPE_I32,      [WT_MM_U4] = WT_DTYPE_U8,        [WT_MM_E2M1] = WT_DTYPE_F4,
    [WT_MM_Q8_0] = WT_DTYPE_Q8_0,    [WT_MM_Q4_0] = WT_DTYPE_Q4_0,    [WT_MM_Q4_K] = WT_DTYPE_Q4_K,
    [WT_MM_Q6_K] = WT_DTYPE_Q6_K,
};

/// Elements first .. first + n - 1 at `data`.
static void widen(int type, const void *data, int64_t first, int64_t n, float *out)
{
    const wt_tensor tensor = {.data = data, .dtype = dtypes[type]};
    wt_tensor_to_f32(&tensor, first, n, out);
}

static float one(int type, const void *data, int64_t k)
{
    float v;
    widen(type, data, k, 1, &v);
    return v;
}

// ---- weights

static float scale_at(const wt_mm_args *a, const wt_mm_part *p, int stack, int64_t r, int k)
{
    if (!p->scales) return 1;
    const float s = one(a->scale_type, p->scales + stack * p->scales_next,
                        r / a->scale_rows * a->scale_stride + k / a->scale_columns);
    return p->tensor_scale ? s * *p->tensor_scale : s;
}

static void unpack(const wt_mm_args *a, const wt_mm_part *p, int stack, int64_t r, int begin, int n, float *out)
{
    static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    const unsigned char *row = p->w + stack * p->w_next + r * a->row_bytes;
    const unsigned char *zeros = p->zeros ? p->zeros + stack * p->zeros_next + r * a->scale_stride : NULL;
    for (int k = begin; k < begin + n; k++) {
        const int nibble = row[k / 2] >> (k & 1 ? 4 : 0) & 15;
        *out++ = a->w_type == WT_MM_E2M1 ? e2m1[nibble] : (float)(nibble - (zeros ? zeros[k / a->scale_columns] : 8));
    }
}

/// Weights begin .. begin + n - 1 of a row, with their scales.
static void weights_of(const wt_mm_args *a, const wt_mm_part *p, int stack, int64_t r, int begin, int n, float *out)
{
    if (a->w_type == WT_MM_U4 || a->w_type == WT_MM_E2M1)
        unpack(a, p, stack, r, begin, n, out);
    else
        widen(a->w_type, p->w + stack * p->w_next + r * a->row_bytes, begin, n, out);
    for (int k = 0, end; p->scales && k < n; k = end) {
        const int64_t last = ((int64_t)(begin + k) / a->scale_columns + 1) * a->scale_columns - begin;
        const float s = scale_at(a, p, stack, r, begin + k);
        end = last < n ? (int)last : n;
        for (int i = k; i < end; i++) out[i] *= s;
    }
}

// ---- sums

/// sums[i][r] += w[r] . x[i] over `n` columns, a whole number of LANES: all rows at once, so that there are as many
/// sums as an addition takes cycles.
#define ADD_PRODUCTS(vector)                                                                                           \
    {                                                                                                                  \
        enum { PARTS = LANES * sizeof(float) / sizeof(vector), FLOATS = LANES / PARTS };                               \
        vector sum[ROWS][PARTS], u, v;                                                                                 \
        memcpy(sum, sums[i], sizeof sum);                                                                              \
        for (int k = 0; k < n; k += LANES)                                                                             \
            for (int part = 0; part < PARTS; part++) {                                                                 \
                memcpy(&v, x[i] + k + part * FLOATS, sizeof v);                                                        \
                for (int r = 0; r < ROWS; r++) {                                                                       \
                    memcpy(&u, w[r] + k + part * FLOATS, sizeof u);                                                    \
                    sum[r][part] += u * v;                                                                             \
                }                                                                                                      \
            }                                                                                                          \
        memcpy(sums[i], sum, sizeof sum);                                                                              \
    }

WT_CLONES static void add_products(const float (*w)[STRETCH], const float (*x)[STRETCH], int count, int n,
                                   float (*sums)[ROWS][LANES])
{
    const bool wide = wt_simd_floats() == 16;
    for (int i = 0; i < count; i++)
        if (wide)
            ADD_PRODUCTS(wt_f32x16)
        else
            ADD_PRODUCTS(wt_f32x8)
}

static float sum_of(float *sum)
{
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    return sum[0];
}

/// Elements of x from `first` on, at most STRETCH, with the scales of their groups.
static void x_of(const wt_mm_args *a, int64_t first, int n, float *out)
{
    float low[STRETCH];
    widen(a->x_type, a->x, first, n, out);
    if (a->two_parts) widen(a->x_type, a->x, first + a->x_low, n, low);
    for (int k = 0; a->two_parts && k < n; k++) out[k] += low[k];
    for (int k = 0; a->x_groups && k < n; k++) out[k] *= wt_mm_of_e4m3(a->x_groups[(first + k) / 16]);
}

/// Sums of `n_rows` rows of a part from row `first` on with the tile's rows of x.
static void float_sums(const wt_mm_args *a, const wt_mm_part *p, const wt_mm_tile *t, int64_t first, int n_rows,
                       float (*out)[VECTORS])
{
    _Alignas(64) float w[ROWS][STRETCH], x[VECTORS][STRETCH];
    float sums[VECTORS][ROWS][LANES];
    memset(sums, 0, sizeof sums);
    memset(w, 0, sizeof w);
    memset(x, 0, sizeof x);
    for (int begin = 0; begin < a->columns; begin += STRETCH) {
        const int n = a->columns - begin < STRETCH ? a->columns - begin : STRETCH,
                  whole = (n + LANES - 1) / LANES * LANES;
        for (int r = 0; r < n_rows; r++) {
            weights_of(a, p, t->stack, first + r, begin, n, w[r]);
            memset(w[r] + n, 0, sizeof(float) * (size_t)(whole - n));
        }
        for (int i = 0; i < t->count; i++) {
            x_of(a, t->x + i * a->x_stride + begin, n, x[i]);
            memset(x[i] + n, 0, sizeof(float) * (size_t)(whole - n));
        }
        add_products((const float(*)[STRETCH])w, (const float(*)[STRETCH])x, t->count, whole, sums);
    }
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < t->count; i++)
            out[r][i] = sum_of(sums[i][r]) * (a->x_scales ? a->x_scales[t->first + i] : 1);
}

WT_CLONES static int32_t exact_sum(const int8_t *w, const int8_t *x, int n)
{
    int32_t sum = 0;
    for (int k = 0; k < n; k++) sum += w[k] * x[k];
    return sum;
}

/// As float_sums; the bare sums go to `whole`.
static void exact_sums(const wt_mm_args *a, const wt_mm_part *p, const wt_mm_tile *t, int64_t first, int n_rows,
                       float (*out)[VECTORS], int32_t (*whole)[VECTORS])
{
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < t->count; i++) {
            const unsigned char *w = p->w + t->stack * p->w_next + (first + r) * a->row_bytes;
            whole[r][i] = exact_sum((const int8_t *)w, (const int8_t *)a->x + t->x + i * a->x_stride, a->columns);
            const float x_scale = a->x_scales ? a->x_scales[t->first + i] : 1;
            out[r][i] = (float)whole[r][i] * (x_scale * scale_at(a, p, t->stack, first + r, 0));
        }
}

// ---- what follows

static float activated(int activation, float v)
{
    switch (activation) {
    case WT_MM_RELU:
        return v > 0 ? v : 0;
    case WT_MM_SILU:
        return v / (1 + expf(-v));
    case WT_MM_GELU:
        return 0.5f * v * (1 + erff(v * 0.70710678f));
    case WT_MM_GELU_TANH:
        return 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    default:
        return v;
    }
}

static float biased(const wt_mm_part *p, int stack, int64_t r, float v)
{
    return p->bias ? v + p->bias[(int64_t)stack * p->rows + r] : v;
}

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint16_t bf16_of(float v)
{
    const uint32_t bits = bits_of(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); // NaN stays one
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Below 2^-14 the sum with 1/2 rounds to multiples of 2^-24.
static uint16_t f16_of(float v)
{
    const uint32_t m = bits_of(v) & 0x7fffffff, sign = bits_of(v) >> 16 & 0x8000;
    if (m > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (m >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (m < 0x38800000) return (uint16_t)(sign | (bits_of(fabsf(v) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13);
}

static void store(const wt_mm_args *a, const wt_mm_part *p, int64_t at, float v)
{
    if (a->add) v += one(a->y_type, p->y, at);
    if (a->y_type == WT_MM_F32) {
        ((float *)p->y)[at] = v;
        return;
    }
    uint16_t *y = (uint16_t *)p->y + at;
    *y = a->y_type == WT_MM_F16 ? f16_of(v) : bf16_of(v);
    if (!a->two_parts) return;
    v -= one(a->y_type, y, 0);
    y[a->m * p->y_stride] = a->y_type == WT_MM_F16 ? f16_of(v) : bf16_of(v);
}

static void finish(const wt_mm_args *a, const wt_mm_part *p, const wt_mm_tile *t, int i, int64_t r, float v, float v1)
{
    v = activated(a->activation, biased(p, t->stack, r, v));
    if (a->gated) v *= biased(&a->parts[1], t->stack, r, v1);
    store(a, p, t->y_batches * p->y_batch + (t->first + i) * p->y_stride + r, v);
}

static void multiply(const wt_mm_args *a, const wt_mm_part *p, const wt_mm_tile *t, int64_t first, int n_rows)
{
    float v[ROWS][VECTORS], v1[ROWS][VECTORS] = {{0}};
    int32_t whole[ROWS][VECTORS];
    const bool exact = wt__mm_is_exact(a);
    if (a->gated && exact) exact_sums(a, &a->parts[1], t, first, n_rows, v1, whole);
    if (a->gated && !exact) float_sums(a, &a->parts[1], t, first, n_rows, v1);
    if (exact)
        exact_sums(a, p, t, first, n_rows, v, whole);
    else
        float_sums(a, p, t, first, n_rows, v);
    for (int i = 0; i < t->count; i++)
        for (int r = 0; r < n_rows; r++)
            if (a->y_type == WT_MM_I32)
                ((int32_t *)p->y)[t->y_batches * p->y_batch + (t->first + i) * p->y_stride + first + r] = whole[r][i];
            else
                finish(a, p, t, i, first + r, v[r][i], v1[r][i]);
}

static void run(const void *args, int item)
{
    const wt_mm_args *a = args;
    const int n_tiles = wt_mm_n_tiles(a, VECTORS), group = item / n_tiles;
    int part = 0;
    while (part + 1 < a->n_parts && !a->gated && group >= a->parts[part + 1].first_tile) part++;
    const wt_mm_part *p = &a->parts[part];
    const int first = (group - p->first_tile) * ROWS, left = p->rows - first;
    wt_mm_tile t;
    if (wt_mm_find_tile(a, item % n_tiles, VECTORS, &t)) multiply(a, p, &t, first, left < ROWS ? left : ROWS);
}

wt_status wt__mm_cpu_enqueue(wt_stream *stream, const wt_mm_args *args)
{
    wt_mm_args a = *args;
    const int64_t n_items = (int64_t)wt__mm_number_tiles(&a, ROWS) * wt_mm_n_tiles(&a, VECTORS);
    if (n_items > INT32_MAX) return wt_fail(WT_ERR_BAD_ARG, "matmul: the product is too large for one call");
    return wt_stream_run(stream, run, &a, sizeof a, (int)n_items);
}

// ---- activations in 8 and 4 bits

static void quantize_row(const void *args, int i)
{
    const wt_mm_quantize_args *a = args;
    float x[STRETCH], most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int begin = 0; begin < a->columns; begin += STRETCH) {
            const int n = a->columns - begin < STRETCH ? a->columns - begin : STRETCH;
            widen(a->x_type, a->x, i * a->x_stride + begin, n, x);
            if (pass == 0)
                for (int k = 0; k < n; k++) most = fmaxf(most, fabsf(x[k]));
            else
                for (int k = 0; k < n; k++)
                    a->out[(int64_t)i * a->columns + begin + k] =
                        wt_mm_quantized(x[k] / wt_mm_quantum(most, a->out_type), a->out_type);
        }
    a->scales[i] = wt_mm_quantum(most, a->out_type);
}

static void quantize_row_e2m1(const void *args, int i)
{
    const wt_mm_quantize_args *a = args;
    const int64_t first = (int64_t)i * (a->columns / 16);
    float x[16], most = 0;
    for (int k = 0; k < a->columns; k++) most = fmaxf(most, fabsf(one(a->x_type, a->x, i * a->x_stride + k)));
    a->scales[i] = wt_mm_quantum(most, WT_MM_E2M1);
    for (int j = 0; j < a->columns / 16; j++) {
        widen(a->x_type, a->x, i * a->x_stride + j * 16, 16, x);
        a->groups[first + j] = wt_mm_quantize_16(x, a->scales[i], a->out + (first + j) * 8);
    }
}

wt_status wt__mm_cpu_quantize(wt_stream *stream, const wt_mm_quantize_args *args)
{
    const bool four = args->out_type == WT_MM_E2M1;
    return wt_stream_run(stream, four ? quantize_row_e2m1 : quantize_row, args, sizeof *args, args->m);
}

// ---- blocks of GGUF as plain elements

static void repack_row(const void *args, int r)
{
    const wt_mm_repack_args *a = args;
    const int64_t n = a->columns / 16;
    for (int64_t k = 0; k < n; k++) wt_mm_repack_16(a, r * n + k);
}

wt_status wt__mm_cpu_repack(wt_stream *stream, const wt_mm_repack_args *args)
{
    return wt_stream_run(stream, repack_row, args, sizeof *args, args->rows);
}
