#include "support/failing_alloc.h"

#include "support/realtime.h"
#include "support/testing.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

static _Thread_local struct {
    bool counting;
    long fail_at;
    failing_alloc_counts counts;
} state;

void failing_alloc_start(long k)
{
    state.fail_at = k;
    state.counts = (failing_alloc_counts){0};
    state.counting = true;
}

failing_alloc_counts failing_alloc_stop(void)
{
    state.counting = false;
    return state.counts;
}

long assert_survives_failing_alloc(wt_status (*create)(void *user), void (*destroy)(void *user), void *user)
{
    if (!failing_alloc_works()) {
        print_message("skipped: a sanitizer owns malloc, no allocation can be made to fail\n");
        skip();
    }
    assert_ok(create(user));
    destroy(user);
    for (long k = 0;; k++) {
        failing_alloc_start(k);
        wt_status status = create(user);
        failing_alloc_counts counts = failing_alloc_stop();
        if (counts.n_allocations <= k) {
            assert_ok(status);
            destroy(user);
            return k;
        }
        if (status != WT_ERR_NO_MEMORY)
            fail_msg("allocation %ld failed: status %d, want %d", k, (int)status, (int)WT_ERR_NO_MEMORY);
        if (!*wt_last_error()) fail_msg("allocation %ld failed: no sentence says so", k);
        if (counts.n_live) fail_msg("allocation %ld failed: %ld blocks were not given back", k, counts.n_live);
    }
}

#ifdef WT_SANITIZED

bool failing_alloc_works(void) { return false; }

#else

bool failing_alloc_works(void) { return true; }

// The C library's family under the names that it keeps for programs that bring their own (malloc/malloc.c, glibc).
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

// True when this allocation is the one to fail.
static bool fails(const char *function)
{
    realtime_note(function);
    if (!state.counting || state.counts.n_allocations++ != state.fail_at) return false;
    errno = ENOMEM;
    return true;
}

static void *taken(void *block)
{
    if (state.counting && block) state.counts.n_live++;
    return block;
}

void *malloc(size_t size) { return fails("malloc") ? NULL : taken(__libc_malloc(size)); }

void *calloc(size_t n, size_t size) { return fails("calloc") ? NULL : taken(__libc_calloc(n, size)); }

void *realloc(void *block, size_t size)
{
    if (fails("realloc")) return NULL;
    void *moved = __libc_realloc(block, size);
    return block ? moved : taken(moved);
}

void *memalign(size_t align, size_t size) { return fails("memalign") ? NULL : taken(__libc_memalign(align, size)); }

void *aligned_alloc(size_t align, size_t size)
{
    return fails("aligned_alloc") ? NULL : taken(__libc_memalign(align, size));
}

int posix_memalign(void **block, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1))) return EINVAL;
    if (fails("posix_memalign")) return ENOMEM;
    void *taken_block = taken(__libc_memalign(align, size));
    if (!taken_block) return ENOMEM;
    *block = taken_block;
    return 0;
}

void free(void *block)
{
    if (!block) return;
    realtime_note("free");
    if (state.counting) state.counts.n_live--;
    __libc_free(block);
}

#endif
