// The schema of a preset is made at run time: the keys of a node are those of all node types, so that a new type needs
// no second list. Which of them a node's type takes is checked when the chain is built.
#include "preset_yaml.h"
#include "yaml_message.h"
#include "yaml_tree.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>
#include <warptone/preset.h>

enum { FIXED_FIELDS = 4, MAX_TEXT = 1 << 20, MAX_NODES = 256 };

// ---- schema

static const cyaml_schema_value_t input_schema = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, 128)};

#define MIDI_KEY(code, key, ...) key,
const char *const preset_midi_keys[PRESET_MIDI_KEYS] = {WT_MIDI_SOURCE_LIST(MIDI_KEY) "channel", "param", "preset",
                                                        "min", "max", "curve"};

typedef struct schema {
    cyaml_schema_field_t node[FIXED_FIELDS + PRESET_MAX_SETTINGS + 1];
    cyaml_schema_value_t node_value;
    cyaml_schema_field_t midi[PRESET_MIDI_KEYS + 1];
    cyaml_schema_value_t midi_value;
    cyaml_schema_field_t preset[7];
    cyaml_schema_value_t preset_value;
} schema;

preset_names preset_setting_names(void)
{
    preset_names found = {.n = 0};
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        if (type->flags & WT_NODE_INTERNAL) continue;
        const int n_params = wt_node_type_n_params(type);
        for (int k = 0; k < n_params + type->n_options; k++) {
            const char *name = k < n_params ? wt_node_type_param(type, k)->name : type->options[k - n_params].name;
            int at = 0;
            while (at < found.n && strcmp(found.names[at], name)) at++;
            if (at == found.n && found.n < PRESET_MAX_SETTINGS) found.names[found.n++] = name;
        }
    }
    return found;
}

static void make_schema(schema *s)
{
    const cyaml_schema_field_t fixed[FIXED_FIELDS] = {
        CYAML_FIELD_STRING_PTR("node", CYAML_FLAG_POINTER, preset_node, node, 1, 64),
        CYAML_FIELD_STRING_PTR("id", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_node, id, 1, 64),
        CYAML_FIELD_STRING_PTR("side", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_node, side, 1, 64),
        CYAML_FIELD_SEQUENCE("inputs", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_node, inputs, &input_schema, 1,
                             8),
    };
    const cyaml_schema_field_t setting =
        CYAML_FIELD_STRING_PTR("", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_node, settings[0], 0, MAX_TEXT);
    preset_names all = preset_setting_names();
    memset(s, 0, sizeof *s);
    memcpy(s->node, fixed, sizeof fixed);
    for (int k = 0; k < all.n; k++) {
        cyaml_schema_field_t *field = &s->node[FIXED_FIELDS + k];
        *field = setting;
        field->key = all.names[k];
        field->data_offset += (uint32_t)(sizeof(char *) * (size_t)k);
    }
    s->node_value = (cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, preset_node, s->node)};
    for (int k = 0; k < PRESET_MIDI_KEYS; k++) {
        s->midi[k] = (cyaml_schema_field_t)CYAML_FIELD_STRING_PTR("", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                                                                  preset_midi_row, values[0], 1, 256);
        s->midi[k].key = preset_midi_keys[k];
        s->midi[k].data_offset += (uint32_t)(sizeof(char *) * (size_t)k);
    }
    s->midi_value = (cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, preset_midi_row, s->midi)};
    const cyaml_schema_field_t preset[] = {
        CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, preset_file, name, 1, 64),
        CYAML_FIELD_STRING_PTR("description", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_file, description, 0,
                               1000),
        CYAML_FIELD_STRING_PTR("output", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_file, output, 1, 64),
        CYAML_FIELD_UINT("channels", CYAML_FLAG_OPTIONAL, preset_file, channels),
        CYAML_FIELD_SEQUENCE("nodes", CYAML_FLAG_POINTER, preset_file, nodes, &s->node_value, 1, MAX_NODES),
        CYAML_FIELD_SEQUENCE("midi", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, preset_file, midi, &s->midi_value, 0,
                             PRESET_MAX_MIDI),
        CYAML_FIELD_END,
    };
    memcpy(s->preset, preset, sizeof preset);
    s->preset_value = (cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, preset_file, s->preset)};
}

