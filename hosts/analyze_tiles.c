// Signals too long to be held: read, folded and resampled in order, cut into tiles of whole frames, and each tile's
// columns written where they belong. A tile is given as many samples before and behind its own frames as those reach;
// the frames that meet its ends are made and thrown away, so every column has the numbers of the whole signal.
//
// What lies at most 80 dB below the signal's peak needs that peak first: the tiles are then walked along twice.

#include "analyze.h"
#include "atomic_file.h"
#include "interrupt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/resample.h>

// ---- the signal in order

enum { BLOCK = 1 << 16 };

typedef struct source {
    wt_audio_reader *reader;
    wt_resample *resampler; // NULL: the rate stays
    int in_channels, channels;
    float *block; // [in_channels][BLOCK], folded into its first row
    int n_block, n_used;
    bool ended;
    int64_t n; // frames in all, as the file says; -1: it does not
} source;

static void source_close(source *s)
{
    wt_audio_reader_close(s->reader);
    wt_resample_destroy(s->resampler);
    free(s->block);
    *s = (source){.reader = NULL};
}

static wt_status source_open(const analyze_options *options, const char *path, source *s)
{
    *s = (source){.reader = NULL};
    wt_status status = wt_audio_reader_open(path, NULL, &s->reader);
    if (status) return status;
    const wt_audio_info info = wt_audio_reader_get_info(s->reader);
    const int rate_hz = options->rate_hz ? options->rate_hz : info.rate_hz;
    s->in_channels = info.channels;
    s->channels = options->keep_channels ? info.channels : 1;
    s->n = info.n_frames;
    s->block = malloc(sizeof *s->block * BLOCK * (size_t)info.channels);
    if (!s->block) status = wt_fail(WT_ERR_NO_MEMORY, "analyze: a block of %d channels", info.channels);
    if (!status && rate_hz != info.rate_hz) {
        const wt_resample_config config = {.in_hz = info.rate_hz, .out_hz = rate_hz, .channels = s->channels};
        status = wt_resample_create(&config, &s->resampler);
        if (s->n >= 0) s->n = wt_resample_out_frames(&config, s->n);
    }
    if (status) source_close(s);
    return status;
}

static wt_status source_refill(source *s)
{
    wt_status status = wt_audio_reader_read(s->reader, s->block, BLOCK, BLOCK, &s->n_block);
    s->n_used = 0;
    s->ended = s->n_block < BLOCK;
    if (!status && s->channels < s->in_channels) analyze_fold(s->block, s->in_channels, s->n_block, BLOCK);
    return status;
}

/// The next `n` frames into rows `stride` apart; *n_got is less only at the end.
static wt_status source_read(source *s, float *out, int64_t stride, int64_t n, int64_t *n_got)
{
    const float *in_rows[WT_AUDIO_MAX_CHANNELS];
    float *out_rows[WT_AUDIO_MAX_CHANNELS];
    for (*n_got = 0; *n_got < n;) {
        int n_left = s->n_block - s->n_used, n_used = 0, n_made = 0;
        const int room = n - *n_got < BLOCK ? (int)(n - *n_got) : BLOCK;
        if (!n_left && !s->ended) {
            wt_status status = source_refill(s);
            if (status) return status;
            continue;
        }
        for (int c = 0; c < s->channels; c++) {
            in_rows[c] = s->block + (size_t)c * BLOCK + s->n_used;
            out_rows[c] = out + c * stride + *n_got;
        }
        if (!s->resampler) {
            n_used = n_made = n_left < room ? n_left : room;
            for (int c = 0; c < s->channels; c++) memcpy(out_rows[c], in_rows[c], sizeof *out * (size_t)n_made);
        } else if (n_left) {
            wt_resample_process(s->resampler, in_rows, n_left, &n_used, out_rows, room, &n_made);
        } else {
            wt_resample_drain(s->resampler, out_rows, room, &n_made);
        }
        s->n_used += n_used;
        *n_got += n_made;
        if (!n_left && !n_made) return WT_OK;
    }
    return WT_OK;
}

// ---- tiles

int analyze_tile(const analyze_options *options) { return options->tile ? options->tile : 1 << 22; }

typedef wt_status (*visit_function)(void *user, const analyze_result *tile, int64_t first, int64_t from, int64_t count);

typedef struct walk {
    const analyze_options *options;
    analyze_place *place;
    const char *path;
    int64_t n, n_frames;     // samples; frames of the first array
    int64_t n_own, n_beside; // frames of a tile, and before and behind them
    int rate_hz, channels;
    const float *peaks; // [channels], NULL = not known
    float *pcm;         // [channels][room]
    int64_t room;
    int64_t n_read, n_repaired; // samples that there were; those of them that were not finite
} walk;

static wt_status compute(const walk *w, const float *pcm, int64_t n, analyze_result *result)
{
    const analyze_signal signal = {.options = w->options,
                                   .path = w->path,
                                   .pcm = pcm,
                                   .n = n,
                                   .stride = w->room,
                                   .rate_hz = w->rate_hz,
                                   .place = w->place->device ? w->place : NULL,
                                   .peak_db = w->peaks};
    return analyze_compute(&signal, w->channels, result);
}

