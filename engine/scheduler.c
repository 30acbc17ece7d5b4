// The scheduler's public calls that change something: checks, then the state machine of scheduler_state.c.
#include "scheduler_internal.h"
#include "scheduler_slots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- entering and leaving

void wt__enter(wt_scheduler *s)
{
    pthread_mutex_lock(&s->mutex);
    int64_t now_ns = wt_clock_now_ns(s->config.clock);
    if (now_ns > s->now_ns) s->now_ns = now_ns;
    wt__advance(s);
}

static wt_hang hang_of(const wt_scheduler *s, const wt__task *t, wt_task task)
{
    wt_hang hang = {.task = task, .partition = t->config.partition, .running_ns = s->now_ns - t->lane_ns};
    memcpy(hang.name, t->info.name, sizeof hang.name);
    return hang;
}

static void tell_hang(const wt_scheduler_partition_config *p, wt_hang *hang)
{
    if (p->executor.describe) p->executor.describe(p->executor.user, hang->task, hang->what, sizeof hang->what);
    p->hung(p->hung_user, hang);
}

// One callback, unlocked. What is no longer true when its turn comes is left out.
static void deliver(wt_scheduler *s, wt__action action)
{
    wt__task *t = &s->tasks[action.slot];
    const wt_task task = {t->serial, (uint32_t)action.slot, s->salt};
    wt__partition *p = wt__partition_of(s, t);
    const wt_scheduler_partition_config *partition = &p->config; // stays while n_actions holds it, as the slot's does
    const wt_executor executor = partition->executor;
    const wt_work work = t->config.work;
    const wt_task_config *config = &t->config;
    const wt_task_state state = t->info.state;
    const wt_status ended = t->info.status;
    const bool running = state == WT_TASK_RUNNING, asked = t->yield_wanted;
    const bool hangs = action.kind == WT__HANG && running && t->info.hung;
    wt_hang hang;
    wt_status failed = WT_OK;
    if (hangs) hang = hang_of(s, t, task);
    if (action.kind == WT__START) t->handed = true;
    if (action.kind == WT__HANG) t->hang_open = false;
    pthread_mutex_unlock(&s->mutex);
    if (action.kind == WT__DONE) config->done(config->done_user, task, state, ended);
    else if (running && action.kind == WT__START) failed = executor.start(executor.user, task, &work);
    else if (running && action.kind == WT__YIELD && asked) executor.yield(executor.user, task);
    else if (running && action.kind == WT__CANCEL) executor.cancel(executor.user, task);
    else if (hangs) tell_hang(partition, &hang);
    pthread_mutex_lock(&s->mutex);
    if (running && action.kind == WT__START && !failed) wt__note_start(s, t);
    t->n_actions--, p->n_actions--;
    if (s->n_waiters && (!t->n_actions || !p->n_actions)) pthread_cond_broadcast(&s->ended);
    if (failed && t->info.state == WT_TASK_RUNNING && t->handed) wt__run_ended(s, t, failed, 0);
}

void wt__leave(wt_scheduler *s)
{
    if (!s->delivering) { // else whoever delivers, perhaps further up this stack, goes on with ours
        s->delivering = true;
        s->deliverer = pthread_self();
        while (s->n_actions) {
            wt__action action = s->actions[s->actions_first];
            s->actions_first = (s->actions_first + 1) % (WT__N_ACTIONS * s->n_slots);
            s->n_actions--;
            deliver(s, action);
        }
        s->delivering = false;
    }
    pthread_mutex_unlock(&s->mutex);
}

void wt__await_callbacks(wt_scheduler *s, wt__partition *p)
{
    s->n_waiters++;
    while (p->n_actions) pthread_cond_wait(&s->ended, &s->mutex);
    s->n_waiters--;
}

int wt__scheduler_n_slots(const wt_scheduler *s) { return s->n_slots; }

bool wt__scheduler_owns(const wt_scheduler *s, wt_task task)
{
    return task.serial && task.salt == s->salt && task.slot < (uint32_t)s->n_slots;
}

wt__task *wt__find(wt_scheduler *s, wt_task task)
{
    if (!wt__scheduler_owns(s, task) || task.serial > s->last_serial) {
        (void)wt_fail(WT_ERR_BAD_ARG, "scheduler: not a task of this scheduler");
        return NULL;
    }
    wt__task *t = &s->tasks[task.slot];
    if (t->serial == task.serial) return t;
    (void)wt_fail(WT_ERR_BAD_ARG, "scheduler: task %llu has ended and left the history of %d",
                  (unsigned long long)task.serial, s->config.history);
    return NULL;
}

