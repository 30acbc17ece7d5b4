// Text of each level (simd_levels.inc): how loud frames are.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "stft_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(frames)
#    define MASK  WT_LEVEL(frames_mask)
#    define PARTS (WT__FFT64_FRAMES * 8 / WT_LEVEL_BYTES)

typedef double VEC __attribute__((vector_size(WT_LEVEL_BYTES), may_alias));
typedef int64_t MASK __attribute__((vector_size(WT_LEVEL_BYTES)));

// The largest size in each frame; not finite where a sample is not.
static void WT_LEVEL(find_peaks)(const double *x, int n_fft, frame_scales *peaks)
{
    VEC most[PARTS] = {{0}}, wrong[PARTS] = {{0}};
    for (int i = 0; i < n_fft; i++)
        for (int p = 0; p < PARTS; p++) {
            const MASK bits = (MASK)((const VEC *)x)[PARTS * i + p] & INT64_MAX;
            const VEC size = (VEC)bits;
            const MASK more = size > most[p];
            most[p] = (VEC)((bits & more) | ((MASK)most[p] & ~more));
            wrong[p] += size - size; // NaN, for infinity too
        }
    for (int p = 0; p < PARTS; p++) most[p] += wrong[p];
    memcpy(peaks->by, most, sizeof most);
}

#    undef VEC
#    undef MASK
#    undef PARTS
#endif
