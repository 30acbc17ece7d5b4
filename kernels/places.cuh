// Tiles of a grid, each worked on in an array of its block's: in shared memory, a tile a block, or, compiled with
// PLACES, in memory, a place for each block, which goes from tile to tile.
#ifndef WT_PLACES_CUH
#define WT_PLACES_CUH
#include "places_kernel.h"

// do_tile(array, x, y) for the block's tile, or tiles; it may end early for some threads.
template <class T, class Tile> __device__ __forceinline__ void for_tiles(const wt_places &p, const Tile &do_tile)
{
#ifdef PLACES
    for (long long at = blockIdx.x; at < p.across * p.down; at += gridDim.x) {
        do_tile((T *)(p.memory + blockIdx.x * p.bytes), at % p.across, (int)(at / p.across));
        __syncthreads();
    }
#else
    extern __shared__ double2 places_shared[];
    do_tile((T *)places_shared, (long long)blockIdx.x, (int)blockIdx.y);
#endif
}
#endif
