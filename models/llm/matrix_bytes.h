/// Products for x86-64-v3 and up; the file that includes this names the instructions by a pragma, DOT and STRIPS.
///
/// Bytes: a vector is rounded to d q for each 32 numbers, d = max |x| / 127, so that it errs by at most d / 2 a number,
/// 0.4 % of the largest of the 32. A weight is scale (w - zero); sums of w q are exact in 32 bits, and so is
/// less = - zero times the sum of q, with which they begin. Lanes hold sums of four neighbours.
#include "matrix_tile.h"

#include <immintrin.h>

enum { BLOCK = 32, ROWS = 4, VECTORS = 4, PARTED = 64, CROSSED = 1, HALVED = 2 };

typedef uint16_t words __attribute__((vector_size(sizeof(tile_vec))));
typedef int16_t signed_words __attribute__((vector_size(sizeof(tile_vec))));

typedef struct bytes {
    int8_t *q;     ///< [columns]
    int32_t *less; ///< [columns / 4] of the type's zero
    float *d;      ///< [columns / 32]
    float *sum;    ///< [columns / 32] d times the sum of q
} bytes;

typedef struct weights {
    const uint8_t *row;
    const float *scales;  ///< of U4: the row's
    const uint8_t *zeros; ///< of U4: the row's; NULL = 8
    int blocks;           ///< of U4: that share a scale
    uint64_t groups;      ///< of U4: groups in 128 columns, times 2^32, rounded up
} weights;

/// A sum's lanes: a type uses the eight, or where there are such registers the sixteen.
typedef struct lanes {
    __m256 eight;
#ifdef __AVX512VNNI__
    __m512 sixteen;
#endif
} lanes;

/// One step: the row's k-th block with n vectors, whose lanes are added to sums.
typedef void (*stepper)(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums);

WT_INLINE __m256i bytes_at(const void *p) { return _mm256_loadu_si256(p); }

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

/// 16 bytes: the low nibbles in lanes 0 .. 15, the high ones in 16 .. 31.
WT_INLINE __m256i nibbles_at(const uint8_t *p)
{
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    return _mm256_and_si256(_mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)), _mm256_set1_epi8(15));
}

// ---- types: layouts as in tensor.c

WT_INLINE void signed_bytes(__m256i w, __m256 scale, int64_t k, const bytes *x, const int n, lanes *sums)
{
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m256i dots = DOT_SIGNED(bytes_at(x[j].less + BLOCK / 4 * k), w, bytes_at(x[j].q + BLOCK * k));
        sums[j].eight = scaled(dots, scale * _mm256_set1_ps(x[j].d[k]), sums[j].eight);
    }
}

WT_INLINE void step_q8_0(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 34 * k;
    signed_bytes(bytes_at(p + 2), half_at(p), k, x, n, sums);
}

WT_INLINE void step_i8(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    signed_bytes(bytes_at(w->row + BLOCK * k), _mm256_set1_ps(1), k, x, n, sums);
}

WT_INLINE void step_q4_0(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 18 * k;
    const __m256i q = nibbles_at(p + 2);
    const __m256 d = half_at(p);
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m256i less = bytes_at(x[j].less + BLOCK / 4 * k);
        sums[j].eight =
            scaled(DOT(less, q, bytes_at(x[j].q + BLOCK * k)), d * _mm256_set1_ps(x[j].d[k]), sums[j].eight);
    }
}

/// Four scales, 18 bytes apart.
WT_INLINE __m128 four_halves_at(const uint8_t *p)
{
    uint16_t h[4];
    for (int i = 0; i < 4; i++) memcpy(&h[i], p + 18 * i, sizeof h[i]);
    const uint64_t scales = h[0] | (uint32_t)h[1] << 16 | (uint64_t)(h[2] | (uint32_t)h[3] << 16) << 32;
    return _mm_cvtph_ps(_mm_cvtsi64_si128((long long)scales));
}

#ifdef __AVX512VNNI__
WT_INLINE __m512i wide_at(const void *p) { return _mm512_loadu_si512(p); }

