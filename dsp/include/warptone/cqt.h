/// Constant-Q and variable-Q transforms with librosa 0.11's rules, and the inverse.
#ifndef WARPTONE_CQT_H
#define WARPTONE_CQT_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/stft.h>
#include <warptone/window.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_CQT_MAX_BINS 4096

typedef enum wt_cqt_kind {
    WT_CQT_FULL,   ///< complex, octave by octave at falling rates
    WT_CQT_PSEUDO, ///< magnitudes, from one spectrogram at the full rate
    WT_CQT_HYBRID, ///< magnitudes: pseudo where filters are shorter than two hops, full elsewhere
} wt_cqt_kind;

typedef enum wt_cqt_norm {
    WT_CQT_NORM_1, ///< each filter's magnitudes sum to 1
    WT_CQT_NORM_2,
    WT_CQT_NORM_MAX,
    WT_CQT_NORM_NONE,
} wt_cqt_norm;

typedef struct wt_cqt_config {
    wt_cqt_kind kind;        ///< 0 = full
    double rate_hz;          ///< 0 = 22050
    int hop;                 ///< 0 = 512; each halving of the rate needs a factor 2 of it, else the rate stays
    double fmin_hz;          ///< 0 = C1, 32.7 Hz
    int n_bins;              ///< 0 = 84
    int bins_per_octave;     ///< 0 = 12
    const double *intervals; ///< [bins_per_octave] ratios 1 .. 2, ascending, NULL = equal temperament; copied
    double tuning;           ///< in bins, of fmin
    double gamma_hz;         ///< bandwidth added to every filter (variable Q)
    bool erb_gamma;          ///< gamma of each bin as hearing has it (librosa vqt's gamma=None); gamma_hz is ignored
    double filter_scale;     ///< 0 = 1; below 1 filters are shorter
    wt_cqt_norm norm;        ///< 0 = 1-norm
    double sparsity;         ///< share of each filter's spectrum that is left out, 0 = 0.01; negative = nothing
    wt_window_config window; ///< 0 = Hann; `n` is set
    bool no_scale;           ///< do not divide by the root of the filters' lengths
    bool magnitude;          ///< give magnitudes, also of the full kind
    wt_stft_pad pad;         ///< what lies before and behind the signal, but for a ramp; 0 = zeros
    int channels;            ///< 0 = 1: batch * channels
    bool precise;            ///< halvings, transforms and filters in double, for what divides by a weak frame's largest
} wt_cqt_config;

/// Filters; streaming state of one call at a time for each worker; on a GPU buffers that hold signals of `max_samples`.
typedef struct wt_cqt wt_cqt;

/// `device` NULL = the CPU, immediate calls only; else it is borrowed until the plan is destroyed, and on a GPU signals
/// have `max_samples` at most (elsewhere it is not read).
/// Errors: WT_ERR_BAD_ARG naming the field, also when a filter reaches above half the rate; WT_ERR_NO_MEMORY, and those
/// of wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_cqt_create(wt_device *device, const wt_cqt_config *config, int64_t max_samples, wt_cqt **cqt);
void wt_cqt_destroy(wt_cqt *cqt); ///< NULL is allowed.  [worker, not armed]

int wt_cqt_bins(const wt_cqt *cqt);                          ///< [any]
int64_t wt_cqt_frames(const wt_cqt *cqt, int64_t n);         ///< of a signal of n samples; 0 of an empty one.  [any]
double wt_cqt_frequency_hz(const wt_cqt *cqt, int k);        ///< centre of bin k.  [any]
double wt_cqt_length_samples(const wt_cqt *cqt, int k);      ///< length of its filter at the full rate.  [any]

/// Analyse whole signals on the calling thread, in tiles: memory does not grow with n.
///
///   pcm   [channels][n]                     borrowed for the call
///   out   [channels][n_frames][n_bins][2]   frame by frame; magnitudes: without [2]
///
/// Returns WT_ERR_BAD_ARG when n is below 1.
/// Source: librosa 0.11.0 core/constantq.py, vqt(), pseudo_cqt(), hybrid_cqt(); the 2:1 filter is soxr's HQ
/// (dsp/filter/soxr_hq.c).  Judge: librosa in float64, 1e-6 of the peak; 1e-4 in rows whose filter has two bins alike
/// at the edge of `sparsity` (docs/tonal.md).  [rt, running]
WT_RT wt_status wt_cqt_run(wt_cqt *cqt, const float *pcm, int64_t n, float *out);

/// Queue the same on a stream of the plan's device; offsets in bytes. On the CPU backend channels are spread over the
/// device's threads. Until the stream has passed it no other call may use the plan, but for further enqueues on the
/// same stream. On a GPU frames of more than 16384 samples, and precise ones, go by memory, in double.
/// Errors: WT_ERR_BAD_ARG (no device, n, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, the CPU's result, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_cqt_enqueue(wt_cqt *cqt, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n,
                                    wt_buffer *out, size_t out_offset);

/// A tile of a longer signal, to be analysed with the bits of the whole: it needs wt_cqt_reach() samples on both sides
/// of the frames that are wanted, or as many as there are to the whole's ends.
typedef struct wt_cqt_tile {
    int64_t begin; ///< sample of the whole that is the tile's first, a multiple of 16 hops
    int64_t first; ///< frame, a multiple of 16, from which on they are wanted; what `out` has of others is not said
    int64_t count; ///< 0 = all that there are
} wt_cqt_tile;

/// Samples on both sides of a frame's middle that have to do with it.  [any]
int64_t wt_cqt_reach(const wt_cqt *cqt);

/// wt_cqt_run and wt_cqt_enqueue of a tile; NULL = of a whole signal.
/// Errors: WT_ERR_BAD_ARG also when it does not lie as said.
/// Judge:  the whole on the same backend, the same bits.  [rt, running; of enqueue: worker]
WT_RT wt_status wt_cqt_run_tile(wt_cqt *cqt, const float *pcm, int64_t n, const wt_cqt_tile *tile, float *out);
WT_CHECKED wt_status wt_cqt_enqueue_tile(wt_cqt *cqt, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                         int64_t n, const wt_cqt_tile *tile, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
