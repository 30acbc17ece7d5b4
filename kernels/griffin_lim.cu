// Griffin and Lim's iteration for batches of magnitudes, compiled for one SPECTRUM_N:
//
//   griffin_lim_begin   magnitudes and random phases to signals
//   griffin_lim_step    signals to signals: transform, phases, and back. No spectrum goes to memory
//
// The transform is linear, so R - c R_before is that of the signals' difference: y - c y_before is what a step reads,
// and the next one's is what it writes beside y. Blocks go along lines by spectrum_walk: transform, each bin brought to
// its magnitude, transform back. Judge: the CPU's, 5e-6 of the peak after two iterations; more of them magnify
// rounding.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "griffin_lim_kernel.h"

extern __shared__ float2 all_shared[];

// A bin brought to its magnitude, or below where its square would be a denormal number.
static __device__ __forceinline__ float2 turn(float2 x, float magnitude)
{
    const float square = fmaxf(x.x * x.x + x.y * x.y, 1.17549435e-38f);
    float by;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(square));
    return fft_scale(x, magnitude * by);
}

static __device__ __forceinline__ float2 first_phase(const wt_griffin_lim_args &a, int t, int k, float magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    float re = 1, im = 0;
    if (!a.zero_phase) sincosf((float)angle, &im, &re);
    return make_float2(magnitude * re, magnitude * im);
}

// Sample `at` of a line's padded signal is done: y, and y - c y_before for the next step.
static __device__ __forceinline__ void give(const wt_griffin_lim_args &a, long long line, long long at, float sum,
                                            bool first)
{
    const long long to = line * a.walk.length + at - a.walk.margin;
    const float y = sum * __ldg(a.squares + at);
    if (a.next) a.next[to] = first ? y : y - a.momentum * a.out[to];
    a.out[to] = y;
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
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from + i, sum, true); });
}

// ---- there and back in registers, of frames a quarter of one apart
//
// The passes there (spectrum.cuh) in reverse order are those back: what the last one gives a thread, bins beside their
// mirrors, is turned where it is and taken by the first one back, and every pass writes where it has read. So shared
// memory is met four times in place of six, with a barrier each.

enum {
    IN_REGISTERS = wt__griffin_lim_in_registers(SPECTRUM_N),
    LAST = SPECTRUM_LAST,
    APART = SPECTRUM_N / LAST, // a thread's bins go up from `thread` and from its mirror
    SUMS = SPECTRUM_SAMPLES / 2
};

// The last pass gives a thread each point beside its mirror, v[0][j] and v[1][LAST - 1 - j], but the first one v[0][j]
// and v[0][LAST - j], v[1][j] and v[1][LAST - 1 - j]: to the others' order, points 0 and N / 2, which have no mirror,
// side by side; and back.
static __device__ __forceinline__ void pair_up(float2 (&v)[2][LAST], bool back)
{
    constexpr int H = LAST / 2;
    float2 some[H];
#pragma unroll
    for (int j = 0; j < H; j++) some[j] = back ? v[1][H + (j + H - 1) % H] : v[0][H + j];
#pragma unroll
    for (int j = 0; j < H; j++)
        if (back)
            v[1][H + j] = v[0][H + j], v[0][H + j] = some[j];
        else
            v[0][H + j] = v[1][H + j];
#pragma unroll
    for (int j = 0; j < H && !back; j++) v[1][H + (j + H - 1) % H] = some[j];
}

// A point of two frames x + i y and its mirror: both frames' bin brought to its magnitude, and what the way back takes,
// parts exchanged. Twice x and twice i y have the directions of x and i y.
static __device__ __forceinline__ void turn_point(float2 &z, float2 &mirror, const float (&magnitude)[2])
{
    const float2 x = turn(make_float2(z.x + mirror.x, z.y - mirror.y), magnitude[0]);
    const float2 y = turn(make_float2(z.x - mirror.x, z.y + mirror.y), magnitude[1]);
    z = make_float2(x.y + y.y, x.x + y.x);
    mirror = make_float2(y.y - x.y, x.x - y.x);
}

// Both frames' magnitudes of a thread's bins from `thread` on, of those from its mirror on, and of the last one of all.
struct magnitudes {
    float of[2][LAST / 2][2], last[2];
};

