/// Private to dsp/: single frames of a short-time transform, for ops that keep no spectrogram.
#ifndef WT_STFT_INTERNAL_H
#define WT_STFT_INTERNAL_H

#include "fft_double.h"
#include "fft_internal.h"

#include <warptone/stft.h>

/// Defaults resolved.
const wt_stft_config *wt__stft_config(const wt_stft *stft);
/// [n_fft], win_length padded with zeros.
const float *wt__stft_window(const wt_stft *stft);
/// The forward transform's vector kernels.
const wt__fft_kernels *wt__stft_kernels(const wt_stft *stft);
/// Sample `at` of a signal, which may lie before or behind it; `margin` is the ramp's length.
float wt__stft_padded(const float *pcm, int64_t n, int64_t at, int64_t margin, wt_stft_pad pad);
/// The same of `count` samples from `begin` on.
void wt__stft_pad_samples(const wt_stft *stft, const float *pcm, int64_t n, int64_t begin, int64_t count, float *to);
double wt__stft_padded64(const double *pcm, int64_t n, int64_t at, int64_t margin, wt_stft_pad pad);
/// The same of n_fft samples, which are a frame already padded.  [rt]
WT_RT void wt__stft_frame(wt_stft *stft, const float *samples, float *re, float *im);
/// Bins of frame t as pairs [bins][2], or their powers [bins]. Not of a precise transform. `past`: past the caches,
/// for outputs that wt__stft_past(), with the next frame; wt__stft_streamed() follows the last.  [rt]
WT_RT void wt__stft_pairs(wt_stft *stft, const float *pcm, int64_t n, int64_t t, bool past, float *pairs);
WT_RT void wt__stft_streamed(wt_stft *stft);
WT_RT void wt__stft_powers(wt_stft *stft, const float *pcm, int64_t n, int64_t t, float *powers);
/// Whether the spectra of so many frames are too many for the caches.
bool wt__stft_past(const wt_stft *stft, int64_t n_frames);
/// A tile of at most WT__FFT64_FRAMES frames t .. t + count - 1: rows re, im, `row` floats apart.  [rt]
WT_RT void wt__stft_tile(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int count, float *re, float *im,
                         size_t row);
/// Of a precise transform: re, im [bins][WT__FFT64_FRAMES] of the plan's scratch, until its next call.  [rt]
WT_RT void wt__stft_precise(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int count, const double **re,
                            const double **im);
/// Their powers, rounded once: [bins][WT__FFT64_FRAMES].  [rt]
WT_RT void wt__stft_precise_powers(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int count, float *powers);
/// A precise transform's window [n_fft], and another in its place.
const double *wt__stft_window64(const wt_stft *stft);
void wt__stft_set_window64(wt_stft *stft, const double *window);
/// Whether a frame goes there and back at once, and that: the turn's windows are set here.  [rt]
bool wt__stft_turns(const wt_stft *stft);
WT_RT void wt__stft_turn(wt_stft *stft, wt__fft_turn *turn);
/// Pairs of bins of one frame already windowed.  [rt]
WT_RT void wt__stft_transform(wt_stft *stft, const float *frame, float *pairs);
/// wt_stft_inverse of one channel, or one of several parts of its samples, which can be made side by side.  [rt]
WT_RT wt_status wt__stft_invert_line(wt_stft *stft, const float *in, int64_t n_frames, int64_t length, int part,
                                     int n_parts, float *out);
/// The same of a plan that is not precise, a few frames after the others: the plan keeps its sums between the calls, in
/// which it does no other inverse.
typedef struct wt__stft_walk {
    int64_t n_frames, length; ///< frames that count; samples
    int64_t t, n_hops;        ///< the next frame, and where the walk ends
    int64_t given;            ///< samples so far
} wt__stft_walk;
void wt__stft_walk_begin(wt_stft *stft, int64_t n_frames, int64_t length, wt__stft_walk *walk);
/// Frames t .. t + count - 1, of which those from n_frames on are not looked at; returns how many samples, the next
/// ones, they finish: at most count hops.  [rt]
WT_RT int64_t wt__stft_walk_on(wt_stft *stft, wt__stft_walk *walk, const float *in, int64_t count, float *out);
/// Frames that count for `length` samples: those behind it add nothing, not even to the sum of squares.
int64_t wt__stft_used_frames(const wt_stft *stft, int64_t n_frames, int64_t length);
/// Write complex bins re, im as `output` says.
void wt__stft_write(const float *re, const float *im, int bins, wt_stft_output output, float *out);

#endif
