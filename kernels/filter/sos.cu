// Second-order sections over rows, a block a row. 2048 frames at a time, eight a thread, which stay in registers from
// one section to the next. In each section a thread runs its frames from empty states; a scan over threads (states are
// linear in the states before: powers of one 2 * 2 matrix) tells what the states really were, and their ringing is
// added. All in double.
//
//   sos_rows       whole rows, from silence
//   sos_stream     rows that go on: a warp's frames, a piece, begin at multiples of 256 since reset, whatever the
//                  blocks are; states are kept from there, with the frames behind, which run again with the next
//                  block. So each frame's arithmetic is the same in every cut.
//   sos_settle     a thread a section of a row: states in which a level has lasted for ever
//   sos_filtfilt   there and back, from steady states, by way of a row in double
//
// Bound by double arithmetic: some 40 operations a frame and section. Judge: the CPU (dsp/filter/sos.c), 2e-6 of the
// peak.
#include "sos_kernel.h"

#define ALL   0xffffffffu
#define WARPS (WT_SOS_THREADS / 32)

static_assert(WT_SOS_PIECE == 32 * WT_SOS_RUN && WT_SOS_PIECE <= WT_SOS_THREADS, "a piece is a warp's frames");

struct sos_state {
    double s1, s2;
};

static __device__ __forceinline__ sos_state times(const double *m, sos_state s)
{
    return {fma(m[0], s.s1, m[1] * s.s2), fma(m[2], s.s1, m[3] * s.s2)}; // one way, wherever it stands
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
// block's, and then those behind the last of its `whole` pieces. What is not finite HEALS behind each piece. Ends with
// the block in step.
template <bool HEALS>
static __device__ sos_state states_before(const wt_sos_section &f, sos_state own, int whole, sos_state *warps,
                                          sos_state *carry)
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
    const auto behind = [&](sos_state s, int w) {
        s = plus(times(f.power[5], s), warps[w]);
        return HEALS && !(isfinite(s.s1) && isfinite(s.s2)) ? sos_state{0, 0} : s;
    };
    sos_state start = *carry; // of the warp
    for (int w = 0; w < warp; w++) start = behind(start, w);
    const sos_state end = behind(start, warp);
#pragma unroll
    for (int i = 0; i < 5; i++)
        if (lane >> i & 1) start = times(f.power[i], start);
    __syncthreads();
    if (threadIdx.x + 1 == 32 * whole) *carry = end;
    __syncthreads();
    return plus(before, start);
}

// Frames through all sections, whose states before the first lie in `carries`, and then those behind the last whole
// piece.
template <bool HEALS, class Read, class Write>
static __device__ __forceinline__ void run_frames(const wt_sos_args &a, long long n_frames, sos_state *carries,
                                                  Read read, Write write)
{
    sos_state *warps = carries + a.n_sections;
    for (long long begin = 0; begin < n_frames; begin += WT_SOS_RUN * WT_SOS_THREADS) {
        const long long first = begin + threadIdx.x * WT_SOS_RUN, left = (n_frames - begin) / WT_SOS_PIECE;
        const int whole = left < WARPS ? (int)left : WARPS;
        double x[WT_SOS_RUN];
#pragma unroll
        for (int k = 0; k < WT_SOS_RUN; k++) x[k] = first + k < n_frames ? read(first + k) : 0;
        for (int k = 0; k < a.n_sections; k++) {
            const wt_sos_section &f = a.sections[k];
            const sos_state own = run_alone(f, x);
            ring(f, states_before<HEALS>(f, own, whole, warps, carries + k), x);
        }
#pragma unroll
        for (int k = 0; k < WT_SOS_RUN; k++)
            if (first + k < n_frames) write(first + k, x[k]);
    }
}

extern __shared__ double sos_shared[]; // carries [n_sections], then warps [WARPS]

