// Partitions of the scheduler, and what can be asked about them and their tasks.
#include "scheduler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *wt_reason_text(wt_reason reason)
{
    static const char *const texts[] = {
#define WT_REASON_TEXT(code, text) text,
        WT_REASON_LIST(WT_REASON_TEXT)
#undef WT_REASON_TEXT
    };
    return (unsigned)reason < WT_N_REASONS ? texts[reason] : "unknown reason";
}

const char *wt_task_state_text(wt_task_state state)
{
    static const char *const texts[] = {"pending",   "queued", "admitted", "running",
                                        "completed", "failed", "cancelled"};
    return (unsigned)state < WT_N_TASK_STATES ? texts[state] : "unknown";
}

// ---- partitions

static wt_status check_partition(const wt_scheduler_partition_config *c)
{
    const char *name = c->name ? c->name : "";
    if (!c->executor.start) return wt_fail(WT_ERR_BAD_ARG, "partition %s: the executor has no start", name);
    if ((unsigned)c->policy >= WT_N_POLICIES)
        return wt_fail(WT_ERR_BAD_ARG, "partition %s: policy %d is unknown", name, (int)c->policy);
    if (c->n_lanes < 0 || c->n_lanes > WT_SCHEDULER_MAX_LANES)
        return wt_fail(WT_ERR_BAD_ARG, "partition %s: %d lanes, want 0..%d", name, c->n_lanes, WT_SCHEDULER_MAX_LANES);
    if (c->hang_ns < 0)
        return wt_fail(WT_ERR_BAD_ARG, "partition %s: hang_ns %lld, want 0 or more", name, (long long)c->hang_ns);
    if (c->blocking_ns < 0 || c->blocking_ns > WT__MAX_COST_NS)
        return wt_fail(WT_ERR_BAD_ARG, "partition %s: blocking_ns %lld, want 0..%lld", name,
                       (long long)c->blocking_ns, (long long)WT__MAX_COST_NS);
    const struct {
        const char *name;
        double value;
    } shares[] = {{"bandwidth", c->bandwidth_share}, {"time", c->time_share}, {"pacing", c->pacing_share}};
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
        if (!(shares[k].value >= 0 && shares[k].value <= 1))
            return wt_fail(WT_ERR_BAD_ARG, "partition %s: %s share %g, want 0..1", name, shares[k].name,
                           shares[k].value);
    return WT_OK;
}

// Quotas and shares of the other partitions leave room for this one's.
static wt_status check_sums(const wt_scheduler *s, const wt_scheduler_partition_config *c)
{
    size_t memory_left = s->config.memory_bytes;
    int64_t bandwidth_left = WT__SHARE_ONE;
    for (int k = 0; k < s->n_partitions; k++) {
        const wt__partition *p = &s->partitions[k];
        if (!p->used) continue;
        memory_left -= p->config.memory_bytes < memory_left ? p->config.memory_bytes : memory_left;
        bandwidth_left -= p->bandwidth_limit;
    }
    const char *name = c->name ? c->name : "";
    if (s->config.overcommit) return WT_OK;
    if (s->config.memory_bytes && c->memory_bytes > memory_left)
        return wt_fail(WT_ERR_QUOTA, "partition %s: a quota of %zu bytes, but %zu are left", name, c->memory_bytes,
                       memory_left);
    if (llround(c->bandwidth_share * WT__SHARE_ONE) > bandwidth_left)
        return wt_fail(WT_ERR_QUOTA, "partition %s: a bandwidth share of %g, but %g is left", name,
                       c->bandwidth_share, (double)bandwidth_left / WT__SHARE_ONE);
    return WT_OK;
}

void wt__partition_free(wt__partition *p)
{
    free(p->dated), free(p->periodic);
    wt_histogram_destroy(p->prediction_errors);
    *p = (wt__partition){.ready = WT__NONE, .queue = WT__NONE, .paced_until_ns = INT64_MAX};
}

