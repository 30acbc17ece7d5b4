// Reductions, lines, indices, pieces and random numbers of arrays on both backends against plain loops in double.
#include "support/array_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>

// ---- reductions

static double reduced(wt_reduce op, const double *x, const int64_t *places, int n)
{
    double y = op == WT_REDUCE_PROD || op == WT_REDUCE_ALL;
    int at = 0;
    for (int k = 0; k < n; k++) {
        const double v = x[places[k]];
        if (op == WT_REDUCE_SUM || op == WT_REDUCE_MEAN) y += v;
        if (op == WT_REDUCE_PROD) y *= v;
        if (op == WT_REDUCE_ANY) y = y != 0 || v != 0;
        if (op == WT_REDUCE_ALL) y = y != 0 && v != 0;
        if ((op == WT_REDUCE_MAX || op == WT_REDUCE_ARGMAX) && v > x[places[at]]) at = k;
        if ((op == WT_REDUCE_MIN || op == WT_REDUCE_ARGMIN) && v < x[places[at]]) at = k;
    }
    if (op == WT_REDUCE_MAX || op == WT_REDUCE_MIN) return x[places[at]];
    if (op == WT_REDUCE_ARGMAX || op == WT_REDUCE_ARGMIN) return at;
    return op == WT_REDUCE_MEAN ? y / n : y;
}

static void reductions_over_any_axes(void **state)
{
    enum { A = 3, B = 70, C = 2, D = 5, N = A * B * C * D };
    static const int extents[] = {A, B, C, D}, strides[] = {B * C * D, C * D, D, 1};
    array_rig *r = array_rig_of(state);
    double got[N];
    int64_t places[N];
    for (int t = 0; t < 2; t++) {
        const wt_dtype type = t ? WT_DTYPE_I32 : WT_DTYPE_F32;
        double *x = random_values(N, t ? -2 : 0.95, t ? 3 : 1.05, type);
        wt_array in = TAKE(r, type, A, B, C, D);
        array_put(r, &in, x);
        for (unsigned axes = 1; axes < 16; axes++) {
            int64_t shape[4], kept[4];
            int n_out = 1, n_in = 1, rank = 0;
            for (int d = 0; d < 4; d++) {
                kept[d] = axes >> d & 1 ? 1 : extents[d];
                if (axes >> d & 1)
                    n_in *= extents[d];
                else
                    n_out *= extents[d], shape[rank++] = extents[d];
            }
            for (int op = 0; op < WT_N_REDUCE; op++) {
                if (t && op == WT_REDUCE_PROD) continue; // overflows
                r->n_buffers = t + 1;                    // of earlier results nothing is needed
                wt_array out = array_take(r, op == WT_REDUCE_MEAN || !t ? WT_DTYPE_F64 : WT_DTYPE_I64, rank, shape);
                if (op % 2) assert_ok(wt_array_reshape(&out, 4, kept, &out)); // with ones for the reduced
                assert_ok(wt_array_reduce(r->arrays, r->stream, (wt_reduce)op, &in, axes, &out));
                array_get(r, &out, got);
                wt_buffer_destroy(r->buffers[--r->n_buffers]);
                for (int o = 0; o < n_out; o++) {
                    for (int k = 0; k < n_in; k++) {
                        int64_t at = 0;
                        for (int d = 3, ro = o, ri = k; d >= 0; d--) {
                            int *rest = axes >> d & 1 ? &ri : &ro;
                            at += *rest % extents[d] * strides[d];
                            *rest /= extents[d];
                        }
                        places[k] = at;
                    }
                    assert_close("reduction", op * 100 + (int)axes, got[o], reduced((wt_reduce)op, x, places, n_in),
                                 1e-12);
                }
            }
        }
        free(x);
    }
    array_rig_end(r);
}

