// The vector of llm_quant.cu: its norm, and its parts in shared memory as the products take them.
#include "llm_quant.cuh"

// Where eight columns from k on stand among the 16-bit words of x: lanes of a row read 16 bytes each side by side (8
// where PER is 4).
static __device__ __forceinline__ int place_of(int k)
{
    const int q = k / (4 * PER), t = k / PER % 4;
    return PER < 8 ? (q * 4 + t) * 4 : ((q * N_SUB + k % PER / 8) * 4 + t) * 8;
}

struct eight {
    float at[8];
};

// Columns k .. k + 7; beyond the columns zeros.
static __device__ __forceinline__ eight load_eight(const float *x, int k, int columns)
{
    const float4 *from = (const float4 *)(x + k);
    const float4 zero = {0, 0, 0, 0}, a = k < columns ? from[0] : zero, b = k < columns ? from[1] : zero;
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// The bits of the largest magnitude of the group of the lane's eight columns, or, where half a warp has a group, of both
// groups of the warp: one instruction. Neither infinities nor what is no number get lost.
static __device__ __forceinline__ unsigned largest_of(const eight &v)
{
    unsigned most = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) most = max(most, __float_as_uint(v.at[k]) & 0x7fffffffu);
    if (EIGHTS_A_GROUP == 16) return __reduce_max_sync(ALL, most);
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) most = max(most, __shfl_xor_sync(ALL, most, step));
    return most;
}

// Of all lanes of the group.
static __device__ __forceinline__ int sum_of_group(int x)
{
    if (EIGHTS_A_GROUP == 16) {
        const bool first = threadIdx.x % 32 < 16;
        const int of_first = __reduce_add_sync(ALL, first ? x : 0), of_both = __reduce_add_sync(ALL, x);
        return first ? of_first : of_both - of_first;
    }
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// ---- x as two f16, its unit a power of two that leaves the largest of a group 2^14 .. 2^15, or as two bf16

// Eight columns, from place k of x on, to both halves of x. All lanes.
static __device__ __forceinline__ void store_halves(const memory &m, int k, const eight &v, bool is_there)
{
    const unsigned exponent = IS_PLAIN ? 141 : largest_of(v) >> 23;
    const bool has_unit = exponent > 14; // else x is too small for a unit
    const float inverse = has_unit ? __uint_as_float((268 - exponent) << 23) : 0;
    unsigned high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float a = v.at[column_of(2 * i)] * inverse, b = v.at[column_of(2 * i + 1)] * inverse;
        if (IS_PLAIN) {
            high[i] = bf16_pair_of(a, b);
            low[i] = bf16_pair_of(a - __uint_as_float(high[i] << 16), b - __uint_as_float(high[i] & 0xffff0000u));
        } else {
            high[i] = f16_pair_of(a, b);
            low[i] =
                f16_pair_of(a - f32_of_f16((unsigned short)high[i]), b - f32_of_f16((unsigned short)(high[i] >> 16)));
        }
    }
    if (!is_there) return;
    unsigned short *to = m.x + place_of(k);
    *(uint4 *)to = {high[0], high[1], high[2], high[3]};
    *(uint4 *)(to + m.pitch) = {low[0], low[1], low[2], low[3]};
    const unsigned no_number = 0x7fffffff; // where x has none or an infinity
    if (!IS_PLAIN && k % OF_GROUP == 0)
        m.of_x[k / OF_GROUP] = {__uint_as_float(exponent == 255 ? no_number : has_unit ? (exponent - 14) << 23 : 0), 0};
}

// ---- x as whole numbers of 22 bits and a sign, the unit a power of two, in three digits of 8 bits with a sign

#define OFFSET 0x808080 // what digits without a sign have more

// Four numbers' digits: word k has digit k of each. *sum += the numbers and their offsets.
static __device__ __forceinline__ void digits_of(const eight &x, int first, float inverse, unsigned *words, int *sum)
{
    unsigned u[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u[k] = __float_as_uint(fmaf(x.at[column_of(first + k)], inverse, 12582912.0f)) + (OFFSET - 0x4b400000u);
        *sum += (int)u[k];
    }
    const unsigned a = __byte_perm(u[0], u[1], 0x5140), b = __byte_perm(u[2], u[3], 0x5140);
    words[0] = __byte_perm(__byte_perm(u[0], u[1], 0x0062), __byte_perm(u[2], u[3], 0x0062), 0x5410);
    words[1] = __byte_perm(a, b, 0x7632);
    words[2] = __byte_perm(a, b, 0x5410);
#pragma unroll
    for (int k = 0; k < 3; k++) words[k] ^= 0x80808080u;
}

