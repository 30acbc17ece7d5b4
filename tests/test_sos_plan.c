// Second-order sections that go on from block to block on a stream of a device.
#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <warptone/filter.h>

#include <math.h>
#include <stdlib.h>

enum { SIGNALS = 3, CHANNELS = 2, ROWS = SIGNALS * CHANNELS, N = 9001 };

// Of a channel 0.5 + c, as every row's own.
static wt_status reset_to_levels(void *op, wt_stream *stream)
{
    float levels[ROWS];
    wt_buffer *level;
    for (int row = 0; row < ROWS; row++) levels[row] = 0.5f + (float)row;
    assert_ok(wt_buffer_create(wt_stream_device(stream), WT_MEMORY_DEVICE, sizeof levels, &level));
    assert_ok(wt_stream_upload(stream, level, 0, levels, sizeof levels));
    wt_status status = wt_sos_plan_reset_to(op, stream, level, 0);
    assert_ok(wt_stream_synchronize(stream));
    wt_buffer_destroy(level);
    return status;
}

static wt_status reset_plan(void *op, wt_stream *stream) { return wt_sos_plan_reset(op, stream); }

// In place.
static wt_status enqueue_plan(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    wt_buffer *both = (wt_buffer *)in;
    wt_status status = wt_sos_plan_enqueue(op, stream, both, 0, n, both, 0);
    return status ? status : wt_stream_copy(stream, out, 0, both, 0, ROWS * (size_t)n * sizeof(float));
}

typedef struct plan_case {
    wt_sos_design_config design;
    bool to_levels;
} plan_case;

// A low-pass that rings long, and 12 sections.
static const plan_case cases[] = {
    {{.order = 4, .rate_hz = 48000, .edge_hz = {30}}, true},
    {{.family = WT_ELLIPTIC, .band = WT_BAND_PASS, .order = 12, .rate_hz = 48000, .edge_hz = {2000, 9000}}, false}};

static int sections_of(const plan_case *k, double *sos)
{
    int n_sections;
    assert_ok(wt_sos_design(&k->design, sos, &n_sections));
    for (int i = 0; i < 6; i++) sos[i] *= 2; // a0 is not 1
    return n_sections;
}

// What wt_sos makes of each signal.
static void filter_alone(const wt_sos_config *config, bool to_levels, const float *x, float *out)
{
    wt_sos *one = NULL;
    assert_ok(wt_sos_create(config, &one));
    for (int s = 0; s < SIGNALS; s++) {
        const float level[CHANNELS] = {0.5f + (float)(s * CHANNELS), 1.5f + (float)(s * CHANNELS)};
        const float *in = x + s * CHANNELS * N;
        float *to = out + s * CHANNELS * N;
        wt_sos_reset(one);
        if (to_levels) wt_sos_reset_to(one, level);
        wt_sos_process(one, (const float *[]){in, in + N}, (float *[]){to, to + N}, N);
    }
    wt_sos_destroy(one);
}

static void check_cuts(wt_device *device, double bound)
{
    // 2048 frames go at a time on a GPU, and pieces of 256 begin where they begin whatever the blocks
    static const int cuts[][6] = {{1, 63, 64, 65, 253, 2999}, {256, 2048, 255, 257, 4096, 1}, {97, 5, 31, 300, 1, 600}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double sos[6 * WT_SOS_MAX_SECTIONS];
        const wt_sos_config config = {sos, sections_of(&cases[k], sos), CHANNELS};
        wt_sos_plan *plan = NULL;
        float *x = noise_floats(ROWS * N, 8), *want = floats(ROWS * N), *got = floats(ROWS * N),
              *cut = floats(ROWS * N);
        filter_alone(&config, cases[k].to_levels, x, want);
        assert_ok(wt_sos_plan_create(device, &config, SIGNALS, &plan));
        const block_op op = {device, plan, ROWS, ROWS, cases[k].to_levels ? reset_to_levels : reset_plan, enqueue_plan};
        run_in_blocks(&op, x, N, (int[]){N}, 1, got);
        assert_near_peak(want, got, ROWS * N, bound, k ? "elliptic" : "butterworth");
        for (int i = 0; i < 3; i++) {
            run_in_blocks(&op, x, N, cuts[i], 6, cut);
            assert_memory_equal(got, cut, ROWS * N * sizeof *got);
        }
        wt_sos_plan_destroy(plan);
        free(x), free(want), free(got), free(cut);
    }
}

static wt_status enqueue_one(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_sos_plan_enqueue(op, stream, in, 0, n, out, 0);
}

static void check_alone(wt_device *device)
{
    double sos[6 * WT_SOS_MAX_SECTIONS];
    const wt_sos_config config = {sos, sections_of(&cases[1], sos), CHANNELS};
    float *x = noise_floats(ROWS * N, 8), *all = floats(ROWS * N), *one = floats(CHANNELS * N);
    wt_sos_plan *plan;
    assert_ok(wt_sos_plan_create(device, &config, SIGNALS, &plan));
    run_in_blocks(&(block_op){device, plan, ROWS, ROWS, reset_plan, enqueue_one}, x, N, (int[]){1000}, 1, all);
    wt_sos_plan_destroy(plan);
    assert_ok(wt_sos_plan_create(device, &config, 1, &plan));
    const block_op op = {device, plan, CHANNELS, CHANNELS, reset_plan, enqueue_one};
    run_in_blocks(&op, x + CHANNELS * N, N, (int[]){777}, 1, one);
    assert_memory_equal(all + CHANNELS * N, one, CHANNELS * N * sizeof *one);
    wt_sos_plan_destroy(plan);
    free(x), free(all), free(one);
}

