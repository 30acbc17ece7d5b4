/// The figures of a live session as JSON: what --json prints and the control protocol's stats answers.
#ifndef WT_LIVE_REPORT_H
#define WT_LIVE_REPORT_H

#include "live_session.h"

#include <jansson.h>

json_t *live_report_json(live_session *session); ///< caller frees with json_decref  [any but rt]
/// Count, mean, percentiles and maximum of times, in us; caller frees with json_decref.
json_t *live_summary_json(const wt_histogram_summary *summary);
const char *live_path_name(wt_live_path path); ///< "resident", "graph", "cpu"

#endif
