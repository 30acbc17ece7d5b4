#include "analyze_features.h"
#include "analyze_sound.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

// clang-format off
static const analyze_feature features[] = {
    {"stft", "complex spectra [bins][frames]", ANALYZE_TILES,
     analyze_stft, analyze_gpu_stft, .any_length = true},
    {"spectrogram", "magnitudes [bins][frames]", ANALYZE_TILES,
     analyze_spectrogram, analyze_gpu_spectrogram, .any_length = true},
    {"power", "their squares [bins][frames]", ANALYZE_TILES,
     analyze_power, analyze_gpu_power, .any_length = true},
    {"phase", "angles of stft in radians [bins][frames]", ANALYZE_TILES,
     analyze_phase, analyze_gpu_phase, .any_length = true},
    {"spectrogram_db", "spectrogram in dB, 80 dB deep [bins][frames]", ANALYZE_TILES,
     analyze_spectrogram_db, analyze_gpu_spectrogram_db, .any_length = true, .needs = ANALYZE_NEED_BIN},
    {"median_spectrogram", "spectrogram through medians: --kernel --kernel-bins", ANALYZE_TILES,
     analyze_median_spectrogram, analyze_gpu_median_spectrogram, .context = ANALYZE_CONTEXT,
     .reach = analyze_median_spectrogram_reach},
    {"nn_filter", "spectrogram, each frame the mean of those most like it: --neighbours --apart", ANALYZE_GATHERED,
     analyze_nn_filter, analyze_gpu_nn_filter, .base = ANALYZE_BASE_SAMPLES},
    {"fft", "complex spectrum of the whole signal [samples / 2 + 1]", ANALYZE_GATHERED,
     analyze_fft, analyze_gpu_fft, .base = ANALYZE_BASE_SAMPLES},
    {"autocorrelation", "sums of products with the signal later: --max-lags", ANALYZE_GATHERED,
     analyze_autocorrelation, analyze_gpu_autocorrelation, .base = ANALYZE_BASE_SAMPLES},
    {"mel", "power of mel bands [n_mels][frames]", ANALYZE_TILES,
     analyze_mel, analyze_gpu_mel, .any_length = true},
    {"logmel", "the same in dB, 80 dB deep", ANALYZE_TILES,
     analyze_logmel, analyze_gpu_logmel, .any_length = true, .needs = ANALYZE_NEED_BAND},
    {"whisper", "log-mel as Whisper's front end has it [n_mels][frames]", ANALYZE_GATHERED,
     analyze_whisper, analyze_gpu_whisper, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_whisper_of},
    {"mfcc", "cepstral coefficients [n_mfcc][frames]", ANALYZE_TILES,
     analyze_mfcc, analyze_gpu_mfcc, .any_length = true, .needs = ANALYZE_NEED_BAND},
    {"mfcc_delta", "their slopes: --delta-width", ANALYZE_TILES,
     analyze_mfcc_delta, analyze_gpu_mfcc_delta, .any_length = true, .needs = ANALYZE_NEED_BAND,
     .reach = analyze_delta_reach},
    {"mfcc_delta2", "the slopes' slopes", ANALYZE_TILES,
     analyze_mfcc_delta2, analyze_gpu_mfcc_delta2, .any_length = true, .needs = ANALYZE_NEED_BAND,
     .reach = analyze_delta_reach},
    {"mfcc_to_mel", "powers of mel bands that have the coefficients [n_mels][frames]", ANALYZE_TILES,
     analyze_mfcc_to_mel, analyze_gpu_mfcc_to_mel, .any_length = true, .needs = ANALYZE_NEED_BAND},
    {"pcen", "mel bands over their own slow mean [n_mels][frames]", ANALYZE_TILES,
     analyze_pcen, analyze_gpu_pcen, .any_length = true, .in_order = true},
    {"cqt", "complex constant-Q transform [n_bins][frames]", ANALYZE_TILES,
     analyze_cqt, analyze_gpu_cqt, .context = ANALYZE_CONTEXT, .reach = analyze_cqt_reach, .above_zero = true},
    {"vqt", "the same with filters as wide as hearing has them", ANALYZE_TILES,
     analyze_vqt, analyze_gpu_vqt, .context = ANALYZE_CONTEXT, .reach = analyze_vqt_reach, .above_zero = true},
    {"pseudo_cqt", "its magnitudes from one spectrogram, without phases", ANALYZE_TILES,
     analyze_pseudo_cqt, analyze_gpu_pseudo_cqt, .context = ANALYZE_CONTEXT, .reach = analyze_cqt_reach,
     .above_zero = true},
    {"hybrid_cqt", "its magnitudes, so where filters are short and in full below", ANALYZE_TILES,
     analyze_hybrid_cqt, analyze_gpu_hybrid_cqt, .context = ANALYZE_CONTEXT, .reach = analyze_cqt_reach,
     .above_zero = true},
    {"nsgt", "magnitudes of the constant-Q transform that has an inverse", ANALYZE_GATHERED,
     analyze_nsgt, analyze_gpu_nsgt, .base = ANALYZE_BASE_SAMPLES, .above_zero = true},
    {"chroma", "pitch classes, from spectra [n_chroma][frames]", ANALYZE_TILES,
     analyze_chroma, analyze_gpu_chroma, .needs = ANALYZE_NEED_CHROMA},
    {"chroma_cqt", "pitch classes, from the constant-Q transform", ANALYZE_TILES,
     analyze_chroma_cqt, analyze_gpu_chroma_cqt, .needs = ANALYZE_NEED_STEPS, .context = ANALYZE_CONTEXT,
     .reach = analyze_folded_reach, .above_zero = true},
    {"chroma_cens", "their energy statistics, smoothed", ANALYZE_TILES,
     analyze_chroma_cens, analyze_gpu_chroma_cens, .needs = ANALYZE_NEED_STEPS, .context = ANALYZE_CONTEXT,
     .reach = analyze_cens_reach, .above_zero = true},
    {"tonnetz", "tonal centroids [6][frames]", ANALYZE_TILES,
     analyze_tonnetz, analyze_gpu_tonnetz, .needs = ANALYZE_NEED_STEPS, .context = ANALYZE_CONTEXT,
     .reach = analyze_folded_reach, .above_zero = true},
    {"tuning", "deviation from A440 in semitones", ANALYZE_GATHERED,
     analyze_tuning, analyze_gpu_tuning, .needs = ANALYZE_NEED_TUNING, .finish = analyze_tuning_known,
     .above_zero = true},
    {"hpss", "harmonic and percussive part of the signal", ANALYZE_TILES,
     analyze_hpss, analyze_gpu_hpss, .context = ANALYZE_CONTEXT, .reach = analyze_hpss_reach, .n_arrays = 2,
     .audio = true},
    {"residual", "what those two leave when --margin is above 1", ANALYZE_TILES,
     analyze_residual, analyze_gpu_residual, .context = ANALYZE_CONTEXT, .reach = analyze_hpss_reach, .audio = true},
    {"hpss_masks", "how much of each bin is theirs: harmonic_mask, percussive_mask", ANALYZE_TILES,
     analyze_hpss_masks, analyze_gpu_hpss_masks, .context = ANALYZE_CONTEXT, .reach = analyze_hpss_reach,
     .n_arrays = 2},
    {"time_stretch", "the signal faster or slower, at its pitch", ANALYZE_GATHERED,
     analyze_time_stretch, analyze_gpu_time_stretch, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_time_stretch_of,
     .audio = true},
    {"pitch_shift", "the signal higher or lower, at its speed", ANALYZE_GATHERED,
     analyze_pitch_shift, analyze_gpu_pitch_shift, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_pitch_shift_of,
     .audio = true},
    {"nmf", "spectra as sums of a few: components, activations", ANALYZE_GATHERED,
     analyze_nmf, analyze_gpu_nmf, .base = ANALYZE_BASE_SAMPLES},
    {"griffin_lim", "a signal of the magnitudes, without their phases", ANALYZE_GATHERED,
     analyze_griffin_lim, analyze_gpu_griffin_lim, .base = ANALYZE_BASE_SAMPLES, .audio = true},
    {"mel_to_stft", "magnitudes that have the mel bands [bins][frames]", ANALYZE_GATHERED,
     analyze_mel_to_stft, analyze_gpu_mel_to_stft, .base = ANALYZE_BASE_SAMPLES},
    {"mel_to_audio", "a signal of the mel bands", ANALYZE_GATHERED,
     analyze_mel_to_audio, analyze_gpu_mel_to_audio, .base = ANALYZE_BASE_SAMPLES, .audio = true},
    {"mfcc_to_audio", "a signal of the cepstral coefficients", ANALYZE_GATHERED,
     analyze_mfcc_to_audio, analyze_gpu_mfcc_to_audio, .base = ANALYZE_BASE_SAMPLES, .audio = true},
    {"resample", "the signal itself, at --rate", ANALYZE_TILES,
     analyze_resample, analyze_gpu_resample, .audio = true},
    {"filter", "through second-order sections: --edges --band --family --order", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_FILTER, .context = ANALYZE_CONTEXT, .audio = true},
    {"filtfilt", "the same forward and backward, without delay", ANALYZE_GATHERED,
     analyze_filtfilt, analyze_gpu_filtfilt, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_filtfilt_of,
     .audio = true},
    {"fir", "through a linear-phase filter, without delay: --edges --band --taps --design", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_FIR, .context = ANALYZE_CONTEXT, .audio = true},
    {"convolve", "with what --impulse holds", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_CONVOLVE, .context = ANALYZE_CONTEXT, .audio = true},
    {"savgol", "smoothed, or its slope, by fitted polynomials: --taps --polynomial --derivative", ANALYZE_TILES,
     analyze_savgol, analyze_gpu_savgol, .context = ANALYZE_CONTEXT, .reach = analyze_savgol_reach, .audio = true},
    {"median", "through a median of --kernel samples", ANALYZE_TILES,
     analyze_median, analyze_gpu_median, .context = ANALYZE_CONTEXT, .reach = analyze_median_reach, .audio = true},
    {"preemphasis", "x[n] - c x[n-1]: --coefficient", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_PREEMPHASIS, .context = ANALYZE_CONTEXT, .audio = true},
    {"deemphasis", "its inverse", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_DEEMPHASIS, .context = ANALYZE_CONTEXT, .audio = true},
    {"normalize", "at a loudness, RMS or peak: --target --by --ceiling", ANALYZE_TILES,
     NULL, analyze_normalize, .needs = ANALYZE_NEED_LEVEL, .context = ANALYZE_CONTEXT, .audio = true},
    {"agc", "slowly brought to a level: --target --max-gain", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_AGC, .context = ANALYZE_CONTEXT, .audio = true},
    {"denoise", "with less noise: --denoiser --noise --max-cut", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_DENOISE, .context = ANALYZE_CONTEXT, .audio = true},
    {"echo_cancel", "without the echo of --playback", ANALYZE_TILES,
     .flow = ANALYZE_FLOW_ECHO_CANCEL, .context = ANALYZE_CONTEXT, .audio = true},
    {"istft", "through spectra and back", ANALYZE_TILES,
     analyze_istft, analyze_gpu_istft, .context = ANALYZE_CONTEXT, .reach = analyze_istft_reach, .audio = true},
    {"icqt", "through the constant-Q transform and back, as far as that goes", ANALYZE_TILES,
     analyze_icqt, analyze_gpu_icqt, .context = ANALYZE_CONTEXT, .reach = analyze_icqt_reach, .audio = true,
     .above_zero = true},
    {"insgt", "through the constant-Q transform that has an inverse, and back", ANALYZE_GATHERED,
     analyze_insgt, analyze_gpu_insgt, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_insgt_of, .audio = true,
     .above_zero = true},
    {"piptrack", "peaks of the spectra: pitches, pitch_magnitudes [bins][frames]", ANALYZE_TILES,
     analyze_piptrack, analyze_gpu_piptrack, .n_arrays = 2, .above_zero = true},
    {"salience", "energy at the multiples of each frequency [bins][frames]", ANALYZE_TILES,
     analyze_salience, analyze_gpu_salience, .any_length = false},
    {"reassigned", "spectra with each bin's own frequency and time", ANALYZE_TILES,
     analyze_reassigned, analyze_gpu_reassigned, .context = ANALYZE_CONTEXT, .n_arrays = 3},
    {"yin", "pitch in Hz [frames]", ANALYZE_TILES,
     analyze_yin, analyze_gpu_yin, .any_length = true, .above_zero = true},
    {"pyin", "pitch f0, voiced, voiced_prob [frames]", ANALYZE_GATHERED,
     analyze_pyin, analyze_gpu_pyin, .base = ANALYZE_BASE_SAMPLES, .finish = analyze_pyin_of, .above_zero = true},
    {"onset_strength", "how much begins in each frame [frames]", ANALYZE_TILES,
     analyze_onset_strength, analyze_gpu_onset_strength, .needs = ANALYZE_NEED_ONSET, .reach = analyze_onset_reach},
    {"onsets", "frames in which notes begin", ANALYZE_GATHERED,
     analyze_onsets, analyze_gpu_onsets, .needs = ANALYZE_NEED_ONSET, .base = ANALYZE_BASE_ONSET,
     .finish = analyze_onsets_of, .reach = analyze_onset_reach},
    {"tempo", "one tempo in BPM", ANALYZE_GATHERED,
     analyze_tempo, analyze_gpu_tempo, .needs = ANALYZE_NEED_ONSET, .base = ANALYZE_BASE_ONSET,
     .finish = analyze_tempo_of, .reach = analyze_onset_reach},
    {"tempos", "a tempo of each frame in BPM [frames]", ANALYZE_TILES,
     analyze_tempos, analyze_gpu_tempos, .needs = ANALYZE_NEED_ONSET, .context = ANALYZE_CONTEXT,
     .reach = analyze_tempos_reach},
    {"beats", "frames of the beats, and beat_tempo in BPM", ANALYZE_GATHERED,
     analyze_beats, analyze_gpu_beats, .needs = ANALYZE_NEED_ONSET, .base = ANALYZE_BASE_BEAT,
     .finish = analyze_beats_of, .reach = analyze_onset_reach},
    {"tempogram", "autocorrelation of the onset strength [lags][frames]", ANALYZE_TILES,
     analyze_tempogram, analyze_gpu_tempogram, .needs = ANALYZE_NEED_ONSET, .context = ANALYZE_CONTEXT,
     .reach = analyze_tempogram_reach},
    {"fourier_tempogram", "spectra of the onset strength [tempi][frames]", ANALYZE_TILES,
     analyze_fourier_tempogram, analyze_gpu_fourier_tempogram, .needs = ANALYZE_NEED_ONSET, .context = ANALYZE_CONTEXT,
     .reach = analyze_tempogram_reach},
    {"tempo_ratios", "how strong a tempo's multiples are [13][frames]", ANALYZE_TILES,
     analyze_tempo_ratios, analyze_gpu_tempo_ratios, .needs = ANALYZE_NEED_ONSET, .context = ANALYZE_CONTEXT,
     .reach = analyze_tempogram_reach},
    {"plp", "predominant local pulse [frames]", ANALYZE_GATHERED,
     analyze_plp, analyze_gpu_plp, .needs = ANALYZE_NEED_ONSET, .base = ANALYZE_BASE_BEAT, .finish = analyze_plp_of,
     .reach = analyze_onset_reach},
    {"centroid", "mean frequency of the spectra in Hz [frames]", ANALYZE_TILES,
     analyze_centroid, analyze_gpu_centroid, .any_length = true},
    {"bandwidth", "their spread about it in Hz", ANALYZE_TILES,
     analyze_bandwidth, analyze_gpu_bandwidth, .any_length = true},
    {"rolloff", "frequency below which 85 % of a spectrum lies: --roll-percent", ANALYZE_TILES,
     analyze_rolloff, analyze_gpu_rolloff, .any_length = true},
    {"flatness", "1 of white noise, 0 of a tone", ANALYZE_TILES,
     analyze_flatness, analyze_gpu_flatness, .any_length = true},
    {"contrast", "peaks over valleys of octaves in dB [n_bands + 1][frames]", ANALYZE_TILES,
     analyze_contrast, analyze_gpu_contrast, .needs = ANALYZE_NEED_CONTRAST, .above_zero = true},
    {"poly", "slope and height of a line through the spectra [poly_order + 1][frames]", ANALYZE_TILES,
     analyze_poly, analyze_gpu_poly, .any_length = true},
    {"flux", "what the bins gain from frame to frame", ANALYZE_TILES,
     analyze_flux, analyze_gpu_flux, .any_length = true},
    {"rms", "root mean square of the samples [frames]", ANALYZE_TILES,
     analyze_rms, analyze_gpu_rms, .any_length = true},
    {"energy", "mean square of the samples [frames]", ANALYZE_TILES,
     analyze_energy, analyze_gpu_energy, .any_length = true},
    {"zcr", "share of samples that change sign [frames]", ANALYZE_TILES,
     analyze_zcr, analyze_gpu_zcr, .any_length = false},
    {"trim", "the part between silent ends, in samples [1][2]", ANALYZE_GATHERED,
     analyze_trim, analyze_gpu_trim, .base = ANALYZE_BASE_RMS, .finish = analyze_trim_of},
    {"split", "the parts between silences, in samples [n][2]", ANALYZE_GATHERED,
     analyze_split, analyze_gpu_split, .base = ANALYZE_BASE_RMS, .finish = analyze_split_of},
    {"vad", "the parts with a voice, by energy, in samples [n][2]", ANALYZE_GATHERED,
     analyze_vad, analyze_gpu_vad, .base = ANALYZE_BASE_SPEECH, .finish = analyze_vad_of},
    {"loudness_curve", "momentary_lufs and short_term_lufs of the file, every 0.1 s", ANALYZE_OF_FILE,
     analyze_loudness_curve, NULL, .any_length = false},
    {"loudness", "EBU R 128 loudness and peaks of the file", ANALYZE_OF_FILE,
     analyze_loudness, analyze_gpu_loudness, .any_length = false},
};
// clang-format on

