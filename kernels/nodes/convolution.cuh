// convolution: two threads a sample for the head of a short block; what is older than the block is summed up behind the
// block before (convolution_foresee). At a tick, small transforms run one a warp, many channels at once;
// those too large for that run by the whole block, a channel after the other. Products: a warp takes a slice of 64
// bins, two a lane, so that loads are whole lines; spare warps split the partitions between them and add up in shared
// memory. The channels' chunks begin at their own phases, so few large transforms meet in one tick.
// Judge: the CPU's process, 100 dB (other radices and order of sums).
#pragma once
#include "convolution_kernel.h"
#include "fft_block.cuh"

struct convolution_job {
    const convolution_plan *p;
    const float *tables; // the plan's, from its start
    float *state, *scratch;
    long long tick;
    __device__ float *channel(int c) const { return state + c * p->channel_floats; }
    __device__ const float *table(long long at) const { return tables + at; }
};

static __device__ __forceinline__ fft_planes convolution_planes(float *at, int size)
{
    fft_planes planes = {at, at + size};
    return planes;
}

// Last 2 P frames of the ring to a packed spectrum in the delay line.
static __device__ void convolution_forward(const convolution_job &job, const fft_team &team, const convolution_stage *s,
                                           int c, int newest, float *scratch)
{
    const int size = s->size, mask = job.p->ring_frames - 1;
    const float2 *roots = (const float2 *)job.table(s->roots);
    float *state = job.channel(c), *line = state + s->line;
    const int begin = (int)((job.tick * CONV_TICK - 2 * size) & mask);
    fft_planes x = convolution_planes(scratch, size);
#pragma unroll 1
    for (int k = team.rank; k < size; k += team.size) {
        const float2 pair = *(const float2 *)(state + ((begin + 2 * k) & mask));
        x.re[k] = pair.x, x.im[k] = pair.y;
    }
    team.sync();
    fft_planes z = fft_block(team, x, convolution_planes(scratch + 2 * size, size), size, roots, 2 * size);
#pragma unroll 1
    for (int k = team.rank; k <= size / 2; k += team.size) {
        const int mirror = (size - k) & (size - 1);
        float *low = line + (k / CONV_BINS * s->n_parts + newest) * 2 * CONV_BINS + k % CONV_BINS;
        float *high = line + (mirror / CONV_BINS * s->n_parts + newest) * 2 * CONV_BINS + mirror % CONV_BINS;
        const float2 w = roots[k];
        const float e_re = 0.5f * (z.re[k] + z.re[mirror]), e_im = 0.5f * (z.im[k] - z.im[mirror]);
        const float o_re = 0.5f * (z.im[k] + z.im[mirror]), o_im = 0.5f * (z.re[mirror] - z.re[k]);
        const float t_re = o_re * w.x - o_im * w.y, t_im = o_re * w.y + o_im * w.x;
        low[0] = e_re + t_re;
        low[CONV_BINS] = k ? e_im + t_im : e_re - t_re; // bin 0 with the real bin `size`
        if (k) high[0] = e_re - t_re, high[CONV_BINS] = t_im - e_im;
    }
    team.sync();
}

// The summed products to the P frames that will be heard.
static __device__ void convolution_inverse(const convolution_job &job, const fft_team &team, const convolution_stage *s,
                                           int c, float *scratch)
{
    const int size = s->size;
    const float2 *roots = (const float2 *)job.table(s->roots);
    const float *re = job.channel(c) + s->sum, *im = re + size;
    float *heard = job.channel(c) + s->heard;
    fft_planes x = convolution_planes(scratch, size);
#pragma unroll 1
    for (int k = team.rank; k <= size / 2; k += team.size) {
        const int mirror = (size - k) & (size - 1);
        const float b_re = k ? re[mirror] : im[0], a_im = k ? im[k] : 0.0f, b_im = k ? im[mirror] : 0.0f;
        const float2 w = roots[k];
        const float e_re = re[k] + b_re, e_im = a_im - b_im, d_re = re[k] - b_re, d_im = a_im + b_im;
        const float o_re = d_re * w.x + d_im * w.y, o_im = d_im * w.x - d_re * w.y;
        x.im[k] = e_re - o_im, x.re[k] = e_im + o_re; // exchanged: the inverse
        if (k) x.im[mirror] = e_re + o_im, x.re[mirror] = o_re - e_im;
    }
    team.sync();
    fft_planes z = fft_block(team, x, convolution_planes(scratch + 2 * size, size), size, roots, 2 * size);
    const float scale = 0.5f / (float)size;
#pragma unroll 1
    for (int k = team.rank; k < size; k += team.size) heard[k] = scale * (k & 1 ? z.re : z.im)[(size + k) / 2];
    team.sync();
}

