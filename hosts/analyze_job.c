#include "analyze_tiles.h"
#include "atomic_file.h"
#include "crew.h"
#include "interrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warptone/clock.h>
#include <warptone/pcm.h>
#include <warptone/resample.h>

// ---- formats

static const struct {
    const char *name;
    analyze_format format;
} formats[] = {
    {"npy", ANALYZE_NPY},    {"npz", ANALYZE_NPZ},   {"csv", ANALYZE_CSV},   {"json", ANALYZE_JSON},
    {"png", ANALYZE_PNG},    {"wav", ANALYZE_AUDIO}, {"flac", ANALYZE_AUDIO}, {"ogg", ANALYZE_AUDIO},
    {"opus", ANALYZE_AUDIO}, {"mp3", ANALYZE_AUDIO}, {"aiff", ANALYZE_AUDIO},
};

static bool only_audio(const analyze_options *options)
{
    return options->n_features == 1 && options->features[0]->audio;
}

wt_status analyze_format_of(const char *path, const char *extension, analyze_options *options)
{
    for (size_t k = 0; extension && k < sizeof formats / sizeof *formats; k++)
        if (!strcasecmp(formats[k].name, extension)) {
            options->format = formats[k].format;
            options->extension = formats[k].name;
            if (options->format != ANALYZE_AUDIO || only_audio(options)) return WT_OK;
            return wt_fail(WT_ERR_BAD_ARG,
                           "%s: %s holds audio, want one feature that makes signals, as hpss, filter or griffin_lim do",
                           path, extension);
        }
    if (!extension)
        return wt_fail(WT_ERR_BAD_ARG, "%s: no extension says the format, want npy, npz, csv, json or png", path);
    return wt_fail(WT_ERR_BAD_ARG,
                   "%s: format \"%s\", want npy, npz, csv, json, png, or an audio format for a feature that is audio",
                   path, extension);
}

// ---- one file

void analyze_fold(float *rows, int channels, int64_t n, int64_t stride)
{
    enum { BLOCK = 1 << 20 };
    const float *in[WT_AUDIO_MAX_CHANNELS];
    for (int64_t t = 0; t < n; t += BLOCK) {
        for (int c = 0; c < channels; c++) in[c] = rows + c * stride + t;
        wt_pcm_to_mono(in, channels, n - t < BLOCK ? (int)(n - t) : BLOCK, rows + t);
    }
}

/// All of [channels][n_in] through a resampler into [channels][n_out], zeros behind what it gives.
static void resample_rows(wt_resample *r, const wt_audio *audio, float *out, int64_t n_out)
{
    enum { BLOCK = 1 << 20 };
    const float *in_rows[WT_AUDIO_MAX_CHANNELS];
    float *out_rows[WT_AUDIO_MAX_CHANNELS];
    int64_t n_read = 0, n_written = 0;
    for (int n_got = 1; n_written < n_out && n_got;) {
        const int room = (int)(n_out - n_written < BLOCK ? n_out - n_written : BLOCK);
        const int left = (int)(audio->n_frames - n_read < BLOCK ? audio->n_frames - n_read : BLOCK);
        int n_used = 0;
        for (int c = 0; c < audio->channels; c++) {
            in_rows[c] = audio->samples + c * audio->n_frames + n_read;
            out_rows[c] = out + c * n_out + n_written;
        }
        if (left) wt_resample_process(r, in_rows, left, &n_used, out_rows, room, &n_got);
        else wt_resample_drain(r, out_rows, room, &n_got);
        n_read += n_used, n_written += n_got;
        if (left && n_used) n_got = 1; // more may come of what follows
    }
    for (int c = 0; c < audio->channels; c++)
        memset(out + c * n_out + n_written, 0, sizeof *out * (size_t)(n_out - n_written));
}

/// As librosa has it: ceil(n out / in) frames that begin at the same time.
static wt_status resample(wt_audio *audio, int rate_hz, wt_resample_quality quality)
{
    wt_resample *r;
    const wt_resample_config config = {.in_hz = audio->rate_hz, .out_hz = rate_hz, .channels = audio->channels,
                                       .quality = quality};
    wt_status status = wt_resample_create(&config, &r);
    if (status) return status;
    const int64_t n_out = wt_resample_out_frames(&config, audio->n_frames);
    float *out = malloc(sizeof *out * (size_t)audio->channels * (size_t)n_out);
    if (out) resample_rows(r, audio, out, n_out);
    wt_resample_destroy(r);
    if (!out) return wt_fail(WT_ERR_NO_MEMORY, "analyze: %lld frames", (long long)n_out);
    free(audio->samples);
    audio->samples = out, audio->n_frames = n_out, audio->rate_hz = rate_hz;
    return WT_OK;
}