enum { N_FEATURES = (int)(sizeof features / sizeof *features) };

int analyze_n_features(void) { return N_FEATURES; }

const analyze_feature *analyze_feature_at(int k) { return &features[k]; }

int analyze_features_of(const analyze_options *options, analyze_tiles tiles)
{
    int count = 0;
    for (int k = 0; k < options->n_features; k++) count += options->features[k]->tiles == tiles;
    return count;
}

const analyze_feature *analyze_bands_of_peak(void)
{
    static const analyze_feature bands = {
        .name = "logmel", .tiles = ANALYZE_TILES, .compute = analyze_bands, .on_gpu = analyze_gpu_bands};
    return &bands;
}

const analyze_feature *analyze_precise_bands(void)
{
    static const analyze_feature bands = {
        .name = "logmel", .tiles = ANALYZE_TILES, .compute = analyze_precise_mel, .on_gpu = analyze_gpu_precise_mel};
    return &bands;
}

const analyze_feature *analyze_bins_of_peak(void)
{
    static const analyze_feature bins = {
        .name = "spectrogram_db", .tiles = ANALYZE_TILES, .compute = analyze_bins_db, .on_gpu = analyze_gpu_bins_db};
    return &bins;
}

const analyze_feature *analyze_frames_of_spectra(bool squares)
{
    static const analyze_feature magnitudes = {.name = "spectrogram",
                                               .tiles = ANALYZE_TILES,
                                               .compute = analyze_frames_of_magnitudes,
                                               .on_gpu = analyze_gpu_frames_of_magnitudes},
                                 powers = {.name = "spectrogram",
                                           .tiles = ANALYZE_TILES,
                                           .compute = analyze_frames_of_powers,
                                           .on_gpu = analyze_gpu_frames_of_powers};
    return squares ? &powers : &magnitudes;
}

