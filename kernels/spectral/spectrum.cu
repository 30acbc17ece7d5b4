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

// wt__spectrum_log of normal numbers by the GPU's own logarithm, within 2.4e-7 of it, in a fifth of the instructions.
static __device__ __forceinline__ float band_log(const wt_spectrum_mel_args &a, float x)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(a.amin));
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return a.scale * y + a.offset;
}

static __device__ __forceinline__ void put_band(const wt_spectrum_mel_args &a, float *sums, int m, int frame,
                                                float2 sum)
{
    if (a.logarithm) sum = make_float2(band_log(a, sum.x), band_log(a, sum.y));
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

// The block's bands, those of frames from t on; returns the largest of the thread's, -infinity when it had none.
static __device__ __forceinline__ float write_bands(const wt_spectrum_mel_args &a, const float *sums, long long line,
                                                    int t)
{
    const int left = a.frames.n_frames - t, n = left < SPECTRUM_FRAMES ? left : SPECTRUM_FRAMES;
    float largest = __int_as_float(0xff800000); // -infinity
    const auto leave = [&](float *to, float value) { *to = value, largest = fmaxf(largest, value); };
    if (a.frames_first) {
        float *out = a.out + (line * a.frames.n_frames + t) * a.n_mels;
        for (int f = 0; f < n; f++)
            for (int m = threadIdx.x; m < a.n_mels; m += SPECTRUM_BLOCK)
                leave(out + f * a.n_mels + m, sums[m * (SPECTRUM_FRAMES + 1) + f]);
        return largest;
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
    return largest;
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) spectrum_mel(wt_spectrum_mel_args a)
{
    const spectrum_place p = find_place((a.frames.n_frames + SPECTRUM_FRAMES - 1) / SPECTRUM_FRAMES);
    const float *pcm = a.frames.pcm + p.line * a.frames.n_samples;
    const int room = room_of(a.slopes);
    float2 *points = all_shared + p.sequence * room;
    float *sums = (float *)(all_shared + SPECTRUM_SEQUENCES * room); // [n_mels][FRAMES + 1]
    int *peak = (int *)(sums + a.n_mels * (SPECTRUM_FRAMES + 1));
    if (threadIdx.x == 0) *peak = (int)0x80000000;
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
    const float largest = write_bands(a, sums, p.line, p.block * SPECTRUM_FRAMES);
    if (!a.peaks) return;
    if (largest > __int_as_float(0xff800000)) atomicMax(peak, wt__spectrum_order(__float_as_int(largest)));
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(a.peaks + p.line / a.channels, *peak);
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

// D += A B of a warp in tf32: A 16 x 8, B 8 x 8. Lane 4 g + t holds of A (row g, column t), (g + 8, t), (g, t + 4),
// (g + 8, t + 4); of B (row t, column g), (t + 4, g); of D (row g; columns 2t, 2t + 1), (g + 8; the same). Low bits of
// A and B are not looked at. Source: PTX ISA, mma.m16n8k8 with .tf32.
static __device__ __forceinline__ void mma_tf32(float (&d)[4], const float (&a)[4], float b0, float b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_int(a[0])), "r"(__float_as_int(a[1])), "r"(__float_as_int(a[2])), "r"(__float_as_int(a[3])),
          "r"(__float_as_int(b0)), "r"(__float_as_int(b1)));
}

// x to the nearest tf32, and what that leaves out; a NaN stays in the rest.
static __device__ __forceinline__ void part_tf32(float x, float &high, float &rest)
{
    high = __int_as_float((__float_as_int(x) + 0x1000) & ~0x1fff);
    rest = x - high;
}

enum {
    PRODUCT_WARPS = 8,
    PRODUCT_READS = 5,                       // bands and mirrors a warp has on their way at once
    PRODUCT_SETS = WT_SPECTRUM_PRODUCT / 32, // of 32 frames, a warp's
    PRODUCT_GROUPS = 3                       // of eight columns, a warp's
};

// The tile of spectrum_product: frames along rows of bands, or of sums and of differences of the bands that mirror each
// other; zeros in rows up to n_steps.
static __device__ __forceinline__ void fill_product(const wt_spectrum_finish_args &a, float *tile, int line, int t)
{
    constexpr int EACH = WT_SPECTRUM_PRODUCT / 32, ROW = WT_SPECTRUM_PRODUCT_ROW;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = (a.n_mels + 1) / 2;
    const limits l = limits_of(a, line / a.channels);
    const float *mel = a.mel + (long long)line * a.n_mels * a.n_frames + t;
    for (int first = warp; first < half; first += PRODUCT_READS * PRODUCT_WARPS) {
        float some[PRODUCT_READS][2][EACH]; // all on their way before one is used
        const auto read = [&](auto frame) {
#pragma unroll
            for (int k = 0; k < PRODUCT_READS; k++) { // what there is not is read as the last there is
                const int m = min(first + k * PRODUCT_WARPS, half - 1);
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
        for (int k = 0; k < PRODUCT_READS; k++) {
            const int m = first + k * PRODUCT_WARPS, mirror = a.n_mels - 1 - m;
            if (m >= half) break;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const float x = l.of(some[k][0][i]), y = m < mirror ? l.of(some[k][1][i]) : 0;
                float *const to = tile + 32 * i + lane;
                to[m * ROW] = a.n_even ? x + y : x;
                if (a.n_even || m < mirror) to[(a.n_even ? 8 * a.n_steps + m : mirror) * ROW] = a.n_even ? x - y : y;
            }
        }
    }
    const int rows = a.n_even ? half : a.n_mels, more = (8 * a.n_steps - rows) * ROW;
    for (int i = threadIdx.x; i < more; i += blockDim.x) {
        tile[rows * ROW + i] = 0;
        if (a.n_even) tile[(8 * a.n_steps + rows) * ROW + i] = 0;
    }
}

// Tensor cores multiply 32 frames of the tile with up to 24 coefficients a warp, each number as a tf32 and the rest,
// the product of both rests left out: 2^-22. Where columns of the matrix are even or odd about its middle, as a cosine
// transform's, the tile has sums and differences of the bands that mirror each other, and products are half as many.
extern "C" __global__ void __launch_bounds__(32 * PRODUCT_WARPS, 3) spectrum_product(wt_spectrum_finish_args a)
{
    constexpr int ROW = WT_SPECTRUM_PRODUCT_ROW, G = PRODUCT_GROUPS;
    float *tile = (float *)all_shared;
    const int tiles = (a.n_frames + WT_SPECTRUM_PRODUCT - 1) / WT_SPECTRUM_PRODUCT, lane = threadIdx.x % 32;
    const int block = gridDim.x - 1 - blockIdx.x; // the bands written last are still in the second-level cache
    const int line = block / tiles, begin = block % tiles * WT_SPECTRUM_PRODUCT;
    fill_product(a, tile, line, begin + lane);
    __syncthreads();
    const int n_first = a.n_even ? a.n_even : a.n_groups, bundles = (n_first + G - 1) / G;
    const int all = bundles + (a.n_groups - n_first + G - 1) / G;
    for (int item = threadIdx.x / 32; item < all * PRODUCT_SETS; item += PRODUCT_WARPS) {
        const int set = item % PRODUCT_SETS, bundle = item / PRODUCT_SETS;
        const bool odd = bundle >= bundles;
        const int first = odd ? n_first + (bundle - bundles) * G : bundle * G, end = odd ? a.n_groups : n_first;
        const float *numbers = tile + ((odd ? 8 * a.n_steps : 0) + lane % 4) * ROW + set * 32 + lane / 4;
        const float4 *weights = (const float4 *)a.matrix + first * a.n_steps * 32 + lane;
        float sum[2][G][4] = {}, rest[2][G][4] = {};
        for (int step = 0; step < a.n_steps; step++, numbers += 8 * ROW, weights += 32) {
            float high[2][4], low[2][4];
#pragma unroll
            for (int i = 0; i < 8; i++)
                part_tf32(numbers[i / 2 % 2 * 4 * ROW + i % 2 * 8 + i / 4 * 16], high[i / 4][i % 4], low[i / 4][i % 4]);
#pragma unroll
            for (int g = 0; g < G; g++) {
                if (first + g >= end) break;
                const float4 w = __ldg(weights + g * a.n_steps * 32);
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    mma_tf32(sum[s][g], high[s], w.x, w.y);
                    mma_tf32(rest[s][g], low[s], w.x, w.y);
                    mma_tf32(rest[s][g], high[s], w.z, w.w);
                }
            }
        }
        const int t = begin + set * 32 + lane / 4, apart = a.n_even ? 2 : 1;
        const int k = odd ? 16 * (first - n_first) + 1 : 8 * apart * first;
        float *out = a.out + (long long)line * a.n_out * a.n_frames + t;
#pragma unroll
        for (int i = 0; i < 2 * G; i++) { // a column
            const int g = i / 2, column = k + (8 * g + lane % 4 * 2 + i % 2) * apart;
            if (column >= a.n_out) continue;
            float *to = out + (long long)column * a.n_frames;
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (t + 8 * r < a.n_frames)
                    to[8 * r] = sum[r / 2][g][r % 2 * 2 + i % 2] + rest[r / 2][g][r % 2 * 2 + i % 2];
        }
    }
}
