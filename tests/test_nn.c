// Pointwise operations, norms, embeddings and RoPE against torch (tests/golden/make_nn.py), on both backends. In F32
// the errors are those of sums of a hundred terms and of the approximations in nn_kernel.h, 5e-7 of a value of 1.
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/nn_check.h"
#include "support/testing.h"

#include <warptone/graph.h>
#include <warptone/model_config.h>

#define IN(seed, scale, offset, ...) nn_input(r, r->type, seed, scale, offset, NN_SHAPE(__VA_ARGS__))
#define OUT(...)                     nn_empty(r, r->type, NN_SHAPE(__VA_ARGS__))
/// More bits than BF16 has.
#define FACTORS(seed, ...)           nn_input(r, WT_DTYPE_F32, seed, 0.5, 1, NN_SHAPE(__VA_ARGS__))

static wt_array part_of(const wt_array *a, int axis, int64_t begin, int64_t end)
{
    wt_array view;
    assert_ok(wt_array_slice(a, axis, begin, end, 1, &view));
    return view;
}

static void activations(nn_rig *r)
{
    wt_array x = IN(1, 8, 0, 5, 37), bias = IN(2, 1, 0, 37), all = OUT(9, 5, 37);
    for (int k = 0; k < 9; k++) {
        wt_array out = part_of(&all, 0, k, k + 1);
        assert_ok(wt_array_reshape(&out, NN_SHAPE(5, 37), &out));
        const wt_pointwise_args args = {
            .x = &x, .bias = &bias, .activation = {.kind = (wt_activation)k, .slope = 0.25}, .out = &out};
        assert_ok(wt_nn_pointwise(r->nn, r->stream, &args));
    }
    nn_result(r, "activations", &all, 1e-6, 1);
}

static void gates_and_residuals(nn_rig *r)
{
    wt_array x = IN(1, 8, 0, 5, 37), bias = IN(2, 1, 0, 37), up = IN(3, 1, 0, 5, 37), residual = IN(4, 1, 0, 5, 37);
    wt_array out = OUT(5, 37);
    wt_pointwise_args args = {.x = &x, .up = &up, .activation.kind = WT_ACTIVATION_SILU, .out = &out};
    assert_ok(wt_nn_pointwise(r->nn, r->stream, &args));
    nn_result(r, "swiglu", &out, 1e-6, 1);
    args = (wt_pointwise_args){.x = &x,
                               .bias = &bias,
                               .up = &up,
                               .residual = &residual,
                               .activation.kind = WT_ACTIVATION_GELU,
                               .out = &residual};
    assert_ok(wt_nn_pointwise(r->nn, r->stream, &args));
    nn_result(r, "geglu", &residual, 1e-6, 1);
}

static void snakes_of_channels(nn_rig *r)
{
    wt_array x = IN(6, 4, 0, 2, 3, 41), bias = IN(7, 1, 0, 3), alpha = FACTORS(5, 3), out = OUT(2, 3, 41);
    const wt_pointwise_args args = {.x = &x,
                                    .bias = &bias,
                                    .activation = {.kind = WT_ACTIVATION_SNAKE, .alpha = &alpha},
                                    .signals = true,
                                    .out = &out};
    assert_ok(wt_nn_pointwise(r->nn, r->stream, &args));
    nn_result(r, "snake", &out, 1e-6, 1);
}

/// Both halves of a joint projection as views, in packs and not, and rows of many pieces.
static void gates_of_views(nn_rig *r)
{
    for (int width = 1024; width <= 1027; width += 3) {
        wt_array joint = IN(1, 4, 0, 33, 2 * width), out = OUT(33, width);
        wt_array gate = part_of(&joint, 1, 0, width), up = part_of(&joint, 1, width, 2 * width);
        const wt_pointwise_args args = {.x = &gate, .up = &up, .activation.kind = WT_ACTIVATION_GELU_TANH, .out = &out};
        assert_ok(wt_nn_pointwise(r->nn, r->stream, &args));
        nn_result(r, NULL, &out, 1e-6, 1);
    }
}

