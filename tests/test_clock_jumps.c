// Waits last as long as they should while the clock of the day jumps. Here it is an hour off, one way or the other,
// whenever it is read: to who reads it, adds a time and waits until then it has jumped in between.
#include "../hosts/crew.h"
#include "../hosts/live_session_internal.h"
#include "support/testing.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

static atomic_int off_seconds;

// In the place of the C library's, for the library that is tested too.
int clock_gettime(clockid_t id, struct timespec *time)
{
    const long failed = syscall(SYS_clock_gettime, id, time);
    if (!failed && id == CLOCK_REALTIME) time->tv_sec += atomic_load(&off_seconds);
    return (int)failed;
}

static const int jumps[] = {-3600, 3600};
enum { N_JUMPS = sizeof jumps / sizeof *jumps };

static void rest_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

static void rest(void *user, int k)
{
    (void)user, (void)k;
    rest_ms(500);
}

static void count(void *user) { (*(int *)user)++; }

static void a_crew_s_ticks_keep_their_pace(void **state)
{
    (void)state;
    for (int j = 0; j < N_JUMPS; j++) {
        int n_ticks = 0;
        atomic_store(&off_seconds, jumps[j]);
        const int64_t begin_ns = wt_clock_now_ns(NULL);
        assert_ok(wt__crew_run("test", 2, rest, NULL, count, &n_ticks));
        const int most = (int)((wt_clock_now_ns(NULL) - begin_ns) / 50000000); // 20 a second
        atomic_store(&off_seconds, 0);
        assert_in_range(n_ticks, 1, most);
    }
}

typedef struct load {
    live_session *session;
    atomic_bool under_way;
    int ms;
} load;

static void *hold(void *user)
{
    load *l = user;
    pthread_mutex_lock(&l->session->change);
    atomic_store(&l->under_way, true);
    rest_ms(l->ms);
    pthread_mutex_unlock(&l->session->change);
    return NULL;
}

/// How long a host that wants the format it has is held by a load of so many ms.
static double held_ms(live_session *s, int ms)
{
    load l = {.session = s, .ms = ms};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold, &l), 0);
    while (!atomic_load(&l.under_way)) rest_ms(1);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    live__apply_format(s);
    const double took_ms = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-6;
    pthread_join(thread, NULL);
    return took_ms;
}

static void a_host_waits_a_second_for_a_load(void **state)
{
    (void)state;
    for (int j = 0; j < N_JUMPS; j++) {
        live_session s = {.rate_hz = 48000, .wanted_rate_hz = 48000, .max_frames = 4096, .wanted_frames = 64};
        int ends[2];
        char woken;
        assert_int_equal(pipe(ends), 0);
        s.wake_fd = ends[1]; // where the keeper is told
        pthread_mutex_init(&s.change, NULL);
        atomic_store(&off_seconds, jumps[j]);
        assert_true(held_ms(&s, 200) > 150); // to its end
        const double of_long = held_ms(&s, 2500);
        atomic_store(&off_seconds, 0);
        assert_true(of_long > 900 && of_long < 2300); // gave up, and told the keeper
        assert_int_equal(read(ends[0], &woken, 1), 1);
        pthread_mutex_destroy(&s.change);
        close(ends[0]), close(ends[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crew_s_ticks_keep_their_pace),
        cmocka_unit_test(a_host_waits_a_second_for_a_load),
    };
    return cmocka_run_group_tests_name("clock jumps", tests, NULL, NULL);
}
