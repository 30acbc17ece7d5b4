// Whole rows on a stream: a filter for each thread on the CPU, kernels/filter/overlap_save.cu on a GPU.

#include "overlap_save_internal.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>

struct wt_convolve {
    wt_device *device;
    int n_rows, n_taps, n_slots;
    int64_t n_in, n_out;
    wt_overlap_save **filters; // [n_slots] of one channel, CPU
    wt__overlap_save_cuda cuda;
    wt_kernel *kernel; // NULL on a CPU
};

// Points of the transforms: four times the taps, as long as a block's transform may be; one of these has a thread block
// to itself.
static int points_for(int n_taps) { return n_taps <= 512 ? 2048 : n_taps <= 1024 ? 4096 : WT_SPECTRUM_MAX; }

// The parts' spectra, whole and divided by n.
static wt_status transform_taps(const float *taps, int n_taps, int n, const wt_overlap_save_taps *a, float *response)
{
    wt_fft *forward = NULL;
    float *padded = calloc((size_t)n, sizeof *padded);
    wt_status status = padded ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "convolve: %d points", n);
    if (!status) status = wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, &forward);
    for (int p = 0; p < a->n_parts && !status; p++) {
        const int left = n_taps - p * a->part, count = left < a->part ? left : a->part;
        float *to = response + (size_t)p * (size_t)n * 2;
        memset(padded, 0, (size_t)n * sizeof *padded);
        for (int k = 0; k < count; k++) padded[k] = taps[p * a->part + k] / (float)n;
        status = wt_fft_run(forward, padded, to);
        for (int k = n / 2 + 1; k < n; k++) to[2 * k] = to[2 * (n - k)], to[2 * k + 1] = -to[2 * (n - k) + 1];
    }
    wt_fft_destroy(forward);
    free(padded);
    return status;
}

wt_status wt__overlap_save_load(wt_device *device, const float *taps, int n_taps, int n, wt__overlap_save_cuda *cuda)
{
    const bool whole = n_taps <= n / 2;
    wt_overlap_save_taps *a = &cuda->taps;
    *a = (wt_overlap_save_taps){.fresh = whole ? n - n_taps + 1 : n / 2, .part = whole ? n_taps : n / 2};
    a->n_parts = (n_taps + a->part - 1) / a->part;
    const size_t floats = (size_t)a->n_parts * (size_t)n * 2;
    float *response = malloc(floats * sizeof *response);
    if (!response) return wt_fail(WT_ERR_NO_MEMORY, "convolve: %zu floats of spectra", floats);
    wt_status status = transform_taps(taps, n_taps, n, a, response);
    if (!status) status = wt__op_upload(device, response, floats * sizeof *response, &cuda->response);
    if (!status) // which needs no window: any n numbers
        status =
            wt__spectrum_cuda_open("convolve", device, "kernels/filter/overlap_save.cu", n, response, &cuda->spectrum);
    free(response);
    if (status) return status;
    a->response = (const float *)wt_buffer_address(cuda->response);
    a->twiddles = cuda->spectrum.args.twiddles;
    cuda->teams = wt__spectrum_sequences(n);
    cuda->launch =
        (wt_launch){.block = {cuda->spectrum.threads},
                    .shared_bytes = cuda->spectrum.shared_bytes + (size_t)cuda->teams * (size_t)n * 2 * sizeof(float)};
    return WT_OK;
}

void wt__overlap_save_release(wt__overlap_save_cuda *cuda)
{
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt_buffer_destroy(cuda->response);
}

static wt_status create_cuda(wt_convolve *p, const float *taps)
{
    wt__overlap_save_cuda *c = &p->cuda;
    wt_status status = wt__overlap_save_load(p->device, taps, p->n_taps, points_for(p->n_taps), c);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "overlap_save_rows", &p->kernel);
    if (status) return status;
    return wt__spectrum_cuda_grid("convolve", p->n_rows, p->n_out, 2 * c->taps.fresh, &c->launch.grid[0]);
}

static wt_status create_cpu(wt_convolve *p, const float *taps)
{
    const wt_overlap_save_config one = {.taps = taps, .n_taps = p->n_taps, .channels = 1};
    p->n_slots = wt__op_slots(p->device, p->n_rows);
    p->filters = calloc((size_t)p->n_slots, sizeof *p->filters);
    wt_status status = p->filters ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "convolve: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = wt_overlap_save_create(&one, &p->filters[slot]);
    return status;
}

wt_status wt_convolve_create(wt_device *device, const wt_overlap_save_config *config, int n_rows, int64_t n_in,
                             wt_convolve **plan)
{
    *plan = NULL;
    if (n_rows < 1 || n_in < 1)
        return wt_fail(WT_ERR_BAD_ARG, "convolve: %d rows of %lld frames, want 1 or more", n_rows, (long long)n_in);
    if (config->n_taps < 1 || config->n_taps > 1 << 20)
        return wt_fail(WT_ERR_BAD_ARG, "convolve: %d taps, want 1..%d", config->n_taps, 1 << 20);
    wt_convolve *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "convolve: plan");
    p->device = device, p->n_rows = n_rows, p->n_in = n_in, p->n_taps = config->n_taps;
    p->n_out = n_in + config->n_taps - 1;
    wt_status status = wt__op_on_gpu(device) ? create_cuda(p, config->taps) : create_cpu(p, config->taps);
    if (status)
        wt_convolve_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_convolve_destroy(wt_convolve *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->filters && slot < plan->n_slots; slot++) wt_overlap_save_destroy(plan->filters[slot]);
    free(plan->filters);
    wt__overlap_save_release(&plan->cuda);
    free(plan);
}

typedef struct call {
    const wt_convolve *plan;
    const float *in;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_convolve *p = c->plan;
    for (int64_t row = slot; row < p->n_rows; row += p->n_slots) {
        wt_overlap_save_reset(p->filters[slot]);
        wt__overlap_save_row(p->filters[slot], c->in + row * p->n_in, p->n_in, c->out + row * p->n_out);
    }
}

wt_status wt_convolve_enqueue(wt_convolve *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              wt_buffer *out, size_t out_offset)
{
    const size_t n_rows = (size_t)plan->n_rows;
    wt_status status = wt__op_stream("convolve", plan->device, stream);
    if (!status) status = wt__op_range("convolve", "input", in, in_offset, n_rows * (size_t)plan->n_in);
    if (!status) status = wt__op_range("convolve", "out", out, out_offset, n_rows * (size_t)plan->n_out);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    const wt_overlap_save_args args = {c.in, c.out, plan->n_in, plan->n_out, plan->cuda.taps};
    return wt_kernel_launch(plan->kernel, stream, &plan->cuda.launch, &WT_ARG(args), 1);
}
