// Dependencies: edges from a task to those that wait for it, in lists taken from one pool.
#include "scheduler_internal.h"

wt_status wt__check_dependencies(wt_scheduler *s, const wt_task_config *c, int *n_open, wt_reason *reason)
{
    *n_open = 0;
    for (int k = 0; k < c->n_after; k++) {
        const wt__task *before = wt__find(s, c->after[k]);
        if (!before) return WT_ERR_BAD_ARG;
        if (before->info.state == WT_TASK_FAILED || before->info.state == WT_TASK_CANCELLED)
            *reason = WT_REASON_DEPENDENCY;
        *n_open += before->info.state < WT_TASK_COMPLETED;
    }
    int n_free = 0;
    for (int32_t at = s->free_edge; at != WT__NONE && n_free < *n_open; at = s->edges[at].next) n_free++;
    if (n_free < *n_open) *reason = WT_REASON_FULL;
    return WT_OK;
}

void wt__add_edge(wt_scheduler *s, wt__task *before, wt__task *t)
{
    int32_t at = s->free_edge;
    s->free_edge = s->edges[at].next;
    s->edges[at] = (wt__edge){t->serial, wt__slot_of(s, t), before->first_edge};
    before->first_edge = at;
    t->n_blockers++;
}

// Does anything that waits for `from`, directly or through others, include `target`?
static bool reaches(wt_scheduler *s, const wt__task *from, const wt__task *target)
{
    int32_t *stack = s->scratch, *seen = s->scratch + s->n_slots;
    int n = 0, n_seen = 0;
    stack[n++] = wt__slot_of(s, from);
    bool found = from == target;
    while (n > 0 && !found) {
        for (int32_t at = s->tasks[stack[--n]].first_edge; at != WT__NONE && !found; at = s->edges[at].next) {
            wt__task *next = &s->tasks[s->edges[at].slot];
            if (next->serial != s->edges[at].serial || next->failing) continue;
            found = next == target;
            next->failing = true; // visited
            seen[n_seen++] = stack[n++] = wt__slot_of(s, next);
        }
    }
    for (int k = 0; k < n_seen; k++) s->tasks[seen[k]].failing = false;
    return found;
}

static wt_status depend(wt_scheduler *s, wt_task task, wt_task after)
{
    wt__task *t = wt__find(s, task), *before = t ? wt__find(s, after) : NULL;
    if (!t || !before) return WT_ERR_BAD_ARG;
    if (t->info.state != WT_TASK_PENDING)
        return wt_fail(WT_ERR_STATE, "task %llu: is %s; only a pending task can take on dependencies",
                       (unsigned long long)t->serial, wt_task_state_text(t->info.state));
    if (before->info.state == WT_TASK_COMPLETED) return WT_OK;
    if (before->info.state > WT_TASK_COMPLETED)
        return wt_fail(WT_ERR_STATE, "task %llu: is %s; nothing can wait for it", (unsigned long long)before->serial,
                       wt_task_state_text(before->info.state));
    if (reaches(s, t, before))
        return wt_fail(WT_ERR_BAD_ARG, "task %llu: waiting for task %llu would close a cycle",
                       (unsigned long long)t->serial, (unsigned long long)before->serial);
    if (s->free_edge == WT__NONE)
        return wt_fail(WT_ERR_FULL, "scheduler: all %d dependencies are taken", s->config.max_dependencies);
    wt__add_edge(s, before, t);
    return WT_OK;
}

wt_status wt_scheduler_depend(wt_scheduler *s, wt_task task, wt_task after)
{
    wt__enter(s);
    wt_status status = depend(s, task, after);
    wt__leave(s);
    return status;
}

wt_status wt_scheduler_release(wt_scheduler *s, wt_task task)
{
    wt__enter(s);
    wt__task *t = wt__find(s, task);
    wt_status status = t ? WT_OK : WT_ERR_BAD_ARG;
    if (t && (t->info.state != WT_TASK_PENDING || !t->held)) {
        status = wt_fail(WT_ERR_STATE, "task %llu: is %s, not held", (unsigned long long)t->serial,
                         wt_task_state_text(t->info.state));
    } else if (t) {
        t->held = false;
        if (!t->n_blockers && wt__unpend(s, t) == WT_REJECTED) wt__end(s, t, WT_TASK_FAILED, WT_ERR_REJECTED);
        wt__dispatch(s, wt__partition_of(s, t));
    }
    wt__leave(s);
    return status;
}
