// Short-time spectra of batches of signals, compiled for one SPECTRUM_N:
//
//   spectrum_stft     samples to spectra: complex, magnitude, power or phase
//   spectrum_istft    spectra to samples
//   spectrum_mel      samples to mel bands, linear or logarithmic, in one pass: the spectra never leave the chip
//   spectrum_limit    what follows when a signal's largest band is known: the limit, the gain
//   spectrum_product  the same and a matrix after it (the cosine transform of MFCC)
//
// The first three: SPECTRUM_THREADS threads transform a pair of frames, SPECTRUM_SEQUENCES pairs at once,
// SPECTRUM_ROUNDS times. Samples and window are read side by side, spectra written so; bands are gathered over the
// block's frames and written in runs. In spectrum_mel a lane sums a run of bins of both frames, for the band that falls
// there and the one that rises: one read of shared memory and one of the weights for four products.
//
// spectrum_istft: a block owns `hops` hops of the output, transforms every frame that touches them (a few at its
// beginning are done by its neighbour too), and adds them in order (spectrum_overlap.cuh): the result never depends on
// the launch.
//
// Judge: the CPU's ops, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"

extern __shared__ float2 all_shared[];

struct spectrum_place {
    int thread, sequence;
    long long line;
    int block; // of the line
    float2 *points;
};

static __device__ __forceinline__ spectrum_place find_place(int blocks_per_line)
{
    spectrum_place p;
    p.thread = threadIdx.x % SPECTRUM_THREADS;
    p.sequence = threadIdx.x / SPECTRUM_THREADS;
    p.line = blockIdx.x / blocks_per_line;
    p.block = blockIdx.x % blocks_per_line;
    p.points = all_shared + p.sequence * SPECTRUM_POINTS;
    return p;
}

static __device__ __forceinline__ float as_real(float2 x, int kind)
{
    const float power = x.x * x.x + x.y * x.y;
    return kind == 1 ? sqrtf(power) : kind == 2 ? power : atan2f(x.y, x.x);
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT_WIDE)
    spectrum_stft(wt_spectrum_stft_args a)
{
    const spectrum_place p = find_place((a.frames.n_frames + SPECTRUM_FRAMES - 1) / SPECTRUM_FRAMES);
    const float *pcm = a.frames.pcm + p.line * a.frames.n_samples;
    for (int round = 0; round < SPECTRUM_ROUNDS; round++) {
        const int t = p.block * SPECTRUM_FRAMES + 2 * (round * SPECTRUM_SEQUENCES + p.sequence);
        const long long row = (p.line * a.frames.n_frames + t) * SPECTRUM_BINS;
        const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames;
        float *out = a.out + row;
        spectrum_bins(a.frames, p.thread, p.points, pcm, t, [&](int k, float2 x, float2 y) {
            if (a.kind == 0) {
                if (first) ((float2 *)a.out)[row + k] = x;
                if (second) ((float2 *)a.out)[row + SPECTRUM_BINS + k] = y;
            } else {
                if (first) out[k] = as_real(x, a.kind);
                if (second) out[SPECTRUM_BINS + k] = as_real(y, a.kind);
            }
        });
    }
}

// ---- back

// What the squared windows of all frames that count add up to at sample `at` of the padded signal.
static __device__ float squares(const wt_spectrum_istft_args &a, long long at)
{
    const int hop = a.walk.hop;
    float sum = 0;
    for (long long t = at <= 0x7fffffff ? (int)at / hop : at / hop; t >= 0 && at - t * hop < SPECTRUM_N; t--)
        if (t < a.n_frames) {
            const float w = __ldg(a.walk.window + (at - t * hop));
            sum += w * w;
        }
    return sum;
}

// The sum at `at`, near an end of the signal, by what the windows add up to there.
static __device__ __noinline__ float fixed(const wt_spectrum_istft_args &a, long long at, float sum)
{
    const float by = squares(a, at);
    return by > 1.17549435e-38f ? sum / by : sum;
}

