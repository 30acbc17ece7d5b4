#include "support/cubin.h"
#include "support/testing.h"

#include "kernel_table.h"
#include "llm_kernel.h"
#include "spectrum_kernel.h"
#include "vocoder_kernel.h"
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

// ---- what a processor has room for

/// The architecture and the compiler with which rates are measured, and the points of a text without options.
enum { JUDGED = 90, JUDGED_NVRTC = 13000, POINTS = 2048 };

/// What kernels want whose bounds do not say it, because bounds change how they are compiled, or whose plans count on
/// it; and what they keep in local memory with bounds for several blocks: arrays that have places, or spills that cost
/// less than a block. Every other kernel that bounds its registers spills nothing.
static const struct wish {
    const char *kernels; ///< whose names begin with it
    int blocks;          ///< on a processor, by registers, as they are compiled without options; 0 = what bounds say
    int local_bytes;     ///< at most
    int (*plan)(int n);  ///< the blocks that plans of n points count on, in place of a number
} wishes[] = {
    {"vocoder_lock", .plan = wt__vocoder_blocks},        // the default time stretch: a third less with a block less
    {"vocoder_frames", .blocks = 4, .local_bytes = 256}, // of lines that have an end in the frame
    {"vocoder_follow", .blocks = 4},                     // librosa's stretch
    {"spectrum_stft", .plan = wt__spectrum_resident, .local_bytes = 56},
    {"spectrum_istft", .plan = wt__spectrum_resident, .local_bytes = 144},
    {"spectrum_mel", .blocks = 6, .local_bytes = 128},
    {"spectrum_product", .blocks = 3, .local_bytes = 32},
    {"griffin_lim_begin", .blocks = 6, .local_bytes = 64},
    {"griffin_lim_step", .plan = wt__spectrum_resident, .local_bytes = 160},
    {"griffin_lim_quarter", .plan = wt__spectrum_resident, .local_bytes = 160},
    {"hpss_tile", .blocks = 3, .local_bytes = 8},
    {"median_filter", .blocks = 8},
    {"cqt_octave", .blocks = 4},
    {"cqt_halve", .blocks = 4},
    {"yin", .blocks = 3},
    {"pyin_observe", .blocks = 3},
    {"tempo_power", .blocks = 5, .local_bytes = 536},
    {"wsola_walk", .blocks = 2, .local_bytes = 8},
    {"echo_filter", .blocks = 1, .local_bytes = 104},
    {"llm_quant", .blocks = WT_LLM_QUANT_BLOCKS},
    {"llm_place", .blocks = WT_LLM_PLACE_BLOCKS},
    {"llm_stream", .blocks = 2}, // one of a launch, and one of the next
    {"llm_matvec", .blocks = 4, .local_bytes = 64},
    {"llm_draw", .blocks = 1, .local_bytes = 96},
    {"matmul_tiles", .blocks = 2},
    {"nn_conv_f32_128", .blocks = 2, .local_bytes = 16},
    {"nn_conv_f32_64", .blocks = 4, .local_bytes = 16},
    {"nn_conv_any", .blocks = 4, .local_bytes = 16},
    {"nn_conv_16_64", .blocks = 3, .local_bytes = 16},
    {"nn_norm_wide", .blocks = 1, .local_bytes = 16},
};
enum { N_WISHES = sizeof wishes / sizeof *wishes };

/// The longest that fits.
static const struct wish *wish_of(const char *kernel)
{
    const struct wish *best = NULL;
    for (const struct wish *w = wishes; w < wishes + N_WISHES; w++)
        if (!strncmp(kernel, w->kernels, strlen(w->kernels)) && (!best || strlen(w->kernels) > strlen(best->kernels)))
            best = w;
    return best;
}

/// Registers for the largest block that may be launched, on every architecture: else the host has it launched with
/// fewer threads, or not at all.
static bool finds_room(const cubin_kernel *k, int architecture)
{
    if (cubin_blocks(k, k->threads) > 0) return true;
    print_error("sm_%d: %s: %d registers for each of %d threads, a processor has %d in all\n", architecture, k->name,
                k->registers, k->threads, CUBIN_REGISTERS);
    return false;
}

