// Shares of device time and slices of bounded duration, in virtual time with noisy costs.
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/pacing.h>

enum { WINDOW_NS = 100000000, N_PIECES = 40000 };

static double uniform(uint64_t *seed) { return (1 + (double)noise(seed)) / 2; }

// Pieces of 50 .. 2000 us, a tenth of them short, one after another whenever the pacer lets them. The times at which
// device time was used are kept as intervals; a window's use is the sum of their overlaps.
typedef struct usage {
    int64_t begin_ns[N_PIECES], end_ns[N_PIECES];
} usage;

static usage *use_device(double share, uint64_t seed)
{
    usage *u = calloc(1, sizeof *u);
    wt_pacer pacer;
    int64_t now_ns = 0;
    assert_ok(wt_pacer_init(&pacer, &(wt_pacer_config){.share = share}, 0));
    for (int k = 0; k < N_PIECES; k++) {
        int64_t ready_ns = wt_pacer_ready_at(&pacer, now_ns);
        if (ready_ns > now_ns) now_ns = ready_ns;
        double us = 50 + uniform(&seed) * (k % 10 ? 1950 : 100);
        u->begin_ns[k] = now_ns;
        u->end_ns[k] = now_ns += (int64_t)(us * 1000);
        wt_pacer_charge(&pacer, now_ns, us);
    }
    return u;
}

// Largest distance from the share over every window that begins or ends where a piece does: between those places the
// use of a window changes steadily, so these are the extremes. In points of the window.
static double worst_points(const usage *u, double share, int side)
{
    double worst = 0;
    int64_t sum_ns = 0; // of the pieces first .. last - 1, whole
    for (int k = 0, first = 0, last = 0; k < N_PIECES; k++) {
        for (int at_end = 0; at_end < 2; at_end++) {
            int64_t edge_ns = at_end ? u->end_ns[k] : u->begin_ns[k];
            int64_t begin_ns = side ? edge_ns - WINDOW_NS : edge_ns, end_ns = begin_ns + WINDOW_NS;
            if (begin_ns < 0 || end_ns > u->end_ns[N_PIECES - 1]) continue;
            while (last < N_PIECES && u->begin_ns[last] < end_ns) sum_ns += u->end_ns[last] - u->begin_ns[last], last++;
            while (u->end_ns[first] <= begin_ns) sum_ns -= u->end_ns[first] - u->begin_ns[first], first++;
            int64_t used_ns = sum_ns;
            if (u->begin_ns[first] < begin_ns) used_ns -= begin_ns - u->begin_ns[first];
            if (u->end_ns[last - 1] > end_ns) used_ns -= u->end_ns[last - 1] - end_ns;
            double points = fabs((double)used_ns / WINDOW_NS - share) * 100;
            if (points > worst) worst = points;
        }
    }
    return worst;
}

static void the_share_holds_within_3_points_of_any_100_ms(void **state)
{
    (void)state;
    static const double shares[] = {0.1, 0.2, 0.5, 0.8};
    for (int k = 0; k < 4; k++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            usage *u = use_device(shares[k], seed);
            double worst = fmax(worst_points(u, shares[k], 0), worst_points(u, shares[k], 1));
            if (worst > 3) fail_msg("share %g: %g points off", shares[k], worst);
            int64_t sum_ns = 0;
            for (int i = 0; i < N_PIECES; i++) sum_ns += u->end_ns[i] - u->begin_ns[i];
            // Over all of it, only the burst and the last debt differ: 3 ms of at least 40 s.
            assert_true(fabs((double)sum_ns / (double)u->end_ns[N_PIECES - 1] - shares[k]) < 3e6 / 40e9 + 1e-9);
            free(u);
        }
}

static void a_new_share_holds_from_then_on(void **state)
{
    (void)state;
    wt_pacer pacer;
    assert_ok(wt_pacer_init(&pacer, &(wt_pacer_config){.share = 0.5, .burst_us = 100}, 1000));
    assert_int_equal(wt_pacer_ready_at(&pacer, 1000), 1000);
    wt_pacer_charge(&pacer, 1000, 200); // owes 100 us: 200 us at one half
    assert_int_equal(wt_pacer_ready_at(&pacer, 1000), 201000);
    assert_ok(wt_pacer_set_share(&pacer, 0.1, 1000));
    assert_int_equal(wt_pacer_ready_at(&pacer, 1000), 1001000);
    wt_pacer_charge(&pacer, 1000, -5);
    wt_pacer_charge(&pacer, 1000, NAN);
    wt_pacer_charge(&pacer, 500, 0); // a clock that went back gives nothing
    assert_int_equal(wt_pacer_ready_at(&pacer, 1000), 1001000);
}

