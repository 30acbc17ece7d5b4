// The command line of `warptone analyze`: what may be said, and what the words among it mean.

#include "analyze_options.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>

int analyze_options_table(analyze_arguments *a, const wt_option **table)
{
    analyze_options *o = &a->options;
    analyze_effect_options *e = &o->effect;
    a->fmin_hz = -1, e->polynomial = -1;
    // clang-format off
    const wt_option options[] = {
        {.name = "features", .letter = 'f', .kind = WT_OPTION_TEXT, .value = &a->features, .argument = "NAME,...", .help = "what to compute, from the list above; NAME_delta, NAME_delta2 for slopes"},
        {.name = "format", .kind = WT_OPTION_TEXT, .value = &a->format, .argument = "EXT", .help = "npy, npz, csv, json, png; wav, flac ... for audio; by OUT's name, npz in folders"},
        {.name = "rate", .kind = WT_OPTION_INT, .value = &o->rate_hz, .argument = "HZ", .min = 0, .max = WT_AUDIO_MAX_RATE_HZ, .help = "resample to this rate first, 22050 if left out; 0 = the file's"},
        {.name = "quality", .kind = WT_OPTION_TEXT, .value = &a->quality, .argument = "NAME", .help = "of that: best, fast, soxr_hq or polyphase; best if left out"},
        {.name = "channels", .kind = WT_OPTION_FLAG, .value = &o->keep_channels, .help = "each channel by itself, not their mean"},
        {.name = "n-fft", .kind = WT_OPTION_INT, .value = &o->n_fft, .argument = "N", .min = 2, .max = 1 << 20, .help = "samples of a frame, 2048"},
        {.name = "hop", .kind = WT_OPTION_INT, .value = &o->hop, .argument = "N", .min = 1, .max = 1 << 20, .help = "samples from frame to frame, 512"},
        {.name = "win-length", .kind = WT_OPTION_INT, .value = &o->win_length, .argument = "N", .min = 1, .max = 1 << 20, .help = "samples of the window, as n-fft"},
        {.name = "window", .kind = WT_OPTION_TEXT, .value = &a->window, .argument = "NAME", .help = "of spectra: hann, hamming, blackman, blackman_harris, kaiser, gaussian, flat_top or rectangular; hann if left out"},
        {.name = "window-parameter", .kind = WT_OPTION_NUMBER, .value = &o->window.parameter, .argument = "X", .min = 0.001, .max = 1e6, .help = "kaiser's beta; gaussian's deviation in samples"},
        {.name = "padding", .kind = WT_OPTION_TEXT, .value = &a->padding, .argument = "NAME", .help = "what spectra see beyond the signal: zero, reflect, symmetric, edge or ramp; zero if left out"},
        {.name = "n-mels", .kind = WT_OPTION_INT, .value = &o->n_mels, .argument = "N", .min = 1, .max = WT_MEL_MAX_MELS, .help = "mel bands, 128"},
        {.name = "htk", .kind = WT_OPTION_FLAG, .value = &o->htk, .help = "mel bands on HTK's scale, not Slaney's"},
        {.name = "mel-norm", .kind = WT_OPTION_TEXT, .value = &a->mel_norm, .argument = "NAME", .help = "of mel bands: slaney, none, 1, 2 or inf; slaney if left out"},
        {.name = "dct-type", .kind = WT_OPTION_INT, .value = &o->dct_type, .argument = "N", .min = 1, .max = 3, .help = "of mfcc, 2"},
        {.name = "lifter", .kind = WT_OPTION_NUMBER, .value = &o->lifter, .argument = "L", .min = 0, .max = 1e6, .help = "of mfcc, 0 = none"},
        {.name = "n-mfcc", .kind = WT_OPTION_INT, .value = &o->n_mfcc, .argument = "N", .min = 1, .max = WT_MEL_MAX_MELS, .help = "coefficients, 20"},
        {.name = "n-bins", .kind = WT_OPTION_INT, .value = &o->n_bins, .argument = "N", .min = 1, .max = 4096, .help = "bins of the constant-Q transform, 84"},
        {.name = "bins-per-octave", .kind = WT_OPTION_INT, .value = &o->bins_per_octave, .argument = "N", .min = 1, .max = 4096, .help = "of the constant-Q transform, 12"},
        {.name = "n-chroma", .kind = WT_OPTION_INT, .value = &o->n_chroma, .argument = "N", .min = 1, .max = 1024, .help = "pitch classes, 12"},
        {.name = "fmin", .kind = WT_OPTION_NUMBER, .value = &a->fmin_hz, .argument = "HZ", .min = 0, .max = 384000, .help = "lowest frequency: mel 0, constant-Q C1, pitch C2"},
        {.name = "fmax", .kind = WT_OPTION_NUMBER, .value = &o->fmax_hz, .argument = "HZ", .min = 0.001, .max = 384000, .help = "highest: mel half the rate, pitch C7"},
        {.name = "kernel", .kind = WT_OPTION_INT, .value = &o->kernel, .argument = "N", .min = 1, .max = 1 << 20, .help = "of median, 5 samples; of hpss and median_spectrogram, 31 frames"},
        {.name = "kernel-bins", .kind = WT_OPTION_INT, .value = &o->kernel_bins, .argument = "N", .min = 1, .max = 1 << 20, .help = "of hpss, 31, of median_spectrogram, 1"},
        {.name = "mask-power", .kind = WT_OPTION_NUMBER, .value = &o->mask_power, .argument = "X", .min = 0.001, .max = 1000, .help = "of hpss, 2"},
        {.name = "hard-masks", .kind = WT_OPTION_FLAG, .value = &o->hard_masks, .help = "of hpss: each bin is the one's or the other's"},
        {.name = "neighbours", .kind = WT_OPTION_INT, .value = &o->neighbours.k, .argument = "N", .min = 1, .max = 1 << 20, .help = "of nn_filter, 2 sqrt(frames)"},
        {.name = "apart", .kind = WT_OPTION_INT, .value = &o->neighbours.width, .argument = "N", .min = 1, .max = 1 << 20, .help = "frames between neighbours, 1"},
        {.name = "distance", .kind = WT_OPTION_TEXT, .value = &a->distance, .argument = "NAME", .help = "of neighbours: euclidean or cosine; euclidean if left out"},
        {.name = "aggregate", .kind = WT_OPTION_TEXT, .value = &a->aggregate, .argument = "NAME", .help = "what a frame is of its neighbours: mean or median; mean if left out"},
        {.name = "mutual", .kind = WT_OPTION_FLAG, .value = &o->neighbours.symmetric, .help = "only neighbours of each other"},
        {.name = "max-lags", .kind = WT_OPTION_INT, .value = &o->max_lags, .argument = "N", .min = 1, .max = 1 << 21, .help = "of autocorrelation, all"},
        {.name = "margin", .kind = WT_OPTION_NUMBER, .value = &o->margin, .argument = "X", .min = 1, .max = 1000, .help = "of hpss, 1; above it each part takes less"},
        {.name = "speed", .kind = WT_OPTION_NUMBER, .value = &o->speed, .argument = "X", .min = 1.0 / 256, .max = 256, .help = "of time_stretch, 1; 2 = half as long"},
        {.name = "steps", .kind = WT_OPTION_NUMBER, .value = &o->steps, .argument = "N", .min = -96, .max = 96, .help = "of pitch_shift, in semitones, up when positive"},
        {.name = "vocoder", .kind = WT_OPTION_TEXT, .value = &a->vocoder, .argument = "NAME", .help = "of both: transient, locked, librosa or wsola; transient if left out"},
        {.name = "keep-formants", .kind = WT_OPTION_FLAG, .value = &o->keep_formants, .help = "pitch_shift leaves a voice's formants where they are"},
        {.name = "components", .kind = WT_OPTION_INT, .value = &o->n_components, .argument = "N", .min = 1, .max = 4096, .help = "of nmf, 8"},
        {.name = "solver", .kind = WT_OPTION_TEXT, .value = &a->solver, .argument = "NAME", .help = "of nmf: cd, multiplicative or multiplicative_kl; cd if left out"},
        {.name = "iterations", .kind = WT_OPTION_INT, .value = &o->n_iter, .argument = "N", .min = 1, .max = 1 << 20, .help = "of nmf, 200, of griffin_lim and mel_to_audio, 32"},
        {.name = "seed", .kind = WT_OPTION_INT, .value = &o->seed, .argument = "N", .min = 0, .max = 2147483647, .help = "of what these three begin with, 0"},
        {.name = "edges", .kind = WT_OPTION_TEXT, .value = &a->edges, .argument = "HZ[,HZ]", .help = "of filter, filtfilt and fir: one, or the two of a band"},
        {.name = "band", .kind = WT_OPTION_TEXT, .value = &a->band, .argument = "NAME", .help = "what they let through: low, high, pass or stop; low if left out"},
        {.name = "family", .kind = WT_OPTION_TEXT, .value = &a->family, .argument = "NAME", .help = "of filter and filtfilt: butterworth, chebyshev1, chebyshev2, elliptic or bessel"},
        {.name = "order", .kind = WT_OPTION_INT, .value = &e->order, .argument = "N", .min = 1, .max = WT_SOS_MAX_ORDER, .help = "of filter and filtfilt, 4"},
        {.name = "ripple", .kind = WT_OPTION_NUMBER, .value = &e->ripple_db, .argument = "DB", .min = 0.001, .max = 100, .help = "of chebyshev1 and elliptic, 1"},
        {.name = "attenuation", .kind = WT_OPTION_NUMBER, .value = &e->attenuation_db, .argument = "DB", .min = 0.001, .max = 300, .help = "of chebyshev2 and elliptic, 60"},
        {.name = "taps", .kind = WT_OPTION_INT, .value = &e->n_taps, .argument = "N", .min = 1, .max = WT_FIR_DESIGN_MAX_TAPS, .help = "of fir, 255, of savgol, 11"},
        {.name = "design", .kind = WT_OPTION_TEXT, .value = &a->design, .argument = "NAME", .help = "of fir: window, least_squares or equiripple; window if left out"},
        {.name = "transition", .kind = WT_OPTION_NUMBER, .value = &e->transition_hz, .argument = "HZ", .min = 0.001, .max = 384000, .help = "between bands of the last two, 3.3 rates over taps"},
        {.name = "polynomial", .kind = WT_OPTION_INT, .value = &e->polynomial, .argument = "N", .min = 0, .max = 20, .help = "degree of savgol's, 3"},
        {.name = "derivative", .kind = WT_OPTION_INT, .value = &e->derivative, .argument = "N", .min = 0, .max = 20, .help = "of savgol, 0 = smooth"},
        {.name = "coefficient", .kind = WT_OPTION_NUMBER, .value = &e->coefficient, .argument = "C", .min = 0.001, .max = 0.9999, .help = "of preemphasis and deemphasis, 0.97"},
        {.name = "impulse", .kind = WT_OPTION_TEXT, .value = &e->impulse, .argument = "FILE", .help = "what convolve convolves with"},
        {.name = "playback", .kind = WT_OPTION_TEXT, .value = &e->playback, .argument = "FILE", .help = "what echo_cancel takes the echo of"},
        {.name = "tail", .kind = WT_OPTION_NUMBER, .value = &e->tail_ms, .argument = "MS", .min = 10, .max = 2000, .help = "longest echo, 256"},
        {.name = "target", .kind = WT_OPTION_NUMBER, .value = &e->target_db, .argument = "DB", .min = -100, .max = -0.01, .help = "of normalize, -23 LUFS, RMS -20 or peak 0, of agc, -20"},
        {.name = "by", .kind = WT_OPTION_TEXT, .value = &a->by, .argument = "NAME", .help = "what normalize measures: loudness, rms or peak; loudness if left out"},
        {.name = "ceiling", .kind = WT_OPTION_NUMBER, .value = &e->ceiling_db, .argument = "DB", .min = -100, .max = 100, .help = "that no peak passes, by loudness or RMS, 0"},
        {.name = "max-gain", .kind = WT_OPTION_NUMBER, .value = &e->max_gain_db, .argument = "DB", .min = 0.01, .max = 60, .help = "of agc, 24"},
        {.name = "denoiser", .kind = WT_OPTION_TEXT, .value = &a->denoiser, .argument = "NAME", .help = "lsa, wiener or gate; lsa if left out"},
        {.name = "noise", .kind = WT_OPTION_TEXT, .value = &a->noise, .argument = "S,S", .help = "where a file has noise alone, for denoise to learn; tracked if left out"},
        {.name = "max-cut", .kind = WT_OPTION_NUMBER, .value = &e->max_cut_db, .argument = "DB", .min = 1, .max = 100, .help = "most that denoise turns a bin down, 30"},
        {.name = "bpm", .kind = WT_OPTION_NUMBER, .value = &o->bpm, .argument = "BPM", .min = 1, .max = 1000, .help = "known tempo of the beats"},
        {.name = "fine", .kind = WT_OPTION_FLAG, .value = &o->fine, .help = "tempi between the lags of frames, to 0.1 BPM"},
        {.name = "calibrated", .kind = WT_OPTION_FLAG, .value = &o->calibrated, .help = "pyin: voiced only where the frame's middle repeats"},
        {.name = "top-db", .kind = WT_OPTION_NUMBER, .value = &o->top_db, .argument = "DB", .min = 0.1, .max = 300, .help = "of trim and split, 60: what is further below the loudest frame is silent"},
        {.name = "backtrack", .kind = WT_OPTION_FLAG, .value = &o->backtrack, .help = "move onsets back to the quiet before them"},
        {.name = "width", .kind = WT_OPTION_INT, .value = &o->width, .argument = "PIXELS", .min = 600, .max = 32768, .help = "of pictures, 1600"},
        {.name = "height", .kind = WT_OPTION_INT, .value = &o->height, .argument = "PIXELS", .min = 200, .max = 4000, .help = "of each panel of a picture, 420"},
        {.name = "jobs", .letter = 'j', .kind = WT_OPTION_INT, .value = &o->n_jobs, .argument = "N", .min = 1, .max = 1024, .help = "worker threads; one per processor if left out, with a GPU 16 at most"},
        {.name = "tile", .kind = WT_OPTION_INT, .value = &o->tile, .argument = "SAMPLES", .min = 1, .max = 1 << 24, .help = "samples worked on at once where features allow it, 4194304"},
        {.name = "backend", .kind = WT_OPTION_TEXT, .value = &a->backend, .argument = "WHICH", .help = "auto, cuda or cpu"},
        {.name = "resume", .kind = WT_OPTION_FLAG, .value = &a->resume, .help = "skip files whose output is there and not older"},
        {.name = "json", .kind = WT_OPTION_FLAG, .value = &a->json, .help = "a summary as JSON on standard output"},
        {.name = "quiet", .letter = 'q', .kind = WT_OPTION_FLAG, .value = &a->quiet, .help = "only errors"},
    };
    // clang-format on
    static wt_option kept[sizeof options / sizeof *options];
    memcpy(kept, options, sizeof options);
    *table = kept;
    return (int)(sizeof options / sizeof *options);
}

