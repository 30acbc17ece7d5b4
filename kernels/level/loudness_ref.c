#include "loudness_kernel.h"

#include <math.h>

static void shelf(double rate_hz, double *b, double *a)
{
    const double corner_hz = 1681.974450955533, gain_db = 3.999843853973347, q = 0.7071752369554196;
    const double k = tan(M_PI * corner_hz / rate_hz);
    const double high = pow(10, gain_db / 20), middle = pow(high, 0.4996667741545416);
    const double scale = 1 + k / q + k * k;
    b[0] = (high + middle * k / q + k * k) / scale;
    b[1] = 2 * (k * k - high) / scale;
    b[2] = (high - middle * k / q + k * k) / scale;
    a[0] = 1;
    a[1] = 2 * (k * k - 1) / scale;
    a[2] = (1 - k / q + k * k) / scale;
}

static void high_pass(double rate_hz, double *b, double *a)
{
    const double corner_hz = 38.13547087602444, q = 0.5003270373238773;
    const double k = tan(M_PI * corner_hz / rate_hz);
    const double scale = 1 + k / q + k * k;
    b[0] = 1; // the Recommendation leaves the numerator unscaled at every rate
    b[1] = -2;
    b[2] = 1;
    a[0] = 1;
    a[1] = 2 * (k * k - 1) / scale;
    a[2] = (1 - k / q + k * k) / scale;
}

void wt__loudness_weighting(double rate_hz, loudness_weighting *weighting)
{
    shelf(rate_hz, weighting->b[0], weighting->a[0]);
    high_pass(rate_hz, weighting->b[1], weighting->a[1]);
}
