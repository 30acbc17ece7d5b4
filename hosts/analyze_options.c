// The command line of `warptone analyze`: what may be said, and what the words among it mean.

#include "analyze_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>

/// As many as there are and room for more: what has none is not known on the command line, from the last section on.
enum { MOST_OPTIONS = 256 };

typedef struct option_table {
    wt_option options[MOST_OPTIONS];
    int n;
} option_table;

static void put(option_table *table, const wt_option *options, int n)
{
    if (table->n + n > MOST_OPTIONS) return;
    memcpy(table->options + table->n, options, sizeof *options * (size_t)n);
    table->n += n;
}

// clang-format off
/// What is computed, from which samples and frames.
static void frame_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    const wt_option options[] = {
        {.name = "features", .letter = 'f', .kind = WT_OPTION_TEXT, .value = &a->features, .argument = "NAME,...", .help = "what to compute, from the list above; NAME_delta, NAME_delta2 for slopes"},
        {.name = "format", .kind = WT_OPTION_TEXT, .value = &a->format, .argument = "EXT", .help = "npy, npz, csv, json, png; wav, flac ... for audio; by OUT's name, npz in folders"},
        {.name = "rate", .kind = WT_OPTION_INT, .value = &o->rate_hz, .argument = "HZ", .min = 0, .max = WT_AUDIO_MAX_RATE_HZ, .help = "resample to this rate first, 22050 if left out; 0 = the file's"},
        {.name = "quality", .kind = WT_OPTION_TEXT, .value = &a->quality, .argument = "NAME", .help = "of that: best, fast, soxr_hq or polyphase; best if left out"},
        {.name = "channels", .kind = WT_OPTION_FLAG, .value = &o->keep_channels, .help = "each channel by itself, not their mean"},
        {.name = "n-fft", .kind = WT_OPTION_INT, .value = &o->n_fft, .argument = "N", .min = 2, .max = 1 << 20, .help = "samples of a frame, 2048"},
        {.name = "hop", .kind = WT_OPTION_INT, .value = &o->hop, .argument = "N", .min = 1, .max = 1 << 20, .help = "samples from frame to frame, 512"},
        {.name = "win-length", .kind = WT_OPTION_INT, .value = &o->win_length, .argument = "N", .min = 1, .max = 1 << 20, .help = "samples of the window, as n-fft"},
        {.name = "window", .kind = WT_OPTION_TEXT, .value = &a->window, .argument = "NAME", .help = "of spectra, cqt and fir: hann, hamming, blackman, blackman_harris, kaiser, gaussian, flat_top or rectangular; hann if left out, of fir hamming"},
        {.name = "window-parameter", .kind = WT_OPTION_NUMBER, .value = &o->window.parameter, .argument = "X", .min = 0.001, .max = 1e6, .help = "kaiser's beta; gaussian's deviation in samples"},
        {.name = "padding", .kind = WT_OPTION_TEXT, .value = &a->padding, .argument = "NAME", .help = "what frames see beyond the signal: zero, reflect, symmetric, edge or ramp; zero if left out"},
        {.name = "no-center", .kind = WT_OPTION_FLAG, .value = &o->no_center, .help = "frame t begins at t hops instead of being centred there; onset strength is not moved by half a frame"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Mel bands, decibels, cepstra, slopes, PCEN.
static void mel_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "n-mels", .kind = WT_OPTION_INT, .value = &o->n_mels, .argument = "N", .min = 1, .max = WT_MEL_MAX_MELS, .help = "mel bands, 128"},
        {.name = "htk", .kind = WT_OPTION_FLAG, .value = &o->htk, .help = "mel bands on HTK's scale, not Slaney's"},
        {.name = "mel-norm", .kind = WT_OPTION_TEXT, .value = &a->mel_norm, .argument = "NAME", .help = "of mel bands: slaney, none, 1, 2 or inf; slaney if left out"},
        {.name = "power", .kind = WT_OPTION_NUMBER, .value = &t->mel_power, .argument = "X", .min = 0.001, .max = 100, .help = "of magnitudes in mel bands and in flatness, 2"},
        {.name = "ref", .kind = WT_OPTION_TEXT, .value = &a->ref, .argument = "X", .help = "the power that is 0 dB in logmel, mfcc and spectrogram_db, or max; 1 if left out"},
        {.name = "amin", .kind = WT_OPTION_NUMBER, .value = &t->db.amin, .argument = "X", .min = 1e-37, .max = 1e30, .help = "least power in these and in flatness, 1e-10"},
        {.name = "dct-type", .kind = WT_OPTION_INT, .value = &o->dct_type, .argument = "N", .min = 1, .max = 3, .help = "of mfcc, 2"},
        {.name = "dct-norm", .kind = WT_OPTION_TEXT, .value = &a->dct_norm, .argument = "NAME", .help = "of mfcc: ortho or none; ortho if left out"},
        {.name = "lifter", .kind = WT_OPTION_NUMBER, .value = &o->lifter, .argument = "L", .min = 0, .max = 1e6, .help = "of mfcc, 0 = none"},
        {.name = "n-mfcc", .kind = WT_OPTION_INT, .value = &o->n_mfcc, .argument = "N", .min = 1, .max = WT_MEL_MAX_MELS, .help = "coefficients, 20"},
        {.name = "delta-width", .kind = WT_OPTION_INT, .value = &t->delta.width, .argument = "N", .min = 3, .max = 1023, .help = "frames of slopes, an odd number, 9"},
        {.name = "delta-mode", .kind = WT_OPTION_TEXT, .value = &a->delta_mode, .argument = "NAME", .help = "what slopes see beyond the ends: interp, nearest, mirror or constant; interp if left out"},
        {.name = "delta-cval", .kind = WT_OPTION_NUMBER, .value = &t->delta.constant, .argument = "X", .min = -1e30, .max = 1e30, .help = "that constant, 0"},
        {.name = "pcen-gain", .kind = WT_OPTION_NUMBER, .value = &t->pcen.gain, .argument = "X", .min = 0, .max = 1000, .help = "of pcen, 0.98"},
        {.name = "pcen-bias", .kind = WT_OPTION_NUMBER, .value = &t->pcen.bias, .argument = "X", .min = 0, .max = 1e9, .help = "of pcen, 2"},
        {.name = "pcen-power", .kind = WT_OPTION_NUMBER, .value = &t->pcen.power, .argument = "X", .min = 0, .max = 100, .help = "of pcen, 0.5; 0 = logarithm"},
        {.name = "time-constant", .kind = WT_OPTION_NUMBER, .value = &t->pcen.time_constant_s, .argument = "S", .min = 1e-6, .max = 1e6, .help = "of pcen, 0.4"},
        {.name = "eps", .kind = WT_OPTION_NUMBER, .value = &t->pcen.eps, .argument = "X", .min = 1e-30, .max = 1e12, .help = "of pcen, 1e-6"},
        {.name = "pcen-b", .kind = WT_OPTION_NUMBER, .value = &t->pcen.b, .argument = "X", .min = 1e-9, .max = 1, .help = "its smoother's coefficient, by the time constant if left out"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Constant-Q and chroma; the ends of frequency, which others have too.
static void tonal_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "n-bins", .kind = WT_OPTION_INT, .value = &o->n_bins, .argument = "N", .min = 1, .max = 4096, .help = "bins of the constant-Q transform, 84"},
        {.name = "bins-per-octave", .kind = WT_OPTION_INT, .value = &o->bins_per_octave, .argument = "N", .min = 1, .max = 4096, .help = "of the constant-Q transform, 12, of the chromas from it, 36, of pitch_shift's steps, 12"},
        {.name = "filter-scale", .kind = WT_OPTION_NUMBER, .value = &t->cqt.filter_scale, .argument = "X", .min = 0.001, .max = 1000, .help = "of cqt and its kind, 1; below 1 filters are shorter"},
        {.name = "filter-norm", .kind = WT_OPTION_TEXT, .value = &a->filter_norm, .argument = "NAME", .help = "of their filters: 1, 2, inf or none; 1 if left out"},
        {.name = "sparsity", .kind = WT_OPTION_NUMBER, .value = &t->cqt.sparsity, .argument = "X", .min = 1e-9, .max = 0.999, .help = "share of their filters that is left out, 0.01"},
        {.name = "no-scale", .kind = WT_OPTION_FLAG, .value = &t->no_scale, .help = "their bins by the filters' lengths; fir by a window without gain 1"},
        {.name = "tuning", .kind = WT_OPTION_NUMBER, .value = &a->tuning, .argument = "BINS", .min = -1000, .max = 1000, .help = "of cqt and its kind, 0; of chromas, estimated if left out"},
        {.name = "gamma", .kind = WT_OPTION_NUMBER, .value = &a->gamma_hz, .argument = "HZ", .min = 0, .max = 1e6, .help = "bandwidth that vqt's filters have beside, as hearing has it if left out; 0 = cqt"},
        {.name = "intervals", .kind = WT_OPTION_TEXT, .value = &a->intervals, .argument = "X,...", .help = "vqt's bins in an octave: ratios from 1 to 2, as 1,9/8,5/4,3/2"},
        {.name = "slice", .kind = WT_OPTION_INT, .value = &t->slice, .argument = "N", .min = 256, .max = 1 << 22, .help = "samples of nsgt's slices, an even number, 65536"},
        {.name = "n-chroma", .kind = WT_OPTION_INT, .value = &o->n_chroma, .argument = "N", .min = 1, .max = 1024, .help = "pitch classes, 12"},
        {.name = "norm", .kind = WT_OPTION_TEXT, .value = &a->norm, .argument = "NAME", .help = "of chroma's frames: inf, 1, 2 or none; inf if left out, of chroma_cens 2"},
        {.name = "ctroct", .kind = WT_OPTION_NUMBER, .value = &t->chroma.centre_octave, .argument = "X", .min = 0.001, .max = 20, .help = "octave that weighs most in chroma, 5"},
        {.name = "octwidth", .kind = WT_OPTION_NUMBER, .value = &a->octwidth, .argument = "X", .min = 0, .max = 1000, .help = "width of those weights, 2 octaves; 0 = none"},
        {.name = "base-a", .kind = WT_OPTION_FLAG, .value = &t->chroma.begin_at_a, .help = "chroma's row 0 is A, not C"},
        {.name = "n-octaves", .kind = WT_OPTION_INT, .value = &t->n_octaves, .argument = "N", .min = 1, .max = 20, .help = "that chroma_cqt, chroma_cens and tonnetz are folded from, 7"},
        {.name = "cqt-mode", .kind = WT_OPTION_TEXT, .value = &a->cqt_mode, .argument = "NAME", .help = "what these are made of: full or hybrid; full if left out"},
        {.name = "win-len-smooth", .kind = WT_OPTION_INT, .value = &t->smooth, .argument = "N", .min = 1, .max = 100000, .help = "frames that chroma_cens smooths over, 41"},
        {.name = "threshold", .kind = WT_OPTION_NUMBER, .value = &t->threshold, .argument = "X", .min = 1e-9, .max = 1000, .help = "what is below it: of piptrack and tuning no peak, 0.1 of the frame's largest; of chroma_cqt nothing, 0"},
        {.name = "resolution", .kind = WT_OPTION_NUMBER, .value = &t->resolution, .argument = "X", .min = 1e-4, .max = 1, .help = "steps of tuning, 0.01, and of pyin's pitches, 0.1 semitones"},
        {.name = "fmin", .kind = WT_OPTION_NUMBER, .value = &a->fmin_hz, .argument = "HZ", .min = 0, .max = 384000, .help = "lowest frequency: mel 0, constant-Q C1, pitch C2, contrast 200"},
        {.name = "fmax", .kind = WT_OPTION_NUMBER, .value = &o->fmax_hz, .argument = "HZ", .min = 0.001, .max = 384000, .help = "highest: mel half the rate, pitch C7"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// The shape of spectra.
static void shape_options(analyze_arguments *a, option_table *table)
{
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "roll-percent", .kind = WT_OPTION_NUMBER, .value = &t->shape.percent, .argument = "X", .min = 1e-6, .max = 0.999999, .help = "share that lies below rolloff, 0.85"},
        {.name = "p", .kind = WT_OPTION_NUMBER, .value = &t->shape.p, .argument = "X", .min = 0.001, .max = 100, .help = "exponent of bandwidth, 2"},
        {.name = "no-norm", .kind = WT_OPTION_FLAG, .value = &t->no_norm, .help = "bandwidth by magnitudes as they are, tempogram's rows likewise"},
        {.name = "n-bands", .kind = WT_OPTION_INT, .value = &t->shape.contrast.n_bands, .argument = "N", .min = 1, .max = 32, .help = "octaves of contrast, 6"},
        {.name = "quantile", .kind = WT_OPTION_NUMBER, .value = &t->shape.contrast.quantile, .argument = "X", .min = 1e-6, .max = 0.999999, .help = "share of a band that is contrast's peak and valley, 0.02"},
        {.name = "linear", .kind = WT_OPTION_FLAG, .value = &t->shape.contrast.linear, .help = "contrast as a difference, not in dB"},
        {.name = "poly-order", .kind = WT_OPTION_INT, .value = &t->shape.order, .argument = "N", .min = 0, .max = 10, .help = "of poly, 1"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Medians, neighbours, salience, reassignment, harmonic and percussive parts.
static void separation_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "kernel", .kind = WT_OPTION_INT, .value = &o->kernel, .argument = "N", .min = 1, .max = 1 << 20, .help = "of median, 5 samples; of hpss and median_spectrogram, 31 frames"},
        {.name = "kernel-bins", .kind = WT_OPTION_INT, .value = &o->kernel_bins, .argument = "N", .min = 1, .max = 1 << 20, .help = "of hpss, 31, of median_spectrogram, 1"},
        {.name = "mask-power", .kind = WT_OPTION_NUMBER, .value = &o->mask_power, .argument = "X", .min = 0.001, .max = 1000, .help = "of hpss, 2"},
        {.name = "hard-masks", .kind = WT_OPTION_FLAG, .value = &o->hard_masks, .help = "of hpss: each bin is the one's or the other's"},
        {.name = "neighbours", .kind = WT_OPTION_INT, .value = &o->neighbours.k, .argument = "N", .min = 1, .max = 1 << 20, .help = "of nn_filter, 2 sqrt(frames)"},
        {.name = "apart", .kind = WT_OPTION_INT, .value = &o->neighbours.width, .argument = "N", .min = 1, .max = 1 << 20, .help = "frames between neighbours, 1"},
        {.name = "distance", .kind = WT_OPTION_TEXT, .value = &a->distance, .argument = "NAME", .help = "of neighbours: euclidean or cosine; euclidean if left out"},
        {.name = "aggregate", .kind = WT_OPTION_TEXT, .value = &a->aggregate, .argument = "NAME", .help = "mean or median: what a frame is of its neighbours, mean, onset strength of its bands, mean, for beats median"},
        {.name = "mutual", .kind = WT_OPTION_FLAG, .value = &o->neighbours.symmetric, .help = "only neighbours of each other"},
        {.name = "max-lags", .kind = WT_OPTION_INT, .value = &o->max_lags, .argument = "N", .min = 1, .max = 1 << 21, .help = "of autocorrelation, all"},
        {.name = "harmonics", .kind = WT_OPTION_TEXT, .value = &a->harmonics, .argument = "X,...", .help = "of salience, 1,2,3,4"},
        {.name = "weights", .kind = WT_OPTION_TEXT, .value = &a->weights, .argument = "X,...", .help = "of those, 1,0.45,0.33,0.25, or 1 each; of fir's bands, 1 each"},
        {.name = "all-bins", .kind = WT_OPTION_FLAG, .value = &t->all_bins, .help = "salience also where no peak is"},
        {.name = "fill-value", .kind = WT_OPTION_TEXT, .value = &a->fill_value, .argument = "X", .help = "what stands there in salience: a number or nan; 0 if left out"},
        {.name = "ref-power", .kind = WT_OPTION_NUMBER, .value = &t->reassigned.ref_power, .argument = "X", .min = 0, .max = 1e30, .help = "bins of reassigned below it have no frequency, 1e-6; 0 = all have"},
        {.name = "fill-nan", .kind = WT_OPTION_FLAG, .value = &t->reassigned.fill_nan, .help = "those have their bin's frequency and time, not NaN"},
        {.name = "no-clip", .kind = WT_OPTION_FLAG, .value = &t->reassigned.no_clip, .help = "reassigned beyond half the rate and the signal's ends"},
        {.name = "margin", .kind = WT_OPTION_NUMBER, .value = &o->margin, .argument = "X", .min = 1, .max = 1000, .help = "of hpss, 1; above it each part takes less"},
        {.name = "margin-percussive", .kind = WT_OPTION_NUMBER, .value = &t->margin_percussive, .argument = "X", .min = 1, .max = 1000, .help = "of the percussive part alone, as margin"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Stretches, shifts, and what iterates.
static void time_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "speed", .kind = WT_OPTION_NUMBER, .value = &o->speed, .argument = "X", .min = 1.0 / 256, .max = 256, .help = "of time_stretch, 1; 2 = half as long"},
        {.name = "steps", .kind = WT_OPTION_NUMBER, .value = &o->steps, .argument = "N", .min = -96, .max = 96, .help = "of pitch_shift, in semitones, up when positive"},
        {.name = "vocoder", .kind = WT_OPTION_TEXT, .value = &a->vocoder, .argument = "NAME", .help = "of both: transient, locked, librosa or wsola; transient if left out"},
        {.name = "keep-formants", .kind = WT_OPTION_FLAG, .value = &o->keep_formants, .help = "pitch_shift leaves a voice's formants where they are"},
        {.name = "formant-order", .kind = WT_OPTION_INT, .value = &t->shift.formant_order, .argument = "N", .min = 1, .max = 100000, .help = "its envelope rests on peaks rate / 2N apart; on the harmonics if left out"},
        {.name = "scale", .kind = WT_OPTION_FLAG, .value = &t->shift.scale, .help = "pitch_shift keeps the energy, not the amplitude"},
        {.name = "components", .kind = WT_OPTION_INT, .value = &o->n_components, .argument = "N", .min = 1, .max = 4096, .help = "of nmf, 8"},
        {.name = "solver", .kind = WT_OPTION_TEXT, .value = &a->solver, .argument = "NAME", .help = "of nmf: cd, multiplicative or multiplicative_kl; cd if left out"},
        {.name = "iterations", .kind = WT_OPTION_INT, .value = &o->n_iter, .argument = "N", .min = 1, .max = 1 << 20, .help = "of nmf, 200, of griffin_lim, mel_to_audio and mfcc_to_audio, 32"},
        {.name = "seed", .kind = WT_OPTION_INT, .value = &o->seed, .argument = "N", .min = 0, .max = 2147483647, .help = "of what these three begin with, 0"},
        {.name = "init", .kind = WT_OPTION_TEXT, .value = &a->init, .argument = "NAME", .help = "phases that griffin_lim begins with: random or zero; random if left out"},
        {.name = "momentum", .kind = WT_OPTION_NUMBER, .value = &a->momentum, .argument = "X", .min = 0, .max = 1, .help = "of griffin_lim, 0.99; 0 = Griffin and Lim's original"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Filters and their design.
static void filter_options(analyze_arguments *a, option_table *table)
{
    analyze_effect_options *e = &a->options.effect;
    const wt_option options[] = {
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
        {.name = "spacing", .kind = WT_OPTION_NUMBER, .value = &e->spacing, .argument = "X", .min = 1e-9, .max = 1e9, .help = "of the samples to savgol's derivatives, 1"},
        {.name = "coefficient", .kind = WT_OPTION_NUMBER, .value = &e->coefficient, .argument = "C", .min = 0.001, .max = 0.9999, .help = "of preemphasis and deemphasis, 0.97"},
        {.name = "impulse", .kind = WT_OPTION_TEXT, .value = &e->impulse, .argument = "FILE", .help = "what convolve convolves with"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Echo, level, noise.
static void level_options(analyze_arguments *a, option_table *table)
{
    analyze_effect_options *e = &a->options.effect;
    const wt_option options[] = {
        {.name = "playback", .kind = WT_OPTION_TEXT, .value = &e->playback, .argument = "FILE", .help = "what echo_cancel takes the echo of"},
        {.name = "tail", .kind = WT_OPTION_NUMBER, .value = &e->tail_ms, .argument = "MS", .min = 10, .max = 2000, .help = "longest echo, 256"},
        {.name = "target", .kind = WT_OPTION_NUMBER, .value = &e->target_db, .argument = "DB", .min = -100, .max = -0.01, .help = "of normalize, -23 LUFS, RMS -20 or peak 0, of agc, -20"},
        {.name = "by", .kind = WT_OPTION_TEXT, .value = &a->by, .argument = "NAME", .help = "what normalize measures: loudness, rms or peak; loudness if left out"},
        {.name = "ceiling", .kind = WT_OPTION_NUMBER, .value = &e->ceiling_db, .argument = "DB", .min = -100, .max = 100, .help = "that no peak passes, by loudness or RMS, 0"},
        {.name = "max-gain", .kind = WT_OPTION_NUMBER, .value = &e->max_gain_db, .argument = "DB", .min = 0.01, .max = 60, .help = "of agc, 24"},
        {.name = "denoiser", .kind = WT_OPTION_TEXT, .value = &a->denoiser, .argument = "NAME", .help = "lsa, wiener or gate; lsa if left out"},
        {.name = "noise", .kind = WT_OPTION_TEXT, .value = &a->noise, .argument = "S,S", .help = "where a file has noise alone, for denoise to learn; tracked if left out"},
        {.name = "max-cut", .kind = WT_OPTION_NUMBER, .value = &e->max_cut_db, .argument = "DB", .min = 1, .max = 100, .help = "most that denoise turns a bin down, 30"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Tempo and beats.
static void rhythm_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "bpm", .kind = WT_OPTION_NUMBER, .value = &o->bpm, .argument = "BPM", .min = 1, .max = 1000, .help = "known tempo of the beats"},
        {.name = "start-bpm", .kind = WT_OPTION_NUMBER, .value = &t->tempo.start_bpm, .argument = "BPM", .min = 1, .max = 1000, .help = "tempo that is likeliest before anything is heard, 120"},
        {.name = "std-bpm", .kind = WT_OPTION_NUMBER, .value = &t->tempo.std_bpm, .argument = "X", .min = 0.001, .max = 100, .help = "octaves that tempi spread about it, 1"},
        {.name = "max-tempo", .kind = WT_OPTION_NUMBER, .value = &t->tempo.max_bpm, .argument = "BPM", .min = 1, .max = 10000, .help = "fastest of tempo, tempos and beats, 320"},
        {.name = "ac-size", .kind = WT_OPTION_NUMBER, .value = &t->tempo.ac_size_s, .argument = "S", .min = 0.01, .max = 1000, .help = "that tempi are looked for in, 8"},
        {.name = "tightness", .kind = WT_OPTION_NUMBER, .value = &t->beat.tightness, .argument = "X", .min = 1e-6, .max = 1e9, .help = "of beats to their tempo, 100"},
        {.name = "no-trim", .kind = WT_OPTION_FLAG, .value = &t->beat.no_trim, .help = "keep weak beats at both ends"},
        {.name = "tempogram-length", .kind = WT_OPTION_INT, .value = &t->tempogram_length, .argument = "N", .min = 3, .max = 65536, .help = "frames that tempograms and plp look at, 384"},
        {.name = "tempo-min", .kind = WT_OPTION_NUMBER, .value = &t->plp.min_bpm, .argument = "BPM", .min = 1e-3, .max = 10000, .help = "slowest pulse of plp, 30"},
        {.name = "tempo-max", .kind = WT_OPTION_NUMBER, .value = &t->plp.max_bpm, .argument = "BPM", .min = 1e-3, .max = 10000, .help = "its fastest, 300"},
        {.name = "fine", .kind = WT_OPTION_FLAG, .value = &o->fine, .help = "tempi between the lags of frames, to 0.1 BPM"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Pitch, voice activity, loudness, silence.
static void voice_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "calibrated", .kind = WT_OPTION_FLAG, .value = &o->calibrated, .help = "pyin: voiced only where the frame's middle repeats"},
        {.name = "trough-threshold", .kind = WT_OPTION_NUMBER, .value = &t->yin.trough_threshold, .argument = "X", .min = 1e-9, .max = 10, .help = "of yin, 0.1"},
        {.name = "n-thresholds", .kind = WT_OPTION_INT, .value = &t->pyin.n_thresholds, .argument = "N", .min = 1, .max = 10000, .help = "of pyin, 100"},
        {.name = "beta-parameters", .kind = WT_OPTION_TEXT, .value = &a->beta, .argument = "A,B", .help = "of the prior of these, 2,18"},
        {.name = "boltzmann-parameter", .kind = WT_OPTION_NUMBER, .value = &t->pyin.boltzmann, .argument = "X", .min = 1e-6, .max = 1000, .help = "of the prior of pyin's troughs, 2"},
        {.name = "max-transition-rate", .kind = WT_OPTION_NUMBER, .value = &t->pyin.max_transition_rate, .argument = "X", .min = 1e-3, .max = 1e6, .help = "octaves a second of pyin, 35.92"},
        {.name = "switch-prob", .kind = WT_OPTION_NUMBER, .value = &t->pyin.switch_prob, .argument = "X", .min = 1e-12, .max = 1, .help = "of voiced to unvoiced and back, 0.01"},
        {.name = "no-trough-prob", .kind = WT_OPTION_NUMBER, .value = &t->pyin.no_trough_prob, .argument = "X", .min = 1e-12, .max = 1, .help = "of the lowest trough when none is below the threshold, 0.01"},
        {.name = "keep-unvoiced", .kind = WT_OPTION_FLAG, .value = &t->pyin.keep_unvoiced, .help = "f0 of unvoiced frames too, not NaN"},
        {.name = "vad-enter", .kind = WT_OPTION_NUMBER, .value = &t->vad.enter_db, .argument = "DB", .min = 0.1, .max = 60, .help = "above the floor speech begins, 8"},
        {.name = "vad-leave", .kind = WT_OPTION_NUMBER, .value = &t->vad.leave_db, .argument = "DB", .min = 0.1, .max = 60, .help = "above it speech goes on, 4"},
        {.name = "vad-min", .kind = WT_OPTION_NUMBER, .value = &t->vad.min_db, .argument = "DB", .min = -200, .max = -0.01, .help = "what is quieter is never speech, -60"},
        {.name = "hangover", .kind = WT_OPTION_NUMBER, .value = &t->vad.hangover_ms, .argument = "MS", .min = 0.001, .max = 10000, .help = "that speech goes on after it, 200"},
        {.name = "dual-mono", .kind = WT_OPTION_FLAG, .value = &t->loudness.dual_mono, .help = "loudness, also normalize's, of one channel that two loudspeakers play"},
        {.name = "no-true-peak", .kind = WT_OPTION_FLAG, .value = &t->loudness.no_true_peak, .help = "loudness by samples alone: the true peak is theirs, also of normalize's ceiling"},
        {.name = "top-db", .kind = WT_OPTION_NUMBER, .value = &o->top_db, .argument = "DB", .min = 0.1, .max = 1000, .help = "below the loudest, of trim and split, 60: what is silent; of logmel, mfcc and spectrogram_db, 80: the least"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Onsets.
static void onset_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        {.name = "backtrack", .kind = WT_OPTION_FLAG, .value = &o->backtrack, .help = "move onsets back to the quiet before them"},
        {.name = "lag", .kind = WT_OPTION_INT, .value = &t->onset.lag, .argument = "N", .min = 1, .max = 10000, .help = "frames that onset strength compares over, 1"},
        {.name = "max-size", .kind = WT_OPTION_INT, .value = &t->onset.max_size, .argument = "N", .min = 1, .max = 10000, .help = "bands whose largest onset strength compares with (3 = SuperFlux), and pcen divides by, 1"},
        {.name = "detrend", .kind = WT_OPTION_FLAG, .value = &t->onset.detrend, .help = "onset strength without its slow part"},
        {.name = "pre-max", .kind = WT_OPTION_INT, .value = &t->peaks.pre_max, .argument = "N", .min = 0, .max = 100000, .help = "frames before an onset that are lower, 30 ms"},
        {.name = "post-max", .kind = WT_OPTION_INT, .value = &t->peaks.post_max, .argument = "N", .min = 1, .max = 100000, .help = "from it on, with it, 1"},
        {.name = "pre-avg", .kind = WT_OPTION_INT, .value = &t->peaks.pre_avg, .argument = "N", .min = 0, .max = 100000, .help = "frames before an onset whose mean it is above, 100 ms"},
        {.name = "post-avg", .kind = WT_OPTION_INT, .value = &t->peaks.post_avg, .argument = "N", .min = 1, .max = 100000, .help = "from it on, with it, 100 ms and 1"},
        {.name = "wait", .kind = WT_OPTION_INT, .value = &t->peaks.wait, .argument = "N", .min = 0, .max = 100000, .help = "frames without another onset, 30 ms"},
        {.name = "delta", .kind = WT_OPTION_NUMBER, .value = &t->peaks.delta, .argument = "X", .min = 0, .max = 1e9, .help = "that it is above the mean, 0.07"},
        {.name = "no-normalize", .kind = WT_OPTION_FLAG, .value = &t->no_normalize, .help = "onsets of the strength as it is, not scaled to 0 .. 1"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Pictures and the run.
static void run_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    const wt_option options[] = {
        {.name = "width", .kind = WT_OPTION_INT, .value = &o->width, .argument = "PIXELS", .min = 600, .max = 32768, .help = "of pictures, 1600"},
        {.name = "height", .kind = WT_OPTION_INT, .value = &o->height, .argument = "PIXELS", .min = 200, .max = 4000, .help = "of each panel of a picture, 420"},
        {.name = "jobs", .letter = 'j', .kind = WT_OPTION_INT, .value = &o->n_jobs, .argument = "N", .min = 1, .max = 1024, .help = "worker threads; one per processor if left out, with a GPU 16 at most"},
        {.name = "tile", .kind = WT_OPTION_INT, .value = &o->tile, .argument = "SAMPLES", .min = 1, .max = 1 << 24, .help = "samples worked on at once where features allow it, 4194304"},
        {.name = "backend", .kind = WT_OPTION_TEXT, .value = &a->backend, .argument = "WHICH", .help = "auto, cuda or cpu"},
        {.name = "resume", .kind = WT_OPTION_FLAG, .value = &a->resume, .help = "skip files whose output is there and not older"},
        {.name = "json", .kind = WT_OPTION_FLAG, .value = &a->json, .help = "a summary as JSON on standard output"},
        {.name = "quiet", .letter = 'q', .kind = WT_OPTION_FLAG, .value = &a->quiet, .help = "only errors"},
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}
// clang-format on

int analyze_options_table(analyze_arguments *a, const wt_option **table)
{
    static option_table kept;
    analyze_settings *t = &a->options.ops;
    a->fmin_hz = a->gamma_hz = a->octwidth = a->momentum = -1, a->tuning = NAN;
    a->options.effect.polynomial = t->shape.order = -1, t->reassigned.ref_power = -1;
    t->pcen = wt_pcen_defaults();
    t->peaks = (wt_peak_config){-1, -1, -1, -1, -1, -1};
    kept.n = 0;
    frame_options(a, &kept);
    mel_options(a, &kept);
    tonal_options(a, &kept);
    shape_options(a, &kept);
    separation_options(a, &kept);
    time_options(a, &kept);
    filter_options(a, &kept);
    level_options(a, &kept);
    rhythm_options(a, &kept);
    voice_options(a, &kept);
    onset_options(a, &kept);
    run_options(a, &kept);
    *table = kept.options;
    return kept.n;
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

/// Numbers from 0 on, or fractions as 9/8, up to `most` of them into `values`.
static wt_status read_numbers(const char *option, const char *text, const char *want, double *values, int most, int *n)
{
    const char *at = text;
    char *end;
    for (*n = 0; *n < most; at = end + 1) {
        double value = strtod(at, &end);
        if (end == at) break;
        if (*end == '/') {
            const char *by = end + 1;
            value /= strtod(by, &end);
            if (end == by) break;
        }
        if (!(value >= 0 && value <= 1e9)) break;
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
    wt_status status = read_numbers("noise", text, "a begin and an end in seconds, as 0,0.5", noise_s, 2, &n);
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
    static const char *const dct_norms[] = {"ortho", "none", NULL}, *const modes[] = {"full", "hybrid", NULL};
    static const char *const delta_modes[] = {"interp", "nearest", "mirror", "constant", NULL};
    static const char *const filter_norms[] = {"1", "2", "inf", "none", NULL};
    static const char *const frame_norms[] = {"inf", "1", "2", "none", NULL}, *const inits[] = {"random", "zero", NULL};
    int vocoder, quality, family, band, design, by, denoiser, distance, aggregate, window, padding, norm, solver,
        dct_norm, mode, delta_mode, filter_norm, frame_norm, init;
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
        {"solver", a->solver, solvers, &solver},          {"dct-norm", a->dct_norm, dct_norms, &dct_norm},
        {"delta-mode", a->delta_mode, delta_modes, &delta_mode}, {"cqt-mode", a->cqt_mode, modes, &mode},
        {"filter-norm", a->filter_norm, filter_norms, &filter_norm}, {"norm", a->norm, frame_norms, &frame_norm},
        {"init", a->init, inits, &init},
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
    analyze_settings *t = &o->ops;
    t->aggregate = !a->aggregate ? ANALYZE_AGGREGATE_OWN
                   : aggregate   ? ANALYZE_AGGREGATE_MEDIAN
                                 : ANALYZE_AGGREGATE_MEAN;
    t->no_dct_norm = dct_norm, t->delta.mode = (wt_delta_mode)delta_mode;
    t->cqt.norm = (wt_cqt_norm)filter_norm, t->by_hybrid = mode;
    t->chroma.norm = (wt_chroma_norm)frame_norm, t->has_norm = a->norm;
    t->phases.zero_phase = init;
    return WT_OK;
}

// ---- lists, and numbers of which 0 is one

static bool is_wanted(const analyze_options *o, const char *name)
{
    for (int k = 0; k < o->n_features; k++)
        if (!strcmp(o->features[k]->name, name) || (o->features[k]->of && !strcmp(o->features[k]->of->name, name)))
            return true;
    return false;
}

static wt_status choose_ref(const char *text, wt_db_config *db)
{
    char *end;
    if (text && !strcmp(text, "max")) {
        db->reference = WT_DB_REF_MAX;
    } else if (text) {
        db->ref = strtod(text, &end);
        if (end == text || *end || !(db->ref >= 1e-30 && db->ref <= 1e30))
            return wt_fail(WT_ERR_BAD_ARG, "--ref \"%s\", want a power in 1e-30..1e30, or max", text);
    }
    return WT_OK;
}

static wt_status choose_fill(const char *text, double *fill)
{
    char *end;
    if (!text) return WT_OK;
    *fill = strtod(text, &end);
    return end > text && !*end && !isinf(*fill)
               ? WT_OK
               : wt_fail(WT_ERR_BAD_ARG, "--fill-value \"%s\", want a number or nan", text);
}

/// Sections of an octave are as many as ratios.
static wt_status choose_intervals(const char *text, const analyze_options *o, analyze_settings *t)
{
    static const char *const want = "up to 64 ascending ratios from 1 to below 2, as 1,9/8,5/4,3/2";
    if (!text) return WT_OK;
    wt_status status = read_numbers("intervals", text, want, t->intervals, ANALYZE_MAX_LIST, &t->n_intervals);
    for (int k = 0; k < t->n_intervals && !status; k++)
        if (!(t->intervals[k] >= 1 && t->intervals[k] < 2 && (k == 0 || t->intervals[k] > t->intervals[k - 1])))
            status = wt_fail(WT_ERR_BAD_ARG, "--intervals \"%s\", want %s", text, want);
    if (!status && o->bins_per_octave && o->bins_per_octave != t->n_intervals)
        status = wt_fail(WT_ERR_BAD_ARG, "--intervals are %d, want --bins-per-octave %d of them", t->n_intervals,
                         o->bins_per_octave);
    return status;
}

/// Harmonics of salience, and the weights of these or of fir's bands.
static wt_status choose_harmonics(const analyze_arguments *a, const analyze_options *o, analyze_settings *t)
{
    wt_status status = WT_OK;
    if (a->harmonics)
        status = read_numbers("harmonics", a->harmonics, "up to 64 multiples above 0, as 1,2,3", t->harmonics,
                              ANALYZE_MAX_LIST, &t->n_harmonics);
    for (int k = 0; k < t->n_harmonics && !status; k++)
        if (!(t->harmonics[k] > 0))
            status = wt_fail(WT_ERR_BAD_ARG, "--harmonics \"%s\", want multiples above 0", a->harmonics);
    if (!status && a->weights)
        status = read_numbers("weights", a->weights, "up to 64 numbers from 0 on, as 1,0.5", t->weights,
                              ANALYZE_MAX_LIST, &t->n_weights);
    if (status || !a->weights) return status;
    const int n_harmonics = t->n_harmonics ? t->n_harmonics : 4, n_bands = o->effect.n_edges + 1;
    if (is_wanted(o, "salience") && t->n_weights != n_harmonics)
        return wt_fail(WT_ERR_BAD_ARG, "--weights are %d, salience wants one of each of %d harmonics", t->n_weights,
                       n_harmonics);
    if (is_wanted(o, "fir") && t->n_weights != n_bands)
        return wt_fail(WT_ERR_BAD_ARG, "--weights are %d, fir wants one of each of %d bands", t->n_weights, n_bands);
    return WT_OK;
}

static wt_status choose_beta(const char *text, wt_pyin_config *pyin)
{
    static const char *const want = "two numbers above 0, as 2,18";
    double ab[2];
    int n;
    if (!text) return WT_OK;
    wt_status status = read_numbers("beta-parameters", text, want, ab, 2, &n);
    if (!status && (n < 2 || !(ab[0] > 0 && ab[1] > 0)))
        status = wt_fail(WT_ERR_BAD_ARG, "--beta-parameters \"%s\", want %s", text, want);
    if (!status) pyin->beta_a = ab[0], pyin->beta_b = ab[1];
    return status;
}

/// Taps have windows of their own, of which spectra have more.
static wt_status choose_fir_window(const analyze_arguments *a, analyze_options *o)
{
    static const int of_fir[] = {
        [WT_WINDOW_HANN] = WT_FIR_HANN,     [WT_WINDOW_HAMMING] = WT_FIR_HAMMING, [WT_WINDOW_BLACKMAN] = WT_FIR_BLACKMAN,
        [WT_WINDOW_BLACKMAN_HARRIS] = -1,   [WT_WINDOW_KAISER] = WT_FIR_KAISER,   [WT_WINDOW_GAUSSIAN] = -1,
        [WT_WINDOW_FLAT_TOP] = -1,          [WT_WINDOW_RECTANGULAR] = WT_FIR_RECTANGULAR,
    };
    const int window = a->window ? of_fir[o->window.kind] : WT_FIR_HAMMING;
    if (window >= 0) o->effect.fir_window = (wt_fir_window_kind)window;
    else if (is_wanted(o, "fir"))
        return wt_fail(WT_ERR_BAD_ARG, "--window %s, fir wants hamming, hann, blackman, kaiser or rectangular",
                       a->window);
    return WT_OK;
}

static wt_status choose_numbers(const analyze_arguments *a, analyze_options *o)
{
    analyze_settings *t = &o->ops;
    t->tuned = !isnan(a->tuning), t->cqt.tuning = t->tuned ? a->tuning : 0;
    t->has_gamma = a->gamma_hz >= 0, t->cqt.gamma_hz = t->has_gamma ? a->gamma_hz : 0;
    t->chroma.octave_width = a->octwidth < 0 ? 0 : a->octwidth > 0 ? a->octwidth : -1;
    t->phases.momentum = a->momentum > 0 ? a->momentum : 0;
    t->reassigned.keep_all = t->reassigned.ref_power >= 0 && !(t->reassigned.ref_power > 0);
    if (!(t->reassigned.ref_power > 0)) t->reassigned.ref_power = 0;
    t->phases.no_momentum = a->momentum >= 0 && !(a->momentum > 0);
    wt_status status = choose_ref(a->ref, &t->db);
    if (!status) status = choose_fill(a->fill_value, &t->fill);
    if (!status) status = choose_intervals(a->intervals, o, t);
    if (!status) status = choose_harmonics(a, o, t);
    if (!status) status = choose_beta(a->beta, &t->pyin);
    return status ? status : choose_fir_window(a, o);
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
        status = read_numbers("edges", a->edges, "one frequency in Hz, or two as 300,3400", e->edges_hz, 2,
                              &e->n_edges);
    if (!status) status = choose_noise(a->noise, e->noise_s);
    if (!status) status = choose_numbers(a, &a->options);
    return status ? status : choose_fmin(a, &a->options);
}