wt__partition *wt__find_partition(wt_scheduler *s, int partition)
{
    if (partition >= 0 && partition < s->n_partitions && s->partitions[partition].used)
        return &s->partitions[partition];
    (void)wt_fail(WT_ERR_BAD_ARG, "scheduler: no partition %d", partition);
    return NULL;
}

// ---- create and destroy

static void *timer_main(void *user)
{
    wt_scheduler *s = user;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopping) {
        int64_t next_ns = s->next_ns;
        struct timespec until = {next_ns / 1000000000, next_ns % 1000000000};
        if (next_ns == INT64_MAX) pthread_cond_wait(&s->timer, &s->mutex);
        else if (next_ns > wt_clock_now_ns(NULL)) pthread_cond_timedwait(&s->timer, &s->mutex, &until);
        pthread_mutex_unlock(&s->mutex);
        wt__enter(s);
        wt__leave(s);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static wt_status check_config(const wt_scheduler_config *config)
{
    const struct {
        const char *name;
        int value, most;
    } fields[] = {
        {"max_tasks", config->max_tasks, 1 << 20},
        {"max_dependencies", config->max_dependencies, 1 << 24},
        {"history", config->history, 1 << 20},
        {"max_partitions", config->max_partitions, 1024},
    };
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        if (fields[k].value < 0 || fields[k].value > fields[k].most)
            return wt_fail(WT_ERR_BAD_ARG, "scheduler: %s %d, want 0..%d", fields[k].name, fields[k].value,
                           fields[k].most);
    if (config->timer_thread && config->clock && config->clock->now_ns)
        return wt_fail(WT_ERR_BAD_ARG, "scheduler: a timer thread needs the machine's clock");
    return WT_OK;
}

static bool take_memory(wt_scheduler *s)
{
    size_t slots = (size_t)s->n_slots, partitions = (size_t)s->config.max_partitions;
    s->tasks = calloc(slots, sizeof *s->tasks);
    s->nodes = aligned_alloc(_Alignof(wt__node), slots * sizeof *s->nodes);
    s->free_slots = calloc(slots, sizeof *s->free_slots);
    s->history = calloc(slots, sizeof *s->history);
    s->releases = calloc(slots, sizeof *s->releases);
    s->scratch = calloc(2 * slots, sizeof *s->scratch);
    s->actions = calloc(WT__N_ACTIONS * slots, sizeof *s->actions);
    s->edges = calloc((size_t)s->config.max_dependencies, sizeof *s->edges);
    s->partitions = calloc(partitions, sizeof *s->partitions);
    if (!s->tasks || !s->nodes || !s->free_slots || !s->history || !s->releases || !s->scratch || !s->actions ||
        !s->edges || !s->partitions)
        return false;
    for (int k = 0; k < s->n_slots; k++) s->free_slots[k] = s->n_slots - 1 - k;
    s->n_free = s->n_slots;
    for (int k = 0; k < s->config.max_dependencies; k++) s->edges[k].next = k + 1;
    s->edges[s->config.max_dependencies - 1].next = WT__NONE;
    return true;
}

wt_status wt_scheduler_create(const wt_scheduler_config *config, wt_scheduler **scheduler)
{
    *scheduler = NULL;
    const wt_scheduler_config defaults = {0};
    if (!config) config = &defaults;
    wt_status status = check_config(config);
    if (status) return status;
    wt_scheduler *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "scheduler: handle");
    s->config = *config;
    if (!s->config.max_tasks) s->config.max_tasks = 16384;
    if (!s->config.max_dependencies) s->config.max_dependencies = 4 * s->config.max_tasks;
    if (!s->config.history) s->config.history = 1024;
    if (!s->config.max_partitions) s->config.max_partitions = 16;
    s->n_slots = s->config.max_tasks + s->config.history;
    s->salt = (uint32_t)(((uintptr_t)s >> 4) * 2654435761u) ^ (uint32_t)wt_clock_now_ns(NULL);
    s->next_ns = INT64_MAX;
    s->now_ns = INT64_MIN;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->ended, &monotonic);
    pthread_cond_init(&s->timer, &monotonic);
    pthread_condattr_destroy(&monotonic);
    status = take_memory(s) ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "scheduler: %d tasks", s->n_slots);
    if (status) goto fail;
    if (s->config.timer_thread) {
        if (pthread_create(&s->timer_thread, NULL, timer_main, s)) {
            status = wt_fail(WT_ERR_NO_MEMORY, "scheduler: cannot start the timer thread");
            goto fail;
        }
        pthread_mutex_lock(&s->mutex);
        s->timer_started = true;
        pthread_mutex_unlock(&s->mutex);
    }
    *scheduler = s;
    return WT_OK;

