// Products of quantised weights with one vector, at the speed at which the weights are read, on tensor cores: 16 rows
// of W by 8 columns, some of which hold parts of the vector. A norm before and what comes after are in the same launch,
// as in llm_matvec.cu.
//
// Weights that are whole numbers meet whole numbers: a group of the vector in units that leave its largest number 22
// bits, in three digits of 8 bits, so that nibbles need a mask and int8 nothing; sums of a group are exact. Fp8 becomes
// f16 and meets the vector as two f16 each, 22 bits of the group's largest; int8 of groups of 16 becomes bf16 and meets
// two bf16, 16 bits; products are exact and sums float. Of several groups with a scale each, the vector of group j
// stands in the columns of group j alone, so that after the products of all of them a lane has the sums of one group,
// and one scale to apply.
//
// A tile is 16 rows (8 of gate and 8 of up for a gated product); a block has every gridDim.x-th. A team of warps shares
// a tile's columns, a piece of 128 bytes of each row a warp at a time; a block's teams take tiles in turn. One more
// warp has boxes of the rows copied to shared memory, stage by stage, the first of them before the vector is there;
// each warp makes its own columns of the vector ready. The last adds the warps' sums in order and finishes the rows.
//
// llm_quant_2: a long vector without a norm, whose columns two blocks share, a cluster. Each makes its half ready, and
// sends its warps' sums to the one that finishes the tile, one tile this one, the next the other.
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
#include "cluster.cuh"

#define IS_Q4_K        (WEIGHT == WT_MM_Q4_K)
#define PIECE          (IS_Q4_K ? 144 : 128) // bytes of a row
#define COLUMNS        (IS_NIBBLES ? 256 : 128)
#define OF_GROUP       (IS_Q4_K ? 32 : GROUP ? GROUP : COLUMNS)
#define N_GROUPS       (COLUMNS / OF_GROUP)
#define DIGITS         (WEIGHT != WT_MM_E4M3 && !IS_PLAIN) // x as whole numbers
#define IS_PLAIN       (WEIGHT == WT_MM_I8 && LANE == 4)   // x as bf16, without units
#define IS_SPREAD      (WEIGHT == WT_MM_U4 && LANE > 4)    // low and high nibbles of neighbouring words apart
#define MOST           (DIGITS ? 2 : 4)
#define AT_ONCE        (N_GROUPS < MOST ? N_GROUPS : MOST)
#define GROUP_OF(t)    ((t) / (4 / MOST))      // of a read, whose sums lane t has
#define UNITS          (OF_GROUP / (4 * PER))  // reads of a row's four lanes in a group
#define N_SUB          (PER < 8 ? 1 : PER / 8) // eights of columns in a lane's read
#define X_FIRST        (N_GROUPS == AT_ONCE)   // a stage's x is read before its weights are awaited
#define SCALED         (GROUP && !IS_Q4_K)
#define OF_SCALE       (SCALE == WT_MM_F16 ? 2 : 4)                                   // bytes
#define X_READS        (AT_ONCE * (DIGITS ? (UNITS * PER + 15) / 16 : UNITS * N_SUB)) // registers for x, times four
#define EIGHTS_A_GROUP (OF_GROUP / 8) // of columns that share what is known of them
#define OF_STAGE       (COLUMNS / 8)  // eights of columns
#define RING           WT_LLM_QUANT_RING
#define WARPS          WT_LLM_QUANT_WARPS

// ---- what a block has in shared memory: see wt_llm_quant_shared

#define HALF (8 * PIECE) // bytes of 8 rows of a piece

struct memory {
    unsigned char *stages; // [n_stages][2][team][8][PIECE], rows 0 .. 7 and 8 .. 15 of a tile
    unsigned char *scales; // [n_stages][2] times scale_bytes: those of groups, [8 or 1][team][N_GROUPS]
    unsigned short *x;     // its parts, of each turn of the columns those of each warp
    float2 *of_x;          // [groups]: the unit of x; of whole numbers the sum
    float2 *partial;       // [RING / blocks][blocks][WARPS][8]: of rows 0 .. 7, each with that 8 on
    unsigned long long *full, *empty, *summed, *finished; // [n_stages] twice, [RING] twice
    int half_bytes;                                       // of a stage
    int pitch;                                            // from part to part, of digits in bytes
};

