// Views of every type on both backends: each operation takes a view, forwards, backwards or repeated, as it takes a
// dense copy of it in double, and writes to a view what it writes to a dense array.
#include "support/array_check.h"
#include "support/testing.h"

#include <stdio.h>

enum { A = 4, B = 6, C = 10, N = A * B * C };
enum { N_TYPES = 15, N_VIEWS = 6 };

static const wt_dtype types[N_TYPES] = {WT_DTYPE_F32,     WT_DTYPE_F64,  WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3,
                                        WT_DTYPE_F8_E5M2, WT_DTYPE_I64,  WT_DTYPE_I32, WT_DTYPE_I16,  WT_DTYPE_I8,
                                        WT_DTYPE_U8,      WT_DTYPE_BOOL, WT_DTYPE_I4,  WT_DTYPE_U4,   WT_DTYPE_F4};

static void slice(wt_array *view, int axis, int64_t begin, int64_t end, int64_t step)
{
    assert_ok(wt_array_slice(view, axis, begin, end, step, view));
}

/// View `kind` of x [A][B][C]; lines of 4 bits are cut at whole bytes.
static wt_array view_of(const wt_array *x, int kind)
{
    wt_array view = *x;
    if (kind == 1) assert_ok(wt_array_transpose(x, (const int[]){2, 0, 1}, &view));
    if (kind == 2) slice(&view, 0, 0, A, -1), slice(&view, 1, 1, B, -2); // planes 3 2 1 0, rows 5 3 1
    if (kind == 3) slice(&view, 2, 2, 9, 3);                             // columns 2 5 8
    if (kind == 4) slice(&view, 2, 0, C - 1, -3);                        // columns 8 5 2
    if (kind != 5) return view;
    slice(&view, 1, 2, 3, 1); // row 2 five times
    assert_ok(wt_array_broadcast(&view, SHAPE(A, 5, C), &view));
    return view;
}

/// Where element k of the view, in row-major order, lies in x.
static int64_t place_of(const wt_array *x, const wt_array *view, int64_t k)
{
    const int64_t bytes = (int64_t)(view->data - x->data);
    const bool packed = wt_dtype_block(x->dtype) == 2;
    int64_t at = packed ? 2 * bytes : bytes / (int64_t)wt_dtype_bytes(x->dtype, 1);
    for (int d = view->rank - 1; d >= 0; d--) {
        at += k % view->shape[d] * view->strides[d];
        k /= view->shape[d];
    }
    return at;
}

static wt_array dense_as(array_rig *r, wt_dtype type, const wt_array *a)
{
    return array_take(r, type, a->rank, a->shape);
}

static void same(array_rig *r, const char *what, const wt_array *x, const wt_array *want)
{
    double got[N * 2], other[N * 2];
    array_get(r, x, got);
    array_get(r, want, other);
    const int64_t n = wt_array_elements(want);
    assert_int_equal(n, wt_array_elements(x));
    for (int64_t k = 0; k < n; k++) assert_close(what, k, got[k], other[k], 0);
}

/// Results of every kind of operation on x, dense.
typedef struct results {
    wt_array all[12];
    const char *names[12];
    int n;
} results;

static wt_array *result(array_rig *r, results *to, const char *name, wt_dtype type, int rank, const int64_t *shape)
{
    to->names[to->n] = name;
    to->all[to->n] = array_take(r, type, rank, shape);
    return &to->all[to->n++];
}

