/// Private to dsp/pyin*.c: the model's tables, a frame's candidates, and the likeliest path through them.
#ifndef WT_PYIN_INTERNAL_H
#define WT_PYIN_INTERNAL_H

#include "pyin_kernel.h"
#include "yin_internal.h"

// ---- model (pyin_model.c)

typedef struct wt__pyin_tables {
    wt_pyin_model model; ///< points into `values`
    double *values;
    size_t count;
} wt__pyin_tables;

/// Check the options, resolve their defaults, fill the tables. `args` is of the frames.
WT_CHECKED wt_status wt__pyin_tables_create(const wt_pyin_config *config, const wt_yin_args *args,
                                            wt__pyin_tables *tables);
void wt__pyin_tables_destroy(wt__pyin_tables *tables); ///< a zeroed one is allowed
/// The same model on tables that lie elsewhere.
wt_pyin_model wt__pyin_model_at(const wt__pyin_tables *tables, const double *values);

// ---- candidates (pyin_candidates.c)

typedef struct wt__pyin_candidates {
    wt_pyin_frame frame;
    int *bins;         ///< [max_troughs]
    double *log_probs; ///< [max_troughs]
    int *troughs;      ///< [max_troughs] scratch
    int *first;        ///< [max_troughs] scratch: first threshold above each
    int *counts;       ///< [n_thresholds + 1] scratch
    double *weights;   ///< [n_thresholds] scratch
} wt__pyin_candidates;

WT_CHECKED wt_status wt__pyin_candidates_create(const wt_pyin_model *model, wt__pyin_candidates *candidates);
void wt__pyin_candidates_destroy(wt__pyin_candidates *candidates);
/// The observation of a frame from its difference function of n values; NULL = no candidates.  [rt]
WT_RT void wt__pyin_observe(const wt_pyin_model *model, const wt_yin_args *args, const double *function,
                            wt__pyin_candidates *candidates);

// ---- path (pyin_viterbi.c)

typedef struct wt__pyin_viterbi {
    const wt_pyin_model *model;
    int row, margin;           ///< doubles of a half row; of the margins of the working arrays
    double *unvoiced, *voiced; ///< sources within margins
    double *to_voiced, *to_unvoiced;
} wt__pyin_viterbi;

WT_CHECKED wt_status wt__pyin_viterbi_create(const wt_pyin_model *model, wt__pyin_viterbi *viterbi);
void wt__pyin_viterbi_destroy(wt__pyin_viterbi *viterbi);
/// Doubles of a row of values: [2][row], voiced and unvoiced.
size_t wt__pyin_row_doubles(const wt_pyin_model *model);
/// Values of a frame from those of the frame before; `before` NULL for the first.  [rt]
WT_RT void wt__pyin_step(wt__pyin_viterbi *viterbi, const wt__pyin_candidates *seen, const double *before,
                         double *values);
/// The likeliest last state; the likeliest state before `state` of the next frame.  [rt]
WT_RT int wt__pyin_last(const wt_pyin_model *model, const double *values);
WT_RT int wt__pyin_from(const wt_pyin_model *model, const double *before, int state);

// ---- voicing (pyin_voicing.c)

/// Frames of one signal that the path calls voiced and whose centre is not, become unvoiced.  [rt]
WT_RT void wt__pyin_calibrate(const wt_yin_args *args, const float *pcm, float *f0, float *voiced, bool keep_unvoiced);

#endif
