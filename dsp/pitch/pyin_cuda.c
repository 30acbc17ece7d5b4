// pYIN on a GPU: kernels/pitch/pyin.cu, for as many signals at a time as the work space has room for.

#include "op.h"
#include "pyin_cuda.h"
#include "yin_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, WARPS = THREADS / 32, MOST_THREADS = 1024 };
#define WORK_BYTES (4LL << 30)

struct wt__pyin_cuda {
    wt_pyin_args args;
    wt_launch observe, path_launch, calibrate;
    int at_once; // signals
    wt_module *module;
    wt_kernel *observe_kernel, *path_kernel, *voicing_kernel, *calibrate_kernel;
    wt_buffer *tables, *frames, *bins, *log_probs, *from;
    wt_buffer *scratch, *path; // of frames and models that shared memory does not hold
    wt_buffer *voicing;        // NULL: not calibrated
};

static wt_status upload_tables(wt__pyin_cuda *c, wt_device *device, const wt__pyin_tables *tables)
{
    wt_status status = wt__op_upload(device, tables->values, tables->count * sizeof(double), &c->tables);
    if (!status) c->args.model = wt__pyin_model_at(tables, (const double *)wt_buffer_address(c->tables));
    return status;
}

static wt_status take_work(wt__pyin_cuda *c, wt_device *device)
{
    const wt_pyin_model *m = &c->args.model;
    const size_t troughs = (size_t)m->max_troughs, states = 2 * (size_t)m->n_bins;
    const size_t frame = sizeof(wt_pyin_frame) + troughs * (sizeof(int) + sizeof(double)) + states * 2;
    const int64_t n_frames = c->args.yin.n_frames, wave = 2 * wt_device_get_info(device)->n_sms;
    const int64_t path = c->args.path_doubles * (int64_t)sizeof(double);
    int64_t at_once = WORK_BYTES / (n_frames * (int64_t)frame + path);
    if (at_once > wave) at_once -= at_once % wave; // whole waves of blocks
    if (at_once < 1) at_once = 1;
    c->at_once = at_once < c->args.yin.n_signals ? (int)at_once : c->args.yin.n_signals;
    const size_t n = (size_t)c->at_once * (size_t)n_frames;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * sizeof(wt_pyin_frame), &c->frames);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * troughs * sizeof(int), &c->bins);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * troughs * sizeof(double), &c->log_probs);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * states * 2, &c->from);
    if (!status && path)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)c->at_once * (size_t)path, &c->path);
    if (status) return status;
    if (c->path) c->args.path = (double *)wt_buffer_address(c->path);
    c->args.frames = (wt_pyin_frame *)wt_buffer_address(c->frames);
    c->args.bins = (int *)wt_buffer_address(c->bins);
    c->args.log_probs = (double *)wt_buffer_address(c->log_probs);
    c->args.from = (unsigned short *)wt_buffer_address(c->from);
    return WT_OK;
}

static wt_status shape_observe(wt__pyin_cuda *c, wt_device *device)
{
    const wt_pyin_model *m = &c->args.model;
    const size_t doubles = (size_t)(m->n_thresholds + m->max_troughs),
                 ints = (size_t)(m->n_thresholds + 1 + 2 * m->max_troughs);
    const size_t extra = WARPS * (doubles + (ints + 1) / 2) * sizeof(double);
    return wt__yin_place(device, extra, &c->args.yin, &c->observe, &c->scratch);
}

static void shape_path(wt__pyin_cuda *c, wt_device *device)
{
    const wt_pyin_model *m = &c->args.model;
    const size_t n = (size_t)m->n_bins, width = (size_t)m->width, room = wt_device_get_info(device)->shared_bytes;
    const size_t doubles = 2 * width + 2 * (n + 2 * width) + 4 * n + 32 + 64 + n + 1; // the last n + 1: ints
    const int most = m->n_bins > m->max_troughs ? m->n_bins : m->max_troughs;
    c->path_launch.block[0] = most < MOST_THREADS ? (most + 31) / 32 * 32 : MOST_THREADS;
    if (m->max_troughs > MOST_THREADS || doubles * sizeof(double) > room)
        c->args.path_doubles = (long long)(doubles + 1) / 2 * 2;
    else
        c->path_launch.shared_bytes = doubles * sizeof(double);
}

