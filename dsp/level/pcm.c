#include "pcm_kernel.h"

#include <warptone/pcm.h>
#include <warptone/simd.h>

#include <string.h>

int wt_pcm_bytes(wt_pcm_format format)
{
    static const int bytes[] = {2, 3, 4, 4, 8};
    return bytes[format];
}

// ---- reading

WT_INLINE float read_one(wt_pcm_format format, const unsigned char *at)
{
    int16_t s16;
    int32_t s32;
    float f32;
    double f64;
    switch (format) {
    case WT_PCM_S16:
        memcpy(&s16, at, 2);
        return s16 * 0x1p-15f;
    case WT_PCM_S24: // into the upper bytes, so that the sign comes along
        s32 = (int32_t)((uint32_t)at[0] << 8 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 24);
        return (float)s32 * 0x1p-31f;
    case WT_PCM_S32:
        memcpy(&s32, at, 4);
        return (float)s32 * 0x1p-31f;
    case WT_PCM_F32:
        memcpy(&f32, at, 4);
        return f32;
    case WT_PCM_F64:
        memcpy(&f64, at, 8);
        return (float)f64;
    }
    return 0;
}

WT_INLINE void read_all(wt_pcm_format format, const unsigned char *in, int channels, int n_frames, float *const *out)
{
    const int bytes = format == WT_PCM_S16 ? 2 : format == WT_PCM_S24 ? 3 : format == WT_PCM_F64 ? 8 : 4;
    for (int c = 0; c < channels; c++) {
        const unsigned char *at = in + c * bytes;
        float *line = out[c];
        for (int n = 0; n < n_frames; n++, at += channels * bytes) line[n] = read_one(format, at);
    }
}

// One loop a format, so that the compiler sees its constant.
WT_CLONES static void read_format(wt_pcm_format format, const void *in, int channels, int n_frames, float *const *out)
{
    switch (format) {
    case WT_PCM_S16:
        read_all(WT_PCM_S16, in, channels, n_frames, out);
        break;
    case WT_PCM_S24:
        read_all(WT_PCM_S24, in, channels, n_frames, out);
        break;
    case WT_PCM_S32:
        read_all(WT_PCM_S32, in, channels, n_frames, out);
        break;
    case WT_PCM_F32:
        read_all(WT_PCM_F32, in, channels, n_frames, out);
        break;
    case WT_PCM_F64:
        read_all(WT_PCM_F64, in, channels, n_frames, out);
        break;
    }
}

WT_RT void wt_pcm_read(wt_pcm_format format, const void *in, int channels, int n_frames, float *const *out)
{
    read_format(format, in, channels, n_frames, out);
}

// ---- writing

WT_INLINE void write_one(wt_pcm_format format, float x, double dither, unsigned long long *n_clipped,
                         unsigned long long *n_bad, unsigned char *at)
{
    if (format == WT_PCM_F32) {
        memcpy(at, &x, 4);
    } else if (format == WT_PCM_F64) {
        const double f64 = x;
        memcpy(at, &f64, 8);
    } else if (format == WT_PCM_S16) {
        const int16_t s16 = (int16_t)pcm_quantise(x, 0x1p15, dither, n_clipped, n_bad);
        memcpy(at, &s16, 2);
    } else if (format == WT_PCM_S24) {
        const uint32_t s24 = (uint32_t)pcm_quantise(x, 0x1p23, dither, n_clipped, n_bad);
        at[0] = (unsigned char)s24;
        at[1] = (unsigned char)(s24 >> 8);
        at[2] = (unsigned char)(s24 >> 16);
    } else {
        const int32_t s32 = pcm_quantise(x, 0x1p31, 0, n_clipped, n_bad); // float has 24 bits: nothing to dither
        memcpy(at, &s32, 4);
    }
}

WT_CLONES static void write_all(wt_pcm_writer *w, wt_pcm_format format, const float *const *in, int channels,
                                int n_frames, unsigned char *out)
{
    const int bytes = wt_pcm_bytes(format);
    unsigned long long n_clipped = 0, n_bad = 0;
    const bool dithered = !w->no_dither && (format == WT_PCM_S16 || format == WT_PCM_S24);
    for (int c = 0; c < channels; c++) {
        unsigned char *at = out + c * bytes;
        uint64_t counter = w->n_samples + (uint64_t)c;
        for (int n = 0; n < n_frames; n++, at += channels * bytes, counter += (uint64_t)channels)
            write_one(format, in[c][n], dithered ? pcm_dither(counter) : 0, &n_clipped, &n_bad, at);
    }
    w->n_clipped += n_clipped, w->n_bad += n_bad;
}

WT_RT void wt_pcm_write(wt_pcm_writer *writer, wt_pcm_format format, const float *const *in, int channels, int n_frames,
                        void *out)
{
    write_all(writer, format, in, channels, n_frames, out);
    writer->n_samples += (uint64_t)n_frames * (uint64_t)channels;
}

WT_CLONES static void mean(const float *const *in, int channels, int n_frames, float *out)
{
    for (int n = 0; n < n_frames; n++) {
        float sum = in[0][n];
        for (int c = 1; c < channels; c++) sum += in[c][n];
        out[n] = sum / (float)channels;
    }
}

WT_RT void wt_pcm_to_mono(const float *const *in, int channels, int n_frames, float *out)
{
    mean(in, channels, n_frames, out);
}