/// Four blocks, of which the vector has the first halves, then the second ones: lanes 4 b .. 4 b + 3 are those of b.
WT_INLINE void step_q4_0_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 72 * k;
    const __m128 d = four_halves_at(p);
    __m512i both = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p + 2)));
    both = _mm512_mask_broadcast_i32x4(both, 0x00f0, _mm_loadu_si128((const __m128i *)(p + 20)));
    both = _mm512_mask_broadcast_i32x4(both, 0x0f00, _mm_loadu_si128((const __m128i *)(p + 38)));
    both = _mm512_mask_broadcast_i32x4(both, 0xf000, _mm_loadu_si128((const __m128i *)(p + 56)));
    const __m512i four = _mm512_set1_epi8(15),
                  blocks = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i low = _mm512_and_si512(both, four), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), four);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const int8_t *v = x[j].q + 4 * BLOCK * k;
        const __m512i dots = _mm512_dpbusd_epi32(
            _mm512_dpbusd_epi32(wide_at(x[j].less + BLOCK / 2 * k), low, wide_at(v)), high, wide_at(v + 2 * BLOCK));
        const __m512 factors = _mm512_castps128_ps512(d * _mm_loadu_ps(x[j].d + 4 * k));
        sums[j].sixteen += _mm512_cvtepi32_ps(dots) * _mm512_permutexvar_ps(blocks, factors);
    }
}

/// 128 columns of a group, whose even numbers come first in the vector, then the odd ones: lanes 4 b .. 4 b + 3 are
/// those of block b. What zeros take away are products of floats.
WT_INLINE void step_u4_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const __m512i both = wide_at(w->row + 64 * k), four = _mm512_set1_epi8(15);
    const __m512i even = _mm512_and_si512(both, four), odd = _mm512_and_si512(_mm512_srli_epi16(both, 4), four);
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const int64_t group = (int64_t)((uint64_t)k * w->groups >> 32); // a division would take longer than the rest
    const __m512 scale = _mm512_set1_ps(w->scales[group]);
    const __m128 zero = _mm_set1_ps(w->zeros ? (float)w->zeros[group] : 8);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const int8_t *v = x[j].q + 4 * BLOCK * k;
        const __m512i dots = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), even, wide_at(v)), odd,
                                                 wide_at(v + 2 * BLOCK));
        const __m512 d = _mm512_permutexvar_ps(lanes, _mm512_broadcast_f32x4(_mm_loadu_ps(x[j].d + 4 * k)));
        const __m512 less = _mm512_zextps128_ps512(zero * _mm_loadu_ps(x[j].sum + 4 * k));
        sums[j].sixteen += (_mm512_cvtepi32_ps(dots) * d - less) * scale;
    }
}
#else
WT_INLINE __m128i half_of_a_vector(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

/// Two blocks, lanes 0 .. 3 and 4 .. 7, of which the vector has the columns of the high nibbles 2 BLOCK behind those of
/// the low ones. Four products of 15 * 127 at most fit 16 bits.
WT_INLINE __m256 two_blocks(__m256i both, __m256i less, const int8_t *v)
{
    const __m256i four = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(both, four), high = _mm256_and_si256(_mm256_srli_epi16(both, 4), four);
    const __m256i words =
        _mm256_add_epi16(_mm256_maddubs_epi16(low, bytes_at(v)), _mm256_maddubs_epi16(high, bytes_at(v + 2 * BLOCK)));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(less, _mm256_madd_epi16(words, _mm256_set1_epi16(1))));
}

/// Of four factors those of the first two blocks, or of the last two.
WT_INLINE __m256 for_two_blocks(__m128 factors, const int last)
{
    const int a = 2 * last, b = a + 1;
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(factors), _mm256_setr_epi32(a, a, a, a, b, b, b, b));
}

WT_INLINE void step_q4_0_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 72 * k;
    const __m128 d = four_halves_at(p);
#    pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m256i both = _mm256_set_m128i(half_of_a_vector(p + 20 + 36 * i), half_of_a_vector(p + 2 + 36 * i));
#    pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            const __m256 factors = for_two_blocks(d * _mm_loadu_ps(x[j].d + 4 * k), i);
            const __m256 dots =
                two_blocks(both, bytes_at(x[j].less + BLOCK / 2 * k + 8 * i), x[j].q + 4 * BLOCK * k + BLOCK * i);
            sums[j].eight = _mm256_fmadd_ps(dots, factors, sums[j].eight);
        }
    }
}

