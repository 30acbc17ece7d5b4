#include <warptone/audio_file.h>

#include <stdlib.h>
#include <string.h>

enum { FIRST_FRAMES = 1 << 18 };

/// Rows of `from` frames become rows of `to` frames in place; the buffer holds the larger of both.
static void move_rows(float *samples, int channels, size_t from, size_t to, size_t n_frames)
{
    for (int k = 1; k < channels; k++) {
        size_t c = (size_t)(to > from ? channels - k : k); // never over a row that is still to be moved
        memmove(samples + c * to, samples + c * from, sizeof(float) * n_frames);
    }
}

static wt_status resize(wt_audio *audio, const char *path, size_t from, size_t to)
{
    const size_t frame_bytes = sizeof(float) * (size_t)audio->channels;
    if (to < from) move_rows(audio->samples, audio->channels, from, to, (size_t)audio->n_frames);
    float *samples = to <= SIZE_MAX / frame_bytes ? realloc(audio->samples, (to ? to : 1) * frame_bytes) : NULL;
    if (!samples)
        return wt_fail(WT_ERR_NO_MEMORY, "%s: %zu frames of %d channels do not fit in memory", path, to,
                       audio->channels);
    audio->samples = samples;
    if (to > from && from) move_rows(samples, audio->channels, from, to, (size_t)audio->n_frames);
    return WT_OK;
}

static wt_status load(wt_audio_reader *reader, const char *path, wt_audio *audio)
{
    const wt_audio_info info = wt_audio_reader_get_info(reader);
    audio->rate_hz = info.rate_hz;
    audio->channels = info.channels;
    size_t room = info.n_frames > 0 ? (size_t)info.n_frames : FIRST_FRAMES;
    wt_status status = resize(audio, path, 0, room);
    if (status) return status;
    for (;;) {
        size_t left = room - (size_t)audio->n_frames;
        int want = left < FIRST_FRAMES ? (int)left : FIRST_FRAMES, got = 0;
        status = wt_audio_reader_read(reader, audio->samples + audio->n_frames, want, room, &got);
        if (status) return status;
        audio->n_frames += got;
        if (got < want || audio->n_frames == info.n_frames) break;
        if ((size_t)audio->n_frames == room) {
            status = resize(audio, path, room, 2 * room);
            if (status) return status;
            room *= 2;
        }
    }
    audio->info = wt_audio_reader_get_info(reader);
    return (size_t)audio->n_frames < room ? resize(audio, path, room, (size_t)audio->n_frames) : WT_OK;
}

wt_status wt_audio_load(const char *path, int rate_hz, wt_audio *audio)
{
    *audio = (wt_audio){0};
    wt_audio_reader *reader;
    wt_status status = wt_audio_reader_open(path, &(wt_audio_reader_config){.rate_hz = rate_hz}, &reader);
    if (status) return status;
    status = load(reader, path, audio);
    wt_audio_reader_close(reader);
    if (status) wt_audio_free(audio);
    return status;
}

void wt_audio_free(wt_audio *audio)
{
    if (!audio) return;
    free(audio->samples);
    *audio = (wt_audio){0};
}
