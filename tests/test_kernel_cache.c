#include "support/testing.h"
#include "../engine/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <warptone/kernel.h>

static char folder[] = "/tmp/warptone-cache-XXXXXX";
static char cache[64], pack[64];

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts, (void)kind, (void)at;
    return remove(path);
}

/// Each test begins with an empty cache of 512 MB in a folder of its own.
static int make_folder(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(cache, sizeof cache, "%s/deep/cache", folder);
    snprintf(pack, sizeof pack, "%s/pack", folder);
    unsetenv("WARPTONE_CACHE_LIMIT_MB");
    return setenv("WARPTONE_CACHE", cache, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static wt__cache_key key_of(int number)
{
    wt__cache_key key = {.architecture = 90, .nvrtc_version = 13000};
    memset(key.hash, number, sizeof key.hash);
    return key;
}

static wt_kernel_cache_info info_now(void)
{
    wt_kernel_cache_info info;
    assert_ok(wt_kernel_cache_query(&info));
    return info;
}

static void store(int number, const void *image, size_t size_bytes)
{
    wt__cache_key key = key_of(number);
    wt__cache_store(&key, "test.cu", image, size_bytes);
}

static bool load(int number, wt_compiled *compiled)
{
    wt__cache_key key = key_of(number);
    *compiled = (wt_compiled){0};
    return wt__cache_load(&key, compiled);
}

static bool has(int number)
{
    wt_compiled compiled;
    bool found = load(number, &compiled);
    free(compiled.image);
    return found;
}

static const char *entry_path(int number, const char *in)
{
    static char path[256];
    int length = snprintf(path, sizeof path, "%s/", in);
    for (int k = 0; k < 32; k++) length += snprintf(path + length, sizeof path - (size_t)length, "%02x", number);
    snprintf(path + length, sizeof path - (size_t)length, "-13000.wtk");
    return path;
}

// ---- the hash

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    static const struct { // FIPS 180-2, appendix B; the empty text: NIST's example values
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (int n = 0; n < 3; n++) {
        wt__sha256 hash;
        unsigned char digest[32];
        char hex[65];
        wt__sha256_start(&hash);
        for (const char *c = cases[n].text; *c; c++) wt__sha256_add(&hash, c, 1); // in pieces
        wt__sha256_end(&hash, digest);
        for (int k = 0; k < 32; k++) snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(hex, cases[n].hex);
    }
}

// ---- entries

static void an_entry_comes_back_as_it_was_kept(void **state)
{
    (void)state;
    wt_kernel_cache_info before = info_now();
    wt_compiled got;
    assert_false(load(1, &got));
    store(1, "a cubin", 7);
    assert_true(load(1, &got));
    assert_true(got.from_cache);
    assert_int_equal(got.size_bytes, 7);
    assert_memory_equal(got.image, "a cubin", 7);
    free(got.image);
    wt_kernel_cache_info after = info_now();
    assert_string_equal(after.folder, cache);
    assert_int_equal(after.n_entries, 1);
    assert_int_equal(after.hits - before.hits, 1);
    assert_int_equal(after.misses - before.misses, 1);
    struct stat facts;
    assert_int_equal(stat(cache, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
}

static void without_nvrtc_the_newest_version_is_taken(void **state)
{
    (void)state;
    wt__cache_key key = key_of(2);
    key.nvrtc_version = 12090;
    wt__cache_store(&key, "test.cu", "old", 3);
    store(2, "new", 3);
    key.nvrtc_version = 0;
    wt_compiled got;
    assert_true(wt__cache_load(&key, &got));
    assert_memory_equal(got.image, "new", 3);
    free(got.image);
}

static void damage(int number, long offset, int how)
{
    const char *path = entry_path(number, cache);
    if (how == 't') {
        assert_int_equal(truncate(path, offset), 0);
        return;
    }
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void damaged_entries_are_dropped_and_counted(void **state)
{
    (void)state;
    static const struct {
        long offset;
        int how;
    } damages[] = {
        {0, 't'},   {100, 't'}, {224, 't'}, {230, 't'},                                  // shorter
        {0, 'x'},   {8, 'x'},   {12, 'x'},  {16, 'x'},  {24, 'x'}, {56, 'x'}, {64, 'x'}, // each field of the header
        {224, 'x'}, {230, 'x'},                                                          // the payload
    };
    int n_damages = (int)(sizeof damages / sizeof *damages);
    uint64_t before = info_now().corrupt;
    for (int k = 0; k < n_damages; k++) {
        store(3, "payload", 7);
        assert_true(has(3));
        damage(3, damages[k].offset, damages[k].how);
        assert_false(has(3));
        assert_int_equal(access(entry_path(3, cache), F_OK), -1); // compiled anew, not met again
    }
    assert_int_equal(info_now().corrupt - before, n_damages);
}

static void an_entry_under_a_foreign_name_is_refused(void **state)
{
    (void)state;
    store(4, "payload", 7);
    char from[256];
    strcpy(from, entry_path(4, cache));
    assert_int_equal(rename(from, entry_path(5, cache)), 0);
    assert_false(has(5));
    mkfifo(entry_path(6, cache), 0600); // must not hang
    assert_false(has(6));
}

static void age(int number, int seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    assert_int_equal(utimensat(AT_FDCWD, entry_path(number, cache), (struct timespec[]){now, now}, 0), 0);
}

static void the_least_recently_used_entry_goes_first(void **state)
{
    (void)state;
    size_t half_mb = 500 * 1024;
    char *image = calloc(1, half_mb);
    setenv("WARPTONE_CACHE_LIMIT_MB", "1", 1); // room for two
    uint64_t before = info_now().evictions;
    store(10, image, half_mb);
    age(10, 300);
    store(11, image, half_mb);
    age(11, 200);
    assert_true(has(10)); // used: now 11 is the oldest
    store(12, image, half_mb);
    assert_true(has(10) && has(12));
    assert_false(has(11));
    assert_int_equal(info_now().evictions - before, 1);
    assert_true(info_now().size_bytes <= info_now().limit_bytes);
    store(13, image, 0);
    setenv("WARPTONE_CACHE_LIMIT_MB", "0", 1); // keeps nothing
    store(14, image, 16);
    setenv("WARPTONE_CACHE_LIMIT_MB", "1", 1);
    assert_false(has(14));
    free(image);
}

static void a_bad_limit_is_named(void **state)
{
    (void)state;
    setenv("WARPTONE_CACHE_LIMIT_MB", "lots", 1);
    wt_kernel_cache_info info;
    assert_fails(wt_kernel_cache_query(&info), WT_ERR_BAD_ARG, "WARPTONE_CACHE_LIMIT_MB is \"lots\", want 0..16777216");
}

static void a_cache_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    setenv("WARPTONE_CACHE", "/proc/warptone/cache", 1);
    store(1, "payload", 7);
    assert_false(has(1));
    assert_int_equal(info_now().n_entries, 0);
}

static void clear_removes_entries_and_nothing_else(void **state)
{
    (void)state;
    store(1, "payload", 7);
    store(2, "payload", 7);
    char stranger[128];
    snprintf(stranger, sizeof stranger, "%s/notes.txt", cache);
    fclose(fopen(stranger, "w"));
    int n_removed = 0;
    assert_ok(wt_kernel_cache_clear(&n_removed));
    assert_int_equal(n_removed, 2);
    assert_int_equal(access(stranger, F_OK), 0);
    assert_ok(wt_kernel_cache_clear(&n_removed));
    assert_int_equal(n_removed, 0);
}

static void what_a_dead_process_left_is_swept_up(void **state)
{
    (void)state;
    store(1, "payload", 7);
    char stale[128], fresh[128];
    snprintf(stale, sizeof stale, "%s/.wtk-1-0", cache);
    snprintf(fresh, sizeof fresh, "%s/.wtk-1-1", cache);
    fclose(fopen(stale, "w"));
    fclose(fopen(fresh, "w"));
    struct timespec old = {.tv_sec = time(NULL) - 7200};
    utimensat(AT_FDCWD, stale, (struct timespec[]){old, old}, 0);
    info_now();
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(access(fresh, F_OK), 0);
}

static void a_pack_travels_to_another_machine(void **state)
{
    (void)state;
    store(1, "one", 3);
    store(2, "two", 3);
    store(3, "bad", 3);
    damage(3, 224, 'x');
    int n_entries = 0;
    assert_ok(wt_kernel_cache_export(pack, &n_entries));
    assert_int_equal(n_entries, 2);
    char other[128];
    snprintf(other, sizeof other, "%s/other", folder);
    setenv("WARPTONE_CACHE", other, 1);
    assert_false(has(1));
    assert_ok(wt_kernel_cache_import(pack, &n_entries));
    assert_int_equal(n_entries, 2);
    assert_true(has(1) && has(2));
    assert_int_equal(wt_kernel_cache_import("/nowhere", &n_entries), WT_ERR_FILE);
}

/// One of eight processes: keeps and takes 32 entries of 4 to 128 KB over and over while the limit evicts.
static int hammer(unsigned int seed)
{
    static unsigned char image[128 * 1024];
    for (int round = 0; round < 300; round++) {
        int number = rand_r(&seed) % 32 + 1;
        size_t size_bytes = (size_t)number * 4096;
        wt_compiled got;
        if (load(number, &got)) {
            for (size_t k = 0; k < got.size_bytes; k++)
                if (((unsigned char *)got.image)[k] != number) return 1;
            if (got.size_bytes != size_bytes) return 2;
            free(got.image);
        } else {
            memset(image, number, size_bytes);
            store(number, image, size_bytes);
        }
        if (seed % 97 == 0) {
            int n_removed;
            if (wt_kernel_cache_clear(&n_removed)) return 3;
        }
    }
    wt_kernel_cache_info info;
    return wt_kernel_cache_query(&info) || info.corrupt ? 4 : 0;
}

static void eight_processes_share_the_folder(void **state)
{
    (void)state;
    assert_int_equal(info_now().corrupt, 0);
    setenv("WARPTONE_CACHE_LIMIT_MB", "1", 1); // half of what 32 entries take: they evict each other's
    pid_t children[8];
    for (int k = 0; k < 8; k++) {
        children[k] = fork();
        if (!children[k]) _exit(hammer((unsigned int)k + 1));
        assert_true(children[k] > 0);
    }
    for (int k = 0; k < 8; k++) {
        int status = -1;
        assert_int_equal(waitpid(children[k], &status, 0), children[k]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    DIR *directory = opendir(cache);
    for (struct dirent *found; directory && (found = readdir(directory));)
        assert_int_not_equal(strncmp(found->d_name, ".wtk-", 5), 0); // nothing half-written stays
    if (directory) closedir(directory);
}

// ---- compiling through it

static bool without_nvrtc(void)
{
    if (wt_nvrtc_version()) return false;
    print_message("skipped: %s\n", wt_last_error());
    return true;
}

static const char good_text[] = "extern \"C\" __global__ void good(float *x) { x[threadIdx.x] = GAIN; }\n";

static void a_second_compilation_comes_from_the_cache(void **state)
{
    (void)state;
    if (without_nvrtc()) skip();
    const char *options[] = {"-DGAIN=2.0f"};
    wt_module_config config = {.name = "good.cu", .source = good_text, .options = options, .n_options = 1};
    wt_compiled first, second, third;
    assert_ok(wt_kernel_compile(&config, 90, &first));
    assert_ok(wt_kernel_compile(&config, 90, &second));
    assert_false(first.from_cache);
    assert_true(second.from_cache);
    assert_int_equal(first.size_bytes, second.size_bytes);
    assert_memory_equal(first.image, second.image, first.size_bytes);
    assert_memory_equal(first.image,
                        "\x7f"
                        "ELF",
                        4);
    free(second.image);

    options[0] = "-DGAIN=3.0f"; // other options, another entry
    assert_ok(wt_kernel_compile(&config, 90, &second));
    assert_false(second.from_cache);
    assert_ok(wt_kernel_compile(&config, 80, &third)); // another architecture
    assert_false(third.from_cache);
    assert_int_equal(info_now().n_entries, 3);
    config.no_cache = true;
    free(third.image);
    assert_ok(wt_kernel_compile(&config, 80, &third));
    assert_false(third.from_cache);
    free(first.image);
    free(second.image);
    free(third.image);
}

static void a_damaged_kernel_is_compiled_anew(void **state)
{
    (void)state;
    if (without_nvrtc()) skip();
    const wt_module_config config = {.name = "plain.cu", .source = "extern \"C\" __global__ void plain() {}\n"};
    wt_compiled got;
    assert_ok(wt_kernel_compile(&config, 90, &got));
    free(got.image);
    DIR *directory = opendir(cache);
    for (struct dirent *found; (found = readdir(directory));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", cache, found->d_name);
        if (strstr(found->d_name, ".wtk")) assert_int_equal(truncate(path, 500), 0);
    }
    closedir(directory);
    assert_ok(wt_kernel_compile(&config, 90, &got));
    assert_false(got.from_cache);
    free(got.image);
    assert_ok(wt_kernel_compile(&config, 90, &got));
    assert_true(got.from_cache);
    free(got.image);
}

static void a_users_mistake_is_told_with_nvrtcs_log(void **state)
{
    (void)state;
    if (without_nvrtc()) skip();
    wt_module_config config = {
        .name = "mine.cu",
        .source = "extern \"C\" __global__ void f(int n)\n{\n    int unused = 1;\n    n = nonsense;\n}\n"};
    wt_compiled got;
    assert_int_equal(wt_kernel_compile(&config, 90, &got), WT_ERR_COMPILE);
    assert_null(got.image);
    assert_non_null(strstr(wt_last_error(), "mine.cu does not compile: mine.cu(4): error: "));
    assert_non_null(strstr(wt_last_error(), "nonsense"));
    config.source = "#include \"absent_file.h\"\n";
    assert_int_equal(wt_kernel_compile(&config, 90, &got), WT_ERR_COMPILE);
    assert_non_null(strstr(wt_last_error(), "absent_file.h"));
    config.source = good_text;
    config.options = (const char *[]){"--no-such-option"};
    config.n_options = 1;
    assert_int_equal(wt_kernel_compile(&config, 90, &got), WT_ERR_COMPILE);
    assert_int_equal(info_now().n_entries, 0); // mistakes are not kept
}

static void compiling_refuses_what_it_cannot_do(void **state)
{
    (void)state;
    wt_compiled got;
    assert_fails(wt_kernel_compile(&(wt_module_config){.name = "kernels/absent.cu"}, 90, &got), WT_ERR_NOT_FOUND,
                 "kernels/absent.cu: no such kernel is built in");
    assert_fails(wt_kernel_compile(&(wt_module_config){.name = "x", .source = ""}, 75, &got), WT_ERR_BAD_ARG,
                 "x: architecture sm_75, want sm_80 or newer");
    assert_fails(wt_kernel_compile(&(wt_module_config){.source = ""}, 90, &got), WT_ERR_BAD_ARG,
                 "kernel: no name, want one for messages");
    if (without_nvrtc()) skip();
    assert_int_equal(wt_kernel_compile(&(wt_module_config){.name = "x", .source = ""}, 998, &got), WT_ERR_COMPILE);
    assert_non_null(strstr(wt_last_error(), "knows no sm_998"));
}

/// In a process of its own: NVRTC is opened once. Entries of the cache still serve.
static int compile_without_nvrtc(void)
{
    const wt_module_config known = {.name = "known.cu", .source = "extern \"C\" __global__ void known() {}\n"};
    const wt_module_config unknown = {.name = "unknown.cu", .source = "extern \"C\" __global__ void unknown() {}\n"};
    wt_compiled got;
    if (wt_kernel_compile(&unknown, 90, &got) != WT_ERR_NO_NVRTC) return 1;
    if (strncmp(wt_last_error(), "NVRTC JIT compiler not available: WARPTONE_NVRTC is set, but ", 60)) return 2;
    if (wt_kernel_compile(&known, 90, &got) || !got.from_cache) return 3;
    free(got.image);
    return wt_nvrtc_version() ? 4 : 0;
}

static void a_machine_without_nvrtc_runs_from_the_cache(void **state)
{
    (void)state;
    if (without_nvrtc()) skip();
    wt_compiled got;
    assert_ok(wt_kernel_compile(
        &(wt_module_config){.name = "known.cu", .source = "extern \"C\" __global__ void known() {}\n"}, 90, &got));
    free(got.image);
    char self[4096] = {0}, command[4300];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "WARPTONE_NVRTC=/nowhere/libnvrtc.so '%s' without-nvrtc", self);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "without-nvrtc")) return compile_without_nvrtc();
    const struct CMUnitTest tests[] = {
        TEST(eight_processes_share_the_folder), // first: its children must begin with a count of 0 damaged entries
        TEST(sha256_gives_the_published_digests),
        TEST(an_entry_comes_back_as_it_was_kept),
        TEST(without_nvrtc_the_newest_version_is_taken),
        TEST(damaged_entries_are_dropped_and_counted),
        TEST(an_entry_under_a_foreign_name_is_refused),
        TEST(the_least_recently_used_entry_goes_first),
        TEST(a_bad_limit_is_named),
        TEST(a_cache_that_cannot_be_written_is_no_error),
        TEST(clear_removes_entries_and_nothing_else),
        TEST(what_a_dead_process_left_is_swept_up),
        TEST(a_pack_travels_to_another_machine),
        TEST(a_second_compilation_comes_from_the_cache),
        TEST(a_damaged_kernel_is_compiled_anew),
        TEST(a_users_mistake_is_told_with_nvrtcs_log),
        TEST(compiling_refuses_what_it_cannot_do),
        TEST(a_machine_without_nvrtc_runs_from_the_cache),
    };
    return cmocka_run_group_tests_name("kernel cache", tests, NULL, NULL);
}
