#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/delta.h>

int analyze_n_fft(const analyze_options *options) { return options->n_fft ? options->n_fft : 2048; }

int analyze_hop(const analyze_options *options) { return options->hop ? options->hop : 512; }

int64_t analyze_centred_frames(const analyze_options *options, int64_t n)
{
    const int n_fft = analyze_n_fft(options);
    return 1 + (n + n_fft / 2 * 2 - n_fft) / analyze_hop(options);
}

int64_t analyze_frames(const analyze_options *options, int64_t n)
{
    const int n_fft = analyze_n_fft(options);
    if (!options->no_center) return analyze_centred_frames(options, n);
    return n < n_fft ? 0 : 1 + (n - n_fft) / analyze_hop(options);
}

wt_mel_bank_config analyze_bank(const analyze_options *options, int rate_hz)
{
    return (wt_mel_bank_config){.rate_hz = rate_hz, .n_fft = analyze_n_fft(options), .n_mels = options->n_mels,
                                .fmin_hz = options->fmin_hz, .fmax_hz = options->fmax_hz, .htk = options->htk,
                                .norm = options->mel_norm};
}

wt_stft_config analyze_stft_config(const analyze_options *o)
{
    return (wt_stft_config){.n_fft = analyze_n_fft(o), .win_length = o->win_length, .hop = analyze_hop(o),
                            .window = o->window, .pad = o->padding, .no_center = o->no_center};
}

// ---- Fourier

void analyze_spectra_free(analyze_spectra *x)
{
    wt_stft_destroy(x->stft);
    analyze_let_go(x->values, x->mapped);
}

wt_status analyze_spectra_make(const analyze_signal *s, wt_stft_output output, bool precise, analyze_spectra *x)
{
    const bool complex = output == WT_STFT_COMPLEX;
    wt_stft_config config = analyze_stft_config(s->options);
    config.precise = precise;
    *x = (analyze_spectra){0};
    wt_status status = wt_stft_create(&config, &x->stft);
    if (status) return status;
    x->bins = wt_stft_bins(x->stft);
    x->n_frames = wt_stft_frames(x->stft, s->n);
    const size_t bytes = (size_t)x->n_frames * (size_t)x->bins * (complex ? 2 : 1) * sizeof(float);
    void *values;
    status = analyze_take(s->maps, bytes, "stft", &values, &x->mapped);
    if (status) return status;
    x->values = values;
    status = complex ? wt_stft_forward(x->stft, s->pcm, s->n, x->values)
                     : wt_stft_forward_real(x->stft, s->pcm, s->n, output == WT_STFT_POWER, x->values);
    return status ? wt_fail(status, "stft: %lld samples have no frame", (long long)s->n) : WT_OK;
}

void analyze_hush(float *magnitudes, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (magnitudes[k] < 1e-10f) magnitudes[k] = 0;
}

