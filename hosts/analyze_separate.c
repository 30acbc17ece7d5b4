// Harmonic and percussive parts of a signal, what they leave, and the masks that part its spectra; on the calling
// thread, and on a GPU. From precise spectra: masks compare weak neighbours as strictly as loud ones.

#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/hpss.h>

static wt_hpss_config hpss_config(const analyze_signal *s, bool masks, int lines)
{
    const analyze_options *o = s->options;
    const float margin = (float)o->margin, percussive = (float)o->ops.margin_percussive;
    return (wt_hpss_config){.bins = analyze_n_fft(o) / 2 + 1,
                            .lines = lines,
                            .kernel_harmonic = o->kernel,
                            .kernel_percussive = o->kernel_bins,
                            .power = o->hard_masks ? INFINITY : (float)o->mask_power,
                            .margin_harmonic = margin,
                            .margin_percussive = percussive > 0 ? percussive : margin,
                            .complex_in = !masks,
                            .give_masks = masks};
}

/// A sample is made of frames on both sides, each of as many frames as the median takes.
int64_t analyze_hpss_reach(const analyze_signal *s)
{
    const int kernel = s->options->kernel ? s->options->kernel : 31;
    return analyze_n_fft(s->options) + (int64_t)kernel * analyze_hop(s->options);
}

// ---- on the calling thread

/// Both parts of spectra, or their masks, one behind the other; caller frees both, also after an error.
static wt_status separate(const analyze_signal *s, bool masks, analyze_spectra *x, float **parts)
{
    wt_hpss *hpss = NULL;
    const wt_hpss_config config = hpss_config(s, masks, 1);
    *parts = NULL;
    wt_status status = analyze_spectra_make(s, masks ? WT_STFT_MAGNITUDE : WT_STFT_COMPLEX, true, x);
    if (status) return status;
    const size_t floats = (size_t)x->n_frames * (size_t)x->bins * (masks ? 1 : 2);
    if (masks) analyze_hush(x->values, (int64_t)floats);
    if (!(*parts = malloc(2 * floats * sizeof **parts)))
        return wt_fail(WT_ERR_NO_MEMORY, "hpss: %zu numbers", 2 * floats);
    status = wt_hpss_create(NULL, &config, &hpss);
    if (!status) status = wt_hpss_run(hpss, x->values, x->n_frames, *parts, *parts + floats);
    wt_hpss_destroy(hpss);
    return status;
}

wt_status analyze_hpss(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *parts;
    wt_status status = separate(s, false, &x, &parts);
    for (int k = 0; k < 2 && !status; k++) {
        const float *part = parts + (size_t)k * 2 * (size_t)x.n_frames * (size_t)x.bins;
        void *data;
        status = analyze_add(r, k ? &analyze_like.percussive : &analyze_like.harmonic, 1, s->n, &data);
        if (!status) status = wt_stft_inverse(x.stft, part, x.n_frames, s->n, data);
    }
    free(parts);
    analyze_spectra_free(&x);
    return status;
}

/// What the two parts leave of the signal, in place of them.
static void keep_residual(const float *pcm, analyze_result *r)
{
    analyze_array *percussive = &r->arrays[--r->n_arrays], *harmonic = &r->arrays[r->n_arrays - 1];
    const float *p = percussive->data;
    float *h = harmonic->data;
    for (int64_t t = 0; t < analyze_count(harmonic); t++) h[t] = pcm[t] - h[t] - p[t];
    harmonic->name = analyze_like.residual.name;
    free(percussive->data);
}

wt_status analyze_residual(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_hpss(s, r);
    if (!status) keep_residual(s->pcm, r);
    return status;
}

wt_status analyze_hpss_masks(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *masks;
    wt_status status = separate(s, true, &x, &masks);
    if (!status) status = analyze_add_turned(r, &analyze_like.harmonic_mask, masks, x.n_frames, x.bins);
    if (!status)
        status = analyze_add_turned(r, &analyze_like.percussive_mask, masks + x.n_frames * x.bins, x.n_frames, x.bins);
    free(masks);
    analyze_spectra_free(&x);
    return status;
}

// ---- on a GPU

enum { ROOM_PCM = 1, ROOM_PARTS = 3 }; // behind the spectra's

static wt_status make_hpss(const analyze_batch *b, int masks, void **plan)
{
    const wt_hpss_config config = hpss_config(&b->signal, masks, b->n_signals);
    return wt_hpss_create(b->signal.place->device, &config, (wt_hpss **)plan);
}

