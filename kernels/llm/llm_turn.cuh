// Heads of queries and keys before attention: norm and RoPE, by a warp. Wants llm_cache.cuh.

#define OF_LANE ((D_HEAD + 31) / 32) // elements of a head that a lane has: lane, lane + 32 ..

// What a head is made of, on its way from memory.
struct raw_head {
    float values[OF_LANE], weights[OF_LANE], cosines[OF_LANE], sines[OF_LANE];
};

// What is there before the head is.
static __device__ __forceinline__ void load_turn(const wt_llm_turn_args &a, int t, const float *norm, raw_head *raw)
{
    const int lane = threadIdx.x % 32, half = a.n_dims / 2;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) {
        const int d = lane + 32 * i;
        raw->weights[i] = norm && d < D_HEAD ? norm[d] : 1;
        raw->cosines[i] = d < half ? a.cosines[(long long)t * half + d] : 1;
        raw->sines[i] = d < half ? a.sines[(long long)t * half + d] : 0;
    }
}

static __device__ __forceinline__ void load_values(const float *x, raw_head *raw)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) raw->values[i] = lane + 32 * i < D_HEAD ? x[lane + 32 * i] : 0;
}

static __device__ __forceinline__ raw_head load_head(const wt_llm_turn_args &a, int t, const float *x,
                                                     const float *norm)
{
    raw_head raw;
    load_turn(a, t, norm, &raw);
    load_values(x, &raw);
    return raw;
}

// To shared memory, normalised if it `has_norm`, and turned.
static __device__ __forceinline__ void turn(const wt_llm_turn_args &a, const raw_head &raw, bool has_norm, float *head)
{
    const int lane = threadIdx.x % 32, half = a.n_dims / 2, step = a.interleaved ? 2 : 1;
    const int apart = a.interleaved ? 1 : half;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) squares += raw.values[i] * raw.values[i];
    const float scale = has_norm ? 1 / sqrtf(warp_sum(squares) / (float)D_HEAD + a.eps) : 1;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++)
        if (lane + 32 * i < D_HEAD) head[lane + 32 * i] = raw.values[i] * (scale * raw.weights[i]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) {
        const int k = lane + 32 * i;
        if (k >= half) continue;
        const float p = head[k * step], q = head[k * step + apart];
        head[k * step] = p * raw.cosines[i] - q * raw.sines[i];
        head[k * step + apart] = q * raw.cosines[i] + p * raw.sines[i];
    }
    __syncwarp();
}
