// config.json and generation_config.json of the hub. Field names and defaults: transformers,
// models/*/configuration_*.py and modeling_rope_utils.py. GGUF and llama2.c: model_config_gguf.c.
#include "model_fields.h"
#include "weights_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- names

static const struct {
    const char *type, *architecture;
} families[WT_N_MODEL_FAMILIES] = {
#define FAMILY(code, type, architecture) [code] = {type, architecture},
    WT_MODEL_FAMILY_LIST(FAMILY)
#undef FAMILY
};

static const char *const rope_kinds[WT_N_ROPE_KINDS] = {"none", "default", "linear", "dynamic",
                                                        "yarn", "llama3",  "factors"};

static const char *const activations[WT_N_ACTIVATIONS] = {"none", "relu", "silu", "gelu", "gelu_tanh"};

const char *wt_model_family_name(wt_model_family family) { return families[family].type; }
const char *wt_rope_kind_name(wt_rope_kind kind) { return rope_kinds[kind]; }
const char *wt_activation_name(wt_activation activation) { return activations[activation]; }

static wt_status read_family(wt__fields *f, wt_model_family *family)
{
    const char *type = wt__field_text(f, "model_type");
    const json_t *list = wt__field_of(f, "architectures", JSON_ARRAY);
    const char *architecture = json_string_value(json_array_get(list, 0));
    if (f->status) return f->status;
    for (int k = 0; k < WT_N_MODEL_FAMILIES; k++) {
        if (!type || strcmp(type, families[k].type)) continue;
        *family = (wt_model_family)k;
        if (!architecture || !strcmp(architecture, families[k].architecture)) return WT_OK;
        return f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: the architecture is %.60s, want %s", f->file, architecture,
                                   families[k].architecture);
    }
    char known[128] = "";
    for (int k = 0; k < WT_N_MODEL_FAMILIES; k++) {
        const size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", k ? ", " : "", families[k].type);
    }
    return f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: \"model_type\" is \"%.40s\", want one of %s", f->file,
                               type ? type : "", known);
}

static void read_activation(wt__fields *f, const char *key, const char *standard, wt_activation *activation)
{
    static const struct {
        const char *name;
        wt_activation activation;
    } known[] = {{"silu", WT_ACTIVATION_SILU},
                 {"swish", WT_ACTIVATION_SILU},
                 {"gelu", WT_ACTIVATION_GELU},
                 {"gelu_new", WT_ACTIVATION_GELU_TANH},
                 {"gelu_fast", WT_ACTIVATION_GELU_TANH},
                 {"gelu_pytorch_tanh", WT_ACTIVATION_GELU_TANH},
                 {"relu", WT_ACTIVATION_RELU}};
    const char *name = wt__field_text(f, key);
    if (!name) name = standard;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(name, known[k].name)) {
            *activation = known[k].activation;
            return;
        }
    if (!f->status)
        f->status =
            wt_fail(WT_ERR_UNSUPPORTED, "%s: \"%s\" is \"%.40s\", want silu, gelu, gelu_new, gelu_pytorch_tanh or relu",
                    f->file, key, name);
}

// ---- RoPE

double wt__yarn_attention_factor(double factor, double mscale, double mscale_all_dim)
{
    if (factor <= 1) return 1;
    const double one = mscale && mscale_all_dim ? mscale : 1, all = mscale && mscale_all_dim ? mscale_all_dim : 0;
    return (0.1 * one * log(factor) + 1) / (0.1 * all * log(factor) + 1);
}

