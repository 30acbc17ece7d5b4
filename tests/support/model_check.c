#include "support/testing.h"
#include "support/model_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Run a shell command; true when a line of its output holds `want`.
static bool prints(const char *command, const char *want)
{
    FILE *output = popen(command, "r");
    if (!output) return false;
    char line[512];
    bool found = false;
    while (fgets(line, sizeof line, output)) found |= strstr(line, want) != NULL;
    pclose(output);
    return found;
}

void skip_without_spin(const char *model)
{
    char path[256];
    snprintf(path, sizeof path, "tests/models/%s", model);
    bool found = system("command -v spin >/dev/null && command -v cc >/dev/null") == 0;
    if (found && access(path, R_OK) == 0) return;
    print_message("skipped: the model needs spin, a C compiler and the source tree\n");
    skip();
}

bool model_says(const char *model, const char *definition, bool prune, const char *want)
{
    char command[1024];
    snprintf(command, sizeof command,
             "model=\"$PWD/tests/models/%s\" && folder=$(mktemp -d) && cd \"$folder\" && "
             "spin -D%s -a \"$model\" && cc -w -DSAFETY -o pan pan.c && ./pan %s 2>&1; "
             "cd / && rm -rf \"$folder\"",
             model, definition, prune ? "-E" : "");
    return prints(command, want);
}
