#include "audio_format.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <warptone/simd.h>

// ---- names

static const char *const sample_names[] = {"default", "s8", "s16", "s24", "s32", "f32", "f64"};
enum { N_SAMPLE_FORMATS = sizeof sample_names / sizeof *sample_names };

static const int subtypes[N_SAMPLE_FORMATS] = {
    0, SF_FORMAT_PCM_S8, SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT, SF_FORMAT_DOUBLE};

wt_sample_format wt_sample_format_of_name(const char *name)
{
    for (int f = 1; name && f < N_SAMPLE_FORMATS; f++)
        if (!strcmp(name, sample_names[f])) return (wt_sample_format)f;
    return WT_SAMPLE_DEFAULT;
}

const char *wt_sample_format_name(wt_sample_format format)
{
    return (unsigned)format < N_SAMPLE_FORMATS ? sample_names[format] : "unknown";
}

int wt__audio_subtype(wt_sample_format format)
{
    return (unsigned)format < N_SAMPLE_FORMATS ? subtypes[format] : 0;
}

wt_sample_format wt__audio_sample_of(int subtype)
{
    if (subtype == SF_FORMAT_PCM_U8) return WT_SAMPLE_S8;
    if (subtype == SF_FORMAT_ALAC_16) return WT_SAMPLE_S16;
    if (subtype == SF_FORMAT_ALAC_20 || subtype == SF_FORMAT_ALAC_24) return WT_SAMPLE_S24;
    if (subtype == SF_FORMAT_ALAC_32) return WT_SAMPLE_S32;
    for (int f = 1; f < N_SAMPLE_FORMATS; f++)
        if (subtype == subtypes[f]) return (wt_sample_format)f;
    return WT_SAMPLE_DEFAULT;
}

/// Extensions people use, first the one that names the format. Those of the last group also belong to files of other
/// kinds (MATLAB data, Musepack, pictures): such files are read when they are named, not when a folder is searched.
static const struct {
    int major;
    const char *extensions[5];
    bool ambiguous;
} formats[] = {
    {SF_FORMAT_WAV, {"wav", "wave"}, false},
    {SF_FORMAT_FLAC, {"flac"}, false},
    {SF_FORMAT_OGG, {"ogg", "oga", "opus"}, false},
    {SF_FORMAT_MPEG, {"mp3", "mp2", "mp1", "mpga"}, false},
    {SF_FORMAT_AIFF, {"aiff", "aif", "aifc", "aiffc"}, false},
    {SF_FORMAT_CAF, {"caf"}, false},
    {SF_FORMAT_W64, {"w64"}, false},
    {SF_FORMAT_RF64, {"rf64", "bwf"}, false},
    {SF_FORMAT_AU, {"au", "snd"}, false},
    {SF_FORMAT_VOC, {"voc"}, false},
    {SF_FORMAT_NIST, {"nist", "sph"}, false},
    {SF_FORMAT_RAW, {"raw", "pcm"}, true},
    {SF_FORMAT_IRCAM, {"sf", "ircam"}, true},
    {SF_FORMAT_SVX, {"iff", "svx", "8svx"}, true},
    {SF_FORMAT_MAT4, {"mat4"}, true},
    {SF_FORMAT_MAT5, {"mat", "mat5"}, true},
    {SF_FORMAT_PVF, {"pvf"}, true},
    {SF_FORMAT_HTK, {"htk"}, true},
    {SF_FORMAT_AVR, {"avr"}, true},
    {SF_FORMAT_WVE, {"wve"}, true},
    {SF_FORMAT_MPC2K, {"mpc"}, true},
};

enum { N_FORMATS = sizeof formats / sizeof *formats };

const char *wt__audio_extension(const char *path)
{
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    return dot ? dot + 1 : "";
}

/// Index into `formats`, -1 = unknown.
static int find_format(const char *name)
{
    for (int f = 0; f < N_FORMATS; f++)
        for (int e = 0; e < 5 && formats[f].extensions[e]; e++)
            if (!strcasecmp(name, formats[f].extensions[e])) return f;
    return -1;
}

int wt__audio_major(const char *name)
{
    const int f = find_format(name);
    return f < 0 ? 0 : formats[f].major;
}

bool wt_audio_name_known(const char *path)
{
    const int f = find_format(wt__audio_extension(path));
    return f >= 0 && !formats[f].ambiguous;
}

void wt__audio_describe(wt_audio_info *info, int sndfile_format)
{
    int major = sndfile_format & SF_FORMAT_TYPEMASK, subtype = sndfile_format & SF_FORMAT_SUBMASK;
    if (major == SF_FORMAT_WAVEX) major = SF_FORMAT_WAV;
    SF_FORMAT_INFO words = {.format = subtype};
    sf_command(NULL, SFC_GET_FORMAT_INFO, &words, sizeof words);
    snprintf(info->encoding, sizeof info->encoding, "%s", words.name ? words.name : "unknown encoding");

    const char *format = "other";
    for (int f = 0; f < N_FORMATS; f++)
        if (formats[f].major == major) format = formats[f].extensions[0];
    snprintf(info->format, sizeof info->format, "%s", format);
    info->sample = wt__audio_sample_of(subtype);
}

wt_status wt__audio_check_shape(wt_status status, const char *path, int64_t rate_hz, int64_t channels)
{
    if (channels < 1 || channels > WT_AUDIO_MAX_CHANNELS)
        return wt_fail(status, "%s: %lld channels, want 1..%d", path, (long long)channels, WT_AUDIO_MAX_CHANNELS);
    if (rate_hz < WT_AUDIO_MIN_RATE_HZ || rate_hz > WT_AUDIO_MAX_RATE_HZ)
        return wt_fail(status, "%s: rate %lld Hz, want %d..%d", path, (long long)rate_hz, WT_AUDIO_MIN_RATE_HZ,
                       WT_AUDIO_MAX_RATE_HZ);
    return WT_OK;
}

