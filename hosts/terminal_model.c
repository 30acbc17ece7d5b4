#include "terminal_model.h"

#include <stdio.h>
#include <unistd.h>

void terminal_model_progress(void *user, int done, int of)
{
    (void)user;
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\rquantising %d of %d%s", done, of, done == of ? "\n" : "");
}
