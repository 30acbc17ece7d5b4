// Weights made smaller at load: fp8 with a scale for blocks of 128 x 128, int8 with one a row, int4 with scale and zero
// for groups of up to 128 columns. The nearest numbers are taken, nothing is trained.
#include "quant.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 128, SMALLEST_GROUP = 32, WORKERS = 16 };

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

/// A matrix as it was, and what is made of it.
typedef struct making {
    const wt__linear *linear;
    int64_t rows, columns;
    wt_llm_quantization kind;
    int group;      ///< columns a scale
    int64_t across; ///< scales of a row
    uint8_t *q;
    float *scales;
    uint8_t *zeros; ///< of int4
    float *wide;    ///< [WORKERS][SIDE][columns]
} making;

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

/// Columns first .. of some rows by one scale, the largest becoming 448.
static void block_to_fp8(const making *m, const float *wide, int64_t first, int64_t n_rows, int64_t n, uint8_t *q,
                         float *scale)
{
    float most = 0;
    for (int64_t r = 0; r < n_rows; r++) most = fmaxf(most, largest_of(wide + r * m->columns + first, n));
    *scale = most > 0 ? most / 448 : 1;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t k = 0; k < n; k++)
            q[r * m->columns + first + k] = (uint8_t)wt__narrow(wide[r * m->columns + first + k] / *scale, WT__E4M3);
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

/// Rows r .. r + n_rows - 1, which are widened already.
static void strip(const making *m, int64_t r, int64_t n_rows, const float *wide)
{
    const int64_t columns = m->columns, across = m->across;
    for (int64_t b = 0; m->kind == WT_LLM_FP8 && b < across; b++)
        block_to_fp8(m, wide, b * SIDE, n_rows, columns - b * SIDE < SIDE ? columns - b * SIDE : SIDE,
                     m->q + r * columns, m->scales + r / SIDE * across + b);
    for (int64_t k = 0; m->kind == WT_LLM_INT8 && k < n_rows; k++)
        row_to_int8(wide + k * columns, columns, (int8_t *)m->q + (r + k) * columns, m->scales + r + k);
    for (int64_t k = 0; m->kind == WT_LLM_INT4 && k < n_rows; k++)
        for (int64_t g = 0; g < across; g++)
            group_to_int4(wide + k * columns + g * m->group, m->group, m->q + ((r + k) * columns + g * m->group) / 2,
                          m->scales + (r + k) * across + g, m->zeros + (r + k) * across + g);
}

static void work(const void *args, int worker)
{
    const making *m = args;
    float *wide = m->wide + worker * SIDE * m->columns;
    for (int64_t r = (int64_t)worker * SIDE; r < m->rows; r += WORKERS * SIDE) {
        const int64_t n_rows = m->rows - r < SIDE ? m->rows - r : SIDE;
        for (int64_t k = 0; k < n_rows; k++) wt__row_widen(m->linear, r + k, wide + k * m->columns);
        strip(m, r, n_rows, wide);
    }
}

static bool take_room(wt_llm *llm, making *m)
{
    const bool blocks = m->kind == WT_LLM_FP8, nibbles = m->kind == WT_LLM_INT4;
    const size_t n = (size_t)(m->rows * m->columns);
    const size_t n_scales = (size_t)((blocks ? (m->rows + SIDE - 1) / SIDE : m->rows) * m->across);
    m->q = wt__llm_take(llm, nibbles ? n / 2 : n);
    m->scales = wt__llm_take(llm, sizeof *m->scales * n_scales);
    if (nibbles) m->zeros = wt__llm_take(llm, n_scales);
    m->wide = malloc(sizeof *m->wide * (size_t)(WORKERS * SIDE * m->columns));
    return m->q && m->scales && (m->zeros || !nibbles) && m->wide;
}

/// Matrices that are quantised already stay as they are.
static bool is_wide(const wt__linear *m)
{
    const wt_dtype t = m->weight.dtype;
    return m->weight.data && (t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16 || t == WT_DTYPE_F64);
}

/// The threads that quantise.
typedef struct crew {
    wt_device *device;
    wt_stream *stream;
} crew;

static wt_status open_crew(crew *c)
{
    *c = (crew){0};
    wt_status status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &c->device);
    if (!status) status = wt_stream_create(c->device, NULL, &c->stream);
    return status;
}

static void close_crew(crew *c)
{
    wt_stream_destroy(c->stream);
    wt_device_close(c->device);
}

static wt_status quantise(wt_llm *llm, const crew *c, wt_llm_quantization kind, wt__linear *l)
{
    if (!is_wide(l)) return WT_OK;
    const int64_t columns = l->weight.shape[1], step = columns & -columns;
    making m = {.linear = l, .rows = l->weight.shape[0], .columns = columns, .kind = kind};
    if (kind == WT_LLM_INT4 && columns % SMALLEST_GROUP) m.kind = WT_LLM_INT8;
    m.group = m.kind == WT_LLM_INT4                    ? (int)(step < SIDE ? step : SIDE)
              : m.kind == WT_LLM_FP8 && columns > SIDE ? SIDE
                                                       : (int)columns;
    m.across = (columns + m.group - 1) / m.group;
    wt_status status = take_room(llm, &m)
                           ? WT_OK
                           : wt_fail(WT_ERR_NO_MEMORY, "llm: no memory to quantise a matrix of %lld x %lld",
                                     (long long)m.rows, (long long)m.columns);
    if (!status) status = wt_stream_run(c->stream, work, &m, sizeof m, WORKERS);
    if (!status) status = wt_stream_synchronize(c->stream);
    free(m.wide);
    if (status) return status;
    static const wt_dtype dtypes[] = {
        [WT_LLM_FP8] = WT_DTYPE_F8_E4M3, [WT_LLM_INT8] = WT_DTYPE_I8, [WT_LLM_INT4] = WT_DTYPE_U8};
    *l = (wt__linear){.weight = {m.q, dtypes[m.kind], 2, {m.rows, m.columns}},
                      .bias = l->bias,
                      .scales = m.scales,
                      .zeros = m.zeros,
                      .scale_rows = m.kind == WT_LLM_FP8 ? SIDE : 1,
                      .scale_columns = m.group,
                      .nibbles = m.kind == WT_LLM_INT4};
    return WT_OK;
}

static wt_status quantise_layer(wt_llm *llm, const crew *c, wt_llm_quantization kind, wt__layer *w)
{
    wt__linear *const all[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down};
    wt_status status = WT_OK;
    for (size_t k = 0; k < sizeof all / sizeof *all && !status; k++) status = quantise(llm, c, kind, all[k]);
    for (int e = 0; w->experts && e < llm->config.n_experts && !status; e++) {
        wt__expert *x = &w->experts[e];
        status = quantise(llm, c, kind, &x->gate);
        if (!status) status = quantise(llm, c, kind, &x->up);
        if (!status) status = quantise(llm, c, kind, &x->down);
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
    crew c;
    status = open_crew(&c);
    for (int l = 0; l < n && !status; l++) {
        status = quantise_layer(llm, &c, kind, &llm->layers[l]);
        if (progress && !status) progress(user, l + 1, n + 1);
    }
    if (!status) status = quantise(llm, &c, kind == WT_LLM_INT4 ? WT_LLM_INT8 : kind, &llm->head);
    close_crew(&c);
    if (progress && !status) progress(user, n + 1, n + 1);
    return status;
}
