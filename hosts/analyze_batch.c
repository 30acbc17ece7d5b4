// Many files at a launch. A survey reads all headers; files of one rate, channel count, encoding and length (or, when
// silence may follow the signals, of about one length) are then taken together, as many as fill a tile.

#include "analyze_batch.h"
#include "analyze_tiles.h"
#include "crew.h"
#include "interrupt.h"

#include <stdlib.h>
#include <warptone/clock.h>

enum { MAX_SIGNALS = 256 };

// ---- the survey

/// Samples that a frame of the file is worth, as read or as features see it.
static double samples_of(const analyze_options *o, const analyze_facts *f)
{
    return f->channels * (o->rate_hz > f->rate_hz ? (double)o->rate_hz / f->rate_hz : 1);
}

static bool looks_at_files(const analyze_options *o)
{
    for (int k = 0; k < o->n_features; k++)
        if (o->features[k]->tiles == ANALYZE_OF_FILE) return true;
    return false;
}

static void look_at(analyze_batches *b, analyze_facts *f)
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
    const analyze_facts *x = a, *y = b;
    const int64_t keys[][2] = {{x->alone, y->alone},       {x->rate_hz, y->rate_hz}, {x->channels, y->channels},
                               {x->integers, y->integers}, {x->n_key, y->n_key},     {x->item, y->item}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (keys[k][0] != keys[k][1]) return keys[k][0] < keys[k][1] ? -1 : 1;
    return 0;
}

static bool go_together(const analyze_facts *x, const analyze_facts *y)
{
    return !x->alone && !y->alone && x->rate_hz == y->rate_hz && x->channels == y->channels &&
           x->integers == y->integers && x->n_key == y->n_key;
}

/// A run of files of one kind as batches of one size: what fills a tile, but one for each place on a GPU.
static void cut_run(analyze_batches *b, int first, int n)
{
    const analyze_facts *f = &b->files[first];
    const int channels = b->options->keep_channels ? f->channels : 1;
    int64_t room = 1;
    if (!f->alone) {
        room = (int64_t)(analyze_tile(b->options) / (samples_of(b->options, f) * (double)f->n_in));
        if (room > MAX_SIGNALS / channels) room = MAX_SIGNALS / channels;
        const int n_ways = analyze_line_width(b->options);
        if (room > (n + n_ways - 1) / n_ways) room = (n + n_ways - 1) / n_ways;
        if (room < 1) room = 1;
    }
    for (int at = 0; at < n; at += (int)room) {
        const int n_files = n - at < room ? n - at : (int)room;
        b->spans[b->n_spans++] = (analyze_span){first + at, n_files, (int)room};
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
