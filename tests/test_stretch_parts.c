// Stretches and shifts hold a few frames at once: how many changes no number, and the ends, one sample, silence and NaN
// are as they were of all at once.
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stretch.h>

enum { ALL = 1 << 20 }; // frames: more than there are

typedef enum input { VOICE, SILENCE, HOLE, INPUTS } input;

// A voice with clicks, near both ends too, that falls silent; silence; or the same voice with a NaN.
static float *make_input(input kind, int64_t n)
{
    float *pcm = floats((size_t)n);
    uint64_t seed = 5;
    for (int64_t i = 0; i < n; i++)
        pcm[i] = kind == SILENCE || (i > n / 2 && i < n / 2 + n / 8)
                     ? 0
                     : 0.4f * (float)sin(0.05 * (double)i + 2e-6 * (double)i * (double)i) + 0.02f * noise(&seed);
    const int64_t clicks[] = {3, n / 3, n / 3 + 300, n - 2};
    for (int k = 0; k < 4; k++)
        if (kind != SILENCE && clicks[k] >= 0 && clicks[k] < n) pcm[clicks[k]] += 0.8f;
    if (kind == HOLE) pcm[n / 4] = NAN;
    return pcm;
}

static wt_status enqueue_stretch(void *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    return wt_stretch_enqueue(plan, stream, in, in_offset, out, out_offset);
}

static wt_status enqueue_shift(void *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_pitch_shift_enqueue(plan, stream, in, in_offset, out, out_offset);
}

// n_out numbers of each signal; on the calling thread when `gpu` is NULL.
static float *stretch(wt_device *gpu, wt_stretch_config c, const float *pcm, int64_t *n_out)
{
    wt_stretch *plan;
    assert_ok(wt_stretch_create(gpu, &c, &plan));
    *n_out = wt_stretch_n_out(plan) * (c.n_signals ? c.n_signals : 1);
    const size_t n_in = (size_t)c.n_samples * (size_t)(c.n_signals ? c.n_signals : 1);
    float *out = floats((size_t)*n_out);
    if (gpu)
        run_on_stream(&(stream_call){gpu, enqueue_stretch, plan}, pcm, n_in, out, (size_t)*n_out);
    else
        RT_SECTION wt_stretch_run(plan, pcm, out);
    wt_stretch_destroy(plan);
    return out;
}

static float *shift(wt_device *gpu, wt_pitch_shift_config c, const float *pcm)
{
    wt_pitch_shift *plan;
    assert_ok(wt_pitch_shift_create(gpu, &c, &plan));
    const size_t n = (size_t)c.n_samples * (size_t)(c.n_signals ? c.n_signals : 1);
    float *out = floats(n);
    if (gpu)
        run_on_stream(&(stream_call){gpu, enqueue_shift, plan}, pcm, n, out, n);
    else
        RT_SECTION wt_pitch_shift_run(plan, pcm, out);
    wt_pitch_shift_destroy(plan);
    return out;
}

static const struct {
    double rate;
    int n_fft, hop;
    int64_t n;
} shapes[] = {{1.25, 2048, 512, 60011}, {0.6, 400, 100, 9001}, {2.7, 256, 100, 20001},
              {40, 256, 64, 90000},     {1.5, 2048, 512, 1},   {0.5, 2048, 512, 700},
              {1, 64, 80, 5000},        {0.3, 63, 5, 1501},    {3, 1024, 1024, 9999}};

enum { SHAPES = sizeof shapes / sizeof *shapes, FEW_SIZES = 6 }; // the first ones: each size is compiled for a GPU

