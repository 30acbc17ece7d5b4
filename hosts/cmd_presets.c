#include "command.h"
#include "options.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <warptone/names.h>
#include <warptone/preset.h>

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone presets list [--json]\n"
           "       warptone presets show NAME\n"
           "       warptone presets check FILE...\n"
           "       warptone presets nodes [TYPE] [--json]\n\n"
           "list names every preset, show prints one, check builds each and says what is wrong with it, nodes\n"
           "tells what presets can be made of.\n");
    wt_options_print(stdout, options, n);
    return EXIT_OK;
}

// ---- list

typedef struct row {
    wt_preset *preset;
    int latency_frames; // at 48 kHz; -1 = only a GPU can tell, and there is none
} row;

static wt_status build(const wt_preset *preset, wt_device *device, wt_chain **chain)
{
    int channels = wt_preset_channels(preset);
    return wt_preset_build(
        preset, &(wt_chain_config){.rate_hz = 48000, .channels = channels ? channels : 2, .device = device}, chain);
}

static wt_status measure(row *r)
{
    wt_chain *chain = NULL;
    wt_device *gpu = NULL;
    bool needs_gpu = wt_preset_needs_gpu(r->preset);
    r->latency_frames = -1;
    if (needs_gpu && wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu)) return WT_OK;
    wt_status status = build(r->preset, gpu, &chain);
    if (!status) r->latency_frames = wt_chain_latency_frames(chain);
    if (!status) status = wt_preset_check_midi(r->preset, chain);
    wt_chain_destroy(chain);
    wt_device_close(gpu);
    return status;
}

static json_t *row_json(const row *r)
{
    json_t *object = json_object(), *backends = json_array();
    int channels = wt_preset_channels(r->preset);
    json_object_set_new(object, "name", json_string(wt_preset_name(r->preset)));
    json_object_set_new(object, "description", json_string(wt_preset_description(r->preset)));
    json_object_set_new(object, "channels", channels ? json_integer(channels) : json_string("any"));
    json_object_set_new(object, "latency_frames",
                        r->latency_frames < 0 ? json_null() : json_integer(r->latency_frames));
    if (!wt_preset_needs_gpu(r->preset)) json_array_append_new(backends, json_string("cpu"));
    json_array_append_new(backends, json_string("cuda"));
    json_object_set_new(object, "backends", backends);
    return object;
}

static void print_row(const row *r)
{
    printf("%-20s %s%s\n", wt_preset_name(r->preset), wt_preset_description(r->preset),
           wt_preset_needs_gpu(r->preset) ? " (needs a GPU)" : "");
}

