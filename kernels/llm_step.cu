// A step of one token through all layers in one launch of a block on each processor. The weights do not depend on what
// is computed, so they never wait for it: one warp of a block copies the rows of the block's share, of all products in
// their order, to stages in shared memory as these become free, and is ahead of the others by all of them, also across
// the ends of products. Where all blocks meet, because a product needs the whole vector of the one before, the stages of
// all processors (some 20 MB) keep the memory busy.
//
//   product   rows are dealt to the blocks some at a time, in turn, so that neighbours read neighbouring addresses. A row
//             is shared by the warps of a team, as in llm_matvec.cu, its lanes 16 bytes each side by side. The vector
//             lies in shared memory as floats; every block computes the norm again. The sums of the warps wait in shared
//             memory until all rows of the block are done, or WT_LLM_STEP_ROWS of them
//   attend    blocks share heads and positions, as launched by itself (llm_attend.cuh)
//   meeting   a counter that goes up: a block counts itself when all it wrote is written, and goes on when all have.
//             What the next phase needs besides (the norm's weights, the cache) is read in between
//
// The copying warp waits for stages alone and the others for its copies, both in the same order; every block takes part
// in every meeting, whether it has rows or not. So none waits for ever as long as all blocks run at once. The last one to
// leave sets the counters back.
//
// A lane's elements are summed in order, then the lanes, then the warps, so a row does not depend on the grid. Compiled as
// llm_attend.cu, and for one type of weights. Nothing is in it before 9.0. Judge: the same step in launches
// (tests/test_llm_step.c).
#define WARPS          WT_LLM_STEP_WARPS
#define WORKERS        256
#define THREADS        WORKERS
#define ATTEND_THREADS WORKERS
#define UNROLL         2 // of 168 registers a thread

#include "llm_attend.cuh"
#include "llm_matvec.cuh"
#include "matmul_kernel.h"
#include "mbarrier.cuh"

// Two forms of matrices: the type, columns of a row that share a scale (0 = all), and the type of these: WT_MM_F32, F16,
// or WT_LLM_SCALE_ZERO.
#ifndef TYPE_0
#    define TYPE_0  WT_MM_BF16
#    define GROUP_0 0
#    define SCALE_0 WT_MM_F32
#    define TYPE_1  WT_MM_U4
#    define GROUP_1 128
#    define SCALE_1 WT_LLM_SCALE_ZERO
#endif

template <int TYPE> struct element;
template <> struct element<WT_MM_F32> {
    typedef float type;
};
template <> struct element<WT_MM_F16> {
    typedef f16 type;
};
template <> struct element<WT_MM_BF16> {
    typedef bf16 type;
};
template <> struct element<WT_MM_E4M3> {
    typedef e4m3 type;
};
template <> struct element<WT_MM_I8> {
    typedef i8 type;
};
template <> struct element<WT_MM_U4> {
    typedef nibbles type;
};

template <int TYPE, int GROUP_COLUMNS, int SCALE_TYPE> struct form {
    typedef typename element<TYPE>::type type;
    enum {
        SIZE = OF_CHUNK<type>, // columns of 16 bytes
        GROUP_SIZE = GROUP_COLUMNS,
        SCALE = SCALE_TYPE,
        IS_NIBBLES = TYPE == WT_MM_U4,
        STRIPS = WT_LLM_STEP_STRIPS(SIZE) // whose part of the vector a lane has
    };
};

#define WINDOW      4                           // phases that a block knows
#define PHASE_WORDS (sizeof(wt_llm_phase) / 16) // of 16 bytes
#define PIECE_BYTES (WT_LLM_STEP_STAGE / TEAM_ROWS) // of a row that is copied in pieces
#define TEAM_ROWS   WT_LLM_STEP_TEAM_ROWS
#define N_ROWS      WT_LLM_STEP_ROWS

struct memory {
    wt_llm_phase window[WINDOW], ahead; // phase k at k % WINDOW; the one that is being copied
    unsigned long long full[WT_LLM_STEP_MAX_STAGES], empty[WT_LLM_STEP_MAX_STAGES];
    float scratch[32];
    float sums[N_ROWS * WARPS]; // [rows][warps of a team]
};

