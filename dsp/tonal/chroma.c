#include "chroma_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/chroma.h>
#include <warptone/fft.h>
#include <warptone/simd.h>
#include <warptone/window.h>

struct wt_chroma {
    wt_chroma_config config;
    int bins;
    float *bank;
    wt_device *device;
    wt__chroma_cuda *cuda; // NULL on a CPU
};

static const double pi = 3.14159265358979323846;

// ---- norms

static double length_of(const double *x, int n, wt_chroma_norm norm)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double size = fabs(x[i]);
        if (norm == WT_CHROMA_NORM_MAX)
            sum = size > sum ? size : sum;
        else
            sum += norm == WT_CHROMA_NORM_2 ? size * size : size;
    }
    return norm == WT_CHROMA_NORM_2 ? sqrt(sum) : sum;
}

// What is next to nothing stays as it is (librosa util.normalize).
static void normalise(double *x, int n, wt_chroma_norm norm)
{
    const double length = norm == WT_CHROMA_NORM_NONE ? 1 : length_of(x, n, norm);
    for (int i = 0; i < n && length >= FLT_MIN; i++) x[i] /= length;
}

static wt_status check_n(int64_t n_frames, int n_chroma, wt_chroma_norm norm)
{
    if (n_chroma < 1 || n_chroma > WT_CHROMA_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "chroma: %d rows, want 1..%d", n_chroma, WT_CHROMA_MAX);
    if (n_frames < 0) return wt_fail(WT_ERR_BAD_ARG, "chroma: %lld frames, want 0 or more", (long long)n_frames);
    if ((unsigned)norm > WT_CHROMA_NORM_NONE)
        return wt_fail(WT_ERR_BAD_ARG, "chroma: norm %d, want 0..%d", (int)norm, WT_CHROMA_NORM_NONE);
    return WT_OK;
}

// ---- the bank

static wt_status resolve(wt_chroma_config *c)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->n_fft) c->n_fft = 2048;
    if (!c->n_chroma) c->n_chroma = 12;
    if (c->centre_octave == 0) c->centre_octave = 5;
    if (c->octave_width == 0) c->octave_width = 2;
    if (!c->channels) c->channels = 1;
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "chroma: rate %g Hz, want above 0", c->rate_hz);
    if (c->n_fft < 4 || c->n_fft > WT_FFT_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "chroma: n_fft %d, want 4..%d", c->n_fft, WT_FFT_MAX_N);
    if (!isfinite(c->tuning)) return wt_fail(WT_ERR_BAD_ARG, "chroma: tuning %g, want a finite one", c->tuning);
    if (!isfinite(c->centre_octave) || !isfinite(c->octave_width))
        return wt_fail(WT_ERR_BAD_ARG, "chroma: octaves %g wide about %g, want finite ones", c->octave_width,
                       c->centre_octave);
    if (c->channels < 1) return wt_fail(WT_ERR_BAD_ARG, "chroma: %d channels, want 1 or more", c->channels);
    wt_status status = check_n(0, c->n_chroma, c->norm);
    return status ? status : check_n(0, c->n_chroma, c->bank_norm);
}

// Bin k on the scale of chroma, counted from A of the lowest octave; bin 0 lies an octave and a half under bin 1.
static double place(const wt_chroma_config *c, int k)
{
    const double a = 440 * exp2(c->tuning / c->n_chroma) / 16, hz = (k ? k : 1) * c->rate_hz / c->n_fft;
    return c->n_chroma * log2(hz / a) - (k ? 0 : 1.5 * c->n_chroma);
}

// Gaussian bumps, twice as narrow as the bins are wide.
static void fill_bin(const wt_chroma *m, int k)
{
    const wt_chroma_config *c = &m->config;
    const int n = c->n_chroma;
    const double at = place(c, k), width = fmax(place(c, k + 1) - at, 1), half = rint(n / 2.0);
    const double octave = (at / n - c->centre_octave) / c->octave_width;
    const double weight = c->octave_width < 0 ? 1 : exp(-0.5 * octave * octave);
    double bump[WT_CHROMA_MAX];
    for (int r = 0; r < n; r++) {
        double off = fmod(at - r + half + 10 * n, n);
        off = (off < 0 ? off + n : off) - half;
        bump[r] = exp(-0.5 * (2 * off / width) * (2 * off / width));
    }
    normalise(bump, n, c->bank_norm);
    const int roll = c->begin_at_a ? 0 : 3 * (n / 12);
    for (int r = 0; r < n; r++) m->bank[r * m->bins + k] = (float)(weight * bump[(r + roll) % n]);
}

