#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/dispatch.h>
#include <warptone/telemetry.h>

static wt_telemetry *telemetry_of_rows(int n_rows, wt_telemetry_row **rows)
{
    wt_telemetry *t = NULL;
    assert_ok(wt_telemetry_create(&t));
    for (int k = 0; k < n_rows; k++) {
        char name[16];
        snprintf(name, sizeof name, "row %d", k);
        wt_telemetry_row_config c = {.kind = k % 2 ? WT_TELEMETRY_PARTITION : WT_TELEMETRY_TASK,
                                     .name = name,
                                     .partition = "llm",
                                     .tier = WT_TIER_BURSTABLE};
        assert_ok(wt_telemetry_open_row(t, &c, &rows[k]));
    }
    return t;
}

static void a_snapshot_holds_the_rows_partitions_first(void **state)
{
    (void)state;
    wt_telemetry_row *rows[4];
    wt_telemetry *t = telemetry_of_rows(4, rows);
    static wt_telemetry_view view;
    wt_telemetry_add(rows[2], WT_FIGURE_LAUNCHES, 3);
    wt_telemetry_add(rows[2], WT_FIGURE_LAUNCHES, 4);
    wt_telemetry_set(rows[1], WT_FIGURE_QUEUED, 9);
    wt_telemetry_set(rows[1], WT_FIGURE_QUEUED, -1);
    wt_telemetry_add(NULL, WT_FIGURE_QUEUED, 1);
    wt_telemetry_snapshot(t, &view);
    assert_int_equal(view.n_rows, 4);
    assert_int_equal(view.pid, getpid());
    const char *const order[] = {"row 1", "row 3", "row 0", "row 2"};
    for (int k = 0; k < 4; k++) assert_string_equal(view.rows[k].name, order[k]);
    assert_int_equal(view.rows[3].figures[WT_FIGURE_LAUNCHES], 7);
    assert_int_equal(view.rows[0].figures[WT_FIGURE_QUEUED], -1);
    wt_telemetry_close_row(rows[1]);
    wt_telemetry_close_row(NULL);
    wt_telemetry_snapshot(t, &view);
    assert_int_equal(view.n_rows, 3);
    assert_ok(wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = "again"}, &rows[1]));
    wt_telemetry_snapshot(t, &view);
    assert_int_equal(view.rows[1].figures[WT_FIGURE_QUEUED], 0); // a new row begins at zero
    wt_telemetry_destroy(t);
    wt_telemetry_destroy(NULL);
}

static void rows_are_checked_and_bounded(void **state)
{
    (void)state;
    wt_telemetry *t = NULL;
    wt_telemetry_row *row = NULL;
    assert_ok(wt_telemetry_create(&t));
    assert_fails(wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = ""}, &row), WT_ERR_BAD_ARG,
                 "telemetry: row \"\" in \"\": want names of 1..31 bytes");
    assert_int_equal(
        wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = "0123456789abcdef0123456789abcdef"}, &row),
        WT_ERR_BAD_ARG);
    assert_int_equal(wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = "x", .tier = (wt_tier)7}, &row),
                     WT_ERR_BAD_ARG);
    assert_null(row);
    for (int k = 0; k < WT_TELEMETRY_ROWS; k++)
        assert_ok(wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = "x"}, &row));
    assert_fails(wt_telemetry_open_row(t, &(wt_telemetry_row_config){.name = "x"}, &row), WT_ERR_FULL,
                 "telemetry: has 64 rows already");
    wt_telemetry_destroy(t);
}

static void figures_have_names(void **state)
{
    (void)state;
    for (int k = 0; k < WT_N_FIGURES; k++) assert_true(wt_figure_name((wt_figure)k)[0] >= 'a');
    assert_string_equal(wt_figure_name(WT_N_FIGURES), "");
    assert_true(wt_figure_is_counter(WT_FIGURE_LAUNCHES));
    assert_false(wt_figure_is_counter(WT_FIGURE_QUEUED));
}

static void writing_is_real_time(void **state)
{
    (void)state;
    wt_telemetry_row *row;
    wt_telemetry *t = telemetry_of_rows(1, &row);
    RT_SECTION
    {
        wt_telemetry_add(row, WT_FIGURE_DEVICE_NS, 5);
        wt_telemetry_set(row, WT_FIGURE_QUEUED, 5);
    }
    wt_telemetry_destroy(t);
}