WT_INLINE void step_u4_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const __m256i first = bytes_at(w->row + 64 * k), last = bytes_at(w->row + 64 * k + 32);
    const int64_t group = (int64_t)((uint64_t)k * w->groups >> 32); // a division would take longer than the rest
    const __m128 zero = _mm_set1_ps(w->zeros ? (float)w->zeros[group] : 8);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const int8_t *v = x[j].q + 4 * BLOCK * k;
        const __m128 d = _mm_loadu_ps(x[j].d + 4 * k), less = zero * _mm_loadu_ps(x[j].sum + 4 * k);
        __m256 dots = two_blocks(first, _mm256_setzero_si256(), v) * for_two_blocks(d, 0);
        dots = _mm256_fmadd_ps(two_blocks(last, _mm256_setzero_si256(), v + BLOCK), for_two_blocks(d, 1), dots);
        sums[j].eight =
            _mm256_fmadd_ps(dots - _mm256_zextps128_ps256(less), _mm256_set1_ps(w->scales[group]), sums[j].eight);
    }
}
#endif

/// A group. Nibbles of neighbours share a byte: the vector lies with the even numbers of a block first. Without zeros
/// `less` is times 8 already.
WT_INLINE void step_u4(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const __m256i zero = _mm256_set1_epi32(w->zeros ? w->zeros[k] : 1);
    const __m256 scale = _mm256_set1_ps(w->scales[k]);
    __m256 group[VECTORS];
    for (int j = 0; j < n; j++) group[j] = _mm256_setzero_ps();
    for (int64_t b = k * w->blocks; b < (k + 1) * w->blocks; b++) {
        const __m256i q = nibbles_at(w->row + 16 * b);
#pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            __m256i less = bytes_at(x[j].less + BLOCK / 4 * b);
            if (w->zeros) less = _mm256_mullo_epi32(less, zero);
            group[j] = scaled(DOT(less, q, bytes_at(x[j].q + BLOCK * b)), _mm256_set1_ps(x[j].d[b]), group[j]);
        }
    }
    for (int j = 0; j < n; j++) sums[j].eight = _mm256_fmadd_ps(group[j], scale, sums[j].eight);
}

/// Of 8 parts of 32 columns the scales, then the minima, a byte each, from twelve bytes behind the two halves: six bits
/// of four scales and of four minima, whose other two bits belong to four more of each, and the low four bits of those.
WT_INLINE __m128i k_scales_at(const uint8_t *p)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)p);
    const __m128i low = _mm_shuffle_epi8(v, _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m128i top = _mm_shuffle_epi8(v, _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11));
    const __m128i six_or_four = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    return _mm_or_si128(_mm_and_si128(_mm_srlv_epi32(low, _mm_setr_epi32(0, 0, 0, 4)), six_or_four),
                        _mm_and_si128(_mm_srli_epi32(top, 2), _mm_set1_epi8(0x30)));
}

/// 256 columns: each 32 bytes have a part's nibbles below and the next one's above.
#ifdef __AVX512VNNI__
/// Parts 0 and 2, 1 and 3, 4 and 6, 5 and 7, as the vector lies.
WT_INLINE void step_q4_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 144 * k;
    int both;
    memcpy(&both, p, sizeof both);
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512 half = _mm512_permutexvar_ps(halves, _mm512_castps128_ps512(_mm_cvtph_ps(_mm_cvtsi32_si128(both))));
    const __m512 scales = half * _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(k_scales_at(p)));
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m512 of_x = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(x[j].d + 8 * k)),
                                               _mm256_loadu_ps(x[j].sum + 8 * k), 1);
        const __m512 factors = scales * of_x;
        sums[j].sixteen = _mm512_mask_sub_ps(sums[j].sixteen, 0xff00, sums[j].sixteen, factors);
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const int high = i % 2, a = 2 * i - high, b = a + 2;
            const __m512i q = wide_at(p + 16 + 32 * (i - high));
            const __m512i q4 = _mm512_and_si512(high ? _mm512_srli_epi16(q, 4) : q, _mm512_set1_epi8(15));
            const __m512i dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), q4, wide_at(x[j].q + 256 * k + 64 * i));
            const __m512i which = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
            sums[j].sixteen += _mm512_cvtepi32_ps(dots) * _mm512_permutexvar_ps(which, factors);
        }
    }
}
#else
/// Number `place` of each four in its half.
WT_INLINE __m256 in_each_half(__m256 v, const int place)
{
    return (__m256)__builtin_shuffle((wt_f32x8)v, (wt_i32x8){0, 0, 0, 0, 4, 4, 4, 4} + place);
}