static wt_status add_spectra(const analyze_signal *s, analyze_result *r, const analyze_array *like,
                             wt_stft_output output)
{
    analyze_spectra x;
    wt_status status = analyze_spectra_make(s, output, false, &x);
    if (!status) status = analyze_add_turned(r, like, x.values, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    return status;
}

wt_status analyze_stft(const analyze_signal *s, analyze_result *r)
{
    return add_spectra(s, r, &analyze_like.stft, WT_STFT_COMPLEX);
}

wt_status analyze_spectrogram(const analyze_signal *s, analyze_result *r)
{
    return add_spectra(s, r, &analyze_like.spectrogram, WT_STFT_MAGNITUDE);
}

wt_status analyze_power(const analyze_signal *s, analyze_result *r)
{
    return add_spectra(s, r, &analyze_like.power, WT_STFT_POWER);
}

static wt_status frames_of(const analyze_signal *s, analyze_result *r, bool squares)
{
    analyze_spectra x;
    void *data;
    wt_status status = analyze_spectra_make(s, squares ? WT_STFT_POWER : WT_STFT_MAGNITUDE, true, &x);
    if (!status) status = analyze_add(r, &analyze_like.spectrogram, x.n_frames, x.bins, &data);
    if (!status) memcpy(data, x.values, sizeof *x.values * (size_t)x.n_frames * (size_t)x.bins);
    analyze_spectra_free(&x);
    return status;
}

wt_status analyze_frames_of_magnitudes(const analyze_signal *s, analyze_result *r) { return frames_of(s, r, false); }

wt_status analyze_frames_of_powers(const analyze_signal *s, analyze_result *r) { return frames_of(s, r, true); }

// ---- mel

wt_db_config analyze_db_config(const analyze_options *o, bool limited)
{
    wt_db_config config = o->ops.db;
    config.top_db = o->top_db, config.no_top = !limited;
    if (!limited && config.reference == WT_DB_REF_MAX) config.reference = WT_DB_REF_VALUE; // analyze_limit does it
    return config;
}

static wt_mel_config whisper_config(const analyze_signal *s)
{
    wt_mel_config config = wt_mel_whisper(s->options->n_mels ? s->options->n_mels : 80, s->n);
    config.float_on_gpu = false; // a GPU's numbers are to be the CPU's
    return config;
}

wt_mel_config analyze_mel_config(const analyze_signal *s, analyze_mel_kind kind)
{
    if (kind == ANALYZE_MEL_WHISPER) return whisper_config(s);
    wt_mel_config config = {.n_samples = s->n,
                            .stft = analyze_stft_config(s->options),
                            .bank = analyze_bank(s->options, s->rate_hz),
                            .power = kind == ANALYZE_MEL_PCEN ? 1 : s->options->ops.mel_power,
                            .scale = kind == ANALYZE_MEL_DB || kind == ANALYZE_MEL_DB_UNLIMITED ? WT_MEL_DB
                                                                                                : WT_MEL_LINEAR,
                            .db = analyze_db_config(s->options, kind != ANALYZE_MEL_DB_UNLIMITED)};
    config.stft.precise = kind != ANALYZE_MEL_POWER;
    return config;
}

const analyze_array *analyze_mel_like(const analyze_options *o, bool of_mfcc)
{
    const double power = o->ops.mel_power;
    if (!power || power == 2) return of_mfcc ? &analyze_like.mfcc_to_mel : &analyze_like.mel;
    if (power == 1) return of_mfcc ? &analyze_like.magnitudes_of_mfcc : &analyze_like.mel_magnitude;
    return of_mfcc ? &analyze_like.others_of_mfcc : &analyze_like.mel_other;
}

static wt_status add_mel(const analyze_signal *s, analyze_result *r, analyze_mel_kind kind, const analyze_array *like)
{
    wt_mel *mel = NULL;
    void *data;
    const wt_mel_config config = analyze_mel_config(s, kind);
    wt_status status = wt_mel_create(NULL, &config, &mel);
    if (!status) status = analyze_add(r, like, wt_mel_bands(mel), wt_mel_frames(mel), &data);
    if (!status) wt_mel_run(mel, s->pcm, data);
    wt_mel_destroy(mel);
    return status;
}

wt_status analyze_mel(const analyze_signal *s, analyze_result *r)
{
    return add_mel(s, r, ANALYZE_MEL_POWER, analyze_mel_like(s->options, false));
}

wt_status analyze_bands(const analyze_signal *s, analyze_result *r)
{
    return add_mel(s, r, ANALYZE_MEL_DB_UNLIMITED, &analyze_like.logmel);
}

wt_status analyze_precise_mel(const analyze_signal *s, analyze_result *r)
{
    return add_mel(s, r, ANALYZE_MEL_PRECISE, &analyze_like.logmel);
}

wt_status analyze_check_whisper(const analyze_signal *s)
{
    const int n_fft = analyze_n_fft(s->options), hop = analyze_hop(s->options);
    if (s->rate_hz == 16000 && n_fft == 400 && hop == 160) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "whisper: %d Hz in frames of %d every %d, want --rate 16000 --n-fft 400 --hop 160",
                   s->rate_hz, n_fft, hop);
}

wt_status analyze_whisper_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    analyze_signal whole = *s;
    whole.pcm = pcm, whole.n = n;
    wt_status status = analyze_check_whisper(s);
    return status ? status : add_mel(&whole, r, ANALYZE_MEL_WHISPER, &analyze_like.whisper);
}

wt_status analyze_whisper(const analyze_signal *s, analyze_result *r) { return analyze_whisper_of(s, s->pcm, s->n, r); }

void analyze_limit(const analyze_options *o, analyze_result *r, const float *largest_db)
{
    const analyze_array *bands = &r->arrays[r->n_arrays - 1];
    float *x = bands->data, peak = largest_db ? *largest_db : -HUGE_VALF;
    const int64_t count = analyze_count(bands);
    for (int64_t k = 0; k < count && !largest_db; k++) peak = x[k] > peak ? x[k] : peak;
    const float zero = o->ops.db.reference == WT_DB_REF_MAX ? peak : 0;
    const float least = peak - (o->top_db > 0 ? (float)o->top_db : 80);
    for (int64_t k = 0; k < count; k++) x[k] = (x[k] < least ? least : x[k]) - zero;
}

wt_status analyze_logmel(const analyze_signal *s, analyze_result *r)
{
    if (!s->whole) return add_mel(s, r, ANALYZE_MEL_DB, &analyze_like.logmel);
    wt_status status = analyze_bands(s, r);
    if (!status) analyze_limit(s->options, r, &s->whole->band_db);
    return status;
}

wt_mfcc_config analyze_mfcc_config(const analyze_signal *s)
{
    return (wt_mfcc_config){.mel = analyze_mel_config(s, ANALYZE_MEL_DB), .n_mfcc = s->options->n_mfcc,
                            .dct_type = s->options->dct_type, .no_norm = s->options->ops.no_dct_norm,
                            .lifter = s->options->lifter};
}

wt_status analyze_mfcc_of_bands(const analyze_signal *s, analyze_result *r)
{
    const wt_mfcc_config config = analyze_mfcc_config(s);
    analyze_array bands = r->arrays[--r->n_arrays];
    const int64_t n_frames = analyze_n_columns(&bands);
    void *data;
    wt_status status = analyze_add(r, &analyze_like.mfcc, config.n_mfcc ? config.n_mfcc : 20, n_frames, &data);
    if (!status) status = wt_mfcc_of_db(&config, bands.data, n_frames, data);
    analyze_let_go(bands.data, bands.mapped);
    return status;
}

