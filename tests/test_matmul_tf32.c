// Products of F32 in tf32: only when asked for, through every kernel, and how each rounds its elements.
#include "support/matmul_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/// Part `part` of the results by the library or without it, in tf32 or not; caller frees with free().
static float *floats_by(bench *b, bool no_library, bool tf32, int part)
{
    const wt_matmul_config config = {.device = b->device, .no_library = no_library, .tf32 = tf32};
    const int64_t n = b->y_rows * b->y_stride[part];
    wt_matmul *matmul = NULL;
    float *y = malloc(sizeof *y * (size_t)n);
    assert_non_null(y);
    assert_ok(wt_matmul_create(&config, &matmul));
    assert_ok(wt_matmul_enqueue(matmul, b->stream, &b->args));
    fetch(b, part);
    for (int64_t k = 0; k < n; k++) y[k] = (float)element_of(b->p.y, b->y[part].host, k);
    wt_matmul_destroy(matmul);
    return y;
}

/// 10 bits of both sides instead of 23, through the library and without it, on a GPU; never of itself (every F32
/// product of test_matmul.c is within 4e-6).
static void check_tf32(wt_device *device, const problem *p)
{
    bench b;
    make_bench(&b, device, p);
    for (int way = 0; way < 2 * (p->n_parts > 1 && !p->gated ? p->n_parts : 1); way++) {
        const int part = way / 2;
        const bool no_library = way % 2;
        float *exact = floats_by(&b, no_library, false, part), *rounded = floats_by(&b, no_library, true, part);
        double peak = 0, apart = 0;
        for (int64_t k = 0; k < b.y_rows * b.y_stride[part]; k++) {
            peak = fmax(peak, fabs(exact[k]));
            apart = fmax(apart, fabs(exact[k] - rounded[k]));
        }
        print_message("%d rows: tf32 moves y by %.1e of its largest%s\n", p->m, apart / peak,
                      no_library ? ", without the library" : "");
        assert_true(peak > 0 && peak < 1e6);
        assert_true(apart <= 2e-3 * peak);
        if (wt_device_get_info(b.device)->backend == WT_BACKEND_CUDA)
            assert_true(apart > 1e-5 * peak);
        else
            assert_true(apart == 0);
        free(exact);
        free(rounded);
    }
    unmake_bench(&b);
}

#define FLOATS(n_rows, n_columns, n_x) .w = F32, .x = F32, .y = F32, .rows = n_rows, .columns = n_columns, .m = n_x

static void tf32_comes_only_when_asked_for(void **state)
{
    static const problem problems[] = {
        {FLOATS(64, 516, 136)},
        {FLOATS(64, 516, 128)},
        {FLOATS(64, 516, 60)},
        {FLOATS(64, 516, 20)},
        {FLOATS(1000, 1028, 256)},
        {FLOATS(200, 772, 100), .bias = true, .n_parts = 3},
        {FLOATS(300, 260, 140), .n_parts = 2, .gated = true, .activation = WT_ACTIVATION_SILU, .bias = true},
        {FLOATS(130, 260, 50), .n_parts = 2, .gated = true, .activation = WT_ACTIVATION_SILU},
        {FLOATS(130, 132, 130), .n_batches = 3},
        {FLOATS(130, 132, 50), .n_batches = 3},
        {FLOATS(130, 132, 300), .n_experts = 4, .bias = true},
        {.w = F32, .x = F32, .y = F16, .rows = 264, .columns = 300, .m = 200},
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) check_tf32(device_of(state), &problems[k]);
}

/// Of a float the 10 bits of a tf32, cut off, or the nearest one; of two as near the even one, or that away from zero.
enum { CUT, NEAREST_EVEN, NEAREST_AWAY, N_ROUNDINGS };

static float tf32_of(float v, int rounding)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (rounding == NEAREST_EVEN) bits += 0xfff + (bits >> 13 & 1);
    if (rounding == NEAREST_AWAY) bits += 0x1000;
    bits &= ~(uint32_t)0x1fff;
    memcpy(&v, &bits, sizeof bits);
    return v;
}

/// Rows of x that are 1 in one column bring elements of W to y as tensor cores have them.
static void look_at_rounding(wt_device *device, int m, int without, const char **kernel, int *n_alike)
{
    enum { ROWS = 64, COLUMNS = 516 };
    bench b;
    wt_matmul *matmul = NULL;
    make_bench(&b, device, &(problem){.w = F32, .x = F32, .y = F32, .rows = ROWS, .columns = COLUMNS, .m = m});
    float *x = (float *)b.x.host, *w = (float *)b.w[0].host, *y = (float *)b.y[0].host;
    memset(x, 0, b.x.bytes);
    for (int i = 0; i < m; i++) x[i * b.x_stride + 3 * i] = 1;
    for (int r = 0; r < ROWS; r += 2) { // halves between two tf32
        uint32_t bits;
        memcpy(&bits, &w[r * COLUMNS], sizeof bits);
        bits = (bits & ~(uint32_t)0x1fff) | 0x1000;
        memcpy(&w[r * COLUMNS], &bits, sizeof bits);
    }
    send_array(&b, &b.x);
    send_array(&b, &b.w[0]);
    const wt_matmul_config config = {
        .device = device, .no_library = without >= WITHOUT_LIBRARY, .no_wgmma = without >= WITHOUT_WGMMA, .tf32 = true};
    assert_ok(wt_matmul_create(&config, &matmul));
    *kernel = wt_matmul_kernel(matmul, &b.args);
    assert_ok(wt_matmul_enqueue(matmul, b.stream, &b.args));
    fetch(&b, 0);
    for (int k = 0; k < N_ROUNDINGS; k++) n_alike[k] = 0;
    for (int i = 0; i < m; i++)
        for (int r = 0; r < ROWS; r++)
            for (int k = 0; k < N_ROUNDINGS; k++)
                n_alike[k] += y[i * b.y_stride[0] + r] == tf32_of(w[r * COLUMNS + 3 * i], k);
    wt_matmul_destroy(matmul);
    unmake_bench(&b);
}

static void tf32_is_the_nearest(void **state)
{
    wt_device *device = device_of(state);
    const wt_device_info *info = wt_device_get_info(device);
    if (info->backend != WT_BACKEND_CUDA) skip();
    static const int rows[] = {136, 100, 60, 20};
    for (int k = 0; k < 4 * N_WITHOUT; k++) {
        const char *kernel;
        const int m = rows[k / N_WITHOUT], without = k % N_WITHOUT, all = m * 64;
        int n_alike[N_ROUNDINGS];
        look_at_rounding(device, m, without, &kernel, n_alike);
        print_message("%s, %d rows: of %d elements %d as cut off, %d as the nearest, %d with halves away from zero\n",
                      kernel, m, all, n_alike[CUT], n_alike[NEAREST_EVEN], n_alike[NEAREST_AWAY]);
        if (!strcmp(kernel, "library")) continue;
        const bool boxes = info->compute_major == 9 && info->compute_minor == 0 && without < WITHOUT_WGMMA;
        assert_string_equal(kernel, boxes ? "matmul_wgmma" : m > 128 ? "matmul_tiles" : "matmul_slices");
        assert_int_equal(n_alike[boxes ? NEAREST_EVEN : CUT], all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tf32_comes_only_when_asked_for),
        cmocka_unit_test(tf32_is_the_nearest),
    };
    int failed = cmocka_run_group_tests_name("matmul tf32, CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("matmul tf32, CUDA", tests, open_cuda, close_device);
}
