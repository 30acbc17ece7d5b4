// Products with few rows of x, bound by the reading of W: y = x W^T on tensor cores, W the 16 x 16 side and x the 8
// wide one, so that 8 rows of x cost what one costs. A block takes 16 rows of W (of both matrices of a gated product);
// its warps share the columns, chunk by chunk. In a step the four lanes of a row read 64 bytes of it, 16 each, and use
// them where they are: the order of the columns in a product is free as long as x comes in the same one. Sums of the
// warps are added in order in shared memory. What is summed for a row of x, and in which order, depends on no other
// row. Scales: constant along columns they wait for the end (MM_SCALES 0); of groups that fill whole steps (1) each
// step's sums are scaled; of smaller groups (2) the four lanes first exchange their words, so that each product is
// within one group; of groups of 16 nibbles (3) the weights themselves are scaled, which is exact for NVFP4. Reads W
// once, x once a block through L1. Judge: the CPU.
#ifndef MM_W
#    define MM_W      2
#    define MM_X      2
#    define MM_SCALES 0
#    define MM_S      0
#    define MM_N      1
#    define MM_PAIR   1
#    define MM_STEPS  4
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#define SPAN  (4 * VECTOR) ///< columns of a step
#define CHUNK (MM_STEPS * SPAN)
#define WIDTH (8 * MM_N) ///< rows of x
#define ALL   0xffffffffu

struct lane_rows {
    const wt_mm_part *part;
    const unsigned char *w[2], *scales[2], *zeros[2]; // rows g and g + 8, where they begin
};

static __device__ __forceinline__ uint4 load_w(const unsigned char *p) { return *(const uint4 *)p; }

static __device__ __forceinline__ lane_rows rows_of(const wt_mm_args &a, const wt_mm_part &p, int stack, int first)
{
    lane_rows l;
    l.part = &p;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int wanted = first + threadIdx.x % 32 / 4 + 8 * h, r = wanted < p.rows ? wanted : p.rows - 1;
        l.w[h] = p.w + stack * p.w_next + r * a.row_bytes;
        l.scales[h] = p.scales + stack * p.scales_next +
                      (MM_SCALES ? (long long)(r / a.scale_rows) * a.scale_stride *
                                       (MM_S == WT_MM_F32    ? 4
                                        : MM_S == WT_MM_E4M3 ? 1
                                                             : 2)
                                 : 0);
        l.zeros[h] = p.zeros + stack * p.zeros_next + (long long)r * a.scale_stride;
    }
    return l;
}

static __device__ __forceinline__ float scale_of(const wt_mm_args &a, const lane_rows &l, int h, int k)
{
    return k < a.columns ? element(MM_S, l.scales[h], k >> a.scale_shift) : 0;
}

static __device__ __forceinline__ unsigned zero_of(const wt_mm_args &a, const lane_rows &l, int h, int k)
{
    return l.part->zeros && k < a.columns ? l.zeros[h][k >> a.scale_shift] : 8;
}

// A unit of columns of the lane's rows of x (n = g, g + 8); zeros beyond the columns and the rows there are.
static __device__ __forceinline__ void load_x(const wt_mm_args &a, const wt_mm_tile &t, int k, unsigned (*b)[4])
{
#pragma unroll
    for (int n = 0; n < MM_N; n++) {
        const int i = threadIdx.x % 32 / 4 + 8 * n;
        uint4 x = {0, 0, 0, 0};
        if (i < t.count && k < a.columns) x = *(const uint4 *)(a.x + (t.x + i * a.x_stride + k) * 16 / UNIT);
        arrange(x, b[n]);
    }
}

// sums += a unit of columns of 16 rows times x.
static __device__ __forceinline__ void multiply_unit(const unsigned (*w)[4], const unsigned (*b)[4], mm_sum (*sums)[4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        unsigned fragment[4];
        fragment_of(w, half, fragment);
#pragma unroll
        for (int n = 0; n < MM_N; n++) mma_x(sums[n], fragment, b[n][2 * half], b[n][2 * half + 1]);
    }
}

