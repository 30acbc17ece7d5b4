// The products of llm_quant.cu: a stage of weights by its part of the vector.
#include "llm_quant.cuh"

// The lane's bytes of read `unit` of group j of a stage, its row being the g-th of eight.
static __device__ __forceinline__ void read_words(const unsigned char *row, int j, int unit, unsigned *words)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    unit += IS_Q4_K ? j / 2 : j * UNITS;
    if (IS_Q4_K) {
        const uint2 v = *(const uint2 *)(row + 16 + unit * 32 + t * 8);
        words[0] = v.x;
        words[1] = v.y;
    } else if (LANE == 16) {
        const uint4 v = *(const uint4 *)(row + ((unit * 4 + t) ^ g) * 16);
        words[0] = v.x;
        words[1] = v.y;
        words[2] = v.z;
        words[3] = v.w;
    } else if (LANE == 8) {
        const uint2 v = *(const uint2 *)(row + ((unit * 2 + t / 2) ^ g) * 16 + t % 2 * 8);
        words[0] = v.x;
        words[1] = v.y;
    } else
        words[0] = *(const unsigned *)(row + (unit ^ g) * 16 + t * 4);
}

// Eight columns of x of a lane, or four, of those of read `unit` counted over the row. Lanes whose columns of the
// product belong to another group never load and keep zeros.
static __device__ __forceinline__ void read_x(const unsigned short *x, int unit, int sub, bool mine, unsigned *b)
{
    const int t = threadIdx.x % 4;
    if (PER >= 8)
        load_shared_16(b, x + ((unit * N_SUB + sub) * 4 + t) * 8, mine);
    else if (mine) {
        const uint2 v = *(const uint2 *)(x + (unit * 4 + t) * 4);
        b[0] = v.x;
        b[1] = v.y;
    }
}

static __device__ __forceinline__ void multiply_pairs(float *sums, const unsigned *a, const unsigned *x)
{
    if (IS_PLAIN)
        mma_bf16(sums, a, x[0], x[1]);
    else
        mma_f16(sums, a, x[0], x[1]);
}

// Group j of a stage, whose columns of x begin at x: sums += its products. Lanes of other groups keep zeros.
static __device__ __forceinline__ void multiply_group(const unsigned char *const *row, const unsigned short *x, int j,
                                                      bool mine, unsigned (*b)[4], float (*sums)[4])
{
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4], w[2][PER < 4 ? 2 : PER / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            read_words(row[h], j, u, words[h]);
            pairs_of(words[h], w[h]);
        }
#pragma unroll
        for (int i = 0; i < N_SUB; i++) {
            unsigned *v = b[u * N_SUB + i];
            if (!X_FIRST) read_x(x, j * UNITS + u, i, mine, v);
#pragma unroll
            for (int k = 0; k < (PER < 8 ? 1 : 2); k++) {
                const int at = 4 * i + 2 * k;
                const unsigned fragment[4] = {w[0][at], w[1][at], w[0][at + 1], w[1][at + 1]};
                multiply_pairs(sums[(u * N_SUB + i + k) % 2], fragment, v + 2 * k);
            }
        }
    }
}

// Digits of x of a lane, N bytes from `at` on.
template <int N> static __device__ __forceinline__ void read_digits(const unsigned char *at, bool mine, unsigned *b)
{
#pragma unroll
    for (int k = 0; k < N / 16; k++) load_shared_16(b + 4 * k, at + 16 * k, mine);
    if (N == 8 && mine) {
        const uint2 v = *(const uint2 *)at;
        b[0] = v.x;
        b[1] = v.y;
    }
}

// What a product of 16 x 32 takes of both rows' words: of nibbles the low ones of two words, or the high ones where
// they lie, 16 times as large.
static __device__ __forceinline__ void multiply_nibbles(int *sums, const unsigned *first, const unsigned *second,
                                                        unsigned mask, unsigned b0, unsigned b1)
{
    const unsigned a[4] = {first[0] & mask, second[0] & mask, first[1] & mask, second[1] & mask};
    mma_u8(sums, a, b0, b1);
}

// Group j of a stage, whose columns of x begin at x: sums += its products, sums[1] 16 times as large where IS_SPREAD.
// Lanes of other groups keep zeros.
static __device__ __forceinline__ void multiply_digits(const unsigned char *const *row, const unsigned char *x, int j,
                                                       bool mine, unsigned *b, int (*sums)[4])
{
    const int t = threadIdx.x % 4;
    const unsigned low = 0x0f0f0f0fu;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4];
        unsigned *v = b + u * PER / 4;
#pragma unroll
        for (int h = 0; h < 2; h++) read_words(row[h], j, u, words[h]);
        if (!X_FIRST) read_digits<PER>(x + (u * 4 + t) * PER, mine, v);
#if IS_SPREAD
#    pragma unroll
        for (int k = 0; k < PER / 8; k += 2) {
            multiply_nibbles(sums[0], &words[0][k], &words[1][k], low, v[2 * k], v[2 * k + 1]);
            multiply_nibbles(sums[1], &words[0][k], &words[1][k], ~low, v[2 * k + 2], v[2 * k + 3]);
        }
