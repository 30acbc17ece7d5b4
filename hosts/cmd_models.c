// warptone models inspect: gather what a model's files hold as JSON, then print either that or a page from it.
#include "command.h"
#include "options.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/model_config.h>
#include <warptone/names.h>

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone models inspect PATH [--json]\n\n"
           "Show what a model holds, without loading it: its config, quantisation, metadata and tensors. PATH is\n"
           "a folder of the hub, a file *.safetensors or *.gguf, or a checkpoint *.bin of llama2.c.\n");
    wt_options_print(stdout, options, n);
    return EXIT_OK;
}

// ---- gathering

static void set(json_t *object, const char *key, json_int_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

/// A path may be any bytes.
static json_t *path_json(const char *path)
{
    json_t *text = json_string(path);
    return text ? text : json_string("(not UTF-8)");
}

static json_t *rope_json(const wt_rope_config *r)
{
    if (r->kind == WT_ROPE_NONE) return json_null();
    json_t *rope = json_pack("{s:s, s:f, s:i, s:b}", "kind", wt_rope_kind_name(r->kind), "theta", r->theta,
                             "dimensions", r->n_dims, "interleaved", r->interleaved);
    if (r->kind == WT_ROPE_DEFAULT || r->kind == WT_ROPE_FACTORS) return rope;
    json_object_set_new(rope, "factor", json_real(r->factor));
    set(rope, "original_positions", r->original_positions);
    if (r->kind == WT_ROPE_YARN) {
        json_object_set_new(rope, "beta_fast", json_real(r->beta_fast));
        json_object_set_new(rope, "beta_slow", json_real(r->beta_slow));
        json_object_set_new(rope, "attention_factor", json_real(r->attention_factor));
    } else if (r->kind == WT_ROPE_LLAMA3) {
        json_object_set_new(rope, "low_freq_factor", json_real(r->low_freq_factor));
        json_object_set_new(rope, "high_freq_factor", json_real(r->high_freq_factor));
    }
    return rope;
}

static json_t *quant_json(const wt_quant_config *q)
{
    if (q->method == WT_QUANT_NONE) return json_null();
    json_t *quant = json_pack("{s:s, s:i, s:s, s:i, s:b, s:b, s:b}", "method", wt_quant_method_name(q->method), "bits",
                              q->bits, "type", q->floats ? "float" : "int", "group_size", q->group_size, "zero_points",
                              q->zero_points, "act_order", q->act_order, "activations", q->activations);
    if (q->block_rows) json_object_set_new(quant, "block", json_pack("[i, i]", q->block_rows, q->block_columns));
    return quant;
}

static int count(const bool *flags, int n)
{
    int sum = 0;
    for (int k = 0; k < n; k++) sum += flags[k];
    return sum;
}

static json_t *config_json(const wt_model_config *c)
{
    json_t *config = json_object(), *eos = json_array();
    json_object_set_new(config, "family", json_string(wt_model_family_name(c->family)));
    set(config, "layers", c->n_layers);
    set(config, "width", c->d_model);
    set(config, "heads", c->n_heads);
    set(config, "key_value_heads", c->n_kv_heads);
    set(config, "head_width", c->d_head);
    set(config, "feed_forward", c->d_ff);
    json_object_set_new(config, "activation", json_string(wt_activation_name(c->activation)));
    set(config, "vocabulary", c->vocab_size);
    set(config, "positions", c->max_positions);
    json_object_set_new(config, "norm_eps", json_real(c->norm_eps));
    json_object_set_new(config, "tied_head", json_boolean(c->tied_head));
    json_object_set_new(config, "rope", rope_json(&c->rope));
    set(config, "sliding_window", c->sliding_window);
    set(config, "sliding_layers", count(c->layer_slides, c->n_layers));
    set(config, "experts", c->n_experts);
    set(config, "experts_used", c->n_experts_used);
    set(config, "expert_feed_forward", c->d_ff_expert);
    set(config, "expert_layers", count(c->layer_has_experts, c->n_layers));
    set(config, "bos_token", c->bos_id);
    for (int k = 0; k < c->n_eos; k++) json_array_append_new(eos, json_integer(c->eos_ids[k]));
    json_object_set_new(config, "eos_tokens", eos);
    json_object_set_new(config, "dtype", *c->dtype ? json_string(c->dtype) : json_null());
    json_object_set_new(config, "quantization", quant_json(&c->quant));
    return config;
}

/// {"error": sentence} when it cannot be read.
static json_t *find_config(const char *path)
{
    static wt_model_config config;
    return wt_model_config_open(path, &config) ? json_pack("{s:s}", "error", wt_last_error()) : config_json(&config);
}

static json_t *tensor_json(const wt_weights *weights, int index)
{
    const wt_tensor *t = wt_weights_at(weights, index);
    json_t *shape = json_array();
    for (int k = 0; k < t->rank; k++) json_array_append_new(shape, json_integer(t->shape[k]));
    return json_pack("{s:s, s:o, s:s, s:I, s:o}", "name", wt_weights_name(weights, index), "shape", shape, "dtype",
                     wt_dtype_name(t->dtype), "bytes", (json_int_t)wt_tensor_bytes(t), "file",
                     path_json(wt_weights_file(weights, index)));
}

static json_t *gather(const char *path, const wt_weights *weights)
{
    json_t *all = json_object(), *tensors = json_array(), *types = json_object(), *metadata = json_object();
    json_int_t n_elements = 0, n_bytes = 0, by_type[WT_N_DTYPES][2] = {{0}};
    for (int k = 0; k < wt_weights_count(weights); k++) {
        const wt_tensor *t = wt_weights_at(weights, k);
        json_array_append_new(tensors, tensor_json(weights, k));
        n_elements += wt_tensor_elements(t);
        n_bytes += (json_int_t)wt_tensor_bytes(t);
        by_type[t->dtype][0]++;
        by_type[t->dtype][1] += (json_int_t)wt_tensor_bytes(t);
    }
    for (int k = 0; k < WT_N_DTYPES; k++)
        if (by_type[k][0])
            json_object_set_new(types, wt_dtype_name((wt_dtype)k),
                                json_pack("{s:I, s:I}", "tensors", by_type[k][0], "bytes", by_type[k][1]));
    for (int k = 0; k < wt_weights_metadata_count(weights); k++) {
        const char *key = wt_weights_metadata_key(weights, k);
        json_object_set_new(metadata, key, json_string(wt_weights_metadata(weights, key)));
    }
    json_object_set_new(all, "path", path_json(path));
    json_object_set_new(all, "format", json_string(wt_weights_format(weights)));
    set(all, "elements", n_elements);
    set(all, "bytes", n_bytes);
    json_object_set_new(all, "types", types);
    json_object_set_new(all, "config", find_config(path));
    json_object_set_new(all, "metadata", metadata);
    json_object_set_new(all, "tensors", tensors);
    return all;
}

// ---- printing

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_int_t integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/// "key value" of every field; lists and objects as JSON.
static void print_fields(const json_t *object, const char *indent)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        const char *word = json_string_value(value);
        char name[256], shown[1024];
        if (text && !json_is_null(value))
            printf("%s%-20s %s\n", indent, wt_show_text(key, name, sizeof name),
                   wt_show_text(word ? word : text, shown, sizeof shown));
        free(text);
    }
}

