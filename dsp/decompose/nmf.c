// Everything in double but the matrix, of which there is no copy: it is read row by row for the components' side, and
// for the activations' some columns of all rows after the others. Both sides add up their products in one order,
// however many columns that are.

#include "nmf_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

struct wt_nmf {
    wt_nmf_config config;
    wt_device *device;
    wt__nmf_cuda *cuda;
    double *w, *h;       // [rows][k], [columns][k]: h turned
    double *gram;        // [k][k] of the other side; of the divergence its sums [k]
    double *row;         // [columns] of v, of the divergence of v / (w h)
    double *product;     // [n_block][k]
    double *denominator; // [k]
    int n_block;         // columns at a time
};

enum { MOST_COLUMNS = 512, LEAST_COLUMNS = 16, PRODUCTS = 1 << 18 }; // of a block; what stays in the cache

wt_status wt_nmf_create(wt_device *device, const wt_nmf_config *config, wt_nmf **nmf)
{
    *nmf = NULL;
    wt_nmf_config c = *config;
    if (!c.n_iter) c.n_iter = 200;
    if (!c.n_signals) c.n_signals = 1;
    if (c.rows < 1 || c.columns < 1 || c.rows > 1 << 24 || c.columns > 1 << 24)
        return wt_fail(WT_ERR_BAD_ARG, "nmf: matrix of %d x %d, want 1..16777216 each", c.rows, c.columns);
    if (c.n_components < 1 || c.n_components > 65536 || c.n_iter < 1)
        return wt_fail(WT_ERR_BAD_ARG, "nmf: %d components, %d iterations, want 1..65536, 1 or more", c.n_components,
                       c.n_iter);
    if ((unsigned)c.solver > WT_NMF_MULTIPLICATIVE_KL)
        return wt_fail(WT_ERR_BAD_ARG, "nmf: solver %d, want 0..2", (int)c.solver);
    if (c.n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "nmf: %d signals, want 1 or more", c.n_signals);
    wt_nmf *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "nmf: handle");
    const size_t rows = (size_t)c.rows, columns = (size_t)c.columns, k = (size_t)c.n_components;
    const int fit = PRODUCTS / c.n_components;
    m->n_block = fit < LEAST_COLUMNS ? LEAST_COLUMNS : fit > MOST_COLUMNS ? MOST_COLUMNS : fit;
    m->config = c;
    m->device = device;
    m->w = calloc(rows * k, sizeof(double));
    m->h = calloc(columns * k, sizeof(double));
    m->gram = calloc(k * k, sizeof(double));
    m->row = calloc(columns, sizeof(double));
    m->product = calloc((size_t)m->n_block * k, sizeof(double));
    m->denominator = calloc(k, sizeof(double));
    if (!m->w || !m->h || !m->gram || !m->row || !m->product || !m->denominator) {
        wt_nmf_destroy(m);
        return wt_fail(WT_ERR_NO_MEMORY, "nmf: matrix of %d x %d", c.rows, c.columns);
    }
    wt_status status = wt__op_on_gpu(device) ? wt__nmf_cuda_create(device, &c, &m->cuda) : WT_OK;
    if (status) wt_nmf_destroy(m);
    else *nmf = m;
    return status;
}

void wt_nmf_destroy(wt_nmf *nmf)
{
    if (!nmf) return;
    wt__nmf_cuda_destroy(nmf->cuda);
    free(nmf->w), free(nmf->h), free(nmf->gram);
    free(nmf->row), free(nmf->product), free(nmf->denominator);
    free(nmf);
}

// gram[i][j] = sum over n of b[n][i] b[n][j]
WT_CLONES static void multiply_gram(const double *b, int n, int k, double *gram)
{
    for (int64_t i = 0; i < (int64_t)k * k; i++) gram[i] = 0;
    for (int r = 0; r < n; r++, b += k)
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) gram[i * k + j] += b[i] * b[j];
}

// out[k] = sum over n of row[n] b[n][k]
WT_CLONES static void multiply_row(const double *row, const double *b, int n, int k, double *out)
{
    for (int i = 0; i < k; i++) out[i] = 0;
    for (int r = 0; r < n; r++, b += k)
        for (int i = 0; i < k; i++) out[i] += row[r] * b[i];
}

// out[n][k] += row[n] b[k]
WT_CLONES static void multiply_column(const double *row, int n, const double *b, int k, double *out)
{
    for (int r = 0; r < n; r++, out += k)
        for (int i = 0; i < k; i++) out[i] += row[r] * b[i];
}

static double divisor(double x)
{
    return x == 0 ? FLT_EPSILON : x;
}

// What a side's rows [n][k] are to the other side's update.
static void begin_side(const wt_nmf *s, const double *b, int n)
{
    const int k = s->config.n_components;
    if (s->config.solver != WT_NMF_MULTIPLICATIVE_KL) {
        multiply_gram(b, n, k, s->gram);
        return;
    }
    for (int t = 0; t < k; t++) s->gram[t] = 0;
    for (int64_t i = 0; i < (int64_t)n * k; i++) s->gram[i % k] += b[i];
}

// n numbers of a row of v, of the divergence divided by those of w h, from the row of w and n of h.
static void take_row(const wt_nmf *s, const float *v, const double *w, const double *h, int n)
{
    const int k = s->config.n_components;
    for (int i = 0; i < n && s->config.solver != WT_NMF_MULTIPLICATIVE_KL; i++) s->row[i] = v[i];
    for (int i = 0; i < n && s->config.solver == WT_NMF_MULTIPLICATIVE_KL; i++, h += k) {
        double sum = 0;
        for (int t = 0; t < k; t++) sum += w[t] * h[t];
        s->row[i] = v[i] / fmax(sum, FLT_EPSILON);
    }
}

