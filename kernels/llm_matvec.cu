// Products with one vector, at the speed at which the weights are read: a warp takes a row, its lanes 16 bytes
// each side by side, UNROLL of them in flight, the next ones asked for before the last are used, also from one row to
// the next. Blocks stay and take rows a grid apart, so that neighbours read neighbouring addresses. The vector lies in
// shared memory as floats; with a norm every block computes it again, while the first weights are on their way.
//
// Up to three matrices, or gate and up with the activation between; bias, +=.
//
// A lane's elements are summed in order and then the lanes, so a row does not depend on the grid. Rows that do not lie at
// 16 bytes are read element by element. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_types.cuh"

#define WARPS   16
#define THREADS (32 * WARPS)
#define UNROLL  4

template <class T> struct row_reader {
    static constexpr int N = 16 / sizeof(T); // elements of a chunk
};

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

// The vector in shared memory, rearranged so that lanes that read chunks side by side meet no bank twice: quarter q of
// chunk c at [q][c], four floats each. `whole`: there are whole chunks.
template <class T> static __device__ __forceinline__ int place_of(int k, int columns, bool whole)
{
    constexpr int N = row_reader<T>::N;
    return whole ? (k % N / 4 * (columns / N) + k / N) * 4 + k % 4 : k;
}

// x, or its norm, to shared memory; `scratch` is [32]. All threads of the block.
template <class T>
static __device__ void stage(float *shared, const float *x, const float *weight, const float *bias, float eps,
                             int columns, bool whole, float *scratch)
{
    float mean = 0, squares = 0;
    if (weight && bias) {
        for (int k = threadIdx.x; k < columns; k += THREADS) mean += x[k];
        mean = block_sum(mean, scratch) / (float)columns;
    }
    for (int k = threadIdx.x; k < columns; k += THREADS) {
        const float y = x[k] - mean;
        squares += y * y;
        shared[place_of<T>(k, columns, whole)] = y;
    }
    if (weight) {
        const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)columns + eps);
        for (int k = threadIdx.x; k < columns; k += THREADS)
            shared[place_of<T>(k, columns, whole)] =
                shared[place_of<T>(k, columns, whole)] * scale * weight[k] + (bias ? bias[k] : 0);
    }
    __syncthreads();
}

struct strip {
    uint4 at[UNROLL];
};

// Chunks group * UNROLL * 32 + u * 32 + lane of a row.
template <class T> static __device__ __forceinline__ void fetch(strip *s, const T *row, int group, int n_chunks)
{
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int c = (group * UNROLL + u) * 32 + (int)threadIdx.x % 32;
        if (c < n_chunks) s->at[u] = ((const uint4 *)row)[c];
    }
}

template <class T>
static __device__ __forceinline__ float multiply(const strip &s, const float *shared, int group, int n_chunks, float sum)
{
    constexpr int N = row_reader<T>::N;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int c = (group * UNROLL + u) * 32 + (int)threadIdx.x % 32;
        if (c >= n_chunks) continue;
        const unsigned words[4] = {s.at[u].x, s.at[u].y, s.at[u].z, s.at[u].w};
        float w[N];
#pragma unroll
        for (int k = 0; k < 4; k++) widen_word(words[k], (const T *)0, w + k * N / 4);
#pragma unroll
        for (int q = 0; q < N / 4; q++) {
            const float4 x = ((const float4 *)shared)[q * n_chunks + c];
            sum += w[4 * q] * x.x;
            sum += w[4 * q + 1] * x.y;
            sum += w[4 * q + 2] * x.z;
            sum += w[4 * q + 3] * x.w;
        }
    }
    return sum;
}

template <class T> static __device__ float plain_dot(const T *row, const float *shared, int columns)
{
    float sum = 0;
    for (int k = threadIdx.x % 32; k < columns; k += 32) sum += widen(row[k]) * shared[k];
    return sum;
}

template <class T> static __device__ __forceinline__ bool is_whole(const void *weight, int columns)
{
    return columns % row_reader<T>::N == 0 && (unsigned long long)weight % 16 == 0;
}

