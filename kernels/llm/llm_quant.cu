// Products of quantised weights with one vector, at the speed at which the weights are read, on tensor cores: 16 rows
// of W by 8 columns, some of which hold parts of the vector. A norm before and what comes after are in the same launch,
// as in llm_matvec.cu.
//
// Weights that are whole numbers meet whole numbers: a group of the vector in units that leave its largest number 22
// bits, in three digits of 8 bits, so that nibbles need a mask and int8 nothing; sums of a group are exact. Fp8 (and
// int8 of groups of 16) becomes bf16 and meets the vector as two bf16 each, 16 bits; products are exact and sums float. Of a
// read of two groups (of four) with a scale each, the vector of group j stands in the columns of group j alone, so that
// after the products of all of them a lane has the sums of one group, and one scale to apply.
//
// A block takes 16 rows at a time (8 of gate and 8 of up for a gated product), rows a grid apart. One of its warps has
// boxes of them copied to shared memory, stage by stage, a piece of 128 bytes of each row for each of the warps that
// multiply: the first stages are on their way before the vector is there. Another adds the warps' sums in order and
// finishes the rows.
//
// WEIGHT: I8, E4M3, U4, Q4_K. GROUP: columns a scale, 0 = constant along the row. SCALE: F32; F16; U4 with a zero
// beside an F16: a word of both (WT_LLM_SCALE_ZERO). Q4_K has its own. Judge: the CPU's steps (models/llm/ops_cpu.c).
#ifndef WEIGHT
#    define WEIGHT 7
#    define GROUP  128
#    define SCALE  WT_LLM_SCALE_ZERO
#endif
#include "llm_types.cuh"

#if WEIGHT == 11
#    define LANE 8
#elif GROUP == 0
#    define LANE 16
#elif WEIGHT == 7
#    define LANE (GROUP / 8 < 16 ? GROUP / 8 : 16)
#else
#    define LANE (GROUP / 4 < 16 ? GROUP / 4 : 16)
#endif
#include "llm_weights.cuh"
#include "overlap.cuh"
#include "barrier.cuh"

#define IS_Q4_K        (WEIGHT == WT_MM_Q4_K)
#define COLUMNS        (IS_NIBBLES ? 256 : 128) // of a piece
#define PIECE          (IS_Q4_K ? 144 : 128)    // bytes of a row in it
#define N_GROUPS       (IS_Q4_K ? 8 : GROUP ? COLUMNS / GROUP : 1)
#define DIGITS         (WEIGHT != WT_MM_E4M3 && !(WEIGHT == WT_MM_I8 && LANE == 4)) // x as whole numbers
#define MOST           (DIGITS ? 2 : 4)
#define AT_ONCE        (N_GROUPS < MOST ? N_GROUPS : MOST)
#define GROUP_OF(t)    ((t) / (4 / MOST))               // of a read, whose sums lane t has
#define UNITS          (COLUMNS / N_GROUPS / (4 * PER)) // reads of a row's four lanes in a group
#define N_SUB          (PER < 8 ? 1 : PER / 8)          // eights of columns in a lane's read
#define SCALED         (GROUP && !IS_Q4_K)
#define X_READS        (AT_ONCE * (DIGITS ? (UNITS * PER + 15) / 16 : UNITS * N_SUB)) // registers for x, times four
#define EIGHTS_A_GROUP (COLUMNS / N_GROUPS / 8) // of columns that share what is known of them
#define RING           WT_LLM_QUANT_RING

// ---- what a block has in shared memory: see wt_llm_quant_shared

#define HALF (8 * PIECE) // bytes of 8 rows of a piece

struct memory {
    unsigned char *stages; // [n_stages][2][warps][8][PIECE], rows 0 .. 7 and 8 .. 15 of a tile
    unsigned short *x;     // [2][pitch]
    float2 *of_x;          // [groups]: of whole numbers the unit of x; the sum
    float *partial;        // [RING][warps][16]
    unsigned long long *full, *empty, *summed, *finished; // [n_stages] twice, [RING] twice
    int pitch, padded, n_stages, half_bytes;
};

