// Weights: which files, their mapping, and the table of tensors. What lies in a file is read by weights_*.c.
#include "weights_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- the table

/// `array` with room for one element more, of `size` bytes each; it may have moved. NULL: no memory, and it has not.
static void *with_room(void *array, int n, int *room, size_t size)
{
    if (n < *room) return array;
    if (n > INT_MAX / 2) return NULL;
    const int wanted = n ? 2 * n : 64;
    void *moved = realloc(array, (size_t)wanted * size);
    if (moved) *room = wanted;
    return moved;
}

wt_status wt__weights_add(wt_weights *weights, const char *name, size_t length, const wt_tensor *tensor)
{
    const int n = weights->n_entries;
    wt__entry *entries = with_room(weights->entries, n, &weights->entries_room, sizeof *entries);
    if (entries) weights->entries = entries;
    char *copy = entries ? strndup(name, length) : NULL;
    if (!copy) return wt_fail(WT_ERR_NO_MEMORY, "weights: table of %d tensors", n);
    weights->entries[weights->n_entries++] = (wt__entry){copy, weights->n_files - 1, *tensor};
    return WT_OK;
}

wt_status wt__weights_note(wt_weights *weights, const char *key, const char *text)
{
    const int n = weights->n_notes;
    wt__note *notes = with_room(weights->notes, n, &weights->notes_room, sizeof *notes);
    if (!notes) return wt_fail(WT_ERR_NO_MEMORY, "weights: table of %d metadata keys", n);
    weights->notes = notes;
    notes[n] = (wt__note){.key = strdup(key), .text = strdup(text)};
    weights->n_notes++;
    if (!notes[n].key || !notes[n].text) return wt_fail(WT_ERR_NO_MEMORY, "weights: metadata %s", key);
    return WT_OK;
}

wt_status wt__shape_bytes(const char *file, const char *name, const wt_tensor *tensor, size_t *bytes)
{
    int64_t n = 1;
    bool empty = false;
    for (int k = 0; k < tensor->rank; k++) {
        if (tensor->shape[k] < 0)
            return wt_fail(WT_ERR_FORMAT, "%s: tensor %s has a dimension of %lld, want 0 or more", file, name,
                           (long long)tensor->shape[k]);
        empty |= tensor->shape[k] == 0;
        if (__builtin_mul_overflow(n, tensor->shape[k] ? tensor->shape[k] : 1, &n)) n = -1;
        if (n < 0) break;
    }
    char text[96];
    *bytes = n < 0 ? 0 : wt_dtype_bytes(tensor->dtype, n);
    if (n < 0 || n > (int64_t)1 << 56)
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s has more elements than a file can hold: %s", file, name,
                       wt_tensor_describe(tensor, text));
    const int block = wt_dtype_block(tensor->dtype);
    if (block > 1 && (!tensor->rank || tensor->shape[tensor->rank - 1] % block))
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s is %s, want rows of a multiple of %d", file, name,
                       wt_tensor_describe(tensor, text), block);
    if (empty) *bytes = 0;
    return WT_OK;
}

// ---- places

static int by_place(const void *a, const void *b)
{
    const wt__entry *x = a, *y = b;
    const uint8_t *p = x->tensor.data, *q = y->tensor.data;
    if (p != q) return p < q ? -1 : 1;
    const size_t m = wt_tensor_bytes(&x->tensor), n = wt_tensor_bytes(&y->tensor); // empty ones first
    if (m != n) return m < n ? -1 : 1;
    return strcmp(x->name, y->name);
}

wt_status wt__weights_place(wt_weights *weights, int first, const uint8_t *data, const uint8_t *end, bool dense)
{
    const char *file = weights->files[weights->n_files - 1].name;
    const uint8_t *at = data;
    const char *before = "the header";
    if (weights->n_entries > first)
        qsort(weights->entries + first, (size_t)(weights->n_entries - first), sizeof *weights->entries, by_place);
    for (int k = first; k < weights->n_entries; k++) {
        const wt__entry *e = &weights->entries[k];
        const uint8_t *begin = e->tensor.data;
        if (begin < at)
            return wt_fail(WT_ERR_FORMAT, "%s: tensor %s begins at byte %td of the data, within %s, which ends at %td",
                           file, e->name, begin - data, before, at - data);
        if (dense && begin > at)
            return wt_fail(WT_ERR_FORMAT, "%s: bytes %td to %td of the data, before tensor %s, belong to no tensor",
                           file, at - data, begin - data, e->name);
        at = begin + wt_tensor_bytes(&e->tensor);
        before = e->name;
    }
    if (dense && at < end) return wt_fail(WT_ERR_FORMAT, "%s: the last %td bytes belong to no tensor", file, end - at);
    return WT_OK;
}

// ---- names