// Stages in turn, as both sides see them.
struct turn {
    unsigned char *stages;
    int n, bytes, at;
    unsigned parity;
};

static __device__ __forceinline__ unsigned char *stage_of(const turn &t) { return t.stages + t.at * t.bytes; }

static __device__ __forceinline__ void take_turn(turn &t)
{
    if (++t.at < t.n) return;
    t.at = 0;
    t.parity ^= 1;
}

// ---- units of rows

struct unit {
    int part, row, n; // the first row, and how many there are
};

static __device__ __forceinline__ unit unit_at(const wt_llm_phase &p, int k)
{
    const wt_llm_matvec_args &a = p.product;
    const int results = 1 << p.unit_shift;
    int part = 0;
    for (; !a.gated && part + 1 < a.n_parts; part++) {
        const int of_part = (a.parts[part].rows + results - 1) >> p.unit_shift;
        if (k < of_part) break;
        k -= of_part;
    }
    return {part, k << p.unit_shift, min(results, a.parts[part].rows - (k << p.unit_shift))};
}

// Rows of a unit, of both parts of a gated product.
static __device__ __forceinline__ int rows_shift(const wt_llm_phase &p) { return p.unit_shift + (p.product.gated ? 1 : 0); }

// ---- the copying warp

// `bytes` from byte `at` of the unit's rows on, to the next stage, with their scales. Whole rows of a part are one copy.
static __device__ __forceinline__ void copy_stage(const wt_llm_phase &p, memory &m, turn &t, const unit &u, int at,
                                                  int bytes)
{
    const bool gated = p.product.gated, pieces = p.in_pieces, shared_scales = p.scale_rows > 1;
    const int of_part = !pieces ? 1 : gated ? TEAM_ROWS / 2 : TEAM_ROWS, n_parts = gated ? 2 : 1; // of_part: copies
    const int run = pieces ? 1 : 1 << p.unit_shift;                                                // rows from copy to copy
    const int row_bytes = pieces ? bytes : u.n * bytes, n = pieces ? min(of_part, u.n) : 1;
    const int scale_at = at / PIECE_BYTES * p.scale_pitch, scale_piece = min(p.scale_pitch, p.scale_bytes - scale_at);
    const int scale_bytes = pieces || shared_scales ? scale_piece : u.n * scale_piece;
    unsigned char *to = stage_of(t);
    unsigned long long *full = m.full + t.at;
    barrier_wait(m.empty + t.at, t.parity);
    barrier_expect(full, n_parts * (n * row_bytes + (shared_scales ? scale_bytes : n * scale_bytes)));
    for (int part = 0; part < n_parts; part++)
        for (int k = 0; k < n; k++) {
            const wt_llm_part &from = p.product.parts[u.part + part];
            const int row = u.row + k, slot = (part * of_part + k) * run;
            copy_bulk(to + slot * (pieces ? PIECE_BYTES : bytes), (const unsigned char *)from.weight + row * p.row_bytes + at,
                      row_bytes, full);
            if (scale_bytes && (!shared_scales || !k))
                copy_bulk(to + p.scales_at + (shared_scales ? part : slot) * p.scale_pitch,
                          (const unsigned char *)from.scales + row / p.scale_rows * (long long)p.scale_bytes + scale_at,
                          scale_bytes, full);
        }
    take_turn(t);
}

static __device__ __forceinline__ void copy_unit(const wt_llm_phase &p, memory &m, turn &t, const unit &u)
{
    const int row_bytes = (int)p.row_bytes, step = p.in_pieces ? PIECE_BYTES : row_bytes;
    for (int at = 0; at < row_bytes; at += step) copy_stage(p, m, t, u, at, min(step, row_bytes - at));
}

