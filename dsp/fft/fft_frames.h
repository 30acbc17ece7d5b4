// LANES frames of a real signal at once, a frame in each lane: a part of fft_passes.h. No pass shuffles; the samples
// are turned once, a hop of them in a row, and as frames overlap each serves several.
//
//     turned[i][c] = x[hop c + i]     so that sample n of the frames is the vector at turned[n % hop][n / hop]
//
// n = 32 m. The first pass makes a real transform of 32 samples m apart, for each p < m, of which the second makes a
// complex one of m points along p:
//
//     y[j][p] = w_n^(j p)  sum over k of w_32^(j k) x[p + m k]      j = 1 .. 15
//     X[j + 32 q] = sum over p of w_m^(p q) y[j][p]                 q < m; the others are their conjugates
//
// Bins that 16 divides are those of 2 m real samples, the sums of x[p + 2 m k], made by m complex points and parted.
// An area of 32 or m points is all that either pass works on, so the rest may lie in the second-level cache.

enum { POINTS = 2 * LANES, SHARED = WT__FFT_FRAMES_RADIX / 2, ROW = (SHARED + 1) * POINTS }; // floats

WT_INLINE cvec load_point(const float *x) { return load_side(x, x + LANES, WT__FFT_SPLIT, 0); }
WT_INLINE void store_point(float *y, cvec v) { store_side(y, y + LANES, WT__FFT_SPLIT, 0, v); }
WT_INLINE cvec conjugate(cvec a) { return (cvec){a.re, -a.im}; }

// Four hops at `from` into columns of `turned`, by quarters of vectors; those behind the last are any numbers.
WT_INLINE void turn_four(const wt__fft_frames *f, const float *from, int hops, ptrdiff_t i, float *turned)
{
    typedef float quad __attribute__((vector_size(16), aligned(16), may_alias));
    typedef float any_quad __attribute__((vector_size(16), aligned(4), may_alias));
    _Alignas(64) float room[4 * LANES];
    vec v[LANES] = {0};
    UNROLL for (int c = 0; c < 4; c++) v[c] = load(from + (c < hops ? c : 0) * (ptrdiff_t)f->hop + i);
    turn_quarters(v);
    UNROLL for (int c = 0; c < 4; c++) store(room + c * LANES, v[c]);
    for (int k = 0; k < LANES; k++)
        *(any_quad *)(turned + (i + k) * f->pitch) = *(const quad *)(room + k % 4 * LANES + k / 4 * 4);
}

static void turn_frames(const wt__fft_frames *f, const float *x, float *turned)
{
    for (ptrdiff_t block = 0; block < f->hop; block += LANES) {
        const ptrdiff_t i = block + LANES <= f->hop ? block : f->hop - LANES;
        vec v[LANES];
        UNROLL for (int c = 0; c < LANES; c++) v[c] = load(x + c * (ptrdiff_t)f->hop + i);
        transpose_square(v);
        UNROLL for (int k = 0; k < LANES; k++) store(turned + (i + k) * f->pitch, v[k]);
        for (int c = LANES; c < f->columns; c += 4)
            turn_four(f, x + c * (ptrdiff_t)f->hop, f->columns - c, i, turned + c);
    }
}

// Of eight real numbers: X[0], X[4], then X[1], X[2], X[3]; sums and differences apart by four are given.
WT_INLINE void real_dft8(const vec *sum, const vec *less, vec *room)
{
    const float c = 0.707106781186547524f;
    const vec even = sum[0] + sum[2], odd = sum[1] + sum[3], across = less[1] - less[3], along = less[1] + less[3];
    room[0] = even + odd, room[4] = even - odd;
    room[8] = less[0] + across * c, room[12] = -less[2] - along * c;
    room[16] = sum[0] - sum[2], room[20] = sum[3] - sum[1];
    room[24] = less[0] - across * c, room[28] = less[2] - along * c;
}

// w_32^(i j), i and j from 1 on
static const float turns_of_32[3][3][2] = {{{0.980785280403230449f, -0.195090322016128268f},
                                            {0.923879532511286756f, -0.382683432365089772f},
                                            {0.831469612302545237f, -0.555570233019602225f}},
                                           {{0.923879532511286756f, -0.382683432365089772f},
                                            {0.707106781186547524f, -0.707106781186547524f},
                                            {0.382683432365089772f, -0.923879532511286756f}},
                                           {{0.831469612302545237f, -0.555570233019602225f},
                                            {0.382683432365089772f, -0.923879532511286756f},
                                            {-0.195090322016128268f, -0.980785280403230449f}}};

// Row j of eight: X[j], X[j + 8] and, as their conjugates, X[16 - j], X[8 - j]; `w` is of p and 1 .. 15.
WT_INLINE void first_row(const vec *room, const int j, const float *w, float *y)
{
    const int places[4] = {j, j + 8, SHARED - j, 8 - j};
    cvec a[4];
    UNROLL for (int i = 0; i < 4; i++) a[i] = (cvec){room[8 * j + i], room[8 * j + 4 + i]};
    UNROLL for (int i = 1; i < 4; i++) a[i] = times_w(a[i], turns_of_32[j - 1][i - 1][0], turns_of_32[j - 1][i - 1][1]);
    dft4(&a[0], &a[1], &a[2], &a[3]);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int at = places[i];
        store_point(y + at * POINTS, times_w(i < 2 ? a[i] : conjugate(a[i]), w[2 * at], w[2 * at + 1]));
    }
}