static __device__ __forceinline__ void add_scaled(mm_sum (*sums)[4], const mm_sum (*some)[4], float s0, float s1)
{
#pragma unroll
    for (int n = 0; n < MM_N; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) sums[n][c] += (c < 2 ? s0 : s1) * some[n][c]; // never of I8
}

// One step: the lane's vectors of its two rows, whose columns begin at `k`.
static __device__ __forceinline__ void step(const wt_mm_args &a, const wt_mm_tile &t, const lane_rows &l,
                                            const uint4 *vectors, int k, mm_sum (*sums)[4])
{
    const unsigned words[2][4] = {{vectors[0].x, vectors[0].y, vectors[0].z, vectors[0].w},
                                  {vectors[1].x, vectors[1].y, vectors[1].z, vectors[1].w}};
    mm_sum part[MM_N][4] = {};
    unsigned zeros[2] = {0, 0};
    if (MM_W == WT_MM_U4)
        for (int h = 0; h < 2; h++) zeros[h] = placed_zero(zero_of(a, l, h, k));
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        unsigned b[MM_N][4], w[2][4];
        load_x(a, t, k + UNIT * i, b);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (MM_SCALES == 3 && MM_W == WT_MM_U4 && i == 2) zeros[h] = placed_zero(zero_of(a, l, h, k + 16));
            unpack(words[h] + WORDS * i, zeros[h], w[h]);
            if (MM_SCALES == 3) scale_pairs(w[h], scale_of(a, l, h, k + UNIT * i));
        }
        multiply_unit(w, b, MM_SCALES == 1 ? part : sums);
    }
    const int begin = k - threadIdx.x % 4 * VECTOR; // of the step: beyond the columns a lane has no scale of its own
    if (MM_SCALES == 1) add_scaled(sums, part, scale_of(a, l, 0, begin), scale_of(a, l, 1, begin));
}

// The words of four lanes transposed: lane t gets word t of each. Two exchanges, across two lanes and across one.
static __device__ __forceinline__ void transpose(unsigned *w)
{
    const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned got = __shfl_xor_sync(ALL, upper ? w[i] : w[i + 2], 2);
        (upper ? w[i] : w[i + 2]) = got;
    }
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const unsigned got = __shfl_xor_sync(ALL, odd ? w[i] : w[i + 1], 1);
        (odd ? w[i] : w[i + 1]) = got;
    }
}

// One step whose groups are smaller: the columns of lane j's vector are multiplied together, then scaled.
static __device__ __forceinline__ void step_of_groups(const wt_mm_args &a, const wt_mm_tile &t, const lane_rows &l,
                                                      const uint4 *vectors, int k, mm_sum (*sums)[4])
{
    unsigned words[2][4] = {{vectors[0].x, vectors[0].y, vectors[0].z, vectors[0].w},
                            {vectors[1].x, vectors[1].y, vectors[1].z, vectors[1].w}};
    const int lane = threadIdx.x % 32, begin = k - lane % 4 * VECTOR;
    float scales[2];
    unsigned zeros[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        transpose(words[h]);
        scales[h] = scale_of(a, l, h, k);
        if (MM_W == WT_MM_U4) zeros[h] = placed_zero(zero_of(a, l, h, k));
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int from = (lane & ~3) + j, column = begin + j * VECTOR + lane % 4 * (VECTOR / 4);
        unsigned b[MM_N][4], w[2][4];
        mm_sum part[MM_N][4] = {};
        if (VECTOR == 32) load_x(a, t, column, b);
#pragma unroll
        for (int n = 0; n < MM_N && VECTOR == 16; n++) {
            const int i = lane / 4 + 8 * n;
            uint2 x = {0, 0};
            if (i < t.count && column < a.columns) x = *(const uint2 *)(a.x + 2 * (t.x + i * a.x_stride + column));
            b[n][0] = x.x;
            b[n][1] = x.y;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const unsigned zero = MM_W == WT_MM_U4 && l.part->zeros ? __shfl_sync(ALL, zeros[h], from) : zeros[h];
            if (VECTOR == 32)
                unpack_8(words[h][j], zero, w[h]);
            else
                unpack_4(words[h][j], w[h]);
        }
        if (VECTOR == 32)
            multiply_unit(w, b, part);
        else {
            const unsigned fragment[4] = {w[0][0], w[1][0], w[0][1], w[1][1]};
#pragma unroll
            for (int n = 0; n < MM_N; n++) mma_x(part[n], fragment, b[n][0], b[n][1]);
        }
        add_scaled(sums, part, __shfl_sync(ALL, scales[0], from), __shfl_sync(ALL, scales[1], from));
    }
}

