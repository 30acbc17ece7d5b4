// Pairs of real frames as complex rows in memory: whose frames a thread's number belongs to, their bins, and the way
// back. A pair is of one line, its first frame an even one: no result depends on how tiles are cut.
#ifndef WT_WIDE_CUH
#define WT_WIDE_CUH
#include "wide_kernel.h"

struct wide_place {
    long long line, t; // of the pair's first frame
    double2 *in, *out; // its rows
    int i;
    bool there, second; // the number; a second frame
};

/// The thread's number i < each of a pair.
__device__ __forceinline__ wide_place wide_here(const wt_wide_pairs &w, int each)
{
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x, pair = at / each, all = w.first + pair;
    wide_place p;
    p.i = (int)(at % each);
    p.there = pair < w.n_pairs;
    p.line = all / w.pairs, p.t = 2 * (all % w.pairs);
    p.second = p.t + 1 < w.n_frames;
    p.in = (double2 *)w.in + pair * w.pitch, p.out = (double2 *)w.out + pair * w.pitch;
    return p;
}

/// What the bins of the place's frame f are to be taken times.
__device__ __forceinline__ double wide_level_of(const wt_wide_pairs &w, const wide_place &p, int f)
{
    return w.levels ? w.levels[(p.in - (double2 *)w.in) / w.pitch * 2 + f] : 1;
}

/// Bin p.i of both frames behind the transform.
__device__ __forceinline__ void wide_bins(const wt_wide_pairs &w, const wide_place &p, double2 (&x)[2])
{
    const double2 z = p.out[p.i], m = p.out[p.i ? w.n_fft - p.i : 0];
    const double a = 0.5 * wide_level_of(w, p, 0), b = 0.5 * wide_level_of(w, p, 1);
    x[0] = make_double2(a * (z.x + m.x), a * (z.y - m.y));
    x[1] = make_double2(b * (z.y + m.y), b * (m.x - z.x));
}

/// And for the way back; each thread of a pair's bins writes what it alone may have read.
__device__ __forceinline__ void wide_put_bins(const wt_wide_pairs &w, const wide_place &p, double2 x, double2 y)
{
    if (p.i == 0 || 2 * p.i == w.n_fft) x.y = y.y = 0;
    p.in[p.i] = make_double2(x.y + y.x, x.x - y.y); // parts exchanged
    if (p.i && 2 * p.i != w.n_fft) p.in[w.n_fft - p.i] = make_double2(y.x - x.y, x.x + y.y);
}
#endif