// ---- words

/// Which of the names, NULL behind the last, `text` is; NULL text: the first.
static wt_status choose(const char *option, const char *text, const char *const *names, int *which)
{
    char wanted[160] = "";
    for (*which = 0; names[*which]; ++*which)
        if (!text || !strcmp(text, names[*which])) return WT_OK;
    for (int k = 0; names[k]; k++) {
        const size_t at = strlen(wanted);
        snprintf(wanted + at, sizeof wanted - at, "%s%s", k == 0 ? "" : names[k + 1] ? ", " : " or ", names[k]);
    }
    return wt_fail(WT_ERR_BAD_ARG, "--%s \"%s\", want %s", option, text, wanted);
}

/// One number or two of them, from 0 on, into `values`.
static wt_status read_numbers(const char *option, const char *text, const char *want, double values[2], int *n)
{
    const char *at = text;
    char *end;
    for (*n = 0; *n < 2; at = end + 1) {
        const double value = strtod(at, &end);
        if (end == at || !(value >= 0 && value <= 1e9)) break;
        values[(*n)++] = value;
        if (!*end) return WT_OK;
        if (*end != ',') break;
    }
    return wt_fail(WT_ERR_BAD_ARG, "--%s \"%s\", want %s", option, text, want);
}

static wt_status choose_noise(const char *text, double noise_s[2])
{
    int n;
    if (!text) return WT_OK;
    wt_status status = read_numbers("noise", text, "a begin and an end in seconds, as 0,0.5", noise_s, &n);
    if (!status && (n < 2 || !(noise_s[1] > noise_s[0])))
        status = wt_fail(WT_ERR_BAD_ARG, "--noise \"%s\", want a begin and an end in seconds, as 0,0.5", text);
    return status;
}

