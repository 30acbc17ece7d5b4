// Strategies against single steps: the same tokens, on both backends and with weights of every size.
#include "../models/llm/guess.h"
#include "support/answer_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

#include <math.h>

static const char *const kinds[] = {
    [WT_LLM_AS_STORED] = "F32", [WT_LLM_FP8] = "fp8", [WT_LLM_INT8] = "int8", [WT_LLM_INT4] = "int4"};

static wt_generation guessed(answer_fixture *f, wt_strategy strategy, int sampling, wt_generator_config config,
                             answer_tokens *tokens)
{
    config.strategy = strategy;
    config.keep_guessing = true;
    return answer(f, strategy == WT_STRATEGY_DRAFT ? f->other : NULL, sampling, config, tokens);
}

/// Of a token that a GPU chose, it told the logprob; of verified ones the host does, in another order of sums.
static void assert_same_logprobs(const answer_fixture *f, const answer_tokens *got, const answer_tokens *want)
{
    if (wt_device_get_info(f->device)->backend == WT_BACKEND_CPU)
        assert_memory_equal(got->logprobs, want->logprobs, sizeof *want->logprobs * ANSWER);
    for (int k = 0; k < ANSWER; k++)
        if (!(fabs(got->logprobs[k] - want->logprobs[k]) <= 2e-6 * fmax(1, fabs(want->logprobs[k]))))
            fail_msg("token %d: logprob %.9g, want %.9g", k, got->logprobs[k], want->logprobs[k]);
}

/// A strategy gives the tokens `want`, and their logprobs, whether logits are asked for or not.
static void check_strategy(answer_fixture *f, wt_strategy strategy, int sampling, int n_guesses,
                           const answer_tokens *want)
{
    static answer_tokens got;
    wt_generation r[2];
    for (int bare = 0; bare < 2; bare++) {
        r[bare] =
            guessed(f, strategy, sampling, (wt_generator_config){.n_guesses = n_guesses, .logprobs = !bare}, &got);
        assert_int_equal(got.n, want->n);
        assert_memory_equal(got.ids, want->ids, sizeof *want->ids * ANSWER);
        if (!bare) assert_same_logprobs(f, &got, want);
    }
    print_message("%d %-10s %3d tokens, %3d steps, %3d of %3d guesses right\n", sampling, wt_strategy_name(strategy),
                  r[0].n_tokens, r[0].n_steps, r[0].n_correct, r[0].n_guessed);
    assert_int_equal(r[0].n_steps + r[0].n_correct + 1, r[0].n_tokens); // the first token is the prompt's
    const bool on_gpu = wt_device_get_info(f->device)->backend == WT_BACKEND_CUDA;
    if (sampling && on_gpu) return; // whose guesses are learned from what it draws, not from its most probable tokens
    assert_int_equal(r[1].n_steps, r[0].n_steps);
    assert_int_equal(r[1].n_correct, r[0].n_correct);
    if (sampling == 0 && strategy == WT_STRATEGY_NGRAM) assert_true(r[0].n_correct > 0);
}

typedef struct drawing {
    int sampling, n_guesses;
} drawing;

static const drawing all_drawings[] = {{0, 5}, {0, 16}, {1, 16}, {2, 5}};

/// Every strategy, for the first n drawings.
static void check_all(answer_fixture f, int n)
{
    static answer_tokens want, got;
    f.exact_guesses = true;
    for (const drawing *d = all_drawings; d < all_drawings + n; d++) {
        answer(&f, NULL, d->sampling, (wt_generator_config){.logprobs = true}, &want);
        assert_int_equal(want.n, ANSWER);
        answer(&f, NULL, d->sampling, (wt_generator_config){0}, &got); // greedy ones in one run
        assert_memory_equal(got.ids, want.ids, sizeof *want.ids * ANSWER);
        for (int strategy = WT_STRATEGY_NGRAM; strategy < WT_N_STRATEGIES; strategy++)
            check_strategy(&f, (wt_strategy)strategy, d->sampling, d->n_guesses, &want);
    }
    close_models(&f);
}

static void check_kind(void **state, wt_backend backend, wt_llm_quantization kind, int n)
{
    print_message("%s\n", kinds[kind]);
    check_all(open_models(state, backend, kind), n);
}

static void strategies_give_the_tokens_of_single_steps(void **state)
{
    check_kind(state, WT_BACKEND_CPU, WT_LLM_AS_STORED, 4);
}

/// Whose prompts may go another way than single steps.
static void also_with_bf16(void **state) { check_all(open_bf16_models(state), 4); }

static void also_with_quantised_weights(void **state)
{
    for (int kind = WT_LLM_FP8; kind <= WT_LLM_INT4; kind++)
        check_kind(state, WT_BACKEND_CPU, (wt_llm_quantization)kind, 1);
}

