// Products with few rows of x, bound by the reading of W: y = x W^T on tensor cores, W the 16 x 16 side and x the 8
// wide one, so that 8 rows of x cost what one costs. A block takes 16 rows of W (of both matrices of a gated product)
// at a time, and while it ends with them the next ones are on their way; its warps share the columns, chunk by chunk.
// In a step the four lanes of a row read 64 bytes of it, 16 each, and use them where they are: the order of the columns
// in a product is free as long as x comes in the same one. Sums of the warps are added in order in shared memory. What
// is summed for a row of x, and in which order, depends on no other row.
//
// Scales: constant along columns they wait for the end (MM_SCALES 0); of groups that fill whole steps (1) each step's
// sums are scaled; of smaller groups (2) the four lanes first exchange their words, so that each product is within one
// group; of groups of 16 nibbles (3) the weights themselves are scaled, which is exact for NVFP4.
//
// Reads W once, x once a block through L1; its first copies begin before the launch before has ended (overlap.cuh).
// Judge: the CPU.
#ifndef MM_W
#    define MM_W      2
#    define MM_X      2
#    define MM_SCALES 0
#    define MM_S      0
#    define MM_N      1
#    define MM_PAIR   1
#    define MM_STEPS  4
#    define MM_STAGES 2
#    define MM_LOW    0 // WT_MM_BEHIND or WT_MM_WITHIN: products of what rounding left of x too
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#include "overlap.cuh"

#define SPAN   (4 * VECTOR) ///< columns of a step
#define CHUNK  (MM_STEPS * SPAN)
#define WIDTH  (8 * MM_N)            ///< rows of x
#define EIGHTS (MM_N * (MM_LOW == WT_MM_BEHIND ? 2 : 1)) ///< of them
#define ALL    0xffffffffu

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

// Columns `k` .. of the lane's row of the n-th eight of x; zeros beyond the columns and the rows there are.
template <class T>
static __device__ __forceinline__ T x_of(const wt_mm_args &a, const wt_mm_tile &t, int n, int k)
{
    const bool within = MM_LOW == WT_MM_WITHIN;
    const int g = threadIdx.x % 32 / 4, i = within ? g % 4 : g + 8 * (n % MM_N), part = within ? g / 4 : n / MM_N;
    const long long at = t.x + i * a.x_stride + k + part * a.x_low;
    T x = {};
    if (i < t.count && k < a.columns) x = *(const T *)(a.x + at * 16 / UNIT);
    return x;
}

// A unit of columns of the lane's rows of x.
static __device__ __forceinline__ void load_x(const wt_mm_args &a, const wt_mm_tile &t, int k, unsigned (*b)[4])
{
#pragma unroll
    for (int n = 0; n < EIGHTS; n++) arrange(x_of<uint4>(a, t, n, k), b[n]);
}

// sums += a unit of columns of 16 rows times x.
static __device__ __forceinline__ void multiply_unit(const unsigned (*w)[4], const unsigned (*b)[4], mm_sum (*sums)[4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        unsigned fragment[4];
        fragment_of(w, half, fragment);
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) mma_x(sums[n % MM_N], fragment, b[n][2 * half], b[n][2 * half + 1]);
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
        unsigned b[EIGHTS][4], w[2][4];
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
        unsigned b[EIGHTS][4], w[2][4];
        mm_sum part[MM_N][4] = {};
        if (VECTOR == 32) load_x(a, t, column, b);
#pragma unroll
        for (int n = 0; n < EIGHTS && VECTOR == 16; n++) {
            const uint2 x = x_of<uint2>(a, t, n, column);
            b[n][0] = __byte_perm(x.x, x.y, 0x5410); // as unpack_4 pairs them
            b[n][1] = __byte_perm(x.x, x.y, 0x7632);
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
            for (int n = 0; n < EIGHTS; n++) mma_x(part[n % MM_N], fragment, b[n][0], b[n][1]);
        }
        add_scaled(sums, part, __shfl_sync(ALL, scales[0], from), __shfl_sync(ALL, scales[1], from));
    }
}

