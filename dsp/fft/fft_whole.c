// Tables of fft_whole.h.

#include "fft_internal.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 8 };

static const double PI = 3.14159265358979323846;

// Factors w_n^(num + step i) of LANES points: real parts, imaginary ones.
static float *factors(float *to, double num, double step, double n)
{
    for (int i = 0; i < LANES; i++) {
        const double angle = -2 * PI * (num + step * i) / n;
        to[i] = (float)cos(angle), to[LANES + i] = (float)sin(angle);
    }
    return to + 2 * LANES;
}

void wt__fft_whole_fill(float *to, wt__fft_whole_tables *tables)
{
    tables->first = to;
    for (int p = 0; p < 8 * LANES; p += LANES)
        for (int j = 1; j <= 16; j++) to = factors(to, j * p, j, WT__FFT_WHOLE);
    tables->mid = to;
    for (int q = 1; q < 8; q++) to = factors(to, 0, q, 64);
}

wt_status wt__fft_whole_create(wt__fft_whole_tables **tables)
{
    const size_t head = (sizeof(wt__fft_whole_tables) + 63) / 64 * 64;
    *tables = aligned_alloc(64, head + WT__FFT_WHOLE_TABLES * sizeof(float));
    if (!*tables) return wt_fail(WT_ERR_NO_MEMORY, "fft: tables of frames of %d", WT__FFT_WHOLE);
    wt__fft_whole_fill((float *)((char *)*tables + head), *tables);
    return WT_OK;
}
