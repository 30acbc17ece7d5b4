// Griffin and Lim's iteration for batches of magnitudes, compiled for one SPECTRUM_N:
//
//   griffin_lim_begin   magnitudes and random phases to signals
//   griffin_lim_step    signals to signals: transform, phases, and back. No spectrum goes to memory
//   griffin_lim_quarter the same of 2048 points whose frames lie a quarter of one apart
//
// The transform is linear, so R - c R_before is that of the signals' difference: y - c y_before is what a step reads
// and the next one's is what it writes, beside y itself. Blocks go along lines by spectrum_walk: transform in shared
// memory, each bin brought to its magnitude in place, transform back. Magnitudes are asked for before a transform and
// are there behind it. Judge: the CPU's, 5e-6 of the peak after two iterations; more of them magnify rounding.
#ifndef SPECTRUM_N
#define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "griffin_lim_kernel.h"
#include "mma.cuh"

extern __shared__ float2 all_shared[];

// A bin brought to its magnitude, or below where its square would be a denormal number.
static __device__ __forceinline__ float2 turn(float2 x, float magnitude)
{
    const float square = fmaxf(x.x * x.x + x.y * x.y, 1.17549435e-38f);
    float by;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(square));
    return fft_scale(x, magnitude * by);
}

// Asked for before the transform and there after it: magnitudes of the bins that spectrum_give gives this thread, in
// their order; zeros of frames that there are not. Only the thread that asked reads it.
struct staged {
    float magnitude[SPECTRUM_LAST][2][SPECTRUM_THREADS];
};
enum { STAGED = wt__griffin_lim_staged(SPECTRUM_N) > 0, APART = SPECTRUM_N / SPECTRUM_LAST };
static_assert(!STAGED || sizeof(staged) == wt__griffin_lim_staged(SPECTRUM_N), "what the host asks for");

// A thread's bins go up from `thread` and from its mirror, APART from one to the next.
static __device__ __forceinline__ void ask(const wt_griffin_lim_args &a, const float *row, int t, int thread, staged &s)
{
    const float *at[2] = {row + thread, row + (thread ? APART - thread : APART / 2)};
    asm("" : "+l"(at[0]), "+l"(at[1])); // else each bin gets a 64-bit sum of its own in place of a constant offset
#pragma unroll
    for (int i = 0; i < SPECTRUM_LAST; i++)
#pragma unroll
        for (int f = 0; f < 2; f++)
            copy_async_4(&s.magnitude[i][f][thread], at[i % 2] + i / 2 * APART + f * SPECTRUM_BINS,
                         t + f < a.frames.n_frames);
    copy_async_commit();
}

static __device__ __forceinline__ float2 first_phase(const wt_griffin_lim_args &a, int t, int k, float magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    float re = 1, im = 0;
    if (!a.zero_phase) sincosf((float)angle, &im, &re);
    return make_float2(magnitude * re, magnitude * im);
}

// Sample from + i of the padded signal is done: y, and y - c y_before for the next step.
static __device__ __forceinline__ void give(const wt_griffin_lim_args &a, long long line, long long from, int i,
                                            float sum, float momentum)
{
    const long long at = line * a.walk.length + from - a.walk.margin + i;
    const float y = sum * __ldg(a.squares + from + i);
    if (a.next) a.next[at] = momentum != 0 ? y - momentum * a.out[at] : y;
    a.out[at] = y;
}

