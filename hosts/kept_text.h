/// Text that comes in pieces.
#ifndef WT_KEPT_TEXT_H
#define WT_KEPT_TEXT_H

#include <stddef.h>

typedef struct kept_text {
    char *at; ///< [n] no zero after it; freed by its owner
    size_t n, size;
} kept_text;

/// Without memory the text stays shorter.  [any but rt]
void kept_text_add(kept_text *text, const char *piece, size_t length);

#endif
