/// Private to dsp/: frames of signals there and back by transforms in double that lie in memory, of any length, a tile
/// of frames at a time. What no thread block's shared memory holds goes this way.
#ifndef WT_WIDE_CUDA_H
#define WT_WIDE_CUDA_H

#include "fft_double_cuda.h"
#include "stft_internal.h"
#include "wide_kernel.h"

typedef struct wt__wide {
    const char *op;
    wt__fft64_cuda fft;
    wt_module *module;
    wt_kernel *level, *fill, *add;
    wt_buffer *window, *levels;
    wt_wide_pairs pairs;         ///< of the first tile
    int64_t n_pairs;             ///< in all
    int at_once;                 ///< pairs of a tile
    wt_wide_fill_args fill_args; ///< window, hop, margin, pad
} wt__wide;

/// For so many lines of frames, each pair's row `sets` times, one set behind the other in a tile. window [n_fft] and as
/// many more as there are sets; NULL = none. `op` is borrowed until release. Errors: those of wt__fft64_cuda_create.
WT_CHECKED wt_status wt__wide_create(const char *op, wt_device *device, int n_fft, int64_t n_lines, int64_t n_frames,
                                     int sets, const double *window, wt__wide *wide);
/// The same with the window, hop, margin and padding of a short-time transform.
WT_CHECKED wt_status wt__wide_load(const char *op, wt_device *device, const wt_stft *stft, int64_t n_lines,
                                   int64_t n_frames, wt__wide *wide);
/// From here on every frame is brought near 1 by a power of two, so that a quiet one keeps its digits beside a loud
/// one, and one that is not finite is NaN alone. Of a transform whose bins wide_bins takes.
WT_CHECKED wt_status wt__wide_level(wt_device *device, wt__wide *wide);
void wt__wide_release(wt__wide *wide); ///< a zeroed one is allowed
/// The tile whose first pair of all is `first`: for (first = 0; first < n_pairs; first += at_once).
wt_wide_pairs wt__wide_tile(const wt__wide *wide, int64_t first);
/// A kernel with a thread for each of `each` numbers of a tile's pairs.
WT_CHECKED wt_status wt__wide_launch(const wt__wide *wide, wt_kernel *kernel, wt_stream *stream,
                                     const wt_wide_pairs *tile, int each, wt_arg args);
/// Windowed frames of fill_args' samples, and transformed: their levels first, if frames have some.
WT_CHECKED wt_status wt__wide_forward(const wt__wide *wide, wt_stream *stream, const wt_wide_fill_args *args);
/// A tile's frames, transformed back, to sums [n_lines][n_sums] of the padded signals, zeros before the first tile.
WT_CHECKED wt_status wt__wide_add(const wt__wide *wide, wt_stream *stream, const wt_wide_pairs *tile, int64_t n_sums,
                                  int64_t used, double *sums);

#endif