static void long_reductions_and_their_nans(void **state)
{
    enum { N = 1000003 };
    array_rig *r = array_rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, N), sum = array_take(r, WT_DTYPE_F64, 0, NULL),
             place = array_take(r, WT_DTYPE_I64, 0, NULL);
    double *x = random_values(N, -1, 1, WT_DTYPE_F32), want = 0, got;
    for (int k = 0; k < N; k++) want += x[k];
    array_put(r, &in, x);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &in, 0, &sum));
    array_get(r, &sum, &got);
    assert_true(fabs(got - want) < 1e-9);
    x[777777] = 2;
    x[777778] = 2; // the first of equals
    array_put(r, &in, x);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_ARGMAX, &in, 0, &place));
    array_get(r, &place, &got);
    assert_true(got == 777777);
    x[900000] = x[5000] = NAN;
    array_put(r, &in, x);
    for (int op = WT_REDUCE_MAX; op <= WT_REDUCE_ARGMIN; op++) {
        const bool is_place = op >= WT_REDUCE_ARGMAX;
        assert_ok(wt_array_reduce(r->arrays, r->stream, (wt_reduce)op, &in, 0, is_place ? &place : &sum));
        array_get(r, is_place ? &place : &sum, &got);
        assert_true(is_place ? got == 5000 : isnan(got));
    }
    free(x);
    array_rig_end(r);
}

// ---- lines

static void lines_along_each_axis(void **state)
{
    enum { A = 3, B = 1500, C = 4, N = A * B * C };
    array_rig *r = array_rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, A, B, C), out = TAKE(r, WT_DTYPE_F64, A, B, C);
    double *x = random_values(N, -5, 5, WT_DTYPE_F32), *got = malloc(sizeof *got * N);
    static const int extents[] = {A, B, C}, strides[] = {B * C, C, 1};
    array_put(r, &in, x);
    for (int axis = 0; axis < 3; axis++)
        for (int kind = 0; kind < 3; kind++) { // softmax, its logarithm, sums
            assert_ok(kind < 2 ? wt_array_softmax(r->arrays, r->stream, &in, axis, kind == 1, &out)
                               : wt_array_cumsum(r->arrays, r->stream, &in, axis, &out));
            array_get(r, &out, got);
            for (int k = 0; k < N; k++) {
                const int step = strides[axis], first = k - k / step % extents[axis] * step;
                double sum = 0;
                for (int j = 0; j < extents[axis]; j++) {
                    const int at = first + j * step;
                    if (kind < 2)
                        sum += exp(x[at]);
                    else if (at <= k)
                        sum += x[at];
                }
                const double want = kind == 0 ? exp(x[k]) / sum : kind == 1 ? x[k] - log(sum) : sum;
                if (fabs(got[k] - want) > 1e-11) fail_msg("axis %d, %d: %.17g, want %.17g", axis, k, got[k], want);
            }
        }
    wt_array integers = TAKE(r, WT_DTYPE_I32, N), sums = TAKE(r, WT_DTYPE_I64, N);
    for (int k = 0; k < N; k++) x[k] = rint(x[k] * 1e6);
    array_put(r, &integers, x);
    assert_ok(wt_array_cumsum(r->arrays, r->stream, &integers, 0, &sums));
    array_get(r, &sums, got);
    double sum = 0;
    for (int k = 0; k < N; k++) assert_true(got[k] == (sum += x[k]));
    free(x), free(got);
    array_rig_end(r);
}

static void the_largest_come_first_and_the_first_of_equals(void **state)
{
    enum { LINES = 3, N = 1000, K = 20 };
    array_rig *r = array_rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, LINES, N), top = TAKE(r, WT_DTYPE_F32, LINES, K),
             at = TAKE(r, WT_DTYPE_I32, LINES, K);
    double *x = random_values(LINES * N, -100, 100, WT_DTYPE_I32), got[LINES * K],
           places[LINES * K]; // integers: many equals
    array_put(r, &in, x);
    assert_ok(wt_array_topk(r->arrays, r->stream, &in, K, &top, &at));
    array_get(r, &top, got);
    array_get(r, &at, places);
    for (int l = 0; l < LINES; l++)
        for (int k = 0; k < K; k++) {
            const int own = (int)places[l * K + k];
            int before = 0; // how many come before it
            for (int j = 0; j < N; j++)
                before += x[l * N + j] > x[l * N + own] || (x[l * N + j] == x[l * N + own] && j < own);
            assert_int_equal(before, k);
            assert_true(got[l * K + k] == x[l * N + own]);
        }
    free(x);
    array_rig_end(r);
}

