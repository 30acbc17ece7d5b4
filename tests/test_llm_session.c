// What a session keeps, on both backends: pages that sequences share, save and drop tokens of, and their types.
#include "support/audio_files.h"
#include "support/llm_session.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- pages

/// To the bit on the CPU; a GPU divides attention by the tokens of a batch, so its sums are in another order.
static void assert_near(const llm_fixture *f, const float *got, const float *want, double bound, const char *what)
{
    float peak = 0;
    for (int k = 0; k < VOCAB; k++) peak = fmaxf(peak, fabsf(want[k]));
    if (f->backend == WT_BACKEND_CPU && bound == 0) {
        assert_memory_equal(got, want, sizeof *want * VOCAB);
        return;
    }
    if (bound == 0) bound = 1e-5;
    for (int k = 0; k < VOCAB; k++)
        if (!(fabsf(got[k] - want[k]) <= (float)bound * peak))
            fail_msg("%s: logit %d is %g, want %g (of %g)", what, k, (double)got[k], (double)want[k], (double)peak);
}

/// What a session of its own gives after those tokens.
static const float *alone(const llm_fixture *f, const int32_t *ids, int n, wt_dtype kv_type)
{
    static float logits[VOCAB];
    wt_llm_session *s = llm_fixture_session(f, (wt_llm_session_config){.kv_type = kv_type});
    assert_ok(wt_llm_prefill(s, ids, n));
    memcpy(logits, wt_llm_logits(s), sizeof logits);
    wt_llm_session_destroy(s);
    return logits;
}

static bool never(void *user, const wt_llm_pick *pick)
{
    (void)user;
    fail_msg("token %d came of a run for which there is no room", pick->id);
    return false;
}

/// Three sequences share four of five pages and would go on in the last of them: one can have a copy; two or three
/// cannot, and then none has.
static void check_full_step(wt_llm_session *s)
{
    enum { N = 3 * 64 + 10 };
    const wt_llm_turn turns[] = {{.sequence = 0, .id = 1}, {.sequence = 1, .id = 2}, {.sequence = 2, .id = 3}};
    int32_t next[3];
    for (int q = 0; q < 3; q++) {
        assert_ok(wt_llm_select(s, q));
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0}));
    }
    assert_ok(wt_llm_prefill(s, llm_fixture_prompt(1), N));
    assert_ok(wt_llm_share(s, 2, 0, N));
    assert_ok(wt_llm_share(s, 2, 1, N));
    assert_fails(wt_llm_step(s, turns, 3, next, NULL), WT_ERR_FULL,
                 "llm: a step of 3 sequences wants 2 more pages of 64 positions, 1 of 5 are free");
    assert_int_equal(wt_llm_free_positions(s), 64);
    assert_ok(wt_llm_step(s, turns, 1, next, NULL));
    assert_int_equal(wt_llm_step(s, turns + 1, 2, next, NULL), WT_ERR_FULL); // the last keeps the page
    assert_int_equal(wt_llm_free_positions(s), 0);
}