static __device__ __forceinline__ memory memory_of(const wt_llm_quant_args &a, unsigned char *at)
{
    memory m;
    const int columns = a.n_turns * WARPS * COLUMNS;
    m.stages = at + (1024 - shared_of(at) % 1024) % 1024;
    m.pitch = DIGITS ? columns + 16 : columns + 32;
    m.half_bytes = a.team * HALF;
    m.scales = m.stages + 2 * a.n_stages * m.half_bytes;
    m.x = (unsigned short *)(m.scales + 2 * a.n_stages * a.scale_bytes);
    m.of_x = (float2 *)((unsigned char *)m.x + (DIGITS ? 3 : 4) * m.pitch);
    m.partial = m.of_x + columns / 32;
    m.full = (unsigned long long *)(m.partial + RING * 8 * WARPS);
    m.empty = m.full + a.n_stages;
    m.summed = m.empty + a.n_stages;
    m.finished = m.summed + RING;
    return m;
}

// What a block's warps tell each other besides: that x is asked for, and the squares of their columns.
struct news {
    unsigned long long asked;
    float squares[WARPS], scratch[WARPS];
};

// ---- who waits for whom

// Meetings of some of the block's threads: all of it; the warps that multiply; one of them and the one that copies,
// which waits for nobody, so that its copies are soon under way.
enum { ALL_MEET = 1, WARPS_MEET, TWO_MEET };

template <int WHICH, int N> static __device__ __forceinline__ void meet()
{
    asm volatile("bar.sync %0, %1;" ::"n"(WHICH), "n"(32 * N) : "memory");
}

template <int WHICH, int N> static __device__ __forceinline__ void pass()
{
    asm volatile("bar.arrive %0, %1;" ::"n"(WHICH), "n"(32 * N) : "memory");
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

// Columns k .. k + 7; beyond the columns zeros.
static __device__ __forceinline__ eight load_eight(const float *x, int k, int columns)
{
    const float4 *from = (const float4 *)(x + k);
    const float4 zero = {0, 0, 0, 0}, a = k < columns ? from[0] : zero, b = k < columns ? from[1] : zero;
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

static __device__ __forceinline__ float larger(float a, float b) // what is no number is the largest
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

// The bits of the largest magnitude of the group of the lane's eight columns: neither infinities nor what is no number
// get lost.
static __device__ __forceinline__ unsigned largest_of(const eight &v)
{
    float most = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) most = larger(most, fabsf(v.at[k]));
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) most = larger(most, __shfl_xor_sync(ALL, most, step));
    return __float_as_uint(most);
}

// ---- x as two f16, its unit a power of two that leaves the largest of a group 2^14 .. 2^15, or as two bf16

// Eight columns, from place k of x on, to both halves of x. All lanes.
static __device__ __forceinline__ void store_halves(const memory &m, int k, const eight &v, bool is_there)
{
    const unsigned exponent = IS_PLAIN ? 141 : largest_of(v) >> 23;
    const bool has_unit = exponent > 14; // else x is too small for a unit
    const float inverse = has_unit ? __uint_as_float((268 - exponent) << 23) : 0;
    unsigned high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float a = v.at[column_of(2 * i)] * inverse, b = v.at[column_of(2 * i + 1)] * inverse;
        if (IS_PLAIN) {
            high[i] = bf16_pair_of(a, b);
            low[i] = bf16_pair_of(a - __uint_as_float(high[i] << 16), b - __uint_as_float(high[i] & 0xffff0000u));
        } else {
            high[i] = f16_pair_of(a, b);
            low[i] =
                f16_pair_of(a - f32_of_f16((unsigned short)high[i]), b - f32_of_f16((unsigned short)(high[i] >> 16)));
        }
    }
    if (!is_there) return;
    unsigned short *to = m.x + place_of(k);
    *(uint4 *)to = {high[0], high[1], high[2], high[3]};
    *(uint4 *)(to + m.pitch) = {low[0], low[1], low[2], low[3]};
    const unsigned no_number = 0x7fffffff; // where x has none or an infinity
    if (!IS_PLAIN && k % OF_GROUP == 0)
        m.of_x[k / OF_GROUP] = {__uint_as_float(exponent == 255 ? no_number : has_unit ? (exponent - 14) << 23 : 0), 0};
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

