// Products of BF16 weights with the vectors of a prompt by AMX, whose tiles hold 16 rows of 32 columns. A vector is
// taken as three parts of bf16, the first 8 bits of each number, the next 8 and the last: so products are exact, and
// sums are of floats as elsewhere, in another order.
//
// The instruction wants pairs of columns of 16 vectors beside each other, so vectors are laid out once for all rows. Of
// weights tiles of rows are copied, some columns at a time: where they lie rows are kilobytes apart, often a power of
// two, for which the nearest cache has too few places. What comes next of them is fetched meanwhile. What is summed for
// a row and a vector, and in which order, does not depend on how many there are. Numbers below 2^-126 count as 0, of
// parts too; an infinite weight gives NaN.
#include "matrix.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v4,amx-tile,amx-bf16")
#    include <cpuid.h>
#    include <immintrin.h>
#    include <stdatomic.h>
#    include <string.h>
#    include <sys/syscall.h>
#    include <unistd.h>
#    include <warptone/simd.h>

enum { SIDE = 16, STEP = 32, PARTS = 3, LINE = 64, TILE_BYTES = SIDE * LINE };
enum { STRETCH = 512, PAIRS = 2, BLOCKS = 16 }; // columns; rows by 32 and vectors by 16 that share them

// ---- may it be used

static bool asks_for_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: Linux, arch/x86
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("x86-64-v4") || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return d & AMX_BF16 && d & AMX_TILE && !syscall(SYS_arch_prctl, REQUEST, TILE_DATA);
}

bool wt__has_amx(void)
{
    static atomic_int known; // 1 no, 2 yes
    int is = atomic_load(&known);
    if (!is) atomic_store(&known, is = 1 + asks_for_tiles());
    return is == 2;
}

// ---- vectors to parts

/// v[i][k] becomes v[k][i].
WT_INLINE void turn(__m512i *v)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#    pragma GCC unroll 4
    for (int s = 1; s < SIDE; s *= 2) {
        const __m512i by = _mm512_set1_epi32(s);
        const __mmask16 odd = _mm512_test_epi32_mask(lanes, by);
        const __m512i even_of = _mm512_mask_add_epi32(lanes, odd, lanes, _mm512_set1_epi32(SIDE - s));
        const __m512i odd_of = _mm512_mask_add_epi32(_mm512_add_epi32(lanes, by), odd, lanes, _mm512_set1_epi32(SIDE));
#    pragma GCC unroll 16
        for (int i = 0; i < SIDE; i++) {
            if (i & s) continue;
            const __m512i a = v[i], b = v[i + s];
            v[i] = _mm512_permutex2var_epi32(a, even_of, b);
            v[i + s] = _mm512_permutex2var_epi32(a, odd_of, b);
        }
    }
}

/// The upper half of each number, and what it leaves. Of one that is not finite all is in the first part.
WT_INLINE __m512i upper(__m512 *x)
{
    const __m512i high = _mm512_and_si512((__m512i)*x, _mm512_set1_epi32((int)0xffff0000));
    const __mmask16 finite = _mm512_cmp_ps_mask(_mm512_abs_ps(*x), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    const __mmask16 nan = _mm512_cmp_ps_mask(*x, *x, _CMP_UNORD_Q);
    *x = _mm512_maskz_sub_ps(finite, *x, (__m512)high);
    return _mm512_mask_or_epi32(high, nan, high, _mm512_set1_epi32(0x400000));
}

/// Three parts of n columns, 32 with zeros behind, in order.
WT_INLINE void part(const float *x, int64_t n, __m512i *parts)
{
    const __mmask32 mask = n < STEP ? (1u << n) - 1 : ~0u;
    const __m512i odd_words = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
                                               27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, x);
    __m512 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> SIDE), x + SIDE);
#    pragma GCC unroll 3
    for (int k = 0; k < PARTS; k++) {
        const __m512i a = upper(&low), b = upper(&high);
        parts[k] = _mm512_permutex2var_epi16(a, odd_words, b);
    }
}

WT_INLINE int64_t columns_of(const wt__product *p) { return p->linear->weight.shape[1]; }

