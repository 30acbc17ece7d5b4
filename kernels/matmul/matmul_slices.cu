// Products of F32 by F32 with 17 to 128 rows of x, without tensor cores or where tf32 is asked for by them: blocks of
// 64 rows of W (32 of both matrices of a gated product) by X_ROWS of x have slices of a tile's columns, so that there
// are enough of them. A warp has 64 rows of W by 32 of x; warps of the same sums share a step's columns among them, and
// their sums are added in order, by way of shared memory. Those of slices meet in memory: the block that comes last
// adds them in order. So what is summed, and in which order, depends on the shape alone. Judge: the CPU.
//
// Both sides come to shared memory by background copies, MM_STAGES - 1 steps of 128 bytes of a row ahead, whose 16-byte
// pieces are exchanged so that eight rows meet all banks once.
#ifndef MM_X
#    define MM_X          0
#    define MM_PAIR       1
#    define MM_X_ROWS     64
#    define MM_STAGES     4
#    define MM_ACTIVATION 0
#endif
#include "matmul.cuh"
#include "slices.cuh"

#define W_ROWS  WT_MM_SLICE_ROWS
#define X_ROWS  MM_X_ROWS
#define PIECES  8                // of 16 bytes of a row, a step
#define SPAN    (4 * PIECES)     // columns of a step
#define WARPS   8
#define THREADS (32 * WARPS)
#define ACROSS  (X_ROWS / 32)    // warps that have other rows of x
#define GROUPS  (WARPS / ACROSS) // of warps that have other columns
#define PITCH   (W_ROWS + 4)     // of sums in shared memory: [row of x][row of W]
#define FOURS   (W_ROWS / 4)     // of a row of sums

struct stage {
    uint4 w[W_ROWS][PIECES], x[X_ROWS][PIECES];
};

// Where piece c of a row of a step lies.
static __device__ __forceinline__ int place_of(int row, int c) { return c ^ (row & 7); }

// ---- copies: thread k has piece k % PIECES of every APART-th row of both sides, of a gated product 32 rows of both
// parts

#define APART (THREADS / PIECES)

// The next step that is to be copied.
struct copies {
    const unsigned char *w[2], *x; // the thread's first pieces of it
    int columns;                   // left from the thread's piece on
    int w_rows, x_rows;            // from the thread's first row on
};

static __device__ __forceinline__ copies copies_of(const wt_mm_args &a, const mm_place &p, int step)
{
    const int piece = threadIdx.x % PIECES, first = threadIdx.x / PIECES;
    const long long from = 16 * (piece + step * (long long)PIECES);
    copies c;
    c.columns = a.columns - step * SPAN - piece * 4;
    c.w_rows = a.parts[p.part].rows - p.first - first;
    c.x_rows = p.tile.count - first;
    c.x = a.x + 4 * (p.tile.x + first * a.x_stride) + from;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const wt_mm_part &part = a.parts[MM_PAIR == 2 ? k : p.part];
        const int row = p.first + first + (MM_PAIR == 2 ? 0 : k * APART);
        c.w[k] = part.w + p.tile.stack * part.w_next + row * a.row_bytes + from;
    }
    return c;
}

// What is not there becomes zeros. The step after is next.
static __device__ __forceinline__ void copy_step(const wt_mm_args &a, copies *c, stage *to)
{
    const int first = threadIdx.x / PIECES, place = place_of(first, threadIdx.x % PIECES);
    const bool there = c->columns > 0;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        copy_async_16(&to->w[first + k * APART][place], c->w[k], there && (MM_PAIR == 2 ? 0 : k * APART) < c->w_rows);
        c->w[k] += 16 * PIECES;
    }
#pragma unroll
    for (int i = 0; i < X_ROWS; i += APART)
        copy_async_16(&to->x[first + i][place], c->x + i * a.x_stride * 4, there && i < c->x_rows);
    c->x += 16 * PIECES;
    c->columns -= SPAN;
}

// ---- products: of a step, those pieces of columns that are the group's

#if MM_X == WT_MM_F32
typedef float warp_sums[8][8]; // [row of W][row of x]

// A lane has every eighth row of W and every fourth of x. Lanes are dealt out such that neighbours, or neighbours but
// one, read the same 16 bytes of a side: a load of shared memory then takes two turns.
static __device__ __forceinline__ int w_row_of(int lane) { return lane & 1 | lane >> 1 & 6; }

static __device__ __forceinline__ int x_row_of(int lane) { return lane >> 1 & 1 | lane >> 3 & 2; }

static __device__ __forceinline__ void multiply_step(const stage *s, int step, int across, int group, warp_sums sums)
{
    const int lane = threadIdx.x % 32, w_row = w_row_of(lane), x_row = across * 32 + x_row_of(lane);
#pragma unroll
    for (int c = group; c < PIECES; c += GROUPS) {
        float4 x[8];
#pragma unroll
        for (int j = 0; j < 8; j++) x[j] = *(const float4 *)&s->x[x_row + 4 * j][place_of(x_row + 4 * j, c)];
#pragma unroll
        for (int i = 0; i < 8; i++)
            add_products(*(const float4 *)&s->w[w_row + 8 * i][place_of(w_row, c)], x, sums[i]);
    }
}

