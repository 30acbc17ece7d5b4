/// Arguments of Griffin and Lim's iteration.
#ifndef WT_GRIFFIN_LIM_KERNEL_H
#define WT_GRIFFIN_LIM_KERNEL_H
#include "spectrum_kernel.h"

typedef struct wt_griffin_lim_args {
    wt_spectrum_walk walk;
    wt_spectrum_frames frames;       ///< pcm: y - momentum y_before, [n_lines][length]; n_frames: those that count
    const float *magnitude;          ///< [n_lines][stored_frames][bins]
    float *out;                      ///< [n_lines][length] y, in place
    float *next;                     ///< what the next step transforms, not `pcm`; NULL: there is none
    const float *squares;            ///< [..] reciprocals of the windows' squares, of the padded signal
    const unsigned long long *seeds; ///< [bins] the generator before each bin's first frame
    const unsigned long long *jumps; ///< [n_frames][2] factor and term that lead from there to a frame
    const float *factors;            ///< [WT_GRIFFIN_LIM_FACTORS][2] of griffin_lim_quarter: [8][16], then [4][256]
    int stored_frames, zero_phase;
    float momentum; ///< m / (1 + m)
} wt_griffin_lim_args;

/// Bytes of shared memory in which a block finds the magnitudes it asked for while it transformed. 0: it does not.
WT_SPECTRUM_BOTH int wt__griffin_lim_staged(int n)
{
    const int staged = wt__spectrum_paired(n) && wt__spectrum_sequences(n) == 1;
    return staged ? wt__spectrum_threads(n) * wt__spectrum_last(n) * 2 * 4 : 0;
}

/// griffin_lim_quarter: its factors, the length of a row of its sixteen, and a block's bytes of shared memory.
#define WT_GRIFFIN_LIM_FACTORS (8 * 16 + 4 * 256)
#define WT_GRIFFIN_LIM_ROW     137
WT_SPECTRUM_BOTH int wt__griffin_lim_quarter_bytes(void)
{
    return 16 * WT_GRIFFIN_LIM_ROW * 8 + wt__griffin_lim_staged(2048);
}

#endif
