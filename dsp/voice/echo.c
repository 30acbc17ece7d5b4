// A partitioned-block filter in the frequency domain (overlap-save, blocks of B frames, transforms of 2 B), adapted as
// normalised LMS whose step is a Kalman filter's. For each partition p and bin k it keeps `doubt`, the variance of the
// error of its weight W. With X the playback's spectra, E the error's, and N the power of what is not echo:
//
//     D    = sum_p |X_p|^2 doubt_p / 2 + N          expected |E|^2; a half, since half of each transform is zeros
//     W_p += constrain(doubt_p X_p* E / D)
//     doubt_p = keep^2 (1 - doubt_p |X_p|^2 / (2 D)) doubt_p + (1 - keep^2) |W_p|^2
//
// Near-end speech makes N and so D large, and the step small, in its own bins only: that is the double-talk control;
// no detector, no threshold. N is the smoothed power of the error, or the present one where that is more: so the step
// falls in the very block in which speech begins. While playback is silent nothing adapts and no doubt grows.
//
// What the filter finds is only taken off while that makes the microphone quieter; `trust` fades between the two over
// a block. An error 1 dB louder than the microphone says that the room has changed: all is in doubt again.
#include "echo_rules.h"
#include "fft_internal.h"
#include "op.h"

#include <warptone/simd.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64 };

typedef struct voice {
    float *w_re, *w_im, *doubt; // [n_parts][n_bins]
    float *near;                // [n_bins] smoothed power of the error
    float *mic, *ready;         // [block] coming in, going out
    echo_worth worth;
} voice;

struct wt_echo {
    int channels, block, n_bins, n_parts, at, head; // head: part of the newest playback spectrum
    echo_rules rules;
    wt_fft *forward, *inverse;
    float *x_re, *x_im, *x_power; // [n_parts][n_bins] spectra of the playback, a ring
    float *past;                  // [2 block] playback
    float *wave;                  // [2 block] scratch
    float *re, *im, *step;        // [n_bins] scratch
    float *e_re, *e_im;           // [n_bins] of the error
    float *memory;                // all of these
    size_t voice_floats;
    voice voices[MAX_CHANNELS];
};

static wt_status check(const wt_echo_config *c)
{
    if (c->rate_hz < 8000 || c->rate_hz > 192000)
        return wt_fail(WT_ERR_BAD_ARG, "echo: rate %d Hz, want 8000..192000", c->rate_hz);
    if (c->channels < 1 || c->channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "echo: %d channels, want 1..%d", c->channels, MAX_CHANNELS);
    if (!(c->tail_ms >= 10 && c->tail_ms <= 2000))
        return wt_fail(WT_ERR_BAD_ARG, "echo: tail %g ms, want 10..2000", c->tail_ms);
    if (!(c->latency_ms >= 2 && c->latency_ms <= 100))
        return wt_fail(WT_ERR_BAD_ARG, "echo: latency %g ms, want 2..100", c->latency_ms);
    return WT_OK;
}

echo_rules wt__echo_rules(double block_s)
{
    return (echo_rules){
        .keep = (float)exp(-block_s / 20), // 5 s follows a changing room faster and keeps 4 dB less of the near end
        .near_keep = (float)exp(-block_s / 0.05),
        .power_keep = (float)exp(-block_s / 0.05),
    };
}

static float *take(float **memory, size_t floats)
{
    float *at = *memory;
    *memory += floats;
    return at;
}

static wt_status take_memory(wt_echo *e)
{
    const size_t block = (size_t)e->block, n_bins = (size_t)e->n_bins, spectra = (size_t)e->n_parts * n_bins;
    e->voice_floats = 3 * spectra + n_bins + 2 * block;
    e->memory = calloc(3 * spectra + 5 * n_bins + 4 * block + (size_t)e->channels * e->voice_floats, sizeof(float));
    if (!e->memory)
        return wt_fail(WT_ERR_NO_MEMORY, "echo: %d channels, %d parts of %d frames", e->channels, e->n_parts, e->block);
    float *free_at = e->memory;
    e->x_re = take(&free_at, spectra);
    e->x_im = take(&free_at, spectra);
    e->x_power = take(&free_at, spectra);
    e->past = take(&free_at, 2 * block);
    e->wave = take(&free_at, 2 * block);
    e->re = take(&free_at, n_bins);
    e->im = take(&free_at, n_bins);
    e->step = take(&free_at, n_bins);
    e->e_re = take(&free_at, n_bins);
    e->e_im = take(&free_at, n_bins);
    for (int c = 0; c < e->channels; c++) {
        voice *v = &e->voices[c];
        v->w_re = take(&free_at, spectra);
        v->w_im = take(&free_at, spectra);
        v->doubt = take(&free_at, spectra);
        v->near = take(&free_at, n_bins);
        v->mic = take(&free_at, block);
        v->ready = take(&free_at, block);
    }
    const int n = 2 * e->block;
    wt_status status = wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, &e->forward);
    if (status) return status;
    return wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_COMPLEX_TO_REAL}, &e->inverse);
}

