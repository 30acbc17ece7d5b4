// Every public header compiles alone, as C and as C++, with nothing but what its folder may include; and an include
// against the arrow kernels -> engine -> dsp -> models -> hosts does not compile. The include paths are read from the
// SConscripts, so that this is about the build as it is.
#include "support/testing.h"

#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_FOLDERS = 5, PATHS_BYTES = 4096, LOG_BYTES = 4096 };

static const char *const folders[N_FOLDERS] = {"kernels", "engine", "dsp", "models", "hosts"};

typedef struct language {
    const char *variable, *compiler, *flags; // the compiler is $variable, else `compiler`
} language;

static const language c11 = {"CC", "cc", "-x c -std=c11"};
static const language cxx17 = {"CXX", "c++", "-x c++ -std=c++17"};

static const char *compiler_of(const language *l) { return getenv(l->variable) ? getenv(l->variable) : l->compiler; }

static void skip_without(const language *l)
{
    char command[512];
    snprintf(command, sizeof command, "command -v %s >/dev/null", compiler_of(l));
    if (access("engine/SConscript", R_OK) == 0 && system(command) == 0) return;
    print_message("skipped: this test needs the source tree and a compiler named %s\n", compiler_of(l));
    skip();
}

// One path below the root; of "kernels/{subject}", as a SConscript lists its subjects, each folder that is there.
static void add_path(const char *path, int n, size_t *length, char options[PATHS_BYTES])
{
    char pattern[256];
    const int n_fixed = (int)strcspn(path, "{");
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, n_fixed < n ? "%.*s*/" : "%.*s", n_fixed < n ? n_fixed : n, path);
    glob(pattern, 0, NULL, &found);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        *length += (size_t)snprintf(options + *length, PATHS_BYTES - *length, " -I%s", found.gl_pathv[k]);
        assert_true(*length < PATHS_BYTES);
    }
    globfree(&found);
}

// The include options of sources in folder number `f`: what each SConscript up to it adds.
static void include_options(int f, char options[PATHS_BYTES])
{
    size_t length = 0;
    for (int k = 0; k <= f; k++) {
        char path[256], line[512];
        size_t before = length;
        snprintf(path, sizeof path, "%s/SConscript", folders[k]);
        FILE *script = fopen(path, "r");
        assert_non_null(script);
        while (fgets(line, sizeof line, script)) {
            const char *folder = strstr(line, "CPPPATH=[");
            while (folder && (folder = strstr(folder, "\"#"))) { // "#engine/include": below the root
                folder += 2;
                add_path(folder, (int)strcspn(folder, "\""), &length, options);
            }
        }
        fclose(script);
        if (length == before) fail_msg("%s adds no CPPPATH", path);
    }
}

// True when a file of folder `f` that includes `header` compiles; else the compiler's words are in `log`.
static bool compiles(const language *l, int f, const char *header, char log[LOG_BYTES])
{
    char options[PATHS_BYTES], command[PATHS_BYTES + 1024];
    include_options(f, options);
    snprintf(command, sizeof command,
             "printf '#include %s\\n#include %s\\n' | %s %s -Wall -Wextra -Wpedantic -Werror -fsyntax-only%s - 2>&1",
             header, header, compiler_of(l), l->flags, options); // twice: the guard holds
    FILE *output = popen(command, "r");
    assert_non_null(output);
    size_t length = fread(log, 1, LOG_BYTES - 1, output);
    log[length] = 0;
    while (fgetc(output) != EOF) {
    }
    return pclose(output) == 0;
}

// The headers that others may include: <warptone/...>, and of kernels/ those that both compilers read.
static glob_t headers_of(int f)
{
    char pattern[256];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, f == 0 ? "%s/*_kernel.h" : "%s/include/warptone/*.h", folders[f]);
    glob(pattern, 0, NULL, &found);
    snprintf(pattern, sizeof pattern, "%s/*/*_kernel.h", folders[f]);
    if (f == 0) glob(pattern, GLOB_APPEND, NULL, &found);
    return found;
}

