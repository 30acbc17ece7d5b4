#include "doctor.h"
#include "live_rights.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 16384, MAX_GROUPS = 256, CAP_IPC_LOCK_BIT = 14, CAP_SYS_NICE_BIT = 23, WANTED_RTPRIO = 80 };

#define LIMITS_FILE "/etc/security/limits.d/audio.conf"

void doctor_add(doctor_report *report, const char *check, bool advice, const char *format, ...)
{
    if (report->n_findings == DOCTOR_FINDINGS) return;
    doctor_finding *f = &report->findings[report->n_findings++];
    *f = (doctor_finding){.check = check, .advice = advice};
    va_list args;
    va_start(args, format);
    vsnprintf(f->sentence, sizeof f->sentence, format, args);
    va_end(args);
}

// ---- reading

static const char *root_of(const char *root, const char *standard) { return root ? root : standard; }

/// The file's text up to TEXT_BYTES without the last line's end; false, and "", where it cannot be read.
static bool read_text(char text[TEXT_BYTES], const char *root, const char *format, ...) WT_PRINTF(3, 4);
static bool read_text(char text[TEXT_BYTES], const char *root, const char *format, ...)
{
    char below[PATH_MAX / 2], path[PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(below, sizeof below, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s", root, below);
    *text = 0;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t n = fread(text, 1, TEXT_BYTES - 1, file);
    bool read = !ferror(file); // a folder opens too
    fclose(file);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' ')) n--;
    text[read ? n : 0] = 0;
    return read;
}

static bool exists(const char *root, const char *below)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, below);
    return !access(path, F_OK);
}

/// The rest of the line that begins with `key`, or NULL.
static const char *value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (!strncmp(line, key, length)) return line + length;
    return NULL;
}

/// Call `visit` for each entry of a folder whose name begins with `prefix`; returns how many.
static int each_entry(const char *folder, const char *prefix, void (*visit)(void *user, const char *name), void *user)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort), n_visited = 0;
    for (int k = 0; k < n; k++) {
        const char *name = entries[k]->d_name;
        if (name[0] != '.' && !strncmp(name, prefix, strlen(prefix))) {
            visit(user, name);
            n_visited++;
        }
        free(entries[k]);
    }
    if (n >= 0) free(entries);
    return n_visited;
}

// ---- limits and groups

static bool has_capability(const char *status, int bit)
{
    const char *value = value_of(status, "CapEff:");
    return value && strtoull(value, NULL, 16) >> bit & 1;
}

/// A control group without real-time runtime, a user namespace and seccomp refuse what limits and capabilities permit,
/// so a thread is asked for. False: the limit is too low.
static bool check_priority(const char *limits, const char *status, int error, doctor_report *r)
{
    const char *check = "real-time priority", *value = value_of(limits, "Max realtime priority");
    const long limit = value ? strtol(value, NULL, 10) : WANTED_RTPRIO; // 0 for "unlimited", which this never is
    const bool capable = has_capability(status, CAP_SYS_NICE_BIT), permitted = capable || limit >= WANTED_RTPRIO;
    if (!error)
        doctor_add(r, check, false, "a thread was given SCHED_FIFO at priority %d", WANTED_RTPRIO);
    else if (permitted)
        doctor_add(r, check, true,
                   "a thread was refused SCHED_FIFO at priority %d (%s) although %s: in a container give it the host's "
                   "CAP_SYS_NICE, and its control group a cpu.rt_runtime_us above 0 where there is one",
                   WANTED_RTPRIO, strerror(error),
                   capable ? "it has CAP_SYS_NICE"
                   : value ? "the limit permits it"
                           : "no limit is to be seen");
    else
        doctor_add(r, check, true,
                   "up to %ld may be asked for, want %d: put \"@audio - rtprio 95\" into %s and log in again", limit,
                   WANTED_RTPRIO, LIMITS_FILE);
    return !error || permitted;
}

/// False: the limit is too low.
static bool check_memlock(const char *limits, const char *status, doctor_report *r)
{
    const char *check = "locked memory", *value = value_of(limits, "Max locked memory");
    while (value && *value == ' ') value++;
    if (!value)
        doctor_add(r, check, false, "the limit cannot be read");
    else if (has_capability(status, CAP_IPC_LOCK_BIT) || !strncmp(value, "unlimited", 9))
        doctor_add(r, check, false, "all memory may be locked");
    else {
        doctor_add(r, check, true,
                   "%llu KiB may be locked, want all: put \"@audio - memlock unlimited\" into %s and log in again",
                   strtoull(value, NULL, 10) / 1024, LIMITS_FILE);
        return false;
    }
    return true;
}

