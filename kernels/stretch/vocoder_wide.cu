// Frames for the phase vocoders and the phase-locked one, of any n_fft, in memory; a thread a number but for the last:
//
//   vocoder_wide_fill      windowed pairs of frames
//   vocoder_wide_give      their bins, rounded once
//   vocoder_wide_attacks   the frames at an attack and before it, a pair
//   vocoder_wide_rules     the bins that an attack rules
//   vocoder_wide_lock      a block walks along one line's output frames, as vocoder_lock does in shared memory
//
// Judge: the CPU's stretch, 2e-6 of the peak.
#include "vocoder_wide_kernel.h"
#include "wide.cuh"

static __device__ __forceinline__ double sample_at(const wt_vocoder_frames_args &a, long long line, long long at)
{
    return at >= 0 && at < a.n_samples ? a.pcm[line * a.n_samples + at] : 0;
}

static __device__ __forceinline__ long long centre_of(const wt_vocoder_frames_args &a, long long line, long long pair)
{
    const long long t = a.first + pair;
    if (!a.rate) return 2 * t * a.hop;
    return a.places ? a.places[line * a.n_places + t].centre : llrint((double)(t * a.hop) * a.rate);
}

extern "C" __global__ void __launch_bounds__(256) vocoder_wide_fill(wt_vocoder_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    if (!p.there) return;
    const long long first = centre_of(a.frames, p.line, p.t / 2) - a.pairs.n_fft / 2 + p.i;
    const long long second = a.frames.rate ? first - a.frames.hop : first + a.frames.hop;
    const double w = a.frames.window[p.i];
    p.in[p.i] =
        make_double2(w * sample_at(a.frames, p.line, first), p.second ? w * sample_at(a.frames, p.line, second) : 0);
}

extern "C" __global__ void __launch_bounds__(256) vocoder_wide_give(wt_vocoder_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    double2 x[2];
    wide_bins(a.pairs, p, x);
    float2 *out = (float2 *)a.frames.out + (p.line * a.pairs.n_frames + p.t) * a.bins + p.i;
    out[0] = make_float2((float)x[0].x, (float)x[0].y);
    if (p.second) out[a.bins] = make_float2((float)x[1].x, (float)x[1].y);
}

// dsp/stretch/stretch.c, analyse_attack() and wt__stretch_attack()
extern "C" __global__ void __launch_bounds__(256) vocoder_wide_attacks(wt_vocoder_rules_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    const long long n_fft = a.pairs.n_fft, i = p.there ? wt__vocoder_begun(&a.attacks, p.line, p.t / 2) : -1;
    if (i < 0) return;
    const wt_transient *at = a.attacks.at + p.line * a.attacks.most + i;
    const long long before = at->in - n_fft / 2 - n_fft / 32;
    const bool alone = !i || at[-1].in < before - n_fft / 2;
    const wt_vocoder_frames_args &f = a.attacks.frames;
    const double w = f.window[p.i];
    p.in[p.i] = make_double2(w * sample_at(f, p.line, at->in - n_fft / 2 + p.i),
                             alone ? w * sample_at(f, p.line, before - n_fft / 2 + p.i) : 0);
}

// Of numbers rounded to float: exact but for one sum.
static __device__ __forceinline__ double power_of(double2 x)
{
    const double re = (float)x.x, im = (float)x.y;
    return re * re + im * im;
}

extern "C" __global__ void __launch_bounds__(256) vocoder_wide_rules(wt_vocoder_rules_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    const long long t = p.t / 2;
    if (!p.there || wt__vocoder_begun(&a.attacks, p.line, t) < 0) return;
    double2 x[2];
    wide_bins(a.pairs, p, x);
    a.attacks.rules[(p.line * a.attacks.n_out + t) * a.bins + p.i] = power_of(x[0]) > 4 * power_of(x[1]);
}

// ---- locking

enum { LOCK_THREADS = 1024 };

// What a line works with.
struct lock_line {
    const float2 *here, *earlier; // of a frame
    float2 *out;
    double2 *before, *turns;
    float *powers;
    int *peaks, *begins;
    int bins;
};

static __device__ __forceinline__ float power_at(const lock_line &l, int k)
{
    return k >= 0 && k < l.bins ? l.powers[k] : -1;
}

static __device__ __forceinline__ bool is_peak(const lock_line &l, int k)
{
    const float here = l.powers[k];
    return here > 0 && here > power_at(l, k - 1) && here > power_at(l, k - 2) && here >= power_at(l, k + 1) &&
           here >= power_at(l, k + 2);
}

