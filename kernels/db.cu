// Decibels of whole signals, a block for each 4096 values of one: its largest value when that is the reference, then
// logarithms and their largest, then the limit below it. Maxima go through integers of the same order, so their order
// does not matter. Bound by memory. Judge: the CPU (dsp/db.c), 2e-6 of the peak.
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

extern "C" __global__ void __launch_bounds__(256) db_log(wt_db_args a)
{
    const db_place p = find_place(a);
    const double peak = fabs((double)__int_as_float(wt__spectrum_order(a.peaks[p.signal])));
    const double ref = a.of_peak ? peak : a.ref;
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
