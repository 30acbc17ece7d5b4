// Ops of samples, with drawn settings: levels, voices, filters, rates, stretch and shift.
#include "draws.h"
#include "signal_op_rows.h"

#include <warptone/agc.h>
#include <warptone/denoise.h>
#include <warptone/echo.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/loudness.h>
#include <warptone/normalize.h>
#include <warptone/overlap_save.h>
#include <warptone/pcm.h>
#include <warptone/resample.h>
#include <warptone/silence.h>
#include <warptone/stretch.h>
#include <warptone/vad.h>

// ---- levels

static wt_level_config draw_level(draws *d)
{
    wt_level_config c = {.frame_length = draw_field(d, 1, 2500), .no_center = draw_bool(d)};
    const int length = c.frame_length > 0 && c.frame_length < 5000 ? c.frame_length : 2048;
    c.hop = draw_field(d, length / 16 + 1, 2 * length), c.pad = (wt_stft_pad)draw_below(d, d->wild ? 6 : 5);
    return c;
}

static wt_status create_level(wt_device *device, made_op *op)
{
    wt_level_plan_config c = {.n_samples = op->n, .n_signals = op->n_signals};
    c.kind = (wt_level_kind)draw_below(op->draws, op->draws->wild ? 4 : 3), c.level = draw_level(op->draws);
    wt_status status = wt_level_plan_create(device, &c, (wt_level_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_level_frames(&c.level, op->n));
    return status;
}

static wt_status create_silence(wt_device *device, made_op *op)
{
    wt_silence_config c = {.level = draw_level(op->draws), .n_samples = op->n, .n_signals = op->n_signals};
    c.top_db = draw_real(op->draws, 1, 100), c.trim = draw_bool(op->draws), c.channels = draw_field(op->draws, 1, 2);
    c.room = draw_bool(op->draws) ? draw_field(op->draws, 1, 5) : 0;
    wt_status status = wt_silence_create(device, &c, (wt_silence **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)(c.channels ? c.channels : 1);
    if (!status) signal_op_gives(op, OP_I64, 2 * wt_silence_room(op->plan));
    signal_op_gives(op, OP_I32, 1);
    return status;
}

static wt_status create_vad(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_vad_plan_config c = {
        .vad = {.rate_hz = draw_field(d, 8000, 48000)}, .n_samples = op->n, .n_lines = op->n_signals};
    c.vad.enter_db = 6 + draw_real(d, 0, 10), c.vad.leave_db = draw_real(d, 1, 6),
    c.vad.hangover_ms = draw_real(d, 1, 500);
    wt_status status = wt_vad_plan_create(device, &c, (wt_vad_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_I32, wt_vad_plan_windows(op->plan));
    return status;
}

static wt_status create_loudness(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_loudness_batch_config c = {.n_frames = op->n, .n_signals = op->n_signals};
    c.meter = (wt_loudness_config){.rate_hz = draw_field(d, 4000, 192000), .channels = draw_field(d, 1, 8)};
    c.meter.dual_mono = draw_bool(d), c.meter.no_true_peak = draw_bool(d);
    const int channels = c.meter.channels ? c.meter.channels : 2;
    op->in_floats = channels > 0 && channels < 100 ? (size_t)op->n * (size_t)channels : 0;
    signal_op_gives(op, OP_F64, sizeof(wt_loudness_values) / sizeof(double));
    return wt_loudness_batch_create(device, &c, (wt_loudness_batch **)&op->plan);
}

static wt_status create_normalize(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_normalize_config c = {.n_frames = op->n, .n_signals = op->n_signals};
    c.kind = (wt_normalize_kind)draw_below(d, d->wild ? 4 : 3), c.target_db = draw_real(d, -40, 0);
    c.ceiling_db = draw_real(d, -20, 0), c.rate_hz = draw_field(d, 4000, 96000), c.channels = draw_field(d, 1, 3);
    const int channels = c.channels ? c.channels : 1;
    op->in_floats = channels > 0 && channels < 100 ? (size_t)op->n * (size_t)channels : 0;
    signal_op_gives(op, OP_F32, (int64_t)op->in_floats);
    return wt_normalize_create(device, &c, (wt_normalize **)&op->plan);
}

// ---- voices

static int few_channels(int channels, int most) { return channels > 0 && channels <= most ? channels : 0; }

static wt_status create_agc(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_agc_config c = {.rate_hz = draw_field(d, 8000, 96000), .channels = draw_field(d, 1, 5)};
    c.target_db = draw_real(d, -40, -3), c.max_gain_db = draw_real(d, 0, 60), c.min_gain_db = draw_real(d, -60, 0);
    c.gate_db = draw_real(d, -80, -20), c.rise_db_per_s = draw_real(d, 1, 100), c.fall_db_per_s = draw_real(d, 1, 100);
    op->in_floats = (size_t)op->n * (size_t)few_channels(c.channels ? c.channels : 2, 64);
    signal_op_gives(op, OP_F32, (int64_t)op->in_floats);
    return wt_agc_plan_create(device, &c, op->n_signals, (wt_agc_plan **)&op->plan);
}

static wt_status create_denoise(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_denoise_plan_config c = {.n_signals = op->n_signals, .max_frames = op->n};
    c.denoise = (wt_denoise_config){.rate_hz = draw_field(d, 8000, 48000), .channels = draw_field(d, 1, 3)};
    c.denoise.mode = (wt_denoise_mode)draw_below(d, d->wild ? 4 : 3), c.denoise.stationary = draw_bool(d);
    c.denoise.latency_ms = draw_real(d, 2, 30), c.denoise.frame_ms = draw_bool(d) ? draw_real(d, 30, 60) : 0;
    c.denoise.max_cut_db = draw_real(d, 1, 100), c.denoise.gate_db = draw_real(d, 0, 40);
    c.denoise.low_cut_hz = draw_real(d, -1, 300);
    op->in_floats = (size_t)op->n * (size_t)few_channels(c.denoise.channels ? c.denoise.channels : 2, 64);
    signal_op_gives(op, OP_F32, (int64_t)op->in_floats);
    return wt_denoise_plan_create(device, &c, (wt_denoise_plan **)&op->plan);
}

static wt_status create_echo(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_echo_plan_config c = {.echo = {.rate_hz = draw_field(d, 8000, 48000)}, op->n_signals, op->n};
    c.echo.tail_ms = 10 + draw_real(d, 0, 60), c.echo.latency_ms = draw_real(d, 2, 20);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_echo_plan_create(device, &c, (wt_echo_plan **)&op->plan);
}

// ---- filters and rates

static wt_status draw_sections(draws *d, double *sos, int *n_sections)
{
    wt_sos_design_config c = {.family = (wt_filter_family)draw_below(d, d->wild ? 6 : 5), .order = draw_size(d, 1, 8)};
    c.band = (wt_filter_band)draw_below(d, d->wild ? 5 : 4);
    c.edge_hz[0] = 0.05 + draw_real(d, 0, 0.4), c.edge_hz[1] = c.edge_hz[0] + 0.02 + draw_real(d, 0, 0.5);
    c.ripple_db = draw_real(d, 0.1, 3), c.attenuation_db = draw_real(d, 20, 80);
    return wt_sos_design(&c, sos, n_sections);
}

static wt_status create_sos(wt_device *device, made_op *op)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_config c = {.sos = sos[0]};
    wt_status status = draw_sections(op->draws, sos[0], &c.n_sections);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return status ? status : wt_sos_rows_create(device, &c, op->n_signals, op->n, (wt_sos_rows **)&op->plan);
}

static wt_status create_filtfilt(wt_device *device, made_op *op)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    wt_sos_config c = {.sos = sos[0]};
    wt_status status = draw_sections(op->draws, sos[0], &c.n_sections);
    const int pad = draw_below(op->draws, 3) ? -1 : draw_size(op->draws, 1, 100);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return status ? status : wt_filtfilt_create(device, &c, pad, op->n_signals, op->n, (wt_filtfilt **)&op->plan);
}

static wt_status create_savgol(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    const wt_savgol_config c = {
        .n_taps = draw_size(d, 1, 99) | 1, .order = draw_below(d, 6), .derivative = draw_below(d, 4)};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_savgol_rows_create(device, &c, op->n_signals, op->n, (wt_savgol_rows **)&op->plan);
}

static wt_status create_convolve(wt_device *device, made_op *op)
{
    enum { MOST = 3000 };
    float taps[MOST];
    for (int k = 0; k < MOST; k++) taps[k] = (float)draw_below(op->draws, 2001) / 1e4f - 0.1f;
    const wt_overlap_save_config c = {.taps = taps, .n_taps = draw_size(op->draws, 1, MOST)};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, (int64_t)op->n + c.n_taps - 1);
    return wt_convolve_create(device, &c, op->n_signals, op->n, (wt_convolve **)&op->plan);
}

