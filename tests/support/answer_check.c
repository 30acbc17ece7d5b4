#include "answer_check.h"

#include "audio_files.h"
#include "llm_files.h"
#include "testing.h"

static wt_llm *open_made(void **state, const char *name, uint64_t seed, bool narrow)
{
    static llm_file file;
    wt_llm *llm;
    llm_llama_add(&file, NULL, NULL, seed);
    if (narrow) llm_file_narrow(&file);
    llm_file_write(&file, test_path(state, name));
    llm_config_write(test_path(state, "config.json"), NULL);
    assert_ok(wt_llm_open(test_path(state, name), &llm));
    return llm;
}

answer_fixture open_models(void **state, wt_backend backend, wt_llm_quantization kind)
{
    if (backend == WT_BACKEND_CUDA && !wt_device_count()) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    answer_fixture f = {.llm = open_made(state, "a.safetensors", 11, false),
                        .other = open_made(state, "b.safetensors", 12, false)};
    assert_ok(wt_llm_quantize(f.llm, kind, NULL, NULL));
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &f.device));
    return f;
}

answer_fixture open_bf16_models(void **state)
{
    answer_fixture f = {.llm = open_made(state, "a.safetensors", 11, true),
                        .other = open_made(state, "b.safetensors", 12, true)};
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &f.device));
    return f;
}

void close_models(answer_fixture *f)
{
    wt_device_close(f->device);
    wt_llm_close(f->llm);
    wt_llm_close(f->other);
}

void start_answer(answer_fixture *f, const wt_llm *draft, wt_sampler_config sampling, wt_generator_config config)
{
    const wt_llm_session_config sessions = {.device = f->device,
                                            .n_positions = POSITIONS,
                                            .exact_guesses = f->exact_guesses,
                                            .rough_guesses = f->rough_guesses};
    assert_ok(wt_llm_session_create(f->llm, &sessions, &f->session));
    f->draft = NULL;
    if (draft) assert_ok(wt_llm_session_create(draft, &sessions, &f->draft));
    assert_ok(wt_sampler_create(&sampling, VOCAB, &f->sampler));
    config.session = f->session;
    config.draft = f->draft;
    config.sampler = f->sampler;
    config.n_positions = POSITIONS;
    if (!config.max_tokens) config.max_tokens = ANSWER;
    assert_ok(wt_generator_create(&config, &f->generator));
}

void stop_answer(answer_fixture *f)
{
    wt_generator_destroy(f->generator);
    wt_sampler_destroy(f->sampler);
    wt_llm_session_destroy(f->draft);
    wt_llm_session_destroy(f->session);
}

const int32_t *answer_prompt(void)
{
    static int32_t ids[N_PROMPT];
    for (int k = 0; k < N_PROMPT; k++) ids[k] = k * 37 % VOCAB;
    return ids;
}

bool collect_token(void *user, const wt_generated *token)
{
    answer_tokens *t = user;
    if (token->id < 0) return true;
    t->ids[t->n] = token->id;
    t->logprobs[t->n] = token->logprob;
    if (token->pick && token->pick->n_top > 1) {
        t->seconds[t->n] = token->pick->top_ids[1];
        t->second_logprobs[t->n] = token->pick->top_logprobs[1];
    }
    const int n = ++t->n;
    if (n == t->pause_at) wt_generator_pause(t->generator, true);
    return n != t->cancel_at;
}

const wt_sampler_config answer_samplings[3] = {
    {.temperature = 0},
    {.temperature = 0.7, .seed = 3},
    {.temperature = 1, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.2, .frequency_penalty = 0.3, .seed = 4}};

wt_generation answer(answer_fixture *f, const wt_llm *draft, int sampling, wt_generator_config config,
                     answer_tokens *tokens)
{
    wt_generation report;
    config.on_token = collect_token;
    config.user = tokens;
    tokens->n = 0;
    start_answer(f, draft, answer_samplings[sampling], config);
    tokens->generator = f->generator;
    assert_ok(wt_generator_run(f->generator, answer_prompt(), N_PROMPT, &report));
    assert_int_equal(report.n_tokens, tokens->n);
    // what the session holds is prompt and answer but its last token
    assert_int_equal(wt_llm_position(f->session), N_PROMPT + report.n_tokens - 1);
    stop_answer(f);
    return report;
}
