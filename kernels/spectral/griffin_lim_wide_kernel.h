/// Arguments of Griffin and Lim's iteration in double, whose frames lie in memory.
#ifndef WT_GRIFFIN_LIM_WIDE_KERNEL_H
#define WT_GRIFFIN_LIM_WIDE_KERNEL_H
#include "wide_kernel.h"

typedef struct wt_griffin_lim_wide_args {
    wt_wide_pairs pairs;             ///< n_frames: those that count for the length
    const float *magnitude;          ///< [n_lines][stored_frames][bins]
    double *before;                  ///< [n_lines][n_frames][bins][2] spectra of the iteration before, replaced
    double *sums;                    ///< [n_lines][n_padded]
    const double *squares;           ///< [n_padded] reciprocals of the windows' squares
    float *out;                      ///< [n_lines][length], NULL = not yet
    const unsigned long long *seeds; ///< [bins] the generator before each bin's first frame
    const unsigned long long *jumps; ///< [n_frames][2] factor and term that lead from there to a frame
    long long stored_frames, n_padded, length, n_lines;
    double momentum;                     ///< m / (1 + m)
    int bins, margin, zero_phase, first; ///< first: none was before
} wt_griffin_lim_wide_args;

#endif
