// Spectra, mel bands, constant-Q, chroma and separation on a GPU. What is made on the way stays there.

#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_SPECTRA, ROOM_OUT, ROOM_TUNING, ROOM_CQT, ROOM_FOLDED };

// ---- Fourier

enum { PRECISE = 8 }; // beside a wt_stft_output

static wt_status make_stft(const analyze_batch *b, int variant, void **plan)
{
    wt_stft_plan_config config = {.stft = analyze_stft_config(b->signal.options),
                                  .n_samples = b->signal.n,
                                  .n_signals = b->n_signals,
                                  .length = b->signal.n, // of the way back
                                  .output = (wt_stft_output)(variant & ~PRECISE)};
    config.stft.precise = variant & PRECISE;
    return wt_stft_plan_create(b->signal.place->device, &config, (wt_stft_plan **)plan);
}

static void destroy_stft(void *plan) { wt_stft_plan_destroy(plan); }

static size_t bins_of(const analyze_batch *b) { return (size_t)analyze_n_fft(b->signal.options) / 2 + 1; }

static size_t spectra_bytes(const analyze_batch *b, wt_stft_output output, int64_t n_frames)
{
    return sizeof(float) * (size_t)b->n_signals * (size_t)n_frames * bins_of(b) * (output == WT_STFT_COMPLEX ? 2 : 1);
}

wt_status analyze_stft_on_gpu(const analyze_batch *b, wt_stft_output output, bool precise, wt_stft_plan **plan)
{
    void *kept;
    const int variant = (int)output | (precise ? PRECISE : 0);
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_stft, destroy_stft}, variant, &kept);
    *plan = kept;
    return status;
}

wt_status analyze_spectra_on_gpu(const analyze_batch *b, wt_stft_output output, bool precise, wt_buffer **spectra,
                                 int64_t *n_frames)
{
    const analyze_place *p = b->signal.place;
    wt_stft_plan *plan;
    wt_status status = analyze_stft_on_gpu(b, output, precise, &plan);
    if (status) return status;
    *n_frames = wt_stft_plan_frames(plan);
    status = analyze_room(b, ROOM_SPECTRA, spectra_bytes(b, output, *n_frames), spectra);
    return status ? status : wt_stft_plan_forward(plan, p->stream, p->pcm, 0, *spectra, 0);
}

static wt_status add_spectra(const analyze_batch *b, analyze_result *parts, const analyze_array *like,
                             wt_stft_output output)
{
    wt_buffer *spectra;
    int64_t n_frames;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, output, false, &spectra, &n_frames);
    if (!status) status = analyze_fetch(b, spectra, spectra_bytes(b, output, n_frames), &data);
    return status ? status : analyze_give(b, parts, like, data, (int64_t)bins_of(b), n_frames, true);
}

wt_status analyze_gpu_stft(const analyze_batch *b, analyze_result *parts)
{
    return add_spectra(b, parts, &analyze_like.stft, WT_STFT_COMPLEX);
}

wt_status analyze_gpu_spectrogram(const analyze_batch *b, analyze_result *parts)
{
    return add_spectra(b, parts, &analyze_like.spectrogram, WT_STFT_MAGNITUDE);
}

wt_status analyze_gpu_power(const analyze_batch *b, analyze_result *parts)
{
    return add_spectra(b, parts, &analyze_like.power, WT_STFT_POWER);
}

static wt_status add_frames(const analyze_batch *b, analyze_result *parts, wt_stft_output output)
{
    wt_buffer *spectra;
    int64_t n_frames;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, output, true, &spectra, &n_frames);
    if (!status) status = analyze_fetch(b, spectra, spectra_bytes(b, output, n_frames), &data);
    return status ? status
                  : analyze_give(b, parts, &analyze_like.spectrogram, data, n_frames, (int64_t)bins_of(b), false);
}

wt_status analyze_gpu_frames_of_magnitudes(const analyze_batch *b, analyze_result *parts)
{
    return add_frames(b, parts, WT_STFT_MAGNITUDE);
}

wt_status analyze_gpu_frames_of_powers(const analyze_batch *b, analyze_result *parts)
{
    return add_frames(b, parts, WT_STFT_POWER);
}

// ---- mel