// The warp's share of the sums.
static __device__ __forceinline__ void multiply(const wt_mm_args &a, const wt_mm_tile &t, const lane_rows *rows,
                                                mm_sum (*sums)[MM_N][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int begin = warp * CHUNK; begin < a.columns; begin += blockDim.x / 32 * CHUNK) {
        const int first = begin + lane % 4 * VECTOR;
        uint4 vectors[MM_STEPS][MM_PAIR][2];
#pragma unroll
        for (int s = 0; s < MM_STEPS; s++)
#pragma unroll
            for (int m = 0; m < MM_PAIR; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int k = first + s * SPAN;
                    vectors[s][m][h] = {0, 0, 0, 0};
                    if (k < a.columns) vectors[s][m][h] = load_w(rows[m].w[h] + (long long)k * 16 / VECTOR);
                }
#pragma unroll
        for (int s = 0; s < MM_STEPS; s++)
#pragma unroll
            for (int m = 0; m < MM_PAIR; m++)
                if (MM_SCALES == 2)
                    step_of_groups(a, t, rows[m], vectors[s][m], first + s * SPAN, sums[m]);
                else
                    step(a, t, rows[m], vectors[s][m], first + s * SPAN, sums[m]);
    }
}

typedef mm_sum shared_sums[MM_PAIR][WIDTH][WT_MM_SKINNY_PITCH]; // [row of x][row of W]

extern "C" __global__ void __launch_bounds__(32 * WT_MM_SKINNY_WARPS)
    matmul_skinny(const __grid_constant__ wt_mm_args a)
{
    extern __shared__ uint4 skinny_shared[];
    shared_sums *shared = (shared_sums *)skinny_shared; // of each warp
    int part = 0;
    for (int k = 1; k < a.n_parts && MM_PAIR == 1; k++)
        if (blockIdx.x >= a.parts[k].first_tile) part = k;
    wt_mm_tile t;
    if (!wt_mm_find_tile(&a, blockIdx.y, WIDTH, &t)) return;
    const int first = (blockIdx.x - a.parts[part].first_tile) * 16;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    lane_rows rows[MM_PAIR];
    mm_sum sums[MM_PAIR][MM_N][4] = {};
#pragma unroll
    for (int m = 0; m < MM_PAIR; m++) rows[m] = rows_of(a, a.parts[part + m], t.stack, first);
    multiply(a, t, rows, sums);
#pragma unroll
    for (int m = 0; m < MM_PAIR; m++)
#pragma unroll
        for (int n = 0; n < MM_N; n++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                shared[warp][m][8 * n + lane % 4 * 2 + c % 2][lane / 4 + c / 2 * 8] = sums[m][n][c];
    __syncthreads();

    for (int at = threadIdx.x; at < 16 * t.count; at += blockDim.x) {
        const int i = at / 16, r = first + at % 16;
        if (r >= a.parts[part].rows) continue;
        float v[2] = {0, 0};
#pragma unroll
        for (int m = 0; m < MM_PAIR; m++) {
            const wt_mm_part &p = a.parts[part + m];
            mm_sum sum = 0;
            for (int w = 0; w < blockDim.x / 32; w++) sum += shared[w][m][i][at % 16];
            if (MM_X == WT_MM_I8 && a.y_type == WT_MM_I32) {
                store_sum(p, t, i, r, sum);
                continue;
            }
            float scale = MM_SCALES == 0 ? scale_at(a, p, t.stack, r, 0) : p.tensor_scale ? *p.tensor_scale : 1;
            if (MM_X_IS_8 && a.x_scales) scale *= a.x_scales[t.first + i];
            v[m] = (float)sum * scale;
        }
        if (MM_X != WT_MM_I8 || a.y_type != WT_MM_I32) finish(a, part, t, i, r, v[0], v[1]);
    }
}