// ---- lines

static int find_line(yaml_document_t *document, const char *section, int index, const char *key)
{
    yaml_node_t *root = yaml_document_get_root_node(document), *name = NULL;
    yaml_node_t *items = yaml_tree_value(document, root, index < 0 && key ? key : section, &name);
    yaml_node_t *item = index < 0 ? NULL : yaml_tree_item(document, items, index);
    if (item && (!key || !yaml_tree_value(document, item, key, &name))) name = item;
    return name ? (int)name->start_mark.line + 1 : 0;
}

static int line_of(const char *text, size_t length, const char *section, int index, const char *key)
{
    yaml_document_t document;
    if (!yaml_tree_load(text, length, &document)) return 0;
    int line = find_line(&document, section, index, key);
    yaml_document_delete(&document);
    return line;
}

int preset_yaml_line(const char *text, size_t length, int node, const char *setting)
{
    return line_of(text, length, "nodes", node, setting && !strcmp(setting, "type") ? "node" : setting);
}

int preset_yaml_midi_line(const char *text, size_t length, int row, const char *key)
{
    return line_of(text, length, "midi", row, key);
}

// ---- messages

static bool is_one_of(const char *key, const char *const *names, int n)
{
    for (int k = 0; k < n; k++)
        if (strcmp(key, names[k]) == 0) return true;
    return false;
}

// A key that no schema has: at the top, of a node, or of a row of the MIDI map.
static wt_status refuse_key(const char *path, const char *text, size_t length, const char *key, int line)
{
    static const char *const top[] = {"name", "description", "channels", "output", "nodes", "midi"};
    enum { N_TOP = sizeof top / sizeof *top };
    const char *known[PRESET_MAX_SETTINGS + 4] = {"node", "id", "inputs", "side"};
    const char *const *names = known;
    preset_names all = preset_setting_names();
    int n = all.n + 4, at_top = is_one_of(key, top, N_TOP) ? 0 : preset_yaml_line(text, length, -1, key);
    const int nodes = preset_yaml_line(text, length, -1, "nodes"), midi = preset_yaml_midi_line(text, length, -1, NULL);
    memcpy(known + 4, all.names, sizeof *known * (size_t)all.n);
    if (midi && line >= midi && (nodes < midi || line < nodes)) names = preset_midi_keys, n = PRESET_MIDI_KEYS;
    if (at_top) names = top, n = N_TOP;
    return wt_fail(WT_ERR_FORMAT, "%s:%d: unknown key '%s'; the nearest is '%s'", path, at_top ? at_top : line, key,
                   wt_nearest_name(key, names, n));
}

static wt_status refuse(const char *path, const char *text, size_t length, const yaml_complaint *c, cyaml_err_t error)
{
    const char *key = yaml_unknown_key(c);
    return key ? refuse_key(path, text, length, key, c->line ? c->line : 1) : yaml_refuse(path, c, error);
}

// ---- loading

wt_status preset_yaml_load(const char *path, const char *text, size_t length, preset_file **preset)
{
    yaml_complaint c = {.line = 0};
    cyaml_config_t config = yaml_config(&c);
    schema *s = malloc(sizeof *s);
    *preset = NULL;
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "%s: schema", path);
    make_schema(s);
    cyaml_err_t error = cyaml_load_data((const uint8_t *)text, length, &config, &s->preset_value,
                                        (cyaml_data_t **)preset, NULL);
    free(s);
    if (!error && !*preset) return wt_fail(WT_ERR_FORMAT, "%s: holds no preset, want name and nodes", path);
    return error ? refuse(path, text, length, &c, error) : WT_OK;
}

void preset_yaml_free(preset_file *preset)
{
    yaml_complaint c = {.line = 0};
    cyaml_config_t config = yaml_config(&c);
    schema *s = preset ? malloc(sizeof *s) : NULL;
    if (!s) return;
    make_schema(s);
    cyaml_free(&config, &s->preset_value, preset, 0);
    free(s);
}