// As NumPy and SciPy: no line of a softmax is left without its NaN, none gets one that has a number and -infinities.
static void lines_of_infinities(void **state)
{
    array_rig *r = array_rig_of(state);
    const double x[12] = {-INFINITY, -INFINITY, -INFINITY, 0, -INFINITY, 0, NAN, 1, 2, INFINITY, 1, 2};
    double got[12];
    wt_array in = TAKE(r, WT_DTYPE_F32, 4, 3), out = TAKE(r, WT_DTYPE_F32, 4, 3);
    array_put(r, &in, x);
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        assert_ok(wt_array_softmax(r->arrays, r->stream, &in, 1, logarithm, &out));
        array_get(r, &out, got);
        for (int k = 0; k < 3; k++) assert_true(isnan(got[k]) && isnan(got[6 + k]));
        const double half = logarithm ? (double)(float)-0.69314718055994531 : 0.5;
        assert_true(got[3] == half && got[4] == (logarithm ? -INFINITY : 0) && got[5] == half);
        assert_true(isnan(got[9]));
    }
    array_rig_end(r);
}

// ---- indices, pieces

static void gather_and_scatter_are_each_others_ways_back(void **state)
{
    enum { A = 4, B = 300, C = 7, M = 50 };
    array_rig *r = array_rig_of(state);
    wt_array table = TAKE(r, WT_DTYPE_F32, A, B, C), picked = TAKE(r, WT_DTYPE_F32, A, M, C),
             index = TAKE(r, WT_DTYPE_I64, M);
    wt_array sums = TAKE(r, WT_DTYPE_F32, A, B, C), zero = wt_array_constant(WT_DTYPE_F32, 0);
    double *x = random_values(A * B * C, -1, 1, WT_DTYPE_F32), *got = malloc(sizeof *got * A * B * C),
           *want = calloc(A * B * C, sizeof *want);
    double at[M];
    for (int k = 0; k < M; k++) at[k] = rint(random_uniform(0, B / 10)); // some more than once
    at[3] = -1, at[4] = B;
    array_put(r, &table, x);
    array_put(r, &index, at);
    assert_ok(wt_array_gather(r->arrays, r->stream, &table, 1, &index, &picked));
    array_get(r, &picked, got);
    for (int k = 0; k < A * M * C; k++) {
        const int m = k / C % M, a = k / C / M, c = k % C;
        assert_true(got[k] == (m == 3 || m == 4 ? 0 : x[(a * B + (int)at[m]) * C + c]));
        if (m != 3 && m != 4) want[(a * B + (int)at[m]) * C + c] += (float)got[k];
    }
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &zero, &sums));
    assert_ok(wt_array_scatter(r->arrays, r->stream, &picked, 1, &index, true, &sums));
    array_get(r, &sums, got);
    for (int k = 0; k < A * B * C; k++) assert_true(fabs(got[k] - want[k]) < 1e-5);
    free(x), free(got), free(want);
    array_rig_end(r);
}

static void indices_of_each_line_of_their_own(void **state)
{
    array_rig *r = array_rig_of(state);
    const double x[] = {10, 11, 12, 20, 21, 22}, at[] = {2, 0, 1, 1};
    double got[6];
    wt_array in = TAKE(r, WT_DTYPE_I16, 2, 3), index = TAKE(r, WT_DTYPE_I32, 2, 2), out = TAKE(r, WT_DTYPE_I16, 2, 2);
    array_put(r, &in, x);
    array_put(r, &index, at);
    assert_ok(wt_array_gather(r->arrays, r->stream, &in, 1, &index, &out));
    array_get(r, &out, got);
    assert_true(got[0] == 12 && got[1] == 10 && got[2] == 21 && got[3] == 21);
    assert_ok(wt_array_scatter(r->arrays, r->stream, &out, 1, &index, false, &in));
    array_get(r, &in, got); // 12 goes to place 2, 10 to 0; the last of equals stays
    assert_true(got[0] == 10 && got[1] == 11 && got[2] == 12 && got[4] == 21);
    array_rig_end(r);
}

