// Signals beyond their ends.
#ifndef WT_PADDED_CUH
#define WT_PADDED_CUH

// The sample at `at`, which may lie before or behind the signal (dsp/spectral/stft.c: wt__stft_padded). T: float or
// double.
template <class T> __device__ inline T padded_sample(const T *pcm, long long n, long long at, int margin, int pad)
{
    if (at >= 0 && at < n) return pcm[at];
    if (pad == 0) return 0;
    const T edge = pcm[at < 0 ? 0 : n - 1];
    if (pad == 4) {
        const long long outside = at < 0 ? -at : at - n + 1;
        return outside < margin ? edge * (T)(margin - outside) / (T)margin : 0;
    }
    if (pad == 3 || n == 1) return edge;
    const int symmetric = pad == 2;
    while (at < 0 || at >= n) at = at < 0 ? -at - symmetric : 2 * (n - 1) - at + symmetric;
    return pcm[at];
}
#endif
