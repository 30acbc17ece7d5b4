// Products with many rows of x on tensor cores: a block computes 128 rows of W (64 of each matrix of a gated product)
// by 128 rows of x with four warps of 64 by 64. W and x come to shared memory by background copies, MM_STAGES steps
// ahead; W as it is stored, widened in registers. A step is 64 bytes of a row of W. Bound by tensor cores; an element
// is summed in the order of the columns, or, of F32 whose tiles are too few, in that of slices (slices.cuh). Judge: the
// CPU.
//
// Where both sides are as the tensor cores take them, ldmatrix brings half a step to registers while the half before is
// multiplied, also across steps; a row's 16-byte pieces are exchanged so that eight rows meet all banks once.
// Else four lanes use 16 bytes each of a row where they lie, as matmul_skinny does, so neither side is rearranged: rows
// close up, and eight lanes of a load meet all 32 banks once. Where a step of x is longer than 64 bytes, its 16-byte
// pieces are dealt out to planes such that this holds for each. Scales along columns are applied to the weights,
// rounded to MM_X (MM_SCALES 3, 4 when a vector has one), constant ones at the end; those of NVFP4 by NVFP4 are the
// tensor cores' own (5).
#include "matmul.cuh"

#include "matmul_unpack.cuh"
#include "slices.cuh"

#define SIZE    WT_MM_TILE
#define W_ROWS  MM_ROWS
#define PIECES  MM_PIECES // of 16 bytes of a row, a step
#define HALVES  (PIECES / 2)
#define SPAN    (PIECES * VECTOR) // columns of a step
#define PITCH   (W_ROWS + 4)      // of the sums in shared memory: [row of x][row of W]
#define DIRECT  (UNITS == 1 && (MM_SCALES == 0 || MM_X_IS_4))
#define PLAIN   (MM_X == WT_MM_F32) // without tensor cores
#define THREADS (PLAIN ? 256 : W_ROWS)
#define W_EACH  (W_ROWS * PIECES / THREADS) // copies of a thread
#define X_EACH  (SIZE * PIECES / THREADS)

struct stage {
    uint4 w[W_ROWS][PIECES];
    uint4 x[UNITS][SIZE][PIECES];
#if MM_X_IS_4
    unsigned w_scales[SIZE][2], x_scales[SIZE][2]; // of the halves of a step
#endif
};

// Row `s` of the block's rows of W: of a gated product 32 of part 0, the same 32 of part 1, and so on.
static __device__ __forceinline__ int row_of(const mm_place &p, int s)
{
    return p.first + (MM_PAIR == 2 ? s / 64 * 32 + s % 32 : s);
}

static __device__ __forceinline__ int part_of(const mm_place &p, int s) { return MM_PAIR == 2 ? s % 64 / 32 : p.part; }

static __device__ __forceinline__ int clamped(int k, int n) { return k < n ? k : n - 1; }

// ---- to shared memory: thread k copies piece k % PIECES (of x: of PIECES UNITS) of every THREADS / PIECES-th row

// Where piece c of a row of a step lies.
static __device__ __forceinline__ int place_of(int row, int c)
{
    return !DIRECT ? c : PIECES == 8 ? c ^ (row & 7) : c ^ (row / 2 & 3);
}

// Rows between two copies of a thread, a multiple of those after which place_of repeats.
#define APART (THREADS / PIECES)

struct source {
    const unsigned char *w[MM_PAIR], *x; // where the thread's pieces of its first rows begin
    unsigned row_bytes, x_bytes;         // to the next row
    int columns;                         // from there on
    unsigned w_rows, x_rows;             // a bit a copy: is there such a row?
    int at;                              // of the thread's first piece in w or a plane of x
#if MM_X_IS_4
    const unsigned char *w_scales, *x_scales; // thread k copies those of row k
#endif
};

// Row of copy i, from the thread's first.
static __device__ __forceinline__ int row_of_copy(int i)
{
    const int at = i * APART;
    return MM_PAIR == 2 ? at / 64 * 32 + at % 32 : at;
}

