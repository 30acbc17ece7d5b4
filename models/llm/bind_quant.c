// Quantised checkpoints of the hub, each to one of three forms that wt__linear has: fp8 with scales of a matrix, a row
// or a block, and int8 with scales of a row, both as they lie in the file; int4 by groups, from AWQ and GPTQ, turned to
// rows. What has no such form (GPTQ of 8 bits, or with groups in another order) becomes F16.
// Sources: transformers, integrations/finegrained_fp8.py; compressed-tensors, quantization/lifecycle/forward.py;
// AutoAWQ, awq/utils/packing_utils.py and modules/linear/gemm.py; GPTQModel, nn_modules/qlinear/torch.py.
#include "quant.h"

#include <stdatomic.h>
#include <stdio.h>

enum { TILE = 128, SMALL = 1 << 20 };

typedef struct packed {
    const wt_tensor *weight, *zeros, *scales, *order; ///< qweight, qzeros, scales, g_idx
    int64_t rows, columns, group;
    int bits, less; ///< zero points are stored less that, 0 as the largest
    bool awq;
} packed;

static const wt_tensor *find(const wt_llm *llm, const char *stem, const char *part, char name[160])
{
    snprintf(name, 160, "%s.%s", stem, part);
    return wt_weights_find(llm->weights, name);
}

/// A tensor of that type and shape, or an error that names it.
static wt_status get(const wt_llm *llm, const char *stem, const char *part, wt_dtype dtype, int64_t rows,
                     int64_t columns, const wt_tensor **t)
{
    char name[160], text[96];
    *t = find(llm, stem, part, name);
    if (!*t) return wt_fail(WT_ERR_NOT_FOUND, "llm: there is no tensor %s", name);
    const bool fits = (*t)->rank == 2 && (*t)->shape[0] == rows && (*t)->shape[1] == columns;
    if (fits && (dtype == WT_N_DTYPES || (*t)->dtype == dtype)) return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "llm: %s is %s, want [%lld][%lld]%s%s", name, wt_tensor_describe(*t, text),
                   (long long)rows, (long long)columns, dtype == WT_N_DTYPES ? "" : " ",
                   dtype == WT_N_DTYPES ? "" : wt_dtype_name(dtype));
}

static bool is_float(wt_dtype t)
{
    return t == WT_DTYPE_F32 || t == WT_DTYPE_F16 || t == WT_DTYPE_BF16 || t == WT_DTYPE_F64;
}

// ---- weights that lie in rows: fp8 and int8

/// One scale, one a row, or one a block.
static wt_status bind_scales(wt_llm *llm, const char *stem, wt__linear *m)
{
    char name[160], text[96];
    const wt_quant_config *q = &llm->config.quant;
    const int64_t rows = m->weight.shape[0], columns = m->weight.shape[1];
    const wt_tensor *t = find(llm, stem, "weight_scale_inv", name);
    if (!t) t = find(llm, stem, "weight_scale", name);
    if (!t)
        return wt_fail(WT_ERR_NOT_FOUND, "llm: %s.weight is %s and has no scale", stem, wt_dtype_name(m->weight.dtype));
    const int64_t n = wt_tensor_elements(t);
    const bool blocks = q->block_rows && m->weight.dtype == WT_DTYPE_F8_E4M3 && n != 1;
    m->scale_rows = blocks ? q->block_rows : n == rows ? 1 : (int)rows;
    m->scale_columns = blocks ? q->block_columns : (int)columns;
    if (m->scale_columns > columns) m->scale_columns = (int)columns;
    const int64_t down = (rows + m->scale_rows - 1) / m->scale_rows;
    const int64_t across = (columns + m->scale_columns - 1) / m->scale_columns;
    if (n != down * across || !is_float(t->dtype))
        return wt_fail(WT_ERR_FORMAT, "llm: %s is %s, want [%lld][%lld] of a float type, or one number", name,
                       wt_tensor_describe(t, text), (long long)down, (long long)across);
    float *scales = wt__llm_take(llm, sizeof *scales * (size_t)n);
    if (!scales) return wt_fail(WT_ERR_NO_MEMORY, "llm: %lld scales", (long long)n);
    wt_tensor_to_f32(t, 0, n, scales);
    m->scales = scales;
    return WT_OK;
}