// Eight columns, from place k of x on, to its digits, with what is known of their group. All lanes.
static __device__ __forceinline__ void store_digits(const memory &m, int k, const eight &v, bool is_there)
{
    const unsigned exponent = largest_of(v) >> 23;
    const bool has_unit = exponent > 21; // else x is too small for a unit
    const float inverse = has_unit ? __uint_as_float((275 - exponent) << 23) : 0;
    unsigned words[2][3];
    int sum = -8 * OFFSET;
#pragma unroll
    for (int h = 0; h < 2; h++) digits_of(v, 4 * h, inverse, words[h], &sum);
    sum = sum_of_group(sum);
    if (!is_there) return;
    const unsigned no_number = 0x7fffffff; // where x has none or an infinity
    const float unit = __uint_as_float(exponent == 255 ? no_number : has_unit ? (exponent - 21) << 23 : 0);
    unsigned char *to = (unsigned char *)m.x + k;
#pragma unroll
    for (int d = 0; d < 3; d++, to += m.pitch) {
#if IS_SPREAD // a product takes the first words of two eights, the next their second ones
        *(unsigned *)(to - k % 16 / 2) = words[0][d];
        *(unsigned *)(to - k % 16 / 2 + 8) = words[1][d];
#else
        *(uint2 *)to = {words[0][d], words[1][d]};
#endif
    }
    if (k % OF_GROUP == 0) m.of_x[k / OF_GROUP] = {unit, unit * (float)sum};
}

// Sum over the warps that multiply, of each lane, for all of them.
static __device__ float sum_of_warps(float x, float *scratch)
{
    x = warp_sum(x);
    meet<WARPS_MEET, WARPS>(); // scratch may hold the sum before
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    meet<WARPS_MEET, WARPS>();
    return warp_sum(threadIdx.x % 32 < WARPS ? scratch[threadIdx.x % 32] : 0);
}

// Mean of x and the scale of a LayerNorm.
static __device__ void measure(const wt_llm_matvec_args &a, float *scratch, float *mean, float *scale)
{
    float sum = 0, squares = 0;
    for (int k = threadIdx.x; k < a.columns; k += 32 * WARPS) sum += a.x[k];
    *mean = sum_of_warps(sum, scratch) / (float)a.columns;
    for (int k = threadIdx.x; k < a.columns; k += 32 * WARPS) squares += (a.x[k] - *mean) * (a.x[k] - *mean);
    *scale = 1 / sqrtf(sum_of_warps(squares, scratch) / (float)a.columns + a.eps);
}

// Where a warp is: the first of its columns and its place in x, of turn 0; the next turn's are `step` on.
struct share {
    int first, place, step;
    const float *x; // the vector
};

// The i-th eight of the warp's columns, over all turns: the column that it begins with.
static __device__ __forceinline__ int column_at(const share &own, int i)
{
    return own.first + i / OF_STAGE * own.step + i % OF_STAGE * 8;
}

// N of the lane's eights, from the first-th of the warp's on, of n.
template <int N>
static __device__ __forceinline__ void load_columns(const float *x, const share &own, int first, int n, int columns,
                                                    eight *v)
{
#pragma unroll
    for (int u = 0; u < N; u++) {
        const int i = first + u * 32 + threadIdx.x % 32;
        v[u] = load_eight(x, i < n ? column_at(own, i) : columns, columns);
    }
}

template <int N>
static __device__ __forceinline__ void load_weights(const wt_llm_quant_args &a, const share &own, int first, eight *w)
{
    if (a.m.norm_weight)
        load_columns<N>(a.m.norm_weight, own, first, a.n_turns * OF_STAGE, a.m.columns, w);
    else
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
            for (int k = 0; k < 8; k++) w[u].at[k] = 1;
}

// x, or its norm, and what is known of its groups, of the warp's columns; their squares, of the lane. N eights of a
// lane are on their way together; `w` has the norm's weights of the first, or ones. A launch comes here once, and waits
// for instructions as for x: few of them, and a loop.
template <int N, bool IS_WEIGHED>
static __device__ __forceinline__ float stage_x(const wt_llm_quant_args &a, const memory &m, const share &own, eight *w,
                                                float mean, float scale, unsigned long long *asked)
{
    const int columns = a.m.columns, n = a.n_turns * OF_STAGE;
    float squares = 0;
    for (int first = 0; first < n; first += 32 * N) {
        eight x[N];
        load_columns<N>(own.x, own, first, n, columns, x);
        if (!first && threadIdx.x == 0) barrier_arrive(asked);
        if (IS_WEIGHED && first) load_weights<N>(a, own, first, w);
        const int end = min(n, first + 32 * N);
#pragma unroll 1
        for (int from = first; from < end; from += 32) {
            const int i = from + threadIdx.x % 32;
#pragma unroll
            for (int k = 0; k < 8; k++) squares += x[0].at[k] * x[0].at[k];
            if (IS_WEIGHED && a.m.norm_bias) {
                const eight bias = load_eight(a.m.norm_bias, i < n ? column_at(own, i) : columns, columns);
#pragma unroll
                for (int k = 0; k < 8; k++) x[0].at[k] = (x[0].at[k] - mean) * scale * w[0].at[k] + bias.at[k];
            } else if (IS_WEIGHED)
#pragma unroll
                for (int k = 0; k < 8; k++) x[0].at[k] *= w[0].at[k];
            const int place = own.place + i / OF_STAGE * (WARPS * COLUMNS) + i % OF_STAGE * 8;
            if (DIGITS)
                store_digits(m, place, x[0], i < n);
            else
                store_halves(m, place, x[0], i < n);
#pragma unroll
            for (int u = 1; u < N; u++) {
                x[u - 1] = x[u];
                if (IS_WEIGHED) w[u - 1] = w[u];
            }
        }
    }
    return warp_sum(squares);
}
