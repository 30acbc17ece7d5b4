#include "device_cuda.h"

#include <warptone/kernel.h>

_Static_assert(sizeof(wt_tensor_map) == sizeof(CUtensorMap), "a map as the driver writes it");

enum { BOX_BYTES = 128 };

wt_status wt_tensor_map_create(wt_device *device, const wt_tensor_map_config *config, wt_tensor_map *map)
{
    const wt_device_info *info = &device->info;
    if (info->backend != WT_BACKEND_CUDA || info->compute_major < 9)
        return wt_fail(WT_ERR_UNSUPPORTED, "tensor map: %s has no copies of boxes, want compute capability 9.0",
                       info->name);
    const wt__cuda *cuda = wt__cuda_device_of(device)->cuda;
    wt_status status = wt__cuda_enter(wt__cuda_device_of(device));
    if (status) return status;
    if (!cuda->TensorMapEncodeTiled)
        return wt_fail(WT_ERR_UNSUPPORTED, "tensor map: the driver is CUDA %d.%d, want 12.0 or newer",
                       cuda->driver_version / 1000, cuda->driver_version % 1000 / 10);
    const int type = config->element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                     : config->element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                  : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    const uint64_t sizes[3] = {(uint64_t)config->columns, (uint64_t)config->rows, (uint64_t)config->n_matrices};
    const uint64_t strides[2] = {(uint64_t)config->row_bytes, (uint64_t)config->matrix_bytes};
    const int box_bytes = config->box_bytes ? config->box_bytes : BOX_BYTES;
    const uint32_t box[3] = {(uint32_t)(box_bytes / config->element_bytes), (uint32_t)config->box_rows,
                             config->box_matrices ? (uint32_t)config->box_matrices : 1};
    const uint32_t ones[3] = {1, 1, 1};
    const int swizzle = config->box_bytes ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B;
    return wt__cu(cuda,
                  cuda->TensorMapEncodeTiled((CUtensorMap *)map, type, 3, (void *)config->data, sizes, strides, box,
                                             ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  "tensor map: %d x %d x %d in rows of %lld bytes", config->n_matrices, config->rows, config->columns,
                  (long long)config->row_bytes);
}
