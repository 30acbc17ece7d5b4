// Complex transforms of one length: the order of the passes, their tables, and Bluestein's way round large primes.
//
// A length runs one transform at a time when its first radix r fills the vectors of the later passes (r >= lanes) and
// the rest n / r those of the first; vectors of half the width may do. Otherwise `lanes` of them run side by side, even
// when there is only one: the length alone decides, so a result never depends on the batch. Where four lanes would do
// for one, fewer than a group go one by one in the same passes, which gives the same bits. Tables come from double.

#include "fft_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const int wt__fft_radices[WT__FFT_N_RADICES] = {2, 3, 4, 5, 7, 8, 11, 13, 16, 9, 15, 25, 0};

struct wt__fft_core {
    int n, n_passes;
    bool tiled; // transforms side by side
    const wt__fft_kernels *kernels;
    float *tables;
    wt__fft_pass passes[WT__FFT_MAX_PASSES];
    // Bluestein: X[k] = c[k] sum over j of (x[j] c[j]) conj(c)[k - j] with c[k] = exp(-i pi k^2 / n)
    wt__fft_core *inner;
    wt__fft_core *few; // tiled: the same passes for one transform at a time, or NULL
    wt__fft_core *pairs;      // passes on pairs, or NULL
    wt__fft_rows_fn rows[2];  // of these: in one call, or NULL
    int inner_n;
    const float *chirp_re, *chirp_im;   // [n] c
    const float *filter_re, *filter_im; // [inner_n] transform of conj(c), over inner_n
};

static const double PI = 3.14159265358979323846;

// ---- the order of the passes

static int radix_index(int radix)
{
    for (int i = 0; i < WT__FFT_GENERIC; i++)
        if (wt__fft_radices[i] == radix) return i;
    return WT__FFT_GENERIC;
}

// Factors of n in falling order with powers of two as 16, 8, 4; 0 when a prime is too large.
static int factorise(int n, int *radices)
{
    int count = 0, twos = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    for (int prime = 3; n > 1; prime += 2) {
        if (prime > WT__FFT_MAX_PRIME) return 0;
        for (; n % prime == 0; n /= prime) radices[count++] = prime;
    }
    if (twos % 4 == 1 && twos > 4) {
        radices[count++] = 8, radices[count++] = 4;
        twos -= 5;
    }
    if (twos % 4 == 2 && twos > 4) {
        radices[count++] = 8, radices[count++] = 8;
        twos -= 6;
    }
    for (; twos >= 4; twos -= 4) radices[count++] = 16;
    if (twos) radices[count++] = 1 << twos;
    for (int i = 1; i < count; i++)
        for (int k = i; k && radices[k - 1] < radices[k]; k--) {
            int larger = radices[k];
            radices[k] = radices[k - 1], radices[k - 1] = larger;
        }
    return count;
}

// The radix to begin with on `lanes`: a power of two, whose stores are fast, or any odd divisor; 0 = none.
static int first_radix(int n, int lanes, bool odd)
{
    if (lanes == 8 && n == 8 * 16 && !odd) return 8; // fewer shuffles than 16 * 8
    for (int radix = 16; radix >= 4 && !odd; radix /= 2)
        if (radix >= lanes && n % radix == 0 && n / radix >= lanes) return radix;
    for (int radix = lanes + 1; radix <= WT__FFT_MAX_PRIME && odd; radix += 2)
        if (n % radix == 0 && n / radix >= lanes) return radix;
    return 0;
}

// Four lanes' first radix, which a tile begins with too: one that any pass can have.
static int few_radix(int n)
{
    const int radix = first_radix(n, 4, false), odd = first_radix(n, 4, true);
    return radix || odd > 7 ? radix : odd;
}

// The sets to choose from, the widest first.
static int kernel_sets(int max_lanes, const wt__fft_kernels **sets)
{
    int count = 0;
#ifdef WT__FFT_X86_LEVELS
    if (__builtin_cpu_supports("x86-64-v4") && (!max_lanes || max_lanes >= 16)) {
        sets[count++] = &wt__fft_kernels_avx512;
        sets[count++] = &wt__fft_kernels_avx512_half;
    } else if (__builtin_cpu_supports("x86-64-v3") && (!max_lanes || max_lanes >= 8)) {
        sets[count++] = &wt__fft_kernels_avx2;
    }
#else
    (void)max_lanes;
#endif
    if (!count) sets[count++] = &wt__fft_kernels_base;
    return count;
}

