// Sparse filters over spectra in double that lie in memory (kernels/spectral/wide.cu): an octave whose frames no block
// transforms. A thread a filter of a pair of frames.
// Judge: the CPU's, 2e-6 of the peak.
#include "cqt_wide_kernel.h"
#include "wide.cuh"

static __device__ void give(const wt_cqt_octave_args &a, long long frame, int row, double2 x)
{
    const long long at = frame * a.n_bins + a.first + row;
    if (a.magnitude)
        a.out[at] = (float)sqrt(x.x * x.x + x.y * x.y);
    else
        ((float2 *)a.out)[at] = make_float2((float)x.x, (float)x.y);
}

extern "C" __global__ void __launch_bounds__(256) cqt_wide(wt_cqt_wide_args a)
{
    const wt_cqt_octave_args &o = a.octave;
    const wide_place p = wide_here(a.pairs, o.n_rows);
    if (!p.there) return;
    double2 sums[2] = {make_double2(0, 0), make_double2(0, 0)};
    for (int i = __ldg(o.begin + p.i), end = __ldg(o.begin + p.i + 1); i < end; i++) {
        wide_place at = p;
        double2 x[2];
        at.i = __ldg(o.bin + i);
        wide_bins(a.pairs, at, x);
        for (int f = 0; f < 2; f++) {
            if (a.pseudo) {
                sums[f].x += sqrt(x[f].x * x[f].x + x[f].y * x[f].y) * __ldg(o.value + i);
            } else {
                const double re = __ldg(o.value + 2 * i), im = __ldg(o.value + 2 * i + 1);
                sums[f].x += x[f].x * re - x[f].y * im;
                sums[f].y += x[f].x * im + x[f].y * re;
            }
        }
    }
    const long long frame = p.line * o.n_frames + p.t;
    give(o, frame, p.i, sums[0]);
    if (p.second) give(o, frame + 1, p.i, sums[1]);
}
