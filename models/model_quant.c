// quantization_config of config.json: which method, and what its tensors mean.
// Sources: transformers, utils/quantization_config.py (FineGrainedFP8Config, AwqConfig, GPTQConfig); AutoAWQ and
// GPTQModel for what the fields mean; compressed-tensors, quantization/quant_config.py and quant_args.py.
#include "model_fields.h"

#include <string.h>

/// Rows and columns that share a scale, if the field is there.
static void read_block(wt__fields *f, const char *name, wt_quant_config *q)
{
    const json_t *block = wt__field_of(f, name, JSON_ARRAY);
    if (!block || f->status) return;
    const json_t *rows = json_array_get(block, 0), *columns = json_array_get(block, 1);
    const json_int_t r = json_integer_value(rows), c = json_integer_value(columns);
    if (json_array_size(block) != 2 || r < 1 || c < 1 || r > WT__MAX_WIDTH || c > WT__MAX_WIDTH)
        f->status = wt_fail(WT_ERR_FORMAT, "%s: \"%s\" is not two integers of 1 or more, such as 128, 128", f->file,
                            name);
    q->block_rows = (int)r;
    q->block_columns = (int)c;
}

static void read_fp8(wt__fields *f, wt_quant_config *q)
{
    const char *format = wt__field_text(f, "fmt"), *scheme = wt__field_text(f, "activation_scheme");
    q->bits = 8;
    q->floats = true;
    q->activations = scheme != NULL;
    if (!f->status && format && strcmp(format, "e4m3"))
        f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: fp8 \"fmt\" is \"%s\", want \"e4m3\"", f->file, format);
    read_block(f, "weight_block_size", q);
}

/// The fields that AWQ and GPTQ share; -1 is one group a row.
static void read_groups(wt__fields *f, wt_quant_config *q)
{
    q->bits = wt__field_int(f, "bits", 2, 8, WT__REQUIRED);
    q->group_size = wt__field_int(f, "group_size", -1, WT__MAX_WIDTH, WT__REQUIRED);
    if (q->group_size < 0) q->group_size = 0;
}

static void read_awq(wt__fields *f, wt_quant_config *q)
{
    const char *version = wt__field_text(f, "version");
    read_groups(f, q);
    q->zero_points = wt__field_bool(f, "zero_point", true);
    if (f->status) return;
    if (version && strcasecmp(version, "gemm"))
        f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: AWQ \"version\" is \"%s\", want \"gemm\"", f->file, version);
    else if (q->bits != 4)
        f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: AWQ of %d bits, want 4", f->file, q->bits);
}

static void read_gptq(wt__fields *f, wt_quant_config *q)
{
    const char *format = wt__field_text(f, "checkpoint_format");
    read_groups(f, q);
    q->act_order = wt__field_bool(f, "desc_act", false);
    q->zero_points = !wt__field_bool(f, "sym", true);
    q->zero_points_exact = format && !strcmp(format, "gptq_v2");
    if (f->status) return;
    if (format && strcmp(format, "gptq") && strcmp(format, "gptq_v2"))
        f->status = wt_fail(WT_ERR_UNSUPPORTED,
                            "%s: GPTQ \"checkpoint_format\" is \"%s\", want \"gptq\" or \"gptq_v2\"", f->file, format);
    else if (q->bits != 4 && q->bits != 8)
        f->status = wt_fail(WT_ERR_UNSUPPORTED, "%s: GPTQ of %d bits, want 4 or 8", f->file, q->bits);
}

/// Is it one of those, or left out?
static bool is_among(const char *word, const char *const *words)
{
    for (; word && *words; words++)
        if (!strcmp(word, *words)) return true;
    return !word;
}

/// One group of linear layers: int8 with a scale a row, or e4m3 with one a tensor, a row or a block. "naive-quantized"
/// stores either as its own format does.
static void read_compressed(wt__fields *f, wt_quant_config *q)
{
    static const char *const of_int[] = {"int-quantized", "naive-quantized", NULL}, *const rows[] = {"channel", NULL};
    static const char *const of_float[] = {"float-quantized", "naive-quantized", NULL},
                             *const any[] = {"tensor", "channel", "block", NULL};
    const char *format = wt__field_text(f, "format");
    const json_t *groups = wt__field_of(f, "config_groups", JSON_OBJECT);
    if (!f->status && json_object_size(groups) != 1)
        f->status =
            wt_fail(WT_ERR_UNSUPPORTED, "%s: %zu \"config_groups\", want one", f->file, json_object_size(groups));
    if (f->status) return;
    const json_t *group = json_object_iter_value(json_object_iter((json_t *)groups));
    wt__fields g = {f->file, group, WT_OK};
    const json_t *weights = wt__field_of(&g, "weights", JSON_OBJECT);
    q->activations = wt__field_of(&g, "input_activations", JSON_OBJECT) != NULL;
    wt__fields w = {f->file, weights, g.status};
    const char *type = wt__field_text(&w, "type"), *strategy = wt__field_text(&w, "strategy");
    q->bits = wt__field_int(&w, "num_bits", 1, 16, WT__REQUIRED);
    q->zero_points = !wt__field_bool(&w, "symmetric", true);
    q->floats = type && !strcmp(type, "float");
    if (q->floats) read_block(&w, "block_structure", q);
    f->status = w.status;
    if (f->status) return;
    if (q->bits != 8 || q->zero_points || (type && !q->floats && strcmp(type, "int")) ||
        !is_among(format, q->floats ? of_float : of_int) || !is_among(strategy, q->floats ? any : rows))
        f->status = wt_fail(WT_ERR_UNSUPPORTED,
                            "%s: compressed-tensors format \"%.40s\" of %d bits, type \"%.20s\", strategy \"%.20s\"%s, "
                            "want symmetric weights of 8 bits, int-quantized with a scale a channel or float-quantized",
                            f->file, format ? format : "", q->bits, type ? type : "int", strategy ? strategy : "",
                            q->zero_points ? ", with zero points" : "");
}

static const struct {
    const char *name;
    void (*read)(wt__fields *f, wt_quant_config *q);
} methods[WT_N_QUANT_METHODS] = {[WT_QUANT_NONE] = {"none", NULL},
                                 [WT_QUANT_FP8] = {"fp8", read_fp8},
                                 [WT_QUANT_AWQ] = {"awq", read_awq},
                                 [WT_QUANT_GPTQ] = {"gptq", read_gptq},
                                 [WT_QUANT_COMPRESSED_TENSORS] = {"compressed-tensors", read_compressed}};

const char *wt_quant_method_name(wt_quant_method method) { return methods[method].name; }

wt_status wt__model_quant_read(wt__fields *f, wt_quant_config *quant)
{
    *quant = (wt_quant_config){.method = WT_QUANT_NONE};
    const json_t *object = wt__field_of(f, "quantization_config", JSON_OBJECT);
    if (!object) object = wt__field_of(f, "compression_config", JSON_OBJECT); // of older compressed-tensors
    if (!object || f->status) return f->status;
    wt__fields q = {f->file, object, WT_OK};
    const char *name = wt__field_text(&q, "quant_method");
    for (int k = 1; name && k < WT_N_QUANT_METHODS; k++)
        if (!strcmp(name, methods[k].name)) {
            quant->method = (wt_quant_method)k;
            methods[k].read(&q, quant);
        }
    if (!q.status && !quant->method)
        q.status = wt_fail(WT_ERR_UNSUPPORTED,
                           "%s: quantised by \"%.40s\", want \"fp8\", \"awq\", \"gptq\" or \"compressed-tensors\"",
                           f->file, name ? name : "");
    return f->status = q.status;
}
