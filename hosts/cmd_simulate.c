#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "plan.h"
#include "progress.h"

#include <jansson.h>
#include <stdio.h>

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone simulate PLAN.yaml [options]\n\n"
           "Plays the loads of a plan on its devices in virtual time, with the scheduler as it is, and tells\n"
           "what was admitted, how busy the partitions were, and how late work was. No GPU is needed.\n");
    wt_options_print(stdout, options, n);
    return EXIT_OK;
}

// ---- for people

static void print_load(const wt_load_result *l)
{
    const wt_histogram_summary *h = &l->response;
    printf("%-18s %8lld of %-8lld %11lld %9lld %10.1f %10.1f %10.1f %10.1f", l->name,
           (long long)(l->n_admitted + l->n_queued), (long long)l->n_streams, (long long)l->n_runs,
           (long long)l->n_missed, (double)h->p50 * 1e-3, (double)h->p99 * 1e-3, (double)h->p99_9 * 1e-3,
           (double)h->max * 1e-3);
    if (l->n_rejected || l->n_runs_rejected) printf("  rejected: %s", wt_reason_text(l->reason));
    putchar('\n');
}

static void print_report(const wt_plan *plan, const wt_simulation *s)
{
    printf("%s: %g s on %d of %d device%s with %d SMs, %lld events\n\n", plan->name, s->seconds, s->n_devices_used,
           plan->devices ? plan->devices : 1, plan->devices > 1 ? "s" : "", plan->sms, (long long)s->n_events);
    printf("%-18s %6s %6s %9s %11s %12s %12s %14s\n", "partition", "SMs", "used %", "reserved %", "memory MB",
           "preemptions", "throttled", "worst wait us");
    for (uint32_t k = 0; k < s->n_partitions; k++) {
        const wt_partition_result *p = &s->partitions[k];
        printf("%-18s %6d %6.1f %10.1f %11.0f %12lld %12lld %14.1f\n", p->name, plan->partitions[k].sms,
               100 * p->utilisation, 100 * p->reserved_time, p->peak_memory_mb, (long long)p->n_preemptions,
               (long long)p->n_throttled, p->worst_wait_us);
    }
    printf("\n%-18s %20s %11s %9s %10s %10s %10s %10s\n", "load", "streams placed", "runs", "late", "p50 us", "p99 us",
           "p99.9 us", "max us");
    for (uint32_t k = 0; k < s->n_loads; k++) print_load(&s->loads[k]);
}

// ---- for programs

static json_t *load_json(const wt_load_result *l)
{
    const wt_histogram_summary *h = &l->response;
    json_t *response = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "mean", h->mean * 1e-3, "p50", (double)h->p50 * 1e-3,
                                 "p99", (double)h->p99 * 1e-3, "p99_9", (double)h->p99_9 * 1e-3, "p99_99",
                                 (double)h->p99_99 * 1e-3, "max", (double)h->max * 1e-3);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:f, s:I, s:I, s:o}", "name", l->name, "streams",
                     (json_int_t)l->n_streams, "admitted", (json_int_t)l->n_admitted, "queued",
                     (json_int_t)l->n_queued, "rejected", (json_int_t)l->n_rejected, "reason",
                     wt_reason_text(l->reason), "runs", (json_int_t)l->n_runs, "runs_hz", l->runs_hz, "missed",
                     (json_int_t)l->n_missed, "runs_rejected", (json_int_t)l->n_runs_rejected, "response_us", response);
}

static void print_json(const wt_plan *plan, const wt_simulation *s)
{
    json_t *partitions = json_array(), *loads = json_array();
    for (uint32_t k = 0; k < s->n_partitions; k++) {
        const wt_partition_result *p = &s->partitions[k];
        json_array_append_new(partitions, json_pack(
            "{s:s, s:i, s:f, s:f, s:f, s:I, s:I, s:f}", "name", p->name, "sms", plan->partitions[k].sms, "utilisation",
            p->utilisation, "reserved_time", p->reserved_time, "peak_memory_mb", p->peak_memory_mb, "preemptions",
            (json_int_t)p->n_preemptions, "throttled", (json_int_t)p->n_throttled, "worst_wait_us", p->worst_wait_us));
    }
    for (uint32_t k = 0; k < s->n_loads; k++) json_array_append_new(loads, load_json(&s->loads[k]));
    json_t *report = json_pack("{s:s, s:f, s:i, s:i, s:I, s:o, s:o}", "name", plan->name, "seconds", s->seconds,
                               "devices", plan->devices ? plan->devices : 1, "devices_used", s->n_devices_used,
                               "events", (json_int_t)s->n_events, "partitions", partitions, "loads", loads);
    json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(report);
}

static bool draw(void *user, double done)
{
    wt_progress *bar = user;
    wt_progress_move(bar, 0, done * bar->total, NULL);
    return !wt_interrupted();
}

static wt_status play(const wt_plan *plan, wt_simulation **simulation)
{
    int devices = plan->devices ? plan->devices : 1;
    wt_progress bar = {.verb = "simulating", .total = (plan->seconds > 0 ? plan->seconds : 10) * devices, .unit = "s"};
    wt_progress_begin(&bar);
    wt_status status = wt_simulate(plan, draw, &bar, simulation);
    wt_progress_end(&bar);
    return status;
}

static int simulate(const char *path, double seconds, bool json)
{
    wt_plan *plan;
    wt_simulation *simulation;
    wt_status status = wt_interrupt_install();
    if (!status) status = plan_load(path, &plan);
    if (status) return command_fail("simulate", status);
    if (seconds > 0) plan->seconds = seconds;
    status = play(plan, &simulation);
    if (status) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s", wt_last_error());
        plan_free(plan);
        wt_fail(status, "%s: %s", path, sentence);
        int code = command_fail("simulate", status);
        return status == WT_ERR_BAD_ARG || status == WT_ERR_QUOTA ? EXIT_INPUT : code; // it stands in the file
    }
    if (json) print_json(plan, simulation);
    else print_report(plan, simulation);
    wt_simulation_destroy(simulation);
    plan_free(plan);
    return EXIT_OK;
}

int cmd_simulate(int argc, char **argv)
{
    bool json = false, help;
    double seconds = 0;
    const wt_option options[] = {
        OPTION_NUMBER("seconds", 's', &seconds, "S", 0.001, 1e6, "virtual time, instead of the plan's"),
        OPTION_FLAG("json", 0, &json, "the report as JSON"),
    };
    wt_status status = wt_options_parse(options, 2, &argc, argv, &help);
    if (status) return command_fail("simulate", status);
    if (help) return print_help(options, 2);
    if (argc == 2) return simulate(argv[1], seconds, json);
    wt_fail(WT_ERR_BAD_ARG, "%s, want one PLAN.yaml (`warptone simulate --help`)",
            argc < 2 ? "no plan was named" : "several plans were named");
    return command_fail("simulate", WT_ERR_BAD_ARG);
}
