#include "analyze.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

// clang-format off
static const analyze_feature features[] = {
    {"stft", "complex spectra [bins][frames]", ANALYZE_TILES, true, analyze_stft, analyze_gpu_stft},
    {"spectrogram", "magnitudes [bins][frames]", ANALYZE_TILES, true, analyze_spectrogram, analyze_gpu_spectrogram},
    {"mel", "power of mel bands [n_mels][frames]", ANALYZE_TILES, true, analyze_mel, analyze_gpu_mel},
    {"logmel", "the same in dB, 80 dB deep", ANALYZE_TILES_BELOW_PEAK, true, analyze_logmel, analyze_gpu_logmel},
    {"mfcc", "cepstral coefficients [n_mfcc][frames]", ANALYZE_TILES_BELOW_PEAK, true, analyze_mfcc, analyze_gpu_mfcc},
    {"mfcc_delta", "their slopes over 9 frames", ANALYZE_TILES_BELOW_PEAK, true, analyze_mfcc_delta, analyze_gpu_mfcc_delta},
    {"mfcc_delta2", "the slopes' slopes", ANALYZE_TILES_BELOW_PEAK, true, analyze_mfcc_delta2, analyze_gpu_mfcc_delta2},
    {"pcen", "mel bands over their own slow mean [n_mels][frames]", ANALYZE_WHOLE, true, analyze_pcen, analyze_gpu_pcen},
    {"cqt", "complex constant-Q transform [n_bins][frames]", ANALYZE_WHOLE, false, analyze_cqt, analyze_gpu_cqt},
    {"chroma", "pitch classes, from spectra [n_chroma][frames]", ANALYZE_WHOLE, false, analyze_chroma, analyze_gpu_chroma},
    {"chroma_cqt", "pitch classes, from the constant-Q transform", ANALYZE_WHOLE, false, analyze_chroma_cqt, analyze_gpu_chroma_cqt},
    {"chroma_cens", "their energy statistics, smoothed", ANALYZE_WHOLE, false, analyze_chroma_cens, analyze_gpu_chroma_cens},
    {"tonnetz", "tonal centroids [6][frames]", ANALYZE_WHOLE, false, analyze_tonnetz, analyze_gpu_tonnetz},
    {"tuning", "deviation from A440 in semitones", ANALYZE_WHOLE, false, analyze_tuning, analyze_gpu_tuning},
    {"hpss", "harmonic and percussive part of the signal", ANALYZE_WHOLE, false, analyze_hpss, analyze_gpu_hpss},
    {"yin", "pitch in Hz [frames]", ANALYZE_TILES, true, analyze_yin, analyze_gpu_yin},
    {"pyin", "pitch f0, voiced, voiced_prob [frames]", ANALYZE_WHOLE, false, analyze_pyin, analyze_gpu_pyin},
    {"onset_strength", "how much begins in each frame [frames]", ANALYZE_WHOLE, false, analyze_onset_strength, analyze_gpu_onset_strength},
    {"onsets", "frames in which notes begin", ANALYZE_WHOLE, false, analyze_onsets, analyze_gpu_onsets},
    {"tempo", "one tempo in BPM", ANALYZE_WHOLE, false, analyze_tempo, analyze_gpu_tempo},
    {"beats", "frames of the beats, and beat_tempo in BPM", ANALYZE_WHOLE, false, analyze_beats, analyze_gpu_beats},
    {"tempogram", "autocorrelation of the onset strength [lags][frames]", ANALYZE_WHOLE, false, analyze_tempogram, analyze_gpu_tempogram},
    {"plp", "predominant local pulse [frames]", ANALYZE_WHOLE, false, analyze_plp, analyze_gpu_plp},
    {"centroid", "mean frequency of the spectra in Hz [frames]", ANALYZE_TILES, true, analyze_centroid, analyze_gpu_centroid},
    {"bandwidth", "their spread about it in Hz", ANALYZE_TILES, true, analyze_bandwidth, analyze_gpu_bandwidth},
    {"rolloff", "frequency below which 85 % of a spectrum lies", ANALYZE_TILES, true, analyze_rolloff, analyze_gpu_rolloff},
    {"flatness", "1 of white noise, 0 of a tone", ANALYZE_TILES, true, analyze_flatness, analyze_gpu_flatness},
    {"contrast", "peaks over valleys of octaves in dB [7][frames]", ANALYZE_WHOLE, false, analyze_contrast, analyze_gpu_contrast},
    {"flux", "what the bins gain from frame to frame", ANALYZE_TILES, true, analyze_flux, analyze_gpu_flux},
    {"rms", "root mean square of the samples [frames]", ANALYZE_TILES, true, analyze_rms, analyze_gpu_rms},
    {"zcr", "share of samples that change sign [frames]", ANALYZE_TILES, false, analyze_zcr, analyze_gpu_zcr},
    {"trim", "the part between silent ends, in samples [1][2]", ANALYZE_WHOLE, false, analyze_trim, analyze_gpu_trim},
    {"split", "the parts between silences, in samples [n][2]", ANALYZE_WHOLE, false, analyze_split, analyze_gpu_split},
    {"vad", "the parts with a voice, by energy, in samples [n][2]", ANALYZE_WHOLE, false, analyze_vad, NULL},
    {"loudness", "EBU R 128 loudness and peaks of the file", ANALYZE_OF_FILE, false, analyze_loudness, analyze_gpu_loudness},
};
// clang-format on