static wt_status add_partition(wt_scheduler *s, const wt_scheduler_partition_config *config, int *partition)
{
    wt_status status = check_partition(config);
    if (!status) status = check_sums(s, config);
    if (status) return status;
    int at = 0;
    while (at < s->n_partitions && s->partitions[at].used) at++;
    if (at == s->config.max_partitions) return wt_fail(WT_ERR_FULL, "scheduler: all %d partitions are taken", at);
    wt__partition *p = &s->partitions[at];
    *p = (wt__partition){.config = *config, .ready = WT__NONE, .queue = WT__NONE, .paced_until_ns = INT64_MAX};
    if (!p->config.n_lanes) p->config.n_lanes = 1;
    p->config.name = NULL;
    strncpy(p->stats.name, config->name ? config->name : "", sizeof p->stats.name - 1);
    p->bandwidth_limit = llround(config->bandwidth_share * WT__SHARE_ONE);
    p->time_limit = config->time_share > 0 ? llround(config->time_share * (double)WT__TIME_ONE) : WT__TIME_ONE;
    if (config->pacing_share > 0) {
        const wt_pacer_config pacing = {config->pacing_share, config->pacing_burst_us};
        status = wt_pacer_init(&p->pacer, &pacing, s->now_ns);
        if (status) return status;
    }
    p->dated = calloc((size_t)s->config.max_tasks, sizeof *p->dated);
    p->periodic = calloc((size_t)s->config.max_tasks, sizeof *p->periodic);
    if (!p->dated || !p->periodic || wt_histogram_create(&p->prediction_errors)) {
        wt__partition_free(p);
        return wt_fail(WT_ERR_NO_MEMORY, "scheduler: partition");
    }
    p->used = true;
    if (at == s->n_partitions) s->n_partitions++;
    *partition = at;
    return WT_OK;
}

wt_status wt_scheduler_add_partition(wt_scheduler *s, const wt_scheduler_partition_config *config, int *partition)
{
    wt__enter(s);
    wt_status status = add_partition(s, config, partition);
    wt__leave(s);
    return status;
}

static int count_live(const wt__partition *p)
{
    const wt_scheduler_partition_stats *stats = &p->stats;
    return stats->n_pending + stats->n_queued + stats->n_ready + stats->n_running + stats->n_waiting;
}

wt_status wt_scheduler_remove_partition(wt_scheduler *s, int partition)
{
    wt__enter(s);
    wt__partition *p = wt__find_partition(s, partition);
    wt_status status = p ? WT_OK : WT_ERR_BAD_ARG;
    bool inside = s->delivering && pthread_equal(s->deliverer, pthread_self());
    if (p && !inside && !count_live(p)) {
        wt__await_callbacks(s, p);
        p = wt__find_partition(s, partition); // others may have been here meanwhile
        status = p ? WT_OK : WT_ERR_BAD_ARG;
    }
    if (p && count_live(p)) {
        status = wt_fail(WT_ERR_STATE, "partition %s: %d tasks have not ended", p->stats.name, count_live(p));
    } else if (p && inside) {
        status = wt_fail(WT_ERR_STATE, "partition %s: cannot be removed from inside a callback", p->stats.name);
    } else if (p) {
        wt__partition_free(p);
    }
    wt__leave(s);
    return status;
}

static void sum_predictions(const wt__partition *p, wt_scheduler_partition_stats *stats)
{
    wt_histogram_summary errors;
    wt_histogram_summarize(p->prediction_errors, &errors);
    stats->n_predicted = errors.count;
    if (errors.count) stats->prediction_bias_ns = llround(p->prediction_bias_sum_ns / (double)errors.count);
    stats->prediction_error_ns = llround(errors.mean);
    stats->prediction_p99_ns = errors.p99;
    stats->prediction_worst_ns = errors.max;
}

wt_status wt_scheduler_get_partition(wt_scheduler *s, int partition, wt_scheduler_partition_stats *stats)
{
    wt__enter(s);
    wt__partition *p = wt__find_partition(s, partition);
    if (p) {
        wt__expire_dated(s, p);
        *stats = p->stats;
        sum_predictions(p, stats);
        stats->bandwidth_share = (double)p->bandwidth_used / WT__SHARE_ONE;
        stats->time_share = ldexp((double)(p->time_guaranteed + p->time_burstable + p->dated_density), -40);
    }
    wt__leave(s);
    return p ? WT_OK : WT_ERR_BAD_ARG;
}

wt_status wt_scheduler_get_cost(wt_scheduler *s, int partition, int kind, wt_kind_cost *cost)
{
    wt__enter(s);
    const wt__partition *p = wt__find_partition(s, partition);
    wt_status status = p ? WT_OK : WT_ERR_BAD_ARG;
    if (p && (kind < 1 || kind >= WT_SCHEDULER_MAX_KINDS)) {
        status = wt_fail(WT_ERR_BAD_ARG, "scheduler: kind %d, want 1..%d", kind, WT_SCHEDULER_MAX_KINDS - 1);
    } else if (p) {
        const wt__kind *k = &p->kinds[kind];
        *cost = (wt_kind_cost){k->worst_ns, k->n_runs ? k->sum_ns / k->n_runs : 0, k->n_runs};
    }
    wt__leave(s);
    return status;
}

