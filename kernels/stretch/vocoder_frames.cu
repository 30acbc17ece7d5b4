// Frames for the phase vocoders, and the phase-locked one, compiled for one SPECTRUM_N.
//
// vocoder_frames: SPECTRUM_THREADS threads transform a pair of frames as one complex signal in double: a weak bin's
// phase decides how it sounds when it has become strong, and a transform in float gives it one of noise.
//
// vocoder_lock: a block walks along one line's output frames. A thread has a few neighbouring bins: their peaks are
// counted by a scan over the block, each peak finds where its region ends and how it turns, and each bin looks up its
// region. The frame before stays in shared memory, the next one's bins are read while this one is made.
//
// vocoder_attacks: the frames at an attack and before it make a pair; a block has the attacks of some output frames.
// Judge: the CPU's stretch, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum.cuh"
#include "vocoder_kernel.h"

extern __shared__ double2 all_shared[];

static __device__ __forceinline__ float sample_at(const wt_vocoder_frames_args &a, const float *pcm, long long at)
{
    return at >= 0 && at < a.n_samples ? __ldg(pcm + at) : 0;
}

// Points b + k STEP of both frames, of a line that has them whole. A quarter of a frame apart they share three quarters
// of their samples.
static __device__ __forceinline__ void fill_inside(const double *window, const float *first, const float *second,
                                                   double2 (&v)[SPECTRUM_RADIX])
{
    constexpr int R = SPECTRUM_RADIX, Q = R / 4;
    asm("" : "+l"(window), "+l"(first), "+l"(second)); // constant offsets, as in spectrum_fill
    const auto windowed = [&](int k, float x, float y) {
        const double w = __ldg(window + k * SPECTRUM_STEP);
        v[k] = make_double2(w * x, w * y);
    };
    if (R % 4 == 0 && first - second == SPECTRUM_N / 4) {
        float samples[R + Q];
#pragma unroll
        for (int k = 0; k < R + Q; k++) samples[k] = __ldg(second + k * SPECTRUM_STEP);
#pragma unroll
        for (int k = 0; k < R; k++) windowed(k, samples[k + Q], samples[k]);
    } else {
        float x[R], y[R];
#pragma unroll
        for (int k = 0; k < R; k++) x[k] = __ldg(first + k * SPECTRUM_STEP), y[k] = __ldg(second + k * SPECTRUM_STEP);
#pragma unroll
        for (int k = 0; k < R; k++) windowed(k, x[k], y[k]);
    }
}

// The same of any line, which is silent outside.
static __device__ __forceinline__ void fill_pair(const wt_vocoder_frames_args &a, const float *pcm, long long first,
                                                 long long second, int b, double2 (&v)[SPECTRUM_RADIX])
{
    const long long low = first < second ? first : second, high = first < second ? second : first;
    if (low >= 0 && high + SPECTRUM_N <= a.n_samples)
        return fill_inside(a.window + b, pcm + first + b, pcm + second + b, v);
    double2 some[SPECTRUM_RADIX]; // in a loop, or half the kernel's text would be this
#pragma unroll 1
    for (int k = 0; k < SPECTRUM_RADIX; k++) {
        const int i = b + k * SPECTRUM_STEP;
        const double w = __ldg(a.window + i);
        some[k] = make_double2(w * sample_at(a, pcm, first + i), w * sample_at(a, pcm, second + i));
    }
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX; k++) v[k] = some[k];
}

// give(k, x, y): the bins of two frames that begin at `first` and `second`. All threads together.
template <class Give>
static __device__ __forceinline__ void transform_pair(const wt_vocoder_frames_args &a, int thread, const float *pcm,
                                                      long long first, long long second, double2 *points, Give give)
{
    spectrum_pair(
        thread, points, (const double2 *)a.twiddles,
        [&](int b, double2(&v)[SPECTRUM_RADIX]) { fill_pair(a, pcm, first, second, b, v); }, give);
}

static __device__ __forceinline__ long long centre_of(const wt_vocoder_frames_args &a, long long line, long long pair)
{
    const long long t = a.first + pair;
    if (!a.rate) return 2 * t * a.hop;
    if (!a.places) return llrint((double)(t * a.hop) * a.rate);
    return 2 * pair < a.n_frames ? a.places[line * a.n_places + t].centre : 0;
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) vocoder_frames(wt_vocoder_frames_args a)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const int pairs = (a.n_frames + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long line = blockIdx.x / blocks, pair = blockIdx.x % blocks * SPECTRUM_SEQUENCES + sequence;
    double2 *points = all_shared + sequence * SPECTRUM_POINTS;
    const long long begin = centre_of(a, line, pair) - SPECTRUM_N / 2, late = a.rate ? begin : begin + a.hop;
    const int t = (int)(2 * pair), to_late = a.rate ? 0 : 1; // the later frame comes first where a pair makes one frame
    float2 *out = (float2 *)a.out + (line * a.n_frames + t) * SPECTRUM_BINS;
    const auto leave = [&](int row, int k, double2 x) {
        if (t + row < a.n_frames) out[row * SPECTRUM_BINS + k] = make_float2((float)x.x, (float)x.y);
    };
    transform_pair(a, thread, a.pcm + line * a.n_samples, late, late - a.hop, points,
                   [&](int k, double2 x, double2 y) { leave(to_late, k, x), leave(1 - to_late, k, y); });
}

