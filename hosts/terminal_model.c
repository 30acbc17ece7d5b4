#include "terminal_model.h"

#include <stdio.h>
#include <unistd.h>

void terminal_model_progress(const char *what, int done, int of, const char *unit)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%s %d of %d %s%s", what, done, of, unit, done == of ? "\n" : "");
}
