// A frame is taken when its last sample has come; its part of the output is added to a ring of sums, from which each
// call takes what is finished. Sample s of the stream is last touched by the frame that begins at or before s, so at
// most n_fft samples later it is whole: the output lags by n_fft, whatever the blocks.
//
// The first frame holds n_fft - hop samples of the silence before the stream: so every sample lies under all its
// windows.

#include "stft_stream_internal.h"

#include "stft_internal.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

struct wt_stft_stream {
    wt_stft *stft;
    wt_fft *inverse;
    int n_fft, hop, channels, bins;
    int n_held;   // samples of the present frame that have come, 0 .. n_fft - 1
    int n_given;  // and the place in `ready` of what is given next
    int64_t t;    // frames so far
    float *held;  // [channels][n_fft] the newest samples
    float *sums;  // [channels][n_fft + hop] from the present frame's first sample on
    float *ready; // [channels][n_fft] a delay of finished samples; sample i of a hop is given hop samples later
    float *spectrum, *frame, *re, *im;
    float *steady; // [hop] 1 / sum of squared windows
};

static wt_status check_cover(wt_stft_stream *s)
{
    const float *window = wt__stft_window(s->stft);
    for (int i = 0; i < s->hop; i++) {
        double sum = 0;
        for (int64_t at = i; at < s->n_fft; at += s->hop) sum += (double)window[at] * window[at];
        if (!(sum > FLT_MIN))
            return wt_fail(WT_ERR_BAD_ARG, "stft stream: hop %d leaves sample %d of it under no window of %d", s->hop,
                           i, s->n_fft);
        s->steady[i] = (float)(1 / sum);
    }
    return WT_OK;
}

wt_status wt_stft_stream_create(const wt_stft_config *config, wt_stft_stream **stream)
{
    *stream = NULL;
    wt_stft_stream *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "stft stream: handle");
    wt_status status = wt_stft_create(config, &s->stft);
    if (status) goto fail;
    const wt_stft_config *c = wt__stft_config(s->stft);
    s->n_fft = c->n_fft, s->hop = c->hop, s->channels = c->channels, s->bins = wt_stft_bins(s->stft);
    if (s->hop > s->n_fft) {
        status = wt_fail(WT_ERR_BAD_ARG, "stft stream: hop %d, want at most n_fft %d", s->hop, s->n_fft);
        goto fail;
    }
    const size_t n = (size_t)s->n_fft, channels = (size_t)s->channels, hop = (size_t)s->hop;
    s->held = calloc(channels * n, sizeof(float));
    s->sums = calloc(channels * (n + hop), sizeof(float));
    s->ready = calloc(channels * (n + hop), sizeof(float));
    s->spectrum = calloc(channels * (size_t)s->bins * 2, sizeof(float));
    s->frame = calloc(n, sizeof(float));
    s->re = aligned_alloc(64, wt__fft_padded((size_t)s->bins) * sizeof(float));
    s->im = aligned_alloc(64, wt__fft_padded((size_t)s->bins) * sizeof(float));
    s->steady = calloc(hop, sizeof(float));
    if (!s->held || !s->sums || !s->ready || !s->spectrum || !s->frame || !s->re || !s->im || !s->steady) {
        status = wt_fail(WT_ERR_NO_MEMORY, "stft stream: %d channels of %d samples", s->channels, s->n_fft);
        goto fail;
    }
    status = wt_fft_create(NULL, &(wt_fft_config){.n = s->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL}, &s->inverse);
    if (!status) status = check_cover(s);
    if (status) goto fail;
    wt_stft_stream_reset(s);
    *stream = s;
    return WT_OK;

fail:
    wt_stft_stream_destroy(s);
    return status;
}

void wt_stft_stream_destroy(wt_stft_stream *stream)
{
    if (!stream) return;
    wt_stft_destroy(stream->stft);
    wt_fft_destroy(stream->inverse);
    float *const arrays[] = {stream->held,  stream->sums, stream->ready, stream->spectrum,
                             stream->frame, stream->re,   stream->im,    stream->steady};
    for (int i = 0; i < 8; i++) free(arrays[i]);
    free(stream);
}

int wt_stft_stream_latency_frames(const wt_stft_stream *stream) { return stream->n_fft; }

