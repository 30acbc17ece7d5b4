/// Private to dsp/: the complex transform every plan is made of, and split-format calls for convolution.
#ifndef WT_FFT_INTERNAL_H
#define WT_FFT_INTERNAL_H

#include <warptone/fft.h>

/// How the data of a first or last pass lies: two arrays, or pairs; swapped pairs make the transform inverse. Weighted
/// ones are pairs of what the products of two arrays are, number by number: for some first passes. Powers are of bins
/// alone: the squares of their sizes.
typedef enum wt__fft_form {
    WT__FFT_SPLIT,
    WT__FFT_PAIRS,
    WT__FFT_SWAPPED,
    WT__FFT_WEIGHTED,
    WT__FFT_POWERS,
    WT__FFT_N_FORMS
} wt__fft_form;

/// The number in a lane of a first pass's vectors. On eight lanes, pairs come apart most cheaply within halves.
static inline int wt__fft_lane_place(int lanes, wt__fft_form form, int lane)
{
    return lanes == 8 && form != WT__FFT_SPLIT ? (lane & 1) | (lane & 2) << 1 | (lane & 4) >> 1 : lane;
}

typedef struct wt__fft_past wt__fft_past;

// ---- for other ops of dsp/: one block, split format, no layout

/// Forward real transform of one block with a plan of kind WT_FFT_REAL_TO_COMPLEX (or _TO_REAL): in [n] to bins
/// re, im [n / 2 + 1]. No aliasing. Even n reads and writes vectors only inside the arrays.  [rt, running]
WT_RT void wt__fft_real_forward(wt_fft *plan, const float *in, float *re, float *im);
/// The same of twice the products of `in` and `weights`, or of `in` where they are NULL, where wt__fft_weighs; bins
/// split, or pairs or powers at re.
WT_RT void wt__fft_real_weighted(wt_fft *plan, const float *in, const float *weights, wt__fft_form form, float *re,
                                 float *im);
bool wt__fft_weighs(const wt_fft *plan);
/// The same to pairs in `row`, at 64 bytes. What `past` has, which may be that row, is written before.
WT_RT void wt__fft_real_row(wt_fft *plan, const float *in, const float *weights, wt__fft_past *past, float *row);
/// Inverse of the above, 1 / n included: re, im [n / 2 + 1] to out [n]. No aliasing.  [rt, running]
WT_RT void wt__fft_real_inverse(wt_fft *plan, const float *re, const float *im, float *out);

// ---- the passes (fft_passes.h, compiled once for each instruction set)

enum {
    WT__FFT_N_RADICES = 13,
    WT__FFT_GENERIC = 12,
    WT__FFT_MAX_PRIME = 61,
    WT__FFT_MAX_PASSES = 24,
    WT__FFT_BEFORE_SQUARE = 16, ///< the radix of a first pass before two of this one, which go in place
    WT__FFT_SQUARE = 8
};

/// One Stockham pass: m * s butterflies of `radix`, on m twiddle groups of s neighbours.
typedef struct wt__fft_pass {
    int radix, index; ///< index: of the radix in the kernel tables
    int m, s;
    int turned_bits;            ///< first pass on pairs: log2 of a side of its rows' square, which is stored turned
    bool square;                ///< first of three: its rows are stored turned, and the others go in place
    const float *twiddles;      ///< first pass: [ceil(m / lanes)][radix - 1][2][lanes]; others [m][radix - 1][2]
    const float *pair_twiddles; ///< first pass: the same in the order of lanes that pairs have
    const float *trig;          ///< odd radix: [h][h][2] cosine and sine of 2 pi j k / radix, h = (radix - 1) / 2;
                                ///< 9, 15, 25 = a b: those of a, of b, then [a][b][2] w_radix^(j k)
} wt__fft_pass;

typedef void (*wt__fft_pass_fn)(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re,
                                float *y_im, float scale);

/// What is left of a row on its way past the caches, to whole lines and a rest. A core waits for the memory when it
/// writes many lines at once, so passes of the next transform take a few along with each of their blocks: passes of
/// their own, since the others would lose a twentieth by asking.
struct wt__fft_past {
    const float *from;
    float *to;   ///< at the beginning of a line
    ptrdiff_t n; ///< floats
};

typedef void (*wt__fft_row_fn)(const wt__fft_pass *pass, const float *x_re, const float *x_im, float *y_re, float *y_im,
                               wt__fft_past *past);

/// Where one side of a group of transforms lies. Pairs use `re` alone.
typedef struct wt__fft_side {
    float *re, *im;
    ptrdiff_t distance; ///< floats between transforms
    wt__fft_form form;
} wt__fft_side;

