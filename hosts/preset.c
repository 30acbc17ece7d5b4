#include <warptone/preset.h>

#include <warptone/audio_file.h>
#include <warptone/names.h>
#include "preset_midi.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wt_preset {
    char *path, *folder, *text; // the text is kept for the lines of later refusals
    size_t length;
    preset_file *file;
    preset_names names;
    wt_node_desc *nodes;
    wt_setting *settings;
    char **paths; // "file" settings made relative to the preset's folder
    int n_paths;
    wt_chain_desc chain;
    wt_midi_row *midi; // [file->midi_count]
};

// ---- folders

enum { N_FOLDERS = 5 };

// The k-th preset folder, or false when there is none; they need not exist.
static bool preset_folder(int k, char *folder, size_t size)
{
    static const char *const beside_program[] = {"", "presets", "../presets", "../share/warptone/presets"};
    char program[2048];
    if (k == 0) {
        const char *set = getenv("WARPTONE_PRESETS");
        if (set) snprintf(folder, size, "%s", set);
        return set != NULL;
    }
    if (k == N_FOLDERS - 1) return snprintf(folder, size, "%s/share/warptone/presets", WT_PREFIX) < (int)size;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = 0;
    char *slash = strrchr(program, '/');
    if (slash) *slash = 0;
    return snprintf(folder, size, "%s/%s", program, beside_program[k]) < (int)size;
}

// ---- description

/// Beside the preset; what is not there may be beside those that are found by name, so that a copy of one of them
/// (`presets show NAME > mine.yaml`) finds the impulse responses of its origin.
static char *beside(const wt_preset *preset, const char *path)
{
    char *joined = NULL, folder[4096];
    if (path[0] == '/') return strdup(path);
    if (asprintf(&joined, "%s/%s", preset->folder, path) < 0) return NULL;
    for (int k = 0; k < N_FOLDERS && access(joined, F_OK); k++) {
        char *other = NULL;
        if (!preset_folder(k, folder, sizeof folder) || asprintf(&other, "%s/%s", folder, path) < 0) continue;
        if (access(other, F_OK)) free(other);
        else free(joined), joined = other;
    }
    return joined;
}

static wt_status describe_settings(wt_preset *preset, const preset_node *from, wt_setting **next, wt_node_desc *to)
{
    to->settings = *next;
    for (int k = 0; k < preset->names.n; k++) {
        if (!from->settings[k]) continue;
        const char *text = from->settings[k];
        if (strcmp(preset->names.names[k], "file") == 0) {
            char *path = beside(preset, text);
            if (!path) return wt_fail(WT_ERR_NO_MEMORY, "%s: paths", preset->path);
            preset->paths[preset->n_paths++] = path;
            text = path;
        }
        *(*next)++ = (wt_setting){.name = preset->names.names[k], .text = text};
        to->n_settings++;
    }
    return WT_OK;
}

static wt_status describe(wt_preset *preset)
{
    const preset_file *file = preset->file;
    size_t n_settings = 1;
    for (uint32_t n = 0; n < file->nodes_count; n++)
        for (int k = 0; k < preset->names.n; k++) n_settings += file->nodes[n].settings[k] != NULL;
    preset->nodes = calloc(file->nodes_count, sizeof *preset->nodes);
    preset->settings = calloc(n_settings, sizeof *preset->settings);
    preset->paths = calloc(file->nodes_count + 1, sizeof *preset->paths);
    if (!preset->nodes || !preset->settings || !preset->paths)
        return wt_fail(WT_ERR_NO_MEMORY, "%s: description", preset->path);
    wt_setting *next = preset->settings;
    for (uint32_t n = 0; n < file->nodes_count; n++) {
        const preset_node *from = &file->nodes[n];
        preset->nodes[n] = (wt_node_desc){.type = from->node,
                                          .id = from->id,
                                          .side = from->side,
                                          .inputs = (const char *const *)from->inputs,
                                          .n_inputs = (int)from->inputs_count};
        wt_status status = describe_settings(preset, from, &next, &preset->nodes[n]);
        if (status) return status;
    }
    preset->chain = (wt_chain_desc){
        .name = file->name, .nodes = preset->nodes, .n_nodes = (int)file->nodes_count, .output = file->output};
    return WT_OK;
}

