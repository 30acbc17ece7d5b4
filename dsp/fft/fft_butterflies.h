// Butterflies, on split vectors: a[j] becomes the sum over k of w_r^(j k) a[k]. Included by fft_passes.h alone, whose
// vectors it uses.

WT_INLINE cvec add(cvec a, cvec b) { return (cvec){a.re + b.re, a.im + b.im}; }
WT_INLINE cvec sub(cvec a, cvec b) { return (cvec){a.re - b.re, a.im - b.im}; }
WT_INLINE cvec add_i(cvec a, cvec b) { return (cvec){a.re - b.im, a.im + b.re}; } // a + i b
WT_INLINE cvec sub_i(cvec a, cvec b) { return (cvec){a.re + b.im, a.im - b.re}; } // a - i b
WT_INLINE cvec times(cvec a, vec re, vec im) { return (cvec){a.re * re - a.im * im, a.re * im + a.im * re}; }
WT_INLINE cvec scaled(cvec a, float by) { return (cvec){a.re * by, a.im * by}; }
WT_INLINE cvec times_w(cvec a, float re, float im) { return (cvec){a.re * re - a.im * im, a.re * im + a.im * re}; }

WT_INLINE void dft4(cvec *a0, cvec *a1, cvec *a2, cvec *a3)
{
    cvec even = add(*a0, *a2), even_less = sub(*a0, *a2), odd = add(*a1, *a3), odd_less = sub(*a1, *a3);
    *a0 = add(even, odd);
    *a1 = sub_i(even_less, odd_less);
    *a2 = sub(even, odd);
    *a3 = add_i(even_less, odd_less);
}

WT_INLINE void dft8(cvec *a)
{
    dft4(&a[0], &a[2], &a[4], &a[6]);
    dft4(&a[1], &a[3], &a[5], &a[7]);
    const float c = 0.707106781186547524f; // w_8 = c - i c
    cvec o1 = {a[3].re + a[3].im, a[3].im - a[3].re}, o3 = {a[7].im - a[7].re, a[7].re + a[7].im}; // its im negated
    cvec e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], o0 = a[1], o2 = a[5];
    a[0] = add(e0, o0), a[4] = sub(e0, o0);
    a[1] = add(e1, scaled(o1, c)), a[5] = sub(e1, scaled(o1, c));
    a[2] = sub_i(e2, o2), a[6] = add_i(e2, o2);
    a[3] = (cvec){e3.re + o3.re * c, e3.im - o3.im * c}, a[7] = (cvec){e3.re - o3.re * c, e3.im + o3.im * c};
}

// Odd r: sums and differences of a[k], a[r - k] halve the work. 4 h^2 multiply-adds, h = (r - 1) / 2.
WT_INLINE void dft_odd(cvec *a, const int r, const float *trig)
{
    const int h = (r - 1) / 2;
    cvec sum[WT__FFT_MAX_PRIME / 2], difference[WT__FFT_MAX_PRIME / 2], a0 = a[0];
    cvec total = a0;
    UNROLL for (int k = 0; k < h; k++)
    {
        sum[k] = add(a[k + 1], a[r - 1 - k]);
        difference[k] = sub(a[k + 1], a[r - 1 - k]);
        total = add(total, sum[k]);
    }
    a[0] = total;
    UNROLL for (int j = 0; j < h; j++)
    {
        const float *t = trig + 2 * h * j;
        cvec even = a0, odd = {difference[0].re * t[1], difference[0].im * t[1]};
        UNROLL for (int k = 0; k < h; k++)
        {
            even.re += sum[k].re * t[2 * k], even.im += sum[k].im * t[2 * k];
            if (k) odd.re += difference[k].re * t[2 * k + 1], odd.im += difference[k].im * t[2 * k + 1];
        }
        a[j + 1] = sub_i(even, odd);
        a[r - 1 - j] = add_i(even, odd);
    }
}

// Radices of two stages, r = a b by Cooley and Tukey: b columns of a numbers, twiddle factors, a rows of b. Others are
// one row. Stages are asked for column by column and row by row, so that few numbers are in registers at a time.
WT_INLINE int column_of(const int fixed)
{
    return fixed == 16 ? 4 : fixed == 9 || fixed == 15 ? 3 : fixed == 25 ? 5 : 1;
}

// a w_16^m
WT_INLINE cvec turned(cvec a, const int m)
{
    const float c1 = 0.923879532511286756f, s1 = 0.382683432365089772f, c2 = 0.707106781186547524f; // cos, sin pi/8
    if (m == 1) return times_w(a, c1, -s1);
    if (m == 2) return scaled((cvec){a.re + a.im, a.im - a.re}, c2);
    if (m == 3) return times_w(a, s1, -c1);
    if (m == 4) return (cvec){a.im, -a.re};
    if (m == 6) return scaled((cvec){a.im - a.re, -a.re - a.im}, c2);
    return m == 9 ? times_w(a, -c1, s1) : a;
}

// One stage. Here and from here on `fixed` is the radix known to the compiler, 0 = an odd one that the caller says.
WT_INLINE void dft(cvec *a, const int fixed, int r, const float *trig)
{
    if (fixed == 2) {
        const cvec sum = add(a[0], a[1]);
        a[1] = sub(a[0], a[1]);
        a[0] = sum;
    } else if (fixed == 4) {
        dft4(&a[0], &a[1], &a[2], &a[3]);
    } else if (fixed == 8) {
        dft8(a);
    } else {
        dft_odd(a, r, trig);
    }
}

// Column k of x [b][a] in place. Table of odd ones: those of a and b, then w_r^(j k).
WT_INLINE void column(cvec *x, const int fixed, const int k, const float *trig)
{
    const int a = column_of(fixed), b = fixed / a;
    const float *twiddles = trig + (a - 1) * (a - 1) / 2 + (b - 1) * (b - 1) / 2;
    cvec c[5];
    UNROLL for (int i = 0; i < a; i++) c[i] = x[k + b * i];
    dft(c, a, a, trig);
    UNROLL for (int j = 0; j < a; j++)
    {
        const float *w = twiddles + 2 * (j * b + k);
        x[k + b * j] = fixed == 16 ? turned(c[j], j * k) : j && k ? times_w(c[j], w[0], w[1]) : c[j];
    }
}

// Row j, in place; its number k is that of j + a k.
WT_INLINE void row(cvec *x, const int fixed, const int r, const int j, const float *trig)
{
    const int a = column_of(fixed), b = r / a;
    dft(x + b * j, fixed ? b : 0, b, trig + (a - 1) * (a - 1) / 2);
}

WT_INLINE void butterfly(cvec *x, const int fixed, int r, const float *trig)
{
    const int a = column_of(fixed), b = r / a;
    cvec result[25];
    UNROLL for (int k = 0; k < b && a > 1; k++) column(x, fixed, k, trig);
    UNROLL for (int j = 0; j < a; j++) row(x, fixed, r, j, trig);
    if (a == 1) return;
    UNROLL for (int i = 0; i < r; i++) result[i] = x[i];
    UNROLL for (int i = 0; i < r; i++) x[i / b + a * (i % b)] = result[i];
}
