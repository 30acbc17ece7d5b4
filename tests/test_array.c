// Elementwise operations, views and refusals of arrays on both backends against plain loops in double.
#include "support/array_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/graph.h>

// ---- elementwise

static double unary(wt_unary op, double x)
{
    switch (op) {
    case WT_UNARY_COPY:
        return x;
    case WT_UNARY_NEG:
        return -x;
    case WT_UNARY_ABS:
        return fabs(x);
    case WT_UNARY_SIGN:
        return (x > 0) - (x < 0);
    case WT_UNARY_SQUARE:
        return x * x;
    case WT_UNARY_RECIPROCAL:
        return 1 / x;
    case WT_UNARY_SQRT:
        return sqrt(x);
    case WT_UNARY_RSQRT:
        return pow(x, -0.5);
    case WT_UNARY_EXP:
        return exp(x);
    case WT_UNARY_EXPM1:
        return expm1(x);
    case WT_UNARY_LOG:
        return log(x);
    case WT_UNARY_LOG1P:
        return log1p(x);
    case WT_UNARY_SIN:
        return sin(x);
    case WT_UNARY_COS:
        return cos(x);
    case WT_UNARY_TANH:
        return tanh(x);
    case WT_UNARY_ERF:
        return erf(x);
    case WT_UNARY_SIGMOID:
        return 1 / (1 + exp(-x));
    case WT_UNARY_RELU:
        return fmax(x, 0);
    case WT_UNARY_RELU2:
        return fmax(x, 0) * fmax(x, 0);
    case WT_UNARY_SILU:
        return x / (1 + exp(-x));
    case WT_UNARY_GELU:
        return x * erfc(-x / sqrt(2)) / 2;
    case WT_UNARY_GELU_TANH:
        return x * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x))) / 2;
    case WT_UNARY_FLOOR:
        return floor(x);
    case WT_UNARY_CEIL:
        return ceil(x);
    case WT_UNARY_RINT:
        return nearbyint(x);
    case WT_UNARY_IS_NAN:
        return isnan(x) != 0;
    default:
        return x == 0;
    }
}

static bool needs_positive(wt_unary op)
{
    return op == WT_UNARY_SQRT || op == WT_UNARY_RSQRT || op == WT_UNARY_LOG || op == WT_UNARY_LOG1P;
}

static void unary_operations_are_those_of_the_library(void **state)
{
    enum { N = 3000 };
    array_rig *r = array_rig_of(state);
    for (int t = 0; t < 3; t++) {
        const wt_dtype type = (wt_dtype[]){WT_DTYPE_F32, WT_DTYPE_F64, WT_DTYPE_I32}[t];
        double got[N], *any = random_values(N, -3, 3, type), *positive = random_values(N, 0.1, 30, type);
        wt_array x = TAKE(r, type, N), out = TAKE(r, t == 2 ? WT_DTYPE_F64 : type, N);
        for (int op = 0; op < WT_N_UNARY; op++) {
            const double *in = needs_positive((wt_unary)op) ? positive : any;
            array_put(r, &x, in);
            assert_ok(wt_array_unary(r->arrays, r->stream, (wt_unary)op, &x, &out));
            array_get(r, &out, got);
            // near -3 gelu's 1 + erf cancels; its bound is that of x
            const double bound = t ? 4e-15 : 4e-7;
            for (int k = 0; k < N; k++) {
                const double want = unary((wt_unary)op, in[k]);
                const bool cancels = op == WT_UNARY_GELU || op == WT_UNARY_GELU_TANH;
                if (cancels ? fabs(got[k] - want) > bound * fabs(in[k]) : false)
                    fail_msg("%d: %.17g gives %.17g, want %.17g", op, in[k], got[k], want);
                if (!cancels) assert_close("unary", op * 10000 + k, got[k], want, bound);
            }
        }
        free(any), free(positive);
    }
    array_rig_end(r);
}

static double modulo(double a, double b) { return a - b * floor(a / b); }

