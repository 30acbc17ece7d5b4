// Configs that lie with the weights: GGUF's keys and llama2.c's header. Keys: github.com/ggml-org/ggml, docs/gguf.md,
// and llama.cpp's llama-arch.cpp; defaults as llama.cpp has them.
#include "model_fields.h"
#include "weights_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// The metadata as JSON; a text that reads as a number or truth value becomes one. Caller: json_decref.
static wt_status metadata_json(const wt_weights *weights, json_t **object)
{
    errno = 0; // as in json.c
    *object = json_object();
    for (int k = 0; *object && !errno && k < weights->n_notes; k++) {
        const char *text = weights->notes[k].text;
        json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
        errno = errno == ENOMEM ? ENOMEM : 0; // numbers out of range set it too
        if (!json_is_number(value) && !json_is_boolean(value)) {
            json_decref(value);
            value = json_string(text);
        }
        if (json_object_set_new(*object, weights->notes[k].key, value)) errno = ENOMEM;
    }
    if (*object && !errno) return WT_OK;
    json_decref(*object);
    return wt_fail(WT_ERR_NO_MEMORY, "%s: metadata", weights->files[0].path);
}

// ---- GGUF

typedef struct gguf_fields {
    wt__fields f;
    char architecture[32], key[96];
} gguf_fields;

/// "llama.block_count" of "block_count"; until the next call.
static const char *key(gguf_fields *g, const char *name)
{
    snprintf(g->key, sizeof g->key, "%s.%s", g->architecture, name);
    return g->key;
}

static int integer(gguf_fields *g, const char *name, int max, int otherwise)
{
    return wt__field_int(&g->f, key(g, name), otherwise ? 1 : 0, max, otherwise);
}

static double real(gguf_fields *g, const char *name, double min, double max, double otherwise)
{
    return wt__field_real(&g->f, key(g, name), min, max, otherwise);
}

static wt_status gguf_family(gguf_fields *g, wt_model_family *family)
{
    static const struct {
        const char *name;
        wt_model_family family;
    } known[] = {{"gpt2", WT_MODEL_GPT2},
                 {"llama", WT_MODEL_LLAMA},
                 {"qwen2", WT_MODEL_QWEN2},
                 {"qwen3", WT_MODEL_QWEN3},
                 {"qwen3moe", WT_MODEL_QWEN3_MOE}};
    const char *name = wt__field_text(&g->f, "general.architecture");
    for (size_t k = 0; name && k < sizeof known / sizeof *known; k++)
        if (!strcmp(name, known[k].name)) {
            *family = known[k].family;
            snprintf(g->architecture, sizeof g->architecture, "%s", name);
            return WT_OK;
        }
    if (!g->f.status)
        g->f.status =
            wt_fail(WT_ERR_UNSUPPORTED,
                    "%s: \"general.architecture\" is \"%.40s\", want one of gpt2, llama, qwen2, qwen3, qwen3moe",
                    g->f.file, name ? name : "");
    return g->f.status;
}

static void gguf_rope(gguf_fields *g, const wt_weights *weights, wt_model_config *c)
{
    wt_rope_config *r = &c->rope;
    *r = (wt_rope_config){.kind = WT_ROPE_NONE, .factor = 1, .attention_factor = 1};
    if (c->family == WT_MODEL_GPT2) return;
    r->kind = WT_ROPE_DEFAULT;
    r->theta = real(g, "rope.freq_base", 1, 1e15, 1e4);
    r->n_dims = integer(g, "rope.dimension_count", WT__MAX_WIDTH, c->d_head);
    r->interleaved = c->family == WT_MODEL_LLAMA; // its converter reorders the rows of q and k
    r->original_positions = integer(g, "rope.scaling.original_context_length", WT__MAX_POSITIONS, c->max_positions);
    const char *kind = wt__field_text(&g->f, key(g, "rope.scaling.type"));
    if (wt_weights_find(weights, "rope_freqs.weight")) r->kind = WT_ROPE_FACTORS;
    if (!kind || !strcmp(kind, "none")) return;
    r->factor = real(g, "rope.scaling.factor", 1e-3, 1e6, WT__REQUIRED_REAL);
    if (!strcmp(kind, "linear")) {
        r->kind = WT_ROPE_LINEAR;
    } else if (!strcmp(kind, "yarn")) {
        r->kind = WT_ROPE_YARN;
        r->beta_fast = real(g, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32);
        r->beta_slow = real(g, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1);
        const double own = wt__yarn_attention_factor(r->factor, 0, 0);
        r->attention_factor = real(g, "rope.scaling.attn_factor", 0, 1e3, 1) *
                              real(g, "rope.scaling.yarn_attn_factor", 0, 1e3, own); // config.json's attention_factor
    } else if (!g->f.status) {
        g->f.status =
            wt_fail(WT_ERR_UNSUPPORTED, "%s: RoPE of type \"%.40s\", want none, linear or yarn", g->f.file, kind);
    }
}

static void gguf_experts(gguf_fields *g, wt_model_config *c)
{
    c->n_experts = integer(g, "expert_count", WT__MAX_EXPERTS, 0);
    if (!c->n_experts) return;
    if (c->family == WT_MODEL_LLAMA) c->family = WT_MODEL_MIXTRAL;
    c->n_experts_used = integer(g, "expert_used_count", WT__MAX_EXPERTS, WT__REQUIRED);
    c->d_ff_expert = integer(g, "expert_feed_forward_length", WT__MAX_WIDTH, c->d_ff);
    c->norm_expert_weights = true;
    for (int l = 0; l < c->n_layers; l++) c->layer_has_experts[l] = true;
}