/// Three sequences of one beginning of 150 tokens go different ways; the pages they share are counted once, copied when
/// one writes into the page that all three have not filled, and given back.
static void check_sharing(void **state, wt_backend backend, const char *config)
{
    enum { N = 150, ALL = 5 * 64 };
    llm_fixture f = llm_fixture_open(state, backend, config);
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.n_sequences = 3, .n_cached = ALL});
    int32_t ids[POSITIONS], next[3];
    float logits[3][VOCAB];
    memcpy(ids, llm_fixture_prompt(1), sizeof ids);
    assert_int_equal(wt_llm_free_positions(s), ALL);
    assert_ok(wt_llm_prefill(s, ids, N)); // 3 pages
    assert_int_equal(wt_llm_free_positions(s), ALL - 3 * 64);
    assert_ok(wt_llm_share(s, 0, 1, N));
    assert_ok(wt_llm_share(s, 0, 2, 140));
    assert_int_equal(wt_llm_free_positions(s), ALL - 3 * 64);
    const wt_llm_turn turns[] = {{.sequence = 2, .id = 7}, {.sequence = 0, .id = 9}, {.sequence = 1, .id = 11}};
    assert_ok(wt_llm_step(s, turns, 3, next, logits[0])); // two copies, the last one keeps the page
    assert_int_equal(wt_llm_free_positions(s), ALL - 5 * 64);
    ids[140] = 7;
    assert_near(&f, logits[0], alone(&f, ids, 141, 0), 0, "sequence 2");
    memcpy(ids, llm_fixture_prompt(1), sizeof ids);
    ids[N] = 9;
    assert_near(&f, logits[1], alone(&f, ids, N + 1, 0), 0, "sequence 0");
    ids[N] = 11;
    assert_near(&f, logits[2], alone(&f, ids, N + 1, 0), 0, "sequence 1");

    // back into a page that is shared, and on from there
    assert_ok(wt_llm_select(s, 1));
    assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){.position = 100}));
    assert_int_equal(wt_llm_free_positions(s), ALL - 4 * 64);
    assert_ok(wt_llm_prefill(s, ids + 30, 20)); // a copy of page 1
    assert_int_equal(wt_llm_free_positions(s), ALL - 5 * 64);
    memcpy(ids + 100, llm_fixture_prompt(1) + 30, 20 * sizeof *ids);
    assert_near(&f, wt_llm_logits(s), alone(&f, ids, 120, 0), 0, "sequence 1, again");
    memcpy(ids, llm_fixture_prompt(1), sizeof ids);
    assert_ok(wt_llm_select(s, 0));
    ids[N] = 9;
    assert_ok(wt_llm_prefill(s, ids + 60, 20)); // which did not see it
    memcpy(ids + N + 1, llm_fixture_prompt(1) + 60, 20 * sizeof *ids);
    assert_near(&f, wt_llm_logits(s), alone(&f, ids, N + 21, 0), 0, "sequence 0, again");

    // out of pages, and all of them back
    assert_ok(wt_llm_select(s, 2));
    assert_int_equal(wt_llm_prefill(s, llm_fixture_prompt(1), 115), WT_ERR_FULL);
    assert_int_equal(wt_llm_run(s, 1, &(wt_llm_run_config){.n_tokens = 115, .on_token = never}), WT_ERR_FULL);
    assert_int_equal(wt_llm_position(s), 141);
    check_full_step(s);
    for (int q = 0; q < 3; q++) {
        assert_ok(wt_llm_select(s, q));
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0}));
    }
    assert_int_equal(wt_llm_free_positions(s), ALL);
    assert_fails(wt_llm_share(s, 0, 1, 1), WT_ERR_BAD_ARG, "llm: 1 tokens of sequence 0, want 0..0");
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

/// Mistral's layers see the last 32 tokens alone: half a page.
static void sequences_share_pages(void **state)
{
    check_sharing(state, WT_BACKEND_CPU, "llama");
    check_sharing(state, WT_BACKEND_CPU, "mistral");
}

static void sequences_share_pages_on_a_gpu(void **state)
{
    check_sharing(state, WT_BACKEND_CUDA, "llama");
    check_sharing(state, WT_BACKEND_CUDA, "mistral");
}

static void assert_refused(wt_llm_session *s, const void *bytes, size_t n, wt_status status, const char *sentence)
{
    const int position = wt_llm_position(s), n_free = wt_llm_free_positions(s);
    assert_int_equal(wt_llm_session_load(s, bytes, n), status);
    if (!strstr(wt_last_error(), sentence)) fail_msg("%s, want %s", wt_last_error(), sentence);
    assert_int_equal(wt_llm_position(s), position);
    assert_int_equal(wt_llm_free_positions(s), n_free);
}