static void prometheus_text_is_bounded_and_escaped(void **state)
{
    (void)state;
    wt_telemetry *t = NULL;
    wt_telemetry_row *row;
    static wt_telemetry_view view;
    assert_ok(wt_telemetry_create(&t));
    wt_telemetry_row_config c = {.kind = WT_TELEMETRY_TASK, .name = "a\"b\\c\nd", .partition = "llm"};
    assert_ok(wt_telemetry_open_row(t, &c, &row));
    wt_telemetry_add(row, WT_FIGURE_LAUNCHES, 42);
    wt_telemetry_snapshot(t, &view);
    size_t whole = wt_telemetry_prometheus(&view, NULL, 0);
    char *text = malloc(whole + 1), small[20];
    assert_non_null(text);
    assert_int_equal(wt_telemetry_prometheus(&view, text, whole + 1), whole);
    assert_int_equal(strlen(text), whole);
    assert_non_null(strstr(text, "# TYPE warptone_launches_total counter\nwarptone_launches_total{kind=\"task\","
                                 "name=\"a\\\"b\\\\c\\nd\",partition=\"llm\",tier=\"best_effort\"} 42\n"));
    assert_non_null(
        strstr(text, "# HELP warptone_queued Launches or tasks that wait.\n# TYPE warptone_queued gauge\n"));
    assert_int_equal(wt_telemetry_prometheus(&view, small, sizeof small), whole);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, text, sizeof small - 1);
    free(text);
    wt_telemetry_destroy(t);
}

// ---- shared memory

static void segment_name(char name[48])
{
    snprintf(name, 48, "/warptone.%d", (int)getpid());
}

static bool listed(int64_t pid)
{
    int64_t pids[256];
    int n = wt_telemetry_list(pids, 256);
    for (int k = 0; k < n; k++)
        if (pids[k] == pid) return true;
    return false;
}

static void what_is_published_can_be_read_and_goes_away(void **state)
{
    (void)state;
    wt_telemetry_row *rows[2];
    wt_telemetry *t = telemetry_of_rows(2, rows), *second = NULL;
    static wt_telemetry_view view;
    assert_int_equal(wt_telemetry_read(getpid(), &view), WT_ERR_NOT_FOUND);
    wt_telemetry_add(rows[0], WT_FIGURE_RUNS, 11);
    assert_ok(wt_telemetry_publish(t));
    wt_telemetry_add(rows[0], WT_FIGURE_RUNS, 11);
    assert_ok(wt_telemetry_publish(t));
    assert_ok(wt_telemetry_read(getpid(), &view));
    assert_int_equal(view.n_rows, 2);
    assert_int_equal(view.rows[1].figures[WT_FIGURE_RUNS], 22);
    assert_true(listed(getpid()));
    assert_ok(wt_telemetry_create(&second));
    assert_fails(wt_telemetry_publish(second), WT_ERR_STATE,
                 "telemetry: another one of this process is published already");
    wt_telemetry_destroy(second);
    assert_ok(wt_telemetry_read(getpid(), &view)); // that took nothing away
    wt_telemetry_destroy(t);
    assert_int_equal(wt_telemetry_read(getpid(), &view), WT_ERR_NOT_FOUND);
    assert_false(listed(getpid()));
}

/// Publish, then let `spoil` have the segment's bytes.
static wt_status read_spoiled(void (*spoil)(unsigned char *bytes, size_t size), off_t cut)
{
    wt_telemetry_row *row;
    wt_telemetry *t = telemetry_of_rows(1, &row);
    static wt_telemetry_view view;
    char name[48];
    segment_name(name);
    assert_ok(wt_telemetry_publish(t));
    int file = shm_open(name, O_RDWR, 0);
    off_t size = lseek(file, 0, SEEK_END);
    assert_true(file >= 0 && size > 0);
    unsigned char *bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(bytes != MAP_FAILED);
    if (spoil) spoil(bytes, (size_t)size);
    if (cut) assert_int_equal(ftruncate(file, cut), 0);
    wt_status status = wt_telemetry_read(getpid(), &view);
    munmap(bytes, (size_t)size);
    close(file);
    wt_telemetry_destroy(t);
    return status;
}

