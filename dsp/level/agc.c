#include "agc_internal.h"
#include "op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = AGC_MAX_CHANNELS };

struct wt_agc {
    int channels, at; // at: frames into the present step
    agc_rules rules;
    agc_line line;
    agc_ear ears[MAX_CHANNELS];
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

wt_status wt__agc_resolve(const wt_agc_config *config, agc_rules *rules, int *n_channels)
{
    const int rate_hz = config->rate_hz ? config->rate_hz : 48000, channels = config->channels ? config->channels : 2;
    wt_status status = check(config, rate_hz, channels);
    if (status) return status;
    const double step_s = (double)AGC_STEP / rate_hz;
    *n_channels = channels;
    *rules = (agc_rules){
        .target_db = wt__op_setting(config->target_db, -20),
        .max_gain_db = wt__op_setting(config->max_gain_db, 24),
        .min_gain_db = wt__op_setting(config->min_gain_db, -24),
        .gate_power = pow(10, wt__op_setting(config->gate_db, -50) / 10),
        .rise_db = wt__op_setting(config->rise_db_per_s, 6) * step_s,
        .fall_db = wt__op_setting(config->fall_db_per_s, 24) * step_s,
        .keep = exp(-step_s / 0.05),
    };
    return WT_OK;
}

wt_status wt_agc_create(const wt_agc_config *config, wt_agc **agc)
{
    *agc = NULL;
    agc_rules rules;
    int channels;
    wt_status status = wt__agc_resolve(config, &rules, &channels);
    if (status) return status;
    wt_agc *a = calloc(1, sizeof *a);
    if (!a) return wt_fail(WT_ERR_NO_MEMORY, "agc: handle");
    a->channels = channels, a->rules = rules;
    wt_agc_reset(a);
    *agc = a;
    return WT_OK;
}

void wt_agc_destroy(wt_agc *agc) { free(agc); }

WT_RT void wt_agc_reset(wt_agc *a)
{
    a->at = 0;
    a->line = (agc_line){0};
    memset(a->ears, 0, sizeof a->ears);
}

WT_RT double wt_agc_gain_db(const wt_agc *a) { return 20 * log10(1 + a->line.above); }

WT_RT void wt_agc_process(wt_agc *a, const float *const *in, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = AGC_STEP - a->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < a->channels; c++)
            for (int k = 0; k < n; k++) {
                const float x = in[c][done + k];
                a->ears[c].sum += (double)x * x;
                out[c][done + k] = agc_turn(&a->line, x, a->at + k);
            }
        a->at += n;
        done += n;
        if (a->at < AGC_STEP) continue;
        agc_end_step(&a->rules, &a->line, a->ears, a->channels);
        a->at = 0;
    }
}
