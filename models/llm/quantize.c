// Weights made smaller at load: fp8 with a scale for blocks of 128 x 128, int8 with one a row, int4 with scale and zero
// for groups of up to 128 columns. The nearest numbers are taken, nothing is trained.
#include "quant.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 128, SMALLEST_GROUP = 32 };

unsigned wt__narrow(float x, wt__narrow_type type)
{
    const int n_mantissa = type == WT__HALF ? 10 : 3, bias = type == WT__HALF ? 15 : 7;
    const unsigned largest = type == WT__HALF ? 0x7bff : 0x7e, sign = type == WT__HALF ? 0x8000 : 0x80;
    const float m = fabsf(x);
    uint32_t bits, n;
    memcpy(&bits, &m, sizeof bits);
    if (m < ldexpf(1, 1 - bias)) // subnormal, or the first that is not
        n = (uint32_t)lrintf(ldexpf(m, bias - 1 + n_mantissa));
    else {
        bits += (1u << (22 - n_mantissa)) - 1 + (bits >> (23 - n_mantissa) & 1);
        n = (bits >> (23 - n_mantissa)) - ((uint32_t)(127 - bias) << n_mantissa);
    }
    return (n < largest ? n : largest) | (signbit(x) ? sign : 0);
}

/// Rows of the weights as they were, widened.
typedef struct source {
    const wt__linear *linear;
    int64_t rows, columns;
    float *wide; ///< [SIDE][columns]
} source;

static float largest_of(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t k = 0; k < n; k++) most = fmaxf(most, fabsf(x[k]));
    return most;
}

static void row_to_int8(const float *x, int64_t n, int8_t *q, float *scale)
{
    *scale = largest_of(x, n) / 127;
    const float by = *scale > 0 ? 1 / *scale : 0;
    for (int64_t k = 0; k < n; k++) q[k] = (int8_t)lrintf(x[k] * by);
}

static wt_status to_int8(wt_llm *llm, const source *s, wt__linear *m)
{
    int8_t *q = wt__llm_take(llm, (size_t)(s->rows * s->columns));
    float *scales = wt__llm_take(llm, sizeof *scales * (size_t)s->rows);
    if (!q || !scales) return WT_ERR_NO_MEMORY;
    for (int64_t r = 0; r < s->rows; r++) {
        wt__row_widen(s->linear, r, s->wide);
        row_to_int8(s->wide, s->columns, q + r * s->columns, scales + r);
    }
    *m = (wt__linear){.weight = {q, WT_DTYPE_I8, 2, {s->rows, s->columns}},
                      .scales = scales,
                      .scale_rows = 1,
                      .scale_columns = (int)s->columns};
    return WT_OK;
}

/// Columns first .. of some rows by one scale, the largest becoming 448.
static void block_to_fp8(const source *s, int64_t first, int64_t n_rows, int64_t n, uint8_t *q, float *scale)
{
    float most = 0;
    for (int64_t r = 0; r < n_rows; r++) most = fmaxf(most, largest_of(s->wide + r * s->columns + first, n));
    *scale = most > 0 ? most / 448 : 1;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t k = 0; k < n; k++)
            q[r * s->columns + first + k] = (uint8_t)wt__narrow(s->wide[r * s->columns + first + k] / *scale, WT__E4M3);
}

static wt_status to_fp8(wt_llm *llm, const source *s, wt__linear *m)
{
    const int64_t across = (s->columns + SIDE - 1) / SIDE, down = (s->rows + SIDE - 1) / SIDE;
    uint8_t *q = wt__llm_take(llm, (size_t)(s->rows * s->columns));
    float *scales = wt__llm_take(llm, sizeof *scales * (size_t)(down * across));
    if (!q || !scales) return WT_ERR_NO_MEMORY;
    for (int64_t r = 0; r < s->rows; r += SIDE) {
        const int64_t n_rows = s->rows - r < SIDE ? s->rows - r : SIDE;
        for (int64_t k = 0; k < n_rows; k++) wt__row_widen(s->linear, r + k, s->wide + k * s->columns);
        for (int64_t b = 0; b < across; b++)
            block_to_fp8(s, b * SIDE, n_rows, s->columns - b * SIDE < SIDE ? s->columns - b * SIDE : SIDE,
                         q + r * s->columns, scales + r / SIDE * across + b);
    }
    *m = (wt__linear){.weight = {q, WT_DTYPE_F8_E4M3, 2, {s->rows, s->columns}},
                      .scales = scales,
                      .scale_rows = SIDE,
                      .scale_columns = s->columns < SIDE ? (int)s->columns : SIDE};
    return WT_OK;
}

/// The nearest number of F16, which a GPU has beside its zero in one word; where there is none, the number itself.
static float as_half(float x)
{
    const uint16_t half = (uint16_t)wt__narrow(x, WT__HALF);
    float near;
    wt_tensor_to_f32(&(wt_tensor){&half, WT_DTYPE_F16, 1, {1}}, 0, 1, &near);
    return near > 0x1p-14f && near < 0x1p15f ? near : x;
}

