// Products of quantised weights with one vector, at the speed at which the weights are read, on tensor cores: 16 rows
// of W by 8 columns, of which two hold the vector, as bf16 and what that leaves, so that it has 16 bits; the products
// are exact and the sums float. A norm before and what comes after are in the same launch, as in llm_matvec.cu.
//
// A block takes 16 rows at a time (8 of gate and 8 of up for a gated product), rows a grid apart; its warps take pieces
// of 128 bytes of each of those rows in turn. A warp has STAGES pieces in shared memory, of its own, filled in the
// background also across the end of the rows: the first ones are on their way before the vector is there. Scales come
// with them.
//
// Of four groups with a scale each, the vector of group j stands in columns 2 j and 2 j + 1 alone, so that after the
// products of all four lane t of a row has the sums of group t, and one scale to apply.
//
// WEIGHT: I8, E4M3, U4, Q4_K. GROUP: columns a scale, 0 = constant along the row. SCALE: F32; F16; U4 with a zero
// beside an F16: a word of both (WT_LLM_SCALE_ZERO). Q4_K has its own. Judge: the CPU's steps (models/llm/ops_cpu.c).
#ifndef WEIGHT
#    define WEIGHT 7
#    define GROUP  128
#    define SCALE  WT_LLM_SCALE_ZERO
#endif
#ifndef STAGES
#    define STAGES 3
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

#define IS_Q4_K  (WEIGHT == WT_MM_Q4_K)
#define COLUMNS  (IS_NIBBLES ? 256 : 128)  // of a piece
#define PIECES   (IS_Q4_K ? 9 : 8)         // of 16 bytes in a row of a piece
#define PITCH    (IS_Q4_K ? 160 : 128)     // bytes from row to row there
#define COPIES   ((16 * PIECES + 31) / 32) // of a lane
#define N_GROUPS (IS_Q4_K ? 8 : GROUP ? COLUMNS / GROUP : 1)
#define AT_ONCE  (N_GROUPS < 4 ? N_GROUPS : 4)
#define UNITS    (COLUMNS / N_GROUPS / (4 * PER)) // reads of a row's four lanes in a group
#define N_SUB    (PER < 8 ? 1 : PER / 8)          // eights of columns in a lane's read
#define SCALED   (GROUP && !IS_Q4_K)
#define WORDS    (!SCALED ? 0 : SCALE == WT_MM_F16 ? N_GROUPS / 2 : N_GROUPS) // of scales in a row of a piece
#define SCALES   ((16 * WORDS + 31) / 32)                                     // copies of them of a lane
#define STAGE    (16 * PITCH + 16 * 4 * WORDS)                                // bytes
#define X_READS  (AT_ONCE * (IS_Q4_K ? 1 : UNITS * N_SUB))                    // registers for x, times four
#define SUMMED   IS_NIBBLES                                                   // sums of the vector's groups are needed

// ---- what a block has in shared memory: see wt_llm_quant_shared

struct memory {
    unsigned short *x; // [2][pitch], aligned to 16 bytes
    float *x_sums;     // [columns / 32]
    float *partial;    // [2][warps][16]
    unsigned char *stages;
    int pitch, padded;
};

