/// Opening of model files in tests: refused with a sentence, opened, damaged.
#ifndef WT_WEIGHTS_CHECK_H
#define WT_WEIGHTS_CHECK_H

#include "model_files.h"

#include <warptone/weights.h>

/// Opening fails with that status and a sentence that holds `part`.
void weights_refused(const char *path, wt_status status, const char *part);
wt_weights *weights_opened(const char *path);
/// A new file each time: to truncate one that exists makes some file systems write it out.
void weights_spill_anew(const char *path, const void *data, size_t size);
/// No prefix of a good file opens, none crashes; neither does the file with any one byte changed, opened or not.
void weights_damage(const char *path, const bytes *good);

#endif
