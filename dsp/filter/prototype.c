// The formulae and the order of the roots are those of scipy.signal's buttap, cheb1ap, cheb2ap, ellipap and besselap,
// which follow the books named in filter.h. The elliptic functions are computed by the arithmetic-geometric mean
// (Abramowitz and Stegun 16.4 and 17.6), the inverse sc by Carlson's R_F (DLMF 19.25.5).
#include "prototype.h"

#include <float.h>
#include <math.h>

// prod(-p) / prod(-z), the gain that makes the response 1 at zero frequency; multiplied root by root, so that high
// orders neither overflow nor vanish.
static double unit_gain(const wt__zpk *zpk)
{
    double complex gain = 1;
    for (int k = 0; k < zpk->n_poles; k++) {
        gain *= -zpk->poles[k];
        if (k < zpk->n_zeros) gain /= -zpk->zeros[k];
    }
    return creal(gain);
}

static double power_less_one(double decibels)
{
    return expm1(M_LN10 * decibels / 10);
}

static void butterworth(int order, wt__zpk *zpk)
{
    for (int k = 0; k < order; k++) zpk->poles[k] = -cexp(I * M_PI * (2 * k + 1 - order) / (2.0 * order));
    zpk->gain = 1;
}

static void chebyshev_i(int order, double ripple_db, wt__zpk *zpk)
{
    const double ripple = sqrt(power_less_one(ripple_db)), mu = asinh(1 / ripple) / order;
    for (int k = 0; k < order; k++) zpk->poles[k] = -csinh(mu + I * M_PI * (2 * k + 1 - order) / (2.0 * order));
    zpk->gain = unit_gain(zpk) / (order % 2 ? 1 : sqrt(1 + ripple * ripple));
}

static void chebyshev_ii(int order, double attenuation_db, wt__zpk *zpk)
{
    const double mu = asinh(sqrt(power_less_one(attenuation_db))) / order;
    for (int k = 0; k < order; k++) {
        const int m = 2 * k + 1 - order;
        const double complex pole = -cexp(I * M_PI * m / (2.0 * order));
        zpk->poles[k] = 1 / (sinh(mu) * creal(pole) + I * cosh(mu) * cimag(pole));
        if (m) zpk->zeros[zpk->n_zeros++] = I / sin(M_PI * m / (2.0 * order));
    }
    zpk->gain = unit_gain(zpk);
}

// ---- elliptic

static double agm(double a, double b)
{
    for (int k = 0; k < 40 && fabs(a - b) > 2 * DBL_EPSILON * a; k++) {
        const double mean = (a + b) / 2;
        b = sqrt(a * b);
        a = mean;
    }
    return a;
}

// Complete integral K of parameter m, given 1 - m, which may be tiny.
static double complete(double one_less_m)
{
    return M_PI / (2 * agm(1, sqrt(one_less_m)));
}

static void jacobi(double u, double m, double *sn, double *cn, double *dn)
{
    double a[32] = {1}, c[32] = {sqrt(m)}, b = sqrt(1 - m), scale = 1;
    int i = 0;
    for (; i < 31 && fabs(c[i]) > DBL_EPSILON * a[i]; i++) {
        c[i + 1] = (a[i] - b) / 2;
        a[i + 1] = (a[i] + b) / 2;
        b = sqrt(a[i] * b);
        scale *= 2;
    }
    double phi = scale * a[i] * u;
    for (; i > 0; i--) phi = (phi + asin(c[i] * sin(phi) / a[i])) / 2;
    *sn = sin(phi);
    *cn = cos(phi);
    *dn = sqrt(1 - m * *sn * *sn);
}

// u with sc(u | 1 - m) = w: F(atan w | 1 - m) = sin(phi) R_F(cos^2 phi, cos^2 phi + m sin^2 phi, 1).
static double inverse_sc(double w, double m)
{
    const double cos2 = 1 / (1 + w * w), sin2 = w * w * cos2;
    double x = cos2, y = cos2 + m * sin2, z = 1;
    for (int k = 0; k < 60; k++) {
        const double mean = (x + y + z) / 3;
        if (fabs(x - mean) < 1e-9 * mean && fabs(y - mean) < 1e-9 * mean && fabs(z - mean) < 1e-9 * mean) break;
        const double lambda = sqrt(x * y) + sqrt(y * z) + sqrt(z * x);
        x = (x + lambda) / 4;
        y = (y + lambda) / 4;
        z = (z + lambda) / 4;
    }
    return sqrt(sin2) / sqrt((x + y + z) / 3); // the next term of the series is of the order of 1e-18
}

