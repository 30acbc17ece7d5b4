// Products with many rows of x on tensor cores: a block computes 128 rows of W (64 of each matrix of a gated product)
// by 128 rows of x with four warps of 64 by 64. W and x come to shared memory by background copies, MM_STAGES steps
// ahead; W as it is stored, widened in registers. A step is 64 bytes of a row of W. Bound by tensor cores; an element is
// summed in the order of the columns. Judge: the CPU.
//
// Where both sides are as the tensor cores take them, ldmatrix brings half a step to registers while the half before is
// multiplied, also across steps; a row's 16-byte pieces are exchanged so that eight rows meet all banks once.
// Else four lanes use 16 bytes each of a row where they lie, as matmul_skinny does, so neither side is rearranged: rows
// close up, and eight lanes of a load meet all 32 banks once. Where a step of x is longer than 64 bytes, its 16-byte
// pieces are dealt out to planes such that this holds for each. Scales along columns are applied to the weights, rounded
// to MM_X (MM_SCALES 3, 4 when a vector has one), constant ones at the end; those of NVFP4 by NVFP4 are the tensor cores' own
// (5).
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#define SIZE    WT_MM_TILE
#define THREADS 128
#define SPAN    (4 * VECTOR) // columns of a step
#define PITCH   (SIZE + 4)   // of the sums in shared memory: [row of x][row of W]
#define DIRECT  (UNITS == 1 && (MM_SCALES == 0 || MM_X_IS_4))

struct stage {
    uint4 w[SIZE][4];
    uint4 x[UNITS][SIZE][4];
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

// ---- to shared memory: thread k copies piece k % 4 (of x: of 4 UNITS) of every 32nd row

struct source {
    const unsigned char *w[SIZE * 4 / THREADS], *x[SIZE * 4 / THREADS];
#if MM_X_IS_4
    const unsigned char *w_scales, *x_scales; // thread k copies those of row k
#endif
};

static __device__ __forceinline__ source source_of(const wt_mm_args &a, const mm_place &p)
{
    source s;
#pragma unroll
    for (int i = 0; i < SIZE * 4 / THREADS; i++) {
        const int at = threadIdx.x / 4 + i * THREADS / 4;
        const wt_mm_part &part = a.parts[part_of(p, at)];
        s.w[i] = part.w + p.tile.stack * part.w_next + clamped(row_of(p, at), part.rows) * a.row_bytes;
        s.x[i] = a.x + (p.tile.x + clamped(at, p.tile.count) * a.x_stride) * 16 / UNIT;
    }
#if MM_X_IS_4
    const int row = threadIdx.x;
    const wt_mm_part &part = a.parts[part_of(p, row)];
    s.w_scales = part.scales + p.tile.stack * part.scales_next +
                 (long long)clamped(row_of(p, row), part.rows) * a.scale_stride;
    s.x_scales = a.x_groups + (p.tile.x + clamped(row, p.tile.count) * a.x_stride) / 16;
#endif
    return s;
}

// Where piece c of a row of a step lies.
static __device__ __forceinline__ int place_of(int row, int c) { return DIRECT ? c ^ (row / 2 & 3) : c; }

// Piece c of a row of x goes to plane c % UNITS, place c / UNITS: a lane's pieces, one in each plane, lie at its place.
static __device__ __forceinline__ void load(const wt_mm_args &a, const source &s, int step, stage *to)
{
    const int piece = threadIdx.x % 4, k = step * SPAN;
#pragma unroll
    for (int i = 0; i < SIZE * 4 / THREADS; i++) {
        const int at = threadIdx.x / 4 + i * THREADS / 4;
        const bool valid = k + piece * VECTOR < a.columns;
        copy_async_16(&to->w[at][place_of(at, piece)], s.w[i] + (valid ? (k / VECTOR + piece) * 16ll : 0), valid);
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const int c = u * 4 + piece, column = k + c * UNIT;
            copy_async_16(&to->x[c % UNITS][at][place_of(at, c / UNITS)],
                          s.x[i] + (column < a.columns ? (k / UNIT + c) * 16ll : 0), column < a.columns);
        }
    }
#if MM_X_IS_4
    copy_async_8(to->w_scales[threadIdx.x], s.w_scales + k / 16, true);
    copy_async_8(to->x_scales[threadIdx.x], s.x_scales + k / 16, true);
#endif
}

// ---- products of sides as they are

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

static __device__ __forceinline__ void multiply_all(const wt_mm_args &a, const source &s, int n_steps, stage *stages,
                                                    mm_sum (*sums)[8][4])
{
    fragments now, next;
    copy_async_wait<MM_STAGES - 2>();
    __syncthreads();
    load_half(stages, 0, &now);
    for (int k = 0; k < n_steps; k++) {
        load_half(stages + k % MM_STAGES, 1, &next);
        multiply_half(now, sums);
        copy_async_wait<MM_STAGES - 3>();
        __syncthreads(); // the next step is there, and nobody reads the one before this
        const int ahead = k + MM_STAGES - 1;
        if (ahead < n_steps) load(a, s, ahead, stages + ahead % MM_STAGES);
        copy_async_commit();
        if (k + 1 < n_steps) load_half(stages + (k + 1) % MM_STAGES, 0, &now);
        multiply_half(next, sums);
    }
}

// ---- others

#if !MM_X_IS_4
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

// All sums to shared memory, part 1's of a gated product behind part 0's.
static __device__ __forceinline__ void lay_out(mm_sum (*sums)[8][4], mm_sum *all)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int x = warp % 2 * 64 + 8 * n + lane % 4 * 2 + c % 2, w = 16 * i + lane / 4 + c / 2 * 8;
                const int at = MM_PAIR == 2 ? w / 32 * 64 + warp / 2 * 32 + w % 32 : warp / 2 * 64 + w;
                all[x * PITCH + at] = sums[i][n][c];
            }
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
    const int lanes = SIZE / MM_PAIR / 4, r = p.first + threadIdx.x % lanes * 4;
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
            const float4 v1 = finished(f1, four_at(sums + 64), x);
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

extern "C" __global__ void __launch_bounds__(THREADS, MM_X_IS_4 ? 1 : 2) MM_KERNEL(const __grid_constant__ wt_mm_args a)
{
    extern __shared__ uint4 tiles_shared[];
    stage *stages = (stage *)tiles_shared;
    mm_place p;
    if (!find_place(a, blockIdx.x, gridDim.x, SIZE / MM_PAIR, MM_PAIR == 2, &p)) return;
    const source s = source_of(a, p);
    const int n_steps = (a.columns + SPAN - 1) / SPAN;
    mm_sum sums[4][8][4] = {};
    for (int k = 0; k < MM_STAGES - 1; k++) {
        if (k < n_steps) load(a, s, k, stages + k);
        copy_async_commit();
    }
    if (DIRECT) multiply_all(a, s, n_steps, stages, sums);
#if !MM_X_IS_4
    for (int k = 0; k < n_steps && !DIRECT; k++) {
        copy_async_wait<MM_STAGES - 2>();
        __syncthreads(); // the step's copies of all threads are there, and nobody reads the stage that is filled now
        const int next = k + MM_STAGES - 1;
        if (next < n_steps) load(a, s, next, stages + next % MM_STAGES);
        copy_async_commit();
        multiply(a, p, stages + k % MM_STAGES, k, sums);
    }
#endif
    copy_async_wait<0>();
    __syncthreads();
    lay_out(sums, (mm_sum *)tiles_shared);
    __syncthreads();
    finish_all(a, p, (const mm_sum *)tiles_shared);
}
