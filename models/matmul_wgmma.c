// Products by matmul_wgmma.cu: the shape of its tiles, and what its tensor copies are told of x and the weights.
#include "matmul_internal.h"

#include <string.h>

enum { STEP_BYTES = 128, BARRIER_BYTES = 16, MET_BYTES = 8, ALIGN_BYTES = 1024, FEW_ROWS = 64, LEAST_ROWS = 9 };
enum { SLICED_COLUMNS = 128 };                            ///< rows of W of a tile that may have slices
enum { LEAST_STEPS_OF_FEW = 4, LEAST_STEPS = 16 };        ///< of a slice, of 64 and of 128 rows of x
enum { MET_COLUMNS = 64, LEAST_MET = 48, MOST_MET = 66 }; ///< rows of W of a tile that a cluster has; tiles for which
enum { SMS = 132, COUNTER_BYTES = 1 << 14 };              ///< of the warps of tiles, in front of the sums

static int64_t n_tiles_of(wt_mm_args *a, int columns)
{
    return (int64_t)wt__mm_number_tiles(a, columns / (a->gated ? 2 : 1)) * wt_mm_n_tiles(a, WT_MM_TILE);
}

static int64_t rounds_of(wt_mm_args *a, int columns, int n_sms) { return (n_tiles_of(a, columns) + n_sms - 1) / n_sms; }

/// Rows of W a block: 256, or 128, which take 0.55 of the time, where that ends sooner, since many SMs idle at the end.
static int columns_of(wt_mm_args *a, int n_sms)
{
    return 11 * rounds_of(a, 128, n_sms) < 20 * rounds_of(a, 256, n_sms) ? 128 : 256;
}

bool wt__mm_wgmma_is_few(const wt_matmul_config *config, const wt_mm_args *a)
{
    const bool is_8 = a->x_type == WT_MM_I8 || a->x_type == WT_MM_E4M3;
    const int least = config->wgmma_least ? config->wgmma_least : LEAST_ROWS;
    return !is_8 && a->m >= least && a->m <= FEW_ROWS && a->n_batches == 1 && !a->experts && !a->offsets &&
           !config->wgmma_columns;
}

static int element_bytes(const wt_mm_args *a)
{
    return a->x_type == WT_MM_F32 ? 4 : a->x_type == WT_MM_I8 || a->x_type == WT_MM_E4M3 ? 1 : 2;
}

/// Of a tile's columns, so that all SMs have some: at least `least` steps each.
static int slices_of(const wt_mm_args *a, int64_t n_tiles, int n_sms, int least)
{
    const int64_t n = n_sms / n_tiles, most = (int64_t)element_bytes(a) * a->columns / STEP_BYTES / least;
    return (int)(n < 1 || most < 1 ? 1 : n < most ? n : most);
}

/// Are tiles of 64 rows of W, whose columns the two blocks of a cluster share, enough for nearly all SMs, and no more?
/// Of 16 bits alone, and of the shape alone.
static bool is_met(const wt_matmul_config *config, wt_mm_args *a, bool few)
{
    const int64_t n_tiles = n_tiles_of(a, MET_COLUMNS), n_steps = (int64_t)element_bytes(a) * a->columns / STEP_BYTES;
    if (element_bytes(a) != 2 || a->gated || a->offsets || config->wgmma_columns) return false;
    return n_tiles >= LEAST_MET && n_tiles <= MOST_MET && n_steps >= 2 * (few ? LEAST_STEPS_OF_FEW : LEAST_STEPS) &&
           wt__mm_has_clusters(config);
}

static int stages_of(const wt_matmul_config *config, const wt__mm_wgmma_shape *s)
{
    const bool few = s->rows == FEW_ROWS;
    if (config->wgmma_stages) return config->wgmma_stages;
    if (s->meets) return few ? 12 : 8;
    return few ? 8 : s->columns == 256 ? 4 : 6;
}

static size_t stage_bytes(const wt__mm_wgmma_shape *s)
{
    return (size_t)((s->rows + s->columns) * STEP_BYTES + BARRIER_BYTES);
}

