#include "biquad_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"frequency_hz", "Hz", 1, 96000, 1000, 1, "corner or centre; held below 0.49 of the rate"},
    {"q", "", 0.05f, 50, 0.70710678f, 1, "resonance; 0.7071 is maximally flat"},
    {"gain_db", "dB", -48, 48, 0, 0, "of peak and shelves"},
};

static const wt_option_info options[] = {
    {"shape", "lowpass|highpass|bandpass|notch|peak|lowshelf|highshelf|allpass", NULL, "kind of filter"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(biquad_plan));
    if (status) return status;
    biquad_plan *p = out->plan;
    p->rate_hz = (float)wt_setup_rate_hz(setup);
    p->shape = wt_setup_choice(setup, "shape");
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(biquad_coeffs);
    out->state_bytes = sizeof(biquad_state);
    out->tail_frames = (int)(wt_setup_rate_hz(setup) * 0.05);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    biquad_design(plan, v0, v1, coeffs);
}

// The step is written for the shortest path from one state to the next: two multiply-adds side by side and their sum.
// Coefficients are copied first, so that no store to an output is taken for a change of them.
WT_INLINE void two_channels(const float *x0, const float *x1, float *y0, float *y1, int n_frames,
                            const biquad_coeffs *k, float *s0, float *s1)
{
    const float a0 = k->a[0], a1 = k->a[1], a2 = k->a[2], a3 = k->a[3], b0 = k->b[0], b1 = k->b[1],
                c0 = k->c[0], c1 = k->c[1], direct = k->d;
    float p0 = s0[0], p1 = s0[1], q0 = s1[0], q1 = s1[1];
    for (int n = 0; n < n_frames; n++) {
        float x = x0[n], z = x1[n];
        y0[n] = c0 * p0 + (c1 * p1 + direct * x);
        y1[n] = c0 * q0 + (c1 * q1 + direct * z);
        float p = (a0 * p0 + b0 * x) + (a1 * p1 + p0), q = (a0 * q0 + b0 * z) + (a1 * q1 + q0);
        p1 = (a2 * p0 + b1 * x) + (a3 * p1 + p1), q1 = (a2 * q0 + b1 * z) + (a3 * q1 + q1);
        p0 = p, q0 = q;
    }
    s0[0] = p0, s0[1] = p1, s1[0] = q0, s1[1] = q1;
}

/// The CPU's section over planar channels, for other nodes too; `in` may be `out`.
WT_CLONES void wt__biquad_run(const float *in, float *out, int stride, int channels, int n_frames,
                              const biquad_coeffs *k, float (*s)[2])
{
    for (int c = 0; c < channels; c += 2) {
        int d = c + 1 < channels ? c + 1 : c; // an odd last channel runs beside itself, with a copy of its state
        float spare[2] = {s[c][0], s[c][1]};
        two_channels(in + c * stride, in + d * stride, out + c * stride, out + d * stride, n_frames, k,
                     d == c ? spare : s[c], s[d]);
    }
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan;
    wt__biquad_run(io->in[0], io->out, io->stride, io->out_channels, io->n_frames, coeffs, ((biquad_state *)state)->s);
}

const wt_node_type wt__node_biquad = {
    .name = "biquad",
    .summary = "second-order filter: low-pass, high-pass, band-pass, notch, peak, shelves, all-pass",
    .params = params,
    .n_params = 3,
    .options = options,
    .n_options = 1,
    .flags = WT_NODE_CUDA_LINE,
    .plan = plan,
    .design = design,
    .process = process,
};