static void place_bank(wt_chroma_args *args, uintptr_t table)
{
    args->bank = (const float *)table;
}

static wt_status create_cuda(wt_chroma *m)
{
    const int n = m->config.n_chroma;
    const wt_chroma_args args = {.n_in = m->bins, .n_chroma = n, .norm = (int)m->config.norm};
    return wt__chroma_cuda_create(m->device, (const char *const[2]){"chroma_project", NULL}, &args, m->bank,
                                  (size_t)n * (size_t)m->bins * sizeof(float), 0, place_bank, &m->cuda);
}

wt_status wt_chroma_create(wt_device *device, const wt_chroma_config *config, wt_chroma **chroma)
{
    *chroma = NULL;
    wt_chroma_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    wt_chroma *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "chroma: handle");
    m->config = c;
    m->bins = c.n_fft / 2 + 1;
    m->bank = calloc((size_t)c.n_chroma * (size_t)m->bins, sizeof(float));
    if (!m->bank) {
        status = wt_fail(WT_ERR_NO_MEMORY, "chroma: bank of %d x %d", c.n_chroma, m->bins);
        wt_chroma_destroy(m);
        return status;
    }
    for (int k = 0; k < m->bins; k++) fill_bin(m, k);
    m->device = device;
    if (wt__op_on_gpu(device)) status = create_cuda(m);
    if (status)
        wt_chroma_destroy(m);
    else
        *chroma = m;
    return status;
}

void wt_chroma_destroy(wt_chroma *chroma)
{
    if (!chroma) return;
    wt__chroma_cuda_destroy(chroma->cuda);
    free(chroma->bank);
    free(chroma);
}

const float *wt_chroma_bank(const wt_chroma *chroma)
{
    return chroma->bank;
}

// ---- from spectra

WT_CLONES static float dot(const float *a, const float *b, int n)
{
    float sum[16] = {0}, total = 0;
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++) sum[l] += a[i + l] * b[i + l];
    for (; i < n; i++) total += a[i] * b[i];
    for (int l = 0; l < 16; l++) total += sum[l];
    return total;
}

static void run_frames(const wt_chroma *chroma, const float *power, int64_t n_frames, float *out)
{
    const int n = chroma->config.n_chroma;
    for (int64_t t = 0; t < n_frames; t++, power += chroma->bins, out += n) {
        double row[WT_CHROMA_MAX];
        for (int r = 0; r < n; r++) row[r] = dot(chroma->bank + r * chroma->bins, power, chroma->bins);
        normalise(row, n, chroma->config.norm);
        for (int r = 0; r < n; r++) out[r] = (float)row[r];
    }
}

WT_RT wt_status wt_chroma_run(wt_chroma *chroma, const float *power, int64_t n_frames, float *out)
{
    if (n_frames < 0) return WT_ERR_BAD_ARG;
    run_frames(chroma, power, n_frames * chroma->config.channels, out);
    return WT_OK;
}

typedef struct chroma_call {
    const wt_chroma *chroma;
    const float *power;
    float *out;
    int64_t n_frames;
    int n_slots;
} chroma_call;

static void run_slot(const void *args, int slot)
{
    const chroma_call *c = args;
    const int64_t begin = wt__op_begin(c->n_frames, slot, c->n_slots);
    run_frames(c->chroma, c->power + begin * c->chroma->bins, wt__op_begin(c->n_frames, slot + 1, c->n_slots) - begin,
               c->out + begin * c->chroma->config.n_chroma);
}

wt_status wt_chroma_enqueue(wt_chroma *chroma, wt_stream *stream, const wt_buffer *power, size_t power_offset,
                            int64_t n_frames, wt_buffer *out, size_t out_offset)
{
    const wt_chroma_config *f = &chroma->config;
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "chroma: %lld frames, want 1 or more", (long long)n_frames);
    const int64_t all = n_frames * f->channels;
    wt_status status = wt__op_stream("chroma", chroma->device, stream);
    if (!status) status = wt__op_range("chroma", "power", power, power_offset, (size_t)all * (size_t)chroma->bins);
    if (!status) status = wt__op_range("chroma", "out", out, out_offset, (size_t)all * (size_t)f->n_chroma);
    if (status) return status;
    const chroma_call c = {chroma, (const float *)(wt_buffer_address(power) + power_offset),
                           (float *)(wt_buffer_address(out) + out_offset), all, wt__op_slots(chroma->device, all)};
    if (chroma->cuda) return wt__chroma_cuda_enqueue(chroma->cuda, stream, c.power, n_frames, all, c.out);
    return wt_stream_run(stream, run_slot, &c, sizeof c, c.n_slots);
}

