/// The figures of a live session for other processes (`warptone top`) and the view: a row for each partition of its
/// device, the audio partition's with the time from doorbell to answer as device time, and misses as missed deadlines.
#ifndef WT_LIVE_TELEMETRY_H
#define WT_LIVE_TELEMETRY_H

#include <warptone/live.h>

typedef struct live_telemetry live_telemetry;

/// `layout` NULL = one row, "audio", without SMs. Errors: WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status live_telemetry_open(wt_layout *layout, live_telemetry **telemetry);
void live_telemetry_close(live_telemetry *telemetry); ///< Removes what was published. NULL is allowed.

/// Publish, a few times a second. Where another session of this process does already, nothing is said.  [one thread]
void live_telemetry_publish(live_telemetry *telemetry, const wt_live_stats *stats);

#endif
