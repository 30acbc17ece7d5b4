// Frames to memory in double, their powers, their bands, a tile of frames at a time; then what wants the largest band.

#include "mel_wide.h"
#include "mel_tables.h"
#include "mel_wide_kernel.h"
#include "wide_cuda.h"

#include <stdlib.h>

struct wt__mel_wide {
    wt__wide wide;
    wt_module *module;
    wt_kernel *powers, *bands, *finish;
    wt_buffer *tables, *work; // begins, lengths, weights and the matrix; powers and a peak each signal
    wt_mel_wide_args args;
    wt_mel_finish_args finish_args;
    size_t peaks; // bytes before them
    int n_signals;
    bool finishes;
};

static wt_status take_work(const wt_mel *m, int n_out, wt__mel_wide *w)
{
    const wt_mel_config *c = &m->config;
    const size_t powers = 2 * (size_t)w->wide.at_once * (size_t)m->bins * sizeof(float);
    wt_status status =
        wt_buffer_create(m->device, WT_MEMORY_DEVICE, powers + (size_t)c->n_signals * sizeof(int), &w->work);
    if (status) return status;
    const int n_mels = c->bank.n_mels;
    int *peaks = (int *)(wt_buffer_address(w->work) + powers);
    w->peaks = powers, w->n_signals = c->n_signals, w->finishes = m->finish;
    w->args.powers = (float *)wt_buffer_address(w->work), w->args.bins = m->bins;
    wt__mel_tables_fill(m, n_out, peaks, &w->args.mel, &w->finish_args.finish);
    w->finish_args.count = m->n_lines * m->n_frames * (n_out ? n_out : n_mels);
    return WT_OK;
}

wt_status wt__mel_wide_create(const wt_mel *m, const float *matrix, int n_out, wt__mel_wide **wide)
{
    wt__mel_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "mel: CUDA plan");
    wt_status status = wt__wide_load("mel", m->device, m->slots[0].stft, m->n_lines, m->n_frames, &w->wide);
    if (!status) status = wt__wide_level(m->device, &w->wide);
    if (!status)
        status = wt__mel_tables_upload(m, matrix, (size_t)m->config.bank.n_mels * (size_t)n_out, &w->tables,
                                       &w->args.mel, &w->finish_args.finish);
    if (!status) status = take_work(m, n_out, w);
    w->wide.fill_args.n_samples = m->config.n_samples;
    if (!status) status = wt__op_module(m->device, "kernels/spectral/mel_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "mel_wide_powers", &w->powers);
    if (!status) status = wt_module_get_kernel(w->module, "mel_wide_bands", &w->bands);
    return status ? status : wt_module_get_kernel(w->module, "mel_wide_finish", &w->finish);
}

void wt__mel_wide_destroy(wt__mel_wide *wide)
{
    if (!wide) return;
    wt__wide_release(&wide->wide);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->tables);
    wt_buffer_destroy(wide->work);
    free(wide);
}

static wt_status make_bands(const wt__mel_wide *w, wt_stream *stream, const wt_wide_pairs *tile, uintptr_t pcm,
                            uintptr_t bands)
{
    wt_wide_fill_args fill = w->wide.fill_args;
    wt_mel_wide_args args = w->args;
    fill.pairs = args.pairs = *tile;
    fill.pcm = (const float *)pcm;
    args.mel.out = (float *)bands;
    wt_status status = wt__wide_forward(&w->wide, stream, &fill);
    if (!status) status = wt__wide_launch(&w->wide, w->powers, stream, tile, args.bins, WT_ARG(args));
    return status ? status : wt__wide_launch(&w->wide, w->bands, stream, tile, 2 * args.mel.n_mels, WT_ARG(args));
}

wt_status wt__mel_wide_enqueue(const wt__mel_wide *w, wt_stream *stream, uintptr_t pcm, uintptr_t bands,
                               uintptr_t product)
{
    const bool finishes = w->finishes || product;
    // Bytes of 0x80 make an integer below that of any decibel.
    wt_status status =
        finishes ? wt_stream_fill(stream, w->work, w->peaks, 0x80, (size_t)w->n_signals * sizeof(int)) : WT_OK;
    for (int64_t first = 0; first < w->wide.n_pairs && !status; first += w->wide.at_once) {
        const wt_wide_pairs tile = wt__wide_tile(&w->wide, first);
        status = make_bands(w, stream, &tile, pcm, bands);
    }
    if (status || !finishes) return status;
    wt_mel_finish_args args = w->finish_args;
    args.finish.mel = (float *)bands, args.finish.out = (float *)product;
    return wt__fft64_cuda_each("mel", w->finish, stream, WT_ARG(args), args.count);
}
