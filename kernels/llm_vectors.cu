// Products with 2 to 16 vectors (8 TILES at most) on tensor cores, at the cost of one: W is the 16 x 16 side of an
// mma, the vectors the 8 wide one. The warps of a team, 1 to 16 of the block's, share the columns, SPAN of them each in a
// pass; a warp has its columns of the vectors in registers for all the rows of the block. A lane reads 16 bytes of two
// rows where they are: the order of columns in a product is free as long as the vectors come in the same one. A group of
// 16 rows, of a gated product 8 of each matrix, is in flight; the next one is asked for as it is used. Groups are dealt to
// the teams of all blocks in turn.
//
// A block asks for its first rows before the kernel before is done (overlap.cuh).
//
// A warp's columns are summed in order and then the warps, so a row's sum depends neither on the grid nor on the other
// vectors. Wants columns in multiples of 32 and all at 16 bytes. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_types.cuh"

#include "mma.cuh"
#include "overlap.cuh"

#ifndef TILES
#    define TILES 1
#endif
#define WARPS   16
#define THREADS (32 * WARPS)
#define CHUNKS  (8 / TILES)       // of a warp's columns, 32 each: four lanes read 64 bytes of a row
#define SPAN    (32 * CHUNKS) // columns of a warp in a pass
#define GROUPS  (2 * TILES)       // of rows that a team works on together, so that a pass's vectors serve more of them
#define WIDTH   (8 * TILES)

static __device__ __forceinline__ void multiply(const bf16 *, float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    mma_bf16(d, a, b0, b1);
}
static __device__ __forceinline__ void multiply(const f16 *, float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    mma_f16(d, a, b0, b1);
}

// The team's g-th group of a round is group (round * GROUPS + g) * n_teams + team of all.
struct place {
    int team, n_teams, n_groups, group_rows, n_passes, warp; // n_groups of all teams; warp: in the team
};

static __device__ __forceinline__ int group_of(const place &p, int round, int g)
{
    return (round * GROUPS + g) * p.n_teams + p.team;
}

// A row of all parts, or of one of a gated product's matrices; beyond the rows NULL.
template <class T>
static __device__ __forceinline__ const T *row_at(const wt_llm_vectors_args &a, int row, bool is_second)
{
    int part = is_second;
    if (row >= a.n_rows) return NULL;
    for (; !a.gated && part + 1 < a.n_parts && row >= a.parts[part].rows; part++) row -= a.parts[part].rows;
    return (const T *)a.parts[part].weight + (long long)row * a.columns;
}

static __device__ __forceinline__ int column_of(const wt_llm_vectors_args &a, const place &p, int pass, int chunk)
{
    return (pass * a.warps + p.warp) * SPAN + chunk * 32 + threadIdx.x % 4 * 8;
}

// The lane's two rows of a group, where they begin.
template <class T> struct lane_rows {
    const T *at[2];
};

template <class T>
static __device__ __forceinline__ lane_rows<T> rows_of(const wt_llm_vectors_args &a, const place &p, int group)
{
    const int row = group * p.group_rows + (int)threadIdx.x % 32 / 4;
    return {{row_at<T>(a, row, false), row_at<T>(a, a.gated ? row : row + 8, a.gated)}};
}

template <class T>
static __device__ __forceinline__ void fetch(const wt_llm_vectors_args &a, const lane_rows<T> &rows, int column, uint4 *w)
{
#pragma unroll
    for (int h = 0; h < 2; h++) load_if(rows.at[h] && column < a.columns, rows.at[h] + column, &w[h]);
}

// The warp's columns of the vectors: zeros beyond the columns and the vectors.
template <class T>
static __device__ __forceinline__ void load_vectors(const wt_llm_vectors_args &a, const place &p, int pass,
                                                    uint4 (*x)[TILES])
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const int i = (int)threadIdx.x % 32 / 4 + 8 * n, column = column_of(a, p, pass, c);
            x[c][n] = {0, 0, 0, 0};
            if (i < a.n_vectors && column < a.columns)
                x[c][n] = *(const uint4 *)((const T *)a.x + (long long)i * a.columns + column);
        }
}

// 16 rows of 32 columns.
template <class T>
static __device__ __forceinline__ void multiply_chunk(const uint4 *w, const uint4 *x, float (*sums)[4])
{
    const unsigned first[4] = {w[0].x, w[1].x, w[0].y, w[1].y}, second[4] = {w[0].z, w[1].z, w[0].w, w[1].w};
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        multiply((const T *)0, sums[n], first, x[n].x, x[n].y);
        multiply((const T *)0, sums[n], second, x[n].z, x[n].w);
    }
}