fail:
    wt_scheduler_destroy(s);
    return status;
}

void wt_scheduler_destroy(wt_scheduler *s)
{
    if (!s) return;
    if (s->timer_started) {
        pthread_mutex_lock(&s->mutex);
        s->stopping = true;
        pthread_cond_signal(&s->timer);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(s->timer_thread, NULL);
    }
    for (int k = 0; k < s->n_partitions; k++) wt__partition_free(&s->partitions[k]);
    free(s->tasks), free(s->nodes), free(s->free_slots), free(s->history), free(s->releases);
    free(s->scratch), free(s->actions), free(s->edges), free(s->partitions);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->ended);
    pthread_cond_destroy(&s->timer);
    free(s);
}

// ---- tasks

static wt_status check_interval(const char *name, int64_t value_ns, int64_t most_ns)
{
    if (value_ns >= 0 && value_ns <= most_ns) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "task: %s %lld, want 0..%lld", name, (long long)value_ns, (long long)most_ns);
}

static wt_status check_task(const wt_task_config *c)
{
    if ((unsigned)c->tier >= WT_N_TIERS) return wt_fail(WT_ERR_BAD_ARG, "task: tier %d is unknown", (int)c->tier);
    if (!(c->bandwidth_share >= 0 && c->bandwidth_share <= 1))
        return wt_fail(WT_ERR_BAD_ARG, "task: bandwidth share %g, want 0..1", c->bandwidth_share);
    if (c->memory_bytes > SIZE_MAX / 2) return wt_fail(WT_ERR_BAD_ARG, "task: %zu bytes of memory", c->memory_bytes);
    if (c->kind < 0 || c->kind >= WT_SCHEDULER_MAX_KINDS)
        return wt_fail(WT_ERR_BAD_ARG, "task: kind %d, want 0..%d", c->kind, WT_SCHEDULER_MAX_KINDS - 1);
    if (c->flow < 0 || c->flow >= WT_SCHEDULER_MAX_FLOWS)
        return wt_fail(WT_ERR_BAD_ARG, "task: flow %d, want 0..%d", c->flow, WT_SCHEDULER_MAX_FLOWS - 1);
    if (c->weight != 0 && !(c->weight >= 1e-3 && c->weight <= 1e6))
        return wt_fail(WT_ERR_BAD_ARG, "task: weight %g, want 0 or 0.001..1e6", c->weight);
    if (c->n_after < 0 || (c->n_after > 0 && !c->after))
        return wt_fail(WT_ERR_BAD_ARG, "task: %d dependencies at %s", c->n_after, c->after ? "an address" : "NULL");
    if (!c->period_ns && (c->n_jobs || c->start_ns || c->skip_missed))
        return wt_fail(WT_ERR_BAD_ARG, "task: n_jobs, start_ns and skip_missed want a period");
    wt_status status = check_interval("cost_ns", c->cost_ns, WT__MAX_COST_NS);
    if (!status) status = check_interval("period_ns", c->period_ns, WT__MAX_INTERVAL_NS);
    if (!status) status = check_interval("deadline_ns", c->deadline_ns, WT__MAX_INTERVAL_NS);
    if (!status) status = check_interval("timeout_ns", c->timeout_ns, WT__MAX_INTERVAL_NS);
    if (!status) status = check_interval("start_ns", c->start_ns, WT__MAX_TIME_NS);
    return status ? status : check_interval("n_jobs", c->n_jobs, INT64_MAX);
}

static wt__demand demand_of(const wt__partition *p, const wt_task_config *c)
{
    return (wt__demand){
        .tier = c->tier,
        .memory_bytes = c->memory_bytes,
        .bandwidth = p->bandwidth_limit && c->tier != WT_TIER_BEST_EFFORT
                         ? (int64_t)llround(c->bandwidth_share * WT__SHARE_ONE) : 0,
        .cost_ns = c->cost_ns ? c->cost_ns : c->kind ? p->kinds[c->kind].worst_ns : 0,
        .deadline_ns = c->deadline_ns ? c->deadline_ns : c->period_ns,
        .period_ns = c->period_ns,
    };
}

// The slot is the next free one, not yet taken: evaluate and submit prepare the same way.
static wt__task *prepare(wt_scheduler *s, wt__partition *p, const wt_task_config *config)
{
    int32_t slot = s->free_slots[s->n_free - 1];
    wt__task *t = &s->tasks[slot];
    *t = (wt__task){.config = *config, .demand = demand_of(p, config), .first_edge = WT__NONE, .due_ns = INT64_MAX};
    t->config.name = NULL, t->config.after = NULL; // not ours to keep
    if (t->config.weight == 0) t->config.weight = 1;
    strncpy(t->info.name, config->name ? config->name : "", sizeof t->info.name - 1);
    t->info.tier = config->tier;
    t->info.partition = config->partition;
    t->info.submitted_ns = s->now_ns;
    t->held = config->held;
    return t;
}

