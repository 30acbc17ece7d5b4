// The resident kernel: stays, waits for blocks at a doorbell in host memory, runs the composed chain on each, answers.
//
// A thread block has one stream or several, which it runs in turn; buffers lie in shared memory, and with one stream
// the instance and the plans do too as far as they fit. While it waits the first of them polls the doorbell and the
// orders, and tells the others. What a block's own answer does not need (chain_after) runs when all streams' answers
// are on their way.
// It leaves at a block boundary: by order, to the next kernel, when it has lived long enough, or after one block (the
// graph path).
// Here is its life, from begin to end; how it waits is in resident_wait.cuh, how it answers in resident_answer.cuh.
// Judge: the CPU's chain, 90 dB (sums in another order). tests/models/block_ring.pml has the ring's protocol.
#pragma once
#include "resident_wait.cuh"
#include "resident_answer.cuh"

// All threads; `bytes` is a multiple of 16, as both addresses are.
static __device__ void resident_copy(void *to, const void *from, unsigned long long bytes)
{
#pragma unroll 1
    for (unsigned long long i = threadIdx.x; i < bytes / sizeof(int4); i += chain_threads())
        ((int4 *)to)[i] = ((const int4 *)from)[i];
}

// Where this thread block works: `a` with what lies in shared memory, the memory of its first stream, and a second
// instance for rehearsals or 0.
static __device__ unsigned char *resident_move_in(const resident_args &r, chain_args *a, unsigned char *room,
                                                  unsigned char **spare)
{
    unsigned char *memory = r.chain.memory + blockIdx.x * r.chain.instance_bytes;
    if (threadIdx.x == 0) {
        *a = r.chain;
        a->targets = r.targets + blockIdx.x * r.layout.n_params;
    }
    __syncthreads();
#ifdef CHAIN_IN_SHARED
    if (threadIdx.x == 0) chain_changed = CHAIN_RESTED;
#endif
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
        room += r.chain.n_nodes * sizeof(wt_node_place);
    }
    *spare = r.has_spare ? room : 0;
    if (r.has_spare) resident_copy(room, memory, r.chain.instance_bytes);
    __syncthreads();
    for (int k = 0; k < a->n_nodes; k++)
        for (int i = threadIdx.x; i < a->places[k].n_readings; i += chain_threads())
            if (r.layout.n_readings <= RESIDENT_READINGS)
                resident_reading_at[a->places[k].first_reading + i] = a->places[k].readings + i * sizeof(float);
    // what the parameters aim at, for a reset before any of them is set
    for (int k = 0, first = 0; k < a->n_nodes; first += wt_place_targets(&a->places[k++])) {
        const wt_node_place &p = a->places[k];
        float *targets = r.targets + blockIdx.x * r.layout.n_params + first;
        for (int i = threadIdx.x; i < p.n_params; i += chain_threads())
            targets[i] = ((const wt_ramp *)(memory + p.ramps))[i].target;
        if (threadIdx.x == 0) targets[p.n_params] = ((const wt_bypass *)(memory + p.bypass))->wanted;
    }
    __syncthreads();
#ifdef CHAIN_IN_SHARED
    if (!r.once) chain_refresh(*a, memory);
#endif
    return memory;
}

// Behind the last block: the state to where the next kernel finds it, or, when told to leave, to the host.
static __device__ __forceinline__ void resident_leave(const resident_args &r, const unsigned char *memory,
                                                      resident_place here, int verdict)
{
    const resident_layout &l = r.layout;
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
        for (int s = blockIdx.x; s < l.n_streams; s += gridDim.x) block_store_release(r.left + s, here.turn, here.term);
}

// The first thread block's thread 0: which kernel this is of all that began. They begin one after the other, and nobody
// else counts, so this needs no atomic addition, which not every bus carries to the host's memory.
static __device__ __forceinline__ unsigned int resident_count(const resident_args &r)
{
    volatile unsigned int *n_started = &r.control->n_started;
    const unsigned int number = *n_started + 1;
    *n_started = number;
    return number;
}

