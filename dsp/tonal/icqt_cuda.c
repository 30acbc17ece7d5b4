// Two kernels a level: the octaves that lie there are added to what has come from below, and the sum is doubled. All
// tables of an octave's filters lie in one buffer; signals go to and fro between two. At last the beginning and the
// end.

#include "icqt_kernel.h"
#include "icqt_plan.h"
#include "icqt_wide.h"
#include "spectrum_cuda.h"

#include <stdlib.h>
#include <string.h>

typedef struct octave {
    wt__spectrum_cuda spectrum;
    wt_kernel *kernel;
    wt_buffer *filters; // values, rows, begins
    wt_icqt_octave_args args;
    wt__icqt_wide *wide; // in place of the kernel; one of all octaves whose spectra are as long
    bool borrowed;       // the wide one is another octave's
} octave;

struct wt__icqt_cuda {
    wt_device *device;
    const wt__icqt_plan *plan;
    octave *octaves;
    wt_module *module;
    wt_kernel *twice, *ends;
    wt_buffer *taps, *signal[2];
    wt_buffer *end_rows, *kept; // NULL: nothing is doubled twice
    wt_icqt_ends_args at_ends;
};

// ---- life

// The filters bin by bin: who has it, in order.
static void turn(const wt__cqt_basis *b, float *value, int *row, int *begin)
{
    const int bins = b->n_fft / 2 + 1;
    memset(begin, 0, (size_t)(bins + 1) * sizeof *begin);
    for (int i = 0; i < b->begin[b->n_rows]; i++) begin[b->bin[i] + 1]++;
    for (int k = 0; k < bins; k++) begin[k + 1] += begin[k];
    for (int r = 0; r < b->n_rows; r++)
        for (int i = b->begin[r]; i < b->begin[r + 1]; i++) {
            const int at = begin[b->bin[i]]++; // becomes the next bin's beginning
            value[2 * at] = (float)b->value[2 * i], value[2 * at + 1] = (float)b->value[2 * i + 1];
            row[at] = r;
        }
    memmove(begin + 1, begin, (size_t)bins * sizeof *begin);
    begin[0] = 0;
}

static wt_status upload_filters(wt_device *device, const wt__cqt_basis *b, octave *o)
{
    const size_t n = (size_t)b->begin[b->n_rows], bins = (size_t)b->n_fft / 2 + 1, words = 3 * n + bins + 1;
    float *table = calloc(words, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "icqt: %zu words of filters", words);
    int *row = (int *)(table + 2 * n), *begin = row + n;
    turn(b, table, row, begin);
    wt_status status = wt__op_upload(device, table, words * sizeof *table, &o->filters);
    free(table);
    if (status) return status;
    o->args.value = (const float *)wt_buffer_address(o->filters);
    o->args.row = (const int *)(o->args.value + 2 * n);
    o->args.begin = o->args.row + n;
    return WT_OK;
}

// Also sees that the walk of the longest transform fits the device.
static wt_status load_kernel(wt_device *device, const wt__icqt_plan *plan, const wt__icqt_octave *from, octave *o)
{
    const int n_fft = from->basis.n_fft;
    float *window = malloc((size_t)n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "icqt: window of %d", n_fft);
    for (int i = 0; i < n_fft; i++) window[i] = 1;
    wt_status status =
        wt__spectrum_cuda_open("icqt", device, "kernels/tonal/icqt_octave.cu", n_fft, window, &o->spectrum);
    free(window);
    o->spectrum.args.hop = from->hop, o->spectrum.args.margin = n_fft / 2;
    wt_launch launch;
    if (!status)
        status = wt__spectrum_cuda_walk("icqt", device, &o->spectrum, plan->config.channels,
                                        plan->max_frames * from->hop, &o->args.walk, &launch);
    return status ? status : wt_module_get_kernel(o->spectrum.module, "icqt_octave", &o->kernel);
}

static wt_status load_wide(wt_device *device, wt__icqt_cuda *c, int k)
{
    const wt__icqt_plan *p = c->plan;
    octave *o = &c->octaves[k];
    const int n_fft = p->octaves[k].basis.n_fft;
    o->args.walk.hop = p->octaves[k].hop;
    for (int i = 0; i < k && !o->wide; i++)
        if (p->octaves[i].basis.n_fft == n_fft) o->wide = c->octaves[i].wide, o->borrowed = o->wide != NULL;
    if (o->wide) return WT_OK;
    return wt__icqt_wide_create(device, n_fft, p->config.channels, p->max_frames, p->max_frames * p->config.hop,
                                &o->wide);
}

