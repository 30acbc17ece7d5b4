// Products with one vector, at the speed at which the weights are read. A row is shared by the warps of a team, 1 to 8
// of the block's, its lanes 16 bytes each side by side; a lane keeps its columns from row to row, so that the vector is
// read once for ROWS rows, which are in flight together, the next ones asked for as the last are used. Rows are dealt
// to the teams of all blocks in turn, so that neighbours read neighbouring addresses. The vector lies in shared memory
// as floats; every block computes the norm again.
//
// Two blocks or four on a processor: one adds up while the others' rows are on their way. They are there before the
// kernel before is done (overlap.cuh), their first rows asked for, and two leave room for two of the next one.
//
// Up to three matrices, or gate and up with the activation between; bias, +=.
//
// A lane's elements are summed in order, then the lanes, then the warps, so a row does not depend on the grid. Rows
// that do not lie at 16 bytes are read element by element. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_types.cuh"

#include "overlap.cuh"

#define WARPS   8
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

// What the matrices are: one, several whose rows follow each other, or a gated product's two.
enum { ONE, SEVERAL, GATED };

// Which rows a warp's team takes: the round's k-th is (round * SLOTS + k) * n_teams + team, for each matrix of a gated
// product.
template <int KIND> static constexpr int SLOTS = KIND == GATED ? ROWS / 2 : ROWS;

struct place {
    int team, n_teams, warps; // warps: of a team
};

template <int KIND> static __device__ __forceinline__ int row_of(const place &p, int round, int slot)
{
    return (round * SLOTS<KIND> + slot) * p.n_teams + p.team;
}

// The part that has a row, which becomes the row's number there.
template <int KIND> static __device__ __forceinline__ int part_of(const wt_llm_matvec_args &a, int *row)
{
    if (KIND != SEVERAL) return 0;
    const int first = a.parts[0].rows, second = first + a.parts[1].rows;
    const int part = *row < first ? 0 : *row < second ? 1 : 2;
    *row -= part == 0 ? 0 : part == 1 ? first : second;
    return part;
}

// Row k of a round, of ROWS, where it begins.
template <class T, int KIND>
static __device__ __forceinline__ const T *weights_of(const wt_llm_matvec_args &a, int row, int k)
{
    const int part = KIND == GATED ? k >= ROWS / 2 : part_of<KIND>(a, &row);
    const void *weight = part == 0 ? a.parts[0].weight : part == 1 ? a.parts[1].weight : a.parts[2].weight;
    return (const T *)weight + (long long)row * a.columns;
}

// Chunk c of a row that is not whole, if wanted; beyond the columns zeros.
template <class T> static __device__ void gather(bool wanted, const T *row, int c, int columns, uint4 *to)
{
    union {
        T at[N<T>];
        uint4 all;
    } chunk;
    chunk.all = {0, 0, 0, 0};
    if (!wanted) return;
    for (int k = 0; k < N<T>; k++)
        if (c * N<T> + k < columns) chunk.at[k] = row[c * N<T> + k];
    *to = chunk.all;
}