// Everything, in the order in which it is used.
static __device__ __noinline__ void copy_all(const wt_llm_step_args &a, memory &m, unsigned char *stages)
{
    turn t = {stages, a.n_stages, a.stage_bytes, 0, 1}; // new stages are empty
    const int lane = threadIdx.x % 32;
    uint4 word = {0, 0, 0, 0};
    if (lane < (int)PHASE_WORDS) word = ((const uint4 *)a.phases)[lane];
    for (int k = 0; k < a.n_phases; k++) {
        if (lane < (int)PHASE_WORDS) {
            ((uint4 *)&m.ahead)[lane] = word;
            if (k + 1 < a.n_phases) word = ((const uint4 *)(a.phases + k + 1))[lane];
        }
        __syncwarp();
        if (!lane && m.ahead.kind == WT_LLM_PRODUCT)
            for (int unit = blockIdx.x; unit < m.ahead.n_units; unit += gridDim.x)
                copy_unit(m.ahead, m, t, unit_at(m.ahead, unit));
        __syncwarp();
    }
}

// ---- products

// The row that a thread finishes, of a group of units that are done together.
struct ending {
    float *out; // NULL = none
    float bias, gate_bias, before, scale, gate_scale;
};

static __device__ __forceinline__ ending ending_of(const wt_llm_phase &p, int group)
{
    const wt_llm_matvec_args &a = p.product;
    const int of_group = N_ROWS >> rows_shift(p), index = threadIdx.x >> p.unit_shift;
    const int k = blockIdx.x + (group * of_group + index) * gridDim.x;
    if (index >= of_group || k >= p.n_units) return {NULL, 0, 0, 0, 1, 1};
    const unit u = unit_at(p, k);
    const int slot = threadIdx.x & ((1 << p.unit_shift) - 1), row = u.row + slot;
    if (slot >= u.n) return {NULL, 0, 0, 0, 1, 1};
    const wt_llm_part &part = a.parts[u.part], &gate = a.parts[1];
    const bool scaled = part.scales && !p.scale_bytes;
    return {part.out + row, part.bias ? part.bias[row] : 0, a.gated && gate.bias ? gate.bias[row] : 0,
            a.add ? part.out[row] : 0, scaled ? ((const float *)part.scales)[row / p.scale_rows] : 1,
            scaled && a.gated ? ((const float *)gate.scales)[row / p.scale_rows] : 1};
}

// Of a team's warps, in the order of llm_matvec.cu.
static __device__ __forceinline__ float team_sum(const float *sums, int warps)
{
    float x[WARPS];
#pragma unroll
    for (int k = 0; k < WARPS; k++) x[k] = k < warps ? sums[k] : 0;
#pragma unroll
    for (int step = WARPS / 2; step; step /= 2)
#pragma unroll
        for (int k = 0; k < step; k++)
            if (step < warps) x[k] += x[k + step];
    return x[0];
}

// All workers, when all sums of the group are there.
static __device__ __forceinline__ void finish(const wt_llm_phase &p, const ending &e, const float *sums, float scale)
{
    const wt_llm_matvec_args &a = p.product;
    const int results = 1 << p.unit_shift, index = threadIdx.x >> p.unit_shift;
    if (!e.out) return;
    const float *own = sums + ((index << rows_shift(p)) + (threadIdx.x & (results - 1))) * a.warps;
    float y = team_sum(own, a.warps) * e.scale * scale + e.bias;
    if (a.gated)
        y *= activate(a.activation, team_sum(own + results * a.warps, a.warps) * e.gate_scale * scale + e.gate_bias);
    else
        y = activate(a.activation, y);
    *e.out = e.before + y;
}

// Sums over the warp: lane l gets that of row l / 8.
static __device__ __forceinline__ float fold(float *sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = TEAM_ROWS / 2, bit = 16; half; half /= 2, bit /= 2)
#pragma unroll
        for (int k = 0; k < half; k++) {
            const bool upper = lane & bit;
            const float other = __shfl_xor_sync(ALL, upper ? sums[k] : sums[k + half], bit);
            sums[k] = (upper ? sums[k + half] : sums[k]) + other;
        }
    for (int step = 4; step; step /= 2) sums[0] += __shfl_xor_sync(ALL, sums[0], step);
    return sums[0];
}

// What a lane has of the vector: chunks own, own + width .. of a row.
template <class F> struct own_vector {
    float4 at[F::STRIPS][F::SIZE / 4];
    float sums[F::STRIPS]; // of nibbles
};

