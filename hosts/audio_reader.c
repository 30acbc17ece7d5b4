// source (libsndfile, or raw PCM from a descriptor) -> repaired interleaved block -> [libsamplerate] -> planar rows.
//
// libsamplerate's sinc converters have no delay: output frame k stands at input time k / ratio, and comes out once the
// half filter behind that time is fed. So after the last frame zeros are fed until round(frames * ratio) are out; its
// own end-of-input flag gives one frame more or less, depending on the ratio.
#include "audio_reader.h"
#include "audio_format.h"
#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wt_audio_reader {
    char *path;
    wt_audio_info info;
    dev_t device; // of the open file: a writer must not write over it
    ino_t inode;

    SNDFILE *file; // NULL for raw PCM
    int raw_fd;    // -1 for libsndfile, else read directly
    wt_sample_format raw_sample;
    unsigned char *raw; // [block][channels] raw samples
    int64_t frames_in;  // delivered by the source

    float *block; // [WT__AUDIO_BLOCK][channels]: source frames, interleaved
    float *mixed; // [WT__AUDIO_BLOCK][channels]: resampled frames, interleaved; only with `converter`
    SRC_STATE *converter;
    double ratio;
    int block_at, block_end;              // frames of `block` not yet converted
    int64_t frames_out, frames_out_total; // the total is -1 until the source has ended
    bool ended;
};

// ---- opening

static wt_status not_a_file(const char *path, mode_t mode)
{
    if (S_ISDIR(mode)) return wt_fail(WT_ERR_FILE, "%s: is a folder, want an audio file", path);
    if (S_ISFIFO(mode))
        return wt_fail(WT_ERR_FILE, "%s: is a FIFO, want a regular file; raw PCM is read from standard input", path);
    return wt_fail(WT_ERR_FILE, "%s: is a device or socket, want a regular file", path);
}

/// Opens without waiting for a FIFO's writer. The descriptor belongs to the caller.
static wt_status open_regular(wt_audio_reader *r, int *fd, int64_t *file_bytes)
{
    *fd = open(r->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0) {
        struct stat what;
        if (errno == ENXIO && !stat(r->path, &what)) return not_a_file(r->path, what.st_mode);
        return wt_fail(WT_ERR_FILE, "%s: cannot be opened: %s", r->path, strerror(errno));
    }
    struct stat what;
    if (fstat(*fd, &what)) return wt_fail(WT_ERR_FILE, "%s: cannot be examined: %s", r->path, strerror(errno));
    if (!S_ISREG(what.st_mode)) return not_a_file(r->path, what.st_mode);
    if (what.st_size == 0) return wt_fail(WT_ERR_FORMAT, "%s: is empty", r->path);
    r->device = what.st_dev;
    r->inode = what.st_ino;
    *file_bytes = what.st_size;
    return WT_OK;
}

/// Why libsndfile did not take a file. Its own words lie in a global that threads share, so we look ourselves.
static wt_status refuse_file(const char *path, const wt__audio_header *header)
{
    if (header->has_format) {
        wt_status status = wt__audio_check_shape(WT_ERR_FORMAT, path, header->rate_hz, header->channels);
        if (status) return status;
    }
    if (header->kind[0])
        return wt_fail(WT_ERR_FORMAT, "%s: its %s header is damaged, cut short, or of a kind libsndfile does not read",
                       path, header->kind);
    return wt_fail(WT_ERR_FORMAT, "%s: is not an audio file that libsndfile can read", path);
}

static wt_status no_audio(const wt_audio_reader *r)
{
    return wt_fail(WT_ERR_FORMAT, "%s: has a header and no audio", r->path);
}

static wt_status open_sndfile(wt_audio_reader *r)
{
    int fd = -1;
    int64_t file_bytes = 0;
    wt_status status = open_regular(r, &fd, &file_bytes);
    if (status) {
        if (fd >= 0) close(fd);
        return status;
    }
    const wt__audio_header header = wt__audio_peek(fd, file_bytes);
    SF_INFO facts = {0};
    r->file = sf_open_fd(fd, SFM_READ, &facts, SF_FALSE);
    if (!r->file) {
        close(fd);
        return refuse_file(r->path, &header);
    }
    r->raw_fd = fd; // closed with the reader
    status = wt__audio_check_shape(WT_ERR_FORMAT, r->path, facts.samplerate, facts.channels);
    if (status) return status;
    if (facts.frames <= 0 && header.data_bytes < 0 && header.data_present > 0)
        return wt_fail(WT_ERR_FORMAT,
                       "%s: its header was never finished and promises no audio, but %lld bytes follow it", r->path,
                       (long long)header.data_present);
    if (facts.frames <= 0) return no_audio(r);
    wt__audio_describe(&r->info, facts.format);
    r->info.channels = facts.channels;
    r->info.file_rate_hz = facts.samplerate;
    r->info.file_frames = facts.frames >= SF_COUNT_MAX ? -1 : facts.frames;
    r->info.truncated = header.data_bytes > header.data_present;
    return WT_OK;
}

