/// Attacks of signals, the time map that moves them as they are, and the arguments of its kernels.
#ifndef WT_TRANSIENT_KERNEL_H
#define WT_TRANSIENT_KERNEL_H
#include "chain_kernel.h"

typedef struct wt_transient {
    long long in, out; ///< where it is, where it belongs
    long long half;    ///< the output within so many samples of it runs at rate 1
} wt_transient;

/// A place of the output in the input.
typedef struct wt_stretch_place {
    long long centre;      ///< in the input
    long long first, last; ///< of the input between the attacks' surroundings; held: both the centre
    long long held;        ///< the attack that it goes with, -1 = none
} wt_stretch_place;

typedef struct wt_transient_args {
    const float *pcm;         ///< [n_lines][n_samples]
    double *energies;         ///< [n_lines][n_blocks] of differences
    wt_transient *at;         ///< [n_lines][most]
    long long *counts;        ///< [n_lines]
    wt_stretch_place *places; ///< [n_lines][n_places] of output samples 0, hop, 2 hop ...
    long long n_samples, n_out, n_blocks, n_places, most;
    double rate;
    int n_fft, block, gap, hop;
} wt_transient_args;

/// Where output sample `out` comes from, among the attacks `at` [count].
WT_SHARED_FN wt_stretch_place wt__transient_place(const wt_transient *at, long long count, long long n_samples,
                                                  long long n_out, long long out)
{
    long long i = 0, high = count; // the first attack whose surroundings end at `out` or behind
    while (i < high) {
        const long long middle = (i + high) / 2;
        if (at[middle].out + at[middle].half < out)
            i = middle + 1;
        else
            high = middle;
    }
    const wt_transient none = {0, 0, 0}, end = {n_samples, n_out, 0};
    const wt_transient left = i ? at[i - 1] : none, right = i < count ? at[i] : end;
    if (i < count && out >= right.out - right.half) {
        const long long centre = right.in + out - right.out;
        const wt_stretch_place held = {centre, centre, centre, i};
        return held;
    }
    const long long from = left.in + left.half, to = right.in - right.half, begin = left.out + left.half,
                    span = right.out - right.half - begin;
    const double by = span > 0 ? (double)(out - begin) / (double)span : 0;
    const long long centre = from + (span > 0 ? llrint(by * (double)(to - from)) : out - begin);
    const wt_stretch_place between = {centre, from, to > from ? to : from, -1};
    return between;
}
#endif
