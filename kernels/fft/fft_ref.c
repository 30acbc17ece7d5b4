// The judge of every Fourier transform: the definition, in double.
#include "fft_kernel.h"

#include <math.h>
#include <stdlib.h>

void wt__dft_ref(const double *in, int length, double *out)
{
    double *roots = malloc((size_t)length * 2 * sizeof *roots); // a sine for each product would take most of the time
    for (int k = 0; k < length; k++) {
        const double angle = -2 * 3.14159265358979323846 * k / length;
        if (roots) roots[2 * k] = cos(angle), roots[2 * k + 1] = sin(angle);
        out[2 * k] = out[2 * k + 1] = NAN;
    }
    for (int k = 0; k < length && roots; k++) {
        double re = 0, im = 0;
        for (int n = 0, at = 0; n < length; n++, at = at + k < length ? at + k : at + k - length) { // k n modulo length
            const double c = roots[2 * at], s = roots[2 * at + 1];
            re += in[2 * n] * c - in[2 * n + 1] * s;
            im += in[2 * n] * s + in[2 * n + 1] * c;
        }
        out[2 * k] = re, out[2 * k + 1] = im;
    }
    free(roots);
}
