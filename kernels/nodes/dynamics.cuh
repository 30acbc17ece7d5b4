// Dynamics: one warp a group; scans over the lanes join the frames.
#pragma once
#include "dynamics_kernel.h"

// a^1, a^2, a^4, a^8, a^16
static __device__ __forceinline__ void decay_powers(float a, float *power)
{
    power[0] = a;
    for (int d = 1; d < 5; d++) power[d] = power[d - 1] * power[d - 1];
}

// Recursions over up to 32 * F frames by one warp, F neighbouring frames a lane: each lane joins its own, a scan joins
// the lanes, and what stands before a lane's first frame comes back; from there it runs on by itself.

// y[n] = max(x, a y[n-1] + (1 - a) x). Frame n is y -> max(c, a y + b), and so is a run of frames, with a^length; lane
// 0 has `before` put into b.
template <int F> static __device__ __forceinline__ float before_branch(const float *x, float a, float before)
{
    const int lane = threadIdx.x & 31;
    float c = x[0], b = (1.0f - a) * x[0] + (lane == 0 ? a * before : 0.0f), whole = a, power[5];
    for (int i = 1; i < F; i++) {
        c = wt_larger(x[i], a * c + (1.0f - a) * x[i]);
        b = a * b + (1.0f - a) * x[i];
        whole *= a;
    }
    decay_powers(whole, power);
    for (int d = 0; d < 5; d++) {
        const float earlier_c = __shfl_up_sync(~0u, c, 1 << d), joined = wt_larger(c, power[d] * earlier_c + b);
        c = lane < 1 << d ? c : joined;
        b = power[d] * shift_up(b, 1 << d, 0.0f) + b;
    }
    float y = __shfl_up_sync(~0u, wt_larger(c, b), 1);
    return lane == 0 ? before : y;
}

// y[n] = a y[n-1] + (1 - a) x
template <int F> static __device__ __forceinline__ float before_pole(const float *x, float a, float before)
{
    const int lane = threadIdx.x & 31;
    float y = (1.0f - a) * x[0] + (lane == 0 ? a * before : 0.0f), whole = a, power[5];
    for (int i = 1; i < F; i++) {
        y = a * y + (1.0f - a) * x[i];
        whole *= a;
    }
    decay_powers(whole, power);
    y = __shfl_up_sync(~0u, scan_decay(y, power), 1);
    return lane == 0 ? before : y;
}

// y[n] = a y[n-1] + (1 - a) x over the lanes from `before`
static __device__ __forceinline__ float scan_pole(float x, float a, float before)
{
    float power[5];
    decay_powers(a, power);
    return scan_decay((1.0f - a) * x + ((threadIdx.x & 31) == 0 ? a * before : 0.0f), power);
}

// 1 where the gate is open: the latest crossing at or before this lane decides, and an open frame holds for a while.
static __device__ __forceinline__ float gate_scan(float level, bool active, long long frame, const dynamics_coeffs *k,
                                                  dynamics_group *g)
{
    const int lane = threadIdx.x & 31;
    const unsigned upto = 0xffffffffu >> (31 - lane);
    unsigned up = __ballot_sync(~0u, active && level >= k->open) & upto;
    unsigned down = __ballot_sync(~0u, active && level < k->close) & upto;
    g->open = (up | down) ? up > down : g->open; // the later crossing has the higher bit
    unsigned was_open = __ballot_sync(~0u, active && g->open) & upto;
    if (was_open) g->last_open = frame - lane + 32 - __clz(was_open);
    return g->last_open && frame + 1 - g->last_open <= k->hold_frames ? 1.0f : 0.0f;
}

// What the detector looks at, of F neighbouring frames from `first`; 0 from the block's end on.
template <int F, class Key>
static __device__ __forceinline__ void dynamics_levels(int n_frames, const dynamics_plan *p, int group,
                                                       int key_channels, Key key, int first, float *level)
{
    const int from = p->n_groups > 1 ? group : 0, to = p->n_groups > 1 ? group + 1 : key_channels;
#pragma unroll
    for (int i = 0; i < F; i++) level[i] = 0.0f;
#pragma unroll 2
    for (int c = from; c < to; c++)
#pragma unroll
        for (int i = 0; i < F; i++)
            if (first + i < n_frames) level[i] = wt_larger(fabsf(key(c, first + i)), level[i]);
}

