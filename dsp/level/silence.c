#include "silence_internal.h"
#include "stft_internal.h"

#include <math.h>
#include <stdlib.h>

wt_level_config wt__level_defaults(const wt_level_config *config)
{
    wt_level_config c = config ? *config : (wt_level_config){.hop = 0};
    if (!c.frame_length) c.frame_length = 2048;
    if (!c.hop) c.hop = 512;
    return c;
}

int64_t wt_level_frames(const wt_level_config *config, int64_t n)
{
    const wt_level_config c = wt__level_defaults(config);
    const int64_t padded = n + (c.no_center ? 0 : c.frame_length / 2 * 2);
    return n < 1 || c.frame_length < 1 || c.hop < 1 || padded < c.frame_length ? 0
                                                                              : 1 + (padded - c.frame_length) / c.hop;
}

wt_status wt__level_check(const wt_level_config *c, int64_t n)
{
    if (c->frame_length < 1) return wt_fail(WT_ERR_BAD_ARG, "level: frame length %d, want 1 or more", c->frame_length);
    if (c->hop < 1) return wt_fail(WT_ERR_BAD_ARG, "level: hop %d, want 1 or more", c->hop);
    if ((unsigned)c->pad > WT_STFT_PAD_RAMP)
        return wt_fail(WT_ERR_BAD_ARG, "level: pad %d, want 0..%d", (int)c->pad, WT_STFT_PAD_RAMP);
    if (!wt_level_frames(c, n))
        return wt_fail(WT_ERR_LENGTH, "level: no frame of %d in %lld samples", c->frame_length, (long long)n);
    return WT_OK;
}

static double mean_square(const wt_level_config *c, const float *pcm, int64_t n, int64_t t)
{
    const int64_t margin = c->no_center ? 0 : c->frame_length / 2, begin = t * c->hop - margin;
    double sum = 0;
    for (int64_t at = begin; at < begin + c->frame_length; at++) {
        const double x = at >= 0 && at < n ? pcm[at] : wt__stft_padded(pcm, n, at, margin, c->pad);
        sum += x * x;
    }
    return sum / c->frame_length;
}

wt_status wt_level_energy(const wt_level_config *config, const float *pcm, int64_t n, float *out)
{
    const wt_level_config c = wt__level_defaults(config);
    wt_status status = wt__level_check(&c, n);
    for (int64_t t = 0; !status && t < wt_level_frames(&c, n); t++) out[t] = (float)mean_square(&c, pcm, n, t);
    return status;
}

wt_status wt_level_rms(const wt_level_config *config, const float *pcm, int64_t n, float *out)
{
    const wt_level_config c = wt__level_defaults(config);
    wt_status status = wt__level_check(&c, n);
    for (int64_t t = 0; !status && t < wt_level_frames(&c, n); t++) out[t] = (float)sqrt(mean_square(&c, pcm, n, t));
    return status;
}

wt_status wt_level_zero_crossings(const wt_level_config *config, const float *pcm, int64_t n, float *out)
{
    const wt_level_config c = wt__level_defaults(config);
    wt_status status = wt__level_check(&c, n);
    for (int64_t t = 0; !status && t < wt_level_frames(&c, n); t++) {
        const int64_t begin = t * c.hop - (c.no_center ? 0 : c.frame_length / 2);
        int count = 0;
        bool before = false;
        for (int i = 0; i < c.frame_length; i++) {
            const int64_t at = begin + i < 0 ? 0 : begin + i < n ? begin + i : n - 1;
            const bool negative = pcm[at] < -1e-10f;
            count += i && negative != before;
            before = negative;
        }
        out[t] = (float)((double)count / c.frame_length);
    }
    return status;
}

// ---- silence

// level [n_frames]: of the loudest channel.
static void take_levels(const wt_level_config *c, const float *pcm, int channels, int64_t n, double *level)
{
    for (int64_t t = 0; t < wt_level_frames(c, n); t++) {
        level[t] = 0;
        for (int k = 0; k < channels; k++) level[t] = fmax(level[t], (float)sqrt(mean_square(c, pcm + k * n, n, t)));
    }
}