const analyze_feature *analyze_parts_of_contrast(void)
{
    static const analyze_feature parts = {.name = "contrast",
                                          .tiles = ANALYZE_TILES,
                                          .compute = analyze_contrast_parts,
                                          .on_gpu = analyze_gpu_contrast_parts};
    return &parts;
}

const analyze_feature *analyze_feature_of_base(analyze_base base)
{
    static const analyze_feature rows[ANALYZE_BASES] = {
        [ANALYZE_BASE_ONSET] = {.compute = analyze_onset_strength, .on_gpu = analyze_gpu_onset_strength},
        [ANALYZE_BASE_BEAT] = {.compute = analyze_beat_strength, .on_gpu = analyze_gpu_beat_strength},
        [ANALYZE_BASE_RMS] = {.compute = analyze_centred_rms, .on_gpu = analyze_gpu_centred_rms},
        [ANALYZE_BASE_SPEECH] = {.compute = analyze_speech, .on_gpu = analyze_gpu_speech},
    };
    return rows[base].compute ? &rows[base] : NULL;
}

static const analyze_feature *named(const char *name, size_t length)
{
    for (int k = 0; k < N_FEATURES; k++)
        if (strlen(features[k].name) == length && !memcmp(features[k].name, name, length)) return &features[k];
    return NULL;
}

