#include "spectrum_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fits(int n)
{
    if (n < 2 || n > WT_SPECTRUM_MAX) return false;
    for (int radix; n > 1; n /= radix)
        if (!(radix = wt__spectrum_radix(n))) return false;
    return true;
}

// Pass by pass [radix - 1][m] pairs; returns the floats, writes when `table`.
static size_t fill_twiddles(int n, float *table)
{
    size_t at = 0;
    for (int rest = n; rest > 1;) {
        const int radix = wt__spectrum_radix(rest), m = rest / radix;
        for (int j = 1; j < radix && m > 1; j++)
            for (int p = 0; p < m; p++, at += 2) {
                if (!table) continue;
                double angle = -2 * 3.14159265358979323846 * (double)((int64_t)j * p % rest) / rest;
                table[at] = (float)cos(angle), table[at + 1] = (float)sin(angle);
            }
        rest = m;
    }
    return at;
}

static wt_status make_tables(const char *op, wt_device *device, const float *window, wt__spectrum_cuda *s)
{
    const size_t n_window = ((size_t)s->n_fft + 1) / 2 * 2, floats = n_window + fill_twiddles(s->n_fft, NULL) + 2;
    float *table = calloc(floats, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "%s: %zu floats of tables", op, floats);
    memcpy(table, window, (size_t)s->n_fft * sizeof *table);
    fill_twiddles(s->n_fft, table + n_window);
    wt_status status = wt__op_upload(device, table, floats * sizeof *table, &s->tables);
    free(table);
    if (status) return status;
    s->args.window = (const float *)wt_buffer_address(s->tables);
    s->args.twiddles = s->args.window + n_window;
    return WT_OK;
}

wt_status wt__spectrum_cuda_open(const char *op, wt_device *device, const char *text, int n, const float *window,
                                 wt__spectrum_cuda *s)
{
    *s = (wt__spectrum_cuda){.n_fft = n};
    if (!fits(n))
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: n_fft %d on a GPU, want at most %d and no prime factor above 13", op, n,
                       WT_SPECTRUM_MAX);
    s->threads = wt__spectrum_threads(n) * wt__spectrum_sequences(n);
    s->frames = wt__spectrum_frames(n);
    s->shared_bytes = (size_t)wt__spectrum_sequences(n) * (size_t)wt__spectrum_points(n) * 2 * sizeof(float);
    wt_status status = make_tables(op, device, window, s);
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", n);
    return status ? status : wt__op_module(device, text, options, 1, &s->module);
}

wt_status wt__spectrum_cuda_create(const char *op, wt_device *device, const wt_stft *stft, wt__spectrum_cuda *s)
{
    const wt_stft_config *c = wt__stft_config(stft);
    wt_status status = wt__spectrum_cuda_open(op, device, "kernels/spectrum.cu", c->n_fft, wt__stft_window(stft), s);
    s->args.hop = c->hop;
    s->args.margin = c->no_center ? 0 : c->n_fft / 2;
    s->args.pad = (int)c->pad;
    return status;
}

void wt__spectrum_cuda_release(wt__spectrum_cuda *s)
{
    wt_module_destroy(s->module);
    wt_buffer_destroy(s->tables);
}

wt_status wt__spectrum_cuda_grid(const char *op, int64_t n_lines, int64_t count, int64_t per_block, int *blocks)
{
    const int64_t each = (count + per_block - 1) / per_block;
    if (each > INT_MAX / n_lines)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %lld channels of %lld blocks each, want %d at most in all", op,
                       (long long)n_lines, (long long)each, INT_MAX);
    *blocks = (int)(each * n_lines);
    return WT_OK;
}
