// The resident kernel's text, whole, on threads of the CPU: what it answers is the CPU chain's, and ThreadSanitizer
// finds no two threads of it at the same place of shared memory without a barrier between them. Only its PTX has a
// stand-in (tests/device_text). Without g++ or the folder beside the tests this skips.
#include "support/testing.h"
#include "support/audio_files.h"
#include "support/live_check.h"

#include "../dsp/chain/chain_internal.h"
#include "../kernels/kernel_table.h"
#include "device_text/text_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE 48000.0
#define OURS "tests/device_text"
enum { CHANNELS = 2, MOST_FRAMES = 64 };

// A string with every `from` in it replaced; caller frees with free(). `n`: how many there were.
static char *replaced(const char *text, const char *from, const char *to, int *n)
{
    char *out = calloc(strlen(text) * 2 + 1, 1), *end = out; // nothing here gets longer than that
    *n = 0;
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from), ++*n)
        end += sprintf(end, "%.*s%s", (int)(at - text), text, to);
    strcpy(end, text);
    return out;
}

// Device text as tests/device_text/cuda.h has the words in it; caller frees with free().
static char *cpu_text(const char *text)
{
    static const char *const words[][2] = {
        {"static __shared__", "__shared__"},
        {"extern __shared__", "extern"},
        {"asm volatile(\"bar.sync %0, %1;\" ::\"r\"(barrier), \"r\"(size) : \"memory\");", "abort();"}, // no teams here
    };
    char *out = strdup(text);
    for (int k = 0, n; k < 3; k++) {
        char *before = out;
        out = replaced(before, words[k][0], words[k][1], &n);
        free(before);
    }
    return out;
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_spill(path, text, strlen(text));
}

// All device text in one folder, as #include finds it, but for those whose PTX has a stand-in.
static void put_texts(const char *folder)
{
    for (int k = 0; k < wt__n_kernel_texts; k++) {
        const char *slash = strrchr(wt__kernel_table[k].path, '/'),
                   *name = slash ? slash + 1 : wt__kernel_table[k].path;
        if (!strcmp(name, "block_ring.cuh") || !strcmp(name, "resident_asm.cuh")) continue;
        char *text = cpu_text(wt__kernel_table[k].text);
        put_file(folder, name, text);
        free(text);
    }
}

static void put_state(const char *path, wt_chain *chain, int n_blocks)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    const text_state state = {.instance_bytes = (long long)chain->instance_bytes,
                              .plans_bytes = (long long)chain->plans_bytes,
                              .n_nodes = chain->n_nodes,
                              .n_blocks = n_blocks,
                              .n_buffers = chain->n_buffers,
                              .buffer_channels = chain->buffer_channels,
                              .output = chain->output,
                              .shared_floats = wt__chain_cuda_floats(chain, MOST_FRAMES)};
    fwrite(&state, sizeof state, 1, f);
    fwrite(chain->memory, chain->instance_bytes, 1, f);
    fwrite(chain->plans, chain->plans_bytes, 1, f);
    for (int k = 0; k < chain->n_nodes; k++) fwrite(&chain->nodes[k].place, sizeof chain->nodes[k].place, 1, f);
    srand(3);
    for (int b = 0, t = 0; b < n_blocks; b++) {
        const int n = b % 5 == 4 ? 1 + rand() % MOST_FRAMES : MOST_FRAMES; // some are not as the one before
        float x[CHANNELS][MOST_FRAMES], y[CHANNELS][MOST_FRAMES];
        const float *in[] = {x[0], x[1]};
        float *out[] = {y[0], y[1]};
        for (int k = 0; k < n; k++, t++)
            for (int c = 0; c < CHANNELS; c++)
                x[c][k] = 0.9f * sinf(0.11f * (float)(t * (1 + c))) + (float)rand() / (float)RAND_MAX - 0.5f;
        wt__chain_span(chain, 0, in, out, n);
        fwrite(&n, sizeof n, 1, f);
        for (int c = 0; c < CHANNELS; c++) fwrite(x[c], sizeof(float), (size_t)n, f);
        for (int c = 0; c < CHANNELS; c++) fwrite(y[c], sizeof(float), (size_t)n, f);
    }
    assert_int_equal(fclose(f), 0);
}

