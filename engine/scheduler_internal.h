/// What the parts of the scheduler share. Everything here is called with the scheduler's mutex held.
#ifndef WT_SCHEDULER_INTERNAL_H
#define WT_SCHEDULER_INTERNAL_H

#include <pthread.h>
#include <warptone/histogram.h>
#include <warptone/pacing.h>
#include <warptone/scheduler.h>

enum { WT__NONE = -1, WT__SHARE_ONE = 1 << 30 };

#define WT__TIME_ONE        ((int64_t)1 << 40) ///< utilisation 1 in fixed point, so that sums give back what they took
#define WT__MAX_COST_NS     ((int64_t)1 << 42) ///< 73 minutes: costs of 2^20 tasks still sum in 63 bits
#define WT__MAX_INTERVAL_NS ((int64_t)1 << 52) ///< 52 days
#define WT__MAX_TIME_NS     ((int64_t)1 << 62)

// ---- ordered sets of slots: a treap whose nodes know the size and cost of what is below them (scheduler_tree.c)

/// Order: rank (most urgent tier 0), key, serial. One node a slot, in at most one tree at a time; a cache line each.
typedef struct wt__node {
    _Alignas(64) int64_t key;
    uint64_t serial;
    int64_t cost_ns, sum_ns; ///< of this node, of the subtree; an unknown cost adds 0 and is counted
    int32_t left, right;
    int32_t count, n_unknown; ///< of the subtree
    uint32_t heap;
    int32_t rank;
} wt__node;

typedef struct wt__before {
    int64_t count, sum_ns, n_unknown;
} wt__before;

void wt__tree_insert(wt__node *nodes, int32_t *root, int32_t slot);
void wt__tree_remove(wt__node *nodes, int32_t *root, int32_t slot);
int32_t wt__tree_first(const wt__node *nodes, int32_t root);                      ///< WT__NONE when empty
int32_t wt__tree_at(const wt__node *nodes, int32_t root, int k);                  ///< the k-th in order, or WT__NONE
wt__before wt__tree_before(const wt__node *nodes, int32_t root, const wt__node *node); ///< what sorts before `node`
bool wt__node_less(const wt__node *a, const wt__node *b);
/// Write the slots of a tree in order; returns how many.
int wt__tree_list(const wt__node *nodes, int32_t root, int32_t *slots);

// ---- records

typedef enum wt__place { WT__NOWHERE, WT__IN_QUEUE, WT__IN_READY, WT__IN_RELEASES, WT__ON_LANE } wt__place;

/// What a task wants reserved.
typedef struct wt__demand {
    wt_tier tier;
    size_t memory_bytes;
    int64_t bandwidth; ///< of WT__SHARE_ONE; 0 for best effort or where it is not managed
    int64_t cost_ns, deadline_ns, period_ns; ///< 0 = unknown, none, once
} wt__demand;

typedef struct wt__task {
    uint64_t serial; ///< 0 = free
    wt_task_config config;
    wt__demand demand;
    wt_task_info info; ///< position is filled in when asked for
    wt__place place;
    int32_t first_edge, n_blockers; ///< who waits for this; how many this waits for
    int32_t releases_at;            ///< index in the heap of releases
    int32_t n_actions, n_waits;     ///< callbacks decided but not over; calls of wait
    int64_t release_ns, due_ns;     ///< of the present run; due INT64_MAX = no deadline
    int64_t ready_ns, lane_ns, run_ns; ///< entered the ready line; went on the lane last; the run's first start
    int64_t used_ns;                ///< device time of the present run
    int64_t fair_ns;                ///< cost charged to its flow beforehand
    int64_t utilisation;            ///< reserved, of WT__TIME_ONE
    uint64_t job;                   ///< number of the present period
    bool reserved, held, began, yield_wanted, cancel_wanted, timed_out, failing;
    bool handed; ///< the executor was told of the present start
    bool hang_open; ///< a report of it is to be delivered
} wt__task;