/// What NAME_delta, NAME_delta2 .. NAME_delta9 is the slope of; NULL: it is none.
static const analyze_feature *slope_of(const char *name, int *order)
{
    static const char tail[] = "_delta";
    const size_t length = strlen(name);
    const bool digit = length && name[length - 1] >= '2' && name[length - 1] <= '9';
    const size_t end = length - digit, n_tail = sizeof tail - 1;
    *order = digit ? name[length - 1] - '0' : 1;
    if (end <= n_tail || memcmp(name + end - n_tail, tail, n_tail) != 0) return NULL;
    return named(name, end - n_tail);
}

static wt_status add_feature(const char *name, analyze_options *options)
{
    const char *names[N_FEATURES];
    const size_t length = strlen(name);
    for (int k = 0; k < N_FEATURES; k++) names[k] = features[k].name;
    for (int k = 0; k < options->n_features; k++)
        if (!strcmp(options->features[k]->name, name))
            return wt_fail(WT_ERR_BAD_ARG, "feature \"%s\" is named twice", name);
    const analyze_feature *feature = named(name, length);
    int order;
    const analyze_feature *of = feature ? NULL : slope_of(name, &order);
    if (of) return analyze_slope_of(name, of, order, options);
    if (!feature)
        return wt_fail(WT_ERR_BAD_ARG, "unknown feature \"%s\"; the nearest is \"%s\"", name,
                       wt_nearest_name(name, names, N_FEATURES));
    options->features[options->n_features++] = feature;
    return WT_OK;
}