// Eight columns, from place k of x on, to its digits, with what is known of their group. All lanes.
static __device__ __forceinline__ void store_digits(const memory &m, int k, const eight &v, bool is_there)
{
    const unsigned exponent = largest_of(v) >> 23;
    const bool has_unit = exponent > 21; // else x is too small for a unit
    const float inverse = has_unit ? __uint_as_float((275 - exponent) << 23) : 0;
    unsigned words[2][3];
    int sum = -8 * OFFSET;
#pragma unroll
    for (int h = 0; h < 2; h++) digits_of(v, 4 * h, inverse, words[h], &sum);
#pragma unroll
    for (int step = 1; step < EIGHTS_A_GROUP; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
    if (!is_there) return;
    const unsigned no_number = 0x7fffffff; // where x has none or an infinity
    const float unit = __uint_as_float(exponent == 255 ? no_number : has_unit ? (exponent - 21) << 23 : 0);
    unsigned char *to = (unsigned char *)m.x + k;
#pragma unroll
    for (int d = 0; d < 3; d++, to += m.pitch) {
#if IS_SPREAD // a product takes the first words of two eights, the next their second ones
        *(unsigned *)(to - k % 16 / 2) = words[0][d];
        *(unsigned *)(to - k % 16 / 2 + 8) = words[1][d];
#else
        *(uint2 *)to = {words[0][d], words[1][d]};
#endif
    }
    if (k % OF_GROUP == 0) m.of_x[k / OF_GROUP] = {unit, unit * (float)sum};
}

// Sum over the warps that multiply, of each lane, for all of them.
static __device__ float sum_of_warps(float x, float *scratch)
{
    x = warp_sum(x);
    meet<WARPS_MEET, WARPS>(); // scratch may hold the sum before
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    meet<WARPS_MEET, WARPS>();
    return warp_sum(threadIdx.x % 32 < WARPS ? scratch[threadIdx.x % 32] : 0);
}

// Mean of x and the scale of a LayerNorm.
static __device__ void measure(const wt_llm_matvec_args &a, float *scratch, float *mean, float *scale)
{
    float sum = 0, squares = 0;
    for (int k = threadIdx.x; k < a.columns; k += 32 * WARPS) sum += a.x[k];
    *mean = sum_of_warps(sum, scratch) / (float)a.columns;
    for (int k = threadIdx.x; k < a.columns; k += 32 * WARPS) squares += (a.x[k] - *mean) * (a.x[k] - *mean);
    *scale = 1 / sqrtf(sum_of_warps(squares, scratch) / (float)a.columns + a.eps);
}

// Where a warp is: the first of its columns and its place in x, of turn 0; the next turn's are `step` on.
struct share {
    int first, place, step;
};

// The i-th eight of the warp's columns, over all turns: the column that it begins with.
static __device__ __forceinline__ int column_at(const share &own, int i)
{
    return own.first + i / OF_STAGE * own.step + i % OF_STAGE * 8;
}

// N of the lane's eights, from the first-th of the warp's on, of n.
template <int N>
static __device__ __forceinline__ void load_columns(const float *x, const share &own, int first, int n, int columns,
                                                    eight *v)
{
#pragma unroll
    for (int u = 0; u < N; u++) {
        const int i = first + u * 32 + threadIdx.x % 32;
        v[u] = load_eight(x, i < n ? column_at(own, i) : columns, columns);
    }
}

template <int N>
static __device__ __forceinline__ void load_weights(const wt_llm_quant_args &a, const share &own, int first, eight *w)
{
    if (a.m.norm_weight)
        load_columns<N>(a.m.norm_weight, own, first, a.n_turns * OF_STAGE, a.m.columns, w);
    else
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
            for (int k = 0; k < 8; k++) w[u].at[k] = 1;
}

// x, or its norm, and what is known of its groups, of the warp's columns; their squares, of the lane. N eights of a
// lane are on their way together; `w` has the norm's weights of the first, or ones. A launch comes here once, and waits
// for instructions as for x: few of them, and a loop.
template <int N, bool IS_WEIGHED>
static __device__ __forceinline__ float stage_x(const wt_llm_quant_args &a, const memory &m, const share &own, eight *w,
                                                float mean, float scale, unsigned long long *asked)
{
    const int columns = a.m.columns, n = a.n_turns * OF_STAGE;
    float squares = 0;
    for (int first = 0; first < n; first += 32 * N) {
        eight x[N];
        load_columns<N>(a.m.x, own, first, n, columns, x);
        if (!first && threadIdx.x == 0) barrier_arrive(asked);
        if (IS_WEIGHED && first) load_weights<N>(a, own, first, w);
        const int end = min(n, first + 32 * N);
#pragma unroll 1
        for (int from = first; from < end; from += 32) {
            const int i = from + threadIdx.x % 32;
#pragma unroll
            for (int k = 0; k < 8; k++) squares += x[0].at[k] * x[0].at[k];
            if (IS_WEIGHED && a.m.norm_bias) {
                const eight bias = load_eight(a.m.norm_bias, i < n ? column_at(own, i) : columns, columns);
#pragma unroll
                for (int k = 0; k < 8; k++) x[0].at[k] = (x[0].at[k] - mean) * scale * w[0].at[k] + bias.at[k];
            } else if (IS_WEIGHED)
#pragma unroll
                for (int k = 0; k < 8; k++) x[0].at[k] *= w[0].at[k];
            const int place = own.place + i / OF_STAGE * (WARPS * COLUMNS) + i % OF_STAGE * 8;
            if (DIGITS)
                store_digits(m, place, x[0], i < n);
            else
                store_halves(m, place, x[0], i < n);
#pragma unroll
            for (int u = 1; u < N; u++) {
                x[u - 1] = x[u];
                if (IS_WEIGHED) w[u - 1] = w[u];
            }
        }
    }
    return warp_sum(squares);
}

// What sums are multiplied with: an RMSNorm's scale.
static __device__ __forceinline__ float scale_of(const wt_llm_matvec_args &a, const float *squares, int team)
{
    float sum = 0;
    if (!a.norm_weight || a.norm_bias) return 1;
    for (int w = 0; w < team; w++) sum += squares[w];
    return 1 / sqrtf(sum / (float)a.columns + a.eps);
}

// ---- the weights

// Rows 0 .. 7 and 8 .. 15 of a tile: where they begin, maybe beyond the part's.
struct tile_place {
    int part[2], row[2];
};

static __device__ __forceinline__ tile_place place_tile(const wt_llm_matvec_args &a, int tile)
{
    if (a.gated) return {{0, 1}, {tile * 8, tile * 8}};
    const int first = (a.parts[0].rows + 15) / 16, second = first + (a.parts[1].rows + 15) / 16;
    const int part = a.n_parts > 2 && tile >= second ? 2 : a.n_parts > 1 && tile >= first ? 1 : 0;
    const int row = 16 * (tile - (part == 2 ? second : part ? first : 0));
    return {{part, part}, {row, row + 8}};
}

// 16 bytes each for the lanes, to where a box has them: 8 rows of a stage, zeros beyond the sides.
static __device__ void copy_by_lanes(const wt_llm_quant_args &a, const wt_llm_part &part, int first, int piece,
                                     unsigned char *to)
{
    for (int i = threadIdx.x % 32; i < a.team * HALF / 16; i += 32) {
        const int row = i / (PIECE / 16) % 8, at = i % (PIECE / 16);
        const long long column = (piece + i / (HALF / 16)) * PIECE + at * 16;
        const bool valid = first + row < part.rows && column < a.row_bytes;
        const unsigned char *from =
            (const unsigned char *)part.weight + (valid ? (first + row) * a.row_bytes + column : 0);
        copy_async_16(to + i / (PIECE / 16) * PIECE + (IS_Q4_K ? at : at ^ row) * 16, from, valid);
    }
}

// Likewise the scales of groups from `group` on.
static __device__ void copy_scales_by_lanes(const wt_llm_quant_args &a, const wt_llm_part &part, int first, int group,
                                            unsigned char *to)
{
    const int n = a.team * N_GROUPS * OF_SCALE, n_rows = a.scale_pitch ? 8 : 1;
    for (int i = threadIdx.x % 32 * OF_SCALE; i < n_rows * n; i += 32 * OF_SCALE) {
        const int row = first + i / n, at = group * OF_SCALE + i % n;
        const bool valid = row < part.rows && at < 4 * a.scale_words;
        const unsigned char *from =
            (const unsigned char *)part.scales + 4ll * (row / a.scale_rows) * a.scale_words + at;
        if (OF_SCALE == 2)
            *(unsigned short *)(to + i) = valid ? *(const unsigned short *)from : 0;
        else
            *(unsigned *)(to + i) = valid ? *(const unsigned *)from : 0;
    }
}

// The stages of tiles `tile`, tile + step .., turns `turn` .. of each, one after the other, when those that had what a
// stage holds are done. By boxes: one thread, with little between one and the next, as a launch waits for the first of
// them and one thread asks for all of a processor's.
//
// Until the vector is asked for, a stage is when the one `pace` before it has come: the vector would wait behind all
// that memory has to bring.
static __device__ __forceinline__ void copy_boxes(const wt_llm_quant_args &a, const memory &m, int tile, int turn,
                                                  int step, unsigned long long *asked)
{
    const int half = m.half_bytes, bytes = 2 * half + a.scale_expected, of_scale = a.scale_bytes;
    const int first_piece = turn * a.team, end_piece = first_piece + a.n_turns * a.team;
    unsigned parity = 1;
    int slot = 0, pace = a.pace;
    for (; tile < a.n_tiles; tile += step) {
        const tile_place at = place_tile(a.m, tile);
        for (int piece = first_piece; piece < end_piece; piece += a.team) {
            unsigned long long *full = &m.full[slot];
            barrier_wait(&m.empty[slot], parity);
            while (parity && slot >= pace && !barrier_over(full - pace, 0))
                if (barrier_over(asked, 0)) pace = a.n_stages;
            barrier_expect(full, bytes);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                copy_box(m.stages + (2 * slot + h) * half, &a.w[at.part[h]], 0, at.row[h], piece, full);
                if (SCALED)
                    copy_box(m.scales + (2 * slot + h) * of_scale, &a.s[at.part[h]], piece * (N_GROUPS * OF_SCALE),
                             at.row[h] >> a.scale_shift, 0, full);
            }
            if (++slot == a.n_stages) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

// Likewise by a warp's lanes.
static __device__ void copy_rows(const wt_llm_quant_args &a, const memory &m, int tile, int turn, int step)
{
    unsigned parity = 1;
    int slot = 0;
    for (; tile < a.n_tiles; tile += step) {
        const tile_place at = place_tile(a.m, tile);
        for (int k = turn; k < turn + a.n_turns; k++) {
            barrier_wait(&m.empty[slot], parity);
#pragma unroll 1
            for (int h = 0; h < 2; h++) {
                const wt_llm_part &part = a.m.parts[h ? at.part[1] : at.part[0]];
                const int row = h ? at.row[1] : at.row[0];
                copy_by_lanes(a, part, row, k * a.team, m.stages + (2 * slot + h) * m.half_bytes);
                if (SCALED)
                    copy_scales_by_lanes(a, part, row, k * a.team * N_GROUPS,
                                         m.scales + (2 * slot + h) * a.scale_bytes);
            }
            barrier_arrive_copied(&m.full[slot]);
            if (SCALED) barrier_arrive(&m.full[slot]);
            if (++slot == a.n_stages) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

// ---- products

// The lane's bytes of read `unit` of group j of a stage, its row being the g-th of eight.
static __device__ __forceinline__ void read_words(const unsigned char *row, int j, int unit, unsigned *words)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    unit += IS_Q4_K ? j / 2 : j * UNITS;
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

static __device__ __forceinline__ void multiply_pairs(float *sums, const unsigned *a, const unsigned *x)
{
    if (IS_PLAIN)
        mma_bf16(sums, a, x[0], x[1]);
    else
        mma_f16(sums, a, x[0], x[1]);
}

// Group j of a stage, whose columns of x begin at x: sums += its products. Lanes of other groups keep zeros.
static __device__ __forceinline__ void multiply_group(const unsigned char *const *row, const unsigned short *x, int j,
                                                      bool mine, unsigned (*b)[4], float (*sums)[4])
{
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned words[2][LANE / 4], w[2][PER < 4 ? 2 : PER / 2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            read_words(row[h], j, u, words[h]);
            pairs_of(words[h], w[h]);
        }
#pragma unroll
        for (int i = 0; i < N_SUB; i++) {
            unsigned *v = b[u * N_SUB + i];
            if (!X_FIRST) read_x(x, j * UNITS + u, i, mine, v);
#pragma unroll
            for (int k = 0; k < (PER < 8 ? 1 : 2); k++) {
                const int at = 4 * i + 2 * k;
                const unsigned fragment[4] = {w[0][at], w[1][at], w[0][at + 1], w[1][at + 1]};
                multiply_pairs(sums[(u * N_SUB + i + k) % 2], fragment, v + 2 * k);
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

// What a product of 16 x 32 takes of both rows' words: of nibbles the low ones of two words, or the high ones where
// they lie, 16 times as large.
static __device__ __forceinline__ void multiply_nibbles(int *sums, const unsigned *first, const unsigned *second,
                                                        unsigned mask, unsigned b0, unsigned b1)
{
    const unsigned a[4] = {first[0] & mask, second[0] & mask, first[1] & mask, second[1] & mask};
    mma_u8(sums, a, b0, b1);
}

// Group j of a stage, whose columns of x begin at x: sums += its products, sums[1] 16 times as large where IS_SPREAD.
// Lanes of other groups keep zeros.
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
        for (int h = 0; h < 2; h++) read_words(row[h], j, u, words[h]);
        if (!X_FIRST) read_digits<PER>(x + (u * 4 + t) * PER, mine, v);
#if IS_SPREAD
#    pragma unroll
        for (int k = 0; k < PER / 8; k += 2) {
            multiply_nibbles(sums[0], &words[0][k], &words[1][k], low, v[2 * k], v[2 * k + 1]);
            multiply_nibbles(sums[1], &words[0][k], &words[1][k], ~low, v[2 * k + 2], v[2 * k + 3]);
        }
#else
#    pragma unroll
        for (int k = 0; k < PER / 8; k++) {
            unsigned a[4];
#    pragma unroll
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
#endif
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

// The x of a stage, from `place` on, and what is known of the lane's group.
static __device__ __forceinline__ float2 read_first(const memory &m, int place, unsigned (*b)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
#if DIGITS
            const unsigned char *x = (const unsigned char *)m.x + g % 4 * m.pitch + place + k * OF_GROUP;
            read_digits<PER>(x + (u * 4 + t) * PER, g / 4 == k && g % 4 < 3, b[k * (X_READS / AT_ONCE)] + u * PER / 4);
#else
#    pragma unroll
            for (int i = 0; i < N_SUB; i++)
                read_x(m.x + g % 2 * m.pitch + place, k * UNITS + u, i, g / 2 == k, b[(k * UNITS + u) * N_SUB + i]);
#endif
        }
    return m.of_x[place / OF_GROUP + GROUP_OF(t) % AT_ONCE];
}

// A stage by the vector from `place` of x on: rows[h] += the lane's share. Its rows g and g + 8 begin at row[], their
// scales at scale[].
static __device__ __forceinline__ void multiply(const memory &m, const unsigned char *const *row,
                                                const unsigned char *const *scale, int place, float2 first_of_x,
                                                unsigned (*b)[4], float *rows)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int from = 0; from < N_GROUPS; from += AT_ONCE) {
        const int j = from + GROUP_OF(t) % AT_ONCE;
        const float2 of_x = X_FIRST ? first_of_x : m.of_x[place / OF_GROUP + j];
        unsigned words[2] = {};
#pragma unroll
        for (int h = 0; h < 2 && SCALED; h++)
            words[h] = OF_SCALE == 2 ? ((const unsigned short *)scale[h])[j] : ((const unsigned *)scale[h])[j];
#if DIGITS // whose lanes have digits 0 and 1, or 2
        int sums[2][4] = {};
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            multiply_digits(row, (unsigned char *)m.x + g % 4 * m.pitch + place + (from + k) * OF_GROUP, from + k,
                            g / 4 == k && g % 4 < 3, b[k * (X_READS / AT_ONCE)], sums);
        const float first = of_x.x * (t % 2 ? 1 : 65536), second = of_x.x * (t % 2 ? 0 : 256),
                    less = t % 2 ? 0 : of_x.y;
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const int shift = IS_SPREAD ? 4 : 0;
            const float sum = first * (float)(sums[0][2 * h] + (sums[1][2 * h] >> shift)) +
                              second * (float)(sums[0][2 * h + 1] + (sums[1][2 * h + 1] >> shift));
            if (GROUP_OF(t) < AT_ONCE) rows[h] += scaled(row[h], words[h], j, less, sum);
        }
#else
        float sums[2][4] = {};
        const unsigned short *x = m.x + g % 2 * m.pitch + place;
#    pragma unroll
        for (int k = 0; k < AT_ONCE; k++) multiply_group(row, x, from + k, g / 2 == k, b + k * UNITS * N_SUB, sums);
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const float sum = sums[0][2 * h] + sums[0][2 * h + 1] + sums[1][2 * h] + sums[1][2 * h + 1];
            if (t < AT_ONCE) rows[h] += scaled(row[h], words[h], j, 0, IS_PLAIN ? sum : of_x.x * sum);
        }
#endif
    }
}

// ---- finished rows

// Blocks of a cluster share the columns of its tiles and finish them in turn.
struct tiles {
    int rank, first, step; // of the block; its cluster's first tile, and from one to the next
};

template <int BLOCKS> static __device__ __forceinline__ tiles tiles_of_cluster()
{
    return {BLOCKS == 1 ? 0 : (int)blockIdx.x % BLOCKS, (int)blockIdx.x / BLOCKS, (int)gridDim.x / BLOCKS};
}

// Where the sums of the cluster's i-th tile come together, in the block that finishes it.
template <int BLOCKS> static __device__ __forceinline__ float2 *partial_of(const memory &m, int i)
{
    return m.partial + i % RING / BLOCKS * (BLOCKS * WARPS * 8);
}

// One warp: the sums of the teams, tile after tile, and what comes after.
template <int BLOCKS>
static __device__ __forceinline__ void finish_all(const wt_llm_quant_args &a, const memory &m, const float *squares)
{
    const tiles in = tiles_of_cluster<BLOCKS>();
    const int lane = threadIdx.x % 32, slot = lane % 16, half = lane / 16, all = a.team * BLOCKS;
    const float x_scale = BLOCKS > 1 ? 1 : scale_of(a.m, squares, a.team);
    for (int i = in.rank, tile = in.first + i * in.step; tile < a.n_tiles; i += BLOCKS, tile += BLOCKS * in.step) {
        const tile_place at = place_tile(a.m, tile);
        const int part = slot < 8 ? at.part[0] : at.part[1], row = (slot < 8 ? at.row[0] : at.row[1]) + slot % 8;
        const wt_llm_part &p = a.m.parts[part];
        const bool valid = !half && row < p.rows, stored = valid && (!a.m.gated || slot < 8);
        float *out = a.m.parts[a.m.gated ? 0 : part].out + row;
        const float factor = valid && !SCALED && p.scales ? ((const float *)p.scales)[row / a.scale_rows] : 1;
        const float bias = valid && p.bias ? p.bias[row] : 0, old = stored && a.m.add ? *out : 0;
        const float *partial = (const float *)partial_of<BLOCKS>(m, i) + slot % 8 * 2 + slot / 8;
        unsigned long long *summed = &m.summed[i % RING];
        if (BLOCKS > 1 && lane == 0) barrier_expect(summed, all * 64);
        barrier_wait(summed, i / RING & 1);
        float y = 0;
#pragma unroll 4
        for (int w = half; w < all; w += 2) y += partial[16 * w];
        y += __shfl_xor_sync(ALL, y, 16);
        if (tile + RING * in.step < a.n_tiles && lane < BLOCKS) { // else nobody waits for it
            if (BLOCKS == 1)
                barrier_arrive(&m.finished[i % RING]);
            else
                barrier_arrive_at(&m.finished[i % RING], lane);
        }
        y = y * (factor * x_scale) + bias;
        const float gate = __shfl_down_sync(ALL, y, 8);
        if (a.m.gated)
            y *= activate(a.m.activation, gate);
        else
            y = activate(a.m.activation, y);
        if (stored) *out = old + y;
    }
}

// A warp's share of the tiles of its team.
template <int BLOCKS>
static __device__ __forceinline__ void multiply_all(const wt_llm_quant_args &a, const memory &m, int warp, int team,
                                                    int member)
{
    const tiles in = tiles_of_cluster<BLOCKS>();
    const int lane = threadIdx.x % 32, g = lane / 4, n_teams = a.n_teams;
    const unsigned char *stages = m.stages + member * HALF + g * PIECE;
    const unsigned char *scales = m.scales + g * a.scale_pitch + member * (N_GROUPS * OF_SCALE);
    unsigned b[X_READS][4] = {};
    int slot = team, parity = 0; // of several teams each has slots of its own, a tile each
    for (int i = team, tile = in.first + i * in.step; tile < a.n_tiles; i += n_teams, tile += n_teams * in.step) {
        float rows[2] = {0, 0};
        for (int turn = 0; turn < a.n_turns; turn++) {
            const unsigned char *at = stages + 2 * slot * m.half_bytes;
            const unsigned char *row[2] = {at, at + m.half_bytes};
            const unsigned char *scale = scales + 2 * slot * a.scale_bytes, *both[2] = {scale, scale + a.scale_bytes};
            const int place = (turn * WARPS + warp) * COLUMNS;
            float2 of_x = {0, 0};
            if (X_FIRST) of_x = read_first(m, place, b);
            barrier_wait(&m.full[slot], parity);
            multiply(m, row, both, place, of_x, b, rows);
            __syncwarp();
            if (lane == 0) barrier_arrive(&m.empty[slot]);
            slot += n_teams;
            if (slot >= a.n_stages) {
                slot -= a.n_stages;
                parity ^= 1;
            }
        }
        float2 *partial = partial_of<BLOCKS>(m, i) + (in.rank * a.team + member) * 8 + g;
        barrier_wait(&m.finished[i % RING], (i / RING & 1) ^ 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            rows[h] += __shfl_xor_sync(ALL, rows[h], 1);
            rows[h] += __shfl_xor_sync(ALL, rows[h], 2);
        }
        if (lane % 4 == 0) {
            if (BLOCKS == 1)
                *partial = {rows[0], rows[1]};
            else
                send_to(partial, i % BLOCKS, float2{rows[0], rows[1]}, &m.summed[i % RING]);
        }
        if (BLOCKS > 1) continue;
        __syncwarp();
        if (lane == 0) barrier_arrive(&m.summed[i % RING]);
    }
}

static __device__ __forceinline__ void create_stages(const wt_llm_quant_args &a, const memory &m, news *n)
{
    barrier_create(&n->asked, 1);
    for (int k = 0; k < a.n_stages; k++) {
        barrier_create(&m.full[k], a.has_boxes ? 1 : SCALED ? 64 : 32);
        barrier_create(&m.empty[k], a.team);
    }
    barriers_created();
}

template <int BLOCKS> static __device__ __forceinline__ void create_sums(const wt_llm_quant_args &a, const memory &m)
{
    for (int k = 0; k < RING; k++) {
        barrier_create(&m.summed[k], BLOCKS > 1 ? 1 : a.team);
        barrier_create(&m.finished[k], 1);
    }
    barriers_created();
}

template <int BLOCKS> static __device__ __forceinline__ void run(const wt_llm_quant_args &a)
{
    extern __shared__ uint4 shared[];
    __shared__ news n;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, member = warp & (a.team - 1);
    const memory m = memory_of(a, (unsigned char *)shared);
    const tiles in = tiles_of_cluster<BLOCKS>();
    const int turn = in.rank * a.n_turns;
    let_next_begin();
    ask_ahead(a.m);
    if (warp == WARPS) {
        if (lane == 0) create_stages(a, m, &n);
        __syncwarp();
        if (BLOCKS > 1) cluster_arrive();
        pass<TWO_MEET, 2>();
        pass<ALL_MEET, WARPS + 2>();
        if (!a.has_boxes)
            copy_rows(a, m, in.first, turn, in.step);
        else if (lane == 0)
            copy_boxes(a, m, in.first, turn, in.step, &n.asked);
        return;
    }
    if (warp > WARPS) {
        if (lane == 0) create_sums<BLOCKS>(a, m);
        __syncwarp();
        if (BLOCKS > 1) cluster_arrive();
        wait_for_earlier();
        meet<ALL_MEET, WARPS + 2>();
        if (BLOCKS > 1) cluster_wait();
        finish_all<BLOCKS>(a, m, n.squares);
        return;
    }
    const share own = {(turn * a.team + member) * COLUMNS, warp * COLUMNS, a.team * COLUMNS};
    constexpr int KEPT = BLOCKS > 1 ? 3 : 2; // of 6144 columns, and of 4096
    eight weights[KEPT];
    float mean = 0, scale = 1;
    if (BLOCKS > 1)
        cluster_arrive();
    else
        load_weights<KEPT>(a, own, 0, weights);
    if (warp == 0) meet<TWO_MEET, 2>(); // which tells the warp that copies
    wait_for_earlier();
    if (BLOCKS == 1 && a.m.norm_weight && a.m.norm_bias) measure(a.m, n.scratch, &mean, &scale);
    const float sum = stage_x<KEPT, BLOCKS == 1>(a, m, own, weights, mean, scale, &n.asked);
    if (BLOCKS == 1 && lane == 0) n.squares[warp] = sum;
    meet<ALL_MEET, WARPS + 2>();
    if (BLOCKS > 1) cluster_wait();
    multiply_all<BLOCKS>(a, m, warp, warp >> (31 - __clz(a.team)), member);
}

// Bounds of four warps more leave 80 registers, beside which a block of attention finds its own.
#define KERNEL(name, blocks)                                                                                           \
    extern "C" __global__ void CLUSTER_##blocks __launch_bounds__(32 * (WARPS + 4), 2)                                 \
        name(const __grid_constant__ wt_llm_quant_args a)                                                              \
    {                                                                                                                  \
        run<blocks>(a);                                                                                                \
    }

KERNEL(llm_quant, 1)
KERNEL(llm_quant_2, 2)
