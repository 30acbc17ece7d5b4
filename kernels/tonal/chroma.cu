// Chroma: a warp a frame, whose row lies in shared memory as doubles.
//
//   chroma_project    power spectra by a bank of weights
//   chroma_fold       constant-Q magnitudes by lists of bins
//   chroma_quantise   CENS: each frame's shares in four steps, a thread a frame, sums in the CPU's order: the steps are
//                     comparisons
//   chroma_smooth     CENS: the steps under a window along time
//   chroma_tonnetz    tonal centroids
//
// Bound by memory but for chroma_project, whose 12 * 1025 products a frame run in double.
// Judge: the CPU (dsp/tonal/chroma.c), 2e-6 of the peak; steps identical.
#include "chroma_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

enum { NORM_MAX, NORM_1, NORM_2, NORM_NONE }; // wt_chroma_norm

extern __shared__ double chroma_rows[]; // [WARPS][n_chroma]

struct chroma_place {
    long long frame; // of all signals
    int lane;
    double *row;
    bool active;
};

static __device__ chroma_place find_place(const wt_chroma_args &a)
{
    const int warp = threadIdx.x / 32;
    const long long frame = (long long)blockIdx.x * WARPS + warp;
    return {frame, (int)threadIdx.x % 32, chroma_rows + warp * a.n_chroma, frame < a.n_all};
}

static __device__ double sum_over_warp(double x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// What is next to nothing stays as it is. Each lane goes on with the elements it wrote.
static __device__ void normalise(const chroma_place &p, int n, int norm)
{
    if (norm == NORM_NONE) return;
    double length = 0;
    for (int r = p.lane; r < n; r += 32) {
        const double size = fabs(p.row[r]);
        if (norm == NORM_MAX)
            length = size > length ? size : length;
        else
            length += norm == NORM_2 ? size * size : size;
    }
    if (norm == NORM_MAX)
        for (int step = 16; step; step /= 2) length = fmax(length, __shfl_xor_sync(ALL, length, step));
    else
        length = sum_over_warp(length);
    if (norm == NORM_2) length = sqrt(length);
    for (int r = p.lane; r < n && length >= 1.17549435e-38f; r += 32) p.row[r] /= length;
}

static __device__ void write_row(const wt_chroma_args &a, const chroma_place &p)
{
    normalise(p, a.n_chroma, a.norm);
    for (int r = p.lane; r < a.n_chroma; r += 32) a.out[p.frame * a.n_chroma + r] = (float)p.row[r];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) chroma_project(wt_chroma_args a)
{
    const chroma_place p = find_place(a);
    if (!p.active) return; // the whole warp, here and below
    const float *power = a.in + p.frame * a.n_in;
    for (int r = 0; r < a.n_chroma; r++) {
        const float *weights = a.bank + (long long)r * a.n_in;
        double sum = 0;
        for (int k = p.lane; k < a.n_in; k += 32) sum += (double)__ldg(weights + k) * __ldg(power + k);
        sum = sum_over_warp(sum);
        if (p.lane == r % 32) p.row[r] = sum;
    }
    write_row(a, p);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) chroma_fold(wt_chroma_args a)
{
    const chroma_place p = find_place(a);
    if (!p.active) return;
    const float *magnitude = a.in + p.frame * a.n_in;
    for (int r = p.lane; r < a.n_chroma; r += 32) {
        double sum = 0;
        for (int i = a.begins[r]; i < a.begins[r + 1]; i++) sum += magnitude[a.bins[i]];
        p.row[r] = sum < a.threshold ? 0 : sum;
    }
    write_row(a, p);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) chroma_quantise(wt_chroma_args a)
{
    const long long frame = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (frame >= a.n_all) return;
    const float *chroma = a.in + frame * a.n_chroma;
    float *steps = a.steps + frame * a.n_chroma;
    double length = 0;
    for (int r = 0; r < a.n_chroma; r++) length += fabs((double)chroma[r]);
    if (!(length >= 1.17549435e-38f)) length = 1;
    for (int r = 0; r < a.n_chroma; r++) {
        const double x = chroma[r] / length;
        steps[r] = 0.25f * (float)((x > 0.4) + (x > 0.2) + (x > 0.1) + (x > 0.05));
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) chroma_smooth(wt_chroma_args a)
{
    const chroma_place p = find_place(a);
    if (!p.active) return;
    const long long t = p.frame % a.n_frames;
    const float *steps = a.steps + (p.frame - t) * a.n_chroma; // of the signal
    for (int r = p.lane; r < a.n_chroma; r += 32) {
        double sum = 0;
        for (int j = 0; j < a.length; j++) {
            const long long from = t + a.length / 2 - j;
            if (from >= 0 && from < a.n_frames) sum += a.window[j] * steps[from * a.n_chroma + r];
        }
        p.row[r] = sum;
    }
    write_row(a, p);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) chroma_tonnetz(wt_chroma_args a)
{
    const chroma_place p = find_place(a);
    if (!p.active) return;
    for (int r = p.lane; r < a.n_chroma; r += 32) p.row[r] = a.in[p.frame * a.n_chroma + r];
    normalise(p, a.n_chroma, NORM_1);
    __syncwarp();
    if (p.lane >= 6) return;
    double sum = 0;
    for (int r = 0; r < a.n_chroma; r++) sum += a.window[p.lane * a.n_chroma + r] * p.row[r];
    a.out[p.frame * 6 + p.lane] = (float)sum;
}
