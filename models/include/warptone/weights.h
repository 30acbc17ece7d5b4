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
/// file (an index, *.gguf, *.bin for llama2.c, any other name for safetensors). All headers are read and checked before
/// the first use: ranges within the file, no overlap, shapes that fit, no name twice; in safetensors no holes either.
///
/// The files are mapped, not read: data comes from the disk, or the page cache, when it is touched. They must not be
/// shortened or written to while open: touching what a file no longer has ends the process with SIGBUS, as for every
/// mapping. A new file that is renamed onto the old one does no harm. wt_weights_check tells, before a long use.
///
/// Tensors lie where the files put them: GGUF aligns to 32 bytes or what it says, llama2.c to 4; safetensors promise
/// nothing, most writers give 8. llama2.c has no names: its tensors get those of the hub's Llama, their rows of q and k
/// in the order of wt_model_config's rope.interleaved.
///
/// Errors: WT_ERR_FILE, WT_ERR_FORMAT naming file, tensor, met and wanted; WT_ERR_NOT_FOUND naming a missing shard or
/// what a folder lacks; WT_ERR_UNSUPPORTED for a type of numbers or version that is known but not read.  [worker]
WT_CHECKED wt_status wt_weights_open(const char *path, wt_weights **weights);
void wt_weights_close(wt_weights *weights); ///< Views into it end. NULL is allowed.  [worker]

int wt_weights_count(const wt_weights *weights);                      ///< [any]
const char *wt_weights_name(const wt_weights *weights, int index);    ///< in the order of the files  [any]
const wt_tensor *wt_weights_at(const wt_weights *weights, int index); ///< borrowed until closed  [any]
const char *wt_weights_file(const wt_weights *weights, int index);    ///< which file holds it  [any]

/// Are the files still those that were opened, in size and time of last change? WT_ERR_FILE names one that is not.
/// [worker]
WT_CHECKED wt_status wt_weights_check(const wt_weights *weights);
/// "safetensors", "GGUF" or "llama2.c".  [any]
const char *wt_weights_format(const wt_weights *weights);

/// The tensor of that name, or NULL. A tensor that two names share is stored once in safetensors, under one of them;
/// where __metadata__ has {"other name": "stored name"}, as the hub's writers leave it, both find it.  [any]
const wt_tensor *wt_weights_find(const wt_weights *weights, const char *name);

/// The tensor of that name with that shape, or WT_ERR_NOT_FOUND / WT_ERR_FORMAT: "model.norm.weight is [2048], want
/// [4096]".  [any]
WT_CHECKED wt_status wt_weights_get(const wt_weights *weights, const char *name, int rank, const int64_t *shape,
                                    wt_tensor *tensor);

/// A file's metadata: safetensors' __metadata__, GGUF's keys, llama2.c's header (dim, hidden_dim and so on). Scalars as
/// text, an array as its length and type, "[32000] string"; of shards the first that has the key. NULL when absent.
/// [any]
const char *wt_weights_metadata(const wt_weights *weights, const char *key);

/// An array of GGUF's metadata as it stands in the file: numbers one after the other, not aligned; strings as a u64
/// length and so many bytes, no zero after them and not always UTF-8. All of it was checked to lie in the file.
typedef struct wt_metadata_array {
    const char *type; ///< "string", "f32", "i32" ...; "" = there is no such array
    uint64_t n;
    const unsigned char *at; ///< borrowed until the weights are closed
} wt_metadata_array;
wt_metadata_array wt_weights_metadata_array(const wt_weights *weights, const char *key); ///< [any]
int wt_weights_metadata_count(const wt_weights *weights);                  ///< [any]
const char *wt_weights_metadata_key(const wt_weights *weights, int index); ///< in the order of the files  [any]

#ifdef __cplusplus
}
#endif
#endif
