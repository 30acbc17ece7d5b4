// Products with 1 to 16 rows of x of 16 bits, bound by the reading of W: y = x W^T on tensor cores, W the 16 x 16 side
// and x the 8 wide one, as in matmul_skinny.cu, for rows of whole pieces: a piece is 128 bytes of a row.
//
// A block takes MM_TILES tiles of 16 rows of W at a time (8 of both matrices of a gated product), tiles a grid apart.
// A thread copies W to shared memory, stage by stage in boxes: of a tile a span, a piece a warp that multiplies.
// Another copies the span's columns of x, which the warps then keep in registers for all the tiles; others, tile by
// tile in turn, add the warps' sums in order and finish them. W is on its way before the launch before has ended
// (overlap.cuh), and while x is awaited. What is summed for a row of x, and in which order, depends on no other row.
//
// MM_SCALES: 0 constant along columns, 1 of groups that fill whole steps of 64 bytes. Judge: the CPU.
#ifndef MM_W
#    define MM_W         3
#    define MM_X         2
#    define MM_SCALES    1
#    define MM_S         0
#    define MM_N         1
#    define MM_PAIR      1
#    define MM_STAGES    5
#    define MM_TILES     2
#    define MM_WARPS     16 // most that multiply
#    define MM_BLOCKS    1
#    define MM_COPIES    2 // of x's columns, one of which is read while others come
#    define MM_FINISHERS 1
#    define MM_LOW       0 // WT_MM_BEHIND or WT_MM_WITHIN: products of what rounding left of x too
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#include "barrier.cuh"
#include "overlap.cuh"

#define TILES   MM_TILES
#define STEP    (4 * VECTOR) // columns of 64 bytes
#define COLUMNS (2 * STEP)   // of a piece
#define HELPERS (WT_MM_FEW_COPIERS + MM_FINISHERS)
#define EIGHTS  (MM_N * (MM_LOW == WT_MM_BEHIND ? 2 : 1)) // of rows of x
#define COPIES  MM_COPIES
#define PIECES  (VECTOR / 8) // of 128 bytes of x beside one of W
#define ALL     0xffffffffu

// ---- what a block has in shared memory: see wt_mm_few_shared

struct memory {
    // [MM_STAGES], [COPIES], [TILES], each twice
    unsigned long long *full, *empty, *x_full, *x_empty, *summed, *finished;
    float4 *sums;            // [TILES][warps][MM_N][32]
    unsigned char *stages;   // [MM_STAGES][2][warps][8][128], rows 0 .. 7 and 8 .. 15 of a tile
    unsigned char *x;        // [COPIES][EIGHTS][warps][PIECES][8][128]
    int half_bytes, x_bytes; // of eight rows
};

static __device__ __forceinline__ memory memory_of(unsigned char *at, int warps)
{
    memory m;
    m.half_bytes = warps * WT_MM_FEW_PIECE;
    m.x_bytes = warps * PIECES * WT_MM_FEW_PIECE;
    m.stages = at + (1024 - shared_of(at) % 1024) % 1024;
    m.x = m.stages + 2 * MM_STAGES * m.half_bytes;
    m.sums = (float4 *)(m.x + COPIES * EIGHTS * m.x_bytes);
    m.full = (unsigned long long *)(m.sums + TILES * warps * MM_N * 32);
    m.empty = m.full + MM_STAGES;
    m.x_full = m.empty + MM_STAGES;
    m.x_empty = m.x_full + COPIES;
    m.summed = m.x_empty + COPIES;
    m.finished = m.summed + TILES;
    return m;
}

static __device__ __forceinline__ void create_barriers(const memory &m, int warps)
{
    for (int k = 0; k < MM_STAGES; k++) {
        barrier_create(&m.full[k], 1);
        barrier_create(&m.empty[k], warps);
    }
    for (int k = 0; k < COPIES; k++) {
        barrier_create(&m.x_full[k], 1);
        barrier_create(&m.x_empty[k], warps);
    }
    for (int k = 0; k < TILES; k++) {
        barrier_create(&m.summed[k], warps);
        barrier_create(&m.finished[k], 1);
    }
    barriers_created();
}

