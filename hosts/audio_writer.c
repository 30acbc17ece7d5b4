// planar rows -> interleaved -> dither and rounding to left-aligned 32-bit integers, or float -> libsndfile or raw PCM.
//
// libsndfile writes through our own callbacks, because a failed write is then seen with its errno even when it happens
// inside sf_close, where encoders flush.
#include "atomic_file.h"
#include "audio_format.h"
#include "audio_reader.h"
#include "interrupt.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warptone/simd.h>

static const int64_t wav_limit_bytes = 4294960000; // 2^32 less room for the header

struct wt_audio_writer {
    char *path;
    wt_audio_info info;
    wt__atomic_file output; // unused for standard output
    SNDFILE *file;          // NULL for raw PCM
    int fd;                 // the output's, or standard output
    size_t most_bytes;      // of one write to standard output
    int64_t offset;         // libsndfile's position in the file
    int write_error;        // errno of the first write that failed, 0 = none
    bool sync, recording;

    int bits;  // of the integers to round to; 0 = float
    bool clip; // hold at full scale
    bool dither;
    uint32_t seed;
    int64_t limit_bytes; // of the audio; INT64_MAX = none
    float *block;        // [WT__AUDIO_BLOCK][channels]
    int32_t *integers;   // [WT__AUDIO_BLOCK][channels]
    unsigned char *raw;  // [WT__AUDIO_BLOCK][channels] raw samples
};

// ---- libsndfile's view of the file

static sf_count_t file_length(void *user)
{
    struct stat what;
    return fstat(((wt_audio_writer *)user)->fd, &what) ? -1 : what.st_size;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    wt_audio_writer *w = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? w->offset : file_length(user);
    if (base + offset < 0) return -1;
    return w->offset = base + offset;
}

static sf_count_t file_read(void *to, sf_count_t size, void *user)
{
    wt_audio_writer *w = user;
    ssize_t got;
    do got = pread(w->fd, to, (size_t)size, w->offset);
    while (got < 0 && errno == EINTR);
    if (got > 0) w->offset += got;
    return got < 0 ? 0 : got;
}

static sf_count_t file_write(const void *from, sf_count_t size, void *user)
{
    wt_audio_writer *w = user;
    sf_count_t done = 0;
    while (done < size && !w->write_error) {
        ssize_t put = pwrite(w->fd, (const char *)from + done, (size_t)(size - done), w->offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            w->write_error = put < 0 ? errno : ENOSPC;
            break;
        }
        done += put;
        w->offset += put;
    }
    return done;
}

static sf_count_t file_tell(void *user)
{
    return ((wt_audio_writer *)user)->offset;
}

static wt_status no_memory(const char *path)
{
    return wt_fail(WT_ERR_NO_MEMORY, "%s: writer", path);
}

// ---- choosing the encoding

static bool possible(int major, int subtype, const wt_audio_info *info)
{
    SF_INFO facts = {.samplerate = info->rate_hz, .channels = info->channels, .format = major | subtype};
    return subtype && sf_format_check(&facts);
}

/// Bytes of one sample in the file; for an encoding of another kind the smallest, so that limits are not met too early.
static int sample_bytes(wt_sample_format sample)
{
    static const int bytes[] = {1, 1, 2, 3, 4, 4, 8};
    return bytes[sample];
}

/// A WAV header counts in 32 bits, RF64 in 64; the plain header is defined for mono and stereo only, and is the one
/// that all programs read. So a recording of more channels begins as RF64 with room for either header, and is a WAV in
/// the end when it has not grown beyond that.
static int widen_wav(int subtype, const wt_audio_info *info, const wt_audio_info *source, bool recording)
{
    if (recording && info->channels > 2 && possible(SF_FORMAT_RF64, subtype, info)) return SF_FORMAT_RF64;
    const double n_frames = source->n_frames > 0 ? (double)source->n_frames * info->rate_hz / source->rate_hz : 0;
    if (n_frames * info->channels * sample_bytes(wt__audio_sample_of(subtype)) > (double)wav_limit_bytes)
        return SF_FORMAT_RF64;
    return info->channels > 2 && possible(SF_FORMAT_WAVEX, subtype, info) ? SF_FORMAT_WAVEX : SF_FORMAT_WAV;
}