// ---- from constant-Q magnitudes

static wt_status resolve_fold(wt_chroma_cqt_config *c, int64_t n_frames)
{
    if (c->fmin_hz == 0) c->fmin_hz = 32.703195662574829;
    if (!c->n_bins) c->n_bins = 252;
    if (!c->bins_per_octave) c->bins_per_octave = 36;
    if (!c->n_chroma) c->n_chroma = 12;
    wt_status status = check_n(n_frames, c->n_chroma, c->norm);
    if (status) return status;
    if (c->n_bins < 1 || c->bins_per_octave < 1 || c->bins_per_octave % c->n_chroma || !(c->fmin_hz > 0))
        return wt_fail(WT_ERR_BAD_ARG, "chroma: %d bins, %d an octave from %g Hz, want 1 or more, a multiple of %d, "
                       "above 0", c->n_bins, c->bins_per_octave, c->fmin_hz, c->n_chroma);
    return WT_OK;
}

// The chroma of bin 0, and of any: bins lie around their note.
static int fold_roll(const wt_chroma_cqt_config *c)
{
    const double midi = 12 * log2(c->fmin_hz / 440) + 69, above_c = midi - 12 * floor(midi / 12);
    return (int)rint(above_c * (c->n_chroma / 12.0));
}

static int fold_row(const wt_chroma_cqt_config *c, int roll, int k)
{
    const int merge = c->bins_per_octave / c->n_chroma;
    return ((k % c->bins_per_octave + merge / 2) / merge + roll) % c->n_chroma;
}

wt_status wt_chroma_fold(const wt_chroma_cqt_config *config, const float *magnitude, int64_t n_frames, float *out)
{
    wt_chroma_cqt_config c = *config;
    wt_status status = resolve_fold(&c, n_frames);
    if (status) return status;
    const int n = c.n_chroma, roll = fold_roll(&c);
    for (int64_t t = 0; t < n_frames; t++, magnitude += c.n_bins, out += n) {
        double row[WT_CHROMA_MAX] = {0};
        for (int k = 0; k < c.n_bins; k++) row[fold_row(&c, roll, k)] += magnitude[k];
        for (int r = 0; r < n; r++)
            if (row[r] < c.threshold) row[r] = 0;
        normalise(row, n, c.norm);
        for (int r = 0; r < n; r++) out[r] = (float)row[r];
    }
    return WT_OK;
}

// ---- statistics

// How many of the steps a share of the frame is above, in quarters.
static void quantise(const float *chroma, int n, float *steps)
{
    double row[WT_CHROMA_MAX];
    for (int r = 0; r < n; r++) row[r] = chroma[r];
    normalise(row, n, WT_CHROMA_NORM_1);
    for (int r = 0; r < n; r++)
        steps[r] = 0.25f * (float)((row[r] > 0.4) + (row[r] > 0.2) + (row[r] > 0.1) + (row[r] > 0.05));
}

static void smooth_frame(const float *steps, int64_t n_frames, int64_t t, int n, const double *window, int length,
                         double *row)
{
    for (int r = 0; r < n; r++) row[r] = 0;
    for (int j = 0; j < length; j++) {
        const int64_t from = t + length / 2 - j;
        if (from < 0 || from >= n_frames) continue;
        for (int r = 0; r < n; r++) row[r] += window[j] * steps[from * n + r];
    }
}

// Frames of the window, two more than it smooths over: those at its ends are 0. More than WT_WINDOW_MAX_N are refused.
static int cens_length(int smooth)
{
    if (smooth > WT_WINDOW_MAX_N) smooth = WT_WINDOW_MAX_N;
    return smooth < 0 ? 1 : (smooth ? smooth : 41) + 2;
}