static __device__ __forceinline__ memory memory_of(const wt_llm_quant_args &a, unsigned char *at, int warps)
{
    memory m;
    m.n_stages = a.n_stages;
    m.half_bytes = warps * HALF;
    m.stages = at + (1024 - shared_of(at) % 1024) % 1024;
    m.padded = (a.m.columns + COLUMNS - 1) / COLUMNS * COLUMNS;
    m.pitch = DIGITS ? m.padded + 16 : m.padded + 32; // of digits in bytes
    m.x = (unsigned short *)(m.stages + 2 * m.n_stages * m.half_bytes);
    m.of_x = (float2 *)(m.x + 2 * m.pitch);
    m.partial = (float *)(m.of_x + m.padded / 32);
    m.full = (unsigned long long *)(m.partial + RING * 16 * warps);
    m.empty = m.full + m.n_stages;
    m.summed = m.empty + m.n_stages;
    m.finished = m.summed + RING;
    return m;
}

// ---- the vector

// Where eight columns from k on stand among the 16-bit words of x: lanes of a row read 16 bytes each side by side (8
// where PER is 4).
static __device__ __forceinline__ int place_of(int k)
{
    const int q = k / (4 * PER), t = k / PER % 4;
    return PER < 8 ? (q * 4 + t) * 4 : ((q * N_SUB + k % PER / 8) * 4 + t) * 8;
}

struct eight {
    float at[8];
};

// Columns 8 i .. 8 i + 7; beyond the columns zeros.
static __device__ __forceinline__ eight load_eight(const float *x, int i, int columns)
{
    const float4 *from = (const float4 *)x + 2 * i;
    const float4 zero = {0, 0, 0, 0}, a = 8 * i < columns ? from[0] : zero, b = 8 * i < columns ? from[1] : zero;
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// The bits of the largest magnitude of the group of the lane's eight columns: neither infinities nor what is no number
// get lost.
static __device__ __forceinline__ unsigned largest_of(const eight &v)
{
    unsigned most = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) most = max(most, __float_as_uint(v.at[k]) & 0x7fffffffu);
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) most = max(most, __shfl_xor_sync(ALL, most, step));
    return most;
}

// ---- x as two bf16, 16 bits

// Eight columns to both halves of x.
static __device__ __forceinline__ void store_halves(const memory &m, int i, const eight &v)
{
    unsigned high[4], low[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float a = v.at[column_of(2 * k)], b = v.at[column_of(2 * k + 1)];
        high[k] = bf16_pair_of(a, b);
        low[k] = bf16_pair_of(a - __uint_as_float(high[k] << 16), b - __uint_as_float(high[k] & 0xffff0000u));
    }
    unsigned short *to = m.x + place_of(8 * i);
    *(uint4 *)to = {high[0], high[1], high[2], high[3]};
    *(uint4 *)(to + m.pitch) = {low[0], low[1], low[2], low[3]};
}

// ---- x as whole numbers of 22 bits and a sign, the unit a power of two, in three digits of 8 bits with a sign

#define OFFSET 0x808080 // what digits without a sign have more

// Four numbers' digits: word k has digit k of each. *sum += the numbers and their offsets.
static __device__ __forceinline__ void digits_of(const eight &x, int first, float inverse, unsigned *words, int *sum)
{
    unsigned u[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u[k] = __float_as_uint(fmaf(x.at[column_of(first + k)], inverse, 12582912.0f)) + (OFFSET - 0x4b400000u);
        *sum += (int)u[k];
    }
    const unsigned a = __byte_perm(u[0], u[1], 0x5140), b = __byte_perm(u[2], u[3], 0x5140);
    words[0] = __byte_perm(__byte_perm(u[0], u[1], 0x0062), __byte_perm(u[2], u[3], 0x0062), 0x5410);
    words[1] = __byte_perm(a, b, 0x7632);
    words[2] = __byte_perm(a, b, 0x5410);
#pragma unroll
    for (int k = 0; k < 3; k++) words[k] ^= 0x80808080u;
}

// Eight columns to the digits of x, with what is known of their group. All lanes.
static __device__ __forceinline__ void store_digits(const memory &m, int i, const eight &v)
{
    const unsigned exponent = largest_of(v) >> 23;
    const bool is_there = exponent > 21; // else x is too small for a unit
    const float inverse = is_there ? __uint_as_float((275 - exponent) << 23) : 0;
    unsigned words[2][3];
    int sum = -8 * OFFSET;
#pragma unroll
    for (int h = 0; h < 2; h++) digits_of(v, 4 * h, inverse, words[h], &sum);
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
    if (8 * i >= m.padded) return;
    const unsigned no_number = 0x7fffffff; // where x has none or an infinity
    const float unit = __uint_as_float(exponent == 255 ? no_number : is_there ? (exponent - 21) << 23 : 0);
#pragma unroll
    for (int d = 0; d < 3; d++) *(uint2 *)((unsigned char *)m.x + d * m.pitch + 8 * i) = {words[0][d], words[1][d]};
    if (i % EIGHTS_A_GROUP == 0) m.of_x[i / EIGHTS_A_GROUP] = {unit, unit * (float)sum};
}

