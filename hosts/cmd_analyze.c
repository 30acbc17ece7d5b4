#include "analyze_options.h"
#include "analyze_run.h"
#include "atomic_file.h"
#include "command.h"
#include "interrupt.h"
#include "process_report.h"
#include "progress.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/clock.h>
#include <warptone/names.h>

enum { DEFAULT_RATE_HZ = 22050 };

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone analyze -f FEATURE[,FEATURE...] [options] IN... OUT\n\n"
           "Features of audio files, as arrays, tables or pictures. With one IN, OUT is a file, or `-`; with several,\n"
           "or a folder, OUT is a folder that mirrors them. Defaults are librosa's: 22050 Hz mono, 2048 / 512.\n\n"
           "features:\n");
    for (int k = 0; k < analyze_n_features(); k++)
        printf("  %-18s %s\n", analyze_feature_at(k)->name, analyze_feature_at(k)->help);
    wt_options_print(stdout, options, n);
    printf("\nexamples:\n"
           "  warptone analyze -f logmel --rate 16000 --n-fft 400 --hop 160 --n-mels 80 speech.wav speech.npy\n"
           "  warptone analyze -f mfcc,chroma,beats --format npz songs/ features/\n"
           "  warptone analyze -f logmel,pyin,beats song.flac song.png\n"
           "  warptone analyze -f hpss song.flac parts.wav     (parts-harmonic.wav, parts-percussive.wav)\n"
           "  warptone analyze -f time_stretch --speed 1.25 song.flac faster.flac\n"
           "  warptone analyze -f filter --band pass --edges 300,3400 speech.wav telephone.wav\n"
           "  warptone analyze -f tempo,loudness --format csv song.flac -\n");
    return EXIT_OK;
}

// ---- what is said at the end

static void report_text(const process_run *run, double wall_s, bool quiet)
{
    for (int k = 0; k < run->n_items; k++) {
        const process_item *item = &run->items[k];
        char output[4096];
        if (!item->finished) continue;
        if (item->message[0]) fprintf(stderr, "warptone analyze: %s\n", item->message);
        const double speed = item->wall_s > 0 ? item->audio_s / item->wall_s : 0;
        if (!item->status && run->n_items <= 20 && !quiet)
            fprintf(stderr, "%s: %.2f s at %d Hz, %.*f times real time\n",
                    wt_show_text(item->output, output, sizeof output), item->audio_s, item->rate_hz, speed < 10, speed);
    }
    if (quiet || run->n_items < 2) return;
    const process_totals t = process_add_up(run);
    fprintf(stderr, "%d done, %d skipped, %d failed", t.done, t.skipped, t.failed);
    if (t.bad_length) fprintf(stderr, " (%d of them too short or too long)", t.bad_length);
    if (t.untouched) fprintf(stderr, ", %d not done", t.untouched);
    fprintf(stderr, "; %.1f s of audio in %.2f s, %.0f times real time\n", t.audio_s, wall_s,
            wall_s > 0 ? t.audio_s / wall_s : 0);
}

static void report_json(const analyze_arguments *a, const process_run *run, double wall_s, const analyze_times *times,
                        FILE *out)
{
    const process_totals t = process_add_up(run);
    json_t *root = json_object(), *features = json_array(), *files = json_array(), *stages = json_object();
    for (int k = 0; k < ANALYZE_STAGES; k++)
        json_object_set_new(stages, analyze_stage_name((analyze_stage)k),
                            json_real((double)atomic_load(&times->ns[k]) * 1e-9));
    for (int k = 0; k < a->options.n_features; k++)
        json_array_append_new(features, json_string(a->options.features[k]->name));
    json_object_set_new(root, "features", features);
    json_object_set_new(root, "done", json_integer(t.done));
    json_object_set_new(root, "skipped", json_integer(t.skipped));
    json_object_set_new(root, "failed", json_integer(t.failed));
    json_object_set_new(root, "bad_length", json_integer(t.bad_length));
    json_object_set_new(root, "not_done", json_integer(t.untouched));
    json_object_set_new(root, "audio_s", json_real(t.audio_s));
    json_object_set_new(root, "wall_s", json_real(wall_s));
    json_object_set_new(root, "stages_s", stages);
    json_object_set_new(root, "files", files);
    for (int k = 0; k < run->n_items; k++) json_array_append_new(files, process_item_json(&run->items[k]));
    json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(root);
}

