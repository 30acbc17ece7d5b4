// Mixtures of experts against torch (tests/golden/make_nn.py): the router, the rows by expert, the products of
// wt_matmul with their offsets, and the way back.
#include "support/device_check.h"
#include "support/nn_check.h"
#include "support/testing.h"

enum { TOKENS = 13, EXPERTS = 6, USED = 2, WIDTH = 32, HIDDEN = 48 };

static wt_matrix stack(const wt_array *w)
{
    return (wt_matrix){.data = w->data, .rows = (int)w->shape[1], .columns = (int)w->shape[2], .dtype = w->dtype};
}

static void mixture(nn_rig *r, bool sigmoid)
{
    wt_array x = nn_input(r, r->type, 1, 1, 0, NN_SHAPE(TOKENS, WIDTH));
    wt_array router = nn_input(r, r->type, 2, 1, 0, NN_SHAPE(EXPERTS, WIDTH));
    wt_array gate = nn_input(r, r->type, 3, 0.25, 0, NN_SHAPE(EXPERTS, HIDDEN, WIDTH));
    wt_array up = nn_input(r, r->type, 4, 0.25, 0, NN_SHAPE(EXPERTS, HIDDEN, WIDTH));
    wt_array down = nn_input(r, r->type, 5, 0.25, 0, NN_SHAPE(EXPERTS, WIDTH, HIDDEN));
    wt_array scores = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(TOKENS, EXPERTS));
    wt_array chosen = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(TOKENS, USED)),
             slots = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(TOKENS, USED));
    wt_array shares = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(TOKENS, USED)),
             offsets = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(EXPERTS + 1));
    wt_array grouped = nn_empty(r, r->type, NN_SHAPE(TOKENS * USED, WIDTH)),
             out = nn_empty(r, r->type, NN_SHAPE(TOKENS, WIDTH));
    wt_array hidden = nn_empty(r, r->type, NN_SHAPE(TOKENS * USED, HIDDEN)),
             given = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(TOKENS * USED, WIDTH));
    const wt_matmul_args route = {
        .n_parts = 1,
        .parts = {{.weight = {.data = router.data, .rows = EXPERTS, .columns = WIDTH, .dtype = r->type},
                   .y = scores.data}},
        .x = x.data,
        .x_dtype = r->type,
        .m = TOKENS,
        .y_dtype = WT_DTYPE_F32};
    const wt_matmul_args first = {.n_parts = 2,
                                  .parts = {{.weight = stack(&gate), .y = hidden.data}, {.weight = stack(&up)}},
                                  .x = grouped.data,
                                  .x_dtype = r->type,
                                  .m = TOKENS * USED,
                                  .y_dtype = r->type,
                                  .activation = WT_ACTIVATION_SILU,
                                  .gated = true,
                                  .offsets = offsets.data,
                                  .n_experts = EXPERTS};
    const wt_matmul_args second = {.n_parts = 1,
                                   .parts = {{.weight = stack(&down), .y = given.data}},
                                   .x = hidden.data,
                                   .x_dtype = r->type,
                                   .m = TOKENS * USED,
                                   .y_dtype = WT_DTYPE_F32,
                                   .offsets = offsets.data,
                                   .n_experts = EXPERTS};
    assert_ok(wt_matmul_enqueue(r->matmul, r->stream, &route));
    const wt_route_args choice = {
        .scores = &scores, .sigmoid = sigmoid, .normalise = true, .chosen = &chosen, .shares = &shares};
    assert_ok(wt_nn_route(r->nn, r->stream, &choice));
    const wt_permute_args there = {
        .chosen = &chosen, .offsets = &offsets, .slots = &slots, .x = &x, .grouped = &grouped};
    assert_ok(wt_nn_permute(r->nn, r->stream, &there));
    assert_ok(wt_matmul_enqueue(r->matmul, r->stream, &first));
    assert_ok(wt_matmul_enqueue(r->matmul, r->stream, &second));
    const wt_unpermute_args back = {.grouped = &given, .slots = &slots, .shares = &shares, .out = &out};
    assert_ok(wt_nn_unpermute(r->nn, r->stream, &back));
    nn_result(r, sigmoid ? "moe_sigmoid_chosen" : "moe_softmax_chosen", &chosen, 0, 1);
    nn_result(r, sigmoid ? "moe_sigmoid_shares" : "moe_softmax_shares", &shares, 2e-6, 1);
    nn_result(r, sigmoid ? "moe_sigmoid" : "moe_softmax", &out, 2e-6, 2); // the hidden rows are rounded too
}

