/// What both sides of the invertible constant-Q transform need.
#ifndef WT_DSP_NSGT_PLAN_H
#define WT_DSP_NSGT_PLAN_H

#include "nsgt_kernel.h"

#include <warptone/nsgt.h>

/// Rows with the same number of points, transformed together.
typedef struct wt__nsgt_group {
    int first, n_rows, n_points;
} wt__nsgt_group;

typedef struct wt__nsgt_plan {
    wt_nsgt_config config;                    ///< resolved
    int n_rows, n_groups, n_windows, n_lines; ///< a line is a slice of a channel
    double *hz;                               ///< [n_rows]
    wt_nsgt_place *rows;                      ///< [n_rows]
    wt__nsgt_group *groups;
    float *slice_window;         ///< [slice]
    float *analysis, *synthesis; ///< [n_windows]
    int *rows_at;                ///< [slice / 2 + 1][2]
    int64_t n_points;            ///< of all lines
} wt__nsgt_plan;

WT_CHECKED wt_status wt__nsgt_plan_create(const wt_nsgt_config *config, wt__nsgt_plan *plan);
void wt__nsgt_plan_destroy(wt__nsgt_plan *plan);

typedef struct wt__nsgt_cuda wt__nsgt_cuda;
WT_CHECKED wt_status wt__nsgt_cuda_create(wt_device *device, const wt__nsgt_plan *plan, wt__nsgt_cuda **cuda);
void wt__nsgt_cuda_destroy(wt__nsgt_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__nsgt_cuda_forward(wt__nsgt_cuda *cuda, wt_stream *stream, const float *pcm, int64_t n,
                                           int64_t first, wt_buffer *out, size_t out_offset);
WT_CHECKED wt_status wt__nsgt_cuda_inverse(wt__nsgt_cuda *cuda, wt_stream *stream, const wt_buffer *in,
                                           size_t in_offset, int64_t n, int64_t first, float *pcm);

#endif