// Of both frames, from row `in` on, the bins of points b + k STEP, mirrored above the middle; zeros of a second frame
// that there is not. All loads are on their way before one is used.
static __device__ __forceinline__ void read_points(const float2 *in, int b, bool second, float2 (&x)[SPECTRUM_RADIX],
                                                   float2 (&y)[SPECTRUM_RADIX])
{
    const float2 *up = in + b, *down = in + (SPECTRUM_N - b);
    asm("" : "+l"(up), "+l"(down)); // constant offsets, as in spectrum_fill
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX; k++) {
        const int step = k * SPECTRUM_STEP;
        const bool mirrored = SPECTRUM_RADIX % 2 ? 2 * (b + step) > SPECTRUM_N : 2 * k >= SPECTRUM_RADIX;
        const float2 *bin = mirrored ? down - step : up + step;
        x[k] = __ldg(bin), y[k] = make_float2(0, 0);
        if (second) y[k] = __ldg(bin + SPECTRUM_BINS);
    }
}

// Point p of both frames as one complex signal, parts exchanged; points above the middle are mirrored bins.
static __device__ __forceinline__ float2 pair_point(int p, float2 x, float2 y)
{
    if (p == 0 || 2 * p == SPECTRUM_N) x.y = y.y = 0;
    return 2 * p > SPECTRUM_N ? make_float2(y.x - x.y, x.x + y.y) : make_float2(x.y + y.x, x.x - y.y);
}

// Are all frames there that touch what a round from sample `from` of the padded signal gives?
static __device__ __forceinline__ bool all_there(const wt_spectrum_istft_args &a, long long from)
{
    return from >= SPECTRUM_N && from + SPECTRUM_PAIR_FRAMES * a.walk.hop <= (long long)a.n_frames * a.walk.hop;
}

enum { SUMS = SPECTRUM_SAMPLES / 2 };

// Samples from + thread + m THREADS, all a block's own: all loads are on their way before one is used.
static __device__ __forceinline__ void give_all(const wt_spectrum_istft_args &a, long long line, long long from,
                                                const float (&sums)[SUMS])
{
    constexpr int HOP = (SUMS + 1) / 2; // of a thread
    float *out = a.out + line * a.walk.length + from - a.walk.margin + threadIdx.x, by[HOP];
    const float *squares = a.squares + threadIdx.x;
    asm("" : "+l"(out), "+l"(squares));
    if (all_there(a, from)) {
#pragma unroll
        for (int m = 0; m < HOP; m++) by[m] = __ldg(squares + m * SPECTRUM_THREADS);
#pragma unroll
        for (int m = 0; m < SUMS; m++) out[m * SPECTRUM_THREADS] = sums[m] * by[m % HOP];
    } else {
        float some[SUMS];
#pragma unroll
        for (int m = 0; m < SUMS; m++) some[m] = sums[m];
#pragma unroll 1
        for (int m = 0; m < SUMS; m++)
            out[m * SPECTRUM_THREADS] = fixed(a, from + threadIdx.x + m * SPECTRUM_THREADS, some[m]);
    }
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT_WIDE)
    spectrum_istft(wt_spectrum_istft_args a)
{
    constexpr int R = SPECTRUM_RADIX, STEP = SPECTRUM_STEP;
    spectrum_walk(
        a.walk, all_shared, [](long long, int, int, float2 *) {},
        [&](long long line, int t, int b, const float2 *, float2(&v)[R]) {
            const float2 *in = (const float2 *)a.in + (line * a.stored_frames + t) * SPECTRUM_BINS;
            float2 x[R] = {}, y[R] = {};
            if (t < a.n_frames) read_points(in, b, t + 1 < a.n_frames, x, y);
#pragma unroll
            for (int k = 0; k < R; k++) v[k] = pair_point(b + k * STEP, x[k], y[k]);
        },
        [&](long long line, long long from, int i, int phase, float sum) {
            a.out[line * a.walk.length + from - a.walk.margin + i] =
                all_there(a, from) ? sum * __ldg(a.squares + phase) : fixed(a, from + i, sum);
        },
        [&](long long line, long long from, const float(&sums)[SUMS]) { give_all(a, line, from, sums); });
}

