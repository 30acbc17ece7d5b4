// A transform of n frames holds n_taps - 1 frames of the past and n_fresh new ones; of its circular convolution with
// the taps the last n_fresh frames are right. They are handed out while the next n_fresh come in.
#include "overlap_save_internal.h"

#include <warptone/fft.h>
#include <warptone/simd.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct wt_overlap_save {
    int channels, n_taps, n, n_fresh, at; // at: frames of the present block taken
    wt_fft *forward, *inverse;
    float *response; // [n / 2 + 1][2] of the taps
    float *spectrum; // [n / 2 + 1][2]
    float *result;   // [n]
    float *in;       // [channels][n] past and present
    float *ready;    // [channels][n_fresh] outputs of the block before
};

static wt_status take_memory(wt_overlap_save *f)
{
    const size_t bins = 2 * ((size_t)f->n / 2 + 1), n = (size_t)f->n, channels = (size_t)f->channels;
    f->response = calloc(bins, sizeof(float));
    f->spectrum = calloc(bins, sizeof(float));
    f->result = calloc(n, sizeof(float));
    f->in = calloc(channels * n, sizeof(float));
    f->ready = calloc(channels * (size_t)f->n_fresh, sizeof(float));
    if (!f->response || !f->spectrum || !f->result || !f->in || !f->ready)
        return wt_fail(WT_ERR_NO_MEMORY, "overlap save: %d channels of %d frames", f->channels, f->n);
    wt_status status = wt_fft_create(NULL, &(wt_fft_config){.n = f->n, .kind = WT_FFT_REAL_TO_COMPLEX}, &f->forward);
    if (!status) status = wt_fft_create(NULL, &(wt_fft_config){.n = f->n, .kind = WT_FFT_COMPLEX_TO_REAL}, &f->inverse);
    return status;
}

wt_status wt__overlap_save_resolve(const wt_overlap_save_config *config, int *channels, int *n)
{
    *channels = config->channels ? config->channels : 2;
    if (config->n_taps < 1 || config->n_taps > 1 << 20)
        return wt_fail(WT_ERR_BAD_ARG, "overlap save: %d taps, want 1..%d", config->n_taps, 1 << 20);
    if (*channels < 1 || *channels > WT__OVERLAP_SAVE_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "overlap save: %d channels, want 1..%d", *channels,
                       WT__OVERLAP_SAVE_MAX_CHANNELS);
    for (*n = 1024; *n < 4 * config->n_taps && *n < WT_FFT_MAX_N;) *n *= 2;
    return WT_OK;
}

wt_status wt_overlap_save_create(const wt_overlap_save_config *config, wt_overlap_save **filter)
{
    *filter = NULL;
    int channels, n;
    wt_status status = wt__overlap_save_resolve(config, &channels, &n);
    if (status) return status;
    wt_overlap_save *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "overlap save: handle");
    f->channels = channels;
    f->n_taps = config->n_taps;
    f->n = n;
    f->n_fresh = n - config->n_taps + 1;
    status = take_memory(f);
    if (status) goto fail;
    memcpy(f->result, config->taps, sizeof(float) * (size_t)config->n_taps);
    status = wt_fft_run(f->forward, f->result, f->response);
    if (status) goto fail;
    *filter = f;
    return WT_OK;

fail:
    wt_overlap_save_destroy(f);
    return status;
}

void wt_overlap_save_destroy(wt_overlap_save *f)
{
    if (!f) return;
    wt_fft_destroy(f->forward);
    wt_fft_destroy(f->inverse);
    free(f->response);
    free(f->spectrum);
    free(f->result);
    free(f->in);
    free(f->ready);
    free(f);
}

int wt_overlap_save_latency_frames(const wt_overlap_save *f)
{
    return f->n_fresh;
}

WT_RT void wt_overlap_save_reset(wt_overlap_save *f)
{
    memset(f->in, 0, sizeof(float) * (size_t)f->channels * (size_t)f->n);
    memset(f->ready, 0, sizeof(float) * (size_t)f->channels * (size_t)f->n_fresh);
    f->at = 0;
}

WT_CLONES static void multiply(float *spectrum, const float *response, int bins)
{
    for (int k = 0; k < bins; k++) {
        const float re = spectrum[2 * k], im = spectrum[2 * k + 1], a = response[2 * k], b = response[2 * k + 1];
        spectrum[2 * k] = re * a - im * b;
        spectrum[2 * k + 1] = re * b + im * a;
    }
}

WT_RT static void transform(wt_overlap_save *f)
{
    const size_t n_past = (size_t)f->n_taps - 1, n_fresh = (size_t)f->n_fresh;
    for (int c = 0; c < f->channels; c++) {
        float *in = f->in + (size_t)c * (size_t)f->n;
        wt_fft_run(f->forward, in, f->spectrum); // fails only on a plan without tables
        multiply(f->spectrum, f->response, f->n / 2 + 1);
        wt_fft_run(f->inverse, f->spectrum, f->result);
        memcpy(f->ready + (size_t)c * n_fresh, f->result + n_past, sizeof(float) * n_fresh);
        memmove(in, in + n_fresh, sizeof(float) * n_past);
    }
}

WT_RT void wt_overlap_save_process(wt_overlap_save *f, const float *const *in, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = f->n_fresh - f->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < f->channels; c++) {
            float *present = f->in + (size_t)c * (size_t)f->n + f->n_taps - 1 + f->at;
            memcpy(present, in[c] + done, sizeof(float) * (size_t)n);
            memcpy(out[c] + done, f->ready + (size_t)c * (size_t)f->n_fresh + f->at, sizeof(float) * (size_t)n);
        }
        done += n;
        f->at += n;
        if (f->at < f->n_fresh) continue;
        transform(f);
        f->at = 0;
    }
}

void wt__overlap_save_row(wt_overlap_save *f, const float *in, int64_t n_in, float *out)
{
    const int64_t total = n_in + f->n_taps - 1;
    for (int64_t at = 0; at < total; at += f->n_fresh) { // a block in, the same block out
        const int64_t left_in = at < n_in ? n_in - at : 0, left_out = total - at;
        const size_t n = (size_t)(left_in < f->n_fresh ? left_in : f->n_fresh);
        float *present = f->in + f->n_taps - 1;
        memcpy(present, in + at, sizeof(float) * n);
        memset(present + n, 0, sizeof(float) * ((size_t)f->n_fresh - n));
        transform(f);
        memcpy(out + at, f->ready, sizeof(float) * (size_t)(left_out < f->n_fresh ? left_out : f->n_fresh));
    }
}

wt_status wt_fft_convolve(const float *in, int n_in, const float *taps, int n_taps, float *out)
{
    wt_overlap_save *f = NULL;
    if (n_in < 1) return wt_fail(WT_ERR_BAD_ARG, "overlap save: %d frames, want 1 or more", n_in);
    wt_status status =
        wt_overlap_save_create(&(wt_overlap_save_config){.taps = taps, .n_taps = n_taps, .channels = 1}, &f);
    if (status) return status;
    wt__overlap_save_row(f, in, n_in, out);
    wt_overlap_save_destroy(f);
    return WT_OK;
}
