// Products of bytes and halves for x86-64-v4 with VNNI: four bytes to 32 bits in one instruction. Lanes hold sums of
// four neighbours.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v4,avx512vnni")
#    include <immintrin.h>
#    define DOT(sum, w, x) _mm256_dpbusd_epi32(sum, w, x)
#    include "matrix_bytes.h"

// ---- where vectors lie

/// Of four blocks the second and the third change places.
WT_INLINE void place_crossed(const block *b, int64_t k, int zero, bytes *x)
{
    const bool crossed = k % 4 == 1 || k % 4 == 2;
    (void)zero; // minima are factors of sums
    _mm256_storeu_si256((__m256i *)(x->q + BLOCK * (crossed ? k ^ 3 : k)), b->q);
    x->d[k] = b->d;
    x->sum[k] = b->d * (float)sum_of_dwords(b->sums);
}

/// Of four blocks the first halves, then the second ones, and of both `less` and d of each lane.
WT_INLINE void place_halved(const block *b, int64_t k, int zero, bytes *x)
{
    int8_t *to = x->q + k / 4 * (4 * BLOCK) + k % 4 * (BLOCK / 2);
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(b->sums), _mm256_extracti128_si256(b->sums, 1));
    place_halves(b->q, to, to + 2 * BLOCK);
    _mm_storeu_si128((__m128i *)(x->less + BLOCK / 8 * k), _mm_mullo_epi32(four, _mm_set1_epi32(-zero)));
    _mm_storeu_ps(x->lanes + BLOCK / 8 * k, _mm_set1_ps(b->d));
}

/// Of 128 columns the even ones, then the odd ones.
WT_INLINE void place_parted(const block *b, int64_t k, int zero, bytes *x)
{
    const block even = {even_first(b->q), b->sums, b->d};
    place_halved(&even, k, zero, x);
    x->sum[k] = b->d * (float)sum_of_dwords(b->sums);
}

/// In their order, with d and zero times the sum of each 16.
WT_INLINE void place_with_sums_of_16(const block *b, int64_t k, int zero, bytes *x)
{
    const __m256i two = _mm256_add_epi32(b->sums, _mm256_shuffle_epi32(b->sums, 0x4e));
    const __m256i one = _mm256_add_epi32(two, _mm256_shuffle_epi32(two, 0xb1));
    _mm256_storeu_si256((__m256i *)(x->q + BLOCK * k), b->q);
    x->d[2 * k] = x->d[2 * k + 1] = b->d;
    x->sum[2 * k] = b->d * (float)(zero * _mm256_extract_epi32(one, 0));
    x->sum[2 * k + 1] = b->d * (float)(zero * _mm256_extract_epi32(one, 4));
}

// ---- types: layouts as in tensor.c

WT_INLINE __m512i wide_at(const void *p) { return _mm512_loadu_si512(p); }

/// w + 128 is unsigned: the zero of signed bytes is 128.
WT_INLINE void signed_bytes(__m256i w, __m256 scale, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const __m256i unsigned_w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m256i dots = DOT(bytes_at(x[j].less + BLOCK / 4 * k), unsigned_w, bytes_at(x[j].q + BLOCK * k));
        sums[j].eight = scaled(dots, scale * _mm256_set1_ps(x[j].d[k]), sums[j].eight);
    }
}

WT_INLINE void step_q8_0(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
    signed_bytes(bytes_at(p + 2), half_at(p), k, x, n, sums);
}

WT_INLINE void step_i8(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    signed_bytes(bytes_at(w->at), _mm256_set1_ps(1), k, x, n, sums);
}

WT_INLINE void step_q4_0(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
    const __m256i q = nibbles_at(p + 2);
    const __m256 d = half_at(p);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m256i less = bytes_at(x[j].less + BLOCK / 4 * k);
        sums[j].eight =
            scaled(DOT(less, q, bytes_at(x[j].q + BLOCK * k)), d * _mm256_set1_ps(x[j].d[k]), sums[j].eight);
    }
}

typedef struct nibbles {
    __m512i low, high;
} nibbles;

WT_INLINE nibbles nibbles_of(__m512i both)
{
    const __m512i four = _mm512_set1_epi8(15);
    return (nibbles){_mm512_and_si512(both, four), _mm512_and_si512(_mm512_srli_epi16(both, 4), four)};
}

/// 128 columns as place_halved() has them, from `less` on.
WT_INLINE __m512 nibble_dots(nibbles w, const bytes *x, int64_t k, __m512i less)
{
    const int8_t *v = x->q + 4 * BLOCK * k;
    return _mm512_cvtepi32_ps(
        _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(less, w.low, wide_at(v)), w.high, wide_at(v + 2 * BLOCK)));
}

/// Four blocks, of which the vector has the first halves, then the second ones: lanes 4 b .. 4 b + 3 are those of b.
/// The first 64 bytes have all scales.
WT_INLINE void step_q4_0_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
    const __m512i places =
        _mm512_setr_epi32(0, 0, 0x90009, 0x90009, 0x120012, 0x120012, 0x1b001b, 0x1b001b, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512 d = _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(places, wide_at(p))));
    __m512i both = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p + 2)));
    both = _mm512_mask_broadcast_i32x4(both, 0x00f0, _mm_loadu_si128((const __m128i *)(p + 20)));
    both = _mm512_mask_broadcast_i32x4(both, 0x0f00, _mm_loadu_si128((const __m128i *)(p + 38)));
    both = _mm512_mask_broadcast_i32x4(both, 0xf000, _mm_loadu_si128((const __m128i *)(p + 56)));
    const nibbles q = nibbles_of(both);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++)
        sums[j].sixteen += nibble_dots(q, &x[j], k, wide_at(x[j].less + BLOCK / 2 * k)) *
                           (d * _mm512_loadu_ps(x[j].lanes + BLOCK / 2 * k));
}