// Adds the group's sums to those of the groups before.
static __device__ __forceinline__ void lay_out(const warp_sums sums, int across, bool first, float *all)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float *at = &all[(across * 32 + x_row_of(lane) + 4 * j) * PITCH + w_row_of(lane) + 8 * i];
            *at = first ? sums[i][j] : *at + sums[i][j];
        }
}
#else
typedef float warp_sums[2][8][4]; // of sixteens of rows of x by eights of W

static __device__ __forceinline__ void multiply_step(const stage *s, int step, int across, int group, warp_sums sums)
{
    const int lane = threadIdx.x % 32, matrix = lane / 8, turns = GROUPS > 4 ? GROUPS / 4 : 1;
    const int x_row = across * 32 + matrix % 2 * 8 + lane % 8, w_row = matrix / 2 * 8 + lane % 8;
    if (step % turns != group / 4) return; // a step has four halves of 32 bytes
#pragma unroll
    for (int half = group % 4; half < 4; half += GROUPS) {
        unsigned x[2][4], w[4][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            load_matrices(x[i], &s->x[x_row + 16 * i][place_of(x_row, 2 * half + matrix / 2)]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            load_matrices(w[i], &s->w[w_row + 16 * i][place_of(w_row, 2 * half + matrix % 2)]);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int n = 0; n < 8; n++) mma_tf32(sums[i][n], x[i], w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]);
    }
}

static __device__ __forceinline__ void lay_out(const warp_sums sums, int across, bool first, float *all)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float *at = &all[(across * 32 + 16 * i + lane / 4 + c / 2 * 8) * PITCH + 8 * n + lane % 4 * 2 + c % 2];
                *at = first ? sums[i][n][c] : *at + sums[i][n][c];
            }
}
#endif

// ---- the end: a thread has four neighbours of some rows of y, lanes side by side

static __device__ __forceinline__ float4 activated_four(float4 v)
{
    return {activated(MM_ACTIVATION, v.x), activated(MM_ACTIVATION, v.y), activated(MM_ACTIVATION, v.z),
            activated(MM_ACTIVATION, v.w)};
}

static __device__ __forceinline__ void finish_all(const wt_mm_args &a, const mm_place &p, const float *all)
{
    const int lanes = FOURS / MM_PAIR, lane = threadIdx.x % lanes, r = p.first + 4 * lane;
    const wt_mm_part &part = a.parts[p.part];
    if (r >= part.rows) return;
    const bool whole = is_whole(a, part, r);
    const factors f = factors_of(a, part, p.tile.stack, r, true);
    const factors f1 = MM_PAIR == 2 ? factors_of(a, a.parts[MM_PAIR - 1], p.tile.stack, r, true) : f;
    for (int i = threadIdx.x / lanes; i < p.tile.count; i += THREADS / lanes) {
        const float4 *sums = (const float4 *)(all + i * PITCH + 4 * lane);
        float4 v = activated_four(finished(f, sums[0], 1));
        if (MM_PAIR == 2) {
            const float4 v1 = finished(f1, sums[W_ROWS / 8], 1);
            v = {v.x * v1.x, v.y * v1.y, v.z * v1.z, v.w * v1.w};
        }
        const long long at = p.tile.y_batches * part.y_batch + (p.tile.first + i) * part.y_stride + r;
        if (whole) {
            store_four(a, (unsigned char *)part.y + at * bytes_of(a.y_type), v);
            continue;
        }
        const float each[4] = {v.x, v.y, v.z, v.w};
        for (int c = 0; c < 4; c++)
            if (r + c < part.rows) store(a, part, p.tile, i, r + c, each[c]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) matmul_slices(const __grid_constant__ wt_mm_slices_args g)
{
    extern __shared__ uint4 slices_shared[];
    const wt_mm_args &a = g.args;
    stage *stages = (stage *)slices_shared;
    float *all = (float *)slices_shared;
    const int n_tiles = gridDim.x / g.n_slices, tile = blockIdx.x % n_tiles, slice = blockIdx.x / n_tiles;
    mm_place p;
    find_place(a, tile, n_tiles, W_ROWS / MM_PAIR, MM_PAIR == 2, &p);
    const int all_steps = (a.columns + SPAN - 1) / SPAN, each = (all_steps + g.n_slices - 1) / g.n_slices;
    const int begin = slice * each, n_steps = min(each, all_steps - begin);
    const int across = threadIdx.x / 32 % ACROSS, group = threadIdx.x / 32 / ACROSS;
    copies c = copies_of(a, p, begin);
    for (int k = 0; k < MM_STAGES - 1; k++) {
        if (k < n_steps) copy_step(a, &c, stages + k);
        copy_async_commit();
    }
    warp_sums sums = {};
    stage *now = stages, *fill = stages + MM_STAGES - 1;
#pragma unroll 1
    for (int k = 0; k < n_steps; k++) {
        copy_async_wait<MM_STAGES - 2>();
        __syncthreads(); // the step is there, and nobody reads the stage that is filled now
        if (k + MM_STAGES - 1 < n_steps) copy_step(a, &c, fill);
        copy_async_commit();
        multiply_step(now, k, across, group, sums);
        fill = now;
        now = now + 1 == stages + MM_STAGES ? stages : now + 1;
    }
    copy_async_wait<0>();
    for (int k = 0; k < GROUPS; k++) {
        __syncthreads();
        if (group == k) lay_out(sums, across, k == 0, all);
    }
    __syncthreads();
    if (g.n_slices > 1 && !add_slices<X_ROWS, W_ROWS, THREADS>(g, tile, slice, all)) return;
    finish_all(a, p, all);
}