static __device__ __forceinline__ void read_magnitudes(const float *row, bool second, int thread, int mirror,
                                                       magnitudes &m)
{
    const float *at[2] = {row + thread, row + mirror};
    asm("" : "+l"(at[0]), "+l"(at[1])); // else each bin gets a 64-bit sum of its own in place of a constant offset
#pragma unroll
    for (int f = 0; f < 2; f++) {
        const bool there = !f || second;
#pragma unroll
        for (int j = 0; j < LAST / 2; j++)
#pragma unroll
            for (int up = 0; up < 2; up++) m.of[up][j][f] = there ? __ldg(at[up] + j * APART + f * SPECTRUM_BINS) : 0;
        m.last[f] = there && !thread ? __ldg(at[0] + SPECTRUM_N / 2 + f * SPECTRUM_BINS) : 0;
    }
}

static __device__ __forceinline__ void turn_points(float2 (&v)[2][LAST], const magnitudes &m, int thread)
{
    if (!thread) pair_up(v, false);
#pragma unroll
    for (int j = 0; j < LAST / 2; j++)
#pragma unroll
        for (int up = 0; up < 2; up++) {
            float2 &mirror = v[1 - up][LAST - 1 - j];
            if (!up && !j && !thread) { // its own mirror, and so is the one beside it
                float2 same = v[0][0];
                turn_point(v[0][0], same, m.of[0][0]);
                same = mirror;
                turn_point(mirror, same, m.last);
            } else {
                turn_point(v[up][j], mirror, m.of[up][j]);
            }
        }
    if (!thread) pair_up(v, true);
}

// What a block reads again and again, in shared memory: loads that meet the first-level cache come back after those
// before them, which wait for memory.
struct step_tables {
    float2 first[6][SPECTRUM_STEP], second[6][LAST]; // w^j of 1, 2, 3, 4, 8, 12
    float window[SPECTRUM_N], squares[SPECTRUM_N / 4];
    static __device__ __forceinline__ int row(int j) { return j < 4 ? j - 1 : j / 4 + 2; }
};
static_assert(!IN_REGISTERS || sizeof(step_tables) == wt__griffin_lim_tables(SPECTRUM_N), "what the host asks for");

static __device__ __forceinline__ void fill_tables(const wt_griffin_lim_args &a, step_tables &tables)
{
    const float2 *first = (const float2 *)a.frames.twiddles, *second = first + (SPECTRUM_RADIX - 1) * SPECTRUM_STEP;
    const int thread = threadIdx.x;
    for (int j = 1; j < SPECTRUM_RADIX; j += j < 4 ? 1 : 4) {
        tables.first[step_tables::row(j)][thread] = first[(j - 1) * SPECTRUM_STEP + thread];
        if (thread < LAST) tables.second[step_tables::row(j)][thread] = second[(j - 1) * LAST + thread];
    }
    for (int i = thread; i < SPECTRUM_N; i += SPECTRUM_THREADS) tables.window[i] = a.frames.window[i];
    for (int i = thread; i < SPECTRUM_N / 4; i += SPECTRUM_THREADS) tables.squares[i] = a.squares[SPECTRUM_N + i];
    __syncthreads();
}

