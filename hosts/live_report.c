#include "live_report.h"
#include "process_report.h"

const char *live_path_name(wt_live_path path)
{
    static const char *const names[] = {"auto", "resident", "graph", "cpu"};
    return (unsigned)path < sizeof names / sizeof *names ? names[path] : "?";
}

json_t *live_summary_json(const wt_histogram_summary *s)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "count", (json_int_t)s->count, "mean_us", s->mean * 1e-3,
                     "p50_us", (double)s->p50 * 1e-3, "p99_us", (double)s->p99 * 1e-3, "p99_9_us",
                     (double)s->p99_9 * 1e-3, "p99_99_us", (double)s->p99_99 * 1e-3, "max_us", (double)s->max * 1e-3);
}

static json_t *misses_json(const wt_live_stats *live)
{
    json_t *misses = json_pack("{s:I}", "total", (json_int_t)live->n_misses);
    for (int k = 0; k < WT_N_LIVE_MISSES; k++)
        json_object_set_new(misses, wt_live_miss_name((wt_live_miss)k), json_integer((json_int_t)live->misses[k]));
    return misses;
}

json_t *live_report_json(live_session *session)
{
    live_session_stats s;
    live_session_get_stats(session, &s);
    const wt_live_stats *l = &s.live;
    const audio_host_stats *h = &s.host;
    json_t *all =
        json_pack("{s:f, s:o, s:s, s:s, s:b}", "seconds", s.seconds, "preset", process_json_name(s.preset), "host",
                  s.host_name ? s.host_name : "", "path", live_path_name(l->path), "bypass", (int)l->bypass);
    json_t *more = json_pack("{s:f, s:i, s:i, s:I, s:I, s:o, s:I, s:f, s:f, s:o, s:o}", "rate_hz", l->rate_hz,
                             "block_frames", l->block_frames, "latency_frames", l->latency_frames, "blocks",
                             (json_int_t)l->n_blocks, "frames", (json_int_t)l->n_frames, "misses", misses_json(l),
                             "xruns", (json_int_t)h->n_xruns, "load", l->load, "server_load", h->cpu_load, "process",
                             live_summary_json(&l->process_ns), "round_trip", live_summary_json(&l->round_trip_ns));
    json_object_update(all, more);
    json_decref(more);
    more = json_pack("{s:b, s:f, s:f, s:f}", "rolling", (int)s.transport.rolling, "bpm", s.transport.bpm,
                     "beats_per_bar", s.transport.beats_per_bar, "beat_unit", s.transport.beat_unit);
    json_object_update(all, more);
    json_decref(more);
    more = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:b}", "launches", (json_int_t)l->n_launches,
                     "moves", (json_int_t)l->n_moves, "loads", (json_int_t)l->n_loads, "reloads",
                     (json_int_t)s.n_reloads, "reload_errors", (json_int_t)s.n_reload_errors, "reconnects",
                     (json_int_t)s.n_reconnects, "recorded_frames", (json_int_t)s.n_recorded_frames, "record_lost",
                     (json_int_t)s.n_record_lost, "last_error", process_json_name(s.last_error), "realtime",
                     (int)h->realtime, "freewheel", (int)h->freewheel);
    json_object_update(all, more);
    json_decref(more);
    more = json_pack("{s:i, s:i}", "threads", l->n_threads, "threads_wanted", l->n_threads_wanted);
    json_object_update(all, more);
    json_decref(more);
    return all;
}