static void gguf_ids(gguf_fields *g, wt_model_config *c)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    c->bos_id = wt__field_int(&g->f, "tokenizer.ggml.bos_token_id", 0, INT_MAX, -1);
    for (int k = 0; k < 3; k++) {
        const int id = wt__field_int(&g->f, ends[k], 0, INT_MAX, -1);
        if (id >= 0) c->eos_ids[c->n_eos++] = id;
    }
    int n_tokens = 0;
    const char *tokens = wt__field_text(&g->f, "tokenizer.ggml.tokens");
    if (tokens) sscanf(tokens, "[%d]", &n_tokens);
    c->vocab_size = integer(g, "vocab_size", WT__MAX_VOCAB, n_tokens > 0 ? n_tokens : WT__REQUIRED);
}

static void read_gguf(gguf_fields *g, const wt_weights *weights, wt_model_config *c)
{
    if (gguf_family(g, &c->family)) return;
    const bool gpt2 = c->family == WT_MODEL_GPT2;
    c->n_layers = integer(g, "block_count", WT_MODEL_MAX_LAYERS, WT__REQUIRED);
    c->d_model = integer(g, "embedding_length", WT__MAX_WIDTH, WT__REQUIRED);
    c->max_positions = integer(g, "context_length", WT__MAX_POSITIONS, WT__REQUIRED);
    c->d_ff = integer(g, "feed_forward_length", WT__MAX_WIDTH, WT__REQUIRED);
    c->n_heads = integer(g, "attention.head_count", WT__MAX_HEADS, WT__REQUIRED);
    c->n_kv_heads = integer(g, "attention.head_count_kv", WT__MAX_HEADS, c->n_heads);
    c->d_head =
        integer(g, "attention.key_length", WT__MAX_WIDTH, c->d_model > c->n_heads ? c->d_model / c->n_heads : 1);
    c->norm_eps = real(g, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-12, 1,
                       WT__REQUIRED_REAL);
    c->activation = gpt2 ? WT_ACTIVATION_GELU_TANH : WT_ACTIVATION_SILU;
    c->qkv_bias = gpt2 || c->family == WT_MODEL_QWEN2;
    c->o_bias = c->mlp_bias = gpt2;
    c->qk_norm = c->family == WT_MODEL_QWEN3 || c->family == WT_MODEL_QWEN3_MOE;
    c->tied_head = !wt_weights_find(weights, "output.weight");
    c->sliding_window = integer(g, "attention.sliding_window", WT__MAX_POSITIONS, 0);
    for (int l = 0; c->sliding_window && l < c->n_layers; l++) c->layer_slides[l] = true;
    gguf_rope(g, weights, c);
    gguf_experts(g, c);
    gguf_ids(g, c);
}

// ---- llama2.c

static void read_llama2c(wt__fields *f, const wt_weights *weights, wt_model_config *c)
{
    c->family = WT_MODEL_LLAMA;
    c->activation = WT_ACTIVATION_SILU;
    c->n_layers = wt__field_int(f, "n_layers", 1, WT_MODEL_MAX_LAYERS, WT__REQUIRED);
    c->d_model = wt__field_int(f, "dim", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->d_ff = wt__field_int(f, "hidden_dim", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->n_heads = wt__field_int(f, "n_heads", 1, WT__MAX_HEADS, WT__REQUIRED);
    c->n_kv_heads = wt__field_int(f, "n_kv_heads", 1, WT__MAX_HEADS, WT__REQUIRED);
    c->max_positions = wt__field_int(f, "seq_len", 1, WT__MAX_POSITIONS, WT__REQUIRED);
    c->vocab_size = abs(wt__field_int(f, "vocab_size", -WT__MAX_VOCAB, WT__MAX_VOCAB, WT__REQUIRED)); // < 0: own head
    c->d_head = c->d_model / c->n_heads;
    c->tied_head = !wt_weights_find(weights, "lm_head.weight");
    // the rest is fixed in run.c: rmsnorm(), forward(), generate() (which ends at token 1) and chat() (at 2)
    c->norm_eps = 1e-5;
    c->rope = (wt_rope_config){.kind = WT_ROPE_DEFAULT,
                               .theta = 1e4,
                               .n_dims = c->d_head,
                               .interleaved = true,
                               .factor = 1,
                               .attention_factor = 1,
                               .original_positions = c->max_positions};
    c->bos_id = 1;
    c->eos_ids[0] = 1;
    c->eos_ids[1] = 2;
    c->n_eos = 2;
    snprintf(c->dtype, sizeof c->dtype, "float32");
}

wt_status wt_model_config_of_weights(const wt_weights *weights, wt_model_config *config)
{
    const char *path = weights->files[0].path;
    json_t *object;
    *config = (wt_model_config){.bos_id = -1};
    if (!strcmp(weights->format, "safetensors"))
        return wt_fail(WT_ERR_NOT_FOUND, "%s: safetensors carry no config, want config.json beside", path);
    wt_status status = metadata_json(weights, &object);
    if (status) return status;
    gguf_fields g = {.f = {path, object, WT_OK}};
    if (!strcmp(weights->format, "GGUF"))
        read_gguf(&g, weights, config);
    else
        read_llama2c(&g.f, weights, config);
    json_decref(object);
    return g.f.status ? g.f.status : wt__model_config_check(path, config);
}
