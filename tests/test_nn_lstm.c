// LSTM against torch (tests/golden/make_nn.py) and the backends against each other. Errors grow over the steps: of sums
// of 256 terms and the approximations of sigmoid and tanh, 5e-7 each.
#include "support/device_check.h"
#include "support/nn_check.h"
#include "support/testing.h"

#include <stdio.h>
#include <warptone/graph.h>

typedef struct layer {
    int inputs, hidden, batch, steps, directions;
} layer;

typedef struct arrays {
    wt_array x, weights[2][4], h0, c0, out, hn, cn, lengths;
} arrays;

/// Everything of a layer; weights in the order of torch's parameters.
static wt_lstm_args layer_of(nn_rig *r, const layer *l, bool batch_first, arrays *a)
{
    const int h = l->hidden, d = l->directions;
    wt_lstm_args args = {.x = &a->x, .directions = d, .out = &a->out, .hn = &a->hn, .cn = &a->cn};
    a->x = nn_input(r, r->type, 1, 1, 0, NN_SHAPE(l->steps, l->batch, l->inputs));
    a->out = nn_empty(r, r->type, NN_SHAPE(l->steps, l->batch, d * h));
    if (batch_first) {
        const wt_array x = nn_input(r, r->type, 1, 1, 0, NN_SHAPE(l->batch, l->steps, l->inputs));
        assert_ok(wt_array_transpose(&x, (const int[]){1, 0, 2}, &a->x));
    }
    for (int k = 0; k < d; k++) {
        wt_array *w = a->weights[k];
        const unsigned seed = 10 + 4 * (unsigned)k;
        w[0] = nn_input(r, r->type, seed, 0.25, 0, NN_SHAPE(4 * h, l->inputs));
        w[1] = nn_input(r, r->type, seed + 1, 0.25, 0, NN_SHAPE(4 * h, h));
        w[2] = nn_input(r, WT_DTYPE_F32, seed + 2, 0.25, 0, NN_SHAPE(4 * h));
        w[3] = nn_input(r, r->type, seed + 3, 0.25, 0, NN_SHAPE(4 * h));
        args.weights[k].input = &w[0];
        args.weights[k].recurrent = &w[1];
        args.weights[k].input_bias = &w[2];
        args.weights[k].recurrent_bias = &w[3];
    }
    a->h0 = nn_input(r, r->type, 2, 1, 0, NN_SHAPE(d, l->batch, h));
    a->c0 = nn_input(r, r->type, 3, 1, 0, NN_SHAPE(d, l->batch, h));
    a->hn = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(d, l->batch, h));
    a->cn = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(d, l->batch, h));
    const int64_t floats = (int64_t)(wt_lstm_workspace_bytes(&args) / sizeof(float));
    args.workspace = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(floats)).data;
    return args;
}

static const layer layers[] = {{10, 8, 1, 6, 1}, {24, 33, 3, 9, 2}, {40, 128, 1, 20, 2}, {16, 256, 2, 12, 2}};

static void golden(nn_rig *r, int k)
{
    arrays a;
    char name[3][16];
    wt_lstm_args args = layer_of(r, &layers[k], false, &a);
    if (k) args.h0 = &a.h0, args.c0 = &a.c0;
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "lstm_%d_%s", k, (const char *[]){"out", "h", "c"}[i]);
    assert_ok(wt_nn_lstm_prepare(r->nn, &args));
    assert_ok(wt_nn_lstm(r->nn, r->stream, &args));
    nn_result(r, name[0], &a.out, 5e-6, 1);
    nn_result(r, name[1], &a.hn, 5e-6, 1);
    nn_result(r, name[2], &a.cn, 5e-6, 1);
    if (k != 1) return;
    a.lengths = nn_integers(r, (const int32_t[]){9, 4, 7}, NN_SHAPE(3));
    args.lengths = &a.lengths;
    assert_ok(wt_nn_lstm(r->nn, r->stream, &args));
    nn_result(r, "lstm_lengths_out", &a.out, 5e-6, 1);
    nn_result(r, "lstm_lengths_h", &a.hn, 5e-6, 1);
}

static void golden_0(nn_rig *r) { golden(r, 0); }
static void golden_1(nn_rig *r) { golden(r, 1); }
static void golden_2(nn_rig *r) { golden(r, 2); }
static void golden_3(nn_rig *r) { golden(r, 3); }
static void layers_of_few_units(void **state) { nn_run(state, golden_0); }
static void both_directions_and_lengths(void **state) { nn_run(state, golden_1); }
static void a_vad_s_layer(void **state) { nn_run(state, golden_2); }
static void a_voice_s_layer(void **state) { nn_run(state, golden_3); }

static void backends(nn_rig *r, layer l, bool batch_first)
{
    arrays a;
    wt_lstm_args args = layer_of(r, &l, batch_first, &a);
    args.h0 = args.hn = &a.h0; // in place
    args.c0 = args.cn = &a.c0;
    assert_ok(wt_nn_lstm(r->nn, r->stream, &args));
    nn_result(r, NULL, &a.out, 5e-6, 1);
    nn_result(r, NULL, &a.c0, 5e-6, 1);
}