// ---- slices

typedef struct sliced {
    double us_per_item, overhead_us, noise; ///< true cost; noise: up to this part above or below
} sliced;

static double run_slice(const sliced *work, int64_t items, uint64_t *seed)
{
    return work->overhead_us + work->us_per_item * (double)items * (1 + work->noise * (double)noise(seed));
}

// The margin of 0.25 covers a slice 20 % above the mean cost after slices as far below it (the estimate falls slowly).
static void slices_stay_below_their_bound(void **state)
{
    (void)state;
    static const sliced works[] = {{0.013, 0, 0.2}, {0.5, 2, 0.2}, {3, 0, 0.2}, {0.001, 4, 0}};
    for (int k = 0; k < 4; k++) {
        wt_slicer slicer;
        uint64_t seed = (uint64_t)k + 7;
        int64_t left = (int64_t)(1e6 / works[k].us_per_item), n_slices = 0;
        double worst_us = 0, total_us = 0;
        assert_ok(wt_slicer_init(&slicer, &(wt_slicer_config){.bound_us = 200, .granule_items = 4, .margin = 0.25}));
        for (int64_t items; (items = wt_slicer_next(&slicer, left)) > 0; left -= items, n_slices++) {
            double us = run_slice(&works[k], items, &seed);
            assert_true(items % 4 == 0 || items == left);
            wt_slicer_measured(&slicer, items, us);
            total_us += us;
            if (us > worst_us) worst_us = us;
        }
        assert_int_equal(left, 0);
        if (worst_us > 200) fail_msg("work %d: a slice of %g us, bound 200", k, worst_us);
        double mean_us = total_us / (double)n_slices;
        if (mean_us < 100) fail_msg("work %d: slices of %g us, too short", k, mean_us);
    }
}

// Work that gets ten times dearer: one slice is measured too long, the next is within the bound again.
static void a_rise_in_cost_is_followed_at_once(void **state)
{
    (void)state;
    wt_slicer slicer;
    uint64_t seed = 3;
    assert_ok(wt_slicer_init(&slicer, &(wt_slicer_config){.bound_us = 100, .us_per_item = 0.1}));
    int n_long = 0;
    for (int k = 0; k < 200; k++) {
        const sliced work = {k < 100 ? 0.1 : 1.0, 0, 0.05};
        int64_t items = wt_slicer_next(&slicer, INT64_MAX);
        double us = run_slice(&work, items, &seed);
        wt_slicer_measured(&slicer, items, us);
        n_long += us > 100;
    }
    assert_int_equal(n_long, 1);
    wt_slicer_measured(&slicer, 0, 5);
    wt_slicer_measured(&slicer, 5, NAN);
    assert_int_equal(wt_slicer_next(&slicer, 0), 0);
    assert_int_equal(wt_slicer_next(&slicer, -3), 0);
    assert_int_equal(wt_slicer_next(&slicer, 1), 1);
}

