/// Arguments of filtering by nearest neighbours.
#ifndef WT_NN_FILTER_KERNEL_H
#define WT_NN_FILTER_KERNEL_H
#include "places_kernel.h"

#define WT_NN_FILTER_THREADS 256

/// One signal; distances of `n_frames` frames from `first` on at a time.
typedef struct wt_nn_filter_args {
    const float *in; ///< [rows][columns]
    float *out;
    double *distances;     ///< [n_frames][columns]
    unsigned char *linked; ///< [columns][columns] frame t's neighbours
    int rows, columns, k, width, cosine, symmetric, median;
    int first, n_frames;
    wt_places places; ///< of frames
} wt_nn_filter_args;
#endif
