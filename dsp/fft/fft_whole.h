// Frames of 2048 real samples, from their windows to their bins and back, for eight lanes: a part of fft_passes.h.
// Samples n = p + 64 k, p = p0 + 8 p1, make bins j + 32 q, q = q1 + 8 q0, and those with j = 17 .. 31 are conjugates:
//
//     y[j][p]      w_2048^(j p)   sum over k < 32 of w_32^(j k) x[p + 64 k]     j <= 16     vectors of 8 p
//     [j][q1][p0]  w_64^(p0 q1)   sum over p1 of w_8^(p1 q1) of these                       vectors of 8 p0, in place
//     X[j + 32 q]                 sum over p0 of w_8^(p0 q0) of these                       vectors of 8 j, turned
//
// Real and imaginary parts lie apart, [j][2][64], and nothing is shuffled but what the last pass turns and joins to
// pairs. No step goes from complex points of half the length to bins. For j = 0, whose y are real, bins come twice, as
// themselves and as their mirrors. j = 16 goes alone: its vectors are of 8 q1.
//
// Of eight frames at once, whose powers are wanted side by side, the last pass has a frame in each lane: what turns
// rows j into lanes turns frames there, and nothing else is shuffled.
//
// The way back is the same with real and imaginary parts exchanged, and adds the frame to what its neighbours left.
//
// What it writes to goes straight there: lines are asked for while the first two passes work, a few at a time. A core
// that asks for many at once waits, and stores past the caches cost it more (bench/TRIED.md).

enum {
    WHOLE_P = 64,             // columns of the first pass
    WHOLE_J = 17,             // its rows that count
    WHOLE_MIDDLE = 16,        // the last of them
    WHOLE_ROW = 2 * WHOLE_P,  // floats of one
    WHOLE_BINS = 1024,        // and one more
    WHOLE_TWIDDLE = 2 * LANES // floats of a vector of factors
};

WT_INLINE cvec load_parts(const float *x) { return (cvec){load(x), load(x + WHOLE_P)}; }
WT_INLINE void store_parts(float *x, cvec v) { store(x, v.re), store(x + WHOLE_P, v.im); }
WT_INLINE cvec swapped(cvec a) { return (cvec){a.im, a.re}; }

// A product or a factor that is made once: the compiler, for which a load costs nothing where an instruction takes it
// from memory, would load it for each use, and merge a product into both sums that have it. Two loads a cycle are all.
WT_INLINE vec once(vec v)
{
    __asm__("" : "+x"(v));
    return v;
}

WT_INLINE cvec times_table(cvec a, const float *w) { return times(a, once(load(w)), once(load(w + LANES))); }

// The next two lines of what will be written, or read.
WT_INLINE void ask(const float **line)
{
    __builtin_prefetch(*line, 1);
    __builtin_prefetch(*line + LINE, 1);
    *line += 2 * LINE;
}

// ---- 32 real samples and the 17 numbers that count

// Factors of row j of a block of columns.
WT_INLINE const float *first_table(const float *w, const int j) { return w + (j - 1) * WHOLE_TWIDDLE; }

// Rows j, j + 8 and, as their conjugates, 16 - j and 8 - j. `room` is of real_dft8().
WT_INLINE void whole_four(const vec *room, const int j, const float *w, float *z)
{
    const int places[4] = {j, j + 8, WHOLE_MIDDLE - j, 8 - j};
    cvec a[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        a[i] = (cvec){room[8 * j + i], room[8 * j + 4 + i]};
        if (i) a[i] = times_w(a[i], turns_of_32[j - 1][i - 1][0], turns_of_32[j - 1][i - 1][1]);
    }
    dft4(&a[0], &a[1], &a[2], &a[3]);
    UNROLL for (int i = 0; i < 4; i++)
        store_parts(z + places[i] * WHOLE_ROW, times_table(i < 2 ? a[i] : conjugate(a[i]), first_table(w, places[i])));
}

