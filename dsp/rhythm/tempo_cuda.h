/// Private to dsp/: tempograms, tempi and beats on a GPU.
#ifndef WT_TEMPO_CUDA_H
#define WT_TEMPO_CUDA_H

#include "op.h"
#include "tempo_kernel.h"
#include "tempogram_internal.h"

typedef struct wt__tempogram_cuda wt__tempogram_cuda;
typedef struct wt__tempo_cuda wt__tempo_cuda;
typedef struct wt__tempo_rows_cuda wt__tempo_rows_cuda;
typedef struct wt__beat_cuda wt__beat_cuda;

WT_CHECKED wt_status wt__tempogram_cuda_create(wt_device *device, const wt_tempogram *tempogram,
                                               wt__tempogram_cuda **cuda);
void wt__tempogram_cuda_destroy(wt__tempogram_cuda *cuda);
/// Its rows, but where the envelope is; and whether they are by transforms in double.
const wt_tempogram_args *wt__tempogram_cuda_args(const wt__tempogram_cuda *cuda);
bool wt__tempogram_cuda_is_wide(const wt__tempogram_cuda *cuda);
WT_CHECKED wt_status wt__tempogram_cuda_enqueue(const wt__tempogram_cuda *cuda, wt_stream *stream,
                                                const float *envelope, float *out);

/// `choice` points to the host's tables.
WT_CHECKED wt_status wt__tempo_cuda_create(wt_device *device, const wt_tempogram *tempogram,
                                           const wt_tempo_choice *choice, wt__tempo_cuda **cuda);
void wt__tempo_cuda_destroy(wt__tempo_cuda *cuda);
WT_CHECKED wt_status wt__tempo_cuda_enqueue(const wt__tempo_cuda *cuda, wt_stream *stream, const float *envelope,
                                            double *bpm);

/// A tempo a row of the tempogram's signals, by the choice of `tempo`, which is borrowed.
WT_CHECKED wt_status wt__tempo_rows_cuda_create(wt_device *device, const wt_tempogram *tempogram,
                                                const wt__tempo_cuda *tempo, wt__tempo_rows_cuda **cuda);
void wt__tempo_rows_cuda_destroy(wt__tempo_rows_cuda *cuda);
WT_CHECKED wt_status wt__tempo_rows_cuda_enqueue(const wt__tempo_rows_cuda *cuda, wt_stream *stream,
                                                 const float *envelope, double *bpm);
/// Its tables, on the device.
const wt_tempo_choice *wt__tempo_cuda_choice(const wt__tempo_cuda *cuda);

/// The GPU part of a plan, NULL without one.
const wt__tempo_cuda *wt__tempo_on_gpu(const wt_tempo *plan);

/// `tempo` NULL = `known_bpm`. Of `args`: known_bpm, frames_per_minute, tightness, n_frames,
/// max_period, no_trim.
WT_CHECKED wt_status wt__beat_cuda_create(wt_device *device, const wt_beat_args *args, int n_signals,
                                          const wt__tempo_cuda *tempo, wt__beat_cuda **cuda);
void wt__beat_cuda_destroy(wt__beat_cuda *cuda);
WT_CHECKED wt_status wt__beat_cuda_enqueue(const wt__beat_cuda *cuda, wt_stream *stream, const float *envelope,
                                           int *frames, wt_beats *found);

#endif
