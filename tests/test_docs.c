// The pages as a reader uses them: reached from the README, with links that lead somewhere and the options that there
// are.
#include "support/testing.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char page[1 << 20], out[1 << 17], program[4096];

static void read_page(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        print_message("skipped: this test needs the source tree\n");
        skip();
    }
    const size_t n = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    page[n] = 0;
}

static void the_readme_links_every_page(void **state)
{
    (void)state;
    glob_t pages;
    read_page("README.md");
    assert_int_equal(glob("docs/*.md", 0, NULL, &pages), 0);
    for (size_t k = 0; k < pages.gl_pathc; k++) {
        char link[256];
        snprintf(link, sizeof link, "](%s)", pages.gl_pathv[k]);
        if (!strstr(page, link)) fail_msg("README.md does not link %s", pages.gl_pathv[k]);
    }
    assert_true(pages.gl_pathc > 20);
    globfree(&pages);
}

// The anchor that a heading gets: lower case, words joined by dashes, nothing else.
static bool has_heading(const char *path, const char *anchor)
{
    char line[1024], made[1024];
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t n = 0;
        const char *c = line + strspn(line, "#");
        if (c == line || *c != ' ') continue;
        for (c++; *c && *c != '\n'; c++)
            if (isalnum((unsigned char)*c) || *c == '_' || *c == '-') made[n++] = (char)tolower((unsigned char)*c);
            else if (*c == ' ') made[n++] = '-';
        made[n] = 0;
        found = strcmp(made, anchor) == 0;
    }
    if (file) fclose(file);
    return found;
}

static int check_links(const char *path)
{
    int n_links = 0;
    const char *slash = strrchr(path, '/');
    read_page(path);
    for (const char *at = strstr(page, "]("); at; at = strstr(at + 2, "](")) {
        char link[256], target[512];
        const size_t n = strcspn(at + 2, ")");
        if (n >= sizeof link || memchr(at + 2, ' ', n) || !strncmp(at + 2, "http", 4)) continue; // code, or the network
        snprintf(link, sizeof link, "%.*s", (int)n, at + 2);
        char *anchor = strchr(link, '#');
        if (anchor) *anchor++ = 0;
        if (*link) snprintf(target, sizeof target, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, link);
        else snprintf(target, sizeof target, "%s", path);
        if (access(target, F_OK)) fail_msg("%s links %s, which is not there", path, link);
        if (anchor && !has_heading(target, anchor))
            fail_msg("%s links #%s of %s, which has no such heading", path, anchor, target);
        n_links++;
    }
    return n_links;
}

static void no_link_is_dead(void **state)
{
    (void)state;
    static const char *const where[] = {"README.md", "docs/*.md", "bench/*.md", "models/*/README.md"};
    int n_links = 0;
    for (size_t w = 0; w < sizeof where / sizeof *where; w++) {
        glob_t pages;
        if (glob(where[w], 0, NULL, &pages)) continue;
        for (size_t k = 0; k < pages.gl_pathc; k++) n_links += check_links(pages.gl_pathv[k]);
        globfree(&pages);
    }
    assert_true(n_links > 50);
}

/// The help of `command`, "" = all, stands in docs/commands.md, four blanks before each line that is not empty.
static void check_help(const char *command)
{
    static char wanted[1 << 18];
    size_t n = 0;
    assert_int_equal(run_command(out, sizeof out, "'%s' %s --help", program, command), 0);
    for (char *rest = out, *line; (line = strsep(&rest, "\n")) && rest;)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s%s\n", *line ? "    " : "", line);
    if (!strstr(page, wanted))
        fail_msg("docs/commands.md is not what `warptone %s --help` says: python3 docs/make_commands.py build/warptone",
                 command);
}

static void the_reference_is_what_help_says(void **state)
{
    (void)state;
    assert_true(find_program(program, sizeof program));
    read_page("docs/commands.md");
    check_help("");
    static char all[sizeof out];
    int n_commands = 0;
    assert_int_equal(run_command(all, sizeof all, "'%s' --help", program), 0);
    for (char *rest = strstr(all, "commands:\n") + 10, *line; (line = strsep(&rest, "\n")) && *line; n_commands++) {
        char heading[64];
        const int length = (int)strcspn(line + 2, " ");
        snprintf(heading, sizeof heading, "\n### %.*s\n", length, line + 2);
        if (!strstr(page, heading)) fail_msg("docs/commands.md has no section%s", heading);
        line[2 + length] = 0;
        check_help(line + 2);
    }
    assert_true(n_commands >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_readme_links_every_page),
        cmocka_unit_test(no_link_is_dead),
        cmocka_unit_test(the_reference_is_what_help_says),
    };
    return cmocka_run_group_tests_name("docs", tests, NULL, NULL);
}
