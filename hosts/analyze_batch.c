// Many files at a launch. A survey reads all headers; files of one rate, channel count, encoding and length (or, when
// silence may follow the signals, of about one length) are then taken together, as many as fill a tile. A worker reads
// such a batch into page-locked memory as the files hold it, 16 bits if they do, and the GPU converts, folds and
// resamples; when the features are back it writes the files. While one worker waits for the device others read and
// write, so memory is that of one batch for each.
//
// A file that cannot be read, or that ends before its header says, leaves its place silent and is done by itself; so
// are all when a batch fails.

#include "analyze.h"
#include "crew.h"
#include "interrupt.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/pcm.h>
#include <warptone/resample.h>

enum { MAX_SIGNALS = 256 };

/// What its header says of a file.
typedef struct facts {
    int item;
    int rate_hz, channels;
    bool integers, alone;   // alone: not for a batch
    int64_t n, n_key, n_in; // frames; what those of a batch have in common; read, with silence behind
} facts;

struct analyze_batches {
    const analyze_options *options;
    process_run *run;
    facts *files; // [n_files], those of a batch side by side
    int n_files;
    struct span {
        int first, n_files, n_room;
    } * spans; // [n_spans], a batch each
    int n_spans;
};

// ---- the survey

/// Samples that a frame of the file is worth, as read or as features see it.
static double samples_of(const analyze_options *o, const facts *f)
{
    return f->channels * (o->rate_hz > f->rate_hz ? (double)o->rate_hz / f->rate_hz : 1);
}

static bool looks_at_files(const analyze_options *o)
{
    for (int k = 0; k < o->n_features; k++)
        if (o->features[k]->tiles == ANALYZE_OF_FILE) return true;
    return false;
}

static void look_at(analyze_batches *b, facts *f)
{
    wt_audio_reader *reader;
    const analyze_options *o = b->options;
    f->alone = true;
    if (wt_audio_reader_open(b->run->items[f->item].input, NULL, &reader)) return; // told when its turn comes
    const wt_audio_info info = wt_audio_reader_get_info(reader);
    wt_audio_reader_close(reader);
    f->rate_hz = info.rate_hz, f->channels = info.channels, f->n = info.n_frames;
    f->integers = info.sample == WT_SAMPLE_S16;
    if (f->n < 1 ||
        samples_of(o, f) * (double)f->n > (double)analyze_tile(o) * (analyze_tiles_are_cheap(o) ? 1 : ANALYZE_HELD))
        return;
    f->n_key = f->n_in = f->n;
    if (analyze_any_length(o))
        f->n_key = f->n_in = analyze_shared_length(f->n);
    else if (o->rate_hz && o->rate_hz != f->rate_hz && !looks_at_files(o))
        f->n_in = analyze_shared_length(f->n);
    f->alone = false;
}

typedef struct survey {
    analyze_batches *batches;
    analyze_times *times;
    atomic_int next;
} survey;

static void look(void *user, int worker)
{
    (void)worker;
    survey *s = user;
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    for (int k; !wt_interrupted() && (k = atomic_fetch_add(&s->next, 1)) < s->batches->n_files;)
        look_at(s->batches, &s->batches->files[k]);
    atomic_fetch_add(&s->times->ns[ANALYZE_LOOK], wt_clock_now_ns(NULL) - begin_ns);
}

