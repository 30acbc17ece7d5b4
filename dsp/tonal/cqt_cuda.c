// One launch a halving, one an octave, but where no block transforms its frames. All tables lie in one buffer, the
// halved signals in another.

#include "cqt_plan.h"
#include "cqt_wide.h"
#include "fft_internal.h"
#include "halve.h"
#include "op.h"
#include "soxr_hq.h"

#include "cqt_kernel.h"
#include "fft_kernel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/kernel.h>

typedef struct octave {
    wt_module *module;
    wt_kernel *kernel;
    size_t twiddles, roots, window, value, begin, bin; // words from the start of the tables
    wt__cqt_wide *wide; // in place of the kernel; one of all octaves whose frames are alike
    bool borrowed;      // the wide one is another octave's
} octave;

struct wt__cqt_cuda {
    const wt__cqt_plan *plan;
    wt_module *module;
    wt_kernel *halve;
    octave *octaves; // [n_parts]
    wt_buffer *tables, *signals;
    wt_buffer *taps; // precise: [early + 1][WT_SOXR_HALF + 1] of the halvings, in double
    size_t twiddles, back, roots; // of a halving
    size_t filter;                // those of early halvings, then that of all others
    int64_t max_samples;
};

static const double pi = 3.14159265358979323846;

// Samples of the signal that the kernels keep at a level: those behind its end go on into the next early halving.
static int64_t kept_samples(const wt__cqt_plan *plan, int64_t n, int level)
{
    const int64_t tail = level && level < plan->early ? (int64_t)WT__CQT_TAIL << (plan->early - level) : 0;
    return wt__cqt_samples(n, level) + tail;
}

// ---- tables

// w_n^k, k = 0 .. n / 2; the last is real.
static size_t write_roots(int n, float *table)
{
    for (int k = 0; table && k <= n / 2; k++) {
        table[2 * k] = (float)cos(2 * pi * k / n);
        table[2 * k + 1] = 2 * k == n ? 0 : (float)-sin(2 * pi * k / n);
    }
    return 2 * ((size_t)n / 2 + 1);
}

// No block transforms its frames, or not in double.
static bool is_wide(const wt__cqt_plan *plan, const wt__cqt_part *p)
{
    return plan->config.precise || p->n_fft < 4 || p->n_fft > 2 * WT_FFT_BLOCK_MAX;
}

static size_t take(size_t *end, size_t words)
{
    const size_t at = *end;
    *end += (words + 3) / 4 * 4;
    return at;
}

// Where each table lies; returns the words of all.
static size_t map_tables(wt__cqt_cuda *c)
{
    size_t end = 0;
    c->twiddles = take(&end, wt__fft_block_twiddles(WT_CQT_HALVE_N / 2, NULL));
    c->back = take(&end, wt__fft_block_twiddles(WT_CQT_HALVE_N / 4, NULL));
    c->roots = take(&end, write_roots(WT_CQT_HALVE_N, NULL));
    c->filter = end;
    for (int i = 0; i <= c->plan->early; i++) take(&end, WT_CQT_HALVE_N / 2 + 1);
    for (int i = 0; i < c->plan->n_parts; i++) {
        const wt__cqt_part *p = &c->plan->parts[i];
        octave *o = &c->octaves[i];
        const size_t n = (size_t)p->begin[p->n_rows];
        const bool wide = is_wide(c->plan, p);
        o->twiddles = take(&end, wide ? 0 : wt__fft_block_twiddles(p->n_fft / 2, NULL));
        o->roots = take(&end, wide ? 0 : write_roots(p->n_fft, NULL));
        o->window = take(&end, p->pseudo && !wide ? (size_t)p->n_fft : 0);
        o->value = take(&end, p->pseudo ? n : 2 * n);
        o->begin = take(&end, (size_t)p->n_rows + 1);
        o->bin = take(&end, n);
    }
    return end + 4;
}

// The filter that makes level `level` + 1.
static size_t filter_at(const wt__cqt_cuda *c, int level)
{
    size_t at = c->filter;
    for (int i = 0; i < level && i < c->plan->early; i++) take(&at, WT_CQT_HALVE_N / 2 + 1);
    return at;
}

static wt_status write_tables(const wt__cqt_cuda *c, float *table)
{
    const int early = c->plan->early;
    wt_status status = WT_OK;
    for (int i = 0; i <= early && !status; i++) // half for the fold, 2 / N of the way back
        status =
            wt__halve_spectrum(i < early ? early : 1, i < early ? i : 0, 1.0 / WT_CQT_HALVE_N, table + filter_at(c, i));
    wt__fft_block_twiddles(WT_CQT_HALVE_N / 2, table + c->twiddles);
    wt__fft_block_twiddles(WT_CQT_HALVE_N / 4, table + c->back);
    write_roots(WT_CQT_HALVE_N, table + c->roots);
    for (int i = 0; i < c->plan->n_parts && !status; i++) {
        const wt__cqt_part *p = &c->plan->parts[i];
        const octave *o = &c->octaves[i];
        const size_t n = (size_t)p->begin[p->n_rows];
        memcpy(table + o->value, p->value, (p->pseudo ? n : 2 * n) * sizeof(float));
        memcpy(table + o->begin, p->begin, ((size_t)p->n_rows + 1) * sizeof(int));
        memcpy(table + o->bin, p->bin, n * sizeof(int));
        if (is_wide(c->plan, p)) continue;
        wt__fft_block_twiddles(p->n_fft / 2, table + o->twiddles);
        write_roots(p->n_fft, table + o->roots);
        if (p->pseudo) status = wt_window_fill(&(wt_window_config){.n = p->n_fft}, table + o->window);
    }
    return status;
}