/// The bank times 2^31: pcen's bands are of 32-bit samples.
static wt_status make_loud_mel(const analyze_batch *b, wt_mel_config *config, void **plan)
{
    const int n_mels = config->bank.n_mels ? config->bank.n_mels : 128;
    const size_t count = (size_t)n_mels * bins_of(b);
    double *bank = malloc(count * sizeof *bank);
    float *weights = malloc(count * sizeof *weights);
    wt_status status = bank && weights ? wt_mel_bank_fill(&config->bank, bank)
                                       : wt_fail(WT_ERR_NO_MEMORY, "pcen: a bank of %d bands", n_mels);
    for (size_t k = 0; k < count && !status; k++) weights[k] = (float)bank[k] * 0x1p31f;
    config->weights = weights;
    if (!status) status = wt_mel_create(b->signal.place->device, config, (wt_mel **)plan);
    free(bank), free(weights);
    return status;
}

static wt_status make_mel(const analyze_batch *b, int kind, void **plan)
{
    wt_mel_config config = analyze_mel_config(&b->signal, (analyze_mel_kind)kind);
    config.n_signals = b->n_signals;
    if (kind == ANALYZE_MEL_PCEN) return make_loud_mel(b, &config, plan);
    return wt_mel_create(b->signal.place->device, &config, (wt_mel **)plan);
}

static void destroy_mel(void *plan) { wt_mel_destroy(plan); }

wt_status analyze_mel_on_gpu(const analyze_batch *b, analyze_mel_kind kind, wt_buffer **bands, wt_mel **mel)
{
    const analyze_place *p = b->signal.place;
    void *plan;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_mel, destroy_mel}, (int)kind, &plan);
    if (status) return status;
    *mel = plan;
    const size_t floats = (size_t)b->n_signals * (size_t)wt_mel_bands(plan) * (size_t)wt_mel_frames(plan);
    status = analyze_room(b, ROOM_OUT, sizeof(float) * floats, bands);
    return status ? status : wt_mel_enqueue(plan, p->stream, p->pcm, 0, *bands, 0);
}

static wt_status give_bands(const analyze_batch *b, analyze_result *parts, const analyze_array *like,
                            const wt_buffer *bands, const wt_mel *mel)
{
    const void *data;
    const int64_t n_rows = wt_mel_bands(mel), n_frames = wt_mel_frames(mel);
    const size_t floats = (size_t)b->n_signals * (size_t)(n_rows * n_frames);
    wt_status status = analyze_fetch(b, bands, sizeof(float) * floats, &data);
    return status ? status : analyze_give(b, parts, like, data, n_rows, n_frames, false);
}

static wt_status add_mel(const analyze_batch *b, analyze_result *parts, const analyze_array *like,
                         analyze_mel_kind kind)
{
    wt_buffer *bands;
    wt_mel *mel;
    wt_status status = analyze_mel_on_gpu(b, kind, &bands, &mel);
    return status ? status : give_bands(b, parts, like, bands, mel);
}

wt_status analyze_gpu_mel(const analyze_batch *b, analyze_result *parts)
{
    return add_mel(b, parts, analyze_mel_like(b->signal.options, false), ANALYZE_MEL_POWER);
}

wt_status analyze_gpu_bands(const analyze_batch *b, analyze_result *parts)
{
    return add_mel(b, parts, &analyze_like.logmel, ANALYZE_MEL_DB_UNLIMITED);
}

wt_status analyze_gpu_precise_mel(const analyze_batch *b, analyze_result *parts)
{
    return add_mel(b, parts, &analyze_like.logmel, ANALYZE_MEL_PRECISE);
}

wt_status analyze_gpu_whisper(const analyze_batch *b, analyze_result *parts)
{
    wt_status status = analyze_check_whisper(&b->signal);
    return status ? status : add_mel(b, parts, &analyze_like.whisper, ANALYZE_MEL_WHISPER);
}

bool analyze_limits_later(const analyze_batch *b) { return b->lengths || b->whole; }

wt_status analyze_gpu_logmel(const analyze_batch *b, analyze_result *parts)
{
    if (!analyze_limits_later(b)) return add_mel(b, parts, &analyze_like.logmel, ANALYZE_MEL_DB);
    wt_status status = analyze_gpu_bands(b, parts);
    for (int k = 0; k < b->n_used && !status; k++)
        analyze_limit(b->signal.options, &parts[k], b->whole ? &b->whole[k].band_db : NULL);
    return status;
}

