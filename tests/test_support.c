// The helpers of tests/support catch what they are for.
#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile block; // through memory, so that no compiler removes a malloc with its free
static FILE *volatile file; // for fclose, made before the section
static const char *volatile text = "printed by the call of puts";
static volatile int number;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static const struct timespec at_once;

static void skip_without_interposition(void)
{
    if (realtime_works()) return;
    print_message("skipped: a sanitizer owns the C library's functions, the malloc family alone is replaced\n");
    skip();
}

static void *nothing(void *user) { return user; }

// One forbidden call each. What it needs is made before the section; what it leaves is removed after.
static void call_malloc(void) { block = malloc(8); }
static void call_calloc(void) { block = calloc(2, 4); }
static void call_realloc(void) { block = realloc(block, 8); } // block is NULL
static void call_aligned_alloc(void) { block = aligned_alloc(64, 64); }
static void call_memalign(void) { block = memalign(64, 64); }
static void call_posix_memalign(void)
{
    void *aligned = NULL;
    number = posix_memalign(&aligned, 64, 64);
    block = aligned;
}
static void call_strdup(void) { block = strdup("inside the C library"); }
static void call_pthread_mutex_lock(void) { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); }
static void call_pthread_rwlock_rdlock(void) { pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock); }
static void call_pthread_rwlock_wrlock(void) { pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock); }
static void call_pthread_cond_timedwait(void)
{
    pthread_mutex_trylock(&mutex);
    pthread_cond_timedwait(&cond, &mutex, &at_once);
    pthread_mutex_unlock(&mutex);
}
static void call_pthread_cond_signal(void) { pthread_cond_signal(&cond); }
static void call_pthread_cond_broadcast(void) { pthread_cond_broadcast(&cond); }
static void call_pthread_create(void)
{
    pthread_t thread;
    if (!pthread_create(&thread, NULL, nothing, NULL)) pthread_join(thread, NULL);
}
static void call_sem_post(void)
{
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    sem_post(&semaphore);
}
static void call_sem_wait(void)
{
    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    sem_wait(&semaphore);
}
static void call_nanosleep(void) { nanosleep(&at_once, NULL); }
static void call_clock_nanosleep(void) { clock_nanosleep(CLOCK_MONOTONIC, 0, &at_once, NULL); }
static void call_usleep(void) { usleep(0); }
static void call_sleep(void) { sleep(0); }
static void call_sched_yield(void) { sched_yield(); }
static void call_poll(void) { number = poll(NULL, 0, 0); }
static void call_select(void) { number = select(0, NULL, NULL, NULL, &(struct timeval){0}); }
static void call_open(void) { number = open("/nowhere", O_RDONLY); }
static void call_open64(void) { number = open64("/nowhere", O_RDONLY); }
static void call_openat(void) { number = openat(AT_FDCWD, "/nowhere", O_RDONLY); }
static void call_read(void) { number = (int)read(-1, NULL, 0); }
static void call_write(void) { number = (int)write(-1, "", 0); }
static void call_pread(void) { number = (int)pread(-1, NULL, 0, 0); }
static void call_pwrite(void) { number = (int)pwrite(-1, "", 0, 0); }
static void call_lseek(void) { number = (int)lseek(-1, 0, SEEK_SET); }
static void call_close(void) { number = close(-1); }
static void call_fopen(void) { number = fopen("/nowhere", "r") == NULL; }
static void call_fopen64(void) { number = fopen64("/nowhere", "r") == NULL; }
static void call_fflush(void) { number = fflush(stderr); }
static void call_fread(void)
{
    char byte;
    number = (int)fread(&byte, 0, 1, stdin);
}
static void call_fwrite(void) { number = (int)fwrite("", 0, 1, stderr); }
static void call_fputs(void) { number = fputs("", stderr); }
static void call_puts(void) { number = puts(text); }
static void call_putchar(void)
{
    int (*volatile function)(int) = putchar; // called by its name it is inline, and calls putc
    number = function('\n');
}
static void call_putc(void) { number = putc('\n', stdout); }
static void call_fputc(void) { number = fputc('\n', stdout); }
static void call_mmap64(void) { block = mmap64(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), block = NULL; }
static void call_fclose(void) { number = fclose(file); }
static void call_fprintf(void) { number = fprintf(stderr, "%.0d", number * 0); }
static void call_printf(void) { number = printf("%.0d", number * 0); }
static void call_mmap(void) { block = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), block = NULL; }
static void call_munmap(void) { number = munmap((void *)1, 0); }
static void call_ioctl(void) { number = ioctl(-1, 0, NULL); }
static void call_syscall(void) { number = (int)syscall(SYS_getpid); }