static wt_status open_raw(wt_audio_reader *r, const wt_audio_reader_config *config)
{
    const int bytes = wt__raw_bytes(config->raw_sample);
    if (config->raw_sample == WT_SAMPLE_DEFAULT)
        return wt_fail(WT_ERR_BAD_ARG, "%s: raw PCM needs a sample format, a rate and a channel count", r->path);
    if (!bytes)
        return wt_fail(WT_ERR_BAD_ARG, "%s: raw PCM as %s, want s16, s24, s32 or f32", r->path,
                       wt_sample_format_name(config->raw_sample));
    wt_status status = wt__audio_check_shape(WT_ERR_BAD_ARG, r->path, config->raw_rate_hz, config->raw_channels);
    if (status) return status;

    const size_t frame_bytes = (size_t)bytes * (size_t)config->raw_channels;
    r->info.file_frames = -1;
    r->raw_fd = STDIN_FILENO;
    if (strcmp(r->path, "-")) {
        int64_t file_bytes = 0;
        status = open_regular(r, &r->raw_fd, &file_bytes);
        if (status) return status;
        r->info.file_frames = file_bytes / (int64_t)frame_bytes;
    }
    r->raw_sample = config->raw_sample;
    r->raw = malloc(WT__AUDIO_BLOCK * frame_bytes);
    if (!r->raw) return wt_fail(WT_ERR_NO_MEMORY, "%s: buffer", r->path);
    wt__audio_describe(&r->info, SF_FORMAT_RAW | wt__audio_subtype(config->raw_sample));
    r->info.channels = config->raw_channels;
    r->info.file_rate_hz = config->raw_rate_hz;
    return WT_OK;
}

static int64_t resampled_frames(const wt_audio_reader *r, int64_t frames)
{
    int64_t total = llround((double)frames * r->ratio);
    return frames > 0 && total < 1 ? 1 : total;
}

static wt_status prepare_rate(wt_audio_reader *r, const wt_audio_reader_config *config)
{
    wt_audio_info *info = &r->info;
    info->rate_hz = config->rate_hz ? config->rate_hz : info->file_rate_hz;
    info->n_frames = info->file_frames;
    wt_status status = wt__audio_check_shape(WT_ERR_BAD_ARG, r->path, info->rate_hz, info->channels);
    if (status) return status;
    r->ratio = (double)info->rate_hz / info->file_rate_hz;
    if (info->rate_hz == info->file_rate_hz) return WT_OK;

    if (!src_is_valid_ratio(r->ratio))
        return wt_fail(WT_ERR_BAD_ARG, "%s: from %d to %d Hz, want a ratio of 1/256 to 256", r->path,
                       info->file_rate_hz, info->rate_hz);
    int error = 0;
    r->converter =
        src_new(config->medium_quality ? SRC_SINC_MEDIUM_QUALITY : SRC_SINC_BEST_QUALITY, info->channels, &error);
    r->mixed = malloc(sizeof(float) * WT__AUDIO_BLOCK * (size_t)info->channels);
    if (!r->converter || !r->mixed) return wt_fail(WT_ERR_NO_MEMORY, "%s: resampler", r->path);
    if (info->file_frames >= 0) info->n_frames = resampled_frames(r, info->file_frames);
    return WT_OK;
}

wt_status wt_audio_reader_open(const char *path, const wt_audio_reader_config *config, wt_audio_reader **reader)
{
    const wt_audio_reader_config none = {0};
    if (!config) config = &none;
    *reader = NULL;
    if (!path || !*path) return wt_fail(WT_ERR_BAD_ARG, "audio file: the path is empty");
    wt_audio_reader *r = calloc(1, sizeof *r);
    if (!r) return wt_fail(WT_ERR_NO_MEMORY, "%s: handle", path);
    r->raw_fd = -1;
    r->frames_out_total = -1;
    wt_status status;
    r->path = strdup(path);
    if (!r->path) {
        status = wt_fail(WT_ERR_NO_MEMORY, "%s: handle", path);
        goto fail;
    }
    status = config->raw_sample || !strcmp(path, "-") ? open_raw(r, config) : open_sndfile(r);
    if (status) goto fail;
    status = prepare_rate(r, config);
    if (status) goto fail;
    r->block = malloc(sizeof(float) * WT__AUDIO_BLOCK * (size_t)r->info.channels);
    if (!r->block) {
        status = wt_fail(WT_ERR_NO_MEMORY, "%s: buffer", path);
        goto fail;
    }
    *reader = r;
    return WT_OK;

fail:
    wt_audio_reader_close(r);
    return status;
}

