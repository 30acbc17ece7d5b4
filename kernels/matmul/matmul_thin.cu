// Products with 1 to 16 rows of x of 16 bits by weights of 8 or 4 bits, bound by the reading of W: y = x W^T on tensor
// cores, W the 16 x 16 side and x the 8 wide one, as in matmul_skinny.cu.
//
// What a processor's blocks read of x must be little beside W, which has but a half or a quarter of its bytes. So each
// warp has THIN_COLUMNS columns of x in registers and meets with them the same columns of all its block's tiles of 16
// rows of W (8 of both matrices of a gated product), tiles a grid apart. Longer rows are done in slices, some tiles at
// a time. A warp copies its own pieces of W, 128 bytes of 16 rows a stage, MM_STAGES - 1 stages ahead and before the
// launch before has ended (overlap.cuh), and by way of the same stages its x. One of them, another for each tile, adds
// the warps' sums in order, slice after slice, and finishes them, a turn later and when it has given its own of that
// turn: else tiles would end one after the other. What is summed for a row of x, and in which order, depends on no
// other row.
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
#    define MM_GROUP  0
#    define MM_STAGES 5
#    define MM_WARPS  16 // that multiply
#    define MM_BLOCKS 1
#    define MM_SLICED 1 // rows are longer than the warps' columns
#    define MM_LOW    0 // WT_MM_BEHIND or WT_MM_WITHIN: products of what rounding left of x too
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"
#include "matmul_scales.cuh"

#include "matmul_thin_x.cuh"

#include "barrier.cuh"
#include "overlap.cuh"

#define TURNS  WT_MM_THIN_TURNS
#define ALL    0xffffffffu
#define EARLY  (MM_STAGES > X_PIECES ? MM_STAGES - X_PIECES : 0) // stages of W on their way before x
#define FACTOR (MM_RAW ? RAW_SUM : 1.0f)
#define APART  (MM_RAW && MM_SCALES ? EIGHTS / MM_N : 1) // chains of sums: x and what rounding left

// ---- what a block has to do: `n_tiles` of it in groups, a group slice by slice, a slice tile by tile

struct work {
    int n_tiles, n_slices, group; // tiles of the block; of a group
    int step;                     // rows from a tile to the block's next
};

static __device__ __forceinline__ work work_of(const wt_mm_args &a)
{
    const wt_mm_part &last = a.parts[MM_PAIR == 2 ? 0 : a.n_parts - 1];
    const int rows = 16 / MM_PAIR, all = last.first_tile + (last.rows + rows - 1) / rows;
    const int width = MM_WARPS * WT_MM_THIN_COLUMNS;
    work w;
    w.n_tiles = (all - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    w.n_slices = MM_SLICED ? (a.columns + width - 1) / width : 1;
    w.step = gridDim.x * rows;
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

static __device__ __forceinline__ int row_of(const rows &r, int slot)
{
    return r.first + (MM_PAIR == 2 ? slot % 8 : slot);
}

static __device__ __forceinline__ int column_of(const turn &t, int piece)
{
    return (t.slice * MM_WARPS + threadIdx.x / 32) * WT_MM_THIN_COLUMNS + piece * COLUMNS;
}

// ---- scales

// What is beyond the rows has the last one's.
static __device__ __forceinline__ void load_scales(const wt_mm_args &a, const rows &r, int column, scales *s)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const wt_mm_part &p = part_of(a, r, 8 * h);
        load_row_scales(a, p, min(row_of(r, threadIdx.x % 32 / 4 + 8 * h), p.rows - 1), column, h, s);
    }
}

// ---- copies

// What a warp's copies have come to.
struct copies {
    turn at;
    int piece, slot, x_left;            // pieces of x that come before the next of W
    int left;                           // rows from the lane's first of the tile on
    const unsigned char *from[MM_PAIR]; // which begins there
    unsigned char *stages;
};