// Mean of x and the scale of a LayerNorm.
static __device__ void measure(const wt_llm_matvec_args &a, float *scratch, float *mean, float *scale)
{
    float sum = 0, squares = 0;
    for (int k = threadIdx.x; k < a.columns; k += blockDim.x) sum += a.x[k];
    *mean = block_sum(sum, scratch) / (float)a.columns;
    for (int k = threadIdx.x; k < a.columns; k += blockDim.x) squares += (a.x[k] - *mean) * (a.x[k] - *mean);
    *scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps);
}

// x, or its norm, and what is known of its groups; of each warp the squares of what it had, to `squares_of`. All
// threads of the block, of which each has EIGHTS on their way together; warps beyond the columns do nothing.
template <bool IS_WEIGHED, int EIGHTS>
static __device__ __forceinline__ void stage_x(const wt_llm_matvec_args &a, const memory &m, float *squares_of)
{
    __shared__ float scratch[32];
    const bool centred = IS_WEIGHED && a.norm_bias;
    const int lane = threadIdx.x % 32, n = m.padded / 8;
    float mean = 0, scale = 1, squares = 0;
    if (centred) measure(a, scratch, &mean, &scale);
    for (int first = threadIdx.x - lane; first < n; first += EIGHTS * blockDim.x) { // of the warp
        eight x[EIGHTS], w[EIGHTS];
#pragma unroll
        for (int u = 0; u < EIGHTS; u++) {
            const int i = first + u * blockDim.x + lane;
            x[u] = load_eight(a.x, i, a.columns);
            if (IS_WEIGHED) w[u] = load_eight(a.norm_weight, i, a.columns);
        }
#pragma unroll
        for (int u = 0; u < EIGHTS; u++) {
            const int i = first + u * blockDim.x + lane;
            if (i - lane >= n) continue;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                squares += x[u].at[k] * x[u].at[k];
                if (IS_WEIGHED) x[u].at[k] = (x[u].at[k] - mean) * scale * w[u].at[k];
                if (centred && 8 * i < a.columns) x[u].at[k] += a.norm_bias[8 * i + k];
            }
            if (DIGITS)
                store_digits(m, i, x[u]);
            else if (i < n)
                store_halves(m, i, x[u]);
        }
    }
    squares = warp_sum(squares);
    if (lane == 0) squares_of[threadIdx.x / 32] = squares;
}

// What sums are multiplied with: an RMSNorm's scale.
static __device__ __forceinline__ float scale_of(const wt_llm_matvec_args &a, const float *squares_of)
{
    float sum = 0;
    if (!a.norm_weight || a.norm_bias) return 1;
    for (int w = 0; w < blockDim.x / 32; w++) sum += squares_of[w];
    return 1 / sqrtf(sum / (float)a.columns + a.eps);
}

// ---- the weights

struct row_place {
    int part, row; // row: may lie beyond the part's
};

// Row `slot` of 16 of a tile.
static __device__ __forceinline__ row_place place_row(const wt_llm_matvec_args &a, int tile, int slot)
{
    if (a.gated) return {slot / 8, tile * 8 + slot % 8};
    int part = 0;
    while (part + 1 < a.n_parts && tile >= (a.parts[part].rows + 15) / 16) tile -= (a.parts[part++].rows + 15) / 16;
    return {part, tile * 16 + slot};
}

// What comes to a stage next.
struct copier {
    int tile, span, slot;
    unsigned parity;
};

// 16 bytes each for the lanes, to where a box has them: 8 rows of the span, zeros beyond the sides.
static __device__ void copy_by_lanes(const wt_llm_quant_args &a, const wt_llm_part &part, int first, int begin,
                                     int warps, unsigned char *to)
{
    for (int i = threadIdx.x % 32; i < warps * HALF / 16; i += 32) {
        const int row = i / (PIECE / 16) % 8, at = i % (PIECE / 16);
        const int column = begin + i / (HALF / 16) * PIECE + at * 16;
        const bool valid = first + row < part.rows && column < a.row_bytes;
        const unsigned char *from =
            (const unsigned char *)part.weight + (valid ? (first + row) * a.row_bytes + column : 0);
        copy_async_16(to + i / (PIECE / 16) * PIECE + (IS_Q4_K ? at : at ^ row) * 16, from, valid);
    }
}

