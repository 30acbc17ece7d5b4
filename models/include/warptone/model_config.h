/// What a language model is made of: config.json and generation_config.json of the hub, GGUF's keys, llama2.c's header,
/// read into one struct. Nothing is guessed from weights: what a file must say and does not say is an error; what it
/// may leave out has the default of its family in transformers.
#ifndef WARPTONE_MODEL_CONFIG_H
#define WARPTONE_MODEL_CONFIG_H

#include <warptone/activation.h>
#include <warptone/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
/// X(code, model_type of config.json, architecture of config.json)
#define WT_MODEL_FAMILY_LIST(X)                                     \
    X(WT_MODEL_GPT2,      "gpt2",      "GPT2LMHeadModel")           \
    X(WT_MODEL_LLAMA,     "llama",     "LlamaForCausalLM")          \
    X(WT_MODEL_MISTRAL,   "mistral",   "MistralForCausalLM")        \
    X(WT_MODEL_MIXTRAL,   "mixtral",   "MixtralForCausalLM")        \
    X(WT_MODEL_QWEN2,     "qwen2",     "Qwen2ForCausalLM")          \
    X(WT_MODEL_QWEN3,     "qwen3",     "Qwen3ForCausalLM")          \
    X(WT_MODEL_QWEN3_MOE, "qwen3_moe", "Qwen3MoeForCausalLM")
// clang-format on

typedef enum wt_model_family {
#define WT_MODEL_FAMILY_ENUM(code, type, architecture) code,
    WT_MODEL_FAMILY_LIST(WT_MODEL_FAMILY_ENUM)
#undef WT_MODEL_FAMILY_ENUM
        WT_N_MODEL_FAMILIES
} wt_model_family;

/// With d = n_dims and f_k = theta^(-2k/d), k = 0 .. d/2 - 1, how frequencies come from f_k. Source: transformers,
/// modeling_rope_utils.py.
typedef enum wt_rope_kind {
    WT_ROPE_NONE,    ///< learnt positions (GPT-2)
    WT_ROPE_DEFAULT, ///< f_k
    WT_ROPE_LINEAR,  ///< f_k / factor
    WT_ROPE_DYNAMIC, ///< theta grows with the length n: theta (factor n / original_positions - factor + 1)^(d / (d -
                     ///< 2))
    WT_ROPE_YARN,    ///< f_k and f_k / factor blended between beta_fast and beta_slow turns in original_positions
    WT_ROPE_LLAMA3,  ///< likewise between low and high frequency factors
    WT_ROPE_FACTORS, ///< f_k / tensor rope_freqs.weight [d / 2]: how GGUF holds llama3
    WT_N_ROPE_KINDS
} wt_rope_kind;

typedef struct wt_rope_config {
    wt_rope_kind kind;
    double theta;
    int n_dims;             ///< of each head that turn, the first ones; even
    bool interleaved;       ///< pairs are (2k, 2k + 1) and not (k, k + n_dims / 2): GGUF's llama, llama2.c
    double factor;          ///< 1 = default
    int original_positions; ///< what the model was trained with, before the scaling
    double beta_fast, beta_slow;
    double attention_factor; ///< of cosines and sines; 1 but for yarn
    bool no_truncate;        ///< yarn: the blend's ends are not rounded to whole dimensions
    double low_freq_factor, high_freq_factor;
} wt_rope_config;

/// Radians a position for each pair of dimensions, [n_dims / 2], and the factor of cosines and sines. `factors`
/// [n_dims / 2] only for WT_ROPE_FACTORS; `length`, of the text in tokens, only matters to WT_ROPE_DYNAMIC.  [any]
void wt_rope_frequencies(const wt_rope_config *rope, const float *factors, int length, float *frequencies,
                         float *scale);

/// How quantised weights are stored; found in config.json. GGUF's blocks are types of their tensors, and no method.
typedef enum wt_quant_method {
    WT_QUANT_NONE,
    WT_QUANT_FP8,                ///< weight F8_E4M3, weight_scale_inv a block, or weight_scale a tensor or a row
    WT_QUANT_AWQ,                ///< qweight, qzeros, scales: 4 bits in I32, columns in AWQ's order
    WT_QUANT_GPTQ,               ///< qweight, qzeros, scales, g_idx: bits in I32, down the rows
    WT_QUANT_COMPRESSED_TENSORS, ///< weight I8, weight_scale a row; or as fp8, weight_scale a block too
    WT_N_QUANT_METHODS
} wt_quant_method;

