// warptone doctor: look at the machine, measure, and say what to do.
#include "command.h"
#include "doctor.h"
#include "interrupt.h"
#include "live_report.h"
#include "options.h"

#include <jansson.h>

static json_t *finding_json(const doctor_finding *f)
{
    return json_pack("{s:s, s:s, s:s}", "check", f->check, "state", f->advice ? "advice" : "ok", "sentence",
                     f->sentence);
}

static json_t *jitter_json(const doctor_jitter *j)
{
    return json_pack("{s:b, s:b, s:b, s:f, s:f, s:o}", "cuda", (int)j->cuda, "realtime", (int)j->realtime, "awake",
                     (int)j->awake, "period_us", j->period_us, "seconds", j->seconds, "late",
                     live_summary_json(&j->late_ns));
}

static void print_json(const doctor_report *report)
{
    json_t *findings = json_array(), *jitter = json_array();
    for (int k = 0; k < report->n_findings; k++) json_array_append_new(findings, finding_json(&report->findings[k]));
    for (int k = 0; k < report->n_jitter; k++) json_array_append_new(jitter, jitter_json(&report->jitter[k]));
    json_t *all = json_pack("{s:o, s:o}", "findings", findings, "jitter", jitter);
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
}

static void print_page(const doctor_report *report)
{
    int n_advice = 0;
    for (int k = 0; k < report->n_findings; k++) {
        const doctor_finding *f = &report->findings[k];
        printf("%-7s %-22s %s\n", f->advice ? "advice" : "ok", f->check, f->sentence);
        n_advice += f->advice;
    }
    for (int k = 0; k < report->n_jitter; k++) {
        const doctor_jitter *j = &report->jitter[k];
        const wt_histogram_summary *s = &j->late_ns;
        printf("late by p50 %.0f  p99 %.0f  p99.9 %.0f  p99.99 %.0f  max %.0f us, every %.0f us for %.3g s%s%s\n",
               (double)s->p50 * 1e-3, (double)s->p99 * 1e-3, (double)s->p99_9 * 1e-3, (double)s->p99_99 * 1e-3,
               (double)s->max * 1e-3, j->period_us, j->seconds, j->cuda ? ", CUDA opened" : "",
               j->awake ? ", no processor asleep" : "");
    }
    printf("%d of %d findings have an advice\n", n_advice, report->n_findings);
}

int cmd_doctor(int argc, char **argv)
{
    bool json = false, awake = false, help;
    double seconds = 2;
    static doctor_report report;
    const wt_option options[] = {
        OPTION_FLAG("json", 'j', &json, "one JSON object on stdout"),
        OPTION_NUMBER("seconds", 's', &seconds, "S", 0.01, 3600, "length of each measurement, 2"),
        OPTION_FLAG("awake", 0, &awake, "measure while no processor may sleep, as live --awake"),
    };
    const int n_options = (int)(sizeof options / sizeof *options);
    wt_status status = wt_options_parse(options, n_options, &argc, argv, &help);
    if (!status && !help && argc > 1) status = wt_fail(WT_ERR_BAD_ARG, "unexpected argument \"%s\"", argv[1]);
    if (status) return command_fail("doctor", status);
    if (help) {
        printf("usage: warptone doctor [options]\n\n"
               "Look for what stands in the way of low latency: limits, processors, kernel, GPU; measure how late a\n"
               "thread wakes up, first without and then with CUDA opened. Nothing is changed.\n");
        wt_options_print(stdout, options, n_options);
        return EXIT_OK;
    }
    const doctor_roots here = {0};
    doctor_check_system(&here, &report);
    doctor_check_gpus(&here, &report);
    status = wt_interrupt_install();
    if (!status) status = doctor_measure(&report, false, awake, seconds);
    if (!status) status = doctor_measure(&report, true, awake, seconds);
    if (json)
        print_json(&report);
    else
        print_page(&report);
    return status ? command_fail("doctor", status) : EXIT_OK;
}
