// Numbers of 4 bits, two a byte, on both backends: casts, views, what they cannot do, and NVFP4 made of them.
#include "support/array_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>

static const wt_dtype types[] = {WT_DTYPE_I4, WT_DTYPE_U4, WT_DTYPE_F4};
static const double numbers[3][16] = {{0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1},
                                      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6}};

static void copy(array_rig *r, const wt_array *from, const wt_array *to)
{
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, from, to));
}

static void upload(array_rig *r, const wt_array *a, const unsigned char *bytes, size_t n)
{
    assert_ok(wt_stream_upload(r->stream, array_buffer(r, a), 0, bytes, n));
    assert_ok(wt_stream_synchronize(r->stream));
}

static void download(array_rig *r, const wt_array *a, unsigned char *bytes, size_t n)
{
    assert_ok(wt_stream_download(r->stream, bytes, array_buffer(r, a), 0, n));
    assert_ok(wt_stream_synchronize(r->stream));
}

static void every_byte_is_two_numbers(void **state)
{
    array_rig *r = array_rig_of(state);
    unsigned char bytes[256], got[256];
    for (int k = 0; k < 256; k++) bytes[k] = (unsigned char)k;
    for (int t = 0; t < 3; t++) {
        wt_array packed = TAKE(r, types[t], 512), wide = TAKE(r, WT_DTYPE_F32, 512), again = TAKE(r, types[t], 512);
        double x[512];
        upload(r, &packed, bytes, 256);
        copy(r, &packed, &wide);
        copy(r, &wide, &again);
        array_get(r, &wide, x);
        download(r, &again, got, 256);
        for (int k = 0; k < 512; k++) {
            const double want = numbers[t][k & 1 ? k / 2 >> 4 : k / 2 & 15];
            if (x[k] != want || signbit(x[k]) != signbit(want))
                fail_msg("%s: element %d is %g, want %g", wt_dtype_name(types[t]), k, x[k], want);
        }
        assert_memory_equal(got, bytes, 256);
    }
    array_rig_end(r);
}

/// The rounding of F4 is that of ml_dtypes 0.6 (float4_e2m1fn), but for NaN: it makes -0 of it, or 0 of -NaN.
static void casts_round_saturate_and_wrap(void **state)
{
    static const double floats[] = {0.25, 0.2500001, 0.75, 1.25,  1.75, 2.5, 3.5, 5,
                                    5.1,  7,         1e9,  -0.25, -0.3, -5,  -7,  NAN};
    static const double as_f4[] = {0, 0.5, 1, 1, 2, 2, 4, 4, 6, 6, 6, -0.0, -0.5, -4, -6, 0};
    static const double as_i4[] = {0, 0, 0, 1, 1, 2, 3, 5, 5, 7, 7, 0, 0, -5, -7, 0};
    static const double as_u4[] = {0, 0, 0, 1, 1, 2, 3, 5, 5, 7, 15, 0, 0, 0, 0, 0};
    static const double integers[] = {-9, -8, 7, 8, 15, 16, 23, -1};
    static const double wrapped_i4[] = {7, -8, 7, -8, -1, 0, 7, -1}, wrapped_u4[] = {7, 8, 7, 8, 15, 0, 7, 15};
    array_rig *r = array_rig_of(state);
    const wt_array f = TAKE(r, WT_DTYPE_F32, 16), d = TAKE(r, WT_DTYPE_F64, 16), i = TAKE(r, WT_DTYPE_I32, 8);
    const struct {
        const wt_array *from;
        wt_dtype to;
        const double *want;
    } cases[] = {{&f, WT_DTYPE_F4, as_f4},      {&f, WT_DTYPE_I4, as_i4},     {&f, WT_DTYPE_U4, as_u4},
                 {&d, WT_DTYPE_F4, as_f4},      {&d, WT_DTYPE_I4, as_i4},     {&d, WT_DTYPE_U4, as_u4},
                 {&i, WT_DTYPE_I4, wrapped_i4}, {&i, WT_DTYPE_U4, wrapped_u4}};
    array_put(r, &f, floats);
    array_put(r, &d, floats);
    array_put(r, &i, integers);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double got[16];
        const wt_array to = array_take(r, cases[k].to, 1, cases[k].from->shape);
        copy(r, cases[k].from, &to);
        array_get(r, &to, got);
        for (int n = 0; n < (int)to.shape[0]; n++)
            assert_close(wt_dtype_name(to.dtype), n, got[n], cases[k].want[n], 0);
    }
    array_rig_end(r);
}