static void a_section_catches_each_forbidden_call(void **state)
{
    (void)state;
    skip_without_interposition();
    static const struct {
        const char *name; // that the section is to report
        void (*call)(void);
    } calls[] = {
#define CALL(name) {#name, call_##name}
        CALL(malloc), CALL(calloc), CALL(realloc), CALL(aligned_alloc), CALL(memalign), CALL(posix_memalign),
        {"malloc", call_strdup}, CALL(pthread_mutex_lock), CALL(pthread_rwlock_rdlock), CALL(pthread_rwlock_wrlock),
        CALL(pthread_cond_timedwait), CALL(pthread_cond_signal), CALL(pthread_cond_broadcast), CALL(pthread_create),
        CALL(sem_post), CALL(sem_wait), CALL(nanosleep), CALL(clock_nanosleep), CALL(usleep), CALL(sleep),
        CALL(sched_yield), CALL(poll), CALL(select), CALL(open), CALL(open64), CALL(openat), CALL(read), CALL(write),
        CALL(pread), CALL(pwrite), CALL(lseek), CALL(close), CALL(fopen), CALL(fopen64), CALL(fflush), CALL(fread),
        CALL(fwrite), CALL(fputs), CALL(puts), CALL(putchar), CALL(putc), CALL(fputc), CALL(fclose),
        {"vfprintf", call_fprintf}, {"vfprintf", call_printf}, CALL(mmap),
        CALL(mmap64), CALL(munmap), CALL(ioctl), CALL(syscall),
#undef CALL
    };
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        block = NULL;
        if (calls[k].call == call_fclose) file = fopen("/dev/null", "r");
        realtime_begin();
        calls[k].call();
        const char *found = realtime_end();
        free(block);
        if (!found) fail_msg("%s was not noticed", calls[k].name);
        assert_string_equal(found, calls[k].name);
    }
}

static void a_section_catches_free_and_reports_the_first_call(void **state)
{
    (void)state;
    block = malloc(8);
    realtime_begin();
    free(block);
    block = malloc(8);
    assert_string_equal(realtime_end(), "free");
    free(block);
}

struct handshake {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
};

static void *signals_later(void *user)
{
    struct handshake *handshake = user;
    pthread_mutex_lock(&handshake->mutex);
    handshake->done = true;
    pthread_cond_signal(&handshake->cond);
    pthread_mutex_unlock(&handshake->mutex);
    return NULL;
}

static void a_section_catches_a_wait_for_a_condition_and_for_a_thread(void **state)
{
    (void)state;
    skip_without_interposition();
    struct handshake handshake = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    pthread_mutex_lock(&handshake.mutex);
    assert_int_equal(pthread_create(&thread, NULL, signals_later, &handshake), 0);
    realtime_begin();
    while (!handshake.done) pthread_cond_wait(&handshake.cond, &handshake.mutex);
    const char *found = realtime_end();
    pthread_mutex_unlock(&handshake.mutex);
    assert_string_equal(found, "pthread_cond_wait");
    realtime_begin();
    pthread_join(thread, NULL);
    assert_string_equal(realtime_end(), "pthread_join");
}