/// Those that go together stand together, and within them in the order given.
static int compare(const void *a, const void *b)
{
    const facts *x = a, *y = b;
    const int64_t keys[][2] = {{x->alone, y->alone},       {x->rate_hz, y->rate_hz}, {x->channels, y->channels},
                               {x->integers, y->integers}, {x->n_key, y->n_key},     {x->item, y->item}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (keys[k][0] != keys[k][1]) return keys[k][0] < keys[k][1] ? -1 : 1;
    return 0;
}

static bool go_together(const facts *x, const facts *y)
{
    return !x->alone && !y->alone && x->rate_hz == y->rate_hz && x->channels == y->channels &&
           x->integers == y->integers && x->n_key == y->n_key;
}

/// A run of files of one kind as batches of one size: what fills a tile, but a batch for every worker.
static void cut_run(analyze_batches *b, int first, int n)
{
    const facts *f = &b->files[first];
    const int channels = b->options->keep_channels ? f->channels : 1;
    int64_t room = 1;
    if (!f->alone) {
        room = (int64_t)(analyze_tile(b->options) / (samples_of(b->options, f) * (double)f->n_in));
        if (room > MAX_SIGNALS / channels) room = MAX_SIGNALS / channels;
        if (room > (n + b->options->n_jobs - 1) / b->options->n_jobs)
            room = (n + b->options->n_jobs - 1) / b->options->n_jobs;
        if (room < 1) room = 1;
    }
    for (int at = 0; at < n; at += (int)room) {
        const int n_files = n - at < room ? n - at : (int)room;
        b->spans[b->n_spans++] = (struct span){first + at, n_files, (int)room};
    }
}

wt_status analyze_batches_make(const analyze_options *options, process_run *run, void (*tick)(void *user), void *user,
                               analyze_times *times, analyze_batches **batches)
{
    analyze_batches *b = *batches = calloc(1, sizeof *b);
    if (!b) return wt_fail(WT_ERR_NO_MEMORY, "analyze: batches");
    b->options = options, b->run = run;
    b->files = calloc((size_t)run->n_items + 1, sizeof *b->files);
    b->spans = calloc((size_t)run->n_items + 1, sizeof *b->spans);
    if (!b->files || !b->spans) return wt_fail(WT_ERR_NO_MEMORY, "analyze: %d files", run->n_items);
    for (int k = 0; k < run->n_items; k++)
        if (run->items[k].skipped)
            atomic_fetch_add(&run->n_done, 1);
        else
            b->files[b->n_files++].item = k;
    survey s = {.batches = b, .times = times};
    const bool held = options->format <= ANALYZE_JSON; // pictures and parts want the samples beside the features
    for (int k = 0; k < b->n_files; k++) b->files[k].alone = true;
    wt_status status = held ? wt__crew_run("analyze", options->n_jobs, look, &s, tick, user) : WT_OK;
    if (status) return status;
    qsort(b->files, (size_t)b->n_files, sizeof *b->files, compare);
    for (int k = 0, n; k < b->n_files; k += n) {
        for (n = 1; k + n < b->n_files && go_together(&b->files[k], &b->files[k + n]);) n++;
        cut_run(b, k, n);
    }
    return WT_OK;
}

void analyze_batches_free(analyze_batches *batches)
{
    if (!batches) return;
    free(batches->files);
    free(batches->spans);
    free(batches);
}

int analyze_batches_count(const analyze_batches *batches) { return batches->n_spans; }

// ---- one batch

typedef struct work {
    const analyze_options *options;
    analyze_place *place;
    process_item *items;
    const facts *files; // [n_files]
    int n_files, n_room;
    bool *left; // [n_files] to be done by itself
    analyze_batch batch;
    int64_t *lengths;        // [n_files channels]
    const char **paths;      // [n_files]
    analyze_result *results; // [n_files]
} work;

static size_t file_bytes(const work *w)
{
    return (w->files->integers ? sizeof(int16_t) : sizeof(float)) * (size_t)w->files->channels * (size_t)w->files->n_in;
}

/// One file into its place, silence behind it. False: it is done by itself.
static bool read_file(work *w, int k, char *to)
{
    const facts *f = &w->files[k];
    process_item *item = &w->items[f->item];
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
    item->n_repaired = wt_audio_reader_get_info(reader).n_repaired_samples;
    wt_audio_reader_close(reader);
    if (!good) memset(to, 0, file_bytes(w));
    return good;
}

static wt_status read_files(work *w)
{
    analyze_place *p = w->place;
    const size_t bytes = file_bytes(w), all = bytes * (size_t)w->n_room;
    wt_status status = analyze_grow(p, WT_MEMORY_PINNED, all, &p->read);
    if (!status) status = analyze_grow(p, WT_MEMORY_DEVICE, all, &p->packed);
    if (status) return status;
    char *to = wt_buffer_host(p->read);
    for (int k = 0; k < w->n_files; k++) w->left[k] = !read_file(w, k, to + (size_t)k * bytes);
    memset(to + (size_t)w->n_files * bytes, 0, all - (size_t)w->n_files * bytes);
    return wt_stream_upload(p->stream, p->packed, 0, to, all);
}

// ---- to the signals that features see

static wt_status make_resampler(const analyze_batch *b, int in_hz, void **plan)
{
    const wt_resample_plan_config config = {
        .in_hz = in_hz, .out_hz = b->signal.rate_hz, .n_lines = b->n_signals, .n_in = (int)b->packed.n};
    return wt_resample_plan_create(b->signal.place->device, &config, (wt_resample_plan **)plan);
}

static void destroy_resampler(void *plan) { wt_resample_plan_destroy(plan); }

static int64_t resampled_frames(const work *w, int64_t n)
{
    const wt_resample_config config = {.in_hz = w->files->rate_hz, .out_hz = w->batch.signal.rate_hz, .channels = 1};
    return config.in_hz == config.out_hz ? n : wt_resample_out_frames(&config, n);
}

/// Resample [n_signals][n_in] at `in`; what the filter leaves behind the ends of signals is not theirs.
static wt_status resample(const work *w, const wt_buffer *in)
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

static wt_status convert(work *w)
{
    analyze_batch *b = &w->batch;
    analyze_place *p = w->place;
    const size_t line = sizeof(float) * (size_t)b->n_signals;
    const bool resampled = b->signal.rate_hz != w->files->rate_hz;
    void *pcm;
    wt_status status =
        analyze_kept_plan(b, &analyze_pcm_maker, b->channels < w->files->channels, &pcm);
    if (!status) status = analyze_grow(p, WT_MEMORY_DEVICE, line * (size_t)b->signal.n, &p->pcm);
    wt_buffer *planar = p->pcm;
    if (!status && resampled) status = analyze_room(b, 0, line * (size_t)w->files->n_in, &planar);
    if (!status) status = wt_pcm_plan_enqueue(pcm, p->stream, p->packed, 0, planar, 0);
    return status || !resampled ? status : resample(w, planar);
}

/// The batch as the features will see it.
static void shape(work *w)
{
    const facts *f = w->files;
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
        w->paths[k] = w->items[w->files[k].item].input;
        if (w->files[k].n < f->n_key) b->lengths = w->lengths;
    }
}

