// Plans played in virtual time, against what queueing theory and arithmetic say.
#include "../hosts/plan.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const wt_plan_partition whole = {.name = "all", .sms = 100};

static wt_simulation *simulate(const wt_plan *plan)
{
    wt_simulation *s;
    assert_ok(wt_simulate(plan, NULL, NULL, &s));
    return s;
}

static wt_simulation *simulate_one(const wt_plan_load *load, double seconds)
{
    return simulate(&(wt_plan){.sms = 100, .seconds = seconds, .partitions = &whole, .n_partitions = 1, .loads = load,
                               .n_loads = 1});
}

// ---- against theory

// One server, Poisson arrivals, fixed cost S at load r: mean response S + r S / (2 (1 - r)) (Pollaczek 1930, Khinchin
// 1932). 200,000 arrivals: the mean of what comes out lies within 2 % at a load of 0.5 and 5 % at 0.8.
static void a_queue_is_as_long_as_pollaczek_and_khinchin_say(void **state)
{
    (void)state;
    static const double loads[] = {0.2, 0.5, 0.8}, bounds[] = {0.01, 0.02, 0.05};
    for (int k = 0; k < 3; k++) {
        double cost_us = 1000, r = loads[k];
        wt_simulation *s = simulate_one(&(wt_plan_load){.name = "x", .partition = "all", .kind = WT_PLAN_POISSON,
                                                        .cost_us = cost_us, .rate_hz = r / cost_us * 1e6},
                                        200000 * cost_us * 1e-6 / r);
        double want_ns = 1e3 * (cost_us + r * cost_us / (2 * (1 - r)));
        if (fabs(s->loads[0].response.mean / want_ns - 1) > bounds[k])
            fail_msg("load %g: mean response %g us, want %g", r, s->loads[0].response.mean * 1e-3, want_ns * 1e-3);
        assert_true(fabs(s->partitions[0].utilisation - r) < 0.01);
        wt_simulation_destroy(s);
    }
}

static void periods_use_what_they_reserve(void **state)
{
    (void)state;
    wt_simulation *s = simulate_one(&(wt_plan_load){.name = "x", .partition = "all", .kind = WT_PLAN_PERIODIC,
                                                    .tier = WT_TIER_GUARANTEED, .count = 5, .cost_us = 100,
                                                    .period_us = 1000}, 5);
    assert_int_equal(s->loads[0].n_admitted, 5);
    assert_int_equal(s->loads[0].n_missed, 0);
    assert_true(s->loads[0].n_runs >= 24995 && s->loads[0].n_runs <= 25000);
    assert_true(fabs(s->partitions[0].utilisation - 0.5) < 1e-3);
    assert_true(fabs(s->partitions[0].reserved_time - 0.5) < 1e-9);
    assert_true(s->loads[0].response.p50 >= 100000 && s->loads[0].response.max <= 500000);
    wt_simulation_destroy(s);
}

// exp(spread * normal): the median is cost_us, and the 99 % quantile lies at exp(2.326 spread) times it.
static void costs_have_the_distribution_that_was_asked_for(void **state)
{
    (void)state;
    wt_simulation *s = simulate_one(&(wt_plan_load){.name = "x", .partition = "all", .kind = WT_PLAN_PERIODIC,
                                                    .tier = WT_TIER_BURSTABLE, .cost_us = 100, .spread = 0.3,
                                                    .period_us = 1000}, 50);
    const wt_histogram_summary *h = &s->loads[0].response; // alone: the response is the cost
    assert_true(fabs((double)h->p50 / 100e3 - 1) < 0.02);
    assert_true(fabs((double)h->p99 / (100e3 * exp(2.326 * 0.3)) - 1) < 0.03);
    assert_true((double)h->max <= 100e3 * exp(4 * 0.3) + 1);
    wt_simulation_destroy(s);
}

static void a_decode_loop_gives_one_token_after_another(void **state)
{
    (void)state;
    wt_simulation *s = simulate_one(&(wt_plan_load){.name = "x", .partition = "all", .kind = WT_PLAN_DECODE,
                                                    .cost_us = 10000, .tokens = 9, .prompt_us = 110000}, 100);
    assert_true(s->loads[0].n_runs >= 4990 && s->loads[0].n_runs <= 5000); // 10 runs in 0.2 s
    assert_true(s->loads[0].response.p50 >= 9900000 && s->loads[0].response.p50 <= 10100000);
    assert_int_equal(s->loads[0].response.max, 110000000);
    wt_simulation_destroy(s);
}

