// Short transforms in one call, their sizes known to the compiler: a part of fft_passes.h. The passes, their order and
// their tables are those of a plan, so that the bits are, too.
//
// Along: one transform, vectors along it, as its passes go. Across: a vector holds one point of LANES transforms, or
// of one alone, in its first lane, where that has too few points for vectors of its own. By twos: fft_twos.h.

enum { SHORT_MOST = 512 };

typedef struct short_room {
    _Alignas(64) float re[SHORT_MOST + 16], im[SHORT_MOST + 16];
} short_room;

WT_INLINE void along(const wt__fft_pass *passes, const float *x_re, const float *x_im, const wt__fft_form from,
                     float *y_re, float *y_im, const wt__fft_form to, float scale, const int r1, const int r2,
                     const int r3)
{
    const int last = r3 > 1 ? r3 : r2, n = r1 * r2 * r3;
    const bool ordered = to == WT__FFT_SPLIT || LANES != 8;
    short_room a, b;
    const short_room *x = &a;
    first_pass(&(wt__fft_pass){.m = n / r1,
                               .twiddles = passes[0].twiddles,
                               .pair_twiddles = passes[0].pair_twiddles,
                               .trig = passes[0].trig},
               x_re, x_im, a.re, a.im, r1, from, ordered ? WT__FFT_SPLIT : to, false, NULL);
    if (r3 > 1) {
        mid_pass(&(wt__fft_pass){.m = r3, .s = r1, .twiddles = passes[1].twiddles, .trig = passes[1].trig}, a.re, a.im,
                 b.re, b.im, r2, NULL);
        x = &b;
    }
    last_pass(&(wt__fft_pass){.s = n / last, .trig = passes[r3 > 1 ? 2 : 1].trig}, x->re, x->im, y_re, y_im, scale,
              last, to, ordered, NULL);
}

// Tiles of real signals of 8 samples, which are one pass of 4.
WT_INLINE void pass_of_4(const short_room *x, short_room *y, float scale)
{
    last_pass(&(wt__fft_pass){.s = LANES}, x->re, x->im, y->re, y->im, scale, 4, WT__FFT_SPLIT, true, NULL);
}

static void bins_of_8(const float *twiddles, const wt__fft_side *in, const wt__fft_side *out, float scale)
{
    short_room x, y;
    turn_in(in->re, in->distance, 8, x.re, x.im, 2);
    pass_of_4(&x, &y, scale);
    tile_bins(y.re, y.im, twiddles, 4, x.re, x.im);
    turn_out(x.re, x.im, 10, out->re, out->distance, 2);
}

static void fold_of_8(const float *twiddles, const wt__fft_side *in, const wt__fft_side *out, float scale)
{
    short_room x, y;
    turn_in(in->re, in->distance, 10, y.re, y.im, 2);
    tile_fold(y.re, y.im, twiddles, 4, x.im, x.re);
    pass_of_4(&x, &y, scale);
    turn_out(y.im, y.re, 8, out->re, out->distance, 2);
}

#define SHORT_SIGNATURE                                                                                                \
    const wt__fft_pass *passes, const float *twiddles, const float *in, float *out, float scale
#define ALONG(n, r1, r2, r3)                                                                                           \
    static void along_##n(SHORT_SIGNATURE)                                                                             \
    {                                                                                                                  \
        (void)twiddles, (void)scale; /* 1 */                                                                           \
        along(passes, in, NULL, WT__FFT_PAIRS, out, NULL, WT__FFT_PAIRS, 1, r1, r2, r3);                               \
    }                                                                                                                  \
    static void along_swapped_##n(SHORT_SIGNATURE)                                                                     \
    {                                                                                                                  \
        (void)twiddles;                                                                                                \
        along(passes, in, NULL, WT__FFT_SWAPPED, out, NULL, WT__FFT_SWAPPED, scale, r1, r2, r3);                       \
    }                                                                                                                  \
    static void along_bins_##n(SHORT_SIGNATURE)                                                                        \
    {                                                                                                                  \
        short_room z;                                                                                                  \
        along(passes, in, NULL, WT__FFT_PAIRS, z.re, z.im, WT__FFT_SPLIT, scale, r1, r2, r3);                          \
        real_bins(z.re, z.im, twiddles, n, out, NULL, WT__FFT_PAIRS);                                                  \
    }                                                                                                                  \
    static void along_fold_##n(SHORT_SIGNATURE)                                                                        \
    {                                                                                                                  \
        short_room z;                                                                                                  \
        real_fold(in, NULL, twiddles, n, z.re, z.im, WT__FFT_PAIRS);                                                   \
        along(passes, z.im, z.re, WT__FFT_SPLIT, out, NULL, WT__FFT_SWAPPED, scale, r1, r2, r3);                       \
    }
#define ALONG_ENTRY(n) {n, {along_##n, along_swapped_##n, along_bins_##n, along_fold_##n}}

#if LANES == 4
WT_INLINE cvec one_in(const float *pairs, int k) { return (cvec){{pairs[2 * k]}, {pairs[2 * k + 1]}}; }
WT_INLINE void one_out(float *pairs, int k, cvec v) { pairs[2 * k] = v.re[0], pairs[2 * k + 1] = v.im[0]; }
WT_INLINE cvec swapped(cvec a) { return (cvec){a.im, a.re}; }