// Peaks in order; a thread has neighbouring bins. Returns how many. All threads together.
static __device__ int list_peaks(const lock_line &l, int (&counts)[LOCK_THREADS / 32 + 1])
{
    const int each = (l.bins + LOCK_THREADS - 1) / LOCK_THREADS, first = threadIdx.x * each, lane = threadIdx.x % 32;
    const int end = first + each < l.bins ? first + each : l.bins;
    int mine = 0;
    for (int k = first; k < end; k++) mine += is_peak(l, k);
    int upto = mine;
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffff, upto, d);
        if (lane >= d) upto += other;
    }
    if (lane == 31) counts[threadIdx.x / 32] = upto;
    __syncthreads();
    if (threadIdx.x == 0) {
        int all = 0;
        for (int w = 0; w < LOCK_THREADS / 32; w++) {
            const int count = counts[w];
            counts[w] = all, all += count;
        }
        counts[LOCK_THREADS / 32] = all;
    }
    __syncthreads();
    int at = counts[threadIdx.x / 32] + upto - mine;
    for (int k = first; k < end && mine; k++)
        if (is_peak(l, k)) l.peaks[at++] = k;
    const int all = counts[LOCK_THREADS / 32];
    __syncthreads();
    return all;
}

// kernels/stretch/vocoder_frames.cu, measure_region()
static __device__ void measure_region(const lock_line &l, int i)
{
    const int peak = l.peaks[i];
    int begin = i ? l.peaks[i - 1] + 1 : 0;
    float least = l.powers[begin];
    for (int k = begin + 1; i && k < peak; k++)
        if (l.powers[k] < least) least = l.powers[k], begin = k;
    const float2 a = l.earlier[peak];
    const double2 b = l.before[peak];
    const double x = b.x * a.x + b.y * a.y, y = b.y * a.x - b.x * a.y, size = sqrt(x * x + y * y);
    l.begins[i] = begin;
    l.turns[i] = size > 0 ? make_double2(x / size, y / size) : make_double2(1, 0);
}

// The last region that begins at bin k or before.
static __device__ __forceinline__ int region_of(const lock_line &l, int n, int k)
{
    int low = 0, high = n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (l.begins[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(LOCK_THREADS) vocoder_wide_lock(wt_vocoder_wide_lock_args a)
{
    __shared__ int counts[LOCK_THREADS / 32 + 1];
    const long long line = blockIdx.x, bins = a.bins;
    lock_line l;
    l.before = (double2 *)a.before + line * bins, l.turns = (double2 *)a.turns + line * a.most_peaks;
    l.powers = a.powers + line * bins;
    l.peaks = a.peaks + line * a.most_peaks, l.begins = a.begins + line * a.most_peaks;
    l.bins = a.bins;
    const wt_stretch_place *places = a.lock.places ? a.lock.places + line * a.lock.n_places + a.lock.first : nullptr;
    long long held = -1, begun = 0; // the attack that the frame goes with, and the first of these frames that does
    for (long long t = 0; t < a.lock.n_out; t++) {
        l.here = (const float2 *)a.lock.in + (line * a.lock.n_out + t) * 2 * bins, l.earlier = l.here + bins;
        l.out = (float2 *)a.lock.out + (line * a.lock.pitch + t) * bins;
        for (int k = threadIdx.x; k < bins; k += LOCK_THREADS) {
            const double x = l.here[k].x, y = l.here[k].y;
            l.powers[k] = (float)(x * x + y * y);
        }
        __syncthreads();
        const int n_peaks = list_peaks(l, counts);
        const bool turns = a.lock.first + t && n_peaks;
        for (int i = threadIdx.x; i < n_peaks && turns; i += LOCK_THREADS) measure_region(l, i);
        if (places && places[t].held != held) held = places[t].held, begun = t;
        const unsigned char *rules = a.lock.rules + (line * a.lock.n_out + begun) * bins;
        __syncthreads();
        for (int k = threadIdx.x; k < bins; k += LOCK_THREADS) {
            const double x = l.here[k].x, y = l.here[k].y;
            double2 z = make_double2(x, y);
            if (turns && !(held >= 0 && rules[k])) {
                const double2 by = l.turns[region_of(l, n_peaks, k)];
                z = make_double2(x * by.x - y * by.y, x * by.y + y * by.x);
            }
            l.before[k] = z;
            l.out[k] = make_float2((float)z.x, (float)z.y);
        }
        __syncthreads();
    }
}