static void any_number_of_frames_gives_the_same_bits(void **state)
{
    static const int counts[] = {0, 1, 3, 7, 33};
    (void)state;
    for (int k = 0; k < 4 * SHAPES; k++)
        for (input kind = VOICE; kind < INPUTS; kind++) {
            int64_t n_out, n_same;
            float *pcm = make_input(kind, shapes[k / 4].n);
            wt_stretch_config c = {.mode = (wt_stretch_mode)(k % 4),
                                   .rate = shapes[k / 4].rate,
                                   .n_fft = shapes[k / 4].n_fft,
                                   .hop = shapes[k / 4].hop,
                                   .n_samples = shapes[k / 4].n,
                                   .frames_at_once = ALL};
            float *want = stretch(NULL, c, pcm, &n_out);
            for (int i = 0; i < 5; i++) {
                c.frames_at_once = counts[i];
                float *got = stretch(NULL, c, pcm, &n_same);
                assert_int_equal(n_same, n_out);
                if (memcmp(want, got, (size_t)n_out * sizeof *got))
                    fail_msg("shape %d, mode %d, input %d, %d frames at once", k / 4, k % 4, (int)kind, counts[i]);
                free(got);
            }
            free(pcm), free(want);
        }
}

static void shifts_of_any_number_of_frames_are_the_same(void **state)
{
    static const struct {
        double steps;
        int n_fft;
        int64_t n;
    } cases[] = {{4, 0, 30011}, {-7.5, 400, 9001}, {12, 512, 1}, {-30, 256, 20001}, {0, 1023, 5000}};
    (void)state;
    for (int k = 0; k < 4 * 5; k++)
        for (int kept = 0; kept < 2; kept++) {
            const int64_t n = cases[k / 4].n;
            float *pcm = make_input(VOICE, n), *work = floats((size_t)n);
            wt_pitch_shift_config c = {.mode = (wt_stretch_mode)(k % 4),
                                       .n_steps = cases[k / 4].steps,
                                       .n_fft = cases[k / 4].n_fft,
                                       .n_samples = n,
                                       .keep_formants = kept,
                                       .frames_at_once = ALL};
            float *want = shift(NULL, c, pcm);
            c.frames_at_once = 5, c.work = work;
            float *got = shift(NULL, c, pcm);
            if (memcmp(want, got, (size_t)n * sizeof *got))
                fail_msg("case %d, mode %d, formants %d", k / 4, k % 4, kept);
            free(pcm), free(work), free(want), free(got);
        }
}

// Numbers within the bound of the peak; what is no number on one side is none on the other.
static void assert_alike(const float *want, const float *got, int64_t n, double bound, const char *what)
{
    float *a = floats((size_t)n), *b = floats((size_t)n);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(want[i]) != isnan(got[i]))
            fail_msg("%s: sample %lld is %g, want %g", what, (long long)i, got[i], want[i]);
        a[i] = isnan(want[i]) ? 0 : want[i], b[i] = isnan(want[i]) ? 0 : got[i];
    }
    assert_near_peak(a, b, (size_t)n, bound, what);
    free(a), free(b);
}

// The way back runs in the same pairs of frames in every tile; at a tile's end it divides by the windows' squares where
// it else multiplies: a last digit of 24 bits.
static void a_gpu_gives_the_same_from_parts(void **state)
{
    enum { SIGNALS = 2 };
    static const int counts[] = {1, 6, 40};
    (void)state;
    wt_device *gpu = gpu_device();
    for (int k = 0; k < 3 * FEW_SIZES; k++)
        for (input kind = VOICE; kind < INPUTS; kind++) {
            const int64_t n = shapes[k / 3].n;
            int64_t n_out, n_same;
            float *pcm = make_input(kind, n * SIGNALS); // the second signal is another
            wt_stretch_config c = {.mode = (wt_stretch_mode)(k % 3),
                                   .rate = shapes[k / 3].rate,
                                   .n_fft = shapes[k / 3].n_fft,
                                   .hop = shapes[k / 3].hop,
                                   .n_samples = n,
                                   .n_signals = SIGNALS};
            float *want = stretch(gpu, c, pcm, &n_out);
            for (int i = 0; i < 3; i++) {
                char what[96];
                c.frames_at_once = counts[i];
                float *got = stretch(gpu, c, pcm, &n_same);
                assert_int_equal(n_same, n_out);
                snprintf(what, sizeof what, "shape %d, mode %d, input %d, %d frames at once", k / 3, k % 3, (int)kind,
                         counts[i]);
                assert_alike(want, got, n_out, 2e-7, what);
                free(got);
            }
            free(pcm), free(want);
        }
    wt_device_close(gpu);
}

