#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/tensor.h>

#include "golden/weights_golden.h"

enum { MAX_VALUES = 512 };

/// Elements of `bytes` as floats equal `bits`, to the bit where they are numbers. Read from an odd address, since a
/// file may put them there.
static void check_values(wt_dtype dtype, const void *bytes, const unsigned *bits, int64_t n)
{
    unsigned char odd[4 * MAX_VALUES + 1];
    float got[MAX_VALUES];
    assert_true(n <= MAX_VALUES);
    memcpy(odd + 1, bytes, wt_dtype_bytes(dtype, n));
    const wt_tensor tensor = {.data = odd + 1, .dtype = dtype, .rank = 1, .shape = {n}};
    wt_tensor_to_f32(&tensor, 0, n, got);
    for (int64_t k = 0; k < n; k++) {
        float want;
        memcpy(&want, &bits[k], sizeof want);
        if (isnan(want) ? !isnan(got[k]) : memcmp(&got[k], &want, sizeof want))
            fail_msg("%s element %d is %a, want %a", wt_dtype_name(dtype), (int)k, (double)got[k], (double)want);
    }
}

static void small_floats_are_what_others_read(void **state)
{
    (void)state;
    unsigned char every[256];
    for (int k = 0; k < 256; k++) every[k] = (unsigned char)k;
    check_values(WT_DTYPE_F8_E4M3, every, e4m3_values, 256);
    check_values(WT_DTYPE_F8_E5M2, every, e5m2_values, 256);
    const int64_t n = sizeof half_bits / sizeof *half_bits;
    check_values(WT_DTYPE_F16, half_bits, f16_values, n);
    check_values(WT_DTYPE_BF16, half_bits, bf16_values, n);
}

// To the bit: every product and difference is of floats, in ggml's order. Two blocks each.
static void blocks_are_what_ggml_reads(void **state)
{
    (void)state;
    check_values(WT_DTYPE_Q8_0, q8_0_bytes, q8_0_values, 64);
    check_values(WT_DTYPE_Q4_0, q4_0_bytes, q4_0_values, 64);
    check_values(WT_DTYPE_Q4_K, q4_k_bytes, q4_k_values, 512);
    check_values(WT_DTYPE_Q6_K, q6_k_bytes, q6_k_values, 512);
    const wt_tensor second = {.data = q4_k_bytes, .dtype = WT_DTYPE_Q4_K, .rank = 1, .shape = {512}};
    float got[256];
    wt_tensor_to_f32(&second, 256, 256, got);
    assert_memory_equal(got, q4_k_values + 256, sizeof got);
}

/// Every half, as the sum of its bits; independent of the tables above.
static void every_half_is_its_definition(void **state)
{
    (void)state;
    uint16_t *bits = malloc(65536 * sizeof *bits);
    float *got = malloc(65536 * sizeof *got);
    assert_non_null(bits);
    assert_non_null(got);
    for (int k = 0; k < 65536; k++) bits[k] = (uint16_t)k;
    wt_tensor_to_f32(&(wt_tensor){.data = bits, .dtype = WT_DTYPE_F16, .rank = 1, .shape = {65536}}, 0, 65536, got);
    for (int k = 0; k < 65536; k++) {
        const int exponent = k >> 10 & 31, mantissa = k & 1023;
        double want = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        if (exponent == 31) want = mantissa ? (double)NAN : (double)INFINITY;
        if (k & 0x8000) want = -want;
        if (isnan(want) ? !isnan(got[k]) : got[k] != want || !signbit(got[k]) != !signbit(want))
            fail_msg("0x%04x is %a, want %a", (unsigned)k, (double)got[k], want);
    }
    free(bits);
    free(got);
}

static void plain_numbers_are_cast(void **state)
{
    (void)state;
    const double f64[] = {1.5, -0.1};
    const int64_t i64[] = {-3, 1LL << 40};
    const int32_t i32[] = {-2147483647 - 1, 7};
    const int16_t i16[] = {-32768, 7};
    const int8_t i8[] = {-128, 127};
    const uint8_t u8[] = {0, 255}, truth[] = {0, 1};
    const struct {
        wt_dtype dtype;
        const void *data;
        float want[2];
    } cases[] = {{WT_DTYPE_F64, f64, {1.5f, -0.1f}}, {WT_DTYPE_I64, i64, {-3, 0x1p40f}},
                 {WT_DTYPE_I32, i32, {-0x1p31f, 7}}, {WT_DTYPE_I16, i16, {-32768, 7}},
                 {WT_DTYPE_I8, i8, {-128, 127}},     {WT_DTYPE_U8, u8, {0, 255}},
                 {WT_DTYPE_BOOL, truth, {0, 1}},     {WT_DTYPE_F32, (const float[]){0.25f, -8}, {0.25f, -8}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        float got[2];
        const wt_tensor t = {.data = cases[k].data, .dtype = cases[k].dtype, .rank = 1, .shape = {2}};
        wt_tensor_to_f32(&t, 0, 2, got);
        assert_memory_equal(got, cases[k].want, sizeof got);
        wt_tensor_to_f32(&t, 1, 1, got);
        assert_memory_equal(got, cases[k].want + 1, sizeof *got);
    }
}

static void sizes_and_names(void **state)
{
    (void)state;
    for (int k = 0; k < WT_N_DTYPES; k++) {
        wt_dtype found;
        assert_ok(wt_dtype_find(wt_dtype_name((wt_dtype)k), &found));
        assert_int_equal(found, k);
    }
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_BF16, 3), 6);
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_Q6_K, 512), 420);
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_Q6_K, 300), 0); // no multiple of 256
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_F32, -1), 0);
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_F64, INT64_MAX), 0); // more than memory
    wt_dtype dtype;
    assert_fails(wt_dtype_find("F8", &dtype), WT_ERR_NOT_FOUND,
                 "type \"F8\" is not known, want one of F32, F64, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U8, "
                 "BOOL, Q8_0, Q4_0, Q4_K, Q6_K, I4, U4, F4");
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_I4, 6), 3);
    assert_int_equal(wt_dtype_bytes(WT_DTYPE_F4, 5), 0); // half a byte
}

static void tensors_describe_themselves(void **state)
{
    (void)state;
    char text[96];
    wt_tensor t = {.dtype = WT_DTYPE_BF16, .rank = 2, .shape = {4096, 1024}};
    assert_string_equal(wt_tensor_describe(&t, text), "[4096][1024] BF16");
    assert_int_equal(wt_tensor_elements(&t), 4096 * 1024);
    assert_int_equal(wt_tensor_bytes(&t), 2 * 4096 * 1024);
    t.rank = 0;
    assert_string_equal(wt_tensor_describe(&t, text), "[] BF16");
    assert_int_equal(wt_tensor_bytes(&t), 2);
    t.rank = WT_TENSOR_MAX_RANK;
    for (int k = 0; k < t.rank; k++) t.shape[k] = INT64_MAX;
    assert_true(strlen(wt_tensor_describe(&t, text)) == 95); // cut, and ended
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_are_what_others_read),
        cmocka_unit_test(blocks_are_what_ggml_reads),
        cmocka_unit_test(every_half_is_its_definition),
        cmocka_unit_test(plain_numbers_are_cast),
        cmocka_unit_test(sizes_and_names),
        cmocka_unit_test(tensors_describe_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