static void read_scaling(wt__fields *s, const wt_model_config *c, wt_rope_config *r)
{
    const int trained = wt__field_int(s, "original_max_position_embeddings", 1, WT__MAX_POSITIONS, 0);
    const double ratio = trained ? (double)c->max_positions / trained : WT__REQUIRED_REAL;
    const bool may_be_ratio = r->kind == WT_ROPE_YARN;
    r->factor = wt__field_real(s, "factor", 1e-3, 1e6, may_be_ratio ? ratio : WT__REQUIRED_REAL);
    if (r->kind == WT_ROPE_YARN) {
        r->original_positions = trained ? trained : c->max_positions;
        r->beta_fast = wt__field_real(s, "beta_fast", 1e-3, 1e6, 32);
        r->beta_slow = wt__field_real(s, "beta_slow", 1e-3, 1e6, 1);
        r->no_truncate = !wt__field_bool(s, "truncate", true);
        const double mscale = wt__field_real(s, "mscale", 0, 1e3, 0);
        const double all = wt__field_real(s, "mscale_all_dim", 0, 1e3, 0);
        r->attention_factor =
            wt__field_real(s, "attention_factor", 0, 1e3, wt__yarn_attention_factor(r->factor, mscale, all));
    } else if (r->kind == WT_ROPE_LLAMA3) {
        r->original_positions =
            wt__field_int(s, "original_max_position_embeddings", 1, WT__MAX_POSITIONS, WT__REQUIRED);
        r->low_freq_factor = wt__field_real(s, "low_freq_factor", 1e-3, 1e6, WT__REQUIRED_REAL);
        r->high_freq_factor = wt__field_real(s, "high_freq_factor", 1e-3, 1e6, WT__REQUIRED_REAL);
        if (!s->status && r->high_freq_factor <= r->low_freq_factor)
            s->status = wt_fail(WT_ERR_FORMAT, "%s: \"high_freq_factor\" is %g, want more than \"low_freq_factor\", %g",
                                s->file, r->high_freq_factor, r->low_freq_factor);
    }
}

/// rope_parameters (transformers 5) has theta in it; before, rope_theta stands beside rope_scaling.
static void read_rope(wt__fields *f, wt_model_config *c)
{
    wt_rope_config *r = &c->rope;
    *r = (wt_rope_config){
        .kind = WT_ROPE_DEFAULT, .factor = 1, .attention_factor = 1, .original_positions = c->max_positions};
    const json_t *object = wt__field_of(f, "rope_parameters", JSON_OBJECT);
    if (!object) object = wt__field_of(f, "rope_scaling", JSON_OBJECT);
    wt__fields s = {f->file, object, f->status};
    double theta = wt__field_real(f, "rope_theta", 1, 1e15, c->family == WT_MODEL_MIXTRAL ? 1e6 : 1e4);
    r->theta = wt__field_real(&s, "rope_theta", 1, 1e15, theta);
    double part = wt__field_real(f, "partial_rotary_factor", 0, 1, 1);
    r->n_dims = (int)(c->d_head * wt__field_real(&s, "partial_rotary_factor", 0, 1, part));

    const char *kind = wt__field_text(&s, "rope_type");
    if (!kind) kind = wt__field_text(&s, "type"); // older files
    if (!kind) kind = "default";
    for (r->kind = WT_ROPE_DEFAULT; r->kind < WT_ROPE_FACTORS && strcmp(kind, rope_kinds[r->kind]);) r->kind++;
    if (!s.status && r->kind == WT_ROPE_FACTORS)
        s.status = wt_fail(WT_ERR_UNSUPPORTED,
                           "%s: RoPE of type \"%.40s\", want default, linear, dynamic, yarn or llama3", f->file, kind);
    if (!s.status && r->kind != WT_ROPE_DEFAULT) read_scaling(&s, c, r);
    if (!f->status) f->status = s.status;
}

// ---- layers

static void read_layer_types(wt__fields *f, const json_t *types, wt_model_config *c)
{
    if (json_array_size(types) != (size_t)c->n_layers) {
        f->status = wt_fail(WT_ERR_FORMAT, "%s: \"layer_types\" has %zu entries, want %d, one a layer", f->file,
                            json_array_size(types), c->n_layers);
        return;
    }
    for (int l = 0; l < c->n_layers; l++) {
        const char *type = json_string_value(json_array_get(types, (size_t)l));
        c->layer_slides[l] = type && !strcmp(type, "sliding_attention");
        if (c->layer_slides[l] || (type && !strcmp(type, "full_attention"))) continue;
        f->status = wt_fail(WT_ERR_UNSUPPORTED,
                            "%s: \"layer_types\" of layer %d is \"%.40s\", want full_attention or sliding_attention",
                            f->file, l, type ? type : "");
        return;
    }
}

