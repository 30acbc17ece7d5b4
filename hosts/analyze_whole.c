// What tiles must know of their whole signal: its loudest band, its tuning, found on walks along the tiles before the
// one that makes columns; and rows, a number a frame, gathered from all tiles for features that are made of one.

#include "analyze_features.h"
#include "analyze_sound.h"
#include "analyze_tiles.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// ---- facts

typedef struct learner {
    unsigned needs;
    int pass;
    wt_tuning_walk *(*tunings)[ANALYZE_TUNINGS]; // [channels]
    analyze_level *level;
} learner;

/// Largest of the own columns of rows `first` .. of an array.
static void keep_largest(const analyze_array *a, int64_t first, int64_t n_rows, const analyze_part *part, float *most)
{
    const int64_t n = analyze_n_columns(a), end = part->count < 0 ? n : part->from + part->count;
    const float *x = a->data;
    for (int64_t row = first; row < first + n_rows; row++)
        for (int64_t t = part->from; t < end; t++)
            if (x[row * n + t] > *most) *most = x[row * n + t];
}

/// One feature of the tile, on a GPU where there is one.
static wt_status make_feature(const analyze_walk *w, analyze_signal s, const analyze_feature *feature,
                              analyze_options options, analyze_result *made)
{
    options.features[0] = feature, options.n_features = 1;
    s.options = &options;
    s.place = w->place->device ? w->place : NULL;
    return analyze_compute(&s, 1, made);
}

/// Of mel bands in decibels; `plain` as onset strength has them.
static wt_status learn_bands(const analyze_walk *w, analyze_signal s, const analyze_part *part, bool plain, float *most)
{
    analyze_options options = *s.options;
    analyze_result bands = {.n_arrays = 0};
    if (plain)
        options.fmin_hz = options.fmax_hz = 0, options.htk = options.no_center = false, options.win_length = 0,
        options.window = (wt_window_config){.n = 0}, options.padding = WT_STFT_PAD_ZERO,
        options.mel_norm = WT_MEL_NORM_SLANEY, options.ops.mel_power = 0;
    wt_status status =
        make_feature(w, s, plain ? analyze_precise_bands() : analyze_bands_of_peak(), options, &bands);
    if (!status) keep_largest(&bands.arrays[0], 0, analyze_n_rows(&bands.arrays[0]), part, most);
    analyze_result_free(&bands);
    return status;
}

/// Of bins in decibels.
static wt_status learn_bins(const analyze_walk *w, analyze_signal s, const analyze_part *part, float *most)
{
    analyze_result bins = {.n_arrays = 0};
    wt_status status = make_feature(w, s, analyze_bins_of_peak(), *s.options, &bins);
    if (!status) keep_largest(&bins.arrays[0], 0, analyze_n_rows(&bins.arrays[0]), part, most);
    analyze_result_free(&bins);
    return status;
}

static wt_status learn_contrast(const analyze_walk *w, analyze_signal s, const analyze_part *part, float most[2])
{
    analyze_result parts = {.n_arrays = 0};
    wt_status status = make_feature(w, s, analyze_parts_of_contrast(), *s.options, &parts);
    const int64_t rows = status ? 0 : analyze_n_rows(&parts.arrays[0]) / 2;
    for (int k = 0; k < 2 && !status; k++) keep_largest(&parts.arrays[0], k * rows, rows, part, &most[k]);
    analyze_result_free(&parts);
    return status;
}

/// Peaks of the tile's own spectra, frame by frame: of magnitudes, and for chroma of powers.
static wt_status learn_tunings(const analyze_walk *w, analyze_signal s, const analyze_part *part,
                               wt_tuning_walk **tunings)
{
    wt_status status = WT_OK;
    for (int squares = 0; squares < 2 && !status; squares++) {
        analyze_result spectra = {.n_arrays = 0};
        const int first = squares ? ANALYZE_TUNING_OF_CHROMA : ANALYZE_TUNING;
        if (!tunings[first] && (squares || !tunings[ANALYZE_TUNING_OF_STEPS])) continue;
        status = make_feature(w, s, analyze_frames_of_spectra(squares), *s.options, &spectra);
        const analyze_array *x = &spectra.arrays[0];
        const int64_t n_frames = status ? 0 : analyze_n_rows(x), bins = status ? 0 : analyze_n_columns(x);
        const int64_t count = part->count < 0 ? n_frames - part->from : part->count;
        for (int k = 0; k < ANALYZE_TUNINGS && !status; k++)
            if (tunings[k] && (k == ANALYZE_TUNING_OF_CHROMA) == squares)
                wt_tuning_walk_add(tunings[k], (const float *)x->data + part->from * bins, count);
        analyze_result_free(&spectra);
    }
    return status;
}

