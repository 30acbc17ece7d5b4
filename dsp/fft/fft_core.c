// Complex transforms of one length: the order of the passes, their tables, and Bluestein's way round large primes.
//
// A length runs one transform at a time when its first radix r fills the vectors of the later passes (r >= lanes) and
// the rest n / r those of the first; vectors of half the width may do. Otherwise `lanes` of them run side by side, even
// when there is only one: the length alone decides, so a result never depends on the batch. Where four lanes would do
// for one, fewer than a group go one by one in the same passes, which gives the same bits. Tables come from double.

#include "fft_core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const int wt__fft_radices[WT__FFT_N_RADICES] = {2, 3, 4, 5, 7, 8, 11, 13, 16, 9, 15, 25, 0};

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

// ---- what a plan has

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
