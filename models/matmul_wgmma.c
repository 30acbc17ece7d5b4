// What tensor copies of matmul_wgmma are told of x and the weights.
#include "matmul_internal.h"

#include <string.h>

static wt_status fill_map(wt_device *device, const wt_tensor_map_config *config, wt_mm_map *filled)
{
    wt_tensor_map map;
    _Static_assert(sizeof map == sizeof *filled, "the kernel's map is the engine's");
    wt_status status = wt_tensor_map_create(device, config, &map);
    if (!status) memcpy(filled, &map, sizeof map);
    return status;
}

wt_status wt__mm_wgmma_fill(wt_device *device, const wt_mm_args *a, int columns, wt_mm_wgmma_args *filled)
{
    const int bytes = a->x_type == WT_MM_I8 || a->x_type == WT_MM_E4M3 ? 1 : 2;
    const int n_stack = a->offsets ? a->n_experts : a->n_batches;
    wt_tensor_map_config config = {.data = (uintptr_t)a->x,
                                   .element_bytes = bytes,
                                   .columns = a->columns,
                                   .rows = a->m,
                                   .n_matrices = a->n_batches,
                                   .row_bytes = a->x_stride * bytes,
                                   .matrix_bytes = a->x_batch * bytes,
                                   .box_rows = WT_MM_TILE};
    filled->args = *a;
    wt_status status = fill_map(device, &config, &filled->x);
    for (int k = 0; k < a->n_parts && !status; k++) {
        const wt_mm_part *p = &a->parts[k];
        config.data = (uintptr_t)p->w;
        config.rows = p->rows;
        config.n_matrices = n_stack;
        config.row_bytes = a->row_bytes;
        config.matrix_bytes = p->w_next;
        config.box_rows = a->gated ? columns / 2 : columns;
        status = fill_map(device, &config, &filled->w[k]);
    }
    return status;
}