static void also_on_a_gpu_with_exact_guesses(void **state)
{
    for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++)
        check_kind(state, WT_BACKEND_CUDA, (wt_llm_quantization)kind, kind ? 1 : 4);
}

/// Without exact_guesses: guesses are verified by other kernels than those of single steps, and where that could make
/// another token the most probable one, single steps decide.
static void also_on_a_gpu(void **state)
{
    static answer_tokens want, got;
    for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++) {
        answer_fixture f = open_models(state, WT_BACKEND_CUDA, (wt_llm_quantization)kind);
        answer(&f, NULL, 0, (wt_generator_config){0}, &want);
        for (int k = 2 * WT_STRATEGY_NGRAM; k < 2 * WT_N_STRATEGIES; k++) {
            const wt_strategy strategy = (wt_strategy)(k / 2);
            const wt_generation r =
                guessed(&f, strategy, 0, (wt_generator_config){.n_guesses = 7, .logprobs = k % 2}, &got);
            int alike = 0;
            while (alike < ANSWER && got.ids[alike] == want.ids[alike]) alike++;
            print_message("%s %s: %d tokens alike, %d of %d guesses right, %d in doubt, %d steps repeated\n",
                          kinds[kind], wt_strategy_name(strategy), alike, r.n_correct, r.n_guessed, r.n_doubtful,
                          r.n_repeated);
            assert_int_equal(got.n, ANSWER);
            assert_int_equal(alike, ANSWER);
        }
        close_models(&f);
    }
}

/// With rough_guesses the first token that differs was the next in probability, and almost as probable: vectors of
/// F32 weights are F32 either way, those of smaller ones are rounded to BF16 for several tokens (test_llm_gguf.c: up to
/// 4 % of the largest logit).
static void with_rough_guesses_near_ties_may_differ(void **state)
{
    static answer_tokens want, got;
    for (int kind = WT_LLM_AS_STORED; kind <= WT_LLM_INT4; kind++) {
        const double bound = kind ? 0.5 : 1e-3;
        answer_fixture f = open_models(state, WT_BACKEND_CUDA, (wt_llm_quantization)kind);
        f.rough_guesses = true;
        answer(&f, NULL, 0, (wt_generator_config){.n_top = 2}, &want);
        for (int strategy = WT_STRATEGY_NGRAM; strategy < WT_N_STRATEGIES; strategy++) {
            int k = 0;
            guessed(&f, (wt_strategy)strategy, 0, (wt_generator_config){.n_guesses = 7}, &got);
            while (k < ANSWER && got.ids[k] == want.ids[k]) k++;
            const double gap = k < ANSWER ? want.logprobs[k] - want.second_logprobs[k] : 0;
            print_message("%s %s: %d tokens alike, then %.4f apart\n", kinds[kind],
                          wt_strategy_name((wt_strategy)strategy), k, gap);
            if (k == ANSWER) continue;
            assert_int_equal(got.ids[k], want.seconds[k]);
            assert_true(gap <= bound);
        }
        close_models(&f);
    }
}

/// Where leads below `doubt` are decided by single steps. On the CPU these choose what guesses would have.
static void check_doubt(answer_fixture *f, wt_strategy strategy, bool logprobs, float doubt, const answer_tokens *want,
                        wt_generation *r)
{
    static answer_tokens got;
    *r = guessed(f, strategy, 0, (wt_generator_config){.n_guesses = 6, .logprobs = logprobs, .doubt = doubt}, &got);
    print_message("%-10s doubt %g: %d steps, %d guesses right, %d tokens in doubt, %d steps repeated\n",
                  wt_strategy_name(strategy), (double)doubt, r->n_steps, r->n_correct, r->n_doubtful, r->n_repeated);
    assert_int_equal(got.n, want->n);
    assert_memory_equal(got.ids, want->ids, sizeof *want->ids * ANSWER);
    assert_int_equal(r->n_steps + r->n_correct + 1, r->n_tokens);
    assert_true(r->n_repeated <= ANSWER - 1); // no position a third time
    assert_int_equal(r->n_differing, 0);
}

