/// Names: what a person may have meant, and how one is shown.
#ifndef WARPTONE_NAMES_H
#define WARPTONE_NAMES_H

#include <stddef.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The one of `names` [n_names] with the smallest edit distance to `name` (Levenshtein, 63 bytes of each are compared);
/// the first of equals, "" when there are none.  [any but rt]
const char *wt_nearest_name(const char *name, const char *const *names, int n_names);

/// `text` with control characters as \n, \t, \x1b or \u009b, so that no name moves a cursor or begins a line: `shown`
/// [size], caller's, is full or ends with the text, never within an escape. Returns shown.  [any but rt]
char *wt_show_text(const char *text, char *shown, size_t size);

#ifdef __cplusplus
}
#endif
#endif
