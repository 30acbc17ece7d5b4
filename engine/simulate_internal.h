/// One device in virtual time: what simulate.c places on it and simulate_device.c plays.
#ifndef WT_SIMULATE_INTERNAL_H
#define WT_SIMULATE_INTERNAL_H

#include <warptone/simulate.h>

enum { WT__SIM_TASKS = 4096, WT__SIM_LANES = 4096 };

/// What a load is once its partition is known.
typedef struct wt__sim_load {
    const wt_plan_load *plan;
    int partition;
    double scale;           ///< costs on this partition against those of the plan
    int64_t worst_ns, prompt_worst_ns;
    wt_histogram *response;
    wt_load_result *result;
} wt__sim_load;

typedef struct wt__sim_stream {
    wt__sim_load *load;
    int64_t next_ns;   ///< Poisson and decode: next arrival; periodic: release of the present run
    int tokens_left;   ///< decode: tokens + 1 = the prompt is next
} wt__sim_stream;

/// A task that the scheduler holds.
typedef struct wt__sim_job {
    wt__sim_stream *stream;
    int64_t arrived_ns, left_ns; ///< left: of a run that was interrupted, 0 = at its beginning
    int32_t next_free;
    bool prompt;
} wt__sim_job;

typedef struct wt__sim_lane {
    wt_task task;
    wt__sim_job *job;
    int64_t begin_ns, stop_ns; ///< stop: gives way then, INT64_MAX = was not asked
} wt__sim_lane;

typedef struct wt__sim_device {
    const wt_plan *plan;
    wt_manual_clock clock;
    wt_scheduler *scheduler;
    uint64_t random;
    wt__sim_stream *streams, **arrivals; ///< [max_streams]; heap of those with an arrival to come
    int n_streams, max_streams, n_arrivals;
    wt__sim_job *jobs; ///< [WT__SIM_TASKS]
    int32_t free_job;
    wt__sim_lane lanes[WT__SIM_LANES]; ///< in order of start
    int n_lanes;
    int64_t n_events;
    int number; ///< in the fleet, from 0
    bool (*progress)(void *user, double done);
    void *progress_user;
} wt__sim_device;

/// Take and free the memory of a device; the scheduler is made anew for each by open and close.
wt_status wt__sim_create(const wt_plan *plan, int max_streams, wt__sim_device **device);
void wt__sim_destroy(wt__sim_device *d);
wt_status wt__sim_open(wt__sim_device *d, int number);
void wt__sim_close(wt__sim_device *d);
/// Offer one stream. *outcome tells what became of it; WT_REJECTED leaves nothing.
wt_status wt__sim_place(wt__sim_device *d, wt__sim_load *load, wt_admission *admission);
/// Play until `until_ns`.
wt_status wt__sim_play(wt__sim_device *d, int64_t until_ns);

#endif