/// The signal as the features see it: the mean of the channels before the change of rate, which costs more.
static wt_status load(const analyze_options *options, const char *path, wt_audio *audio)
{
    wt_status status = wt_audio_load(path, 0, audio);
    if (!status && !options->keep_channels && audio->channels > 1) {
        analyze_fold(audio->samples, audio->channels, audio->n_frames, audio->n_frames);
        audio->channels = 1;
    }
    if (!status && options->rate_hz && options->rate_hz != audio->rate_hz)
        status = resample(audio, options->rate_hz, options->effect.quality);
    return status;
}

wt_status analyze_refuse_input(const char *input, const char *path)
{
    struct stat in, out;
    const bool same =
        stat(input, &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
    return same ? wt_fail(WT_ERR_BAD_ARG, "%s: is the input itself, want another output", path) : WT_OK;
}

/// Of several parts "out/a.wav" becomes "out/a-harmonic.wav". Caller frees; NULL without memory.
static char *part_path(const analyze_report *report, const char *output, const char *part)
{
    char *path;
    if (report->result->n_arrays == 1) return strdup(output);
    const char *slash = strrchr(output, '/'), *dot = strrchr(output, '.');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - output) : strlen(output);
    return asprintf(&path, "%.*s-%s%s", (int)stem, output, part, output + stem) < 0 ? NULL : path;
}

wt_status analyze_part_open(const analyze_report *report, const analyze_array *part, const char *output,
                            wt_audio_writer **writer)
{
    const char *extension = report->options->extension;
    const bool floats = !strcmp(extension, "wav") || !strcmp(extension, "aiff"); // as they are, beyond full scale too
    const wt_audio_writer_config config = {.rate_hz = report->rate_hz, .channels = report->channels,
                                           .format = extension, .sample = floats ? WT_SAMPLE_F32 : WT_SAMPLE_DEFAULT};
    char *path = part_path(report, output, part->name);
    *writer = NULL;
    if (!path) return wt_fail(WT_ERR_NO_MEMORY, "analyze: paths");
    wt_status status = analyze_refuse_input(report->input, path);
    if (!status) status = wt_audio_writer_open(path, &config, writer);
    free(path);
    return status;
}

static wt_status write_part(const analyze_report *report, const analyze_array *part, const char *output)
{
    enum { BLOCK = 1 << 16 };
    const int64_t count = analyze_n_columns(part);
    wt_audio_writer *writer;
    wt_status status = analyze_part_open(report, part, output, &writer);
    if (status) return status;
    for (int64_t t = 0; t < count && !status; t += BLOCK) {
        const int n = count - t < BLOCK ? (int)(count - t) : BLOCK;
        status = wt_audio_writer_write(writer, (const float *)part->data + t, n, (size_t)count);
    }
    if (!status) return wt_audio_writer_commit(writer);
    wt_audio_writer_discard(writer);
    return status;
}

typedef wt_status (*write_function)(const analyze_report *report, FILE *out);

static const write_function writers[] = {[ANALYZE_NPY] = analyze_write_npy, [ANALYZE_NPZ] = analyze_write_npz,
                                         [ANALYZE_CSV] = analyze_write_csv, [ANALYZE_JSON] = analyze_write_json};

static wt_status write_stdout(const analyze_report *report, write_function write)
{
    wt_status status = write(report, stdout);
    if (!status && (fflush(stdout) || ferror(stdout)))
        return wt_fail(WT_ERR_FILE, "standard output: cannot be written: %s", strerror(errno));
    return status;
}

static wt_status write_file(const analyze_report *report, write_function write, const char *path)
{
    wt__atomic_file file;
    wt_status status = wt__atomic_file_open(path, &file);
    if (status) return status;
    const int fd = dup(file.fd);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!out) {
        if (fd >= 0) close(fd);
        status = wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    } else {
        char room[1 << 16]; // small arrays leave at once
        setvbuf(out, room, _IOFBF, sizeof room);
        status = write(report, out);
        const bool bad = ferror(out);
        if ((fclose(out) || bad) && !status)
            status = wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (!status) return wt__atomic_file_commit(&file, false);
    wt__atomic_file_discard(&file);
    return status;
}

wt_status analyze_write_result(const analyze_report *report, const char *output)
{
    const analyze_format format = report->options->format;
    wt_status status = format == ANALYZE_AUDIO ? WT_OK : analyze_refuse_input(report->input, output);
    if (status) return status;
    if (format == ANALYZE_PNG) return analyze_plot(report, output);
    if (format != ANALYZE_AUDIO)
        return strcmp(output, "-") ? write_file(report, writers[format], output)
                                   : write_stdout(report, writers[format]);
    for (int k = 0; k < report->result->n_arrays && !status; k++)
        status = write_part(report, &report->result->arrays[k], output);
    return status;
}

enum { WHOLE_TILES = 64 }; // a signal that is held is at most so many tiles long

