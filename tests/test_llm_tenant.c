// A language model beside others on one device: borrowed processors, memory quota, pacing, stopping, and what must not
// happen while audio runs. The model is made up (support/llm_files.h); tokens are compared with those it gives alone.
#include "../engine/device_cuda.h"
#include "support/audio_files.h"
#include "support/device_check.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/generate.h>

enum { VOCAB = 128, PROMPT = 9, MOST = 400 };

typedef struct fixture {
    wt_device *device;
    wt_llm *llm;
    wt_layout *layout;
    wt_partition *llms, *lender; ///< of the layout: "llm" and the first
} fixture;

static const int32_t prompt[PROMPT] = {3, 14, 15, 92, 65, 35, 89, 79, 32};

static fixture open_fixture(void **state, const wt_layout_config *layout)
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
    if (!layout) return f;
    f.layout = layout_of(f.device, layout);
    f.llms = wt_layout_find(f.layout, "llm");
    f.lender = wt_layout_at(f.layout, 0);
    return f;
}

static void close_fixture(fixture *f)
{
    wt_llm_close(f->llm);
    assert_ok(wt_layout_destroy(f->layout));
    wt_device_close(f->device);
}

static wt_llm_session *session_of(const fixture *f, wt_partition *partition)
{
    wt_llm_session *session = NULL;
    assert_ok(wt_llm_session_create(
        f->llm,
        &(wt_llm_session_config){.device = f->device, .partition = partition, .n_positions = MOST, .n_batch = 32},
        &session));
    return session;
}

static wt_llm_usage usage_of(const wt_llm_session *session)
{
    wt_llm_usage usage;
    wt_llm_session_get_usage(session, &usage);
    return usage;
}

typedef struct listener {
    int32_t ids[MOST];
    int n, stop_at; ///< tokens; 0 = none
    const wt_llm_session *session;
    wt_partition *lender; ///< idle at first; needs its processors after `back_at` tokens, until `idle_at`
    int back_at, idle_at;
    wt_llm_usage at_back, before; ///< after `back_at` tokens, and when the last token came
} listener;

static bool listen(void *user, const wt_llm_pick *pick)
{
    listener *l = user;
    l->ids[l->n++] = pick->id;
    if (l->session) l->before = usage_of(l->session);
    if (l->lender && l->n == l->back_at) {
        l->at_back = l->before;
        assert_ok(wt_partition_idle(l->lender, false));
    }
    if (l->lender && l->n == l->idle_at) assert_ok(wt_partition_idle(l->lender, true));
    return l->n != l->stop_at;
}

/// The first n greedy tokens after the prompt.
static void run(wt_llm_session *session, int n, listener *l)
{
    l->session = session;
    assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
    assert_ok(wt_llm_prefill(session, prompt, PROMPT - 1));
    assert_ok(
        wt_llm_run(session, prompt[PROMPT - 1], &(wt_llm_run_config){.n_tokens = n, .on_token = listen, .user = l}));
}

/// What the model says without a partition.
static void run_alone(const fixture *f, int n, listener *l)
{
    wt_llm_session *alone = session_of(f, NULL);
    run(alone, n, l);
    wt_llm_session_destroy(alone);
}

// ---- processors