static bool in_list(const char *list, unsigned long wanted)
{
    char *end;
    for (const char *at = list; at && *at && *at != '\n'; at = end) {
        unsigned long id = strtoul(at, &end, 10);
        if (end == at) return false;
        if (id == wanted) return true;
    }
    return false;
}

/// `needed`: the limits above are too low.
static void check_group(const char *groups, const char *status, bool needed, doctor_report *r)
{
    const char *entry = value_of(groups, "audio:");
    const char *number = entry ? strchr(entry, ':') : NULL; // name:password:number:members
    if (!number && needed) {
        doctor_add(r, "group audio", true,
                   "there is no group audio: make it (groupadd audio), join it and give it the limits above");
        return;
    }
    unsigned long id = number ? strtoul(number + 1, NULL, 10) : ULONG_MAX;
    if (in_list(value_of(status, "Groups:"), id) || in_list(value_of(status, "Gid:"), id))
        doctor_add(r, "group audio", false, "this user is in it");
    else if (!needed)
        doctor_add(r, "group audio", false, "this user is not in it, and needs no higher limit");
    else
        doctor_add(r, "group audio", true, "this user is not in it: usermod -aG audio $USER, and log in again");
}

// ---- processors and kernel

typedef struct cpu_facts {
    const char *sys;
    int n_cpus, n_scaled, n_slow; ///< slow: with another governor than performance
    char governor[64];            ///< of the last slow one
    long worst_idle_us;
} cpu_facts;

typedef struct idle_facts {
    cpu_facts *cpu;
    const char *name; ///< "cpu0"
} idle_facts;

static void look_at_idle_state(void *user, const char *name)
{
    const idle_facts *idle = user;
    char text[TEXT_BYTES];
    if (read_text(text, idle->cpu->sys, "devices/system/cpu/%s/cpuidle/%s/disable", idle->name, name) &&
        strcmp(text, "0"))
        return;
    if (!read_text(text, idle->cpu->sys, "devices/system/cpu/%s/cpuidle/%s/latency", idle->name, name)) return;
    long us = strtol(text, NULL, 10);
    if (us > idle->cpu->worst_idle_us) idle->cpu->worst_idle_us = us;
}

static void look_at_cpu(void *user, const char *name)
{
    cpu_facts *facts = user;
    char text[TEXT_BYTES], folder[PATH_MAX];
    if (name[3] < '0' || name[3] > '9') return; // cpufreq, cpuidle
    facts->n_cpus++;
    if (read_text(text, facts->sys, "devices/system/cpu/%s/cpufreq/scaling_governor", name)) {
        facts->n_scaled++;
        if (strcmp(text, "performance")) {
            facts->n_slow++;
            snprintf(facts->governor, sizeof facts->governor, "%.63s", text);
        }
    }
    snprintf(folder, sizeof folder, "%s/devices/system/cpu/%s/cpuidle", facts->sys, name);
    each_entry(folder, "state", look_at_idle_state, &(idle_facts){facts, name});
}

static void check_cpus(const char *sys, doctor_report *r)
{
    char folder[PATH_MAX], driver[TEXT_BYTES];
    cpu_facts facts = {.sys = sys};
    snprintf(folder, sizeof folder, "%s/devices/system/cpu", sys);
    each_entry(folder, "cpu", look_at_cpu, &facts);
    if (facts.n_slow)
        doctor_add(r, "CPU governor", true,
                   "%d of %d processors have governor %s: set performance (cpupower frequency-set -g performance)",
                   facts.n_slow, facts.n_cpus, facts.governor);
    else if (facts.n_scaled)
        doctor_add(r, "CPU governor", false, "performance on %d processors", facts.n_scaled);
    else
        doctor_add(r, "CPU governor", false, "no frequency scaling is to be seen here");
    if (read_text(driver, sys, "devices/system/cpu/cpuidle/current_driver") && !strcmp(driver, "haltpoll"))
        doctor_add(r, "CPU idle states", true,
                   "a virtual machine gives processors back that are idle, and has them again late: live --awake keeps "
                   "them");
    else if (!facts.worst_idle_us)
        doctor_add(r, "CPU idle states", false, "none are to be seen here");
    else if (facts.worst_idle_us > 100)
        doctor_add(r, "CPU idle states", true,
                   "the deepest takes %ld us to leave: use live --awake, or boot with processor.max_cstate=1",
                   facts.worst_idle_us);
    else
        doctor_add(r, "CPU idle states", false, "the deepest takes %ld us to leave", facts.worst_idle_us);
}

