// Tokens that are chosen where the step runs, on both backends: in runs, in steps of several sequences, after guesses.
#include "support/audio_files.h"
#include "support/llm_session.h"
#include "support/testing.h"

#include <math.h>
#include <string.h>

// ---- tokens that are drawn where the step runs

static const wt_logit_bias biases[] = {{3, 2}, {5, -INFINITY}};

static const wt_sampler_config samplings[] = {
    {.temperature = 0.9, .seed = 3},
    {.temperature = 1, .top_k = 20, .top_p = 0.9, .min_p = 0.02, .seed = 4},
    {.temperature = 1, .typical_p = 0.8, .seed = 5},
    {.temperature = 0, .repetition_penalty = 1.3},
    {.temperature = 1, .repetition_penalty = 1.2, .presence_penalty = 0.2, .frequency_penalty = 0.3, .seed = 6},
    {.temperature = 1.2, .top_k = 30, .biases = biases, .n_biases = 2, .seed = 7},
};
enum { N_SAMPLINGS = sizeof samplings / sizeof *samplings };

static wt_sampler *sampler_of(int which)
{
    wt_sampler *sampler;
    assert_ok(wt_sampler_create(&samplings[which % N_SAMPLINGS], VOCAB, &sampler));
    wt_sampler_see(sampler, llm_fixture_prompt(which), 10);
    return sampler;
}

typedef struct listener {
    wt_llm_pick picks[POSITIONS];
    int n, last; ///< heard, and after how many to stop
} listener;

static bool listen(void *user, const wt_llm_pick *pick)
{
    listener *l = user;
    l->picks[l->n++] = *pick;
    return l->n != l->last;
}

static void assert_told(const wt_llm_pick *got, const float *logits, int n_top, int at)
{
    wt_llm_pick want = {.id = got->id};
    wt_llm_tell(logits, VOCAB, n_top, &want);
    if (!(fabsf(got->logprob - want.logprob) <= 1e-5f))
        fail_msg("token %d: logprob %g, want %g", at, (double)got->logprob, (double)want.logprob);
    assert_int_equal(got->n_top, n_top);
    for (int k = 0; k < n_top; k++) {
        assert_int_equal(got->top_ids[k], want.top_ids[k]);
        if (!(fabsf(got->top_logprobs[k] - want.top_logprobs[k]) <= 1e-5f))
            fail_msg("token %d, number %d: %g, want %g", at, k, (double)got->top_logprobs[k],
                     (double)want.top_logprobs[k]);
    }
}

/// The same tokens as a sampler that gets the logits of single steps; runs that end early leave the sampler where it
/// would be, and a second run, and one of another sampler in between, go on from there.
static void check_run(const llm_fixture *f, int which)
{
    enum { N = 60, FIRST = 23 };
    wt_llm_session *run = llm_fixture_session(f, (wt_llm_session_config){0}),
                   *single = llm_fixture_session(f, (wt_llm_session_config){0});
    wt_sampler *a = sampler_of(which), *b = sampler_of(which), *other = sampler_of(which + 1);
    static listener l;
    const int32_t *prompt = llm_fixture_prompt(which);
    l = (listener){.last = FIRST};
    wt_llm_run_config config = {
        .n_tokens = N, .sampler = a, .logprobs = true, .n_top = which % 2 ? 5 : 0, .on_token = listen, .user = &l};
    assert_ok(wt_llm_prefill(run, prompt, 9));
    assert_ok(wt_llm_run(run, prompt[9], &config));
    assert_int_equal(l.n, FIRST);
    const wt_llm_snapshot here = wt_llm_session_snapshot(run);
    assert_ok(wt_llm_run(run, 1, &(wt_llm_run_config){.n_tokens = 5, .sampler = other}));
    assert_ok(wt_llm_session_restore(run, here));
    config.n_tokens = N - FIRST;
    l.last = 0;
    assert_ok(wt_llm_run(run, l.picks[FIRST - 1].id, &config));
    assert_int_equal(l.n, N);
    assert_ok(wt_llm_prefill(single, prompt, 9));
    for (int k = 0; k < N; k++) {
        int32_t want;
        assert_ok(wt_llm_decode(single, k ? l.picks[k - 1].id : prompt[9]));
        assert_ok(wt_sampler_pick(b, wt_llm_logits(single), &want));
        if (l.picks[k].id != want) fail_msg("sampling %d, token %d: %d, want %d", which, k, l.picks[k].id, want);
        assert_told(&l.picks[k], wt_llm_logits(single), config.n_top, k);
    }
    wt_sampler_destroy(a);
    wt_sampler_destroy(b);
    wt_sampler_destroy(other);
    wt_llm_session_destroy(run);
    wt_llm_session_destroy(single);
}

static void check_runs(void **state, wt_backend backend)
{
    llm_fixture f = llm_fixture_open(state, backend, "llama");
    for (int k = 0; k < N_SAMPLINGS; k++) check_run(&f, k);
    llm_fixture_close(&f);
}

