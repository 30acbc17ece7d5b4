// Bands as the kernels read them: neighbouring bands side by side.

#include "mel_tables.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

wt_status wt__mel_tables_upload(const wt_mel *m, const float *matrix, size_t n_matrix, wt_buffer **tables,
                                wt_spectrum_mel_args *args, wt_spectrum_finish_args *finish)
{
    const size_t n_mels = (size_t)m->config.bank.n_mels;
    size_t longest = 0;
    for (size_t b = 0; b < n_mels; b++)
        if ((size_t)m->lengths[b] > longest) longest = (size_t)m->lengths[b];
    const size_t begin = ((2 + longest) * n_mels + 3) / 4 * 4, count = begin + n_matrix;
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
    for (size_t i = 0; i < n_matrix; i++) table[begin + i].f = matrix[i];
    wt_status status = wt__op_upload(m->device, table, count * sizeof *table, tables);
    free(table);
    if (status) return status;
    args->begins = (const int *)wt_buffer_address(*tables);
    args->lengths = args->begins + n_mels;
    args->weights = (const float *)(args->lengths + n_mels);
    finish->matrix = (const float *)args->begins + begin;
    return WT_OK;
}

void wt__mel_tables_fill(const wt_mel *m, int n_out, int *peaks, wt_spectrum_mel_args *args,
                         wt_spectrum_finish_args *finish)
{
    const wt_mel_config *c = &m->config;
    const int n_mels = c->bank.n_mels, channels = (int)(m->n_lines / c->n_signals);
    args->peaks = m->finish ? peaks : NULL;
    args->n_mels = n_mels, args->channels = channels;
    args->frames_first = c->frames_first, args->logarithm = m->logarithm;
    args->power = (float)c->power, args->amin = fmaxf(m->amin, FLT_MIN), args->scale = m->scale,
    args->offset = m->shift;
    finish->peaks = peaks;
    finish->n_mels = n_mels, finish->n_frames = (int)m->n_frames, finish->channels = channels, finish->n_out = n_out;
    finish->range = m->range, finish->gain = m->gain, finish->offset = m->offset, finish->relative = m->relative;
}
