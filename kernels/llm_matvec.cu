// Products with one vector, at the speed at which the weights are read. A row is shared by the warps of a team, 1 to 16 of
// the block's, its lanes 16 bytes each side by side; a lane keeps its columns from row to row, so that the vector is
// read once for ROWS rows, which are in flight together, the next ones asked for as the last are used. Rows are dealt to
// the teams of all blocks in turn, so that neighbours read neighbouring addresses. The vector lies in shared memory as
// floats; every block computes the norm again.
//
// A block is there before the kernel before is done (overlap.cuh): then its first rows are on their way already, and
// `ahead` more rounds of them to the L2 cache. It leaves room for a block of the next one.
//
// Up to three matrices, or gate and up with the activation between; bias, +=.
//
// A lane's elements are summed in order, then the lanes, then the warps, so a row does not depend on the grid. Rows that
// do not lie at 16 bytes are read element by element. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_types.cuh"

#include "overlap.cuh"

#define WARPS   16
#define THREADS (32 * WARPS)
#define ROWS    8 // of a team at a time; of a gated product half of them of each matrix

// Elements of 16 bytes.
template <class T> static constexpr int N = 16 / (int)sizeof(T);

// The chunk's word `w` as one or two floats.
static __device__ __forceinline__ void widen_word(unsigned w, const float *, float *x) { x[0] = __uint_as_float(w); }
static __device__ __forceinline__ void widen_word(unsigned w, const bf16 *, float *x)
{
    x[0] = __uint_as_float(w << 16);
    x[1] = __uint_as_float(w & 0xffff0000u);
}
static __device__ __forceinline__ void widen_word(unsigned w, const f16 *, float *x)
{
    x[0] = widen(f16{(unsigned short)w});
    x[1] = widen(f16{(unsigned short)(w >> 16)});
}

// ---- the vector: float4 q of chunk c lies at [q][c], so that lanes that read chunks side by side meet no bank twice

template <class T> static __device__ __forceinline__ int place_of(int k, int n_chunks)
{
    return (k % N<T> / 4 * n_chunks + k / N<T>) * 4 + k % 4;
}

static __device__ __forceinline__ float dot4(float4 a, float4 b, float sum)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    return sum + a.w * b.w;
}

// Elements k .. k + 3; beyond the columns zeros.
template <bool WHOLE> static __device__ __forceinline__ float4 load4(const float *p, int k, int columns)
{
    if (WHOLE) return *(const float4 *)(p + k);
    float x[4];
    for (int i = 0; i < 4; i++) x[i] = k + i < columns ? p[k + i] : 0;
    return {x[0], x[1], x[2], x[3]};
}

// The norm's weights to the places of the elements that this thread stages.
template <class T, bool WHOLE>
static __device__ __forceinline__ void stage_weights(const wt_llm_matvec_args &a, int n_chunks, float4 *shared)
{
    for (int c = threadIdx.x; c < n_chunks; c += THREADS)
#pragma unroll
        for (int q = 0; q < N<T> / 4; q++)
            shared[q * n_chunks + c] = load4<WHOLE>(a.norm_weight, c * N<T> + 4 * q, a.columns);
}

// LayerNorm of what is staged.
template <class T>
static __device__ void centre(const wt_llm_matvec_args &a, int n_chunks, float4 *shared, float *scratch)
{
    float *flat = (float *)shared, mean = 0, squares = 0;
    __syncthreads(); // others staged these elements
    for (int k = threadIdx.x; k < a.columns; k += THREADS) mean += flat[place_of<T>(k, n_chunks)];
    mean = block_sum(mean, scratch) / (float)a.columns;
    for (int k = threadIdx.x; k < a.columns; k += THREADS) {
        const float x = flat[place_of<T>(k, n_chunks)] - mean;
        squares += x * x;
    }
    const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps);
    for (int k = threadIdx.x; k < a.columns; k += THREADS) {
        float *x = flat + place_of<T>(k, n_chunks);
        *x = (*x - mean) * scale * a.norm_weight[k] + a.norm_bias[k];
    }
}

// The vector, times the norm's weights if there are. Returns what sums are multiplied with: an RMSNorm's scale. All
// threads of the block; `scratch` is [32].
template <class T, bool WHOLE>
static __device__ float stage(const wt_llm_matvec_args &a, int n_chunks, float4 *shared, float *scratch)
{
    const bool weighed = a.norm_weight && !a.norm_bias;
    float squares = 0;
    for (int c = threadIdx.x; c < n_chunks; c += THREADS)
#pragma unroll
        for (int q = 0; q < N<T> / 4; q++) {
            float4 x = load4<WHOLE>(a.x, c * N<T> + 4 * q, a.columns);
            float4 *to = shared + q * n_chunks + c;
            if (weighed) {
                squares = dot4(x, x, squares);
                x = {x.x * to->x, x.y * to->y, x.z * to->z, x.w * to->w};
            }
            *to = x;
        }
    if (a.norm_bias) centre<T>(a, n_chunks, shared, scratch);
    if (weighed) return 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps); // all are past their stores
    __syncthreads();
    return 1;
}

