// The states of a task and what follows from each change: reservations, dependents, history, callbacks.
#include "scheduler_internal.h"

#include <assert.h>

#define BIT(state) (1u << WT_TASK_##state)

/// From each state, the states a task may go to. Ended states lead nowhere.
static const unsigned allowed[WT_N_TASK_STATES] = {
    [WT_TASK_PENDING] = BIT(QUEUED) | BIT(ADMITTED) | BIT(FAILED) | BIT(CANCELLED),
    [WT_TASK_QUEUED] = BIT(ADMITTED) | BIT(FAILED) | BIT(CANCELLED),
    [WT_TASK_ADMITTED] = BIT(RUNNING) | BIT(CANCELLED),
    [WT_TASK_RUNNING] = BIT(ADMITTED) | BIT(COMPLETED) | BIT(FAILED) | BIT(CANCELLED),
};

void wt__trace(wt_scheduler *s, const wt__task *t, wt_task_state from, wt_reason reason)
{
    if (!s->config.trace) return;
    s->config.trace(s->config.trace_user, &(wt_trace){.time_ns = s->now_ns, .serial = t->serial,
                                                      .partition = t->config.partition, .from = from,
                                                      .to = t->info.state, .reason = reason,
                                                      .status = t->info.status});
}

static void count_state(wt_scheduler *s, const wt__task *t, int change)
{
    wt_scheduler_partition_stats *stats = &wt__partition_of(s, t)->stats;
    if (t->info.state == WT_TASK_PENDING) stats->n_pending += change;
    else if (t->info.state == WT_TASK_QUEUED) stats->n_queued += change;
    else if (t->info.state == WT_TASK_RUNNING) stats->n_running += change;
}

void wt__set_state(wt_scheduler *s, wt__task *t, wt_task_state to, wt_reason reason)
{
    wt_task_state from = t->info.state;
    assert(allowed[from] & (1u << to));
    count_state(s, t, -1);
    t->info.state = to;
    count_state(s, t, 1);
    t->info.waits_for = to == WT_TASK_QUEUED ? reason : WT_REASON_NONE;
    if (to == WT_TASK_ADMITTED && !t->info.admitted_ns) t->info.admitted_ns = s->now_ns;
    if (to == WT_TASK_RUNNING && !t->info.started_ns) t->info.started_ns = s->now_ns;
    wt__trace(s, t, from, reason);
}

static int64_t order_key(const wt__partition *p, const wt__task *t)
{
    wt_policy policy = t->demand.tier == WT_TIER_GUARANTEED ? WT_POLICY_EARLIEST_DEADLINE : p->config.policy;
    switch (policy) {
    case WT_POLICY_SHORTEST_JOB: return t->demand.cost_ns ? t->demand.cost_ns : INT64_MAX;
    case WT_POLICY_PRIORITY: return -(int64_t)t->config.priority;
    case WT_POLICY_EARLIEST_DEADLINE: return t->due_ns;
    default: return 0;
    }
}

void wt__set_node(wt_scheduler *s, wt__task *t)
{
    int64_t expected_ns = wt__expected_ns(wt__partition_of(s, t), t), left_ns = expected_ns - t->used_ns;
    if (left_ns < 1) left_ns = expected_ns ? 1 : 0;
    s->nodes[wt__slot_of(s, t)] = (wt__node){.key = order_key(wt__partition_of(s, t), t), .serial = t->serial,
                                             .cost_ns = left_ns, .left = WT__NONE, .right = WT__NONE,
                                             .rank = WT_TIER_GUARANTEED - (int)t->demand.tier};
}

static void admit(wt_scheduler *s, wt__task *t)
{
    wt__reserve(s, t);
    wt__set_state(s, t, WT_TASK_ADMITTED, WT_REASON_NONE);
    if (!t->demand.period_ns) {
        t->release_ns = s->now_ns;
        wt__make_ready(s, t);
        return;
    }
    t->release_ns = t->config.start_ns ? t->config.start_ns : s->now_ns;
    wt__wait_release(s, t);
}

// The head of a queue that waits for time is looked at again when the first of what ended work keeps is free.
static void await_room(wt_scheduler *s, const wt__partition *p, wt_reason reason)
{
    if (reason == WT_REASON_TIME && p->n_dated) wt__note_event(s, p->dated[0].due_ns);
}

// Admit from the head of the queue what fits now. The head is not passed by later ones: it would never have its turn.
void wt__admit_queued(wt_scheduler *s, wt__partition *p)
{
    for (int32_t slot; (slot = wt__tree_first(s->nodes, p->queue)) != WT__NONE;) {
        wt__task *t = &s->tasks[slot];
        wt_reason reason;
        if (wt__admit_decide(s, p, &t->demand, &s->nodes[slot], &reason) != WT_ADMITTED) {
            t->info.waits_for = reason;
            await_room(s, p, reason);
            return;
        }
        wt__tree_remove(s->nodes, &p->queue, slot);
        t->place = WT__NOWHERE;
        admit(s, t);
    }
}