/// A short transform from pairs to pairs with a core's passes, of n points, or of a real signal of 2 n.
typedef void (*wt__fft_short_fn)(const wt__fft_pass *passes, const float *real_twiddles, const float *in, float *out,
                                 float scale);
typedef enum wt__fft_way { WT__FFT_FORWARD, WT__FFT_BACK, WT__FFT_BINS, WT__FFT_FOLD, WT__FFT_N_WAYS } wt__fft_way;
typedef struct wt__fft_short {
    int n;
    wt__fft_short_fn run[WT__FFT_N_WAYS];
} wt__fft_short;

/// Frames of WT__FFT_WHOLE real samples in one go (fft_whole.h). Factors of eight points: real parts, imaginary ones.
enum { WT__FFT_WHOLE = 2048, WT__FFT_WHOLE_WORK = 17 * 128, WT__FFT_WHOLE_TABLES = (8 * 16 + 7) * 16 }; // floats
typedef struct wt__fft_whole_tables {
    const float *first; ///< [8 blocks of p][j = 1 .. 16] w_2048^(j p)
    const float *mid;   ///< [q1 = 1 .. 7] w_64^(p0 q1)
} wt__fft_whole_tables;

/// Transforms of a vector's lanes of frames at once, whose samples are a hop apart (fft_frames.h).
enum { WT__FFT_FRAMES_RADIX = 32 };
typedef struct wt__fft_frames {
    int n, hop;
    wt__fft_whole_tables whole; ///< of n = WT__FFT_WHOLE in eight lanes, for which hop and window are the only others
    int columns, pitch;     ///< hops that the frames reach over, and floats from one turned sample to the next
    const float *window;    ///< [n]
    const float *twiddles;  ///< [n / 32][16][2] w_n^(p j)
    const float *column_twiddles; ///< [r2][r1][2] w_m^(i j), m = n / 32 = r1 r2
    const float *real_twiddles;   ///< [m / 2 + 1][2] w_(2 m)^k, halved
    int places[WT__FFT_FRAMES_RADIX]; ///< of sample m k among the turned ones
} wt__fft_frames;

/// Passes on points that lie as pairs (fft_pairs.h), [1] back; by radix. `weights` are the weighted ones' alone.
typedef void (*wt__fft_pairs_fn)(const wt__fft_pass *pass, const float *x, const float *weights, float *y, float scale);
typedef void (*wt__fft_rows_fn)(const wt__fft_pass *passes, const float *x, ptrdiff_t x_distance, float *y,
                                ptrdiff_t y_distance, int count, float scale);
typedef struct wt__fft_rows {
    int n;
    wt__fft_rows_fn run[2];
} wt__fft_rows; ///< `count` transforms of n points in one call
typedef struct wt__fft_pairs {
    wt__fft_pairs_fn first[2][17], weighted[17], mid[2][17], last[2][17];
    /// real_bins and real_fold on pairs, of wt__fft_pairs_twiddles(h); z [h + 1], where
    /// the pairs may be; bins come times 2 `scale`.
    void (*bins[WT__FFT_N_FORMS])(float *z, const float *twiddles, int h, float scale, float *re, float *im);
    void (*fold[2])(const float *re, const float *im, const float *twiddles, int h, float *z);
    const wt__fft_rows *rows; ///< the last has n = 0
} wt__fft_pairs;

/// A frame's bins R with new magnitudes, and back to samples: of magnitude R / |R|.
typedef struct wt__fft_turn {
    const float *x, *weights; ///< [2048], the window
    const float *magnitude;   ///< [1025]
    const float *back_weights; ///< [2048] of the window by 1024
    float *sums;               ///< [2048] the frame is added to
    const float *next_magnitude, *next_x; ///< what the next turn reads
} wt__fft_turn;
typedef struct wt__fft_whole {
    /// The bins of the products of x and weights, to pairs in `row`. z: [WT__FFT_WHOLE_WORK] at 64 bytes, as weights
    /// are. `next`: samples soon wanted.
    void (*forward)(const wt__fft_whole_tables *t, const float *x, const float *weights, const float *next, float *z,
                    float *row);
    /// The samples by 1024 that `row` is of, times `weights`, added to `sums`. `next`: a row soon wanted.
    void (*back)(const wt__fft_whole_tables *t, const float *row, const float *next, const float *weights, float *z,
                 float *sums);
    void (*turn)(const wt__fft_whole_tables *t, const wt__fft_turn *turn, float *z);
} wt__fft_whole;

