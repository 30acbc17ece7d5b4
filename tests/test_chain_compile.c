// Every node type as CUDA for all architectures, without a GPU.
#include "support/cubin.h"
#include "support/node_check.h"
#include "support/testing.h"
#include "support/live_check.h"

#include "../dsp/chain/chain_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/kernel.h>

static const int architectures[] = {80, 90, 100, 120};

// One thread an architecture: NVRTC takes most of a minute for all of them.
typedef struct compilation {
    const char *text;
    int architecture;
    char error[2048];    // "" = it compiled
    cubin_kernel kernel; // its one
} compilation;

static void *compile_one(void *user)
{
    compilation *c = user;
    wt_compiled compiled = {0};
    if (wt_kernel_compile(&(wt_module_config){.name = "chain.cu", .source = c->text}, c->architecture, &compiled))
        snprintf(c->error, sizeof c->error, "%s", wt_last_error());
    else if (cubin_read(compiled.image, compiled.size_bytes, &c->kernel) != 1)
        snprintf(c->error, sizeof c->error, "no ELF file with one kernel");
    free(compiled.image);
    return NULL;
}

/// Every thread that the host wants finds registers: else a block has fewer, and takes longer (wt_live_stats).
static void compile(const wt_chain *chain, int resident_frames, bool in_shared)
{
    enum { N = sizeof architectures / sizeof *architectures };
    compilation all[N];
    pthread_t threads[N];
    char *text = wt__chain_cuda_text(chain, resident_frames, in_shared);
    for (int k = 0; k < N; k++) {
        all[k] = (compilation){.text = text, .architecture = architectures[k]};
        assert_int_equal(pthread_create(&threads[k], NULL, compile_one, &all[k]), 0);
    }
    for (int k = 0; k < N; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < N; k++)
        if (all[k].error[0]) fail_msg("sm_%d: %s", all[k].architecture, all[k].error);
    const int wanted = resident_frames ? wt__chain_cuda_threads(chain) : wt__chain_cuda_run_threads(chain);
    for (int k = 0; k < N; k++)
        if (cubin_blocks(&all[k].kernel, wanted) < 1)
            fail_msg("sm_%d: %s: %d registers for each of %d threads, a processor has %d in all", all[k].architecture,
                     all[k].kernel.name, all[k].kernel.registers, wanted, CUBIN_REGISTERS);
    free(text);
}

static void every_node_type_compiles(void **state)
{
    (void)state;
    if (!wt_nvrtc_version()) {
        printf("skipped: %s\n", wt_last_error());
        skip();
    }
    wt_node_desc nodes[64];
    int n = 0;
    for (int t = 0; t < wt_n_node_types && n < 64; t++) {
        if (wt_node_types[t]->flags & (WT_NODE_INTERNAL | WT_NODE_CUDA_ONLY)) continue;
        nodes[n] = (wt_node_desc){.type = wt_node_types[t]->name};
        nodes[n].settings = node_required(nodes[n].type);
        nodes[n].n_settings = nodes[n].settings != NULL;
        n++;
    }
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 2},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = n}, &chain));
    compile(chain, 0, false);
    wt_chain_destroy(chain);
}

// The kernel that stays has the same nodes' text in it; a voice chain is enough.
static void the_resident_kernel_compiles(void **state)
{
    (void)state;
    if (!wt_nvrtc_version()) {
        printf("skipped: %s\n", wt_last_error());
        skip();
    }
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 2}, &live_full_voice, &chain));
    compile(chain, 64, true);
    compile(chain, 64, false); // as for several streams, or what does not fit shared memory
    wt_chain_destroy(chain);
}

// 512 threads, and nodes that transform: of all chains it wants the most registers, and its memory fits no processor's.
static void so_does_that_of_an_analysis_of_eight_channels(void **state)
{
    static const wt_node_desc nodes[] = {{.type = "spectrum"}, {.type = "hpss"}, {.type = "cqt"}, {.type = "pitch"}};
    (void)state;
    if (!wt_nvrtc_version()) {
        printf("skipped: %s\n", wt_last_error());
        skip();
    }
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 8},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = sizeof nodes / sizeof *nodes}, &chain));
    compile(chain, 64, false);
    compile(chain, 0, false);
    wt_chain_destroy(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_resident_kernel_compiles),
        cmocka_unit_test(so_does_that_of_an_analysis_of_eight_channels),
        cmocka_unit_test(every_node_type_compiles),
    };
    return cmocka_run_group_tests_name("chain compile", tests, NULL, NULL);
}
