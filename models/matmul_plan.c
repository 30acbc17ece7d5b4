// Which kernel takes which product, compiled with what and launched how. Nothing here is queued or compiled.
#include "matmul_plan.h"

#include <stdio.h>

enum { ANY_ROWS = 8, ANY_WARPS = 8 }; // of kernels/matmul/matmul_any.cu
enum { MOST_SKINNY_ROWS = 128 };      ///< up to which matmul_skinny, 16 rows at a time, was faster than matmul_tiles
enum { MOST_SKINNY_OF_16 = 64, MOST_SKINNY_OF_EXPERT = 8 }; // where there is matmul_wgmma: see most_skinny
enum { BLOCK_BYTES = 1024 };                                ///< of shared memory that the driver keeps

// ---- few rows of x

static int vector_of(int w_type) // elements of 16 bytes, 0 = not for matmul_skinny
{
    switch (w_type) {
    case WT_MM_F16:
    case WT_MM_BF16:
        return 8;
    case WT_MM_E4M3:
    case WT_MM_E5M2:
    case WT_MM_I8:
        return 16;
    case WT_MM_U4:
    case WT_MM_E2M1:
    case WT_MM_Q4_K:
        return 32;
    default:
        return 0;
    }
}

static bool is_eight_bits(const wt_mm_args *a) { return a->x_type == WT_MM_I8 || a->x_type == WT_MM_E4M3; }

/// Rows of W and x begin at multiples of 16 bytes.
static bool is_aligned(const wt_mm_args *a)
{
    const int unit = is_eight_bits(a) ? 16 : a->x_type == WT_MM_F32 ? 4 : 8;
    bool aligned = a->row_bytes % 16 == 0 && (uintptr_t)a->x % 16 == 0;
    aligned &= a->x_stride % unit == 0 && a->x_batch % unit == 0;
    for (int k = 0; k < a->n_parts; k++) aligned &= (uintptr_t)a->parts[k].w % 16 == 0 && a->parts[k].w_next % 16 == 0;
    return aligned;
}

/// The elements of 16 bytes of W when tensor cores take W and x as they lie,
/// else 0.
static int tensor_vector(const wt__mm_site *site, const wt_mm_args *a)
{
    const wt_device_info *info = wt_device_get_info(site->config.device);
    const int vector = vector_of(a->w_type);
    if (!is_aligned(a) || a->x_type == WT_MM_F32 || a->x_type == WT_MM_E2M1 || (vector == 8 && a->w_type != a->x_type))
        return 0;
    if (a->x_type == WT_MM_E4M3 && info->compute_major * 10 + info->compute_minor < 89) return 0;
    return vector;
}

static bool is_constant(const wt_mm_args *a) { return !a->parts[0].scales || a->scale_columns > a->columns; }

/// MM_SCALES of kernels/matmul/matmul_skinny.cu, -1 = not for it.
static int skinny_scales(const wt_mm_args *a, int vector)
{
    if (is_constant(a)) return 0;
    if (a->scale_shift < 0) return -1;
    if (a->scale_columns % (4 * vector) == 0) return 1;
    if (is_eight_bits(a)) return -1;
    return vector > 8 && a->scale_columns % vector == 0 ? 2 : 3;
}

/// Warps of a block: no more than there are chunks of columns. It depends on
/// the shape of W alone, and so does the order of sums.
static int warps_of(int n_chunks, int most)
{
    int warps = most;
    while (warps > 1 && warps / 2 >= n_chunks) warps /= 2;
    return warps;
}

typedef struct option {
    const char *name;
    int value;
} option;

static void write_options(wt__mm_plan *p, const option *options, int n)
{
    for (int k = 0; k < n; k++)
        snprintf(p->options[k], sizeof p->options[k], "-DMM_%s=%d", options[k].name, options[k].value);
}

/// All of an array; one with more than a plan has room for does not compile.
#define WRITE_OPTIONS(p, options)                                                                                      \
    do {                                                                                                               \
        _Static_assert(sizeof(options) / sizeof *(options) <= WT__MM_MAX_OPTIONS,                                      \
                       "a plan has no room for these options");                                                        \
        write_options(p, options, sizeof(options) / sizeof *(options));                                                \
    } while (0)

