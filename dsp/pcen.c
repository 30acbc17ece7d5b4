#include <warptone/pcen.h>

#include <math.h>

wt_pcen_config wt_pcen_defaults(void)
{
    return (wt_pcen_config){.gain = 0.98, .bias = 2, .power = 0.5};
}

static wt_status resolve(wt_pcen_config *c)
{
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->hop) c->hop = 512;
    if (!c->time_constant_s) c->time_constant_s = 0.4;
    if (!c->eps) c->eps = 1e-6;
    if (!c->max_size) c->max_size = 1;
    if (c->rate_hz < 1 || c->hop < 1)
        return wt_fail(WT_ERR_BAD_ARG, "pcen: rate %d Hz, hop %d, want 1 or more", c->rate_hz, c->hop);
    if (!(c->gain >= 0 && c->bias >= 0 && c->power >= 0))
        return wt_fail(WT_ERR_BAD_ARG, "pcen: gain %g, bias %g, power %g, want 0 or more", c->gain, c->bias, c->power);
    if (!(c->eps > 0 && c->time_constant_s > 0))
        return wt_fail(WT_ERR_BAD_ARG, "pcen: eps %g, time constant %g s, want more than 0", c->eps,
                       c->time_constant_s);
    const double frames = c->time_constant_s * c->rate_hz / c->hop;
    if (!c->b) c->b = (sqrt(1 + 4 * frames * frames) - 1) / (2 * frames * frames);
    if (!(c->b > 0 && c->b <= 1)) return wt_fail(WT_ERR_BAD_ARG, "pcen: b %g, want 0..1", c->b);
    if (c->max_size < 1) return wt_fail(WT_ERR_BAD_ARG, "pcen: max_size %d, want 1 or more", c->max_size);
    return WT_OK;
}

// Largest of max_size rows around `row`; beyond the ends they are mirrored (d c b a | a b c d).
static double largest(const wt_pcen_config *c, const float *in, int64_t n_rows, int64_t n_frames, int64_t row,
                      int64_t t)
{
    double most = -HUGE_VAL;
    for (int i = 0; i < c->max_size; i++) {
        int64_t at = (row + i - c->max_size / 2) % (2 * n_rows);
        if (at < 0) at += 2 * n_rows;
        if (at >= n_rows) at = 2 * n_rows - 1 - at;
        most = fmax(most, in[at * n_frames + t]);
    }
    return most;
}

wt_status wt_pcen_run(const wt_pcen_config *config, const float *in, int64_t n_rows, int64_t n_frames, double *state,
                      bool continued, float *out)
{
    wt_pcen_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    for (int64_t row = 0; row < n_rows; row++) {
        double memory = state && continued ? state[row] : 1 - c.b; // scipy's lfilter_zi of a unit step
        for (int64_t t = 0; t < n_frames; t++) {
            const double x = in[row * n_frames + t], smooth = memory + c.b * largest(&c, in, n_rows, n_frames, row, t);
            memory = (1 - c.b) * smooth;
            const double level = x * exp(-c.gain * (log(c.eps) + log1p(smooth / c.eps)));
            double y = c.power == 0 ? log1p(level)
                       : c.bias == 0 ? pow(level, c.power)
                                     : pow(c.bias, c.power) * expm1(c.power * log1p(level / c.bias));
            out[row * n_frames + t] = (float)y;
        }
        if (state) state[row] = memory;
    }
    return WT_OK;
}
