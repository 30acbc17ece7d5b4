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

static bool is_whole(int n, int lanes) { return n == WT__FFT_WHOLE && lanes == 8; }

static void fill_tables(wt__fft_frames *f, float *to)
{
    const int n = f->n, m = n / RADIX, r2 = m / (m == 16 ? 4 : 8);
    for (int k = 0; k < RADIX; k++) f->places[k] = m * k % f->hop * f->pitch + m * k / f->hop;
    f->twiddles = to;
    for (int p = 0; p < m; p++)
        for (int j = 0; j < SHARED; j++) to = root(to, p * j, n, 1);
    f->column_twiddles = to;
    for (int i = 0; i < r2; i++)
        for (int j = 0; j < m / r2; j++) to = root(to, i * j, m, 1);
    f->real_twiddles = to;
    for (int k = 0; k <= m / 2; k++) to = root(to, k, 2 * m, 0.5);
}

wt_status wt__fft_frames_create(int n, int hop, int lanes, const float *window, wt__fft_frames **frames)
{
    *frames = NULL;
    const int m = n / RADIX;
    const bool whole = is_whole(n, lanes);
    if (!whole && ((n != 512 && n != 1024 && n != 2048) || hop % m || hop < lanes)) return WT_OK;
    const size_t rest = 2 * ((size_t)m * SHARED + (size_t)m + (size_t)m / 2 + 1);
    const size_t head = (sizeof(wt__fft_frames) + 63) / 64 * 64, floats = whole ? WT__FFT_WHOLE_TABLES : rest;
    wt__fft_frames *f = aligned_alloc(64, (head + floats * sizeof(float) + 63) / 64 * 64);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "fft: tables of frames of %d", n);
    const int more = (n + hop - 1) / hop - 1; // hops
    *f = (wt__fft_frames){.n = n, .hop = hop, .columns = lanes + more, .pitch = lanes + (more + 3) / 4 * 4};
    f->window = window;
    float *to = (float *)((char *)f + head);
    if (whole) wt__fft_whole_fill(to, &f->whole);
    else fill_tables(f, to);
    *frames = f;
    return WT_OK;
}

size_t wt__fft_frames_floats(const wt__fft_frames *frames, int lanes)
{
    if (is_whole(frames->n, lanes)) return (size_t)lanes * (WT__FFT_WHOLE_WORK + 16);
    const size_t row = (size_t)(SHARED + 1) * 2 * (size_t)lanes; // a point more: rows begin in other sets of a cache
    return (size_t)(frames->n / RADIX) * row + (size_t)frames->hop * (size_t)frames->pitch + (size_t)lanes;
}
