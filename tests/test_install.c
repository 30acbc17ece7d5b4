// What an embedding program meets: the functions that headers promise, names that stay inside, pkg-config's answer.
#include "support/testing.h"

#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/warptone.h>

static char folder[] = "/tmp/warptone-install-XXXXXX", out[1 << 16];

static void need(const char *path)
{
    if (access(path, R_OK) == 0) return;
    print_message("skipped: %s is not here\n", path);
    skip();
}

// The function that a line of a header declares, "" for any other line; those that are inline are in no library.
static void declared(const char *line, char name[128])
{
    *name = 0;
    if (!isalpha((unsigned char)*line) || strstr(line, "inline") || strstr(line, "WT_INLINE")) return;
    for (const char *at = strstr(line, "wt_"); at; at = strstr(at + 1, "wt_")) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (at[n] == '(' && n < 128) {
            snprintf(name, 128, "%.*s", (int)n, at);
            return;
        }
    }
}

static void every_declared_function_is_there(void **state)
{
    (void)state;
    need("hosts/include/warptone/warptone.h");
    glob_t headers;
    int n_found = 0;
    assert_int_equal(glob("*/include/warptone/*.h", 0, NULL, &headers), 0);
    for (size_t k = 0; k < headers.gl_pathc; k++) {
        char line[1024], name[128];
        FILE *file = fopen(headers.gl_pathv[k], "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file)) {
            declared(line, name);
            if (!*name) continue;
            n_found++;
            if (!dlsym(RTLD_DEFAULT, name))
                fail_msg("%s declares %s, which the library lacks", headers.gl_pathv[k], name);
        }
        fclose(file);
    }
    globfree(&headers);
    assert_true(n_found > 500);
}

static void internal_names_stay_inside(void **state)
{
    (void)state;
    need("hosts/exports.map");
    static const char text[] = "int wt_gain(void) { return 1; } int wt__gain(void) { return 2; }\n"
                               "int analyze_gain(void) { return 3; } int process_list = 4;\n";
    char path[128];
    snprintf(path, sizeof path, "%s/a.c", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    if (run_command(out, sizeof out, "cc -shared -fPIC -Wl,--version-script=hosts/exports.map %s/a.c -o %s/a.so 2>&1",
                    folder, folder)) {
        print_message("skipped: %s", out); // no compiler
        skip();
    }
    assert_int_equal(run_command(out, sizeof out, "nm -D --defined-only %s/a.so", folder), 0);
    assert_non_null(strstr(out, " wt_gain\n"));
    assert_null(strstr(out, "wt__gain"));
    assert_null(strstr(out, "analyze_gain"));
    assert_null(strstr(out, "process_list"));
}

static void pkg_config_tells_the_library_and_what_it_wants(void **state)
{
    (void)state;
    char program[4096], *slash;
    assert_true(find_program(program, sizeof program));
    if ((slash = strrchr(program, '/'))) *slash = 0;
    if (run_command(out, sizeof out, "PKG_CONFIG_PATH='%s' pkg-config --modversion warptone 2>&1", program)) {
        print_message("skipped: %s", out); // a bundle has no warptone.pc
        skip();
    }
    out[strcspn(out, "\n")] = 0;
    assert_string_equal(out, WARPTONE_VERSION);
    assert_string_equal(out, wt_version());
    assert_int_equal(
        run_command(out, sizeof out, "PKG_CONFIG_PATH='%s' pkg-config --cflags --libs warptone", program), 0);
    assert_non_null(strstr(out, "/include "));
    assert_non_null(strstr(out, "-lwarptone"));
    assert_null(strstr(out, "-lsndfile")); // the shared library brings its own
    assert_int_equal(
        run_command(out, sizeof out, "PKG_CONFIG_PATH='%s' pkg-config --static --libs warptone", program), 0);
    assert_non_null(strstr(out, "-lsndfile"));
    assert_non_null(strstr(out, "-ljansson"));
}

static int begin(void **state)
{
    (void)state;
    return !mkdtemp(folder);
}

static int end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_declared_function_is_there),
        cmocka_unit_test(internal_names_stay_inside),
        cmocka_unit_test(pkg_config_tells_the_library_and_what_it_wants),
    };
    return cmocka_run_group_tests_name("install", tests, begin, end);
}
