// CUDA's words for device text that threads of the CPU run, one a thread of a single thread block: so a sanitizer sees
// which of them a barrier keeps apart. A warp's shuffles and votes meet at barriers of their own, so hazards within a
// warp are not seen. As much as the live chains' texts need.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sched.h>

#define __device__
#define __global__
#define __shared__      static // the test takes away what stands before it in the texts
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
struct uint3 {
    unsigned x, y, z;
};
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

enum { MOST_THREADS = 1024, WARP = 32 };
static thread_local uint3 threadIdx;
static uint3 blockIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
static std::atomic<long long> device_time; // in clocks, and in ns

// ---- barriers

static pthread_barrier_t block_barrier, warp_barriers[MOST_THREADS / WARP];
static std::atomic<int> votes[3]; // in turns: one is cast, one is read, one is empty
static thread_local int vote;

static inline int __syncthreads_or(int yes)
{
    const int now = vote++ % 3;
    if (yes) votes[now].store(1, std::memory_order_relaxed);
    pthread_barrier_wait(&block_barrier);
    const int result = votes[now].load(std::memory_order_relaxed);
    votes[(now + 2) % 3].store(0, std::memory_order_relaxed);
    return result;
}

static inline void __syncthreads() { __syncthreads_or(0); }
static inline int __syncthreads_and(int yes) { return !__syncthreads_or(!yes); }
static inline void __syncwarp(unsigned = ~0u) { pthread_barrier_wait(&warp_barriers[threadIdx.x / WARP]); }
static inline void __threadfence_system() {}

// ---- a warp's exchanges

static uint64_t exchanged[MOST_THREADS];

template <class T> static inline T exchange(T x, int lane)
{
    static_assert(sizeof x <= sizeof *exchanged, "");
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    exchanged[threadIdx.x] = bits;
    __syncwarp();
    bits = exchanged[threadIdx.x / WARP * WARP + lane];
    __syncwarp();
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int own_lane() { return (int)threadIdx.x % WARP; }
template <class T> static inline T __shfl_sync(unsigned, T x, int lane) { return exchange(x, lane % WARP); }
template <class T> static inline T __shfl_xor_sync(unsigned, T x, int mask) { return exchange(x, own_lane() ^ mask); }
template <class T> static inline T __shfl_up_sync(unsigned, T x, int by)
{
    return exchange(x, own_lane() < by ? own_lane() : own_lane() - by);
}
template <class T> static inline T __shfl_down_sync(unsigned, T x, int by)
{
    return exchange(x, own_lane() + by < WARP ? own_lane() + by : own_lane());
}
static inline unsigned __ballot_sync(unsigned, int yes)
{
    unsigned all = 0;
    for (int lane = 0; lane < WARP; lane++) all |= (exchange(yes, lane) ? 1u : 0u) << lane;
    return all;
}

// ---- numbers, atomics, time

template <class To, class From> static inline To same_bits(From x)
{
    To to;
    static_assert(sizeof to == sizeof x, "");
    memcpy(&to, &x, sizeof to);
    return to;
}
static inline float __int_as_float(int x) { return same_bits<float>(x); }
static inline int __float_as_int(float x) { return same_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
using std::max;
using std::min;
static inline int min(unsigned a, int b) { return (int)a < b ? (int)a : b; }
static inline long long min(long long a, int b) { return a < b ? a : b; }

template <class T> static inline T atomicAdd(T *at, T x) { return __atomic_fetch_add(at, x, __ATOMIC_RELAXED); }
template <class T> static inline T atomicAdd_system(T *at, T x) { return atomicAdd(at, x); }
static inline int atomicMax(int *at, int x)
{
    int now = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (x > now && !__atomic_compare_exchange_n(at, &now, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    return now;
}

static inline long long clock64()
{
    sched_yield();
    return device_time.fetch_add(40, std::memory_order_relaxed);
}
static inline void __nanosleep(unsigned) { sched_yield(); }
