// A signal brought to a level by one gain for all its channels. Of a long one the level is measured on a walk before.

#include "analyze_sound.h"
#include "normalize_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/loudness.h>
#include <warptone/normalize.h>

static wt_normalize_config config_of(const analyze_signal *s, int channels, int n_signals)
{
    const analyze_effect_options *e = &s->options->effect;
    const wt_loudness_config *l = &s->options->ops.loudness;
    return (wt_normalize_config){.kind = e->by,
                                 .target_db = e->target_db,
                                 .ceiling_db = e->ceiling_db,
                                 .rate_hz = s->rate_hz,
                                 .channels = channels,
                                 .n_frames = s->n,
                                 .n_signals = n_signals,
                                 .dual_mono = l->dual_mono,
                                 .no_true_peak = l->no_true_peak};
}

/// `results` are of whole files, of `channels` parts each.
static wt_status give(const analyze_batch *b, const float *made, const wt_normalize_result *results,
                      analyze_result *parts)
{
    wt_status status = WT_OK;
    for (int k = 0; k < b->n_used && !status; k++) {
        void *out;
        parts[k].level = results[k / b->channels];
        status = analyze_add(&parts[k], &analyze_like.normalize, 1, b->signal.n, &out);
        if (!status) memcpy(out, made + k * b->signal.n, sizeof *made * (size_t)b->signal.n);
    }
    return status;
}

/// One file's channels, one behind the other.
static wt_status on_thread(const analyze_batch *b, analyze_result *parts)
{
    const wt_normalize_config config = config_of(&b->signal, b->channels, 1);
    const size_t count = (size_t)b->n_used * (size_t)b->signal.n;
    wt_normalize *plan;
    wt_status status = wt_normalize_create(NULL, &config, &plan);
    if (status) return status;
    wt_normalize_result result;
    float *made = malloc(sizeof *made * count);
    if (made)
        wt_normalize_run(plan, b->signal.pcm, made), wt_normalize_query(plan, &result);
    else
        status = wt_fail(WT_ERR_NO_MEMORY, "normalize: %zu samples", count);
    wt_normalize_destroy(plan);
    if (!status) status = give(b, made, &result, parts);
    free(made);
    return status;
}

static wt_status make_plan(const analyze_batch *b, int variant, void **plan)
{
    const wt_normalize_config config = config_of(&b->signal, b->channels, b->n_signals / b->channels);
    (void)variant;
    return wt_normalize_create(b->signal.place->device, &config, (wt_normalize **)plan);
}

static void destroy_plan(void *plan) { wt_normalize_destroy(plan); }

static wt_status on_gpu(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_normalize_result *results = malloc(sizeof *results * (size_t)(b->n_signals / b->channels));
    wt_status status = results ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "normalize: results");
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_plan, destroy_plan}, 0, &plan);
    if (!status) status = analyze_room(b, 0, bytes, &out);
    if (!status) status = wt_normalize_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    if (!status) status = wt_normalize_fetch(plan, p->stream, results);
    if (!status) status = give(b, data, results, parts);
    free(results);
    return status;
}

/// A tile by the gain that the walk found.
static wt_status by_known_gain(const analyze_batch *b, analyze_result *parts)
{
    const int64_t n = b->signal.n, stride = b->signal.stride ? b->signal.stride : n;
    wt_status status = WT_OK;
    for (int k = 0; k < b->n_used && !status; k++) {
        void *out;
        status = analyze_add(&parts[k], &analyze_like.normalize, 1, n, &out);
        for (int64_t t = 0; t < n && !status; t++) ((float *)out)[t] = b->signal.pcm[k * stride + t] * b->whole[k].gain;
    }
    return status;
}

wt_status analyze_normalize(const analyze_batch *b, analyze_result *parts)
{
    if (!b->whole) return b->signal.place ? on_gpu(b, parts) : on_thread(b, parts);
    if (b->signal.place) return wt_fail(WT_ERR_UNSUPPORTED, "a thread multiplies as fast as it copies");
    return by_known_gain(b, parts);
}

// ---- measured on a walk

struct analyze_level {
    wt_normalize_config config;
    wt_loudness *loudness; // NULL = by facts
    normalize_facts *facts; // [channels]
};

wt_status analyze_level_create(const analyze_signal *s, int channels, analyze_level **level)
{
    analyze_level *l = *level = calloc(1, sizeof *l);
    wt_normalize *checked;
    if (!l) return wt_fail(WT_ERR_NO_MEMORY, "normalize: level");
    l->config = config_of(s, channels, 1);
    l->config.n_frames = 1;
    l->facts = calloc((size_t)channels, sizeof *l->facts);
    if (!l->facts) return wt_fail(WT_ERR_NO_MEMORY, "normalize: level of %d channels", channels);
    wt_status status = wt_normalize_create(NULL, &l->config, &checked); // that nothing is out of range
    if (!status) wt_normalize_destroy(checked);
    if (status || l->config.kind != WT_NORMALIZE_LOUDNESS) return status;
    const wt_loudness_config meter = {.rate_hz = s->rate_hz,
                                      .channels = channels,
                                      .dual_mono = l->config.dual_mono,
                                      .no_true_peak = l->config.no_true_peak};
    return wt_loudness_create(&meter, &l->loudness);
}

void analyze_level_destroy(analyze_level *level)
{
    if (!level) return;
    wt_loudness_destroy(level->loudness);
    free(level->facts);
    free(level);
}

void analyze_level_add(analyze_level *l, const float *const *rows, int channels, int n)
{
    if (l->loudness) wt_loudness_process(l->loudness, rows, n);
    for (int c = 0; c < channels && !l->loudness; c++)
        for (int t = 0; t < n; t++) normalize_count(&l->facts[c], rows[c][t]);
}

wt_normalize_result analyze_level_find(const analyze_level *l)
{
    normalize_facts f = {0};
    for (int c = 0; c < l->config.channels; c++) normalize_add(&f, &l->facts[c]);
    const double peak_db = 20 * log10((double)f.peak);
    wt_loudness_values v;
    if (!l->loudness)
        return wt_normalize_find(
            &l->config, l->config.kind == WT_NORMALIZE_PEAK ? peak_db : 10 * log10(f.squares / f.count), peak_db);
    wt_loudness_query(l->loudness, &v);
    return wt_normalize_find(&l->config, v.integrated_lufs, v.true_peak_db);
}

float analyze_level_gain(const wt_normalize_result *found) { return (float)pow(10.0, found->gain_db / 20); }
