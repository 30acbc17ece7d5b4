/// UTF-8, one character at a time (the Unicode Standard, table 3-7).
#ifndef WT_MODELS_UTF8_H
#define WT_MODELS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Bytes of the character at `s` (of `n` > 0 bytes) and its number in *c; 0 where it is malformed or cut off, and then
/// *bad (NULL is allowed) gets the bytes that one U+FFFD stands for: the longest beginning of a character, or 1.
size_t wt__utf8_next(const char *s, size_t n, uint32_t *c, size_t *bad);
/// Is all of it a beginning of a character that more bytes could complete?
bool wt__utf8_unfinished(const char *s, size_t n);
size_t wt__utf8_put(uint32_t c, char out[4]); ///< 1 .. 4 bytes
bool wt__utf8_valid(const char *s, size_t n);
/// Unicode's White_Space (PropList.txt), which the regular expressions' \s follows.
bool wt__is_space(uint32_t c);

#endif