/// The host has a step's choice a little before the step has ended.
static void wait_until_back(wt_partition *lender)
{
    for (int k = 0; k < 1000 && info_of(lender).lent; k++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_false(info_of(lender).lent);
}

/// A lender's processors are used while it is idle, from the next step on, and are back with the end of the step.
static void idle_processors_are_borrowed_step_by_step(void **state)
{
    enum { N = 40, BACK = 8, IDLE = 20 };
    fixture f = open_fixture(state, &lending_config);
    listener alone = {.n = 0}, l = {.lender = f.lender, .back_at = BACK, .idle_at = IDLE};
    run_alone(&f, N, &alone);
    wt_llm_session *session = session_of(&f, f.llms);
    assert_int_equal(usage_of(session).n_steps, 0);
    assert_ok(wt_partition_idle(f.lender, true));
    run(session, N, &l);
    assert_memory_equal(l.ids, alone.ids, sizeof *l.ids * N);
    const wt_llm_usage usage = usage_of(session);
    assert_int_equal(l.at_back.n_wide_steps, 1 + BACK); // the prompt, and each step until then: none is ahead
    assert_true(usage.n_wide_steps >=
                1 + BACK + N - IDLE - 1); // on a GPU one step may have been ahead when it went idle
    assert_true(usage.n_wide_steps <= 1 + BACK + N - IDLE);
    assert_int_equal(usage.n_steps, 1 + N);
    wait_until_back(f.lender);
    // a prompt in three batches, each of them a step, and one by one
    assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
    assert_ok(wt_llm_prefill(session, alone.ids, 80 - N));
    assert_ok(wt_llm_prefill(session, alone.ids, 80 - N));
    assert_int_equal(usage_of(session).n_wide_steps - usage.n_wide_steps, 4);
    assert_ok(wt_partition_idle(f.lender, false));
    assert_ok(wt_llm_decode(session, 1));
    assert_int_equal(usage_of(session).n_wide_steps - usage.n_wide_steps, 4);
    wt_llm_session_destroy(session);
    close_fixture(&f);
}

typedef struct runner {
    pthread_t thread;
    const fixture *f;
    wt_llm_session *session;
    listener l;
} runner;

static void *run_it(void *user)
{
    runner *r = user;
    run(r->session, 60, &r->l);
    return NULL;
}

/// Sessions of one partition that borrows, each with a thread of its own.
static void sessions_share_what_is_borrowed(void **state)
{
    enum { SESSIONS = 3 };
    static runner runners[SESSIONS];
    fixture f = open_fixture(state, &lending_config);
    listener alone = {.n = 0};
    run_alone(&f, 60, &alone);
    assert_ok(wt_partition_idle(f.lender, true));
    for (int k = 0; k < SESSIONS; k++) runners[k] = (runner){.session = session_of(&f, f.llms)};
    for (int k = 0; k < SESSIONS; k++)
        assert_int_equal(pthread_create(&runners[k].thread, NULL, run_it, &runners[k]), 0);
    for (int k = 0; k < SESSIONS; k++) {
        pthread_join(runners[k].thread, NULL);
        assert_memory_equal(runners[k].l.ids, alone.ids, sizeof *alone.ids * 60);
        assert_int_equal(usage_of(runners[k].session).n_wide_steps, 61);
        wt_llm_session_destroy(runners[k].session);
    }
    close_fixture(&f);
}

// ---- memory

/// Whatever does not fit is refused in a sentence, and nothing of the quota stays taken.
static void the_memory_quota_holds(void **state)
{
    static const size_t quotas[] = {1 << 12, 1 << 18, 1 << 20, 4 << 20, 34 << 20, 48 << 20, 1024u << 20};
    enum { N = sizeof quotas / sizeof *quotas };
    int n_refused = 0, n_made = 0;
    for (int k = 0; k < N; k++) {
        const wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.1},
                                           {.name = "llm", .memory_quota_bytes = quotas[k]}};
        fixture f = open_fixture(state, &(wt_layout_config){.partitions = two, .n_partitions = 2});
        wt_llm_session *session;
        const wt_llm_session_config config = {
            .device = f.device, .partition = f.llms, .n_positions = MOST, .n_batch = 32};
        wt_status status = wt_llm_session_create(f.llm, &config, &session);
        if (status) {
            assert_int_equal(status, WT_ERR_QUOTA);
            assert_null(session);
            n_refused++;
        } else {
            const wt_partition_info info = info_of(f.llms);
            assert_true(info.memory_used_bytes > 0 && info.memory_used_bytes <= quotas[k]);
            listener l = {.n = 0};
            run(session, 20, &l);
            n_made++;
        }
        wt_llm_session_destroy(session);
        assert_int_equal(info_of(f.llms).memory_used_bytes, 0);
        assert_int_equal(info_of(f.llms).n_streams, 0);
        close_fixture(&f);
    }
    print_message("%d quotas are too small, %d are not\n", n_refused, n_made);
    assert_true(n_refused >= 1 && n_made >= 1);
}

// ---- time

/// Steps of a partition with a tenth of the time wait for nine times what they took, but for the first millisecond.
static void the_share_of_time_holds(void **state)
{
    enum { N = 300 };
    const double share = 0.1, burst_s = 1e-3;
    const wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.1},
                                       {.name = "llm", .bandwidth_share = share}};
    fixture f = open_fixture(state, &(wt_layout_config){.partitions = two, .n_partitions = 2});
    listener alone = {.n = 0}, l = {.n = 0};
    run_alone(&f, N, &alone);
    assert_true(alone.before.paced_s == 0 && alone.before.waited_s == 0);
    wt_llm_session *session = session_of(&f, f.llms);
    const int64_t begin = wt_clock_now_ns(NULL);
    run(session, N, &l);
    const double seconds = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
    assert_memory_equal(l.ids, alone.ids, sizeof *l.ids * N);
    const wt_llm_usage usage = usage_of(session);
    const double owed_s = (usage.paced_s - burst_s) / share; // the last step's is not paid yet: at most a tenth of all
    print_message("%.4f s of steps in %.4f s, %.4f s of them waiting\n", usage.paced_s, seconds, usage.waited_s);
    assert_true(usage.paced_s > 2 * burst_s);
    assert_true(usage.waited_s > 0 && usage.waited_s < seconds);
    assert_true(seconds > 0.8 * owed_s);
    wt_llm_session_destroy(session);
    close_fixture(&f);
}

