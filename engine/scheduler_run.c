// Runs: releases of periods, the ready line, lanes, preemption, pacing, watchdogs, and the callbacks' ring.
#include "scheduler_internal.h"

enum { GUESSED_COST_NS = 1000000 }; ///< weighted-fair: what work of unknown cost is charged until it is measured

void wt__note_event(wt_scheduler *s, int64_t time_ns)
{
    if (time_ns >= s->next_ns) return;
    s->next_ns = time_ns;
    if (s->timer_started) pthread_cond_signal(&s->timer);
}

void wt__push_action(wt_scheduler *s, wt__task *t, wt__action_kind kind)
{
    // At most one of each kind is open for a slot, which is not used again before they are delivered.
    int at = (s->actions_first + s->n_actions++) % (WT__N_ACTIONS * s->n_slots);
    s->actions[at] = (wt__action){kind, wt__slot_of(s, t), t->serial};
    t->n_actions++;
    wt__partition_of(s, t)->n_actions++;
}

// ---- releases: a binary heap by (time, serial); each task knows its index

static bool release_less(const wt__task *a, const wt__task *b)
{
    return a->release_ns != b->release_ns ? a->release_ns < b->release_ns : a->serial < b->serial;
}

static void put_release(wt_scheduler *s, int at, int32_t slot)
{
    s->releases[at] = slot;
    s->tasks[slot].releases_at = at;
}

static void sift(wt_scheduler *s, int at, int32_t slot)
{
    const wt__task *t = &s->tasks[slot];
    for (; at > 0 && release_less(t, &s->tasks[s->releases[(at - 1) / 2]]); at = (at - 1) / 2)
        put_release(s, at, s->releases[(at - 1) / 2]);
    for (int child; (child = 2 * at + 1) < s->n_releases; at = child) {
        const int32_t *both = s->releases + child;
        if (child + 1 < s->n_releases && release_less(&s->tasks[both[1]], &s->tasks[both[0]])) child++;
        if (release_less(t, &s->tasks[s->releases[child]])) break;
        put_release(s, at, s->releases[child]);
    }
    put_release(s, at, slot);
}

void wt__wait_release(wt_scheduler *s, wt__task *t)
{
    t->due_ns = t->release_ns + t->demand.deadline_ns;
    if (t->release_ns <= s->now_ns) {
        wt__make_ready(s, t);
        return;
    }
    t->place = WT__IN_RELEASES;
    wt__partition_of(s, t)->stats.n_waiting++;
    sift(s, s->n_releases++, wt__slot_of(s, t));
    wt__note_event(s, t->release_ns);
}

void wt__forget_release(wt_scheduler *s, wt__task *t)
{
    int at = t->releases_at;
    int32_t last = s->releases[--s->n_releases];
    if (at < s->n_releases) sift(s, at, last);
    wt__partition_of(s, t)->stats.n_waiting--;
    t->place = WT__NOWHERE;
}

// ---- the ready line

int64_t wt__expected_ns(const wt__partition *p, const wt__task *t)
{
    const wt__kind *kind = &p->kinds[t->config.kind];
    return t->config.kind && kind->n_runs ? kind->sum_ns / kind->n_runs : t->demand.cost_ns;
}

static bool goes_by_share(const wt__partition *p, const wt__task *t)
{
    return p->config.policy == WT_POLICY_WEIGHTED_FAIR && t->demand.tier != WT_TIER_GUARANTEED;
}

static int64_t weighted(const wt__task *t, int64_t cost_ns) { return (int64_t)((double)cost_ns / t->config.weight); }

// Start tag max(v, last finish tag of the flow), finish tag after the expected cost; wt__run_ended puts it right.
static int64_t start_tag(wt__partition *p, wt__task *t)
{
    int64_t *flow_ns = &p->flow_ns[t->config.flow];
    int64_t tag = *flow_ns > p->virtual_ns ? *flow_ns : p->virtual_ns;
    int64_t expected_ns = wt__expected_ns(p, t);
    t->fair_ns = expected_ns ? expected_ns : GUESSED_COST_NS;
    *flow_ns = tag + weighted(t, t->fair_ns);
    return tag;
}

void wt__give_back_share(wt__partition *p, const wt__task *t)
{
    if (goes_by_share(p, t) && !t->began) p->flow_ns[t->config.flow] -= weighted(t, t->fair_ns);
}