// v of every frame of a group, 32 at a time, into `gains`; moves the detector's own state. Out of line: an io or a
// group whose address went there would live in memory for the peak detector too.
template <class Key>
static __device__ __noinline__ dynamics_group dynamics_detect(int n_frames, long long position, const dynamics_plan *p,
                                                              const dynamics_coeffs *k, dynamics_group moved, int group,
                                                              int key_channels, Key key, float *gains)
{
    dynamics_group *g = &moved;
    const int lane = threadIdx.x & 31;
    for (int first = 0; first < n_frames; first += 32) {
        const int n = first + lane, last = min(31, n_frames - 1 - first);
        const bool active = n < n_frames;
        float level;
        dynamics_levels<1>(n_frames, p, group, key_channels, key, n, &level);
        if (p->rms) level = scan_pole(level * level, k->rms, g->power);
        float v = p->gate ? gate_scan(level, active, position + n, k, g)
                          : dynamics_curve(k, dynamics_level_db(level, p->rms));
        if (active) gains[n] = v;
        if (p->rms) g->power = __shfl_sync(~0u, level, last);
        if (!p->gate) continue;
        g->open = __shfl_sync(~0u, g->open, last);
        g->last_open = __shfl_sync(~0u, g->last_open, last);
    }
    __syncwarp();
    return moved;
}

// Release and attack of a group in place, v to y, F neighbouring frames a lane; 0 from the block's end on.
template <int F>
static __device__ __forceinline__ void dynamics_smooth(int n_frames, const dynamics_coeffs *k, dynamics_group *g,
                                                       float (&v)[F])
{
    const int first = (threadIdx.x & 31) * F, last = (n_frames - 1) / F;
    float y1 = before_branch<F>(v, k->release, g->y1), end = 0.0f;
#pragma unroll
    for (int i = 0; i < F; i++) {
        v[i] = y1 = wt_larger(v[i], k->release * y1 + (1.0f - k->release) * v[i]);
        if (first + i < n_frames) end = y1;
    }
    // A mean of what was never above v_most: what sums in this order round up to would be kept by a slow release.
    g->y1 = wt_min(__shfl_sync(~0u, end, last), k->v_most);
    float y = before_pole<F>(v, k->attack, g->y);
#pragma unroll
    for (int i = 0; i < F; i++) {
        v[i] = y = k->attack * y + (1.0f - k->attack) * v[i];
        if (first + i < n_frames) end = y;
    }
    g->y = __shfl_sync(~0u, end, last);
}

template <int F>
static __device__ void dynamics_smooth_line(int n_frames, const dynamics_coeffs *k, dynamics_group *g, float *line)
{
    const int first = (threadIdx.x & 31) * F;
    float v[F];
#pragma unroll
    for (int i = 0; i < F; i++) v[i] = first + i < n_frames ? line[first + i] : 0.0f;
    dynamics_smooth<F>(n_frames, k, g, v);
#pragma unroll
    for (int i = 0; i < F; i++)
        if (first + i < n_frames) line[first + i] = v[i];
}

// y of one block, [n_groups][WT_CHAIN_BLOCK]; `key(c, n)` is the detector's signal. All threads; no barrier at the end.
// What stands here once runs once: a thread finds one frame's v, and whoever needs a gain makes it from y.
template <class Key>
static __device__ void dynamics_find(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                     dynamics_state *s, int key_channels, Key key, float *lines)
{
    if (p->rms || p->gate)
        for_each_channel_warp(p->n_groups, [&](int group) {
            const dynamics_group g = dynamics_detect(io->n_frames, io->position, p, k, s->group[group], group,
                                                     key_channels, key, lines + group * WT_CHAIN_BLOCK);
            __syncwarp();
            if ((threadIdx.x & 31) == 0) s->group[group] = g;
        });
    else
        for_each_frame(p->n_groups, io->n_frames, [&](int group, int n) {
            float level;
            dynamics_levels<1>(io->n_frames, p, group, key_channels, key, n, &level);
            lines[group * WT_CHAIN_BLOCK + n] = dynamics_curve(k, dynamics_level_db(level, 0));
        });
    __syncthreads();
    for_each_channel_warp(p->n_groups, [&](int group) {
        dynamics_group g = s->group[group];
        float *line = lines + group * WT_CHAIN_BLOCK;
        if (CHAIN_MOST_FRAMES <= 64)
            dynamics_smooth_line<2>(io->n_frames, k, &g, line);
        else if (io->n_frames <= 32)
            dynamics_smooth_line<1>(io->n_frames, k, &g, line);
        else if (io->n_frames <= 64)
            dynamics_smooth_line<2>(io->n_frames, k, &g, line);
        else if (io->n_frames <= 128)
            dynamics_smooth_line<4>(io->n_frames, k, &g, line);
        else
            dynamics_smooth_line<8>(io->n_frames, k, &g, line);
        if ((threadIdx.x & 31) == 0) s->group[group].y1 = g.y1, s->group[group].y = g.y;
    });
}

