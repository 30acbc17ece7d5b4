// The convolution node in the audio thread. Every sum runs in an order that depends on the absolute position only.
#include "convolution_plan.h"
#include "node_types.h"

#include <string.h>
#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"mix", "", 0, 1, 1, 0, "0 dry, 1 only the convolved signal"},
    {"gain_db", "dB", -120, 60, 0, 0, "of the convolved signal"},
};

static const wt_option_info options[] = {
    {"file", NULL, "", "audio file with the impulse response: 1 channel for all, one each, or 4 = LL LR RL RR"},
    {"synthetic_ms", NULL, "0", "or a made-up response: noise that falls by 60 dB over this time"},
    {"synthetic_channels", NULL, "0", "of the made-up response; 0 = one each"},
    {"max_ms", NULL, "10000", "longest response that is accepted, up to 60000"},
    {"normalize", "none|peak|energy", "none", "scale the response to peak 1, or its loudest channel to energy 1"},
    {"partitions", NULL, "64 512 4096", "rising powers of two from 64; one number = uniform partitions"},
};

// Memory is called for this many channels, or blocks of bins, before its turn: some hundred nanoseconds.
enum { EARLY = 6 };

WT_INLINE void prefetch_run(const float *x, int n)
{
    for (int i = 0; i < n; i += 16) __builtin_prefetch(x + i);
}

// ---- transforms

WT_RT void wt__convolution_forward(const convolution_fft *fft, int size, convolution_work *work, float *blocks,
                                   size_t stride)
{
    float *re = work->core, *im = work->core + size + 32, *z_im = work->z + size + 16;
    wt__fft_side in = {work->z, NULL, 0, WT__FFT_PAIRS}, out = {work->z, z_im, 0, WT__FFT_SPLIT};
    wt__fft_core_run(fft->core, work->core, &in, &out, 1, 0.5f);
    wt__fft_core_kernels(fft->core)->real_bins[WT__FFT_SPLIT](work->z, z_im, fft->twiddles, size, re, im);
    im[0] = re[size];
    for (int b = 0; b < size / CONV_BINS; b++) {
        prefetch_run(blocks + (size_t)(b + EARLY) * stride, 2 * CONV_BINS);
        memcpy(blocks + (size_t)b * stride, re + b * CONV_BINS, sizeof(float) * CONV_BINS);
        memcpy(blocks + (size_t)b * stride + CONV_BINS, im + b * CONV_BINS, sizeof(float) * CONV_BINS);
    }
}

WT_RT void wt__convolution_inverse(const convolution_fft *fft, int size, convolution_work *work, const float *blocks,
                                   size_t stride)
{
    float *b_re = work->core, *b_im = work->core + size + 32, *z_im = work->z + size + 16;
    for (int b = 0; b < size / CONV_BINS; b++) {
        prefetch_run(blocks + (size_t)(b + EARLY) * stride, 2 * CONV_BINS);
        memcpy(b_re + b * CONV_BINS, blocks + (size_t)b * stride, sizeof(float) * CONV_BINS);
        memcpy(b_im + b * CONV_BINS, blocks + (size_t)b * stride + CONV_BINS, sizeof(float) * CONV_BINS);
    }
    b_re[size] = b_im[0];
    b_im[size] = b_im[0] = 0;
    wt__fft_core_kernels(fft->core)->real_fold[WT__FFT_SPLIT](b_re, b_im, fft->twiddles, size, work->z, z_im);
    wt__fft_side in = {z_im, work->z, 0, WT__FFT_SPLIT}, out = {work->z, NULL, 0, WT__FFT_SWAPPED};
    wt__fft_core_run(fft->core, work->core, &in, &out, 1, 0.5f / (float)size);
}

// ---- products
//
// The delay lines of many channels are larger than any cache, and reading them costs more than multiplying. So every
// CONV_AHEAD chunks, when a channel's turn is 0, a slice's products are summed for this chunk and, as far as they are
// known, for the next ones; on the other turns only the spectra that came since are added:
//
//   turn 0   sum[b] = sum over j of x[j] h[j + b]     b < CONV_AHEAD
//   turn b   sum[b] += sum over j < b of x[j] h[j]
//
// Turns differ between channels. Of 14 partitions that reads 20 spectra in 4 chunks, not 56, and 3 sums. On a Xeon of
// 2024, 300 channels of 129600 taps in partitions 64 512 4096 take 39 % of a core for 4 chunks, 45 for 2, 39 for 8.