static wt_status load_octave(wt_device *device, wt__icqt_cuda *c, int k)
{
    const wt__icqt_octave *from = &c->plan->octaves[k];
    octave *o = &c->octaves[k];
    wt_status status = load_kernel(device, c->plan, from, o);
    if (status == WT_ERR_UNSUPPORTED) status = load_wide(device, c, k);
    o->args.n_bins = c->plan->config.n_bins, o->args.first = from->basis.first;
    return status ? status : upload_filters(device, &from->basis, o);
}

static wt_status take_signals(wt_device *device, wt__icqt_cuda *c)
{
    const size_t samples = (size_t)(c->plan->max_frames * c->plan->config.hop) + 2 * WT_ICQT_TAIL,
                 bytes = samples * (size_t)c->plan->config.channels * sizeof(float);
    wt_status status = wt__op_upload(device, c->plan->taps, sizeof c->plan->taps, &c->taps);
    for (int i = 0; i < 2 && !status; i++) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->signal[i]);
    return status;
}

static size_t kept_bytes(const wt__icqt_cuda *c)
{
    const size_t lines = (size_t)c->plan->ends.n_levels * (size_t)c->plan->config.channels;
    return lines * 2 * WT_ICQT_END_KEPT * sizeof(float);
}

// All levels' rows in one buffer.
static wt_status load_ends(wt_device *device, wt__icqt_cuda *c)
{
    const wt__icqt_ends *ends = &c->plan->ends;
    wt_icqt_ends_args *a = &c->at_ends;
    size_t floats = 0;
    if (ends->n_levels < 3) return WT_OK;
    for (int i = 2; i < ends->n_levels; i++)
        floats += (size_t)(wt__icqt_end_stride(i) + ends->levels[i].n_start) * WT_ICQT_END_TAPS;
    float *table = malloc(floats * sizeof *table), *at = table;
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "icqt: %zu words of rows", floats);
    for (int i = 2; i < ends->n_levels; i++) {
        const wt__icqt_end_rows *r = &ends->levels[i];
        const size_t n_rows = (size_t)(wt__icqt_end_stride(i) * WT_ICQT_END_TAPS),
                     n_start = (size_t)r->n_start * WT_ICQT_END_TAPS;
        memcpy(at, r->rows, n_rows * sizeof *at), at += n_rows;
        memcpy(at, r->start, n_start * sizeof *at), at += n_start;
    }
    wt_status status = wt__op_upload(device, table, floats * sizeof *table, &c->end_rows);
    free(table);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, kept_bytes(c), &c->kept);
    if (!status) status = wt_module_get_kernel(c->module, "icqt_ends", &c->ends);
    if (status) return status;
    *a = (wt_icqt_ends_args){.kept = (const float *)wt_buffer_address(c->kept),
                             .n_levels = ends->n_levels,
                             .n_lines = c->plan->config.channels};
    const float *row = (const float *)wt_buffer_address(c->end_rows);
    for (int i = 2; i < ends->n_levels; i++) {
        a->n_start[i] = ends->levels[i].n_start;
        a->rows[i] = row, row += wt__icqt_end_stride(i) * WT_ICQT_END_TAPS;
        a->start[i] = row, row += (size_t)a->n_start[i] * WT_ICQT_END_TAPS;
    }
    return WT_OK;
}

wt_status wt__icqt_cuda_create(wt_device *device, const wt__icqt_plan *plan, wt__icqt_cuda **cuda)
{
    *cuda = NULL;
    wt__icqt_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "icqt: CUDA plan");
    c->device = device, c->plan = plan;
    c->octaves = calloc((size_t)plan->n_octaves, sizeof *c->octaves);
    wt_status status = c->octaves ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "icqt: %d octaves", plan->n_octaves);
    for (int i = 0; i < plan->n_octaves && !status; i++) status = load_octave(device, c, i);
    if (!status) status = wt__op_module(device, "kernels/tonal/icqt_double.cu", NULL, 0, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "icqt_double", &c->twice);
    if (!status) status = take_signals(device, c);
    if (!status) status = load_ends(device, c);
    if (status)
        wt__icqt_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__icqt_cuda_destroy(wt__icqt_cuda *cuda)
{
    if (!cuda) return;
    for (int i = 0; cuda->octaves && i < cuda->plan->n_octaves; i++) {
        wt__spectrum_cuda_release(&cuda->octaves[i].spectrum);
        wt_buffer_destroy(cuda->octaves[i].filters);
        if (!cuda->octaves[i].borrowed) wt__icqt_wide_destroy(cuda->octaves[i].wide);
    }
    free(cuda->octaves);
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->taps);
    wt_buffer_destroy(cuda->signal[0]);
    wt_buffer_destroy(cuda->signal[1]);
    wt_buffer_destroy(cuda->end_rows);
    wt_buffer_destroy(cuda->kept);
    free(cuda);
}

