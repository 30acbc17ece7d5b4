#include "node_pitch_shift_kernel.h"
#include "ring.h"
#include "spectral_node.h"

#include <math.h>

static const wt_param_info params[SHIFT_N_PARAMS] = {
    {"semitones", "", -SHIFT_MOST, SHIFT_MOST, 0, 0, "up or down; not below `lowest`"},
};

static const wt_option_info options[] = {
    {"n_fft", NULL, "1024", "length of the transform in frames, a power of two from 512 to 4096; longer is cleaner"},
    {"formant", "move|keep", "move", "keep: the voice's colour stays when its pitch moves"},
    {"lowest", NULL, "-12", "deepest shift in semitones, -12 to 0; nearer to 0 the latency is shorter"},
};

// Modified Bessel function of order 0, for Kaiser's window.
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > 1e-18 * sum; k++) term *= x * x / (4.0 * k * k), sum += term;
    return sum;
}

// Kaiser's window with beta 9: 90 dB from 0.09 of the rate beyond the corner, which is half the rate.
static void fill_sinc(float *table)
{
    for (int phase = 0; phase <= SHIFT_PHASES; phase++)
        for (int j = 0; j < SHIFT_TAPS; j++) {
            const double x = j - (SHIFT_TAPS / 2 - 1) - (double)phase / SHIFT_PHASES, r = x / (SHIFT_TAPS / 2);
            const double window = fabs(r) < 1 ? bessel_i0(9 * sqrt(1 - r * r)) / bessel_i0(9) : 0;
            table[phase * SHIFT_TAPS + j] = (float)(x == 0 ? 1 : window * sin(M_PI * x) / (M_PI * x));
        }
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int n_fft, table;
    double lowest;
    wt_status status = wt__spectral_fft_size(setup, "n_fft", 512, SPECTRAL_MAX_FFT, &n_fft);
    if (!status) status = wt_setup_number(setup, "lowest", -SHIFT_MOST, 0, &lowest);
    if (status) return status;
    const int row = (n_fft / 2 + 1 + 15) / 16 * 16, hop = n_fft / SHIFT_HOPS;
    const double reach = (n_fft / 2 + SHIFT_TAPS / 2 + 2) * exp2(-lowest / 12) + WT_QUANTUM; // see the kernel's header
    const int quanta = (int)ceil(reach / WT_QUANTUM);
    int ratios = 1;
    const bool keep = wt_setup_choice(setup, "formant") == 1;
    while (ratios < quanta + 2) ratios *= 2;
    const wt__spectral_config config = {
        .n_fft = n_fft,
        .hop = hop,
        .out_frames = n_fft,
        .plan_bytes = sizeof(node_pitch_shift_plan),
        .table_floats = (SHIFT_PHASES + 1) * SHIFT_TAPS,
        .in_history = hop + WT_QUANTUM,
        .out_history = 2 * quanta * WT_QUANTUM + SHIFT_TAPS + 4 * WT_QUANTUM, // twice: the highest ratio
        .own_floats = (keep ? 9 : 8) * row,
        .shared_floats = (int)(sizeof(node_pitch_shift_shared) / sizeof(float)) + ratios};
    status = wt__spectral_plan(setup, &config, out, &table);
    if (status) return status;
    node_pitch_shift_plan *p = out->plan;
    p->row = row, p->delay_quanta = quanta, p->ratios = ratios, p->sinc = table, p->lowest = (float)lowest;
    const int order = (int)lround(wt_setup_rate_hz(setup) / 300); // for voices to 150 Hz; higher ones sink a little
    p->order = !keep ? 0 : order < 1 ? 1 : order < n_fft / 2 ? order : n_fft / 2;
    fill_sinc((float *)p + table);
    out->coeffs_bytes = sizeof(node_pitch_shift_coeffs);
    out->latency_frames = n_fft / 2 + quanta * WT_QUANTUM;
    out->tail_frames = n_fft;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_pitch_shift_design(plan, v0, v1, coeffs);
}