/// 150 tokens as bytes, in another session's second sequence, which had others: what follows is the same, and
/// saved again they are the same bytes. On a GPU also from there to the CPU.
static void check_saving(void **state, wt_backend backend, const char *config, wt_dtype kv_type)
{
    enum { N = 150, ALL = 4 * 64 };
    llm_fixture f = llm_fixture_open(state, backend, config);
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = kv_type}),
                   *t = llm_fixture_session(
                       &f, (wt_llm_session_config){.kv_type = kv_type, .n_sequences = 2, .n_cached = ALL});
    float want[3][VOCAB];
    assert_ok(wt_llm_prefill(s, llm_fixture_prompt(1), N));
    const size_t n = wt_llm_session_saved_bytes(s);
    char *bytes = malloc(n), *again = malloc(n);
    assert_int_equal(wt_llm_session_save(s, bytes, n - 1), WT_ERR_BAD_ARG);
    assert_ok(wt_llm_session_save(s, bytes, n));
    for (int k = 0; k < 3; k++) {
        assert_ok(wt_llm_decode(s, 20 + k));
        memcpy(want[k], wt_llm_logits(s), sizeof want[k]);
    }
    assert_ok(wt_llm_prefill(t, llm_fixture_prompt(2), 10));
    assert_ok(wt_llm_select(t, 1));
    assert_ok(wt_llm_prefill(t, llm_fixture_prompt(2), 64));
    assert_ok(wt_llm_session_load(t, bytes, n));
    assert_null(wt_llm_logits(t));
    assert_int_equal(wt_llm_position(t), N);
    assert_int_equal(wt_llm_free_positions(t), 0);
    assert_ok(wt_llm_session_save(t, again, n));
    assert_memory_equal(again, bytes, n);
    for (int k = 0; k < 3; k++) {
        assert_ok(wt_llm_decode(t, 20 + k));
        assert_near(&f, wt_llm_logits(t), want[k], 0, "saved and loaded");
    }
    assert_ok(wt_llm_select(t, 0));
    assert_refused(t, bytes, n, WT_ERR_FULL, "llm: 150 saved tokens, 64 positions are free");
    assert_refused(t, bytes, n - 1, WT_ERR_FORMAT, "of 150 saved tokens, want");
    assert_refused(t, bytes, 7, WT_ERR_FORMAT, "llm: these bytes are no saved sequence");
    wt_llm_session *other = llm_fixture_session(
        &f,
        (wt_llm_session_config){.kv_type = kv_type == WT_DTYPE_F32 ? WT_DTYPE_F16 : WT_DTYPE_F32, .n_positions = 128});
    assert_refused(other, bytes, n, WT_ERR_FORMAT, "llm: saved keys of");
    wt_llm_session_destroy(other);
    other = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = kv_type, .n_positions = 128});
    assert_refused(other, bytes, n, WT_ERR_FULL, "llm: 150 saved tokens, the session has room for 128");
    wt_llm_session_destroy(other);
    if (backend == WT_BACKEND_CUDA) {
        llm_fixture cpu = {.backend = WT_BACKEND_CPU, .llm = f.llm};
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &cpu.device));
        other = llm_fixture_session(&cpu, (wt_llm_session_config){.kv_type = kv_type});
        assert_ok(wt_llm_session_load(other, bytes, n));
        assert_ok(wt_llm_decode(other, 20));
        assert_near(&f, wt_llm_logits(other), want[0], kv_type == WT_DTYPE_F32 ? 1e-5 : 2e-2, "on the CPU");
        wt_llm_session_destroy(other);
        wt_device_close(cpu.device);
    }
    wt_llm_session_destroy(s), wt_llm_session_destroy(t);
    free(bytes), free(again);
    llm_fixture_close(&f);
}

static void saved_tokens_go_on_elsewhere(void **state)
{
    check_saving(state, WT_BACKEND_CPU, "llama", WT_DTYPE_F32);
    check_saving(state, WT_BACKEND_CPU, "llama_dynamic", WT_DTYPE_F8_E4M3);
    check_saving(state, WT_BACKEND_CPU, "mistral", WT_DTYPE_BF16);
}

