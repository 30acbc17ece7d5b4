/// Offline processing of files through a preset's chain: one or a million, on the CPU or on a GPU.
///
/// process_list.c   which files, and where their results go
/// process_job.c    one file: read, meter, skip the latency, write, commit
/// process_cpu.c    worker threads, a chain each, a file at a time
/// process_gpu.c    one chain with an instance a file, all of them in flight at once
#ifndef WT_PROCESS_H
#define WT_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <warptone/audio_file.h>
#include <warptone/chain.h>
#include <warptone/loudness.h>
#include <warptone/preset.h>

typedef struct process_change { // --set node.param=value
    char *node, *param;
    float value;
} process_change;

typedef struct process_options {
    const wt_preset *preset;
    wt_device *device; // NULL = CPU
    int n_jobs;        // worker threads
    int rate_hz;       // process and write at this rate; 0 = the file's
    bool keep_tail;
    bool no_loudness;
    const char *format; // NULL = by the output's name
    wt_sample_format sample;
    bool no_dither;
    wt_audio_reader_config raw; // for "-" as input
    const process_change *changes;
    int n_changes;
} process_options;

/// One file and what became of it.
typedef struct process_item {
    char *input, *output;
    bool skipped; // --resume found it done
    atomic_bool finished;
    wt_status status;
    char message[512];  // the error, or a warning: about an input that was repaired, and what `note` says
    char note[160];     // what else is to be told of it
    double audio_s;     // length of the input
    double wall_s;      // from open to commit
    int latency_frames; // compensated
    int64_t n_frames_out, n_repaired, n_clipped;
    int64_t n_left; // frames of an input that was cut off; 0 = it is whole
    int rate_hz, channels, out_channels;
    wt_loudness_values before, after;
} process_item;

/// What all workers of a run share.
typedef struct process_run {
    const process_options *options;
    process_item *items;
    int n_items;
    atomic_int next;                // the next item to take
    atomic_int n_done;
    atomic_llong done_milliseconds; // of audio
} process_run;

// ---- process_list.c

typedef struct process_paths {
    char *const *inputs; // files, folders (walked, known names only) or "-"
    int n_inputs;
    const char *output;    // with more than one input, or a folder, a folder that mirrors the inputs
    const char *extension; // NULL = as the input
    bool resume;           // an output that is not older than its input is marked skipped
    bool dry_run;          // make no folders
} process_paths;

/// Files to do, and the folders of their outputs.
/// Errors: WT_ERR_FILE, WT_ERR_BAD_ARG (two inputs with one output, a file where a folder is wanted), WT_ERR_NOT_FOUND
/// (nothing).
WT_CHECKED wt_status process_list(const process_paths *paths, process_item **items, int *n_items);
void process_list_free(process_item *items, int n_items);
bool process_is_folder(const char *path); // false for what is not there

// ---- process_job.c

typedef struct process_job {
    const process_options *options;
    process_item *item;
    wt_audio_reader *reader;
    wt_audio_writer *writer;
    wt_loudness *before, *after;
    int64_t n_in, n_fed, n_seen, n_written; // frames read, given to the chain, come back, written
    int64_t latency, tail;
    int channels, out_channels, rate_hz;
    bool ended;  // the input is at its end, n_in is final
    int64_t begin_ns;
} process_job;

/// Open the reader and learn rate and channels. On an error the item holds it.
WT_CHECKED wt_status process_job_open(process_job *job, const process_options *options, process_item *item);
/// Open the writer for what this chain gives.
WT_CHECKED wt_status process_job_start(process_job *job, const wt_chain *chain);
/// Next frames for the chain into [channels][stride]: the input, then silence while latency and tail come out.
/// *n_given 0 = nothing more is needed.
WT_CHECKED wt_status process_job_fill(process_job *job, float *in, int n_frames, size_t stride, int *n_given);
/// What the chain made of them.
WT_CHECKED wt_status process_job_drain(process_job *job, float *out, int n_frames, size_t stride);
/// This thread's last error as the item's, with the input's name where the sentence has none.
void process_note_error(process_item *item, wt_status status);
/// What was wrong with an input that was read all the same.
void process_note_input(process_item *item, const wt_audio_info *info);
/// The same as the item's message; samples that were not finite "became" or "count as" 0.
void process_note_warnings(process_item *item, bool named, const char *fate);
/// Commit or discard, fill in the item, close.
void process_job_close(process_job *job, process_run *run, wt_status status);

/// The preset's chain for this rate and channel count, with the changes of --set.
WT_CHECKED wt_status process_build_chain(const process_options *options, int rate_hz, int channels, int n_instances,
                                         int stagger, wt_chain **chain);

// ---- the two ways

/// Process all items that are not skipped; errors of single files stand in their items. `progress` is called now and
/// then on this thread. Errors: only what ends the whole run.
WT_CHECKED wt_status process_on_cpu(process_run *run, void (*progress)(process_run *run, void *user), void *user);
WT_CHECKED wt_status process_on_gpu(process_run *run, void (*progress)(process_run *run, void *user), void *user);

#endif