// ---- while it runs

typedef struct view {
    wt_progress bar;
    const analyze_arguments *arguments;
    process_run *run;
    const analyze_times *times;
    FILE *json; // where the summary goes; NULL = as text
    bool shown;
    int64_t begin_ns, interrupted_ns; // 0 = not yet
} view;

static void report(const view *v)
{
    const double wall_s = (double)(wt_clock_now_ns(NULL) - v->begin_ns) * 1e-9;
    if (v->json) report_json(v->arguments, v->run, wall_s, v->times, v->json);
    else report_text(v->run, wall_s, v->arguments->quiet);
}

/// Ops do not look for signals, and some settings keep one busy for minutes: what is not at its end half a second
/// after a signal is left as it is, and what it wrote is removed.
static void leave_if_late(view *v)
{
    const int64_t now_ns = wt_clock_now_ns(NULL), patience_ns = 500000000;
    if (!wt_interrupted()) return;
    if (!v->interrupted_ns) v->interrupted_ns = now_ns;
    if (now_ns - v->interrupted_ns < patience_ns) return;
    wt__atomic_file_abandon_all();
    if (v->shown) wt_progress_end(&v->bar);
    report(v);
    fputs("warptone analyze: interrupted\n", stderr);
    if (v->json) fflush(v->json);
    _exit(128 + wt_interrupt_signal());
}

static void draw(void *user)
{
    view *v = user;
    if (v->shown)
        wt_progress_move(&v->bar, atomic_load(&v->run->n_done), (double)atomic_load(&v->run->done_milliseconds) * 1e-3,
                         NULL);
    leave_if_late(v);
}

// ---- the run

static const char *extension_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot && (!slash || dot > slash) && dot[1] ? dot + 1 : NULL;
}

/// Of a folder's files the format is --format, else npz; of one file --format, else its extension.
static wt_status choose_format(analyze_arguments *a, char **inputs, int n_inputs, const char *output)
{
    for (int k = 0; k < n_inputs; k++)
        if (!strcmp(inputs[k], "-"))
            return wt_fail(WT_ERR_BAD_ARG, "- as IN is not taken, want the names of audio files");
    const bool to_stdout = strcmp(output, "-") == 0;
    const bool many = n_inputs > 1 || process_is_folder(inputs[0]) || process_is_folder(output) ||
                      output[strlen(output) - 1] == '/';
    if (to_stdout && many) return wt_fail(WT_ERR_BAD_ARG, "- as OUT takes the features of one file, not of several");
    if (to_stdout && !a->format) return wt_fail(WT_ERR_BAD_ARG, "- as OUT needs --format npy, npz, csv or json");
    if (many && !a->format) a->format = "npz";
    wt_status status = analyze_format_of(a->format ? "--format" : output, a->format ? a->format : extension_of(output),
                                         &a->options);
    if (!status && to_stdout && a->options.format >= ANALYZE_PNG)
        return wt_fail(WT_ERR_BAD_ARG, "- as OUT takes npy, npz, csv or json, not %s", a->options.extension);
    return status;
}

/// With a GPU more only stand in each other's way: beside an H200 128 threads took 0.44 s for 2,000 files, 4 took 0.31,
/// nearly all of it waiting for their turn in the folder (bench/TRIED.md).
enum { MOST_JOBS_OF_GPU = 16 };