// What a kernel keeps from block to block. `memory` is that of its first stream, `spare` a second instance or 0.
struct resident_life {
    long long begin_ns, end_ns; // the latter: at the latest
    resident_place here;        // the last turn that was answered
    unsigned char *memory, *spare;
    int frames;                 // of the last block
    bool over, rehearse;        // what the next turn is: the end of the kernel's life, a rehearsal
    resident_pace pace;
    resident_watch watch;
    resident_shift shift;
};

// Where a kernel goes on from; the first of a term fetches the state from the host. False: there is nothing to do, as
// it has been killed, which another may not have seen yet, or this term's state is with the host already.
static __device__ __forceinline__ bool resident_begin(const resident_args &r, resident_place *here)
{
    bool leave;
    const resident_place first = resident_term(r, &leave);
    *here = r.places[blockIdx.x];
    const bool begins = here->term != first.term;
    if (begins) here->turn = first.turn, here->term = first.term;
    here->kernels++;
    __syncthreads();
    if (threadIdx.x == 0) r.places[blockIdx.x].kernels = here->kernels;
    if (leave) {
        here->turn = wt_block_next(here->turn);
        if (threadIdx.x == 0 && blockIdx.x == 0) resident_tell(r, *here, RESIDENT_KILLED, 0);
        return false;
    }
    if (begins) {
        for (int s = blockIdx.x; s < r.layout.n_streams; s += gridDim.x)
            resident_copy(r.chain.memory + s * r.chain.instance_bytes, r.exported + s * r.chain.instance_bytes,
                          r.chain.instance_bytes);
        __syncthreads();
    }
    return true;
}

static __device__ __forceinline__ unsigned char *resident_memory(const resident_args &r, const resident_life &k, int s)
{
    return CHAIN_KNOWN(1, r.copy_memory) ? k.memory : r.chain.memory + s * r.chain.instance_bytes;
}

// Wait for what comes next, a rehearsal at once, and tell the other thread blocks. Fills in `block` when it is one.
static __device__ __forceinline__ int resident_hear(const resident_args &r, resident_life &k, resident_place next,
                                                    resident_block *block, int *n_here)
{
    int verdict;
    *block = {next.turn, 0, 0, resident_slot(r, next.turn), resident_answer_slot(r, next.turn)};
    *n_here = 0;
    if (threadIdx.x == 0) resident_say(k.rehearse ? k.spare : k.memory, false, 0, k.rehearse);
    if (resident_number())
        verdict = resident_follow(r, next, &block->flags);
    else if (k.over)
        verdict = RESIDENT_OVER;
    else
        verdict = resident_wait(r, next, block->down, k.begin_ns, k.end_ns, &k.pace, &k.watch, &k.shift, k.frames,
                                n_here, &block->flags);
    if (resident_number() == 0 && resident_blocks() > 1 && threadIdx.x == 0)
        resident_tell(r, next, verdict, block->flags);
    if (verdict != RESIDENT_BLOCK) return verdict;
    if (k.rehearse) block->flags = k.frames;
    block->frames = (int)(block->flags & RESIDENT_FRAMES);
    return verdict;
}

// The answers of all streams of this thread block; a rehearsal's is the spare instance's.
static __device__ __forceinline__ void resident_play(const resident_args &r, const chain_args &a,
                                                     const resident_life &k, const resident_block &block,
                                                     int n_here)
{
    if (block.flags & RESIDENT_FLAGS) resident_header(r, block);
    for (int s = resident_number(); s < resident_streams(r); s += resident_blocks(), n_here = 0)
        resident_stream(r, a, block, s, k.rehearse ? k.spare : resident_memory(r, k, s), n_here);
}