// Products of a slice over partitions first .. last - 1: this lane's bin of each half of the slice.
static __device__ void convolution_products(const convolution_job &job, const convolution_stage *s, int c, int slice,
                                            int newest, int first, int last, float sums[4])
{
    const int lane = threadIdx.x & 31, block_floats = 2 * CONV_BINS * s->n_parts;
    for (int b = 0; b < 2; b++) {
        const bool ends = slice == 0 && b == 0 && lane == 0; // bins 0 and P: two real products
        float re = 0.0f, im = 0.0f;
        for (int f = 0; f < job.p->n_feeds; f++) {
            const float *x =
                job.channel(convolution_input(job.p, c, f)) + s->line + slice * block_floats + b * 32 + lane;
            const float *h = job.table(s->spectra) + slice * block_floats + b * 32 + lane +
                             convolution_response(job.p, c, f) * 2ll * s->size * s->n_parts;
#pragma unroll 4
            for (int j = first; j < last; j++) {
                const int slot = newest + j < s->n_parts ? newest + j : newest + j - s->n_parts;
                const float x_re = x[slot * 2 * CONV_BINS], x_im = x[slot * 2 * CONV_BINS + CONV_BINS];
                const float h_re = h[j * 2 * CONV_BINS], h_im = h[j * 2 * CONV_BINS + CONV_BINS];
                re = fmaf(x_re, h_re, fmaf(ends ? 0.0f : -x_im, h_im, re));
                im = fmaf(ends ? 0.0f : x_re, h_im, fmaf(x_im, ends ? h_im : h_re, im));
            }
        }
        sums[b] = re, sums[2 + b] = im;
    }
}

// Every channel's products due at this tick: the tick's slice, or all slices of a first stage whose chunk is full.
static __device__ void convolution_multiply(const convolution_job &job, const convolution_stage *s, bool at_once)
{
    const int warps = chain_threads() / 32, warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int slices = at_once ? s->ticks : 1, whole = job.p->n_outputs * slices;
    const int groups = whole < warps ? min(warps / whole, s->n_parts) : 1, each = (s->n_parts + groups - 1) / groups;
    for (int i = warp; i < whole * groups; i += warps) {
        const int item = i / groups, group = i % groups, c = item / slices;
        const convolution_moment now = convolution_now(job.p, s, c, job.tick);
        const int slice = at_once ? item % slices : now.slice, first = min(group * each, s->n_parts);
        if (at_once && now.at) continue;
        float sums[4];
        convolution_products(job, s, c, slice, now.newest, first, min(first + each, s->n_parts), sums);
        float *re = groups > 1 ? job.scratch + i * 2 * CONV_TICK : job.channel(c) + s->sum + slice * CONV_TICK;
        float *im = groups > 1 ? re + CONV_TICK : re + s->size;
        for (int b = 0; b < 2; b++) re[b * 32 + lane] = sums[b], im[b * 32 + lane] = sums[2 + b];
    }
    if (groups == 1) return;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < whole * 2 * CONV_TICK; i += chain_threads()) {
        const int item = i / (2 * CONV_TICK), at = i % (2 * CONV_TICK), c = item / slices;
        const convolution_moment now = convolution_now(job.p, s, c, job.tick);
        if (at_once && now.at) continue;
        const int bin = (at_once ? item % slices : now.slice) * CONV_TICK + at % CONV_TICK;
        float sum = 0.0f;
        for (int g = 0; g < groups; g++) sum += job.scratch[(item * groups + g) * 2 * CONV_TICK + at];
        job.channel(c)[s->sum + (at < CONV_TICK ? 0 : s->size) + bin] = sum;
    }
}

// The transforms due at this tick. Scratch: four planes' halves a team, 4 P floats.
static __device__ __noinline__ void convolution_transforms(const convolution_job &job, const convolution_stage *s,
                                                           int channels, bool back)
{
    const int warps = chain_threads() / 32, room = max(1024, job.p->stages[job.p->n_stages - 1].size);
    const bool by_warp = warps * s->size <= room;
    fft_team team;
    team.warp = by_warp;
    team.rank = by_warp ? threadIdx.x & 31 : threadIdx.x;
    team.size = by_warp ? 32 : chain_threads();
    float *scratch = job.scratch + (by_warp ? threadIdx.x / 32 * 4 * s->size : 0);
    for (int c = by_warp ? threadIdx.x / 32 : 0; c < channels; c += by_warp ? warps : 1) {
        const convolution_moment now = convolution_now(job.p, s, c, job.tick);
        if (now.at) continue;
        if (back)
            convolution_inverse(job, team, s, c, scratch);
        else
            convolution_forward(job, team, s, c, now.newest, scratch);
    }
}