static void enter_line(wt_scheduler *s, wt__task *t)
{
    wt__partition *p = wt__partition_of(s, t);
    t->ready_ns = s->now_ns;
    t->place = WT__IN_READY;
    p->stats.n_ready++;
    wt__tree_insert(s->nodes, &p->ready, wt__slot_of(s, t));
    p->touched = true;
}

void wt__make_ready(wt_scheduler *s, wt__task *t)
{
    wt__partition *p = wt__partition_of(s, t);
    t->used_ns = 0;
    t->began = false;
    wt__set_node(s, t);
    if (goes_by_share(p, t)) s->nodes[wt__slot_of(s, t)].key = start_tag(p, t);
    enter_line(s, t);
}

// ---- lanes

static bool is_watched(const wt__partition *p, const wt__task *t) { return t->config.timeout_ns || p->config.hang_ns; }

static void start_run(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    int32_t slot = wt__slot_of(s, t);
    wt__tree_remove(s->nodes, &p->ready, slot);
    p->stats.n_ready--;
    p->running[p->stats.n_running] = slot; // n_running grows with the state below
    t->place = WT__ON_LANE;
    t->handed = false;
    t->lane_ns = s->now_ns;
    int64_t wait_ns = s->now_ns - t->ready_ns;
    t->info.wait_ns += wait_ns;
    p->stats.wait_ns += wait_ns;
    if (wait_ns > p->stats.worst_wait_ns) p->stats.worst_wait_ns = wait_ns;
    if (!t->began) t->run_ns = s->now_ns;
    t->began = true;
    if (goes_by_share(p, t) && s->nodes[slot].key > p->virtual_ns) p->virtual_ns = s->nodes[slot].key;
    p->n_watched += is_watched(p, t);
    if (t->config.timeout_ns) wt__note_event(s, t->run_ns + t->config.timeout_ns);
    if (p->config.hang_ns) wt__note_event(s, t->lane_ns + p->config.hang_ns);
    wt__set_state(s, t, WT_TASK_RUNNING, WT_REASON_NONE);
    wt__push_action(s, t, WT__START);
}

// Ask the least urgent running task for its lane when `first` comes before it and the order is one that preempts.
static bool ask_for_lane(wt_scheduler *s, wt__partition *p, const wt__node *first)
{
    const wt__node *last = NULL;
    for (int k = 0; k < p->stats.n_running; k++) {
        const wt__node *node = &s->nodes[p->running[k]];
        const wt__task *t = &s->tasks[p->running[k]];
        if (!t->yield_wanted && !t->cancel_wanted && (!last || wt__node_less(last, node))) last = node;
    }
    if (!last || !wt__node_less(first, last)) return false;
    bool urgent = p->config.policy == WT_POLICY_PRIORITY || p->config.policy == WT_POLICY_EARLIEST_DEADLINE;
    bool same = first->rank == last->rank && first->key == last->key; // only older: not worth a switch
    if (same || (first->rank == last->rank && first->rank > 0 && !urgent)) return false;
    wt__task *running = &s->tasks[last - s->nodes];
    running->yield_wanted = true;
    p->n_yields_wanted++;
    wt__trace(s, running, WT_TASK_RUNNING, WT_REASON_NONE);
    wt__push_action(s, running, WT__YIELD);
    return true;
}

// The lanes that were asked for already go to the first in line; who stands after them may ask for another one.
// For guaranteed work, where giving way takes time, all less urgent lanes are asked at once: a more urgent task that
// comes meanwhile takes the first lane, and who asked for that one must not wait for a second slice. So no less urgent
// work goes on for longer than blocking_ns beside a guaranteed task that waits, as the admission test has it.
static void ask_for_lanes(wt_scheduler *s, wt__partition *p)
{
    if (!p->config.executor.yield) return;
    bool all = p->config.blocking_ns > 0 && s->nodes[wt__tree_first(s->nodes, p->ready)].rank == 0;
    int32_t slot;
    do slot = wt__tree_at(s->nodes, p->ready, all ? 0 : p->n_yields_wanted);
    while (slot != WT__NONE && ask_for_lane(s, p, &s->nodes[slot]));
}

static bool is_paced_out(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    if (p->config.pacing_share <= 0 || t->demand.tier == WT_TIER_GUARANTEED) return false;
    int64_t ready_ns = wt_pacer_ready_at(&p->pacer, s->now_ns);
    if (ready_ns <= s->now_ns) return false;
    p->paced_until_ns = ready_ns;
    wt__note_event(s, ready_ns);
    if (p->throttled_serial != t->serial) {
        p->throttled_serial = t->serial;
        t->info.n_throttled++;
        p->stats.n_throttled++;
    }
    return true;
}

