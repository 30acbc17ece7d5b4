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
    int stored_frames, zero_phase;
    float momentum; ///< m / (1 + m)
} wt_griffin_lim_args;

/// 1 when a step goes there and back in registers, where frames lie a quarter of one apart: 16 * 16 * 8 points.
WT_SPECTRUM_BOTH int wt__griffin_lim_in_registers(int n)
{
    return wt__spectrum_in_place(n) && wt__spectrum_keeps(n) && wt__spectrum_paired(n) &&
           n == 256 * wt__spectrum_last(n);
}

/// Bytes of shared memory such a step's tables take: the factors that spectrum_turn reads, window, squares.
WT_SPECTRUM_BOTH int wt__griffin_lim_tables(int n)
{
    return wt__griffin_lim_in_registers(n) ? 6 * 8 * (n / 16 + n / 256) + 4 * (n + n / 4) : 0;
}

/// Blocks of a step an SM is to hold: in registers 768 threads of 80.
WT_SPECTRUM_BOTH int wt__griffin_lim_resident(int n)
{
    return wt__griffin_lim_in_registers(n) ? 6 : wt__spectrum_resident(n);
}

#endif
