#include "model_fields.h"

static const json_t *present(const wt__fields *f, const char *key)
{
    const json_t *value = f->status ? NULL : json_object_get(f->object, key);
    return json_is_null(value) ? NULL : value;
}

/// What was met, for messages: numbers and words as they stand.
static const char *shown(const json_t *value, char text[64])
{
    if (json_is_integer(value))
        snprintf(text, 64, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, 64, "%.12g", json_real_value(value));
    else if (json_is_string(value))
        snprintf(text, 64, "\"%.40s\"", json_string_value(value));
    else
        snprintf(text, 64, "%s", value ? wt__json_kind(value) : "missing");
    return text;
}

int wt__field_int(wt__fields *f, const char *key, int min, int max, int otherwise)
{
    const json_t *value = present(f, key);
    if (!value && otherwise != WT__REQUIRED) return otherwise;
    const json_int_t n = json_integer_value(value);
    if (json_is_integer(value) && n >= min && n <= max) return (int)n;
    char text[64];
    if (!f->status)
        f->status = wt_fail(WT_ERR_FORMAT, "%s: \"%s\" is %s, want an integer in %d..%d", f->file, key,
                            shown(value, text), min, max);
    return otherwise == WT__REQUIRED ? min : otherwise;
}

double wt__field_real(wt__fields *f, const char *key, double min, double max, double otherwise)
{
    const json_t *value = present(f, key);
    const bool required = otherwise == WT__REQUIRED_REAL;
    if (!value && !required) return otherwise;
    const double x = json_number_value(value);
    if (json_is_number(value) && x >= min && x <= max) return x;
    char text[64];
    if (!f->status)
        f->status = wt_fail(WT_ERR_FORMAT, "%s: \"%s\" is %s, want a number in %g..%g", f->file, key,
                            shown(value, text), min, max);
    return required ? min : otherwise;
}

bool wt__field_bool(wt__fields *f, const char *key, bool otherwise)
{
    const json_t *value = present(f, key);
    char text[64];
    if (!value) return otherwise;
    if (!json_is_boolean(value))
        f->status = wt_fail(WT_ERR_FORMAT, "%s: \"%s\" is %s, want true or false", f->file, key, shown(value, text));
    return json_is_true(value);
}

const json_t *wt__field_of(wt__fields *f, const char *key, json_type type)
{
    const json_t *value = present(f, key);
    char text[64];
    if (!value || json_typeof(value) == type) return value;
    f->status = wt_fail(WT_ERR_FORMAT, "%s: \"%s\" is %s, want %s", f->file, key, shown(value, text),
                        type == JSON_OBJECT  ? "an object"
                        : type == JSON_ARRAY ? "an array"
                                             : "a string");
    return NULL;
}

const char *wt__field_text(wt__fields *f, const char *key)
{
    return json_string_value(wt__field_of(f, key, JSON_STRING));
}
