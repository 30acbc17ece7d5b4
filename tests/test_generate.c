// Answers: their text in any pieces, sessions that go on, and wishes of other threads.
#include "support/answer_check.h"
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <warptone/batcher.h>
#include <warptone/generate.h>

// ---- text

typedef struct split {
    const char *text, *thinking, *answer;
    const char *stops[3];
    bool starts_thinking, whole; ///< whole: the tags are text
    bool stopped;
} split;

static const split splits[] = {
    {"Hello there", "", "Hello there", {0}, false, false, false},
    {"<think>\nwell\n</think>\n\nYes.", "well\n", "Yes.", {0}, false, false, false},
    {" \n<think>a < b</think>c</think>", "a < b", "c</think>", {0}, false, false, false},
    {"so</think>\nno", "so", "no", {0}, true, false, false},
    {"<thin ice>", "", "<thin ice>", {0}, false, false, false},
    {"  <thi", "", "  <thi", {0}, false, false, false},
    {"<think>never ends</thi", "never ends</thi", "", {0}, false, false, false},
    {"<think>plain</think>", "", "<think>plain</think>", {0}, false, true, false},
    {"I say <think> later", "", "I say <think> later", {0}, false, false, false},
    {"one STOP two", "", "one ", {"STOP"}, false, false, true},
    {"one STO", "", "one STO", {"STOP"}, false, false, false},
    {"aaab", "", "a", {"aab"}, false, false, true},
    {"x\nUser: y", "", "x", {"STOP", "\nUser:"}, false, false, true},
    {"ends early, then late", "", "ends ", {"late", "early", "then"}, false, false, true},
    {"<think>STOP</think>go STOP on", "STOP", "go ", {"STOP"}, false, false, true},
    {"caf\xc3\xa9 \xf0\x9f\x98\x80!", "", "caf\xc3\xa9 \xf0\x9f\x98\x80", {"!"}, false, false, true},
};

static void check_split(const split *s, size_t n_piece)
{
    char thinking[128] = "", answer[128] = "";
    int n_stops = 0;
    while (n_stops < 3 && s->stops[n_stops]) n_stops++;
    wt_answer_text *text;
    wt_answer_part part = {0};
    assert_ok(wt_answer_text_create(
        &(wt_answer_text_config){
            .stops = s->stops, .n_stops = n_stops, .split_thinking = !s->whole, .starts_thinking = s->starts_thinking},
        &text));
    for (int again = 0; again < 2; again++) { // the second answer is as the first
        thinking[0] = answer[0] = 0;
        const size_t length = strlen(s->text);
        bool stopped = false;
        for (size_t at = 0; at < length; at += n_piece) {
            const size_t n = length - at < n_piece ? length - at : n_piece;
            assert_ok(wt_answer_text_push(text, s->text + at, n, &part));
            assert_int_equal(strlen(part.thinking), part.n_thinking);
            assert_int_equal(strlen(part.answer), part.n_answer);
            strcat(thinking, part.thinking);
            strcat(answer, part.answer);
            stopped |= part.stopped;
        }
        wt_answer_text_flush(text, &part);
        strcat(thinking, part.thinking);
        strcat(answer, part.answer);
        if (strcmp(thinking, s->thinking) || strcmp(answer, s->answer) || stopped != s->stopped)
            fail_msg("\"%s\" by %zu gives \"%s\" and \"%s\"%s", s->text, n_piece, thinking, answer,
                     stopped ? ", stopped" : "");
        wt_answer_text_begin(text, s->starts_thinking);
    }
    wt_answer_text_destroy(text);
}

static void text_is_split_wherever_it_is_cut(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof splits / sizeof *splits; k++)
        for (size_t n = 1; n <= strlen(splits[k].text); n++) check_split(&splits[k], n);
}

