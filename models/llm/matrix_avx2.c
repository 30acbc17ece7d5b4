// Products of bytes and halves for x86-64-v3: pairs of bytes to 16 bits, pairs of those to 32.
//
// A conversion to float and a factor for each block of 32 columns would take as long as the products. So the sums of
// eight blocks are added across until each has one lane of a register: in 16 bits as long as they fit, half as many
// instructions. Crossing the halves of a register takes twice as long as another shuffle: done once in eight.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC target("arch=x86-64-v3")
#    include <immintrin.h>
#    define DOT(sum, w, x) _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)))
#    include "matrix_bytes.h"

enum { EIGHT = 8 * BLOCK };

// ---- where vectors lie

/// In their order; nothing to take away.
WT_INLINE void place_as_it_is(const block *b, int64_t k, int zero, bytes *x)
{
    (void)zero;
    _mm256_storeu_si256((__m256i *)(x->q + BLOCK * k), b->q);
    x->d[k] = b->d;
}

/// With sums of 16, of 16 bits, instead of `less`.
WT_INLINE void place_with_sums_of_16(const block *b, int64_t k, int zero, bytes *x)
{
    place_as_it_is(b, k, zero, x);
    const __m256i two = _mm256_add_epi32(b->sums, _mm256_shuffle_epi32(b->sums, 0x4e));
    const __m256i one = _mm256_add_epi32(two, _mm256_shuffle_epi32(two, 0xb1));
    const int16_t sums[] = {(int16_t)_mm256_extract_epi32(one, 0), (int16_t)_mm256_extract_epi32(one, 4)};
    memcpy(&x->less[k], sums, sizeof sums);
}

/// Of blocks i and i + 4 the first halves, then the second ones; sums times -zero.
WT_INLINE void place_four_apart(const block *b, int64_t k, int zero, bytes *x)
{
    int8_t *to = x->q + k / 8 * EIGHT + k % 4 * (2 * BLOCK) + k % 8 / 4 * (BLOCK / 2);
    place_halves(b->q, to, to + BLOCK);
    x->sum[k] = b->d * (float)(-zero * sum_of_dwords(b->sums));
    x->d[k] = b->d;
}

/// Of two blocks the even columns, then the odd ones. Lanes are of blocks 0, 0, 2, 2, 1, 1, 3, 3 of each four.
WT_INLINE void place_pairs_parted(const block *b, int64_t k, int zero, bytes *x)
{
    int8_t *to = x->q + k / 2 * (2 * BLOCK) + k % 2 * (BLOCK / 2);
    const int64_t lane = k / 4 * 8 + k % 2 * 4 + k % 4 / 2 * 2;
    place_halves(even_first(b->q), to, to + BLOCK);
    x->less[lane] = -zero * sum_of_dwords(b->sums);
    x->less[lane + 1] = 0;
    x->d[lane] = x->d[lane + 1] = b->d;
}

// ---- sums across

WT_INLINE __m256i plus(__m256i a, __m256i b, const int bits)
{
    return bits == 16 ? _mm256_add_epi16(a, b) : _mm256_add_epi32(a, b);
}

/// In each half of the register lanes a, a, b, b.
WT_INLINE __m256i across_two(__m256i a, __m256i b, const int bits)
{
    return plus(_mm256_blend_epi32(a, b, 0xcc), _mm256_alignr_epi8(b, a, 8), bits);
}

/// Of a, a, b, b and c, c, d, d in each half: a, b, c, d.
WT_INLINE __m256i across_four(__m256i ab, __m256i cd, const int bits)
{
    const __m256 x = _mm256_castsi256_ps(ab), y = _mm256_castsi256_ps(cd);
    return plus(_mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)), _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd)),
                bits);
}

/// Sums of 32 bits: the first's lanes, then the second's, both halves of each.
WT_INLINE __m256i across_halves(__m256i a, __m256i b)
{
    return _mm256_add_epi32(_mm256_blend_epi32(a, b, 0xf0), _mm256_permute2x128_si256(a, b, 0x21));
}