static void norms_of_rows(nn_rig *r)
{
    wt_array x = IN(1, 1, 0, 6, 100), residual = IN(2, 1, 0, 6, 100), w = FACTORS(3, 100), b = IN(4, 1, 0, 100);
    wt_array out = OUT(6, 100);
    wt_norm_args args = {.kind = WT_NORM_RMS, .x = &x, .weight = &w, .eps = 1e-6, .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "rms", &out, 1e-6, 1);
    args.residual = args.sum = &residual;
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "rms_residual", &out, 1e-6, 2); // of the rounded sum
    nn_result(r, "rms_sum", &residual, 1e-6, 1);
    args = (wt_norm_args){.kind = WT_NORM_LAYER, .x = &x, .weight = &w, .bias = &b, .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "layer", &out, 1e-6, 1);
    args = (wt_norm_args){.kind = WT_NORM_L2, .x = &x, .eps = 1e-6, .out = &x};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "l2", &x, 1e-6, 1);
}

static void norms_with_a_style(nn_rig *r)
{
    wt_array x = IN(1, 1, 0, 6, 100), many = IN(5, 1, 0, 3, 200), out = OUT(6, 100);
    wt_array w = part_of(&many, 1, 0, 100), b = part_of(&many, 1, 100, 200);
    wt_norm_args args = {.kind = WT_NORM_LAYER, .x = &x, .weight = &w, .bias = &b, .one_plus = true, .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "ada_layer", &out, 1e-6, 1);
    wt_array y = IN(6, 1, 0, 2, 12, 50), style = IN(10, 1, 0, 2, 24), alpha = FACTORS(9, 12);
    w = part_of(&style, 1, 0, 12), b = part_of(&style, 1, 12, 24);
    args = (wt_norm_args){.kind = WT_NORM_GROUP,
                          .x = &y,
                          .weight = &w,
                          .bias = &b,
                          .one_plus = true,
                          .activation = {.kind = WT_ACTIVATION_SNAKE, .alpha = &alpha},
                          .out = &y};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "adain_snake", &y, 1e-6, 1);
}

static void norms_of_signals(nn_rig *r)
{
    wt_array y = IN(6, 1, 0, 2, 12, 50), gamma = IN(7, 1, 0, 12), beta = IN(8, 1, 0, 12), out = OUT(2, 12, 50);
    wt_norm_args args = {.kind = WT_NORM_GROUP, .x = &y, .weight = &gamma, .bias = &beta, .groups = 3, .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "group", &out, 1e-6, 1);
    args = (wt_norm_args){.kind = WT_NORM_GROUP, .x = &y, .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "instance", &out, 1e-6, 1);
    args = (wt_norm_args){.kind = WT_NORM_CHANNELS,
                          .x = &y,
                          .weight = &gamma,
                          .bias = &beta,
                          .activation = {.kind = WT_ACTIVATION_LEAKY_RELU, .slope = 0.2},
                          .out = &out};
    assert_ok(wt_nn_norm(r->nn, r->stream, &args));
    nn_result(r, "channels", &out, 1e-6, 1);
}

/// Rows for a warp, a block and a large block, with and without packs; sums of 50,000 terms err more.
static void norms_of_every_width(nn_rig *r)
{
    static const int widths[] = {1, 64, 1024, 1025, 4096, 16386, 50001};
    for (int k = 0; k < 7; k++) {
        const int rows = widths[k] > 20000 ? 2 : 11;
        wt_array x = IN(1, 1, 1, rows, widths[k]), residual = IN(2, 1, 0, rows, widths[k]), out = OUT(rows, widths[k]);
        for (int kind = WT_NORM_RMS; kind <= WT_NORM_LAYER; kind++) {
            const wt_norm_args args = {
                .kind = (wt_norm_kind)kind, .x = &x, .residual = kind ? &residual : NULL, .out = &out};
            assert_ok(wt_nn_norm(r->nn, r->stream, &args));
            nn_result(r, NULL, &out, 3e-6, 1);
        }
    }
}

