// Products with 1 to 16 rows of x of 16 bits by weights of 8 or 4 bits, bound by the reading of W: y = x W^T on tensor
// cores, W the 16 x 16 side and x the 8 wide one, as in matmul_skinny.cu.
//
// What a processor's blocks read of x must be little beside W, which has but a half or a quarter of its bytes. So each
// warp has THIN_COLUMNS columns of x in registers and meets with them the same columns of all its block's tiles of 16 rows
// of W (8 of both matrices of a gated product), tiles a grid apart. Longer rows are done in slices, some tiles at a time.
// A warp copies its own pieces of W, 128 bytes of 16 rows a stage, MM_STAGES - 1 stages ahead and before the launch before
// has ended (overlap.cuh). One of them, another for each tile, adds the warps' sums in order, slice after slice, and
// finishes them, a turn later. What is summed for a row of x, and in which order, depends on no other row.
//
// MM_SCALES: 0 constant along columns, 1 of groups that fill whole steps of 64 bytes. Judge: the CPU.
#ifndef MM_W
#    define MM_W      7
#    define MM_X      2
#    define MM_SCALES 1
#    define MM_S      1
#    define MM_N      1
#    define MM_PAIR   1
#    define MM_PARTS  1
#    define MM_SHIFT  0 // log2 of the rows a scale has
#    define MM_STAGES 5
#    define MM_WARPS  16 // that multiply
#    define MM_BLOCKS 1
#    define MM_LOW    0 // WT_MM_BEHIND or WT_MM_WITHIN: products of what rounding left of x too
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#include "barrier.cuh"
#include "overlap.cuh"

#define STEP    (4 * VECTOR) // columns of 64 bytes
#define COLUMNS (2 * STEP)   // of a stage
#define PIECES  (WT_MM_THIN_COLUMNS / COLUMNS)
#define TURNS   WT_MM_THIN_TURNS
#define EIGHTS  (MM_N * (MM_LOW == WT_MM_BEHIND ? 2 : 1)) // of rows of x

// ---- what a block has to do: `n_tiles` of it in groups, a group slice by slice, a slice tile by tile

struct work {
    int n_tiles, n_slices, group; // tiles of the block; of a group
};

static __device__ __forceinline__ work work_of(const wt_mm_args &a)
{
    const wt_mm_part &last = a.parts[MM_PAIR == 2 ? 0 : a.n_parts - 1];
    const int rows = 16 / MM_PAIR, all = last.first_tile + (last.rows + rows - 1) / rows;
    const int width = MM_WARPS * WT_MM_THIN_COLUMNS;
    work w;
    w.n_tiles = (all - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    w.n_slices = (a.columns + width - 1) / width;
    w.group = w.n_slices == 1 ? w.n_tiles : WT_MM_THIN_GROUP;
    return w;
}

// A tile of a slice.
struct turn {
    int first, slice, tile; // of the block's tiles: the group's first, and this one
};

static __device__ __forceinline__ bool is_over(const work &w, const turn &t) { return t.first >= w.n_tiles; }

static __device__ __forceinline__ void next_turn(const work &w, turn *t)
{
    const int end = t->first + w.group < w.n_tiles ? t->first + w.group : w.n_tiles;
    if (++t->tile < end) return;
    if (++t->slice == w.n_slices) {
        t->slice = 0;
        t->first = end;
    }
    t->tile = t->first;
}

// The 16 rows of a tile of the block: of one part, or 8 of both.
struct rows {
    int part, first;
};

static __device__ __forceinline__ rows rows_of(const wt_mm_args &a, int at)
{
    const int tile = blockIdx.x + at * gridDim.x;
    rows r = {0, tile * (16 / MM_PAIR)};
#if MM_PARTS > 1
    for (int k = 1; k < a.n_parts; k++)
        if (tile >= a.parts[k].first_tile) r.part = k;
    r.first -= a.parts[r.part].first_tile * 16;
#endif
    return r;
}

static __device__ __forceinline__ const wt_mm_part &part_of(const wt_mm_args &a, const rows &r, int slot)
{
    return a.parts[MM_PAIR == 2 ? slot / 8 : r.part];
}

static __device__ __forceinline__ int row_of(const rows &r, int slot) { return r.first + (MM_PAIR == 2 ? slot % 8 : slot); }

static __device__ __forceinline__ int column_of(const turn &t, int piece)
{
    return (t.slice * MM_WARPS + threadIdx.x / 32) * WT_MM_THIN_COLUMNS + piece * COLUMNS;
}

// ---- scales

#define SCALE_BYTES (MM_S == WT_MM_F32 ? 4 : MM_S == WT_MM_E4M3 ? 1 : 2)

#if MM_S == WT_MM_F32
typedef float raw_scale;
#elif MM_S == WT_MM_E4M3
typedef unsigned char raw_scale;
#else
typedef unsigned short raw_scale;
#endif

// Of the lane's rows g and g + 8, for the two steps of a stage, as they are: nobody waits for them before they are wanted.
struct scales {
    raw_scale scale[2][2];
    unsigned char zero[2][2];
};

// What is beyond the rows or the columns has the last one's.
static __device__ __forceinline__ void load_scales(const wt_mm_args &a, const rows &r, int column, scales *s)
{
    const unsigned last = a.columns - 1, stride = a.scale_stride;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int slot = threadIdx.x % 32 / 4 + 8 * h;
        const wt_mm_part &p = part_of(a, r, 8 * h);
        const unsigned row = min(row_of(r, slot), p.rows - 1);
        const raw_scale *from = (const raw_scale *)p.scales + (row >> MM_SHIFT) * stride;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const unsigned group = min(column + i * STEP, last) >> a.scale_shift;
            s->scale[h][i] = from[group];
            if (MM_W == WT_MM_U4) s->zero[h][i] = p.zeros ? p.zeros[row * stride + group] : 8;
        }
    }
}