static void run_all(array_rig *r, const wt_array *x, const wt_array *first, results *to)
{
    const wt_array low = wt_array_constant(WT_DTYPE_F64, -1), high = wt_array_constant(WT_DTYPE_F64, 2);
    const int64_t *s = x->shape, line[] = {s[0], 1, s[2]}, three[] = {s[0], s[1], 3}, twice[] = {s[0], 2 * s[1], s[2]};
    wt_array *o = result(r, to, "unary", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, x, o));
    o = result(r, to, "binary", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, x, x, o));
    o = result(r, to, "where", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_where(r->arrays, r->stream, x, x, &high, o));
    o = result(r, to, "clamp", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_clamp(r->arrays, r->stream, x, &low, &high, o));
    o = result(r, to, "sum", WT_DTYPE_F64, 3, line);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, x, 1 << 1, o));
    o = result(r, to, "argmax", WT_DTYPE_I64, 0, NULL);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_ARGMAX, x, 0, o));
    o = result(r, to, "softmax", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_softmax(r->arrays, r->stream, x, 1, false, o));
    o = result(r, to, "sums", WT_DTYPE_F64, 3, s);
    assert_ok(wt_array_cumsum(r->arrays, r->stream, x, 2, o));
    o = result(r, to, "largest", WT_DTYPE_F64, 3, three);
    wt_array *places = result(r, to, "places", WT_DTYPE_I32, 3, three);
    assert_ok(wt_array_topk(r->arrays, r->stream, x, 3, o, places));
    o = result(r, to, "gather", WT_DTYPE_F64, 3, three);
    assert_ok(wt_array_gather(r->arrays, r->stream, x, 2, first, o));
    o = result(r, to, "concat", WT_DTYPE_F64, 3, twice);
    assert_ok(wt_array_concat(r->arrays, r->stream, (const wt_array[]){*x, *x}, 2, 1, o));
}

static void begin(array_rig *r, wt_dtype type, wt_array *x)
{
    double values[N];
    const bool floats = type <= WT_DTYPE_F8_E5M2 || type == WT_DTYPE_F4;
    wt_array wide = TAKE(r, WT_DTYPE_F64, A, B, C);
    *x = TAKE(r, type, A, B, C);
    for (int k = 0; k < N; k++) values[k] = floats ? 0.5 * (k * 7 % 13 - 6) : k * 7 % 13 - 6;
    array_put(r, &wide, values);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &wide, x));
}

/// The arrays but the first `n` are no longer wanted; making a rig anew takes a GPU half a second.
static void keep(array_rig *r, int n)
{
    assert_ok(wt_stream_synchronize(r->stream));
    while (r->n_buffers > n) wt_buffer_destroy(r->buffers[--r->n_buffers]);
}

/// A line's ties, and what saturates in a type of few numbers, are those of the copy as well.
static void views_of_every_type_are_read_as_their_copies(void **state)
{
    array_rig *r = array_rig_of(state);
    for (int t = 0; t < N_TYPES; t++)
        for (int kind = 0; kind < N_VIEWS; kind++) {
            results of_view = {.n = 0}, of_copy = {.n = 0};
            wt_array x, first = TAKE(r, WT_DTYPE_I64, 3);
            double values[N], copied[N];
            begin(r, types[t], &x);
            array_put(r, &first, (const double[]){1, 0, 2});
            const wt_array view = view_of(&x, kind), copy = dense_as(r, WT_DTYPE_F64, &view);
            array_get(r, &x, values);
            for (int64_t k = 0; k < wt_array_elements(&view); k++) copied[k] = values[place_of(&x, &view, k)];
            array_put(r, &copy, copied);
            run_all(r, &view, &first, &of_view);
            run_all(r, &copy, &first, &of_copy);
            for (int k = 0; k < of_view.n; k++) {
                char what[96];
                snprintf(what, sizeof what, "%s of %s, view %d", of_view.names[k], wt_dtype_name(types[t]), kind);
                same(r, what, &of_view.all[k], &of_copy.all[k]);
            }
            keep(r, 0);
        }
    array_rig_end(r);
}

/// x is `before` but where the view has what is in `want`.
static void check_written(array_rig *r, const wt_array *x, const wt_array *view, double before, const wt_array *want)
{
    double got[N], dense[N], values[N];
    array_get(r, want, dense);
    array_get(r, x, got);
    for (int k = 0; k < N; k++) values[k] = before;
    for (int64_t k = 0; k < wt_array_elements(view); k++) values[place_of(x, view, k)] = dense[k];
    for (int k = 0; k < N; k++) assert_close("written", k, got[k], values[k], 0);
}

