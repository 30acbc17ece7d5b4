/// Private to dsp/: filtering by nearest neighbours, resolved.
#ifndef WT_NN_FILTER_INTERNAL_H
#define WT_NN_FILTER_INTERNAL_H

#include <warptone/decompose.h>

/// Scratch of one signal.
typedef struct wt__nn_filter_scratch {
    void *neighbours;
    unsigned char *linked; ///< [columns][columns]
    float *values;         ///< [columns]
} wt__nn_filter_scratch;

/// Defaults, and WT_ERR_BAD_ARG naming the field.
WT_CHECKED wt_status wt__nn_filter_resolve(wt_nn_filter_config *config);
/// Errors: WT_ERR_NO_MEMORY; free takes back what there is.
WT_CHECKED wt_status wt__nn_filter_take(const wt_nn_filter_config *config, wt__nn_filter_scratch *scratch);
void wt__nn_filter_free(wt__nn_filter_scratch *scratch);
void wt__nn_filter_run(const wt_nn_filter_config *config, const float *in, float *out, wt__nn_filter_scratch *scratch);
#endif
