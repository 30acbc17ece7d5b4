// What the words, lists and files among `warptone analyze`'s options mean.

#include "analyze_options.h"
#include "analyze_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- words

/// Numbers from 0 on, or fractions as 9/8, up to `most` of them into `values`.
static wt_status read_numbers(const char *option, const char *text, const char *want, double *values, int most, int *n)
{
    const char *at = text;
    char *end;
    for (*n = 0; *n < most; at = end + 1) {
        double value = strtod(at, &end);
        if (end == at) break;
        if (*end == '/') {
            const char *by = end + 1;
            value /= strtod(by, &end);
            if (end == by) break;
        }
        if (!(value >= 0 && value <= 1e9)) break;
        values[(*n)++] = value;
        if (!*end) return WT_OK;
        if (*end != ',') break;
    }
    return wt_fail(WT_ERR_BAD_ARG, "--%s is \"%s\", want %s", option, text, want);
}

static wt_status choose_noise(const char *text, double noise_s[2])
{
    int n;
    if (!text) return WT_OK;
    wt_status status = read_numbers("noise", text, "a begin and an end in seconds, as 0,0.5", noise_s, 2, &n);
    if (!status && (n < 2 || !(noise_s[1] > noise_s[0])))
        status = wt_fail(WT_ERR_BAD_ARG, "--noise is \"%s\", want a begin and an end in seconds, as 0,0.5", text);
    return status;
}

/// What is left out is the first of its type.
static wt_status choose_words(const analyze_arguments *a, analyze_options *o)
{
    static const char *const windows =
        "hann hamming blackman blackman_harris kaiser gaussian flat_top rectangular custom";
    analyze_effect_options *e = &o->effect;
    analyze_settings *t = &o->ops;
    wt_status status = WT_OK;
    o->vocoder = wt_options_word("vocoder", a->vocoder, "transient locked librosa wsola", &status);
    e->quality = wt_options_word("quality", a->quality, "best fast soxr_hq polyphase", &status);
    e->family = wt_options_word("family", a->family, "butterworth chebyshev1 chebyshev2 elliptic bessel", &status);
    e->band = wt_options_word("band", a->band, "low high pass stop", &status);
    e->design = wt_options_word("design", a->design, "window least_squares equiripple", &status);
    e->by = wt_options_word("by", a->by, "loudness rms peak", &status);
    e->denoiser = wt_options_word("denoiser", a->denoiser, "lsa wiener gate", &status);
    o->neighbours.cosine = wt_options_word("distance", a->distance, "euclidean cosine", &status);
    o->neighbours.median = wt_options_word("aggregate", a->aggregate, "mean median", &status);
    o->window.kind = wt_options_word("window", a->window, windows, &status);
    o->padding = wt_options_word("padding", a->padding, "zero reflect symmetric edge ramp", &status);
    o->mel_norm = wt_options_word("mel-norm", a->mel_norm, "slaney none 1 2 inf", &status);
    o->solver = wt_options_word("solver", a->solver, "cd multiplicative multiplicative_kl", &status);
    t->no_dct_norm = wt_options_word("dct-norm", a->dct_norm, "ortho none", &status);
    t->delta.mode = wt_options_word("delta-mode", a->delta_mode, "interp nearest mirror constant wrap", &status);
    t->by_hybrid = wt_options_word("cqt-mode", a->cqt_mode, "full hybrid", &status);
    t->cqt.norm = wt_options_word("filter-norm", a->filter_norm, "1 2 inf none", &status);
    t->chroma.norm = wt_options_word("norm", a->norm, "inf 1 2 none", &status), t->has_norm = a->norm;
    t->phases.zero_phase = wt_options_word("init", a->init, "random zero", &status);
    t->aggregate = !a->aggregate          ? ANALYZE_AGGREGATE_OWN
                   : o->neighbours.median ? ANALYZE_AGGREGATE_MEDIAN
                                          : ANALYZE_AGGREGATE_MEAN;
    return status;
}

// ---- lists, and numbers of which 0 is one

static bool is_wanted(const analyze_options *o, const char *name)
{
    for (int k = 0; k < o->n_features; k++)
        if (!strcmp(o->features[k]->name, name) || (o->features[k]->of && !strcmp(o->features[k]->of->name, name)))
            return true;
    return false;
}

static wt_status choose_ref(const char *text, wt_db_config *db)
{
    char *end;
    if (text && !strcmp(text, "max")) {
        db->reference = WT_DB_REF_MAX;
    } else if (text) {
        db->ref = strtod(text, &end);
        if (end == text || *end || !(db->ref >= 1e-30 && db->ref <= 1e30))
            return wt_fail(WT_ERR_BAD_ARG, "--ref is \"%s\", want a power in 1e-30..1e30, or max", text);
    }
    return WT_OK;
}

