#include "node_hpss_kernel.h"
#include "median_run.h"
#include "spectral_node.h"

static const wt_param_info params[HPSS_N_PARAMS] = {
    {"harmonic_db", "dB", -120, 20, 0, 0, "level of what lasts; -120 takes it out"},
    {"percussive_db", "dB", -120, 20, 0, 0, "level of what strikes; -120 takes it out"},
    {"margin", "", 1, 10, 1, 0, "how clearly a part must stand out; above 1 the rest keeps its level"},
};

static const wt_option_info options[] = {
    {"n_fft", NULL, "1024", "length of the transform in frames, a power of two from 256 to 4096; the latency"},
    {"hop", NULL, "0", "frames between transforms; 0 = a quarter of n_fft"},
    {"lookahead", NULL, "0", "transforms, 0 to 8, that are known before one is heard; each adds a hop of latency"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int n_fft, hop, table;
    double lookahead;
    wt_status status = wt__spectral_fft_size(setup, "n_fft", 256, SPECTRAL_MAX_FFT, &n_fft);
    if (!status) status = wt__spectral_hop(setup, n_fft, 4, 4, &hop);
    if (!status) status = wt_setup_number(setup, "lookahead", 0, HPSS_LIVE_MOST_AHEAD, &lookahead);
    if (status) return status;
    const int row = (n_fft / 2 + 1 + 15) / 16 * 16;
    const wt__spectral_config config = {.n_fft = n_fft,
                                        .hop = hop,
                                        .out_frames = n_fft,
                                        .plan_bytes = sizeof(node_hpss_plan),
                                        .own_floats = (HPSS_LIVE_TIME + 2 * ((int)lookahead + 1)) * row};
    status = wt__spectral_plan(setup, &config, out, &table);
    if (status) return status;
    node_hpss_plan *p = out->plan;
    p->lookahead = (int)lookahead, p->row = row;
    out->coeffs_bytes = sizeof(node_hpss_coeffs);
    out->latency_frames = n_fft + p->lookahead * hop;
    out->tail_frames = HPSS_LIVE_TIME * hop;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_hpss_design(plan, v0, v1, coeffs);
}

WT_CLONES static void take_keys(const float *re, const float *im, int *keys, int bins)
{
    for (int k = 0; k < bins; k++) keys[k] = hpss_key(re[k], im[k]);
}

WT_CLONES static void turn(const node_hpss_coeffs *k, const int *along_time, const int *along_bins,
                           const float *from_re, const float *from_im, float *re, float *im, int bins)
{
    for (int i = 0; i < bins; i++) {
        const float gain = hpss_gain(k, wt_from_bits(along_time[i]), wt_from_bits(along_bins[i]));
        re[i] = from_re[i] * gain, im[i] = from_im[i] * gain;
    }
}

static void frame(const void *user, int c, float *own, wt__spectral_work *work, long long end)
{
    (void)c;
    enum { L = WT__MEDIAN_LANES, ROW = SPECTRAL_MAX_FFT / 2 + 2 * L };
    const wt__spectral_job *j = user;
    const node_hpss_plan *p = j->plan;
    const int bins = p->base.bins, row = p->row;
    const long long t = end / p->base.hop;
    int *keys = (int *)own;
    float *wait = own + HPSS_LIVE_TIME * row, *put = wait + hpss_wait_slot(p, t) * 2 * row;
    const float *heard = wait + hpss_wait_slot(p, t - p->lookahead) * 2 * row;
    int edged[ROW + HPSS_LIVE_BINS], along_time[ROW], along_bins[ROW], scratch[6 * L * (HPSS_LIVE_TIME + 2)];
    memcpy(put, work->re, sizeof *put * (size_t)bins);
    memcpy(put + row, work->im, sizeof *put * (size_t)bins);
    take_keys(work->re, work->im, keys + hpss_time_slot(t) * row, bins);
    const int *now = keys + hpss_time_slot(t - p->lookahead) * row;
    memset(edged, 0, sizeof edged);
    memcpy(edged + HPSS_LIVE_EDGE, now, sizeof *now * (size_t)bins);
    for (int k = 0; k < HPSS_LIVE_EDGE; k++) {
        edged[k] = now[hpss_mirror(k - HPSS_LIVE_EDGE, bins)];
        edged[HPSS_LIVE_EDGE + bins + k] = now[hpss_mirror(bins + k, bins)];
    }
    for (int k = 0; k < bins; k += L) {
        wt__median_box(keys + k, row, HPSS_LIVE_TIME, 1, along_time + k, scratch);
        wt__median_box(edged + k, 0, 1, HPSS_LIVE_BINS, along_bins + k, scratch);
    }
    turn(j->coeffs, along_time, along_bins, heard, heard + row, work->re, work->im, bins);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    wt__spectral_process_frames(io, plan, coeffs, state, frame);
}

const wt_node_type wt__node_hpss = {
    .name = "hpss",
    .summary = "splits what lasts from what strikes, and gives each a level",
    .params = params,
    .n_params = HPSS_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .plan = plan,
    .design = design,
    .process = process,
    .release = wt__spectral_release,
    .kernel = "node_hpss",
};
