/// Audio files at the edge: every format libsndfile knows and raw PCM, streamed in blocks of planar float.
///
/// A handle belongs to one thread at a time; any number may be open. A reader or writer holds one file descriptor and
/// 16 KiB a channel; one that resamples at best quality adds 0.4 MiB a channel.
#ifndef WARPTONE_AUDIO_FILE_H
#define WARPTONE_AUDIO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WT_AUDIO_MAX_CHANNELS = 64, WT_AUDIO_MIN_RATE_HZ = 1000, WT_AUDIO_MAX_RATE_HZ = 768000 };

/// How one sample is stored. Raw PCM is little-endian and interleaved; S24 is packed into three bytes.
typedef enum wt_sample_format {
    WT_SAMPLE_DEFAULT, ///< reader: not raw; writer: as its source, else 24 bits, else what the format has
    WT_SAMPLE_S8,      ///< not raw
    WT_SAMPLE_S16,
    WT_SAMPLE_S24,
    WT_SAMPLE_S32,
    WT_SAMPLE_F32,
    WT_SAMPLE_F64, ///< not raw
} wt_sample_format;

/// "s16" to WT_SAMPLE_S16 and so on; WT_SAMPLE_DEFAULT for a name that is none. The other way: never NULL.  [any]
wt_sample_format wt_sample_format_of_name(const char *name);
const char *wt_sample_format_name(wt_sample_format format);

/// Does the name end in an extension that only audio files have? For walking folders; the file is not touched.  [any]
bool wt_audio_name_known(const char *path);

typedef struct wt_audio_info {
    int rate_hz, channels;      ///< as delivered or written
    int64_t n_frames;           ///< as delivered, in all; -1 = not known before the end. Writer: frames so far
    int file_rate_hz;           ///< before resampling
    int64_t file_frames;        ///< before resampling; -1 = not known before the end
    char format[16];            ///< "wav", "flac", "ogg", ..., "raw"
    char encoding[48];          ///< for people: "Signed 16 bit PCM", "Vorbis", ...
    wt_sample_format sample;    ///< WT_SAMPLE_DEFAULT = an encoding of another kind, mostly lossy
    int64_t n_repaired_samples; ///< NaN or infinite so far, each replaced by 0
    int64_t n_clipped_samples;  ///< writer: beyond full scale so far, each held at it
    bool truncated;             ///< fewer frames than the header promised (known at open or at the end)
} wt_audio_info;

// ---- reading

typedef struct wt_audio_reader wt_audio_reader;

typedef struct wt_audio_reader_config {
    int rate_hz;                 ///< resample to this rate; 0 = the file's own
    bool medium_quality;         ///< SRC_SINC_MEDIUM_QUALITY (121 dB) in place of SRC_SINC_BEST_QUALITY (144 dB)
    wt_sample_format raw_sample; ///< the input is raw PCM of this format; needed for "-"
    int raw_rate_hz, raw_channels;
} wt_audio_reader_config;

/// Open a file, or raw PCM on standard input as "-". `config` NULL = all zero. The path is copied.
///
/// What is there is delivered: a truncated file up to its last whole frame, with `truncated` set. NaN and infinities
/// become 0 and are counted, denormals become 0. Resampled audio has exactly round(frames * ratio) frames, at least 1,
/// and starts at the same instant as the file.
///
/// Errors: WT_ERR_FILE (missing, unreadable, a folder, FIFO or device), WT_ERR_FORMAT (empty, no audio, damaged, more
/// than 64 channels, a rate outside 1000..768000 Hz), WT_ERR_BAD_ARG (rate asked for), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_audio_reader_open(const char *path, const wt_audio_reader_config *config,
                                          wt_audio_reader **reader);

/// The next block.
///
///   out     [channels][stride]   the first n_frames of each row are written, zeros after the end
///   stride  frames from row to row; 0 = n_frames
///   n_read  frames that are audio; less than n_frames only at the end, 0 after it
///
/// Errors: WT_ERR_FILE (the device failed), WT_ERR_FORMAT (the end came before the first frame), WT_ERR_CANCELLED
/// (interrupted while waiting for standard input).  [worker]
WT_CHECKED wt_status wt_audio_reader_read(wt_audio_reader *reader, float *out, int n_frames, size_t stride,
                                          int *n_read);

