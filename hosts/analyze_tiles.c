// Signals too long to be held, cut into tiles of whole frames, and each tile's columns written where they belong. A
// tile is given as many samples before and behind its own frames as those reach; the frames that meet its ends are made
// and thrown away, so every column has the numbers of the whole signal. Formats that are not written so take the
// columns from files that they are gathered in (analyze_spill.c).
//
// What columns need of the whole signal, and features that are no columns, come first (analyze_whole.c).

#include "analyze_tiles.h"
#include "analyze_features.h"
#include "analyze_sound.h"
#include "atomic_file.h"
#include "interrupt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int analyze_tile(const analyze_options *options) { return options->tile ? options->tile : 1 << 22; }

/// A slope of what goes on from tile to tile is made when all of that is there.
static bool is_late(const analyze_feature *feature) { return feature->of && feature->of->in_order; }

bool analyze_writes_tiles(const analyze_options *o, const char *output)
{
    const int n_tiles = analyze_features_of(o, ANALYZE_TILES);
    for (int k = 0; k < o->n_features; k++)
        if (is_late(o->features[k])) return false;
    switch (o->format) {
    case ANALYZE_NPY:
    case ANALYZE_NPZ:
        return !n_tiles || strcmp(output, "-") != 0;
    case ANALYZE_CSV:
        return !n_tiles || n_tiles == o->n_features;
    case ANALYZE_JSON:
        return !n_tiles;
    case ANALYZE_AUDIO:
        return true;
    default:
        return false;
    }
}

bool analyze_tiles_are_cheap(const analyze_options *o)
{
    for (int k = 0; k < o->n_features; k++) {
        const analyze_feature *f = o->features[k];
        if (f->tiles != ANALYZE_TILES || f->context || f->needs & (ANALYZE_NEED_CHROMA | ANALYZE_NEED_ONSET))
            return false;
    }
    return true;
}

// ---- tiles

analyze_signal analyze_tile_signal(const analyze_walk *w, int64_t n, int c)
{
    return (analyze_signal){.options = w->options,
                            .path = w->path,
                            .pcm = w->pcm + c * w->room,
                            .n = n,
                            .rate_hz = w->rate_hz,
                            .whole = &w->whole[c]};
}

wt_status analyze_walk_along(analyze_walk *w, analyze_visit visit, void *user)
{
    const int64_t hop = analyze_hop(w->options);
    int64_t begin = 0, end = 0, n_got; // of the samples at hand
    analyze_source *s;
    wt_status status = analyze_source_open(w->options, w->path, &s);
    if (status) return status;
    for (int64_t first = 0; first < w->n_frames && !status; first += w->n_own) {
        const bool last = w->n_frames - first < 2 * w->n_own;
        const int64_t before = first < w->n_beside ? first : w->n_beside, from = (first - before) * hop;
        int64_t to = last ? w->n : (first + w->n_own + w->n_beside) * hop;
        if (to > w->n) to = w->n;
        for (int c = 0; c < w->channels; c++) {
            memmove(w->pcm + c * w->room, w->pcm + c * w->room + (from - begin), sizeof *w->pcm * (size_t)(end - from));
            w->whole[c].begin = from, w->whole[c].n = w->n, w->whole[c].from = before,
            w->whole[c].count = last ? -1 : w->n_own;
        }
        begin = from;
        status = analyze_source_read(s, w->pcm + (end - begin), w->room, to - end, &n_got);
        end += n_got;
        if (status || end < to) break;
        status = visit(user, w, to - from, &(analyze_part){first, before, last ? -1 : w->n_own, (int)hop});
        if (!status && wt_interrupted()) status = wt_fail(WT_ERR_CANCELLED, "interrupted");
        if (last) break;
    }
    w->n_read = end;
    if (!w->info.truncated) w->info = analyze_source_info(s); // the walk again up to what there was meets no end
    analyze_source_close(s);
    return status;
}