static void *allocates(void *user)
{
    block = malloc(8);
    free(block);
    return user;
}

static void a_section_binds_its_own_thread_only(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocates, NULL), 0);
    RT_SECTION
    {
        for (volatile int spin = 0; spin < 1000; spin++) {}
    }
    pthread_join(thread, NULL);
}

static int returns_from_a_section(void)
{
    RT_SECTION return 7;
    return 0;
}

static void break_and_return_leave_a_section(void **state)
{
    (void)state;
    assert_int_equal(returns_from_a_section(), 7);
    block = malloc(8);
    free(block);
    RT_SECTION break;
    block = malloc(8);
    free(block);
    assert_null(realtime_end());
}

// Run by the test below as `test_support offend`: a section that allocates.
static void offends(void **state)
{
    (void)state;
    RT_SECTION block = malloc(8);
    free(block);
}

static void a_section_that_allocates_fails_its_test(void **state)
{
    (void)state;
    char self[4096], command[4200], line[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    snprintf(command, sizeof command, "'%s' offend 2>&1", self);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    bool named = false;
    while (fgets(line, sizeof line, output)) named |= strstr(line, "malloc was called inside RT_SECTION") != NULL;
    int status = pclose(output);
    assert_true(named);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1); // one failed test
}

static void failing_alloc_fails_the_one_it_is_told_to(void **state)
{
    (void)state;
    block = NULL;
    for (int k = 0; k < 6; k++) {
        void *blocks[6] = {0};
        failing_alloc_start(k);
        blocks[0] = malloc(8);
        blocks[1] = calloc(1, 8);
        blocks[2] = realloc(block, 8); // block is NULL, which gcc does not see and make a malloc of
        blocks[3] = aligned_alloc(64, 64);
        blocks[4] = memalign(64, 64);
        if (posix_memalign(&blocks[5], 64, 64)) blocks[5] = NULL;
        for (int b = 0; b < 4; b++) free(blocks[b]);
        failing_alloc_counts counts = failing_alloc_stop();
        for (int b = 0; b < 6; b++) assert_int_equal(blocks[b] == NULL, b == k);
        assert_int_equal(counts.n_allocations, 6);
        assert_int_equal(counts.n_live, k < 4 ? 2 : 1);
        free(blocks[4]);
        free(blocks[5]);
    }
}

// A noun of three allocations, as the library writes them.
struct three {
    void *parts[3];
};

static void destroy_three(void *user)
{
    struct three *three = user;
    for (int k = 0; k < 3; k++) free(three->parts[k]);
    *three = (struct three){0};
}

static wt_status create_three(void *user)
{
    struct three *three = user;
    for (int k = 0; k < 3; k++) {
        three->parts[k] = malloc(8);
        if (three->parts[k]) continue;
        destroy_three(three);
        return wt_fail(WT_ERR_NO_MEMORY, "three: part %d", k);
    }
    return WT_OK;
}

static void every_allocation_of_create_is_failed_once(void **state)
{
    (void)state;
    struct three three = {0};
    assert_int_equal(assert_survives_failing_alloc(create_three, destroy_three, &three), 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest offence[] = {cmocka_unit_test(offends)};
    if (argc > 1 && strcmp(argv[1], "offend") == 0) return cmocka_run_group_tests(offence, NULL, NULL);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_section_catches_each_forbidden_call),
        cmocka_unit_test(a_section_catches_free_and_reports_the_first_call),
        cmocka_unit_test(a_section_catches_a_wait_for_a_condition_and_for_a_thread),
        cmocka_unit_test(a_section_binds_its_own_thread_only),
        cmocka_unit_test(break_and_return_leave_a_section),
        cmocka_unit_test(a_section_that_allocates_fails_its_test),
        cmocka_unit_test(failing_alloc_fails_the_one_it_is_told_to),
        cmocka_unit_test(every_allocation_of_create_is_failed_once),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