static void pieces_are_put_together_and_cut_again(void **state)
{
    array_rig *r = array_rig_of(state);
    double *x = random_values(24, -9, 9, WT_DTYPE_F32), got[24];
    wt_array a = TAKE(r, WT_DTYPE_F32, 2, 3, 2), b = TAKE(r, WT_DTYPE_F32, 2, 1, 2),
             out = TAKE(r, WT_DTYPE_F32, 2, 4, 2), part;
    wt_array again = TAKE(r, WT_DTYPE_F32, 2, 1, 2);
    array_put(r, &a, x);
    array_put(r, &b, x + 12);
    assert_ok(wt_array_concat(r->arrays, r->stream, (const wt_array[]){a, b}, 2, 1, &out));
    array_get(r, &out, got);
    for (int k = 0; k < 16; k++) {
        const int row = k / 2 % 4, outer = k / 8, c = k % 2;
        assert_true(got[k] == (row < 3 ? x[outer * 6 + row * 2 + c] : x[12 + outer * 2 + c]));
    }
    assert_ok(wt_array_slice(&out, 1, -1, 4, 1, &part));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &part, &again));
    array_get(r, &again, got);
    for (int k = 0; k < 4; k++) assert_true(got[k] == x[12 + k]);
    free(x);
    array_rig_end(r);
}

// ---- random numbers

// The first words of counter 0 and key 0 are those of Random123's known answers (kat_vectors); the others, of all bits
// of counter and key and of a carry within the counter, are by a Philox written apart that gives all three of them.
static void words_are_those_of_philox(void **state)
{
    static const struct {
        uint64_t seed, number, words;
    } rows[] = {{0, 0, 0x6627e8d5e169c58d},
                {0x299f31d0a4093822, 0x85a308d3243f6a88, 0xe69c9c31b5a3d762},
                {0x299f31d0a4093822, 0xffffffff, 0xd36a45d175e44b37},
                {0x299f31d0a4093822, 0x100000000, 0xa7a593ce943d4235}};
    array_rig *r = array_rig_of(state);
    wt_array bits = TAKE(r, WT_DTYPE_I64, 2);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int64_t got[2];
        assert_ok(wt_array_random(r->arrays, r->stream, WT_RANDOM_BITS, rows[k].seed, rows[k].number, &bits));
        assert_ok(wt_stream_download(r->stream, got, array_buffer(r, &bits), 0, sizeof got));
        assert_ok(wt_stream_synchronize(r->stream));
        assert_true(got[0] == (int64_t)(rows[k].words >> 1));
        if (k == 2) assert_true(got[1] == (int64_t)(rows[3].words >> 1)); // the next number
    }
    array_rig_end(r);
}

static void random_numbers_are_spread_as_they_should(void **state)
{
    enum { N = 200000 };
    array_rig *r = array_rig_of(state);
    double *x = malloc(sizeof *x * N), mean = 0, square = 0, got[4];
    wt_array u = TAKE(r, WT_DTYPE_F64, N), two = TAKE(r, WT_DTYPE_F64, 2, 2), view;
    for (int kind = WT_RANDOM_UNIFORM; kind <= WT_RANDOM_NORMAL; kind++) {
        assert_ok(wt_array_random(r->arrays, r->stream, (wt_random)kind, 42, 1000, &u));
        array_get(r, &u, x);
        mean = square = 0;
        for (int k = 0; k < N; k++) {
            mean += x[k] / N, square += x[k] * x[k] / N;
            if (kind == WT_RANDOM_UNIFORM) assert_true(x[k] >= 0 && x[k] < 1);
        }
        // five standard deviations of the mean and of the mean square
        assert_true(fabs(mean - (kind ? 0 : 0.5)) < 5 * (kind ? 1 : 0.289) / sqrt(N));
        assert_true(fabs(square - (kind ? 1 : 1.0 / 3)) < 5 * (kind ? 1.42 : 0.299) / sqrt(N));
        assert_ok(wt_array_transpose(&two, (const int[]){1, 0}, &view));
        assert_ok(wt_array_random(r->arrays, r->stream, (wt_random)kind, 42, 1005, &view));
        array_get(r, &two, got);
        assert_true(got[0] == x[5] && got[2] == x[6] && got[1] == x[7] && got[3] == x[8]);
    }
    free(x);
    array_rig_end(r);
}

