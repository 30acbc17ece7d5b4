// What a language model's steps are made of: products with each type of weights, and the sampler.
#include "../models/llm/matrix.h"
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/llm.h>

typedef struct opening {
    const char *path;
    wt_llm *llm;
} opening;

static wt_status open_it(void *user)
{
    opening *o = user;
    return wt_llm_open(o->path, &o->llm);
}

static void close_it(void *user) { wt_llm_close(((opening *)user)->llm); }

/// A checkpoint of llama2.c carries its config: config.json is read through stdio, which does without its buffer.
static void opening_survives_failing_allocations(void **state)
{
    (void)state;
    const char *path = shared_data("llm/stories260K/stories260K.bin");
    if (!path) skip();
    opening o = {.path = path};
    assert_survives_failing_alloc(open_it, close_it, &o);
}

static wt_status make_sampler(void *user)
{
    return wt_sampler_create(&(wt_sampler_config){.temperature = 1}, 100, (wt_sampler **)user);
}

static void drop_sampler(void *user) { wt_sampler_destroy(*(wt_sampler **)user); }

static void a_sampler_survives_failing_allocations(void **state)
{
    (void)state;
    wt_sampler *sampler;
    assert_survives_failing_alloc(make_sampler, drop_sampler, &sampler);
}

// ---- products

enum { ROWS = 7, VECTORS = 6, MOST_COLUMNS = 512 };

typedef struct sums {
    double sum, size; ///< of the products and of their sizes
    double rounding;  ///< what vectors rounded to bytes may err by: half a step of each block, times the weights
} sums;

static sums sums_of(const float *w, const float *x, int n)
{
    sums s = {0};
    for (int k = 0; k < n; k += 32) {
        double most = 0, weights = 0;
        for (int c = k; c < k + 32 && c < n; c++) {
            s.sum += (double)w[c] * x[c];
            s.size += fabs((double)w[c] * x[c]);
            most = fmax(most, fabs(x[c]));
            weights += fabs(w[c]);
        }
        s.rounding += weights * most / 254;
    }
    return s;
}

static float vectors[VECTORS * MOST_COLUMNS], widened[ROWS * MOST_COLUMNS], products[VECTORS * ROWS];

/// HALVES: bf16, which has 8 bits of a number; PARTS: three of them.
typedef enum vectors_as { FLOATS, BYTES, HALVES, PARTS } vectors_as;

/// BF16's vectors where the processor has products of bf16 and not better ones.
static vectors_as bf16_vectors(void)
{
    if (wt__has_amx()) return FLOATS;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    return __builtin_cpu_supports("avx512bf16") ? HALVES : FLOATS;
#else
    return FLOATS;
#endif
}

/// A sum of n floats rounds by n / 16 lanes + 6 steps of 6e-8 at most; vectors as bytes err by what sums_of tells and
/// a hundredth, as a block's scale is a float, and as bf16 by 2^-8, and both there and in parts by numbers below
/// 2^-126, which count as 0. Tiles add three sums of 32 columns, of 16 pairs each, to a sum.
static double bound_of(const sums *s, int columns, vectors_as as)
{
    const double rounding = as == BYTES ? 1.01 * s->rounding : as == HALVES ? s->size / 256 : 0;
    const double lost = as == HALVES || as == PARTS ? 2 * 0x1p-126 * columns : 0;
    return s->size * 6e-8 * (as == PARTS ? columns / 32 * 3 + 20 : columns / 16 + 6) + rounding + lost;
}

static void compare_products(const char *what, int columns, vectors_as as)
{
    for (int t = 0; t < VECTORS; t++)
        for (int r = 0; r < ROWS; r++) {
            const sums s = sums_of(widened + r * columns, vectors + t * columns, columns);
            const double got = products[t * ROWS + r];
            if (!(fabs(got - s.sum) <= bound_of(&s, columns, as)))
                fail_msg("%s [%d][%d], vector %d: %.9g, want %.9g", what, r, columns, t, got, s.sum);
        }
}

