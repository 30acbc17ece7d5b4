// Features on a GPU: many signals of one length at a launch. Each place has a stream of its own, so that one batch is
// copied while another is computed, and keeps its plans and memory from batch to batch. What a GPU has not, or refuses,
// the worker's thread computes from the same samples, copied back.

#include "analyze_gpu.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>
#include <warptone/clock.h>
#include <warptone/pcm.h>

// ---- the place

const char *analyze_stage_name(analyze_stage stage)
{
    static const char *const names[] = {"idle",  "look",    "open", "read", "memory",
                                        "plans", "compute", "wait", "give", "write"};
    return names[stage];
}

analyze_stage analyze_enter(analyze_clock *clock, analyze_stage stage)
{
    const analyze_stage before = clock->stage;
    const int64_t now_ns = wt_clock_now_ns(NULL);
    clock->spent_ns[before] += now_ns - clock->since_ns;
    clock->stage = stage, clock->since_ns = now_ns;
    return before;
}

analyze_clock analyze_clock_start(void)
{
    return (analyze_clock){.stage = ANALYZE_IDLE, .since_ns = wt_clock_now_ns(NULL)};
}

void analyze_clock_stop(analyze_clock *clock, analyze_times *times)
{
    analyze_enter(clock, clock->stage);
    for (int k = 0; k < ANALYZE_STAGES; k++) atomic_fetch_add(&times->ns[k], clock->spent_ns[k]);
}

wt_status analyze_place_open(wt_backend backend, analyze_place *place)
{
    *place = (analyze_place){.device = NULL, .clock = place->clock};
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
    for (int k = 0; k < ANALYZE_ROOMS; k++) wt_buffer_destroy(place->rooms[k]);
    wt_buffer_destroy(place->packed);
    wt_buffer_destroy(place->pcm);
    wt_buffer_destroy(place->read);
    wt_buffer_destroy(place->fetched);
    analyze_let_go(place->mapped, place->mapped_bytes);
    wt_stream_destroy(place->stream);
    wt_device_close(place->device);
    *place = (analyze_place){.device = NULL, .clock = place->clock};
}

wt_status analyze_grow(analyze_place *place, wt_memory memory, size_t bytes, wt_buffer **buffer)
{
    if (*buffer && wt_buffer_size_bytes(*buffer) >= bytes) return WT_OK;
    const analyze_stage before = analyze_enter(place->clock, ANALYZE_MEMORY);
    wt_buffer_destroy(*buffer);
    *buffer = NULL;
    wt_status status = wt_buffer_create(place->device, memory, bytes, buffer);
    analyze_enter(place->clock, before);
    return status;
}

static bool same_shape(const struct analyze_kept *a, const struct analyze_kept *b)
{
    const analyze_packed *x = &a->packed, *y = &b->packed;
    return a->destroy == b->destroy && a->variant == b->variant && a->rate_hz == b->rate_hz &&
           a->n_signals == b->n_signals && a->n == b->n && x->integers == y->integers && x->rate_hz == y->rate_hz &&
           x->channels == y->channels && x->n == y->n;
}

wt_status analyze_kept_plan(const analyze_batch *batch, const analyze_maker *maker, int variant, void **plan)
{
    const analyze_signal *s = &batch->signal;
    analyze_place *p = s->place;
    struct analyze_kept found = {NULL, maker->destroy, variant, s->rate_hz, batch->n_signals, s->n, batch->packed};
    int at = 0;
    while (at < p->n_kept && !same_shape(&p->kept[at], &found)) at++;
    if (at == p->n_kept) {
        const analyze_stage before = analyze_enter(p->clock, ANALYZE_PLANS);
        wt_status status = maker->create(batch, variant, &found.plan);
        analyze_enter(p->clock, before);
        if (!status && at == ANALYZE_MAX_KEPT) status = wt_stream_synchronize(p->stream); // it may be at work
        if (status) {
            if (found.plan) maker->destroy(found.plan);
            return status;
        }
        if (at == ANALYZE_MAX_KEPT)
            p->kept[at = 0].destroy(p->kept[0].plan); // the one not used for longest
        else
            p->n_kept++;
    } else {
        found = p->kept[at];
    }
    memmove(p->kept + at, p->kept + at + 1, sizeof *p->kept * (size_t)(p->n_kept - 1 - at));
    p->kept[p->n_kept - 1] = found;
    *plan = found.plan;
    return WT_OK;
}

wt_status analyze_room(const analyze_batch *batch, int k, size_t bytes, wt_buffer **room)
{
    analyze_place *p = batch->signal.place;
    wt_status status = analyze_grow(p, WT_MEMORY_DEVICE, bytes, &p->rooms[k]);
    *room = p->rooms[k];
    return status;
}

static wt_status map_fetched(analyze_place *p, size_t bytes)
{
    if (p->mapped && p->mapped_bytes >= bytes) return WT_OK;
    analyze_let_go(p->mapped, p->mapped_bytes);
    p->mapped = NULL;
    p->mapped_bytes = bytes;
    return analyze_map(bytes, "what a GPU gives back", &p->mapped);
}