static void costs_shrink_with_sms_by_amdahls_law(void **state)
{
    (void)state;
    static const double serial[] = {0, 0.25, 1}, want_us[] = {400, 325, 100}; // measured on 400, run on 100
    for (int k = 0; k < 3; k++) {
        wt_simulation *s = simulate_one(&(wt_plan_load){.name = "x", .partition = "all", .kind = WT_PLAN_PERIODIC,
                                                        .cost_us = 100, .measured_on_sms = 400,
                                                        .serial_part = serial[k], .period_us = 1000}, 1);
        assert_int_equal(s->loads[0].response.max, (int64_t)(want_us[k] * 1000));
        wt_simulation_destroy(s);
    }
}

// ---- fleets

static void a_fleet_takes_what_its_devices_take(void **state)
{
    (void)state;
    // 3 of these fit a device (0.3 each): 100 devices take 300.
    wt_plan_load load = {.name = "x", .partition = "all", .kind = WT_PLAN_PERIODIC, .tier = WT_TIER_GUARANTEED,
                         .cost_us = 300, .period_us = 1000};
    static const int counts[] = {1, 50, 250, 300, 301, 1000};
    for (int k = 0; k < 6; k++) {
        load.count = counts[k];
        wt_simulation *s = simulate(&(wt_plan){.devices = 100, .sms = 100, .seconds = 0.02, .partitions = &whole,
                                               .n_partitions = 1, .loads = &load, .n_loads = 1});
        assert_int_equal(s->loads[0].n_admitted, counts[k] < 300 ? counts[k] : 300);
        assert_int_equal(s->loads[0].n_rejected, counts[k] < 300 ? 0 : counts[k] - 300);
        assert_int_equal(s->loads[0].reason, counts[k] > 300 ? WT_REASON_TIME : WT_REASON_NONE);
        assert_int_equal(s->n_devices_used, counts[k] < 100 ? counts[k] : 100);
        assert_int_equal(s->loads[0].n_missed, 0);
        wt_simulation_destroy(s);
    }
}

static void the_same_plan_gives_the_same_result_and_another_seed_does_not(void **state)
{
    (void)state;
    const wt_plan_load loads[] = {
        {.name = "a", .partition = "all", .kind = WT_PLAN_POISSON, .cost_us = 100, .spread = 0.5, .rate_hz = 3000,
         .count = 20},
        {.name = "b", .partition = "all", .kind = WT_PLAN_DECODE, .cost_us = 100, .spread = 0.5, .pause_us = 1000},
    };
    wt_plan plan = {.devices = 10, .sms = 100, .seconds = 1, .partitions = &whole, .n_partitions = 1, .loads = loads,
                    .n_loads = 2};
    wt_simulation *a = simulate(&plan), *b = simulate(&plan);
    plan.seed = 1;
    wt_simulation *c = simulate(&plan);
    assert_memory_equal(&a->loads[0], &b->loads[0], sizeof a->loads[0]);
    assert_memory_equal(&a->loads[1], &b->loads[1], sizeof a->loads[0]);
    assert_true(a->n_events == b->n_events && a->loads[0].response.mean != c->loads[0].response.mean);
    wt_simulation_destroy(a), wt_simulation_destroy(b), wt_simulation_destroy(c);
}

static bool note_progress(void *user, double done)
{
    double *last = user;
    assert_true(done >= *last && done <= 1 + 1e-9);
    *last = done;
    return done < 0.5;
}

static void progress_grows_and_may_stop_it(void **state)
{
    (void)state;
    const wt_plan_load load = {.name = "x", .partition = "all", .kind = WT_PLAN_PERIODIC, .cost_us = 1, .period_us = 10,
                               .count = 100};
    const wt_plan plan = {.devices = 100, .sms = 100, .seconds = 0.01, .partitions = &whole, .n_partitions = 1,
                          .loads = &load, .n_loads = 1};
    wt_simulation *s;
    double last = 0;
    assert_fails(wt_simulate(&plan, note_progress, &last, &s), WT_ERR_CANCELLED, "simulation: stopped");
    assert_null(s);
    assert_true(last >= 0.5 && last < 0.52);
}

// ---- plans as files

static void every_example_plan_can_be_played(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("presets/plans/*.yaml", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 3);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        wt_plan *plan;
        assert_ok(plan_load(found.gl_pathv[k], &plan));
        assert_non_null(plan->description);
        if (plan->devices > 50) plan->devices = 50;
        plan->seconds = 1;
        wt_simulation *s = simulate(plan);
        for (uint32_t i = 0; i < s->n_loads; i++) {
            const wt_load_result *l = &s->loads[i];
            assert_int_equal(l->n_admitted + l->n_queued + l->n_rejected, l->n_streams);
            if (plan->loads[i].tier == WT_TIER_GUARANTEED) assert_int_equal(l->n_missed, 0);
        }
        wt_simulation_destroy(s);
        plan_free(plan);
    }
    globfree(&found);
    plan_free(NULL);
}