// Scale and minimum of part j of 8 of a Q4_K block, from its first 16 bytes; as q4_k_part.
static __device__ __forceinline__ void q4_k_scales(uint4 header, int j, float *scale, float *minimum)
{
    const unsigned low = header.y >> 8 * (j & 3), middle = header.z >> 8 * (j & 3), high = header.w >> 8 * (j & 3);
    const unsigned s = j < 4 ? low & 63 : (high & 15) | (low >> 6 & 3) << 4;
    const unsigned m = j < 4 ? middle & 63 : (high >> 4 & 15) | (middle >> 6 & 3) << 4;
    *scale = f32_of_f16((unsigned short)header.x) * (float)s;
    *minimum = f32_of_f16((unsigned short)(header.x >> 16)) * (float)m;
}

// Four columns of the lane's rows of x as the pairs (0, 2), (1, 3).
static __device__ __forceinline__ void load_x_4(const wt_mm_args &a, const wt_mm_tile &t, int k, unsigned (*b)[2])
{
#pragma unroll
    for (int n = 0; n < EIGHTS; n++) {
        const uint2 x = x_of<uint2>(a, t, n, k);
        b[n][0] = __byte_perm(x.x, x.y, 0x5410);
        b[n][1] = __byte_perm(x.x, x.y, 0x7632);
    }
}

// sums += scale (part of W times x) - minimum (sum of x) for 32 columns; two lanes' words have 16 each, of the low
// nibbles (`high` 0) or the high ones.
static __device__ __forceinline__ void q4_k_part_sums(const wt_mm_args &a, const wt_mm_tile &t,
                                                      const unsigned (*w)[2][4], int column, int high,
                                                      const float *scale, const float *minimum, mm_sum (*sums)[4])
{
    const unsigned ones[4] = {ONE_X2, ONE_X2, ONE_X2, ONE_X2};
    mm_sum part[MM_N][4] = {}, x_sums[MM_N][4] = {};
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const unsigned fragment[4] = {w[j][0][high], w[j][1][high], w[j][0][high + 2], w[j][1][high + 2]};
        unsigned b[EIGHTS][2];
        load_x_4(a, t, column + 16 * j + 32 * high, b);
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
            mma_x(part[n % MM_N], fragment, b[n][0], b[n][1]);
            mma_x(x_sums[n % MM_N], ones, b[n][0], b[n][1]);
        }
    }
#pragma unroll
    for (int n = 0; n < MM_N; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) sums[n][c] += scale[c / 2] * part[n][c] - minimum[c / 2] * x_sums[n][c];
}

// One step of Q4_K, half a block of 256 columns. Lane j's vector has columns 64 (j / 2) + 16 (j % 2) .. + 15 in its low
// nibbles and those 32 further on in the high ones; each lane reads the scales of one of the four parts of 32 columns.
static __device__ __forceinline__ void step_of_q4_k(const wt_mm_args &a, const wt_mm_tile &t, const uint4 *headers,
                                                    const uint4 *vectors, int k, mm_sum (*sums)[4])
{
    unsigned words[2][4] = {{vectors[0].x, vectors[0].y, vectors[0].z, vectors[0].w},
                            {vectors[1].x, vectors[1].y, vectors[1].z, vectors[1].w}};
    const int lane = threadIdx.x % 32, begin = k - lane % 4 * VECTOR;
    float scales[2], minima[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        transpose(words[h]);
        q4_k_scales(headers[h], begin % 256 / 32 + lane % 4, &scales[h], &minima[h]);
    }
#pragma unroll
    for (int q = 0; q < 2; q++) {
        unsigned w[2][2][4];
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) unpack_8(words[h][2 * q + j], placed_zero(0), w[j][h]);
#pragma unroll
        for (int high = 0; high < 2; high++) {
            float scale[2], minimum[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                scale[h] = __shfl_sync(ALL, scales[h], (lane & ~3) + 2 * q + high);
                minimum[h] = __shfl_sync(ALL, minima[h], (lane & ~3) + 2 * q + high);
            }
            q4_k_part_sums(a, t, w, begin + 64 * q + lane % 4 * 4, high, scale, minimum, sums);
        }
    }
}

