#include "analyze_write.h"
#include "axes.h"
#include "plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Panels lie below each other on one time axis:
//
//   header                file                                numbers
//   title
//   +-----------------------------------------------------+  ++ colours
//   | matrix, curve, or waveform with lines               |  ||
//   +-----------------------------------------------------+  ++
//     0      1      2      time (s)

enum { LEFT = 95, RIGHT = 115, ABOVE = 34, BELOW = 58, HEADER = 44, BAR = 18, MAX_MARKS = 64 };

static const wt_colour paper = 0xffffff, ink = 0x303338, shade = 0xf3ead6;
static const wt_colour wave = 0x7f96b2, red = 0xc8323c, blue = 0x1f5fa8;
static const double range_db = 80; // as librosa's top_db

typedef struct picture {
    const analyze_report *report;
    wt_canvas *canvas;
    double width, height, seconds; // of a panel's frame
} picture;

typedef struct panel {
    wt_axes axes;
    wt_axis_mark marks[MAX_MARKS];
    double low, high; // of the colours
    const char *colours;
} panel;

static wt_axis time_axis(const picture *p) { return (wt_axis){.high = p->seconds, .label = "time (s)"}; }

// ---- matrices

static double bpm_of(const analyze_report *report, double lag)
{
    return 60.0 * report->rate_hz / analyze_hop(report->options) / lag;
}

/// The row, fractions allowed, of a value on the y axis.
static double row_of(const analyze_report *report, const analyze_array *a, double value)
{
    if (a->rows == ANALYZE_ROWS_LINEAR) return value * analyze_n_fft(report->options) / report->rate_hz + 0.5;
    if (a->rows == ANALYZE_ROWS_LAG) return bpm_of(report, value) + 0.5;
    if (a->rows == ANALYZE_ROWS_TEMPO) return value / bpm_of(report, 2.0 * (double)(analyze_n_rows(a) - 1)) + 0.5;
    return value;
}

static bool is_power(const analyze_array *a) { return !strcmp(a->unit, "power"); }

static bool is_mel_of_magnitudes(const analyze_array *a)
{
    return a->rows == ANALYZE_ROWS_MEL && !strncmp(a->unit, "magnitude", 9);
}

static bool in_db(const analyze_array *a)
{
    if (!strcmp(a->unit, "dB") || !strcmp(a->unit, "rad") || !strcmp(a->unit, "share")) return false; // as they are
    return a->rows == ANALYZE_ROWS_LINEAR || a->rows == ANALYZE_ROWS_CQT || is_power(a) || is_mel_of_magnitudes(a);
}

/// Element k as it is drawn: powers and magnitudes in decibels.
static float drawn(const analyze_array *a, int64_t k)
{
    const double value = analyze_number(a, k);
    if (!in_db(a)) return isfinite(value) ? (float)value : 0;
    const double db = (is_power(a) ? 10 : 20) * log10(value);
    return isfinite(db) ? (float)fmax(db, -300) : -300;
}

typedef struct span {
    int64_t first, last;
} span;

/// What lies from `a` to `b`, at least one of 0 .. n - 1.
static span span_of(double a, double b, int64_t n)
{
    span s = {(int64_t)floor(fmin(a, b)), (int64_t)ceil(fmax(a, b)) - 1};
    if (s.last < s.first) s.last = s.first;
    s.first = s.first < 0 ? 0 : s.first >= n ? n - 1 : s.first;
    s.last = s.last < 0 ? 0 : s.last >= n ? n - 1 : s.last;
    return s;
}