// The lane's first row of the tile.
static __device__ __forceinline__ void find_rows(const wt_mm_args &a, copies *c)
{
    const rows r = rows_of(a, c->at.tile);
    const unsigned first = r.first + threadIdx.x % 32 / 8;
#pragma unroll
    for (int h = 0; h < MM_PAIR; h++)
        c->from[h] = part_of(a, r, 8 * h).w + (unsigned long long)first * (unsigned)a.row_bytes;
    c->left = a.parts[r.part].rows - (int)first;
}

static __device__ __forceinline__ int after(int slot) { return slot + 1 == MM_STAGES ? 0 : slot + 1; }

// To the next piece of W, of the same tile or the next.
static __device__ __forceinline__ void move_on(const wt_mm_args &a, const work &w, copies *c)
{
    if (++c->piece < PIECES) return;
    c->piece = 0;
    next_turn(w, &c->at);
    if (is_over(w, c->at)) return;
    const bool anew = c->at.tile == c->at.first;
    if (MM_SLICED && anew) c->x_left = X_PIECES;
    c->left -= w.step;
#pragma unroll
    for (int h = 0; h < MM_PAIR; h++) c->from[h] += (unsigned long long)w.step * (unsigned)a.row_bytes;
    if ((MM_SLICED && anew) || (MM_PARTS > 1 && c->left + (int)(threadIdx.x % 32 / 8) <= 0)) find_rows(a, c);
}

// To L2: the scales of a tile's slice, by one of the warps.
static __device__ __forceinline__ void ask_for_scales(const wt_mm_args &a, const rows &r, const turn &t)
{
    const int slot = threadIdx.x % 16, columns = MM_WARPS * WT_MM_THIN_COLUMNS, begin = t.slice * columns;
    const int end = min(begin + columns, a.columns);
    const wt_mm_part &p = part_of(a, r, slot);
    const long long row = min(row_of(r, slot), p.rows - 1), at = begin >> a.scale_shift;
    const long long n = (end - begin) >> a.scale_shift;
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
    if ((MM_SLICED || !EARLY) && c->x_left) {
        copy_x(a, column_of(c->at, 0), X_PIECES - c->x_left, c->stages + c->slot * WT_MM_THIN_STAGE);
        c->slot = after(c->slot);
        c->x_left--;
    } else if (!is_over(w, c->at)) {
        const int lane = threadIdx.x % 32, piece = lane % 8, k = column_of(c->at, c->piece) + piece * VECTOR;
        unsigned char *to = c->stages + c->slot * WT_MM_THIN_STAGE + (lane / 8) * 128 + (piece ^ lane / 8 % 2 * 4) * 16;
        const unsigned offset = k / VECTOR * 16, four_rows = 4 * (unsigned)a.row_bytes;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int more = i % (4 / MM_PAIR);
            copy_async_16(to + i * 512,
                          c->from[MM_PAIR == 2 ? i / 2 : 0] + offset + (unsigned long long)more * four_rows,
                          k < a.columns && 4 * more < c->left);
        }
        if (MM_SCALES && c->piece == 0 && c->at.tile % MM_WARPS == threadIdx.x / 32)
            ask_for_scales(a, rows_of(a, c->at.tile), c->at);
        c->slot = after(c->slot);
        move_on(a, w, c);
    }
    copy_async_commit();
}

// ---- products

// sums += 16 rows of W at `stage` times x.
static __device__ __forceinline__ void multiply(const unsigned char *stage, const scales &s,
                                                const unsigned (*b)[UNITS][EIGHTS][4], const float (*x_sums)[MM_N][2],
                                                float (*sums)[MM_N][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float part[APART][MM_N][4] = {};
        if (HAS_ZERO && MM_SCALES)
#pragma unroll
            for (int n = 0; n < MM_N; n++)
#pragma unroll
                for (int c = 0; c < 4; c++) part[0][n][c] = x_sums[i][n][c % 2] * -raw_zero_of(s, c / 2, i);
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
                if (MM_RAW)
                    unpack_raw(words[h] + WORDS * u, w[h]);
                else
                    unpack(words[h] + WORDS * u, zero_of(s, h, i), w[h]);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                unsigned fragment[4];
                fragment_of(w, half, fragment);
#pragma unroll
                for (int n = 0; n < EIGHTS; n++)
                    mma_x(MM_SCALES ? part[n / MM_N % APART][n % MM_N] : sums[i][n % MM_N], fragment,
                          b[i][u][n][2 * half], b[i][u][n][2 * half + 1]);
            }
        }
        if (!MM_SCALES) continue;
        const float scale[2] = {scale_of(s, 0, i), scale_of(s, 1, i)};
