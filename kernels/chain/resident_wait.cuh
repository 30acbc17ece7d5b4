// What the resident kernel hears: the term it is to serve, and each block. The first thread block looks at the host's
// memory, the others at what it tells them.
#pragma once
#include "resident_asm.cuh"
#include "resident_slots.cuh"

#define RESIDENT_REST_NS  2000 // between two looks at the doorbell while no block is due
#define RESIDENT_RELAY_NS 100  // between two looks at what the first thread block tells
#define RESIDENT_APART    1800 // clocks from one look to the next while one is
#define RESIDENT_AHEAD    128  // words of input that come with a look, at most
#define RESIDENT_LOOKS    4    // places for looks under way

enum resident_verdict { RESIDENT_GO_ON, RESIDENT_BLOCK, RESIDENT_LEAVE, RESIDENT_KILLED, RESIDENT_OVER };

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
