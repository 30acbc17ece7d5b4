// pYIN on the CPU: one signal a thread. Frames go from the difference function through their candidates straight into
// the path. Values of all frames of a segment are kept, and of earlier segments only the last: the way back makes those
// segments again, so memory stays bounded for signals of any length.

#include "op.h"
#include "pyin_cuda.h"
#include "pyin_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES = 64 << 20 };

typedef struct worker {
    wt__yin_scratch yin;
    wt__pyin_candidates seen;
    wt__pyin_viterbi viterbi;
    double *rows;   // [segment + 1][row doubles]; row 0 is of the frame before the segment
    double *checks; // [n_segments][row doubles] row 0 of each segment
} worker;

struct wt_pyin {
    wt_yin_args args;
    wt__pyin_tables tables;
    wt_device *device;
    wt__pyin_cuda *cuda;
    bool keep_unvoiced, calibrated;
    int64_t segment, n_segments; // frames
    int n_slots;
    worker *workers; // [n_slots]
};

// ---- life

static wt_status create_worker(const wt_pyin *p, worker *w)
{
    const size_t row = wt__pyin_row_doubles(&p->tables.model);
    wt_status status = wt__yin_scratch_create("pyin", &p->args, &w->yin);
    if (!status) status = wt__pyin_candidates_create(&p->tables.model, &w->seen);
    if (!status) status = wt__pyin_viterbi_create(&p->tables.model, &w->viterbi);
    if (status) return status;
    w->rows = malloc((size_t)(p->segment + 1) * row * sizeof(double));
    w->checks = malloc((size_t)p->n_segments * row * sizeof(double));
    if (w->rows && w->checks) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "pyin: values of %lld frames", (long long)p->segment);
}

wt_status wt_pyin_create(wt_device *device, const wt_pyin_config *config, wt_pyin **plan)
{
    *plan = NULL;
    wt_pyin *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pyin: plan");
    wt_pyin_config c = *config;
    wt_status status = wt__yin_layout("pyin", &c.frames, &p->args);
    if (!status) status = wt__pyin_tables_create(&c, &p->args, &p->tables);
    if (status) goto fail;
    const int64_t rows = SEGMENT_BYTES / (int64_t)(wt__pyin_row_doubles(&p->tables.model) * sizeof(double));
    p->segment = p->args.n_frames < rows ? p->args.n_frames : rows;
    p->n_segments = (p->args.n_frames + p->segment - 1) / p->segment;
    p->keep_unvoiced = config->keep_unvoiced;
    p->calibrated = config->calibrated;
    p->device = device;
    p->n_slots = wt__op_slots(device, p->args.n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    status = p->workers ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "pyin: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = create_worker(p, &p->workers[slot]);
    if (!status && wt__op_on_gpu(device))
        status = wt__pyin_cuda_create(device, &p->args, &p->tables, p->keep_unvoiced, p->calibrated, &p->cuda);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_pyin_destroy(p);
    return status;
}

void wt_pyin_destroy(wt_pyin *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->workers && slot < plan->n_slots; slot++) {
        worker *w = &plan->workers[slot];
        wt__yin_scratch_destroy(&w->yin);
        wt__pyin_candidates_destroy(&w->seen);
        wt__pyin_viterbi_destroy(&w->viterbi);
        free(w->rows);
        free(w->checks);
    }
    free(plan->workers);
    wt__pyin_cuda_destroy(plan->cuda);
    wt__pyin_tables_destroy(&plan->tables);
    free(plan);
}

int64_t wt_pyin_n_frames(const wt_pyin *plan)
{
    return plan->args.n_frames;
}

int wt_pyin_n_bins(const wt_pyin *plan)
{
    return plan->tables.model.n_bins;
}

// ---- one signal

typedef struct track {
    const wt_pyin *plan;
    worker *worker;
    const float *pcm;
    float *f0, *voiced, *prob; // [n_frames]
    int64_t begin;             // of the segment
} track;

static void take_frame(void *user, int64_t t, const double *function)
{
    const track *s = user;
    worker *w = s->worker;
    const size_t row = wt__pyin_row_doubles(&s->plan->tables.model);
    double *before = w->rows + (size_t)(t - s->begin) * row;
    wt__pyin_observe(&s->plan->tables.model, &s->plan->args, function, &w->seen);
    wt__pyin_step(&w->viterbi, &w->seen, t ? before : NULL, before + row);
    s->prob[t] = (float)w->seen.frame.voiced_prob;
}