// ---- copies

// What a warp's copies have come to.
struct copies {
    turn at;
    int piece, slot;
    unsigned char *stages;
};

// To L2: the scales of a tile's slice, by one of the warps.
static __device__ __forceinline__ void ask_for_scales(const wt_mm_args &a, const rows &r, const turn &t)
{
    const int slot = threadIdx.x % 16, columns = MM_WARPS * WT_MM_THIN_COLUMNS, begin = t.slice * columns;
    const int end = min(begin + columns, a.columns);
    const wt_mm_part &p = part_of(a, r, slot);
    const long long row = min(row_of(r, slot), p.rows - 1), at = begin >> a.scale_shift, n = (end - begin) >> a.scale_shift;
    const bool upper = threadIdx.x % 32 / 16;
    if (upper && !p.zeros) return;
    const unsigned char *from = upper ? p.zeros + row * a.scale_stride + at
                                      : p.scales + ((row >> MM_SHIFT) * a.scale_stride + at) * SCALE_BYTES;
#pragma unroll 1
    for (int k = 0; k < (upper ? n : n * SCALE_BYTES); k += 32) prefetch_global(from + k);
}

// Piece c of row r lies at r * 128 + (c ^ 4 (r % 2)) * 16, so that two rows' four pieces of a step meet all banks once.
// A lane copies piece lane % 8 of every fourth row. Rows and columns that are not there become zeros.
static __device__ __forceinline__ void copy_next(const wt_mm_args &a, const work &w, copies *c)
{
    if (!is_over(w, c->at)) {
        const int lane = threadIdx.x % 32, piece = lane % 8, k = column_of(c->at, c->piece) + piece * VECTOR;
        const unsigned row_bytes = (unsigned)a.row_bytes;
        const rows r = rows_of(a, c->at.tile);
        unsigned char *to = c->stages + c->slot * WT_MM_THIN_STAGE + (lane / 8) * 128 + (piece ^ lane / 8 % 2 * 4) * 16;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const wt_mm_part &p = part_of(a, r, 4 * i);
            const int first = r.first + lane / 8, more = 4 * i % (16 / MM_PAIR);
            const unsigned char *from = p.w + k / VECTOR * 16ll + (unsigned long long)(unsigned)first * row_bytes;
            copy_async_16(to + i * 512, from + (unsigned long long)more * row_bytes,
                          k < a.columns && first + more < p.rows);
        }
        if (MM_SCALES && c->piece == 0 && c->at.tile % MM_WARPS == threadIdx.x / 32) ask_for_scales(a, r, c->at);
        c->slot = c->slot + 1 == MM_STAGES ? 0 : c->slot + 1;
        if (++c->piece == PIECES) {
            c->piece = 0;
            next_turn(w, &c->at);
        }
    }
    copy_async_commit();
}

