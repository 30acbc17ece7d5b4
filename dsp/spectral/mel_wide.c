// Frames to memory in double, their powers, their bands, a tile of frames at a time; then what wants the largest band.

#include "mel_wide.h"
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

// begins [n_mels], lengths [n_mels], weights [longest][n_mels], matrix [n_mels][n_out]
static wt_status upload(const wt_mel *m, const float *matrix, int n_out, wt__mel_wide *w)
{
    const size_t n_mels = (size_t)m->config.bank.n_mels;
    size_t longest = 0;
    for (size_t b = 0; b < n_mels; b++)
        if ((size_t)m->lengths[b] > longest) longest = (size_t)m->lengths[b];
    const size_t begin = (2 + longest) * n_mels, count = begin + n_mels * (size_t)n_out;
    union {
        int i;
        float f;
    } *table = calloc(count, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "mel: %zu words of tables", count);
    const float *weight = m->weights;
    for (size_t b = 0; b < n_mels; b++) {
        table[b].i = m->begins[b];
        table[n_mels + b].i = m->lengths[b];
        for (int k = 0; k < m->lengths[b]; k++) table[(2 + (size_t)k) * n_mels + b].f = *weight++;
    }
    for (size_t i = begin; i < count; i++) table[i].f = matrix[i - begin];
    wt_status status = wt__op_upload(m->device, table, count * sizeof *table, &w->tables);
    free(table);
    if (status) return status;
    w->args.mel.begins = (const int *)wt_buffer_address(w->tables);
    w->args.mel.lengths = w->args.mel.begins + n_mels;
    w->args.mel.weights = (const float *)(w->args.mel.lengths + n_mels);
    w->finish_args.finish.matrix = (const float *)w->args.mel.begins + begin;
    return WT_OK;
}

static wt_status take_work(const wt_mel *m, int n_out, wt__mel_wide *w)
{
    const wt_mel_config *c = &m->config;
    const size_t powers = 2 * (size_t)w->wide.at_once * (size_t)m->bins * sizeof(float);
    wt_status status =
        wt_buffer_create(m->device, WT_MEMORY_DEVICE, powers + (size_t)c->n_signals * sizeof(int), &w->work);
    if (status) return status;
    const int n_mels = c->bank.n_mels, channels = (int)(m->n_lines / c->n_signals);
    int *peaks = (int *)(wt_buffer_address(w->work) + powers);
    w->peaks = powers, w->n_signals = c->n_signals, w->finishes = m->finish;
    w->args.powers = (float *)wt_buffer_address(w->work), w->args.bins = m->bins;
    wt_spectrum_mel_args *mel = &w->args.mel;
    mel->peaks = m->finish ? peaks : NULL;
    mel->n_mels = n_mels, mel->channels = channels;
    mel->frames_first = c->frames_first, mel->logarithm = m->logarithm;
    mel->power = (float)c->power, mel->amin = m->amin, mel->scale = m->scale, mel->offset = m->shift;
    wt_spectrum_finish_args *finish = &w->finish_args.finish;
    finish->peaks = peaks;
    finish->n_mels = n_mels, finish->n_frames = (int)m->n_frames, finish->channels = channels, finish->n_out = n_out;
    finish->range = m->range, finish->gain = m->gain, finish->offset = m->offset, finish->relative = m->relative;
    w->finish_args.count = m->n_lines * m->n_frames * (n_out ? n_out : n_mels);
    return WT_OK;
}

wt_status wt__mel_wide_create(const wt_mel *m, const float *matrix, int n_out, wt__mel_wide **wide)
{
    wt__mel_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "mel: CUDA plan");
    wt_status status = wt__wide_load("mel", m->device, m->slots[0].stft, m->n_lines, m->n_frames, &w->wide);
    if (!status) status = upload(m, matrix, n_out, w);
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
