// Signals made of signals: as they are, stretched in time, shifted in pitch; on the calling thread, and on a GPU.

#include "analyze_sound.h"

#include <string.h>
#include <warptone/stretch.h>

static wt_stretch_config stretch_config(const analyze_signal *s, int64_t n, int n_signals)
{
    const analyze_options *o = s->options;
    return (wt_stretch_config){
        .mode = o->vocoder, .rate = o->speed, .n_fft = o->n_fft, .hop = o->hop, .n_samples = n, .n_signals = n_signals};
}

static wt_pitch_shift_config shift_config(const analyze_signal *s, int64_t n, int n_signals)
{
    const analyze_options *o = s->options;
    return (wt_pitch_shift_config){.rate_hz = s->rate_hz,
                                   .n_steps = o->steps,
                                   .bins_per_octave = o->bins_per_octave,
                                   .scale = o->ops.shift.scale,
                                   .formant_order = o->ops.shift.formant_order,
                                   .mode = o->vocoder,
                                   .n_fft = o->n_fft,
                                   .hop = o->hop,
                                   .n_samples = n,
                                   .n_signals = n_signals,
                                   .keep_formants = o->keep_formants};
}

// ---- on the calling thread

wt_status analyze_resample(const analyze_signal *s, analyze_result *r)
{
    void *data;
    wt_status status = analyze_add(r, &analyze_like.resample, 1, s->n, &data);
    if (!status) memcpy(data, s->pcm, sizeof(float) * (size_t)s->n);
    return status;
}

wt_status analyze_time_stretch_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    const wt_stretch_config config = stretch_config(s, n, 1);
    wt_stretch *plan;
    void *data;
    wt_status status = wt_stretch_create(NULL, &config, &plan);
    if (status) return status;
    status = analyze_add(r, &analyze_like.time_stretch, 1, wt_stretch_n_out(plan), &data);
    if (!status) wt_stretch_run(plan, pcm, data);
    wt_stretch_destroy(plan);
    return status;
}

wt_status analyze_time_stretch(const analyze_signal *s, analyze_result *r)
{
    return analyze_time_stretch_of(s, s->pcm, s->n, r);
}

wt_status analyze_pitch_shift_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    wt_pitch_shift_config config = shift_config(s, n, 1);
    wt_pitch_shift *plan = NULL;
    size_t mapped = 0;
    void *data, *work = NULL;
    wt_status status =
        config.keep_formants ? analyze_take(s->maps, sizeof(float) * (size_t)n, "pitch_shift", &work, &mapped) : WT_OK;
    config.work = work;
    if (!status) status = wt_pitch_shift_create(NULL, &config, &plan);
    if (!status) status = analyze_add(r, &analyze_like.pitch_shift, 1, n, &data);
    if (!status) wt_pitch_shift_run(plan, pcm, data);
    wt_pitch_shift_destroy(plan);
    analyze_let_go(work, mapped);
    return status;
}

wt_status analyze_pitch_shift(const analyze_signal *s, analyze_result *r)
{
    return analyze_pitch_shift_of(s, s->pcm, s->n, r);
}

// ---- on a GPU

wt_status analyze_gpu_resample(const analyze_batch *b, analyze_result *parts)
{
    const void *data;
    wt_status status =
        analyze_fetch(b, b->signal.place->pcm, sizeof(float) * (size_t)b->n_used * (size_t)b->signal.n, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.resample, data, 1, b->signal.n, false);
}

static wt_status make_stretch(const analyze_batch *b, int variant, void **plan)
{
    const wt_stretch_config config = stretch_config(&b->signal, b->signal.n, b->n_signals);
    (void)variant;
    return wt_stretch_create(b->signal.place->device, &config, (wt_stretch **)plan);
}

static void destroy_stretch(void *plan) { wt_stretch_destroy(plan); }

wt_status analyze_gpu_time_stretch(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_stretch, destroy_stretch}, 0, &plan);
    const int64_t n_out = status ? 0 : wt_stretch_n_out(plan);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)n_out;
    if (!status) status = analyze_room(b, 0, bytes, &out);
    if (!status) status = wt_stretch_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.time_stretch, data, 1, n_out, false);
}

static wt_status make_shift(const analyze_batch *b, int variant, void **plan)
{
    const wt_pitch_shift_config config = shift_config(&b->signal, b->signal.n, b->n_signals);
    (void)variant;
    return wt_pitch_shift_create(b->signal.place->device, &config, (wt_pitch_shift **)plan);
}

static void destroy_shift(void *plan) { wt_pitch_shift_destroy(plan); }

wt_status analyze_gpu_pitch_shift(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_shift, destroy_shift}, 0, &plan);
    if (!status) status = analyze_room(b, 0, bytes, &out);
    if (!status) status = wt_pitch_shift_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.pitch_shift, data, 1, b->signal.n, false);
}
