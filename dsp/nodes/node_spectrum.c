#include "node_spectrum_kernel.h"
#include "spectral_node.h"

#include <math.h>

static const wt_param_info params[SPECTRUM_N_PARAMS] = {
    {"time_ms", "ms", 0, 5000, 125, 0, "time constant of the levels; 125 is a sound level meter's fast"},
};

static const wt_option_info options[] = {
    {"n_fft", NULL, "4096", "length of the transform in frames, a power of two from 256 to 4096"},
    {"hop", NULL, "0", "frames between transforms; 0 = a quarter of n_fft"},
    {"width", "third|octave", "third", "of a band, around each of the 31 centres"},
};

// Nominal centres of IEC 61260-1; the exact ones are 1000 Hz times powers of 10^(1/10).
static const char *const readings[SPECTRUM_BANDS] = {
    "level_20hz_db",    "level_25hz_db",   "level_31hz_db",    "level_40hz_db",    "level_50hz_db",
    "level_63hz_db",    "level_80hz_db",   "level_100hz_db",   "level_125hz_db",   "level_160hz_db",
    "level_200hz_db",   "level_250hz_db",  "level_315hz_db",   "level_400hz_db",   "level_500hz_db",
    "level_630hz_db",   "level_800hz_db",  "level_1000hz_db",  "level_1250hz_db",  "level_1600hz_db",
    "level_2000hz_db",  "level_2500hz_db", "level_3150hz_db",  "level_4000hz_db",  "level_5000hz_db",
    "level_6300hz_db",  "level_8000hz_db", "level_10000hz_db", "level_12500hz_db", "level_16000hz_db",
    "level_20000hz_db",
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int n_fft, hop, table;
    wt_status status = wt__spectral_fft_size(setup, "n_fft", 256, SPECTRAL_MAX_FFT, &n_fft);
    if (!status) status = wt__spectral_hop(setup, n_fft, 4, 1, &hop);
    if (status) return status;
    const wt__spectral_config config = {.n_fft = n_fft,
                                        .hop = hop,
                                        .in_history = WT_CHAIN_BLOCK, // GPU: transforms run after the block
                                        .plan_bytes = sizeof(node_spectrum_plan),
                                        .own_floats = SPECTRUM_BANDS,
                                        .shared_floats = sizeof(node_spectrum_shared) / sizeof(float)};
    status = wt__spectral_plan(setup, &config, out, &table);
    if (status) return status;
    node_spectrum_plan *p = out->plan;
    const double rate_hz = wt_setup_rate_hz(setup), edge = pow(10, wt_setup_choice(setup, "width") ? 0.15 : 0.05);
    p->hop_ms = (float)(1000 * hop / rate_hz);
    for (int band = 0; band < SPECTRUM_BANDS; band++) {
        const double centre = 1000 * pow(10, (band - 17) / 10.0) * n_fft / rate_hz;
        p->low[band] = (float)(centre / edge), p->high[band] = (float)(centre * edge);
    }
    out->coeffs_bytes = sizeof(node_spectrum_coeffs);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_spectrum_design(plan, v0, v1, coeffs);
}

typedef struct job {
    const node_spectrum_plan *p;
    const node_spectrum_coeffs *k;
    float *state, *readings;
} job;

static void frame(const void *user, int c, float *own, wt__spectral_work *work, long long end)
{
    (void)c, (void)end;
    const job *j = user;
    for (int band = 0; band < SPECTRUM_BANDS; band++) {
        own[band] = 0;
        for (int k = spectrum_first(j->p, band); k <= spectrum_last(j->p, band); k++)
            own[band] += spectrum_part(j->p, band, k, work->re[k], work->im[k]);
    }
}

static void done(const void *user, long long end)
{
    const job *j = user;
    for (int band = 0; band < SPECTRUM_BANDS; band++) spectrum_show(j->p, j->k, j->state, band, j->readings);
    ((node_spectrum_shared *)(j->state + j->p->base.shared))->shown = end;
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const job j = {plan, coeffs, state, io->readings};
    wt__spectral_process(io, &j.p->base, state, frame, done, &j);
    const node_spectrum_shared *s = (const node_spectrum_shared *)(j.state + j.p->base.shared);
    for (int band = 0; band < SPECTRUM_BANDS && s->shown == 0; band++) io->readings[band] = -120;
}

const wt_node_type wt__node_spectrum = {
    .name = "spectrum",
    .summary = "shows the levels of third-octave bands from 20 Hz to 20 kHz; audio passes unchanged",
    .params = params,
    .n_params = SPECTRUM_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .readings = readings,
    .n_readings = SPECTRUM_BANDS,
    .plan = plan,
    .design = design,
    .process = process,
    .release = wt__spectral_release,
    .kernel = "node_spectrum",
    .flags = WT_NODE_CUDA_AFTER,
};