template <class F>
static __device__ __forceinline__ void take_own(const float4 *x, int n_chunks, int own, int width, own_vector<F> &v)
{
#pragma unroll
    for (int k = 0; k < F::STRIPS; k++) {
        const int c = own + k * width;
        v.sums[k] = 0;
#pragma unroll
        for (int q = 0; q < F::SIZE / 4; q++) {
            v.at[k][q] = c < n_chunks ? x[q * n_chunks + c] : float4{0, 0, 0, 0};
            if (F::IS_NIBBLES) v.sums[k] += v.at[k][q].x + v.at[k][q].y + (v.at[k][q].z + v.at[k][q].w);
        }
    }
}

// A chunk times its part of the vector, under the scale of its group; `column` is counted from the first of `scales`.
template <class F>
static __device__ __forceinline__ float multiply_chunk(uint4 w, const float4 *x, float x_sum, const unsigned char *scales,
                                                       int column, float sum)
{
    typedef typename F::type T;
    if (!F::GROUP_SIZE) return multiply<T>(w, x, sum);
    const int group = column / (F::GROUP_SIZE ? F::GROUP_SIZE : 1);
    const float product = multiply<T>(w, x, 0);
    if (F::SCALE == WT_LLM_SCALE_ZERO) {
        const unsigned both = ((const unsigned *)scales)[group];
        return sum + widen(f16{(unsigned short)both}) * 16 * (product - (1 + (float)(both >> 16) * 0.0625f) * x_sum);
    }
    const float scale = F::SCALE == WT_MM_F16 ? widen(((const f16 *)scales)[group]) : ((const float *)scales)[group];
    return sum + (F::IS_NIBBLES ? scale * 16 * (product - 1.5f * x_sum) : scale * product); // 8 is zero
}

// What a copy wrote. By its address in shared memory: through a pointer of any memory it takes several times as long.
static __device__ __forceinline__ uint4 load_shared(unsigned at)
{
    uint4 w;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                 : "r"(at)
                 : "memory");
    return w;
}

// Rows row, row + n_teams .. of a stage, TEAM_ROWS of them, from chunk `first` of them on: their sums with chunks
// first .. first + of_stage - 1 of the vector. Lanes without a chunk read the last one and multiply it with 0.
template <class F>
static __device__ __forceinline__ void multiply_stage(const wt_llm_phase &p, const unsigned char *stage, int row, int first,
                                                      int of_stage, int n_chunks, int own, const own_vector<F> &v, float *sums)
{
    const int n_teams = WARPS >> p.team_shift, width = 32 << p.team_shift, last = min(of_stage, n_chunks - first) - 1;
    const unsigned at_row = shared_of(stage) + row * of_stage * 16, pitch = n_teams * of_stage * 16;
#pragma unroll
    for (int strip = 0; strip < F::STRIPS; strip++) {
        if (strip * width < first) continue;
        if (strip * width > first + last) break;
        const int c = min(strip * width - first + own, last);
        uint4 w[TEAM_ROWS];
#pragma unroll
        for (int r = 0; r < TEAM_ROWS; r++) w[r] = load_shared(at_row + r * pitch + c * 16);
#pragma unroll
        for (int r = 0; r < TEAM_ROWS; r++) {
            const int at = row + r * n_teams;
            const int scales =
                p.scales_at + (p.scale_rows == 1 ? at : p.product.gated && at >= 1 << p.unit_shift) * p.scale_pitch;
            sums[r] = multiply_chunk<F>(w[r], v.at[strip], v.sums[strip], stage + scales, c * F::SIZE, sums[r]);
        }
    }
}

