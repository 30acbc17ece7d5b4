// An attack is a block of samples whose differences have ten times the mean energy of the blocks before it in one
// window: differences weigh high frequencies, where attacks stand out of what goes on (P. Masri and A. Bateman,
// Improved modelling of attack transients in music analysis-resynthesis, 1996, who weigh spectra). Ten is above what
// pulses of a voice reach: one period's energy in one block of a 32nd of a window, 7 at 50 Hz, 2048 samples and 22050
// Hz.
//
// Around an attack time runs at rate 1, and in between as fast as it takes to make up for that (C. Duxbury, M. Davies
// and M. Sandler, Improved time-scaling of musical audio using phase locking at transients, 2002). All frames that hold
// the attack then put it on one place.

#include "stretch_transients.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

enum { BLOCKS = 32, LANES = 8 }; // blocks of a window

static int64_t smallest(int64_t a, int64_t b) { return a < b ? a : b; }

int wt__transients_block(int n_fft) { return n_fft > BLOCKS ? n_fft / BLOCKS : 1; }

int wt__transients_gap(int n_fft) { return n_fft > 4 ? n_fft / 4 : 1; }

int64_t wt__transients_most(int64_t n_samples, int n_fft) { return n_samples / wt__transients_gap(n_fft) + 1; }

wt_status wt__transients_create(wt__transients *t)
{
    t->most = wt__transients_most(t->n_samples, t->n_fft);
    t->at = malloc((size_t)t->most * sizeof *t->at);
    return t->at ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "stretch: %lld attacks", (long long)t->most);
}

void wt__transients_destroy(wt__transients *t)
{
    free(t->at);
    t->at = NULL;
}

// Of the differences x[i] - x[i - 1], where x[-1] is there.
WT_CLONES static double energy_of(const float *x, int n)
{
    double part[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) part[j] += (double)(x[i + j] - x[i + j - 1]) * (x[i + j] - x[i + j - 1]);
    for (; i < n; i++) sum += (double)(x[i] - x[i - 1]) * (x[i] - x[i - 1]);
    for (int j = 0; j < LANES; j++) sum += part[j];
    return sum;
}

static double block_energy(const wt__transients *t, const float *pcm, int64_t begin)
{
    const int n = (int)smallest(wt__transients_block(t->n_fft), t->n_samples - begin);
    return begin ? energy_of(pcm + begin, n) : (double)pcm[0] * pcm[0] + energy_of(pcm + 1, n - 1);
}

// The largest difference of two blocks.
static int64_t steepest(const wt__transients *t, const float *pcm, int64_t begin)
{
    const int64_t end = smallest(begin + 2 * wt__transients_block(t->n_fft), t->n_samples);
    float most = -1;
    int64_t at = begin;
    for (int64_t i = begin; i < end; i++) {
        const float step = fabsf(pcm[i] - (i ? pcm[i - 1] : 0));
        if (step > most) most = step, at = i;
    }
    return at;
}

// Surroundings end half way to the next attack, in the input and in the output.
static void measure_halves(wt__transients *t)
{
    for (int64_t i = 0; i < t->count; i++) t->at[i].half = t->n_fft / 2;
    for (int64_t i = 1; i < t->count; i++) {
        const int64_t half = smallest(t->at[i].in - t->at[i - 1].in, t->at[i].out - t->at[i - 1].out) / 2;
        t->at[i - 1].half = smallest(t->at[i - 1].half, half);
        t->at[i].half = smallest(t->at[i].half, half);
    }
}

WT_RT void wt__transients_find(wt__transients *t, const float *pcm)
{
    const int block = wt__transients_block(t->n_fft);
    double past[BLOCKS] = {0}, loudest = 0;
    for (int64_t begin = 0; begin < t->n_samples; begin += block) {
        const double energy = block_energy(t, pcm, begin);
        if (energy > loudest) loudest = energy;
    }
    t->count = 0;
    int64_t free_from = 0;
    for (int64_t k = 0; k * block < t->n_samples; k++) {
        const double energy = block_energy(t, pcm, k * block);
        double before = 0;
        for (int i = 0; i < BLOCKS; i++) before += past[i];
        past[k % BLOCKS] = energy;
        // what is 60 dB below the loudest attack is none
        if (!(energy > 10 * before / BLOCKS && energy > 1e-6 * loudest) || k * block < free_from) continue;
        const int64_t at = steepest(t, pcm, k * block);
        t->at[t->count++] = (wt_transient){at, llrint((double)at / t->rate), 0};
        free_from = at + wt__transients_gap(t->n_fft);
        if (t->count == t->most) break;
    }
    measure_halves(t);
}
