/// Arguments of the stretch by overlapped pieces, and how its search adds up, as both compilers have it.
#ifndef WT_WSOLA_KERNEL_H
#define WT_WSOLA_KERNEL_H
#include "spectrum_kernel.h"
#include "transient_kernel.h"

#define WT_WSOLA_LANES 16   ///< partial sums of a product
#define WT_WSOLA_RUN   33   ///< samples whose squares are summed from zero; odd, so that threads meet every bank once
#define WT_WSOLA_TIE   1e-5 ///< likenesses this near to the largest count as equal to it

typedef struct wt_wsola_args {
    const float *pcm;               ///< [n_lines][n_samples]
    float *out;                     ///< [n_lines][n_out]
    const float *window;            ///< [n_fft]
    const wt_stretch_place *places; ///< [n_lines][n_pieces]
    long long *chosen;              ///< [n_lines][n_pieces] the samples that pieces are taken around
    long long n_samples, n_out, n_pieces;
    int n_fft, hop;
    int reach;    ///< a search goes so far to both sides
    double *work; ///< [n_lines][wt__wsola_doubles] of what a search reads; NULL = in shared memory
} wt_wsola_args;

/// The walk's launch: threads; places whose products a thread has; numbers of a row of a warp's partial sums.
#define WT_WSOLA_THREADS 384
#define WT_WSOLA_LAGS    11
#define WT_WSOLA_ROW     33

/// Samples that the walk's threads read around a place, zeros behind those of the search.
WT_SPECTRUM_BOTH int wt__wsola_room(int n_fft, int reach)
{
    const int groups = (2 * reach + 16 * WT_WSOLA_LAGS) / (16 * WT_WSOLA_LAGS);
    return n_fft + 16 * WT_WSOLA_LAGS * groups + 32;
}

/// Numbers in double that a search reads, and those of the threads' sums and the place found, always in shared memory.
WT_SPECTRUM_BOTH int wt__wsola_doubles(int n_fft, int reach)
{
    const int n_near = n_fft + 2 * reach;
    return n_fft + wt__wsola_room(n_fft, reach) + n_near + n_near / WT_WSOLA_RUN + 1 + 2 * reach + 1;
}
WT_SPECTRUM_BOTH int wt__wsola_parts(void) { return WT_WSOLA_THREADS / 32 * WT_WSOLA_LAGS * WT_WSOLA_ROW + 1; }
#endif
