// Ops of spectra and bands, pitch and rhythm, with drawn settings.
#include "draws.h"
#include "signal_op_rows.h"

#include <warptone/autocorrelate.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/decompose.h>
#include <warptone/delta.h>
#include <warptone/fft.h>
#include <warptone/griffin_lim.h>
#include <warptone/hpss.h>
#include <warptone/icqt.h>
#include <warptone/median.h>
#include <warptone/mel_inverse.h>
#include <warptone/mfcc.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/pcen.h>
#include <warptone/pitch.h>
#include <warptone/reassigned.h>
#include <warptone/spectral.h>
#include <warptone/stft_stream.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>

static int64_t bins_of(const wt_stft_config *c) { return (c->n_fft ? c->n_fft : 2048) / 2 + 1; }
static int channels_of(const wt_stft_config *c) { return c->channels ? c->channels : 1; }

// ---- short-time spectra

static wt_status create_fft(wt_device *device, made_op *op)
{
    wt_fft_config c = {.n = op->n, .batch = op->n_signals};
    c.kind = (wt_fft_kind)draw_below(op->draws, op->draws->wild ? 4 : 3);
    c.inverse = draw_bool(op->draws) && c.kind == WT_FFT_COMPLEX;
    const int bins = op->n / 2 + 1;
    op->in_floats = (size_t)(c.kind == WT_FFT_COMPLEX           ? 2 * op->n
                             : c.kind == WT_FFT_REAL_TO_COMPLEX ? op->n
                                                                : 2 * bins);
    signal_op_gives(op, OP_F32,
                    c.kind == WT_FFT_COMPLEX           ? 2 * op->n
                    : c.kind == WT_FFT_REAL_TO_COMPLEX ? 2 * bins
                                                       : op->n);
    return wt_fft_create(device, &c, (wt_fft **)&op->plan);
}

