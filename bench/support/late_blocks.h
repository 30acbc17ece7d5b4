/// Whose time the blocks of a row took: the audio thread's, the device's, or nobody's known.
#ifndef WT_BENCH_LATE_BLOCKS_H
#define WT_BENCH_LATE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/histogram.h>
#include <warptone/live.h>

enum { LATE_SLOWEST = 10, LATE_MISSED = 8 };

/// A block of the live engine as its caller saw it, and what is known of its way.
typedef struct slow_block {
    int number;
    int64_t start_ns, took_ns, late_ns;
    wt_live_times times; ///< heard_ns 0: no answer by the end of the row
    int32_t seen_ns;     ///< how much later than others the device saw the doorbell
    uint32_t n_launches_before;
    int n_switched; ///< of a long block: involuntary switches of the thread since its hole before
    bool missed;
} slow_block;

/// What is known of a row.
typedef struct late_blocks {
    slow_block slowest[LATE_SLOWEST], missed[LATE_MISSED]; ///< the slowest first
    int n_missed;
    int n_holes, n_switched;   ///< the thread's while it only read the clock; of them with an involuntary switch
    int64_t hole_ns, idle_ns;  ///< the longest, and for how long it read the clock
    int n_long, n_long_device; ///< blocks above the aim; without the audio thread's hole too
    int n_device_holes;        ///< blocks before which the device did not look for so long
    uint32_t device_hole_ns, busy_ns;
    int64_t begin_ns; ///< longest call among blocks that a new kernel answered
    bool has_offset;
    uint32_t offset_ns;  ///< device's clock less the host's as a doorbell is seen
    uint32_t n_launches; ///< as of the answer before
    long switches;
    wt_histogram *trip, *device_part, *rest; ///< rest: the call less the audio thread's hole
    wt_histogram *before, *after;            ///< the thread's part of the call: until it rang, from the answer on
} late_blocks;

wt_status late_blocks_open(late_blocks *w);
void late_blocks_close(late_blocks *w);

/// Before a row's first block, by the audio thread.
void late_blocks_begin(late_blocks *w);

/// Read the clock until then, and note when somebody else had the processor.
void late_blocks_spin(late_blocks *w, int64_t until_ns);

/// After a block: number, start_ns, took_ns, late_ns and missed are the caller's. live: NULL = no engine played it.
void late_blocks_note(late_blocks *w, slow_block *block, const wt_live *live);

/// Whose the largest part of a block's time was.
const char *late_blocks_whose(const slow_block *block);

void late_blocks_print(const late_blocks *w);

#endif