// Byte of a row where the lane's 16 of columns `k` .. lie.
static __device__ __forceinline__ long long byte_of(int k)
{
    if (MM_W != WT_MM_Q4_K) return (long long)k * 16 / VECTOR;
    return k / 256 * 144ll + 16 + k % 256 / 2;
}

// ---- W to shared memory: each warp has MM_STAGES stages of its own, of MM_STEPS steps of 16 rows by 64 bytes. Copies
// read MM_STEPS * 64 bytes of a row side by side; lanes of a step find their 16 bytes at (row, lane % 4).

#define STAGE_BYTES (MM_PAIR * MM_STEPS * WT_MM_SKINNY_STEP)

// Some rows of W, of both matrices of a gated product, by some rows of x.
struct item {
    int part, first;
    wt_mm_tile tile;
};

// False when there is nothing to do. Items that follow each other share rows of W.
static __device__ __forceinline__ bool find_item(const wt_mm_args &a, int at, item *it)
{
    const int n_x = wt_mm_n_tiles(&a, WIDTH), tile = at / n_x;
    it->part = 0;
    for (int k = 1; k < a.n_parts && MM_PAIR == 1; k++)
        if (tile >= a.parts[k].first_tile) it->part = k;
    it->first = (tile - a.parts[it->part].first_tile) * 16;
    return wt_mm_find_tile(&a, at % n_x, WIDTH, &it->tile);
}

static __device__ __forceinline__ int n_items_of(const wt_mm_args &a)
{
    const wt_mm_part &last = a.parts[MM_PAIR == 2 ? 0 : a.n_parts - 1];
    return (last.first_tile + (last.rows + 15) / 16) * wt_mm_n_tiles(&a, WIDTH);
}

static __device__ __forceinline__ void load_stage(const wt_mm_args &a, const item &it, int begin, unsigned char *to)
{
#pragma unroll
    for (int m = 0; m < MM_PAIR; m++) {
        const wt_mm_part &p = a.parts[it.part + m];
        const unsigned char *w = p.w + it.tile.stack * p.w_next;
#pragma unroll
        for (int i = 0; i < 2 * MM_STEPS; i++) {
            const int at = threadIdx.x % 32 + 32 * i, row = at / (4 * MM_STEPS), piece = at % (4 * MM_STEPS);
            const int r = it.first + row < p.rows ? it.first + row : p.rows - 1, k = begin + piece * VECTOR;
            const bool valid = k < a.columns;
            copy_async_16(to + (m * MM_STEPS + piece / 4) * WT_MM_SKINNY_STEP + row * 64 + piece % 4 * 16,
                          w + r * a.row_bytes + (valid ? byte_of(k) : 0), valid);
        }
    }
}

// What a warp's copies have come to: chunk after chunk of one item after the other, as it multiplies them later.
struct copies {
    item it;
    int at, begin, slot; // of items; column; stage
    unsigned char *stages;
};

static __device__ __forceinline__ void next_item(const wt_mm_args &a, int n_items, copies *c)
{
    c->begin = threadIdx.x / 32 * CHUNK;
    if (c->begin >= a.columns) c->at = n_items; // the warp has no share
    while (c->at < n_items && !find_item(a, c->at, &c->it)) c->at += gridDim.x;
}