wt_status wt__echo_resolve(const wt_echo_config *config, wt__echo_shape *shape)
{
    const wt_echo_config c = {
        .rate_hz = config->rate_hz ? config->rate_hz : 48000,
        .channels = config->channels ? config->channels : 1,
        .tail_ms = wt__op_setting(config->tail_ms, 256),
        .latency_ms = wt__op_setting(config->latency_ms, 10),
    };
    wt_status status = check(&c);
    if (status) return status;
    const int block = (int)lround(c.latency_ms * c.rate_hz / 1000);
    *shape = (wt__echo_shape){.channels = c.channels,
                              .block = block,
                              .n_parts = (int)ceil(c.tail_ms * c.rate_hz / 1000 / block),
                              .rules = wt__echo_rules((double)block / c.rate_hz)};
    return WT_OK;
}

wt_status wt_echo_create(const wt_echo_config *config, wt_echo **echo)
{
    *echo = NULL;
    wt__echo_shape shape;
    wt_status status = wt__echo_resolve(config, &shape);
    if (status) return status;
    wt_echo *e = calloc(1, sizeof *e);
    if (!e) return wt_fail(WT_ERR_NO_MEMORY, "echo: handle");
    e->channels = shape.channels, e->rules = shape.rules;
    e->block = shape.block, e->n_bins = shape.block + 1, e->n_parts = shape.n_parts;
    status = take_memory(e);
    if (status) goto fail;
    wt_echo_reset(e);
    *echo = e;
    return WT_OK;

fail:
    wt_echo_destroy(e);
    return status;
}

void wt_echo_destroy(wt_echo *e)
{
    if (!e) return;
    wt_fft_destroy(e->forward);
    wt_fft_destroy(e->inverse);
    free(e->memory);
    free(e);
}

int wt_echo_latency_frames(const wt_echo *e) { return e->block; }

WT_RT void wt_echo_reset(wt_echo *e)
{
    const size_t spectra = (size_t)e->n_parts * (size_t)e->n_bins;
    memset(e->x_re, 0, sizeof(float) * 3 * spectra); // x_re, x_im, x_power
    memset(e->past, 0, sizeof(float) * 2 * (size_t)e->block);
    e->at = e->head = 0;
    for (int c = 0; c < e->channels; c++) {
        voice *v = &e->voices[c];
        memset(v->w_re, 0, sizeof(float) * e->voice_floats); // all of the voice
        for (size_t k = 0; k < spectra; k++) v->doubt[k] = ECHO_FIRST_DOUBT;
        v->worth = (echo_worth){.trust = 1};
    }
}

WT_CLONES static void multiply_add(const float *a_re, const float *a_im, const float *b_re, const float *b_im,
                                   float *re, float *im, int n)
{
    for (int k = 0; k < n; k++) {
        re[k] += a_re[k] * b_re[k] - a_im[k] * b_im[k];
        im[k] += a_re[k] * b_im[k] + a_im[k] * b_re[k];
    }
}

WT_CLONES static void powers(const float *re, const float *im, float *power, int n)
{
    for (int k = 0; k < n; k++) power[k] = re[k] * re[k] + im[k] * im[k];
}

WT_CLONES static void add_half_product(const float *a, const float *b, float *sum, int n)
{
    for (int k = 0; k < n; k++) sum[k] += 0.5f * a[k] * b[k];
}

// step: from the echo's part of D to 1 / D.
WT_CLONES static void normalise(const echo_rules *r, const float *e_re, const float *e_im, float *near, float *step,
                                int n)
{
    for (int k = 0; k < n; k++) step[k] = echo_step(r, &near[k], step[k], e_re[k], e_im[k]);
}

// re, im = doubt X* E / D
WT_CLONES static void gradient(const wt_echo *e, size_t x_at, const float *doubt, int n)
{
    const float *x_re = e->x_re + x_at, *x_im = e->x_im + x_at, *e_re = e->e_re, *e_im = e->e_im, *step = e->step;
    float *re = e->re, *im = e->im;
    for (int k = 0; k < n; k++) {
        const float gain = doubt[k] * step[k];
        re[k] = gain * (x_re[k] * e_re[k] + x_im[k] * e_im[k]);
        im[k] = gain * (x_re[k] * e_im[k] - x_im[k] * e_re[k]);
    }
}

WT_CLONES static void move(const wt_echo *e, const float *x_power, float *w_re, float *w_im, float *doubt, int n)
{
    const float *re = e->re, *im = e->im, *step = e->step;
    for (int k = 0; k < n; k++) {
        w_re[k] += re[k];
        w_im[k] += im[k];
        doubt[k] = echo_doubt(&e->rules, doubt[k], step[k], x_power[k], w_re[k], w_im[k]);
    }
}

