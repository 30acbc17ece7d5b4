// Layouts and partitions, for both backends. A layout's slices (what streams run in) are made all at once, so a resize
// makes the new ones, moves the idle streams over and drops the old ones; when anything fails, the old ones stay.
//
// Lending. A borrower has a stream on every combination of its own and its lenders' SMs (its variants), made
// beforehand, because a running engine should create nothing and because graphs keep the SMs they were captured on. A
// step is what the borrower queues between begin and end; each step waits for the one before, so steps keep their order
// although their streams differ.
//
// Locks, outer to inner: layout -> device's list of streams; layout -> partition.
#include "partition_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VARIANTS = 1 << WT_LAYOUT_MAX_LENDERS,
    DEFAULT_STREAMS = 16,
    DEFAULT_KERNELS = 1024,
    DEFAULT_TRANSFERS = 64
};

typedef struct slices {
    wt__cut *cut;
    wt__units units;
    int unassigned_sms;
    wt__slice *own[WT_LAYOUT_MAX_PARTITIONS];
    int own_sms[WT_LAYOUT_MAX_PARTITIONS];
    wt__slice *wide[MAX_VARIANTS]; ///< of the borrower; [0] is its own and not here
    int wide_sms[MAX_VARIANTS];
} slices;

struct wt_layout {
    wt__handle handle;
    wt_device *device;
    pthread_mutex_t mutex; ///< guards all but the handles' own lists
    wt_isolation isolation;
    int n_partitions;
    atomic_int generation; ///< written under the mutex, read also without
    wt_partition partitions[WT_LAYOUT_MAX_PARTITIONS];
    slices slices;
    int borrower; ///< -1 = none
    int n_lenders, lenders[WT_LAYOUT_MAX_LENDERS];
    int n_variants;
    wt_stream *variants[MAX_VARIANTS];
    wt_event *step_done; ///< the end of the last step
    wt_event *lent_done; ///< the end of the last step on lent SMs
    int lent;            ///< lenders of the steps that `lent_done` ends
    int variant;         ///< of the open step, or of the last one; -1 = none yet
    bool step_open;
};

// ---- slices

static void drop_slices(wt_layout *l, slices *s)
{
    const wt__slicing *slicing = l->device->ops->slicing;
    for (int k = 0; k < MAX_VARIANTS; k++) slicing->slice_destroy(l->device, s->wide[k]);
    for (int k = 0; k < WT_LAYOUT_MAX_PARTITIONS; k++) slicing->slice_destroy(l->device, s->own[k]);
    slicing->cut_free(s->cut);
    memset(s, 0, sizeof *s);
}

static int variants_of(const wt_layout *l)
{
    bool lending = l->borrower >= 0 && l->isolation == WT_ISOLATION_SMS;
    return l->borrower < 0 ? 0 : lending ? 1 << l->n_lenders : 1;
}

static wt_status make_wide(wt_layout *l, const wt__plan *plan, slices *s)
{
    const wt__slicing *slicing = l->device->ops->slicing;
    wt_status status = WT_OK;
    for (int v = 1; v < variants_of(l) && !status; v++) {
        wt__unit_set set = plan->sets[l->borrower];
        for (int k = 0; k < l->n_lenders; k++) {
            if (!(v >> k & 1)) continue;
            const wt__unit_set *more = &plan->sets[l->lenders[k]];
            set.rest |= more->rest;
            for (int u = 0; u < WT_MAX_UNITS; u++) set.has[u] |= more->has[u];
        }
        status = slicing->slice_create(l->device, s->cut, &set, l->partitions[l->borrower].priority, &s->wide[v],
                                       &s->wide_sms[v]);
    }
    return status;
}

static wt_status make_slices(wt_layout *l, const wt_layout_config *config, slices *s)
{
    const wt__slicing *slicing = l->device->ops->slicing;
    const bool confined = l->isolation == WT_ISOLATION_SMS;
    memset(s, 0, sizeof *s);
    wt__plan *plan = calloc(1, sizeof *plan);
    if (!plan) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a plan");
    wt_status status = slicing->cut(l->device, confined, config->fine, &s->cut, &s->units);
    if (!status && confined) status = wt__layout_plan(config, &l->device->info, &s->units, plan);
    if (!status && !confined) status = wt__layout_share(config, &s->units);
    for (int k = 0; k < l->n_partitions && !status; k++)
        status = slicing->slice_create(l->device, s->cut, confined ? &plan->sets[k] : NULL, l->partitions[k].priority,
                                       &s->own[k], &s->own_sms[k]);
    if (!status) status = make_wide(l, plan, s);
    s->unassigned_sms = status || !confined ? 0 : plan->unassigned_sms;
    free(plan);
    if (status) drop_slices(l, s);
    return status;
}