static void start_ready(wt_scheduler *s, wt__partition *p)
{
    p->touched = false;
    p->paced_until_ns = INT64_MAX;
    for (int32_t slot; (slot = wt__tree_first(s->nodes, p->ready)) != WT__NONE;) {
        wt__task *t = &s->tasks[slot];
        if (p->stats.n_running == p->config.n_lanes) {
            ask_for_lanes(s, p);
            return;
        }
        if (is_paced_out(s, p, t)) return;
        p->throttled_serial = 0;
        start_run(s, p, t);
    }
}

void wt__dispatch(wt_scheduler *s, wt__partition *p)
{
    start_ready(s, p);
    if (p->stats.n_running || p->ready != WT__NONE || !p->n_dated) return;
    p->n_dated = 0, p->dated_density = 0, p->dated_largest = 0; // idle: nothing was moved
    wt__admit_queued(s, p);
    start_ready(s, p);
}

// ---- ends of runs

// Leave the lane and account for `device_ns` since the last start; the caller sets the state at once.
static void leave_lane(wt_scheduler *s, wt__task *t, int64_t device_ns)
{
    wt__partition *p = wt__partition_of(s, t);
    int at = 0;
    while (p->running[at] != wt__slot_of(s, t)) at++;
    p->running[at] = p->running[p->stats.n_running - 1];
    t->place = WT__NOWHERE;
    p->n_yields_wanted -= t->yield_wanted;
    t->yield_wanted = false;
    p->n_watched -= is_watched(p, t);
    const bool was_blocked = p->stats.n_hung == p->config.n_lanes;
    p->stats.n_hung -= t->info.hung;
    t->info.hung = false;
    if (was_blocked) p->unblocked = p->stats.n_hung < p->config.n_lanes;
    t->used_ns += device_ns;
    t->info.device_ns += device_ns;
    p->stats.device_ns += device_ns;
    if (p->config.pacing_share > 0) wt_pacer_charge(&p->pacer, s->now_ns, (double)device_ns * 1e-3);
    p->touched = true;
}

static void measure(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    wt__kind *kind = &p->kinds[t->config.kind];
    if (t->config.kind) {
        kind->n_runs++;
        kind->sum_ns += t->used_ns;
        if (t->used_ns > kind->worst_ns) kind->worst_ns = t->used_ns;
    }
    if (t->used_ns > t->info.worst_device_ns) t->info.worst_device_ns = t->used_ns;
    if (goes_by_share(p, t)) p->flow_ns[t->config.flow] += weighted(t, t->used_ns - t->fair_ns);
    if (!t->demand.cost_ns || t->used_ns <= t->demand.cost_ns) return;
    t->info.n_overruns++;
    p->stats.n_overruns++;
    wt__raise_cost(s, t, t->used_ns);
}

static void count_run(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    int64_t response_ns = s->now_ns - t->release_ns;
    bool missed = s->now_ns > t->due_ns;
    t->info.n_jobs++, p->stats.n_jobs++;
    t->info.n_missed += missed, p->stats.n_missed += missed;
    if (response_ns > t->info.worst_response_ns) t->info.worst_response_ns = response_ns;
    if (response_ns > p->stats.worst_response_ns) p->stats.worst_response_ns = response_ns;
}

// The next period's release; with skip_missed the first that has not begun. False when no period is left.
static bool next_period(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    int64_t period_ns = t->demand.period_ns, steps = 1;
    if (t->config.skip_missed && s->now_ns > t->release_ns + period_ns)
        steps = (s->now_ns - t->release_ns + period_ns - 1) / period_ns;
    int64_t left = t->config.n_jobs ? t->config.n_jobs - 1 - (int64_t)t->job : INT64_MAX;
    int64_t skipped = (steps - 1 < left ? steps - 1 : left);
    t->info.n_missed += skipped, p->stats.n_missed += (uint64_t)skipped;
    t->job += (uint64_t)steps;
    t->release_ns += steps * period_ns;
    return steps <= left;
}

// A lane is free. Where the partition was blocked, the queue waited for that.
static void go_on(wt_scheduler *s, wt__partition *p)
{
    if (p->unblocked) wt__admit_queued(s, p);
    p->unblocked = false;
    wt__dispatch(s, p);
}

