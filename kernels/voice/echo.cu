// Echo cancellation of many signals that goes on from part to part; transforms are wt_fft's. First of all blocks of a
// part, which do not depend on the filters:
//
//   echo_windows    a thread a value: the playback's windows
//   echo_hear       a thread block a window: their spectra into the ring, and is there any sound
//
// then block after block, all lines at once, with a transform between each two:
//
//   echo_imagine    a thread a bin of a line: the playback through the filter
//   echo_cancel     a thread block a line: what goes out, and the error
//   echo_step       a thread a bin of a line
//   echo_learn      teams of threads a part: its gradient, back in time, as many taps as a block has frames, there
//   again,
//                   and the weights move
//
// or, where a block of threads has no transform of that length (ECHO_POINTS 0), with transforms between them:
//
//   echo_gradient   a thread a bin of a part
//   echo_constrain  a thread a value: a part has as many taps as a block has frames
//   echo_move       a thread a bin of a part
//
// and at the end
//
//   echo_keep, echo_give   a thread a sample: for the part behind, and out
//
// What happens to a bin is the text of echo_kernel.h. Judge: the CPU (dsp/voice/echo.c).
#ifndef ECHO_POINTS
#    define ECHO_POINTS 480
#endif
#include "echo_batch_kernel.h"
#if ECHO_POINTS
#    include "fft.cuh"
#endif

#define ALL     0xffffffffu
#define THREADS 256 // of echo_hear and echo_cancel

static __device__ long long here() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void echo_reset(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels, bins = n_lines * a.n_bins;
    if (i < bins * a.n_parts) {
        ((float2 *)a.w)[i] = {0, 0};
        a.doubt[i] = ECHO_FIRST_DOUBT;
    }
    if (i < bins) a.near[i] = 0;
    if (i < (long long)a.n_ring * a.n_signals * a.n_bins) ((float2 *)a.x)[i] = {0, 0};
    if (i < n_lines * a.block) a.old.mic[i] = a.old.ready[i] = 0;
    if (i < 2ll * a.n_signals * a.block) a.old.playback[i] = 0;
    if (i < n_lines) a.worth[i] = {0, 0, 1};
}

// Sample i of a row of the part, those before it below 0, of which `held` knows n_held.
static __device__ float sample(const float *in, const float *held, int n_held, int i)
{
    return i < 0 ? held[n_held + i] : echo_tame(in[i]);
}

static __device__ float mic_sample(const echo_batch_args &a, long long line, int i)
{
    return sample(a.mic + line * a.pitch, a.old.mic + line * a.block, a.block, i);
}

static __device__ float played(const echo_batch_args &a, long long signal, int i)
{
    return sample(a.playback + signal * a.pitch, a.old.playback + 2 * signal * a.block, 2 * a.block, i);
}

extern "C" __global__ void echo_windows(echo_batch_args a)
{
    const long long i = here(), n = 2 * a.block;
    if (i >= a.n_blocks * a.n_signals * n) return;
    const int k = (int)(i % n), signal = (int)(i / n % a.n_signals), j = (int)(i / n / a.n_signals);
    a.windows[i] = played(a, signal, (j - 1) * a.block - a.at + k);
}

// The sum over the thread block, in all threads.
static __device__ float block_sum(float x)
{
    __shared__ float sums[THREADS / 32];
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(ALL, x, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < THREADS / 32; i++) x += sums[i];
    return x;
}

static __device__ float2 *ring(const echo_batch_args &a, int turn, int signal)
{
    const int slot = (int)(((long long)a.head + turn + a.n_ring) % a.n_ring);
    return (float2 *)a.x + ((long long)slot * a.n_signals + signal) * a.n_bins;
}

extern "C" __global__ void __launch_bounds__(THREADS) echo_hear(echo_batch_args a)
{
    const int j = blockIdx.x / a.n_signals, signal = blockIdx.x % a.n_signals;
    const float *window = a.windows + 2ll * blockIdx.x * a.block;
    const float2 *from = (const float2 *)a.heard + (long long)blockIdx.x * a.n_bins;
    float2 *to = ring(a, j, signal);
    float power = 0;
    for (int k = threadIdx.x; k < 2 * a.block; k += THREADS) power += window[k] * window[k];
    power = block_sum(power);
    if (threadIdx.x == 0) a.silent[blockIdx.x] = !(power > ECHO_SILENT * 2 * (float)a.block);
    for (int k = threadIdx.x; k < a.n_bins; k += THREADS) to[k] = from[k];
}