/// A run that is told to stop has at most the step under way to wait for, and goes on from there.
static void a_run_stops_within_a_step(void **state)
{
    enum { N = 60, STOP = 17 };
    fixture f = open_fixture(state, &two_config);
    listener alone = {.n = 0}, l = {.stop_at = STOP};
    run_alone(&f, N, &alone);
    wt_llm_session *session = session_of(&f, f.llms);
    run(session, N, &l);
    assert_int_equal(l.n, STOP);
    assert_true(usage_of(session).n_steps <= 1 + STOP + 1);
    assert_int_equal(wt_llm_position(session), PROMPT + STOP - 1);
    l.stop_at = 0;
    assert_ok(wt_llm_run(session, l.ids[STOP - 1],
                         &(wt_llm_run_config){.n_tokens = N - STOP, .on_token = listen, .user = &l}));
    assert_memory_equal(l.ids, alone.ids, sizeof *l.ids * N);
    wt_llm_session_destroy(session);
    close_fixture(&f);
}

enum { PAUSE = 11 };

typedef struct talk {
    wt_generator *generator;
    atomic_int n;
    int32_t ids[MOST];
    int n_after_pause;
} talk;

static bool tell(void *user, const wt_generated *token)
{
    talk *t = user;
    if (token->id < 0) return true;
    t->ids[t->n] = token->id;
    if (++t->n == PAUSE) wt_generator_pause(t->generator, true);
    return true;
}

static void *resume(void *user)
{
    talk *t = user;
    while (t->n < PAUSE) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    t->n_after_pause = t->n;
    wt_generator_pause(t->generator, false);
    return NULL;
}

/// No token comes between a pause and its end, and none is lost.
static void a_pause_begins_with_the_step(void **state)
{
    enum { N = 40 };
    fixture f = open_fixture(state, &two_config);
    listener alone = {.n = 0};
    talk t = {.n = 0};
    wt_sampler *sampler;
    wt_generation report;
    pthread_t thread;
    run_alone(&f, N, &alone);
    wt_llm_session *session = session_of(&f, f.llms);
    assert_ok(wt_sampler_create(&(wt_sampler_config){.temperature = 0}, VOCAB, &sampler));
    assert_ok(wt_generator_create(&(wt_generator_config){.session = session,
                                                         .sampler = sampler,
                                                         .n_positions = MOST,
                                                         .max_tokens = N,
                                                         .ignore_eos = true,
                                                         .on_token = tell,
                                                         .user = &t},
                                  &t.generator));
    assert_int_equal(pthread_create(&thread, NULL, resume, &t), 0);
    const wt_status status = wt_generator_run(t.generator, prompt, PROMPT, &report);
    pthread_join(thread, NULL);
    assert_ok(status);
    assert_int_equal(t.n_after_pause, PAUSE);
    assert_int_equal(report.n_tokens, N);
    assert_memory_equal(t.ids, alone.ids, sizeof *t.ids * N);
    wt_generator_destroy(t.generator);
    wt_sampler_destroy(sampler);
    wt_llm_session_destroy(session);
    close_fixture(&f);
}

// ---- other shares

/// lending_config's partitions of other sizes.
static const wt_partition_config less[] = {
    {.name = "speech", .tier = WT_TIER_GUARANTEED, .sm_share = 0.25, .lends = true},
    {.name = "llm", .borrows = true},
};

