/// Arguments of the phase vocoders' kernels.
#ifndef WT_VOCODER_KERNEL_H
#define WT_VOCODER_KERNEL_H
#include "spectrum_kernel.h"
#include "transient_kernel.h"

/// Pairs of frames in double, rounded once. Frames are centred, zeros lie around the signals.
typedef struct wt_vocoder_frames_args {
    const float *pcm;       ///< [n_lines][n_samples]
    float *out;             ///< [n_lines][n_frames][bins][2]
    const double *window;   ///< [n_fft]
    const double *twiddles; ///< pass by pass [radix - 1][m][2]
    long long n_samples;
    const wt_stretch_place
        *places; ///< [n_lines][n_frames / 2] of frame 2 t, when rate is not 0; NULL: round(t hop rate)
    double rate; ///< 0: frame t at sample t hop. Else frame 2 t at its place, frame 2 t + 1 a hop earlier
    int n_frames, hop;
} wt_vocoder_frames_args;

/// Phase vocoder: magnitudes between two frames, phases added up.
typedef struct wt_vocoder_follow_args {
    const float *in; ///< [n_lines][n_frames][bins][2]
    float *out;      ///< [n_lines][n_out][bins][2]
    double rate;
    int bins, n_frames, n_out;
} wt_vocoder_follow_args;

/// The bins that each attack rules, at least four times their power before it.
typedef struct wt_vocoder_attacks_args {
    wt_vocoder_frames_args frames; ///< samples, window, twiddles
    const wt_transient *at;        ///< [n_lines][most]
    const long long *counts;       ///< [n_lines]
    unsigned char *rules;          ///< [n_lines][most][bins] 1 = it does
    long long most;
    int blocks; ///< of a line
} wt_vocoder_attacks_args;

/// Identity phase locking.
typedef struct wt_vocoder_lock_args {
    const float *in; ///< [n_lines][n_out][2][bins][2]: each output frame's place in the input, and a hop earlier
    float *out;      ///< [n_lines][n_out][bins][2]
    const wt_stretch_place *places; ///< [n_lines][n_out] of the frames; NULL = no attacks
    const unsigned char *rules;     ///< [n_lines][most][bins] which bins begin anew at an attack
    long long most;
    int n_out;
} wt_vocoder_lock_args;

/// The first n_out samples of each line, times a gain; zeros behind the n_in there are.
typedef struct wt_vocoder_cut_args {
    const float *in; ///< [n_lines][n_in]
    float *out;      ///< [n_lines][n_out]
    long long n_in, n_out;
    float gain;
} wt_vocoder_cut_args;

/// Neighbouring bins a thread of the locking kernel has, and its threads.
WT_SPECTRUM_BOTH int wt__vocoder_bins(int n_fft) { return n_fft > 8190 ? 8 : 4; }

WT_SPECTRUM_BOTH int wt__vocoder_threads(int n_fft)
{
    const int warp = 32 * wt__vocoder_bins(n_fft);
    return (n_fft / 2 + 1 + warp - 1) / warp * 32;
}

/// Bytes of shared memory it takes.
WT_SPECTRUM_BOTH int wt__vocoder_lock_bytes(int n_fft)
{
    const int bins = n_fft / 2 + 1, peaks = bins / 3 + 2, threads = wt__vocoder_threads(n_fft);
    const int all = threads * wt__vocoder_bins(n_fft);
    return bins * (16 + 2 * 8) + all * (4 + 2) + peaks * (16 + 2 * 4) + threads / 32 * 4 + 32;
}

#endif