// ---- weights packed in I32: AWQ and GPTQ

static uint32_t word_at(const wt_tensor *t, int64_t at)
{
    uint32_t word;
    memcpy(&word, (const uint8_t *)t->data + 4 * at, sizeof word);
    return word;
}

/// Of eight numbers in a word of AWQ, where number k lies.
static int awq_place(int64_t k) { return (int)(k % 2 * 4 + k % 8 / 2); }

static int weight_at(const packed *p, int64_t row, int64_t column)
{
    const int a_word = 32 / p->bits, mask = (1 << p->bits) - 1;
    if (p->awq) return word_at(p->weight, (column * p->rows + row) / 8) >> 4 * awq_place(row) & 15;
    return (int)(word_at(p->weight, column / a_word * p->rows + row) >> column % a_word * p->bits) & mask;
}

static int zero_at(const packed *p, int64_t row, int64_t group)
{
    const int a_word = 32 / p->bits, mask = (1 << p->bits) - 1;
    if (!p->zeros) return 1 << (p->bits - 1);
    if (p->awq) return word_at(p->zeros, (group * p->rows + row) / 8) >> 4 * awq_place(row) & 15;
    const uint32_t word = word_at(p->zeros, group * (p->rows / a_word) + row / a_word);
    return ((int)(word >> row % a_word * p->bits) + p->less) & mask;
}

static int64_t group_of(const packed *p, int64_t column)
{
    return p->order ? (int32_t)word_at(p->order, column) : column / p->group;
}

static float scale_at(const packed *p, int64_t row, int64_t group)
{
    float scale;
    wt_tensor_to_f32(p->scales, group * p->rows + row, 1, &scale);
    return scale;
}

/// What becomes of a packed matrix, strip by strip of TILE rows.
typedef struct turning {
    const packed *from;
    int64_t step; ///< columns that share a scale
    uint8_t *q;
    uint8_t *zeros;
    float *scales;
    uint16_t *halves;    ///< instead of those, every weight
    atomic_bool *uneven; ///< a zero is not 8
} turning;

static void widen_strip(const void *args, int strip)
{
    const turning *t = args;
    const packed *p = t->from;
    for (int64_t r = (int64_t)strip * TILE; r < p->rows && r < (strip + 1LL) * TILE; r++)
        for (int64_t k = 0; k < p->columns; k++) {
            const int64_t group = group_of(p, k);
            const int q = weight_at(p, r, k) - zero_at(p, r, group);
            t->halves[r * p->columns + k] = (uint16_t)wt_weight_half((float)q * scale_at(p, r, group));
        }
}

/// GPTQ: a word is eight columns of a row already.
static void tile_of_gptq(const packed *p, int64_t row, int n_rows, int64_t column, int n_words,
                         uint32_t tile[TILE][TILE / 8])
{
    for (int w = 0; w < n_words; w++)
        for (int r = 0; r < n_rows; r++) tile[r][w] = word_at(p->weight, (column / 8 + w) * p->rows + row + r);
}

/// AWQ: a word is eight rows of a column; eight of them are turned for all rows at once, in vectors.
static void tile_of_awq(const packed *p, int64_t row, int n_rows, int64_t column, int n_words,
                        uint32_t tile[TILE][TILE / 8])
{
    uint32_t in[8][TILE / 8];
    const int n = n_rows / 8;
    for (int w = 0; w < n_words; w++) {
        for (int c = 0; c < 8; c++)
            memcpy(in[c], (const uint8_t *)p->weight->data + 4 * (((column + 8 * w + c) * p->rows + row) / 8),
                   sizeof *in[c] * (size_t)n);
        for (int j = 0; j < 8; j++) {
            uint32_t out[TILE / 8] = {0};
            for (int c = 0; c < 8; c++)
                for (int k = 0; k < n; k++) out[k] |= (in[c][k] >> 4 * awq_place(j) & 15) << 4 * c;
            for (int k = 0; k < n; k++) tile[8 * k + j][w] = out[k];
        }
    }
}