/// A resize moves the streams; a session goes on, also in a finer cut and back, and what it had recorded on the
/// processors of before it records anew.
static void a_session_follows_a_resize(void **state)
{
    enum { N = 30, GUESSES = 5, ROUNDS = 4 };
    static const wt_layout_config other = {.partitions = less, .n_partitions = 2},
                                  finer = {.partitions = less, .n_partitions = 2, .fine = true};
    const wt_layout_config *const layouts[ROUNDS] = {&lending_config, &other, &finer, &lending_config};
    fixture f = open_fixture(state, &lending_config);
    listener alone = {.n = 0};
    run_alone(&f, N, &alone);
    wt_llm_session *session = session_of(&f, f.llms);
    for (int round = 0; round < ROUNDS; round++) {
        listener l = {.n = 0};
        int32_t next[GUESSES];
        assert_ok(wt_device_synchronize(f.device));
        if (round) assert_ok(wt_layout_resize(f.layout, layouts[round]));
        assert_int_equal(info_of(f.llms).generation, 1 + round);
        assert_ok(wt_partition_idle(f.lender, round == ROUNDS - 1));
        run(session, N, &l);
        assert_memory_equal(l.ids, alone.ids, sizeof *l.ids * N);
        for (int times = 0; times < 2; times++) { // the second is recorded
            assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){PROMPT, 0}));
            assert_ok(wt_llm_verify_greedy(session, alone.ids, GUESSES, next, NULL));
            assert_memory_equal(next, alone.ids + 1, sizeof next);
        }
    }
    assert_true(usage_of(session).n_wide_steps > N); // those of the last round
    wt_llm_session_destroy(session);
    assert_ok(wt_partition_idle(f.lender, false));
    close_fixture(&f);
}

// ---- beside audio

typedef struct late {
    const fixture *f;
    wt_llm_session *session;
} late;

static wt_status open_late(void *user)
{
    late *l = user;
    const wt_llm_session_config config = {
        .device = l->f->device, .partition = l->f->llms, .n_positions = MOST, .n_batch = 32};
    return wt_llm_session_create(l->f->llm, &config, &l->session);
}

static uint64_t refused(const wt_device *device)
{
    wt_arm_counts counts;
    wt_arm_stats(device, &counts);
    return counts.n_refused;
}

/// A session that was made in another layout wants a step before the device is armed.
static void resize(const fixture *f, wt_llm_session *session, const wt_layout_config *layout)
{
    assert_ok(wt_device_synchronize(f->device));
    assert_ok(wt_layout_resize(f->layout, layout));
    assert_ok(wt_device_arm(f->device));
    if (group_backend == WT_BACKEND_CUDA) {
        assert_int_equal(wt_llm_decode(session, 1), WT_ERR_ARMED);
        assert_non_null(strstr(wt_last_error(), "llm: partition llm was resized"));
    }
    assert_ok(wt_device_disarm(f->device));
    assert_ok(wt_llm_decode(session, 1));
}

/// Everything a session may be asked for, while the device is armed: prompts of all lengths, steps, guesses, steps of
/// several sequences. A session that comes late is refused and made in a quiesce.
static void ask_an_armed_device(void **state, const wt_layout_config *resized)
{
    enum { N = 30, SEQUENCES = 5 };
    fixture f = open_fixture(state, &lending_config);
    listener alone = {.n = 0}, l = {.lender = f.lender, .back_at = N / 2, .idle_at = MOST};
    int32_t ids[MOST], best[SEQUENCES];
    static float logits[16 * VOCAB];
    late second = {.f = &f};
    wt_llm_session *session = NULL;
    run_alone(&f, N, &alone);
    assert_ok(wt_llm_session_create(
        f.llm,
        &(wt_llm_session_config){
            .device = f.device, .partition = f.llms, .n_positions = MOST, .n_batch = 150, .n_sequences = SEQUENCES},
        &session));
    for (int k = 0; k < MOST; k++) ids[k] = k * 37 % VOCAB;
    if (resized) resize(&f, session, resized);
    assert_ok(wt_device_arm(f.device));
    const uint64_t before = refused(f.device);
    for (int n = 1; n <= 310; n += n < 40 ? 1 : 27) {
        assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
        assert_ok(wt_llm_prefill(session, ids, n));
    }
    for (int n = 1; n <= 16; n++) {
        assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){1, 0}));
        assert_ok(wt_llm_verify(session, ids, n, logits));
    }
    assert_ok(wt_llm_draft(session, 1, 1));
    assert_ok(wt_partition_idle(f.lender, true));
    run(session, N, &l);
    assert_memory_equal(l.ids, alone.ids, sizeof *l.ids * N);
    for (int n = 1; n <= SEQUENCES; n++) {
        wt_llm_turn turns[SEQUENCES];
        for (int q = 0; q < n; q++) turns[q] = (wt_llm_turn){.sequence = q, .id = ids[q]};
        assert_ok(wt_llm_step(session, turns, n, best, NULL));
    }
    assert_int_equal(refused(f.device), before);
    const wt_status status = open_late(&second);
    if (group_backend == WT_BACKEND_CUDA) { // on the CPU nothing of it is forbidden
        assert_int_equal(status, WT_ERR_ARMED);
        assert_null(second.session);
        assert_ok(wt_quiesce(f.device, open_late, &second, 0));
    }
    listener again = {.n = 0};
    run(second.session, N, &again);
    assert_memory_equal(again.ids, alone.ids, sizeof *again.ids * N);
    wt_llm_session_destroy(second.session);
    wt_llm_session_destroy(session);
    assert_ok(wt_device_disarm(f.device));
    close_fixture(&f);
}

