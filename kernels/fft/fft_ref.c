// The judge of every Fourier transform: the definition, in double.
#include "fft_kernel.h"

#include <math.h>

void wt__dft_ref(const double *in, int length, int inverse, double *out)
{
    const double turn = (inverse ? 2 : -2) * 3.14159265358979323846 / length;
    for (int k = 0; k < length; k++) {
        double re = 0, im = 0;
        for (int n = 0; n < length; n++) {
            double angle = turn * (double)((long long)k * n % length), c = cos(angle), s = sin(angle);
            re += in[2 * n] * c - in[2 * n + 1] * s;
            im += in[2 * n] * s + in[2 * n + 1] * c;
        }
        out[2 * k] = inverse ? re / length : re;
        out[2 * k + 1] = inverse ? im / length : im;
    }
}