#else
#    pragma unroll
        for (int k = 0; k < PER / 8; k++) {
            unsigned a[4];
#    pragma unroll
            for (int h = 0; h < 2; h++)
                if (WEIGHT == WT_MM_I8) {
                    a[h] = words[h][2 * k];
                    a[h + 2] = words[h][2 * k + 1];
                } else if (IS_Q4_K) {
                    a[h] = words[h][0] >> 4 * (j % 2) & low;
                    a[h + 2] = words[h][1 % (LANE / 4)] >> 4 * (j % 2) & low;
                } else {
                    a[h] = words[h][k] & low;
                    a[h + 2] = words[h][k] >> 4 & low;
                }
            mma_i8(sums[k % 2], a, v[2 * k], v[2 * k + 1]);
        }
#endif
    }
}

// Scale and minimum of part j of 8 of a Q4_K block, from its first 16 bytes; as q4_k_part of matmul.cuh.
static __device__ __forceinline__ void q4_k_scales(const unsigned char *block, int j, float *scale, float *minimum)
{
    const uint4 h = *(const uint4 *)block;
    const int shift = 8 * (j & 3);
    const unsigned low = h.y >> shift, middle = h.z >> shift, high = h.w >> shift;
    const unsigned s = j < 4 ? low & 63 : (high & 15) | (low >> 2 & 48);
    const unsigned n = j < 4 ? middle & 63 : (high >> 4 & 15) | (middle >> 2 & 48);
    *scale = f32_of_f16((unsigned short)h.x) * (float)s;
    *minimum = f32_of_f16((unsigned short)(h.x >> 16)) * (float)n;
}

// What the lane's group j of a row's piece adds to the row: `sum`, less the `x` that zero points or minima take away,
// by its scale `word`.
static __device__ __forceinline__ float scaled(const unsigned char *row, unsigned word, int j, float x, float sum)
{
    if (IS_Q4_K) {
        float scale, minimum;
        q4_k_scales(row, j, &scale, &minimum);
        return scale * sum - minimum * x;
    }
    if (!GROUP) return sum;
    if (SCALE == WT_LLM_SCALE_ZERO) return f32_of_f16((unsigned short)word) * (sum - (float)(word >> 16) * x);
    const float scale = SCALE == WT_MM_F16 ? f32_of_f16((unsigned short)word) : __uint_as_float(word);
    return scale * (WEIGHT == WT_MM_U4 ? sum - 8 * x : sum);
}

// The x of a stage, from `place` on, and what is known of the lane's group.
static __device__ __forceinline__ float2 read_first(const memory &m, int place, unsigned (*b)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
#if DIGITS
            const unsigned char *x = (const unsigned char *)m.x + g % 4 * m.pitch + place + k * OF_GROUP;
            read_digits<PER>(x + (u * 4 + t) * PER, g / 4 == k && g % 4 < 3, b[k * (X_READS / AT_ONCE)] + u * PER / 4);
#else
#    pragma unroll
            for (int i = 0; i < N_SUB; i++)
                read_x(m.x + g % 2 * m.pitch + place, k * UNITS + u, i, g / 2 == k, b[(k * UNITS + u) * N_SUB + i]);
#endif
        }
    return m.of_x[place / OF_GROUP + GROUP_OF(t) % AT_ONCE];
}

// A stage by the vector from `place` of x on: rows[h] += the lane's share. Its rows g and g + 8 begin at row[], their
// scales at scale[].
static __device__ __forceinline__ void multiply(const memory &m, const unsigned char *const *row,
                                                const unsigned char *const *scale, int place, float2 first_of_x,
                                                unsigned (*b)[4], float *rows)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int from = 0; from < N_GROUPS; from += AT_ONCE) {
        const int j = from + GROUP_OF(t) % AT_ONCE;
        const float2 of_x = X_FIRST ? first_of_x : m.of_x[place / OF_GROUP + j];
        unsigned words[2] = {};
#pragma unroll
        for (int h = 0; h < 2 && SCALED; h++)
            words[h] = OF_SCALE == 2 ? ((const unsigned short *)scale[h])[j] : ((const unsigned *)scale[h])[j];
#if DIGITS // whose lanes have digits 0 and 1, or 2
        int sums[2][4] = {};
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            multiply_digits(row, (unsigned char *)m.x + g % 4 * m.pitch + place + (from + k) * OF_GROUP, from + k,
                            g / 4 == k && g % 4 < 3, b[k * (X_READS / AT_ONCE)], sums);
        const float first = of_x.x * (t % 2 ? 1 : 65536), second = of_x.x * (t % 2 ? 0 : 256),
                    less = t % 2 ? 0 : of_x.y;
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const int shift = IS_SPREAD ? 4 : 0;
            const float sum = first * (float)(sums[0][2 * h] + (sums[1][2 * h] >> shift)) +
                              second * (float)(sums[0][2 * h + 1] + (sums[1][2 * h + 1] >> shift));
            if (GROUP_OF(t) < AT_ONCE) rows[h] += scaled(row[h], words[h], j, less, sum);
        }
#else
        float sums[2][4] = {};
        const unsigned short *x = m.x + g % 2 * m.pitch + place;
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++) multiply_group(row, x, from + k, g / 2 == k, b + k * UNITS * N_SUB, sums);
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = sums[0][2 * h] + sums[0][2 * h + 1] + sums[1][2 * h] + sums[1][2 * h + 1];
            if (t < AT_ONCE) rows[h] += scaled(row[h], words[h], j, 0, IS_PLAIN ? sum : of_x.x * sum);
        }
#endif
    }
}
