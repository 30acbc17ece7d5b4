/// Names: what a person may have meant.
#ifndef WARPTONE_NAMES_H
#define WARPTONE_NAMES_H

#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The one of `names` [n_names] with the smallest edit distance to `name` (Levenshtein, 63 bytes of each are compared);
/// the first of equals, "" when there are none.  [any but rt]
const char *wt_nearest_name(const char *name, const char *const *names, int n_names);

#ifdef __cplusplus
}
#endif
#endif
