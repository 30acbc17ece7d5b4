// Signals through an op with a state, from block to block: whole ones, a batch of them, or a file's tiles one behind
// the other. On a GPU and on the calling thread it is the same op on a stream, here of a CPU's device with one thread;
// every cut into blocks gives the same bits.
//
// An op that is late is given what lies behind the samples that are wanted, in a tile from its frames beside its own,
// at the signal's end silence.

#include "analyze_flow.h"
#include "analyze_tiles.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 1 << 15,          // frames that the calling thread does at once
    BLOCK_OF_GPU = 1 << 20,   // of a line
    SAMPLES_OF_GPU = 1 << 24, // of all lines
};

void analyze_flow_destroy(analyze_flow *f)
{
    if (!f) return;
    if (f->op) f->kind->destroy(f->op);
    wt_buffer_destroy(f->in);
    wt_buffer_destroy(f->out);
    wt_buffer_destroy(f->beside);
    analyze_source_close(f->playback);
    if (f->own) {
        wt_stream_destroy(f->stream);
        wt_device_close(f->own);
    }
    free(f);
}

static wt_status open_device(analyze_flow *f, const analyze_place *place)
{
    if (place) {
        f->device = place->device, f->stream = place->stream;
        return WT_OK;
    }
    wt_status status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &f->own);
    if (!status) status = wt_stream_create(f->own, NULL, &f->stream);
    f->device = f->own;
    return status;
}

static wt_status prepare(analyze_flow *f, const analyze_place *place)
{
    f->most = place ? SAMPLES_OF_GPU / f->n_lines : BLOCK;
    if (f->most > BLOCK_OF_GPU) f->most = BLOCK_OF_GPU;
    const size_t bytes = sizeof(float) * (size_t)f->n_lines * (size_t)f->most;
    wt_status status = open_device(f, place);
    if (!status) status = f->kind->create(f);
    if (!status && f->kind->latency) f->latency = f->kind->latency(f);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, bytes, &f->in);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, bytes, &f->out);
    if (!status) status = wt_buffer_create(f->device, WT_MEMORY_DEVICE, bytes, &f->beside);
    return status;
}

static wt_status flow_create(const analyze_signal *s, const analyze_place *place, analyze_flow_id id, int n_lines,
                             int channels, analyze_flow **flow)
{
    analyze_flow *f = *flow = calloc(1, sizeof *f);
    if (!f) return wt_fail(WT_ERR_NO_MEMORY, "%s: state", analyze_flow_kinds[id].like->name);
    f->kind = &analyze_flow_kinds[id];
    f->options = *s->options, f->rate_hz = s->rate_hz;
    f->n_lines = n_lines, f->channels = f->kind->together ? channels : 1;
    wt_status status = prepare(f, place);
    if (!status) return WT_OK;
    analyze_flow_destroy(f);
    *flow = NULL;
    return status;
}

int64_t analyze_flow_reach(const analyze_signal *s, analyze_flow_id id)
{
    analyze_flow *f;
    if (!analyze_flow_kinds[id].latency) return 0;
    if (flow_create(s, NULL, id, 1, 1, &f)) return 0; // what is wrong is told when the feature is made
    const int64_t latency = f->latency;
    analyze_flow_destroy(f);
    return latency;
}

// ---- blocks

/// Frames n_given .. n_given + n of each line into flow->in, from a tile that begins at `begin`; silence behind its
/// end.
static wt_status take(const analyze_flow *f, const analyze_batch *b, int64_t begin, int n)
{
    const int64_t at = f->n_given - begin, left = b->signal.n - at;
    const int64_t stride = b->signal.stride ? b->signal.stride : b->signal.n;
    const size_t line = sizeof(float) * (size_t)n, there = sizeof(float) * (size_t)(left < 0 ? 0 : left < n ? left : n);
    wt_status status = WT_OK;
    for (int k = 0; k < f->n_lines && !status; k++) {
        const size_t to = (size_t)k * line;
        if (!there) {
        } else if (f->own) {
            memcpy((char *)wt_buffer_host(f->in) + to, b->signal.pcm + k * stride + at, there);
        } else {
            status = wt_stream_copy(f->stream, f->in, to, b->signal.place->pcm,
                                    sizeof(float) * (size_t)(k * b->signal.n + at), there);
        }
        if (!status && there < line) status = wt_stream_fill(f->stream, f->in, to + there, 0, line - there);
    }
    return status;
}

