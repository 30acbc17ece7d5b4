#include "plot.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>

static const double pi = 3.14159265358979323846, silence_db = -200;

// ---- spectrogram

typedef struct analysis {
    wt_fft *fft;
    int n_fft;
    float *window; // [n_fft], scaled so that a sine at full scale has power 1 in its bin
    float *frame;  // [n_fft]
    float *bins;   // [n_fft / 2 + 1][2]
    double *power; // [n_fft / 2 + 1], of one column
} analysis;

static void analysis_free(analysis *a)
{
    wt_fft_destroy(a->fft);
    free(a->window);
    free(a->frame);
    free(a->bins);
    free(a->power);
}

static wt_status analysis_prepare(analysis *a, int rate_hz)
{
    *a = (analysis){.n_fft = 64};
    while (a->n_fft < rate_hz * 0.06) a->n_fft *= 2; // 4096 at 44.1 and 48 kHz: 85 to 93 ms, Hann's half width 43 ms
    const size_t n = (size_t)a->n_fft;
    a->window = malloc(n * sizeof *a->window);
    a->frame = malloc(n * sizeof *a->frame);
    a->bins = malloc((n / 2 + 1) * 2 * sizeof *a->bins);
    a->power = malloc((n / 2 + 1) * sizeof *a->power);
    if (!a->window || !a->frame || !a->bins || !a->power) return wt_fail(WT_ERR_NO_MEMORY, "picture: spectrogram");
    for (size_t k = 0; k < n; k++) a->window[k] = (float)((1 - cos(2 * pi * (double)k / (double)n)) * 2 / (double)n);
    return wt_fft_create(NULL, &(wt_fft_config){.n = a->n_fft, .kind = WT_FFT_REAL_TO_COMPLEX}, &a->fft);
}

/// Add the power of one windowed stretch of one channel around frame `centre`; zeros beyond the ends.
static void add_power(analysis *a, const float *row, int64_t n_frames, int64_t centre, double weight)
{
    const int64_t start = centre - a->n_fft / 2;
    for (int k = 0; k < a->n_fft; k++)
        a->frame[k] = start + k >= 0 && start + k < n_frames ? row[start + k] * a->window[k] : 0;
    if (wt_fft_run(a->fft, a->frame, a->bins)) return; // the plan was checked; an empty column is the mark of a mistake
    for (int b = 0; b <= a->n_fft / 2; b++) {
        const double re = a->bins[2 * b], im = a->bins[2 * b + 1];
        a->power[b] += weight * (re * re + im * im);
    }
}

/// One column of time. A step longer than the window is looked at in up to eight places.
static void column_power(analysis *a, const wt_audio *audio, double begin, double step)
{
    const int places = (int)fmin(fmax(ceil(step / (a->n_fft / 2)), 1), 8);
    memset(a->power, 0, sizeof *a->power * (size_t)(a->n_fft / 2 + 1));
    for (int c = 0; c < audio->channels; c++)
        for (int k = 0; k < places; k++)
            add_power(a, audio->samples + c * audio->n_frames, audio->n_frames,
                      (int64_t)(begin + step * (k + 0.5) / places), 1.0 / places / audio->channels);
}

static double decibels(double power)
{
    return power > 1e-20 ? 10 * log10(power) : silence_db;
}

/// The bins from low to high (fractions of a bin allowed), in dB.
static double band_db(const analysis *a, double low, double high)
{
    const int first = (int)ceil(low), last = (int)floor(high);
    if ((low + high) / 2 > a->n_fft / 2) return silence_db;
    if (first > last) {
        const double at = (low + high) / 2;
        const int below = (int)at < a->n_fft / 2 ? (int)at : a->n_fft / 2 - 1;
        return decibels(a->power[below]) * (below + 1 - at) + decibels(a->power[below + 1]) * (at - below);
    }
    double most = 0;
    for (int b = first; b <= last && b <= a->n_fft / 2; b++) most = fmax(most, a->power[b]);
    return decibels(most);
}

