/// Rows of figures, and what lies in shared memory.
#ifndef WT_TELEMETRY_INTERNAL_H
#define WT_TELEMETRY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <warptone/telemetry.h>

struct wt_telemetry_row {
    _Alignas(64) _Atomic int64_t figures[WT_N_FIGURES]; ///< written by anyone, at any time
    _Alignas(64) wt_telemetry *telemetry;               ///< the rest: under the table's mutex
    bool used;
    uint64_t order;
    wt_telemetry_kind kind;
    wt_tier tier;
    char name[WT_TELEMETRY_NAME_BYTES], partition[WT_TELEMETRY_NAME_BYTES];
};

/// The segment: `sequence` is odd while the snapshot is being written.
typedef struct wt__segment {
    char magic[8];
    uint32_t version, size_bytes;
    _Atomic uint64_t sequence;
    wt_telemetry_view view;
} wt__segment;

struct wt_telemetry {
    wt_telemetry_row rows[WT_TELEMETRY_ROWS];
    pthread_mutex_t mutex;
    uint64_t n_opened;
    wt__segment *segment; ///< NULL = not published
    int segment_file;     ///< locked while it is
    int64_t segment_pid;  ///< of the process that made it: a fork's child must not remove it
    wt_telemetry_view scratch;
};

void wt__telemetry_unpublish(wt_telemetry *telemetry);

#endif