// One row of a side by its product with the other one. Rows do not meet: any order of rows and components gives the
// same.
static void update(const wt_nmf *s, double *row, const double *product)
{
    const int k = s->config.n_components;
    const double *divisors = s->gram;
    if (s->config.solver == WT_NMF_CD) {
        for (int t = 0; t < k; t++) {
            double slope = -product[t];
            for (int i = 0; i < k; i++) slope += s->gram[t * k + i] * row[i];
            if (s->gram[t * k + t] != 0) row[t] = fmax(row[t] - slope / s->gram[t * k + t], 0);
        }
        return;
    }
    if (s->config.solver == WT_NMF_MULTIPLICATIVE) {
        multiply_row(row, s->gram, k, k, s->denominator);
        divisors = s->denominator;
    }
    for (int t = 0; t < k; t++) row[t] *= product[t] / divisor(divisors[t]);
}

// The activations [columns][k].
static void update_columns(const wt_nmf *s, const float *v)
{
    const int rows = s->config.rows, columns = s->config.columns, k = s->config.n_components;
    begin_side(s, s->w, rows);
    for (int first = 0; first < columns; first += s->n_block) {
        const int n = columns - first < s->n_block ? columns - first : s->n_block;
        double *h = s->h + (size_t)first * (size_t)k;
        for (int64_t i = 0; i < (int64_t)n * k; i++) s->product[i] = 0;
        for (int r = 0; r < rows; r++) {
            const double *w = s->w + (size_t)r * (size_t)k;
            take_row(s, v + (size_t)r * (size_t)columns + first, w, h, n);
            multiply_column(s->row, n, w, k, s->product);
        }
        for (int i = 0; i < n; i++, h += k) update(s, h, s->product + (size_t)i * (size_t)k);
    }
}

// The components [rows][k].
static void update_rows(const wt_nmf *s, const float *v)
{
    const int rows = s->config.rows, columns = s->config.columns, k = s->config.n_components;
    double *w = s->w;
    begin_side(s, s->h, columns);
    for (int r = 0; r < rows; r++, v += columns, w += k) {
        take_row(s, v, w, s->h, columns);
        multiply_row(s->row, s->h, columns, k, s->product);
        update(s, w, s->product);
    }
}

static void run_signal(const wt_nmf *nmf, const float *v, float *w, float *h)
{
    const wt_nmf_config *c = &nmf->config;
    const int rows = c->rows, columns = c->columns, k = c->n_components;
    for (int64_t i = 0; i < (int64_t)rows * k; i++) nmf->w[i] = w[i];
    for (int64_t i = 0; i < (int64_t)columns * k; i++) nmf->h[i] = h[i % k * columns + i / k];
    for (int i = 0; i < c->n_iter; i++) {
        update_columns(nmf, v);
        update_rows(nmf, v);
        if (c->solver != WT_NMF_MULTIPLICATIVE_KL) continue;
        for (int64_t j = 0; j < (int64_t)rows * k; j++)
            if (nmf->w[j] < DBL_EPSILON) nmf->w[j] = 0; // as scikit-learn keeps this update stable
    }
    for (int64_t i = 0; i < (int64_t)rows * k; i++) w[i] = (float)nmf->w[i];
    for (int64_t i = 0; i < (int64_t)columns * k; i++) h[i % k * columns + i / k] = (float)nmf->h[i];
}

typedef struct call {
    wt_nmf *nmf;
    const float *v;
    float *w, *h;
} call;

static void run_signals(const void *args, int item)
{
    const call *c = args;
    const wt_nmf_config *f = &c->nmf->config;
    (void)item;
    for (int64_t i = 0; i < f->n_signals; i++)
        run_signal(c->nmf, c->v + i * f->rows * f->columns, c->w + i * f->rows * f->n_components,
                   c->h + i * f->columns * f->n_components);
}

WT_RT void wt_nmf_run(wt_nmf *nmf, const float *v, float *w, float *h)
{
    const call c = {nmf, v, w, h};
    run_signals(&c, 0);
}

wt_status wt_nmf_enqueue(wt_nmf *nmf, wt_stream *stream, const wt_buffer *v, size_t v_offset, wt_buffer *w,
                         size_t w_offset, wt_buffer *h, size_t h_offset)
{
    const wt_nmf_config *f = &nmf->config;
    const size_t signals = (size_t)f->n_signals, rows = (size_t)f->rows, columns = (size_t)f->columns;
    const size_t k = (size_t)f->n_components;
    wt_status status = wt__op_stream("nmf", nmf->device, stream);
    if (!status) status = wt__op_range("nmf", "v", v, v_offset, signals * rows * columns);
    if (!status) status = wt__op_range("nmf", "w", w, w_offset, signals * rows * k);
    if (!status) status = wt__op_range("nmf", "h", h, h_offset, signals * columns * k);
    if (status) return status;
    const call c = {nmf, (const float *)(wt_buffer_address(v) + v_offset), (float *)(wt_buffer_address(w) + w_offset),
                    (float *)(wt_buffer_address(h) + h_offset)};
    if (nmf->cuda) return wt__nmf_cuda_enqueue(nmf->cuda, stream, c.v, c.w, c.h);
    return wt_stream_run(stream, run_signals, &c, sizeof c, 1);
}
