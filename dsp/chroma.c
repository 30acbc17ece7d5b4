#include <warptone/chroma.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/simd.h>
#include <warptone/window.h>

struct wt_chroma {
    wt_chroma_config config;
    int bins;
    float *bank;
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

wt_status wt_chroma_create(const wt_chroma_config *config, wt_chroma **chroma)
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
        wt_chroma_destroy(m);
        return wt_fail(WT_ERR_NO_MEMORY, "chroma: bank of %d x %d", c.n_chroma, m->bins);
    }
    for (int k = 0; k < m->bins; k++) fill_bin(m, k);
    *chroma = m;
    return WT_OK;
}

void wt_chroma_destroy(wt_chroma *chroma)
{
    if (!chroma) return;
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

WT_RT wt_status wt_chroma_run(wt_chroma *chroma, const float *power, int64_t n_frames, float *out)
{
    const int n = chroma->config.n_chroma;
    if (n_frames < 0) return WT_ERR_BAD_ARG;
    for (int64_t t = 0; t < n_frames * chroma->config.channels; t++, power += chroma->bins, out += n) {
        double row[WT_CHROMA_MAX];
        for (int r = 0; r < n; r++) row[r] = dot(chroma->bank + r * chroma->bins, power, chroma->bins);
        normalise(row, n, chroma->config.norm);
        for (int r = 0; r < n; r++) out[r] = (float)row[r];
    }
    return WT_OK;
}

// ---- from constant-Q magnitudes

wt_status wt_chroma_fold(const wt_chroma_cqt_config *config, const float *magnitude, int64_t n_frames, float *out)
{
    wt_chroma_cqt_config c = *config;
    if (c.fmin_hz == 0) c.fmin_hz = 32.703195662574829;
    if (!c.n_bins) c.n_bins = 252;
    if (!c.bins_per_octave) c.bins_per_octave = 36;
    if (!c.n_chroma) c.n_chroma = 12;
    wt_status status = check_n(n_frames, c.n_chroma, c.norm);
    if (status) return status;
    if (c.n_bins < 1 || c.bins_per_octave < 1 || c.bins_per_octave % c.n_chroma || !(c.fmin_hz > 0))
        return wt_fail(WT_ERR_BAD_ARG, "chroma: %d bins, %d an octave from %g Hz, want 1 or more, a multiple of %d, "
                       "above 0", c.n_bins, c.bins_per_octave, c.fmin_hz, c.n_chroma);
    const int n = c.n_chroma, merge = c.bins_per_octave / n;
    const double midi = 12 * log2(c.fmin_hz / 440) + 69, above_c = midi - 12 * floor(midi / 12);
    const int roll = (int)rint(above_c * (n / 12.0));
    for (int64_t t = 0; t < n_frames; t++, magnitude += c.n_bins, out += n) {
        double row[WT_CHROMA_MAX] = {0};
        for (int k = 0; k < c.n_bins; k++) // bins lie around their note
            row[((k % c.bins_per_octave + merge / 2) / merge + roll) % n] += magnitude[k];
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

wt_status wt_chroma_cens(const float *chroma, int64_t n_frames, int n_chroma, int smooth, wt_chroma_norm norm,
                         float *out)
{
    wt_status status = check_n(n_frames, n_chroma, norm);
    if (status) return status;
    const int length = smooth < 0 ? 1 : (smooth ? smooth : 41) + 2;
    if (length > WT_WINDOW_MAX_N) return wt_fail(WT_ERR_BAD_ARG, "chroma: window of %d frames, want fewer", length);
    const size_t area = (size_t)n_frames * (size_t)n_chroma;
    double *window = malloc((size_t)length * sizeof *window), row[WT_CHROMA_MAX];
    float *steps = malloc((area + 1) * sizeof *steps);
    if (!window || !steps) status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %zu values", area);
    const wt_window_config shape = {.n = length, .symmetric = true,
                                    .kind = smooth < 0 ? WT_WINDOW_RECTANGULAR : WT_WINDOW_HANN};
    if (!status) status = wt_window_fill_double(&shape, window);
    double sum = 0;
    for (int j = 0; j < length && !status; j++) sum += window[j];
    for (int j = 0; j < length && !status; j++) window[j] /= sum;
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

wt_status wt_tonnetz(const float *chroma, int64_t n_frames, int n_chroma, float *out)
{
    static const double scale[6] = {7.0 / 6, 7.0 / 6, 3.0 / 2, 3.0 / 2, 2.0 / 3, 2.0 / 3}; // half turns a semitone
    static const double radius[6] = {1, 1, 1, 1, 0.5, 0.5};
    wt_status status = check_n(n_frames, n_chroma, WT_CHROMA_NORM_1);
    for (int64_t t = 0; t < n_frames && !status; t++) {
        double row[WT_CHROMA_MAX];
        for (int r = 0; r < n_chroma; r++) row[r] = chroma[t * n_chroma + r];
        normalise(row, n_chroma, WT_CHROMA_NORM_1);
        for (int d = 0; d < 6; d++) {
            double sum = 0;
            for (int r = 0; r < n_chroma; r++)
                sum += radius[d] * cos(pi * (scale[d] * 12 * r / n_chroma - (d % 2 ? 0 : 0.5))) * row[r];
            out[t * 6 + d] = (float)sum;
        }
    }
    return status;
}
