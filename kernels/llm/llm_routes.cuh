// The choice of a token's experts by a warp, from what its router gave. Wants llm_types.cuh.
#ifndef WT_LLM_ROUTES_CUH
#define WT_LLM_ROUTES_CUH

// What a lane knows of the choice: of the expert in the slot that is its number.
struct routed {
    int expert;
    float share;
    float lead; // of all lanes: what the last one's logit leads the next one's by, as a part of their range
};

// Order of numbers, and of probabilities: 0 of what is taken, or is not a number.
static __device__ __forceinline__ unsigned order_of(float x)
{
    const int bits = __float_as_int(x);
    return (unsigned)(bits ^ (bits >> 31 | 0x80000000));
}
static __device__ __forceinline__ float largest_of_warp(float x)
{
    const unsigned most = __reduce_max_sync(ALL, order_of(x));
    return __uint_as_float(most >> 31 ? most ^ 0x80000000 : ~most);
}
static __device__ __forceinline__ unsigned key_of(float p) { return p >= 0 ? __float_as_uint(p) + 1 : 0; }

// The largest of a lane's keys, the first of equals, and whose it is.
template <int EACH> static __device__ __forceinline__ unsigned largest_key(const unsigned *keys, int n, int *whose)
{
    unsigned largest = 0;
    *whose = n;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (keys[j] <= largest) continue;
        largest = keys[j];
        *whose = 32 * j + (int)threadIdx.x % 32;
    }
    return largest;
}

// The n_used most probable experts of a token, the first of equals first, to `experts` and their shares to `shares`,
// unless NULL, by a warp whose lanes have lane, lane + 32 .., EACH at most. `leads`: says what the last one leads by.
template <int EACH>
static __device__ routed choose(const wt_llm_choose_args &a, const float *routes, int *experts, float *shares,
                                bool leads)
{
    const int lane = threadIdx.x % 32, n = a.n_experts;
    const float infinite = __int_as_float(0x7f800000);
    float p[EACH], most = -infinite, least = infinite, total = 0, kept = 0, last = 0;
    unsigned keys[EACH];
    routed own = {0, 0, 1};
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        p[j] = -infinite;
        if (32 * j + lane < n) // not from the L1 cache, which may have the layer's before
            asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(p[j]) : "l"(routes + 32 * j + lane) : "memory");
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        most = fmaxf(most, p[j]);
        if (32 * j + lane < n) least = fminf(least, p[j]);
    }
    most = largest_of_warp(most);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const float x = 32 * j + lane < n ? expf(p[j] - most) : 0;
        total += x;
        keys[j] = 32 * j + lane < n ? key_of(x) : 0;
    }
    total = warp_sum(total);
    int whose;
    unsigned largest = largest_key<EACH>(keys, n, &whose);
    for (int k = 0; k < a.n_used; k++) {
        const unsigned best = __reduce_max_sync(ALL, largest);
        const int first = (int)__reduce_min_sync(ALL, largest == best ? (unsigned)whose : (unsigned)n);
        const int which = best ? first : k; // not a number is nobody's largest
        last = best ? __uint_as_float(best - 1) : -2;
        kept += last;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (which == 32 * j + lane) keys[j] = 0;
        largest = largest_key<EACH>(keys, n, &whose);
        if (lane != k % 32) continue;
        own.expert = which;
        own.share = last;
        if (experts) experts[k] = which;
        if (shares) shares[k] = last;
    }
    const float whole = a.normalise ? kept : total;
    own.share /= whole;
    for (int k = lane; shares && k < a.n_used; k += 32) shares[k] /= whole;
    if (!leads) return own;
    const unsigned next = __reduce_max_sync(ALL, largest);
    least = -largest_of_warp(-least);
    if (next > 1 && most > least) // else the next one's probability is 0, or there is none
        own.lead = logf(last / __uint_as_float(next - 1)) / (most - least);
    return own;
}

#endif
