#include <warptone/pacing.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_positive(double x) { return isfinite(x) && x > 0; }

wt_status wt_slicer_init(wt_slicer *slicer, const wt_slicer_config *config)
{
    if (!is_positive(config->bound_us))
        return wt_fail(WT_ERR_BAD_ARG, "slicer: bound %g us, want above 0", config->bound_us);
    if (config->granule_items < 0)
        return wt_fail(WT_ERR_BAD_ARG, "slicer: granule of %lld items, want 0 or more",
                       (long long)config->granule_items);
    int64_t granule = config->granule_items ? config->granule_items : 1;
    if (config->max_items < 0 || (config->max_items > 0 && config->max_items < granule))
        return wt_fail(WT_ERR_BAD_ARG, "slicer: at most %lld items, want 0 or %lld and more",
                       (long long)config->max_items, (long long)granule);
    if (config->us_per_item != 0 && !is_positive(config->us_per_item))
        return wt_fail(WT_ERR_BAD_ARG, "slicer: %g us per item, want 0 or more", config->us_per_item);
    if (!(config->margin >= 0 && config->margin < 1))
        return wt_fail(WT_ERR_BAD_ARG, "slicer: margin %g, want 0 or more, below 1", config->margin);
    double margin = config->margin > 0 ? config->margin : 0.1;
    *slicer = (wt_slicer){
        .target_us = config->bound_us * (1 - margin),
        .us_per_item = config->us_per_item,
        .granule_items = granule,
        .max_items = config->max_items ? config->max_items : INT64_MAX,
        .largest_items = config->us_per_item > 0 ? INT64_MAX : 0,
    };
    return WT_OK;
}

WT_RT int64_t wt_slicer_next(const wt_slicer *slicer, int64_t items_left)
{
    if (items_left < 1) return 0;
    int64_t items = slicer->granule_items;
    if (slicer->us_per_item > 0) {
        double fits = slicer->target_us / slicer->us_per_item;
        items = fits < 9e18 ? (int64_t)fits : INT64_MAX;
        if (slicer->largest_items < INT64_MAX / 2 && items > 2 * slicer->largest_items)
            items = 2 * slicer->largest_items;
        if (items > slicer->max_items) items = slicer->max_items;
        items -= items % slicer->granule_items;
        if (items < slicer->granule_items) items = slicer->granule_items;
    }
    return items < items_left ? items : items_left;
}

WT_RT void wt_slicer_measured(wt_slicer *slicer, int64_t items, double measured_us)
{
    if (items < 1 || !isfinite(measured_us) || measured_us < 0) return;
    double us_per_item = measured_us / (double)items;
    if (slicer->us_per_item > us_per_item)
        slicer->us_per_item += (us_per_item - slicer->us_per_item) / 16;
    else
        slicer->us_per_item = us_per_item;
    if (items > slicer->largest_items) slicer->largest_items = items;
}

// ---- the queue

typedef struct sliced_work {
    wt_slicer slicer;
    int64_t n_items, done_items, out_items;
    uint64_t turn; ///< when it last had a slice; the lowest goes first
    int priority;
    bool used, removed; ///< removed: the number stays taken until the slice that is out comes back
} sliced_work;

struct wt_slice_queue {
    uint64_t turn;
    int capacity;
    sliced_work works[];
};

wt_status wt_slice_queue_create(int capacity, wt_slice_queue **queue)
{
    *queue = NULL;
    if (capacity < 1 || capacity > 1024)
        return wt_fail(WT_ERR_BAD_ARG, "slice queue: capacity %d, want 1..1024", capacity);
    wt_slice_queue *q = calloc(1, sizeof *q + sizeof *q->works * (size_t)capacity);
    if (!q) return wt_fail(WT_ERR_NO_MEMORY, "slice queue: %d works", capacity);
    q->capacity = capacity;
    *queue = q;
    return WT_OK;
}

void wt_slice_queue_destroy(wt_slice_queue *queue) { free(queue); }

wt_status wt_slice_queue_add(wt_slice_queue *queue, const wt_slicer *slicer, int priority, int64_t n_items, int *work)
{
    if (n_items < 1) return wt_fail(WT_ERR_BAD_ARG, "slice queue: %lld items, want 1 or more", (long long)n_items);
    int k = 0;
    while (k < queue->capacity && queue->works[k].used) k++;
    if (k == queue->capacity) return wt_fail(WT_ERR_FULL, "slice queue: all %d works are taken", queue->capacity);
    queue->works[k] = (sliced_work){
        .slicer = *slicer, .n_items = n_items, .turn = ++queue->turn, .priority = priority, .used = true};
    *work = k;
    return WT_OK;
}

wt_status wt_slice_queue_next(wt_slice_queue *queue, wt_slice *slice)
{
    sliced_work *best = NULL;
    for (int k = 0; k < queue->capacity; k++) {
        sliced_work *work = &queue->works[k];
        if (!work->used || work->out_items || work->removed) continue;
        if (!best || work->priority > best->priority ||
            (work->priority == best->priority && work->turn < best->turn))
            best = work;
    }
    if (!best) return WT_ERR_NOT_FOUND;
    best->turn = ++queue->turn;
    best->out_items = wt_slicer_next(&best->slicer, best->n_items - best->done_items);
    *slice = (wt_slice){.work = (int)(best - queue->works), .offset_item = best->done_items,
                        .n_items = best->out_items};
    return WT_OK;
}

static sliced_work *find_work(wt_slice_queue *queue, int work)
{
    return work >= 0 && work < queue->capacity && queue->works[work].used ? &queue->works[work] : NULL;
}

wt_status wt_slice_queue_done(wt_slice_queue *queue, int work, double measured_us, int64_t *items_left)
{
    sliced_work *w = find_work(queue, work);
    if (!w) return wt_fail(WT_ERR_BAD_ARG, "slice queue: no work %d", work);
    if (!w->out_items) return wt_fail(WT_ERR_STATE, "slice queue: work %d has no slice out", work);
    wt_slicer_measured(&w->slicer, w->out_items, measured_us);
    w->done_items += w->out_items;
    w->out_items = 0;
    int64_t left = w->removed ? 0 : w->n_items - w->done_items;
    if (items_left) *items_left = left;
    w->used = left > 0;
    return WT_OK;
}

wt_status wt_slice_queue_remove(wt_slice_queue *queue, int work)
{
    sliced_work *w = find_work(queue, work);
    if (!w) return wt_fail(WT_ERR_BAD_ARG, "slice queue: no work %d", work);
    w->removed = true;
    w->used = w->out_items > 0;
    return WT_OK;
}