wt_status wt_preset_parse(const char *path, const char *text, size_t length, wt_preset **preset)
{
    *preset = NULL;
    if (length > WT_PRESET_MAX_BYTES)
        return wt_fail(WT_ERR_FORMAT, "%s: %zu bytes, want a preset of at most %d", path, length, WT_PRESET_MAX_BYTES);
    if (memchr(text, 0, length)) return wt_fail(WT_ERR_FORMAT, "%s: holds a NUL byte, want YAML text", path);
    wt_preset *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "%s: preset", path);
    const char *slash = strrchr(path, '/');
    p->path = strdup(path);
    p->folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    p->text = malloc(length + 1);
    wt_status status = !p->path || !p->folder || !p->text ? wt_fail(WT_ERR_NO_MEMORY, "%s: preset", path) : WT_OK;
    if (status) goto fail;
    memcpy(p->text, text, length);
    p->text[length] = 0;
    p->length = length;
    p->names = preset_setting_names();
    if ((status = preset_yaml_load(path, text, length, &p->file))) goto fail;
    if (p->file->channels > WT_AUDIO_MAX_CHANNELS) {
        status = wt_fail(WT_ERR_FORMAT, "%s:%d: channels is %u, want 1..%d, or 0 for any", path,
                         preset_yaml_line(text, length, -1, "channels"), p->file->channels, WT_AUDIO_MAX_CHANNELS);
        goto fail;
    }
    if ((status = describe(p))) goto fail;
    if ((status = preset_midi_read(path, text, length, p->file, &p->midi))) goto fail;
    *preset = p;
    return WT_OK;

fail:
    wt_preset_destroy(p);
    return status;
}

void wt_preset_destroy(wt_preset *preset)
{
    if (!preset) return;
    for (int k = 0; k < preset->n_paths; k++) free(preset->paths[k]);
    free(preset->paths), free(preset->nodes), free(preset->settings);
    preset_yaml_free(preset->file);
    free(preset->path), free(preset->folder), free(preset->text), free(preset->midi);
    free(preset);
}

const char *wt_preset_name(const wt_preset *preset) { return preset->file->name; }
const char *wt_preset_path(const wt_preset *preset) { return preset->path; }
int wt_preset_channels(const wt_preset *preset) { return (int)preset->file->channels; }
const wt_chain_desc *wt_preset_chain(const wt_preset *preset) { return &preset->chain; }
const char *wt_preset_text(const wt_preset *preset) { return preset->text; }

const wt_midi_row *wt_preset_midi(const wt_preset *preset, int *n_rows)
{
    *n_rows = (int)preset->file->midi_count;
    return preset->midi;
}

const char *wt_preset_description(const wt_preset *preset)
{
    return preset->file->description ? preset->file->description : "";
}

bool wt_preset_needs_gpu(const wt_preset *preset)
{
    for (int k = 0; k < preset->chain.n_nodes; k++) {
        const wt_node_type *type = wt_node_type_find(preset->nodes[k].type);
        if (type && type->flags & WT_NODE_CUDA_ONLY) return true;
    }
    return false;
}

// ---- building

wt_status wt_preset_load_audio(void *user, const char *path, double rate_hz, float **samples, int *channels,
                               int *n_frames)
{
    (void)user;
    wt_audio audio;
    wt_status status = wt_audio_load(path, (int)(rate_hz + 0.5), &audio);
    if (status) return status;
    if (audio.n_frames > 1 << 26) {
        wt_audio_free(&audio);
        return wt_fail(WT_ERR_FORMAT, "%s: %lld frames, want at most %d", path, (long long)audio.n_frames, 1 << 26);
    }
    *samples = audio.samples;
    *channels = audio.channels;
    *n_frames = (int)audio.n_frames;
    return WT_OK;
}

static wt_status check_channels(const wt_preset *preset, int channels)
{
    int wanted = wt_preset_channels(preset);
    if (!wanted || wanted == channels) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "%s:%d: %s takes %d channel%s, the input has %d", preset->path,
                   preset_yaml_line(preset->text, preset->length, -1, "channels"), wt_preset_name(preset), wanted,
                   wanted == 1 ? "" : "s", channels);
}

// Put file and line before the sentence of the chain's builder.
static wt_status located(const wt_preset *preset, wt_status status, const wt_chain_fault *fault)
{
    if (!status) return WT_OK;
    return wt_fail(status, "%s:%d: %s", preset->path,
                   preset_yaml_line(preset->text, preset->length, fault->node, fault->setting), wt_last_error());
}

wt_status wt_preset_build(const wt_preset *preset, const wt_chain_config *config, wt_chain **chain)
{
    wt_chain_fault fault = {-1, NULL};
    wt_chain_config full = *config;
    *chain = NULL;
    wt_status status = check_channels(preset, config->channels);
    if (status) return status;
    full.load = wt_preset_load_audio;
    full.fault = &fault;
    return located(preset, wt_chain_create(&full, &preset->chain, chain), &fault);
}

