// Sixteen positions of the cache in the registers of a warp, as mma.m16n8k16 wants them, in pieces of eight elements:
// lane 4 g + t has of keys g and g + 8 the pieces t, t + 4 .., as queries have them, since in a product over dimensions
// any order will do, and of values 2t, 2t + 1, 2t + 8 and 2t + 9 the pieces g and g + 8.
#define KEYS 16
#include "llm_tile.cuh"

#define PITCH     (D_HEAD + 32) // elements of a row of queries: pieces of rows side by side lie in other banks
#define SUM_PITCH (D_HEAD + 4)
#define ASKED     3 // turns for whose positions the L2 cache is asked beforehand

#if KV == WT_LLM_E4M3
typedef uint2 piece; // eight elements
static __device__ __forceinline__ unsigned two_halves(unsigned short x)
{
    unsigned y;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(x));
    return y;
}
static __device__ __forceinline__ uint4 widened(uint2 x)
{
    return {two_halves((unsigned short)x.x), two_halves((unsigned short)(x.x >> 16)), two_halves((unsigned short)x.y),
            two_halves((unsigned short)(x.y >> 16))};
}
static __device__ __forceinline__ void copy_piece(piece *to, const piece *from) { copy_async_8(to, from, true); }
#else
typedef uint4 piece;
static __device__ __forceinline__ uint4 widened(uint4 x) { return x; }
static __device__ __forceinline__ void copy_piece(piece *to, const piece *from) { copy_async_16(to, from, true); }
#endif

struct tile {
    piece keys[2][D_HEAD / 32], values[4][D_HEAD / 64];
    __device__ __forceinline__ piece *key(int n, int k) { return &keys[n][k]; }
    __device__ __forceinline__ piece *value(int i, int e) { return &values[i][e]; }
};

// Of rows `pitch` apart, the tile's first at `from`.
static __device__ __forceinline__ void load_keys(const kv_type *from, int pitch, tile *to)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int k = 0; k < D_HEAD / 32; k++) to->keys[n][k] = ((const piece *)(from + (8 * n + g) * pitch))[4 * k + t];
}

static __device__ __forceinline__ int row_of_values(int i) { return 2 * (threadIdx.x % 4) + i % 2 + i / 2 * 8; }

static __device__ __forceinline__ void load_values(const kv_type *from, int pitch, tile *to)
{
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int k = 0; k < D_HEAD / 64; k++)
            to->values[i][k] = ((const piece *)(from + row_of_values(i) * pitch))[8 * k + g];
}

// Two elements of a widened piece.
static __device__ __forceinline__ unsigned word_of(const uint4 &x, int k)
{
    return k == 0 ? x.x : k == 1 ? x.y : k == 2 ? x.z : x.w;
}