WT_RT void wt_stft_stream_reset(wt_stft_stream *stream)
{
    const size_t n = (size_t)stream->n_fft, hop = (size_t)stream->hop, channels = (size_t)stream->channels;
    memset(stream->held, 0, channels * n * sizeof(float));
    memset(stream->sums, 0, channels * (n + hop) * sizeof(float));
    memset(stream->ready, 0, channels * (n + hop) * sizeof(float));
    stream->n_held = stream->n_given = stream->n_fft - stream->hop;
    stream->t = 0;
}

// A whole frame is held: analyse it, move on by a hop.
WT_RT static void analyse(wt_stft_stream *s)
{
    const int n = s->n_fft, hop = s->hop;
    const float *window = wt__stft_window(s->stft);
    for (int c = 0; c < s->channels; c++) {
        for (int i = 0; i < n; i++) s->frame[i] = s->held[c * n + i] * window[i];
        wt__stft_transform(s->stft, s->frame, s->spectrum + (size_t)c * (size_t)s->bins * 2);
        memmove(s->held + c * n, s->held + c * n + hop, (size_t)(n - hop) * sizeof(float));
    }
    s->n_held = n - hop;
}

// Add a frame to the sums, make a hop of them ready, move on.
WT_RT static void add_back(wt_stft_stream *s)
{
    const int n = s->n_fft, hop = s->hop;
    const float *window = wt__stft_window(s->stft);
    for (int c = 0; c < s->channels; c++) {
        float *sums = s->sums + (size_t)c * (size_t)(n + hop), *ready = s->ready + (size_t)c * (size_t)(n + hop);
        (void)!wt_fft_run(s->inverse, s->spectrum + (size_t)c * (size_t)s->bins * 2, s->frame);
        for (int i = 0; i < n; i++) sums[i] += s->frame[i] * window[i];
        // The ready samples behind the present one's place: n_given = n now, and it becomes n - hop.
        for (int i = 0; i < hop; i++) ready[n - hop + i] = sums[i] * s->steady[i];
        memmove(sums, sums + hop, (size_t)n * sizeof(float));
        memset(sums + n, 0, (size_t)hop * sizeof(float));
    }
    s->n_given = n - hop;
}

static void take(wt_stft_stream *s, int channel, const float *in, int count)
{
    memcpy(s->held + channel * s->n_fft + s->n_held, in, (size_t)count * sizeof(float));
}

static void give(const wt_stft_stream *s, int channel, float *out, int count)
{
    memcpy(out, s->ready + (size_t)channel * (size_t)(s->n_fft + s->hop) + s->n_given, (size_t)count * sizeof(float));
}

WT_RT void wt_stft_stream_process(wt_stft_stream *s, const float *const *in, int n, float *const *out,
                                  wt_stft_stream_frame frame, void *user)
{
    for (int done = 0; done < n;) {
        int count = s->n_fft - s->n_held;
        if (count > n - done) count = n - done;
        for (int c = 0; c < s->channels; c++) {
            take(s, c, in[c] + done, count);
            if (out) give(s, c, out[c] + done, count);
        }
        s->n_held += count, s->n_given = s->n_held;
        done += count;
        if (s->n_held < s->n_fft) continue;
        analyse(s);
        if (frame) frame(user, s->t, s->spectrum);
        s->t++;
        if (out) add_back(s);
    }
}

// ---- of one channel, there and back apart

WT_RT void wt__stft_stream_forward(wt_stft_stream *s, const float *in, int n, float *frames)
{
    for (int done = 0; done < n;) {
        int count = s->n_fft - s->n_held;
        if (count > n - done) count = n - done;
        take(s, 0, in + done, count);
        s->n_held += count, done += count;
        if (s->n_held < s->n_fft) continue;
        analyse(s);
        memcpy(frames, s->spectrum, (size_t)s->bins * 2 * sizeof(float));
        frames += 2 * s->bins;
    }
}

WT_RT void wt__stft_stream_inverse(wt_stft_stream *s, const float *frames, int n, float *out)
{
    for (int done = 0; done < n;) {
        int count = s->n_fft - s->n_given;
        if (count > n - done) count = n - done;
        give(s, 0, out + done, count);
        s->n_given += count, done += count;
        if (s->n_given < s->n_fft) continue;
        memcpy(s->spectrum, frames, (size_t)s->bins * 2 * sizeof(float));
        add_back(s);
        frames += 2 * s->bins;
    }
}

const float *wt__stft_stream_steady(const wt_stft_stream *s) { return s->steady; }

const wt_stft *wt__stft_stream_stft(const wt_stft_stream *s) { return s->stft; }
