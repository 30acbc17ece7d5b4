// Tables of fft_whole.h.

#include "fft_internal.h"

#include <math.h>
#include <stdlib.h>

enum { POINTS = 1024, HALF = 4, LANES = 8 };

static const double PI = 3.14159265358979323846;

// Factors of HALF points, w_n^(num + step i): real parts twice, imaginary ones with both signs.
static float *pairs(float *to, int num, int step, int n)
{
    for (int i = 0; i < HALF; i++) {
        const double angle = -2 * PI * ((double)num + (double)step * i) / n;
        to[2 * i] = to[2 * i + 1] = (float)cos(angle);
        to[LANES + 2 * i] = (float)-sin(angle), to[LANES + 2 * i + 1] = (float)sin(angle);
    }
    return to + 2 * LANES;
}

// Bins' factors are -i w, a quarter turn on.
static float *bins(float *to, int k, int step) { return pairs(to, k + POINTS / 2, step, 2 * POINTS); }

wt_status wt__fft_whole_create(wt__fft_whole_tables **tables)
{
    enum { COLUMNS = 16, FIRST = 16 * 16, MID = 2 * 8, BLOCKS = 16, BINS = BLOCKS * 8 + 5 };
    const size_t head = (sizeof(wt__fft_whole_tables) + 63) / 64 * 64;
    const size_t floats = (COLUMNS + FIRST + MID + BINS) * 2 * LANES;
    *tables = aligned_alloc(64, head + floats * sizeof(float));
    if (!*tables) return wt_fail(WT_ERR_NO_MEMORY, "fft: tables of frames of %d", 2 * POINTS);
    float *to = (float *)((char *)*tables + head);
    (*tables)->columns = to;
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 4; j++) to = pairs(to, j * k, 0, 16);
    (*tables)->first = to;
    for (int p = 0; p < POINTS / 16; p += HALF)
        for (int j = 0; j < 16; j++) to = pairs(to, j * p, j, POINTS);
    (*tables)->mid = to;
    for (int p = 0; p < 8; p += HALF)
        for (int j = 0; j < 8; j++) to = pairs(to, j * p, j, 64);
    (*tables)->bins = to;
    for (int block = 0; block < BLOCKS; block++)
        for (int j = 0; j < 8; j++) {
            float *from = to;
            to = bins(to, HALF * block + 128 * j, 1);
            if (block) continue;
            float middle[2 * LANES];
            bins(middle, 64 + 128 * j, 0);
            for (int i = 0; i < 2; i++) from[i] = middle[i], from[LANES + i] = middle[LANES + i];
        }
    for (int j = 0; j <= 4; j++) to = bins(to, 128 * j, 0);
    return WT_OK;
}