static void works_of_one_priority_take_turns(void **state)
{
    (void)state;
    wt_slice_queue *queue;
    wt_slicer slicer;
    int low[3], high, extra;
    assert_ok(wt_slicer_init(&slicer, &(wt_slicer_config){.bound_us = 10, .max_items = 4, .us_per_item = 1}));
    assert_ok(wt_slice_queue_create(4, &queue));
    for (int k = 0; k < 3; k++) assert_ok(wt_slice_queue_add(queue, &slicer, 0, 12, &low[k]));
    wt_slice slice;
    for (int turn = 0; turn < 6; turn++) {
        int64_t left;
        assert_ok(wt_slice_queue_next(queue, &slice));
        assert_int_equal(slice.work, low[turn % 3]);
        assert_int_equal(slice.offset_item, turn / 3 * 4);
        assert_int_equal(slice.n_items, 4);
        assert_ok(wt_slice_queue_done(queue, slice.work, 4, &left));
        assert_int_equal(left, 12 - 4 * (turn / 3 + 1));
    }
    assert_ok(wt_slice_queue_add(queue, &slicer, 7, 4, &high));
    assert_fails(wt_slice_queue_add(queue, &slicer, 0, 1, &extra), WT_ERR_FULL, "slice queue: all 4 works are taken");
    assert_ok(wt_slice_queue_next(queue, &slice));
    assert_int_equal(slice.work, high);
    assert_ok(wt_slice_queue_next(queue, &slice)); // its only slice is out: the others go on
    assert_int_equal(slice.work, low[0]);
    assert_ok(wt_slice_queue_remove(queue, low[0]));
    assert_ok(wt_slice_queue_remove(queue, low[1]));
    int64_t left = -1;
    assert_ok(wt_slice_queue_done(queue, low[0], 4, &left));
    assert_int_equal(left, 0);
    assert_ok(wt_slice_queue_done(queue, high, 4, &left));
    assert_int_equal(left, 0);
    assert_int_equal(wt_slice_queue_done(queue, high, 4, NULL), WT_ERR_BAD_ARG);
    assert_int_equal(wt_slice_queue_done(queue, low[2], 4, NULL), WT_ERR_STATE);
    assert_ok(wt_slice_queue_next(queue, &slice));
    assert_int_equal(slice.work, low[2]);
    assert_int_equal(wt_slice_queue_next(queue, &slice), WT_ERR_NOT_FOUND);
    wt_slice_queue_destroy(queue);
    wt_slice_queue_destroy(NULL);
}

static void figures_out_of_range_are_refused(void **state)
{
    (void)state;
    wt_pacer pacer;
    static const double shares[] = {0, -1, 1.01, NAN, INFINITY};
    for (int k = 0; k < 5; k++)
        assert_int_equal(wt_pacer_init(&pacer, &(wt_pacer_config){.share = shares[k]}, 0), WT_ERR_BAD_ARG);
    assert_fails(wt_pacer_init(&pacer, &(wt_pacer_config){.share = 1.5}, 0), WT_ERR_BAD_ARG,
                 "pacer: share 1.5, want above 0, at most 1");
    assert_fails(wt_pacer_init(&pacer, &(wt_pacer_config){.share = 1, .burst_us = -1}, 0), WT_ERR_BAD_ARG,
                 "pacer: burst -1 us, want 0..1e9");
    static const wt_slicer_config bad[] = {{.bound_us = 0}, {.bound_us = NAN}, {.bound_us = 1, .granule_items = -1},
                                           {.bound_us = 1, .granule_items = 4, .max_items = 3},
                                           {.bound_us = 1, .us_per_item = -1}, {.bound_us = 1, .margin = 1}};
    wt_slicer slicer;
    for (int k = 0; k < 6; k++) assert_int_equal(wt_slicer_init(&slicer, &bad[k]), WT_ERR_BAD_ARG);
    wt_slice_queue *queue;
    assert_fails(wt_slice_queue_create(0, &queue), WT_ERR_BAD_ARG, "slice queue: capacity 0, want 1..1024");
    assert_int_equal(wt_slice_queue_create(1025, &queue), WT_ERR_BAD_ARG);
    assert_null(queue);
}

static wt_status create_queue(void *user) { return wt_slice_queue_create(8, user); }
static void destroy_queue(void *user) { wt_slice_queue_destroy(*(wt_slice_queue **)user); }

static void survives_memory_running_out(void **state)
{
    (void)state;
    wt_slice_queue *queue;
    assert_int_equal(assert_survives_failing_alloc(create_queue, destroy_queue, &queue), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_holds_within_3_points_of_any_100_ms),
        cmocka_unit_test(a_new_share_holds_from_then_on),
        cmocka_unit_test(slices_stay_below_their_bound),
        cmocka_unit_test(a_rise_in_cost_is_followed_at_once),
        cmocka_unit_test(works_of_one_priority_take_turns),
        cmocka_unit_test(figures_out_of_range_are_refused),
        cmocka_unit_test(survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