typedef struct wt__edge {
    uint64_t serial; ///< of the waiting task, to tell a slot that was used again
    int32_t slot, next;
} wt__edge;

/// Time reserved by a guaranteed task that runs once: its density counts until its deadline, or until the partition
/// is idle, even when it ends before (a job that ended early has only moved the others' work to later).
typedef struct wt__dated {
    int64_t due_ns, density;
} wt__dated;

typedef struct wt__kind {
    int64_t worst_ns, sum_ns, n_runs;
} wt__kind;

typedef struct wt__partition {
    bool used, touched;
    bool unblocked; ///< one of its hung runs has just given its lane back
    int n_actions; ///< callbacks decided but not over
    wt_scheduler_partition_config config; ///< defaults resolved
    int32_t ready, queue;                 ///< roots
    int32_t running[WT_SCHEDULER_MAX_LANES];
    int n_yields_wanted, n_watched; ///< asked to yield; running with a timeout or hang_ns
    int64_t bandwidth_limit, bandwidth_used, time_limit;
    int64_t time_guaranteed, time_burstable; ///< utilisation of periodic tasks, of WT__TIME_ONE
    wt__dated *dated;                     ///< [max_tasks] heap by due_ns
    int n_dated;
    int64_t dated_density, dated_largest;
    int32_t *periodic;                    ///< [max_tasks] guaranteed periodic tasks
    int n_periodic;
    bool room_known;                      ///< dated_room holds for the present periodic tasks
    int64_t dated_room;
    wt_pacer pacer;
    int64_t paced_until_ns;
    uint64_t throttled_serial;
    int64_t virtual_ns, flow_ns[WT_SCHEDULER_MAX_FLOWS];
    wt__kind kinds[WT_SCHEDULER_MAX_KINDS];
    wt_histogram *prediction_errors;
    double prediction_bias_sum_ns;
    wt_scheduler_partition_stats stats;
} wt__partition;

typedef enum wt__action_kind { WT__START, WT__YIELD, WT__CANCEL, WT__HANG, WT__DONE, WT__N_ACTIONS } wt__action_kind;
typedef struct wt__action {
    wt__action_kind kind;
    int32_t slot;
    uint64_t serial;
} wt__action;

struct wt_scheduler {
    wt_scheduler_config config; ///< defaults resolved
    pthread_mutex_t mutex;
    pthread_cond_t ended, timer;
    pthread_t timer_thread;
    bool timer_started, stopping, delivering;
    pthread_t deliverer; ///< when delivering
    int n_waiters;
    uint32_t salt;
    uint64_t last_serial;
    int64_t now_ns, next_ns; ///< of this call; when something becomes due by itself
    int n_slots, n_free, n_live, n_partitions;
    wt__task *tasks;     ///< [n_slots]
    wt__node *nodes;     ///< [n_slots]
    int32_t *free_slots; ///< [n_slots] stack
    int32_t *history;    ///< [n_slots] ring of ended tasks
    int history_first, n_history;
    int32_t *releases; ///< [n_slots] heap by release time
    int n_releases;
    wt__edge *edges; ///< [max_dependencies]
    int32_t free_edge;
    int32_t *scratch;      ///< [2 * n_slots] of searches and predictions
    wt__action *actions;   ///< [WT__N_ACTIONS * n_slots] ring
    int actions_first, n_actions;
    wt__partition *partitions; ///< [max_partitions]
};

static inline wt__partition *wt__partition_of(wt_scheduler *s, const wt__task *t)
{
    return &s->partitions[t->config.partition];
}

static inline int32_t wt__slot_of(const wt_scheduler *s, const wt__task *t) { return (int32_t)(t - s->tasks); }

// ---- scheduler_admit.c

/// The decision for a task that is not pending; `node` is its place in the queue's order.
wt_outcome wt__admit_decide(wt_scheduler *s, wt__partition *p, const wt__demand *demand, const wt__node *node,
                            wt_reason *reason);
