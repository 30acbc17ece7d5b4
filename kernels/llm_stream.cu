// Products of one vector with BF16 matrices, at the speed at which the weights are read, on tensor cores: 8 rows of W
// at a time by the vector as three BF16 parts, which together have its 24 bits; products are exact and sums float. A norm
// before and what comes after are in the same launch, as in llm_matvec.cu, which has what this does not take.
//
// A warp has columns of its own, 128 at a time, and their part of the vector. Tiles of 8 rows are dealt to the blocks in
// turn; of each a warp copies its columns to stages in shared memory, all but one of them under way at any time, also
// across tiles. A block takes a part of a processor, so that those of the next
// launches come while it runs and fill theirs before they wait (overlap.cuh): that keeps the memory busy while a launch
// ends and the next one fetches its vector.
//
// The tensor cores' 16 rows are 8 of W, with columns 0 .. 31 of 64 as the first half and 32 .. 63 as the second (odd rows
// the other way round, so that no two lanes of a read meet a bank), and of their 8 columns three are the parts of the
// vector's first 32 and three those of its others; what does not belong together is not looked at.
//
// A row's sum depends on its columns and warps alone, not on the grid. Judge: the CPU's steps (models/llm/ops_cpu.c).
#ifndef WEIGHT
#    define WEIGHT 2 // BF16
#    define GROUP  0
#    define SCALE  0
#endif
#ifndef STAGES
#    define STAGES 4
#endif
#include "llm_types.cuh"

#include "matmul_kernel.h"
#include "mma.cuh"
#include "overlap.cuh"

#define IS_NIBBLES (WEIGHT == WT_MM_U4)
#define IS_WHOLE   (WEIGHT == WT_MM_I8 || IS_NIBBLES) // numbers, whose products are added as such
#define BITS       (IS_NIBBLES ? 4 : WEIGHT == WT_MM_I8 || WEIGHT == WT_MM_E4M3 ? 8 : 16)
#define COLUMNS    (2048 / BITS)         // of a stage: 256 bytes of a row
#define X_BYTES    (IS_WHOLE ? 1 : 2)    // of an element of a part of the vector
#define X_READS    (X_BYTES * 8 / BITS)  // of 16 bytes by a lane beside 16 bytes of weights
#define TILE       WT_LLM_STREAM_TILE
#define AT_ONCE    8                     // tiles whose sums are finished together
#ifndef WARPS
#    define WARPS 8
#endif
#define OF_SCALE   (GROUP ? GROUP : COLUMNS)
#define WORDS      (GROUP ? COLUMNS / OF_SCALE : 0) // of scales in a row of a stage
#define WORDS_OR_1 (WORDS ? WORDS : 1)
#define STAGE      (128 + 2 * WORDS)     // times 16 bytes: TILE rows of COLUMNS, and their scales

static constexpr int KEPT = 2; // times 256 columns of a warp whose weights of the norm wait in registers

// ---- the vector

struct eight {
    float at[8];
};