// ---- running

typedef struct call {
    wt_stream *stream;
    const float *in;
    float *out;
    int64_t n_frames, used, length;
} call;

static wt_status launch_octave(const wt__icqt_cuda *c, const call *k, int i, float *signal)
{
    const octave *o = &c->octaves[i];
    const bool last = i + 1 == c->plan->n_octaves;
    wt_icqt_octave_args args = o->args;
    wt_launch launch;
    args.in = k->in, args.under = signal, args.out = last ? k->out : signal;
    args.stored_frames = k->n_frames, args.n_frames = (int)k->used, args.last = last;
    args.n = c->plan->octaves[i].hop * (k->used - 1);
    const int level = c->plan->octaves[i].doublings;
    if (c->kept && level >= 2 && level < c->at_ends.n_levels)
        args.kept =
            (float *)wt_buffer_address(c->kept) + (size_t)level * (size_t)c->at_ends.n_lines * 2 * WT_ICQT_END_KEPT;
    const int64_t length = last ? k->length : args.n;
    if (!length) return WT_OK;
    args.walk.length = length;
    if (o->wide) return wt__icqt_wide_enqueue(o->wide, k->stream, &args);
    wt_status status =
        wt__spectrum_cuda_walk("icqt", c->device, &o->spectrum, c->plan->config.channels, length, &args.walk, &launch);
    return status ? status : wt_kernel_launch(o->kernel, k->stream, &launch, &WT_ARG(args), 1);
}

static wt_status launch_twice(const wt__icqt_cuda *c, wt_stream *stream, int64_t n, const float *in, float *out)
{
    enum { TILE = WT_ICQT_THREADS * WT_ICQT_EACH };
    const wt_icqt_double_args args = {.in = in, .out = out, .taps = (const float *)wt_buffer_address(c->taps), .n = n};
    const wt_launch launch = {.grid = {(int)((n + WT_ICQT_TAIL + TILE - 1) / TILE), c->plan->config.channels},
                              .block = {WT_ICQT_THREADS}};
    return wt_kernel_launch(c->twice, stream, &launch, &WT_ARG(args), 1);
}

// To the n samples of the full rate, of which `length` are wanted.
static wt_status launch_ends(const wt__icqt_cuda *c, const call *k, int64_t n)
{
    wt_icqt_ends_args args = c->at_ends;
    const int64_t reach = (int64_t)WT_ICQT_END_FRAMES << (args.n_levels - 1), most = n < 2 * reach ? n : 2 * reach;
    args.out = k->out, args.n = n, args.length = k->length;
    if (!most) return WT_OK;
    const wt_launch launch = {.grid = {(int)((most + WT_ICQT_THREADS - 1) / WT_ICQT_THREADS),
                                       (args.n_lines + WT_ICQT_END_LINES - 1) / WT_ICQT_END_LINES},
                              .block = {WT_ICQT_THREADS}};
    return wt_kernel_launch(c->ends, k->stream, &launch, &WT_ARG(args), 1);
}

wt_status wt__icqt_cuda_enqueue(const wt__icqt_cuda *cuda, wt_stream *stream, const float *in, int64_t n_frames,
                                int64_t used, int64_t length, float *out)
{
    const wt__icqt_plan *p = cuda->plan;
    const call k = {stream, in, out, n_frames, used, length};
    int side = 0, level = p->octaves[0].doublings;
    int64_t n = p->octaves[0].hop * (used - 1);
    wt_status status = wt_stream_fill(stream, cuda->signal[0], 0, 0,
                                      (size_t)(n + 2 * WT_ICQT_TAIL) * (size_t)p->config.channels * sizeof(float));
    if (!status && cuda->kept) status = wt_stream_fill(stream, cuda->kept, 0, 0, kept_bytes(cuda));
    for (int i = 0; i < p->n_octaves && !status; i++) {
        for (; level > p->octaves[i].doublings && !status; level--, n *= 2, side = !side)
            status = launch_twice(cuda, stream, n, (const float *)wt_buffer_address(cuda->signal[side]),
                                  (float *)wt_buffer_address(cuda->signal[!side]));
        if (!status) status = launch_octave(cuda, &k, i, (float *)wt_buffer_address(cuda->signal[side]));
    }
    return status || !cuda->kept ? status : launch_ends(cuda, &k, n);
}
