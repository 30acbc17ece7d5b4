// Phase vocoder with identity phase locking. An output frame is the input's frame at its place, t * hop * rate, with
// each spectral peak's surroundings turned as one, so that a partial's main lobe stays the window's. A peak is turned
// to go on where the frame before left it: by the phase that the input itself moves in one hop, from a second frame a
// hop earlier. So nothing is unwrapped or guessed, and a steady sine comes out as itself. Source: J. Laroche and M.
// Dolson, Improved phase vocoder time-scale modification of audio, 1999.
//
// The output's frame goes on in double: rounded to float in each frame its phases walk away by 1e-7 a step. Powers are
// exact but for two roundings, the same on every machine, and so are peaks.

#include "stretch_locked.h"

#include <math.h>
#include <stdbool.h>
#include <warptone/simd.h>

WT_CLONES static void powers(const float *x, int bins, float *power)
{
    for (int k = 0; k < bins; k++) {
        const double re = x[2 * k], im = x[2 * k + 1];
        power[k] = (float)(re * re + im * im);
    }
}

static bool is_peak(const float *power, int bins, int k)
{
    const float here = power[k];
    bool peak = here > 0;
    for (int d = 1; d <= 2; d++) peak &= (k < d || here > power[k - d]) && (k + d >= bins || here >= power[k + d]);
    return peak;
}

// Without branches but at the ends: nobody foretells where peaks lie.
static int find_peaks(const float *power, int bins, int *peaks)
{
    int count = 0, k = 0;
    for (; k < bins && k < 2; k++) peaks[count] = k, count += is_peak(power, bins, k);
    for (; k < bins - 2; k++) {
        const float here = power[k];
        peaks[count] = k;
        count += (here > 0) & (here > power[k - 1]) & (here > power[k - 2]) & (here >= power[k + 1]) &
                 (here >= power[k + 2]);
    }
    for (; k < bins; k++) peaks[count] = k, count += is_peak(power, bins, k);
    return count;
}

// The first of the lowest bins from `begin` to before `end`; `begin` if there are none.
static int lowest(const float *power, int begin, int end)
{
    int at = begin;
    float least = power[begin];
    for (int k = begin + 1; k < end; k++) {
        const bool less = power[k] < least;
        least = less ? power[k] : least, at = less ? k : at;
    }
    return at;
}

// The unit vector that turns `from` in the input to where the output's frame before had that bin; 1 where either is 0.
static void rotation(const float *input, const double *output, int bin, double *re, double *im)
{
    const double a = input[2 * bin], b = input[2 * bin + 1], c = output[2 * bin], d = output[2 * bin + 1];
    const double x = c * a + d * b, y = d * a - c * b, size = sqrt(x * x + y * y);
    *re = size > 0 ? x / size : 1;
    *im = size > 0 ? y / size : 0;
}

WT_CLONES static void turn(const float *x, int count, double re, double im, double *y, float *out)
{
    for (int k = 0; k < count; k++) {
        const double a = x[2 * k], b = x[2 * k + 1];
        y[2 * k] = a * re - b * im;
        y[2 * k + 1] = a * im + b * re;
        out[2 * k] = (float)y[2 * k], out[2 * k + 1] = (float)y[2 * k + 1];
    }
}

WT_RT void wt__stretch_lock(const wt__locked *state, int bins, const float *here, const float *earlier, float *out)
{
    powers(here, bins, state->power);
    const int n_peaks = earlier ? find_peaks(state->power, bins, state->peaks) : 0;
    if (!n_peaks) turn(here, bins, 1, 0, state->before, out);
    for (int i = 0, begin = 0; i < n_peaks; i++) {
        // a region ends at the lowest bin before the next peak
        const int end = i + 1 < n_peaks ? lowest(state->power, state->peaks[i] + 1, state->peaks[i + 1]) : bins;
        double re, im;
        rotation(earlier, state->before, state->peaks[i], &re, &im);
        turn(here + 2 * begin, end - begin, re, im, state->before + 2 * begin, out + 2 * begin);
        begin = end;
    }
}

// Exact but for one sum.
static double power_of(const float *x) { return (double)x[0] * x[0] + (double)x[1] * x[1]; }

WT_RT void wt__stretch_attack(const wt__locked *state, int bins, const float *attack, const float *quiet,
                              const float *here, float *out)
{
    for (int k = 0; k < 2 * bins; k += 2)
        if (power_of(attack + k) > 4 * power_of(quiet + k))
            for (int i = k; i < k + 2; i++) state->before[i] = out[i] = here[i];
}