// ---- mel

static __device__ __forceinline__ float raised(float square, float power)
{
    return power == 1 ? sqrtf(square) : powf(square, 0.5f * power);
}

enum {
    MEL_LANES = wt__spectrum_lanes(SPECTRUM_N),
    MEL_TEAMS = SPECTRUM_THREADS / MEL_LANES,
    MEL_PITCH = MEL_LANES | 1,
    MEL_AT_ONCE = SPECTRUM_SEQUENCES < 8 ? SPECTRUM_SEQUENCES : 8,
    MEL_PLAIN = !wt__spectrum_sloped(SPECTRUM_N), // powers side by side, whatever the bank is
    MEL_ACROSS =
        SPECTRUM_FRAMES < SPECTRUM_BLOCK ? SPECTRUM_FRAMES : SPECTRUM_BLOCK, // frames that are written at once,
    MEL_ROWS = SPECTRUM_BLOCK / MEL_ACROSS                                   // and bands
};

static __device__ __forceinline__ int place_of(const wt_spectrum_slopes &s, int k)
{
    return MEL_PLAIN ? wt__spectrum_base(SPECTRUM_N) + k : __ldg(s.places + k);
}

static __device__ __forceinline__ int room_of(const wt_spectrum_slopes &s)
{
    return MEL_PLAIN ? wt__spectrum_room(SPECTRUM_N) : s.room;
}

// What each run adds to its two bands, of both frames. No two lanes meet in a bank.
static __device__ __forceinline__ void sum_runs(const wt_spectrum_slopes &s, int thread, float2 *points)
{
    const int lane = thread % MEL_LANES;
#pragma unroll 1
    for (int g = thread / MEL_LANES; g < s.n_groups; g += MEL_TEAMS) {
        const int run = g * MEL_LANES + lane, row = __ldg(s.rows + g), rows = __ldg(s.rows + g + 1) - row;
        const int length = __ldg(s.lengths + run);
        const float2 *weights = (const float2 *)s.weights + row * MEL_LANES + lane;
        const float2 *powers = points + s.powers + row * MEL_PITCH + lane;
        float2 risen = make_float2(0, 0), fallen = risen;
#pragma unroll 1
        for (int i = 0; i < rows; i += 4, weights += 4 * MEL_LANES, powers += 4 * MEL_PITCH)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float2 w = __ldg(weights + k * MEL_LANES);
                const float2 x = i + k < length ? powers[k * MEL_PITCH] : make_float2(0, 0);
                risen.x += w.x * x.x, risen.y += w.x * x.y;
                fallen.x += w.y * x.x, fallen.y += w.y * x.y;
            }
        points[s.risen + run] = risen;
        points[s.fallen + run] = fallen;
    }
}

static __device__ __forceinline__ void put_band(const wt_spectrum_mel_args &a, float *sums, int m, int frame,
                                                float2 sum)
{
    if (a.logarithm) {
        sum.x = wt__spectrum_log(sum.x, a.amin, a.scale, a.offset);
        sum.y = wt__spectrum_log(sum.y, a.amin, a.scale, a.offset);
    }
    sums[m * (SPECTRUM_FRAMES + 1) + frame] = sum.x;
    sums[m * (SPECTRUM_FRAMES + 1) + frame + 1] = sum.y;
}