static int by_name(const void *a, const void *b, void *entries)
{
    const wt__entry *table = entries;
    const int x = *(const int *)a, y = *(const int *)b;
    const int order = strcmp(table[x].name, table[y].name);
    return order ? order : x - y;
}

static wt_status sort_names(wt_weights *weights)
{
    const int n = weights->n_entries;
    weights->by_name = malloc(sizeof(int) * (size_t)(n ? n : 1));
    if (!weights->by_name) return wt_fail(WT_ERR_NO_MEMORY, "weights: names of %d tensors", n);
    for (int k = 0; k < n; k++) weights->by_name[k] = k;
    qsort_r(weights->by_name, (size_t)n, sizeof(int), by_name, weights->entries);
    for (int k = 1; k < n; k++) {
        const wt__entry *a = &weights->entries[weights->by_name[k - 1]], *b = &weights->entries[weights->by_name[k]];
        if (!strcmp(a->name, b->name))
            return wt_fail(WT_ERR_FORMAT, "tensor %s is there twice, in %s and in %s", a->name,
                           weights->files[a->file].name, weights->files[b->file].name);
    }
    return WT_OK;
}

// ---- files

/// Map `path` as the next file; `path` is copied.
static wt_status map_file(wt_weights *weights, const char *path)
{
    wt__mapping *files = realloc(weights->files, sizeof *files * (size_t)(weights->n_files + 1));
    if (!files) return wt_fail(WT_ERR_NO_MEMORY, "weights: table of files");
    weights->files = files;
    wt__mapping *m = &files[weights->n_files];
    *m = (wt__mapping){.path = strdup(path), .fd = -1};
    if (!m->path) return wt_fail(WT_ERR_NO_MEMORY, "weights: path");
    weights->n_files++; // from here on close undoes it
    char *slash = strrchr(m->path, '/');
    m->name = slash ? slash + 1 : m->path;

    struct stat info;
    m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is told, not waited for
    if (m->fd < 0 || fstat(m->fd, &info)) return wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return wt_fail(WT_ERR_FILE, "%s is not a regular file", path);
    if (!info.st_size) return wt_fail(WT_ERR_FORMAT, "%s is empty", path);
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, m->fd, 0);
    if (data == MAP_FAILED) return wt_fail(WT_ERR_FILE, "%s: mapping it: %s", path, strerror(errno));
    m->data = data;
    m->size = (size_t)info.st_size;
    m->changed = info.st_mtim;
    return WT_OK;
}

bool wt__ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static wt_status open_shard(wt_weights *weights, const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s%s", folder, name) >= (int)sizeof path)
        return wt_fail(WT_ERR_BAD_ARG, "weights: path of shard %s is too long", name);
    if (access(path, F_OK)) return wt_fail(WT_ERR_NOT_FOUND, "%s is missing: the index of shards names it", path);
    wt_status status = map_file(weights, path);
    return status ? status : wt__safetensors_read(weights);
}

static wt_status open_file(wt_weights *weights, const char *path)
{
    if (wt__ends_with(path, ".index.json")) {
        weights->format = "safetensors";
        return wt__safetensors_index(weights, path, open_shard);
    }
    wt_status status = map_file(weights, path);
    if (status) return status;
    const wt__mapping *m = &weights->files[0];
    if (wt__ends_with(path, ".gguf") || (m->size >= 4 && !memcmp(m->data, "GGUF", 4))) {
        weights->format = "GGUF";
        return wt__gguf_read(weights);
    }
    if (wt__ends_with(path, ".bin")) {
        weights->format = "llama2.c";
        return wt__llama2c_read(weights);
    }
    weights->format = "safetensors";
    return wt__safetensors_read(weights);
}

/// The one *.gguf of a folder into `path`.
static wt_status only_gguf(const char *folder, char path[PATH_MAX])
{
    DIR *list = opendir(folder);
    if (!list) return wt_fail(errno == ENOMEM ? WT_ERR_NO_MEMORY : WT_ERR_FILE, "%s: %s", folder, strerror(errno));
    int n = 0, length = 0;
    for (struct dirent *entry; (entry = readdir(list));)
        if (wt__ends_with(entry->d_name, ".gguf") && !n++)
            length = snprintf(path, PATH_MAX, "%s/%s", folder, entry->d_name);
    closedir(list);
    if (n > 1) return wt_fail(WT_ERR_NOT_FOUND, "%s has %d files *.gguf, want one: name the file", folder, n);
    if (!n)
        return wt_fail(WT_ERR_NOT_FOUND,
                       "%s has no weights, want model.safetensors, model.safetensors.index.json or one *.gguf", folder);
    return length < PATH_MAX ? WT_OK : wt_fail(WT_ERR_BAD_ARG, "weights: path of %s is too long", folder);
}