static wt_status make_mfcc(const analyze_batch *b, int variant, void **plan)
{
    wt_mfcc_config config = analyze_mfcc_config(&b->signal);
    (void)variant;
    config.mel.n_signals = b->n_signals;
    return wt_mfcc_create(b->signal.place->device, &config, (wt_mfcc **)plan);
}

static void destroy_mfcc(void *plan) { wt_mfcc_destroy(plan); }

wt_status analyze_gpu_mfcc(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *mfcc;
    const void *data;
    wt_buffer *out = NULL;
    if (analyze_limits_later(b)) {
        wt_status status = analyze_gpu_logmel(b, parts);
        for (int k = 0; k < b->n_used && !status; k++) status = analyze_mfcc_of_bands(&b->signal, &parts[k]);
        return status;
    }
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_mfcc, destroy_mfcc}, 0, &mfcc);
    const int64_t n_rows = status ? 0 : wt_mfcc_coefficients(mfcc), n_frames = status ? 0 : wt_mfcc_frames(mfcc);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)(n_rows * n_frames);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_mfcc_enqueue(mfcc, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.mfcc, data, n_rows, n_frames, false);
}

static wt_status add_delta(const analyze_batch *b, analyze_result *parts, int order)
{
    wt_status status = analyze_gpu_mfcc(b, parts);
    for (int k = 0; k < b->n_used && !status; k++) status = analyze_delta_of_mfcc(b->signal.options, &parts[k], order);
    return status;
}

wt_status analyze_gpu_mfcc_to_mel(const analyze_batch *b, analyze_result *parts)
{
    wt_status status = analyze_gpu_mfcc(b, parts);
    for (int k = 0; k < b->n_used && !status; k++) status = analyze_bands_of_mfcc(&b->signal, &parts[k]);
    return status;
}

wt_status analyze_gpu_mfcc_delta(const analyze_batch *b, analyze_result *parts) { return add_delta(b, parts, 1); }

wt_status analyze_gpu_mfcc_delta2(const analyze_batch *b, analyze_result *parts) { return add_delta(b, parts, 2); }

static wt_status make_pcen(const analyze_batch *b, int n_bands, void **plan)
{
    const wt_pcen_config config = analyze_pcen_config(&b->signal);
    const int64_t n_frames = analyze_frames(b->signal.options, b->signal.n);
    return wt_pcen_create(b->signal.place->device, &config, b->n_signals, n_bands, n_frames, (wt_pcen **)plan);
}

static void destroy_pcen(void *plan) { wt_pcen_destroy(plan); }

/// A tile's own columns, from where the tile before ended: as analyze_pcen has it. The state that is left behind is
/// fetched once the columns are given, so that a tile can be begun again.
static wt_status pcen_of_tiles(const analyze_batch *b, wt_pcen *pcen, const wt_buffer *bands, const wt_mel *mel,
                               wt_buffer *out, analyze_result *parts)
{
    const size_t row = sizeof(double) * (size_t)wt_mel_bands(mel);
    const analyze_whole *first = b->whole;
    const wt_pcen_part part = {.from = first->from,
                               .n_frames = first->count < 0 ? wt_mel_frames(mel) - first->from : first->count,
                               .continued = first->smoothed};
    wt_stream *stream = b->signal.place->stream;
    wt_buffer *state = NULL;
    const void *data;
    wt_status status = analyze_room(b, ROOM_TUNING, row * (size_t)b->n_signals, &state);
    for (int k = 0; k < b->n_used && !status; k++) {
        status = analyze_smooth(b->whole + k, wt_mel_bands(mel));
        if (!status && part.continued)
            status = wt_stream_upload(stream, state, (size_t)k * row, b->whole[k].smooth, row);
    }
    if (!status) status = wt_pcen_enqueue_part(pcen, stream, bands, 0, &part, state, 0, out, 0);
    if (!status) status = give_bands(b, parts, &analyze_like.pcen, out, mel);
    if (!status) status = analyze_fetch(b, state, row * (size_t)b->n_used, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        memcpy(b->whole[k].smooth, (const char *)data + (size_t)k * row, row);
        b->whole[k].smoothed = true;
    }
    return status;
}

