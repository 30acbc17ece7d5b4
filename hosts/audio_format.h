/// What readers and writers share: names of formats, raw PCM, and a look into a header before libsndfile gets it.
#ifndef WT_AUDIO_FORMAT_H
#define WT_AUDIO_FORMAT_H

#include <warptone/audio_file.h>

enum { WT__AUDIO_BLOCK = 4096 }; ///< frames that pass through a handle's buffer at once

/// Bytes of a raw sample; 0 = not a raw format.
int wt__raw_bytes(wt_sample_format format);
/// count raw little-endian samples to float, full scale 1.0.
void wt__raw_to_float(wt_sample_format format, const unsigned char *raw, float *out, size_t count);
/// The upper bytes of count left-aligned 32-bit samples, little-endian.
void wt__raw_from_int(int bytes, const int32_t *in, unsigned char *raw, size_t count);

/// Non-finite samples become 0 and are counted, denormals become 0: no filter behind this sees either.
int64_t wt__audio_repair(float *samples, size_t count);

/// The extension without its dot, "" when there is none; borrowed from `path`.
const char *wt__audio_extension(const char *path);
/// libsndfile's major format of an extension or name ("aif", "OGA"), 0 = unknown.
int wt__audio_major(const char *name);
/// The encoding of PCM and float samples in libsndfile's words, and back (WT_SAMPLE_DEFAULT: neither).
int wt__audio_subtype(wt_sample_format format);
wt_sample_format wt__audio_sample_of(int subtype);
/// Fill `format`, `encoding` and `sample` from a libsndfile format word.
void wt__audio_describe(wt_audio_info *info, int sndfile_format);

/// WT_OK, or WT_ERR_FORMAT / WT_ERR_BAD_ARG as `status` says, with a sentence that begins with `path`.
wt_status wt__audio_check_shape(wt_status status, const char *path, int64_t rate_hz, int64_t channels);

/// Facts of a RIFF, RF64 or AIFF header, read from an open file without moving its position.
typedef struct wt__audio_header {
    char kind[8];    ///< "WAVE", "AIFF", "FLAC", "Ogg", "" = none of these
    bool has_format; ///< WAVE and AIFF: the two numbers below are valid
    int64_t channels, rate_hz;
    int64_t data_bytes;   ///< WAVE and AIFF: bytes the header promises; -1 = no promise
    int64_t data_present; ///< bytes from there to the end of the file
} wt__audio_header;
wt__audio_header wt__audio_peek(int fd, int64_t file_bytes);

#endif
