// The resident kernel: stays, waits for blocks at a doorbell in host memory, runs the composed chain on each, answers.
//
// A thread block has one stream or several, which it runs in turn; buffers lie in shared memory, and with one stream
// the instance and the plans do too as far as they fit. While it waits, one warp polls the doorbell and the orders.
// It leaves at a block boundary: by order, when it has lived long enough, or after one block (the graph path).
// Judge: the CPU's chain, 90 dB (sums in another order). tests/models/block_ring.pml has the ring's protocol.
#pragma once
#include "chain_control.cuh"

enum resident_verdict { RESIDENT_GO_ON, RESIDENT_BLOCK, RESIDENT_LEAVE, RESIDENT_KILLED, RESIDENT_OVER };

static __device__ __forceinline__ long long resident_now()
{
    long long now_ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now_ns));
    return now_ns;
}

// All threads; `bytes` is a multiple of 16, as both addresses are.
static __device__ void resident_copy(void *to, const void *from, unsigned long long bytes)
{
#pragma unroll 1
    for (unsigned long long i = threadIdx.x; i < bytes / sizeof(int4); i += blockDim.x)
        ((int4 *)to)[i] = ((const int4 *)from)[i];
}

// What thread 0 was told by the host, for all threads: the host may change its mind between two loads.
static __device__ resident_place resident_term(const resident_args &r, bool *leave)
{
    __shared__ resident_place place;
    __shared__ int told;
    if (threadIdx.x == 0) {
        const wt_block_word begin = block_load(&r.control->begin), orders = block_load(&r.control->orders);
        const unsigned int term = wt_block_turn(begin);
        told = wt_block_turn(orders) == term || wt_block_turn(block_load_acquire(r.left + blockIdx.x)) == term;
        place.turn = wt_block_data(begin);
        place.term = term;
    }
    __syncthreads();
    *leave = told;
    return place;
}

// Wait for a turn's doorbell; all threads get the verdict and the doorbell's data. Two lanes poll, doorbell and orders in
// one load: what more threads load while they wait takes from the rate at which the neighbours read their memory.
static __device__ int resident_wait(const resident_args &r, resident_place next, long long end_ns,
                                    unsigned int *doorbell)
{
    __shared__ int verdict;
    __shared__ unsigned int data;
    const wt_block_word *slot = r.down + next.turn % r.layout.slots * r.layout.down_words;
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        const wt_block_word *at = lane == 0 ? slot : &r.control->orders;
        for (int v = RESIDENT_GO_ON; v == RESIDENT_GO_ON;) {
            const wt_block_word word = lane < 2 ? block_load(at) : 0;
            const wt_block_word orders = __shfl_sync(~0u, word, 1), bell = __shfl_sync(~0u, word, 0);
            if (wt_block_turn(orders) == next.term) v = RESIDENT_KILLED;
            else if (wt_block_data(orders) == next.term) v = RESIDENT_LEAVE;
            else if (wt_block_turn(bell) == next.turn) v = RESIDENT_BLOCK;
            else if (__shfl_sync(~0u, resident_now(), 0) > end_ns) v = RESIDENT_OVER;
            if (lane == 0) verdict = v, data = wt_block_data(bell);
        }
    }
    __syncthreads();
    *doorbell = data;
    const int v = verdict;
    __syncthreads(); // before a later turn's answer takes their place
    return v;
}

// What the block says of parameters and points, for all streams of this thread block.
static __device__ void resident_header(const resident_args &r, const wt_block_word *slot, unsigned int turn,
                                       unsigned int doorbell)
{
    const resident_layout &l = r.layout;
#pragma unroll 1
    for (int i = threadIdx.x; doorbell & RESIDENT_HAS_TARGETS && i < l.n_params; i += blockDim.x)
        r.targets[blockIdx.x * l.n_params + i] =
            __uint_as_float(block_take(slot + RESIDENT_TARGETS + i, turn, block_load(slot + RESIDENT_TARGETS + i)));
#pragma unroll 1
    for (int k = threadIdx.x; doorbell & RESIDENT_HAS_POINTS && k < WT_MAX_POINTS; k += blockDim.x) {
        const wt_block_word *tap = slot + RESIDENT_TAPS + k, *insert = slot + RESIDENT_INSERTS + k;
        message.tap[k] = (int)block_take(tap, turn, block_load(tap));
        message.insert[k] = (int)block_take(insert, turn, block_load(insert));
    }
    if (threadIdx.x == 0) {
        if (doorbell & RESIDENT_HAS_TARGETS)
            message.sequence = block_take(slot + RESIDENT_SEQUENCE, turn, block_load(slot + RESIDENT_SEQUENCE));
        message.inserts = slot + l.inserts_at;
        message.turn = turn;
        message.plane = l.point_channels * l.max_frames;
        message.frames = (int)(doorbell & RESIDENT_FRAMES);
    }
    __syncthreads();
}