static wt_status open_folder(wt_weights *weights, const char *folder)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    char path[PATH_MAX];
    for (int k = 0; k < 2; k++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[k]) >= (int)sizeof path)
            return wt_fail(WT_ERR_BAD_ARG, "weights: the path of the folder is too long");
        if (!access(path, F_OK)) return open_file(weights, path);
    }
    wt_status status = only_gguf(folder, path);
    return status ? status : open_file(weights, path);
}

wt_status wt_weights_open(const char *path, wt_weights **weights)
{
    *weights = NULL;
    struct stat info;
    if (stat(path, &info)) return wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    wt_weights *w = calloc(1, sizeof *w);
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "weights: handle");
    wt_status status = S_ISDIR(info.st_mode) ? open_folder(w, path) : open_file(w, path);
    if (!status) status = sort_names(w);
    if (status)
        wt_weights_close(w);
    else
        *weights = w;
    return status;
}

void wt_weights_close(wt_weights *weights)
{
    if (!weights) return;
    for (int k = 0; k < weights->n_entries; k++) free(weights->entries[k].name);
    for (int k = 0; k < weights->n_notes; k++) {
        free(weights->notes[k].key);
        free(weights->notes[k].text);
    }
    for (int k = 0; k < weights->n_files; k++) {
        wt__mapping *m = &weights->files[k];
        if (m->data) munmap((void *)m->data, m->size);
        if (m->fd >= 0) close(m->fd);
        free(m->path);
    }
    free(weights->entries);
    free(weights->notes);
    free(weights->by_name);
    free(weights->files);
    free(weights);
}

wt_status wt_weights_check(const wt_weights *weights)
{
    for (int k = 0; k < weights->n_files; k++) {
        const wt__mapping *m = &weights->files[k];
        struct stat info;
        if (fstat(m->fd, &info)) return wt_fail(WT_ERR_FILE, "%s: %s", m->path, strerror(errno));
        if ((size_t)info.st_size != m->size)
            return wt_fail(WT_ERR_FILE, "%s has %lld bytes, had %zu when it was opened", m->path,
                           (long long)info.st_size, m->size);
        if (info.st_mtim.tv_sec != m->changed.tv_sec || info.st_mtim.tv_nsec != m->changed.tv_nsec)
            return wt_fail(WT_ERR_FILE, "%s was written to since it was opened", m->path);
    }
    return WT_OK;
}

// ---- answers

int wt_weights_count(const wt_weights *weights) { return weights->n_entries; }
const char *wt_weights_name(const wt_weights *weights, int index) { return weights->entries[index].name; }
const wt_tensor *wt_weights_at(const wt_weights *weights, int index) { return &weights->entries[index].tensor; }
const char *wt_weights_format(const wt_weights *weights) { return weights->format; }

const char *wt_weights_file(const wt_weights *weights, int index)
{
    return weights->files[weights->entries[index].file].name;
}

static const wt_tensor *find_stored(const wt_weights *weights, const char *name)
{
    int low = 0, high = weights->n_entries;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const wt__entry *e = &weights->entries[weights->by_name[middle]];
        const int order = strcmp(name, e->name);
        if (!order) return &e->tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const wt_tensor *wt_weights_find(const wt_weights *weights, const char *name)
{
    const wt_tensor *found = find_stored(weights, name);
    const char *alias = found ? NULL : wt_weights_metadata(weights, name);
    return alias ? find_stored(weights, alias) : found;
}

wt_status wt_weights_get(const wt_weights *weights, const char *name, int rank, const int64_t *shape, wt_tensor *tensor)
{
    char met[96], want[96];
    const wt_tensor *found = wt_weights_find(weights, name);
    wt_shape_describe(rank, shape, want);
    if (!found) return wt_fail(WT_ERR_NOT_FOUND, "%s: tensor %s %s is missing", weights->files[0].path, name, want);
    bool same = found->rank == rank;
    for (int k = 0; same && k < rank; k++) same = found->shape[k] == shape[k];
    if (!same)
        return wt_fail(WT_ERR_FORMAT, "%s is %s, want %s", name, wt_shape_describe(found->rank, found->shape, met),
                       want);
    *tensor = *found;
    return WT_OK;
}

const char *wt_weights_metadata(const wt_weights *weights, const char *key)
{
    for (int k = 0; k < weights->n_notes; k++)
        if (!strcmp(weights->notes[k].key, key)) return weights->notes[k].text;
    return NULL;
}

wt_metadata_array wt_weights_metadata_array(const wt_weights *weights, const char *key)
{
    for (int k = 0; k < weights->n_notes; k++)
        if (weights->notes[k].array.type && !strcmp(weights->notes[k].key, key)) return weights->notes[k].array;
    return (wt_metadata_array){.type = ""};
}

int wt_weights_metadata_count(const wt_weights *weights) { return weights->n_notes; }
const char *wt_weights_metadata_key(const wt_weights *weights, int index) { return weights->notes[index].key; }