// ---- what a block has to do

struct work {
    int n_tiles, n_spans, n_chunks, warps; // tiles of the block; pieces of a row
};

static __device__ __forceinline__ work work_of(const wt_mm_args &a)
{
    const wt_mm_part &last = a.parts[MM_PAIR == 2 ? 0 : a.n_parts - 1];
    const int rows = 16 / MM_PAIR, all = last.first_tile + (last.rows + rows - 1) / rows;
    work w;
    w.warps = blockDim.x / 32 - HELPERS;
    w.n_tiles = (all - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    w.n_chunks = a.columns / COLUMNS;
    w.n_spans = (w.n_chunks + w.warps - 1) / w.warps;
    return w;
}

static __device__ __forceinline__ int tiles_from(const work &w, int first)
{
    return w.n_tiles - first < TILES ? w.n_tiles - first : TILES;
}

struct place {
    int part, row; // which may lie beyond the part's
};

// Row `slot` of the 16 of the block's tile `at`.
static __device__ __forceinline__ place place_of(const wt_mm_args &a, int at, int slot)
{
    const int tile = blockIdx.x + at * gridDim.x;
    if (MM_PAIR == 2) return {slot / 8, tile * 8 + slot % 8};
    int part = 0;
    for (int k = 1; k < a.n_parts; k++)
        if (tile >= a.parts[k].first_tile) part = k;
    return {part, (tile - a.parts[part].first_tile) * 16 + slot};
}

static __device__ __forceinline__ int row_of(const wt_mm_args &a, place p)
{
    return p.row < a.parts[p.part].rows ? p.row : a.parts[p.part].rows - 1; // the last once more
}

// ---- copies

// A ring of stages, or of copies of x.
template <int N> struct ring {
    int slot;
    unsigned parity;
    __device__ __forceinline__ void next()
    {
        if (++slot < N) return;
        slot = 0;
        parity ^= 1;
    }
};

// One thread: all of the block's W.
static __device__ __forceinline__ void copy_w(const wt_mm_few_args &f, const memory &m, const work &w)
{
    ring<MM_STAGES> r = {0, 0};
    for (int first = 0; first < w.n_tiles; first += TILES) {
        place at[TILES][2];
#pragma unroll
        for (int k = 0; k < 2 * TILES; k++) at[k / 2][k % 2] = place_of(f.args, first + k / 2, k % 2 * 8);
        for (int span = 0; span < w.n_spans; span++)
#pragma unroll
            for (int p = 0; p < TILES; p++) {
                if (p >= tiles_from(w, first)) continue;
                unsigned char *to = m.stages + 2 * r.slot * m.half_bytes;
                barrier_wait(&m.empty[r.slot], r.parity ^ 1);
                barrier_expect(&m.full[r.slot], 2 * m.half_bytes);
#pragma unroll
                for (int h = 0; h < 2; h++)
                    copy_box(to + h * m.half_bytes, &f.w[at[p][h].part], 0, at[p][h].row, span * w.warps,
                             &m.full[r.slot]);
                r.next();
            }
    }
}

// One thread: the columns of x of each span. Rows that are not there are zeros, or what rounding left of others.
static __device__ __forceinline__ void copy_x(const wt_mm_few_args &f, const memory &m, const work &w)
{
    ring<COPIES> r = {0, 0};
    for (int first = 0; first < w.n_tiles; first += TILES)
        for (int span = 0; span < w.n_spans; span++, r.next()) {
            unsigned char *to = m.x + r.slot * EIGHTS * m.x_bytes;
            barrier_wait(&m.x_empty[r.slot], r.parity ^ 1);
            barrier_expect(&m.x_full[r.slot], EIGHTS * m.x_bytes);
#pragma unroll
            for (int n = 0; n < EIGHTS; n++)
                copy_box(to + n * m.x_bytes, &f.x, 0, n < MM_N ? 8 * n : f.args.m + 8 * (n - MM_N),
                         span * w.warps * PIECES, &m.x_full[r.slot]);
        }
}

// ---- products

// Scales of the lane's two rows of a tile, for the two steps of a piece.
struct scales {
    float scale[2][2];
};

#define SCALE_BYTES (MM_S == WT_MM_F32 ? 4 : MM_S == WT_MM_E4M3 ? 1 : 2)

static __device__ __forceinline__ void load_scales(const wt_mm_args &a, const place *at, int chunk, scales *s)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const wt_mm_part &p = a.parts[at[h].part];
        const int row = row_of(a, at[h]);
        const unsigned char *from = p.scales + (long long)(row / a.scale_rows) * a.scale_stride * SCALE_BYTES;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int group = (chunk * COLUMNS + i * STEP) >> a.scale_shift;
            s->scale[h][i] = element(MM_S, from, group);
        }
    }
}

