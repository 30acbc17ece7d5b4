// pYIN in two kernels, and two more for calibrated voicing.
//
// pyin_observe: as yin.cu, a tile of frames a block; then a warp a frame weighs its troughs and writes the candidates.
// pyin_path: one block a signal walks through its frames and back. Threads are target bins, each for its voiced and its
// unvoiced state, so that one source read from shared memory serves both. Voiced sources that cannot beat what an
// unvoiced one offers to every target are left out: nearly all, as only candidates are observed. Two barriers a frame;
// the next frame's candidates are fetched meanwhile. Equal values go to the lower state, as numpy's argmax has it.
// Compiled with PYIN_WIDE its values lie in memory, for more bins or candidates than a block holds.
//
// pyin_voicing: a warp a voiced frame, how periodic and how loud its centre is; pyin_calibrate: one block a signal
// keeps the frames that are voiced there. Sums run in double, in an order that is the same for every batch.
//
// Judge: the CPU (dsp/pitch/pyin.c): bins and flags identical.
#include "pyin_kernel.h"
#include "yin.cuh"

#define TINY 2.2250738585072014e-308
#define ALL  0xffffffffu

// ---- candidates

struct pyin_warp {
    double *weights; // [n_thresholds]
    double *probs;   // [max_troughs]
    int *counts;     // [n_thresholds + 1]
    int *troughs;    // [max_troughs]
    int *first;      // [max_troughs] first threshold above each
};

static __device__ pyin_warp warp_scratch(const wt_pyin_model &m, double *from)
{
    const int doubles = m.n_thresholds + m.max_troughs, ints = m.n_thresholds + 1 + 2 * m.max_troughs;
    double *mine = from + (threadIdx.x / 32) * (doubles + (ints + 1) / 2);
    int *rest = (int *)(mine + doubles);
    return {mine, mine + m.n_thresholds, rest, rest + m.n_thresholds + 1, rest + m.n_thresholds + 1 + m.max_troughs};
}

static __device__ int first_above(const wt_pyin_model &m, double height)
{
    const int n = m.n_thresholds;
    const double guess = height * n;
    int k = guess < 0 ? 0 : guess >= n ? n - 1 : (int)guess;
    while (k > 0 && height < m.thresholds[k - 1]) k--;
    while (k < n && !(height < m.thresholds[k])) k++;
    return k;
}

// Troughs in order, how many each threshold is the first above, and the place of the lowest.
static __device__ int find_troughs(const wt_pyin_model &m, const double *d, int n, const pyin_warp &w, int *lowest)
{
    const int lane = threadIdx.x & 31;
    int n_troughs = 0, at = 0x7fffffff;
    double value = 1e300;
    for (int k = lane; k <= m.n_thresholds; k += 32) w.counts[k] = 0;
    __syncwarp();
    for (int i0 = 0; i0 < n; i0 += 32) {
        const int i = i0 + lane;
        const bool found = i < n && yin_is_trough(d, i, n);
        const unsigned votes = __ballot_sync(ALL, found);
        const int place = n_troughs + __popc(votes & ((1u << lane) - 1));
        if (found) {
            w.troughs[place] = i;
            w.first[place] = first_above(m, d[i]);
            atomicAdd(&w.counts[w.first[place]], 1);
            if (d[i] < value) value = d[i], at = place;
        }
        n_troughs += __popc(votes);
    }
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(ALL, value, step);
        const int other_at = __shfl_xor_sync(ALL, at, step);
        if (other < value || (other == value && other_at < at)) value = other, at = other_at;
    }
    *lowest = at;
    __syncwarp();
    return n_troughs;
}

static __device__ void weigh_thresholds(const wt_pyin_model &m, const pyin_warp &w)
{
    const int lane = threadIdx.x & 31;
    int before = 0;
    for (int k0 = 0; k0 < m.n_thresholds; k0 += 32) {
        const int k = k0 + lane;
        int below = k < m.n_thresholds ? w.counts[k] : 0;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(ALL, below, step);
            if (lane >= step) below += other;
        }
        below += before;
        if (k < m.n_thresholds) w.weights[k] = m.beta[k] * m.share[below];
        before = __shfl_sync(ALL, below, 31);
    }
    __syncwarp();
}