static void turn_scales(const turning *t, int64_t row, int n_rows)
{
    const packed *p = t->from;
    const int64_t n = p->columns / t->step;
    float scales[TILE];
    bool uneven = false;
    for (int64_t g = 0; g < n; g++) {
        wt_tensor_to_f32(p->scales, g * t->step / p->group * p->rows + row, n_rows, scales);
        for (int r = 0; r < n_rows; r++) {
            const int zero = zero_at(p, row + r, g * t->step / p->group);
            t->scales[(row + r) * n + g] = scales[r];
            t->zeros[(row + r) * n + g] = (uint8_t)zero;
            uneven |= zero != 8;
        }
    }
    if (uneven) atomic_store_explicit(t->uneven, true, memory_order_relaxed);
}

static void turn_strip(const void *args, int strip)
{
    const turning *t = args;
    const packed *p = t->from;
    const int64_t row = (int64_t)strip * TILE, left = p->rows - row;
    const int n_rows = (int)(left < TILE ? left : TILE);
    uint32_t tile[TILE][TILE / 8];
    turn_scales(t, row, n_rows);
    for (int64_t k = 0; k < p->columns; k += TILE) {
        const int n_words = (int)((p->columns - k < TILE ? p->columns - k : TILE) / 8);
        (p->awq ? tile_of_awq : tile_of_gptq)(p, row, n_rows, k, n_words, tile);
        for (int r = 0; r < n_rows; r++)
            memcpy(t->q + ((row + r) * p->columns + k) / 2, tile[r], sizeof(uint32_t) * (size_t)n_words);
    }
}

/// All strips, by all processors where there are many.
static wt_status run_strips(void (*strip)(const void *args, int strip), const turning *t)
{
    const int n = (int)((t->from->rows + TILE - 1) / TILE);
    if (t->from->rows * t->from->columns < SMALL) {
        for (int k = 0; k < n; k++) strip(t, k);
        return WT_OK;
    }
    wt__crew crew;
    wt_status status = wt__crew_open(&crew);
    if (!status) status = wt_stream_run(crew.stream, strip, t, sizeof *t, n);
    if (!status) status = wt_stream_synchronize(crew.stream);
    wt__crew_close(&crew);
    return status;
}

static wt_status no_room(const packed *p)
{
    return wt_fail(WT_ERR_NO_MEMORY, "llm: a matrix of %lld x %lld", (long long)p->rows, (long long)p->columns);
}

/// Groups whose columns are not neighbours, or another width than 4 bits: every weight as F16.
static wt_status widen_packed(wt_llm *llm, const packed *p, wt__linear *m)
{
    const turning t = {.from = p, .halves = wt__llm_take(llm, sizeof *t.halves * (size_t)(p->rows * p->columns))};
    if (!t.halves) return no_room(p);
    m->weight = (wt_tensor){t.halves, WT_DTYPE_F16, 2, {p->rows, p->columns}};
    return run_strips(widen_strip, &t);
}

/// Rows of nibbles; groups are cut to a power of two up to 128 columns, which share what the group had.
static wt_status turn_packed(wt_llm *llm, const packed *p, wt__linear *m)
{
    const int64_t power = p->group & -p->group, step = power < 128 ? power : 128, n = p->columns / step;
    atomic_bool uneven = false;
    const turning t = {.from = p,
                       .step = step,
                       .q = wt__llm_take(llm, (size_t)(p->rows * p->columns / 2)),
                       .zeros = wt__llm_take(llm, (size_t)(p->rows * n)),
                       .scales = wt__llm_take(llm, sizeof *t.scales * (size_t)(p->rows * n)),
                       .uneven = &uneven};
    if (!t.q || !t.zeros || !t.scales) return no_room(p);
    wt_status status = run_strips(turn_strip, &t);
    *m = (wt__linear){.weight = {t.q, WT_DTYPE_U8, 2, {p->rows, p->columns}},
                      .bias = m->bias,
                      .scales = t.scales,
                      .zeros = atomic_load(&uneven) ? t.zeros : NULL,
                      .scale_rows = 1,
                      .scale_columns = (int)step,
                      .nibbles = true};
    return status;
}