static __device__ void convolution_tick(const convolution_job &job, int stage)
{
    const convolution_stage *s = &job.p->stages[stage];
    if (stage > 0) convolution_transforms(job, s, job.p->n_outputs, true);
    __syncthreads();
    convolution_transforms(job, s, job.p->n_inputs, false);
    __syncthreads();
    convolution_multiply(job, s, stage == 0);
    __syncthreads();
    if (stage == 0) convolution_transforms(job, s, job.p->n_outputs, true);
    __syncthreads();
}

static __device__ __noinline__ float convolution_head(const convolution_job job, int c, long long position)
{
    const convolution_plan *p = job.p;
    const int mask = p->ring_frames - 1;
    float y = 0.0f;
#pragma unroll 1
    for (int f = 0; f < p->n_feeds; f++) {
        const float *h = job.table(p->head) + convolution_response(p, c, f) * p->head_stride;
        const float *ring = job.channel(convolution_input(p, c, f));
        const int now = (int)(position & mask);
#pragma unroll 4
        for (int k = 0; k < p->head_taps; k++) y = fmaf(h[k], ring[(now - k) & mask], y);
    }
    return y;
}

// The same where blocks begin and end at fours, by lanes that share four frames (chain.cuh), in two parts: what the
// block brings, `x` from its first frame on;
static __device__ __forceinline__ float convolution_head_new(const convolution_job &job, const float *x, int stride,
                                                             const fours_place &own)
{
    const convolution_plan *p = job.p;
    const int four = own.f & ~3;
    float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int f = 0; f < p->n_feeds; f++) {
        const float *h = job.table(p->head) + convolution_response(p, own.c, f) * p->head_stride;
        const float *in = x + convolution_input(p, own.c, f) * stride;
#pragma unroll
        for (int u = 4 * own.lane; u < min(CHAIN_MOST_FRAMES, CONV_TICK); u += 4 * FOURS_LANES)
            fours_add(&y, u <= four ? *(const float4 *)(in + four - u) : make_float4(0.0f, 0.0f, 0.0f, 0.0f), h + u);
    }
    return fours_own<FOURS_LANES>(y);
}

// and what lies in the rings, from `first` frames before the frame's four on: four + 4 leaves the block out.
static __device__ __forceinline__ float convolution_head_kept(const convolution_job &job, long long position,
                                                              const fours_place &own, int first)
{
    const convolution_plan *p = job.p;
    const int four = own.f & ~3, mask = p->ring_frames - 1, now = (int)(position & mask) + four;
    float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int f = 0; f < p->n_feeds; f++) {
        const float *h = job.table(p->head) + convolution_response(p, own.c, f) * p->head_stride;
        const float *ring = job.channel(convolution_input(p, own.c, f));
#pragma unroll 4
        for (int u = first + 4 * own.lane; u < p->head_taps + 4; u += 4 * FOURS_LANES)
            fours_add(&y, *(const float4 *)(ring + ((now - u) & mask)), h + u);
    }
    __syncwarp();
    return fours_own<FOURS_LANES>(y);
}

static __device__ __forceinline__ float convolution_tail(const convolution_job &job, int c, long long position)
{
    const convolution_plan *p = job.p;
    float y = 0.0f;
#pragma unroll 1
    for (int stage = 0; stage < p->n_stages; stage++) {
        const convolution_stage *s = &p->stages[stage];
        const int at = convolution_now(p, s, c, position / CONV_TICK).at * CONV_TICK + (int)(position % CONV_TICK);
        y += job.channel(c)[s->heard + at];
    }
    return y;
}

// What is known of the frames from `position` to the tick's end, for who asks when they come.
static __device__ __forceinline__ void convolution_foresee(const convolution_job &job, long long position)
{
    const convolution_plan *p = job.p;
    const fours_place own = fours_place_of(threadIdx.x);
    if (position & 3 || !fours_fit(p->n_outputs)) return;
    if (own.c < p->n_outputs && own.f < CONV_TICK) { // whole warps
        const float y = convolution_head_kept(job, position, own, (own.f & ~3) + 4) +
                        convolution_tail(job, own.c, position + own.f);
        if (own.first) job.channel(own.c)[p->rest + own.f] = y;
    }
    if (threadIdx.x == 0) job.channel(0)[p->rest + CONV_TICK] = __int_as_float((int)position);
}

