/// What the machine permits a real-time program.
#ifndef WT_LIVE_RIGHTS_H
#define WT_LIVE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/// May this process run threads at a real-time priority, and lock the memory it has? What is permitted is tried, and
/// memory stays locked. When something is not, `sentence` says what and what to grant; "" otherwise.  [any but rt]
bool live_rights(char *sentence, size_t size);

#endif