// The row of eight that lanes 4 g .. 4 g + 3 have of W and x, so that those which read together meet other banks.
static __device__ __forceinline__ int spread(int g) { return g % 2 ? g / 2 ^ 5 : g / 2; }

// The warp's columns of x. Returns a word of all loads: see warp_gives_back.
static __device__ __forceinline__ unsigned read_x(const memory &m, const unsigned char *x, int warp, int n_rows,
                                                  unsigned (*b)[UNITS][EIGHTS][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int row = MM_LOW == WT_MM_WITHIN ? g % 2 * n_rows + g / 2 : spread(g); // within: both parts are one lane's
    unsigned loaded = 0;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                const int unit = i * STEP / 8 + t * UNITS + u; // of 16 bytes
                const unsigned char *piece = x + n * m.x_bytes + (warp * PIECES + unit / 8) * WT_MM_FEW_PIECE;
                arrange(*(const uint4 *)(piece + row * 128 + (unit % 8 ^ row) * 16), b[i][u][n]);
                loaded |= b[i][u][n][0];
            }
    return loaded;
}

// sums += the warp's piece of a tile, whose lane's rows lie at row[], times x. Returns a word of all loads.
static __device__ __forceinline__ unsigned multiply(const unsigned char *const *row, const scales &s,
                                                    unsigned (*b)[UNITS][EIGHTS][4], mm_sum (*sums)[4])
{
    const int g = spread(threadIdx.x % 32 / 4), t = threadIdx.x % 4;
    unsigned loaded = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        mm_sum part[MM_N][4] = {};
        unsigned words[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 v = *(const uint4 *)(row[h] + ((4 * i + t) ^ g) * 16);
            words[h][0] = v.x;
            words[h][1] = v.y;
            words[h][2] = v.z;
            words[h][3] = v.w;
            loaded |= v.x;
        }
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            unsigned w[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++) unpack(words[h] + WORDS * u, 0, w[h]);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                unsigned fragment[4];
                fragment_of(w, half, fragment);
#pragma unroll
                for (int n = 0; n < EIGHTS; n++)
                    mma_x(MM_SCALES ? part[n % MM_N] : sums[n % MM_N], fragment, b[i][u][n][2 * half],
                          b[i][u][n][2 * half + 1]);
            }
        }
        if (!MM_SCALES) continue;
#pragma unroll
        for (int n = 0; n < MM_N; n++)
#pragma unroll
            for (int c = 0; c < 4; c++) sums[n][c] += s.scale[c / 2][i] * part[n][c];
    }
    return loaded;
}