static int list(bool json)
{
    char **names;
    int n, code = EXIT_OK;
    json_t *array = json_array();
    wt_status status = wt_preset_names(&names, &n);
    if (status) code = command_fail("presets", status);
    for (int k = 0; k < n; k++) {
        row r = {.preset = NULL};
        status = wt_preset_load(names[k], &r.preset);
        if (!status) status = measure(&r);
        if (status)
            code = command_fail("presets", status);
        else if (json)
            json_array_append_new(array, row_json(&r));
        else
            print_row(&r);
        wt_preset_destroy(r.preset);
    }
    if (json) {
        json_dumpf(array, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(array);
    wt_preset_names_free(names, n);
    return code;
}

// ---- show, check

static int show(const char *name)
{
    wt_preset *preset;
    wt_status status = wt_preset_load(name, &preset);
    if (status) return command_fail("presets", status);
    FILE *file = fopen(wt_preset_path(preset), "r");
    printf("# %s\n", wt_preset_path(preset));
    for (int c; file && (c = fgetc(file)) != EOF;) putchar(c);
    if (file) fclose(file);
    wt_preset_destroy(preset);
    return EXIT_OK;
}

static wt_status check_one(const char *name, int *latency_frames)
{
    row r = {.preset = NULL};
    wt_status status = wt_preset_load(name, &r.preset);
    if (!status) status = measure(&r);
    *latency_frames = r.latency_frames;
    wt_preset_destroy(r.preset);
    return status;
}

static int check(char **names, int n)
{
    int code = EXIT_OK;
    for (int k = 0; k < n; k++) {
        int latency_frames;
        wt_status status = check_one(names[k], &latency_frames);
        if (status) {
            command_fail("presets", status);
            code = EXIT_INPUT;
        } else if (latency_frames < 0) {
            printf("%s: reads well; its chain needs a GPU to be built\n", names[k]);
        } else {
            printf("%s: good, latency %d frames at 48 kHz\n", names[k], latency_frames);
        }
    }
    return code;
}

// ---- nodes

static void print_node(const wt_node_type *type, bool whole)
{
    printf("%-14s %s\n", type->name, type->summary);
    for (int k = 0; whole && k < wt_node_type_n_params(type); k++) {
        const wt_param_info *p = wt_node_type_param(type, k);
        printf("  %-18s %g..%g%s%s, %g if left out: %s\n", p->name, (double)p->min, (double)p->max, *p->unit ? " " : "",
               p->unit, (double)p->standard, p->help);
    }
    for (int k = 0; whole && k < type->n_options; k++) {
        const wt_option_info *o = &type->options[k];
        printf("  %-18s %s%s%s: %s\n", o->name, o->choices ? o->choices : "text or number",
               o->standard ? *o->standard ? ", if left out " : ", may be left out" : ", required",
               o->standard ? o->standard : "", o->help);
    }
}

static json_t *node_json(const wt_node_type *type)
{
    json_t *object = json_object(), *params = json_array(), *options = json_array(), *readings = json_array();
    json_object_set_new(object, "name", json_string(type->name));
    json_object_set_new(object, "summary", json_string(type->summary));
    for (int k = 0; k < type->n_params; k++) {
        const wt_param_info *p = &type->params[k];
        json_array_append_new(params, json_pack("{s:s, s:s, s:f, s:f, s:f, s:s}", "name", p->name, "unit", p->unit,
                                                "min", (double)p->min, "max", (double)p->max, "standard",
                                                (double)p->standard, "help", p->help));
    }
    for (int k = 0; k < type->n_options; k++) {
        const wt_option_info *o = &type->options[k];
        json_array_append_new(options, json_pack("{s:s, s:s?, s:s?, s:s}", "name", o->name, "choices", o->choices,
                                                 "standard", o->standard, "help", o->help));
    }
    for (int k = 0; k < type->n_readings; k++) json_array_append_new(readings, json_string(type->readings[k]));
    json_object_set_new(object, "params", params);
    json_object_set_new(object, "options", options);
    json_object_set_new(object, "readings", readings);
    return object;
}

enum { MOST_TYPES = 128 };

static wt_status know_type(const char *name)
{
    const char *names[MOST_TYPES];
    int n = 0;
    for (int k = 0; k < wt_n_node_types && n < MOST_TYPES; k++)
        if (!(wt_node_types[k]->flags & WT_NODE_INTERNAL)) names[n++] = wt_node_types[k]->name;
    for (int k = 0; k < n; k++)
        if (!strcmp(names[k], name)) return WT_OK;
    return wt_fail(WT_ERR_NOT_FOUND, "no node type '%s'; the nearest is '%s' (`warptone presets nodes` lists them)", name,
                   wt_nearest_name(name, names, n));
}

static int nodes(const char *name, bool json)
{
    wt_status status = name ? know_type(name) : WT_OK;
    if (status) return command_fail("presets", status);
    json_t *array = json_array();
    for (int k = 0; k < wt_n_node_types; k++) {
        const wt_node_type *type = wt_node_types[k];
        if (type->flags & WT_NODE_INTERNAL || (name && strcmp(name, type->name))) continue;
        if (json)
            json_array_append_new(array, node_json(type));
        else
            print_node(type, name != NULL);
    }
    if (json) {
        json_dumpf(array, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(7));
        putchar('\n');
    }
    json_decref(array);
    return EXIT_OK;
}

int cmd_presets(int argc, char **argv)
{
    bool json = false, help;
    const wt_option options[] = {
        OPTION_FLAG("json", 0, &json, "list and nodes as JSON"),
    };
    wt_status status = wt_options_parse(options, 1, &argc, argv, &help);
    if (status) return command_fail("presets", status);
    if (help) return print_help(options, 1);
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "list") == 0 && argc == 2) return list(json);
    if (strcmp(verb, "show") == 0 && argc == 3) return show(argv[2]);
    if (strcmp(verb, "check") == 0 && argc > 2) return check(argv + 2, argc - 2);
    if (strcmp(verb, "nodes") == 0 && argc <= 3) return nodes(argc == 3 ? argv[2] : NULL, json);
    wt_fail(WT_ERR_BAD_ARG, "want list, show NAME, check FILE... or nodes [TYPE] (`warptone presets --help`)");
    return command_fail("presets", WT_ERR_BAD_ARG);
}
