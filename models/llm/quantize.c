// Weights made smaller at load: fp8 with a scale for blocks of 128 x 128, int8 with one a row, int4 with scale and zero
// for groups of up to 128 columns. The nearest numbers are taken, nothing is trained.
#include "quant.h"

#include <assert.h>
#include <stdlib.h>

enum { SIDE = WT_WEIGHT_SIDE, SMALLEST_GROUP = 32, WORKERS = 16 };

static_assert((int)WT_LLM_FP8 == WT_WEIGHT_FP8 && (int)WT_LLM_INT8 == WT_WEIGHT_INT8 &&
                  (int)WT_LLM_INT4 == WT_WEIGHT_INT4,
              "the kernel's kinds are the library's");

bool wt__quant_plan(const wt__linear *from, wt_llm_quantization kind, wt__linear *plan)
{
    static const wt_dtype dtypes[] = {
        [WT_LLM_FP8] = WT_DTYPE_F8_E4M3, [WT_LLM_INT8] = WT_DTYPE_I8, [WT_LLM_INT4] = WT_DTYPE_U8};
    const wt_dtype t = from->weight.dtype;
    if (!from->weight.data || (t != WT_DTYPE_F32 && t != WT_DTYPE_F16 && t != WT_DTYPE_BF16 && t != WT_DTYPE_F64))
        return false;
    const int64_t columns = from->weight.shape[1], step = columns & -columns, most = step < SIDE ? step : SIDE;
    if (kind == WT_LLM_INT4 && columns % SMALLEST_GROUP) kind = WT_LLM_INT8;
    *plan = (wt__linear){.weight = from->weight, .bias = from->bias, .nibbles = kind == WT_LLM_INT4};
    plan->weight.dtype = dtypes[kind];
    plan->scale_rows = kind == WT_LLM_FP8 ? SIDE : 1;
    plan->scale_columns = (int)(kind == WT_LLM_INT4 ? most : kind == WT_LLM_FP8 && columns > SIDE ? SIDE : columns);
    return true;
}

int64_t wt__quant_scales(const wt__linear *m, int64_t n_rows)
{
    const int64_t across = (m->weight.shape[1] + m->scale_columns - 1) / m->scale_columns;
    return (n_rows + m->scale_rows - 1) / m->scale_rows * across;
}

/// A matrix as it was, and what is made of it.
typedef struct making {
    const wt__linear *from;
    wt__linear to;
    uint8_t *q; ///< these three are those of `to`
    float *scales;
    uint8_t *zeros;
    float *wide; ///< [WORKERS][to.scale_rows][columns]
} making;

// Extremes are those of integers in the order of the floats: compilers vectorise them without leave to reorder floats.

static float largest_of(const float *x, int64_t n)
{
    int most = 0;
    for (int64_t k = 0; k < n; k++) {
        const int m = wt_bits(x[k]) & 0x7fffffff;
        most = m > most ? m : most;
    }
    return wt_from_bits(most);
}

static int in_order(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); } // and back

static void row_to_int8(const float *x, int64_t n, int8_t *q, float *scale)
{
    *scale = largest_of(x, n) / 127;
    const float by = wt_weight_int8_by(*scale);
    for (int64_t k = 0; k < n; k++) q[k] = wt_weight_int8(x[k], by);
}

/// Some rows of n columns, `pitch` apart, by one scale.
static void block_to_fp8(const float *wide, int64_t pitch, int64_t n_rows, int64_t n, uint8_t *q, float *scale)
{
    float most = 0;
    for (int64_t r = 0; r < n_rows; r++) most = wt_max(most, largest_of(wide + r * pitch, n));
    const float by = *scale = wt_weight_fp8_scale(most);
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t k = 0; k < n; k++) q[r * pitch + k] = (uint8_t)wt_weight_e4m3(wide[r * pitch + k] / by);
}

