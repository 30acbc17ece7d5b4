// One launch for as many signals as the work space holds; the bank lies there column by column.

#include "mel_inverse_cuda.h"
#include "spectrum_cuda.h"

#include "mel_inverse_kernel.h"
#include <math.h>
#include <stdlib.h>

#define WORK_BYTES (4LL << 30)

struct wt__mel_inverse_cuda {
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *doubles, *ints, *work;
    wt_mel_inverse_args args;
    wt_launch launch; // of all signals at once
    int n_signals, at_once;
};

// doubles: sums [n_mels], sizes [bins], parts [bins], values, shares; ints: begins [bins], offsets [bins + 1]
static void write_tables(const wt__mel_inverse_shape *s, size_t n_values, double *doubles, int *ints)
{
    const int bins = s->bins;
    double *sizes = doubles + s->n_mels, *parts = sizes + bins, *values = parts + bins, *shares = values + n_values;
    int at = 0;
    for (int m = 0; m < s->n_mels; m++) doubles[m] = s->sums[m];
    for (int j = 0; j < bins; j++) {
        sizes[j] = sqrt(s->squares[j]), parts[j] = s->squares[j] > 0 ? 1 / s->squares[j] : 0;
        ints[j] = s->begins[j], ints[bins + j] = at;
        for (int m = s->begins[j]; m < s->ends[j]; m++, at++) {
            values[at] = s->bank[(size_t)m * (size_t)bins + (size_t)j];
            shares[at] = s->shares[(size_t)m * (size_t)bins + (size_t)j];
        }
    }
    ints[2 * bins] = at;
}

static wt_status make_tables(wt_device *device, const wt__mel_inverse_shape *s, wt__mel_inverse_cuda *c)
{
    size_t n_values = 1; // never empty
    for (int j = 0; j < s->bins; j++)
        if (s->ends[j] > s->begins[j]) n_values += (size_t)(s->ends[j] - s->begins[j]);
    const size_t bins = (size_t)s->bins, n_doubles = (size_t)s->n_mels + 2 * bins + 2 * n_values;
    double *doubles = calloc(n_doubles, sizeof *doubles);
    int *ints = calloc(2 * bins + 1, sizeof *ints);
    wt_status status = doubles && ints ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "mel: tables of %zu doubles", n_doubles);
    if (!status) write_tables(s, n_values, doubles, ints);
    if (!status) status = wt__op_upload(device, doubles, n_doubles * sizeof *doubles, &c->doubles);
    if (!status) status = wt__op_upload(device, ints, (2 * bins + 1) * sizeof *ints, &c->ints);
    free(doubles);
    free(ints);
    if (status) return status;
    c->args.sums = (const double *)wt_buffer_address(c->doubles);
    c->args.sizes = c->args.sums + s->n_mels, c->args.parts = c->args.sizes + bins;
    c->args.values = c->args.parts + bins, c->args.shares = c->args.values + n_values;
    c->args.begins = (const int *)wt_buffer_address(c->ints), c->args.offsets = c->args.begins + bins;
    return WT_OK;
}

// 128 frames a block, fewer where their residuals would leave a multiprocessor with fewer than three blocks.
static wt_status shape_launch(wt_device *device, const wt__mel_inverse_shape *s, wt__mel_inverse_cuda *c)
{
    const size_t frame = (size_t)s->n_mels * sizeof(double), room = wt_device_get_info(device)->shared_bytes;
    int threads = 128;
    while (threads > 32 && 3 * frame * (size_t)threads > room) threads /= 2;
    if (frame * (size_t)threads > room)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "mel: %d bands of %d frames take more shared memory than the %zu bytes of this"
                       " GPU",
                       s->n_mels, threads, room);
    c->launch = (wt_launch){.block = {threads}, .shared_bytes = frame * (size_t)threads};
    return wt__spectrum_cuda_grid("mel", c->at_once, s->n_frames, threads, &c->launch.grid[0]);
}

static wt_status prepare(wt_device *device, const wt__mel_inverse_shape *s, wt__mel_inverse_cuda *c)
{
    const int64_t bytes = s->bins * s->n_frames * (int64_t)sizeof(double), most = WORK_BYTES / bytes;
    c->n_signals = s->n_signals;
    c->at_once = most < 1 ? 1 : most < s->n_signals ? (int)most : s->n_signals;
    c->args.n_frames = s->n_frames, c->args.bins = s->bins, c->args.n_mels = s->n_mels;
    c->args.n_sweeps = s->n_sweeps, c->args.power = s->power, c->args.enough = s->enough;
    wt_status status = shape_launch(device, s, c);
    if (!status) status = make_tables(device, s, c);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(bytes * c->at_once), &c->work);
    if (status) return status;
    c->args.x = (double *)wt_buffer_address(c->work);
    status = wt__op_module(device, "kernels/mel_inverse.cu", NULL, 0, &c->module);
    return status ? status : wt_module_get_kernel(c->module, "mel_inverse", &c->kernel);
}

wt_status wt__mel_inverse_cuda_create(wt_device *device, const wt__mel_inverse_shape *shape,
                                      wt__mel_inverse_cuda **cuda)
{
    *cuda = NULL;
    wt__mel_inverse_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "mel: CUDA plan of an inverse");
    wt_status status = prepare(device, shape, c);
    if (status)
        wt__mel_inverse_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__mel_inverse_cuda_destroy(wt__mel_inverse_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->doubles);
    wt_buffer_destroy(cuda->ints);
    wt_buffer_destroy(cuda->work);
    free(cuda);
}

wt_status wt__mel_inverse_cuda_enqueue(const wt__mel_inverse_cuda *cuda, wt_stream *stream, const float *mel,
                                       float *out)
{
    wt_mel_inverse_args args = cuda->args;
    wt_status status = WT_OK;
    for (int first = 0; first < cuda->n_signals && !status; first += cuda->at_once) {
        const int count = cuda->n_signals - first < cuda->at_once ? cuda->n_signals - first : cuda->at_once;
        wt_launch launch = cuda->launch;
        launch.grid[0] = launch.grid[0] / cuda->at_once * count;
        args.mel = mel + first * args.n_mels * args.n_frames;
        args.out = out + first * args.bins * args.n_frames;
        status = wt_kernel_launch(cuda->kernel, stream, &launch, &WT_ARG(args), 1);
    }
    return status;
}
