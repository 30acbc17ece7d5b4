// Admission. What is reserved and by which test is in docs/scheduler.md; in short, for guaranteed work on one lane,
// with capacity a, periodic tasks (C, D, T), density d of dated single tasks and blocking B, for all t:
//
//     sum over i of dbf(i, t) + B + d t <= a t,      dbf(i, t) = (floor((t - D) / T) + 1) C  for t >= D, else 0
//
// Baruah, Mok & Rosier, "Preemptively scheduling hard-real-time sporadic tasks on one processor", RTSS 1990.
// With D >= T and B = 0 this is sum of C / T + d <= a: Liu & Layland, JACM 20(1), 1973, theorem 7.
// It is searched from the right as in Zhang & Burns, "Schedulability analysis for real-time systems with EDF
// scheduling", IEEE Trans. Computers 58(9), 2009 (QPA).
#include "scheduler_internal.h"

#include <math.h>

enum { MAX_STEPS = 100000 }; ///< of the search; a set that needs more is refused

/// Of WT__TIME_ONE, 2 at most.
static int64_t utilisation_of(int64_t cost_ns, int64_t interval_ns)
{
    double share = fmin((double)cost_ns / (double)interval_ns, 2); // of twice a lane and more: too much for any sum
    return (int64_t)llround(ldexp(share, 40));
}

/// The guaranteed periodic tasks of a partition and one that may join them.
typedef struct periodic_set {
    const wt_scheduler *s;
    const wt__partition *p;
    const wt__demand *extra; ///< NULL = none
} periodic_set;

static int set_size(const periodic_set *set) { return set->p->n_periodic + (set->extra != NULL); }

static const wt__demand *set_member(const periodic_set *set, int i)
{
    return i < set->p->n_periodic ? &set->s->tasks[set->p->periodic[i]].demand : set->extra;
}

static int64_t demand_until(const periodic_set *set, int64_t t_ns)
{
    double sum = 0; // exact up to 2^53 ns of demand, 104 days
    for (int i = 0; i < set_size(set); i++) {
        const wt__demand *d = set_member(set, i);
        if (t_ns >= d->deadline_ns)
            sum += (double)((t_ns - d->deadline_ns) / d->period_ns + 1) * (double)d->cost_ns;
    }
    return sum < (double)WT__MAX_TIME_NS ? (int64_t)sum : WT__MAX_TIME_NS;
}

// Latest absolute deadline below t_ns, or 0.
static int64_t deadline_before(const periodic_set *set, int64_t t_ns)
{
    int64_t latest = 0;
    for (int i = 0; i < set_size(set); i++) {
        const wt__demand *d = set_member(set, i);
        if (d->deadline_ns >= t_ns) continue;
        int64_t deadline = d->deadline_ns + (t_ns - 1 - d->deadline_ns) / d->period_ns * d->period_ns;
        if (deadline > latest) latest = deadline;
    }
    return latest;
}

// QPA with capacity `beta` = a - d.
static bool demand_fits(const periodic_set *set, double beta, int64_t blocking_ns)
{
    double utilisation = 0, offset_ns = (double)blocking_ns;
    int64_t first_ns = INT64_MAX, last_ns = 0;
    for (int i = 0; i < set_size(set); i++) {
        const wt__demand *d = set_member(set, i);
        double u = (double)d->cost_ns / (double)d->period_ns;
        utilisation += u;
        if (d->deadline_ns < d->period_ns) offset_ns += (double)(d->period_ns - d->deadline_ns) * u;
        if (d->deadline_ns < first_ns) first_ns = d->deadline_ns;
        if (d->deadline_ns > last_ns) last_ns = d->deadline_ns;
    }
    if (utilisation >= beta) return false;
    double bound_ns = fmax(offset_ns / (beta - utilisation), (double)last_ns) + 1;
    int64_t t_ns = bound_ns < (double)WT__MAX_INTERVAL_NS ? (int64_t)bound_ns + 1 : WT__MAX_INTERVAL_NS;
    t_ns = deadline_before(set, t_ns);
    for (int step = 0; step < MAX_STEPS; step++) {
        int64_t needed_ns = (int64_t)ceil((double)(demand_until(set, t_ns) + blocking_ns) / beta);
        if (needed_ns > t_ns) return false;
        if (needed_ns <= first_ns || t_ns <= first_ns) return true;
        t_ns = needed_ns < t_ns ? needed_ns : deadline_before(set, t_ns);
    }
    return false;
}

// Several lanes: sum of V + d <= m a - (m - 1) max V with V = C / (min(D, T) - B). Goossens, Funk & Baruah 2003 for
// preemptive (B = 0), Baruah 2006 ("The non-preemptive scheduling of periodic tasks upon multiprocessors") for the
// form with blocking.
static bool lanes_fit(const periodic_set *set, int64_t density, int64_t largest)
{
    const wt__partition *p = set->p;
    int64_t sum = density;
    for (int i = 0; i < set_size(set); i++) {
        const wt__demand *d = set_member(set, i);
        int64_t interval_ns = (d->deadline_ns < d->period_ns ? d->deadline_ns : d->period_ns) - p->config.blocking_ns;
        if (interval_ns < d->cost_ns) return false;
        int64_t v = utilisation_of(d->cost_ns, interval_ns);
        sum += v;
        if (v > largest) largest = v;
    }
    int lanes = p->config.n_lanes;
    return largest <= p->time_limit && sum <= lanes * p->time_limit - (lanes - 1) * largest + set_size(set) + 1;
}