// The block's units.
template <class F>
static __device__ __forceinline__ void multiply_phase(const wt_llm_phase &p, memory &m, turn &t, float4 *x)
{
    typedef typename F::type T;
    const wt_llm_matvec_args &a = p.product;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_teams = WARPS >> p.team_shift, team = warp >> p.team_shift;
    const int own = threadIdx.x & ((32 << p.team_shift) - 1), unit_rows = 1 << rows_shift(p), n_chunks = a.columns / F::SIZE;
    const int of_stage = p.in_pieces ? PIECE_BYTES / 16 : n_chunks; // chunks of a row
    const int of_group = N_ROWS >> rows_shift(p), at_once = TEAM_ROWS * n_teams;
    ending e = ending_of(p, 0);
    const float scale = stage<T, true, 48 / F::SIZE>(a, n_chunks, x, m.scratch);
    own_vector<F> v;
    take_own(x, n_chunks, own, 32 << p.team_shift, v);
    int index = 0, group = 0; // index: of the unit in its group
    for (int k = blockIdx.x; k < p.n_units; k += gridDim.x, index++) {
        if (index == of_group) {
            sync_workers();
            finish(p, e, m.sums, scale);
            e = ending_of(p, ++group);
            index = 0;
            sync_workers(); // the sums are used
        }
        float sums[TEAM_ROWS] = {};
        for (int first = 0; first < n_chunks; first += of_stage) {
            barrier_wait(m.full + t.at, t.parity);
            for (int row = team; row < unit_rows; row += at_once) {
                multiply_stage<F>(p, stage_of(t), row, first, of_stage, n_chunks, own, v, sums);
                if (first + of_stage < n_chunks) continue; // the next stage has more of the same rows
                const float sum = fold(sums);
                if (lane % 8 == 0)
                    m.sums[((index * unit_rows + row + lane / 8 * n_teams) << p.team_shift) + (warp & (a.warps - 1))] = sum;
#pragma unroll
                for (int r = 0; r < TEAM_ROWS; r++) sums[r] = 0;
            }
            __syncwarp();
            if (!lane) barrier_arrive(m.empty + t.at);
            take_turn(t);
        }
    }
    sync_workers();
    finish(p, e, m.sums, scale);
}

typedef form<TYPE_0, GROUP_0, SCALE_0> form_0;
typedef form<TYPE_1, GROUP_1, SCALE_1> form_1;

static constexpr bool HAS_TWO = TYPE_0 != TYPE_1 || GROUP_0 != GROUP_1 || SCALE_0 != SCALE_1;

static __device__ __forceinline__ void multiply_phase_of(const wt_llm_phase &p, memory &m, turn &t, float4 *x)
{
    if (HAS_TWO && p.form)
        multiply_phase<form_1>(p, m, t, x);
    else
        multiply_phase<form_0>(p, m, t, x);
}

// The norm's weights to where the vector will be.
static __device__ __forceinline__ void stage_weights_of(const wt_llm_phase &p, float4 *x)
{
    const wt_llm_matvec_args &a = p.product;
    if (!a.norm_weight || a.norm_bias) return;
    if (HAS_TWO && p.form)
        stage_weights<form_1::type, true>(a, a.columns / form_1::SIZE, x);
    else
        stage_weights<form_0::type, true>(a, a.columns / form_0::SIZE, x);
}

// ---- attention

static __device__ __forceinline__ attend_part item_of(const wt_llm_attend_args &a, const wt_llm_token &token, int item,
                                                      int n_splits)
{
    return attend_part_of(a, token, 0, item / n_splits * HEADS, item % n_splits, n_splits);
}

// The cache's positions of the block's first item to the L2 cache.
static __device__ __forceinline__ void ask_for_item(const wt_llm_attend_args &a, const wt_llm_token &token, int n_splits)
{
    if ((int)blockIdx.x >= a.n_heads / HEADS * n_splits) return;
    const attend_part part = item_of(a, token, blockIdx.x, n_splits);
    ask_for_part(a, part, part.from);
}

// The block's items.
static __device__ __noinline__ void attend(const wt_llm_attend_args &a, const wt_llm_token &token, int n_splits,
                                           attend_memory &m)
{
    const int n_items = a.n_heads / HEADS * n_splits;
    for (int item = blockIdx.x; item < n_items; item += gridDim.x) {
        const attend_part part = item_of(a, token, item, n_splits);
        positions p;
        load_first(a, part, &p);
        turn_and_place(a, part, m);
        sync_workers();
        take_part(a, part, p, m);
        sync_workers();
        finish_part(a, part, m);
    }
}