WT_INLINE __m256i across_eight(const __m256i *v)
{
    return across_halves(across_four(across_two(v[0], v[1], 32), across_two(v[2], v[3], 32), 32),
                         across_four(across_two(v[4], v[5], 32), across_two(v[6], v[7], 32), 32));
}

WT_INLINE __m256i to_dwords(__m256i words) { return _mm256_madd_epi16(words, _mm256_set1_epi16(1)); }

// ---- types: layouts as in tensor.c

WT_INLINE __m128i line_at(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

/// Halves at p, p + stride + 2, p + 2 (stride + 2) ..: loaded so that each is at its place.
WT_INLINE __m256 eight_halves_at(const uint8_t *p, const int stride)
{
    __m128i h = _mm_blend_epi16(line_at(p), line_at(p + stride), 0x02);
    h = _mm_blend_epi16(h, line_at(p + 2 * stride), 0x04);
    h = _mm_blend_epi16(h, line_at(p + 3 * stride), 0x08);
    h = _mm_blend_epi16(h, line_at(p + 4 * stride), 0x10);
    h = _mm_blend_epi16(h, line_at(p + 5 * stride), 0x20);
    h = _mm_blend_epi16(h, line_at(p + 6 * stride), 0x40);
    return _mm256_cvtph_ps(_mm_blend_epi16(h, line_at(p + 7 * stride), 0x80));
}

/// |w| and x with the sign of w: |w| may be 128, two products fit 16 bits.
WT_INLINE __m256i signed_dots(__m256i w, __m256i x)
{
    return to_dwords(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
}

WT_INLINE void signed_bytes(const uint8_t *p, const int stride, __m256 scales, int64_t k, const bytes *x, const int n,
                            lanes *sums)
{
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        __m256i dots[8];
#    pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            dots[i] = signed_dots(bytes_at(p + stride * i), bytes_at(x[j].q + EIGHT * k + BLOCK * i));
        sums[j].eight = scaled(across_eight(dots), scales * _mm256_loadu_ps(x[j].d + 8 * k), sums[j].eight);
    }
}

WT_INLINE void step_q8_0(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    signed_bytes(w->at + 2, 34, eight_halves_at(w->at, 32), k, x, n, sums);
}

WT_INLINE void step_i8(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    signed_bytes(w->at, BLOCK, _mm256_set1_ps(1), k, x, n, sums);
}

/// Into a register: for each use GCC would read it again, and reading is what these loops do most.
WT_INLINE __m256i once_at(const void *p)
{
    __m256i v = bytes_at(p);
    __asm__("" : "+x"(v));
    return v;
}

typedef struct nibbles {
    __m256i low, high;
} nibbles;

WT_INLINE nibbles nibbles_of(__m256i both)
{
    const __m256i four = _mm256_set1_epi8(15);
    return (nibbles){_mm256_and_si256(both, four), _mm256_and_si256(_mm256_srli_epi16(both, 4), four)};
}

/// Four products of 15 * 127 at most; 16 of them fit 16 bits.
WT_INLINE __m256i nibble_dots(nibbles w, __m256i low_x, __m256i high_x)
{
    return _mm256_add_epi16(_mm256_maddubs_epi16(w.low, low_x), _mm256_maddubs_epi16(w.high, high_x));
}

/// The 16 bytes at p, then those at q, which are read by way of the 16 before.
WT_INLINE __m256i two_halves_at(const uint8_t *p, const uint8_t *q)
{
    const __m256i first = _mm256_castsi128_si256(line_at(p));
    return _mm256_blend_epi32(first, bytes_at(q - 16), 0xf0);
}

/// GCC would add when the sum is wanted, and hold two registers until then.
WT_INLINE __m256i now(__m256i v)
{
    __asm__("" : "+x"(v));
    return v;
}

/// Four registers of a vector: with one vector they stay for all rows, for each use GCC would read them again.
WT_INLINE void four_of(const int8_t *p, const bool stay, __m256i *v)
{
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) v[i] = stay ? once_at(p + BLOCK * i) : bytes_at(p + BLOCK * i);
}