/// The largest element of each pixel: [height][width] for wt_axes_draw_matrix. Caller frees; NULL without memory.
static float *pixels_of(const picture *p, const analyze_array *a, const wt_axes *axes, int width, int height)
{
    const int64_t rows = analyze_n_rows(a), columns = analyze_n_columns(a);
    float *narrow = malloc(sizeof(float) * (size_t)rows * (size_t)width);
    float *pixels = malloc(sizeof(float) * (size_t)height * (size_t)width);
    const double step = p->seconds / width * p->report->rate_hz / analyze_hop(p->report->options);
    for (int64_t row = 0; row < rows && narrow && pixels; row++)
        for (int x = 0; x < width; x++) {
            const span s = span_of(x * step + 0.5, (x + 1) * step + 0.5, columns); // frames are centred
            float most = -INFINITY;
            for (int64_t t = s.first; t <= s.last; t++) most = fmaxf(most, drawn(a, row * columns + t));
            narrow[row * width + x] = most;
        }
    for (int y = 0; y < height && narrow && pixels; y++) {
        const double low = row_of(p->report, a, wt_axis_value(&axes->y, (double)y / height));
        const double high = row_of(p->report, a, wt_axis_value(&axes->y, (y + 1.0) / height));
        const span s = span_of(low, high, rows);
        for (int x = 0; x < width; x++) {
            float most = -INFINITY;
            for (int64_t row = s.first; row <= s.last; row++) most = fmaxf(most, narrow[row * width + x]);
            pixels[(size_t)y * (size_t)width + (size_t)x] = most;
        }
    }
    free(narrow);
    if (pixels && narrow) return pixels;
    free(pixels);
    return NULL;
}

static void add_mark(panel *q, double value, const char *format, int number)
{
    wt_axis *y = &q->axes.y;
    if (y->n_marks == MAX_MARKS) return;
    q->marks[y->n_marks].value = value;
    snprintf(q->marks[y->n_marks].text, sizeof q->marks->text, format, number);
    y->marks = q->marks;
    y->n_marks++;
}

/// Mel bands at equal distances, with frequencies at octaves of 128 Hz.
static void mark_mel(panel *q, const analyze_report *report, const analyze_array *a)
{
    const int64_t n = analyze_n_rows(a);
    double last = -1e9;
    for (int hz = 128; hz < report->rate_hz; hz *= 2)
        for (int64_t k = 1; k < n; k++) {
            const double below = analyze_row_hz(report->options, report->rate_hz, a, k - 1);
            const double above = analyze_row_hz(report->options, report->rate_hz, a, k);
            if (!(below <= hz && hz < above)) continue;
            const double row = (double)(k - 1) + (hz - below) / (above - below) + 0.5;
            if (row - last >= (double)n / 14) add_mark(q, last = row, "%d", hz);
        }
    q->axes.y.label = "mel bands (Hz)";
}

static void mark_cqt(panel *q, const analyze_report *report, const analyze_array *a)
{
    const double first = analyze_row_hz(report->options, report->rate_hz, a, 0);
    const int per_octave = report->options->bins_per_octave ? report->options->bins_per_octave : 12;
    for (int octave = 0; octave < 12; octave++)
        add_mark(q, per_octave * log2(ANALYZE_C1_HZ / 2 * exp2(octave) / first) + 0.5, "C%d", octave);
    q->axes.y.label = "pitch";
}

static void mark_chroma(panel *q, const analyze_array *a)
{
    static const char *const names[] = {"C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"};
    const double step = (double)analyze_n_rows(a) / 12;
    for (int k = 0; k < 12; k++) add_mark(q, (k + 0.5) * step, names[k], 0);
    q->axes.y.label = "pitch class";
}

static void mark_rows(panel *q, const analyze_array *a)
{
    const int n = (int)analyze_n_rows(a), step = n > 60 ? 20 : n > 12 ? 5 : 1;
    for (int k = 0; k < n; k += step) add_mark(q, k + 0.5, "%d", k);
    q->axes.y.label = !strcmp(a->name, "contrast")       ? "band"
                      : !strcmp(a->name, "activations")  ? "component"
                      : !strcmp(a->name, "tempo_ratios") ? "ratio"
                      : !strcmp(a->name, "tonnetz")      ? "dimension"
                                                         : "coefficient";
}