/// Mistral and Mixtral: all layers, when there is a window. Qwen: only with use_sliding_window, and then Qwen2 and
/// Qwen3 the layers from max_window_layers on, or those of layer_types.
static void read_sliding(wt__fields *f, wt_model_config *c)
{
    const bool qwen = c->family == WT_MODEL_QWEN2 || c->family == WT_MODEL_QWEN3, moe = c->family == WT_MODEL_QWEN3_MOE;
    const bool mistral = c->family == WT_MODEL_MISTRAL;
    if (c->family == WT_MODEL_LLAMA) return;
    if ((qwen || moe) && !wt__field_bool(f, "use_sliding_window", false)) return;
    const bool written = json_object_get(f->object, "sliding_window"); // null says: none
    const int window = wt__field_int(f, "sliding_window", 1, WT__MAX_POSITIONS, 0);
    c->sliding_window = !written && (mistral || qwen || moe) ? 4096 : window;
    if (!c->sliding_window) return;
    const json_t *types = qwen ? wt__field_of(f, "layer_types", JSON_ARRAY) : NULL;
    const int first = qwen ? wt__field_int(f, "max_window_layers", 0, INT_MAX, 28) : 0;
    for (int l = first; l < c->n_layers; l++) c->layer_slides[l] = true;
    if (types && !f->status) read_layer_types(f, types, c);
    bool any = false;
    for (int l = 0; l < c->n_layers; l++) any |= c->layer_slides[l];
    if (!any) c->sliding_window = 0;
}

