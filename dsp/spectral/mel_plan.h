/// Private to dsp/: what a mel plan holds.
#ifndef WT_MEL_PLAN_H
#define WT_MEL_PLAN_H

#include "op.h"
#include "spectrum_kernel.h"
#include "stft_internal.h"

#include <warptone/mel.h>

typedef struct wt__mel_cuda wt__mel_cuda;

typedef struct wt__mel_slot {
    wt_stft *stft;
    float *scratch; ///< powers [lanes][row], or of frames at once, turned [bins][lanes], sums [n_mels][lanes]
    float *edge;    ///< of frames at once: samples of a tile that reaches over an end of the signal
} wt__mel_slot;

struct wt_mel {
    wt_mel_config config; ///< defaults resolved
    wt_device *device;    ///< NULL = immediate calls only
    int64_t n_frames, n_tiles, n_lines; ///< of a line; of a line; signals times channels
    int bins, lanes;
    size_t row;                                  ///< floats of a padded row of bins
    wt__fft_frames *frames;                      ///< a tile's frames at once, or NULL
    size_t tile_floats;                          ///< of a slot's scratch, before what is turned
    int *begins, *lengths;                       ///< [n_mels]
    float *weights;                              ///< the bands' bins, one band after the other
    bool logarithm, finish;                      ///< finish: something follows when the peak is known
    float amin, scale, shift;                    ///< scale log2(max(x, amin)) + shift
    float range, gain, offset, relative;         ///< wt_spectrum_finish_args
    int n_slots;
    wt__mel_slot *slots;
    wt__op_share share;
    wt__mel_cuda *cuda;
};

/// wt_mel_create with `matrix` [n_mels][n_out] to follow (on a GPU; the caller does it on the CPU), n_out 0 = none.
WT_CHECKED wt_status wt__mel_create(wt_device *device, const wt_mel_config *config, const float *matrix, int n_out,
                                    wt_mel **mel);

WT_CHECKED wt_status wt__mel_cuda_create(const wt_mel *mel, const float *matrix, int n_out, wt__mel_cuda **cuda);
void wt__mel_cuda_destroy(wt__mel_cuda *cuda);
WT_CHECKED wt_status wt__mel_cuda_enqueue(const wt_mel *mel, wt_stream *stream, uintptr_t pcm, uintptr_t bands,
                                          uintptr_t product);
/// Checked addresses: samples, where the bands go, and on a GPU the matrix's product (0 without one).
WT_CHECKED wt_status wt__mel_enqueue(wt_mel *mel, wt_stream *stream, uintptr_t pcm, uintptr_t bands,
                                     uintptr_t product);
#endif