/// 256 columns: of blocks 0 and 4, 1 and 5, then 2 and 6, 3 and 7.
WT_INLINE void step_q4_0(const weights *w, int64_t k, const bytes *x, const int n_rows, const int n,
                         lanes sums[][VECTORS])
{
    __m256i two[2][ROWS][VECTORS], v[4] = {0}; // GCC does not see that they are set
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const int64_t at = EIGHT * k + 4 * BLOCK * h;
        if (n == 1) four_of(x->q + at, true, v);
#    pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *p = w[r].at + 2 + 36 * h;
            fetch(&w[r], h ? 128 : 0, h ? 144 : 128);
            const nibbles a = nibbles_of(two_halves_at(p, p + 72)), b = nibbles_of(two_halves_at(p + 18, p + 90));
#    pragma GCC unroll 4
            for (int j = 0; j < n; j++) {
                if (n > 1) four_of(x[j].q + at, false, v);
                two[h][r][j] = now(across_two(nibble_dots(a, v[0], v[1]), nibble_dots(b, v[2], v[3]), 16));
            }
        }
    }
#    pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++) {
        const __m256 d = eight_halves_at(w[r].at, 16);
#    pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            const __m256i dots = to_dwords(across_four(two[0][r][j], two[1][r][j], 16));
            const __m256 of_x = scaled(dots, _mm256_loadu_ps(x[j].d + 8 * k), _mm256_loadu_ps(x[j].sum + 8 * k));
            sums[r][j].eight = _mm256_fmadd_ps(of_x, d, sums[r][j].eight);
        }
    }
}

/// 128 columns of a group.
WT_INLINE void u4_wide(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums, const bool zeros)
{
    const nibbles first = nibbles_of(bytes_at(w->at)), last = nibbles_of(bytes_at(w->at + 32));
    const __m256 scale = _mm256_set1_ps(w->scales[w->group]);
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        const int8_t *v = x[j].q + 4 * BLOCK * k;
        __m256i less = bytes_at(x[j].less + 8 * k);
        if (zeros) less = _mm256_mullo_epi32(less, _mm256_set1_epi32(w->zeros[w->group]));
        const __m256i a = nibble_dots(first, bytes_at(v), bytes_at(v + BLOCK));
        const __m256i b = nibble_dots(last, bytes_at(v + 2 * BLOCK), bytes_at(v + 3 * BLOCK));
        const __m256i dots = to_dwords(across_two(a, b, 16));
        sums[j].eight = scaled(_mm256_add_epi32(dots, less), scale * _mm256_loadu_ps(x[j].d + 8 * k), sums[j].eight);
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

/// Of 8 parts of 32 columns the scales, then the minima, a byte each, of two rows; from twelve bytes behind the two
/// halves at p and q: six bits of four scales and of four minima, whose other two bits belong to four more of each, and
/// the low four bits of those.
WT_INLINE __m256i k_scales_at(const uint8_t *p, const uint8_t *q)
{
    const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(line_at(p)), line_at(q), 1);
    const __m256i places =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m256i places_of_top =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11));
    const __m256i shifts = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0, 0, 4));
    const __m256i six_or_four = _mm256_set1_epi64x(0x0f0f0f0f3f3f3f3f);
    const __m256i low = _mm256_srlv_epi32(_mm256_shuffle_epi8(v, places), shifts);
    const __m256i top = _mm256_srli_epi32(_mm256_shuffle_epi8(v, places_of_top), 2);
    return _mm256_or_si256(_mm256_and_si256(low, six_or_four), _mm256_and_si256(top, _mm256_set1_epi8(0x30)));
}

/// Numbers of 32 bits of bytes `first` .. first + 7, of a register whose halves are the same; `twice` in both words.
WT_INLINE __m256i dwords_of(__m256i v, const int first, const bool twice)
{
    const int none = twice ? 0x80008000 : 0x80808000, ones = twice ? 0x00010001 : 1;
    const __m256i places = _mm256_mullo_epi32(
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first)), _mm256_set1_epi32(ones));
    return _mm256_shuffle_epi8(v, _mm256_or_si256(places, _mm256_set1_epi32(none)));
}

