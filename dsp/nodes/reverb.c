// The CPU works through the same chunks as the GPU; inside the loop of the network a frame's 16 lines are one vector.
#include "reverb_kernel.h"
#include "node_types.h"
#include "ring.h"

#include <string.h>
#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"decay_s", "s", 0.1f, 60, 1.6f, 1, "until the sound has fallen by 60 dB, at low frequencies"},
    {"damping_hz", "Hz", 200, 96000, 5000, 1, "where the decay takes half that time; held below 0.49 of the rate"},
    {"pre_delay_ms", "ms", 0, 250, 10, 0, "silence before the reverberation; at least 3 frames"},
    {"low_cut_hz", "Hz", 10, 2000, 80, 1, "the reverberation is cut below it"},
    {"diffusion", "", 0, 0.8f, 0.6f, 0, "all-passes in front: how smeared the first reflections are"},
    {"modulation", "", 0, 1, 0.3f, 0, "how far the network's modes wander"},
    {"width", "", 0, 1, 1, 0, "0 = the same reverberation on both channels of a pair, 1 = unrelated"},
    {"mix", "", 0, 1, 0.25f, 0, "0 dry, 1 only the reverberation"},
};
enum { N_PARAMS = sizeof params / sizeof *params };

static const wt_option_info options[] = {
    {"size_m", NULL, "12", "edge of the room, 1 to 100: sets the lines' lengths"},
    {"output", "same|stereo", "same", "stereo makes two channels of a mono input"},
};

#define SPEED_OF_SOUND 343.0 // m/s
#define WANDER_HZ 0.6        // of the rotation
#define MAX_PRE_MS 250.0

static int is_prime(int n)
{
    for (int d = 2; d * d <= n; d++)
        if (n % d == 0) return 0;
    return 1;
}

static int next_prime(int n)
{
    while (!is_prime(n)) n++;
    return n;
}

// The mean path between two reflections of a cube is 2/3 of its edge (4 V / S). Lengths rise from 0.6 to 1.6 of it in
// equal ratios, as primes, so that no two lines repeat together.
static void choose_lengths(reverb_plan *p, double rate, double size_m)
{
    // J. Dattorro, "Effect design part 1", JAES 45, 1997, figure 1: 142, 107, 379, 277 frames at 29761 Hz; the second
    // channel's are longer by a sixteenth
    static const double diffuser_ms[REVERB_DIFFUSERS] = {4.771, 3.595, 12.735, 9.307};
    double mean = 2.0 / 3 * size_m / SPEED_OF_SOUND * rate, sum = 0;
    int least = REVERB_CHUNK;
    for (int i = 0; i < REVERB_LINES; i++) {
        int wanted = (int)(mean * 0.6 * pow(1.6 / 0.6, i / (REVERB_LINES - 1.0)));
        p->length[i] = next_prime(wanted > least ? wanted : least);
        least = p->length[i] + 1;
        sum += p->length[i];
    }
    p->mean_length = (float)(sum / REVERB_LINES);
    for (int c = 0; c < 2; c++)
        for (int d = 0; d < REVERB_DIFFUSERS; d++) {
            int wanted = (int)(diffuser_ms[d] * 1e-3 * rate * (1 + c / 16.0));
            p->diffuser_length[c][d] = next_prime(wanted > REVERB_CHUNK ? wanted : REVERB_CHUNK);
        }
}

static int ring_mask(double frames)
{
    int size = 2 * REVERB_CHUNK;
    while (size < frames + REVERB_CHUNK + LAGRANGE_TAPS) size *= 2;
    return size - 1;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double size_m, rate = wt_setup_rate_hz(setup);
    int stereo = wt_setup_choice(setup, "output"), channels = wt_setup_channels(setup, 0);
    wt_status status = wt_setup_number(setup, "size_m", 1, 100, &size_m);
    if (!status && stereo && channels > 2)
        status = wt_fail(WT_ERR_BAD_ARG, "output is 'stereo' and the input has %d channels, want 1 or 2", channels);
    if (!status) status = wt__plan_alloc(out, sizeof(reverb_plan));
    if (status) return status;
    reverb_plan *p = out->plan;
    p->rate_hz = (float)rate;
    p->channels_in = channels;
    choose_lengths(p, rate, size_m);
    p->line_mask = ring_mask(p->length[REVERB_LINES - 1]);
    p->line_stride = p->line_mask + 1 + 80; // 320 bytes: the lines' ends fall into different cache sets
    p->pre_mask = ring_mask(MAX_PRE_MS * 1e-3 * rate);
    p->diffuser_mask = ring_mask(p->diffuser_length[1][2]);
    p->pair_floats = 2 * (p->pre_mask + 1) + 2 * REVERB_DIFFUSERS * (p->diffuser_mask + 1) +
                     REVERB_LINES * p->line_stride;
    p->increment = lfo_increment((float)WANDER_HZ, p->rate_hz);
    out->out_channels = stereo ? 2 : channels;
    int pairs = (out->out_channels + 1) / 2;
    out->coeffs_bytes = sizeof(reverb_coeffs);
    out->state_bytes = sizeof(reverb_state) + sizeof(float) * (size_t)p->pair_floats * (size_t)pairs;
    out->scratch_floats = 2 * WT_CHAIN_BLOCK + 4 * REVERB_CHUNK + REVERB_LINES * REVERB_STRIDE;
    out->tail_frames = (int)((2 * (double)wt_setup_param(setup, "decay_s") + 0.5 + MAX_PRE_MS * 1e-3) * rate);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    reverb_design(plan, v0, v1, coeffs);
}

