/// The files of a run in batches for a GPU: analyze_batch.c puts them together, analyze_work.c has
/// the steps of each batch, analyze_line.c takes them.
#ifndef WT_ANALYZE_BATCH_H
#define WT_ANALYZE_BATCH_H

#include "analyze_run.h"

/// What its header says of a file.
typedef struct analyze_facts {
    int item;
    int rate_hz, channels;
    bool integers, alone;   // alone: not for a batch
    int64_t n, n_key, n_in; // frames; what those of a batch have in common; read, with silence behind
} analyze_facts;

/// Files that go together.
typedef struct analyze_span {
    int first, n_files, n_room; // n_room: of the plans
} analyze_span;

struct analyze_batches {
    const analyze_options *options;
    process_run *run;
    analyze_facts *files; // [n_files], those of a batch side by side
    int n_files;
    analyze_span *spans; // [n_spans], a batch each
    int n_spans;
};

// ---- analyze_work.c

/// A batch under way. options, run, place, files, n_files and n_room are set by who begins it.
typedef struct analyze_work {
    const analyze_options *options;
    process_run *run;
    analyze_place *place;
    const analyze_facts *files; // [n_files]
    int n_files, n_room;
    int64_t begin_ns;
    wt_status status; // of all
    bool *left;       // [n_files] to be done by itself
    analyze_batch batch;
    int64_t *lengths;        // [n_files channels]
    const char **paths;      // [n_files]
    analyze_result *results; // [n_files]
} analyze_work;

/// False: no memory, all are done by themselves; then there is nothing to read and to compute. analyze_work_end also
/// after that.
bool analyze_work_begin(analyze_work *work);
void analyze_work_read(analyze_work *work, int k);  ///< File k; several threads at once.
void analyze_work_compute(analyze_work *work);      ///< All files were read.
void analyze_work_alone(analyze_work *work);        ///< Those that the batch has not.
void analyze_work_write(analyze_work *work, int k); ///< File k, and count it; several threads at once.
void analyze_work_end(analyze_work *work);

#endif
