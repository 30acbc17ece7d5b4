/// Plans of the simulation as YAML; docs/scheduler.md shows one. The keys are the fields of wt_plan.
#ifndef WT_PLAN_H
#define WT_PLAN_H

#include <warptone/simulate.h>

/// Errors: WT_ERR_FILE, WT_ERR_FORMAT with "path:line: what was met". Caller frees with plan_free.
WT_CHECKED wt_status plan_load(const char *path, wt_plan **plan);
void plan_free(wt_plan *plan); ///< NULL is allowed.

#endif