/// What can be no part of a tag or stop string is told at once.
static void no_more_is_held_back_than_has_to_be(void **state)
{
    (void)state;
    const char *stops[] = {"STOP"};
    wt_answer_text *text;
    wt_answer_part part;
    assert_ok(wt_answer_text_create(&(wt_answer_text_config){.stops = stops, .n_stops = 1}, &text));
    assert_ok(wt_answer_text_push(text, "go S", 4, &part));
    assert_string_equal(part.answer, "go ");
    assert_ok(wt_answer_text_push(text, "TART", 4, &part));
    assert_string_equal(part.answer, "START");
    wt_answer_text_destroy(text);
    assert_fails(
        wt_answer_text_create(&(wt_answer_text_config){.stops = (const char *[]){"a", ""}, .n_stops = 2}, &text),
        WT_ERR_BAD_ARG, "answer: stop string 1 of 2 is empty");
    assert_null(text);
}

// ---- sessions that go on

static void the_beginning_of_a_prompt_is_reused(void **state)
{
    static answer_tokens first, second, fresh;
    int32_t ids[POSITIONS];
    wt_generation r;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    start_answer(&f, f.other, answer_samplings[0],
                 (wt_generator_config){.strategy = WT_STRATEGY_DRAFT,
                                       .keep_guessing = true,
                                       .max_tokens = 30,
                                       .on_token = collect_token,
                                       .user = &first});
    assert_ok(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r));
    assert_int_equal(r.n_reused, 0);
    memcpy(ids, answer_prompt(), sizeof *ids * N_PROMPT);
    memcpy(ids + N_PROMPT, first.ids, sizeof *ids * 30);
    ids[N_PROMPT + 20] = (ids[N_PROMPT + 20] + 1) % VOCAB; // the answer was changed there, and goes on
    first.n = 0;
    assert_ok(wt_generator_run(f.generator, ids, N_PROMPT + 30, &r));
    assert_int_equal(r.n_reused, N_PROMPT + 20);
    assert_int_equal(r.n_tokens, 30);
    memcpy(second.ids, first.ids, sizeof first.ids);
    stop_answer(&f);
    start_answer(&f, NULL, answer_samplings[0],
                 (wt_generator_config){.max_tokens = 30, .on_token = collect_token, .user = &fresh});
    assert_ok(wt_generator_run(f.generator, ids, N_PROMPT + 30, &r));
    assert_memory_equal(fresh.ids, second.ids, sizeof *ids * 30);
    assert_ok(wt_generator_run(f.generator, ids, N_PROMPT + 30, &r)); // all but the last token
    assert_int_equal(r.n_reused, N_PROMPT + 29);
    assert_memory_equal(fresh.ids + 30, second.ids, sizeof *ids * 30);
    assert_fails(wt_generator_run(f.generator, ids, POSITIONS, &r), WT_ERR_FULL,
                 "generate: a prompt of 300 tokens, want 1..299");
    assert_fails(wt_generator_run(f.generator, ids, 0, &r), WT_ERR_BAD_ARG,
                 "generate: a prompt of 0 tokens, want 1..299");
    stop_answer(&f);
    close_models(&f);
}

static void an_answer_ends_with_its_room(void **state)
{
    static answer_tokens t;
    wt_generation r;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    start_answer(&f, NULL, answer_samplings[0],
                 (wt_generator_config){.strategy = WT_STRATEGY_NGRAM,
                                       .n_guesses = 16,
                                       .keep_guessing = true,
                                       .max_tokens = 1000,
                                       .on_token = collect_token,
                                       .user = &t});
    assert_ok(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r));
    assert_int_equal(r.finish, WT_FINISH_CONTEXT);
    assert_int_equal(r.n_tokens, POSITIONS - N_PROMPT);
    stop_answer(&f);
    close_models(&f);
}

// ---- wishes