/// The block's outputs, of the signal from `first` on: those from 0 on belong to it.
static wt_status give(const analyze_flow *f, const analyze_batch *b, int64_t begin, int64_t first, int n,
                      const analyze_result *parts)
{
    const size_t bytes = sizeof(float) * (size_t)f->n_lines * (size_t)n;
    const int64_t skip = first < 0 ? -first : 0;
    const void *data = wt_buffer_host(f->out);
    if (skip >= n) return f->own ? wt_stream_synchronize(f->stream) : WT_OK;
    wt_status status = f->own ? wt_stream_synchronize(f->stream) : analyze_fetch(b, f->out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        float *own = parts[k].arrays[parts[k].n_arrays - 1].data;
        memcpy(own + (first + skip - begin), (const float *)data + (int64_t)k * n + skip,
               sizeof *own * (size_t)(n - skip));
    }
    return status;
}

/// The tile's own samples; of a whole signal all.
static wt_status run(analyze_flow *f, const analyze_batch *b, const analyze_result *parts)
{
    const analyze_whole *w = b->whole;
    const int64_t hop = analyze_hop(&f->options), begin = w ? w->begin : 0;
    const int64_t end = w && w->count >= 0 ? begin + (w->from + w->count) * hop : begin + b->signal.n;
    wt_status status = WT_OK;
    while (f->n_given < end + f->latency && !status) {
        const int64_t left = end + f->latency - f->n_given, first = f->n_given - f->latency;
        const int n = left < f->most ? (int)left : f->most;
        status = take(f, b, begin, n);
        if (!status && f->n_given == 0 && f->kind->begin) status = f->kind->begin(f, b, n);
        if (!status) status = f->kind->enqueue(f, n);
        if (!status) status = give(f, b, begin, first, n, parts);
        f->n_given += n;
    }
    return status;
}

wt_status analyze_flow_read(const analyze_flow *f, const char *path, int channels, int64_t from, int64_t n, float *out,
                            int64_t *n_there)
{
    analyze_options options = f->options;
    analyze_source *source;
    int64_t n_got = 1;
    options.rate_hz = f->rate_hz, options.keep_channels = channels > 1;
    wt_status status = analyze_source_open(&options, path, &source);
    if (status) return status;
    for (int64_t t = 0; t < from && n_got && !status; t += n_got) // what lies before, into the same room
        status = analyze_source_read(source, out, n, from - t < n ? from - t : n, &n_got);
    if (!status) status = analyze_source_read(source, out, n, n, n_there);
    for (int c = 0; c < channels && !status; c++)
        memset(out + c * n + *n_there, 0, sizeof *out * (size_t)(n - *n_there));
    analyze_source_close(source);
    return status;
}

// ---- the feature

static wt_status make_flow(const analyze_batch *b, int id, void **flow)
{
    return flow_create(&b->signal, b->signal.place, (analyze_flow_id)id, b->n_signals, b->channels,
                       (analyze_flow **)flow);
}

static void destroy_flow(void *flow) { analyze_flow_destroy(flow); }

/// A tile's goes on from the tile before, wherever that was.
static wt_status flow_of_tile(const analyze_batch *b, analyze_flow_id id, analyze_flow **flow)
{
    analyze_flow **kept = &b->whole->flows[id];
    wt_status status = *kept ? WT_OK : make_flow(b, (int)id, (void **)kept);
    *flow = *kept;
    if (!status && b->signal.place && (*kept)->own) return wt_fail(WT_ERR_UNSUPPORTED, "the thread has begun it");
    return status;
}

static wt_status restart(analyze_flow *f)
{
    f->n_given = 0;
    return f->kind->reset(f);
}

wt_status analyze_flow_through(const analyze_batch *b, analyze_flow_id id, analyze_result *parts)
{
    analyze_flow *flow = NULL;
    void *kept = NULL, *data;
    wt_status status = WT_OK;
    if (b->whole) {
        status = flow_of_tile(b, id, &flow);
    } else if (b->signal.place) {
        status = analyze_kept_plan(b, &(analyze_maker){make_flow, destroy_flow}, (int)id, &kept);
        if (!status) status = restart(flow = kept);
    } else {
        status = make_flow(b, (int)id, (void **)&flow);
    }
    for (int k = 0; k < b->n_used && !status; k++)
        status = analyze_add(&parts[k], analyze_flow_kinds[id].like, 1, b->signal.n, &data);
    if (!status) status = run(flow, b, parts);
    if (!b->whole && !b->signal.place) analyze_flow_destroy(flow);
    return status;
}
