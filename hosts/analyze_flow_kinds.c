// The ops that signals flow through: recursive and FIR filters, convolution, emphasis, gain control, noise reduction,
// echo cancellation.

#include "analyze_flow.h"
#include "analyze_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/agc.h>
#include <warptone/echo.h>
#include <warptone/overlap_save.h>

static int n_signals(const analyze_flow *f) { return f->n_lines / f->channels; }

// ---- sections

static wt_status create_sos(analyze_flow *f, const double *sos, int n_sections)
{
    const wt_sos_config config = {.sos = sos, .n_sections = n_sections, .channels = f->channels};
    return wt_sos_plan_create(f->device, &config, n_signals(f), (wt_sos_plan **)&f->op);
}

static wt_status create_filter(analyze_flow *f)
{
    double sos[WT_SOS_MAX_SECTIONS][6];
    int n;
    wt_status status = analyze_sections(&(analyze_signal){.options = &f->options, .rate_hz = f->rate_hz}, sos, &n);
    return status ? status : create_sos(f, sos[0], n);
}

static void destroy_sos(void *op) { wt_sos_plan_destroy(op); }

static wt_status reset_sos(analyze_flow *f) { return wt_sos_plan_reset(f->op, f->stream); }

static wt_status enqueue_sos(analyze_flow *f, int n)
{
    return wt_sos_plan_enqueue(f->op, f->stream, f->in, 0, n, f->out, 0);
}

// ---- emphasis: the signal began earlier on the line through its first two samples, as librosa has it

static double coefficient(const analyze_flow *f)
{
    return f->options.effect.coefficient > 0 ? f->options.effect.coefficient : 0.97;
}

static wt_status create_preemphasis(analyze_flow *f)
{
    return create_sos(f, (double[]){1, -coefficient(f), 0, 1, 0, 0}, 1);
}

static wt_status create_deemphasis(analyze_flow *f)
{
    return create_sos(f, (double[]){1, 0, 0, 1, -coefficient(f), 0}, 1);
}

/// Begin as if each line had held a level for ever: `scale` times (`weight` x[0] - x[1]).
static wt_status begin_on_a_line(analyze_flow *f, int n, double scale, double weight)
{
    float *levels = malloc(sizeof *levels * (size_t)f->n_lines), two[2];
    wt_status status = levels ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: levels", f->kind->like->name);
    for (int k = 0; k < f->n_lines && !status; k++) {
        const size_t at = sizeof *two * (size_t)k * (size_t)n, bytes = n > 1 ? sizeof two : sizeof *two;
        status = wt_stream_download(f->stream, two, f->in, at, bytes);
        if (!status) status = wt_stream_synchronize(f->stream);
        if (n < 2) two[1] = two[0];
        if (!status) levels[k] = (float)(scale * (weight * two[0] - two[1]));
    }
    const size_t bytes = sizeof *levels * (size_t)f->n_lines;
    if (!status) status = wt_stream_upload(f->stream, f->beside, 0, levels, bytes);
    if (!status) status = wt_stream_synchronize(f->stream);
    if (!status) status = wt_sos_plan_reset_to(f->op, f->stream, f->beside, 0);
    free(levels);
    return status;
}

/// librosa's state is 2 x[0] - x[1]; a level l leaves -c l.
static wt_status begin_preemphasis(analyze_flow *f, const analyze_batch *b, int n)
{
    (void)b;
    return begin_on_a_line(f, n, -1 / coefficient(f), 2);
}

/// librosa takes ((2 - c) x[0] - x[1]) / (3 - c) from the first output; a level l leaves l c / (1 - c).
static wt_status begin_deemphasis(analyze_flow *f, const analyze_batch *b, int n)
{
    const double c = coefficient(f);
    (void)b;
    return begin_on_a_line(f, n, -(1 - c) / (c * (3 - c)), 2 - c);
}

// ---- FIR

static wt_status create_fir_of(analyze_flow *f, const float *taps, int n_taps)
{
    const wt_overlap_save_plan_config config = {
        .filter = {.taps = taps, .n_taps = n_taps, .channels = 1}, .n_signals = f->n_lines, .max_frames = f->most};
    f->n_taps = n_taps;
    return wt_overlap_save_plan_create(f->device, &config, (wt_overlap_save_plan **)&f->op);
}

static wt_status create_fir(analyze_flow *f)
{
    float *taps = NULL;
    int n;
    wt_status status = analyze_fir_taps(&(analyze_signal){.options = &f->options, .rate_hz = f->rate_hz}, &taps, &n);
    if (!status) status = create_fir_of(f, taps, n);
    free(taps);
    return status;
}

