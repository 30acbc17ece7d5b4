// Choosing tokens: the CPU's sampler against the distributions it is to follow, and a GPU's kernels against the
// sampler.
#include "../models/llm/gpu_sample.h"
#include "support/device_check.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, MOST = 151936 };

// ---- distributions

/// Of draws that follow `p` [n], where every n_draws * p[k] is 5 or more.
static double chi_square(const int *counts, const double *p, int n, int n_draws)
{
    double sum = 0;
    for (int k = 0; k < n; k++) {
        const double want = p[k] * n_draws;
        if (p[k] == 0 && counts[k]) return INFINITY;
        if (p[k] > 0) sum += (counts[k] - want) * (counts[k] - want) / want;
    }
    return sum;
}

/// 40 tokens whose logits are a straight line. 99.99 % of chi-squares of n degrees lie below n + 5.5 sqrt(2 n)
/// (39: 87.9; by Wilson and Hilferty's approximation 81); seeds are fixed, so the test does not change from run to run.
static void draws_pass_a_chi_square_test(void **state)
{
    (void)state;
    enum { N = 40, DRAWS = 40000 };
    static const struct {
        const char *what;
        wt_sampler_config config;
        int n_left; ///< of the most probable ones
    } cases[] = {
        {"all", {.temperature = 1}, 40},
        {"colder", {.temperature = 0.8, .seed = 5}, 40},
        {"top-k", {.temperature = 1, .top_k = 12, .seed = 6}, 12},
        {"min-p", {.temperature = 2, .min_p = 0.5, .seed = 7}, 14}, // 0.1 k / 2 <= log(2): k <= 13
    };
    float logits[N];
    for (int k = 0; k < N; k++) logits[k] = 3 - 0.1f * (float)((k * 17) % N); // token k has rank 17 k mod 40
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int counts[N] = {0};
        double p[N] = {0}, total = 0;
        wt_sampler *s;
        assert_ok(wt_sampler_create(&cases[c].config, N, &s));
        for (int n = 0; n < DRAWS; n++) {
            int32_t id;
            assert_ok(wt_sampler_pick(s, logits, &id));
            counts[id]++;
        }
        wt_sampler_destroy(s);
        for (int k = 0; k < N; k++)
            if (k * 17 % N < cases[c].n_left) total += p[k] = exp(logits[k] / cases[c].config.temperature);
        for (int k = 0; k < N; k++) p[k] /= total;
        const double met = chi_square(counts, p, N, DRAWS), degrees = cases[c].n_left - 1;
        print_message("%-8s chi-square %.1f of %.0f degrees\n", cases[c].what, met, degrees);
        if (!(met < degrees + 5.5 * sqrt(2 * degrees))) fail_msg("%s: chi-square %g", cases[c].what, met);
    }
}

/// A row of tests/golden/make_sampling.py: what random settings leave of random logits by transformers.
typedef struct recorded {
    float temperature, top_k, top_p, min_p, typical_p, repetition_penalty, bias_id, bias;
    float logits[16], seen[16], p[16];
} recorded;

/// Draws, each of them the first of an answer.
static void count_draws(const recorded *r, int n_draws, int *counts)
{
    const wt_logit_bias bias = {.id = (int32_t)r->bias_id, .bias = r->bias};
    const wt_sampler_config config = {.temperature = r->temperature,
                                      .top_k = (int)r->top_k,
                                      .top_p = r->top_p,
                                      .min_p = r->min_p,
                                      .typical_p = r->typical_p,
                                      .repetition_penalty = r->repetition_penalty,
                                      .biases = &bias,
                                      .n_biases = r->bias_id >= 0,
                                      .seed = 1};
    wt_sampler *s;
    assert_ok(wt_sampler_create(&config, 16, &s));
    for (int n = 0; n < n_draws; n++) {
        int32_t id;
        wt_sampler_forget(s);
        for (int32_t k = 0; k < 16; k++)
            if (r->seen[k] > 0) wt_sampler_see(s, &k, 1);
        assert_ok(wt_sampler_pick(s, r->logits, &id));
        counts[id]++;
    }
    wt_sampler_destroy(s);
}