static wt__slice *slice_of_stream(const wt_layout *l, const slices *s, const wt_stream *stream)
{
    for (int v = 1; v < l->n_variants; v++)
        if (l->variants[v] == stream) return s->wide[v];
    return s->own[stream->partition - l->partitions];
}

// ---- create, resize, destroy

static wt_isolation isolation_of(const wt_device *device, wt_isolation wanted)
{
    if (wanted != WT_ISOLATION_AUTO) return wanted;
    bool old = device->info.backend == WT_BACKEND_CUDA && !device->info.partition_sms;
    return old ? WT_ISOLATION_PRIORITY : WT_ISOLATION_SMS;
}

static int priority_of(const wt_partition_config *c, wt_isolation isolation)
{
    static const int of_tier[] = {-1, 0, 1};
    if (isolation == WT_ISOLATION_NONE) return 0;
    return c->band == WT_BAND_BY_TIER ? of_tier[c->tier] : (int)c->band - WT_BAND_MIDDLE;
}

static void set_partition(wt_layout *l, int k, const wt_partition_config *config)
{
    wt_partition *p = &l->partitions[k];
    p->config = *config;
    p->config.name = p->name;
    if (!config->max_streams) p->config.max_streams = DEFAULT_STREAMS;
    if (!config->max_pending_kernels) p->config.max_pending_kernels = DEFAULT_KERNELS;
    if (!config->max_pending_transfers) p->config.max_pending_transfers = DEFAULT_TRANSFERS;
    p->priority = priority_of(config, l->isolation);
    wt__partition_uses_limit(p);
}

static wt_status add_stream(wt_partition *p, wt__slice *slice, int priority, wt_stream **stream)
{
    wt_device *device = p->layout->device;
    wt_status status = device->ops->slicing->stream_create(device, slice, priority, stream);
    if (status) return status;
    wt__device_add_stream(device, *stream, p, priority);
    atomic_fetch_add(&p->n_streams, 1);
    return WT_OK;
}

static wt_status make_variants(wt_layout *l)
{
    if (l->borrower < 0) return WT_OK;
    wt_partition *p = &l->partitions[l->borrower];
    wt_status status = wt_event_create(l->device, &l->step_done);
    if (!status) status = wt_event_create(l->device, &l->lent_done);
    for (int v = 0; v < variants_of(l) && !status; v++) {
        wt__slice *slice = v ? l->slices.wide[v] : l->slices.own[l->borrower];
        status = add_stream(p, slice, p->priority, &l->variants[v]);
        if (!status) l->n_variants++;
    }
    return status;
}

