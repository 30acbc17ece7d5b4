#include "spectral_node.h"
#include "ring.h"

#include <math.h>
#include <stdlib.h>

wt_status wt__spectral_fft_size(const wt_node_setup *setup, const char *option, int min, int max, int *n)
{
    double value;
    wt_status status = wt_setup_number(setup, option, min, max, &value);
    if (status) return status;
    *n = (int)value;
    if (value != *n || (*n & (*n - 1)))
        return wt_fail(WT_ERR_BAD_ARG, "%s is %g, want a power of two, %d..%d", option, value, min, max);
    return WT_OK;
}

wt_status wt__spectral_hop(const wt_node_setup *setup, int n_fft, int standard, int least, int *hop)
{
    double value;
    wt_status status = wt_setup_number(setup, "hop", 0, n_fft / least, &value);
    if (status) return status;
    *hop = value > 0 ? (int)value : n_fft / standard;
    if (value != (int)value) return wt_fail(WT_ERR_BAD_ARG, "hop is %g, want whole frames", value);
    return WT_OK;
}

static int ring_frames(int least)
{
    int size = 64;
    while (size < least) size *= 2;
    return size;
}

// The synthesis window that undoes the analysis: window over the sum of squared windows, hop by hop, and 1 / n_fft of
// the inverse transform.
static void fill_windows(const wt__spectral_config *config, spectral_plan *p)
{
    const int n = p->n_fft, tail = n - p->out_frames;
    float *window = (float *)p + p->window, *synthesis = (float *)p + p->synthesis, *roots = (float *)p + p->roots;
    double squares = 0;
    for (int k = 0; k < n; k++) {
        const double w = config->window ? config->window[k] : 0.5 - 0.5 * cos(2 * M_PI * k / n);
        window[k] = (float)w;
        squares += w * w;
        roots[2 * k] = (float)cos(2 * M_PI * k / n);
        roots[2 * k + 1] = (float)-sin(2 * M_PI * k / n);
    }
    p->scale = (float)(1 / (n * squares));
    for (int i = 0; i < p->out_frames; i++) {
        double sum = 0;
        for (int k = i % p->hop; k < n && !config->synthesis; k += p->hop) sum += (double)window[k] * window[k];
        synthesis[i] = (float)((config->synthesis ? config->synthesis[i] : (double)window[tail + i] / sum) / n);
    }
}

wt_status wt__spectral_plan(const wt_node_setup *setup, const wt__spectral_config *config, wt_node_plan *out,
                            int *table)
{
    const int channels = config->channels ? config->channels : wt_setup_channels(setup, 0), n = config->n_fft;
    int floats = (int)(config->plan_bytes / sizeof(float) + 15) / 16 * 16;
    spectral_plan p = {.n_fft = n, .hop = config->hop, .channels = channels, .bins = n / 2 + 1};
    p.out_frames = config->out_frames;
    p.in_ring = ring_frames(n + config->in_history);
    p.out_ring = p.out_frames ? ring_frames(p.out_frames + config->out_history) : 0;
    p.own = p.in_ring + p.out_ring;
    p.own_floats = config->own_floats;
    p.channel_floats = (p.own + config->own_floats + 15) / 16 * 16 + 16; // in different sets of the cache
    p.shared = channels * p.channel_floats;
    p.window = floats, floats += n;
    p.synthesis = floats, floats += p.out_frames;
    floats += floats & 1; // the roots are read as pairs
    p.roots = floats, floats += 2 * n;
    *table = floats;
    p.n_teams = 1;
    while (p.n_teams < channels && p.n_teams < SPECTRAL_MAX_TEAMS &&
           2 * p.n_teams * spectral_team_floats(n) <= SPECTRAL_SCRATCH)
        p.n_teams *= 2;
    wt_status status = wt__plan_alloc(out, sizeof(float) * ((size_t)floats + config->table_floats));
    if (status) return status;
    *(spectral_plan *)out->plan = p;
    fill_windows(config, out->plan);
    out->out_channels = channels;
    out->state_bytes = sizeof(float) * (size_t)(p.shared + config->shared_floats);
    out->scratch_floats = p.n_teams * spectral_team_floats(n);
    out->latency_frames = p.out_frames;
    out->host = calloc(1, sizeof(wt__real_core));
    if (!out->host) return wt_fail(WT_ERR_NO_MEMORY, "no memory for transforms");
    return wt__real_core_create(out->host, n / 2);
}

void wt__spectral_release(void *host)
{
    if (host) wt__real_core_destroy(host);
    free(host);
}