#pragma unroll
        for (int n = 0; n < MM_N; n++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sums[i][n][c] += scale[c / 2] * (APART > 1 ? part[0][n][c] + part[APART - 1][n][c] : part[0][n][c]);
    }
}

// ---- what a block has in shared memory: see wt_mm_thin_shared

struct memory {
    unsigned char *stages;                 // [MM_WARPS][MM_STAGES][16][128]
    float4 *sums;                          // [TURNS][MM_WARPS][MM_N][32]
    float4 *earlier;                       // [WT_MM_THIN_GROUP][MM_N][32] of slices before
    unsigned long long *summed, *finished; // [TURNS]
    float *norms;                          // [8 * MM_N] that the sums of rows of x are multiplied with
};

static __device__ __forceinline__ memory memory_of(unsigned char *at)
{
    memory m;
    m.stages = at;
    m.sums = (float4 *)(at + MM_WARPS * MM_STAGES * WT_MM_THIN_STAGE);
    m.earlier = m.sums + TURNS * MM_WARPS * MM_N * 32;
    m.summed = (unsigned long long *)(m.earlier + WT_MM_THIN_GROUP * MM_N * 32);
    m.finished = m.summed + TURNS;
    m.norms = (float *)(m.finished + TURNS);
    return m;
}

// ---- finished rows

static __device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b)
{
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// 1 over the root of the mean square of what each row of x was made of. The arrival of a warp's first sums tells.
static __device__ __forceinline__ void write_norms(const wt_mm_args &a, const memory &m)
{
    const int lane = threadIdx.x % 32, n = a.columns / WT_MM_SKINNY_SQUARES;
    for (int row = threadIdx.x / 32; row < a.m; row += MM_WARPS) {
        float sum = 0;
#pragma unroll 8
        for (int k = lane; k < n; k += 32) sum += a.x_squares[(long long)row * n + k];
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
        if (lane == 0) m.norms[row] = 1 / sqrtf(sum / (float)a.columns + a.norm_eps);
    }
}

static __device__ __forceinline__ bool has_norm_before(const wt_mm_args &a)
{
    return MM_X == WT_MM_BF16 && a.x_squares;
}

static __device__ __forceinline__ bool has_norm_after(const wt_mm_args &a)
{
    return MM_X == WT_MM_BF16 && MM_PAIR == 1 && a.norm_weight;
}

static __device__ __forceinline__ float norm_of(const wt_mm_args &a, const memory &m, int i)
{
    return has_norm_before(a) && i < a.m ? m.norms[i] : 1;
}

// What the sums of the lane's two rows are multiplied with.
static __device__ __forceinline__ void read_scales(const wt_mm_args &a, const rows &r, float *scale)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const wt_mm_part &p = part_of(a, r, 8 * h);
        const int row = min(row_of(r, threadIdx.x % 32 / 4 + 8 * h), p.rows - 1);
        scale[h] = !MM_SCALES ? scale_at(a, p, 0, row, 0) : p.tensor_scale ? *p.tensor_scale : 1;
    }
}

// What finish_four reads.
static __device__ __forceinline__ void read_before(const wt_mm_args &a, const rows &r, int i, before *b)
{
    if (!has_norm_after(a)) return;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int row = row_of(r, threadIdx.x % 32 / 4 + c / 2 * 8);
        if (i + c % 2 < a.m && row < a.parts[0].rows) b[c] = before_norm(a, i + c % 2, row);
    }
}