/// With a kept head an answer is longer than the context; guesses change nothing, also where tokens are dropped.
static void a_full_context_makes_room(void **state)
{
    static const wt_strategy strategies[] = {WT_STRATEGY_SINGLE, WT_STRATEGY_NGRAM, WT_STRATEGY_DRAFT,
                                             WT_STRATEGY_EARLY};
    static answer_tokens t[4];
    enum { LONG = 400 };
    wt_generation r;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    for (int k = 0; k < 4; k++) {
        start_answer(&f, k == 2 ? f.other : NULL, answer_samplings[1],
                     (wt_generator_config){.strategy = strategies[k],
                                           .keep_guessing = true,
                                           .ignore_eos = true,
                                           .n_keep = 10,
                                           .max_tokens = LONG,
                                           .on_token = collect_token,
                                           .user = &t[k]});
        assert_ok(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r));
        assert_int_equal(r.finish, WT_FINISH_LENGTH);
        assert_int_equal(r.n_tokens, LONG);
        assert_int_equal(r.n_dropped, 145); // 124 tokens too many, half of 290 at a time
        assert_memory_equal(t[k].ids, t[0].ids, sizeof t[0].ids);
        stop_answer(&f);
    }
    close_models(&f);
}

static void a_callback_ends_the_answer(void **state)
{
    static answer_tokens t;
    wt_generation r;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    t.cancel_at = 3;
    start_answer(&f, NULL, answer_samplings[0],
                 (wt_generator_config){
                     .strategy = WT_STRATEGY_NGRAM, .keep_guessing = true, .on_token = collect_token, .user = &t});
    assert_ok(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r));
    assert_int_equal(r.finish, WT_FINISH_CANCELLED);
    assert_int_equal(t.n, 3);
    wt_generator_cancel(f.generator); // the next, before its first token
    assert_ok(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r));
    assert_int_equal(r.finish, WT_FINISH_CANCELLED);
    assert_int_equal(r.n_tokens, 0);
    stop_answer(&f);
    close_models(&f);
}

typedef struct running {
    answer_fixture *f;
    wt_generation report;
    wt_status status;
} running;

static void *run_answer(void *user)
{
    running *r = user;
    r->status = wt_generator_run(r->f->generator, answer_prompt(), N_PROMPT, &r->report);
    return NULL;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); }

static void an_answer_is_paused_and_cancelled_by_another_thread(void **state)
{
    static answer_tokens t;
    pthread_t thread;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    running r = {.f = &f};
    t.pause_at = 5;
    start_answer(&f, NULL, answer_samplings[0],
                 (wt_generator_config){.on_token = collect_token, .user = &t, .max_tokens = 200});
    t.generator = f.generator;
    assert_int_equal(pthread_create(&thread, NULL, run_answer, &r), 0);
    while (t.n < 5) nap();
    for (int k = 0; k < 20; k++) nap();
    assert_int_equal(t.n, 5); // it waits
    t.pause_at = 8;
    wt_generator_pause(f.generator, false);
    while (t.n < 8) nap();
    wt_generator_cancel(f.generator); // also while it waits
    pthread_join(thread, NULL);
    assert_int_equal(r.status, WT_OK);
    assert_int_equal(r.report.finish, WT_FINISH_CANCELLED);
    assert_int_equal(t.n, 8);
    stop_answer(&f);
    close_models(&f);
}

// ---- errors

/// A model whose norm before the head has a NaN, on a backend.
static answer_fixture open_bad_model(void **state, wt_backend backend)
{
    static llm_file file;
    answer_fixture f = {0};
    if (backend == WT_BACKEND_CUDA && !wt_device_count()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    llm_llama_add(&file, NULL, NULL, 11);
    for (int k = 0; k < file.n; k++)
        if (!strcmp(file.tensors[k].name, "model.norm.weight")) ((float *)file.tensors[k].data)[5] = NAN;
    llm_file_write(&file, test_path(state, "nan.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    assert_ok(wt_llm_open(test_path(state, "nan.safetensors"), &f.llm));
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 1}, &f.device));
    return f;
}

