// Pitch shift: a stretch, then the resampler reads it at another speed, one signal at a time.

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/resample.h>
#include <warptone/stretch.h>

struct wt_pitch_shift {
    wt_stretch *stretch;
    wt_resample *resampler;
    int64_t n_samples, n_stretched;
    int n_signals;
    float gain;
    float *stretched;
};

enum { BLOCK = 1 << 16 };

// Rates in whole numbers whose ratio is nearest to librosa's, which may be any: by the convergents of its continued
// fraction, as far as the resampler's range of rates goes.
static void nearest_rates(double ratio, int *in_hz, int *out_hz)
{
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double x = ratio;
    for (int i = 0; i < 40; i++) {
        const double whole = floor(x);
        if (whole * (double)p1 + (double)p0 > 1e8 || whole * (double)q1 + (double)q0 > 1e8) break;
        const int64_t p = (int64_t)whole * p1 + p0, q = (int64_t)whole * q1 + q0;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        if (x - whole < 1e-12) break;
        x = 1 / (x - whole);
    }
    *in_hz = (int)p1;
    *out_hz = (int)q1;
}

static wt_status check(const wt_pitch_shift_config *c)
{
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: rate %g Hz, want above 0", c->rate_hz);
    if (c->bins_per_octave < 1)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %d steps an octave, want 1 or more", c->bins_per_octave);
    if (!(fabs(c->n_steps) <= 8.0 * c->bins_per_octave))
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %g steps, want at most 8 octaves", c->n_steps);
    return WT_OK;
}

static wt_status prepare(const wt_pitch_shift_config *c, wt_pitch_shift *p)
{
    const double rate = exp2(-c->n_steps / c->bins_per_octave);
    const wt_stretch_config stretch = {
        .mode = c->mode, .rate = rate, .n_fft = c->n_fft, .hop = c->hop, .n_samples = c->n_samples, .n_signals = 1};
    wt_status status = wt_stretch_create(NULL, &stretch, &p->stretch);
    if (status) return status;
    int in_hz, out_hz;
    nearest_rates(1 / rate, &in_hz, &out_hz);
    status = wt_resample_create(&(wt_resample_config){in_hz, out_hz, 1, WT_RESAMPLE_BEST, false}, &p->resampler);
    if (status) return status;
    p->n_samples = c->n_samples;
    p->n_signals = c->n_signals;
    p->n_stretched = wt_stretch_n_out(p->stretch);
    p->gain = c->scale ? (float)(1 / sqrt(rate)) : 1;
    p->stretched = calloc((size_t)p->n_stretched + 1, sizeof *p->stretched);
    return p->stretched ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: %lld samples", (long long)p->n_stretched);
}

wt_status wt_pitch_shift_create(const wt_pitch_shift_config *config, wt_pitch_shift **plan)
{
    *plan = NULL;
    wt_pitch_shift_config c = *config;
    if (c.rate_hz == 0) c.rate_hz = 22050;
    if (!c.bins_per_octave) c.bins_per_octave = 12;
    if (!c.n_signals) c.n_signals = 1;
    wt_status status = check(&c);
    if (status) return status;
    wt_pitch_shift *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: plan");
    status = prepare(&c, p);
    if (status)
        wt_pitch_shift_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_pitch_shift_destroy(wt_pitch_shift *plan)
{
    if (!plan) return;
    wt_stretch_destroy(plan->stretch);
    wt_resample_destroy(plan->resampler);
    free(plan->stretched);
    free(plan);
}

static void resample(wt_pitch_shift *p, float *out)
{
    const float *in = p->stretched;
    int64_t taken = 0, made = 0;
    wt_resample_reset(p->resampler);
    for (int used = 1, got = 1; (used || got) && taken < p->n_stretched && made < p->n_samples;) {
        const int64_t rest = p->n_stretched - taken, room = p->n_samples - made;
        const float *from = in + taken;
        float *to = out + made;
        wt_resample_process(p->resampler, &from, rest < BLOCK ? (int)rest : BLOCK, &used, &to,
                            room < BLOCK ? (int)room : BLOCK, &got);
        taken += used;
        made += got;
    }
    for (int got = 1; got && made < p->n_samples; made += got) {
        const int64_t room = p->n_samples - made;
        float *to = out + made;
        wt_resample_drain(p->resampler, &to, room < BLOCK ? (int)room : BLOCK, &got);
    }
    memset(out + made, 0, (size_t)(p->n_samples - made) * sizeof *out);
}

WT_RT void wt_pitch_shift_run(wt_pitch_shift *plan, const float *pcm, float *out)
{
    for (int signal = 0; signal < plan->n_signals; signal++, pcm += plan->n_samples, out += plan->n_samples) {
        wt_stretch_run(plan->stretch, pcm, plan->stretched);
        resample(plan, out);
        for (int64_t i = 0; i < plan->n_samples && plan->gain != 1; i++) out[i] *= plan->gain;
    }
}
