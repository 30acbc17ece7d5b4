#include "op.h"

#define PLACES_BYTES (1LL << 30)

bool wt__op_on_gpu(const wt_device *device)
{
    return device && wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
}

int wt__op_slots(const wt_device *device, int64_t n_tiles)
{
    if (!device || wt__op_on_gpu(device)) return 1;
    int threads = wt_device_get_info(device)->n_sms;
    if (threads > n_tiles) threads = (int)n_tiles;
    return threads < 1 ? 1 : threads;
}

WT_RT bool wt__op_take(wt__op_share *share, int64_t n_tiles, int64_t most, int n_slots, int64_t *begin, int64_t *end)
{
    *begin = atomic_load_explicit(&share->next, memory_order_relaxed);
    while (*begin < n_tiles) {
        const int64_t quarter = (n_tiles - *begin) / (4 * (int64_t)n_slots);
        *end = *begin + (quarter < 1 ? 1 : quarter < most ? quarter : most);
        if (atomic_compare_exchange_weak_explicit(&share->next, begin, *end, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    if (atomic_fetch_add_explicit(&share->n_done, 1, memory_order_acq_rel) + 1 < n_slots) return false;
    atomic_store_explicit(&share->next, 0, memory_order_relaxed); // the others have taken their last
    atomic_store_explicit(&share->n_done, 0, memory_order_relaxed);
    return false;
}

wt_status wt__op_range(const char *op, const char *side, const wt_buffer *buffer, size_t offset, size_t floats)
{
    if (!buffer) return wt_fail(WT_ERR_BAD_ARG, "%s: no %s buffer", op, side);
    const size_t size = wt_buffer_size_bytes(buffer), need = floats * sizeof(float);
    if (offset % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s offset %zu, want a multiple of 4", op, side, offset);
    if (offset > size || need > size - offset)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s takes %zu bytes at %zu, the buffer has %zu", op, side, need, offset,
                       size);
    return WT_OK;
}

wt_status wt__op_stream(const char *op, const wt_device *device, const wt_stream *stream)
{
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "%s: the plan has no device", op);
    if (wt_stream_device(stream) != device)
        return wt_fail(WT_ERR_BAD_ARG, "%s: the stream belongs to another device than the plan", op);
    return WT_OK;
}

wt_status wt__op_upload(wt_device *device, const void *data, size_t bytes, wt_buffer **buffer)
{
    wt_stream *stream;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, buffer);
    if (status) return status;
    status = wt_stream_create(device, NULL, &stream);
    if (status) return status;
    status = wt_stream_upload(stream, *buffer, 0, data, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

wt_status wt__op_module(wt_device *device, const char *name, char options[][48], int n_options, wt_module **module)
{
    const char *list[16];
    for (int i = 0; i < n_options; i++) list[i] = options[i];
    return wt_module_create(device, &(wt_module_config){.name = name, .options = list, .n_options = n_options}, module);
}

wt_status wt__op_exact_module(wt_device *device, const char *name, wt_module **module)
{
    char options[1][48] = {"-fmad=false"};
    return wt__op_module(device, name, options, 1, module);
}

wt_status wt__op_places(wt_device *device, int64_t across, int64_t down, size_t bytes, wt_places *places,
                        wt_launch *launch, wt_buffer **memory)
{
    bytes = (bytes + 15) / 16 * 16;
    const int64_t room = PLACES_BYTES / (int64_t)bytes, wave = 4 * wt_device_get_info(device)->n_sms;
    int64_t blocks = across * down < wave ? across * down : wave;
    if (blocks > room) blocks = room < 1 ? 1 : room;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)blocks * bytes, memory);
    if (status) return status;
    *places = (wt_places){.memory = (unsigned char *)wt_buffer_address(*memory),
                          .bytes = (long long)bytes,
                          .across = across,
                          .down = down};
    launch->grid[0] = (int)blocks, launch->grid[1] = 0;
    return WT_OK;
}