static void spoil_magic(unsigned char *bytes, size_t size)
{
    (void)size;
    bytes[0] ^= 1;
}

static void spoil_version(unsigned char *bytes, size_t size)
{
    (void)size;
    bytes[8] ^= 1;
}

static void spoil_sequence(unsigned char *bytes, size_t size)
{
    (void)size;
    bytes[16] ^= 1; // odd: as if the writer had died in the middle
}

static void spoil_all(unsigned char *bytes, size_t size)
{
    memset(bytes + 24, 0xff, size - 24); // all rows: their number, names without an end
}

static void damaged_segments_are_told_from_good_ones(void **state)
{
    (void)state;
    assert_int_equal(read_spoiled(NULL, 0), WT_OK);
    assert_int_equal(read_spoiled(spoil_magic, 0), WT_ERR_FORMAT);
    assert_int_equal(read_spoiled(spoil_version, 0), WT_ERR_FORMAT);
    assert_int_equal(read_spoiled(spoil_sequence, 0), WT_ERR_TIMEOUT);
    assert_int_equal(read_spoiled(spoil_all, 0), WT_ERR_FORMAT);
    assert_int_equal(read_spoiled(NULL, 100), WT_ERR_FORMAT); // cut short: no signal either
}

static void a_dead_process_leaves_nothing_to_see(void **state)
{
    (void)state;
    static wt_telemetry_view view;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        wt_telemetry *t = NULL;
        char byte = wt_telemetry_create(&t) || wt_telemetry_publish(t);
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    char failed = 1;
    assert_int_equal(read(ready[0], &failed, 1), 1);
    assert_int_equal(failed, 0);
    assert_ok(wt_telemetry_read(child, &view));
    assert_int_equal(view.pid, child);
    kill(child, SIGKILL); // cannot clean up behind itself
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(wt_telemetry_read(child, &view), WT_ERR_NOT_FOUND);
    assert_false(listed(child)); // which removes it
    char name[48];
    snprintf(name, sizeof name, "/warptone.%d", (int)child);
    assert_int_equal(shm_open(name, O_RDONLY, 0), -1);
    assert_int_equal(wt_telemetry_read(-1, &view), WT_ERR_NOT_FOUND);
    assert_int_equal(wt_telemetry_read(INT64_MAX, &view), WT_ERR_NOT_FOUND);
    close(ready[0]);
    close(ready[1]);
}

enum { NOT_ALLOWED = 77 };

/// Publish where shared memory has room for one page, in a process that alone sees it so.
static int publish_without_room(void)
{
    wt_telemetry *t;
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4096"))
        return NOT_ALLOWED;
    if (wt_telemetry_create(&t)) return 1;
    if (wt_telemetry_publish(t) != WT_ERR_FILE || !strstr(wt_last_error(), strerror(ENOSPC))) return 2;
    wt_telemetry_destroy(t);
    return 0;
}

static void full_shared_memory_is_told_and_ends_nobody(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        signal(SIGBUS, SIG_DFL); // the test's handler would go on with the next test, in the child
        _exit(publish_without_room());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED) {
        print_message("skipped: mounting a small /dev/shm is not permitted\n");
        skip();
    }
    assert_int_equal(status, 0);
}

// ---- threads

typedef struct writers {
    wt_telemetry *t;
    wt_telemetry_row *row;
    atomic_bool stop;
} writers;

/// The two figures go up together, so a torn snapshot would be far apart.
static void *write_pairs(void *user)
{
    writers *w = user;
    for (int k = 0; k < 10000; k++) {
        wt_telemetry_add(w->row, WT_FIGURE_LAUNCHES, 1);
        wt_telemetry_add(w->row, WT_FIGURE_DEVICE_NS, 3);
    }
    return NULL;
}

static void *publish_often(void *user)
{
    writers *w = user;
    wt_status status = WT_OK;
    while (!atomic_load(&w->stop) && !status) status = wt_telemetry_publish(w->t);
    return status ? user : NULL;
}