wt__mm_wgmma_shape wt__mm_wgmma_shape_of(const wt_matmul_config *config, int n_sms, wt_mm_args *a)
{
    const bool few = wt__mm_wgmma_is_few(config, a);
    wt__mm_wgmma_shape s = {.rows = few ? FEW_ROWS : WT_MM_TILE, .n_slices = 1, .meets = is_met(config, a, few)};
    if (s.meets)
        s.n_slices = 2;
    else if (!few && !config->wgmma_columns && !a->offsets) // by shape alone, as if there were always so many SMs
        s.n_slices = slices_of(a, n_tiles_of(a, SLICED_COLUMNS), SMS, LEAST_STEPS);
    s.columns = s.meets                 ? MET_COLUMNS
                : few || s.n_slices > 1 ? SLICED_COLUMNS
                : config->wgmma_columns ? config->wgmma_columns
                                        : columns_of(a, n_sms);
    s.stages = stages_of(config, &s);
    s.n_tiles = n_tiles_of(a, s.columns);
    if (few && !s.meets) s.n_slices = slices_of(a, s.n_tiles, n_sms, LEAST_STEPS_OF_FEW);
    s.n_blocks = s.meets || s.n_tiles * s.n_slices < n_sms ? (int)s.n_tiles * s.n_slices : n_sms;
    s.shared_bytes = ALIGN_BYTES + sizeof(float) * (WT_MM_WGMMA_SUMS + 16 * WT_MM_WGMMA_WARPS) +
                     MET_BYTES * WT_MM_WGMMA_WARPS + (size_t)s.stages * stage_bytes(&s);
    return s;
}

size_t wt__mm_wgmma_partial_bytes(int n_sms)
{
    const size_t few = FEW_ROWS * (size_t)n_sms, many = WT_MM_TILE * SMS;
    return COUNTER_BYTES + sizeof(float) * SLICED_COLUMNS * (few > many ? few : many);
}

static wt_status fill_map(wt_device *device, const wt_tensor_map_config *config, wt_mm_map *filled)
{
    wt_tensor_map map;
    _Static_assert(sizeof map == sizeof *filled, "the kernel's map is the engine's");
    wt_status status = wt_tensor_map_create(device, config, &map);
    if (!status) memcpy(filled, &map, sizeof map);
    return status;
}

wt_status wt__mm_wgmma_fill(wt_device *device, const wt_mm_args *a, const wt__mm_wgmma_shape *shape, uintptr_t partial,
                            wt_mm_wgmma_args *filled)
{
    const int x_rows = shape->rows == FEW_ROWS ? (a->m + 7) / 8 * 8 : shape->rows;
    const int bytes = element_bytes(a);
    wt_tensor_map_config config = {.data = (uintptr_t)a->x,
                                   .element_bytes = bytes,
                                   .columns = a->columns,
                                   .rows = a->m,
                                   .n_matrices = a->n_batches,
                                   .row_bytes = a->x_stride * bytes,
                                   .matrix_bytes = a->x_batch * bytes,
                                   .box_rows = x_rows};
    memset(filled, 0, sizeof *filled);
    filled->args = *a;
    filled->n_tiles = (int)shape->n_tiles;
    filled->n_slices = shape->n_slices;
    filled->x_rows = x_rows;
    if (wt__mm_wgmma_has_partial(shape)) {
        filled->arrived = (int *)partial;
        filled->partial = (void *)(partial + COUNTER_BYTES);
    }
    wt_status status = fill_map(device, &config, &filled->x);
    for (int k = 0; k < a->n_parts && !status; k++) {
        const wt_mm_part *p = &a->parts[k];
        config.data = (uintptr_t)p->w;
        config.rows = p->rows;
        config.n_matrices = a->offsets ? a->n_experts : a->n_batches;
        config.row_bytes = a->row_bytes;
        config.matrix_bytes = p->w_next;
        config.box_rows = shape->columns / (a->gated ? 2 : 1) / (shape->rows == FEW_ROWS && !shape->meets ? 2 : 1);
        status = fill_map(device, &config, &filled->w[k]);
    }
    return status;
}
