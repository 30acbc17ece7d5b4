// Reassigned spectrograms of any n_fft: spectra by h, its derivative and t h lie in memory, three sets of pairs one
// behind the other; a thread a bin of two frames. Bound by memory. Judge: the CPU's, 2e-6 of the peak.
#include "reassigned_wide_kernel.h"
#include "wide.cuh"

extern "C" __global__ void __launch_bounds__(256) reassigned_wide(wt_reassigned_wide_args a)
{
    const int bins = a.pairs.n_fft / 2 + 1;
    wide_place p = wide_here(a.pairs, bins);
    if (!p.there) return;
    double2 x[3][2];
    for (int set = 0; set < 3; set++, p.out += (long long)a.pairs.n_pairs * a.pairs.pitch)
        wide_bins(a.pairs, p, x[set]);
    float *out = a.reassigned.out + (p.line * 3 * a.pairs.n_frames + p.t) * bins + p.i;
    for (int f = 0; f < 1 + p.second; f++)
        wt__reassign(&a.reassigned, p.t + f, p.i, &x[0][f].x, &x[1][f].x, &x[2][f].x, out + f * bins,
                     a.pairs.n_frames * bins);
}