static void learn_level(const analyze_walk *w, int64_t n, const analyze_part *part, analyze_level *level)
{
    const float *rows[WT_AUDIO_MAX_CHANNELS];
    const int64_t begin = part->from * part->hop, end = part->count < 0 ? n : begin + part->count * part->hop;
    for (int c = 0; c < w->channels; c++) rows[c] = w->pcm + c * w->room + begin;
    analyze_level_add(level, rows, w->channels, (int)(end - begin));
}

static wt_status learn(void *user, const analyze_walk *w, int64_t n, const analyze_part *part)
{
    const learner *l = user;
    wt_status status = WT_OK;
    for (int c = 0; c < w->channels && !status; c++) {
        analyze_whole *whole = &w->whole[c];
        analyze_signal s = analyze_tile_signal(w, n, c);
        s.whole = NULL;
        if (!l->pass && l->needs & ANALYZE_NEED_BAND) status = learn_bands(w, s, part, false, &whole->band_db);
        if (!status && !l->pass && l->needs & ANALYZE_NEED_ONSET)
            status = learn_bands(w, s, part, true, &whole->onset_peak);
        if (!status && !l->pass && l->needs & ANALYZE_NEED_BIN) status = learn_bins(w, s, part, &whole->bin_db);
        if (!status && !l->pass && l->needs & ANALYZE_NEED_CONTRAST)
            status = learn_contrast(w, s, part, whole->contrast_db);
        if (!status) status = learn_tunings(w, s, part, l->tunings[c]);
    }
    if (!status && !l->pass && l->level) learn_level(w, n, part, l->level);
    return status;
}

static wt_status make_tunings(const analyze_walk *w, unsigned needs, wt_tuning_walk **tunings)
{
    static const unsigned need[] = {ANALYZE_NEED_TUNING, ANALYZE_NEED_CHROMA, ANALYZE_NEED_STEPS};
    const analyze_signal s = {.options = w->options, .rate_hz = w->rate_hz};
    const int steps[] = {0, analyze_chroma_config(&s).n_chroma, analyze_folded_cqt(&s).bins_per_octave};
    wt_status status = WT_OK;
    for (int k = 0; k < ANALYZE_TUNINGS && !status; k++) {
        const wt_tuning_config config = analyze_tuning_config(&s, 0, steps[k]);
        if (needs & need[k]) status = wt_tuning_walk_create(&config.peaks, steps[k], config.resolution, &tunings[k]);
    }
    return status;
}

static void keep_level(analyze_walk *w, const analyze_level *level)
{
    const wt_normalize_result found = analyze_level_find(level);
    for (int c = 0; c < w->channels; c++)
        w->whole[c].level = found, w->whole[c].gain = analyze_level_gain(&found);
}

static wt_status learn_all(analyze_walk *w, unsigned needs)
{
    const bool tuned = needs & (ANALYZE_NEED_TUNING | ANALYZE_NEED_CHROMA | ANALYZE_NEED_STEPS);
    const int n_passes = tuned ? WT_TUNING_PASSES : needs ? 1 : 0;
    learner l = {.needs = needs, .tunings = calloc((size_t)w->channels, sizeof *l.tunings)};
    wt_status status = l.tunings ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "analyze: %d tunings", w->channels);
    for (int c = 0; c < w->channels && !status; c++) {
        analyze_whole *whole = &w->whole[c];
        whole->onset_peak = 0;
        whole->band_db = whole->bin_db = whole->contrast_db[0] = whole->contrast_db[1] = -HUGE_VALF;
        status = make_tunings(w, needs, l.tunings[c]);
    }
    const analyze_signal as_a_whole = {.options = w->options, .rate_hz = w->rate_hz, .n = w->n};
    if (!status && needs & ANALYZE_NEED_LEVEL) status = analyze_level_create(&as_a_whole, w->channels, &l.level);
    for (; l.pass < n_passes && !status && w->n_read == w->n; l.pass++) {
        status = analyze_walk_along(w, learn, &l);
        for (int k = 0; k < w->channels * ANALYZE_TUNINGS && !status; k++) {
            wt_tuning_walk *tuning = l.tunings[k / ANALYZE_TUNINGS][k % ANALYZE_TUNINGS];
            if (tuning) w->whole[k / ANALYZE_TUNINGS].tuning[k % ANALYZE_TUNINGS] = wt_tuning_walk_end_pass(tuning);
        }
    }
    for (int c = 0; c < w->channels && w->options->ops.tuned; c++)
        w->whole[c].tuning[ANALYZE_TUNING_OF_CHROMA] = w->whole[c].tuning[ANALYZE_TUNING_OF_STEPS] =
            w->options->ops.cqt.tuning;
    if (l.level && !status) keep_level(w, l.level);
    analyze_level_destroy(l.level);
    for (int k = 0; l.tunings && k < w->channels * ANALYZE_TUNINGS; k++)
        wt_tuning_walk_destroy(l.tunings[k / ANALYZE_TUNINGS][k % ANALYZE_TUNINGS]);
    free(l.tunings);
    return status;
}

