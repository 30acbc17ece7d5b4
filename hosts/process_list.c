#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct list {
    process_item *items;
    int n, room;
    const char *output, *extension;
    int output_length; // without slashes at its end
    bool into_folder;
} list;

// "folder/a/b.wav" with the extension ".flac" becomes "folder/a/b.flac".
static char *output_path(const list *l, const char *relative)
{
    char *path = NULL;
    size_t stem = strlen(relative);
    const char *slash = strrchr(relative, '/'), *dot = strrchr(relative, '.');
    if (l->extension && dot && (!slash || dot > slash)) stem = (size_t)(dot - relative);
    if (!l->into_folder) return strdup(l->output);
    return asprintf(&path, "%.*s/%.*s%s%s", l->output_length, l->output, (int)stem, relative,
                    l->extension ? "." : "", l->extension ? l->extension : "") < 0 ? NULL : path;
}

static wt_status add(list *l, const char *input, const char *relative)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 64;
        process_item *items = realloc(l->items, sizeof *items * (size_t)room);
        if (!items) return wt_fail(WT_ERR_NO_MEMORY, "process: %d files", room);
        l->items = items;
        l->room = room;
    }
    process_item *item = &l->items[l->n];
    *item = (process_item){.input = strdup(input), .output = output_path(l, relative)};
    if (!item->input || !item->output) {
        free(item->input), free(item->output);
        return wt_fail(WT_ERR_NO_MEMORY, "process: paths");
    }
    l->n++;
    return WT_OK;
}

static int by_input(const void *a, const void *b)
{
    return strcmp(((const process_item *)a)->input, ((const process_item *)b)->input);
}

static int by_output(const void *a, const void *b)
{
    return strcmp((*(process_item *const *)a)->output, (*(process_item *const *)b)->output);
}

// Walk a folder; `from` is where relative paths begin. Symbolic links to folders are not followed, so no walk is
// endless.
static wt_status walk(list *l, const char *folder, size_t from)
{
    DIR *dir = opendir(folder);
    if (!dir) return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", folder, strerror(errno));
    wt_status status = WT_OK;
    for (struct dirent *entry; !status && (entry = readdir(dir));) {
        struct stat facts;
        char *path = NULL;
        if (entry->d_name[0] == '.') continue; // hidden files, and what an interrupted run left
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0) {
            status = wt_fail(WT_ERR_NO_MEMORY, "process: paths");
            break;
        }
        if (lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) status = walk(l, path, from);
        else if (wt_audio_name_known(path)) status = add(l, path, path + from);
        free(path);
    }
    closedir(dir);
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static wt_status add_input(list *l, const char *input)
{
    struct stat facts;
    bool folder = strcmp(input, "-") && stat(input, &facts) == 0 && S_ISDIR(facts.st_mode);
    size_t length = strlen(input);
    int before = l->n;
    if (!folder) return add(l, input, base_name(input));
    while (length > 1 && input[length - 1] == '/') length--;
    char *trimmed = strndup(input, length);
    wt_status status = trimmed ? walk(l, trimmed, length + 1) : wt_fail(WT_ERR_NO_MEMORY, "process: paths");
    free(trimmed);
    if (!status && l->n == before) status = wt_fail(WT_ERR_NOT_FOUND, "%s: holds no audio files", input);
    if (!status) qsort(l->items + before, (size_t)(l->n - before), sizeof *l->items, by_input);
    return status;
}

static wt_status refuse_collisions(const list *l)
{
    process_item **sorted = malloc(sizeof(process_item *) * (size_t)(l->n + 1));
    wt_status status = WT_OK;
    if (!sorted) return wt_fail(WT_ERR_NO_MEMORY, "process: %d files", l->n);
    for (int k = 0; k < l->n; k++) sorted[k] = &l->items[k];
    qsort(sorted, (size_t)l->n, sizeof *sorted, by_output);
    for (int k = 1; k < l->n && !status; k++)
        if (strcmp(sorted[k - 1]->output, sorted[k]->output) == 0)
            status = wt_fail(WT_ERR_BAD_ARG, "%s and %s would both become %s, want them one at a time or renamed",
                             sorted[k - 1]->input, sorted[k]->input, sorted[k]->output);
    free(sorted);
    return status;
}

// Make the folders of a path.
static wt_status make_folders(const char *path)
{
    char *copy = strdup(path);
    wt_status status = copy ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "process: paths");
    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && !status; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(copy, 0777) && errno != EEXIST)
            status = wt_fail(WT_ERR_FILE, "%s: cannot be made: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return status;
}

static bool done_before(const process_item *item)
{
    struct stat in, out;
    if (stat(item->input, &in) || stat(item->output, &out) || !S_ISREG(out.st_mode)) return false;
    return out.st_mtim.tv_sec > in.st_mtim.tv_sec ||
           (out.st_mtim.tv_sec == in.st_mtim.tv_sec && out.st_mtim.tv_nsec >= in.st_mtim.tv_nsec);
}

static wt_status finish(list *l, const process_paths *paths)
{
    wt_status status = refuse_collisions(l);
    for (int k = 0; k < l->n && !status; k++) {
        if (l->into_folder && !paths->dry_run) status = make_folders(l->items[k].output);
        l->items[k].skipped = paths->resume && !status && done_before(&l->items[k]);
    }
    return status;
}

bool process_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static wt_status plan_output(list *l, const process_paths *paths)
{
    struct stat facts;
    const char *output = paths->output;
    const bool many = paths->n_inputs > 1 || process_is_folder(paths->inputs[0]);
    l->into_folder = many || (strcmp(output, "-") && process_is_folder(output)) || output[strlen(output) - 1] == '/';
    l->output_length = (int)strlen(output);
    while (l->output_length > 1 && output[l->output_length - 1] == '/') l->output_length--;
    if (many && strcmp(output, "-") && stat(output, &facts) == 0 && !S_ISDIR(facts.st_mode))
        return wt_fail(WT_ERR_BAD_ARG, "%s: is a file, want a folder for what %s", output,
                       paths->n_inputs > 1 ? "several inputs give" : "a folder gives");
    return WT_OK;
}

wt_status process_list(const process_paths *paths, process_item **items, int *n_items)
{
    list l = {.output = paths->output, .extension = paths->extension};
    wt_status status = plan_output(&l, paths);
    for (int k = 0; k < paths->n_inputs && !status; k++) status = add_input(&l, paths->inputs[k]);
    if (!status) status = finish(&l, paths);
    if (status) {
        process_list_free(l.items, l.n);
        return status;
    }
    *items = l.items;
    *n_items = l.n;
    return WT_OK;
}

void process_list_free(process_item *items, int n_items)
{
    for (int k = 0; k < n_items; k++) free(items[k].input), free(items[k].output);
    free(items);
}