wt_status analyze_features_parse(const char *text, analyze_options *options)
{
    char *copy = strdup(text), *rest = copy;
    wt_status status = copy ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "analyze: arguments");
    options->n_features = 0;
    for (char *name; !status && (name = strsep(&rest, ",")) != NULL;) status = add_feature(name, options);
    free(copy);
    return status;
}

/// Put channel c of `part` behind the channels before it; every array becomes [channels][...].
static wt_status stack(analyze_result *whole, int first, const analyze_result *part, int c, int channels)
{
    for (int k = 0; k < part->n_arrays; k++) {
        const analyze_array *from = &part->arrays[k];
        if (from->layout == ANALYZE_EVENTS || from->layout == ANALYZE_SPANS)
            return wt_fail(WT_ERR_BAD_ARG, "%s: lists of %d channels may differ in length; leave --channels out",
                           from->name, channels);
        const size_t bytes = (size_t)analyze_count(from) * analyze_item_bytes(from->type);
        if (c == 0) {
            analyze_array like = *from;
            like.n_dims++;
            memmove(like.shape + 1, from->shape, sizeof *like.shape * (size_t)from->n_dims);
            like.shape[0] = channels;
            wt_status status =
                analyze_take(whole->maps, bytes * (size_t)channels, from->name, &like.data, &like.mapped);
            if (status) return status;
            whole->arrays[whole->n_arrays++] = like;
        }
        memcpy((char *)whole->arrays[first + k].data + (size_t)c * bytes, from->data, bytes);
    }
    return WT_OK;
}