static void embeddings(nn_rig *r)
{
    static const int32_t ids[] = {3, 10, 0, 7, 7, 1, 0, 2, 4, 6, 8, 10},
                         places[] = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
    wt_array table = IN(1, 1, 0, 11, 40), positions = IN(2, 1, 0, 6, 40), out = OUT(2, 6, 40), bags = OUT(2, 40);
    wt_array id = nn_integers(r, ids, NN_SHAPE(2, 6)), place = nn_integers(r, places, NN_SHAPE(12));
    wt_embed_args args = {.ids = &id, .table = &table, .positions = &positions, .out = &out};
    assert_ok(wt_nn_embed(r->nn, r->stream, &args));
    nn_result(r, "embed", &out, 1e-6, 1);
    args.places = &place;
    assert_ok(wt_nn_embed(r->nn, r->stream, &args));
    nn_result(r, "embed", &out, 1e-6, 1);
    args = (wt_embed_args){.ids = &id, .bag = true, .mean = true, .table = &table, .out = &bags};
    assert_ok(wt_nn_embed(r->nn, r->stream, &args));
    nn_result(r, "embed_bag", &bags, 1e-6, 1);
}

/// Ids outside are passed over; 64-bit ids.
static void embeddings_of_what_is_not_there(nn_rig *r)
{
    static const int32_t ids[] = {1, 0, -1, -1, 11, 0, 3, 0, -1, -1, -2, -1}; // low, high: 1, -1, 11, 3, -1, -2
    wt_array table = IN(1, 1, 0, 11, 40), out = OUT(2, 40);
    wt_array id = nn_integers(r, ids, NN_SHAPE(6, 2));
    id = wt_array_of(id.data, WT_DTYPE_I64, NN_SHAPE(2, 3));
    const wt_embed_args args = {.ids = &id, .bag = true, .mean = true, .table = &table, .scale = 4, .out = &out};
    assert_ok(wt_nn_embed(r->nn, r->stream, &args));
    wt_array want = OUT(2, 40);
    for (int k = 0; k < 2; k++) { // rows 1 and 3 alone, times 4
        wt_array row = part_of(&table, 0, 1 + 2 * k, 2 + 2 * k), to = part_of(&want, 0, k, k + 1);
        const wt_pointwise_args twice = {.x = &row, .residual = &row, .out = &to},
                                again = {.x = &to, .residual = &to, .out = &to};
        assert_ok(wt_nn_pointwise(r->nn, r->stream, &twice));
        assert_ok(wt_nn_pointwise(r->nn, r->stream, &again));
    }
    nn_same(r, &out, &want);
}

static wt_array frequencies_of(nn_rig *r, int n)
{
    float f[12], scale;
    wt_rope_frequencies(&(wt_rope_config){.kind = WT_ROPE_DEFAULT, .theta = 10000, .n_dims = 24, .factor = 1}, NULL, 0,
                        f, &scale);
    assert_true(scale == 1);
    return nn_floats(r, f, NN_SHAPE(n));
}

static const int32_t positions[] = {0, 1, 5, 17, 100, 3, 2};

// An angle of position 100 turns the rounding of its product, 4e-6, into as much of the value.
static void rope(nn_rig *r)
{
    wt_array x = IN(1, 1, 0, 7, 5, 24), out = OUT(7, 5, 24), at = nn_integers(r, positions, NN_SHAPE(7));
    wt_array f = frequencies_of(r, 12), few = frequencies_of(r, 8);
    wt_rope_args args = {.x = &x, .positions = &at, .frequencies = &f, .out = &out};
    assert_ok(wt_nn_rope(r->nn, r->stream, &args));
    nn_result(r, "rope", &out, 1e-5, 1);
    args = (wt_rope_args){.x = &x, .positions = &at, .frequencies = &few, .interleaved = true, .out = &x};
    assert_ok(wt_nn_rope(r->nn, r->stream, &args));
    nn_result(r, "rope_interleaved", &x, 1e-5, 1);
}

