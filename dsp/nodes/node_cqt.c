#include "node_cqt_kernel.h"
#include "node_types.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

static const wt_option_info options[] = {
    {"a4_hz", NULL, "440", "what A4 is tuned to, 400 to 480"},
    {"hop", NULL, "256", "frames between readings, 32 to 8192"},
};

#define OCTAVE(n)                                                                                                      \
    "c" #n "_db", "cis" #n "_db", "d" #n "_db", "dis" #n "_db", "e" #n "_db", "f" #n "_db", "fis" #n "_db",            \
        "g" #n "_db", "gis" #n "_db", "a" #n "_db", "ais" #n "_db", "b" #n "_db"

static const char *const readings[CQT_N_READINGS] = {
    OCTAVE(1), OCTAVE(2), OCTAVE(3), OCTAVE(4), OCTAVE(5), OCTAVE(6), OCTAVE(7), "c_db",   "cis_db", "d_db",
    "dis_db",  "e_db",    "f_db",    "fis_db",  "g_db",    "gis_db",  "a_db",    "ais_db", "b_db"};

// Half the -3 dB width of CQT_STAGES equal poles is sqrt(2^(1 / stages) - 1) of a pole's own.
static void design_notes(node_cqt_plan *p, double rate_hz, double a4_hz)
{
    const double semitone = exp2(1 / 24.0) - exp2(-1 / 24.0), narrower = sqrt(exp2(1.0 / CQT_STAGES) - 1);
    for (int k = 0; k < CQT_NOTES; k++) {
        const double hz = a4_hz * exp2((k - 45) / 12.0), width = hz * semitone / 2 / narrower;
        if (hz > 0.45 * rate_hz) continue;
        const double radius = exp(-2 * M_PI * width / rate_hz), angle = 2 * M_PI * hz / rate_hz;
        p->pole_re[k] = (float)(radius * cos(angle)), p->pole_im[k] = (float)(radius * sin(angle));
        // The rounded pole gives 1 / (1 - p e^(-i w)) a stage, and half of a sine's amplitude stands at w; the square
        // of what comes out is to be the mean square, half of the amplitude's.
        const double re = 1 - (p->pole_re[k] * cos(angle) + p->pole_im[k] * sin(angle));
        const double im = -(p->pole_im[k] * cos(angle) - p->pole_re[k] * sin(angle));
        p->gain[k] = (float)sqrt(2 * pow(re * re + im * im, CQT_STAGES));
    }
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double a4_hz, hop;
    wt_status status = wt_setup_number(setup, "a4_hz", 400, 480, &a4_hz);
    if (!status) status = wt_setup_number(setup, "hop", 32, 8192, &hop);
    if (!status) status = wt__plan_alloc(out, sizeof(node_cqt_plan));
    if (status) return status;
    node_cqt_plan *p = out->plan;
    p->channels = out->out_channels = wt_setup_channels(setup, 0);
    p->hop = (int)hop;
    design_notes(p, wt_setup_rate_hz(setup), a4_hz);
    out->state_bytes = sizeof(node_cqt_state);
    return WT_OK;
}

#include "node_cqt_level.h"

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)coeffs;
    const node_cqt_plan *p = plan;
    node_cqt_state *s = state;
    float x[WT_CHAIN_BLOCK] = {0};
    for (int c = 0; c < p->channels; c++)
        for (int f = 0; f < io->n_frames; f++) x[f] += io->in[0][c * io->stride + f];
    for (int f = 0; f < io->n_frames; f++) x[f] /= (float)p->channels;
    for (int at = 0, n; at < io->n_frames; at += n) {
        const int left = p->hop - (int)((io->position + at) % p->hop);
        n = io->n_frames - at < left ? io->n_frames - at : left;
        WT_LEVEL_CALL(run_notes, p, s, x + at, n);
        for (int r = 0; r < CQT_N_READINGS && (n == left || s->known == 0); r++)
            io->readings[r] = n == left ? cqt_level(s, r) : -120;
        if (n == left) s->known = 1;
    }
    s->heard = io->position + io->n_frames;
    for (int c = 0; c < p->channels && io->out != io->in[0]; c++)
        memcpy(io->out + c * io->stride, io->in[0] + c * io->stride, sizeof(float) * (size_t)io->n_frames);
}

const wt_node_type wt__node_cqt = {
    .name = "cqt",
    .summary = "shows the levels of the notes C1 to B7 and of the 12 pitch classes; audio passes unchanged",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .readings = readings,
    .n_readings = CQT_N_READINGS,
    .plan = plan,
    .process = process,
    .kernel = "node_cqt",
    .flags = WT_NODE_CUDA_AFTER,
};
