// Noise reduction of many lines that goes on from part to part; transforms are wt_fft's.
//
//   denoise_reset    a thread a value of the state
//   denoise_frames   a thread a value: windowed frames
//   denoise_keep     a thread a value: the last frame of samples, for the part behind
//   denoise_hear     a warp a spectrum: is it more than silence
//   denoise_gains    a thread a bin of a line walks along the spectra, four reads ahead: the text of denoise_kernel.h.
//                    The gate looks at its neighbours' noise too, which it tracks itself
//   denoise_add      a thread a sample: the halves of two windows, and what is left of the last
//
// All but the gains are bound by memory; the gains by the length of a line where lines are few.
// Judge: the CPU (dsp/voice/denoise.c), 2e-6 of the peak.
#include "denoise_batch_kernel.h"

#define ALL   0xffffffffu
#define AHEAD 4

static __device__ long long here() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void denoise_reset(denoise_batch_args a)
{
    const long long i = here(), n_bins = a.rules.n_bins;
    if (i < (long long)a.n_lines * a.frame) a.now.past[i] = 0;
    if (i < (long long)a.n_lines * a.hop) a.now.ready[i] = a.now.sum[i] = 0;
    if (i < a.n_lines) a.now.n_heard[i] = a.keeps_noise ? a.rules.n_start : 0;
    if (i >= a.n_lines * n_bins) return;
    a.now.presence[i] = 0.5f, a.now.clean[i] = 0;
    a.now.noise[i] = a.keeps_noise ? a.old.noise[i] : 0;
}

// Sample `i` of the part, those before it below 0.
static __device__ float sample(const denoise_batch_args &a, int line, int i)
{
    if (i < 0) return a.old.past[(long long)line * a.frame + a.frame + i];
    const float x = a.in[line * a.pitch + i];
    return fabsf(x) <= DENOISE_LOUDEST ? x : 0;
}

extern "C" __global__ void denoise_frames(denoise_batch_args a)
{
    const long long i = here();
    if (i >= (long long)a.n_spectra * a.n_lines * a.frame) return;
    const int k = (int)(i % a.frame), line = (int)(i / a.frame % a.n_lines), t = (int)(i / a.frame / a.n_lines);
    a.windowed[i] = sample(a, line, (t + 1) * a.hop - a.at - a.frame + k) * a.analysis[k];
}

extern "C" __global__ void denoise_keep(denoise_batch_args a)
{
    const long long i = here();
    if (i >= (long long)a.n_lines * a.frame) return;
    const int line = (int)(i / a.frame);
    a.now.past[i] = sample(a, line, a.n - a.frame + (int)(i % a.frame));
}

static __device__ float power_of(float2 x) { return x.x * x.x + x.y * x.y; }

extern "C" __global__ void denoise_hear(denoise_batch_args a)
{
    const long long item = here() / 32;
    if (item >= (long long)a.n_spectra * a.n_lines) return; // the whole warp
    const float2 *x = (const float2 *)a.spectra + item * a.rules.n_bins;
    float sum = 0;
    for (int k = threadIdx.x % 32; k < a.rules.n_bins; k += 32) sum += power_of(x[k]);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(ALL, sum, d);
    if (threadIdx.x % 32 == 0) a.heard[item] = sum > 1e-20f;
}

// A bin with a neighbour on each side; at the ends the bin itself stands there.
struct denoise_three {
    float power[3], noise[3], presence[3], clean[3], gain[3];
};

