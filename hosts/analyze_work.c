// One batch of files on its way: read into page-locked memory as the files hold it, 16 bits if they do; converted,
// folded and resampled on the GPU, where the features are made; and written.
//
// A file that cannot be read, or that ends before its header says, leaves its place silent and is done by itself; so
// are all when a batch fails.

#include "analyze_batch.h"
#include "interrupt.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/pcm.h>
#include <warptone/resample.h>

static size_t file_bytes(const analyze_work *w)
{
    return (w->files->integers ? sizeof(int16_t) : sizeof(float)) * (size_t)w->files->channels * (size_t)w->files->n_in;
}

/// One file into its place, silence behind it. False: it is done by itself.
static bool read_file(analyze_work *w, int k, char *to)
{
    const analyze_facts *f = &w->files[k];
    process_item *item = &w->run->items[f->item];
    wt_audio_reader *reader;
    int64_t n_read = 0, more = 0;
    char probe[WT_AUDIO_MAX_CHANNELS * sizeof(float)];
    memset(to, 0, file_bytes(w));
    if (wt_audio_reader_open(item->input, NULL, &reader)) return false;
    const wt_audio_info before = wt_audio_reader_get_info(reader);
    bool good = before.rate_hz == f->rate_hz && before.channels == f->channels &&
                (before.sample == WT_SAMPLE_S16) == f->integers &&
                !wt_audio_reader_read_packed(reader, to, f->n, &n_read) && n_read == f->n &&
                !wt_audio_reader_read_packed(reader, probe, 1, &more) && !more;
    const wt_audio_info after = wt_audio_reader_get_info(reader);
    process_note_input(item, &after);
    wt_audio_reader_close(reader);
    if (!good) memset(to, 0, file_bytes(w));
    return good;
}

// ---- to the signals that features see

static wt_status make_resampler(const analyze_batch *b, int in_hz, void **plan)
{
    const wt_resample_plan_config config = {
        .in_hz = in_hz, .out_hz = b->signal.rate_hz, .n_lines = b->n_signals, .n_in = (int)b->packed.n,
        .quality = b->signal.options->effect.quality};
    return wt_resample_plan_create(b->signal.place->device, &config, (wt_resample_plan **)plan);
}

static void destroy_resampler(void *plan) { wt_resample_plan_destroy(plan); }

static int64_t resampled_frames(const analyze_work *w, int64_t n)
{
    const wt_resample_config config = {.in_hz = w->files->rate_hz, .out_hz = w->batch.signal.rate_hz, .channels = 1,
                                       .quality = w->options->effect.quality};
    return config.in_hz == config.out_hz ? n : wt_resample_out_frames(&config, n);
}

/// Resample [n_signals][n_in] at `in`; what the filter leaves behind the ends of signals is not theirs.
static wt_status resample(const analyze_work *w, const wt_buffer *in)
{
    const analyze_batch *b = &w->batch;
    const analyze_place *p = w->place;
    const int64_t n_made = resampled_frames(w, w->files->n_in), n = b->signal.n;
    void *plan;
    wt_buffer *made = p->pcm;
    wt_status status =
        analyze_kept_plan(b, &(analyze_maker){make_resampler, destroy_resampler}, w->files->rate_hz, &plan);
    if (!status && n_made != n)
        status = analyze_room(b, 1, sizeof(float) * (size_t)b->n_signals * (size_t)n_made, &made);
    if (!status) status = wt_resample_plan_enqueue(plan, p->stream, in, 0, made, 0);
    for (int k = 0; n_made != n && k < b->n_signals && !status; k++)
        status = wt_stream_copy(p->stream, p->pcm, sizeof(float) * (size_t)(k * n), made,
                                sizeof(float) * (size_t)(k * n_made), sizeof(float) * (size_t)n);
    for (int k = 0; b->lengths && k < b->n_used && !status; k++)
        if (b->lengths[k] < n)
            status = wt_stream_fill(p->stream, p->pcm, sizeof(float) * (size_t)(k * n + b->lengths[k]), 0,
                                    sizeof(float) * (size_t)(n - b->lengths[k]));
    return status;
}

static wt_status convert(analyze_work *w)
{
    analyze_batch *b = &w->batch;
    analyze_place *p = w->place;
    const size_t line = sizeof(float) * (size_t)b->n_signals;
    const bool resampled = b->signal.rate_hz != w->files->rate_hz;
    void *pcm;
    wt_status status = analyze_kept_plan(b, &analyze_pcm_maker, b->channels < w->files->channels, &pcm);
    if (!status) status = analyze_grow(p, WT_MEMORY_DEVICE, line * (size_t)b->signal.n, &p->pcm);
    wt_buffer *planar = p->pcm;
    if (!status && resampled) status = analyze_room(b, 0, line * (size_t)w->files->n_in, &planar);
    if (!status) status = wt_pcm_plan_enqueue(pcm, p->stream, p->packed, 0, planar, 0);
    return status || !resampled ? status : resample(w, planar);
}