/// Which backend the workers have: a GPU that was asked for must be there. `place` is kept open until they are done: a
/// GPU's context goes with its last user.
static wt_status choose_backend(const char *text, analyze_options *o, analyze_place *place)
{
    wt_status status = wt_options_backend(text, &o->backend);
    if (!status) status = analyze_place_open(o->backend, place);
    if (status) return status;
    o->backend = place->device ? WT_BACKEND_CUDA : WT_BACKEND_CPU;
    if (o->n_jobs) return WT_OK;
    o->n_jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (o->backend == WT_BACKEND_CUDA && o->n_jobs > MOST_JOBS_OF_GPU) o->n_jobs = MOST_JOBS_OF_GPU;
    return WT_OK;
}

static int analyze_files(analyze_arguments *a, char **inputs, int n_inputs, const char *output)
{
    process_run run = {.options = NULL};
    analyze_times times = {.ns = {0}};
    const process_paths paths = {.inputs = inputs, .n_inputs = n_inputs, .output = output, .resume = a->resume,
                                 .extension = a->options.extension};
    wt_status status = process_list(&paths, &run.items, &run.n_items);
    if (status) return command_fail("analyze", status);
    view v = {.bar = {.verb = "analyzing", .n_items = run.n_items, .unit = "s"},
              .arguments = a,
              .run = &run,
              .times = &times,
              .json = !a->json ? NULL : strcmp(output, "-") ? stdout : stderr,
              .shown = !a->quiet && !a->json,
              .begin_ns = wt_clock_now_ns(NULL)};
    if (v.shown) wt_progress_begin(&v.bar);
    status = analyze_run(&a->options, &run, draw, &v, &times);
    if (v.shown) wt_progress_end(&v.bar);
    report(&v);
    const int code = status ? command_fail("analyze", status) : process_exit_code(&run, false);
    process_list_free(run.items, run.n_items);
    return code;
}

/// Arrays come and go with each file; memory that goes back to the system each time stops all threads for a moment: on
/// two processors 8 threads wrote files in a third of the time with what is kept here.
static void keep_memory(void)
{
    enum { LARGEST = 32 << 20, KEPT = 256 << 20 }; // of an array, and behind the last one in use
    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, KEPT);
}

static int run_command(analyze_arguments *a, char **inputs, int n_inputs, const char *output)
{
    analyze_place place = {.device = NULL};
    keep_memory();
    wt_status status = analyze_features_parse(a->features, &a->options);
    if (!status) status = analyze_options_choose(a);
    if (!status) status = choose_format(a, inputs, n_inputs, output);
    if (!status) status = wt_interrupt_install();
    if (!status) status = choose_backend(a->backend, &a->options, &place);
    if (status) return command_fail("analyze", status);
    analyze_options *o = &a->options;
    if (o->format == ANALYZE_AUDIO) o->keep_channels = true;
    if (o->rate_hz < 0) o->rate_hz = o->format == ANALYZE_AUDIO ? 0 : DEFAULT_RATE_HZ;
    const int code = analyze_files(a, inputs, n_inputs, output);
    analyze_place_close(&place);
    return code;
}

int cmd_analyze(int argc, char **argv)
{
    analyze_arguments a = {.options = {.rate_hz = -1}};
    const wt_option *options;
    bool help;
    const int n_options = analyze_options_table(&a, &options);
    wt_status status = wt_options_parse(options, n_options, &argc, argv, &help);
    if (status) return command_fail("analyze", status);
    if (help) return print_help(options, n_options);
    if (!a.features || argc < 3) {
        wt_fail(WT_ERR_BAD_ARG, "%s, want -f FEATURE IN... OUT (`warptone analyze --help`)",
                a.features ? "an input or the output is missing" : "no feature was named");
        return command_fail("analyze", WT_ERR_BAD_ARG);
    }
    const int code = run_command(&a, argv + 1, argc - 2, argv[argc - 1]);
    analyze_slopes_free(&a.options);
    free(a.options.own_window);
    return code;
}
