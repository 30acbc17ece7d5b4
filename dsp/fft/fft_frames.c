// Tables of fft_frames.h.

#include "fft_internal.h"

#include <math.h>
#include <stdlib.h>

enum { RADIX = WT__FFT_FRAMES_RADIX, SHARED = RADIX / 2 };

static const double PI = 3.14159265358979323846;

static float *root(float *to, int num, int den, double size)
{
    const double angle = -2 * PI * num / den;
    to[0] = (float)(size * cos(angle)), to[1] = (float)(size * sin(angle));
    return to + 2;
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