static __device__ __forceinline__ source source_of(const wt_mm_args &a, const mm_place &p, int first_step)
{
    source s;
    s.columns = a.columns - first_step * SPAN;
    const int piece = threadIdx.x % PIECES, first = threadIdx.x / PIECES, row = row_of(p, first);
#pragma unroll
    for (int k = 0; k < MM_PAIR; k++) {
        const wt_mm_part &part = a.parts[p.part + k];
        s.w[k] = part.w + p.tile.stack * part.w_next + row * a.row_bytes + 16 * (first_step * PIECES + piece);
    }
    s.x = a.x + (p.tile.x + first * a.x_stride) * 16 / UNIT + 16 * (first_step * PIECES * UNITS + piece);
    s.row_bytes = (unsigned)a.row_bytes;
    s.x_bytes = (unsigned)a.x_stride * 16 / UNIT;
    s.w_rows = s.x_rows = 0;
#pragma unroll
    for (int i = 0; i < W_EACH; i++) s.w_rows |= (unsigned)(row + row_of_copy(i) < a.parts[p.part].rows) << i;
#pragma unroll
    for (int i = 0; i < X_EACH; i++) s.x_rows |= (unsigned)(first + i * APART < p.tile.count) << i;
    s.at = first * PIECES + place_of(first, piece);
#if MM_X_IS_4
    const wt_mm_part &part = a.parts[part_of(p, threadIdx.x)];
    s.w_scales = part.scales + p.tile.stack * part.scales_next +
                 (long long)clamped(row_of(p, threadIdx.x), part.rows) * a.scale_stride;
    s.x_scales = a.x_groups + (p.tile.x + clamped(threadIdx.x, p.tile.count) * a.x_stride) / 16;
#endif
    return s;
}

// Piece c of a row of x goes to plane c % UNITS, place c / UNITS: a lane's pieces, one in each plane, lie at its place.
// Rows and columns that are not there become zeros. One of `of` shares of a step's copies.
static __device__ __forceinline__ void load(const source &s, int step, int share, int of, stage *to)
{
    const int piece = threadIdx.x % PIECES, k = step * SPAN;
    const unsigned w_rows = k + piece * VECTOR < s.columns ? s.w_rows : 0;
    const bool second = MM_PAIR == 2 && APART == 64 && threadIdx.x / PIECES / 32;
#pragma unroll
    for (int i = 0; i < W_EACH; i++) {
        if (i % of != share) continue;
        const unsigned char *w = (second ? s.w[MM_PAIR - 1] : s.w[MM_PAIR == 2 ? i * APART % 64 / 32 : 0]) +
                                 step * (16ll * PIECES);
        copy_async_16(&to->w[0][0] + i * APART * PIECES + s.at, w + (unsigned long long)row_of_copy(i) * s.row_bytes,
                      w_rows >> i & 1);
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        const int c = u * PIECES + piece, plane = UNITS == 1 ? 0 : c % UNITS;
        const unsigned x_rows = k + c * UNIT < s.columns ? s.x_rows : 0;
        const unsigned char *x = s.x + step * (16ll * PIECES * UNITS) + u * PIECES * 16;
        const int at = UNITS == 1 ? s.at : s.at - piece + c / UNITS;
#pragma unroll
        for (int i = 0; i < X_EACH; i++)
            if ((i + u) % of == share)
                copy_async_16(&to->x[plane][0][0] + i * APART * PIECES + at,
                              x + (unsigned long long)(i * APART) * s.x_bytes, x_rows >> i & 1);
    }
#if MM_X_IS_4
    if (share) return;
    copy_async_8(to->w_scales[threadIdx.x], s.w_scales + k / 16, true);
    copy_async_8(to->x_scales[threadIdx.x], s.x_scales + k / 16, true);
#endif
}

// ---- products of sides as they are

#if MM_X == WT_MM_F32
#define SUMS (W_ROWS / 16)
typedef float warp_sums[SUMS][8]; // [row of W][row of x]

// A thread has every 16th row of both sides. Lanes are dealt out such that neighbours, or neighbours but one, read the
// same 16 bytes of a side: a load of shared memory then takes two turns.
static __device__ __forceinline__ int w_row_of(int lane, int warp)
{
    return warp / 2 * 4 + (lane >> 1 & 1 | lane >> 3 & 2);
}

static __device__ __forceinline__ int x_row_of(int lane, int warp) { return warp % 2 * 8 + (lane & 1 | lane >> 1 & 6); }