static wt_status load(wt__pyin_cuda *c, wt_device *device)
{
    char options[2][48];
    int n = 0;
    if (c->scratch) strcpy(options[n++], "-DPLACES");
    if (c->args.path_doubles) strcpy(options[n++], "-DPYIN_WIDE");
    wt_status status = wt__op_module(device, "kernels/pitch/pyin.cu", options, n, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "pyin_observe", &c->observe_kernel);
    return status ? status : wt_module_get_kernel(c->module, "pyin_path", &c->path_kernel);
}

static wt_status prepare_voicing(wt__pyin_cuda *c, wt_device *device)
{
    const size_t frames = (size_t)c->at_once * (size_t)c->args.yin.n_frames;
    c->calibrate.block[0] = THREADS;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, frames * sizeof(wt_pyin_voicing), &c->voicing);
    if (status) return status;
    c->args.voicing = (wt_pyin_voicing *)wt_buffer_address(c->voicing);
    status = wt_module_get_kernel(c->module, "pyin_voicing", &c->voicing_kernel);
    return status ? status : wt_module_get_kernel(c->module, "pyin_calibrate", &c->calibrate_kernel);
}

wt_status wt__pyin_cuda_create(wt_device *device, const wt_yin_args *args, const wt__pyin_tables *tables,
                               bool keep_unvoiced, bool calibrated, wt__pyin_cuda **cuda)
{
    *cuda = NULL;
    wt__pyin_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "pyin: CUDA plan");
    c->args.yin = *args;
    c->args.keep_unvoiced = keep_unvoiced;
    wt_status status = upload_tables(c, device, tables);
    if (!status) status = shape_observe(c, device);
    shape_path(c, device);
    if (!status) status = take_work(c, device);
    if (!status) status = load(c, device);
    if (!status && calibrated) status = prepare_voicing(c, device);
    if (status)
        wt__pyin_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__pyin_cuda_destroy(wt__pyin_cuda *cuda)
{
    if (!cuda) return;
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->frames);
    wt_buffer_destroy(cuda->bins);
    wt_buffer_destroy(cuda->log_probs);
    wt_buffer_destroy(cuda->from);
    wt_buffer_destroy(cuda->voicing);
    wt_buffer_destroy(cuda->scratch);
    wt_buffer_destroy(cuda->path);
    wt_module_destroy(cuda->module);
    free(cuda);
}

static wt_status calibrate(const wt__pyin_cuda *cuda, wt_stream *stream, const wt_pyin_args *args, int n_signals)
{
    wt_launch voicing = cuda->calibrate, calibrate = cuda->calibrate;
    voicing.grid[0] = (int)((args->yin.n_frames + WARPS - 1) / WARPS);
    voicing.grid[1] = calibrate.grid[0] = n_signals;
    wt_status status = wt_kernel_launch(cuda->voicing_kernel, stream, &voicing, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(cuda->calibrate_kernel, stream, &calibrate, &WT_ARG(*args), 1);
}

wt_status wt__pyin_cuda_enqueue(const wt__pyin_cuda *cuda, wt_stream *stream, const float *pcm, float *out)
{
    wt_pyin_args args = cuda->args;
    wt_launch observe = cuda->observe, path = cuda->path_launch;
    args.yin.pcm = pcm;
    args.out = out;
    wt_status status = WT_OK;
    for (int first = 0; first < args.yin.n_signals && !status; first += cuda->at_once) {
        const int rest = args.yin.n_signals - first;
        args.first_signal = first;
        args.yin.places.down = path.grid[0] = rest < cuda->at_once ? rest : cuda->at_once;
        if (!cuda->scratch) observe.grid[1] = path.grid[0];
        status = wt_kernel_launch(cuda->observe_kernel, stream, &observe, &WT_ARG(args), 1);
        if (!status) status = wt_kernel_launch(cuda->path_kernel, stream, &path, &WT_ARG(args), 1);
        if (!status && cuda->voicing) status = calibrate(cuda, stream, &args, path.grid[0]);
    }
    return status;
}
