// What the kernels of neural networks share: elements as floats, packs of 16 bytes, sums over warps and blocks.
#include "nn_kernel.h"

#include "mma.cuh"

#define ALL 0xffffffffu

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

static __device__ __forceinline__ float widen(float x) { return x; }
static __device__ __forceinline__ float widen(f16 x) { return f32_of_f16(x.bits); }
static __device__ __forceinline__ float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

static __device__ __forceinline__ void narrow(float x, float *y) { *y = x; }
static __device__ __forceinline__ void narrow(float x, f16 *y) { y->bits = f16_of_f32(x); }
static __device__ __forceinline__ void narrow(float x, bf16 *y) { y->bits = bf16_of_f32(x); }

// Element `at` of an array of `type`.
static __device__ __forceinline__ float load(const void *p, int type, long long at)
{
    if (type == NN_F32) return ((const float *)p)[at];
    return type == NN_F16 ? widen(((const f16 *)p)[at]) : widen(((const bf16 *)p)[at]);
}

static __device__ __forceinline__ void store(void *p, int type, long long at, float x)
{
    if (type == NN_F32)
        ((float *)p)[at] = x;
    else if (type == NN_F16)
        narrow(x, (f16 *)p + at);
    else
        narrow(x, (bf16 *)p + at);
}

static __device__ __forceinline__ float rounded(float x, int type)
{
    if (type == NN_F32) return x;
    return type == NN_F16 ? f32_of_f16(f16_of_f32(x)) : __uint_as_float((unsigned)bf16_of_f32(x) << 16);
}

static __device__ __forceinline__ float load_or(const nn_vector &v, long long at, float otherwise)
{
    return v.data ? load(v.data, v.type, at) : otherwise;
}

// N neighbouring elements as floats, from memory at once.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T at[N];
};

template <class T, int N> static __device__ __forceinline__ void load_pack(const void *p, long long at, float *x)
{
    const pack<T, N> own = *(const pack<T, N> *)((const T *)p + at);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = widen(own.at[i]);
}

template <class T, int N> static __device__ __forceinline__ void store_pack(void *p, long long at, const float *x)
{
    pack<T, N> own;
#pragma unroll
    for (int i = 0; i < N; i++) narrow(x[i], &own.at[i]);
    *(pack<T, N> *)((T *)p + at) = own;
}

// N of a type known only now.
template <int N> static __device__ __forceinline__ void load_some(const nn_rows &r, long long at, float *x)
{
    if (r.type == NN_F32)
        load_pack<float, N>(r.data, at, x);
    else if (r.type == NN_F16)
        load_pack<f16, N>(r.data, at, x);
    else
        load_pack<bf16, N>(r.data, at, x);
}

template <int N> static __device__ __forceinline__ void store_some(const nn_rows &r, long long at, const float *x)
{
    if (r.type == NN_F32)
        store_pack<float, N>(r.data, at, x);
    else if (r.type == NN_F16)
        store_pack<f16, N>(r.data, at, x);
    else
        store_pack<bf16, N>(r.data, at, x);
}

// N elements that are on their way: of T as they are, so that nothing waits for them yet; of any_type as floats.
struct any_type {
};
template <class T, int N> struct held {
    pack<T, N> own;
    __device__ __forceinline__ void take(const nn_rows &r, long long at)
    {
        own = *(const pack<T, N> *)((const T *)r.data + at);
    }
    __device__ __forceinline__ float get(int i) const { return widen(own.at[i]); }
    static __device__ __forceinline__ float kept(float x, int)
    {
        T y;
        narrow(x, &y);
        return widen(y);
    }
    static __device__ __forceinline__ void load(const nn_rows &r, long long at, float *x)
    {
        load_pack<T, N>(r.data, at, x);
    }
    static __device__ __forceinline__ void give(const nn_rows &r, long long at, const float *x)
    {
        store_pack<T, N>(r.data, at, x);
    }
};
template <int N> struct held<any_type, N> {
    float own[N];
    __device__ __forceinline__ void take(const nn_rows &r, long long at) { load_some<N>(r, at, own); }
    __device__ __forceinline__ float get(int i) const { return own[i]; }
    static __device__ __forceinline__ float kept(float x, int type) { return rounded(x, type); }
    static __device__ __forceinline__ void load(const nn_rows &r, long long at, float *x) { load_some<N>(r, at, x); }
    static __device__ __forceinline__ void give(const nn_rows &r, long long at, const float *x)
    {
        store_some<N>(r, at, x);
    }
};

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// Sum over the block's threads, a multiple of 32 and at most 1024, for all of them; `scratch` [32] is shared.
static __device__ __forceinline__ float block_sum(float x, float *scratch)
{
    const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
    x = warp_sum(x);
    __syncthreads(); // scratch may hold the sum before
    if (!lane) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < n_warps ? scratch[lane] : 0);
}

static __device__ __forceinline__ float after(const nn_after &a, float x, long long channel)
{
    return nn_activate(a.kind, x, a.kind == NN_SNAKE ? load(a.alpha.data, a.alpha.type, channel) : a.slope);
}

// Not inline: a switch over all activations for each of many elements makes large kernels.
template <int N>
static __device__ __noinline__ void after_any(int kind, const void *alpha, int type, float slope, int apart, float *x)
{
#pragma unroll 1
    for (int i = 0; i < N; i++) x[i] = nn_activate(kind, x[i], kind == NN_SNAKE ? load(alpha, type, i * apart) : slope);
}

// The same of N elements, of one channel or of neighbours. What often follows norms and convolutions is inline.
template <int N>
static __device__ __forceinline__ void after_all(const nn_after &a, float *x, long long channel, bool one)
{
    if (a.kind == NN_NONE) return;
    if (a.kind == NN_SNAKE && one) {
        const float alpha = load(a.alpha.data, a.alpha.type, channel);
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = nn_activate(NN_SNAKE, x[i], alpha);
    } else if (a.kind == NN_LEAKY_RELU) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = nn_activate(NN_LEAKY_RELU, x[i], a.slope);
    } else {
        float y[N];
        const long long bytes = a.alpha.type == NN_F32 ? 4 : 2;
#pragma unroll
        for (int i = 0; i < N; i++) y[i] = x[i];
        after_any<N>(a.kind, (const char *)a.alpha.data + channel * bytes, a.alpha.type, a.slope, !one, y);
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = y[i];
    }
}