// The same of samples SPECTRUM_THREADS apart, y_before in before(m): all are read before one is written.
template <class Before>
static __device__ __forceinline__ void give_all(const wt_griffin_lim_args &a, long long line, long long from,
                                                const float (&sums)[SPECTRUM_SAMPLES / 2], Before y_before)
{
    constexpr int SUMS = SPECTRUM_SAMPLES / 2;
    const long long at = line * a.walk.length + from - a.walk.margin;
    const float *squares = a.squares + from;
    float *out = a.out + at, y[SUMS], before[SUMS];
#pragma unroll
    for (int m = 0; m < SUMS; m++) y[m] = __ldg(squares + m * SPECTRUM_THREADS);
#pragma unroll
    for (int m = 0; m < SUMS; m++) before[m] = y_before(out, m);
#pragma unroll
    for (int m = 0; m < SUMS; m++) out[m * SPECTRUM_THREADS] = y[m] *= sums[m];
    if (!a.next) return;
    float *next = a.next + at;
#pragma unroll
    for (int m = 0; m < SUMS; m++) next[m * SPECTRUM_THREADS] = y[m] - a.momentum * before[m];
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) griffin_lim_begin(wt_griffin_lim_args a)
{
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
            const float *magnitude = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames;
            for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
                float2 x = make_float2(0, 0), y = x;
                if (first) x = first_phase(a, t, k, magnitude[k]);
                if (second) y = first_phase(a, t + 1, k, magnitude[SPECTRUM_BINS + k]);
                spectrum_put_pair(points, k, x, y);
            }
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum, 0); });
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT_WIDE)
    griffin_lim_step(wt_griffin_lim_args a)
{
    // Behind the points and the ring, of which there is one where sums are not kept: an even number of floats.
    staged &s = *(staged *)((float *)(all_shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS) + (a.walk.ring + 1) / 2 * 2);
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
            const float *row = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            if (STAGED) ask(a, row, t, thread, s);
            int i = 0;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              if (STAGED && !i) copy_async_wait<0>();
                              const bool asked = STAGED && i < SPECTRUM_LAST;
                              const auto magnitude = [&](int f) {
                                  if (asked) return s.magnitude[i][f][thread];
                                  return t + f < a.frames.n_frames ? __ldg(row + k + f * SPECTRUM_BINS) : 0;
                              };
                              x = turn(x, magnitude(0)), y = turn(y, magnitude(1));
                              if (asked)
                                  spectrum_put_given(points, thread, i, x, y);
                              else
                                  spectrum_put_pair(points, k, x, y);
                              i++;
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum, a.momentum); },
        [&](long long line, long long from, const float(&sums)[SPECTRUM_SAMPLES / 2]) {
            give_all(a, line, from + threadIdx.x, sums,
                     [](const float *out, int m) { return out[m * SPECTRUM_THREADS]; });
        });
}

#if SPECTRUM_N == 2048
// There and back in place, 16 x 16 x 8 points: bin k1 + 16 k2 + 256 k3, which was sample 128 n1 + 8 n2 + n3, lies at
// k1 ROW + 8 k2 + k3, HALF - 64 places further where k2 >= 8. The last pass there leaves its bins where it found its
// points, and each pass back works on what one butterfly there or another had, so that six barriers keep them apart.
// Rows and halves lie so that no two lanes of a half warp meet in a bank in any pass.
enum { ROW = WT_GRIFFIN_LIM_ROW, HALF = 72, SUMS = SPECTRUM_SAMPLES / 2 };
static_assert(SPECTRUM_RADIX == 16 && SPECTRUM_SECOND == 16 && SPECTRUM_LAST == 8 && SPECTRUM_THREADS == 128, "passes");

// The butterfly of v[k] w^k, decimated in time: halves a and f b to a + f b and a - f b = 2 a - (a + f b), six
// multiply-adds a pair, and of the common factors w^k none is left in the end. f by stages: w^(R/2), w^(R/4), then
// w^(R/8) times 1 and an eighth of a turn, then w times 0 to 3 sixteenths. A quarter more is an exchange. A stage has N
// results of each of R / N sets of points.
template <int STRIDE, int N = 1, int R>
static __device__ __forceinline__ void turned(const float2 *factors, float2 (&v)[R])
{
    constexpr int APART = R / 2 / N;
    const int reversed[] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
#pragma unroll
    for (int set = 0; set < N; set++) {
        const int q = reversed[set] * N / 16, less = N > 1 && q >= N / 2 ? q - N / 2 : q;
        float2 f = __ldg(factors + STRIDE * (N / 2 + less));
        if (less < q) f = make_float2(f.y, -f.x);
#pragma unroll
        for (int k = 0; k < APART; k++) {
            float2 &x = v[2 * APART * set + k], &y = v[2 * APART * set + APART + k];
            const float re = fmaf(-f.y, y.y, fmaf(f.x, y.x, x.x)), im = fmaf(f.y, y.x, fmaf(f.x, y.y, x.y));
            y = make_float2(fmaf(2, x.x, -re), fmaf(2, x.y, -im));
            x = make_float2(re, im);
        }
    }
    if constexpr (2 * N < R) {
        turned<STRIDE, 2 * N>(factors, v);
    } else {
        float2 w[R];
#pragma unroll
        for (int k = 0; k < R; k++) w[k] = v[k];
#pragma unroll
        for (int k = 0; k < R; k++) v[k] = w[reversed[k] * R / 16];
    }
}