// Both frames' bands from their runs.
static __device__ __forceinline__ void join_runs(const wt_spectrum_mel_args &a, int thread, const float2 *points,
                                                 float *sums, int frame)
{
    for (int m = thread; m < a.n_mels; m += SPECTRUM_THREADS) {
        const int begin = __ldg(a.slopes.runs + m), peak = __ldg(a.slopes.runs + m + 1);
        const int end = __ldg(a.slopes.runs + m + 2);
        float2 sum = make_float2(0, 0);
#pragma unroll 1
        for (int r = begin; r < peak; r++) sum = fft_add(sum, points[a.slopes.risen + r]);
#pragma unroll 1
        for (int r = peak; r < end; r++) sum = fft_add(sum, points[a.slopes.fallen + r]);
        put_band(a, sums, m, frame, sum);
    }
}

// Bands of all sequences' frames, `frame` the first one's: a thread has a band of MEL_AT_ONCE sequences, which share
// what it reads of the weights.
static __device__ __forceinline__ void sum_bands(const wt_spectrum_mel_args &a, float *sums, int frame)
{
    constexpr int SHARES = (SPECTRUM_SEQUENCES + MEL_AT_ONCE - 1) / MEL_AT_ONCE;
    const int room = room_of(a.slopes);
    for (int i = threadIdx.x; i < SHARES * a.n_mels; i += SPECTRUM_BLOCK) {
        const int m = i % a.n_mels, sequence = i / a.n_mels * MEL_AT_ONCE, length = __ldg(a.lengths + m);
        const float2 *powers = all_shared + sequence * room + a.slopes.powers + __ldg(a.begins + m);
        const float *weights = a.weights + m;
        float2 sum[MEL_AT_ONCE] = {};
#pragma unroll 1
        for (int k = 0; k < length; k++, weights += a.n_mels) {
            const float w = __ldg(weights);
#pragma unroll
            for (int s = 0; s < MEL_AT_ONCE; s++) {
                if (SPECTRUM_SEQUENCES % MEL_AT_ONCE && sequence + s >= SPECTRUM_SEQUENCES) continue;
                const float2 power = powers[s * room + k];
                sum[s].x += w * power.x, sum[s].y += w * power.y;
            }
        }
#pragma unroll
        for (int s = 0; s < MEL_AT_ONCE; s++)
            if (sequence + s < SPECTRUM_SEQUENCES) put_band(a, sums, m, frame + 2 * (sequence + s), sum[s]);
    }
}

struct spectrum_bounds {
    float most = __int_as_float(0xff800000), least = __int_as_float(0x7f800000); // -infinity, infinity
    __device__ __forceinline__ void meet(float x) { most = fmaxf(most, x), least = fminf(least, x); }
};

// The block's bands, those of frames from t on; returns the bounds of the thread's.
static __device__ __forceinline__ spectrum_bounds write_bands(const wt_spectrum_mel_args &a, const float *sums,
                                                              long long line, int t)
{
    const int left = a.frames.n_frames - t, n = left < SPECTRUM_FRAMES ? left : SPECTRUM_FRAMES;
    spectrum_bounds bounds;
    const auto leave = [&](float *to, float value) { *to = value, bounds.meet(value); };
    if (a.frames_first) {
        float *out = a.out + (line * a.frames.n_frames + t) * a.n_mels;
        for (int f = 0; f < n; f++)
            for (int m = threadIdx.x; m < a.n_mels; m += SPECTRUM_BLOCK)
                leave(out + f * a.n_mels + m, sums[m * (SPECTRUM_FRAMES + 1) + f]);
        return bounds;
    }
    const int first = threadIdx.x / MEL_ACROSS;
    for (int f = threadIdx.x % MEL_ACROSS; f < n && first < MEL_ROWS; f += MEL_ACROSS) {
        float *to = a.out + (line * a.n_mels + first) * a.frames.n_frames + t + f;
        const float *from = sums + first * (SPECTRUM_FRAMES + 1) + f;
        for (int m = first; m < a.n_mels; m += MEL_ROWS) {
            leave(to, *from);
            to += (long long)MEL_ROWS * a.frames.n_frames, from += MEL_ROWS * (SPECTRUM_FRAMES + 1);
        }
    }
    return bounds;
}

