#include "preset_midi.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>
#include <warptone/number.h>

#define SOURCE_ROW(code, key, max, any) {max, any},
static const struct source_facts {
    int max_number; ///< -1 = takes only `any`
    bool any;
} sources[WT_N_MIDI_SOURCES] = {WT_MIDI_SOURCE_LIST(SOURCE_ROW)};

#define CURVE_ROW(code, name) name,
const char *const preset_midi_curves[WT_N_MIDI_CURVES] = {WT_MIDI_CURVE_LIST(CURVE_ROW)};

// ---- reading

/// One row under reading, for the line of a refusal.
typedef struct reader {
    const char *path, *text;
    size_t length;
    int row;
    char *const *values;
} reader;

static WT_PRINTF(3, 4) wt_status refuse(const reader *r, int key, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return wt_fail(WT_ERR_FORMAT, "%s:%d: midi: %s", r->path,
                   preset_yaml_midi_line(r->text, r->length, r->row, key < 0 ? NULL : preset_midi_keys[key]), why);
}

static wt_status read_int(const reader *r, int key, int min, int max, int any, int *value)
{
    const char *text = r->values[key], *or_any = any >= -1 ? " or any" : "";
    char *end;
    *value = any;
    if (any >= -1 && !strcmp(text, "any")) return WT_OK;
    if (max < 0) return refuse(r, key, "%s is '%s', want any", preset_midi_keys[key], text);
    errno = 0;
    long number = strtol(text, &end, 10);
    *value = (int)number;
    if (end == text || *end || errno || number < min || number > max)
        return refuse(r, key, "%s is '%s', want %d..%d%s", preset_midi_keys[key], text, min, max, or_any);
    return WT_OK;
}

static wt_status read_float(const reader *r, int key, float *value)
{
    const char *text = r->values[key];
    char *end;
    *value = NAN;
    if (!text) return WT_OK;
    *value = (float)wt_number_read(text, &end);
    if (end == text || *end || !isfinite(*value))
        return refuse(r, key, "%s is '%s', want a number", preset_midi_keys[key], text);
    return WT_OK;
}

static wt_status read_source(const reader *r, wt_midi_row *row)
{
    int found = -1;
    for (int k = 0; k < WT_N_MIDI_SOURCES; k++) {
        if (!r->values[k]) continue;
        if (found >= 0)
            return refuse(r, k, "a row has both %s and %s, want one", preset_midi_keys[found], preset_midi_keys[k]);
        found = k;
    }
    if (found < 0)
        return refuse(r, -1,
                      "a row says not what moves it, want one of cc, cc14, nrpn, note, velocity, bend, pressure, "
                      "program");
    row->source = (wt_midi_source)found;
    return read_int(r, found, 0, sources[found].max_number, sources[found].any ? WT_MIDI_ANY : -2, &row->number);
}

static wt_status read_curve(const reader *r, wt_midi_curve *curve)
{
    const char *text = r->values[MIDI_KEY_CURVE];
    *curve = WT_MIDI_STANDARD;
    for (int k = 0; text && k < WT_N_MIDI_CURVES; k++) {
        *curve = (wt_midi_curve)k;
        if (!strcmp(text, preset_midi_curves[k])) return WT_OK;
    }
    return text ? refuse(r, MIDI_KEY_CURVE, "unknown curve '%s'; the nearest is '%s'", text,
                         wt_nearest_name(text, preset_midi_curves, WT_N_MIDI_CURVES))
                : WT_OK;
}

/// A program has a preset and nothing else; all others have a parameter and no preset.
static wt_status check_goal(const reader *r, const wt_midi_row *row)
{
    const bool program = row->source == WT_MIDI_PROGRAM;
    const char *what = preset_midi_keys[row->source];
    if (program ? !row->preset : !row->param)
        return refuse(r, (int)row->source, "a row of %s has no %s", what, program ? "preset" : "param");
    for (int k = MIDI_KEY_PARAM; k < PRESET_MIDI_KEYS; k++)
        if (r->values[k] && (k == MIDI_KEY_PRESET) != program)
            return refuse(r, k, "a row of %s takes no %s", what, preset_midi_keys[k]);
    if (row->param && !strchr(row->param, '/') && !strchr(row->param, '.'))
        return refuse(r, MIDI_KEY_PARAM, "param is '%s', want NODE/PARAMETER", row->param);
    return WT_OK;
}

static wt_status read_row(const reader *r, wt_midi_row *row)
{
    wt_status status = read_source(r, row);
    if (!status && r->values[MIDI_KEY_CHANNEL]) status = read_int(r, MIDI_KEY_CHANNEL, 1, 16, 0, &row->channel);
    if (!status) status = read_float(r, MIDI_KEY_MIN, &row->min);
    if (!status) status = read_float(r, MIDI_KEY_MAX, &row->max);
    if (!status) status = read_curve(r, &row->curve);
    row->param = r->values[MIDI_KEY_PARAM];
    row->preset = r->values[MIDI_KEY_PRESET];
    return status ? status : check_goal(r, row);
}

wt_status preset_midi_read(const char *path, const char *text, size_t length, const preset_file *file,
                           wt_midi_row **rows)
{
    wt_status status = WT_OK;
    *rows = NULL;
    if (!file->midi_count) return WT_OK;
    wt_midi_row *all = calloc(file->midi_count, sizeof *all);
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "%s: MIDI map", path);
    for (uint32_t k = 0; k < file->midi_count && !status; k++)
        status = read_row(&(reader){path, text, length, (int)k, file->midi[k].values}, &all[k]);
    if (status)
        free(all);
    else
        *rows = all;
    return status;
}