/// Do columns' groups lie as without g_idx? Errors: one that is out of range.
static wt_status check_order(packed *p, const char *stem)
{
    const int64_t n_groups = p->columns / p->group;
    bool plain = true;
    if (!p->order) return WT_OK;
    for (int64_t k = 0; k < p->columns; k++) {
        const int64_t group = group_of(p, k);
        if (group < 0 || group >= n_groups)
            return wt_fail(WT_ERR_FORMAT, "llm: %s.g_idx has group %lld for column %lld, want 0..%lld", stem,
                           (long long)group, (long long)k, (long long)n_groups - 1);
        plain &= group == k / p->group;
    }
    if (plain) p->order = NULL;
    return WT_OK;
}

static wt_status bind_packed(wt_llm *llm, const char *stem, int64_t rows, int64_t columns, wt__linear *m)
{
    char name[160];
    const wt_quant_config *q = &llm->config.quant;
    packed p = {.rows = rows,
                .columns = columns,
                .group = q->group_size ? q->group_size : columns,
                .bits = q->bits,
                .less = q->method == WT_QUANT_GPTQ && !q->zero_points_exact,
                .awq = q->method == WT_QUANT_AWQ};
    const int a_word = 32 / p.bits;
    if (columns % p.group || rows % a_word || columns % a_word)
        return wt_fail(WT_ERR_FORMAT, "llm: %s is [%lld][%lld], want multiples of %d, and columns of %lld", stem,
                       (long long)rows, (long long)columns, a_word, (long long)p.group);
    const int64_t n = columns / p.group;
    wt_status status = p.awq ? get(llm, stem, "qweight", WT_DTYPE_I32, columns, rows / 8, &p.weight)
                             : get(llm, stem, "qweight", WT_DTYPE_I32, columns / a_word, rows, &p.weight);
    if (!status) status = get(llm, stem, "scales", WT_N_DTYPES, n, rows, &p.scales);
    if (!status && (!p.awq || q->zero_points))
        status = get(llm, stem, "qzeros", WT_DTYPE_I32, n, rows / a_word, &p.zeros);
    if (!status && !is_float(p.scales->dtype))
        status = wt_fail(WT_ERR_FORMAT, "llm: %s.scales is of type %s, want a float type", stem,
                         wt_dtype_name(p.scales->dtype));
    p.order = p.awq ? NULL : find(llm, stem, "g_idx", name);
    if (!status && p.order && (p.order->dtype != WT_DTYPE_I32 || wt_tensor_elements(p.order) != columns))
        status = wt_fail(WT_ERR_FORMAT, "llm: %s is not [%lld] I32", name, (long long)columns);
    if (!status) status = check_order(&p, stem);
    if (status) return status;
    return p.bits == 4 && !p.order && p.group % 2 == 0 ? turn_packed(llm, &p, m) : widen_packed(llm, &p, m);
}

// ---- the choice

bool wt__llm_is_quantised(const wt_llm *llm, const char *stem)
{
    char name[160];
    if (!llm->config.quant.method) return false;
    const wt_tensor *t = find(llm, stem, "weight", name);
    return t ? t->dtype == WT_DTYPE_F8_E4M3 || t->dtype == WT_DTYPE_I8 : find(llm, stem, "qweight", name) != NULL;
}

wt_status wt__llm_bind_quantised(wt_llm *llm, const char *stem, int64_t rows, int64_t columns, wt__linear *m)
{
    const wt_quant_method method = llm->config.quant.method;
    if (method == WT_QUANT_AWQ || method == WT_QUANT_GPTQ) return bind_packed(llm, stem, rows, columns, m);
    const wt_tensor *t;
    const wt_dtype dtype = llm->config.quant.floats ? WT_DTYPE_F8_E4M3 : WT_DTYPE_I8;
    wt_status status = get(llm, stem, "weight", dtype, rows, columns, &t);
    if (status) return status;
    m->weight = *t;
    return bind_scales(llm, stem, m);
}
