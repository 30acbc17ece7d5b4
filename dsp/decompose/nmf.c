// Everything in double, as matrices by rows. A side's update sees the matrix by its own rows: the activations' side is
// the transposed one, so that both sides share their code.

#include "nmf_cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

struct wt_nmf {
    wt_nmf_config config;
    wt_device *device;
    wt__nmf_cuda *cuda;
    double *v, *v_turned;      // [rows][columns], [columns][rows]
    double *w, *h;             // [rows][k], [columns][k]: h turned
    double *gram;              // [k][k]
    double *product, *quotient; // [rows or columns][k]; one row of v / (w h)
};

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
    const size_t longer = rows > columns ? rows : columns;
    m->config = c;
    m->device = device;
    m->v = calloc(rows * columns, sizeof(double));
    m->v_turned = calloc(rows * columns, sizeof(double));
    m->w = calloc(rows * k, sizeof(double));
    m->h = calloc(columns * k, sizeof(double));
    m->gram = calloc(k * k, sizeof(double));
    m->product = calloc((longer + 1) * k, sizeof(double));
    m->quotient = calloc(longer, sizeof(double));
    if (!m->v || !m->v_turned || !m->w || !m->h || !m->gram || !m->product || !m->quotient) {
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
    free(nmf->v), free(nmf->v_turned), free(nmf->w), free(nmf->h);
    free(nmf->gram), free(nmf->product), free(nmf->quotient);
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

static double divisor(double x)
{
    return x == 0 ? FLT_EPSILON : x;
}

// One side: a [m][k] so that v [m][n] comes nearer to a b^T, b [n][k].
static void descend(const wt_nmf *s, const double *v, double *a, int m, const double *b, int n)
{
    const int k = s->config.n_components;
    multiply_gram(b, n, k, s->gram);
    for (int r = 0; r < m; r++) multiply_row(v + (size_t)r * (size_t)n, b, n, k, s->product + (size_t)r * (size_t)k);
    for (int r = 0; r < m; r++) {
        double *row = a + (size_t)r * (size_t)k;
        const double *product = s->product + (size_t)r * (size_t)k;
        for (int t = 0; t < k; t++) { // rows do not meet: any order of rows and components gives the same
            double slope = -product[t];
            for (int i = 0; i < k; i++) slope += s->gram[t * k + i] * row[i];
            if (s->gram[t * k + t] != 0) row[t] = fmax(row[t] - slope / s->gram[t * k + t], 0);
        }
    }
}

static void multiply_squared(const wt_nmf *s, const double *v, double *a, int m, const double *b, int n)
{
    const int k = s->config.n_components;
    multiply_gram(b, n, k, s->gram);
    for (int r = 0; r < m; r++) {
        double *row = a + (size_t)r * (size_t)k, *denominator = s->product + k;
        multiply_row(v + (size_t)r * (size_t)n, b, n, k, s->product);
        multiply_row(row, s->gram, k, k, denominator);
        for (int t = 0; t < k; t++) row[t] *= s->product[t] / divisor(denominator[t]);
    }
}

static void multiply_divergence(const wt_nmf *s, const double *v, double *a, int m, const double *b, int n)
{
    const int k = s->config.n_components;
    for (int t = 0; t < k; t++) s->gram[t] = 0;
    for (int64_t i = 0; i < (int64_t)n * k; i++) s->gram[i % k] += b[i];
    for (int r = 0; r < m; r++) {
        double *row = a + (size_t)r * (size_t)k;
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int t = 0; t < k; t++) sum += row[t] * b[(size_t)i * (size_t)k + (size_t)t];
            s->quotient[i] = v[(size_t)r * (size_t)n + (size_t)i] / fmax(sum, FLT_EPSILON);
        }
        multiply_row(s->quotient, b, n, k, s->product);
        for (int t = 0; t < k; t++) row[t] *= s->product[t] / divisor(s->gram[t]);
    }
}

typedef void (*side_update)(const wt_nmf *s, const double *v, double *a, int m, const double *b, int n);

static void run_signal(wt_nmf *nmf, const float *v, float *w, float *h)
{
    static const side_update updates[] = {descend, multiply_squared, multiply_divergence};
    const wt_nmf_config *c = &nmf->config;
    const int rows = c->rows, columns = c->columns, k = c->n_components;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < columns; i++) {
            const size_t at = (size_t)r * (size_t)columns + (size_t)i;
            nmf->v[at] = nmf->v_turned[(size_t)i * (size_t)rows + (size_t)r] = v[at];
        }
    for (int64_t i = 0; i < (int64_t)rows * k; i++) nmf->w[i] = w[i];
    for (int64_t i = 0; i < (int64_t)columns * k; i++) nmf->h[i] = h[i % k * columns + i / k];
    for (int i = 0; i < c->n_iter; i++) {
        updates[c->solver](nmf, nmf->v_turned, nmf->h, columns, nmf->w, rows);
        updates[c->solver](nmf, nmf->v, nmf->w, rows, nmf->h, columns);
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
