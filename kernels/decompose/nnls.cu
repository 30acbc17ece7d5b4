// Non-negative least squares by coordinate descent: a thread has one right side. Residuals lie in shared memory, a
// column a thread, or, of many rows, in global memory, as what is sought does: neighbouring right sides side by side,
// each value of x read one ahead. In double, as the CPU. Threads share nothing and never meet.
// Judge: the CPU's, 2e-6 of the peak.
#include "nnls_kernel.h"

struct nnls_side {
    const float *b;
    float *out;
    double *x, *residual; // x: a.n apart
    long long stride;     // of residual
};

// Each bin the mean of its bands' mean powers, weighted by the triangles.
static __device__ double from_bands(const wt_nnls_args &a, const float *b, int j)
{
    const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from, first = __ldg(a.begins + j);
    float sum = 0;
    for (int i = 0; i < count; i++)
        if (__ldg(a.shares + from + i) > 0)
            sum += (float)(__ldg(a.shares + from + i) * __ldg(b + (first + i) * a.n) / __ldg(a.sums + first + i));
    return sum;
}

// Returns the largest |b|.
static __device__ double begin_side(const wt_nnls_args &a, const nnls_side &s)
{
    double peak = 0;
    for (int m = 0; m < a.n_rows; m++) {
        const double value = __ldg(s.b + m * a.n);
        s.residual[m * s.stride] = value;
        peak = fmax(peak, fabs(value));
    }
    for (int j = 0; j < a.n_columns; j++) {
        double begin = 0;
        if (a.start == NNLS_FROM_BANDS) begin = from_bands(a, s.b, j);
        if (a.start == NNLS_FROM_X) begin = s.out[j * a.n];
        s.x[j * a.n] = fmax(0.0, begin);
    }
    for (int j = 0; j < a.n_columns; j++) {
        const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from, first = __ldg(a.begins + j);
        for (int i = 0; i < count; i++) s.residual[(first + i) * s.stride] -= __ldg(a.values + from + i) * s.x[j * a.n];
    }
    return peak;
}

// Each x to the best value its column allows; returns by how much the residual moved at most.
static __device__ double sweep(const wt_nnls_args &a, const nnls_side &s)
{
    double most = 0, ahead = s.x[0];
    for (int j = 0; j < a.n_columns; j++) {
        const int from = __ldg(a.offsets + j), count = __ldg(a.offsets + j + 1) - from;
        double *rows = s.residual + __ldg(a.begins + j) * s.stride, slope = 0;
        const double now = ahead;
        if (j + 1 < a.n_columns) ahead = s.x[(j + 1) * a.n];
        if (!count) continue;
        for (int i = 0; i < count; i++) slope += __ldg(a.values + from + i) * rows[i * s.stride];
        const double best = now + slope * __ldg(a.parts + j), next = best > 0 ? best : 0, moved = next - now;
        s.x[j * a.n] = next;
        for (int i = 0; i < count; i++) rows[i * s.stride] -= __ldg(a.values + from + i) * moved;
        most = fmax(most, __ldg(a.sizes + j) * fabs(moved));
    }
    return most;
}

extern "C" __global__ void __launch_bounds__(128) nnls(wt_nnls_args a)
{
    extern __shared__ double residuals[];
    const long long blocks = (a.n + blockDim.x - 1) / blockDim.x, line = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * blockDim.x + threadIdx.x;
    if (t >= a.n) return;
    nnls_side s = {a.b + line * a.n_rows * a.n + t, a.out + line * a.n_columns * a.n + t,
                   a.x + line * a.n_columns * a.n + t, residuals + threadIdx.x, (long long)blockDim.x};
    if (a.residuals) s.residual = a.residuals + line * a.n_rows * a.n + t, s.stride = a.n;
    const double peak = begin_side(a, s);
    for (int k = 0; k < a.n_sweeps && sweep(a, s) > a.enough * peak; k++) {
    }
    for (int j = 0; j < a.n_columns; j++) {
        const double value = (float)s.x[j * a.n];
        s.out[j * a.n] = (float)(a.power == 1 ? value : a.power == 2 ? sqrt(value) : pow(value, 1 / a.power));
    }
}