static void free_layout(wt_layout *l)
{
    for (int v = 0; v < l->n_variants; v++) wt_stream_destroy(l->variants[v]);
    wt_event_destroy(l->step_done);
    wt_event_destroy(l->lent_done);
    drop_slices(l, &l->slices);
    for (int k = 0; k < l->n_partitions; k++) wt__partition_uses_term(&l->partitions[k]);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

wt_status wt_layout_create(wt_device *device, const wt_layout_config *config, wt_layout **layout)
{
    *layout = NULL;
    wt_status status = wt__layout_check(config, &device->info);
    if (status) return status;
    wt_layout *l = calloc(1, sizeof *l);
    if (!l) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a handle");
    l->device = device;
    pthread_mutex_init(&l->mutex, NULL);
    l->isolation = isolation_of(device, config->isolation);
    l->n_partitions = config->n_partitions;
    l->generation = 1;
    l->borrower = l->variant = -1;
    for (int k = 0; k < l->n_partitions; k++) {
        wt__partition_uses_init(&l->partitions[k]);
        l->partitions[k].layout = l;
        snprintf(l->partitions[k].name, WT_PARTITION_NAME_BYTES, "%s", config->partitions[k].name);
        set_partition(l, k, &config->partitions[k]);
        if (config->partitions[k].lends) l->lenders[l->n_lenders++] = k;
        if (config->partitions[k].borrows) l->borrower = k;
    }
    status = wt__guard_check(device->guard, WT_ARM_GREEN_CTX_CREATE, "layout: create");
    if (!status) {
        status = make_slices(l, config, &l->slices);
        if (!status) status = make_variants(l);
        wt__guard_leave(device->guard);
    }
    if (status) {
        free_layout(l);
        return status;
    }
    wt__handle_open(&l->handle, l, WT__A_LAYOUT);
    *layout = l;
    return WT_OK;
}

/// The first partition with work queued or running, or NULL; a lost device has none.
static wt_partition *busy_partition(wt_layout *l, const wt_partition *only)
{
    wt_device *device = l->device;
    wt_partition *busy = NULL;
    pthread_mutex_lock(&device->mutex);
    for (wt_stream *s = device->streams; s && !busy; s = s->next) {
        bool ours = s->partition && s->partition->layout == l && (!only || s->partition == only);
        if (ours && !device->ops->stream_idle(s)) busy = s->partition;
    }
    pthread_mutex_unlock(&device->mutex);
    return busy;
}

static wt_status check_idle(wt_layout *l, const char *what)
{
    if (l->step_open)
        return wt_fail(WT_ERR_STATE, "layout: %s: a step of partition %s is open", what,
                       l->partitions[l->borrower].name);
    const wt_partition *busy = busy_partition(l, NULL);
    if (busy)
        return wt_fail(WT_ERR_STATE, "layout: %s: partition %s has work in flight; synchronise its streams first", what,
                       busy->name);
    return WT_OK;
}

static wt_status check_same(const wt_layout *l, const wt_layout_config *config)
{
    bool same = config->n_partitions == l->n_partitions && isolation_of(l->device, config->isolation) == l->isolation;
    for (int k = 0; k < l->n_partitions && same; k++) {
        const wt_partition_config *now = &l->partitions[k].config, *then = &config->partitions[k];
        same = !strcmp(now->name, then->name) && now->tier == then->tier && now->band == then->band &&
               now->lends == then->lends && now->borrows == then->borrows;
    }
    if (same) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG,
                   "layout: resize: want the same %d partitions (names, order, tiers, bands, lending) "
                   "and the same isolation",
                   l->n_partitions);
}