// Chunk c of the k-th row of a round, if there is one.
template <class T, bool WHOLE, int KIND>
static __device__ __forceinline__ void fetch(const wt_llm_matvec_args &a, const place &p, int round, int k, int c,
                                             int n_chunks, uint4 *w)
{
    const int row = row_of<KIND>(p, round, k % SLOTS<KIND>);
    const bool wanted = row < a.n_rows && c < n_chunks;
    const T *from = weights_of<T, KIND>(a, row, k);
    if (WHOLE)
        load_if(wanted, (const uint4 *)from + c, w);
    else
        gather(wanted, from, c, a.columns, w);
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

// Where threads 0 .. WARPS * ROWS - 1 finish a round: `warps` of them side by side have a row's sums of the team's
// warps, and those beside them the gate's.
struct ending {
    int from, part, row; // from: in the round's sums; row: of the part, -1 = none
    bool is_first;
};

template <int KIND>
static __device__ __forceinline__ ending ending_of(const wt_llm_matvec_args &a, const place &p, int round)
{
    const int at = threadIdx.x / p.warps, warp = threadIdx.x % p.warps, side = KIND == GATED ? at % 2 : 0;
    const int of_all = KIND == GATED ? at / 2 : at, team = of_all / SLOTS<KIND>, slot = of_all % SLOTS<KIND>;
    const place of_team = {team * (int)gridDim.x + (int)blockIdx.x, p.n_teams, p.warps};
    ending e = {(team * p.warps + warp) * ROWS + slot + side * (ROWS / 2), 0, row_of<KIND>(of_team, round, slot),
                !warp && !side};
    if (e.row < a.n_rows)
        e.part = part_of<KIND>(a, &e.row);
    else
        e.row = -1;
    return e;
}

static __device__ __forceinline__ float biased(const wt_llm_part &p, int row, float x)
{
    return p.bias ? x + p.bias[row] : x;
}

// All lanes of a warp; `before` is what the sum is added to.
template <int KIND>
static __device__ __forceinline__ void finish(const wt_llm_matvec_args &a, const place &p, const ending &e,
                                              const float *sums, float scale, float before)
{
    float sum = sums[e.from];
    for (int step = p.warps / 2; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    sum *= scale;
    const float gate = KIND == GATED ? __shfl_down_sync(ALL, sum, p.warps) : 0;
    if (!e.is_first || e.row < 0) return;
    const wt_llm_part &part = a.parts[e.part];
    float y = biased(part, e.row, sum);
    if (KIND == GATED)
        y *= activate(a.activation, biased(a.parts[1], e.row, gate));
    else
        y = activate(a.activation, y);
    part.out[e.row] = before + y;
}

// ---- all of it

template <class T, bool WHOLE, int KIND> static __device__ __forceinline__ void matvec(const wt_llm_matvec_args &a)
{
    extern __shared__ float4 shared[];
    __shared__ float scratch[32], sums_of[2][WARPS * ROWS];
    const int n_chunks = (a.columns + N<T> - 1) / N<T>, warp = threadIdx.x / 32, width = 32 * a.warps;
    const int n_strips = (n_chunks + width - 1) / width, own = threadIdx.x % width;
    const place p = {warp / a.warps * (int)gridDim.x + (int)blockIdx.x, (int)gridDim.x * (WARPS / a.warps), a.warps};
    const int of_round = SLOTS<KIND> * p.n_teams, n_rounds = (a.n_rows + of_round - 1) / of_round;
    uint4 w[ROWS] = {};
    let_next_begin();
#pragma unroll
    for (int k = 0; k < ROWS; k++) fetch<T, WHOLE, KIND>(a, p, 0, k, own, n_chunks, &w[k]);
    if (a.norm_weight && !a.norm_bias) stage_weights<T, WHOLE>(a, n_chunks, shared);
    wait_for_earlier();
    const float scale = stage<T, WHOLE>(a, n_chunks, shared, scratch);

    for (int round = 0; round < n_rounds; round++) {
        float sums[ROWS] = {}, before = 0;
        if (a.add && threadIdx.x < WARPS * ROWS) {
            const ending e = ending_of<KIND>(a, p, round);
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
                sums[k] = multiply<T>(w[k], x, sums[k]);
                fetch<T, WHOLE, KIND>(a, p, next_round, k, next_c, n_chunks, &w[k]);
            }
        }
        const float sum = fold(sums);
        float *to = sums_of[round % 2];
        if (threadIdx.x % 4 == 0) to[warp * ROWS + threadIdx.x % 32 / 4] = sum;
        __syncthreads(); // those of the round before the last are used
        if (threadIdx.x < WARPS * ROWS) finish<KIND>(a, p, ending_of<KIND>(a, p, round), to, scale, before);
    }
}

template <class T> static __device__ __forceinline__ void matvec_of(const wt_llm_matvec_args &a)
{
    unsigned long long all = (unsigned long long)a.x | (unsigned long long)a.norm_weight;
    for (int k = 0; k < a.n_parts; k++) all |= (unsigned long long)a.parts[k].weight;
    const bool whole = a.columns % N<T> == 0 && all % 16 == 0;
    if (whole && a.gated)
        matvec<T, true, GATED>(a);
    else if (whole && a.n_parts == 1)
        matvec<T, true, ONE>(a);
    else if (whole)
        matvec<T, true, SEVERAL>(a);
    else if (a.gated)
        matvec<T, false, GATED>(a);
    else
        matvec<T, false, SEVERAL>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) llm_matvec_f32(const __grid_constant__ wt_llm_matvec_args a)
{
    matvec_of<float>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS, 4) llm_matvec_f16(const __grid_constant__ wt_llm_matvec_args a)
{
    matvec_of<f16>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS, 4) llm_matvec_bf16(const __grid_constant__ wt_llm_matvec_args a)
{
    matvec_of<bf16>(a);
}