static void a_run_draws_what_the_sampler_draws(void **state) { check_runs(state, WT_BACKEND_CPU); }
static void a_run_on_a_gpu_draws_what_the_sampler_draws(void **state) { check_runs(state, WT_BACKEND_CUDA); }

/// Sequences with samplers of their own, in changing order, some greedy, some told of.
static void check_steps(void **state, wt_backend backend)
{
    enum { SEQUENCES = 5, N = 20 };
    static float logits[SEQUENCES][VOCAB];
    llm_fixture f = llm_fixture_open(state, backend, "llama");
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.n_sequences = SEQUENCES});
    wt_sampler *a[SEQUENCES] = {0}, *b[SEQUENCES] = {0};
    int32_t ids[SEQUENCES], next[SEQUENCES];
    for (int q = 0; q < SEQUENCES; q++) {
        assert_ok(wt_llm_select(s, q));
        assert_ok(wt_llm_prefill(s, llm_fixture_prompt(q), 5 + q));
        ids[q] = q;
        if (!q) continue;
        a[q] = sampler_of(q);
        b[q] = sampler_of(q);
    }
    for (int n = 0; n < N; n++) {
        wt_llm_turn turns[SEQUENCES];
        wt_llm_pick picks[SEQUENCES];
        int n_turns = 0;
        for (int k = 0; k < SEQUENCES; k++) {
            const int q = (k + n) % SEQUENCES;
            if (n % 3 == 1 && q == 2) continue;
            turns[n_turns++] = (wt_llm_turn){
                .sequence = q, .id = ids[q], .sampler = a[q], .pick = q % 2 ? &picks[q] : NULL, .n_top = q};
        }
        assert_ok(wt_llm_step(s, turns, n_turns, next, logits[0]));
        for (int k = 0; k < n_turns; k++) {
            const int q = turns[k].sequence;
            wt_llm_pick best = {0};
            int32_t want;
            wt_llm_tell(logits[k], VOCAB, 1, &best);
            want = best.top_ids[0];
            if (b[q]) assert_ok(wt_sampler_pick(b[q], logits[k], &want));
            if (next[k] != want) fail_msg("step %d, sequence %d: token %d, want %d", n, q, next[k], want);
            if (q % 2) assert_told(&picks[q], logits[k], q, n);
            ids[q] = next[k];
        }
    }
    int32_t id;
    assert_fails(wt_llm_step(s, &(wt_llm_turn){.n_top = 21}, 1, &id, NULL), WT_ERR_BAD_ARG,
                 "llm: 21 most probable tokens, want 0..20");
    wt_sampler *odd;
    assert_ok(wt_sampler_create(&samplings[0], 7, &odd));
    assert_fails(wt_llm_step(s, &(wt_llm_turn){.sampler = odd}, 1, &id, NULL), WT_ERR_BAD_ARG,
                 "llm: a sampler of 7 tokens, want one of 128");
    wt_sampler_destroy(odd);
    for (int q = 0; q < SEQUENCES; q++) {
        wt_sampler_destroy(a[q]);
        wt_sampler_destroy(b[q]);
    }
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

static void steps_draw_for_each_sequence(void **state) { check_steps(state, WT_BACKEND_CPU); }
static void steps_on_a_gpu_draw_for_each_sequence(void **state) { check_steps(state, WT_BACKEND_CUDA); }

// ---- the most probable tokens after guesses