static void softmax(nn_rig *r) { mixture(r, false); }
static void sigmoid(nn_rig *r) { mixture(r, true); }
static void shares_of_all_experts(void **state) { nn_run(state, softmax); }
static void shares_of_each_expert(void **state) { nn_run(state, sigmoid); }

/// Many tokens; experts nobody chose; a bias that turns the choice but not the shares; choices that are none.
static void many(nn_rig *r)
{
    const int tokens = 700, experts = 70, used = 5, width = 40;
    wt_array scores = nn_input(r, r->type, 1, 4, 0, NN_SHAPE(tokens, experts)),
             bias = nn_input(r, r->type, 2, 0.25, 0, NN_SHAPE(experts));
    wt_array chosen = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(tokens, used)),
             slots = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(tokens, used));
    wt_array shares = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(tokens, used)),
             x = nn_input(r, r->type, 3, 1, 0, NN_SHAPE(tokens, width));
    wt_array offsets = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(61)),
             grouped = nn_empty(r, r->type, NN_SHAPE(tokens * used, width));
    const wt_route_args choice = {
        .scores = &scores, .sigmoid = true, .bias = &bias, .scale = 2.5, .chosen = &chosen, .shares = &shares};
    const wt_permute_args there = {
        .chosen = &chosen, .offsets = &offsets, .slots = &slots, .x = &x, .grouped = &grouped};
    const wt_unpermute_args back = {.grouped = &grouped, .slots = &slots, .shares = &shares, .residual = &x, .out = &x};
    assert_ok(wt_nn_route(r->nn, r->stream, &choice));
    nn_result(r, NULL, &chosen, 0, 1);
    nn_result(r, NULL, &shares, 1e-6, 1);
    assert_ok(wt_nn_permute(r->nn, r->stream, &there)); // of 60 experts
    nn_result(r, NULL, &offsets, 0, 1);
    nn_result(r, NULL, &slots, 0, 1);
    nn_result(r, NULL, &grouped, 0, 1);
    assert_ok(wt_nn_unpermute(r->nn, r->stream, &back));
    nn_result(r, NULL, &x, 1e-6, 1);
}

static void many_tokens_on_both_backends(void **state) { nn_run(state, many); }

static void refused(nn_rig *r)
{
    wt_array scores = nn_empty(r, r->type, NN_SHAPE(3, 4)), chosen = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(3, 5));
    wt_array shares = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(3, 5));
    assert_fails(
        wt_nn_route(r->nn, r->stream, &(wt_route_args){.scores = &scores, .chosen = &chosen, .shares = &shares}),
        WT_ERR_BAD_ARG, "route: chosen is [3][5], want [3][1..4]");
    assert_fails(wt_nn_permute(r->nn, r->stream, &(wt_permute_args){.x = &scores, .grouped = &scores}), WT_ERR_BAD_ARG,
                 "permute: chosen is missing, want [tokens][k]");
    assert_fails(
        wt_nn_unpermute(r->nn, r->stream, &(wt_unpermute_args){.grouped = &scores, .slots = &chosen, .out = &scores}),
        WT_ERR_BAD_ARG, "unpermute: grouped is [3][4], want [15][4]");
}

static void refusals_name_what_was_met(void **state) { nn_run_type(state, refused, WT_DTYPE_F32); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_all_experts),
        cmocka_unit_test(shares_of_each_expert),
        cmocka_unit_test(many_tokens_on_both_backends),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("experts on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("experts on a GPU", tests, open_cuda, close_device);
}