static void set_rows(panel *q, const analyze_report *report, const analyze_array *a)
{
    q->axes.y = (wt_axis){.high = (double)analyze_n_rows(a)};
    switch (a->rows) {
    case ANALYZE_ROWS_LINEAR:
        q->axes.y = (wt_axis){.low = fmax(20, (double)report->rate_hz / analyze_n_fft(report->options)),
                              .high = report->rate_hz / 2.0, .logarithmic = true, .label = "frequency (Hz)"};
        break;
    case ANALYZE_ROWS_LAG:
    case ANALYZE_ROWS_TEMPO:
        q->axes.y = (wt_axis){.low = 30, .high = 480, .logarithmic = true, .label = "tempo (BPM)"};
        for (int bpm = 30; bpm <= 480; bpm *= 2) add_mark(q, bpm, "%d", bpm);
        break;
    case ANALYZE_ROWS_MEL:
        mark_mel(q, report, a);
        break;
    case ANALYZE_ROWS_CQT:
        mark_cqt(q, report, a);
        break;
    case ANALYZE_ROWS_CHROMA:
        mark_chroma(q, a);
        break;
    default:
        mark_rows(q, a);
    }
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/// Decibels: 80 below the largest. Chroma, masks and tempogram: 0 to 1. Coefficients, pcen and the Fourier tempogram:
/// all but the outer 2 % at either end. An mfcc's coefficient 0, the lowest row, is the level: far from the others, it
/// does not count.
static void set_colours(panel *q, const analyze_array *a, const float *pixels, int64_t count)
{
    if (!strcmp(a->name, "mfcc") && analyze_n_rows(a) > 1) {
        const int64_t lowest = count / analyze_n_rows(a);
        pixels += lowest, count -= lowest;
    }
    q->low = 0, q->high = 1, q->colours = a->rows == ANALYZE_ROWS_LAG ? "autocorrelation" : "strength";
    if (!strcmp(a->unit, "share")) return;
    if (!strcmp(a->unit, "rad")) {
        q->low = -M_PI, q->high = M_PI, q->colours = "phase (rad)";
    } else if (a->rows == ANALYZE_ROWS_INDEX || a->rows == ANALYZE_ROWS_TEMPO || !strcmp(a->name, "pcen")) {
        float *sorted = malloc(sizeof(float) * (size_t)count);
        q->low = -1, q->colours = a->unit[0] ? a->unit : "value";
        if (!sorted) return;
        memcpy(sorted, pixels, sizeof(float) * (size_t)count);
        qsort(sorted, (size_t)count, sizeof *sorted, by_value);
        q->low = sorted[count / 50], q->high = sorted[count - 1 - count / 50];
        if (!(q->high > q->low)) q->high = q->low + 1;
        free(sorted);
    } else if (a->rows != ANALYZE_ROWS_CHROMA && a->rows != ANALYZE_ROWS_LAG) {
        float most = -300;
        for (int64_t k = 0; k < count; k++) most = fmaxf(most, pixels[k]);
        q->high = most, q->low = most - range_db, q->colours = "level (dB)";
    }
}

static void draw_bar(const picture *p, const panel *q)
{
    const wt_axes bar = {.left = q->axes.left + p->width + 14, .top = q->axes.top, .width = BAR, .height = p->height,
                         .y = {.low = q->low, .high = q->high, .label = q->colours}};
    wt_axes_draw_colour_bar(p->canvas, &bar);
}

static wt_status draw_matrix(const picture *p, panel *q, const analyze_array *a)
{
    const int width = (int)p->width, height = (int)p->height;
    set_rows(q, p->report, a);
    float *pixels = pixels_of(p, a, &q->axes, width, height);
    if (!pixels) return wt_fail(WT_ERR_NO_MEMORY, "picture of %s", a->name);
    set_colours(q, a, pixels, (int64_t)width * height);
    wt_axes_draw_matrix(p->canvas, &q->axes, pixels, height, width, q->low, q->high);
    free(pixels);
    wt_axes_draw_frame(p->canvas, &q->axes);
    draw_bar(p, q);
    return WT_OK;
}

// ---- signals

/// The spectrogram of a signal, between two frequencies.
static wt_status draw_spectrogram(const picture *p, panel *q, const float *pcm, double low_hz, double high_hz)
{
    const int width = (int)p->width, height = (int)p->height;
    const wt_audio audio = {.samples = (float *)pcm, .rate_hz = p->report->rate_hz, .channels = 1,
                            .n_frames = p->report->n}; // read only
    float *pixels = malloc(sizeof(float) * (size_t)width * (size_t)height), most = -200;
    if (!pixels) return wt_fail(WT_ERR_NO_MEMORY, "picture: spectrogram");
    wt_status status = wt_plot_spectrogram(&audio, low_hz, high_hz, height, width, pixels);
    for (int k = 0; k < width * height; k++) most = fmaxf(most, pixels[k]);
    q->axes.y = (wt_axis){.low = low_hz, .high = high_hz, .logarithmic = true, .label = "frequency (Hz)"};
    q->high = most, q->low = most - range_db, q->colours = "level (dB)";
    if (!status) wt_axes_draw_matrix(p->canvas, &q->axes, pixels, height, width, q->low, q->high);
    free(pixels);
    return status;
}

/// x and y of the frames; caller frees both with one free(). NULL without memory.
static double *points_of(const picture *p, const analyze_array *a, int64_t n)
{
    double *x = malloc(sizeof(double) * 2 * (size_t)n);
    for (int64_t t = 0; t < n && x; t++) {
        const double value = analyze_number(a, t);
        x[t] = a->layout == ANALYZE_TENTHS ? (double)(t + 1) / 10
                                           : (double)t * analyze_hop(p->report->options) / p->report->rate_hz;
        x[n + t] = isfinite(value) ? value : NAN;
    }
    return x;
}

/// A track of frequencies over the spectrogram: of pitch in the range of the search, of others in the whole.
static wt_status draw_track(const picture *p, panel *q, const analyze_array *a)
{
    const int64_t n = analyze_n_columns(a);
    const analyze_options *o = p->report->options;
    const bool pitch = !strcmp(a->name, "f0") || !strcmp(a->name, "yin");
    const double top = p->report->rate_hz / 2.0;
    const double low = !pitch ? 20 : (o->fmin_hz > 0 ? o->fmin_hz : 65) / 1.3;
    const double high = !pitch ? top : fmin((o->fmax_hz > 0 ? o->fmax_hz : 2093) * 1.5, top);
    double *x = points_of(p, a, n);
    if (!x) return wt_fail(WT_ERR_NO_MEMORY, "picture of %s", a->name);
    wt_status status = draw_spectrogram(p, q, p->report->pcm, low, high);
    for (int64_t t = 0; t < n; t++) // what lies beyond the frame is not drawn
        if (x[n + t] < q->axes.y.low || x[n + t] > q->axes.y.high) x[n + t] = NAN;
    if (!status) {
        const bool dense = n > p->width / 2; // then a wide line would hide what it runs over
        if (!dense) wt_axes_draw_curve(p->canvas, &q->axes, x, x + n, (int)n, 6, 0x000000);
        wt_axes_draw_curve(p->canvas, &q->axes, x, x + n, (int)n, dense ? 1.4 : 3, 0x38e8ff);
        wt_axes_draw_frame(p->canvas, &q->axes);
        draw_bar(p, q);
    }
    free(x);
    return status;
}

static wt_status draw_curve(const picture *p, panel *q, const analyze_array *a)
{
    const int64_t n = analyze_n_columns(a);
    double low = INFINITY, high = -INFINITY, *x = points_of(p, a, n);
    if (!x) return wt_fail(WT_ERR_NO_MEMORY, "picture of %s", a->name);
    for (int64_t t = 0; t < n; t++) low = fmin(low, x[n + t]), high = fmax(high, x[n + t]);
    if (!(high > low)) low = isfinite(low) ? low - 1 : 0, high = low + 2;
    if (low >= 0 && low < high / 2) low = 0;
    q->axes.y = (wt_axis){.low = low, .high = high + (high - low) * 0.05, .label = a->unit[0] ? a->unit : "value"};
    wt_axes_draw_grid(p->canvas, &q->axes);
    wt_axes_draw_curve(p->canvas, &q->axes, x, x + n, (int)n, 1.6, blue);
    wt_axes_draw_frame(p->canvas, &q->axes);
    free(x);
    return WT_OK;
}

/// Extremes of each pixel's samples.
static void draw_wave(const picture *p, panel *q)
{
    const analyze_report *r = p->report;
    for (int x = 0; x < (int)p->width; x++) {
        const span s = span_of(x / p->width * (double)r->n, (x + 1) / p->width * (double)r->n, r->n);
        double low = INFINITY, high = -INFINITY;
        for (int64_t t = s.first; t <= s.last; t++) low = fmin(low, r->pcm[t]), high = fmax(high, r->pcm[t]);
        const double top = wt_axes_y(&q->axes, high), bottom = wt_axes_y(&q->axes, low);
        wt_canvas_fill(p->canvas, q->axes.left + x, top, 1, fmax(bottom - top, 1), wave);
    }
}

static void draw_span(const picture *p, const panel *q, const int64_t *samples)
{
    const double begin = wt_axes_x(&q->axes, (double)samples[0] / p->report->rate_hz);
    const double end = wt_axes_x(&q->axes, (double)samples[1] / p->report->rate_hz);
    wt_canvas_fill(p->canvas, begin, q->axes.top, end - begin, p->height, shade);
    wt_canvas_fill(p->canvas, begin, q->axes.top, 1, p->height, red);
    wt_canvas_fill(p->canvas, end - 1, q->axes.top, 1, p->height, red);
}

/// The waveform; a line for each event, or a shade behind each stretch.
static wt_status draw_events(const picture *p, panel *q, const analyze_array *a)
{
    const analyze_report *r = p->report;
    double peak = 1e-6;
    for (int64_t t = 0; t < r->n; t++) peak = fmax(peak, fabs(r->pcm[t]));
    q->axes.y = (wt_axis){.low = -peak * 1.05, .high = peak * 1.05, .label = "amplitude"};
    for (int64_t k = 0; a->layout == ANALYZE_SPANS && k < a->shape[0]; k++)
        draw_span(p, q, (const int64_t *)a->data + 2 * k);
    wt_axes_draw_grid(p->canvas, &q->axes);
    draw_wave(p, q);
    for (int64_t k = 0; a->layout == ANALYZE_EVENTS && k < analyze_count(a); k++) {
        const double x = wt_axes_x(&q->axes, analyze_number(a, k) * analyze_hop(r->options) / r->rate_hz);
        if (x < q->axes.left + p->width)
            wt_canvas_line(p->canvas, x, q->axes.top, x, q->axes.top + p->height, 1.6, red);
    }
    wt_axes_draw_frame(p->canvas, &q->axes);
    return WT_OK;
}

// ---- the whole

typedef wt_status (*draw_function)(const picture *p, panel *q, const analyze_array *a);

static wt_status draw_part(const picture *p, panel *q, const analyze_array *a)
{
    if (analyze_n_columns(a) != p->report->n)
        return wt_fail(WT_ERR_BAD_ARG,
                       "%s: %lld samples of %lld, and a picture has one time axis: want audio, npy or npz", a->name,
                       (long long)analyze_n_columns(a), (long long)p->report->n);
    wt_status status = draw_spectrogram(p, q, a->data, 20, p->report->rate_hz / 2.0);
    if (status) return status;
    wt_axes_draw_frame(p->canvas, &q->axes);
    draw_bar(p, q);
    return WT_OK;
}

/// NULL: not a panel.
static draw_function drawing_of(const analyze_array *a)
{
    if (a->layout == ANALYZE_EVENTS || a->layout == ANALYZE_SPANS) return draw_events;
    if (a->layout == ANALYZE_SAMPLES) return strcmp(a->name, "resample") ? draw_part : draw_events; // its wave
    if (a->layout == ANALYZE_VALUE || a->type == ANALYZE_BOOL) return NULL;
    if (a->layout == ANALYZE_PARTS || a->layout == ANALYZE_BINS || a->layout == ANALYZE_LAGS) return NULL;
    if (a->rows) return strcmp(a->unit, "Hz") && strcmp(a->unit, "s") ? draw_matrix : NULL; // no levels
    return strcmp(a->unit, "Hz") ? draw_curve : draw_track;
}

static void draw_header(const picture *p, double width)
{
    const analyze_result *r = p->report->result;
    const char *slash = strrchr(p->report->input, '/');
    const char *name = slash ? slash + 1 : p->report->input;
    char text[512];
    int n = snprintf(text, sizeof text, "%d Hz", p->report->rate_hz);
    for (int k = 0; k < r->n_arrays && n < (int)sizeof text; k++)
        if (r->arrays[k].layout == ANALYZE_VALUE)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %.4g %s", r->arrays[k].name,
                          analyze_number(&r->arrays[k], 0), r->arrays[k].unit);
    wt_text_style style = {.height = 15, .colour = ink, .align_x = -1, .thickness = 2.4};
    style.height = fmin(style.height, wt_text_fit(name, p->width * 0.5));
    wt_canvas_text(p->canvas, LEFT, HEADER / 2.0 + 4, &style, name);
    style.align_x = 1, style.thickness = 0, style.height = fmin(12, wt_text_fit(text, p->width * 0.45));
    wt_canvas_text(p->canvas, width - RIGHT, HEADER / 2.0 + 4, &style, text);
}

