// Checks of a plan, and the fleet: devices are played one after another with the memory of one.
#include "simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- checks

static wt_status refuse(const char *kind, const char *name, const char *field, double value, const char *wanted)
{
    if (!name) name = "(no name)";
    return wt_fail(WT_ERR_BAD_ARG, "%s %s: %s is %.10g, want %s", kind, name, field, value, wanted);
}

static bool is_in(double value, double least, double most) { return value >= least && value <= most; }

static wt_status check_partitions(const wt_plan *plan)
{
    int64_t sms = 0;
    for (uint32_t k = 0; k < plan->n_partitions; k++) {
        const wt_plan_partition *p = &plan->partitions[k];
        if (!p->name) return wt_fail(WT_ERR_BAD_ARG, "partition %u has no name", k);
        for (uint32_t i = 0; i < k; i++)
            if (!strcmp(plan->partitions[i].name, p->name))
                return wt_fail(WT_ERR_BAD_ARG, "partition %s: there are two of that name", p->name);
        if (!is_in(p->sms, 1, 1e6)) return refuse("partition", p->name, "sms", p->sms, "1 or more");
        if (!is_in(p->memory_mb, 0, 1e9)) return refuse("partition", p->name, "memory_mb", p->memory_mb, "0..1e9");
        if (!is_in(p->blocking_us, 0, 1e9))
            return refuse("partition", p->name, "blocking_us", p->blocking_us, "0..1e9");
        sms += p->sms;
    }
    if (sms > plan->sms)
        return wt_fail(WT_ERR_QUOTA, "plan: the partitions have %lld SMs together, the device %d", (long long)sms,
                       plan->sms);
    return WT_OK;
}

static wt_status check_load(const wt_plan_load *l)
{
    const struct {
        const char *field;
        double value, least, most;
        const char *wanted;
    } ranges[] = {
        {"cost_us", l->cost_us, 1e-3, 1e9, "0.001..1e9"},
        {"worst_us", l->worst_us, 0, 1e9, "0..1e9"},
        {"spread", l->spread, 0, 3, "0..3"},
        {"serial_part", l->serial_part, 0, 1, "0..1"},
        {"measured_on_sms", l->measured_on_sms, 0, 1e6, "0 or more"},
        {"memory_mb", l->memory_mb, 0, 1e9, "0..1e9"},
        {"count", l->count, 0, 1e6, "0..1000000"},
        {"tokens", l->tokens, 0, 1e6, "0..1000000"},
        {"prompt_us", l->prompt_us, 0, 1e9, "0..1e9"},
        {"pause_us", l->pause_us, 0, 1e12, "0..1e12"},
        {"deadline_us", l->deadline_us, 0, 1e9, "0..1e9"},
        {"period_us", l->period_us, l->kind == WT_PLAN_PERIODIC ? 1 : 0, 1e9, "1..1e9 for a periodic load"},
        {"rate_hz", l->rate_hz, l->kind == WT_PLAN_POISSON ? 1e-6 : 0, 1e6, "1e-6..1e6 for a poisson load"},
    };
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        if (!is_in(ranges[k].value, ranges[k].least, ranges[k].most))
            return refuse("load", l->name, ranges[k].field, ranges[k].value, ranges[k].wanted);
    return WT_OK;
}

static wt_status check_plan(const wt_plan *plan)
{
    if (!is_in(plan->devices, 0, 100000)) return refuse("plan", plan->name, "devices", plan->devices, "0..100000");
    if (!is_in(plan->sms, 1, 1e6)) return refuse("plan", plan->name, "sms", plan->sms, "1 or more");
    if (!is_in(plan->seconds, 0, 1e6)) return refuse("plan", plan->name, "seconds", plan->seconds, "0..1e6");
    if (!is_in(plan->memory_mb, 0, 1e9)) return refuse("plan", plan->name, "memory_mb", plan->memory_mb, "0..1e9");
    if (!is_in(plan->n_partitions, 1, 64))
        return refuse("plan", plan->name, "the number of partitions", plan->n_partitions, "1..64");
    if (!is_in(plan->n_loads, 1, 256))
        return refuse("plan", plan->name, "the number of loads", plan->n_loads, "1..256");
    wt_status status = check_partitions(plan);
    for (uint32_t k = 0; k < plan->n_loads && !status; k++) status = check_load(&plan->loads[k]);
    return status;
}

// ---- loads

static int64_t worst_of(const wt_plan_load *l, double median_us, double worst_us, double scale)
{
    if (worst_us == 0) worst_us = median_us * exp(4 * l->spread);
    double ns = worst_us * 1e3 * scale;
    return ns < 1 ? 1 : ns < 4e12 ? (int64_t)ceil(ns) : (int64_t)4e12;
}

static wt_status resolve(const wt_plan *plan, const wt_plan_load *l, wt__sim_load *load)
{
    uint32_t at = 0;
    while (at < plan->n_partitions && strcmp(plan->partitions[at].name, l->partition ? l->partition : "")) at++;
    if (at == plan->n_partitions)
        return wt_fail(WT_ERR_BAD_ARG, "load %s: no partition is named '%s'", l->name ? l->name : "(no name)",
                       l->partition ? l->partition : "");
    int sms = plan->partitions[at].sms;
    double ratio = l->measured_on_sms ? (double)l->measured_on_sms / sms : 1;
    load->plan = l;
    load->partition = (int)at;
    load->scale = l->serial_part + (1 - l->serial_part) * ratio;
    load->worst_ns = worst_of(l, l->cost_us, l->worst_us, load->scale);
    load->prompt_worst_ns = worst_of(l, l->prompt_us, 0, load->scale);
    load->result->name = l->name;
    load->result->n_streams = l->count ? l->count : 1;
    return wt_histogram_create(&load->response);
}

