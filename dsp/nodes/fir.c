#include "fir_kernel.h"
#include "node_types.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/fir_design.h>
#include <warptone/simd.h>

static const wt_option_info options[] = {
    {"file", NULL, "", "audio file with the taps: 1 channel for all, or one each"},
    {"design", "none|lowpass|highpass|bandpass|bandstop", "none", "or a windowed sinc"},
    {"n_taps", NULL, "255", "of a designed filter, odd"},
    {"frequency_hz", NULL, "1000", "corner of a designed filter, -6 dB; the lower one of a band"},
    {"high_hz", NULL, "4000", "upper corner of a band"},
    {"window", "hamming|hann|blackman|kaiser|rectangular", "hamming", "of a designed filter"},
    {"kaiser_beta", NULL, "8.6", "of the Kaiser window"},
    {"latency", "auto|centre|none", "auto",
     "which tap counts as now: the middle one, the first; auto = the middle of a designed filter"},
};

enum { NONE, LOWPASS, HIGHPASS, BANDPASS, BANDSTOP };
enum { LATENCY_AUTO, LATENCY_CENTRE, LATENCY_NONE };

typedef struct taps {
    float *taps; // [channels][n_taps]
    int channels, n_taps;
} taps;

// ---- design

static wt_status read_corners(const wt_node_setup *setup, int shape, double *corners)
{
    const double half = wt_setup_rate_hz(setup) / 2;
    wt_status status = wt_setup_number(setup, "frequency_hz", 0.1, half * 0.999, &corners[0]);
    if (!status && shape >= BANDPASS) status = wt_setup_number(setup, "high_hz", 0.1, half * 0.999, &corners[1]);
    if (!status && shape >= BANDPASS && corners[1] <= corners[0])
        status = wt_fail(WT_ERR_BAD_ARG, "frequency_hz is %g and high_hz is %g, want rising corners", corners[0],
                         corners[1]);
    corners[0] /= half, corners[1] /= half;
    return status;
}

static wt_status design_taps(const wt_node_setup *setup, int shape, taps *t)
{
    double count, corners[2] = {0}, h[FIR_MAX_TAPS];
    wt_fir_window_config design = {.cutoffs = corners, .n_cutoffs = shape >= BANDPASS ? 2 : 1,
                                   .stop_zero = shape == HIGHPASS || shape == BANDPASS,
                                   .window = (wt_fir_window_kind)wt_setup_choice(setup, "window")};
    wt_status status = wt_setup_number(setup, "n_taps", 3, FIR_MAX_TAPS - 1, &count);
    if (!status) status = wt_setup_number(setup, "kaiser_beta", 0, 100, &design.kaiser_beta);
    if (!status) status = read_corners(setup, shape, corners);
    if (status) return status;
    t->channels = 1, t->n_taps = design.n_taps = (int)count;
    if (t->n_taps % 2 == 0 || count != t->n_taps)
        return wt_fail(WT_ERR_BAD_ARG, "n_taps is %g, want an odd number, so that the latency is whole frames", count);
    if ((status = wt_fir_design_window(&design, h))) return status;
    if (!(t->taps = malloc(sizeof *t->taps * (size_t)t->n_taps)))
        return wt_fail(WT_ERR_NO_MEMORY, "no memory for %d taps", t->n_taps);
    for (int i = 0; i < t->n_taps; i++) t->taps[i] = (float)h[i];
    return WT_OK;
}

// ---- plan

