#include "chain_copies.h"

#include <string.h>

wt_status chain_copies_open(wt_device *device, wt_partition *partition, double rate_hz, const wt_chain_desc *desc,
                            int n_frames, chain_copies *c)
{
    const size_t bytes = 2 * sizeof(float) * (size_t)n_frames;
    const wt_chain_config config = {.rate_hz = rate_hz, .channels = 2, .device = device};
    wt_status status = wt_chain_create(&config, desc, &c->chain);
    if (!status) status = wt_partition_stream_create(partition, &(wt_stream_config){.priority = 1}, &c->stream);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_PINNED, bytes, &c->pinned);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->audio);
    c->job = (wt_chain_job){
        .in = c->audio, .in_stride = n_frames, .out = c->audio, .out_stride = n_frames, .n_frames = n_frames};
    return status;
}

void chain_copies_close(chain_copies *c)
{
    wt_stream_destroy(c->stream);
    wt_chain_destroy(c->chain);
    wt_buffer_destroy(c->pinned);
    wt_buffer_destroy(c->audio);
}

wt_status chain_copies_play(chain_copies *c, const float *const *in, float *const *out, int n_frames)
{
    const size_t line = sizeof(float) * (size_t)n_frames;
    float *pinned = wt_buffer_host(c->pinned);
    for (int k = 0; k < 2; k++) memcpy(pinned + k * n_frames, in[k], line);
    wt_status status = wt_stream_copy(c->stream, c->audio, 0, c->pinned, 0, 2 * line);
    if (!status) status = wt_chain_enqueue(c->chain, c->stream, &c->job, 1);
    if (!status) status = wt_stream_copy(c->stream, c->pinned, 0, c->audio, 0, 2 * line);
    if (!status) status = wt_stream_synchronize(c->stream);
    for (int k = 0; k < 2; k++) memcpy(out[k], pinned + k * n_frames, line);
    return status;
}
