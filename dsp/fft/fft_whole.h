// Frames of 2048 real samples, from their windows to their bins and back, for eight lanes: a part of fft_passes.h, on
// pairs (fft_pairs.h). Points n = p + 64 k, p = p1 + 8 p2, make bins k = c + 128 j, c = j1 + 16 j2:
//
//     [j1][p]      w_1024^(j1 p)  sum over k of w_16^(j1 k) x[p + 64 k]            vectors of 4 p
//     [j1][j2][p1] w_64^(j2 p1)   sum over p2 of w_8^(j2 p2) of these              vectors of 4 p1, in place
//     Z[c + 128 j]                sum over p1 of w_8^(j p1) of these               vectors of 4 c, turned
//
// Nothing is turned but what the last pass loads, where any four c may share a vector. So it takes c and 128 - c at
// once: Z[k] and Z[1024 - k], which make two bins (pair_bins() in fft_passes.h), are in the same lane. On the way back
// the same passes go the other way with the same tables, and add the frame to what its neighbours left.
//
// c = 0 is a mirror of its own with other j, and goes alone; 64 takes its place in the first vectors.
//
// What it writes to goes straight there: lines are asked for while the first two passes work, one or two at a time. A
// core that asks for many at once waits, and stores past the caches cost it more (bench/RESULTS.md).

enum {
    WHOLE_POINTS = 1024,
    WHOLE_K = 16,                               // radix of the first pass
    WHOLE_P = WHOLE_POINTS / WHOLE_K,           // its columns
    WHOLE_STEP = 2 * WHOLE_P,                   // floats from k to k + 1
    WHOLE_C = 128,                              // columns of the last pass
    WHOLE_BLOCKS = WHOLE_C / 2 / HALF,          // of its vectors, each with its mirror
    WHOLE_TWIDDLE = 2 * LANES                   // floats of a vector of factors: real parts twice, imaginary ones
};

WT_INLINE vec times_table(vec a, const float *w, const float sign)
{
    return times_pairs(a, load(w), load(w + LANES), sign);
}

// The next two lines of what will be written.
WT_INLINE void ask(const float **line)
{
    __builtin_prefetch(*line, 1);
    __builtin_prefetch(*line + LINE, 1);
    *line += 2 * LINE;
}

// ---- forward

static void whole_first(const wt__fft_whole_tables *t, const float *x, const float *weights, float *z,
                        const float *line)
{
    const float *w = t->first;
    for (int p = 0; p < WHOLE_P; p += HALF, w += WHOLE_K * WHOLE_TWIDDLE) {
        vec room[WHOLE_K];
        ask(&line);
        UNROLL for (int k = 0; k < 4; k++)
        {
            vec a[4];
            UNROLL for (int i = 0; i < 4; i++)
            {
                const ptrdiff_t at = 2 * p + WHOLE_STEP * (k + 4 * i);
                a[i] = load(x + at) * load(weights + at);
            }
            pairs_dft4(&a[0], &a[1], &a[2], &a[3], -1);
            UNROLL for (int j = 0; j < 4; j++)
                room[4 * j + k] = j && k ? times_table(a[j], t->columns + (4 * k + j) * WHOLE_TWIDDLE, -1) : a[j];
        }
        ask(&line);
        UNROLL for (int j = 0; j < 4; j++)
        {
            vec *a = room + 4 * j;
            pairs_dft4(&a[0], &a[1], &a[2], &a[3], -1);
            UNROLL for (int i = 0; i < 4; i++)
                store(z + 2 * p + WHOLE_STEP * (j + 4 * i),
                      i || j ? times_table(a[i], w + (j + 4 * i) * WHOLE_TWIDDLE, -1) : a[i]);
        }
    }
}

static void whole_mid(const wt__fft_whole_tables *t, float *z, const float *line)
{
    for (int j1 = 0; j1 < WHOLE_K; j1++)
        UNROLL for (int half = 0; half < 2; half++)
        {
            float *at = z + j1 * WHOLE_STEP + half * LANES;
            vec a[8];
            UNROLL for (int k = 0; k < 8; k++) a[k] = load(at + 16 * k);
            pairs_dft8(a, -1);
            UNROLL for (int j = 0; j < 8; j++)
                store(at + 16 * j, j ? times_table(a[j], t->mid + (8 * half + j) * WHOLE_TWIDDLE, -1) : a[0]);
            ask(&line);
        }
}

// Four rows that the last pass takes at once: those of c that rise, and of their mirrors, which fall.
typedef struct whole_rows {
    float *at[HALF];
} whole_rows;

WT_INLINE float *whole_row(float *z, const int c) { return z + (c & 15) * WHOLE_STEP + (c >> 4) * 16; }