static void check_not_a_number(void **state, wt_backend backend)
{
    enum { N = 3 };
    wt_generation r;
    answer_fixture f = open_bad_model(state, backend);
    for (int sampling = 0; sampling < 2; sampling++) {
        start_answer(&f, NULL, answer_samplings[sampling], (wt_generator_config){0});
        assert_fails(wt_generator_run(f.generator, answer_prompt(), N_PROMPT, &r), WT_ERR_FORMAT,
                     "sampler: the logit of token 0 is not a number");
        assert_int_equal(r.n_tokens, 0);
        // and by what generates, verifies and steps without asking for logits
        wt_sampler *sampler = sampling ? f.sampler : NULL;
        int32_t next[N];
        const wt_llm_turn turn = {.id = 1, .sampler = sampler};
        wt_llm_session *s = f.session;
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0, 0}));
        assert_fails(wt_llm_run(s, 1, &(wt_llm_run_config){.n_tokens = 5, .sampler = sampler}), WT_ERR_FORMAT,
                     "llm: after 1 tokens a logit is not a number");
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0, 0}));
        assert_fails(wt_llm_step(s, &turn, 1, next, NULL), WT_ERR_FORMAT,
                     "llm: turn 0 gives a logit that is not a number");
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0, 0}));
        assert_ok(wt_llm_verify_greedy(s, answer_prompt(), N, next, NULL));
        for (int k = 0; k < N; k++) assert_int_equal(next[k], -1);
        stop_answer(&f);
    }
    close_models(&f);
}

static void not_a_number_is_reported_and_not_drawn(void **state) { check_not_a_number(state, WT_BACKEND_CPU); }
static void not_a_number_on_a_gpu_is_reported(void **state) { check_not_a_number(state, WT_BACKEND_CUDA); }

static void set_vocab_size(const char *path, int size)
{
    json_t *config = json_load_file(path, 0, NULL);
    assert_int_equal(json_object_set_new(config, "vocab_size", json_integer(size)), 0);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
}

