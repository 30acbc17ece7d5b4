/// Numbers as text, with a point in every locale: an embedding program may have called setlocale.
#ifndef WARPTONE_NUMBER_H
#define WARPTONE_NUMBER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// strtod in the locale "C"; `end` may be NULL.  [any but rt]
double wt_number_read(const char *text, char **end);

/// snprintf of "%.*g" in the locale "C"; returns what it does.  [any but rt]
int wt_number_write(char *text, size_t size, int digits, double value);

#ifdef __cplusplus
}
#endif
#endif