/// A vector alone gives the bits that it gives among others, whose rows are in `products`.
static void compare_with_one_by_one(const wt__product *all, wt__strips strips, const char *what)
{
    float rows[ROWS];
    wt__product one = *all;
    one.n = 1;
    one.out = rows;
    for (int t = 0; t < VECTORS; t++, one.x += one.x_stride) {
        strips(&one, 0, ROWS);
        if (memcmp(rows, products + t * ROWS, sizeof rows)) fail_msg("%s: vector %d alone differs", what, t);
    }
}

/// Widened rows are in `widened`. All of this processor's functions for the type, and the choice of wt__multiply.
static void check_products(const wt__linear *w, const char *what)
{
    static _Alignas(32) float scratch[4 * MOST_COLUMNS];
    const int columns = (int)w->weight.shape[1];
    wt__product p = {.linear = w,
                     .x = vectors,
                     .out = products,
                     .rows = scratch,
                     .x_stride = columns,
                     .out_stride = ROWS,
                     .n = VECTORS,
                     .exact = true};
    wt__multiply(&p, 0, ROWS);
    compare_products(what, columns, FLOATS);
    p.exact = false;
    memset(products, 0, sizeof products);
    wt__multiply(&p, 0, 3);
    wt__multiply(&p, 3, ROWS - 3);
    const bool bytes = w->nibbles || w->weight.dtype == WT_DTYPE_I8 || wt_dtype_block(w->weight.dtype) > 1;
    compare_products(what, columns, bytes ? BYTES : w->weight.dtype == WT_DTYPE_BF16 ? bf16_vectors() : FLOATS);
    compare_with_one_by_one(&p, wt__multiply, what);
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    const wt__strips strips = wt__strips_avx2[w->weight.dtype];
    const bool odd = bytes && (columns % 32 || w->scale_columns % 32); // not for it
    if (!__builtin_cpu_supports("x86-64-v3") || !strips || odd) return;
    memset(products, 0, sizeof products);
    strips(&p, 0, ROWS);
    compare_products(what, columns, bytes ? BYTES : FLOATS);
    compare_with_one_by_one(&p, strips, what);
#endif
}

static void make_vectors(uint64_t *seed, int columns)
{
    for (int j = 0; j < VECTORS * columns; j++) vectors[j] = noise(seed);
}

enum { N_ROWS = 45, N_VECTORS = 53, COLUMNS = 2085 };

/// Rows of BF16 with more rows, columns and vectors than are taken at a time, none of them a multiple of that.
typedef struct many {
    uint16_t data[N_ROWS * COLUMNS];
    float w[N_ROWS * COLUMNS], x[N_VECTORS * COLUMNS], all[N_VECTORS * N_ROWS], scratch[4 * COLUMNS];
    _Alignas(64) unsigned char laid[(N_VECTORS + 15) / 16 * ((COLUMNS + 31) / 32) * 3072];
    wt__linear linear;
    wt__product p;
} many;

static many *make_many(float (*number)(uint64_t *seed))
{
    many *m = aligned_alloc(64, sizeof *m);
    assert_non_null(m);
    uint64_t seed = 9;
    for (int k = 0; k < N_ROWS * COLUMNS; k++) {
        const float v = noise(&seed);
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        m->data[k] = (uint16_t)(bits >> 16);
    }
    for (int k = 0; k < N_VECTORS * COLUMNS; k++) m->x[k] = number(&seed);
    m->linear = (wt__linear){.weight = {m->data, WT_DTYPE_BF16, 2, {N_ROWS, COLUMNS}}};
    wt_tensor_to_f32(&m->linear.weight, 0, N_ROWS * COLUMNS, m->w);
    m->p = (wt__product){.linear = &m->linear, .x = m->x, .out = m->all, .rows = m->scratch, .n = N_VECTORS};
    m->p.x_stride = COLUMNS, m->p.out_stride = N_ROWS;
    return m;
}

static void multiply_many(const many *m, const wt__product *p)
{
    for (int k = 0; p->laid && k < wt__amx_blocks(p->n); k++) wt__amx_lay(p, k);
    wt__multiply(p, 0, 32);
    wt__multiply(p, 32, m->linear.weight.shape[0] - 32);
}