/// libsndfile's format word: what was asked for, else the source's encoding, else the best that the format has.
static wt_status choose_format(const char *path, const wt_audio_writer_config *config, const wt_audio_info *info,
                               int *format)
{
    const char *name = config->format ? config->format : wt__audio_extension(path);
    if (!strcmp(path, "-")) name = "raw";
    int major = wt__audio_major(name);
    if (!*name)
        return wt_fail(WT_ERR_BAD_ARG, "%s: no extension says the format, want wav, flac, ogg, mp3, aiff, ...", path);
    if (!major)
        return wt_fail(WT_ERR_BAD_ARG, "%s: '%s' is no audio format, want wav, flac, ogg, mp3, aiff, ...", path, name);

    const wt_audio_info source = config->source ? wt_audio_reader_get_info(config->source) : (wt_audio_info){0};
    int asked = wt__audio_subtype(config->sample);
    if (config->sample == WT_SAMPLE_S8 && !possible(major, asked, info)) asked = SF_FORMAT_PCM_U8;
    const int opus = !strcasecmp(name, "opus") ? SF_FORMAT_OPUS : 0;
    const int wishes[] = {asked,
                          opus,
                          wt__audio_subtype(source.sample),
                          SF_FORMAT_PCM_24,
                          SF_FORMAT_PCM_16,
                          SF_FORMAT_VORBIS,
                          SF_FORMAT_MPEG_LAYER_III,
                          SF_FORMAT_FLOAT,
                          SF_FORMAT_PCM_S8};
    const size_t n_wishes = asked ? 1 : opus ? 2 : sizeof wishes / sizeof *wishes; // no second best for what was asked
    for (size_t k = 0; k < n_wishes; k++) {
        if (!possible(major, wishes[k], info)) continue;
        if (major == SF_FORMAT_WAV) major = widen_wav(wishes[k], info, &source, config->recording);
        *format = major | wishes[k];
        return WT_OK;
    }
    return wt_fail(WT_ERR_BAD_ARG, "%s: %s cannot hold %d channels at %d Hz as %s", path, name, info->channels,
                   info->rate_hz, asked ? wt_sample_format_name(config->sample) : "any encoding libsndfile writes");
}

/// How samples are rounded on the way: bits, dither, clipping, the size limit.
static void prepare_samples(wt_audio_writer *w, const wt_audio_writer_config *config, int format)
{
    static const int bits[] = {0, 8, 16, 24, 32, 0, 0};
    w->bits = bits[w->info.sample];
    w->dither = w->bits && w->bits < 32 && !config->no_dither;
    w->clip = w->info.sample != WT_SAMPLE_F32 && w->info.sample != WT_SAMPLE_F64;
    w->seed = config->dither_seed;
    int major = format & SF_FORMAT_TYPEMASK;
    w->limit_bytes = major == SF_FORMAT_WAV || major == SF_FORMAT_WAVEX ? wav_limit_bytes : INT64_MAX;
}

static void copy_tags(SNDFILE *file, const wt_audio_reader *source)
{
    for (int tag = SF_STR_FIRST; source && tag <= SF_STR_LAST; tag++) {
        const char *text = tag == SF_STR_SOFTWARE ? NULL : wt__audio_reader_tag(source, tag);
        if (text) sf_set_string(file, tag, text); // a format without this tag leaves it out
    }
}