// Coefficients of the block's frames, as long as no limit reaches their bands: bands are added to their mirrors, which
// halves the products. A thread has four even and four odd ones of one frame. Sums in parts, as dsp/mfcc.c says.
static __device__ __forceinline__ void write_product(const wt_spectrum_mel_args &a, const float *sums, long long line,
                                                     int t)
{
    constexpr int PITCH = SPECTRUM_FRAMES + 1, AT_ONCE = SPECTRUM_BLOCK / MEL_ACROSS;
    const wt_spectrum_product &p = a.product;
    const int frame = threadIdx.x % MEL_ACROSS, half = (a.n_mels + 1) / 2, n_odd = p.n_groups - p.n_even;
    for (int f = frame; f < SPECTRUM_FRAMES && t + f < a.frames.n_frames; f += MEL_ACROSS)
        for (int g = threadIdx.x / MEL_ACROSS; g < p.n_even && threadIdx.x < AT_ONCE * MEL_ACROSS; g += AT_ONCE) {
            const float4 *even = (const float4 *)p.matrix + g, *odd = even + (g < n_odd ? p.n_even : 0);
            const float *low = sums + f, *high = low + (a.n_mels - 1) * PITCH;
            float sum[8] = {};
            for (int begin = 0; begin < half; begin += 16) {
                const int end = begin + 16 < half ? begin + 16 : half;
                float part[8] = {};
#pragma unroll 4
                for (int m = begin; m < end; m++, even += p.n_groups, odd += p.n_groups, low += PITCH, high -= PITCH) {
                    const float4 u = __ldg(even), v = __ldg(odd);
                    const float x = *low, y = low < high ? *high : 0, both = x + y, apart = x - y;
                    part[0] += both * u.x, part[1] += apart * v.x, part[2] += both * u.y, part[3] += apart * v.y;
                    part[4] += both * u.z, part[5] += apart * v.z, part[6] += both * u.w, part[7] += apart * v.w;
                }
#pragma unroll
                for (int i = 0; i < 8; i++) sum[i] += part[i];
            }
            float *out = p.out + (line * p.n_out + 8 * g) * a.frames.n_frames + t + f;
#pragma unroll
            for (int i = 0; i < 8; i++, out += a.frames.n_frames)
                if (8 * g + i < p.n_out) *out = sum[i];
        }
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) spectrum_mel(wt_spectrum_mel_args a)
{
    const spectrum_place p = find_place((a.frames.n_frames + SPECTRUM_FRAMES - 1) / SPECTRUM_FRAMES);
    const float *pcm = a.frames.pcm + p.line * a.frames.n_samples;
    const int room = room_of(a.slopes);
    float2 *points = all_shared + p.sequence * room;
    float *sums = (float *)(all_shared + SPECTRUM_SEQUENCES * room); // [n_mels][FRAMES + 1]
    int *most = (int *)(sums + a.n_mels * (SPECTRUM_FRAMES + 1)), *least = most + 1;
    if (threadIdx.x == 0) *most = (int)0x80000000, *least = 0x7fffffff;
    for (int round = 0; round < SPECTRUM_ROUNDS; round++) {
        const int local = 2 * (round * SPECTRUM_SEQUENCES + p.sequence);
        spectrum_bins(a.frames, p.thread, points, pcm, p.block * SPECTRUM_FRAMES + local,
                      [&](int k, float2 x, float2 y) {
                          const int place = place_of(a.slopes, k);
                          if (place >= 0) points[place] = make_float2(x.x * x.x + x.y * x.y, y.x * y.x + y.y * y.y);
                      });
        if (a.power != 2) {
            __syncthreads();
            for (int k = p.thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
                const int place = place_of(a.slopes, k);
                if (place < 0) continue;
                const float2 square = points[place];
                points[place] = make_float2(raised(square.x, a.power), raised(square.y, a.power));
            }
        }
        __syncthreads();
        if (a.slopes.n_groups) {
            sum_runs(a.slopes, p.thread, points);
            __syncthreads();
            join_runs(a, p.thread, points, sums, local);
        } else {
            sum_bands(a, sums, 2 * round * SPECTRUM_SEQUENCES);
        }
    }
    __syncthreads();
    const spectrum_bounds bounds = write_bands(a, sums, p.line, p.block * SPECTRUM_FRAMES);
    if (a.product.least) write_product(a, sums, p.line, p.block * SPECTRUM_FRAMES);
    if (!a.peaks) return;
    if (bounds.most >= bounds.least) {
        atomicMax(most, wt__spectrum_order(__float_as_int(bounds.most)));
        if (a.product.least) atomicMin(least, wt__spectrum_order(__float_as_int(bounds.least)));
    }
    __syncthreads();
    if (threadIdx.x) return;
    atomicMax(a.peaks + p.line / a.channels, *most);
    if (a.product.least) a.product.least[blockIdx.x] = __int_as_float(wt__spectrum_order(*least));
}

