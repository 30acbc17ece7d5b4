// What a live session publishes of itself, read as another process would.
#include "support/testing.h"

#include "../hosts/live_telemetry.h"

#include <string.h>
#include <unistd.h>
#include <warptone/telemetry.h>

static const wt_telemetry_values *row_of(wt_telemetry_view *view, const char *name)
{
    assert_ok(wt_telemetry_read(getpid(), view));
    for (int k = 0; k < view->n_rows; k++)
        if (!strcmp(view->rows[k].name, name)) return &view->rows[k];
    fail_msg("no row \"%s\"", name);
    return NULL;
}

static wt_live_stats stats_of(wt_live_path path, uint64_t n_blocks, uint64_t n_misses)
{
    return (wt_live_stats){.path = path,
                           .n_blocks = n_blocks,
                           .n_misses = n_misses,
                           .process_ns = {.count = n_blocks, .mean = 100000},
                           .round_trip_ns = {.count = n_blocks, .mean = 10000}};
}

static void assert_figures(int64_t device_ns, int64_t runs, int64_t misses)
{
    static wt_telemetry_view view;
    const wt_telemetry_values *row = row_of(&view, "audio");
    assert_int_equal(row->kind, WT_TELEMETRY_PARTITION);
    assert_int_equal(row->figures[WT_FIGURE_DEVICE_NS], device_ns);
    assert_int_equal(row->figures[WT_FIGURE_RUNS], runs);
    assert_int_equal(row->figures[WT_FIGURE_DEADLINE_MISSES], misses);
}

static void publish(live_telemetry *t, wt_live_path path, uint64_t n_blocks, uint64_t n_misses)
{
    wt_live_stats stats = stats_of(path, n_blocks, n_misses);
    live_telemetry_publish(t, &stats);
}

static void figures_grow_with_the_session(void **state)
{
    (void)state;
    live_telemetry *t = NULL;
    static wt_telemetry_view view;
    assert_ok(live_telemetry_open(NULL, &t));
    publish(t, WT_LIVE_RESIDENT, 0, 0);
    assert_figures(0, 0, 0);
    publish(t, WT_LIVE_RESIDENT, 1000, 2);
    assert_figures(10000000, 1000, 2);
    publish(t, WT_LIVE_CPU, 1000, 2); // the time in the callback is another sum: no jump
    assert_figures(10000000, 1000, 2);
    publish(t, WT_LIVE_CPU, 1100, 3);
    assert_figures(20000000, 1100, 3);
    live_telemetry_close(t);
    assert_int_equal(wt_telemetry_read(getpid(), &view), WT_ERR_NOT_FOUND);
}

static void every_partition_has_a_row(void **state)
{
    (void)state;
    wt_device *device = NULL;
    wt_layout *layout = NULL;
    live_telemetry *t = NULL;
    static wt_telemetry_view view;
    const wt_partition_config partitions[] = {
        {.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.5},
        {.name = "llm", .tier = WT_TIER_BEST_EFFORT, .sm_share = 0.5},
    };
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &device));
    if (wt_device_get_info(device)->n_sms < 2) {
        wt_device_close(device);
        skip(); // one processor cannot be divided
    }
    assert_ok(wt_layout_create(device, &(wt_layout_config){.partitions = partitions, .n_partitions = 2}, &layout));
    assert_ok(live_telemetry_open(layout, &t));
    publish(t, WT_LIVE_CPU, 10, 0);
    assert_int_equal(row_of(&view, "llm")->tier, WT_TIER_BEST_EFFORT);
    assert_true(row_of(&view, "llm")->figures[WT_FIGURE_SMS] > 0);
    assert_int_equal(row_of(&view, "audio")->figures[WT_FIGURE_RUNS], 10);
    live_telemetry *second = NULL; // of the same process: it finds the place taken, and goes on
    assert_ok(live_telemetry_open(NULL, &second));
    publish(second, WT_LIVE_CPU, 77, 0);
    assert_int_equal(row_of(&view, "audio")->figures[WT_FIGURE_RUNS], 10);
    live_telemetry_close(second);
    live_telemetry_close(t);
    assert_ok(wt_layout_destroy(layout));
    wt_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_grow_with_the_session),
        cmocka_unit_test(every_partition_has_a_row),
    };
    return cmocka_run_group_tests_name("live telemetry", tests, NULL, NULL);
}