// ---- meetings

struct meeting {
    unsigned *arrived, n; // n: arrivals of all blocks when this one is over
    uint4 word;           // of the phase that comes into the window
};

// All workers; the block is done with phase `phase`, whose place in the window and whose vector may be written over.
static __device__ __forceinline__ void arrive(const wt_llm_step_args &a, int phase, meeting &m)
{
    sync_workers();
    m.n += gridDim.x;
    if (!threadIdx.x) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(m.arrived) : "memory");
    const int word = (int)threadIdx.x - (WORKERS - 32);
    if (word >= 0 && word < (int)PHASE_WORDS && phase + WINDOW < a.n_phases)
        m.word = ((const uint4 *)(a.phases + phase + WINDOW))[word];
}

// Until all blocks have arrived, and what they wrote can be read.
static __device__ __forceinline__ void await(const wt_llm_step_args &a, int phase, wt_llm_phase *window, const meeting &m)
{
    const int word = (int)threadIdx.x - (WORKERS - 32);
    if (word >= 0 && word < (int)PHASE_WORDS && phase + WINDOW < a.n_phases)
        ((uint4 *)(window + phase % WINDOW))[word] = m.word;
    if (!threadIdx.x)
        for (unsigned there = m.n - 1; (int)(there - m.n) < 0;)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(m.arrived) : "memory");
    sync_workers();
}

static __device__ __forceinline__ void leave(unsigned *arrived)
{
    if (threadIdx.x || atomicAdd(arrived + 1, 1u) != gridDim.x - 1) return;
    arrived[0] = 0; // nobody looks at it any more
    arrived[1] = 0;
}

// ---- all of it

static __device__ __forceinline__ void open(const wt_llm_step_args &a, memory &m)
{
    static_assert(sizeof(wt_llm_phase) % 16 == 0 && PHASE_WORDS <= 32, "a warp copies a phase");
    static_assert(sizeof(memory) <= WT_LLM_STEP_FIXED, "the host reckons with it");
    const int n = min(WINDOW, a.n_phases) * (int)PHASE_WORDS;
    for (int k = threadIdx.x; k < n; k += WORKERS + 32) ((uint4 *)m.window)[k] = ((const uint4 *)a.phases)[k];
    if ((int)threadIdx.x < a.n_stages) {
        barrier_create(m.full + threadIdx.x, 1);
        barrier_create(m.empty + threadIdx.x, WARPS);
    }
    barriers_created();
    __syncthreads();
}

static __device__ __forceinline__ void work(const wt_llm_step_args &a, memory &m, uint4 *shared, unsigned char *stages)
{
    float4 *x = (float4 *)shared;
    turn t = {stages, a.n_stages, a.stage_bytes, 0, 0};
    meeting meet = {a.arrived, 0, {0, 0, 0, 0}};
    const wt_llm_token token = a.tokens[0];
    stage_weights_of(m.window[0], x);
    for (int k = 0;; k++) {
        sync_workers(); // the norm's weights are there
        multiply_phase_of(m.window[k % WINDOW], m, t, x);
        if (k + 1 == a.n_phases) break;
        arrive(a, k, meet);
        if (m.window[(k + 1) % WINDOW].kind == WT_LLM_ATTEND) {
            const wt_llm_attend_args &of = m.window[(k + 1) % WINDOW].attend;
            ask_for_item(of, token, a.n_splits);
            await(a, k, m.window, meet);
            attend(of, token, a.n_splits, *(attend_memory *)shared);
            arrive(a, ++k, meet);
        }
        stage_weights_of(m.window[(k + 1) % WINDOW], x);
        await(a, k, m.window, meet);
    }
    leave(a.arrived);
}

extern "C" __global__ void __launch_bounds__(WORKERS + 32, 1) llm_step(const __grid_constant__ wt_llm_step_args a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 shared[];
    __shared__ alignas(16) memory m;
    unsigned char *stages = (unsigned char *)shared + a.vector_bytes;
    open(a, m);
    if (threadIdx.x < WORKERS)
        work(a, m, shared, stages);
    else
        copy_all(a, m, stages);
#endif
}
