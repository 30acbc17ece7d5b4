/// The MIDI map of a preset: its rows between YAML strings, structs and the parameters of a chain.
#ifndef WT_PRESET_MIDI_H
#define WT_PRESET_MIDI_H

#include "preset_yaml.h"
#include <warptone/preset.h>

enum { PRESET_MIDI_TEXT = 2048 };

extern const char *const preset_midi_curves[WT_N_MIDI_CURVES];

/// Rows of a file that was read. Their strings are borrowed from `file`; caller frees the array with free().
/// Errors: WT_ERR_FORMAT with path, line, what was met and what was wanted; WT_ERR_NO_MEMORY.
WT_CHECKED wt_status preset_midi_read(const char *path, const char *text, size_t length, const preset_file *file,
                                      wt_midi_row **rows);

/// Do two rows say the same? Numbers are compared as they are written.
bool preset_midi_equal(const wt_midi_row *a, const wt_midi_row *b);

/// A row as it stands in a preset, "{cc: 7, param: level/gain_db}".
void preset_midi_format(const wt_midi_row *row, char text[PRESET_MIDI_TEXT]);

/// A number in the fewest digits that read back as the same float.
void preset_number_format(float value, char text[32]);

/// A row's parameter in a chain.
typedef struct preset_midi_target {
    int node, param;
    float min, max;
    float (*value)(float min, float max, float x); ///< at x 0 .. 1; x is the key's number for pitches
    bool toggle, pick_up, pitch;
} preset_midi_target;

/// Errors: WT_ERR_NOT_FOUND, WT_ERR_BAD_ARG; `key` is set to that of the row which is wrong.
WT_CHECKED wt_status preset_midi_resolve(const wt_midi_row *row, const wt_chain *chain, preset_midi_target *target,
                                         const char **key);

#endif