/// Rows' scales, of which shuffles are most: two rows at a time, and from memory to all lanes, where reading is not
/// what is waited for.
typedef struct k_scales {
    float halves[2 * ROWS] __attribute__((aligned(32)));   ///< of each row d, then that of minima
    uint8_t parts[16 * ROWS] __attribute__((aligned(32))); ///< as k_scales_at() has them
} k_scales;

WT_INLINE const k_scales *k_scales_of(const weights *w, const int n_rows, k_scales *s)
{
    const k_scales *unknown = s; // GCC would take registers for memory that it knows
    int both[ROWS];
#    pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) memcpy(&both[r], w[n_rows > 1 ? r : 0].at, sizeof both[r]);
    _mm256_store_ps(s->halves, _mm256_cvtph_ps(_mm_setr_epi32(both[0], both[1], both[2], both[3])));
#    pragma GCC unroll 2
    for (int r = 0; r < n_rows; r += 2)
        _mm256_store_si256((__m256i *)(s->parts + 16 * r), k_scales_at(w[r].at, w[n_rows > 1 ? r + 1 : 0].at));
    __asm__("" : "+r"(unknown));
    return unknown;
}

/// 256 columns: each 32 bytes have a part's nibbles below and the next one's above. 16 products of 15 * 127 at most fit
/// 16 bits.
WT_INLINE void step_q4_k(const weights *w, int64_t k, const bytes *x, const int n_rows, const int n,
                         lanes sums[][VECTORS])
{
    __m256i two[2][ROWS][VECTORS], v[4] = {0}; // GCC does not see that they are set
    k_scales room;
    const k_scales *s = k_scales_of(w, n_rows, &room);
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const int64_t at = EIGHT * k + 4 * BLOCK * h;
        if (n == 1) four_of(x->q + at, true, v);
#    pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *q = w[r].at + 16 + 32 * h;
            fetch(&w[r], h ? 128 : 0, h ? 144 : 128);
            const nibbles first = nibbles_of(two_halves_at(q, q + 64)),
                          last = nibbles_of(two_halves_at(q + 16, q + 80));
#    pragma GCC unroll 4
            for (int j = 0; j < n; j++) {
                if (n > 1) four_of(x[j].q + at, false, v);
                const __m256i low =
                    _mm256_add_epi16(_mm256_maddubs_epi16(first.low, v[0]), _mm256_maddubs_epi16(last.low, v[1]));
                const __m256i high =
                    _mm256_add_epi16(_mm256_maddubs_epi16(first.high, v[2]), _mm256_maddubs_epi16(last.high, v[3]));
                two[h][r][j] = now(across_two(low, high, 16));
            }
        }
    }
#    pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++) {
        const __m256i parts = _mm256_broadcastsi128_si256(line_at(s->parts + 16 * r)),
                      scales = dwords_of(parts, 0, true);
        const __m256 d = _mm256_set1_ps(s->halves[2 * r]),
                     minima = _mm256_set1_ps(s->halves[2 * r + 1]) * _mm256_cvtepi32_ps(dwords_of(parts, 8, false));
#    pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            const __m256i words = across_four(two[0][r][j], two[1][r][j], 16);
            const __m256 less = _mm256_fmadd_ps(minima, _mm256_loadu_ps(x[j].sum + 8 * k), sums[r][j].eight);
            sums[r][j].eight = scaled(_mm256_madd_epi16(words, scales), d * _mm256_loadu_ps(x[j].d + 8 * k), less);
        }
    }
}

/// Part i of four: 32 bytes have two parts' low nibbles, other 32 the two bits above of all.
WT_INLINE __m256i six_bits(const uint8_t *low, __m256i high, const int i)
{
    const __m256i q = once_at(low + 32 * (i & 1)), nibble = i < 2 ? q : _mm256_srli_epi16(q, 4);
    const __m256i top = i == 0   ? _mm256_slli_epi16(high, 4)
                        : i == 1 ? _mm256_slli_epi16(high, 2)
                        : i == 2 ? high
                                 : _mm256_srli_epi16(high, 2);
    return _mm256_or_si256(_mm256_and_si256(nibble, _mm256_set1_epi8(15)),
                           _mm256_and_si256(top, _mm256_set1_epi8(0x30)));
}