WT_INLINE void step_q4_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 144 * k;
    const __m128i s = k_scales_at(p);
    const __m256 scales = half_at(p) * _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(s));
    const __m256 minima = half_at(p + 2) * _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(s, s)));
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m256 factors = scales * _mm256_loadu_ps(x[j].d + 8 * k);
        const __m256 halves[2] = {_mm256_permute2f128_ps(factors, factors, 0x00),
                                  _mm256_permute2f128_ps(factors, factors, 0x11)};
        sums[j].eight = _mm256_fnmadd_ps(minima, _mm256_loadu_ps(x[j].sum + 8 * k), sums[j].eight);
        __m256 lows = _mm256_setzero_ps(), ups = lows; // of this step: one chain of all would be 36 cycles
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m256i q = bytes_at(p + 16 + 32 * i), low = _mm256_and_si256(q, _mm256_set1_epi8(15));
            const __m256i up = _mm256_and_si256(_mm256_srli_epi16(q, 4), _mm256_set1_epi8(15));
            const int8_t *v = x[j].q + 256 * k + 64 * i;
            const __m256 of_low = in_each_half(halves[i / 2], i % 2 * 2),
                         of_up = in_each_half(halves[i / 2], i % 2 * 2 + 1);
            lows = scaled(DOT(_mm256_setzero_si256(), low, bytes_at(v)), of_low, lows);
            ups = scaled(DOT(_mm256_setzero_si256(), up, bytes_at(v + 32)), of_up, ups);
        }
        sums[j].eight += lows + ups;
    }
}
#endif

/// 256 columns: 8 parts of 32, each with two scales; zero is 32.
WT_INLINE void step_q6_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->row + 210 * k;
    const __m256 d = half_at(p + 208);
    const __m256i four = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const __m128i s = _mm_loadl_epi64((const __m128i *)(p + 192 + 8 * h));
        const __m256 scales = d * _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(s));
        const __m256i high = bytes_at(p + 128 + 32 * h);
        const __m256i tops[4] = {_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 2), high,
                                 _mm256_srli_epi16(high, 2)};
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m256i low = bytes_at(p + 64 * h + 32 * (i & 1)), q = i < 2 ? low : _mm256_srli_epi16(low, 4);
            const __m256i w6 = _mm256_or_si256(_mm256_and_si256(q, four), _mm256_and_si256(tops[i], top));
            const int a = 2 * i, b = 2 * i + 1;
            const __m256 scale = _mm256_permutevar8x32_ps(scales, _mm256_setr_epi32(a, a, a, a, b, b, b, b));
            const int64_t block = 8 * k + 4 * h + i;
#pragma GCC unroll 4
            for (int j = 0; j < n; j++) {
                const __m256i less = bytes_at(x[j].less + BLOCK / 4 * block);
                sums[j].eight = scaled(DOT(less, w6, bytes_at(x[j].q + BLOCK * block)),
                                       scale * _mm256_set1_ps(x[j].d[block]), sums[j].eight);
            }
        }
    }
}

// ---- vectors to bytes

WT_INLINE float most_of(__m256 v)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

