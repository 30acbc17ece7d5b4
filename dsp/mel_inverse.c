// Coordinate descent: x[j] moves to the best value its column allows, the residual follows. A column of a mel bank
// touches two bands, so a sweep over 1025 bins costs no more than the bank itself. Vectors run along eight frames.

#include <warptone/mel_inverse.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 8, MEL_SWEEPS = 200 };

typedef struct problem {
    const double *a; // [n_columns][n_rows]: turned
    int n_rows, n_columns;
    const int *begins, *ends; // [n_columns] rows that are not zero
    const double *squares;    // [n_columns]
} problem;

// One sweep; returns by how much the residual moved at most.
WT_CLONES static double sweep(const problem *p, double *x, double *residual)
{
    wt_f64x8 most = {0};
    for (int j = 0; j < p->n_columns; j++) {
        if (!(p->squares[j] > 0)) continue;
        const double *column = p->a + (size_t)j * (size_t)p->n_rows;
        wt_f64x8 slope = {0}, now, next;
        for (int i = p->begins[j]; i < p->ends[j]; i++) slope += column[i] * ((const wt_f64x8 *)residual)[i];
        now = ((wt_f64x8 *)x)[j];
        next = now + slope / p->squares[j];
        for (int k = 0; k < LANES; k++) next[k] = next[k] > 0 ? next[k] : 0;
        ((wt_f64x8 *)x)[j] = next;
        for (int i = p->begins[j]; i < p->ends[j]; i++) ((wt_f64x8 *)residual)[i] -= column[i] * (next - now);
        const double size = sqrt(p->squares[j]);
        for (int k = 0; k < LANES; k++) most[k] = fmax(most[k], size * fabs(next[k] - now[k]));
    }
    double moved = 0;
    for (int k = 0; k < LANES; k++) moved = fmax(moved, most[k]);
    return moved;
}

// Columns t .. t + count - 1 of b.
static void solve_tile(const problem *p, const float *b, int64_t n, int64_t t, int count, int n_sweeps, double *x,
                       double *residual, float *out)
{
    double peak = 0;
    memset(residual, 0, (size_t)p->n_rows * LANES * sizeof *residual);
    memset(x, 0, (size_t)p->n_columns * LANES * sizeof *x);
    for (int j = 0; j < p->n_columns; j++)
        for (int k = 0; k < count; k++) x[j * LANES + k] = fmax(0, out[j * n + t + k]);
    for (int i = 0; i < p->n_rows; i++)
        for (int k = 0; k < count; k++) {
            double sum = b[i * n + t + k];
            peak = fmax(peak, fabs(sum));
            for (int j = 0; j < p->n_columns; j++)
                if (i >= p->begins[j] && i < p->ends[j])
                    sum -= p->a[(size_t)j * (size_t)p->n_rows + (size_t)i] * x[j * LANES + k];
            residual[i * LANES + k] = sum;
        }
    for (int s = 0; s < n_sweeps && sweep(p, x, residual) > 1e-12 * peak;) s++;
    for (int j = 0; j < p->n_columns; j++)
        for (int k = 0; k < count; k++) out[j * n + t + k] = (float)x[j * LANES + k];
}

wt_status wt_nnls_run(const double *a, int n_rows, int n_columns, const float *b, int64_t n, bool from_x, int n_sweeps,
                      float *x)
{
    if (n_rows < 1 || n_columns < 1 || n < 1)
        return wt_fail(WT_ERR_BAD_ARG, "nnls: %d rows, %d columns, %lld right sides, want 1 or more", n_rows, n_columns,
                       (long long)n);
    const size_t rows = (size_t)n_rows, columns = (size_t)n_columns;
    const size_t doubles = (rows + columns) * LANES + rows * columns + columns;
    double *work = aligned_alloc(64, (doubles * sizeof(double) + 63) / 64 * 64);
    int *ranges = calloc(2 * columns, sizeof *ranges);
    wt_status status = work && ranges ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "nnls: matrix of %d * %d", n_rows, n_columns);
    if (!status) {
        double *residual = work, *now = residual + rows * LANES, *turned = now + columns * LANES;
        double *squares = turned + rows * columns;
        for (size_t j = 0; j < columns; j++) {
            squares[j] = 0;
            ranges[j] = n_rows;
            for (size_t i = 0; i < rows; i++) {
                const double value = turned[j * rows + i] = a[i * columns + j];
                squares[j] += value * value;
                if (value != 0 && (int)i < ranges[j]) ranges[j] = (int)i;
                if (value != 0) ranges[columns + j] = (int)i + 1;
            }
        }
        if (!from_x) memset(x, 0, columns * (size_t)n * sizeof *x);
        const problem p = {turned, n_rows, n_columns, ranges, ranges + columns, squares};
        for (int64_t t = 0; t < n; t += LANES)
            solve_tile(&p, b, n, t, n - t < LANES ? (int)(n - t) : LANES, n_sweeps ? n_sweeps : 10000, now, residual,
                       x);
    }
    free(work);
    free(ranges);
    return status;
}

// Each bin the mean of its bands' mean powers, weighted by the triangles.
static void spread(const double *bank, int n_mels, int bins, const float *mel, int64_t n_frames, float *out)
{
    memset(out, 0, (size_t)bins * (size_t)n_frames * sizeof *out);
    for (int m = 0; m < n_mels; m++) {
        const double *row = bank + (size_t)m * (size_t)bins;
        double sum = 0;
        for (int k = 0; k < bins; k++) sum += row[k];
        for (int k = 0; k < bins && sum > 0; k++) {
            double all = 0;
            for (int i = 0; i < n_mels && row[k] > 0; i++) all += bank[(size_t)i * (size_t)bins + (size_t)k];
            for (int64_t t = 0; t < n_frames && row[k] > 0; t++)
                out[k * n_frames + t] += (float)(row[k] / all * mel[m * n_frames + t] / sum);
        }
    }
}

wt_status wt_mel_to_stft(const wt_mel_bank_config *config, double power, const float *mel, int64_t n_frames,
                         float *out)
{
    const int n_mels = config->n_mels ? config->n_mels : 128, bins = (config->n_fft ? config->n_fft : 2048) / 2 + 1;
    if (!power) power = 2;
    if (!(power > 0) || n_mels < 1 || n_mels > WT_MEL_MAX_MELS || bins < 1)
        return wt_fail(WT_ERR_BAD_ARG, "mel: power %g, %d bands, %d bins, want above 0, 1..%d, 1 or more", power, n_mels,
                       bins, WT_MEL_MAX_MELS);
    double *bank = malloc((size_t)n_mels * (size_t)bins * sizeof *bank);
    if (!bank) return wt_fail(WT_ERR_NO_MEMORY, "mel: %d bands of %d bins", n_mels, bins);
    wt_status status = wt_mel_bank_fill(config, bank);
    if (!status) spread(bank, n_mels, bins, mel, n_frames, out);
    if (!status) status = wt_nnls_run(bank, n_mels, bins, mel, n_frames, true, MEL_SWEEPS, out);
    free(bank);
    for (int64_t i = 0; i < bins * n_frames && !status; i++)
        out[i] = (float)(power == 2 ? sqrt(out[i]) : pow(out[i], 1 / power));
    return status;
}
