// safetensors: u64 length of the header, little-endian; the header, a JSON object; the data. Each key of the header is
// a tensor {"dtype", "shape", "data_offsets": [begin, end)} but __metadata__, an object of strings. Offsets count from
// the end of the header. Every byte of the data belongs to exactly one tensor.
// Source: github.com/huggingface/safetensors, README.md "Format" and safetensors/src/tensor.rs (the header's limit).
#include "json.h"
#include "weights_file.h"

#include <stdlib.h>
#include <string.h>

#define MAX_HEADER_BYTES 100000000

static wt_status read_shape(const char *file, const char *name, const json_t *shape, wt_tensor *tensor)
{
    if (!json_is_array(shape))
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s: \"shape\" is %s, want an array of integers", file, name,
                       wt__json_kind(shape));
    if (json_array_size(shape) > WT_TENSOR_MAX_RANK)
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s has %zu dimensions, want %d or less", file, name,
                       json_array_size(shape), WT_TENSOR_MAX_RANK);
    tensor->rank = (int)json_array_size(shape);
    for (int k = 0; k < tensor->rank; k++) {
        const json_t *n = json_array_get(shape, (size_t)k);
        if (!json_is_integer(n))
            return wt_fail(WT_ERR_FORMAT, "%s: tensor %s: dimension %d of \"shape\" is %s, want an integer", file, name,
                           k, wt__json_kind(n));
        tensor->shape[k] = json_integer_value(n);
    }
    return WT_OK;
}

/// begin .. end within `size` bytes of data.
static wt_status read_offsets(const char *file, const char *name, const json_t *offsets, size_t size, size_t *begin,
                              size_t *end)
{
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s: \"data_offsets\" is %s, want an array of two integers", file,
                       name, wt__json_kind(offsets));
    const json_int_t b = json_integer_value(from), e = json_integer_value(to);
    if (b < 0 || e < b || (uint64_t)e > size)
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s lies at %lld to %lld, want it within the %zu bytes of data", file,
                       name, (long long)b, (long long)e, size);
    *begin = (size_t)b;
    *end = (size_t)e;
    return WT_OK;
}

static wt_status read_tensor(const char *file, const char *name, const json_t *value, const uint8_t *data, size_t size,
                             wt_tensor *tensor)
{
    if (!json_is_object(value))
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s is %s, want an object", file, name, wt__json_kind(value));
    const json_t *dtype = json_object_get(value, "dtype");
    if (!json_is_string(dtype))
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s: \"dtype\" is %s, want a string", file, name,
                       wt__json_kind(dtype));
    if (wt_dtype_find(json_string_value(dtype), &tensor->dtype) || wt_dtype_block(tensor->dtype) > 1)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "%s: tensor %s is of type \"%.40s\", want F64, F32, F16, BF16, F8_E4M3, "
                       "F8_E5M2, I64, I32, I16, I8, U8 or BOOL",
                       file, name, json_string_value(dtype));
    size_t bytes, begin = 0, end = 0;
    wt_status status = read_shape(file, name, json_object_get(value, "shape"), tensor);
    if (!status) status = wt__shape_bytes(file, name, tensor, &bytes);
    if (!status) status = read_offsets(file, name, json_object_get(value, "data_offsets"), size, &begin, &end);
    if (status) return status;
    char text[96];
    if (end - begin != bytes)
        return wt_fail(WT_ERR_FORMAT, "%s: tensor %s has %zu bytes, want %zu for %s", file, name, end - begin, bytes,
                       wt_tensor_describe(tensor, text));
    tensor->data = data + begin;
    return WT_OK;
}

static wt_status read_metadata(wt_weights *weights, const char *file, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return wt_fail(WT_ERR_FORMAT, "%s: \"__metadata__\" is %s, want an object", file, wt__json_kind(metadata));
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return wt_fail(WT_ERR_FORMAT, "%s: \"__metadata__\": \"%s\" is %s, want a string", file, key,
                           wt__json_kind(value));
        wt_status status = wt__weights_note(weights, key, json_string_value(value));
        if (status) return status;
    }
    return WT_OK;
}