/// How BF16 is multiplied: exactly in floats, as it is by default, and a prompt's vectors by AMX where that is there.
typedef enum way { EXACT, DEFAULT, LAID, N_WAYS } way;

static vectors_as go(many *m, way way)
{
    m->p.exact = way == EXACT;
    m->p.laid = way == LAID && wt__suits_amx(&m->linear) ? m->laid : NULL;
    return m->p.laid ? PARTS : way == EXACT ? FLOATS : bf16_vectors();
}

/// Against sums in double, and bit for bit against those that each vector gives alone and with some others.
static void many_products_of_bf16_are_those_of_one(void **state)
{
    (void)state;
    static const char *const names[] = {"floats", "bytes", "bf16 dots", "AMX"};
    many *m = make_many(noise);
    for (way way = EXACT; way < N_WAYS; way++) {
        const vectors_as as = go(m, way);
        multiply_many(m, &m->p);
        for (int t = 0, n = 1; t < N_VECTORS; t += n, n = n % 20 + 1) {
            float some[20][N_ROWS];
            wt__product p = m->p;
            p.x = m->x + t * COLUMNS, p.out = some[0], p.n = n = t + n > N_VECTORS ? N_VECTORS - t : n;
            multiply_many(m, &p);
            assert_memory_equal(m->all + t * N_ROWS, some[0], sizeof some[0] * (size_t)n);
        }
        for (int k = 0; k < N_VECTORS * N_ROWS; k++) {
            const sums s = sums_of(m->w + k % N_ROWS * COLUMNS, m->x + k / N_ROWS * COLUMNS, COLUMNS);
            assert_true(fabs(m->all[k] - s.sum) <= bound_of(&s, COLUMNS, as));
        }
        print_message("BF16 by %s\n", names[as]);
    }
    free(m);
}

/// Infinities, NaN and numbers as large as floats can be: what sums in double say of them.
static void products_of_bf16_are_finite_where_sums_are(void **state)
{
    (void)state;
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f};
    many *m = make_many(noise);
    for (int t = 0; t < 20; t++) m->x[t * COLUMNS + 97 * t] = odd[t % 5];
    for (int t = 10; t < 20; t++) m->x[t * COLUMNS + 5] = INFINITY;
    for (int k = 0; k < N_ROWS * COLUMNS; k++) m->data[k] &= 0xbfff; // below 2
    wt_tensor_to_f32(&m->linear.weight, 0, N_ROWS * COLUMNS, m->w);
    for (way way = EXACT; way < N_WAYS; way++) {
        go(m, way);
        multiply_many(m, &m->p);
        for (int k = 0; k < 20 * N_ROWS; k++) {
            const double want = sums_of(m->w + k % N_ROWS * COLUMNS, m->x + k / N_ROWS * COLUMNS, COLUMNS).sum;
            const float got = m->all[k];
            assert_int_equal(isnan(got), isnan(want));
            if (fabs(want) < 3.3e38) assert_true(isfinite(got));
            if (isinf(want)) assert_true(got == (float)want);
        }
    }
    free(m);
}

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
/// Of every size that floats have but those whose last part would be below 2^-126.
static float any_number(uint64_t *seed) { return ldexpf(noise(seed), (int)(noise(seed) * 100)); }

/// What AMX is handed: of each 32 columns three tiles of pairs of columns, whose sum is the vector's number.
static void parts_of_vectors_are_the_vectors(void **state)
{
    (void)state;
    if (!__builtin_cpu_supports("x86-64-v4")) skip();
    many *m = make_many(any_number);
    wt__product p = m->p;
    uint16_t(*laid)[(COLUMNS + 31) / 32][3][16][16][2] = p.laid = m->laid;
    for (int k = 0; k < wt__amx_blocks(N_VECTORS); k++) wt__amx_lay(&p, k);
    for (int t = 0; t < 16 * wt__amx_blocks(N_VECTORS); t++)
        for (int c = 0; c < (COLUMNS + 31) / 32 * 32; c++) {
            float sum = 0;
            for (int part = 2; part >= 0; part--) {
                const uint32_t bits = (uint32_t)laid[t / 16][c / 32][part][c % 32 / 2][t % 16][c % 2] << 16;
                float v;
                memcpy(&v, &bits, sizeof v);
                sum += v;
            }
            assert_true(sum == (t < N_VECTORS && c < COLUMNS ? m->x[t * COLUMNS + c] : 0));
        }
    free(m);
}
#endif

