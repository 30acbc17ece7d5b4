// Predominant local pulse on a GPU: kernels/plp.cu, for as many signals at a time as the work space has room for.

#include "plp_cuda.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 256 };
#define WORK_BYTES (1LL << 30)

struct wt__plp_cuda {
    wt__spectrum_cuda spectrum;
    wt_buffer *turn, *waves, *facts;
    wt_kernel *strongest, *pulse, *scale;
    wt_plp_args args;
    int n_signals, at_once;
};

static wt_status make_tables(wt_device *device, wt__plp_cuda *p)
{
    const int n = p->spectrum.n_fft;
    float *turn = malloc(2 * (size_t)n * sizeof *turn);
    if (!turn) return wt_fail(WT_ERR_NO_MEMORY, "plp: window of %d frames", n);
    for (int i = 0; i < n; i++) {
        const double angle = 2 * 3.14159265358979323846 * i / n;
        turn[2 * i] = (float)cos(angle), turn[2 * i + 1] = (float)sin(angle);
    }
    wt_status status = wt__op_upload(device, turn, 2 * (size_t)n * sizeof *turn, &p->turn);
    free(turn);
    if (!status) p->args.turn = (const float *)wt_buffer_address(p->turn);
    return status;
}

static wt_status take_work(wt_device *device, wt__plp_cuda *p)
{
    const int64_t rows = p->args.n_rows, room = WORK_BYTES / (rows * (int64_t)sizeof(wt_plp_wave));
    p->at_once = room < 1 ? 1 : room < p->n_signals ? (int)room : p->n_signals;
    const size_t n = (size_t)p->at_once;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * (size_t)rows * sizeof(wt_plp_wave), &p->waves);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * n * sizeof(int), &p->facts);
    if (status) return status;
    p->args.waves = (wt_plp_wave *)wt_buffer_address(p->waves);
    p->args.facts = (int *)wt_buffer_address(p->facts);
    return WT_OK;
}

static wt_status open_window(wt_device *device, int length, wt__plp_cuda *p)
{
    float *window = malloc((size_t)length * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "plp: window of %d frames", length);
    wt_status status = wt_window_fill(&(wt_window_config){.n = length}, window);
    if (!status) status = wt__spectrum_cuda_open("plp", device, "kernels/plp.cu", length, window, &p->spectrum);
    free(window);
    p->args.window = p->spectrum.args.window;
    p->args.twiddles = p->spectrum.args.twiddles;
    return status;
}

wt_status wt__plp_cuda_create(wt_device *device, int length, int first, int last, int64_t n_frames, int n_signals,
                              wt__plp_cuda **cuda)
{
    wt__plp_cuda *p = *cuda = calloc(1, sizeof *p); // the plan's destroy takes it back, also half built
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "plp: CUDA plan");
    p->n_signals = n_signals;
    p->args = (wt_plp_args){.n_frames = n_frames, .n_rows = n_frames + 1 - length % 2, .first = first, .last = last};
    if (n_frames > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "plp: max_frames %lld, want 1..%d on a GPU", (long long)n_frames, INT_MAX);
    wt_status status = open_window(device, length, p);
    if (!status) status = make_tables(device, p);
    if (!status) status = take_work(device, p);
    if (!status) status = wt_module_get_kernel(p->spectrum.module, "plp_strongest", &p->strongest);
    if (!status) status = wt_module_get_kernel(p->spectrum.module, "plp_pulse", &p->pulse);
    if (!status) status = wt_module_get_kernel(p->spectrum.module, "plp_scale", &p->scale);
    return status;
}

void wt__plp_cuda_destroy(wt__plp_cuda *cuda)
{
    if (!cuda) return;
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt_buffer_destroy(cuda->turn);
    wt_buffer_destroy(cuda->waves);
    wt_buffer_destroy(cuda->facts);
    free(cuda);
}

static wt_status enqueue_signals(const wt__plp_cuda *p, wt_stream *stream, const wt_plp_args *args, int n)
{
    wt_launch rows = {.block = {p->spectrum.threads}, .shared_bytes = p->spectrum.shared_bytes};
    wt_launch frames = {.block = {BLOCK}};
    wt_status status =
        wt__spectrum_cuda_grid("plp", n, args->n_rows, wt__spectrum_sequences(p->spectrum.n_fft), &rows.grid[0]);
    if (!status) status = wt__spectrum_cuda_grid("plp", n, args->n_frames, BLOCK, &frames.grid[0]);
    if (!status) status = wt_stream_fill(stream, p->facts, 0, 0, wt_buffer_size_bytes(p->facts));
    if (!status) status = wt_kernel_launch(p->strongest, stream, &rows, &WT_ARG(*args), 1);
    if (!status) status = wt_kernel_launch(p->pulse, stream, &frames, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(p->scale, stream, &frames, &WT_ARG(*args), 1);
}

wt_status wt__plp_cuda_enqueue(const wt__plp_cuda *cuda, wt_stream *stream, const float *envelope, float *pulse)
{
    wt_plp_args args = cuda->args;
    wt_status status = WT_OK;
    for (int first = 0; first < cuda->n_signals && !status; first += cuda->at_once) {
        const int rest = cuda->n_signals - first;
        args.envelope = envelope + first * args.n_frames, args.pulse = pulse + first * args.n_frames;
        status = enqueue_signals(cuda, stream, &args, rest < cuda->at_once ? rest : cuda->at_once);
    }
    return status;
}