// Rounding to a type of few bits could make 1: its uniform numbers are as many of the word's bits as it holds.
static void uniform_numbers_of_every_type_are_below_one(void **state)
{
    enum { N = 200000 };
    array_rig *r = array_rig_of(state);
    double *x = malloc(sizeof *x * N);
    static const struct {
        wt_dtype type;
        double steps; // from 0 to 1
    } rows[] = {{WT_DTYPE_F32, 0x1p24}, {WT_DTYPE_F16, 2048},  {WT_DTYPE_BF16, 256},
                {WT_DTYPE_F8_E4M3, 16}, {WT_DTYPE_F8_E5M2, 8}, {WT_DTYPE_F4, 2}};
    wt_array seen = TAKE(r, WT_DTYPE_F64, N);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double mean = 0;
        wt_array u = TAKE(r, rows[k].type, N);
        assert_ok(wt_array_random(r->arrays, r->stream, WT_RANDOM_UNIFORM, 7, 0, &u));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &u, &seen));
        array_get(r, &seen, x);
        for (int j = 0; j < N; j++) {
            mean += x[j] / N;
            if (!(x[j] >= 0 && x[j] < 1)) fail_msg("%s: %g", wt_dtype_name(rows[k].type), x[j]);
        }
        // five standard deviations of the mean of whole steps
        assert_true(fabs(mean - (0.5 - 0.5 / rows[k].steps)) < 5 * 0.289 / sqrt(N));
    }
    free(x);
    array_rig_end(r);
}

// In double, as NumPy's: int64 would wrap.
static void sums_of_integers_for_floats_do_not_wrap(void **state)
{
    array_rig *r = array_rig_of(state);
    const double x[3] = {0x1p62, 0x1p62, 0x1p62};
    const double want[] = {[WT_REDUCE_SUM] = 0x1.8p63, [WT_REDUCE_MEAN] = 0x1p62, [WT_REDUCE_PROD] = 0x1p186};
    wt_array in = TAKE(r, WT_DTYPE_F64, 3), whole = TAKE(r, WT_DTYPE_I64, 3), out = TAKE(r, WT_DTYPE_F64, 1);
    array_put(r, &in, x);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &in, &whole));
    for (int op = WT_REDUCE_SUM; op <= WT_REDUCE_PROD; op++) {
        double got;
        assert_ok(wt_array_reduce(r->arrays, r->stream, (wt_reduce)op, &whole, 0, &out));
        array_get(r, &out, &got);
        assert_close("reduction", op, got, want[op], 1e-15);
    }
    array_rig_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_over_any_axes),
        cmocka_unit_test(sums_of_integers_for_floats_do_not_wrap),
        cmocka_unit_test(uniform_numbers_of_every_type_are_below_one),
        cmocka_unit_test(long_reductions_and_their_nans),
        cmocka_unit_test(lines_along_each_axis),
        cmocka_unit_test(lines_of_infinities),
        cmocka_unit_test(the_largest_come_first_and_the_first_of_equals),
        cmocka_unit_test(gather_and_scatter_are_each_others_ways_back),
        cmocka_unit_test(indices_of_each_line_of_their_own),
        cmocka_unit_test(pieces_are_put_together_and_cut_again),
        cmocka_unit_test(words_are_those_of_philox),
        cmocka_unit_test(random_numbers_are_spread_as_they_should),
    };
    int failed = cmocka_run_group_tests_name("array lines on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("array lines on a GPU", tests, open_cuda, close_device);
}
