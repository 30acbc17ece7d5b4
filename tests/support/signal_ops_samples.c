// Levels, silence, loudness; filters, rates, stretch and shift.
#include "signal_op_rows.h"

#include <warptone/agc.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/loudness.h>
#include <warptone/normalize.h>
#include <warptone/pcm.h>
#include <warptone/resample.h>
#include <warptone/silence.h>
#include <warptone/stretch.h>
#include <warptone/vad.h>

// ---- level, silence, loudness

static wt_status make_level(wt_device *device, made_op *op, wt_level_kind kind)
{
    const wt_level_plan_config config = {
        .kind = kind, .level = {.frame_length = N_FFT, .hop = HOP}, .n_samples = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, wt_level_frames(&config.level, op->n));
    return wt_level_plan_create(device, &config, (wt_level_plan **)&op->plan);
}

static wt_status create_rms(wt_device *device, made_op *op) { return make_level(device, op, WT_LEVEL_RMS); }
static wt_status create_energy(wt_device *device, made_op *op) { return make_level(device, op, WT_LEVEL_ENERGY); }
static wt_status create_zcr(wt_device *device, made_op *op) { return make_level(device, op, WT_LEVEL_ZERO_CROSSINGS); }

static wt_status make_silence(wt_device *device, made_op *op, bool trim)
{
    const wt_silence_config config = {.level = {.frame_length = N_FFT, .hop = HOP},
                                      .top_db = 20,
                                      .trim = trim,
                                      .n_samples = op->n,
                                      .n_signals = op->n_signals};
    wt_status status = wt_silence_create(device, &config, (wt_silence **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_I64, 2 * wt_silence_room(op->plan));
    signal_op_gives(op, OP_I32, 1);
    return status;
}

static wt_status create_split(wt_device *device, made_op *op) { return make_silence(device, op, false); }
static wt_status create_trim(wt_device *device, made_op *op) { return make_silence(device, op, true); }

static wt_status create_vad(wt_device *device, made_op *op)
{
    const wt_vad_plan_config config = {.vad = {.rate_hz = 8000}, .n_samples = op->n, .n_lines = op->n_signals};
    wt_status status = wt_vad_plan_create(device, &config, (wt_vad_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_I32, wt_vad_plan_windows(op->plan));
    return status;
}

static wt_status create_loudness(wt_device *device, made_op *op)
{
    const wt_loudness_batch_config config = {
        .meter = {.rate_hz = 8000, .channels = 1}, .n_frames = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F64, sizeof(wt_loudness_values) / sizeof(double));
    return wt_loudness_batch_create(device, &config, (wt_loudness_batch **)&op->plan);
}

static wt_status make_normalize(wt_device *device, made_op *op, wt_normalize_kind kind)
{
    const wt_normalize_config config = {.kind = kind, .rate_hz = 8000, .n_frames = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_normalize_create(device, &config, (wt_normalize **)&op->plan);
}

static wt_status create_normalize_loudness(wt_device *device, made_op *op)
{
    return make_normalize(device, op, WT_NORMALIZE_LOUDNESS);
}

static wt_status create_normalize_rms(wt_device *device, made_op *op)
{
    return make_normalize(device, op, WT_NORMALIZE_RMS);
}

static wt_status create_agc(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_agc_plan_create(device, &(wt_agc_config){.rate_hz = 8000, .channels = 1}, op->n_signals,
                              (wt_agc_plan **)&op->plan);
}

static wt_status create_denoise(wt_device *device, made_op *op)
{
    const wt_denoise_plan_config config = {
        .denoise = {.rate_hz = 8000, .channels = 1}, .n_signals = op->n_signals, .max_frames = op->n};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_denoise_plan_create(device, &config, (wt_denoise_plan **)&op->plan);
}

static wt_status create_echo(wt_device *device, made_op *op)
{
    const wt_echo_plan_config config = {.echo = {.rate_hz = 8000, .tail_ms = 40}, op->n_signals, op->n};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_echo_plan_create(device, &config, (wt_echo_plan **)&op->plan);
}

// ---- filters and rates

static wt_status create_sos(wt_device *device, made_op *op)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_config config = {.sos = sos[0]};
    wt_status status = wt_sos_design(&(wt_sos_design_config){.order = 4, .edge_hz = {0.2}}, sos[0], &config.n_sections);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return status ? status : wt_sos_rows_create(device, &config, op->n_signals, op->n, (wt_sos_rows **)&op->plan);
}

static wt_status create_savgol(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_savgol_rows_create(device, &(wt_savgol_config){.n_taps = 11, .order = 3, .derivative = 1}, op->n_signals,
                                 op->n, (wt_savgol_rows **)&op->plan);
}

static wt_status make_resample(wt_device *device, made_op *op, wt_resample_quality quality, int out_hz)
{
    const wt_resample_plan_config config = {
        .in_hz = RATE_HZ, .out_hz = out_hz, .quality = quality, .n_lines = op->n_signals, .n_in = op->n};
    wt_status status = wt_resample_plan_create(device, &config, (wt_resample_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_resample_plan_out_frames(op->plan));
    return status;
}

static wt_status create_resample_best(wt_device *device, made_op *op)
{
    return make_resample(device, op, WT_RESAMPLE_BEST, 16000);
}

static wt_status create_resample_fast(wt_device *device, made_op *op)
{
    return make_resample(device, op, WT_RESAMPLE_FAST, 48000);
}

static wt_status create_resample_soxr(wt_device *device, made_op *op)
{
    return make_resample(device, op, WT_RESAMPLE_SOXR_HQ, 16000);
}

static wt_status create_pcm(wt_device *device, made_op *op)
{
    const wt_pcm_plan_config config = {WT_PCM_F32, 2, op->n, op->n_signals, true};
    op->in_floats = 2 * (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_pcm_plan_create(device, &config, (wt_pcm_plan **)&op->plan);
}

// ---- stretch and shift

static wt_status make_stretch(wt_device *device, made_op *op, wt_stretch_mode mode)
{
    const wt_stretch_config config = {
        .mode = mode, .rate = 1.3, .n_fft = N_FFT, .n_samples = op->n, .n_signals = op->n_signals};
    wt_status status = wt_stretch_create(device, &config, (wt_stretch **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_stretch_n_out(op->plan));
    return status;
}

#define STRETCH(noun, mode)                                                                                            \
    static wt_status create_##noun(wt_device *device, made_op *op) { return make_stretch(device, op, mode); }
STRETCH(transient, WT_STRETCH_TRANSIENT)
STRETCH(locked, WT_STRETCH_LOCKED)
STRETCH(librosa, WT_STRETCH_LIBROSA)
STRETCH(wsola, WT_STRETCH_WSOLA)

static wt_status make_shift(wt_device *device, made_op *op, bool keep_formants)
{
    const wt_pitch_shift_config config = {
        .n_steps = 3, .n_fft = N_FFT, .n_samples = op->n, .n_signals = op->n_signals, .keep_formants = keep_formants};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_pitch_shift_create(device, &config, (wt_pitch_shift **)&op->plan);
}

static wt_status create_shift(wt_device *device, made_op *op) { return make_shift(device, op, false); }
static wt_status create_shift_formants(wt_device *device, made_op *op) { return make_shift(device, op, true); }

static wt_status create_phase_vocoder(wt_device *device, made_op *op)
{
    wt_status status = wt_phase_vocoder_create(device, &(wt_phase_vocoder_config){.bins = BINS, .rate = 1.5},
                                               (wt_phase_vocoder **)&op->plan);
    op->in_floats = (size_t)op->n * BINS * 2;
    if (!status) signal_op_gives(op, OP_F32, wt_phase_vocoder_frames(op->plan, op->n) * BINS * 2);
    return status;
}

// ---- the table

static const signal_op rows[] = {
    {ROW("rms", SAMPLES, rms, level_plan), RUN(level_plan)},
    {ROW("energy", SAMPLES, energy, level_plan), RUN(level_plan)},
    {ROW("zero crossings", SAMPLES, zcr, level_plan), RUN(level_plan), .nan = OP_NAN_NONE},
    {ROW("split", SAMPLES, split, silence), RUN(silence), .nan = OP_NAN_NONE},
    {ROW("trim", SAMPLES, trim, silence), RUN(silence), .nan = OP_NAN_NONE},
    {.name = "vad",
     .n = 30000,
     .create = create_vad,
     .destroy = op_destroy_vad_plan,
     .enqueue = op_enqueue_vad,
     .nan = OP_NAN_NONE},
    {ROW("loudness", 30000, loudness, loudness_batch), RUN(loudness_batch), .nan = OP_NAN_NONE},
    {ROW("normalize, loudness", 30000, normalize_loudness, normalize), RUN(normalize), .nan = OP_NAN_WHOLE},
    {ROW("normalize, rms", 30000, normalize_rms, normalize), RUN(normalize), .nan = OP_NAN_WHOLE},
    {ROW("agc", SAMPLES, agc, agc_plan), RUN(agc), .nan = OP_NAN_ONWARD},
    {ROW("denoise", SAMPLES, denoise, denoise_plan), RUN(denoise), .nan = OP_NAN_NONE},
    {ROW("echo", SAMPLES, echo, echo_plan), RUN(echo), .nan = OP_NAN_NONE},
    {ROW("sections", SAMPLES, sos, sos_rows), RUN(sos_rows), .nan = OP_NAN_ONWARD},
    {ROW("savgol", SAMPLES, savgol, savgol_rows), RUN(savgol_rows)},
    {ROW("resample, best", SAMPLES, resample_best, resample_plan), RUN(resample_plan)},
    {ROW("resample, fast", SAMPLES, resample_fast, resample_plan), RUN(resample_plan)},
    {ROW("resample, soxr_hq", SAMPLES, resample_soxr, resample_plan), RUN(resample_plan)},
    {ROW("pcm", SAMPLES, pcm, pcm_plan), RUN(pcm_plan)},
    {ROW("stretch", SAMPLES, transient, stretch), RUN(stretch), .nan = OP_NAN_WHOLE},
    {ROW("stretch, locked", SAMPLES, locked, stretch), RUN(stretch), .nan = OP_NAN_ONWARD},
    {ROW("stretch, librosa", SAMPLES, librosa, stretch), RUN(stretch), .nan = OP_NAN_ONWARD},
    {ROW("stretch, wsola", SAMPLES, wsola, stretch), RUN(stretch), .nan = OP_NAN_WHOLE},
    {ROW("pitch shift", SAMPLES, shift, pitch_shift), RUN(pitch_shift), .nan = OP_NAN_WHOLE},
    {ROW("pitch shift, formants", SAMPLES, shift_formants, pitch_shift), RUN(pitch_shift), .nan = OP_NAN_WHOLE},
    {ROW("phase vocoder", FRAMES, phase_vocoder, phase_vocoder), RUN(phase_vocoder), .frame_rows = 2 * BINS,
     .nan = OP_NAN_ONWARD},
};

const signal_op_table signal_ops_samples = {rows, sizeof rows / sizeof *rows};