/// The same tokens are left, with the same probabilities: shares of the draws are within 5.5 standard deviations.
static void draws_follow_transformers_definitions(void **state)
{
    (void)state;
    enum { DRAWS = 10000 };
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    char path[1024];
    npy golden;
    snprintf(path, sizeof path, "%s/llm/sampling.npy", folder ? folder : "tests/golden");
    assert_ok(npy_read(path, &golden));
    assert_int_equal(golden.shape[1] * sizeof(float), sizeof(recorded));
    for (size_t row = 0; row < golden.shape[0]; row++) {
        const recorded *r = (const recorded *)golden.data + row;
        int counts[16] = {0};
        count_draws(r, DRAWS, counts);
        for (int k = 0; k < 16; k++) {
            const double share = (double)counts[k] / DRAWS, p = r->p[k], bound = 5.5 * sqrt(p * (1 - p) / DRAWS);
            if (fabs(share - p) > bound + (p > 0 && p < 1 ? 5.0 / DRAWS : 1e-6))
                fail_msg("row %zu, token %d: %g of the draws, want %g", row, k, share, p);
        }
    }
    npy_free(&golden);
}

/// log2(e) is rounded to 32 bits, 7e-11 of depths up to 28, and the series ends at 2^-29.
static void weights_are_exponentials(void **state)
{
    (void)state;
    assert_int_equal(wt_sample_weight(0), WT_SAMPLE_ONE);
    uint64_t before = WT_SAMPLE_ONE;
    for (unsigned depth = 0; depth < WT_SAMPLE_DEEPEST; depth += 12345) {
        const double want = exp(-(double)depth / (1 << WT_SAMPLE_DEPTH_BITS)) * (double)WT_SAMPLE_ONE;
        const uint64_t got = wt_sample_weight(depth);
        if (fabs((double)got - want) > 1 + want * 4e-9) fail_msg("depth %u: %g, want %g", depth, (double)got, want);
        assert_true(got <= before);
        before = got;
    }
    assert_int_equal(wt_sample_weight(WT_SAMPLE_OUT), 0);
}

// ---- a GPU's kernels

typedef struct rig {
    wt_device *device;
    wt_stream *stream;
    wt__gpu_drawer drawer;
    wt_buffer *memory, *logits, *io;
    wt_llm_sample_args args;
    int vocab, n_sms;
} rig;

typedef struct io {
    wt_llm_draw draws[ROWS];
    wt_llm_odds odds[ROWS];
    wt_llm_token tokens[ROWS];
    int32_t chosen[WT_LLM_MAX_CHOSEN];
} io;

static rig start(void **state, int vocab)
{
    rig r = {.device = device_of(state), .vocab = vocab};
    r.n_sms = wt_device_get_info(r.device)->n_sms;
    size_t zeroed;
    assert_ok(wt_stream_create(r.device, NULL, &r.stream));
    assert_ok(wt__gpu_drawer_create(r.device, &r.drawer));
    assert_ok(wt_buffer_create(r.device, WT_MEMORY_DEVICE, wt__gpu_draw_layout(ROWS, ROWS, vocab, 0, &r.args, &zeroed),
                               &r.memory));
    assert_ok(wt_buffer_create(r.device, WT_MEMORY_DEVICE, sizeof(float) * ROWS * (size_t)vocab, &r.logits));
    assert_ok(wt_buffer_create(r.device, WT_MEMORY_DEVICE, sizeof(io), &r.io));
    wt__gpu_draw_layout(ROWS, ROWS, vocab, wt_buffer_address(r.memory), &r.args, &zeroed);
    const uintptr_t at = wt_buffer_address(r.io);
    r.args.logits = (const float *)wt_buffer_address(r.logits);
    r.args.draws = (wt_llm_draw *)(at + offsetof(io, draws));
    r.args.odds = (wt_llm_odds *)(at + offsetof(io, odds));
    r.args.tokens = (wt_llm_token *)(at + offsetof(io, tokens));
    return r;
}

