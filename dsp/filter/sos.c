// Four channels run side by side, a piece of 64 frames through one section after the other, so that a section's states
// stay in registers. Pieces end at multiples of 64 frames since reset, whatever the caller's blocks are; there, states
// that would soon be denormal (slow) or that a NaN has poisoned go back to 0.
#include "sos_internal.h"
#include <warptone/simd.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64, GROUP = 4 };

struct wt_sos {
    int channels, n_groups, n_sections;
    unsigned at; // frames into the present piece
    double sos[WT_SOS_MAX_SECTIONS][6];
    double zi[WT_SOS_MAX_SECTIONS][2];
    wt_f64x4 states[]; // [n_groups][n_sections][2]
};

static wt_status check_sections(const double *sos, int n_sections)
{
    if (n_sections < 1 || n_sections > WT_SOS_MAX_SECTIONS)
        return wt_fail(WT_ERR_BAD_ARG, "sos: %d sections, want 1..%d", n_sections, WT_SOS_MAX_SECTIONS);
    for (int k = 0; k < 6 * n_sections; k++)
        if (!isfinite(sos[k]) || (k % 6 == 3 && sos[k] == 0))
            return wt_fail(WT_ERR_BAD_ARG, "sos: coefficient %d of section %d is %g, want a finite number%s", k % 6,
                           k / 6, sos[k], k % 6 == 3 ? " but 0" : "");
    return WT_OK;
}

wt_status wt__sos_resolve(const wt_sos_config *config, int *channels)
{
    *channels = config->channels ? config->channels : 2;
    wt_status status = check_sections(config->sos, config->n_sections);
    if (!status && (*channels < 1 || *channels > WT__SOS_MAX_CHANNELS))
        status = wt_fail(WT_ERR_BAD_ARG, "sos: %d channels, want 1..%d", *channels, WT__SOS_MAX_CHANNELS);
    return status;
}

wt_status wt_sos_create(const wt_sos_config *config, wt_sos **filter)
{
    *filter = NULL;
    int channels;
    wt_status status = wt__sos_resolve(config, &channels);
    if (status) return status;
    const int n_groups = (channels + GROUP - 1) / GROUP;
    const size_t n_states = (size_t)n_groups * (size_t)config->n_sections * 2;
    wt_sos *f = aligned_alloc(64, (sizeof *f + n_states * sizeof *f->states + 63) / 64 * 64);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "sos: filter of %d channels", channels);
    f->channels = channels;
    f->n_groups = n_groups;
    f->n_sections = config->n_sections;
    for (int k = 0; k < config->n_sections; k++)
        for (int i = 0; i < 6; i++) f->sos[k][i] = config->sos[6 * k + i] / config->sos[6 * k + 3];
    memset(f->zi, 0, sizeof f->zi);
    if (wt_sos_zi(f->sos[0], f->n_sections, f->zi[0])) memset(f->zi, 0, sizeof f->zi); // as reset_to promises
    wt_sos_reset(f);
    *filter = f;
    return WT_OK;
}

void wt_sos_destroy(wt_sos *filter)
{
    free(filter);
}

WT_RT void wt_sos_reset(wt_sos *f)
{
    memset(f->states, 0, sizeof *f->states * (size_t)(f->n_groups * f->n_sections * 2));
    f->at = 0;
}

WT_RT void wt_sos_reset_to(wt_sos *f, const float *level)
{
    wt_sos_reset(f);
    for (int c = 0; c < f->channels; c++)
        for (int k = 0; k < 2 * f->n_sections; k++)
            f->states[c / GROUP * f->n_sections * 2 + k][c % GROUP] = f->zi[k / 2][k % 2] * level[c];
}

WT_INLINE void run_section(const double *s, wt_f64x4 *state, wt_f64x4 *lanes, int n)
{
    wt_f64x4 s1 = state[0], s2 = state[1];
    for (int k = 0; k < n; k++) {
        const wt_f64x4 x = lanes[k], y = s[0] * x + s1;
        s1 = s[1] * x - s[4] * y + s2;
        s2 = s[2] * x - s[5] * y;
        lanes[k] = y;
    }
    state[0] = s1;
    state[1] = s2;
}

WT_RT static void clean_states(wt_f64x4 *states, int n)
{
    double *s = (double *)states;
    for (int k = 0; k < n * GROUP; k++)
        if (!(fabs(s[k]) >= 1e-30 && fabs(s[k]) <= DBL_MAX)) s[k] = 0;
}

WT_CLONES static void run_piece(wt_sos *f, const float *const *in, float *const *out, int from, int n)
{
    wt_f64x4 lanes[PIECE];
    double(*lane)[GROUP] = (double(*)[GROUP])lanes;
    for (int g = 0; g < f->n_groups; g++) {
        const int n_lanes = f->channels - g * GROUP < GROUP ? f->channels - g * GROUP : GROUP;
        wt_f64x4 *states = f->states + g * f->n_sections * 2;
        if (n_lanes < GROUP) memset(lanes, 0, sizeof lanes);
        for (int i = 0; i < n_lanes; i++)
            for (int k = 0; k < n; k++) lane[k][i] = in[g * GROUP + i][from + k];
        for (int k = 0; k < f->n_sections; k++) run_section(f->sos[k], states + 2 * k, lanes, n);
        for (int i = 0; i < n_lanes; i++)
            for (int k = 0; k < n; k++) out[g * GROUP + i][from + k] = (float)lane[k][i];
        if (f->at + (unsigned)n == PIECE) clean_states(states, 2 * f->n_sections);
    }
}