static void what_is_wrong_in_a_file_is_told_with_its_line(void **state)
{
    (void)state;
    static const char head[] = "name: x\nsms: 10\npartitions:\n  - {name: a, sms: 5}\nloads:\n";
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"  - {name: l, partition: a, kind: poison, cost_us: 1}\n", ":6: "},
        {"  - {name: l, partition: a, kind: poisson, cost_u: 1}\n",
         ":6: unknown key 'cost_u'; the nearest is 'cost_us'"},
        {"  - {name: l, partition: a, kind: poisson}\n", ":6: "},
        {"  - {name: l, partition: a, kind: poisson, cost_us: many}\n", ":6: "},
        {"  - name: [\n", ":"},
    };
    char path[] = "/tmp/warptone-plan-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        FILE *file = fopen(path, "w");
        fprintf(file, "%s%s", head, cases[k].text);
        fclose(file);
        wt_plan *plan;
        assert_int_equal(plan_load(path, &plan), WT_ERR_FORMAT);
        assert_null(plan);
        const char *message = wt_last_error();
        if (strncmp(message, path, strlen(path)) || strncmp(message + strlen(path), cases[k].sentence,
                                                            strlen(cases[k].sentence)))
            fail_msg("case %zu: \"%s\", want \"%s\"", k, message, cases[k].sentence);
    }
    unlink(path);
    wt_plan *plan;
    assert_fails(plan_load("/nowhere/plan.yaml", &plan), WT_ERR_FILE,
                 "/nowhere/plan.yaml: cannot be read: No such file or directory");
}

static void figures_out_of_range_are_refused(void **state)
{
    (void)state;
    const wt_plan_load good = {.name = "l", .partition = "all", .kind = WT_PLAN_PERIODIC, .cost_us = 1,
                               .period_us = 10};
    wt_plan_load load = good;
    wt_plan_partition partition = whole;
    wt_plan plan = {.sms = 100, .partitions = &partition, .n_partitions = 1, .loads = &load, .n_loads = 1};
    wt_simulation *s;
    load.cost_us = -1;
    assert_fails(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG, "load l: cost_us is -1, want 0.001..1e9");
    load = good, load.cost_us = NAN;
    assert_int_equal(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG);
    load = good, load.period_us = 0;
    assert_fails(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG,
                 "load l: period_us is 0, want 1..1e9 for a periodic load");
    load = good, load.partition = "none";
    assert_fails(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG, "load l: no partition is named 'none'");
    load = good, load.weight = -4;
    assert_int_equal(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG); // the scheduler's own check
    load = good, partition.sms = 101;
    assert_fails(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_QUOTA,
                 "plan: the partitions have 101 SMs together, the device 100");
    partition = whole, partition.lanes = 65;
    assert_int_equal(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG);
    partition = whole, plan.devices = -1;
    assert_int_equal(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG);
    plan.devices = 0, plan.n_loads = 0;
    assert_int_equal(wt_simulate(&plan, NULL, NULL, &s), WT_ERR_BAD_ARG);
    assert_null(s);
}

static wt_status create_result(void *user)
{
    static const wt_plan_load load = {.name = "l", .partition = "all", .kind = WT_PLAN_POISSON, .cost_us = 100,
                                      .rate_hz = 100};
    static const wt_plan plan = {.sms = 100, .seconds = 0.1, .partitions = &whole, .n_partitions = 1, .loads = &load,
                                 .n_loads = 1};
    return wt_simulate(&plan, NULL, NULL, user);
}
static void destroy_result(void *user) { wt_simulation_destroy(*(wt_simulation **)user); }

static void survives_memory_running_out(void **state)
{
    (void)state;
    wt_simulation *s;
    assert_true(assert_survives_failing_alloc(create_result, destroy_result, &s) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_is_as_long_as_pollaczek_and_khinchin_say),
        cmocka_unit_test(periods_use_what_they_reserve),
        cmocka_unit_test(costs_have_the_distribution_that_was_asked_for),
        cmocka_unit_test(a_decode_loop_gives_one_token_after_another),
        cmocka_unit_test(costs_shrink_with_sms_by_amdahls_law),
        cmocka_unit_test(a_fleet_takes_what_its_devices_take),
        cmocka_unit_test(the_same_plan_gives_the_same_result_and_another_seed_does_not),
        cmocka_unit_test(progress_grows_and_may_stop_it),
        cmocka_unit_test(every_example_plan_can_be_played),
        cmocka_unit_test(what_is_wrong_in_a_file_is_told_with_its_line),
        cmocka_unit_test(figures_out_of_range_are_refused),
        cmocka_unit_test(survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
