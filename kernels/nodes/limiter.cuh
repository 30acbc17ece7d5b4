// limiter: two threads a sample for peaks, one for the sliding maximum and output, one warp for release and sums. What
// a stereo block of 64 frames waits for is its barriers and its longest chain of shuffles, so both are kept few: where
// blocks are short it takes three steps, of which the first warp does the middle one alone. Its gains come of one sum
// each, and the running sums follow behind the answer.
#pragma once
#include "dynamics.cuh"
#include "limiter_kernel.h"
#include "true_peak.cuh"

// Running sums over the warp's lanes of F values each, in place, on top of `before`.
template <int F>
static __device__ __forceinline__ void limiter_running_sum(unsigned long long (&x)[F], unsigned long long before)
{
    for (int i = 1; i < F; i++) x[i] += x[i - 1];
    unsigned long long sum = x[F - 1];
    for (int d = 1; d < 32; d *= 2) sum += shift_up(sum, d, 0ull);
    before += sum - x[F - 1];
    for (int i = 0; i < F; i++) x[i] += before;
}

// The highest true peak around the frame at `now` in the ring, TRUE_PEAK_TAPS / 2 frames earlier.
static __device__ __noinline__ float limiter_top(const float *ring, int now, int mask)
{
    float x[TRUE_PEAK_TAPS + 1];
    true_peak_load<TRUE_PEAK_TAPS>([&](int k) { return ring[(now - k) & mask]; }, x);
    return true_peak_top_of(x);
}

// The same where blocks begin and end at fours: eight lanes share four frames, two have each, and both get its top.
static __device__ __forceinline__ float limiter_top_of_fours(const limiter_plan *tables, const fours_line &x, int n)
{
    const int four = n & ~3, u = 4 * (threadIdx.x & 7);
    const float4 samples = x.four(four - u);
    const bool behind = threadIdx.x & 1; // has the two tops at the frame's last two points
    const float near = x.at(n - TRUE_PEAK_TAPS / 2 + behind);
    float points[3];
#pragma unroll
    for (int row = 0; row < 3; row++) {
        float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        fours_add(&sums, samples, tables->points[row] + 4 + u);
        points[row] = fours_own<8>(sums);
    }
    // the last point of the frame before the four: of the others their neighbours have it
    const float4 taps = *(const float4 *)(tables->points[2] + u);
    float before = taps.w * samples.x + taps.z * samples.y + taps.y * samples.z + taps.x * samples.w;
#pragma unroll
    for (int d = 4; d; d /= 2) before += __shfl_xor_sync(~0u, before, d);
    const float neighbour = __shfl_up_sync(~0u, points[2], 2);
    before = threadIdx.x & 6 ? neighbour : before;
    const float a = behind ? points[0] : before, b = behind ? points[1] : near, c = behind ? points[2] : points[0],
                d = behind ? near : points[1];
    const float top = wt_larger(true_peak_top(a, b, c), true_peak_top(b, c, d));
    return wt_larger(__shfl_xor_sync(~0u, top, 1), top);
}

static __device__ __forceinline__ fours_line limiter_line(const wt_node_io *io, const limiter_plan *p,
                                                          const float *ring, int c)
{
    const int mask = p->ring_frames - 1;
    fours_line x = {io->in[0] + c * io->stride, ring, (int)(io->position & mask), mask, 0};
    return x;
}

// Keep the block, then find the need of every frame behind `before` floats of history in `line`.
static __device__ void limiter_find_need(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                         limiter_state *s, float *line)
{
    const int mask = p->ring_frames - 1, before = p->window - 1;
    float *audio = (float *)((char *)s + p->audio);
    for_each_sample(io, [&](int c, int n) {
        audio[c * p->ring_frames + (int)((io->position + n) & mask)] = io->in[0][c * io->stride + n];
    });
#pragma unroll 1 // from the last warp down: the first ones have samples
    for (int n = chain_threads() - 1 - threadIdx.x; n < before; n += chain_threads())
        line[n] = s->need[(int)((io->position - before + n) & mask)];
#pragma unroll 1
    for (int n = (threadIdx.x + chain_threads() / 2) % chain_threads(); n < io->n_frames; n += chain_threads())
        line[before + n] = 0.0f;
    __syncthreads();
    const bool fours = ((io->position | io->n_frames) & 3) == 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * io->out_channels * CHAIN_MOST_FRAMES; i += chain_threads()) { // whole warps
        const int c = (int)((unsigned)i / (2 * CHAIN_MOST_FRAMES)), n = i / 2 & (CHAIN_MOST_FRAMES - 1);
        const float *ring = audio + c * p->ring_frames;
        const float top = fours
                              ? limiter_top_of_fours((const limiter_plan *)io->tables, limiter_line(io, p, ring, c), n)
                          : i & 1 ? 0.0f
                                  : limiter_top(ring, (int)((io->position + n) & mask), mask);
        if (n < io->n_frames && !(i & 1)) // floats >= 0 order like their bits
            atomicMax((int *)&line[before + n], __float_as_int(limiter_need(k, top)));
    }
    __syncthreads();