static void lay_passes(wt__fft_core *core, int first)
{
    int radices[WT__FFT_MAX_PASSES], count = 0;
    if (first) radices[count++] = first;
    count += factorise(core->n / (first ? first : 1), radices + count);
    core->n_passes = count;
    int s = core->tiled ? core->kernels->lanes : 1, rest = core->n;
    for (int i = 0; i < count; i++) {
        int radix = radices[i];
        rest /= radix;
        core->passes[i] = (wt__fft_pass){.radix = radix, .index = radix_index(radix), .m = rest, .s = s};
        s *= radix;
    }
    core->passes[0].square = !core->tiled && count == 3 && radices[0] == WT__FFT_BEFORE_SQUARE &&
                             radices[1] == WT__FFT_SQUARE && radices[2] == WT__FFT_SQUARE;
}

static void order_passes(wt__fft_core *core, int max_lanes)
{
    const wt__fft_kernels *sets[2];
    int n_sets = kernel_sets(max_lanes, sets), first = 0, chosen = 0;
    for (int attempt = 0; attempt < 2 * n_sets && !first; attempt++) { // powers of two on any width, then odd ones
        chosen = attempt % n_sets;
        first = first_radix(core->n, sets[chosen]->lanes, attempt >= n_sets);
    }
    core->tiled = !first;
    if (core->tiled) chosen = n_sets > 1 && 2 * core->n < sets[0]->lanes; // a row of a tile fills a vector
    core->kernels = sets[chosen];
    lay_passes(core, first ? first : few_radix(core->n));
}

// ---- tables

static void root(double turns_num, double turns_den, float *re, float *im)
{
    double angle = -2 * PI * turns_num / turns_den;
    *re = (float)cos(angle), *im = (float)sin(angle);
}

static bool has_pair_twiddles(const wt__fft_core *core, int i)
{
    return i == 0 && !core->tiled && core->kernels->lanes == 8;
}

static size_t twiddle_floats(const wt__fft_core *core, int i)
{
    const wt__fft_pass *pass = &core->passes[i];
    int lanes = core->kernels->lanes, groups = pass->m;
    if (i == 0 && !core->tiled) groups = (groups + lanes - 1) / lanes * lanes;
    return (size_t)groups * (pass->radix - 1) * 2;
}

// The two factors of a composite odd radix, else 1 and itself.
static void odd_factors(int radix, int *a, int *b)
{
    *a = radix == 9 || radix == 15 ? 3 : radix == 25 ? 5 : 1;
    *b = radix / *a;
}

static size_t trig_floats(const wt__fft_pass *pass)
{
    if (pass->radix % 2 == 0) return 0;
    int a, b;
    odd_factors(pass->radix, &a, &b);
    size_t floats = (size_t)((a - 1) * (a - 1) + (b - 1) * (b - 1)) / 2;
    return a > 1 ? floats + 2 * (size_t)pass->radix : floats;
}

static void fill_twiddles(const wt__fft_core *core, const wt__fft_pass *pass, bool first, wt__fft_form form,
                          float *table)
{
    const int lanes = first ? core->kernels->lanes : 1, n = pass->m * pass->radix;
    for (int block = 0; block < pass->m; block += lanes) {
        int p = block + lanes <= pass->m ? block : pass->m - lanes; // the last vector overlaps
        for (int j = 1; j < pass->radix; j++, table += 2 * lanes)
            for (int lane = 0; lane < lanes; lane++)
                root((double)((int64_t)(p + wt__fft_lane_place(lanes, form, lane)) * j % n), n, &table[lane],
                     &table[lanes + lane]);
    }
}

static float *fill_cosines(int prime, float *table)
{
    for (int j = 1; j <= prime / 2; j++)
        for (int k = 1; k <= prime / 2; k++, table += 2) {
            root(j * k % prime, prime, &table[0], &table[1]);
            table[1] = -table[1];
        }
    return table;
}

static void fill_trig(int radix, float *table)
{
    int a, b;
    odd_factors(radix, &a, &b);
    table = fill_cosines(a, table);
    table = fill_cosines(b, table);
    for (int j = 0; a > 1 && j < a; j++)
        for (int k = 0; k < b; k++, table += 2) root(j * k, radix, &table[0], &table[1]);
}