// Columns p .. p + 7, of which `w` are the factors.
WT_INLINE void first_columns(const float *w, const float *x, const float *weights, float *z)
{
    const float c = 0.707106781186547524f;
    vec room[32];
    UNROLL for (int i = 0; i < 4; i++)
    {
        vec sum[4], less[4];
        UNROLL for (int k = 0; k < 4; k++)
        {
            const ptrdiff_t low = WHOLE_P * (i + 4 * k), high = low + WHOLE_P * 16;
            const vec a = once(load(x + low) * load(weights + low));
            const vec b = once(load(x + high) * load(weights + high));
            sum[k] = a + b, less[k] = a - b;
        }
        real_dft8(sum, less, room + i);
    }
    const float *middle = first_table(w, WHOLE_MIDDLE);
    const vec even = room[0] + room[2], odd = room[1] + room[3], less = even - odd;
    store_parts(z, (cvec){even + odd, {0}});
    store_parts(z + WHOLE_MIDDLE * WHOLE_ROW, (cvec){less * load(middle), less * load(middle + LANES)});
    store_parts(z + 8 * WHOLE_ROW, times_table((cvec){room[0] - room[2], room[3] - room[1]}, first_table(w, 8)));
    const vec across = (room[5] - room[7]) * c, along = (room[5] + room[7]) * c;
    store_parts(z + 4 * WHOLE_ROW, times_table((cvec){room[4] + across, -room[6] - along}, first_table(w, 4)));
    store_parts(z + 12 * WHOLE_ROW, times_table((cvec){room[4] - across, room[6] - along}, first_table(w, 12)));
    whole_four(room, 1, w, z);
    whole_four(room, 2, w, z);
    whole_four(room, 3, w, z);
}

// Columns p .. p + 15, which fill lines of z.
static void first_line(const wt__fft_whole_tables *t, const int p, const float *x, const float *weights, float *z)
{
    for (int i = p; i < p + LINE; i += LANES)
        first_columns(t->first + 2 * i * WHOLE_MIDDLE, x + i, weights + i, z + i);
}

static void whole_first(const wt__fft_whole_tables *t, const float *x, const float *weights, float *z,
                        const float *line)
{
    for (int p = 0; p < WHOLE_P; p += LANES) {
        first_columns(t->first + 2 * p * WHOLE_MIDDLE, x + p, weights + p, z + p);
        UNROLL for (int i = 0; i < 4; i++) ask(&line);
    }
}

// ---- 8 p1 and 8 q1

WT_INLINE void mid_row(const float *mid, const float *z, float *to)
{
    cvec a[8];
    UNROLL for (int i = 0; i < 8; i++) a[i] = load_parts(z + LANES * i);
    dft8(a);
    UNROLL for (int q = 0; q < 8; q++)
        store_parts(to + LANES * q, q ? times_table(a[q], mid + (q - 1) * WHOLE_TWIDDLE) : a[0]);
}

static void whole_mid(const wt__fft_whole_tables *t, float *z, const float *line)
{
    for (int j = 0; j < WHOLE_J; j++, z += WHOLE_ROW) {
        mid_row(t->mid, z, z);
        ask(&line), ask(&line);
    }
}

// ---- 8 p0 and 8 q0

// Where row i of four lies whose numbers go to the low halves of vectors, and whose to the high ones. `joined`: in the
// order in which halves of real and imaginary parts come together to pairs.
WT_INLINE int low_row(const int i, const bool joined) { return joined ? i / 2 * 4 + i % 2 : i; }
WT_INLINE int high_row(const int i, const bool joined) { return joined ? low_row(i, true) + 2 : i + 4; }

// The low half of a, the high one of b: any port does it, where one alone crosses halves.
WT_INLINE vec blended(vec a, vec b) { return __builtin_ia32_blendps256(a, b, 0xf0); }

// Eight numbers of eight rows `step` apart, to a vector for each column, and back.
WT_INLINE void load_turned(const float *x, const ptrdiff_t step, const bool joined, vec *v)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const float *low = x + low_row(i, joined) * step, *high = x + high_row(i, joined) * step;
        v[i] = blended(load(low), load(high - HALF));
        v[i + 4] = blended(load(low + HALF), load(high));
    }
    turn_quarters(v);
}

WT_INLINE void store_turned(float *x, const ptrdiff_t step, const bool joined, vec *v)
{
    turn_quarters(v);
    UNROLL for (int i = 0; i < 4; i++)
    {
        store(x + low_row(i, joined) * step, low_halves(v[i], v[4 + i]));
        store(x + high_row(i, joined) * step, high_halves(v[i], v[4 + i]));
    }
}