/// What an encoding that is bound to some rates wants of another one.
static const char *wanted_rates(int format, int rate_hz)
{
    static const struct {
        int encoding, rates_hz[10];
        const char *sentence;
    } bound[] = {
        {SF_FORMAT_OPUS, {8000, 12000, 16000, 24000, 48000}, ", want 8000, 12000, 16000, 24000 or 48000 Hz"},
        {SF_FORMAT_MPEG_LAYER_III,
         {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000},
         ", want 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 or 48000 Hz"},
    };
    for (size_t b = 0; b < sizeof bound / sizeof *bound; b++) {
        if ((format & SF_FORMAT_SUBMASK) != bound[b].encoding) continue;
        for (const int *known = bound[b].rates_hz; *known; known++)
            if (*known == rate_hz) return "";
        return bound[b].sentence;
    }
    return "";
}

static wt_status start_sndfile(wt_audio_writer *w, const char *path, const wt_audio_writer_config *config, int format)
{
    SF_VIRTUAL_IO callbacks = {file_length, file_seek, file_read, file_write, file_tell}; // copied
    SF_INFO facts = {.samplerate = w->info.rate_hz, .channels = w->info.channels, .format = format};
    w->file = sf_open_virtual(&callbacks, SFM_WRITE, &facts, w);
    if (w->write_error) return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(w->write_error));
    if (!w->file)
        return wt_fail(WT_ERR_BAD_ARG, "%s: libsndfile does not write %s (%s) with %d channels at %d Hz%s", path,
                       w->info.format, w->info.encoding, w->info.channels, w->info.rate_hz,
                       wanted_rates(format, w->info.rate_hz));
    sf_command(w->file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE); // it holds the time of day: files would differ
    if (w->recording) sf_command(w->file, SFC_RF64_AUTO_DOWNGRADE, NULL, SF_TRUE); // of no effect on others
    double quality = config->lossy_quality;
    if (quality > 0) sf_command(w->file, SFC_SET_VBR_ENCODING_QUALITY, &quality, sizeof quality);
    copy_tags(w->file, config->source);
    return WT_OK;
}

// ---- open

static wt_status resolve_shape(wt_audio_writer *w, const char *path, const wt_audio_writer_config *config)
{
    const wt_audio_info source = config->source ? wt_audio_reader_get_info(config->source) : (wt_audio_info){0};
    wt_audio_info *info = &w->info;
    info->rate_hz = config->rate_hz ? config->rate_hz : source.rate_hz;
    info->channels = config->channels ? config->channels : source.channels;
    if ((unsigned)config->sample > WT_SAMPLE_F64)
        return wt_fail(WT_ERR_BAD_ARG, "%s: sample format %d, want 0..%d", path, (int)config->sample, WT_SAMPLE_F64);
    if (!(config->lossy_quality >= 0 && config->lossy_quality <= 1))
        return wt_fail(WT_ERR_BAD_ARG, "%s: quality %g, want 0..1", path, (double)config->lossy_quality);
    return wt__audio_check_shape(WT_ERR_BAD_ARG, path, info->rate_hz, info->channels);
}

static wt_status take_buffers(wt_audio_writer *w, const char *path)
{
    const size_t count = (size_t)WT__AUDIO_BLOCK * (size_t)w->info.channels;
    w->block = malloc(count * sizeof *w->block);
    w->integers = malloc(count * sizeof *w->integers);
    w->raw = malloc(count * 4);
    return w->block && w->integers && w->raw ? WT_OK : no_memory(path);
}