static void write(array_rig *r, int op, const wt_array *in, const wt_array *places, const wt_array *out)
{
    if (op == 0) assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, in, out));
    if (op == 1) assert_ok(wt_array_cumsum(r->arrays, r->stream, in, 0, out));
    if (op == 2) assert_ok(wt_array_gather(r->arrays, r->stream, in, 1, places, out));
    if (op == 3) assert_ok(wt_array_scatter(r->arrays, r->stream, in, 1, places, true, out));
    if (op == 4) assert_ok(wt_array_topk(r->arrays, r->stream, in, (int)out->shape[2], out, NULL));
}

/// Into an array full of one number; what the view leaves out stays. Of 4 bits: test_array_packed.c.
static void views_of_every_type_are_written(void **state)
{
    array_rig *r = array_rig_of(state);
    for (int t = 0; t < N_TYPES - 3; t++)
        for (int kind = 0; kind < N_VIEWS - 1; kind++) {
            const double before = types[t] == WT_DTYPE_BOOL ? 1 : 5;
            const wt_array full = wt_array_constant(WT_DTYPE_F64, before), x = TAKE(r, types[t], A, B, C);
            wt_array from;
            begin(r, WT_DTYPE_F32, &from);
            const wt_array view = view_of(&x, kind), in = view_of(&from, kind), out = dense_as(r, types[t], &view);
            const wt_array places = array_take(r, WT_DTYPE_I16, 1, &view.shape[1]);
            double turned[N];
            for (int k = 0; k < view.shape[1]; k++) turned[k] = (double)(view.shape[1] - 1 - k);
            array_put(r, &places, turned);
            for (int op = 0; op < 5; op++) {
                assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &full, &x));
                assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &full, &out));
                write(r, op, &in, &places, &view);
                write(r, op, &in, &places, &out);
                check_written(r, &x, &view, before, &out);
            }
            keep(r, 0);
        }
    array_rig_end(r);
}

static void slices_go_both_ways(void **state)
{
    array_rig *r = array_rig_of(state);
    const wt_array x = TAKE(r, WT_DTYPE_F32, 7), nibbles = TAKE(r, WT_DTYPE_I4, 6);
    const struct {
        int64_t begin, end, step, n, first;
    } cases[] = {{0, 7, 1, 7, 0},    {0, 7, -1, 7, 6}, {1, 7, 3, 2, 1},         {1, 7, -3, 2, 6},
                 {-3, -1, -1, 2, 5}, {2, 2, -1, 0, 0}, {0, 7, INT64_MAX, 1, 0}, {0, 7, -INT64_MAX, 1, 6}};
    wt_array view;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_ok(wt_array_slice(&x, 0, cases[k].begin, cases[k].end, cases[k].step, &view));
        assert_int_equal(view.shape[0], cases[k].n);
        assert_int_equal(view.data - x.data, 4 * cases[k].first);
        if (view.shape[0] > 1) assert_int_equal(view.strides[0], cases[k].step);
    }
    assert_fails(wt_array_slice(&x, 0, 0, 7, 0, &view), WT_ERR_BAD_ARG,
                 "array: elements 0..7 in steps of 0 of 7, want a range in it");
    assert_fails(wt_array_slice(&nibbles, 0, 0, 6, -1, &view), WT_ERR_BAD_ARG,
                 "array: a slice of I4 begins 5 elements on, within a byte, want an even number");
    assert_ok(wt_array_slice(&nibbles, 0, 0, 5, -2, &view));
    array_rig_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_every_type_are_read_as_their_copies),
        cmocka_unit_test(views_of_every_type_are_written),
        cmocka_unit_test(slices_go_both_ways),
    };
    int failed = cmocka_run_group_tests_name("views of arrays on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("views of arrays on a GPU", tests, open_cuda, close_device);
}
