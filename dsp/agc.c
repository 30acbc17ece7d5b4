// The level is the power of the last 50 ms or so (one pole), looked at every STEP frames since reset. The gain then
// moves towards target - level by at most its rates, along a straight line over the next STEP frames: no clicks, and
// nothing depends on the caller's blocks.
#include <warptone/agc.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { STEP = 64, MAX_CHANNELS = 64 };

struct wt_agc {
    int channels, at;                                                         // at: frames into the present step
    double target_db, max_gain_db, min_gain_db, gate_power, rise_db, fall_db; // rates: of a step
    double keep;                                                              // part of the power that a step leaves
    double power[MAX_CHANNELS];                                               // smoothed, of each channel
    double sum[MAX_CHANNELS];                                                 // of squares in the present step
    double gain_db, gain, gain_change; // at the present frame; linear, and its change a frame
};

static wt_status check(const wt_agc_config *c, int rate_hz, int channels)
{
    if (rate_hz < 8000 || rate_hz > 384000)
        return wt_fail(WT_ERR_BAD_ARG, "agc: rate %d Hz, want 8000..384000", rate_hz);
    if (channels < 1 || channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "agc: %d channels, want 1..%d", channels, MAX_CHANNELS);
    if (!(c->target_db <= 0 && c->target_db >= -100))
        return wt_fail(WT_ERR_BAD_ARG, "agc: target %g dB, want -100..0", c->target_db);
    if (!(c->gate_db <= 0 && c->gate_db >= -200))
        return wt_fail(WT_ERR_BAD_ARG, "agc: gate %g dB, want -200..0", c->gate_db);
    if (!(c->max_gain_db >= 0 && c->max_gain_db <= 60) || !(c->min_gain_db <= 0 && c->min_gain_db >= -60))
        return wt_fail(WT_ERR_BAD_ARG, "agc: gain of %g to %g dB, want -60..0 to 0..60", c->min_gain_db,
                       c->max_gain_db);
    if (!(c->rise_db_per_s >= 0 && c->rise_db_per_s <= 1000) || !(c->fall_db_per_s >= 0 && c->fall_db_per_s <= 1000))
        return wt_fail(WT_ERR_BAD_ARG, "agc: rise %g and fall %g dB/s, want 0..1000", c->rise_db_per_s,
                       c->fall_db_per_s);
    return WT_OK;
}

static double or_default(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

wt_status wt_agc_create(const wt_agc_config *config, wt_agc **agc)
{
    *agc = NULL;
    const int rate_hz = config->rate_hz ? config->rate_hz : 48000, channels = config->channels ? config->channels : 2;
    wt_status status = check(config, rate_hz, channels);
    if (status) return status;
    wt_agc *a = calloc(1, sizeof *a);
    if (!a) return wt_fail(WT_ERR_NO_MEMORY, "agc: handle");
    const double step_s = (double)STEP / rate_hz;
    a->channels = channels;
    a->target_db = or_default(config->target_db, -20);
    a->max_gain_db = or_default(config->max_gain_db, 24);
    a->min_gain_db = or_default(config->min_gain_db, -24);
    a->gate_power = pow(10, or_default(config->gate_db, -50) / 10);
    a->rise_db = or_default(config->rise_db_per_s, 6) * step_s;
    a->fall_db = or_default(config->fall_db_per_s, 24) * step_s;
    a->keep = exp(-step_s / 0.05);
    wt_agc_reset(a);
    *agc = a;
    return WT_OK;
}

void wt_agc_destroy(wt_agc *agc)
{
    free(agc);
}

WT_RT void wt_agc_reset(wt_agc *a)
{
    for (int c = 0; c < a->channels; c++) a->power[c] = a->sum[c] = 0;
    a->at = 0;
    a->gain_db = a->gain_change = 0;
    a->gain = 1;
}

WT_RT double wt_agc_gain_db(const wt_agc *a)
{
    return 20 * log10(a->gain);
}

WT_RT static void end_step(wt_agc *a)
{
    double loudest = 0;
    for (int c = 0; c < a->channels; c++) {
        if (a->sum[c] <= DBL_MAX) a->power[c] = a->keep * a->power[c] + (1 - a->keep) * a->sum[c] / STEP;
        if (a->power[c] < 1e-30) a->power[c] = 0;
        if (a->power[c] > loudest) loudest = a->power[c];
        a->sum[c] = 0;
    }
    const double now = pow(10, a->gain_db / 20);
    if (loudest > a->gate_power) {
        const double wanted = fmin(fmax(a->target_db - 10 * log10(loudest), a->min_gain_db), a->max_gain_db);
        a->gain_db += fmin(fmax(wanted - a->gain_db, -a->fall_db), a->rise_db);
    }
    a->gain = now; // exactly where the last line was to end
    a->gain_change = (pow(10, a->gain_db / 20) - now) / STEP;
}

WT_RT void wt_agc_process(wt_agc *a, const float *const *in, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = STEP - a->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < a->channels; c++)
            for (int k = 0; k < n; k++) {
                const double x = in[c][done + k];
                a->sum[c] += x * x;
                out[c][done + k] = (float)(x * (a->gain + a->gain_change * (a->at + k)));
            }
        a->at += n;
        done += n;
        if (a->at < STEP) continue;
        end_step(a);
        a->at = 0;
    }
}
