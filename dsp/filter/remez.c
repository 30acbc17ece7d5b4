// The exchange algorithm on the cosine polynomial A(f) of r terms: type I (odd length) is A itself, type II (even) is
// A(f) cos(pi f), with the cosine moved into the desired response and the weight. f is in cycles a frame here.
#include "fir_design_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GRID_DENSITY = 40, MAX_TURNS = 100 };

typedef struct exchange {
    int r, n_grid; // extrema sought: r + 1
    bool even;
    double *f, *x;                    // [n_grid] frequency and cos(2 pi f)
    double *desired, *weight, *error; // [n_grid]
    int *extrema, *found;             // [r + 1] and [n_grid], grid indices
    double *node, *gamma, *value;     // [r + 1] interpolation nodes, barycentric weights, values
} exchange;

static int count_grid(const wt_fir_bands_config *c, int r)
{
    int n = 0;
    for (int k = 0; k < c->n_bands; k++) n += (int)ceil((c->edges[2 * k + 1] - c->edges[2 * k]) * r * GRID_DENSITY) + 2;
    return n;
}

static void fill_grid(const wt_fir_bands_config *c, exchange *e)
{
    int at = 0;
    for (int band = 0; band < c->n_bands; band++) {
        const double low = c->edges[2 * band] / 2, high = c->edges[2 * band + 1] / 2;
        const int n = (int)ceil((high - low) * 2 * e->r * GRID_DENSITY) + 1;
        for (int k = 0; k < n; k++) {
            const double f = k == n - 1 ? high : low + (high - low) * k / (n - 1), factor = e->even ? cos(M_PI * f) : 1;
            if (e->even && f > 0.5 - 0.25 / (GRID_DENSITY * e->r)) continue; // a type II response is 0 there anyway
            e->f[at] = f;
            e->x[at] = cos(2 * M_PI * f);
            e->desired[at] = c->desired[2 * band] / factor;
            e->weight[at] = (c->weights ? c->weights[band] : 1) * factor;
            at++;
        }
    }
    e->n_grid = at;
}

// Barycentric weights 1 / prod(x_k - x_j), in logarithms for the products of hundreds of factors.
static void weigh_nodes(exchange *e)
{
    double largest = -INFINITY;
    for (int k = 0; k <= e->r; k++) {
        double log_size = 0;
        for (int j = 0; j <= e->r; j++)
            if (j != k) log_size -= log(fabs(e->node[k] - e->node[j]));
        e->gamma[k] = log_size;
        largest = fmax(largest, log_size);
    }
    for (int k = 0; k <= e->r; k++) e->gamma[k] = (k % 2 ? -1 : 1) * exp(e->gamma[k] - largest); // nodes descend in x
}

static double interpolate(const exchange *e, double x)
{
    double numerator = 0, denominator = 0;
    for (int k = 0; k <= e->r; k++) {
        const double away = x - e->node[k];
        if (fabs(away) < 1e-14) return e->value[k];
        numerator += e->gamma[k] / away * e->value[k];
        denominator += e->gamma[k] / away;
    }
    return numerator / denominator;
}

// The ripple that makes the error alternate on the present extrema, and the polynomial through them.
static double fit(exchange *e)
{
    double numerator = 0, denominator = 0;
    for (int k = 0; k <= e->r; k++) e->node[k] = e->x[e->extrema[k]];
    weigh_nodes(e);
    for (int k = 0; k <= e->r; k++) {
        numerator += e->gamma[k] * e->desired[e->extrema[k]];
        denominator += (k % 2 ? -1 : 1) * e->gamma[k] / e->weight[e->extrema[k]];
    }
    const double ripple = numerator / denominator;
    for (int k = 0; k <= e->r; k++)
        e->value[k] = e->desired[e->extrema[k]] - (k % 2 ? -1 : 1) * ripple / e->weight[e->extrema[k]];
    for (int k = 0; k < e->n_grid; k++) e->error[k] = e->weight[k] * (e->desired[k] - interpolate(e, e->x[k]));
    return ripple;
}

