// Onset strength of mel spectra, and onsets of its envelopes.
//
//   onset_peak       a block the largest of WT_ONSET_PEAK powers, of precise spectra
//   onset_strength   a block makes 32 frames: lanes are frames while the rises of all bands go to the block's array;
//                    then the mean is one thread a frame, the median one warp a frame, by bisection of its bits
//   onset_detrend    a thread a signal
//   onset_detect     a block a signal: every frame is judged by itself, then one thread walks over those that passed
//
// Compiled without contraction to fused multiply-adds: means and comparisons then have the CPU's bits.
// Judge: the CPU (dsp/rhythm/onset.c, dsp/rhythm/onset_detect.c): identical from the same spectra, frames identical.
#include "onset_kernel.h"
#include "places.cuh"

#define ALL 0xffffffffu

// Rises are not negative: their bits have their order. A lane's keys of a frame: in registers when it has HELD at most.
template <int HELD> struct rise_keys {
    const float *column;
    int n, held[HELD ? HELD : 1];

    __device__ __forceinline__ rise_keys(const float *from, int count) : column(from), n(count)
    {
#pragma unroll
        for (int i = 0; i < HELD; i++)
            held[i] = (int)threadIdx.x % 32 + 32 * i < n ? read(threadIdx.x % 32 + 32 * i) : ~0;
    }
    __device__ __forceinline__ int read(int b) const
    {
        return __float_as_int(column[b * (WT_ONSET_TILE + 1)]) & 0x7fffffff;
    }
    template <class Visit> __device__ __forceinline__ void each(Visit visit) const
    {
        if constexpr (HELD) {
#pragma unroll
            for (int i = 0; i < HELD; i++) visit(held[i]);
        } else {
            for (int b = threadIdx.x % 32; b < n; b += 32) visit(read(b));
        }
    }
    // How many are below `key`, which is at most 2^31: what no lane holds, ~0, is never.
    __device__ __forceinline__ int below(unsigned key) const
    {
        int count = 0;
        each([&](int bits) { count += (unsigned)bits < key; });
        return __reduce_add_sync(ALL, count);
    }
};

template <int HELD> static __device__ __forceinline__ float median_of(const rise_keys<HELD> &keys)
{
    const int n = keys.n;
    unsigned low = 0;
    for (unsigned bit = 1u << 30; bit; bit >>= 1)
        if (keys.below(low | bit) <= (n - 1) / 2) low |= bit;
    unsigned high = low;
    if (keys.below(low + 1) <= n / 2) { // the next one up
        high = 0x7fffffff;
        keys.each([&](int bits) {
            if ((unsigned)bits > low && (unsigned)bits < high) high = (unsigned)bits;
        });
        high = __reduce_min_sync(ALL, high);
    }
    return (float)(((double)__int_as_float((int)low) + (double)__int_as_float((int)high)) / 2);
}

static __device__ float mean_of(const float *column, int n)
{
    double sum = 0;
    for (int b = 0; b < n; b++) sum += column[b * (WT_ONSET_TILE + 1)];
    return (float)(sum / n);
}

// Decibels of a power over the signal's floor.
static __device__ __forceinline__ double level_of(float power, double floor)
{
    const double level = wt__onset_db(power);
    return level < floor ? floor : level;
}

extern "C" __global__ void __launch_bounds__(256) onset_peak(wt_onset_args a)
{
    const long long all = a.n_bands * a.n_frames, blocks = (all + WT_ONSET_PEAK - 1) / WT_ONSET_PEAK;
    const long long signal = blockIdx.x / blocks, first = blockIdx.x % blocks * WT_ONSET_PEAK;
    const float *mel = a.mel + signal * all;
    float most = 0;
    for (long long k = first + threadIdx.x; k < all && k < first + WT_ONSET_PEAK; k += 256)
        most = mel[k] > most ? mel[k] : most;
    const int peak = __reduce_max_sync(ALL, __float_as_int(most)); // not negative: bits have their order
    if (threadIdx.x % 32 == 0) atomicMax(a.peaks + signal, peak);
}

static __device__ float rise_of(const wt_onset_args &a, const float *mel, int band, long long t, double floor)
{
    int begin = band - a.max_size / 2, end = begin + a.max_size; // the mirrored ends add no larger value
    if (begin < 0) begin = 0;
    if (end > a.n_bands) end = a.n_bands;
    float before = -1e30f;
    for (int b = begin; b < end; b++) {
        const float x = __ldg(mel + b * a.n_frames + t), raised = !a.precise && x < floor ? (float)floor : x;
        before = raised > before ? raised : before;
    }
    const float now = __ldg(mel + band * a.n_frames + t + a.lag);
    const float rise = a.precise ? (float)(level_of(now, floor) - level_of(before, floor))
                                 : (now < floor ? (float)floor : now) - before;
    return rise < 0 ? 0 : rise;
}

