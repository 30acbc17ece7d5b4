// A session that shares its device: each step goes to the widest stream that its partition has at that moment, and
// before the next the session rests as long as the partition's share of time asks.
#include "gpu.h"

#include <time.h>
#include <warptone/clock.h>

static void sleep_until(int64_t time_ns)
{
    for (int64_t left; (left = time_ns - wt_clock_now_ns(NULL)) > 0;)
        nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
}

/// The pacer follows the partition, whose share may change with a resize.
static wt_status keep_pace(wt_llm_session *s, double share)
{
    const int64_t now = wt_clock_now_ns(NULL);
    wt_pacer *p = &s->pacer;
    s->is_paced = share > 0 && share < 1;
    if (!s->is_paced) return WT_OK;
    wt_status status = WT_OK;
    if (p->share <= 0) status = wt_pacer_init(p, &(wt_pacer_config){.share = share}, now);
    if (!status && p->share != share) status = wt_pacer_set_share(p, share, now);
    if (!status && !s->began) status = wt_event_create(wt_stream_device(s->own), &s->began);
    if (!status && !s->ended) status = wt_event_create(wt_stream_device(s->own), &s->ended);
    if (status) return status;
    sleep_until(wt_pacer_ready_at(p, now));
    s->usage.waited_s += (double)(wt_clock_now_ns(NULL) - now) * 1e-9;
    return WT_OK;
}

/// Another session of the partition may be queueing its step.
static wt_status borrow(wt_llm_session *s)
{
    wt_status status;
    while ((status = wt_partition_step_begin(s->partition, &s->step)) == WT_ERR_STATE)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return status;
}

wt_status wt__llm_step_begin(wt_llm_session *s)
{
    wt_partition_info info;
    wt_status status = WT_OK;
    s->step = (wt_partition_step){.stream = s->own, .n_sms = wt_device_get_info(wt_stream_device(s->own))->n_sms};
    if (s->partition) {
        wt_partition_get_info(s->partition, &info);
        s->step.n_sms = info.n_sms;
        if (s->gpu && s->gpu->generation != info.generation) status = wt__gpu_follow(s, &info);
        if (!status) status = keep_pace(s, info.bandwidth_share);
        s->borrows = wt_partition_n_variants(s->partition) > 1;
        if (!status && s->borrows) status = borrow(s);
    }
    if (status) return status;
    s->stream = s->step.stream;
    if (s->gpu) s->gpu->n_sms = s->step.n_sms;
    s->usage.n_steps++;
    s->usage.n_wide_steps += s->step.variant != 0;
    if (s->is_paced) status = wt_event_record(s->began, s->stream);
    if (!status) return WT_OK;
    const wt_status ended = wt__llm_step_queued(s);
    (void)ended; // the first error counts
    return status;
}

wt_status wt__llm_step_queued(wt_llm_session *s)
{
    wt_status status = s->is_paced ? wt_event_record(s->ended, s->stream) : WT_OK;
    const wt_status ended = s->borrows ? wt_partition_step_end(s->partition) : WT_OK;
    s->stream = s->own;
    return status ? status : ended;
}

wt_status wt__llm_step_ran(wt_llm_session *s)
{
    double us;
    if (!s->is_paced) return WT_OK;
    wt_status status = wt_event_synchronize(s->ended);
    if (!status) status = wt_event_elapsed_us(s->began, s->ended, &us);
    if (status) return status;
    wt_pacer_charge(&s->pacer, wt_clock_now_ns(NULL), us);
    s->usage.paced_s += us * 1e-6;
    return WT_OK;
}

wt_status wt__llm_step_finish(wt_llm_session *s, wt_status status)
{
    wt_stream *stream = s->stream;
    const wt_status queued = wt__llm_step_queued(s), ran = wt_stream_synchronize(stream);
    if (!status) status = queued ? queued : ran;
    return status ? status : wt__llm_step_ran(s);
}

// ---- memory

wt_status wt__llm_pool(wt_device *device, wt_partition *partition, const char *name, wt_pool **pool)
{
    wt_partition_info info = {.memory_quota_bytes = 0};
    if (partition) wt_partition_get_info(partition, &info);
    const size_t quota = info.memory_quota_bytes ? 0 : wt_device_get_info(device)->memory_bytes;
    return wt_pool_create(
        device,
        &(wt_pool_config){
            .name = name, .quota_bytes = quota, .soft = true, .partition = partition, .no_eviction = true},
        pool);
}

wt_status wt__llm_fits(wt_pool *pool, const char *what, size_t bytes)
{
    wt_pool_stats stats;
    wt_pool_query(pool, &stats);
    if (bytes <= stats.quota_bytes) return WT_OK;
    return wt_fail(WT_ERR_QUOTA, "llm: %s take %zu bytes, the memory quota is %zu", what, bytes, stats.quota_bytes);
}

wt_status wt__llm_arena(wt_pool *pool, const char *what, size_t bytes, wt_pool_arena **arena, uintptr_t *address)
{
    wt_status status = wt__llm_fits(pool, what, bytes);
    if (!status) status = wt_pool_arena_create(pool, bytes, arena);
    return status ? status : wt_pool_arena_take(*arena, bytes, 64, address);
}

void wt_llm_session_get_usage(const wt_llm_session *session, wt_llm_usage *usage) { *usage = session->usage; }