/// Every choice in doubt: the first after a verified batch is made by a single step, and its guesses are not used. Some
/// in doubt: single steps go back over guesses that were right.
static void doubtful_tokens_are_decided_by_single_steps(void **state)
{
    static answer_tokens want;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    answer(&f, NULL, 0, (wt_generator_config){0}, &want);
    for (int k = 0; k < 2 * WT_N_STRATEGIES; k++) {
        const wt_strategy strategy = (wt_strategy)(k / 2);
        wt_generation all, some;
        check_doubt(&f, strategy, k % 2, 2, &want, &all);
        check_doubt(&f, strategy, k % 2, 0.01f, &want, &some);
        if (strategy == WT_STRATEGY_SINGLE) {
            assert_int_equal(all.n_doubtful, 0);
            continue;
        }
        assert_int_equal(all.n_correct, 0);
        assert_true(all.n_doubtful > 0);
        assert_int_equal(all.n_repeated, all.n_doubtful);
        assert_true(some.n_doubtful <= all.n_doubtful);
        if (strategy != WT_STRATEGY_NGRAM) continue;
        assert_true(some.n_correct > 0);
        assert_true(some.n_doubtful > 0);
        assert_true(some.n_repeated > some.n_doubtful);
    }
    close_models(&f);
}

/// Where the text ends before there are enough guesses, it is taken to go round.
static void n_grams_of_a_text_that_goes_round_never_end(void **state)
{
    enum { MOST = 8 };
    static const int32_t ids[] = {7, 1, 2, 3, 1, 2, 3}, same[] = {7, 4, 4, 4};
    wt__guesser g = {.strategy = WT_STRATEGY_NGRAM};
    int32_t guesses[MOST];
    int n;
    (void)state;
    assert_ok(wt__guess(&g, ids, 7, MOST, guesses, &n));
    assert_int_equal(n, MOST);
    for (int k = 0; k < MOST; k++) assert_int_equal(guesses[k], 1 + k % 3);
    assert_ok(wt__guess(&g, same, 4, MOST, guesses, &n));
    assert_int_equal(n, MOST);
    for (int k = 0; k < MOST; k++) assert_int_equal(guesses[k], 4);
    assert_ok(wt__guess(&g, ids, 4, MOST, guesses, &n));
    assert_int_equal(n, 0);
}

/// A model that drafts for itself is always right, and so are all of its layers.
static void a_perfect_draft_is_always_right(void **state)
{
    static answer_tokens t;
    answer_fixture f = open_models(state, WT_BACKEND_CPU, WT_LLM_AS_STORED);
    const wt_generation draft = answer(
        &f, f.llm, 0, (wt_generator_config){.strategy = WT_STRATEGY_DRAFT, .n_guesses = 6, .keep_guessing = true}, &t);
    assert_int_equal(draft.n_steps, (ANSWER - 1 + 6) / 7);
    assert_int_equal(draft.n_correct, ANSWER - 1 - draft.n_steps);
    const wt_generation early =
        answer(&f, NULL, 0,
               (wt_generator_config){
                   .strategy = WT_STRATEGY_EARLY, .n_draft_layers = 2, .n_guesses = 6, .keep_guessing = true},
               &t);
    assert_int_equal(early.n_steps, draft.n_steps);
    close_models(&f);
}

/// Sixteen wrong guesses a step cost more than they give. The time of single steps is taken while others use the
/// processors too, so one answer of ten has to show it.
static void check_payoff(void **state, wt_backend backend)
{
    static answer_tokens t;
    answer_fixture f = open_models(state, backend, WT_LLM_AS_STORED);
    wt_generation r = {.n_switched_off = 0};
    for (int k = 0; k < 10 && !r.n_switched_off; k++)
        r = answer(&f, NULL, 1,
                   (wt_generator_config){.strategy = WT_STRATEGY_JACOBI, .n_guesses = 16, .max_tokens = 250}, &t);
    print_message("switched off %d times, %d of %d guesses right\n", r.n_switched_off, r.n_correct, r.n_guessed);
    assert_true(r.n_switched_off >= 1);
    assert_true(r.n_guessed < 16 * 249); // when it went on
    close_models(&f);
}

static void what_does_not_pay_is_switched_off(void **state) { check_payoff(state, WT_BACKEND_CPU); }
static void what_does_not_pay_is_switched_off_on_a_gpu(void **state) { check_payoff(state, WT_BACKEND_CUDA); }

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(strategies_give_the_tokens_of_single_steps),
        IN_FOLDER(also_with_bf16),
        IN_FOLDER(also_with_quantised_weights),
        IN_FOLDER(also_on_a_gpu_with_exact_guesses),
        IN_FOLDER(also_on_a_gpu),
        IN_FOLDER(with_rough_guesses_near_ties_may_differ),
        cmocka_unit_test(n_grams_of_a_text_that_goes_round_never_end),
        IN_FOLDER(doubtful_tokens_are_decided_by_single_steps),
        IN_FOLDER(a_perfect_draft_is_always_right),
        IN_FOLDER(what_does_not_pay_is_switched_off),
        IN_FOLDER(what_does_not_pay_is_switched_off_on_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