static bool is_as_wished(const cubin_kernel *k)
{
    const struct wish *wish = wish_of(k->name);
    const int own = !wish ? 0 : wish->plan ? wish->plan(POINTS) : wish->blocks;
    const int said = cubin_wanted(k), wanted = own > said ? own : said;
    const int most = wish ? wish->local_bytes : 0, there = cubin_blocks(k, k->threads);
    const bool bounded = wish || said > 1;
    if (there < wanted)
        print_error("%s: %d registers for each of %d threads leave %d blocks a processor, want %d\n", k->name,
                    k->registers, k->threads, there, wanted);
    if (bounded && k->local_bytes > most)
        print_error("%s: keeps %d bytes of a thread in local memory, want at most %d\n", k->name, k->local_bytes, most);
    return there >= wanted && (!bounded || k->local_bytes <= most);
}

/// With options, what decode of fp8, int8 and int4 is measured with, and its experts (models/llm/gpu_quant.c).
static const struct {
    const char *path, *options[4];
} measured[] = {
    {"kernels/llm/llm_quant.cu", {"-DWEIGHT=3", "-DGROUP=0", "-DSCALE=0", "-DEXPERTS=0"}},
    {"kernels/llm/llm_quant.cu", {"-DWEIGHT=3", "-DGROUP=0", "-DSCALE=0", "-DEXPERTS=1"}},
    {"kernels/llm/llm_quant.cu", {"-DWEIGHT=5", "-DGROUP=0", "-DSCALE=0", "-DEXPERTS=0"}},
    {"kernels/llm/llm_quant.cu", {"-DWEIGHT=7", "-DGROUP=128", "-DSCALE=100", "-DEXPERTS=0"}},
    {"kernels/llm/llm_quant.cu", {"-DWEIGHT=7", "-DGROUP=128", "-DSCALE=100", "-DEXPERTS=1"}},
};
enum { N_MEASURED = sizeof measured / sizeof *measured };

// ---- all of them, in as many processes as there are processors: NVRTC compiles one program at a time in each

typedef struct tally { ///< shared by the processes
    atomic_int next, n_failed, n_compiled, n_cached;
    atomic_int n_met[N_WISHES]; ///< kernels that have it
} tally;

static void judge(const wt_compiled *compiled, const char *path, int architecture, tally *t)
{
    cubin_kernel kernels[CUBIN_KERNELS];
    const int n = cubin_read(compiled->image, compiled->size_bytes, kernels);
    if (n < 1) {
        print_error("sm_%d: %s: no ELF file with kernels\n", architecture, path);
        t->n_failed++;
    }
    for (int k = 0; k < n; k++) {
        const bool judged = architecture == JUDGED && wt_nvrtc_version() == JUDGED_NVRTC;
        const struct wish *wish = judged ? wish_of(kernels[k].name) : NULL;
        if (wish) t->n_met[wish - wishes]++;
        if (!finds_room(&kernels[k], architecture) || (judged && !is_as_wished(&kernels[k]))) t->n_failed++;
    }
}

/// Of what a child has compiled, nothing but the counts is needed.
static void compile_one(const wt_module_config *config, int architecture, tally *t)
{
    wt_compiled compiled = {0};
    if (wt_kernel_compile(config, architecture, &compiled)) {
        print_error("sm_%d: %s\n", architecture, wt_last_error());
        t->n_failed++;
        return;
    }
    judge(&compiled, config->name, architecture, t);
    t->n_compiled++;
    t->n_cached += compiled.from_cache;
    free(compiled.image);
}

static void compile_some(tally *t)
{
    const int n = wt__n_kernel_texts * N_ARCHITECTURES;
    for (int k; (k = t->next++) < n + N_MEASURED;) {
        if (k >= n) {
            compile_one(&(wt_module_config){measured[k - n].path, .options = measured[k - n].options, .n_options = 4},
                        JUDGED, t);
            continue;
        }
        const wt_kernel_text *text = &wt__kernel_table[k / N_ARCHITECTURES];
        const int architecture = architectures[k % N_ARCHITECTURES];
        if (is_for(text, architecture)) compile_one(&(wt_module_config){.name = text->path}, architecture, t);
    }
}

/// A .cu that is specialised by macros gives them defaults, so that it compiles alone; text that is only included is
/// .cuh. Through the user's cache: a second run of the tests takes what the first one compiled. What is compiled is
/// judged in passing: a block less on a processor, or what is spilled for one more, is a loss that no result shows.
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
    for (int k = 0; k < N_WISHES && wt_nvrtc_version() == JUDGED_NVRTC; k++)
        if (!t->n_met[k]) fail_msg("no kernel is called %s", wishes[k].kernels);
    if (wt_nvrtc_version() != JUDGED_NVRTC)
        print_message("blocks and local memory are not judged: NVRTC is %d, not %d\n", wt_nvrtc_version(),
                      JUDGED_NVRTC);
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
