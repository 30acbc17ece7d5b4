/// How the plans of signal ops run and go, whatever their settings: signal_ops_*.c makes them with fixed ones,
/// drawn_ops_*.c with drawn ones.
#ifndef WT_TEST_OP_PLANS_H
#define WT_TEST_OP_PLANS_H

#include "signal_ops.h"

// clang-format off
/// From one buffer to another.
#define OP_PLAIN_PLANS(X) \
    X(autocorrelate) X(convolve) X(db) X(delta) X(fft) X(filtfilt) X(griffin_lim) X(level_plan) \
    X(loudness_batch) X(median_plan) X(mel) X(mel_inverse) X(mfcc) X(nn_filter_plan) X(normalize) X(onset) \
    X(pcen) X(pcm_plan) X(pitch_shift) X(plp) X(pyin) X(reassigned) X(resample_plan) X(savgol_rows) \
    X(sos_rows) X(spectral) X(stretch) X(tempo) X(tempogram) X(tonal) X(tuning) X(yin)
/// These are run in ways of their own.
#define OP_OTHER_PLANS(X) \
    X(agc_plan) X(beat) X(chroma) X(cqt) X(denoise_plan) X(echo_plan) X(hpss) X(icqt) X(nmf) X(nsgt) \
    X(onsets) X(phase_vocoder) X(salience) X(silence) X(stft_plan) X(stft_stream_plan) X(tempo_ratios) \
    X(vad_plan)
#define OP_OTHER_RUNS(X) \
    X(agc) X(beat) X(chroma) X(cqt) X(denoise) X(echo) X(hpss) X(icqt) X(istft) X(nmf) X(onsets) \
    X(phase_vocoder) X(piptrack) X(salience) X(silence) X(stft) X(stft_stream) X(tempo_frames) \
    X(tempo_ratios) X(vad)
// clang-format on

#define OP_DESTROY(noun) void op_destroy_##noun(void *plan);
#define OP_ENQUEUE(noun) \
    wt_status op_enqueue_##noun(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out);
OP_PLAIN_PLANS(OP_DESTROY)
OP_OTHER_PLANS(OP_DESTROY)
OP_PLAIN_PLANS(OP_ENQUEUE)
OP_OTHER_RUNS(OP_ENQUEUE)
#undef OP_DESTROY
#undef OP_ENQUEUE

/// Frames behind the beats that were found are not defined.
void op_clear_beats(const made_op *op, void *const *parts);

#endif
