/// What a constant-Q transform does, octave by octave; shared by its CPU and GPU sides.
#ifndef WT_DSP_CQT_PLAN_H
#define WT_DSP_CQT_PLAN_H

#include "cqt_basis.h"
#include "cqt_kernel.h"

/// One octave: filters over frames of the signal, halved `level` times.
typedef struct wt__cqt_part {
    int level, hop, n_fft, first, n_rows;
    bool pseudo; ///< real filters over the magnitudes of Hann windowed frames
    int *begin;  ///< [n_rows + 1]
    int *bin;
    float *value; ///< pairs, all factors included; pseudo: single numbers
} wt__cqt_part;

/// Zeros behind a signal that is halved early, in samples of the rate it comes to.
enum { WT__CQT_TAIL = 208 };

typedef struct wt__cqt_plan {
    wt_cqt_config config; ///< resolved
    bool magnitude;
    int early;    ///< halvings before the first octave, which soxr does in one go, with filters of their own: what one
                  ///< gives behind the signal goes on into the next
    int n_levels; ///< signals: the given one, and n_levels - 1 halvings
    int n_parts;
    wt__cqt_part *parts; ///< ascending levels
    double *hz, *lengths; ///< [n_bins]
} wt__cqt_plan;

WT_CHECKED wt_status wt__cqt_plan_create(const wt_cqt_config *config, wt__cqt_plan *plan);
void wt__cqt_plan_destroy(wt__cqt_plan *plan);

/// Samples of a signal of n after `level` halvings.
static inline int64_t wt__cqt_samples(int64_t n, int level)
{
    for (int i = 0; i < level; i++) n = (n + 1) / 2;
    return n;
}

/// What soxr gives of them when it halves so often in one go: rounded, where librosa rounds up and fills with a zero.
static inline int64_t wt__cqt_sounding(int64_t n, int level)
{
    return level ? (n + ((int64_t)1 << (level - 1))) >> level : n;
}

int64_t wt__cqt_plan_frames(const wt__cqt_plan *plan, int64_t n);
int64_t wt__cqt_plan_reach(const wt__cqt_plan *plan);

/// Where in a halver's run the part of a signal lies that begins at sample `begin`, behind `level` halvings.
static inline int wt__cqt_phase(int64_t begin, int level) { return (int)((begin >> level) % WT_CQT_HALVE_OUT); }

// ---- the GPU side

typedef struct wt__cqt_cuda wt__cqt_cuda;
WT_CHECKED wt_status wt__cqt_cuda_create(wt_device *device, const wt__cqt_plan *plan, int64_t max_samples,
                                         wt__cqt_cuda **cuda);
void wt__cqt_cuda_destroy(wt__cqt_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__cqt_cuda_enqueue(wt__cqt_cuda *cuda, wt_stream *stream, const float *in, int64_t n,
                                          const wt_cqt_tile *tile, float *out);

#endif
