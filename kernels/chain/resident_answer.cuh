// How the resident kernel answers a block: what came with it, a piece after the other through the chain, the answer's
// samples, head and readings. What follows the answers of all streams is resident_after.
#pragma once
#include "chain_control.cuh"
#include "resident_asm.cuh"
#include "resident_slots.cuh"

// Where a chain's readings are in an instance's memory, in bytes, when it has no more.
#define RESIDENT_READINGS 64
static __shared__ unsigned int resident_reading_at[RESIDENT_READINGS];

// What the block says of parameters and points, for all streams of this thread block.
static __device__ __noinline__ void resident_header(const resident_args &r, const resident_block b)
{
    const resident_layout &l = r.layout;
    const wt_block_word *slot = b.down;
    for (int i = threadIdx.x; b.flags & RESIDENT_HAS_TARGETS && i < l.n_params; i += chain_threads())
        r.targets[blockIdx.x * l.n_params + i] = __uint_as_float(block_take(slot + RESIDENT_TARGETS + i, b.turn, 0));
    for (int k = threadIdx.x; b.flags & RESIDENT_HAS_POINTS && k < WT_MAX_POINTS; k += chain_threads()) {
        message.tap[k] = (int)block_take(slot + RESIDENT_TAPS + k, b.turn, 0);
        message.insert[k] = (int)block_take(slot + RESIDENT_INSERTS + k, b.turn, 0);
    }
    if (threadIdx.x == 0) {
        if (b.flags & RESIDENT_HAS_TARGETS) message.sequence = block_take(slot + RESIDENT_SEQUENCE, b.turn, 0);
        message.inserts = slot + l.inserts_at;
        message.plane = l.point_channels * l.max_frames;
        message.turn = b.turn;
        message.frames = b.frames;
    }
    __syncthreads();
}

// A piece of the input into the chain's first buffer, but for the first `n_here` words of the block, which are there.
static __device__ __noinline__ void resident_fetch(const chain_args &a, unsigned int turn, const wt_block_word *in,
                                                   int frames, int n, int n_here)
{
    for_each_frame(chain_channels(a), n, [&](int c, int f) {
        const int k = c * frames + f;
        if (k >= n_here) shared[c * chain_stride(a) + f] = __uint_as_float(block_take(in + k, turn, 0));
    });
    __syncthreads();
}

// A piece of the answer, from shared[result] on, as it is: the host makes silence of a block that is not finite.
// Returns whether this thread's samples are.
static __device__ __forceinline__ int resident_answer(const chain_args &a, unsigned int turn, int result,
                                                   wt_block_word *out, int frames, int n)
{
    int finite = 1;
    for_each_frame(chain_out_channels(a), n, [&](int c, int f) {
        const unsigned int y = __float_as_uint(shared[result + c * chain_stride(a) + f]);
        block_store(out + c * frames + f, y, turn);
        finite &= (y & 0x7f800000u) != 0x7f800000u;
    });
    return finite;
}

// Behind the answer: the instance anew when a sample was not finite.
static __device__ __noinline__ void resident_settle(const chain_args &a, unsigned char *memory, int finite)
{
    if (__syncthreads_and(finite)) return;
    if (threadIdx.x == 0) atomicAdd_system(a.faults, 1ull);
    chain_rest(a, memory);
}

// Head and readings of an answer, a word a lane of the last warp, which mostly has no samples to answer with.
static __device__ __forceinline__ void resident_show(const resident_args &r, const resident_block &b, int s,
                                                     const unsigned char *memory, wt_block_word *up)
{
    const int n_readings = r.layout.n_readings, n_few = s || n_readings > RESIDENT_READINGS ? 0 : n_readings;
#pragma unroll 1
    for (int i = (int)threadIdx.x - resident_keeper(); i >= 0 && i < RESIDENT_HEAD + n_few; i += 32) {
        unsigned int x = i < RESIDENT_HEAD ? resident_told[i]
                                           : *(const unsigned int *)(memory + resident_reading_at[i - RESIDENT_HEAD]);
        if (i == 0) x = (unsigned int)b.frames;
        if (i == RESIDENT_SENT) x = (unsigned int)resident_now();
        block_store(up + i, x, b.turn);
    }
}

// Readings of a chain that has more than resident_show knows, a node a warp.
static __device__ __noinline__ void resident_readings(const chain_args &a, unsigned int turn,
                                                      const unsigned char *memory, wt_block_word *to)
{
    const wt_node_place *places = chain_room_of(a, 0).places;
#pragma unroll 1
    for (int k = threadIdx.x / 32; k < a.n_nodes; k += chain_threads() / 32)
#pragma unroll 1
        for (int i = threadIdx.x & 31; i < places[k].n_readings; i += 32)
            block_store(to + places[k].first_reading + i, ((const unsigned int *)(memory + places[k].readings))[i],
                        turn);
}