static wt_status create_stft(wt_device *device, made_op *op)
{
    wt_stft_plan_config c = {.stft = draw_stft(op->draws), .n_samples = op->n, .n_signals = op->n_signals};
    c.output = (wt_stft_output)draw_below(op->draws, op->draws->wild ? 5 : 4);
    wt_status status = wt_stft_plan_create(device, &c, (wt_stft_plan **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)channels_of(&c.stft);
    if (!status)
        signal_op_gives(op, OP_F32,
                        wt_stft_plan_frames(op->plan) * bins_of(&c.stft) * channels_of(&c.stft) *
                            (c.output == WT_STFT_COMPLEX ? 2 : 1));
    return status;
}

static wt_status create_istft(wt_device *device, made_op *op)
{
    wt_stft_plan_config c = {.stft = draw_stft(op->draws), .n_signals = op->n_signals, .n_frames = op->n};
    const int hop = c.stft.hop > 0 ? c.stft.hop : 100;
    c.n_samples = c.length = hop < 1 << 20 ? (int64_t)hop * op->n + draw_below(op->draws, hop) : 1;
    wt_status status = wt_stft_plan_create(device, &c, (wt_stft_plan **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)(bins_of(&c.stft) * 2 * channels_of(&c.stft));
    if (!status) signal_op_gives(op, OP_F32, wt_stft_plan_length(op->plan) * channels_of(&c.stft));
    return status;
}

static wt_status create_stft_stream(wt_device *device, made_op *op)
{
    const wt_stft_stream_plan_config c = {
        .stft = draw_stft(op->draws), .n_signals = op->n_signals, .max_samples = op->n};
    wt_status status = wt_stft_stream_plan_create(device, &c, (wt_stft_stream_plan **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)channels_of(&c.stft);
    if (!status)
        signal_op_gives(op, OP_F32,
                        (int64_t)wt_stft_stream_plan_frames(op->plan, op->n) * bins_of(&c.stft) * 2 *
                            channels_of(&c.stft));
    return status;
}

static wt_status create_reassigned(wt_device *device, made_op *op)
{
    wt_reassigned_config c = {.stft = draw_stft(op->draws), .n_samples = op->n, .n_signals = op->n_signals};
    c.stft.channels = op->draws->wild ? c.stft.channels : 1;
    c.rate_hz = draw_field(op->draws, 1, 48000), c.ref_power = draw_real(op->draws, 0, 1);
    c.keep_all = draw_bool(op->draws), c.fill_nan = draw_bool(op->draws), c.no_clip = draw_bool(op->draws);
    wt_status status = wt_reassigned_create(device, &c, (wt_reassigned **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_reassigned_frames(op->plan) * bins_of(&c.stft) * 3);
    return status;
}

// ---- mel

static wt_mel_bank_config draw_bank(draws *d)
{
    wt_mel_bank_config c = {.rate_hz = draw_field(d, 100, 48000), .n_mels = draw_field(d, 1, 150)};
    const double half = c.rate_hz > 0 ? c.rate_hz / 2.0 : 11025;
    c.fmin_hz = draw_bool(d) ? draw_real(d, 0, half / 3) : 0,
    c.fmax_hz = draw_bool(d) ? draw_real(d, half / 2, half) : 0;
    c.htk = draw_bool(d), c.norm = (wt_mel_norm)draw_below(d, d->wild ? 6 : 5);
    return c;
}

static wt_mel_config draw_mel(const made_op *op)
{
    draws *d = op->draws;
    wt_mel_config c = {.n_samples = op->n, .n_signals = op->n_signals, .stft = draw_stft(d), .bank = draw_bank(d)};
    if (draw_bool(d)) c.power = draw_real(d, 0.5, 3);
    c.scale = (wt_mel_scale)draw_below(d, d->wild ? 4 : 3);
    c.db = (wt_db_config){.ref = draw_real(d, 1e-3, 10), .top_db = draw_real(d, 1, 100), .no_top = draw_bool(d)};
    c.db.reference = (wt_db_reference)draw_below(d, d->wild ? 4 : 2);
    c.frames_first = draw_bool(d), c.drop_last = draw_bool(d);
    return c;
}

static wt_status create_mel(wt_device *device, made_op *op)
{
    const wt_mel_config c = draw_mel(op);
    wt_status status = wt_mel_create(device, &c, (wt_mel **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)channels_of(&c.stft);
    if (!status) signal_op_gives(op, OP_F32, wt_mel_frames(op->plan) * wt_mel_bands(op->plan) * channels_of(&c.stft));
    return status;
}

static wt_status create_mfcc(wt_device *device, made_op *op)
{
    wt_mfcc_config c = {.mel = draw_mel(op)};
    const int bands = c.mel.bank.n_mels > 0 && c.mel.bank.n_mels < 1000 ? c.mel.bank.n_mels : 128;
    c.n_mfcc = draw_field(op->draws, 1, bands), c.dct_type = draw_below(op->draws, op->draws->wild ? 5 : 4);
    c.no_norm = draw_bool(op->draws), c.lifter = draw_bool(op->draws) ? draw_real(op->draws, 1, 40) : 0;
    wt_status status = wt_mfcc_create(device, &c, (wt_mfcc **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)channels_of(&c.mel.stft);
    if (!status)
        signal_op_gives(op, OP_F32, wt_mfcc_frames(op->plan) * (c.n_mfcc ? c.n_mfcc : 20) * channels_of(&c.mel.stft));
    return status;
}

static wt_status create_mel_inverse(wt_device *device, made_op *op)
{
    wt_mel_inverse_config c = {.bank = draw_bank(op->draws), .n_signals = op->n_signals};
    c.n_frames = op->n > 2 ? 2 : op->n;
    c.bank.n_fft = draw_field(op->draws, 2, 200), c.power = draw_real(op->draws, 1, 2);
    if (c.bank.n_fft < 1 || c.bank.n_fft > 300) c.bank.n_fft = 64;
    const int bands = c.bank.n_mels ? c.bank.n_mels : 128;
    op->in_floats = bands > 0 && bands < 1000 ? (size_t)(c.n_frames * bands) : 0;
    signal_op_gives(op, OP_F32, c.n_frames * (c.bank.n_fft / 2 + 1));
    return wt_mel_inverse_create(device, &c, (wt_mel_inverse **)&op->plan);
}

static wt_status create_griffin_lim(wt_device *device, made_op *op)
{
    wt_griffin_lim_config c = {.stft = draw_stft(op->draws), .n_frames = op->n, .n_signals = op->n_signals};
    c.n_iter = 1 + draw_below(op->draws, 10), c.momentum = draw_real(op->draws, 0, 1);
    c.in_float = draw_bool(op->draws), c.no_momentum = draw_bool(op->draws), c.zero_phase = draw_bool(op->draws);
    c.seed = (uint64_t)draw_below(op->draws, 1000);
    const int n_fft = c.stft.n_fft ? c.stft.n_fft : 2048;
    const int hop = c.stft.hop ? c.stft.hop : (c.stft.win_length ? c.stft.win_length : n_fft) / 4;
    if (draw_below(op->draws, 2) && hop > 0 && hop < 10000 && n_fft > 0 && n_fft < 10000)
        c.length = (int64_t)hop * (op->n - 1) + draw_below(op->draws, hop) + (c.stft.no_center ? n_fft : n_fft % 2);
    wt_status status = wt_griffin_lim_create(device, &c, (wt_griffin_lim **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)(bins_of(&c.stft) * channels_of(&c.stft));
    if (!status) signal_op_gives(op, OP_F32, wt_griffin_lim_length(op->plan) * channels_of(&c.stft));
    return status;
}

// ---- rows of bands, shapes of spectra

static wt_status create_delta(wt_device *device, made_op *op)
{
    wt_delta_config c = {.width = draw_field(op->draws, 3, 41) | !op->draws->wild,
                         .order = draw_field(op->draws, 1, 3)};
    if (c.width == 1) c.width = 0;
    c.mode = (wt_delta_mode)draw_below(op->draws, op->draws->wild ? 6 : 5), c.constant = draw_real(op->draws, 0, 1);
    op->in_floats = (size_t)op->n * 3;
    signal_op_gives(op, OP_F32, (int64_t)op->n * 3);
    return wt_delta_create(device, &c, 3 * (int64_t)op->n_signals, op->n, (wt_delta **)&op->plan);
}

static wt_status create_pcen(wt_device *device, made_op *op)
{
    wt_pcen_config c = wt_pcen_defaults();
    const int rows = draw_size(op->draws, 1, 50);
    c.rate_hz = draw_field(op->draws, 1000, 48000), c.hop = draw_field(op->draws, 1, 1000);
    c.gain = draw_real(op->draws, 0.1, 1), c.bias = draw_real(op->draws, 0.1, 4),
    c.power = draw_real(op->draws, 0.1, 1);
    c.max_size = draw_field(op->draws, 1, rows);
    op->in_floats = (size_t)op->n * (size_t)rows;
    signal_op_gives(op, OP_F32, (int64_t)op->n * rows);
    return wt_pcen_create(device, &c, op->n_signals, rows, op->n, (wt_pcen **)&op->plan);
}

static wt_status create_spectral(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_spectral_config c = {.kind = (wt_spectral_kind)draw_below(d, d->wild ? 10 : 9), .n_signals = op->n_signals};
    c.shape = (wt_spectral_shape){draw_field(d, 8000, 48000), draw_field(d, 2, 1000), op->n};
    c.p = draw_real(d, 1, 4), c.no_norm = draw_bool(d), c.percent = draw_real(d, 0.01, 1);
    c.power = draw_real(d, 0.5, 3), c.amin = draw_real(d, 1e-12, 1e-3), c.order = draw_below(d, d->wild ? 13 : 4);
    c.contrast =
        (wt_spectral_contrast_config){draw_real(d, 10, 300), draw_field(d, 1, 6), draw_real(d, 0.01, 1), draw_bool(d)};
    wt_status status = wt_spectral_create(device, &c, (wt_spectral **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)((c.shape.n_fft ? c.shape.n_fft : 2048) / 2 + 1);
    if (!status) signal_op_gives(op, OP_F32, (int64_t)op->n * wt_spectral_rows(op->plan));
    return status;
}

// ---- constant Q, chroma, separation

static wt_cqt_config draw_cqt(const made_op *op)
{
    draws *d = op->draws;
    wt_cqt_config c = {.kind = (wt_cqt_kind)draw_below(d, d->wild ? 4 : 3), .channels = op->n_signals};
    c.hop = draw_field(d, 16, 1000), c.n_bins = draw_size(d, 1, 40), c.bins_per_octave = draw_field(d, 1, 36);
    c.fmin_hz = 100 + draw_real(d, 0, 400), c.tuning = draw_real(d, -0.5, 0.5), c.gamma_hz = draw_real(d, 0, 30);
    c.filter_scale = draw_real(d, 0.3, 1.5), c.norm = (wt_cqt_norm)draw_below(d, d->wild ? 5 : 4);
    c.sparsity = draw_real(d, 0, 0.5), c.no_scale = draw_bool(d), c.magnitude = draw_bool(d),
    c.erb_gamma = draw_bool(d);
    c.pad = (wt_stft_pad)draw_below(d, d->wild ? 6 : 5);
    return c;
}

static wt_status create_cqt(wt_device *device, made_op *op)
{
    const wt_cqt_config c = draw_cqt(op);
    wt_status status = wt_cqt_create(device, &c, op->n, (wt_cqt **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status)
        signal_op_gives(op, OP_F32, wt_cqt_frames(op->plan, op->n) * c.n_bins * (c.magnitude || c.kind ? 1 : 2));
    return status;
}

static wt_status create_icqt(wt_device *device, made_op *op)
{
    wt_cqt_config c = draw_cqt(op);
    if (!op->draws->wild) c.kind = WT_CQT_FULL, c.gamma_hz = 0, c.erb_gamma = c.magnitude = false;
    wt_status status = wt_icqt_create(device, &c, op->n, (wt_icqt **)&op->plan);
    op->in_floats = (size_t)op->n * (size_t)c.n_bins * 2;
    if (!status) signal_op_gives(op, OP_F32, wt_icqt_samples(op->plan, op->n));
    return status;
}

static wt_status create_chroma(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_chroma_config c = {
        .rate_hz = draw_real(d, 1000, 48000), .n_fft = draw_field(d, 2, 800), .channels = op->n_signals};
    c.n_chroma = draw_field(d, 1, 40), c.tuning = draw_real(d, -0.5, 0.5), c.octave_width = draw_real(d, -1, 4);
    c.bank_norm = (wt_chroma_norm)draw_below(d, 4), c.norm = (wt_chroma_norm)draw_below(d, d->wild ? 5 : 4);
    c.begin_at_a = draw_bool(d);
    op->in_floats = (size_t)op->n * (size_t)((c.n_fft ? c.n_fft : 2048) / 2 + 1);
    wt_status status = wt_chroma_create(device, &c, (wt_chroma **)&op->plan);
    if (!status) signal_op_gives(op, OP_F32, (c.n_chroma ? c.n_chroma : 12) * (int64_t)op->n);
    return status;
}

static wt_status create_tonal(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_tonal_config c = {.kind = (wt_tonal_kind)draw_below(d, 3), .n_frames = op->n, .n_signals = op->n_signals};
    c.n_chroma = draw_field(d, 1, 24), c.smooth = draw_field(d, 1, 50), c.norm = (wt_chroma_norm)draw_below(d, 4);
    c.fold = (wt_chroma_cqt_config){
        .n_bins = draw_field(d, 1, 300), .bins_per_octave = 36, .n_chroma = draw_field(d, 1, 36)};
    const int width = c.kind == WT_TONAL_FOLD ? c.fold.n_bins ? c.fold.n_bins : 252 : c.n_chroma ? c.n_chroma : 12;
    const int rows = c.kind == WT_TONAL_TONNETZ ? 6
                     : c.kind == WT_TONAL_CENS  ? width
                     : c.fold.n_chroma          ? c.fold.n_chroma
                                                : 12;
    wt_status status = wt_tonal_create(device, &c, (wt_tonal **)&op->plan);
    op->in_floats = width > 0 ? (size_t)op->n * (size_t)width : 0;
    if (!status) signal_op_gives(op, OP_F32, (int64_t)op->n * rows);
    return status;
}

static wt_status create_tuning(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_tuning_config c = {.n_frames = op->n, .n_signals = op->n_signals};
    c.peaks = (wt_piptrack_config){.rate_hz = draw_real(d, 1000, 48000), .n_fft = draw_field(d, 2, 800)};
    c.peaks.fmin_hz = draw_real(d, 1, 300), c.peaks.threshold = draw_real(d, 0, 1);
    c.bins_per_octave = draw_field(d, 1, 60), c.resolution = draw_real(d, 0.001, 0.5);
    op->in_floats = (size_t)op->n * (size_t)((c.peaks.n_fft ? c.peaks.n_fft : 2048) / 2 + 1);
    signal_op_gives(op, OP_F64, 1);
    return wt_tuning_create(device, &c, (wt_tuning **)&op->plan);
}

static wt_status create_hpss(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_hpss_config c = {.bins = draw_size(d, 1, 300), .lines = op->n_signals};
    c.kernel_harmonic = draw_field(d, 1, 100), c.kernel_percussive = draw_field(d, 1, 100);
    c.power = (float)draw_real(d, 0.5, 4), c.margin_harmonic = (float)draw_real(d, 1, 5);
    c.margin_percussive = (float)draw_real(d, 1, 5), c.complex_in = draw_bool(d), c.give_masks = draw_bool(d);
    op->in_floats = (size_t)op->n * (size_t)c.bins * (c.complex_in ? 2 : 1);
    for (int k = 0; k < 2; k++)
        signal_op_gives(op, OP_F32, (int64_t)op->n * c.bins * (c.complex_in && !c.give_masks ? 2 : 1));
    return wt_hpss_create(device, &c, (wt_hpss **)&op->plan);
}

static wt_status create_median(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_median_config c = {.rows = op->n, .columns = draw_size(d, 1, 60), .lines = op->n_signals};
    c.kernel_rows = draw_field(d, 1, 80), c.kernel_columns = draw_field(d, 1, 80);
    op->in_floats = (size_t)op->n * (size_t)c.columns;
    signal_op_gives(op, OP_F32, (int64_t)op->n * c.columns);
    return wt_median_plan_create(device, &c, (wt_median_plan **)&op->plan);
}

static wt_status create_nn_filter(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_nn_filter_config c = {.rows = draw_size(d, 1, 40), .columns = op->n, .k = draw_field(d, 1, 20)};
    c.width = draw_field(d, 1, 10), c.cosine = draw_bool(d), c.symmetric = draw_bool(d), c.median = draw_bool(d);
    op->in_floats = (size_t)op->n * (size_t)c.rows;
    signal_op_gives(op, OP_F32, (int64_t)op->n * c.rows);
    return wt_nn_filter_plan_create(device, &c, op->n_signals, (wt_nn_filter_plan **)&op->plan);
}

static wt_status create_nmf(wt_device *device, made_op *op)
{
    wt_nmf_config c = {.rows = draw_size(op->draws, 1, 60), .columns = op->n, .n_signals = op->n_signals};
    c.n_components = draw_size(op->draws, 1, 12), c.n_iter = 1 + draw_below(op->draws, 4);
    c.solver = (wt_nmf_solver)draw_below(op->draws, op->draws->wild ? 4 : 3);
    op->in_floats = (size_t)c.rows * (size_t)op->n;
    signal_op_gives(op, OP_F32, (int64_t)c.rows * c.n_components);
    signal_op_gives(op, OP_F32, (int64_t)c.n_components * op->n);
    return wt_nmf_create(device, &c, (wt_nmf **)&op->plan);
}

// ---- pitch, onsets and beats

static wt_pitch_frames draw_frames(const made_op *op)
{
    draws *d = op->draws;
    wt_pitch_frames c = {.n_samples = op->n, .n_signals = op->n_signals, .rate_hz = draw_real(d, 4000, 48000)};
    const double rate = c.rate_hz > 0 && c.rate_hz < 1e6 ? c.rate_hz : 22050;
    c.frame_length = draw_field(d, 16, 2500);
    const int length = c.frame_length > 3 && c.frame_length < 5000 ? c.frame_length : 2048;
    c.fmin_hz = rate / (length / 2.0) + draw_real(d, 0, 100), c.fmax_hz = rate / 4 + draw_real(d, 0, rate / 4);
    c.hop = draw_field(d, length / 8 + 1, 2 * length), c.pad = (wt_stft_pad)draw_below(d, d->wild ? 6 : 5);
    c.no_center = draw_bool(d);
    return c;
}

static wt_status create_yin(wt_device *device, made_op *op)
{
    wt_yin_config c = {.frames = draw_frames(op)};
    c.trough_threshold = draw_real(op->draws, 0.01, 1);
    wt_status status = wt_yin_create(device, &c, (wt_yin **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_yin_n_frames(op->plan));
    return status;
}

static wt_status create_pyin(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_pyin_config c = {.frames = draw_frames(op), .n_thresholds = draw_field(d, 1, 120)};
    c.beta_a = draw_real(d, 1, 4), c.beta_b = draw_real(d, 1, 20), c.boltzmann = draw_real(d, 0.5, 4);
    c.resolution = draw_real(d, 0.2, 1), c.max_transition_rate = draw_real(d, 1, 60);
    c.switch_prob = draw_real(d, 0.001, 0.9), c.no_trough_prob = draw_real(d, 0.001, 0.9);
    c.keep_unvoiced = draw_bool(d), c.calibrated = draw_bool(d);
    wt_status status = wt_pyin_create(device, &c, (wt_pyin **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, 3 * wt_pyin_n_frames(op->plan));
    return status;
}

/// Of [f0, voiced, voiced_prob][n_signals][n_frames] the signal's own.
static void pick_pyin(const made_op *op, const void *result, int signal, void *own)
{
    const size_t n = (size_t)wt_pyin_n_frames(op->plan);
    for (size_t k = 0; k < 3; k++)
        memcpy((float *)own + k * n, (const float *)result + (k * (size_t)op->n_signals + (size_t)signal) * n, n * 4);
}

static wt_status create_autocorrelate(wt_device *device, made_op *op)
{
    const wt_autocorrelate_config c = {
        .n = op->n, .max_lags = draw_field(op->draws, 1, op->n > 1 ? op->n : 1), .n_signals = op->n_signals};
    wt_status status = wt_autocorrelate_create(device, &c, (wt_autocorrelate **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_autocorrelate_lags(op->plan));
    return status;
}

static wt_status create_onset(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_onset_config c = {.n_samples = op->n, .n_signals = op->n_signals, .rate_hz = draw_field(d, 1000, 48000)};
    c.n_fft = draw_field(d, 2, 2500);
    c.hop = draw_field(d, 40, 2000), c.n_mels = draw_field(d, 1, 150), c.lag = draw_field(d, 1, 10);
    c.max_size = draw_field(d, 1, 9), c.median = draw_bool(d), c.detrend = draw_bool(d), c.no_center = draw_bool(d);
    wt_status status = wt_onset_create(device, &c, (wt_onset **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_onset_n_frames(op->plan));
    return status;
}

static wt_status create_onsets(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_onsets_config c = {
        .n_frames = op->n, .n_signals = op->n_signals, .backtrack = draw_bool(d), .plain = draw_bool(d)};
    c.peaks = (wt_peak_config){draw_field(d, 1, 9), draw_size(d, 1, 9),  draw_field(d, 1, 20),
                               draw_size(d, 1, 20), draw_field(d, 1, 9), draw_real(d, 0, 0.3)};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_I32, op->n);
    signal_op_gives(op, OP_I32, 1);
    return wt_onsets_create(device, &c, (wt_onsets **)&op->plan);
}

static wt_status create_tempogram(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_tempogram_config c = {.n_frames = op->n, .n_signals = op->n_signals, .win_length = draw_field(d, 1, 500)};
    c.no_center = draw_bool(d), c.no_norm = draw_bool(d);
    wt_status status = wt_tempogram_create(device, &c, (wt_tempogram **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, (c.win_length ? c.win_length : 384) * wt_tempogram_rows(op->plan, op->n));
    return status;
}

static wt_tempo_config draw_tempo(draws *d)
{
    wt_tempo_config c = {.rate_hz = draw_real(d, 4000, 48000), .hop = draw_field(d, 100, 1000)};
    c.start_bpm = draw_real(d, 60, 200), c.std_bpm = draw_real(d, 0.2, 3), c.ac_size_s = draw_real(d, 1, 12);
    c.max_bpm = draw_real(d, 200, 400), c.fine = draw_bool(d);
    return c;
}

static wt_status create_tempo(wt_device *device, made_op *op)
{
    wt_tempo_config c = draw_tempo(op->draws);
    c.n_frames = op->n, c.n_signals = op->n_signals, c.frames = true;
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F64, 1);
    signal_op_gives(op, OP_F64, op->n);
    return wt_tempo_create(device, &c, (wt_tempo **)&op->plan);
}

static wt_status enqueue_tempo(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    wt_status status = wt_tempo_enqueue(op->plan, s, in, 0, out, op->at[0]);
    return status ? status : wt_tempo_enqueue_frames(op->plan, s, in, 0, out, op->at[1]);
}

static wt_status create_beat(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_beat_config c = {.tempo = draw_tempo(d), .max_frames = op->n, .n_signals = op->n_signals};
    c.bpm = draw_bool(d) ? draw_real(d, 30, 300) : 0, c.tightness = draw_real(d, 1, 400), c.no_trim = draw_bool(d);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F64, sizeof(wt_beats) / sizeof(double));
    signal_op_gives(op, OP_I32, op->n);
    return wt_beat_create(device, &c, (wt_beat **)&op->plan);
}

static wt_status create_plp(wt_device *device, made_op *op)
{
    draws *d = op->draws;
    wt_plp_config c = {.max_frames = op->n, .n_signals = op->n_signals, .win_length = draw_field(d, 8, 500)};
    c.rate_hz = draw_real(d, 4000, 48000), c.hop = draw_field(d, 100, 1000), c.min_bpm = draw_real(d, 20, 60);
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_plp_create(device, &c, (wt_plp **)&op->plan);
}

// ---- the table; n: the most that is drawn

static const signal_op rows[] = {
    {ROW("fft", 3000, fft, fft), RUN(fft)},
    {ROW("stft", 4000, stft, stft_plan), RUN(stft)},
    {ROW("istft", 12, istft, stft_plan), RUN(istft)},
    {ROW("stft of a stream", 4000, stft_stream, stft_stream_plan), RUN(stft_stream)},
    {ROW("reassigned", 1500, reassigned, reassigned), RUN(reassigned), .nan_in_silence = true},
    {ROW("mel", 4000, mel, mel), RUN(mel)},
    {ROW("mfcc", 4000, mfcc, mfcc), RUN(mfcc)},
    {ROW("mel inverse", 2, mel_inverse, mel_inverse), RUN(mel_inverse), .magnitudes = true},
    {ROW("griffin-lim", 40, griffin_lim, griffin_lim), RUN(griffin_lim), .magnitudes = true},
    {ROW("delta", 100, delta, delta), RUN(delta)},
    {ROW("pcen", 100, pcen, pcen), RUN(pcen), .magnitudes = true},
    {ROW("shapes of spectra", 30, spectral, spectral), RUN(spectral), .magnitudes = true, .nan_in_silence = true},
    {ROW("cqt", 4000, cqt, cqt), RUN(cqt)},
    {ROW("icqt", 12, icqt, icqt), RUN(icqt)},
    {ROW("chroma", 30, chroma, chroma), RUN(chroma), .magnitudes = true},
    {ROW("tonal", 60, tonal, tonal), RUN(tonal), .magnitudes = true},
    {ROW("tuning", 30, tuning, tuning), RUN(tuning), .magnitudes = true},
    {ROW("hpss", 80, hpss, hpss), RUN(hpss), .magnitudes = true},
    {ROW("median", 80, median, median_plan), RUN(median_plan)},
    {ROW("nearest neighbours", 60, nn_filter, nn_filter_plan), RUN(nn_filter_plan), .magnitudes = true},
    {ROW("nmf", 60, nmf, nmf), RUN(nmf), .magnitudes = true},
    {ROW("yin", 4000, yin, yin), RUN(yin)},
    {ROW("pyin", 4000, pyin, pyin), RUN(pyin), .nan_in_silence = true, .pick = pick_pyin},
    {ROW("autocorrelation", 3000, autocorrelate, autocorrelate), RUN(autocorrelate)},
    {ROW("onset strength", 4000, onset, onset), RUN(onset)},
    {ROW("onsets", 300, onsets, onsets), RUN(onsets), .magnitudes = true},
    {ROW("tempogram", 300, tempogram, tempogram), RUN(tempogram), .magnitudes = true},
    {ROW("tempo", 300, tempo, tempo), .enqueue = enqueue_tempo, .magnitudes = true},
    {ROW("beats", 600, beat, beat), RUN(beat), .magnitudes = true, .clear = op_clear_beats},
    {ROW("plp", 300, plp, plp), RUN(plp), .magnitudes = true},
};

const signal_op_table drawn_ops_spectra = {rows, sizeof rows / sizeof *rows};