// level [n_frames] becomes 1 where it is less than top_db below the loudest.
static void find_loud(int64_t n_frames, double top_db, double *level)
{
    const double least = 1e-5; // librosa's least amplitude
    double peak = least;
    for (int64_t t = 0; t < n_frames; t++) peak = fmax(peak, level[t] = fmax(least, level[t]));
    for (int64_t t = 0; t < n_frames; t++) level[t] = 20 * log10(level[t]) - 20 * log10(peak) > -top_db;
}

static int64_t find_spans(const wt_level_config *c, double top_db, int64_t n, double *level, wt_span *spans,
                          int64_t room)
{
    const int64_t n_frames = wt_level_frames(c, n);
    int64_t count = 0;
    find_loud(n_frames, top_db, level);
    for (int64_t t = 0; t < n_frames; t++) {
        if (level[t] == 0) continue;
        const int64_t begin = t * c->hop < n ? t * c->hop : n;
        while (t < n_frames && level[t] != 0) t++;
        if (count < room) spans[count] = (wt_span){begin, t * c->hop < n ? t * c->hop : n};
        count++;
    }
    return count;
}

int64_t wt__silence_find(const wt_level_config *c, double top_db, const float *pcm, int channels, int64_t n,
                         double *loud, wt_span *spans, int64_t room)
{
    take_levels(c, pcm, channels, n, loud);
    return find_spans(c, top_db, n, loud, spans, room);
}

wt_status wt__silence_check(const wt_level_config *c, double top_db, int channels, int64_t n)
{
    wt_status status = wt__level_check(c, n);
    if (status || (channels >= 1 && top_db > 0)) return status;
    return wt_fail(WT_ERR_BAD_ARG, "silence: %d channels, %g dB, want 1 or more, above 0", channels, top_db);
}

wt_status wt_silence_split(const wt_level_config *config, double top_db, const float *pcm, int channels, int64_t n,
                           wt_span *spans, int64_t room, int64_t *n_spans)
{
    const wt_level_config c = wt__level_defaults(config);
    *n_spans = 0;
    if (!top_db) top_db = 60;
    wt_status status = wt__silence_check(&c, top_db, channels, n);
    if (status) return status;
    const int64_t n_frames = wt_level_frames(&c, n);
    double *loud = malloc((size_t)n_frames * sizeof *loud);
    if (!loud) return wt_fail(WT_ERR_NO_MEMORY, "silence: %lld frames", (long long)n_frames);
    *n_spans = wt__silence_find(&c, top_db, pcm, channels, n, loud, spans, room);
    free(loud);
    return status;
}

wt_status wt_silence_split_rms(const wt_level_config *config, double top_db, const float *rms, int64_t n,
                               wt_span *spans, int64_t room, int64_t *n_spans)
{
    const wt_level_config c = wt__level_defaults(config);
    *n_spans = 0;
    if (!top_db) top_db = 60;
    wt_status status = wt__silence_check(&c, top_db, 1, n);
    if (status) return status;
    const int64_t n_frames = wt_level_frames(&c, n);
    double *level = malloc((size_t)n_frames * sizeof *level);
    if (!level) return wt_fail(WT_ERR_NO_MEMORY, "silence: %lld frames", (long long)n_frames);
    for (int64_t t = 0; t < n_frames; t++) level[t] = rms[t];
    *n_spans = find_spans(&c, top_db, n, level, spans, room);
    free(level);
    return WT_OK;
}

wt_status wt_silence_trim(const wt_level_config *config, double top_db, const float *pcm, int channels, int64_t n,
                          wt_span *span)
{
    const int64_t most = wt_level_frames(config, n) + 1;
    wt_span *spans = calloc((size_t)most, sizeof *spans);
    *span = (wt_span){0, 0};
    if (!spans) return wt_fail(WT_ERR_NO_MEMORY, "silence: %lld parts", (long long)most);
    int64_t count;
    wt_status status = wt_silence_split(config, top_db, pcm, channels, n, spans, most, &count);
    if (!status && count) *span = (wt_span){spans[0].begin, spans[count - 1].end};
    free(spans);
    return status;
}
