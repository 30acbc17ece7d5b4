// Which SMs the partitions of a layout get, on paper: an H200 as its driver describes it (132 SMs, units of 8, 4 over).
#include "support/testing.h"
#include "../engine/partition_internal.h"

#include <string.h>

static const wt_device_info h200 = {.backend = WT_BACKEND_CUDA,
                                    .name = "a GPU of 132 SMs",
                                    .n_sms = 132,
                                    .memory_bytes = (size_t)141 << 30,
                                    .partition_sms = 8,
                                    .partition_align_sms = 8};
static const wt__units coarse = {.n_units = 16, .unit_sms = 8, .rest_sms = 4};

static int sms_of(const wt__unit_set *set, const wt__units *units)
{
    int n = set->rest ? units->rest_sms : 0;
    for (int k = 0; k < units->n_units; k++) n += set->has[k] ? units->unit_sms : 0;
    return n;
}

/// Check and plan on paper; the SMs of each partition into `got`.
static wt_status plan_sms(const wt_layout_config *config, int *got, int *unassigned)
{
    static wt__plan plan;
    wt_status status = wt__layout_check(config, &h200);
    if (!status) status = wt__layout_plan(config, &h200, &coarse, &plan);
    if (status) return status;
    for (int k = 0; k < config->n_partitions; k++) got[k] = sms_of(&plan.sets[k], &coarse);
    *unassigned = plan.unassigned_sms;
    for (int a = 0; a < config->n_partitions && !config->overcommit; a++)
        for (int b = 0; b < a; b++)
            for (int u = 0; u < coarse.n_units; u++) assert_false(plan.sets[a].has[u] && plan.sets[b].has[u]);
    return WT_OK;
}

static void presets_of_132_sms_are_8_56_and_the_rest(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n, sms[3];
    } cases[] = {{"audio+speech+llm", 3, {8, 56, 68}}, {"audio+llm", 2, {8, 124, 0}}, {"all", 1, {132, 0, 0}}};
    for (int k = 0; k < 3; k++) {
        wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
        wt_layout_config config;
        int got[3] = {0}, unassigned = -1;
        assert_ok(wt_layout_preset(cases[k].name, &h200, partitions, &config));
        assert_ok(plan_sms(&config, got, &unassigned));
        assert_int_equal(config.n_partitions, cases[k].n);
        assert_memory_equal(got, cases[k].sms, sizeof got);
        assert_int_equal(unassigned, 0);
    }
    wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
    wt_layout_config config;
    assert_fails(wt_layout_preset("llm", &h200, partitions, &config), WT_ERR_NOT_FOUND,
                 "layout: no preset \"llm\", want audio+speech+llm, audio+llm or all");
    wt_device_info tiny = {.backend = WT_BACKEND_CPU, .name = "CPU", .n_sms = 2};
    assert_fails(wt_layout_preset("audio+speech+llm", &tiny, partitions, &config), WT_ERR_QUOTA,
                 "layout: preset audio+speech+llm wants more than 2 SMs, CPU has 2");
}