// ---- products

// The warp's columns of x in a slice.
static __device__ __forceinline__ void load_x(const wt_mm_args &a, int column, unsigned (*b)[UNITS][EIGHTS][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2 * PIECES; i++)
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int n = 0; n < EIGHTS; n++) {
                const bool within = MM_LOW == WT_MM_WITHIN;
                const int row = within ? g % 4 : g + 8 * (n % MM_N), part = within ? g / 4 : n / MM_N;
                const int k = column + i * STEP + t * VECTOR + u * UNIT;
                uint4 x = {0, 0, 0, 0};
                if (row < a.m && k < a.columns)
                    x = *(const uint4 *)(a.x + 2 * (row * a.x_stride + part * a.x_low + k));
                arrange(x, b[i][u][n]);
            }
}

// sums += 16 rows of W at `stage` times x.
static __device__ __forceinline__ void multiply(const unsigned char *stage, const scales &s,
                                                const unsigned (*b)[UNITS][EIGHTS][4], float (*sums)[MM_N][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float part[MM_N][4] = {}, scale[2];
        unsigned words[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 v = *(const uint4 *)(stage + (g + 8 * h) * 128 + ((4 * i + t) ^ g % 2 * 4) * 16);
            words[h][0] = v.x;
            words[h][1] = v.y;
            words[h][2] = v.z;
            words[h][3] = v.w;
        }
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            unsigned w[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++)
                unpack(words[h] + WORDS * u, placed_zero(MM_SCALES && MM_W == WT_MM_U4 ? s.zero[h][i] : 8), w[h]);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                unsigned fragment[4];
                fragment_of(w, half, fragment);
#pragma unroll
                for (int n = 0; n < EIGHTS; n++)
                    mma_x(MM_SCALES ? part[n % MM_N] : sums[i][n % MM_N], fragment, b[i][u][n][2 * half],
                          b[i][u][n][2 * half + 1]);
            }
        }
        if (!MM_SCALES) continue;
#pragma unroll
        for (int h = 0; h < 2; h++) scale[h] = element(MM_S, (const unsigned char *)&s.scale[h][i], 0);
#pragma unroll
        for (int n = 0; n < MM_N; n++)
#pragma unroll
            for (int c = 0; c < 4; c++) sums[i][n][c] += scale[c / 2] * part[n][c];
    }
}

// ---- what a block has in shared memory: see wt_mm_thin_shared

struct memory {
    unsigned char *stages;                 // [MM_WARPS][MM_STAGES][16][128]
    float4 *sums;                          // [TURNS][MM_WARPS][MM_N][32]
    float4 *earlier;                       // [WT_MM_THIN_GROUP][MM_N][32] of slices before
    unsigned long long *summed, *finished; // [TURNS]
};

static __device__ __forceinline__ memory memory_of(unsigned char *at)
{
    memory m;
    m.stages = at;
    m.sums = (float4 *)(at + MM_WARPS * MM_STAGES * WT_MM_THIN_STAGE);
    m.earlier = m.sums + TURNS * MM_WARPS * MM_N * 32;
    m.summed = (unsigned long long *)(m.earlier + WT_MM_THIN_GROUP * MM_N * 32);
    m.finished = m.summed + TURNS;
    return m;
}

// ---- finished rows

static __device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b)
{
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// The lane's sums of a tile, rows g and g + 8 by rows i and i + 1 of x, to y.
static __device__ __forceinline__ void finish_four(const wt_mm_args &a, const rows &r, int i, float4 sum)
{
    const wt_mm_tile whole = {0, 0, a.m, 0, 0};
    const int g = threadIdx.x % 32 / 4;
    float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const wt_mm_part &p = part_of(a, r, c / 2 * 8);
        const int row = min(row_of(r, g + c / 2 * 8), p.rows - 1);
        v[c] *= !MM_SCALES ? scale_at(a, p, 0, row, 0) : p.tensor_scale ? *p.tensor_scale : 1;
    }
#pragma unroll
    for (int c = 0; c < 4 / MM_PAIR; c++) {
        const int row = row_of(r, g + c / 2 * 8);
        if (i + c % 2 < a.m && row < a.parts[r.part].rows)
            finish(a, r.part, whole, i + c % 2, row, v[c], v[c % 2 + 2]);
    }
}

