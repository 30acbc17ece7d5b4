// From a prototype to sections: band transform, bilinear transform, pairing. Each step is scipy.signal's (lp2lp_zpk,
// lp2hp_zpk, lp2bp_zpk, lp2bs_zpk, bilinear_zpk, zpk2sos with pairing 'nearest'), so that sections come out alike.
#include "prototype.h"

#include <math.h>
#include <string.h>

// ---- band transforms; the Nyquist frequency is 2 rad/s, as bilinear transform with rate 2 wants

static void scale_roots(wt__zpk *f, double edge)
{
    for (int k = 0; k < f->n_zeros; k++) f->zeros[k] *= edge;
    for (int k = 0; k < f->n_poles; k++) f->poles[k] *= edge;
    f->gain *= pow(edge, f->n_poles - f->n_zeros);
}

// s -> edge / s; zeros at infinity come to the origin. The gain takes prod(-z) / prod(-p).
static void invert_roots(wt__zpk *f, double edge)
{
    double complex gain = 1;
    for (int k = 0; k < f->n_poles; k++) {
        gain /= -f->poles[k];
        if (k < f->n_zeros) gain *= -f->zeros[k];
    }
    for (int k = 0; k < f->n_zeros; k++) f->zeros[k] = edge / f->zeros[k];
    for (int k = 0; k < f->n_poles; k++) f->poles[k] = edge / f->poles[k];
    f->gain *= creal(gain);
}

static void pad_zeros(wt__zpk *f, int n, double complex zero)
{
    while (n-- > 0) f->zeros[f->n_zeros++] = zero;
}

// Each root r becomes the two of s^2 - 2 r s + centre^2.
static int split_roots(double complex *roots, int n, double centre)
{
    for (int k = 0; k < n; k++) {
        const double complex root = roots[k], away = csqrt(root * root - centre * centre);
        roots[k] = root + away;
        roots[n + k] = root - away;
    }
    return 2 * n;
}

static void to_band(wt__zpk *f, wt_filter_band band, const double *edges)
{
    const int degree = f->n_poles - f->n_zeros;
    const double width = edges[1] - edges[0], centre = sqrt(edges[0] * edges[1]);
    switch (band) {
    case WT_LOW_PASS:
        scale_roots(f, edges[0]);
        break;
    case WT_HIGH_PASS:
        invert_roots(f, edges[0]);
        pad_zeros(f, degree, 0);
        break;
    case WT_BAND_PASS:
        scale_roots(f, width / 2);
        f->gain *= pow(2, degree);
        f->n_zeros = split_roots(f->zeros, f->n_zeros, centre);
        f->n_poles = split_roots(f->poles, f->n_poles, centre);
        pad_zeros(f, degree, 0);
        break;
    case WT_BAND_STOP:
        invert_roots(f, width / 2);
        f->n_zeros = split_roots(f->zeros, f->n_zeros, centre);
        f->n_poles = split_roots(f->poles, f->n_poles, centre);
        pad_zeros(f, degree, I * centre);
        pad_zeros(f, degree, -I * centre);
        break;
    }
}

static void bilinear(wt__zpk *f)
{
    const int degree = f->n_poles - f->n_zeros;
    double complex gain = 1;
    for (int k = 0; k < f->n_poles; k++) {
        if (k < f->n_zeros) gain *= 4 - f->zeros[k];
        gain /= 4 - f->poles[k];
    }
    f->gain *= creal(gain);
    for (int k = 0; k < f->n_zeros; k++) f->zeros[k] = (4 + f->zeros[k]) / (4 - f->zeros[k]);
    for (int k = 0; k < f->n_poles; k++) f->poles[k] = (4 + f->poles[k]) / (4 - f->poles[k]);
    pad_zeros(f, degree, -1);
}

// ---- pairing

// Roots still to be placed: one of each conjugate pair, and the real ones.
typedef struct root_set {
    int n, n_real;
    double complex roots[WT__MAX_ROOTS];
} root_set;