WT_INLINE whole_rows low_rows(float *z, const int block)
{
    float *at = whole_row(z, HALF * block), *first = block ? at : whole_row(z, WHOLE_C / 2);
    return (whole_rows){{first, at + WHOLE_STEP, at + 2 * WHOLE_STEP, at + 3 * WHOLE_STEP}};
}

WT_INLINE whole_rows high_rows(float *z, const int block)
{
    float *at = whole_row(z, WHOLE_C - HALF * block - 3);
    float *first = whole_row(z, block ? WHOLE_C - HALF * block : WHOLE_C / 2);
    return (whole_rows){{first, at + 2 * WHOLE_STEP, at + WHOLE_STEP, at}};
}

WT_INLINE void load_rows(const whole_rows *rows, vec *a)
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        UNROLL for (int i = 0; i < HALF; i++) a[HALF * half + i] = load(rows->at[i] + LANES * half);
        turn_points(a + HALF * half);
    }
}

WT_INLINE void store_rows(const whole_rows *rows, vec *a)
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        turn_points(a + HALF * half);
        UNROLL for (int i = 0; i < HALF; i++) store(rows->at[i] + LANES * half, a[HALF * half + i]);
    }
}

// Of c = 0 alone, the same in all lanes.
WT_INLINE void load_zero(const float *z, vec *a)
{
    UNROLL for (int i = 0; i < 8; i++) a[i] = both_of(z + 2 * i);
}

WT_INLINE void store_point_of(float *to, vec v) { *(one_pair *)to = ((pairs_vec)v)[0]; }

// Z[k], Z[1024 - k] to X[k] and the conjugate of X[1024 - k], by -i w_2048^k, and back.
WT_INLINE void whole_bins(vec *low, vec *high, const float *w)
{
    const vec mirrored = {1, -1, 1, -1, 1, -1, 1, -1};
    const vec even = *low + *high * mirrored, odd = times_table(*low - *high * mirrored, w, -1);
    *low = even + odd, *high = even - odd;
}

WT_INLINE void whole_fold(vec *low, vec *high, const float *w)
{
    const vec even = *low + *high, odd = times_table(*low - *high, w, 1);
    *low = even + odd, *high = conjugates(even - odd);
}

// Factors of a block's j, and of c = 0.
WT_INLINE const float *bins_table(const wt__fft_whole_tables *t, const int block, const int j)
{
    return t->bins + (block * 8 + j) * WHOLE_TWIDDLE;
}

// A block's bins to the row, or from it. Where c = 0 should be in the first, the row gets numbers that last_zero()
// replaces, and c = 64 is apart.
WT_INLINE void store_block(float *row, const int block, const int j, vec low, vec high)
{
    float *at = row + 2 * (HALF * block + WHOLE_C * j);
    store(at, low);
    if (!block) store_point_of(at + WHOLE_C, low);
    store(row + 2 * (WHOLE_POINTS - HALF * block - WHOLE_C * j - 3), reversed(conjugates(high)));
}

WT_INLINE vec first_of(vec a, vec rest) { return __builtin_shuffle(a, rest, (ivec){0, 1, 10, 11, 12, 13, 14, 15}); }

WT_INLINE void load_block(const float *row, const int block, const int j, vec *low, vec *high)
{
    const float *at = row + 2 * (HALF * block + WHOLE_C * j);
    *low = load(at);
    *high = conjugates(reversed(load(row + 2 * (WHOLE_POINTS - HALF * block - WHOLE_C * j - 3))));
    if (block) return;
    *low = first_of(both_of(at + WHOLE_C), *low);
    *high = first_of(conjugates(both_of(row + 2 * WHOLE_POINTS - WHOLE_C - 2 * WHOLE_C * j)), *high);
}

WT_INLINE void last_block(const wt__fft_whole_tables *t, float *z, float *row, const int block)
{
    const whole_rows lows = low_rows(z, block), highs = high_rows(z, block);
    vec low[8], high[8];
    load_rows(&lows, low), load_rows(&highs, high);
    pairs_dft8(low, -1), pairs_dft8(high, -1);
    UNROLL for (int j = 0; j < 8; j++)
    {
        whole_bins(&low[j], &high[7 - j], bins_table(t, block, j));
        store_block(row, block, j, low[j], high[7 - j]);
    }
}

// After the others, whose stores reach over its bins.
WT_INLINE void last_zero(const wt__fft_whole_tables *t, const float *z, float *row)
{
    vec a[9];
    load_zero(z, a);
    pairs_dft8(a, -1);
    a[8] = a[0];
    UNROLL for (int j = 0; j <= 4; j++)
    {
        vec low = a[j], high = a[8 - j];
        whole_bins(&low, &high, bins_table(t, WHOLE_BLOCKS, j));
        store_point_of(row + 2 * WHOLE_C * j, low);
        store_point_of(row + 2 * WHOLE_C * (8 - j), conjugates(high));
    }
    row[1] = row[2 * WHOLE_POINTS + 1] = 0;
}

