/// Capacity planning: what a scheduler would admit on given devices, and how late the work would be, in virtual time.
///
/// A plan describes one kind of device (SMs, memory, partitions), how many of them there are, and the loads of the
/// whole fleet. The simulation runs the real scheduler, one a device, with an executor that takes the time that the
/// loads' cost distributions say; the devices of a fleet do not influence each other once work is placed. It knows
/// nothing of caches and memory bandwidth beyond the shares that are reserved: costs are what was measured with the
/// other partitions busy. The same plan and seed give the same result.
#ifndef WARPTONE_SIMULATE_H
#define WARPTONE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/histogram.h>
#include <warptone/scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_plan_partition {
    const char *name;
    int sms;                ///< 1 or more; together at most the device's
    wt_policy policy;
    int lanes;              ///< 0 = 1
    double memory_mb;       ///< quota, 0 = no limit
    double bandwidth_share; ///< 0 = not managed
    double time_share;      ///< 0 = 1
    double pacing_share;    ///< 0 = all
    bool no_preemption;     ///< tasks run to their end
    double blocking_us;     ///< the slice: how long a task keeps its lane when asked for it; see scheduler.h
} wt_plan_partition;

typedef enum wt_plan_kind {
    WT_PLAN_PERIODIC, ///< one run a period
    WT_PLAN_POISSON,  ///< single tasks, exponential times between them
    WT_PLAN_DECODE,   ///< a conversation: prompt, then token after token, then a pause, and again
} wt_plan_kind;

typedef struct wt_plan_load {
    const char *name;
    const char *partition;  ///< its name
    wt_plan_kind kind;
    wt_tier tier;
    int count;              ///< streams of it in the whole fleet, 0 = 1
    double cost_us;         ///< median of one run (of one token), above 0
    double spread;          ///< standard deviation of the cost's logarithm, 0 = always cost_us, at most 3
    double worst_us;        ///< costs are cut off here, and admitted with this; 0 = cost_us, or 4 spreads above it
    int measured_on_sms;    ///< where cost_us was measured, 0 = the partition's size
    double serial_part;     ///< of the cost, 0 .. 1, that does not shrink with more SMs (Amdahl 1967)
    double memory_mb;       ///< of one run, or of a periodic stream
    double bandwidth_share;
    int priority;
    double weight;          ///< 0 = 1
    int flow;
    double period_us;       ///< periodic
    double deadline_us;     ///< 0 = the period, or none
    double rate_hz;         ///< Poisson: of each stream
    double prompt_us;       ///< decode: median cost of the prompt, 0 = none
    int tokens;             ///< decode: of one answer, 0 = 256
    double pause_us;        ///< decode: mean pause between answers (exponential)
} wt_plan_load;

typedef struct wt_plan {
    const char *name, *description; ///< may be NULL
    int devices;           ///< 0 = 1, at most 100000
    int sms;               ///< of each device, 1 or more
    double memory_mb;      ///< of each device, 0 = not checked
    double seconds;        ///< of virtual time, 0 = 10
    int seed;
    const wt_plan_partition *partitions;
    uint32_t n_partitions; ///< 1 .. 64
    const wt_plan_load *loads;
    uint32_t n_loads;      ///< 1 .. 256
} wt_plan;

typedef struct wt_load_result {
    const char *name;      ///< borrowed from the plan
    int64_t n_streams, n_admitted, n_queued, n_rejected; ///< streams: periodic ones are admitted, others just placed
    wt_reason reason;      ///< of the last stream or run that was rejected
    int64_t n_runs, n_missed, n_runs_rejected; ///< runs, tokens or tasks that ended; that ended late; not taken
    double runs_hz;
    wt_histogram_summary response; ///< ns from release (arrival, previous token) to end
} wt_load_result;

typedef struct wt_partition_result {
    const char *name;      ///< borrowed from the plan
    double utilisation;    ///< device time over lanes * time * devices used
    double reserved_time;  ///< largest on any device, of one lane
    double peak_memory_mb; ///< likewise
    int64_t n_preemptions, n_throttled;
    double worst_wait_us;
} wt_partition_result;

typedef struct wt_simulation {
    wt_load_result *loads;           ///< [n_loads]
    wt_partition_result *partitions; ///< [n_partitions]
    uint32_t n_loads, n_partitions;
    int n_devices_used;              ///< that hold any stream
    int64_t n_events;
    double seconds;                  ///< simulated
} wt_simulation;

/// Place the streams and play every device. Each load's streams are spread evenly; a stream that a device rejects goes
/// on to the next, and counts as rejected after the last. `progress` (may be NULL) is told now and then which part of
/// the whole is done, 0 .. 1; when it returns false, the simulation stops with WT_ERR_CANCELLED.
/// Errors: WT_ERR_BAD_ARG naming partition or load and field, WT_ERR_QUOTA (partitions), WT_ERR_NO_MEMORY. Caller frees
/// with wt_simulation_destroy; the plan must outlive the result.  [any but rt]
WT_CHECKED wt_status wt_simulate(const wt_plan *plan, bool (*progress)(void *user, double done), void *user,
                                 wt_simulation **simulation);
void wt_simulation_destroy(wt_simulation *simulation); ///< NULL is allowed.  [any but rt]

#ifdef __cplusplus
}
#endif
#endif
