#include "backend.h"
#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "process.h"
#include "process_report.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { MAX_CHANGES = 64 };

typedef struct arguments {
    const char *preset, *backend, *raw, *sample, *plot, *set;
    int raw_rate_hz, raw_channels;
    bool json, resume, quiet, dry_run;
    process_options process;
    process_change changes[MAX_CHANGES];
    char *set_copy;
} arguments;

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone process -p PRESET [options] IN... OUT\n\n"
           "Apply a preset's chain to audio files. With one IN, OUT is a file; with several, or a folder, OUT is a\n"
           "folder that mirrors them. `-` as IN or OUT is raw PCM on standard input or output.\n");
    wt_options_print(stdout, options, n);
    printf("\nexamples:\n"
           "  warptone process -p voice-clean in.wav out.wav\n"
           "  warptone process -p podcast-master --format flac episodes/ mastered/\n"
           "  warptone process -p telephone --raw s16 --raw-rate 16000 --raw-channels 1 - - <in.pcm >out.pcm\n");
    return EXIT_OK;
}

static wt_status parse_changes(arguments *a)
{
    if (!a->set) return WT_OK;
    if (!(a->set_copy = strdup(a->set))) return wt_fail(WT_ERR_NO_MEMORY, "process: arguments");
    for (char *rest = a->set_copy, *one; (one = strsep(&rest, ",")) != NULL;) {
        char *dot = strpbrk(one, "./"), *equals = dot ? strchr(dot, '=') : NULL, *end = NULL;
        double value = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || end == equals + 1 || *end)
            return wt_fail(WT_ERR_BAD_ARG, "--set has '%s', want NODE.PARAM=NUMBER", one);
        if (a->process.n_changes == MAX_CHANGES)
            return wt_fail(WT_ERR_BAD_ARG, "--set has more than %d changes", MAX_CHANGES);
        *dot = *equals = 0;
        a->changes[a->process.n_changes++] = (process_change){one, dot + 1, (float)value};
    }
    a->process.changes = a->changes;
    return WT_OK;
}

static wt_status parse_formats(arguments *a)
{
    process_options *p = &a->process;
    p->sample = a->sample ? wt_sample_format_of_name(a->sample) : WT_SAMPLE_DEFAULT;
    if (a->sample && p->sample == WT_SAMPLE_DEFAULT)
        return wt_fail(WT_ERR_BAD_ARG, "--sample is '%s', want s16, s24, s32 or f32", a->sample);
    p->raw =
        (wt_audio_reader_config){.rate_hz = p->rate_hz, .raw_rate_hz = a->raw_rate_hz, .raw_channels = a->raw_channels};
    p->raw.raw_sample = a->raw ? wt_sample_format_of_name(a->raw) : WT_SAMPLE_S16;
    if (p->raw.raw_sample == WT_SAMPLE_DEFAULT)
        return wt_fail(WT_ERR_BAD_ARG, "--raw is '%s', want s16, s24, s32 or f32", a->raw);
    return WT_OK;
}

typedef struct view {
    wt_progress bar;
    bool shown;
} view;

static void draw(process_run *run, void *user)
{
    view *v = user;
    if (v->shown)
        wt_progress_move(&v->bar, atomic_load(&run->n_done), (double)atomic_load(&run->done_milliseconds) * 1e-3, NULL);
}

static wt_status run_all(arguments *a, process_run *run, double *wall_s)
{
    view v = {.bar = {.verb = "processing", .n_items = run->n_items, .unit = "s"}, .shown = !a->quiet && !a->json};
    int64_t begin_ns = wt_clock_now_ns(NULL);
    if (v.shown) wt_progress_begin(&v.bar);
    wt_status status = a->process.device ? process_on_gpu(run, draw, &v) : process_on_cpu(run, draw, &v);
    if (v.shown) wt_progress_end(&v.bar);
    *wall_s = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9;
    return status;
}

// The preset must stand on its own before any file is touched: a stereo chain at 48 kHz, or what it asks for.
static wt_status check_preset(const arguments *a)
{
    wt_chain *chain;
    int channels = wt_preset_channels(a->process.preset);
    wt_status status = process_build_chain(&a->process, 48000, channels ? channels : 2, 1, 0, &chain);
    if (!status) wt_chain_destroy(chain);
    return status;
}