static double binary(wt_binary op, double a, double b, bool integer)
{
    switch (op) {
    case WT_BINARY_ADD:
        return a + b;
    case WT_BINARY_SUB:
        return a - b;
    case WT_BINARY_MUL:
        return a * b;
    case WT_BINARY_DIV:
        return integer ? (b == 0 ? 0 : trunc(a / b)) : a / b;
    case WT_BINARY_MOD:
        return integer && b == 0 ? 0 : modulo(a, b);
    case WT_BINARY_POW:
        return integer ? trunc(pow(a, b)) : pow(a, b);
    case WT_BINARY_MIN:
        return fmin(a, b);
    case WT_BINARY_MAX:
        return fmax(a, b);
    case WT_BINARY_ATAN2:
        return atan2(a, b);
    case WT_BINARY_EQ:
        return a == b;
    case WT_BINARY_NE:
        return a != b;
    case WT_BINARY_LT:
        return a < b;
    case WT_BINARY_LE:
        return a <= b;
    case WT_BINARY_GT:
        return a > b;
    case WT_BINARY_GE:
        return a >= b;
    case WT_BINARY_AND:
        return (double)((int64_t)a & (int64_t)b);
    case WT_BINARY_OR:
        return (double)((int64_t)a | (int64_t)b);
    default:
        return (double)((int64_t)a ^ (int64_t)b);
    }
}

// a [4][1][30] seen transposed, b [5][30] every second column of 60, out [4][5][30] seen from [30][4][5].
static void binary_operations_broadcast_over_views(void **state)
{
    array_rig *r = array_rig_of(state);
    for (int t = 0; t < 3; t++) {
        const wt_dtype type = (wt_dtype[]){WT_DTYPE_F32, WT_DTYPE_F64, WT_DTYPE_I64}[t];
        const bool integer = t == 2;
        wt_array a = TAKE(r, type, 30, 4), b = TAKE(r, type, 5, 60), out = TAKE(r, type, 30, 4, 5), ta, tb, to;
        double *x = random_values(120, -4, 4, type), *y = random_values(300, 0.5, 4, type), got[600];
        array_put(r, &a, x);
        array_put(r, &b, y);
        assert_ok(wt_array_transpose(&a, (const int[]){1, 0}, &ta));
        assert_ok(wt_array_reshape(&ta, SHAPE(4, 1, 30), &ta));
        assert_ok(wt_array_slice(&b, 1, 0, 60, 2, &tb));
        assert_ok(wt_array_transpose(&out, (const int[]){1, 2, 0}, &to));
        for (int op = 0; op < WT_N_BINARY; op++) {
            if (!integer && op >= WT_BINARY_AND) continue;
            if (integer && op == WT_BINARY_ATAN2) continue;
            assert_ok(wt_array_binary(r->arrays, r->stream, (wt_binary)op, &ta, &tb, &to));
            array_get(r, &out, got);
            for (int k = 0; k < 600; k++) {
                const int column = k / 20, row = k / 5 % 4, middle = k % 5;
                const double p = x[column * 4 + row], q = y[middle * 60 + 2 * column];
                if (!integer && op == WT_BINARY_POW && p < 0) {
                    assert_true(isnan(got[k]) || q == rint(q));
                    continue;
                }
                // a remainder near 0 keeps the rounding of the operands
                const double slack = op == WT_BINARY_MOD && !integer ? (t ? 1e-14 : 1e-6) : 0;
                const double want = binary((wt_binary)op, p, q, integer);
                if (fabs(got[k] - want) > slack && fabs(fabs(got[k] - want) - q) > slack)
                    assert_close("binary", op * 1000 + k, got[k], want, t ? 1e-14 : 5e-7);
            }
        }
        free(x), free(y);
    }
    array_rig_end(r);
}

static void numbers_that_are_none_are_kept(void **state)
{
    array_rig *r = array_rig_of(state);
    const double x[] = {NAN, 1, NAN, 5}, y[] = {2, NAN, NAN, 4};
    double got[4];
    wt_array a = TAKE(r, WT_DTYPE_F32, 4), b = TAKE(r, WT_DTYPE_F32, 4), out = TAKE(r, WT_DTYPE_F32, 4);
    array_put(r, &a, x);
    array_put(r, &b, y);
    for (int op = WT_BINARY_MIN; op <= WT_BINARY_MAX; op++) {
        assert_ok(wt_array_binary(r->arrays, r->stream, (wt_binary)op, &a, &b, &out));
        array_get(r, &out, got);
        assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]) && got[3] == (op == WT_BINARY_MIN ? 4 : 5));
    }
    const wt_array low = wt_array_constant(WT_DTYPE_F32, 0), high = wt_array_constant(WT_DTYPE_F32, 2);
    assert_ok(wt_array_clamp(r->arrays, r->stream, &a, &low, &high, &out));
    array_get(r, &out, got);
    assert_true(isnan(got[0]) && got[1] == 1 && got[3] == 2);
    assert_ok(wt_array_where(r->arrays, r->stream, &b, &high, &a, &out)); // a NaN is not 0
    array_get(r, &out, got);
    assert_true(got[0] == 2 && got[1] == 2 && got[3] == 2);
    array_rig_end(r);
}