// A piece of the input into the chain's first buffer.
static __device__ void resident_fetch(const chain_args &a, const wt_block_word *in, float *buffers, int n)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < a.channels * n; i += blockDim.x) {
        const int c = i / n, f = i - c * n, at = c * message.frames + message.done + f;
        buffers[c * a.block_frames + f] = __uint_as_float(block_take(in + at, message.turn, block_load(in + at)));
    }
    __syncthreads();
}

// A piece of the answer; silence, and the instance anew, when a sample is not finite.
static __device__ void resident_answer(const chain_args &a, unsigned char *memory, const float *result,
                                       wt_block_word *out, int n)
{
    int finite = 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < a.out_channels * n; i += blockDim.x)
        finite &= (__float_as_uint(result[i / n * a.block_frames + i % n]) & 0x7f800000u) != 0x7f800000u;
    finite = __syncthreads_and(finite);
#pragma unroll 1
    for (int i = threadIdx.x; i < a.out_channels * n; i += blockDim.x) {
        const int c = i / n, f = i - c * n;
        const unsigned int y = finite ? __float_as_uint(result[c * a.block_frames + f]) : 0u;
        block_store(out + c * message.frames + message.done + f, y, message.turn);
    }
    if (finite) return;
    if (threadIdx.x == 0) atomicAdd_system(a.faults, 1ull);
    chain_rest(a, memory);
}

static __device__ void resident_readings(const resident_args &r, const chain_args &a, const unsigned char *memory,
                                         wt_block_word *to)
{
    int first = 0;
    for (int k = 0; k < a.n_nodes; first += a.places[k++].n_readings)
#pragma unroll 1
        for (int i = threadIdx.x; i < a.places[k].n_readings; i += blockDim.x)
            block_store(to + first + i, __float_as_uint(((const float *)(memory + a.places[k].readings))[i]),
                        message.turn);
}

// One block of one stream.
static __device__ void resident_stream(const resident_args &r, const chain_args &a, int s, unsigned char *memory,
                                       float *buffers, unsigned int doorbell)
{
    const resident_layout &l = r.layout;
    const unsigned int slot = message.turn % l.slots;
    wt_block_word *up = r.up + ((long long)slot * l.n_streams + s) * l.up_words;
    const wt_block_word *in =
        r.down + slot * l.down_words + l.in_at + (long long)s * a.channels * message.frames;
    wt_instance *instance = (wt_instance *)memory;
    long long position = instance->position;
    int moving = instance->moving;
    if (doorbell & RESIDENT_HAS_TARGETS && instance->sequence != message.sequence)
        moving = chain_aim(a, memory, a.ramp_quanta);
    __syncthreads();
    if (threadIdx.x == 0) {
        if (doorbell & RESIDENT_HAS_TARGETS) instance->sequence = message.sequence;
        message.taps = up + l.taps_at;
        message.points = s == 0 && doorbell & RESIDENT_HAS_POINTS ? 1 : 0;
        message.done = 0;
    }
    __syncthreads();
    for (int done = 0, n; done < message.frames; done += n, position += n) {
        const int phase = (int)(position & (WT_QUANTUM - 1));
        if (moving && phase == 0) moving = chain_control(a, memory, false);
        n = min(message.frames - done, moving ? WT_QUANTUM - phase : a.block_frames);
        resident_fetch(a, in, buffers, n);
        chain_process(a, memory, buffers, n, position);
        resident_answer(a, memory, buffers + a.output * a.buffer_channels * a.block_frames, up + l.out_at, n);
        __syncthreads();
        if (threadIdx.x == 0) message.done = done + n;
        __syncthreads();
    }
    if (s == 0) resident_readings(r, a, memory, up + l.readings_at);
    if (threadIdx.x == 0) {
        instance->position = position;
        instance->moving = moving;
        block_store(up, (unsigned int)message.frames, message.turn);
    }
    __syncthreads();
}

