// What the audio thread and the resident kernel tell each other, and the arguments of the kernel.
//
// A block goes down as one slot of a block ring (block_ring_kernel.h), in words:
//
//   0                 doorbell: frames, and flags from bit 16
//   1                 sequence of the parameter targets
//   2 .. 9            taps: node + 1, 0 = none
//   10 .. 17          inserts: node + 1, channels from bit 16
//   32 ..             targets [n_params], when flagged
//   in_at ..          input: channel c, frame f of stream s at (s * channels + c) * n_frames + f
//   inserts_at ..     planes of insert k at k * point_channels * max_frames, [channels][n_frames]
//
// and comes back as one slot with up_words for each stream:
//
//   0                 frames
//   1 .. 7            of stream 0, times in ns: the look that brought the doorbell was turned to, the answer was sent,
//                     both by the device's clock modulo 2^32; from the last answer to the first look for this block,
//                     the longest from a look to the next, how many there were; the kernel's age in 2^10 ns; from the
//                     turning to that look until all had what it brought
//   readings_at ..    readings [n_readings], of stream 0
//   out_at ..         output [out_channels][n_frames]
//   taps_at ..        planes of tap k at k * point_channels * max_frames, [channels][n_frames], of stream 0
//
// The number of a block is its turn, counted from 1; turn t lies in slot t modulo `slots`. A slot is used again after
// the answer that was in it has been read, so the kernel never waits for room.
//
// Terms: each time the chain is handed to the device a new term begins. `orders` says which term is to leave and which
// is to be killed, `begin` the turn after which the present one begins. Kernels of one term follow each other on a
// stream, each for a bounded time, and keep the instances in device memory; the first takes them from `exported`, and
// the one that is told to leave puts them back there and says so in `left`, a word for each stream. A kernel leaves to
// the next one after the block in which it sees that `launched` counts more than have begun.
#ifndef WT_RESIDENT_KERNEL_H
#define WT_RESIDENT_KERNEL_H
#include "block_ring_kernel.h"

#define WT_MAX_POINTS 8
#define RESIDENT_SEEN 1
#define RESIDENT_SENT 2
#define RESIDENT_BUSY 3
#define RESIDENT_HOLE 4
#define RESIDENT_N_LOOKS 5
#define RESIDENT_AGE 6
#define RESIDENT_AGE_SHIFT 10
#define RESIDENT_LOOK 7
#define RESIDENT_HEAD 8 // words of an answer before its readings
#define RESIDENT_SEQUENCE 1
#define RESIDENT_TAPS 2
#define RESIDENT_INSERTS (RESIDENT_TAPS + WT_MAX_POINTS)
#define RESIDENT_TARGETS 32
#define RESIDENT_HAS_TARGETS (1u << 16)
#define RESIDENT_HAS_POINTS (1u << 17)
#define RESIDENT_FLAGS (RESIDENT_HAS_TARGETS | RESIDENT_HAS_POINTS)
#define RESIDENT_FRAMES 0xffffu

typedef struct resident_layout {
    unsigned int slots;
    int n_streams, n_params, n_readings, max_frames, channels, out_channels, point_channels;
    int in_at, inserts_at, readings_at, out_at, taps_at;
    long long down_words, up_words; // of a slot; of a slot and stream
} resident_layout;

// In host memory. `orders`: the term to leave, in the upper half the term to be killed. `launched`: kernels launched.
// `begin`: the turn the term begins after, in the upper half the term. `n_started`: kernels that began to run, counted
// by the device. Orders and `launched` are looked at together, 16 bytes.
typedef struct resident_control {
    wt_block_word orders, launched, begin;
    unsigned int n_started, unused;
} resident_control;

// A thread block's place in its term, in device memory, and how many kernels it has been in.
typedef struct resident_place {
    unsigned int turn, term, kernels;
} resident_place;

// What the first thread block tells the others of a turn, as the data of a word: what the doorbell says (18 bits), a
// verdict, and which kernel it is meant for.
#define RESIDENT_BELL 0x3ffffu
#define RESIDENT_VERDICT_AT 20
#define RESIDENT_KERNEL_AT 24

typedef struct resident_args {
    chain_args chain;
    resident_layout layout;
    wt_block_word *down, *up, *left; // host memory
    resident_control *control;
    unsigned char *exported;  // host memory: [n_streams][instance_bytes]
    resident_place *places;   // [thread blocks], zeros at first
    wt_block_word *relay;     // [slots], zeros at first: the first thread block to the others
    wt_block_word *rehearsal; // where there is a spare instance: a slot down and one up, zeros at first
    float *targets;           // [thread blocks][n_params]
    unsigned long long plans_bytes;
    long long life_ns; // when the host is to have launched the next one; half as long again at most
    int once;         // 1: leave after one block (the graph path)
    int shared_floats; // of buffers and scratch, before what is copied to shared memory
    int copy_memory, copy_plans, copy_places; // 1: lies in shared memory while the kernel runs, in this order
    int has_spare;                            // 1: and behind them a second instance, for rehearsals
} resident_args;
#endif
