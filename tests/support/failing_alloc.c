#include "support/failing_alloc.h"

#include "support/realtime.h"
#include "support/testing.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

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

// The family under the names that are kept for programs that bring their own: the C library's (malloc/malloc.c, glibc)
// or the sanitizer's (libasan and libtsan of GCC 12), which goes on to guard what it gives.
#ifdef WT_SANITIZED
#    define NEXT(name) __interceptor_##name
#else
#    define NEXT(name) __libc_##name
#endif
void *NEXT(malloc)(size_t size);
void *NEXT(calloc)(size_t n, size_t size);
void *NEXT(realloc)(void *block, size_t size);
void *NEXT(memalign)(size_t align, size_t size);
void NEXT(free)(void *block);

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

void *malloc(size_t size) { return fails("malloc") ? NULL : taken(NEXT(malloc)(size)); }

void *calloc(size_t n, size_t size) { return fails("calloc") ? NULL : taken(NEXT(calloc)(n, size)); }

void *realloc(void *block, size_t size)
{
    if (fails("realloc")) return NULL;
    void *moved = NEXT(realloc)(block, size);
    return block ? moved : taken(moved);
}

void *memalign(size_t align, size_t size) { return fails("memalign") ? NULL : taken(NEXT(memalign)(align, size)); }

void *aligned_alloc(size_t align, size_t size)
{
    return fails("aligned_alloc") ? NULL : taken(NEXT(memalign)(align, size));
}

int posix_memalign(void **block, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1))) return EINVAL;
    if (fails("posix_memalign")) return ENOMEM;
    void *taken_block = taken(NEXT(memalign)(align, size));
    if (!taken_block) return ENOMEM;
    *block = taken_block;
    return 0;
}

void free(void *block)
{
    if (!block) return;
    realtime_note("free");
    if (state.counting) state.counts.n_live--;
    NEXT(free)(block);
}

#ifdef WT_SANITIZED
// The sanitizers' own take memory past malloc, and what they took would be given back uncounted.
char *strndup(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    copy[length] = 0;
    return memcpy(copy, text, length);
}

char *strdup(const char *text) { return strndup(text, strlen(text)); }

/// What LeakSanitizer is not to tell: what the dynamic linker keeps, which it knows by the caller of malloc, now ours;
/// and libsndfile 1.2.0 does not free its Ogg encoder when the file cannot be written, nor its decoder on some damage.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:ld-linux\nleak:libogg\nleak:libvorbis\n"; }
#endif