static wt_status take_floats(size_t count, float **floats)
{
    size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    *floats = aligned_alloc(64, bytes ? bytes : 64);
    return *floats ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "fft: %zu bytes of tables", bytes);
}

wt_status wt__fft_real_twiddles(int h, float **twiddles)
{
    const size_t part = wt__fft_padded((size_t)h / 2 + 1);
    wt_status status = take_floats(2 * part, twiddles);
    for (int k = 0; !status && k <= h / 2; k++) root(k, 2.0 * h, *twiddles + k, *twiddles + part + k);
    return status;
}

static wt_status fill_passes(wt__fft_core *core)
{
    size_t count = 0;
    for (int i = 0; i < core->n_passes; i++)
        count += (has_pair_twiddles(core, i) ? 2 : 1) * wt__fft_padded(twiddle_floats(core, i)) +
                 wt__fft_padded(trig_floats(&core->passes[i]));
    wt_status status = take_floats(count, &core->tables);
    if (status) return status;

    float *table = core->tables;
    for (int i = 0; i < core->n_passes; i++) {
        wt__fft_pass *pass = &core->passes[i];
        pass->twiddles = pass->pair_twiddles = table;
        fill_twiddles(core, pass, i == 0 && !core->tiled, WT__FFT_SPLIT, table);
        table += wt__fft_padded(twiddle_floats(core, i));
        if (has_pair_twiddles(core, i)) {
            pass->pair_twiddles = table;
            fill_twiddles(core, pass, true, WT__FFT_PAIRS, table);
            table += wt__fft_padded(twiddle_floats(core, i));
        }
        pass->trig = table;
        if (pass->radix % 2) fill_trig(pass->radix, table);
        table += wt__fft_padded(trig_floats(pass));
    }
    return WT_OK;
}

// Four lanes, whose sums round as those of a tile do.
static const wt__fft_kernels *few_kernels(const wt__fft_core *core)
{
#ifdef WT__FFT_X86_LEVELS
    if (core->kernels != &wt__fft_kernels_base) return &wt__fft_kernels_avx2_half;
#endif
    return core->kernels;
}

// Single transforms of what goes side by side.
static wt_status plan_few(wt__fft_core *core)
{
    const int first = few_radix(core->n);
    if (!core->tiled || core->kernels == &wt__fft_kernels_base || !first) return WT_OK;
    wt__fft_core *few = calloc(1, sizeof *few);
    if (!few) return wt_fail(WT_ERR_NO_MEMORY, "fft: core");
    *few = (wt__fft_core){.n = core->n, .kernels = few_kernels(core)};
    core->few = few;
    lay_passes(few, first);
    return fill_passes(few);
}

// ---- passes on pairs

enum { PAIRS_POINTS = 4, PAIRS_LONGEST = 1 << 16 }; // longer ones' tables fill the caches

// Powers of two as few radices as alike as can be, then fives, then threes; 0 where a prime is larger, or the first
// pass or its columns do not fill a vector.
static int pairs_radices(int n, int *radices)
{
    int count = 0, twos = 0, odd = n;
    for (; odd % 2 == 0; odd /= 2) twos++;
    if (n == 8) return radices[0] = 2, radices[1] = 4, 2; // one vector has four points, the other four
    for (int left = odd == 1 && twos <= 4 ? 2 : (twos + 3) / 4; left; left--) {
        const int bits = (twos + left - 1) / left;
        radices[count++] = 1 << bits;
        twos -= bits;
    }
    for (int prime = 5; prime >= 3; prime -= 2)
        for (; odd % prime == 0; odd /= prime) radices[count++] = prime;
    return odd > 1 || n % PAIRS_POINTS || n / radices[0] < PAIRS_POINTS ? 0 : count;
}

static size_t pairs_floats(const wt__fft_pass *pass, int lanes)
{
    return 4 * (size_t)(pass->radix - 1) * (size_t)((pass->m + lanes - 1) / lanes * lanes);
}

static void fill_pairs(const wt__fft_pass *pass, int lanes, float *table)
{
    const int n = pass->m * pass->radix;
    for (int block = 0; block < pass->m; block += lanes) {
        const int p = block + lanes <= pass->m ? block : pass->m - lanes;
        for (int j = 1; j < pass->radix; j++, table += 4 * lanes)
            for (int lane = 0; lane < lanes; lane++) {
                float *re = table + 2 * lane, *im = re + 2 * lanes;
                root((double)((int64_t)(p + lane) * j % n), n, re, im + 1);
                re[1] = re[0], im[0] = -im[1];
            }
    }
}

