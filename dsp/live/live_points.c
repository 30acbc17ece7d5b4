// Taps and inserts. The audio thread pushes and pops whole frames of interleaved rings; what costs more, changing the
// rate, is the reader's.
#include "live_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>
#include <warptone/resample.h>

enum { READ_FRAMES = 512, CHUNK_FLOATS = 4096 };

// ---- the audio thread

// Add or copy, and no more.
void wt__live_visit(void *user, int node, int at, const wt_node_io *io)
{
    live_visit *v = user;
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        for (int c = 0; v->insert_node[k] == node && v->insert_channels[k] && c < io->out_channels; c++) {
            const int from = v->insert_channels[k] == 1 ? 0 : c;
            for (int n = 0; from < v->insert_channels[k] && n < io->n_frames; n++)
                io->out[c * io->stride + n] += v->insert[k][from * v->stride + at + n];
        }
        if (v->tap_node[k] != node || !v->tap[k]) continue;
        if (v->tap_channels[k] > io->out_channels) v->tap_channels[k] = io->out_channels;
        for (int c = 0; c < v->tap_channels[k]; c++)
            memcpy(v->tap[k] + c * v->stride + at, io->out + c * io->stride, sizeof(float) * (size_t)io->n_frames);
    }
}

// Pop up to n_frames into the planes; the rest is silence.
static void pop_planes(live_point *p, int stride, int n_frames)
{
    float chunk[CHUNK_FLOATS];
    const int most = CHUNK_FLOATS / p->channels;
    int done = 0;
    for (int n; done < n_frames; done += n) {
        n = (int)(wt_ring_ready(p->ring) / (size_t)p->channels);
        if (n > n_frames - done) n = n_frames - done;
        if (n > most) n = most;
        if (n == 0) break;
        wt_ring_pop(p->ring, chunk, (size_t)(n * p->channels));
        for (int c = 0; c < p->channels; c++)
            for (int f = 0; f < n; f++) p->planes[c * stride + done + f] = chunk[f * p->channels + c];
    }
    for (int c = 0; c < p->channels; c++)
        memset(p->planes + c * stride + done, 0, sizeof(float) * (size_t)(n_frames - done));
}

static void add_planes(const live_point *p, int stride, float *const *lines, int n_lines, int n_frames)
{
    for (int c = 0; c < n_lines; c++)
        for (int n = 0; n < n_frames; n++) lines[c][n] += p->planes[c % p->channels * stride + n];
}

const float *const *wt__live_take_inserts(wt_live *live, const float *const *in, int n_frames)
{
    const float *const *heard = in;
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        live->visit.insert_channels[k] = 0;
        wt_live_insert *insert = atomic_load(&live->inserts[k]);
        if (!insert) continue;
        pop_planes(&insert->point, live->visit.stride, n_frames);
        if (insert->point.place == LIVE_AT_NODE) {
            live->visit.insert[k] = insert->point.planes;
            live->visit.insert_channels[k] = insert->point.channels;
        }
        if (insert->point.place != LIVE_AT_IN) continue;
        for (int c = 0; heard == in && c < live->lines; c++)
            memcpy(live->heard[c], in[c], sizeof(float) * (size_t)n_frames);
        heard = (const float *const *)live->heard;
        add_planes(&insert->point, live->visit.stride, live->heard, live->lines, n_frames);
    }
    for (int k = 0; k < LIVE_MAX_POINTS; k++) { // what the nodes' taps are to hear
        wt_live_tap *tap = atomic_load(&live->taps[k]);
        live->visit.tap[k] = tap ? tap->point.planes : NULL;
        live->visit.tap_channels[k] = tap ? tap->source_channels : 0;
    }
    return heard;
}

void wt__live_add_out(wt_live *live, float *const *out, int n_frames)
{
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        wt_live_insert *insert = atomic_load(&live->inserts[k]);
        if (insert && insert->point.place == LIVE_AT_OUT)
            add_planes(&insert->point, live->visit.stride, out, live->config.n_streams * wt__live_out_channels(live),
                       n_frames);
    }
}

