// Echo cancellation of many signals that goes on from part to part; transforms are wt_fft's. First of all blocks of a
// part, which do not depend on the filters:
//
//   echo_windows    a thread a value: the playback's windows
//   echo_hear       a thread block a window: their spectra into the ring, and is there any sound
//
// then, where a thread block has a transform of that length (ECHO_POINTS), in one launch for all of them
//
//   echo_filter     ECHO_CLUSTER thread blocks a line: block after block they imagine the echo, cancel it, and have
//                   teams of threads learn a part each, with the weights in shared memory where they fit
//
// else block after block, all lines at once, with a transform between each two:
//
//   echo_imagine    a thread a bin of a line: the playback through the filter
//   echo_cancel     a thread block a line: what goes out, and the error
//   echo_step       a thread a bin of a line
//   echo_gradient   a thread a bin of a part
//   echo_constrain  a thread a value: a part has as many taps as a block has frames
//   echo_move       a thread a bin of a part
//
// and at the end
//
//   echo_keep, echo_give   a thread a sample: for the part behind, and out
//
// What happens to a bin is the text of echo_kernel.h. Judge: the CPU (dsp/voice/echo.c).
#ifndef ECHO_POINTS
#    define ECHO_POINTS 480
#endif
#ifndef ECHO_CLUSTER
#    define ECHO_CLUSTER 1
#endif
#ifndef ECHO_TEAMS
#    define ECHO_TEAMS 13
#endif
#ifndef ECHO_TEAM
#    define ECHO_TEAM 32
#endif
#ifndef ECHO_KEEPS
#    define ECHO_KEEPS 1
#endif
#include "echo_batch_kernel.h"
#if ECHO_POINTS
#    include "cluster.cuh"
#    include "fft.cuh"
#endif

#define ALL     0xffffffffu
#define THREADS 256 // of echo_hear and echo_cancel

static __device__ long long here() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void echo_reset(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels, bins = n_lines * a.n_bins;
    if (i < bins * a.n_parts) {
        ((float2 *)a.w)[i] = {0, 0};
        a.doubt[i] = ECHO_FIRST_DOUBT;
    }
    if (i < bins) a.near[i] = 0;
    if (i < (long long)a.n_ring * a.n_signals * a.n_bins) ((float2 *)a.x)[i] = {0, 0};
    if (i < n_lines * a.block) a.old.mic[i] = a.old.ready[i] = 0;
    if (i < 2ll * a.n_signals * a.block) a.old.playback[i] = 0;
    if (i < n_lines) a.worth[i] = {0, 0, 1};
}

// Sample i of a row of the part, those before it below 0, of which `held` knows n_held.
static __device__ float sample(const float *in, const float *held, int n_held, int i)
{
    return i < 0 ? held[n_held + i] : echo_tame(in[i]);
}

static __device__ float mic_sample(const echo_batch_args &a, long long line, int i)
{
    return sample(a.mic + line * a.pitch, a.old.mic + line * a.block, a.block, i);
}

static __device__ float played(const echo_batch_args &a, long long signal, int i)
{
    return sample(a.playback + signal * a.pitch, a.old.playback + 2 * signal * a.block, 2 * a.block, i);
}

extern "C" __global__ void echo_windows(echo_batch_args a)
{
    const long long i = here(), n = 2 * a.block;
    if (i >= a.n_blocks * a.n_signals * n) return;
    const int k = (int)(i % n), signal = (int)(i / n % a.n_signals), j = (int)(i / n / a.n_signals);
    a.windows[i] = played(a, signal, (j - 1) * a.block - a.at + k);
}

// The sum over the thread block, in all threads.
static __device__ float block_sum(float x)
{
    __shared__ float sums[THREADS / 32];
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(ALL, x, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < THREADS / 32; i++) x += sums[i];
    return x;
}

static __device__ float2 *ring(const echo_batch_args &a, int turn, int signal)
{
    int slot = a.head + turn; // both less than a ring away
    slot += slot < 0 ? a.n_ring : slot < a.n_ring ? 0 : -a.n_ring;
    return (float2 *)a.x + ((long long)slot * a.n_signals + signal) * a.n_bins;
}