static wt_status make_tables(wt_device *device, wt__cqt_cuda *c)
{
    const size_t words = map_tables(c);
    float *table = calloc(words, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "cqt: %zu words of tables", words);
    wt_stream *stream = NULL;
    wt_status status = write_tables(c, table);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, words * sizeof *table, &c->tables);
    if (!status) status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_stream_upload(stream, c->tables, 0, table, words * sizeof *table);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    free(table);
    return status;
}

// ---- life

static wt_status load_octave(wt_device *device, const wt__cqt_plan *plan, const wt__cqt_part *p, octave *o)
{
    char options[3][48];
    snprintf(options[0], sizeof options[0], "-DCQT_POINTS=%d", p->n_fft / 2);
    snprintf(options[1], sizeof options[1], "-DCQT_PSEUDO=%d", (int)p->pseudo);
    snprintf(options[2], sizeof options[2], "-DCQT_PAD=%d", (int)plan->config.pad);
    wt_status status = wt__op_module(device, "kernels/tonal/cqt_octave.cu", options, 3, &o->module);
    return status ? status : wt_module_get_kernel(o->module, "cqt_octave", &o->kernel);
}

static wt_status load_wide(wt_device *device, wt__cqt_cuda *c, int part)
{
    const wt__cqt_part *p = &c->plan->parts[part];
    octave *o = &c->octaves[part];
    for (int i = 0; i < part && !o->wide; i++)
        if (p[i - part].n_fft == p->n_fft && p[i - part].pseudo == p->pseudo)
            o->wide = c->octaves[i].wide, o->borrowed = true;
    if (o->wide) return WT_OK;
    return wt__cqt_wide_create(device, c->plan, p, wt__cqt_plan_frames(c->plan, c->max_samples), &o->wide);
}

static wt_status load_octaves(wt_device *device, wt__cqt_cuda *c)
{
    const wt__cqt_plan *plan = c->plan;
    wt_status status = WT_OK;
    for (int i = 0; i < plan->n_parts && !status; i++)
        status = is_wide(plan, &plan->parts[i]) ? load_wide(device, c, i)
                                          : load_octave(device, plan, &plan->parts[i], &c->octaves[i]);
    return status;
}

static wt_status make_taps(wt_device *device, wt__cqt_cuda *c)
{
    enum { TAPS = WT_SOXR_HALF + 1 };
    const int early = c->plan->early;
    const size_t bytes = (size_t)(early + 1) * TAPS * sizeof(double);
    double *taps = malloc(bytes);
    wt_status status = taps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "cqt: taps of %d halvings", early + 1);
    for (int i = 0; i <= early && !status; i++)
        status = wt__soxr_half(i < early ? early : 1, i < early ? i : 0, taps + i * TAPS);
    if (!status) status = wt__op_upload(device, taps, bytes, &c->taps);
    free(taps);
    return status;
}

static wt_status take_signals(wt_device *device, wt__cqt_cuda *c)
{
    int64_t samples = 1;
    for (int level = 1; level < c->plan->n_levels; level++) samples += kept_samples(c->plan, c->max_samples, level);
    const size_t bytes = (size_t)samples * (size_t)c->plan->config.channels * sizeof(float);
    return wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->signals);
}

wt_status wt__cqt_cuda_create(wt_device *device, const wt__cqt_plan *plan, int64_t max_samples, wt__cqt_cuda **cuda)
{
    *cuda = NULL;
    if (max_samples < 1)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: max_samples %lld, want 1 or more on a GPU", (long long)max_samples);
    wt__cqt_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "cqt: CUDA plan");
    c->plan = plan, c->max_samples = max_samples;
    c->octaves = calloc((size_t)plan->n_parts, sizeof *c->octaves);
    wt_status status = c->octaves ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "cqt: %d octaves", plan->n_parts);
    if (!status) status = make_tables(device, c);
    if (!status) status = take_signals(device, c);
    if (!status)
        status = wt_module_create(device, &(wt_module_config){.name = "kernels/tonal/cqt_halve.cu"}, &c->module);
    if (!status && plan->config.precise) status = make_taps(device, c);
    if (!status) status = wt_module_get_kernel(c->module, c->taps ? "cqt_halve_double" : "cqt_halve", &c->halve);
    if (!status) status = load_octaves(device, c);
    if (status)
        wt__cqt_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__cqt_cuda_destroy(wt__cqt_cuda *cuda)
{
    if (!cuda) return;
    for (int i = 0; cuda->octaves && i < cuda->plan->n_parts; i++) {
        wt_module_destroy(cuda->octaves[i].module);
        if (!cuda->octaves[i].borrowed) wt__cqt_wide_destroy(cuda->octaves[i].wide);
    }
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->signals);
    wt_buffer_destroy(cuda->taps);
    free(cuda->octaves);
    free(cuda);
}

