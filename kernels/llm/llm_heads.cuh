// Heads of queries and of a step's keys in a warp's registers, where two numbers that RoPE turns together are one
// lane's: a lane has dimensions EACH * lane .. and as many half a head on. Wants llm_positions.cuh.
#include "llm_turn.cuh"

static constexpr int EACH = D_HEAD / 64; // of each half of a head

typedef pack<float, EACH> some;

// What a head is turned with: dimensions EACH * lane .. and half a head on.
struct turning {
    some weights[2], cosines, sines;
};

static __device__ __forceinline__ some load_some(const float *from)
{
    return *(const some *)(from + EACH * (threadIdx.x % 32));
}

static __device__ __forceinline__ bool is_plain(const wt_llm_turn_args &a)
{
    return a.n_dims == D_HEAD && !a.interleaved;
}

// Of a plain turn.
static __device__ __forceinline__ turning load_turning(const wt_llm_turn_args &a, int token, const float *norm)
{
    turning w;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int e = 0; e < EACH; e++) w.weights[h].at[e] = 1;
    if (norm) {
        w.weights[0] = load_some(norm);
        w.weights[1] = load_some(norm + D_HEAD / 2);
    }
    w.cosines = load_some(a.cosines + (long long)token * (D_HEAD / 2));
    w.sines = load_some(a.sines + (long long)token * (D_HEAD / 2));
    return w;
}

struct head {
    some half[2];
};

static __device__ __forceinline__ head load_halves(const float *from)
{
    return {load_some(from), load_some(from + D_HEAD / 2)};
}

// As turn() does it where the elements of a pair are one lane's.
static __device__ __forceinline__ void turn_own(const wt_llm_turn_args &a, const turning &w, bool has_norm, head *x)
{
    some &low = x->half[0], &high = x->half[1];
    float squares = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) squares += low.at[e] * low.at[e] + high.at[e] * high.at[e];
    const float scale = has_norm ? rsqrtf(warp_sum(squares) / D_HEAD + a.eps) : 1;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const float p = low.at[e] * (scale * w.weights[0].at[e]), q = high.at[e] * (scale * w.weights[1].at[e]);
        low.at[e] = p * w.cosines.at[e] - q * w.sines.at[e];
        high.at[e] = q * w.cosines.at[e] + p * w.sines.at[e];
    }
}

// Any other way, of pairs that are not one lane's.
static __device__ __forceinline__ head turned(const wt_llm_turn_args &a, int token, const float *from,
                                              const float *norm, float *scratch)
{
    turn(a, load_head(a, token, from, norm), norm, scratch);
    const head x = load_halves(scratch);
    __syncwarp(); // the next turn's
    return x;
}

// Two numbers as a word of the tiles' type, and what that leaves of them as another.
static __device__ __forceinline__ unsigned parted(float x, float y, unsigned *left)
{
    const unsigned word = pair_of(x, y);
#if KV == WT_LLM_BF16
    *left = pair_of(x - __uint_as_float(word << 16), y - __uint_as_float(word & 0xffff0000));
#else
    *left = pair_of(x - f32_of_f16((unsigned short)word), y - f32_of_f16((unsigned short)(word >> 16)));
#endif
    return word;
}

// As numbers of the tiles' type, and what that leaves.
static __device__ __forceinline__ void put_parts(const head &x, tile_type *rounded, tile_type *left)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int d = h * (D_HEAD / 2) + EACH * (threadIdx.x % 32);
        unsigned low, word = parted(x.half[h].at[0], EACH == 2 ? x.half[h].at[EACH - 1] : 0, &low);
        if (EACH == 2) {
            *(unsigned *)(rounded + d) = word;
            *(unsigned *)(left + d) = low;
        } else {
            rounded[d].bits = (unsigned short)word;
            left[d].bits = (unsigned short)low;
        }
    }
}

template <int N> static __device__ __forceinline__ pack<kv_type, N> narrowed(const pack<float, N> &x)
{
    pack<kv_type, N> y;
#pragma unroll
    for (int k = 0; k < N; k++) narrow(x.at[k], &y.at[k]);
    return y;
}

static __device__ __forceinline__ void put_head(const head &x, kv_type *to)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
        *(pack<kv_type, EACH> *)(to + h * (D_HEAD / 2) + EACH * (threadIdx.x % 32)) = narrowed(x.half[h]);
}