// The next frames' samples come to the second-level cache meanwhile.
WT_INLINE void frames_first(const wt__fft_frames *f, const float *turned, const float *next, float *y, const int m)
{
    const float c = 0.707106781186547524f;
    const ptrdiff_t ahead = (ptrdiff_t)LANES * f->hop / m;
    for (int p = 0; p < m; p++, next += ahead) {
        for (ptrdiff_t i = 0; i < ahead; i += LINE) __builtin_prefetch(next + i, 0, 2);
        const float *w = f->twiddles + p * 2 * SHARED;
        float *row = y + p * ROW, *even = y + p / 2 * ROW + p % 2 * LANES;
        vec room[32];
        for (int i = 0; i < 4; i++) {
            vec sum[4], less[4];
            UNROLL for (int k = 0; k < 4; k++)
            {
                const int low = i + 4 * k, high = low + SHARED;
                const float *from = turned + (ptrdiff_t)p * f->pitch;
                const float *weight = f->window + p + m * low;
                const vec a = load(from + f->places[low]) * weight[0], b = load(from + f->places[high]);
                sum[k] = a + b * weight[m * SHARED], less[k] = a - b * weight[m * SHARED];
            }
            real_dft8(sum, less, room + i);
        }
        store(even, room[0] + room[2]);
        store(even + m / 2 * ROW, room[1] + room[3]);
        store_point(row + 8 * POINTS, times_w((cvec){room[0] - room[2], room[3] - room[1]}, w[16], w[17]));
        const vec across = (room[5] - room[7]) * c, along = (room[5] + room[7]) * c;
        store_point(row + 4 * POINTS, times_w((cvec){room[4] + across, -room[6] - along}, w[8], w[9]));
        store_point(row + 12 * POINTS, times_w((cvec){room[4] - across, room[6] - along}, w[24], w[25]));
        first_row(room, 1, w, row);
        first_row(room, 2, w, row);
        first_row(room, 3, w, row);
    }
}

// m = r1 r2 points, ROW apart, to `out`, side by side.
WT_INLINE void frames_column(const wt__fft_frames *f, const float *x, float *out, const int r1, const int r2)
{
    _Alignas(64) float room[64 * POINTS];
    const float *w = f->column_twiddles;
    for (int i = 0; i < r2; i++, w += 2 * r1) {
        cvec a[8];
        UNROLL for (int k = 0; k < r1; k++) a[k] = load_point(x + (i + r2 * k) * ROW);
        butterfly(a, r1, r1, NULL);
        store_point(room + i * POINTS, a[0]);
        UNROLL for (int j = 1; j < r1; j++)
            store_point(room + (j * r2 + i) * POINTS, times_w(a[j], w[2 * j], w[2 * j + 1]));
    }
    for (int j = 0; j < r1; j++) {
        cvec a[8];
        UNROLL for (int i = 0; i < r2; i++) a[i] = load_point(room + (j * r2 + i) * POINTS);
        butterfly(a, r2, r2, NULL);
        UNROLL for (int q = 0; q < r2; q++) store_point(out + (j + r1 * q) * POINTS, a[q]);
    }
}

WT_INLINE void store_power(float *powers, ptrdiff_t bin, cvec v)
{
    store(powers + bin * LANES, v.re * v.re + v.im * v.im);
}

// Bins that 16 divides.
WT_INLINE void frames_shared(const wt__fft_frames *f, const float *z, float *powers, const int m)
{
    const cvec first = load_point(z);
    for (int k = 1; k <= m / 2; k++) {
        const float *w = f->real_twiddles + 2 * k; // halves
        const cvec a = load_point(z + k * POINTS), b = load_point(z + (m - k) * POINTS);
        const cvec even = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
        const cvec odd = times_w((cvec){a.im + b.im, b.re - a.re}, w[0], w[1]);
        store_power(powers, SHARED * k, add(even, odd));
        store_power(powers, SHARED * (m - k), sub(even, odd));
    }
    store_power(powers, 0, (cvec){first.re + first.im, {0}});
    store_power(powers, SHARED * m, (cvec){first.re - first.im, {0}});
}

WT_INLINE void frames_second(const wt__fft_frames *f, const float *y, float *powers, const int r1, const int r2)
{
    _Alignas(64) float z[64 * POINTS];
    const int m = r1 * r2, n = 2 * SHARED * m;
    frames_column(f, y, z, r1, r2);
    frames_shared(f, z, powers, m);
    for (int j = 1; j < SHARED; j++) {
        frames_column(f, y + j * POINTS, z, r1, r2);
        for (int q = 0, bin = j; q < m; q++, bin += 2 * SHARED)
            store_power(powers, bin <= n / 2 ? bin : n - bin, load_point(z + q * POINTS));
    }
}

static void frames_powers(const wt__fft_frames *f, const float *x, const float *next, float *scratch, float *powers)
{
    float *y = scratch, *turned = scratch + f->n / (2 * SHARED) * ROW;
    turn_frames(f, x, turned);
    if (f->n == 2048) {
        frames_first(f, turned, next, y, 64);
        frames_second(f, y, powers, 8, 8);
    } else if (f->n == 1024) {
        frames_first(f, turned, next, y, 32);
        frames_second(f, y, powers, 8, 4);
    } else {
        frames_first(f, turned, next, y, 16);
        frames_second(f, y, powers, 4, 4);
    }
}
