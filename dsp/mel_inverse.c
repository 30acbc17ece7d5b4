// Coordinate descent: x[j] moves to the best value its column allows, the residual follows. A column of a mel bank
// touches two bands, so a sweep over 1025 bins costs no more than the bank itself. Vectors run along eight frames.

#include "mel_inverse_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = 8, MEL_SWEEPS = 200 };
static const double enough = 1e-12; // of the largest right side: a sweep that moves no more is the last

typedef struct problem {
    const double *a; // [n_columns][n_rows]: turned
    int n_rows, n_columns;
    const int *begins, *ends; // [n_columns] rows that are not zero
    const double *squares;    // [n_columns]
    double *x, *residual;     // [n_columns][LANES], [n_rows][LANES] of the tile that is being solved
    double *work;             // all of them
    int *ranges;
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
static void solve_tile(const problem *p, const float *b, int64_t n, int64_t t, int count, int n_sweeps, float *out)
{
    double peak = 0, *x = p->x, *residual = p->residual;
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
    for (int s = 0; s < n_sweeps && sweep(p, x, residual) > enough * peak;) s++;
    for (int j = 0; j < p->n_columns; j++)
        for (int k = 0; k < count; k++) out[j * n + t + k] = (float)x[j * LANES + k];
}

static void solve(const problem *p, const float *b, int64_t n, int n_sweeps, float *x)
{
    for (int64_t t = 0; t < n; t += LANES) solve_tile(p, b, n, t, n - t < LANES ? (int)(n - t) : LANES, n_sweeps, x);
}

static wt_status pose(const double *a, int n_rows, int n_columns, problem *p)
{
    const size_t rows = (size_t)n_rows, columns = (size_t)n_columns;
    const size_t doubles = (rows + columns) * LANES + rows * columns + columns;
    double *work = aligned_alloc(64, (doubles * sizeof(double) + 63) / 64 * 64);
    int *ranges = calloc(2 * columns, sizeof *ranges);
    *p = (problem){.n_rows = n_rows, .n_columns = n_columns, .work = work, .ranges = ranges};
    if (!work || !ranges) return wt_fail(WT_ERR_NO_MEMORY, "nnls: matrix of %d * %d", n_rows, n_columns);
    double *turned = work + (rows + columns) * LANES, *squares = turned + rows * columns;
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
    p->residual = work, p->x = work + rows * LANES;
    p->a = turned, p->squares = squares;
    p->begins = ranges, p->ends = ranges + columns;
    return WT_OK;
}

static void dismiss(problem *p)
{
    free(p->work);
    free(p->ranges);
}

wt_status wt_nnls_run(const double *a, int n_rows, int n_columns, const float *b, int64_t n, bool from_x, int n_sweeps,
                      float *x)
{
    if (n_rows < 1 || n_columns < 1 || n < 1)
        return wt_fail(WT_ERR_BAD_ARG, "nnls: %d rows, %d columns, %lld right sides, want 1 or more", n_rows, n_columns,
                       (long long)n);
    problem p;
    wt_status status = pose(a, n_rows, n_columns, &p);
    if (!status) {
        if (!from_x) memset(x, 0, (size_t)n_columns * (size_t)n * sizeof *x);
        solve(&p, b, n, n_sweeps ? n_sweeps : 10000, x);
    }
    dismiss(&p);
    return status;
}

// ---- mel bands

struct wt_mel_inverse {
    wt_mel_inverse_config config; // defaults resolved
    wt_device *device;
    int bins, n_slots;
    double *bank;   // [n_mels][bins]
    double *sums;   // [n_mels] of a band's weights, and
    double *shares; // [n_mels][bins] these, divided by the sum of their bin
    problem *slots;
    wt__mel_inverse_cuda *cuda;
};

static wt_status resolve(wt_mel_inverse_config *c)
{
    if (!c->bank.n_mels) c->bank.n_mels = 128;
    if (!c->bank.n_fft) c->bank.n_fft = 2048;
    if (!c->power) c->power = 2;
    if (!c->n_signals) c->n_signals = 1;
    const int bins = c->bank.n_fft / 2 + 1;
    if (!(c->power > 0) || c->bank.n_mels < 1 || c->bank.n_mels > WT_MEL_MAX_MELS || bins < 1)
        return wt_fail(WT_ERR_BAD_ARG, "mel: power %g, %d bands, %d bins, want above 0, 1..%d, 1 or more", c->power,
                       c->bank.n_mels, bins, WT_MEL_MAX_MELS);
    if (c->n_frames < 1 || c->n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "mel: %lld frames of %d signals, want 1 or more", (long long)c->n_frames,
                       c->n_signals);
    return WT_OK;
}

static wt_status make_tables(wt_mel_inverse *p)
{
    const size_t n_mels = (size_t)p->config.bank.n_mels, bins = (size_t)p->bins;
    p->bank = malloc(n_mels * bins * sizeof *p->bank);
    p->shares = malloc(n_mels * bins * sizeof *p->shares);
    p->sums = calloc(n_mels, sizeof *p->sums);
    if (!p->bank || !p->shares || !p->sums)
        return wt_fail(WT_ERR_NO_MEMORY, "mel: %zu bands of %zu bins", n_mels, bins);
    wt_status status = wt_mel_bank_fill(&p->config.bank, p->bank);
    for (size_t k = 0; k < bins && !status; k++) {
        double all = 0;
        for (size_t m = 0; m < n_mels; m++) all += p->bank[m * bins + k], p->sums[m] += p->bank[m * bins + k];
        for (size_t m = 0; m < n_mels; m++) p->shares[m * bins + k] = all > 0 ? p->bank[m * bins + k] / all : 0;
    }
    return status;
}

static wt_status make_cuda(wt_mel_inverse *p)
{
    const problem *q = &p->slots[0];
    const wt__mel_inverse_shape shape = {.bank = p->bank,
                                         .shares = p->shares,
                                         .sums = p->sums,
                                         .squares = q->squares,
                                         .begins = q->begins,
                                         .ends = q->ends,
                                         .n_mels = p->config.bank.n_mels,
                                         .bins = p->bins,
                                         .n_frames = p->config.n_frames,
                                         .n_signals = p->config.n_signals,
                                         .n_sweeps = MEL_SWEEPS,
                                         .power = p->config.power,
                                         .enough = enough};
    return wt__mel_inverse_cuda_create(p->device, &shape, &p->cuda);
}

wt_status wt_mel_inverse_create(wt_device *device, const wt_mel_inverse_config *config, wt_mel_inverse **plan)
{
    *plan = NULL;
    wt_mel_inverse_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    wt_mel_inverse *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "mel: plan of an inverse");
    p->config = c;
    p->device = device;
    p->bins = c.bank.n_fft / 2 + 1;
    p->n_slots = wt__op_slots(device, c.n_signals);
    p->slots = calloc((size_t)p->n_slots, sizeof *p->slots);
    status = p->slots ? make_tables(p) : wt_fail(WT_ERR_NO_MEMORY, "mel: %d threads", p->n_slots);
    for (int i = 0; i < p->n_slots && !status; i++) status = pose(p->bank, c.bank.n_mels, p->bins, &p->slots[i]);
    if (!status && wt__op_on_gpu(device)) status = make_cuda(p);
    if (status)
        wt_mel_inverse_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_mel_inverse_destroy(wt_mel_inverse *plan)
{
    if (!plan) return;
    wt__mel_inverse_cuda_destroy(plan->cuda);
    for (int i = 0; plan->slots && i < plan->n_slots; i++) dismiss(&plan->slots[i]);
    free(plan->slots);
    free(plan->bank);
    free(plan->shares);
    free(plan->sums);
    free(plan);
}

// Each bin the mean of its bands' mean powers, weighted by the triangles.
static void spread(const wt_mel_inverse *p, const float *mel, float *out)
{
    const int64_t n_frames = p->config.n_frames, bins = p->bins;
    memset(out, 0, (size_t)(bins * n_frames) * sizeof *out);
    for (int m = 0; m < p->config.bank.n_mels; m++)
        for (int64_t k = 0; k < bins; k++) {
            const double share = p->shares[m * bins + k];
            for (int64_t t = 0; t < n_frames && share > 0; t++)
                out[k * n_frames + t] += (float)(share * mel[m * n_frames + t] / p->sums[m]);
        }
}

typedef struct call {
    const wt_mel_inverse *plan;
    const float *mel;
    float *out;
    int n_slots;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_mel_inverse *p = c->plan;
    const int64_t n_frames = p->config.n_frames, floats = p->bins * n_frames;
    const double power = p->config.power;
    for (int64_t signal = slot; signal < p->config.n_signals; signal += c->n_slots) {
        const float *mel = c->mel + signal * p->config.bank.n_mels * n_frames;
        float *out = c->out + signal * floats;
        spread(p, mel, out);
        solve(&p->slots[slot], mel, n_frames, MEL_SWEEPS, out);
        for (int64_t i = 0; i < floats; i++) out[i] = (float)(power == 2 ? sqrt(out[i]) : pow(out[i], 1 / power));
    }
}

WT_RT void wt_mel_inverse_run(wt_mel_inverse *plan, const float *mel, float *out)
{
    const call c = {plan, mel, out, 1};
    run_slot(&c, 0);
}

wt_status wt_mel_inverse_enqueue(wt_mel_inverse *plan, wt_stream *stream, const wt_buffer *mel, size_t mel_offset,
                                 wt_buffer *out, size_t out_offset)
{
    const size_t frames = (size_t)plan->config.n_signals * (size_t)plan->config.n_frames;
    wt_status status = wt__op_stream("mel", plan->device, stream);
    if (!status) status = wt__op_range("mel", "mel", mel, mel_offset, frames * (size_t)plan->config.bank.n_mels);
    if (!status) status = wt__op_range("mel", "out", out, out_offset, frames * (size_t)plan->bins);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(mel) + mel_offset),
                    (float *)(wt_buffer_address(out) + out_offset), plan->n_slots};
    if (plan->cuda) return wt__mel_inverse_cuda_enqueue(plan->cuda, stream, c.mel, c.out);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}

wt_status wt_mel_to_stft(const wt_mel_bank_config *config, double power, const float *mel, int64_t n_frames, float *out)
{
    wt_mel_inverse *plan;
    wt_status status = wt_mel_inverse_create(
        NULL, &(wt_mel_inverse_config){.bank = *config, .power = power, .n_frames = n_frames}, &plan);
    if (status) return status;
    wt_mel_inverse_run(plan, mel, out);
    wt_mel_inverse_destroy(plan);
    return WT_OK;
}