static void saved_tokens_go_on_elsewhere_on_a_gpu(void **state)
{
    check_saving(state, WT_BACKEND_CUDA, "llama", WT_DTYPE_F32);
    check_saving(state, WT_BACKEND_CUDA, "llama", WT_DTYPE_F16);
}

/// Logits through the first layer, whose keys and values know of no other tokens: after tokens were dropped they are
/// those of the ones that are left. An angle of 100 radians is rounded by 4e-6; caches round the keys once more.
static void check_shift(void **state, wt_backend backend, const char *config, wt_dtype kv_type, double bound)
{
    enum { N = 150, KEEP = 5, DROP = 70 };
    llm_fixture f = llm_fixture_open(state, backend, config);
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = kv_type, .n_sequences = 2}),
                   *left = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = kv_type});
    const int32_t *ids = llm_fixture_prompt(2);
    float before[VOCAB];
    for (int k = 0; k < N; k++) assert_ok(wt_llm_draft(s, ids[k], 1));
    for (int k = 0; k < N; k++)
        if (k < KEEP || k >= KEEP + DROP) assert_ok(wt_llm_draft(left, ids[k], 1));
    assert_ok(wt_llm_share(s, 0, 1, N - 1)); // whose tokens stay
    const int n_free = wt_llm_free_positions(s);
    memcpy(before, wt_llm_logits(s), sizeof before);
    assert_ok(wt_llm_shift(s, KEEP, DROP));
    assert_int_equal(wt_llm_position(s), N - DROP);
    assert_int_equal(wt_llm_free_positions(s), n_free - 2 * 64); // 80 positions in pages of its own
    assert_null(wt_llm_logits(s));
    for (int k = 0; k < 3; k++) {
        assert_ok(wt_llm_draft(s, ids[40 + k], 1));
        assert_ok(wt_llm_draft(left, ids[40 + k], 1));
        assert_near(&f, wt_llm_logits(s), wt_llm_logits(left), bound, "after a shift");
    }
    assert_ok(wt_llm_select(s, 1));
    assert_ok(wt_llm_draft(s, ids[N - 1], 1));
    assert_near(&f, wt_llm_logits(s), before, 0, "the other sequence");
    assert_fails(wt_llm_shift(s, 10, 150), WT_ERR_BAD_ARG, "llm: drop 150 tokens after 10, the session has 150");
    wt_llm_session_destroy(left);
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

static void check_shifts(void **state, wt_backend backend)
{
    check_shift(state, backend, "llama", WT_DTYPE_F32, 2e-5);
    check_shift(state, backend, "llama", WT_DTYPE_F16, 2e-3);
    check_shift(state, backend, "llama", WT_DTYPE_F8_E4M3, 0.2);
    check_shift(state, backend, "mistral", WT_DTYPE_F32, 2e-5);
    check_shift(state, backend, "mistral", WT_DTYPE_F16, 2e-3);
    check_shift(state, backend, "llama_yarn", WT_DTYPE_F32, 2e-5); // whose keys are scaled too
    check_shift(state, backend, "llama_llama3", WT_DTYPE_F32, 2e-5);
}

static void dropped_tokens_leave_the_others(void **state) { check_shifts(state, WT_BACKEND_CPU); }
static void dropped_tokens_leave_the_others_on_a_gpu(void **state) { check_shifts(state, WT_BACKEND_CUDA); }

