/// Arguments of the kernels that multiply weight matrices with activations, and where their tiles lie; read by CUDA and
/// by the CPU's functions.
#ifndef WT_MATMUL_KERNEL_H
#define WT_MATMUL_KERNEL_H

#ifndef __CUDACC__
#    include <math.h>
#endif

#define WT_MM_PARTS 4

// Types of elements: of W what MM_W is compiled with, of x MM_X, the rest at run time.
#define WT_MM_F32  0
#define WT_MM_F16  1
#define WT_MM_BF16 2
#define WT_MM_E4M3 3
#define WT_MM_E5M2 4
#define WT_MM_I8   5
#define WT_MM_I32  6
#define WT_MM_U4   7
#define WT_MM_E2M1 8
#define WT_MM_Q8_0 9
#define WT_MM_Q4_0 10
#define WT_MM_Q4_K 11
#define WT_MM_Q6_K 12
#define WT_MM_TF32 13 // F32 as tensor cores take it: of MM_W and MM_X alone

#define WT_MM_TILE           128 // rows of W and of x of a block of matmul_tiles; rows of x of one of matmul_wgmma
#define WT_MM_WGMMA_THREADS  384 // of a block of matmul_wgmma
#define WT_MM_WGMMA_SUMS     (8 * 16 * 64) // that it finishes at a time
#define WT_MM_WGMMA_WARPS    8             // that multiply
#define WT_MM_WGMMA_SQUARES  64            // elements whose squares matmul_wgmma adds first
#define WT_MM_SKINNY_SQUARES 16            // and matmul_skinny
#define WT_MM_SKINNY_WARPS   16            // most of a block of matmul_skinny
#define WT_MM_SKINNY_PITCH   17            // floats between rows of x in its shared memory
#define WT_MM_SKINNY_STEP    (16 * 64 + 64) // bytes of a step of 16 rows of W there, of which neighbours meet other banks

// Where the kernels for few rows of x have what rounding left of them: in as many eights of rows more, whose products
// go to the same sums, or, of up to four, in the other half of the eight, whose sums are added in the end.
#define WT_MM_BEHIND 1
#define WT_MM_WITHIN 2

#define WT_MM_FEW_COPIERS 2 // warps of a block of matmul_few beside those that multiply and those that finish

#define WT_MM_THIN_COLUMNS 256  // of x that a warp of matmul_thin has
#define WT_MM_THIN_STAGE   2048 // bytes: 16 rows of W, 128 of each
#define WT_MM_THIN_GROUP   8    // tiles whose sums wait for further slices
#define WT_MM_THIN_TURNS   3    // whose sums of all warps there is room for

#define WT_MM_SLICE_ROWS  64  // of W of a block of matmul_slices
#define WT_MM_SLICED_ROWS 256 // of one of matmul_tiles whose tiles have slices

#define WT_MM_RELU      1
#define WT_MM_SILU      2
#define WT_MM_GELU      3
#define WT_MM_GELU_TANH 4

typedef struct wt_mm_part {
    const unsigned char *w;                    ///< [stack][rows][row_bytes]
    const unsigned char *scales;               ///< [stack][rows / scale_rows][scale_stride] of scale_type; NULL = 1
    const unsigned char *zeros;                ///< [stack][rows][scale_stride]; NULL = 8
    const float *tensor_scale;                 ///< [1]; NULL = 1
    const float *bias;                         ///< [stack][rows]; NULL = 0
    void *y;                                   ///< [m][y_stride] of y_type
    long long y_stride, y_batch;               ///< elements
    long long w_next, scales_next, zeros_next; ///< bytes
    int rows;
    int first_tile; ///< of the tiles of rows, counted over all parts
} wt_mm_part;

