// Stretch by overlapped pieces (dsp/stretch/stretch_wsola.c): where each is taken, then all added up.
//
// wsola_walk: a block walks along the pieces of one line. A search compares n_fft samples at 2 reach + 1 places: a
// thread has one of a product's 16 partial sums for WSOLA_LAGS places that lie 16 samples apart, so each step reads two
// numbers for WSOLA_LAGS products, and its window of the input stays in registers. Products of floats are exact in
// double and the sums run in the CPU's order: places are the CPU's to the sample.
//
// What a search reads lies in shared memory; of pieces that this does not hold, in memory: wsola_walk_long.
//
// wsola_add: a thread an output sample.
#include "wsola_kernel.h"

enum {
    WSOLA_THREADS = WT_WSOLA_THREADS,
    WSOLA_WARPS = WSOLA_THREADS / 32,
    WSOLA_LAGS = WT_WSOLA_LAGS,
    WSOLA_ROW = WT_WSOLA_ROW
};

extern __shared__ double wsola_shared[];

struct wsola_work {
    double *wanted; // [n_fft] how the piece before goes on
    double *near;   // [room] where to look for the like, zeros behind it
    double *runs;   // [n_fft + 2 reach] sums of squares since the run began
    double *before; // [runs] and up to there
    double *like;   // [2 reach + 1]
    double *parts;  // [warps][WSOLA_LAGS][WSOLA_ROW]
    long long *best;
    int n_near, room, groups;
};

static __device__ __forceinline__ wsola_work share(const wt_wsola_args &a, double *begin)
{
    wsola_work w;
    w.n_near = a.n_fft + 2 * a.reach;
    w.groups = (2 * a.reach + 16 * WSOLA_LAGS) / (16 * WSOLA_LAGS);
    w.room = wt__wsola_room(a.n_fft, a.reach);
    w.parts = wsola_shared;
    w.best = (long long *)(w.parts + WSOLA_WARPS * WSOLA_LAGS * WSOLA_ROW);
    w.wanted = begin;
    w.near = w.wanted + a.n_fft;
    w.runs = w.near + w.room;
    w.before = w.runs + w.n_near;
    w.like = w.before + w.n_near / WT_WSOLA_RUN + 1;
    return w;
}

static __device__ __forceinline__ double sample_at(const wt_wsola_args &a, const float *pcm, long long at)
{
    return at >= 0 && at < a.n_samples ? (double)__ldg(pcm + at) : 0;
}