/// What is left out is the first of its type.
static wt_status choose_words(const analyze_arguments *a, analyze_options *o)
{
    static const char *const vocoders[] = {"transient", "locked", "librosa", "wsola", NULL};
    static const char *const qualities[] = {"best", "fast", "soxr_hq", "polyphase", NULL};
    static const char *const families[] = {"butterworth", "chebyshev1", "chebyshev2", "elliptic", "bessel", NULL};
    static const char *const bands[] = {"low", "high", "pass", "stop", NULL};
    static const char *const designs[] = {"window", "least_squares", "equiripple", NULL};
    static const char *const levels[] = {"loudness", "rms", "peak", NULL};
    static const char *const denoisers[] = {"lsa", "wiener", "gate", NULL};
    static const char *const distances[] = {"euclidean", "cosine", NULL}, *const aggregates[] = {"mean", "median", NULL};
    static const char *const windows[] = {"hann",     "hamming",  "blackman",    "blackman_harris", "kaiser",
                                          "gaussian", "flat_top", "rectangular", NULL};
    static const char *const paddings[] = {"zero", "reflect", "symmetric", "edge", "ramp", NULL};
    static const char *const norms[] = {"slaney", "none", "1", "2", "inf", NULL};
    static const char *const solvers[] = {"cd", "multiplicative", "multiplicative_kl", NULL};
    int vocoder, quality, family, band, design, by, denoiser, distance, aggregate, window, padding, norm, solver;
    const struct {
        const char *option, *text;
        const char *const *names;
        int *which;
    } words[] = {
        {"vocoder", a->vocoder, vocoders, &vocoder},      {"quality", a->quality, qualities, &quality},
        {"family", a->family, families, &family},         {"band", a->band, bands, &band},
        {"design", a->design, designs, &design},          {"by", a->by, levels, &by},
        {"denoiser", a->denoiser, denoisers, &denoiser},  {"distance", a->distance, distances, &distance},
        {"aggregate", a->aggregate, aggregates, &aggregate}, {"window", a->window, windows, &window},
        {"padding", a->padding, paddings, &padding},      {"mel-norm", a->mel_norm, norms, &norm},
        {"solver", a->solver, solvers, &solver},
    };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        wt_status status = choose(words[k].option, words[k].text, words[k].names, words[k].which);
        if (status) return status;
    }
    o->vocoder = (wt_stretch_mode)vocoder;
    o->effect.quality = (wt_resample_quality)quality;
    o->effect.family = (wt_filter_family)family;
    o->effect.band = (wt_filter_band)band;
    o->effect.design = (analyze_fir_design)design;
    o->effect.by = (wt_normalize_kind)by;
    o->effect.denoiser = (wt_denoise_mode)denoiser;
    o->neighbours.cosine = distance, o->neighbours.median = aggregate;
    o->window.kind = (wt_window_kind)window;
    o->padding = (wt_stft_pad)padding;
    o->mel_norm = (wt_mel_norm)norm;
    o->solver = (wt_nmf_solver)solver;
    return WT_OK;
}