static void finish(work *w, int k)
{
    process_item *item = &w->items[w->files[k].item];
    const analyze_report report = {.options = w->options,
                                   .result = &w->results[k],
                                   .input = item->input,
                                   .n = w->lengths[k * w->batch.channels],
                                   .rate_hz = w->batch.signal.rate_hz,
                                   .channels = w->batch.channels};
    item->rate_hz = report.rate_hz, item->channels = report.channels;
    item->audio_s = (double)report.n / report.rate_hz;
    const wt_status status = analyze_write_result(&report, item->output);
    if (status) analyze_note_error(item, status);
}

/// Read, compute, write; what is `left` is not done. An error comes before the first file is written.
static wt_status run(work *w)
{
    shape(w);
    analyze_enter(w->place, ANALYZE_READ);
    wt_status status = read_files(w);
    analyze_enter(w->place, ANALYZE_COMPUTE);
    if (!status) status = convert(w);
    if (!status) status = analyze_batch_compute(&w->batch, w->results);
    if (!status && wt_interrupted()) status = wt_fail(WT_ERR_CANCELLED, "interrupted");
    analyze_enter(w->place, ANALYZE_WRITE);
    for (int k = 0; k < w->n_files && !status; k++)
        if (!w->left[k]) finish(w, k);
    return status;
}

static wt_status take_memory(work *w)
{
    const size_t n = (size_t)w->n_files;
    w->left = calloc(n, sizeof *w->left);
    w->lengths = calloc(n * WT_AUDIO_MAX_CHANNELS, sizeof *w->lengths);
    w->paths = calloc(n, sizeof *w->paths);
    w->results = calloc(n, sizeof *w->results);
    if (w->left && w->lengths && w->paths && w->results) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "analyze: a batch of %d files", w->n_files);
}

/// Wait for what was queued, whatever came of it: its memory is about to be used again.
static void settle(const work *w)
{
    if (wt_stream_synchronize(w->place->stream)) return; // an error that came first is told
}

void analyze_batches_do(const analyze_batches *b, int k, analyze_place *place)
{
    const struct span *span = &b->spans[k];
    work w = {.options = b->options,
              .place = place,
              .items = b->run->items,
              .files = &b->files[span->first],
              .n_files = span->n_files,
              .n_room = span->n_room};
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    const bool alone = w.files->alone || !place->device;
    wt_status status = alone ? WT_OK : take_memory(&w);
    if (!status && !alone) {
        status = run(&w);
        if (status) settle(&w);
    }
    const bool failed = status && status != WT_ERR_CANCELLED; // by one file, or all: each finds out by itself
    for (int f = 0; f < w.n_files; f++) {
        process_item *item = &w.items[w.files[f].item];
        item->wall_s = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9 / w.n_files;
        if (status && !failed) analyze_note_error(item, status);
    }
    for (int f = 0; f < w.n_files; f++) {
        process_item *item = &w.items[w.files[f].item];
        if (alone || failed || (!status && w.left[f])) analyze_do_item(b->options, place, item);
        if (w.results) analyze_result_free(&w.results[f]);
        analyze_item_done(b->run, item);
    }
    free(w.left), free(w.lengths), free(w.paths), free(w.results);
}