void wt_audio_reader_close(wt_audio_reader *r)
{
    if (!r) return;
    if (r->file) sf_close(r->file);
    if (r->raw_fd > STDIN_FILENO) close(r->raw_fd);
    if (r->converter) src_delete(r->converter);
    free(r->raw);
    free(r->block);
    free(r->mixed);
    free(r->path);
    free(r);
}

wt_audio_info wt_audio_reader_get_info(const wt_audio_reader *r) { return r->info; }

bool wt__audio_reader_is_file(const wt_audio_reader *r, dev_t device, ino_t inode)
{
    return r->inode && r->device == device && r->inode == inode;
}

const char *wt__audio_reader_tag(const wt_audio_reader *r, int sndfile_string)
{
    return r->file ? sf_get_string(r->file, sndfile_string) : NULL;
}

// ---- the source

/// Read until `size` bytes are there or the input ends, looking at the interrupt flag five times a second.
static wt_status read_bytes(wt_audio_reader *r, unsigned char *bytes, size_t size, size_t *n_bytes)
{
    *n_bytes = 0;
    while (*n_bytes < size) {
        if (wt_interrupted()) return wt_fail(WT_ERR_CANCELLED, "%s: interrupted", r->path);
        struct pollfd ready = {.fd = r->raw_fd, .events = POLLIN};
        int n_ready = poll(&ready, 1, 200);
        if (n_ready == 0 || (n_ready < 0 && errno == EINTR)) continue;
        ssize_t got = n_ready < 0 ? -1 : read(r->raw_fd, bytes + *n_bytes, size - *n_bytes);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", r->path, strerror(errno));
        if (got == 0) break;
        *n_bytes += (size_t)got;
    }
    return WT_OK;
}

/// A file that is piped in would be heard with its header as a click, and compressed ones as noise.
static wt_status refuse_piped_file(const char *path, const unsigned char *bytes, size_t n_bytes)
{
    static const char marks[][5] = {"RIFF", "RF64", "fLaC", "OggS", "FORM", "caff"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks && n_bytes >= 4; k++)
        if (!memcmp(bytes, marks[k], 4))
            return wt_fail(WT_ERR_FORMAT, "%s: begins with %s, as an audio file does; want raw PCM, or the file by name",
                           path, marks[k]);
    return WT_OK;
}

static wt_status raw_frames(wt_audio_reader *r, int n_frames, int *n_read)
{
    const size_t channels = (size_t)r->info.channels;
    const size_t frame_bytes = channels * (size_t)wt__raw_bytes(r->raw_sample);
    size_t n_bytes = 0;
    wt_status status = read_bytes(r, r->raw, (size_t)n_frames * frame_bytes, &n_bytes);
    if (!status && !r->frames_in) status = refuse_piped_file(r->path, r->raw, n_bytes);
    if (status) return status;
    *n_read = (int)(n_bytes / frame_bytes);
    if (n_bytes % frame_bytes) r->info.truncated = true; // a part of a frame at the end
    wt__raw_to_float(r->raw_sample, r->raw, r->block, (size_t)*n_read * channels);
    return WT_OK;
}

/// The source gave `n_read` of `n_wanted` frames: at the end the lengths are known for certain.
static wt_status count_frames(wt_audio_reader *r, int64_t n_wanted, int64_t n_read)
{
    r->frames_in += n_read;
    if (n_read == n_wanted) return WT_OK;
    if (r->file && sf_error(r->file) == SF_ERR_SYSTEM)
        return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", r->path, sf_strerror(r->file));
    r->ended = true;
    if (r->frames_in < r->info.file_frames) r->info.truncated = true;
    r->info.file_frames = r->frames_in;
    r->frames_out_total = resampled_frames(r, r->frames_in);
    r->info.n_frames = r->frames_out_total;
    if (r->frames_in) return WT_OK;
    return r->file ? no_audio(r) : wt_fail(WT_ERR_FORMAT, "%s: is empty", r->path);
}