// Parameter m whose quarter periods are in `n` times the ratio of those of m1: 16 q (num / den)^4 with the nome q.
static double degree_equation(int n, double m1)
{
    const double nome = exp(-M_PI * complete(m1) / complete(1 - m1) / n);
    double numerator = 0, denominator = 1;
    for (int k = 0; k < 9; k++) numerator += pow(nome, k * (k + 1));
    for (int k = 1; k < 10; k++) denominator += 2 * pow(nome, k * k);
    return 16 * nome * pow(numerator / denominator, 4);
}

static void elliptic(int order, double ripple_db, double attenuation_db, wt__zpk *zpk)
{
    const double ripple2 = power_less_one(ripple_db);
    if (order == 1) {
        zpk->poles[0] = -sqrt(1 / ripple2);
        zpk->gain = unit_gain(zpk);
        return;
    }
    const double m1 = ripple2 / power_less_one(attenuation_db), m = degree_equation(order, m1);
    const double quarter = complete(1 - m);
    const double v0 = quarter * inverse_sc(1 / sqrt(ripple2), m1) / (order * complete(1 - m1));
    double sv, cv, dv;
    jacobi(v0, 1 - m, &sv, &cv, &dv);
    int n = 0;
    for (int j = 1 - order % 2; j < order; j += 2) {
        double s, c, d;
        jacobi(j * quarter / order, m, &s, &c, &d);
        const double scale = 1 - d * sv * d * sv;
        const double complex pole = -(c * d * sv * cv + I * s * dv) / scale;
        zpk->poles[n++] = j ? pole : creal(pole);
        if (!j) continue;
        zpk->poles[n++] = conj(pole);
        zpk->zeros[zpk->n_zeros++] = I / (sqrt(m) * s);
        zpk->zeros[zpk->n_zeros++] = -I / (sqrt(m) * s);
    }
    zpk->gain = unit_gain(zpk) / (order % 2 ? 1 : sqrt(1 + ripple2));
}

// ---- Bessel

// Reverse Bessel polynomial and its slope by the recurrence of the degree, theta_n = (2n-1) theta_n-1 + s^2 theta_n-2.
static long double complex newton_step(int order, long double complex s)
{
    long double complex before = 1, now = s + 1, slope_before = 0, slope = 1;
    for (int n = 2; n <= order; n++) {
        const long double complex next = (2 * n - 1) * now + s * s * before;
        const long double complex next_slope = (2 * n - 1) * slope + s * s * slope_before + 2 * s * before;
        before = now;
        now = next;
        slope_before = slope;
        slope = next_slope;
    }
    return now / slope;
}

// All roots at once by the method of Ehrlich and Aberth.
static void bessel(int order, wt__zpk *zpk)
{
    long double complex roots[WT_SOS_MAX_ORDER];
    for (int k = 0; k < order; k++) roots[k] = -order * 0.7L * cexpl(I * (M_PI * (k + 0.5L - order / 2.0L) / order));
    long double largest = 1;
    for (int turn = 0; turn < 200 && largest > 1e-17L; turn++) {
        largest = 0;
        for (int k = 0; k < order; k++) {
            const long double complex step = newton_step(order, roots[k]);
            long double complex push = 0;
            for (int j = 0; j < order; j++)
                if (j != k) push += 1 / (roots[k] - roots[j]);
            const long double complex move = step / (1 - step * push);
            roots[k] -= move;
            largest = fmaxl(largest, cabsl(move) / cabsl(roots[k]));
        }
    }
    double log_last =
        0; // log of theta(0) = (2n)! / (2^n n!), whose n-th root matches the phase of a Butterworth filter
    for (int n = 1; n <= order; n++) log_last += log(2 * n - 1);
    for (int k = 0; k < order; k++) zpk->poles[k] = roots[k] / expl(log_last / order);
    zpk->gain = 1;
}

void wt__prototype(wt_filter_family family, int order, double ripple_db, double attenuation_db, wt__zpk *zpk)
{
    *zpk = (wt__zpk){.n_poles = order};
    switch (family) {
    case WT_BUTTERWORTH:
        butterworth(order, zpk);
        break;
    case WT_CHEBYSHEV_I:
        chebyshev_i(order, ripple_db, zpk);
        break;
    case WT_CHEBYSHEV_II:
        chebyshev_ii(order, attenuation_db, zpk);
        break;
    case WT_ELLIPTIC:
        elliptic(order, ripple_db, attenuation_db, zpk);
        break;
    case WT_BESSEL:
        bessel(order, zpk);
        break;
    }
}
