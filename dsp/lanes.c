#include "lanes.h"

enum { SIDE = 8 };

typedef wt_f32x8 row __attribute__((aligned(4), may_alias));

WT_CLONES void wt__lanes_turn(const float *rows, ptrdiff_t distance, int count, int n, float *turned)
{
    const int whole = n / SIDE * SIDE;
    const float *from[WT__LANES];
    for (int i = 0; i < WT__LANES; i++) from[i] = rows + (i < count ? i : count - 1) * distance;
    for (int k = 0; k < whole; k += SIDE)
        for (int begin = 0; begin < WT__LANES; begin += SIDE) {
            wt_f32x8 v[SIDE];
#pragma GCC unroll 8
            for (int i = 0; i < SIDE; i++) v[i] = *(const row *)(from[begin + i] + k);
            wt_transpose_8x8(v);
#pragma GCC unroll 8
            for (int i = 0; i < SIDE; i++) *(row *)(turned + (k + i) * WT__LANES + begin) = v[i];
        }
    for (int k = whole; k < n; k++)
        for (int i = 0; i < WT__LANES; i++) turned[k * WT__LANES + i] = from[i][k];
}

WT_CLONES void wt__lanes_turn_back(const float *turned, int n, int count, float *rows)
{
    const int whole = n / SIDE * SIDE;
    for (int k = 0; k < whole; k += SIDE)
        for (int begin = 0; begin < count; begin += SIDE) {
            wt_f32x8 v[SIDE];
#pragma GCC unroll 8
            for (int i = 0; i < SIDE; i++) v[i] = *(const row *)(turned + (k + i) * WT__LANES + begin);
            wt_transpose_8x8(v);
#pragma GCC unroll 8
            for (int i = 0; i < SIDE; i++)
                if (begin + i < count) *(row *)(rows + (ptrdiff_t)(begin + i) * n + k) = v[i];
        }
    for (int k = whole; k < n; k++)
        for (int i = 0; i < count; i++) rows[(ptrdiff_t)i * n + k] = turned[k * WT__LANES + i];
}

// K. Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2 M), for any number of rows.
WT_CLONES void wt__lanes_sort(float *rows, int n)
{
    wt__bits *x = (wt__bits *)rows;
    int top = 1;
    while (2 * top < n) top *= 2;
    for (int p = top; p > 0; p /= 2)
        for (int q = top, r = 0, d = p; d > 0; d = q - p, q /= 2, r = p) {
            for (int i = 0; i + d < n; i++)
                if ((i & p) == r) wt__lanes_order(x + i * WT__LANES, x + (i + d) * WT__LANES);
            if (q == p) break;
        }
}

// Each number goes down both lists and leaves what is pushed out to the next place. Lanes by halves: GCC keeps those in
// registers.
WT_CLONES void wt__lanes_select(const float *rows, int n, int share, float *low, float *high)
{
    enum { HALF = WT__LANES / 2 };
    for (int i = 0; i < share * WT__LANES; i++) ((wt__bits *)low)[i] = INT32_MAX, ((wt__bits *)high)[i] = INT32_MIN;
    for (int half = 0; half < WT__LANES; half += HALF)
        for (int k = 0; k < n; k++) {
            const wt__bits *x = (const wt__bits *)rows + k * WT__LANES + half;
            wt__bits down[HALF], up[HALF];
            for (int i = 0; i < HALF; i++) down[i] = up[i] = x[i];
            for (int place = 0; place < share; place++) {
                wt__bits *least = (wt__bits *)low + place * WT__LANES + half, here[HALF];
                for (int i = 0; i < HALF; i++) here[i] = least[i];
                for (int i = 0; i < HALF; i++) least[i] = wt__least(here[i], down[i]);
                for (int i = 0; i < HALF; i++) down[i] = wt__most(here[i], down[i]);
            }
            for (int place = 0; place < share; place++) {
                wt__bits *most = (wt__bits *)high + place * WT__LANES + half, here[HALF];
                for (int i = 0; i < HALF; i++) here[i] = most[i];
                for (int i = 0; i < HALF; i++) most[i] = wt__most(here[i], up[i]);
                for (int i = 0; i < HALF; i++) up[i] = wt__least(here[i], up[i]);
            }
        }
}
