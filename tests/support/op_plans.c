#include "op_plans.h"

#include <string.h>
#include <warptone/agc.h>
#include <warptone/autocorrelate.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/db.h>
#include <warptone/decompose.h>
#include <warptone/delta.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/fft.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/griffin_lim.h>
#include <warptone/hpss.h>
#include <warptone/icqt.h>
#include <warptone/loudness.h>
#include <warptone/median.h>
#include <warptone/mel_inverse.h>
#include <warptone/mfcc.h>
#include <warptone/normalize.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/overlap_save.h>
#include <warptone/pcen.h>
#include <warptone/pcm.h>
#include <warptone/pitch.h>
#include <warptone/reassigned.h>
#include <warptone/resample.h>
#include <warptone/salience.h>
#include <warptone/silence.h>
#include <warptone/spectral.h>
#include <warptone/stft_stream.h>
#include <warptone/stretch.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>
#include <warptone/vad.h>

#define DESTROY(noun) \
    void op_destroy_##noun(void *plan) { wt_##noun##_destroy(plan); }
#define ENQUEUE(noun)                                                                                        \
    wt_status op_enqueue_##noun(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)        \
    {                                                                                                        \
        return wt_##noun##_enqueue(op->plan, s, in, 0, out, 0);                                              \
    }
OP_PLAIN_PLANS(DESTROY)
OP_OTHER_PLANS(DESTROY)
OP_PLAIN_PLANS(ENQUEUE)

wt_status op_enqueue_stft(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_stft_plan_forward(op->plan, s, in, 0, out, 0);
}

wt_status op_enqueue_istft(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_stft_plan_inverse(op->plan, s, in, 0, out, 0);
}

wt_status op_enqueue_stft_stream(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_stft_stream_plan_reset(op->plan, s);
    return status ? status : wt_stft_stream_plan_forward(op->plan, s, in, 0, op->n, out, 0);
}

wt_status op_enqueue_cqt(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_cqt_enqueue(op->plan, s, in, 0, op->n, out, 0);
}

wt_status op_enqueue_icqt(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_icqt_enqueue(op->plan, s, in, 0, op->n, 0, out, 0);
}

wt_status op_enqueue_chroma(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_chroma_enqueue(op->plan, s, in, 0, op->n, out, 0);
}

wt_status op_enqueue_piptrack(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_tuning_enqueue_peaks(op->plan, s, in, 0, out, op->at[0], out, op->at[1]);
}

wt_status op_enqueue_salience(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_salience_enqueue(op->plan, s, in, 0, (int64_t)op->n * op->n_signals, out, 0);
}

wt_status op_enqueue_hpss(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_hpss_enqueue(op->plan, s, in, 0, op->n, out, op->at[0], out, op->at[1]);
}

/// From a start that is 0.75 everywhere (bytes 3f).
wt_status op_enqueue_nmf(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_stream_fill(s, out, 0, 0x3f, op->out_bytes);
    return status ? status : wt_nmf_enqueue(op->plan, s, in, 0, out, op->at[0], out, op->at[1]);
}

wt_status op_enqueue_onsets(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_onsets_enqueue(op->plan, s, in, 0, out, op->at[0], out, op->at[1]);
}

wt_status op_enqueue_tempo_frames(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_tempo_enqueue_frames(op->plan, s, in, 0, out, 0);
}

/// Of 32.5 BPM (bytes 40).
wt_status op_enqueue_tempo_ratios(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_stream_fill(s, out, op->at[1], 0x40, sizeof(double) * (size_t)(op->n * op->n_signals));
    return status ? status : wt_tempo_ratios_enqueue(op->plan, s, in, 0, out, op->at[1], out, op->at[0]);
}

wt_status op_enqueue_beat(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_beat_enqueue(op->plan, s, in, 0, out, op->at[1], out, op->at[0]);
}

void op_clear_beats(const made_op *op, void *const *parts)
{
    const wt_beats *found = parts[0];
    int *frames = parts[1];
    const int64_t n = found->n_beats < 0 || found->n_beats > op->n ? 0 : found->n_beats;
    memset(frames + n, 0, sizeof *frames * (size_t)(op->n - n));
}

wt_status op_enqueue_silence(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_silence_enqueue(op->plan, s, in, 0, out, op->at[0], out, op->at[1]);
}

wt_status op_enqueue_vad(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_vad_plan_enqueue(op->plan, s, in, 0, NULL, NULL, 0, out, 0);
}

wt_status op_enqueue_agc(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_agc_plan_reset(op->plan, s);
    return status ? status : wt_agc_plan_enqueue(op->plan, s, in, 0, op->n, out, 0);
}

wt_status op_enqueue_denoise(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_denoise_plan_reset(op->plan, s);
    return status ? status : wt_denoise_plan_enqueue(op->plan, s, in, 0, op->n, out, 0);
}

/// What the microphone hears is what is played.
wt_status op_enqueue_echo(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_echo_plan_reset(op->plan, s);
    return status ? status : wt_echo_plan_enqueue(op->plan, s, in, 0, in, 0, op->n, out, 0);
}

wt_status op_enqueue_phase_vocoder(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_phase_vocoder_enqueue(op->plan, s, in, 0, op->n, op->n_signals, out, 0);
}