static wt_status create_convolve(analyze_flow *f)
{
    enum { MOST_TAPS = 1 << 20 };
    const char *path = f->options.effect.impulse;
    if (!path) return wt_fail(WT_ERR_BAD_ARG, "convolve wants --impulse FILE");
    float *taps = malloc(sizeof *taps * (MOST_TAPS + 1));
    int64_t n;
    wt_status status = taps ? analyze_flow_read(f, path, 1, 0, MOST_TAPS + 1, taps, &n)
                            : wt_fail(WT_ERR_NO_MEMORY, "convolve: %d taps", MOST_TAPS);
    if (!status && (n < 1 || n > MOST_TAPS))
        status = wt_fail(WT_ERR_BAD_ARG, "convolve: --impulse %s has %s%lld samples at %d Hz, want 1..%d", path,
                         n > MOST_TAPS ? "more than " : "", (long long)(n > MOST_TAPS ? MOST_TAPS : n), f->rate_hz,
                         MOST_TAPS);
    if (!status) status = create_fir_of(f, taps, (int)n);
    free(taps);
    return status;
}

static void destroy_fir(void *op) { wt_overlap_save_plan_destroy(op); }

static wt_status reset_fir(analyze_flow *f) { return wt_overlap_save_plan_reset(f->op, f->stream); }

static wt_status enqueue_fir(analyze_flow *f, int n)
{
    return wt_overlap_save_plan_enqueue(f->op, f->stream, f->in, 0, n, f->out, 0);
}

static int64_t latency_of_convolve(const analyze_flow *f) { return wt_overlap_save_plan_latency_frames(f->op); }

/// The middle tap is at the output's time.
static int64_t latency_of_fir(const analyze_flow *f) { return latency_of_convolve(f) + (f->n_taps - 1) / 2; }

// ---- gain control

static wt_status create_agc(analyze_flow *f)
{
    const analyze_effect_options *e = &f->options.effect;
    const wt_agc_config config = {
        .rate_hz = f->rate_hz, .channels = f->channels, .target_db = e->target_db, .max_gain_db = e->max_gain_db};
    return wt_agc_plan_create(f->device, &config, n_signals(f), (wt_agc_plan **)&f->op);
}

static void destroy_agc(void *op) { wt_agc_plan_destroy(op); }

static wt_status reset_agc(analyze_flow *f) { return wt_agc_plan_reset(f->op, f->stream); }

static wt_status enqueue_agc(analyze_flow *f, int n)
{
    return wt_agc_plan_enqueue(f->op, f->stream, f->in, 0, n, f->out, 0);
}

// ---- noise reduction

static wt_status create_denoise(analyze_flow *f)
{
    const analyze_effect_options *e = &f->options.effect;
    const wt_denoise_plan_config config = {.denoise = {.rate_hz = f->rate_hz,
                                                       .channels = 1,
                                                       .mode = e->denoiser,
                                                       .stationary = e->noise_s[1] > 0,
                                                       .max_cut_db = e->max_cut_db},
                                           .n_signals = f->n_lines,
                                           .max_frames = f->most};
    return wt_denoise_plan_create(f->device, &config, (wt_denoise_plan **)&f->op);
}

static void destroy_denoise(void *op) { wt_denoise_plan_destroy(op); }

static wt_status reset_denoise(analyze_flow *f) { return wt_denoise_plan_reset(f->op, f->stream); }

/// Each file's own stretch of noise; lines without a file learn the first one's.
static wt_status begin_denoise(analyze_flow *f, const analyze_batch *b, int n_given)
{
    const double *noise = f->options.effect.noise_s;
    const int64_t from = (int64_t)(noise[0] * f->rate_hz), n = (int64_t)(noise[1] * f->rate_hz) - from;
    (void)n_given;
    if (noise[1] <= 0) return WT_OK;
    if (n < wt_denoise_plan_window_frames(f->op))
        return wt_fail(WT_ERR_BAD_ARG, "--noise is %lld samples long, want %d or more", (long long)n,
                       wt_denoise_plan_window_frames(f->op));
    float *heard = calloc((size_t)f->n_lines, sizeof *heard * (size_t)n);
    wt_status status = heard ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "denoise: noise of %d signals", f->n_lines);
    int64_t n_there = n;
    for (int k = 0; k < b->n_used && !status && n_there == n; k += b->channels)
        status = analyze_flow_read(f, b->paths[k / b->channels], b->channels, from, n, heard + k * n, &n_there);
    if (!status && n_there < n)
        status = wt_fail(WT_ERR_LENGTH, "--noise ends at %g s, the signal at %.6g s", noise[1],
                         (double)(from + n_there) / f->rate_hz);
    for (int k = b->n_used; k < f->n_lines && !status; k++) memcpy(heard + k * n, heard, sizeof *heard * (size_t)n);
    if (!status) status = wt_denoise_plan_learn(f->op, f->stream, heard, (int)n);
    free(heard);
    return status;
}