// As NumPy with a result of integers: computed in floating point, then cut.
static void functions_of_integers_are_those_of_their_values(void **state)
{
    array_rig *r = array_rig_of(state);
    const double x[] = {-7, 0, 2, 20}, y[] = {3, -1, 1, 6};
    double got[4];
    wt_array a = TAKE(r, WT_DTYPE_I32, 4), b = TAKE(r, WT_DTYPE_I16, 4), out = TAKE(r, WT_DTYPE_I16, 4);
    array_put(r, &a, x);
    array_put(r, &b, y);
    for (int op = 0; op < WT_N_UNARY; op++) {
        assert_ok(wt_array_unary(r->arrays, r->stream, (wt_unary)op, &a, &out));
        array_get(r, &out, got);
        for (int k = 0; k < 4; k++) {
            const double want = unary((wt_unary)op, x[k]);
            const double cut = isnan(want) ? 0 : trunc(fmax(-32768, fmin(32767, want)));
            if (got[k] != cut) fail_msg("%d: %g gives %g, want %g", op, x[k], got[k], cut);
        }
    }
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_ATAN2, &a, &b, &out));
    array_get(r, &out, got);
    for (int k = 0; k < 4; k++) assert_true(got[k] == trunc(atan2(x[k], y[k])));
    array_rig_end(r);
}

// Each double is nearer to the upper of its two neighbours in the type, and its float lies in the middle of them.
static void doubles_are_rounded_once(void **state)
{
    array_rig *r = array_rig_of(state);
    static const struct {
        wt_dtype type;
        double step; // behind 1
    } rows[] = {{WT_DTYPE_F16, 0x1p-10}, {WT_DTYPE_BF16, 0x1p-7}, {WT_DTYPE_F8_E4M3, 0x1p-3},
                {WT_DTYPE_F8_E5M2, 0x1p-2}};
    for (int k = 0; k < 4; k++) {
        const double x[2] = {1 + rows[k].step * (0.5 + 0x1p-30), -1 - rows[k].step * (1.5 - 0x1p-30)};
        double got[2];
        wt_array in = TAKE(r, WT_DTYPE_F64, 2), small = TAKE(r, rows[k].type, 2), out = TAKE(r, WT_DTYPE_F64, 2);
        array_put(r, &in, x);
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &in, &small));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &small, &out));
        array_get(r, &out, got);
        if (got[0] != 1 + rows[k].step || got[1] != -1 - rows[k].step)
            fail_msg("%s: %.12g and %.12g become %g and %g", wt_dtype_name(rows[k].type), x[0], x[1], got[0], got[1]);
    }
    array_rig_end(r);
}

static void arange_and_constants_fill(void **state)
{
    array_rig *r = array_rig_of(state);
    double got[12];
    wt_array out = TAKE(r, WT_DTYPE_F32, 3, 4), t, one = wt_array_constant(WT_DTYPE_F32, 1.5);
    assert_ok(wt_array_transpose(&out, (const int[]){1, 0}, &t));
    assert_ok(wt_array_arange(r->arrays, r->stream, 2, -0.5, &t));
    array_get(r, &out, got);
    for (int k = 0; k < 12; k++) assert_true(got[k] == 2 - 0.5 * (k % 4 * 3 + k / 4));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &one, &out));
    array_get(r, &out, got);
    for (int k = 0; k < 12; k++) assert_true(got[k] == 1.5);
    wt_array nothing = TAKE(r, WT_DTYPE_F32, 0, 4);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &one, &nothing));
    array_rig_end(r);
}

// ---- views, graphs, refusals