// The next chunk's copies, if there is one, and the end of a group of them.
static __device__ __forceinline__ void copy_next(const wt_mm_args &a, int n_items, copies *c)
{
    if (c->at < n_items) {
        load_stage(a, c->it, c->begin, c->stages + c->slot * STAGE_BYTES);
        c->slot = c->slot + 1 == MM_STAGES ? 0 : c->slot + 1;
        c->begin += blockDim.x / 32 * CHUNK;
        if (c->begin >= a.columns) {
            c->at += gridDim.x;
            next_item(a, n_items, c);
        }
    }
    copy_async_commit();
}

// One step of one matrix, whose rows lie at `from`.
static __device__ __forceinline__ void any_step(const wt_mm_args &a, const wt_mm_tile &t, const lane_rows &rows,
                                                const unsigned char *from, int k, mm_sum (*sums)[4])
{
    const int lane = threadIdx.x % 32;
    const uint4 *at = (const uint4 *)(from + lane / 4 * 64 + lane % 4 * 16);
    const uint4 vectors[2] = {at[0], at[32]};
    if (MM_W == WT_MM_Q4_K) {
        const int block = k < a.columns ? k / 256 : 0; // beyond: activations of 0
        const uint4 headers[2] = {load_w(rows.w[0] + block * 144ll), load_w(rows.w[1] + block * 144ll)};
        step_of_q4_k(a, t, headers, vectors, k, sums);
    } else if (MM_SCALES == 2)
        step_of_groups(a, t, rows, vectors, k, sums);
    else
        step(a, t, rows, vectors, k, sums);
}

// The warp's share of an item's sums: every blockDim.x / 32-th chunk of columns, from stage *slot on.
static __device__ __forceinline__ void multiply(const wt_mm_args &a, const item &it, int n_items, copies *c, int *slot,
                                                mm_sum (*sums)[MM_N][4])
{
    const int lane = threadIdx.x % 32, stride = blockDim.x / 32 * CHUNK;
    lane_rows rows[MM_PAIR];
#pragma unroll
    for (int m = 0; m < MM_PAIR; m++) rows[m] = rows_of(a, a.parts[it.part + m], it.tile.stack, it.first);
    for (int begin = threadIdx.x / 32 * CHUNK; begin < a.columns; begin += stride) {
        copy_async_wait<MM_STAGES - 2>();
        __syncwarp(); // all lanes' copies are there, and nobody reads the stage that is filled now
        copy_next(a, n_items, c);
        const unsigned char *from = c->stages + *slot * STAGE_BYTES;
#pragma unroll
        for (int s = 0; s < MM_STEPS; s++)
#pragma unroll
            for (int m = 0; m < MM_PAIR; m++)
                any_step(a, it.tile, rows[m], from + (m * MM_STEPS + s) * WT_MM_SKINNY_STEP,
                         begin + lane % 4 * VECTOR + s * SPAN, sums[m]);
        *slot = *slot + 1 == MM_STAGES ? 0 : *slot + 1;
    }
}

// What row i of x's sums are multiplied with, 1 over the root of the mean square of what it was made of, to shared memory:
// a warp a row.
static __device__ __forceinline__ void scale_rows(const wt_mm_args &a, float *scales)
{
    const int n = a.columns / WT_MM_SKINNY_SQUARES;
    for (int i = threadIdx.x / 32; i < a.m; i += blockDim.x / 32) {
        float sum = 0;
        for (int k = threadIdx.x % 32; k < n; k += 32) sum += a.x_squares[(long long)i * n + k];
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
        if (threadIdx.x % 32 == 0) scales[i] = 1 / sqrtf(sum / (float)a.columns + a.norm_eps);
    }
}

// As finish_normed, and the squares of the 16 neighbours that 16 lanes have.
static __device__ __forceinline__ void finish_squared(const wt_mm_args &a, int i, int r, float v)
{
    float square = finish_normed(a, i, r, v, before_norm(a, i, r));
#pragma unroll
    for (int step = 8; step; step /= 2) square += __shfl_xor_sync(0xffffu << (threadIdx.x & 16), square, step);
    const int n_squares = a.parts[0].rows / WT_MM_SKINNY_SQUARES;
    if (r % 16 == 0) a.squares[(long long)i * n_squares + r / WT_MM_SKINNY_SQUARES] = square;
}