/// The next block as the file holds it, for what converts elsewhere; a reader is read this way or the other.
///
///   out   [n_frames][channels]   int16 where info.sample is WT_SAMPLE_S16, else float, repaired
///
/// Errors: as wt_audio_reader_read; WT_ERR_BAD_ARG of raw PCM and of a reader that resamples.  [worker]
WT_CHECKED wt_status wt_audio_reader_read_packed(wt_audio_reader *reader, void *out, int64_t n_frames,
                                                 int64_t *n_read);

wt_audio_info wt_audio_reader_get_info(const wt_audio_reader *reader); ///< so far  [worker]
void wt_audio_reader_close(wt_audio_reader *reader); ///< NULL is allowed.  [worker]

// ---- writing

typedef struct wt_audio_writer wt_audio_writer;

typedef struct wt_audio_writer_config {
    const wt_audio_reader *source; ///< where rate, channels, encoding and tags come from when not given; never written
                                   ///< over; NULL = none. Borrowed until wt_audio_writer_open returns
    int rate_hz, channels;         ///< 0 = as the source
    const char *format;            ///< "wav", "flac", "ogg", "mp3", ..., "raw"; NULL = the path's extension. Borrowed
    wt_sample_format sample;
    float lossy_quality; ///< 0..1 for Vorbis, Opus and MP3; 0 = the encoder's own
    uint32_t dither_seed;
    bool no_dither; ///< round only; else TPDF dither of 2 LSB peak to peak at 8, 16 and 24 bits
    bool sync;      ///< wait until the data is on the disk before the rename
    bool recording; ///< nobody can play it again: a WAV of more than two channels becomes RF64 beyond 4 GiB, and after
                    ///< a write that failed commit keeps what came before it, and fails
} wt_audio_writer_config;

/// Begin a file beside `path`, named .NAME.PID-K.part, which commit renames; or raw PCM on standard output as "-", in
/// the source's encoding unless `sample` says another.
/// A symbolic link is followed; an existing file keeps its mode and, until commit, its content. A WAV whose source says
/// more than 4 GiB becomes RF64. SIGXFSZ and SIGPIPE must be ignored for a full disk and a closed pipe to be sentences.
///
/// Errors: WT_ERR_BAD_ARG (rate, channels, no or unknown format, an encoding it cannot hold, the source itself),
/// WT_ERR_FILE (the folder is missing or unwritable, `path` is no regular file), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_audio_writer_open(const char *path, const wt_audio_writer_config *config,
                                          wt_audio_writer **writer);

/// One block, in [channels][stride], stride 0 = n_frames; the result does not depend on how frames are cut into blocks.
/// After an error the handle only counts, and commit fails.
/// Errors: WT_ERR_FILE (disk full, quota, closed pipe), WT_ERR_CANCELLED (interrupted while standard output blocked),
/// WT_ERR_BAD_ARG (n_frames or stride).  [worker]
WT_CHECKED wt_status wt_audio_writer_write(wt_audio_writer *writer, const float *in, int n_frames, size_t stride);

wt_audio_info wt_audio_writer_get_info(const wt_audio_writer *writer); ///< so far  [worker]

/// Finish the file and rename it into place; `writer` is taken. On any error the target is as it was before, but where
/// a recording was kept. Errors: WT_ERR_FILE.  [worker]
WT_CHECKED wt_status wt_audio_writer_commit(wt_audio_writer *writer);

/// Remove what was written; `writer` is taken. NULL is allowed.  [worker]
void wt_audio_writer_discard(wt_audio_writer *writer);

// ---- whole files

typedef struct wt_audio {
    float *samples; ///< [channels][n_frames]
    int rate_hz, channels;
    int64_t n_frames;
    wt_audio_info info; ///< with the counts of the whole file
} wt_audio;

/// A whole file at `rate_hz`, 0 = its own. Caller frees with wt_audio_free.
/// Errors: as wt_audio_reader_open and wt_audio_reader_read.  [worker]
WT_CHECKED wt_status wt_audio_load(const char *path, int rate_hz, wt_audio *audio);
void wt_audio_free(wt_audio *audio); ///< NULL and a zeroed struct are allowed.  [any but rt]

#ifdef __cplusplus
}
#endif
#endif