// [cens_length], sums to 1.
static wt_status fill_cens_window(int smooth, double *window)
{
    const int length = cens_length(smooth);
    const wt_window_config shape = {.n = length, .symmetric = true,
                                    .kind = smooth < 0 ? WT_WINDOW_RECTANGULAR : WT_WINDOW_HANN};
    wt_status status = wt_window_fill_double(&shape, window);
    double sum = 0;
    for (int j = 0; j < length && !status; j++) sum += window[j];
    for (int j = 0; j < length && !status; j++) window[j] /= sum;
    return status;
}

wt_status wt_chroma_cens(const float *chroma, int64_t n_frames, int n_chroma, int smooth, wt_chroma_norm norm,
                         float *out)
{
    wt_status status = check_n(n_frames, n_chroma, norm);
    if (status) return status;
    const int length = cens_length(smooth);
    if (length > WT_WINDOW_MAX_N) return wt_fail(WT_ERR_BAD_ARG, "chroma: window of %d frames, want fewer", length);
    const size_t area = (size_t)n_frames * (size_t)n_chroma;
    double *window = malloc((size_t)length * sizeof *window), row[WT_CHROMA_MAX];
    float *steps = malloc((area + 1) * sizeof *steps);
    if (!window || !steps) status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %zu values", area);
    if (!status) status = fill_cens_window(smooth, window);
    for (int64_t t = 0; t < n_frames && !status; t++) quantise(chroma + t * n_chroma, n_chroma, steps + t * n_chroma);
    for (int64_t t = 0; t < n_frames && !status; t++) {
        smooth_frame(steps, n_frames, t, n_chroma, window, length, row);
        normalise(row, n_chroma, norm);
        for (int r = 0; r < n_chroma; r++) out[t * n_chroma + r] = (float)row[r];
    }
    free(window);
    free(steps);
    return status;
}

// ---- tonal centroids

// What chroma r of n adds to dimension d.
static double centroid_weight(int d, int r, int n)
{
    static const double scale[6] = {7.0 / 6, 7.0 / 6, 3.0 / 2, 3.0 / 2, 2.0 / 3, 2.0 / 3}; // half turns a semitone
    static const double radius[6] = {1, 1, 1, 1, 0.5, 0.5};
    return radius[d] * cos(pi * (scale[d] * 12 * r / n - (d % 2 ? 0 : 0.5)));
}

wt_status wt_tonnetz(const float *chroma, int64_t n_frames, int n_chroma, float *out)
{
    wt_status status = check_n(n_frames, n_chroma, WT_CHROMA_NORM_1);
    for (int64_t t = 0; t < n_frames && !status; t++) {
        double row[WT_CHROMA_MAX];
        for (int r = 0; r < n_chroma; r++) row[r] = chroma[t * n_chroma + r];
        normalise(row, n_chroma, WT_CHROMA_NORM_1);
        for (int d = 0; d < 6; d++) {
            double sum = 0;
            for (int r = 0; r < n_chroma; r++) sum += centroid_weight(d, r, n_chroma) * row[r];
            out[t * 6 + d] = (float)sum;
        }
    }
    return status;
}

// ---- on a stream

struct wt_tonal {
    wt_tonal_config config; // defaults resolved
    wt_device *device;
    int n_in, n_out; // values of a frame
    wt__chroma_cuda *cuda; // NULL on a CPU
};

static wt_status run_signal(const wt_tonal_config *c, int64_t n_frames, const float *in, float *out)
{
    if (c->kind == WT_TONAL_FOLD) return wt_chroma_fold(&c->fold, in, n_frames, out);
    if (c->kind == WT_TONAL_CENS) return wt_chroma_cens(in, n_frames, c->n_chroma, c->smooth, c->norm, out);
    if (c->kind == WT_TONAL_TONNETZ) return wt_tonnetz(in, n_frames, c->n_chroma, out);
    return wt_fail(WT_ERR_BAD_ARG, "chroma: kind %d, want 0..%d", (int)c->kind, WT_TONAL_TONNETZ);
}

static void place_bins(wt_chroma_args *args, uintptr_t table)
{
    args->begins = (const int *)table;
    args->bins = args->begins + args->n_chroma + 1;
}

static void place_window(wt_chroma_args *args, uintptr_t table)
{
    args->window = (const double *)table;
}