static int64_t end_of(const track *s)
{
    const int64_t end = s->begin + s->plan->segment;
    return end < s->plan->args.n_frames ? end : s->plan->args.n_frames;
}

static void make_segment(track *s)
{
    for (int64_t t = s->begin; t < end_of(s); t += WT__YIN_CHUNK) {
        const int64_t rest = end_of(s) - t;
        wt__yin_functions(&s->plan->args, &s->worker->yin, s->pcm, t,
                          rest < WT__YIN_CHUNK ? (int)rest : WT__YIN_CHUNK, take_frame, s);
    }
}

static void write_frame(const track *s, int64_t t, int state)
{
    const wt_pyin_model *m = &s->plan->tables.model;
    const bool voiced = state < m->n_bins;
    s->voiced[t] = voiced;
    s->f0[t] = voiced || s->plan->keep_unvoiced
                   ? (float)(m->fmin_hz * exp2((double)(state % m->n_bins) / m->bins_per_octave))
                   : NAN;
}

// From the last frame of the segment, whose state is known, to that of the frame before it.
static int walk_back(const track *s, int state)
{
    const wt_pyin_model *m = &s->plan->tables.model;
    for (int64_t t = end_of(s) - 1; t >= s->begin; t--) {
        write_frame(s, t, state);
        if (t) state = wt__pyin_from(m, s->worker->rows + (size_t)(t - s->begin) * wt__pyin_row_doubles(m), state);
    }
    return state;
}

static void run_signal(track *s)
{
    const wt_pyin *p = s->plan;
    const size_t row = wt__pyin_row_doubles(&p->tables.model), bytes = row * sizeof(double);
    double *rows = s->worker->rows, *checks = s->worker->checks;
    for (int64_t k = 0; k < p->n_segments; k++) {
        if (k) {
            memcpy(rows, rows + (size_t)p->segment * row, bytes);
            memcpy(checks + (size_t)k * row, rows, bytes);
        }
        s->begin = k * p->segment;
        make_segment(s);
    }
    int state = wt__pyin_last(&p->tables.model, rows + (size_t)(p->args.n_frames - s->begin) * row);
    state = walk_back(s, state);
    for (int64_t k = p->n_segments - 2; k >= 0; k--) {
        if (k) memcpy(rows, checks + (size_t)k * row, bytes);
        s->begin = k * p->segment;
        make_segment(s);
        state = walk_back(s, state);
    }
}

// ---- running

typedef struct call {
    const wt_pyin *plan;
    const float *pcm;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_yin_args *a = &c->plan->args;
    const int64_t plane = a->n_frames * a->n_signals;
    for (int signal = slot; signal < a->n_signals; signal += c->plan->n_slots) {
        float *f0 = c->out + signal * a->n_frames;
        track s = {c->plan, &c->plan->workers[slot], c->pcm + signal * a->n_samples, f0, f0 + plane, f0 + 2 * plane, 0};
        run_signal(&s);
        if (c->plan->calibrated) wt__pyin_calibrate(a, s.pcm, s.f0, s.voiced, c->plan->keep_unvoiced);
    }
}

WT_RT void wt_pyin_run(wt_pyin *plan, const float *pcm, float *out)
{
    const call c = {plan, pcm, out};
    for (int slot = 0; slot < plan->n_slots; slot++) run_slot(&c, slot);
}

wt_status wt_pyin_enqueue(wt_pyin *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset, wt_buffer *out,
                          size_t out_offset)
{
    const wt_yin_args *a = &plan->args;
    wt_status status = wt__op_stream("pyin", plan->device, stream);
    if (!status)
        status = wt__op_range("pyin", "pcm", pcm, pcm_offset, (size_t)a->n_signals * (size_t)a->n_samples);
    if (!status)
        status = wt__op_range("pyin", "out", out, out_offset, 3 * (size_t)a->n_signals * (size_t)a->n_frames);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->cuda) return wt__pyin_cuda_enqueue(plan->cuda, stream, c.pcm, c.out);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