WT_CLONES static void multiply(const float *x, const float *w, float *y, int n)
{
    for (int k = 0; k < n; k++) y[k] = x[k] * w[k];
}

WT_CLONES static void multiply_add(const float *x, const float *w, float *y, int n)
{
    for (int k = 0; k < n; k++) y[k] += x[k] * w[k];
}

WT_RT void wt__spectral_forward(const spectral_plan *p, const wt__real_core *fft, const float *ring, long long end,
                                wt__spectral_work *work)
{
    const int begin = (int)((end - p->n_fft) & (p->in_ring - 1));
    const int first = p->n_fft < p->in_ring - begin ? p->n_fft : p->in_ring - begin;
    const float *window = spectral_table(p, p->window);
    multiply(ring + begin, window, work->z, first);
    multiply(ring, window + first, work->z + first, p->n_fft - first);
    wt__spectral_bins(p, fft, work);
}

WT_RT void wt__spectral_bins(const spectral_plan *p, const wt__real_core *fft, wt__spectral_work *work)
{
    const int half = p->n_fft / 2;
    float *z_im = work->z + half + 16;
    wt__fft_side in = {work->z, NULL, 0, WT__FFT_PAIRS}, out = {work->z, z_im, 0, WT__FFT_SPLIT};
    wt__fft_core_run(fft->core, work->core, &in, &out, 1, 0.5f);
    wt__fft_core_kernels(fft->core)->real_bins[WT__FFT_SPLIT](work->z, z_im, fft->twiddles, half, work->re, work->im);
}

WT_RT void wt__spectral_inverse(const spectral_plan *p, const wt__real_core *fft, wt__spectral_work *work)
{
    const int half = p->n_fft / 2;
    float *z_im = work->z + half + 16;
    work->im[0] = work->im[half] = 0;
    wt__fft_core_kernels(fft->core)->real_fold[WT__FFT_SPLIT](work->re, work->im, fft->twiddles, half, work->z, z_im);
    wt__fft_side in = {z_im, work->z, 0, WT__FFT_SPLIT}, out = {work->z, NULL, 0, WT__FFT_SWAPPED};
    wt__fft_core_run(fft->core, work->core, &in, &out, 1, 1);
}

WT_RT void wt__spectral_add(const spectral_plan *p, float *ring, const wt__spectral_work *work, long long end)
{
    const float *synthesis = spectral_table(p, p->synthesis), *z = work->z + p->n_fft - p->out_frames;
    for (int i = 0, n; i < p->out_frames; i += n) {
        const int at = (int)((end + i) & (p->out_ring - 1)), fresh = p->out_frames - p->hop;
        n = p->out_frames - i < p->out_ring - at ? p->out_frames - i : p->out_ring - at;
        if (i < fresh && i + n > fresh) n = fresh - i;
        if (i < fresh)
            multiply_add(z + i, synthesis + i, ring + at, n);
        else
            multiply(z + i, synthesis + i, ring + at, n);
    }
}

WT_RT void wt__spectral_process(const wt_node_io *io, const spectral_plan *p, float *state, wt__spectral_frame frame,
                                void (*done)(const void *user, long long end), const void *user)
{
    const wt__real_core *fft = io->host;
    wt__spectral_work work;
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int left = p->hop - (int)(position % p->hop);
        n = io->n_frames - at < left ? io->n_frames - at : left;
        for (int c = 0; c < p->channels; c++) {
            const float *in = io->in[0] + c * io->stride + at;
            float *out = io->out + c * io->stride + at, *ring = spectral_channel(p, state, c);
            wt__ring_write(ring, p->in_ring, position, in, n);
            if (p->out_frames)
                wt__ring_read(ring + p->in_ring, p->out_ring, position, out, n);
            else if (out != in)
                memcpy(out, in, sizeof *out * (size_t)n);
            if (n < left) continue;
            wt__spectral_forward(p, fft, ring, position + n, &work);
            frame(user, c, ring + p->own, &work, position + n);
            if (!p->out_frames) continue;
            wt__spectral_inverse(p, fft, &work);
            wt__spectral_add(p, ring + p->in_ring, &work, position + n);
        }
        if (n == left && done) done(user, position + n);
    }
}

WT_RT void wt__spectral_process_frames(const wt_node_io *io, const void *plan, const void *coeffs, void *state,
                                       wt__spectral_frame frame)
{
    const wt__spectral_job job = {plan, coeffs};
    wt__spectral_process(io, plan, state, frame, NULL, &job); // a spectral_plan is a plan's first member
}
