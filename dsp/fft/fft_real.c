// Tables of fft_real.h and fft_frames.h.

#include "fft_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RADIX = WT__FFT_REAL_RADIX, SHARED = RADIX / 2 };

static const double PI = 3.14159265358979323846;

static float *root(float *to, int num, int den, double size)
{
    const double angle = -2 * PI * num / den;
    to[0] = (float)(size * cos(angle)), to[1] = (float)(size * sin(angle));
    return to + 2;
}

wt_status wt__fft_real_create(const wt__fft_core *core, int n, wt__fft_real **real)
{
    const float *square = wt__fft_core_square(core);
    const int lanes = wt__fft_core_kernels(core)->lanes, m = n / RADIX;
    *real = NULL;
    if (n != WT__FFT_REAL_N || !square) return WT_OK;
    float *sums;
    wt_status status = wt__fft_real_twiddles(m, &sums);
    if (status) return status;
    const size_t first = 2 * (size_t)m * (SHARED - 1), part = 2 * wt__fft_padded((size_t)m / 2 + 1);
    wt__fft_real *r = aligned_alloc(64, 64 + (first + part + 15) / 16 * 64);
    if (r) {
        float *to = (float *)r + 16;
        *r = (wt__fft_real){.first = to, .mid = square, .sums = to + first};
        for (int p = 0; p < m; p += lanes)
            for (int j = 1; j < SHARED; j++, to += 2 * lanes)
                for (int lane = 0; lane < lanes; lane++) {
                    float w[2];
                    root(w, (p + lane) * j, n, 1);
                    to[lane] = w[0], to[lanes + lane] = w[1];
                }
        memcpy(to, sums, part * sizeof *to);
    }
    free(sums);
    *real = r;
    return r ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "fft: tables of %d", n);
}

wt_status wt__fft_frames_create(int n, int hop, int lanes, const float *window, wt__fft_frames **frames)
{
    *frames = NULL;
    const int m = n / RADIX, r2 = m / (m == 16 ? 4 : 8);
    if ((n != 512 && n != 1024 && n != 2048) || hop % m || hop < lanes) return WT_OK;
    const size_t floats = 2 * ((size_t)m * SHARED + (size_t)m + (size_t)m / 2 + 1);
    wt__fft_frames *f = calloc(1, sizeof *f + floats * sizeof(float));
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "fft: tables of frames of %d", n);
    const int more = (n + hop - 1) / hop - 1; // hops
    *f = (wt__fft_frames){.n = n, .hop = hop, .columns = lanes + more, .pitch = lanes + (more + 3) / 4 * 4};
    f->window = window;
    for (int k = 0; k < RADIX; k++) f->places[k] = m * k % hop * f->pitch + m * k / hop;
    float *to = (float *)(f + 1);
    f->twiddles = to;
    for (int p = 0; p < m; p++)
        for (int j = 0; j < SHARED; j++) to = root(to, p * j, n, 1);
    f->column_twiddles = to;
    for (int i = 0; i < r2; i++)
        for (int j = 0; j < m / r2; j++) to = root(to, i * j, m, 1);
    f->real_twiddles = to;
    for (int k = 0; k <= m / 2; k++) to = root(to, k, 2 * m, 0.5);
    *frames = f;
    return WT_OK;
}

size_t wt__fft_frames_floats(const wt__fft_frames *frames, int lanes)
{
    const size_t row = (size_t)(SHARED + 1) * 2 * (size_t)lanes; // a point more: rows begin in other sets of a cache
    return (size_t)(frames->n / RADIX) * row + (size_t)frames->hop * (size_t)frames->pitch + (size_t)lanes;
}