// Does the guaranteed work fit, with `density` of dated single tasks, the densest of them `largest`?
static bool time_fits(const periodic_set *set, int64_t density, int64_t largest)
{
    const wt__partition *p = set->p;
    if (p->config.n_lanes > 1) return lanes_fit(set, density, largest);
    int64_t sum = p->time_guaranteed + density, blocking_ns = p->config.blocking_ns;
    bool implicit = blocking_ns == 0;
    for (int i = 0; i < set_size(set) && implicit; i++) {
        const wt__demand *d = set_member(set, i);
        implicit = d->deadline_ns >= d->period_ns;
    }
    if (set->extra) sum += utilisation_of(set->extra->cost_ns, set->extra->period_ns);
    if (implicit || !set_size(set)) return sum <= p->time_limit + set_size(set) + 1; // each term is rounded
    return demand_fits(set, ldexp((double)(p->time_limit - density), -40), blocking_ns);
}

// The largest density of dated tasks beside the present periodic ones, found by halving and kept until they change.
static int64_t dated_room(const wt_scheduler *s, wt__partition *p)
{
    if (p->room_known) return p->dated_room;
    const periodic_set set = {s, p, NULL};
    int64_t low = 0, high = p->time_limit;
    if (time_fits(&set, high, 0)) low = high;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (time_fits(&set, middle, 0)) low = middle;
        else high = middle;
    }
    p->room_known = true;
    return p->dated_room = low;
}