// A NaN and an infinity are gone behind the piece that holds them, 64 frames on a CPU and 256 on a GPU, in every cut,
// and in other rows they never were.
static void check_bad_samples(wt_device *device)
{
    double sos[6 * WT_SOS_MAX_SECTIONS];
    const wt_sos_config config = {sos, sections_of(&cases[1], sos), CHANNELS};
    float *x = noise_floats(ROWS * N, 8), *clean = floats(ROWS * N), *got = floats(ROWS * N), *cut = floats(ROWS * N);
    wt_sos_plan *plan;
    assert_ok(wt_sos_plan_create(device, &config, SIGNALS, &plan));
    const block_op op = {device, plan, ROWS, ROWS, reset_plan, enqueue_plan};
    run_in_blocks(&op, x, N, (int[]){N}, 1, clean);
    x[1000] = NAN, x[N + 5000] = INFINITY;
    run_in_blocks(&op, x, N, (int[]){N}, 1, got);
    run_in_blocks(&op, x, N, (int[]){100}, 1, cut);
    assert_memory_equal(got, cut, ROWS * N * sizeof *got);
    for (int n = 0; n < 2 * N; n++) {
        const int first = n < N ? 1000 : N + 5000, behind = n < N ? 1024 : N + 5120;
        if (n >= first && n < behind) continue;
        if (!isfinite(got[n])) fail_msg("row %d, frame %d: %g", n / N, n % N, (double)got[n]);
    }
    assert_memory_equal(clean, got, 1000 * sizeof *got);
    assert_memory_equal(clean + 2 * N, got + 2 * N, (ROWS - 2) * N * sizeof *got);
    wt_sos_plan_destroy(plan);
    free(x), free(clean), free(got), free(cut);
}

static void check_bad_sizes(wt_device *device)
{
    const double sos[6] = {1, 0, 0, 1, 0, 0}, wrong[6] = {1, 0, 0, 0, 0, 0};
    wt_sos_plan *plan = NULL;
    assert_fails(wt_sos_plan_create(NULL, &(wt_sos_config){sos, 1, 1}, 1, &plan), WT_ERR_BAD_ARG,
                 "sos: a plan without a device");
    assert_fails(wt_sos_plan_create(device, &(wt_sos_config){sos, 1, 2}, 0, &plan), WT_ERR_BAD_ARG,
                 "sos: 0 signals, want 1..1073741823");
    assert_fails(wt_sos_plan_create(device, &(wt_sos_config){sos, 1, 1025}, 1, &plan), WT_ERR_BAD_ARG,
                 "sos: 1025 channels, want 1..1024");
    assert_fails(wt_sos_plan_create(device, &(wt_sos_config){wrong, 1, 1}, 1, &plan), WT_ERR_BAD_ARG,
                 "sos: coefficient 3 of section 0 is 0, want a finite number but 0");
    assert_null(plan);
    wt_buffer *some;
    wt_stream *stream;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 64, &some));
    assert_ok(wt_sos_plan_create(device, &(wt_sos_config){sos, 1, 2}, 1, &plan));
    assert_fails(wt_sos_plan_enqueue(plan, stream, some, 0, 0, some, 0), WT_ERR_BAD_ARG,
                 "sos: a block of 0 frames, want 1 or more");
    assert_int_equal(wt_sos_plan_enqueue(plan, stream, some, 0, 9, some, 0), WT_ERR_BAD_ARG);
    wt_sos_plan_destroy(plan), wt_buffer_destroy(some), wt_stream_destroy(stream);
}

static void check(wt_device *device, double bound)
{
    check_cuts(device, bound);
    check_alone(device);
    check_bad_samples(device);
    check_bad_sizes(device);
    wt_device_close(device);
}

static void plans_on_a_cpu_are_each_signals(void **state)
{
    (void)state;
    check(cpu_device(), 0);
}

static void plans_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check(gpu_device(), 2e-6);
}

// Pre- and de-emphasis as sections of a plan are wt_preemphasis and wt_deemphasis with a state.
static void emphasis_is_a_section(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    for (int back = 0; back < 2; back++) {
        const double sos[2][6] = {{1, -0.97, 0, 1, 0, 0}, {1, 0, 0, 1, -0.97, 0}};
        wt_sos_plan *plan;
        float *x = noise_floats(N, 8), *want = floats(N), *got = floats(N);
        double past = 0;
        (back ? wt_deemphasis : wt_preemphasis)(x, want, N, 0.97, &past);
        assert_ok(wt_sos_plan_create(device, &(wt_sos_config){sos[back], 1, 1}, 1, &plan));
        run_in_blocks(&(block_op){device, plan, 1, 1, reset_plan, enqueue_one}, x, N, (int[]){100}, 1, got);
        assert_near_peak(want, got, N, 1.2e-7, "emphasis");
        wt_sos_plan_destroy(plan);
        free(x), free(want), free(got);
    }
    wt_device_close(device);
}

typedef struct made_plan {
    wt_device *device;
    wt_sos_plan *plan;
} made_plan;

static wt_status create_plan(void *user)
{
    static const double sos[6] = {1, 0, 0, 1, 0, 0};
    made_plan *m = user;
    return wt_sos_plan_create(m->device, &(wt_sos_config){sos, 1, 2}, 3, &m->plan);
}

static void destroy_plan(void *user) { wt_sos_plan_destroy(((made_plan *)user)->plan); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    made_plan m = {.device = cpu_device()};
    assert_true(assert_survives_failing_alloc(create_plan, destroy_plan, &m) >= 5);
    wt_device_close(m.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_on_a_cpu_are_each_signals),
        cmocka_unit_test(emphasis_is_a_section),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(plans_on_a_gpu_are_the_cpus),
    };
    return cmocka_run_group_tests_name("sections from block to block", tests, NULL, NULL);
}