// ---- tasks

wt_status wt_scheduler_get_task(wt_scheduler *s, wt_task task, wt_task_info *info)
{
    wt__enter(s);
    const wt__task *t = wt__find(s, task);
    if (t) {
        const wt__partition *p = wt__partition_of(s, t);
        const wt__node *node = &s->nodes[wt__slot_of(s, t)];
        *info = t->info;
        info->position = -1;
        if (t->place == WT__IN_QUEUE) info->position = wt__tree_before(s->nodes, p->queue, node).count;
        if (t->place == WT__IN_READY) info->position = wt__tree_before(s->nodes, p->ready, node).count;
        if (t->place == WT__IN_READY && p->stats.n_hung == p->config.n_lanes) info->waits_for = WT_REASON_HUNG;
    }
    wt__leave(s);
    return t ? WT_OK : WT_ERR_BAD_ARG;
}

/// A partition played forward: what runs, with its end, and the memory and bandwidth that are left.
typedef struct playback {
    wt_scheduler *s;
    wt__partition *p;
    int64_t time_ns, end_ns[WT_SCHEDULER_MAX_LANES];
    int32_t lane[WT_SCHEDULER_MAX_LANES];
    int n_running;
    size_t memory_used;
    int64_t bandwidth_used, time_burstable;
} playback;

// When a running task will be done: INT64_MAX when its cost is unknown, or it hangs.
static int64_t running_end(wt_scheduler *s, const wt__task *t)
{
    int64_t expected_ns = wt__expected_ns(wt__partition_of(s, t), t), left_ns = expected_ns - t->used_ns;
    if (!expected_ns || t->info.hung) return INT64_MAX;
    int64_t end_ns = t->lane_ns + (left_ns > 1 ? left_ns : 1);
    return end_ns > s->now_ns ? end_ns : s->now_ns;
}

// Move to the first end of a run, giving back what it held (periodic tasks keep theirs). False: it never comes.
static bool next_end(playback *play)
{
    int first = -1;
    for (int k = 0; k < play->n_running; k++)
        if (first < 0 || play->end_ns[k] < play->end_ns[first]) first = k;
    if (first < 0 || play->end_ns[first] == INT64_MAX) return false;
    const wt__demand *d = &play->s->tasks[play->lane[first]].demand;
    play->time_ns = play->end_ns[first];
    if (!d->period_ns) {
        play->memory_used -= d->memory_bytes;
        play->bandwidth_used -= d->bandwidth;
    }
    play->n_running--;
    play->end_ns[first] = play->end_ns[play->n_running];
    play->lane[first] = play->lane[play->n_running];
    return true;
}

static bool has_room(const playback *play, const wt__demand *d)
{
    const wt__partition *p = play->p;
    if (p->config.memory_bytes && play->memory_used + d->memory_bytes > p->config.memory_bytes) return false;
    if (d->tier == WT_TIER_BEST_EFFORT) return true;
    if (d->period_ns) return false; // waits for reserved time, which no end of a run gives back
    return play->bandwidth_used + d->bandwidth <= p->bandwidth_limit;
}

static void play_start(playback *play, int32_t slot)
{
    const wt__node *node = &play->s->nodes[slot];
    play->lane[play->n_running] = slot;
    play->end_ns[play->n_running++] = node->cost_ns ? play->time_ns + node->cost_ns : INT64_MAX;
}

// Both lines merged by order: the ready, and from the queue's head whatever has room, in turn until `target` starts.
static wt_status play_until(playback *play, int32_t target, int64_t *start_ns)
{
    wt_scheduler *s = play->s;
    int32_t *ready = s->scratch, *queue = s->scratch + s->n_slots;
    int n_ready = wt__tree_list(s->nodes, play->p->ready, ready);
    int n_queue = wt__tree_list(s->nodes, play->p->queue, queue);
    for (int r = 0, q = 0;;) {
        bool may_queue = q < n_queue && has_room(play, &s->tasks[queue[q]].demand);
        bool from_queue = may_queue && (r == n_ready || wt__node_less(&s->nodes[queue[q]], &s->nodes[ready[r]]));
        if (play->n_running == play->p->config.n_lanes || (r == n_ready && !may_queue)) {
            if (next_end(play)) continue;
            return wt_fail(WT_ERR_NOT_FOUND, "task %llu: no start can be predicted",
                           (unsigned long long)s->nodes[target].serial);
        }
        int32_t slot = from_queue ? queue[q++] : ready[r++];
        const wt__demand *d = &s->tasks[slot].demand;
        if (from_queue) play->memory_used += d->memory_bytes;
        if (from_queue) play->bandwidth_used += d->bandwidth;
        if (slot == target) {
            *start_ns = play->time_ns;
            return WT_OK;
        }
        play_start(play, slot);
    }
}

