// Median filter over rectangles of MEDIAN_HEIGHT x MEDIAN_WIDTH values. A block makes WT_MEDIAN_ROWS rows of
// WT_MEDIAN_COLUMNS outputs, a thread an output, from keys of the mirrored image in shared memory, a warp along a row.
// Up to 63 values by forgetful selection in registers, more by bisection of the key's bits: 32 counts over the window.
// Judge: the CPU (dsp/decompose/median.c), identical.
#ifndef MEDIAN_HEIGHT
#    define MEDIAN_HEIGHT 1
#    define MEDIAN_WIDTH  31
#endif
#include "median.cuh"
#include "median_kernel.h"

enum {
    COUNT = MEDIAN_HEIGHT * MEDIAN_WIDTH,
    TILE_WIDTH = WT_MEDIAN_COLUMNS + MEDIAN_WIDTH - 1,
    TILE_HEIGHT = WT_MEDIAN_ROWS + MEDIAN_HEIGHT - 1
};

extern __shared__ int tile[]; // [TILE_HEIGHT][TILE_WIDTH]

// The key of rank COUNT / 2 under the window whose first value is at `from`.
static __device__ __forceinline__ int median_at(const int *from)
{
    if constexpr (COUNT <= 63) {
        return median_of<COUNT>([&](int i) { return from[i / MEDIAN_WIDTH * TILE_WIDTH + i % MEDIAN_WIDTH]; });
    } else {
        unsigned found = 0;
        for (int bit = 31; bit >= 0; bit--) {
            const unsigned trial = found | 1u << bit;
            int smaller = 0;
            for (int r = 0; r < MEDIAN_HEIGHT; r++)
                for (int c = 0; c < MEDIAN_WIDTH; c++)
                    smaller += ((unsigned)from[r * TILE_WIDTH + c] ^ 0x80000000u) < trial;
            if (smaller <= COUNT / 2) found = trial;
        }
        return (int)(found ^ 0x80000000u);
    }
}

extern "C" __global__ void __launch_bounds__(WT_MEDIAN_ROWS *WT_MEDIAN_COLUMNS) median_filter(wt_median_args a)
{
    const long long image = blockIdx.x / (a.across * a.down);
    const int block = blockIdx.x % (a.across * a.down);
    const int row = block / a.across * WT_MEDIAN_ROWS, column = block % a.across * WT_MEDIAN_COLUMNS;
    const float *in = a.in + image * a.rows * a.columns;
    for (int i = threadIdx.x; i < TILE_HEIGHT * TILE_WIDTH; i += WT_MEDIAN_ROWS * WT_MEDIAN_COLUMNS) {
        const long long r = median_mirror(row + i / TILE_WIDTH - MEDIAN_HEIGHT / 2, a.rows);
        const long long c = median_mirror(column + i % TILE_WIDTH - MEDIAN_WIDTH / 2, a.columns);
        tile[i] = median_turn(__float_as_int(__ldg(in + r * a.columns + c)));
    }
    __syncthreads();
    const int r = threadIdx.x / WT_MEDIAN_COLUMNS, c = threadIdx.x % WT_MEDIAN_COLUMNS;
    if (row + r >= a.rows || column + c >= a.columns) return;
    const float value = __int_as_float(median_turn(median_at(tile + r * TILE_WIDTH + c)));
    a.out[(image * a.rows + row + r) * a.columns + column + c] = value;
}
