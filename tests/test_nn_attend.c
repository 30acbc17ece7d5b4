// Attention against torch (tests/golden/make_nn.py) and the backends against each other. In 16 bits the shares are
// rounded too, on a GPU.
#include "support/device_check.h"
#include "support/nn_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int n, heads, kv_heads, queries, keys, d, causal, window;
} shape;

/// A mask of make_nn.py's fourth input: BOOL where it is above -0.5, or four times it.
static wt_array mask_of(nn_rig *r, bool additive, int n, int queries, int keys)
{
    uint64_t seed = 4;
    unsigned char *may = calloc((size_t)(n * queries * keys + 3), sizeof(float));
    for (int k = 0; k < n * queries * keys; k++) {
        const double x = rint(127 * (double)noise(&seed)) / 128;
        if (additive)
            memcpy(may + 4 * k, &(float){(float)(4 * x)}, 4);
        else
            may[k] = x > -0.5;
    }
    const int64_t count = ((int64_t)n * queries * keys + 3) / 4 * (additive ? 4 : 1);
    wt_array mask = nn_floats(r, (const float *)(void *)may, 1, &count);
    free(may);
    if (additive) return wt_array_of(mask.data, WT_DTYPE_F32, 2, (const int64_t[]){queries, keys});
    return wt_array_of(mask.data, WT_DTYPE_BOOL, 4, (const int64_t[]){n, 1, queries, keys});
}

enum { NO_MASK, BOOLEAN, ADDITIVE };

static void attend(nn_rig *r, const shape *s, int masked, double scale, const char *name)
{
    wt_array q = nn_input(r, r->type, 1, 2, 0, NN_SHAPE(s->n, s->heads, s->queries, s->d)), mask;
    wt_array key = nn_input(r, r->type, 2, 1, 0, NN_SHAPE(s->n, s->kv_heads, s->keys, s->d));
    wt_array v = nn_input(r, r->type, 3, 2, 0, NN_SHAPE(s->n, s->kv_heads, s->keys, s->d));
    wt_array out = nn_empty(r, r->type, NN_SHAPE(s->n, s->heads, s->queries, s->d));
    if (masked) mask = mask_of(r, masked == ADDITIVE, s->n, s->queries, s->keys);
    const wt_attention_args args = {.q = &q,
                                    .k = &key,
                                    .v = &v,
                                    .mask = masked ? &mask : NULL,
                                    .causal = s->causal,
                                    .window = s->window,
                                    .scale = scale,
                                    .out = &out};
    assert_ok(wt_nn_attention(r->nn, r->stream, &args));
    nn_result(r, name, &out, 2e-6, 2);
}

static void goldens(nn_rig *r)
{
    static const shape shapes[] = {{2, 3, 3, 20, 20, 16, 0, 0},  {1, 4, 2, 70, 70, 64, 1, 0},
                                   {1, 2, 1, 5, 37, 40, 1, 0},   {2, 2, 2, 9, 33, 64, 0, 0},
                                   {1, 3, 3, 33, 65, 128, 0, 0}, {1, 2, 2, 40, 40, 8, 1, 7}};
    for (int k = 0; k < 6; k++) {
        char name[16];
        snprintf(name, sizeof name, "attention_%d", k);
        attend(r, &shapes[k], k == 3 ? BOOLEAN : k == 4 ? ADDITIVE : NO_MASK, 0, name);
    }
}

/// Heads beside each other in a token's row, as projections leave them; queries that may look at nothing; wide heads.
static void views(nn_rig *r)
{
    const int widths[] = {64, 128, 192};
    for (int k = 0; k < 3; k++) {
        const int d = widths[k], queries = 150 + k, keys = 130;
        const wt_array rows = nn_input(r, r->type, 1, 2, 0, NN_SHAPE(2, queries, 4, d));
        const wt_array kv = nn_input(r, r->type, 2, 1, 0, NN_SHAPE(2, keys, 4, d));
        wt_array q, key, v, out = nn_empty(r, r->type, NN_SHAPE(2, queries, 4, d)), to;
        assert_ok(wt_array_transpose(&rows, (const int[]){0, 2, 1, 3}, &q));
        assert_ok(wt_array_transpose(&out, (const int[]){0, 2, 1, 3}, &to));
        assert_ok(wt_array_transpose(&kv, (const int[]){0, 2, 1, 3}, &key));
        assert_ok(wt_array_slice(&key, 1, 2, 4, 1, &v));
        assert_ok(wt_array_slice(&key, 1, 0, 2, 1, &key));
        const wt_attention_args args = {.q = &q, .k = &key, .v = &v, .causal = true, .scale = 0.25, .out = &to};
        assert_ok(wt_nn_attention(r->nn, r->stream, &args));
        nn_result(r, NULL, &out, 2e-6, 2);
    }
}

