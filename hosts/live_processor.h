/// A processor for the audio thread. Processors are not alike to it: a virtual one is taken away by its host for
/// others' sake, or shares a core with a busy one, and what a thread loses there differs from one to the next.
#ifndef WT_LIVE_PROCESSOR_H
#define WT_LIVE_PROCESSOR_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <warptone/status.h>

typedef struct live_processor {
    bool chosen;           ///< else the calls below leave threads where they are
    int cpu;
    cpu_set_t own, others; ///< the audio thread's, and everybody else's: neither `cpu` nor a sibling of it
    double lost, most_lost; ///< of the time, by measure: there, and on the worst processor; below 0 = not measured
} live_processor;

/// "N", the system's number, or "quiet": the one that takes the least from a thread that reads the clock; measuring
/// takes a second, and two where there are many. Then the caller is moved to the others: to be called before any other
/// thread is made, since they inherit that. Errors: WT_ERR_BAD_ARG (neither; not one that the caller may use),
/// WT_ERR_UNSUPPORTED (none is left for the others, the system refuses).  [main]
WT_CHECKED wt_status live_processor_choose(const char *text, live_processor *processor);

/// Of the processors in `set`, how much of the time of a thread there is lost: a share of each that is in it, of
/// [CPU_SETSIZE]. Returns the one with the least; below 0 when there is none. Moves the caller.  [any but rt]
int live_processor_measure(const cpu_set_t *set, double *lost);

/// Put a thread on its own processor, or on the others.  [any but rt]
void live_processor_place(const live_processor *processor, pthread_t thread, bool own);

#endif
