#include "denoise_gain.h"
#include "node_denoise_kernel.h"
#include "spectral_node.h"

#include <math.h>
#include <stdlib.h>

static const wt_param_info params[DENOISE_N_PARAMS] = {
    {"strength", "", 0, 1, 1, 0, "0 = the input, delayed, 1 = all of the reduction"},
    {"max_cut_db", "dB", 1, 100, 30, 0, "most a bin is turned down"},
};

static const wt_option_info options[] = {
    {"mode", "lsa|wiener|gate", "lsa", "rule of the gains; lsa leaves the smoothest rest of noise"},
    {"latency_ms", NULL, "10", "length of the synthesis window, 2 to 100, at most n_fft"},
    {"n_fft", NULL, "0", "length of the transform, a power of two up to 4096; 0 = twice latency_ms or above"},
    {"gate_db", NULL, "6", "gate: where a bin is half open, above the noise, 0.1 to 40"},
    {"low_cut_hz", NULL, "100", "bins below are turned down by max_cut_db always; 0 = none"},
};

// The length of the transform that is asked for, or the power of two from twice the latency.
static wt_status choose_fft(const wt_node_setup *setup, int latency, int *n_fft)
{
    double asked;
    wt_status status = wt_setup_number(setup, "n_fft", 0, SPECTRAL_MAX_FFT, &asked);
    if (status) return status;
    if (asked > 0) return wt__spectral_fft_size(setup, "n_fft", SPECTRAL_MIN_FFT, SPECTRAL_MAX_FFT, n_fft);
    *n_fft = SPECTRAL_MIN_FFT;
    while (*n_fft < 2 * latency && *n_fft < SPECTRAL_MAX_FFT) *n_fft *= 2;
    return WT_OK;
}

static wt_status get_config(const wt_node_setup *setup, wt_denoise_config *c, int *n_fft)
{
    const double rate_hz = wt_setup_rate_hz(setup);
    if (rate_hz < 8000) return wt_fail(WT_ERR_BAD_ARG, "rate %g Hz, want 8000 or more", rate_hz);
    *c = (wt_denoise_config){.rate_hz = (int)lround(rate_hz), .mode = (wt_denoise_mode)wt_setup_choice(setup, "mode")};
    wt_status status = wt_setup_number(setup, "latency_ms", 2, 100, &c->latency_ms);
    if (!status) status = wt_setup_number(setup, "gate_db", 0.1, 40, &c->gate_db);
    if (!status) status = wt_setup_number(setup, "low_cut_hz", 0, rate_hz / 2, &c->low_cut_hz);
    const int latency = 2 * (int)lround(c->latency_ms * rate_hz / 2000);
    if (!status) status = choose_fft(setup, latency, n_fft);
    if (status || latency <= *n_fft) return status;
    return wt_fail(WT_ERR_BAD_ARG, "latency_ms %g is %d frames, want at most n_fft, which is %d", c->latency_ms,
                   latency, *n_fft);
}

// As dsp/voice/denoise.c has them.
static wt_status plan_transforms(const wt_node_setup *setup, int n_fft, int hop, int own_floats, wt_node_plan *out)
{
    int table;
    double *windows = malloc(sizeof *windows * (size_t)(n_fft + 2 * hop));
    if (!windows) return wt_fail(WT_ERR_NO_MEMORY, "no memory for windows of %d frames", n_fft);
    for (int k = 0; k < n_fft; k++) windows[k] = wt__denoise_analysis(n_fft, hop, k);
    for (int k = 0; k < 2 * hop; k++) windows[n_fft + k] = wt__denoise_synthesis(n_fft, hop, k);
    wt_status status = wt__spectral_plan(setup,
                                         &(wt__spectral_config){.n_fft = n_fft,
                                                                .hop = hop,
                                                                .out_frames = 2 * hop,
                                                                .window = windows,
                                                                .synthesis = windows + n_fft,
                                                                .plan_bytes = sizeof(node_denoise_plan),
                                                                .own_floats = own_floats},
                                         out, &table);
    free(windows);
    return status;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_denoise_config c;
    int n_fft;
    wt_status status = get_config(setup, &c, &n_fft);
    if (status) return status;
    const int hop = (int)lround(c.latency_ms * c.rate_hz / 2000), row = (n_fft / 2 + 1 + 15) / 16 * 16;
    if ((status = plan_transforms(setup, n_fft, hop, 16 + 4 * row, out))) return status;
    node_denoise_plan *p = out->plan;
    p->rules = wt__denoise_rules(&c, n_fft, hop);
    p->row = row;
    out->coeffs_bytes = sizeof(node_denoise_coeffs);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_denoise_design(plan, v0, v1, coeffs);
}

WT_CLONES static void frame(const void *user, int c, float *own, wt__spectral_work *work, long long end)
{
    (void)c, (void)end;
    const wt__spectral_job *j = user;
    node_denoise_frame((spectral_team){0}, j->plan, j->coeffs, own, work->re, work->im, work->spare, NULL);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    wt__spectral_process_frames(io, plan, coeffs, state, frame);
}

const wt_node_type wt__node_denoise = {
    .name = "denoise",
    .summary = "takes steady noise out of voice, bin by bin",
    .params = params,
    .n_params = DENOISE_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .plan = plan,
    .design = design,
    .process = process,
    .release = wt__spectral_release,
    .kernel = "node_denoise",
};
