#include "live_record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/audio_file.h>

enum { READ_FRAMES = 1024, RING_SECONDS = 10, PAUSE_NS = 20000000 };

typedef struct track {
    wt_live_tap *tap;
    wt_audio_writer *writer; ///< NULL = ended
    int channels;
} track;

struct live_record {
    track tracks[2];
    float *interleaved, *planar; ///< READ_FRAMES of WT_AUDIO_MAX_CHANNELS each
    pthread_t thread;
    atomic_bool stop;
    atomic_ullong n_frames, n_lost;
    atomic_bool failed; ///< release after `sentence` was written
    char sentence[256];
};

/// After a write that failed: what came before it is kept.
static void end_track(live_record *r, track *t)
{
    const wt_status status = wt_audio_writer_commit(t->writer); // says what failed
    t->writer = NULL;
    if (!status || atomic_load(&r->failed)) return;
    snprintf(r->sentence, sizeof r->sentence, "%.255s", wt_last_error());
    atomic_store(&r->failed, true);
}

/// Move all that is ready of one track; false when there was nothing.
static bool move(live_record *r, track *t)
{
    uint64_t lost = 0;
    int n = t->tap ? wt_live_tap_read(t->tap, r->interleaved, READ_FRAMES, &lost) : 0;
    atomic_fetch_add(&r->n_lost, lost);
    if (!n || !t->writer) return n > 0;
    for (int c = 0; c < t->channels; c++)
        for (int k = 0; k < n; k++) r->planar[c * READ_FRAMES + k] = r->interleaved[k * t->channels + c];
    if (wt_audio_writer_write(t->writer, r->planar, n, READ_FRAMES))
        end_track(r, t);
    else
        atomic_fetch_add(&r->n_frames, (unsigned)n);
    return true;
}

static void *run(void *user)
{
    live_record *r = user;
    for (;;) {
        bool last = atomic_load(&r->stop), some = false;
        for (int k = 0; k < 2; k++) some |= move(r, &r->tracks[k]);
        if (!some && last) return NULL;
        if (!some) nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
}

static wt_status open_track(track *t, const live_record_config *config, const char *point, const char *path)
{
    if (!path) return WT_OK;
    const wt_live_tap_config tap = {.point = point, .seconds = RING_SECONDS, .rate_hz = config->rate_hz};
    wt_status status = wt_live_tap_open(config->live, &tap, &t->tap);
    if (status) return status;
    t->channels = wt_live_tap_channels(t->tap);
    const wt_audio_writer_config file = {.rate_hz = config->rate_hz, .channels = t->channels, .recording = true};
    return wt_audio_writer_open(path, &file, &t->writer);
}

static wt_status close_track(track *t, wt_status status)
{
    wt_live_tap_close(t->tap);
    if (status || !t->writer) {
        wt_audio_writer_discard(t->writer);
        return status;
    }
    return wt_audio_writer_commit(t->writer);
}

wt_status live_record_open(const live_record_config *config, live_record **record)
{
    live_record *r = calloc(1, sizeof *r);
    *record = NULL;
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "live: recording");
    const size_t floats = (size_t)READ_FRAMES * WT_AUDIO_MAX_CHANNELS;
    r->interleaved = malloc(sizeof(float) * floats);
    r->planar = malloc(sizeof(float) * floats);
    wt_status status = r->interleaved && r->planar ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "live: recording");
    if (!status) status = open_track(&r->tracks[0], config, "in", config->in_path);
    if (!status) status = open_track(&r->tracks[1], config, "out", config->out_path);
    if (!status && pthread_create(&r->thread, NULL, run, r)) status = wt_fail(WT_ERR_NO_MEMORY, "live: thread");
    if (!status) {
        *record = r;
        return WT_OK;
    }
    for (int k = 0; k < 2; k++) (void)close_track(&r->tracks[k], status);
    free(r->interleaved), free(r->planar), free(r);
    return status;
}

wt_status live_record_close(live_record *r)
{
    if (!r) return WT_OK;
    atomic_store(&r->stop, true);
    pthread_join(r->thread, NULL);
    wt_status status = atomic_load(&r->failed) ? wt_fail(WT_ERR_FILE, "%s", r->sentence) : WT_OK;
    for (int k = 0; k < 2; k++) {
        wt_status one = close_track(&r->tracks[k], WT_OK);
        if (!status) status = one;
    }
    free(r->interleaved), free(r->planar), free(r);
    return status;
}

void live_record_stats(const live_record *r, uint64_t *n_frames, uint64_t *n_lost, const char **sentence)
{
    *n_frames = r ? atomic_load(&r->n_frames) : 0;
    *n_lost = r ? atomic_load(&r->n_lost) : 0;
    *sentence = r && atomic_load(&r->failed) ? r->sentence : "";
}