// Lists of the bins of each row, ascending.
static wt_status create_fold(wt_tonal *p, const wt_chroma_args *args)
{
    const wt_chroma_cqt_config *c = &p->config.fold;
    const size_t count = (size_t)c->n_chroma + 1 + (size_t)c->n_bins;
    int *table = malloc(count * sizeof *table), at = 0;
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "chroma: %d bins", c->n_bins);
    const int roll = fold_roll(c);
    for (int r = 0; r < c->n_chroma; r++) {
        table[r] = at;
        for (int k = 0; k < c->n_bins; k++)
            if (fold_row(c, roll, k) == r) table[c->n_chroma + 1 + at++] = k;
    }
    table[c->n_chroma] = at;
    wt_status status = wt__chroma_cuda_create(p->device, (const char *const[2]){"chroma_fold", NULL}, args, table,
                                              count * sizeof *table, 0, place_bins, &p->cuda);
    free(table);
    return status;
}

static wt_status create_windowed(wt_tonal *p, const wt_chroma_args *args)
{
    const bool cens = p->config.kind == WT_TONAL_CENS;
    const size_t n = (size_t)args->n_chroma, count = cens ? (size_t)args->length : 6 * n;
    const char *const cens_kernels[2] = {"chroma_quantise", "chroma_smooth"}, *const tonnetz[2] = {"chroma_tonnetz"};
    double *table = malloc(count * sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "chroma: window of %zu", count);
    wt_status status = cens ? fill_cens_window(p->config.smooth, table) : WT_OK;
    for (size_t i = 0; i < count && !cens; i++) table[i] = centroid_weight((int)(i / n), (int)(i % n), (int)n);
    const size_t steps = cens ? (size_t)p->config.n_signals * (size_t)p->config.n_frames * n : 0;
    if (!status)
        status = wt__chroma_cuda_create(p->device, cens ? cens_kernels : tonnetz, args, table, count * sizeof *table,
                                        steps, place_window, &p->cuda);
    free(table);
    return status;
}

wt_status wt_tonal_create(wt_device *device, const wt_tonal_config *config, wt_tonal **plan)
{
    *plan = NULL;
    wt_tonal_config c = *config;
    if (!c.n_chroma) c.n_chroma = 12;
    if (!c.n_signals) c.n_signals = 1;
    if (c.n_frames < 1 || c.n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "chroma: %d signals of %lld frames, want 1 or more", c.n_signals,
                       (long long)c.n_frames);
    const bool fold = c.kind == WT_TONAL_FOLD;
    wt_status status = fold ? resolve_fold(&c.fold, 0) : run_signal(&c, 0, NULL, NULL);
    if (status) return status;
    wt_tonal *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "chroma: plan");
    p->config = c;
    p->device = device;
    p->n_in = fold ? c.fold.n_bins : c.n_chroma;
    p->n_out = fold ? c.fold.n_chroma : c.kind == WT_TONAL_TONNETZ ? 6 : c.n_chroma;
    const wt_chroma_args args = {.n_in = p->n_in, .n_chroma = fold ? c.fold.n_chroma : c.n_chroma,
                                 .norm = (int)(fold ? c.fold.norm : c.norm), .length = cens_length(c.smooth),
                                 .threshold = c.fold.threshold};
    if (wt__op_on_gpu(device)) status = fold ? create_fold(p, &args) : create_windowed(p, &args);
    if (status)
        wt_tonal_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_tonal_destroy(wt_tonal *plan)
{
    if (!plan) return;
    wt__chroma_cuda_destroy(plan->cuda);
    free(plan);
}

typedef struct tonal_call {
    const wt_tonal *plan;
    const float *in;
    float *out;
} tonal_call;

static void run_item(const void *args, int signal)
{
    const tonal_call *c = args;
    const int64_t n = c->plan->config.n_frames;
    (void)!run_signal(&c->plan->config, n, c->in + signal * n * c->plan->n_in, c->out + signal * n * c->plan->n_out);
}

wt_status wt_tonal_enqueue(wt_tonal *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                           size_t out_offset)
{
    const int64_t n_frames = plan->config.n_frames, all = n_frames * plan->config.n_signals;
    wt_status status = wt__op_stream("chroma", plan->device, stream);
    if (!status) status = wt__op_range("chroma", "input", in, in_offset, (size_t)all * (size_t)plan->n_in);
    if (!status) status = wt__op_range("chroma", "out", out, out_offset, (size_t)all * (size_t)plan->n_out);
    if (status) return status;
    const tonal_call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                          (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->cuda) return wt__chroma_cuda_enqueue(plan->cuda, stream, c.in, n_frames, all, c.out);
    return wt_stream_run(stream, run_item, &c, sizeof c, plan->config.n_signals);
}