static void destroy_hpss(void *plan) { wt_hpss_destroy(plan); }

/// Magnitudes by way of the host.
static wt_status hush_on_gpu(const analyze_batch *b, wt_buffer *magnitudes, size_t bytes)
{
    const void *data;
    float *x = malloc(bytes);
    wt_status status = x ? analyze_fetch(b, magnitudes, bytes, &data)
                         : wt_fail(WT_ERR_NO_MEMORY, "hpss_masks: %d signals", b->n_signals);
    if (!status) {
        memcpy(x, data, bytes);
        analyze_hush(x, (int64_t)(bytes / sizeof *x));
        status = wt_stream_upload(b->signal.place->stream, magnitudes, 0, x, bytes);
    }
    if (!status) status = wt_stream_synchronize(b->signal.place->stream);
    free(x);
    return status;
}

/// Both parts of all signals' spectra, or their masks, `bytes` each.
static wt_status separate_on_gpu(const analyze_batch *b, bool masks, wt_buffer **parts, size_t *bytes,
                                 int64_t *n_frames)
{
    const size_t bins = (size_t)analyze_n_fft(b->signal.options) / 2 + 1;
    wt_buffer *spectra;
    void *hpss;
    wt_status status =
        analyze_spectra_on_gpu(b, masks ? WT_STFT_MAGNITUDE : WT_STFT_COMPLEX, true, &spectra, n_frames);
    if (status) return status;
    *bytes = (masks ? 1 : 2) * sizeof(float) * (size_t)b->n_signals * (size_t)*n_frames * bins;
    if (masks) status = hush_on_gpu(b, spectra, *bytes);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_hpss, destroy_hpss}, masks, &hpss);
    if (!status) status = analyze_room(b, ROOM_PARTS, 2 * *bytes, parts);
    if (status) return status;
    return wt_hpss_enqueue(hpss, b->signal.place->stream, spectra, 0, *n_frames, *parts, 0, *parts, *bytes);
}

wt_status analyze_gpu_hpss(const analyze_batch *b, analyze_result *parts)
{
    const size_t samples = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    wt_buffer *separated, *pcm = NULL;
    size_t part;
    int64_t n_frames;
    wt_stft_plan *stft;
    const void *data;
    wt_status status = separate_on_gpu(b, false, &separated, &part, &n_frames);
    if (!status) status = analyze_stft_on_gpu(b, WT_STFT_COMPLEX, true, &stft);
    if (!status) status = analyze_room(b, ROOM_PCM, 2 * samples, &pcm);
    for (size_t k = 0; k < 2 && !status; k++)
        status = wt_stft_plan_inverse(stft, b->signal.place->stream, separated, k * part, pcm, k * samples);
    if (!status) status = analyze_fetch(b, pcm, 2 * samples, &data);
    if (!status) status = analyze_give(b, parts, &analyze_like.harmonic, data, 1, b->signal.n, false);
    if (status) return status;
    const float *percussive = (const float *)data + b->n_signals * b->signal.n;
    return analyze_give(b, parts, &analyze_like.percussive, percussive, 1, b->signal.n, false);
}

wt_status analyze_gpu_residual(const analyze_batch *b, analyze_result *parts)
{
    const void *pcm;
    wt_status status = analyze_gpu_hpss(b, parts);
    if (!status)
        status = analyze_fetch(b, b->signal.place->pcm, sizeof(float) * (size_t)(b->n_used * b->signal.n), &pcm);
    for (int k = 0; k < b->n_used && !status; k++) keep_residual((const float *)pcm + k * b->signal.n, &parts[k]);
    return status;
}

wt_status analyze_gpu_hpss_masks(const analyze_batch *b, analyze_result *parts)
{
    const int64_t bins = analyze_n_fft(b->signal.options) / 2 + 1;
    wt_buffer *masks;
    size_t bytes;
    int64_t n_frames;
    const void *data;
    wt_status status = separate_on_gpu(b, true, &masks, &bytes, &n_frames);
    if (!status) status = analyze_fetch(b, masks, 2 * bytes, &data);
    if (!status) status = analyze_give(b, parts, &analyze_like.harmonic_mask, data, bins, n_frames, true);
    if (status) return status;
    return analyze_give(b, parts, &analyze_like.percussive_mask, (const char *)data + bytes, bins, n_frames, true);
}