// ---- the weights

// Which rows a warp's team takes: the round's k-th is (round * n_slots + k) * n_teams + team, for each matrix of a gated
// product.
struct rows {
    int team, n_teams, n_slots, warps; // warps: of a team
};

static __device__ __forceinline__ int row_of(const rows &t, int round, int slot)
{
    return (round * t.n_slots + slot) * t.n_teams + t.team;
}

template <class T>
static __device__ __forceinline__ const T *weights_of(const wt_llm_matvec_args &a, int row, bool is_gate)
{
    int part = is_gate;
    for (; !a.gated && part + 1 < a.n_parts && row >= a.parts[part].rows; part++) row -= a.parts[part].rows;
    return (const T *)a.parts[part].weight + (long long)row * a.columns;
}

// Chunk c of a row; beyond the columns zeros.
template <class T, bool WHOLE> static __device__ __forceinline__ uint4 load_chunk(const T *row, int c, int columns)
{
    if (WHOLE) return ((const uint4 *)row)[c];
    union {
        T at[N<T>];
        uint4 all;
    } chunk;
    chunk.all = {0, 0, 0, 0};
    for (int k = 0; k < N<T>; k++)
        if (c * N<T> + k < columns) chunk.at[k] = row[c * N<T> + k];
    return chunk.all;
}

// Chunk c of the k-th row of a round.
template <class T, bool WHOLE>
static __device__ __forceinline__ void fetch(const wt_llm_matvec_args &a, const rows &t, int round, int k, int c,
                                             int n_chunks, uint4 *w)
{
    const int slot = a.gated ? k % (ROWS / 2) : k, row = row_of(t, round, slot);
    if (row < a.n_rows && c < n_chunks)
        *w = load_chunk<T, WHOLE>(weights_of<T>(a, row, a.gated && k >= ROWS / 2), c, a.columns);
}

// What comes after the first strip of rows, to the L2 cache.
template <class T> static __device__ __forceinline__ void ask_ahead(const wt_llm_matvec_args &a, const rows &t)
{
    const int k = threadIdx.x % (32 * t.warps);
    if (k >= ROWS) return;
    for (int round = 0; round < a.ahead; round++) {
        const int row = row_of(t, round, a.gated ? k % (ROWS / 2) : k), had = round ? 0 : 32 * t.warps * N<T>;
        if (row < a.n_rows && had < a.columns)
            ask_for(weights_of<T>(a, row, a.gated && k >= ROWS / 2) + had, (a.columns - had) * (int)sizeof(T));
    }
}

template <class T> static __device__ __forceinline__ float multiply(uint4 w, const float4 *x, float sum)
{
    const unsigned words[4] = {w.x, w.y, w.z, w.w};
    float y[N<T>];
#pragma unroll
    for (int k = 0; k < 4; k++) widen_word(words[k], (const T *)0, y + k * N<T> / 4);
#pragma unroll
    for (int q = 0; q < N<T> / 4; q++) sum = dot4({y[4 * q], y[4 * q + 1], y[4 * q + 2], y[4 * q + 3]}, x[q], sum);
    return sum;
}

// ---- the sums

// Sums over the warp: lane l gets that of row l / 4.
static __device__ __forceinline__ float fold(float *sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = ROWS / 2, bit = 16; half; half /= 2, bit /= 2)
#pragma unroll
        for (int k = 0; k < half; k++) {
            const bool upper = lane & bit;
            const float other = __shfl_xor_sync(ALL, upper ? sums[k] : sums[k + half], bit);
            sums[k] = (upper ? sums[k + half] : sums[k]) + other;
        }
    sums[0] += __shfl_xor_sync(ALL, sums[0], 2);
    return sums[0] + __shfl_xor_sync(ALL, sums[0], 1);
}

// Where threads 0 .. WARPS * ROWS - 1 finish a round: `warps` of them side by side have a row's sums of the team's warps,
// and those beside them the gate's.
struct ending {
    int from, slot, part, row; // from: in the round's sums; row: of the part, -1 = none
    bool is_first;
};

static __device__ __forceinline__ ending ending_of(const wt_llm_matvec_args &a, const rows &t, int round)
{
    const int i = threadIdx.x, warp = i % t.warps, at = i / t.warps, side = a.gated ? at % 2 : 0;
    const int of_all = a.gated ? at / 2 : at, team = of_all / t.n_slots, slot = of_all % t.n_slots;
    ending e = {(team * t.warps + warp) * ROWS + slot + side * (ROWS / 2), slot, 0, -1, !warp && !side};
    const int row = (round * t.n_slots + slot) * t.n_teams + team * (int)gridDim.x + (int)blockIdx.x;
    if (row >= a.n_rows) return e;
    e.row = row;
    for (; !a.gated && e.part + 1 < a.n_parts && e.row >= a.parts[e.part].rows; e.part++) e.row -= a.parts[e.part].rows;
    return e;
}