/// The batch as the features will see it.
static void shape(analyze_work *w)
{
    const analyze_facts *f = w->files;
    const int channels = w->options->keep_channels ? f->channels : 1;
    analyze_batch *b = &w->batch;
    *b = (analyze_batch){.signal = {.options = w->options,
                                    .place = w->place,
                                    .rate_hz = w->options->rate_hz ? w->options->rate_hz : f->rate_hz},
                         .n_used = w->n_files * channels,
                         .n_signals = w->n_room * channels,
                         .channels = channels,
                         .paths = w->paths,
                         .packed = {f->integers, f->rate_hz, f->channels, f->n_in}};
    b->signal.n = resampled_frames(w, f->n_key);
    for (int k = 0; k < w->n_files; k++) {
        for (int c = 0; c < channels; c++) w->lengths[k * channels + c] = resampled_frames(w, w->files[k].n);
        w->paths[k] = w->run->items[w->files[k].item].input;
        if (w->files[k].n < f->n_key) b->lengths = w->lengths;
    }
}

// ---- step by step

static wt_status take_memory(analyze_work *w)
{
    analyze_place *p = w->place;
    const size_t n = (size_t)w->n_files, bytes = file_bytes(w) * (size_t)w->n_room;
    w->left = calloc(n, sizeof *w->left);
    w->lengths = calloc(n * WT_AUDIO_MAX_CHANNELS, sizeof *w->lengths);
    w->paths = calloc(n, sizeof *w->paths);
    w->results = calloc(n, sizeof *w->results);
    if (!w->left || !w->lengths || !w->paths || !w->results)
        return wt_fail(WT_ERR_NO_MEMORY, "analyze: a batch of %d files", w->n_files);
    wt_status status = analyze_grow(p, WT_MEMORY_PINNED, bytes, &p->read);
    return status ? status : analyze_grow(p, WT_MEMORY_DEVICE, bytes, &p->packed);
}

bool analyze_work_begin(analyze_work *w)
{
    w->begin_ns = wt_clock_now_ns(NULL);
    w->status = take_memory(w);
    if (w->status) return false;
    shape(w);
    const size_t used = file_bytes(w) * (size_t)w->n_files;
    memset((char *)wt_buffer_host(w->place->read) + used, 0, file_bytes(w) * (size_t)w->n_room - used);
    return true;
}

void analyze_work_read(analyze_work *w, int k)
{
    w->left[k] = !read_file(w, k, (char *)wt_buffer_host(w->place->read) + (size_t)k * file_bytes(w));
}

static wt_status compute(analyze_work *w)
{
    const analyze_place *p = w->place;
    const size_t bytes = file_bytes(w) * (size_t)w->n_room;
    wt_status status = wt_stream_upload(p->stream, p->packed, 0, wt_buffer_host(p->read), bytes);
    if (!status) status = convert(w);
    if (!status) status = analyze_batch_compute(&w->batch, w->results);
    if (!status && wt_interrupted()) status = wt_fail(WT_ERR_CANCELLED, "interrupted");
    return status;
}

/// Wait for what was queued, whatever came of it: its memory is about to be used again.
static void settle(const analyze_work *w)
{
    if (wt_stream_synchronize(w->place->stream)) return; // an error that came first is told
}

static process_item *item_of(const analyze_work *w, int k) { return &w->run->items[w->files[k].item]; }

void analyze_work_compute(analyze_work *w)
{
    w->status = compute(w);
    if (w->status) settle(w);
    for (int k = 0; k < w->n_files && w->status == WT_ERR_CANCELLED; k++) process_note_error(item_of(w, k), w->status);
}

void analyze_work_alone(analyze_work *w)
{
    const bool all = w->status && w->status != WT_ERR_CANCELLED; // by one file, or all: each finds out by itself
    for (int k = 0; k < w->n_files; k++)
        if (all || (!w->status && w->left[k])) analyze_do_item(w->options, w->place, item_of(w, k));
}

void analyze_work_write(analyze_work *w, int k)
{
    process_item *item = item_of(w, k);
    if (!w->status && !w->left[k]) {
        const analyze_report report = {.options = w->options,
                                       .result = &w->results[k],
                                       .input = item->input,
                                       .n = w->lengths[k * w->batch.channels],
                                       .rate_hz = w->batch.signal.rate_hz,
                                       .channels = w->batch.channels};
        item->rate_hz = report.rate_hz, item->channels = report.channels;
        item->audio_s = (double)report.n / report.rate_hz;
        analyze_note_level(w->options, &w->results[k].level, item);
        const wt_status status = analyze_write_result(&report, item->output);
        if (status) process_note_error(item, status);
        item->wall_s = (double)(wt_clock_now_ns(NULL) - w->begin_ns) * 1e-9 / w->n_files;
    }
    if (w->results) analyze_result_free(&w->results[k]);
    analyze_item_done(w->run, item);
}

void analyze_work_end(analyze_work *w) { free(w->left), free(w->lengths), free(w->paths), free(w->results); }