static wt_status create_resample(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_resample_plan_config c = {.n_lines = op->n_signals, .n_in = op->n, .in_hz = 1000 + draw_size(d, 1, 20000)};
    c.out_hz = draw_below(d, 3) ? 1000 + draw_size(d, 1, 20000) : c.in_hz / (1 + draw_below(d, 9));
    c.quality = (wt_resample_quality)draw_below(d, d->wild ? 5 : 4);
    if (d->wild) c.out_hz = draw_field(d, 1, 100000);
    wt_status status = wt_resample_plan_create(device, &c, (wt_resample_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_resample_plan_out_frames(op->plan));
    return status;
}

static wt_status create_pcm(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    const wt_pcm_plan_config c = {WT_PCM_F32, draw_size(d, 1, 5), op->n, op->n_signals, draw_bool(d)};
    op->in_floats = (size_t)op->n * (size_t)c.channels;
    signal_op_gives(op, OP_F32, (int64_t)op->n * (c.fold ? 1 : c.channels));
    return wt_pcm_plan_create(device, &c, (wt_pcm_plan **)&op->plan);
}

// ---- stretch and shift

static wt_status create_stretch(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_stretch_config c = {.n_samples = op->n, .n_signals = op->n_signals, .rate = draw_real(d, 0.3, 4)};
    c.mode = (wt_stretch_mode)draw_below(d, d->wild ? 5 : 4), c.n_fft = draw_field(d, 16, 2500);
    const int n_fft = c.n_fft > 0 && c.n_fft < 5000 ? c.n_fft : 2048;
    c.hop = draw_field(d, n_fft / 8 + 1, n_fft);
    wt_status status = wt_stretch_create(device, &c, (wt_stretch **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_stretch_n_out(op->plan));
    return status;
}

static wt_status create_shift(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_pitch_shift_config c = {.n_samples = op->n, .n_signals = op->n_signals, .n_steps = draw_real(d, -24, 24)};
    c.rate_hz = draw_real(d, 4000, 48000), c.bins_per_octave = draw_field(d, 6, 36), c.scale = draw_bool(d);
    c.mode = (wt_stretch_mode)draw_below(d, d->wild ? 5 : 4), c.n_fft = draw_field(d, 64, 2500);
    const int n_fft = c.n_fft > 0 && c.n_fft < 5000 ? c.n_fft : 2048;
    c.hop = draw_field(d, n_fft / 8 + 1, n_fft / 2), c.keep_formants = draw_bool(d);
    c.formant_order = draw_field(d, 1, 60);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_pitch_shift_create(device, &c, (wt_pitch_shift **)&op->plan);
}

// ---- the table; n: the most that is drawn

static const signal_op rows[] = {
    {ROW("level", 4000, level, level_plan), RUN(level_plan)},
    {ROW("silence", 4000, silence, silence), RUN(silence)},
    {.name = "vad", .n = 4000, .create = create_vad, .destroy = op_destroy_vad_plan, .enqueue = op_enqueue_vad},
    {ROW("loudness", 6000, loudness, loudness_batch), RUN(loudness_batch)},
    {ROW("normalize", 6000, normalize, normalize), RUN(normalize)},
    {ROW("agc", 3000, agc, agc_plan), RUN(agc)},
    {ROW("denoise", 3000, denoise, denoise_plan), RUN(denoise)},
    {ROW("echo", 2000, echo, echo_plan), RUN(echo)},
    {ROW("sections", 3000, sos, sos_rows), RUN(sos_rows)},
    {ROW("forward and backward", 3000, filtfilt, filtfilt), RUN(filtfilt)},
    {ROW("savgol", 1000, savgol, savgol_rows), RUN(savgol_rows)},
    {ROW("convolution", 3000, convolve, convolve), RUN(convolve)},
    {ROW("resample", 2000, resample, resample_plan), RUN(resample_plan)},
    {ROW("pcm", 1000, pcm, pcm_plan), RUN(pcm_plan)},
    {ROW("stretch", 3000, stretch, stretch), RUN(stretch)},
    {ROW("pitch shift", 3000, shift, pitch_shift), RUN(pitch_shift)},
};

const signal_op_table drawn_ops_samples = {rows, sizeof rows / sizeof *rows};
