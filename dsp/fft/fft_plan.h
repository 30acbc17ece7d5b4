/// Private to dsp/fft*.c: what a plan holds.
#ifndef WT_FFT_PLAN_H
#define WT_FFT_PLAN_H

#include "fft_internal.h"

#include <stdint.h>

typedef struct wt__fft_cuda wt__fft_cuda;

struct wt_fft {
    wt_fft_config config; ///< defaults resolved
    wt_device *device;    ///< NULL = immediate calls only
    wt__fft_core *core;   ///< n points, or n / 2 when halved
    wt__fft_short_fn one;         ///< one transform in one call, with these passes, or NULL
    const wt__fft_pass *passes;
    wt__fft_rows_fn rows;         ///< any number of rows of pairs in one call, with these passes, or NULL
    float scale; ///< of the last pass
    int bins, in_count, out_count, in_width, out_width;
    int group;             ///< transforms the core works on at once
    bool pairs;            ///< by passes of pairs
    bool halved;           ///< real, even n: a complex transform of n / 2 points
    float *real_twiddles;  ///< of the halved transform, or of pairs
    ptrdiff_t row;         ///< floats of a row of the scratch
    size_t scratch_floats; ///< of one thread
    size_t core_floats;    ///< of these, the core's
    int n_slots;           ///< threads that may run at once: 1, or those of a CPU device
    float *scratch;        ///< [n_slots][scratch_floats]
    wt__fft_cuda *cuda;    ///< on a CUDA device
};

/// wt_fft_create on at most `max_lanes` vector lanes, 0 = all.
WT_CHECKED wt_status wt__fft_create_lanes(wt_device *device, const wt_fft_config *config, int max_lanes, wt_fft **plan);

/// The plan on a GPU: modules, tables, work space (fft_cuda.c).
WT_CHECKED wt_status wt__fft_cuda_create(const wt_fft *plan, wt__fft_cuda **cuda);
void wt__fft_cuda_destroy(wt__fft_cuda *cuda);
WT_CHECKED wt_status wt__fft_cuda_enqueue(const wt_fft *plan, wt_stream *stream, uintptr_t in, uintptr_t out);

#endif