/// Move all streams of the layout. When one cannot, those moved before stay with `to`.
static wt_status move_streams(wt_layout *l, const slices *to)
{
    wt_device *device = l->device;
    wt_status status = WT_OK;
    pthread_mutex_lock(&device->mutex);
    for (wt_stream *s = device->streams; s && !status; s = s->next)
        if (s->partition && s->partition->layout == l)
            status = device->ops->slicing->stream_move(s, slice_of_stream(l, to, s), s->priority);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

static wt_status resize_locked(wt_layout *l, const wt_layout_config *config)
{
    wt_status status = check_idle(l, "resize");
    for (int k = 0; k < l->n_partitions && !status; k++)
        status = wt__partition_uses_fit(&l->partitions[k], &config->partitions[k]);
    if (status) return status;
    slices next;
    status = make_slices(l, config, &next);
    if (status) return status;
    status = move_streams(l, &next);
    if (status) { // the first error is the one to tell; going back only meets streams that existed a moment ago
        char why[512];
        snprintf(why, sizeof why, "%s", wt_last_error());
        wt_status back = move_streams(l, &l->slices);
        if (!back) drop_slices(l, &next); // else some streams still stand on the new slices, which then are kept
        return wt_fail(status, "layout: resize: %s", why);
    }
    drop_slices(l, &l->slices);
    l->slices = next;
    l->generation++;
    for (int k = 0; k < l->n_partitions; k++) set_partition(l, k, &config->partitions[k]);
    return WT_OK;
}

wt_status wt_layout_resize(wt_layout *layout, const wt_layout_config *config)
{
    wt_status status = wt__handle_check(layout, WT__A_LAYOUT);
    if (status) return status;
    wt_device *device = layout->device;
    status = wt__layout_check(config, &device->info);
    if (!status) status = check_same(layout, config);
    if (!status) status = wt__guard_check(device->guard, WT_ARM_GREEN_CTX_CREATE, "layout: resize");
    if (status) return status;
    pthread_mutex_lock(&layout->mutex);
    status = resize_locked(layout, config);
    pthread_mutex_unlock(&layout->mutex);
    wt__guard_leave(device->guard);
    return status;
}

/// Streams that wt_partition_stream_create made and nobody destroyed.
static int streams_of(const wt_layout *l, int k)
{
    return atomic_load(&l->partitions[k].n_streams) - (k == l->borrower ? l->n_variants : 0);
}

wt_status wt_layout_destroy(wt_layout *layout)
{
    if (!layout) return WT_OK;
    wt_status status = wt__handle_check(layout, WT__A_LAYOUT);
    if (status) return status;
    wt__guard *guard = layout->device->guard;
    status = wt__guard_check(guard, WT_ARM_GREEN_CTX_DESTROY, "layout: destroy");
    if (status) return status;
    status = check_idle(layout, "destroy");
    for (int k = 0; k < layout->n_partitions && !status; k++)
        if (streams_of(layout, k))
            status = wt_fail(WT_ERR_STATE, "layout: destroy: %d streams of partition %s exist; destroy them first",
                             streams_of(layout, k), layout->partitions[k].name);
        else
            status = wt__partition_uses_none(&layout->partitions[k]);
    if (!status) status = wt__handle_close(layout, WT__A_LAYOUT);
    if (!status) free_layout(layout);
    wt__guard_leave(guard);
    return status;
}

// ---- questions

void wt_layout_get_info(const wt_layout *layout, wt_layout_info *info)
{
    wt_layout *l = (wt_layout *)layout; // only its mutex is written
    pthread_mutex_lock(&l->mutex);
    *info = (wt_layout_info){.isolation = l->isolation,
                             .n_partitions = l->n_partitions,
                             .n_sms = l->device->info.n_sms,
                             .unit_sms = l->slices.units.unit_sms,
                             .remainder_sms = l->slices.units.rest_sms,
                             .unassigned_sms = l->slices.unassigned_sms,
                             .generation = l->generation};
    pthread_mutex_unlock(&l->mutex);
}

wt_partition *wt_layout_at(const wt_layout *layout, int index)
{
    return index >= 0 && index < layout->n_partitions ? (wt_partition *)&layout->partitions[index] : NULL;
}

wt_partition *wt_layout_find(const wt_layout *layout, const char *name)
{
    for (int k = 0; k < layout->n_partitions; k++)
        if (!strcmp(layout->partitions[k].name, name)) return wt_layout_at(layout, k);
    return NULL;
}

wt_device *wt_partition_device(const wt_partition *partition)
{
    return partition->layout->device;
}

/// The bit of a lender in variants, or 0. Who lends and who borrows is asked without the mutex: no resize changes it.
static int lender_bit(const wt_layout *l, int partition)
{
    for (int k = 0; k < l->n_lenders; k++)
        if (l->lenders[k] == partition) return 1 << k;
    return 0;
}

static bool borrows(const wt_partition *p) { return p - p->layout->partitions == p->layout->borrower; }

static bool is_lent(const wt_layout *l, int partition)
{
    const int bit = lender_bit(l, partition);
    return (l->step_open && l->variant & bit) || (l->lent & bit && !wt_event_done(l->lent_done));
}

void wt_partition_get_info(wt_partition *p, wt_partition_info *info)
{
    wt_layout *l = p->layout;
    const int k = (int)(p - l->partitions);
    pthread_mutex_lock(&l->mutex);
    const bool fine = l->isolation == WT_ISOLATION_SMS && l->slices.units.unit_sms < l->device->info.partition_sms;
    *info = (wt_partition_info){.tier = p->config.tier,
                                .isolation = l->isolation,
                                .n_sms = l->slices.own_sms[k],
                                .memory_quota_bytes = p->config.memory_quota_bytes,
                                .bandwidth_share = p->config.bandwidth_share,
                                .max_streams = p->config.max_streams,
                                .max_pending_kernels = p->config.max_pending_kernels,
                                .max_pending_transfers = p->config.max_pending_transfers,
                                .priority = p->priority,
                                .n_streams = streams_of(l, k),
                                .fine = fine,
                                .generation = l->generation,
                                .lends = p->config.lends,
                                .borrows = p->config.borrows,
                                .idle = p->idle,
                                .lent = is_lent(l, k)};
    memcpy(info->name, p->name, sizeof info->name);
    pthread_mutex_unlock(&l->mutex);
    info->memory_used_bytes = atomic_load(&p->used[WT__USE_MEMORY]);
    info->n_pending_kernels = (int)atomic_load(&p->used[WT__USE_KERNELS]);
    info->n_pending_transfers = (int)atomic_load(&p->used[WT__USE_TRANSFERS]);
    pthread_mutex_lock(&p->mutex);
    info->copied_bytes = p->copied.n_bytes;
    info->copied_us = p->copied.us;
    info->n_throttled = p->copied.n_throttled;
    pthread_mutex_unlock(&p->mutex);
}

// ---- streams

wt_status wt_partition_stream_create(wt_partition *p, const wt_stream_config *config, wt_stream **stream)
{
    *stream = NULL;
    int priority = config ? config->priority : 0;
    if (priority < -1 || priority > 1)
        return wt_fail(WT_ERR_BAD_ARG, "partition %s: stream priority %d, want -1, 0 or 1", p->name, priority);
    wt_layout *l = p->layout;
    const int k = (int)(p - l->partitions);
    pthread_mutex_lock(&l->mutex);
    wt_status status;
    if (streams_of(l, k) >= p->config.max_streams)
        status = wt_fail(WT_ERR_FULL, "partition %s: %d streams exist, want at most %d", p->name, streams_of(l, k),
                         p->config.max_streams);
    else
        status = add_stream(p, l->slices.own[k], priority ? priority : p->priority, stream);
    pthread_mutex_unlock(&l->mutex);
    return status;
}

void wt__partition_forget(wt_partition *partition)
{
    atomic_fetch_sub(&partition->n_streams, 1);
}

bool wt_partition_is_busy(wt_partition *partition)
{
    return busy_partition(partition->layout, partition) != NULL;
}

// ---- lending

wt_status wt_partition_idle(wt_partition *p, bool idle)
{
    wt_layout *l = p->layout;
    const bool lends = lender_bit(l, (int)(p - l->partitions));
    if (!lends) return wt_fail(WT_ERR_BAD_ARG, "partition %s: it does not lend", p->name);
    wt_status status = WT_OK;
    pthread_mutex_lock(&l->mutex);
    if (idle && busy_partition(l, p))
        status = wt_fail(WT_ERR_STATE, "partition %s: it has work in flight, so it is not idle", p->name);
    else
        p->idle = idle;
    pthread_mutex_unlock(&l->mutex);
    return status;
}

int wt_partition_n_variants(const wt_partition *p)
{
    return borrows(p) ? p->layout->n_variants : 1;
}

wt_stream *wt_partition_variant_stream(const wt_partition *p, int variant)
{
    bool known = borrows(p) && variant >= 0 && variant < p->layout->n_variants;
    return known ? p->layout->variants[variant] : NULL;
}

static int sms_of(const wt_layout *l, int variant)
{
    return variant ? l->slices.wide_sms[variant] : l->slices.own_sms[l->borrower];
}

int wt_partition_variant_sms(const wt_partition *p, int variant)
{
    return wt_partition_variant_stream(p, variant) ? sms_of(p->layout, variant) : 0;
}

wt_status wt_partition_step_begin(wt_partition *p, wt_partition_step *step)
{
    wt_layout *l = p->layout;
    *step = (wt_partition_step){0};
    if (!borrows(p)) return wt_fail(WT_ERR_BAD_ARG, "partition %s: it does not borrow", p->name);
    pthread_mutex_lock(&l->mutex);
    wt_status status = WT_OK;
    if (l->step_open) status = wt_fail(WT_ERR_STATE, "partition %s: a step is open already", p->name);
    if (!status) {
        int v = 0;
        for (int k = 0; k < l->n_lenders && l->n_variants > 1; k++) v |= (int)l->partitions[l->lenders[k]].idle << k;
        if (l->variant >= 0 && v != l->variant) status = wt_stream_wait(l->variants[v], l->step_done);
        if (!status) {
            l->variant = v;
            l->step_open = true;
            *step = (wt_partition_step){l->variants[v], v, sms_of(l, v)};
        }
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

wt_status wt_partition_step_end(wt_partition *p)
{
    wt_layout *l = p->layout;
    pthread_mutex_lock(&l->mutex);
    wt_status status;
    if (!borrows(p) || !l->step_open) {
        status = wt_fail(WT_ERR_STATE, "partition %s: no step is open", p->name);
    } else {
        l->step_open = false;
        status = WT_OK;
        if (l->variant) { // before step_done, so that whoever waited for that finds this reached
            l->lent = l->variant | (wt_event_done(l->lent_done) ? 0 : l->lent);
            status = wt_event_record(l->lent_done, l->variants[l->variant]);
        }
        if (!status) status = wt_event_record(l->step_done, l->variants[l->variant]);
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

int wt__partition_generation(const wt_partition *partition)
{
    return atomic_load(&partition->layout->generation);
}