static __device__ __forceinline__ eight load_eight(const float *from, bool wanted)
{
    const float4 zero = {0, 0, 0, 0}, a = wanted ? ((const float4 *)from)[0] : zero;
    const float4 b = wanted ? ((const float4 *)from)[1] : zero;
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// Which of eight columns stands at place e of them: as the weights' bytes, or nibbles, are parted below.
static __device__ __forceinline__ constexpr int column_of(int e)
{
    return IS_NIBBLES ? e % 4 * 2 + e / 4 : WEIGHT == WT_MM_E4M3 ? e / 4 * 4 + e % 2 * 2 + e % 4 / 2 : e;
}

static __device__ __forceinline__ unsigned pair_of(float a, float b)
{
    unsigned both;
    if (WEIGHT == WT_MM_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}

static __device__ __forceinline__ float part_of_pair(unsigned pair, int k)
{
    if (WEIGHT == WT_MM_BF16) return __uint_as_float(k ? pair & 0xffff0000u : pair << 16);
    return f32_of_f16((unsigned short)(k ? pair >> 16 : pair));
}

// Three parts of eight elements, `pitch` bytes apart. Returns the sum of what they hold.
static __device__ __forceinline__ float store_parts(const eight &x, unsigned char *to, int pitch)
{
    if (IS_WHOLE) { // of 24 bits, from the lowest part on
        int q[8], sum = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) sum += q[k] = __float2int_rn(x.at[column_of(k)]);
#pragma unroll
        for (int part = 2; part >= 0; part--) {
            unsigned w[2] = {0, 0};
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const int low = (signed char)q[k];
                w[k / 4] |= (unsigned)(low & 255) << k % 4 * 8;
                q[k] = (q[k] - low) >> 8;
            }
            *(uint2 *)(to + part * pitch) = {w[0], w[1]};
        }
        return (float)sum;
    }
    float left[8];
#pragma unroll
    for (int k = 0; k < 8; k++) left[k] = x.at[column_of(k)];
#pragma unroll
    for (int part = 0; part < 3; part++) {
        unsigned w[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            w[k] = pair_of(left[2 * k], left[2 * k + 1]);
            left[2 * k] -= part_of_pair(w[k], 0);
            left[2 * k + 1] -= part_of_pair(w[k], 1);
        }
        *(uint4 *)(to + part * pitch) = {w[0], w[1], w[2], w[3]};
    }
    return 0;
}

// ---- the weights

struct tile_place {
    int part, row; // row -1: there is no such tile
};

// Of the block.
static __device__ __forceinline__ int count_tiles(const wt_llm_matvec_args &a)
{
    int n = 0;
    for (int part = 0; part < (a.gated ? 1 : a.n_parts); part++) n += (a.parts[part].rows + TILE - 1) / TILE;
    n = (int)blockIdx.x < n ? (n - 1 - (int)blockIdx.x) / (int)gridDim.x + 1 : 0;
    return a.gated ? 2 * n : n;
}

static __device__ __forceinline__ tile_place place_tile(const wt_llm_matvec_args &a, int tile)
{
    int at = (int)blockIdx.x + (a.gated ? tile / 2 : tile) * (int)gridDim.x;
    if (a.gated) return {tile % 2, at * TILE < a.parts[0].rows ? at * TILE : -1};
    for (int part = 0; part < a.n_parts; part++) {
        const int n = (a.parts[part].rows + TILE - 1) / TILE;
        if (at < n) return {part, at * TILE};
        at -= n;
    }
    return {0, -1};
}

static __device__ __forceinline__ const wt_llm_part &part_at(const wt_llm_matvec_args &a, int part)
{
    return part == 0 ? a.parts[0] : part == 1 ? a.parts[1] : a.parts[2];
}

// What a warp has of the columns in a pass.
struct share {
    int first, n;
};

static __device__ __forceinline__ share share_of(const wt_llm_quant_args &a, int pass)
{
    const int first = (pass * WARPS + (int)threadIdx.x / 32) * a.each;
    return {first, min(a.each, max(0, a.m.columns - first))};
}

// Where a warp's copies are: a turn's tiles begin .. end - 1 pass by pass, then the next turn's.
struct cursor {
    const unsigned char *from, *scales; // of the lane: its row of the tile's first two; its scale
    int begin, end, tile, pass, column, left; // left: rows of the tile from that one on
    share own;
};

static __device__ __forceinline__ void aim(const wt_llm_quant_args &a, cursor &c)
{
    const tile_place p = place_tile(a.m, c.tile);
    const int lane = threadIdx.x % 32, row = p.row + lane / 16;
    const wt_llm_part &part = part_at(a.m, p.part);
    c.left = part.rows - row;
    c.from = (const unsigned char *)part.weight + row * a.row_bytes + c.own.first * BITS / 8 + lane % 16 * 16;
    if (!WORDS) return;
    const int of = min(p.row + lane / WORDS_OR_1 % TILE, part.rows - 1) / a.scale_rows;
    c.scales = (const unsigned char *)part.scales +
               4 * ((long long)of * a.scale_words + c.own.first / OF_SCALE + lane % WORDS_OR_1);
}

