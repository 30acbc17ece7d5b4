#include "spectrum_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAVES = 4 }; // in which blocks of a walk run at most, one after another

wt_status wt__spectrum_cuda_check(const char *op, int n_fft)
{
    int rest = n_fft >= 2 && n_fft <= WT_SPECTRUM_MAX ? n_fft : 0;
    for (int radix = 1; rest > 1 && radix; rest /= radix ? radix : 1) radix = wt__spectrum_radix(rest);
    if (rest == 1) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED, "%s: n_fft %d on a GPU, want at most %d and no prime factor above 13", op, n_fft,
                   WT_SPECTRUM_MAX);
}

size_t wt__spectrum_twiddles(int n, double *table)
{
    size_t at = 0;
    for (int rest = n; rest > 1;) {
        const int radix = wt__spectrum_radix(rest), m = rest / radix;
        for (int j = 1; j < radix && m > 1; j++)
            for (int p = 0; p < m; p++, at += 2) {
                if (!table) continue;
                double angle = -2 * 3.14159265358979323846 * (double)((int64_t)j * p % rest) / rest;
                table[at] = cos(angle), table[at + 1] = sin(angle);
            }
        rest = m;
    }
    return at;
}

static wt_status make_tables(const char *op, wt_device *device, const float *window, wt__spectrum_cuda *s)
{
    const size_t n_window = ((size_t)s->n_fft + 1) / 2 * 2, factors = wt__spectrum_twiddles(s->n_fft, NULL);
    const size_t floats = n_window + factors + 2;
    float *table = calloc(floats, sizeof *table);
    double *twiddles = calloc(factors + 1, sizeof *twiddles);
    wt_status status = table && twiddles ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: %zu floats of tables", op, floats);
    if (!status) {
        memcpy(table, window, (size_t)s->n_fft * sizeof *table);
        wt__spectrum_twiddles(s->n_fft, twiddles);
        for (size_t i = 0; i < factors; i++) table[n_window + i] = (float)twiddles[i];
        status = wt__op_upload(device, table, floats * sizeof *table, &s->tables);
    }
    free(table);
    free(twiddles);
    if (status) return status;
    s->args.window = (const float *)wt_buffer_address(s->tables);
    s->args.twiddles = s->args.window + n_window;
    return WT_OK;
}

wt_status wt__spectrum_cuda_open(const char *op, wt_device *device, const char *text, int n, const float *window,
                                 wt__spectrum_cuda *s)
{
    *s = (wt__spectrum_cuda){.n_fft = n};
    wt_status status = wt__spectrum_cuda_check(op, n);
    if (status) return status;
    s->threads = wt__spectrum_threads(n) * wt__spectrum_sequences(n);
    s->frames = wt__spectrum_frames(n);
    s->resident = wt__spectrum_resident(n);
    s->shared_bytes = (size_t)wt__spectrum_sequences(n) * (size_t)wt__spectrum_points(n) * 2 * sizeof(float);
    status = make_tables(op, device, window, s);
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", n);
    return status ? status : wt__op_module(device, text, options, 1, &s->module);
}

wt_status wt__spectrum_cuda_load(const char *op, wt_device *device, const wt_stft *stft, const char *text,
                                 wt__spectrum_cuda *s)
{
    const wt_stft_config *c = wt__stft_config(stft);
    wt_status status = wt__spectrum_cuda_open(op, device, text, c->n_fft, wt__stft_window(stft), s);
    s->args.hop = c->hop;
    s->args.margin = c->no_center ? 0 : c->n_fft / 2;
    s->args.pad = (int)c->pad;
    return status;
}

wt_status wt__spectrum_cuda_create(const char *op, wt_device *device, const wt_stft *stft, wt__spectrum_cuda *s)
{
    return wt__spectrum_cuda_load(op, device, stft, "kernels/spectral/spectrum.cu", s);
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

// Rounds of `frames` that a block makes, `lead` frames of them its neighbour's: where all blocks together take the
// fewest rounds one after another, when `at_once` of them run at a time.
static int64_t share_rounds(int64_t n_lines, int64_t n_hops, int64_t at_once, int lead, int frames)
{
    const int64_t least = (2 * lead + frames - 1) / frames + 1; // at most half of them for its neighbour's sake
    int64_t best = 0, best_cost = INT64_MAX;
    for (int64_t blocks = 1; (blocks - 1) * n_lines < WAVES * at_once; blocks++) { // of a line
        int64_t rounds = ((n_hops + blocks - 1) / blocks + lead + frames - 1) / frames;
        if (rounds < least) rounds = least;
        const int64_t all = n_lines * ((n_hops - 1) / (rounds * frames - lead) + 1);
        const int64_t cost = (all + at_once - 1) / at_once * rounds;
        if (cost < best_cost) best = rounds, best_cost = cost;
        if (rounds == least) break;
    }
    return best;
}

wt_status wt__spectrum_cuda_walk(const char *op, wt_device *device, const wt__spectrum_cuda *s, int64_t n_lines,
                                 int64_t length, wt_spectrum_walk *walk, wt_launch *launch)
{
    const wt_spectrum_frames *f = &s->args;
    const int n = s->n_fft, frames = 2 * wt__spectrum_sequences(n);
    const int lead = ((n - 1) / f->hop + 1) / 2 * 2; // those before the first that touch it, an even number
    const int64_t n_hops = (length + f->margin + f->hop - 1) / f->hop;
    const int64_t at_once = (int64_t)wt_device_get_info(device)->n_sms * s->resident;
    const int64_t rounds = share_rounds(n_lines, n_hops, at_once, lead, frames);
    const bool keeps = wt__spectrum_keeps(n) && 4 * f->hop == n;
    const int64_t ring = keeps ? 0 : (int64_t)(frames - 1) * f->hop + (n > f->hop ? n : f->hop);
    const size_t room = wt_device_get_info(device)->shared_bytes;
    const size_t bytes = s->shared_bytes + (size_t)ring * sizeof(float);
    if (bytes > room)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: n_fft %d with hop %d takes %zu bytes of shared memory, the GPU has %zu",
                       op, n, f->hop, bytes, room);
    *walk = (wt_spectrum_walk){.length = length,
                               .window = f->window,
                               .twiddles = f->twiddles,
                               .hop = f->hop,
                               .margin = f->margin,
                               .hops = (int)(rounds * frames - lead),
                               .lead = lead,
                               .ring = (int)ring};
    *launch = (wt_launch){.block = {s->threads}, .shared_bytes = bytes};
    return wt__spectrum_cuda_grid(op, n_lines, n_hops, walk->hops, &launch->grid[0]);
}