wt_status analyze_gpu_pcen(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *bands, *out = NULL; // the smoother may look at neighbours of a band
    wt_mel *mel;
    void *pcen;
    wt_status status = analyze_mel_on_gpu(b, ANALYZE_MEL_PCEN, &bands, &mel);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_pcen, destroy_pcen}, wt_mel_bands(mel), &pcen);
    const size_t bytes =
        status ? 0 : sizeof(float) * (size_t)b->n_signals * (size_t)(wt_mel_bands(mel) * wt_mel_frames(mel));
    if (!status) status = analyze_room(b, ROOM_FOLDED, bytes, &out);
    if (!status && b->whole) return pcen_of_tiles(b, pcen, bands, mel, out, parts);
    if (!status) status = wt_pcen_enqueue(pcen, b->signal.place->stream, bands, 0, out, 0);
    return status ? status : give_bands(b, parts, &analyze_like.pcen, out, mel);
}

// ---- constant Q

enum { VARIABLE = 16 }; // beside a wt_cqt_kind

static wt_status make_cqt(const analyze_batch *b, int variant, void **plan)
{
    wt_cqt_config config = variant & VARIABLE ? analyze_vqt_config(&b->signal)
                                              : analyze_cqt_config(&b->signal, (wt_cqt_kind)variant);
    config.channels = b->n_signals;
    return wt_cqt_create(b->signal.place->device, &config, b->signal.n, (wt_cqt **)plan);
}

static void destroy_cqt(void *plan) { wt_cqt_destroy(plan); }

static wt_status add_cqt(const analyze_batch *b, analyze_result *parts, const analyze_array *like, int variant)
{
    const analyze_place *p = b->signal.place;
    void *cqt;
    const void *data;
    wt_buffer *out = NULL;
    const wt_cqt_tile tile = analyze_cqt_tile(b->whole, true);
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_cqt, destroy_cqt}, variant, &cqt);
    const int64_t n_bins = status ? 0 : wt_cqt_bins(cqt), n_frames = status ? 0 : wt_cqt_frames(cqt, b->signal.n);
    const size_t bytes = analyze_item_bytes(like->type) * (size_t)b->n_signals * (size_t)(n_bins * n_frames);
    if (!status) status = analyze_room(b, ROOM_CQT, bytes, &out);
    if (!status) status = wt_cqt_enqueue_tile(cqt, p->stream, p->pcm, 0, b->signal.n, &tile, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, like, data, n_bins, n_frames, true);
}

wt_status analyze_gpu_cqt(const analyze_batch *b, analyze_result *parts)
{
    return add_cqt(b, parts, &analyze_like.cqt, WT_CQT_FULL);
}

wt_status analyze_gpu_vqt(const analyze_batch *b, analyze_result *parts)
{
    return add_cqt(b, parts, &analyze_like.vqt, WT_CQT_FULL | VARIABLE);
}

wt_status analyze_gpu_pseudo_cqt(const analyze_batch *b, analyze_result *parts)
{
    return add_cqt(b, parts, &analyze_like.pseudo_cqt, WT_CQT_PSEUDO);
}

wt_status analyze_gpu_hybrid_cqt(const analyze_batch *b, analyze_result *parts)
{
    return add_cqt(b, parts, &analyze_like.hybrid_cqt, WT_CQT_HYBRID);
}

// ---- tuning

static wt_status make_tuning(const analyze_batch *b, int bins_per_octave, void **plan)
{
    wt_tuning_config config =
        analyze_tuning_config(&b->signal, analyze_frames(b->signal.options, b->signal.n), bins_per_octave);
    config.n_signals = b->n_signals;
    return wt_tuning_create(b->signal.place->device, &config, (wt_tuning **)plan);
}

static void destroy_tuning(void *plan) { wt_tuning_destroy(plan); }

/// Each signal's tuning from spectra that are in place: [n_signals], caller frees. `which` of them a tile's signal has.
static wt_status tunings_of(const analyze_batch *b, const wt_buffer *spectra, int bins_per_octave, int which,
                            double **tunings)
{
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    const size_t bytes = sizeof(double) * (size_t)b->n_signals;
    *tunings = malloc(bytes);
    wt_status status = *tunings ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "tuning: %d signals", b->n_signals);
    const bool known = b->signal.options->ops.tuned && which != ANALYZE_TUNING;
    for (int k = 0; (b->whole || known) && k < b->n_used && !status; k++)
        (*tunings)[k] = known ? b->signal.options->ops.cqt.tuning : b->whole[k].tuning[which];
    if (status || b->whole || known) return status;
    status = analyze_kept_plan(b, &(analyze_maker){make_tuning, destroy_tuning}, bins_per_octave, &plan);
    if (!status) status = analyze_room(b, ROOM_TUNING, bytes, &out);
    if (!status) status = wt_tuning_enqueue(plan, b->signal.place->stream, spectra, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_signals && !status; k++) (*tunings)[k] = ((const double *)data)[k];
    return status;
}