static __device__ __forceinline__ void move_on(const wt_llm_quant_args &a, int n_tiles, cursor &c)
{
    c.column = 0;
    if (++c.tile == c.end) {
        do {
            if (++c.pass == a.n_passes) {
                c.pass = 0;
                c.begin += AT_ONCE;
                c.end = min(c.begin + AT_ONCE, n_tiles);
            }
            c.own = share_of(a, c.pass);
        } while (!c.own.n && c.begin < n_tiles);
        c.tile = c.begin;
    }
    if (c.tile < n_tiles) aim(a, c);
}

// The next stage: two rows at a time.
static __device__ __forceinline__ void fetch(const wt_llm_quant_args &a, int n_tiles, cursor &c, uint4 *to)
{
    const int lane = threadIdx.x % 32, two_rows = 2 * (int)a.row_bytes;
    if (c.tile < n_tiles && c.own.n) {
        const bool is_there = c.column + lane % 16 * (128 / BITS) < c.own.n;
#pragma unroll
        for (int i = 0; i < TILE / 2; i++) {
            const bool valid = is_there && 2 * i < c.left;
            copy_async_16(to + i * 32 + lane, valid ? c.from + i * two_rows : (const unsigned char *)a.m.parts[0].weight,
                          valid);
        }
        if (WORDS && lane < TILE * WORDS) {
            const bool valid = c.column + lane % WORDS_OR_1 * OF_SCALE < c.own.n;
            copy_async_4((unsigned *)(to + 128) + lane, valid ? c.scales : (const unsigned char *)a.m.parts[0].scales, valid);
        }
        c.from += 256;
        c.scales += 4 * WORDS;
        c.column += COLUMNS;
        if (c.column >= c.own.n) move_on(a, n_tiles, c);
    }
    copy_async_commit();
}

// ---- finished rows

struct ending {
    float *out; // NULL = none
    float bias, gate_bias, scale, gate_scale, before;
};

static __device__ __forceinline__ float scale_of(const wt_llm_quant_args &a, const wt_llm_part &p, int row)
{
    return WEIGHT != WT_MM_BF16 && WEIGHT != WT_MM_F16 && !GROUP && p.scales ? ((const float *)p.scales)[row / a.scale_rows] : 1;
}

// The row that this thread finishes of the tiles from `tile` on.
static __device__ __forceinline__ ending ending_of(const wt_llm_quant_args &a, int tile)
{
    const int in_group = threadIdx.x / TILE, slot = threadIdx.x % TILE;
    const bool gated = a.m.gated;
    if (in_group >= (gated ? AT_ONCE / 2 : AT_ONCE)) return {NULL};
    const tile_place p = place_tile(a.m, tile + (gated ? 2 : 1) * in_group);
    const wt_llm_part &part = part_at(a.m, p.part), &gate = a.m.parts[1];
    const int row = p.row + slot;
    if (p.row < 0 || row >= part.rows) return {NULL};
    return {part.out + row,
            part.bias ? part.bias[row] : 0,
            gated && gate.bias ? gate.bias[row] : 0,
            scale_of(a, part, row),
            gated ? scale_of(a, gate, row) : 1,
            a.m.add ? part.out[row] : 0};
}

static __device__ __forceinline__ float sum_of(const float *sums)
{
    float sum = 0;
    for (int k = 0; k < WARPS; k++) sum += sums[k];
    return sum;
}

