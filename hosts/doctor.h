/// What on this machine stands in the way of low latency: facts read below /proc, /sys, /etc and /run, and how late
/// threads wake up. Each finding is one sentence, with the remedy where there is one.
#ifndef WT_DOCTOR_H
#define WT_DOCTOR_H

#include <stdbool.h>
#include <warptone/histogram.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DOCTOR_FINDINGS = 64, DOCTOR_MEASURES = 2, DOCTOR_SENTENCE_BYTES = 400 };

typedef struct doctor_finding {
    const char *check; ///< "realtime priority", ...
    bool advice;       ///< something can be done; else it is as it should be, or cannot be known
    char sentence[DOCTOR_SENTENCE_BYTES];
} doctor_finding;

/// Lateness of a thread that wakes up regularly.
typedef struct doctor_jitter {
    bool cuda;     ///< with CUDA opened
    bool realtime; ///< the thread ran with SCHED_FIFO
    bool awake;    ///< no processor slept meanwhile
    double period_us, seconds;
    wt_histogram_summary late_ns;
} doctor_jitter;

typedef struct doctor_report {
    doctor_finding findings[DOCTOR_FINDINGS];
    int n_findings;
    doctor_jitter jitter[DOCTOR_MEASURES];
    int n_jitter;
} doctor_report;

/// Where to look, and whom to ask for a real-time thread (as live_rights_try_fifo); zero = this machine. Borrowed.
typedef struct doctor_roots {
    const char *proc, *sys, *etc, *run;
    int (*try_fifo)(int priority);
} doctor_roots;

/// Add a finding; those beyond DOCTOR_FINDINGS are left out.
void doctor_add(doctor_report *report, const char *check, bool advice, const char *format, ...) WT_PRINTF(4, 5);

/// Limits, and what is granted in fact; groups, processors and kernel.  [main]
void doctor_check_system(const doctor_roots *roots, doctor_report *report);
/// Every NVIDIA GPU of the PCI bus, and its driver.  [main]
void doctor_check_gpus(const doctor_roots *roots, doctor_report *report);

/// Measure for `seconds` and add what it means. `cuda`: open the GPU first, and a finding why not where that fails;
/// once opened it stays so in this process. `awake`: as live_rights_awake. Errors: WT_ERR_NO_MEMORY, WT_ERR_CANCELLED
/// (a signal), WT_ERR_UNSUPPORTED (awake is not permitted).  [main]
WT_CHECKED wt_status doctor_measure(doctor_report *report, bool cuda, bool awake, double seconds);
/// The finding for such a measurement.
void doctor_judge(doctor_report *report, const doctor_jitter *jitter);

#ifdef __cplusplus
}
#endif
#endif
