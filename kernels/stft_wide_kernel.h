/// Arguments of the kernels around transforms that no block holds.
#ifndef WT_STFT_WIDE_KERNEL_H
#define WT_STFT_WIDE_KERNEL_H

typedef struct wt_stft_wide_args {
    const float *pcm;    ///< [n_lines][n_samples]
    float *frames;       ///< [n_lines][n_frames][n_fft]
    const float *pairs;  ///< [n_lines][n_frames][bins][2]
    float *out;          ///< of them [n_lines][n_frames][bins], or [n_lines][length] of the way back
    const float *window; ///< [n_fft]
    long long n_samples, length, n_lines, n_frames;
    int n_fft, bins, hop, margin, pad, kind; ///< pad: wt_stft_pad, kind: wt_stft_output
    int used_frames, unused;                 ///< of the way back
} wt_stft_wide_args;

#endif