/// The arrays of the whole signal but for their data, from silence of the same remainder by the hop.
static wt_status probe(walk *w, analyze_result *shapes)
{
    const int64_t hop = analyze_hop(w->options), least = 4 * (int64_t)analyze_n_fft(w->options) + 32 * hop;
    const int64_t n = w->n > least ? w->n - (w->n - least) / hop * hop : w->n;
    memset(w->pcm, 0, sizeof *w->pcm * (size_t)(w->room * w->channels));
    wt_status status = compute(w, w->pcm, n, shapes);
    for (int k = 0; k < shapes->n_arrays; k++) {
        analyze_array *a = &shapes->arrays[k];
        free(a->data);
        a->data = NULL;
        a->shape[a->n_dims - 1] += (w->n - n) / hop;
    }
    w->n_frames = status ? 0 : analyze_n_columns(&shapes->arrays[0]);
    return status;
}

/// Visit every tile: the columns `from` .. of its arrays are the signal's frames `first` .., `count` of them or, of the
/// last tile (count -1), all there are. Where the file ends too early the walk ends.
static wt_status walk_along(walk *w, visit_function visit, void *user)
{
    const int64_t hop = analyze_hop(w->options);
    int64_t begin = 0, end = 0, n_got; // of the samples at hand
    analyze_result *tile = malloc(sizeof *tile);
    source s;
    wt_status status = tile ? source_open(w->options, w->path, &s) : wt_fail(WT_ERR_NO_MEMORY, "analyze: a tile");
    if (status) {
        free(tile);
        return status;
    }
    for (int64_t first = 0; first < w->n_frames && !status; first += w->n_own) {
        const bool last = w->n_frames - first < 2 * w->n_own;
        const int64_t before = first < w->n_beside ? first : w->n_beside, from = (first - before) * hop;
        int64_t to = last ? w->n : (first + w->n_own + w->n_beside) * hop;
        if (to > w->n) to = w->n;
        for (int c = 0; c < w->channels; c++)
            memmove(w->pcm + c * w->room, w->pcm + c * w->room + (from - begin), sizeof *w->pcm * (size_t)(end - from));
        begin = from;
        status = source_read(&s, w->pcm + (end - begin), w->room, to - end, &n_got);
        end += n_got;
        if (status || end < to) break;
        status = compute(w, w->pcm, to - from, tile);
        if (!status) status = visit(user, tile, first, before, last ? -1 : w->n_own);
        analyze_result_free(tile);
        if (!status && wt_interrupted()) status = wt_fail(WT_ERR_CANCELLED, "interrupted");
        if (last) break;
    }
    w->n_read = end;
    w->n_repaired = wt_audio_reader_get_info(s.reader).n_repaired_samples;
    source_close(&s);
    free(tile);
    return status;
}

// ---- what is done with them

static wt_status keep_peaks(void *user, const analyze_result *tile, int64_t first, int64_t from, int64_t count)
{
    float *peaks = user;
    const analyze_array *a = &tile->arrays[0];
    const int64_t n = analyze_n_columns(a), n_rows = analyze_n_rows(a), channels = a->n_dims > 2 ? a->shape[0] : 1;
    (void)first;
    for (int64_t row = 0; row < n_rows; row++)
        for (int64_t t = from; t < (count < 0 ? n : from + count); t++) {
            const float x = ((const float *)a->data)[row * n + t];
            float *peak = &peaks[row / (n_rows / channels)];
            if (x > *peak) *peak = x;
        }
    return WT_OK;
}

typedef struct sink {
    const analyze_report *report;
    analyze_numpy *numpy; // NULL: a table
    FILE *out;
    int fd;
} sink;

static wt_status keep_columns(void *user, const analyze_result *tile, int64_t first, int64_t from, int64_t count)
{
    const sink *s = user;
    if (s->numpy) return analyze_numpy_put(s->numpy, s->fd, s->report->result, tile, first, from, count);
    if (count < 0) count = analyze_n_columns(&tile->arrays[0]) - from;
    analyze_csv_rows(s->report, tile, first, from, count, s->out);
    return WT_OK;
}

static wt_status find_peaks(walk *w, float *peaks)
{
    analyze_options options = *w->options;
    walk bands = *w;
    for (int c = 0; c < w->channels; c++) peaks[c] = -HUGE_VALF;
    options.features[0] = analyze_bands_of_peak();
    options.n_features = 1;
    bands.options = &options;
    wt_status status = walk_along(&bands, keep_peaks, peaks);
    w->n_read = bands.n_read;
    return status;
}

static wt_status write_table(walk *w, sink *s)
{
    wt_status status = analyze_csv_head(s->report, s->out);
    if (!status) status = walk_along(w, keep_columns, s);
    if (fflush(s->out) || ferror(s->out))
        if (!status) status = wt_fail(WT_ERR_FILE, "output: cannot be written: %s", strerror(errno));
    return status;
}