typedef struct wt_mm_args {
    wt_mm_part parts[WT_MM_PARTS];
    const unsigned char *x;
    const float *x_scales;         ///< [m] or NULL
    const unsigned char *x_groups; ///< of x in E2M1: [m][columns / 16] of E4M3
    const int *experts;            ///< [m] or NULL
    const int *offsets;            ///< [n_experts + 1] or NULL
    long long x_stride, x_batch;   ///< elements
    long long row_bytes;           ///< of W
    int n_parts, columns, m, n_batches, n_experts, x_repeat;
    int scale_rows, scale_columns, scale_stride; ///< rows and columns a scale, scales in a row of them
    int scale_shift;                             ///< log2 of scale_columns where that is a power of two, else -1
    int w_type, x_type, y_type, scale_type;
    int activation, gated, add;
    int overlap;              ///< with the launch before, which does not write W
    int two_parts;            ///< what rounding left of x, and of y and normed of 16 bits, lies behind their m rows
    long long x_low;          ///< elements from x to what rounding left of it
    const float *norm_weight; ///< [rows] of part 0: y times it to `normed`; NULL = none
    unsigned short *normed;   ///< [m][rows] of bf16
    float *squares;           ///< [m][rows / WT_MM_.._SQUARES] sums of y's
    const float *x_squares;   ///< [m][columns / WT_MM_.._SQUARES] sums of what x was made of; NULL = x is as it is
    float norm_eps;           ///< of x's mean square
} wt_mm_args;

/// What tensor copies are told of a matrix: wt_tensor_map of <warptone/kernel.h>.
typedef struct wt_mm_map {
    unsigned long long opaque[16];
} __attribute__((aligned(64))) wt_mm_map;

typedef struct wt_mm_wgmma_args {
    wt_mm_map x, w[WT_MM_PARTS]; ///< boxes of WT_MM_TILE rows of x, and of all a block has of a part
    wt_mm_args args;
    int n_tiles;   ///< that the blocks of the grid share out
    int n_slices;  ///< of the columns of a tile, by as many blocks
    int x_rows;    ///< that are copied at once
    void *partial; ///< sums of slices: [n_tiles][n_slices][warps][sums of a lane / 4][32][4]
    int *arrived;  ///< [n_tiles][warps], 0 before and after
} wt_mm_wgmma_args;

typedef struct wt_mm_slices_args {
    wt_mm_args args;
    int n_slices;   ///< of the columns of a tile, by as many blocks
    float *partial; ///< sums of slices: [n_tiles][n_slices][rows of x a block][rows of W a block]
    int *arrived;   ///< [n_tiles], 0 before and after
} wt_mm_slices_args;

typedef struct wt_mm_few_args {
    wt_mm_map w[WT_MM_PARTS]; ///< of each part, as pieces of its rows: boxes of 8 rows of as many as warps multiply
    wt_mm_map x;              ///< of 128 bytes of its rows, and what rounding left of them: boxes of 8 beside those of W
    wt_mm_args args;
} wt_mm_few_args;

#define WT_MM_WIDEN_ROWS 4 ///< that a thread of matmul_widen has

/// The matrix of a part as elements of x_type, [rows][columns].
typedef struct wt_mm_widen_args {
    wt_mm_args args;
    unsigned short *out;
    int part;
} wt_mm_widen_args;

#define WT_MM_FINISH_ROWS 4 ///< that a thread of matmul_finish has

/// Bare sums of rows first .. of a batch of a part, [count][pitch], and of part 1 when gated.
typedef struct wt_mm_finish_args {
    wt_mm_args args;
    const void *sums, *sums1;
    int sum_type, pitch, part, batch, first, count;
    int whole; ///< rows of W in eights, and y aligned to 16 bytes
} wt_mm_finish_args;

/// Q8_0 and Q6_K to I8, Q4_0 to packed U4: elements and scales apart.
typedef struct wt_mm_repack_args {
    const unsigned char *from;
    unsigned char *to, *scales; ///< Q8_0, Q4_0: f16 a 32; Q6_K: f32 a 16
    int type, rows, columns;
} wt_mm_repack_args;

