// Twice the rate by soxr's half-band filter: even outputs are the even taps' sum, odd ones the odd taps'. A thread has
// WT_ICQT_EACH neighbouring input samples, whose surroundings on both sides move through its registers: two reads of
// shared memory for 2 WT_ICQT_EACH outputs' next taps. Results are written side by side.
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