// ---- rows

typedef struct row {
    float *values;
    int64_t n, room;
    FILE *spilled; // instead of in memory, until it is mapped
} row;

typedef struct gatherer {
    bool wanted[ANALYZE_BASES];
    row (*rows)[ANALYZE_BASES]; // [channels]
} gatherer;

static wt_status make_room(row *r, int64_t n_more)
{
    if (r->n + n_more <= r->room) return WT_OK;
    const int64_t room = r->n + n_more + r->room / 2;
    float *values = realloc(r->values, sizeof *values * (size_t)room);
    if (!values) return wt_fail(WT_ERR_NO_MEMORY, "analyze: a row of %lld numbers", (long long)room);
    r->values = values, r->room = room;
    return WT_OK;
}

static wt_status make_columns(const analyze_walk *w, analyze_signal s, analyze_base base, analyze_result *made)
{
    const analyze_feature *feature = analyze_feature_of_base(base);
    s.place = w->place;
    wt_status status = w->place->device ? analyze_feature_on_gpu(&s, feature, made) : WT_ERR_UNSUPPORTED;
    if (status != WT_ERR_UNSUPPORTED && status != WT_ERR_NO_MEMORY) return status;
    s.place = NULL;
    return feature->compute(&s, made);
}

static wt_status gather_columns(const analyze_walk *w, const analyze_signal *s, const analyze_part *part,
                                analyze_base base, row *r)
{
    analyze_result made = {.n_arrays = 0};
    s->whole->n_speech = r->n;
    wt_status status = make_columns(w, *s, base, &made);
    if (!status) {
        const int64_t from = base == ANALYZE_BASE_SPEECH ? 0 : part->from, n = analyze_n_columns(&made.arrays[0]);
        const int64_t count = base == ANALYZE_BASE_SPEECH || part->count < 0 ? n - from : part->count;
        status = make_room(r, count);
        if (!status) memcpy(r->values + r->n, (float *)made.arrays[0].data + from, sizeof(float) * (size_t)count);
        if (!status) r->n += count;
    }
    analyze_result_free(&made);
    return status;
}

static wt_status gather_samples(const analyze_signal *s, const analyze_part *part, row *r)
{
    const int64_t begin = part->from * part->hop, end = part->count < 0 ? s->n : begin + part->count * part->hop;
    wt_status status = r->spilled ? WT_OK : analyze_spill_open(&r->spilled);
    if (!status && fwrite(s->pcm + begin, sizeof(float), (size_t)(end - begin), r->spilled) != (size_t)(end - begin))
        status = wt_fail(WT_ERR_FILE, "samples for a while: cannot be written: %s", strerror(errno));
    r->n += end - begin;
    return status;
}

/// What was spilled as memory that the system may take back.
static wt_status map_spill(row *r)
{
    if (!r->spilled || r->values || !r->n) return WT_OK;
    void *map = fflush(r->spilled)
                    ? MAP_FAILED
                    : mmap(NULL, sizeof(float) * (size_t)r->n, PROT_READ, MAP_SHARED, fileno(r->spilled), 0);
    if (map == MAP_FAILED) return wt_fail(WT_ERR_FILE, "samples for a while: cannot be read: %s", strerror(errno));
    r->values = map;
    return WT_OK;
}

static void row_free(row *r)
{
    if (r->spilled && r->values)
        munmap(r->values, sizeof(float) * (size_t)r->n);
    else
        free(r->values);
    if (r->spilled) fclose(r->spilled);
}

