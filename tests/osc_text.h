/// An OSC message as text, "/a/b ,sf word 0.5", for tests that compare.
#ifndef WT_OSC_TEXT_H
#define WT_OSC_TEXT_H

#include <lo/lo.h>
#include <stdio.h>
#include <string.h>

/// Strings, floats and integers; arguments are aligned to 4 bytes and lo_arg wants 8, so no member of it is named.
static inline void osc_text_of(const char *path, const char *types, lo_arg **argv, int argc, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s ,%s", path, types);
    for (int k = 0; k < argc && used < size; k++) {
        float real;
        int whole;
        memcpy(&real, (const char *)argv[k], sizeof real);
        memcpy(&whole, (const char *)argv[k], sizeof whole);
        if (types[k] == 's')
            used += (size_t)snprintf(text + used, size - used, " %s", (const char *)argv[k]);
        else if (types[k] == 'f')
            used += (size_t)snprintf(text + used, size - used, " %g", (double)real);
        else
            used += (size_t)snprintf(text + used, size - used, " %d", whole);
    }
}

#endif