WT_INLINE void round_block(const float *x, int64_t k, int zero, int interleaved, bytes *out)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 v[4], most = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_loadu_ps(x + BLOCK * k + 8 * i);
        most = _mm256_max_ps(_mm256_andnot_ps(sign, v[i]), most);
    }
    const float largest = most_of(most), d = largest / 127;
    const __m256 by = _mm256_set1_ps(d > 0 ? 1 / d : 0);
    __m256i n[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) n[i] = _mm256_cvtps_epi32(v[i] * by);
    __m256i q = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    q = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if (interleaved == BLOCK || interleaved == 4 * BLOCK) {
        const __m256i within = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10,
                                                12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
        q = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(q, within), 0xd8);
    }
    const __m256i sums = DOT(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    if (interleaved != 4 * BLOCK && interleaved != HALVED) {
        const bool crossed = interleaved == CROSSED && (k % 4 == 1 || k % 4 == 2);
        _mm256_storeu_si256((__m256i *)(out->q + BLOCK * (crossed ? k ^ 3 : k)), q);
    } else {
        int8_t *to = out->q + k / 4 * (4 * BLOCK) + k % 4 * (BLOCK / 2);
        _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(q));
        _mm_storeu_si128((__m128i *)(to + 2 * BLOCK), _mm256_extracti128_si256(q, 1));
    }
    if (interleaved == HALVED)
        _mm_storeu_si128((__m128i *)(out->less + BLOCK / 8 * k), _mm_mullo_epi32(four, _mm_set1_epi32(-zero)));
    else
        _mm256_storeu_si256((__m256i *)(out->less + BLOCK / 4 * k), _mm256_mullo_epi32(sums, _mm256_set1_epi32(-zero)));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    out->d[k] = d;
    out->sum[k] = d * (float)(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
}

/// A vector takes 2.25 bytes a column of the 4 that the scratch has for each of VECTORS.
/// Of `interleaved` columns, 32 or 128, the even ones come first; 0 = as they are, CROSSED = the second and the third
/// block of four change places; HALVED = of four blocks the first halves, then the second ones, and `less` of both.
static bytes round_vector(const wt__product *p, int t, int slot, int zero, int interleaved)
{
    const int64_t columns = p->linear->weight.shape[1], blocks = columns / BLOCK;
    float *at = p->rows + slot * columns;
    bytes out = {(int8_t *)at, (int32_t *)(at + columns / 4), at + columns / 2, at + columns / 2 + blocks};
    for (int64_t k = 0; k < blocks && !p->prepared; k++)
        round_block(p->x + p->x_stride * t, k, zero, interleaved, &out);
    return out;
}

// ---- rows

WT_INLINE float lanes_sum(lanes sums)
{
#ifdef __AVX512VNNI__
    const __m512 wide = sums.sixteen;
    const __m256 v = sums.eight + (_mm512_castps512_ps256(wide) + _mm512_extractf32x8_ps(wide, 1));
#else
    const __m256 v = sums.eight;
#endif
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

WT_INLINE weights weights_of(const wt__linear *l, int64_t row)
{
    if (!l->nibbles) return (weights){.row = wt__row(l, row)};
    const int64_t at = row * (l->weight.shape[1] / l->scale_columns);
    const uint64_t wide = (uint64_t)(4 * BLOCK) << 32, columns = (uint64_t)l->scale_columns;
    return (weights){wt__row(l, row), l->scales + at, l->zeros ? l->zeros + at : NULL, l->scale_columns / BLOCK,
                     (wide + columns - 1) / columns};
}

/// n_rows rows with n_vectors vectors, at most `n_stored` rows of which count.
WT_INLINE void bytes_tile(const wt__product *p, stepper step, int step_bytes, int64_t n_steps, int64_t first,
                          const int n_rows, int n_stored, const bytes *x, int t, const int n_vectors)
{
    weights w[ROWS];
    lanes sums[ROWS][VECTORS];
    for (int r = 0; r < n_rows; r++) {
        w[r] = weights_of(p->linear, first + (r < n_stored ? r : n_stored - 1));
        for (int j = 0; j < n_vectors; j++) memset(&sums[r][j], 0, sizeof sums[r][j]);
    }
    const int64_t ahead = n_rows * (int64_t)wt__row_bytes(p->linear); // the same place of the next rows
    for (int64_t k = 0; k < n_steps; k++)
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            for (int at = 0; at < step_bytes; at += 64)
                __builtin_prefetch(w[r].row + ahead + k * step_bytes + at, 0, 2);
            step(&w[r], k, x, n_vectors, sums[r]);
        }
    for (int r = 0; r < n_stored; r++)
        for (int j = 0; j < n_vectors; j++) wt__product_store(p, first + r, t + j, lanes_sum(sums[r][j]));
}