#pragma unroll 1
    for (int n = threadIdx.x; n < io->n_frames; n += chain_threads())
        s->need[(int)((io->position + n) & mask)] = line[before + n];
}

// highest[i] is the highest of line[i .. i + window - 1]. A pass joins eight neighbours of the one before, the last
// as many as the window holds, and one that ends with it.
static __device__ void limiter_sliding_maximum(float *line, float *other, int window, int n_frames, float *highest)
{
    int reach = 1;
    for (; 8 * reach < window; reach *= 8) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n_frames + window - 8 * reach; i += chain_threads()) {
            float most = line[i];
#pragma unroll
            for (int k = 1; k < 8; k++) most = wt_max(line[i + k * reach], most);
            other[i] = most;
        }
        __syncthreads();
        float *swap = line;
        line = other, other = swap;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < n_frames; i += chain_threads()) {
        float most = line[i + window - reach];
#pragma unroll
        for (int k = 0; k < 7; k++) most = wt_max(line[i + min(k * reach, window - reach)], most);
        highest[i] = most;
    }
    __syncthreads();
}

// The first warp, two neighbouring frames a lane, up to 64 from frame `first` on: highest needs, 0 where there is no
// frame, to attenuations in their ring. `y` is the release so far; returns it at the end.
static __device__ __forceinline__ float limiter_let_go(const wt_node_io *io, const limiter_plan *p,
                                                       const limiter_coeffs *k, limiter_state *s, int first,
                                                       const float (&x)[2], float y)
{
    const int mask = p->ring_frames - 1, n = first + 2 * (int)threadIdx.x,
              last = min(31, (io->n_frames - 1 - first) / 2);
    unsigned int *ring = (unsigned int *)((char *)s + p->attenuation);
    float released = before_branch<2>(x, k->release, y);
#pragma unroll
    for (int i = 0; i < 2; i++) { // no branch, so that both frames' sums are under way together
        const float here = wt_larger(x[i], k->release * released + (1.0f - k->release) * x[i]);
        const unsigned int attenuation = limiter_attenuation(here);
        released = n + i < io->n_frames ? here : released;
        if (n + i < io->n_frames) ring[(int)((io->position + n + i) & mask)] = attenuation;
    }
    return __shfl_sync(~0u, released, last);
}

static __device__ void limiter_release(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                       limiter_state *s, const float *highest)
{
    float y = s->y;
#pragma unroll 1
    for (int first = 0; first < io->n_frames; first += 64) {
        const int n = first + 2 * (int)threadIdx.x;
        const float x[2] = {n < io->n_frames ? highest[n] : 0.0f, n + 1 < io->n_frames ? highest[n + 1] : 0.0f};
        y = limiter_let_go(io, p, k, s, first, x, y);
    }
    __syncwarp();
    if (threadIdx.x == 0) s->y = y;
}

// Where a block is no longer than the window, and that no longer than 65 frames: the highest need over the window is
// the highest of the block's up to the frame, or of those before the block that the window still holds.
static __device__ __forceinline__ bool limiter_is_short(const limiter_plan *p)
{
    return CHAIN_MOST_FRAMES <= 64 && p->window >= CHAIN_MOST_FRAMES && p->window <= 65;
}