/// 256 columns: 8 parts of 32, each with two scales; zero is 32. Four products of 63 * 127 at most fit 16 bits.
WT_INLINE void step_q6_k(const weights *w, int64_t k, const bytes *x, const int n, lanes *sums)
{
    const uint8_t *p = w->at;
    const __m128i scales = line_at(p + 192);
    const __m256 d = half_at(p + 208);
    const __m256i even_and_odd = _mm256_cvtepi8_epi16(
        _mm_shuffle_epi8(scales, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)));
#    pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
        __m256i dots[4];
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const int part = i % 2 * 2;
            const uint8_t *low = p + 64 * (i / 2);
            const __m256i high = once_at(p + 128 + 32 * (i / 2));
            const int8_t *v = x[j].q + EIGHT * k + 2 * BLOCK * i;
            const __m256i a = _mm256_maddubs_epi16(six_bits(low, high, part), bytes_at(v));
            const __m256i b = _mm256_maddubs_epi16(six_bits(low, high, part + 1), bytes_at(v + BLOCK));
            const __m256i of_a = _mm256_set1_epi64x(0x0100010001000100 + 0x0404040404040404 * i);
            const __m256i of_b = _mm256_set1_epi64x(0x0302030203020302 + 0x0404040404040404 * i);
            dots[i] = _mm256_madd_epi16(across_two(a, b, 16),
                                        _mm256_shuffle_epi8(even_and_odd, _mm256_blend_epi32(of_a, of_b, 0xcc)));
        }
        const __m256i all = across_halves(across_four(dots[0], dots[1], 32), across_four(dots[2], dots[3], 32));
        const __m256i less = _mm256_madd_epi16(_mm256_cvtepi8_epi16(scales), bytes_at(x[j].less + 8 * k));
        sums[j].eight = scaled(_mm256_sub_epi32(all, _mm256_slli_epi32(less, 5)), d * _mm256_loadu_ps(x[j].d + 8 * k),
                               sums[j].eight);
    }
}

BYTES_BY_ROW(q8_0, place_as_it_is, EIGHT, 272, 0)
BYTES_BY_ROW(i8, place_as_it_is, EIGHT, 256, 0)
BYTES(q4_0, step_q4_0, place_four_apart, EIGHT, 144, 8)
BYTES_BY_ROW(u4_eights, place_pairs_parted, 4 * BLOCK, 64, 8)
BYTES_BY_ROW(u4_zeros, place_pairs_parted, 4 * BLOCK, 64, 1)
BYTES(q4_k, step_q4_k, place_four_apart, EIGHT, 144, 1)
BYTES_BY_ROW(q6_k, place_with_sums_of_16, EIGHT, 210, 0)

static void strips_any_u4(const wt__product *p, int64_t first, int64_t n_rows)
{
    const wt__strips wide = p->linear->zeros ? strips_u4_zeros : strips_u4_eights;
    (p->linear->scale_columns % (4 * BLOCK) ? strips_u4 : wide)(p, first, n_rows);
}

const wt__strips wt__strips_avx2[WT_N_DTYPES] = {
    [WT_DTYPE_F32] = strips_f32,      [WT_DTYPE_BF16] = strips_bf16, [WT_DTYPE_F16] = strips_f16,
    [WT_DTYPE_F8_E4M3] = strips_e4m3, [WT_DTYPE_I8] = strips_i8,     [WT_DTYPE_U8] = strips_any_u4,
    [WT_DTYPE_Q8_0] = strips_q8_0,    [WT_DTYPE_Q4_0] = strips_q4_0, [WT_DTYPE_Q4_K] = strips_q4_k,
    [WT_DTYPE_Q6_K] = strips_q6_k,
};
#else
typedef int wt__matrix_no_avx2; // a translation unit may not be empty
#endif