static wt_status gather(void *user, const analyze_walk *w, int64_t n, const analyze_part *part)
{
    const gatherer *g = user;
    wt_status status = WT_OK;
    for (int c = 0; c < w->channels && !status; c++) {
        const analyze_signal s = analyze_tile_signal(w, n, c);
        for (int base = ANALYZE_BASE_NONE + 1; base < ANALYZE_BASES && !status; base++) {
            if (!g->wanted[base]) continue;
            row *r = &g->rows[c][base];
            if (base == ANALYZE_BASE_SAMPLES)
                status = gather_samples(&s, part, r);
            else
                status = gather_columns(w, &s, part, (analyze_base)base, r);
        }
    }
    return status;
}

/// From all samples, on a GPU where there is one with room for them.
static wt_status finish_samples(const analyze_walk *w, const analyze_feature *f, analyze_signal s, const row *r,
                                analyze_result *result)
{
    s.pcm = r->values, s.n = r->n, s.place = w->place, s.whole = NULL, s.maps = true;
    w->place->maps = true;
    wt_status status = w->place->device && f->on_gpu ? analyze_feature_on_gpu(&s, f, result) : WT_ERR_UNSUPPORTED;
    w->place->maps = false;
    if (status != WT_ERR_UNSUPPORTED && status != WT_ERR_NO_MEMORY) return status;
    return f->finish ? f->finish(&s, r->values, r->n, result) : f->compute(&s, result);
}

static wt_status finish(const analyze_walk *w, const analyze_feature *feature, const gatherer *g,
                        analyze_result *result)
{
    const analyze_feature *f = feature->of ? feature->of : feature;
    analyze_result *parts = calloc((size_t)w->channels, sizeof *parts);
    wt_status status = parts ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: arrays", f->name);
    const int channels = f->tiles == ANALYZE_OF_FILE ? 1 : w->channels;
    result->maps = true;
    for (int c = 0; c < channels && !status; c++) {
        analyze_signal s = analyze_tile_signal(w, w->n, c);
        row *r = &g->rows[c][f->base];
        parts[c].maps = true;
        status = map_spill(r);
        if (!status && f->base == ANALYZE_BASE_SAMPLES)
            status = finish_samples(w, f, s, r, &parts[c]);
        else if (!status)
            status = f->finish ? f->finish(&s, r->values, r->n, &parts[c]) : f->compute(&s, &parts[c]);
        if (!status && feature->of) status = analyze_differentiate(w->options, feature, &parts[c], 0);
    }
    if (!status) status = analyze_join(f, parts, w->channels, result);
    for (int c = 0; parts && c < w->channels; c++) analyze_result_free(&parts[c]);
    free(parts);
    return status;
}

/// The first channel's, for the walk.
static wt_status keep_samples(analyze_walk *w, row *r)
{
    wt_status status = map_spill(r);
    w->samples = status ? NULL : r->values;
    r->values = NULL; // the mapping stays when its file is closed
    return status;
}

wt_status analyze_whole_learn(analyze_walk *w, analyze_result *gathered)
{
    const analyze_options *o = w->options;
    gatherer g = {.rows = calloc((size_t)w->channels, sizeof *g.rows)};
    bool any = false;
    unsigned needs = 0;
    for (int k = 0; k < o->n_features; k++) {
        needs |= o->features[k]->needs;
        g.wanted[o->features[k]->base] = true;
        any = any || o->features[k]->base != ANALYZE_BASE_NONE;
    }
    if (w->keep_samples) any = g.wanted[ANALYZE_BASE_SAMPLES] = true;
    w->n_read = w->n;
    wt_status status = g.rows ? learn_all(w, needs) : wt_fail(WT_ERR_NO_MEMORY, "analyze: rows");
    if (!status && any && w->n_read == w->n) status = analyze_walk_along(w, gather, &g);
    for (int k = 0; k < o->n_features && !status && w->n_read == w->n; k++)
        if (o->features[k]->tiles != ANALYZE_TILES) status = finish(w, o->features[k], &g, &gathered[k]);
    if (!status && w->keep_samples && w->n_read == w->n) status = keep_samples(w, &g.rows[0][ANALYZE_BASE_SAMPLES]);
    for (int k = 0; g.rows && k < w->channels * ANALYZE_BASES; k++)
        row_free(&g.rows[k / ANALYZE_BASES][k % ANALYZE_BASES]);
    free(g.rows);
    return status;
}