enum { N_FEATURES = (int)(sizeof features / sizeof *features) };

int analyze_n_features(void) { return N_FEATURES; }

const analyze_feature *analyze_feature_at(int k) { return &features[k]; }

bool analyze_features_go_in_tiles(const analyze_options *options)
{
    for (int k = 0; k < options->n_features; k++)
        if (options->features[k]->tiles != ANALYZE_TILES && options->features[k]->tiles != ANALYZE_TILES_BELOW_PEAK)
            return false;
    return true;
}

const analyze_feature *analyze_bands_of_peak(void)
{
    static const analyze_feature bands = {"logmel", "", ANALYZE_TILES, true, analyze_bands, analyze_gpu_bands};
    return &bands;
}

static wt_status add_feature(const char *name, analyze_options *options)
{
    const char *names[N_FEATURES];
    for (int k = 0; k < N_FEATURES; k++) names[k] = features[k].name;
    for (int k = 0; k < options->n_features; k++)
        if (!strcmp(options->features[k]->name, name))
            return wt_fail(WT_ERR_BAD_ARG, "feature \"%s\" is named twice", name);
    for (int k = 0; k < N_FEATURES; k++)
        if (!strcmp(features[k].name, name)) {
            options->features[options->n_features++] = &features[k];
            return WT_OK;
        }
    return wt_fail(WT_ERR_BAD_ARG, "unknown feature \"%s\"; the nearest is \"%s\"", name,
                   wt_nearest_name(name, names, N_FEATURES));
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
            return wt_fail(WT_ERR_BAD_ARG, "%s: lists of %d channels differ in length; leave --channels out",
                           from->name, channels);
        const size_t bytes = (size_t)analyze_count(from) * analyze_item_bytes(from->type);
        if (c == 0) {
            void *data;
            analyze_array like = *from;
            like.n_dims++;
            memmove(like.shape + 1, from->shape, sizeof *like.shape * (size_t)from->n_dims);
            like.shape[0] = channels;
            if (!(data = malloc(bytes * (size_t)channels + 1)))
                return wt_fail(WT_ERR_NO_MEMORY, "%s: %d channels", from->name, channels);
            like.data = data;
            whole->arrays[whole->n_arrays++] = like;
        }
        memcpy((char *)whole->arrays[first + k].data + (size_t)c * bytes, from->data, bytes);
    }
    return WT_OK;
}

wt_status analyze_join(const analyze_feature *feature, analyze_result *parts, int channels, analyze_result *result)
{
    const int first = result->n_arrays;
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
        if (one.peak_db) one.peak_db += c;
        status = feature->compute(&one, &part);
        if (!status) status = stack(result, first, &part, c, channels);
        analyze_result_free(&part);
    }
    return status;
}

wt_status analyze_compute(const analyze_signal *signal, int channels, analyze_result *result)
{
    wt_status status = WT_OK;
    result->n_arrays = 0;
    if (signal->place) return analyze_compute_on_gpu(signal, channels, result);
    for (int k = 0; k < signal->options->n_features && !status; k++) {
        const analyze_feature *feature = signal->options->features[k];
        if (channels == 1 || feature->tiles == ANALYZE_OF_FILE) status = feature->compute(signal, result);
        else status = compute_channels(feature, signal, channels, result);
    }
    return status;
}