static __device__ __forceinline__ void multiply_all(const source &s, int n_steps, stage *stages,
                                                    warp_sums sums)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, w_row = w_row_of(lane, warp),
              x_row = x_row_of(lane, warp);
    stage *now = stages, *fill = stages + MM_STAGES - 1;
    for (int k = 0; k < n_steps; k++) {
        copy_async_wait<MM_STAGES - 2>();
        __syncthreads(); // the step is there, and nobody reads the stage that is filled now
#pragma unroll
        for (int c = 0; c < PIECES; c++) {
            float4 x[8];
            load(s, k + MM_STAGES - 1, c, PIECES, fill);
#pragma unroll
            for (int j = 0; j < 8; j++) x[j] = *(const float4 *)&now->x[0][x_row + 16 * j][place_of(x_row, c)];
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                add_products(*(const float4 *)&now->w[w_row + 16 * i][place_of(w_row, c)], x, sums[i]);
        }
        copy_async_commit();
        fill = now;
        now = now + 1 == stages + MM_STAGES ? stages : now + 1;
    }
}
#else
#define SUMS 4
typedef mm_sum warp_sums[SUMS][8][4];

// Of half a step, 32 bytes of a row: sixteens of rows of W, and of x.
struct fragments {
    unsigned w[4][4], x[4][4];
#if MM_X_IS_4
    unsigned w_scales[4], x_scales[8];
#endif
};

static __device__ __forceinline__ void load_half(const stage *s, int half, fragments *f)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8;
    const int w_row = warp / 2 * 64 + matrix % 2 * 8 + lane % 8, x_row = warp % 2 * 64 + matrix / 2 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        load_matrices(f->w[i], &s->w[w_row + 16 * i][place_of(w_row, 2 * half + matrix / 2)]);
        load_matrices(f->x[i], &s->x[0][x_row + 16 * i][place_of(x_row, 2 * half + matrix % 2)]);
    }
#if MM_X_IS_4
#pragma unroll
    for (int i = 0; i < 4; i++)
        f->w_scales[i] = s->w_scales[warp / 2 * 64 + 16 * i + lane % 2 * 8 + lane / 4][half];
#pragma unroll
    for (int n = 0; n < 8; n++) f->x_scales[n] = s->x_scales[warp % 2 * 64 + 8 * n + lane / 4][half];
#endif
}

static __device__ __forceinline__ void multiply_half(const fragments &f, mm_sum (*sums)[8][4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const unsigned *x = f.x[n / 2] + n % 2 * 2;
#if MM_X_IS_4
            mma_e2m1(sums[i][n], f.w[i], x[0], x[1], f.w_scales[i], f.x_scales[n]);
#else
            mma_x(sums[i][n], f.w[i], x[0], x[1]);
#endif
        }
}

static __device__ __forceinline__ void multiply_all(const source &s, int n_steps, stage *stages,
                                                    warp_sums sums)
{
    fragments f[2];
    copy_async_wait<MM_STAGES - 2>();
    __syncthreads();
    load_half(stages, 0, &f[0]);
    stage *now = stages, *fill = stages + MM_STAGES - 1;
    for (int k = 0; k < n_steps; k++) {
#pragma unroll
        for (int h = 0; h + 1 < HALVES; h++) {
            load_half(now, h + 1, &f[(h + 1) % 2]);
            load(s, k + MM_STAGES - 1, h, HALVES - 1, fill);
            multiply_half(f[h % 2], sums);
        }
        copy_async_commit();
        copy_async_wait<MM_STAGES - 2>();
        __syncthreads(); // the next step is there, and nobody reads this one any more
        fill = now;
        now = now + 1 == stages + MM_STAGES ? stages : now + 1;
        load_half(now, 0, &f[0]);
        multiply_half(f[(HALVES - 1) % 2], sums);
    }
}
#endif

// ---- others

#if !MM_X_IS_4 && MM_X != WT_MM_F32
// Scale and zero point of row s, column k.
static __device__ __forceinline__ float scale_of(const wt_mm_args &a, const mm_place &p, int s, int k)
{
    const wt_mm_part &part = a.parts[part_of(p, s)];
    const int r = clamped(row_of(p, s), part.rows), c = clamped(k, a.columns);
    return element(MM_S, part.scales + p.tile.stack * part.scales_next,
                   (long long)(r / a.scale_rows) * a.scale_stride + (c >> a.scale_shift));
}