// One warp.
static __device__ __forceinline__ void copy_span(const wt_llm_quant_args &a, const memory &m, copier &c, int n_spans,
                                                 int warps)
{
    unsigned long long *full = &m.full[c.slot];
    unsigned char *stage = m.stages + 2 * c.slot * m.half_bytes;
    barrier_wait(&m.empty[c.slot], c.parity ^ 1);
    if (a.has_boxes && threadIdx.x % 32 == 0) barrier_expect(full, 2 * m.half_bytes);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const row_place p = place_row(a.m, c.tile, 8 * h);
        if (!a.has_boxes)
            copy_by_lanes(a, a.m.parts[p.part], p.row, c.span * warps * PIECE, warps, stage + h * m.half_bytes);
        else if (threadIdx.x % 32 == 0)
            copy_box(stage + h * m.half_bytes, &a.w[p.part], 0, p.row, c.span * warps, full);
    }
    if (!a.has_boxes) barrier_arrive_copied(full);
    if (++c.slot == m.n_stages) {
        c.slot = 0;
        c.parity ^= 1;
    }
    if (++c.span == n_spans) {
        c.span = 0;
        c.tile += gridDim.x;
    }
}

// ---- scales, which a warp reads a piece ahead

#define READS (N_GROUPS / AT_ONCE) // of a lane for a row of a piece

struct scale_reader {
    int tile, span;
    const unsigned char *row[2]; // of the lane's rows of the tile
    unsigned words[READS][2];
};

static __device__ __forceinline__ void find_rows(const wt_llm_quant_args &a, scale_reader &r)
{
    if (!SCALED || r.tile >= a.n_tiles) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const row_place p = place_row(a.m, r.tile, threadIdx.x % 32 / 4 + 8 * h);
        const wt_llm_part &part = a.m.parts[p.part];
        const int row = p.row < part.rows ? p.row : part.rows - 1;
        r.row[h] = (const unsigned char *)part.scales + 4ll * (row / a.scale_rows) * a.scale_words;
    }
}

// Those of the reader's piece; beyond the columns 0. Then it goes on to the warp's next one.
static __device__ __forceinline__ void read_scales(const wt_llm_quant_args &a, scale_reader &r, int n_spans, int warp,
                                                   int warps)
{
    if (!SCALED || r.tile >= a.n_tiles) return;
    const int t = threadIdx.x % 4, n = SCALE == WT_MM_F16 ? 2 * a.scale_words : a.scale_words;
#pragma unroll
    for (int i = 0; i < READS; i++) {
        const int j = (r.span * warps + warp) * N_GROUPS + i * AT_ONCE + GROUP_OF(t);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            r.words[i][h] = 0;
            if (GROUP_OF(t) >= AT_ONCE || j >= n) continue;
            r.words[i][h] =
                SCALE == WT_MM_F16 ? ((const unsigned short *)r.row[h])[j] : ((const unsigned *)r.row[h])[j];
        }
    }
    if (++r.span < n_spans) return;
    r.span = 0;
    r.tile += gridDim.x;
    find_rows(a, r);
}

// ---- products

// The lane's bytes of read `unit` of its row of a piece, the g-th of eight.
static __device__ __forceinline__ void read_words(const unsigned char *row, int unit, unsigned *words)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (IS_Q4_K) {
        const uint2 v = *(const uint2 *)(row + 16 + unit * 32 + t * 8);
        words[0] = v.x;
        words[1] = v.y;
    } else if (LANE == 16) {
        const uint4 v = *(const uint4 *)(row + ((unit * 4 + t) ^ g) * 16);
        words[0] = v.x;
        words[1] = v.y;
        words[2] = v.z;
        words[3] = v.w;
    } else if (LANE == 8) {
        const uint2 v = *(const uint2 *)(row + ((unit * 2 + t / 2) ^ g) * 16 + t % 2 * 8);
        words[0] = v.x;
        words[1] = v.y;
    } else
        words[0] = *(const unsigned *)(row + (unit ^ g) * 16 + t * 4);
}

