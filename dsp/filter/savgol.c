#include <warptone/fir_design.h>

#include <math.h>

enum { MAX_TAPS = WT_SAVGOL_MAX_TAPS, MAX_ORDER = 20 };

static wt_status check(const wt_savgol_config *c)
{
    if (c->n_taps < 1 || c->n_taps > MAX_TAPS || c->n_taps % 2 == 0)
        return wt_fail(WT_ERR_BAD_ARG, "savgol: window of %d frames, want an odd number up to %d", c->n_taps, MAX_TAPS);
    if (c->order < 0 || c->order >= c->n_taps || c->order > MAX_ORDER)
        return wt_fail(WT_ERR_BAD_ARG, "savgol: order %d, want 0..%d", c->order,
                       c->n_taps - 1 < MAX_ORDER ? c->n_taps - 1 : MAX_ORDER);
    if (c->derivative < 0 || !(c->delta >= 0))
        return wt_fail(WT_ERR_BAD_ARG, "savgol: derivative %d with delta %g, want neither negative", c->derivative,
                       c->delta);
    return WT_OK;
}

// With polynomials p_j orthogonal on the window's frames, tap k is the sum over j of p_j(x_k) p_j'(x) / |p_j|^2. They
// follow p_j+1 = x p_j - beta_j p_j-1 with beta_j = |p_j|^2 / |p_j-1|^2, derivatives likewise; x runs over -1 .. 1.
wt_status wt_savgol_taps(const wt_savgol_config *config, int position, double *taps)
{
    wt_status status = check(config);
    if (status) return status;
    const int n = config->n_taps, d = config->derivative, half = n / 2;
    if (position < 0 || position >= n)
        return wt_fail(WT_ERR_BAD_ARG, "savgol: position %d, want 0..%d", position, n - 1);
    for (int k = 0; k < n; k++) taps[k] = 0;
    if (d > config->order) return WT_OK;

    const double scale = half ? half : 1, at = (position - half) / scale;
    double now[MAX_TAPS], before[MAX_TAPS] = {0}, norm_before = 1;
    double here[MAX_ORDER + 1] = {1}, here_before[MAX_ORDER + 1] = {0}; // derivatives 0 .. d of p_j at `at`
    for (int k = 0; k < n; k++) now[k] = 1;
    for (int j = 0; j <= config->order; j++) {
        double norm = 0;
        for (int k = 0; k < n; k++) norm += now[k] * now[k];
        for (int k = 0; k < n; k++) taps[k] += now[k] * here[d] / norm;
        const double beta = j ? norm / norm_before : 0;
        norm_before = norm;
        for (int i = d; i >= 0; i--) {
            const double next = at * here[i] + (i ? i * here[i - 1] : 0) - beta * here_before[i];
            here_before[i] = here[i];
            here[i] = next;
        }
        for (int k = 0; k < n; k++) {
            const double next = (k - half) / scale * now[k] - beta * before[k];
            before[k] = now[k];
            now[k] = next;
        }
    }
    const double unit = pow(scale * (config->delta > 0 ? config->delta : 1), -d);
    for (int k = 0; k < n; k++) taps[k] *= unit;
    return WT_OK;
}

static float dot(const double *taps, const float *in, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += taps[k] * in[k];
    return (float)sum;
}

wt_status wt_savgol_filter(const wt_savgol_config *config, const float *in, float *out, int n_frames)
{
    double taps[MAX_TAPS];
    const int n = config->n_taps, half = n / 2;
    wt_status status = wt_savgol_taps(config, half > 0 ? half : 0, taps);
    if (status) return status;
    if (n_frames < n) return wt_fail(WT_ERR_LENGTH, "savgol: %d frames, want the window's %d or more", n_frames, n);
    for (int k = half; k < n_frames - half; k++) out[k] = dot(taps, in + k - half, n);
    for (int k = 0; k < half && !status; k++) {
        status = wt_savgol_taps(config, k, taps);
        out[k] = dot(taps, in, n);
        if (!status) status = wt_savgol_taps(config, n - 1 - k, taps);
        out[n_frames - 1 - k] = dot(taps, in + n_frames - n, n);
    }
    return status;
}