/// How far a frame's columns reach beyond it, in frames.
static int64_t context_of(const analyze_options *o, int rate_hz)
{
    const analyze_signal s = {.options = o, .rate_hz = rate_hz};
    int64_t context = ANALYZE_CONTEXT;
    for (int k = 0; k < o->n_features; k++) {
        int64_t own = o->features[k]->context;
        const int64_t late = o->features[k]->flow ? analyze_flow_reach(&s, o->features[k]->flow) : 0;
        if (late) own += late / analyze_hop(o) + 2;
        if (o->features[k]->reach) own += o->features[k]->reach(&s) / analyze_hop(o) + 2;
        if (o->features[k]->base == ANALYZE_BASE_SPEECH) own = analyze_speech_step(rate_hz) / analyze_hop(o) + 1;
        if (o->features[k]->of) own += analyze_delta_reach(&s) / analyze_hop(o);
        if (own > context) context = own;
    }
    return context;
}

/// Tiles of whole groups of frames, and as many beside them: transforms in double take sixteen frames at once, on a GPU
/// two, and a frame's last bit may depend on its partner.
static void shape_tiles(analyze_walk *w)
{
    const analyze_options *o = w->options;
    const int64_t hop = analyze_hop(o), reach = analyze_n_fft(o) / (o->no_center ? 1 : 2) + 1;
    const int64_t group = 16;
    w->n_beside = ((reach + hop - 1) / hop + context_of(o, w->rate_hz) + group - 1) / group * group;
    w->n_own = analyze_tile(o) / hop / group * group;
    if (w->n_own < 2 * w->n_beside) w->n_own = 2 * w->n_beside;
    w->room = (2 * w->n_own + 2 * w->n_beside + 1) * hop;
    const int64_t least = 4 * (int64_t)analyze_n_fft(o) + 33 * hop; // for the probe
    if (w->room < least) w->room = least;
}

// ---- columns

static const analyze_feature *tiled_feature(const analyze_feature *f) { return is_late(f) ? f->of : f; }

static int n_arrays_of(const analyze_feature *f) { return f->n_arrays ? f->n_arrays : 1; }

/// Which of a tile's arrays is the feature's first; n_features stands behind those that were there.
static int first_array(const analyze_options *tiled, const analyze_feature *f, int *which)
{
    int first = 0;
    for (*which = 0; *which < tiled->n_features && tiled->features[*which] != f; ++*which)
        first += n_arrays_of(tiled->features[*which]);
    return first;
}

/// The walk's options with the features that go in tiles alone, each once.
static analyze_options tiled_options(const analyze_options *o)
{
    analyze_options tiled = *o;
    int at;
    tiled.n_features = 0;
    for (int k = 0; k < o->n_features; k++) {
        if (o->features[k]->tiles != ANALYZE_TILES) continue;
        first_array(&tiled, tiled_feature(o->features[k]), &at);
        if (at == tiled.n_features) tiled.features[tiled.n_features++] = tiled_feature(o->features[k]);
    }
    return tiled;
}

static wt_status compute_tile(const analyze_walk *w, const analyze_options *tiled, int64_t n, analyze_result *result)
{
    analyze_signal s = analyze_tile_signal(w, n, 0);
    s.options = tiled, s.stride = w->room, s.place = w->place->device ? w->place : NULL;
    return analyze_compute(&s, w->channels, result);
}

/// What goes on from tile to tile begins anew.
static void forget(analyze_whole *whole)
{
    whole->smoothed = false;
    for (int k = 0; k < ANALYZE_FLOWS; k++) {
        analyze_flow_destroy(whole->flows[k]);
        whole->flows[k] = NULL;
    }
}