wt_outcome wt__decide(wt_scheduler *s, wt__task *t, wt_reason *reason)
{
    if (t->demand.deadline_ns) t->due_ns = s->now_ns + t->demand.deadline_ns;
    wt__set_node(s, t);
    return wt__admit_decide(s, wt__partition_of(s, t), &t->demand, &s->nodes[wt__slot_of(s, t)], reason);
}

void wt__carry_out(wt_scheduler *s, wt__task *t, wt_outcome outcome, wt_reason reason)
{
    if (outcome == WT_ADMITTED) {
        admit(s, t);
    } else if (outcome == WT_QUEUED) {
        wt__tree_insert(s->nodes, &wt__partition_of(s, t)->queue, wt__slot_of(s, t));
        t->place = WT__IN_QUEUE;
        await_room(s, wt__partition_of(s, t), reason);
        wt__set_state(s, t, WT_TASK_QUEUED, reason);
    }
}

wt_outcome wt__unpend(wt_scheduler *s, wt__task *t)
{
    wt_reason reason;
    wt_outcome outcome = wt__decide(s, t, &reason);
    wt__carry_out(s, t, outcome, reason);
    return outcome;
}

static void take_out(wt_scheduler *s, wt__task *t)
{
    wt__partition *p = wt__partition_of(s, t);
    int32_t slot = wt__slot_of(s, t);
    if (t->place == WT__IN_QUEUE) wt__tree_remove(s->nodes, &p->queue, slot);
    if (t->place == WT__IN_READY) {
        wt__tree_remove(s->nodes, &p->ready, slot);
        p->stats.n_ready--;
        wt__give_back_share(p, t);
    }
    if (t->place == WT__IN_RELEASES) {
        wt__forget_release(s, t);
        t->due_ns = t->job ? t->due_ns - t->demand.period_ns : s->now_ns; // of the last run that was released, if any
    }
    t->place = WT__NOWHERE;
}

void wt__forget_ended(wt_scheduler *s)
{
    while (s->n_history > s->config.history) {
        int32_t oldest = s->history[s->history_first];
        if (s->tasks[oldest].n_actions || s->tasks[oldest].n_waits) return;
        s->tasks[oldest].serial = 0;
        s->free_slots[s->n_free++] = oldest;
        s->history_first = (s->history_first + 1) % s->n_slots;
        s->n_history--;
    }
}

static void remember(wt_scheduler *s, wt__task *t)
{
    s->history[(s->history_first + s->n_history++) % s->n_slots] = wt__slot_of(s, t);
    wt__forget_ended(s);
}

static void end_one(wt_scheduler *s, wt__task *t, wt_task_state state, wt_status status)
{
    wt__partition *p = wt__partition_of(s, t);
    take_out(s, t);
    wt__unreserve(s, t);
    t->info.status = status;
    t->info.ended_ns = s->now_ns;
    wt__set_state(s, t, state, WT_REASON_NONE);
    p->stats.n_completed += state == WT_TASK_COMPLETED;
    p->stats.n_failed += state == WT_TASK_FAILED;
    p->stats.n_cancelled += state == WT_TASK_CANCELLED;
    if (t->config.done) wt__push_action(s, t, WT__DONE);
    if (s->n_waiters) pthread_cond_broadcast(&s->ended);
    s->n_live--;
    p->touched = true;
}

// Tell the tasks that wait for `t` how it ended; those that must end too are put on the list. A list, not recursion:
// chains are as long as the caller likes.
static int tell_dependents(wt_scheduler *s, wt__task *t, int32_t *list, int n)
{
    wt_task_state state = t->info.state;
    for (int32_t at = t->first_edge, next; at != WT__NONE; at = next) {
        wt__edge *edge = &s->edges[at];
        wt__task *waiting = &s->tasks[edge->slot];
        bool waits = waiting->serial == edge->serial && waiting->info.state == WT_TASK_PENDING && !waiting->failing;
        next = edge->next;
        edge->next = s->free_edge;
        s->free_edge = at;
        if (!waits) continue;
        bool met = state == WT_TASK_COMPLETED;
        if (met && (--waiting->n_blockers || waiting->held)) continue;
        if (met && wt__unpend(s, waiting) != WT_REJECTED) continue;
        waiting->failing = true;
        waiting->info.status = met ? WT_ERR_REJECTED : t->info.status;
        waiting->cancel_wanted = state == WT_TASK_CANCELLED;
        list[n++] = edge->slot;
    }
    t->first_edge = WT__NONE;
    return n;
}

void wt__end(wt_scheduler *s, wt__task *t, wt_task_state state, wt_status status)
{
    int32_t *list = s->scratch;
    end_one(s, t, state, status);
    int n = tell_dependents(s, t, list, 0);
    remember(s, t);
    while (n > 0) {
        wt__task *waiting = &s->tasks[list[--n]];
        end_one(s, waiting, waiting->cancel_wanted ? WT_TASK_CANCELLED : WT_TASK_FAILED, waiting->info.status);
        n = tell_dependents(s, waiting, list, n);
        remember(s, waiting);
    }
    for (int k = 0; k < s->n_partitions; k++) {
        wt__partition *p = &s->partitions[k];
        if (!p->touched) continue;
        p->touched = false;
        p->unblocked = false;
        wt__admit_queued(s, p);
        wt__dispatch(s, p);
    }
}