static void counts_are_rounded_up_and_the_odd_sms_go_to_who_can_use_them(void **state)
{
    (void)state;
    int got[3], unassigned;
    wt_partition_config p[3] = {{.name = "a", .n_sms = 9}, {.name = "b", .sm_share = 0.5}, {.name = "c", .n_sms = 1}};
    wt_layout_config config = {.partitions = p, .n_partitions = 3};
    assert_ok(plan_sms(&config, got, &unassigned));
    assert_int_equal(got[0], 16);
    assert_int_equal(got[1], 72); // 66 is not a multiple of 8
    assert_int_equal(got[2], 8);
    assert_int_equal(unassigned, 36);
    p[0] = (wt_partition_config){.name = "a", .n_sms = 8};
    p[1] = (wt_partition_config){.name = "b", .n_sms = 124}; // 15 units and the 4 over
    config.n_partitions = 2;
    assert_ok(plan_sms(&config, got, &unassigned));
    assert_int_equal(got[1], 124);
    assert_int_equal(unassigned, 0);
    p[1].n_sms = 0;
    p[2] = (wt_partition_config){.name = "c"}; // two without a share
    config.n_partitions = 3;
    assert_ok(plan_sms(&config, got, &unassigned));
    assert_int_equal(got[1] + got[2], 124);
    p[0] = (wt_partition_config){.name = "a", .sm_share = 0.5};
    p[1] = (wt_partition_config){.name = "b", .sm_share = 0.5}; // what rounding "a" up to 72 leaves
    config.n_partitions = 2;
    assert_ok(plan_sms(&config, got, &unassigned));
    assert_true(got[0] == 72 && got[1] == 60);
    p[1].sm_share = 0.51;
    assert_fails(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA,
                 "layout: partition b wants 68 SMs (in units of 8), 60 of 132 are left");
}

static void nonsense_and_shares_above_what_is_left_are_refused(void **state)
{
    (void)state;
    int got[2], unassigned;
    wt_partition_config p[2] = {{.name = "a", .n_sms = 100}, {.name = "b", .n_sms = 40}};
    wt_layout_config config = {.partitions = p, .n_partitions = 2};
    assert_fails(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA,
                 "layout: partition b wants 40 SMs (in units of 8), 28 of 132 are left");
    config.overcommit = true;
    assert_ok(plan_sms(&config, got, &unassigned));
    assert_true(got[0] == 104 && got[1] == 40);
    p[1].n_sms = 133;
    assert_int_equal(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA); // more than there is, also over-committed
    config.overcommit = false;
    p[0].n_sms = 132;
    p[1].n_sms = 0;
    assert_fails(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA,
                 "layout: nothing is left for partition b of the 132 SMs of a GPU of 132 SMs");
    p[0] = (wt_partition_config){.name = "a", .memory_quota_bytes = (size_t)142 << 30};
    assert_int_equal(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA);
    p[0].memory_quota_bytes = (size_t)100 << 30;
    p[1].memory_quota_bytes = (size_t)42 << 30;
    assert_fails(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA,
                 "layout: partition b wants 45097156608 bytes of memory, 44023414784 are left of 151397597184");
    p[0] = (wt_partition_config){.name = "a", .bandwidth_share = 0.7};
    p[1] = (wt_partition_config){.name = "b", .bandwidth_share = 0.7};
    assert_int_equal(plan_sms(&config, got, &unassigned), WT_ERR_QUOTA);
    const wt_partition_config bad[] = {
        {.name = "b"},
        {.name = ""},
        {.name = NULL},
        {.name = "a name that is longer than is kept"},
        {.name = "a", .n_sms = -1},
        {.name = "a", .sm_share = 1.5},
        {.name = "a", .n_sms = 8, .sm_share = 0.5},
        {.name = "a", .bandwidth_share = -0.1},
        {.name = "a", .max_streams = -1},
        {.name = "a", .tier = WT_N_TIERS},
        {.name = "a", .lends = true},
        {.name = "a", .tier = WT_TIER_GUARANTEED, .borrows = true},
    };
    p[1] = (wt_partition_config){.name = "b"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        p[0] = bad[k];
        assert_int_equal(plan_sms(&config, got, &unassigned), WT_ERR_BAD_ARG);
    }
    config.n_partitions = WT_LAYOUT_MAX_PARTITIONS + 1;
    assert_int_equal(plan_sms(&config, got, &unassigned), WT_ERR_BAD_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_of_132_sms_are_8_56_and_the_rest),
        cmocka_unit_test(counts_are_rounded_up_and_the_odd_sms_go_to_who_can_use_them),
        cmocka_unit_test(nonsense_and_shares_above_what_is_left_are_refused),
    };
    return cmocka_run_group_tests_name("partition plan", tests, NULL, NULL);
}