wt_status wt_plot_spectrogram(const wt_audio *audio, double low_hz, double high_hz, int n_rows, int n_columns,
                              float *out)
{
    if (audio->n_frames < 1 || audio->channels < 1 || audio->rate_hz < 1 || n_rows < 1 || n_columns < 1)
        return wt_fail(WT_ERR_BAD_ARG, "picture: %lld frames of %d channels at %d Hz on %d x %d points, want 1 or more",
                       (long long)audio->n_frames, audio->channels, audio->rate_hz, n_columns, n_rows);
    if (!(low_hz > 0 && high_hz > low_hz))
        return wt_fail(WT_ERR_BAD_ARG, "picture: frequencies %g to %g Hz, want rising ones above 0", low_hz, high_hz);
    analysis a;
    wt_status status = analysis_prepare(&a, audio->rate_hz);
    if (status) goto end;
    const double step = (double)audio->n_frames / n_columns, bin_hz = (double)audio->rate_hz / a.n_fft;
    const wt_axis axis = {.low = low_hz, .high = high_hz, .logarithmic = true};
    for (int t = 0; t < n_columns; t++) {
        column_power(&a, audio, t * step, step);
        for (int k = 0; k < n_rows; k++) {
            const double low = wt_axis_value(&axis, (double)k / n_rows),
                         high = wt_axis_value(&axis, (k + 1.0) / n_rows);
            out[(size_t)k * (size_t)n_columns + (size_t)t] = (float)band_db(&a, low / bin_hz, high / bin_hz);
        }
    }
end:
    analysis_free(&a);
    return status;
}

// ---- waveform

typedef struct levels {
    double low, high, rms;
} levels;

/// Extremes and RMS of all channels over frames begin .. end - 1.
static levels measure(const wt_audio *audio, int64_t begin, int64_t end)
{
    levels l = {0};
    double sum = 0;
    for (int c = 0; c < audio->channels; c++) {
        const float *row = audio->samples + c * audio->n_frames;
        for (int64_t n = begin; n < end; n++) {
            l.low = fmin(l.low, row[n]);
            l.high = fmax(l.high, row[n]);
            sum += (double)row[n] * row[n];
        }
    }
    if (end > begin) l.rms = sqrt(sum / (double)(end - begin) / audio->channels);
    return l;
}

static double peak_of(const levels *l)
{
    return fmax(l->high, -l->low);
}

static void draw_waveform(wt_canvas *canvas, const wt_axes *axes, const wt_audio *audio, wt_colour pale, wt_colour deep)
{
    wt_axes_draw_grid(canvas, axes);
    const int width = (int)axes->width;
    for (int x = 0; x < width; x++) {
        const int64_t begin = audio->n_frames * x / width, end = audio->n_frames * (x + 1) / width;
        const levels l = measure(audio, begin, end > begin ? end : begin + 1);
        const double top = wt_axes_y(axes, l.high), bottom = wt_axes_y(axes, l.low);
        wt_canvas_fill(canvas, axes->left + x, top, 1, fmax(bottom - top, 1), pale);
        const double upper = fmax(wt_axes_y(axes, l.rms), top), lower = fmin(wt_axes_y(axes, -l.rms), bottom);
        if (lower > upper) wt_canvas_fill(canvas, axes->left + x, upper, 1, lower - upper, deep);
    }
    wt_axes_draw_frame(canvas, axes);
}

// ---- the page

typedef struct page {
    const wt_audio *audio[2];
    wt_axes wave[2], spectrum[2], bar;
    char notes[2][2][128]; // of waveform and spectrogram
    float *matrix[2];      // [n_rows][n_columns], one value a pixel
    int n_rows, n_columns;
} page;

/// A round number that is not below the peak; 1 when there is next to nothing, so that silence looks like silence.
static double amplitude_limit(double peak)
{
    static const double limits[] = {0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10};
    if (peak < 0.01) return 1;
    for (int k = 0; k < 9; k++)
        if (peak <= limits[k]) return limits[k];
    return peak;
}

static void describe(page *p, int side, const levels *l)
{
    const wt_audio *audio = p->audio[side];
    char peak[32] = "silent", rms[32] = "";
    if (peak_of(l) > 0) {
        snprintf(peak, sizeof peak, "peak %.1f dBFS", 20 * log10(peak_of(l)));
        snprintf(rms, sizeof rms, "   RMS %.1f dBFS", 20 * log10(l->rms));
    }
    snprintf(p->notes[side][0], sizeof p->notes[side][0], "%s%s", peak, rms);
    snprintf(p->notes[side][1], sizeof p->notes[side][1], "%g kHz   %d channel%s   %.2f s", audio->rate_hz / 1000.0,
             audio->channels, audio->channels == 1 ? "" : "s", (double)audio->n_frames / audio->rate_hz);
}