static __device__ __forceinline__ unsigned zero_of(const wt_mm_args &a, const mm_place &p, int s, int k)
{
    const wt_mm_part &part = a.parts[part_of(p, s)];
    if (!part.zeros) return placed_zero(8);
    const int r = clamped(row_of(p, s), part.rows), c = clamped(k, a.columns);
    return placed_zero(
        part.zeros[p.tile.stack * part.zeros_next + (long long)r * a.scale_stride + (c >> a.scale_shift)]);
}

// The warp's 64 by 64 of a step: sums[row tile][tile of x].
static __device__ __forceinline__ void multiply(const wt_mm_args &a, const mm_place &p, const stage *s, int step,
                                                mm_sum (*sums)[8][4])
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    const int first_w = warp / 2 * 64 + g, first_x = warp % 2 * 64 + g, column = step * SPAN + t * VECTOR;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned b[8][4];
#pragma unroll
        for (int n = 0; n < 8; n++) arrange(s->x[u][first_x + 8 * n][t], b[n]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned w[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = first_w + 16 * i + 8 * h;
                const unsigned *words = (const unsigned *)&s->w[row][t] + WORDS * u;
                const int k = column + (MM_SCALES == 3 ? UNIT * u : 0);
                unpack(words, MM_W == WT_MM_U4 ? MM_SCALES ? zero_of(a, p, row, k) : placed_zero(8) : 0, w[h]);
                if (MM_SCALES) scale_pairs(w[h], scale_of(a, p, row, k));
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                unsigned fragment[4];
                fragment_of(w, half, fragment);
#pragma unroll
                for (int n = 0; n < 8; n++) mma_x(sums[i][n], fragment, b[n][2 * half], b[n][2 * half + 1]);
            }
        }
    }
}
#endif

// ---- the end

// Where the sums of row `w` of the block's are in a row of them: part 1's of a gated product behind part 0's.
static __device__ __forceinline__ int column_of(int w)
{
    return MM_PAIR == 2 ? w % 64 / 32 * (W_ROWS / 2) + w / 64 * 32 + w % 32 : w;
}

// All sums to shared memory.
static __device__ __forceinline__ void lay_out(warp_sums sums, mm_sum *all)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#if MM_X == WT_MM_F32
            all[(x_row_of(lane, warp) + 16 * n) * PITCH + column_of(w_row_of(lane, warp) + 16 * i)] = sums[i][n];
#else
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int x = warp % 2 * 64 + 8 * n + lane % 4 * 2 + c % 2, w = 16 * i + lane / 4 + c / 2 * 8;
                all[x * PITCH + column_of(warp / 2 * 64 + w)] = sums[i][n][c];
            }
#endif
}

static __device__ __forceinline__ float4 four_at(const mm_sum *sums)
{
    const uint4 w = *(const uint4 *)sums;
    if (MM_X == WT_MM_I8) return {(float)(int)w.x, (float)(int)w.y, (float)(int)w.z, (float)(int)w.w};
    return {__uint_as_float(w.x), __uint_as_float(w.y), __uint_as_float(w.z), __uint_as_float(w.w)};
}

