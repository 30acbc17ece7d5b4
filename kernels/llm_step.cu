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
#include "mbarrier.cuh"

#ifndef WEIGHT_TYPE
#    define WEIGHT_TYPE WT_LLM_BF16
#endif

#if WEIGHT_TYPE == WT_LLM_F32
typedef float weight;
#elif WEIGHT_TYPE == WT_LLM_F16
typedef f16 weight;
#else
typedef bf16 weight;
#endif

#define WINDOW      4                           // phases that a block knows
#define PHASE_WORDS (sizeof(wt_llm_phase) / 16) // of 16 bytes
#define STAGE       WT_LLM_STEP_STAGE
#define HALF        (STAGE / 2) // of one of two rows
#define TEAM_ROWS   4           // rows of a stage that a team has, at most
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
    int n, at;
    unsigned parity;
};

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
    const int rows = a.gated ? p.unit_rows / 2 : p.unit_rows;
    int part = 0;
    for (; !a.gated && part + 1 < a.n_parts; part++) {
        const int of_part = (a.parts[part].rows + rows - 1) / rows;
        if (k < of_part) break;
        k -= of_part;
    }
    return {part, k * rows, min(rows, a.parts[part].rows - k * rows)};
}

// ---- the copying warp

// `bytes` from `first` on, and as many from `second` on if there is one, `apart` behind them, to the next stage.
static __device__ __forceinline__ void copy_stage(memory &m, turn &t, const unsigned char *first,
                                                  const unsigned char *second, int bytes, int apart)
{
    unsigned char *to = t.stages + t.at * STAGE;
    barrier_wait(m.empty + t.at, t.parity);
    barrier_expect(m.full + t.at, second ? 2 * bytes : bytes);
    copy_bulk(to, first, bytes, m.full + t.at);
    if (second) copy_bulk(to + apart, second, bytes, m.full + t.at);
    take_turn(t);
}

static __device__ __forceinline__ void copy_phase(memory &m, turn &t)
{
    const wt_llm_phase &p = m.ahead;
    const wt_llm_matvec_args &a = p.product;
    const int row_bytes = (int)p.row_bytes;
    for (int k = blockIdx.x; k < p.n_units; k += gridDim.x) {
        const unit u = unit_at(p, k);
        const unsigned char *first = (const unsigned char *)a.parts[u.part].weight + u.row * p.row_bytes, *second = NULL;
        if (a.gated)
            second = (const unsigned char *)a.parts[1].weight + u.row * p.row_bytes;
        else if (p.in_pieces && u.n > 1)
            second = first + row_bytes;
        if (!p.in_pieces) {
            copy_stage(m, t, first, second, u.n * row_bytes, p.unit_rows / 2 * row_bytes);
            continue;
        }
        for (int at = 0; at < row_bytes; at += HALF)
            copy_stage(m, t, first + at, second ? second + at : NULL, min(HALF, row_bytes - at), HALF);
    }
}

// Everything, in the order in which it is used.
static __device__ void copy_all(const wt_llm_step_args &a, memory &m, unsigned char *stages)
{
    turn t = {stages, a.n_stages, 0, 1}; // new stages are empty
    const int lane = threadIdx.x % 32;
    uint4 word = {0, 0, 0, 0};
    if (lane < (int)PHASE_WORDS) word = ((const uint4 *)a.phases)[lane];
    for (int k = 0; k < a.n_phases; k++) {
        if (lane < (int)PHASE_WORDS) {
            ((uint4 *)&m.ahead)[lane] = word;
            if (k + 1 < a.n_phases) word = ((const uint4 *)(a.phases + k + 1))[lane];
        }
        __syncwarp();
        if (!lane && m.ahead.kind == WT_LLM_PRODUCT) copy_phase(m, t);
        __syncwarp();
    }
}

// ---- products

// The row that a thread finishes, of a group of units that are done together.
struct ending {
    float *out; // NULL = none
    float bias, gate_bias, before;
};

// Rows that a unit gives, and units of a group.
static __device__ __forceinline__ int results_of(const wt_llm_phase &p)
{
    return p.product.gated ? p.unit_rows / 2 : p.unit_rows;
}

