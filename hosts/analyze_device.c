// Ops on a GPU for the features of one file: each worker has a stream of its own, so that many files are in flight, one
// copied while another is computed.

#include "analyze.h"

wt_device *analyze_gpu(const analyze_signal *signal) { return signal->place ? signal->place->device : NULL; }

bool analyze_left_to_cpu(const analyze_signal *signal, wt_status status)
{
    return analyze_gpu(signal) && (status == WT_ERR_UNSUPPORTED || status == WT_ERR_NO_MEMORY);
}

wt_status analyze_queue(const analyze_signal *signal, analyze_enqueue enqueue, void *op, const float *in, size_t n_in,
                        float *out, size_t n_out)
{
    const analyze_place *place = signal->place;
    wt_buffer *from = NULL, *to = NULL;
    wt_status status = wt_buffer_create(place->device, WT_MEMORY_DEVICE, n_in * sizeof(float), &from);
    if (!status) status = wt_buffer_create(place->device, WT_MEMORY_DEVICE, n_out * sizeof(float), &to);
    if (!status) status = wt_stream_upload(place->stream, from, 0, in, n_in * sizeof(float));
    if (!status) status = enqueue(op, place->stream, from, to);
    if (!status) status = wt_stream_download(place->stream, out, to, 0, n_out * sizeof(float));
    const wt_status waited = wt_stream_synchronize(place->stream); // also after an error: `in` is borrowed until then
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
    return status ? status : waited;
}

wt_status analyze_place_open(wt_backend backend, analyze_place *place)
{
    *place = (analyze_place){.device = NULL};
    if (backend == WT_BACKEND_CPU) return WT_OK; // there the features run in the workers themselves
    wt_status status = wt_device_open(&(wt_device_config){.backend = backend}, &place->device);
    if (!status && wt_device_get_info(place->device)->backend != WT_BACKEND_CUDA) {
        wt_device_close(place->device);
        place->device = NULL;
    }
    if (place->device) status = wt_stream_create(place->device, NULL, &place->stream);
    if (status) analyze_place_close(place);
    return status;
}

void analyze_place_close(analyze_place *place)
{
    wt_stream_destroy(place->stream);
    wt_device_close(place->device);
    *place = (analyze_place){.device = NULL};
}