WT_INLINE void load_columns(const float *x, const ptrdiff_t step, const bool joined, cvec *a)
{
    vec re[8], im[8];
    load_turned(x, step, joined, re), load_turned(x + WHOLE_P, step, joined, im);
    UNROLL for (int i = 0; i < 8; i++) a[i] = (cvec){re[i], im[i]};
}

WT_INLINE void store_columns(float *x, const ptrdiff_t step, const bool joined, const cvec *a)
{
    vec re[8], im[8];
    UNROLL for (int i = 0; i < 8; i++) re[i] = a[i].re, im[i] = a[i].im;
    store_turned(x, step, joined, re), store_turned(x + WHOLE_P, step, joined, im);
}

// The first of the bins that rows 8 g .. 8 g + 7 make of q, which rise, or from q = 32 on fall, as conjugates.
WT_INLINE ptrdiff_t bin_of(const int g, const ptrdiff_t q, const bool falls)
{
    return falls ? 2 * WHOLE_BINS - 32 * q - LANES * g - LANES + 1 : LANES * g + 32 * q;
}

WT_INLINE void store_falling(float *row, cvec v)
{
    const vec low = __builtin_shuffle(v.re, -v.im, (ivec){0, 8, 1, 9, 4, 12, 5, 13});
    const vec high = __builtin_shuffle(v.re, -v.im, (ivec){2, 10, 3, 11, 6, 14, 7, 15});
    store(row, reversed(high)), store(row + LANES, reversed(low));
}

WT_INLINE void last_rows(const float *z, float *row, const int g, const ptrdiff_t q1)
{
    cvec a[8];
    load_columns(z + LANES * g * WHOLE_ROW + LANES * q1, WHOLE_ROW, true, a);
    dft8(a);
    UNROLL for (int q0 = 0; q0 < 4; q0++)
        store_points(row + 2 * bin_of(g, q1 + 8 * q0, false), NULL, WT__FFT_PAIRS, 0, a[q0]);
    UNROLL for (int q0 = 4; q0 < 8; q0++) store_falling(row + 2 * bin_of(g, q1 + 8 * q0, true), a[q0]);
}

// ---- j = 16, whose columns p0 have rows q1 of 8

WT_INLINE vec backwards(vec a) { return __builtin_shuffle(a, (ivec){7, 6, 5, 4, 3, 2, 1, 0}); }
WT_INLINE void store_point_of(float *to, vec v, const int i) { *(one_pair *)to = ((pairs_vec)v)[i]; }

// Where its bins q1 + 8 q0 begin, 32 from one to the next. Those of q0 = 4 .. 7 are the mirrors of 3 .. 0.
WT_INLINE ptrdiff_t middle_bin(const int q0) { return WHOLE_MIDDLE + 32 * 8 * q0; }

static void last_middle(const float *z, float *row)
{
    cvec a[8];
    load_columns(z + WHOLE_MIDDLE * WHOLE_ROW, LANES, true, a);
    dft8(a);
    UNROLL for (int q0 = 0; q0 < 4; q0++)
    {
        float *to = row + 2 * middle_bin(q0);
        const vec low = __builtin_shuffle(a[q0].re, a[q0].im, (ivec){0, 8, 1, 9, 4, 12, 5, 13});
        const vec high = __builtin_shuffle(a[q0].re, a[q0].im, (ivec){2, 10, 3, 11, 6, 14, 7, 15});
        UNROLL for (int i = 0; i < 4; i++)
        {
            store_point_of(to + 64 * i, low, i);
            store_point_of(to + 64 * (4 + i), high, i);
        }
    }
}

static void whole_forward(const wt__fft_whole_tables *t, const float *x, const float *weights, const float *next,
                          float *z, float *row)
{
    whole_first(t, x, weights, z, row);
    whole_mid(t, z, row + WHOLE_BINS);
    for (ptrdiff_t q1 = 0; q1 < 8; q1++) {
        last_rows(z, row, 0, q1);
        ask(&next);
        last_rows(z, row, 1, q1);
        ask(&next);
    }
    last_middle(z, row);
    row[1] = row[2 * WHOLE_BINS + 1] = 0;
}

