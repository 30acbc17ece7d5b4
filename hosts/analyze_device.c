// Ops on a GPU for the features of one file: each worker has a stream of its own, so that many files are in flight, one
// copied while another is computed. A worker keeps its plans and buffers from file to file; files of many lengths share
// the plans of a few.

#include "analyze.h"

#include <string.h>

wt_device *analyze_gpu(const analyze_signal *signal) { return signal->place ? signal->place->device : NULL; }

bool analyze_left_to_cpu(const analyze_signal *signal, wt_status status)
{
    return analyze_gpu(signal) && (status == WT_ERR_UNSUPPORTED || status == WT_ERR_NO_MEMORY);
}

/// A buffer of at least so many bytes; what lay in a smaller one is lost.
static wt_status grow(wt_device *device, size_t bytes, wt_buffer **buffer)
{
    if (*buffer && wt_buffer_size_bytes(*buffer) >= bytes) return WT_OK;
    wt_buffer_destroy(*buffer);
    *buffer = NULL;
    return wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, buffer);
}

wt_status analyze_run_flow(const analyze_signal *signal, analyze_enqueue enqueue, void *op, const analyze_flow *f)
{
    analyze_place *p = signal->place;
    const size_t given = f->n_in * sizeof(float), taken = f->n_taken * sizeof(float);
    wt_status status = grow(p->device, taken, &p->from);
    if (!status) status = grow(p->device, f->n_made * sizeof(float), &p->to);
    if (!status) status = wt_stream_upload(p->stream, p->from, 0, f->in, given);
    if (!status && taken > given) status = wt_stream_fill(p->stream, p->from, given, 0, taken - given);
    if (!status) status = enqueue(op, p->stream, p->from, p->to);
    if (!status) status = wt_stream_download(p->stream, f->out, p->to, 0, f->n_out * sizeof(float));
    const wt_status waited = wt_stream_synchronize(p->stream); // also after an error: `in` is borrowed until then
    return status ? status : waited;
}

wt_status analyze_queue(const analyze_signal *signal, analyze_enqueue enqueue, void *op, const float *in, size_t n_in,
                        float *out, size_t n_out)
{
    const analyze_flow flow = {in, n_in, n_in, out, n_out, n_out};
    return analyze_run_flow(signal, enqueue, op, &flow);
}

// ---- plans

int64_t analyze_shared_length(int64_t n)
{
    int64_t step = 4096;
    while (step * 8 < n) step *= 2;
    return (n + step - 1) / step * step;
}

wt_status analyze_kept_plan(const analyze_signal *signal, const analyze_maker *maker, int variant, int64_t n,
                            void **plan)
{
    analyze_place *p = signal->place;
    for (int k = 0; k < p->n_kept; k++) {
        const struct analyze_kept *kept = &p->kept[k];
        *plan = kept->plan;
        if (kept->destroy == maker->destroy && kept->variant == variant && kept->n == n) return WT_OK;
    }
    wt_status status = maker->create(signal, variant, n, plan);
    if (status) return status;
    if (p->n_kept == ANALYZE_MAX_KEPT) { // the oldest goes
        p->kept[0].destroy(p->kept[0].plan);
        memmove(p->kept, p->kept + 1, sizeof p->kept - sizeof *p->kept);
        p->n_kept--;
    }
    p->kept[p->n_kept++] = (struct analyze_kept){*plan, maker->destroy, variant, n};
    return WT_OK;
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
    for (int k = 0; k < place->n_kept; k++) place->kept[k].destroy(place->kept[k].plan);
    wt_buffer_destroy(place->from);
    wt_buffer_destroy(place->to);
    wt_stream_destroy(place->stream);
    wt_device_close(place->device);
    *place = (analyze_place){.device = NULL};
}