/// The passes of one instruction set. NULL entries of `first` and `last` for pairs are reached through split copies;
/// 9, 15 and 25 only begin a transform.
typedef struct wt__fft_kernels {
    int lanes;
    wt__fft_pass_fn first[WT__FFT_N_FORMS][WT__FFT_N_RADICES];
    wt__fft_pass_fn mid[WT__FFT_N_RADICES];
    wt__fft_pass_fn last[WT__FFT_N_FORMS][WT__FFT_N_RADICES];
    struct {
        wt__fft_row_fn first[WT__FFT_N_RADICES], mid[WT__FFT_N_RADICES], last[WT__FFT_N_RADICES];
    } row; ///< from weighted pairs to split numbers
    void (*split)(const float *pairs, float *re, float *im, int n);
    void (*join)(const float *re, const float *im, float *pairs, int n, float scale);
    /// c = a * b, complex, split; c may be a.
    void (*multiply)(const float *a_re, const float *a_im, const float *b_re, const float *b_im, float *c_re,
                     float *c_im, int n);
    /// Write what is left of a row; wt__fft_streamed() follows the last.
    void (*stream)(wt__fft_past *past);
    /// Bins of a real signal of n = 2 h samples from half its packed complex transform z [h], and back (times 2). The
    /// bins split, or pairs, or powers (h / 2 >= lanes), which lie at re; wt__fft_real_twiddles(h).
    void (*real_bins[WT__FFT_N_FORMS])(const float *z_re, const float *z_im, const float *twiddles, int h, float *re,
                                       float *im);
    void (*real_fold[2])(const float *re, const float *im, const float *twiddles, int h, float *z_re, float *z_im);
    /// The same of a tile: [h][lanes] to [h + 1][lanes], and back.
    void (*tile_bins)(const float *z_re, const float *z_im, const float *twiddles, int h, float *re, float *im);
    void (*tile_fold)(const float *re, const float *im, const float *twiddles, int h, float *z_re, float *z_im);
    /// Both of real signals of 8 samples, rows to rows of pairs and back, with their pass.
    void (*tile_of_8[2])(const float *twiddles, const wt__fft_side *in, const wt__fft_side *out, float scale);
    /// [lanes] rows of n floats, `distance` apart, to [n][lanes]. Pairs: to [n / 2][lanes] each of re and im.
    void (*rows_in)(const float *rows, ptrdiff_t distance, int n, float *re, float *im, bool pairs);
    void (*rows_out)(const float *re, const float *im, int n, float *rows, ptrdiff_t distance, bool pairs);
    const wt__fft_short *shorts; ///< the last has n = 0
    const wt__fft_pairs *pairs;  ///< NULL = none
    const wt__fft_whole *whole;  ///< NULL = none
    /// Powers [n / 2 + 1][lanes] of the frames that begin at x, x + hop ..; scratch of wt__fft_frames_floats(), 64-byte
    /// aligned. `next`: [lanes hop] of what will be wanted.
    void (*frames_powers)(const wt__fft_frames *frames, const float *x, const float *next, float *scratch,
                          float *powers);
} wt__fft_kernels;

extern const wt__fft_kernels wt__fft_kernels_base; ///< 4 lanes, SSE2
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    define WT__FFT_X86_LEVELS 1
extern const wt__fft_kernels wt__fft_kernels_avx2;        ///< 8 lanes, x86-64-v3
extern const wt__fft_kernels wt__fft_kernels_avx2_half;   ///< 4 lanes, x86-64-v3
extern const wt__fft_kernels wt__fft_kernels_avx512_half; ///< 8 lanes, x86-64-v4
extern const wt__fft_kernels wt__fft_kernels_avx512;      ///< 16 lanes, x86-64-v4
#endif

/// The radix of a kernel table entry; 0 for the generic one.
extern const int wt__fft_radices[WT__FFT_N_RADICES];

// ---- complex transforms of one length (fft_core.c, fft_core_run.c)

typedef struct wt__fft_core wt__fft_core;