static __device__ void weigh_troughs(const wt_pyin_model &m, const pyin_warp &w, int n_troughs, int lowest)
{
    const int lane = threadIdx.x & 31;
    for (int i = 0; i < n_troughs; i++) {
        const int first = w.first[i];
        double sum = 0;
        for (int k = first + lane; k < m.n_thresholds; k += 32) {
            sum += w.weights[k];
            w.weights[k] *= m.decay;
        }
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
        if (i == lowest) sum += m.no_trough_prob * m.beta_sum[first];
        if (lane == 0) w.probs[i] = sum;
        __syncwarp();
    }
}

// Bins into w.first; then lane 0 keeps the last of each, in order.
static __device__ void place(const wt_pyin_args &a, const double *d, int n, const pyin_warp &w, int n_troughs,
                             long long frame)
{
    const wt_pyin_model &m = a.model;
    const int lane = threadIdx.x & 31;
    int *bins = a.bins + frame * m.max_troughs;
    double *log_probs = a.log_probs + frame * m.max_troughs;
    for (int i = lane; i < n_troughs; i += 32) {
        const double period = a.yin.min_period + w.troughs[i] + yin_shift_at(d, w.troughs[i], n);
        const double at = rint(m.bins_per_octave * log2(a.yin.rate_hz / period / m.fmin_hz));
        w.first[i] = at < 0 ? 0 : (int)at;
    }
    __syncwarp();
    int kept = 0;
    if (lane == 0) {
        for (int i = 0; i < n_troughs; i++) {
            if (w.probs[i] == 0 || w.first[i] >= m.n_bins) continue;
            if (!kept || w.troughs[kept - 1] != w.first[i]) kept++;
            w.troughs[kept - 1] = w.first[i];
            w.probs[kept - 1] = w.probs[i];
        }
        double voiced = 0;
        for (int i = kept - 1; i >= 0; i--) voiced += w.probs[i];
        if (voiced > 1) voiced = 1;
        a.frames[frame] = {log((1 - voiced) / m.n_bins + TINY), voiced, kept};
    }
    kept = __shfl_sync(ALL, kept, 0);
    __syncwarp();
    for (int i = lane; i < kept; i += 32) {
        bins[i] = w.troughs[i];
        log_probs[i] = log(w.probs[i] + TINY);
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(YIN_THREADS) pyin_observe(wt_pyin_args a)
{
    const int n = a.yin.max_period - a.yin.min_period + 1;
    for_tiles<double>(a.yin.places, [&](double *scratch, long long tile, int row) {
        const long long first = tile * a.yin.tile;
        const int signal = a.first_signal + row;
        const yin_block b = yin_load(a.yin, scratch, signal, first);
        yin_correlate(a.yin, b);
        const int pieces = a.yin.tile + (a.yin.n_shared ? a.yin.tile + a.yin.n_shared - 1 : 0);
        const pyin_warp w = warp_scratch(a.model, b.sums + pieces * b.lags);
        for (int f = threadIdx.x / 32; f < a.yin.tile && first + f < a.yin.n_frames; f += YIN_WARPS) {
            double *d;
            int lowest = 0;
            const bool finite = yin_function(a.yin, b, f, &d);
            const long long t = first + f, frame = row * a.yin.n_frames + t;
            const int n_troughs = finite ? find_troughs(a.model, d, n, w, &lowest) : 0;
            if (n_troughs) {
                weigh_thresholds(a.model, w);
                weigh_troughs(a.model, w, n_troughs, lowest);
            }
            place(a, d, n, w, n_troughs, frame);
            if ((threadIdx.x & 31) == 0)
                a.out[(2LL * a.yin.n_signals + signal) * a.yin.n_frames + t] = (float)a.frames[frame].voiced_prob;
        }
    });
}

// ---- path

struct best {
    double value;
    int state;
};

static __device__ __forceinline__ void take(best &b, double value, int state)
{
    if (value > b.value || (value == b.value && state < b.state)) b.value = value, b.state = state;
}

struct path {
    double2 *bands;            // [width] leave and stay
    double *unvoiced, *voiced; // [2][row], [2][n_bins] sources with log_norm, of this frame and of the next one
    int row;                   // of unvoiced ones: margins of `width` on both sides
    double *seen, *norm;       // [n_bins]
    int *live, *n_live;        // [2][n_bins] voiced sources that may win; [2] how many
    best *warp_best;           // [32]
    double *warp_least;        // [32]
};

static __device__ path lay_path(const wt_pyin_model &m, double *shared)
{
    path p;
    const int n = m.n_bins;
    p.row = n + 2 * m.width;
    p.bands = (double2 *)shared;
    p.unvoiced = shared + 2 * m.width;
    p.voiced = p.unvoiced + 2 * p.row;
    p.unvoiced += m.width;
    p.seen = p.voiced + 2 * n;
    p.norm = p.seen + n;
    shared = p.norm + n;
    p.warp_least = shared;
    p.warp_best = (best *)(shared + 32);
    p.n_live = (int *)(shared + 32 + 64);
    p.live = p.n_live + 2;
    return p;
}

// Over the block: the best state and the least unvoiced source; one barrier.
static __device__ __forceinline__ best reduce(const path &p, best b, double *least)
{
    for (int step = 16; step; step /= 2) {
        take(b, __shfl_xor_sync(ALL, b.value, step), __shfl_xor_sync(ALL, b.state, step));
        *least = fmin(*least, __shfl_xor_sync(ALL, *least, step));
    }
    const int lane = threadIdx.x & 31, n_warps = blockDim.x / 32;
    if (lane == 0) p.warp_best[threadIdx.x / 32] = b, p.warp_least[threadIdx.x / 32] = *least;
    __syncthreads();
    b = p.warp_best[lane < n_warps ? lane : 0];
    *least = p.warp_least[lane < n_warps ? lane : 0];
    for (int step = 16; step; step /= 2) {
        take(b, __shfl_xor_sync(ALL, b.value, step), __shfl_xor_sync(ALL, b.state, step));
        *least = fmin(*least, __shfl_xor_sync(ALL, *least, step));
    }
    return b;
}

// What the sources of the frame before offer the two states of bin j.
static __device__ __forceinline__ void offer(const wt_pyin_model &m, const path &p, int now, int j, best anywhere,
                                             best &to_voiced, best &to_unvoiced)
{
    const int n = m.n_bins;
    const double *from = p.unvoiced + now * p.row + j - m.first;
    best v = {-1e300, 0}, u = {-1e300, 0};
    for (int d = m.width - 1; d >= 0; d--) { // sources ascend, so that the first of equals stays
        const double source = from[-d];
        const double2 band = p.bands[d];
        if (source + band.x > v.value) v.value = source + band.x, v.state = d;
        if (source + band.y > u.value) u.value = source + band.y, u.state = d;
    }
    v.state = n + j - m.first - v.state;
    u.state = n + j - m.first - u.state;
    take(v, anywhere.value, anywhere.state);
    take(u, anywhere.value, anywhere.state);
    const double *voiced = p.voiced + now * n;
    const int n_live = p.n_live[now];
    for (int k = 0; k < n_live; k++) {
        const int i = p.live[now * n + k], d = j - i - m.first;
        if (d < 0 || d >= m.width) continue;
        take(v, voiced[i] + p.bands[d].y, i);
        take(u, voiced[i] + p.bands[d].x, i);
    }
    to_voiced = v, to_unvoiced = u;
}

static __device__ void list_live(const wt_pyin_model &m, const path &p, int now, double anywhere, double least)
{
    const double2 top = p.bands[-m.first]; // the triangles' peaks
    const double voiced = fmax(anywhere, least + top.x), unvoiced = fmax(anywhere, least + top.y);
    for (int j = threadIdx.x; j < m.n_bins; j += blockDim.x)
        if (p.voiced[now * m.n_bins + j] + top.y >= voiced || p.voiced[now * m.n_bins + j] + top.x >= unvoiced)
            p.live[now * m.n_bins + atomicAdd(&p.n_live[now], 1)] = j;
}

static __device__ void walk_back(const wt_pyin_args &a, int signal, const unsigned short *from, int state)
{
    const wt_pyin_model &m = a.model;
    float *f0 = a.out + (long long)signal * a.yin.n_frames, *voiced = f0 + (long long)a.yin.n_signals * a.yin.n_frames;
    for (long long t = a.yin.n_frames - 1; t >= 0; t--) {
        voiced[t] = state < m.n_bins;
        f0[t] = state < m.n_bins || a.keep_unvoiced
                    ? (float)(m.fmin_hz * exp2((double)(state % m.n_bins) / m.bins_per_octave))
                    : nanf("");
        state = from[t * 2 * m.n_bins + state];
    }
}

// The candidates' places: their probabilities, or, behind the frame, what all others have.
static __device__ void seat(const wt_pyin_args &a, const path &p, long long frame, int n, bool seen)
{
    const long long at = frame * a.model.max_troughs;
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        p.seen[a.bins[at + k]] = seen ? a.log_probs[at + k] : a.model.log_tiny;
}

extern "C" __global__ void __launch_bounds__(1024) pyin_path(wt_pyin_args a)
{
#ifdef PYIN_WIDE
    constexpr bool WIDE = true; // more bins, or candidates, than a block holds
    double *scratch = a.path + blockIdx.x * a.path_doubles;
#else
    constexpr bool WIDE = false;
    extern __shared__ double scratch[];
#endif
    const wt_pyin_model &m = a.model;
    const path p = lay_path(m, scratch);
    const int n = m.n_bins, tid = threadIdx.x;
    const long long T = a.yin.n_frames, base = blockIdx.x * T;
    unsigned short *from = a.from + base * 2 * n;

    for (int i = tid; i < 2 * p.row; i += blockDim.x) p.unvoiced[i - m.width] = -1e300;
    for (int i = tid; i < n; i += blockDim.x) p.seen[i] = m.log_tiny, p.norm[i] = m.log_norm[i];
    for (int i = tid; i < m.width; i += blockDim.x) p.bands[i] = make_double2(m.log_leave[i], m.log_stay[i]);
    if (tid < 2) p.n_live[tid] = 0;
    __syncthreads();

    wt_pyin_frame here = a.frames[base], next = a.frames[base + (T > 1)];
    int bin = !WIDE && tid < here.n ? a.bins[base * m.max_troughs + tid] : 0;
    double log_prob = !WIDE && tid < here.n ? a.log_probs[base * m.max_troughs + tid] : 0;
    best anywhere = {m.log_init, 0};
    for (long long t = 0; t < T; t++) {
        const int now = t & 1, then = now ^ 1;
        if (WIDE)
            seat(a, p, base + t, here.n, true);
        else if (tid < here.n)
            p.seen[bin] = log_prob;
        if (tid == 0) p.n_live[then] = 0;
        __syncthreads();
        const int old_bin = bin, old_n = here.n;
        const double log_unvoiced = here.log_unvoiced;
        const wt_pyin_frame after = a.frames[base + (t + 2 < T ? t + 2 : T - 1)];
        const long long at = (base + (t + 1 < T ? t + 1 : t)) * m.max_troughs + tid;
        if (!WIDE && tid < next.n) bin = a.bins[at], log_prob = a.log_probs[at];

        best most = {-1e300, 2 * n};
        double least = 1e300;
        const double later = t + 1 < T ? m.log_tiny : 0; // the last frame asks for the best state itself
        for (int j = tid; j < n; j += blockDim.x) {
            best v = anywhere, u = anywhere;
            if (t) offer(m, p, now, j, anywhere, v, u);
            from[t * 2 * n + j] = (unsigned short)v.state;
            from[t * 2 * n + n + j] = (unsigned short)u.state;
            const double voiced = p.seen[j] + v.value, unvoiced = log_unvoiced + u.value;
            p.voiced[then * n + j] = voiced + p.norm[j];
            p.unvoiced[then * p.row + j] = unvoiced + p.norm[j];
            take(most, voiced + later, j);
            take(most, unvoiced + later, n + j);
            least = fmin(least, unvoiced + p.norm[j]);
        }
        anywhere = reduce(p, most, &least);
        if (WIDE)
            seat(a, p, base + t, old_n, false);
        else if (tid < old_n)
            p.seen[old_bin] = m.log_tiny;
        list_live(m, p, then, anywhere.value, least);
        here = next, next = after;
        __syncthreads();
    }
    if (tid == 0) walk_back(a, a.first_signal + blockIdx.x, from, anywhere.state);
}

// ---- voicing

static __device__ double sum_over_warp(double x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

static __device__ double correlation(const float *x, long long n, long long lag)
{
    double xy = 0, xx = 0, yy = 0;
    for (long long i = threadIdx.x & 31; i + lag < n; i += 32) {
        const double here = x[i], there = x[i + lag];
        xy += here * there;
        xx += here * here;
        yy += there * there;
    }
    xy = sum_over_warp(xy), xx = sum_over_warp(xx), yy = sum_over_warp(yy);
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

static __device__ double periodicity_at(const wt_yin_args &a, const float *pcm, long long t, double period)
{
    const long long lag = llrint(period), quarter = a.frame / 4, n = quarter > 2 * lag ? quarter : 2 * lag;
    const wt_pyin_span s = wt__pyin_centred(&a, t, n + lag);
    double best = 0;
    for (long long k = lag - 1; k <= lag + 1; k++) {
        const double here = correlation(pcm + s.begin, s.end - s.begin, k);
        if (here > best) best = here;
    }
    return best;
}

static __device__ double power_at(const wt_yin_args &a, const float *pcm, long long t, double period)
{
    const long long n = period > 64 ? (long long)period : 64;
    const wt_pyin_span s = wt__pyin_centred(&a, t, n);
    double sum = 0;
    for (long long i = s.begin + (threadIdx.x & 31); i < s.end; i += 32) sum += (double)pcm[i] * pcm[i];
    return sum_over_warp(sum) / (double)n;
}

extern "C" __global__ void __launch_bounds__(YIN_THREADS) pyin_voicing(wt_pyin_args a)
{
    const long long t = (long long)blockIdx.x * YIN_WARPS + threadIdx.x / 32;
    const long long signal = a.first_signal + blockIdx.y, frame = signal * a.yin.n_frames + t;
    const float *voiced = a.out + (long long)a.yin.n_signals * a.yin.n_frames;
    if (t >= a.yin.n_frames || voiced[frame] == 0) return; // the whole warp
    const float *pcm = a.yin.pcm + signal * a.yin.n_samples;
    const double period = a.yin.rate_hz / (double)a.out[frame];
    const wt_pyin_voicing v = {periodicity_at(a.yin, pcm, t, period), power_at(a.yin, pcm, t, period)};
    if ((threadIdx.x & 31) == 0) a.voicing[blockIdx.y * a.yin.n_frames + t] = v;
}

extern "C" __global__ void __launch_bounds__(YIN_THREADS) pyin_calibrate(wt_pyin_args a)
{
    __shared__ double sums[YIN_WARPS];
    __shared__ int counts[YIN_WARPS];
    const long long T = a.yin.n_frames, signal = a.first_signal + blockIdx.x;
    float *f0 = a.out + signal * T, *voiced = f0 + (long long)a.yin.n_signals * T;
    const wt_pyin_voicing *voicing = a.voicing + blockIdx.x * T;
    double sum = 0;
    int sure = 0;
    for (long long t = threadIdx.x; t < T; t += YIN_THREADS)
        if (voiced[t] != 0 && voicing[t].periodicity >= WT_PYIN_SURE_PERIODICITY) sum += voicing[t].power, sure++;
    sum = sum_over_warp(sum), sure = __reduce_add_sync(ALL, sure);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum, counts[threadIdx.x / 32] = sure;
    __syncthreads();
    sum = 0, sure = 0;
    for (int w = 0; w < YIN_WARPS; w++) sum += sums[w], sure += counts[w];
    const double least = sure ? WT_PYIN_LEAST_LEVEL * sum / (double)sure : 0;
    for (long long t = threadIdx.x; t < T; t += YIN_THREADS) {
        if (voiced[t] == 0) continue;
        if (voicing[t].periodicity >= WT_PYIN_LEAST_PERIODICITY && voicing[t].power >= least) continue;
        voiced[t] = 0;
        if (!a.keep_unvoiced) f0[t] = nanf("");
    }
}