// What a chunk of one pair needs at hand.
typedef struct network {
    const reverb_plan *p;
    const reverb_coeffs *k;
    float *rings, *damping;
    long long position;
    int n, n_in;
    float x[2][REVERB_CHUNK], wet[2][REVERB_CHUNK];
    _Alignas(64) float line[REVERB_CHUNK][REVERB_LINES];
} network;

WT_INLINE void read_lines(network *w)
{
    float *to = w->line[0];
    for (int i = 0; i < REVERB_LINES; i++) {
        const float *ring = reverb_line_ring(w->p, w->rings, i);
        int at = (int)((w->position - w->p->length[i]) & w->p->line_mask);
        int before_end = w->p->line_mask + 1 - at, n = w->n < before_end ? w->n : before_end;
        for (int f = 0; f < n; f++) to[f * REVERB_LINES + i] = ring[at + f];
        for (int f = n; f < w->n; f++) to[f * REVERB_LINES + i] = ring[f - n];
    }
}

WT_CLONES static void write_lines(network *w)
{
    const float *from = w->line[0];
    for (int i = 0; i < REVERB_LINES; i++) {
        float *ring = reverb_line_ring(w->p, w->rings, i);
        int at = (int)(w->position & w->p->line_mask);
        int before_end = w->p->line_mask + 1 - at, n = w->n < before_end ? w->n : before_end;
        for (int f = 0; f < n; f++) ring[at + f] = from[f * REVERB_LINES + i];
        for (int f = n; f < w->n; f++) ring[f - n] = from[f * REVERB_LINES + i];
    }
}

// Plan and coefficients by value: what is written cannot change them, so that the loop becomes vectors.
WT_INLINE void read_pre(const reverb_plan p, const reverb_coeffs k, const float *ring, long long position, int n,
                        float *restrict y)
{
    float read[REVERB_CHUNK];
    for (int f = 0; f < n; f++) read[f] = reverb_pre(&p, &k, ring, position + f);
    memcpy(y, read, sizeof *read * (size_t)n);
}

WT_INLINE void diffuse(network *w)
{
    for (int c = 0; c < w->n_in; c++) {
        float *ring = reverb_pre_ring(w->p, w->rings, c), *x = w->x[c], v[REVERB_CHUNK], delayed[REVERB_CHUNK];
        wt__ring_write(ring, w->p->pre_mask + 1, w->position, x, w->n);
        read_pre(*w->p, *w->k, ring, w->position, w->n, x);
        for (int d = 0; d < REVERB_DIFFUSERS; d++) {
            ring = reverb_diffuser_ring(w->p, w->rings, c, d);
            wt__ring_read(ring, w->p->diffuser_mask + 1, w->position - w->p->diffuser_length[c][d], delayed, w->n);
            for (int f = 0; f < w->n; f++) v[f] = x[f] - w->k->diffusion * delayed[f];
            for (int f = 0; f < w->n; f++) x[f] = delayed[f] + w->k->diffusion * v[f];
            wt__ring_write(ring, w->p->diffuser_mask + 1, w->position, v, w->n);
        }
    }
}

#include "reverb_level.h"

WT_CLONES __attribute__((flatten)) static void enter_network(network *w)
{
    diffuse(w);
    read_lines(w);
}

static void run_pair(const wt_node_io *io, network *w, float (*low_cut)[2], int pair)
{
    const float *in = io->in[0] + 2 * pair * io->stride;
    float *out = io->out + 2 * pair * io->stride;
    int n_out = io->out_channels - 2 * pair < 2 ? 1 : 2;
    for (int first = 0; first < io->n_frames; first += w->n) {
        w->n = io->n_frames - first < REVERB_CHUNK ? io->n_frames - first : REVERB_CHUNK;
        w->position = io->position + first;
        for (int c = 0; c < w->n_in; c++)
            wt__biquad_run(in + c * io->stride + first, w->x[c], io->stride, 1, w->n, &w->k->low_cut, low_cut + c);
        enter_network(w);
        WT_LEVEL_CALL(turn_network, w);
        write_lines(w);
        for (int f = 0; f < w->n; f++) {
            const float dry[2] = {in[first + f], in[(w->n_in - 1) * io->stride + first + f]};
            float y[2];
            reverb_blend(w->k, w->position + f, dry, w->wet[0][f], w->wet[1][f], n_out, y);
            for (int c = 0; c < n_out; c++) out[c * io->stride + first + f] = y[c];
        }
    }
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const reverb_plan *p = plan;
    reverb_state *s = state;
    network w;
    for (int pair = 0; 2 * pair < io->out_channels; pair++) {
        w.p = p, w.k = coeffs;
        w.rings = s->rings + (size_t)pair * (size_t)p->pair_floats, w.damping = s->damping[pair];
        w.n_in = p->channels_in - 2 * pair < 2 ? 1 : 2;
        run_pair(io, &w, s->low_cut + 2 * pair, pair);
    }
}

const wt_node_type wt__node_reverb = {
    .name = "reverb",
    .summary = "feedback delay network of 16 lines: a room or hall by its decay",
    .params = params,
    .n_params = N_PARAMS,
    .options = options,
    .n_options = 2,
    .plan = plan,
    .design = design,
    .process = process,
};