/// `max_lanes`: 0 = the widest instruction set of this processor, else at most that many lanes (tests compare them).
WT_CHECKED wt_status wt__fft_core_create(int n, int max_lanes, wt__fft_core **core);
void wt__fft_core_destroy(wt__fft_core *core);
size_t wt__fft_core_scratch_floats(const wt__fft_core *core);
const wt__fft_kernels *wt__fft_core_kernels(const wt__fft_core *core);
/// Transforms one call works on at once: 1, or the lanes of a core that runs side by side.
int wt__fft_core_group(const wt__fft_core *core);
/// Forward transforms of `count` <= group signals; inverse when both sides are swapped (split: exchange re and im).
/// The input is read whole before the output is written. `scratch` is 64-byte aligned.  [rt]
WT_RT void wt__fft_core_run(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                            int count, float scale);
/// Transforms of `group` > 1 real signals of 2 n samples, from rows to rows of pairs, and back (in times 2).  [rt]
WT_RT void wt__fft_core_bins(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale);
WT_RT void wt__fft_core_fold(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale);
/// One transform in one call, with these passes; NULL = there is none.
wt__fft_short_fn wt__fft_core_short(const wt__fft_core *core, wt__fft_way way, const wt__fft_pass **passes);
/// Transforms of `count` rows of pairs, of any count, by passes of pairs, where there are such. A row is read whole
/// before it is written; forward, `scale` is 1.  [rt]
WT_RT void wt__fft_core_rows(const wt__fft_core *core, float *scratch, const float *x, ptrdiff_t x_distance, float *y,
                             ptrdiff_t y_distance, int count, bool back, float scale);
bool wt__fft_core_pairs(const wt__fft_core *core);
/// Those of wt__fft_core_rows in one call, with these passes; NULL = there is none.
wt__fft_rows_fn wt__fft_core_rows_fn(const wt__fft_core *core, bool back, const wt__fft_pass **passes);
/// Real signals of 2 n samples the same way: their bins, times 2 `scale`, from x, or its products with `weights` where
/// these are not NULL, after what `past` has, where that is not NULL; and back, times 2 `scale`.  [rt]
WT_RT void wt__fft_core_real(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                             const float *weights, float scale, wt__fft_past *past, wt__fft_form form, float *re,
                             float *im);
WT_RT void wt__fft_core_real_back(const wt__fft_core *core, float *scratch, const float *twiddles, const float *re,
                                  const float *im, wt__fft_form form, float scale, float *y);
WT_CHECKED wt_status wt__fft_pairs_twiddles(int h, float **twiddles); ///< of both; free() them
/// Bins of 2 n real samples by their weights, times 2, to pairs in `row`, after what `past` has; where run takes
/// weighted pairs.  [rt]
WT_RT void wt__fft_core_row(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                            const float *weights, wt__fft_past *past, float *row);
/// Whether run takes an input of weighted pairs.
bool wt__fft_core_weighs(const wt__fft_core *core);
/// A split array [group][n] of the scratch for what goes into a run, or comes out of it: its passes do not need that
/// place before the input is read, or after the output begins. Saves room in the first-level cache.
wt__fft_side wt__fft_core_input(const wt__fft_core *core, float *scratch);
wt__fft_side wt__fft_core_output(const wt__fft_core *core, float *scratch);
/// Twiddle factors of real_bins and real_fold: real parts [h / 2 + 1], padded, then imaginary ones; free() them.
WT_CHECKED wt_status wt__fft_real_twiddles(int h, float **twiddles);
/// Bluestein's chirp c [n], and the transform of its conjugate over m [m] with m the length of `inner`.
WT_CHECKED wt_status wt__fft_chirp(int n, const wt__fft_core *inner, float *c_re, float *c_im, float *f_re,
                                   float *f_im);
/// Makes what was streamed seen before what is written from now on.
static inline void wt__fft_streamed(void)
{
#ifdef __SSE__
    __builtin_ia32_sfence();
#endif
}
/// Floats an array of n takes so that the next one begins a cache line, and not at the same set of the cache.
static inline size_t wt__fft_padded(size_t n)
{
    return (n + 15) / 16 * 16 + 16;
}

/// Tables of wt__fft_whole, of which the second makes those of `floats` [WT__FFT_WHOLE_TABLES]; free() the first.
WT_CHECKED wt_status wt__fft_whole_create(wt__fft_whole_tables **tables);
void wt__fft_whole_fill(float *floats, wt__fft_whole_tables *tables);

/// Tables of transforms of `lanes` frames at once; *frames stays NULL where there are none of this length and hop. Free
/// it with free(). `window` [n] is borrowed for as long as it is used.
WT_CHECKED wt_status wt__fft_frames_create(int n, int hop, int lanes, const float *window, wt__fft_frames **frames);
size_t wt__fft_frames_floats(const wt__fft_frames *frames, int lanes);

/// Twiddle factors of kernels/fft/fft.cuh for n points; returns their floats, and writes them when `table` is not NULL.
size_t wt__fft_block_twiddles(int n, float *table);

#endif