// ---- powers of LANES frames at once, which the last pass has in lanes

enum { WHOLE_APART = WT__FFT_WHOLE_WORK + LINE }; // floats from frame to frame: in other sets of a cache

// Bins j + 32 q, those of q0 from 4 on by their mirrors. Rows 0 and 16 are mirrors of themselves, but for the last bin.
WT_INLINE void powers_row(const float *z, float *powers, const ptrdiff_t j, const int n_q0, const float **next)
{
    for (ptrdiff_t q1 = 0; q1 < 8; q1++) {
        cvec a[8];
        load_columns(z + LANES * q1, WHOLE_ROW, false, a);
        dft8(a);
        UNROLL for (int q0 = 0; q0 < n_q0; q0++)
        {
            const ptrdiff_t bin = j + 32 * (q1 + 8 * q0);
            store_power(powers, q0 < 4 ? bin : 2 * WHOLE_BINS - bin, a[q0]);
        }
        ask(next);
    }
}

// Frames share factors, weights and most samples of a column, and a row goes through two passes while it is near.
static void whole_powers(const wt__fft_frames *f, const float *x, const float *next, float *z, float *powers)
{
    _Alignas(64) float rows[LANES * WHOLE_ROW];
    for (int p = 0; p < WHOLE_P; p += LINE)
        for (int i = 0; i < LANES; i++)
            first_line(&f->whole, p, x + i * (ptrdiff_t)f->hop, f->window, z + i * WHOLE_APART);
    for (ptrdiff_t j = 0; j < WHOLE_J; j++) {
        for (int i = 0; i < LANES; i++)
            mid_row(f->whole.mid, z + i * WHOLE_APART + j * WHOLE_ROW, rows + i * WHOLE_ROW);
        if (j && j < WHOLE_MIDDLE) powers_row(rows, powers, j, 8, &next);
        else powers_row(rows, powers, j, j ? 4 : 5, &next);
    }
}

static void frames_or_whole(const wt__fft_frames *f, const float *x, const float *next, float *scratch, float *powers)
{
    if (f->n == WT__FFT_WHOLE) whole_powers(f, x, next, scratch, powers);
    else frames_powers(f, x, next, scratch, powers);
}

// ---- back: real and imaginary parts are exchanged from the first load to whole_first_back()

WT_INLINE cvec load_joined(const float *row)
{
    const vec a = load(row), b = load(row + LANES);
    return (cvec){__builtin_shuffle(a, b, (ivec){1, 3, 9, 11, 5, 7, 13, 15}),
                  __builtin_shuffle(a, b, (ivec){0, 2, 8, 10, 4, 6, 12, 14})};
}

// Of bins that fall, which are conjugates.
WT_INLINE cvec load_falling(const float *row)
{
    const vec a = load(row), b = load(row + LANES);
    const vec high = __builtin_shuffle(a, (ivec){4, 5, 6, 7, 0, 1, 2, 3});
    const vec low = __builtin_shuffle(b, (ivec){4, 5, 6, 7, 0, 1, 2, 3});
    return (cvec){-__builtin_shuffle(low, high, (ivec){3, 1, 11, 9, 7, 5, 15, 13}),
                  __builtin_shuffle(low, high, (ivec){2, 0, 10, 8, 6, 4, 14, 12})};
}

WT_INLINE void rows_back(const float *row, float *z, const int g, const ptrdiff_t q1)
{
    cvec a[8];
    UNROLL for (int q0 = 0; q0 < 4; q0++) a[q0] = load_joined(row + 2 * bin_of(g, q1 + 8 * q0, false));
    UNROLL for (int q0 = 4; q0 < 8; q0++) a[q0] = load_falling(row + 2 * bin_of(g, q1 + 8 * q0, true));
    dft8(a);
    store_columns(z + LANES * g * WHOLE_ROW + LANES * q1, WHOLE_ROW, true, a);
}