/// Sequences of different lengths, below and above what was trained, against each alone.
static void check_dynamic(void **state, wt_backend backend)
{
    enum { STEPS = 8 };
    llm_fixture f = llm_fixture_open(state, backend, "llama_dynamic");
    const int trained = wt_llm_config(f.llm)->rope.original_positions,
              lengths[] = {trained - 4, trained / 2, trained + 30};
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.n_sequences = 3}), *one[3];
    float logits[3][VOCAB];
    int32_t next[3];
    assert_true(trained > 8 && trained + 60 < POSITIONS);
    for (int q = 0; q < 3; q++) {
        one[q] = llm_fixture_session(&f, (wt_llm_session_config){0});
        assert_ok(wt_llm_select(s, q));
        assert_ok(wt_llm_prefill(s, llm_fixture_prompt(q), lengths[q]));
        assert_ok(wt_llm_prefill(one[q], llm_fixture_prompt(q), lengths[q]));
    }
    for (int n = 0; n < STEPS; n++) {
        wt_llm_turn turns[3];
        for (int q = 0; q < 3; q++) turns[q] = (wt_llm_turn){.sequence = q, .id = 10 * n + q};
        assert_ok(wt_llm_step(s, turns, 3, next, logits[0]));
        for (int q = 0; q < 3; q++) {
            assert_ok(wt_llm_decode(one[q], 10 * n + q));
            assert_near(&f, logits[q], wt_llm_logits(one[q]), 0, "dynamic angles");
        }
    }
    assert_fails(wt_llm_shift(s, 0, 1), WT_ERR_UNSUPPORTED,
                 "llm: keys of learnt positions or dynamic angles cannot move");
    for (int q = 0; q < 3; q++) wt_llm_session_destroy(one[q]);
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

static void sequences_have_angles_of_their_own(void **state) { check_dynamic(state, WT_BACKEND_CPU); }
static void sequences_have_angles_of_their_own_on_a_gpu(void **state) { check_dynamic(state, WT_BACKEND_CUDA); }

// ---- types of the cache

/// In parts of the largest logit, against F32 on the CPU, after a prompt in two batches and ten steps. A key or value
/// is rounded by 2^-12, 2^-9, 2^-4 of itself (half a unit), and the logits of this model of noise keep a few of that;
/// tensor cores round queries and shares too.
static void check_types(void **state, wt_backend backend)
{
    static const struct {
        wt_dtype type;
        double bound;
    } types[] = {{WT_DTYPE_F32, 1e-5}, {WT_DTYPE_F16, 5e-3}, {WT_DTYPE_BF16, 4e-2}, {WT_DTYPE_F8_E4M3, 0.25}};
    enum { N = 150 };
    llm_fixture f = llm_fixture_open(state, backend, "llama"), cpu = llm_fixture_open(state, WT_BACKEND_CPU, "llama");
    const int32_t *ids = llm_fixture_prompt(3);
    for (int t = 0; t < 4; t++) {
        wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = types[t].type, .n_batch = 133}),
                       *exact = llm_fixture_session(&cpu, (wt_llm_session_config){0});
        double error = 0, peak = 0;
        assert_ok(wt_llm_prefill(s, ids, N - 10));
        assert_ok(wt_llm_prefill(exact, ids, N - 10));
        for (int k = N - 10; k < N; k++) {
            assert_ok(wt_llm_decode(s, ids[k]));
            assert_ok(wt_llm_decode(exact, ids[k]));
            for (int j = 0; j < VOCAB; j++) {
                peak = fmax(peak, fabsf(wt_llm_logits(exact)[j]));
                error = fmax(error, fabsf(wt_llm_logits(s)[j] - wt_llm_logits(exact)[j]));
            }
        }
        print_message("%-8s %.1e of the largest logit\n", wt_dtype_name(types[t].type), error / peak);
        if (!(error <= types[t].bound * peak)) fail_msg("%s: %g of %g", wt_dtype_name(types[t].type), error, peak);
        wt_llm_session_destroy(exact);
        wt_llm_session_destroy(s);
    }
    wt_llm_session *session;
    assert_fails(
        wt_llm_session_create(f.llm, &(wt_llm_session_config){.device = f.device, .kv_type = WT_DTYPE_I8}, &session),
        WT_ERR_UNSUPPORTED, "llm: keys and values of type I8, want F32, F16, BF16 or F8_E4M3");
    llm_fixture_close(&cpu);
    llm_fixture_close(&f);
}