static void whole_forward(const wt__fft_whole_tables *t, const float *x, const float *weights, const float *next,
                          float *z, float *row)
{
    whole_first(t, x, weights, z, row);
    whole_mid(t, z, row + WHOLE_POINTS);
    last_block(t, z, row, 0);
    for (int block = 1; block < WHOLE_BLOCKS; block++) {
        last_block(t, z, row, block);
        ask(&next);
    }
    last_zero(t, z, row);
}

// ---- back

static void whole_mid_back(const wt__fft_whole_tables *t, float *z, const float *line)
{
    for (int j1 = 0; j1 < WHOLE_K; j1++)
        UNROLL for (int half = 0; half < 2; half++)
        {
            float *at = z + j1 * WHOLE_STEP + half * LANES;
            vec a[8];
            UNROLL for (int j = 0; j < 8; j++)
            {
                a[j] = load(at + 16 * j);
                if (j) a[j] = times_table(a[j], t->mid + (8 * half + j) * WHOLE_TWIDDLE, 1);
            }
            pairs_dft8(a, 1);
            UNROLL for (int k = 0; k < 8; k++) store(at + 16 * k, a[k]);
            ask(&line);
        }
}

// Its samples times `weights`, to the sums.
static void whole_first_back(const wt__fft_whole_tables *t, const float *z, const float *weights, float *sums,
                             const float *line)
{
    const float *w = t->first;
    for (int p = 0; p < WHOLE_P; p += HALF, w += WHOLE_K * WHOLE_TWIDDLE) {
        vec room[WHOLE_K];
        ask(&line);
        UNROLL for (int j = 0; j < 4; j++)
        {
            vec *a = room + 4 * j;
            UNROLL for (int i = 0; i < 4; i++)
            {
                a[i] = load(z + 2 * p + WHOLE_STEP * (j + 4 * i));
                if (i || j) a[i] = times_table(a[i], w + (j + 4 * i) * WHOLE_TWIDDLE, 1);
            }
            pairs_dft4(&a[0], &a[1], &a[2], &a[3], 1);
            UNROLL for (int k = 1; k < 4; k++)
                if (j) a[k] = times_table(a[k], t->columns + (4 * k + j) * WHOLE_TWIDDLE, 1);
        }
        ask(&line);
        UNROLL for (int k = 0; k < 4; k++)
        {
            pairs_dft4(&room[k], &room[4 + k], &room[8 + k], &room[12 + k], 1);
            UNROLL for (int i = 0; i < 4; i++)
            {
                const ptrdiff_t at = 2 * p + WHOLE_STEP * (k + 4 * i);
                store(sums + at, load(sums + at) + room[4 * i + k] * load(weights + at));
            }
        }
    }
}

WT_INLINE void back_block(const wt__fft_whole_tables *t, const float *row, float *z, const int block)
{
    const whole_rows lows = low_rows(z, block), highs = high_rows(z, block);
    vec low[8], high[8];
    UNROLL for (int j = 0; j < 8; j++)
    {
        load_block(row, block, j, &low[j], &high[7 - j]);
        whole_fold(&low[j], &high[7 - j], bins_table(t, block, j));
    }
    pairs_dft8(low, 1), pairs_dft8(high, 1);
    store_rows(&lows, low), store_rows(&highs, high);
}

// `a` of c = 0 with its bins folded.
WT_INLINE void zero_back(vec *a, float *z)
{
    pairs_dft8(a, 1);
    UNROLL for (int i = 0; i < 8; i++) store_point_of(z + 2 * i, a[i]);
}

WT_INLINE void back_zero(const wt__fft_whole_tables *t, const float *row, float *z)
{
    const float *ends[2] = {row, row + 2 * WHOLE_POINTS};
    vec a[8];
    UNROLL for (int j = 4; j > 0; j--)
    {
        vec low = both_of(row + 2 * WHOLE_C * j), high = conjugates(both_of(row + 2 * WHOLE_C * (8 - j)));
        whole_fold(&low, &high, bins_table(t, WHOLE_BLOCKS, j));
        a[j] = low, a[8 - j] = high;
    }
    const float sum = ends[0][0] + ends[1][0], less = ends[0][0] - ends[1][0]; // the other parts should be 0
    a[0] = (vec){sum, less, sum, less, sum, less, sum, less};
    zero_back(a, z);
}

static void whole_back(const wt__fft_whole_tables *t, const float *row, const float *next, const float *weights,
                       float *z, float *sums)
{
    back_block(t, row, z, 0);
    for (int block = 1; block < WHOLE_BLOCKS; block++) back_block(t, row, z, block);
    back_zero(t, row, z);
    whole_mid_back(t, z, next);
    whole_first_back(t, z, weights, sums, next + WHOLE_POINTS);
}

