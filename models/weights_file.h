/// What weights.c and the readers of the formats share. A reader walks one mapped file and reports what it finds with
/// wt__weights_add and wt__weights_note; weights.c keeps it, and checks what is the same for all.
#ifndef WT_WEIGHTS_FILE_H
#define WT_WEIGHTS_FILE_H

#include <stdbool.h>
#include <time.h>
#include <warptone/weights.h>

typedef struct wt__mapping {
    char *path, *name; ///< name: of the file in its folder, within path
    int fd;
    const uint8_t *data;
    size_t size;
    struct timespec changed;
} wt__mapping;

typedef struct wt__entry {
    char *name;
    int file;
    wt_tensor tensor;
} wt__entry;

typedef struct wt__note {
    char *key, *text;
    wt_metadata_array array; ///< type NULL = it is none
} wt__note;

struct wt_weights {
    const char *format;
    wt__mapping *files;
    int n_files;
    wt__entry *entries; ///< in the order of the files
    int n_entries, entries_room;
    int *by_name; ///< [n_entries] indices of entries, sorted by name
    wt__note *notes;
    int n_notes, notes_room;
};

bool wt__ends_with(const char *text, const char *end);

/// Copy the name and take the tensor, whose `data` lies in the last mapped file. Errors: WT_ERR_NO_MEMORY.
wt_status wt__weights_add(wt_weights *weights, const char *name, size_t length, const wt_tensor *tensor);
/// Keep a copy of key and text as metadata.
wt_status wt__weights_note(wt_weights *weights, const char *key, const char *text);

/// Elements and bytes of a shape; WT_ERR_FORMAT names file and tensor where a dimension is negative, the product
/// overflows or is no multiple of a block.
wt_status wt__shape_bytes(const char *file, const char *name, const wt_tensor *tensor, size_t *bytes);

/// Of the tensors first .. n_entries - 1, all of the last file: sort them by where they lie, and see that none overlaps
/// another; with `dense` also that they fill data .. end without a hole.
wt_status wt__weights_place(wt_weights *weights, int first, const uint8_t *data, const uint8_t *end, bool dense);

// The readers: `weights` has the mapped file as its last.
wt_status wt__safetensors_read(wt_weights *weights);
wt_status wt__gguf_read(wt_weights *weights);
wt_status wt__llama2c_read(wt_weights *weights);

/// The folder's index of shards: calls `open_shard` for each file that it names, in the order of their names, then
/// sees that each tensor lies where the index says.
wt_status wt__safetensors_index(wt_weights *weights, const char *path,
                                wt_status (*open_shard)(wt_weights *weights, const char *folder, const char *name));

#endif