static void lay_out(page *p, int width, int height, bool titled)
{
    static const char *const names[2] = {"Before", "After"};
    const double left = 92, right = 112, gap = 92, top = titled ? 92 : 50, between = 92, bottom = 62;
    const double column = floor((width - left - gap - right) / 2), rows = height - top - between - bottom;
    const levels all[2] = {measure(p->audio[0], 0, p->audio[0]->n_frames),
                           measure(p->audio[1], 0, p->audio[1]->n_frames)};
    const double limit = amplitude_limit(fmax(peak_of(&all[0]), peak_of(&all[1])));
    const double wave = floor(rows * 0.3);
    for (int s = 0; s < 2; s++) {
        const double x0 = left + s * (column + gap);
        const double seconds = (double)p->audio[s]->n_frames / p->audio[s]->rate_hz;
        const wt_axis time = {.high = seconds, .label = "time (s)"};
        describe(p, s, &all[s]);
        p->wave[s] =
            (wt_axes){x0,       top,           column,
                      wave,     time,          {.low = -limit, .high = limit, .label = "amplitude (full scale = 1)"},
                      names[s], p->notes[s][0]};
        p->spectrum[s] = (wt_axes){x0,
                                   top + wave + between,
                                   column,
                                   rows - wave,
                                   time,
                                   {.low = 20, .high = 20000, .logarithmic = true, .label = "frequency (Hz)"},
                                   "Spectrogram",
                                   p->notes[s][1]};
    }
    p->bar = p->spectrum[1];
    p->bar.left += column + 18;
    p->bar.width = 16;
    p->n_rows = (int)p->bar.height;
    p->n_columns = (int)column;
}

static wt_status analyse(page *p, double range_db)
{
    double most = silence_db;
    for (int s = 0; s < 2; s++) {
        const size_t count = (size_t)p->n_rows * (size_t)p->n_columns;
        p->matrix[s] = malloc(count * sizeof(float));
        if (!p->matrix[s]) return wt_fail(WT_ERR_NO_MEMORY, "picture: spectrogram");
        wt_status status = wt_plot_spectrogram(p->audio[s], 20, 20000, p->n_rows, p->n_columns, p->matrix[s]);
        if (status) return status;
        for (size_t k = 0; k < count; k++) most = fmax(most, p->matrix[s][k]);
    }
    const double top = fmax(10 * ceil(most / 10), -60); // below, all is silence and stays dark
    p->bar.y = (wt_axis){.low = top - range_db, .high = top, .label = "power (dB, full-scale sine = 0)"};
    return WT_OK;
}

static void draw(const page *p, wt_canvas *canvas, const char *title)
{
    static const wt_colour pale[2] = {0x9db8d9, 0xe8b99a}, deep[2] = {0x2c5d9b, 0xb4531f};
    wt_text_style style = {.height = 16, .colour = 0x16181c, .align_x = -1, .align_y = 1};
    const double room = p->bar.left + p->bar.width - p->wave[0].left;
    if (title) style.height = fmin(style.height, wt_text_fit(title, room));
    style.thickness = style.height * 0.16;
    if (title) wt_canvas_text(canvas, p->wave[0].left, 44, &style, title);
    for (int s = 0; s < 2; s++) {
        draw_waveform(canvas, &p->wave[s], p->audio[s], pale[s], deep[s]);
        wt_axes_draw_matrix(canvas, &p->spectrum[s], p->matrix[s], p->n_rows, p->n_columns, p->bar.y.low,
                            p->bar.y.high);
        wt_axes_draw_frame(canvas, &p->spectrum[s]);
    }
    wt_axes_draw_colour_bar(canvas, &p->bar);
}

wt_status wt_plot_before_after(const char *path, const wt_audio *before, const wt_audio *after,
                               const wt_plot_config *config)
{
    const wt_plot_config none = {0};
    if (!config) config = &none;
    const int width = config->width ? config->width : 1600, height = config->height ? config->height : 1000;
    const double range_db = config->range_db != 0 ? config->range_db : 90;
    if (width < 1000 || height < 600 || width > 16384 || height > 16384)
        return wt_fail(WT_ERR_BAD_ARG, "%s: picture of %d x %d, want 1000 x 600 to 16384 x 16384", path, width, height);
    if (!(range_db > 0)) return wt_fail(WT_ERR_BAD_ARG, "%s: range %g dB, want more than 0", path, range_db);
    if (before->n_frames < 1 || after->n_frames < 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s: picture of %lld and %lld frames, want 1 or more", path,
                       (long long)before->n_frames, (long long)after->n_frames);
    page p = {.audio = {before, after}};
    wt_canvas *canvas = NULL;
    lay_out(&p, width, height, config->title != NULL);
    wt_status status = analyse(&p, range_db);
    if (status) goto end;
    status = wt_canvas_create(width, height, 0xffffff, &canvas);
    if (status) goto end;
    draw(&p, canvas, config->title);
    status = wt_canvas_write_png(canvas, path);
end:
    wt_canvas_destroy(canvas);
    free(p.matrix[0]);
    free(p.matrix[1]);
    return status;
}
