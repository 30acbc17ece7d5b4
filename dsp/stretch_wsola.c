// WSOLA: the output is windowed pieces of the input, a hop apart. Each piece is taken from near its place, there where
// the input is most like what would follow the piece before, by normalised cross-correlation. Source: W. Verhelst and
// M. Roelands, An overlap-add technique based on waveform similarity (WSOLA) for high quality time-scale modification
// of speech, ICASSP 1993.
//
// A piece that holds an attack is taken from its place, and no search reaches one, so that none is heard twice (S.
// Grofit and Y. Lavner, Time-scale modification of audio signals using enhanced WSOLA with management of transients,
// 2008).

#include "stretch_wsola.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 16 };

wt_status wt__wsola_create(wt__wsola *w, int64_t n_out)
{
    const size_t n = (size_t)w->n_fft;
    w->wanted = malloc(n * sizeof(float));
    w->near = malloc(2 * n * sizeof(float));
    w->weight = malloc((size_t)(n_out + 1) * sizeof(float));
    if (w->wanted && w->near && w->weight) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "stretch: pieces of %d samples", w->n_fft);
}

void wt__wsola_destroy(wt__wsola *w)
{
    free(w->wanted);
    free(w->near);
    free(w->weight);
    *w = (wt__wsola){0};
}

// n samples from `begin` on, zeros outside the signal.
static void cut(const wt__transients *t, const float *pcm, int64_t begin, int n, float *out)
{
    for (int i = 0; i < n; i++) out[i] = begin + i >= 0 && begin + i < t->n_samples ? pcm[begin + i] : 0;
}

WT_CLONES static float dot(const float *x, const float *y, int n)
{
    float part[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) part[j] += x[i + j] * y[i + j];
    for (; i < n; i++) sum += x[i] * y[i];
    for (int j = 0; j < LANES; j++) sum += part[j];
    return sum;
}

// The place within first .. last most like `wanted`; of places that are equally so, the one nearest to the centre.
static int64_t most_alike(const wt__wsola *w, const wt__transients *t, const float *pcm, wt__stretch_place p)
{
    const int reach = w->n_fft / 4, n = w->n_fft;
    const int64_t begin = p.centre - reach;
    cut(t, pcm, begin - n / 2, n + 2 * reach, w->near);
    int64_t best = p.centre;
    double most = 0, energy = 0, all = 0;
    for (int i = 0; i < n; i++) energy += (double)w->near[i] * w->near[i];
    for (int i = 0; i < n + 2 * reach; i++) all += (double)w->near[i] * w->near[i];
    for (int i = 0; i <= 2 * reach; i++) {
        const int64_t at = begin + i;
        if (at >= p.first && at <= p.last && energy > 1e-12 * all) {
            const double like = dot(w->wanted, w->near + i, n) / sqrt(energy), margin = 1e-5 * fabs(most);
            const bool nearer = llabs(at - p.centre) < llabs(best - p.centre);
            if (like > 0 && like > most + (nearer ? -margin : margin)) {
                best = at;
                if (like > most) most = like;
            }
        }
        energy += (double)w->near[i + n] * w->near[i + n] - (double)w->near[i] * w->near[i];
    }
    return best;
}

// The first place has nothing to follow, and an attack none but its own.
WT_RT void wt__wsola_run(const wt__wsola *w, const wt__transients *t, const float *pcm, float *out)
{
    const int n = w->n_fft;
    int64_t cursor = 0, before = 0;
    memset(out, 0, (size_t)t->n_out * sizeof *out);
    memset(w->weight, 0, (size_t)t->n_out * sizeof *w->weight);
    for (int64_t to = 0; to < t->n_out + w->hop; to += w->hop) {
        const wt__stretch_place p = wt__transients_place(t, to, &cursor);
        int64_t from = p.centre;
        if (to && p.held < 0) {
            cut(t, pcm, before + w->hop - n / 2, n, w->wanted);
            from = most_alike(w, t, pcm, p);
        }
        cut(t, pcm, from - n / 2, n, w->near);
        for (int i = 0; i < n; i++) {
            const int64_t at = to - n / 2 + i;
            if (at < 0 || at >= t->n_out) continue;
            out[at] += (float)w->window[i] * w->near[i];
            w->weight[at] += (float)w->window[i];
        }
        before = from;
    }
    for (int64_t i = 0; i < t->n_out; i++) out[i] = w->weight[i] > 1e-6f ? out[i] / w->weight[i] : 0;
}