static void an_armed_device_refuses_nothing_a_session_needs(void **state) { ask_an_armed_device(state, NULL); }

static void an_armed_device_refuses_nothing_after_a_resize_and_a_step(void **state)
{
    const wt_layout_config config = {.partitions = less, .n_partitions = 2, .fine = true};
    ask_an_armed_device(state, &config);
}

/// Streams of the primary context that exist, and what was launched on them.
static struct {
    CUresult (*create)(CUstream *, unsigned int, int);
    CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                       unsigned int, CUstream, void **, void **);
    CUresult (*launch_ex)(const CUlaunchConfig *, CUfunction, void **, void **);
    CUresult (*launch_graph)(CUgraphExec, CUstream);
    CUstream streams[64];
    int n_streams, n_launches, n_wrong;
} primary;

static void note_launch(CUstream stream)
{
    bool wrong = !stream;
    for (int k = 0; k < primary.n_streams; k++) wrong |= primary.streams[k] == stream;
    primary.n_launches++;
    primary.n_wrong += wrong;
}

static CUresult create_noted(CUstream *stream, unsigned int flags, int priority)
{
    const CUresult result = primary.create(stream, flags, priority);
    if (!result && primary.n_streams < 64) primary.streams[primary.n_streams++] = *stream;
    return result;
}

static CUresult launch_noted(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                             unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
                             void **extra)
{
    note_launch(stream);
    return primary.launch(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static CUresult launch_ex_noted(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    note_launch(config->hStream);
    return primary.launch_ex(config, function, params, extra);
}

static CUresult launch_graph_noted(CUgraphExec graph, CUstream stream)
{
    note_launch(stream);
    return primary.launch_graph(graph, stream);
}

/// Loading and running, with the driver's entries for streams and launches watched. (What a library launches does not
/// come through them; it gets the partition's streams.)
static void nothing_is_launched_in_the_primary_context(void **state)
{
    fixture f = open_fixture(state, &two_config);
    if (group_backend == WT_BACKEND_CPU) {
        close_fixture(&f);
        skip();
    }
    wt__cuda *cuda = (wt__cuda *)wt__cuda_device_of(f.device)->cuda;
    const wt__cuda real = *cuda;
    primary.create = real.StreamCreateWithPriority;
    primary.launch = real.LaunchKernel;
    primary.launch_ex = real.LaunchKernelEx;
    primary.launch_graph = real.GraphLaunch;
    cuda->StreamCreateWithPriority = create_noted;
    cuda->LaunchKernel = launch_noted;
    if (real.LaunchKernelEx) cuda->LaunchKernelEx = launch_ex_noted;
    cuda->GraphLaunch = launch_graph_noted;
    wt_llm_session *session = session_of(&f, f.llms);
    listener l = {.n = 0};
    run(session, 30, &l);
    wt_llm_session_destroy(session);
    *cuda = real;
    print_message("%d launches, %d of them in the primary context, which got %d streams\n", primary.n_launches,
                  primary.n_wrong, primary.n_streams);
    assert_true(primary.n_launches > 30);
    assert_int_equal(primary.n_wrong, 0);
    close_fixture(&f);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
#define TENANTS                                                                                                        \
    IN_FOLDER(idle_processors_are_borrowed_step_by_step), IN_FOLDER(sessions_share_what_is_borrowed),                  \
        IN_FOLDER(the_memory_quota_holds), IN_FOLDER(the_share_of_time_holds), IN_FOLDER(a_run_stops_within_a_step),   \
        IN_FOLDER(a_pause_begins_with_the_step), IN_FOLDER(a_session_follows_a_resize),                                \
        IN_FOLDER(an_armed_device_refuses_nothing_a_session_needs),                                                    \
        IN_FOLDER(an_armed_device_refuses_nothing_after_a_resize_and_a_step),                                          \
        IN_FOLDER(nothing_is_launched_in_the_primary_context)
    const struct CMUnitTest cpu[] = {TENANTS}, cuda[] = {TENANTS};
    return cmocka_run_group_tests_name("tenant on the CPU", cpu, group_on_cpu, NULL) +
           cmocka_run_group_tests_name("tenant on a GPU", cuda, group_on_cuda, NULL);
}
