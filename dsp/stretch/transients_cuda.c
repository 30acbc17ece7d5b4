#include "transients_cuda.h"
#include "spectrum_cuda.h"
#include "stretch_transients.h"

static wt_status load(wt_device *device, wt__transients_cuda *t)
{
    wt_status status = wt__op_module(device, "kernels/stretch/transient.cu", NULL, 0, &t->module);
    if (!status) status = wt_module_get_kernel(t->module, "transient_energies", &t->energies);
    if (!status) status = wt_module_get_kernel(t->module, "transient_find", &t->find);
    return status ? status : wt_module_get_kernel(t->module, "transient_places", &t->places);
}

// One buffer: energies, counts, places, attacks.
static wt_status take_work(wt_device *device, wt__transients_cuda *t)
{
    wt_transient_args *a = &t->args;
    const size_t lines = (size_t)t->n_lines, energies = lines * (size_t)a->n_blocks * sizeof(double),
                 counts = lines * sizeof(long long), places = lines * (size_t)a->n_places * sizeof(wt_stretch_place),
                 at = lines * (size_t)a->most * sizeof(wt_transient);
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, energies + counts + places + at, &t->work);
    if (status) return status;
    const uint64_t begin = wt_buffer_address(t->work);
    a->energies = (double *)begin;
    a->counts = (long long *)(begin + energies);
    a->places = (wt_stretch_place *)(begin + energies + counts);
    a->at = (wt_transient *)(begin + energies + counts + places);
    return WT_OK;
}

wt_status wt__transients_cuda_create(wt_device *device, const wt__stretch_shape *s, int n_lines, int64_t n_places,
                                     wt__transients_cuda *t)
{
    const int block = wt__transients_block(s->n_fft);
    *t = (wt__transients_cuda){.n_lines = n_lines};
    t->args = (wt_transient_args){.n_samples = s->n_samples,
                                  .n_out = s->n_out,
                                  .n_blocks = (s->n_samples + block - 1) / block,
                                  .n_places = n_places,
                                  .most = wt__transients_most(s->n_samples, s->n_fft),
                                  .rate = s->rate,
                                  .n_fft = s->n_fft,
                                  .block = block,
                                  .gap = wt__transients_gap(s->n_fft),
                                  .hop = s->hop};
    wt_status status = wt__spectrum_cuda_grid("stretch", n_lines, t->args.n_blocks, 32, &t->energy_blocks);
    if (!status) status = wt__spectrum_cuda_grid("stretch", n_lines, n_places, 256, &t->place_blocks);
    if (!status) status = load(device, t);
    return status ? status : take_work(device, t);
}

void wt__transients_cuda_release(wt__transients_cuda *t)
{
    wt_module_destroy(t->module);
    wt_buffer_destroy(t->work);
}

wt_status wt__transients_cuda_enqueue(const wt__transients_cuda *t, wt_stream *stream, const float *pcm)
{
    wt_transient_args args = t->args;
    args.pcm = pcm;
    const wt_launch energies = {.grid = {t->energy_blocks}, .block = {256}},
                    find = {.grid = {t->n_lines}, .block = {32}}, places = {.grid = {t->place_blocks}, .block = {256}};
    wt_status status = wt_kernel_launch(t->energies, stream, &energies, &WT_ARG(args), 1);
    if (!status) status = wt_kernel_launch(t->find, stream, &find, &WT_ARG(args), 1);
    return status ? status : wt_kernel_launch(t->places, stream, &places, &WT_ARG(args), 1);
}
