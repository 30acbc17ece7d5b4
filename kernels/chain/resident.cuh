// The resident kernel: stays, waits for blocks at a doorbell in host memory, runs the composed chain on each, answers.
//
// A thread block has one stream or several, which it runs in turn; buffers lie in shared memory, and with one stream
// the instance and the plans do too as far as they fit. While it waits the first of them polls the doorbell and the
// orders, and tells the others. What a block's own answer does not need (chain_after) runs when all streams' answers
// are on their way.
// It leaves at a block boundary: by order, to the next kernel, when it has lived long enough, or after one block (the
// graph path).
// Judge: the CPU's chain, 90 dB (sums in another order). tests/models/block_ring.pml has the ring's protocol.
#pragma once
#include "chain_control.cuh"
#include "resident_asm.cuh"

#define RESIDENT_REST_NS  2000 // between two looks at the doorbell while no block is due
#define RESIDENT_RELAY_NS 100  // between two looks at what the first thread block tells
#define RESIDENT_APART    1800 // clocks from one look to the next while one is
#define RESIDENT_AHEAD    128  // words of input that come with a look, at most
#define RESIDENT_LOOKS    4    // places for looks under way

enum resident_verdict { RESIDENT_GO_ON, RESIDENT_BLOCK, RESIDENT_LEAVE, RESIDENT_KILLED, RESIDENT_OVER };