/// q to [heads][tokens][d_head], k and v as the tokens lie.
static void joint_projections(nn_rig *r)
{
    wt_array x = IN(1, 1, 0, 7, 120), bias = IN(2, 1, 0, 120), at = nn_integers(r, positions, NN_SHAPE(7));
    wt_array f = frequencies_of(r, 12), q = OUT(3, 7, 24), k = OUT(7, 1, 24), v = OUT(7, 1, 24), whole = OUT(7, 3, 24),
             tokens;
    assert_ok(wt_array_transpose(&q, (const int[]){1, 0, 2}, &tokens));
    wt_qkv_args args = {.x = &x, .bias = &bias, .positions = &at, .frequencies = &f, .q = &tokens, .k = &k, .v = &v};
    assert_ok(wt_nn_qkv(r->nn, r->stream, &args));
    nn_result(r, "qkv_k", &k, 1e-5, 1);
    nn_result(r, "qkv_v", &v, 1e-6, 1);
    args.q = &whole;
    assert_ok(wt_nn_qkv(r->nn, r->stream, &args));
    nn_result(r, "qkv_q", &whole, 1e-5, 1);
    for (int head = 0; head < 3; head++)
        for (int t = 0; t < 7; t += 3) {
            wt_array a = tokens, b = whole;
            a.data += (uintptr_t)(head * 7 + t) * 24 * wt_dtype_bytes(r->type, 1);
            b.data += (uintptr_t)(t * 3 + head) * 24 * wt_dtype_bytes(r->type, 1);
            a.rank = b.rank = 1;
            a.shape[0] = b.shape[0] = 24;
            a.strides[0] = b.strides[0] = 1;
            nn_same(r, &a, &b);
        }
}

// ---- queued

/// What the operations below read, and where each writes.
typedef struct all_of_them {
    wt_array x, table, ids, places, frequencies, weight, scores; ///< [2][24][40]; [24][40]; [8]; [8]; [12]; [24][24][3]
    wt_array point, norm, embedded, turned, q, k, v, filtered, attended, chosen, shares, offsets, slots, grouped, back;
} all_of_them;

static void make_outs(nn_rig *r, all_of_them *o)
{
    o->point = OUT(48, 40), o->norm = OUT(48, 40), o->embedded = OUT(8, 40), o->turned = OUT(8, 3, 24);
    o->q = OUT(8, 3, 24), o->k = OUT(8, 1, 24), o->v = OUT(8, 1, 24), o->filtered = OUT(2, 24, 40);
    o->attended = OUT(2, 3, 8, 40);
    o->chosen = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(8, 2)), o->slots = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(8, 2));
    o->shares = nn_empty(r, WT_DTYPE_F32, NN_SHAPE(8, 2)), o->offsets = nn_empty(r, WT_DTYPE_I32, NN_SHAPE(41));
    o->grouped = OUT(16, 40), o->back = OUT(8, 40);
}

static wt_array as(const wt_array *a, int rank, const int64_t *shape)
{
    return wt_array_of(a->data, a->dtype, rank, shape);
}

