// Every function of a public header tells its reader who may call it, and if it gives a status which errors: in its own
// comment, in that of the lines it stands among, in its section's heading ("// ---- views  [any]"), or in a rule for
// all that follow.
#include "support/testing.h"

#include <ctype.h>
#include <glob.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 14 };

typedef struct reader {
    const char *path;
    FILE *file;
    int line, n_functions;
    char at[1024];
    // comments: above this line, of the declarations before it, of the section, for the rest of the file
    char own[TEXT_BYTES], group[TEXT_BYTES], heading[TEXT_BYTES], rule[TEXT_BYTES];
    bool in_heading, in_rule;
} reader;

static regex_t threads, errors;

static bool next_line(reader *r)
{
    r->line++;
    return fgets(r->at, sizeof r->at, r->file) != NULL;
}

static void add(char text[TEXT_BYTES], const char *more)
{
    const size_t n = strlen(text);
    snprintf(text + n, TEXT_BYTES - n, "%s", more);
}

static bool tells(const regex_t *what, const reader *r, const char *text)
{
    const char *const places[] = {text, r->heading, r->rule};
    for (int k = 0; k < 3; k++)
        if (!regexec(what, places[k], 0, NULL, 0)) return true;
    return false;
}

/// Where a line declares a function: its name; NULL for any other line.
static const char *function_in(const char *line)
{
    if (!isalpha((unsigned char)*line) || !strncmp(line, "typedef", 7)) return NULL;
    for (const char *at = strstr(line, "wt_"); at; at = strstr(at + 1, "wt_"))
        if (at[strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '(') return at;
    return NULL;
}

/// To the declaration's end, and what is said behind it.
static void read_declaration(reader *r, const char *name)
{
    char declared[TEXT_BYTES] = "", text[TEXT_BYTES] = "", called[128];
    const int line = r->line;
    snprintf(called, sizeof called, "%.*s", (int)strcspn(name, "("), name);
    add(declared, r->at);
    while (!strpbrk(r->at, ";{") && next_line(r)) add(declared, r->at);
    const char *behind = strstr(r->at, "///<");
    if (behind) add(r->own, behind);
    add(text, *r->own ? r->own : r->group);
    if (!tells(&threads, r, text)) fail_msg("%s:%d: %s does not tell who may call it", r->path, line, called);
    if (strstr(declared, "wt_status wt_") && !tells(&errors, r, text))
        fail_msg("%s:%d: %s does not tell its errors", r->path, line, called);
    if (strchr(r->at, '{') && !strchr(r->at, '}'))
        while (next_line(r) && *r->at != '}') {
        }
    memcpy(r->group, text, sizeof text);
    *r->own = 0;
    r->n_functions++;
}

static void read_remark(reader *r)
{
    const bool heading = !strncmp(r->at, "// ----", 7);
    if (heading && !r->in_heading) *r->heading = 0;
    if (heading) add(r->heading, r->at);
    r->in_heading = heading;
    if (!strncmp(r->at, "// All that follow", 18)) *r->rule = 0, r->in_rule = true;
    if (r->in_rule) add(r->rule, r->at);
}

static int read_header(const char *path)
{
    static reader r;
    r = (reader){.path = path, .file = fopen(path, "r")};
    assert_non_null(r.file);
    while (next_line(&r)) {
        const char *name = function_in(r.at);
        if (!strncmp(r.at, "///", 3)) {
            add(r.own, r.at);
        } else if (!strncmp(r.at, "//", 2)) {
            read_remark(&r);
            continue;
        } else if (name) {
            read_declaration(&r, name);
        } else {
            *r.own = 0;
            if (*r.at == '\n' || *r.at == '}') *r.group = 0;
        }
        r.in_heading = r.in_rule = false;
    }
    fclose(r.file);
    return r.n_functions;
}

static void every_function_tells_thread_and_errors(void **state)
{
    (void)state;
    glob_t headers;
    int n = 0;
    if (glob("*/include/warptone/*.h", 0, NULL, &headers)) {
        print_message("skipped: this test needs the source tree\n");
        skip();
    }
    assert_int_equal(regcomp(&threads, "\\[(any|main|worker|rt|the )[^]]*\\]", REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(regcomp(&errors, "[Ee]rror|[Ll]ikewise|WT_ERR|[Rr]eturn", REG_EXTENDED | REG_NOSUB), 0);
    for (size_t k = 0; k < headers.gl_pathc; k++) n += read_header(headers.gl_pathv[k]);
    assert_true(n > 500);
    globfree(&headers);
    regfree(&threads), regfree(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_tells_thread_and_errors)};
    return cmocka_run_group_tests_name("header comments", tests, NULL, NULL);
}