/// The arrays of the whole signal but for their data, from silence of the same remainder by the hop.
static wt_status probe(analyze_walk *w, const analyze_options *tiled, analyze_result *shapes)
{
    const int64_t hop = analyze_hop(tiled), least = 4 * (int64_t)analyze_n_fft(tiled) + 32 * hop;
    const int64_t n = w->n > least ? w->n - (w->n - least) / hop * hop : w->n;
    memset(w->pcm, 0, sizeof *w->pcm * (size_t)(w->room * w->channels));
    for (int c = 0; c < w->channels; c++)
        w->whole[c].begin = w->whole[c].from = 0, w->whole[c].n = w->n, w->whole[c].count = -1;
    wt_status status = tiled->n_features ? compute_tile(w, tiled, n, shapes) : WT_OK;
    for (int k = 0; k < shapes->n_arrays; k++) {
        analyze_array *a = &shapes->arrays[k];
        free(a->data);
        a->data = NULL;
        a->shape[a->n_dims - 1] += a->layout == ANALYZE_SAMPLES ? w->n - n : (w->n - n) / hop;
    }
    for (int c = 0; c < w->channels; c++) forget(&w->whole[c]);
    return status;
}

typedef struct sink {
    const analyze_options *tiled;
    const analyze_report *report;
    analyze_result *tile, *all;      // all: the whole's
    int places[ANALYZE_MAX_ARRAYS];  // of a tile's arrays among the whole's
    int sources[ANALYZE_MAX_ARRAYS]; // of the whole's arrays among a tile's, -1 = none
    const analyze_feature *late[ANALYZE_MAX_ARRAYS]; // slope that the whole's array is to become
    analyze_numpy *numpy;           // or a table, or audio, or none: to the whole's arrays
    FILE *out;
    int fd;
    wt_audio_writer *writers[2];
} sink;

static wt_status write_samples(const sink *s, const analyze_part *part)
{
    wt_status status = WT_OK;
    for (int k = 0; k < s->tile->n_arrays && !status; k++) {
        const analyze_array *a = &s->tile->arrays[k];
        const int64_t n = analyze_n_columns(a), begin = part->from * part->hop;
        const int64_t count = part->count < 0 ? n - begin : part->count * part->hop;
        status = wt_audio_writer_write(s->writers[k], (const float *)a->data + begin, (int)count, (size_t)n);
    }
    return status;
}

/// Into the whole's arrays, which are mapped.
static void gather_columns(const sink *s, const analyze_part *part)
{
    for (int k = 0; k < s->all->n_arrays; k++) {
        if (s->sources[k] < 0) continue;
        const analyze_array *a = &s->tile->arrays[s->sources[k]], *whole = &s->all->arrays[k];
        const int64_t step = a->layout == ANALYZE_SAMPLES ? part->hop : 1, from = part->from * step;
        const int64_t n = analyze_n_columns(a), n_whole = analyze_n_columns(whole);
        const size_t item = analyze_item_bytes(a->type);
        const size_t bytes = item * (size_t)(part->count < 0 ? n - from : part->count * step);
        for (int64_t row = 0; row < analyze_n_rows(a); row++)
            memcpy((char *)whole->data + (size_t)(row * n_whole + part->first * step) * item,
                   (const char *)a->data + (size_t)(row * n + from) * item, bytes);
    }
}

static wt_status keep_columns(void *user, const analyze_walk *w, int64_t n, const analyze_part *part)
{
    const sink *s = user;
    wt_status status = compute_tile(w, s->tiled, n, s->tile);
    if (!status && s->writers[0]) {
        status = write_samples(s, part);
    } else if (!status && s->numpy) {
        status = analyze_numpy_put(s->numpy, s->fd, s->report->result, s->tile, s->places, part);
    } else if (!status && !s->out) {
        gather_columns(s, part);
    } else if (!status) {
        const int64_t count = part->count < 0 ? analyze_n_columns(&s->tile->arrays[0]) - part->from : part->count;
        analyze_csv_rows(s->report, s->tile, part->first, part->from, count, s->out);
    }
    analyze_result_free(s->tile);
    return status;
}

static wt_status write_table(analyze_walk *w, sink *s)
{
    wt_status status = analyze_csv_head(s->report, s->out);
    if (!status) status = analyze_walk_along(w, keep_columns, s);
    if (fflush(s->out) || ferror(s->out))
        if (!status) status = wt_fail(WT_ERR_FILE, "output: cannot be written: %s", strerror(errno));
    return status;
}

