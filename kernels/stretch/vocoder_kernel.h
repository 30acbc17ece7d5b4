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
    const wt_stretch_place *places; ///< [n_lines][n_places] of pairs, when rate is not 0; NULL: round(t hop rate)
    long long n_places, first;      ///< first: the signal's pair that frames 0 and 1 are
    double rate; ///< 0: frame t at sample t hop. Else pair t at its place, its second frame a hop earlier
    int n_frames, hop;
} wt_vocoder_frames_args;

/// Phase vocoder: magnitudes between two frames, phases added up.
typedef struct wt_vocoder_follow_args {
    const float *in; ///< [n_lines][n_held][bins][2] of the n_frames there are, from frame first_in on
    float *out;      ///< [n_lines][pitch][bins][2]: output frames first .. first + n_out - 1
    double *phases;  ///< [n_lines][bins][2] before the first and behind the last of these; NULL = all there are
    double rate;
    long long first, first_in;
    int bins, n_frames, n_held, n_out, pitch, unused;
} wt_vocoder_follow_args;

/// The bins that attacks rule, at least four times their power before them.
typedef struct wt_vocoder_attacks_args {
    wt_vocoder_frames_args frames; ///< samples, window, twiddles, places
    const wt_transient *at;        ///< [n_lines][most]
    unsigned char *rules;          ///< [n_lines][n_out][bins] 1 = it does, of the first frame that goes with an attack
    long long most;
    int n_out, blocks; ///< output frames first .. first + n_out - 1 of each line; blocks of a line
} wt_vocoder_attacks_args;

enum { WT_VOCODER_SEARCHED = 64 }; ///< frames of a block of vocoder_attacks

/// The attack that frame t of a line's is the first to go with; -1 = none.
WT_SHARED_FN long long wt__vocoder_begun(const wt_vocoder_attacks_args *a, long long line, long long t)
{
    if (t >= a->n_out) return -1;
    const wt_stretch_place *p = a->frames.places + line * a->frames.n_places + a->frames.first + t;
    return p->held >= 0 && (!t || p[-1].held != p->held) ? p->held : -1;
}

/// Identity phase locking, of output frames first .. first + n_out - 1.
typedef struct wt_vocoder_lock_args {
    const float *in; ///< [n_lines][n_out][2][bins][2]: each output frame's place in the input, and a hop earlier
    float *out;      ///< [n_lines][pitch][bins][2]
    double *before;  ///< [n_lines][bins][2] the frame before the first, and the last of these; NULL = all there are
    const wt_stretch_place *places; ///< [n_lines][n_places] of all frames; NULL = no attacks
    const unsigned char *rules;     ///< [n_lines][n_out][bins] which bins begin anew, of an attack's first frame
    long long n_places, first;
    int n_out, pitch;
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

/// Its blocks that a processor must hold: 56 registers a thread, for lines wait for no other line.
WT_SPECTRUM_BOTH int wt__vocoder_blocks(int n_fft) { return 65536 / 56 / wt__vocoder_threads(n_fft); }

/// Bytes of shared memory it takes.
WT_SPECTRUM_BOTH int wt__vocoder_lock_bytes(int n_fft)
{
    const int bins = n_fft / 2 + 1, peaks = bins / 3 + 2, threads = wt__vocoder_threads(n_fft);
    const int all = threads * wt__vocoder_bins(n_fft);
    return bins * (16 + 2 * 8) + all * (4 + 2) + peaks * (16 + 2 * 4) + threads / 32 * 4 + 32;
}

#endif