static __device__ __forceinline__ float biased(const wt_llm_part &p, int row, float x)
{
    return p.bias ? x + p.bias[row] : x;
}

// All lanes of a warp; `before` is what the sum is added to.
static __device__ __forceinline__ void finish(const wt_llm_matvec_args &a, const rows &t, const ending &e, const float *sums,
                                              float scale, float before)
{
    float sum = sums[e.from];
    for (int step = t.warps / 2; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    sum *= scale;
    const float gate = a.gated ? __shfl_down_sync(ALL, sum, t.warps) : 0;
    if (!e.is_first || e.row < 0) return;
    const wt_llm_part &p = a.parts[e.part];
    float y = biased(p, e.row, sum);
    if (a.gated)
        y *= activate(a.activation, biased(a.parts[1], e.row, gate));
    else
        y = activate(a.activation, y);
    p.out[e.row] = before + y;
}

// ---- all of it

template <class T, bool WHOLE> static __device__ __forceinline__ void matvec(const wt_llm_matvec_args &a)
{
    extern __shared__ float4 shared[];
    __shared__ float scratch[32], sums_of[2][WARPS * ROWS];
    const int n_chunks = (a.columns + N<T> - 1) / N<T>, warp = threadIdx.x / 32, width = 32 * a.warps;
    const int n_strips = (n_chunks + width - 1) / width, own = threadIdx.x % width;
    const rows t = {warp / a.warps * (int)gridDim.x + (int)blockIdx.x, (int)gridDim.x * (WARPS / a.warps),
                    a.gated ? ROWS / 2 : ROWS, a.warps};
    const int n_rounds = (a.n_rows + t.n_slots * t.n_teams - 1) / (t.n_slots * t.n_teams);
    uint4 w[ROWS] = {};
    let_next_begin();
#pragma unroll
    for (int k = 0; k < ROWS; k++) fetch<T, WHOLE>(a, t, 0, k, own, n_chunks, &w[k]);
    if (WHOLE) ask_ahead<T>(a, t);
    if (a.norm_weight && !a.norm_bias) stage_weights<T, WHOLE>(a, n_chunks, shared);
    wait_for_earlier();
    const float scale = stage<T, WHOLE>(a, n_chunks, shared, scratch);

    for (int round = 0; round < n_rounds; round++) {
        float sums[ROWS] = {}, before = 0;
        if (a.add && threadIdx.x < WARPS * ROWS) {
            const ending e = ending_of(a, t, round);
            if (e.is_first && e.row >= 0) before = a.parts[e.part].out[e.row];
        }
        for (int strip = 0; strip < n_strips; strip++) {
            const int c = strip * width + own;
            const bool is_last = strip + 1 == n_strips;
            const int next_round = round + is_last, next_c = is_last ? own : c + width;
            float4 x[N<T> / 4];
#pragma unroll
            for (int q = 0; q < N<T> / 4; q++) x[q] = c < n_chunks ? shared[q * n_chunks + c] : float4{0, 0, 0, 0};
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                if (c < n_chunks) sums[k] = multiply<T>(w[k], x, sums[k]);
                fetch<T, WHOLE>(a, t, next_round, k, next_c, n_chunks, &w[k]);
            }
        }
        const float sum = fold(sums);
        float *to = sums_of[round % 2];
        if (threadIdx.x % 4 == 0) to[warp * ROWS + threadIdx.x % 32 / 4] = sum;
        __syncthreads(); // those of the round before the last are used
        if (threadIdx.x < WARPS * ROWS) finish(a, t, ending_of(a, t, round), to, scale, before);
    }
}

template <class T> static __device__ __forceinline__ void matvec_of(const wt_llm_matvec_args &a)
{
    bool whole = a.columns % N<T> == 0 && (unsigned long long)a.x % 16 == 0;
    for (int k = 0; k < a.n_parts; k++) whole = whole && (unsigned long long)a.parts[k].weight % 16 == 0;
    if (whole && (unsigned long long)a.norm_weight % 16 == 0)
        matvec<T, true>(a);
    else
        matvec<T, false>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_f32(const __grid_constant__ wt_llm_matvec_args a) { matvec_of<float>(a); }
extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_f16(const __grid_constant__ wt_llm_matvec_args a) { matvec_of<f16>(a); }
extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_bf16(const __grid_constant__ wt_llm_matvec_args a) { matvec_of<bf16>(a); }
