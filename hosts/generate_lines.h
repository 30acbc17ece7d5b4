/// `warptone generate --lines N`: each line of a text is a prompt, N of them are answered at a time.
#ifndef WT_GENERATE_LINES_H
#define WT_GENERATE_LINES_H

#include "language_model.h"

typedef struct lines_config {
    language_model *model; ///< opened for several sequences
    const language_options *options;
    const char *text; ///< [length] the lines; borrowed
    size_t length;
    int n_top;           ///< most probable tokens told with each
    bool split_thinking; ///< as a key of its own
} lines_config;

/// Answer all non-empty lines, each by a JSON object in a line of stdout with its number from 1 as "line", in the order
/// of their ends; what is refused, `n_refused` of them, has "error" instead. After a signal the answers under way end.
/// Errors: those of wt_batcher_step, WT_ERR_NO_MEMORY.  [main]
WT_CHECKED wt_status generate_lines(const lines_config *config, int *n_refused);

#endif