wt_status wt__safetensors_read(wt_weights *weights)
{
    const wt__mapping *m = &weights->files[weights->n_files - 1];
    uint64_t length;
    if (m->size < 8)
        return wt_fail(WT_ERR_FORMAT, "%s has %zu bytes, want the 8 of safetensors' header length", m->path, m->size);
    memcpy(&length, m->data, 8);
    if (length > MAX_HEADER_BYTES || length > m->size - 8)
        return wt_fail(WT_ERR_FORMAT, "%s: a header of %llu bytes, want %zu or less: not safetensors, or cut off",
                       m->path, (unsigned long long)length,
                       m->size - 8 < MAX_HEADER_BYTES ? m->size - 8 : (size_t)MAX_HEADER_BYTES);
    if (!length || m->data[8] != '{')
        return wt_fail(WT_ERR_FORMAT, "%s: the header does not begin with {: not safetensors", m->path);

    json_t *header;
    wt_status status = wt__json_parse(m->path, (const char *)m->data + 8, (size_t)length, &header);
    if (status) return status;
    const uint8_t *data = m->data + 8 + length, *end = m->data + m->size;
    const int first = weights->n_entries;
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value)
    {
        wt_tensor tensor = {0};
        if (!strcmp(name, "__metadata__")) {
            status = read_metadata(weights, m->name, value);
        } else {
            status = read_tensor(m->name, name, value, data, (size_t)(end - data), &tensor);
            if (!status) status = wt__weights_add(weights, name, strlen(name), &tensor);
        }
        if (status) break;
    }
    json_decref(header);
    return status ? status : wt__weights_place(weights, first, data, end, true);
}

// ---- shards: {"metadata": ..., "weight_map": {tensor: file name}}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/// The shards' names, each once and sorted, borrowed from the map; caller frees the list.
static wt_status shard_names(const char *path, json_t *map, const char ***names, size_t *n_names)
{
    const char *tensor;
    json_t *value;
    size_t n = 0;
    *names = NULL;
    if (!json_is_object(map) || !json_object_size(map))
        return wt_fail(WT_ERR_FORMAT, "%s: \"weight_map\" is %s, want an object of tensor and file names", path,
                       json_is_object(map) ? "empty" : wt__json_kind(map));
    const char **list = malloc(json_object_size(map) * sizeof *list);
    if (!list) return wt_fail(WT_ERR_NO_MEMORY, "%s: list of shards", path);
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || !*name || strchr(name, '/')) {
            free(list);
            return wt_fail(WT_ERR_FORMAT, "%s: tensor %s lies in %s, want the name of a file beside the index", path,
                           tensor, name ? name : wt__json_kind(value));
        }
        list[n++] = name;
    }
    qsort(list, n, sizeof *list, by_text);
    *n_names = 0;
    for (size_t k = 0; k < n; k++)
        if (!k || strcmp(list[k], list[*n_names - 1])) list[(*n_names)++] = list[k];
    *names = list;
    return WT_OK;
}

/// Every tensor of the map lies in the shard that it names. Names are not sorted yet, hence a table.
static wt_status check_map(const wt_weights *weights, const char *path, json_t *map)
{
    json_t *found = json_object();
    wt_status status = found ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: table of tensors", path);
    for (int k = 0; !status && k < weights->n_entries; k++) {
        const wt__entry *e = &weights->entries[k];
        const char *want = json_string_value(json_object_get(map, e->name));
        if (want && strcmp(want, weights->files[e->file].name))
            status = wt_fail(WT_ERR_FORMAT, "%s: tensor %s lies in %s, the index says %s", path, e->name,
                             weights->files[e->file].name, want);
        else if (json_object_set_new(found, e->name, json_true()))
            status = wt_fail(WT_ERR_NO_MEMORY, "%s: table of tensors", path);
    }
    const char *name;
    json_t *value;
    if (!status) json_object_foreach(map, name, value)
        {
            if (json_object_get(found, name)) continue;
            status = wt_fail(WT_ERR_FORMAT, "%s: tensor %s is not in %s, as the index says", path, name,
                             json_string_value(value));
            break;
        }
    json_decref(found);
    return status;
}

wt_status wt__safetensors_index(wt_weights *weights, const char *path,
                                wt_status (*open_shard)(wt_weights *weights, const char *folder, const char *name))
{
    json_t *index;
    wt_status status = wt__json_read(path, &index);
    if (status) return status;
    json_t *map = json_object_get(index, "weight_map");
    const char **names = NULL;
    size_t n = 0;
    const char *slash = strrchr(path, '/');
    char *folder = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
    status = folder ? shard_names(path, map, &names, &n) : wt_fail(WT_ERR_NO_MEMORY, "%s: path", path);
    for (size_t k = 0; !status && k < n; k++) status = open_shard(weights, folder, names[k]);
    if (!status) status = check_map(weights, path, map);
    free(folder);
    free(names);
    json_decref(index);
    return status;
}
