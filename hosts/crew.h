/// Threads that share the items of a run, while the thread that started them shows how far they are.
#ifndef WT_CREW_H
#define WT_CREW_H

#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Call work(user, k) on `n` threads, k = 0 .. n - 1, and return when all have; `tick` is called meanwhile on this
/// thread, some 20 times a second. One thread is enough: more that cannot be started are done without.
/// Errors: WT_ERR_NO_MEMORY when none can be started; `name` begins the sentence.  [main]
WT_CHECKED wt_status wt__crew_run(const char *name, int n, void (*work)(void *user, int k), void *user,
                                  void (*tick)(void *user), void *tick_user);

#ifdef __cplusplus
}
#endif
#endif
