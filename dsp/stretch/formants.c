// The envelope of a frame goes through its harmonics: from the lowest frequencies up, the largest bin within half a
// period's frequency around where the next harmonic is due; between them it is a cubic. So it follows the pitch, and
// rests on nothing else: a smooth curve of cepstral coefficients, which the valleys draw down, puts the first formant
// of a low voice 5 % off. Source: D. B. Paul, The spectral envelope estimation vocoder, 1981 (the search); A. Roebel
// and X. Rodet, Efficient spectral envelope estimation and its application to pitch shifting and envelope preservation,
// DAFx 2005 (what it is for). The period is the first large peak of the cepstrum: A. M. Noll, Cepstrum pitch
// determination, 1967. A frame without one gets peaks 150 Hz apart.
//
// A signal that is to be shifted by `ratio` gets the envelope V(ratio f) for V(f) first: the shift moves it back.

#include "formants_plan.h"
#include "fft_double.h"
#include "stft_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOWEST_HZ = 60, HIGHEST_HZ = 500, UNVOICED_HZ = 150, FRAMES = WT__FFT64_FRAMES, LANES = WT__FFT64_LANES };

struct wt__formants {
    wt_stft *stft;
    wt__fft64 *fft;
    wt_formants_args args;
    int bins;
    int64_t n_samples, n_frames;
    int n_before;              // frames that reach into the samples of the frames behind them
    float *spectra;            // [n_before + FRAMES][bins][2], at last windowed samples
    double *logarithms, *work; // [n_fft][2][LANES]
    double *bins16;            // [2][bins][FRAMES]
    double *cepstrum;          // of one frame
    wt_formants_knots knots;
};

wt_formants_args wt__formants_plan(const wt__formants_config *c, int n_fft, int64_t n_frames)
{
    const double spacing = c->order ? n_fft / (2.0 * c->order) : 0, unvoiced = n_fft * UNVOICED_HZ / c->rate_hz;
    wt_formants_args a = {.ratio = c->ratio,
                          .spacing = c->order ? fmax(spacing, WT_FORMANTS_LEAST) : 0,
                          .unvoiced = fmax(unvoiced, WT_FORMANTS_LEAST),
                          .n_samples = c->n_samples,
                          .n_fft = n_fft,
                          .hop = n_fft > 4 ? n_fft / 4 : 1,
                          .n_frames = (int)n_frames};
    const double first = ceil(c->rate_hz / HIGHEST_HZ), last = fmin(floor(c->rate_hz / LOWEST_HZ), n_fft / 4);
    a.first = first < n_fft ? (int)fmax(first, 2) : n_fft;
    a.last = last < a.first ? a.first - 1 : (int)last;
    return a;
}

static wt_status take_memory(wt__formants *f)
{
    const size_t bins = (size_t)f->bins, points = wt__fft64_doubles(f->args.n_fft) * sizeof(double),
                 room = (size_t)wt__formants_room(f->args.n_fft);
    f->spectra = malloc((size_t)(f->n_before + FRAMES) * bins * 2 * sizeof(float));
    f->logarithms = aligned_alloc(64, points);
    f->work = aligned_alloc(64, points);
    f->bins16 = aligned_alloc(64, 2 * bins * FRAMES * sizeof(double));
    f->cepstrum = malloc((size_t)(f->args.last - f->args.first + 3) * sizeof(double));
    f->knots.x = malloc(room * sizeof(double));
    f->knots.y = malloc(room * sizeof(double));
    f->knots.slope = malloc(room * sizeof(double));
    if (f->spectra && f->logarithms && f->work && f->bins16 && f->cepstrum && f->knots.x && f->knots.y &&
        f->knots.slope)
        return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: spectra of %d samples", f->args.n_fft);
}

wt_status wt__formants_create(const wt__formants_config *config, wt__formants **formants)
{
    *formants = NULL;
    wt__formants *f = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: formants");
    const int n_fft = config->n_fft ? config->n_fft : 2048;
    const wt_stft_config stft = {.n_fft = n_fft, .hop = n_fft > 4 ? n_fft / 4 : 1, .precise = true};
    f->n_samples = config->n_samples;
    wt_status status = wt_stft_create(&stft, &f->stft);
    if (!status) status = wt__fft64_create(n_fft, &f->fft);
    if (status) goto fail;
    f->bins = wt_stft_bins(f->stft);
    f->n_frames = wt_stft_frames(f->stft, config->n_samples);
    f->args = wt__formants_plan(config, n_fft, f->n_frames);
    f->args.window = wt__stft_window64(f->stft);
    f->n_before = n_fft / f->args.hop;
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
    wt__fft64_destroy(f->fft);
    free(f->spectra);
    free(f->logarithms);
    free(f->work);
    free(f->bins16);
    free(f->cepstrum);
    free(f->knots.x);
    free(f->knots.y);
    free(f->knots.slope);
    free(f);
}

// ---- one frame

static double largest_power(const wt__formants *f, const float *x)
{
    double most = 0;
    for (int k = 0; k < f->bins; k++) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power;
    }
    return most;
}

// Bins between harmonics. The cepstrum holds one quefrency more on both sides.
static double spacing_of(const wt__formants *f)
{
    const wt_formants_args *a = &f->args;
    const double *c = f->cepstrum + 1;
    const int n = a->last - a->first + 1;
    double most = 0;
    if (a->spacing > 0) return a->spacing;
    for (int q = 0; q < n; q++)
        if (c[q] > most) most = c[q];
    for (int q = 0; q < n && most >= WT_FORMANTS_VOICED; q++)
        if (c[q] >= WT_FORMANTS_SHARE * most && c[q] >= c[q - 1] && c[q] >= c[q + 1])
            return a->n_fft / (a->first + q + wt__formants_peak(c[q - 1], c[q], c[q + 1]));
    return a->unvoiced;
}

