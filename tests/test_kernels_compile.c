#include "support/testing.h"

#include "kernel_table.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/kernel.h>

static const int architectures[] = {80, 90, 100, 120};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

static bool is_program(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && !strcmp(path + length - 3, ".cu");
}

static bool is_for(const wt_kernel_text *text, int architecture)
{
    return is_program(text->path) && (!text->only || atoi(text->only) == architecture);
}

static void the_table_is_sorted_and_whole(void **state)
{
    (void)state;
    for (int k = 0; k < wt__n_kernel_texts; k++) {
        assert_int_equal(strncmp(wt__kernel_table[k].path, "kernels/", 8), 0);
        assert_true(strlen(wt__kernel_table[k].text) > 0);
        if (k) assert_true(strcmp(wt__kernel_table[k - 1].path, wt__kernel_table[k].path) < 0);
    }
}

// ---- all of them, in as many processes as there are processors: NVRTC compiles one program at a time in each

typedef struct tally { ///< shared by the processes
    atomic_int next, n_failed, n_compiled, n_cached;
} tally;

/// Of what a child has compiled, nothing but the counts is needed.
static void compile_one(const wt_kernel_text *text, int architecture, tally *t)
{
    wt_compiled compiled = {0};
    if (wt_kernel_compile(&(wt_module_config){.name = text->path}, architecture, &compiled)) {
        print_error("sm_%d: %s\n", architecture, wt_last_error());
        t->n_failed++;
        return;
    }
    if (memcmp(compiled.image, "\177ELF", 4)) {
        print_error("sm_%d: %s: no ELF file\n", architecture, text->path);
        t->n_failed++;
    }
    t->n_compiled++;
    t->n_cached += compiled.from_cache;
    free(compiled.image);
}

static void compile_some(tally *t)
{
    const int n = wt__n_kernel_texts * N_ARCHITECTURES;
    for (int k; (k = t->next++) < n;) {
        const wt_kernel_text *text = &wt__kernel_table[k / N_ARCHITECTURES];
        const int architecture = architectures[k % N_ARCHITECTURES];
        if (is_for(text, architecture)) compile_one(text, architecture, t);
    }
}

/// A .cu that is specialised by macros gives them defaults, so that it compiles alone; text that is only included is
/// .cuh. Through the user's cache: a second run of the tests takes what the first one compiled.
static void every_kernel_compiles_for_every_architecture(void **state)
{
    (void)state;
    if (!wt_nvrtc_version()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const long n_processes = sysconf(_SC_NPROCESSORS_ONLN);
    int n_ended = 0, n_well = 0, result;
    assert_true(t != MAP_FAILED);
    fflush(NULL);
    for (long k = 0; k < n_processes; k++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child) continue;
        compile_some(t);
        _exit(0);
    }
    for (; wait(&result) > 0; n_ended++) n_well += WIFEXITED(result) && !WEXITSTATUS(result);
    print_message("%d compilations, %d of them from the cache\n", t->n_compiled, t->n_cached);
    assert_int_equal(n_ended, n_processes);
    assert_int_equal(n_well, n_processes);
    assert_int_equal(t->n_failed, 0);
    assert_true(t->n_compiled > wt__n_kernel_texts);
    munmap(t, sizeof *t);
}

static void a_text_of_one_architecture_is_refused_for_others(void **state)
{
    (void)state;
    int n = 0;
    for (int k = 0; k < wt__n_kernel_texts; k++)
        for (int a = 0; a < N_ARCHITECTURES; a++) {
            const wt_kernel_text *text = &wt__kernel_table[k];
            if (!is_program(text->path) || is_for(text, architectures[a])) continue;
            wt_compiled compiled;
            assert_int_equal(wt_kernel_compile(&(wt_module_config){.name = text->path}, architectures[a], &compiled),
                             WT_ERR_UNSUPPORTED);
            assert_null(compiled.image);
            n++;
        }
    assert_int_equal(n, 12); // matmul_wgmma.cu, llm_flash_wgmma.cu, nn_attend_wgmma.cu, matmul_fp4.cu
}

/// What every kernel relies on, also while kernels/ holds none: the defaults of the engine's options.
static void plain_device_code_needs_no_qualifiers(void **state)
{
    (void)state;
    if (!wt_nvrtc_version()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    const wt_module_config config = {.name = "plain.cu",
                                     .source = "float twice(float x) { return 2 * x; }\n"
                                               "extern \"C\" __global__ void f(float *x) { *x = twice(*x); }\n",
                                     .no_cache = true};
    for (int a = 0; a < N_ARCHITECTURES; a++) {
        wt_compiled compiled;
        assert_ok(wt_kernel_compile(&config, architectures[a], &compiled));
        free(compiled.image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sorted_and_whole),
        cmocka_unit_test(every_kernel_compiles_for_every_architecture),
        cmocka_unit_test(a_text_of_one_architecture_is_refused_for_others),
        cmocka_unit_test(plain_device_code_needs_no_qualifiers),
    };
    return cmocka_run_group_tests_name("kernels compile", tests, NULL, NULL);
}