static void a_graph_gives_the_same_again(void **state)
{
    enum { N = 5000 };
    array_rig *r = array_rig_of(state);
    wt_array x = TAKE(r, WT_DTYPE_F32, N), sum = TAKE(r, WT_DTYPE_F32, 1), out = TAKE(r, WT_DTYPE_F32, N);
    double direct[N], replayed[N], *in = random_values(N, -1, 1, WT_DTYPE_F32);
    wt_graph *graph = NULL;
    array_put(r, &x, in);
    for (int turn = 0; turn < 2; turn++) {
        if (turn) assert_ok(wt_graph_begin(r->stream, &graph));
        assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &x, 1, &sum));
        assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_DIV, &x, &sum, &out));
        if (turn) assert_ok(wt_graph_end(graph));
        if (turn) assert_ok(wt_graph_launch(graph, r->stream));
        array_get(r, &out, turn ? replayed : direct);
    }
    assert_memory_equal(direct, replayed, sizeof direct);
    wt_graph_destroy(graph);
    free(in);
    array_rig_end(r);
}

enum { N_ALL = 13 };

/// One of every kind of operation, each to an array of its own.
static void queue_all(array_rig *r, const wt_array *x, const wt_array *indices, const wt_array *outs)
{
    const wt_array zero = wt_array_constant(WT_DTYPE_F32, 0), pair[2] = {*x, *x};
    const wt_array *out = outs;
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_EXP, x, out++));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, x, x, out++));
    assert_ok(wt_array_where(r->arrays, r->stream, x, &zero, x, out++));
    assert_ok(wt_array_clamp(r->arrays, r->stream, x, &zero, x, out++));
    assert_ok(wt_array_arange(r->arrays, r->stream, 0, 1, out++));
    assert_ok(wt_array_random(r->arrays, r->stream, WT_RANDOM_NORMAL, 1, 0, out++));
    assert_ok(wt_array_softmax(r->arrays, r->stream, x, 1, false, out++));
    assert_ok(wt_array_cumsum(r->arrays, r->stream, x, 1, out++));
    assert_ok(wt_array_topk(r->arrays, r->stream, x, 3, out++, NULL));
    assert_ok(wt_array_gather(r->arrays, r->stream, x, 0, indices, out++));
    assert_ok(wt_array_scatter(r->arrays, r->stream, x, 0, indices, false, out++));
    assert_ok(wt_array_concat(r->arrays, r->stream, pair, 2, 0, out++));
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, x, 0, out++));
    assert_int_equal(out - outs, N_ALL);
}

/// No operation takes memory, waits or reads back: the host's is counted on the CPU, and while a GPU records a graph
/// the driver refuses the rest. The graph gives the same again.
static void operations_are_queued_and_no_more(void **state)
{
    enum { ROWS = 6, COLUMNS = 3000 };
    array_rig *r = array_rig_of(state);
    static double direct[N_ALL][2 * ROWS * COLUMNS], replayed[2 * ROWS * COLUMNS];
    double *in = random_values(ROWS * COLUMNS, -2, 2, WT_DTYPE_F32);
    const double places[ROWS] = {4, 2, 0, 1, 3, 5};
    wt_array x = TAKE(r, WT_DTYPE_F32, ROWS, COLUMNS), indices = TAKE(r, WT_DTYPE_I32, ROWS), outs[N_ALL];
    wt_graph *graph = NULL;
    for (int k = 0; k < N_ALL; k++) outs[k] = TAKE(r, WT_DTYPE_F32, ROWS, COLUMNS);
    outs[8] = TAKE(r, WT_DTYPE_F32, ROWS, 3);
    outs[11] = TAKE(r, WT_DTYPE_F32, 2 * ROWS, COLUMNS);
    outs[12] = TAKE(r, WT_DTYPE_F32, 1, 1);
    array_put(r, &x, in);
    array_put(r, &indices, places);
    queue_all(r, &x, &indices, outs);
    assert_ok(wt_stream_synchronize(r->stream));
    failing_alloc_start(-1);
    queue_all(r, &x, &indices, outs);
    const failing_alloc_counts counts = failing_alloc_stop();
    if (wt_device_get_info(r->device)->backend == WT_BACKEND_CPU) assert_int_equal(counts.n_allocations, 0);
    for (int k = 0; k < N_ALL; k++) array_get(r, &outs[k], direct[k]);
    assert_ok(wt_graph_begin(r->stream, &graph));
    queue_all(r, &x, &indices, outs);
    assert_ok(wt_graph_end(graph));
    const wt_array none = wt_array_constant(WT_DTYPE_F32, -1);
    for (int k = 0; k < N_ALL; k++) assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &none, &outs[k]));
    assert_ok(wt_graph_launch(graph, r->stream));
    for (int k = 0; k < N_ALL; k++) {
        array_get(r, &outs[k], replayed);
        if (memcmp(direct[k], replayed, sizeof *replayed * (size_t)wt_array_elements(&outs[k])))
            fail_msg("operation %d of a graph gives something else", k);
    }
    wt_graph_destroy(graph);
    free(in);
    array_rig_end(r);
}

