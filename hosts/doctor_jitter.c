// A thread that asks to be woken every 667 us, half of 64 frames at 48 kHz, and notes how late it is.
#include "doctor.h"
#include "interrupt.h"
#include "live_rights.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>
#include <warptone/device.h>

enum { PERIOD_NS = 666667, BLOCK_US = 1333, SECOND_NS = 1000000000, PRIORITY = 80 };

typedef struct loop {
    wt_histogram *late;
    int64_t n_periods;
    bool realtime, cancelled;
} loop;

static void *wake_up(void *user)
{
    loop *l = user;
    const struct sched_param priority = {.sched_priority = PRIORITY};
    l->realtime = !pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
    int64_t due_ns = wt_clock_now_ns(NULL);
    for (int64_t k = 0; k < l->n_periods && !(l->cancelled = wt_interrupted()); k++) {
        due_ns += PERIOD_NS;
        const struct timespec due = {due_ns / SECOND_NS, due_ns % SECOND_NS};
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) continue;
        int64_t now_ns = wt_clock_now_ns(NULL);
        wt_histogram_record(l->late, now_ns - due_ns);
        while (due_ns + PERIOD_NS < now_ns)
            due_ns += PERIOD_NS; // one late wake-up is one, not as many as it slept through
    }
    return NULL;
}

void doctor_judge(doctor_report *report, const doctor_jitter *j)
{
    const wt_histogram_summary *s = &j->late_ns;
    double p99_9_us = (double)s->p99_9 * 1e-3, max_us = (double)s->max * 1e-3;
    const char *how = j->realtime ? "with SCHED_FIFO" : "without SCHED_FIFO, which is not permitted";
    const char *sleep = j->awake ? ", no processor asleep" : "";
    const char *check = j->cuda ? "wake-ups, CUDA opened" : "wake-ups";
    if (p99_9_us > BLOCK_US / 4.0 || max_us > BLOCK_US)
        doctor_add(
            report, check, true,
            "p99.9 %.0f us and at most %.0f us late %s%s: a block of 64 frames lasts %d us, so use longer blocks or "
            "mend what stands above",
            p99_9_us, max_us, how, sleep, BLOCK_US);
    else
        doctor_add(report, check, false, "p99.9 %.0f us and at most %.0f us late %s%s", p99_9_us, max_us, how, sleep);
}

static wt_status measure(doctor_jitter *jitter)
{
    pthread_t thread;
    loop l = {.n_periods = (int64_t)(jitter->seconds * SECOND_NS / PERIOD_NS) + 1};
    wt_status status = wt_histogram_create(&l.late);
    if (status) return status;
    if (pthread_create(&thread, NULL, wake_up, &l))
        status = wt_fail(WT_ERR_NO_MEMORY, "doctor: the system gives no thread");
    else
        pthread_join(thread, NULL);
    wt_histogram_summarize(l.late, &jitter->late_ns);
    wt_histogram_destroy(l.late);
    jitter->realtime = l.realtime;
    if (!status && l.cancelled) status = wt_fail(WT_ERR_CANCELLED, "doctor: interrupted");
    return status;
}

wt_status doctor_measure(doctor_report *report, bool cuda, bool awake, double seconds)
{
    wt_device *device = NULL;
    if (cuda && wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device)) {
        doctor_add(report, "CUDA", false, "%s", wt_last_error());
        return WT_OK;
    }
    doctor_jitter jitter = {.cuda = cuda, .awake = awake, .period_us = PERIOD_NS * 1e-3, .seconds = seconds};
    int awake_fd = -1;
    wt_status status = awake ? live_rights_awake(NULL, &awake_fd) : WT_OK;
    if (!status) status = measure(&jitter);
    if (awake_fd >= 0) close(awake_fd);
    wt_device_close(device);
    if (status) return status;
    if (report->n_jitter < DOCTOR_MEASURES) report->jitter[report->n_jitter++] = jitter;
    doctor_judge(report, &jitter);
    return WT_OK;
}