/// A window that has a parameter has no usual one, and the others none.
static wt_status check_window(const wt_window_config *window)
{
    const bool wanted = window->kind == WT_WINDOW_KAISER || window->kind == WT_WINDOW_GAUSSIAN;
    if (wanted == (window->parameter > 0)) return WT_OK;
    return wanted ? wt_fail(WT_ERR_BAD_ARG, "--window %s wants --window-parameter X",
                            window->kind == WT_WINDOW_KAISER ? "kaiser" : "gaussian")
                  : wt_fail(WT_ERR_BAD_ARG, "--window-parameter %g is of --window kaiser or gaussian",
                            window->parameter);
}

/// 0 is left out to the ops; who says it means it.
static wt_status choose_fmin(const analyze_arguments *a, analyze_options *o)
{
    o->fmin_hz = a->fmin_hz > 0 ? a->fmin_hz : 0;
    for (int k = 0; k < o->n_features; k++)
        if (a->fmin_hz >= 0 && !(a->fmin_hz > 0) && o->features[k]->above_zero)
            return wt_fail(WT_ERR_BAD_ARG, "--fmin 0: %s wants a lowest frequency above 0", o->features[k]->name);
    return WT_OK;
}

wt_status analyze_options_choose(analyze_arguments *a)
{
    analyze_effect_options *e = &a->options.effect;
    wt_status status = choose_words(a, &a->options);
    if (!status) status = check_window(&a->options.window);
    if (!status && a->edges)
        status = read_numbers("edges", a->edges, "one frequency in Hz, or two as 300,3400", e->edges_hz, &e->n_edges);
    if (!status) status = choose_noise(a->noise, e->noise_s);
    return status ? status : choose_fmin(a, &a->options);
}