/// One vector with four rows at a time, or four vectors with one.
WT_INLINE void bytes_strips(const wt__product *p, stepper step, int columns_a_step, int step_bytes, int zero,
                            int interleaved, int64_t first, int64_t n_rows)
{
    const int64_t n_steps = p->linear->weight.shape[1] / columns_a_step, end = first + n_rows;
    for (int t = 0; t < p->n;) {
        const int n = p->n - t < VECTORS ? 1 : VECTORS;
        bytes x[VECTORS];
        for (int j = 0; j < n; j++) x[j] = round_vector(p, t + j, j, zero, interleaved);
        if (n == 1)
            for (int64_t r = first; r < end; r += ROWS)
                bytes_tile(p, step, step_bytes, n_steps, r, ROWS, end - r < ROWS ? (int)(end - r) : ROWS, x, t, 1);
        else
            for (int64_t r = first; r < end; r++) bytes_tile(p, step, step_bytes, n_steps, r, 1, 1, x, t, VECTORS);
        t += n;
    }
}

#define BYTES(name, columns_a_step, step_bytes, zero, interleaved)                                                     \
    static void strips_##name(const wt__product *p, int64_t first, int64_t n_rows)                                     \
    {                                                                                                                  \
        bytes_strips(p, step_##name, columns_a_step, step_bytes, zero, interleaved, first, n_rows);                    \
    }
BYTES(q8_0, BLOCK, 34, SIGNED_ZERO, 0)
BYTES(i8, BLOCK, 32, SIGNED_ZERO, 0)
BYTES(q4_0, BLOCK, 18, 8, 0)
BYTES(u4, p->linear->scale_columns, p->linear->scale_columns / 2, p->linear->zeros ? 1 : 8, BLOCK)
BYTES(q6_k, 256, 210, 32, 0)
#ifndef __AVX512VNNI__
BYTES(q4_k, 256, 144, 0, 0)
#else
BYTES(q4_k, 256, 144, 0, CROSSED)
#endif
BYTES(q4_0_wide, 4 * BLOCK, 72, 8, HALVED)
BYTES(u4_wide, 4 * BLOCK, 64, 0, 4 * BLOCK)
#undef BYTES

static void strips_any_q4_0(const wt__product *p, int64_t first, int64_t n_rows)
{
    (p->linear->weight.shape[1] % (4 * BLOCK) ? strips_q4_0 : strips_q4_0_wide)(p, first, n_rows);
}

static void strips_any_u4(const wt__product *p, int64_t first, int64_t n_rows)
{
    (p->linear->scale_columns % (4 * BLOCK) ? strips_u4 : strips_u4_wide)(p, first, n_rows);
}

// ---- halves and fp8, in float

WT_INLINE sixteen sixteen_halves(__m256i h)
{
#ifdef __AVX512F__
    return (sixteen){{(wt_f32x16)_mm512_cvtph_ps(h)}};
#else
    return (sixteen){{_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))}};
#endif
}

WT_INLINE pair load_f16(const uint8_t *row, int64_t k)
{
    return (pair){sixteen_halves(bytes_at(row + 2 * k)), sixteen_halves(bytes_at(row + 2 * k + 32))};
}
TILE_STRIPS(strips_f16, load_f16, load_in_order, 2)

/// e4m3's bits at the place of binary16's give the value times 2^-8; there is no NaN among weights.
WT_INLINE sixteen sixteen_e4m3(const uint8_t *p)
{
    const __m256i h = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    return sixteen_halves(_mm256_and_si256(h, _mm256_set1_epi16((short)0xbf80)));
}

WT_INLINE pair load_e4m3(const uint8_t *row, int64_t k)
{
    return (pair){sixteen_e4m3(row + k), sixteen_e4m3(row + k + 16)};
}