static wt_status plan_pairs(wt__fft_core *core)
{
    int radices[WT__FFT_MAX_PASSES];
    const wt__fft_pairs *kernels = core->kernels->pairs;
    const int count = kernels && core->n <= PAIRS_LONGEST ? pairs_radices(core->n, radices) : 0;
    if (!count) return WT_OK;
    wt__fft_core *pairs = calloc(1, sizeof *pairs);
    if (!pairs) return wt_fail(WT_ERR_NO_MEMORY, "fft: core");
    *pairs = (wt__fft_core){.n = core->n, .n_passes = count, .kernels = core->kernels};
    core->pairs = pairs;
    size_t floats = 0;
    for (int i = 0, s = 1; i < count; s *= radices[i++]) {
        pairs->passes[i] = (wt__fft_pass){.radix = radices[i], .m = core->n / s / radices[i], .s = s};
        if (!i && count == 3 && radices[1] == radices[2] && radices[1] >= 8)
            pairs->passes[i].turned_bits = radices[1] == 8 ? 3 : 4;
        floats += wt__fft_padded(pairs_floats(&pairs->passes[i], i ? 1 : PAIRS_POINTS));
    }
    wt_status status = take_floats(floats, &pairs->tables);
    if (status) return status;
    float *table = pairs->tables;
    for (int i = 0; i < count; i++) {
        pairs->passes[i].twiddles = table;
        fill_pairs(&pairs->passes[i], i ? 1 : PAIRS_POINTS, table);
        table += wt__fft_padded(pairs_floats(&pairs->passes[i], i ? 1 : PAIRS_POINTS));
    }
    for (const wt__fft_rows *rows = kernels->rows; rows->n; rows++)
        if (rows->n == core->n) memcpy(pairs->rows, rows->run, sizeof pairs->rows);
    return WT_OK;
}

bool wt__fft_core_pairs(const wt__fft_core *core) { return core->pairs; }

wt__fft_rows_fn wt__fft_core_rows_fn(const wt__fft_core *core, bool back, const wt__fft_pass **passes)
{
    *passes = core->pairs->passes;
    return core->pairs->rows[back];
}

// Those of -i w^k for k = 0 .. h / 2, by vectors.
wt_status wt__fft_pairs_twiddles(int h, float **twiddles)
{
    const int last = h / 2 - PAIRS_POINTS + 1;
    wt_status status = take_floats((size_t)(h / 2 / PAIRS_POINTS + 1) * 4 * PAIRS_POINTS, twiddles);
    float *table = *twiddles;
    for (int block = 0; !status && block <= h / 2; block += PAIRS_POINTS, table += 4 * PAIRS_POINTS)
        for (int lane = 0; lane < PAIRS_POINTS; lane++) {
            float *re = table + 2 * lane, *im = re + 2 * PAIRS_POINTS, cosine;
            root((block < last ? block : last) + lane, 2.0 * h, &cosine, re);
            re[1] = re[0], im[0] = cosine, im[1] = -cosine;
        }
    return status;
}

// ---- Bluestein

wt_status wt__fft_chirp(int n, const wt__fft_core *inner, float *c_re, float *c_im, float *f_re, float *f_im)
{
    const int m = inner->n;
    float *work;
    wt_status status = take_floats(wt__fft_core_scratch_floats(inner), &work);
    if (status) return status;
    memset(f_re, 0, (size_t)m * sizeof *f_re);
    memset(f_im, 0, (size_t)m * sizeof *f_im);
    for (int k = 0; k < n; k++) {
        root((double)((int64_t)k * k % (2 * (int64_t)n)), 2.0 * n, &c_re[k], &c_im[k]);
        int mirror = k ? m - k : 0;
        f_re[k] = f_re[mirror] = c_re[k];
        f_im[k] = f_im[mirror] = -c_im[k];
    }
    wt__fft_side side = {f_re, f_im, 0, WT__FFT_SPLIT};
    wt__fft_core_run(inner, work, &side, &side, 1, (float)(1.0 / m));
    free(work);
    return WT_OK;
}