// ---- raw PCM

int wt__raw_bytes(wt_sample_format format)
{
    switch (format) {
    case WT_SAMPLE_S16:
        return 2;
    case WT_SAMPLE_S24:
        return 3;
    case WT_SAMPLE_S32:
    case WT_SAMPLE_F32:
        return 4;
    default:
        return 0;
    }
}

void wt__raw_to_float(wt_sample_format format, const unsigned char *raw, float *out, size_t count)
{
    const int bytes = wt__raw_bytes(format);
    for (size_t n = 0; n < count; n++, raw += bytes) {
        uint32_t word = 0; // left-aligned: the first byte of the file is the least significant of the sample's
        for (int b = 0; b < bytes; b++) word |= (uint32_t)raw[b] << (8 * (4 - bytes + b));
        if (format == WT_SAMPLE_F32)
            memcpy(&out[n], &word, sizeof word);
        else
            out[n] = (float)(int32_t)word * 0x1p-31f;
    }
}

void wt__raw_from_int(int bytes, const int32_t *in, unsigned char *raw, size_t count)
{
    for (size_t n = 0; n < count; n++)
        for (int b = 0; b < bytes; b++) *raw++ = (unsigned char)((uint32_t)in[n] >> (8 * (4 - bytes + b)));
}

WT_CLONES int64_t wt__audio_repair(float *samples, size_t count)
{
    const uint32_t exponent = 0x7f800000; // all ones: infinite or NaN; none: zero or denormal
    int64_t n_repaired = 0;
    for (size_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, &samples[n], sizeof bits);
        n_repaired += (bits & exponent) == exponent;
        bits = (bits & exponent) == exponent || !(bits & exponent) ? 0 : bits;
        memcpy(&samples[n], &bits, sizeof bits);
    }
    return n_repaired;
}

// ---- headers
//
// RIFF, RF64 and AIFF are lists of chunks: four letters, a 32-bit size, the content, padded to an even length. Format
// WAVE: "fmt " {u16 code, u16 channels, u32 rate, ...}, "data". AIFF: "COMM" {u16 channels, u32 frames, u16 bits,
// 80-bit float rate}, "SSND" {u32 offset, u32 block, samples}. Source: Microsoft and IBM, Multimedia Programming
// Interface 1.0, 1991; Apple, AIFF 1.3, 1989.

static uint32_t word_at(const unsigned char *at, bool big)
{
    return big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
               : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static int half_at(const unsigned char *at, bool big)
{
    return big ? at[0] << 8 | at[1] : at[1] << 8 | at[0];
}

/// An 80-bit IEEE extended number as an integer: 15 bits of exponent, 64 of mantissa.
static int64_t extended_at(const unsigned char *at)
{
    int exponent = (half_at(at, true) & 0x7fff) - 16383 - 31;
    double value = ldexp((double)word_at(at + 2, true), exponent);
    return value < 1e15 ? (int64_t)value : INT64_MAX;
}

static void read_format(wt__audio_header *header, const unsigned char *chunk, bool big, bool aiff)
{
    header->has_format = true;
    header->channels = half_at(chunk + (aiff ? 0 : 2), big);
    header->rate_hz = aiff ? extended_at(chunk + 8) : word_at(chunk + 4, big);
}

static void walk_chunks(int fd, int64_t file_bytes, bool big, bool aiff, wt__audio_header *header)
{
    unsigned char chunk[8 + 18];
    int64_t at = 12;
    for (int count = 0; count < 1000 && at + 8 <= file_bytes; count++) {
        memset(chunk, 0, sizeof chunk);
        if (pread(fd, chunk, sizeof chunk, at) < 8) return;
        int64_t size = word_at(chunk + 4, big);
        if (!memcmp(chunk, aiff ? "COMM" : "fmt ", 4)) read_format(header, chunk + 8, big, aiff);
        if (!memcmp(chunk, aiff ? "SSND" : "data", 4)) {
            // programs that write into a pipe leave 0 or one of the largest numbers here; RF64 keeps the size elsewhere
            bool unknown = size == 0 || size == 0xffffffff || (size >= 0x7ffff000 && size <= 0x7fffffff);
            header->data_bytes = unknown ? -1 : size;
            header->data_present = file_bytes - at - 8;
            return;
        }
        at += 8 + size + (size & 1);
    }
}

wt__audio_header wt__audio_peek(int fd, int64_t file_bytes)
{
    wt__audio_header header = {.data_bytes = -1};
    unsigned char magic[12] = {0};
    if (pread(fd, magic, sizeof magic, 0) < 4) return header;
    const bool riff = !memcmp(magic, "RIFF", 4) || !memcmp(magic, "RF64", 4), rifx = !memcmp(magic, "RIFX", 4);
    const bool form = !memcmp(magic, "FORM", 4) && !memcmp(magic + 8, "AIF", 3);
    if (form || ((riff || rifx) && !memcmp(magic + 8, "WAVE", 4))) {
        strcpy(header.kind, form ? "AIFF" : "WAVE");
        walk_chunks(fd, file_bytes, rifx || form, form, &header);
    } else if (!memcmp(magic, "fLaC", 4)) {
        strcpy(header.kind, "FLAC");
    } else if (!memcmp(magic, "OggS", 4)) {
        strcpy(header.kind, "Ogg");
    }
    return header;
}
