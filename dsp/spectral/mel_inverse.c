// Magnitudes from mel bands: non-negative least squares that begin with each band spread over its triangle.

#include "nnls_cuda.h"
#include "nnls_internal.h"

#include <warptone/mel_inverse.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEL_SWEEPS = 200 };

struct wt_mel_inverse {
    wt_mel_inverse_config config; // defaults resolved
    wt_device *device;
    int bins, n_slots;
    double *bank;   // [n_mels][bins]
    double *sums;   // [n_mels] of a band's weights, and
    double *shares; // [n_mels][bins] these, divided by the sum of their bin
    wt__nnls_problem *slots;
    wt__nnls_cuda *cuda;
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
    const wt__nnls_problem *q = &p->slots[0];
    const wt__nnls_shape shape = {.a = p->bank,
                                  .shares = p->shares,
                                  .sums = p->sums,
                                  .squares = q->squares,
                                  .begins = q->begins,
                                  .ends = q->ends,
                                  .n_rows = p->config.bank.n_mels,
                                  .n_columns = p->bins,
                                  .n = p->config.n_frames,
                                  .n_signals = p->config.n_signals,
                                  .n_sweeps = MEL_SWEEPS,
                                  .start = NNLS_FROM_BANDS,
                                  .power = p->config.power,
                                  .enough = WT__NNLS_ENOUGH};
    return wt__nnls_cuda_create("mel", p->device, &shape, &p->cuda);
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
    for (int i = 0; i < p->n_slots && !status; i++)
        status = wt__nnls_pose(p->bank, c.bank.n_mels, p->bins, &p->slots[i]);
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
    wt__nnls_cuda_destroy(plan->cuda);
    for (int i = 0; plan->slots && i < plan->n_slots; i++) wt__nnls_dismiss(&plan->slots[i]);
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
        wt__nnls_solve(&p->slots[slot], mel, n_frames, MEL_SWEEPS, out);
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
    if (plan->cuda) return wt__nnls_cuda_enqueue(plan->cuda, stream, c.mel, c.out);
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
