// Filters as the options have them; forward and backward, and by fitted polynomials.

#include "analyze_sound.h"

#include <limits.h>
#include <stdlib.h>

// ---- designs

static int n_edges_of(wt_filter_band band) { return band == WT_BAND_PASS || band == WT_BAND_STOP ? 2 : 1; }

/// Errors: WT_ERR_BAD_ARG: --edges are not what the band wants.
static wt_status check_edges(const analyze_signal *s)
{
    static const char *const bands[] = {"low", "high", "pass", "stop"}; // as wt_filter_band
    const analyze_effect_options *e = &s->options->effect;
    const int want = n_edges_of(e->band);
    const double top = s->rate_hz / 2.0;
    if (e->n_edges != want)
        return wt_fail(WT_ERR_BAD_ARG, "a filter with --band %s wants --edges %s, %d are given", bands[e->band],
                       want == 2 ? "HZ,HZ" : "HZ", e->n_edges);
    for (int k = 0; k < want; k++)
        if (!(e->edges_hz[k] > 0 && e->edges_hz[k] < top && (k == 0 || e->edges_hz[k] > e->edges_hz[k - 1])))
            return wt_fail(WT_ERR_BAD_ARG, "--edges %g Hz at %d Hz, want ascending between 0 and %g", e->edges_hz[k],
                           s->rate_hz, top);
    return WT_OK;
}

wt_status analyze_sections(const analyze_signal *s, double sos[WT_SOS_MAX_SECTIONS][6], int *n)
{
    const analyze_effect_options *e = &s->options->effect;
    const wt_sos_design_config config = {.family = e->family,
                                         .band = e->band,
                                         .order = e->order ? e->order : 4,
                                         .rate_hz = s->rate_hz,
                                         .edge_hz = {e->edges_hz[0], e->edges_hz[1]},
                                         .ripple_db = e->ripple_db,
                                         .attenuation_db = e->attenuation_db};
    wt_status status = check_edges(s);
    return status ? status : wt_sos_design(&config, sos[0], n);
}

/// Bands that pass or stop, with free ones of the transition's width between them.
static wt_status design_bands(const analyze_signal *s, int n_taps, double *taps)
{
    const analyze_effect_options *e = &s->options->effect;
    const double top = s->rate_hz / 2.0;
    const double half = (e->transition_hz > 0 ? e->transition_hz : 3.3 * s->rate_hz / n_taps) / 2 / top;
    const int n_bands = e->n_edges + 1;
    double edges[6] = {0}, desired[6];
    for (int k = 0; k < e->n_edges; k++) {
        edges[2 * k + 1] = e->edges_hz[k] / top - half;
        edges[2 * k + 2] = e->edges_hz[k] / top + half;
    }
    edges[2 * n_bands - 1] = 1;
    for (int k = 0; k < 2 * n_bands; k++) {
        const bool first = e->band == WT_LOW_PASS || e->band == WT_BAND_STOP;
        desired[k] = (k / 2 % 2 == 0) == first;
        if (k && !(edges[k] > edges[k - 1]))
            return wt_fail(WT_ERR_BAD_ARG,
                           "fir: a transition of %g Hz does not fit beside the --edges, want a smaller --transition or "
                           "more --taps",
                           2 * half * top);
    }
    const wt_fir_bands_config config = {.n_taps = n_taps, .n_bands = n_bands, .edges = edges, .desired = desired,
                                         .weights = s->options->ops.n_weights ? s->options->ops.weights : NULL};
    return e->design == ANALYZE_FIR_EQUIRIPPLE ? wt_fir_design_equiripple(&config, taps)
                                               : wt_fir_design_least_squares(&config, taps);
}

static wt_status design_window(const analyze_signal *s, int n_taps, double *taps)
{
    const analyze_effect_options *e = &s->options->effect;
    const double top = s->rate_hz / 2.0, cutoffs[2] = {e->edges_hz[0] / top, e->edges_hz[1] / top};
    return wt_fir_design_window(
        &(wt_fir_window_config){.n_taps = n_taps,
                                .cutoffs = cutoffs,
                                .n_cutoffs = e->n_edges,
                                .stop_zero = e->band == WT_HIGH_PASS || e->band == WT_BAND_PASS,
                                .window = e->fir_window,
                                .kaiser_beta = s->options->window.parameter,
                                .no_scale = s->options->ops.no_scale},
        taps);
}