// A row's number to its matrix and row there.
struct row_place {
    int part, row;
};

static __device__ __forceinline__ row_place place_row(const wt_llm_matvec_args &a, int row)
{
    row_place p = {0, row};
    while (!a.gated && p.part + 1 < a.n_parts && p.row >= a.parts[p.part].rows) p.row -= a.parts[p.part++].rows;
    return p;
}

template <class T> static __device__ __forceinline__ const T *row_of(const wt_llm_part &p, int row, int columns)
{
    return (const T *)p.weight + (long long)row * columns;
}

static __device__ __forceinline__ float biased(const wt_llm_part &p, int row, float x)
{
    return p.bias ? x + p.bias[row] : x;
}

// A row's sum is there: what comes after it. Lane 0.
static __device__ __forceinline__ void finish(const wt_llm_matvec_args &a, row_place at, float sum, float gate)
{
    const wt_llm_part &p = a.parts[at.part];
    float y = biased(p, at.row, sum);
    if (a.gated)
        y *= activate(a.activation, biased(a.parts[1], at.row, gate));
    else
        y = activate(a.activation, y);
    float *out = p.out + at.row;
    *out = a.add ? *out + y : y;
}

template <class T> static __device__ __forceinline__ void matvec(const wt_llm_matvec_args &a)
{
    extern __shared__ float4 memory[];
    float *shared = (float *)memory;
    __shared__ float scratch[32];
    constexpr int N = row_reader<T>::N;
    const int columns = a.columns, n_chunks = columns / N, n_groups = (n_chunks + 32 * UNROLL - 1) / (32 * UNROLL);
    const int step = gridDim.x * WARPS, n_sides = a.gated ? 2 : 1;
    bool whole = is_whole<T>(a.parts[0].weight, columns);
    for (int k = 1; k < a.n_parts; k++) whole = whole && is_whole<T>(a.parts[k].weight, columns);
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    row_place at = place_row(a, row < a.n_rows ? row : 0);
    const T *weights = row_of<T>(a.parts[at.part], at.row, columns);
    strip now;
    if (whole && row < a.n_rows) fetch(&now, weights, 0, n_chunks);
    stage<T>(shared, a.x, a.norm_weight, a.norm_bias, a.eps, columns, whole, scratch);
    float sum = 0, gate = 0;
    int side = 0, group = 0;
    while (row < a.n_rows) { // the whole warp
        // the next group of this row, of the gate's row, or of the warp's next row
        int next_row = row, next_side = side, next_group = group + 1;
        if (!whole) {
            const float dot = plain_dot(weights, shared, columns);
            if (side) gate = dot;
            else sum = dot;
            next_group = n_groups;
        }
        if (next_group >= n_groups) {
            next_group = 0;
            if (++next_side == n_sides) {
                next_side = 0;
                next_row += step;
            }
        }
        const row_place next_at = next_row == row ? at : place_row(a, next_row < a.n_rows ? next_row : 0);
        const T *next_weights = row_of<T>(a.parts[next_side ? 1 : next_at.part], next_at.row, columns);
        strip next;
        if (whole && next_row < a.n_rows) fetch(&next, next_weights, next_group, n_chunks);
        if (whole && side) gate = multiply<T>(now, shared, group, n_chunks, gate);
        if (whole && !side) sum = multiply<T>(now, shared, group, n_chunks, sum);
        if (next_row != row) {
            sum = warp_sum(sum);
            if (a.gated) gate = warp_sum(gate);
            if (threadIdx.x % 32 == 0) finish(a, at, sum, gate);
            sum = gate = 0;
        }
        row = next_row, side = next_side, group = next_group, at = next_at, weights = next_weights, now = next;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_f32(const __grid_constant__ wt_llm_matvec_args a) { matvec<float>(a); }
extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_f16(const __grid_constant__ wt_llm_matvec_args a) { matvec<f16>(a); }
extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_matvec_bf16(const __grid_constant__ wt_llm_matvec_args a) { matvec<bf16>(a); }
