/// A processor for one thread of a bench.
#ifndef WT_BENCH_APART_H
#define WT_BENCH_APART_H

#include <sched.h>
#include <stdbool.h>

typedef struct bench_processors {
    bool apart;            ///< else both calls below leave threads where they are
    int cpu;               ///< the thread's own; -1: none was found
    char siblings[64];     ///< as the kernel lists them
    cpu_set_t own, others; ///< the thread's, and everybody else's: no sibling of it
} bench_processors;

/// Take the last processor that the caller may use, and move the caller to the others. To be called before any other
/// thread is made: they inherit what is left.
void move_apart(bench_processors *p);

/// Run the caller on its own processor, or on the others.
void use_processors(const bench_processors *p, bool own);

#endif
