// Real transforms that begin with 32 samples, m apart, n = 32 m: a part of fft_passes.h.
//
//     y[j][p] = w_n^(j p)  sum over k of w_32^(j k) x[p + m k]      j = 1 .. 15, p < m
//     X[j + 32 q] = sum over p of w_m^(p q) y[j][p]                 q < m; the others are their conjugates
//
// Bins that 16 divides are those of 2 m real samples, the sums of x[p + 2 m k], which m complex points give. So no
// butterfly is made of numbers whose imaginary part is 0, and but few bins are parted.
//
// real_first and real_parts are those of one signal of 2048 samples, vectors along p, then along j: between them go the
// passes of 8 in place of 1024 points, of which the rows 0 are the sums.

enum { REAL_ROWS = WT__FFT_REAL_RADIX / 2, REAL_M = WT__FFT_REAL_N / WT__FFT_REAL_RADIX };

// Of eight real numbers: X[0], X[4], then X[1], X[2], X[3]. Given are sums and differences of those four apart.
WT_INLINE void real_dft8(const vec *sum, const vec *less, vec *out)
{
    const float c = 0.707106781186547524f;
    const vec even = sum[0] + sum[2], odd = sum[1] + sum[3], across = less[1] - less[3], along = less[1] + less[3];
    out[0] = even + odd, out[1] = even - odd;
    out[2] = less[0] + across * c, out[3] = -less[2] - along * c;
    out[4] = sum[0] - sum[2], out[5] = sum[3] - sum[1];
    out[6] = less[0] - across * c, out[7] = less[2] - along * c;
}

WT_INLINE cvec conjugate(cvec a) { return (cvec){a.re, -a.im}; }

// Of 32 real numbers, from `part` [8][4], what real_dft8 gives of those 4 apart: the bins that row j of its five makes,
// j = 0 .. 4. Returns how many, and which.
WT_INLINE int real_row(const vec *part, const int j, cvec *a, int *bins)
{
    static const float turns[3][3][2] = { // w_32^(i j)
        {{0.980785280403230449f, -0.195090322016128268f},
         {0.923879532511286756f, -0.382683432365089772f},
         {0.831469612302545237f, -0.555570233019602225f}},
        {{0.923879532511286756f, -0.382683432365089772f},
         {0.707106781186547524f, -0.707106781186547524f},
         {0.382683432365089772f, -0.923879532511286756f}},
        {{0.831469612302545237f, -0.555570233019602225f},
         {0.382683432365089772f, -0.923879532511286756f},
         {-0.195090322016128268f, -0.980785280403230449f}}};
    if (j == 0) {
        a[0] = (cvec){part[0] - part[2], part[3] - part[1]}, bins[0] = 8;
        return 1;
    }
    if (j == 4) {
        const float c = 0.707106781186547524f;
        const vec across = (part[5] - part[7]) * c, along = (part[5] + part[7]) * c;
        a[0] = (cvec){part[4] + across, -part[6] - along}, bins[0] = 4;
        a[1] = (cvec){part[4] - across, part[6] - along}, bins[1] = 12;
        return 2;
    }
    UNROLL for (int i = 0; i < 4; i++) a[i] = (cvec){part[8 * j + i], part[8 * j + 4 + i]};
    UNROLL for (int i = 1; i < 4; i++) a[i] = times_w(a[i], turns[j - 1][i - 1][0], turns[j - 1][i - 1][1]);
    dft4(&a[0], &a[1], &a[2], &a[3]);
    a[2] = conjugate(a[2]), a[3] = conjugate(a[3]);
    bins[0] = j, bins[1] = j + 8, bins[2] = REAL_ROWS - j, bins[3] = 8 - j;
    return 4;
}

// Vectors of a block's 32 lie where its rows will: v of either half.
WT_INLINE float *real_room(float *rows, const int v)
{
    enum { IN_ROW = REAL_ROWS / LANES };
    return rows + row_place(v / IN_ROW, true) * REAL_ROWS + v % IN_ROW * LANES;
}

// The first half of 32 for each p, and the halves of the sums.
WT_INLINE void real_eights(const float *x, const float *weights, float *y_re, float *y_im, float *sums,
                           const bool weighted, wt__fft_past *past)
{
    for (ptrdiff_t p = 0; p < REAL_M; p += LANES) {
        float *re = y_re + row_place(p, true) * REAL_ROWS, *im = y_im + row_place(p, true) * REAL_ROWS;
        vec total[4];
        pour(past, REAL_ROWS * LANES / 2);
        UNROLL for (int i = 0; i < 4; i++)
        {
            vec sum[4], less[4], out[8];
            UNROLL for (int k = 0; k < 4; k++)
            {
                const ptrdiff_t low = p + REAL_M * (i + 4 * k), high = low + REAL_M * REAL_ROWS;
                const vec a = weighted ? load(x + low) * load(weights + low) : load(x + low), b = load(x + high);
                sum[k] = weighted ? a + b * load(weights + high) : a + b;
                less[k] = weighted ? a - b * load(weights + high) : a - b;
            }
            real_dft8(sum, less, out);
            total[i] = out[0];
            UNROLL for (int k = 0; k < 4; k++) store(real_room(re, 4 * k + i), out[k]);
            UNROLL for (int k = 0; k < 4; k++) store(real_room(im, 4 * k + i), out[k + 4]);
        }
        store(sums + p, 0.5f * (total[0] + total[2]));
        store(sums + REAL_M + p, 0.5f * (total[1] + total[3]));
    }
}