void wt__amx_lay(const wt__product *p, int block)
{
    const int64_t columns = columns_of(p);
    const int n = p->n - block * SIDE < SIDE ? p->n - block * SIDE : SIDE;
    __m512i *to = (__m512i *)((uint8_t *)p->laid + wt__amx_bytes(columns, SIDE) * (size_t)block);
    for (int64_t at = 0; at < columns; at += STEP) {
        __m512i parts[PARTS], v[PARTS][SIDE];
        memset(v, 0, sizeof v);
        for (int j = 0; j < n; j++) {
            part(p->x + p->x_stride * (block * SIDE + j) + at, columns - at, parts);
            for (int k = 0; k < PARTS; k++) v[k][j] = parts[k];
        }
        for (int k = 0; k < PARTS; k++) {
            turn(v[k]);
            for (int i = 0; i < SIDE; i++) *to++ = v[k][i];
        }
    }
}

// ---- tiles

/// ldtilecfg's memory.
typedef struct shape {
    uint8_t palette, start, none[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shape;

static const shape tiles_of_16 = {
    1, 0, {0}, {LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE}, {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

/// 32 columns of 32 rows: two tiles.
typedef uint8_t two_tiles[2 * TILE_BYTES];

/// Sums of 16 rows with 16 vectors.
typedef float sums[SIDE][SIDE];

/// Some columns of 32 rows.
typedef struct stretch {
    two_tiles *tiles; ///< [n_steps]
    int64_t n_steps;
    const uint8_t *next;      ///< what comes after it, to be fetched
    size_t row_bytes;         ///< of rows there
    int first_next, end_next; ///< which of them
} stretch;

WT_INLINE int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

/// Columns k .. k + n - 1 of n_rows rows, with zeros behind both.
static void copy_rows(const wt__product *p, int64_t first, int64_t n_rows, int64_t k, int64_t n, two_tiles *to)
{
    for (int64_t r = 0; r < 2 * SIDE; r++) {
        const uint8_t *from = wt__row(p->linear, first + r) + 2 * k;
        for (int64_t s = 0; STEP * s < n; s++) {
            const int64_t left = r < n_rows ? n - STEP * s : 0;
            const __mmask32 mask = left < STEP ? (1u << left) - 1 : ~0u;
            _mm512_store_si512(to[s] + LINE * r, _mm512_maskz_loadu_epi16(mask, from + LINE * s));
        }
    }
    __asm__ volatile("" ::: "memory"); // the compiler does not know that tiles are loaded from there
}

/// y[j][i] of n_blocks of 16 vectors, `apart` bytes apart, and two of 16 rows get the products of a stretch.
WT_INLINE void add_dots(const stretch *w, const uint8_t *x, size_t apart, const int n_blocks, sums (*y)[2])
{
    _tile_loadd(0, y[0][0], LINE);
    _tile_loadd(1, y[0][1], LINE);
    if (n_blocks > 1) {
        _tile_loadd(2, y[1][0], LINE);
        _tile_loadd(3, y[1][1], LINE);
    }
    for (int64_t s = 0; s < w->n_steps; s++) {
        for (int r = w->first_next; r < w->end_next; r++)
            __builtin_prefetch(w->next + w->row_bytes * (size_t)r + LINE * s, 0, 2);
        _tile_loadd(4, w->tiles[s], LINE);
        _tile_loadd(5, w->tiles[s] + TILE_BYTES, LINE);
#    pragma GCC unroll 3
        for (int i = 0; i < PARTS; i++, x += TILE_BYTES) {
            _tile_loadd(6, x, LINE);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 5, 6);
            if (n_blocks == 1) continue;
            _tile_loadd(7, x + apart, LINE);
            _tile_dpbf16ps(2, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, y[0][0], LINE);
    _tile_stored(1, y[0][1], LINE);
    if (n_blocks == 1) return;
    _tile_stored(2, y[1][0], LINE);
    _tile_stored(3, y[1][1], LINE);
}

/// Of 16 rows, n_rows of which are, and 16 vectors from t on.
static void store_turned(const wt__product *p, int64_t row, int64_t n_rows, int t, sums *y)
{
    const int n = (int)fewer(SIDE, n_rows), n_vectors = (int)fewer(SIDE, p->n - t);
    __m512i v[SIDE];
    float turned[SIDE * SIDE];
    if (n <= 0) return;
    for (int r = 0; r < SIDE; r++) v[r] = _mm512_loadu_si512((*y)[r]);
    turn(v);
    for (int j = 0; j < SIDE; j++) _mm512_mask_storeu_epi32(turned + n * j, (__mmask16)((1u << n) - 1), v[j]);
    wt__products_store(p, row, n, t, n_vectors, turned);
}

/// Sums of a group of rows and vectors, and the rows' stretch; both lie in the second-level cache.
typedef struct group {
    two_tiles tiles[PAIRS][STRETCH / STEP];
    sums y[PAIRS][BLOCKS][2];
    const wt__product *p;
    int64_t first, n_rows;
    int t, n_blocks, n_pairs;
} group;

/// Columns k .. k + n - 1; meanwhile those after them are fetched, or the first ones of the rows after the group's.
static void add_stretch(group *g, int64_t k, int64_t n)
{
    const int64_t columns = columns_of(g->p);
    const bool last = k + n == columns;
    const size_t apart = wt__amx_bytes(columns, SIDE);
    const uint8_t *x =
        (const uint8_t *)g->p->laid + apart * (size_t)(g->t / SIDE) + (size_t)(k / STEP) * PARTS * TILE_BYTES;
    for (int i = 0; i < g->n_pairs; i++)
        copy_rows(g->p, g->first + 2 * SIDE * i, g->n_rows - 2 * SIDE * i, k, n, g->tiles[i]);
    for (int j = 0; j < g->n_blocks; j += 2, x += 2 * apart)
        for (int i = 0; i < g->n_pairs; i++) {
            const uint8_t *next = wt__row(g->p->linear, g->first + 2 * SIDE * (last ? g->n_pairs + i : i));
            const stretch s = {.tiles = g->tiles[i],
                               .n_steps = (n + STEP - 1) / STEP,
                               .next = last ? next : next + 2 * (k + n),
                               .row_bytes = wt__row_bytes(g->p->linear),
                               .first_next = 2 * SIDE * j / g->n_blocks,
                               .end_next = (int)fewer(2 * SIDE, 2 * SIDE * (j + 2) / g->n_blocks)};
            if (j + 1 < g->n_blocks)
                add_dots(&s, x, apart, 2, &g->y[i][j]);
            else
                add_dots(&s, x, apart, 1, &g->y[i][j]);
        }
}

static void multiply_group(group *g)
{
    const int64_t columns = columns_of(g->p);
    for (int i = 0; i < g->n_pairs; i++) memset(g->y[i], 0, sizeof g->y[i][0] * (size_t)g->n_blocks);
    for (int64_t k = 0; k < columns; k += STRETCH) add_stretch(g, k, fewer(STRETCH, columns - k));
    for (int i = 0; i < 2 * g->n_pairs; i++)
        for (int j = 0; j < g->n_blocks; j++)
            store_turned(g->p, g->first + SIDE * i, g->n_rows - SIDE * i, g->t + SIDE * j, &g->y[i / 2][j][i % 2]);
}

void wt__strips_amx(const wt__product *p, int64_t first, int64_t n_rows)
{
    _Alignas(LINE) group g;
    g.p = p;
    _tile_loadconfig(&tiles_of_16);
    for (int64_t r = 0; r < n_rows; r += 2 * SIDE * PAIRS)
        for (int t = 0; t < p->n; t += SIDE * BLOCKS) {
            g.first = first + r, g.n_rows = fewer(2 * SIDE * PAIRS, n_rows - r), g.t = t;
            g.n_blocks = (int)fewer(BLOCKS, wt__amx_blocks(p->n - t));
            g.n_pairs = (int)(g.n_rows + 2 * SIDE - 1) / (2 * SIDE);
            multiply_group(&g);
        }
    _tile_release();
}
#else
bool wt__has_amx(void) { return false; }
void wt__amx_lay(const wt__product *p, int block) { (void)p, (void)block; }
void wt__strips_amx(const wt__product *p, int64_t first, int64_t n_rows) { (void)p, (void)first, (void)n_rows; }
#endif