extern "C" __global__ void __launch_bounds__(THREADS) echo_hear(echo_batch_args a)
{
    const int j = blockIdx.x / a.n_signals, signal = blockIdx.x % a.n_signals;
    const float *window = a.windows + 2ll * blockIdx.x * a.block;
    const float2 *from = (const float2 *)a.heard + (long long)blockIdx.x * a.n_bins;
    float2 *to = ring(a, j, signal);
    float power = 0;
    for (int k = threadIdx.x; k < 2 * a.block; k += THREADS) power += window[k] * window[k];
    power = block_sum(power);
    if (threadIdx.x == 0) a.silent[blockIdx.x] = !(power > ECHO_SILENT * 2 * (float)a.block);
    for (int k = threadIdx.x; k < a.n_bins; k += THREADS) to[k] = from[k];
}

#if ECHO_POINTS
enum {
    BINS = ECHO_POINTS + 1,
    TEAM = ECHO_TEAM,
    ALL_TEAMS = ECHO_TEAMS * TEAM, // who share the line's own transforms
    OWN_GROUPS = ECHO_GROUPS / ECHO_CLUSTER,
    ROOM = wt__fft_shared_floats(ECHO_POINTS), // of a transform
    AHEAD = 8                                  // parts whose playback is asked for at once
};

#    define CLUSTER_OF_(n) CLUSTER_##n
#    define CLUSTER_OF(n)  CLUSTER_OF_(n)

// The thread blocks of a line.
static __device__ __forceinline__ void line_meet()
{
    if constexpr (ECHO_CLUSTER > 1)
        cluster_meet();
    else
        __syncthreads();
}

struct team_meet {
    int team;
    __device__ __forceinline__ void operator()() const
    {
        if constexpr (TEAM == 32)
            __syncwarp();
        else
            asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "r"(int(TEAM)) : "memory");
    }
};

// What a thread block has of a line: parts first .. first + n_parts - 1, and places in shared memory. `work` lies where
// `sums` do, which all have read by then.
struct echo_share {
    int rank, line, signal, each, first, n_parts; // each: parts of a group
    float4 *sums;       // [OWN_GROUPS][BINS] of spectrum and of the echo's powers, without and with all in doubt
    float *work;        // [ECHO_TEAMS][ROOM]
    float *room;        // [ROOM] the line's
    float2 *e;          // [BINS] spectrum of the echo, then of the error over D
    float2 *powers;     // [BINS]
    float *step, *near; // [BINS]
    float *wave;        // [block] the echo, then the error
    float *mic;         // [block]
    float *twiddles;    // as s.twiddles, and
    float2 *roots;      // [BINS]
    float2 *w;          // [n_parts][BINS]; these two in device memory unless ECHO_KEEPS
    float *doubt;
};

extern __shared__ float4 all_shared[];

static __device__ __forceinline__ echo_share find_share(const echo_batch_args &a)
{
    echo_share s;
    s.rank = blockIdx.x % ECHO_CLUSTER, s.line = blockIdx.x / ECHO_CLUSTER, s.signal = s.line / a.channels;
    s.each = (a.n_parts + ECHO_GROUPS - 1) / ECHO_GROUPS, s.first = s.rank * OWN_GROUPS * s.each;
    s.n_parts = max(0, min(OWN_GROUPS * s.each, a.n_parts - s.first));
    s.sums = all_shared, s.work = (float *)all_shared;
    s.room = s.work + wt__echo_work_floats(ECHO_POINTS, ECHO_TEAMS, OWN_GROUPS);
    s.e = (float2 *)(s.room + ROOM), s.powers = s.e + BINS;
    s.step = (float *)(s.powers + BINS), s.near = s.step + BINS;
    s.wave = s.near + BINS, s.mic = s.wave + ECHO_POINTS;
    s.twiddles = s.room + wt__echo_line_floats(ECHO_POINTS), s.roots = (float2 *)(s.twiddles + a.n_twiddles);
    if constexpr (ECHO_KEEPS) {
        s.w = s.roots + BINS;
        s.doubt = (float *)(s.w + s.n_parts * BINS);
    } else {
        const long long at = ((long long)s.line * a.n_parts + s.first) * BINS;
        s.w = (float2 *)a.w + at, s.doubt = a.doubt + at;
    }
    return s;
}

// The thread, as a number that the compiler knows nothing of: else it keeps all that follows from it from block to
// block, in more registers than there are.
static __device__ __forceinline__ int this_thread()
{
    int t = threadIdx.x;
    asm volatile("" : "+r"(t));
    return t;
}

// Weights and doubts between device and shared memory.
template <class V> static __device__ __forceinline__ void copy_all(V *to, const V *from, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}

