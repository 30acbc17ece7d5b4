#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE 48000.0
enum { SECOND = 48000, NOTES = 84, CLASSES = 12, ALL = NOTES + CLASSES };

static float x[2 * SECOND], y[2 * SECOND];

static double note_hz(double note) { return 440 * exp2((note - 45) / 12); } // note 0 is C1

static void levels_of(int n_frames, float values[ALL])
{
    wt_chain *chain = node_chain("cqt", NULL, 0, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    process_blocks(chain, x, y, n_frames, 64, n_frames);
    assert_memory_equal(x, y, sizeof(float) * (size_t)n_frames);
    assert_int_equal(wt_chain_readings(chain, 0, values, ALL), ALL);
    wt_chain_destroy(chain);
}

// What four poles let through beside their centre: (1 + (d / b)^2)^-4 of power, b the width of one of them.
static double response_db(double note, double hz)
{
    const double centre = note_hz(note), width = centre * (exp2(1 / 24.0) - exp2(-1 / 24.0)) / 2 / sqrt(exp2(0.25) - 1);
    return -40 * log10(1 + pow((hz - centre) / width, 2));
}

static void a_sine_shows_as_its_note(void **state)
{
    (void)state;
    float values[ALL];
    double worst = 0;
    for (int note = 0; note < NOTES; note += 7) {
        sine_signal(x, SECOND, note_hz(note), RATE, 0.5, 0.3);
        levels_of(SECOND, values);
        assert_true(fabsf(values[note] - (to_db(0.5f) - 3.0103f)) < 0.1f); // at 33 Hz 100 ms are a time constant
        for (int other = 0; other < NOTES; other++)
            if (abs(other - note) <= 4 && other != note) {
                const double want = to_db(0.5f) - 3.0103 + response_db(other, note_hz(note));
                worst = fmax(worst, fabs(values[other] - want));
            } else if (abs(other - note) >= 12 && note_hz(note) > 60) {
                assert_true(values[other] < -70);
            }
        assert_true(values[NOTES + note % 12] >= values[note] && values[NOTES + note % 12] < values[note] + 0.1f);
        assert_true(values[NOTES + (note + 6) % 12] < -35);
    }
    print_message("neighbours within %.2f dB of the formula\n", worst);
    assert_true(worst < 0.1); // poles bend where notes are high, and the mirror image adds where they are low
}

static void a_pitch_class_is_the_sum_of_its_notes(void **state)
{
    (void)state;
    float values[ALL], *noise = noise_signal(SECOND, 6);
    memcpy(x, noise, sizeof(float) * SECOND);
    levels_of(SECOND, values);
    for (int k = 0; k < CLASSES; k++) {
        double sum = 0;
        for (int note = k; note < NOTES; note += 12) sum += pow(10, values[note] / 10);
        assert_true(fabs(values[NOTES + k] - 10 * log10(sum)) < 0.001);
    }
    free(noise);
}

static void silence_and_what_is_not_a_number_leave_no_trace(void **state)
{
    (void)state;
    float values[ALL];
    memset(x, 0, sizeof x);
    levels_of(SECOND, values);
    for (int r = 0; r < ALL; r++) assert_true(values[r] == -120);
    sine_signal(x, 2 * SECOND, 440, RATE, 0.5, 0);
    x[SECOND] = NAN;
    wt_chain *chain = node_chain("cqt", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, 2 * SECOND, 64, 2 * SECOND);
    assert_int_equal(wt_chain_faults(chain), 1);
    wt_chain_readings(chain, 0, values, ALL);
    assert_true(fabsf(values[45] - (to_db(0.5f) - 3.0103f)) < 0.01f);
    wt_chain_destroy(chain);
}

enum { STOP = 4096, STOPS = 5 };

/// The next STOP frames in blocks of `size`, on the chain's device.
static void hear(wt_chain *chain, wt_device *gpu, const float *in, int size)
{
    if (!gpu) {
        process_blocks(chain, in, y, STOP, size, STOP);
        return;
    }
    wt_buffer *pcm;
    wt_stream *stream;
    assert_ok(wt_buffer_create(gpu, WT_MEMORY_DEVICE, STOP * sizeof *in, &pcm));
    assert_ok(wt_stream_create(gpu, NULL, &stream));
    assert_ok(wt_stream_upload(stream, pcm, 0, in, STOP * sizeof *in));
    for (int at = 0; at < STOP; at += size) {
        const size_t offset = sizeof *in * (size_t)at;
        const wt_chain_job job = {.in = pcm, .in_offset = offset, .in_stride = STOP, .out = pcm, .out_offset = offset,
                                  .out_stride = STOP, .n_frames = STOP - at < size ? STOP - at : size};
        assert_ok(wt_chain_enqueue(chain, stream, &job, 1));
    }
    assert_ok(wt_stream_synchronize(stream));
    wt_buffer_destroy(pcm), wt_stream_destroy(stream);
}

/// Levels after every STOP frames, to the bit, whatever the blocks: the sound passes unchanged and shows nothing.
static void check_readings(wt_device *gpu, const int *sizes, int n_sizes)
{
    static float want[STOPS][ALL];
    const wt_setting settings[] = {{"hop", NULL, 100}};
    wt_node_desc node;
    const wt_chain_desc desc = node_desc(&node, "cqt", settings, 1);
    const wt_chain_config config = {.rate_hz = RATE, .channels = 1, .device = gpu};
    float *noise = noise_signal(STOPS * STOP, 8);
    for (int k = 0; k < n_sizes; k++) {
        wt_chain *chain;
        assert_ok(wt_chain_create(&config, &desc, &chain));
        for (int stop = 0; stop < STOPS; stop++) {
            float got[ALL];
            hear(chain, gpu, noise + stop * STOP, sizes[k]);
            assert_int_equal(wt_chain_readings(chain, 0, k ? got : want[stop], ALL), ALL);
            if (k && memcmp(got, want[stop], sizeof got)) fail_msg("blocks of %d frames show other levels", sizes[k]);
        }
        wt_chain_destroy(chain);
    }
    for (int r = 0; r < ALL; r++) assert_true(want[0][r] != want[1][r]);
    free(noise);
}

static void blocks_change_no_reading(void **state)
{
    (void)state;
    check_readings(NULL, (const int[]){STOP, 1, 31, 64, 253, 256, 1000}, 7);
}

static void blocks_change_no_reading_of_a_gpu(void **state)
{
    (void)state;
    wt_device *gpu = test_gpu();
    if (!gpu) skip();
    check_readings(gpu, (const int[]){64, 31, 253, 256, 1000}, 5);
    wt_device_close(gpu);
}

static const wt_setting busy[] = {{"a4_hz", NULL, 432}, {"hop", NULL, 100}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("cqt", busy, 2);
}

// A pole 3e-4 from the circle gathers 3000 roundings a stage, in four stages.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("cqt", busy, 2, -1, 0, 200);
    check_node_cuda_readings("cqt", busy, 2, 0.02f);
    check_node_cuda_readings("cqt", NULL, 0, 0.02f);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting low[] = {{"a4_hz", NULL, 300}};
    check_refusal("cqt", low, 1, WT_ERR_BAD_ARG, "chain: cqt: a4_hz is 300, want 400..480");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sine_shows_as_its_note),
        cmocka_unit_test(a_pitch_class_is_the_sum_of_its_notes),
        cmocka_unit_test(silence_and_what_is_not_a_number_leave_no_trace),
        cmocka_unit_test(blocks_change_no_reading),
        cmocka_unit_test(blocks_change_no_reading_of_a_gpu),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("cqt node", tests, NULL, NULL);
}
