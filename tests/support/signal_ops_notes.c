// Constant-Q, chroma, separation, pitch, onsets and beats.
#include "signal_op_rows.h"

#include <warptone/autocorrelate.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/decompose.h>
#include <warptone/hpss.h>
#include <warptone/icqt.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/pitch.h>
#include <warptone/salience.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>

// ---- constant Q

static const wt_cqt_config constant_q = {.hop = 256, .fmin_hz = 220, .n_bins = 24};

static wt_status make_cqt(wt_device *device, made_op *op, wt_cqt_config config)
{
    config.channels = op->n_signals;
    wt_status status = wt_cqt_create(device, &config, op->n, (wt_cqt **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status)
        signal_op_gives(op, OP_F32, wt_cqt_frames(op->plan, op->n) * config.n_bins * (config.magnitude ? 1 : 2));
    return status;
}

static wt_status create_cqt(wt_device *device, made_op *op) { return make_cqt(device, op, constant_q); }

static wt_status create_vqt(wt_device *device, made_op *op)
{
    wt_cqt_config config = constant_q;
    config.erb_gamma = true, config.magnitude = true;
    return make_cqt(device, op, config);
}

static wt_status create_hybrid(wt_device *device, made_op *op)
{
    wt_cqt_config config = constant_q;
    config.kind = WT_CQT_HYBRID, config.magnitude = true;
    return make_cqt(device, op, config);
}

static wt_status create_icqt(wt_device *device, made_op *op)
{
    wt_cqt_config config = constant_q;
    config.channels = op->n_signals;
    wt_status status = wt_icqt_create(device, &config, op->n, (wt_icqt **)&op->plan);
    op->in_floats = (size_t)op->n * 24 * 2;
    if (!status) signal_op_gives(op, OP_F32, wt_icqt_samples(op->plan, op->n));
    return status;
}

static wt_status make_nsgt(wt_device *device, made_op *op)
{
    const wt_nsgt_config config = {.fmin_hz = 220, .slice = 4096, .n_slices = op->n, .channels = op->n_signals};
    return wt_nsgt_create(device, &config, (wt_nsgt **)&op->plan);
}

static int64_t nsgt_samples(const made_op *op) { return op->n < 1 ? 1 : 2048 * (int64_t)(op->n - 1) + 1; }

static wt_status create_nsgt(wt_device *device, made_op *op)
{
    wt_status status = make_nsgt(device, op);
    op->in_floats = (size_t)nsgt_samples(op);
    if (!status) signal_op_gives(op, OP_F32, 2 * wt_nsgt_coefficients(op->plan) / op->n_signals);
    return status;
}

/// Of each row [channels][slices][points] the signal's own slices.
static void pick_nsgt(const made_op *op, const void *result, int signal, void *own)
{
    float *to = own;
    for (int k = 0; k < wt_nsgt_n_rows(op->plan); k++) {
        const wt_nsgt_row row = wt_nsgt_get_row(op->plan, k);
        for (int slice = 0; slice < op->n; slice++, to += 2 * row.n_points)
            memcpy(to, (const float *)result + 2 * (row.offset + (signal * op->n + slice) * row.stride),
                   sizeof *to * 2 * (size_t)row.n_points);
    }
}

static wt_status enqueue_nsgt(const made_op *op, wt_stream *s, const wt_buffer *in, wt_buffer *out)
{
    return wt_nsgt_enqueue_forward(op->plan, s, in, 0, nsgt_samples(op), 0, out, 0);
}

// ---- chroma and what is like it

static wt_status create_chroma(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n * BINS;
    signal_op_gives(op, OP_F32, 12 * (int64_t)op->n);
    return wt_chroma_create(device, &(wt_chroma_config){.n_fft = N_FFT, .channels = op->n_signals},
                            (wt_chroma **)&op->plan);
}

static wt_status make_tonal(wt_device *device, made_op *op, wt_tonal_kind kind)
{
    const wt_tonal_config config = {.kind = kind, .n_frames = op->n, .n_signals = op->n_signals, .smooth = 9};
    op->in_floats = (size_t)op->n * (kind == WT_TONAL_FOLD ? 252 : 12);
    signal_op_gives(op, OP_F32, (int64_t)op->n * (kind == WT_TONAL_TONNETZ ? 6 : 12));
    return wt_tonal_create(device, &config, (wt_tonal **)&op->plan);
}

static wt_status create_fold(wt_device *device, made_op *op) { return make_tonal(device, op, WT_TONAL_FOLD); }
static wt_status create_cens(wt_device *device, made_op *op) { return make_tonal(device, op, WT_TONAL_CENS); }
static wt_status create_tonnetz(wt_device *device, made_op *op) { return make_tonal(device, op, WT_TONAL_TONNETZ); }

static wt_status make_tuning(wt_device *device, made_op *op)
{
    const wt_tuning_config config = {.peaks = {.n_fft = N_FFT}, .n_frames = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n * BINS;
    return wt_tuning_create(device, &config, (wt_tuning **)&op->plan);
}

static wt_status create_tuning(wt_device *device, made_op *op)
{
    signal_op_gives(op, OP_F64, 1);
    return make_tuning(device, op);
}

static wt_status create_piptrack(wt_device *device, made_op *op)
{
    signal_op_gives(op, OP_F32, (int64_t)op->n * BINS);
    signal_op_gives(op, OP_F32, (int64_t)op->n * BINS);
    return make_tuning(device, op);
}

static wt_status create_salience(wt_device *device, made_op *op)
{
    static const double harmonics[] = {1, 2, 3};
    double frequencies[BINS];
    for (int k = 0; k < BINS; k++) frequencies[k] = (double)k * RATE_HZ / N_FFT;
    op->in_floats = (size_t)op->n * BINS;
    signal_op_gives(op, OP_F32, (int64_t)op->n * BINS);
    return wt_salience_create(
        device,
        &(wt_salience_config){
            .n_bins = BINS, .frequencies = frequencies, .n_harmonics = 3, .harmonics = harmonics, .all_bins = true},
        (wt_salience **)&op->plan);
}

// ---- separation

static wt_status make_hpss(wt_device *device, made_op *op, bool complex_in)
{
    const wt_hpss_config config = {.bins = BINS, .lines = op->n_signals, .complex_in = complex_in};
    op->in_floats = (size_t)op->n * BINS * (complex_in ? 2 : 1);
    for (int k = 0; k < 2; k++) signal_op_gives(op, OP_F32, (int64_t)op->in_floats);
    return wt_hpss_create(device, &config, (wt_hpss **)&op->plan);
}

static wt_status create_hpss(wt_device *device, made_op *op) { return make_hpss(device, op, false); }
static wt_status create_hpss_complex(wt_device *device, made_op *op) { return make_hpss(device, op, true); }

static wt_status create_nmf(wt_device *device, made_op *op)
{
    const wt_nmf_config config = {
        .rows = 33, .columns = op->n, .n_components = 3, .n_iter = 5, .n_signals = op->n_signals};
    op->in_floats = 33 * (size_t)op->n;
    signal_op_gives(op, OP_F32, 33 * 3);
    signal_op_gives(op, OP_F32, 3 * (int64_t)op->n);
    return wt_nmf_create(device, &config, (wt_nmf **)&op->plan);
}

// ---- pitch

static wt_pitch_frames pitch_frames(const made_op *op)
{
    return (wt_pitch_frames){
        .fmin_hz = 100, .fmax_hz = 1000, .frame_length = 1024, .n_samples = op->n, .n_signals = op->n_signals};
}

static wt_status create_yin(wt_device *device, made_op *op)
{
    wt_status status = wt_yin_create(device, &(wt_yin_config){.frames = pitch_frames(op)}, (wt_yin **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_yin_n_frames(op->plan));
    return status;
}

static wt_status make_pyin(wt_device *device, made_op *op, bool calibrated)
{
    const wt_pyin_config config = {.frames = pitch_frames(op), .calibrated = calibrated, .resolution = 0.5};
    wt_status status = wt_pyin_create(device, &config, (wt_pyin **)&op->plan);
    op->in_floats = (size_t)op->n;
    for (int k = 0; k < 3 && !status; k++) signal_op_gives(op, OP_F32, wt_pyin_n_frames(op->plan));
    return status;
}

static wt_status create_pyin(wt_device *device, made_op *op) { return make_pyin(device, op, false); }
static wt_status create_calibrated(wt_device *device, made_op *op) { return make_pyin(device, op, true); }

static wt_status create_autocorrelate(wt_device *device, made_op *op)
{
    const wt_autocorrelate_config config = {.n = op->n, .n_signals = op->n_signals};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_autocorrelate_create(device, &config, (wt_autocorrelate **)&op->plan);
}

// ---- onsets and beats

static wt_status make_onset(wt_device *device, made_op *op, bool median)
{
    const wt_onset_config config = {
        .n_fft = N_FFT, .hop = HOP, .n_mels = BANDS, .median = median, .n_samples = op->n, .n_signals = op->n_signals};
    wt_status status = wt_onset_create(device, &config, (wt_onset **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, wt_onset_n_frames(op->plan));
    return status;
}

static wt_status create_onset(wt_device *device, made_op *op) { return make_onset(device, op, false); }
static wt_status create_onset_median(wt_device *device, made_op *op) { return make_onset(device, op, true); }

static wt_status create_onsets(wt_device *device, made_op *op)
{
    const wt_onsets_config config = {
        .peaks = wt_onset_peaks(RATE_HZ, 512), .n_frames = op->n, .n_signals = op->n_signals, .backtrack = true};
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_I32, op->n);
    signal_op_gives(op, OP_I32, 1);
    return wt_onsets_create(device, &config, (wt_onsets **)&op->plan);
}

static wt_status create_tempogram(wt_device *device, made_op *op)
{
    const wt_tempogram_config config = {.win_length = 64, .n_frames = op->n, .n_signals = op->n_signals};
    wt_status status = wt_tempogram_create(device, &config, (wt_tempogram **)&op->plan);
    op->in_floats = (size_t)op->n;
    if (!status) signal_op_gives(op, OP_F32, 64 * wt_tempogram_rows(op->plan, op->n));
    return status;
}

static wt_status make_tempo(wt_device *device, made_op *op, wt_tempo_config config, int64_t n_values)
{
    config.n_frames = op->n, config.n_signals = op->n_signals;
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F64, n_values);
    return wt_tempo_create(device, &config, (wt_tempo **)&op->plan);
}

static wt_status create_tempo(wt_device *device, made_op *op)
{
    return make_tempo(device, op, (wt_tempo_config){.hop = 512}, 1);
}

static wt_status create_tempo_fine(wt_device *device, made_op *op)
{
    return make_tempo(device, op, (wt_tempo_config){.fine = true}, 1);
}

static wt_status create_tempo_frames(wt_device *device, made_op *op)
{
    return make_tempo(device, op, (wt_tempo_config){.frames = true}, op->n);
}

static wt_status create_tempo_ratios(wt_device *device, made_op *op)
{
    op->in_floats = 384 * (size_t)op->n;
    signal_op_gives(op, OP_F32, WT_TEMPO_RATIOS * (int64_t)op->n);
    signal_op_gives(op, OP_F64, op->n);
    return wt_tempo_ratios_create(device, &(wt_tempo_ratios_config){.n_rows = (int64_t)op->n * op->n_signals},
                                  (wt_tempo_ratios **)&op->plan);
}

static wt_status create_beat(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F64, sizeof(wt_beats) / sizeof(double));
    signal_op_gives(op, OP_I32, op->n);
    return wt_beat_create(device, &(wt_beat_config){.max_frames = op->n, .n_signals = op->n_signals},
                          (wt_beat **)&op->plan);
}

static wt_status create_plp(wt_device *device, made_op *op)
{
    op->in_floats = (size_t)op->n;
    signal_op_gives(op, OP_F32, op->n);
    return wt_plp_create(device, &(wt_plp_config){.win_length = 128, .max_frames = op->n, .n_signals = op->n_signals},
                         (wt_plp **)&op->plan);
}

// ---- the table

// Constant-Q: octaves are halved in blocks of 4096 samples of each rate, which a NaN makes NaN whole.
static const signal_op rows[] = {
    {ROW("cqt", SAMPLES, cqt, cqt), RUN(cqt), .frame_rows = 48, .nan = OP_NAN_WHOLE},
    {ROW("vqt", SAMPLES, vqt, cqt), RUN(cqt), .frame_rows = 24, .nan = OP_NAN_WHOLE},
    {ROW("hybrid cqt", SAMPLES, hybrid, cqt), RUN(cqt), .frame_rows = 24, .nan = OP_NAN_WHOLE},
    {ROW("icqt", 2 * FRAMES, icqt, icqt), RUN(icqt)},
    {ROW("nsgt", 3, nsgt, nsgt), .enqueue = enqueue_nsgt, .nan = OP_NAN_WHOLE, .pick = pick_nsgt},
    {ROW("chroma", FRAMES, chroma, chroma), RUN(chroma), .magnitudes = true, .frame_rows = 12},
    {ROW("chroma of cqt", FRAMES, fold, tonal), RUN(tonal), .magnitudes = true, .frame_rows = 12},
    {ROW("cens", FRAMES, cens, tonal), RUN(tonal), .magnitudes = true, .frame_rows = 12, .nan = OP_NAN_NONE},
    {ROW("tonnetz", FRAMES, tonnetz, tonal), RUN(tonal), .magnitudes = true, .frame_rows = 6},
    {ROW("tuning", FRAMES, tuning, tuning), RUN(tuning), .magnitudes = true, .nan = OP_NAN_NONE},
    {ROW("piptrack", FRAMES, piptrack, tuning), RUN(piptrack), .magnitudes = true, .frame_rows = BINS,
     .nan = OP_NAN_NONE},
    {ROW("salience", FRAMES, salience, salience), RUN(salience), .magnitudes = true, .frame_rows = BINS},
    {ROW("hpss", FRAMES, hpss, hpss), RUN(hpss), .magnitudes = true, .frame_rows = BINS},
    {ROW("hpss of complex", FRAMES, hpss_complex, hpss), RUN(hpss), .frame_rows = 2 * BINS},
    {ROW("nmf", FRAMES, nmf, nmf), RUN(nmf), .magnitudes = true, .nan = OP_NAN_WHOLE},
    {ROW("yin", SAMPLES, yin, yin), RUN(yin)},
    {ROW("pyin", SAMPLES, pyin, pyin), RUN(pyin), .nan = OP_NAN_NONE, .nan_in_silence = true},
    {ROW("pyin, calibrated", SAMPLES, calibrated, pyin), RUN(pyin), .nan = OP_NAN_NONE, .nan_in_silence = true},
    {ROW("autocorrelation", 4000, autocorrelate, autocorrelate), RUN(autocorrelate), .nan = OP_NAN_WHOLE},
    {ROW("onset strength", SAMPLES, onset, onset), RUN(onset)},
    {ROW("onset strength, median", SAMPLES, onset_median, onset), RUN(onset)},
    {ROW("onsets", 400, onsets, onsets), RUN(onsets), .magnitudes = true, .nan = OP_NAN_NONE},
    {ROW("tempogram", 400, tempogram, tempogram), RUN(tempogram), .magnitudes = true, .frame_rows = 64},
    {ROW("tempo", 800, tempo, tempo), RUN(tempo), .magnitudes = true, .nan = OP_NAN_WHOLE},
    {ROW("tempo, fine", 800, tempo_fine, tempo), RUN(tempo), .magnitudes = true, .nan = OP_NAN_WHOLE},
    {ROW("tempo of frames", 800, tempo_frames, tempo), RUN(tempo_frames), .magnitudes = true, .nan = OP_NAN_WHOLE},
    {ROW("tempo ratios", 7, tempo_ratios, tempo_ratios), RUN(tempo_ratios), .frame_rows = WT_TEMPO_RATIOS},
    {ROW("beats", 800, beat, beat), RUN(beat), .magnitudes = true, .nan = OP_NAN_NONE, .clear = op_clear_beats},
    {ROW("plp", 800, plp, plp), RUN(plp), .magnitudes = true, .nan = OP_NAN_NONE},
};

const signal_op_table signal_ops_notes = {rows, sizeof rows / sizeof *rows};