wt_status analyze_fir_taps(const analyze_signal *s, float **taps, int *n_taps)
{
    const int n = *n_taps = s->options->effect.n_taps ? s->options->effect.n_taps : 255;
    double *exact = malloc(sizeof *exact * (size_t)n);
    *taps = malloc(sizeof **taps * (size_t)n);
    wt_status status = exact && *taps ? check_edges(s) : wt_fail(WT_ERR_NO_MEMORY, "fir: %d taps", n);
    if (!status)
        status =
            s->options->effect.design == ANALYZE_FIR_WINDOW ? design_window(s, n, exact) : design_bands(s, n, exact);
    for (int k = 0; k < n && !status; k++) (*taps)[k] = (float)exact[k];
    free(exact);
    return status;
}

static wt_savgol_config savgol_config(const analyze_signal *s)
{
    const analyze_effect_options *e = &s->options->effect;
    return (wt_savgol_config){.n_taps = e->n_taps ? e->n_taps : 11,
                              .order = e->polynomial < 0 ? 3 : e->polynomial,
                              .derivative = e->derivative,
                              .delta = e->spacing};
}

// ---- on the calling thread

static wt_status check_length(const char *name, int64_t n)
{
    return n <= INT_MAX ? WT_OK
                        : wt_fail(WT_ERR_LENGTH, "%s: %lld samples, want at most %d", name, (long long)n, INT_MAX);
}

wt_status analyze_filtfilt_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n_sections;
    void *out, *scratch = NULL;
    size_t mapped = 0;
    wt_status status = analyze_sections(s, sos, &n_sections);
    if (!status) status = analyze_add(r, &analyze_like.filtfilt, 1, n, &out);
    const size_t bytes = sizeof(double) * ((size_t)n + 2 * WT_SOS_MAX_PADDING);
    if (!status) status = analyze_take(r->maps, bytes, "filtfilt", &scratch, &mapped);
    if (!status) status = wt_sos_filtfilt_in(sos[0], n_sections, pcm, out, n, scratch);
    analyze_let_go(scratch, mapped);
    return status;
}

wt_status analyze_filtfilt(const analyze_signal *s, analyze_result *r)
{
    return analyze_filtfilt_of(s, s->pcm, s->n, r);
}

int64_t analyze_savgol_reach(const analyze_signal *s) { return savgol_config(s).n_taps; }

wt_status analyze_savgol(const analyze_signal *s, analyze_result *r)
{
    const wt_savgol_config config = savgol_config(s);
    void *out;
    wt_status status = check_length("savgol", s->n);
    if (!status) status = analyze_add(r, &analyze_like.savgol, 1, s->n, &out);
    return status ? status : wt_savgol_filter(&config, s->pcm, out, (int)s->n);
}

// ---- on a GPU

static wt_status make_filtfilt(const analyze_batch *b, int variant, void **plan)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n;
    (void)variant;
    wt_status status = analyze_sections(&b->signal, sos, &n);
    if (status) return status;
    return wt_filtfilt_create(b->signal.place->device, &(wt_sos_config){.sos = sos[0], .n_sections = n}, 0,
                              b->n_signals, b->signal.n, (wt_filtfilt **)plan);
}

static void destroy_filtfilt(void *plan) { wt_filtfilt_destroy(plan); }

static wt_status make_savgol(const analyze_batch *b, int variant, void **plan)
{
    const wt_savgol_config config = savgol_config(&b->signal);
    (void)variant;
    wt_status status = check_length("savgol", b->signal.n);
    if (status) return status;
    return wt_savgol_rows_create(b->signal.place->device, &config, b->n_signals, (int)b->signal.n,
                                 (wt_savgol_rows **)plan);
}

static void destroy_savgol(void *plan) { wt_savgol_rows_destroy(plan); }

static wt_status enqueue_filtfilt(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_filtfilt_enqueue(plan, stream, in, 0, out, 0);
}

static wt_status enqueue_savgol(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_savgol_rows_enqueue(plan, stream, in, 0, out, 0);
}

typedef wt_status (*enqueue_function)(void *plan, wt_stream *stream, const wt_buffer *in, wt_buffer *out);

/// Rows as long as they were.
static wt_status give_rows(const analyze_batch *b, const analyze_maker *maker, enqueue_function enqueue,
                           const analyze_array *like, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, maker, 0, &plan);
    if (!status) status = analyze_room(b, 0, bytes, &out);
    if (!status) status = enqueue(plan, p->stream, p->pcm, out);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, like, data, 1, b->signal.n, false);
}

wt_status analyze_gpu_filtfilt(const analyze_batch *b, analyze_result *parts)
{
    return give_rows(b, &(analyze_maker){make_filtfilt, destroy_filtfilt}, enqueue_filtfilt, &analyze_like.filtfilt,
                     parts);
}

wt_status analyze_gpu_savgol(const analyze_batch *b, analyze_result *parts)
{
    return give_rows(b, &(analyze_maker){make_savgol, destroy_savgol}, enqueue_savgol, &analyze_like.savgol, parts);
}