static wt_status write_arrays(analyze_walk *w, sink *s)
{
    const analyze_result *r = s->report->result;
    s->numpy = calloc(1, sizeof *s->numpy);
    if (!s->numpy) return wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    wt_status status = analyze_numpy_lay(s->report, s->numpy);
    if (!status) status = analyze_walk_along(w, keep_columns, s);
    for (int k = 0; k < r->n_arrays && !status; k++)
        if (r->arrays[k].data) status = analyze_numpy_put_whole(s->numpy, s->fd, r, k);
    if (!status && w->n_read == w->n) status = analyze_numpy_finish(s->numpy, s->fd, r);
    free(s->numpy);
    return status;
}

static wt_status write_parts(analyze_walk *w, sink *s, const char *output)
{
    wt_status status = WT_OK;
    const int n_parts = s->report->result->n_arrays;
    for (int k = 0; k < n_parts && !status; k++)
        status = analyze_part_open(s->report, &s->report->result->arrays[k], output, &s->writers[k]);
    if (!status) status = analyze_walk_along(w, keep_columns, s);
    for (int k = 0; k < n_parts; k++) {
        if (!status && w->n_read == w->n)
            status = wt_audio_writer_commit(s->writers[k]);
        else
            wt_audio_writer_discard(s->writers[k]);
    }
    return status;
}

/// The slopes of what was gathered, in place of it.
static wt_status make_slopes(const sink *s)
{
    wt_status status = WT_OK;
    analyze_result *one = calloc(1, sizeof *one);
    if (!one) return wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    one->n_arrays = 1, one->maps = true;
    for (int k = 0; k < s->all->n_arrays && !status; k++) {
        if (!s->late[k]) continue;
        one->arrays[0] = s->all->arrays[k];
        status = analyze_differentiate(s->report->options, s->late[k], one, 0);
        s->all->arrays[k] = one->arrays[0];
    }
    free(one);
    return status;
}

/// All columns into files, and the whole from there, as if it had been held.
static wt_status write_gathered(analyze_walk *w, sink *s, const char *output)
{
    const bool table = s->report->options->format == ANALYZE_CSV && s->tiled->n_features;
    wt_status status = table ? analyze_csv_check(s->all) : WT_OK;
    for (int k = 0; k < s->all->n_arrays && !status; k++) {
        analyze_array *a = &s->all->arrays[k];
        const size_t bytes = (size_t)analyze_count(a) * analyze_item_bytes(a->type);
        if (s->sources[k] >= 0) status = analyze_take(true, bytes, a->name, &a->data, &a->mapped);
    }
    if (!status && s->tiled->n_features) status = analyze_walk_along(w, keep_columns, s);
    if (!status && w->n_read == w->n) status = make_slopes(s);
    if (!status && w->n_read == w->n) status = analyze_write_result(s->report, output);
    return status;
}

static wt_status write_to(analyze_walk *w, sink *s, const char *output)
{
    wt__atomic_file file;
    if (!s->tiled->n_features || !analyze_writes_tiles(s->report->options, output)) return write_gathered(w, s, output);
    if (s->report->options->format == ANALYZE_AUDIO) return write_parts(w, s, output);
    if (!strcmp(output, "-")) {
        s->out = stdout;
        return write_table(w, s);
    }
    wt_status status = analyze_refuse_input(w->path, output);
    if (!status) status = wt__atomic_file_open(output, &file);
    if (status) return status;
    s->fd = file.fd;
    if (s->report->options->format == ANALYZE_CSV) {
        const int fd = dup(file.fd);
        s->out = fd < 0 ? NULL : fdopen(fd, "wb");
        status =
            s->out ? write_table(w, s) : wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", output, strerror(errno));
        if (s->out)
            fclose(s->out);
        else if (fd >= 0)
            close(fd);
    } else {
        status = write_arrays(w, s);
    }
    if (!status && w->n_read == w->n) return wt__atomic_file_commit(&file, false);
    wt__atomic_file_discard(&file);
    return status;
}

// ---- one file

