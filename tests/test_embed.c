#include "support/testing.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// The example of docs/embedding.md, which lies in docs/embed.c: that it compiles, and does what it says.
#define main embed_main
#include "../docs/embed.c"
#undef main

static const char preset_text[] = "name: embed\n"
                                  "nodes:\n"
                                  "  - {node: biquad, shape: highpass, frequency_hz: 200}\n"
                                  "  - {node: limiter, ceiling_db: -6}\n";

enum { RATE_HZ = 48000, N_FRAMES = 5000 };

// A tone of 1 kHz in two channels, longer than the limiter's look-ahead and no multiple of a block.
static void fill(float samples[2 * N_FRAMES])
{
    for (int n = 0; n < N_FRAMES; n++) {
        samples[n] = sinf(6.2831853f * 1000.0f / RATE_HZ * (float)n);
        samples[N_FRAMES + n] = -0.5f * samples[n];
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void its_file_is_the_chain_in_one_call(void **state)
{
    (void)state;
    char folder[] = "/tmp/warptone-embed-XXXXXX", yaml[64], in[64], out[64];
    assert_non_null(mkdtemp(folder));
    snprintf(yaml, sizeof yaml, "%s/embed.yaml", folder);
    snprintf(in, sizeof in, "%s/in.wav", folder);
    snprintf(out, sizeof out, "%s/out.wav", folder);
    static float tone[2 * N_FRAMES], wanted[2 * N_FRAMES];
    fill(tone);
    write_text(yaml, preset_text);
    assert_int_equal(save(in, tone, 2, &(wt_audio){.rate_hz = RATE_HZ, .n_frames = N_FRAMES}), WT_OK);
    assert_int_equal(embed_main(4, (char *[]){"embed", yaml, in, out, NULL}), 0);

    wt_preset *preset = NULL;
    wt_chain *chain = NULL;
    wt_audio got;
    assert_int_equal(wt_preset_load(yaml, &preset), WT_OK);
    assert_int_equal(wt_preset_build(preset, &(wt_chain_config){.rate_hz = RATE_HZ, .channels = 2}, &chain), WT_OK);
    assert_int_equal(wt_chain_process(chain, (const float *[]){tone, tone + N_FRAMES},
                                      (float *[]){wanted, wanted + N_FRAMES}, N_FRAMES), WT_OK);
    assert_int_equal(wt_audio_load(out, 0, &got), WT_OK);
    assert_int_equal(got.n_frames, N_FRAMES);
    assert_int_equal(got.channels, 2);
    for (int k = 0; k < 2 * N_FRAMES; k++) // a chain's output does not depend on its blocks (a reader gives -0 as 0)
        if (got.samples[k] != wanted[k]) fail_msg("sample %d is %.9g, want %.9g", k, got.samples[k], wanted[k]);
    wt_audio_free(&got);
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    unlink(yaml);
    unlink(in);
    unlink(out);
    rmdir(folder);
}

static void its_band_is_that_of_the_tone(void **state)
{
    (void)state;
    static float tone[2 * N_FRAMES];
    static double bank[N_MELS][2048 / 2 + 1];
    fill(tone);
    const int bin = 1000 * 2048 / RATE_HZ;
    assert_int_equal(wt_mel_bank_fill(&(wt_mel_bank_config){.rate_hz = RATE_HZ, .n_mels = N_MELS}, *bank), WT_OK);
    int wanted = 0, got = -1;
    for (int k = 1; k < N_MELS; k++)
        if (bank[k][bin] + bank[k][bin + 1] > bank[wanted][bin] + bank[wanted][bin + 1]) wanted = k;
    char device_name[128] = "";
    assert_int_equal(find_loudest_band(tone, N_FRAMES, RATE_HZ, &got, device_name), WT_OK);
    assert_int_equal(got, wanted);
    assert_true(*device_name);
}

static void what_is_missing_ends_it(void **state)
{
    (void)state;
    assert_int_equal(embed_main(1, (char *[]){"embed", NULL}), 2);
    assert_int_equal(embed_main(4, (char *[]){"embed", "mono-fold", "/nowhere/in.wav", "/nowhere/out.wav", NULL}), 1);
}

// ---- first calls

enum { N_CALLERS = 8, N_PROCESSES = 10 };

typedef struct caller {
    pthread_barrier_t *begin;
    int n_devices, nvrtc, cublaslt;
    wt_status opened;
    char name[128];
} caller;

static void *call_first(void *user)
{
    caller *c = user;
    wt_device *device;
    pthread_barrier_wait(c->begin);
    c->nvrtc = wt_nvrtc_version();
    c->cublaslt = wt_cublaslt_version();
    c->n_devices = wt_device_count();
    c->opened = wt_device_open(NULL, &device);
    snprintf(c->name, sizeof c->name, "%s", c->opened ? wt_last_error() : wt_device_get_info(device)->name);
    wt_device_close(device);
    return NULL;
}

/// In a process that has called nothing yet: 0 when all threads were told the same.
static int call_at_once(void)
{
    pthread_t threads[N_CALLERS];
    pthread_barrier_t begin;
    caller callers[N_CALLERS];
    memset(callers, 0, sizeof callers);
    pthread_barrier_init(&begin, NULL, N_CALLERS);
    for (int k = 0; k < N_CALLERS; k++) {
        callers[k].begin = &begin;
        if (pthread_create(&threads[k], NULL, call_first, &callers[k])) return 2;
    }
    for (int k = 0; k < N_CALLERS; k++) pthread_join(threads[k], NULL);
    for (int k = 1; k < N_CALLERS; k++)
        if (memcmp(&callers[k], &callers[0], sizeof callers[0])) return 1;
    return callers[0].opened ? 3 : 0;
}

// The first test of the program: what it forks has made no call before.
static void first_calls_of_several_threads_need_no_order(void **state)
{
    (void)state;
    for (int k = 0; k < N_PROCESSES; k++) {
        int status;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            signal(SIGSEGV, SIG_DFL); // the test's handler would go on with the next test, in the child
            _exit(call_at_once());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_calls_of_several_threads_need_no_order),
        cmocka_unit_test(its_file_is_the_chain_in_one_call),
        cmocka_unit_test(its_band_is_that_of_the_tone),
        cmocka_unit_test(what_is_missing_ends_it),
    };
    return cmocka_run_group_tests_name("embed", tests, NULL, NULL);
}