// Half of its bins to all of what makes them, parts exchanged as those are.
WT_INLINE void middle_back(cvec *a, float *z)
{
    UNROLL for (int q0 = 0; q0 < 4; q0++) a[7 - q0] = (cvec){-backwards(a[q0].re), backwards(a[q0].im)};
    dft8(a);
    store_columns(z + WHOLE_MIDDLE * WHOLE_ROW, LANES, false, a);
}

static void back_middle(const float *row, float *z)
{
    cvec a[8];
    UNROLL for (int q0 = 0; q0 < 4; q0++)
    {
        const float *from = row + 2 * middle_bin(q0);
        pairs_vec low, high;
        UNROLL for (int i = 0; i < 4; i++)
        {
            low[i] = *(const one_pair *)(from + 64 * i);
            high[i] = *(const one_pair *)(from + 64 * (4 + i));
        }
        a[q0] = (cvec){__builtin_shuffle((vec)low, (vec)high, (ivec){1, 3, 5, 7, 9, 11, 13, 15}),
                       __builtin_shuffle((vec)low, (vec)high, (ivec){0, 2, 4, 6, 8, 10, 12, 14})};
    }
    middle_back(a, z);
}

static void whole_mid_back(const wt__fft_whole_tables *t, float *z, const float *line)
{
    const float *mid = t->mid;
    for (int j = 0; j < WHOLE_J; j++, z += WHOLE_ROW) {
        cvec a[8];
        UNROLL for (int q = 0; q < 8; q++)
        {
            a[q] = load_parts(z + LANES * q);
            if (q) a[q] = times_table(a[q], mid + (q - 1) * WHOLE_TWIDDLE);
        }
        dft8(a);
        UNROLL for (int i = 0; i < 8; i++) store_parts(z + LANES * i, a[i]);
        ask(&line), ask(&line);
    }
}

WT_INLINE cvec load_back(const float *z, const float *w, const int j)
{
    return swapped(times_table(load_parts(z + j * WHOLE_ROW), first_table(w, j)));
}

// What whole_four() made its rows of: `room` as real_dft8() leaves it.
WT_INLINE void four_back(const float *z, const float *w, const int j, vec *room)
{
    cvec a[4] = {load_back(z, w, j), load_back(z, w, j + 8), conjugate(load_back(z, w, WHOLE_MIDDLE - j)),
                 conjugate(load_back(z, w, 8 - j))};
    dft4(&a[0], &a[3], &a[2], &a[1]); // the other way round: back
    const cvec b[4] = {a[0], a[3], a[2], a[1]};
    UNROLL for (int i = 0; i < 4; i++)
    {
        const cvec v = i ? times_w(b[i], turns_of_32[j - 1][i - 1][0], -turns_of_32[j - 1][i - 1][1]) : b[0];
        room[8 * j + i] = v.re, room[8 * j + 4 + i] = v.im;
    }
}

// Half of eight real samples of X[0], X[4] by two and X[1], X[2], X[3].
WT_INLINE void real_back8(const vec *room, vec *x)
{
    const float c = 0.707106781186547524f;
    const vec even = room[0] + room[4], odd = room[0] - room[4];
    const vec rise = even + room[16], fall = even - room[16], less = odd - room[20], more = odd + room[20];
    const vec re = room[8] + room[24], im = room[12] - room[28];
    const vec re_less = room[8] - room[24], im_sum = room[12] + room[28];
    const vec along = (re_less - im_sum) * c, across = (re_less + im_sum) * c;
    x[0] = rise + re, x[4] = rise - re, x[2] = fall - im, x[6] = fall + im;
    x[1] = less + along, x[5] = less - along, x[3] = more - across, x[7] = more + across;
}