// All threads; `bytes` is a multiple of 16, as both addresses are.
static __device__ void resident_copy(void *to, const void *from, unsigned long long bytes)
{
#pragma unroll 1
    for (unsigned long long i = threadIdx.x; i < bytes / sizeof(int4); i += chain_threads())
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

// The block at hand, as every thread knows it.
struct resident_block {
    unsigned int turn, flags;
    int frames;
    const wt_block_word *down; // its slot
    wt_block_word *up;         // its slot, of the first stream
};

// An answer's head, but for the frames and the time of sending: the last warp keeps it and sends it.
static __shared__ unsigned int resident_told[RESIDENT_HEAD];
static __device__ __forceinline__ int resident_keeper() { return chain_threads() - 32; } // its first thread

// Where a chain's readings are in an instance's memory, in bytes, when it has no more.
#define RESIDENT_READINGS 64
static __shared__ unsigned int resident_reading_at[RESIDENT_READINGS];

// How blocks come: at a pace, so most of the time between two need not be spent on the bus. In clocks.
struct resident_pace {
    long long last, gap; // when the last block came, and how long after the one before
    unsigned int round;  // looks so far
};

// Thread 0's: which kernel this is of all that began, and whether the next one is queued behind it.
struct resident_shift {
    unsigned int number;
    bool relieved;
};

// The keeper's: what the kernel was about since the last answer, for who asks why a block was late.
struct resident_watch {
    long long sent_ns, looked_ns;         // the last answer, the last look
    unsigned int busy_ns, hole_ns, looks; // until the first look; the longest from one to the next; how many
};

static __device__ __forceinline__ void resident_watch_look(resident_watch *w, long long begin_ns)
{
    const long long now_ns = resident_now();
    const unsigned int since_ns = (unsigned int)(now_ns - (w->looks ? w->looked_ns : w->sent_ns));
    if (!w->looks)
        w->busy_ns = since_ns;
    else
        w->hole_ns = max(w->hole_ns, since_ns);
    w->looked_ns = now_ns;
    w->looks++;
    resident_told[RESIDENT_SEEN] = (unsigned int)now_ns;
    resident_told[RESIDENT_BUSY] = w->busy_ns;
    resident_told[RESIDENT_HOLE] = w->hole_ns;
    resident_told[RESIDENT_N_LOOKS] = w->looks;
    resident_told[RESIDENT_AGE] = (unsigned int)((now_ns - begin_ns) >> RESIDENT_AGE_SHIFT);
}

// Where all lies in shared memory, one thread block has one stream.
static __device__ __forceinline__ int resident_blocks() { return CHAIN_KNOWN(1, (int)gridDim.x); }
static __device__ __forceinline__ int resident_number() { return CHAIN_KNOWN(0, (int)blockIdx.x); }
static __device__ __forceinline__ int resident_streams(const resident_args &r)
{
    return CHAIN_KNOWN(1, r.layout.n_streams);
}

// The slots of a turn, of which there is a power of two; turn 0 is a rehearsal's, in device memory.
static __device__ __forceinline__ const wt_block_word *resident_slot(const resident_args &r, unsigned int turn)
{
    return turn ? r.down + (turn & (r.layout.slots - 1)) * r.layout.down_words : r.rehearsal;
}

static __device__ __forceinline__ wt_block_word *resident_answer_slot(const resident_args &r, unsigned int turn)
{
    const resident_layout &l = r.layout;
    return turn ? r.up + (long long)(turn & (l.slots - 1)) * resident_streams(r) * l.up_words
                : r.rehearsal + l.down_words;
}

static __device__ __forceinline__ const wt_block_word *resident_input(const resident_args &r, const wt_block_word *slot,
                                                                      int s, int frames)
{
    return slot + r.layout.in_at + (long long)s * chain_channels(r.chain) * frames;
}

// What a look says of a turn, once it is back.
static __device__ __forceinline__ int resident_verdict_of(const wt_block_word *look, resident_place next)
{
    const wt_block_word bell = look[0], orders = look[2];
    if (wt_block_turn(orders) == next.term) return RESIDENT_KILLED;
    if (wt_block_data(orders) == next.term) return RESIDENT_LEAVE;
    return wt_block_turn(bell) == next.turn ? RESIDENT_BLOCK : RESIDENT_GO_ON;
}

// Two words of input that came with a look into the chain's first buffer, at `to`. Returns whether both are the turn's.
static __device__ __forceinline__ bool resident_take_two(const wt_block_word *words, unsigned int turn, float *to)
{
    const ulonglong2 two = *(const ulonglong2 *)words;
    if (wt_block_turn(two.x) != turn || wt_block_turn(two.y) != turn) return false;
    *(float2 *)to = make_float2(__uint_as_float(wt_block_data(two.x)), __uint_as_float(wt_block_data(two.y)));
    return true;
}

// Wait for a turn's doorbell; all threads get the verdict and the doorbell's data. While no block is due two lanes ask
// for the doorbell and the orders, and rest. When one is, each look asks for the input too, for a block of `frames`, so
// that a block needs one trip over the bus and not two; and the next look is on its way before the last one is back,
// which costs no thread anything, as what comes lands in shared memory by itself. Lines of host memory are read in any
// order: a look that brings the doorbell may lack samples, and then the next one, which is nearly there, has them.
// `n_here`: words of input that are in the chain's first buffer. Turn 0 has come already.
static __device__ int resident_wait(const resident_args &r, resident_place next, const wt_block_word *slot,
                                    long long begin_ns, long long end_ns, resident_pace *pace,
                                    resident_watch *watch, resident_shift *shift, int frames, int *n_here,
                                    unsigned int *doorbell)
{
    // a look: the doorbell's two words, orders and `launched`, input
    __shared__ __align__(16) wt_block_word looks[RESIDENT_LOOKS][4 + RESIDENT_AHEAD];
    __shared__ int is_due[2]; // at the next look; the same for all threads
    const wt_block_word *input = resident_input(r, slot, 0, frames); // the first thread block's first stream
    const wt_block_word *at = threadIdx.x == 0 ? slot : &r.control->orders;
    const long long soon = next.turn ? pace->last + pace->gap - pace->gap / 16 : 0, late = pace->last + 2 * pace->gap;
    const bool asks = frames % 2 == 0 && frames <= chain_stride(r.chain); // it lies in the buffer as in the block
    const int ahead = asks ? min(chain_channels(r.chain) * frames, RESIDENT_AHEAD) : 0;
    const int mine = 2 * (int)threadIdx.x, c = mine < ahead ? mine / frames : 0;
    float *to = shared + c * chain_stride(r.chain) + mine - c * frames;
    unsigned int round = pace->round;
    const auto decide = [&](unsigned int of) {
        const long long now = clock64();
        if (threadIdx.x == 0) is_due[of & 1] = now >= soon && now < late;
    };
    decide(round);
    __syncthreads();
    int v;
    for (;; round++) {
        const long long now = clock64();
        const bool due = is_due[round & 1];
        wt_block_word *look = looks[round % RESIDENT_LOOKS];
        if (threadIdx.x < 2) resident_ask(look + mine, at);
        if (due && mine < ahead) resident_ask(look + 4 + mine, input + mine);
        resident_asked();
        if (due) {
            resident_await_others();
            look = looks[(round - 1) % RESIDENT_LOOKS];
        } else {
            resident_await_all();
            if (round % 32 == 0 && threadIdx.x < 2) look[mine] = block_load(at); // past whatever might keep a copy
        }
        const bool lacks = mine < ahead && !(due && resident_take_two(look + 4 + mine, next.turn, to));
        if ((int)threadIdx.x == resident_keeper()) resident_watch_look(watch, begin_ns);
        decide(round + 1);
        const bool missing = __syncthreads_or(lacks);
        v = resident_verdict_of(look, next);
        const bool expected = !next.turn || (int)(wt_block_data(look[0]) & RESIDENT_FRAMES) == frames;
        *doorbell = wt_block_data(look[0]);
        shift->relieved = (int)(wt_block_data(look[3]) - shift->number) > 0;
        if (v == RESIDENT_BLOCK && due && missing && expected) continue;
        *n_here = due && !missing && expected ? ahead : 0;
        if (v == RESIDENT_GO_ON && round % 64 == 0 && __syncthreads_or(threadIdx.x == 0 && resident_now() > end_ns))
            v = RESIDENT_OVER;
        if (v != RESIDENT_GO_ON) break;
        if (!due && threadIdx.x < 32) __nanosleep(RESIDENT_REST_NS);
        while (due && mine < RESIDENT_AHEAD && clock64() < now + RESIDENT_APART) {
        }
    }
    pace->round = round + 1;
    if ((int)threadIdx.x == resident_keeper())
        resident_told[RESIDENT_LOOK] = (unsigned int)(resident_now() - watch->looked_ns);
    if (!next.turn) return v;
    const long long now = clock64();
    pace->gap = now - pace->last;
    pace->last = now;
    return v;
}

// The first thread block's thread 0: what came of waiting for a turn, for the others.
static __device__ void resident_tell(const resident_args &r, resident_place next, int verdict, unsigned int doorbell)
{
    const unsigned int kernel = next.kernels << RESIDENT_KERNEL_AT, v = (unsigned int)verdict << RESIDENT_VERDICT_AT;
    block_store(r.relay + (next.turn & (r.layout.slots - 1)), kernel | v | doorbell, next.turn);
}

// The others' wait. A word of this turn may be another kernel's, which left before it. One that polled the host's
// memory, too, would take from the rate at which neighbours read theirs.
static __device__ int resident_follow(const resident_args &r, resident_place next, unsigned int *doorbell)
{
    __shared__ unsigned int told;
    if (threadIdx.x == 0) {
        const wt_block_word *at = r.relay + (next.turn & (r.layout.slots - 1));
        const unsigned int kernel = next.kernels & 255;
        wt_block_word word = block_load(at);
        while (wt_block_turn(word) != next.turn || wt_block_data(word) >> RESIDENT_KERNEL_AT != kernel) {
            __nanosleep(RESIDENT_RELAY_NS);
            word = block_load(at);
        }
        told = wt_block_data(word);
    }
    __syncthreads();
    *doorbell = told & RESIDENT_BELL;
    return (int)(told >> RESIDENT_VERDICT_AT & 7);
}

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