// The sums of a turn, number `at`, by the warp of its tile.
static __device__ __forceinline__ void finish_turn(const wt_mm_args &a, const memory &m, const work &w, const turn &t,
                                                   int at)
{
    const int lane = threadIdx.x % 32, slot = at % TURNS;
    if (t.tile % MM_WARPS != threadIdx.x / 32) return;
    float4 sums[MM_N];
    barrier_wait(&m.summed[slot], at / TURNS % 2);
#pragma unroll
    for (int n = 0; n < MM_N; n++) {
        float4 *earlier = &m.earlier[((t.tile - t.first) * MM_N + n) * 32 + lane];
        sums[n] = t.slice ? *earlier : float4{0, 0, 0, 0};
#pragma unroll 4
        for (int k = 0; k < MM_WARPS; k++)
            sums[n] = sum_of(sums[n], m.sums[((slot * MM_WARPS + k) * MM_N + n) * 32 + lane]);
        if (t.slice + 1 < w.n_slices) *earlier = sums[n];
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(&m.finished[slot]);
    if (t.slice + 1 < w.n_slices) return;
#pragma unroll
    for (int n = 0; n < MM_N; n++)
        finish_four(a, rows_of(a, t.tile), 8 * n + lane % 4 * 2,
                    MM_LOW == WT_MM_WITHIN ? with_other_half(sums[n]) : sums[n]);
}

// What a warp does.
static __device__ __forceinline__ void multiply_all(const wt_mm_args &a, const memory &m, const work &w)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    copies c = {{0, 0, 0}, 0, 0, m.stages + warp * MM_STAGES * WT_MM_THIN_STAGE};
#pragma unroll
    for (int k = 0; k < MM_STAGES - 1; k++) copy_next(a, w, &c);
    scales s = {}, next = {};
    if (MM_SCALES) load_scales(a, rows_of(a, 0), column_of({0, 0, 0}, 0), &next);
    wait_for_earlier(); // nothing but W is read before
    unsigned b[2 * PIECES][UNITS][EIGHTS][4];
    turn t = {0, 0, 0}, before = t;
    int at = 0;
    for (int slot = 0; !is_over(w, t); at++) {
        if (t.tile == t.first && (at == 0 || w.n_slices > 1)) load_x(a, column_of(t, 0), b);
        float sums[2][MM_N][4] = {};
        turn after = t;
        next_turn(w, &after);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            copy_async_wait<MM_STAGES - 2>();
            __syncwarp(); // all lanes' copies are there, and nobody reads the stage that is filled now
            copy_next(a, w, &c);
            s = next;
            const bool same = p + 1 < PIECES;
            if (MM_SCALES)
                load_scales(a, rows_of(a, same ? t.tile : after.tile), column_of(same ? t : after, same ? p + 1 : 0), &next);
            multiply(m.stages + (warp * MM_STAGES + slot) * WT_MM_THIN_STAGE, s, b + 2 * p, sums);
            slot = slot + 1 == MM_STAGES ? 0 : slot + 1;
        }
        if (at) finish_turn(a, m, w, before, at - 1);
        const int to = at % TURNS;
        barrier_wait(&m.finished[to], at / TURNS % 2 ^ 1);
#pragma unroll
        for (int n = 0; n < MM_N; n++)
            m.sums[((to * MM_WARPS + warp) * MM_N + n) * 32 + lane] = {
                sums[0][n][0] + sums[1][n][0], sums[0][n][1] + sums[1][n][1], sums[0][n][2] + sums[1][n][2],
                sums[0][n][3] + sums[1][n][3]};
        __syncwarp();
        if (lane == 0) barrier_arrive(&m.summed[to]);
        before = t;
        t = after;
    }
    finish_turn(a, m, w, before, at - 1);
    copy_async_wait<0>();
}

extern "C" __global__ void __launch_bounds__(32 * MM_WARPS, MM_BLOCKS)
    matmul_thin(const __grid_constant__ wt_mm_args a)
{
    extern __shared__ uint4 thin_shared[];
    const work w = work_of(a);
    const memory m = memory_of((unsigned char *)thin_shared);
    let_next_begin();
    if (threadIdx.x == 0) {
        for (int k = 0; k < TURNS; k++) {
            barrier_create(&m.summed[k], MM_WARPS);
            barrier_create(&m.finished[k], 1);
        }
        barriers_created();
    }
    __syncthreads();
    multiply_all(a, m, w);
}