static __device__ __forceinline__ memory memory_of(unsigned char *at, int columns)
{
    memory m;
    m.padded = (columns + COLUMNS - 1) / COLUMNS * COLUMNS;
    m.pitch = m.padded + 32;
    m.x = (unsigned short *)at;
    m.x_sums = (float *)(at + 4 * m.pitch);
    m.partial = m.x_sums + m.padded / 32;
    m.stages = (unsigned char *)(m.partial + blockDim.x);
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

// To both halves of x; returns the sum of what they hold.
static __device__ __forceinline__ float store_eight(const memory &m, int i, const eight &v)
{
    unsigned high[4], low[4];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float a = v.at[column_of(2 * k)], b = v.at[column_of(2 * k + 1)];
        high[k] = bf16_of_f32(a) | (unsigned)bf16_of_f32(b) << 16;
        const float most_a = __uint_as_float(high[k] << 16), most_b = __uint_as_float(high[k] & 0xffff0000u);
        low[k] = bf16_of_f32(a - most_a) | (unsigned)bf16_of_f32(b - most_b) << 16;
        sum += most_a + __uint_as_float(low[k] << 16) + (most_b + __uint_as_float(low[k] & 0xffff0000u));
    }
    unsigned short *to = m.x + place_of(8 * i);
    *(uint4 *)to = {high[0], high[1], high[2], high[3]};
    *(uint4 *)(to + m.pitch) = {low[0], low[1], low[2], low[3]};
    return sum;
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

// x, or its norm, as pairs of bf16, and the sums of 32 columns each. Returns what sums are multiplied with: an
// RMSNorm's scale. All threads of the block. EIGHTS of a thread are on their way together.
static __device__ float stage_x(const wt_llm_matvec_args &a, const memory &m)
{
    enum { EIGHTS = 4 };
    __shared__ float scratch[32];
    const bool weighed = a.norm_weight, centred = a.norm_bias;
    float mean = 0, scale = 1, squares = 0;
    if (centred) measure(a, scratch, &mean, &scale);
    for (int first = 0; first < m.padded / 8; first += EIGHTS * blockDim.x) { // all threads
        eight x[EIGHTS], w[EIGHTS];
#pragma unroll
        for (int u = 0; u < EIGHTS; u++) {
            const int i = first + u * blockDim.x + threadIdx.x;
            x[u] = load_eight(a.x, i, a.columns);
            if (weighed) w[u] = load_eight(a.norm_weight, i, a.columns);
        }
#pragma unroll
        for (int u = 0; u < EIGHTS; u++) {
            const int i = first + u * blockDim.x + threadIdx.x;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                squares += x[u].at[k] * x[u].at[k];
                if (weighed) x[u].at[k] = (x[u].at[k] - mean) * scale * w[u].at[k];
                if (centred && 8 * i < a.columns) x[u].at[k] += a.norm_bias[8 * i + k];
            }
            float sum = 8 * i < m.padded ? store_eight(m, i, x[u]) : 0;
            if (!SUMMED) continue;
            sum += __shfl_xor_sync(ALL, sum, 1);
            sum += __shfl_xor_sync(ALL, sum, 2);
            if (threadIdx.x % 4 == 0 && 8 * i < m.padded) m.x_sums[i / 4] = sum;
        }
    }
    if (weighed && !centred) // all are past their stores
        return 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps);
    __syncthreads();
    return 1;
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

// Which copies of a piece a lane makes, the same for all pieces: bytes from the tile's first row on.
struct copies {
    unsigned w[COPIES], scales[SCALES ? SCALES : 1];
};

static __device__ __forceinline__ copies copies_of(const wt_llm_quant_args &a)
{
    copies c;
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
        const int at = threadIdx.x % 32 + 32 * i, slot = at / PIECES;
        c.w[i] = (unsigned)((a.m.gated ? slot % 8 : slot) * a.row_bytes) + at % PIECES * 16;
    }
#pragma unroll
    for (int i = 0; i < SCALES; i++) {
        const int at = threadIdx.x % 32 + 32 * i, slot = at / (WORDS ? WORDS : 1);
        c.scales[i] = 4 * ((a.scale_rows > 1 ? 0
                            : a.m.gated      ? slot % 8
                                             : slot) *
                               a.scale_words +
                           at % (WORDS ? WORDS : 1));
    }
    return c;
}

// Where a warp's copies are: the first row of both halves of the tile, and how many rows of it there are.
struct cursor {
    int tile, chunk, rows;
    const unsigned char *w[2], *scales[2];
};

static __device__ __forceinline__ void aim(const wt_llm_quant_args &a, cursor &c)
{
    if (c.tile >= a.n_tiles) return;
    const row_place p = place_row(a.m, c.tile, 0);
    c.rows = a.m.parts[p.part].rows - p.row;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const wt_llm_part &part = a.m.parts[a.m.gated ? h : p.part];
        c.w[h] = (const unsigned char *)part.weight + p.row * a.row_bytes;
        if (WORDS) c.scales[h] = (const unsigned char *)part.scales + 4ll * (p.row / a.scale_rows) * a.scale_words;
    }
}

