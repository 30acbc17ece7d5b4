// The doctor in front of made-up machines, and one look at this one.
#include "support/testing.h"

#include "../hosts/doctor.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "sys/bus/pci/devices/0000:41:00.0/"

static char root[64];
static int refusal; // of a real-time thread; 0 = it is granted

static int try_fifo(int priority) { return priority == 80 ? refusal : EINVAL; }

static void make_folders(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0700);
    }
}

static void put(const char *below, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, below);
    make_folders(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int new_machine(void **state)
{
    (void)state;
    refusal = 0;
    strcpy(root, "/tmp/wt_doctor.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static int remove_machine(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const doctor_report *examine(void)
{
    static doctor_report report;
    static char proc[96], sys[96], etc[96], run[96];
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(sys, sizeof sys, "%s/sys", root);
    snprintf(etc, sizeof etc, "%s/etc", root);
    snprintf(run, sizeof run, "%s/run", root);
    const doctor_roots roots = {proc, sys, etc, run, try_fifo};
    report = (doctor_report){.n_findings = 0};
    doctor_check_system(&roots, &report);
    doctor_check_gpus(&roots, &report);
    return &report;
}

static void assert_finding(const doctor_report *report, const char *check, bool advice, const char *sentence)
{
    for (int k = 0; k < report->n_findings; k++) {
        const doctor_finding *f = &report->findings[k];
        if (!strcmp(f->check, check) && !strcmp(f->sentence, sentence) && f->advice == advice) return;
    }
    for (int k = 0; k < report->n_findings; k++)
        printf("%s %s: %s\n", report->findings[k].advice ? "advice" : "ok", report->findings[k].check,
               report->findings[k].sentence);
    fail_msg("no finding %s \"%s\": %s", advice ? "advice" : "ok", check, sentence);
}

static int count_advice(const doctor_report *report)
{
    int n = 0;
    for (int k = 0; k < report->n_findings; k++) n += report->findings[k].advice;
    return n;
}

static void put_ordinary_desktop(void)
{
    put("proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"
                            "Max locked memory         8388608              8388608              bytes     \n"
                            "Max realtime priority     0                    0                    \n");
    put("proc/self/status", "Name:\twarptone\nGid:\t1000\t1000\t1000\t1000\nGroups:\t24 27 1000 \n"
                            "CapEff:\t0000000000000000\n");
    put("etc/group", "root:x:0:\naudio:x:29:pulse\n");
    for (int k = 0; k < 4; k++) {
        char path[128];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", k);
        put(path, k < 3 ? "powersave\n" : "performance\n");
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpuidle/state3/latency", k);
        put(path, "1034\n");
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpuidle/state4/latency", k);
        put(path, "9999\n");
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpuidle/state4/disable", k);
        put(path, "1\n");
    }
    put("sys/devices/system/cpu/cpufreq/boost", "1\n");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("proc/version", "Linux version 6.1.0-1-amd64 (x) (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n");
    put("proc/sys/kernel/osrelease", "6.1.0-1-amd64\n");
    put("proc/sys/kernel/sched_rt_runtime_us", "0\n");
    put("proc/cmdline", "quiet splash\n");
    put(GPU "vendor", "0x10de\n");
    put(GPU "class", "0x030000\n");
    put(GPU "irq", "45\n");
    put(GPU "local_cpulist", "0-3\n");
    put("proc/irq/45/smp_affinity_list", "2\n");
    put(GPU "current_link_speed", "2.5 GT/s PCIe\n");
    put(GPU "max_link_speed", "16.0 GT/s PCIe\n");
    put(GPU "current_link_width", "8\n");
    put(GPU "max_link_width", "16\n");
    put(GPU "drm/card1/dev", "226:1\n");
    put("sys/class/drm/card1-HDMI-A-1/status", "connected\n");
    put("sys/bus/pci/devices/0000:41:00.1/vendor", "0x10de\n"); // its audio function
    put("sys/bus/pci/devices/0000:41:00.1/class", "0x040300\n");
    put("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    put("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
}

static void an_ordinary_desktop_gets_advice(void **state)
{
    (void)state;
    put_ordinary_desktop();
    refusal = EPERM;
    const doctor_report *r = examine();
    assert_finding(r, "real-time priority", true,
                   "up to 0 may be asked for, want 80: put \"@audio - rtprio 95\" into "
                   "/etc/security/limits.d/audio.conf and log in again");
    assert_finding(r, "locked memory", true,
                   "8192 KiB may be locked, want all: put \"@audio - memlock unlimited\" into "
                   "/etc/security/limits.d/audio.conf and log in again");
    assert_finding(r, "group audio", true, "this user is not in it: usermod -aG audio $USER, and log in again");
    assert_finding(
        r, "CPU governor", true,
        "3 of 4 processors have governor powersave: set performance (cpupower frequency-set -g performance)");
    assert_finding(r, "CPU idle states", true,
                   "the deepest takes 1034 us to leave: use live --awake, or boot with processor.max_cstate=1");
    assert_finding(r, "kernel", true,
                   "6.1.0-1-amd64 can be made preemptible: boot with preempt=full (and threadirqs), or use a "
                   "PREEMPT_RT kernel");
    assert_finding(r, "real-time share", true,
                   "the kernel gives real-time threads no time: sysctl kernel.sched_rt_runtime_us=950000");
    assert_finding(r, "clock", true,
                   "the kernel's clock is hpet, which takes a system call to read: boot with clocksource=tsc");
    assert_finding(r, "GPU driver", true, "0000:41:00.0 has driver none, want nvidia");
    assert_finding(r, "GPU link", true, "0000:41:00.0 has 8 of 16 PCIe lanes: use another slot");
    assert_finding(r, "GPU interrupts", false,
                   "0000:41:00.0: IRQ 45 goes to processors 2; those near the GPU are 0-3: keep the audio thread on "
                   "others");
    assert_finding(r, "GPU display", true,
                   "a screen hangs on 0000:41:00.0, and its driver may stop kernels that stay: use another GPU or "
                   "--gpu-path graph");
    assert_finding(r, "GPU driver", true, "the NVIDIA driver is not loaded");
}

static void a_prepared_machine_gets_none(void **state)
{
    (void)state;
    put("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes     \n"
                            "Max realtime priority     95                   95                   \n");
    put("proc/self/status", "Gid:\t1000\t1000\nGroups:\t24 29 1000\nCapEff:\t0000000000000000\n");
    put("etc/group", "audio:x:29:\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("sys/kernel/realtime", "1\n");
    put("proc/sys/kernel/osrelease", "6.6-rt\n");
    put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159\nGCC version:  12\n");
    put("run/nvidia-persistenced/socket", "");
    put("sys/bus/pci/drivers/nvidia/bind", "");
    put(GPU "vendor", "0x10de\n");
    put(GPU "class", "0x030200\n");
    put(GPU "current_link_speed", "2.5 GT/s PCIe\n");
    put(GPU "max_link_speed", "32.0 GT/s PCIe\n");
    put(GPU "current_link_width", "16\n");
    put(GPU "max_link_width", "16\n");
    put("sys/class/drm/card0-VGA-1/status", "connected\n"); // of another device
    char path[128];
    snprintf(path, sizeof path, "%s/" GPU "driver", root);
    assert_int_equal(symlink("../../../../bus/pci/drivers/nvidia", path), 0);

    const doctor_report *r = examine();
    assert_int_equal(count_advice(r), 0);
    assert_finding(r, "real-time priority", false, "a thread was given SCHED_FIFO at priority 80");
    assert_finding(r, "locked memory", false, "all memory may be locked");
    assert_finding(r, "group audio", false, "this user is in it");
    assert_finding(r, "CPU governor", false, "performance on 1 processors");
    assert_finding(r, "CPU idle states", false, "the deepest takes 2 us to leave");
    assert_finding(r, "kernel", false, "6.6-rt is a PREEMPT_RT kernel");
    assert_finding(r, "clock", false, "the kernel's clock is tsc");
    assert_finding(r, "GPU link", false, "0000:41:00.0: x16 at 2.5 GT/s PCIe now, up to 32.0 GT/s PCIe under load");
    assert_finding(r, "GPU display", false, "no screen hangs on 0000:41:00.0");
    assert_finding(r, "GPU driver", false, "NVIDIA UNIX x86_64 Kernel Module  580.159");
    assert_finding(r, "GPU persistence", false, "nvidia-persistenced runs");
}

static void capabilities_and_kernels_are_known(void **state)
{
    (void)state;
    put("proc/self/limits", "Max locked memory         0                    0                    bytes     \n"
                            "Max realtime priority     0                    0                    \n");
    put("proc/self/status", "CapEff:\t0000000000804000\n"); // CAP_SYS_NICE and CAP_IPC_LOCK
    put("proc/version", "Linux version 6.1 #1 SMP PREEMPT Debian\n");
    put("proc/sys/kernel/osrelease", "6.1\n");
    put("proc/driver/nvidia/version", "NVRM version: x\n");
    const doctor_report *r = examine();
    assert_finding(r, "real-time priority", false, "a thread was given SCHED_FIFO at priority 80");
    assert_finding(r, "locked memory", false, "all memory may be locked");
    assert_finding(r, "kernel", false, "6.1 is preemptible");
    assert_finding(r, "group audio", false, "this user is not in it, and needs no higher limit");
    assert_finding(r, "GPU persistence", true,
                   "nvidia-persistenced does not run: unless nvidia-smi -pm 1 was given, every start waits for the "
                   "driver to set up the GPU");
    put("proc/self/status", "CapEff:\t0000000000004000\n"); // CAP_IPC_LOCK alone
    refusal = EPERM;
    put("proc/version", "Linux version 6.1 #1 SMP Debian\n");
    r = examine();
    assert_finding(r, "locked memory", false, "all memory may be locked");
    assert_finding(r, "group audio", true,
                   "there is no group audio: make it (groupadd audio), join it and give it the limits above");
    assert_finding(r, "kernel", true, "6.1 is not preemptible: use a kernel with PREEMPT or PREEMPT_RT");
    put("proc/version", "Linux version 6.1 #1 SMP PREEMPT_DYNAMIC Debian\n");
    put("proc/cmdline", "quiet preempt=full\n");
    put("sys/devices/system/cpu/cpuidle/current_driver", "haltpoll\n");
    r = examine();
    assert_finding(r, "kernel", false, "6.1 is preemptible");
    assert_finding(r, "CPU idle states", true,
                   "a virtual machine gives processors back that are idle, and has them again late: live --awake keeps "
                   "them");
}

// As in a container that shows its capabilities and has no real-time runtime.
static void what_limits_permit_and_the_kernel_refuses_is_told(void **state)
{
    (void)state;
    static const char *const limits[] = {"Max realtime priority     0          0     \n",
                                         "Max realtime priority     95         95    \n", ""};
    static const char *const capabilities[] = {"CapEff:\t0000000000800000\n", "CapEff:\t0000000000000000\n",
                                               "CapEff:\t0000000000000000\n"};
    static const char *const although[] = {"it has CAP_SYS_NICE", "the limit permits it", "no limit is to be seen"};
    refusal = EPERM;
    for (int k = 0; k < 3; k++) {
        char sentence[DOCTOR_SENTENCE_BYTES];
        put("proc/self/limits", limits[k]);
        put("proc/self/status", capabilities[k]);
        snprintf(sentence, sizeof sentence,
                 "a thread was refused SCHED_FIFO at priority 80 (Operation not permitted) although %s: in a container "
                 "give it the host's CAP_SYS_NICE, and its control group a cpu.rt_runtime_us above 0 where there is "
                 "one",
                 although[k]);
        assert_finding(examine(), "real-time priority", true, sentence);
    }
}

static void an_empty_or_damaged_machine_is_survived(void **state)
{
    (void)state;
    const doctor_report *r = examine();
    assert_finding(r, "real-time priority", false, "a thread was given SCHED_FIFO at priority 80");
    assert_finding(r, "locked memory", false, "the limit cannot be read");
    assert_finding(r, "CPU governor", false, "no frequency scaling is to be seen here");
    assert_finding(r, "GPU", false, "no NVIDIA GPU is to be seen here: chains run on the CPU");
    static char flood[100000];
    memset(flood, 'a', sizeof flood - 1);
    static const char *const files[] = {"proc/self/limits",
                                        "proc/self/status",
                                        "etc/group",
                                        "proc/version",
                                        "proc/sys/kernel/osrelease",
                                        "proc/cmdline",
                                        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                                        "sys/devices/system/clocksource/clocksource0/current_clocksource",
                                        "proc/driver/nvidia/version",
                                        GPU "irq"};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) put(files[k], flood);
    put("sys/devices/system/cpu/cpu0/cpuidle/state0/latency/folder", ""); // a folder in the place of a file
    put(GPU "vendor", "0x10de");
    put(GPU "class", "0x030000");
    r = examine();
    assert_finding(r, "GPU driver", true, "0000:41:00.0 has driver none, want nvidia");
    for (int k = 0; k < r->n_findings; k++) assert_true(strlen(r->findings[k].sentence) < DOCTOR_SENTENCE_BYTES);
}

static void findings_have_an_end(void **state)
{
    (void)state;
    static doctor_report report;
    for (int k = 0; k < 2 * DOCTOR_FINDINGS; k++) doctor_add(&report, "x", k % 2, "%d", k);
    assert_int_equal(report.n_findings, DOCTOR_FINDINGS);
    assert_string_equal(report.findings[DOCTOR_FINDINGS - 1].sentence, "63");
}

static void jitter_is_judged_by_a_block_of_64_frames(void **state)
{
    (void)state;
    static doctor_report report;
    doctor_jitter j = {.realtime = true, .late_ns = {.p99_9 = 50000, .max = 90000}};
    doctor_judge(&report, &j);
    assert_finding(&report, "wake-ups", false, "p99.9 50 us and at most 90 us late with SCHED_FIFO");
    j = (doctor_jitter){.realtime = true, .awake = true, .late_ns = {.p99_9 = 9000, .max = 30000}};
    report.n_findings = 0;
    doctor_judge(&report, &j);
    assert_finding(&report, "wake-ups", false,
                   "p99.9 9 us and at most 30 us late with SCHED_FIFO, no processor asleep");
    j = (doctor_jitter){.cuda = true, .late_ns = {.p99_9 = 50000, .max = 2000000}};
    doctor_judge(&report, &j);
    assert_finding(&report, "wake-ups, CUDA opened", true,
                   "p99.9 50 us and at most 2000 us late without SCHED_FIFO, which is not permitted: a block of 64 "
                   "frames lasts 1333 us, so use longer blocks or mend what stands above");
}

static void this_machine_is_measured(void **state)
{
    (void)state;
    static doctor_report report;
    const doctor_roots here = {0};
    doctor_check_system(&here, &report);
    doctor_check_gpus(&here, &report);
    assert_true(report.n_findings >= 5);
    assert_ok(doctor_measure(&report, false, false, 0.05));
    assert_int_equal(report.n_jitter, 1);
    const wt_histogram_summary *s = &report.jitter[0].late_ns;
    assert_true(s->count > 0 && s->count <= 75); // 0.05 s / 667 us; fewer where it sleeps through some
    assert_true(s->p50 <= s->p99 && s->p99 <= s->max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_ordinary_desktop_gets_advice, new_machine, remove_machine),
        cmocka_unit_test_setup_teardown(a_prepared_machine_gets_none, new_machine, remove_machine),
        cmocka_unit_test_setup_teardown(capabilities_and_kernels_are_known, new_machine, remove_machine),
        cmocka_unit_test_setup_teardown(what_limits_permit_and_the_kernel_refuses_is_told, new_machine, remove_machine),
        cmocka_unit_test_setup_teardown(an_empty_or_damaged_machine_is_survived, new_machine, remove_machine),
        cmocka_unit_test(findings_have_an_end),
        cmocka_unit_test(jitter_is_judged_by_a_block_of_64_frames),
        cmocka_unit_test(this_machine_is_measured),
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