static wt_status do_whole(const analyze_options *options, analyze_place *place, process_item *item)
{
    wt_audio audio = {0};
    analyze_result *result = calloc(1, sizeof *result);
    wt_status status = result ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "analyze: arrays");
    analyze_enter(place->clock, ANALYZE_READ);
    if (!status) status = load(options, item->input, &audio);
    analyze_enter(place->clock, ANALYZE_COMPUTE);
    if (!status) {
        const analyze_signal signal = {.options = options, .path = item->input, .pcm = audio.samples,
                                       .n = audio.n_frames, .rate_hz = audio.rate_hz,
                                       .place = place->device ? place : NULL};
        item->audio_s = (double)audio.n_frames / audio.rate_hz;
        item->rate_hz = audio.rate_hz, item->channels = audio.channels;
        process_note_input(item, &audio.info);
        status = analyze_compute(&signal, audio.channels, result);
        if (!status) analyze_note_level(options, &result->level, item);
    }
    if (!status && wt_interrupted()) status = wt_fail(WT_ERR_CANCELLED, "interrupted");
    analyze_enter(place->clock, ANALYZE_WRITE);
    if (!status) {
        const analyze_report report = {.options = options, .result = result, .input = item->input,
                                       .pcm = audio.samples, .n = audio.n_frames, .rate_hz = audio.rate_hz,
                                       .channels = audio.channels};
        status = analyze_write_result(&report, item->output);
    }
    if (result) analyze_result_free(result);
    free(result);
    wt_audio_free(&audio);
    return status;
}

static wt_status do_item(const analyze_options *options, analyze_place *place, process_item *item)
{
    int64_t n;
    const int64_t tile = analyze_tile(options); // a GPU has more room, and is slower in tiles that a thread works on
    const int held = analyze_tiles_are_cheap(options) ? 1 : place->device ? WHOLE_TILES : ANALYZE_HELD;
    analyze_enter(place->clock, ANALYZE_LOOK);
    wt_status status = analyze_length(options, item->input, &n);
    analyze_enter(place->clock, ANALYZE_COMPUTE);
    if (status) return status;
    if (n > (analyze_writes_tiles(options, item->output) ? held : WHOLE_TILES) * tile)
        return analyze_in_tiles(options, place, item, n);
    return do_whole(options, place, item);
}

void analyze_do_item(const analyze_options *options, analyze_place *place, process_item *item)
{
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    const wt_status status = do_item(options, place, item);
    if (status) process_note_error(item, status);
    item->wall_s = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9;
}

void analyze_note_level(const analyze_options *options, const wt_normalize_result *level, process_item *item)
{
    static const double told_db = 0.1; // meters of EBU Tech 3341 may differ by as much
    const bool by_loudness = options->effect.by == WT_NORMALIZE_LOUDNESS;
    const bool true_peak = by_loudness && !options->ops.loudness.no_true_peak;
    const double met_db = level->level_db + level->gain_db;
    if (!(level->missed_db >= told_db)) return;
    snprintf(item->note, sizeof item->note, "normalize met %.1f %s, want %.1f: its %s is at the ceiling of %g %s",
             met_db, by_loudness ? "LUFS" : "dB", met_db + level->missed_db, true_peak ? "true peak" : "largest sample",
             options->effect.ceiling_db, true_peak ? "dBTP" : "dB");
}

void analyze_item_done(process_run *run, process_item *item)
{
    if (!item->status) process_note_warnings(item, true, "count as");
    item->finished = true;
    atomic_fetch_add(&run->done_milliseconds, (long long)(item->audio_s * 1000));
    atomic_fetch_add(&run->n_done, 1);
}

// ---- many files

typedef struct shift {
    const analyze_options *options;
    process_run *run;
    analyze_times *times;
} shift;

/// A file at a time, by the worker itself.
static void work(void *user, int worker)
{
    (void)worker;
    const shift *s = user;
    analyze_clock clock = analyze_clock_start();
    analyze_place nowhere = {.device = NULL, .clock = &clock};
    for (int k; !wt_interrupted() && (k = atomic_fetch_add(&s->run->next, 1)) < s->run->n_items;) {
        process_item *item = &s->run->items[k];
        if (item->skipped) {
            atomic_fetch_add(&s->run->n_done, 1);
        } else {
            analyze_do_item(s->options, &nowhere, item);
            analyze_item_done(s->run, item);
        }
    }
    analyze_clock_stop(&clock, s->times);
}

wt_status analyze_run(const analyze_options *options, process_run *run, void (*tick)(void *user), void *user,
                      analyze_times *times)
{
    if (options->backend != WT_BACKEND_CUDA) {
        const int n = options->n_jobs < run->n_items ? options->n_jobs : run->n_items;
        return wt__crew_run("analyze", n > 0 ? n : 1, work, &(shift){options, run, times}, tick, user);
    }
    analyze_batches *batches;
    wt_status status = analyze_batches_make(options, run, tick, user, times, &batches);
    if (!status) status = analyze_line_run(batches, tick, user, times);
    analyze_batches_free(batches);
    return status;
}