typedef struct wt_mm_quantize_args {
    const unsigned char *x;
    unsigned char *out;    ///< [m][columns]
    float *scales;         ///< [m]
    unsigned char *groups; ///< of out in E2M1: [m][columns / 16] of E4M3
    long long x_stride;
    int m, columns, x_type, out_type;
} wt_mm_quantize_args;

/// Some rows of x that share a matrix: rows first .. first + count - 1 of y with matrix `stack`.
typedef struct wt_mm_tile {
    int stack, first, count;
    long long x, y_batches; ///< element of x where row `first` begins; batches of y before
} wt_mm_tile;

/// Number of tiles of at most `size` rows; with offsets an upper bound. With experts a tile is a row.
static inline int wt_mm_n_tiles(const wt_mm_args *a, int size)
{
    const int n = (a->m + size - 1) / size;
    return a->experts ? a->m : a->offsets ? n + a->n_experts : n * a->n_batches;
}

/// False when there is nothing to do in that tile.
static inline int wt_mm_find_tile(const wt_mm_args *a, int tile, int size, wt_mm_tile *t)
{
    t->y_batches = 0;
    if (a->experts) {
        t->stack = a->experts[tile];
        t->first = tile;
        t->count = 1;
        t->x = tile / a->x_repeat * a->x_stride;
        return t->stack >= 0 && t->stack < a->n_experts;
    }
    int begin = 0, end = a->m;
    if (a->offsets) {
        for (t->stack = 0; t->stack < a->n_experts; t->stack++) {
            begin = a->offsets[t->stack];
            end = a->offsets[t->stack + 1];
            const int n = (end - begin + size - 1) / size;
            if (tile < n) break;
            tile -= n;
        }
        if (t->stack == a->n_experts) return 0;
        t->x = 0;
    } else {
        const int n = (a->m + size - 1) / size;
        t->stack = tile / n;
        t->y_batches = t->stack;
        t->x = t->stack * a->x_batch;
        tile %= n;
    }
    t->first = begin + tile * size;
    t->count = end - t->first < size ? end - t->first : size;
    t->x += t->first * a->x_stride;
    return 1;
}

#define WT_MM_FEW_PIECE 1024 ///< bytes: of 8 rows of W, 128 of each

/// Bytes of its shared memory: `copies` of `eights` of rows of x, numbers and what rounding left of them; sums of `n`
/// eights, `tiles` at a time.
static inline int wt_mm_few_shared(int warps, int vector, int n, int eights, int copies, int tiles, int stages)
{
    return 1024 + 2 * stages * warps * WT_MM_FEW_PIECE + copies * eights * warps * vector / 8 * WT_MM_FEW_PIECE +
           512 * tiles * warps * n + 16 * (stages + copies + tiles);
}

/// Bytes of shared memory of a block of matmul_thin; `n` eights of rows of x.
static inline int wt_mm_thin_shared(int warps, int n, int stages)
{
    return warps * stages * WT_MM_THIN_STAGE + 512 * n * (WT_MM_THIN_TURNS * warps + WT_MM_THIN_GROUP) +
           16 * WT_MM_THIN_TURNS + 32 * n;
}

/// f16 of two bytes, as a float; no infinities or NaN.
static inline float wt_mm_half(const unsigned char *p)
{
    const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31;
    float v = (float)(exponent ? (bits & 0x3ff) | 0x400 : bits & 0x3ff) * 0x1p-24f;
    for (int k = 1; k < exponent; k++) v *= 2;
    return bits & 0x8000 ? -v : v;
}