static __device__ __forceinline__ bool convolution_is_foreseen(const convolution_job &job, long long position)
{
    const bool known = __float_as_int(job.channel(0)[job.p->rest + CONV_TICK]) == (int)position;
#ifdef CHAIN_IN_SHARED
    return known || chain_rehearsed;
#else
    return known;
#endif
}

// What is due when the position is `end`: at a tick's end. Nothing of it is heard before that.
static __device__ __noinline__ void convolution_ticks(const void *tables, float *scratch, float *state, long long end)
{
    const convolution_plan *p = (const convolution_plan *)tables; // a copy of its head may lie further away
    const convolution_job job = {p, (const float *)tables, state, scratch, end / CONV_TICK};
    for (int stage = 0; end % CONV_TICK == 0 && stage < p->n_stages; stage++) convolution_tick(job, stage);
    convolution_foresee(job, end);
}

static __device__ __forceinline__ float convolution_mixed(const convolution_coeffs *k, long long position, int f,
                                                          float x, float y)
{
    const float at = (float)((int)(position & (WT_QUANTUM - 1)) + f);
    return x * (k->dry + k->dry_slope * at) + y * (k->wet + k->wet_slope * at);
}

// `n` frames of the block from `done` on, to the tick's end at most, when all but what they bring is known; else false.
static __device__ __forceinline__ bool convolution_piece(const wt_node_io *io, const convolution_job &job,
                                                         const convolution_coeffs *k, int done, int n)
{
    const convolution_plan *p = job.p;
    const long long position = io->position + done;
    if ((position | done | n) & 3 || !fours_fit(p->n_outputs) || !convolution_is_foreseen(job, position)) return false;
    const fours_place own = fours_place_of(threadIdx.x);
    const bool mine = own.c < p->n_outputs && own.f < n && own.first;
    float y = 0.0f;
    if (own.c < p->n_outputs) { // whole warps
        const float x = io->in[0][(p->n_inputs == 1 ? 0 : own.c) * io->stride + done + own.f];
        y = convolution_head_new(job, io->in[0] + done, io->stride, own);
        y = convolution_mixed(k, position, own.f, x, y + job.channel(own.c)[p->rest + own.f % CONV_TICK]);
        if (mine && own.c < p->n_inputs) job.channel(own.c)[(position + own.f) & (p->ring_frames - 1)] = x;
    }
    __syncthreads(); // `out` may be `in`
    if (mine) io->out[own.c * io->stride + done + own.f] = y;
    return true;
}

static __device__ __forceinline__ int convolution_left(long long position)
{
    return CONV_TICK - (int)(position & (CONV_TICK - 1));
}

static __device__ __forceinline__ bool convolution_quick(const wt_node_io *io, const convolution_plan *p,
                                                         const convolution_coeffs *k, float *state)
{
    const convolution_job job = {p, (const float *)io->tables, state, io->scratch, 0};
    return io->n_frames <= convolution_left(io->position) && convolution_piece(io, job, k, 0, io->n_frames);
}

static __device__ void convolution_process(const wt_node_io *io, const convolution_plan *p, const convolution_coeffs *k,
                                           float *state)
{
    const convolution_job job = {p, (const float *)io->tables, state, io->scratch, 0};
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        if (done) {
            __syncthreads();
            convolution_ticks(io->tables, io->scratch, state, position);
            __syncthreads();
        }
        n = min(io->n_frames - done, convolution_left(position));
        if (convolution_piece(io, job, k, done, n)) continue;
        for_each_frame(p->n_inputs, n, [&](int c, int f) {
            job.channel(c)[(position + f) & (p->ring_frames - 1)] = io->in[0][c * io->stride + done + f];
        });
        __syncthreads();
        const bool fours = ((position | done | n) & 3) == 0; // in the block as in the ring
#pragma unroll 1
        for (int i = threadIdx.x; i < FOURS_LANES / 4 * p->n_outputs * CHAIN_MOST_FRAMES; i += chain_threads()) {
            const fours_place own = fours_place_of(i); // whole warps
            float y = fours ? convolution_head_kept(job, position, own, 0) : 0.0f;
            if (own.f >= n || !own.first) continue;
            if (!fours) y = convolution_head(job, own.c, position + own.f);
            const float x = io->in[0][(p->n_inputs == 1 ? 0 : own.c) * io->stride + done + own.f];
            y += convolution_tail(job, own.c, position + own.f);
            io->out[own.c * io->stride + done + own.f] = convolution_mixed(k, position, own.f, x, y);
        }
    }
}

static __device__ void convolution_after(const wt_node_io *io, const convolution_plan *, const convolution_coeffs *,
                                         float *state)
{
    convolution_ticks(io->tables, io->scratch, state, io->position + io->n_frames);
}