// Where this thread block works: `a` with what lies in shared memory, and the memory of its first stream.
static __device__ unsigned char *resident_move_in(const resident_args &r, chain_args *a, unsigned char *room)
{
    unsigned char *memory = r.chain.memory + blockIdx.x * r.chain.instance_bytes;
    if (threadIdx.x == 0) {
        *a = r.chain;
        a->targets = r.targets + blockIdx.x * r.layout.n_params;
    }
    __syncthreads();
    if (r.copy_memory) {
        resident_copy(room, memory, r.chain.instance_bytes);
        memory = room;
        room += r.chain.instance_bytes;
    }
    if (r.copy_plans) {
        resident_copy(room, r.chain.plans, r.plans_bytes);
        if (threadIdx.x == 0) a->plans = room;
        room += r.plans_bytes;
    }
    if (r.copy_places) {
        resident_copy(room, r.chain.places, r.chain.n_nodes * sizeof(wt_node_place));
        if (threadIdx.x == 0) a->places = (const wt_node_place *)room;
    }
    __syncthreads();
    // what the parameters aim at, for a reset before any of them is set
    for (int k = 0, first = 0; k < a->n_nodes; first += a->places[k++].n_params)
        for (int i = threadIdx.x; i < a->places[k].n_params; i += blockDim.x)
            r.targets[blockIdx.x * r.layout.n_params + first + i] =
                ((const wt_ramp *)(memory + a->places[k].ramps))[i].target;
    __syncthreads();
    return memory;
}

extern "C" __global__ void resident_run(const __grid_constant__ resident_args r)
{
    extern __shared__ __align__(16) float shared[];
    __shared__ chain_args a;
    const long long begin_ns = resident_now();
    const resident_layout &l = r.layout;
    bool leave;
    const resident_place first = resident_term(r, &leave);
    resident_place here = r.places[blockIdx.x];
    if (leave) return; // killed, or this term's state is with the host already
    if (here.term != first.term) {
        for (int s = blockIdx.x; s < l.n_streams; s += gridDim.x)
            resident_copy(r.chain.memory + s * r.chain.instance_bytes, r.exported + s * r.chain.instance_bytes,
                          r.chain.instance_bytes);
        here = first;
        __syncthreads();
    }
    unsigned char *memory = resident_move_in(r, &a, (unsigned char *)(shared + r.shared_floats));
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd_system(&r.control->n_started, 1u);

    int verdict;
    for (;;) {
        resident_place next = here;
        next.turn = wt_block_next(here.turn);
        unsigned int doorbell;
        verdict = resident_wait(r, next, begin_ns + r.life_ns + r.life_ns / 4, &doorbell);
        if (verdict != RESIDENT_BLOCK) break;
        const wt_block_word *slot = r.down + next.turn % l.slots * l.down_words;
        resident_header(r, slot, next.turn, doorbell);
        for (int s = blockIdx.x; s < l.n_streams; s += gridDim.x)
            resident_stream(r, a, s, r.copy_memory ? memory : r.chain.memory + s * r.chain.instance_bytes, shared,
                            doorbell);
        here = next;
        if (__syncthreads_or(r.once || resident_now() > begin_ns + r.life_ns)) {
            verdict = RESIDENT_OVER;
            break;
        }
    }
    if (verdict == RESIDENT_KILLED) return;
    if (r.copy_memory)
        resident_copy(r.chain.memory + blockIdx.x * r.chain.instance_bytes, memory, r.chain.instance_bytes);
    if (threadIdx.x == 0) r.places[blockIdx.x] = here;
    if (verdict != RESIDENT_LEAVE) return;
    __syncthreads();
    for (int s = blockIdx.x; s < l.n_streams; s += gridDim.x)
        resident_copy(r.exported + s * r.chain.instance_bytes, r.chain.memory + s * r.chain.instance_bytes,
                      r.chain.instance_bytes);
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        for (int s = blockIdx.x; s < l.n_streams; s += gridDim.x)
            block_store_release(r.left + s, here.turn, here.term);
}