/// Read through any strides; written in whole bytes, and what lies beside stays.
static void views_are_read_and_parts_written(void **state)
{
    enum { ROWS = 37, COLUMNS = 300 };
    array_rig *r = array_rig_of(state);
    const wt_array packed = TAKE(r, WT_DTYPE_I4, ROWS, COLUMNS), wide = TAKE(r, WT_DTYPE_I32, ROWS, COLUMNS);
    const wt_array turned = TAKE(r, WT_DTYPE_I32, COLUMNS, ROWS), sums = TAKE(r, WT_DTYPE_I64, ROWS);
    static double x[ROWS * COLUMNS], got[ROWS * COLUMNS];
    wt_array view, part, from;
    for (int k = 0; k < ROWS * COLUMNS; k++) x[k] = (double)(k * 7 % 16 - 8);
    array_put(r, &wide, x);
    copy(r, &wide, &packed);
    assert_ok(wt_array_transpose(&packed, (const int[]){1, 0}, &view));
    copy(r, &view, &turned);
    array_get(r, &turned, got);
    for (int k = 0; k < ROWS * COLUMNS; k++) assert_close("transposed", k, got[k], x[k % ROWS * COLUMNS + k / ROWS], 0);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &packed, 1 << 1, &sums));
    array_get(r, &sums, got);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; k++) sum += x[row * COLUMNS + k];
        assert_close("sum", row, got[row], sum, 0);
    }
    // columns 4, 5 .. 9 become minus what is in columns 101 .. 106
    assert_ok(wt_array_slice(&packed, 1, 4, 10, 1, &part));
    assert_ok(wt_array_slice(&wide, 1, 101, 107, 1, &from));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_NEG, &from, &part));
    array_get(r, &packed, got);
    for (int k = 0; k < ROWS * COLUMNS; k++) {
        const int c = k % COLUMNS;
        double want = x[k];
        if (c >= 4 && c < 10) want = x[k + 97] == -8 ? -8 : -x[k + 97]; // 8 keeps its low bits
        assert_close("a part", k, got[k], want, 0);
    }
    array_rig_end(r);
}

static void what_they_cannot_do_is_said(void **state)
{
    array_rig *r = array_rig_of(state);
    wt_array i = TAKE(r, WT_DTYPE_I4, 4, 6), f = TAKE(r, WT_DTYPE_F32, 4, 6), sums = TAKE(r, WT_DTYPE_U4, 4), v, w;
    assert_fails(wt_array_slice(&i, 1, 3, 6, 1, &v), WT_ERR_BAD_ARG,
                 "array: a slice of I4 begins 3 elements on, within a byte, want an even number");
    assert_ok(wt_array_slice(&i, 1, 0, 6, 2, &v));
    assert_ok(wt_array_slice(&f, 1, 0, 3, 1, &w));
    copy(r, &v, &w); // reading every second is fine
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &w, &v), WT_ERR_BAD_ARG,
                 "array: the result of type I4 has odd lines or gaps in them, want pairs in whole bytes");
    assert_ok(wt_array_slice(&i, 1, 0, 3, 1, &v));
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &w, &v), WT_ERR_BAD_ARG,
                 "array: the result of type I4 has odd lines or gaps in them, want pairs in whole bytes");
    assert_fails(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_MAX, &i, 1 << 1, &sums), WT_ERR_UNSUPPORTED,
                 "array: a result of type U4, which only elementwise operations write; want a copy");
    assert_fails(wt_array_cumsum(r->arrays, r->stream, &f, 1, &i), WT_ERR_UNSUPPORTED,
                 "array: a result of type I4, which only elementwise operations write; want a copy");
    array_rig_end(r);
}