static void threads_write_while_others_read(void **state)
{
    (void)state;
    writers w = {0};
    static wt_telemetry_view view;
    w.t = telemetry_of_rows(1, &w.row);
    assert_ok(wt_telemetry_publish(w.t));
    pthread_t threads[8], publisher;
    assert_int_equal(pthread_create(&publisher, NULL, publish_often, &w), 0);
    for (int k = 0; k < 8; k++) assert_int_equal(pthread_create(&threads[k], NULL, write_pairs, &w), 0);
    int64_t before = 0;
    for (int k = 0; k < 200; k++) {
        wt_status status = wt_telemetry_read(getpid(), &view);
        if (status == WT_ERR_TIMEOUT) continue; // the publisher never rests
        assert_int_equal(status, WT_OK);
        int64_t launches = view.rows[0].figures[WT_FIGURE_LAUNCHES];
        assert_true(launches >= before && launches <= 80000);
        before = launches;
    }
    for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    atomic_store(&w.stop, true);
    void *failed;
    pthread_join(publisher, &failed);
    assert_null(failed);
    assert_ok(wt_telemetry_publish(w.t));
    assert_ok(wt_telemetry_read(getpid(), &view));
    assert_int_equal(view.rows[0].figures[WT_FIGURE_LAUNCHES], 80000);
    assert_int_equal(view.rows[0].figures[WT_FIGURE_DEVICE_NS], 240000);
    wt_telemetry_destroy(w.t);
}

// ---- from the engine

static void run_nothing(const void *args, int item)
{
    (void)args;
    (void)item;
}

static void figures_come_from_partitions_pools_and_dispatch(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_partition *llm = wt_layout_find(layout, "llm");
    wt_stream *stream = stream_of(llm);
    wt_telemetry_row *row;
    wt_telemetry *t = telemetry_of_rows(1, &row);
    wt_pool *pool = NULL;
    wt_pool_block block;
    assert_ok(wt_pool_create(device, &(wt_pool_config){.quota_bytes = 1 << 20}, &pool));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 1000}, stream, &block));
    wt_telemetry_sample_partition(row, llm);
    wt_telemetry_sample_pool(row, pool);
    static wt_telemetry_view view;
    wt_telemetry_snapshot(t, &view);
    const int64_t *f = view.rows[0].figures;
    assert_int_equal(f[WT_FIGURE_SMS], info_of(llm).n_sms);
    assert_true(f[WT_FIGURE_SM_PERMILLE] > 0 && f[WT_FIGURE_SM_PERMILLE] <= 1000);
    assert_int_equal(f[WT_FIGURE_MEMORY_USED], 1024);
    assert_int_equal(f[WT_FIGURE_MEMORY_QUOTA], 1 << 20);
    if (wt_device_get_info(device)->backend == WT_BACKEND_CPU) { // on a GPU test_dispatch runs kernels
        wt_dispatch *dispatch = NULL;
        int lane;
        assert_ok(wt_dispatch_create(device, &(wt_dispatch_config){.partition = llm, .telemetry = row}, &dispatch));
        assert_ok(wt_dispatch_add_stream(dispatch, stream, NULL, &lane));
        for (int k = 0; k < 10; k++)
            assert_ok(wt_dispatch_submit(
                dispatch, &(wt_dispatch_request){.lane = lane, .function = run_nothing, .n_items = 1, .timed = true},
                NULL));
        assert_ok(wt_dispatch_drain(dispatch));
        wt_telemetry_snapshot(t, &view);
        assert_int_equal(f[WT_FIGURE_LAUNCHES], 10);
        assert_true(f[WT_FIGURE_DEVICE_NS] > 0);
        assert_int_equal(f[WT_FIGURE_IN_FLIGHT], 0);
        wt_dispatch_destroy(dispatch);
    }
    assert_ok(wt_pool_free(pool, block, stream));
    wt_pool_destroy(pool);
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
    wt_telemetry_destroy(t);
}

static wt_status start_nothing(void *user, wt_task task, const wt_work *work)
{
    (void)user;
    (void)task;
    (void)work;
    return WT_OK;
}