// Eight columns of x of a lane, or four, of those of read `unit` counted over the row. Lanes whose columns of the
// product belong to another group never load and keep zeros.
static __device__ __forceinline__ void read_x(const unsigned short *x, int unit, int sub, bool mine, unsigned *b)
{
    const int t = threadIdx.x % 4;
    if (PER >= 8)
        load_shared_16(b, x + ((unit * N_SUB + sub) * 4 + t) * 8, mine);
    else if (mine) {
        const uint2 v = *(const uint2 *)(x + (unit * 4 + t) * 4);
        b[0] = v.x;
        b[1] = v.y;
    }
}

// sums += W x of one group: reads `unit` .. of the stage, whose first of the row is `first`.
static __device__ __forceinline__ void multiply_group(const unsigned char *const *row, const unsigned short *x,
                                                      int unit, int first, bool mine, unsigned (*b)[4],
                                                      float (*sums)[4])
{
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4], w[2][PER < 4 ? 2 : PER / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            read_words(row[h], unit + u, words[h]);
            pairs_of(words[h], w[h]);
        }
#pragma unroll
        for (int i = 0; i < N_SUB; i++) {
            unsigned *v = b[u * N_SUB + i];
            read_x(x, first + unit + u, i, mine, v);
#pragma unroll
            for (int k = 0; k < (PER < 8 ? 1 : 2); k++) {
                const int at = 4 * i + 2 * k;
                const unsigned fragment[4] = {w[0][at], w[1][at], w[0][at + 1], w[1][at + 1]};
                mma_bf16(sums[(u * N_SUB + i + k) % 2], fragment, v[2 * k], v[2 * k + 1]);
            }
        }
    }
}

// Digits of x of a lane, N bytes from `at` on.
template <int N> static __device__ __forceinline__ void read_digits(const unsigned char *at, bool mine, unsigned *b)
{
#pragma unroll
    for (int k = 0; k < N / 16; k++) load_shared_16(b + 4 * k, at + 16 * k, mine);
    if (N == 8 && mine) {
        const uint2 v = *(const uint2 *)at;
        b[0] = v.x;
        b[1] = v.y;
    }
}

// Group j of a piece, whose columns of x begin at x: sums += its products. Lanes of other groups keep zeros.
static __device__ __forceinline__ void multiply_digits(const unsigned char *const *row, const unsigned char *x, int j,
                                                       bool mine, unsigned *b, int (*sums)[4])
{
    const int t = threadIdx.x % 4;
    const unsigned low = 0x0f0f0f0fu;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4];
        unsigned *v = b + u * PER / 4;
#pragma unroll
        for (int h = 0; h < 2; h++) read_words(row[h], (IS_Q4_K ? j / 2 : j * UNITS) + u, words[h]);
        read_digits<PER>(x + (u * 4 + t) * PER, mine, v);
#pragma unroll
        for (int k = 0; k < PER / 8; k++) {
            unsigned a[4];
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (WEIGHT == WT_MM_I8) {
                    a[h] = words[h][2 * k];
                    a[h + 2] = words[h][2 * k + 1];
                } else if (IS_Q4_K) {
                    a[h] = words[h][0] >> 4 * (j % 2) & low;
                    a[h + 2] = words[h][1 % (LANE / 4)] >> 4 * (j % 2) & low;
                } else {
                    a[h] = words[h][k] & low;
                    a[h + 2] = words[h][k] >> 4 & low;
                }
            mma_i8(sums[k % 2], a, v[2 * k], v[2 * k + 1]);
        }
    }
}

// Scale and minimum of part j of 8 of a Q4_K block, from its first 16 bytes; as q4_k_part of matmul.cuh.
static __device__ __forceinline__ void q4_k_scales(const unsigned char *block, int j, float *scale, float *minimum)
{
    const uint4 h = *(const uint4 *)block;
    const int shift = 8 * (j & 3);
    const unsigned low = h.y >> shift, middle = h.z >> shift, high = h.w >> shift;
    const unsigned s = j < 4 ? low & 63 : (high & 15) | (low >> 2 & 48);
    const unsigned n = j < 4 ? middle & 63 : (high >> 4 & 15) | (middle >> 2 & 48);
    *scale = f32_of_f16((unsigned short)h.x) * (float)s;
    *minimum = f32_of_f16((unsigned short)(h.x >> 16)) * (float)n;
}

