// A step of one token on a GPU in one launch. The judge is the same step in many launches, with the same weights; that
// of both is the CPU (test_llm.c, test_llm_shapes.c).
#include "../models/llm/gpu.h"
#include "support/llm_random.h"
#include "support/testing.h"

#include <math.h>
#include <string.h>

enum { N_STEPS = 40, VOCAB = RANDOM_VOCAB };

/// Sums of up to 8192 products in another order, all of them in float: each is off by some 2^-24 times the root of
/// their number, and two layers add ten of them. Softmax and norms keep it so.
static const double bound = 2e-5;

static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_BF16};

static const wt_model_config shapes[] = {
    {.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 256, .d_ff = 8192, .qk_norm = true},
    {.n_heads = 6, .n_kv_heads = 2, .d_head = 64, .d_model = 416, .d_ff = 1536, .sliding_window = 20},
    {.n_heads = 4, .n_kv_heads = 4, .d_head = 80, .d_model = 96, .d_ff = 352},
    {.n_heads = 16, .n_kv_heads = 2, .d_head = 16, .d_model = 264, .d_ff = 520},
    {.n_heads = 3, .n_kv_heads = 1, .d_head = 8, .d_model = 24, .d_ff = 40},
};

/// Of quantised matrices, whose launches take a vector as 16 bits of each number: 2^-17 instead of 2^-24.
static const double quant_bound = 1e-3;

static const wt_model_config wide[] = {
    {.n_heads = 4, .n_kv_heads = 1, .d_head = 128, .d_model = 512, .d_ff = 12288, .qk_norm = true},
    {.n_heads = 16, .n_kv_heads = 4, .d_head = 64, .d_model = 2048, .d_ff = 1536},
};

static wt_device *device;
static float logits[3][N_STEPS][VOCAB];

static wt_llm_session *open_session(const wt_llm *llm, wt_dtype kv_type, bool many_launches)
{
    wt_llm_session *session;
    const wt_llm_session_config config = {.device = device,
                                          .n_positions = RANDOM_POSITIONS,
                                          .n_batch = 32,
                                          .kv_type = kv_type,
                                          .one_launch = !many_launches};
    assert_ok(wt_llm_session_create(llm, &config, &session));
    assert_int_equal(!session->gpu->step.n_phases, many_launches);
    return session;
}

/// n_sms 0 = all of them.
static void decode(wt_llm_session *session, int n_sms, float (*to)[VOCAB])
{
    const int there = session->gpu->n_sms;
    assert_ok(wt_llm_session_restore(session, (wt_llm_snapshot){0, 0}));
    if (n_sms) session->gpu->n_sms = n_sms;
    for (int k = 0; k < N_STEPS; k++) {
        assert_ok(wt_llm_decode(session, k * 37 % VOCAB));
        memcpy(to[k], wt_llm_logits(session), sizeof to[k]);
    }
    session->gpu->n_sms = there;
}

/// Returns the largest difference of a step, of the largest logit.
static double difference(float (*got)[VOCAB], float (*want)[VOCAB], double most)
{
    double worst = 0;
    for (int k = 0; k < N_STEPS; k++) {
        double peak = 0, error = 0;
        for (int v = 0; v < VOCAB; v++) {
            peak = fmax(peak, fabs(want[k][v]));
            error = fmax(error, isnan(got[k][v]) ? INFINITY : fabs(got[k][v] - want[k][v]));
        }
        if (!(error <= most * peak)) fail_msg("step %d: logits differ by %.2g of %.3g", k, error, peak);
        worst = fmax(worst, error / peak);
    }
    return worst;
}

static bool has_gpu(void)
{
    const wt_device_config config = {.backend = WT_BACKEND_CUDA};
    if (device) return true;
    if (!wt_device_count() || wt_device_open(&config, &device)) {
        print_message("skipped: %s\n", wt_last_error());
        return false;
    }
    if (wt_device_get_info(device)->compute_major >= 9) return true;
    print_message("skipped: a step is one launch from compute capability 9.0 on\n");
    return false;
}

static void check(const wt_model_config *shape, wt_dtype type, wt_dtype kv_type)
{
    const bool plain = type == WT_DTYPE_F32 || type == WT_DTYPE_F16 || type == WT_DTYPE_BF16;
    static const int sms[] = {1, 3, 0};
    random_model m;
    double worst = 0;
    random_model_make(&m, shape, type);
    wt_llm_session *many = open_session(&m.llm, kv_type, true), *one = open_session(&m.llm, kv_type, false);
    decode(many, 0, logits[0]);
    for (size_t k = 0; k < sizeof sms / sizeof *sms; k++) {
        if (sms[k] > one->gpu->n_sms) continue;
        decode(one, sms[k], logits[1]);
        worst = fmax(worst, difference(logits[1], logits[0], plain ? bound : quant_bound));
    }
    decode(one, 0, logits[2]);
    assert_memory_equal(logits[1], logits[2], sizeof logits[1]);
    print_message("heads of %3d, %-4s %.1e of the largest logit\n", shape->d_head, wt_dtype_name(type), worst);
    wt_llm_session_destroy(many);
    wt_llm_session_destroy(one);
    random_model_free(&m);
}

static void one_launch_gives_the_logits_of_many(void **state)
{
    (void)state;
    if (!has_gpu()) skip();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) check(&shapes[k], types[k % 3], types[k % 3]);
}

static void every_type_of_cache_is_read(void **state)
{
    static const wt_dtype caches[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3};
    (void)state;
    if (!has_gpu()) skip();
    for (size_t k = 0; k < sizeof caches / sizeof *caches; k++) check(&shapes[4], WT_DTYPE_BF16, caches[k]);
}

static void quantised_matrices_are_read(void **state)
{
    static const wt_dtype quantised[] = {WT_DTYPE_F8_E4M3, WT_DTYPE_I8, WT_DTYPE_U8};
    (void)state;
    if (!has_gpu()) skip();
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++)
        for (size_t t = 0; t < sizeof quantised / sizeof *quantised; t++) check(&wide[k], quantised[t], WT_DTYPE_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_gives_the_logits_of_many),
                                       cmocka_unit_test(every_type_of_cache_is_read),
                                       cmocka_unit_test(quantised_matrices_are_read)};
    const int failed = cmocka_run_group_tests_name("llm step", tests, NULL, NULL);
    wt_device_close(device);
    return failed;
}