static int is_real(double complex root)
{
    return cimag(root) == 0;
}

static void collect(const double complex *roots, int n, root_set *set)
{
    set->n = set->n_real = 0;
    for (int k = 0; k < n; k++)
        if (cimag(roots[k]) > 1e-13 * cabs(roots[k])) set->roots[set->n++] = roots[k];
    for (int k = 0; k < n; k++)
        if (fabs(cimag(roots[k])) <= 1e-13 * cabs(roots[k])) {
            set->roots[set->n++] = creal(roots[k]);
            set->n_real++;
        }
}

static double complex take(root_set *set, int at)
{
    const double complex root = set->roots[at];
    set->n_real -= is_real(root);
    memmove(set->roots + at, set->roots + at + 1, sizeof *set->roots * (size_t)(--set->n - at));
    return root;
}

enum { ANY, REAL, COMPLEX };

static int fits(double complex root, int kind)
{
    return kind == ANY || is_real(root) == (kind == REAL);
}

static double complex take_nearest(root_set *set, double complex to, int kind)
{
    int best = -1;
    for (int k = 0; k < set->n; k++)
        if (fits(set->roots[k], kind) && (best < 0 || cabs(set->roots[k] - to) < cabs(set->roots[best] - to))) best = k;
    return take(set, best);
}

// The pole nearest to the unit circle.
static double complex take_worst(root_set *set, int kind)
{
    int best = -1;
    for (int k = 0; k < set->n; k++)
        if (fits(set->roots[k], kind) && (best < 0 || fabs(1 - cabs(set->roots[k])) < fabs(1 - cabs(set->roots[best]))))
            best = k;
    return take(set, best);
}

static void expand(double complex first, double complex second, double *coefficients)
{
    coefficients[0] = 1;
    coefficients[1] = -creal(first + second);
    coefficients[2] = creal(first * second);
}

static void next_section(root_set *poles, root_set *zeros, double *section)
{
    const double complex p1 = take_worst(poles, ANY);
    double complex p2 = conj(p1), z1, z2;
    if (is_real(p1) && !poles->n_real) { // the last real pole: a section of first order
        z1 = take_nearest(zeros, p1, REAL);
        z2 = p2 = 0;
    } else {
        // one real pole and one real zero left, and as many roots on both sides: they must stay together
        const int keep_real = poles->n + 1 == zeros->n && !is_real(p1) && poles->n_real == 1 && zeros->n_real == 1;
        if (is_real(p1)) p2 = take_worst(poles, REAL);
        z1 = take_nearest(zeros, p1, keep_real ? COMPLEX : ANY);
        z2 = is_real(z1) ? take_nearest(zeros, p1, REAL) : conj(z1);
    }
    expand(z1, z2, section);
    expand(p1, p2, section + 3);
}

static int to_sections(wt__zpk *f, double *sos)
{
    root_set poles, zeros;
    const int n_sections = (f->n_poles + 1) / 2;
    if (f->n_poles % 2) {
        f->poles[f->n_poles++] = 0;
        f->zeros[f->n_zeros++] = 0;
    }
    collect(f->poles, f->n_poles, &poles);
    collect(f->zeros, f->n_zeros, &zeros);
    for (int k = n_sections - 1; k >= 0; k--) next_section(&poles, &zeros, sos + 6 * k);
    for (int k = 0; k < 3; k++) sos[k] *= f->gain;
    return n_sections;
}

// ---- the public call