static void queue_all(nn_rig *r, const all_of_them *o)
{
    const wt_array rows = as(&o->x, NN_SHAPE(48, 40)), heads = as(&o->x, NN_SHAPE(8, 3, 24)),
                   joint = as(&o->x, NN_SHAPE(8, 120)), many = as(&o->x, NN_SHAPE(2, 3, 8, 40)),
                   tokens = as(&o->x, NN_SHAPE(8, 40));
    const wt_pointwise_args point = {.x = &rows, .up = &rows, .activation.kind = WT_ACTIVATION_SILU, .out = &o->point};
    const wt_norm_args norm = {.kind = WT_NORM_RMS, .x = &rows, .residual = &rows, .out = &o->norm};
    const wt_embed_args embed = {.ids = &o->ids, .table = &o->table, .out = &o->embedded};
    const wt_rope_args rope = {.x = &heads, .positions = &o->places, .frequencies = &o->frequencies, .out = &o->turned};
    const wt_qkv_args qkv = {
        .x = &joint, .positions = &o->places, .frequencies = &o->frequencies, .q = &o->q, .k = &o->k, .v = &o->v};
    const wt_conv1d_args conv = {.x = &o->x, .weight = &o->weight, .padding = 1, .out = &o->filtered};
    const wt_attention_args attention = {.q = &many, .k = &many, .v = &many, .causal = true, .out = &o->attended};
    const wt_route_args route = {.scores = &o->scores, .chosen = &o->chosen, .shares = &o->shares};
    const wt_permute_args permute = {
        .chosen = &o->chosen, .offsets = &o->offsets, .slots = &o->slots, .x = &tokens, .grouped = &o->grouped};
    const wt_unpermute_args unpermute = {
        .grouped = &o->grouped, .slots = &o->slots, .shares = &o->shares, .out = &o->back};
    assert_ok(wt_nn_pointwise(r->nn, r->stream, &point));
    assert_ok(wt_nn_norm(r->nn, r->stream, &norm));
    assert_ok(wt_nn_embed(r->nn, r->stream, &embed));
    assert_ok(wt_nn_rope(r->nn, r->stream, &rope));
    assert_ok(wt_nn_qkv(r->nn, r->stream, &qkv));
    assert_ok(wt_nn_conv1d(r->nn, r->stream, &conv));
    assert_ok(wt_nn_attention(r->nn, r->stream, &attention));
    assert_ok(wt_nn_route(r->nn, r->stream, &route));
    assert_ok(wt_nn_permute(r->nn, r->stream, &permute));
    assert_ok(wt_nn_unpermute(r->nn, r->stream, &unpermute));
}

/// None takes memory, waits or reads back: the host's is counted on the CPU, and while a GPU records a graph the driver
/// refuses the rest. The graph gives the same again.
static void queued_and_no_more(nn_rig *r)
{
    static const int32_t ids[] = {3, 10, 0, 7, 7, 1, 0, 2};
    all_of_them direct = {.x = IN(1, 1, 0, 2, 24, 40),
                          .table = IN(2, 1, 0, 24, 40),
                          .ids = nn_integers(r, ids, NN_SHAPE(8)),
                          .places = nn_integers(r, ids, NN_SHAPE(8)),
                          .frequencies = frequencies_of(r, 12),
                          .weight = IN(3, 1, 0, 24, 24, 3),
                          .scores = IN(4, 1, 0, 8, 40)};
    all_of_them replayed = direct;
    wt_graph *graph = NULL;
    make_outs(r, &direct), make_outs(r, &replayed);
    queue_all(r, &direct);
    assert_ok(wt_stream_synchronize(r->stream));
    failing_alloc_start(-1);
    queue_all(r, &direct);
    const failing_alloc_counts counts = failing_alloc_stop();
    if (wt_device_get_info(r->device)->backend == WT_BACKEND_CPU) assert_int_equal(counts.n_allocations, 0);
    assert_ok(wt_graph_begin(r->stream, &graph));
    queue_all(r, &replayed);
    assert_ok(wt_graph_end(graph));
    assert_ok(wt_graph_launch(graph, r->stream));
    const wt_array *a = &direct.point, *b = &replayed.point;
    for (; a <= &direct.back; a++, b++) nn_same(r, b, a);
    wt_graph_destroy(graph);
}

static void operations_are_queued_and_no_more(void **state) { nn_run(state, queued_and_no_more); }

#define ALL_TYPES(name)                                                                                                \
    static void name##_as_torch(void **state) { nn_run(state, name); }
