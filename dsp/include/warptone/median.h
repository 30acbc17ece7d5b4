/// Median filters over rectangles, and soft masks: what separation by medians is made of.
#ifndef WARPTONE_MEDIAN_H
#define WARPTONE_MEDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_MEDIAN_MAX_KERNEL (1 << 30)

typedef struct wt_median_config {
    int rows, columns;               ///< of an image, 1 or more
    int kernel_rows, kernel_columns; ///< 0 = 1; at most WT_MEDIAN_MAX_KERNEL values together
    int lines;                       ///< images a call, 0 = 1
} wt_median_config;

/// Tables and scratch, which one call at a time uses.
typedef struct wt_median wt_median;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_median_create(const wt_median_config *config, wt_median **median);
void wt_median_destroy(wt_median *median); ///< NULL is allowed.  [worker]

/// The value of rank k / 2 of the k values under the kernel: of an even k the upper one of the middle two. Images are
/// mirrored with their ends repeated; the kernel reaches kernel / 2 before and (kernel - 1) / 2 behind.
///
///   in, out   [lines][rows][columns], not the same
///
/// Up to 1023 values by selection, which takes time with their number; more by sorted strips as wide as the kernel's
/// shorter side, which takes time with that side alone.
///
/// Source: scipy.ndimage.median_filter, mode "reflect".  Judge: scipy, identical.  [rt, running]
WT_RT void wt_median_run(wt_median *median, const float *in, float *out);

typedef struct wt_median_plan wt_median_plan;

/// The same for a stream of `device`, which is borrowed until the plan is destroyed.
/// Errors: those of wt_median_create, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_median_plan_create(wt_device *device, const wt_median_config *config, wt_median_plan **plan);
void wt_median_plan_destroy(wt_median_plan *plan); ///< NULL is allowed.  [worker]
/// Queue it; offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: wt_median_run, identical.  [worker]
WT_CHECKED wt_status wt_median_plan_enqueue(wt_median_plan *plan, wt_stream *stream, const wt_buffer *in,
                                            size_t in_offset, wt_buffer *out, size_t out_offset);

/// out = x^power / (x^power + reference^power), scaled so that nothing overflows. Where both are 0: 1/2 with
/// `split_zeros`, else 0. Infinite power: 1 where x > reference, else 0.
///
///   x, reference, out   [n], 0 or more; out may be either
///
/// Errors: WT_ERR_BAD_ARG (power not above 0).
/// Source: librosa 0.11.0 util/utils.py, softmask().  Judge: librosa in float64, 2e-7.  [any but rt]
WT_CHECKED wt_status wt_softmask(const float *x, const float *reference, size_t n, float power, bool split_zeros,
                                 float *out);

#ifdef __cplusplus
}
#endif
#endif