static __device__ __forceinline__ void fetch(const wt_llm_quant_args &a, const copies &k, cursor &c, int n_chunks,
                                             unsigned char *to)
{
    const int lane = threadIdx.x % 32;
    if (c.tile < a.n_tiles) {
        const int begin = c.chunk * (16 * PIECES), left = (int)a.row_bytes - begin;
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            const int at = lane + 32 * i, slot = at / PIECES, piece = at % PIECES;
            if (16 * PIECES % 32 && at >= 16 * PIECES) continue;
            // rows beyond the last are the first once more
            const unsigned skip = (a.m.gated ? slot % 8 : slot) < c.rows ? k.w[i] : piece * 16;
            const bool valid = piece * 16 < left;
            const bool second = PIECES == 8 ? i >= 2 : slot >= 8;
            const unsigned char *from = (second ? c.w[1] : c.w[0]) + begin;
            copy_async_16(to + slot * PITCH + (IS_Q4_K ? piece : piece ^ (slot * (LANE / 4) & 7)) * 16,
                          from + (valid ? skip : 0), valid);
        }
#pragma unroll
        for (int i = 0; i < SCALES; i++) {
            const int at = lane + 32 * i, slot = at / (WORDS ? WORDS : 1), word = at % (WORDS ? WORDS : 1);
            if (at >= 16 * WORDS) continue;
            const unsigned skip = (a.m.gated ? slot % 8 : slot) < c.rows ? k.scales[i] : 4 * word;
            const bool valid = c.chunk * WORDS + word < a.scale_words;
            copy_async_4(to + 16 * PITCH + 4 * at,
                         (slot >= 8 ? c.scales[1] : c.scales[0]) + (valid ? 4 * c.chunk * WORDS + skip : 0), valid);
        }
        c.chunk += blockDim.x / 32;
        if (c.chunk >= n_chunks) {
            c.chunk = threadIdx.x / 32;
            c.tile += gridDim.x;
            aim(a, c);
        }
    }
    copy_async_commit();
}

// ---- products

// The lane's bytes of read `unit` of row `row` of a stage.
static __device__ __forceinline__ void read_words(const unsigned char *stage, int row, int unit, unsigned *words)
{
    const int t = threadIdx.x % 4;
    const unsigned char *from = stage + row * PITCH;
    if (IS_Q4_K) {
        const uint2 v = *(const uint2 *)(from + 16 + unit * 32 + t * 8);
        words[0] = v.x;
        words[1] = v.y;
        return;
    }
    const int swap = row * (LANE / 4) & 7;
    if (LANE == 16) {
        const uint4 v = *(const uint4 *)(from + ((unit * 4 + t) ^ swap) * 16);
        words[0] = v.x;
        words[1] = v.y;
        words[2] = v.z;
        words[3] = v.w;
    } else if (LANE == 8) {
        const uint2 v = *(const uint2 *)(from + ((unit * 2 + t / 2) ^ swap) * 16 + t % 2 * 8);
        words[0] = v.x;
        words[1] = v.y;
    } else
        words[0] = *(const unsigned *)(from + (unit ^ swap) * 16 + t * 4);
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
static __device__ __forceinline__ void multiply_group(const unsigned char *stage, const unsigned short *x, int unit,
                                                      int first, bool mine, unsigned (*b)[4], float (*sums)[4])
{
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4], w[2][PER < 4 ? 2 : PER / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            read_words(stage, g + 8 * h, unit + u, words[h]);
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

// The same of the two groups of Q4_K that share bytes.
static __device__ __forceinline__ void multiply_q4_k(const unsigned char *stage, const unsigned short *x, int unit,
                                                     int first, int group, unsigned (*b)[4], float (*sums)[4])
{
    const int g = threadIdx.x % 32 / 4;
    unsigned words[2][2], w[2][8];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        read_words(stage, g + 8 * h, unit, words[h]);
        pairs_of_nibbles(words[h][0], w[h]);
        pairs_of_nibbles(words[h][1], w[h] + 4);
    }
#pragma unroll
    for (int high = 0; high < 2; high++) {
        read_x(x, first + 2 * unit + high, 0, group + high == g / 2, b[high]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int at = 4 * k + high;
            const unsigned fragment[4] = {w[0][at], w[1][at], w[0][at + 2], w[1][at + 2]};
            mma_bf16(sums[k], fragment, b[high][2 * k], b[high][2 * k + 1]);
        }
    }
}

// Of the lane's group, columns `column` .. of the row.
static __device__ __forceinline__ float x_sum_of(const memory &m, int column)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS / N_GROUPS / 32; k++) sum += m.x_sums[column / 32 + k];
    return sum;
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

// What the lane's group j of row `row` of the stage adds to the row: `sum` by its scale.
static __device__ __forceinline__ float scaled(const memory &m, const unsigned char *stage, int row, int j, int column,
                                               float sum)
{
    if (IS_Q4_K) {
        float scale, minimum;
        const float x = x_sum_of(m, column);
        q4_k_scales(stage + row * PITCH, j, &scale, &minimum);
        return scale * 16 * (sum - x) - minimum * x;
    }
    if (!GROUP) return sum;
    const unsigned char *scales = stage + 16 * PITCH + row * (4 * WORDS);
    if (SCALE == WT_LLM_SCALE_ZERO) {
        const unsigned both = ((const unsigned *)scales)[j];
        const float one = 1 + (float)(both >> 16) * 0.0625f;
        return f32_of_f16((unsigned short)both) * 16 * (sum - one * x_sum_of(m, column));
    }
    const float scale =
        SCALE == WT_MM_F16 ? f32_of_f16(((const unsigned short *)scales)[j]) : ((const float *)scales)[j];
    if (WEIGHT == WT_MM_U4) return scale * 16 * (sum - 1.5f * x_sum_of(m, column)); // 8 is zero
    return scale * sum;
}

