// Types of weights and caches as floats, sums over warps and blocks, and the activations.
#include "llm_kernel.h"

#define ALL 0xffffffffu

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

static __device__ __forceinline__ float widen(float x) { return x; }
static __device__ __forceinline__ float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
static __device__ __forceinline__ float widen(f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

static __device__ __forceinline__ void narrow(float x, float *y) { *y = x; }
static __device__ __forceinline__ void narrow(float x, bf16 *y)
{
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y->bits) : "f"(x));
}
static __device__ __forceinline__ void narrow(float x, f16 *y)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y->bits) : "f"(x));
}

// OCP FP8 E4M3: 7 is the bias, 448 the largest, to which larger numbers are cut; no infinities.
struct e4m3 {
    unsigned char bits;
};

static __device__ __forceinline__ float widen(e4m3 x)
{
    return __uint_as_float((x.bits & 0x7fu) << 20 | (x.bits & 0x80u) << 24) * 0x1p120f;
}

static __device__ __forceinline__ void narrow(float x, e4m3 *y)
{
    const unsigned bits = __float_as_uint(fabsf(x)), even = bits + (1u << 19) - 1 + (bits >> 20 & 1);
    const unsigned normal = (even >> 20) - (120u << 3), small = __float2uint_rn(fabsf(x) * 512); // units of 2^-9
    const unsigned n = bits > 0x7f800000u ? 0x7f : min(bits < 0x3c800000u ? small : normal, 0x7eu);
    y->bits = (unsigned char)(n | __float_as_uint(x) >> 24 & 0x80);
}

// Element `at` of an array of `type`.
static __device__ __forceinline__ float load(const void *p, int type, long long at)
{
    if (type == WT_LLM_F32) return ((const float *)p)[at];
    return type == WT_LLM_F16 ? widen(((const f16 *)p)[at]) : widen(((const bf16 *)p)[at]);
}

static __device__ __forceinline__ void store(void *p, int type, long long at, float x)
{
    if (type == WT_LLM_F32) ((float *)p)[at] = x;
    if (type == WT_LLM_F16) narrow(x, (f16 *)p + at);
    if (type == WT_LLM_BF16) narrow(x, (bf16 *)p + at);
}

// And of 16 bits what rounding left of it, `behind` elements on.
static __device__ __forceinline__ void store_parts(void *p, int type, long long at, float x, bool two, long long behind)
{
    store(p, type, at, x);
    if (two) store(p, type, at + behind, x - load(p, type, at));
}

// Elements that come from memory at once.
template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

// 16 bytes if `wanted`, else what there was. Not a branch: a compiler that joins two ways waits for the load there.
static __device__ __forceinline__ void load_if(bool wanted, const void *from, uint4 *to)
{
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(to->x), "+r"(to->y), "+r"(to->z), "+r"(to->w)
                 : "l"(from), "r"((int)wanted));
}

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// Sum over the block's threads, a multiple of 32 and at most 1024, for all of them; `scratch` [32] is shared.
static __device__ float block_sum(float x, float *scratch)
{
    const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
    x = warp_sum(x);
    __syncthreads(); // scratch may hold the sum before
    if (!lane) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < n_warps ? scratch[lane] : 0);
}

// What the next launch reads first, to the L2 cache: by one block, a line a thread.
static __device__ __forceinline__ void ask_ahead(const wt_llm_matvec_args &a)
{
    if (blockIdx.x) return;
#pragma unroll
    for (int k = 0; k < WT_LLM_AHEAD; k++)
        if (128 * (int)threadIdx.x < a.ahead[k].bytes)
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)a.ahead[k].from + 128 * threadIdx.x));
}

enum { NO_ACTIVATION, RELU, SILU, GELU, GELU_TANH }; // wt_activation

static __device__ __forceinline__ float activate(int kind, float x)
{
    switch (kind) {
    case SILU: return x / (1 + expf(-x));
    case GELU: return 0.5f * x * (1 + erff(x * 0.70710678f));
    case GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case RELU: return x > 0 ? x : 0;
    default: return x;
    }
}
