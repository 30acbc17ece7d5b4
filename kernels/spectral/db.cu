// Decibels of whole signals, a block for each 4096 values of one: its largest value or its median when that is the
// reference, then logarithms and their largest, then the limit below it. Maxima go through integers of the same order,
// so their order does not matter; the median is found digit by digit of such integers, 8 bits at a time, from counts of
// the values that begin as it does. Bound by memory. Judge: the CPU (dsp/spectral/db.c), 2e-6 of the peak.
#include "db_kernel.h"

#define ALL 0xffffffffu

struct db_place {
    long long signal, begin, end; // of all values
};

static __device__ db_place find_place(const wt_db_args &a)
{
    const long long chunks = (a.count + WT_DB_CHUNK - 1) / WT_DB_CHUNK, signal = blockIdx.x / chunks;
    const long long begin = blockIdx.x % chunks * WT_DB_CHUNK, end = begin + WT_DB_CHUNK;
    return {signal, signal * a.count + begin, signal * a.count + (end < a.count ? end : a.count)};
}

static __device__ void raise(int *peak, int largest)
{
    largest = __reduce_max_sync(ALL, largest);
    if (threadIdx.x % 32 == 0) atomicMax(peak, largest);
}

static __device__ int ordered(float x, int largest)
{
    const int order = wt__spectrum_order(__float_as_int(x));
    return x == x && order > largest ? order : largest; // a NaN counts for no maximum
}

extern "C" __global__ void __launch_bounds__(256) db_peak(wt_db_args a)
{
    const db_place p = find_place(a);
    int largest = (int)0x80000000;
    for (long long i = p.begin + threadIdx.x; i < p.end; i += 256) largest = ordered(a.in[i], largest);
    raise(a.peaks + p.signal, largest);
}

// Unsigned, in the order of the values, and back.
static __device__ unsigned key_of(float x)
{
    return x == x ? (unsigned)wt__spectrum_order(__float_as_int(x)) ^ 0x80000000u : 0xffffffffu;
}

static __device__ float value_of(unsigned key)
{
    return __int_as_float(wt__spectrum_order((int)(key ^ 0x80000000u)));
}

extern "C" __global__ void __launch_bounds__(256) db_count(wt_db_args a)
{
    __shared__ unsigned counts[2][256];
    const db_place p = find_place(a);
    const int shift = 24 - 8 * a.digit;
    unsigned first = 0, second = 0;
    if (a.digit) first = a.middle[p.signal].keys[0], second = a.middle[p.signal].keys[1];
    counts[0][threadIdx.x] = counts[1][threadIdx.x] = 0;
    __syncthreads();
    for (long long i = p.begin + threadIdx.x; i < p.end; i += 256) {
        const unsigned key = key_of(a.in[i]), known = a.digit ? key >> (shift + 8) : 0, digit = key >> shift & 255;
        if (known == first) atomicAdd(&counts[0][digit], 1u);
        if (first != second && known == second) atomicAdd(&counts[1][digit], 1u);
    }
    __syncthreads();
    for (int k = 0; k < 2; k++)
        if (counts[k][threadIdx.x])
            atomicAdd(a.counts + (2 * p.signal + k) * 256 + threadIdx.x, counts[k][threadIdx.x]);
}

// A thread a signal: the digit in whose values the rank lies.
extern "C" __global__ void db_pick(wt_db_args a)
{
    const int signal = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (signal >= a.n_signals) return;
    wt_db_middle m = a.middle[signal];
    if (!a.digit) m = {{0, 0}, {(a.count - 1) / 2, a.count / 2}};
    const bool apart = m.keys[0] != m.keys[1];
    for (int k = 0; k < 2; k++) {
        const unsigned *counts = a.counts + (2 * signal + (apart ? k : 0)) * 256ll;
        int digit = 0;
        for (; digit < 255 && m.ranks[k] >= counts[digit]; digit++) m.ranks[k] -= counts[digit];
        m.keys[k] = m.keys[k] << 8 | (unsigned)digit;
    }
    a.middle[signal] = m;
}

static __device__ double reference(const wt_db_args &a, long long signal)
{
    if (a.of_median) {
        const unsigned *keys = a.middle[signal].keys;
        return ((double)value_of(keys[0]) + value_of(keys[1])) / 2;
    }
    return a.of_peak ? fabs((double)__int_as_float(wt__spectrum_order(a.peaks[signal]))) : a.ref;
}

extern "C" __global__ void __launch_bounds__(256) db_log(wt_db_args a)
{
    const db_place p = find_place(a);
    const double ref = reference(a, p.signal);
    const float offset = (float)(-a.scale * log2(ref > a.amin ? ref : a.amin));
    int largest = (int)0x80000000;
    for (long long i = p.begin + threadIdx.x; i < p.end; i += 256) {
        const float value = wt__spectrum_log(a.in[i], (float)a.amin, (float)a.scale, offset);
        a.out[i] = value;
        largest = ordered(value, largest);
    }
    raise(a.peaks + a.n_signals + p.signal, largest);
}

extern "C" __global__ void __launch_bounds__(256) db_limit(wt_db_args a)
{
    const db_place p = find_place(a);
    const float floor = __int_as_float(wt__spectrum_order(a.peaks[a.n_signals + p.signal])) - a.range;
    for (long long i = p.begin + threadIdx.x; i < p.end; i += 256) a.out[i] = a.out[i] < floor ? floor : a.out[i];
}