// The lane's sums of a tile, rows g and g + 8 by rows i and i + 1 of x, to y.
static __device__ __forceinline__ void finish_four(const wt_mm_args &a, const memory &m, const rows &r, int i,
                                                   const float *scale, float4 sum, const before *b)
{
    const wt_mm_tile whole = {0, 0, a.m, 0, 0};
    const int g = threadIdx.x % 32 / 4;
    const float norms[2] = {norm_of(a, m, i), norm_of(a, m, i + 1)};
    const float v[4] = {sum.x * (scale[0] * norms[0]), sum.y * (scale[0] * norms[1]), sum.z * (scale[1] * norms[0]),
                        sum.w * (scale[1] * norms[1])};
    float squares[2] = {0, 0};
#pragma unroll
    for (int c = 0; c < 4 / MM_PAIR; c++) {
        const int row = row_of(r, g + c / 2 * 8);
        if (i + c % 2 >= a.m || row >= a.parts[r.part].rows) continue;
        if (has_norm_after(a))
            squares[c % 2] += finish_normed(a, i + c % 2, row, v[c], b[c]);
        else
            finish(a, r.part, whole, i + c % 2, row, v[c], v[c % 2 + 2]);
    }
    if (!has_norm_after(a)) return;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        for (int step = 4; step < 32; step *= 2) squares[c] += __shfl_xor_sync(ALL, squares[c], step);
        if (g == 0 && i + c < a.m)
            a.squares[(long long)(i + c) * (a.parts[0].rows / WT_MM_SKINNY_SQUARES) + r.first / WT_MM_SKINNY_SQUARES] =
                squares[c];
    }
}

// The sums of a turn, number `at`, by the warp of its tile.
static __device__ __forceinline__ void finish_turn(const wt_mm_args &a, const memory &m, const work &w, const turn &t,
                                                   int at)
{
    const int lane = threadIdx.x % 32, slot = at % TURNS;
    if (t.tile % MM_WARPS != threadIdx.x / 32) return;
    float4 sums[MM_N];
    before b[MM_N][4] = {};
    const rows r = rows_of(a, t.tile);
    float scale[2];
    if (t.slice + 1 == w.n_slices) { // it is on its way before the sums are there
        read_scales(a, r, scale);
#pragma unroll
        for (int n = 0; n < MM_N; n++) read_before(a, r, 8 * n + lane % 4 * 2, b[n]);
    }
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
        finish_four(a, m, r, 8 * n + lane % 4 * 2, scale, MM_LOW == WT_MM_WITHIN ? with_other_half(sums[n]) : sums[n],
                    b[n]);
}

// ---- what a warp does

// Those of the first slice go to the stages behind those that W has already.
static __device__ __forceinline__ void ask_for_first_x(const wt_mm_args &a, const copies &c)
{
#pragma unroll
    for (int p = 0; p < X_PIECES; p++) copy_x(a, column_of({0, 0, 0}, 0), p, c.stages + (EARLY + p) * WT_MM_THIN_STAGE);
    copy_async_commit();
}

static __device__ __forceinline__ void take_first_x(const copies &c, columns_of_x *x)
{
    copy_async_wait<0>();
    __syncwarp();
#pragma unroll
    for (int p = 0; p < X_PIECES; p++) read_x(c.stages + (EARLY + p) * WT_MM_THIN_STAGE, p, x->b);
    __syncwarp(); // nobody reads what W's copies fill now
}

// The stage at `slot` is there and the one before it is filled anew.
static __device__ __forceinline__ void begin_stage(const wt_mm_args &a, const work &w, copies *c)
{
    copy_async_wait<MM_STAGES - 2>();
    __syncwarp(); // all lanes' copies are there, and nobody reads the stage that is filled now
    copy_next(a, w, c);
}

// Those of a slice whose copies come between W's.
static __device__ __forceinline__ void take_x(const wt_mm_args &a, const work &w, copies *c, int *slot, columns_of_x *x)
{
#pragma unroll
    for (int p = 0; p < X_PIECES; p++) {
        begin_stage(a, w, c);
        read_x(c->stages + *slot * WT_MM_THIN_STAGE, p, x->b);
        *slot = after(*slot);
    }
    if (HAS_ZERO) sum_x(x->b, x->sums);
}