// Everything that can be said before anything is changed: WT_OK with the reason of a rejection, or a failure.
static wt_status weigh(wt_scheduler *s, const wt_task_config *config, wt__task **task, bool *waits, wt_admission *a)
{
    int n_open;
    *a = (wt_admission){WT_REJECTED, WT_REASON_NONE, -1};
    if (!s->n_free) wt__forget_ended(s); // those that could not be when they ended; before handles are looked up
    wt_status status = check_task(config);
    if (status) return status;
    wt__partition *p = wt__find_partition(s, config->partition);
    if (!p) return WT_ERR_BAD_ARG;
    status = wt__check_dependencies(s, config, &n_open, &a->reason);
    if (status) return status;
    if (s->n_live == s->config.max_tasks || s->n_free == 0) a->reason = WT_REASON_FULL;
    if (a->reason) return WT_OK;
    wt__task *t = *task = prepare(s, p, config);
    t->serial = s->last_serial + 1;
    *waits = n_open || config->held;
    if (*waits) {
        a->reason = wt__admit_never(p, &t->demand);
        if (!a->reason) *a = (wt_admission){WT_QUEUED, WT_REASON_DEPENDENCY, -1};
    } else {
        a->outcome = wt__decide(s, t, &a->reason);
    }
    t->serial = 0;
    return WT_OK;
}

// Where a task that was weighed would stand.
static void find_position(const wt_scheduler *s, const wt__task *t, bool waits, wt_admission *a)
{
    if (waits || a->outcome == WT_REJECTED) return;
    const wt__partition *p = &s->partitions[t->config.partition];
    int32_t root = a->outcome == WT_ADMITTED ? p->ready : p->queue;
    a->position = wt__tree_before(s->nodes, root, &s->nodes[wt__slot_of(s, t)]).count;
}

wt_status wt_scheduler_evaluate(wt_scheduler *s, const wt_task_config *config, wt_admission *admission)
{
    wt__task *t = NULL;
    bool waits = false;
    wt__enter(s);
    wt_status status = weigh(s, config, &t, &waits, admission);
    if (!status) find_position(s, t, waits, admission);
    wt__leave(s);
    return status;
}

static wt_status submit(wt_scheduler *s, const wt_task_config *config, wt_task *task, wt_admission *asked)
{
    wt__task *t = NULL;
    bool waits = false;
    wt_admission unasked, *a = asked ? asked : &unasked;
    wt_status status = weigh(s, config, &t, &waits, a);
    if (status) return status;
    if (asked) find_position(s, t, waits, a);
    wt__partition *p = &s->partitions[config->partition];
    p->stats.n_submitted++;
    if (a->outcome == WT_REJECTED) {
        p->stats.n_rejected++;
        const wt__task none = {.serial = ++s->last_serial, .config = *config,
                               .info = {.state = WT_TASK_PENDING, .status = WT_ERR_REJECTED}};
        wt__trace(s, &none, WT_TASK_PENDING, a->reason);
        return wt_fail(WT_ERR_REJECTED, "task %s: rejected: %s", config->name ? config->name : "",
                       wt_reason_text(a->reason));
    }
    t->serial = ++s->last_serial;
    s->n_free--, s->n_live++;
    p->stats.n_pending++;
    *task = (wt_task){t->serial, (uint32_t)wt__slot_of(s, t), s->salt};
    for (int k = 0; k < config->n_after; k++) {
        wt__task *before = wt__find(s, config->after[k]);
        if (before->info.state < WT_TASK_COMPLETED) wt__add_edge(s, before, t);
    }
    t->info.waits_for = waits ? WT_REASON_DEPENDENCY : WT_REASON_NONE;
    wt__trace(s, t, WT_TASK_PENDING, WT_REASON_NONE);
    if (!waits) wt__carry_out(s, t, a->outcome, a->reason);
    wt__dispatch(s, p);
    wt__predict_cheaply(s, t);
    return WT_OK;
}

wt_status wt_scheduler_submit(wt_scheduler *s, const wt_task_config *config, wt_task *task, wt_admission *admission)
{
    *task = (wt_task){0};
    wt__enter(s);
    wt_status status = submit(s, config, task, admission);
    wt__leave(s);
    return status;
}

