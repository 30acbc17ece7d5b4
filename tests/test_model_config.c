#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/model_files.h"
#include "support/testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/model_config.h>

static wt_model_config c; // of the case at hand: a kilobyte, not on the stack

static wt_status parse(const char *json, const char *generation)
{
    return wt_model_config_parse("config.json", json, strlen(json), generation, generation ? strlen(generation) : 0,
                                 &c);
}

/// A good Llama with `more` fields after those of every model; a later one may not repeat an earlier.
#define SIZES                                                                                                          \
    "\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":8,\"intermediate_size\":96,"                   \
    "\"vocab_size\":320,\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-05"
#define LLAMA(more)     "{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"]," SIZES more "}"
#define KIN(type, more) "{\"model_type\":\"" type "\"," SIZES ",\"num_key_value_heads\":2" more "}"

static void llama_reads_with_its_defaults(void **state)
{
    (void)state;
    assert_ok(parse(LLAMA(""), NULL));
    assert_int_equal(c.family, WT_MODEL_LLAMA);
    assert_string_equal(wt_model_family_name(c.family), "llama");
    assert_int_equal(c.n_layers, 4);
    assert_int_equal(c.d_model, 64);
    assert_int_equal(c.n_heads, 8);
    assert_int_equal(c.n_kv_heads, 8);
    assert_int_equal(c.d_head, 8);
    assert_int_equal(c.d_ff, 96);
    assert_int_equal(c.vocab_size, 320);
    assert_int_equal(c.max_positions, 4096);
    assert_true(c.norm_eps == 1e-5);
    assert_int_equal(c.activation, WT_ACTIVATION_SILU);
    assert_false(c.tied_head || c.qkv_bias || c.o_bias || c.mlp_bias || c.qk_norm || c.sliding_window || c.n_experts);
    assert_int_equal(c.rope.kind, WT_ROPE_DEFAULT);
    assert_true(c.rope.theta == 1e4 && c.rope.factor == 1 && c.rope.attention_factor == 1);
    assert_int_equal(c.rope.n_dims, 8);
    assert_int_equal(c.bos_id, -1);
    assert_int_equal(c.n_eos, 0);
    assert_int_equal(c.quant.method, WT_QUANT_NONE);
    assert_string_equal(c.dtype, "");

    assert_ok(
        parse(LLAMA(",\"num_key_value_heads\":2,\"head_dim\":16,\"attention_bias\":true,\"mlp_bias\":true,"
                    "\"hidden_act\":\"gelu\",\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
                    "\"rope_theta\":500000,\"partial_rotary_factor\":0.5,\"bos_token_id\":1,\"eos_token_id\":[2,7]"),
              NULL));
    assert_int_equal(c.n_kv_heads, 2);
    assert_int_equal(c.d_head, 16);
    assert_true(c.qkv_bias && c.o_bias && c.mlp_bias && c.tied_head);
    assert_int_equal(c.activation, WT_ACTIVATION_GELU);
    assert_true(c.rope.theta == 5e5 && c.rope.n_dims == 8);
    assert_string_equal(c.dtype, "bfloat16");
    assert_int_equal(c.bos_id, 1);
    assert_true(c.n_eos == 2 && c.eos_ids[0] == 2 && c.eos_ids[1] == 7);
}

