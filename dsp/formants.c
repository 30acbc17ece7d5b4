// The envelope of a frame is its true envelope: the log magnitudes smoothed by their first cepstral coefficients, which
// run through the mean of peaks and valleys; what lies below the smooth curve is lifted to it, and smoothed again,
// until no peak stands out by more than 2 dB. So the curve rests on the harmonics. Source: S. Imai and Y. Abe, Spectral
// envelope extraction by improved cepstral method, 1979; A. Roebel and X. Rodet, Efficient spectral envelope estimation
// and its application to pitch shifting and envelope preservation, DAFx 2005, whose order is rate / (2 f0): rate / 300
// is for voices to 150 Hz, and serves above, where the curve begins to sink between harmonics.
//
// A signal that is to be shifted by `ratio` gets the envelope V(ratio f) for V(f) first: the shift moves it back.

#include "formants.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/stft.h>

struct wt__formants {
    wt_stft *stft;
    wt_fft *to_cepstrum, *to_spectrum;
    int n_fft, bins, order;
    double ratio;
    int64_t n_samples, n_frames;
    float *spectra;                 // [n_frames][bins][2]
    float *peaks, *lifted, *smooth; // [bins] natural logarithms: of the frame, lifted, their envelope
    float *pairs, *cepstrum;        // [bins][2], [n_fft]
};

enum { MAX_ROUNDS = 24 };

static wt_status take_memory(wt__formants *f)
{
    const size_t bins = (size_t)f->bins;
    f->spectra = malloc((size_t)f->n_frames * bins * 2 * sizeof(float));
    f->peaks = malloc(bins * sizeof(float));
    f->lifted = malloc(bins * sizeof(float));
    f->smooth = malloc(bins * sizeof(float));
    f->pairs = malloc(2 * bins * sizeof(float));
    f->cepstrum = malloc((size_t)f->n_fft * sizeof(float));
    if (f->spectra && f->peaks && f->lifted && f->smooth && f->pairs && f->cepstrum) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: spectra of %lld samples", (long long)f->n_samples);
}

wt_status wt__formants_create(int n_fft, double rate_hz, int order, double ratio, int64_t n_samples,
                              wt__formants **formants)
{
    *formants = NULL;
    wt__formants *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: formants");
    f->n_fft = n_fft ? n_fft : 2048;
    f->ratio = ratio;
    f->n_samples = n_samples;
    wt_status status =
        wt_stft_create(&(wt_stft_config){.n_fft = f->n_fft, .hop = f->n_fft > 4 ? f->n_fft / 4 : 1}, &f->stft);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = f->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL}, &f->to_cepstrum);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = f->n_fft, .kind = WT_FFT_REAL_TO_COMPLEX}, &f->to_spectrum);
    if (status) goto fail;
    f->bins = wt_stft_bins(f->stft);
    f->n_frames = wt_stft_frames(f->stft, n_samples);
    const double wanted = order ? order : rint(rate_hz / 300);
    f->order = wanted < 1 ? 1 : wanted < f->n_fft / 2 ? (int)wanted : f->n_fft / 2;
    status = take_memory(f);
    if (status) goto fail;
    *formants = f;
    return WT_OK;

fail:
    wt__formants_destroy(f);
    return status;
}

void wt__formants_destroy(wt__formants *f)
{
    if (!f) return;
    wt_stft_destroy(f->stft);
    wt_fft_destroy(f->to_cepstrum);
    wt_fft_destroy(f->to_spectrum);
    free(f->spectra);
    free(f->peaks);
    free(f->lifted);
    free(f->smooth);
    free(f->pairs);
    free(f->cepstrum);
    free(f);
}

// The first cepstral coefficients of `lifted` alone, to `smooth`. The plans were checked when they were made.
static void smoothen(wt__formants *f)
{
    for (int k = 0; k < f->bins; k++) f->pairs[2 * k] = f->lifted[k], f->pairs[2 * k + 1] = 0;
    (void)!wt_fft_run(f->to_cepstrum, f->pairs, f->cepstrum);
    for (int i = f->order + 1; i < f->n_fft - f->order; i++) f->cepstrum[i] = 0;
    (void)!wt_fft_run(f->to_spectrum, f->cepstrum, f->pairs);
    for (int k = 0; k < f->bins; k++) f->smooth[k] = f->pairs[2 * k];
}

static void find_envelope(wt__formants *f)
{
    memcpy(f->lifted, f->peaks, (size_t)f->bins * sizeof *f->lifted);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        smoothen(f);
        float over = 0;
        for (int k = 0; k < f->bins; k++) {
            if (f->peaks[k] - f->smooth[k] > over) over = f->peaks[k] - f->smooth[k];
            if (f->smooth[k] > f->lifted[k]) f->lifted[k] = f->smooth[k];
        }
        if (over < 0.23f) return; // 2 dB
    }
}

// Logarithms, no deeper than 100 dB below the peak; false for silence.
static bool measure(wt__formants *f, const float *x)
{
    float most = 0;
    for (int k = 0; k < f->bins; k++) {
        f->peaks[k] = x[2 * k] * x[2 * k] + x[2 * k + 1] * x[2 * k + 1];
        if (f->peaks[k] > most) most = f->peaks[k];
    }
    for (int k = 0; k < f->bins && most > 0; k++) f->peaks[k] = 0.5f * logf(f->peaks[k] + 1e-10f * most);
    return most > 0;
}

static void move(const wt__formants *f, float *x)
{
    for (int k = 0; k < f->bins; k++) {
        const double at = f->ratio * k, last = f->bins - 1;
        const int low = at < last ? (int)at : f->bins - 1, high = low + 1 < f->bins ? low + 1 : low;
        const float part = at < last ? (float)(at - low) : 0;
        const float lift = (1 - part) * f->smooth[low] + part * f->smooth[high] - f->smooth[k];
        const float gain = expf(fminf(fmaxf(lift, -4.6f), 4.6f)); // within 40 dB
        x[2 * k] *= gain, x[2 * k + 1] *= gain;
    }
}

WT_RT void wt__formants_run(wt__formants *f, const float *pcm, float *out)
{
    (void)!wt_stft_forward(f->stft, pcm, f->n_samples, f->spectra);
    for (int64_t t = 0; t < f->n_frames; t++) {
        float *x = f->spectra + t * f->bins * 2;
        if (!measure(f, x)) continue;
        find_envelope(f);
        move(f, x);
    }
    (void)!wt_stft_inverse(f->stft, f->spectra, f->n_frames, f->n_samples, out);
}