static wt_status draw_all(picture *p, int panel_height, const char *path)
{
    const analyze_result *r = p->report->result;
    wt_status status = WT_OK;
    double top = HEADER;
    for (int k = 0; k < r->n_arrays && !status; k++) {
        const analyze_array *a = &r->arrays[k];
        const draw_function draw = drawing_of(a);
        if (!draw) continue;
        panel q = {.axes = {.left = LEFT, .top = top + ABOVE, .width = p->width, .height = p->height,
                            .x = time_axis(p), .title = a->name}};
        status = draw(p, &q, a);
        top += panel_height;
    }
    return status ? status : wt_canvas_write_png(p->canvas, path);
}

wt_status analyze_plot(const analyze_report *report, const char *path)
{
    const int width = report->options->width ? report->options->width : 1600;
    const int height = report->options->height ? report->options->height : 420;
    const analyze_result *r = report->result;
    int n_panels = 0;
    if (report->channels != 1) return wt_fail(WT_ERR_BAD_ARG, "png draws one channel, not %d", report->channels);
    for (int k = 0; k < r->n_arrays; k++) n_panels += drawing_of(&r->arrays[k]) != NULL;
    if (n_panels == 0)
        return wt_fail(WT_ERR_BAD_ARG, "%s has no time, png draws what changes with it: want csv or json",
                       r->arrays[0].name);
    picture p = {.report = report, .width = width - LEFT - RIGHT, .height = height - ABOVE - BELOW,
                 .seconds = (double)report->n / report->rate_hz};
    wt_status status = wt_canvas_create(width, HEADER + n_panels * height, paper, &p.canvas);
    if (status) return status;
    draw_header(&p, width);
    status = draw_all(&p, height, path);
    wt_canvas_destroy(p.canvas);
    return status;
}
