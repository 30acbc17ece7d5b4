/// What a run of `warptone process` tells: text for people, JSON for programs, a picture, an exit code.
#ifndef WT_PROCESS_REPORT_H
#define WT_PROCESS_REPORT_H

#include "process.h"

#include <jansson.h>
#include <stdio.h>

typedef struct process_summary {
    const process_run *run;
    const wt_device *device; // NULL = CPU
    double wall_s;
    bool dry_run;
} process_summary;

typedef struct process_totals {
    int done, skipped, failed, untouched;
    int bad_length; // of those that failed: too short, or too long
    double audio_s; // of what is done
} process_totals;

process_totals process_add_up(const process_run *run);
/// A string of a file's name or of a sentence with one; bytes that are no UTF-8 become '?'.
json_t *process_json_name(const char *name);
/// What every file of a run tells: names, status, message, and when it is done rate, channels and times.
json_t *process_item_json(const process_item *item);

void process_report_text(const process_summary *summary, FILE *out, bool quiet);
/// {"backend", "wall_s", "audio_s", "times_real_time", "failed", "files": [{"input", "output", "status", ...}]}
void process_report_json(const process_summary *summary, FILE *out);

/// Waveform and spectrogram of an item's input and output. Errors: those of reading and of writing the PNG.
WT_CHECKED wt_status process_plot(const process_item *item, const char *path);

/// What exit_code_of says of every file, one or a thousand: EXIT_FAILED where it is not the same of all; EXIT_SIGNAL
/// and the signal when one came.
int process_exit_code(const process_run *run, bool dry_run);

#endif