static void spell(int f, const char *path, char header[256])
{
    snprintf(header, 256, f == 0 ? "\"%s\"" : "<warptone/%s>", strrchr(path, '/') + 1);
}

static void all_compile(const language *l)
{
    skip_without(l);
    int n_failed = 0, n_headers = 0;
    for (int f = 0; f < N_FOLDERS; f++) {
        glob_t found = headers_of(f);
        for (size_t k = 0; k < found.gl_pathc; k++, n_headers++) {
            char header[256], log[LOG_BYTES];
            spell(f, found.gl_pathv[k], header);
            if (compiles(l, f, header, log)) continue;
            print_error("%s does not compile alone:\n%s\n", found.gl_pathv[k], log);
            n_failed++;
        }
        globfree(&found);
    }
    assert_true(n_headers > 0);
    assert_int_equal(n_failed, 0);
}

static void every_header_compiles_alone_as_c11(void **state)
{
    (void)state;
    all_compile(&c11);
}

static void every_header_compiles_alone_as_cxx17(void **state)
{
    (void)state;
    all_compile(&cxx17);
}

// WARPTONE_RING_H for engine/include/warptone/ring.h, WT_GAIN_KERNEL_H for kernels/nodes/gain_kernel.h.
static void guard_of(int f, const char *path, char guard[256])
{
    const char *stem = strrchr(path, '/') + 1;
    int length = snprintf(guard, 256, f == 0 ? "WT_" : "WARPTONE_");
    for (; *stem && *stem != '.' && length < 250; stem++) guard[length++] = isalnum(*stem) ? toupper(*stem) : '_';
    snprintf(guard + length, 256 - (size_t)length, "_H");
}

static bool is_guarded(const char *path, const char *guard)
{
    char line[512], opens[300], defines[300], name[256] = "";
    snprintf(opens, sizeof opens, "#ifndef %s\n", guard);
    snprintf(defines, sizeof defines, "#define %s\n", guard);
    FILE *header = fopen(path, "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header) && *line != '#') {
    } // comments stand before the guard
    bool guarded = strcmp(line, opens) == 0 && fgets(line, sizeof line, header) && strcmp(line, defines) == 0;
    while (fgets(line, sizeof line, header))
        if (*line != '\n') snprintf(name, sizeof name, "%.255s", line);
    fclose(header);
    return guarded && strncmp(name, "#endif", 6) == 0;
}

static void every_header_has_a_guard_of_its_own_name(void **state)
{
    (void)state;
    if (access("engine/SConscript", R_OK)) {
        print_message("skipped: this test needs the source tree\n");
        skip();
    }
    for (int f = 0; f < N_FOLDERS; f++) {
        glob_t found = headers_of(f);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            char guard[256];
            guard_of(f, found.gl_pathv[k], guard);
            if (!is_guarded(found.gl_pathv[k], guard)) fail_msg("%s: want the guard %s", found.gl_pathv[k], guard);
        }
        globfree(&found);
    }
}

static void an_include_against_the_arrow_does_not_compile(void **state)
{
    (void)state;
    skip_without(&c11);
    char header[256], log[LOG_BYTES];
    for (int right = 1; right < N_FOLDERS; right++) {
        glob_t found = headers_of(right);
        for (int left = 0; left < right && found.gl_pathc > 0; left++) {
            spell(right, found.gl_pathv[0], header);
            if (compiles(&c11, left, header, log)) fail_msg("a file of %s/ may include %s", folders[left], header);
            if (!strstr(log, "No such file") && !strstr(log, "not found")) fail_msg("%s: %s", header, log);
        }
        globfree(&found);
    }
    assert_false(compiles(&c11, 0, "<warptone/status.h>", log)); // and at least this one is there to be tried
    assert_true(compiles(&c11, 1, "<warptone/status.h>", log));
}

int main(void)
{
    setenv("LC_ALL", "C", 1); // the compiler is to say it in English
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_header_compiles_alone_as_c11),
        cmocka_unit_test(every_header_compiles_alone_as_cxx17),
        cmocka_unit_test(every_header_has_a_guard_of_its_own_name),
        cmocka_unit_test(an_include_against_the_arrow_does_not_compile),
    };
    return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
