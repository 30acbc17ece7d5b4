#include "analyze_features.h"

#include <stdlib.h>

// ---- constant Q

typedef struct constant_q {
    wt_cqt *cqt;
    int64_t n_frames;
    int bins;
    float *values; // [n_frames][bins], complex [..][2]
} constant_q;

static void constant_q_free(constant_q *x)
{
    wt_cqt_destroy(x->cqt);
    free(x->values);
}

wt_cqt_tile analyze_cqt_tile(const analyze_whole *whole, bool own)
{
    wt_cqt_tile tile = {.begin = whole ? whole->begin : 0};
    if (whole && own) tile.first = whole->from, tile.count = whole->count < 0 ? 0 : whole->count;
    return tile;
}

/// `own`: of a tile its own frames, zeros around.
static wt_status constant_q_make(const analyze_signal *s, const wt_cqt_config *config, bool own, constant_q *x)
{
    const wt_cqt_tile tile = analyze_cqt_tile(s->whole, own);
    *x = (constant_q){0};
    wt_status status = wt_cqt_create(NULL, config, s->n, &x->cqt);
    if (status) return status;
    x->bins = wt_cqt_bins(x->cqt);
    x->n_frames = wt_cqt_frames(x->cqt, s->n);
    const size_t items = (size_t)x->n_frames * (size_t)x->bins * (config->magnitude ? 1 : 2);
    x->values = calloc(items, sizeof(float));
    if (!x->values) return wt_fail(WT_ERR_NO_MEMORY, "cqt: %lld frames", (long long)x->n_frames);
    status = wt_cqt_run_tile(x->cqt, s->pcm, s->n, &tile, x->values);
    return status ? wt_fail(status, "cqt: %lld samples", (long long)s->n) : WT_OK;
}

wt_cqt_config analyze_cqt_config(const analyze_signal *s, wt_cqt_kind kind)
{
    const analyze_options *o = s->options;
    wt_cqt_config config = o->ops.cqt;
    config.kind = kind, config.rate_hz = s->rate_hz, config.hop = analyze_hop(o), config.fmin_hz = o->fmin_hz;
    config.n_bins = o->n_bins, config.bins_per_octave = o->bins_per_octave, config.gamma_hz = 0;
    config.window = o->window, config.pad = o->padding, config.no_scale = o->ops.no_scale;
    config.magnitude = kind != WT_CQT_FULL;
    return config;
}

wt_cqt_config analyze_vqt_config(const analyze_signal *s)
{
    const analyze_settings *t = &s->options->ops;
    wt_cqt_config config = analyze_cqt_config(s, WT_CQT_FULL);
    config.erb_gamma = !t->has_gamma, config.gamma_hz = t->cqt.gamma_hz;
    if (t->n_intervals) config.intervals = t->intervals, config.bins_per_octave = t->n_intervals;
    return config;
}

/// What is refused here is told by the feature.
static int64_t reach_of(const wt_cqt_config *config)
{
    wt_cqt *cqt;
    if (wt_cqt_create(NULL, config, 0, &cqt)) return 0;
    const int64_t reach = wt_cqt_reach(cqt);
    wt_cqt_destroy(cqt);
    return reach;
}

int64_t analyze_cqt_reach(const analyze_signal *s)
{
    const wt_cqt_config config = analyze_cqt_config(s, WT_CQT_FULL);
    return reach_of(&config);
}

int64_t analyze_vqt_reach(const analyze_signal *s)
{
    const wt_cqt_config config = analyze_vqt_config(s);
    return reach_of(&config);
}

static wt_status add_constant_q(const analyze_signal *s, analyze_result *r, const analyze_array *like,
                                const wt_cqt_config *config)
{
    constant_q x;
    wt_status status = constant_q_make(s, config, true, &x);
    if (!status) status = analyze_add_turned(r, like, x.values, x.n_frames, x.bins);
    constant_q_free(&x);
    return status;
}

wt_status analyze_cqt(const analyze_signal *s, analyze_result *r)
{
    const wt_cqt_config config = analyze_cqt_config(s, WT_CQT_FULL);
    return add_constant_q(s, r, &analyze_like.cqt, &config);
}

wt_status analyze_vqt(const analyze_signal *s, analyze_result *r)
{
    const wt_cqt_config config = analyze_vqt_config(s);
    return add_constant_q(s, r, &analyze_like.vqt, &config);
}

