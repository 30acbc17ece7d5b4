/// All files of a run: one at a time (analyze_job.c), or as batches for a GPU (analyze_batch.c, analyze_line.c).
#ifndef WT_ANALYZE_RUN_H
#define WT_ANALYZE_RUN_H

#include "analyze_clock.h"
#include "analyze_gpu.h"
#include "analyze_write.h"
#include "process.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- analyze_job.c

/// The format of an extension, without its dot, and whether there is one. For audio options->extension is set.
WT_CHECKED wt_status analyze_format_of(const char *path, const char *extension, analyze_options *options);
/// The mean of rows `stride` apart, into the first.
void analyze_fold(float *rows, int channels, int64_t n, int64_t stride);
/// One file by itself: what became of it stands in the item.  [worker]
void analyze_do_item(const analyze_options *options, analyze_place *place, process_item *item);
/// The features to a file, or - for standard output. Errors: WT_ERR_FILE, those of the format.  [worker]
WT_CHECKED wt_status analyze_write_result(const analyze_report *report, const char *output);
/// One of the parts of hpss, beside `output`. Errors: those of wt_audio_writer_open.  [worker]
WT_CHECKED wt_status analyze_part_open(const analyze_report *report, const analyze_array *part, const char *output,
                                       wt_audio_writer **writer);
/// Errors: WT_ERR_BAD_ARG when `path` is the file `input`, by whatever name.  [worker]
WT_CHECKED wt_status analyze_refuse_input(const char *input, const char *path);
/// Where normalize's ceiling kept a signal below its target: the item's note tells both.  [worker]
void analyze_note_level(const analyze_options *options, const wt_normalize_result *level, process_item *item);
void analyze_item_done(process_run *run, process_item *item); ///< Count it.  [worker]
/// Do all items on options->n_jobs threads; errors of single files stand in their items. `times` begins at 0.
/// Errors: only what ends the whole run.  [main]
WT_CHECKED wt_status analyze_run(const analyze_options *options, process_run *run, void (*tick)(void *user),
                                 void *user, analyze_times *times);

// ---- analyze_batch.c

/// The run's files in batches for a GPU.
typedef struct analyze_batches analyze_batches;
/// Look at all files, on options->n_jobs threads; what cannot be read, or is too long, will be done by itself. Free
/// with analyze_batches_free, also after an error.  [main]
WT_CHECKED wt_status analyze_batches_make(const analyze_options *options, process_run *run, void (*tick)(void *user),
                                          void *user, analyze_times *times, analyze_batches **batches);
void analyze_batches_free(analyze_batches *batches); ///< NULL is allowed.  [main]

// ---- analyze_line.c

int analyze_line_width(const analyze_options *options); ///< batches that are under way at once
/// Do all batches on options->n_jobs threads. Errors: only what ends the whole run.  [main]
WT_CHECKED wt_status analyze_line_run(const analyze_batches *batches, void (*tick)(void *user), void *user,
                                      analyze_times *times);

#ifdef __cplusplus
}
#endif
#endif