// Interleave lines [n_lines] of `from` frames on into the tap's ring; lines that are not there are silent.
static void push_tap(wt_live_tap *tap, const float *const *lines, int n_lines, int n_frames)
{
    float chunk[CHUNK_FLOATS];
    const int channels = tap->point.channels, most = CHUNK_FLOATS / channels;
    const bool average = channels == 1 && n_lines > 1;
    for (int done = 0, n; done < n_frames; done += n) {
        n = n_frames - done < most ? n_frames - done : most;
        for (int c = 0; c < channels; c++)
            for (int f = 0; f < n; f++) chunk[f * channels + c] = c < n_lines ? lines[c][done + f] : 0;
        for (int c = 1; average && c < n_lines; c++)
            for (int f = 0; f < n; f++) chunk[f] += lines[c][done + f];
        for (int f = 0; average && f < n; f++) chunk[f] /= (float)n_lines;
        const size_t elements = (size_t)(n * channels);
        if (wt_ring_space(tap->point.ring) >= elements)
            wt_ring_push(tap->point.ring, chunk, elements);
        else
            atomic_fetch_add_explicit(&tap->lost, (unsigned)n, memory_order_relaxed);
    }
}

void wt__live_push_node_tap(wt_live *live, int k, const float *const *lines, int n_lines, int n_frames)
{
    wt_live_tap *tap = atomic_load(&live->taps[k]);
    if (tap && tap->point.place == LIVE_AT_NODE) push_tap(tap, lines, n_lines, n_frames);
}

// What the chain left in the visit's planes, or silence. A device answers later, and says what its taps heard then.
static void push_node_taps(wt_live *live, int n_frames)
{
    const float *lines[WT_MAX_CHANNELS];
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        const bool heard = live->current && live->visit.tap_node[k] >= 0 && live->visit.tap[k];
        if (heard && live->current->far) continue;
        const int n = heard ? live->visit.tap_channels[k] : 0;
        for (int c = 0; c < n; c++) lines[c] = live->visit.tap[k] + c * live->visit.stride;
        wt__live_push_node_tap(live, k, lines, n, n_frames);
    }
}

void wt__live_push_taps(wt_live *live, live_place place, const float *const *lines, int n_lines, int n_frames)
{
    if (place == LIVE_AT_NODE) {
        push_node_taps(live, n_frames);
        return;
    }
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        wt_live_tap *tap = atomic_load(&live->taps[k]);
        if (tap && tap->point.place == place) push_tap(tap, lines, n_lines, n_frames);
    }
}

// ---- workers

static int find_node(const wt_chain *chain, const char *id)
{
    for (int k = 0; k < chain->n_described; k++)
        if (!strcmp(chain->nodes[chain->described[k]].id, id)) return chain->described[k];
    return -1;
}

void wt__live_find_points(wt_live *live, live_player *player)
{
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        const wt_live_tap *tap = atomic_load(&live->taps[k]);
        const wt_live_insert *insert = atomic_load(&live->inserts[k]);
        const bool taps = tap && tap->point.place == LIVE_AT_NODE;
        const bool inserts = insert && insert->point.place == LIVE_AT_NODE;
        atomic_store(&player->tap_node[k], taps ? find_node(player->chain, tap->point.node) : -1);
        atomic_store(&player->insert_node[k], inserts ? find_node(player->chain, insert->point.node) : -1);
    }
}

static wt_status no_such_point(const wt_chain *chain, const char *point)
{
    const char *names[2 + 256] = {"in", "out"};
    int n = 2;
    for (int k = 0; chain && k < chain->n_described; k++) names[n++] = wt_chain_node_id(chain, k);
    return wt_fail(WT_ERR_NOT_FOUND, "live: no point '%s'; the nearest is '%s'", point,
                   wt_nearest_name(point, names, n));
}

static float *take_planes(int channels, int max_frames)
{
    return calloc((size_t)channels * (size_t)((max_frames + 15) & ~15), sizeof(float));
}

