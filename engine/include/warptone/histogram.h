/// Histogram: how often each duration came, of fixed size, for the percentiles of a real-time path.
///
/// Values are integers from 0 to 2^63 - 1, in nanoseconds where they are times. Values below 128 are kept exactly,
/// others within 0.8 %. One thread, the writer, records; any number may read meanwhile.
#ifndef WARPTONE_HISTOGRAM_H
#define WARPTONE_HISTOGRAM_H

#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_histogram wt_histogram;

typedef struct wt_histogram_summary {
    uint64_t count;                  ///< values recorded; when 0, all below are 0
    double mean;                     ///< exact but for rounding
    int64_t p50, p99, p99_9, p99_99; ///< the smallest recorded value with that share at or below it, within 0.8 %
    int64_t max;                     ///< exact
} wt_histogram_summary;

/// An empty histogram of about 30 KB. Errors: WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_histogram_create(wt_histogram **histogram);
void wt_histogram_destroy(wt_histogram *histogram); ///< NULL is allowed.  [any but rt]

/// Count one value; a negative one counts as 0. A few nanoseconds, no read-modify-write.  [rt, the writer]
WT_RT void wt_histogram_record(wt_histogram *histogram, int64_t value);

/// What was recorded so far. While the writer records, the values of the last moment may be missing.  [rt]
WT_RT void wt_histogram_summarize(const wt_histogram *histogram, wt_histogram_summary *summary);

/// The smallest recorded value with at least the share `quantile` (0 .. 1, clamped) of all values at or below it,
/// within 0.8 %; 0 when nothing is recorded.  [rt]
WT_RT int64_t wt_histogram_quantile(const wt_histogram *histogram, double quantile);

/// The share, 0 .. 1, of all recorded values that is at or below `value`, within 0.8 % of the value; 0 when nothing is
/// recorded.  [rt]
WT_RT double wt_histogram_share(const wt_histogram *histogram, int64_t value);

/// Add all of `from`, which its writer may be recording to, to `into`.  [rt, the writer of `into`]
WT_RT void wt_histogram_merge(wt_histogram *into, const wt_histogram *from);

/// Forget everything. A reader meanwhile sees part of what was.  [rt, the writer]
WT_RT void wt_histogram_reset(wt_histogram *histogram);

#ifdef __cplusplus
}
#endif
#endif
