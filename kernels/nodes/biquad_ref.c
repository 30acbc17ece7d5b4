// The judge of biquad: R. Bristow-Johnson's cookbook coefficients, run as a direct form in double precision.
#include "biquad_kernel.h"

static void cookbook(int shape, double rate_hz, double frequency_hz, double q, double gain_db, double *b, double *a)
{
    double w = 2 * WT_PI * frequency_hz / rate_hz, c = cos(w), alpha = sin(w) / (2 * q), big = pow(10, gain_db / 40);
    double root = 2 * sqrt(big) * alpha, plus = big + 1, minus = big - 1;
    a[0] = 1 + alpha, a[1] = -2 * c, a[2] = 1 - alpha;
    switch (shape) {
    case BIQUAD_LOWPASS:
        b[1] = 1 - c, b[0] = b[2] = b[1] / 2;
        break;
    case BIQUAD_HIGHPASS:
        b[1] = -(1 + c), b[0] = b[2] = -b[1] / 2;
        break;
    case BIQUAD_BANDPASS:
        b[0] = alpha, b[1] = 0, b[2] = -alpha;
        break;
    case BIQUAD_NOTCH:
        b[0] = 1, b[1] = -2 * c, b[2] = 1;
        break;
    case BIQUAD_ALLPASS:
        b[0] = 1 - alpha, b[1] = -2 * c, b[2] = 1 + alpha;
        break;
    case BIQUAD_PEAK:
        b[0] = 1 + alpha * big, b[1] = -2 * c, b[2] = 1 - alpha * big;
        a[0] = 1 + alpha / big, a[2] = 1 - alpha / big;
        break;
    case BIQUAD_LOWSHELF:
        b[0] = big * (plus - minus * c + root), b[1] = 2 * big * (minus - plus * c),
        b[2] = big * (plus - minus * c - root);
        a[0] = plus + minus * c + root, a[1] = -2 * (minus + plus * c), a[2] = plus + minus * c - root;
        break;
    case BIQUAD_HIGHSHELF:
        b[0] = big * (plus + minus * c + root), b[1] = -2 * big * (minus + plus * c),
        b[2] = big * (plus + minus * c - root);
        a[0] = plus - minus * c + root, a[1] = 2 * (minus - plus * c), a[2] = plus - minus * c - root;
        break;
    }
}

void biquad_ref(int shape, double rate_hz, double frequency_hz, double q, double gain_db, const float *x, float *y,
                int n_frames)
{
    double b[3] = {1}, a[3] = {1}, x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    cookbook(shape, rate_hz, frequency_hz, q, gain_db, b, a);
    for (int n = 0; n < n_frames; n++) {
        double out = (b[0] * x[n] + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2) / a[0];
        x2 = x1, x1 = x[n], y2 = y1, y1 = out;
        y[n] = (float)out;
    }
}
