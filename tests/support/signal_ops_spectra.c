// Short-time spectra, what is made of them, and rows of bands.
#include "signal_op_rows.h"

#include <warptone/db.h>
#include <warptone/delta.h>
#include <warptone/fft.h>
#include <warptone/griffin_lim.h>
#include <warptone/mel_inverse.h>
#include <warptone/mfcc.h>
#include <warptone/pcen.h>
#include <warptone/reassigned.h>
#include <warptone/spectral.h>
#include <warptone/stft_stream.h>

static const wt_stft_config stft = {.n_fft = N_FFT, .hop = HOP};

// ---- short-time spectra

static wt_status make_stft(wt_device *device, made_op *op, wt_stft_output output)
{
    const wt_stft_plan_config config = {
        .stft = stft, .n_samples = op->n, .n_signals = op->n_signals, .output = output, .length = op->n};
    wt_status status = wt_stft_plan_create(device, &config, (wt_stft_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status)
        signal_op_gives(op, OP_F32, wt_stft_plan_frames(op->plan) * BINS * (output == WT_STFT_COMPLEX ? 2 : 1));
    return status;
}

static wt_status create_stft(wt_device *device, made_op *op) { return make_stft(device, op, WT_STFT_COMPLEX); }
static wt_status create_magnitude(wt_device *device, made_op *op) { return make_stft(device, op, WT_STFT_MAGNITUDE); }
static wt_status create_power(wt_device *device, made_op *op) { return make_stft(device, op, WT_STFT_POWER); }
static wt_status create_phase(wt_device *device, made_op *op) { return make_stft(device, op, WT_STFT_PHASE); }

static wt_status create_istft(wt_device *device, made_op *op)
{
    const wt_stft_plan_config config = {
        .stft = stft, .n_samples = (int64_t)HOP * (op->n - 1), .n_signals = op->n_signals, .n_frames = op->n};
    wt_status status = wt_stft_plan_create(device, &config, (wt_stft_plan **)&op->plan);
    op->in_floats = (size_t)op->n * BINS * 2;
    if (!status) signal_op_gives(op, OP_F32, wt_stft_plan_length(op->plan));
    return status;
}

static wt_status create_stft_stream(wt_device *device, made_op *op)
{
    const wt_stft_stream_plan_config config = {.stft = stft, .n_signals = op->n_signals, .max_samples = op->n};
    wt_status status = wt_stft_stream_plan_create(device, &config, (wt_stft_stream_plan **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, (int64_t)wt_stft_stream_plan_frames(op->plan, op->n) * BINS * 2);
    return status;
}

static wt_status create_fft(wt_device *device, made_op *op)
{
    const wt_fft_config config = {.n = op->n, .batch = op->n_signals, .kind = WT_FFT_REAL_TO_COMPLEX};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, 2 * (op->n / 2 + 1));
    return wt_fft_create(device, &config, (wt_fft **)&op->plan);
}

static wt_status create_reassigned(wt_device *device, made_op *op)
{
    const wt_reassigned_config config = {.stft = stft, .n_samples = op->n, .n_signals = op->n_signals};
    wt_status status = wt_reassigned_create(device, &config, (wt_reassigned **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_reassigned_frames(op->plan) * BINS * 3);
    return status;
}

// ---- mel

static wt_mel_config mel_config(const made_op *op, wt_mel_scale scale)
{
    return (wt_mel_config){
        .n_samples = op->n, .n_signals = op->n_signals, .stft = stft, .bank = {.n_mels = BANDS}, .scale = scale};
}

static wt_status make_mel(wt_device *device, made_op *op, const wt_mel_config *config)
{
    wt_status status = wt_mel_create(device, config, (wt_mel **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_mel_frames(op->plan) * wt_mel_bands(op->plan));
    return status;
}

static wt_status create_mel(wt_device *device, made_op *op)
{
    const wt_mel_config config = mel_config(op, WT_MEL_LINEAR);
    return make_mel(device, op, &config);
}

static wt_status create_logmel(wt_device *device, made_op *op)
{
    const wt_mel_config config = mel_config(op, WT_MEL_DB);
    return make_mel(device, op, &config);
}

static wt_status create_whisper(wt_device *device, made_op *op)
{
    wt_mel_config config = wt_mel_whisper(80, op->n);
    config.n_signals = op->n_signals;
    return make_mel(device, op, &config);
}

static wt_status create_mfcc(wt_device *device, made_op *op)
{
    const wt_mfcc_config config = {.mel = mel_config(op, WT_MEL_DB), .n_mfcc = 13};
    wt_status status = wt_mfcc_create(device, &config, (wt_mfcc **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_mfcc_frames(op->plan) * 13);
    return status;
}

static wt_status create_mel_inverse(wt_device *device, made_op *op)
{
    const wt_mel_inverse_config config = {
        .bank = {.n_fft = N_FFT, .n_mels = BANDS}, .n_frames = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n * BANDS;
    signal_op_gives(op, OP_F32, (int64_t)op->n * BINS);
    return wt_mel_inverse_create(device, &config, (wt_mel_inverse **)&op->plan);
}

static wt_status create_either_griffin_lim(wt_device *device, made_op *op, bool in_float)
{
    const wt_griffin_lim_config config = {
        .stft = stft, .n_frames = op->n, .n_signals = op->n_signals, .n_iter = 2, .seed = 7, .in_float = in_float};
    wt_status status = wt_griffin_lim_create(device, &config, (wt_griffin_lim **)&op->plan);
    op->in_floats = (size_t)op->n * BINS;
    if (!status) signal_op_gives(op, OP_F32, wt_griffin_lim_length(op->plan));
    return status;
}

static wt_status create_griffin_lim(wt_device *device, made_op *op)
{
    return create_either_griffin_lim(device, op, false);
}

static wt_status create_griffin_lim_float(wt_device *device, made_op *op)
{
    return create_either_griffin_lim(device, op, true);
}

// ---- rows of bands

static wt_status create_db(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_db_create(device, NULL, false, op->n_signals, op->n, (wt_db **)&op->plan);
}

static wt_status create_delta(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n * 4;
    signal_op_gives(op, OP_F32, (int64_t)op->n * 4);
    return wt_delta_create(device, NULL, 4 * (int64_t)op->n_signals, op->n, (wt_delta **)&op->plan);
}

static wt_status create_pcen(wt_device *device, made_op *op)
{
    const wt_pcen_config config = wt_pcen_defaults();
    op->in_floats = (size_t)op->n * BANDS;
    signal_op_gives(op, OP_F32, (int64_t)op->n * BANDS);
    return wt_pcen_create(device, &config, op->n_signals, BANDS, op->n, (wt_pcen **)&op->plan);
}

// ---- shape of spectra

static wt_status make_spectral(wt_device *device, made_op *op, wt_spectral_kind kind)
{
    const wt_spectral_config config = {.kind = kind,
                                       .shape = {.n_fft = N_FFT, .n_frames = op->n},
                                       .n_signals = op->n_signals,
                                       .order = 2,
                                       .contrast = {.n_bands = 4}};
    wt_status status = wt_spectral_create(device, &config, (wt_spectral **)&op->plan);
    op->in_floats = (size_t)op->n * BINS;
    if (!status) signal_op_gives(op, OP_F32, (int64_t)op->n * wt_spectral_rows(op->plan));
    return status;
}

#define SPECTRAL(noun, kind)                                                                                           \
    static wt_status create_##noun(wt_device *device, made_op *op) { return make_spectral(device, op, kind); }
SPECTRAL(centroid, WT_SPECTRAL_CENTROID)
SPECTRAL(bandwidth, WT_SPECTRAL_BANDWIDTH)
SPECTRAL(rolloff, WT_SPECTRAL_ROLLOFF)
SPECTRAL(flatness, WT_SPECTRAL_FLATNESS)
SPECTRAL(flux, WT_SPECTRAL_FLUX)
SPECTRAL(spectral_rms, WT_SPECTRAL_RMS)
SPECTRAL(polynomial, WT_SPECTRAL_POLYNOMIAL)
SPECTRAL(contrast, WT_SPECTRAL_CONTRAST)

// ---- the table

static const signal_op rows[] = {
    {ROW("stft", SAMPLES, stft, stft_plan), RUN(stft), .frame_rows = 2 * BINS},
    {ROW("stft, magnitudes", SAMPLES, magnitude, stft_plan), RUN(stft), .frame_rows = BINS},
    {ROW("stft, powers", SAMPLES, power, stft_plan), RUN(stft), .frame_rows = BINS},
    {ROW("stft, phases", SAMPLES, phase, stft_plan), RUN(stft), .frame_rows = BINS},
    {ROW("istft", FRAMES, istft, stft_plan), RUN(istft)},
    {ROW("stft of a stream", SAMPLES, stft_stream, stft_stream_plan), RUN(stft_stream), .frame_rows = 2 * BINS},
    {ROW("fft", 4000, fft, fft), RUN(fft), .nan = OP_NAN_WHOLE},
    {ROW("reassigned", SAMPLES, reassigned, reassigned), RUN(reassigned), .frame_rows = BINS, .nan_in_silence = true,
     .band_rows = 3},
    {ROW("mel", SAMPLES, mel, mel), RUN(mel), .band_rows = BANDS},
    {ROW("log-mel", SAMPLES, logmel, mel), RUN(mel), .band_rows = BANDS},
    {ROW("whisper", SAMPLES, whisper, mel), RUN(mel), .band_rows = 80},
    {ROW("mfcc", SAMPLES, mfcc, mfcc), RUN(mfcc), .band_rows = 13},
    {ROW("mel inverse", 9, mel_inverse, mel_inverse), RUN(mel_inverse), .magnitudes = true, .band_rows = BINS,
     .bands_in = true, .nan = OP_NAN_NONE},
    {ROW("griffin-lim", FRAMES, griffin_lim, griffin_lim), RUN(griffin_lim), .magnitudes = true},
    {ROW("griffin-lim in float", FRAMES, griffin_lim_float, griffin_lim), RUN(griffin_lim), .magnitudes = true},
    {ROW("decibels", 4000, db, db), RUN(db), .magnitudes = true},
    {ROW("delta", FRAMES, delta, delta), RUN(delta), .band_rows = 4, .bands_in = true},
    {ROW("pcen", FRAMES, pcen, pcen), RUN(pcen), .magnitudes = true, .nan = OP_NAN_ONWARD, .band_rows = BANDS,
     .bands_in = true},
    {ROW("centroid", FRAMES, centroid, spectral), RUN(spectral), .magnitudes = true},
    {ROW("bandwidth", FRAMES, bandwidth, spectral), RUN(spectral), .magnitudes = true},
    {ROW("roll-off", FRAMES, rolloff, spectral), RUN(spectral), .magnitudes = true},
    {ROW("flatness", FRAMES, flatness, spectral), RUN(spectral), .magnitudes = true},
    {ROW("flux", FRAMES, flux, spectral), RUN(spectral), .magnitudes = true},
    {ROW("rms of spectra", FRAMES, spectral_rms, spectral), RUN(spectral), .magnitudes = true},
    {ROW("polynomial", FRAMES, polynomial, spectral), RUN(spectral), .magnitudes = true, .band_rows = 3},
    {ROW("contrast", FRAMES, contrast, spectral), RUN(spectral), .magnitudes = true, .band_rows = 5},
};

const signal_op_table signal_ops_spectra = {rows, sizeof rows / sizeof *rows};
