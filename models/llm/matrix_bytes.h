/// Products of bytes for x86-64-v3 and up; the file that includes this names the instructions by a pragma and DOT.
///
/// A vector is rounded to d q for each 32 numbers, d = max |x| / 127, so that it errs by at most d / 2 a number, 0.4 %
/// of the largest of the 32. A weight is scale (w - zero); sums of w q are exact in 32 bits, and so is less = - zero
/// times the sum of q.
#ifndef WT_LLM_MATRIX_BYTES_H
#define WT_LLM_MATRIX_BYTES_H

#include "matrix_halves.h"

enum { BLOCK = 32, ROWS = 4, MOST_STEP_BYTES = 272 };
#ifdef __AVX512VNNI__
enum { TOGETHER = 2 }; // rows that share registers of four vectors
#else
enum { TOGETHER = 1 };
#endif

/// A vector; in which order is a form's own.
typedef struct bytes {
    int8_t *q;     ///< [columns]
    float *d;      ///< [columns / 32], or twice
    float *sum;    ///< [columns / 32] d times the sum of q
    int32_t *less; ///< [columns / 4] of the type's zero, or fewer
    float *lanes;  ///< [columns / 8] d of each lane; the second half of `less`
} bytes;

/// 32 numbers of a vector.
typedef struct block {
    __m256i q, sums; ///< 32 bytes; of four neighbours each
    float d;
} block;

/// What all rows have in common: divisions, which take as long as a hundred columns.
typedef struct shape {
    const uint8_t *data;
    int64_t row_bytes, n_steps;
    int64_t groups_a_row; ///< of U4
    uint64_t groups;      ///< of U4: groups in 128 columns, times 2^32, rounded up
    int blocks;           ///< of U4: that share a scale
} shape;

typedef struct weights {
    const uint8_t *row, *at; ///< at: of the step
    const uint8_t *ahead;    ///< what a step fetches before its turn
    const float *scales;     ///< of U4: the row's
    const uint8_t *zeros;    ///< of U4: the row's; NULL = 8
    int64_t group;           ///< of U4: that of the step's 128 columns
    int blocks;              ///< of U4: in a group
} weights;

/// A sum's lanes: a type uses the eight, or where there are such registers the sixteen.
typedef struct lanes {
    __m256 eight;
#ifdef __AVX512VNNI__
    __m512 sixteen;
#endif
} lanes;

/// How a type is multiplied: a step of some columns at a time.
typedef struct form {
    /// The rows' k-th step, with n vectors, whose lanes are added to sums.
    void (*step)(const weights *w, int64_t k, const bytes *x, const int n_rows, const int n, lanes sums[][VECTORS]);
    void (*place)(const block *b, int64_t k, int zero, bytes *x); ///< a vector's k-th block to where the step has it
    int columns, step_bytes, zero;
} form;

/// Of what comes later bytes first .. end - 1.
WT_INLINE void fetch(const weights *w, const int first, const int end)
{
    for (int b = first; b < end; b += 64) __builtin_prefetch(w->ahead + b, 0, 2);
}

WT_INLINE __m256 half_at(const uint8_t *p)
{
    short h;
    memcpy(&h, p, sizeof h);
    return _mm256_cvtph_ps(_mm_set1_epi16(h));
}

WT_INLINE __m256 scaled(__m256i dots, __m256 scale, __m256 sum)
{
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, sum);
}

// ---- vectors to bytes

WT_INLINE float most_of(__m256 v)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// Of a register of 32 bits the sum.
WT_INLINE int sum_of_dwords(__m256i v)
{
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);
}

WT_INLINE block round_block(const float *x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 v[4], most = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_loadu_ps(x + 8 * i);
        most = _mm256_max_ps(_mm256_andnot_ps(sign, v[i]), most);
    }
    const float largest = most_of(most), d = largest / 127;
    const __m256 by = _mm256_set1_ps(d > 0 ? 1 / d : 0);
    __m256i n[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) n[i] = _mm256_cvtps_epi32(v[i] * by);
    __m256i q = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    q = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return (block){q, DOT(_mm256_setzero_si256(), _mm256_set1_epi8(1), q), d};
}

/// The even numbers come first.
WT_INLINE __m256i even_first(__m256i q)
{
    const __m256i within = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12,
                                            14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(q, within), 0xd8);
}

WT_INLINE void place_halves(__m256i q, int8_t *first, int8_t *second)
{
    _mm_storeu_si128((__m128i *)first, _mm256_castsi256_si128(q));
    _mm_storeu_si128((__m128i *)second, _mm256_extracti128_si256(q, 1));
}

