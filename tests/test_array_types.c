// Types of arrays on both backends: what a cast rounds, saturates and wraps, against their definitions.
#include "support/array_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void every_number_of_a_small_type_comes_back(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3, WT_DTYPE_F8_E5M2};
    array_rig *r = array_rig_of(state);
    for (int t = 0; t < 4; t++) {
        const int bytes = (int)wt_dtype_bytes(types[t], 1), n = bytes == 2 ? 65536 : 256;
        wt_array small = TAKE(r, types[t], n), wide = TAKE(r, WT_DTYPE_F32, n), again = TAKE(r, types[t], n);
        unsigned char *bits = malloc((size_t)(n * bytes)), *got = malloc((size_t)(n * bytes));
        double *x = malloc(sizeof *x * (size_t)n);
        float *want = malloc(sizeof *want * (size_t)n);
        for (int k = 0; k < n; k++) {
            bits[k * bytes] = (unsigned char)k;
            if (bytes == 2) bits[2 * k + 1] = (unsigned char)(k >> 8);
        }
        wt_tensor_to_f32(&(wt_tensor){.data = bits, .dtype = types[t]}, 0, n, want);
        assert_ok(wt_stream_upload(r->stream, array_buffer(r, &small), 0, bits, (size_t)(n * bytes)));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &small, &wide));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &wide, &again));
        array_get(r, &wide, x);
        assert_ok(wt_stream_download(r->stream, got, array_buffer(r, &again), 0, (size_t)(n * bytes)));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < n; k++) {
            if (isnan(want[k])) {
                assert_true(isnan(x[k]));
                continue;
            }
            assert_true(x[k] == (double)want[k]);
            const bool infinite_fp8 = isinf(want[k]) && bytes == 1; // becomes the largest
            if (!infinite_fp8 && memcmp(got + k * bytes, bits + k * bytes, (size_t)bytes))
                fail_msg("%s: bits %#x come back as %#x", wt_dtype_name(types[t]), (unsigned)k, got[k * bytes]);
        }
        free(bits), free(got), free(x), free(want);
    }
    array_rig_end(r);
}

// No neighbour is nearer, and of two as near the even one is taken.
static void floats_are_rounded_to_the_nearest(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3, WT_DTYPE_F8_E5M2};
    enum { N = 4096 };
    array_rig *r = array_rig_of(state);
    double x[N];
    for (int t = 0; t < 4; t++) {
        const int bytes = (int)wt_dtype_bytes(types[t], 1), largest = bytes == 2 ? 0x7b00 : t == 2 ? 0x7d : 0x7a;
        wt_array wide = TAKE(r, WT_DTYPE_F32, N), small = TAKE(r, types[t], N);
        unsigned char bits[2 * N];
        for (int k = 0; k < N; k++) { // numbers between neighbours, every fourth in the middle
            float two[2];
            const unsigned low = (unsigned)random_uniform(0, largest);
            const uint16_t pair16[2] = {(uint16_t)low, (uint16_t)(low + 1)};
            const uint8_t pair8[2] = {(uint8_t)low, (uint8_t)(low + 1)};
            wt_tensor_to_f32(&(wt_tensor){.data = bytes == 2 ? (const void *)pair16 : pair8, .dtype = types[t]}, 0, 2,
                             two);
            const double share = k % 4 ? random_uniform(0, 1) : 0.5;
            x[k] = (double)(float)((double)two[0] + share * ((double)two[1] - (double)two[0]));
            if (k % 3 == 0) x[k] = -x[k];
        }
        array_put(r, &wide, x);
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &wide, &small));
        assert_ok(wt_stream_download(r->stream, bits, array_buffer(r, &small), 0, (size_t)(N * bytes)));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < N; k++) {
            const unsigned own = bytes == 2 ? (unsigned)bits[2 * k] | (unsigned)bits[2 * k + 1] << 8 : bits[k];
            const unsigned m = own & (bytes == 2 ? 0x7fff : 0x7f);
            for (int side = -1; side <= 1; side += 2) {
                if (!m && side < 0) continue;
                const uint16_t near16[2] = {(uint16_t)m, (uint16_t)(m + (unsigned)side)};
                const uint8_t near8[2] = {(uint8_t)m, (uint8_t)(m + (unsigned)side)};
                float near[2];
                wt_tensor_to_f32(&(wt_tensor){.data = bytes == 2 ? (const void *)near16 : near8, .dtype = types[t]}, 0,
                                 2, near);
                const double mine = fabs(fabs(x[k]) - (double)near[0]), other = fabs(fabs(x[k]) - (double)near[1]);
                if (mine > other || (mine == other && m & 1))
                    fail_msg("%s: %.9g becomes %#x", wt_dtype_name(types[t]), x[k], own);
            }
        }
    }
    array_rig_end(r);
}

static void casts_saturate_and_wrap(void **state)
{
    array_rig *r = array_rig_of(state);
    const double floats[] = {1.9, -1.9, 300, -300, 1e10, -1e10, NAN, INFINITY}, integers[] = {257, -1, 70000, 3};
    const double as_i8[] = {1, -1, 127, -128, 127, -128, 0, 127}, as_u8[] = {1, 0, 255, 0, 255, 0, 0, 255};
    const double wrapped[] = {1, 255, 112, 3}, as_e4m3[] = {1.875, -1.875, 288, -288, 448, -448, NAN, 448};
    wt_array f = TAKE(r, WT_DTYPE_F32, 8), i = TAKE(r, WT_DTYPE_I32, 4);
    const struct {
        const wt_array *from;
        wt_dtype to;
        const double *want;
    } cases[] = {{&f, WT_DTYPE_I8, as_i8},
                 {&f, WT_DTYPE_U8, as_u8},
                 {&i, WT_DTYPE_U8, wrapped},
                 {&f, WT_DTYPE_F8_E4M3, as_e4m3}};
    array_put(r, &f, floats);
    array_put(r, &i, integers);
    for (int k = 0; k < 4; k++) {
        double got[8];
        wt_array to = array_take(r, cases[k].to, 1, cases[k].from->shape);
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, cases[k].from, &to));
        array_get(r, &to, got);
        for (int n = 0; n < (int)to.shape[0]; n++)
            assert_close(wt_dtype_name(to.dtype), n, got[n], cases[k].want[n], 0);
    }
    array_rig_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_small_type_comes_back),
        cmocka_unit_test(floats_are_rounded_to_the_nearest),
        cmocka_unit_test(casts_saturate_and_wrap),
    };
    int failed = cmocka_run_group_tests_name("array types on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("array types on a GPU", tests, open_cuda, close_device);
}
