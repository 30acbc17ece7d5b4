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
                const double term =
                    normed_of(normed, b->p.m * width, b->args.two_parts, i * width + k) * weight_of(b, part, 0, r, k);
                want += term;
                size += fabs(term);
            }
            const double got = element_of(F32, b->y[part].host, i * (int64_t)rows + r);
            if (!(fabs(got - scale * want) <= 1e-5 * scale * size))
                fail_msg("part %d, row %d, %d: %g, want %g", part, i, r, got, scale * want);
        }
    }
}

/// What lies between two products.
typedef struct between {
    array weight, normed, squares, before;
    float *plain; ///< y without a norm
} between;

static between between_of(bench *first, int m, int width, bool two_parts)
{
    between t = {.weight = new_array(first, sizeof(float) * width),
                 .normed = new_array(first, (size_t)((two_parts ? 4 : 2) * m * width)),
                 .squares = new_array(first, sizeof(float) * (size_t)(m * width / 16)),
                 .before = first->y[0]};
    for (int r = 0; r < width; r++) ((float *)t.weight.host)[r] = 0.5f + (float)(r * 37 % 64) / 32;
    send_array(first, &t.weight);
    t.before.host = malloc(t.before.bytes);
    t.plain = malloc(t.before.bytes);
    assert_non_null(t.before.host);
    assert_non_null(t.plain);
    memcpy(t.before.host, first->y[0].host, t.before.bytes);
    return t;
}

/// `same`: the kernel without a norm is the one with it, and so are y's bits.
static void check_between(wt_matmul *matmul, bench *first, bench *next, between *t, int of, bool same)
{
    const int m = first->p.m, width = first->p.rows;
    for (int k = 0; k < 3; k++) { // y is added to, so it begins anew
        assert_ok(wt_stream_upload(first->stream, first->y[0].buffer, 0, t->before.host, t->before.bytes));
        memset(t->normed.host, 0, t->normed.bytes); // what is read too early is not right by chance
        send_array(first, &t->normed);
        assert_ok(wt_matmul_enqueue(matmul, first->stream, &first->args));
        assert_ok(wt_matmul_enqueue(matmul, first->stream, &next->args));
        fetch(first, 0);
        if (same || k) assert_memory_equal(first->y[0].host, t->plain, t->before.bytes);
        if (!k) check_results(first, 0, t->before.host);
        memcpy(t->plain, first->y[0].host, t->before.bytes);
        fetch_array(first, &t->normed);
        fetch_array(first, &t->squares);
        check_squares(t->plain, (const float *)t->squares.host, m, width, of);
        check_normed(t->plain, (const float *)t->weight.host, t->normed.host, m, width, first->p.two_parts);
        for (int part = 0; part < 3; part++) {
            fetch(next, part);
            check_next(next, part, t->normed.host, (const float *)t->squares.host, of, 0.01);
        }
    }
}

/// Weights of the type and scales of `weights`: rows of `width` elements from `columns`, then three parts of `rows`
/// each.
static void check_weights(wt_device *device, const problem *weights, int columns, int m, int width, int rows,
                          bool two_parts)
{
    bench first, next;
    wt_matmul *matmul;
    problem p = *weights;
    p.x = BF16;
    p.y = F32;
    p.rows = width;
    p.columns = columns;
    p.m = m;
    p.add = true;
    p.two_parts = two_parts;
    make_bench(&first, device, &p);
    p.rows = rows;
    p.columns = width;
    p.add = false;
    p.n_parts = 3;
    make_bench(&next, device, &p);
    between t = between_of(&first, m, width, two_parts);
    // the library takes some products without a norm, and sums them in an order of its own
    assert_ok(wt_matmul_create(&(wt_matmul_config){.device = device, .no_library = true}, &matmul));
    first.args.overlap = next.args.overlap = true; // the next begins while the first runs
    const char *kernel = wt_matmul_kernel(matmul, &first.args);
    assert_ok(wt_matmul_enqueue(matmul, first.stream, &first.args));
    fetch(&first, 0);
    memcpy(t.plain, first.y[0].host, t.before.bytes);

    first.args.norm_after = (wt_matmul_norm){
        .weight = address_of(&t.weight), .out = address_of(&t.normed), .squares = address_of(&t.squares)};
    next.args.norm_before = (wt_matmul_norm){.squares = address_of(&t.squares), .eps = 0.01f};
    next.args.x = address_of(&t.normed);
    const int of = wt_matmul_norms(matmul, &first.args);
    assert_int_equal(wt_matmul_norms(matmul, &next.args), of);
    if (of)
        check_between(matmul, &first, &next, &t, of, !strcmp(wt_matmul_kernel(matmul, &first.args), kernel));
    else
        assert_int_equal(wt_matmul_enqueue(matmul, first.stream, &first.args), WT_ERR_UNSUPPORTED);
    free(t.plain);
    free(t.before.host);
    free_array(&t.squares);
    free_array(&t.normed);
    free_array(&t.weight);
    wt_matmul_destroy(matmul);
    unmake_bench(&next);
    unmake_bench(&first);
}

static void check_norm(wt_device *device, int m, int width, int rows, bool two_parts)
{
    check_weights(device, &(problem){.w = BF16}, 520, m, width, rows, two_parts);
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

/// Nibbles in groups, with zero points and without, in one slice of the columns and several; bytes by blocks and rows.
static void a_norm_between_quantised_products(void **state)
{
    static const problem nibbles = {
        .w = WT_DTYPE_U8, .packing = WT_PACKING_U4, .scaling = WT_SCALING_GROUP, .group = 128, .scale_dtype = F16};
    static const problem bytes = {.w = E4M3, .scaling = WT_SCALING_BLOCK}, whole = {.w = I8, .scaling = WT_SCALING_ROW};
    wt_device *device = device_of(state);
    problem zeros = nibbles, small = nibbles;
    zeros.zeros = true;
    small.group = 32;
    check_weights(device, &nibbles, 512, 8, 256, 130, true);
    check_weights(device, &zeros, 512, 4, 384, 130, true);
    check_weights(device, &zeros, 512, 13, 256, 130, false);
    check_weights(device, &small, 512, 8, 256, 130, true);
    check_weights(device, &small, 512, 8, 416, 130, true);
    check_weights(device, &bytes, 512, 8, 256, 130, true);
    check_weights(device, &whole, 512, 3, 256, 130, true);
    if (wt_device_get_info(device)->backend != WT_BACKEND_CUDA) return;
    check_weights(device, &zeros, 4352, 7, 256, 2250, true); // more tiles of 16 rows than a block has, slices
    check_weights(device, &nibbles, 256, 5, 4480, 600, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_norm_between_two_products),
                                       cmocka_unit_test(a_norm_between_quantised_products),
                                       cmocka_unit_test(a_norm_between_clusters)};
    int failed = cmocka_run_group_tests_name("matmul norms, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul norms, CUDA", tests, open_cuda, close_device);
}
