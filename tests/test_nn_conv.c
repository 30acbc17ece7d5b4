// Convolutions against torch (tests/golden/make_nn.py) and the backends against each other. Errors are those of sums in
// float, of up to 500 terms against torch and 7680 between the backends.
#include "support/device_check.h"
#include "support/nn_check.h"
#include "support/testing.h"

#include <stdio.h>

typedef struct shape {
    int n, channels, length, outputs, taps, stride, padding, dilation, groups, extra; ///< extra -1 = not transposed
} shape;

static wt_conv1d_args args_of(const shape *s)
{
    return (wt_conv1d_args){.stride = s->stride,
                            .dilation = s->dilation,
                            .groups = s->groups,
                            .padding = s->padding,
                            .output_padding = s->extra > 0 ? s->extra : 0,
                            .transposed = s->extra >= 0};
}

/// The weights as they are, or lying [taps][outputs][inputs]; the result is dense either way.
static void convolve(nn_rig *r, const shape *s, const char *name, wt_activation activation, bool turned)
{
    wt_conv1d_args args = args_of(s);
    wt_array x = nn_input(r, r->type, 1, 1, 0, NN_SHAPE(s->n, s->channels, s->length));
    wt_array w = s->extra < 0
                     ? nn_input(r, r->type, 2, 0.25, 0, NN_SHAPE(s->outputs, s->channels / s->groups, s->taps))
                     : nn_input(r, r->type, 2, 0.25, 0, NN_SHAPE(s->channels, s->outputs / s->groups, s->taps));
    wt_array bias = nn_input(r, WT_DTYPE_F32, 3, 1, 0, NN_SHAPE(s->outputs)), view = w;
    wt_array out = nn_empty(r, r->type, NN_SHAPE(s->n, s->outputs, wt_conv1d_length(&args, s->length, s->taps)));
    if (turned) {
        wt_array copy = nn_empty(r, r->type, NN_SHAPE(w.shape[2], w.shape[0], w.shape[1]));
        wt_arrays *arrays;
        assert_ok(wt_arrays_create(&(wt_arrays_config){.device = r->device}, &arrays));
        assert_ok(wt_array_transpose(&copy, (const int[]){1, 2, 0}, &view));
        assert_ok(wt_array_unary(arrays, r->stream, WT_UNARY_COPY, &w, &view));
        assert_ok(wt_stream_synchronize(r->stream));
        wt_arrays_destroy(arrays);
    }
    args.x = &x, args.weight = &view, args.bias = &bias, args.out = &out;
    args.activation.kind = activation;
    assert_ok(wt_nn_conv1d(r->nn, r->stream, &args));
    nn_result(r, name, &out, 2e-6, 1);
}

static void goldens(nn_rig *r)
{
    static const shape shapes[] = {{2, 5, 30, 7, 3, 1, 1, 1, 1, -1},     {1, 20, 61, 33, 3, 2, 1, 1, 1, -1},
                                   {1, 16, 70, 24, 11, 1, 25, 5, 1, -1}, {2, 12, 40, 18, 5, 1, 2, 1, 3, -1},
                                   {1, 22, 90, 40, 12, 6, 3, 1, 1, -1},  {2, 6, 20, 6, 3, 2, 1, 1, 6, 1},
                                   {1, 40, 13, 36, 20, 10, 5, 1, 1, 0},  {1, 18, 15, 20, 5, 3, 2, 2, 2, 1},
                                   {1, 64, 5, 70, 1, 1, 0, 1, 1, -1},    {1, 1, 50, 1, 3, 2, 1, 1, 1, -1}};
    for (int k = 0; k < 10; k++) {
        char name[16];
        snprintf(name, sizeof name, "conv_%d", k);
        convolve(r, &shapes[k], name, k == 1 ? WT_ACTIVATION_GELU : WT_ACTIVATION_NONE, false);
    }
}