static wt_status check(const wt_sos_design_config *c, double nyquist_hz)
{
    if (c->family < WT_BUTTERWORTH || c->family > WT_BESSEL || c->band < WT_LOW_PASS || c->band > WT_BAND_STOP)
        return wt_fail(WT_ERR_BAD_ARG, "sos: unknown family %d or band %d", (int)c->family, (int)c->band);
    if (c->order < 1 || c->order > WT_SOS_MAX_ORDER)
        return wt_fail(WT_ERR_BAD_ARG, "sos: order %d, want 1..%d", c->order, WT_SOS_MAX_ORDER);
    const int n_edges = c->band >= WT_BAND_PASS ? 2 : 1;
    for (int k = 0; k < n_edges; k++)
        if (!(c->edge_hz[k] > 0 && c->edge_hz[k] < nyquist_hz))
            return wt_fail(WT_ERR_BAD_ARG, "sos: edge %g Hz, want above 0 and below %g", c->edge_hz[k], nyquist_hz);
    if (n_edges == 2 && !(c->edge_hz[0] < c->edge_hz[1]))
        return wt_fail(WT_ERR_BAD_ARG, "sos: edges %g and %g Hz, want the lower first", c->edge_hz[0], c->edge_hz[1]);
    if (!(c->ripple_db >= 0 && c->ripple_db <= 40) || !(c->attenuation_db >= 0 && c->attenuation_db <= 300))
        return wt_fail(WT_ERR_BAD_ARG, "sos: ripple %g dB and attenuation %g dB, want 0..40 and 0..300", c->ripple_db,
                       c->attenuation_db);
    return WT_OK;
}

wt_status wt_sos_design(const wt_sos_design_config *config, double *sos, int *n_sections)
{
    *n_sections = 0;
    const double nyquist_hz = config->rate_hz > 0 ? config->rate_hz / 2 : 1;
    wt_status status = check(config, nyquist_hz);
    if (status) return status;
    const double ripple_db = config->ripple_db > 0 ? config->ripple_db : 1;
    const double attenuation_db = config->attenuation_db > 0 ? config->attenuation_db : 60;
    if (config->family == WT_ELLIPTIC && ripple_db >= attenuation_db)
        return wt_fail(WT_ERR_BAD_ARG, "sos: ripple %g dB, want below the attenuation of %g dB", ripple_db,
                       attenuation_db);

    wt__zpk filter;
    double edges[2];
    for (int k = 0; k < 2; k++) edges[k] = 4 * tan(M_PI * config->edge_hz[k] / nyquist_hz / 2);
    wt__prototype(config->family, config->order, ripple_db, attenuation_db, &filter);
    to_band(&filter, config->band, edges);
    bilinear(&filter);
    *n_sections = to_sections(&filter, sos);
    return WT_OK;
}

void wt_sos_response(const double *sos, int n_sections, double cycles, double *real, double *imaginary)
{
    const double complex delay = cexp(-2 * M_PI * I * cycles);
    double complex response = 1;
    for (const double *s = sos; s < sos + 6 * n_sections; s += 6)
        response *= (s[0] + delay * (s[1] + delay * s[2])) / (s[3] + delay * (s[4] + delay * s[5]));
    *real = creal(response);
    *imaginary = cimag(response);
}

wt_status wt_lfilter_zi(const double *b, const double *a, int n, double *zi)
{
    double sum_b = 0, sum_a = 0, state = 0;
    for (int k = 0; k < n; k++) {
        sum_b += b[k];
        sum_a += a[k];
    }
    if (a[0] == 0 || !(fabs(sum_a) > 0))
        return wt_fail(WT_ERR_BAD_ARG, "filter: a[0] = %g, sum of a = %g, want neither to be 0", a[0], sum_a);
    for (int k = n - 1; k > 0; k--) {
        state += (b[k] - a[k] * sum_b / sum_a) / a[0];
        zi[k - 1] = state;
    }
    return WT_OK;
}

wt_status wt_sos_zi(const double *sos, int n_sections, double *zi)
{
    double level = 1;
    for (int k = 0; k < n_sections; k++) {
        const double *s = sos + 6 * k;
        wt_status status = wt_lfilter_zi(s, s + 3, 3, zi + 2 * k);
        if (status) return status;
        zi[2 * k] *= level;
        zi[2 * k + 1] *= level;
        level *= (s[0] + s[1] + s[2]) / (s[3] + s[4] + s[5]);
    }
    return WT_OK;
}