wt_status analyze_pseudo_cqt(const analyze_signal *s, analyze_result *r)
{
    const wt_cqt_config config = analyze_cqt_config(s, WT_CQT_PSEUDO);
    return add_constant_q(s, r, &analyze_like.pseudo_cqt, &config);
}

wt_status analyze_hybrid_cqt(const analyze_signal *s, analyze_result *r)
{
    const wt_cqt_config config = analyze_cqt_config(s, WT_CQT_HYBRID);
    return add_constant_q(s, r, &analyze_like.hybrid_cqt, &config);
}

// ---- chroma

wt_tuning_config analyze_tuning_config(const analyze_signal *s, int64_t n_frames, int bins_per_octave)
{
    const analyze_options *o = s->options;
    wt_tuning_config config = {.peaks = {.rate_hz = s->rate_hz, .n_fft = analyze_n_fft(o)}, .n_frames = n_frames,
                               .bins_per_octave = bins_per_octave};
    if (bins_per_octave) return config;
    config.peaks.fmin_hz = o->fmin_hz, config.peaks.fmax_hz = o->fmax_hz, config.peaks.threshold = o->ops.threshold;
    config.resolution = o->ops.resolution;
    return config;
}

static wt_status tuning_of(const analyze_signal *s, const analyze_spectra *x, int bins_per_octave, double *tuning)
{
    const wt_tuning_config config = analyze_tuning_config(s, x->n_frames, bins_per_octave);
    return wt_tuning_estimate(&config.peaks, x->values, x->n_frames, bins_per_octave, config.resolution, tuning);
}

wt_status analyze_tuning(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    double tuning = 0;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, true, &x);
    if (!status) status = tuning_of(s, &x, 0, &tuning);
    analyze_spectra_free(&x);
    return status ? status : analyze_add_value(r, "tuning", "semitones", tuning);
}

wt_status analyze_tuning_known(const analyze_signal *s, const float *row, int64_t n, analyze_result *r)
{
    (void)row, (void)n;
    return analyze_add_value(r, "tuning", "semitones", s->whole->tuning[ANALYZE_TUNING]);
}

static int n_chroma(const analyze_options *o) { return o->n_chroma ? o->n_chroma : 12; }

wt_chroma_config analyze_chroma_config(const analyze_signal *s)
{
    wt_chroma_config config = s->options->ops.chroma;
    config.rate_hz = s->rate_hz, config.n_fft = analyze_n_fft(s->options), config.n_chroma = n_chroma(s->options);
    config.bank_norm = WT_CHROMA_NORM_2, config.tuning = s->options->ops.cqt.tuning;
    return config;
}