// Where a point is, and how many channels there are.
static wt_status locate(wt_live *live, const char *point, live_point *p, int *channels)
{
    const live_player *player = atomic_load(&live->shown);
    p->live = live;
    if (!point) return wt_fail(WT_ERR_BAD_ARG, "live: a point is NULL, want \"in\", \"out\" or a node's id");
    p->place = !strcmp(point, "in") ? LIVE_AT_IN : !strcmp(point, "out") ? LIVE_AT_OUT : LIVE_AT_NODE;
    if (p->place == LIVE_AT_IN) *channels = live->lines;
    if (p->place == LIVE_AT_OUT) *channels = live->config.n_streams * wt__live_out_channels(live);
    if (*channels > WT_MAX_CHANNELS) *channels = WT_MAX_CHANNELS;
    if (p->place != LIVE_AT_NODE) return WT_OK;
    const int node = player ? find_node(player->chain, point) : -1;
    if (node < 0) return no_such_point(player ? player->chain : NULL, point);
    *channels = player->chain->nodes[node].plan.out_channels;
    p->node = strdup(point);
    return p->node ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "live: a point's name");
}

static wt_status take_ring(live_point *p, int plane_channels, double seconds)
{
    const double frames = ceil((seconds > 0 ? seconds : 2) * atomic_load(&p->live->rate_hz));
    if (!(frames >= 1 && frames <= 1e9)) return wt_fail(WT_ERR_BAD_ARG, "live: a ring of %g s, want 0..1000", seconds);
    p->planes = take_planes(plane_channels, p->live->max_frames);
    if (!p->planes) return wt_fail(WT_ERR_NO_MEMORY, "live: a point's buffers");
    return wt_ring_create(&(wt_ring_config){.capacity = (size_t)frames * (size_t)p->channels}, &p->ring);
}

static void free_point(live_point *p)
{
    wt_ring_destroy(p->ring);
    free(p->planes);
    free(p->node);
}

static void free_tap(wt_live_tap *tap)
{
    if (!tap) return;
    free_point(&tap->point);
    wt_resample_destroy(tap->resampler);
    free(tap->frames);
    free(tap);
}

static void free_insert(wt_live_insert *insert)
{
    if (!insert) return;
    free_point(&insert->point);
    free(insert);
}

static wt_status open_tap(wt_live *live, const wt_live_tap_config *config, wt_live_tap *tap)
{
    wt_status status = locate(live, config->point, &tap->point, &tap->source_channels);
    if (status) return status;
    if (config->rate_hz < 0 || config->rate_hz > 768000)
        return wt_fail(WT_ERR_BAD_ARG, "live: a tap at %g Hz, want 1..768000, or 0", config->rate_hz);
    tap->rate_hz = config->rate_hz;
    tap->point.channels = config->mono ? 1 : tap->source_channels;
    tap->frames = calloc((size_t)tap->point.channels * 3 * READ_FRAMES, sizeof *tap->frames);
    if (!tap->frames) return wt_fail(WT_ERR_NO_MEMORY, "live: a tap's buffers");
    return take_ring(&tap->point, tap->source_channels, config->seconds);
}

wt_status wt_live_tap_open(wt_live *live, const wt_live_tap_config *config, wt_live_tap **tap)
{
    *tap = NULL;
    wt_live_tap *t = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "live: a tap's handle");
    pthread_mutex_lock(&live->mutex);
    int slot = 0;
    while (slot < LIVE_MAX_POINTS && atomic_load(&live->taps[slot])) slot++;
    wt_status status = slot == LIVE_MAX_POINTS ? wt_fail(WT_ERR_FULL, "live: %d taps are open, the most", slot)
                                               : open_tap(live, config, t);
    if (!status) {
        t->point.slot = slot;
        atomic_store(&live->taps[slot], t);
        live_player *shown = atomic_load(&live->shown);
        if (shown) wt__live_find_points(live, shown);
        *tap = t;
    }
    pthread_mutex_unlock(&live->mutex);
    if (status) free_tap(t);
    return status;
}