/// One line of at most 60 bytes: metadata may hold whole templates.
static void print_metadata(const char *key, const char *text)
{
    const int line = (int)strcspn(text, "\r\n"), length = line < 60 ? line : 60;
    char name[256], head[61], shown[4 * sizeof head];
    snprintf(head, sizeof head, "%.*s", length, text);
    printf("  %-40s %s%s\n", wt_show_text(key, name, sizeof name), wt_show_text(head, shown, sizeof shown),
           text[length] ? " ..." : "");
}

static void print_page(const json_t *all)
{
    const char *key;
    json_t *item, *config = json_object_get(all, "config"), *tensors = json_object_get(all, "tensors");
    size_t k, width = 0;
    char shown[4096];
    printf("%s: %s, %zu tensors, %lld elements, %lld bytes\n\ntypes\n",
           wt_show_text(text_of(all, "path"), shown, sizeof shown), text_of(all, "format"), json_array_size(tensors),
           (long long)integer_of(all, "elements"), (long long)integer_of(all, "bytes"));
    json_object_foreach(json_object_get(all, "types"), key, item)
        printf("  %-20s %lld tensors, %lld bytes\n", key, (long long)integer_of(item, "tensors"),
               (long long)integer_of(item, "bytes"));
    printf("\nconfig\n");
    print_fields(config, "  ");
    if (json_object_size(json_object_get(all, "metadata"))) printf("\nmetadata\n");
    json_object_foreach(json_object_get(all, "metadata"), key, item) print_metadata(key, json_string_value(item));
    printf("\ntensors\n");
    json_array_foreach(tensors, k, item) if (strlen(text_of(item, "name")) > width) width =
        strlen(text_of(item, "name"));
    json_array_foreach(tensors, k, item)
    {
        wt_tensor t = {.rank = (int)json_array_size(json_object_get(item, "shape"))};
        char shape[96];
        for (int d = 0; d < t.rank; d++)
            t.shape[d] = json_integer_value(json_array_get(json_object_get(item, "shape"), (size_t)d));
        char name[512];
        printf("  %-*s  %-8s %-20s %12lld  %s\n", (int)width, wt_show_text(text_of(item, "name"), name, sizeof name),
               text_of(item, "dtype"),
               wt_shape_describe(t.rank, t.shape, shape), (long long)integer_of(item, "bytes"),
               wt_show_text(text_of(item, "file"), shown, sizeof shown));
    }
}

static int inspect(const char *path, bool json)
{
    wt_weights *weights;
    wt_status status = wt_weights_open(path, &weights);
    if (status) {
        command_fail("models", status);
        return status == WT_ERR_FILE ? EXIT_FAILED : EXIT_INPUT;
    }
    json_t *all = gather(path, weights);
    if (json) {
        json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else
        print_page(all);
    json_decref(all);
    wt_weights_close(weights);
    return EXIT_OK;
}

int cmd_models(int argc, char **argv)
{
    bool json = false, help;
    const wt_option options[] = {{.name = "json", .value = &json, .help = "one JSON object on stdout"}};
    wt_status status = wt_options_parse(options, 1, &argc, argv, &help);
    if (status) return command_fail("models", status);
    if (help) return print_help(options, 1);
    if (argc == 3 && !strcmp(argv[1], "inspect")) return inspect(argv[2], json);
    return command_fail("models", wt_fail(WT_ERR_BAD_ARG, "want inspect PATH (`warptone models --help`)"));
}
