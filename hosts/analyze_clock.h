/// What the workers' time goes to (analyze_gpu.c).
#ifndef WT_ANALYZE_CLOCK_H
#define WT_ANALYZE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a worker's time goes to.
typedef enum analyze_stage {
    ANALYZE_IDLE,    ///< others were at work on what this one waits for
    ANALYZE_LOOK,    ///< at the heads of files
    ANALYZE_OPEN,    ///< the device
    ANALYZE_READ,    ///< files: opened, decoded
    ANALYZE_MEMORY,  ///< taken of the device, and page-locked
    ANALYZE_PLANS,   ///< made for a GPU
    ANALYZE_COMPUTE, ///< by the worker itself, or given to a GPU
    ANALYZE_WAIT,    ///< for a GPU
    ANALYZE_GIVE,    ///< a GPU's results, to each file its own
    ANALYZE_WRITE,
    ANALYZE_STAGES,
} analyze_stage;
const char *analyze_stage_name(analyze_stage stage);

/// Nanoseconds of all workers.
typedef struct analyze_times {
    atomic_llong ns[ANALYZE_STAGES];
} analyze_times;

/// A worker's own.
typedef struct analyze_clock {
    analyze_stage stage; // since then
    int64_t since_ns, spent_ns[ANALYZE_STAGES];
} analyze_clock;

/// The worker's time is another stage's from now on; returns the one before.  [worker]
analyze_stage analyze_enter(analyze_clock *clock, analyze_stage stage);
analyze_clock analyze_clock_start(void); ///< Idle.
void analyze_clock_stop(analyze_clock *clock, analyze_times *times); ///< Its time goes to all workers'.

#ifdef __cplusplus
}
#endif
#endif