wt_status analyze_join(const analyze_feature *feature, analyze_result *parts, int channels, analyze_result *result)
{
    const int first = result->n_arrays;
    if (parts->level.missed_db > 0) result->level = parts->level;
    if (first + parts->n_arrays > ANALYZE_MAX_ARRAYS)
        return wt_fail(WT_ERR_BAD_ARG, "analyze: more than %d arrays", ANALYZE_MAX_ARRAYS);
    if (channels == 1 || feature->tiles == ANALYZE_OF_FILE) {
        memcpy(result->arrays + first, parts->arrays, sizeof *parts->arrays * (size_t)parts->n_arrays);
        result->n_arrays += parts->n_arrays;
        parts->n_arrays = 0;
        return WT_OK;
    }
    wt_status status = WT_OK;
    for (int c = 0; c < channels && !status; c++) status = stack(result, first, &parts[c], c, channels);
    return status;
}

static wt_status compute_channels(const analyze_feature *feature, const analyze_signal *signal, int channels,
                                  analyze_result *result)
{
    const int first = result->n_arrays;
    wt_status status = WT_OK;
    for (int c = 0; c < channels && !status; c++) {
        analyze_signal one = *signal;
        analyze_result part = {.n_arrays = 0};
        one.pcm += c * (signal->stride ? signal->stride : signal->n);
        if (one.whole) one.whole += c;
        status = feature->compute(&one, &part);
        if (!status) status = stack(result, first, &part, c, channels);
        analyze_result_free(&part);
    }
    return status;
}

