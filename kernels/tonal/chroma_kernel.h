/// Arguments of the chroma kernels.
#ifndef WT_CHROMA_KERNEL_H
#define WT_CHROMA_KERNEL_H

typedef struct wt_chroma_args {
    const float *in;                  ///< [n_signals][n_frames][n_in]
    float *out;                       ///< [n_signals][n_frames][n_chroma], tonal centroids: [..][6]
    float *steps;                     ///< CENS: [n_signals][n_frames][n_chroma]
    const float *bank;                ///< from spectra: [n_chroma][n_in]
    const int *begins;                ///< folding: [n_chroma + 1] into
    const int *bins;                  ///< [n_in] the bins of each row, ascending
    const double *window;             ///< CENS: [length], sums to 1; tonal centroids: [6][n_chroma]
    long long n_frames;               ///< of one signal
    long long n_all;                  ///< of all of them
    int n_in, n_chroma, norm, length; ///< norm: wt_chroma_norm
    float threshold;
} wt_chroma_args;

#endif