/// MM_LOW of the kernels for few rows of x: with experts each is alone.
static int low_of(const wt_mm_args *a)
{
    return !a->two_parts ? 0 : a->experts || a->m <= 4 ? WT_MM_WITHIN : WT_MM_BEHIND;
}

static bool plan_skinny(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    const int vector = tensor_vector(site, a), scales = vector ? skinny_scales(a, vector) : -1, pair = a->gated ? 2 : 1;
    if (scales < 0) return false;
    const int n_tiles = wt__mm_number_tiles(a, 16), width = a->experts || a->m <= 8 ? 8 : 16;
    const bool wide = vector == 32 && scales == 1; // nibbles of large groups; bench_matmul sweep, H200
    const int steps = site->config.skinny_steps ? site->config.skinny_steps : wide ? 4 : 2;
    const int stages = site->config.skinny_stages ? site->config.skinny_stages : 2;
    const int blocks = site->config.skinny_blocks ? site->config.skinny_blocks : 2; // an SM
    const int n_chunks = (a->columns + steps * 4 * vector - 1) / (steps * 4 * vector);
    const int most_warps = (wide ? WT_MM_SKINNY_WARPS / 2 : WT_MM_SKINNY_WARPS) / pair;
    const int warps = site->config.skinny_warps ? site->config.skinny_warps / pair : warps_of(n_chunks, most_warps);
    const option options[] = {{"W", a->w_type},     {"X", a->x_type},   {"SCALES", scales},
                              {"S", a->scale_type}, {"N", width / 8},   {"PAIR", pair},
                              {"STEPS", steps},     {"STAGES", stages}, {"LOW", low_of(a)}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_skinny.cu", .function = "matmul_skinny"};
    WRITE_OPTIONS(p, options);
    const int64_t n_items = (int64_t)n_tiles * wt_mm_n_tiles(a, width), most = blocks * site->n_sms;
    if (n_items > INT32_MAX) return false;
    const int sum_bytes = 2 * pair * width * WT_MM_SKINNY_PITCH * (int)sizeof(float);
    p->launch = (wt_launch){.grid = {(int)(n_items < most ? n_items : most)},
                            .block = {32 * warps},
                            .shared_bytes = (size_t)(warps * (stages * pair * steps * WT_MM_SKINNY_STEP + sum_bytes)),
                            .overlap = a->overlap};
    return true;
}

/// Pieces of 128 bytes are all of W's rows, of 16 or 8 bits, beside few rows of
/// 16-bit x, on chips that copy boxes.
static bool is_for_few(const wt_device_info *info, const wt_mm_args *a, int vector)
{
    const int scales = vector ? skinny_scales(a, vector) : -1;
    if (vector != 8 && vector != 16) return false; // nibbles took longer, but for large matrices; bench_matmul, H200
    if (is_eight_bits(a) || a->experts || a->offsets || a->n_batches != 1 || a->m > WT_MATMUL_SKINNY) return false;
    return a->columns % (8 * vector) == 0 && (scales == 0 || scales == 1) && info->compute_major >= 9 &&
           info->driver_version >= 12000;
}

/// What a block of matmul_few has: warps that multiply at most, tiles at a time,
/// copies of x, warps that finish; and blocks a processor.
typedef struct few_form {
    int warps, tiles, copies, finishers, blocks;
} few_form;

/// Those of bench_matmul sweep; up to 8 rows beside other launches two blocks a
/// processor, of which one ends while the other goes on (8 guesses of the 8B
/// shape 4.91 ms, 4.78; H200). With what rounding left of more than four rows x
/// is as many bytes as a tile of W of 16 bits, twice as many as one of 8: there
/// one block of 16 warps takes it for all of a processor's tiles, and the next
/// columns are on their way (8 guesses 4.60 ms, 4.26, fp8 3.86, 3.37, int8 3.07,
/// 3.01; not measured with fewer columns).
static few_form few_form_of(const wt_matmul_config *c, const wt_mm_args *a)
{
    enum { LEAST_ALONE = 4096 }; // columns
    const bool behind = low_of(a) == WT_MM_BEHIND, alone = behind && a->columns >= LEAST_ALONE;
    const int n = a->m <= 8 ? 1 : 2, blocks = a->overlap && n == 1 && !alone ? 2 : 1;
    return (few_form){.warps = c->skinny_warps ? c->skinny_warps : 16 / (n * blocks),
                      .tiles = c->skinny_steps ? c->skinny_steps : 2 * n,
                      .copies = behind && !alone ? 1 : 2,
                      .finishers = alone ? 2 : 1,
                      .blocks = c->skinny_blocks ? c->skinny_blocks : blocks};
}

/// kernels/matmul/matmul_few.cu
static bool plan_few(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    const wt_device_info *info = wt_device_get_info(site->config.device);
    const int vector = tensor_vector(site, a), pair = a->gated ? 2 : 1, n = a->m <= 8 ? 1 : 2;
    if (!is_for_few(info, a, vector)) return false;
    const few_form f = few_form_of(&site->config, a);
    const int n_tiles = wt__mm_number_tiles(a, 16 / pair), warps = warps_of(a->columns / (8 * vector), f.warps);
    const int eights = low_of(a) == WT_MM_BEHIND ? 2 * n : n;
    const int there = ((int)info->shared_bytes + BLOCK_BYTES) / f.blocks - BLOCK_BYTES;
    int stages = site->config.skinny_stages ? site->config.skinny_stages : 6;
    while (stages > 2 && wt_mm_few_shared(warps, vector, n, eights, f.copies, f.tiles, stages) > there) stages--;
    const int shared_bytes = wt_mm_few_shared(warps, vector, n, eights, f.copies, f.tiles, stages);
    const int most = f.blocks * site->n_sms;
    const option options[] = {{"W", a->w_type},
                              {"X", a->x_type},
                              {"SCALES", skinny_scales(a, vector)},
                              {"S", a->scale_type},
                              {"N", n},
                              {"PAIR", pair},
                              {"STAGES", stages},
                              {"TILES", f.tiles},
                              {"WARPS", f.warps},
                              {"BLOCKS", f.blocks},
                              {"COPIES", f.copies},
                              {"FINISHERS", f.finishers},
                              {"LOW", low_of(a)}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_few.cu", .function = "matmul_few", .few_warps = warps};
    WRITE_OPTIONS(p, options);
    p->launch = (wt_launch){.grid = {n_tiles < most ? n_tiles : most},
                            .block = {32 * (warps + WT_MM_FEW_COPIERS + f.finishers)},
                            .shared_bytes = (size_t)shared_bytes,
                            .overlap = a->overlap};
    return shared_bytes <= there;
}

/// log2 of the rows that a scale has, of those that grow along columns.
static int scale_rows_shift(const wt_mm_args *a) { return !is_constant(a) && a->scale_rows == 128 ? 7 : 0; }

/// MM_GROUP of kernels/matmul/matmul_scales.cuh.
static int group_of(const wt_mm_args *a, int vector)
{
    const int step = 4 * vector, bytes = a->scale_type == WT_MM_F32 ? 4 : a->scale_type == WT_MM_E4M3 ? 1 : 2;
    if (a->scale_columns % (2 * step) == 0) return 2;
    bool aligned = a->scale_columns == step && a->scale_stride % 2 == 0 && a->columns % (2 * step) == 0;
    for (int k = 0; k < a->n_parts; k++)
        aligned &= (uintptr_t)a->parts[k].scales % (2 * (uintptr_t)bytes) == 0 && (uintptr_t)a->parts[k].zeros % 2 == 0;
    return aligned;
}

/// Nibbles beside norms, in two parts, and of matrices that are large enough:
/// small ones were slower than by matmul_skinny. FP8 without norms; I8 was
/// slower than by matmul_few (bench_matmul skinny, H200).
static bool is_for_thin(const wt_mm_args *a, int vector, int n_tiles)
{
    enum { LEAST_NIBBLES = 20000000 };
    const int scales = vector ? skinny_scales(a, vector) : -1;
    const bool norm = wt__mm_has_norm(a), large = (int64_t)n_tiles * 16 * a->columns >= LEAST_NIBBLES;
    const bool nibbles = vector == 32 && (large || norm || a->two_parts);
    const bool bytes = vector == 16 && a->w_type != WT_MM_I8 && !norm;
    if ((!nibbles && !bytes) || a->row_bytes > INT32_MAX || is_eight_bits(a) || a->w_type == WT_MM_Q4_K) return false;
    return scales >= 0 && scales <= 1 && !a->experts && !a->offsets && a->n_batches == 1 && a->m <= WT_MATMUL_SKINNY;
}

/// kernels/matmul/matmul_thin.cu
static bool plan_thin(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    enum { MOST_WARPS = 16, MOST_BLOCKS = 4, MOST_STAGES = 6 };
    const wt_device_info *info = wt_device_get_info(site->config.device);
    const int vector = tensor_vector(site, a), n = a->m <= 8 ? 1 : 2, pair = a->gated ? 2 : 1;
    const int n_tiles = wt__mm_number_tiles(a, 16 / pair);
    if (!is_for_thin(a, vector, n_tiles)) return false;
    const int n_pieces = (a->columns + WT_MM_THIN_COLUMNS - 1) / WT_MM_THIN_COLUMNS;
    const int n_slices = (n_pieces + MOST_WARPS - 1) / MOST_WARPS, warps = (n_pieces + n_slices - 1) / n_slices;
    const int blocks = MOST_WARPS / warps < MOST_BLOCKS ? MOST_WARPS / warps : MOST_BLOCKS;
    const int there = ((int)info->shared_bytes + BLOCK_BYTES) / blocks - BLOCK_BYTES;
    int stages = MOST_STAGES;
    while (stages > 2 && wt_mm_thin_shared(warps, n, stages) > there) stages--;
    const int shared_bytes = wt_mm_thin_shared(warps, n, stages);
    const int most = blocks * site->n_sms;
    const option options[] = {{"W", a->w_type},
                              {"X", a->x_type},
                              {"SCALES", skinny_scales(a, vector)},
                              {"S", a->scale_type},
                              {"N", n},
                              {"PAIR", pair},
                              {"STAGES", stages},
                              {"WARPS", warps},
                              {"BLOCKS", blocks},
                              {"SLICED", n_slices > 1},
                              {"SHIFT", scale_rows_shift(a)},
                              {"GROUP", group_of(a, vector)},
                              {"PARTS", a->gated ? 1 : a->n_parts},
                              {"LOW", low_of(a)}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_thin.cu", .function = "matmul_thin"};
    WRITE_OPTIONS(p, options);
    p->launch = (wt_launch){.grid = {n_tiles < most ? n_tiles : most},
                            .block = {32 * warps},
                            .shared_bytes = (size_t)shared_bytes,
                            .overlap = a->overlap};
    return shared_bytes <= there;
}

// ---- many rows of x

/// MM_SCALES of kernels/matmul/matmul_tiles.cu, -1 = not for it.
static int tiles_scales(const wt_mm_args *a, int vector)
{
    if (is_constant(a)) return 0;
    if (a->scale_shift < 0 || is_eight_bits(a) || a->x_type == WT_MM_F32) return -1;
    return a->scale_columns % vector == 0 ? 4 : 3;
}

static int rows_of_expert(const wt_mm_args *a) { return a->experts ? 1 : a->offsets ? a->m / a->n_experts : a->m; }

/// MM_SCALES of kernels/matmul/matmul_wgmma.cu, -1 = not for it.
static int wgmma_scales(const wt_mm_args *a)
{
    if (is_constant(a)) return 0;
    return a->x_type == WT_MM_E4M3 && a->scale_rows == 128 && a->scale_columns == 128 ? 1 : -1;
}

/// Rows, of an expert on average, that are left to matmul_skinny and those for few rows: it reads W for 16 of them at a
/// time, matmul_wgmma for 128 (8B of 128 rows 32.7 ms, 8.4; of Mixtral's experts, 16 rows each, 15.2, 7.6; H200).
static int most_skinny(const wt__mm_site *site, const wt_mm_args *a)
{
    if (site->config.wgmma_columns) return WT_MATMUL_SKINNY;
    if (is_eight_bits(a)) return MOST_SKINNY_ROWS;
    return a->offsets ? MOST_SKINNY_OF_EXPERT : MOST_SKINNY_OF_16;
}

static bool is_f32(const wt_mm_args *a) { return a->x_type == WT_MM_F32 && a->w_type == WT_MM_F32; }

/// Both factors of one type, as they lie, on compute capability 9.0; of F32 where tf32 is asked for.
bool wt__mm_plan_wgmma(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    const wt_device_info *info = wt_device_get_info(site->config.device);
    const int scales = wgmma_scales(a), pair = a->gated ? 2 : 1;
    const bool tf32 = site->config.tf32 && is_f32(a) && is_aligned(a);
    if (site->config.no_wgmma || info->compute_major != 9 || info->compute_minor || info->driver_version < 12000)
        return false;
    if (a->w_type != a->x_type || (!tf32 && !tensor_vector(site, a)) || scales < 0 || a->experts) return false;
    const bool few = wt__mm_wgmma_is_few(&site->config, a);
    if (!few && rows_of_expert(a) <= most_skinny(site, a)) return false;
    const wt__mm_wgmma_shape shape = wt__mm_wgmma_shape_of(&site->config, site->n_sms, a);
    if (shape.n_tiles > INT32_MAX) return false;
    const option options[] = {{"X", tf32 ? WT_MM_TF32 : a->x_type},
                              {"SCALES", scales},
                              {"S", a->scale_type},
                              {"PAIR", pair},
                              {"N", shape.columns},
                              {"ROWS", shape.rows},
                              {"STAGES", shape.stages},
                              {"PROMOTE", a->x_type == WT_MM_E4M3},
                              {"MEET", shape.meets},
                              {"ACTIVATION", a->activation}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_wgmma.cu", .function = "matmul_wgmma", .wgmma = shape};
    WRITE_OPTIONS(p, options);
    p->launch = (wt_launch){.grid = {shape.n_blocks},
                            .block = {WT_MM_WGMMA_THREADS},
                            .shared_bytes = shape.shared_bytes,
                            .overlap = a->overlap};
    return true;
}

/// How matmul_tiles.cuh is compiled: MM_ROWS, MM_PIECES, MM_STAGES.
typedef struct tiles_shape {
    int rows, pieces, stages;
} tiles_shape;

static int64_t n_blocks_of(wt_mm_args *a, int rows)
{
    return (int64_t)wt__mm_number_tiles(a, rows / (a->gated ? 2 : 1)) * wt_mm_n_tiles(a, WT_MM_TILE);
}

/// Stages, and the sums afterwards. A row of W meets `units` pieces of x with one of its own.
static size_t tiles_shared(tiles_shape s, int units, int extra_bytes)
{
    const size_t stage_bytes = (size_t)((s.rows + WT_MM_TILE * units) * s.pieces * 16 + extra_bytes) * (size_t)s.stages,
                 sum_bytes = sizeof(float) * WT_MM_TILE * (size_t)(s.rows + 4);
    return stage_bytes > sum_bytes ? stage_bytes : sum_bytes;
}

/// A block computes WT_MM_TILE rows of x by s.rows of W, or one of `n_slices` slices of their columns.
static bool launch_tiles(wt_mm_args *a, tiles_shape s, int n_slices, size_t shared_bytes, int threads, wt__mm_plan *p)
{
    const int64_t n_blocks = n_blocks_of(a, s.rows) * n_slices;
    if (n_blocks > INT32_MAX) return false;
    p->launch = (wt_launch){.grid = {(int)n_blocks}, .block = {threads}, .shared_bytes = shared_bytes};
    return true;
}

/// NVFP4 by NVFP4 on compute capability 12.0.
static bool plan_fp4(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    static const tiles_shape shape = {.rows = WT_MM_TILE, .pieces = 4, .stages = 4}; // of matmul_fp4.cu
    enum { SCALE_BYTES = WT_MM_TILE * 2 * 8 };
    const wt_device_info *info = wt_device_get_info(site->config.device);
    bool fits = a->x_type == WT_MM_E2M1 && !a->experts && a->columns % 128 == 0;
    fits &= (uintptr_t)a->x % 16 == 0 && (uintptr_t)a->x_groups % 8 == 0;
    for (int k = 0; k < a->n_parts; k++) {
        const wt_mm_part *part = &a->parts[k];
        fits &= (uintptr_t)part->w % 16 == 0 && part->w_next % 16 == 0;
        fits &= (uintptr_t)part->scales % 8 == 0 && part->scales_next % 8 == 0;
    }
    if (!fits || info->compute_major != 12 || info->compute_minor) return false;
    const option options[] = {{"PAIR", a->gated ? 2 : 1}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_fp4.cu", .function = "matmul_fp4"};
    WRITE_OPTIONS(p, options);
    return launch_tiles(a, shape, 1, tiles_shared(shape, 1, SCALE_BYTES), 128, p);
}

/// The one of `n` shapes that is soonest done: rows of W that an SM has in
/// turn, by what a row takes of each.
static tiles_shape soonest(const wt__mm_site *site, wt_mm_args *a, const tiles_shape *shapes, const int *costs, int n)
{
    const size_t there = wt_device_get_info(site->config.device)->shared_bytes;
    int64_t least = INT64_MAX;
    tiles_shape best = shapes[n - 1];
    for (int k = 0; k < n; k++) {
        const tiles_shape s = shapes[k];
        const int64_t rounds = (n_blocks_of(a, s.rows) + site->n_sms - 1) / site->n_sms,
                      cost = rounds * s.rows * costs[k];
        if (cost >= least || tiles_shared(s, 1, 0) > there) continue;
        least = cost;
        best = s;
    }
    return best;
}

/// Wide tiles read less; narrow ones leave fewer SMs idle, and fit where shared
/// memory is small. bench_matmul large, H200.
static tiles_shape tiles_shape_of(const wt__mm_site *site, wt_mm_args *a, bool direct, int units)
{
    static const tiles_shape shapes[] = {{256, 8, 3}, {128, 8, 3}, {128, 4, 3}};
    static const int costs[] = {10, 11, 11};
    if (!direct) return (tiles_shape){WT_MM_TILE, 4, units <= 2 ? 4 : 2};
    return soonest(site, a, shapes, costs, 3);
}

static void write_tiles(const wt_mm_args *a, int type, int scales, tiles_shape s, bool sliced, wt__mm_plan *p)
{
    const option options[] = {{"W", type == WT_MM_TF32 ? type : a->w_type},
                              {"X", type},
                              {"SCALES", scales},
                              {"S", a->scale_type},
                              {"PAIR", a->gated ? 2 : 1},
                              {"ROWS", s.rows},
                              {"PIECES", s.pieces},
                              {"STAGES", s.stages},
                              {"SLICED", sliced}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_tiles.cu", .function = "matmul_tiles"};
    WRITE_OPTIONS(p, options);
}

/// F32 without tensor cores, also from 65 rows of x on where a tile's columns have slices.
static bool plan_plain(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    static const tiles_shape shapes[] = {{WT_MM_SLICED_ROWS, 4, 4}, {128, 4, 4}, {64, 4, 4}, {32, 8, 4}};
    static const int costs[] = {10, 11, 13, 16};
    enum { THREADS = 256 };
    const size_t there = wt_device_get_info(site->config.device)->shared_bytes;
    const int n_slices = tiles_shared(shapes[0], 1, 0) > there ? 1 : wt__mm_tiles_slices(a);
    if (n_slices == 1 && rows_of_expert(a) <= MOST_SKINNY_ROWS) return false;
    const tiles_shape s = n_slices > 1 ? shapes[0] : soonest(site, a, shapes, costs, a->gated ? 3 : 4);
    write_tiles(a, WT_MM_F32, 0, s, n_slices > 1, p);
    p->n_slices = n_slices;
    return launch_tiles(a, s, n_slices, tiles_shared(s, 1, 0), THREADS, p);
}

static bool plan_tiles(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    const bool f32 = is_f32(a) && is_aligned(a);
    const int vector = f32 ? 4 : tensor_vector(site, a), scales = vector ? tiles_scales(a, vector) : -1;
    if (scales < 0 || a->experts || a->w_type == WT_MM_Q4_K) return false;
    if (a->row_bytes > INT32_MAX || a->x_stride > INT32_MAX / 16) return false; // of 32 bits there
    if (f32 && !site->config.tf32) return plan_plain(site, a, p);
    if (rows_of_expert(a) <= MOST_SKINNY_ROWS) return false;
    const int units = f32 || is_eight_bits(a) ? 1 : vector / 8;
    const tiles_shape s = tiles_shape_of(site, a, units == 1 && scales == 0, units);
    write_tiles(a, f32 ? WT_MM_TF32 : a->x_type, scales, s, false, p);
    return launch_tiles(a, s, 1, tiles_shared(s, units, 0), s.rows, p);
}

/// kernels/matmul/matmul_slices.cu
static bool plan_slices(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    if (!is_f32(a) || !is_aligned(a) || !wt__mm_slices_takes(a)) return false;
    const wt__mm_slices_shape s = wt__mm_slices_shape_of(a);
    if (s.n_tiles * s.n_slices > INT32_MAX || s.shared_bytes > wt_device_get_info(site->config.device)->shared_bytes)
        return false;
    const option options[] = {{"X", site->config.tf32 ? WT_MM_TF32 : WT_MM_F32},
                              {"PAIR", a->gated ? 2 : 1},
                              {"X_ROWS", s.x_rows},
                              {"STAGES", s.stages},
                              {"ACTIVATION", a->activation}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_slices.cu", .function = "matmul_slices", .n_slices = s.n_slices};
    WRITE_OPTIONS(p, options);
    p->launch =
        (wt_launch){.grid = {(int)s.n_tiles * s.n_slices}, .block = {s.threads}, .shared_bytes = s.shared_bytes};
    return true;
}

/// Weights of 4 and 8 bits a word or two at a time, others one by one.
void wt__mm_plan_widen(const wt_mm_args *a, wt__mm_plan *p)
{
    const bool nibbles = a->w_type == WT_MM_U4 || a->w_type == WT_MM_E2M1;
    bool packed = nibbles || a->w_type == WT_MM_I8 || a->w_type == WT_MM_E4M3 || a->w_type == WT_MM_E5M2;
    packed &= a->row_bytes % 8 == 0;
    for (int k = 0; k < a->n_parts; k++) packed &= (uintptr_t)a->parts[k].w % 8 == 0;
    const option options[] = {{"W", packed ? a->w_type : -1}, {"X", a->x_type}};
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_widen.cu", .function = "matmul_widen"};
    WRITE_OPTIONS(p, options);
}

// ---- the rest

static void plan_any(wt_mm_args *a, wt__mm_plan *p)
{
    const int n_groups = wt__mm_number_tiles(a, ANY_WARPS);
    *p = (wt__mm_plan){.file = "kernels/matmul/matmul_any.cu",
                       .function = wt__mm_is_exact(a) ? "matmul_any_i8" : "matmul_any",
                       .launch = {.grid = {n_groups, wt_mm_n_tiles(a, ANY_ROWS), 1}, .block = {32 * ANY_WARPS}}};
}

void wt__mm_choose(const wt__mm_site *site, wt_mm_args *a, wt__mm_plan *p)
{
    if (!a->two_parts &&
        (plan_fp4(site, a, p) || wt__mm_plan_wgmma(site, a, p) || plan_tiles(site, a, p) || plan_slices(site, a, p)))
        return;
    if (plan_thin(site, a, p) || plan_few(site, a, p) || plan_skinny(site, a, p)) return;
    plan_any(a, p);
}

int wt__mm_squares_of(const wt__mm_site *site, wt_mm_args *a)
{
    wt__mm_plan p;
    if (a->x_type != WT_MM_BF16 || a->n_batches != 1 || a->experts || a->offsets) return 0;
    if (!a->two_parts && wt__mm_wgmma_is_few(&site->config, a) && wt__mm_plan_wgmma(site, a, &p))
        return WT_MM_WGMMA_SQUARES;
    if (a->m > WT_MATMUL_SKINNY) return 0;
    return plan_thin(site, a, &p) || plan_few(site, a, &p) || plan_skinny(site, a, &p) ? WT_MM_SKINNY_SQUARES : 0;
}
