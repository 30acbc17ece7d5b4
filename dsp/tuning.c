#include <warptone/tuning.h>

#include <math.h>
#include <stdlib.h>
#include <warptone/fft.h>

static wt_status resolve(wt_piptrack_config *c, int64_t n_frames)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->n_fft) c->n_fft = 2048;
    if (c->fmin_hz == 0) c->fmin_hz = 150;
    if (c->fmax_hz == 0) c->fmax_hz = 4000;
    if (c->threshold == 0) c->threshold = 0.1;
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "piptrack: rate %g Hz, want above 0", c->rate_hz);
    if (c->n_fft < 2 || c->n_fft > WT_FFT_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "piptrack: n_fft %d, want 2..%d", c->n_fft, WT_FFT_MAX_N);
    if (!(c->threshold > 0)) return wt_fail(WT_ERR_BAD_ARG, "piptrack: threshold %g, want above 0", c->threshold);
    if (n_frames < 0) return wt_fail(WT_ERR_BAD_ARG, "piptrack: %lld frames, want 0 or more", (long long)n_frames);
    if (c->fmax_hz > c->rate_hz / 2) c->fmax_hz = c->rate_hz / 2;
    return WT_OK;
}

// What of s[k] is above the floor, as the peaks are searched in.
static double above(const float *s, int k, double floor)
{
    return s[k] > floor ? s[k] : 0;
}

static int is_peak(const float *s, int k, int bins, double floor)
{
    if (k == 0 || !(above(s, k, floor) > above(s, k - 1, floor))) return 0;
    return k == bins - 1 || above(s, k, floor) >= above(s, k + 1, floor);
}

// The peak's place and height by a parabola; no shift where it would be a bin or more, and at the ends.
static void refine(const float *s, int k, int bins, double *shift, double *height)
{
    *shift = 0, *height = s[k];
    if (k == 0 || k == bins - 1) return;
    const double curve = (double)s[k + 1] + s[k - 1] - 2.0 * s[k], slope = ((double)s[k + 1] - s[k - 1]) / 2;
    if (fabs(slope) >= fabs(curve)) return;
    *shift = -slope / curve;
    *height += 0.5 * slope * *shift;
}

static void track_frame(const wt_piptrack_config *c, const float *s, float *hz, float *height)
{
    const int bins = c->n_fft / 2 + 1;
    float most = s[0];
    for (int k = 1; k < bins; k++) most = s[k] > most ? s[k] : most;
    for (int k = 0; k < bins; k++) {
        const double centre = k * c->rate_hz / c->n_fft;
        hz[k] = height[k] = 0;
        if (!(centre >= c->fmin_hz && centre < c->fmax_hz) || !is_peak(s, k, bins, c->threshold * most)) continue;
        double shift, top;
        refine(s, k, bins, &shift, &top);
        hz[k] = (float)((k + shift) * c->rate_hz / c->n_fft), height[k] = (float)top;
    }
}

wt_status wt_piptrack(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames, float *hz,
                      float *height)
{
    wt_piptrack_config c = *config;
    wt_status status = resolve(&c, n_frames);
    const int64_t bins = c.n_fft / 2 + 1;
    for (int64_t t = 0; t < n_frames && !status; t++)
        track_frame(&c, spectrum + t * bins, hz + t * bins, height + t * bins);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

// Peaks by height: the median of the heights, two middle ones averaged.
static float median_of(const float *height, size_t n, float *sorted)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (height[i] > 0) sorted[count++] = height[i];
    if (!count) return 0;
    qsort(sorted, count, sizeof *sorted, ascending);
    return count % 2 ? sorted[count / 2] : 0.5f * (sorted[count / 2 - 1] + sorted[count / 2]);
}

// The step of numpy.linspace(-0.5, 0.5, n_steps + 1) that holds `residual`.
static int step_of(double residual, int n_steps)
{
    int step = (int)floor((residual + 0.5) * n_steps);
    while (step > 0 && residual < -0.5 + step * (1.0 / n_steps)) step--;
    while (step < n_steps - 1 && residual >= -0.5 + (step + 1) * (1.0 / n_steps)) step++;
    return step < n_steps ? step : n_steps - 1;
}

wt_status wt_tuning_estimate(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames,
                             int bins_per_octave, double resolution, double *tuning)
{
    wt_piptrack_config c = *config;
    *tuning = 0;
    if (!bins_per_octave) bins_per_octave = 12;
    if (resolution == 0) resolution = 0.01;
    wt_status status = resolve(&c, n_frames);
    if (status) return status;
    if (bins_per_octave < 1 || !(resolution >= 1e-6 && resolution <= 1))
        return wt_fail(WT_ERR_BAD_ARG, "tuning: %d bins an octave in steps of %g, want 1 or more, and 1e-6..1",
                       bins_per_octave, resolution);
    const int n_steps = (int)ceil(1 / resolution);
    const size_t n = (size_t)n_frames * (size_t)(c.n_fft / 2 + 1);
    float *all = malloc((3 * n + 1) * sizeof *all), *hz = all, *height = all + n;
    int *count = calloc((size_t)n_steps, sizeof *count);
    if (all && count) {
        status = wt_piptrack(&c, spectrum, n_frames, hz, height);
        const float least = median_of(height, n, all + 2 * n);
        for (size_t i = 0; i < n; i++) {
            if (!(hz[i] > 0 && height[i] >= least)) continue;
            double residual = bins_per_octave * log2(hz[i] / 27.5);
            residual -= floor(residual);
            count[step_of(residual >= 0.5 ? residual - 1 : residual, n_steps)]++;
        }
        int best = 0, found = count[0];
        for (int i = 1; i < n_steps; i++) {
            if (count[i] > count[best]) best = i;
            found += count[i];
        }
        *tuning = found ? -0.5 + best * (1.0 / n_steps) : 0;
    } else {
        status = wt_fail(WT_ERR_NO_MEMORY, "tuning: peaks of %lld frames", (long long)n_frames);
    }
    free(all);
    free(count);
    return status;
}