static bool is_extremum(const exchange *e, int k)
{
    const double at = fabs(e->error[k]), sign = e->error[k] > 0 ? 1 : -1;
    const bool before = k == 0 || at >= sign * e->error[k - 1];
    const bool after = k == e->n_grid - 1 || at > sign * e->error[k + 1];
    return before && after && at > 0;
}

// Alternating extrema of the error, of each run of equal signs the largest; the ends are dropped, smaller first, until
// r + 1 are left. Returns whether the set has changed, -1 when there are too few.
static int find_extrema(exchange *e)
{
    int n = 0;
    for (int k = 0; k < e->n_grid; k++) {
        if (!is_extremum(e, k)) continue;
        if (n && (e->error[k] > 0) == (e->error[e->found[n - 1]] > 0)) {
            if (fabs(e->error[k]) > fabs(e->error[e->found[n - 1]])) e->found[n - 1] = k;
        } else {
            e->found[n++] = k;
        }
    }
    if (n < e->r + 1) return -1;
    int first = 0;
    while (n - first > e->r + 1) {
        if (fabs(e->error[e->found[first]]) < fabs(e->error[e->found[n - 1]]))
            first++;
        else
            n--;
    }
    const size_t size = sizeof *e->extrema * (size_t)(e->r + 1);
    const bool changed = memcmp(e->extrema, e->found + first, size) != 0;
    memcpy(e->extrema, e->found + first, size);
    return changed;
}

static bool run_exchange(exchange *e)
{
    for (int k = 0; k <= e->r; k++) e->extrema[k] = (int)((int64_t)k * (e->n_grid - 1) / e->r);
    for (int turn = 0; turn < MAX_TURNS; turn++) {
        const double ripple = fabs(fit(e));
        double largest = 0;
        for (int k = 0; k < e->n_grid; k++) largest = fmax(largest, fabs(e->error[k]));
        if (!isfinite(largest)) return false;
        if (largest - ripple <= 1e-9 * largest || largest < 1e-14) return true;
        const int changed = find_extrema(e);
        if (changed <= 0) return changed == 0;
    }
    return false;
}

// Taps from A sampled at n_taps points of the circle.
static void to_taps(const exchange *e, int n_taps, double *taps)
{
    const double middle = 0.5 * (n_taps - 1);
    for (int n = 0; n < n_taps; n++) taps[n] = 0;
    for (int k = 0; k <= (n_taps - 1) / 2; k++) {
        const double f = (double)k / n_taps;
        const double response = interpolate(e, cos(2 * M_PI * f)) * (e->even ? cos(M_PI * f) : 1) * (k ? 2 : 1);
        for (int n = 0; n < n_taps; n++) taps[n] += response * cos(2 * M_PI * f * (n - middle)) / n_taps;
    }
}

wt_status wt_fir_design_equiripple(const wt_fir_bands_config *config, double *taps)
{
    wt_status status = wt__fir_check_bands(config, 3);
    if (status) return status;
    exchange e = {.r = (config->n_taps + 1) / 2, .even = config->n_taps % 2 == 0};
    const size_t n_grid = (size_t)count_grid(config, e.r), n_nodes = (size_t)e.r + 1;
    double *memory = malloc(sizeof *memory * (5 * n_grid + 3 * n_nodes));
    int *indices = malloc(sizeof *indices * (n_grid + n_nodes));
    if (!memory || !indices) {
        status = wt_fail(WT_ERR_NO_MEMORY, "fir design: %d taps", config->n_taps);
    } else {
        double **arrays[] = {&e.f, &e.x, &e.desired, &e.weight, &e.error};
        for (size_t k = 0; k < 5; k++) *arrays[k] = memory + k * n_grid;
        e.node = memory + 5 * n_grid;
        e.gamma = e.node + n_nodes;
        e.value = e.gamma + n_nodes;
        e.found = indices;
        e.extrema = indices + n_grid;
        fill_grid(config, &e);
        if (e.n_grid <= e.r || !run_exchange(&e))
            status =
                wt_fail(WT_ERR_STATE, "fir design: %d taps do not converge in %d exchanges", config->n_taps, MAX_TURNS);
        else
            to_taps(&e, config->n_taps, taps);
    }
    free(memory);
    free(indices);
    return status;
}