static wt_status open_output(wt_audio_writer *w, const char *path, const wt_audio_writer_config *config)
{
    wt_status status = resolve_shape(w, path, config);
    if (status) return status;
    int format = 0;
    status = choose_format(path, config, &w->info, &format);
    if (status) return status;
    wt__audio_describe(&w->info, format);
    w->info.file_rate_hz = w->info.rate_hz;
    prepare_samples(w, config, format);
    const bool is_raw = (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RAW;
    if (is_raw && !wt__raw_bytes(w->info.sample))
        return wt_fail(WT_ERR_BAD_ARG, "%s: raw PCM as %s, want s16, s24, s32 or f32", path,
                       wt_sample_format_name(w->info.sample));
    status = take_buffers(w, path);
    if (status) return status;
    if (!strcmp(path, "-")) {
        struct stat what;
        w->fd = STDOUT_FILENO;
        w->most_bytes = !fstat(w->fd, &what) && S_ISREG(what.st_mode) ? SIZE_MAX : PIPE_BUF;
        return WT_OK;
    }
    status = wt__atomic_file_open(path, &w->output);
    if (status) return status;
    w->fd = w->output.fd;
    if (config->source && w->output.replaces &&
        wt__audio_reader_is_file(config->source, w->output.device, w->output.inode))
        return wt_fail(WT_ERR_BAD_ARG, "%s: is the input itself, want another output", path);
    return is_raw ? WT_OK : start_sndfile(w, path, config, format);
}

wt_status wt_audio_writer_open(const char *path, const wt_audio_writer_config *config, wt_audio_writer **writer)
{
    *writer = NULL;
    if (!path || !*path) return wt_fail(WT_ERR_BAD_ARG, "audio file: the path is empty");
    wt_audio_writer *w = calloc(1, sizeof *w);
    if (!w) return no_memory(path);
    w->sync = config->sync;
    w->recording = config->recording;
    w->path = strdup(path);
    wt_status status = w->path ? open_output(w, path, config) : no_memory(path);
    if (status) {
        wt_audio_writer_discard(w);
        return status;
    }
    *writer = w;
    return WT_OK;
}

wt_audio_info wt_audio_writer_get_info(const wt_audio_writer *w)
{
    return w->info;
}

// ---- samples

/// lowbias32: an integer hash whose output passes tests of avalanche bias. Source: Chris Wellons, Prospecting for Hash
/// Functions, 2018 (public domain).
WT_INLINE uint32_t hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/// Round to `bits` bits, left-aligned. TPDF dither: the sum of two uniform numbers of 1 LSB width makes mean and power
/// of the error independent of the signal (Lipshitz, Wannamaker, Vanderkooy, Quantization and Dither, JAES 40, 1992).
/// The numbers are the halves of a hash of the sample's index, so blocks may be cut anywhere. Held at full scale.
WT_CLONES static void quantise(const float *in, int32_t *out, size_t count, int bits, bool dither, uint32_t seed,
                               uint64_t index)
{
    const double scale = ldexp(1, bits - 1), top = scale - 1;
    const double width = dither ? 0x1p-16 : 0, centre = dither ? 65535 * 0x1p-16 : 0;
    const int shift = 32 - bits;
    seed ^= (uint32_t)(index >> 32) * 0x9e3779b9u;
    const uint32_t first = (uint32_t)index;
    for (size_t n = 0; n < count; n++) {
        uint32_t random = hash(first + (uint32_t)n + seed * 0x85ebca6bu);
        double tpdf = (double)(int32_t)((random >> 16) + (random & 0xffff)) * width - centre;
        double value = floor((double)in[n] * scale + tpdf + 0.5);
        value = value > top ? top : value < -scale ? -scale : value;
        out[n] = (int32_t)((uint32_t)(int32_t)value << shift);
    }
}

WT_CLONES static int64_t count_clipped(const float *in, size_t count)
{
    int64_t n_clipped = 0;
    for (size_t n = 0; n < count; n++) n_clipped += in[n] > 1 || in[n] < -1;
    return n_clipped;
}

static void hold_at_full_scale(float *samples, size_t count)
{
    for (size_t n = 0; n < count; n++) samples[n] = samples[n] > 1 ? 1 : samples[n] < -1 ? -1 : samples[n];
}

static wt_status write_raw(wt_audio_writer *w, size_t count)
{
    const size_t bytes = (size_t)wt__raw_bytes(w->info.sample), size = count * bytes;
    const void *words = w->bits ? (const void *)w->integers : w->block;
    wt__raw_from_int((int)bytes, words, w->raw, count);
    for (size_t done = 0; done < size;) {
        size_t n = size - done;
        if (w->fd == STDOUT_FILENO) { // a reader that stops reading must not make us deaf to signals
            if (n > w->most_bytes) n = w->most_bytes; // as much room as a pipe has when poll calls it ready
            if (wt_interrupted()) {
                w->write_error = EINTR;
                return wt_fail(WT_ERR_CANCELLED, "%s: interrupted", w->path);
            }
            struct pollfd ready = {.fd = w->fd, .events = POLLOUT};
            if (poll(&ready, 1, 200) == 0) continue;
        }
        ssize_t put = write(w->fd, w->raw + done, n);
        if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (put < 0) {
            w->write_error = errno;
            break;
        }
        done += (size_t)put;
    }
    return WT_OK;
}

/// n_frames (at most WT__AUDIO_BLOCK) of w->block, interleaved.
static wt_status write_block(wt_audio_writer *w, int n_frames)
{
    const size_t channels = (size_t)w->info.channels, count = (size_t)n_frames * channels;
    w->info.n_repaired_samples += wt__audio_repair(w->block, count);
    if (w->clip) w->info.n_clipped_samples += count_clipped(w->block, count);
    if (w->bits)
        quantise(w->block, w->integers, count, w->bits, w->dither, w->seed, (uint64_t)w->info.n_frames * channels);
    else if (w->clip)
        hold_at_full_scale(w->block, count);
    w->info.n_frames += n_frames;
    w->info.file_frames = w->info.n_frames;
    if (!w->file) return write_raw(w, count);
    sf_count_t put =
        w->bits ? sf_writef_int(w->file, w->integers, n_frames) : sf_writef_float(w->file, w->block, n_frames);
    if (put != n_frames && !w->write_error) w->write_error = EIO;
    return WT_OK;
}

static wt_status write_failure(const wt_audio_writer *w)
{
    return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s%s", w->path, strerror(w->write_error),
                   w->recording ? "; what came before is kept" : "");
}