WT_INLINE void across(cvec *a, const int n, float scale)
{
    butterfly(a, n, n, NULL);
    UNROLL for (int k = 0; k < n; k++) a[k] = scaled(a[k], scale);
}

// Points read and written swapped where `back`.
WT_INLINE void across_one(const float *in, float *out, float scale, const int n, const bool back)
{
    cvec a[8];
    UNROLL for (int k = 0; k < n; k++) a[k] = back ? swapped(one_in(in, k)) : one_in(in, k);
    across(a, n, scale);
    UNROLL for (int k = 0; k < n; k++) one_out(out, k, back ? swapped(a[k]) : a[k]);
}

WT_INLINE void across_bins(const float *w, const float *in, float *out, float scale, const int h)
{
    const float *w_im = w + wt__fft_padded((size_t)h / 2 + 1);
    cvec a[8];
    UNROLL for (int k = 0; k < h; k++) a[k] = one_in(in, k);
    across(a, h, scale);
    UNROLL for (int k = 1; k <= h / 2; k++)
    {
        const bin_pair y = pair_bins(a[k], a[h - k], (vec){w[k]}, (vec){w_im[k]}, false);
        one_out(out, k, y.low);
        one_out(out, h - k, y.high);
    }
    out[0] = 2 * (a[0].re[0] + a[0].im[0]), out[1] = 0;
    out[2 * h] = 2 * (a[0].re[0] - a[0].im[0]), out[2 * h + 1] = 0;
}

// pair_bins() back. The scale goes where sums take the products in: it is a power of two, so no bit depends on where.
WT_INLINE void across_fold(const float *w, const float *in, float *out, float scale, const int h)
{
    const float *w_im = w + wt__fft_padded((size_t)h / 2 + 1);
    const int m = h / 2; // its own mirror: twice the conjugate
    cvec a[8];
    const cvec first = one_in(in, 0), middle = one_in(in, m), last = one_in(in, h);
    // The parts change places: the way back.
    a[0] = scaled((cvec){first.re - last.re, first.re + last.re}, scale);
    a[m] = scaled((cvec){-middle.im, middle.re}, 2 * scale);
    UNROLL for (int k = 1; k < m; k++)
    {
        const cvec x = one_in(in, k), y = one_in(in, h - k);
        const cvec even = scaled((cvec){x.re + y.re, x.im - y.im}, scale);
        const cvec odd = times((cvec){x.re - y.re, x.im + y.im}, (vec){w[k]} * scale, -(vec){w_im[k]} * scale);
        a[k] = swapped(add_i(even, odd));
        a[h - k] = (cvec){odd.re - even.im, even.re + odd.im};
    }
    across(a, h, 1);
    UNROLL for (int k = 0; k < h; k++) one_out(out, k, swapped(a[k]));
}

#define ACROSS(n)                                                                                                     \
    static void across_##n(SHORT_SIGNATURE)                                                                           \
    {                                                                                                                 \
        (void)passes, (void)twiddles, (void)scale; /* 1 */                                                            \
        across_one(in, out, 1, n, false);                                                                             \
    }                                                                                                                 \
    static void across_swapped_##n(SHORT_SIGNATURE)                                                                   \
    {                                                                                                                 \
        (void)passes, (void)twiddles;                                                                                 \
        across_one(in, out, scale, n, true);                                                                          \
    }                                                                                                                 \
    static void across_bins_##n(SHORT_SIGNATURE) { (void)passes, across_bins(twiddles, in, out, scale, n); }          \
    static void across_fold_##n(SHORT_SIGNATURE) { (void)passes, across_fold(twiddles, in, out, scale, n); }
#define ACROSS_ENTRY(n) {n, {across_##n, across_swapped_##n, across_bins_##n, across_fold_##n}}

#    include "fft_twos.h"

ACROSS(4)
ACROSS(8)
TWOS(10, 5, 1)
ALONG(16, 4, 4, 1)
ALONG(20, 4, 5, 1)
TWOS(30, 5, 3)
ALONG(32, 8, 4, 1)
ALONG(60, 4, 5, 3)

static const wt__fft_short shorts[] = {ACROSS_ENTRY(4), ACROSS_ENTRY(8), TWOS_ENTRY(10),  ALONG_ENTRY(16),
                                       ALONG_ENTRY(20), TWOS_ENTRY(30),  ALONG_ENTRY(32), ALONG_ENTRY(60),
                                       {0}};
#else
// Sixteen lanes do the longer ones where there are such.
#    if LANES == 8
ALONG(64, 8, 8, 1)
ALONG(128, 8, 16, 1)
ALONG(240, 16, 5, 3)
#        define EIGHT_LANES_ENTRIES ALONG_ENTRY(64), ALONG_ENTRY(128), ALONG_ENTRY(240),
#    else
#        define EIGHT_LANES_ENTRIES
#    endif
#    if LANES == 16 || !defined(__AVX512F__)
ALONG(256, 16, 16, 1)
ALONG(400, 16, 5, 5)
ALONG(512, 16, 8, 4)
#        define WIDEST_ENTRIES ALONG_ENTRY(256), ALONG_ENTRY(400), ALONG_ENTRY(512),
#    else
#        define WIDEST_ENTRIES
#    endif

static const wt__fft_short shorts[] = {EIGHT_LANES_ENTRIES WIDEST_ENTRIES{0}};
#endif