static wt_status enqueue_denoise(analyze_flow *f, int n)
{
    return wt_denoise_plan_enqueue(f->op, f->stream, f->in, 0, n, f->out, 0);
}

static int64_t latency_of_denoise(const analyze_flow *f) { return wt_denoise_plan_latency_frames(f->op); }

// ---- echo cancellation

enum { ECHO_BLOCK_MS = 10 };

static wt_status open_playback(analyze_flow *f)
{
    analyze_options options = f->options;
    analyze_source_close(f->playback);
    f->playback = NULL;
    options.rate_hz = f->rate_hz, options.keep_channels = false;
    return analyze_source_open(&options, options.effect.playback, &f->playback);
}

static wt_status create_echo(analyze_flow *f)
{
    const wt_echo_plan_config config = {.echo = {.rate_hz = f->rate_hz,
                                                 .channels = 1,
                                                 .tail_ms = f->options.effect.tail_ms,
                                                 .latency_ms = ECHO_BLOCK_MS},
                                        .n_signals = f->n_lines,
                                        .max_frames = f->most};
    if (!f->options.effect.playback) return wt_fail(WT_ERR_BAD_ARG, "echo_cancel wants --playback FILE");
    wt_status status = open_playback(f);
    return status ? status : wt_echo_plan_create(f->device, &config, (wt_echo_plan **)&f->op);
}

static void destroy_echo(void *op) { wt_echo_plan_destroy(op); }

static wt_status reset_echo(analyze_flow *f)
{
    wt_status status = open_playback(f);
    return status ? status : wt_echo_plan_reset(f->op, f->stream);
}

/// All lines hear the same.
static wt_status enqueue_echo(analyze_flow *f, int n)
{
    const size_t line = sizeof(float) * (size_t)n;
    int64_t n_got;
    float *heard = malloc(line);
    wt_status status = heard ? analyze_source_read(f->playback, heard, n, n, &n_got)
                             : wt_fail(WT_ERR_NO_MEMORY, "echo_cancel: a block of %d samples", n);
    if (!status) memset(heard + n_got, 0, sizeof *heard * (size_t)(n - n_got));
    for (int k = 0; k < f->n_lines && !status; k++)
        status = wt_stream_upload(f->stream, f->beside, (size_t)k * line, heard, line);
    if (!status) status = wt_echo_plan_enqueue(f->op, f->stream, f->in, 0, f->beside, 0, n, f->out, 0);
    const wt_status waited = wt_stream_synchronize(f->stream); // `heard` is borrowed until then
    free(heard);
    return status ? status : waited;
}

static int64_t latency_of_echo(const analyze_flow *f) { return lround(ECHO_BLOCK_MS * (double)f->rate_hz / 1000); }

// clang-format off
const analyze_flow_kind analyze_flow_kinds[ANALYZE_FLOWS] = {
    [ANALYZE_FLOW_FILTER]      = {&analyze_like.filter, false, create_filter, destroy_sos, reset_sos,
                                  NULL, enqueue_sos, NULL},
    [ANALYZE_FLOW_FIR]         = {&analyze_like.fir, false, create_fir, destroy_fir, reset_fir,
                                  NULL, enqueue_fir, latency_of_fir},
    [ANALYZE_FLOW_CONVOLVE]    = {&analyze_like.convolve, false, create_convolve, destroy_fir, reset_fir,
                                  NULL, enqueue_fir, latency_of_convolve},
    [ANALYZE_FLOW_PREEMPHASIS] = {&analyze_like.preemphasis, false, create_preemphasis, destroy_sos, reset_sos,
                                  begin_preemphasis, enqueue_sos, NULL},
    [ANALYZE_FLOW_DEEMPHASIS]  = {&analyze_like.deemphasis, false, create_deemphasis, destroy_sos, reset_sos,
                                  begin_deemphasis, enqueue_sos, NULL},
    [ANALYZE_FLOW_AGC]         = {&analyze_like.agc, true, create_agc, destroy_agc, reset_agc, NULL, enqueue_agc, NULL},
    [ANALYZE_FLOW_DENOISE]     = {&analyze_like.denoise, false, create_denoise, destroy_denoise, reset_denoise,
                                  begin_denoise, enqueue_denoise, latency_of_denoise},
    [ANALYZE_FLOW_ECHO_CANCEL] = {&analyze_like.echo_cancel, false, create_echo, destroy_echo, reset_echo,
                                  NULL, enqueue_echo, latency_of_echo},
};
// clang-format on