static void stop(rig *r)
{
    wt_buffer_destroy(r->io);
    wt_buffer_destroy(r->logits);
    wt_buffer_destroy(r->memory);
    wt__gpu_drawer_destroy(&r->drawer);
    wt_stream_destroy(r->stream);
}

/// All rows choose `n` times by their samplers' settings and tallies of this moment; tokens [n][ROWS], odds of the
/// last.
static void choose(rig *r, wt_sampler *const *samplers, const float *logits, int n, int n_top, int32_t *tokens,
                   wt_llm_odds *odds)
{
    io all = {0};
    const size_t row = sizeof(wt_llm_tally) * (size_t)r->vocab;
    for (int k = 0; k < ROWS; k++) {
        const wt_llm_tally *tallies = wt__sampler_tallies(samplers[k]);
        all.draws[k] = *wt__sampler_draw(samplers[k]);
        all.draws[k].tally = tallies ? k : -1;
        all.draws[k].n_top = n_top;
        all.draws[k].logprobs = true;
        const size_t at = (size_t)((uintptr_t)r->args.tallies - wt_buffer_address(r->memory)) + row * (size_t)k;
        if (tallies) assert_ok(wt_stream_upload(r->stream, r->memory, at, tallies, row));
    }
    assert_ok(wt_stream_upload(r->stream, r->io, 0, &all, sizeof all));
    assert_ok(wt_stream_upload(r->stream, r->logits, 0, logits, sizeof(float) * ROWS * (size_t)r->vocab));
    for (int i = 0; i < n; i++) {
        assert_ok(wt__gpu_draw(&r->drawer, r->stream, &r->args, ROWS, r->n_sms));
        assert_ok(wt_stream_download(r->stream, &all, r->io, 0, sizeof all));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < ROWS; k++) {
            tokens[i * ROWS + k] = all.tokens[k].id;
            assert_int_equal(all.tokens[k].place, i + 1);
        }
    }
    if (odds) memcpy(odds, all.odds, sizeof all.odds);
}

/// Rows of different kinds: a bell, a bell with a few peaks, and many equal ones.
static void make_logits(float *logits, int vocab, uint64_t *seed)
{
    for (int k = 0; k < ROWS * vocab; k++) {
        const float x = 1.5f * (noise(seed) + noise(seed) + noise(seed) + noise(seed));
        const int row = k / vocab;
        logits[k] = row == 1 && k % 97 == 3 ? x + 6 : row == 2 ? floorf(x) : x;
    }
}

static const wt_logit_bias biases[] = {{3, 4}, {5, -INFINITY}, {3, 1.5f}, {7, -2}};

static const wt_sampler_config settings[] = {
    {.temperature = 0},
    {.temperature = 1},
    {.temperature = 0.7, .top_k = 20, .top_p = 0.8},
    {.temperature = 1, .top_k = 1},
    {.temperature = 1, .top_p = 0.9},
    {.temperature = 1.3, .top_p = 0.999},
    {.temperature = 1, .min_p = 0.05},
    {.temperature = 2, .min_p = 0.1, .top_p = 0.95, .top_k = 700},
    {.temperature = 1, .typical_p = 0.5},
    {.temperature = 0.9, .typical_p = 0.95, .top_k = 100},
    {.temperature = 1, .typical_p = 0.2, .top_p = 0.9, .min_p = 0.01},
    {.temperature = 100, .top_p = 0.5},
    {.temperature = 0.01},
    {.temperature = 0, .repetition_penalty = 1.3},
    {.temperature = 1, .repetition_penalty = 1.2, .presence_penalty = 0.3, .frequency_penalty = 0.7},
    {.temperature = 0.8, .top_k = 5, .frequency_penalty = -0.4, .biases = biases, .n_biases = 4},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

/// The same tokens, number for number, with counts that go on on the device.
static void check_settings(rig *r, const float *logits, int first, int n, uint64_t seed)
{
    wt_sampler *samplers[ROWS];
    int32_t got[8 * ROWS], seen[4] = {1, 3, 5, 100};
    for (int k = 0; k < ROWS; k++) {
        wt_sampler_config config = settings[(first + k) % N_SETTINGS];
        config.seed = seed + (uint64_t)k * 0x9e3779b97f4a7c15u;
        assert_ok(wt_sampler_create(&config, r->vocab, &samplers[k]));
        wt_sampler_see(samplers[k], seen, 4);
    }
    choose(r, samplers, logits, n, 0, got, NULL);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ROWS; k++) {
            int32_t want;
            assert_ok(wt_sampler_pick(samplers[k], logits + (size_t)k * (size_t)r->vocab, &want));
            if (got[i * ROWS + k] != want)
                fail_msg("vocabulary %d, setting %d, seed %llu, row %d, draw %d: token %d, want %d", r->vocab,
                         (first + k) % N_SETTINGS, (unsigned long long)seed, k, i, got[i * ROWS + k], want);
        }
    for (int k = 0; k < ROWS; k++) wt_sampler_destroy(samplers[k]);
}

