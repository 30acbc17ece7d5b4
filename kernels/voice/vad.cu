// Voice activity of whole signals:
//
//   vad_batch_listen   a warp a window: the high-pass as a scan over lanes in double, as if it began at rest
//   vad_batch_decide   a thread a line: window after window the high-pass's true state, which adds
//                      2 h cross + h^2 (sum of pole^2k) to the window's sum, then the text of vad_kernel.h
//
// The first is bound by memory: it reads a sample once.
// Judge: the CPU (dsp/voice/vad_plan.c), the same decisions: powers agree to 1e-13.
#include "vad_batch_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

static __device__ double finite_or_0(double x) { return fabs(x) <= 3.5e38 ? x : 0; }

// What stood before a window as vad_batch_listen sees it. A line's first window begins with what its state has heard.
static __device__ double before(const vad_batch_args &a, const vad_state *state, const float *x, int w)
{
    return w ? finite_or_0(x[-1]) : a.continued ? state->voice.in_before : 0;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) vad_batch_listen(vad_batch_args a)
{
    const long long item = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= (long long)a.n_lines * a.n_windows) return; // the whole warp
    const int lane = threadIdx.x % 32, line = (int)(item / a.n_windows), w = (int)(item % a.n_windows);
    const float *x = a.pcm + line * a.n_samples + a.from + (long long)w * a.window;
    double powers[6], fade = a.pole, earlier = before(a, a.states + line, x, w), high = 0, sum = 0, cross = 0;
    powers[0] = a.pole;
    for (int d = 1; d < 6; d++) powers[d] = powers[d - 1] * powers[d - 1];
    for (int i = 0; i < lane; i++) fade *= a.pole; // to the power of the sample's number
    for (int first = 0; first < a.window; first += 32, fade *= powers[5]) {
        const int last = min(31, a.window - 1 - first);
        const double here = lane <= last ? x[first + lane] : 0.0, next = __shfl_up_sync(ALL, here, 1);
        double y = a.pole * (here - (lane ? next : earlier)) + (lane ? 0.0 : a.pole * high);
        for (int d = 0; d < 5; d++) {
            const double y_before = __shfl_up_sync(ALL, y, 1 << d);
            if (lane >= 1 << d) y += powers[d] * y_before;
        }
        if (lane <= last) sum += y * y, cross += y * fade;
        high = __shfl_sync(ALL, y, last), earlier = __shfl_sync(ALL, here, last);
    }
    for (int d = 16; d; d /= 2) {
        sum += __shfl_xor_sync(ALL, sum, d);
        cross += __shfl_xor_sync(ALL, cross, d);
    }
    if (lane == 0) a.windows[item] = {sum, cross, high};
}

extern "C" __global__ void __launch_bounds__(32) vad_batch_decide(vad_batch_args a)
{
    const int line = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (line >= a.n_lines) return;
    vad_state s = {};
    if (a.continued) s = a.states[line];
    double decay = 1, squares = 0;
    for (int k = 0; k < a.window; k++) decay *= a.pole, squares += decay * decay;
    const float *x = a.pcm + line * a.n_samples + a.from;
    for (int w = 0; w < a.n_windows; w++, x += a.window) {
        const vad_window own = a.windows[(long long)line * a.n_windows + w];
        const double h = s.voice.high + (before(a, &s, x, w) - s.voice.in_before);
        const double sum = own.sum + 2 * h * own.cross + h * h * squares;
        s.voice.sum = sum < 0 ? 0 : sum; // rounding, and NaN stays
        s.voice.high = own.end + decay * h;
        s.voice.in_before = x[a.window - 1];
        vad_end_window(&a.rules, &s.count, &s.voice, a.window);
        vad_count_on(&s.count);
        a.speech[(long long)line * a.n_windows + w] = s.voice.active;
    }
    a.states[line] = s;
}