static __device__ __forceinline__ void finish(const wt_llm_matvec_args &a, const ending &e,
                                              const float (*sums)[WARPS], const float *squares)
{
    const int in_group = threadIdx.x / TILE, slot = threadIdx.x % TILE;
    if (!e.out) return;
    const float scale = a.norm_weight ? 1 / sqrtf(sum_of(squares) / (float)a.columns + a.eps) : 1;
    float y = sum_of(sums[(a.gated ? 2 : 1) * in_group * TILE + slot]) * (scale * e.scale) + e.bias;
    if (a.gated)
        y *= activate(a.activation, sum_of(sums[(2 * in_group + 1) * TILE + slot]) * (scale * e.gate_scale) + e.gate_bias);
    else
        y = activate(a.activation, y);
    *e.out = e.before + y;
}

// ---- all of it

// 256 columns of the warp's part of the vector from `from` on, times the norm's weights.
static __device__ __forceinline__ eight load_vector(const wt_llm_matvec_args &a, const share &own, int from,
                                                    const eight *weights, float *squares)
{
    const int column = from + threadIdx.x % 32 * 8;
    eight x = load_eight(a.x + own.first + column, column < own.n), w;
    if (a.norm_weight) w = weights ? *weights : load_eight(a.norm_weight + own.first + column, column < own.n);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        *squares += x.at[i] * x.at[i];
        if (a.norm_weight) x.at[i] *= w.at[i];
    }
    return x;
}

// A power of two by which the largest of the warp's elements becomes 2^21 and more (whole numbers) or 0.5 and more; not a
// number where one is none.
static __device__ __forceinline__ float power_for(const wt_llm_matvec_args &a, const share &own)
{
    unsigned most = 0;
    float squares = 0;
    if (WEIGHT == WT_MM_BF16) return 1;
    for (int from = 0; from < own.n; from += 256) {
        const eight x = load_vector(a, own, from, NULL, &squares);
#pragma unroll
        for (int i = 0; i < 8; i++) most = max(most, __float_as_uint(x.at[i]) & 0x7fffffffu);
    }
    most = __reduce_max_sync(ALL, most);
    if (most >= 0x7f800000u) return __uint_as_float(0x7fffffffu);
    return __uint_as_float((unsigned)min(max((IS_WHOLE ? 21 : -1) - (int)(most >> 23) + 254, 1), 254) << 23);
}

// Where a warp's part of the vector lies.
struct vector {
    unsigned char *parts; // `pitch` bytes apart
    float *group_sums;
    float power, squares; // by which it is multiplied; the lane's sum
    int pitch;
};

