/// Models of protocols in Promela, run through spin.
#ifndef WT_MODEL_CHECK_H
#define WT_MODEL_CHECK_H

#include <stdbool.h>

/// Skips the running test without spin, a C compiler and the source tree.
void skip_without_spin(const char *model);

/// True when spin says `want` of tests/models/<model> with `definition` ("RELAXED=1"). `prune`: runs that end early are
/// no error (-E).
bool model_says(const char *model, const char *definition, bool prune, const char *want);

#endif