ALL_TYPES(activations)
ALL_TYPES(gates_and_residuals)
ALL_TYPES(snakes_of_channels)
ALL_TYPES(gates_of_views)
ALL_TYPES(norms_of_rows)
ALL_TYPES(norms_with_a_style)
ALL_TYPES(norms_of_signals)
ALL_TYPES(norms_of_every_width)
ALL_TYPES(embeddings)
ALL_TYPES(embeddings_of_what_is_not_there)
ALL_TYPES(rope)
ALL_TYPES(joint_projections)

static void refused(nn_rig *r)
{
    wt_array x = OUT(4, 8), y = OUT(4, 6), w = OUT(6), i = nn_integers(r, positions, NN_SHAPE(4)), turned;
    wt_nn *nn = r->nn;
    assert_ok(wt_array_transpose(&x, (const int[]){1, 0}, &turned));
    assert_fails(wt_nn_pointwise(nn, r->stream, &(wt_pointwise_args){.out = &x}), WT_ERR_BAD_ARG,
                 "pointwise: x is missing");
    assert_fails(wt_nn_pointwise(nn, r->stream, &(wt_pointwise_args){.x = &x, .out = &y}), WT_ERR_BAD_ARG,
                 "pointwise: out is [4][6], want [4][8]");
    assert_fails(wt_nn_pointwise(nn, r->stream, &(wt_pointwise_args){.x = &x, .bias = &w, .out = &x}), WT_ERR_BAD_ARG,
                 "pointwise: bias is [6], want [8]");
    assert_fails(wt_nn_pointwise(nn, r->stream, &(wt_pointwise_args){.x = &turned, .out = &x}), WT_ERR_BAD_ARG,
                 "pointwise: x has stride 8 along its last axis, want 1");
    assert_fails(wt_nn_pointwise(nn, r->stream,
                                 &(wt_pointwise_args){.x = &x, .activation.kind = WT_ACTIVATION_SNAKE, .out = &x}),
                 WT_ERR_BAD_ARG, "pointwise: a snake without alpha");
    assert_fails(wt_nn_norm(nn, r->stream, &(wt_norm_args){.x = &x, .weight = &w, .out = &x}), WT_ERR_BAD_ARG,
                 "norm: weight is [6], want [8], or a row of that for a part of 4");
    assert_fails(wt_nn_norm(nn, r->stream, &(wt_norm_args){.kind = WT_NORM_GROUP, .x = &x, .out = &x}), WT_ERR_BAD_ARG,
                 "norm: x has rank 2, want [n][channels][length]");
    assert_fails(wt_nn_embed(nn, r->stream, &(wt_embed_args){.ids = &i, .bag = true, .table = &x, .out = &x}),
                 WT_ERR_BAD_ARG, "embed: ids has 4 elements, want 16, dense");
    assert_fails(wt_nn_pointwise(nn, r->stream, &(wt_pointwise_args){.x = &i, .out = &i}), WT_ERR_UNSUPPORTED,
                 "pointwise: x is of type I32, want F32, F16 or BF16");
}

static void refusals_name_what_was_met(void **state) { nn_run_type(state, refused, WT_DTYPE_F32); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_as_torch),
        cmocka_unit_test(gates_and_residuals_as_torch),
        cmocka_unit_test(snakes_of_channels_as_torch),
        cmocka_unit_test(gates_of_views_as_torch),
        cmocka_unit_test(norms_of_rows_as_torch),
        cmocka_unit_test(norms_with_a_style_as_torch),
        cmocka_unit_test(norms_of_signals_as_torch),
        cmocka_unit_test(norms_of_every_width_as_torch),
        cmocka_unit_test(embeddings_as_torch),
        cmocka_unit_test(embeddings_of_what_is_not_there_as_torch),
        cmocka_unit_test(rope_as_torch),
        cmocka_unit_test(joint_projections_as_torch),
        cmocka_unit_test(operations_are_queued_and_no_more),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("neural operations on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("neural operations on a GPU", tests, open_cuda, close_device);
}
