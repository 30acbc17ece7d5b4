// What is used of a partition's limits: memory, pending kernels and transfers as counters that never pass their limit,
// copies as a token bucket of link time.
//
// Counters are relaxed atomics that are raised by compare-and-exchange, so a limit holds whoever races; they order
// nothing else. What one member could spare (launches that ended unnoticed, cached memory) another gets by asking: the
// asker holds its own lock, then the partition's, and only tries the others'.
#include "partition_internal.h"

#include <warptone/clock.h>

void wt__partition_uses_init(wt_partition *p) { pthread_mutex_init(&p->mutex, NULL); }

void wt__partition_uses_term(wt_partition *p) { pthread_mutex_destroy(&p->mutex); }

/// A pacer goes on with what it owes; one without a share has none to keep to.
static void pace(wt_pacer *pacer, double share)
{
    const int64_t now_ns = wt_clock_now_ns(NULL);
    wt_status status = WT_OK;
    if (!(share > 0)) *pacer = (wt_pacer){0};
    else if (pacer->share > 0) status = wt_pacer_set_share(pacer, share, now_ns);
    else status = wt_pacer_init(pacer, &(wt_pacer_config){.share = share}, now_ns);
    (void)status; // the share was checked with the layout
}

void wt__partition_uses_limit(wt_partition *p)
{
    const wt_partition_config *c = &p->config;
    atomic_store(&p->limits[WT__USE_MEMORY], c->memory_quota_bytes ? c->memory_quota_bytes : SIZE_MAX);
    atomic_store(&p->limits[WT__USE_KERNELS], (size_t)c->max_pending_kernels);
    atomic_store(&p->limits[WT__USE_TRANSFERS], (size_t)c->max_pending_transfers);
    pthread_mutex_lock(&p->mutex);
    for (int k = 0; k < WT__N_LINKS; k++) pace(&p->pacers[k], c->bandwidth_share);
    pthread_mutex_unlock(&p->mutex);
}

wt_status wt__partition_uses_none(wt_partition *p)
{
    pthread_mutex_lock(&p->mutex);
    int n_members = 0;
    for (const wt__member *m = p->members; m; m = m->next) n_members++;
    pthread_mutex_unlock(&p->mutex);
    size_t n_transfers = atomic_load(&p->used[WT__USE_TRANSFERS]);
    if (!n_members && !n_transfers) return WT_OK;
    return wt_fail(
        WT_ERR_STATE,
        "layout: destroy: %d pools and dispatches and %zu transfers of partition %s exist; destroy them first",
        n_members, n_transfers, p->name);
}

wt_status wt__partition_uses_fit(const wt_partition *p, const wt_partition_config *config)
{
    size_t used = atomic_load(&p->used[WT__USE_MEMORY]);
    if (!config->memory_quota_bytes || used <= config->memory_quota_bytes) return WT_OK;
    return wt_fail(WT_ERR_QUOTA,
                   "layout: resize: pools of partition %s hold %zu bytes, want a quota of as much, not %zu", p->name,
                   used, config->memory_quota_bytes);
}

// ---- counters

bool wt__partition_take(wt_partition *p, wt__use use, size_t amount)
{
    if (!p) return true;
    size_t used = atomic_load_explicit(&p->used[use], memory_order_relaxed);
    do {
        size_t limit = atomic_load_explicit(&p->limits[use], memory_order_relaxed);
        if (used > limit || amount > limit - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(&p->used[use], &used, used + amount, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void wt__partition_give(wt_partition *p, wt__use use, size_t amount)
{
    if (p) atomic_fetch_sub_explicit(&p->used[use], amount, memory_order_relaxed);
}

size_t wt__partition_limit(wt_partition *p, wt__use use)
{
    return p ? atomic_load_explicit(&p->limits[use], memory_order_relaxed) : SIZE_MAX;
}

size_t wt__partition_left(wt_partition *p, wt__use use)
{
    size_t limit = wt__partition_limit(p, use);
    size_t used = p ? atomic_load_explicit(&p->used[use], memory_order_relaxed) : 0;
    return limit == SIZE_MAX ? limit : used < limit ? limit - used : 0;
}

const char *wt__partition_name(const wt_partition *p) { return p->name; }

// ---- members

void wt__partition_join(wt_partition *p, wt__member *member)
{
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    member->next = p->members;
    p->members = member;
    pthread_mutex_unlock(&p->mutex);
}

void wt__partition_leave(wt_partition *p, wt__member *member)
{
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    wt__member **link = &p->members;
    while (*link && *link != member) link = &(*link)->next;
    if (*link) *link = member->next;
    pthread_mutex_unlock(&p->mutex);
}

void wt__partition_ask(wt_partition *p, const wt__member *asker, wt__use use)
{
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    for (wt__member *m = p->members; m; m = m->next)
        if (m != asker) m->yield(m, use);
    pthread_mutex_unlock(&p->mutex);
}

// ---- copies

int64_t wt__partition_copy_at(wt_partition *p, int link, int64_t now_ns)
{
    if (!p) return now_ns;
    pthread_mutex_lock(&p->mutex);
    int64_t at_ns = p->pacers[link].share > 0 ? wt_pacer_ready_at(&p->pacers[link], now_ns) : now_ns;
    pthread_mutex_unlock(&p->mutex);
    return at_ns;
}

void wt__partition_copied(wt_partition *p, int link, int64_t now_ns, size_t bytes, double us)
{
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    if (p->pacers[link].share > 0) wt_pacer_charge(&p->pacers[link], now_ns, us);
    p->copied.n_bytes += bytes;
    p->copied.us += us;
    pthread_mutex_unlock(&p->mutex);
}

void wt__partition_throttled(wt_partition *p)
{
    pthread_mutex_lock(&p->mutex);
    p->copied.n_throttled++;
    pthread_mutex_unlock(&p->mutex);
}