static wt_status write_arrays(walk *w, sink *s)
{
    analyze_numpy *numpy = malloc(sizeof *numpy);
    if (!numpy) return wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    s->numpy = numpy;
    wt_status status = analyze_numpy_lay(s->report, numpy);
    if (!status) status = walk_along(w, keep_columns, s);
    if (!status && w->n_read == w->n) status = analyze_numpy_finish(numpy, s->fd, s->report->result);
    free(numpy);
    return status;
}

static wt_status write_to(walk *w, const analyze_report *report, const char *output)
{
    wt__atomic_file file;
    sink s = {.report = report};
    if (!strcmp(output, "-")) {
        s.out = stdout;
        return write_table(w, &s);
    }
    wt_status status = wt__atomic_file_open(output, &file);
    if (status) return status;
    s.fd = file.fd;
    if (report->options->format == ANALYZE_CSV) {
        const int fd = dup(file.fd);
        s.out = fd < 0 ? NULL : fdopen(fd, "wb");
        status =
            s.out ? write_table(w, &s) : wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", output, strerror(errno));
        if (s.out)
            fclose(s.out);
        else if (fd >= 0)
            close(fd);
    } else {
        status = write_arrays(w, &s);
    }
    if (!status && w->n_read == w->n) return wt__atomic_file_commit(&file, false);
    wt__atomic_file_discard(&file);
    return status;
}

// ---- one file

static bool has_peak(const analyze_options *o)
{
    for (int k = 0; k < o->n_features; k++)
        if (o->features[k]->tiles == ANALYZE_TILES_BELOW_PEAK) return true;
    return false;
}

/// With w->n as the file's length; w->n_read says whether it was.
static wt_status run_once(walk *w, const char *output)
{
    float peaks[WT_AUDIO_MAX_CHANNELS];
    analyze_result *shapes = calloc(1, sizeof *shapes);
    wt_status status = shapes ? probe(w, shapes) : wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    w->n_read = w->n;
    if (!status && has_peak(w->options)) {
        status = find_peaks(w, peaks);
        w->peaks = peaks;
    }
    const analyze_report report = {.options = w->options,
                                   .result = shapes,
                                   .input = w->path,
                                   .n = w->n,
                                   .rate_hz = w->rate_hz,
                                   .channels = w->channels};
    if (!status && w->n_read == w->n) status = write_to(w, &report, output);
    w->peaks = NULL;
    free(shapes);
    return status;
}

/// Tiles of an even number of frames, which on a GPU go in pairs, and an even number beside them.
static void shape_tiles(const analyze_options *o, walk *w)
{
    const int64_t hop = analyze_hop(o), reach = analyze_n_fft(o) / 2 + 1;
    w->n_beside = ((reach + hop - 1) / hop + ANALYZE_CONTEXT + 1) / 2 * 2;
    w->n_own = analyze_tile(o) / hop / 2 * 2;
    if (w->n_own < 2 * w->n_beside) w->n_own = 2 * w->n_beside;
    w->room = (2 * w->n_own + 2 * w->n_beside + 1) * hop;
    const int64_t least = 4 * (int64_t)analyze_n_fft(o) + 33 * hop; // for the probe
    if (w->room < least) w->room = least;
}

wt_status analyze_length(const analyze_options *options, const char *path, int64_t *n)
{
    source s;
    wt_status status = source_open(options, path, &s);
    if (status) return status;
    *n = s.n;
    float *some = s.n < 0 ? malloc(sizeof *some * BLOCK * (size_t)s.channels) : NULL;
    if (s.n < 0 && !some) status = wt_fail(WT_ERR_NO_MEMORY, "analyze: a block of %d channels", s.channels);
    for (int64_t n_got = BLOCK; s.n < 0 && !status && n_got == BLOCK;) { // the file does not say
        status = source_read(&s, some, BLOCK, BLOCK, &n_got);
        *n += n_got;
    }
    if (s.n < 0) ++*n; // it began at -1
    free(some);
    source_close(&s);
    return status;
}

wt_status analyze_in_tiles(const analyze_options *options, analyze_place *place, process_item *item, int64_t n)
{
    source s;
    wt_status status = source_open(options, item->input, &s);
    if (status) return status;
    const wt_audio_info info = wt_audio_reader_get_info(s.reader);
    walk w = {.options = options,
              .place = place,
              .path = item->input,
              .n = n,
              .channels = s.channels,
              .rate_hz = options->rate_hz ? options->rate_hz : info.rate_hz};
    source_close(&s);
    shape_tiles(options, &w);
    w.pcm = malloc(sizeof *w.pcm * (size_t)(w.room * w.channels));
    if (!w.pcm) return wt_fail(WT_ERR_NO_MEMORY, "analyze: tiles of %lld samples", (long long)w.room);
    status = run_once(&w, item->output);
    if (!status && w.n_read < w.n) { // a file that ends before its header says
        w.n = w.n_read;
        status = run_once(&w, item->output);
    }
    item->audio_s = (double)w.n / w.rate_hz;
    item->rate_hz = w.rate_hz, item->channels = w.channels, item->n_repaired = w.n_repaired;
    free(w.pcm);
    return status;
}