wt_status wt_audio_writer_write(wt_audio_writer *w, const float *in, int n_frames, size_t stride)
{
    const size_t channels = (size_t)w->info.channels;
    if (!stride) stride = n_frames > 0 ? (size_t)n_frames : 0;
    if (n_frames < 0 || stride < (size_t)n_frames)
        return wt_fail(WT_ERR_BAD_ARG, "%s: block of %d frames in rows of %zu", w->path, n_frames, stride);
    for (int at = 0; at < n_frames && !w->write_error; at += WT__AUDIO_BLOCK) {
        int now = n_frames - at < WT__AUDIO_BLOCK ? n_frames - at : WT__AUDIO_BLOCK;
        for (size_t c = 0; c < channels; c++)
            for (int n = 0; n < now; n++) w->block[(size_t)n * channels + c] = in[c * stride + (size_t)(at + n)];
        wt_status status = write_block(w, now);
        if (status) return status;
    }
    const int64_t bytes = w->info.n_frames * (int64_t)channels * sample_bytes(w->info.sample);
    if (bytes > w->limit_bytes && !w->write_error) w->write_error = EFBIG;
    return w->write_error ? write_failure(w) : WT_OK;
}

// ---- the end

static void destroy(wt_audio_writer *w)
{
    if (w->file) sf_close(w->file);
    wt__atomic_file_discard(&w->output);
    free(w->path);
    free(w->block);
    free(w->integers);
    free(w->raw);
    free(w);
}

void wt_audio_writer_discard(wt_audio_writer *w)
{
    if (w) destroy(w);
}

wt_status wt_audio_writer_commit(wt_audio_writer *w)
{
    const int failed = w->write_error;
    if (w->recording) w->write_error = 0; // a header that is written again finds its room
    if (w->file) sf_close(w->file);
    w->file = NULL;
    if (failed) w->write_error = failed;
    wt_status status = w->write_error ? write_failure(w) : WT_OK;
    if ((!status || w->recording) && w->output.temporary) {
        const wt_status renamed = wt__atomic_file_commit(&w->output, w->sync);
        if (renamed) status = renamed;
    }
    destroy(w);
    return status;
}