static void families_differ_where_they_do(void **state)
{
    (void)state;
    assert_ok(parse("{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":48,\"n_head\":4,\"n_positions\":1024,"
                    "\"vocab_size\":50257,\"n_inner\":null,\"activation_function\":\"gelu_new\",\"bos_token_id\":50256,"
                    "\"eos_token_id\":50256,\"architectures\":[\"GPT2LMHeadModel\"]}",
                    NULL));
    assert_true(c.tied_head && c.qkv_bias && c.o_bias && c.mlp_bias);
    assert_true(c.d_ff == 192 && c.d_head == 12 && c.n_kv_heads == 4 && c.norm_eps == 1e-5);
    assert_int_equal(c.activation, WT_ACTIVATION_GELU_TANH);
    assert_int_equal(c.rope.kind, WT_ROPE_NONE);

    assert_ok(parse(KIN("qwen2", ""), NULL));
    assert_true(c.qkv_bias && !c.o_bias && !c.qk_norm);
    assert_ok(parse(KIN("qwen3", ""), NULL));
    assert_true(!c.qkv_bias && c.qk_norm && c.d_head == 128);
    assert_ok(parse(KIN("mixtral", ",\"num_local_experts\":8,\"num_experts_per_tok\":2"), NULL));
    assert_true(c.n_experts == 8 && c.n_experts_used == 2 && c.d_ff_expert == 96 && c.norm_expert_weights);
    assert_true(c.layer_has_experts[0] && c.layer_has_experts[3] && !c.layer_has_experts[4]);
    assert_true(c.rope.theta == 1e6 && c.sliding_window == 0);
    assert_ok(parse(KIN("qwen3_moe", ",\"num_experts\":16,\"num_experts_per_tok\":4,\"moe_intermediate_size\":24,"
                                     "\"decoder_sparse_step\":2,\"mlp_only_layers\":[3],\"norm_topk_prob\":true"),
                    NULL));
    assert_true(c.n_experts == 16 && c.d_ff_expert == 24 && c.d_ff == 96 && c.norm_expert_weights && c.qk_norm);
    assert_true(!c.layer_has_experts[0] && c.layer_has_experts[1] && !c.layer_has_experts[2] &&
                !c.layer_has_experts[3]);
}

