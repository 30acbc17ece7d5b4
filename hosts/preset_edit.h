/// Changes to a preset's text that leave the rest of it as it stands: comments, order, spaces and line ends.
#ifndef WT_PRESET_EDIT_H
#define WT_PRESET_EDIT_H

#include <warptone/preset.h>

/// Give a parameter of a node (index in the preset) another value, where it stands or behind the node's last setting.
/// `*text` is a malloc'ed string and is replaced by another; on an error it stays. `path` stands in messages.
/// Errors: WT_ERR_NOT_FOUND (no such node); WT_ERR_FORMAT (the text is no preset, or is written in a way that this
/// cannot change); WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status preset_edit_param(const char *path, char **text, int node, const char *param, float value);

/// Make the MIDI map say `rows` [n_rows]: rows that are there stay as they are written, others of the text go, new ones
/// come behind the last; without rows the section goes. Otherwise as above. A map in flow style, [{...}, ...], is
/// written anew as a whole.
WT_CHECKED wt_status preset_edit_midi(const char *path, char **text, const wt_midi_row *rows, int n_rows);

#endif
