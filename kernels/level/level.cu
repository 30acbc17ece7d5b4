// Level and sign changes of frames, and the parts of signals that are not silent.
//
//   level_frames     a warp a frame, lanes along its samples, sums in double
//   silence_levels   likewise, the loudest of the channels, and the loudest frame of each signal
//   silence_spans    a block a signal: where runs of loud frames begin and end, in order; or the first begin and the
//   last
//                    end
//
// Bound by memory: a sample is read from the cache by each of the frames over it.
// Judge: the CPU (dsp/level/silence.c), 2e-6 of the peak; sign changes and spans identical.
#include "level_kernel.h"
#include "padded.cuh"

#define ALL   0xffffffffu
#define WARPS 8

enum { RMS, ENERGY, ZERO_CROSSINGS }; // wt_level_kind

#define LEAST_LEVEL 1e-5 // librosa's least amplitude

static __device__ double mean_square(const wt_level_frames_args &f, const float *pcm, long long t)
{
    const long long begin = t * f.hop - f.margin;
    double sum = 0;
    for (int i = threadIdx.x % 32; i < f.frame; i += 32) {
        const double x = padded_sample(pcm, f.n_samples, begin + i, f.margin, f.pad);
        sum += x * x;
    }
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    return sum / f.frame;
}

// The end samples go on for ever.
static __device__ bool is_negative(const wt_level_frames_args &f, const float *pcm, long long at)
{
    return pcm[at < 0 ? 0 : at < f.n_samples ? at : f.n_samples - 1] < -1e-10f;
}

static __device__ double zero_crossings(const wt_level_frames_args &f, const float *pcm, long long t)
{
    const long long begin = t * f.hop - f.margin;
    int count = 0;
    for (int i = 1 + threadIdx.x % 32; i < f.frame; i += 32)
        count += is_negative(f, pcm, begin + i) != is_negative(f, pcm, begin + i - 1);
    return (double)__reduce_add_sync(ALL, count) / f.frame;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) level_frames(wt_level_args a)
{
    const long long frame = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (frame >= a.n_lines * a.frames.n_frames) return; // the whole warp
    const float *pcm = a.frames.pcm + frame / a.frames.n_frames * a.frames.n_samples;
    const long long t = frame % a.frames.n_frames;
    double value = a.kind == ZERO_CROSSINGS ? zero_crossings(a.frames, pcm, t) : mean_square(a.frames, pcm, t);
    if (a.kind == RMS) value = sqrt(value);
    if (threadIdx.x % 32 == 0) a.out[frame] = (float)value;
}

// ---- silence

extern "C" __global__ void __launch_bounds__(32 * WARPS) silence_levels(wt_silence_args a)
{
    const long long frame = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (frame >= a.n_signals * a.frames.n_frames) return; // the whole warp
    const long long signal = frame / a.frames.n_frames;
    const float *pcm = a.frames.pcm + signal * a.channels * a.frames.n_samples;
    double level = LEAST_LEVEL;
    for (int c = 0; c < a.channels; c++, pcm += a.frames.n_samples)
        level = fmax(level, (double)(float)sqrt(mean_square(a.frames, pcm, frame % a.frames.n_frames)));
    if (threadIdx.x % 32) return;
    a.levels[frame] = level;
    atomicMax(a.peaks + signal, (unsigned long long)__double_as_longlong(level)); // above 0: bits have their order
}

// Sum of one bit of each thread before this one's, and of all of them in `total`; all threads of the block.
static __device__ int place_of(bool bit, int *total)
{
    __shared__ int sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned votes = __ballot_sync(ALL, bit);
    __syncthreads(); // the last call's sums have been read
    if (lane == 0) sums[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1));
    *total = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += sums[w];
        *total += sums[w];
    }
    return before;
}

struct silence_signal {
    const double *levels;
    double peak_db, top_db;
    long long n_frames;
};

static __device__ bool is_loud(const silence_signal &s, long long t)
{
    return t >= 0 && t < s.n_frames && 20 * log10(s.levels[t]) - s.peak_db > -s.top_db;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) silence_spans(wt_silence_args a)
{
    const long long n_frames = a.frames.n_frames, n = a.frames.n_samples, hop = a.frames.hop;
    const silence_signal s = {a.levels + blockIdx.x * n_frames,
                              20 * log10(__longlong_as_double((long long)a.peaks[blockIdx.x])), a.top_db, n_frames};
    wt_silence_span *spans = a.spans + blockIdx.x * a.room;
    long long n_begun = 0, n_ended = 0;
    for (long long first = 0; first <= n_frames; first += 32 * WARPS) { // one frame more: there the last run ends
        const long long t = first + threadIdx.x, at = t * hop < n ? t * hop : n;
        const bool loud = is_loud(s, t), before = t <= n_frames && is_loud(s, t - 1);
        int begun, ended;
        const long long begin = n_begun + place_of(loud && !before, &begun);
        const long long end = n_ended + place_of(!loud && before, &ended);
        if (loud && !before && begin < a.room) spans[begin].begin = at;
        if (!loud && before && a.trim && end == n_ended + ended - 1) spans[0].end = at; // the next round's lies behind
        if (!loud && before && !a.trim && end < a.room) spans[end].end = at;
        n_begun += begun, n_ended += ended;
    }
    if (threadIdx.x == 0) a.counts[blockIdx.x] = (int)n_begun;
}