static int run(const char *format, const char *folder)
{
    char command[4096];
    snprintf(command, sizeof command, format, folder, folder, folder, folder);
    return system(command);
}

static char *slurp(const char *folder, const char *name)
{
    char path[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = test_slurp(path, &size);
    text[size] = 0; // it has room for that
    return text;
}

// The voice's text, compiled and played, with `words` in it replaced by `others` (NULL = none). Returns what
// ThreadSanitizer said, and in `said` what the program did; caller frees both.
static char *play_text(void **state, const char *words, const char *others, char **said)
{
    static const char begin[] = "#include \"cuda.h\"\n", end[] = "#include \"resident_main.h\"\n";
    char folder[512];
    wt_chain *chain = NULL;
    char path[1024];
    int n;
    if (access(OURS "/cuda.h", R_OK) || system("command -v g++ >/dev/null 2>&1")) {
        printf("skipped: no g++ or no %s\n", OURS);
        skip();
    }
    snprintf(folder, sizeof folder, "%s", test_path(state, "."));
    put_texts(folder);
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = CHANNELS}, &live_full_voice, &chain));
    char *text = wt__chain_cuda_text(chain, MOST_FRAMES, true);
    char *of_cpu = cpu_text(text), *changed = words ? replaced(of_cpu, words, others, &n) : strdup(of_cpu);
    assert_true(!words || n > 0);
    char *whole = calloc(1, strlen(changed) + sizeof begin + sizeof end);
    sprintf(whole, "%s%s%s", begin, changed, end);
    put_file(folder, "text.cc", whole);
    snprintf(path, sizeof path, "%s/state", folder);
    put_state(path, chain, 10);
    wt_chain_destroy(chain);
    free(text), free(of_cpu), free(changed), free(whole);
    if (run("g++ -std=c++17 -O1 -g -w -fsanitize=thread -pthread -I" OURS " -I%s -o %s/run %s/text.cc 2>%s/errors",
            folder))
        fail_msg("the text does not compile:\n%.2000s", slurp(folder, "errors"));
    (void)run("TSAN_OPTIONS=exitcode=0 %s/run %s/state >%s/said 2>%s/errors", folder);
    *said = slurp(folder, "said");
    return slurp(folder, "errors");
}

static void its_answers_are_the_chain_s_and_no_threads_race(void **state)
{
    char *said, *errors = play_text(state, NULL, NULL, &said);
    int n_blocks = 0;
    double db = 0;
    unsigned left = 0;
    if (strstr(errors, "unexpected memory mapping")) skip(); // a kernel whose addresses this sanitizer does not know
    if (strstr(errors, "ThreadSanitizer")) fail_msg("%.3000s", errors);
    if (sscanf(said, "%d blocks, %lf dB, left after %u", &n_blocks, &db, &left) != 3) fail_msg("%s%s", said, errors);
    assert_int_equal(n_blocks, 10);
    assert_int_equal(left, 10);
    if (db < 90) fail_msg("%.1f dB, want 90", db);
    free(said), free(errors);
}

/// ThreadSanitizer keeps four accesses of a place and misses a race now and then: on two busy processors in some 2 runs
/// of 5, so there are five.
static void a_barrier_that_is_missing_is_named(void **state)
{
    bool named = false;
    for (int k = 0; k < 5 && !named; k++) {
        char *said, *errors = play_text(state, "(a, memory, n)) __syncthreads();", "(a, memory, n));", &said);
        const bool works = !strstr(errors, "unexpected memory mapping");
        named = strstr(errors, "data race");
        free(said), free(errors);
        if (!works) skip();
    }
    assert_true(named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_answers_are_the_chain_s_and_no_threads_race),
        cmocka_unit_test(a_barrier_that_is_missing_is_named),
    };
    return cmocka_run_group_tests_name("resident text", tests, test_folder_create, test_folder_remove);
}