// What follows the samples of a stream's answer.
static __device__ __forceinline__ void resident_close(const resident_args &r, const chain_args &a,
                                                      const resident_block &b, int s, unsigned char *memory,
                                                      wt_block_word *up, int finite)
{
    resident_show(r, b, s, memory, up);
    if (s == 0 && r.layout.n_readings > RESIDENT_READINGS)
        resident_readings(a, b.turn, memory, up + r.layout.readings_at);
    resident_settle(a, memory, b.turn ? finite : 1);
}

// What a block up to `end` leaves to be done. A kernel of one block would not have its tables in time.
static __device__ void resident_after(const resident_args &r, const chain_args &a, unsigned char *memory, long long end)
{
    chain_after(a, memory, end);
#ifdef CHAIN_IN_SHARED
    if (!r.once) chain_refresh(a, memory);
#endif
}

// What nodes learn of a piece of a block, by thread 0.
static __device__ __forceinline__ void resident_say(const unsigned char *memory, bool heard, int done, bool rehearsed)
{
    message.points = (heard ? CHAIN_HEARD : 0) | (((const wt_instance *)memory)->bypassed ? CHAIN_BYPASSED : 0);
    message.done = done;
#ifdef CHAIN_IN_SHARED
    chain_rehearsed = rehearsed;
#endif
}

// One block of one stream: the answer, with what comes after it left to be done. Of its input `n_here` words are in the
// chain's first buffer.
static __device__ void resident_stream(const resident_args &r, const chain_args &a, const resident_block &b, int s,
                                       unsigned char *memory, int n_here)
{
    const resident_layout &l = r.layout;
    wt_block_word *up = b.up + s * l.up_words;
#ifdef CHAIN_IN_SHARED
    memory = chain_room_of(a, memory).memory; // the same, as the compiler knows it
#endif
    wt_instance *instance = (wt_instance *)memory;
    long long position = instance->position;
    int moving = b.turn ? instance->moving : 0;
    if (b.flags & RESIDENT_HAS_TARGETS) {
        if (instance->sequence != message.sequence) moving = chain_aim(a, memory, a.ramp_quanta);
        __syncthreads();
        if (threadIdx.x == 0) instance->sequence = message.sequence;
    }
    int finite = 1;
    for (int done = 0, n; done < b.frames; done += n, position += n) {
        if (done) {
            resident_settle(a, memory, finite);
            resident_after(r, a, memory, position);
        }
        const int phase = (int)(position & (WT_QUANTUM - 1));
        if (moving && phase == 0) moving = chain_control(a, memory, false);
        n = min(b.frames - done, moving ? WT_QUANTUM - phase : a.block_frames);
        if (threadIdx.x == 0) {
            message.taps = up + l.taps_at;
            resident_say(memory, s == 0 && b.flags & RESIDENT_HAS_POINTS, done, b.turn == 0);
        }
        resident_fetch(a, b.turn, resident_input(r, b.down, s, b.frames) + done, b.frames, n, done ? 0 : n_here);
        chain_process(a, memory, n, position);
        finite = resident_answer(a, b.turn, a.output * chain_buffer_floats(a), up + l.out_at + done, b.frames, n);
    }
    resident_close(r, a, b, s, memory, up, finite);
    if (threadIdx.x == 0) {
        instance->position = position;
        instance->moving = moving;
    }
    __syncthreads();
}

#ifdef CHAIN_IN_SHARED
// A block that is as it was expected: no flags, nothing moves, all of it lies in the chain's first buffer. Its text is
// in line, for what a block waits for is jumps to text that has not run lately, and addresses.
static __device__ __forceinline__ void resident_plain(const resident_args &r, const chain_args &a,
                                                      const resident_block &b, unsigned char *memory,
                                                      long long position)
{
    memory = chain_room_of(a, memory).memory; // the same, as the compiler knows it
    chain_process_quick(a, memory, b.frames, position);
    const int finite = resident_answer(a, b.turn, a.output * chain_buffer_floats(a), b.up + r.layout.out_at, b.frames,
                                       b.frames);
    resident_close(r, a, b, 0, memory, b.up, finite);
    if (threadIdx.x == 0) ((wt_instance *)memory)->position = position + b.frames;
    __syncthreads();
}
#endif