wt_status analyze_chroma(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_chroma *chroma = NULL;
    float *out = NULL;
    wt_chroma_config config = analyze_chroma_config(s);
    wt_status status = analyze_spectra_make(s, WT_STFT_POWER, true, &x);
    if (!status && s->whole) config.tuning = s->whole->tuning[ANALYZE_TUNING_OF_CHROMA];
    else if (!status && !s->options->ops.tuned) status = tuning_of(s, &x, config.n_chroma, &config.tuning);
    if (!status) status = wt_chroma_create(NULL, &config, &chroma);
    if (!status && !(out = malloc(sizeof(float) * (size_t)config.n_chroma * (size_t)x.n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)x.n_frames);
    if (!status) status = wt_chroma_run(chroma, x.values, x.n_frames, out);
    if (!status) status = analyze_add_turned(r, &analyze_like.chroma, out, x.n_frames, config.n_chroma);
    wt_chroma_destroy(chroma);
    free(out);
    analyze_spectra_free(&x);
    return status;
}

/// Of the octave that is folded.
static int steps_of(const analyze_options *o) { return o->bins_per_octave ? o->bins_per_octave : 36; }

wt_cqt_config analyze_folded_cqt(const analyze_signal *s)
{
    const analyze_options *o = s->options;
    return (wt_cqt_config){.kind = o->ops.by_hybrid ? WT_CQT_HYBRID : WT_CQT_FULL, .rate_hz = s->rate_hz,
                           .hop = analyze_hop(o), .fmin_hz = o->fmin_hz,
                           .n_bins = (o->ops.n_octaves ? o->ops.n_octaves : 7) * steps_of(o),
                           .bins_per_octave = steps_of(o), .tuning = o->ops.cqt.tuning, .magnitude = true,
                           .precise = true};
}

/// With the lowest tuning that may be found.
int64_t analyze_folded_reach(const analyze_signal *s)
{
    wt_cqt_config config = analyze_folded_cqt(s);
    if (!s->options->ops.tuned) config.tuning = -0.5;
    return reach_of(&config);
}

int64_t analyze_cens_reach(const analyze_signal *s)
{
    const int smooth = s->options->ops.smooth ? s->options->ops.smooth : 41;
    return analyze_folded_reach(s) + (int64_t)smooth * analyze_hop(s->options);
}

wt_chroma_norm analyze_chroma_norm(const analyze_options *o, wt_chroma_norm otherwise)
{
    return o->ops.has_norm ? o->ops.chroma.norm : otherwise;
}

wt_chroma_cqt_config analyze_folding(const analyze_signal *s, wt_chroma_norm norm, bool cens)
{
    const wt_cqt_config folded = analyze_folded_cqt(s);
    return (wt_chroma_cqt_config){.fmin_hz = folded.fmin_hz, .n_bins = folded.n_bins,
                                  .bins_per_octave = folded.bins_per_octave, .n_chroma = n_chroma(s->options),
                                  .threshold = cens ? 0 : (float)s->options->ops.threshold, .norm = norm};
}

/// librosa's chroma_cqt before its end: magnitudes, tuned, and folded.
static wt_status fold(const analyze_signal *s, wt_chroma_norm norm, bool cens, float **out, int64_t *n_frames)
{
    analyze_spectra x;
    constant_q q = {0};
    const wt_chroma_cqt_config folding = analyze_folding(s, norm, cens);
    wt_cqt_config config = analyze_folded_cqt(s);
    wt_status status = WT_OK;
    if (s->whole) {
        config.tuning = s->whole->tuning[ANALYZE_TUNING_OF_STEPS];
    } else if (!s->options->ops.tuned) {
        status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, true, &x);
        if (!status) status = tuning_of(s, &x, config.bins_per_octave, &config.tuning);
        analyze_spectra_free(&x);
    }
    if (!status) status = constant_q_make(s, &config, false, &q); // CENS looks at neighbours
    *n_frames = q.n_frames;
    *out = status ? NULL : malloc(sizeof(float) * (size_t)folding.n_chroma * (size_t)q.n_frames);
    if (!status && !*out) status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)q.n_frames);
    if (!status) status = wt_chroma_fold(&folding, q.values, q.n_frames, *out);
    constant_q_free(&q);
    return status;
}

wt_status analyze_chroma_cqt(const analyze_signal *s, analyze_result *r)
{
    float *chroma;
    int64_t n_frames;
    wt_status status = fold(s, analyze_chroma_norm(s->options, WT_CHROMA_NORM_MAX), false, &chroma, &n_frames);
    if (!status) status = analyze_add_turned(r, &analyze_like.chroma_cqt, chroma, n_frames, n_chroma(s->options));
    free(chroma);
    return status;
}

wt_status analyze_chroma_cens(const analyze_signal *s, analyze_result *r)
{
    float *chroma, *cens = NULL;
    int64_t n_frames;
    const int n = n_chroma(s->options);
    wt_status status = fold(s, WT_CHROMA_NORM_NONE, true, &chroma, &n_frames);
    if (!status && !(cens = malloc(sizeof(float) * (size_t)n * (size_t)n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)n_frames);
    if (!status)
        status = wt_chroma_cens(chroma, n_frames, n, s->options->ops.smooth,
                                analyze_chroma_norm(s->options, WT_CHROMA_NORM_2), cens);
    if (!status) status = analyze_add_turned(r, &analyze_like.chroma_cens, cens, n_frames, n);
    free(chroma), free(cens);
    return status;
}

wt_status analyze_tonnetz(const analyze_signal *s, analyze_result *r)
{
    float *chroma, *out = NULL;
    int64_t n_frames;
    wt_status status = fold(s, analyze_chroma_norm(s->options, WT_CHROMA_NORM_MAX), false, &chroma, &n_frames);
    if (!status && !(out = malloc(sizeof(float) * 6 * (size_t)n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "tonnetz: %lld frames", (long long)n_frames);
    if (!status) status = wt_tonnetz(chroma, n_frames, n_chroma(s->options), out);
    if (!status) status = analyze_add_turned(r, &analyze_like.tonnetz, out, n_frames, 6);
    free(chroma), free(out);
    return status;
}