// Where in the ring lies the playback's spectrum of p blocks ago?
static size_t x_of(const wt_echo *e, int p) { return (size_t)((e->head + p) % e->n_parts) * (size_t)e->n_bins; }

// Filter the playback: echo [block] in the second half of `wave`.
WT_RT static void imagine(wt_echo *e, const voice *v)
{
    const size_t n_bins = (size_t)e->n_bins;
    memset(e->re, 0, sizeof(float) * n_bins);
    memset(e->im, 0, sizeof(float) * n_bins);
    for (int p = 0; p < e->n_parts; p++) {
        const size_t x = x_of(e, p), w = (size_t)p * n_bins;
        multiply_add(v->w_re + w, v->w_im + w, e->x_re + x, e->x_im + x, e->re, e->im, e->n_bins);
    }
    wt__fft_real_inverse(e->inverse, e->re, e->im, e->wave);
}

// Take the echo off; leaves zeros and the error [block] in `wave`.
WT_RT static void cancel(wt_echo *e, voice *v)
{
    const int block = e->block;
    float mic_power = 0, error_power = 0;
    for (int k = 0; k < block; k++) {
        const float error = v->mic[k] - e->wave[block + k];
        mic_power += v->mic[k] * v->mic[k] / (float)block;
        error_power += error * error / (float)block;
    }
    const float before = v->worth.trust;
    v->worth = echo_judge(&e->rules, v->worth, mic_power, error_power);
    const float change = v->worth.trust - before;
    for (int k = 0; k < block; k++) {
        const float echo = e->wave[block + k];
        v->ready[k] = v->mic[k] - (before + change * (float)k / (float)block) * echo;
        e->wave[block + k] = v->mic[k] - echo;
        e->wave[k] = 0;
    }
    if (v->worth.error_power > ECHO_WORSE * v->worth.mic_power)
        for (size_t k = 0; k < (size_t)e->n_parts * (size_t)e->n_bins; k++)
            v->doubt[k] = fmaxf(v->doubt[k], ECHO_FIRST_DOUBT);
}

WT_RT static void adapt(wt_echo *e, voice *v)
{
    const size_t block = (size_t)e->block, n_bins = (size_t)e->n_bins;
    wt__fft_real_forward(e->forward, e->wave, e->e_re, e->e_im);
    memset(e->step, 0, sizeof(float) * n_bins);
    for (int p = 0; p < e->n_parts; p++)
        add_half_product(e->x_power + x_of(e, p), v->doubt + (size_t)p * n_bins, e->step, e->n_bins);
    normalise(&e->rules, e->e_re, e->e_im, v->near, e->step, e->n_bins);
    for (int p = 0; p < e->n_parts; p++) {
        const size_t x = x_of(e, p), w = (size_t)p * n_bins;
        gradient(e, x, v->doubt + w, e->n_bins);
        wt__fft_real_inverse(e->inverse, e->re, e->im, e->wave); // constrain: a part has `block` taps
        memset(e->wave + block, 0, sizeof(float) * block);
        wt__fft_real_forward(e->forward, e->wave, e->re, e->im);
        move(e, e->x_power + x, v->w_re + w, v->w_im + w, v->doubt + w, e->n_bins);
    }
}

WT_RT static void end_block(wt_echo *e)
{
    const size_t block = (size_t)e->block;
    e->head = (e->head + e->n_parts - 1) % e->n_parts;
    const size_t x = x_of(e, 0);
    wt__fft_real_forward(e->forward, e->past, e->x_re + x, e->x_im + x);
    powers(e->x_re + x, e->x_im + x, e->x_power + x, e->n_bins);
    float power = 0;
    for (size_t k = 0; k < 2 * block; k++) power += e->past[k] * e->past[k];
    for (int c = 0; c < e->channels; c++) {
        imagine(e, &e->voices[c]);
        cancel(e, &e->voices[c]);
        if (power > ECHO_SILENT * 2 * (float)block) adapt(e, &e->voices[c]);
    }
    memcpy(e->past, e->past + block, sizeof(float) * block);
}

WT_RT static void copy_tame(float *to, const float *from, int n)
{
    for (int k = 0; k < n; k++) to[k] = echo_tame(from[k]);
}

WT_RT void wt_echo_process(wt_echo *e, const float *const *mic, const float *playback, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = e->block - e->at, n = n_frames - done < room ? n_frames - done : room;
        copy_tame(e->past + e->block + e->at, playback + done, n);
        for (int c = 0; c < e->channels; c++) {
            voice *v = &e->voices[c];
            copy_tame(v->mic + e->at, mic[c] + done, n);
            memcpy(out[c] + done, v->ready + e->at, sizeof(float) * (size_t)n);
        }
        e->at += n;
        done += n;
        if (e->at < e->block) continue;
        end_block(e);
        e->at = 0;
    }
}