/// Several tiles of outputs, positions, channels and taps, and a window of x that comes in chunks of taps; with the
/// weights in their fast order too.
static void large_ones(nn_rig *r)
{
    static const shape shapes[] = {{1, 40, 300, 136, 3, 1, 1, 1, 1, -1},
                                   {1, 64, 259, 130, 3, 2, 1, 1, 1, -1},
                                   {1, 72, 200, 80, 11, 1, 25, 5, 1, -1},
                                   {2, 48, 40, 132, 20, 10, 5, 1, 1, 0},
                                   {1, 40, 400, 24, 7, 3, 9, 48, 1, -1}};
    for (int k = 0; k < 5; k++)
        for (int turned = 0; turned < 2; turned++) convolve(r, &shapes[k], NULL, WT_ACTIVATION_SILU, turned);
}

/// Enough signals for large tiles on a large GPU.
static void many_signals(nn_rig *r)
{
    static const shape plain = {208, 9, 67, 70, 3, 1, 1, 1, 1, -1}, up = {104, 24, 34, 33, 5, 3, 1, 1, 1, 1};
    convolve(r, &plain, NULL, WT_ACTIVATION_NONE, true);
    convolve(r, &up, NULL, WT_ACTIVATION_SILU, true);
}

/// What comes out is added to what was there.
static void residuals(nn_rig *r)
{
    wt_array x = nn_input(r, r->type, 1, 1, 0, NN_SHAPE(2, 16, 33)),
             w = nn_input(r, r->type, 2, 0.25, 0, NN_SHAPE(16, 16, 3));
    wt_array out = nn_empty(r, r->type, NN_SHAPE(2, 16, 33)), both = nn_input(r, r->type, 4, 1, 0, NN_SHAPE(2, 16, 33));
    wt_array sum = nn_input(r, r->type, 4, 1, 0, NN_SHAPE(2, 16, 33));
    wt_conv1d_args args = {.x = &x, .weight = &w, .padding = 1, .out = &out};
    assert_ok(wt_nn_conv1d(r->nn, r->stream, &args));
    args.residual = args.out = &both;
    assert_ok(wt_nn_conv1d(r->nn, r->stream, &args));
    const wt_pointwise_args add = {.x = &out, .residual = &sum, .out = &sum};
    assert_ok(wt_nn_pointwise(r->nn, r->stream, &add));
    if (r->type == WT_DTYPE_F32) nn_same(r, &both, &sum);
    nn_result(r, NULL, &both, 2e-6, 1);
}

static void convolutions_as_torch(void **state) { nn_run(state, goldens); }
static void large_ones_on_both_backends(void **state) { nn_run(state, large_ones); }
static void many_signals_on_both_backends(void **state) { nn_run(state, many_signals); }
static void residuals_are_added(void **state) { nn_run(state, residuals); }

static void refused(nn_rig *r)
{
    wt_array x = nn_empty(r, r->type, NN_SHAPE(1, 4, 10)), w = nn_empty(r, r->type, NN_SHAPE(6, 4, 3));
    wt_array out = nn_empty(r, r->type, NN_SHAPE(1, 6, 9));
    wt_conv1d_args args = {.x = &x, .weight = &w, .padding = 1, .out = &out};
    assert_fails(wt_nn_conv1d(r->nn, r->stream, &args), WT_ERR_BAD_ARG, "conv1d: out is [1][6][9], want [1][6][10]");
    args.groups = 2;
    assert_fails(wt_nn_conv1d(r->nn, r->stream, &args), WT_ERR_BAD_ARG,
                 "conv1d: weight is [6][4][3] for 4 channels in 2 groups, want [outputs][channels / groups][taps]");
    args.output_padding = 1;
    assert_int_equal(wt_nn_conv1d(r->nn, r->stream, &args), WT_ERR_BAD_ARG);
    assert_int_equal(wt_conv1d_length(&(wt_conv1d_args){.stride = 2}, 2, 3), 0);
}

static void refusals_name_what_was_met(void **state) { nn_run_type(state, refused, WT_DTYPE_F32); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_as_torch),         cmocka_unit_test(large_ones_on_both_backends),
        cmocka_unit_test(many_signals_on_both_backends), cmocka_unit_test(residuals_are_added),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("convolutions on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("convolutions on a GPU", tests, open_cuda, close_device);
}