static void a_gpu_draws_the_tokens_of_the_sampler(void **state)
{
    static const int vocabs[] = {101, 2048, MOST}, sms[] = {16, 1}; // four blocks a row, and one
    static float logits[ROWS * MOST];
    uint64_t seed = 3;
    for (int v = 0; v < 3; v++) {
        rig r = start(state, vocabs[v]);
        for (int n = 0; n < (v < 2 ? 6 : 3); n++) {
            make_logits(logits, vocabs[v], &seed);
            r.n_sms = n % 3 ? sms[n % 3 - 1] : wt_device_get_info(r.device)->n_sms;
            for (int first = 0; first < N_SETTINGS; first++)
                check_settings(&r, logits, first, v < 2 ? 6 : 2, seed + (uint64_t)first);
        }
        stop(&r);
    }
}

/// Rows that follow each other: each counts what was chosen since the tallies were made and the guesses before it.
static void check_guesses(rig *r, const wt_sampler_config *config, const float *logits)
{
    const int32_t guesses[ROWS] = {0, 3, 17};
    const size_t bytes = sizeof(wt_llm_tally) * (size_t)r->vocab;
    const size_t tallies_at = (size_t)((uintptr_t)r->args.tallies - wt_buffer_address(r->memory));
    int32_t since[WT__SAMPLER_LOG];
    wt_sampler *sampler;
    assert_ok(wt_sampler_create(config, r->vocab, &sampler));
    uint64_t serial = wt__sampler_serial(sampler);
    assert_ok(wt_stream_upload(r->stream, r->memory, tallies_at, wt__sampler_tallies(sampler), bytes));
    r->args.chosen = (const int *)(wt_buffer_address(r->io) + offsetof(io, chosen));
    for (int round = 0; round < 4; round++) {
        const int n = wt__sampler_since(sampler, serial, since);
        io all = {0};
        assert_int_equal(n, round ? round : 0);
        memcpy(all.chosen, since, sizeof *since * (size_t)n);
        for (int k = 0; k < ROWS; k++) {
            all.draws[k] = *wt__sampler_draw(sampler);
            if (all.draws[k].depth_scale > 0) all.draws[k].number += (unsigned)k;
            all.draws[k].tally = 0;
            all.draws[k].n_chosen = n + k;
            all.draws[k].n_settled = n;
            if (k) all.chosen[n + k - 1] = guesses[k];
        }
        serial = wt__sampler_serial(sampler);
        assert_ok(wt_stream_upload(r->stream, r->io, 0, &all, sizeof all));
        assert_ok(wt_stream_upload(r->stream, r->logits, 0, logits, sizeof(float) * ROWS * (size_t)r->vocab));
        assert_ok(wt__gpu_draw(&r->drawer, r->stream, &r->args, ROWS, r->n_sms));
        assert_ok(wt_stream_download(r->stream, &all, r->io, 0, sizeof all));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < ROWS; k++) {
            int32_t want;
            assert_ok(wt__sampler_pick_after(sampler, logits + (size_t)k * (size_t)r->vocab, guesses + 1, k, &want));
            if (all.tokens[k].id != want)
                fail_msg("round %d, row %d: token %d, want %d", round, k, all.tokens[k].id, want);
        }
        for (int k = 0; k <= round; k++) wt_sampler_took(sampler, all.tokens[k % ROWS].id);
    }
    r->args.chosen = NULL;
    wt_sampler_destroy(sampler);
}