WT_RT void wt_sos_process(wt_sos *f, const float *const *in, float *const *out, int n_frames)
{
    for (int done = 0; done < n_frames;) {
        const int room = PIECE - (int)f->at, n = n_frames - done < room ? n_frames - done : room;
        run_piece(f, in, out, done, n);
        f->at = (f->at + (unsigned)n) % PIECE;
        done += n;
    }
}

// ---- forward and backward

// scipy's default: three times the taps, less the sections' zeros or poles at the origin.
static int default_padding(const double *sos, int n_sections)
{
    int trivial_zeros = 0, trivial_poles = 0;
    for (int k = 0; k < n_sections; k++) {
        trivial_zeros += sos[6 * k + 2] == 0;
        trivial_poles += sos[6 * k + 5] == 0;
    }
    return 3 * (2 * n_sections + 1 - (trivial_zeros < trivial_poles ? trivial_zeros : trivial_poles));
}

// Filter in place from the steady state of the first value; `step` -1 runs backward from the last.
static void run_offline(const double *sos, const double *zi, int n_sections, double *x, int64_t n, int step)
{
    double *const begin = step > 0 ? x : x + n - 1, first = *begin;
    for (int i = 0; i < n_sections; i++) {
        const double *s = sos + 6 * i;
        double s1 = zi[2 * i] * first, s2 = zi[2 * i + 1] * first, *at = begin;
        for (int64_t k = 0; k < n; k++, at += step) {
            const double in = *at, out = s[0] * in + s1;
            s1 = s[1] * in - s[4] * out + s2;
            s2 = s[2] * in - s[5] * out;
            *at = out;
        }
    }
}

wt_status wt__sos_filtfilt_init(const double *sos, int n_sections, int64_t n_frames, int pad_frames,
                                wt__sos_filtfilt *f)
{
    wt_status status = check_sections(sos, n_sections);
    if (status) return status;
    f->n_sections = n_sections, f->n_frames = n_frames;
    for (int k = 0; k < 6 * n_sections; k++) f->sos[k] = sos[k] / sos[k / 6 * 6 + 3];
    status = wt_sos_zi(f->sos, n_sections, f->zi);
    if (status) return status;
    f->pad = pad_frames ? (pad_frames < 0 ? 0 : pad_frames) : default_padding(sos, n_sections);
    if (n_frames < 1 || n_frames <= f->pad)
        return wt_fail(WT_ERR_LENGTH, "sos: %lld frames with a padding of %d, want more frames than padding",
                       (long long)n_frames, f->pad);
    return WT_OK;
}

void wt__sos_filtfilt_run(const wt__sos_filtfilt *f, const float *in, float *out, double *x)
{
    const int64_t n = f->n_frames, pad = f->pad;
    for (int64_t k = 0; k < n; k++) x[pad + k] = in[k];
    for (int64_t k = 1; k <= pad; k++) { // odd: the signal turned about its ends
        x[pad - k] = 2.0 * in[0] - in[k];
        x[pad + n - 1 + k] = 2.0 * in[n - 1] - in[n - 1 - k];
    }
    run_offline(f->sos, f->zi, f->n_sections, x, n + 2 * pad, 1);
    run_offline(f->sos, f->zi, f->n_sections, x, n + 2 * pad, -1);
    for (int64_t k = 0; k < n; k++) out[k] = (float)x[pad + k];
}

wt_status wt_sos_filtfilt_in(const double *sos, int n_sections, const float *in, float *out, int64_t n_frames,
                             double *scratch)
{
    wt__sos_filtfilt f;
    wt_status status = wt__sos_filtfilt_init(sos, n_sections, n_frames, 0, &f);
    if (!status) wt__sos_filtfilt_run(&f, in, out, scratch);
    return status;
}

wt_status wt_sos_filtfilt(const double *sos, int n_sections, const float *in, float *out, int n_frames, int pad_frames)
{
    wt__sos_filtfilt f;
    wt_status status = wt__sos_filtfilt_init(sos, n_sections, n_frames, pad_frames, &f);
    if (status) return status;
    const int64_t total = (int64_t)n_frames + 2 * (int64_t)f.pad;
    double *x = malloc(sizeof *x * (size_t)total);
    if (!x) return wt_fail(WT_ERR_NO_MEMORY, "sos: %lld frames", (long long)total);
    wt__sos_filtfilt_run(&f, in, out, x);
    free(x);
    return WT_OK;
}

// ---- pre-emphasis

WT_RT void wt_preemphasis(const float *in, float *out, int n_frames, double coefficient, double *state)
{
    if (n_frames < 1) return;
    // librosa's default start: the filter's state is 2 x[0] - x[1], the line through both one frame earlier
    double past = state ? -coefficient * *state : n_frames > 1 ? 2.0 * in[0] - in[1] : in[0];
    for (int n = 0; n < n_frames; n++) {
        const double x = in[n];
        out[n] = (float)(x + past);
        past = -coefficient * x;
        if (state) *state = x;
    }
}

WT_RT void wt_deemphasis(const float *in, float *out, int n_frames, double coefficient, double *state)
{
    if (n_frames < 1) return;
    const double second = n_frames > 1 ? in[1] : in[0];
    double y = state ? *state : 0, start = state ? 0 : ((2 - coefficient) * in[0] - second) / (3 - coefficient);
    for (int n = 0; n < n_frames; n++) {
        y = in[n] + coefficient * y;
        out[n] = (float)(y - start);
        start = fabs(start) < 1e-60 ? 0 : start * coefficient;
    }
    if (state) *state = fabs(y) < 1e-60 ? 0 : y;
}