// Both signals of a search, and the running sums of squares of the second.
static __device__ void load(const wt_wsola_args &a, const wsola_work &w, const float *pcm, long long wanted,
                            long long near)
{
    for (int i = threadIdx.x; i < a.n_fft; i += WSOLA_THREADS) w.wanted[i] = sample_at(a, pcm, wanted + i);
    for (int i = threadIdx.x; i < w.room; i += WSOLA_THREADS)
        w.near[i] = i < w.n_near ? sample_at(a, pcm, near + i) : 0;
    __syncthreads();
    const int n_runs = (w.n_near + WT_WSOLA_RUN - 1) / WT_WSOLA_RUN;
    for (int r = threadIdx.x; r < n_runs; r += WSOLA_THREADS) {
        double sum = 0;
        for (int i = WT_WSOLA_RUN * r; i < WT_WSOLA_RUN * (r + 1) && i < w.n_near; i++)
            w.runs[i] = sum += w.near[i] * w.near[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int r = 0; r < n_runs; r++) {
            w.before[r] = sum;
            if (r + 1 < n_runs) sum += w.runs[WT_WSOLA_RUN * (r + 1) - 1];
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ double squares_to(const wsola_work &w, int n)
{
    return n ? w.before[(n - 1) / WT_WSOLA_RUN] + w.runs[n - 1] : 0;
}

// Places i = offset + 16 (group WSOLA_LAGS + r), r < WSOLA_LAGS: this lane's partial sums.
static __device__ __forceinline__ void partial_sums(const wt_wsola_args &a, const wsola_work &w, int lane, int first,
                                                    double *sums)
{
    const double *x = w.wanted + lane, *y = w.near + first + lane;
    const int steps = a.n_fft / 16;
    double window[WSOLA_LAGS];
#pragma unroll
    for (int r = 0; r < WSOLA_LAGS; r++) sums[r] = 0, window[r] = y[16 * r];
    for (int begin = 0; begin < steps; begin += WSOLA_LAGS) {
#pragma unroll
        for (int u = 0; u < WSOLA_LAGS; u++) {
            if (begin + u >= steps) break;
            const double by = x[16 * (begin + u)];
#pragma unroll
            for (int r = 0; r < WSOLA_LAGS; r++) sums[r] += by * window[(u + r) % WSOLA_LAGS];
            window[u] = y[16 * (begin + u + WSOLA_LAGS)];
        }
    }
}

// The likeness at place i of a search, 0 = none, from its 16 partial sums.
static __device__ __forceinline__ double likeness(const wt_wsola_args &a, const wsola_work &w, int i,
                                                  const double *parts, bool allowed)
{
    double sum = 0;
    for (int m = a.n_fft / 16 * 16; m < a.n_fft; m++) sum += w.wanted[m] * w.near[i + m];
    for (int j = 0; j < 16; j++) sum += parts[j];
    const double energy = squares_to(w, i + a.n_fft) - squares_to(w, i);
    return allowed && energy > 1e-12 * squares_to(w, w.n_near) && sum > 0 ? sum / sqrt(energy) : 0;
}

static __device__ void compare(const wt_wsola_args &a, const wsola_work &w, const wt_stretch_place &p)
{
    const int lane = threadIdx.x % 32, items = w.groups * 256;
    double *parts = w.parts + threadIdx.x / 32 * WSOLA_LAGS * WSOLA_ROW;
    for (int item = threadIdx.x; item < items; item += WSOLA_THREADS) { // whole warps
        const int first = item / 256 * 16 * WSOLA_LAGS + item % 256 / 16;
        double sums[WSOLA_LAGS];
        partial_sums(a, w, lane % 16, first, sums);
#pragma unroll
        for (int r = 0; r < WSOLA_LAGS; r++) parts[r * WSOLA_ROW + lane] = sums[r];
        __syncwarp();
        const int half = lane / 16, r = lane % 16, i = first + 16 * r; // a lane's place of its own 16 lanes
        if (r < WSOLA_LAGS && i <= 2 * a.reach) {
            const long long at = p.centre - a.reach + i;
            w.like[i] = likeness(a, w, i, parts + r * WSOLA_ROW + 16 * half, at >= p.first && at <= p.last);
        }
        __syncwarp();
    }
    __syncthreads();
}

// Of the places that are equally like, the one nearest to the centre; of two such, the first. One warp.
static __device__ void choose(const wt_wsola_args &a, const wsola_work &w, long long centre)
{
    double most = 0;
    for (int i = threadIdx.x; i <= 2 * a.reach; i += 32) most = w.like[i] > most ? w.like[i] : most;
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, most, d);
        if (other > most) most = other;
    }
    int best = 4 * a.reach + 4;
    for (int i = threadIdx.x; i <= 2 * a.reach && most > 0; i += 32) {
        const int off = i - a.reach, key = off > 0 ? 2 * off + 1 : -2 * off;
        if (w.like[i] >= most * (1 - WT_WSOLA_TIE) && key < best) best = key;
    }
    for (int d = 16; d; d /= 2) {
        const int other = __shfl_xor_sync(0xffffffff, best, d);
        if (other < best) best = other;
    }
    if (most > 0) centre += best % 2 ? best / 2 : -(best / 2);
    if (threadIdx.x == 0) *w.best = centre;
}

static __device__ __forceinline__ void walk(const wt_wsola_args &a, const wsola_work &w)
{
    const float *pcm = a.pcm + blockIdx.x * a.n_samples;
    const wt_stretch_place *places = a.places + blockIdx.x * a.n_pieces;
    long long before = 0;
    for (long long t = 0; t < a.n_pieces; t++) {
        const wt_stretch_place p = places[t];
        long long from = p.centre;
        if (t && p.held < 0) { // the first has nothing to follow, and an attack none but its own
            load(a, w, pcm, before + a.hop - a.n_fft / 2, p.centre - a.reach - a.n_fft / 2);
            compare(a, w, p);
            if (threadIdx.x < 32) choose(a, w, p.centre);
            __syncthreads();
            from = *w.best;
        }
        if (threadIdx.x == 0) a.chosen[blockIdx.x * a.n_pieces + t] = from;
        before = from;
    }
}

extern "C" __global__ void __launch_bounds__(WSOLA_THREADS, 2) wsola_walk(wt_wsola_args a)
{
    walk(a, share(a, wsola_shared + wt__wsola_parts()));
}

extern "C" __global__ void __launch_bounds__(WSOLA_THREADS, 2) wsola_walk_long(wt_wsola_args a)
{
    walk(a, share(a, a.work + (long long)blockIdx.x * wt__wsola_doubles(a.n_fft, a.reach)));
}

extern "C" __global__ void __launch_bounds__(256) wsola_add(wt_wsola_args a)
{
    const long long blocks = (a.n_out + 255) / 256, line = blockIdx.x / blocks;
    const long long at = blockIdx.x % blocks * 256 + threadIdx.x, reach = at + a.n_fft / 2; // of pieces' beginnings
    if (at >= a.n_out) return;
    const float *pcm = a.pcm + line * a.n_samples;
    const long long *chosen = a.chosen + line * a.n_pieces;
    long long t = reach < a.n_fft ? 0 : (reach - a.n_fft) / a.hop + 1;
    float sum = 0, weight = 0;
    for (; t < a.n_pieces && t * a.hop <= reach; t++) {
        const int i = (int)(reach - t * a.hop);
        const float w = __ldg(a.window + i);
        sum += w * (float)sample_at(a, pcm, chosen[t] - a.n_fft / 2 + i);
        weight += w;
    }
    a.out[line * a.n_out + at] = weight > 1e-6f ? sum / weight : 0;
}
