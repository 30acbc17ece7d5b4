// An RMSNorm within the products before and after it (wt_matmul_norm), where the device has it: what the first writes
// against y itself, what the second gives against sums in double.
#include "support/matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fetch_array(bench *b, array *a)
{
    assert_ok(wt_stream_download(b->stream, a->host, a->buffer, 0, a->bytes));
    assert_ok(wt_stream_synchronize(b->stream));
}

/// [m][width / of]
static void check_squares(const float *y, const float *squares, int m, int width, int of)
{
    for (int i = 0; i < m; i++)
        for (int g = 0; g < width / of; g++) {
            double want = 0;
            for (int k = 0; k < of; k++) {
                const double v = y[i * width + g * of + k];
                want += v * v;
            }
            const double got = squares[i * (width / of) + g];
            if (!(fabs(got - want) <= 1e-5 * want)) fail_msg("squares %d of row %d: %g, want %g", g, i, got, want);
        }
}

/// The `at`-th of `n` elements, with what rounding left.
static double normed_of(const unsigned char *normed, int n, bool two_parts, int at)
{
    return element_of(BF16, normed, at) + (two_parts ? element_of(BF16, normed, n + at) : 0);
}

/// bf16 keeps 8 bits, two of them 16.
static void check_normed(const float *y, const float *weight, const unsigned char *normed, int m, int width,
                         bool two_parts)
{
    for (int i = 0; i < m; i++)
        for (int r = 0; r < width; r++) {
            const double want = (double)y[i * width + r] * weight[r];
            const double got = normed_of(normed, m * width, two_parts, i * width + r);
            if (!(fabs(got - want) <= (two_parts ? 0x1p-16 : 0x1p-8) * fabs(want)))
                fail_msg("row %d, %d: %g, want %g", i, r, got, want);
        }
}

/// Part `part` of the product of normed rows, whose sums are of floats.
static void check_next(const bench *b, int part, const unsigned char *normed, const float *squares, int of, double eps)
{
    const int rows = b->args.parts[part].weight.rows, width = b->p.columns, n = width / of;
    for (int i = 0; i < b->p.m; i++) {
        double mean = 0;
        for (int g = 0; g < n; g++) mean += squares[i * n + g];
        const double scale = 1 / sqrt(mean / width + eps);
        for (int r = 0; r < rows; r++) {
            double want = 0, size = 0;
            for (int k = 0; k < width; k++) {
                const double term = normed_of(normed, b->p.m * width, b->args.two_parts, i * width + k) *
                                    (double)b->plain[part][r * width + k];
                want += term;
                size += fabs(term);
            }
            const double got = element_of(F32, b->y[part].host, i * (int64_t)rows + r);
            if (!(fabs(got - scale * want) <= 1e-5 * scale * size))
                fail_msg("part %d, row %d, %d: %g, want %g", part, i, r, got, scale * want);
        }
    }
}

/// Rows of `width` elements, then three parts of `rows` each.
static void check_norm(wt_device *device, int m, int width, int rows, bool two_parts)
{
    bench first, next;
    wt_matmul *matmul;
    make_bench(&first, device,
               &(problem){.w = BF16,
                          .x = BF16,
                          .y = F32,
                          .rows = width,
                          .columns = 520,
                          .m = m,
                          .add = true,
                          .two_parts = two_parts});
    make_bench(&next, device,
               &(problem){.w = BF16,
                          .x = BF16,
                          .y = F32,
                          .rows = rows,
                          .columns = width,
                          .m = m,
                          .n_parts = 3,
                          .two_parts = two_parts});
    // the library takes some products without a norm, and sums them in an order of its own
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true}, &matmul));
    array weight = new_array(&first, sizeof(float) * width),
          normed = new_array(&first, (size_t)((two_parts ? 4 : 2) * m * width)),
          squares = new_array(&first, sizeof(float) * (size_t)(m * width / 16)), before = first.y[0];
    for (int r = 0; r < width; r++) ((float *)weight.host)[r] = 0.5f + (float)(r * 37 % 64) / 32;
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
    const int of = wt_matmul_norms(matmul, &first.args);
    if (!of) {
        assert_int_equal(wt_matmul_enqueue(matmul, first.stream, &first.args), WT_ERR_UNSUPPORTED);
        assert_int_equal(wt_matmul_norms(matmul, &next.args), 0);
    } else {
        assert_int_equal(wt_matmul_norms(matmul, &next.args), of);
        for (int k = 0; k < 3; k++) { // y is added to, so it begins anew
            assert_ok(wt_stream_upload(first.stream, first.y[0].buffer, 0, before.host, before.bytes));
            assert_ok(wt_matmul_enqueue(matmul, first.stream, &first.args));
            fetch(&first, 0);
            assert_memory_equal(first.y[0].host, plain, before.bytes);
            fetch_array(&first, &normed);
            fetch_array(&first, &squares);
            check_squares(plain, (const float *)squares.host, m, width, of);
            check_normed(plain, (const float *)weight.host, normed.host, m, width, two_parts);
            assert_ok(wt_matmul_enqueue(matmul, next.stream, &next.args));
            for (int part = 0; part < 3; part++) {
                fetch(&next, part);
                check_next(&next, part, normed.host, (const float *)squares.host, of, 0.01);
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

static void a_norm_between_two_products(void **state)
{
    static const int rows[] = {1, 8, 13, 21, 64};
    for (int k = 0; k < 5; k++) check_norm(device_of(state), rows[k], 256, 130, false);
    for (int k = 0; k < 2; k++) check_norm(device_of(state), rows[k], 256, 130, true);
    check_norm(device_of(state), 4, 256, 130, true);
}

/// As many rows of W as tiles of matmul_wgmma have whose columns a cluster shares.
static void a_norm_between_clusters(void **state)
{
    if (wt_device_get_info(device_of(state))->backend != WT_BACKEND_CUDA) skip();
    check_norm(device_of(state), 21, 3200, 130, false);
    check_norm(device_of(state), 64, 640, 1100, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_norm_between_two_products),
                                       cmocka_unit_test(a_norm_between_clusters)};
    int failed = cmocka_run_group_tests_name("matmul norms, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul norms, CUDA", tests, open_cuda, close_device);
}