wt_status wt_preset_load_live(const wt_preset *preset, wt_live *live, int channels)
{
    wt_chain_fault fault = {-1, NULL};
    wt_status status = check_channels(preset, channels);
    return status ? status : located(preset, wt_live_load(live, &preset->chain, &fault), &fault);
}

wt_status wt_preset_check_midi(const wt_preset *preset, const wt_chain *chain)
{
    for (int k = 0; k < (int)preset->file->midi_count; k++) {
        const wt_midi_row *row = &preset->midi[k];
        preset_midi_target target;
        wt_preset *other = NULL;
        const char *key = "preset";
        wt_status status =
            row->preset ? wt_preset_load(row->preset, &other) : preset_midi_resolve(row, chain, &target, &key);
        wt_preset_destroy(other);
        if (status)
            return wt_fail(status, "%s:%d: midi: %s", preset->path,
                           preset_yaml_midi_line(preset->text, preset->length, k, key), wt_last_error());
    }
    return WT_OK;
}

// ---- files and folders

static wt_status read_file(const char *path, char **text, size_t *length)
{
    struct stat facts;
    if (stat(path, &facts)) return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode)) return wt_fail(WT_ERR_FILE, "%s: is no regular file, want a preset", path);
    if (facts.st_size > WT_PRESET_MAX_BYTES)
        return wt_fail(WT_ERR_FORMAT, "%s: %lld bytes, want a preset of at most %d", path, (long long)facts.st_size,
                       WT_PRESET_MAX_BYTES);
    FILE *file = fopen(path, "rb");
    if (!file) return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    *text = malloc((size_t)facts.st_size + 1);
    *length = *text ? fread(*text, 1, (size_t)facts.st_size, file) : 0;
    fclose(file);
    return *text ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: text", path);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool listed(char *const *names, int n, const char *name)
{
    for (int k = 0; k < n; k++)
        if (strcmp(names[k], name) == 0) return true;
    return false;
}

static wt_status list_folder(const char *path, char ***names, int *n)
{
    DIR *folder = opendir(path);
    wt_status status = WT_OK;
    for (struct dirent *entry; folder && !status && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".yaml")) continue;
        char *name = strndup(entry->d_name, length - 5);
        char **more = name ? realloc(*names, sizeof **names * (size_t)(*n + 1)) : NULL;
        if (more) *names = more;
        if (!more) status = wt_fail(WT_ERR_NO_MEMORY, "presets: names");
        if (!more || listed(*names, *n, name))
            free(name);
        else
            (*names)[(*n)++] = name;
    }
    if (folder) closedir(folder);
    return status;
}

wt_status wt_preset_names(char ***names, int *n_names)
{
    char folder[4096];
    wt_status status = WT_OK;
    *names = NULL, *n_names = 0;
    for (int k = 0; k < N_FOLDERS && !status; k++)
        if (preset_folder(k, folder, sizeof folder)) status = list_folder(folder, names, n_names);
    if (*n_names) qsort(*names, (size_t)*n_names, sizeof **names, by_name);
    return status;
}

void wt_preset_names_free(char **names, int n_names)
{
    for (int k = 0; k < n_names; k++) free(names[k]);
    free(names);
}

static wt_status refuse_name(const char *name)
{
    char **names;
    int n;
    wt_status status = wt_preset_names(&names, &n);
    if (!status)
        status = n ? wt_fail(WT_ERR_NOT_FOUND, "no preset '%s'; the nearest is '%s'", name,
                             wt_nearest_name(name, (const char *const *)names, n))
                   : wt_fail(WT_ERR_NOT_FOUND, "no preset '%s', and no preset folder; set WARPTONE_PRESETS", name);
    wt_preset_names_free(names, n);
    return status;
}

static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

wt_status wt_preset_load(const char *name_or_path, wt_preset **preset)
{
    char path[8192], folder[4096];
    char *text = NULL;
    size_t length = 0;
    *preset = NULL;
    if (!name_or_path || !*name_or_path) return wt_fail(WT_ERR_BAD_ARG, "preset: the name is empty");
    bool found = is_path(name_or_path);
    snprintf(path, sizeof path, "%s", name_or_path);
    for (int k = 0; k < N_FOLDERS && !found; k++) {
        if (!preset_folder(k, folder, sizeof folder)) continue;
        snprintf(path, sizeof path, "%s/%s.yaml", folder, name_or_path);
        found = access(path, F_OK) == 0;
    }
    if (!found) return refuse_name(name_or_path);
    wt_status status = read_file(path, &text, &length);
    if (!status) status = wt_preset_parse(path, text, length, preset);
    free(text);
    return status;
}
