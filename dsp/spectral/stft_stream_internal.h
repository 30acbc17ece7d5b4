/// Private to dsp/stft_stream*.c: a stream of one channel whose ways there and back are called apart.
#ifndef WT_STFT_STREAM_INTERNAL_H
#define WT_STFT_STREAM_INTERNAL_H

#include <warptone/stft_stream.h>

/// Take n samples; the frames that they complete, [..][bins][2].  [rt]
WT_RT void wt__stft_stream_forward(wt_stft_stream *stream, const float *in, int n, float *frames);
/// Give n samples; takes the frames that as many samples had completed.  [rt]
WT_RT void wt__stft_stream_inverse(wt_stft_stream *stream, const float *frames, int n, float *out);
/// [hop] 1 / sum of squared windows.
const float *wt__stft_stream_steady(const wt_stft_stream *stream);
const wt_stft *wt__stft_stream_stft(const wt_stft_stream *stream);

#endif
