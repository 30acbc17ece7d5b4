/// Voice activity by energy: is a channel louder than its own background? The floor adapts, the decision has two
/// thresholds and a hangover. It knows loud from quiet, not speech from music.
#ifndef WARPTONE_VAD_H
#define WARPTONE_VAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_vad wt_vad;

typedef struct wt_vad_config {
    int rate_hz;        ///< 8000 .. 384000; 0 = 48000
    int channels;       ///< 1 .. 64, each decided for itself; 0 = 2
    double enter_db;    ///< above the floor, two windows running: speech begins; 0 = 8
    double leave_db;    ///< above the floor: speech goes on; at most enter_db; 0 = 4
    double min_db;      ///< a quieter window is never speech, dB full scale; 0 = -60
    double hangover_ms; ///< speech goes on so long after the last window that was loud enough; 0 = 200
} wt_vad_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_vad_create(const wt_vad_config *config, wt_vad **vad);
void wt_vad_destroy(wt_vad *vad); ///< NULL is allowed.  [any but rt]

WT_RT void wt_vad_reset(wt_vad *vad);         ///< Nothing heard yet.  [rt, running]
int wt_vad_window_frames(const wt_vad *vad);  ///< Frames of a window: 10 ms, rounded.  [any]
int wt_vad_latency_frames(const wt_vad *vad); ///< From a sound's first frame to the decision: two windows.  [any]

/// One block. Windows lie end to end from reset on, whatever the blocks: every cut gives the same decisions.
/// A window with a sample that is not finite counts as silent and leaves the floor alone.
///
///   in        [channels][n_frames]   borrowed for the call
///   speech    [n_frames / window + 1][channels] of room: the decisions of the windows that ended; NULL = not wanted
///
/// Returns how many windows ended.
/// Source: floor by minimum statistics, after R. Martin, IEEE Trans. SAP 9(5), 2001, with one fixed smoothing.
/// Judge:  energy of the clean recording under real noise at 0 dB, see docs/voice.md.  [rt, running]
WT_RT int wt_vad_process(wt_vad *vad, const float *const *in, int n_frames, bool *speech);

WT_RT bool wt_vad_active(const wt_vad *vad, int c);     ///< The last decision for channel c.  [rt, running]
WT_RT double wt_vad_level_db(const wt_vad *vad, int c); ///< Power of its last window, dBFS.  [rt, running]
WT_RT double wt_vad_floor_db(const wt_vad *vad, int c); ///< Background, dB full scale, -200 at least.  [rt, running]

// ---- whole signals, on a stream

typedef struct wt_vad_plan_config {
    wt_vad_config vad; ///< channels: not looked at
    int64_t n_samples; ///< of a line, 0 or more
    int n_lines;       ///< signals times channels; 0 = 1
} wt_vad_plan_config;

typedef struct wt_vad_plan wt_vad_plan;

/// A part of longer lines. Its windows lie end to end from sample `from` of each line on, and go on where those of the
/// part before ended: a sample is in one window only.
typedef struct wt_vad_part {
    int64_t from;
    int n_windows;
    bool continued; ///< false: nothing heard yet
} wt_vad_part;

/// `device` is borrowed until the plan is destroyed; NULL: wt_vad_plan_run alone.
/// Errors: those of wt_vad_create, WT_ERR_BAD_ARG (n_samples, n_lines), on a GPU those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_vad_plan_create(wt_device *device, const wt_vad_plan_config *config, wt_vad_plan **plan);
void wt_vad_plan_destroy(wt_vad_plan *plan); ///< NULL is allowed.  [worker]

int wt_vad_plan_windows(const wt_vad_plan *plan);        ///< That lie in a line whole.  [any]
int wt_vad_plan_window_frames(const wt_vad_plan *plan);  ///< As wt_vad_window_frames.  [any]
size_t wt_vad_plan_state_bytes(const wt_vad_plan *plan); ///< Of all lines, the same on every backend.  [any]

/// Decide window after window on the calling thread, as wt_vad_process does.
///
///   pcm      [n_lines][n_samples]
///   part     within the lines; NULL = all windows, nothing heard before
///   state    wt_vad_plan_state_bytes, aligned to 8; read when the part is continued, and written; NULL with part NULL
///   speech   [n_lines][n_windows]   1 = speech
///
/// [rt, running]
WT_RT void wt_vad_plan_run(const wt_vad_plan *plan, const float *pcm, const wt_vad_part *part, void *state,
                           int *speech);
/// Queue it; offsets in bytes, the state's a multiple of 8.
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit, a part outside the lines.  Judge: CUDA: the CPU, the same
/// decisions.  [worker]
WT_CHECKED wt_status wt_vad_plan_enqueue(wt_vad_plan *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                         const wt_vad_part *part, wt_buffer *state, size_t state_offset,
                                         wt_buffer *speech, size_t speech_offset);

#ifdef __cplusplus
}
#endif
#endif