wt_status analyze_compute_batch(const analyze_feature *feature, const analyze_batch *batch, analyze_result *parts)
{
    if (feature->flow) return analyze_flow_through(batch, feature->flow, parts);
    return feature->on_gpu ? feature->on_gpu(batch, parts) : WT_ERR_UNSUPPORTED;
}

static wt_status compute_together(const analyze_feature *feature, const analyze_signal *signal, int channels,
                                  analyze_result *result)
{
    const analyze_batch b = {.signal = *signal,
                             .n_used = channels,
                             .n_signals = channels,
                             .channels = channels,
                             .whole = signal->whole,
                             .paths = &signal->path};
    analyze_result *parts = calloc((size_t)channels, sizeof *parts);
    wt_status status = parts ? analyze_compute_batch(feature, &b, parts)
                             : wt_fail(WT_ERR_NO_MEMORY, "%s: arrays of %d channels", feature->name, channels);
    if (!status) status = analyze_join(feature, parts, channels, result);
    for (int c = 0; parts && c < channels; c++) analyze_result_free(&parts[c]);
    free(parts);
    return status;
}

/// One feature of a signal's channels on the calling thread, behind what the result holds.
static wt_status compute_feature(const analyze_feature *feature, const analyze_signal *signal, int channels,
                                 analyze_result *result)
{
    const int first = result->n_arrays;
    const analyze_feature *made = feature->of ? feature->of : feature;
    wt_status status = !made->compute ? compute_together(made, signal, channels, result)
                       : channels == 1 || made->tiles == ANALYZE_OF_FILE
                           ? made->compute(signal, result)
                           : compute_channels(made, signal, channels, result);
    return status || !feature->of ? status : analyze_differentiate(signal->options, feature, result, first);
}

wt_status analyze_compute(const analyze_signal *signal, int channels, analyze_result *result)
{
    wt_status status = WT_OK;
    result->n_arrays = 0;
    if (signal->place) return analyze_compute_on_gpu(signal, channels, result);
    for (int k = 0; k < signal->options->n_features && !status; k++)
        status = compute_feature(signal->options->features[k], signal, channels, result);
    return status;
}
