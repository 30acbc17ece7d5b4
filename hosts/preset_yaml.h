/// The YAML side of presets: text to plain structs, and the line where a part of it stands.
#ifndef WT_PRESET_YAML_H
#define WT_PRESET_YAML_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/chain.h>

enum { PRESET_MAX_SETTINGS = 256, PRESET_MIDI_KEYS = 14, PRESET_MAX_MIDI = 256 };

typedef struct preset_node {
    char *node, *id, *side;
    char **inputs;
    uint32_t inputs_count;
    char *settings[PRESET_MAX_SETTINGS]; // by preset_schema.names; NULL = absent
} preset_node;

typedef struct preset_midi_row {
    char *values[PRESET_MIDI_KEYS]; // by preset_midi_keys; NULL = absent
} preset_midi_row;

typedef struct preset_file {
    char *name, *description, *output;
    uint32_t channels; // 0 = any
    preset_node *nodes;
    uint32_t nodes_count;
    preset_midi_row *midi;
    uint32_t midi_count;
} preset_file;

/// All names that a node's settings may have, over all types.
typedef struct preset_names {
    const char *names[PRESET_MAX_SETTINGS];
    int n;
} preset_names;

/// Keys of a row of the MIDI map: the sources in their order, then the rest.
enum { MIDI_KEY_CHANNEL = 8, MIDI_KEY_PARAM, MIDI_KEY_PRESET, MIDI_KEY_MIN, MIDI_KEY_MAX, MIDI_KEY_CURVE };
extern const char *const preset_midi_keys[PRESET_MIDI_KEYS];

/// Errors: WT_ERR_FORMAT with "path:line: what was met, what was wanted".
WT_CHECKED wt_status preset_yaml_load(const char *path, const char *text, size_t length, preset_file **preset);
void preset_yaml_free(preset_file *preset);

preset_names preset_setting_names(void);

/// Line (from 1) of a node's setting, of the node itself (setting NULL or absent), or of a top-level key (node -1);
/// 0 when there is no such place.
int preset_yaml_line(const char *text, size_t length, int node, const char *setting);
/// The same of a row of the MIDI map.
int preset_yaml_midi_line(const char *text, size_t length, int row, const char *key);

#endif