// Its samples times `weights`, to the sums.
static void whole_first_back(const wt__fft_whole_tables *t, const float *z, const float *weights, float *sums,
                             const float *line)
{
    const float c = 0.707106781186547524f, *w = t->first;
    for (int p = 0; p < WHOLE_P; p += LANES, w += WHOLE_MIDDLE * WHOLE_TWIDDLE, z += LANES) {
        vec room[32];
        const vec zero = 0.5f * load(z + WHOLE_P), middle = 0.5f * load_back(z, w, WHOLE_MIDDLE).re;
        const vec even = zero + middle, odd = zero - middle;
        const cvec x8 = load_back(z, w, 8);
        room[0] = even + x8.re, room[2] = even - x8.re, room[1] = odd - x8.im, room[3] = odd + x8.im;
        const cvec x4 = load_back(z, w, 4), x12 = load_back(z, w, 12);
        const vec less = x4.re - x12.re, sum = x4.im + x12.im;
        room[4] = x4.re + x12.re, room[5] = (less - sum) * c, room[6] = x12.im - x4.im, room[7] = (less + sum) * -c;
        four_back(z, w, 1, room);
        four_back(z, w, 2, room);
        four_back(z, w, 3, room);
        UNROLL for (int i = 0; i < 4; i++)
        {
            vec x[8];
            real_back8(room + i, x);
            UNROLL for (int k = 0; k < 8; k++)
            {
                const ptrdiff_t at = p + WHOLE_P * (i + 4 * k);
                store(sums + at, load(sums + at) + x[k] * load(weights + at));
            }
            ask(&line);
        }
    }
}

static void whole_back(const wt__fft_whole_tables *t, const float *row, const float *next, const float *weights,
                       float *z, float *sums)
{
    for (ptrdiff_t q1 = 0; q1 < 8; q1++) {
        rows_back(row, z, 0, q1);
        rows_back(row, z, 1, q1);
    }
    back_middle(row, z);
    whole_mid_back(t, z, next);
    whole_first_back(t, z, weights, sums, next + WHOLE_BINS);
}

// ---- there and back, with new magnitudes (dsp/spectral/griffin_lim.c)

// 1 / sqrt(x) of what is not negative, of the least normal number where it is less: the processor's guess of 12 bits,
// and the first terms of the series of what it lacks.
WT_INLINE vec inverse_roots(vec x)
{
    const float least = 1.17549435e-38f;
    const vec normal = __builtin_ia32_maxps256((vec){0} + least, x), y = __builtin_ia32_rsqrtps256(normal); // NaN stays
    const vec lack = 1 - normal * y * y;
    return y + y * lack * (0.5f + 0.375f * lack);
}

// Bins brought to `magnitudes`, real and imaginary parts exchanged.
WT_INLINE cvec brought(cvec a, vec magnitudes)
{
    const vec by = magnitudes * inverse_roots(a.re * a.re + a.im * a.im);
    return (cvec){a.im * by, a.re * by};
}

// The signs of bins that are conjugates do not count.
WT_INLINE void turn_columns(const float *magnitude, float *z, const int g, const ptrdiff_t q1)
{
    float *at = z + LANES * g * WHOLE_ROW + LANES * q1;
    cvec a[8];
    load_columns(at, WHOLE_ROW, false, a);
    dft8(a);
    UNROLL for (int q0 = 0; q0 < 8; q0++)
    {
        const vec m = load(magnitude + bin_of(g, q1 + 8 * q0, q0 >= 4));
        a[q0] = brought(a[q0], q0 < 4 ? m : backwards(m));
    }
    dft8(a);
    store_columns(at, WHOLE_ROW, false, a);
}

static void turn_middle(const float *magnitude, float *z)
{
    cvec a[8];
    load_columns(z + WHOLE_MIDDLE * WHOLE_ROW, LANES, false, a);
    dft8(a);
    UNROLL for (int q0 = 0; q0 < 4; q0++)
    {
        const float *from = magnitude + middle_bin(q0);
        vec m;
        UNROLL for (int i = 0; i < LANES; i++) m[i] = from[32 * i];
        a[q0] = brought(a[q0], m);
    }
    middle_back(a, z);
}

static void whole_turn(const wt__fft_whole_tables *t, const wt__fft_turn *turn, float *z)
{
    whole_first(t, turn->x, turn->weights, z, turn->sums);
    whole_mid(t, z, turn->sums + WHOLE_BINS);
    for (ptrdiff_t q1 = 0; q1 < 8; q1++) {
        turn_columns(turn->magnitude, z, 0, q1);
        turn_columns(turn->magnitude, z, 1, q1);
    }
    turn_middle(turn->magnitude, z);
    whole_mid_back(t, z, turn->next_magnitude);
    whole_first_back(t, z, turn->back_weights, turn->sums, turn->next_x);
}

static const wt__fft_whole whole = {whole_forward, whole_back, whole_turn};