static wt_status load_taps(const wt_node_setup *setup, const char *file, taps *t)
{
    wt_status status = wt_setup_load_audio(setup, file, &t->taps, &t->channels, &t->n_taps);
    if (status) return status;
    const int channels = wt_setup_channels(setup, 0);
    if (t->n_taps < 1 || t->n_taps > FIR_MAX_TAPS)
        return wt_fail(WT_ERR_BAD_ARG,
                       "file '%s' has %d taps at this rate, want 1..%d; longer ones are for a convolution", file,
                       t->n_taps, FIR_MAX_TAPS);
    if (t->channels != 1 && t->channels != channels)
        return wt_fail(WT_ERR_BAD_ARG, "file '%s' has %d channels for an input of %d, want 1 or as many", file,
                       t->channels, channels);
    for (int i = 0; i < t->channels * t->n_taps; i++)
        if (!isfinite(t->taps[i])) return wt_fail(WT_ERR_FORMAT, "file '%s' holds a sample that is not finite", file);
    return WT_OK;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    const char *file = wt_setup_text(setup, "file");
    const int shape = wt_setup_choice(setup, "design"), latency = wt_setup_choice(setup, "latency");
    if (!*file == !shape)
        return wt_fail(WT_ERR_BAD_ARG, "has %s, want either file or design", *file ? "file and design" : "neither");
    taps t = {0};
    wt_status status = *file ? load_taps(setup, file, &t) : design_taps(setup, shape, &t);
    size_t floats = (size_t)t.channels * (size_t)t.n_taps;
    if (!status) status = wt__plan_alloc(out, sizeof(fir_plan) + sizeof(float) * floats);
    if (!status) {
        fir_plan *p = out->plan;
        p->n_taps = t.n_taps, p->n_responses = t.channels;
        memcpy(p->taps, t.taps, sizeof(float) * floats);
        out->out_channels = wt_setup_channels(setup, 0);
        out->state_bytes = sizeof(float) * FIR_RING_FRAMES * (size_t)out->out_channels;
        out->scratch_floats = FIR_MAX_TAPS;
        if (latency == LATENCY_CENTRE || (latency == LATENCY_AUTO && shape)) out->latency_frames = (t.n_taps - 1) / 2;
        out->tail_frames = t.n_taps - out->latency_frames;
    }
    free(t.taps);
    return status;
}

// ---- process

#include "fir_level.h"

void wt__fir_run(const float *x, const float *h, int n_taps, float *y)
{
    WT_LEVEL_CALL(fir_run, x, h, n_taps, y);
}

// `count` frames of the ring from `position` on.
static void read_ring(const float *ring, long long position, int count, float *to)
{
    const int begin = (int)(position & (FIR_RING_FRAMES - 1));
    const int whole = FIR_RING_FRAMES - begin < count ? FIR_RING_FRAMES - begin : count;
    memcpy(to, ring + begin, sizeof(float) * (size_t)whole);
    memcpy(to + whole, ring, sizeof(float) * (size_t)(count - whole));
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)coeffs;
    const fir_plan *p = plan;
    for (int c = 0; c < io->out_channels; c++) {
        float *ring = ((fir_state *)state)->ring + (size_t)c * FIR_RING_FRAMES;
        float x[FIR_MAX_TAPS + WT_CHAIN_BLOCK + WT_FIR_RUN], y[WT_CHAIN_BLOCK + WT_FIR_RUN];
        const float *in = io->in[0] + c * io->stride, *h = p->taps + (p->n_responses == 1 ? 0 : c * p->n_taps);
        for (int n = 0; n < io->n_frames; n++) ring[(io->position + n) & (FIR_RING_FRAMES - 1)] = in[n];
        read_ring(ring, io->position - p->n_taps + 1, p->n_taps - 1 + io->n_frames, x);
        for (int n = 0; n < WT_FIR_RUN; n++) x[p->n_taps - 1 + io->n_frames + n] = 0;
        for (int n = 0; n < io->n_frames; n += WT_FIR_RUN) wt__fir_run(x + p->n_taps - 1 + n, h, p->n_taps, y + n);
        memcpy(io->out + c * io->stride, y, sizeof(float) * (size_t)io->n_frames);
    }
}

const wt_node_type wt__node_fir = {
    .name = "fir",
    .summary = "finite impulse response of up to 1024 taps, from a file or designed",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .plan = plan,
    .process = process,
};