// ---- the fleet

typedef struct fleet {
    const wt_plan *plan;
    wt__sim_load *loads; ///< [n_loads]
    int64_t *left;       ///< [n_loads] streams that have no place yet
    wt__sim_device *device;
    wt_simulation *result;
    bool (*progress)(void *user, double done);
    void *user;
} fleet;

// This device's part of what is left; more when those before it took less.
static wt_status place_all(fleet *f, int devices_left)
{
    for (uint32_t k = 0; k < f->plan->n_loads; k++) {
        wt_load_result *result = f->loads[k].result;
        wt_admission a = {.outcome = WT_ADMITTED};
        for (int64_t n = (f->left[k] + devices_left - 1) / devices_left; n > 0 && a.outcome != WT_REJECTED; n--) {
            wt_status status = wt__sim_place(f->device, &f->loads[k], &a);
            if (status) return status;
            result->n_admitted += a.outcome == WT_ADMITTED;
            result->n_queued += a.outcome == WT_QUEUED;
            if (a.outcome == WT_REJECTED) result->reason = a.reason;
            else f->left[k]--;
        }
    }
    return WT_OK;
}

static wt_status add_partitions(fleet *f)
{
    for (uint32_t k = 0; k < f->plan->n_partitions; k++) {
        wt_scheduler_partition_stats stats;
        wt_partition_result *result = &f->result->partitions[k];
        wt_status status = wt_scheduler_get_partition(f->device->scheduler, (int)k, &stats);
        if (status) return status;
        result->utilisation += (double)stats.device_ns; // divided at the end
        result->reserved_time = fmax(result->reserved_time, stats.time_share);
        result->peak_memory_mb = fmax(result->peak_memory_mb, (double)stats.peak_memory_bytes * 1e-6);
        result->worst_wait_us = fmax(result->worst_wait_us, (double)stats.worst_wait_ns * 1e-3);
        result->n_preemptions += (int64_t)stats.n_yields;
        result->n_throttled += (int64_t)stats.n_throttled;
    }
    return WT_OK;
}

static wt_status play_fleet(fleet *f)
{
    int n_devices = f->plan->devices ? f->plan->devices : 1;
    for (int number = 0; number < n_devices; number++) {
        wt_status status = wt__sim_open(f->device, number);
        if (!status) status = place_all(f, n_devices - number);
        if (!status && f->device->n_streams) {
            f->result->n_devices_used++;
            status = wt__sim_play(f->device, (int64_t)(f->result->seconds * 1e9));
            if (!status) status = add_partitions(f);
        }
        wt__sim_close(f->device);
        if (status) return status;
    }
    return WT_OK;
}

static void sum_up(fleet *f)
{
    wt_simulation *r = f->result;
    r->n_events = f->device->n_events;
    for (uint32_t k = 0; k < r->n_loads; k++) {
        r->loads[k].n_rejected = f->left[k];
        r->loads[k].runs_hz = (double)r->loads[k].n_runs / r->seconds;
        wt_histogram_summarize(f->loads[k].response, &r->loads[k].response);
    }
    for (uint32_t k = 0; k < r->n_partitions; k++) {
        int lanes = f->plan->partitions[k].lanes ? f->plan->partitions[k].lanes : 1;
        if (r->n_devices_used) r->partitions[k].utilisation /= lanes * r->seconds * 1e9 * r->n_devices_used;
        r->partitions[k].name = f->plan->partitions[k].name;
    }
}

static wt_status simulate(fleet *f)
{
    const wt_plan *plan = f->plan;
    wt_simulation *r = f->result;
    int64_t most_streams = 0;
    r->n_loads = plan->n_loads, r->n_partitions = plan->n_partitions;
    r->seconds = plan->seconds > 0 ? plan->seconds : 10;
    r->loads = calloc(plan->n_loads, sizeof *r->loads);
    r->partitions = calloc(plan->n_partitions, sizeof *r->partitions);
    f->loads = calloc(plan->n_loads, sizeof *f->loads);
    f->left = calloc(plan->n_loads, sizeof *f->left);
    if (!r->loads || !r->partitions || !f->loads || !f->left) return wt_fail(WT_ERR_NO_MEMORY, "simulation: results");
    for (uint32_t k = 0; k < plan->n_loads; k++) {
        f->loads[k].result = &r->loads[k];
        wt_status status = resolve(plan, &plan->loads[k], &f->loads[k]);
        if (status) return status;
        most_streams += f->left[k] = r->loads[k].n_streams;
    }
    wt_status status = wt__sim_create(plan, (int)most_streams, &f->device);
    if (status) return status;
    f->device->progress = f->progress;
    f->device->progress_user = f->user;
    status = play_fleet(f);
    if (!status) sum_up(f);
    return status;
}

wt_status wt_simulate(const wt_plan *plan, bool (*progress)(void *user, double done), void *user,
                      wt_simulation **simulation)
{
    *simulation = NULL;
    wt_status status = check_plan(plan);
    if (status) return status;
    fleet f = {.plan = plan, .result = calloc(1, sizeof *f.result), .progress = progress, .user = user};
    if (!f.result) return wt_fail(WT_ERR_NO_MEMORY, "simulation: handle");
    status = simulate(&f);
    for (uint32_t k = 0; f.loads && k < plan->n_loads; k++) wt_histogram_destroy(f.loads[k].response);
    wt__sim_destroy(f.device);
    free(f.loads), free(f.left);
    if (status) wt_simulation_destroy(f.result);
    else *simulation = f.result;
    return status;
}

void wt_simulation_destroy(wt_simulation *r)
{
    if (!r) return;
    free(r->loads), free(r->partitions), free(r);
}
