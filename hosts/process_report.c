#include "process_report.h"
#include "command.h"
#include "interrupt.h"
#include "plot.h"

#include <math.h>
#include <string.h>
#include <warptone/names.h>

enum { MAX_SHOWN = 4096 }; // bytes of a path

process_totals process_add_up(const process_run *run)
{
    process_totals t = {0};
    for (int k = 0; k < run->n_items; k++) {
        const process_item *item = &run->items[k];
        t.skipped += item->skipped;
        t.failed += item->finished && item->status;
        t.bad_length += item->finished && item->status == WT_ERR_LENGTH;
        t.untouched += !item->finished && !item->skipped;
        if (!item->finished || item->status) continue;
        t.done++;
        t.audio_s += item->audio_s;
    }
    return t;
}

static void print_level(FILE *out, const char *name, const wt_loudness_values *v)
{
    if (isfinite(v->integrated_lufs))
        fprintf(out, "%s %.1f LUFS, %.1f dBTP", name, v->integrated_lufs, v->true_peak_db);
    else
        fprintf(out, "%s silence", name);
}

static void print_item(const process_item *item, FILE *out, bool loudness)
{
    char output[MAX_SHOWN];
    fprintf(out, "%s: %d Hz, %d channel%s, %.2f s", wt_show_text(item->output, output, sizeof output), item->rate_hz,
            item->out_channels, item->out_channels == 1 ? "" : "s", item->audio_s);
    if (item->wall_s > 0) fprintf(out, ", %.0f times real time", item->audio_s / item->wall_s);
    if (loudness) {
        print_level(out, "; before", &item->before);
        print_level(out, "; after", &item->after);
    }
    if (item->n_clipped) fprintf(out, "; %lld samples clipped", (long long)item->n_clipped);
    fputc('\n', out);
}

static const char *state_name(const process_item *item)
{
    return item->skipped ? "skipped" : !item->finished ? "not done" : item->status ? "failed" : "done";
}

void process_report_text(const process_summary *s, FILE *out, bool quiet)
{
    const process_run *run = s->run;
    bool loudness = !run->options->no_loudness, few = run->n_items <= 20;
    for (int k = 0; k < run->n_items; k++) {
        const process_item *item = &run->items[k];
        char input[MAX_SHOWN], output[MAX_SHOWN];
        wt_show_text(item->input, input, sizeof input);
        if (s->dry_run)
            fprintf(out, "%s -> %s%s\n", input, wt_show_text(item->output, output, sizeof output),
                    item->skipped ? " (done before)" : "");
        else if (item->finished && item->status)
            fprintf(out, "warptone process: %s\n", item->message);
        else if (item->finished && item->message[0])
            fprintf(out, "warptone process: %s: %s\n", input, item->message);
        if (item->finished && !item->status && few && !quiet) print_item(item, out, loudness && item->rate_hz >= 4000);
    }
    if (quiet || s->dry_run || run->n_items < 2) return;
    process_totals t = process_add_up(run);
    fprintf(out, "%d done, %d skipped, %d failed", t.done, t.skipped, t.failed);
    if (t.untouched) fprintf(out, ", %d not done", t.untouched);
    if (s->wall_s > 0)
        fprintf(out, "; %.1f s of audio in %.2f s, %.0f times real time", t.audio_s, s->wall_s, t.audio_s / s->wall_s);
    fputc('\n', out);
}

static json_t *number_or_null(double value) { return isfinite(value) ? json_real(value) : json_null(); }

// File names may be no UTF-8, which JSON must be: then every other byte becomes '?'.
json_t *process_json_name(const char *name)
{
    json_t *text = json_string(name);
    char ascii[4096];
    size_t n = 0;
    if (text) return text;
    for (; name[n] && n + 1 < sizeof ascii; n++) ascii[n] = (unsigned char)name[n] < 128 ? name[n] : '?';
    ascii[n] = 0;
    return json_string(ascii);
}

