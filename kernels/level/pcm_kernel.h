/// Arguments of the conversion of samples.
#ifndef WT_PCM_KERNEL_H
#define WT_PCM_KERNEL_H

typedef struct wt_pcm_args {
    const unsigned char *in; ///< [n_signals][n_frames][channels] of `format`
    float *out;              ///< [n_signals][channels][n_frames], folded [n_signals][n_frames]
    long long n_frames;
    int channels, n_signals;
    int format; ///< wt_pcm_format
    int fold;   ///< the mean of the channels
} wt_pcm_args;

#endif
