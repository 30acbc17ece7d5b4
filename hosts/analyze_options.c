// The command line of `warptone analyze`: what may be said. analyze_choices.c knows what it means.

#include "analyze_options.h"

#include <math.h>
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

/// What is computed, from which samples and frames.
static void frame_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    const wt_option options[] = {
        OPTION_TEXT("features", 'f', &a->features, "NAME,...",
                    "what to compute, from the list above; NAME_delta, NAME_delta2 for slopes"),
        OPTION_TEXT("format", 0, &a->format, "EXT",
                    "npy, npz, csv, json, png; wav, flac ... for audio; by OUT's name, npz in folders"),
        OPTION_INT("rate", 0, &o->rate_hz, "HZ", 0, WT_AUDIO_MAX_RATE_HZ,
                   "resample to this rate first, 22050 if left out; 0 = the file's"),
        OPTION_TEXT("quality", 0, &a->quality, "NAME", "of that: best, fast, soxr_hq or polyphase; best if left out"),
        OPTION_FLAG("channels", 0, &o->keep_channels, "each channel by itself, not their mean"),
        OPTION_INT("n-fft", 0, &o->n_fft, "N", 2, 1 << 20, "samples of a frame, 2048"),
        OPTION_INT("hop", 0, &o->hop, "N", 1, 1 << 20, "samples from frame to frame, 512"),
        OPTION_INT("win-length", 0, &o->win_length, "N", 1, 1 << 20, "samples of the window, as n-fft"),
        OPTION_TEXT("window", 0, &a->window, "NAME",
                    "of spectra, cqt and fir: hann, hamming, blackman, blackman_harris, kaiser, gaussian, flat_top, "
                    "rectangular or, of spectra, custom; hann if left out, of fir hamming"),
        OPTION_NUMBER("window-parameter", 0, &o->window.parameter, "X", 0.001, 1e6,
                      "kaiser's beta; gaussian's deviation in samples"),
        OPTION_TEXT("window-file", 0, &a->window_file, "FILE", "the samples of a custom one, as audio of any rate"),
        OPTION_TEXT("padding", 0, &a->padding, "NAME",
                    "what frames see beyond the signal: zero, reflect, symmetric, edge or ramp; zero if left out"),
        OPTION_FLAG(
            "no-center", 0, &o->no_center,
            "frame t begins at t hops instead of being centred there; onset strength is not moved by half a frame"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Mel bands, decibels, cepstra, slopes, PCEN.
static void mel_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_INT("n-mels", 0, &o->n_mels, "N", 1, WT_MEL_MAX_MELS, "mel bands, 128"),
        OPTION_FLAG("htk", 0, &o->htk, "mel bands on HTK's scale, not Slaney's"),
        OPTION_TEXT("mel-norm", 0, &a->mel_norm, "NAME", "of mel bands: slaney, none, 1, 2 or inf; slaney if left out"),
        OPTION_NUMBER("power", 0, &t->mel_power, "X", 0.001, 100, "of magnitudes in mel bands and in flatness, 2"),
        OPTION_TEXT("ref", 0, &a->ref, "X",
                    "the power that is 0 dB in logmel, mfcc and spectrogram_db, or max; 1 if left out"),
        OPTION_NUMBER("amin", 0, &t->db.amin, "X", 1e-37, 1e30, "least power in these and in flatness, 1e-10"),
        OPTION_INT("dct-type", 0, &o->dct_type, "N", 1, 3, "of mfcc, 2"),
        OPTION_TEXT("dct-norm", 0, &a->dct_norm, "NAME", "of mfcc: ortho or none; ortho if left out"),
        OPTION_NUMBER("lifter", 0, &o->lifter, "L", 0, 1e6, "of mfcc, 0 = none"),
        OPTION_INT("n-mfcc", 0, &o->n_mfcc, "N", 1, WT_MEL_MAX_MELS, "coefficients, 20"),
        OPTION_INT("delta-width", 0, &t->delta.width, "N", 3, 1023, "frames of slopes, an odd number, 9"),
        OPTION_TEXT("delta-mode", 0, &a->delta_mode, "NAME",
                    "what slopes see beyond the ends: interp, nearest, mirror, constant or wrap; interp if left out"),
        OPTION_NUMBER("delta-cval", 0, &t->delta.constant, "X", -1e30, 1e30, "that constant, 0"),
        OPTION_NUMBER("pcen-gain", 0, &t->pcen.gain, "X", 0, 1000, "of pcen, 0.98"),
        OPTION_NUMBER("pcen-bias", 0, &t->pcen.bias, "X", 0, 1e9, "of pcen, 2"),
        OPTION_NUMBER("pcen-power", 0, &t->pcen.power, "X", 0, 100, "of pcen, 0.5; 0 = logarithm"),
        OPTION_NUMBER("time-constant", 0, &t->pcen.time_constant_s, "S", 1e-6, 1e6, "of pcen, 0.4"),
        OPTION_NUMBER("eps", 0, &t->pcen.eps, "X", 1e-30, 1e12, "of pcen, 1e-6"),
        OPTION_NUMBER("pcen-b", 0, &t->pcen.b, "X", 1e-9, 1,
                      "its smoother's coefficient, by the time constant if left out"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Constant-Q and chroma; the ends of frequency, which others have too.
static void tonal_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_INT("n-bins", 0, &o->n_bins, "N", 1, 4096, "bins of the constant-Q transform, 84"),
        OPTION_INT("bins-per-octave", 0, &o->bins_per_octave, "N", 1, 4096,
                   "of the constant-Q transform, 12, of the chromas from it, 36, of pitch_shift's steps, 12"),
        OPTION_NUMBER("filter-scale", 0, &t->cqt.filter_scale, "X", 0.001, 1000,
                      "of cqt and its kind, 1; below 1 filters are shorter"),
        OPTION_TEXT("filter-norm", 0, &a->filter_norm, "NAME", "of their filters: 1, 2, inf or none; 1 if left out"),
        OPTION_NUMBER("sparsity", 0, &t->cqt.sparsity, "X", 1e-9, 0.999,
                      "share of their filters that is left out, 0.01"),
        OPTION_FLAG("no-scale", 0, &t->no_scale, "their bins by the filters' lengths; fir by a window without gain 1"),
        OPTION_NUMBER("tuning", 0, &a->tuning, "BINS", -1000, 1000,
                      "of cqt and its kind, 0; of chromas, estimated if left out"),
        OPTION_NUMBER("gamma", 0, &a->gamma_hz, "HZ", 0, 1e6,
                      "bandwidth that vqt's filters have beside, as hearing has it if left out; 0 = cqt"),
        OPTION_TEXT("intervals", 0, &a->intervals, "X,...",
                    "vqt's bins in an octave: ratios from 1 to 2, as 1,9/8,5/4,3/2"),
        OPTION_INT("slice", 0, &t->slice, "N", 256, 1 << 22, "samples of nsgt's slices, an even number, 65536"),
        OPTION_INT("n-chroma", 0, &o->n_chroma, "N", 1, 1024, "pitch classes, 12"),
        OPTION_TEXT("norm", 0, &a->norm, "NAME",
                    "of chroma's frames: inf, 1, 2 or none; inf if left out, of chroma_cens 2"),
        OPTION_NUMBER("ctroct", 0, &t->chroma.centre_octave, "X", 0.001, 20, "octave that weighs most in chroma, 5"),
        OPTION_NUMBER("octwidth", 0, &a->octwidth, "X", 0, 1000, "width of those weights, 2 octaves; 0 = none"),
        OPTION_FLAG("base-a", 0, &t->chroma.begin_at_a, "chroma's row 0 is A, not C"),
        OPTION_INT("n-octaves", 0, &t->n_octaves, "N", 1, 20,
                   "that chroma_cqt, chroma_cens and tonnetz are folded from, 7"),
        OPTION_TEXT("cqt-mode", 0, &a->cqt_mode, "NAME", "what these are made of: full or hybrid; full if left out"),
        OPTION_INT("win-len-smooth", 0, &t->smooth, "N", 1, 100000, "frames that chroma_cens smooths over, 41"),
        OPTION_NUMBER(
            "threshold", 0, &t->threshold, "X", 1e-9, 1000,
            "what is below it: of piptrack and tuning no peak, 0.1 of the frame's largest; of chroma_cqt nothing, 0"),
        OPTION_NUMBER("resolution", 0, &t->resolution, "X", 1e-4, 1,
                      "steps of tuning, 0.01, and of pyin's pitches, 0.1 semitones"),
        OPTION_NUMBER("fmin", 0, &a->fmin_hz, "HZ", 0, 384000,
                      "lowest frequency: mel 0, constant-Q C1, pitch C2, contrast 200"),
        OPTION_NUMBER("fmax", 0, &o->fmax_hz, "HZ", 0.001, 384000, "highest: mel half the rate, pitch C7"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// The shape of spectra.
static void shape_options(analyze_arguments *a, option_table *table)
{
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_NUMBER("roll-percent", 0, &t->shape.percent, "X", 1e-6, 0.999999, "share that lies below rolloff, 0.85"),
        OPTION_NUMBER("p", 0, &t->shape.p, "X", 0.001, 100, "exponent of bandwidth, 2"),
        OPTION_FLAG("no-norm", 0, &t->no_norm, "bandwidth by magnitudes as they are, tempogram's rows likewise"),
        OPTION_INT("n-bands", 0, &t->shape.contrast.n_bands, "N", 1, 32, "octaves of contrast, 6"),
        OPTION_NUMBER("quantile", 0, &t->shape.contrast.quantile, "X", 1e-6, 0.999999,
                      "share of a band that is contrast's peak and valley, 0.02"),
        OPTION_FLAG("linear", 0, &t->shape.contrast.linear, "contrast as a difference, not in dB"),
        OPTION_INT("poly-order", 0, &t->shape.order, "N", 0, 10, "of poly, 1"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Medians, neighbours, salience, reassignment, harmonic and percussive parts.
static void separation_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_INT("kernel", 0, &o->kernel, "N", 1, 1 << 20,
                   "of median, 5 samples; of hpss and median_spectrogram, 31 frames"),
        OPTION_INT("kernel-bins", 0, &o->kernel_bins, "N", 1, 1 << 20, "of hpss, 31, of median_spectrogram, 1"),
        OPTION_NUMBER("mask-power", 0, &o->mask_power, "X", 0.001, 1000, "of hpss, 2"),
        OPTION_FLAG("hard-masks", 0, &o->hard_masks, "of hpss: each bin is the one's or the other's"),
        OPTION_INT("neighbours", 0, &o->neighbours.k, "N", 1, 1 << 20, "of nn_filter, 2 sqrt(frames)"),
        OPTION_INT("apart", 0, &o->neighbours.width, "N", 1, 1 << 20, "frames between neighbours, 1"),
        OPTION_TEXT("distance", 0, &a->distance, "NAME", "of neighbours: euclidean or cosine; euclidean if left out"),
        OPTION_TEXT("aggregate", 0, &a->aggregate, "NAME",
                    "mean or median: what a frame is of its neighbours, mean, onset strength of its bands, mean, for "
                    "beats median"),
        OPTION_FLAG("mutual", 0, &o->neighbours.symmetric, "only neighbours of each other"),
        OPTION_INT("max-lags", 0, &o->max_lags, "N", 1, 1 << 21, "of autocorrelation, all"),
        OPTION_TEXT("harmonics", 0, &a->harmonics, "X,...", "of salience, 1,2,3,4"),
        OPTION_TEXT("weights", 0, &a->weights, "X,...",
                    "of those, 1,0.45,0.33,0.25, or 1 each; of fir's bands, 1 each"),
        OPTION_FLAG("all-bins", 0, &t->all_bins, "salience also where no peak is"),
        OPTION_TEXT("fill-value", 0, &a->fill_value, "X",
                    "what stands there in salience: a number or nan; 0 if left out"),
        OPTION_NUMBER("ref-power", 0, &t->reassigned.ref_power, "X", 0, 1e30,
                      "bins of reassigned below it have no frequency, 1e-6; 0 = all have"),
        OPTION_FLAG("fill-nan", 0, &t->reassigned.fill_nan, "those have their bin's frequency and time, not NaN"),
        OPTION_FLAG("no-clip", 0, &t->reassigned.no_clip, "reassigned beyond half the rate and the signal's ends"),
        OPTION_NUMBER("margin", 0, &o->margin, "X", 1, 1000, "of hpss, 1; above it each part takes less"),
        OPTION_NUMBER("margin-percussive", 0, &t->margin_percussive, "X", 1, 1000,
                      "of the percussive part alone, as margin"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Stretches, shifts, and what iterates.
static void time_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_NUMBER("speed", 0, &o->speed, "X", 1.0 / 256, 256, "of time_stretch, 1; 2 = half as long"),
        OPTION_NUMBER("steps", 0, &o->steps, "N", -96, 96, "of pitch_shift, in semitones, up when positive"),
        OPTION_TEXT("vocoder", 0, &a->vocoder, "NAME",
                    "of both: transient, locked, librosa or wsola; transient if left out"),
        OPTION_FLAG("keep-formants", 0, &o->keep_formants, "pitch_shift leaves a voice's formants where they are"),
        OPTION_INT("formant-order", 0, &t->shift.formant_order, "N", 1, 100000,
                   "its envelope rests on peaks rate / 2N apart; on the harmonics if left out"),
        OPTION_FLAG("scale", 0, &t->shift.scale, "pitch_shift keeps the energy, not the amplitude"),
        OPTION_INT("components", 0, &o->n_components, "N", 1, 4096, "of nmf, 8"),
        OPTION_TEXT("solver", 0, &a->solver, "NAME", "of nmf: cd, multiplicative or multiplicative_kl; cd if left out"),
        OPTION_INT("iterations", 0, &o->n_iter, "N", 1, 1 << 20,
                   "of nmf, 200, of griffin_lim, mel_to_audio and mfcc_to_audio, 32"),
        OPTION_INT("seed", 0, &o->seed, "N", 0, 2147483647, "of what these begin with, 0"),
        OPTION_TEXT("init", 0, &a->init, "NAME",
                    "phases that griffin_lim begins with: random or zero; random if left out"),
        OPTION_NUMBER("momentum", 0, &a->momentum, "X", 0, 1, "of griffin_lim, 0.99; 0 = Griffin and Lim's original"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Filters and their design.
static void filter_options(analyze_arguments *a, option_table *table)
{
    analyze_effect_options *e = &a->options.effect;
    const wt_option options[] = {
        OPTION_TEXT("edges", 0, &a->edges, "HZ[,HZ]", "of filter, filtfilt and fir: one, or the two of a band"),
        OPTION_TEXT("band", 0, &a->band, "NAME", "what they let through: low, high, pass or stop; low if left out"),
        OPTION_TEXT("family", 0, &a->family, "NAME",
                    "of filter and filtfilt: butterworth, chebyshev1, chebyshev2, elliptic or bessel"),
        OPTION_INT("order", 0, &e->order, "N", 1, WT_SOS_MAX_ORDER, "of filter and filtfilt, 4"),
        OPTION_NUMBER("ripple", 0, &e->ripple_db, "DB", 0.001, 100, "of chebyshev1 and elliptic, 1"),
        OPTION_NUMBER("attenuation", 0, &e->attenuation_db, "DB", 0.001, 300, "of chebyshev2 and elliptic, 60"),
        OPTION_INT("taps", 0, &e->n_taps, "N", 1, WT_FIR_DESIGN_MAX_TAPS, "of fir, 255, of savgol, 11"),
        OPTION_TEXT("design", 0, &a->design, "NAME", "of fir: window, least_squares or equiripple; window if left out"),
        OPTION_NUMBER("transition", 0, &e->transition_hz, "HZ", 0.001, 384000,
                      "between bands of the last two, 3.3 rates over taps"),
        OPTION_INT("polynomial", 0, &e->polynomial, "N", 0, 20, "degree of savgol's, 3"),
        OPTION_INT("derivative", 0, &e->derivative, "N", 0, 20, "of savgol, 0 = smooth"),
        OPTION_NUMBER("spacing", 0, &e->spacing, "X", 1e-9, 1e9, "of the samples to savgol's derivatives, 1"),
        OPTION_NUMBER("coefficient", 0, &e->coefficient, "C", 0.001, 0.9999, "of preemphasis and deemphasis, 0.97"),
        OPTION_TEXT("impulse", 0, &e->impulse, "FILE", "what convolve convolves with"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Echo, level, noise.
static void level_options(analyze_arguments *a, option_table *table)
{
    analyze_effect_options *e = &a->options.effect;
    const wt_option options[] = {
        OPTION_TEXT("playback", 0, &e->playback, "FILE", "what echo_cancel takes the echo of"),
        OPTION_NUMBER("tail", 0, &e->tail_ms, "MS", 10, 2000, "longest echo, 256"),
        OPTION_NUMBER("target", 0, &e->target_db, "DB", -100, -0.01,
                      "of normalize, -23 LUFS, RMS -20 or peak 0, of agc, -20"),
        OPTION_TEXT("by", 0, &a->by, "NAME", "what normalize measures: loudness, rms or peak; loudness if left out"),
        OPTION_NUMBER("ceiling", 0, &e->ceiling_db, "DB", -100, 100, "that no peak passes, by loudness or RMS, 0"),
        OPTION_NUMBER("max-gain", 0, &e->max_gain_db, "DB", 0.01, 60, "of agc, 24"),
        OPTION_TEXT("denoiser", 0, &a->denoiser, "NAME", "lsa, wiener or gate; lsa if left out"),
        OPTION_TEXT("noise", 0, &a->noise, "S,S",
                    "where a file has noise alone, for denoise to learn; tracked if left out"),
        OPTION_NUMBER("max-cut", 0, &e->max_cut_db, "DB", 1, 100, "most that denoise turns a bin down, 30"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Tempo and beats.
static void rhythm_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_NUMBER("bpm", 0, &o->bpm, "BPM", 1, 1000, "known tempo of the beats"),
        OPTION_NUMBER("start-bpm", 0, &t->tempo.start_bpm, "BPM", 1, 1000,
                      "tempo that is likeliest before anything is heard, 120"),
        OPTION_NUMBER("std-bpm", 0, &t->tempo.std_bpm, "X", 0.001, 100, "octaves that tempi spread about it, 1"),
        OPTION_NUMBER("max-tempo", 0, &t->tempo.max_bpm, "BPM", 1, 10000, "fastest of tempo, tempos and beats, 320"),
        OPTION_NUMBER("ac-size", 0, &t->tempo.ac_size_s, "S", 0.01, 1000, "that tempi are looked for in, 8"),
        OPTION_NUMBER("tightness", 0, &t->beat.tightness, "X", 1e-6, 1e9, "of beats to their tempo, 100"),
        OPTION_FLAG("no-trim", 0, &t->beat.no_trim, "keep weak beats at both ends"),
        OPTION_INT("tempogram-length", 0, &t->tempogram_length, "N", 3, 65536,
                   "frames that tempograms and plp look at, 384"),
        OPTION_NUMBER("tempo-min", 0, &t->plp.min_bpm, "BPM", 1e-3, 10000, "slowest pulse of plp, 30"),
        OPTION_NUMBER("tempo-max", 0, &t->plp.max_bpm, "BPM", 1e-3, 10000, "its fastest, 300"),
        OPTION_FLAG("fine", 0, &o->fine, "tempi between the lags of frames, to 0.1 BPM"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Pitch, voice activity, loudness, silence.
static void voice_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_FLAG("calibrated", 0, &o->calibrated, "pyin: voiced only where the frame's middle repeats"),
        OPTION_NUMBER("trough-threshold", 0, &t->yin.trough_threshold, "X", 1e-9, 10, "of yin, 0.1"),
        OPTION_INT("n-thresholds", 0, &t->pyin.n_thresholds, "N", 1, 10000, "of pyin, 100"),
        OPTION_TEXT("beta-parameters", 0, &a->beta, "A,B", "of the prior of these, 2,18"),
        OPTION_NUMBER("boltzmann-parameter", 0, &t->pyin.boltzmann, "X", 1e-6, 1000,
                      "of the prior of pyin's troughs, 2"),
        OPTION_NUMBER("max-transition-rate", 0, &t->pyin.max_transition_rate, "X", 1e-3, 1e6,
                      "octaves a second of pyin, 35.92"),
        OPTION_NUMBER("switch-prob", 0, &t->pyin.switch_prob, "X", 1e-12, 1, "of voiced to unvoiced and back, 0.01"),
        OPTION_NUMBER("no-trough-prob", 0, &t->pyin.no_trough_prob, "X", 1e-12, 1,
                      "of the lowest trough when none is below the threshold, 0.01"),
        OPTION_FLAG("keep-unvoiced", 0, &t->pyin.keep_unvoiced, "f0 of unvoiced frames too, not NaN"),
        OPTION_NUMBER("vad-enter", 0, &t->vad.enter_db, "DB", 0.1, 60, "above the floor speech begins, 8"),
        OPTION_NUMBER("vad-leave", 0, &t->vad.leave_db, "DB", 0.1, 60, "above it speech goes on, 4"),
        OPTION_NUMBER("vad-min", 0, &t->vad.min_db, "DB", -200, -0.01, "what is quieter is never speech, -60"),
        OPTION_NUMBER("hangover", 0, &t->vad.hangover_ms, "MS", 0.001, 10000, "that speech goes on after it, 200"),
        OPTION_FLAG("dual-mono", 0, &t->loudness.dual_mono,
                    "loudness, also normalize's, of one channel that two loudspeakers play"),
        OPTION_FLAG("no-true-peak", 0, &t->loudness.no_true_peak,
                    "loudness by samples alone: the true peak is theirs, also of normalize's ceiling"),
        OPTION_NUMBER("top-db", 0, &o->top_db, "DB", 0.1, 1000,
                      "below the loudest, of trim and split, 60: what is silent; of logmel, mfcc and spectrogram_db, "
                      "80: the least"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Onsets.
static void onset_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    analyze_settings *t = &a->options.ops;
    const wt_option options[] = {
        OPTION_FLAG("backtrack", 0, &o->backtrack, "move onsets back to the quiet before them"),
        OPTION_INT("lag", 0, &t->onset.lag, "N", 1, 10000, "frames that onset strength compares over, 1"),
        OPTION_INT("max-size", 0, &t->onset.max_size, "N", 1, 10000,
                   "bands whose largest onset strength compares with (3 = SuperFlux), and pcen divides by, 1"),
        OPTION_FLAG("detrend", 0, &t->onset.detrend, "onset strength without its slow part"),
        OPTION_INT("pre-max", 0, &t->peaks.pre_max, "N", 0, 100000, "frames before an onset that are lower, 30 ms"),
        OPTION_INT("post-max", 0, &t->peaks.post_max, "N", 1, 100000, "from it on, with it, 1"),
        OPTION_INT("pre-avg", 0, &t->peaks.pre_avg, "N", 0, 100000,
                   "frames before an onset whose mean it is above, 100 ms"),
        OPTION_INT("post-avg", 0, &t->peaks.post_avg, "N", 1, 100000, "from it on, with it, 100 ms and 1"),
        OPTION_INT("wait", 0, &t->peaks.wait, "N", 0, 100000, "frames without another onset, 30 ms"),
        OPTION_NUMBER("delta", 0, &t->peaks.delta, "X", 0, 1e9, "that it is above the mean, 0.07"),
        OPTION_FLAG("no-normalize", 0, &t->no_normalize, "onsets of the strength as it is, not scaled to 0 .. 1"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

/// Pictures and the run.
static void run_options(analyze_arguments *a, option_table *table)
{
    analyze_options *o = &a->options;
    const wt_option options[] = {
        OPTION_INT("width", 0, &o->width, "PIXELS", 600, 32768, "of pictures, 1600"),
        OPTION_INT("height", 0, &o->height, "PIXELS", 200, 4000, "of each panel of a picture, 420"),
        OPTION_INT("jobs", 'j', &o->n_jobs, "N", 1, 1024,
                   "worker threads; one per processor if left out, with a GPU 16 at most"),
        OPTION_INT("tile", 0, &o->tile, "SAMPLES", 1, 1 << 24,
                   "samples worked on at once where features allow it, 4194304"),
        OPTION_TEXT("backend", 0, &a->backend, "WHICH", "auto, cuda or cpu"),
        OPTION_FLAG("resume", 0, &a->resume, "skip files whose output is there and not older"),
        OPTION_FLAG("json", 0, &a->json, "a summary as JSON on standard output"),
        OPTION_FLAG("quiet", 'q', &a->quiet, "only errors"),
    };
    put(table, options, (int)(sizeof options / sizeof *options));
}

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
