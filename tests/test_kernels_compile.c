#include "support/testing.h"

#include "kernel_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/kernel.h>

static const int architectures[] = {80, 90, 100, 120};

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

/// A .cu that is specialised by macros gives them defaults, so that it compiles alone; text that is only included is
/// .cuh. Through the user's cache: a second run of the tests takes what the first one compiled.
static void every_kernel_compiles_for_every_architecture(void **state)
{
    (void)state;
    if (!wt_nvrtc_version()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    int n_failed = 0, n_compiled = 0, n_cached = 0;
    for (int k = 0; k < wt__n_kernel_texts; k++)
        for (int a = 0; a < 4; a++) {
            if (!is_for(&wt__kernel_table[k], architectures[a])) continue;
            wt_compiled compiled;
            if (wt_kernel_compile(&(wt_module_config){.name = wt__kernel_table[k].path}, architectures[a], &compiled)) {
                print_error("sm_%d: %s\n", architectures[a], wt_last_error());
                n_failed++;
                continue;
            }
            assert_memory_equal(compiled.image,
                                "\x7f"
                                "ELF",
                                4);
            n_compiled++;
            n_cached += compiled.from_cache;
            free(compiled.image);
        }
    print_message("%d compilations, %d of them from the cache\n", n_compiled, n_cached);
    assert_int_equal(n_failed, 0);
}

static void a_text_of_one_architecture_is_refused_for_others(void **state)
{
    (void)state;
    int n = 0;
    for (int k = 0; k < wt__n_kernel_texts; k++)
        for (int a = 0; a < 4; a++) {
            const wt_kernel_text *text = &wt__kernel_table[k];
            if (!is_program(text->path) || is_for(text, architectures[a])) continue;
            wt_compiled compiled;
            assert_int_equal(wt_kernel_compile(&(wt_module_config){.name = text->path}, architectures[a], &compiled),
                             WT_ERR_UNSUPPORTED);
            assert_null(compiled.image);
            n++;
        }
    assert_int_equal(n, 9); // matmul_wgmma.cu, llm_flash_wgmma.cu, nn_attend_wgmma.cu
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
    for (int a = 0; a < 4; a++) {
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