wt_status analyze_gpu_tuning(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *spectra;
    int64_t n_frames;
    double *tunings = NULL;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, true, &spectra, &n_frames);
    if (!status) status = tunings_of(b, spectra, 0, ANALYZE_TUNING, &tunings);
    for (int k = 0; k < b->n_used && !status; k++)
        status = analyze_add_value(&parts[k], "tuning", "semitones", tunings[k]);
    free(tunings);
    return status;
}

/// Tunings lie a hundredth of a step apart: plans of one signal, as many as there are tunings. One that was said is all
/// signals'.
static int variant_of(double tuning) { return (int)lrint(tuning * 100); }

static double tuning_of(const analyze_batch *b, int variant)
{
    return b->signal.options->ops.tuned ? b->signal.options->ops.cqt.tuning : variant / 100.0;
}

static analyze_batch one_of(const analyze_batch *b)
{
    analyze_batch one = *b;
    one.n_signals = 1;
    return one;
}

// ---- chroma

static wt_status make_chroma(const analyze_batch *b, int tuning, void **plan)
{
    wt_chroma_config config = analyze_chroma_config(&b->signal);
    config.tuning = tuning_of(b, tuning);
    return wt_chroma_create(b->signal.place->device, &config, (wt_chroma **)plan);
}

static void destroy_chroma(void *plan) { wt_chroma_destroy(plan); }

wt_status analyze_gpu_chroma(const analyze_batch *b, analyze_result *parts)
{
    const analyze_batch one = one_of(b);
    const size_t n_chroma = (size_t)analyze_chroma_config(&b->signal).n_chroma;
    wt_buffer *spectra, *out = NULL;
    int64_t n_frames = 0;
    double *tunings = NULL;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_POWER, true, &spectra, &n_frames);
    const size_t row = sizeof(float) * (size_t)n_frames, bytes = row * n_chroma * (size_t)b->n_signals;
    if (!status) status = tunings_of(b, spectra, (int)n_chroma, ANALYZE_TUNING_OF_CHROMA, &tunings);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    for (size_t k = 0; k < (size_t)b->n_used && !status; k++) {
        void *plan;
        status = analyze_kept_plan(&one, &(analyze_maker){make_chroma, destroy_chroma}, variant_of(tunings[k]), &plan);
        if (!status)
            status = wt_chroma_enqueue(plan, b->signal.place->stream, spectra, k * row * bins_of(b), n_frames, out,
                                       k * row * n_chroma);
    }
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    free(tunings);
    return status ? status : analyze_give(b, parts, &analyze_like.chroma, data, (int64_t)n_chroma, n_frames, true);
}

static wt_status make_folded_cqt(const analyze_batch *b, int tuning, void **plan)
{
    wt_cqt_config config = analyze_folded_cqt(&b->signal);
    config.tuning = tuning_of(b, tuning);
    return wt_cqt_create(b->signal.place->device, &config, b->signal.n, (wt_cqt **)plan);
}

static void destroy_folded_cqt(void *plan) { wt_cqt_destroy(plan); }

/// Magnitudes of the constant-Q transform that chroma is folded from, each signal's by its own tuning.
static wt_status folded_cqt(const analyze_batch *b, wt_buffer **magnitudes, int64_t *n_frames)
{
    const analyze_place *p = b->signal.place;
    const analyze_batch one = one_of(b);
    const wt_cqt_config config = analyze_folded_cqt(&b->signal);
    const wt_cqt_tile tile = analyze_cqt_tile(b->whole, false);
    wt_buffer *spectra = NULL;
    double *tunings = NULL;
    wt_status status = b->whole ? WT_OK : analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, true, &spectra, n_frames);
    if (!status) status = tunings_of(b, spectra, config.bins_per_octave, ANALYZE_TUNING_OF_STEPS, &tunings);
    for (int k = 0; k < b->n_used && !status; k++) {
        void *plan;
        status = analyze_kept_plan(&one, &(analyze_maker){make_folded_cqt, destroy_folded_cqt}, variant_of(tunings[k]),
                                   &plan);
        if (status) break;
        *n_frames = wt_cqt_frames(plan, b->signal.n);
        const size_t bytes = sizeof(float) * (size_t)wt_cqt_bins(plan) * (size_t)*n_frames;
        if (k == 0) status = analyze_room(b, ROOM_CQT, bytes * (size_t)b->n_signals, magnitudes);
        if (!status)
            status = wt_cqt_enqueue_tile(plan, p->stream, p->pcm, sizeof(float) * (size_t)(k * b->signal.n),
                                         b->signal.n, &tile, *magnitudes, (size_t)k * bytes);
    }
    free(tunings);
    return status;
}