/// Types of weights, awkward sizes, against sums in double.
static void products_equal_sums_in_double(void **state)
{
    (void)state;
    static const wt_dtype types[] = {WT_DTYPE_F32,  WT_DTYPE_F16,  WT_DTYPE_BF16, WT_DTYPE_Q8_0,
                                     WT_DTYPE_Q4_0, WT_DTYPE_Q4_K, WT_DTYPE_Q6_K, WT_DTYPE_F8_E4M3};
    static unsigned char data[ROWS * MOST_COLUMNS * 8 + 1];
    uint64_t seed = 3;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const int block = wt_dtype_block(types[k]);
        for (int columns = block > 1 ? block : 1; columns <= MOST_COLUMNS; columns = block == 256  ? columns + 256
                                                                                     : block == 32 ? 2 * columns + 32
                                                                                                   : 3 * columns + 1) {
            const wt__linear w = {.weight = {data + 1, types[k], 2, {ROWS, columns}}}; // at an odd address
            for (size_t j = 0; j < sizeof data; j++) data[j] = (unsigned char)(noise(&seed) * 60 + 60); // all finite
            make_vectors(&seed, columns);
            wt_tensor_to_f32(&w.weight, 0, ROWS * columns, widened);
            check_products(&w, wt_dtype_name(types[k]));
        }
    }
}

/// Scales a tensor, a row, a block and a group, with and without zeros, applied here one by one.
static void scaled_weights_are_multiplied_as_they_stand(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        wt_dtype dtype;
        int columns, scale_rows, scale_columns;
        bool nibbles, zeros;
    } cases[] = {
        {"fp8, tensor", WT_DTYPE_F8_E4M3, 65, ROWS, 65, false, false},
        {"fp8, row", WT_DTYPE_F8_E4M3, 96, 1, 96, false, false},
        {"fp8, block", WT_DTYPE_F8_E4M3, 300, 3, 128, false, false},
        {"fp8, row of 64s", WT_DTYPE_F8_E4M3, 192, 1, 192, false, false},
        {"fp8, block of 64s", WT_DTYPE_F8_E4M3, 512, 3, 128, false, false},
        {"int8, row", WT_DTYPE_I8, 256, 1, 256, false, false},
        {"int8, odd", WT_DTYPE_I8, 77, 1, 77, false, false},
        {"int4, 32", WT_DTYPE_U8, 96, 1, 32, true, false},
        {"int4, one group", WT_DTYPE_U8, 128, 1, 128, true, true},
        {"int4, 128 with zeros", WT_DTYPE_U8, 512, 1, 128, true, true},
        {"int4, 48 with zeros", WT_DTYPE_U8, 96, 1, 48, true, true},
    };
    static unsigned char data[ROWS * MOST_COLUMNS], zeros[ROWS * 16];
    float scales[ROWS * 16];
    uint64_t seed = 5;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const int columns = cases[n].columns, per = cases[n].scale_columns, a_row = (columns + per - 1) / per;
        for (size_t k = 0; k < sizeof data; k++) {
            data[k] = (unsigned char)(noise(&seed) * 127 + 128);
            if (cases[n].dtype == WT_DTYPE_F8_E4M3 && (data[k] & 0x7f) == 0x7f) data[k]--; // NaN
        }
        for (int k = 0; k < ROWS * 16; k++) {
            scales[k] = 1 + noise(&seed) / 2;
            zeros[k] = (unsigned char)(noise(&seed) * 7.9f + 8);
        }
        const wt__linear w = {.weight = {data, cases[n].dtype, 2, {ROWS, columns}},
                              .scales = scales,
                              .zeros = cases[n].zeros ? zeros : NULL,
                              .scale_rows = cases[n].scale_rows,
                              .scale_columns = per,
                              .nibbles = cases[n].nibbles};
        make_vectors(&seed, columns);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < columns; c++) {
                const int at = r / cases[n].scale_rows * a_row + c / per;
                float *q = &widened[r * columns + c];
                if (w.nibbles)
                    *q = (float)((data[r * columns / 2 + c / 2] >> (c % 2 ? 4 : 0) & 15) - (w.zeros ? zeros[at] : 8));
                else
                    wt_tensor_to_f32(&w.weight, r * columns + c, 1, q);
                *q *= scales[at];
            }
        check_products(&w, cases[n].what);
    }
}

