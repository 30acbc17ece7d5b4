/// The parts of `warptone top`: the page, the JSON line, and a load to look at.
#ifndef WT_CMD_TOP_H
#define WT_CMD_TOP_H

#include <stdio.h>
#include <warptone/telemetry.h>

/// A page of text: one line a row; rates from `before`, an earlier view of the same process (NULL = none yet). `width`
/// columns are kept of each line, 0 = all.
void top_page(FILE *out, const wt_telemetry_view *view, const wt_telemetry_view *before, int width);
/// One line: {"time_ns": , "pid": , "rows": [{"kind", "name", "partition", "tier", figures ...}]}. False: cannot write.
bool top_json(FILE *out, const wt_telemetry_view *view);

/// A mixed load in two partitions of the present backend: short periodic work beside a full queue of long work, with
/// memory that does not fit its quota.
typedef struct top_demo top_demo;
WT_CHECKED wt_status top_demo_start(top_demo **demo);
/// Errors: what the load met.
WT_CHECKED wt_status top_demo_publish(top_demo *demo);
void top_demo_stop(top_demo *demo); ///< NULL is allowed.

#endif
