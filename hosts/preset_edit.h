/// A preset's text with other values in it: comments, order and layout stay as they were written.
#ifndef WT_PRESET_EDIT_H
#define WT_PRESET_EDIT_H

#include <stddef.h>
#include <warptone/status.h>

/// Give a node's setting another value, or add it to the node when it is absent (a flow mapping's end, else a line of
/// its own below `node:`).
///
///   text    [*length], malloc'ed; replaced by the changed text, which is *length bytes and a NUL
///   node    index in `nodes`
///   value   a plain scalar
///
/// Errors: WT_ERR_FORMAT (no such node, text that is no preset), WT_ERR_NO_MEMORY; the text is as it was.  [any but rt]
WT_CHECKED wt_status preset_edit_set(char **text, size_t *length, int node, const char *setting, const char *value);

/// The shortest decimal text that reads back as this float.
void preset_edit_number(float value, char text[32]);

#endif