static __device__ __forceinline__ ending ending_of(const wt_llm_phase &p, int group)
{
    const wt_llm_matvec_args &a = p.product;
    const int of_group = N_ROWS / p.unit_rows, results = results_of(p), index = threadIdx.x / results;
    const int k = blockIdx.x + (group * of_group + index) * gridDim.x;
    if (index >= of_group || k >= p.n_units) return {NULL, 0, 0, 0};
    const unit u = unit_at(p, k);
    const int slot = threadIdx.x % results, row = u.row + slot;
    if (slot >= u.n) return {NULL, 0, 0, 0};
    const wt_llm_part &part = a.parts[u.part];
    return {part.out + row, part.bias ? part.bias[row] : 0, a.gated && a.parts[1].bias ? a.parts[1].bias[row] : 0,
            a.add ? part.out[row] : 0};
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
    const int results = results_of(p);
    if (!e.out) return;
    const float *own = sums + (threadIdx.x / results * p.unit_rows + threadIdx.x % results) * a.warps;
    float y = team_sum(own, a.warps) * scale + e.bias;
    if (a.gated)
        y *= activate(a.activation, team_sum(own + results * a.warps, a.warps) * scale + e.gate_bias);
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

// What a warp has of a stage, of n_rows rows `pitch` chunks of 16 bytes from each other, n_chunks long: chunks own,
// own + width .. of each.
static __device__ __forceinline__ void multiply_stage(const uint4 *w, int pitch, int n_rows, int n_chunks, int own,
                                                      int width, const float4 *x, int x_pitch, float *sums)
{
    for (int c = own; c < n_chunks; c += width) {
        float4 v[OF_CHUNK<weight> / 4];
#pragma unroll
        for (int q = 0; q < OF_CHUNK<weight> / 4; q++) v[q] = x[q * x_pitch + c];
#pragma unroll
        for (int r = 0; r < TEAM_ROWS; r++)
            if (r < n_rows) sums[r] = multiply<weight>(w[r * pitch + c], v, sums[r]);
    }
}

static __device__ __forceinline__ void multiply_phase(const wt_llm_phase &p, memory &m, turn &t, float4 *x)
{
    const wt_llm_matvec_args &a = p.product;
    const int warp = threadIdx.x / 32, n_teams = WARPS / a.warps, team = warp / a.warps, width = 32 * a.warps;
    const int own = threadIdx.x % width, n_chunks = a.columns / OF_CHUNK<weight>;
    const int of_stage = p.in_pieces ? HALF / 16 : n_chunks; // chunks of a row
    const int team_rows = p.unit_rows / n_teams, of_group = N_ROWS / p.unit_rows;
    ending e = ending_of(p, 0);
    const float scale = stage<weight, true, 6>(a, n_chunks, x, m.scratch);
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
            const uint4 *w = (const uint4 *)(t.stages + t.at * STAGE);
            barrier_wait(m.full + t.at, t.parity);
            multiply_stage(w + team * of_stage, n_teams * of_stage, team_rows, min(of_stage, n_chunks - first), own, width,
                           x + first, n_chunks, sums);
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(m.empty + t.at);
            take_turn(t);
        }
        const float sum = fold(sums);
        const int row = threadIdx.x % 32 / 8 * n_teams + team;
        if (threadIdx.x % 8 == 0 && threadIdx.x % 32 / 8 < team_rows)
            m.sums[(index * p.unit_rows + row) * a.warps + warp % a.warps] = sum;
    }
    sync_workers();
    finish(p, e, m.sums, scale);
}

static __device__ __forceinline__ void stage_weights_of(const wt_llm_matvec_args &a, float4 *x)
{
    if (a.norm_weight && !a.norm_bias) stage_weights<weight, true>(a, a.columns / OF_CHUNK<weight>, x);
}

// ---- attention

static __device__ __forceinline__ attend_part item_of(const wt_llm_attend_args &a, const wt_llm_token &token, int item,
                                                      int n_splits)
{
    return attend_part_of(a, token, 0, item / n_splits * HEADS, item % n_splits, n_splits);
}

// The block's items; of the first one the cache's positions were asked for.
static __device__ __forceinline__ void attend(const wt_llm_attend_args &a, const wt_llm_token &token, int n_splits,
                                              positions &p, attend_memory &m)
{
    const int n_items = a.n_heads / HEADS * n_splits;
    for (int item = blockIdx.x; item < n_items; item += gridDim.x) {
        const attend_part part = item_of(a, token, item, n_splits);
        if (item != (int)blockIdx.x) ask_for_part(a, part, &p);
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
    turn t = {stages, a.n_stages, 0, 0};
    meeting meet = {a.arrived, 0, {0, 0, 0, 0}};
    const wt_llm_token token = a.tokens[0];
    stage_weights_of(m.window[0].product, x);
    for (int k = 0;; k++) {
        sync_workers(); // the norm's weights are there
        multiply_phase(m.window[k % WINDOW], m, t, x);
        if (k + 1 == a.n_phases) break;
        arrive(a, k, meet);
        if (m.window[(k + 1) % WINDOW].kind == WT_LLM_ATTEND) {
            const wt_llm_attend_args &of = m.window[(k + 1) % WINDOW].attend;
            positions p;
            if ((int)blockIdx.x < of.n_heads / HEADS * a.n_splits)
                ask_for_part(of, item_of(of, token, blockIdx.x, a.n_splits), &p);
            await(a, k, m.window, meet);
            attend(of, token, a.n_splits, p, *(attend_memory *)shared);
            arrive(a, ++k, meet);
        }
        stage_weights_of(m.window[(k + 1) % WINDOW].product, x);
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
