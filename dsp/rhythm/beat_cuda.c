// Beats on a GPU: kernels/rhythm/beat.cu, after the tempo's kernels.

#include "tempo_cuda.h"

#include <stdlib.h>

struct wt__beat_cuda {
    const wt__tempo_cuda *tempo;
    wt_buffer *tables, *work, *bpm;
    wt_module *module;
    wt_kernel *kernel;
    wt_launch launch;
    wt_beat_args args;
};

_Static_assert(sizeof(wt_beats) == sizeof(wt_beat_found), "one layout");

enum { THREADS = 128 };

// Logarithms, the CPU's.
static wt_status make_tables(wt_device *device, wt__beat_cuda *b)
{
    const size_t count = 2 * (size_t)b->args.max_period + 1;
    double *table = malloc(count * sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "beat: %zu numbers of tables", count);
    for (size_t k = 0; k < count; k++) table[k] = k ? log((double)k) : 0;
    wt_status status = wt__op_upload(device, table, count * sizeof *table, &b->tables);
    free(table);
    if (!status) b->args.logs = (const double *)wt_buffer_address(b->tables);
    return status;
}

static wt_status take_work(wt_device *device, int n_signals, wt__beat_cuda *b)
{
    const size_t area = (size_t)n_signals * (size_t)b->args.n_frames;
    const size_t bumps = (size_t)n_signals * ((size_t)b->args.max_period + 1);
    const size_t bytes = bumps * sizeof(double) + area * (3 * sizeof(double) + sizeof(int));
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &b->work);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)n_signals * sizeof(double), &b->bpm);
    if (status) return status;
    b->args.bumps = (double *)wt_buffer_address(b->work);
    b->args.score = b->args.bumps + bumps;
    b->args.sum = b->args.score + area;
    b->args.scaled = b->args.sum + area;
    b->args.link = (int *)(b->args.scaled + area);
    if (b->tempo) b->args.bpm = (const double *)wt_buffer_address(b->bpm);
    return WT_OK;
}

wt_status wt__beat_cuda_create(wt_device *device, const wt_beat_args *args, int n_signals, const wt__tempo_cuda *tempo,
                               wt__beat_cuda **cuda)
{
    wt__beat_cuda *b = *cuda = calloc(1, sizeof *b); // the plan's destroy takes it back, also half built
    if (!b) return wt_fail(WT_ERR_NO_MEMORY, "beat: CUDA plan");
    const size_t penalties = args->max_period > WT_BEAT_SHARED ? 0 : 2 * (size_t)args->max_period + 1;
    b->args = *args;
    b->tempo = tempo;
    b->launch = (wt_launch){.grid = {n_signals}, .block = {THREADS}, .shared_bytes = penalties * sizeof(double)};
    wt_status status = make_tables(device, b);
    if (!status) status = take_work(device, n_signals, b);
    if (!status) status = wt__op_exact_module(device, "kernels/rhythm/beat.cu", &b->module);
    return status ? status : wt_module_get_kernel(b->module, "beat_track", &b->kernel);
}

void wt__beat_cuda_destroy(wt__beat_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->work);
    wt_buffer_destroy(cuda->bpm);
    free(cuda);
}

wt_status wt__beat_cuda_enqueue(const wt__beat_cuda *cuda, wt_stream *stream, const float *envelope, int *frames,
                                wt_beats *found)
{
    wt_beat_args args = cuda->args;
    args.envelope = envelope, args.frames = frames, args.found = (wt_beat_found *)found;
    wt_status status = WT_OK;
    if (cuda->tempo)
        status = wt__tempo_cuda_enqueue(cuda->tempo, stream, envelope, (double *)wt_buffer_address(cuda->bpm));
    return status ? status : wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(args), 1);
}