static void check_kernel(const char *proc, const char *sys, doctor_report *r)
{
    char version[TEXT_BYTES], text[TEXT_BYTES], release[TEXT_BYTES];
    read_text(version, proc, "version");
    read_text(release, proc, "sys/kernel/osrelease");
    bool realtime = read_text(text, sys, "kernel/realtime") && !strcmp(text, "1");
    read_text(text, proc, "cmdline");
    if (realtime || strstr(version, "PREEMPT_RT"))
        doctor_add(r, "kernel", false, "%.80s is a PREEMPT_RT kernel", release);
    else if (strstr(text, "preempt=full") || (strstr(version, "PREEMPT ") && !strstr(version, "PREEMPT_DYNAMIC")))
        doctor_add(r, "kernel", false, "%.80s is preemptible", release);
    else if (strstr(version, "PREEMPT_DYNAMIC"))
        doctor_add(r, "kernel", true,
                   "%.80s can be made preemptible: boot with preempt=full (and threadirqs), or use a PREEMPT_RT kernel",
                   release);
    else
        doctor_add(r, "kernel", true, "%.80s is not preemptible: use a kernel with PREEMPT or PREEMPT_RT", release);

    if (read_text(text, proc, "sys/kernel/sched_rt_runtime_us") && !strcmp(text, "0"))
        doctor_add(r, "real-time share", true,
                   "the kernel gives real-time threads no time: sysctl kernel.sched_rt_runtime_us=950000");
    if (!read_text(text, sys, "devices/system/clocksource/clocksource0/current_clocksource")) return;
    bool slow = !strcmp(text, "hpet") || !strcmp(text, "acpi_pm");
    doctor_add(r, "clock", slow,
               slow ? "the kernel's clock is %.40s, which takes a system call to read: boot with clocksource=tsc"
                    : "the kernel's clock is %.40s",
               text);
}

void doctor_check_system(const doctor_roots *roots, doctor_report *report)
{
    const char *proc = root_of(roots->proc, "/proc"), *sys = root_of(roots->sys, "/sys");
    char limits[TEXT_BYTES], status[TEXT_BYTES], groups[TEXT_BYTES];
    read_text(limits, proc, "self/limits");
    read_text(status, proc, "self/status");
    read_text(groups, root_of(roots->etc, "/etc"), "group");
    const int error = (roots->try_fifo ? roots->try_fifo : live_rights_try_fifo)(WANTED_RTPRIO);
    bool priority = check_priority(limits, status, error, report), memory = check_memlock(limits, status, report);
    check_group(groups, status, !priority || !memory, report);
    check_cpus(sys, report);
    check_kernel(proc, sys, report);
}

// ---- GPUs

typedef struct gpu_facts {
    const char *proc, *sys;
    doctor_report *report;
    int n_gpus;
    const char *bus; ///< of the present one
    bool display;
} gpu_facts;

static bool read_pci(const gpu_facts *g, const char *name, char text[TEXT_BYTES])
{
    return read_text(text, g->sys, "bus/pci/devices/%s/%s", g->bus, name);
}

/// "16.0 GT/s PCIe" as its number. A link that sleeps is slow and wakes up by itself, a narrow one stays narrow.
static void check_link(const gpu_facts *g)
{
    char speed[TEXT_BYTES], max_speed[TEXT_BYTES], width[TEXT_BYTES], max_width[TEXT_BYTES];
    if (!read_pci(g, "current_link_speed", speed) || !read_pci(g, "max_link_speed", max_speed) ||
        !read_pci(g, "current_link_width", width) || !read_pci(g, "max_link_width", max_width))
        return;
    if (strtol(width, NULL, 10) < strtol(max_width, NULL, 10))
        doctor_add(g->report, "GPU link", true, "%s has %.8s of %.8s PCIe lanes: use another slot", g->bus, width,
                   max_width);
    else if (strtod(speed, NULL) < strtod(max_speed, NULL))
        doctor_add(g->report, "GPU link", false, "%s: x%.8s at %.32s now, up to %.32s under load", g->bus, width, speed,
                   max_speed);
    else
        doctor_add(g->report, "GPU link", false, "%s: x%.8s at %.32s", g->bus, width, speed);
}