// ---- when the peak is known

struct limits {
    float floor, gain, offset;
    __device__ __forceinline__ float of(float x) const { return (x < floor ? floor : x) * gain + offset; }
};

static __device__ __forceinline__ limits limits_of(const wt_spectrum_finish_args &a, long long signal)
{
    const float peak = __int_as_float(wt__spectrum_order(a.peaks[signal]));
    return {peak - a.range, a.gain, a.offset - a.relative * peak};
}

// 256 threads, four numbers each.
extern "C" __global__ void __launch_bounds__(256) spectrum_limit(wt_spectrum_finish_args a)
{
    const long long count = (long long)a.channels * a.n_mels * a.n_frames, chunks = (count + 1023) / 1024;
    const long long signal = blockIdx.x / chunks, at = blockIdx.x % chunks * 1024 + threadIdx.x;
    const limits l = limits_of(a, signal);
    float *x = a.mel + signal * count;
    for (int i = 0; i < 4; i++)
        if (at + i * 256 < count) {
            const float value = x[at + i * 256], within = l.of(value);
            if (within != value) x[at + i * 256] = within; // most are
        }
}

// Four frames a lane, four coefficients a warp at a time: a number of the tile meets four of the matrix, and one of the
// matrix four of the tile. Where columns of the matrix are even or odd about its middle, as a cosine transform's, the
// tile has sums and differences of the bands that mirror each other, and products are half as many.
static __device__ __forceinline__ void make_tile(const wt_spectrum_finish_args &a, int line, int begin)
{
    constexpr int EACH = WT_SPECTRUM_PRODUCT / 32;
    const wt_spectrum_product &p = a.product;
    float *tile = (float *)all_shared; // [rows][WT_SPECTRUM_PRODUCT]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, half = (a.n_mels + 1) / 2;
    const int t = begin + lane;
    const limits l = limits_of(a, line / a.channels);
    const float *mel = a.mel + (long long)line * a.n_mels * a.n_frames + t;
    for (int first = warp; first < half; first += 4 * warps) {
        float some[4][2][EACH]; // a band and its mirror: all on their way before one is used
        const auto read = [&](auto frame) {
#pragma unroll
            for (int k = 0; k < 4; k++) { // what there is not is read as the last there is
                const int m = first + k * warps < half ? first + k * warps : half - 1;
                const float *low = mel + (long long)m * a.n_frames,
                            *high = mel + (long long)(a.n_mels - 1 - m) * a.n_frames;
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    some[k][0][i] = __ldg(low + frame(32 * i)), some[k][1][i] = __ldg(high + frame(32 * i));
            }
        };
        if (t - lane + WT_SPECTRUM_PRODUCT <= a.n_frames)
            read([&](int i) { return i; });
        else
            read([&](int i) { return min(i, a.n_frames - 1 - t); });
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int m = first + k * warps, mirror = a.n_mels - 1 - m;
            if (m >= half) break;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const float x = l.of(some[k][0][i]), y = m < mirror ? l.of(some[k][1][i]) : 0;
                float *const to = tile + 32 * i + lane;
                to[m * WT_SPECTRUM_PRODUCT] = p.n_even ? x + y : x;
                if (p.n_even || m < mirror)
                    to[(p.n_even ? half + m : mirror) * WT_SPECTRUM_PRODUCT] = p.n_even ? x - y : y;
            }
        }
    }
    __syncthreads();
    const int rows = p.n_even ? half : a.n_mels;
    for (int g = warp; g < p.n_groups; g += warps) {
        const bool odd = p.n_even && g >= p.n_even;
        const float *numbers = tile + (odd ? half * WT_SPECTRUM_PRODUCT : 0) + lane;
        const float4 *weights = (const float4 *)p.matrix + g;
        float sum[EACH][4] = {};
        for (int begin = 0; begin < rows; begin += 16) { // in parts, as dsp/mfcc.c says
            float part[EACH][4] = {};
            const int end = begin + 16 < rows ? begin + 16 : rows;
#pragma unroll 4
            for (int m = begin; m < end; m++, numbers += WT_SPECTRUM_PRODUCT, weights += p.n_groups) {
                const float4 w = __ldg(weights);
#pragma unroll
                for (int i = 0; i < EACH; i++) {
                    const float value = numbers[32 * i];
                    part[i][0] += value * w.x, part[i][1] += value * w.y;
                    part[i][2] += value * w.z, part[i][3] += value * w.w;
                }
            }
#pragma unroll
            for (int i = 0; i < 4 * EACH; i++) sum[i / 4][i % 4] += part[i / 4][i % 4];
        }
        const int k = odd ? 8 * (g - p.n_even) + 1 : p.n_even ? 8 * g : 4 * g, apart = p.n_even ? 2 : 1;
        float *out = p.out + ((long long)line * p.n_out + k) * a.n_frames + t;
#pragma unroll
        for (int j = 0; j < 4; j++, out += (long long)apart * a.n_frames)
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (k + j * apart < p.n_out && t + 32 * i < a.n_frames) out[32 * i] = sum[i][j];
    }
}