// ---- writing

void preset_number_format(float value, char text[32])
{
    for (int digits = 6; digits <= 9; digits++) {
        wt_number_write(text, 32, digits, (double)value);
        if ((float)wt_number_read(text, NULL) == value) return;
    }
}

/// A name as YAML: plain where that is safe, else in double quotes.
static int append_name(char *text, int at, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    const bool quote = name[strspn(name, plain)] || name[0] == '-';
    if (quote) text[at++] = '"';
    for (; *name && at < PRESET_MIDI_TEXT - 8; name++) {
        if (*name == '"' || *name == '\\') text[at++] = '\\';
        if ((unsigned char)*name < ' ')
            at += snprintf(text + at, 8, "\\x%02x", (unsigned)*name);
        else
            text[at++] = *name;
    }
    if (quote) text[at++] = '"';
    text[at] = 0;
    return at;
}

static int append_number(char *text, int at, const char *key, float value)
{
    char number[32];
    if (isnan(value)) return at;
    preset_number_format(value, number);
    return at + snprintf(text + at, (size_t)(PRESET_MIDI_TEXT - at), ", %s: %s", key, number);
}

void preset_midi_format(const wt_midi_row *row, char text[PRESET_MIDI_TEXT])
{
    const size_t size = PRESET_MIDI_TEXT;
    int at = snprintf(text, size, "{%s: ", preset_midi_keys[row->source]);
    at += row->number == WT_MIDI_ANY ? snprintf(text + at, size - (size_t)at, "any")
                                     : snprintf(text + at, size - (size_t)at, "%d", row->number);
    if (row->channel) at += snprintf(text + at, size - (size_t)at, ", channel: %d", row->channel);
    at += snprintf(text + at, size - (size_t)at, ", %s: ", row->param ? "param" : "preset");
    at = append_name(text, at, row->param ? row->param : row->preset);
    at = append_number(text, at, "min", row->min);
    at = append_number(text, at, "max", row->max);
    if (row->curve) at += snprintf(text + at, size - (size_t)at, ", curve: %s", preset_midi_curves[row->curve]);
    snprintf(text + at, size - (size_t)at, "}");
}

bool preset_midi_equal(const wt_midi_row *a, const wt_midi_row *b)
{
    char x[PRESET_MIDI_TEXT], y[PRESET_MIDI_TEXT];
    preset_midi_format(a, x);
    preset_midi_format(b, y);
    return !strcmp(x, y);
}

// ---- a chain's parameters

static float linear(float min, float max, float x) { return min + x * (max - min); }
static float logarithmic(float min, float max, float x) { return min * powf(max / min, x); }

/// Equal temperament with A4, key 69, at 440 Hz (ISO 16), within the range.
static float key_pitch(float min, float max, float key)
{
    return fminf(fmaxf(440 * exp2f((key - 69) / 12), fminf(min, max)), fmaxf(min, max));
}

static wt_status find_param(const wt_chain *chain, const char *name, int *node, int *param)
{
    char id[256];
    const char *cut = strrchr(name, '/');
    if (!cut) cut = strrchr(name, '.');
    if (!cut || cut - name >= (ptrdiff_t)sizeof id)
        return wt_fail(WT_ERR_NOT_FOUND, "param is '%s', want NODE/PARAMETER", name);
    snprintf(id, sizeof id, "%.*s", (int)(cut - name), name);
    return wt_chain_find(chain, id, cut + 1, node, param);
}

static wt_status resolve_range(float given, float standard, const wt_param_info *info, const char *key,
                               const char **wrong, float *value)
{
    *value = isnan(given) ? standard : given;
    if (*value >= info->min && *value <= info->max) return WT_OK;
    *wrong = key;
    return wt_fail(WT_ERR_BAD_ARG, "%s is %g, want %g..%g%s%s of %s", key, (double)*value, (double)info->min,
                   (double)info->max, *info->unit ? " " : "", info->unit, info->name);
}

wt_status preset_midi_resolve(const wt_midi_row *row, const wt_chain *chain, preset_midi_target *target,
                              const char **key)
{
    *target = (preset_midi_target){.node = -1};
    *key = "param";
    wt_status status = find_param(chain, row->param, &target->node, &target->param);
    if (status) return status;
    const wt_param_info *info = wt_node_type_param(wt_chain_node_type(chain, target->node), target->param);
    status = resolve_range(row->min, info->min, info, "min", key, &target->min);
    if (!status) status = resolve_range(row->max, info->max, info, "max", key, &target->max);
    if (status) return status;
    const bool positive = target->min > 0 && target->max > 0;
    *key = "curve";
    if (row->curve == WT_MIDI_LOG && !positive)
        return wt_fail(WT_ERR_BAD_ARG, "curve is log from %g to %g, want both above 0", (double)target->min,
                       (double)target->max);
    target->toggle = row->curve == WT_MIDI_TOGGLE;
    target->pick_up = row->curve == WT_MIDI_PICK_UP;
    const bool own = row->curve == WT_MIDI_STANDARD || target->pick_up;
    target->value = row->curve == WT_MIDI_LOG || (own && info->logarithmic && positive) ? logarithmic : linear;
    target->pitch = row->source == WT_MIDI_NOTE && row->number == WT_MIDI_ANY && row->curve == WT_MIDI_STANDARD &&
                    !strcmp(info->unit, "Hz");
    if (target->pitch) target->value = key_pitch;
    return WT_OK;
}