static int largest_bin(const float *x, int begin, int end)
{
    double most = -1;
    int at = begin;
    for (int k = begin; k <= end; k++) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power, at = k;
    }
    return at;
}

static void move(wt__formants *f, float *x, double most)
{
    const double spacing = spacing_of(f);
    wt_formants_knots *knots = &f->knots;
    knots->n = 1;
    for (int at = 0; wt__formants_end(at, spacing) < f->bins - 1;) {
        at = largest_bin(x, wt__formants_begin(at, spacing), wt__formants_end(at, spacing));
        wt__formants_add(knots, x, at, most);
    }
    if (knots->n == 1) return;
    knots->x[0] = 0, knots->y[0] = knots->y[1];
    knots->x[knots->n] = f->bins - 1, knots->y[knots->n] = knots->y[knots->n - 1];
    knots->n++;
    for (int i = 0; i < knots->n; i++) knots->slope[i] = wt__formants_slope(knots, i);
    for (int k = 0, there = 0, here = 0; k < f->bins; k++) {
        const double from = wt__formants_from(&f->args, k);
        while (there + 2 < knots->n && knots->x[there + 1] <= from) there++;
        while (here + 2 < knots->n && knots->x[here + 1] <= k) here++;
        const float gain = wt__formants_gain(wt__formants_at(knots, there, from) - wt__formants_at(knots, here, k));
        x[2 * k] *= gain, x[2 * k + 1] *= gain;
    }
}

// ---- sixteen frames

// Their logarithms, even and real, two frames a lane; returns the cepstra times n_fft in the same places.
static const double *transform(const wt__formants *f, const float *x, int count, double *most)
{
    const int n = f->args.n_fft;
    memset(f->logarithms, 0, wt__fft64_doubles(n) * sizeof(double));
    for (int i = 0; i < count; i++) {
        const float *row = x + (int64_t)i * f->bins * 2;
        most[i] = largest_power(f, row);
        for (int k = 0; k < f->bins; k++) {
            const double level = wt__formants_log(wt__formants_power(row + 2 * k), most[i]);
            f->logarithms[k * FRAMES + i] = level;
            if (k) f->logarithms[(n - k) * FRAMES + i] = level;
        }
    }
    return wt__fft64_run(f->fft, f->logarithms, f->work);
}

// Their windowed samples in place of their bins.
WT_RT static void return_frames(const wt__formants *f, float *x, int count)
{
    const int n = f->args.n_fft;
    double *re = f->bins16, *im = re + f->bins * FRAMES;
    for (int k = 0; k < f->bins; k++)
        for (int i = 0; i < FRAMES; i++) {
            const float *bin = x + ((int64_t)i * f->bins + k) * 2;
            re[k * FRAMES + i] = i < count ? bin[0] : 0;
            im[k * FRAMES + i] = i < count ? bin[1] : 0;
        }
    wt__fft64_fold(re, im, n, f->logarithms);
    const double *z = wt__fft64_run(f->fft, f->logarithms, f->work);
    for (int i = 0; i < count; i++) {
        const double *from = z + (i < FRAMES / 2 ? i + FRAMES / 2 : i - FRAMES / 2); // parts exchanged: the inverse
        float *row = x + (int64_t)i * f->bins * 2;
        for (int k = 0; k < n; k++) row[k] = (float)(from[k * FRAMES] * (f->args.window[k] / n));
    }
}

// Spectra of frames t .. t + count - 1 to x, rounded once.
static void analyse(const wt__formants *f, const float *pcm, int64_t t, int count, float *x)
{
    const double *re, *im;
    wt__stft_precise(f->stft, pcm, f->n_samples, t, count, &re, &im);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < f->bins; k++, x += 2) x[0] = (float)re[k * FRAMES + i], x[1] = (float)im[k * FRAMES + i];
}

// The same frames with their envelopes moved, as windowed samples.
WT_RT static void move_frames(wt__formants *f, float *x, int count)
{
    double most[FRAMES];
    const double *cepstra = transform(f, x, count, most);
    for (int i = 0; i < count; i++) {
        for (int q = f->args.first - 1; q <= f->args.last + 1 && f->args.last >= f->args.first; q++)
            f->cepstrum[q - f->args.first + 1] = cepstra[q * FRAMES + i] / f->args.n_fft;
        if (most[i] > 0) move(f, x + (int64_t)i * f->bins * 2, most[i]);
    }
    return_frames(f, x, count);
}

// Samples that no later frame reaches follow each group of frames; the last frames of a group stay for the next.
WT_RT void wt__formants_run(wt__formants *f, const float *pcm, float *out)
{
    const int64_t row = 2 * f->bins;
    wt_formants_args args = f->args;
    for (int64_t t = 0, n = 0; t < f->n_frames; t += FRAMES) {
        const int count = f->n_frames - t < FRAMES ? (int)(f->n_frames - t) : FRAMES, kept = t ? f->n_before : 0;
        const bool last = t + count == f->n_frames;
        float *x = f->spectra + kept * row;
        if (t) memmove(f->spectra, f->spectra + (args.n_held - kept) * row, (size_t)(kept * row) * sizeof *x);
        args.first_frame = (int)t - kept, args.n_held = kept + count;
        analyse(f, pcm, t, count, x);
        move_frames(f, x, count);
        const int64_t end = last ? f->n_samples : (t + count) * f->args.hop - f->args.n_fft / 2;
        for (; n < end; n++) out[n] = wt__formants_sample(&args, f->spectra, n);
    }
}