// The gain of the bin in the middle; alone: nothing is known of its neighbours.
static __device__ float gain_of(const denoise_rules &r, bool alone, int k, denoise_three &own, int &n_heard)
{
    const denoise_bins b = {own.power, own.noise, own.presence, own.clean, own.gain, 0};
    if (r.tracked && n_heard < r.n_start) {
        const float part = 1 / (float)++n_heard;
#pragma unroll
        for (int i = 0; i < 3; i++)
            if (!alone || i == 1) denoise_start(&r, &b, part, i);
        return own.gain[1];
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
        if (r.tracked && (!alone || i == 1)) denoise_track(&r, &b, i);
    if (alone)
        denoise_weigh(&r, &b, 1);
    else
        denoise_gate(&r, &b, 1);
    return k < r.n_low ? r.min_gain : own.gain[1];
}

extern "C" __global__ void __launch_bounds__(128) denoise_gains(denoise_batch_args a)
{
    const long long i = here(), row = (long long)a.n_lines * a.rules.n_bins;
    if (i >= row) return;
    const int n_bins = a.rules.n_bins, k = (int)(i % n_bins), line = (int)(i / n_bins);
    const bool alone = a.rules.mode != DENOISE_GATE;
    const int below = k > 0 ? -1 : 0, above = k < n_bins - 1 ? 1 : 0;
    denoise_rules r = a.rules;
    r.n_bins = 3;
    denoise_three own;
    int n_heard = a.old.n_heard[line];
    for (int j = 0; j < 3; j++) {
        const long long from = i + (j == 0 ? below : j == 2 ? above : 0);
        own.noise[j] = a.old.noise[from], own.presence[j] = a.old.presence[from], own.clean[j] = a.old.clean[from];
    }
    for (int first = 0; first < a.n_spectra; first += AHEAD) {
        float2 x[AHEAD], beside[AHEAD][2];
        bool heard[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const int t = min(first + j, a.n_spectra - 1);
            const float2 *spectrum = (const float2 *)a.spectra + t * row + i;
            x[j] = spectrum[0], beside[j][0] = spectrum[alone ? 0 : below], beside[j][1] = spectrum[alone ? 0 : above];
            heard[j] = a.gains && a.heard[(long long)t * a.n_lines + line];
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            if (first + j >= a.n_spectra) break;
            float g = 1;
            own.power[0] = power_of(beside[j][0]), own.power[1] = power_of(x[j]), own.power[2] = power_of(beside[j][1]);
            if (heard[j]) g = 1 - a.strength * (1 - gain_of(r, alone, k, own, n_heard));
            ((float2 *)a.turned)[(first + j) * row + i] = {x[j].x * g, x[j].y * g};
        }
    }
    a.now.noise[i] = own.noise[1], a.now.presence[i] = own.presence[1], a.now.clean[i] = own.clean[1];
    if (k == 0) a.now.n_heard[line] = n_heard;
}

// Sample i of the synthesis window's part of a spectrum.
static __device__ float synthesis(const denoise_batch_args &a, int line, int t, int i)
{
    return a.back[((long long)t * a.n_lines + line) * a.frame + a.frame - 2 * a.hop + i] * a.synthesis[i];
}

// Sample i of what goes out behind spectrum t; -1: the last of the part before.
static __device__ float ready(const denoise_batch_args &a, int line, int t, int i)
{
    const long long at = (long long)line * a.hop + i;
    if (t < 0) return a.old.ready[at];
    return (t ? synthesis(a, line, t - 1, a.hop + i) : a.old.sum[at]) + synthesis(a, line, t, i);
}

extern "C" __global__ void denoise_add(denoise_batch_args a)
{
    const long long each = a.n + 2 * a.hop, item = here();
    if (item >= a.n_lines * each) return;
    const int line = (int)(item / each), i = (int)(item % each), last = a.n_spectra - 1;
    if (i < a.n) {
        a.out[line * a.pitch + i] = ready(a, line, (a.at + i) / a.hop - 1, (a.at + i) % a.hop);
    } else if (i < a.n + a.hop) {
        a.now.ready[(long long)line * a.hop + i - a.n] = ready(a, line, last, i - a.n);
    } else {
        const int k = i - a.n - a.hop;
        const long long at = (long long)line * a.hop + k;
        a.now.sum[at] = last < 0 ? a.old.sum[at] : synthesis(a, line, last, a.hop + k);
    }
}
