// A window's power is the mean square behind a first-order high-pass at 80 Hz (hum and offset are not speech). It is
// smoothed over about 50 ms; the floor is the smallest smoothed power of the last 2 s, kept as the minima of 8 parts
// of 25 windows, times what the minimum of noise lies below its mean. Speech leaves a gap of 50 ms in 2 s, steady
// noise does not; noise that grows is background 2 s later.
#include <warptone/vad.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 64, N_PARTS = 8, PART_WINDOWS = 25, ENTER_WINDOWS = 2 };

// Smoothing over 50 ms: exp(-10 / 50). Bias: the minimum of 200 such values of white noise lies 0.4 dB
// below the mean; that of room and street noise, whose power wanders, about 2 dB; between the two.
static const double SMOOTHING = 0.8187307530779818, BIAS = 1.3;

typedef struct voice {
    double in_before, high; // of the high-pass
    double sum;             // of squares in the present window
    double power, smoothed, floor;
    double minima[N_PARTS]; // of the smoothed power; part 0 is the present one
    int n_loud, hangover;   // windows
    bool active;
} voice;

struct wt_vad {
    int channels, window, at, n_windows; // n_windows: into the present part
    bool started;                        // a window has ended since reset
    double high_pole, enter, leave, min_power;
    int hangover;
    voice voices[MAX_CHANNELS];
};

static double or_default(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

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

wt_status wt_vad_create(const wt_vad_config *config, wt_vad **vad)
{
    *vad = NULL;
    const wt_vad_config c = {
        .rate_hz = config->rate_hz ? config->rate_hz : 48000,
        .channels = config->channels ? config->channels : 2,
        .enter_db = or_default(config->enter_db, 8),
        .leave_db = or_default(config->leave_db, 4),
        .min_db = or_default(config->min_db, -60),
        .hangover_ms = or_default(config->hangover_ms, 200),
    };
    wt_status status = check(&c);
    if (status) return status;
    wt_vad *v = calloc(1, sizeof *v);
    if (!v) return wt_fail(WT_ERR_NO_MEMORY, "vad: handle");
    v->channels = c.channels;
    v->window = (c.rate_hz + 50) / 100;
    v->high_pole = exp(-2 * M_PI * 80 / c.rate_hz);
    v->enter = pow(10, c.enter_db / 10);
    v->leave = pow(10, c.leave_db / 10);
    v->min_power = pow(10, c.min_db / 10);
    v->hangover = (int)lround(c.hangover_ms / 10);
    wt_vad_reset(v);
    *vad = v;
    return WT_OK;
}

void wt_vad_destroy(wt_vad *vad)
{
    free(vad);
}

WT_RT void wt_vad_reset(wt_vad *v)
{
    memset(v->voices, 0, sizeof v->voices);
    v->at = v->n_windows = 0;
    v->started = false;
}

int wt_vad_window_frames(const wt_vad *vad)
{
    return vad->window;
}

int wt_vad_latency_frames(const wt_vad *vad)
{
    return ENTER_WINDOWS * vad->window;
}

WT_RT static void track_floor(const wt_vad *v, voice *s)
{
    if (!v->started) {
        s->smoothed = s->power;
        for (int k = 0; k < N_PARTS; k++) s->minima[k] = s->power;
    }
    s->smoothed = SMOOTHING * s->smoothed + (1 - SMOOTHING) * s->power;
    if (v->n_windows == 0) { // a part begins, the oldest is forgotten
        memmove(s->minima + 1, s->minima, sizeof s->minima - sizeof *s->minima);
        s->minima[0] = s->smoothed;
    }
    s->minima[0] = fmin(s->minima[0], s->smoothed);
    s->floor = s->minima[0];
    for (int k = 1; k < N_PARTS; k++) s->floor = fmin(s->floor, s->minima[k]);
    s->floor *= BIAS;
}

WT_RT static void decide(const wt_vad *v, voice *s)
{
    const double threshold = fmax((s->active ? v->leave : v->enter) * s->floor, v->min_power);
    const bool loud = s->power > threshold;
    s->n_loud = loud ? s->n_loud + (s->n_loud < ENTER_WINDOWS) : 0;
    if (s->active && loud)
        s->hangover = v->hangover;
    else if (s->active && s->hangover-- <= 0)
        s->active = false;
    if (!s->active && s->n_loud == ENTER_WINDOWS) {
        s->active = true;
        s->hangover = v->hangover;
    }
}

WT_RT static void end_window(wt_vad *v, bool *speech)
{
    for (int c = 0; c < v->channels; c++) {
        voice *s = &v->voices[c];
        const bool finite = s->sum <= DBL_MAX;
        s->power = finite ? s->sum / v->window : 0;
        if (finite)
            track_floor(v, s);
        else
            s->in_before = s->high = 0;
        decide(v, s);
        s->sum = 0;
        if (speech) speech[c] = s->active;
    }
    v->started = true;
    v->n_windows = (v->n_windows + 1) % PART_WINDOWS;
}

WT_RT static void listen(voice *s, double pole, const float *in, int n)
{
    for (int k = 0; k < n; k++) {
        const double x = in[k];
        s->high = pole * (s->high + x - s->in_before);
        s->in_before = x;
        s->sum += s->high * s->high;
    }
}

WT_RT int wt_vad_process(wt_vad *v, const float *const *in, int n_frames, bool *speech)
{
    int n_ended = 0;
    for (int done = 0; done < n_frames;) {
        const int room = v->window - v->at, n = n_frames - done < room ? n_frames - done : room;
        for (int c = 0; c < v->channels; c++) listen(&v->voices[c], v->high_pole, in[c] + done, n);
        v->at += n;
        done += n;
        if (v->at < v->window) continue;
        end_window(v, speech ? speech + (long)n_ended * v->channels : NULL);
        n_ended++;
        v->at = 0;
    }
    return n_ended;
}

WT_RT bool wt_vad_active(const wt_vad *v, int c)
{
    return v->voices[c].active;
}

WT_RT static double decibels(double power)
{
    return 10 * log10(fmax(power, 1e-20));
}

WT_RT double wt_vad_level_db(const wt_vad *v, int c)
{
    return decibels(v->voices[c].power);
}

WT_RT double wt_vad_floor_db(const wt_vad *v, int c)
{
    return decibels(v->voices[c].floor);
}