// Up to 64 frames in fours: keep the block and find its needs, [channels][CHAIN_MOST_FRAMES]; then the first warp goes
// on to attenuations.
static __device__ void limiter_find_short(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                          limiter_state *s, float *needs)
{
    const int mask = p->ring_frames - 1, before = p->window - 1, lane = threadIdx.x & 31;
    float *audio = (float *)((char *)s + p->audio);
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * io->out_channels * CHAIN_MOST_FRAMES; i += chain_threads()) { // whole warps
        const int c = (int)((unsigned)i / (2 * CHAIN_MOST_FRAMES)), n = i / 2 & (CHAIN_MOST_FRAMES - 1);
        float *ring = audio + c * p->ring_frames;
        const float top = limiter_top_of_fours((const limiter_plan *)io->tables, limiter_line(io, p, ring, c), n);
        const float need = limiter_need(k, top);
        if (i & 1) continue;
        needs[i / 2] = n < io->n_frames ? need : 0.0f;
        if (n < io->n_frames) ring[(int)((io->position + n) & mask)] = io->in[0][c * io->stride + n];
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    float x[2] = {0.0f, 0.0f}, old[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int n = 2 * lane + i;
        if (n < CHAIN_MOST_FRAMES)
            for (int c = 0; c < io->out_channels; c++) x[i] = wt_larger(needs[c * CHAIN_MOST_FRAMES + n], x[i]);
        old[i] = n < before ? s->need[(int)((io->position - before + n) & mask)] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (2 * lane + i < io->n_frames) s->need[(int)((io->position + 2 * lane + i) & mask)] = x[i];
    float upto = wt_larger(x[0], x[1]), from = wt_larger(old[0], old[1]);
    for (int d = 1; d < 32; d *= 2) {
        const float later = __shfl_down_sync(~0u, from, d);
        upto = wt_larger(shift_up(upto, d, 0.0f), upto);
        from = wt_larger(lane + d < 32 ? later : 0.0f, from);
    }
    const float next = __shfl_down_sync(~0u, from, 1), rest = wt_larger(lane < 31 ? next : 0.0f, old[1]);
    x[0] = wt_larger(wt_larger(shift_up(upto, 1, 0.0f), x[0]), from);
    x[1] = wt_larger(upto, rest);
#pragma unroll
    for (int i = 0; i < 2; i++) x[i] = 2 * lane + i < io->n_frames ? x[i] : 0.0f;
    const float y = limiter_let_go(io, p, k, s, 0, x, s->y);
    __syncwarp();
    if (lane == 0) s->y = y;
}

// The first warp: n_frames from `position` on into the running sums, and their gains, unless 0.
static __device__ __noinline__ void limiter_sums(const limiter_plan *p, limiter_state *s, long long position,
                                                 int n_frames, float *gain)
{
    enum { F = 2 };
    const int mask = p->ring_frames - 1;
    const unsigned int *attenuation = (const unsigned int *)((char *)s + p->attenuation);
    unsigned long long *ring1 = (unsigned long long *)((char *)s + p->sums1),
                       *ring2 = (unsigned long long *)((char *)s + p->sums2), before1 = s->sum1, before2 = s->sum2;
#pragma unroll 1
    for (int first = 0; first < n_frames; first += 32 * F) {
        const int n = first + (int)threadIdx.x * F, place = (int)((position + n) & mask);
        unsigned long long sum[F], more[F];
        for (int i = 0; i < F; i++) sum[i] = n + i < n_frames ? attenuation[(place + i) & mask] : 0u;
        limiter_running_sum(sum, before1);
        for (int i = 0; i < F; i++)
            if (n + i < n_frames) ring1[(place + i) & mask] = sum[i];
        __syncwarp();
        for (int i = 0; i < F; i++) more[i] = n + i < n_frames ? sum[i] - ring1[(place + i - p->box1) & mask] : 0ull;
        limiter_running_sum(more, before2);
        for (int i = 0; i < F; i++)
            if (n + i < n_frames) ring2[(place + i) & mask] = more[i];
        __syncwarp();
        for (int i = 0; gain && i < F; i++)
            if (n + i < n_frames)
                gain[n + i] = 1.0f - (float)(long long)(more[i] - ring2[(place + i - p->box2) & mask]) * p->scale;
        before1 = __shfl_sync(~0u, sum[F - 1], 31);
        before2 = __shfl_sync(~0u, more[F - 1], 31);
    }
    __syncwarp();
    if (threadIdx.x == 0) s->sum1 = before1, s->sum2 = before2;
}

// The gain of this lane's frame from the trapezoid itself: sixteen lanes share four frames, four lanes get each. Whole
// warps; blocks in fours. `at` is the four's place in the ring.
static __device__ __forceinline__ float limiter_gain_at_once(const limiter_plan *p, const unsigned int *weights,
                                                             const limiter_state *s, int at)
{
    const unsigned int *attenuation = (const unsigned int *)((const char *)s + p->attenuation);
    const int mask = p->ring_frames - 1, lane = threadIdx.x & 15, last = (p->n_weights + 2) / 4;
    unsigned long long y[4] = {0, 0, 0, 0};
#pragma unroll 4
    for (int k = 0; k <= last / 16; k++) { // no lane ends before the others: behind the weights there are zeros
        const int u = lane + 16 * k;
        const uint4 x = *(const uint4 *)(attenuation + ((at - 4 * u) & mask));
        const uint4 lo = *(const uint4 *)(weights + 4 * u), hi = *(const uint4 *)(weights + 4 + 4 * u);
        const unsigned int w[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w}, a[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) y[i] += (unsigned long long)w[4 + i - j] * a[j];
    }
    const bool high = lane & 8, odd = lane & 4;
    unsigned long long b = high ? y[2] : y[0], c = high ? y[3] : y[1];
    b += __shfl_xor_sync(~0u, high ? y[0] : y[2], 8);
    c += __shfl_xor_sync(~0u, high ? y[1] : y[3], 8);
    b = (odd ? c : b) + __shfl_xor_sync(~0u, odd ? b : c, 4);
    b += __shfl_xor_sync(~0u, b, 2);
    b += __shfl_xor_sync(~0u, b, 1);
    return 1.0f - (float)(long long)b * p->scale;
}

static __device__ void limiter_show(const wt_node_io *io, float gain)
{
    io->readings[0] = -WT_DB_PER_OCTAVE * wt_log2(gain);
}

static __device__ __forceinline__ void limiter_put(const wt_node_io *io, const limiter_plan *p, const limiter_state *s,
                                                   int c, int n, float gain)
{
    const float *audio = (const float *)((const char *)s + p->audio);
    const int at = (int)((io->position + n - p->latency) & (p->ring_frames - 1));
    io->out[c * io->stride + n] = audio[c * p->ring_frames + at] * gain;
    if (n == io->n_frames - 1 && c == io->out_channels - 1) limiter_show(io, gain);
}

// Whether gains can be had at once, and what follows from attenuations then.
static __device__ __forceinline__ bool limiter_is_at_once(const wt_node_io *io, const limiter_plan *p)
{
    return CHAIN_MOST_FRAMES <= 64 && p->n_weights && io->out_channels <= 4 && ((io->position | io->n_frames) & 3) == 0;
}

static __device__ __forceinline__ void limiter_put_at_once(const wt_node_io *io, const limiter_plan *p,
                                                           limiter_state *s)
{
    const unsigned int *weights = ((const limiter_plan *)io->tables)->weights;
    if (threadIdx.x == 0) s->due = io->n_frames;
#pragma unroll 1
    for (int i = threadIdx.x; i < 4 * CHAIN_MOST_FRAMES; i += chain_threads()) { // a lane of a frame's four a channel
        const int n = i / 4, c = i & 3, four = (int)((io->position + (n & ~3)) & (p->ring_frames - 1));
        const float gain = limiter_gain_at_once(p, weights, s, four);
        if (n < io->n_frames && c < io->out_channels) limiter_put(io, p, s, c, n, gain);
    }
}

static __device__ __forceinline__ bool limiter_quick(const wt_node_io *io, const limiter_plan *p,
                                                     const limiter_coeffs *k, limiter_state *s)
{
    if (!limiter_is_at_once(io, p) || !limiter_is_short(p)) return false;
    limiter_find_short(io, p, k, s, io->scratch);
    __syncthreads();
    limiter_put_at_once(io, p, s);
    return true;
}

static __device__ void limiter_process(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                       limiter_state *s)
{
    float *gain = io->scratch, *line = gain + WT_CHAIN_BLOCK, *other = line + p->window + WT_CHAIN_BLOCK;
    const bool at_once = limiter_is_at_once(io, p);
    if (limiter_quick(io, p, k, s)) return;
    limiter_find_need(io, p, k, s, line);
    limiter_sliding_maximum(line, other, p->window, io->n_frames, gain);
    if (threadIdx.x < 32) limiter_release(io, p, k, s, gain);
    if (threadIdx.x < 32 && !at_once)
        limiter_sums((const limiter_plan *)io->tables, s, io->position, io->n_frames, gain);
    __syncthreads();
    if (at_once) {
        limiter_put_at_once(io, p, s);
        return;
    }
    if (threadIdx.x == 0) s->due = 0;
    for_each_sample(io, [&](int c, int n) { limiter_put(io, p, s, c, n, gain[n]); });
}

static __device__ void limiter_after(const wt_node_io *io, const limiter_plan *, const limiter_coeffs *,
                                     limiter_state *s)
{
    if (threadIdx.x >= 32 || !s->due) return; // in this order: the first warp sets it anew while others come here
    limiter_sums((const limiter_plan *)io->tables, s, io->position - s->due, s->due, 0);
    if (threadIdx.x == 0) s->due = 0;
}