/// More rows than are dealt with at a time: each gives the bits that it gives alone, and those of a call that goes on
/// where another began.
static void rows_do_not_depend_on_those_beside(void **state)
{
    (void)state;
    enum { MANY_ROWS = 1200, COLUMNS = 64, MORE = 37 };
    static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_Q8_0, WT_DTYPE_F8_E4M3};
    static unsigned char data[MANY_ROWS * COLUMNS * 4];
    static float all[MANY_ROWS], one[MANY_ROWS];
    static _Alignas(32) float scratch[4 * 96];
    uint64_t seed = 7;
    make_vectors(&seed, COLUMNS);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        for (size_t j = 0; j < sizeof data; j++) data[j] = (unsigned char)(noise(&seed) * 60 + 60);
        const wt__linear w = {.weight = {data, types[k], 2, {MANY_ROWS, COLUMNS}}};
        wt__product p = {.linear = &w, .x = vectors, .out = all, .rows = scratch, .x_stride = COLUMNS, .n = 1};
        wt__multiply(&p, 0, MANY_ROWS - MORE);
        p.prepared = true;
        wt__multiply(&p, MANY_ROWS - MORE, MORE);
        p.prepared = false;
        p.out = one;
        for (int r = 0; r < MANY_ROWS; r++) wt__multiply(&p, r, 1);
        for (int r = 0; r < MANY_ROWS; r++)
            if (memcmp(&all[r], &one[r], sizeof *all))
                fail_msg("%s, row %d: %g, alone %g", wt_dtype_name(types[k]), r, all[r], one[r]);
    }
}

#ifdef __x86_64__
/// e4m3 below 2^-6, a number a row.
static void subnormal_weights_count_in_a_thread_that_flushes_them(void **state)
{
    (void)state;
    enum { COLUMNS = 64, FLUSHES = 0x8040 };
    static unsigned char data[ROWS][COLUMNS];
    static _Alignas(32) float scratch[4 * 96];
    const wt__linear w = {.weight = {data, WT_DTYPE_F8_E4M3, 2, {ROWS, COLUMNS}}};
    const wt__product p = {
        .linear = &w, .x = vectors, .out = products, .rows = scratch, .x_stride = COLUMNS, .out_stride = ROWS, .n = 1};
    for (int r = 0; r < ROWS; r++) data[r][9 * r] = (unsigned char)(r + 1);
    for (int k = 0; k < COLUMNS; k++) vectors[k] = 1;
    const unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | FLUSHES);
    wt__multiply(&p, 0, ROWS);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode);
    for (int r = 0; r < ROWS; r++) assert_float_equal(products[r], (float)(r + 1) * 0x1p-9f, 0);
    assert_int_equal(after & FLUSHES, FLUSHES);
}
#endif