// Does the limit reach a band of the tile?
static __device__ __forceinline__ bool reaches(const wt_spectrum_finish_args &a, int line, int begin)
{
    if (!a.product.least) return true;
    const int blocks = (a.n_frames + SPECTRUM_FRAMES - 1) / SPECTRUM_FRAMES; // of a line, in spectrum_mel
    const int end = begin + WT_SPECTRUM_PRODUCT < a.n_frames ? begin + WT_SPECTRUM_PRODUCT : a.n_frames;
    const float floor = limits_of(a, line / a.channels).floor;
    bool reached = false;
    for (int b = begin / SPECTRUM_FRAMES; b * SPECTRUM_FRAMES < end; b++)
        reached |= __ldg(a.product.least + (long long)line * blocks + b) < floor;
    return reached;
}

// A block has some tiles in a row, looks at as many of them at a time as it has threads, and makes those it must.
extern "C" __global__ void __launch_bounds__(512) spectrum_product(wt_spectrum_finish_args a)
{
    __shared__ bool wanted[512];
    const int tiles = (a.n_frames + WT_SPECTRUM_PRODUCT - 1) / WT_SPECTRUM_PRODUCT; // of a line
    const int each = (a.n_tiles + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each;
    const int last = first + each < a.n_tiles ? first + each : a.n_tiles;
    for (int begin = first; begin < last; begin += blockDim.x) {
        const int mine = begin + threadIdx.x;
        if (mine < last) wanted[threadIdx.x] = reaches(a, mine / tiles, mine % tiles * WT_SPECTRUM_PRODUCT);
        __syncthreads();
        for (int i = begin; i < last && i < begin + (int)blockDim.x; i++) {
            if (!wanted[i - begin]) continue;
            make_tile(a, i / tiles, i % tiles * WT_SPECTRUM_PRODUCT);
            __syncthreads(); // the next one's numbers go where this one's are read
        }
        __syncthreads();
    }
}