// ---- the sums

typedef float warp_sums[16][WIDTH + 1]; // [row][vector]

static __device__ __forceinline__ void keep(warp_sums to, const float (*sums)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) to[g + c / 2 * 8][8 * n + 2 * t + c % 2] = sums[n][c];
}

static __device__ __forceinline__ float biased(const wt_llm_part &p, int row, float x)
{
    return p.bias ? x + p.bias[row] : x;
}

// Row `row` of all parts of vector i is summed; `other` is a gated product's part 1.
static __device__ __forceinline__ void finish(const wt_llm_vectors_args &a, int row, int i, float sum, float other)
{
    int part = 0, at = row;
    for (; !a.gated && part + 1 < a.n_parts && at >= a.parts[part].rows; part++) at -= a.parts[part].rows;
    const wt_llm_part &p = a.parts[part];
    const long long to = (long long)i * p.rows + at;
    float y = activate(a.activation, biased(p, at, sum));
    if (a.gated) y *= biased(a.parts[1], at, other);
    store(p.out, a.out_type, to, a.add ? load(p.out, a.out_type, to) + y : y);
}

// The block's groups number g of a round: a thread has a row and a vector.
static __device__ __forceinline__ void finish_groups(const wt_llm_vectors_args &a, const place &p, int round, int g,
                                                     const warp_sums *sums)
{
    const int n = p.group_rows * a.n_vectors;
    for (int o = threadIdx.x; o < WARPS / a.warps * n; o += THREADS) {
        const int team = o / n, r = o % n % p.group_rows, i = o % n / p.group_rows;
        const int all = (round * GROUPS + g) * p.n_teams + team * (int)gridDim.x + (int)blockIdx.x;
        const int row = all * p.group_rows + r;
        if (row >= a.n_rows) continue;
        float sum = 0, other = 0;
        for (int w = team * a.warps; w < (team + 1) * a.warps; w++) {
            sum += sums[w][r][i];
            if (a.gated) other += sums[w][r + 8][i];
        }
        finish(a, row, i, sum, other);
    }
}

// ---- all of it

template <class T> static __device__ __forceinline__ void product(const wt_llm_vectors_args &a)
{
    extern __shared__ float memory[];
    warp_sums *sums_of = (warp_sums *)memory; // [GROUPS][WARPS]
    const int warp = threadIdx.x / 32, group_rows = a.gated ? 8 : 16;
    const place p = {warp / a.warps * (int)gridDim.x + (int)blockIdx.x, (int)gridDim.x * (WARPS / a.warps),
                     (a.n_rows + group_rows - 1) / group_rows, group_rows, (a.columns + SPAN * a.warps - 1) / (SPAN * a.warps),
                     warp % a.warps};
    const int n_rounds = (p.n_groups + GROUPS * p.n_teams - 1) / (GROUPS * p.n_teams);
    uint4 w[CHUNKS][2] = {}, x[CHUNKS][TILES];
    let_next_begin();
    lane_rows<T> rows = rows_of<T>(a, p, group_of(p, 0, 0));
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) fetch<T>(a, rows, column_of(a, p, 0, c), w[c]);
    wait_for_earlier();

    for (int round = 0; round < n_rounds; round++) {
        float sums[GROUPS][TILES][4] = {};
        for (int pass = 0; pass < p.n_passes; pass++) {
            if (p.n_passes > 1 || !round) load_vectors<T>(a, p, pass, x);
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                // the next group of this pass, or the first of the next pass or round
                const bool is_last = g + 1 == GROUPS, wraps = is_last && pass + 1 == p.n_passes;
                const int next_pass = is_last ? wraps ? 0 : pass + 1 : pass;
                rows = rows_of<T>(a, p, group_of(p, round + wraps, is_last ? 0 : g + 1));
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) {
                    multiply_chunk<T>(w[c], x[c], sums[g]);
                    fetch<T>(a, rows, column_of(a, p, next_pass, c), w[c]);
                }
            }
        }
        __syncthreads(); // the sums of the round before are used
#pragma unroll
        for (int g = 0; g < GROUPS; g++) keep(sums_of[g * WARPS + warp], sums[g]);
        __syncthreads();
        for (int g = 0; g < GROUPS; g++) finish_groups(a, p, round, g, sums_of + g * WARPS);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) llm_vectors_f16(const __grid_constant__ wt_llm_vectors_args a) { product<f16>(a); }
extern "C" __global__ void __launch_bounds__(THREADS, 1) llm_vectors_bf16(const __grid_constant__ wt_llm_vectors_args a) { product<bf16>(a); }
