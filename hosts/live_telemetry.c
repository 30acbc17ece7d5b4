#include "live_telemetry.h"

#include <stdlib.h>
#include <warptone/telemetry.h>

enum { MAX_PARTITIONS = 8 };

struct live_telemetry {
    wt_telemetry *telemetry;
    wt_partition *partitions[MAX_PARTITIONS];
    wt_telemetry_row *rows[MAX_PARTITIONS]; ///< the first is the audio partition's
    int n;
    wt_live_path path;
    int64_t device_ns, n_blocks, n_misses; ///< as they stand in the row
};

static wt_status add_row(live_telemetry *t, const char *name, wt_tier tier, wt_partition *partition)
{
    const wt_telemetry_row_config config = {.kind = WT_TELEMETRY_PARTITION, .name = name, .tier = tier};
    wt_status status = wt_telemetry_open_row(t->telemetry, &config, &t->rows[t->n]);
    if (!status) t->partitions[t->n++] = partition;
    return status;
}

static wt_status add_rows(live_telemetry *t, wt_layout *layout)
{
    if (!layout) return add_row(t, "audio", WT_TIER_GUARANTEED, NULL);
    wt_layout_info layout_info;
    wt_status status = WT_OK;
    wt_layout_get_info(layout, &layout_info);
    for (int k = 0; k < layout_info.n_partitions && k < MAX_PARTITIONS && !status; k++) {
        wt_partition_info info;
        wt_partition_get_info(wt_layout_at(layout, k), &info);
        status = add_row(t, info.name, info.tier, wt_layout_at(layout, k));
    }
    return status;
}

wt_status live_telemetry_open(wt_layout *layout, live_telemetry **telemetry)
{
    *telemetry = NULL;
    live_telemetry *t = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "live: telemetry");
    wt_status status = wt_telemetry_create(&t->telemetry);
    if (!status) status = add_rows(t, layout);
    if (status)
        live_telemetry_close(t);
    else
        *telemetry = t;
    return status;
}

void live_telemetry_close(live_telemetry *t)
{
    if (!t) return;
    wt_telemetry_destroy(t->telemetry);
    free(t);
}

/// Counters of the row go up by what came since.
static void count(live_telemetry *t, wt_figure figure, int64_t *before, int64_t now)
{
    if (now > *before) wt_telemetry_add(t->rows[0], figure, now - *before);
    *before = now;
}

void live_telemetry_publish(live_telemetry *t, const wt_live_stats *stats)
{
    const wt_histogram_summary *time = stats->path == WT_LIVE_CPU ? &stats->process_ns : &stats->round_trip_ns;
    for (int k = 0; k < t->n; k++)
        if (t->partitions[k]) wt_telemetry_sample_partition(t->rows[k], t->partitions[k]);
    const int64_t device_ns = (int64_t)(time->mean * (double)time->count);
    if (stats->path != t->path) t->device_ns = device_ns; // another sum, which goes on from here
    t->path = stats->path;
    count(t, WT_FIGURE_DEVICE_NS, &t->device_ns, device_ns);
    count(t, WT_FIGURE_RUNS, &t->n_blocks, (int64_t)stats->n_blocks);
    count(t, WT_FIGURE_DEADLINE_MISSES, &t->n_misses, (int64_t)stats->n_misses);
    wt_status seen = wt_telemetry_publish(t->telemetry);
    (void)seen; // by nobody where this fails, which is no reason to stop
}