/// 128 columns of a group, whose even numbers come first in the vector, then the odd ones: lanes 4 b .. 4 b + 3 are
/// those of block b. What zeros other than 8 take away are products of floats.
WT_INLINE void u4_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums, const bool zeros)
{
    const nibbles q = nibbles_of(wide_at(w->at));
    const __m512 scale = _mm512_set1_ps(w->scales[w->group]);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const __m512i less = zeros ? _mm512_setzero_si512() : wide_at(x[j].less + BLOCK / 2 * k);
        __m512 dots = nibble_dots(q, &x[j], k, less) * _mm512_loadu_ps(x[j].lanes + BLOCK / 2 * k);
        if (zeros) dots -= _mm512_zextps128_ps512(_mm_set1_ps(w->zeros[w->group]) * _mm_loadu_ps(x[j].sum + 4 * k));
        sums[j].sixteen += dots * scale;
    }
}

WT_INLINE void step_u4_eights(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    u4_wide(w, k, x, n, sums, false);
}

WT_INLINE void step_u4_zeros(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    u4_wide(w, k, x, n, sums, true);
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
/// Parts 0 and 2, 1 and 3, 4 and 6, 5 and 7, as the vector lies.
WT_INLINE void step_q4_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
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

/// 64 columns of half h of 256, four of which are low nibbles, then high ones; their two bits above are in 32 bytes.
WT_INLINE __m512i six_bits(const uint8_t *p, const int h, const int high)
{
    const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const __m512i nibble = high ? _mm512_srli_epi16(wide_at(p + 64 * h), 4) : wide_at(p + 64 * h);
    const __m512i both = _mm512_broadcast_i64x4(bytes_at(p + 128 + 32 * h));
    const __m512i top = high ? _mm512_srlv_epi16(both, right) : _mm512_sllv_epi16(both, left);
    const int and_then_or = 0xea;
    return _mm512_ternarylogic_epi32(nibble, _mm512_set1_epi8(15), _mm512_and_si512(top, _mm512_set1_epi8(0x30)),
                                     and_then_or);
}

/// 256 columns: 16 parts of 16 that have a scale each; zero is 32.
WT_INLINE void step_q6_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
    const __m512i parts = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p + 192)));
    const __m512 scales = _mm512_broadcastss_ps(_mm256_castps256_ps128(half_at(p + 208))) * _mm512_cvtepi32_ps(parts);
    __m512i q[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) q[i] = six_bits(p, i / 2, i % 2);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        sums[j].sixteen -= scales * _mm512_loadu_ps(x[j].sum + 16 * k);
        const __m512 factors = scales * _mm512_loadu_ps(x[j].d + 16 * k);
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m512i places = _mm512_add_epi32(_mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
                                                    _mm512_set1_epi32(4 * i));
            const __m512i dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), q[i], wide_at(x[j].q + 256 * k + 64 * i));
            sums[j].sixteen += _mm512_cvtepi32_ps(dots) * _mm512_permutexvar_ps(places, factors);
        }
    }
}

BYTES_BY_ROW(q8_0, place_in_order, BLOCK, 34, 128)
BYTES_BY_ROW(i8, place_in_order, BLOCK, 32, 128)
BYTES_BY_ROW(q4_0, place_in_order, BLOCK, 18, 8)
BYTES_BY_ROW(q6_k, place_with_sums_of_16, 256, 210, 32)
BYTES_BY_ROW(q4_k, place_crossed, 256, 144, 0)
BYTES_BY_ROW(q4_0_wide, place_halved, 4 * BLOCK, 72, 8)
BYTES_BY_ROW(u4_eights, place_parted, 4 * BLOCK, 64, 8)
BYTES_BY_ROW(u4_zeros, place_parted, 4 * BLOCK, 64, 0)

static void strips_any_q4_0(const wt__product *p, int64_t first, int64_t n_rows)
{
    (p->linear->weight.shape[1] % (4 * BLOCK) ? strips_q4_0 : strips_q4_0_wide)(p, first, n_rows);
}

static void strips_any_u4(const wt__product *p, int64_t first, int64_t n_rows)
{
    const wt__strips wide = p->linear->zeros ? strips_u4_zeros : strips_u4_eights;
    (p->linear->scale_columns % (4 * BLOCK) ? strips_u4 : wide)(p, first, n_rows);
}

const wt__strips wt__strips_vnni[WT_N_DTYPES] = {
    [WT_DTYPE_F32] = strips_f32,      [WT_DTYPE_BF16] = strips_bf16,     [WT_DTYPE_F16] = strips_f16,
    [WT_DTYPE_F8_E4M3] = strips_e4m3, [WT_DTYPE_I8] = strips_i8,         [WT_DTYPE_U8] = strips_any_u4,
    [WT_DTYPE_Q8_0] = strips_q8_0,    [WT_DTYPE_Q4_0] = strips_any_q4_0, [WT_DTYPE_Q4_K] = strips_q4_k,
    [WT_DTYPE_Q6_K] = strips_q6_k,
};
#else
typedef int wt__matrix_no_vnni; // a translation unit may not be empty
#endif
