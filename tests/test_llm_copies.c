// What a step of logits copies back from a GPU, counted without one: the pool's copies and the step itself are stand-ins
// that the library calls in place of its own.
#include "support/testing.h"

#include "../models/llm/gpu.h"

enum { VOCAB = 64, N_TOKENS = 4, LOGITS_AT = 1 << 20 };

static int n_of_logits, n_of_tokens;

wt_status wt__gpu_push(wt_llm_session *session, size_t at, size_t size_bytes)
{
    (void)session, (void)at, (void)size_bytes;
    return WT_OK;
}

wt_status wt__gpu_queue_batch(wt_llm_session *session, wt__step_kind kind)
{
    (void)session;
    assert_int_equal(kind, WT__STEP_LOGITS);
    return WT_OK;
}

wt_status wt__llm_forward(wt_llm_session *session, int n_layers, float *logits, int n_logits)
{
    (void)session, (void)n_layers, (void)logits, (void)n_logits;
    return WT_OK;
}

wt_status wt_pool_download(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t offset, void *to,
                           size_t size_bytes)
{
    (void)pool, (void)block, (void)stream, (void)to;
    if (offset == LOGITS_AT)
        n_of_logits++;
    else
        assert_int_equal(size_bytes, sizeof(wt_llm_token) * N_TOKENS);
    n_of_tokens += offset != LOGITS_AT;
    return WT_OK;
}

static void run(int n_experts, int n_logits, bool leads)
{
    static wt__gpu gpu = {.logits_at = LOGITS_AT};
    static float logits[N_TOKENS * VOCAB];
    static wt_llm_token tokens[N_TOKENS];
    static wt_llm llm = {.config = {.n_layers = 2, .vocab_size = VOCAB}};
    llm.config.n_experts = n_experts;
    wt_llm_session s = {.gpu = &gpu, .llm = &llm, .tokens = tokens, .n_tokens = N_TOKENS};
    n_of_logits = n_of_tokens = 0;
    assert_ok(wt__gpu_run(&s, 2, logits, n_logits, leads));
}

/// Only who verifies guesses looks at what routers lead by; prompts, single steps and drafts have nothing copied but
/// logits.
static void routers_leads_come_back_to_who_asks(void **state)
{
    (void)state;
    run(8, N_TOKENS, true);
    assert_int_equal(n_of_logits, 1);
    assert_int_equal(n_of_tokens, 1);
    for (int n_logits = 1; n_logits <= N_TOKENS; n_logits += N_TOKENS - 1) {
        run(8, n_logits, false);
        assert_int_equal(n_of_logits, 1);
        assert_int_equal(n_of_tokens, 0);
    }
    run(0, N_TOKENS, true); // without experts there are none
    assert_int_equal(n_of_tokens, 0);
    run(8, 0, false);
    assert_int_equal(n_of_logits, 0);
    assert_int_equal(n_of_tokens, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routers_leads_come_back_to_who_asks)};
    return cmocka_run_group_tests_name("llm copies", tests, NULL, NULL);
}