static void figures_come_from_the_scheduler(void **state)
{
    (void)state;
    wt_scheduler *scheduler = NULL;
    wt_manual_clock clock;
    int partition;
    wt_task first, second;
    wt_manual_clock_init(&clock, 0);
    assert_ok(wt_scheduler_create(&(wt_scheduler_config){.clock = &clock.clock}, &scheduler));
    assert_ok(wt_scheduler_add_partition(
        scheduler, &(wt_scheduler_partition_config){.executor = {.start = start_nothing}}, &partition));
    const wt_task_config config = {.partition = partition, .cost_ns = 1000};
    assert_ok(wt_scheduler_submit(scheduler, &config, &first, NULL));
    assert_ok(wt_scheduler_submit(scheduler, &config, &second, NULL)); // foretold to start at 1000
    wt_manual_clock_advance(&clock, 500);
    wt_telemetry_row *rows[2];
    wt_telemetry *t = telemetry_of_rows(2, rows);
    static wt_telemetry_view view;
    assert_ok(wt_telemetry_sample_task(rows[0], scheduler, first));
    assert_ok(wt_telemetry_sample_task(rows[1], scheduler, second));
    wt_telemetry_snapshot(t, &view); // row 1 is a partition and comes first
    assert_int_equal(view.rows[1].figures[WT_FIGURE_IN_FLIGHT], 1);
    assert_int_equal(view.rows[0].figures[WT_FIGURE_IN_FLIGHT], 0);
    assert_true(view.rows[0].figures[WT_FIGURE_QUEUE_POSITION] >= 0);
    assert_ok(wt_scheduler_finish(scheduler, first, WT_OK, 450));
    assert_ok(wt_telemetry_sample_task(rows[0], scheduler, first));
    wt_telemetry_snapshot(t, &view);
    assert_int_equal(view.rows[1].figures[WT_FIGURE_DEVICE_NS], 450);
    assert_int_equal(view.rows[1].figures[WT_FIGURE_RUNS], 1);
    assert_int_equal(wt_telemetry_sample_task(rows[0], scheduler, (wt_task){0}), WT_ERR_BAD_ARG);
    wt_scheduler_partition_stats stats; // the second started at 500
    assert_ok(wt_scheduler_get_partition(scheduler, partition, &stats));
    assert_int_equal(stats.n_predicted, 1);
    assert_int_equal(stats.prediction_bias_ns, -500);
    assert_ok(wt_telemetry_sample_scheduler(rows[1], scheduler, partition));
    wt_telemetry_snapshot(t, &view);
    assert_int_equal(view.rows[0].figures[WT_FIGURE_PREDICTION_MEAN], 500);
    assert_in_range(view.rows[0].figures[WT_FIGURE_PREDICTION_P99], 496, 504); // a histogram's 0.8 %
    assert_int_equal(view.rows[0].figures[WT_FIGURE_IN_FLIGHT], 1);
    assert_int_equal(view.rows[0].figures[WT_FIGURE_RUNS], 1);
    assert_int_equal(wt_telemetry_sample_scheduler(rows[1], scheduler, 9), WT_ERR_BAD_ARG);
    assert_ok(wt_scheduler_finish(scheduler, second, WT_OK, 1));
    wt_scheduler_destroy(scheduler);
    wt_telemetry_destroy(t);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_snapshot_holds_the_rows_partitions_first),
        cmocka_unit_test(rows_are_checked_and_bounded),
        cmocka_unit_test(figures_have_names),
        cmocka_unit_test(writing_is_real_time),
        cmocka_unit_test(prometheus_text_is_bounded_and_escaped),
        cmocka_unit_test(what_is_published_can_be_read_and_goes_away),
        cmocka_unit_test(damaged_segments_are_told_from_good_ones),
        cmocka_unit_test(a_dead_process_leaves_nothing_to_see),
        cmocka_unit_test(full_shared_memory_is_told_and_ends_nobody),
        cmocka_unit_test(threads_write_while_others_read),
        cmocka_unit_test(figures_come_from_the_scheduler),
    };
    const struct CMUnitTest device[] = {cmocka_unit_test(figures_come_from_partitions_pools_and_dispatch)};
    return cmocka_run_group_tests_name("telemetry", plain, NULL, NULL) +
           cmocka_run_group_tests_name("telemetry: CPU", device, open_cpu, close_device) +
           cmocka_run_group_tests_name("telemetry: CUDA", device, open_cuda, close_device);
}
