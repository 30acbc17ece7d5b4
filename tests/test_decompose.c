#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/decompose.h>

static float *copy_of(const float *x, size_t n)
{
    float *y = malloc(n * sizeof *y);
    assert_non_null(y);
    memcpy(y, x, n * sizeof *y);
    return y;
}

static void components_equal_scikit_learns(void **state)
{
    (void)state;
    int n_checked = 0;
    for (const golden_case *g = NULL; (g = golden_next("decompose", g)); n_checked++) {
        size_t shape[2], n, n_w, n_h;
        const float *v = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        const float *w_begin = golden_input(g, 1, &n_w), *h_begin = golden_input(g, 2, &n_h);
        float *w = copy_of(w_begin, n_w), *h = copy_of(h_begin, n_h);
        const int k = (int)(n_w / shape[0]), cd = !strcmp(golden_text(g, "solver", ""), "cd");
        const int kl = !strcmp(golden_text(g, "loss", ""), "kullback-leibler");
        wt_nmf *nmf;
        const wt_nmf_config config = {.rows = (int)shape[0],
                                      .columns = (int)shape[1],
                                      .n_components = k,
                                      .n_iter = golden_int(g, "n_iter", 0),
                                      .solver = cd   ? WT_NMF_CD
                                                : kl ? WT_NMF_MULTIPLICATIVE_KL
                                                     : WT_NMF_MULTIPLICATIVE};
        assert_ok(wt_nmf_create(NULL, &config, &nmf));
        wt_nmf_run(nmf, v, w, h);
        if (strstr(g->name, "_w"))
            golden_check(g, w, shape[0], (size_t)k);
        else
            golden_check(g, h, (size_t)k, shape[1]);
        wt_nmf_destroy(nmf);
        free(w), free(h);
    }
    assert_true(n_checked >= 6);
}

static void neighbours_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("nn_filter", g));) {
        size_t shape[2], n;
        const float *x = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        float *y = copy_of(x, n);
        assert_ok(wt_nn_filter(&(wt_nn_filter_config){.rows = (int)shape[0], .columns = (int)shape[1],
                                                      .k = golden_int(g, "k", 0), .width = golden_int(g, "width", 1),
                                                      .cosine = !strcmp(golden_text(g, "metric", ""), "cosine"),
                                                      .symmetric = golden_int(g, "sym", 0),
                                                      .median = !strcmp(golden_text(g, "aggregate", ""), "median")},
                               x, y));
        golden_check(g, y, shape[0], shape[1]);
        free(y);
    }
}

static wt_status enqueue_neighbours(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                    size_t out_offset)
{
    return wt_nn_filter_plan_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Signals alone, among others and twice; frames at equal distances, of which the earlier are nearer.
static void check_neighbours(wt_device *device)
{
    enum { SIGNALS = 2, ROWS = 5, COLUMNS = 301, AREA = ROWS * COLUMNS };
    static const wt_nn_filter_config shapes[] = {{.k = 0},
                                                 {.k = 7, .width = 5, .cosine = true},
                                                 {.k = 9, .symmetric = true, .median = true},
                                                 {.k = 10, .width = 140, .median = true},
                                                 {.k = 1000}};
    float *x = noise_floats(SIGNALS * AREA, 11), *want = floats(AREA), *got = floats(SIGNALS * AREA);
    float *alone = floats(AREA);
    for (int i = 0; i < AREA; i++) x[i] = roundf(2 * x[i]);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        wt_nn_filter_config c = shapes[k];
        c.rows = ROWS, c.columns = COLUMNS;
        wt_nn_filter_plan *plan, *one;
        assert_ok(wt_nn_filter_plan_create(device, &c, SIGNALS, &plan));
        assert_ok(wt_nn_filter_plan_create(device, &c, 1, &one));
        run_on_stream(&(stream_call){device, enqueue_neighbours, plan}, x, SIGNALS * AREA, got, SIGNALS * AREA);
        run_on_stream(&(stream_call){device, enqueue_neighbours, plan}, x, SIGNALS * AREA, got, SIGNALS * AREA);
        for (int s = 0; s < SIGNALS; s++) {
            run_on_stream(&(stream_call){device, enqueue_neighbours, one}, x + s * AREA, AREA, alone, AREA);
            assert_memory_equal(alone, got + s * AREA, AREA * sizeof *alone);
            assert_ok(wt_nn_filter(&c, x + s * AREA, want));
            assert_near_peak(want, got + s * AREA, AREA, 2e-6, "nn_filter");
        }
        wt_nn_filter_plan_destroy(plan), wt_nn_filter_plan_destroy(one);
    }
    free(x), free(want), free(got), free(alone);
    wt_device_close(device);
}

