// Forgetful selection (dsp/decompose/median_run.c), a median a thread: up to 63 values all kept ones stay in registers.
#pragma once

// What is kept of the values seen so far: M keys, the answer at RANK among them and the TO_COME.
template <int M, int RANK, int TO_COME> struct kept {
    static constexpr int seen = M;
    int key[M ? M : 1];
};

// Insert the next value and forget what cannot become the median any more.
template <int M, int RANK, int TO_COME> struct step {
    static constexpr bool low = RANK > TO_COME - 1, high = M > RANK;
    typedef kept<M + 1 - low - high, RANK - low, TO_COME - 1> next;
    static __device__ __forceinline__ next insert(const kept<M, RANK, TO_COME> &s, int y)
    {
        next n;
#pragma unroll
        for (int i = 0; i < next::seen; i++) {
            const int at = i + low; // its place among all M + 1
            int v = at > 0 ? max(s.key[at > 0 ? at - 1 : 0], y) : y;
            n.key[i] = at < M ? min(v, s.key[at < M ? at : 0]) : v;
        }
        return n;
    }
};

template <int COUNT, class Get, int M, int RANK, int TO_COME>
__device__ __forceinline__ auto insert_all(const kept<M, RANK, TO_COME> &s, const Get &get, int first)
{
    if constexpr (COUNT == 0)
        return s;
    else
        return insert_all<COUNT - 1>(step<M, RANK, TO_COME>::insert(s, get(first)), get, first + 1);
}

// The key of rank K / 2 of get(0) .. get(K - 1).
template <int K, class Get> __device__ __forceinline__ int median_of(const Get &get)
{
    const kept<0, K / 2, K> none = {};
    return insert_all<K>(none, get, 0).key[0];
}

// d c b a | a b c d | d c b a
__device__ __forceinline__ long long median_mirror(long long at, long long n)
{
    if (at >= 0 && at < n) return at;
    at %= 2 * n;
    if (at < 0) at += 2 * n;
    return at < n ? at : 2 * n - 1 - at;
}

// Negative floats have their order turned; the map is its own inverse.
__device__ __forceinline__ int median_turn(int bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