static wt_status plan_bluestein(wt__fft_core *core, int max_lanes)
{
    core->inner_n = 256 * wt_fft_good_size((2 * core->n - 1 + 255) / 256); // 16 * 16 fills the widest vectors
    wt_status status = wt__fft_core_create(core->inner_n, max_lanes, &core->inner);
    if (status) return status;
    core->kernels = core->inner->kernels;
    const size_t chirp = wt__fft_padded((size_t)core->n), filter = wt__fft_padded((size_t)core->inner_n);
    status = take_floats(2 * chirp + 2 * filter, &core->tables);
    if (status) return status;
    float *c_re = core->tables, *c_im = c_re + chirp, *f_re = c_im + chirp, *f_im = f_re + filter;
    core->chirp_re = c_re, core->chirp_im = c_im, core->filter_re = f_re, core->filter_im = f_im;
    return wt__fft_chirp(core->n, core->inner, c_re, c_im, f_re, f_im);
}

WT_RT static void run_bluestein(const wt__fft_core *core, float *scratch, const wt__fft_side *in,
                                const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    const int n = core->n, m = core->inner_n;
    float *re = scratch, *im = re + wt__fft_padded(m), *inner = im + wt__fft_padded(m);
    const float *x_re = in->re, *x_im = in->im;
    if (in->form != WT__FFT_SPLIT) {
        bool swapped = in->form == WT__FFT_SWAPPED;
        k->split(in->re, swapped ? im : re, swapped ? re : im, n);
        x_re = re, x_im = im;
    }
    k->multiply(x_re, x_im, core->chirp_re, core->chirp_im, re, im, n);
    memset(re + n, 0, (size_t)(m - n) * sizeof *re);
    memset(im + n, 0, (size_t)(m - n) * sizeof *im);
    wt__fft_side forward = {re, im, 0, WT__FFT_SPLIT}, backward = {im, re, 0, WT__FFT_SPLIT};
    wt__fft_core_run(core->inner, inner, &forward, &forward, 1, 1);
    k->multiply(re, im, core->filter_re, core->filter_im, re, im, m);
    wt__fft_core_run(core->inner, inner, &backward, &backward, 1, scale);
    if (out->form == WT__FFT_SPLIT) {
        k->multiply(re, im, core->chirp_re, core->chirp_im, out->re, out->im, n);
        return;
    }
    bool swapped = out->form == WT__FFT_SWAPPED;
    k->multiply(re, im, core->chirp_re, core->chirp_im, re, im, n);
    k->join(swapped ? im : re, swapped ? re : im, out->re, n, 1);
}

// ---- running

typedef struct buffers {
    float *re[2], *im[2];
} buffers;

static buffers lay_buffers(float *scratch, size_t n)
{
    size_t part = wt__fft_padded(n);
    return (buffers){{scratch, scratch + 2 * part}, {scratch + part, scratch + 3 * part}};
}

WT_RT static void run_one(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                          float scale)
{
    const wt__fft_kernels *k = core->kernels;
    const wt__fft_pass *pass = core->passes;
    buffers b = lay_buffers(scratch, core->n);
    if (k->first[in->form][pass->index]) {
        k->first[in->form][pass->index](pass, in->re, in->im, b.re[0], b.im[0], 1);
    } else {
        bool swapped = in->form == WT__FFT_SWAPPED;
        k->split(in->re, swapped ? b.im[1] : b.re[1], swapped ? b.re[1] : b.im[1], core->n);
        k->first[WT__FFT_SPLIT][pass->index](pass, b.re[1], b.im[1], b.re[0], b.im[0], 1);
    }
    const int turn = !pass->square;
    int at = 0;
    for (pass++; pass < core->passes + core->n_passes - 1; pass++, at ^= turn)
        k->mid[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], 1);
    if (k->last[out->form][pass->index]) {
        k->last[out->form][pass->index](pass, b.re[at], b.im[at], out->re, out->im, scale);
        return;
    }
    bool swapped = out->form == WT__FFT_SWAPPED;
    k->last[WT__FFT_SPLIT][pass->index](pass, b.re[at], b.im[at], b.re[!at], b.im[!at], scale);
    k->join(swapped ? b.im[!at] : b.re[!at], swapped ? b.re[!at] : b.im[!at], out->re, core->n, 1);
}