// ---- attacks

// Of numbers rounded to float: exact but for one sum.
static __device__ __forceinline__ double power_of(double2 x)
{
    const double re = (float)x.x, im = (float)x.y;
    return re * re + im * im;
}

// dsp/stretch/stretch.c, analyse_attack() and wt__stretch_attack()
extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) vocoder_attacks(wt_vocoder_attacks_args a)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const long long line = blockIdx.x / a.blocks;
    const wt_transient *at = a.at + line * a.most;
    double2 *points = all_shared + sequence * SPECTRUM_POINTS;
    const int end = (blockIdx.x % a.blocks + 1) * WT_VOCODER_SEARCHED;
    for (int begin = end - WT_VOCODER_SEARCHED; begin < end; begin += SPECTRUM_SEQUENCES) {
        bool any = false;
        for (int s = 0; s < SPECTRUM_SEQUENCES; s++)
            any |= begin + s < end && wt__vocoder_begun(&a, line, begin + s) >= 0;
        if (!any) continue; // all threads
        const int t = begin + sequence;
        const long long i = t < end ? wt__vocoder_begun(&a, line, t) : -1;
        long long first = -SPECTRUM_N, quiet = -SPECTRUM_N; // silence
        if (i >= 0) {
            const long long before = at[i].in - SPECTRUM_N / 2 - SPECTRUM_N / 32;
            first = at[i].in - SPECTRUM_N / 2;
            if (!i || at[i - 1].in < before - SPECTRUM_N / 2) quiet = before - SPECTRUM_N / 2;
        }
        unsigned char *rules = a.rules + (line * a.n_out + t) * SPECTRUM_BINS;
        transform_pair(a.frames, thread, a.frames.pcm + line * a.frames.n_samples, first, quiet, points,
                       [&](int k, double2 x, double2 y) {
                           if (i >= 0) rules[k] = power_of(x) > 4 * power_of(y);
                       });
    }
}

// ---- locking

enum {
    LOCK_THREADS = wt__vocoder_threads(SPECTRUM_N),
    LOCK_WARPS = LOCK_THREADS / 32,
    LOCK_BINS = wt__vocoder_bins(SPECTRUM_N), // of a thread
    LOCK_ALL = LOCK_THREADS * LOCK_BINS,      // not fewer than there are
    LOCK_PEAKS = SPECTRUM_BINS / 3 + 2,       // at most: they lie three bins apart
    LOCK_EDGE = 2,
    LOCK_BLOCKS = wt__vocoder_blocks(SPECTRUM_N)
};

struct lock_frame {
    double2 before[SPECTRUM_BINS], turn[LOCK_PEAKS]; // in double, as dsp/stretch/stretch_locked.c says
    float2 here[SPECTRUM_BINS], earlier[SPECTRUM_BINS];
    float power[LOCK_EDGE + LOCK_ALL + LOCK_EDGE]; // edges, and what is beyond the bins: below all power
    int peak[LOCK_PEAKS], begin[LOCK_PEAKS];
    short before_bin[LOCK_ALL]; // peaks up to a bin
    int counts[LOCK_WARPS];
};
static_assert(sizeof(lock_frame) <= wt__vocoder_lock_bytes(SPECTRUM_N), "what the host asks for");

// power[k] of the frame and its neighbours.
static __device__ __forceinline__ bool is_peak(const float *power)
{
    const float here = *power;
    return here > 0 && here > power[-1] && here > power[-2] && here >= power[1] && here >= power[2];
}

// Peaks of the frame in order, to f.peak, and to f.before_bin how many there are up to each bin; returns how many in
// all. A warp has 32 bins after the others.
static __device__ __forceinline__ int list_peaks(lock_frame &f)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp * 32 * LOCK_BINS + lane;
    unsigned found[LOCK_BINS];
    int mine = 0;
#pragma unroll
    for (int i = 0; i < LOCK_BINS; i++) {
        found[i] = __ballot_sync(0xffffffff, is_peak(f.power + LOCK_EDGE + first + 32 * i));
        mine += __popc(found[i]);
    }
    if (lane == 0) f.counts[warp] = mine;
    __syncthreads();
    int before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < LOCK_WARPS; w++) {
        const int count = f.counts[w];
        if (w < warp) before += count;
        all += count;
    }