struct echo_bin {
    int line, k, signal;
    long long at, first; // in rows of lines; that of part 0, of which the next lies n_bins further
};

static __device__ bool find_bin(const echo_batch_args &a, echo_bin &b)
{
    b.at = here();
    b.k = (int)(b.at % a.n_bins), b.line = (int)(b.at / a.n_bins), b.signal = b.line / a.channels;
    b.first = (long long)b.line * a.n_parts * a.n_bins + b.k;
    return b.line < a.n_signals * a.channels;
}

extern "C" __global__ void __launch_bounds__(128) echo_imagine(echo_batch_args a)
{
    echo_bin b;
    if (!find_bin(a, b)) return;
    float2 sum = {0, 0};
#pragma unroll 4
    for (int p = 0; p < a.n_parts; p++) {
        const float2 x = ring(a, a.turn - p, b.signal)[b.k],
                     w = ((const float2 *)a.w)[b.first + (long long)p * a.n_bins];
        sum.x += w.x * x.x - w.y * x.y, sum.y += w.x * x.y + w.y * x.x;
    }
    ((float2 *)a.spectrum)[b.at] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) echo_cancel(echo_batch_args a)
{
    const long long line = blockIdx.x;
    const int first = a.turn * a.block - a.at; // sample of the part
    float *wave = a.wave + 2 * line * a.block;
    float *ready = a.ready + ((long long)a.turn * a.n_signals * a.channels + line) * a.block;
    const echo_worth before = a.worth[line];
    float mic_power = 0, error_power = 0;
    for (int k = threadIdx.x; k < a.block; k += THREADS) {
        const float mic = mic_sample(a, line, first + k), error = mic - wave[a.block + k];
        mic_power += mic * mic / (float)a.block, error_power += error * error / (float)a.block;
    }
    mic_power = block_sum(mic_power), error_power = block_sum(error_power);
    const echo_worth worth = echo_judge(&a.rules, before, mic_power, error_power);
    const float change = worth.trust - before.trust;
    for (int k = threadIdx.x; k < a.block; k += THREADS) {
        const float mic = mic_sample(a, line, first + k), echo = wave[a.block + k];
        ready[k] = mic - (before.trust + change * (float)k / (float)a.block) * echo;
        wave[a.block + k] = mic - echo;
        wave[k] = 0;
    }
    if (threadIdx.x == 0) { // all have read it before the sums' barriers
        a.worth[line] = worth;
        a.in_doubt[line] = worth.error_power > ECHO_WORSE * worth.mic_power;
    }
}

extern "C" __global__ void __launch_bounds__(128) echo_step(echo_batch_args a)
{
    echo_bin b;
    if (!find_bin(a, b)) return;
    const float2 e = ((const float2 *)a.spectrum)[b.at];
    const bool in_doubt = a.in_doubt[b.line];
    float echo = 0;
#pragma unroll 4
    for (int p = 0; p < a.n_parts; p++) {
        const float2 x = ring(a, a.turn - p, b.signal)[b.k];
        float *doubt = a.doubt + b.first + (long long)p * a.n_bins;
        if (in_doubt) *doubt = wt_max(*doubt, ECHO_FIRST_DOUBT);
        echo += 0.5f * (x.x * x.x + x.y * x.y) * *doubt;
    }
    if (a.silent[a.turn * a.n_signals + b.signal]) return;
    a.step[b.at] = echo_step(&a.rules, &a.near[b.at], echo, e.x, e.y);
}

// A part of a line's filter.
struct echo_part {
    const float2 *x, *e;
    const float *step;
    long long first; // of its weights
    bool learns;
};

static __device__ echo_part find_part(const echo_batch_args &a, long long row)
{
    const long long line = row / a.n_parts;
    const int signal = (int)(line / a.channels);
    echo_part p;
    p.learns = signal < a.n_signals && !a.silent[a.turn * a.n_signals + signal];
    p.x = ring(a, a.turn - (int)(row % a.n_parts), signal < a.n_signals ? signal : 0);
    p.e = (const float2 *)a.spectrum + line * a.n_bins, p.step = a.step + line * a.n_bins;
    p.first = row * a.n_bins;
    return p;
}

static __device__ __forceinline__ float2 gradient(const echo_batch_args &a, const echo_part &p, int k)
{
    const float2 x = p.x[k], e = p.e[k];
    const float gain = a.doubt[p.first + k] * p.step[k];
    return {gain * (x.x * e.x + x.y * e.y), gain * (x.x * e.y - x.y * e.x)};
}

