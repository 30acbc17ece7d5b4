// Checkpoints of llama2.c, version 0: seven int32, then all tensors in f32, those of one kind for all layers together.
// Source: github.com/karpathy/llama2.c, run.c, struct Config and memory_map_weights(). A negative vocab_size says that
// the head is a tensor of its own, at the end.
#include "weights_file.h"

#include <stdio.h>
#include <string.h>

enum { DIM, HIDDEN_DIM, N_LAYERS, N_HEADS, N_KV_HEADS, VOCAB_SIZE, SEQ_LEN, N_FIELDS, HEADER_BYTES = 4 * N_FIELDS };

static const char *const fields[N_FIELDS] = {"dim",        "hidden_dim", "n_layers", "n_heads",
                                             "n_kv_heads", "vocab_size", "seq_len"};

typedef struct cursor {
    wt_weights *weights;
    size_t at; // bytes from the file's beginning, also beyond its end
    wt_status status;
} cursor;

/// The next tensor, of every layer where `name` has a %d. One dimension when columns is 0.
static void place(cursor *c, const char *name, int n_layers, int64_t rows, int64_t columns)
{
    const wt__mapping *m = &c->weights->files[0];
    const wt_tensor shape = {.rank = columns ? 2 : 1, .shape = {rows, columns}};
    const size_t bytes = wt_tensor_bytes(&shape);
    for (int l = 0; l < n_layers; l++, c->at += bytes) {
        char text[96];
        const int length = snprintf(text, sizeof text, name, l);
        if (c->status || c->at > m->size || bytes > m->size - c->at) continue;
        wt_tensor tensor = shape;
        tensor.data = m->data + c->at;
        c->status = wt__weights_add(c->weights, text, (size_t)length, &tensor);
    }
}

static wt_status read_header(wt_weights *weights, int32_t h[N_FIELDS])
{
    static const int32_t most[N_FIELDS] = {1 << 17, 1 << 19, 256, 1024, 1024, 1 << 22, 1 << 22};
    const wt__mapping *m = &weights->files[0];
    if (m->size < HEADER_BYTES)
        return wt_fail(WT_ERR_FORMAT, "%s has %zu bytes, want the %d of llama2.c's header", m->path, m->size,
                       HEADER_BYTES);
    memcpy(h, m->data, HEADER_BYTES);
    if (h[0] == 0x616b3432) // "ak42"
        return wt_fail(WT_ERR_UNSUPPORTED, "%s is of llama2.c's version %d, want 0", m->path, h[1]);
    for (int k = 0; k < N_FIELDS; k++) {
        const int64_t value = k == VOCAB_SIZE && h[k] < 0 ? -(int64_t)h[k] : h[k];
        if (value < 1 || value > most[k])
            return wt_fail(WT_ERR_FORMAT,
                           "%s: %s is %d, want 1..%d: not a checkpoint of llama2.c (PyTorch's .bin "
                           "files are not read: convert to safetensors)",
                           m->path, fields[k], h[k], most[k]);
        char text[16];
        snprintf(text, sizeof text, "%d", h[k]);
        wt_status status = wt__weights_note(weights, fields[k], text);
        if (status) return status;
    }
    if (h[DIM] % h[N_HEADS] || h[DIM] / h[N_HEADS] % 2 || h[N_HEADS] % h[N_KV_HEADS])
        return wt_fail(WT_ERR_FORMAT, "%s: dim %d, n_heads %d, n_kv_heads %d: want heads of one even size, in groups",
                       m->path, h[DIM], h[N_HEADS], h[N_KV_HEADS]);
    return WT_OK;
}

wt_status wt__llama2c_read(wt_weights *weights)
{
    int32_t h[N_FIELDS];
    wt_status status = read_header(weights, h);
    if (status) return status;
    const int64_t dim = h[DIM], hidden = h[HIDDEN_DIM], head = dim / h[N_HEADS], kv = head * h[N_KV_HEADS];
    const int64_t vocab = h[VOCAB_SIZE] < 0 ? -(int64_t)h[VOCAB_SIZE] : h[VOCAB_SIZE];
    const int n = h[N_LAYERS];
    cursor c = {weights, HEADER_BYTES, WT_OK};
    place(&c, "model.embed_tokens.weight", 1, vocab, dim);
    place(&c, "model.layers.%d.input_layernorm.weight", n, dim, 0);
    place(&c, "model.layers.%d.self_attn.q_proj.weight", n, dim, dim);
    place(&c, "model.layers.%d.self_attn.k_proj.weight", n, kv, dim);
    place(&c, "model.layers.%d.self_attn.v_proj.weight", n, kv, dim);
    place(&c, "model.layers.%d.self_attn.o_proj.weight", n, dim, dim);
    place(&c, "model.layers.%d.post_attention_layernorm.weight", n, dim, 0);
    place(&c, "model.layers.%d.mlp.gate_proj.weight", n, hidden, dim);
    place(&c, "model.layers.%d.mlp.down_proj.weight", n, dim, hidden);
    place(&c, "model.layers.%d.mlp.up_proj.weight", n, hidden, dim);
    place(&c, "model.norm.weight", 1, dim, 0);
    c.at += sizeof(float) * (size_t)(h[SEQ_LEN] * head); // cosines and sines of RoPE, not used: seq_len * head / 2 each
    if (h[VOCAB_SIZE] < 0) place(&c, "lm_head.weight", 1, vocab, dim);
    if (!c.status && c.at != weights->files[0].size)
        return wt_fail(WT_ERR_FORMAT, "%s has %zu bytes, its header wants %zu", weights->files[0].path,
                       weights->files[0].size, c.at);
    return c.status;
}