static void drop_dated(wt__partition *p)
{
    wt__dated *heap = p->dated;
    p->dated_density -= heap[0].density;
    wt__dated last = heap[--p->n_dated];
    int at = 0;
    for (int child; (child = 2 * at + 1) < p->n_dated; at = child) {
        if (child + 1 < p->n_dated && heap[child + 1].due_ns < heap[child].due_ns) child++;
        if (last.due_ns <= heap[child].due_ns) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    if (!p->n_dated) p->dated_largest = 0;
}

static void add_dated(wt__partition *p, wt__dated dated)
{
    int at = p->n_dated++;
    for (; at > 0 && p->dated[(at - 1) / 2].due_ns > dated.due_ns; at = (at - 1) / 2)
        p->dated[at] = p->dated[(at - 1) / 2];
    p->dated[at] = dated;
    p->dated_density += dated.density;
    if (dated.density > p->dated_largest) p->dated_largest = dated.density;
}

void wt__expire_dated(const wt_scheduler *s, wt__partition *p)
{
    while (p->n_dated && p->dated[0].due_ns <= s->now_ns) drop_dated(p);
}

static bool dated_fits(wt_scheduler *s, wt__partition *p, const wt__demand *demand)
{
    int64_t interval_ns = demand->deadline_ns - p->config.blocking_ns;
    if (interval_ns < demand->cost_ns || p->n_dated == s->config.max_tasks) return false;
    int64_t density = utilisation_of(demand->cost_ns, interval_ns);
    int64_t largest = density > p->dated_largest ? density : p->dated_largest;
    if (p->config.n_lanes > 1)
        return lanes_fit(&(periodic_set){s, p, NULL}, p->dated_density + density, largest);
    return p->dated_density + density <= dated_room(s, p) + p->n_dated + 1;
}

static bool guaranteed_time_fits(wt_scheduler *s, wt__partition *p, const wt__demand *demand)
{
    if (demand->period_ns) return time_fits(&(periodic_set){s, p, demand}, p->dated_density, p->dated_largest);
    return !demand->deadline_ns || dated_fits(s, p, demand);
}

wt_reason wt__admit_never(const wt__partition *p, const wt__demand *demand)
{
    bool guaranteed = demand->tier == WT_TIER_GUARANTEED, dated = demand->deadline_ns > 0;
    if (p->config.memory_bytes && demand->memory_bytes > p->config.memory_bytes) return WT_REASON_MEMORY;
    if (demand->bandwidth > p->bandwidth_limit) return WT_REASON_BANDWIDTH;
    if (!p->config.executor.yield) {
        int64_t limit_ns = p->config.blocking_ns;
        if (limit_ns && (!demand->cost_ns || demand->cost_ns > limit_ns)) return WT_REASON_BLOCKING;
        if (!limit_ns && guaranteed && dated) return WT_REASON_BLOCKING;
    }
    bool timed = (guaranteed && dated) || (demand->tier == WT_TIER_BURSTABLE && demand->period_ns);
    if (timed && !demand->cost_ns) return WT_REASON_COST_UNKNOWN;
    int64_t lane_ns = demand->deadline_ns < demand->period_ns || !demand->period_ns ? demand->deadline_ns
                                                                                    : demand->period_ns;
    if (timed && utilisation_of(demand->cost_ns, lane_ns) > p->time_limit) return WT_REASON_TIME;
    return WT_REASON_NONE;
}

// What is missing at this moment, or WT_REASON_NONE.
static wt_reason missing(wt_scheduler *s, wt__partition *p, const wt__demand *demand)
{
    if (p->stats.n_hung == p->config.n_lanes) return WT_REASON_HUNG;
    size_t quota = p->config.memory_bytes, memory_used = p->stats.memory_bytes;
    if (quota && demand->memory_bytes > quota - (memory_used < quota ? memory_used : quota)) return WT_REASON_MEMORY;
    if (demand->tier == WT_TIER_BEST_EFFORT) return WT_REASON_NONE;
    wt__expire_dated(s, p);
    if (demand->bandwidth > p->bandwidth_limit - p->bandwidth_used) return WT_REASON_BANDWIDTH;
    if (demand->tier == WT_TIER_GUARANTEED)
        return guaranteed_time_fits(s, p, demand) ? WT_REASON_NONE : WT_REASON_TIME;
    if (!demand->period_ns) return WT_REASON_NONE;
    int64_t reserved = p->time_guaranteed + p->dated_density + p->time_burstable;
    int64_t wanted = utilisation_of(demand->cost_ns, demand->period_ns);
    return reserved + wanted > p->config.n_lanes * p->time_limit + p->n_periodic + 1 ? WT_REASON_TIME : WT_REASON_NONE;
}

wt_outcome wt__admit_decide(wt_scheduler *s, wt__partition *p, const wt__demand *demand, const wt__node *node,
                            wt_reason *reason)
{
    *reason = wt__admit_never(p, demand);
    if (*reason) return WT_REJECTED;
    *reason = missing(s, p, demand);
    if (demand->tier == WT_TIER_GUARANTEED) return *reason ? WT_REJECTED : WT_ADMITTED;
    if (*reason) return WT_QUEUED;
    int32_t first = wt__tree_first(s->nodes, p->queue);
    if (first == WT__NONE || first == (int32_t)(node - s->nodes) || wt__node_less(node, &s->nodes[first]))
        return WT_ADMITTED;
    *reason = WT_REASON_TURN;
    return WT_QUEUED;
}

void wt__reserve(wt_scheduler *s, wt__task *t)
{
    wt__partition *p = wt__partition_of(s, t);
    const wt__demand *d = &t->demand;
    p->stats.memory_bytes += d->memory_bytes;
    if (p->stats.memory_bytes > p->stats.peak_memory_bytes) p->stats.peak_memory_bytes = p->stats.memory_bytes;
    p->bandwidth_used += d->bandwidth;
    if (d->tier != WT_TIER_BEST_EFFORT && d->period_ns) t->utilisation = utilisation_of(d->cost_ns, d->period_ns);
    if (d->tier == WT_TIER_GUARANTEED && d->period_ns) {
        p->periodic[p->n_periodic++] = wt__slot_of(s, t);
        p->time_guaranteed += t->utilisation;
        p->room_known = false;
    } else if (d->tier == WT_TIER_GUARANTEED && d->deadline_ns) {
        int64_t density = utilisation_of(d->cost_ns, d->deadline_ns - p->config.blocking_ns);
        add_dated(p, (wt__dated){s->now_ns + d->deadline_ns, density});
    } else {
        p->time_burstable += t->utilisation;
    }
    t->reserved = true;
}

void wt__unreserve(wt_scheduler *s, wt__task *t)
{
    if (!t->reserved) return;
    wt__partition *p = wt__partition_of(s, t);
    const wt__demand *d = &t->demand;
    p->stats.memory_bytes -= d->memory_bytes;
    p->bandwidth_used -= d->bandwidth;
    if (d->tier == WT_TIER_GUARANTEED && d->period_ns) {
        int at = 0;
        while (p->periodic[at] != wt__slot_of(s, t)) at++;
        p->periodic[at] = p->periodic[--p->n_periodic];
        p->time_guaranteed -= t->utilisation;
        p->room_known = false;
        // The job it had may have moved others' work behind it: its share is free only after that job's deadline.
        if (t->due_ns > s->now_ns && p->n_dated < s->config.max_tasks)
            add_dated(p, (wt__dated){t->due_ns, utilisation_of(d->cost_ns, d->deadline_ns)});
    } else {
        p->time_burstable -= t->utilisation;
    }
    t->utilisation = 0;
    t->reserved = false;
}

void wt__raise_cost(wt_scheduler *s, wt__task *t, int64_t cost_ns)
{
    t->demand.cost_ns = cost_ns < WT__MAX_COST_NS ? cost_ns : WT__MAX_COST_NS;
    if (!t->utilisation) return;
    wt__partition *p = wt__partition_of(s, t);
    int64_t *sum = t->demand.tier == WT_TIER_GUARANTEED ? &p->time_guaranteed : &p->time_burstable;
    int64_t now = utilisation_of(t->demand.cost_ns, t->demand.period_ns);
    *sum += now - t->utilisation;
    t->utilisation = now;
    p->room_known = false;
}
