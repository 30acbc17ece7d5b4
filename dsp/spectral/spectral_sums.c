// Terms are made a block at a time, where loops become vectors, and added in eight lanes. The mean of logarithms is one
// logarithm: of the mantissas' product, with the exponents added apart.

#include "spectral_sums.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TERM_LANES = 8, BLOCK = 1024 };

#include "sums_level.h"

// Terms of a block, filled up with `rest` to whole lanes; gives back how many.
static int fill(wt__spectral_terms terms, const float *bins, int first, int n_bins, const void *by, double rest,
                double *x)
{
    int n = n_bins - first < BLOCK ? n_bins - first : BLOCK;
    terms(bins + first, first, n, by, x);
    for (; n % TERM_LANES; n++) x[n] = rest;
    return n;
}

static double total_of(const double *lanes)
{
    double total = 0;
    for (int i = 0; i < TERM_LANES; i++) total += lanes[i];
    return total;
}

double wt__spectral_sum(wt__spectral_terms terms, const float *bins, int n_bins, const void *by)
{
    double x[BLOCK], sums[TERM_LANES] = {0};
    for (int first = 0; first < n_bins; first += BLOCK)
        WT_LEVEL_CALL(add_terms, x, fill(terms, bins, first, n_bins, by, 0, x), sums);
    return total_of(sums);
}

void wt__spectral_means(wt__spectral_terms terms, const float *bins, int n_bins, const void *by, double *mean,
                        double *geometric)
{
    double x[BLOCK], sums[TERM_LANES] = {0}, logs = 0;
    for (int first = 0; first < n_bins; first += BLOCK) {
        double products[TERM_LANES];
        uint64_t exponents[TERM_LANES] = {0};
        for (int i = 0; i < TERM_LANES; i++) products[i] = 1;
        const int n = fill(terms, bins, first, n_bins, by, 0, x);
        WT_LEVEL_CALL(add_terms, x, n, sums);
        for (int k = n_bins - first; k < n; k++) x[k] = 1;
        WT_LEVEL_CALL(multiply_terms, x, n, products, exponents);
        double product = 1, exponent = 0;
        for (int i = 0; i < TERM_LANES; i++) {
            int more;
            product *= frexp(products[i], &more);
            exponent += (double)exponents[i] + more;
        }
        logs += log(product) + M_LN2 * (exponent - 1023.0 * n);
    }
    *mean = total_of(sums) / n_bins;
    *geometric = exp(logs / n_bins);
}