/// A draft's tokens are the model's.
static void refuse_another_vocabulary(void **state, answer_fixture *f)
{
    static llm_file file;
    wt_llm *draft;
    wt_llm_session *session;
    wt_generator *g;
    llm_llama_add(&file, NULL, NULL, 3);
    for (int k = 0; k < file.n; k++)
        if (strstr(file.tensors[k].name, "embed_tokens") || strstr(file.tensors[k].name, "lm_head")) {
            file.tensors[k].bytes = sizeof(float) * 100 * 64;
            snprintf(file.tensors[k].shape, sizeof file.tensors[k].shape, "100,64");
        }
    llm_file_write(&file, test_path(state, "draft.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    set_vocab_size(test_path(state, "config.json"), 100);
    assert_ok(wt_llm_open(test_path(state, "draft.safetensors"), &draft));
    assert_ok(wt_llm_session_create(draft, &(wt_llm_session_config){.device = f->device, .n_positions = POSITIONS},
                                    &session));
    assert_fails(wt_generator_create(&(wt_generator_config){.session = f->session,
                                                            .sampler = f->sampler,
                                                            .n_positions = POSITIONS,
                                                            .strategy = WT_STRATEGY_DRAFT,
                                                            .draft = session},
                                     &g),
                 WT_ERR_BAD_ARG, "generate: the draft's vocabulary has 100 tokens, the model's 128");
    wt_llm_session_destroy(session);
    wt_llm_close(draft);
}

/// Of a model of 128 tokens: an added token beyond is let be, another is not.
static void refuse_another_tokenizer(void **state, answer_fixture *f)
{
#define OF_VOCAB(vocab)                                                                                                \
    "{\"model\":{\"vocab\":" vocab ",\"merges\":[]},\"added_tokens\":[{\"id\":128,\"content\":\"[PAD]\"}]}"
    static const char *const files[] = {OF_VOCAB("{\"a\":0,\"b\":127}"), OF_VOCAB("{\"a\":0,\"bc\":200}")};
    const char *path = test_path(state, "tokenizer.json");
    for (int k = 0; k < 2; k++) {
        wt_tokenizer *t;
        wt_generator *g;
        wt_batcher *b;
        test_spill(path, files[k], strlen(files[k]));
        assert_ok(wt_tokenizer_open(path, &t));
        const wt_generator_config c = {
            .session = f->session, .sampler = f->sampler, .n_positions = POSITIONS, .tokenizer = t};
        const wt_batcher_config many = {.session = f->session, .tokenizer = t};
        if (!k) {
            assert_ok(wt_generator_create(&c, &g));
            assert_ok(wt_batcher_create(&many, &b));
            wt_generator_destroy(g);
            wt_batcher_destroy(b);
        } else {
            assert_fails(wt_generator_create(&c, &g), WT_ERR_BAD_ARG,
                         "generate: the tokenizer's token 200, \"bc\", is none of the model's, want 0..127");
            assert_fails(wt_batcher_create(&many, &b), WT_ERR_BAD_ARG,
                         "batcher: the tokenizer's token 200, \"bc\", is none of the model's, want 0..127");
            assert_null(g);
            assert_null(b);
        }
        wt_tokenizer_close(t);
    }
}

static void bad_use_is_refused(void **state)
{
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    wt_strategy strategy;
    start_answer(&f, NULL, answer_samplings[0], (wt_generator_config){0});
    wt_generator *g;
    wt_generator_config c = {.session = f.session, .sampler = f.sampler, .n_positions = POSITIONS, .n_guesses = 17};
    assert_fails(wt_generator_create(&c, &g), WT_ERR_BAD_ARG, "generate: 17 guesses a step, want 0..16");
    c = (wt_generator_config){.session = f.session, .sampler = f.sampler, .n_positions = 1, .n_draft_layers = 3};
    assert_fails(wt_generator_create(&c, &g), WT_ERR_BAD_ARG, "generate: 3 layers of a draft, want 0..2");
    c = (wt_generator_config){
        .session = f.session, .sampler = f.sampler, .n_positions = 1, .strategy = WT_STRATEGY_DRAFT};
    assert_fails(wt_generator_create(&c, &g), WT_ERR_BAD_ARG, "generate: strategy draft wants a draft's session");
    c = (wt_generator_config){.session = f.session, .sampler = f.sampler, .n_positions = 16, .n_keep = 15};
    assert_fails(wt_generator_create(&c, &g), WT_ERR_BAD_ARG, "generate: keep 15 tokens, want 0..14");
    refuse_another_vocabulary(state, &f);
    assert_null(g);
    refuse_another_tokenizer(state, &f);
    assert_fails(wt_strategy_find("magic", &strategy), WT_ERR_NOT_FOUND,
                 "strategy \"magic\" is not known, want single, ngram, draft, early, jacobi or lookahead");
    assert_ok(wt_strategy_find("lookahead", &strategy));
    assert_int_equal(strategy, WT_STRATEGY_LOOKAHEAD);
    stop_answer(&f);
    close_models(&f);
}

typedef struct making {
    wt_generator_config config;
    wt_generator *generator;
} making;

static wt_status make_generator(void *user)
{
    making *m = user;
    return wt_generator_create(&m->config, &m->generator);
}

static void drop_generator(void *user) { wt_generator_destroy(((making *)user)->generator); }

static void a_generator_survives_failing_allocations(void **state)
{
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    start_answer(&f, NULL, answer_samplings[0], (wt_generator_config){0});
    making m = {.config = {.session = f.session,
                           .sampler = f.sampler,
                           .n_positions = POSITIONS,
                           .text = &(wt_answer_text_config){.stops = (const char *[]){"a", "b"}, .n_stops = 2},
                           .strategy = WT_STRATEGY_LOOKAHEAD}};
    assert_survives_failing_alloc(make_generator, drop_generator, &m);
    stop_answer(&f);
    close_models(&f);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_split_wherever_it_is_cut),
        cmocka_unit_test(no_more_is_held_back_than_has_to_be),
        IN_FOLDER(the_beginning_of_a_prompt_is_reused),
        IN_FOLDER(an_answer_ends_with_its_room),
        IN_FOLDER(a_full_context_makes_room),
        IN_FOLDER(a_callback_ends_the_answer),
        IN_FOLDER(an_answer_is_paused_and_cancelled_by_another_thread),
        IN_FOLDER(not_a_number_is_reported_and_not_drawn),
        IN_FOLDER(not_a_number_on_a_gpu_is_reported),
        IN_FOLDER(bad_use_is_refused),
        IN_FOLDER(a_generator_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
