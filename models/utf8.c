#include "utf8.h"

// How many bytes a character that begins with `lead` has (0 = none begins so), and the range of its second byte.
static size_t shape(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

// Well-formed bytes at the beginning of the character that `lead`'s shape promises.
static size_t good_bytes(const unsigned char *s, size_t n, size_t *want)
{
    unsigned char low, high;
    size_t good = 1;
    *want = shape(s[0], &low, &high);
    for (; good < *want && good < n; good++) {
        if (s[good] < low || s[good] > high) break;
        low = 0x80;
        high = 0xbf;
    }
    return good;
}

size_t wt__utf8_next(const char *s, size_t n, uint32_t *c, size_t *bad)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *c = u[0];
        return 1;
    }
    size_t want, good = good_bytes(u, n, &want);
    if (good != want) {
        if (bad) *bad = good;
        return 0;
    }
    *c = u[0] & (0x7fu >> want);
    for (size_t i = 1; i < want; i++) *c = *c << 6 | (u[i] & 0x3f);
    return want;
}

bool wt__utf8_unfinished(const char *s, size_t n)
{
    size_t want = 0;
    return n > 0 && good_bytes((const unsigned char *)s, n, &want) == n && n < want;
}

size_t wt__utf8_put(uint32_t c, char out[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(n == 1 ? c : (0xf00u >> n | c) & 0xff);
    return n;
}

bool wt__utf8_valid(const char *s, size_t n)
{
    uint32_t c;
    for (size_t i = 0, size; i < n; i += size) {
        size = wt__utf8_next(s + i, n - i, &c, NULL);
        if (!size) return false;
    }
    return true;
}

bool wt__is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