static __device__ __forceinline__ void move(const echo_batch_args &a, const echo_part &p, int k, float2 g)
{
    const long long at = p.first + k;
    const float2 x = p.x[k];
    float2 w = ((float2 *)a.w)[at];
    w.x += g.x, w.y += g.y;
    ((float2 *)a.w)[at] = w;
    a.doubt[at] = echo_doubt(&a.rules, a.doubt[at], p.step[k], x.x * x.x + x.y * x.y, w.x, w.y);
}

#if ECHO_POINTS
enum { TEAM = wt__fft_threads(ECHO_POINTS, 1024), TEAMS = wt__fft_sequences(ECHO_POINTS) };

// Two real samples travel as one complex point.
extern "C" __global__ void __launch_bounds__(TEAM *TEAMS, 1) echo_learn(echo_batch_args a)
{
    extern __shared__ float all_shared[];
    float *shared = all_shared + threadIdx.y * wt__fft_shared_floats(ECHO_POINTS);
    const int t = threadIdx.x;
    const echo_part p = find_part(a, (long long)blockIdx.x * TEAMS + threadIdx.y);
    const float2 *roots = (const float2 *)a.roots;
    fft_block<ECHO_POINTS, TEAM>(
        t, shared, a.twiddles,
        [&](int k) {
            if (!p.learns) return make_float2(0, 0);
            float2 g = gradient(a, p, k), mirror = gradient(a, p, ECHO_POINTS - k);
            if (k == 0) g.y = mirror.y = 0;
            return fft_swap(fft_real_fold(g, mirror, roots[k]));
        },
        [&](int i, float2 v) {
            v = fft_scale(fft_swap(v), 0.5f / ECHO_POINTS);
            fft_shared_put<ECHO_POINTS>(shared, i,
                                        make_float2(2 * i < ECHO_POINTS ? v.x : 0, 2 * i + 1 < ECHO_POINTS ? v.y : 0));
        });
    __syncthreads();
    fft_block<ECHO_POINTS, TEAM>(
        t, shared, a.twiddles, [&](int i) { return fft_shared_get<ECHO_POINTS>(shared, i); },
        [&](int k, float2 v) { fft_shared_put<ECHO_POINTS>(shared, k, v); });
    __syncthreads();
    const auto point = [&](int k) { return fft_shared_get<ECHO_POINTS>(shared, k == ECHO_POINTS ? 0 : k); };
    for (int k = t; p.learns && k <= ECHO_POINTS; k += TEAM)
        move(a, p, k, fft_real_bin(point(k), point(ECHO_POINTS - k), roots[k]));
}
#else
extern "C" __global__ void echo_gradient(echo_batch_args a)
{
    const long long i = here();
    const echo_part p = find_part(a, i / a.n_bins);
    if (p.learns) ((float2 *)a.gradient)[i] = gradient(a, p, (int)(i % a.n_bins));
}

extern "C" __global__ void echo_constrain(echo_batch_args a)
{
    const long long i = here();
    if (i < (long long)a.n_signals * a.channels * a.n_parts * a.block)
        a.taps[i / a.block * 2 * a.block + a.block + i % a.block] = 0;
}

extern "C" __global__ void echo_move(echo_batch_args a)
{
    const long long i = here();
    const echo_part p = find_part(a, i / a.n_bins);
    if (p.learns) move(a, p, (int)(i % a.n_bins), ((const float2 *)a.gradient)[i]);
}
#endif

extern "C" __global__ void echo_keep(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels;
    if (i < n_lines * a.block) {
        const long long line = i / a.block;
        a.now.mic[i] = mic_sample(a, line, a.n - a.block + (int)(i % a.block));
        a.now.ready[i] = a.n_blocks ? a.ready[(a.n_blocks - 1) * n_lines * a.block + i] : a.old.ready[i];
    }
    if (i < 2ll * a.n_signals * a.block)
        a.now.playback[i] = played(a, i / (2 * a.block), a.n - 2 * a.block + (int)(i % (2 * a.block)));
}

extern "C" __global__ void echo_give(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels;
    if (i >= n_lines * a.n) return;
    const long long line = i / a.n;
    const int f = (int)(i % a.n), j = (a.at + f) / a.block, k = (a.at + f) % a.block;
    a.out[line * a.pitch + f] = j ? a.ready[((j - 1) * n_lines + line) * a.block + k] : a.old.ready[line * a.block + k];
}