typedef struct slice_job {
    const float *line, *spectra; // of the slice
    float *sums;
    int n_parts, newest;
} slice_job;

#include "convolution_level.h"

// Bin 0 holds two real bins, whose products do not mix: those of partitions 0 .. count - 1 with `ahead` to follow.
static void multiply_ends(const slice_job *s, int ahead, int count, float ends[2])
{
    const int block = 2 * CONV_BINS;
    for (int j = 0; j < count && j + ahead < s->n_parts; j++) {
        const float *x = s->line + (s->newest + j < s->n_parts ? s->newest + j : s->newest + j - s->n_parts) * block;
        ends[0] += x[0] * s->spectra[(j + ahead) * block];
        ends[1] += x[CONV_BINS] * s->spectra[(j + ahead) * block + CONV_BINS];
    }
}

// ---- ticks

typedef struct tick_job {
    const convolution_plan *p;
    const convolution_host *host;
    float *state;
    long long tick;
    convolution_work *work;
} tick_job;

static float *channel_state(const tick_job *job, int c)
{
    return job->state + (size_t)c * (size_t)job->p->channel_floats;
}

static void forward(const tick_job *job, int stage, int c, const convolution_moment *now)
{
    const convolution_stage *s = &job->p->stages[stage];
    float *state = channel_state(job, c);
    const int frames = 2 * s->size, begin = (int)((job->tick * CONV_TICK - frames) & (job->p->ring_frames - 1));
    const int whole = job->p->ring_frames - begin < frames ? job->p->ring_frames - begin : frames;
    memcpy(job->work->z, state + begin, sizeof(float) * (size_t)whole);
    memcpy(job->work->z + whole, state, sizeof(float) * (size_t)(frames - whole));
    wt__convolution_forward(&job->host->fft[stage], s->size, job->work,
                            state + s->line + now->newest * 2 * CONV_BINS, (size_t)s->n_parts * 2 * CONV_BINS);
}

static void inverse(const tick_job *job, int stage, int c, int turn)
{
    const convolution_stage *s = &job->p->stages[stage];
    float *state = channel_state(job, c);
    wt__convolution_inverse(&job->host->fft[stage], s->size, job->work,
                            state + s->sum + turn * 2 * CONV_BINS,
                            (size_t)CONV_AHEAD * 2 * CONV_BINS);
    memcpy(state + s->heard, job->work->z + s->size, sizeof(float) * (size_t)s->size);
}

static slice_job slice_of(const tick_job *job, int stage, int c, int feed, int slice, int newest)
{
    const convolution_plan *p = job->p;
    const convolution_stage *s = &p->stages[stage];
    const size_t spectrum = (size_t)s->size * 2 * (size_t)s->n_parts,
                 at = (size_t)slice * CONV_TICK * 2 * (size_t)s->n_parts;
    return (slice_job){
        .line = channel_state(job, convolution_input(p, c, feed)) + s->line + at,
        .spectra = (const float *)p + s->spectra + (size_t)convolution_response(p, c, feed) * spectrum + at,
        .sums = channel_state(job, c) + s->sum + slice * CONV_TICK * 2 * CONV_AHEAD,
        .n_parts = s->n_parts,
        .newest = newest};
}

// A channel whose products are to be summed.
typedef struct due_channel {
    int c, turn, newest;
} due_channel;

// `next`: the channel whose slice comes after this one.
static void multiply(const tick_job *job, int stage, const due_channel *due, int slice, int next)
{
    const int turn = due->turn, first = turn, last = turn ? turn : CONV_AHEAD - 1;
    float ends[CONV_AHEAD][2] = {{0}}, *sums = slice_of(job, stage, due->c, 0, slice, 0).sums;
    if (turn) ends[turn][0] = sums[turn * 2 * CONV_BINS], ends[turn][1] = sums[(turn * 2 + 1) * CONV_BINS];
    for (int f = 0; f < job->p->n_feeds; f++) {
        const slice_job s = slice_of(job, stage, due->c, f, slice, due->newest);
        if (turn)
            WT_LEVEL_CALL(multiply_recent, &s, turn);
        else
            WT_LEVEL_CALL(multiply_all, &s, f > 0, slice_of(job, stage, next, 0, slice, 0).line);
        for (int b = first; b <= last && slice == 0; b++)
            multiply_ends(&s, turn ? 0 : b, turn ? turn : s.n_parts, ends[b]);
    }
    for (int b = first; b <= last && slice == 0; b++)
        sums[b * 2 * CONV_BINS] = ends[b][0], sums[(b * 2 + 1) * CONV_BINS] = ends[b][1];
}