// ---- running

static wt_status launch_halve(const wt__cqt_cuda *c, wt_stream *stream, const float *in, int64_t n, int64_t begin,
                              int level, float *out)
{
    const float *tables = (const float *)wt_buffer_address(c->tables);
    const wt__cqt_plan *plan = c->plan;
    const int64_t n_out = kept_samples(plan, n, level);
    const int early = plan->early;
    wt_cqt_halve_args args = {
        .in = in,
        .out = out,
        .twiddles = tables + c->twiddles,
        .back = tables + c->back,
        .roots = tables + c->roots,
        .filter = tables + filter_at(c, level - 1),
        .n_in = kept_samples(plan, n, level - 1),
        .n_out = n_out,
        .n_sounding = level == plan->early ? wt__cqt_sounding(n, level) : n_out,
        .phase = wt__cqt_phase(begin, level),
    };
    const int64_t runs = (args.phase + n_out + WT_CQT_HALVE_OUT - 1) / WT_CQT_HALVE_OUT;
    const wt_launch launch = {.grid = {(int)runs, plan->config.channels},
                              .block = {wt__fft_threads(WT_CQT_HALVE_N / 2, 1024)},
                              .shared_bytes = (size_t)wt__fft_shared_floats(WT_CQT_HALVE_N / 2) * sizeof(float)};
    if (!c->taps) return wt_kernel_launch(c->halve, stream, &launch, &WT_ARG(args), 1);
    args.taps = (const double *)wt_buffer_address(c->taps);
    args.taps += (size_t)(level - 1 < early ? level - 1 : early) * (WT_SOXR_HALF + 1);
    const wt_launch sums = {
        .grid = {(int)((n_out + WT_CQT_HALVE_SUMS - 1) / WT_CQT_HALVE_SUMS), plan->config.channels},
        .block = {WT_CQT_HALVE_SUMS}};
    return wt_kernel_launch(c->halve, stream, &sums, &WT_ARG(args), 1);
}

static wt_status launch_octave(const wt__cqt_cuda *c, wt_stream *stream, const float *in, int64_t n, int part,
                               const wt_cqt_tile *tile, float *out)
{
    const float *tables = (const float *)wt_buffer_address(c->tables);
    const wt__cqt_plan *plan = c->plan;
    const wt__cqt_part *p = &plan->parts[part];
    const octave *o = &c->octaves[part];
    const wt_cqt_octave_args args = {.in = in,
                                     .out = out,
                                     .twiddles = tables + o->twiddles,
                                     .roots = tables + o->roots,
                                     .window = tables + o->window,
                                     .value = tables + o->value,
                                     .begin = (const int *)tables + o->begin,
                                     .bin = (const int *)tables + o->bin,
                                     .n = kept_samples(plan, n, p->level),
                                     .n_frames = wt__cqt_plan_frames(plan, n),
                                     .first_frame = (int)tile->first,
                                     .end_frame = (int)(tile->first + tile->count),
                                     .hop = p->hop,
                                     .first = p->first,
                                     .n_rows = p->n_rows,
                                     .n_bins = plan->config.n_bins,
                                     .magnitude = plan->magnitude};
    if (o->wide) return wt__cqt_wide_enqueue(o->wide, stream, &args);
    const int points = p->n_fft / 2, sequences = wt__fft_sequences(points);
    const size_t floats = (size_t)sequences * (size_t)(wt__fft_shared_floats(points) + 2 * (points + 1));
    const wt_launch launch = {.grid = {(int)((tile->count + sequences - 1) / sequences), plan->config.channels},
                              .block = {wt__fft_threads(points, 1024), sequences},
                              .shared_bytes = floats * sizeof(float)};
    return wt_kernel_launch(o->kernel, stream, &launch, &WT_ARG(args), 1);
}

wt_status wt__cqt_cuda_enqueue(wt__cqt_cuda *cuda, wt_stream *stream, const float *in, int64_t n,
                               const wt_cqt_tile *tile, float *out)
{
    const wt__cqt_plan *plan = cuda->plan;
    if (n > cuda->max_samples)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: %lld samples, want %lld at most (max_samples)", (long long)n,
                       (long long)cuda->max_samples);
    float *next = (float *)wt_buffer_address(cuda->signals);
    wt_status status = WT_OK;
    for (int level = 0, part = 0; level < plan->n_levels && !status; level++) {
        for (; part < plan->n_parts && plan->parts[part].level == level && !status; part++)
            status = launch_octave(cuda, stream, in, n, part, tile, out);
        if (level + 1 == plan->n_levels || status) break;
        status = launch_halve(cuda, stream, in, n, tile->begin, level + 1, next);
        in = next;
        next += kept_samples(plan, n, level + 1) * plan->config.channels;
    }
    return status;
}