enum { OF_CENS = 64 }; // beside a wt_tonal_kind times 8 and a wt_chroma_norm

/// n_frames of a plan that folds are those of the constant-Q transform: as many as of the signal.
static wt_status make_tonal(const analyze_batch *b, int variant, void **plan)
{
    const wt_chroma_norm norm = (wt_chroma_norm)(variant % 8);
    const wt_tonal_config config = {.kind = (wt_tonal_kind)(variant % OF_CENS / 8),
                                    .fold = analyze_folding(&b->signal, norm, variant & OF_CENS),
                                    .n_chroma = analyze_chroma_config(&b->signal).n_chroma,
                                    .smooth = b->signal.options->ops.smooth,
                                    .norm = norm,
                                    .n_frames = 1 + b->signal.n / analyze_hop(b->signal.options),
                                    .n_signals = b->n_signals};
    return wt_tonal_create(b->signal.place->device, &config, (wt_tonal **)plan);
}

static void destroy_tonal(void *plan) { wt_tonal_destroy(plan); }

static wt_status tonal(const analyze_batch *b, wt_tonal_kind kind, wt_chroma_norm norm, bool cens,
                       const wt_buffer *in, wt_buffer *out)
{
    void *plan;
    const int variant = (int)kind * 8 + (int)norm + (cens ? OF_CENS : 0);
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_tonal, destroy_tonal}, variant, &plan);
    return status ? status : wt_tonal_enqueue(plan, b->signal.place->stream, in, 0, out, 0);
}

/// Chroma of the constant-Q transform, and what becomes of it: `then` is WT_TONAL_FOLD for nothing more.
static wt_status add_folded(const analyze_batch *b, analyze_result *parts, const analyze_array *like,
                            wt_tonal_kind then)
{
    const wt_chroma_norm first = then == WT_TONAL_CENS
                                     ? WT_CHROMA_NORM_NONE
                                     : analyze_chroma_norm(b->signal.options, WT_CHROMA_NORM_MAX),
                         last = analyze_chroma_norm(b->signal.options, WT_CHROMA_NORM_2);
    const int64_t n_chroma = analyze_chroma_config(&b->signal).n_chroma;
    const int64_t n_rows = then == WT_TONAL_TONNETZ ? 6 : n_chroma;
    wt_buffer *magnitudes, *folded = NULL, *out = NULL;
    int64_t n_frames = 0;
    const void *data;
    wt_status status = folded_cqt(b, &magnitudes, &n_frames);
    const size_t row = sizeof(float) * (size_t)b->n_signals * (size_t)n_frames;
    if (!status) status = analyze_room(b, ROOM_FOLDED, row * (size_t)n_chroma, &folded);
    if (!status) status = tonal(b, WT_TONAL_FOLD, first, then == WT_TONAL_CENS, magnitudes, folded);
    if (!status && then != WT_TONAL_FOLD) {
        status = analyze_room(b, ROOM_OUT, row * (size_t)n_rows, &out);
        if (!status) status = tonal(b, then, last, then == WT_TONAL_CENS, folded, out);
    }
    if (!status) status = analyze_fetch(b, out ? out : folded, row * (size_t)n_rows, &data);
    return status ? status : analyze_give(b, parts, like, data, n_rows, n_frames, true);
}

wt_status analyze_gpu_chroma_cqt(const analyze_batch *b, analyze_result *parts)
{
    return add_folded(b, parts, &analyze_like.chroma_cqt, WT_TONAL_FOLD);
}

wt_status analyze_gpu_chroma_cens(const analyze_batch *b, analyze_result *parts)
{
    return add_folded(b, parts, &analyze_like.chroma_cens, WT_TONAL_CENS);
}

wt_status analyze_gpu_tonnetz(const analyze_batch *b, analyze_result *parts)
{
    return add_folded(b, parts, &analyze_like.tonnetz, WT_TONAL_TONNETZ);
}