// The sums of turn `t`; `next`: scales of its first piece, then of the turn's after.
static __device__ __forceinline__ void multiply_turn(const wt_mm_args &a, const work &w, const turn &t,
                                                     const turn &t_after, copies *c, int *slot, scales *next,
                                                     const columns_of_x &x, float (*sums)[MM_N][4])
{
    if (HAS_ZERO && !MM_SCALES)
#pragma unroll
        for (int p = 0; p < 2 * PIECES; p++)
#pragma unroll
            for (int n = 0; n < MM_N; n++)
#pragma unroll
                for (int k = 0; k < 4; k++) sums[p % 2][n][k] -= x.sums[p][n][k % 2] * RAW_ZERO;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const bool same = p + 1 < PIECES;
        begin_stage(a, w, c);
        const scales s = *next;
        if (MM_SCALES)
            load_scales(a, rows_of(a, same ? t.tile : t_after.tile), column_of(same ? t : t_after, same ? p + 1 : 0),
                        next);
        multiply(c->stages + *slot * WT_MM_THIN_STAGE, s, x.b + 2 * p, x.sums + 2 * p, sums);
        *slot = after(*slot);
    }
}

// The warp's sums of the turn with number `at` to who finishes it.
static __device__ __forceinline__ void give_sums(const memory &m, int at, const float (*sums)[MM_N][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, to = at % TURNS;
    barrier_wait(&m.finished[to], at / TURNS % 2 ^ 1);
#pragma unroll
    for (int n = 0; n < MM_N; n++)
        m.sums[((to * MM_WARPS + warp) * MM_N + n) * 32 + lane] = {
            (sums[0][n][0] + sums[1][n][0]) * FACTOR, (sums[0][n][1] + sums[1][n][1]) * FACTOR,
            (sums[0][n][2] + sums[1][n][2]) * FACTOR, (sums[0][n][3] + sums[1][n][3]) * FACTOR};
    __syncwarp();
    if (lane == 0) barrier_arrive(&m.summed[to]);
}

static __device__ __forceinline__ void multiply_all(const wt_mm_args &a, const memory &m, const work &w)
{
    copies c = {};
    c.stages = m.stages + threadIdx.x / 32 * MM_STAGES * WT_MM_THIN_STAGE;
    find_rows(a, &c);
    int n_early = 0;
#pragma unroll
    for (int k = 0; k < EARLY; k++)
        if (!c.x_left) { // x of a next slice is not there yet
            copy_next(a, w, &c);
            n_early++;
        }
    scales next = {};
    if (MM_SCALES) load_scales(a, rows_of(a, 0), column_of({0, 0, 0}, 0), &next);
    wait_for_earlier(); // nothing but W is read before
    columns_of_x x;
    if (EARLY)
        ask_for_first_x(a, c);
    else
        c.x_left = X_PIECES;
    if (has_norm_before(a)) write_norms(a, m);
    if (EARLY) take_first_x(c, &x);
#pragma unroll
    for (int k = 0; k < MM_STAGES - 1; k++)
        if (k >= n_early) copy_next(a, w, &c);
    if (HAS_ZERO && EARLY) sum_x(x.b, x.sums);
    turn t = {0, 0, 0}, t_before = t;
    for (int at = 0, slot = 0;; at++) {
        const bool over = is_over(w, t);
        float sums[2][MM_N][4] = {};
        turn t_after = t;
        if (!over) {
            if (t.tile == t.first && (at ? MM_SLICED : !EARLY)) take_x(a, w, &c, &slot, &x);
            next_turn(w, &t_after);
            multiply_turn(a, w, t, t_after, &c, &slot, &next, x, sums);
        }
        if (!over) give_sums(m, at, sums); // before this warp finishes others', for which nobody waits then
        if (at) finish_turn(a, m, w, t_before, at - 1);
        if (over) break;
        t_before = t;
        t = t_after;
    }
    copy_async_wait<0>();
}

extern "C" __global__ void __launch_bounds__(32 * MM_WARPS, MM_BLOCKS) matmul_thin(const __grid_constant__ wt_mm_args a)
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