static wt_status choose_fill(const char *text, double *fill)
{
    char *end;
    if (!text) return WT_OK;
    *fill = strtod(text, &end);
    return end > text && !*end && !isinf(*fill)
               ? WT_OK
               : wt_fail(WT_ERR_BAD_ARG, "--fill-value is \"%s\", want a number or nan", text);
}

/// Sections of an octave are as many as ratios.
static wt_status choose_intervals(const char *text, const analyze_options *o, analyze_settings *t)
{
    static const char *const want = "up to 64 ascending ratios from 1 to below 2, as 1,9/8,5/4,3/2";
    if (!text) return WT_OK;
    wt_status status = read_numbers("intervals", text, want, t->intervals, ANALYZE_MAX_LIST, &t->n_intervals);
    for (int k = 0; k < t->n_intervals && !status; k++)
        if (!(t->intervals[k] >= 1 && t->intervals[k] < 2 && (k == 0 || t->intervals[k] > t->intervals[k - 1])))
            status = wt_fail(WT_ERR_BAD_ARG, "--intervals is \"%s\", want %s", text, want);
    if (!status && o->bins_per_octave && o->bins_per_octave != t->n_intervals)
        status = wt_fail(WT_ERR_BAD_ARG, "--intervals are %d, want --bins-per-octave %d of them", t->n_intervals,
                         o->bins_per_octave);
    return status;
}

/// Harmonics of salience, and the weights of these or of fir's bands.
static wt_status choose_harmonics(const analyze_arguments *a, const analyze_options *o, analyze_settings *t)
{
    wt_status status = WT_OK;
    if (a->harmonics)
        status = read_numbers("harmonics", a->harmonics, "up to 64 multiples above 0, as 1,2,3", t->harmonics,
                              ANALYZE_MAX_LIST, &t->n_harmonics);
    for (int k = 0; k < t->n_harmonics && !status; k++)
        if (!(t->harmonics[k] > 0))
            status = wt_fail(WT_ERR_BAD_ARG, "--harmonics is \"%s\", want multiples above 0", a->harmonics);
    if (!status && a->weights)
        status = read_numbers("weights", a->weights, "up to 64 numbers from 0 on, as 1,0.5", t->weights,
                              ANALYZE_MAX_LIST, &t->n_weights);
    if (status || !a->weights) return status;
    const int n_harmonics = t->n_harmonics ? t->n_harmonics : 4, n_bands = o->effect.n_edges + 1;
    if (is_wanted(o, "salience") && t->n_weights != n_harmonics)
        return wt_fail(WT_ERR_BAD_ARG, "--weights are %d, salience wants one of each of %d harmonics", t->n_weights,
                       n_harmonics);
    if (is_wanted(o, "fir") && t->n_weights != n_bands)
        return wt_fail(WT_ERR_BAD_ARG, "--weights are %d, fir wants one of each of %d bands", t->n_weights, n_bands);
    return WT_OK;
}

static wt_status choose_beta(const char *text, wt_pyin_config *pyin)
{
    static const char *const want = "two numbers above 0, as 2,18";
    double ab[2];
    int n;
    if (!text) return WT_OK;
    wt_status status = read_numbers("beta-parameters", text, want, ab, 2, &n);
    if (!status && (n < 2 || !(ab[0] > 0 && ab[1] > 0)))
        status = wt_fail(WT_ERR_BAD_ARG, "--beta-parameters is \"%s\", want %s", text, want);
    if (!status) pyin->beta_a = ab[0], pyin->beta_b = ab[1];
    return status;
}

/// Taps have windows of their own, of which spectra have more.
static wt_status choose_fir_window(const analyze_arguments *a, analyze_options *o)
{
    static const int of_fir[] = {
        [WT_WINDOW_HANN] = WT_FIR_HANN,
        [WT_WINDOW_HAMMING] = WT_FIR_HAMMING,
        [WT_WINDOW_BLACKMAN] = WT_FIR_BLACKMAN,
        [WT_WINDOW_BLACKMAN_HARRIS] = -1,
        [WT_WINDOW_KAISER] = WT_FIR_KAISER,
        [WT_WINDOW_GAUSSIAN] = -1,
        [WT_WINDOW_FLAT_TOP] = -1,
        [WT_WINDOW_RECTANGULAR] = WT_FIR_RECTANGULAR,
        [WT_WINDOW_CUSTOM] = -1,
    };
    const int window = a->window ? of_fir[o->window.kind] : WT_FIR_HAMMING;
    if (window >= 0)
        o->effect.fir_window = (wt_fir_window_kind)window;
    else if (is_wanted(o, "fir"))
        return wt_fail(WT_ERR_BAD_ARG, "--window %s, fir wants hamming, hann, blackman, kaiser or rectangular",
                       a->window);
    return WT_OK;
}