static void read_experts(wt__fields *f, wt_model_config *c)
{
    const bool mixtral = c->family == WT_MODEL_MIXTRAL;
    if (!mixtral && c->family != WT_MODEL_QWEN3_MOE) return;
    const bool local = mixtral || !json_object_get(f->object, "num_experts"); // transformers 5 writes num_local_experts
    c->n_experts = wt__field_int(f, local ? "num_local_experts" : "num_experts", 1, WT__MAX_EXPERTS, WT__REQUIRED);
    c->n_experts_used = wt__field_int(f, "num_experts_per_tok", 1, WT__MAX_EXPERTS, WT__REQUIRED);
    c->d_ff_expert = mixtral ? c->d_ff : wt__field_int(f, "moe_intermediate_size", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->norm_expert_weights = mixtral || wt__field_bool(f, "norm_topk_prob", false);
    const int step = mixtral ? 1 : wt__field_int(f, "decoder_sparse_step", 1, INT_MAX, 1);
    for (int l = 0; l < c->n_layers; l++) c->layer_has_experts[l] = (l + 1) % step == 0;
    const json_t *dense = mixtral ? NULL : wt__field_of(f, "mlp_only_layers", JSON_ARRAY);
    for (size_t k = 0; k < json_array_size(dense); k++) {
        const json_t *layer = json_array_get(dense, k);
        const json_int_t l = json_integer_value(layer);
        if (json_is_integer(layer) && l >= 0 && l < c->n_layers)
            c->layer_has_experts[l] = false;
        else if (!f->status)
            f->status = wt_fail(WT_ERR_FORMAT, "%s: \"mlp_only_layers\" has an entry that is no layer, 0..%d", f->file,
                                c->n_layers - 1);
    }
}

// ---- families

static void read_gpt2(wt__fields *f, wt_model_config *c)
{
    c->n_layers = wt__field_int(f, "n_layer", 1, WT_MODEL_MAX_LAYERS, WT__REQUIRED);
    c->d_model = wt__field_int(f, "n_embd", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->n_heads = wt__field_int(f, "n_head", 1, WT__MAX_HEADS, WT__REQUIRED);
    c->max_positions = wt__field_int(f, "n_positions", 1, WT__MAX_POSITIONS, WT__REQUIRED);
    c->d_ff = wt__field_int(f, "n_inner", 1, WT__MAX_WIDTH, 4 * c->d_model);
    c->norm_eps = wt__field_real(f, "layer_norm_epsilon", 1e-12, 1, 1e-5);
    read_activation(f, "activation_function", "gelu_new", &c->activation);
    c->n_kv_heads = c->n_heads;
    c->d_head = c->d_model / c->n_heads;
    c->qkv_bias = c->o_bias = c->mlp_bias = true;
    c->scale_by_layer = wt__field_bool(f, "scale_attn_by_inverse_layer_idx", false);
    c->rope = (wt_rope_config){.kind = WT_ROPE_NONE, .factor = 1, .attention_factor = 1};
    if (!wt__field_bool(f, "scale_attn_weights", true) && !f->status)
        f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: \"scale_attn_weights\" is false, want true", f->file);
}

static void read_llama_kin(wt__fields *f, wt_model_config *c)
{
    const bool llama = c->family == WT_MODEL_LLAMA;
    const bool qwen3 = c->family == WT_MODEL_QWEN3 || c->family == WT_MODEL_QWEN3_MOE;
    c->n_layers = wt__field_int(f, "num_hidden_layers", 1, WT_MODEL_MAX_LAYERS, WT__REQUIRED);
    c->d_model = wt__field_int(f, "hidden_size", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->n_heads = wt__field_int(f, "num_attention_heads", 1, WT__MAX_HEADS, WT__REQUIRED);
    c->n_kv_heads = wt__field_int(f, "num_key_value_heads", 1, WT__MAX_HEADS, llama ? c->n_heads : WT__REQUIRED);
    const int d_head = c->family == WT_MODEL_QWEN3 ? 128 : c->d_model / c->n_heads;
    c->d_head = wt__field_int(f, "head_dim", 1, WT__MAX_WIDTH, d_head > 0 ? d_head : 1);
    c->d_ff = wt__field_int(f, "intermediate_size", 1, WT__MAX_WIDTH, WT__REQUIRED);
    c->max_positions = wt__field_int(f, "max_position_embeddings", 1, WT__MAX_POSITIONS, WT__REQUIRED);
    c->norm_eps = wt__field_real(f, "rms_norm_eps", 1e-12, 1, WT__REQUIRED_REAL);
    read_activation(f, "hidden_act", "silu", &c->activation);
    const bool bias = (llama || qwen3) && wt__field_bool(f, "attention_bias", false);
    c->qkv_bias = bias || c->family == WT_MODEL_QWEN2;
    c->o_bias = bias;
    c->mlp_bias = llama && wt__field_bool(f, "mlp_bias", false);
    c->qk_norm = qwen3;
    read_rope(f, c);
    read_sliding(f, c);
    read_experts(f, c);
}

// ---- ids, and what generation_config.json says

static void read_ids(wt__fields *f, wt_model_config *c)
{
    const json_t *eos = json_object_get(f->object, "eos_token_id");
    c->bos_id = wt__field_int(f, "bos_token_id", 0, INT_MAX, c->bos_id);
    if (f->status || !eos || json_is_null(eos)) return;
    const size_t n = json_is_array(eos) ? json_array_size(eos) : 1;
    c->n_eos = 0;
    for (size_t k = 0; k < n; k++) {
        const json_t *id = json_is_array(eos) ? json_array_get(eos, k) : eos;
        const json_int_t value = json_integer_value(id);
        if (n > WT_MODEL_MAX_EOS || !json_is_integer(id) || value < 0 || value > INT_MAX) {
            f->status = wt_fail(WT_ERR_FORMAT, "%s: \"eos_token_id\" is not a token or a list of %d tokens at most",
                                f->file, WT_MODEL_MAX_EOS);
            return;
        }
        c->eos_ids[c->n_eos++] = (int32_t)value;
    }
}

static void read_generation(wt__fields *f, wt_model_config *c)
{
    wt_generation_config *g = &c->generation;
    read_ids(f, c);
    g->do_sample = wt__field_bool(f, "do_sample", false);
    g->temperature = wt__field_real(f, "temperature", 0, 1e3, 0);
    g->top_p = wt__field_real(f, "top_p", 0, 1, 0);
    g->min_p = wt__field_real(f, "min_p", 0, 1, 0);
    g->typical_p = wt__field_real(f, "typical_p", 0, 1, 0);
    g->repetition_penalty = wt__field_real(f, "repetition_penalty", 0, 1e3, 0);
    g->top_k = wt__field_int(f, "top_k", 0, INT_MAX, 0);
    g->max_new_tokens = wt__field_int(f, "max_new_tokens", 0, INT_MAX, 0);
}

wt_status wt__model_config_check(const char *file, const wt_model_config *c)
{
    if (c->n_heads % c->n_kv_heads)
        return wt_fail(WT_ERR_FORMAT, "%s: %d heads over %d of keys and values, want a multiple", file, c->n_heads,
                       c->n_kv_heads);
    if (c->family == WT_MODEL_GPT2 && c->d_model % c->n_heads)
        return wt_fail(WT_ERR_FORMAT, "%s: a width of %d over %d heads, want a multiple", file, c->d_model, c->n_heads);
    if (c->rope.kind && (c->rope.n_dims % 2 || c->rope.n_dims < 2 || c->rope.n_dims > c->d_head))
        return wt_fail(WT_ERR_FORMAT, "%s: RoPE turns %d of %d dimensions of a head, want an even number in 2..%d",
                       file, c->rope.n_dims, c->d_head, c->d_head);
    if (c->n_experts_used > c->n_experts)
        return wt_fail(WT_ERR_FORMAT, "%s: %d experts of %d are used, want %d or less", file, c->n_experts_used,
                       c->n_experts, c->n_experts);
    return WT_OK;
}

static wt_status read_config(const char *file, const json_t *object, wt_model_config *c)
{
    wt__fields f = {file, object, WT_OK};
    *c = (wt_model_config){.bos_id = -1};
    if (read_family(&f, &c->family)) return f.status;
    const bool gpt2 = c->family == WT_MODEL_GPT2;
    (gpt2 ? read_gpt2 : read_llama_kin)(&f, c);
    c->vocab_size = wt__field_int(&f, "vocab_size", 1, WT__MAX_VOCAB, WT__REQUIRED);
    c->tied_head = wt__field_bool(&f, "tie_word_embeddings", gpt2);
    const char *dtype = wt__field_text(&f, "dtype"); // transformers 5; before, torch_dtype
    if (!dtype) dtype = wt__field_text(&f, "torch_dtype");
    snprintf(c->dtype, sizeof c->dtype, "%s", dtype ? dtype : "");
    read_ids(&f, c);
    if (!f.status) wt__model_quant_read(&f, &c->quant);
    return f.status ? f.status : wt__model_config_check(file, c);
}

// ---- files

static wt_status read_both(const char *file, const json_t *object, const char *generation_file,
                           const json_t *generation, wt_model_config *config)
{
    wt__fields g = {generation_file, generation, WT_OK};
    wt_status status = read_config(file, object, config);
    if (status || !generation) return status;
    read_generation(&g, config);
    return g.status;
}

wt_status wt_model_config_parse(const char *name, const char *json, size_t size, const char *generation,
                                size_t generation_size, wt_model_config *config)
{
    json_t *object = NULL, *second = NULL;
    wt_status status = wt__json_parse(name, json, size, &object);
    if (!status && generation) status = wt__json_parse("generation_config.json", generation, generation_size, &second);
    if (!status) status = read_both(name, object, "generation_config.json", second, config);
    json_decref(object);
    json_decref(second);
    return status;
}

/// config.json at `path`, and generation_config.json when it lies beside.
static wt_status open_json(const char *path, wt_model_config *config)
{
    char beside[PATH_MAX];
    const char *slash = strrchr(path, '/');
    json_t *object = NULL, *generation = NULL;
    if (snprintf(beside, sizeof beside, "%.*sgeneration_config.json", slash ? (int)(slash - path) + 1 : 0, path) >=
        (int)sizeof beside)
        return wt_fail(WT_ERR_BAD_ARG, "model config: the path is too long");
    wt_status status = wt__json_read(path, &object);
    if (!status && !access(beside, F_OK)) status = wt__json_read(beside, &generation);
    if (!status) status = read_both(path, object, beside, generation, config);
    json_decref(object);
    json_decref(generation);
    return status;
}

/// Where config.json would be: in a folder, or beside safetensors and their index; `path` itself when it is one. False:
/// nowhere, the file carries its own.
static bool config_path(const char *path, char config[PATH_MAX])
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    int length;
    if (!stat(path, &info) && S_ISDIR(info.st_mode))
        length = snprintf(config, PATH_MAX, "%s/config.json", path);
    else if (wt__ends_with(path, ".safetensors") || wt__ends_with(path, ".index.json"))
        length = snprintf(config, PATH_MAX, "%.*sconfig.json", folder, path);
    else if (wt__ends_with(path, ".json"))
        length = snprintf(config, PATH_MAX, "%s", path);
    else
        return false;
    return length < PATH_MAX && (!access(config, F_OK) || !strcmp(config, path));
}

wt_status wt_model_config_open(const char *path, wt_model_config *config)
{
    char json[PATH_MAX];
    if (config_path(path, json)) return open_json(json, config);
    wt_weights *weights;
    wt_status status = wt_weights_open(path, &weights);
    if (!status) status = wt_model_config_of_weights(weights, config);
    wt_weights_close(weights);
    return status;
}