// ---- there and back, with new phases (dsp/spectral/griffin_lim.c)

// 1 / sqrt(x) of what is not negative, of the least normal number where it is less: the processor's guess of 12 bits,
// and the first terms of the series of what it lacks.
WT_INLINE vec inverse_roots(vec x)
{
    const float least = 1.17549435e-38f;
    const vec normal = __builtin_ia32_maxps256((vec){0} + least, x), y = __builtin_ia32_rsqrtps256(normal); // NaN stays
    const vec lack = 1 - normal * y * y;
    return y + y * lack * (0.5f + 0.375f * lack);
}

// Magnitudes of four bins and of their mirrors, in the order of powers_of().
WT_INLINE vec block_magnitudes(const float *magnitude, const int block, const int j)
{
    const float *at = magnitude + HALF * block + WHOLE_C * j;
    const float *mirror = magnitude + WHOLE_POINTS - HALF * block - WHOLE_C * j - 3;
    const half_vec a = *(const half_uvec *)at, b = *(const half_uvec *)mirror;
    const vec both = {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
    vec m = __builtin_shuffle(both, (ivec){0, 1, 7, 6, 2, 3, 5, 4});
    if (!block) m[0] = at[WHOLE_C / 2], m[2] = mirror[3 - WHOLE_C / 2];
    return m;
}

// Powers of bins, two of low, two of high, and so again.
WT_INLINE vec powers_of(vec low, vec high)
{
    const vec aa = low * low, bb = high * high;
    return __builtin_shuffle(aa, bb, (ivec){0, 2, 8, 10, 4, 6, 12, 14}) +
           __builtin_shuffle(aa, bb, (ivec){1, 3, 9, 11, 5, 7, 13, 15});
}

WT_INLINE void scale_bins(vec *low, vec *high, vec by)
{
    *low *= __builtin_shuffle(by, (ivec){0, 0, 1, 1, 4, 4, 5, 5});
    *high *= __builtin_shuffle(by, (ivec){2, 2, 3, 3, 6, 6, 7, 7});
}

// The roots of all j at once: one takes as long as all.
WT_INLINE void turn_block(const wt__fft_whole_tables *t, const float *magnitude, float *z, const int block)
{
    const whole_rows lows = low_rows(z, block), highs = high_rows(z, block);
    vec low[8], high[8], by[8];
    load_rows(&lows, low), load_rows(&highs, high);
    pairs_dft8(low, -1), pairs_dft8(high, -1);
    UNROLL for (int j = 0; j < 8; j++)
    {
        whole_bins(&low[j], &high[7 - j], bins_table(t, block, j));
        by[j] = powers_of(low[j], high[7 - j]);
    }
    UNROLL for (int j = 0; j < 8; j++) by[j] = block_magnitudes(magnitude, block, j) * inverse_roots(by[j]);
    UNROLL for (int j = 0; j < 8; j++)
    {
        scale_bins(&low[j], &high[7 - j], by[j]);
        whole_fold(&low[j], &high[7 - j], bins_table(t, block, j));
    }
    pairs_dft8(low, 1), pairs_dft8(high, 1);
    store_rows(&lows, low), store_rows(&highs, high);
}

WT_INLINE void turn_zero(const wt__fft_whole_tables *t, const float *magnitude, float *z)
{
    vec a[9];
    load_zero(z, a);
    pairs_dft8(a, -1);
    a[8] = a[0];
    UNROLL for (int j = 4; j >= 0; j--)
    {
        const float *w = bins_table(t, WHOLE_BLOCKS, j), l = magnitude[WHOLE_C * j], h = magnitude[WHOLE_C * (8 - j)];
        vec low = a[j], high = a[8 - j];
        whole_bins(&low, &high, w);
        const vec power = powers_of(low, high);
        scale_bins(&low, &high, (vec){l, l, h, h, l, l, h, h} * inverse_roots(power));
        whole_fold(&low, &high, w);
        a[j] = low;
        if (j) a[8 - j] = high;
    }
    zero_back(a, z);
}

static void whole_turn(const wt__fft_whole_tables *t, const wt__fft_turn *turn, float *z)
{
    whole_first(t, turn->x, turn->weights, z, turn->sums);
    whole_mid(t, z, turn->sums + WHOLE_POINTS);
    for (int block = 0; block < WHOLE_BLOCKS; block++) turn_block(t, turn->magnitude, z, block);
    turn_zero(t, turn->magnitude, z);
    whole_mid_back(t, z, turn->next_magnitude);
    whole_first_back(t, z, turn->back_weights, turn->sums, turn->next_x);
}

static const wt__fft_whole whole = {whole_forward, whole_back, whole_turn};