static int32_t largest_of(const float *x)
{
    int best = 0;
    for (int k = 1; k < VOCAB; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

/// They are those of the logits, also between steps of as many sequences.
static void check_greedy(void **state, wt_backend backend)
{
    enum { N = 7, TIMES = 4 };
    llm_fixture f = llm_fixture_open(state, backend, "llama");
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.n_sequences = N});
    const int32_t *ids = llm_fixture_prompt(5);
    float logits[N][VOCAB];
    assert_ok(wt_llm_prefill(s, ids, 30));
    const wt_llm_snapshot at = wt_llm_session_snapshot(s);
    for (int k = 0; k < TIMES; k++) { // a batch is recorded when it comes again
        int32_t next[N], best[N];
        wt_llm_turn turns[N];
        assert_ok(wt_llm_verify(s, ids + 30 + k, N, logits[0]));
        assert_ok(wt_llm_session_restore(s, at));
        assert_ok(wt_llm_verify_greedy(s, ids + 30 + k, N, next, NULL));
        assert_null(wt_llm_logits(s));
        assert_int_equal(wt_llm_position(s), 30 + N);
        assert_ok(wt_llm_session_restore(s, at));
        for (int t = 0; t < N; t++)
            if (next[t] != largest_of(logits[t]))
                fail_msg("round %d, token %d: %d, want %d", k, t, next[t], largest_of(logits[t]));
        for (int t = 0; t < N; t++) turns[t] = (wt_llm_turn){.sequence = t, .id = ids[30 + k]};
        assert_ok(wt_llm_step(s, turns, N, best, NULL));
        if (best[0] != next[0]) fail_msg("round %d: a step gives %d, guesses %d", k, best[0], next[0]);
        assert_ok(wt_llm_session_restore(s, at));
    }
    assert_fails(wt_llm_verify_greedy(s, ids, 0, NULL, NULL), WT_ERR_BAD_ARG, "llm: 0 tokens, want 1 or more");
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

static void guesses_are_followed_by_the_most_probable_tokens(void **state) { check_greedy(state, WT_BACKEND_CPU); }
static void guesses_on_a_gpu_are_followed_by_the_most_probable_tokens(void **state)
{
    check_greedy(state, WT_BACKEND_CUDA);
}

/// What a sampler of that state chooses.
static int32_t chosen_after(const wt_sampler_config *config, const int32_t *taken, int n, const int32_t *guesses,
                            int n_guesses, const float *logits)
{
    wt_sampler *sampler;
    int32_t id;
    assert_ok(wt_sampler_create(config, VOCAB, &sampler));
    for (int k = 0; k < n; k++) wt_sampler_took(sampler, taken[k]);
    for (int k = 0; k < n_guesses; k++) wt_sampler_took(sampler, guesses[k]);
    assert_ok(wt_sampler_pick(sampler, logits, &id));
    wt_sampler_destroy(sampler);
    return id;
}

/// With numbers and counts that go on from guess to guess, and from what was taken of the guesses before.
static void check_drawn(void **state, wt_backend backend)
{
    enum { N = 7, TIMES = 6 };
    static const wt_sampler_config configs[] = {
        {.temperature = 1, .seed = 3},
        {.temperature = 0, .repetition_penalty = 1.4},
        {.temperature = 0.9, .top_p = 0.95, .seed = 5, .repetition_penalty = 1.2, .frequency_penalty = 0.6},
    };
    llm_fixture f = llm_fixture_open(state, backend, "llama");
    wt_llm_session *s = llm_fixture_session(&f, (wt_llm_session_config){.n_sequences = 2});
    const int32_t *ids = llm_fixture_prompt(5);
    float logits[N][VOCAB];
    assert_ok(wt_llm_prefill(s, ids, 30));
    const wt_llm_snapshot at = wt_llm_session_snapshot(s);
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        wt_sampler *sampler;
        int32_t next[N], taken[TIMES * N];
        int n_taken = 0;
        assert_ok(wt_sampler_create(&configs[c], VOCAB, &sampler));
        for (int k = 0; k < TIMES; k++) {
            const int32_t *now = ids + 30 + k;
            assert_ok(wt_llm_verify(s, now, N, logits[0]));
            assert_ok(wt_llm_session_restore(s, at));
            for (int twice = 0; twice < 2; twice++) { // the sampler stays as it is
                assert_ok(wt_llm_verify_drawn(s, now, N, sampler, next));
                assert_null(wt_llm_logits(s));
                assert_int_equal(wt_llm_position(s), 30 + N);
                assert_ok(wt_llm_session_restore(s, at));
                for (int t = 0; t < N; t++) {
                    const int32_t want = chosen_after(&configs[c], taken, n_taken, now + 1, t, logits[t]);
                    if (next[t] != want)
                        fail_msg("sampler %zu, round %d, token %d: %d, want %d", c, k, t, next[t], want);
                }
            }
            for (int t = 0; t < k; t++) wt_sampler_took(sampler, taken[n_taken++] = next[t]);
        }
        wt_sampler_destroy(sampler);
    }
    wt_sampler *other;
    assert_ok(wt_sampler_create(&configs[0], VOCAB + 1, &other));
    assert_int_equal(wt_llm_verify_drawn(s, ids, 1, other, NULL), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "llm: a sampler of"));
    wt_sampler_destroy(other);
    wt_llm_session_destroy(s);
    llm_fixture_close(&f);
}

static void guesses_are_followed_by_what_the_sampler_draws(void **state) { check_drawn(state, WT_BACKEND_CPU); }
static void guesses_on_a_gpu_are_followed_by_what_the_sampler_draws(void **state)
{
    check_drawn(state, WT_BACKEND_CUDA);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_run_draws_what_the_sampler_draws),
        IN_FOLDER(a_run_on_a_gpu_draws_what_the_sampler_draws),
        IN_FOLDER(steps_draw_for_each_sequence),
        IN_FOLDER(steps_on_a_gpu_draw_for_each_sequence),
        IN_FOLDER(guesses_are_followed_by_the_most_probable_tokens),
        IN_FOLDER(guesses_on_a_gpu_are_followed_by_the_most_probable_tokens),
        IN_FOLDER(guesses_are_followed_by_what_the_sampler_draws),
        IN_FOLDER(guesses_on_a_gpu_are_followed_by_what_the_sampler_draws),
    };
    return cmocka_run_group_tests_name("llm chosen tokens", tests, NULL, NULL);
}