typedef struct wt_quant_config {
    wt_quant_method method;
    int bits;                      ///< of a weight
    int group_size;                ///< weights that share a scale along the input; 0 = the whole row, or blocks
    int block_rows, block_columns; ///< fp8 with a scale a block: 128, 128; 0 = one scale a tensor or row
    bool floats;                   ///< weights are fp8 e4m3, and not integers
    bool zero_points;              ///< weights are not symmetric
    bool act_order;                ///< GPTQ's desc_act: groups go by g_idx
    bool zero_points_exact;        ///< GPTQ's checkpoint_format gptq_v2: zero points are stored as they are, not less 1
    bool activations;              ///< inputs are quantised too, a scale a token
} wt_quant_config;

/// What generation_config.json asks for; 0 in all is "not said".
typedef struct wt_generation_config {
    bool do_sample;
    double temperature, top_p, min_p, typical_p, repetition_penalty;
    int top_k;
    int max_new_tokens; ///< of an answer, the prompt not counted
} wt_generation_config;

enum { WT_MODEL_MAX_LAYERS = 256, WT_MODEL_MAX_EOS = 16 };

typedef struct wt_model_config {
    wt_model_family family;
    int n_layers, d_model, n_heads, n_kv_heads, d_head, vocab_size, max_positions;
    int d_ff; ///< of a dense feed-forward
    wt_activation activation;
    double norm_eps;
    bool tied_head; ///< the head is the embedding
    bool qkv_bias, o_bias, mlp_bias;
    bool qk_norm;        ///< RMSNorm over each head of q and k (Qwen3)
    bool scale_by_layer; ///< attention's scores also by 1 / (layer + 1): GPT-2's scale_attn_by_inverse_layer_idx
    wt_rope_config rope;

    int sliding_window; ///< positions a sliding layer sees, itself included; 0 = none slides
    bool layer_slides[WT_MODEL_MAX_LAYERS];

    int n_experts, n_experts_used, d_ff_expert; ///< 0 without experts
    bool norm_expert_weights;                   ///< the chosen experts' weights are made to sum to 1
    bool layer_has_experts[WT_MODEL_MAX_LAYERS];

    int32_t bos_id;                    ///< -1 = none
    int32_t eos_ids[WT_MODEL_MAX_EOS]; ///< generation_config.json's, else config.json's
    int n_eos;
    char dtype[16]; ///< "bfloat16": what the weights were trained in; "" = not said
    wt_quant_config quant;
    wt_generation_config generation;
} wt_model_config;

/// Read the config of a model: a folder (config.json, and generation_config.json when there; else its one *.gguf),
/// safetensors or their index with config.json beside, a config.json, a *.gguf or llama2.c's *.bin.
/// Errors: WT_ERR_FILE; WT_ERR_NOT_FOUND for a folder without a config; WT_ERR_FORMAT naming a field, met and wanted;
/// WT_ERR_UNSUPPORTED naming a family, kind of RoPE or quantisation that is not known, and those that are.  [worker]
WT_CHECKED wt_status wt_model_config_open(const char *path, wt_model_config *config);

/// The same from bytes: `name` stands in messages; generation may be NULL. Errors: WT_ERR_FORMAT and
/// WT_ERR_UNSUPPORTED as above.  [worker]
WT_CHECKED wt_status wt_model_config_parse(const char *name, const char *json, size_t size, const char *generation,
                                           size_t generation_size, wt_model_config *config);

/// The same from open weights that carry their own: GGUF and llama2.c. Errors: also WT_ERR_NOT_FOUND for
/// safetensors.  [worker]
WT_CHECKED wt_status wt_model_config_of_weights(const wt_weights *weights, wt_model_config *config);

const char *wt_model_family_name(wt_model_family family); ///< "qwen3_moe"  [any]
const char *wt_rope_kind_name(wt_rope_kind kind);         ///< "yarn"  [any]
const char *wt_activation_name(wt_activation activation); ///< "silu"  [any]
const char *wt_quant_method_name(wt_quant_method method); ///< "gptq"  [any]

#ifdef __cplusplus
}
#endif
#endif