static int process_files(arguments *a, char **inputs, int n_inputs, const char *output)
{
    process_run run = {.options = &a->process};
    double wall_s = 0;
    const process_paths paths = {.inputs = inputs, .n_inputs = n_inputs, .output = output, .resume = a->resume,
                                 .extension = a->process.format, .dry_run = a->dry_run};
    wt_status status = process_list(&paths, &run.items, &run.n_items);
    if (status) return command_fail("process", status);
    bool to_stdout = n_inputs == 1 && strcmp(output, "-") == 0;
    status = a->dry_run ? WT_OK : run_all(a, &run, &wall_s);
    int code = status ? command_fail("process", status) : EXIT_OK;
    const process_summary summary = {.run = &run, .device = a->process.device, .wall_s = wall_s, .dry_run = a->dry_run};
    if (a->json)
        process_report_json(&summary, to_stdout ? stderr : stdout);
    else
        process_report_text(&summary, stderr, a->quiet);
    if (code == EXIT_OK && a->plot && !a->dry_run) {
        status = process_plot(&run.items[0], a->plot);
        if (status) code = command_fail("process", status);
    }
    if (code == EXIT_OK) code = process_exit_code(&run, a->dry_run);
    process_list_free(run.items, run.n_items);
    return code;
}

static int run_command(arguments *a, char **inputs, int n_inputs, const char *output)
{
    wt_preset *preset = NULL;
    wt_status status = parse_changes(a);
    if (!status) status = parse_formats(a);
    if (!status) status = wt_interrupt_install();
    if (!status) status = wt_preset_load(a->preset, &preset);
    a->process.preset = preset;
    if (!status) status = backend_open(a->backend, &a->process.device);
    if (!status) status = check_preset(a);
    int code = status ? command_fail("process", status) : process_files(a, inputs, n_inputs, output);
    wt_device_close(a->process.device);
    wt_preset_destroy(preset);
    free(a->set_copy);
    return code;
}

int cmd_process(int argc, char **argv)
{
    arguments a = {.process.n_jobs = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    process_options *p = &a.process;
    bool help;
    const wt_option options[] = {
        OPTION_TEXT("preset", 'p', &a.preset, "NAME", "preset by name (see `warptone presets list`) or a YAML file"),
        OPTION_TEXT("set", 0, &a.set, "N.P=V,...", "other values for parameters of the preset's nodes"),
        OPTION_INT("jobs", 'j', &p->n_jobs, "N", 1, 1024, "worker threads; one per processor if left out"),
        OPTION_TEXT("backend", 0, &a.backend, "WHICH", "auto, cuda or cpu"),
        OPTION_INT("rate", 0, &p->rate_hz, "HZ", WT_AUDIO_MIN_RATE_HZ, WT_AUDIO_MAX_RATE_HZ,
                   "process and write at this rate; the file's if left out"),
        OPTION_TEXT("format", 0, &p->format, "EXT", "wav, flac, ogg ...; by the output's name if left out"),
        OPTION_TEXT("sample", 0, &a.sample, "FORMAT", "s16, s24, s32 or f32; the input's if left out"),
        OPTION_FLAG("no-dither", 0, &p->no_dither, "round to integers without dither"),
        OPTION_FLAG("tail", 0, &p->keep_tail, "keep what rings on after the end"),
        OPTION_FLAG("resume", 0, &a.resume, "skip files whose output is there and not older"),
        OPTION_TEXT("plot", 0, &a.plot, "FILE.png", "picture of the first file before and after"),
        OPTION_FLAG("no-loudness", 0, &p->no_loudness, "do not measure loudness"),
        OPTION_TEXT("raw", 0, &a.raw, "FORMAT", "sample format of `-` as input: s16 (standard), s24, s32, f32"),
        OPTION_INT("raw-rate", 0, &a.raw_rate_hz, "HZ", WT_AUDIO_MIN_RATE_HZ, WT_AUDIO_MAX_RATE_HZ,
                   "its rate, 48000 if left out"),
        OPTION_INT("raw-channels", 0, &a.raw_channels, "N", 1, WT_AUDIO_MAX_CHANNELS, "its channels, 2 if left out"),
        OPTION_FLAG("dry-run", 0, &a.dry_run, "list what would be done"),
        OPTION_FLAG("json", 0, &a.json, "results as JSON on standard output"),
        OPTION_FLAG("quiet", 'q', &a.quiet, "only errors"),
    };
    const int n_options = sizeof options / sizeof *options;
    a.raw_rate_hz = 48000, a.raw_channels = 2;
    wt_status status = wt_options_parse(options, n_options, &argc, argv, &help);
    if (status) return command_fail("process", status);
    if (help) return print_help(options, n_options);
    if (!a.preset || argc < 3) {
        wt_fail(WT_ERR_BAD_ARG, "%s, want -p PRESET IN... OUT (`warptone process --help`)",
                a.preset ? "an input or the output is missing" : "no preset was named");
        return command_fail("process", WT_ERR_BAD_ARG);
    }
    return run_command(&a, argv + 1, argc - 2, argv[argc - 1]);
}
