// Input goes to a line per channel that holds the taps' reach and some room; when it is full, what no output needs any
// more is dropped from its front. Output frame n reads at n * numerator / denominator input frames, kept as a whole
// frame and a phase in integers, so that time never drifts and never depends on blocks. Each sum runs over its taps in
// one fixed order of 16 lanes.
#include "resample_table.h"

#include <warptone/simd.h>

#include <stdlib.h>
#include <string.h>

enum { MIN_ROOM = 1024 };

struct wt_resample {
    wt__resample_table table;
    bool owns_table;
    int channels, capacity;
    int64_t step, target_step, step_change; // per output frame; the change leads from step to target
    int64_t step_frames, step_phase;        // step as whole frames and the rest
    int64_t frame, phase;                   // the next output's time: input frame and phase / denominator
    int64_t n_out;                          // outputs made, as far as the first ones have rows of their own
    int64_t origin, n_in;                   // input frame at the lines' front; input frames taken so far
    int fill;                               // frames in each line
    bool draining;
    void *scratch; // [n_taps] an interpolated row
    void *lines;   // [channels][capacity] double or float, as the table's taps
};

wt_status wt__resample_create_sharing(const wt__resample_table *table, int channels, wt_resample **resampler)
{
    *resampler = NULL;
    wt_resample *r = calloc(1, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "resample: handle");
    r->table = *table;
    r->channels = channels;
    r->capacity = table->n_taps + (table->n_taps > MIN_ROOM ? table->n_taps : MIN_ROOM);
    const size_t size = table->wide ? sizeof(double) : sizeof(float);
    r->scratch = aligned_alloc(64, size * (size_t)table->n_taps);
    r->lines = aligned_alloc(64, size * (size_t)r->capacity * (size_t)channels);
    if (!r->scratch || !r->lines) {
        wt_resample_destroy(r);
        return wt_fail(WT_ERR_NO_MEMORY, "resample: %d channels of %d frames", channels, table->n_taps);
    }
    wt_resample_reset(r);
    *resampler = r;
    return WT_OK;
}

wt_status wt_resample_create(const wt_resample_config *config, wt_resample **resampler)
{
    wt__resample_table table;
    *resampler = NULL;
    wt_status status = wt__resample_table_create(config, &table);
    if (!status) status = wt__resample_create_sharing(&table, config->channels ? config->channels : 2, resampler);
    if (status)
        wt__resample_table_destroy(&table);
    else
        (*resampler)->owns_table = true;
    return status;
}

void wt_resample_destroy(wt_resample *r)
{
    if (!r) return;
    if (r->owns_table) wt__resample_table_destroy(&r->table);
    free(r->scratch);
    free(r->lines);
    free(r);
}

int wt_resample_latency_frames(const wt_resample *r)
{
    return r->table.after;
}

int64_t wt_resample_out_frames(const wt_resample_config *config, int64_t n_in)
{
    // in two parts, so that the product stays small
    const int64_t whole = n_in / config->in_hz, rest = n_in % config->in_hz;
    return whole * config->out_hz + (rest * config->out_hz + config->in_hz - 1) / config->in_hz;
}

WT_INLINE void set_step(wt_resample *r, int64_t step)
{
    r->step = step;
    r->step_frames = step / r->table.denominator;
    r->step_phase = step % r->table.denominator;
}

WT_RT void wt_resample_reset(wt_resample *r)
{
    const size_t size = r->table.wide ? sizeof(double) : sizeof(float);
    memset(r->lines, 0, size * (size_t)r->capacity * (size_t)r->channels);
    r->fill = r->table.before;
    r->origin = -r->table.before;
    r->frame = r->phase = r->n_in = r->n_out = 0;
    r->target_step = r->table.numerator;
    set_step(r, r->table.numerator);
    r->step_change = 0;
    r->draining = false;
}

// ---- lines

WT_CLONES static void append(wt_resample *r, const float *const *in, int64_t from, int n)
{
    for (int c = 0; c < r->channels; c++) {
        const size_t at = (size_t)c * (size_t)r->capacity + (size_t)r->fill;
        if (r->table.wide) {
            double *line = (double *)r->lines + at;
            for (int k = 0; k < n; k++) line[k] = in ? in[c][from + k] : 0;
        } else if (in) {
            memcpy((float *)r->lines + at, in[c] + from, sizeof(float) * (size_t)n);
        } else {
            memset((float *)r->lines + at, 0, sizeof(float) * (size_t)n);
        }
    }
    r->fill += n;
}

// Drop from the front what lies before the next output's reach.
WT_RT static void drop_past(wt_resample *r)
{
    const size_t size = r->table.wide ? sizeof(double) : sizeof(float);
    int64_t past = r->frame - r->table.before - r->origin;
    if (past > r->fill) past = r->fill;
    if (past <= 0) return;
    r->fill -= (int)past;
    r->origin += past;
    for (int c = 0; c < r->channels; c++) {
        char *line = (char *)r->lines + size * (size_t)c * (size_t)r->capacity;
        memmove(line, line + size * (size_t)past, size * (size_t)r->fill);
    }
}