/// Blocks of each type whose weights are as large as can be, a scale of 1, and vectors of one number or its opposite:
/// what sums of bytes have room for.
static void the_largest_bytes_fit(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        wt_dtype dtype;
        unsigned char weights;
        int halves_at, n_halves; ///< scales in a block, 1 each
        int bytes_at, n_bytes;   ///< scales of a byte, -128 each
    } cases[] = {
        {"Q8_0, -128", WT_DTYPE_Q8_0, 0x80, 0, 1, 0, 0},  {"Q8_0, 127", WT_DTYPE_Q8_0, 0x7f, 0, 1, 0, 0},
        {"Q4_0, 7", WT_DTYPE_Q4_0, 0xff, 0, 1, 0, 0},     {"Q4_0, -8", WT_DTYPE_Q4_0, 0, 0, 1, 0, 0},
        {"Q4_K", WT_DTYPE_Q4_K, 0xff, 0, 2, 0, 0},        {"Q6_K, 31", WT_DTYPE_Q6_K, 0xff, 208, 1, 192, 16},
        {"Q6_K, -32", WT_DTYPE_Q6_K, 0, 208, 1, 192, 16}, {"int8", WT_DTYPE_I8, 0x80, 0, 0, 0, 0},
        {"int4", WT_DTYPE_U8, 0xff, 0, 0, 0, 0},
    };
    static unsigned char data[ROWS * MOST_COLUMNS * 2];
    float ones[ROWS * MOST_COLUMNS / 128];
    for (size_t k = 0; k < sizeof ones / sizeof *ones; k++) ones[k] = 1;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const size_t bytes = wt_dtype_bytes(cases[n].dtype, wt_dtype_block(cases[n].dtype));
        memset(data, cases[n].weights, sizeof data);
        for (size_t at = 0; at + bytes <= sizeof data; at += bytes) {
            static const unsigned char halves[] = {0, 0x3c, 0, 0x3c};
            memset(data + at + cases[n].bytes_at, 0x80, (size_t)cases[n].n_bytes);
            memcpy(data + at + cases[n].halves_at, halves, 2 * (size_t)cases[n].n_halves);
        }
        const bool nibbles = cases[n].dtype == WT_DTYPE_U8;
        const wt__linear w = {.weight = {data, cases[n].dtype, 2, {ROWS, MOST_COLUMNS}},
                              .scales = cases[n].n_halves ? NULL : ones,
                              .scale_rows = 1,
                              .scale_columns = nibbles ? 128 : MOST_COLUMNS,
                              .nibbles = nibbles};
        for (int r = 0; r < ROWS; r++) wt__row_widen(&w, r, widened + r * MOST_COLUMNS);
        for (int k = 0; k < VECTORS * MOST_COLUMNS; k++) vectors[k] = k / MOST_COLUMNS % 2 ? -1 : 1;
        check_products(&w, cases[n].what);
    }
}

// ---- sampling

static void shares_of(const wt_sampler_config *config, const float *logits, int n, int n_draws, double *shares)
{
    for (int k = 0; k < n; k++) shares[k] = 0;
    wt_sampler *s;
    assert_ok(wt_sampler_create(config, n, &s));
    for (int k = 0; k < n_draws; k++) {
        int32_t id;
        assert_ok(wt_sampler_pick(s, logits, &id));
        shares[id] += 1.0 / n_draws;
    }
    wt_sampler_destroy(s);
}

/// Shares of 20000 draws are within 0.02 of the probabilities: 5.6 standard deviations.
static void check_shares(const wt_sampler_config *config, const double *want)
{
    const float logits[5] = {logf(0.1f), logf(0.4f), logf(0.05f), logf(0.25f), logf(0.2f)};
    double shares[5];
    shares_of(config, logits, 5, 20000, shares);
    for (int k = 0; k < 5; k++)
        if (fabs(shares[k] - want[k]) > (want[k] > 0 ? 0.02 : 0)) fail_msg("%d: %g, want %g", k, shares[k], want[k]);
}

