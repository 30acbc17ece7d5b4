/// System calls that a thread makes between two points, by whatever library or instruction, seen by the kernel's own
/// hand (syscall user dispatch: Linux 5.11 on x86-64) and not by the names of functions. A section without any is not
/// slowed down, so whole rows of a bench are watched.
#ifndef WT_BENCH_SYSTEM_CALLS_H
#define WT_BENCH_SYSTEM_CALLS_H

#include <stdbool.h>

/// Watch this thread from now on. False: this kernel cannot, or SIGSYS is not to be had; sections see nothing then.
bool system_calls_watch(void);

/// A section of the watched thread. Of its calls the first is seen, and made; the end returns whether there was one.
void system_calls_begin(void);
bool system_calls_end(void);

/// The number of the last call that a section saw; -1 = none yet.
int system_calls_last(void);

#endif