extern "C" __global__ void __launch_bounds__(WT_SOS_THREADS) sos_rows(wt_sos_args a)
{
    sos_state *carries = (sos_state *)sos_shared;
    const float *in = a.in + blockIdx.x * a.n_frames;
    float *out = a.out + blockIdx.x * a.n_frames;
    for (int k = threadIdx.x; k < a.n_sections; k += WT_SOS_THREADS) carries[k] = {0, 0};
    __syncthreads();
    run_frames<true>(
        a, a.n_frames, carries, [&](long long t) { return (double)in[t]; },
        [&](long long t, double x) { out[t] = (float)x; });
}

extern "C" __global__ void __launch_bounds__(WT_SOS_THREADS) sos_stream(wt_sos_stream_args a)
{
    sos_state *carries = (sos_state *)sos_shared;
    sos_state *kept = (sos_state *)a.states + (long long)blockIdx.x * a.rows.n_sections;
    const long long n = a.at + a.rows.n_frames, rest = n / WT_SOS_PIECE * WT_SOS_PIECE + threadIdx.x;
    const float *in = a.rows.in + blockIdx.x * a.rows.n_frames;
    float *out = a.rows.out + blockIdx.x * a.rows.n_frames, *held = a.held + (long long)blockIdx.x * WT_SOS_PIECE;
    const auto frame = [&](long long t) { return t < a.at ? held[t] : in[t - a.at]; };
    for (int k = threadIdx.x; k < a.rows.n_sections; k += WT_SOS_THREADS) carries[k] = kept[k];
    const float next = rest < n ? frame(rest) : 0; // before anything is written: out may be in
    __syncthreads();
    run_frames<true>(
        a.rows, n, carries, [&](long long t) { return (double)frame(t); },
        [&](long long t, double x) {
            if (t >= a.at) out[t - a.at] = (float)x;
        });
    if (rest < n) held[threadIdx.x] = next; // all have read it before the sections' barriers
    for (int k = threadIdx.x; k < a.rows.n_sections; k += WT_SOS_THREADS) kept[k] = carries[k];
}

extern "C" __global__ void sos_settle(wt_sos_settle_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n_rows * a.n_sections) return;
    const double *zi = a.zi + 2 * (i % a.n_sections), level = a.level[i / a.n_sections];
    ((sos_state *)a.states)[i] = {zi[0] * level, zi[1] * level};
}

// The states in which `first` has lasted for ever. All threads together.
static __device__ __forceinline__ void settle(const wt_sos_filtfilt_args &a, sos_state *carries, double first)
{
    for (int k = threadIdx.x; k < a.rows.n_sections; k += WT_SOS_THREADS)
        carries[k] = {a.zi[2 * k] * first, a.zi[2 * k + 1] * first};
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(WT_SOS_THREADS) sos_filtfilt(wt_sos_filtfilt_args a)
{
    sos_state *carries = (sos_state *)sos_shared;
    const long long n = a.rows.n_frames, all = n + 2 * (long long)a.pad;
    const float *in = a.rows.in + blockIdx.x * n;
    float *out = a.rows.out + blockIdx.x * n;
    double *work = a.work + blockIdx.x * all;
    const auto turned = [&](long long t) {
        const long long at = t - a.pad;
        return at < 0 ? 2.0 * in[0] - in[-at] : at >= n ? 2.0 * in[n - 1] - in[2 * (n - 1) - at] : (double)in[at];
    };
    settle(a, carries, turned(0));
    run_frames<false>(a.rows, all, carries, turned, [&](long long t, double x) { work[t] = x; });
    __syncthreads(); // the row in double is whole
    settle(a, carries, work[all - 1]);
    run_frames<false>(
        a.rows, all, carries, [&](long long t) { return work[all - 1 - t]; },
        [&](long long t, double x) {
            const long long at = all - 1 - t - a.pad;
            if (at >= 0 && at < n) out[at] = (float)x;
        });
}
