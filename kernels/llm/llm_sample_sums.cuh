// What the blocks of a cluster find together of a row of logits, and the memory in which they do.
#pragma once
#include "sample_kernel.h"

#include "cluster.cuh"

#define ALL     0xffffffffu
#define BINS    1024 // and threads
#define WARPS   32
#define LIST    128       // tokens that are put in order
#define MOST    8         // blocks of a cluster
#define PART    14        // bits of a mass that are added in one word
#define AT_ONCE (1 << 18) // tokens whose parts have room there
#define NOBODY  (~0ull)

struct alignas(16) sums {
    unsigned long long n, mass;
};

static __device__ __forceinline__ sums operator+(sums a, sums b) { return {a.n + b.n, a.mass + b.mass}; }
static __device__ __forceinline__ sums operator-(sums a, sums b) { return {a.n - b.n, a.mass - b.mass}; }

static __device__ __forceinline__ sums of_lane(sums s, int lane)
{
    return {__shfl_sync(ALL, s.n, lane), __shfl_sync(ALL, s.mass, lane)};
}

// A logit as a number that rises with it; not a number is above all.
static __device__ __forceinline__ unsigned rank_of(float x)
{
    const unsigned bits = __float_as_uint(x + 0.0f); // -0 is 0
    return x != x ? ALL : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float logit_of(unsigned rank)
{
    return __uint_as_float(rank & 0x80000000u ? rank & 0x7fffffffu : ~rank);
}

// The largest logit, the first of equals.
struct alignas(16) largest {
    unsigned rank;
    int id, unused[2];
};

struct alignas(16) token {
    unsigned long long key, weight;
};

enum order_kind { BY_LOGIT = 1, BY_DEPTH, BY_DISTANCE };

// A row's tokens by their logits as they are, by their depths, or those before `end` in this by their distances from a
// mean.
struct order {
    unsigned *values; // of the block's tokens, the first of which is `begin`: logits or depths
    int begin, n, kind;
    bool has_mass; // masses are asked for
    unsigned mean;
    unsigned long long end;
};

// What other blocks read has 16 bytes an element.
struct memory {
    union {
        unsigned words[4][BINS]; // tokens, and their mass in three parts
        sums own[BINS];
    };
    sums shares[BINS]; // of the cluster's bins this block's part
    sums parts[2];     // the mass of the logits as they are, the moment
    largest row[2];
    token found[2][LIST]; // this block's of the list, in turns
    sums n_found[2];
    sums warps[WARPS];
    largest rows[WARPS];
    token unsorted[LIST];
    unsigned long long keys[LIST]; // the tokens with keys from first to last
    unsigned long long weights[LIST];
    sums before[LIST + 1];
    unsigned long long first, last;
    int kind, n_list, turn; // of the list: whose order, how many, and which of `found` is next
    sums in_bin, before_bin, before_list;
    order o;
};

static __device__ __forceinline__ sums sums_at(const void *address, int rank)
{
    const float4 x = load_from((const float *)address, rank);
    return {(unsigned long long)__float_as_uint(x.y) << 32 | __float_as_uint(x.x),
            (unsigned long long)__float_as_uint(x.w) << 32 | __float_as_uint(x.z)};
}

// The sum over the cluster, for all threads. A `part` is used once.
static __device__ __noinline__ sums over_all(sums s, sums *part, memory *m)
{
    const int lane = threadIdx.x % 32, n = gridDim.x;
    for (int step = 16; step; step /= 2) s = s + of_lane(s, lane ^ step);
    __syncthreads();
    if (!lane) m->warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = m->warps[lane];
        for (int step = 16; step; step /= 2) s = s + of_lane(s, lane ^ step);
        if (!lane) *part = s;
    }
    cluster_meet();
    s = sums_at(part, lane % n);
#pragma unroll 1
    for (int step = n / 2; step; step /= 2) s = s + of_lane(s, lane ^ step);
    return s;
}

static __device__ __forceinline__ largest of_warp(largest e)
{
    const unsigned rank = __reduce_max_sync(ALL, e.rank);
    return {rank, __reduce_min_sync(ALL, e.rank == rank ? e.id : 0x7fffffff)};
}

static __device__ __noinline__ largest over_all(largest e, largest *part, memory *m)
{
    const int lane = threadIdx.x % 32;
    e = of_warp(e);
    if (!lane) m->rows[threadIdx.x / 32] = e;
    __syncthreads();
    if (threadIdx.x < 32) {
        e = of_warp(m->rows[lane]);
        if (!lane) *part = e;
    }
    cluster_meet();
    const sums there = sums_at(part, lane % gridDim.x);
    return of_warp({(unsigned)there.n, (int)(there.n >> 32)});
}

// What lies in the bins before the thread's own.
static __device__ __noinline__ sums sums_before(sums own, memory *m)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    sums s = own;
    for (int step = 1; step < 32; step *= 2) {
        const sums other = of_lane(s, lane - step & 31);
        if (lane >= step) s = s + other;
    }
    __syncthreads();
    if (lane == 31) m->warps[warp] = s;
    __syncthreads();
    if (!warp) {
        const sums whole = m->warps[lane];
        sums upto = whole;
        for (int step = 1; step < 32; step *= 2) {
            const sums other = of_lane(upto, lane - step & 31);
            if (lane >= step) upto = upto + other;
        }
        m->warps[lane] = upto - whole;
    }
    __syncthreads();
    return m->warps[warp] + s - own;
}