// ---- NVFP4: blocks of 16 numbers of F4, a scale of E4M3 each, and one of F32 for all

enum { N = 24, WIDTH = 96, BLOCK = 16, BLOCKS = WIDTH / BLOCK };

/// As docs/arrays.md says: the largest of a block becomes 6, of the largest block's scales 448.
static void to_nvfp4(array_rig *r, const wt_array *x, const wt_array *most, const wt_array *ratio, float whole,
                     const wt_array *scales, const wt_array *packed)
{
    const wt_array shrink = wt_array_constant(WT_DTYPE_F32, 1 / (6 * (double)whole));
    const wt_array factor = wt_array_constant(WT_DTYPE_F32, (double)whole);
    wt_array blocks, packed_blocks;
    assert_ok(wt_array_reshape(x, SHAPE(N, BLOCKS, BLOCK), &blocks));
    assert_ok(wt_array_reshape(packed, SHAPE(N, BLOCKS, BLOCK), &packed_blocks));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_ABS, &blocks, ratio));
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_MAX, ratio, 1 << 2, most));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, most, &shrink, scales));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, scales, &factor, most));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_DIV, &blocks, most, &packed_blocks));
}

/// Every number is within half a step of F4 of what it was, and blocks of zeros stay.
static void nvfp4_is_made_and_read_by_operations(void **state)
{
    array_rig *r = array_rig_of(state);
    const wt_array x = TAKE(r, WT_DTYPE_F32, N, WIDTH), packed = TAKE(r, WT_DTYPE_F4, N, WIDTH);
    const wt_array most = TAKE(r, WT_DTYPE_F32, N, BLOCKS, 1), scales = TAKE(r, WT_DTYPE_F8_E4M3, N, BLOCKS, 1);
    const wt_array ratio = TAKE(r, WT_DTYPE_F32, N, BLOCKS, BLOCK), y = TAKE(r, WT_DTYPE_F32, N, BLOCKS, BLOCK);
    double *values = random_values(N * WIDTH, -3, 3, WT_DTYPE_F32), got[N * WIDTH];
    for (int k = 5 * BLOCK; k < 6 * BLOCK; k++) values[k] = 0;
    const float whole = 3.0f / (6 * 448);
    array_put(r, &x, values);
    to_nvfp4(r, &x, &most, &ratio, whole, &scales, &packed);
    wt_array blocks;
    const wt_array factor = wt_array_constant(WT_DTYPE_F32, (double)whole);
    assert_ok(wt_array_reshape(&packed, SHAPE(N, BLOCKS, BLOCK), &blocks));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, &blocks, &scales, &y));
    assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_MUL, &y, &factor, &y));
    array_get(r, &y, got);
    for (int b = 0; b < N * BLOCKS; b++) {
        double largest = 0;
        for (int k = 0; k < BLOCK; k++) largest = fmax(largest, fabs(values[b * BLOCK + k]));
        for (int k = b * BLOCK; k < (b + 1) * BLOCK; k++) // F4 errs by 1/6 of the largest, the scale by 1/16 of it
            if (!(fabs(got[k] - values[k]) <= largest * (1.0 / 6 + 1.0 / 16)))
                fail_msg("element %d is %g, was %g, the block's largest %g", k, got[k], values[k], largest);
    }
    free(values);
    array_rig_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_two_numbers),
        cmocka_unit_test(casts_round_saturate_and_wrap),
        cmocka_unit_test(views_are_read_and_parts_written),
        cmocka_unit_test(what_they_cannot_do_is_said),
        cmocka_unit_test(nvfp4_is_made_and_read_by_operations),
    };
    int failed = cmocka_run_group_tests_name("packed arrays on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("packed arrays on a GPU", tests, open_cuda, close_device);
}