// All that is written on turn 0, or read and written on a later one.
static void prefetch_due(const tick_job *job, int stage, const due_channel *due, int slice)
{
    const slice_job s = slice_of(job, stage, due->c, 0, slice, due->newest);
    const int block = 2 * CONV_BINS, turn = due->turn;
    prefetch_run(s.sums + turn * block, turn ? block : CONV_AHEAD * block);
    prefetch_run(s.line + s.newest * block, turn * block);
}

// The channels whose products are due, those on turn 0 first: `first` of them. Returns the number of all.
static int list_due(const tick_job *job, int stage, due_channel due[WT_MAX_CHANNELS], int *first)
{
    const convolution_plan *p = job->p;
    int begin = 0, end = WT_MAX_CHANNELS;
    for (int c = p->n_outputs - 1; c >= 0; c--) {
        const convolution_moment now = convolution_now(p, &p->stages[stage], c, job->tick);
        const int turn = wt__convolution_turn(p, c, now.chunk);
        if (stage == 0 && now.at) continue;
        due[turn ? --end : begin++] = (due_channel){c, turn, now.newest};
    }
    memmove(due + begin, due + end, sizeof *due * (size_t)(WT_MAX_CHANNELS - end));
    *first = begin;
    return begin + WT_MAX_CHANNELS - end;
}

static void forward_channels(const tick_job *job, int stage)
{
    const convolution_plan *p = job->p;
    for (int c = 0; c < p->n_inputs; c++) {
        const convolution_moment now = convolution_now(p, &p->stages[stage], c, job->tick);
        if (now.at == 0) forward(job, stage, c, &now);
    }
}

// One tick of a stage: the transforms that are due, then the products of one slice.
static void tick_later_stage(const tick_job *job, int stage)
{
    const convolution_plan *p = job->p;
    due_channel due[WT_MAX_CHANNELS];
    const int slice = (int)(job->tick & (p->stages[stage].ticks - 1));
    for (int c = 0; c < p->n_outputs; c++) {
        const convolution_moment now = convolution_now(p, &p->stages[stage], c, job->tick);
        if (now.at == 0) inverse(job, stage, c, wt__convolution_turn(p, c, now.chunk - 1));
    }
    forward_channels(job, stage);
    int first, n = list_due(job, stage, due, &first);
    for (int i = 0; i < n; i++) {
        if (i + EARLY < n) prefetch_due(job, stage, &due[i + EARLY], slice);
        multiply(job, stage, &due[i], slice, due[i + 1 < first ? i + 1 : i].c);
    }
}

// The first stage's result is due at once.
static void tick_first_stage(const tick_job *job)
{
    const int slices = job->p->stages[0].ticks;
    due_channel due[WT_MAX_CHANNELS];
    int first, n = list_due(job, 0, due, &first);
    forward_channels(job, 0);
    for (int i = 0; i < n; i++)
        for (int slice = 0; slice < slices; slice++) {
            if (i + EARLY < n) prefetch_due(job, 0, &due[i + EARLY], slice);
            multiply(job, 0, &due[i], slice, due[i + 1 < first ? i + 1 : i].c);
            if (slice == slices - 1) inverse(job, 0, due[i].c, due[i].turn);
        }
}

// ---- the head, and the sum of all

static void write_ring(float *ring, int mask, long long position, const float *x, int n)
{
    memcpy(ring + (position & mask), x, sizeof(float) * (size_t)n); // a tick does not cross the ring's end
}

static void run_feed(const convolution_plan *p, const float *ring, const float *h, long long position, int n, float *y)
{
    float x[CONV_MAX_HEAD + CONV_TICK];
    const int before = (p->head_taps + CONV_TICK - 2) / CONV_TICK * CONV_TICK;
    const long long tick = position & ~(long long)(CONV_TICK - 1);
    const int offset = (int)(position - tick);
    for (int k = -before; k < 0; k += CONV_TICK)
        memcpy(x + before + k, ring + ((tick + k) & (p->ring_frames - 1)), sizeof(float) * CONV_TICK);
    memcpy(x + before, ring + (tick & (p->ring_frames - 1)), sizeof(float) * (size_t)(offset + n));
    for (int i = offset + n; i < CONV_TICK; i++) x[before + i] = 0;
    float all[WT_FIR_RUN];
    wt__fir_run(x + before, h, p->head_taps, all);
    for (int i = 0; i < n; i++) y[i] += all[offset + i];
}