// ---- sums

enum { HALVES = 256, REACH = 100 }; // two to one: outputs at once; pairs of even neighbours

#include "resample_level.h"

WT_INLINE void advance(wt_resample *r)
{
    r->frame += r->step_frames;
    r->phase += r->step_phase;
    if (r->phase >= r->table.denominator) {
        r->phase -= r->table.denominator;
        r->frame++;
    }
    if (r->step == r->target_step) return;
    const int64_t next = r->step + r->step_change;
    const bool beyond = r->step_change > 0 ? next > r->target_step : next < r->target_step;
    set_step(r, beyond ? r->target_step : next);
}

// ---- two to one

// Outputs of the 2:1 filter while their reach lies within the lines; returns how many.
WT_RT static int produce_halves(wt_resample *r, float *const *out, int at, int max_out)
{
    const wt__resample_table *t = &r->table;
    const int64_t last = r->origin + r->fill - t->after - 1, end = r->draining ? r->n_in - 1 : last;
    const int64_t ready = ((end < last ? end : last) - r->frame + 2) / 2; // 0 or less: none
    int done = 0;
    while (done < ready && at + done < max_out) {
        int n = max_out - at - done;
        if (n > ready - done) n = (int)(ready - done);
        if (n > HALVES) n = HALVES;
        const size_t from = (size_t)(r->frame - t->after - r->origin);
        for (int c = 0; c < r->channels; c++)
            WT_LEVEL_CALL(halve, t->taps_f32 + t->before,
                          (const float *)r->lines + (size_t)c * (size_t)r->capacity + from, out[c] + at + done, n);
        r->frame += 2 * n;
        done += n;
    }
    return done;
}

// ---- any ratio

WT_INLINE const void *row_of(wt_resample *r)
{
    const wt__resample_table *t = &r->table;
    if (r->n_out < t->n_start) return t->start + r->n_out++ * t->n_taps;
    return wt__resample_row(t, r->phase, r->scratch);
}

// Outputs while their reach lies within the lines; returns how many.
WT_RT static int produce_any(wt_resample *r, float *const *out, int at, int max_out)
{
    const wt__resample_table *t = &r->table;
    int n = at;
    for (; n < max_out && r->frame + t->after < r->origin + r->fill; n++, advance(r)) {
        if (r->draining && r->frame >= r->n_in) break;
        const void *row = row_of(r);
        const bool silent = r->draining && wt__resample_rounded_away(t, r->frame - r->n_in, r->phase);
        const size_t from = (size_t)(r->frame - t->before - r->origin);
        for (int c = 0; c < r->channels; c++) {
            const size_t line = (size_t)c * (size_t)r->capacity + from;
            if (silent)
                out[c][n] = 0;
            else if (t->wide)
                out[c][n] = WT_LEVEL_CALL(sum_f64, row, (const double *)r->lines + line, t->n_taps);
            else
                out[c][n] = WT_LEVEL_CALL(sum_f32, row, (const float *)r->lines + line, t->n_taps);
        }
    }
    return n - at;
}

WT_RT static int produce(wt_resample *r, float *const *out, int at, int max_out)
{
    return r->table.halves ? produce_halves(r, out, at, max_out) : produce_any(r, out, at, max_out);
}

WT_RT void wt_resample_process(wt_resample *r, const float *const *in, int n_in, int *n_used, float *const *out,
                               int max_out, int *n_out)
{
    *n_used = *n_out = 0;
    for (;;) {
        *n_out += produce(r, out, *n_out, max_out);
        if (*n_used == n_in || *n_out == max_out) return;
        if (r->fill == r->capacity) drop_past(r);
        const int room = r->capacity - r->fill, left = n_in - *n_used, n = room < left ? room : left;
        append(r, in, *n_used, n);
        *n_used += n;
        r->n_in += n;
    }
}

WT_RT void wt_resample_drain(wt_resample *r, float *const *out, int max_out, int *n_out)
{
    *n_out = 0;
    r->draining = true;
    while (*n_out < max_out) {
        *n_out += produce(r, out, *n_out, max_out);
        if (*n_out == max_out || r->frame >= r->n_in) return;
        if (r->fill == r->capacity) drop_past(r);
        const int64_t missing = r->frame + r->table.after + 1 - (r->origin + r->fill);
        const int room = r->capacity - r->fill;
        append(r, NULL, 0, missing < room ? (int)missing : room);
    }
}

WT_RT wt_status wt_resample_steer(wt_resample *r, double speed, int ramp_frames)
{
    if (!r->table.variable) return WT_ERR_STATE;
    if (!(speed >= 0.9 && speed <= 1.1) || ramp_frames < 0) return WT_ERR_BAD_ARG;
    r->target_step = wt__resample_aim(&r->table, speed, ramp_frames, r->step, &r->step_change);
    if (!ramp_frames) set_step(r, r->target_step);
    return WT_OK;
}