#pragma unroll
    for (int i = 0; i < LOCK_BINS; i++) {
        const int k = first + 32 * i, upto = before + __popc(found[i] & (0xffffffffu >> (31 - lane)));
        if (found[i] >> lane & 1) f.peak[upto - 1] = k;
        f.before_bin[k] = (short)upto;
        before += __popc(found[i]);
    }
    __syncthreads();
    return all;
}

// Where region i begins: at the lowest bin between its peak and the one before, and how it turns: so that its peak goes
// on from where the output's frame before left that bin.
static __device__ __forceinline__ void measure_region(lock_frame &f, int i)
{
    const int peak = f.peak[i];
    int begin = i ? f.peak[i - 1] + 1 : 0;
    const float *power = f.power + LOCK_EDGE;
    float least = power[begin];
    for (int k = begin + 1; i && k < peak; k++)
        if (power[k] < least) least = power[k], begin = k;
    const float2 a = f.earlier[peak];
    const double2 b = f.before[peak];
    const double x = b.x * a.x + b.y * a.y, y = b.y * a.x - b.x * a.y;
    const double square = x * x + y * y, by = rsqrt(square);
    f.begin[i] = begin;
    f.turn[i] = square > 0 ? make_double2(x * by, y * by) : make_double2(1, 0);
}

extern "C" __global__ void __launch_bounds__(LOCK_THREADS, LOCK_BLOCKS) vocoder_lock(wt_vocoder_lock_args a)
{
    lock_frame &f = *(lock_frame *)all_shared;
    const float2 *in = (const float2 *)a.in + (long long)blockIdx.x * a.n_out * 2 * SPECTRUM_BINS;
    float2 *out = (float2 *)a.out + (long long)blockIdx.x * a.pitch * SPECTRUM_BINS;
    double2 *before = (double2 *)a.before + (long long)blockIdx.x * SPECTRUM_BINS;
    const wt_stretch_place *places = a.places ? a.places + blockIdx.x * a.n_places + a.first : nullptr;
    float2 here[LOCK_BINS], earlier[LOCK_BINS];
    long long held = -1; // the attack that the frame goes with,
    int begun = 0;       // and the first of these frames that does
    const auto read = [&](int t) {
        if (places && t < a.n_out) {
            const long long now = places[t].held;
            if (now != held) begun = t;
            held = now;
        }
#pragma unroll
        for (int i = 0; i < LOCK_BINS; i++) {
            const int k = threadIdx.x + i * LOCK_THREADS;
            if (k >= SPECTRUM_BINS || t >= a.n_out) continue;
            here[i] = __ldg(in + (long long)t * 2 * SPECTRUM_BINS + k);
            earlier[i] = __ldg(in + ((long long)t * 2 + 1) * SPECTRUM_BINS + k);
        }
    };
    for (int i = threadIdx.x; i < LOCK_EDGE + LOCK_ALL + LOCK_EDGE; i += LOCK_THREADS) f.power[i] = -1;
    for (int k = threadIdx.x; k < SPECTRUM_BINS && a.first; k += LOCK_THREADS) f.before[k] = before[k];
    __syncthreads();
    read(0);
    for (int t = 0; t < a.n_out; t++) {
#pragma unroll
        for (int i = 0; i < LOCK_BINS; i++) {
            const int k = threadIdx.x + i * LOCK_THREADS;
            if (k >= SPECTRUM_BINS) continue;
            f.here[k] = here[i], f.earlier[k] = earlier[i];
            f.power[LOCK_EDGE + k] = (float)((double)here[i].x * here[i].x + (double)here[i].y * here[i].y);
        }
        const bool attacked = held >= 0;
        const unsigned char *rules = a.rules + ((long long)blockIdx.x * a.n_out + begun) * SPECTRUM_BINS;
        read(t + 1);
        __syncthreads();
        const int n_peaks = list_peaks(f);
        const bool turns = a.first + t && n_peaks;
        for (int i = threadIdx.x; i < n_peaks && turns; i += LOCK_THREADS) measure_region(f, i);
        __syncthreads();
        for (int k = threadIdx.x; k < SPECTRUM_BINS; k += LOCK_THREADS) {
            double2 x = make_double2(f.here[k].x, f.here[k].y);
            if (turns && !(attacked && rules[k])) {
                const int after = f.before_bin[k]; // regions change once between two peaks
                const int region = after < n_peaks && (!after || f.begin[after] <= k) ? after : after - 1;
                const double2 by = f.turn[region];
                x = make_double2(x.x * by.x - x.y * by.y, x.x * by.y + x.y * by.x);
            }
            f.before[k] = x;
            out[(long long)t * SPECTRUM_BINS + k] = make_float2((float)x.x, (float)x.y);
        }
        __syncthreads();
    }
    for (int k = threadIdx.x; k < SPECTRUM_BINS && a.before; k += LOCK_THREADS) before[k] = f.before[k];
}
