// Median filter over rectangles that shared memory does not hold: a warp an output, its lanes along the rectangle's
// longer side. The key is found two bits at a time: sixteen times three counts over the window, which neighbouring
// outputs find in the caches.
// Judge: the CPU (dsp/decompose/median.c), identical.
#include "median.cuh"
#include "median_kernel.h"

// A side of the image and of the rectangle.
struct median_side {
    long long begin, apart; // of the rectangle; values between neighbours
    int n, count;
};

// Its place in a signal that goes forth and back, `steps` behind the rectangle's begin: place % (2 n).
static __device__ __forceinline__ int place_of(const median_side &s, int steps)
{
    const long long period = 2 * (long long)s.n, at = (s.begin + steps) % period;
    return (int)(at < 0 ? at + period : at);
}

static __device__ __forceinline__ long long index_of(const median_side &s, int place)
{
    return (long long)(place < s.n ? place : 2 * s.n - 1 - place) * s.apart;
}

// How many of the window's keys lie below found + (i + 1) << shift, in every lane.
static __device__ void count_below(const float *in, const median_side &along, const median_side &across, unsigned found,
                                   int shift, int (&below)[3])
{
    const int lane = threadIdx.x % 32, period = 2 * along.n, step = 32 % period;
    for (int i = 0; i < 3; i++) below[i] = 0;
    for (int r = 0; r < across.count; r++) {
        const float *row = in + index_of(across, place_of(across, r));
        int place = place_of(along, lane);
        for (int k = lane; k < along.count; k += 32) {
            const unsigned key =
                (unsigned)median_turn(__float_as_int(__ldg(row + index_of(along, place)))) ^ 0x80000000u;
#pragma unroll
            for (int i = 0; i < 3; i++) below[i] += key < found + ((i + 1u) << shift);
            place += step;
            if (place >= period) place -= period;
        }
    }
    for (int i = 0; i < 3; i++) below[i] = __reduce_add_sync(0xffffffff, below[i]);
}

extern "C" __global__ void __launch_bounds__(256) median_long(wt_median_long_args a)
{
    const long long at = (long long)blockIdx.x * 8 + threadIdx.x / 32, area = (long long)a.rows * a.columns;
    if (at >= a.n_out) return;
    const float *in = a.in + at / area * area;
    const median_side down = {at % area / a.columns - a.kernel_rows / 2, a.columns, a.rows, a.kernel_rows};
    const median_side right = {at % a.columns - a.kernel_columns / 2, 1, a.columns, a.kernel_columns};
    const bool flat = a.kernel_columns >= a.kernel_rows;
    const int rank = a.kernel_rows * a.kernel_columns / 2;
    unsigned found = 0;
    for (int shift = 30; shift >= 0; shift -= 2) {
        int below[3];
        count_below(in, flat ? right : down, flat ? down : right, found, shift, below);
        for (int i = 2; i >= 0; i--)
            if (below[i] <= rank) {
                found += (i + 1u) << shift;
                break;
            }
    }
    if (threadIdx.x % 32 == 0) a.out[at] = __int_as_float(median_turn((int)(found ^ 0x80000000u)));
}