// The second pass's points, w the k1-th 256th of a turn, and the third's of butterfly b, the b-th 2048th.
static __device__ __forceinline__ void turned_second(const wt_griffin_lim_args &a, int k1, float2 (&v)[16])
{
    const float2 *factors = (const float2 *)a.factors + k1;
    asm("" : "+l"(factors)); // constant offsets, as above
    turned<16>(factors, v);
}
static __device__ __forceinline__ void turned_third(const wt_griffin_lim_args &a, int b, float2 (&v)[8])
{
    const float2 *factors = (const float2 *)a.factors + 8 * 16 + b;
    asm("" : "+l"(factors));
    turned<256>(factors, v);
}

// Where the k-th point of a butterfly lies, from the first on: of the second pass, and of the first and second back.
struct there_second {
    static constexpr int at(int k) { return k * 8 + (k >= 8 ? HALF - 64 : 0); }
};
struct back_first {
    static constexpr int at(int k) { return k % 2 * HALF + k / 2; }
};
struct back_second {
    static constexpr int at(int k) { return k % 2 * 8 * ROW + k / 2 * 8; }
};
template <class Place> static __device__ __forceinline__ void get(const float2 *points, float2 (&v)[16])
{
#pragma unroll
    for (int k = 0; k < 16; k++) v[k] = points[Place::at(k)];
}
template <class Place> static __device__ __forceinline__ void put(float2 *points, const float2 (&v)[16])
{
#pragma unroll
    for (int k = 0; k < 16; k++) points[Place::at(k)] = v[k];
}

// Frames there: the first two passes. Ends with the block in step.
static __device__ __forceinline__ void go_there(const wt_griffin_lim_args &a, const float *pcm, int t, int thread,
                                                float2 *points)
{
    float2 v[16];
    spectrum_fill_frames(a.frames, pcm, t, thread, v, [&](const float *begin, float2(&v)[SPECTRUM_RADIX]) {
        spectrum_fill(a.frames, begin, thread, v);
    });
    __syncthreads(); // the round before has read its points
    fft_butterfly<16>(v);
    float2 *to = points + thread + (thread >= 64 ? HALF - 64 : 0);
#pragma unroll
    for (int k = 0; k < 16; k++) to[k * ROW] = v[k];
    __syncthreads();
    float2 w[16], *second = points + thread % 16 * ROW + thread / 16;
    get<there_second>(second, w);
    turned_second(a, thread % 16, w);
    put<there_second>(second, w);
    __syncthreads();
}

