/// Arguments of the resampling kernels and of their judge.
#ifndef WT_RESAMPLE_KERNEL_H
#define WT_RESAMPLE_KERNEL_H
#include "fastmath_kernel.h"

#define WT_RESAMPLE_THREADS 128
#define WT_RESAMPLE_REPEAT  8 ///< outputs a thread makes with the same taps
#define WT_RESAMPLE_BLEND   64 ///< interpolated phases: outputs of a thread block, of 32 lines
#define WT_RESAMPLE_BLEND_WARPS 8
#define WT_RESAMPLE_END_WARPS 4 ///< outputs of a thread block of resample_ends

/// Output n of a line lies `phase` / denominator behind input frame f = n * numerator / denominator (whole), and is the
/// sum over k of tap k times input frame f - before + k; outside a line there is silence. The first n_start outputs
/// have taps of their own, outputs from n_heard on are silent.
typedef struct wt_resample_args {
    const float *in;  ///< [n_lines][n_in]
    float *out;       ///< [n_lines][n_out]
    const void *taps; ///< [n_taps][n_columns] float or double. Exact phases: column n % denominator, as outputs come.
                      ///< Interpolated: column p + 1 is phase p / n_phases, p = -1 .. n_phases + 1; for
                      ///< resample_blend columns lie whole, [n_columns][n_taps]
    const float *start; ///< [n_start][n_taps]
    long long numerator, denominator;
    long long stride; ///< exact phases: the outputs of a thread lie this far apart, a multiple of the denominator
    int n_taps, before, n_columns, n_phases;
    int order; ///< interpolated: of the polynomial between columns
    int n_in, n_out, n_lines;
    int n_start, n_heard;
} wt_resample_args;

/// Weights of rows -1, 0, 1 and 2 for a place w in 0 .. 1 behind row 0: Lagrange's polynomial through all of them, of
/// order 2 through the last three.
WT_SHARED_FN void wt__resample_weights(int order, double w, double *weights)
{
    const int all = order == 3;
    weights[0] = all ? -w * (w - 1) * (w - 2) / 6 : 0;
    weights[1] = all ? (w + 1) * (w - 1) * (w - 2) / 2 : (w - 1) * (w - 2) / 2;
    weights[2] = all ? -(w + 1) * w * (w - 2) / 2 : -w * (w - 2);
    weights[3] = all ? (w + 1) * w * (w - 1) / 6 : w * (w - 1) / 2;
}

/// For rates whose phases come again soon: outputs in blocks of RESAMPLE_PHASES neighbours, which read one window of
/// input frames. After `units` blocks the phases are the same again, `step` input frames on.
typedef struct wt_resample_tile_args {
    const float *in;  ///< [n_lines][n_in]
    float *out;       ///< [n_lines][n_out]
    const void *taps; ///< [units][window][WT_RESAMPLE_COLUMNS]: of block u's output p and its window's frame i; else 0
    long long numerator, denominator;
    int units, window, step, before;
    int groups; ///< of 32 RESAMPLE_REPEAT periods that a thread block makes
    int n_tiles; ///< of a line
    int n_in, n_out, n_lines;
} wt_resample_tile_args;

#define WT_RESAMPLE_COLUMNS 8 ///< RESAMPLE_PHASES at most

/// Input frame at which the window of a period's block u begins, `before` frames further back.
WT_SHARED_FN int wt__resample_tile_begin(long long numerator, long long denominator, int phases, int u)
{
    return (int)((long long)u * phases * numerator / denominator);
}

/// Rows of `step` input frames that a thread block keeps, for `periods` of them: the last window goes beyond.
WT_SHARED_FN int wt__resample_tile_rows(int periods, int step, int window)
{
    return periods + (step + window - 2) / step;
}

/// Numbers of shared memory that the rows take, a multiple of 16 bytes.
WT_SHARED_FN int wt__resample_tile_floats(int rows, int step)
{
    return (rows * (step | 1) + 3) / 4 * 4;
}

#ifndef __CUDACC__
/// One output in double, straight from the words above. `wide`: the taps are double; `interpolated`: by
/// wt__resample_weights.
double wt__resample_ref(const wt_resample_args *args, int wide, int interpolated, int line, int n);
#endif

#endif