WT_RT static void pour_part(const wt__fft_core *core, wt__fft_past *past, ptrdiff_t parts)
{
    if (!past) return;
    wt__fft_past part = {past->from, past->to, past->n / parts / 16 * 16};
    past->from += part.n, past->to += part.n, past->n -= part.n;
    core->kernels->stream(&part);
}

// What `past` has goes between the passes, part by part.
WT_RT static void run_pairs(const wt__fft_core *pairs, float *scratch, const float *x, const float *weights,
                            wt__fft_past *past, float *y, bool back, float scale)
{
    const wt__fft_pairs *k = pairs->kernels->pairs;
    const wt__fft_pass *pass = pairs->passes, *last = pass + pairs->n_passes - 1;
    float *at = scratch, *other = pass->turned_bits ? at : scratch + 2 * wt__fft_padded(pairs->n);
    if (pairs->rows[back] && !weights) {
        pairs->rows[back](pairs->passes, x, 0, y, 0, 1, scale);
        return;
    }
    pour_part(pairs, past, pairs->n_passes - 1);
    (weights ? k->weighted : k->first[back])[pass->radix](pass, x, weights, at, 1);
    for (pass++; pass < last; pass++) {
        pour_part(pairs, past, last - pass);
        k->mid[back][pass->radix](pass, at, NULL, other, 1);
        float *turned = at;
        at = other, other = turned;
    }
    if (past) pairs->kernels->stream(past);
    k->last[back][pass->radix](pass, at, NULL, y, scale);
}

WT_RT void wt__fft_core_rows(const wt__fft_core *core, float *scratch, const float *x, ptrdiff_t x_distance, float *y,
                             ptrdiff_t y_distance, int count, bool back, float scale)
{
    const wt__fft_core *pairs = core->pairs;
    if (pairs->rows[back]) pairs->rows[back](pairs->passes, x, x_distance, y, y_distance, count, scale);
    else
        for (; count; count--, x += x_distance, y += y_distance)
            run_pairs(pairs, scratch, x, NULL, NULL, y, back, scale);
}

WT_RT void wt__fft_core_real(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                             const float *weights, float scale, wt__fft_past *past, wt__fft_form form, float *re,
                             float *im)
{
    const bool second = core->pairs->passes[0].turned_bits || core->pairs->n_passes % 2 == 0; // is not read by the last pass
    float *z = form == WT__FFT_PAIRS ? re : scratch + (second ? 2 * wt__fft_padded(core->n) : 0);
    run_pairs(core->pairs, scratch, x, weights, past, z, false, 1);
    core->kernels->pairs->bins[form](z, twiddles, core->n, scale, re, im);
}

WT_RT void wt__fft_core_real_back(const wt__fft_core *core, float *scratch, const float *twiddles, const float *re,
                                  const float *im, wt__fft_form form, float scale, float *y)
{
    float *z = scratch + 2 * wt__fft_padded(core->n); // the first pass writes to the other buffer
    core->kernels->pairs->fold[form](re, im, twiddles, core->n, z);
    run_pairs(core->pairs, scratch, z, NULL, NULL, y, true, scale);
}

WT_RT void wt__fft_core_row(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                            const float *weights, wt__fft_past *past, float *row)
{
    const wt__fft_kernels *k = core->kernels;
    const wt__fft_pass *pass = core->passes, *last = pass + core->n_passes - 1;
    const buffers b = lay_buffers(scratch, core->n);
    const int turn = !pass->square;
    int at = 0;
    k->row.first[pass->index](pass, x, weights, b.re[0], b.im[0], past);
    for (pass++; pass < last; pass++, at ^= turn)
        k->row.mid[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], past);
    k->row.last[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], past);
    k->stream(past);
    k->real_bins[WT__FFT_PAIRS](b.re[at ^ turn], b.im[at ^ turn], twiddles, core->n, row, NULL);
}

// Rows of fewer transforms than lanes, one number at a time; the other lanes hold zeros.
static void few_rows_in(const float *rows, ptrdiff_t distance, int n, int step, int count, int lanes, float *tile)
{
    memset(tile, 0, (size_t)n * (size_t)lanes * sizeof *tile);
    for (int row = 0; row < count; row++)
        for (int i = 0; i < n; i++) tile[(size_t)i * lanes + row] = rows[row * distance + (ptrdiff_t)i * step];
}