static void caches_of_smaller_types_are_near(void **state) { check_types(state, WT_BACKEND_CPU); }
static void caches_of_smaller_types_are_near_on_a_gpu(void **state) { check_types(state, WT_BACKEND_CUDA); }

/// A trained model's surprise at its own story of 200 tokens.
static void check_story(wt_backend backend)
{
    static const struct {
        wt_dtype type;
        double bound;
    } types[] = {{WT_DTYPE_F32, 1e-4}, {WT_DTYPE_F16, 1e-3}, {WT_DTYPE_BF16, 5e-3}, {WT_DTYPE_F8_E4M3, 0.03}};
    enum { N = 200 };
    const char *path = shared_data("llm/TinyStories-656K/models/story");
    if (!path || (backend == WT_BACKEND_CUDA && !wt_device_count())) skip();
    llm_fixture f = {.backend = backend};
    int32_t ids[N] = {1};
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &f.device));
    assert_ok(wt_llm_open(path, &f.llm));
    const int vocab = wt_llm_config(f.llm)->vocab_size;
    float *logits = malloc(sizeof *logits * (size_t)vocab * N);
    wt_sampler *sampler;
    assert_ok(wt_sampler_create(&(wt_sampler_config){.temperature = 0.7, .seed = 1}, vocab, &sampler));
    double want = 0;
    for (int t = 0; t < 4; t++) {
        wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.kv_type = types[t].type});
        for (int k = 0; !t && k < N - 1; k++) { // the story is told once, with the cache in F32
            assert_ok(wt_llm_decode(s, ids[k]));
            assert_ok(wt_sampler_pick(sampler, wt_llm_logits(s), &ids[k + 1]));
        }
        assert_ok(wt_llm_session_restore(s, (wt_llm_snapshot){0}));
        assert_ok(wt_llm_verify(s, ids, N, logits));
        double nats = 0;
        for (int k = 0; k < N - 1; k++) nats -= wt_llm_logprob(logits + (size_t)k * (size_t)vocab, vocab, ids[k + 1]);
        nats /= N - 1;
        if (!t) want = nats;
        print_message("%-8s %.4f nats a token\n", wt_dtype_name(types[t].type), nats);
        if (!(fabs(nats - want) <= types[t].bound)) fail_msg("%g nats, want %g", nats, want);
        wt_llm_session_destroy(s);
    }
    wt_sampler_destroy(sampler);
    free(logits);
    llm_fixture_close(&f);
}

static void caches_of_smaller_types_tell_the_story(void **state)
{
    (void)state;
    check_story(WT_BACKEND_CPU);
}

static void caches_of_smaller_types_tell_the_story_on_a_gpu(void **state)
{
    (void)state;
    check_story(WT_BACKEND_CUDA);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(sequences_share_pages),
        IN_FOLDER(sequences_share_pages_on_a_gpu),
        IN_FOLDER(saved_tokens_go_on_elsewhere),
        IN_FOLDER(saved_tokens_go_on_elsewhere_on_a_gpu),
        IN_FOLDER(dropped_tokens_leave_the_others),
        IN_FOLDER(dropped_tokens_leave_the_others_on_a_gpu),
        IN_FOLDER(sequences_have_angles_of_their_own),
        IN_FOLDER(sequences_have_angles_of_their_own_on_a_gpu),
        IN_FOLDER(caches_of_smaller_types_are_near),
        IN_FOLDER(caches_of_smaller_types_are_near_on_a_gpu),
        cmocka_unit_test(caches_of_smaller_types_tell_the_story),
        cmocka_unit_test(caches_of_smaller_types_tell_the_story_on_a_gpu),
    };
    return cmocka_run_group_tests_name("llm sessions", tests, NULL, NULL);
}
