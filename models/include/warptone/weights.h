/// Weights: tensors by name in a model's files, memory-mapped and never written. safetensors (one file, or shards with
/// an index), GGUF, and llama2.c checkpoints.
#ifndef WARPTONE_WEIGHTS_H
#define WARPTONE_WEIGHTS_H

#include <warptone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_weights wt_weights;

/// Open a model: a folder (model.safetensors, or model.safetensors.index.json and its shards, or one *.gguf), or a
/// file. All headers are read and checked before the first use: ranges within the file, no overlap, shapes that fit.
/// Errors: WT_ERR_FILE, WT_ERR_FORMAT naming file, tensor, met and wanted; WT_ERR_NOT_FOUND naming a missing shard.
/// [worker]
WT_CHECKED wt_status wt_weights_open(const char *path, wt_weights **weights);
void wt_weights_close(wt_weights *weights); ///< Views into it end. NULL is allowed.  [worker]

int wt_weights_count(const wt_weights *weights);                      ///< [any]
const char *wt_weights_name(const wt_weights *weights, int index);    ///< in the order of the files  [any]
const wt_tensor *wt_weights_at(const wt_weights *weights, int index); ///< borrowed until closed  [any]
const char *wt_weights_file(const wt_weights *weights, int index);    ///< which file holds it  [any]

/// The tensor of that name, or NULL.  [any]
const wt_tensor *wt_weights_find(const wt_weights *weights, const char *name);

/// The tensor of that name with that shape, or WT_ERR_NOT_FOUND / WT_ERR_FORMAT: "model.norm.weight is [2048], want
/// [4096]".  [any]
WT_CHECKED wt_status wt_weights_get(const wt_weights *weights, const char *name, int rank, const int64_t *shape,
                                    wt_tensor *tensor);

/// A file's metadata: safetensors' __metadata__ and GGUF's keys, scalars as text; NULL when absent.  [any]
const char *wt_weights_metadata(const wt_weights *weights, const char *key);

#ifdef __cplusplus
}
#endif
#endif
