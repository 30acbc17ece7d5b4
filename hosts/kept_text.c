#include "kept_text.h"

#include <stdlib.h>
#include <string.h>

void kept_text_add(kept_text *text, const char *piece, size_t length)
{
    if (!length) return; // and perhaps no piece
    if (text->n + length > text->size) {
        const size_t size = 2 * (text->n + length) + 256;
        char *larger = realloc(text->at, size);
        if (!larger) return;
        text->at = larger;
        text->size = size;
    }
    memcpy(text->at + text->n, piece, length);
    text->n += length;
}
