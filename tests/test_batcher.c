// Many requests at one session against each alone, and what becomes of those that have to wait, end early or go wrong.
#include "support/audio_files.h"
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <math.h>
#include <string.h>
#include <warptone/batcher.h>

enum { VOCAB = 128, POSITIONS = 256, REQUESTS = 14, MOST = 70, BAD = 77 };

typedef struct fixture {
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    wt_batcher *batcher;
} fixture;

/// With `bad` token BAD has an embedding that is not a number.
static fixture start(void **state, wt_backend backend, bool bad, wt_llm_session_config sessions,
                     wt_batcher_config config)
{
    static llm_file file;
    fixture f = {0};
    if (backend == WT_BACKEND_CUDA && !wt_device_count()) skip();
    llm_llama_add(&file, NULL, NULL, 11);
    for (int k = 0; bad && k < file.n; k++)
        if (strstr(file.tensors[k].name, "embed_tokens"))
            ((float *)file.tensors[k].data)[BAD * (file.tensors[k].bytes / sizeof(float) / VOCAB)] = NAN;
    llm_file_write(&file, test_path(state, "a.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &f.device));
    assert_ok(wt_llm_open(test_path(state, "a.safetensors"), &f.llm));
    sessions.device = f.device;
    sessions.n_positions = POSITIONS;
    assert_ok(wt_llm_session_create(f.llm, &sessions, &f.session));
    config.session = f.session;
    assert_ok(wt_batcher_create(&config, &f.batcher));
    return f;
}

static void stop(fixture *f)
{
    wt_batcher_destroy(f->batcher);
    wt_llm_session_destroy(f->session);
    wt_llm_close(f->llm);
    wt_device_close(f->device);
}

typedef struct answer {
    int32_t ids[POSITIONS];
    double logprobs[POSITIONS];
    int n, ends, cancel_at;
    wt_status status;
    wt_generation report;
} answer;

static bool collect(void *user, const wt_generated *token)
{
    answer *a = user;
    if (token->id < 0) return true;
    a->logprobs[a->n] = token->logprob;
    a->ids[a->n++] = token->id;
    return a->n != a->cancel_at;
}

static void note_end(void *user, wt_status status, const wt_generation *report)
{
    answer *a = user;
    a->ends++;
    a->status = status;
    a->report = *report;
}

static const wt_sampler_config samplings[] = {
    {.temperature = 0.9, .seed = 3},
    {.temperature = 1, .top_k = 20, .top_p = 0.9, .seed = 4},
    {.temperature = 0, .repetition_penalty = 1.3},
    {.temperature = 1.1, .typical_p = 0.9, .presence_penalty = 0.4, .seed = 5},
};

/// Prompts of 3 to 120 tokens; every third begins as the first one does.
static int prompt_of(int which, int32_t *ids)
{
    const int n = which % 3 ? 3 + 9 * which : 100 + which;
    for (int k = 0; k < n; k++) ids[k] = (k * 37 + (which % 3 ? which * 11 : k >= 90 ? which : 0)) % 76; // without BAD
    return n;
}

static wt_request request_of(int which, const int32_t *ids, int n, answer *a)
{
    return (wt_request){.prompt = ids,
                        .n_prompt = n,
                        .sampling = which % 5 ? &samplings[which % 4] : NULL,
                        .max_tokens = which == 4 ? 0 : MOST - 3 * which,
                        .ignore_eos = true,
                        .logprobs = which % 2,
                        .on_token = collect,
                        .on_end = note_end,
                        .user = a};
}

static void check_alone(fixture *f, int which, const answer *got)
{
    static answer want;
    int32_t ids[POSITIONS];
    const int n = prompt_of(which, ids);
    wt_llm_session *session;
    wt_sampler *sampler;
    wt_generator *generator;
    want = (answer){0};
    assert_ok(wt_llm_session_create(f->llm, &(wt_llm_session_config){.device = f->device, .n_positions = POSITIONS},
                                    &session));
    assert_ok(wt_sampler_create(which % 5 ? &samplings[which % 4] : &(wt_sampler_config){0}, VOCAB, &sampler));
    assert_ok(wt_generator_create(&(wt_generator_config){.session = session,
                                                         .sampler = sampler,
                                                         .n_positions = POSITIONS,
                                                         .max_tokens = which == 4 ? 0 : MOST - 3 * which,
                                                         .ignore_eos = true,
                                                         .logprobs = which % 2,
                                                         .on_token = collect,
                                                         .user = &want},
                                  &generator));
    assert_ok(wt_generator_run(generator, ids, n, &want.report));
    assert_int_equal(got->n, want.n);
    for (int k = 0; k < want.n; k++) {
        if (got->ids[k] != want.ids[k])
            fail_msg("request %d, token %d: %d, want %d", which, k, got->ids[k], want.ids[k]);
        assert_float_equal(got->logprobs[k], want.logprobs[k], 1e-4);
    }
    assert_int_equal(got->report.finish, want.report.finish);
    assert_int_equal(got->report.n_prompt, n);
    wt_generator_destroy(generator);
    wt_sampler_destroy(sampler);
    wt_llm_session_destroy(session);
}

static int run_all(fixture *f)
{
    int n_left = 1, n_steps = 0;
    for (; n_left; n_steps++) assert_ok(wt_batcher_step(f->batcher, &n_left));
    return n_steps;
}

/// More requests than sequences, and a cache for fewer tokens than all of those: each gets the tokens it gets alone.
static void check_answers(void **state, wt_backend backend)
{
    static answer answers[REQUESTS];
    memset(answers, 0, sizeof answers);
    fixture f =
        start(state, backend, false, (wt_llm_session_config){.n_sequences = 5, .n_cached = 10 * 64, .n_batch = 40},
              (wt_batcher_config){0});
    for (int k = 0; k < REQUESTS; k++) {
        int32_t ids[POSITIONS];
        const int n = prompt_of(k, ids);
        const wt_request r = request_of(k, ids, n, &answers[k]);
        assert_ok(wt_batcher_submit(f.batcher, &r, NULL));
    }
    const int n_steps = run_all(&f);
    int n_reused = 0, n_tokens = 0;
    for (int k = 0; k < REQUESTS; k++) {
        assert_int_equal(answers[k].ends, 1);
        assert_ok(answers[k].status);
        n_reused += answers[k].report.n_reused;
        n_tokens += answers[k].report.n_tokens;
        check_alone(&f, k, &answers[k]);
    }
    print_message("%d tokens of %d requests in %d steps, %d tokens of prompts reused\n", n_tokens, REQUESTS, n_steps,
                  n_reused);
    assert_true(n_reused >= 64);
    assert_true(n_steps < n_tokens);
    stop(&f);
}

static void requests_get_what_they_get_alone(void **state) { check_answers(state, WT_BACKEND_CPU); }
static void requests_get_what_they_get_alone_on_a_gpu(void **state) { check_answers(state, WT_BACKEND_CUDA); }

static void submit(fixture *f, const int32_t *ids, int n, int max_tokens, answer *a, uint64_t *id)
{
    static const wt_logit_bias not_bad = {BAD, -INFINITY};
    const wt_request r = {.prompt = ids,
                          .n_prompt = n,
                          .sampling = &(wt_sampler_config){.biases = &not_bad, .n_biases = 1},
                          .max_tokens = max_tokens,
                          .ignore_eos = true,
                          .on_token = collect,
                          .on_end = note_end,
                          .user = a};
    assert_ok(wt_batcher_submit(f->batcher, &r, id));
}

/// Cancelled while it waits, while it is under way and by its callback; one with a logit that is not a number; the rest
/// goes on, and afterwards an answer to the same prompt takes nearly all of it from the cache.
static void requests_end_by_themselves(void **state)
{
    static answer a[5];
    int32_t ids[100], bad[2] = {3, BAD};
    uint64_t waits, runs;
    int n_left;
    memset(a, 0, sizeof a);
    fixture f = start(state, WT_BACKEND_CPU, true, (wt_llm_session_config){.n_sequences = 3}, (wt_batcher_config){0});
    for (int k = 0; k < 100; k++) ids[k] = (k * 41 + 5) % 76;
    a[1].cancel_at = 7;
    submit(&f, ids, 20, 50, &a[0], &runs);
    submit(&f, ids + 1, 20, 50, &a[1], NULL);
    submit(&f, bad, 2, 50, &a[2], NULL);
    submit(&f, ids, 100, 20, &a[3], NULL);
    submit(&f, ids + 2, 20, 50, &a[4], &waits);
    wt_batcher_cancel(f.batcher, waits);
    for (int k = 0; k < 5; k++) assert_ok(wt_batcher_step(f.batcher, &n_left));
    wt_batcher_cancel(f.batcher, runs);
    wt_batcher_cancel(f.batcher, 1000);
    run_all(&f);
    for (int k = 0; k < 5; k++) assert_int_equal(a[k].ends, 1);
    assert_int_equal(a[0].report.finish, WT_FINISH_CANCELLED);
    assert_int_equal(a[0].n, 5);
    assert_int_equal(a[1].report.finish, WT_FINISH_CANCELLED);
    assert_int_equal(a[1].n, 7);
    assert_int_equal(a[2].status, WT_ERR_FORMAT);
    assert_int_equal(a[2].n, 0);
    assert_int_equal(a[3].n, 20);
    assert_int_equal(a[3].report.finish, WT_FINISH_LENGTH);
    assert_int_equal(a[4].n, 0);
    answer again = {0};
    submit(&f, ids, 100, 20, &again, NULL);
    run_all(&f);
    assert_int_equal(again.report.n_reused, 99);
    assert_memory_equal(again.ids, a[3].ids, 20 * sizeof *again.ids);
    stop(&f);
}

static void bad_requests_are_refused(void **state)
{
    answer a = {0};
    int32_t ids[POSITIONS] = {0};
    fixture f = start(state, WT_BACKEND_CPU, false, (wt_llm_session_config){.n_sequences = 2, .n_cached = 128},
                      (wt_batcher_config){.max_requests = 2});
    wt_request r = {.prompt = ids, .n_prompt = POSITIONS};
    assert_fails(wt_batcher_submit(f.batcher, &r, NULL), WT_ERR_FULL, "batcher: a prompt of 256 tokens, want 1..255");
    r.n_prompt = 10;
    assert_fails(wt_batcher_submit(f.batcher, &r, NULL), WT_ERR_FULL,
                 "batcher: 256 tokens, the cache has room for 128");
    r.max_tokens = 100;
    r.sampling = &(wt_sampler_config){.top_p = 2};
    assert_fails(wt_batcher_submit(f.batcher, &r, NULL), WT_ERR_BAD_ARG, "sampler: top_p 2, want 0..1");
    r.sampling = NULL;
    ids[4] = VOCAB;
    assert_fails(wt_batcher_submit(f.batcher, &r, NULL), WT_ERR_BAD_ARG,
                 "batcher: token 4 of the prompt is 128, want 0..127");
    ids[4] = 0;
    for (int k = 0; k < 2; k++) submit(&f, ids, 10, 100, &a, NULL); // of two pages each: one waits for the other
    assert_fails(wt_batcher_submit(f.batcher, &r, NULL), WT_ERR_FULL, "batcher: 2 requests wait or are under way");
    run_all(&f);
    assert_int_equal(a.ends, 2);
    assert_int_equal(a.n, 200);
    wt_batcher *second;
    assert_fails(wt_batcher_create(&(wt_batcher_config){.session = f.session}, &second), WT_ERR_BAD_ARG,
                 "batcher: the session has tokens");
    submit(&f, ids, 10, 100, &a, NULL); // which destroy gives up
    stop(&f);
}

static wt_status try_all(void *user)
{
    fixture *f = user;
    const int32_t ids[3] = {1, 2, 3};
    const wt_request r = {.prompt = ids, .n_prompt = 3, .max_tokens = 4, .sampling = &samplings[3]};
    f->batcher = NULL;
    wt_status status = wt_batcher_create(&(wt_batcher_config){.session = f->session}, &f->batcher);
    if (!status) status = wt_batcher_submit(f->batcher, &r, NULL);
    if (status) wt_batcher_destroy(f->batcher);
    return status;
}

static void drop_all(void *user) { wt_batcher_destroy(((fixture *)user)->batcher); }

static void a_batcher_survives_failing_allocations(void **state)
{
    fixture f = start(state, WT_BACKEND_CPU, false, (wt_llm_session_config){.n_sequences = 2}, (wt_batcher_config){0});
    wt_batcher_destroy(f.batcher);
    assert_survives_failing_alloc(try_all, drop_all, &f);
    f.batcher = NULL;
    stop(&f);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(requests_get_what_they_get_alone),
        IN_FOLDER(requests_get_what_they_get_alone_on_a_gpu),
        IN_FOLDER(requests_end_by_themselves),
        IN_FOLDER(bad_requests_are_refused),
        IN_FOLDER(a_batcher_survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("batcher", tests, NULL, NULL);
}