// When the only lane has room for `t` or those ready before it. What runs gives way when it was asked to, and goes on
// before or after `t` as their order says.
static int64_t lane_free_at(wt_scheduler *s, const wt__partition *p, const wt__task *t)
{
    if (!p->stats.n_running) return s->now_ns;
    int32_t slot = p->running[0];
    int64_t end_ns = running_end(s, &s->tasks[slot]), given_ns = s->now_ns + p->config.blocking_ns;
    bool gives_way = s->tasks[slot].yield_wanted && !s->tasks[slot].info.hung &&
                     wt__node_less(&s->nodes[wt__slot_of(s, t)], &s->nodes[slot]);
    return gives_way && given_ns < end_ns ? given_ns : end_ns;
}

// One lane, already admitted: the rest of what runs, and the costs before it, from the tree.
static bool predict_by_sum(wt_scheduler *s, wt__partition *p, const wt__task *t, int64_t *start_ns)
{
    if (p->config.n_lanes > 1 || t->place != WT__IN_READY || p->queue != WT__NONE) return false;
    wt__before before = wt__tree_before(s->nodes, p->ready, &s->nodes[wt__slot_of(s, t)]);
    int64_t free_ns = lane_free_at(s, p, t);
    if (before.n_unknown || free_ns == INT64_MAX) return false;
    *start_ns = free_ns + before.sum_ns;
    return true;
}

static wt_status predict_by_play(wt_scheduler *s, wt__partition *p, const wt__task *t, int64_t *start_ns)
{
    playback play = {.s = s,
                     .p = p,
                     .time_ns = s->now_ns,
                     .n_running = p->stats.n_running,
                     .memory_used = p->stats.memory_bytes,
                     .bandwidth_used = p->bandwidth_used};
    for (int k = 0; k < play.n_running; k++) {
        play.lane[k] = p->running[k];
        play.end_ns[k] = running_end(s, &s->tasks[p->running[k]]);
    }
    return play_until(&play, wt__slot_of(s, t), start_ns);
}

static void keep_prediction(wt__task *t, int64_t start_ns)
{
    if (!t->info.started_ns) t->info.predicted_ns = start_ns;
}

void wt__predict_cheaply(wt_scheduler *s, wt__task *t)
{
    wt__partition *p = wt__partition_of(s, t);
    int64_t start_ns;
    if (p->config.pacing_share > 0 && t->demand.tier != WT_TIER_GUARANTEED) return;
    if (predict_by_sum(s, p, t, &start_ns)) keep_prediction(t, start_ns);
}

void wt__note_start(wt_scheduler *s, wt__task *t)
{
    if (t->info.handed_ns) return;
    t->info.handed_ns = t->info.predicted_ns ? wt_clock_now_ns(s->config.clock) : t->info.started_ns;
    if (!t->info.predicted_ns) return;
    wt__partition *p = wt__partition_of(s, t);
    int64_t late_ns = t->info.handed_ns - t->info.predicted_ns;
    wt_histogram_record(p->prediction_errors, late_ns < 0 ? -late_ns : late_ns);
    p->prediction_bias_sum_ns += (double)late_ns;
}

static wt_status predict(wt_scheduler *s, wt_task task, int64_t *start_ns)
{
    wt__task *t = wt__find(s, task);
    if (!t) return WT_ERR_BAD_ARG;
    if (t->place == WT__ON_LANE) {
        *start_ns = t->lane_ns;
        return WT_OK;
    }
    if (t->place != WT__IN_READY && t->place != WT__IN_QUEUE)
        return wt_fail(WT_ERR_STATE, "task %llu: does not stand in a line", (unsigned long long)t->serial);
    wt__partition *p = wt__partition_of(s, t);
    wt_status status = WT_OK;
    if (!predict_by_sum(s, p, t, start_ns)) status = predict_by_play(s, p, t, start_ns);
    if (!status) keep_prediction(t, *start_ns);
    return status;
}

wt_status wt_scheduler_predict(wt_scheduler *s, wt_task task, int64_t *start_ns)
{
    wt__enter(s);
    wt_status status = predict(s, task, start_ns);
    wt__leave(s);
    return status;
}