// The playback through the filter, and the echo's part of D. Ends with the line in step.
static __device__ __forceinline__ void imagine(const echo_batch_args &a, const echo_share &s, int turn)
{
    for (int i = this_thread(); i < OWN_GROUPS * BINS; i += blockDim.x) {
        const int g = i / BINS, k = i % BINS, end = min(s.n_parts, (g + 1) * s.each);
        float4 sum = {0, 0, 0, 0};
        for (int begin = g * s.each; begin < end; begin += AHEAD) {
            float2 ahead[AHEAD]; // all on their way before one is used
#    pragma unroll
            for (int j = 0; j < AHEAD; j++)
                if (begin + j < end) ahead[j] = __ldg(ring(a, turn - s.first - begin - j, s.signal) + k);
#    pragma unroll
            for (int j = 0; j < AHEAD; j++) {
                if (begin + j >= end) break;
                const int at = (begin + j) * BINS + k;
                const float2 x = ahead[j], w = s.w[at];
                const float doubt = s.doubt[at], power = 0.5f * fmaf(x.x, x.x, x.y * x.y);
                sum.x = fmaf(-w.y, x.y, fmaf(w.x, x.x, sum.x)), sum.y = fmaf(w.y, x.x, fmaf(w.x, x.y, sum.y));
                sum.z = fmaf(power, doubt, sum.z), sum.w = fmaf(power, wt_max(doubt, ECHO_FIRST_DOUBT), sum.w);
            }
        }
        s.sums[i] = sum;
    }
    line_meet();
    for (int k = threadIdx.x; k < BINS; k += blockDim.x) {
        float4 sum = {0, 0, 0, 0};
#    pragma unroll
        for (int g = 0; g < ECHO_GROUPS; g++) {
            const float4 *at = s.sums + g % OWN_GROUPS * BINS + k;
            float4 part;
            if constexpr (ECHO_CLUSTER > 1)
                part = load_from((const float *)at, g / OWN_GROUPS);
            else
                part = *at;
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        if (k == 0 || k == ECHO_POINTS) sum.y = 0;
        s.e[k] = {sum.x, sum.y}, s.powers[k] = {sum.z, sum.w};
    }
    line_meet();
}

// Mean squares of microphone and error, in all threads, by the first of them.
static __device__ __forceinline__ float2 line_powers(const echo_share &s)
{
    __shared__ float2 sums[ECHO_LINE / 32];
    float2 power = {0, 0};
    for (int k = threadIdx.x; k < ECHO_POINTS && threadIdx.x < ECHO_LINE; k += ECHO_LINE) {
        const float mic = s.mic[k], error = mic - s.wave[k];
        power.x += mic * mic / (float)ECHO_POINTS, power.y += error * error / (float)ECHO_POINTS;
    }
    for (int d = 16; d; d /= 2)
        power.x += __shfl_xor_sync(ALL, power.x, d), power.y += __shfl_xor_sync(ALL, power.y, d);
    if (threadIdx.x < ECHO_LINE && threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = power;
    __syncthreads();
    power = {0, 0};
    for (int i = 0; i < ECHO_LINE / 32; i++) power.x += sums[i].x, power.y += sums[i].y;
    return power;
}

// What goes out, and the error's points in `room`.
static __device__ __forceinline__ echo_worth cancel(const echo_batch_args &a, const echo_share &s, int turn,
                                                    echo_worth before)
{
    const int t = this_thread();
    fft_block<ECHO_POINTS, ALL_TEAMS>(
        t, s.room, s.twiddles, [&](int k) { return fft_swap(fft_real_fold(s.e[k], s.e[ECHO_POINTS - k], s.roots[k])); },
        [&](int i, float2 v) {
            v = fft_scale(fft_swap(v), 0.5f / ECHO_POINTS);
            if (2 * i >= ECHO_POINTS) s.wave[2 * i - ECHO_POINTS] = v.x;
            if (2 * i + 1 >= ECHO_POINTS) s.wave[2 * i + 1 - ECHO_POINTS] = v.y;
        });
    __syncthreads();
    const float2 power = line_powers(s);
    const echo_worth worth = echo_judge(&a.rules, before, power.x, power.y);
    const float change = worth.trust - before.trust;
    float *ready = a.ready + ((long long)turn * a.n_signals * a.channels + s.line) * ECHO_POINTS;
    for (int k = threadIdx.x; k < ECHO_POINTS; k += blockDim.x) {
        const float mic = s.mic[k], echo = s.wave[k];
        if (s.rank == 0) ready[k] = mic - (before.trust + change * (float)k / (float)ECHO_POINTS) * echo;
        s.wave[k] = mic - echo;
    }
    __syncthreads();
    fft_block<ECHO_POINTS, ALL_TEAMS>(
        t, s.room, s.twiddles,
        [&](int i) {
            return make_float2(2 * i >= ECHO_POINTS ? s.wave[2 * i - ECHO_POINTS] : 0,
                               2 * i + 1 >= ECHO_POINTS ? s.wave[2 * i + 1 - ECHO_POINTS] : 0);
        },
        [&](int k, float2 v) { fft_shared_put<ECHO_POINTS>(s.room, k, v); });
    __syncthreads();
    return worth;
}

static __device__ __forceinline__ void find_steps(const echo_batch_args &a, const echo_share &s, bool in_doubt,
                                                  bool silent)
{
    for (int k = threadIdx.x; k < BINS && !silent; k += blockDim.x) {
        const float2 z = fft_shared_get<ECHO_POINTS>(s.room, k == ECHO_POINTS ? 0 : k);
        const float2 mirror = fft_shared_get<ECHO_POINTS>(s.room, k ? ECHO_POINTS - k : 0);
        const float2 e = fft_real_bin(z, mirror, s.roots[k]);
        const float echo = in_doubt ? s.powers[k].y : s.powers[k].x;
        const float step = echo_step(&a.rules, &s.near[k], echo, e.x, e.y);
        s.step[k] = step, s.e[k] = fft_scale(e, step);
    }
    for (int i = threadIdx.x; i < s.n_parts * BINS && in_doubt; i += blockDim.x)
        s.doubt[i] = wt_max(s.doubt[i], ECHO_FIRST_DOUBT);
    __syncthreads();
}

static __device__ __forceinline__ float2 gradient(float2 x, float2 e, float doubt)
{
    return {doubt * fmaf(x.x, e.x, x.y * e.y), doubt * fmaf(x.x, e.y, -(x.y * e.x))};
}

static __device__ __forceinline__ void move(const echo_batch_args &a, float2 x, float step, float2 g, float2 *w,
                                            float *doubt)
{
    const float2 moved = {w->x + g.x, w->y + g.y};
    *w = moved, *doubt = echo_doubt(&a.rules, *doubt, step, x.x * x.x + x.y * x.y, moved.x, moved.y);
}

// A team's part: gradient, back in time, as many taps as a block has frames, there again, and the weights move. Bins k
// and N - k go together: two real samples travel as one complex point.
static __device__ __forceinline__ void learn_part(const echo_batch_args &a, const echo_share &s, int turn, int p)
{
    constexpr int N = ECHO_POINTS;
    const int thread = this_thread(), team = thread / TEAM, t = thread % TEAM;
    const team_meet meet = {team};
    const float2 *x = ring(a, turn - s.first - p, s.signal);
    float2 *w = s.w + p * BINS;
    float *doubt = s.doubt + p * BINS, *z = s.work + team * ROOM;
#    pragma unroll 4
    for (int k = t; k <= N / 2; k += TEAM) {
        const int m = N - k; // of k = 0 that is a place of padding
        const float2 root = s.roots[k];
        float2 g = gradient(__ldg(x + k), s.e[k], doubt[k]), mirror = gradient(__ldg(x + m), s.e[m], doubt[m]);
        if (k == 0) g.y = mirror.y = 0;
        fft_shared_put<N>(z, m, fft_swap(fft_real_fold(mirror, g, make_float2(-root.x, root.y))));
        fft_shared_put<N>(z, k, fft_swap(fft_real_fold(g, mirror, root)));
    }
    meet();
    fft_block<N, TEAM>(
        t, z, s.twiddles, [&](int k) { return fft_shared_get<N>(z, k); },
        [&](int i, float2 v) {
            v = fft_scale(fft_swap(v), 0.5f / N);
            fft_shared_put<N>(z, i, make_float2(2 * i < N ? v.x : 0, 2 * i + 1 < N ? v.y : 0));
        },
        meet);
    meet();
    fft_block<N, TEAM>(
        t, z, s.twiddles, [&](int i) { return fft_shared_get<N>(z, i); },
        [&](int k, float2 v) { fft_shared_put<N>(z, k, v); }, meet);
    meet();
#    pragma unroll 4
    for (int k = t; k <= N / 2; k += TEAM) {
        const int m = N - k;
        const float2 root = s.roots[k], g = fft_shared_get<N>(z, k), mirror = fft_shared_get<N>(z, k ? m : 0);
        move(a, __ldg(x + k), s.step[k], fft_real_bin(g, mirror, root), w + k, doubt + k);
        if (k != m)
            move(a, __ldg(x + m), s.step[m], fft_real_bin(mirror, g, make_float2(-root.x, root.y)), w + m, doubt + m);
    }
    meet();
}

extern "C" __global__ void CLUSTER_OF(ECHO_CLUSTER) __launch_bounds__(ALL_TEAMS, 1) echo_filter(echo_batch_args a)
{
    const echo_share s = find_share(a);
    const long long at = ((long long)s.line * a.n_parts + s.first) * BINS;
    float *near = a.near + (long long)s.line * BINS;
    echo_worth worth = a.worth[s.line];
    copy_all(s.near, near, BINS);
    copy_all(s.twiddles, a.twiddles, a.n_twiddles), copy_all(s.roots, (const float2 *)a.roots, BINS);
    if constexpr (ECHO_KEEPS)
        copy_all(s.w, (float2 *)a.w + at, s.n_parts * BINS), copy_all(s.doubt, a.doubt + at, s.n_parts * BINS);
    __syncthreads();
    for (int turn = 0; turn < a.n_blocks; turn++) {
        const bool silent = a.silent[turn * a.n_signals + s.signal];
        for (int k = threadIdx.x; k < ECHO_POINTS; k += blockDim.x)
            s.mic[k] = mic_sample(a, s.line, turn * ECHO_POINTS - a.at + k);
        imagine(a, s, turn);
        worth = cancel(a, s, turn, worth);
        find_steps(a, s, worth.error_power > ECHO_WORSE * worth.mic_power, silent);
        for (int p = threadIdx.x / TEAM; p < s.n_parts && !silent; p += ECHO_TEAMS) learn_part(a, s, turn, p);
        __syncthreads();
    }
    if constexpr (ECHO_KEEPS)
        copy_all((float2 *)a.w + at, s.w, s.n_parts * BINS), copy_all(a.doubt + at, s.doubt, s.n_parts * BINS);
    if (s.rank) return; // all have read it before they met in the first block
    copy_all(near, s.near, BINS);
    if (threadIdx.x == 0) a.worth[s.line] = worth;
}

#else
struct echo_bin {
    int line, k, signal;
    long long at, first; // in rows of lines; that of part 0, of which the next lies n_bins further
};

static __device__ bool find_bin(const echo_batch_args &a, echo_bin &b)
{
    b.at = here();
    b.k = (int)(b.at % a.n_bins), b.line = (int)(b.at / a.n_bins), b.signal = b.line / a.channels;
    b.first = (long long)b.line * a.n_parts * a.n_bins + b.k;
    return b.line < a.n_signals * a.channels;
}

extern "C" __global__ void __launch_bounds__(128) echo_imagine(echo_batch_args a)
{
    echo_bin b;
    if (!find_bin(a, b)) return;
    float2 sum = {0, 0};
#    pragma unroll 4
    for (int p = 0; p < a.n_parts; p++) {
        const float2 x = ring(a, a.turn - p, b.signal)[b.k],
                     w = ((const float2 *)a.w)[b.first + (long long)p * a.n_bins];
        sum.x += w.x * x.x - w.y * x.y, sum.y += w.x * x.y + w.y * x.x;
    }
    ((float2 *)a.spectrum)[b.at] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) echo_cancel(echo_batch_args a)
{
    const long long line = blockIdx.x;
    const int first = a.turn * a.block - a.at; // sample of the part
    float *wave = a.wave + 2 * line * a.block;
    float *ready = a.ready + ((long long)a.turn * a.n_signals * a.channels + line) * a.block;
    const echo_worth before = a.worth[line];
    float mic_power = 0, error_power = 0;
    for (int k = threadIdx.x; k < a.block; k += THREADS) {
        const float mic = mic_sample(a, line, first + k), error = mic - wave[a.block + k];
        mic_power += mic * mic / (float)a.block, error_power += error * error / (float)a.block;
    }
    mic_power = block_sum(mic_power), error_power = block_sum(error_power);
    const echo_worth worth = echo_judge(&a.rules, before, mic_power, error_power);
    const float change = worth.trust - before.trust;
    for (int k = threadIdx.x; k < a.block; k += THREADS) {
        const float mic = mic_sample(a, line, first + k), echo = wave[a.block + k];
        ready[k] = mic - (before.trust + change * (float)k / (float)a.block) * echo;
        wave[a.block + k] = mic - echo;
        wave[k] = 0;
    }
    if (threadIdx.x == 0) { // all have read it before the sums' barriers
        a.worth[line] = worth;
        a.in_doubt[line] = worth.error_power > ECHO_WORSE * worth.mic_power;
    }
}

extern "C" __global__ void __launch_bounds__(128) echo_step(echo_batch_args a)
{
    echo_bin b;
    if (!find_bin(a, b)) return;
    const float2 e = ((const float2 *)a.spectrum)[b.at];
    const bool in_doubt = a.in_doubt[b.line];
    float echo = 0;
#    pragma unroll 4
    for (int p = 0; p < a.n_parts; p++) {
        const float2 x = ring(a, a.turn - p, b.signal)[b.k];
        float *doubt = a.doubt + b.first + (long long)p * a.n_bins;
        if (in_doubt) *doubt = wt_max(*doubt, ECHO_FIRST_DOUBT);
        echo += 0.5f * (x.x * x.x + x.y * x.y) * *doubt;
    }
    if (a.silent[a.turn * a.n_signals + b.signal]) return;
    a.step[b.at] = echo_step(&a.rules, &a.near[b.at], echo, e.x, e.y);
}

// A part of a line's filter.
struct echo_part {
    const float2 *x, *e;
    const float *step;
    long long first; // of its weights
    bool learns;
};

static __device__ echo_part find_part(const echo_batch_args &a, long long row)
{
    const long long line = row / a.n_parts;
    const int signal = (int)(line / a.channels);
    echo_part p;
    p.learns = signal < a.n_signals && !a.silent[a.turn * a.n_signals + signal];
    p.x = ring(a, a.turn - (int)(row % a.n_parts), signal < a.n_signals ? signal : 0);
    p.e = (const float2 *)a.spectrum + line * a.n_bins, p.step = a.step + line * a.n_bins;
    p.first = row * a.n_bins;
    return p;
}

static __device__ __forceinline__ float2 gradient(const echo_batch_args &a, const echo_part &p, int k)
{
    const float2 x = p.x[k], e = p.e[k];
    const float gain = a.doubt[p.first + k] * p.step[k];
    return {gain * (x.x * e.x + x.y * e.y), gain * (x.x * e.y - x.y * e.x)};
}

static __device__ __forceinline__ void move(const echo_batch_args &a, const echo_part &p, int k, float2 g)
{
    const long long at = p.first + k;
    const float2 x = p.x[k];
    float2 w = ((float2 *)a.w)[at];
    w.x += g.x, w.y += g.y;
    ((float2 *)a.w)[at] = w;
    a.doubt[at] = echo_doubt(&a.rules, a.doubt[at], p.step[k], x.x * x.x + x.y * x.y, w.x, w.y);
}

extern "C" __global__ void echo_gradient(echo_batch_args a)
{
    const long long i = here();
    const echo_part p = find_part(a, i / a.n_bins);
    if (p.learns) ((float2 *)a.gradient)[i] = gradient(a, p, (int)(i % a.n_bins));
}

extern "C" __global__ void echo_constrain(echo_batch_args a)
{
    const long long i = here();
    if (i < (long long)a.n_signals * a.channels * a.n_parts * a.block)
        a.taps[i / a.block * 2 * a.block + a.block + i % a.block] = 0;
}

extern "C" __global__ void echo_move(echo_batch_args a)
{
    const long long i = here();
    const echo_part p = find_part(a, i / a.n_bins);
    if (p.learns) move(a, p, (int)(i % a.n_bins), ((const float2 *)a.gradient)[i]);
}
#endif

extern "C" __global__ void echo_keep(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels;
    if (i < n_lines * a.block) {
        const long long line = i / a.block;
        a.now.mic[i] = mic_sample(a, line, a.n - a.block + (int)(i % a.block));
        a.now.ready[i] = a.n_blocks ? a.ready[(a.n_blocks - 1) * n_lines * a.block + i] : a.old.ready[i];
    }
    if (i < 2ll * a.n_signals * a.block)
        a.now.playback[i] = played(a, i / (2 * a.block), a.n - 2 * a.block + (int)(i % (2 * a.block)));
}

extern "C" __global__ void echo_give(echo_batch_args a)
{
    const long long i = here(), n_lines = (long long)a.n_signals * a.channels;
    if (i >= n_lines * a.n) return;
    const long long line = i / a.n;
    const int f = (int)(i % a.n), j = (a.at + f) / a.block, k = (a.at + f) % a.block;
    a.out[line * a.pitch + f] = j ? a.ready[((j - 1) * n_lines + line) * a.block + k] : a.old.ready[line * a.block + k];
}