// n_fft of 401, 4099 and 10240: what no block holds.
static void a_gpu_gives_the_same_from_parts_of_long_frames(void **state)
{
    static const struct {
        int n_fft, hop;
        int64_t n;
    } long_frames[] = {{401, 100, 9001}, {4099, 1024, 40000}, {10240, 2560, 90000}};
    (void)state;
    wt_device *gpu = gpu_device();
    for (int k = 0; k < 9; k++) {
        int64_t n_out;
        wt_stretch_config c = {.mode = (wt_stretch_mode)(k % 3),
                               .rate = 1.3,
                               .n_fft = long_frames[k / 3].n_fft,
                               .hop = long_frames[k / 3].hop,
                               .n_samples = long_frames[k / 3].n};
        float *pcm = make_input(VOICE, c.n_samples), *want = stretch(gpu, c, pcm, &n_out);
        c.frames_at_once = 7;
        float *got = stretch(gpu, c, pcm, &n_out);
        assert_alike(want, got, n_out, 2e-7, "long frames");
        free(pcm), free(want), free(got);
    }
    wt_device_close(gpu);
}

// The vocoder magnifies a last digit of the signal with its envelope moved, which is the same here to the bit.
static void a_gpu_shifts_parts_as_the_whole(void **state)
{
    enum { SIGNALS = 2, N = 20011 };
    static const struct {
        double steps;
        int n_fft;
    } cases[] = {{4, 0}, {-7, 400}, {5, 1009}, {-12, 10240}};
    (void)state;
    wt_device *gpu = gpu_device();
    for (int k = 0; k < 4 * 3; k++)
        for (int kept = 0; kept < 2; kept++) {
            float *pcm = make_input(VOICE, N * SIGNALS);
            wt_pitch_shift_config c = {.mode = (wt_stretch_mode)(k % 3),
                                       .n_steps = cases[k / 3].steps,
                                       .n_fft = cases[k / 3].n_fft,
                                       .n_samples = N,
                                       .n_signals = SIGNALS,
                                       .keep_formants = kept};
            float *want = shift(gpu, c, pcm);
            c.frames_at_once = 9;
            float *got = shift(gpu, c, pcm);
            assert_alike(want, got, N * SIGNALS, 1e-6, kept ? "formants kept" : "pitch shift");
            free(pcm), free(want), free(got);
        }
    wt_device_close(gpu);
}

static void bad_parts_get_a_sentence(void **state)
{
    float work[9];
    wt_stretch *plan = NULL;
    wt_pitch_shift *shift_plan = NULL;
    wt_device *cpu = cpu_device();
    (void)state;
    assert_fails(wt_stretch_create(NULL, &(wt_stretch_config){.n_samples = 9, .frames_at_once = -1}, &plan),
                 WT_ERR_BAD_ARG, "stretch: -1 frames at once, want 0 or more");
    assert_fails(wt_pitch_shift_create(cpu, &(wt_pitch_shift_config){.n_samples = 9, .work = work}, &shift_plan),
                 WT_ERR_BAD_ARG, "pitch_shift: work of a plan with a device, want a plan of immediate calls");
    assert_true(!plan && !shift_plan);
    wt_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_frames_gives_the_same_bits),
        cmocka_unit_test(shifts_of_any_number_of_frames_are_the_same),
        cmocka_unit_test(a_gpu_gives_the_same_from_parts),
        cmocka_unit_test(a_gpu_gives_the_same_from_parts_of_long_frames),
        cmocka_unit_test(a_gpu_shifts_parts_as_the_whole),
        cmocka_unit_test(bad_parts_get_a_sentence),
    };
    return cmocka_run_group_tests_name("stretch_parts", tests, NULL, NULL);
}
