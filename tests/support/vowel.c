#include "vowel.h"

#include <math.h>

const double vowel_formants_hz[VOWEL_FORMANTS] = {530, 1840, 2480, 3500};
static const double widths_hz[VOWEL_FORMANTS] = {80, 100, 130, 180};

// Of resonators in a row.
static double vowel_gain(double hz)
{
    double gain = 1;
    for (int i = 0; i < VOWEL_FORMANTS; i++) {
        const double f = vowel_formants_hz[i] * vowel_formants_hz[i];
        gain *= f / hypot(f - hz * hz, widths_hz[i] * hz);
    }
    return gain;
}

void vowel_signal(float *x, int n, double f0_hz, double rate_hz)
{
    for (int m = 1; m * f0_hz < 10500; m++)
        for (int i = 0; i < n; i++)
            x[i] +=
                (float)(0.02 * vowel_gain(m * f0_hz) * cos(6.283185307179586477 * m * (f0_hz * i / rate_hz + 0.1 * m)));
}

double amplitude_at(const float *x, int64_t n, double hz, double rate_hz)
{
    const int64_t begin = 8192, count = n - 2 * begin;
    double re = 0, im = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        const double w = 0.5 - 0.5 * cos(6.283185307179586477 * (double)i / (double)count),
                     turn = 6.283185307179586477 * hz / rate_hz * (double)i;
        re += w * cos(turn) * x[begin + i], im += w * sin(turn) * x[begin + i], all += w;
    }
    return 2 * hypot(re, im) / all;
}

double vowel_moved_by(const double *amplitudes, double f0_hz, double low_hz, double high_hz)
{
    double best = 0, least = HUGE_VAL;
    for (double by = 0.6; by < 1.6; by += 0.002) {
        double sum = 0, squares = 0, weights = 0;
        for (int m = 1; m < VOWEL_HARMONICS; m++) {
            if (m * f0_hz < low_hz || m * f0_hz > high_hz) continue;
            const double off = log(amplitudes[m] / vowel_gain(m * f0_hz / by)), weight = amplitudes[m];
            sum += weight * off, squares += weight * off * off, weights += weight;
        }
        const double error = squares - sum * sum / weights;
        if (error < least) least = error, best = by;
    }
    return best;
}