static void refusals_name_what_was_met(void **state)
{
    array_rig *r = array_rig_of(state);
    wt_array a = TAKE(r, WT_DTYPE_F32, 2, 3), b = TAKE(r, WT_DTYPE_F32, 4), i = TAKE(r, WT_DTYPE_I32, 3), v, odd = a;
    assert_fails(wt_array_binary(r->arrays, r->stream, WT_BINARY_ADD, &a, &b, &a), WT_ERR_BAD_ARG,
                 "array: [4] does not broadcast to [2][3]");
    assert_fails(wt_array_binary(r->arrays, r->stream, WT_BINARY_AND, &a, &a, &a), WT_ERR_UNSUPPORTED,
                 "array: bits of F32 and F32 to F32, want integers");
    assert_fails(wt_array_unary(r->arrays, r->stream, (wt_unary)99, &a, &a), WT_ERR_BAD_ARG,
                 "array: unary operation 99, want 0..26");
    assert_fails(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &a, 2, &b), WT_ERR_BAD_ARG,
                 "array: [2][3] reduced over axes 0x2 into [4], want the extents that are left");
    assert_fails(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &a, 8, &b), WT_ERR_BAD_ARG,
                 "array: axes 0x8 of 2");
    assert_fails(wt_array_softmax(r->arrays, r->stream, &a, 2, false, &a), WT_ERR_BAD_ARG,
                 "array: softmax along axis 2 of 2, want 0..1");
    assert_fails(wt_array_topk(r->arrays, r->stream, &a, 4, &a, NULL), WT_ERR_BAD_ARG, "array: the largest 4 of 3");
    assert_fails(wt_array_gather(r->arrays, r->stream, &a, 1, &b, &a), WT_ERR_UNSUPPORTED,
                 "array: indices of type F32, want integers");
    assert_fails(wt_array_random(r->arrays, r->stream, WT_RANDOM_NORMAL, 0, 0, &i), WT_ERR_UNSUPPORTED,
                 "array: random numbers of type I32, want floats");
    assert_fails(wt_array_reshape(&a, SHAPE(4, -1), &v), WT_ERR_BAD_ARG,
                 "array: [2][3] as [4][-1], want as many elements");
    assert_ok(wt_array_transpose(&a, (const int[]){1, 0}, &v));
    assert_fails(wt_array_reshape(&v, SHAPE(6), &v), WT_ERR_BAD_ARG,
                 "array: [3][2] as [6]: its strides allow no such view, want a copy");
    assert_fails(wt_array_slice(&a, 1, 2, 1, 1, &v), WT_ERR_BAD_ARG,
                 "array: elements 2..1 in steps of 1 of 3, want a range in it");
    assert_fails(wt_array_transpose(&a, (const int[]){0, 0}, &v), WT_ERR_BAD_ARG,
                 "array: axis 1 is 0 of 2, want each once");
    assert_ok(wt_array_broadcast(&b, SHAPE(3, 4), &v));
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &v, &v), WT_ERR_BAD_ARG,
                 "array: the result repeats along axis 0, want a place for each element");
    odd.data += 2;
    assert_int_equal(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "want an address aligned to its type"));
    odd.data = 0;
    assert_int_equal(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_BAD_ARG);
    odd = a;
    odd.dtype = WT_DTYPE_Q8_0;
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_UNSUPPORTED,
                 "array: an operand of type Q8_0, want F32 .. BOOL, I4, U4 or F4");
    array_rig_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_operations_are_those_of_the_library),
        cmocka_unit_test(binary_operations_broadcast_over_views),
        cmocka_unit_test(numbers_that_are_none_are_kept),
        cmocka_unit_test(functions_of_integers_are_those_of_their_values),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(arange_and_constants_fill),
        cmocka_unit_test(a_graph_gives_the_same_again),
        cmocka_unit_test(operations_are_queued_and_no_more),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("array on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("array on a GPU", tests, open_cuda, close_device);
}
