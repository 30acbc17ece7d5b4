// Twice the rate by soxr's half-band filter: even outputs are the even taps' sum, odd ones the odd taps'. A thread has
// WT_ICQT_EACH neighbouring input samples, whose surroundings on both sides move through its registers: two reads of
// shared memory for 2 WT_ICQT_EACH outputs' next taps. Results are written side by side.
//
// icqt_ends, at last: a thread an output near the beginning or the end, of a few lines; it sums what each level gives.
// Judge: the CPU's, 2e-6 of the peak.
#include "icqt_kernel.h"

enum {
    EACH = WT_ICQT_EACH,
    REACH = WT_ICQT_REACH,
    TAIL = WT_ICQT_TAIL,
    TILE = WT_ICQT_THREADS * EACH, // input samples of a block
    HELD = TILE + 2 * REACH + 1
};

extern "C" __global__ void __launch_bounds__(WT_ICQT_THREADS) icqt_double(wt_icqt_double_args a)
{
    __shared__ float taps[2 * REACH + 1];
    __shared__ float held[2 * TILE]; // the input, then the output
    const long long n_in = a.n + 2 * TAIL, n_out = 2 * a.n + 2 * TAIL, line = blockIdx.y;
    const long long begin = (long long)blockIdx.x * TILE - TAIL / 2; // the sample that output 0 of the tile is at
    const float *in = a.in + line * n_in;
    for (int i = threadIdx.x; i <= 2 * REACH; i += WT_ICQT_THREADS) taps[i] = __ldg(a.taps + i);
    for (int i = threadIdx.x; i < HELD; i += WT_ICQT_THREADS) {
        const long long at = begin - REACH + i + TAIL;
        held[i] = at >= 0 && at < n_in ? __ldg(in + at) : 0;
    }
    __syncthreads();
    const float *x = held + REACH + threadIdx.x * EACH;
    float left[EACH], right[EACH], even[EACH], odd[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) left[i] = right[i] = x[i], even[i] = taps[0] * x[i], odd[i] = 0;
    for (int at = 0; at < REACH; at += EACH) {
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int j = at + u + 1; // left holds x[i - j + 1] at (i - j + 1) mod EACH, right x[i + j - 1] likewise
            right[(u + EACH) % EACH] = x[EACH - 1 + j];
            const float one = taps[2 * j - 1], two = taps[2 * j];
#pragma unroll
            for (int i = 0; i < EACH; i++) odd[i] += one * (left[(i - u + EACH) % EACH] + right[(i + u + 1) % EACH]);
            left[(EACH - 1 - u) % EACH] = x[-j];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                even[i] += two * (left[(i - u - 1 + EACH) % EACH] + right[(i + u + 1) % EACH]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        held[2 * (threadIdx.x * EACH + i)] = even[i];
        held[2 * (threadIdx.x * EACH + i) + 1] = odd[i];
    }
    __syncthreads();
    const long long first = 2LL * blockIdx.x * TILE;
    for (int i = threadIdx.x; i < 2 * TILE && first + i < n_out; i += WT_ICQT_THREADS)
        a.out[line * n_out + first + i] = held[i];
}

enum { LINES = WT_ICQT_END_LINES, FRAMES = WT_ICQT_END_FRAMES, KEPT = WT_ICQT_END_KEPT, TAPS = WT_ICQT_END_TAPS };

// Adds taps `from` .. `to` - 1, `width` apart, times the samples at x, of LINES lines, as far as they are there.
static __device__ __forceinline__ void sum_taps(const float *taps, int width, int from, int to, const float *x,
                                                const long long (&line)[LINES], float (&sum)[LINES])
{
    for (int t = from; t < to; t++) {
        const float tap = __ldg(taps + (long long)t * width);
#pragma unroll
        for (int l = 0; l < LINES; l++) sum[l] += tap * __ldg(x + line[l] * 2 * KEPT + t - from);
    }
}

extern "C" __global__ void __launch_bounds__(WT_ICQT_THREADS) icqt_ends(wt_icqt_ends_args a)
{
    const long long reach = (long long)FRAMES << (a.n_levels - 1);
    long long n = (long long)blockIdx.x * WT_ICQT_THREADS + threadIdx.x, line[LINES];
    if (a.n > 2 * reach && n >= reach) n += a.n - 2 * reach; // the middle has nothing to add
    if (n >= a.n || n >= a.length) return;
    float sum[LINES] = {};
#pragma unroll
    for (int l = 0; l < LINES; l++) line[l] = min((int)blockIdx.y * LINES + l, a.n_lines - 1);
    for (int level = 2; level < a.n_levels; level++) {
        const float *kept = a.kept + level * (long long)a.n_lines * 2 * KEPT;
        const int width = wt__icqt_end_stride(level), phase = (int)(n & ((1 << level) - 1));
        const long long frame = n >> level, behind = frame - ((a.n >> level) - FRAMES); // of the last ones' first
        if (frame < FRAMES) {
            const int from = FRAMES - (int)frame;
            sum_taps(a.rows[level] + phase, width, from, TAPS, kept, line, sum);
            if (n < a.n_start[level]) sum_taps(a.start[level] + n, a.n_start[level], from, TAPS, kept, line, sum);
        } else if (behind >= 0) {
            sum_taps(a.rows[level] + phase, width, 0, KEPT - (int)behind, kept + KEPT + behind, line, sum);
        }
    }
#pragma unroll
    for (int l = 0; l < LINES; l++)
        if ((int)blockIdx.y * LINES + l < a.n_lines) a.out[line[l] * a.length + n] += sum[l];
}