// A stage, chunk `chunk` of the rows: rows[h] += the lane's share of row g + 8 h.
static __device__ __forceinline__ void multiply(const memory &m, const unsigned char *stage, int chunk,
                                                unsigned (*b)[4], float *rows)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const unsigned short *x = m.x + g % 2 * m.pitch;
#pragma unroll
    for (int from = 0; from < N_GROUPS; from += AT_ONCE) {
        float sums[2][4] = {};
#pragma unroll
        for (int j = 0; j < AT_ONCE; j += IS_Q4_K ? 2 : 1)
            if (IS_Q4_K)
                multiply_q4_k(stage, x, (from + j) / 2, chunk * N_GROUPS, j, b + j, sums);
            else
                multiply_group(stage, x, (from + j) * UNITS, chunk * N_GROUPS * UNITS, g / 2 == j,
                               b + j * UNITS * N_SUB, sums);
        const int j = from + t % AT_ONCE, column = chunk * COLUMNS + j * (COLUMNS / N_GROUPS);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = sums[0][2 * h] + sums[0][2 * h + 1] + sums[1][2 * h] + sums[1][2 * h + 1];
            if (t < AT_ONCE) rows[h] += scaled(m, stage, g + 8 * h, j, column, sum);
        }
    }
}

// ---- finished rows

// One warp: the sums of the block's warps, [warps][16], and what comes after.
static __device__ __forceinline__ void finish(const wt_llm_quant_args &a, int tile, const float *partial, float x_scale)
{
    const int slot = threadIdx.x % 16;
    const row_place at = place_row(a.m, tile, slot);
    const wt_llm_part &p = a.m.parts[at.part];
    const bool valid = threadIdx.x % 32 < 16 && at.row < p.rows;
    float y = 0;
    for (int w = 0; w < blockDim.x / 32; w++) y += partial[16 * w + slot];
    if (valid && !SCALED && p.scales) y *= ((const float *)p.scales)[at.row / a.scale_rows];
    y *= x_scale;
    if (valid && p.bias) y += p.bias[at.row];
    const float gate = __shfl_down_sync(ALL, y, 8);
    if (a.m.gated)
        y *= activate(a.m.activation, gate);
    else
        y = activate(a.m.activation, y);
    if (!valid || (a.m.gated && slot >= 8)) return;
    float *out = a.m.parts[a.m.gated ? 0 : at.part].out + at.row;
    *out = a.m.add ? *out + y : y;
}

extern "C" __global__ void __launch_bounds__(512) llm_quant(const __grid_constant__ wt_llm_quant_args a)
{
    extern __shared__ uint4 shared[];
    const memory m = memory_of((unsigned char *)shared, a.m.columns);
    const int warp = threadIdx.x / 32, n_warps = blockDim.x / 32, g = threadIdx.x % 32 / 4;
    const int n_chunks = m.padded / COLUMNS;
    unsigned char *stages = m.stages + warp * (STAGES * STAGE);
    cursor ahead = {(int)blockIdx.x, warp};
    int turn = 0;
    let_next_begin();
    const copies k = copies_of(a);
    unsigned b[X_READS][4] = {};
    aim(a, ahead);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) fetch(a, k, ahead, n_chunks, stages + s * STAGE);
    wait_for_earlier();
    const float x_scale = stage_x(a.m, m);
    int slot = 0, next = STAGES - 1;
    for (int tile = blockIdx.x; tile < a.n_tiles; tile += gridDim.x, turn++) {
        float rows[2] = {0, 0};
        for (int chunk = warp; chunk < n_chunks; chunk += n_warps) {
            copy_async_wait<STAGES - 2>();
            __syncwarp();
            fetch(a, k, ahead, n_chunks, stages + next * STAGE);
            multiply(m, stages + slot * STAGE, chunk, b, rows);
            slot = slot + 1 == STAGES ? 0 : slot + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        float *partial = m.partial + turn % 2 * (16 * n_warps);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            rows[h] += __shfl_xor_sync(ALL, rows[h], 1);
            rows[h] += __shfl_xor_sync(ALL, rows[h], 2);
            if (threadIdx.x % 4 == 0) partial[16 * warp + g + 8 * h] = rows[h];
        }
        __syncthreads();
        if (turn % n_warps == warp) finish(a, tile, partial, x_scale);
    }
}
