// WSOLA: the output is windowed pieces of the input, a hop apart. Each piece is taken from near its place, there where
// the input is most like what would follow the piece before, by normalised cross-correlation. Source: W. Verhelst and
// M. Roelands, An overlap-add technique based on waveform similarity (WSOLA) for high quality time-scale modification
// of speech, ICASSP 1993.
//
// A piece that holds an attack is taken from its place, and no search reaches one, so that none is heard twice (S.
// Grofit and Y. Lavner, Time-scale modification of audio signals using enhanced WSOLA with management of transients,
// 2008).

#include "stretch_wsola.h"

#include "wsola_kernel.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = WT_WSOLA_LANES, AT_ONCE = 4 };

wt_status wt__wsola_create(wt__wsola *w)
{
    const size_t n = (size_t)w->n_fft;
    w->wanted = malloc(n * sizeof(double));
    w->near = malloc((2 * n + AT_ONCE) * sizeof(double));
    w->squares = malloc((2 * n + 1) * sizeof(double));
    w->like = malloc((n + AT_ONCE) * sizeof(double));
    w->sum = malloc(n * sizeof(float));
    w->weight = malloc(n * sizeof(float));
    if (w->wanted && w->near && w->squares && w->like && w->sum && w->weight) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "stretch: pieces of %d samples", w->n_fft);
}

void wt__wsola_destroy(wt__wsola *w)
{
    free(w->wanted);
    free(w->near);
    free(w->squares);
    free(w->like);
    free(w->sum);
    free(w->weight);
    *w = (wt__wsola){0};
}

// n samples from `begin` on, zeros outside the signal.
static void cut(const wt__transients *t, const float *pcm, int64_t begin, int n, double *out)
{
    for (int i = 0; i < n; i++) out[i] = begin + i >= 0 && begin + i < t->n_samples ? (double)pcm[begin + i] : 0;
}

#include "wsola_level.h"

// squares[i]: those of the first i samples, run by run.
static void sum_squares(const double *x, int n, double *squares)
{
    double before = 0, run = 0;
    squares[0] = 0;
    for (int i = 0; i < n; i++) {
        if (i && i % WT_WSOLA_RUN == 0) before += run, run = 0;
        run += x[i] * x[i];
        squares[i + 1] = before + run;
    }
}

// The place within first .. last most like `wanted`; of places that are equally so, the one nearest to the centre.
static int64_t most_alike(const wt__wsola *w, const wt__transients *t, const float *pcm, wt_stretch_place p)
{
    const int reach = w->n_fft / 4, n = w->n_fft;
    const int64_t begin = p.centre - reach;
    double most = 0;
    cut(t, pcm, begin - n / 2, n + 2 * reach, w->near);
    sum_squares(w->near, n + 2 * reach, w->squares);
    for (int i = 0; i < AT_ONCE; i++) w->near[n + 2 * reach + i] = 0;
    for (int i = 0; i <= 2 * reach; i += AT_ONCE) WT_LEVEL_CALL(compare, w->wanted, w->near + i, n, w->like + i);
    for (int i = 0; i <= 2 * reach; i++) {
        const double energy = w->squares[i + n] - w->squares[i];
        const bool fits = begin + i >= p.first && begin + i <= p.last && energy > 1e-12 * w->squares[n + 2 * reach];
        w->like[i] = fits && w->like[i] > 0 ? w->like[i] / sqrt(energy) : 0;
        if (w->like[i] > most) most = w->like[i];
    }
    for (int off = 0; off <= reach && most > 0; off++) {
        if (w->like[reach - off] >= most * (1 - WT_WSOLA_TIE)) return p.centre - off;
        if (w->like[reach + off] >= most * (1 - WT_WSOLA_TIE)) return p.centre + off;
    }
    return p.centre;
}

// The next piece to the sums. The first place has nothing to follow, and an attack none but its own.
WT_RT static void add_piece(wt__wsola *w, const wt__transients *t, const float *pcm)
{
    const int n = w->n_fft;
    const wt_stretch_place p = wt__transients_place(t, w->to);
    int64_t from = p.centre;
    if (w->to && p.held < 0) {
        cut(t, pcm, w->before + w->hop - n / 2, n, w->wanted);
        from = most_alike(w, t, pcm, p);
    }
    cut(t, pcm, from - n / 2, n, w->near);
    for (int i = 0; i < n; i++) {
        w->sum[i] += (float)w->window[i] * (float)w->near[i];
        w->weight[i] += (float)w->window[i];
    }
    w->before = from;
}

void wt__wsola_begin(wt__wsola *w)
{
    w->to = 0;
    memset(w->sum, 0, (size_t)w->n_fft * sizeof *w->sum);
    memset(w->weight, 0, (size_t)w->n_fft * sizeof *w->weight);
}

// Behind the last piece that begins within the result there may be samples that it reaches, and silence.
WT_RT int64_t wt__wsola_next(wt__wsola *w, const wt__transients *t, const float *pcm, float *out)
{
    const int64_t first = w->to - w->n_fft / 2; // of the sums
    const int moved = w->hop < w->n_fft ? w->hop : w->n_fft;
    const size_t rest = (size_t)(w->n_fft - moved) * sizeof(float);
    int64_t given = 0;
    if (w->to < t->n_out + w->hop) add_piece(w, t, pcm);
    for (int64_t i = first < 0 ? -first : 0; i < w->hop && first + i < t->n_out; i++)
        out[given++] = i < w->n_fft && w->weight[i] > 1e-6f ? w->sum[i] / w->weight[i] : 0;
    memmove(w->sum, w->sum + moved, rest);
    memmove(w->weight, w->weight + moved, rest);
    memset((char *)w->sum + rest, 0, (size_t)moved * sizeof(float));
    memset((char *)w->weight + rest, 0, (size_t)moved * sizeof(float));
    w->to += w->hop;
    return given;
}