/// All arrays in the features' order: those in tiles from `shapes`, without data, the others from `gathered`, which are
/// empty then.
static void collect(const analyze_walk *w, analyze_result *gathered, const analyze_result *shapes, sink *s)
{
    for (int k = 0; k < w->options->n_features; k++) {
        const analyze_feature *f = w->options->features[k];
        const bool tiled = f->tiles == ANALYZE_TILES;
        int which;
        const int first = first_array(s->tiled, tiled_feature(f), &which);
        const int count = tiled ? n_arrays_of(f) : gathered[k].n_arrays;
        for (int i = 0; i < count; i++) {
            const int at = s->all->n_arrays++;
            s->all->arrays[at] = tiled ? shapes->arrays[first + i] : gathered[k].arrays[i];
            s->sources[at] = tiled ? first + i : -1;
            s->late[at] = is_late(f) ? f : NULL;
            if (tiled) s->places[first + i] = at;
        }
        gathered[k].n_arrays = 0;
    }
}

/// With w->n as the file's length; w->n_read says whether it was.
static wt_status run_once(analyze_walk *w, const char *output)
{
    const analyze_options tiled = tiled_options(w->options);
    const size_t n_features = (size_t)w->options->n_features;
    analyze_result *results = calloc(3 + n_features, sizeof *results), *gathered = results + 3; // shapes, all, a tile
    sink *s = calloc(1, sizeof *s);
    wt_status status = results && s ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    w->n_frames = analyze_centred_frames(w->options, w->n); // others have fewer
    w->keep_samples = w->options->format == ANALYZE_PNG;
    if (!status) status = analyze_whole_learn(w, gathered);
    if (!status) status = probe(w, &tiled, results);
    const analyze_report report = {.options = w->options,
                                   .result = results + 1,
                                   .input = w->path,
                                   .pcm = w->samples,
                                   .n = w->n,
                                   .rate_hz = w->rate_hz,
                                   .channels = w->channels};
    if (!status && w->n_read == w->n) {
        s->tiled = &tiled, s->tile = results + 2, s->all = results + 1, s->report = &report;
        collect(w, gathered, results, s);
        status = write_to(w, s, output);
    }
    for (size_t k = 0; results && k < n_features; k++) analyze_result_free(&gathered[k]);
    if (results) analyze_result_free(results + 1);
    if (w->samples) munmap(w->samples, sizeof *w->samples * (size_t)w->n);
    w->samples = NULL;
    free(results), free(s);
    return status;
}

wt_status analyze_in_tiles(const analyze_options *options, analyze_place *place, process_item *item, int64_t n)
{
    analyze_source *s;
    wt_status status = analyze_check_wrap(options);
    if (!status) status = analyze_source_open(options, item->input, &s);
    if (status) return status;
    analyze_walk w = {.options = options,
                      .place = place,
                      .path = item->input,
                      .n = n,
                      .channels = analyze_source_channels(s),
                      .rate_hz = analyze_source_rate_hz(s)};
    analyze_source_close(s);
    shape_tiles(&w);
    w.pcm = malloc(sizeof *w.pcm * (size_t)(w.room * w.channels));
    w.whole = calloc((size_t)w.channels, sizeof *w.whole);
    if (!w.pcm || !w.whole) status = wt_fail(WT_ERR_NO_MEMORY, "analyze: tiles of %lld samples", (long long)w.room);
    if (!status) status = run_once(&w, item->output);
    if (!status && w.n_read < w.n) { // a file that ends before its header says
        w.n = w.n_read;
        status = run_once(&w, item->output);
    }
    item->audio_s = (double)w.n / w.rate_hz;
    item->rate_hz = w.rate_hz, item->channels = w.channels;
    process_note_input(item, &w.info);
    if (!status) analyze_note_level(options, &w.whole->level, item);
    for (int c = 0; w.whole && c < w.channels; c++) {
        forget(&w.whole[c]);
        free(w.whole[c].smooth), free(w.whole[c].voice);
    }
    free(w.whole), free(w.pcm);
    return status;
}
