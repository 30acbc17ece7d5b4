// A file's signal in order, a block at a time: read, folded, resampled.

#include "analyze_tiles.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/resample.h>

enum { BLOCK = 1 << 16 };

struct analyze_source {
    wt_audio_reader *reader;
    wt_resample *resampler; // NULL: the rate stays
    int in_channels, channels, rate_hz;
    float *block; // [in_channels][BLOCK], folded into its first row
    int n_block, n_used;
    bool ended;
    int64_t n; // frames in all, as the file says; -1: it does not
};

void analyze_source_close(analyze_source *s)
{
    if (!s) return;
    wt_audio_reader_close(s->reader);
    wt_resample_destroy(s->resampler);
    free(s->block);
    free(s);
}

static wt_status prepare(const analyze_options *options, const char *path, analyze_source *s)
{
    wt_status status = wt_audio_reader_open(path, NULL, &s->reader);
    if (status) return status;
    const wt_audio_info info = wt_audio_reader_get_info(s->reader);
    s->rate_hz = options->rate_hz ? options->rate_hz : info.rate_hz;
    s->in_channels = info.channels;
    s->channels = options->keep_channels ? info.channels : 1;
    s->n = info.n_frames;
    s->block = malloc(sizeof *s->block * BLOCK * (size_t)info.channels);
    if (!s->block) status = wt_fail(WT_ERR_NO_MEMORY, "analyze: a block of %d channels", info.channels);
    if (!status && s->rate_hz != info.rate_hz) {
        const wt_resample_config config = {.in_hz = info.rate_hz, .out_hz = s->rate_hz, .channels = s->channels,
                                           .quality = options->effect.quality};
        status = wt_resample_create(&config, &s->resampler);
        if (s->n >= 0) s->n = wt_resample_out_frames(&config, s->n);
    }
    return status;
}

wt_status analyze_source_open(const analyze_options *options, const char *path, analyze_source **source)
{
    analyze_source *s = *source = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "analyze: a source");
    wt_status status = prepare(options, path, s);
    if (!status) return WT_OK;
    analyze_source_close(s);
    *source = NULL;
    return status;
}

int analyze_source_channels(const analyze_source *s) { return s->channels; }

int analyze_source_rate_hz(const analyze_source *s) { return s->rate_hz; }

wt_audio_info analyze_source_info(const analyze_source *s) { return wt_audio_reader_get_info(s->reader); }

static wt_status source_refill(analyze_source *s)
{
    wt_status status = wt_audio_reader_read(s->reader, s->block, BLOCK, BLOCK, &s->n_block);
    s->n_used = 0;
    s->ended = s->n_block < BLOCK;
    if (!status && s->channels < s->in_channels) analyze_fold(s->block, s->in_channels, s->n_block, BLOCK);
    return status;
}

wt_status analyze_source_read(analyze_source *s, float *out, int64_t stride, int64_t n, int64_t *n_got)
{
    const float *in_rows[WT_AUDIO_MAX_CHANNELS];
    float *out_rows[WT_AUDIO_MAX_CHANNELS];
    for (*n_got = 0; *n_got < n;) {
        int n_left = s->n_block - s->n_used, n_used = 0, n_made = 0;
        const int room = n - *n_got < BLOCK ? (int)(n - *n_got) : BLOCK;
        if (!n_left && !s->ended) {
            wt_status status = source_refill(s);
            if (status) return status;
            continue;
        }
        for (int c = 0; c < s->channels; c++) {
            in_rows[c] = s->block + (size_t)c * BLOCK + s->n_used;
            out_rows[c] = out + c * stride + *n_got;
        }
        if (!s->resampler) {
            n_used = n_made = n_left < room ? n_left : room;
            for (int c = 0; c < s->channels; c++) memcpy(out_rows[c], in_rows[c], sizeof *out * (size_t)n_made);
        } else if (n_left) {
            wt_resample_process(s->resampler, in_rows, n_left, &n_used, out_rows, room, &n_made);
        } else {
            wt_resample_drain(s->resampler, out_rows, room, &n_made);
        }
        s->n_used += n_used;
        *n_got += n_made;
        if (!n_left && !n_made) return WT_OK;
    }
    return WT_OK;
}

wt_status analyze_length(const analyze_options *options, const char *path, int64_t *n)
{
    analyze_source *s;
    wt_status status = analyze_source_open(options, path, &s);
    if (status) return status;
    *n = s->n < 0 ? 0 : s->n;
    float *some = s->n < 0 ? malloc(sizeof *some * BLOCK * (size_t)s->channels) : NULL;
    if (s->n < 0 && !some) status = wt_fail(WT_ERR_NO_MEMORY, "analyze: a block of %d channels", s->channels);
    for (int64_t n_got = BLOCK; some && !status && n_got == BLOCK; *n += n_got) // the file does not say
        status = analyze_source_read(s, some, BLOCK, BLOCK, &n_got);
    free(some);
    analyze_source_close(s);
    return status;
}
