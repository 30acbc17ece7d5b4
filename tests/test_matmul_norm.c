// An RMSNorm within the products before and after it (wt_matmul_norm), where the device has it: what the first writes
// against y itself, what the second gives against sums in double.
#include "support/matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, M = 21, N_SQUARES = ROWS / WT_MATMUL_SQUARES };

static void fetch_array(bench *b, array *a)
{
    assert_ok(wt_stream_download(b->stream, a->host, a->buffer, 0, a->bytes));
    assert_ok(wt_stream_synchronize(b->stream));
}

static void check_squares(const float *y, const float *squares)
{
    for (int i = 0; i < M; i++)
        for (int g = 0; g < N_SQUARES; g++) {
            double want = 0;
            for (int k = 0; k < WT_MATMUL_SQUARES; k++) {
                const double v = y[i * ROWS + g * WT_MATMUL_SQUARES + k];
                want += v * v;
            }
            const double got = squares[i * N_SQUARES + g];
            if (!(fabs(got - want) <= 1e-5 * want)) fail_msg("squares %d of row %d: %g, want %g", g, i, got, want);
        }
}

/// bf16 keeps 8 bits.
static void check_normed(const float *y, const float *weight, const unsigned char *normed)
{
    for (int i = 0; i < M; i++)
        for (int r = 0; r < ROWS; r++) {
            const double want = (double)y[i * ROWS + r] * weight[r];
            const double got = element_of(BF16, normed, i * ROWS + r);
            if (!(fabs(got - want) <= 0x1p-8 * fabs(want))) fail_msg("row %d, %d: %g, want %g", i, r, got, want);
        }
}

/// Part `part` of the product of normed rows, whose sums are of floats.
static void check_next(const bench *b, int part, const unsigned char *normed, const float *squares, double eps)
{
    const int rows = b->args.parts[part].weight.rows;
    for (int i = 0; i < M; i++) {
        double mean = 0;
        for (int g = 0; g < N_SQUARES; g++) mean += squares[i * N_SQUARES + g];
        const double scale = 1 / sqrt(mean / ROWS + eps);
        for (int r = 0; r < rows; r++) {
            double want = 0, size = 0;
            for (int k = 0; k < ROWS; k++) {
                const double term = element_of(BF16, normed, i * ROWS + k) * (double)b->plain[part][r * ROWS + k];
                want += term;
                size += fabs(term);
            }
            const double got = element_of(F32, b->y[part].host, i * (int64_t)rows + r);
            if (!(fabs(got - scale * want) <= 1e-5 * scale * size))
                fail_msg("part %d, row %d, %d: %g, want %g", part, i, r, got, scale * want);
        }
    }
}

static void a_norm_between_two_products(void **state)
{
    wt_device *device = device_of(state);
    bench first, next;
    wt_matmul *matmul;
    make_bench(&first, device,
               &(problem){.w = BF16, .x = BF16, .y = F32, .rows = ROWS, .columns = 520, .m = M, .add = true});
    make_bench(&next, device,
               &(problem){.w = BF16, .x = BF16, .y = F32, .rows = 130, .columns = ROWS, .m = M, .n_parts = 3});
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device}, &matmul));
    array weight = new_array(&first, sizeof(float) * ROWS), normed = new_array(&first, 2 * M * ROWS),
          squares = new_array(&first, sizeof(float) * M * N_SQUARES), before = first.y[0];
    for (int r = 0; r < ROWS; r++) ((float *)weight.host)[r] = 0.5f + (float)(r * 37 % 64) / 32;
    send_array(&first, &weight);
    before.host = malloc(before.bytes);
    assert_non_null(before.host);
    memcpy(before.host, first.y[0].host, before.bytes);
    float *plain = malloc(before.bytes);
    assert_non_null(plain);
    assert_ok(wt_matmul_enqueue(matmul, first.stream, &first.args));
    fetch(&first, 0);
    memcpy(plain, first.y[0].host, before.bytes);

    first.args.norm_after =
        (wt_matmul_norm){.weight = address_of(&weight), .out = address_of(&normed), .squares = address_of(&squares)};
    next.args.norm_before = (wt_matmul_norm){.squares = address_of(&squares), .eps = 0.01f};
    next.args.x = address_of(&normed);
    if (!wt_matmul_norms(matmul, &first.args)) {
        assert_int_equal(wt_matmul_enqueue(matmul, first.stream, &first.args), WT_ERR_UNSUPPORTED);
        assert_false(wt_matmul_norms(matmul, &next.args));
    } else {
        assert_true(wt_matmul_norms(matmul, &next.args));
        for (int k = 0; k < 3; k++) { // y is added to, so it begins anew
            assert_ok(wt_stream_upload(first.stream, first.y[0].buffer, 0, before.host, before.bytes));
            assert_ok(wt_matmul_enqueue(matmul, first.stream, &first.args));
            fetch(&first, 0);
            assert_memory_equal(first.y[0].host, plain, before.bytes);
            fetch_array(&first, &normed);
            fetch_array(&first, &squares);
            check_squares(plain, (const float *)squares.host);
            check_normed(plain, (const float *)weight.host, normed.host);
            assert_ok(wt_matmul_enqueue(matmul, next.stream, &next.args));
            for (int part = 0; part < 3; part++) {
                fetch(&next, part);
                check_next(&next, part, normed.host, (const float *)squares.host, 0.01);
            }
        }
    }
    free(plain);
    free(before.host);
    free_array(&squares);
    free_array(&normed);
    free_array(&weight);
    wt_matmul_destroy(matmul);
    unmake_bench(&next);
    unmake_bench(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_norm_between_two_products)};
    int failed = cmocka_run_group_tests_name("matmul norms, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul norms, CUDA", tests, open_cuda, close_device);
}