/// Why the partition could never hold it, or WT_REASON_NONE.
wt_reason wt__admit_never(const wt__partition *p, const wt__demand *demand);
void wt__expire_dated(const wt_scheduler *s, wt__partition *p);
void wt__reserve(wt_scheduler *s, wt__task *t);
void wt__unreserve(wt_scheduler *s, wt__task *t);
void wt__raise_cost(wt_scheduler *s, wt__task *t, int64_t cost_ns);

// ---- scheduler_state.c

void wt__trace(wt_scheduler *s, const wt__task *t, wt_task_state from, wt_reason reason);
void wt__set_state(wt_scheduler *s, wt__task *t, wt_task_state to, wt_reason reason);
/// What would become of it if its dependencies were met now; its place in the orders is set.
wt_outcome wt__decide(wt_scheduler *s, wt__task *t, wt_reason *reason);
void wt__carry_out(wt_scheduler *s, wt__task *t, wt_outcome outcome, wt_reason reason); ///< Not a rejection.
/// Its dependencies are met and it is not held: admit or queue it. A rejection is left to the caller.
wt_outcome wt__unpend(wt_scheduler *s, wt__task *t);
void wt__end(wt_scheduler *s, wt__task *t, wt_task_state state, wt_status status);
/// Ended tasks beyond the history give their slots back, oldest first, unless a callback about one is still to come or
/// someone waits for it.
void wt__forget_ended(wt_scheduler *s);
void wt__set_node(wt_scheduler *s, wt__task *t);
void wt__admit_queued(wt_scheduler *s, wt__partition *p); ///< What fits now, from the queue's head on.

// ---- scheduler_run.c

void wt__make_ready(wt_scheduler *s, wt__task *t);
/// Of one run: the mean measured of its kind, else what was stated; 0 = unknown.
int64_t wt__expected_ns(const wt__partition *p, const wt__task *t);
void wt__wait_release(wt_scheduler *s, wt__task *t);
void wt__forget_release(wt_scheduler *s, wt__task *t);
void wt__give_back_share(wt__partition *p, const wt__task *t); ///< A ready task leaves the line for good.
void wt__dispatch(wt_scheduler *s, wt__partition *p);
void wt__advance(wt_scheduler *s);
void wt__run_ended(wt_scheduler *s, wt__task *t, wt_status status, int64_t device_ns);
void wt__run_yielded(wt_scheduler *s, wt__task *t, int64_t device_ns);
void wt__push_action(wt_scheduler *s, wt__task *t, wt__action_kind kind);
void wt__note_event(wt_scheduler *s, int64_t time_ns);

// ---- scheduler_query.c

void wt__partition_free(wt__partition *p);
/// Foretell the start of a task that has just joined a line, where that is cheap and nothing is paced.
void wt__predict_cheaply(wt_scheduler *s, wt__task *t);
void wt__note_start(wt_scheduler *s, wt__task *t); ///< The executor has taken its first start.

// ---- scheduler_depend.c

/// Count what a new task would wait for; *reason is set when one of `after` has failed or the edges do not suffice.
wt_status wt__check_dependencies(wt_scheduler *s, const wt_task_config *c, int *n_open, wt_reason *reason);
void wt__add_edge(wt_scheduler *s, wt__task *before, wt__task *t);

// ---- scheduler.c

void wt__enter(wt_scheduler *s); ///< Lock, read the clock, do what is due.
void wt__leave(wt_scheduler *s); ///< Deliver callbacks and unlock.
/// Sleep, unlocked, until no callback of the partition is under way.
void wt__await_callbacks(wt_scheduler *s, wt__partition *p);
/// NULL with a message when the handle is not of a task this scheduler still knows.
wt__task *wt__find(wt_scheduler *s, wt_task task);
wt__partition *wt__find_partition(wt_scheduler *s, int partition);

#endif
