#include "spectrum_cuda.h"
#include "stretch_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK_BYTES (16LL << 30) // of spectra, at most a quarter of what the device has free

static wt_status make_tables(const char *op, wt_device *device, int n_fft, const double *window, wt__frames_cuda *f)
{
    const size_t n = (size_t)n_fft, n_window = (n + 1) / 2 * 2, factors = wt__spectrum_twiddles(n_fft, NULL);
    double *table = calloc(n_window + factors + 2, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "%s: tables of %zu doubles", op, n_window + factors + 2);
    memcpy(table, window, n * sizeof *table);
    wt__spectrum_twiddles(n_fft, table + n_window);
    wt_status status = wt__op_upload(device, table, (n_window + factors + 2) * sizeof *table, &f->tables);
    free(table);
    if (status) return status;
    f->args.window = (const double *)wt_buffer_address(f->tables);
    f->args.twiddles = f->args.window + n_window;
    return WT_OK;
}

static wt_status make_fused(const char *op, wt_device *device, int n_fft, const double *window, wt__frames_cuda *f)
{
    wt_status status = wt__spectrum_cuda_check(op, n_fft);
    if (status) return status;
    const int sequences = wt__spectrum_sequences(n_fft);
    const size_t points = (size_t)sequences * (size_t)wt__spectrum_points(n_fft), bytes = points * 2 * sizeof(double),
                 room = wt_device_get_info(device)->shared_bytes;
    if (bytes > room)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: n_fft %d takes more shared memory than the %zu bytes of this GPU", op,
                       n_fft, room);
    f->launch = (wt_launch){.block = {wt__spectrum_threads(n_fft) * sequences}, .shared_bytes = bytes};
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", n_fft);
    status = wt__op_module(device, "kernels/stretch/vocoder_frames.cu", options, 1, &f->module);
    if (!status) status = wt_module_get_kernel(f->module, "vocoder_frames", &f->kernel);
    return status ? status : make_tables(op, device, n_fft, window, f);
}

wt_status wt__frames_cuda_create(const char *op, wt_device *device, int n_fft, const double *window, int n_lines,
                                 int64_t n_frames, wt__frames_cuda *f)
{
    *f = (wt__frames_cuda){.module = NULL};
    wt_status status = make_fused(op, device, n_fft, window, f);
    if (status != WT_ERR_UNSUPPORTED) return status;
    status = wt__vocoder_wide_create(op, device, n_fft, window, n_lines, n_frames, &f->wide);
    f->args.window = f->wide.wide.fill_args.window;
    return status;
}

void wt__frames_cuda_release(wt__frames_cuda *f)
{
    wt__vocoder_wide_release(&f->wide);
    wt_module_destroy(f->module);
    wt_buffer_destroy(f->tables);
}

wt_status wt__frames_cuda_enqueue(const char *op, const wt__frames_cuda *f, wt_stream *stream, int n_lines, int n_fft,
                                  const wt_vocoder_frames_args *frames)
{
    wt_vocoder_frames_args args = *frames;
    wt_launch launch = f->launch;
    if (!f->kernel) return wt__vocoder_wide_frames(&f->wide, stream, n_lines, &args);
    wt_status status =
        wt__spectrum_cuda_grid(op, n_lines, (args.n_frames + 1) / 2, wt__spectrum_sequences(n_fft), &launch.grid[0]);
    return status ? status : wt_kernel_launch(f->kernel, stream, &launch, &WT_ARG(args), 1);
}

int64_t wt__frames_cuda_room(wt_device *device)
{
    const int64_t room = (int64_t)(wt_device_get_info(device)->memory_free_bytes / 4);
    return room < WORK_BYTES ? room : WORK_BYTES;
}

int wt__frames_cuda_group(wt_device *device, int n_signals, int64_t bytes)
{
    int64_t most = wt__frames_cuda_room(device) / bytes;
    if (most < 1) most = 1;
    const int64_t groups = (n_signals + most - 1) / most;
    return (int)((n_signals + groups - 1) / groups);
}