static wt_status choose_numbers(const analyze_arguments *a, analyze_options *o)
{
    analyze_settings *t = &o->ops;
    t->tuned = !isnan(a->tuning), t->cqt.tuning = t->tuned ? a->tuning : 0;
    t->has_gamma = a->gamma_hz >= 0, t->cqt.gamma_hz = t->has_gamma ? a->gamma_hz : 0;
    t->chroma.octave_width = a->octwidth < 0 ? 0 : a->octwidth > 0 ? a->octwidth : -1;
    t->phases.momentum = a->momentum > 0 ? a->momentum : 0;
    t->reassigned.keep_all = t->reassigned.ref_power >= 0 && !(t->reassigned.ref_power > 0);
    if (!(t->reassigned.ref_power > 0)) t->reassigned.ref_power = 0;
    t->phases.no_momentum = a->momentum >= 0 && !(a->momentum > 0);
    wt_status status = choose_ref(a->ref, &t->db);
    if (!status) status = choose_fill(a->fill_value, &t->fill);
    if (!status) status = choose_intervals(a->intervals, o, t);
    if (!status) status = choose_harmonics(a, o, t);
    if (!status) status = choose_beta(a->beta, &t->pyin);
    return status ? status : choose_fir_window(a, o);
}

/// A window that has a parameter has no usual one, and the others none.
static wt_status check_window(const wt_window_config *window)
{
    const bool wanted = window->kind == WT_WINDOW_KAISER || window->kind == WT_WINDOW_GAUSSIAN;
    if (wanted == (window->parameter > 0)) return WT_OK;
    return wanted
               ? wt_fail(WT_ERR_BAD_ARG, "--window %s wants --window-parameter X",
                         window->kind == WT_WINDOW_KAISER ? "kaiser" : "gaussian")
               : wt_fail(WT_ERR_BAD_ARG, "--window-parameter %g is of --window kaiser or gaussian", window->parameter);
}

static wt_status read_window(analyze_source *file, const char *path, int n, float *samples)
{
    int64_t n_got;
    wt_status status = analyze_source_read(file, samples, n + 1, n + 1, &n_got);
    if (!status && n_got != n)
        status = wt_fail(WT_ERR_BAD_ARG, "--window-file %s has %s%lld samples, want %d, as --win-length or --n-fft",
                         path, n_got > n ? "more than " : "", (long long)(n_got > n ? n : n_got), n);
    if (!status && analyze_source_info(file).n_repaired_samples)
        status = wt_fail(WT_ERR_BAD_ARG, "--window-file %s has samples that are no numbers", path);
    return status;
}

/// The mean of the file's channels, at its own rate.
static wt_status choose_window_file(const char *path, analyze_options *o)
{
    const int n = o->win_length ? o->win_length : analyze_n_fft(o);
    const analyze_options as_it_is = {.rate_hz = 0};
    analyze_source *file;
    if ((o->window.kind == WT_WINDOW_CUSTOM) != (path != NULL))
        return path ? wt_fail(WT_ERR_BAD_ARG, "--window-file %s is of --window custom", path)
                    : wt_fail(WT_ERR_BAD_ARG, "--window custom wants --window-file FILE");
    if (!path) return WT_OK;
    o->own_window = malloc(sizeof *o->own_window * ((size_t)n + 1));
    if (!o->own_window) return wt_fail(WT_ERR_NO_MEMORY, "analyze: a window of %d samples", n);
    o->window.samples = o->own_window;
    wt_status status = analyze_source_open(&as_it_is, path, &file);
    if (!status) status = read_window(file, path, n, o->own_window);
    analyze_source_close(file);
    return status;
}

/// 0 is left out to the ops; who says it means it.
static wt_status choose_fmin(const analyze_arguments *a, analyze_options *o)
{
    o->fmin_hz = a->fmin_hz > 0 ? a->fmin_hz : 0;
    for (int k = 0; k < o->n_features; k++)
        if (a->fmin_hz >= 0 && !(a->fmin_hz > 0) && o->features[k]->above_zero)
            return wt_fail(WT_ERR_BAD_ARG, "--fmin 0: %s wants a lowest frequency above 0", o->features[k]->name);
    return WT_OK;
}

wt_status analyze_options_choose(analyze_arguments *a)
{
    analyze_effect_options *e = &a->options.effect;
    wt_status status = choose_words(a, &a->options);
    if (!status) status = check_window(&a->options.window);
    if (!status) status = choose_window_file(a->window_file, &a->options);
    if (!status && a->edges)
        status =
            read_numbers("edges", a->edges, "one frequency in Hz, or two as 300,3400", e->edges_hz, 2, &e->n_edges);
    if (!status) status = choose_noise(a->noise, e->noise_s);
    if (!status) status = choose_numbers(a, &a->options);
    return status ? status : choose_fmin(a, &a->options);
}