/// Up to n_frames (at most WT__AUDIO_BLOCK) frames into r->block; fewer only at the end.
static wt_status source_frames(wt_audio_reader *r, int n_frames, int *n_read)
{
    *n_read = 0;
    if (r->ended) return WT_OK;
    if (r->file) {
        *n_read = (int)sf_readf_float(r->file, r->block, n_frames);
    } else {
        wt_status status = raw_frames(r, n_frames, n_read);
        if (status) return status;
    }
    r->info.n_repaired_samples += wt__audio_repair(r->block, (size_t)*n_read * (size_t)r->info.channels);
    return count_frames(r, n_frames, *n_read);
}

wt_status wt_audio_reader_read_packed(wt_audio_reader *r, void *out, int64_t n_frames, int64_t *n_read)
{
    *n_read = 0;
    if (!r->file || r->converter)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %s, want a file at its own rate", r->path,
                       r->file ? "is resampled" : "is raw PCM");
    if (r->ended) return WT_OK;
    const bool integers = r->info.sample == WT_SAMPLE_S16;
    *n_read = integers ? sf_readf_short(r->file, out, n_frames) : sf_readf_float(r->file, out, n_frames);
    if (!integers) r->info.n_repaired_samples += wt__audio_repair(out, (size_t)*n_read * (size_t)r->info.channels);
    return count_frames(r, n_frames, *n_read);
}

// ---- resampling

/// More input for the converter: frames of the source, then zeros.
static wt_status refill(wt_audio_reader *r)
{
    int n_read = 0;
    wt_status status = source_frames(r, WT__AUDIO_BLOCK, &n_read);
    if (status) return status;
    if (n_read == 0) {
        memset(r->block, 0, sizeof(float) * WT__AUDIO_BLOCK * (size_t)r->info.channels);
        n_read = WT__AUDIO_BLOCK;
    }
    r->block_at = 0;
    r->block_end = n_read;
    return WT_OK;
}

/// Up to n_frames (at most WT__AUDIO_BLOCK) resampled frames into r->mixed; fewer only at the end.
static wt_status resampled(wt_audio_reader *r, int n_frames, int *n_read)
{
    const size_t channels = (size_t)r->info.channels;
    *n_read = 0;
    while (*n_read < n_frames) {
        if (r->block_at == r->block_end) {
            wt_status status = refill(r);
            if (status) return status;
        }
        int64_t left = n_frames - *n_read;
        if (r->frames_out_total >= 0 && left > r->frames_out_total - r->frames_out)
            left = r->frames_out_total - r->frames_out;
        if (left == 0) break;
        SRC_DATA work = {.data_in = r->block + (size_t)r->block_at * channels,
                         .input_frames = r->block_end - r->block_at,
                         .data_out = r->mixed + (size_t)*n_read * channels,
                         .output_frames = (long)left,
                         .src_ratio = r->ratio};
        int error = src_process(r->converter, &work);
        if (error) return wt_fail(WT_ERR_STATE, "%s: libsamplerate: %s", r->path, src_strerror(error));
        r->block_at += (int)work.input_frames_used;
        *n_read += (int)work.output_frames_gen;
        r->frames_out += work.output_frames_gen;
    }
    return WT_OK;
}

// ---- blocks

wt_status wt_audio_reader_read(wt_audio_reader *r, float *out, int n_frames, size_t stride, int *n_read)
{
    const size_t channels = (size_t)r->info.channels;
    *n_read = 0;
    if (!stride) stride = n_frames > 0 ? (size_t)n_frames : 0;
    if (n_frames < 0 || stride < (size_t)n_frames)
        return wt_fail(WT_ERR_BAD_ARG, "%s: block of %d frames in rows of %zu", r->path, n_frames, stride);
    while (*n_read < n_frames) {
        int want = n_frames - *n_read, got = 0;
        if (want > WT__AUDIO_BLOCK) want = WT__AUDIO_BLOCK;
        wt_status status = r->converter ? resampled(r, want, &got) : source_frames(r, want, &got);
        if (status) return status;
        const float *from = r->converter ? r->mixed : r->block;
        for (size_t c = 0; c < channels; c++) {
            float *row = out + c * stride + *n_read;
            for (int n = 0; n < got; n++) row[n] = from[(size_t)n * channels + c];
        }
        *n_read += got;
        if (got < want) break;
    }
    for (size_t c = 0; c < channels; c++)
        memset(out + c * stride + *n_read, 0, sizeof(float) * (size_t)(n_frames - *n_read));
    return WT_OK;
}