wt_status wt_scheduler_cancel(wt_scheduler *s, wt_task task)
{
    wt__enter(s);
    wt__task *t = wt__find(s, task);
    wt_status status = t ? WT_OK : WT_ERR_BAD_ARG;
    if (t && t->info.state >= WT_TASK_COMPLETED) {
        status = wt_fail(WT_ERR_STATE, "task %llu: cannot be cancelled, it is %s", (unsigned long long)t->serial,
                         wt_task_state_text(t->info.state));
    } else if (t && t->info.state != WT_TASK_RUNNING) {
        wt__end(s, t, WT_TASK_CANCELLED, WT_ERR_CANCELLED);
    } else if (t && !t->cancel_wanted) {
        t->cancel_wanted = true;
        if (wt__partition_of(s, t)->config.executor.cancel && !t->timed_out) wt__push_action(s, t, WT__CANCEL);
    }
    wt__leave(s);
    return status;
}

static wt_status report(wt_scheduler *s, wt_task task, wt_status run_status, int64_t device_ns, bool at_end)
{
    wt__task *t = wt__find(s, task);
    if (!t) return WT_ERR_BAD_ARG;
    if (device_ns < 0 || device_ns > WT__MAX_INTERVAL_NS)
        return wt_fail(WT_ERR_BAD_ARG, "task %llu: device time %lld ns", (unsigned long long)t->serial,
                       (long long)device_ns);
    if (t->info.state != WT_TASK_RUNNING || !t->handed)
        return wt_fail(WT_ERR_STATE, "task %llu: is %s, not started", (unsigned long long)t->serial,
                       wt_task_state_text(t->info.state));
    if (at_end) wt__run_ended(s, t, run_status, device_ns);
    else wt__run_yielded(s, t, device_ns);
    return WT_OK;
}

wt_status wt_scheduler_finish(wt_scheduler *s, wt_task task, wt_status run_status, int64_t device_ns)
{
    wt__enter(s);
    wt_status status = report(s, task, run_status, device_ns, true);
    wt__leave(s);
    return status;
}

wt_status wt_scheduler_yield(wt_scheduler *s, wt_task task, int64_t device_ns)
{
    wt__enter(s);
    wt_status status = report(s, task, WT_OK, device_ns, false);
    wt__leave(s);
    return status;
}

wt_status wt_scheduler_poll(wt_scheduler *s, int64_t *next_ns)
{
    wt__enter(s);
    int64_t next = s->next_ns;
    wt__leave(s);
    if (next_ns) *next_ns = next;
    return WT_OK;
}

// Sleep, unlocked, until it has ended and all callbacks about it are over; false: not within the limit.
static bool await_end(wt_scheduler *s, const wt__task *t, int64_t timeout_ns)
{
    int64_t most_ns = timeout_ns < WT__MAX_INTERVAL_NS ? timeout_ns : WT__MAX_INTERVAL_NS;
    int64_t end_ns = wt_clock_now_ns(NULL) + most_ns;
    struct timespec until = {end_ns / 1000000000, end_ns % 1000000000};
    int waited = 0;
    s->n_waiters++;
    while ((t->info.state < WT_TASK_COMPLETED || t->n_actions) && waited != ETIMEDOUT)
        waited = timeout_ns < 0 ? pthread_cond_wait(&s->ended, &s->mutex)
                                : pthread_cond_timedwait(&s->ended, &s->mutex, &until);
    s->n_waiters--;
    return t->info.state >= WT_TASK_COMPLETED && !t->n_actions;
}

wt_status wt_scheduler_wait(wt_scheduler *s, wt_task task, int64_t timeout_ns)
{
    wt__enter(s);
    bool inside = s->delivering && pthread_equal(s->deliverer, pthread_self());
    wt__task *t = wt__find(s, task);
    if (t) t->n_waits++; // keeps its slot
    wt__leave(s);        // what entering made due must not wait for us
    if (!t) return WT_ERR_BAD_ARG;
    pthread_mutex_lock(&s->mutex);
    const bool over = !inside && await_end(s, t, timeout_ns);
    const wt_status status = t->info.status;
    t->n_waits--;
    pthread_mutex_unlock(&s->mutex);
    const unsigned long long serial = task.serial;
    if (inside) return wt_fail(WT_ERR_STATE, "task %llu: cannot be waited for inside a callback", serial);
    if (!over) return wt_fail(WT_ERR_TIMEOUT, "task %llu: not over within %lld ns", serial, (long long)timeout_ns);
    return status ? wt_fail(status, "task %llu: ended: %s", serial, wt_status_text(status)) : WT_OK;
}