WT_INLINE void real_first(const float *twiddles, const float *x, const float *weights, float *y_re, float *y_im,
                          const bool weighted, wt__fft_past *past)
{
    _Alignas(64) float sums[2 * REAL_M];
    real_eights(x, weights, y_re, y_im, sums, weighted, past);
    for (ptrdiff_t p = 0; p < REAL_M; p += LANES, twiddles += (REAL_ROWS - 1) * 2 * LANES) {
        float *re = y_re + row_place(p, true) * REAL_ROWS, *im = y_im + row_place(p, true) * REAL_ROWS;
        vec part[32];
        cvec a[REAL_ROWS], some[4];
        int bins[4];
        UNROLL for (int v = 0; v < REAL_ROWS; v++) part[v] = load(real_room(re, v));
        UNROLL for (int v = 0; v < REAL_ROWS; v++) part[REAL_ROWS + v] = load(real_room(im, v));
        a[0] = load_side(sums, NULL, WT__FFT_PAIRS, p);
        UNROLL for (int j = 0; j < 5; j++)
        {
            const int count = real_row(part, j, some, bins);
            UNROLL for (int i = 0; i < count; i++)
            {
                const float *w = twiddles + (bins[i] - 1) * 2 * LANES;
                a[bins[i]] = times(some[i], load(w), load(w + LANES));
            }
        }
        pour(past, REAL_ROWS * LANES / 2);
        store_transposed(re, a, false, REAL_ROWS, true);
        store_transposed(im, a, true, REAL_ROWS, true);
    }
}

// Bins of z [m][16]: row q is those from 32 q on, and, backwards and conjugate, those below 2048 - 32 q. The first
// column, which is the sums', comes last.
WT_INLINE void real_parts(const float *z_re, const float *z_im, const float *sums_twiddles, float *re, float *im,
                          const wt__fft_form form)
{
    enum { GROUPS = REAL_ROWS / LANES };
    _Alignas(64) float c_re[REAL_M + LANES], c_im[REAL_M + LANES], some[2 * REAL_M + 2], some_im[REAL_M + 1];
    for (int q = 0; q < REAL_M; q++) c_re[q] = z_re[q * REAL_ROWS], c_im[q] = z_im[q * REAL_ROWS];
    for (ptrdiff_t q = 0; q < REAL_M / 2; q++) {
        const ptrdiff_t low = q * REAL_ROWS, high = (REAL_M - 1 - q) * REAL_ROWS;
        cvec behind = {{0}, {0}};
        UNROLL for (int g = 0; g < GROUPS; g++)
        {
            const cvec v = load_side(z_re, z_im, WT__FFT_SPLIT, high + (GROUPS - 1 - g) * LANES);
            store_bins(re, im, form, 2 * low + g * LANES, load_side(z_re, z_im, WT__FFT_SPLIT, low + g * LANES));
            store_bins(re, im, form, 2 * low + REAL_ROWS + g * LANES, conjugate(turn(v, behind)));
            behind = v;
        }
    }
    real_bins(c_re, c_im, sums_twiddles, REAL_M, some, some_im, form);
    for (int k = 0; k <= REAL_M; k++)
        if (form == WT__FFT_PAIRS) {
            *(one_pair *)(re + 2 * REAL_ROWS * k) = *(const one_pair *)(some + 2 * k);
        } else {
            re[REAL_ROWS * k] = some[k];
            if (form == WT__FFT_SPLIT) im[REAL_ROWS * k] = some_im[k];
        }
}

// The three passes and the bins, of z in `re`, `im` [1024].
WT_INLINE void real_whole(const wt__fft_real *r, const float *x, const float *weights, const wt__fft_form form,
                          wt__fft_past *past, float *z_re, float *z_im, float *re, float *im)
{
    const wt__fft_pass mid = {.twiddles = r->mid}, last = {.s = REAL_ROWS * WT__FFT_SQUARE};
    if (weights) real_first(r->first, x, weights, z_re, z_im, true, past);
    else real_first(r->first, x, weights, z_re, z_im, false, past);
    mid_square(&mid, z_re, z_im, past);
    last_sized(&last, z_re, z_im, z_re, z_im, 1, WT__FFT_SQUARE, WT__FFT_SPLIT, past);
    if (past) stream(past);
    real_parts(z_re, z_im, r->sums, re, im, form);
}

static void real_2048(const wt__fft_real *r, const float *x, const float *weights, wt__fft_form form, float *z_re,
                      float *z_im, float *re, float *im)
{
    if (form == WT__FFT_PAIRS) real_whole(r, x, weights, WT__FFT_PAIRS, NULL, z_re, z_im, re, im);
    else if (form == WT__FFT_POWERS) real_whole(r, x, weights, WT__FFT_POWERS, NULL, z_re, z_im, re, im);
    else real_whole(r, x, weights, WT__FFT_SPLIT, NULL, z_re, z_im, re, im);
}

static void real_row_2048(const wt__fft_real *r, const float *x, const float *weights, wt__fft_past *past, float *z_re,
                          float *z_im, float *row)
{
    real_whole(r, x, weights, WT__FFT_PAIRS, past, z_re, z_im, row, NULL);
}
