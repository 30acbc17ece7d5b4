/// Sections of a test in which, as in the audio thread, nothing may allocate, lock, wait or call the system.
///
///     RT_SECTION { wt_ring_push(ring, block, 64); }
///
/// fails the test when its body, on this thread, reaches one of the functions that tests/support/realtime.c and
/// failing_alloc.c put before those of the C library, be it from our code or from inside a library. How it works and
/// what it cannot see: docs/real-time.md. In sanitizer builds it finds the malloc family alone.
#ifndef WT_REALTIME_H
#define WT_REALTIME_H

#include <stdbool.h>

typedef struct realtime_section {
    const char *file;
    int line;
    bool inside;
} realtime_section;

/// The block or statement that follows is a real-time section; break, return and the end leave it. Does not nest.
#define RT_SECTION                                                                                      \
    for (realtime_section rt_section __attribute__((cleanup(realtime_section_end))) =                   \
             realtime_section_begin(__FILE__, __LINE__);                                                \
         rt_section.inside; rt_section.inside = false)

realtime_section realtime_section_begin(const char *file, int line);
void realtime_section_end(realtime_section *section);

/// The same by hand, for a thread that is not the test's: end returns the name of the first forbidden function that
/// was reached since begin, or NULL.
void realtime_begin(void);
const char *realtime_end(void);

/// What each replaced function calls with its name; a debugger stops here on what a section found. [any thread]
void realtime_note(const char *function);

bool realtime_works(void); ///< False in sanitizer builds.

#endif