/// Bytes in their order, and a scale and sums of four neighbours for each block.
WT_INLINE void place_in_order(const block *b, int64_t k, int zero, bytes *x)
{
    _mm256_storeu_si256((__m256i *)(x->q + BLOCK * k), b->q);
    _mm256_storeu_si256((__m256i *)(x->less + BLOCK / 4 * k), _mm256_mullo_epi32(b->sums, _mm256_set1_epi32(-zero)));
    x->d[k] = b->d;
}

WT_INLINE void place_even_first(const block *b, int64_t k, int zero, bytes *x)
{
    const block even = {even_first(b->q), b->sums, b->d};
    place_in_order(&even, k, zero, x);
}

/// In the scratch of four vectors, with zeros up to whole steps: at most 20 floats a block, or 12 without `less`.
WT_INLINE bytes round_vector(const wt__product *p, const form *f, int t, int slot)
{
    const int64_t columns = p->linear->weight.shape[1], blocks = columns / BLOCK;
    const int64_t whole = (columns + f->columns - 1) / f->columns * (f->columns / BLOCK);
    float *at = p->rows + (size_t)slot * (wt__room(columns) / VECTORS);
    bytes x = {(int8_t *)at, at + 8 * whole, at + 10 * whole, (int32_t *)(at + 12 * whole), at + 16 * whole};
    for (int64_t k = 0; k < whole && !p->prepared; k++) {
        const block none = {0}, b = k < blocks ? round_block(p->x + p->x_stride * t + BLOCK * k) : none;
        f->place(&b, k, f->zero, &x);
    }
    return x;
}

// ---- rows

/// The lanes' sums of one row and four vectors, or of four rows and one, which are the first of their VECTORS.
WT_INLINE __m128 four_sums(lanes sums[][VECTORS], const int n_vectors)
{
    __m256 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const lanes *s = n_vectors == 1 ? sums[i] : &sums[0][i];
        v[i] = s->eight;
#ifdef __AVX512VNNI__
        v[i] += _mm512_castps512_ps256(s->sixteen) + _mm512_extractf32x8_ps(s->sixteen, 1);
#endif
    }
    const __m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    return _mm256_castps256_ps128(halves) + _mm256_extractf128_ps(halves, 1);
}

static shape shape_of(const wt__linear *l, int step_columns)
{
    const int64_t columns = l->weight.shape[1], group = l->nibbles ? l->scale_columns : columns;
    return (shape){.data = l->weight.data,
                   .row_bytes = (int64_t)wt__row_bytes(l),
                   .n_steps = columns / step_columns,
                   .groups_a_row = columns / group,
                   .groups = (((uint64_t)(4 * BLOCK) << 32) + (uint64_t)group - 1) / (uint64_t)group,
                   .blocks = (int)(group / BLOCK)};
}

WT_INLINE weights weights_of(const wt__linear *l, const shape *s, int64_t row)
{
    weights w = {.row = s->data + s->row_bytes * row, .blocks = s->blocks};
    if (!l->nibbles) return w;
    w.scales = l->scales + s->groups_a_row * row;
    w.zeros = l->zeros ? l->zeros + s->groups_a_row * row : NULL;
    return w;
}

/// y of four rows, counted from `first`, with one vector, or of up to TOGETHER with four, row by row; `ahead` bytes are
/// fetched before their turn.
WT_INLINE void bytes_tile(const wt__product *p, const form *f, const shape *s, int64_t first, const int64_t *rows,
                          size_t ahead, const bytes *x, const int n_rows, const int n_vectors, float *y)
{
    weights w[ROWS];
    lanes sums[ROWS][VECTORS];
    for (int r = 0; r < n_rows; r++) {
        w[r] = weights_of(p->linear, s, first + rows[r]);
        for (int j = 0; j < n_vectors; j++) memset(&sums[r][j], 0, sizeof sums[r][j]);
    }
    for (int64_t k = 0; k < s->n_steps; k++) {
        const int64_t group = (int64_t)((uint64_t)k * s->groups >> 32); // a division would take longer than the rest
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            w[r].at = w[r].row + k * f->step_bytes;
            w[r].ahead = w[r].at + ahead;
            w[r].group = group;
        }
        f->step(w, k, x, n_rows, n_vectors, sums);
    }
    const int64_t left = s->row_bytes - s->n_steps * f->step_bytes;
    for (int r = 0; r < n_rows && left; r++) {
        uint8_t last[MOST_STEP_BYTES] = {0}; // scales, too
        memcpy(last, w[r].row + s->n_steps * f->step_bytes, (size_t)left);
        w[r].at = w[r].ahead = last;
        f->step(&w[r], s->n_steps, x, 1, n_vectors, &sums[r]);
    }
    for (int r = 0; r < (n_vectors == 1 ? 1 : n_rows); r++) _mm_storeu_ps(y + 4 * r, four_sums(sums + r, n_vectors));
}

typedef struct bytes_args {
    const wt__product *p;
    const form *f;
    const shape *s;
    const bytes *x;
    int64_t first;
} bytes_args;

