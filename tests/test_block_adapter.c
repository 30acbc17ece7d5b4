#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/realtime.h"
#include "../hosts/block_adapter.h"

enum { FRAMES = 6000 };

typedef struct probe {
    int n_blocks, wanted, n_wrong;
} probe;

// Two inputs to three outputs, so that no channel can be taken for another.
static void process(void *user, const float *const *in, float *const *out, int n_frames)
{
    probe *p = user;
    p->n_blocks++;
    p->n_wrong += n_frames != p->wanted;
    for (int n = 0; n < n_frames; n++) {
        out[0][n] = in[0][n];
        out[1][n] = -in[1][n];
        out[2][n] = in[0][n] + in[1][n];
    }
}

static float left[FRAMES], right[FRAMES], result[3][FRAMES];

static block_adapter *adapter_of(probe *p, int block_frames)
{
    block_adapter *adapter;
    *p = (probe){.wanted = block_frames};
    assert_ok(block_adapter_create(
        &(block_adapter_config){
            .channels = 2, .out_channels = 3, .block_frames = block_frames, .user = p, .process = process},
        &adapter));
    for (int n = 0; n < FRAMES; n++) left[n] = (float)(n + 1), right[n] = (float)(2 * FRAMES + n);
    return adapter;
}

static void feed(block_adapter *adapter, int at, int n)
{
    RT_SECTION
    {
        block_adapter_process(adapter, (const float *const[]){left + at, right + at},
                              (float *const[]){result[0] + at, result[1] + at, result[2] + at}, n);
    }
}

static void what_comes_out_went_in_the_stated_latency_earlier(void **state)
{
    (void)state;
    static const struct {
        int block, lengths[4], latency;
    } cases[] = {
        {64, {64, 64, 64, 64}, 0},      {64, {256, 64, 128, 192}, 0},   {64, {32, 32, 32, 32}, 32},
        {64, {96, 96, 96, 96}, 32},     {64, {100, 100, 100, 100}, 60}, {64, {63, 64, 65, 253}, 63},
        {256, {1, 1, 1, 1}, 255},       {1, {7, 1, 64, 253}, 0},        {480, {441, 441, 441, 441}, 477},
        {1024, {64, 128, 0, 192}, 960},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        probe p;
        block_adapter *adapter = adapter_of(&p, cases[k].block);
        int at = 0;
        // the first four lengths settle the divisor; silence that they insert lies in their own output
        for (int call = 0; call < 4; at += cases[k].lengths[call++]) feed(adapter, at, cases[k].lengths[call]);
        const int settled = at, latency = block_adapter_latency_frames(adapter);
        assert_int_equal(latency, cases[k].latency);
        for (int call = 0, n; at < FRAMES; at += n, call++) {
            n = cases[k].lengths[call % 4] < FRAMES - at ? cases[k].lengths[call % 4] : 0;
            if (!cases[k].lengths[call % 4]) continue;
            if (!n) break;
            feed(adapter, at, n);
        }
        for (int n = settled + latency; n < at; n++) {
            const int from = n - latency;
            if (result[0][n] != left[from] || result[1][n] != -right[from] || result[2][n] != left[from] + right[from])
                fail_msg("blocks of %d, case %zu: frame %d is %g, want %g", cases[k].block, k, n, (double)result[0][n],
                         (double)left[from]);
        }
        assert_true(at > FRAMES / 2);
        assert_int_equal(p.n_blocks, at / cases[k].block);
        assert_int_equal(p.n_wrong, 0);
        assert_int_equal(block_adapter_latency_frames(adapter), latency);
        block_adapter_destroy(adapter);
    }
}

// Nothing is lost or played twice when a host changes its mind: the old stream, then silence, then the rest.
static void another_length_inserts_silence_once(void **state)
{
    (void)state;
    probe p;
    block_adapter *adapter = adapter_of(&p, 64);
    feed(adapter, 0, 128);
    assert_int_equal(block_adapter_latency_frames(adapter), 0);
    feed(adapter, 128, 48);
    assert_int_equal(block_adapter_latency_frames(adapter), 48);
    for (int at = 176; at < 1136; at += 48) feed(adapter, at, 48);
    for (int n = 0; n < 128; n++) assert_true(result[0][n] == left[n]);
    for (int n = 128; n < 176; n++) assert_true(result[0][n] == 0);
    for (int n = 176; n < 1136; n++) assert_true(result[0][n] == left[n - 48]);
    block_adapter_destroy(adapter);
}

static void refusals_say_what_was_met(void **state)
{
    (void)state;
    block_adapter *adapter;
    assert_fails(
        block_adapter_create(&(block_adapter_config){.channels = 2, .out_channels = 65, .block_frames = 64}, &adapter),
        WT_ERR_BAD_ARG, "block adapter: 2 channels in, 65 out, want 1..64");
    assert_null(adapter);
    assert_fails(block_adapter_create(&(block_adapter_config){.channels = 2, .out_channels = 2}, &adapter),
                 WT_ERR_BAD_ARG, "block adapter: blocks of 0 frames, want 1..65536");
    block_adapter_destroy(NULL);
}

static wt_status create(void *user)
{
    return block_adapter_create(&(block_adapter_config){.channels = 2, .out_channels = 2, .block_frames = 64}, user);
}

static void destroy(void *user) { block_adapter_destroy(*(block_adapter **)user); }

static void it_survives_failing_allocations(void **state)
{
    (void)state;
    block_adapter *adapter;
    assert_int_equal(assert_survives_failing_alloc(create, destroy, &adapter), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_out_went_in_the_stated_latency_earlier),
        cmocka_unit_test(another_length_inserts_silence_once),
        cmocka_unit_test(refusals_say_what_was_met),
        cmocka_unit_test(it_survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("block_adapter", tests, NULL, NULL);
}