/// Windows and masks over several tiles of queries and keys; one query, one key.
static void tiles(nn_rig *r)
{
    static const shape shapes[] = {{1, 2, 1, 200, 330, 40, 1, 100}, {1, 2, 2, 140, 200, 128, 0, 0},
                                   {2, 1, 1, 130, 150, 64, 0, 0},   {1, 4, 2, 1, 129, 64, 1, 0},
                                   {1, 1, 1, 65, 1, 72, 0, 0},      {1, 1, 1, 130, 130, 256, 1, 70}};
    for (int k = 0; k < 6; k++)
        attend(r, &shapes[k], k == 1 ? ADDITIVE : k == 2 ? BOOLEAN : NO_MASK, k == 4 ? -0.5 : 0, NULL);
}

/// With more blocks than the GPU has room for, as each head alone: no tile is used before it is there, nor after.
static void full(nn_rig *r)
{
    enum { HEADS = 40, GROUP = 4, N = 1500 };
    if (wt_device_get_info(r->device)->backend != WT_BACKEND_CUDA) return; // minutes
    for (int d = 64; d <= 128; d *= 2) {
        const wt_array q = nn_input(r, r->type, 1, 2, 0, NN_SHAPE(1, HEADS, N, d));
        const wt_array key = nn_input(r, r->type, 2, 1, 0, NN_SHAPE(1, HEADS / GROUP, N, d));
        const wt_array v = nn_input(r, r->type, 3, 2, 0, NN_SHAPE(1, HEADS / GROUP, N, d));
        wt_array all = nn_empty(r, r->type, NN_SHAPE(1, HEADS, N, d));
        wt_array one = nn_empty(r, r->type, NN_SHAPE(1, 1, N, d)), of_q, of_key, of_v, of_all;
        wt_attention_args args = {.q = &q, .k = &key, .v = &v, .causal = d == 128, .out = &all};
        for (int times = 0; times < 3; times++) assert_ok(wt_nn_attention(r->nn, r->stream, &args));
        for (int h = 0; h < HEADS; h += 3) {
            assert_ok(wt_array_slice(&q, 1, h, h + 1, 1, &of_q));
            assert_ok(wt_array_slice(&key, 1, h / GROUP, h / GROUP + 1, 1, &of_key));
            assert_ok(wt_array_slice(&v, 1, h / GROUP, h / GROUP + 1, 1, &of_v));
            assert_ok(wt_array_slice(&all, 1, h, h + 1, 1, &of_all));
            args = (wt_attention_args){.q = &of_q, .k = &of_key, .v = &of_v, .causal = d == 128, .out = &one};
            assert_ok(wt_nn_attention(r->nn, r->stream, &args));
            nn_same(r, &of_all, &one);
        }
    }
}

static void a_full_gpu_gives_the_bits_of_one_head(void **state) { nn_run_type(state, full, WT_DTYPE_BF16); }

static void attention_as_torch(void **state) { nn_run(state, goldens); }
static void views_on_both_backends(void **state) { nn_run(state, views); }
static void tiles_on_both_backends(void **state) { nn_run(state, tiles); }

static void refused(nn_rig *r)
{
    wt_array q = nn_empty(r, r->type, NN_SHAPE(1, 4, 5, 16)), k = nn_empty(r, r->type, NN_SHAPE(1, 2, 6, 16));
    wt_array v = nn_empty(r, r->type, NN_SHAPE(1, 2, 7, 16)), out = nn_empty(r, r->type, NN_SHAPE(1, 4, 5, 16));
    wt_attention_args args = {.q = &q, .k = &k, .v = &v, .out = &out};
    assert_fails(wt_nn_attention(r->nn, r->stream, &args), WT_ERR_BAD_ARG,
                 "attention: v is [1][2][7][16], want [1][2][6][16]");
    q.shape[3] = 12;
    assert_int_equal(wt_nn_attention(r->nn, r->stream, &args), WT_ERR_BAD_ARG);
}

static void refusals_name_what_was_met(void **state) { nn_run_type(state, refused, WT_DTYPE_F32); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_as_torch),
        cmocka_unit_test(views_on_both_backends),
        cmocka_unit_test(tiles_on_both_backends),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    const struct CMUnitTest large[] = {cmocka_unit_test(a_full_gpu_gives_the_bits_of_one_head)};
    int failed = cmocka_run_group_tests_name("attention on the CPU", tests, open_cpu, close_device);
    failed += cmocka_run_group_tests_name("attention on a GPU", tests, open_cuda, close_device);
    return failed + cmocka_run_group_tests_name("much attention on a GPU", large, open_cuda, close_device);
}