wt_status analyze_fetch(const analyze_batch *batch, const wt_buffer *from, size_t bytes, const void **data)
{
    analyze_place *p = batch->signal.place;
    wt_status status = p->maps ? map_fetched(p, bytes) : analyze_grow(p, WT_MEMORY_PINNED, bytes, &p->fetched);
    void *to = status ? NULL : p->maps ? p->mapped : wt_buffer_host(p->fetched);
    if (!status) status = wt_stream_download(p->stream, to, from, 0, bytes);
    const analyze_stage before = analyze_enter(p->clock, ANALYZE_WAIT);
    if (!status) status = wt_stream_synchronize(p->stream);
    analyze_enter(p->clock, before);
    *data = status ? NULL : to;
    return status;
}

wt_status analyze_turn_on_host(const analyze_batch *b, const char *name, const wt_buffer *from, int64_t rows,
                               int64_t columns, void (*change)(float *x, int64_t count), wt_buffer *to)
{
    const int64_t area = rows * columns, count = b->n_signals * area;
    const size_t bytes = sizeof(float) * (size_t)count;
    wt_stream *stream = b->signal.place->stream;
    const void *data;
    size_t mapped;
    void *memory;
    wt_status status = analyze_take(b->signal.maps, bytes, name, &memory, &mapped);
    if (status) return status;
    float *x = memory;
    status = analyze_fetch(b, from, bytes, &data);
    for (int64_t at = 0; at < count && !status; at += area)
        analyze_turn((const float *)data + at, rows, columns, 1, x + at);
    if (!status && change) change(x, count);
    if (!status) status = wt_stream_upload(stream, to, 0, x, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    analyze_let_go(memory, mapped);
    return status;
}

static wt_status make_pcm(const analyze_batch *b, int fold, void **plan)
{
    const analyze_packed *f = &b->packed;
    const wt_pcm_plan_config config = {f->integers ? WT_PCM_S16 : WT_PCM_F32, f->channels, f->n,
                                       b->n_signals / b->channels, fold};
    return wt_pcm_plan_create(b->signal.place->device, &config, (wt_pcm_plan **)plan);
}

static void destroy_pcm(void *plan) { wt_pcm_plan_destroy(plan); }

const analyze_maker analyze_pcm_maker = {make_pcm, destroy_pcm};

// ---- each signal's own part

wt_status analyze_give(const analyze_batch *b, analyze_result *parts, const analyze_array *like, const void *data,
                       int64_t n_rows, int64_t n_made, bool turned)
{
    const size_t item = analyze_item_bytes(like->type), area = (size_t)(n_rows * n_made) * item;
    const analyze_stage before = analyze_enter(b->signal.place->clock, ANALYZE_GIVE);
    wt_status status = WT_OK;
    for (int k = 0; k < b->n_used && !status; k++) {
        const char *from = (const char *)data + (size_t)k * area;
        const int64_t n_own = b->lengths ? analyze_frames(b->signal.options, b->lengths[k]) : n_made;
        void *to;
        status = analyze_add(&parts[k], like, n_rows, n_own, &to);
        if (status) break;
        if (turned) analyze_turn((const float *)from, n_own, n_rows, (int)(item / sizeof(float)), to);
        for (int64_t row = 0; row < n_rows && !turned; row++)
            memcpy((char *)to + (size_t)(row * n_own) * item, from + (size_t)(row * n_made) * item,
                   (size_t)n_own * item);
    }
    analyze_enter(b->signal.place->clock, before);
    return status;
}

// ---- all features

static analyze_signal signal_of(const analyze_batch *b, int k)
{
    analyze_signal s = b->signal;
    s.place = NULL;
    s.path = b->paths[k / b->channels];
    s.pcm = b->host + k * b->signal.n;
    s.stride = b->signal.n; // not the tile's, from which it was sent
    if (b->lengths) s.n = b->lengths[k];
    s.whole = b->whole ? b->whole + k : NULL;
    return s;
}

/// The channels of the file that begins with signal k.
static wt_status compute_file(const analyze_batch *b, const analyze_feature *feature, const analyze_signal *s, int k,
                              analyze_result *parts)
{
    const analyze_batch one = {.signal = *s,
                               .n_used = b->channels,
                               .n_signals = b->channels,
                               .channels = b->channels,
                               .whole = s->whole,
                               .paths = &s->path};
    return analyze_compute_batch(feature, &one, parts + k);
}

/// A feature on the calling thread.
static wt_status compute_here(analyze_batch *b, const analyze_feature *feature, analyze_result *parts)
{
    const size_t bytes = sizeof(float) * (size_t)b->n_used * (size_t)b->signal.n;
    wt_status status = WT_OK;
    if (!b->host) {
        const void *pcm;
        status = analyze_fetch(b, b->signal.place->pcm, bytes, &pcm);
        if (!status && !(b->host = malloc(bytes)))
            status = wt_fail(WT_ERR_NO_MEMORY, "%s: %d signals", feature->name, b->n_used);
        if (!status) memcpy(b->host, pcm, bytes);
    }
    const int step = feature->tiles == ANALYZE_OF_FILE || !feature->compute ? b->channels : 1;
    for (int k = 0; k < b->n_used && !status; k += step) {
        const analyze_signal s = signal_of(b, k);
        status = feature->compute ? feature->compute(&s, &parts[k]) : compute_file(b, feature, &s, k, parts);
    }
    return status;
}

static wt_status make_feature(analyze_batch *b, const analyze_feature *feature, analyze_result *parts)
{
    wt_status status = analyze_compute_batch(feature, b, parts);
    if (status != WT_ERR_UNSUPPORTED && status != WT_ERR_NO_MEMORY) return status;
    const wt_status waited = wt_stream_synchronize(b->signal.place->stream); // what was queued of it
    for (int k = 0; k < b->n_used; k++) analyze_result_free(&parts[k]);
    return waited ? waited : compute_here(b, feature, parts);
}

static wt_status compute_feature(analyze_batch *b, const analyze_feature *feature, analyze_result *parts)
{
    wt_status status = make_feature(b, feature->of ? feature->of : feature, parts);
    for (int k = 0; k < b->n_used && feature->of && !status; k++)
        status = analyze_differentiate(b->signal.options, feature, &parts[k], 0);
    return status;
}

wt_status analyze_batch_compute(analyze_batch *b, analyze_result *results)
{
    const analyze_options *o = b->signal.options;
    wt_status status = WT_OK;
    analyze_result *parts = calloc((size_t)b->n_used, sizeof *parts);
    if (!parts) return wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays of %d signals", b->n_used);
    for (int f = 0; f < o->n_features && !status; f++) {
        for (int k = 0; k < b->n_used; k++) parts[k] = (analyze_result){.n_arrays = 0};
        status = compute_feature(b, o->features[f], parts);
        for (int k = 0; k < b->n_used; k += b->channels) {
            if (!status) status = analyze_join(o->features[f], parts + k, b->channels, &results[k / b->channels]);
            for (int c = 0; c < b->channels; c++) analyze_result_free(&parts[k + c]);
        }
    }
    if (status) { // an error that is told later hides none, and buffers are not let go while they are used
        const wt_status waited = wt_stream_synchronize(b->signal.place->stream);
        (void)waited;
    }
    free(b->host);
    free(parts);
    b->host = NULL;
    return status;
}

int64_t analyze_shared_length(int64_t n)
{
    int64_t step = 4096;
    while (step * 8 < n) step *= 2;
    return (n + step - 1) / step * step;
}

bool analyze_any_length(const analyze_options *options)
{
    if (options->padding != WT_STFT_PAD_ZERO || options->no_center) return false; // silence that follows is no padding
    for (int k = 0; k < options->n_features; k++)
        if (!options->features[k]->any_length) return false;
    return true;
}

/// A signal's channels as a batch, `n` samples each, in place->pcm.
static wt_status put_in_place(const analyze_signal *signal, int channels, int64_t n, int64_t *lengths,
                              analyze_batch *batch)
{
    analyze_place *p = signal->place;
    const size_t given = sizeof(float) * (size_t)signal->n, taken = sizeof(float) * (size_t)n;
    *batch = (analyze_batch){.signal = *signal,
                             .n_used = channels,
                             .n_signals = channels,
                             .channels = channels,
                             .whole = signal->whole,
                             .paths = &signal->path};
    batch->signal.n = n;
    if (n > signal->n) batch->lengths = lengths;
    wt_status status = analyze_grow(p, WT_MEMORY_DEVICE, taken * (size_t)channels, &p->pcm);
    for (int c = 0; c < channels && !status; c++) {
        const float *pcm = signal->pcm + c * (signal->stride ? signal->stride : signal->n);
        lengths[c] = signal->n;
        status = wt_stream_upload(p->stream, p->pcm, (size_t)c * taken, pcm, given);
        if (!status && taken > given)
            status = wt_stream_fill(p->stream, p->pcm, (size_t)c * taken + given, 0, taken - given);
    }
    return status;
}

wt_status analyze_compute_on_gpu(const analyze_signal *signal, int channels, analyze_result *result)
{
    const bool any = !signal->whole && analyze_any_length(signal->options); // tiles have one length anyway
    const int64_t n = any ? analyze_shared_length(signal->n) : signal->n;
    int64_t lengths[WT_AUDIO_MAX_CHANNELS];
    analyze_batch b;
    wt_status status = put_in_place(signal, channels, n, lengths, &b);
    return status ? status : analyze_batch_compute(&b, result);
}

wt_status analyze_feature_on_gpu(const analyze_signal *signal, const analyze_feature *feature, analyze_result *result)
{
    int64_t length;
    analyze_batch b;
    wt_status status = put_in_place(signal, 1, signal->n, &length, &b);
    if (!status) status = analyze_compute_batch(feature->of ? feature->of : feature, &b, result);
    if (!status && feature->of) status = analyze_differentiate(signal->options, feature, result, 0);
    if (!status) return WT_OK;
    analyze_result_free(result);
    const wt_status waited = wt_stream_synchronize(signal->place->stream);
    return waited ? waited : status;
}