// Tile `tile` of all signals, its rises in `rises` [n_bands][WT_ONSET_TILE + 1].
static __device__ __forceinline__ void make_tile(const wt_onset_args &a, float *rises, long long tile)
{
    const long long tiles = (a.n_frames + WT_ONSET_TILE - 1) / WT_ONSET_TILE, signal = tile / tiles;
    const long long first = tile % tiles * WT_ONSET_TILE; // of the envelope
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *mel = a.mel + signal * a.n_bands * a.n_frames;
    float *out = a.out + signal * a.n_frames;
    const long long t = first + lane - a.shift;
    const double floor = a.has_floor || !a.precise ? a.floor : wt__onset_db(__int_as_float(a.peaks[signal])) - 80;
    for (int band = warp; band < a.n_bands; band += 8)
        rises[band * (WT_ONSET_TILE + 1) + lane] =
            t >= 0 && t + a.shift < a.n_frames ? rise_of(a, mel, band, t, floor) : 0;
    __syncthreads();
    if (a.median) {
        for (int f = warp; f < WT_ONSET_TILE; f += 8) {
            const float value = a.n_bands <= 128 ? median_of(rise_keys<4>(rises + f, a.n_bands))
                                                 : median_of(rise_keys<0>(rises + f, a.n_bands));
            if (lane == 0 && first + f < a.n_frames) out[first + f] = value;
        }
    } else if (warp == 0 && first + lane < a.n_frames) {
        out[first + lane] = mean_of(rises + lane, a.n_bands);
    }
}

extern "C" __global__ void __launch_bounds__(256) onset_strength(wt_onset_args a)
{
    for_tiles<float>(a.places, [&](float *rises, long long tile, int) { make_tile(a, rises, tile); });
}

extern "C" __global__ void onset_detrend(wt_onset_args a)
{
    const long long signal = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (signal >= a.n_signals) return;
    float *out = a.out + signal * a.n_frames;
    double before = 0, slow = 0;
    for (long long t = 0; t < a.n_frames; t++) {
        slow = out[t] - before + 0.99 * slow;
        before = out[t];
        out[t] = (float)slow;
    }
}

// ---- detection

static __device__ bool stands_out(const wt_onsets_args &a, const float *x, long long at, double offset, double scale)
{
    long long begin = at - a.pre_max, end = at + a.post_max;
    if (begin < 0) begin = 0;
    if (end > a.n_frames) end = a.n_frames;
    const float here = x[at];
    for (long long i = begin; i < end; i++)
        if (x[i] > here) return false;
    begin = at - a.pre_avg, end = at + a.post_avg;
    if (begin < 0) begin = 0;
    if (end > a.n_frames) end = a.n_frames;
    double sum = 0;
    for (long long i = begin; i < end; i++) sum += (x[i] - offset) / scale;
    return (here - offset) / scale >= sum / (double)(end - begin) + a.delta;
}

// The last local minimum at or before the event; the ends are none.
static __device__ int moved_back(const float *x, long long n, int event)
{
    long long at = event < n - 2 ? event : n - 2;
    while (at > 0 && !(x[at] <= x[at - 1] && x[at] < x[at + 1])) at--;
    return at > 0 ? (int)at : 0;
}

struct onset_range {
    float least[8], most[8];
    int bad[8];
};

// Least and most of the envelope; false when it is constant or holds what is no number.
static __device__ bool range_of(const float *x, long long n, onset_range &shared, float &least, float &most)
{
    const float infinity = __int_as_float(0x7f800000);
    int bad = 0;
    least = infinity, most = -infinity;
    for (long long i = threadIdx.x; i < n; i += 256) {
        bad |= !isfinite(x[i]);
        least = fminf(least, x[i]), most = fmaxf(most, x[i]);
    }
    for (int step = 16; step; step /= 2) {
        least = fminf(least, __shfl_xor_sync(ALL, least, step));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
        bad |= __shfl_xor_sync(ALL, bad, step);
    }
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) shared.least[warp] = least, shared.most[warp] = most, shared.bad[warp] = bad;
    __syncthreads();
    for (int w = 0; w < 8; w++) {
        least = fminf(least, shared.least[w]), most = fmaxf(most, shared.most[w]);
        bad |= shared.bad[w];
    }
    return !bad && most > least;
}

extern "C" __global__ void __launch_bounds__(256) onset_detect(wt_onsets_args a)
{
    __shared__ onset_range range;
    __shared__ unsigned passed[8];
    __shared__ int found;
    const float *x = a.envelope + blockIdx.x * a.n_frames;
    int *frames = a.frames + blockIdx.x * a.n_frames, count = 0;
    float least, most;
    const bool varied = range_of(x, a.n_frames, range, least, most) || a.plain; // the same for all threads
    const double offset = a.plain ? 0 : least, scale = a.plain ? 1 : (double)most - least + 2.2250738585072014e-308;
    long long next = 0; // thread 0's: the first frame that may be an onset again
    for (long long begin = 0; varied && begin < a.n_frames; begin += 256) {
        const long long at = begin + threadIdx.x;
        const unsigned votes = __ballot_sync(ALL, at < a.n_frames && stands_out(a, x, at, offset, scale));
        if (threadIdx.x % 32 == 0) passed[threadIdx.x / 32] = votes;
        __syncthreads();
        for (int w = 0; w < 8 && threadIdx.x == 0; w++)
            for (unsigned rest = passed[w]; rest; rest &= rest - 1) {
                const long long frame = begin + 32 * w + __ffs((int)rest) - 1;
                if (frame < next) continue;
                frames[count++] = (int)frame;
                next = frame + a.wait + 1;
            }
        __syncthreads();
    }
    if (threadIdx.x == 0) a.counts[blockIdx.x] = found = count;
    __syncthreads();
    for (int k = threadIdx.x; a.backtrack && k < found; k += 256) frames[k] = moved_back(x, a.n_frames, frames[k]);
}