wt_status analyze_mfcc(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_logmel(s, r);
    return status ? status : analyze_mfcc_of_bands(s, r);
}

wt_status analyze_bands_of_mfcc(const analyze_signal *s, analyze_result *r)
{
    const wt_mfcc_config config = analyze_mfcc_config(s);
    const int n_mels = config.mel.bank.n_mels ? config.mel.bank.n_mels : 128;
    analyze_array mfcc = r->arrays[--r->n_arrays];
    const int64_t n_frames = analyze_n_columns(&mfcc);
    void *data;
    wt_status status = analyze_add(r, analyze_mel_like(s->options, true), n_mels, n_frames, &data);
    if (!status) status = wt_mfcc_to_mel(&config, mfcc.data, n_frames, data);
    analyze_let_go(mfcc.data, mfcc.mapped);
    return status;
}

wt_status analyze_mfcc_to_mel(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_mfcc(s, r);
    return status ? status : analyze_bands_of_mfcc(s, r);
}

/// The slope of each coefficient, or how it changes.
wt_status analyze_delta_of_mfcc(const analyze_options *o, analyze_result *r, int order)
{
    analyze_array mfcc = r->arrays[--r->n_arrays];
    const analyze_array *like = order == 1 ? &analyze_like.mfcc_delta : &analyze_like.mfcc_delta2;
    const int64_t n_rows = mfcc.shape[0], n_frames = mfcc.shape[1];
    void *data;
    wt_status status = analyze_add(r, like, n_rows, n_frames, &data);
    const wt_delta_config config = analyze_delta_config(o, order);
    if (!status) status = wt_delta_run(&config, mfcc.data, n_rows, n_frames, data);
    analyze_let_go(mfcc.data, mfcc.mapped);
    return status;
}

wt_status analyze_mfcc_delta(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_mfcc(s, r);
    return status ? status : analyze_delta_of_mfcc(s->options, r, 1);
}

wt_status analyze_mfcc_delta2(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_mfcc(s, r);
    return status ? status : analyze_delta_of_mfcc(s->options, r, 2);
}

/// Of mel magnitudes of 32-bit samples, as librosa's page on pcen() has it.
wt_pcen_config analyze_pcen_config(const analyze_signal *s)
{
    wt_pcen_config config = s->options->ops.pcen;
    config.rate_hz = s->rate_hz, config.hop = analyze_hop(s->options);
    config.max_size = s->options->ops.onset.max_size;
    return config;
}

wt_status analyze_smooth(analyze_whole *whole, int64_t n_bands)
{
    if (!whole->smooth) whole->smooth = malloc(sizeof *whole->smooth * (size_t)n_bands);
    return whole->smooth ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "pcen: %lld bands", (long long)n_bands);
}

/// A tile's own columns go on where those of the tile before ended; the others are left as they are.
static wt_status pcen_of_tile(const wt_pcen_config *pcen, const analyze_array *mel, analyze_whole *whole)
{
    const int64_t n_rows = mel->shape[0], n = mel->shape[1], count = whole->count < 0 ? n - whole->from : whole->count;
    float *own = malloc(2 * sizeof *own * (size_t)(n_rows * count)), *out = own + n_rows * count, *data = mel->data;
    wt_status status =
        own ? analyze_smooth(whole, n_rows) : wt_fail(WT_ERR_NO_MEMORY, "pcen: %lld frames", (long long)count);
    for (int64_t row = 0; row < n_rows && !status; row++)
        memcpy(own + row * count, data + row * n + whole->from, sizeof *own * (size_t)count);
    if (!status) status = wt_pcen_run(pcen, own, n_rows, count, whole->smooth, whole->smoothed, out);
    if (!status) whole->smoothed = true;
    for (int64_t row = 0; row < n_rows && !status; row++)
        memcpy(data + row * n + whole->from, out + row * count, sizeof *own * (size_t)count);
    free(own);
    return status;
}

wt_status analyze_pcen(const analyze_signal *s, analyze_result *r)
{
    const wt_pcen_config pcen = analyze_pcen_config(s);
    wt_status status = add_mel(s, r, ANALYZE_MEL_PCEN, &analyze_like.pcen);
    if (status) return status;
    analyze_array *mel = &r->arrays[r->n_arrays - 1];
    float *data = mel->data;
    void *out;
    size_t mapped;
    for (int64_t k = 0; k < analyze_count(mel); k++) data[k] *= 0x1p31f;
    if (s->whole) return pcen_of_tile(&pcen, mel, s->whole);
    status = analyze_take(r->maps, sizeof *data * (size_t)analyze_count(mel), "pcen", &out, &mapped);
    if (status) return status;
    status = wt_pcen_run(&pcen, data, mel->shape[0], mel->shape[1], NULL, false, out);
    analyze_let_go(mel->data, mel->mapped);
    mel->data = out, mel->mapped = mapped;
    return status;
}