/// Weights over more SMs than a cluster has, some beyond registers; a batch in several launches; the batch first.
static void large(nn_rig *r)
{
    backends(r, (layer){32, 300, 3, 4, 2}, true);
    backends(r, (layer){16, 1000, 1, 3, 1}, false);
    backends(r, (layer){8, 64, 400, 3, 2}, true);
}

/// More than the registers of all SMs hold: the rest in shared memory, and beyond that from L2.
static void larger(nn_rig *r) { backends(r, (layer){8, 2080, 2, 2, 2}, false); }

static void large_layers_on_both_backends(void **state)
{
    nn_run_type(state, large, WT_DTYPE_F32);
    nn_run_type(state, large, WT_DTYPE_BF16);
    nn_run_type(state, larger, WT_DTYPE_F16);
}

/// What the product of the input's weights alone queues.
static void count_product(nn_rig *r, const wt_lstm_args *args, wt_graph_info *info)
{
    wt_graph *graph = NULL;
    wt_matmul_args product = {.n_parts = args->directions, .x = args->x->data, .x_dtype = args->x->dtype};
    const int wide = args->directions * (int)args->weights[0].input->shape[0];
    for (int d = 0; d < args->directions; d++) {
        const wt_array *w = args->weights[d].input;
        product.parts[d] = (wt_matmul_part){
            .weight = {.data = w->data, .rows = (int)w->shape[0], .columns = (int)w->shape[1], .dtype = w->dtype},
            .y = args->workspace + sizeof(float) * (size_t)d * (size_t)w->shape[0],
            .y_stride = wide};
    }
    product.y_dtype = WT_DTYPE_F32;
    product.m = (int)(args->x->shape[0] * args->x->shape[1]);
    assert_ok(wt_matmul_prepare(r->matmul, &product));
    assert_ok(wt_graph_begin(r->stream, &graph));
    assert_ok(wt_matmul_enqueue(r->matmul, r->stream, &product));
    assert_ok(wt_graph_end(graph));
    wt_graph_get_info(graph, info);
    wt_graph_destroy(graph);
}

/// Both directions and all steps of all sequences are one launch beside the product's.
static void replay(nn_rig *r)
{
    for (int k = 0; k < 2; k++) { // a cluster; a grid
        arrays a;
        wt_graph *graph = NULL;
        wt_graph_info info, product;
        const layer l = {16, k ? 320 : 64, 2, 5, 2};
        wt_lstm_args args = layer_of(r, &l, false, &a);
        wt_array first = nn_empty(r, r->type, NN_SHAPE(l.steps, l.batch, 2 * l.hidden));
        assert_ok(wt_nn_lstm_prepare(r->nn, &args));
        args.out = &first;
        assert_ok(wt_nn_lstm(r->nn, r->stream, &args));
        args.out = &a.out;
        assert_ok(wt_graph_begin(r->stream, &graph));
        assert_ok(wt_nn_lstm(r->nn, r->stream, &args));
        assert_ok(wt_graph_end(graph));
        for (int n = 0; n < 3; n++) assert_ok(wt_graph_launch(graph, r->stream));
        nn_same(r, &a.out, &first);
        wt_graph_get_info(graph, &info);
        wt_graph_destroy(graph);
        count_product(r, &args, &product);
        assert_int_equal(info.n_nodes + info.n_foreign, product.n_nodes + product.n_foreign + 1);
    }
}

static void a_graph_gives_the_same_again(void **state) { nn_run_type(state, replay, WT_DTYPE_F32); }

static void refused(nn_rig *r)
{
    arrays a;
    wt_lstm_args args = layer_of(r, &layers[1], false, &a);
    a.out.shape[2] = 33;
    assert_fails(wt_nn_lstm(r->nn, r->stream, &args), WT_ERR_BAD_ARG, "lstm: out is [9][3][33], want [9][3][66]");
    a.out.shape[2] = 66;
    a.weights[1][1].shape[0] = 99;
    assert_fails(wt_nn_lstm(r->nn, r->stream, &args), WT_ERR_BAD_ARG,
                 "lstm: recurrent weights is [99][33], want [132][33]");
    args.directions = 3;
    assert_fails(wt_nn_lstm(r->nn, r->stream, &args), WT_ERR_BAD_ARG,
                 "lstm: 3 directions, want 1 or 2, and recurrent weights [4 hidden][hidden]");
}

static void refusals_name_what_was_met(void **state) { nn_run_type(state, refused, WT_DTYPE_F32); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_few_units),
        cmocka_unit_test(both_directions_and_lengths),
        cmocka_unit_test(a_vad_s_layer),
        cmocka_unit_test(a_voice_s_layer),
        cmocka_unit_test(large_layers_on_both_backends),
        cmocka_unit_test(a_graph_gives_the_same_again),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("LSTM on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("LSTM on a GPU", tests, open_cuda, close_device);
}
