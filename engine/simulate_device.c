// One device: the real scheduler under a manual clock, and an executor that only remembers when each run will end.
// The clock jumps to the next of: a run ends or gives way, a stream's next arrival, what the scheduler has to do.
#include "simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_NS = 1000000 }; ///< a token that was not taken is offered again after this

// ---- chance: splitmix64 (Steele, Lea & Flood 2014)

static double uniform(wt__sim_device *d) // in (0, 1)
{
    uint64_t x = d->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return ((double)((x ^ (x >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(wt__sim_device *d) // Box & Muller 1958
{
    double radius = sqrt(-2 * log(uniform(d)));
    return radius * cos(6.283185307179586 * uniform(d));
}

static int64_t after(wt__sim_device *d, double mean_us)
{
    double ns = -log(uniform(d)) * mean_us * 1e3;
    return d->clock.time_ns + 1 + (ns < 1e15 ? (int64_t)ns : (int64_t)1e15);
}

static int64_t draw_cost(wt__sim_device *d, const wt__sim_job *job)
{
    const wt__sim_load *load = job->stream->load;
    int64_t worst_ns = job->prompt ? load->prompt_worst_ns : load->worst_ns;
    double us = job->prompt ? load->plan->prompt_us : load->plan->cost_us;
    double ns = us * 1e3 * load->scale;
    if (load->plan->spread > 0) ns *= exp(load->plan->spread * normal(d));
    if (ns >= (double)worst_ns) return worst_ns;
    return ns < 1 ? 1 : (int64_t)ns;
}

// ---- arrivals: a binary heap of streams

static void push_arrival(wt__sim_device *d, wt__sim_stream *stream)
{
    int at = d->n_arrivals++;
    for (; at > 0 && d->arrivals[(at - 1) / 2]->next_ns > stream->next_ns; at = (at - 1) / 2)
        d->arrivals[at] = d->arrivals[(at - 1) / 2];
    d->arrivals[at] = stream;
}

static wt__sim_stream *pop_arrival(wt__sim_device *d)
{
    wt__sim_stream *first = d->arrivals[0], *last = d->arrivals[--d->n_arrivals];
    int at = 0;
    for (int child; (child = 2 * at + 1) < d->n_arrivals; at = child) {
        if (child + 1 < d->n_arrivals && d->arrivals[child + 1]->next_ns < d->arrivals[child]->next_ns) child++;
        if (last->next_ns <= d->arrivals[child]->next_ns) break;
        d->arrivals[at] = d->arrivals[child];
    }
    d->arrivals[at] = last;
    return first;
}

// ---- the executor

static wt_status start(void *user, wt_task task, const wt_work *work)
{
    wt__sim_device *d = user;
    wt__sim_job *job = work->user;
    if (!job->left_ns) job->left_ns = draw_cost(d, job);
    d->lanes[d->n_lanes++] = (wt__sim_lane){task, job, d->clock.time_ns, INT64_MAX};
    return WT_OK;
}

static wt_status give_way(wt__sim_device *d, int k)
{
    wt__sim_lane lane = d->lanes[k];
    int64_t ran_ns = d->clock.time_ns - lane.begin_ns;
    lane.job->left_ns -= ran_ns;
    memmove(&d->lanes[k], &d->lanes[k + 1], sizeof lane * (size_t)(--d->n_lanes - k));
    return wt_scheduler_yield(d->scheduler, lane.task, ran_ns);
}

// A run at its very end ends instead.
static void yield(void *user, wt_task task)
{
    wt__sim_device *d = user;
    int k = 0;
    while (k < d->n_lanes && d->lanes[k].task.serial != task.serial) k++;
    if (k == d->n_lanes) return;
    const wt__sim_lane *lane = &d->lanes[k];
    const wt__sim_stream *stream = lane->job->stream;
    int64_t slice_ns = llround(d->plan->partitions[stream->load->partition].blocking_us * 1e3);
    if (d->clock.time_ns + slice_ns >= lane->begin_ns + lane->job->left_ns) return;
    d->lanes[k].stop_ns = d->clock.time_ns + slice_ns;
    if (slice_ns == 0) (void)!give_way(d, k); // cannot be refused: it is running
}

// ---- tasks

static wt__sim_job *take_job(wt__sim_device *d, wt__sim_stream *stream, bool prompt)
{
    wt__sim_job *job = &d->jobs[d->free_job];
    d->free_job = job->next_free;
    *job = (wt__sim_job){.stream = stream, .arrived_ns = d->clock.time_ns, .prompt = prompt};
    return job;
}

static void free_job(wt__sim_device *d, wt__sim_job *job)
{
    job->next_free = d->free_job;
    d->free_job = (int32_t)(job - d->jobs);
}

static wt_status submit(wt__sim_device *d, wt__sim_stream *stream, bool prompt, wt_admission *a)
{
    const wt__sim_load *load = stream->load;
    const wt_plan_load *plan = load->plan;
    wt__sim_job *job = take_job(d, stream, prompt);
    bool periodic = plan->kind == WT_PLAN_PERIODIC;
    wt_task task;
    wt_status status = wt_scheduler_submit(d->scheduler, &(wt_task_config){
        .partition = load->partition,
        .tier = plan->tier,
        .work.user = job,
        .memory_bytes = (size_t)(plan->memory_mb * 1e6),
        .bandwidth_share = plan->bandwidth_share,
        .cost_ns = prompt ? load->prompt_worst_ns : load->worst_ns,
        .deadline_ns = llround(plan->deadline_us * 1e3),
        .period_ns = periodic ? llround(plan->period_us * 1e3) : 0,
        .start_ns = periodic ? stream->next_ns : 0,
        .priority = plan->priority,
        .weight = plan->weight,
        .flow = plan->flow,
    }, &task, a);
    if (status) free_job(d, job);
    return status == WT_ERR_REJECTED ? WT_OK : status;
}

// The next task of a Poisson stream or of a conversation.
static wt_status arrive(wt__sim_device *d, wt__sim_stream *stream)
{
    const wt_plan_load *plan = stream->load->plan;
    wt_load_result *result = stream->load->result;
    bool decode = plan->kind == WT_PLAN_DECODE;
    wt_admission a;
    wt_status status = submit(d, stream, decode && stream->tokens_left > (plan->tokens ? plan->tokens : 256), &a);
    if (!status && a.outcome == WT_REJECTED) result->n_runs_rejected++, result->reason = a.reason;
    if (status || (decode && a.outcome != WT_REJECTED)) return status; // the next token comes after this one
    stream->next_ns = decode ? d->clock.time_ns + RETRY_NS : after(d, 1e6 / plan->rate_hz);
    push_arrival(d, stream);
    return WT_OK;
}

static void begin_answer(wt__sim_stream *stream)
{
    const wt_plan_load *plan = stream->load->plan;
    stream->tokens_left = (plan->tokens ? plan->tokens : 256) + (plan->prompt_us > 0);
}

static void record(wt__sim_device *d, wt__sim_job *job, int64_t release_ns)
{
    wt__sim_load *load = job->stream->load;
    int64_t response_ns = d->clock.time_ns - release_ns;
    double deadline_us = load->plan->deadline_us > 0 ? load->plan->deadline_us
                         : load->plan->kind == WT_PLAN_PERIODIC ? load->plan->period_us : INFINITY;
    wt_histogram_record(load->response, response_ns);
    load->result->n_runs++;
    load->result->n_missed += (double)response_ns > ceil(deadline_us * 1e3);
}

static wt_status end_run(wt__sim_device *d, int k)
{
    wt__sim_lane lane = d->lanes[k];
    wt__sim_job *job = lane.job;
    wt__sim_stream *stream = job->stream;
    const wt_plan_load *plan = stream->load->plan;
    int64_t ran_ns = job->left_ns;
    memmove(&d->lanes[k], &d->lanes[k + 1], sizeof lane * (size_t)(--d->n_lanes - k));
    job->left_ns = 0;
    record(d, job, plan->kind == WT_PLAN_PERIODIC ? stream->next_ns : job->arrived_ns);
    if (plan->kind == WT_PLAN_PERIODIC) stream->next_ns += llround(plan->period_us * 1e3);
    else free_job(d, job);
    wt_status status = wt_scheduler_finish(d->scheduler, lane.task, WT_OK, ran_ns);
    if (status || plan->kind != WT_PLAN_DECODE) return status;
    if (--stream->tokens_left > 0) return arrive(d, stream);
    begin_answer(stream);
    stream->next_ns = after(d, plan->pause_us);
    push_arrival(d, stream);
    return WT_OK;
}

wt_status wt__sim_place(wt__sim_device *d, wt__sim_load *load, wt_admission *a)
{
    wt__sim_stream *stream = &d->streams[d->n_streams];
    *stream = (wt__sim_stream){.load = load};
    *a = (wt_admission){.outcome = WT_ADMITTED};
    if (load->plan->kind == WT_PLAN_PERIODIC) {
        stream->next_ns = 1 + (int64_t)(uniform(d) * load->plan->period_us * 1e3);
        wt_status status = submit(d, stream, false, a);
        d->n_streams += !status && a->outcome != WT_REJECTED;
        return status;
    }
    if (load->plan->kind == WT_PLAN_DECODE) begin_answer(stream);
    stream->next_ns = after(d, load->plan->kind == WT_PLAN_DECODE ? load->plan->pause_us : 1e6 / load->plan->rate_hz);
    push_arrival(d, stream);
    d->n_streams++;
    return WT_OK;
}

// What is done is told every 2^16 events, about 20 ms, and at the end of a device.
static wt_status tell(const wt__sim_device *d, int64_t until_ns)
{
    int n_devices = d->plan->devices ? d->plan->devices : 1;
    double done = (d->number + (double)d->clock.time_ns / (double)until_ns) / n_devices;
    if (!d->progress || d->progress(d->progress_user, done)) return WT_OK;
    return wt_fail(WT_ERR_CANCELLED, "simulation: stopped");
}

wt_status wt__sim_play(wt__sim_device *d, int64_t until_ns)
{
    for (;; d->n_events++) {
        int64_t at_ns;
        int lane = -1;
        wt_status status = wt_scheduler_poll(d->scheduler, &at_ns);
        if (!status && d->n_events % 65536 == 65535) status = tell(d, until_ns);
        if (status) return status;
        bool arrival = d->n_arrivals && d->arrivals[0]->next_ns <= at_ns;
        if (arrival) at_ns = d->arrivals[0]->next_ns;
        for (int k = 0; k < d->n_lanes; k++) {
            int64_t end_ns = d->lanes[k].begin_ns + d->lanes[k].job->left_ns;
            if (d->lanes[k].stop_ns < end_ns) end_ns = d->lanes[k].stop_ns;
            if (end_ns < at_ns || (end_ns == at_ns && lane < 0)) at_ns = end_ns, lane = k;
        }
        if (at_ns > until_ns) break;
        if (at_ns > d->clock.time_ns) d->clock.time_ns = at_ns;
        if (lane >= 0) {
            const wt__sim_lane *l = &d->lanes[lane];
            status = l->stop_ns < l->begin_ns + l->job->left_ns ? give_way(d, lane) : end_run(d, lane);
        } else if (arrival) {
            status = arrive(d, pop_arrival(d));
        }
        if (status) return status;
    }
    d->clock.time_ns = until_ns;
    return tell(d, until_ns);
}

// ---- create and destroy

wt_status wt__sim_open(wt__sim_device *d, int number)
{
    const wt_plan *plan = d->plan;
    d->n_streams = d->n_arrivals = d->n_lanes = 0;
    d->free_job = 0;
    d->number = number;
    for (int k = 0; k < WT__SIM_TASKS; k++) d->jobs[k].next_free = k + 1;
    d->random = (uint64_t)plan->seed * 0xd1342543de82ef95u + (uint64_t)number;
    wt_manual_clock_init(&d->clock, 0);
    wt_status status = wt_scheduler_create(&(wt_scheduler_config){
        .clock = &d->clock.clock, .max_tasks = WT__SIM_TASKS - 1, .max_dependencies = 1, .history = 1,
        .max_partitions = (int)plan->n_partitions, .memory_bytes = (size_t)(plan->memory_mb * 1e6)}, &d->scheduler);
    for (uint32_t k = 0; k < plan->n_partitions && !status; k++) {
        const wt_plan_partition *p = &plan->partitions[k];
        int partition;
        status = wt_scheduler_add_partition(
            d->scheduler,
            &(wt_scheduler_partition_config){
                .name = p->name,
                .executor = {.user = d, .start = start, .yield = p->no_preemption ? NULL : yield},
                .policy = p->policy,
                .n_lanes = p->lanes,
                .memory_bytes = (size_t)(p->memory_mb * 1e6),
                .time_share = p->time_share,
                .bandwidth_share = p->bandwidth_share,
                .blocking_ns = llround(p->blocking_us * 1e3),
                .pacing_share = p->pacing_share},
            &partition);
    }
    if (status) wt__sim_close(d);
    return status;
}

void wt__sim_close(wt__sim_device *d)
{
    wt_scheduler_destroy(d->scheduler);
    d->scheduler = NULL;
}

wt_status wt__sim_create(const wt_plan *plan, int max_streams, wt__sim_device **device)
{
    wt__sim_device *d = *device = calloc(1, sizeof *d);
    if (d) d->streams = calloc((size_t)max_streams, sizeof *d->streams);
    if (d) d->arrivals = calloc((size_t)max_streams, sizeof *d->arrivals);
    if (d) d->jobs = calloc(WT__SIM_TASKS, sizeof *d->jobs);
    if (!d || !d->streams || !d->arrivals || !d->jobs) {
        wt__sim_destroy(d);
        *device = NULL;
        return wt_fail(WT_ERR_NO_MEMORY, "simulation: a device");
    }
    d->plan = plan;
    d->max_streams = max_streams;
    return WT_OK;
}

void wt__sim_destroy(wt__sim_device *d)
{
    if (!d) return;
    wt__sim_close(d);
    free(d->streams), free(d->arrivals), free(d->jobs), free(d);
}
