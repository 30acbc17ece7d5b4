// Phase vocoder as librosa has it, and the cut at the end of a pitch shift.
//
// vocoder_follow: a thread has one bin of one line and walks along the frames; neighbours read and write side by side.
// The phase so far is a unit vector in double, multiplied by each step's turn and brought back to length 1: a million
// frames lose 1e-10 of it. Four steps' frames are read at once.
// Judge: wt_phase_vocoder_run, 2e-6 of the peak.
#include "vocoder_kernel.h"

enum { VOCODER_STEPS = 4 };

// Its length, and x becomes a unit vector; the angle of 0 is 0.
static __device__ __forceinline__ double part(double2 &x)
{
    const double square = x.x * x.x + x.y * x.y;
    if (!(square > 0)) {
        x = square == 0 ? make_double2(1, 0) : x; // a NaN stays one
        return square;
    }
    const double by = rsqrt(square);
    x.x *= by, x.y *= by;
    return square * by;
}

static __device__ __forceinline__ double2 frame_at(const wt_vocoder_follow_args &a, const float2 *in, long long k)
{
    if (k >= a.n_frames) return make_double2(0, 0);
    const float2 x = __ldg(in + (k - a.first_in) * a.bins);
    return make_double2(x.x, x.y);
}

extern "C" __global__ void __launch_bounds__(256) vocoder_follow(wt_vocoder_follow_args a)
{
    const int across = (a.bins + 255) / 256, bin = (int)(blockIdx.x % across) * 256 + threadIdx.x;
    const long long line = blockIdx.x / across;
    if (bin >= a.bins) return;
    const float2 *in = (const float2 *)a.in + line * a.n_held * a.bins + bin;
    float2 *out = (float2 *)a.out + line * a.pitch * a.bins + bin;
    double2 *kept = a.phases ? (double2 *)a.phases + line * a.bins + bin : nullptr, phase;
    if (a.first)
        phase = *kept;
    else
        phase = frame_at(a, in, 0), part(phase);
    for (int begin = 0; begin < a.n_out; begin += VOCODER_STEPS) {
        double2 first[VOCODER_STEPS], second[VOCODER_STEPS];
#pragma unroll
        for (int i = 0; i < VOCODER_STEPS; i++) {
            const long long t = a.first + (begin + i < a.n_out ? begin + i : begin),
                            k = (long long)((double)t * a.rate);
            first[i] = frame_at(a, in, k), second[i] = frame_at(a, in, k + 1);
        }
#pragma unroll
        for (int i = 0; i < VOCODER_STEPS; i++) {
            if (begin + i >= a.n_out) break;
            const double step = (double)(a.first + begin + i) * a.rate, alpha = step - (double)(long long)step;
            double2 from = first[i], to = second[i];
            const double from_size = part(from), to_size = part(to);
            const double size = (1 - alpha) * from_size + alpha * to_size;
            out[(long long)(begin + i) * a.bins] = make_float2((float)(size * phase.x), (float)(size * phase.y));
            const double2 turn = make_double2(to.x * from.x + to.y * from.y, to.y * from.x - to.x * from.y);
            const double x = phase.x * turn.x - phase.y * turn.y, y = phase.x * turn.y + phase.y * turn.x;
            const double fix = 1.5 - 0.5 * (x * x + y * y);
            phase = make_double2(x * fix, y * fix);
        }
    }
    if (kept) *kept = phase;
}

// 256 threads, four samples each; blockIdx.y is the line.
extern "C" __global__ void __launch_bounds__(256) vocoder_cut(wt_vocoder_cut_args a)
{
    const long long begin = (long long)blockIdx.x * 1024 + threadIdx.x;
    for (long long n = begin; n < begin + 1024 && n < a.n_out; n += 256)
        a.out[blockIdx.y * a.n_out + n] = n < a.n_in ? __ldg(a.in + blockIdx.y * a.n_in + n) * a.gain : 0;
}