static void neighbours_of_batches_are_those_of_each_signal(void **state)
{
    (void)state;
    check_neighbours(cpu_device());
}

static void neighbours_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_neighbours(gpu_device());
}

static void silence_stays_and_is_no_nan(void **state)
{
    (void)state;
    for (int solver = 0; solver < 3; solver++) {
        float v[12] = {0}, w[6] = {1, 1, 1, 1, 1, 1}, h[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        wt_nmf *nmf;
        assert_ok(wt_nmf_create(NULL, &(wt_nmf_config){3, 4, 2, 20, (wt_nmf_solver)solver, 1}, &nmf));
        wt_nmf_run(nmf, v, w, h);
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++) assert_true(w[2 * r] * h[c] + w[2 * r + 1] * h[4 + c] == 0);
        wt_nmf_destroy(nmf);
    }
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_nmf *nmf = NULL;
    float x[9] = {0}, y[9];
    assert_fails(wt_nmf_create(NULL, &(wt_nmf_config){.rows = 0, .columns = 4}, &nmf), WT_ERR_BAD_ARG,
                 "nmf: matrix of 0 x 4, want 1..16777216 each");
    assert_fails(wt_nmf_create(NULL, &(wt_nmf_config){.rows = 3, .columns = 4}, &nmf), WT_ERR_BAD_ARG,
                 "nmf: 0 components, 200 iterations, want 1..65536, 1 or more");
    assert_null(nmf);
    assert_fails(wt_nn_filter(&(wt_nn_filter_config){.rows = 1, .columns = 9, .width = 4}, x, y), WT_ERR_LENGTH,
                 "nn_filter: 9 frames, want 11 or more with a width of 4");
    assert_fails(wt_nn_filter(&(wt_nn_filter_config){.rows = 1, .columns = 9, .width = -1}, x, y), WT_ERR_BAD_ARG,
                 "nn_filter: width -1, want 1..32768");
    wt_nmf_destroy(NULL);
}

// Upload v, w and h, factorise, give w and h back.
static void factorise(wt_device *device, const wt_nmf_config *c, const float *v, float *w, float *h)
{
    const size_t n_v = (size_t)(c->n_signals * c->rows * c->columns) * sizeof(float);
    const size_t n_w = (size_t)(c->n_signals * c->rows * c->n_components) * sizeof(float);
    const size_t n_h = (size_t)(c->n_signals * c->columns * c->n_components) * sizeof(float);
    wt_nmf *nmf;
    wt_stream *stream;
    wt_buffer *b[3];
    assert_ok(wt_nmf_create(device, c, &nmf));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n_v, &b[0]));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n_w, &b[1]));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n_h, &b[2]));
    assert_ok(wt_stream_upload(stream, b[0], 0, v, n_v));
    assert_ok(wt_stream_upload(stream, b[1], 0, w, n_w));
    assert_ok(wt_stream_upload(stream, b[2], 0, h, n_h));
    assert_ok(wt_nmf_enqueue(nmf, stream, b[0], 0, b[1], 0, b[2], 0));
    assert_ok(wt_stream_download(stream, w, b[1], 0, n_w));
    assert_ok(wt_stream_download(stream, h, b[2], 0, n_h));
    assert_ok(wt_stream_synchronize(stream));
    for (int i = 0; i < 3; i++) wt_buffer_destroy(b[i]);
    wt_stream_destroy(stream);
    wt_nmf_destroy(nmf);
}

static float *positive(size_t count, uint64_t seed)
{
    float *x = noise_floats(count, seed);
    for (size_t i = 0; i < count; i++) x[i] = fabsf(x[i]) + 0.01f;
    return x;
}

static const wt_nmf_config few[] = {
    {20, 33, 4, 6, WT_NMF_CD, 2},   {40, 70, 7, 4, WT_NMF_MULTIPLICATIVE, 1},
    {17, 300, 40, 1, WT_NMF_CD, 1}, {33, 290, 5, 4, WT_NMF_MULTIPLICATIVE_KL, 3},
};

// More components, or signals, than a thread block, or a grid, holds.
static const wt_nmf_config many[] = {
    {30, 41, 256, 2, WT_NMF_CD, 1},
    {30, 41, 257, 3, WT_NMF_CD, 2},
    {41, 30, 260, 3, WT_NMF_MULTIPLICATIVE, 2},
    {33, 50, 300, 3, WT_NMF_MULTIPLICATIVE_KL, 2},
    {20, 17, 1000, 2, WT_NMF_MULTIPLICATIVE, 1},
    {2, 3, 1, 2, WT_NMF_CD, 65600},
};