// What is left to be done when all answers are on their way. Returns whether the block took so little of the time to
// the next that there is some for a rehearsal.
static __device__ __forceinline__ bool resident_finish(const resident_args &r, const chain_args &a,
                                                       const resident_life &k)
{
    const bool quick = 8 * (clock64() - k.pace.last) < k.pace.gap && k.frames <= a.block_frames;
    for (int s = resident_number(); s < resident_streams(r); s += resident_blocks()) {
        unsigned char *memory = resident_memory(r, k, s);
        resident_after(r, a, memory, ((const wt_instance *)memory)->position);
    }
    return quick;
}

// What the turn after a block is. A rehearsal is a block of silence after the answer, on the spare instance, by the
// same text from the last look on: what comes after an answer, and neighbours' kernels, put that out of the instruction
// caches. It changes only the spare, the buffers and what each block sets anew.
static __device__ __forceinline__ void resident_plan(resident_life &k, bool quick)
{
    k.over = __syncthreads_or(threadIdx.x == 0 && (k.shift.relieved || resident_now() > k.end_ns));
    k.rehearse = k.spare && !k.over && __syncthreads_or(threadIdx.x == 0 && quick);
    if (!k.rehearse || threadIdx.x) return;
    ((wt_instance *)k.spare)->position = ((const wt_instance *)k.memory)->position;
    ((wt_instance *)k.spare)->bypassed = ((const wt_instance *)k.memory)->bypassed;
}

// Blocks until there are to be no more. Returns why.
static __device__ __forceinline__ int resident_live(const resident_args &r, const chain_args &a, resident_life &k)
{
    for (;;) {
        const resident_watch kept = k.watch;
        resident_place next = k.here;
        resident_block block;
        int n_here;
        next.turn = k.rehearse ? 0 : wt_block_next(k.here.turn);
#ifdef CHAIN_IN_SHARED
        const wt_instance *instance = (const wt_instance *)k.memory; // a rehearsal is at the same position
        const long long position = instance->position;
        const bool still = k.rehearse || !instance->moving;
#endif
        const int verdict = resident_hear(r, k, next, &block, &n_here);
        if (verdict != RESIDENT_BLOCK) return verdict;
        k.frames = block.frames;
#ifdef CHAIN_IN_SHARED
        if (still && n_here && n_here == chain_channels(a) * block.frames && !(block.flags & RESIDENT_FLAGS))
            resident_plain(r, a, block, k.rehearse ? k.spare : k.memory, position);
        else
#endif
            resident_play(r, a, k, block, n_here);
        if (k.rehearse) {
            k.watch = kept, k.rehearse = false;
            continue;
        }
        k.watch = {resident_now()};
        const bool quick = resident_finish(r, a, k);
        k.here = next;
        if (r.once) return RESIDENT_OVER;
        resident_plan(k, quick);
    }
}

// One thread block an SM is enough; with the second number left out the compiler leaves room for two, 128 registers a
// thread, and keeps the rest in local memory, which a block beside neighbours that read has to wait for. With neither a
// chain's text may have more registers than its threads find room for, and a block would have fewer of these.
#ifdef RESIDENT_THREADS
#    define RESIDENT_BOUNDS __launch_bounds__(RESIDENT_THREADS, 1)
#else
#    define RESIDENT_BOUNDS
#endif
extern "C" __global__ void RESIDENT_BOUNDS resident_run(const __grid_constant__ resident_args given)
{
    // Neighbours' launches have the constant cache forget the arguments, and a block would wait for them from memory.
    __shared__ resident_args r;
    __shared__ chain_args a;
    resident_life k = {resident_now()};
    if (threadIdx.x == 0) r = given;
    __syncthreads();
    if (!resident_begin(r, &k.here)) return;
    k.memory = resident_move_in(r, &a, (unsigned char *)(shared + r.shared_floats), &k.spare);
    k.end_ns = k.begin_ns + r.life_ns + r.life_ns / 2;
    if (threadIdx.x == 0 && blockIdx.x == 0) k.shift.number = resident_count(r);
    k.pace = {clock64(), 0, 1};
    k.watch = {k.begin_ns};
    const int verdict = resident_live(r, a, k);
    resident_await_all();
    resident_leave(r, k.memory, k.here, verdict);
}