void wt_live_tap_close(wt_live_tap *tap)
{
    if (!tap) return;
    wt_live *live = tap->point.live;
    pthread_mutex_lock(&live->mutex);
    atomic_store(&live->taps[tap->point.slot], NULL);
    wt__live_settle(live);
    pthread_mutex_unlock(&live->mutex);
    free_tap(tap);
}

static wt_status open_insert(wt_live *live, const wt_live_insert_config *config, wt_live_insert *insert)
{
    int channels = 0;
    wt_status status = locate(live, config->point, &insert->point, &channels);
    if (status) return status;
    if (config->channels != 1 && config->channels != channels)
        return wt_fail(WT_ERR_BAD_ARG, "live: an insert of %d channels at '%s', want 1 or %d", config->channels,
                       config->point, channels);
    insert->point.channels = config->channels;
    return take_ring(&insert->point, config->channels, config->seconds);
}

wt_status wt_live_insert_open(wt_live *live, const wt_live_insert_config *config, wt_live_insert **insert)
{
    *insert = NULL;
    wt_live_insert *i = calloc(1, sizeof *i);
    if (!i) return wt_fail(WT_ERR_NO_MEMORY, "live: an insert's handle");
    pthread_mutex_lock(&live->mutex);
    int slot = 0;
    while (slot < LIVE_MAX_POINTS && atomic_load(&live->inserts[slot])) slot++;
    wt_status status = slot == LIVE_MAX_POINTS ? wt_fail(WT_ERR_FULL, "live: %d inserts are open, the most", slot)
                                               : open_insert(live, config, i);
    if (!status) {
        i->point.slot = slot;
        atomic_store(&live->inserts[slot], i);
        live_player *shown = atomic_load(&live->shown);
        if (shown) wt__live_find_points(live, shown);
        *insert = i;
    }
    pthread_mutex_unlock(&live->mutex);
    if (status) free_insert(i);
    return status;
}

void wt_live_insert_close(wt_live_insert *insert)
{
    if (!insert) return;
    wt_live *live = insert->point.live;
    pthread_mutex_lock(&live->mutex);
    atomic_store(&live->inserts[insert->point.slot], NULL);
    wt__live_settle(live);
    pthread_mutex_unlock(&live->mutex);
    free_insert(insert);
}

wt_status wt__live_resize_points(wt_live *live, int max_frames)
{
    float *planes[2 * LIVE_MAX_POINTS] = {NULL};
    live_point *points[2 * LIVE_MAX_POINTS] = {NULL};
    wt_status status = WT_OK;
    for (int k = 0; k < 2 * LIVE_MAX_POINTS && !status; k++) {
        wt_live_tap *tap = k < LIVE_MAX_POINTS ? atomic_load(&live->taps[k]) : NULL;
        wt_live_insert *insert = k < LIVE_MAX_POINTS ? NULL : atomic_load(&live->inserts[k - LIVE_MAX_POINTS]);
        points[k] = tap ? &tap->point : insert ? &insert->point : NULL;
        if (!points[k]) continue;
        planes[k] = take_planes(tap ? tap->source_channels : insert->point.channels, max_frames);
        if (!planes[k]) status = wt_fail(WT_ERR_NO_MEMORY, "live: a point's buffers");
    }
    for (int k = 0; k < 2 * LIVE_MAX_POINTS; k++) {
        if (!points[k]) continue;
        float *unused = status ? planes[k] : points[k]->planes;
        if (!status) points[k]->planes = planes[k];
        free(unused);
    }
    return status;
}

void wt__live_close_points(wt_live *live)
{
    for (int k = 0; k < LIVE_MAX_POINTS; k++) {
        free_tap(atomic_load(&live->taps[k]));
        free_insert(atomic_load(&live->inserts[k]));
    }
}

// ---- reader and writer

int wt_live_tap_channels(const wt_live_tap *tap) { return tap->point.channels; }