static void windows_slide_where_the_family_says(void **state)
{
    (void)state;
    assert_ok(parse(KIN("mistral", ",\"sliding_window\":32"), NULL));
    assert_true(c.sliding_window == 32 && c.layer_slides[0] && c.layer_slides[3] && !c.layer_slides[4]);
    assert_ok(parse(KIN("mistral", ",\"sliding_window\":null"), NULL));
    assert_true(c.sliding_window == 0 && !c.layer_slides[0]);
    assert_ok(parse(KIN("mistral", ""), NULL)); // absent is not null: MistralConfig's default
    assert_true(c.sliding_window == 4096 && c.layer_slides[0]);
    assert_ok(parse(KIN("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":false,\"max_window_layers\":1"), NULL));
    assert_true(c.sliding_window == 0);
    assert_ok(parse(KIN("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":1"), NULL));
    assert_true(c.sliding_window == 32 && !c.layer_slides[0] && c.layer_slides[1] && c.layer_slides[3]);
    assert_ok(parse(KIN("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":4"), NULL));
    assert_true(c.sliding_window == 0); // no layer slides
    assert_ok(
        parse(KIN("qwen3", ",\"sliding_window\":32,\"use_sliding_window\":true,\"layer_types\":[\"sliding_attention\","
                           "\"full_attention\",\"sliding_attention\",\"full_attention\"]"),
              NULL));
    assert_true(c.layer_slides[0] && !c.layer_slides[1] && c.layer_slides[2] && !c.layer_slides[3]);
}

static void every_kind_of_rope_reads(void **state)
{
    (void)state;
    assert_ok(parse(LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}"), NULL));
    assert_true(c.rope.kind == WT_ROPE_LINEAR && c.rope.factor == 2);
    assert_ok(parse(LLAMA(",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":4}"), NULL));
    assert_true(c.rope.kind == WT_ROPE_DYNAMIC && c.rope.factor == 4 && c.rope.original_positions == 4096);
    assert_ok(parse(LLAMA(",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
                          "\"original_max_position_embeddings\":2048}"),
                    NULL));
    assert_true(c.rope.kind == WT_ROPE_YARN && c.rope.factor == 4 && c.rope.original_positions == 2048);
    assert_true(c.rope.beta_fast == 32 && c.rope.beta_slow == 1 && !c.rope.no_truncate);
    assert_true(fabs(c.rope.attention_factor - 1.1386294361119891) < 1e-15); // 0.1 ln 4 + 1
    assert_ok(parse(LLAMA(",\"rope_scaling\":{\"rope_type\":\"yarn\",\"original_max_position_embeddings\":512,"
                          "\"mscale\":0.707,\"mscale_all_dim\":0.707,\"truncate\":false,\"beta_fast\":16}"),
                    NULL));
    assert_true(c.rope.factor == 8 && c.rope.attention_factor == 1 && c.rope.no_truncate && c.rope.beta_fast == 16);
    assert_ok(parse(LLAMA(",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":2,\"attention_factor\":0.5}"), NULL));
    assert_true(c.rope.attention_factor == 0.5 && c.rope.original_positions == 4096);
    assert_ok(
        parse(LLAMA(",\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
                    "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":1024}"),
              NULL));
    assert_true(c.rope.kind == WT_ROPE_LLAMA3 && c.rope.factor == 8 && c.rope.low_freq_factor == 1);
    assert_true(c.rope.high_freq_factor == 4 && c.rope.original_positions == 1024 && c.rope.theta == 5e5);
    assert_ok(parse(LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1000000.0}"), NULL));
    assert_true(c.rope.kind == WT_ROPE_DEFAULT && c.rope.theta == 1e6);
    assert_ok(parse(LLAMA(",\"rope_scaling\":null,\"rope_theta\":20000.0"), NULL));
    assert_true(c.rope.kind == WT_ROPE_DEFAULT && c.rope.theta == 2e4);
}

#define QUANT(fields) LLAMA(",\"quantization_config\":{" fields "}")
#define CT_OF(format, more, weights)                                                                                   \
    QUANT("\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\",\"config_groups\":{\"group_0\":{" more   \
          "\"weights\":{" weights "}}}")
#define CT(more, weights) CT_OF("int-quantized", more, weights)
#define CT_FLOAT(weights) CT_OF("float-quantized", "", "\"num_bits\":8,\"type\":\"float\"," weights)

static void quantised_checkpoints_are_recognised(void **state)
{
    (void)state;
    const wt_quant_config *q = &c.quant;
    assert_ok(parse(QUANT("\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"activation_scheme\":\"dynamic\","
                          "\"weight_block_size\":[128,64]"),
                    NULL));
    assert_true(q->method == WT_QUANT_FP8 && q->bits == 8 && q->activations);
    assert_true(q->block_rows == 128 && q->block_columns == 64);
    assert_ok(parse(QUANT("\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"version\":\"gemm\","
                          "\"zero_point\":true,\"modules_to_not_convert\":null"),
                    NULL));
    assert_true(q->method == WT_QUANT_AWQ && q->bits == 4 && q->group_size == 128 && q->zero_points);
    assert_ok(
        parse(QUANT("\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1,\"desc_act\":true,\"sym\":true"), NULL));
    assert_true(q->method == WT_QUANT_GPTQ && q->bits == 8 && q->group_size == 0 && q->act_order && !q->zero_points);
    assert_false(q->zero_points_exact);
    assert_ok(parse(QUANT("\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"checkpoint_format\":\"gptq_v2\","
                          "\"sym\":false"),
                    NULL));
    assert_true(q->zero_points && q->zero_points_exact && q->group_size == 32);
    assert_ok(parse(CT("\"input_activations\":{\"num_bits\":8,\"dynamic\":true},",
                       "\"num_bits\":8,\"type\":\"int\","
                       "\"strategy\":\"channel\",\"symmetric\":true,\"group_size\":null"),
                    NULL));
    assert_true(q->method == WT_QUANT_COMPRESSED_TENSORS && q->bits == 8 && q->activations);
    assert_string_equal(wt_quant_method_name(q->method), "compressed-tensors");
    assert_ok(parse(CT("", "\"num_bits\":8"), NULL));
    assert_false(q->activations || q->floats);
    assert_ok(parse(CT_FLOAT("\"strategy\":\"channel\",\"symmetric\":true,\"block_structure\":null"), NULL));
    assert_true(q->method == WT_QUANT_COMPRESSED_TENSORS && q->bits == 8 && q->floats && !q->block_rows);
    assert_ok(parse(CT_FLOAT("\"strategy\":\"block\",\"block_structure\":[128,64]"), NULL));
    assert_true(q->floats && q->block_rows == 128 && q->block_columns == 64);
}

static void generation_config_comes_first(void **state)
{
    (void)state;
    assert_ok(
        parse(LLAMA(",\"eos_token_id\":2,\"bos_token_id\":1"),
              "{\"bos_token_id\":5,\"eos_token_id\":[6,7],\"do_sample\":true,\"temperature\":0.6,\"top_k\":20,"
              "\"top_p\":0.95,\"min_p\":0.1,\"typical_p\":1.0,\"repetition_penalty\":1.05,\"max_new_tokens\":99}"));
    assert_true(c.bos_id == 5 && c.n_eos == 2 && c.eos_ids[0] == 6 && c.eos_ids[1] == 7);
    const wt_generation_config *g = &c.generation;
    assert_true(g->do_sample && g->temperature == 0.6 && g->top_k == 20 && g->top_p == 0.95 && g->min_p == 0.1);
    assert_true(g->typical_p == 1 && g->repetition_penalty == 1.05 && g->max_new_tokens == 99);
    assert_ok(parse(LLAMA(",\"eos_token_id\":2,\"bos_token_id\":1"), "{\"eos_token_id\":null}"));
    assert_true(c.bos_id == 1 && c.n_eos == 1 && c.eos_ids[0] == 2 && !c.generation.do_sample);
    assert_fails(parse(LLAMA(""), "{\"top_p\":2}"), WT_ERR_FORMAT,
                 "generation_config.json: \"top_p\" is 2, want a number in 0..1");
}

static void wrong_fields_are_named_with_met_and_wanted(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        wt_status status;
        const char *sentence;
    } cases[] = {
        {"{\"model_type\":\"gemma2\"}", WT_ERR_UNSUPPORTED,
         "config.json: \"model_type\" is \"gemma2\", want one of gpt2, llama, mistral, mixtral, qwen2, qwen3, "
         "qwen3_moe"},
        {"{}", WT_ERR_UNSUPPORTED,
         "config.json: \"model_type\" is \"\", want one of gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe"},
        {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"]}", WT_ERR_UNSUPPORTED,
         "config.json: the architecture is LlamaForSequenceClassification, want LlamaForCausalLM"},
        {"{\"model_type\":7}", WT_ERR_FORMAT, "config.json: \"model_type\" is 7, want a string"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_attention_heads\":8}", WT_ERR_FORMAT,
         "config.json: \"num_hidden_layers\" is missing, want an integer in 1..256"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":\"four\"}", WT_ERR_FORMAT,
         "config.json: \"num_hidden_layers\" is \"four\", want an integer in 1..256"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":2.5}", WT_ERR_FORMAT,
         "config.json: \"num_hidden_layers\" is 2.5, want an integer in 1..256"},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":99999999999}", WT_ERR_FORMAT,
         "config.json: \"num_hidden_layers\" is 99999999999, want an integer in 1..256"},
        {"{\"model_type\":\"qwen2\"," SIZES "}", WT_ERR_FORMAT,
         "config.json: \"num_key_value_heads\" is missing, want an integer in 1..4096"},
        {LLAMA(",\"num_key_value_heads\":3"), WT_ERR_FORMAT,
         "config.json: 8 heads over 3 of keys and values, want a multiple"},
        {LLAMA(",\"head_dim\":7"), WT_ERR_FORMAT,
         "config.json: RoPE turns 7 of 7 dimensions of a head, want an even number in 2..7"},
        {LLAMA(",\"tie_word_embeddings\":1"), WT_ERR_FORMAT,
         "config.json: \"tie_word_embeddings\" is 1, want true or false"},
        {LLAMA(",\"hidden_act\":\"xielu\""), WT_ERR_UNSUPPORTED,
         "config.json: \"hidden_act\" is \"xielu\", want silu, gelu, gelu_new, gelu_pytorch_tanh or relu"},
        {LLAMA(",\"eos_token_id\":\"</s>\""), WT_ERR_FORMAT,
         "config.json: \"eos_token_id\" is not a token or a list of 16 tokens at most"},
        {LLAMA(",\"rope_scaling\":{\"type\":\"longrope\",\"factor\":4}"), WT_ERR_UNSUPPORTED,
         "config.json: RoPE of type \"longrope\", want default, linear, dynamic, yarn or llama3"},
        {LLAMA(",\"rope_scaling\":{\"type\":\"none\"}"), WT_ERR_UNSUPPORTED,
         "config.json: RoPE of type \"none\", want default, linear, dynamic, yarn or llama3"},
        {LLAMA(",\"rope_scaling\":{\"type\":\"linear\"}"), WT_ERR_FORMAT,
         "config.json: \"factor\" is missing, want a number in 0.001..1e+06"},
        {LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"original_max_position_embeddings\":64,"
               "\"low_freq_factor\":4,\"high_freq_factor\":1}"),
         WT_ERR_FORMAT, "config.json: \"high_freq_factor\" is 1, want more than \"low_freq_factor\", 4"},
        {LLAMA(",\"rope_scaling\":[]"), WT_ERR_FORMAT, "config.json: \"rope_scaling\" is an array, want an object"},
        {KIN("qwen3", ",\"use_sliding_window\":true,\"layer_types\":[\"full_attention\"]"), WT_ERR_FORMAT,
         "config.json: \"layer_types\" has 1 entries, want 4, one a layer"},
        {KIN("qwen3",
             ",\"use_sliding_window\":true,\"layer_types\":[\"full_attention\",\"chunked_attention\",\"\",\"\"]"),
         WT_ERR_UNSUPPORTED,
         "config.json: \"layer_types\" of layer 1 is \"chunked_attention\", want full_attention or "
         "sliding_attention"},
        {KIN("mixtral", ",\"num_local_experts\":2,\"num_experts_per_tok\":4"), WT_ERR_FORMAT,
         "config.json: 4 experts of 2 are used, want 2 or less"},
        {KIN("qwen3_moe", ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,"
                          "\"mlp_only_layers\":[4]"),
         WT_ERR_FORMAT, "config.json: \"mlp_only_layers\" has an entry that is no layer, 0..3"},
        {QUANT("\"quant_method\":\"bitsandbytes\""), WT_ERR_UNSUPPORTED,
         "config.json: quantised by \"bitsandbytes\", want \"fp8\", \"awq\", \"gptq\" or \"compressed-tensors\""},
        {QUANT("\"quant_method\":\"awq\",\"bits\":4"), WT_ERR_FORMAT,
         "config.json: \"group_size\" is missing, want an integer in -1..1048576"},
        {QUANT("\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":128"), WT_ERR_UNSUPPORTED,
         "config.json: GPTQ of 3 bits, want 4 or 8"},
        {QUANT("\"quant_method\":\"fp8\",\"weight_block_size\":[128]"), WT_ERR_FORMAT,
         "config.json: \"weight_block_size\" is not two integers of 1 or more, such as 128, 128"},
        {CT("", "\"num_bits\":4,\"type\":\"int\",\"strategy\":\"group\""), WT_ERR_UNSUPPORTED,
         "config.json: compressed-tensors format \"int-quantized\" of 4 bits, type \"int\", strategy \"group\", want "
         "symmetric weights of 8 bits, int-quantized with a scale a channel or float-quantized"},
        {CT_FLOAT("\"strategy\":\"group\""), WT_ERR_UNSUPPORTED,
         "config.json: compressed-tensors format \"float-quantized\" of 8 bits, type \"float\", strategy \"group\", "
         "want symmetric weights of 8 bits, int-quantized with a scale a channel or float-quantized"},
        {CT_OF("pack-quantized", "", "\"num_bits\":8,\"type\":\"int\",\"strategy\":\"channel\""), WT_ERR_UNSUPPORTED,
         "config.json: compressed-tensors format \"pack-quantized\" of 8 bits, type \"int\", strategy \"channel\", "
         "want symmetric weights of 8 bits, int-quantized with a scale a channel or float-quantized"},
        {CT_FLOAT("\"block_structure\":[128]"), WT_ERR_FORMAT,
         "config.json: \"block_structure\" is not two integers of 1 or more, such as 128, 128"},
        {"[]", WT_ERR_FORMAT, "config.json: the JSON is an array, want an object"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_fails(parse(cases[k].json, NULL), cases[k].status, cases[k].sentence);
}

// ---- what transformers writes, and what it means there (tests/golden/make_configs.py)

static void check_numbers(const json_t *want)
{
    const struct {
        const char *key;
        double met;
    } numbers[] = {{"n_layers", c.n_layers},     {"d_model", c.d_model},
                   {"n_heads", c.n_heads},       {"n_kv_heads", c.n_kv_heads},
                   {"d_head", c.d_head},         {"d_ff", c.d_ff},
                   {"vocab_size", c.vocab_size}, {"max_positions", c.max_positions},
                   {"norm_eps", c.norm_eps},     {"sliding_window", c.sliding_window},
                   {"n_experts", c.n_experts},   {"n_experts_used", c.n_experts_used},
                   {"rope_theta", c.rope.theta}, {"rope_factor", c.rope.factor}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const json_t *number = json_object_get(want, numbers[k].key);
        if (!json_is_number(number) || json_number_value(number) != numbers[k].met)
            fail_msg("%s: %s is %g, want %g", wt_model_family_name(c.family), numbers[k].key, numbers[k].met,
                     json_number_value(number));
    }
}

static void check_layers(const json_t *want, const char *key, const bool *met)
{
    const json_t *layers = json_object_get(want, key);
    assert_int_equal(json_array_size(layers), c.n_layers);
    for (int l = 0; l < c.n_layers; l++) assert_int_equal(met[l], json_is_true(json_array_get(layers, (size_t)l)));
}

static void configs_mean_what_transformers_makes_of_them(void **state)
{
    (void)state;
    static const char *const files[] = {"configs_4.json", "configs_5.json"};
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    for (int f = 0; f < 2; f++) {
        char path[4096];
        json_t *entry;
        size_t k;
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden", files[f]);
        json_t *all = json_load_file(path, 0, NULL);
        assert_int_equal(json_array_size(all), 17);
        json_array_foreach(all, k, entry)
        {
            const json_t *want = json_object_get(entry, "want"), *eos = json_object_get(want, "eos");
            char *text = json_dumps(json_object_get(entry, "config"), 0);
            assert_ok(parse(text, NULL));
            free(text);
            assert_string_equal(wt_model_family_name(c.family), json_string_value(json_object_get(want, "family")));
            assert_string_equal(wt_rope_kind_name(c.rope.kind), json_string_value(json_object_get(want, "rope")));
            assert_int_equal(c.tied_head, json_is_true(json_object_get(want, "tied_head")));
            check_numbers(want);
            check_layers(want, "layer_slides", c.layer_slides);
            check_layers(want, "layer_has_experts", c.layer_has_experts);
            assert_int_equal(c.n_eos, json_array_size(eos));
            for (int e = 0; e < c.n_eos; e++)
                assert_int_equal(c.eos_ids[e], json_integer_value(json_array_get(eos, (size_t)e)));
        }
        json_decref(all);
    }
}

// ---- GGUF and llama2.c

/// The keys of a small model of `architecture`, `more` of them to come, and one tensor.
static void gguf_model(bytes *b, const char *architecture, uint64_t n_more)
{
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {{"block_count", 3},          {"embedding_length", 64},    {"context_length", 512},
                 {"feed_forward_length", 96}, {"attention.head_count", 8}, {"attention.head_count_kv", 2},
                 {"vocab_size", 320}};
    char key[96];
    gguf_begin(b, 3, 1, 9 + n_more);
    gguf_text_key(b, "general.architecture", architecture);
    for (int k = 0; k < 7; k++) {
        snprintf(key, sizeof key, "%s.%s", architecture, sizes[k].key);
        gguf_u32_key(b, key, sizes[k].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
    gguf_f32_key(b, key, 1e-6f);
}

static wt_status open_gguf(void **state, bytes *b, const char *tensor)
{
    gguf_tensor(b, tensor, 1, (const uint64_t[]){8}, 0, 0);
    put_zeros(b, (-b->n & 31) + 32);
    test_spill(test_path(state, "model.gguf"), b->at, b->n);
    return wt_model_config_open(*state, &c); // the folder has no config.json
}

static void gguf_keys_are_a_config(void **state)
{
    bytes b;
    gguf_model(&b, "llama", 5);
    gguf_f32_key(&b, "llama.rope.freq_base", 500000);
    gguf_text_key(&b, "llama.rope.scaling.type", "yarn");
    gguf_f32_key(&b, "llama.rope.scaling.factor", 4);
    gguf_u32_key(&b, "tokenizer.ggml.bos_token_id", 1);
    gguf_u32_key(&b, "tokenizer.ggml.eos_token_id", 2);
    assert_ok(open_gguf(state, &b, "output.weight"));
    assert_true(c.family == WT_MODEL_LLAMA && c.n_layers == 3 && c.d_model == 64 && c.d_head == 8 && c.n_kv_heads == 2);
    assert_true(c.vocab_size == 320 && c.max_positions == 512 && c.d_ff == 96 && !c.tied_head);
    assert_true((float)c.norm_eps == 1e-6f && c.rope.theta == 5e5 && c.rope.interleaved);
    assert_true(c.rope.kind == WT_ROPE_YARN && c.rope.factor == 4 && c.rope.original_positions == 512);
    assert_true(fabs(c.rope.attention_factor - 1.1386294361119891) < 1e-15);
    assert_true(c.bos_id == 1 && c.n_eos == 1 && c.eos_ids[0] == 2);

    gguf_model(&b, "llama", 3);
    gguf_text_key(&b, "llama.rope.scaling.type", "yarn");
    gguf_f32_key(&b, "llama.rope.scaling.factor", 4);
    gguf_f32_key(&b, "llama.rope.scaling.yarn_attn_factor", 0.75f);
    assert_ok(open_gguf(state, &b, "output.weight"));
    assert_true(c.rope.attention_factor == 0.75);

    gguf_model(&b, "qwen3", 1);
    gguf_u32_key(&b, "qwen3.attention.key_length", 128);
    assert_ok(open_gguf(state, &b, "norm.weight"));
    assert_true(c.family == WT_MODEL_QWEN3 && c.qk_norm && c.tied_head && !c.rope.interleaved && c.rope.n_dims == 128);

    gguf_model(&b, "llama", 2);
    gguf_u32_key(&b, "llama.expert_count", 8);
    gguf_u32_key(&b, "llama.expert_used_count", 2);
    assert_ok(open_gguf(state, &b, "rope_freqs.weight"));
    assert_true(c.family == WT_MODEL_MIXTRAL && c.n_experts == 8 && c.n_experts_used == 2 && c.layer_has_experts[2]);
    assert_int_equal(c.rope.kind, WT_ROPE_FACTORS);
}

static void assert_says(wt_status met, wt_status status, const char *part)
{
    if (met != status || !strstr(wt_last_error(), part))
        fail_msg("status %d: \"%s\", want %d: \"%s\"", (int)met, wt_last_error(), (int)status, part);
}

static void bad_gguf_configs_are_refused(void **state)
{
    bytes b;
    gguf_model(&b, "gemma", 0);
    assert_says(open_gguf(state, &b, "w"), WT_ERR_UNSUPPORTED,
                "model.gguf: \"general.architecture\" is \"gemma\", want one of gpt2, llama, qwen2, qwen3, qwen3moe");
    gguf_begin(&b, 3, 1, 1);
    gguf_text_key(&b, "general.architecture", "llama");
    assert_says(open_gguf(state, &b, "w"), WT_ERR_FORMAT,
                "model.gguf: \"llama.block_count\" is missing, want an integer in 1..256");
    gguf_model(&b, "llama", 1);
    gguf_text_key(&b, "llama.rope.scaling.type", "longrope");
    assert_says(open_gguf(state, &b, "w"), WT_ERR_FORMAT,
                "model.gguf: \"llama.rope.scaling.factor\" is missing, want a number in 0.001..1e+06");
}

static void a_folder_without_config_is_told(void **state)
{
    bytes b;
    safetensors_bytes(&b, "{}", 0);
    test_spill(test_path(state, "model.safetensors"), b.at, b.n);
    assert_says(wt_model_config_open(*state, &c), WT_ERR_NOT_FOUND,
                "model.safetensors: safetensors carry no config, want config.json beside");
}

static wt_status open_path(void *user) { return wt_model_config_open(user, &c); }
static void close_nothing(void *user) { (void)user; }

// Of GGUF. Where memory ends while jansson 2.14 reads a number, it may go on without a digit, and sets errno back, so
// that a config.json cannot promise this.
static void opening_gguf_survives_failing_allocations(void **state)
{
    bytes b;
    gguf_model(&b, "llama", 0);
    assert_ok(open_gguf(state, &b, "output.weight"));
    assert_survives_failing_alloc(open_path, close_nothing, *state);
}

static void configs_lie_beside_the_weights(void **state)
{
    static const char json[] = LLAMA("");
    test_spill(test_path(state, "config.json"), json, sizeof json - 1);
    assert_ok(wt_model_config_open(*state, &c));
    assert_int_equal(c.generation.top_k, 0);
    test_spill(test_path(state, "generation_config.json"), "{\"top_k\":5}", 11);
    assert_ok(wt_model_config_open(*state, &c));
    assert_int_equal(c.generation.top_k, 5);
    static const char *const names[] = {"config.json", "model.safetensors", "model.safetensors.index.json"};
    for (int k = 0; k < 3; k++) { // beside what is there or will be
        assert_ok(wt_model_config_open(test_path(state, names[k]), &c));
        assert_int_equal(c.generation.top_k, 5);
    }
    assert_int_equal(wt_model_config_open(test_path(state, "absent.json"), &c), WT_ERR_FILE);
    test_spill(test_path(state, "generation_config.json"), "{", 1);
    assert_says(wt_model_config_open(*state, &c), WT_ERR_FORMAT, "/generation_config.json: JSON line 1");
}

static void real_configs_read(void **state)
{
    (void)state;
    const bool others = shared_data("llm/stories260K/stories260K.bin") && shared_data("whisper/digits");
    const char *path = shared_data("llm/TinyStories-656K/models/story");
    if (!path || !others) {
        print_message("skipped: no shared data\n");
        skip();
    }
    assert_ok(wt_model_config_open(path, &c));
    assert_true(c.family == WT_MODEL_LLAMA && c.n_layers == 2 && c.d_model == 128 && c.n_heads == 8 &&
                c.n_kv_heads == 4);
    assert_true(c.d_ff == 384 && c.vocab_size == 2048 && c.max_positions == 512 && c.tied_head && c.norm_eps == 1e-6);
    assert_true(c.bos_id == 1 && c.n_eos == 1 && c.eos_ids[0] == 2);
    assert_string_equal(c.dtype, "float32");
    assert_ok(wt_model_config_open(shared_data("llm/stories260K/stories260K.bin"), &c));
    assert_true(c.n_layers == 5 && c.d_model == 64 && c.n_heads == 8 && c.n_kv_heads == 4 && c.vocab_size == 512);
    assert_true(c.rope.interleaved && c.tied_head && c.max_positions == 512 && c.norm_eps == 1e-5);
    assert_int_equal(wt_model_config_open(shared_data("whisper/digits"), &c), WT_ERR_UNSUPPORTED);
    assert_non_null(strstr(wt_last_error(), "\"model_type\" is \"whisper\", want one of gpt2"));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_reads_with_its_defaults),
        cmocka_unit_test(families_differ_where_they_do),
        cmocka_unit_test(windows_slide_where_the_family_says),
        cmocka_unit_test(every_kind_of_rope_reads),
        cmocka_unit_test(quantised_checkpoints_are_recognised),
        cmocka_unit_test(generation_config_comes_first),
        cmocka_unit_test(wrong_fields_are_named_with_met_and_wanted),
        cmocka_unit_test(configs_mean_what_transformers_makes_of_them),
        IN_FOLDER(gguf_keys_are_a_config),
        IN_FOLDER(bad_gguf_configs_are_refused),
        IN_FOLDER(a_folder_without_config_is_told),
        IN_FOLDER(opening_gguf_survives_failing_allocations),
        IN_FOLDER(configs_lie_beside_the_weights),
        cmocka_unit_test(real_configs_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