static void draws_follow_the_probabilities(void **state)
{
    (void)state;
    const wt_logit_bias ban = {1, -INFINITY};
    check_shares(&(wt_sampler_config){.temperature = 1}, (double[]){0.1, 0.4, 0.05, 0.25, 0.2});
    check_shares(&(wt_sampler_config){.temperature = 0}, (double[]){0, 1, 0, 0, 0});
    check_shares(&(wt_sampler_config){.temperature = 1, .top_k = 2}, (double[]){0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
    check_shares(&(wt_sampler_config){.temperature = 1, .top_p = 0.7},
                 (double[]){0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85});
    check_shares(&(wt_sampler_config){.temperature = 1, .min_p = 0.3},
                 (double[]){0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85});
    check_shares(&(wt_sampler_config){.temperature = 1, .top_k = 3, .top_p = 0.6},
                 (double[]){0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
    // a mean surprise of 1.415: 0.25 (1.386), 0.2 (1.609) and 0.4 (0.916) are nearest, in this order
    check_shares(&(wt_sampler_config){.temperature = 1, .typical_p = 0.2}, (double[]){0, 0, 0, 1, 0});
    check_shares(&(wt_sampler_config){.temperature = 1, .typical_p = 0.4},
                 (double[]){0, 0, 0, 0.25 / 0.45, 0.2 / 0.45});
    check_shares(&(wt_sampler_config){.temperature = 1, .typical_p = 0.8},
                 (double[]){0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85});
    check_shares(&(wt_sampler_config){.temperature = 1, .top_k = 2, .typical_p = 0.5},
                 (double[]){0, 1, 0, 0, 0}); // of 0.615 and 0.385, with a mean of 0.666, surprises 0.486 and 0.956
    check_shares(&(wt_sampler_config){.temperature = 0.5},
                 (double[]){0.01 / 0.275, 0.16 / 0.275, 0.0025 / 0.275, 0.0625 / 0.275, 0.04 / 0.275});
    check_shares(&(wt_sampler_config){.temperature = 1, .biases = &ban, .n_biases = 1},
                 (double[]){0.1 / 0.6, 0, 0.05 / 0.6, 0.25 / 0.6, 0.2 / 0.6});
}

static void penalties_count_what_was_seen(void **state)
{
    (void)state;
    const float logits[3] = {4, 3, -1};
    const wt_sampler_config configs[] = {
        {.repetition_penalty = 2}, {.presence_penalty = 1.5}, {.frequency_penalty = 0.6}};
    // what was forgotten is not penalised
    wt_sampler *again;
    assert_ok(wt_sampler_create(&configs[1], 3, &again));
    for (int k = 0; k < 3; k++) {
        int32_t id;
        assert_ok(wt_sampler_pick(again, logits, &id));
        assert_int_equal(id, 0);
        wt_sampler_forget(again);
    }
    wt_sampler_destroy(again);
    // 4 3 -1: 2 3 -1, 2 1.5 -1, then on | 2.5 3, 2.5 1.5 | 3.4 3, 2.8 3, 2.8 2.4
    static const int32_t want[3][4] = {{0, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    for (int c = 0; c < 3; c++) {
        wt_sampler *s;
        assert_ok(wt_sampler_create(&configs[c], 3, &s));
        for (int k = 0; k < 4; k++) {
            int32_t id;
            assert_ok(wt_sampler_pick(s, logits, &id));
            assert_int_equal(id, want[c][k]);
        }
        wt_sampler_destroy(s);
    }
}

static void bad_logits_are_reported(void **state)
{
    (void)state;
    wt_sampler *s;
    int32_t id;
    assert_ok(wt_sampler_create(&(wt_sampler_config){.temperature = 1}, 2, &s));
    assert_fails(wt_sampler_pick(s, (float[]){1, NAN}, &id), WT_ERR_FORMAT,
                 "sampler: the logit of token 1 is not a number");
    assert_int_equal(wt_sampler_pick(s, (float[]){-INFINITY, -INFINITY}, &id), WT_ERR_FORMAT);
    wt_sampler_destroy(s);
    assert_fails(wt_sampler_create(&(wt_sampler_config){.top_p = 1.5}, 2, &s), WT_ERR_BAD_ARG,
                 "sampler: top_p 1.5, want 0..1");
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives_failing_allocations),
        cmocka_unit_test(a_sampler_survives_failing_allocations),
        cmocka_unit_test(products_equal_sums_in_double),
        cmocka_unit_test(many_products_of_bf16_are_those_of_one),
        cmocka_unit_test(products_of_bf16_are_finite_where_sums_are),
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
        cmocka_unit_test(parts_of_vectors_are_the_vectors),
#endif
        cmocka_unit_test(scaled_weights_are_multiplied_as_they_stand),
        cmocka_unit_test(rows_do_not_depend_on_those_beside),
#ifdef __x86_64__
        cmocka_unit_test(subnormal_weights_count_in_a_thread_that_flushes_them),
#endif
        cmocka_unit_test(the_largest_bytes_fit),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(penalties_count_what_was_seen),
        cmocka_unit_test(bad_logits_are_reported),
    };
    return cmocka_run_group_tests_name("llm parts", tests, NULL, NULL);
}