// A thread has four neighbours of some rows of y, lanes side by side.
static __device__ void finish_all(const wt_mm_args &a, const mm_place &p, const mm_sum *all)
{
    const int lanes = W_ROWS / MM_PAIR / 4, r = p.first + threadIdx.x % lanes * 4;
    const wt_mm_part &part = a.parts[p.part], &other = a.parts[MM_PAIR - 1];
    if (r >= part.rows) return;
    const bool bare = MM_X == WT_MM_I8 && a.y_type == WT_MM_I32, whole = !bare && is_whole(a, part, r);
    const factors f = factors_of(a, part, p.tile.stack, r, MM_SCALES == 0);
    const factors f1 = MM_PAIR == 2 ? factors_of(a, other, p.tile.stack, r, MM_SCALES == 0) : f;
    const int bytes = bytes_of(a.y_type);
    unsigned char *y =
        (unsigned char *)part.y + (p.tile.y_batches * part.y_batch + p.tile.first * part.y_stride + r) * bytes;
#pragma unroll 4
    for (int i = threadIdx.x / lanes; i < p.tile.count; i += THREADS / lanes) {
        const mm_sum *sums = all + i * PITCH + (r - p.first);
        if (bare) {
            for (int c = 0; c < 4; c++)
                if (r + c < part.rows) store_sum(part, p.tile, i, r + c, (int)sums[c]);
            continue;
        }
        const float x = (MM_X_IS_8 || MM_X_IS_4) && a.x_scales ? a.x_scales[p.tile.first + i] : 1;
        float4 v = finished(f, four_at(sums), x);
        if (a.activation)
            v = {activated(a.activation, v.x), activated(a.activation, v.y), activated(a.activation, v.z),
                 activated(a.activation, v.w)};
        if (MM_PAIR == 2) {
            const float4 v1 = finished(f1, four_at(sums + W_ROWS / 2), x);
            v = {v.x * v1.x, v.y * v1.y, v.z * v1.z, v.w * v1.w};
        }
        if (whole) {
            store_four(a, y + i * part.y_stride * bytes, v);
            continue;
        }
        const float each[4] = {v.x, v.y, v.z, v.w};
        for (int c = 0; c < 4; c++)
            if (r + c < part.rows) store(a, part, p.tile, i, r + c, each[c]);
    }
}

// The sums of n_steps steps of the columns to shared memory. Copied ahead of the last ones are the steps after.
static __device__ __forceinline__ void compute_steps(const wt_mm_args &a, const mm_place &p, int first, int n_steps,
                                                     stage *stages, warp_sums sums)
{
    const source s = source_of(a, p, first);
    for (int k = 0; k < MM_STAGES - 1; k++) {
        load(s, k, 0, 1, stages + k);
        copy_async_commit();
    }
    if (DIRECT) multiply_all(s, n_steps, stages, sums);
#if !MM_X_IS_4 && MM_X != WT_MM_F32
    for (int k = 0; k < n_steps && !DIRECT; k++) {
        copy_async_wait<MM_STAGES - 2>();
        __syncthreads(); // the step's copies of all threads are there, and nobody reads the stage that is filled now
        const int next = k + MM_STAGES - 1;
        load(s, next, 0, 1, stages + next % MM_STAGES);
        copy_async_commit();
        multiply(a, p, stages + k % MM_STAGES, k, sums);
    }
#endif
    copy_async_wait<0>();
    __syncthreads();
    lay_out(sums, (mm_sum *)stages);
    __syncthreads();
}

#if MM_X == WT_MM_F32
// With MM_SLICED blocks have slices of their tile's columns.
extern "C" __global__ void __launch_bounds__(THREADS, W_ROWS > SIZE ? 1 : 2)
    MM_KERNEL(const __grid_constant__ wt_mm_slices_args g)
{
    extern __shared__ uint4 tiles_shared[];
    const wt_mm_args &a = g.args;
    const int n_slices = MM_SLICED ? g.n_slices : 1, n_tiles = gridDim.x / n_slices;
    const int slice = MM_SLICED ? blockIdx.x / n_tiles : 0, tile = blockIdx.x - slice * n_tiles;
    const int n_steps = (a.columns + SPAN - 1) / SPAN, first = n_steps * slice / n_slices;
    mm_place p;
    if (!find_place(a, tile, n_tiles, W_ROWS / MM_PAIR, MM_PAIR == 2, &p)) return;
    warp_sums sums = {};
    compute_steps(a, p, first, n_steps * (slice + 1) / n_slices - first, (stage *)tiles_shared, sums);
    if (MM_SLICED && !add_slices<SIZE, W_ROWS, THREADS>(g, tile, slice, (float *)tiles_shared)) return;
    finish_all(a, p, (const mm_sum *)tiles_shared);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS, MM_X_IS_4 || W_ROWS > SIZE ? 1 : 2)
    MM_KERNEL(const __grid_constant__ wt_mm_args a)
{
    extern __shared__ uint4 tiles_shared[];
    mm_place p;
    if (!find_place(a, blockIdx.x, gridDim.x, W_ROWS / MM_PAIR, MM_PAIR == 2, &p)) return;
    warp_sums sums = {};
    compute_steps(a, p, 0, (a.columns + SPAN - 1) / SPAN, (stage *)tiles_shared, sums);
    finish_all(a, p, (const mm_sum *)tiles_shared);
}
#endif