WT_INLINE void bytes_of_four(const void *args, const int64_t *rows, float *y)
{
    const bytes_args *a = args;
    bytes_tile(a->p, a->f, a->s, a->first, rows, AHEAD, a->x, ROWS, 1, y);
}

/// Rows from r on with four vectors.
WT_INLINE void bytes_of_vectors(const bytes_args *a, int64_t r, const int n_rows, int t)
{
    int64_t rows[TOGETHER];
    for (int i = 0; i < n_rows; i++) rows[i] = r + i;
    float y[TOGETHER * VECTORS];
    bytes_tile(a->p, a->f, a->s, a->first, rows, (size_t)a->s->row_bytes, a->x, n_rows, VECTORS, y);
    for (int i = 0; i < n_rows; i++) wt__products_store(a->p, a->first + rows[i], 1, t, VECTORS, y + VECTORS * i);
}

/// One vector with four rows at a time, or four vectors with TOGETHER.
WT_INLINE void bytes_strips(const wt__product *p, const form f, int64_t first, int64_t n_rows)
{
    const shape s = shape_of(p->linear, f.columns);
    for (int t = 0; t < p->n;) {
        const int n = p->n - t < VECTORS ? 1 : VECTORS;
        bytes x[VECTORS];
        for (int j = 0; j < n; j++) x[j] = round_vector(p, &f, t + j, j);
        const bytes_args args = {p, &f, &s, x, first};
        if (n == 1) runs(p, first, n_rows, t, bytes_of_four, &args);
        int64_t r = 0;
        for (; r + TOGETHER <= n_rows && n > 1; r += TOGETHER) bytes_of_vectors(&args, r, TOGETHER, t);
        for (; r < n_rows && n > 1; r++) bytes_of_vectors(&args, r, 1, t);
        t += n;
    }
}

#define BYTES(name, step, ...)                                                                                         \
    static void strips_##name(const wt__product *p, int64_t first, int64_t n_rows)                                     \
    {                                                                                                                  \
        bytes_strips(p, (form){step, __VA_ARGS__}, first, n_rows);                                                     \
    }

/// With a step that takes a row at a time.
#define BYTES_BY_ROW(name, place, columns, step_bytes, zero)                                                           \
    WT_INLINE void rows_##name(const weights *w, int64_t k, const bytes *x, const int n_rows, const int n,             \
                               lanes sums[][VECTORS])                                                                  \
    {                                                                                                                  \
        _Pragma("GCC unroll 4") for (int r = 0; r < n_rows; r++)                                                       \
        {                                                                                                              \
            fetch(&w[r], 0, step_bytes);                                                                               \
            step_##name(&w[r], k, x, n, sums[r]);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    BYTES(name, rows_##name, place, columns, step_bytes, zero)

// ---- int4 with groups that are not of 128 columns

/// 16 bytes: the low nibbles in lanes 0 .. 15, the high ones in 16 .. 31.
WT_INLINE __m256i nibbles_at(const uint8_t *p)
{
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    return _mm256_and_si256(_mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)), _mm256_set1_epi8(15));
}

/// A group. Nibbles of neighbours share a byte: the vector lies with the even numbers of a block first. Without zeros
/// `less` is times 8 already.
WT_INLINE void u4_of_row(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const __m256i zero = _mm256_set1_epi32(w->zeros ? w->zeros[k] : 1);
    const __m256 scale = _mm256_set1_ps(w->scales[k]);
    __m256 group[VECTORS];
    for (int j = 0; j < n; j++) group[j] = _mm256_setzero_ps();
    for (int64_t i = 0; i < w->blocks; i++) {
        const __m256i q = nibbles_at(w->at + 16 * i);
        const int64_t b = k * w->blocks + i;
#pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            __m256i less = bytes_at(x[j].less + BLOCK / 4 * b);
            if (w->zeros) less = _mm256_mullo_epi32(less, zero);
            group[j] = scaled(DOT(less, q, bytes_at(x[j].q + BLOCK * b)), _mm256_set1_ps(x[j].d[b]), group[j]);
        }
    }
    for (int j = 0; j < n; j++) sums[j].eight = _mm256_fmadd_ps(group[j], scale, sums[j].eight);
}
WT_INLINE void step_u4(const weights *w, int64_t k, const bytes *x, const int n_rows, const int n,
                       lanes sums[][VECTORS])
{
    for (int r = 0; r < n_rows; r++) {
        fetch(&w[r], 0, BLOCK / 2 * w[r].blocks);
        u4_of_row(&w[r], k, x, n, sums[r]);
    }
}
BYTES(u4, step_u4, place_even_first, p->linear->scale_columns, p->linear->scale_columns / 2, p->linear->zeros ? 1 : 8)

#endif