// The third pass, and each bin brought to its magnitude where it lies.
static __device__ __forceinline__ void turn_bins(const wt_griffin_lim_args &a, const float *row, int t, int thread,
                                                 float2 *points, const staged &s)
{
    const int mirror = thread ? 256 - thread : 128;
    float2 *up = points + thread % 16 * ROW + thread / 16 * 8;
    float2 *down = points + mirror % 16 * ROW + mirror / 16 * 8 + (HALF - 64);
    float2 v[2][8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[0][k] = up[k];
#pragma unroll
    for (int k = 0; k < 8; k++) v[1][k] = down[k];
    turned_third(a, thread, v[0]);
    turned_third(a, mirror, v[1]);
    copy_async_wait<0>();
    // The mirrors of up[j] and down[j], from which they go down; those of thread 0 lie in the same butterfly.
    float2 *of_up = thread ? down + 7 : up + 8, *of_down = (thread ? up : down) + 7;
    int i = 0;
    spectrum_give<true>(thread, v, [&](int, float2 x, float2 y) { // of any size: turn brings it to its own
        if (i == SPECTRUM_LAST) {
            const auto middle = [&](int f) {
                return t + f < a.frames.n_frames ? __ldg(row + f * SPECTRUM_BINS + SPECTRUM_N / 2) : 0;
            };
            x = turn(x, middle(0)), y = turn(y, middle(1));
            up[4] = make_float2(y.x, x.x);
            return;
        }
        x = turn(x, s.magnitude[i][0][thread]), y = turn(y, s.magnitude[i][1][thread]);
        if (i == 0 && thread == 0) x.y = y.y = 0;
        (i % 2 ? down : up)[i / 2] = make_float2(x.y + y.x, x.x - y.y);
        if (i || thread) (i % 2 ? of_down : of_up)[-(i / 2)] = make_float2(y.x - x.y, x.x + y.y);
        i++;
    });
}

// And back: v[e][j] is sample thread + 128 e + 256 j of both frames, parts exchanged. Begins with the block in step.
static __device__ __forceinline__ void come_back(const wt_griffin_lim_args &a, int thread, float2 *points,
                                                 float2 (&v)[2][8])
{
    float2 w[16], x[16], *first = points + thread % 16 * ROW + thread / 16 * 8;
    float2 *second = points + thread % 8 * ROW + thread / 8 % 2 * HALF + thread / 16;
    get<back_first>(first, w);
    fft_butterfly<16>(w);
    put<back_first>(first, w);
    __syncthreads();
    get<back_second>(second, x);
    turned_second(a, thread / 16 * 2 + thread / 8 % 2, x);
    put<back_second>(second, x);
    __syncthreads();
    const float2 *from = points + thread % 2 * HALF + thread % 16 / 2 + thread / 32 * 8 + thread / 16 % 2 * 8 * ROW;
#pragma unroll
    for (int k = 0; k < 8; k++) v[0][k] = from[k * ROW], v[1][k] = from[k * ROW + 32];
    turned_third(a, thread, v[0]);
    turned_third(a, thread + 128, v[1]);
}

// Samples of y that a round gives, asked for before its way back into the places of magnitudes that the thread has
// read; none where not all of them are the block's and the signal's.
static __device__ __forceinline__ void ask_before(const wt_griffin_lim_args &a, const spectrum_way &way, int t,
                                                  int thread, staged &s)
{
    const long long from = (long long)t * a.walk.hop - a.walk.margin;
    if (t < way.begin || from < 0 || from + 2 * a.walk.hop > a.walk.length) return;
    const float *out = a.out + way.line * a.walk.length + from + thread;
#pragma unroll
    for (int m = 0; m < SUMS; m++) copy_async_4(&s.magnitude[m][0][thread], out + m * SPECTRUM_THREADS, true);
    copy_async_commit();
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT_WIDE)
    griffin_lim_quarter(wt_griffin_lim_args a)
{
    staged &s = *(staged *)(all_shared + 16 * ROW);
    const spectrum_way way(a.walk);
    const int thread = threadIdx.x;
    const float *pcm = a.frames.pcm + way.line * a.frames.n_samples;
    spectrum_walk_kept(
        a.walk, way,
        [&](int t, auto leave) {
            const float *row = a.magnitude + (way.line * a.stored_frames + t) * SPECTRUM_BINS;
            float2 v[2][8];
            copy_async_wait<0>(); // of a round that had no use for them
            ask(a, row, t, thread, s);
            go_there(a, pcm, t, thread, all_shared);
            turn_bins(a, row, t, thread, all_shared, s);
            ask_before(a, way, t, thread, s);
            __syncthreads();
            come_back(a, thread, all_shared, v);
            leave([&](int m) { return v[m % 2][m / 2]; },
                  [&](int m) { return __ldg(a.walk.window + thread + m * SPECTRUM_THREADS); });
        },
        [&](long long from, const float(&sums)[SUMS]) {
            copy_async_wait<0>();
            give_all(a, way.line, from + thread, sums, [&](const float *, int m) { return s.magnitude[m][0][thread]; });
        },
        [&](long long from, int i, float sum) { give(a, way.line, from, i, sum, a.momentum); });
}
#endif