// One of the warps that multiply.
static __device__ __forceinline__ void multiply_all(const wt_mm_args &a, const memory &m, const work &w, int warp)
{
    const int lane = threadIdx.x % 32, g = spread(lane / 4);
    ring<MM_STAGES> r = {0, 0};
    ring<COPIES> x = {0, 0};
    for (int first = 0, turn = 0; first < w.n_tiles; first += TILES, turn ^= 1) {
        const int n = tiles_from(w, first);
        mm_sum sums[TILES][MM_N][4] = {};
        scales s[TILES] = {};
        place at[TILES][2];
#pragma unroll
        for (int p = 0; p < TILES; p++) {
            if (p >= n) continue;
            at[p][0] = place_of(a, first + p, g);
            at[p][1] = place_of(a, first + p, g + 8);
            if (MM_SCALES && warp < w.n_chunks) load_scales(a, at[p], warp, &s[p]);
        }
        for (int span = 0; span < w.n_spans; span++, x.next()) {
            const int chunk = span * w.warps + warp;
            unsigned b[2][UNITS][EIGHTS][4];
            barrier_wait(&m.x_full[x.slot], x.parity);
            const unsigned x_loaded = read_x(m, m.x + x.slot * EIGHTS * m.x_bytes, warp, a.m, b);
            warp_gives_back(&m.x_empty[x.slot], x_loaded);
#pragma unroll
            for (int p = 0; p < TILES; p++) {
                if (p >= n) continue;
                const unsigned char *from = m.stages + 2 * r.slot * m.half_bytes + warp * WT_MM_FEW_PIECE + g * 128;
                const unsigned char *row[2] = {from, from + m.half_bytes};
                barrier_wait(&m.full[r.slot], r.parity);
                const unsigned w_loaded = chunk < w.n_chunks ? multiply(row, s[p], b, sums[p]) : 0;
                warp_gives_back(&m.empty[r.slot], w_loaded);
                r.next();
                if (MM_SCALES && chunk + w.warps < w.n_chunks) load_scales(a, at[p], chunk + w.warps, &s[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < TILES; p++) {
            if (p >= n) continue;
            barrier_wait(&m.finished[p], turn ^ 1);
#pragma unroll
            for (int k = 0; k < MM_N; k++)
                m.sums[((p * w.warps + warp) * MM_N + k) * 32 + lane] = {sums[p][k][0], sums[p][k][1], sums[p][k][2],
                                                                         sums[p][k][3]};
            __syncwarp();
            if (lane == 0) barrier_arrive(&m.summed[p]);
        }
    }
}

// ---- finished rows

// The row of x of a lane's sum c, or c + 2.
static __device__ __forceinline__ int x_row(int n, int c) { return 8 * n + spread(threadIdx.x % 4 * 2 + c % 2); }

// What the lane's rows of x's sums are multiplied with, 1 over the root of the mean square of what each was made of.
static __device__ __forceinline__ void read_norms(const wt_mm_args &a, float (*norms)[2])
{
    const int lane = threadIdx.x % 32, n = a.columns / (4 * WT_MM_SKINNY_SQUARES);
    float sums[8 * MM_N] = {};
    for (int k = lane; k < n; k += 32)
#pragma unroll
        for (int i = 0; i < 8 * MM_N; i++)
            if (i < a.m) {
                const float4 v = ((const float4 *)a.x_squares)[(long long)i * n + k];
                sums[i] += v.x + v.y + (v.z + v.w);
            }
#pragma unroll
    for (int i = 0; i < 8 * MM_N; i++) {
        for (int step = 16; step; step /= 2) sums[i] += __shfl_xor_sync(ALL, sums[i], step);
        const int t = i % 8 < 4 ? i % 8 : i % 8 ^ 5; // whose x_row it is, by its sum i % 8 / 4
        if (lane % 4 == t) norms[i / 8][i % 8 / 4] = 1 / sqrtf(sums[i] / (float)a.columns + a.norm_eps);
    }
}

static __device__ __forceinline__ bool has_norm_after(const wt_mm_args &a)
{
    return MM_X == WT_MM_BF16 && MM_PAIR == 1 && a.norm_weight;
}

// What finish_four reads.
static __device__ __forceinline__ void read_before(const wt_mm_args &a, const place *at, int n, before *b)
{
    if (!has_norm_after(a)) return;
#pragma unroll
    for (int c = 0; c < 4; c++)
        if (x_row(n, c) < a.m && at[c / 2].row < a.parts[0].rows) b[c] = before_norm(a, x_row(n, c), at[c / 2].row);
}

// The four sums of a lane.
static __device__ __forceinline__ void finish_four(const wt_mm_args &a, const place *at, const float *scale, int n,
                                                   const float *norms, float4 sum, const before *b)
{
    const wt_mm_tile whole = {0, 0, a.m, 0, 0};
    const float v[4] = {sum.x * (scale[0] * norms[0]), sum.y * (scale[0] * norms[1]), sum.z * (scale[1] * norms[0]),
                        sum.w * (scale[1] * norms[1])};
    float squares[2] = {0, 0};
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const place to = at[MM_PAIR == 2 ? 0 : c / 2];
        const int row = x_row(n, c);
        if ((MM_PAIR == 2 && c >= 2) || row >= a.m || to.row >= a.parts[to.part].rows) continue;
        if (has_norm_after(a))
            squares[c % 2] += finish_normed(a, row, to.row, v[c], b[c]);
        else
            finish(a, to.part, whole, row, to.row, v[c], v[c % 2 + 2]);
    }
    if (!has_norm_after(a)) return;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        for (int step = 4; step < 32; step *= 2) squares[c] += __shfl_xor_sync(ALL, squares[c], step);
        if (threadIdx.x % 32 < 4 && x_row(n, c) < a.m)
            a.squares[(long long)x_row(n, c) * (a.parts[0].rows / WT_MM_SKINNY_SQUARES) +
                      at[0].row / WT_MM_SKINNY_SQUARES] = squares[c];
    }
}

// One warp: the sums of those that multiply, tile after tile, or every second.
static __device__ __forceinline__ void finish_all(const wt_mm_args &a, const memory &m, const work &w, int finisher)
{
    const int lane = threadIdx.x % 32, g = spread(lane / 4);
    float norms[MM_N][2];
    for (int n = 0; n < MM_N; n++) norms[n][0] = norms[n][1] = 1;
    if (MM_X == WT_MM_BF16 && a.x_squares) read_norms(a, norms);
    for (int at = finisher; at < w.n_tiles; at += MM_FINISHERS) {
        const int slot = at % TILES;
        const place places[2] = {place_of(a, at, g), place_of(a, at, g + 8)};
        float scale[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const wt_mm_part &p = a.parts[places[h].part];
            scale[h] = !MM_SCALES ? scale_at(a, p, 0, row_of(a, places[h]), 0) : p.tensor_scale ? *p.tensor_scale : 1;
        }
        before b[MM_N][4] = {};
#pragma unroll
        for (int n = 0; n < MM_N; n++) read_before(a, places, n, b[n]);
        barrier_wait(&m.summed[slot], at / TILES & 1);
        float4 sums[MM_N];
#pragma unroll
        for (int n = 0; n < MM_N; n++) {
            float4 sum = {0, 0, 0, 0};
            for (int k = 0; k < w.warps; k++) {
                const float4 v = m.sums[((slot * w.warps + k) * MM_N + n) * 32 + lane];
                sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
            }
            sums[n] = sum;
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(&m.finished[slot]);
#pragma unroll
        for (int n = 0; n < MM_N && MM_LOW == WT_MM_WITHIN; n++) { // rows of y and w are not there
            sums[n].x += sums[n].y;
            sums[n].z += sums[n].w;
        }
#pragma unroll
        for (int n = 0; n < MM_N; n++) finish_four(a, places, scale, n, norms[n], sums[n], b[n]);
    }
}

extern "C" __global__ void __launch_bounds__(32 * (MM_WARPS + HELPERS), MM_BLOCKS)
    matmul_few(const __grid_constant__ wt_mm_few_args f)
{
    extern __shared__ uint4 few_shared[];
    const wt_mm_args &a = f.args;
    const work w = work_of(a);
    const memory m = memory_of((unsigned char *)few_shared, w.warps);
    const int warp = __shfl_sync(ALL, threadIdx.x / 32, 0), helper = warp - w.warps; // uniform, for the compiler
    let_next_begin();
    if (threadIdx.x == 0) create_barriers(m, w.warps);
    __syncthreads();
    if (helper == 0) {
        if (threadIdx.x % 32 == 0) copy_w(f, m, w);
        wait_for_earlier();
        return;
    }
    if (helper == 1 && threadIdx.x % 32 == 0) prefetch_map(&f.x);
    wait_for_earlier(); // nothing but W is read before
    if (helper < 0)
        multiply_all(a, m, w, warp);
    else if (helper > 1)
        finish_all(a, m, w, helper - 2);
    else if (threadIdx.x % 32 == 0)
        copy_x(f, m, w);
}