/// 16 steps from the smallest to the largest, zero among them.
static void group_to_int4(const float *x, int n, uint8_t *q, float *scale, uint8_t *zero)
{
    float low = 0, high = 0;
    for (int k = 0; k < n; k++) {
        low = fminf(low, x[k]);
        high = fmaxf(high, x[k]);
    }
    *scale = high > low ? as_half((high - low) / 15) : 1;
    *zero = (uint8_t)lrintf(-low / *scale);
    for (int k = 0; k < n; k++) {
        const long step = lrintf(x[k] / *scale) + *zero;
        q[k / 2] = (uint8_t)(q[k / 2] | (step < 0 ? 0 : step > 15 ? 15 : step) << k % 2 * 4);
    }
}

static wt_status to_int4(wt_llm *llm, const source *s, wt__linear *m)
{
    const int64_t step = s->columns & -s->columns, group = step < SIDE ? step : SIDE, n = s->columns / group;
    uint8_t *q = wt__llm_take(llm, (size_t)(s->rows * s->columns / 2)),
            *zeros = wt__llm_take(llm, (size_t)(s->rows * n));
    float *scales = wt__llm_take(llm, sizeof *scales * (size_t)(s->rows * n));
    if (!q || !zeros || !scales) return WT_ERR_NO_MEMORY;
    for (int64_t r = 0; r < s->rows; r++) {
        wt__row_widen(s->linear, r, s->wide);
        for (int64_t g = 0; g < n; g++)
            group_to_int4(s->wide + g * group, (int)group, q + (r * s->columns + g * group) / 2, scales + r * n + g,
                          zeros + r * n + g);
    }
    *m = (wt__linear){.weight = {q, WT_DTYPE_U8, 2, {s->rows, s->columns}},
                      .scales = scales,
                      .zeros = zeros,
                      .scale_rows = 1,
                      .scale_columns = (int)group,
                      .nibbles = true};
    return WT_OK;
}

/// Matrices that are quantised already stay as they are.
static bool is_wide(const wt__linear *m)
{
    const wt_dtype t = m->weight.dtype;
    return m->weight.data && (t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16 || t == WT_DTYPE_F64);
}

static wt_status quantise(wt_llm *llm, wt_llm_quantization kind, wt__linear *m)
{
    static wt_status (*const forms[])(wt_llm *, const source *, wt__linear *) = {
        [WT_LLM_FP8] = to_fp8, [WT_LLM_INT8] = to_int8, [WT_LLM_INT4] = to_int4};
    if (!is_wide(m)) return WT_OK;
    source s = {.linear = m, .rows = m->weight.shape[0], .columns = m->weight.shape[1]};
    if (kind == WT_LLM_INT4 && s.columns % SMALLEST_GROUP) kind = WT_LLM_INT8;
    wt__linear made = {0};
    s.wide = malloc(sizeof *s.wide * (size_t)(SIDE * s.columns));
    const wt_status status = s.wide ? forms[kind](llm, &s, &made) : WT_ERR_NO_MEMORY;
    free(s.wide);
    if (status)
        return wt_fail(status, "llm: no memory to quantise a matrix of %lld x %lld", (long long)s.rows,
                       (long long)s.columns);
    made.bias = m->bias;
    *m = made;
    return WT_OK;
}

static wt_status quantise_layer(wt_llm *llm, wt_llm_quantization kind, wt__layer *w)
{
    wt__linear *const all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
    wt_status status = WT_OK;
    for (size_t k = 0; k < sizeof all / sizeof *all && !status; k++) status = quantise(llm, kind, all[k]);
    for (int e = 0; w->experts && e < llm->config.n_experts && !status; e++) {
        wt__expert *x = &w->experts[e];
        status = quantise(llm, kind, &x->gate);
        if (!status) status = quantise(llm, kind, &x->up);
        if (!status) status = quantise(llm, kind, &x->down);
    }
    return status;
}

wt_status wt_llm_quantize(wt_llm *llm, wt_llm_quantization kind, void (*progress)(void *user, int done, int of),
                          void *user)
{
    const int n = llm->config.n_layers;
    wt_status status = WT_OK;
    if ((unsigned)kind > WT_LLM_INT4) return wt_fail(WT_ERR_BAD_ARG, "llm: quantise to kind %d, want 0..3", (int)kind);
    if (kind == WT_LLM_AS_STORED) return WT_OK;
    for (int l = 0; l < n && !status; l++) {
        status = quantise_layer(llm, kind, &llm->layers[l]);
        if (progress && !status) progress(user, l + 1, n + 1);
    }
    if (!status) status = quantise(llm, kind == WT_LLM_INT4 ? WT_LLM_INT8 : kind, &llm->head);
    if (progress && !status) progress(user, n + 1, n + 1);
    return status;
}
