#include "support/realtime.h"

#include "support/testing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct {
    bool inside;
    const char *offence;
} state;

void realtime_begin(void)
{
    state.offence = NULL;
    state.inside = true;
}

const char *realtime_end(void)
{
    state.inside = false;
    return state.offence;
}

void realtime_note(const char *function)
{
    if (state.inside && !state.offence) state.offence = function;
}

realtime_section realtime_section_begin(const char *file, int line)
{
    realtime_begin();
    return (realtime_section){file, line, true};
}

void realtime_section_end(realtime_section *section)
{
    const char *offence = realtime_end();
    if (!offence) return;
    print_error("%s was called inside RT_SECTION\n", offence);
    _fail(section->file, section->line);
}

#ifdef WT_SANITIZED

bool realtime_works(void) { return false; }

#else

bool realtime_works(void) { return true; }

// The next function of this name after the test program: that of the C library. Two threads may look it up at once and
// find the same. pthread_cond_* also exist in a form older than 2.3.2, which a look-up without version may give.
static void find_next(const char *name, const char *version, void *function)
{
    void *next = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
    memcpy(function, &next, sizeof next); // ISO C has no cast from void * to a function
}

#    define NEXT(type, name, parameters, version)                                                                      \
        static type(*_Atomic next) parameters;                                                                         \
        type(*call) parameters = atomic_load_explicit(&next, memory_order_relaxed);                                    \
        if (!call) {                                                                                                   \
            find_next(#name, version, &call);                                                                          \
            atomic_store_explicit(&next, call, memory_order_relaxed);                                                  \
        }

#    define REPLACE_VERSION(type, name, parameters, arguments, version)                                                \
        type name parameters                                                                                           \
        {                                                                                                              \
            realtime_note(#name);                                                                                      \
            NEXT(type, name, parameters, version)                                                                      \
            return call arguments;                                                                                     \
        }

#    define REPLACE(type, name, parameters, arguments) REPLACE_VERSION(type, name, parameters, arguments, NULL)

REPLACE(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
REPLACE(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
REPLACE(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
REPLACE_VERSION(int, pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex), "GLIBC_2.3.2")
REPLACE_VERSION(int, pthread_cond_timedwait,
                (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until), (cond, mutex, until),
                "GLIBC_2.3.2")
REPLACE_VERSION(int, pthread_cond_signal, (pthread_cond_t * cond), (cond), "GLIBC_2.3.2")
REPLACE_VERSION(int, pthread_cond_broadcast, (pthread_cond_t * cond), (cond), "GLIBC_2.3.2")
REPLACE(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user),
        (thread, attributes, run, user))
REPLACE(int, pthread_join, (pthread_t thread, void **result), (thread, result))
REPLACE(int, sem_wait, (sem_t * semaphore), (semaphore))
REPLACE(int, sem_post, (sem_t * semaphore), (semaphore))

REPLACE(int, nanosleep, (const struct timespec *time, struct timespec *rest), (time, rest))
REPLACE(int, clock_nanosleep, (clockid_t id, int flags, const struct timespec *time, struct timespec *rest),
        (id, flags, time, rest))
REPLACE(int, usleep, (useconds_t time), (time))
REPLACE(unsigned, sleep, (unsigned seconds), (seconds))
REPLACE(int, sched_yield, (void), ())
REPLACE(int, poll, (struct pollfd * files, nfds_t n, int timeout_ms), (files, n, timeout_ms))
REPLACE(int, select, (int n, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout),
        (n, read, write, except, timeout))

REPLACE(ssize_t, read, (int file, void *bytes, size_t size), (file, bytes, size))
REPLACE(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
REPLACE(ssize_t, pread, (int file, void *bytes, size_t size, off_t offset), (file, bytes, size, offset))
REPLACE(ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t offset), (file, bytes, size, offset))
REPLACE(off_t, lseek, (int file, off_t offset, int from), (file, offset, from))
REPLACE(int, close, (int file), (file))
REPLACE(FILE *, fopen, (const char *path, const char *mode), (path, mode))
REPLACE(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
REPLACE(int, fclose, (FILE * file), (file))
REPLACE(int, fflush, (FILE * file), (file))
REPLACE(size_t, fread, (void *items, size_t size, size_t n, FILE *file), (items, size, n, file))
REPLACE(size_t, fwrite, (const void *items, size_t size, size_t n, FILE *file), (items, size, n, file))
REPLACE(int, fputs, (const char *text, FILE *file), (text, file))
REPLACE(int, puts, (const char *text), (text))
REPLACE(int, putchar, (int character), (character))
REPLACE(int, putc, (int character, FILE *file), (character, file))
REPLACE(int, fputc, (int character, FILE *file), (character, file))
REPLACE(int, vfprintf, (FILE * file, const char *format, va_list arguments), (file, format, arguments))
REPLACE(void *, mmap, (void *at, size_t size, int protection, int flags, int file, off_t offset),
        (at, size, protection, flags, file, offset))
REPLACE(void *, mmap64, (void *at, size_t size, int protection, int flags, int file, off64_t offset),
        (at, size, protection, flags, file, offset))
REPLACE(int, munmap, (void *at, size_t size), (at, size))

// Those with optional arguments: the optional one is passed on always, as the system's own wrappers do.
#    define REPLACE_OPEN(name, parameters, arguments, last)                                                            \
        int name parameters                                                                                            \
        {                                                                                                              \
            realtime_note(#name);                                                                                      \
            va_list optional;                                                                                          \
            va_start(optional, last);                                                                                  \
            mode_t mode = va_arg(optional, mode_t);                                                                    \
            va_end(optional);                                                                                          \
            NEXT(int, name, parameters, NULL)                                                                          \
            return call arguments;                                                                                     \
        }

REPLACE_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), flags)
REPLACE_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), flags)
REPLACE_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), flags)

int ioctl(int file, unsigned long request, ...)
{
    realtime_note("ioctl");
    va_list optional;
    va_start(optional, request);
    void *argument = va_arg(optional, void *);
    va_end(optional);
    NEXT(int, ioctl, (int, unsigned long, ...), NULL)
    return call(file, request, argument);
}

long syscall(long number, ...)
{
    realtime_note("syscall");
    long a[6];
    va_list optional;
    va_start(optional, number);
    for (int k = 0; k < 6; k++) a[k] = va_arg(optional, long);
    va_end(optional);
    NEXT(long, syscall, (long, ...), NULL)
    return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int fprintf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vfprintf(file, format, arguments);
    va_end(arguments);
    return n;
}

int printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vfprintf(stdout, format, arguments);
    va_end(arguments);
    return n;
}

#endif