// The resampler for the live rate as it is now; false where there is none.
static bool follow_rate(wt_live_tap *tap)
{
    const double live_hz = atomic_load(&tap->point.live->rate_hz);
    if (tap->rate_hz == 0 || rint(tap->rate_hz) == rint(live_hz)) return false;
    if (tap->resampled_hz == live_hz) return tap->resampler;
    wt_resample_destroy(tap->resampler);
    tap->resampler = NULL;
    tap->resampled_hz = live_hz;
    tap->n_waiting = 0;
    const wt_resample_config config = {.in_hz = (int)rint(live_hz),
                                       .out_hz = (int)rint(tap->rate_hz),
                                       .channels = tap->point.channels,
                                       .quality = WT_RESAMPLE_FAST};
    return wt_resample_create(&config, &tap->resampler) == WT_OK;
}

// Frames waiting to be resampled: [channels][READ_FRAMES] behind the interleaved ones.
static void refill(wt_live_tap *tap, float *waiting)
{
    const int channels = tap->point.channels;
    size_t n = wt_ring_ready(tap->point.ring) / (size_t)channels;
    if (n > (size_t)(READ_FRAMES - tap->n_waiting)) n = (size_t)(READ_FRAMES - tap->n_waiting);
    wt_ring_pop(tap->point.ring, tap->frames, n * (size_t)channels);
    for (int c = 0; c < channels; c++)
        for (size_t f = 0; f < n; f++)
            waiting[(size_t)c * READ_FRAMES + (size_t)tap->n_waiting + f] =
                tap->frames[f * (size_t)channels + (size_t)c];
    tap->n_waiting += (int)n;
}

static int read_resampled(wt_live_tap *tap, float *frames, int n_frames)
{
    const int channels = tap->point.channels;
    float *waiting = tap->frames + channels * READ_FRAMES, *made = waiting + channels * READ_FRAMES;
    const float *in[WT_MAX_CHANNELS];
    float *out[WT_MAX_CHANNELS];
    int done = 0, n_used = 1, n_out = 1;
    while (done < n_frames && (n_used || n_out)) {
        refill(tap, waiting);
        for (int c = 0; c < channels; c++) in[c] = waiting + c * READ_FRAMES, out[c] = made + c * READ_FRAMES;
        const int room = n_frames - done < READ_FRAMES ? n_frames - done : READ_FRAMES;
        wt_resample_process(tap->resampler, in, tap->n_waiting, &n_used, out, room, &n_out);
        tap->n_waiting -= n_used;
        for (int c = 0; c < channels; c++) {
            memmove(waiting + c * READ_FRAMES, waiting + c * READ_FRAMES + n_used,
                    sizeof(float) * (size_t)tap->n_waiting);
            for (int f = 0; f < n_out; f++) frames[(done + f) * channels + c] = out[c][f];
        }
        done += n_out;
    }
    return done;
}

int wt_live_tap_read(wt_live_tap *tap, float *frames, int n_frames, uint64_t *lost)
{
    const uint64_t lost_ever = atomic_load_explicit(&tap->lost, memory_order_relaxed);
    if (lost) *lost = lost_ever - tap->lost_told;
    if (lost) tap->lost_told = lost_ever;
    if (n_frames < 1) return 0;
    if (follow_rate(tap)) return read_resampled(tap, frames, n_frames);
    size_t n = wt_ring_ready(tap->point.ring) / (size_t)tap->point.channels;
    if (n > (size_t)n_frames) n = (size_t)n_frames;
    return (int)(wt_ring_pop(tap->point.ring, frames, n * (size_t)tap->point.channels) / (size_t)tap->point.channels);
}

int wt_live_insert_write(wt_live_insert *insert, const float *frames, int n_frames)
{
    const size_t channels = (size_t)insert->point.channels;
    size_t n = wt_ring_space(insert->point.ring) / channels;
    if (n_frames < 1) return 0;
    if (n > (size_t)n_frames) n = (size_t)n_frames;
    return (int)(wt_ring_push(insert->point.ring, frames, n * channels) / channels);
}
