/// What is written of a file's features: analyze_numpy.c  NPY and NPZ; analyze_text.c  CSV and JSON; analyze_plot.c
/// PNG.
#ifndef WT_ANALYZE_WRITE_H
#define WT_ANALYZE_WRITE_H

#include "analyze.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the writers are told: the arrays, and what they were made of (one channel's signal for pictures).
typedef struct analyze_report {
    const analyze_options *options;
    const analyze_result *result;
    const char *input;
    const float *pcm; ///< [channels][n]
    int64_t n;
    int rate_hz, channels;
} analyze_report;

/// Each writes to an open file; a failed write shows in ferror(out). Errors: WT_ERR_BAD_ARG when the format cannot hold
/// what there is.  [worker]
WT_CHECKED wt_status analyze_write_npy(const analyze_report *report, FILE *out);
WT_CHECKED wt_status analyze_write_npz(const analyze_report *report, FILE *out);
WT_CHECKED wt_status analyze_write_csv(const analyze_report *report, FILE *out);
/// One table holds arrays of one layout and length. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status analyze_csv_check(const analyze_result *result);
/// A table in parts: its head, and `count` rows from column `from` of `tile` on, which begin at frame `first`.
WT_CHECKED wt_status analyze_csv_head(const analyze_report *report, FILE *out);
void analyze_csv_rows(const analyze_report *report, const analyze_result *tile, int64_t first, int64_t from,
                      int64_t count, FILE *out);
WT_CHECKED wt_status analyze_write_json(const analyze_report *report, FILE *out);

/// NPY or NPZ in parts, in any order, on a file that can be read: where each array's data stands.
typedef struct analyze_numpy {
    struct analyze_member {
        char name[64];
        uint32_t crc;
        uint64_t size, offset;
    } members[ANALYZE_MAX_ARRAYS];
    int64_t data[ANALYZE_MAX_ARRAYS];
    bool zip, wide; ///< wide: with sizes in 64 bits, as 4 GiB and more want them
} analyze_numpy;

/// From the report's arrays, whose data is not read; the file's `wide` may be set before.
WT_CHECKED wt_status analyze_numpy_lay(const analyze_report *report, analyze_numpy *file);
/// Columns of a tile; of signals `hop` samples a column.
typedef struct analyze_part {
    int64_t first, from, count; ///< of the tile's arrays from `from` on, as the whole's from `first` on; -1 = all
    int hop;
} analyze_part;
/// Array k of the tile is array places[k] of the whole.
WT_CHECKED wt_status analyze_numpy_put(const analyze_numpy *file, int fd, const analyze_result *whole,
                                       const analyze_result *tile, const int *places, const analyze_part *part);
/// Array k of the whole, whose data is there.
WT_CHECKED wt_status analyze_numpy_put_whole(const analyze_numpy *file, int fd, const analyze_result *whole, int k);
/// Write the headers, which have check sums of what was put.
WT_CHECKED wt_status analyze_numpy_finish(analyze_numpy *file, int fd, const analyze_result *whole);

/// Errors: WT_ERR_BAD_ARG (nothing to draw), WT_ERR_NO_MEMORY, WT_ERR_FILE.  [worker]
WT_CHECKED wt_status analyze_plot(const analyze_report *report, const char *path);

#ifdef __cplusplus
}
#endif
#endif
