/// What comes in and what goes out, to files, by a thread of its own: the audio thread only fills the taps' rings.
#ifndef WT_LIVE_RECORD_H
#define WT_LIVE_RECORD_H

#include <stdint.h>
#include <warptone/live.h>

typedef struct live_record live_record;

typedef struct live_record_config {
    wt_live *live;                  ///< borrowed until close
    const char *in_path, *out_path; ///< NULL = not recorded; the format follows the extension
    int rate_hz;                    ///< of the files; also when the live rate changes
} live_record_config;

/// Errors: those of wt_audio_writer_open and wt_live_tap_open; WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status live_record_open(const live_record_config *config, live_record **record);
/// Write what is left and rename the files into place. Errors: WT_ERR_FILE, also of a recording that ended early.
/// NULL is allowed.  [worker, no audio]
wt_status live_record_close(live_record *record);
/// Frames written, and frames that found no room because writing was too slow. `sentence` is what ended a recording
/// early, "" = nothing; borrowed until close.  [any but rt]
void live_record_stats(const live_record *record, uint64_t *n_frames, uint64_t *n_lost, const char **sentence);

#endif
