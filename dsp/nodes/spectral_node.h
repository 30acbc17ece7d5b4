/// Private to dsp/: the CPU side of the nodes that work in a short-time spectrum
/// (kernels/nodes/spectral_node_kernel.h).
#ifndef WT_SPECTRAL_NODE_H
#define WT_SPECTRAL_NODE_H

#include "node_types.h"
#include "real_core.h"
#include "spectral_node_kernel.h"

#include <warptone/simd.h>

/// What a node's plan() asks for.
typedef struct wt__spectral_config {
    int n_fft, hop;
    int channels;                ///< 0 = of the first input
    int out_frames;              ///< of the synthesis window, up to n_fft; 0 = the sound passes unchanged
    const double *window;        ///< [n_fft]; NULL = Hann, periodic
    const double *synthesis;     ///< [out_frames]; NULL = Hann, scaled so that the bins untouched give the sound back
    size_t plan_bytes;           ///< of the node's plan, whose first member is a spectral_plan
    size_t table_floats;         ///< of the node's own, behind them
    int in_history, out_history; ///< frames that the rings keep beyond a window
    int own_floats;              ///< of the state, a channel
    int shared_floats;           ///< of the state, once
} wt__spectral_config;

/// A power of two within [min, max]. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt__spectral_fft_size(const wt_node_setup *setup, const char *option, int min, int max, int *n);
/// A hop: 0 = n_fft / standard, else up to n_fft / least. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt__spectral_hop(const wt_node_setup *setup, int n_fft, int standard, int least, int *hop);

/// Fill `out` but for latency beyond the transform's: plan with windows and roots, state, scratch, transform tables.
/// The node's own tables begin at float `*table` of the plan. Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__spectral_plan(const wt_node_setup *setup, const wt__spectral_config *config, wt_node_plan *out,
                                       int *table);
void wt__spectral_release(void *host);

enum { WT__SPECTRAL_PLANE = SPECTRAL_MAX_FFT / 2 + 32, WT__SPECTRAL_CORE = 4 * (8192 + 32) };

/// Room of one transform, on the stack.
typedef struct wt__spectral_work {
    _Alignas(64) float z[2 * WT__SPECTRAL_PLANE];
    _Alignas(64) float core[WT__SPECTRAL_CORE];
    _Alignas(64) float re[WT__SPECTRAL_PLANE], im[WT__SPECTRAL_PLANE]; ///< bins 0 .. n_fft / 2
    _Alignas(64) float spare[2 * WT__SPECTRAL_PLANE];
} wt__spectral_work;

/// n_fft frames before position `end` of a channel's ring, windowed, to work->re, im.  [rt]
WT_RT void wt__spectral_forward(const spectral_plan *p, const wt__real_core *fft, const float *ring, long long end,
                                wt__spectral_work *work);
/// n_fft points in work->z to work->re, im.  [rt]
WT_RT void wt__spectral_bins(const spectral_plan *p, const wt__real_core *fft, wt__spectral_work *work);
/// work->re, im to n_fft points in work->z, times n_fft.  [rt]
WT_RT void wt__spectral_inverse(const spectral_plan *p, const wt__real_core *fft, wt__spectral_work *work);

/// Add work->z, windowed, to a ring of output from `end` on; its last hop is the first that reaches there.  [rt]
WT_RT void wt__spectral_add(const spectral_plan *p, float *ring, const wt__spectral_work *work, long long end);

/// One channel's transform that ends at position `end`: work on work->re, im.
typedef void (*wt__spectral_frame)(const void *user, int c, float *own, wt__spectral_work *work, long long end);

/// The node's process(). `done` is called when all channels' frames that end at `end` are through; may be NULL.  [rt]
WT_RT void wt__spectral_process(const wt_node_io *io, const spectral_plan *p, float *state, wt__spectral_frame frame,
                                void (*done)(const void *user, long long end), const void *user);

/// Likewise for a node whose frames need nothing but its plan and coefficients, which are `user`.  [rt]
typedef struct wt__spectral_job {
    const void *plan, *coeffs;
} wt__spectral_job;
WT_RT void wt__spectral_process_frames(const wt_node_io *io, const void *plan, const void *coeffs, void *state,
                                       wt__spectral_frame frame);

#endif