// What a stage lets hear at a position, up to the end of its tick.
static const float *heard_at(const tick_job *job, int stage, int c, long long position)
{
    const convolution_stage *s = &job->p->stages[stage];
    const int at = convolution_now(job->p, s, c, position / CONV_TICK).at;
    return channel_state(job, c) + s->heard + at * CONV_TICK + position % CONV_TICK;
}

WT_CLONES static void add_to(float *y, const float *x, int n)
{
    for (int i = 0; i < n; i++) y[i] += x[i];
}

// The convolved signal of one output over n frames of one tick.
static void hear(const tick_job *job, int c, long long position, int n, float *y)
{
    const convolution_plan *p = job->p;
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int f = 0; f < p->n_feeds; f++)
        run_feed(p, channel_state(job, convolution_input(p, c, f)),
                 (const float *)p + p->head + (size_t)convolution_response(p, c, f) * (size_t)p->head_stride, position,
                 n, y);
    for (int stage = 0; stage < p->n_stages; stage++) add_to(y, heard_at(job, stage, c, position), n);
}

// Each channel's ring and results lie in lines of their own, far apart.
static void prefetch_channel(const tick_job *job, int c, long long position)
{
    const convolution_plan *p = job->p;
    if (c < p->n_inputs) prefetch_run(channel_state(job, c) + (position & (p->ring_frames - CONV_TICK)), CONV_TICK);
    for (int stage = 0; c < p->n_outputs && stage < p->n_stages; stage++)
        prefetch_run(heard_at(job, stage, c, position), CONV_TICK);
}

WT_CLONES static void blend(const float *dry, const float *wet, float *out, int n, const convolution_coeffs *k,
                            int phase)
{
    for (int i = 0; i < n; i++)
        out[i] = dry[i] * (k->dry + k->dry_slope * (float)(phase + i)) +
                 wet[i] * (k->wet + k->wet_slope * (float)(phase + i));
}

static void run_tick(tick_job *job, const wt_node_io *io, int done, int n, const convolution_coeffs *k)
{
    const convolution_plan *p = job->p;
    const long long position = io->position + done;
    const int mask = p->ring_frames - 1;
    for (int c = 0; c < p->n_inputs && p->coupled; c++)
        write_ring(channel_state(job, c), mask, position, io->in[0] + c * io->stride + done, n);
    for (int c = 0; c < p->n_outputs; c++) {
        const float *x = io->in[0] + (p->n_inputs == 1 ? 0 : c) * io->stride + done;
        float wet[CONV_TICK];
        prefetch_channel(job, c + EARLY, position);
        if (!p->coupled) write_ring(channel_state(job, c), mask, position, x, n);
        hear(job, c, position, n, wet);
        blend(x, wet, io->out + c * io->stride + done, n, k, (int)(position & (WT_QUANTUM - 1)));
    }
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const convolution_plan *p = plan;
    convolution_work work;
    tick_job job = {.p = p, .host = io->host, .state = state, .work = &work};
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        const int left = CONV_TICK - (int)(position & (CONV_TICK - 1));
        n = io->n_frames - done < left ? io->n_frames - done : left;
        run_tick(&job, io, done, n, coeffs);
        if (n < left || !p->n_stages) continue;
        job.tick = (position + n) / CONV_TICK;
        tick_first_stage(&job);
        for (int stage = 1; stage < p->n_stages; stage++) tick_later_stage(&job, stage);
    }
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    convolution_design(plan, v0, v1, coeffs);
}

const wt_node_type wt__node_convolution = {
    .name = "convolution",
    .summary = "convolution with an impulse response of any length, without latency",
    .params = params,
    .n_params = 2,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .flags = WT_NODE_CUDA_AFTER | WT_NODE_CUDA_QUICK,
    .plan_head_bytes = sizeof(convolution_plan),
    .plan = wt__convolution_plan,
    .design = design,
    .process = process,
    .release = wt__convolution_release,
    .adopt = wt__convolution_adopt,
};
