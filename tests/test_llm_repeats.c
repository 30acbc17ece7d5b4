// The same seed gives the same tokens: over runs, in one run (which a GPU takes from a recording) or a step at a time,
// alone or beside audio that is played at its real pace on the other partition.
#include "support/audio_files.h"
#include "support/live_check.h"
#include "support/live_device.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/llm.h>

enum { VOCAB = 128, PROMPT = 9, N = 60, BLOCK = 64, BESIDE = 150 };

static const int32_t prompt[PROMPT] = {3, 14, 15, 92, 65, 35, 89, 79, 32};
static const wt_sampler_config samplings[] = {
    {.temperature = 0},
    {.temperature = 1, .top_p = 0.95, .seed = 7},
    {.temperature = 0.8, .top_k = 40, .repetition_penalty = 1.2, .frequency_penalty = 0.3, .seed = 8},
};
enum { N_SAMPLINGS = sizeof samplings / sizeof *samplings };

typedef struct fixture {
    wt_device *device;
    wt_llm *llm;
    wt_layout *layout;
    wt_llm_session *session; ///< in the partition "llm"
    int32_t want[N_SAMPLINGS][N];
} fixture;

static fixture open_fixture(void **state)
{
    static llm_file file;
    fixture f = {0};
    if (group_backend == WT_BACKEND_CUDA && !wt_device_count()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    assert_ok(wt_device_open(&(wt_device_config){.backend = group_backend, .n_threads = 2}, &f.device));
    if (wt_device_get_info(f.device)->n_sms < 2) {
        wt_device_close(f.device);
        print_message("skipped: one processor cannot be shared out\n");
        skip();
    }
    llm_llama_add(&file, NULL, NULL, 5);
    llm_file_write(&file, test_path(state, "a.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    assert_ok(wt_llm_open(test_path(state, "a.safetensors"), &f.llm));
    f.layout = layout_of(f.device, &two_config);
    assert_ok(wt_llm_session_create(
        f.llm,
        &(wt_llm_session_config){
            .device = f.device, .partition = wt_layout_find(f.layout, "llm"), .n_positions = 128, .n_batch = 32},
        &f.session));
    return f;
}

static void close_fixture(fixture *f)
{
    wt_llm_session_destroy(f->session);
    wt_llm_close(f->llm);
    assert_ok(wt_layout_destroy(f->layout));
    wt_device_close(f->device);
}

static bool keep(void *user, const wt_llm_pick *pick)
{
    int32_t **next = user;
    *(*next)++ = pick->id;
    return true;
}

/// N tokens after the prompt, in one run or one by one.
static void answer(const fixture *f, const wt_sampler_config *sampling, bool in_one_run, int32_t *ids)
{
    wt_sampler *sampler;
    int32_t id = prompt[PROMPT - 1], *next = ids;
    assert_ok(wt_sampler_create(sampling, VOCAB, &sampler));
    wt_sampler_see(sampler, prompt, PROMPT);
    assert_ok(wt_llm_session_restore(f->session, (wt_llm_snapshot){0}));
    assert_ok(wt_llm_prefill(f->session, prompt, PROMPT - 1));
    const wt_llm_run_config run = {.n_tokens = N, .sampler = sampler, .on_token = keep, .user = &next};
    if (in_one_run) assert_ok(wt_llm_run(f->session, id, &run));
    for (int k = 0; k < N && !in_one_run; k++) {
        assert_ok(wt_llm_decode(f->session, id));
        assert_ok(wt_sampler_pick(sampler, wt_llm_logits(f->session), &id));
        ids[k] = id;
    }
    wt_sampler_destroy(sampler);
}

/// Every sampling both ways gives what it gave first.
static void assert_again(const fixture *f, const char *when)
{
    for (int k = 0; k < 2 * N_SAMPLINGS; k++) {
        int32_t ids[N];
        answer(f, &samplings[k / 2], k % 2, ids);
        for (int n = 0; n < N; n++)
            if (ids[n] != f->want[k / 2][n])
                fail_msg("%s: sampling %d%s: token %d is %d, want %d", when, k / 2, k % 2 ? " in one run" : "", n,
                         ids[n], f->want[k / 2][n]);
    }
}

// ---- audio

static struct {
    pthread_t thread;
    bool runs;
    atomic_bool quit;
    atomic_int n_blocks;
} player;

/// A block each 1.33 ms, as a callback has them.
static void *play(void *user)
{
    static float in[2][BLOCK], out[2][BLOCK];
    const float *const from[] = {in[0], in[1]};
    float *const to[] = {out[0], out[1]};
    for (int n = 0; n < BLOCK; n++) in[0][n] = in[1][n] = 0.01f * (float)(n % 32);
    for (int64_t next_ns = wt_clock_now_ns(NULL); !player.quit; next_ns += (int64_t)(BLOCK * 1e9 / LIVE_RATE)) {
        for (int64_t left; (left = next_ns - wt_clock_now_ns(NULL)) > 0;)
            nanosleep(&(struct timespec){.tv_nsec = left}, NULL);
        const wt_status late = wt_live_process(live_playing, from, to, BLOCK);
        (void)late; // which other tests judge
        player.n_blocks++;
    }
    return user;
}

static void start_audio(const fixture *f)
{
    wt_live_config config = live_config_on(live_on_gpu(f->device) ? f->device : NULL, WT_LIVE_AUTO, 2);
    if (config.device) config.partition = wt_layout_find(f->layout, "audio");
    live_playing = live_of(&config, &live_full_voice);
    player.quit = false;
    assert_int_equal(pthread_create(&player.thread, NULL, play, NULL), 0);
    player.runs = true;
    wait_for_path(live_playing, config.device ? WT_LIVE_RESIDENT : WT_LIVE_CPU);
}

static void stop_audio(void)
{
    player.quit = true;
    if (player.runs) pthread_join(player.thread, NULL);
    player.runs = false;
    finish_live(live_playing);
}

static void the_same_seed_gives_the_same_tokens(void **state)
{
    fixture f = open_fixture(state);
    for (int k = 0; k < N_SAMPLINGS; k++) answer(&f, &samplings[k], true, f.want[k]);
    assert_memory_not_equal(f.want[1], f.want[2], sizeof f.want[1]);
    for (int k = 0; k < 3; k++) assert_again(&f, "alone");
    start_audio(&f);
    int n_rounds = 0;
    for (const int before = player.n_blocks; player.n_blocks - before < BESIDE; n_rounds++)
        assert_again(&f, "beside audio");
    stop_audio();
    print_message("%d rounds beside audio\n", n_rounds);
    assert_again(&f, "after audio");
    close_fixture(&f);
}

static int clean(void **state)
{
    stop_audio(); // of a test that failed
    return test_folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_seed_gives_the_same_tokens, test_folder_create, clean)};
    return cmocka_run_group_tests_name("tokens on the CPU", tests, group_on_cpu, NULL) +
           cmocka_run_group_tests_name("tokens on a GPU", tests, group_on_cuda, NULL);
}