static void check_irq(const gpu_facts *g)
{
    char irq[TEXT_BYTES], cpus[TEXT_BYTES], near[TEXT_BYTES];
    if (!read_pci(g, "irq", irq) || !read_text(cpus, g->proc, "irq/%.16s/smp_affinity_list", irq)) return;
    if (!read_pci(g, "local_cpulist", near)) snprintf(near, sizeof near, "?");
    doctor_add(g->report, "GPU interrupts", false,
               "%s: IRQ %.16s goes to processors %.64s; those near the GPU are %.64s: keep the audio thread on others",
               g->bus, irq, cpus, near);
}

static void look_at_connector(void *user, const char *name)
{
    gpu_facts *g = user;
    char text[TEXT_BYTES], card[32];
    size_t length = strcspn(name, "-"); // card0-HDMI-A-1
    if (!name[length] || length >= sizeof card) return;
    memcpy(card, name, length);
    card[length] = 0;
    char below[PATH_MAX / 2];
    snprintf(below, sizeof below, "bus/pci/devices/%s/drm/%s", g->bus, card);
    if (exists(g->sys, below) && read_text(text, g->sys, "class/drm/%s/status", name) && !strcmp(text, "connected"))
        g->display = true;
}

static void check_display(gpu_facts *g)
{
    char folder[PATH_MAX];
    g->display = false;
    snprintf(folder, sizeof folder, "%s/class/drm", g->sys);
    each_entry(folder, "card", look_at_connector, g);
    if (g->display)
        doctor_add(
            g->report, "GPU display", true,
            "a screen hangs on %s, and its driver may stop kernels that stay: use another GPU or --gpu-path graph",
            g->bus);
    else
        doctor_add(g->report, "GPU display", false, "no screen hangs on %s", g->bus);
}

static void look_at_device(void *user, const char *bus)
{
    gpu_facts *g = user;
    char text[TEXT_BYTES], path[PATH_MAX], driver[PATH_MAX] = "";
    g->bus = bus;
    if (!read_pci(g, "vendor", text) || strcmp(text, "0x10de")) return;
    if (!read_pci(g, "class", text) || strncmp(text, "0x03", 4)) return; // display controllers; 0x04 is its audio
    g->n_gpus++;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/driver", g->sys, bus);
    ssize_t n = readlink(path, driver, sizeof driver - 1);
    const char *name = n > 0 && strrchr(driver, '/') ? strrchr(driver, '/') + 1 : "none";
    if (strcmp(name, "nvidia"))
        doctor_add(g->report, "GPU driver", true, "%s has driver %.32s, want nvidia", bus, name);
    check_link(g);
    check_irq(g);
    check_display(g);
}

void doctor_check_gpus(const doctor_roots *roots, doctor_report *report)
{
    gpu_facts g = {.proc = root_of(roots->proc, "/proc"), .sys = root_of(roots->sys, "/sys"), .report = report};
    char text[TEXT_BYTES], folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/bus/pci/devices", g.sys);
    each_entry(folder, "", look_at_device, &g);
    bool loaded = read_text(text, g.proc, "driver/nvidia/version");
    if (loaded) {
        const char *version = value_of(text, "NVRM version: ");
        doctor_add(report, "GPU driver", false, "%.*s", version ? (int)strcspn(version, "\n") : 60,
                   version ? version : text);
        bool daemon = exists(root_of(roots->run, "/run"), "nvidia-persistenced/socket");
        doctor_add(report, "GPU persistence", !daemon,
                   daemon
                       ? "nvidia-persistenced runs"
                       : "nvidia-persistenced does not run: unless nvidia-smi -pm 1 was given, every start waits for "
                         "the driver to set up the GPU");
    } else if (g.n_gpus)
        doctor_add(report, "GPU driver", true, "the NVIDIA driver is not loaded");
    else
        doctor_add(report, "GPU", false, "no NVIDIA GPU is to be seen here: chains run on the CPU");
}