static void few_rows_out(const float *tile, int n, int step, int count, int lanes, float *rows, ptrdiff_t distance)
{
    for (int row = 0; row < count; row++)
        for (int i = 0; i < n; i++) rows[row * distance + (ptrdiff_t)i * step] = tile[(size_t)i * lanes + row];
}

static void tile_in(const wt__fft_core *core, const wt__fft_side *in, int count, float *re, float *im)
{
    const wt__fft_kernels *k = core->kernels;
    const bool pairs = in->form != WT__FFT_SPLIT, swapped = in->form == WT__FFT_SWAPPED, full = count == k->lanes;
    float *even = swapped ? im : re, *odd = swapped ? re : im;
    if (pairs && full) {
        k->rows_in(in->re, in->distance, 2 * core->n, even, odd, true);
    } else if (full) {
        k->rows_in(in->re, in->distance, core->n, re, re, false);
        k->rows_in(in->im, in->distance, core->n, im, im, false);
    } else {
        few_rows_in(in->re, in->distance, core->n, pairs ? 2 : 1, count, k->lanes, even);
        few_rows_in(pairs ? in->re + 1 : in->im, in->distance, core->n, pairs ? 2 : 1, count, k->lanes, odd);
    }
}

static void tile_out(const wt__fft_core *core, float *re, float *im, int count, const wt__fft_side *out)
{
    const wt__fft_kernels *k = core->kernels;
    const bool pairs = out->form != WT__FFT_SPLIT, swapped = out->form == WT__FFT_SWAPPED, full = count == k->lanes;
    float *even = swapped ? im : re, *odd = swapped ? re : im;
    if (pairs && full) {
        k->rows_out(even, odd, 2 * core->n, out->re, out->distance, true);
    } else if (full) {
        k->rows_out(re, re, core->n, out->re, out->distance, false);
        k->rows_out(im, im, core->n, out->im, out->distance, false);
    } else {
        few_rows_out(even, core->n, pairs ? 2 : 1, count, k->lanes, out->re, out->distance);
        few_rows_out(odd, core->n, pairs ? 2 : 1, count, k->lanes, pairs ? out->re + 1 : out->im, out->distance);
    }
}

// From buffers `at`; returns those that hold the result.
WT_RT static int tile_passes(const wt__fft_core *core, const buffers *b, int at, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    for (int lane = 0; lane < k->lanes && core->n == 1; lane++) b->re[at][lane] *= scale, b->im[at][lane] *= scale;
    for (int i = 0; i < core->n_passes; i++, at ^= 1) {
        const wt__fft_pass *pass = &core->passes[i];
        const bool last = i == core->n_passes - 1;
        (last ? k->last[WT__FFT_SPLIT] : k->mid)[pass->index](pass, b->re[at], b->im[at], b->re[!at], b->im[!at],
                                                              scale);
    }
    return at;
}

WT_RT static void run_tile(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                           int count, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    tile_in(core, in, count, b.re[0], b.im[0]);
    const int at = tile_passes(core, &b, 0, scale);
    tile_out(core, b.re[at], b.im[at], count, out);
}

WT_RT void wt__fft_core_bins(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    if (core->n == 4) {
        k->tile_of_8[0](twiddles, in, out, scale);
        return;
    }
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    k->rows_in(in->re, in->distance, 2 * core->n, b.re[0], b.im[0], true);
    const int at = tile_passes(core, &b, 0, scale);
    k->tile_bins(b.re[at], b.im[at], twiddles, core->n, b.re[!at], b.im[!at]);
    k->rows_out(b.re[!at], b.im[!at], 2 * core->n + 2, out->re, out->distance, true);
}

WT_RT void wt__fft_core_fold(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    if (core->n == 4) {
        k->tile_of_8[1](twiddles, in, out, scale);
        return;
    }
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    k->rows_in(in->re, in->distance, 2 * core->n + 2, b.re[0], b.im[0], true);
    k->tile_fold(b.re[0], b.im[0], twiddles, core->n, b.im[1], b.re[1]);
    const int at = tile_passes(core, &b, 1, scale);
    k->rows_out(b.im[at], b.re[at], 2 * core->n, out->re, out->distance, true);
}