typedef mm_sum shared_sums[MM_PAIR][WIDTH][WT_MM_SKINNY_PITCH]; // [row of x][row of W]

// An item's sums, of each warp in `shared`, added in order and finished.
static __device__ __forceinline__ void finish_item(const wt_mm_args &a, const item &it, const shared_sums *shared,
                                                   const float *x_norms)
{
    for (int at = threadIdx.x; at < 16 * it.tile.count; at += blockDim.x) {
        const int i = at / 16, r = it.first + at % 16;
        if (r >= a.parts[it.part].rows) continue;
        float v[2] = {0, 0};
#pragma unroll
        for (int m = 0; m < MM_PAIR; m++) {
            const wt_mm_part &p = a.parts[it.part + m];
            mm_sum sum = 0;
            for (int w = 0; w < blockDim.x / 32; w++) sum += shared[w][m][i][at % 16];
            for (int w = 0; MM_LOW == WT_MM_WITHIN && w < blockDim.x / 32; w++) sum += shared[w][m][i + 4][at % 16];
            if (MM_X == WT_MM_I8 && a.y_type == WT_MM_I32) {
                store_sum(p, it.tile, i, r, sum);
                continue;
            }
            float scale = MM_SCALES == 0   ? scale_at(a, p, it.tile.stack, r, 0)
                          : p.tensor_scale ? *p.tensor_scale
                                           : 1;
            if (MM_X_IS_8 && a.x_scales) scale *= a.x_scales[it.tile.first + i];
            if (MM_X == WT_MM_BF16 && a.x_squares) scale *= x_norms[i];
            v[m] = (float)sum * scale;
        }
        if (MM_X == WT_MM_BF16 && MM_PAIR == 1 && a.norm_weight)
            finish_squared(a, i, r, v[0]);
        else if (MM_X != WT_MM_I8 || a.y_type != WT_MM_I32)
            finish(a, it.part, it.tile, i, r, v[0], v[1]);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WT_MM_SKINNY_WARPS)
    matmul_skinny(const __grid_constant__ wt_mm_args a)
{
    extern __shared__ uint4 skinny_shared[];
    __shared__ float x_norms[16];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32, n_items = n_items_of(a);
    shared_sums *shared = (shared_sums *)skinny_shared; // of each warp, of two items in turn
    let_next_begin();
    if (a.experts || a.offsets) wait_for_earlier(); // which tell where the block's W is
    copies c;
    c.at = blockIdx.x;
    c.slot = 0;
    c.stages = (unsigned char *)(shared + 2 * n_warps) + warp * MM_STAGES * STAGE_BYTES;
    next_item(a, n_items, &c);
#pragma unroll
    for (int n = 0; n < MM_STAGES - 1; n++) copy_next(a, n_items, &c);
    wait_for_earlier(); // nothing but W is read before
    if (MM_X == WT_MM_BF16 && a.x_squares) scale_rows(a, x_norms); // there after the block's next barrier
    int slot = 0, turn = 0;
    for (int at = blockIdx.x; at < n_items; at += gridDim.x) {
        item it;
        if (!find_item(a, at, &it)) continue; // the whole block
        mm_sum sums[MM_PAIR][MM_N][4] = {};
        multiply(a, it, n_items, &c, &slot, sums);
        shared_sums *of_item = shared + turn * n_warps;
#pragma unroll
        for (int m = 0; m < MM_PAIR; m++)
#pragma unroll
            for (int n = 0; n < MM_N; n++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    of_item[warp][m][8 * n + lane % 4 * 2 + k % 2][lane / 4 + k / 2 * 8] = sums[m][n][k];
        __syncthreads(); // and whoever comes back to these sums is past them: the other item's come between
        finish_item(a, it, of_item, x_norms);
        turn ^= 1;
    }
    copy_async_wait<0>();
}