// 256 columns of it.
static __device__ __forceinline__ void take_some(const wt_llm_matvec_args &a, const share &own, int from,
                                                 const eight *weights, vector &v)
{
    const int lane = threadIdx.x % 32, column = from + lane * 8;
    eight x = load_vector(a, own, from, weights, &v.squares);
    if (WEIGHT != WT_MM_BF16)
#pragma unroll
        for (int i = 0; i < 8; i++) x.at[i] *= v.power;
    float sum = 0;
    if (column < (own.n + COLUMNS - 1) / COLUMNS * COLUMNS) sum = store_parts(x, v.parts + column * X_BYTES, v.pitch);
    if (!IS_NIBBLES) return;
    for (int step = OF_SCALE / 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    if (lane % (OF_SCALE / 8) == 0) v.group_sums[column / OF_SCALE] = sum;
}

// KEPT_ONES: `weights` are there.
template <bool KEPT_ONES>
static __device__ __forceinline__ void take_vector(const wt_llm_matvec_args &a, const share &own, const eight *weights,
                                                   vector &v)
{
    const int n = (own.n + COLUMNS - 1) / COLUMNS * COLUMNS;
    v.power = power_for(a, own);
    __syncwarp(); // what was there is used
    if (KEPT_ONES)
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (k * 256 < n) take_some(a, own, k * 256, weights + k, v);
    for (int from = KEPT_ONES ? KEPT * 256 : 0; from < n; from += 256) take_some(a, own, from, NULL, v);
    __syncwarp();
}

typedef struct products {
    float f[2][4];
    int i[2][4];
} products;

static __device__ __forceinline__ unsigned word_of(const uint4 &v, int k) { return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w; }

// Two words of tensor cores' operands of a word of nibbles or of fp8: places column_of(0 .. 3) and column_of(4 .. 7) of
// eight columns; columns 0, 2 and 1, 3 of four as F16 times 2^-8.
static __device__ __forceinline__ void part_word(unsigned w, unsigned *to)
{
    if (IS_NIBBLES) {
        to[0] = w & 0x0f0f0f0fu;
        to[1] = w >> 4 & 0x0f0f0f0fu;
    } else {
        to[0] = (w << 7 & 0x3f803f80u) | (w << 8 & 0x80008000u);
        to[1] = (w >> 1 & 0x3f803f80u) | (w & 0x80008000u);
    }
}

// 128 bytes of each row of a tile: sums += W x.
static __device__ __forceinline__ void multiply(const uint4 *rows, const unsigned char *x, bool is_part, products &sums)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint4 v = rows[g * 16 + g % 2 * 4 + t], w = rows[g * 16 + (1 - g % 2) * 4 + t];
    unsigned b[2][4] = {};
#pragma unroll
    for (int k = 0; k < X_READS; k++) load_shared_16(b[k], x + 16 * k, is_part);
    if (X_READS == 1) {
        const unsigned first[4] = {v.x, w.x, v.y, w.y}, second[4] = {v.z, w.z, v.w, w.w};
        if (WEIGHT == WT_MM_I8) {
            mma_i8(sums.i[0], first, b[0][0], b[0][1]);
            mma_i8(sums.i[1], second, b[0][2], b[0][3]);
        } else if (WEIGHT == WT_MM_F16) {
            mma_f16(sums.f[0], first, b[0][0], b[0][1]);
            mma_f16(sums.f[1], second, b[0][2], b[0][3]);
        } else {
            mma_bf16(sums.f[0], first, b[0][0], b[0][1]);
            mma_bf16(sums.f[1], second, b[0][2], b[0][3]);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned p[2], q[2];
        part_word(word_of(v, k), p);
        part_word(word_of(w, k), q);
        const unsigned both[4] = {p[0], q[0], p[1], q[1]};
        if (IS_WHOLE)
            mma_i8(sums.i[k % 2], both, b[k / 2][k % 2 * 2], b[k / 2][k % 2 * 2 + 1]);
        else
            mma_f16(sums.f[k % 2], both, b[k / 2][k % 2 * 2], b[k / 2][k % 2 * 2 + 1]);
    }
}

// The lane's share of row g: what belongs together of the products, under the scales of both halves.
static __device__ __forceinline__ float gather(const products &sums, float first_scale, float second_scale)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float c[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        c[k] = IS_WHOLE ? (float)(sums.i[0][k] + sums.i[1][k]) : sums.f[0][k] + sums.f[1][k];
    // columns 2 t and 2 t + 1 of the first half's rows, and of the second's: parts 0, 1, 2 and 0, 1, 2
    const float first = g % 2 ? c[2] : c[0], second = g % 2 ? c[3] : c[1];
    const float third = g % 2 ? c[0] : c[2], fourth = g % 2 ? c[1] : c[3];
    const float p0 = IS_WHOLE ? 65536 : 1, p1 = IS_WHOLE ? 256 : 1;
    if (t == 0) return first_scale * (first * p0 + second * p1);
    if (t == 1) return first_scale * first + second_scale * (fourth * p0);
    return t == 2 ? second_scale * (third * p1 + fourth) : 0;
}

// A stage: the lane's share of row g.
static __device__ __forceinline__ void take_stage(const uint4 *stage, const unsigned char *x, const float *group_sums,
                                                  bool is_part, products &sums, float *total)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const unsigned *scales = (const unsigned *)(stage + 128) + g * WORDS;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (GROUP) sums = {};
        multiply(stage + 8 * k, x + k * (COLUMNS / 2) * X_BYTES, is_part, sums);
        if (!GROUP) continue;
        if (IS_NIBBLES) { // a group each half
            const unsigned first = scales[2 * k], second = scales[2 * k + 1];
            const float a = f32_of_f16((unsigned short)first), b = f32_of_f16((unsigned short)second);
            *total += gather(sums, a, b);
            if (t == 3)
                *total -= a * (float)(first >> 16) * group_sums[2 * k] + b * (float)(second >> 16) * group_sums[2 * k + 1];
        } else {
            const float scale = __uint_as_float(scales[k]);
            *total += gather(sums, scale, scale);
        }
    }
}