// What the lane's group j of a row's piece adds to the row: `sum`, less the `x` that zero points or minima take away,
// by its scale `word`.
static __device__ __forceinline__ float scaled(const unsigned char *row, unsigned word, int j, float x, float sum)
{
    if (IS_Q4_K) {
        float scale, minimum;
        q4_k_scales(row, j, &scale, &minimum);
        return scale * sum - minimum * x;
    }
    if (!GROUP) return sum;
    if (SCALE == WT_LLM_SCALE_ZERO) return f32_of_f16((unsigned short)word) * (sum - (float)(word >> 16) * x);
    const float scale = SCALE == WT_MM_F16 ? f32_of_f16((unsigned short)word) : __uint_as_float(word);
    return scale * (WEIGHT == WT_MM_U4 ? sum - 8 * x : sum);
}

// The warp's piece of a stage, chunk `chunk` of the rows, whose rows g and g + 8 lie at row[]: rows[h] += the lane's
// share.
static __device__ __forceinline__ void multiply(const memory &m, const unsigned char *const *row,
                                                const unsigned (*words)[2], int chunk, unsigned (*b)[4], float *rows)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int from = 0; from < N_GROUPS; from += AT_ONCE) {
        const int j = from + GROUP_OF(t) % AT_ONCE;
#if DIGITS // whose lanes have digits 0 and 1, or 2
        const float2 of_x = m.of_x[chunk * N_GROUPS + j];
        int sums[2][4] = {};
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            multiply_digits(
                row, (unsigned char *)m.x + g % 4 * m.pitch + chunk * COLUMNS + (from + k) * (COLUMNS / N_GROUPS),
                from + k, g / 4 == k && g % 4 < 3, b[k * (X_READS / AT_ONCE)], sums);
        const float first = of_x.x * (t % 2 ? 1 : 65536), second = of_x.x * (t % 2 ? 0 : 256),
                    less = t % 2 ? 0 : of_x.y;
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = first * (float)(sums[0][2 * h] + sums[1][2 * h]) +
                              second * (float)(sums[0][2 * h + 1] + sums[1][2 * h + 1]);
            if (GROUP_OF(t) < AT_ONCE) rows[h] += scaled(row[h], words[from / AT_ONCE][h], j, less, sum);
        }
#else
        float sums[2][4] = {};
        const unsigned short *x = m.x + g % 2 * m.pitch;
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            multiply_group(row, x, (from + k) * UNITS, chunk * N_GROUPS * UNITS, g / 2 == k, b + k * UNITS * N_SUB,
                           sums);
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = sums[0][2 * h] + sums[0][2 * h + 1] + sums[1][2 * h] + sums[1][2 * h + 1];
            if (t < AT_ONCE) rows[h] += scaled(row[h], words[from / AT_ONCE][h], j, 0, sum);
        }
#endif
    }
}

// ---- finished rows

// One warp: the sums of the block's warps, tile after tile, and what comes after.
static __device__ __forceinline__ void finish_all(const wt_llm_quant_args &a, const memory &m, int warps, float x_scale)
{
    const int slot = threadIdx.x % 16, half = threadIdx.x % 32 / 16;
    int turn = 0;
    for (int tile = blockIdx.x; tile < a.n_tiles; tile += gridDim.x, turn++) {
        const row_place at = place_row(a.m, tile, slot);
        const wt_llm_part &p = a.m.parts[at.part];
        const bool valid = !half && at.row < p.rows, stored = valid && (!a.m.gated || slot < 8);
        float *out = a.m.parts[a.m.gated ? 0 : at.part].out + at.row;
        const float factor = valid && !SCALED && p.scales ? ((const float *)p.scales)[at.row / a.scale_rows] : 1;
        const float bias = valid && p.bias ? p.bias[at.row] : 0, old = stored && a.m.add ? *out : 0;
        const float *partial = m.partial + turn % RING * (16 * warps);
        barrier_wait(&m.summed[turn % RING], turn / RING & 1);
        float y = 0;
        for (int w = half; w < warps; w += 2) y += partial[16 * w + slot];
        y += __shfl_xor_sync(ALL, y, 16);
        if (threadIdx.x % 32 == 0) barrier_arrive(&m.finished[turn % RING]);
        y = y * (factor * x_scale) + bias;
        const float gate = __shfl_down_sync(ALL, y, 8);
        if (a.m.gated)
            y *= activate(a.m.activation, gate);
        else
            y = activate(a.m.activation, y);
        if (stored) *out = old + y;
    }
}

