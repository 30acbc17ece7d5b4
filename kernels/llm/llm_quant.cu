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
// EXPERTS: of the experts that are chosen for one vector, a block has one's rows; which one that is, is known when the
// launch that chooses them has ended. What multiplies such a product's result comes when all of its blocks know.
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
#ifndef EXPERTS
#    define EXPERTS 0
#endif
#include "llm_quant_copy.cuh"
#include "llm_quant_multiply.cuh"
#include "llm_quant_x.cuh"

// ---- finished rows

// What sums are multiplied with: an RMSNorm's scale.
static __device__ __forceinline__ float scale_of(const wt_llm_matvec_args &a, const float *squares, int team)
{
    float sum = 0;
    if (!a.norm_weight || a.norm_bias) return 1;
    for (int w = 0; w < team; w++) sum += squares[w];
    return 1 / sqrtf(sum / (float)a.columns + a.eps);
}

// Blocks of a cluster share the columns of its tiles and finish them in turn.
struct tiles {
    int rank, first, step; // of the block; its cluster's first tile, and from one to the next
    int slot;              // of the choice, of EXPERTS
};

template <int BLOCKS> static __device__ __forceinline__ tiles tiles_of_cluster(const wt_llm_quant_args &a)
{
    const int rank = BLOCKS == 1 ? 0 : (int)blockIdx.x % BLOCKS, n_slots = EXPERTS ? a.choose.n_used : 1;
    const int cluster = (int)blockIdx.x / BLOCKS, n_clusters = (int)gridDim.x / BLOCKS;
    return {rank, cluster / n_slots, n_clusters / n_slots, cluster % n_slots};
}

// Where the sums of the cluster's i-th tile come together, in the block that finishes it.
template <int BLOCKS> static __device__ __forceinline__ float2 *partial_of(const memory &m, int i)
{
    return m.partial + i % RING / BLOCKS * (BLOCKS * WARPS * 8);
}

// What is waited for was done by threads of the block, or of the cluster.
template <int BLOCKS> static __device__ __forceinline__ void wait_for_sums(unsigned long long *barrier, unsigned parity)
{
    if (BLOCKS > 1)
        barrier_wait_in_cluster(barrier, parity);
    else
        barrier_wait(barrier, parity);
}

// One warp: the sums of the teams, tile after tile, and what comes after.
template <int BLOCKS>
static __device__ __forceinline__ void finish_all(const wt_llm_quant_args &a, const memory &m, const float *squares,
                                                  int expert)
{
    const tiles in = tiles_of_cluster<BLOCKS>(a);
    const int lane = threadIdx.x % 32, slot = lane % 16, half = lane / 16, all = a.team * BLOCKS;
    const float x_scale = BLOCKS > 1 ? 1 : scale_of(a.m, squares, a.team);
    for (int i = in.rank, tile = in.first + i * in.step; tile < a.n_tiles; i += BLOCKS, tile += BLOCKS * in.step) {
        const tile_place at = place_tile(a.m, tile);
        const int part = slot < 8 ? at.part[0] : at.part[1], row = (slot < 8 ? at.row[0] : at.row[1]) + slot % 8;
        const wt_llm_part &p = a.m.parts[part];
        const bool valid = !half && row < p.rows, stored = valid && (!a.m.gated || slot < 8);
        float *out = a.m.parts[a.m.gated ? 0 : part].out + in.slot * p.rows + row;
        const float *factors = (const float *)scales_of(a, part, expert);
        const float factor = valid && !SCALED && p.scales ? factors[row / a.scale_rows] : 1;
        const float bias = valid && p.bias ? p.bias[row] : 0, old = stored && a.m.add ? *out : 0;
        const float *partial = (const float *)partial_of<BLOCKS>(m, i) + slot % 8 * 2 + slot / 8;
        unsigned long long *summed = &m.summed[i % RING];
        if (BLOCKS > 1 && lane == 0) barrier_expect(summed, all * 64);
        wait_for_sums<BLOCKS>(summed, i / RING & 1);
        float y = 0;
#pragma unroll 4
        for (int w = half; w < all; w += 2) y += partial[16 * w];
        y += __shfl_xor_sync(ALL, y, 16);
        __syncwarp(); // all lanes have read: a shuffle orders no memory
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
    const tiles in = tiles_of_cluster<BLOCKS>(a);
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
            warp_gives_back(&m.empty[slot], __float_as_uint(rows[0]) | __float_as_uint(rows[1]));
            slot += n_teams;
            if (slot >= a.n_stages) {
                slot -= a.n_stages;
                parity ^= 1;
            }
        }
        float2 *partial = partial_of<BLOCKS>(m, i) + (in.rank * a.team + member) * 8 + g;
        wait_for_sums<BLOCKS>(&m.finished[i % RING], (i / RING & 1) ^ 1);
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

// The expert in a slot of the choice, by a warp. `tells`: also the launches to come.
static __device__ __forceinline__ int choose_slot(const wt_llm_quant_args &a, int slot, bool tells)
{
    const int lane = threadIdx.x % 32;
    const routed own = choose<WT_LLM_ROUTED / 32>(a.choose, a.choose.routes, NULL, NULL, tells);
    if (tells && lane < a.choose.n_used) {
        a.choose.chosen[lane] = own.expert;
        a.choose.shares[lane] = own.share;
    }
    if (tells && !lane) a.choose.tokens->lead = fminf(a.choose.tokens->lead, own.lead);
    return __shfl_sync(ALL, own.expert, slot);
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
    const tiles in = tiles_of_cluster<BLOCKS>(a);
    const int turn = in.rank * a.n_turns;
    const bool awaits = EXPERTS && !a.have_vectors; // the choice
    if (!awaits) let_next_begin();
    ask_ahead(a.m);
    if (warp == WARPS) {
        if (lane == 0) create_stages(a, m, &n);
        __syncwarp();
        if (BLOCKS > 1) cluster_arrive();
        pass<TWO_MEET, 2>();
        if (awaits) {
            wait_for_earlier();
            let_next_begin();
        }
        const int expert = EXPERTS ? choose_slot(a, in.slot, awaits && !blockIdx.x) : 0;
        if (EXPERTS && lane == 0) n.expert = expert;
        pass<ALL_MEET, WARPS + 2>();
        if (!a.has_boxes)
            copy_rows(a, m, in.first, turn, in.step, expert);
        else if (lane == 0)
            copy_boxes(a, m, in.first, turn, in.step, &n.asked, expert);
        return;
    }
    if (warp > WARPS) {
        if (lane == 0) create_sums<BLOCKS>(a, m);
        __syncwarp();
        if (BLOCKS > 1) cluster_arrive();
        wait_for_earlier();
        meet<ALL_MEET, WARPS + 2>();
        if (BLOCKS > 1) cluster_wait();
        finish_all<BLOCKS>(a, m, n.squares, EXPERTS ? n.expert : 0);
        return;
    }
    const share own = {(turn * a.team + member) * COLUMNS, warp * COLUMNS, a.team * COLUMNS,
                       a.m.x + (EXPERTS && a.have_vectors ? in.slot * a.m.columns : 0)};
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
    extern "C" __global__ void CLUSTER_##blocks __launch_bounds__(32 * (WARPS + 4), WT_LLM_QUANT_BLOCKS)               \
        name(const __grid_constant__ wt_llm_quant_args a)                                                              \
    {                                                                                                                  \
        run<blocks>(a);                                                                                                \
    }

KERNEL(llm_quant, 1)
KERNEL(llm_quant_2, 2)
