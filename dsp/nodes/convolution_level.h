// Text of each level (simd_levels.inc): products of spectra. Sums of real and imaginary parts for CONV_AHEAD chunks,
// eight vectors, stay in registers.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "convolution_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC   WT_LEVEL(bins)
#    define IM    (CONV_BINS * 4 / WT_LEVEL_BYTES) // vectors from a block's real to its imaginary parts
#    define BLOCK (2 * IM)                         // and of a block

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), may_alias));

// `n` partitions of a vector of bins of a block: re, im [b] += x[j] h[j + b]. `next` is what the next call will read.
WT_INLINE void WT_LEVEL(multiply_run)(const VEC *x, const VEC *h, int n, int ahead, const VEC *next, VEC *re, VEC *im)
{
    for (int j = 0; j < n; j++, x += BLOCK, h += BLOCK, next += BLOCK) {
        const VEC x_re = x[0], x_im = x[IM];
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + IM, 0, 2);
#    pragma GCC unroll 4
        for (int b = 0; b < ahead; b++) {
            const VEC h_re = h[BLOCK * b], h_im = h[BLOCK * b + IM];
            re[b] += x_re * h_re, im[b] += x_re * h_im;
            re[b] -= x_im * h_im, im[b] += x_im * h_re;
        }
    }
}

WT_INLINE const VEC *WT_LEVEL(spectrum_at)(const VEC *x, const slice_job *s, int j)
{
    return x + BLOCK * (s->newest + j < s->n_parts ? s->newest + j : s->newest + j - s->n_parts);
}

// Turn 0 of a vector of bins: partitions that have CONV_AHEAD to follow, up to the delay line's end and from its
// beginning, then the last ones.
WT_INLINE void WT_LEVEL(multiply_bins)(const slice_job *s, const VEC *x, const VEC *h, const VEC *next, VEC *sums,
                                       int add)
{
    const int n = s->n_parts, full = n >= CONV_AHEAD ? n - CONV_AHEAD + 1 : 0;
    const int first = full < n - s->newest ? full : n - s->newest;
    VEC re[CONV_AHEAD] = {0}, im[CONV_AHEAD] = {0};
#    pragma GCC unroll 4
    for (int b = 0; b < CONV_AHEAD && add; b++) re[b] = sums[BLOCK * b], im[b] = sums[BLOCK * b + IM];
    WT_LEVEL(multiply_run)(x + BLOCK * s->newest, h, first, CONV_AHEAD, next, re, im);
    WT_LEVEL(multiply_run)(x, h + BLOCK * first, full - first, CONV_AHEAD, next + BLOCK * first, re, im);
#    pragma GCC unroll 4
    for (int b = 0; b < CONV_AHEAD; b++) {
        for (int j = full; j + b < n; j++)
            WT_LEVEL(multiply_run)
            (WT_LEVEL(spectrum_at)(x, s, j), h + BLOCK * (j + b), 1, 1, next + BLOCK * j, &re[b], &im[b]);
        sums[BLOCK * b] = re[b], sums[BLOCK * b + IM] = im[b];
    }
}

// One slice on turn 0. A slice is too short a run for the processor to foresee: `next` is the one to come.
static void WT_LEVEL(multiply_all)(const slice_job *s, int add, const float *next)
{
    for (int v = 0; v < IM; v++)
        WT_LEVEL(multiply_bins)
        (s, (const VEC *)s->line + v, (const VEC *)s->spectra + v, (const VEC *)next + v, (VEC *)s->sums + v, add);
}

// One slice on a later turn.
static void WT_LEVEL(multiply_recent)(const slice_job *s, int turn)
{
    for (int v = 0; v < IM; v++) {
        const VEC *x = (const VEC *)s->line + v, *h = (const VEC *)s->spectra + v;
        VEC *sum = (VEC *)s->sums + turn * BLOCK + v, re = sum[0], im = sum[IM];
        for (int j = 0; j < turn && j < s->n_parts; j++)
            WT_LEVEL(multiply_run)(WT_LEVEL(spectrum_at)(x, s, j), h + BLOCK * j, 1, 1, h, &re, &im);
        sum[0] = re, sum[IM] = im;
    }
}

#    undef VEC
#    undef IM
#    undef BLOCK
#endif
