// Products by matmul_wgmma.cu: the shape of its tiles, and what its tensor copies are told of x and the weights.
#include "matmul_internal.h"

#include <string.h>

enum { STEP_BYTES = 128, BARRIER_BYTES = 16, ALIGN_BYTES = 1024, FEW_ROWS = 64, LEAST_STEPS = 4, LEAST_ROWS = 9 };

static int64_t rounds_of(wt_mm_args *a, int columns, int n_sms)
{
    const int64_t n = (int64_t)wt__mm_number_tiles(a, columns / (a->gated ? 2 : 1)) * wt_mm_n_tiles(a, WT_MM_TILE);
    return (n + n_sms - 1) / n_sms;
}

/// Rows of W a block: 256, or 128, which take 0.55 of the time, where that ends sooner, since many SMs idle at the end.
static int columns_of(wt_mm_args *a, int n_sms)
{
    return 11 * rounds_of(a, 128, n_sms) < 20 * rounds_of(a, 256, n_sms) ? 128 : 256;
}

bool wt__mm_wgmma_is_few(const wt_matmul_config *config, const wt_mm_args *a)
{
    const bool is_16 = a->x_type == WT_MM_F16 || a->x_type == WT_MM_BF16;
    const int least = config->wgmma_least ? config->wgmma_least : LEAST_ROWS;
    return is_16 && a->m >= least && a->m <= FEW_ROWS && a->n_batches == 1 && !a->experts && !a->offsets &&
           !config->wgmma_columns;
}

/// Of a tile's columns, so that all SMs have some: at least LEAST_STEPS steps each.
static int slices_of(const wt_mm_args *a, int64_t n_tiles, int n_sms)
{
    const int64_t n = n_sms / n_tiles, most = 2 * a->columns / STEP_BYTES / LEAST_STEPS;
    return (int)(n < 1 || most < 1 ? 1 : n < most ? n : most);
}

static size_t stage_bytes(const wt__mm_wgmma_shape *s)
{
    return (size_t)((s->rows + s->columns) * STEP_BYTES + BARRIER_BYTES);
}

wt__mm_wgmma_shape wt__mm_wgmma_shape_of(const wt_matmul_config *config, int n_sms, wt_mm_args *a)
{
    const bool few = wt__mm_wgmma_is_few(config, a);
    wt__mm_wgmma_shape s = {.rows = few ? FEW_ROWS : WT_MM_TILE, .n_slices = 1};
    s.columns = config->wgmma_columns ? config->wgmma_columns : few ? 128 : columns_of(a, n_sms);
    s.stages = config->wgmma_stages ? config->wgmma_stages : few ? 8 : s.columns == 256 ? 4 : 6;
    s.n_tiles = (int64_t)wt__mm_number_tiles(a, s.columns / (a->gated ? 2 : 1)) * wt_mm_n_tiles(a, WT_MM_TILE);
    if (few) s.n_slices = slices_of(a, s.n_tiles, n_sms);
    s.n_blocks = s.n_tiles * s.n_slices < n_sms ? (int)s.n_tiles * s.n_slices : n_sms;
    s.shared_bytes =
        ALIGN_BYTES + sizeof(float) * (WT_MM_WGMMA_SUMS + 16 * WT_MM_WGMMA_WARPS) + (size_t)s.stages * stage_bytes(&s);
    return s;
}

/// Counters of the warps of a tile, in front of the sums.
static size_t counter_bytes(int n_sms) { return sizeof(int) * WT_MM_WGMMA_WARPS * (size_t)n_sms; }

size_t wt__mm_wgmma_partial_bytes(int n_sms)
{
    return counter_bytes(n_sms) + sizeof(float) * FEW_ROWS * 128 * (size_t)n_sms;
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
    const int bytes = a->x_type == WT_MM_I8 || a->x_type == WT_MM_E4M3 ? 1 : 2;
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
    if (shape->n_slices > 1) {
        filled->arrived = (int *)partial;
        filled->partial = (void *)(partial + counter_bytes(shape->n_blocks));
    }
    wt_status status = fill_map(device, &config, &filled->x);
    for (int k = 0; k < a->n_parts && !status; k++) {
        const wt_mm_part *p = &a->parts[k];
        config.data = (uintptr_t)p->w;
        config.rows = p->rows;
        config.n_matrices = a->offsets ? a->n_experts : a->n_batches;
        config.row_bytes = a->row_bytes;
        config.matrix_bytes = p->w_next;
        config.box_rows = shape->columns / (a->gated ? 2 : 1) / (shape->rows == FEW_ROWS ? 2 : 1);
        status = fill_map(device, &config, &filled->w[k]);
    }
    return status;
}
