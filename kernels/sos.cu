// Second-order sections over whole rows, a block a row, from silence. 2048 frames at a time, eight a thread, which stay
// in registers from one section to the next. In each section a thread runs its frames from empty states; a scan over
// threads (states are linear in the states before: powers of one 2 * 2 matrix) tells what the states really were, and
// their ringing is added. All in double.
// Bound by double arithmetic: some 40 operations a frame and section. Judge: the CPU (dsp/sos.c), 2e-6 of the peak.
#include "sos_kernel.h"

#define ALL   0xffffffffu
#define WARPS (WT_SOS_THREADS / 32)

struct sos_state {
    double s1, s2;
};

static __device__ __forceinline__ sos_state times(const double *m, sos_state s)
{
    return {m[0] * s.s1 + m[1] * s.s2, m[2] * s.s1 + m[3] * s.s2};
}

static __device__ __forceinline__ sos_state plus(sos_state a, sos_state b) { return {a.s1 + b.s1, a.s2 + b.s2}; }

static __device__ __forceinline__ sos_state shifted_up(sos_state s, int step)
{
    return {__shfl_up_sync(ALL, s.s1, step), __shfl_up_sync(ALL, s.s2, step)};
}

// The thread's frames through the section from empty states; returns the states behind them.
static __device__ __forceinline__ sos_state run_alone(const wt_sos_section &f, double *x)
{
    sos_state s = {0, 0};
#pragma unroll
    for (int k = 0; k < WT_SOS_RUN; k++) {
        const double in = x[k], y = f.b0 * in + s.s1;
        s.s1 = f.b1 * in - f.a1 * y + s.s2;
        s.s2 = f.b2 * in - f.a2 * y;
        x[k] = y;
    }
    return s;
}

// What the states before the thread's frames add to them.
static __device__ __forceinline__ void ring(const wt_sos_section &f, sos_state s, double *x)
{
#pragma unroll
    for (int k = 0; k < WT_SOS_RUN; k++) {
        x[k] += s.s1;
        s = {s.s2 - f.a1 * s.s1, -f.a2 * s.s1};
    }
}

// The states before this thread's frames, from those that each thread's own frames leave; `carry` are those before the
// block's, and then those behind them. Ends with the block in step.
static __device__ sos_state states_before(const wt_sos_section &f, sos_state own, sos_state *warps, sos_state *carry)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 5; i++) {
        const sos_state before = shifted_up(own, 1 << i);
        if (lane >= 1 << i) own = plus(own, times(f.power[i], before));
    }
    if (lane == 31) warps[warp] = own;
    sos_state before = shifted_up(own, 1);
    if (lane == 0) before = {0, 0};
    __syncthreads();
    sos_state start = *carry; // of the warp
    for (int w = 0; w < warp; w++) start = plus(times(f.power[5], start), warps[w]);
    const sos_state end = plus(times(f.power[5], start), warps[warp]);
#pragma unroll
    for (int i = 0; i < 5; i++)
        if (lane >> i & 1) start = times(f.power[i], start);
    __syncthreads();
    if (threadIdx.x == WT_SOS_THREADS - 1) *carry = end;
    __syncthreads();
    return plus(before, start);
}

extern "C" __global__ void __launch_bounds__(WT_SOS_THREADS) sos_rows(wt_sos_args a)
{
    extern __shared__ double sos_shared[]; // carries [n_sections], then warps [WARPS]
    sos_state *carries = (sos_state *)sos_shared, *warps = carries + a.n_sections;
    const float *in = a.in + blockIdx.x * a.n_frames;
    float *out = a.out + blockIdx.x * a.n_frames;
    for (int k = threadIdx.x; k < a.n_sections; k += WT_SOS_THREADS) carries[k] = {0, 0};
    __syncthreads();
    for (long long begin = 0; begin < a.n_frames; begin += WT_SOS_RUN * WT_SOS_THREADS) {
        const long long first = begin + threadIdx.x * WT_SOS_RUN;
        double x[WT_SOS_RUN];
#pragma unroll
        for (int k = 0; k < WT_SOS_RUN; k++) x[k] = first + k < a.n_frames ? in[first + k] : 0;
        for (int k = 0; k < a.n_sections; k++) {
            const wt_sos_section &f = a.sections[k];
            const sos_state own = run_alone(f, x);
            ring(f, states_before(f, own, warps, carries + k), x);
        }
#pragma unroll
        for (int k = 0; k < WT_SOS_RUN; k++)
            if (first + k < a.n_frames) out[first + k] = (float)x[k];
    }
}