void wt__run_ended(wt_scheduler *s, wt__task *t, wt_status status, int64_t device_ns)
{
    wt__partition *p = wt__partition_of(s, t);
    leave_lane(s, t, device_ns);
    if (t->timed_out) {
        wt__end(s, t, WT_TASK_FAILED, WT_ERR_TIMEOUT);
    } else if (t->cancel_wanted || status == WT_ERR_CANCELLED) {
        wt__end(s, t, WT_TASK_CANCELLED, WT_ERR_CANCELLED);
    } else if (status) {
        wt__end(s, t, WT_TASK_FAILED, status);
    } else {
        measure(s, p, t);
        count_run(s, p, t);
        if (!t->demand.period_ns || !next_period(s, p, t)) {
            wt__end(s, t, WT_TASK_COMPLETED, WT_OK);
            return;
        }
        wt__set_state(s, t, WT_TASK_ADMITTED, WT_REASON_NONE);
        wt__wait_release(s, t);
        go_on(s, p);
    }
}

void wt__run_yielded(wt_scheduler *s, wt__task *t, int64_t device_ns)
{
    wt__partition *p = wt__partition_of(s, t);
    int32_t slot = wt__slot_of(s, t);
    leave_lane(s, t, device_ns);
    if (t->cancel_wanted || t->timed_out) {
        wt__end(s, t, t->timed_out ? WT_TASK_FAILED : WT_TASK_CANCELLED,
                t->timed_out ? WT_ERR_TIMEOUT : WT_ERR_CANCELLED);
        return;
    }
    t->info.n_yields++, p->stats.n_yields++;
    int64_t tag = s->nodes[slot].key;
    wt__set_state(s, t, WT_TASK_ADMITTED, WT_REASON_NONE);
    wt__set_node(s, t);
    if (goes_by_share(p, t)) s->nodes[slot].key = tag + weighted(t, device_ns);
    enter_line(s, t);
    go_on(s, p);
}

// ---- time

// True when that time has come, now; else the scheduler wakes then.
static bool is_due(wt_scheduler *s, int64_t time_ns)
{
    if (time_ns > s->now_ns) wt__note_event(s, time_ns);
    return time_ns <= s->now_ns;
}

static void time_out(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    t->timed_out = true;
    p->stats.n_timeouts++;
    if (p->config.executor.cancel && !t->cancel_wanted) wt__push_action(s, t, WT__CANCEL);
}

static void report_hang(wt_scheduler *s, wt__partition *p, wt__task *t)
{
    t->info.hung = true;
    p->stats.n_hung++, p->stats.n_hangs++;
    wt__trace(s, t, WT_TASK_RUNNING, WT_REASON_HUNG);
    if (!p->config.hung || t->hang_open) return;
    t->hang_open = true;
    wt__push_action(s, t, WT__HANG);
}

static void watch(wt_scheduler *s, wt__partition *p)
{
    for (int k = 0; k < p->stats.n_running; k++) {
        wt__task *t = &s->tasks[p->running[k]];
        if (t->config.timeout_ns && !t->timed_out && is_due(s, t->run_ns + t->config.timeout_ns)) time_out(s, p, t);
        if (p->config.hang_ns && !t->info.hung && is_due(s, t->lane_ns + p->config.hang_ns)) report_hang(s, p, t);
    }
}

// The head of the queue waits for time that ended work kept until now.
static void admit_late(wt_scheduler *s, wt__partition *p)
{
    int32_t head = p->n_dated ? wt__tree_first(s->nodes, p->queue) : WT__NONE;
    if (head == WT__NONE || s->tasks[head].info.waits_for != WT_REASON_TIME) return;
    if (is_due(s, p->dated[0].due_ns)) wt__admit_queued(s, p);
}

void wt__advance(wt_scheduler *s)
{
    if (s->next_ns > s->now_ns) return;
    s->next_ns = INT64_MAX;
    while (s->n_releases && s->tasks[s->releases[0]].release_ns <= s->now_ns) {
        wt__task *t = &s->tasks[s->releases[0]];
        wt__forget_release(s, t);
        wt__make_ready(s, t);
    }
    if (s->n_releases) wt__note_event(s, s->tasks[s->releases[0]].release_ns);
    for (int k = 0; k < s->n_partitions; k++) {
        wt__partition *p = &s->partitions[k];
        if (p->n_watched) watch(s, p);
        admit_late(s, p);
        if (p->touched || p->paced_until_ns <= s->now_ns) wt__dispatch(s, p);
        else wt__note_event(s, p->paced_until_ns);
    }
}