static void a_gpu_draws_after_guesses(void **state)
{
    static float logits[ROWS * 2048];
    uint64_t seed = 17;
    rig r = start(state, 2048);
    make_logits(logits, r.vocab, &seed);
    for (int k = 13; k < N_SETTINGS; k++) check_guesses(&r, &settings[k], logits); // those with tallies
    stop(&r);
}

/// Logprobs of the chosen token and of the most probable ones, in order, with the smaller id first of equals.
static void a_gpu_tells_the_probabilities(void **state)
{
    static float logits[ROWS * 2048];
    rig r = start(state, 2048);
    wt_sampler *samplers[ROWS];
    wt_llm_odds odds[ROWS];
    int32_t ids[ROWS];
    uint64_t seed = 11;
    make_logits(logits, r.vocab, &seed);
    for (int k = 0; k < ROWS; k++) assert_ok(wt_sampler_create(&settings[k == 2 ? 14 : k], r.vocab, &samplers[k]));
    choose(&r, samplers, logits, 1, WT_LLM_MAX_TOP, ids, odds);
    for (int k = 0; k < ROWS; k++) {
        const float *row = logits + (size_t)k * (size_t)r.vocab;
        bool told[2048] = {false};
        assert_float_equal(odds[k].logprob, wt_llm_logprob(row, r.vocab, ids[k]), 1e-5);
        assert_int_equal(odds[k].n_top, WT_LLM_MAX_TOP);
        for (int i = 0; i < WT_LLM_MAX_TOP; i++) {
            int best = -1;
            for (int j = 0; j < r.vocab; j++)
                if (!told[j] && (best < 0 || row[j] > row[best])) best = j;
            told[best] = true;
            assert_int_equal(odds[k].top_ids[i], best);
            assert_float_equal(odds[k].top_logprobs[i], wt_llm_logprob(row, r.vocab, best), 1e-5);
        }
        wt_sampler_destroy(samplers[k]);
    }
    stop(&r);
}

static void a_gpu_reports_bad_logits(void **state)
{
    rig r = start(state, 300);
    wt_sampler *samplers[ROWS];
    float logits[ROWS * 300] = {0};
    int32_t ids[2 * ROWS];
    for (int k = 0; k < ROWS; k++) assert_ok(wt_sampler_create(&settings[k ? 14 : 1], r.vocab, &samplers[k]));
    logits[299] = NAN;
    for (int k = 300; k < 600; k++) logits[k] = -INFINITY;
    choose(&r, samplers, logits, 2, 2, ids, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ids[i * ROWS], -1);
        assert_int_equal(ids[i * ROWS + 1], -1);
        int32_t want;
        assert_ok(wt_sampler_pick(samplers[2], logits + 600, &want));
        assert_int_equal(ids[i * ROWS + 2], want);
    }
    for (int k = 0; k < ROWS; k++) wt_sampler_destroy(samplers[k]);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest cpu[] = {
        cmocka_unit_test(draws_pass_a_chi_square_test),
        cmocka_unit_test(draws_follow_transformers_definitions),
        cmocka_unit_test(weights_are_exponentials),
    };
    const struct CMUnitTest cuda[] = {
        cmocka_unit_test(a_gpu_draws_the_tokens_of_the_sampler),
        cmocka_unit_test(a_gpu_draws_after_guesses),
        cmocka_unit_test(a_gpu_tells_the_probabilities),
        cmocka_unit_test(a_gpu_reports_bad_logits),
    };
    return cmocka_run_group_tests_name("sampling on the CPU", cpu, NULL, NULL) +
           cmocka_run_group_tests_name("sampling on a GPU", cuda, open_cuda, close_device);
}