/// 16 steps from the smallest to the largest, zero among them; n is even, at most SIDE.
static void group_to_int4(const float *x, int n, uint8_t *q, float *scale, uint8_t *zero)
{
    uint8_t steps[SIDE];
    int low = 0, high = 0;
    for (int k = 0; k < n; k++) {
        const int at = in_order(wt_bits(x[k]));
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    const float least = wt_from_bits(in_order(low)), by = wt_weight_int4_scale(least, wt_from_bits(in_order(high)));
    const int middle = wt_weight_int4_zero(least, by);
    for (int k = 0; k < n; k++) steps[k] = (uint8_t)wt_weight_int4(x[k], by, middle);
    for (int k = 0; k < n / 2; k++) q[k] = (uint8_t)(steps[2 * k] | steps[2 * k + 1] << 4);
    *scale = by;
    *zero = (uint8_t)middle;
}

/// Rows r .. r + n_rows - 1, which are widened already.
static void strip(const making *m, int64_t r, int64_t n_rows, const float *wide)
{
    const wt__linear *to = &m->to;
    const int64_t columns = to->weight.shape[1], group = to->scale_columns, across = (columns + group - 1) / group;
    uint8_t *q = m->q + r * columns / (to->nibbles ? 2 : 1);
    float *scales = m->scales + r / to->scale_rows * across;
    for (int64_t b = 0; to->weight.dtype == WT_DTYPE_F8_E4M3 && b < across; b++) {
        const int64_t left = columns - b * group, n = left < group ? left : group;
        block_to_fp8(wide + b * group, columns, n_rows, n, q + b * group, scales + b);
    }
    for (int64_t k = 0; to->weight.dtype == WT_DTYPE_I8 && k < n_rows; k++)
        row_to_int8(wide + k * columns, columns, (int8_t *)q + k * columns, scales + k);
    for (int64_t k = 0; to->nibbles && k < n_rows * across; k++)
        group_to_int4(wide + k * group, (int)group, q + k * group / 2, scales + k, m->zeros + r * across + k);
}

/// Rows that share a scale are widened together.
static void work(const void *args, int worker)
{
    const making *m = args;
    const int64_t rows = m->to.weight.shape[0], columns = m->to.weight.shape[1], together = m->to.scale_rows;
    float *wide = m->wide + worker * together * columns;
    for (int64_t r = worker * together; r < rows; r += WORKERS * together) {
        const int64_t n_rows = rows - r < together ? rows - r : together;
        for (int64_t k = 0; k < n_rows; k++) wt__row_widen(m->from, r + k, wide + k * columns);
        strip(m, r, n_rows, wide);
    }
}

static bool take_room(wt_llm *llm, making *m)
{
    const int64_t rows = m->to.weight.shape[0], columns = m->to.weight.shape[1];
    const size_t n = (size_t)(rows * columns), n_scales = (size_t)wt__quant_scales(&m->to, rows);
    m->to.weight.data = m->q = wt__llm_take(llm, m->to.nibbles ? n / 2 : n);
    m->to.scales = m->scales = wt__llm_take(llm, sizeof *m->scales * n_scales);
    if (m->to.nibbles) m->to.zeros = m->zeros = wt__llm_take(llm, n_scales);
    m->wide = malloc(sizeof *m->wide * (size_t)(WORKERS * m->to.scale_rows * columns));
    return m->q && m->scales && (m->zeros || !m->to.nibbles) && m->wide;
}

wt_status wt__crew_open(wt__crew *c)
{
    *c = (wt__crew){0};
    wt_status status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &c->device);
    return status ? status : wt_stream_create(c->device, NULL, &c->stream);
}

void wt__crew_close(wt__crew *c)
{
    wt_stream_destroy(c->stream);
    wt_device_close(c->device);
}

/// Matrices that are quantised already stay as they are.
static wt_status quantise(wt_llm *llm, const wt__crew *c, wt_llm_quantization kind, wt__linear *l)
{
    making m = {.from = l};
    if (!wt__quant_plan(l, kind, &m.to)) return WT_OK;
    wt_status status = take_room(llm, &m)
                           ? WT_OK
                           : wt_fail(WT_ERR_NO_MEMORY, "llm: no memory to quantise a matrix of %lld x %lld",
                                     (long long)m.to.weight.shape[0], (long long)m.to.weight.shape[1]);
    if (!status) status = wt_stream_run(c->stream, work, &m, sizeof m, WORKERS);
    if (!status) status = wt_stream_synchronize(c->stream);
    free(m.wide);
    if (!status) *l = m.to;
    return status;
}

static wt_status quantise_layer(wt_llm *llm, const wt__crew *c, wt_llm_quantization kind, wt__layer *w)
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
    if ((unsigned)kind > WT_LLM_INT4) return wt__quant_refuse(kind);
    if (kind == WT_LLM_AS_STORED) return WT_OK;
    wt__crew c;
    status = wt__crew_open(&c);
    for (int l = 0; l < n && !status; l++) {
        status = quantise_layer(llm, &c, kind, &llm->layers[l]);
        if (progress && !status) progress(user, l + 1, n + 1);
    }
    if (!status) status = quantise(llm, &c, wt__quant_of_head(kind), &llm->head);
    wt__crew_close(&c);
    if (progress && !status) progress(user, n + 1, n + 1);
    return status;
}
