// Tokens after others in small caches on a GPU: one by one, with weights of 16 bits (kernels/llm/llm_attend_one.cu), or
// together, with weights of 32, whose products do not round vectors (kernels/llm/llm_attend_16.cu). The judge is the
// CPU with the same weights, which are random.
#include "support/llm_pair.h"
#include "support/testing.h"

#include <stdlib.h>

typedef struct single {
    wt_model_config shape;
    int before, n; ///< tokens
} single;

static const single near_tokens[] = {
    {{.n_heads = 2, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 4352, .qk_norm = true}, 0, 20},
    {{.n_heads = 2, .n_kv_heads = 2, .d_head = 128, .d_model = 128, .d_ff = 256, .rope.n_dims = 64}, 60, 8},
    // more heads of a block than leave room for one of a product
    {{.n_heads = 7, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256}, 300, 20},
};

/// The warps of a cluster have 1024 positions at once: behind that and twice that the second and third turn begin.
static const single far_tokens[] = {
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 1020, 8},
    {{.n_heads = 8, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.interleaved = true}, 2040, 12},
    {{.n_heads = 3, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .sliding_window = 1100}, 1400, 4},
};

/// Likewise; of 16 tokens the warps of a cluster have 512 positions at once.
static const single guesses[] = {
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 0, 13},
    {{.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 128, .d_ff = 256, .qk_norm = true}, 1020, 8},
    {{.n_heads = 8, .n_kv_heads = 1, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.interleaved = true}, 2047, 2},
    {{.n_heads = 12, .n_kv_heads = 4, .d_head = 64, .d_model = 128, .d_ff = 256, .sliding_window = 1100}, 1400, 16},
    {{.n_heads = 9, .n_kv_heads = 3, .d_head = 128, .d_model = 128, .d_ff = 256, .sliding_window = 9}, 500, 11},
    {{.n_heads = 64, .n_kv_heads = 32, .d_head = 64, .d_model = 128, .d_ff = 256, .rope.n_dims = 32}, 300, 16},
};

static void compare_verified(llm_pair *p, int n)
{
    enum { MOST = 16 };
    static float logits[2][MOST * VOCAB];
    int32_t ids[MOST];
    for (int k = 0; k < n; k++) ids[k] = k * 11;
    for (int b = 0; b < 2; b++) assert_ok(wt_llm_verify(p->session[b], ids, n, logits[b]));
    for (int k = 0; k < n; k++) llm_pair_compare(p, logits[1] + k * VOCAB, logits[0] + k * VOCAB, "a guess");
}

/// What was before is the CPU's, so that both have the same cache and few kernels run: sanitizers come to an end.
static void check_single(const single *x, wt_dtype dtype, wt_dtype kv_type, bool together)
{
    enum { MOST = 2100 };
    static const wt_backend backends[] = {WT_BACKEND_CPU, WT_BACKEND_CUDA};
    const int before = x->before;
    int32_t ids[MOST];
    llm_model m;
    // numbers of the cache whose last bit falls the other way; alone without one 4e-7, together 7.4e-5 (H200)
    llm_pair p = {.bound = together ? 3e-4 : 1e-4};
    llm_model_make(&m, &x->shape, dtype);
    m.llm.config.max_positions = MOST;
    for (int b = 0; b < 2; b++) {
        assert_ok(wt_device_open(&(wt_device_config){.backend = backends[b], .n_threads = 2}, &p.device[b]));
        assert_ok(wt_llm_session_create(&m.llm,
                                        &(wt_llm_session_config){.device = p.device[b],
                                                                 .n_positions = MOST,
                                                                 .n_batch = !b         ? 256
                                                                            : together ? 16
                                                                                       : 1,
                                                                 .exact_products = true,
                                                                 .kv_type = kv_type},
                                        &p.session[b]));
    }
    for (int k = 0; k < before; k++) ids[k] = k * 37 % VOCAB;
    if (before) {
        assert_ok(wt_llm_prefill(p.session[0], ids, before));
        const size_t bytes = wt_llm_session_saved_bytes(p.session[0]);
        void *saved = malloc(bytes);
        assert_ok(wt_llm_session_save(p.session[0], saved, bytes));
        assert_ok(wt_llm_session_load(p.session[1], saved, bytes));
        free(saved);
    }
    for (int k = 0; k < x->n && !together; k++) {
        for (int b = 0; b < 2; b++) assert_ok(wt_llm_decode(p.session[b], k * 11));
        llm_pair_compare(&p, wt_llm_logits(p.session[1]), wt_llm_logits(p.session[0]), "a token");
    }
    if (together) compare_verified(&p, x->n);
    print_message("after %4d, %d heads of %3d, %-4s, cache of %-7s %.1e of the largest logit\n", before,
                  x->shape.n_heads, x->shape.d_head, wt_dtype_name(dtype), wt_dtype_name(kv_type), p.worst);
    llm_pair_close(&p, &m);
}

static void check_small_caches(const single *cases, size_t n, bool together)
{
    static const wt_dtype all[][2] = {{WT_DTYPE_F16, WT_DTYPE_F16},
                                      {WT_DTYPE_BF16, WT_DTYPE_BF16},
                                      {WT_DTYPE_BF16, WT_DTYPE_F8_E4M3}}; ///< weights, cache
    skip_without_gpu();
    for (size_t k = 0; k < n; k++)
        for (size_t t = 0; t < sizeof all / sizeof *all; t++)
            check_single(&cases[k], together ? WT_DTYPE_F32 : all[t][0], all[t][1], together);
}

static void single_tokens_with_small_caches(void **state)
{
    (void)state;
    check_small_caches(near_tokens, sizeof near_tokens / sizeof *near_tokens, false);
}

static void single_tokens_far_into_small_caches(void **state)
{
    (void)state;
    check_small_caches(far_tokens, sizeof far_tokens / sizeof *far_tokens, false);
}

static void guesses_with_small_caches(void **state)
{
    (void)state;
    check_small_caches(guesses, sizeof guesses / sizeof *guesses, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(single_tokens_with_small_caches),
                                       cmocka_unit_test(single_tokens_far_into_small_caches),
                                       cmocka_unit_test(guesses_with_small_caches)};
    return cmocka_run_group_tests_name("llm caches", tests, NULL, NULL);
}