/// Of each 64 columns the even ones, then the odd ones, which lie in the other bytes of words: a third fewer
/// instructions than widening bytes to words.
WT_INLINE pair load_e4m3_parted(const uint8_t *row, int64_t k)
{
    __m256i halves[2];
#pragma GCC unroll 2
    for (size_t i = 0; i < sizeof halves; i += sizeof(words)) {
        words w;
        memcpy(&w, row + k / PARTED * PARTED + i, sizeof w);
        if (k % PARTED == 0) w <<= 8;
        w = (words)((signed_words)w >> 1) & 0xbf80;
        memcpy((char *)halves + i, &w, sizeof w);
    }
    return (pair){sixteen_halves(halves[0]), sixteen_halves(halves[1])};
}

/// Whether rows, and the blocks of columns that have a scale, are of whole PARTED columns.
static bool is_parted(const wt__linear *l)
{
    const int64_t columns = l->weight.shape[1];
    return columns % PARTED == 0 && (!l->scales || l->scale_columns >= columns || l->scale_columns % PARTED == 0);
}

/// x [n] times `scale`; parted, as load_e4m3_parted() has columns.
static void scale_columns(const float *restrict x, float scale, int64_t n, bool parted, float *restrict out)
{
    for (int64_t k = 0; k < n && !parted; k++) out[k] = x[k] * scale;
    for (int64_t k = 0; k < n && parted; k += PARTED)
        for (int i = 0; i < PARTED / 2; i++) {
            out[k + i] = x[k + 2 * i] * scale;
            out[k + PARTED / 2 + i] = x[k + 2 * i + 1] * scale;
        }
}

/// Vectors, four at a time, get the 2^8 and the scales of the blocks that the rows from `row` on have.
static wt__product prescale(const wt__product *p, int64_t row, int t, int n, bool parted)
{
    const wt__linear *l = p->linear;
    const int64_t columns = l->weight.shape[1];
    const bool blocks = l->scales && l->scale_columns < columns;
    const int64_t step = blocks ? l->scale_columns : columns, n_scales = (columns + step - 1) / step;
    for (int j = 0; j < n; j++)
        for (int64_t b = 0; b < n_scales; b++) {
            const float scale = 256 * (blocks ? l->scales[row / l->scale_rows * n_scales + b] : 1);
            const int64_t end = b * step + step < columns ? b * step + step : columns;
            scale_columns(p->x + p->x_stride * (t + j) + b * step, scale, end - b * step, parted,
                          p->rows + j * columns + b * step);
        }
    wt__product scaled = *p;
    scaled.x = p->rows;
    scaled.x_stride = columns;
    scaled.out += t * p->out_stride;
    scaled.n = n;
    return scaled;
}

static void strips_e4m3(const wt__product *p, int64_t first, int64_t n_rows)
{
    const wt__linear *l = p->linear;
    const bool blocks = l->scales && l->scale_columns < l->weight.shape[1], parted = is_parted(l);
    for (int64_t r = first, n; r < first + n_rows; r += n) {
        const int64_t left = first + n_rows - r, until = blocks ? l->scale_rows - r % l->scale_rows : left;
        n = until < left ? until : left;
        for (int t = 0; t < p->n; t += VECTORS) {
            const wt__product scaled = prescale(p, r, t, p->n - t < VECTORS ? p->n - t : VECTORS, parted);
            const uint8_t *rows = wt__row(l, r);
            if (parted)
                tiles(&scaled, load_e4m3_parted, load_in_order, 1, PARTED, rows, wt__row_bytes(l), r, n);
            else
                tiles(&scaled, load_e4m3, load_in_order, 1, TILE_STEP, rows, wt__row_bytes(l), r, n);
        }
    }
}

const wt__strips STRIPS[WT_N_DTYPES] = {
    [WT_DTYPE_F32] = strips_f32,      [WT_DTYPE_BF16] = strips_bf16,     [WT_DTYPE_F16] = strips_f16,
    [WT_DTYPE_F8_E4M3] = strips_e4m3, [WT_DTYPE_I8] = strips_i8,         [WT_DTYPE_U8] = strips_any_u4,
    [WT_DTYPE_Q8_0] = strips_q8_0,    [WT_DTYPE_Q4_0] = strips_any_q4_0, [WT_DTYPE_Q4_K] = strips_q4_k,
    [WT_DTYPE_Q6_K] = strips_q6_k,
};