// Frames t and t + 1 all the way: leave(sample, window) as spectrum_keep takes it.
template <class Leave>
static __device__ __forceinline__ void step_in_registers(const wt_griffin_lim_args &a, const step_tables &tables,
                                                         long long line, int t, Leave leave)
{
    using first = spectrum_row<1>;
    using second = spectrum_row<2>;
    using third = spectrum_row<3>;
    const int thread = threadIdx.x, mirror = thread ? APART - thread : APART / 2;
    float2 *points = all_shared, v[SPECTRUM_RADIX], w[2][LAST];
    magnitudes m = {};
    const auto window = [&](int k) { return tables.window[thread + k * SPECTRUM_STEP]; };
    const auto first_turn = [&](int j) { return tables.first[step_tables::row(j)][thread]; };
    const auto second_turn = [&](int j) { return tables.second[step_tables::row(j)][thread / SPECTRUM_RADIX]; };
    spectrum_fill_frames(a.frames, a.frames.pcm + line * a.frames.n_samples, t, thread, v,
                         [&](const float *begin, float2(&v)[SPECTRUM_RADIX]) {
                             spectrum_fill_apart<SPECTRUM_RADIX / 4>(window, begin + thread, v);
                         });
    fft_butterfly<SPECTRUM_RADIX>(v);
    spectrum_turn<SPECTRUM_RADIX>(v, first_turn);
    first::write(points, thread, v);
    __syncthreads();
    second::read(points, thread, v);
    fft_butterfly<SPECTRUM_SECOND>(v);
    spectrum_turn<SPECTRUM_SECOND>(v, second_turn);
    second::write(points, thread, v);
    if (t < a.frames.n_frames)
        read_magnitudes(a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS, t + 1 < a.frames.n_frames, thread,
                        mirror, m);
    __syncthreads();
    third::read(points, thread, w[0]);
    third::read(points, mirror, w[1]);
    fft_butterfly<LAST>(w[0]);
    fft_butterfly<LAST>(w[1]);
    turn_points(w, m, thread);
    fft_butterfly<LAST>(w[0]);
    fft_butterfly<LAST>(w[1]);
    third::write(points, thread, w[0]);
    third::write(points, mirror, w[1]);
    __syncthreads();
    second::read(points, thread, v);
    spectrum_turn<SPECTRUM_SECOND>(v, second_turn);
    fft_butterfly<SPECTRUM_SECOND>(v);
    second::write(points, thread, v);
    __syncthreads();
    first::read(points, thread, v);
    spectrum_turn<SPECTRUM_RADIX>(v, first_turn);
    fft_butterfly<SPECTRUM_RADIX>(v);
    leave([&](int i) { return v[i]; }, window);
}

// Samples from + thread + m THREADS, all a block's own. All loads are on their way before one is used.
static __device__ __forceinline__ void give_all(const wt_griffin_lim_args &a, const step_tables &tables, long long line,
                                                long long from, const float (&sums)[SUMS])
{
    const long long to = line * a.walk.length + from - a.walk.margin + threadIdx.x;
    float *out = a.out + to, *next = a.next + to, y[SUMS], before[SUMS];
    asm("" : "+l"(out), "+l"(next));
    const bool whole = from >= SPECTRUM_N && from + 2 * a.walk.hop <= (long long)a.frames.n_frames * a.walk.hop;
#pragma unroll
    for (int m = 0; m < SUMS; m++) before[m] = out[m * SPECTRUM_THREADS];
    if (whole) { // all frames are there, and the windows' squares those of any hop
#pragma unroll
        for (int m = 0; m < SUMS; m++) y[m] = sums[m] * tables.squares[threadIdx.x + m % (SUMS / 2) * SPECTRUM_THREADS];
    } else {
#pragma unroll
        for (int m = 0; m < SUMS; m++) y[m] = sums[m] * __ldg(a.squares + from + threadIdx.x + m * SPECTRUM_THREADS);
    }
#pragma unroll
    for (int m = 0; m < SUMS; m++) out[m * SPECTRUM_THREADS] = y[m];
    if (!a.next) return;
#pragma unroll
    for (int m = 0; m < SUMS; m++) next[m * SPECTRUM_THREADS] = y[m] - a.momentum * before[m];
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, wt__griffin_lim_resident(SPECTRUM_N))
    griffin_lim_step(wt_griffin_lim_args a)
{
    if constexpr (IN_REGISTERS)
        if (!a.walk.ring) {
            const spectrum_way way(a.walk);
            step_tables &tables = *(step_tables *)(all_shared + SPECTRUM_POINTS);
            fill_tables(a, tables);
            return spectrum_walk_kept(
                a.walk, way, [&](int t, auto leave) { step_in_registers(a, tables, way.line, t, leave); },
                [&](long long from, const float(&sums)[SUMS]) { give_all(a, tables, way.line, from, sums); },
                [&](long long from, int i, float sum) { give(a, way.line, from + i, sum, false); });
        }
    spectrum_walk<SPECTRUM_KEEPS && !IN_REGISTERS>(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
            const float *row = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              x = turn(x, first ? __ldg(row + k) : 0);
                              y = turn(y, second ? __ldg(row + SPECTRUM_BINS + k) : 0);
                              spectrum_put_pair(points, k, x, y);
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from + i, sum, false); });
}