extern "C" __global__ void __launch_bounds__(32 * WARPS, 16 / WARPS) llm_stream(const __grid_constant__ wt_llm_quant_args a)
{
    extern __shared__ uint4 shared[];
    __shared__ float sums_of[2][AT_ONCE * TILE][WARPS], squares[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, n_tiles = count_tiles(a.m);
    uint4 *stages = shared + warp * (STAGES * STAGE);
    unsigned char *all_parts = (unsigned char *)(shared + WARPS * (STAGES * STAGE));
    vector v;
    v.pitch = WARPS * a.each * X_BYTES + 64;
    v.parts = all_parts + warp * a.each * X_BYTES;
    v.group_sums = (float *)(all_parts + 3 * v.pitch) + warp * a.each / OF_SCALE;
    let_next_begin();
    cursor c = {NULL, NULL, 0, min(AT_ONCE, n_tiles), 0, 0, 0, 0, share_of(a, 0)};
    if (n_tiles) aim(a, c);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) fetch(a, n_tiles, c, stages + s * STAGE);
    eight weights[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; k++)
        weights[k] = load_eight(a.m.norm_weight + warp * a.each + k * 256 + lane * 8,
                                a.m.norm_weight && k * 256 + lane * 8 < share_of(a, 0).n);
    wait_for_earlier();

    v.squares = 0;
    take_vector<true>(a.m, share_of(a, 0), weights, v);
    const unsigned char *x = v.parts + g % 3 * v.pitch + (g / 3 * 4 + lane % 4) * (16 * X_READS); // of the first half stage
    int slot = 0, next = STAGES - 1;
    for (int begin = 0; begin < n_tiles; begin += AT_ONCE) {
        float(*all_sums)[WARPS] = sums_of[begin / AT_ONCE % 2];
        const ending e = ending_of(a, begin);
        for (int pass = 0; pass < a.n_passes; pass++) {
            const share own = share_of(a, pass);
            if (begin + pass && a.n_passes > 1) take_vector<false>(a.m, own, NULL, v);
            const float unpower = (WEIGHT == WT_MM_E4M3 ? 256 : 1) / v.power;
            for (int tile = begin; tile < min(begin + AT_ONCE, n_tiles); tile++) {
                products sums = {};
                float total = 0;
                for (int column = 0; column < own.n; column += COLUMNS) {
                    copy_async_wait<STAGES - 2>();
                    __syncwarp();
                    fetch(a, n_tiles, c, stages + next * STAGE);
                    take_stage(stages + slot * STAGE, x + column * X_BYTES, v.group_sums + column / OF_SCALE, g < 6, sums,
                               &total);
                    slot = slot + 1 == STAGES ? 0 : slot + 1;
                    next = next + 1 == STAGES ? 0 : next + 1;
                }
                if (!GROUP) total = gather(sums, 1, 1);
                total += __shfl_xor_sync(ALL, total, 1);
                total += __shfl_xor_sync(ALL, total, 2);
                float *to = &all_sums[tile % AT_ONCE * TILE + g][warp];
                if (lane % 4 == 0) *to = pass ? *to + total * unpower : total * unpower;
            }
        }
        if (a.m.norm_weight && !begin) {
            v.squares = warp_sum(v.squares);
            if (!lane) squares[warp] = v.squares;
        }
        __syncthreads(); // those of the turn before the last are used
        finish(a.m, e, all_sums, squares);
    }
}