// The scratch of one lies behind that of a tile, where input and output may be.
WT_RT static void run_few(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                          int count, float scale)
{
    float *mine = scratch + 4 * wt__fft_padded((size_t)core->n * core->kernels->lanes);
    wt__fft_side x = *in, y = *out;
    for (int row = 0; row < count; row++) {
        run_one(core->few, mine, &x, &y, scale);
        x.re += x.distance, y.re += y.distance;
        if (x.im) x.im += x.distance;
        if (y.im) y.im += y.distance;
    }
}

WT_RT void wt__fft_core_run(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                            int count, float scale)
{
    if (core->inner)
        run_bluestein(core, scratch, in, out, scale);
    else if (core->few && count < core->kernels->lanes)
        run_few(core, scratch, in, out, count, scale);
    else if (core->tiled)
        run_tile(core, scratch, in, out, count, scale);
    else
        run_one(core, scratch, in, out, scale);
}

// Those of one transform, or of a tile, whose tables serve one alone.
wt__fft_short_fn wt__fft_core_short(const wt__fft_core *core, wt__fft_way way, const wt__fft_pass **passes)
{
    const wt__fft_core *one = core->few ? core->few : core;
    const wt__fft_kernels *kernels = one->tiled ? few_kernels(core) : one->kernels;
    *passes = one->passes;
    for (const wt__fft_short *s = kernels->shorts; s->n; s++)
        if (s->n == core->n && !core->inner) return s->run[way];
    return NULL;
}

bool wt__fft_core_weighs(const wt__fft_core *core)
{
    return !core->inner && !core->tiled && core->kernels->first[WT__FFT_WEIGHTED][core->passes[0].index];
}

static wt__fft_side spare_buffer(const wt__fft_core *core, float *scratch, int which)
{
    if (core->inner) return (wt__fft_side){scratch, scratch + wt__fft_padded(core->inner_n), 0, WT__FFT_SPLIT};
    buffers b = lay_buffers(scratch, (size_t)core->n * wt__fft_core_group(core));
    return (wt__fft_side){b.re[which], b.im[which], core->n, WT__FFT_SPLIT};
}

wt__fft_side wt__fft_core_input(const wt__fft_core *core, float *scratch)
{
    return spare_buffer(core, scratch, 1); // the first pass, or the tile's filling, writes to the other one
}

wt__fft_side wt__fft_core_output(const wt__fft_core *core, float *scratch)
{
    const int written = core->tiled ? core->n_passes : core->n_passes - 2;
    return spare_buffer(core, scratch, !core->passes[0].square && !(written & 1)); // the last of squares goes in place
}

// ---- life

wt_status wt__fft_core_create(int n, int max_lanes, wt__fft_core **core)
{
    *core = NULL;
    wt__fft_core *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "fft: core");
    c->n = n;
    int radices[WT__FFT_MAX_PASSES];
    wt_status status;
    if (n > 1 && factorise(n, radices) == 0) {
        status = plan_bluestein(c, max_lanes);
    } else {
        order_passes(c, max_lanes);
        status = fill_passes(c);
        if (!status) status = plan_few(c);
        if (!status) status = plan_pairs(c);
    }
    if (status)
        wt__fft_core_destroy(c);
    else
        *core = c;
    return status;
}

void wt__fft_core_destroy(wt__fft_core *core)
{
    if (!core) return;
    wt__fft_core_destroy(core->inner);
    wt__fft_core_destroy(core->few);
    wt__fft_core_destroy(core->pairs);
    free(core->tables);
    free(core);
}

size_t wt__fft_core_scratch_floats(const wt__fft_core *core)
{
    if (core->inner) return 2 * wt__fft_padded(core->inner_n) + wt__fft_core_scratch_floats(core->inner);
    const size_t floats = 4 * wt__fft_padded((size_t)core->n * wt__fft_core_group(core));
    return core->few ? floats + wt__fft_core_scratch_floats(core->few) : floats;
}

const wt__fft_kernels *wt__fft_core_kernels(const wt__fft_core *core)
{
    return core->kernels;
}

int wt__fft_core_group(const wt__fft_core *core)
{
    return core->tiled ? core->kernels->lanes : 1;
}

int wt_fft_good_size(int n)
{
    for (int size = n < 1 ? 1 : n;; size++) {
        int rest = size;
        while (rest % 2 == 0) rest /= 2;
        while (rest % 3 == 0) rest /= 3;
        while (rest % 5 == 0) rest /= 5;
        if (rest == 1) return size;
    }
}