/// The `at`-th 16 elements of a matrix. The layouts are those of tensor.c: of Q4_0 the low nibbles are the first 16 of
/// 32, of Q6_K six bits are parted in four and two.
static inline void wt_mm_repack_16(const wt_mm_repack_args *a, long long at)
{
    if (a->type == WT_MM_Q6_K) {
        const unsigned char *p = a->from + at / 16 * 210;
        const int j = (int)(at % 16), low_shift = j & 4 ? 4 : 0, high_shift = j / 2 % 4 * 2;
        const unsigned char *low = p + j / 8 * 64 + j % 4 * 16, *high = p + 128 + j / 8 * 32 + j % 2 * 16;
        ((float *)a->scales)[at] = wt_mm_half(p + 208) * (float)(signed char)p[192 + j];
        for (int k = 0; k < 16; k++)
            a->to[at * 16 + k] = (unsigned char)(((low[k] >> low_shift & 15) | (high[k] >> high_shift & 3) << 4) - 32);
        return;
    }
    const int second = (int)(at & 1), q8 = a->type == WT_MM_Q8_0;
    const unsigned char *p = a->from + at / 2 * (q8 ? 34 : 18);
    if (!second) {
        a->scales[at] = p[0]; // two bytes for two sixteens
        a->scales[at + 1] = p[1];
    }
    for (int k = 0; q8 && k < 16; k++) a->to[at * 16 + k] = p[2 + second * 16 + k];
    for (int k = 0; !q8 && k < 8; k++) {
        const int pair = p[2 + 2 * k] | p[3 + 2 * k] << 8, nibbles = second ? pair >> 4 : pair;
        a->to[at * 8 + k] = (unsigned char)((nibbles & 15) | (nibbles >> 4 & 0xf0));
    }
}

/// The scale of a row whose largest magnitude is `most`; of E2M1 so that the largest scale of a group is 448.
static inline float wt_mm_quantum(float most, int out_type)
{
    const float top = out_type == WT_MM_I8 ? 127.0f : out_type == WT_MM_E2M1 ? 6 * 448.0f : 448.0f;
    return most > 0 ? most / top : 1;
}

/// A quotient of magnitude 127 or 448 at most, as I8 or FP8 E4M3; halves go to the even neighbour.
static inline unsigned char wt_mm_quantized(float v, int out_type)
{
    if (out_type == WT_MM_I8) return (unsigned char)(signed char)rintf(v);
    const float size = fabsf(v) < 448 ? fabsf(v) : 448;
    int exponent = 0; // above that of the smallest normal number, whose step those below share
    float top = 0x1p-5f;
    while (size >= top) {
        top *= 2;
        exponent++;
    }
    const int steps = (int)rintf(size * (16 / top)); // units of the last place: 8 .. 16, and 0 .. 16 for exponent 0
    return (unsigned char)((v < 0 ? 0x80 : 0) | (exponent * 8 + steps));
}

/// E4M3 that is not negative.
static inline float wt_mm_of_e4m3(unsigned char code)
{
    const int exponent = code >> 3;
    float v = (float)(exponent ? 8 | (code & 7) : code & 7) * 0x1p-9f;
    for (int k = 1; k < exponent; k++) v *= 2;
    return v;
}

/// To the nearest E2M1, halves to the even one.
static inline int wt_mm_e2m1(float v)
{
    const float s = fabsf(v);
    return (v < 0 ? 8 : 0) |
           ((s > 0.25f) + (s >= 0.75f) + (s > 1.25f) + (s >= 1.75f) + (s > 2.5f) + (s >= 3.5f) + (s > 5));
}

/// A group of 16 of a row whose scale is `quantum`: two a byte, the first in the low nibble. Returns the group's scale.
static inline unsigned char wt_mm_quantize_16(const float *x, float quantum, unsigned char *out)
{
    float most = 0;
    for (int k = 0; k < 16; k++) most = fmaxf(most, fabsf(x[k]));
    const unsigned char code = wt_mm_quantized(most / 6 / quantum, WT_MM_E4M3);
    const float step = wt_mm_of_e4m3(code) * quantum;
    for (int k = 0; k < 8; k++)
        out[k] = (unsigned char)(code ? wt_mm_e2m1(x[2 * k] / step) | wt_mm_e2m1(x[2 * k + 1] / step) << 4 : 0);
    return code;
}

#endif