static void compare_devices(wt_device *device, const wt_nmf_config *cases, int n_cases, double bound)
{
    for (int i = 0; i < n_cases; i++) {
        const wt_nmf_config *c = &cases[i];
        const size_t n_v = (size_t)(c->n_signals * c->rows * c->columns);
        const size_t n_w = (size_t)(c->n_signals * c->rows * c->n_components);
        const size_t n_h = (size_t)(c->n_signals * c->columns * c->n_components);
        float *v = positive(n_v, 1), *w = positive(n_w, 2), *h = positive(n_h, 3);
        float *got_w = copy_of(w, n_w), *got_h = copy_of(h, n_h);
        wt_nmf *nmf;
        assert_ok(wt_nmf_create(NULL, c, &nmf));
        wt_nmf_run(nmf, v, w, h);
        wt_nmf_destroy(nmf);
        factorise(device, c, v, got_w, got_h);
        assert_near_peak(w, got_w, n_w, bound, "nmf: spectra");
        assert_near_peak(h, got_h, n_h, bound, "nmf: activations");
        free(v), free(w), free(h), free(got_w), free(got_h);
    }
}

static void a_stream_gives_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_devices(cpu, few, 4, 0);
    wt_device_close(cpu);
}

// Both sum in double; what is left is the rounding to float.
static void a_gpu_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_devices(gpu, few, 4, 2e-6);
    compare_devices(gpu, many, 6, 2e-6);
    wt_device_close(gpu);
}

// Activations are updated first, each by its own column: 600 of them at once, more than a block has, are those of 100
// at a time.
static void columns_do_not_depend_on_those_beside_them(void **state)
{
    enum { ROWS = 37, COLUMNS = 600, PART = 100, K = 3 };
    (void)state;
    float *v = positive(ROWS * COLUMNS, 1), *start = positive(COLUMNS * K, 3);
    for (int solver = WT_NMF_CD; solver <= WT_NMF_MULTIPLICATIVE_KL; solver++) {
        wt_nmf_config c = {
            .rows = ROWS, .columns = COLUMNS, .n_components = K, .n_iter = 1, .solver = (wt_nmf_solver)solver};
        float *w = positive(ROWS * K, 2), *h = copy_of(start, COLUMNS * K);
        wt_nmf *nmf;
        assert_ok(wt_nmf_create(NULL, &c, &nmf));
        wt_nmf_run(nmf, v, w, h);
        wt_nmf_destroy(nmf);
        free(w);
        c.columns = PART;
        assert_ok(wt_nmf_create(NULL, &c, &nmf));
        for (int first = 0; first < COLUMNS; first += PART) {
            float some[ROWS * PART], part[K * PART];
            for (int i = 0; i < ROWS * PART; i++) some[i] = v[i / PART * COLUMNS + first + i % PART];
            for (int i = 0; i < K * PART; i++) part[i] = start[i / PART * COLUMNS + first + i % PART];
            w = positive(ROWS * K, 2);
            wt_nmf_run(nmf, some, w, part);
            free(w);
            for (int i = 0; i < K * PART; i++)
                if (part[i] != h[i / PART * COLUMNS + first + i % PART])
                    fail_msg("solver %d, component %d, column %d", solver, i / PART, first + i % PART);
        }
        wt_nmf_destroy(nmf);
        free(h);
    }
    free(v), free(start);
}

static wt_status create_nmf(void *user)
{
    return wt_nmf_create(NULL, &(wt_nmf_config){.rows = 3, .columns = 4, .n_components = 2}, (wt_nmf **)user);
}

static void destroy_nmf(void *user)
{
    wt_nmf_destroy(*(wt_nmf **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_nmf *nmf;
    assert_true(assert_survives_failing_alloc(create_nmf, destroy_nmf, &nmf) >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_equal_scikit_learns),
        cmocka_unit_test(neighbours_equal_librosas),
        cmocka_unit_test(neighbours_of_batches_are_those_of_each_signal),
        cmocka_unit_test(neighbours_on_a_gpu_are_the_cpus),
        cmocka_unit_test(a_stream_gives_the_same_bits),
        cmocka_unit_test(a_gpu_gives_what_the_cpu_gives),
        cmocka_unit_test(columns_do_not_depend_on_those_beside_them),
        cmocka_unit_test(silence_stays_and_is_no_nan),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("decompose", tests, NULL, NULL);
}
