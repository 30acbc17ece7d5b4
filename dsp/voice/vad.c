#include "vad_internal.h"
#include "op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64 };

struct wt_vad {
    wt__vad_settings settings;
    int at; // in the present window
    vad_count count;
    vad_voice voices[MAX_CHANNELS];
};

static wt_status check(const wt_vad_config *c)
{
    if (c->rate_hz < 8000 || c->rate_hz > 384000)
        return wt_fail(WT_ERR_BAD_ARG, "vad: rate %d Hz, want 8000..384000", c->rate_hz);
    if (c->channels < 1 || c->channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "vad: %d channels, want 1..%d", c->channels, MAX_CHANNELS);
    if (!(c->leave_db > 0 && c->leave_db <= c->enter_db && c->enter_db <= 60))
        return wt_fail(WT_ERR_BAD_ARG, "vad: enters at %g and leaves at %g dB, want 0 < leave <= enter <= 60",
                       c->enter_db, c->leave_db);
    if (!(c->min_db <= 0 && c->min_db >= -200))
        return wt_fail(WT_ERR_BAD_ARG, "vad: minimum %g dB, want -200..0", c->min_db);
    if (!(c->hangover_ms >= 0 && c->hangover_ms <= 10000))
        return wt_fail(WT_ERR_BAD_ARG, "vad: hangover %g ms, want 0..10000", c->hangover_ms);
    return WT_OK;
}

wt_status wt__vad_resolve(const wt_vad_config *config, wt__vad_settings *settings)
{
    const wt_vad_config c = {
        .rate_hz = config->rate_hz ? config->rate_hz : 48000,
        .channels = config->channels ? config->channels : 2,
        .enter_db = wt__op_setting(config->enter_db, 8),
        .leave_db = wt__op_setting(config->leave_db, 4),
        .min_db = wt__op_setting(config->min_db, -60),
        .hangover_ms = wt__op_setting(config->hangover_ms, 200),
    };
    wt_status status = check(&c);
    if (status) return status;
    *settings = (wt__vad_settings){.channels = c.channels,
                                   .window = (c.rate_hz + 50) / 100,
                                   .high_pole = exp(-2 * M_PI * VAD_HIGH_HZ / c.rate_hz),
                                   .rules = {.enter = pow(10, c.enter_db / 10),
                                             .leave = pow(10, c.leave_db / 10),
                                             .min_power = pow(10, c.min_db / 10),
                                             .hangover = (int)lround(c.hangover_ms / 10)}};
    return WT_OK;
}

wt_status wt_vad_create(const wt_vad_config *config, wt_vad **vad)
{
    *vad = NULL;
    wt__vad_settings settings;
    wt_status status = wt__vad_resolve(config, &settings);
    if (status) return status;
    wt_vad *v = calloc(1, sizeof *v);
    if (!v) return wt_fail(WT_ERR_NO_MEMORY, "vad: handle");
    v->settings = settings;
    wt_vad_reset(v);
    *vad = v;
    return WT_OK;
}

void wt_vad_destroy(wt_vad *vad) { free(vad); }

WT_RT void wt_vad_reset(wt_vad *v)
{
    memset(v->voices, 0, sizeof v->voices);
    v->at = 0;
    v->count = (vad_count){0};
}

int wt_vad_window_frames(const wt_vad *vad) { return vad->settings.window; }

int wt_vad_latency_frames(const wt_vad *vad) { return VAD_ENTER_WINDOWS * vad->settings.window; }

WT_RT static void end_window(wt_vad *v, bool *speech)
{
    for (int c = 0; c < v->settings.channels; c++) {
        vad_end_window(&v->settings.rules, &v->count, &v->voices[c], v->settings.window);
        if (speech) speech[c] = v->voices[c].active != 0;
    }
    vad_count_on(&v->count);
}

WT_RT int wt_vad_process(wt_vad *v, const float *const *in, int n_frames, bool *speech)
{
    int n_ended = 0;
    for (int done = 0; done < n_frames;) {
        const int room = v->settings.window - v->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < v->settings.channels; c++) vad_hear(&v->voices[c], v->settings.high_pole, in[c] + done, n);
        v->at += n;
        done += n;
        if (v->at < v->settings.window) continue;
        end_window(v, speech ? speech + (long)n_ended * v->settings.channels : NULL);
        n_ended++;
        v->at = 0;
    }
    return n_ended;
}

WT_RT bool wt_vad_active(const wt_vad *v, int c) { return v->voices[c].active != 0; }

WT_RT static double decibels(double power) { return 10 * log10(fmax(power, 1e-20)); }

WT_RT double wt_vad_level_db(const wt_vad *v, int c) { return decibels(v->voices[c].power); }

WT_RT double wt_vad_floor_db(const wt_vad *v, int c) { return decibels(v->voices[c].floor); }
