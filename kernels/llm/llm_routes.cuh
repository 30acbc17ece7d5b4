// The choice of a token's experts by a warp, from what its router gave. Wants llm_types.cuh.
#ifndef WT_LLM_ROUTES_CUH
#define WT_LLM_ROUTES_CUH

static __device__ __forceinline__ float warp_max(float x)
{
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

// Order of probabilities; 0 of what is taken, or is not a number.
static __device__ __forceinline__ unsigned key_of(float p) { return p >= 0 ? __float_as_uint(p) + 1 : 0; }

// The largest key of those that a lane has, the first of equals.
static __device__ __forceinline__ unsigned largest_key(const float *p, int n, int *which)
{
    unsigned largest = 0;
    *which = n;
    for (int e = threadIdx.x % 32; e < n; e += 32) {
        const unsigned key = key_of(p[e]);
        if (key > largest) {
            largest = key;
            *which = e;
        }
    }
    return largest;
}

// The n_used most probable experts of a token to `experts`, the first of equals first, and to `shares` theirs. Lanes
// have probabilities lane, lane + 32 .. of `p` [n_experts], in shared memory; a taken one becomes negative. Returns
// what the last one's logit leads the next one's by, as a part of their range.
static __device__ float choose(const wt_llm_choose_args &a, const float *routes, float *p, int *experts, float *shares)
{
    const int lane = threadIdx.x % 32, n = a.n_experts;
    const float infinite = __int_as_float(0x7f800000);
    float most = -infinite, least = infinite, total = 0, kept = 0, last = 0;
    for (int e = lane; e < n; e += 32) {
        float x; // not from the L1 cache, which may have the layer's before
        asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(routes + e) : "memory");
        p[e] = x;
        most = fmaxf(most, x);
        least = fminf(least, x);
    }
    most = warp_max(most);
    least = -warp_max(-least);
    for (int e = lane; e < n; e += 32) total += p[e] = expf(p[e] - most);
    total = warp_sum(total);
    int whose;
    unsigned own = largest_key(p, n, &whose);
    for (int k = 0; k < a.n_used; k++) {
        const unsigned best = __reduce_max_sync(ALL, own);
        const int first = (int)__reduce_min_sync(ALL, own == best ? (unsigned)whose : (unsigned)n);
        const int which = best ? first : k; // not a number is nobody's largest
        last = best ? __uint_as_float(best - 1) : -2;
        kept += last / total;
        if (lane == which % 32) { // who alone reads and writes that place
            experts[k] = which;
            shares[k] = last / total;
            p[which] = -1;
            own = largest_key(p, n, &whose);
        }
    }
    __syncwarp();
    for (int k = lane; a.normalise && k < a.n_used; k += 32) shares[k] /= kept;
    const unsigned next = __reduce_max_sync(ALL, own);
    __syncwarp();
    if (next < 2 || !(most > least)) return 1; // the next one's probability is 0, or there is none
    return logf(last / __uint_as_float(next - 1)) / (most - least);
}

#endif