// The gain of frame n of channel c.
static __device__ __forceinline__ float dynamics_gain_of(const wt_node_io *io, const dynamics_plan *p,
                                                         const dynamics_coeffs *k, const float *lines, int c, int n)
{
    const int phase = (int)(io->position & (WT_QUANTUM - 1));
    return dynamics_gain(k, lines[(p->n_groups > 1 ? c : 0) * WT_CHAIN_BLOCK + n], (float)(phase + n));
}

// The largest reduction now, after a barrier behind dynamics_find; by a warp that mostly has no samples.
static __device__ void dynamics_show(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                     const dynamics_state *s)
{
    if (threadIdx.x != chain_threads() - 32) return;
    float most = 0.0f;
#pragma unroll 1
    for (int g = 0; g < p->n_groups; g++) most = wt_max(-(k->base_db + k->span_db * s->group[g].y), most);
    io->readings[0] = most;
}

// Where blocks are short, the curve a static one and all channels linked: a warp a channel does everything for its own
// frames, two neighbours a lane, so that nobody waits for another but before the first sample is overwritten.
static __device__ __forceinline__ bool dynamics_is_short(const wt_node_io *io, const dynamics_plan *p)
{
    return CHAIN_MOST_FRAMES <= 64 && !p->rms && !p->gate && p->n_groups == 1 && !p->lookahead_frames &&
           io->out_channels <= chain_threads() / 32;
}

static __device__ void dynamics_process_short(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                              dynamics_state *s)
{
    const float *key = io->side ? io->side : io->in[0];
    const int c = threadIdx.x / 32, first = 2 * (threadIdx.x & 31), stride = io->stride, n_frames = io->n_frames;
    const float phase = (float)((int)(io->position & (WT_QUANTUM - 1)) + first);
    const bool mine = c < io->out_channels;
    dynamics_group g = s->group[0];
    float v[2], x[2];
    if (mine) {
        dynamics_levels<2>(
            n_frames, p, 0, io->side ? io->side_channels : io->channels[0],
            [=](int channel, int n) { return key[channel * stride + n]; }, first, v);
#pragma unroll
        for (int i = 0; i < 2; i++) x[i] = first + i < n_frames ? io->in[0][c * stride + first + i] : 0.0f;
    }
    __syncthreads();
    if (!mine) return;
    // no branches: two frames' sums are under way together
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float curve = dynamics_curve(k, dynamics_level_db(v[i], 0));
        v[i] = first + i < n_frames ? curve : 0.0f;
    }
    dynamics_smooth<2>(n_frames, k, &g, v);
#pragma unroll
    for (int i = 0; i < 2; i++) x[i] *= dynamics_gain(k, v[i], phase + (float)i);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (first + i < n_frames) io->out[c * stride + first + i] = x[i];
    if (threadIdx.x) return;
    s->group[0].y1 = g.y1, s->group[0].y = g.y;
    io->readings[0] = wt_max(-(k->base_db + k->span_db * g.y), 0.0f);
}

// Compressor, expander and gate: key from the side chain or the input, then the gain on the (delayed) input.
static __device__ void dynamics_process(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                        dynamics_state *s)
{
    const float *key = io->side ? io->side : io->in[0];
    const int mask = p->ring_frames - 1, stride = io->stride;
    if (dynamics_is_short(io, p)) {
        dynamics_process_short(io, p, k, s);
        return;
    }
    dynamics_find(
        io, p, k, s, io->side ? io->side_channels : io->channels[0], [=](int c, int n) { return key[c * stride + n]; },
        io->scratch);
    if (p->lookahead_frames)
        for_each_sample(io, [&](int c, int n) {
            s->ring[c * p->ring_frames + (int)((io->position + n) & mask)] = io->in[0][c * io->stride + n];
        });
    __syncthreads();
    dynamics_show(io, p, k, s);
    for_each_sample(io, [&](int c, int n) {
        float x = p->lookahead_frames
                      ? s->ring[c * p->ring_frames + (int)((io->position + n - p->lookahead_frames) & mask)]
                      : io->in[0][c * io->stride + n];
        io->out[c * io->stride + n] = x * dynamics_gain_of(io, p, k, io->scratch, c, n);
    });
}