WT_CLONES static void turn(const node_pitch_shift_plan *p, float *own, wt__spectral_work *work, int step)
{
    shift_turn((spectral_team){0}, p, own, work->re, work->im, work->spare, WT__SPECTRAL_PLANE, step);
}

WT_CLONES static void measure(const node_pitch_shift_plan *p, float *own) { shift_measure((spectral_team){0}, p, own); }

WT_CLONES static void lift(const node_pitch_shift_plan *p, float *cepstrum)
{
    for (int i = 0; i < p->base.n_fft; i++) cepstrum[i] = shift_lifter(p, cepstrum[i], i);
}

WT_CLONES static void take_round(const node_pitch_shift_plan *p, float *own, const float *smooth)
{
    shift_raise((spectral_team){0}, p, own, smooth);
}

// The envelope of the spectrum `here`.
static void find_envelope(const node_pitch_shift_plan *p, const wt__real_core *fft, float *own, wt__spectral_work *work)
{
    const size_t bytes = sizeof(float) * (size_t)p->base.bins;
    measure(p, own);
    for (int round = 0; round < SHIFT_ROUNDS; round++) {
        memcpy(work->re, shift_lifted(p, own), bytes);
        memset(work->im, 0, bytes);
        wt__spectral_inverse(&p->base, fft, work);
        lift(p, work->z);
        wt__spectral_bins(&p->base, fft, work);
        take_round(p, own, work->re);
    }
}

WT_CLONES static void read_out(const node_pitch_shift_plan *p, const float *ring, const shift_moment *m, float *out,
                               int n)
{
    for (int f = 0; f < n; f++) out[f] = shift_read(p, ring, m->heard + (long long)f * m->heard_step);
}

static void frame(const node_pitch_shift_plan *p, const wt__real_core *fft, float *channel, const shift_moment *m,
                  int step)
{
    wt__spectral_work work;
    float *own = channel + p->base.own, *here = own + 2 * p->row;
    wt__spectral_forward(&p->base, fft, channel, m->end, &work);
    memcpy(here, work.re, sizeof *here * (size_t)p->base.bins);
    memcpy(here + p->row, work.im, sizeof *here * (size_t)p->base.bins);
    if (p->order) find_envelope(p, fft, own, &work);
    wt__spectral_forward(&p->base, fft, channel, m->end - p->base.hop, &work);
    turn(p, own, &work, step);
    wt__spectral_inverse(&p->base, fft, &work);
    wt__spectral_add(&p->base, channel + p->base.in_ring, &work, m->place - p->base.n_fft / 2);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const node_pitch_shift_plan *p = plan;
    const node_pitch_shift_coeffs *k = coeffs;
    node_pitch_shift_shared *s = (node_pitch_shift_shared *)((float *)state + p->base.shared);
    for (int at = 0, n; at < io->n_frames; at += n) {
        const long long position = io->position + at;
        const int left = WT_QUANTUM - (int)(position & (WT_QUANTUM - 1));
        n = io->n_frames - at < left ? io->n_frames - at : left;
        const shift_moment m = shift_moment_of(p, k, s, position, n);
        for (int c = 0; c < p->base.channels; c++) {
            float *channel = spectral_channel(&p->base, state, c);
            wt__ring_write(channel, p->base.in_ring, position, io->in[0] + c * io->stride + at, n);
            read_out(p, channel + p->base.in_ring, &m, io->out + c * io->stride + at, n);
            if (m.due) frame(p, io->host, channel, &m, k->step);
        }
        shift_move_on(p, k, &m, s, position, n);
    }
}

const wt_node_type wt__node_pitch_shift = {
    .name = "pitch_shift",
    .summary = "moves the pitch by up to an octave and keeps the tempo: a phase-locked vocoder",
    .params = params,
    .n_params = SHIFT_N_PARAMS,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .plan = plan,
    .design = design,
    .process = process,
    .release = wt__spectral_release,
    .kernel = "node_pitch_shift",
};