static __device__ __forceinline__ void multiply_all(const wt_llm_quant_args &a, const memory &m, scale_reader &r,
                                                    int n_chunks, int n_spans, int warp, int warps)
{
    const int lane = threadIdx.x % 32, g = lane / 4;
    unsigned b[X_READS][4] = {};
    int slot = 0, turn = 0;
    unsigned parity = 0;
    for (int tile = blockIdx.x; tile < a.n_tiles; tile += gridDim.x, turn++) {
        float rows[2] = {0, 0};
        for (int span = 0; span < n_spans; span++) {
            const int chunk = span * warps + warp;
            const unsigned char *at = m.stages + 2 * slot * m.half_bytes + warp * HALF + g * PIECE;
            const unsigned char *row[2] = {at, at + m.half_bytes};
            unsigned words[READS][2]; // of this piece, while those of the next are on their way
#pragma unroll
            for (int i = 0; i < READS; i++) words[i][0] = r.words[i][0], words[i][1] = r.words[i][1];
            read_scales(a, r, n_spans, warp, warps);
            barrier_wait(&m.full[slot], parity);
            if (chunk < n_chunks) multiply(m, row, words, chunk, b, rows);
            __syncwarp();
            if (lane == 0) barrier_arrive(&m.empty[slot]);
            if (++slot == m.n_stages) {
                slot = 0;
                parity ^= 1;
            }
        }
        float *partial = m.partial + turn % RING * (16 * warps) + 16 * warp;
        barrier_wait(&m.finished[turn % RING], (turn / RING & 1) ^ 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            rows[h] += __shfl_xor_sync(ALL, rows[h], 1);
            rows[h] += __shfl_xor_sync(ALL, rows[h], 2);
            if (lane % 4 == 0) partial[g + 8 * h] = rows[h];
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(&m.summed[turn % RING]);
    }
}

static __device__ __forceinline__ void create_barriers(const memory &m, int warps, bool has_boxes)
{
    for (int k = 0; k < m.n_stages; k++) {
        barrier_create(&m.full[k], has_boxes ? 1 : 32);
        barrier_create(&m.empty[k], warps);
    }
    for (int k = 0; k < RING; k++) {
        barrier_create(&m.summed[k], warps);
        barrier_create(&m.finished[k], 1);
    }
    barriers_created();
}

extern "C" __global__ void __launch_bounds__(32 * (WT_LLM_QUANT_WARPS + WT_LLM_QUANT_HELPERS))
    llm_quant(const __grid_constant__ wt_llm_quant_args a)
{
    extern __shared__ uint4 shared[];
    __shared__ float squares_of[32];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32 - WT_LLM_QUANT_HELPERS;
    const memory m = memory_of(a, (unsigned char *)shared, warps);
    const int n_chunks = m.padded / COLUMNS, n_spans = (n_chunks + warps - 1) / warps;
    const int n_mine = (a.n_tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x * n_spans;
    let_next_begin();
    if (threadIdx.x == 0 && blockIdx.x == 0 && a.m.norm_weight) ask_for(a.m.norm_weight, 4 * (unsigned)a.m.columns);
    if (threadIdx.x == 0) create_barriers(m, warps, a.has_boxes);
    __syncthreads();
    copier c = {(int)blockIdx.x, 0, 0, 0};
    scale_reader r = {(int)blockIdx.x, 0};
    int n_copied = 0;
    if (warp == warps)
        for (; n_copied < m.n_stages && n_copied < n_mine; n_copied++) copy_span(a, m, c, n_spans, warps);
    else if (warp < warps) {
        find_rows(a, r);
        read_scales(a, r, n_spans, warp, warps);
    }
    wait_for_earlier();
    if (a.m.norm_weight)
        stage_x<true, 2>(a.m, m, squares_of);
    else
        stage_x<false, 5>(a.m, m, squares_of);
    __syncthreads();
    if (warp < warps)
        multiply_all(a, m, r, n_chunks, n_spans, warp, warps);
    else if (warp == warps)
        for (; n_copied < n_mine; n_copied++) copy_span(a, m, c, n_spans, warps);
    else
        finish_all(a, m, warps, scale_of(a.m, squares_of));
}
