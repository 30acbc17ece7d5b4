/// Mel-frequency cepstral coefficients, from samples in one plan, and back to mel bands.
#ifndef WARPTONE_MFCC_H
#define WARPTONE_MFCC_H

#include <warptone/mel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_mfcc_config {
    wt_mel_config mel; ///< scale and layout are set: decibels, bands first
    int n_mfcc;        ///< 0 = 20; at most the bands
    int dct_type;      ///< 1, 2 or 3; 0 = 2
    bool no_norm;      ///< false = orthonormal
    double lifter;     ///< L: coefficient k is multiplied by 1 + L / 2 sin(pi (k + 1) / L); 0 = none
} wt_mfcc_config;

/// A plan: tables, and scratch that one call at a time uses.
typedef struct wt_mfcc wt_mfcc;

/// Plan. Errors: WT_ERR_BAD_ARG naming the field, and those of wt_mel_create.  [worker, not armed]
WT_CHECKED wt_status wt_mfcc_create(wt_device *device, const wt_mfcc_config *config, wt_mfcc **mfcc);
void wt_mfcc_destroy(wt_mfcc *mfcc); ///< NULL is allowed.  [worker, not armed]

int wt_mfcc_coefficients(const wt_mfcc *mfcc); ///< n_mfcc.  [any]
int64_t wt_mfcc_frames(const wt_mfcc *mfcc);   ///< frames of a channel.  [any]

/// Analyse on the calling thread.
///
///   pcm   [n_signals][channels][n_samples]           borrowed for the call
///   out   [n_signals][channels][n_mfcc][n_frames]
///
/// Source: librosa 0.11.0 feature/spectral.py, mfcc(); scipy.fft.dct.  Judge: librosa in float64, 2e-7 of the
/// peak.  [rt, running]
WT_RT void wt_mfcc_run(wt_mfcc *mfcc, const float *pcm, float *out);
/// Queue the same. Errors: those of wt_mel_enqueue.  [worker]
WT_CHECKED wt_status wt_mfcc_enqueue(wt_mfcc *mfcc, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                     wt_buffer *out, size_t out_offset);

/// Coefficients of decibels of mel bands; of `config` n_mfcc, dct_type, no_norm, lifter and mel.bank.n_mels count.
///
///   db     [n_mels][n_frames]
///   mfcc   [n_mfcc][n_frames]
///
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  Source, judge: as above.  [worker]
WT_CHECKED wt_status wt_mfcc_of_db(const wt_mfcc_config *config, const float *db, int64_t n_frames, float *mfcc);

/// Mel powers from coefficients; of `config` n_mfcc, dct_type, no_norm, lifter, mel.bank.n_mels and mel.db.ref count.
///
///   mfcc   [n_mfcc][n_frames]
///   mel    [n_mels][n_frames]   ref 10^(dB / 10)
///
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.
/// Source: librosa 0.11.0 feature/inverse.py, mfcc_to_mel().  Judge: librosa in float64, 1.2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_mfcc_to_mel(const wt_mfcc_config *config, const float *mfcc, int64_t n_frames, float *mel);

#ifdef __cplusplus
}
#endif
#endif