static json_t *level_json(const wt_loudness_values *v)
{
    json_t *level = json_object();
    json_object_set_new(level, "integrated_lufs", number_or_null(v->integrated_lufs));
    json_object_set_new(level, "range_lu", number_or_null(v->range_lu));
    json_object_set_new(level, "true_peak_db", number_or_null(v->true_peak_db));
    json_object_set_new(level, "sample_peak_db", number_or_null(v->sample_peak_db));
    return level;
}

json_t *process_item_json(const process_item *item)
{
    json_t *object = json_object();
    json_object_set_new(object, "input", process_json_name(item->input));
    json_object_set_new(object, "output", process_json_name(item->output));
    json_object_set_new(object, "status", json_string(state_name(item)));
    if (item->message[0]) json_object_set_new(object, "message", process_json_name(item->message));
    if (!item->finished || item->status) return object;
    json_object_set_new(object, "rate_hz", json_integer(item->rate_hz));
    json_object_set_new(object, "channels", json_integer(item->channels));
    json_object_set_new(object, "audio_s", json_real(item->audio_s));
    json_object_set_new(object, "wall_s", json_real(item->wall_s));
    return object;
}

static json_t *item_json(const process_item *item, bool loudness)
{
    json_t *object = process_item_json(item);
    if (!item->finished || item->status) return object;
    json_object_set_new(object, "out_channels", json_integer(item->out_channels));
    json_object_set_new(object, "n_frames", json_integer(item->n_frames_out));
    json_object_set_new(object, "latency_frames", json_integer(item->latency_frames));
    json_object_set_new(object, "n_repaired", json_integer(item->n_repaired));
    json_object_set_new(object, "n_clipped", json_integer(item->n_clipped));
    if (!loudness || item->rate_hz < 4000) return object;
    json_object_set_new(object, "before", level_json(&item->before));
    json_object_set_new(object, "after", level_json(&item->after));
    return object;
}

void process_report_json(const process_summary *s, FILE *out)
{
    process_totals t = process_add_up(s->run);
    json_t *root = json_object(), *files = json_array();
    json_object_set_new(root, "preset", json_string(wt_preset_name(s->run->options->preset)));
    json_object_set_new(root, "backend", json_string(s->device ? "cuda" : "cpu"));
    json_object_set_new(root, "done", json_integer(t.done));
    json_object_set_new(root, "skipped", json_integer(t.skipped));
    json_object_set_new(root, "failed", json_integer(t.failed));
    json_object_set_new(root, "not_done", json_integer(t.untouched));
    json_object_set_new(root, "audio_s", json_real(t.audio_s));
    json_object_set_new(root, "wall_s", json_real(s->wall_s));
    json_object_set_new(root, "times_real_time", number_or_null(s->wall_s > 0 ? t.audio_s / s->wall_s : NAN));
    json_object_set_new(root, "files", files);
    for (int k = 0; k < s->run->n_items; k++)
        json_array_append_new(files, item_json(&s->run->items[k], !s->run->options->no_loudness));
    json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(root);
}

wt_status process_plot(const process_item *item, const char *path)
{
    wt_audio before = {0}, after = {0};
    char title[512];
    if (strcmp(item->input, "-") == 0 || strcmp(item->output, "-") == 0)
        return wt_fail(WT_ERR_BAD_ARG, "--plot needs files as input and output, not '-'");
    snprintf(title, sizeof title, "%s", item->input);
    wt_status status = wt_audio_load(item->input, 0, &before);
    if (!status) status = wt_audio_load(item->output, 0, &after);
    if (!status) status = wt_plot_before_after(path, &before, &after, &(wt_plot_config){.title = title});
    wt_audio_free(&before), wt_audio_free(&after);
    return status;
}

int process_exit_code(const process_run *run, bool dry_run)
{
    int code = -1; // of all files so far
    if (wt_interrupted()) return exit_code_of(WT_ERR_CANCELLED);
    for (int k = 0; k < run->n_items && !dry_run; k++) {
        const process_item *item = &run->items[k];
        const int own = item->skipped ? EXIT_OK : !item->finished ? EXIT_FAILED : exit_code_of(item->status);
        code = code < 0 || code == own ? own : EXIT_FAILED;
    }
    return code < 0 ? EXIT_OK : code;
}
