#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <warptone/audio_file.h>
#include <warptone/echo.h>
#include <warptone/overlap_save.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 16000, ROOM = 4096 }; // 256 ms

static wt_echo *echo_of(const wt_echo_config *config)
{
    wt_echo *echo = NULL;
    assert_ok(wt_echo_create(config, &echo));
    return echo;
}

static double power_db(const float *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)x[k] * x[k];
    return 10 * log10(sum / n + 1e-30);
}

static double second_db(const float *x, int s) { return power_db(x + s * RATE, RATE); }

// A room after the image of late sound: 5 ms of way, then noise that falls by 60 dB in 256 ms, of gain -6 dB in all.
static void make_room(float *room, uint64_t seed)
{
    double energy = 0;
    for (int k = 0; k < ROOM; k++) {
        room[k] = k < 80 ? 0 : noise(&seed) * (float)pow(10, -3.0 * k / ROOM);
        energy += (double)room[k] * room[k];
    }
    for (int k = 0; k < ROOM; k++) room[k] *= (float)(0.5 / sqrt(energy));
}

// What a microphone hears of `playback` [n], with noise of its own 60 dB below full scale; caller frees with free().
static float *heard(const float *playback, int n, const float *room)
{
    float *mic = malloc(sizeof *mic * ((size_t)n + ROOM));
    uint64_t seed = 77;
    assert_ok(wt_fft_convolve(playback, n, room, ROOM, mic));
    for (int k = 0; k < n; k++) mic[k] += 0.00173f * noise(&seed);
    return mic;
}

static wt_audio speech(const char *relative)
{
    wt_audio audio;
    if (!shared_data(relative)) {
        printf("skipped: no shared data\n");
        skip();
    }
    assert_ok(wt_audio_load(shared_data(relative), RATE, &audio));
    return audio;
}

static void noise_echo_falls_by_25_db_and_a_changed_room_is_learnt(void **state)
{
    (void)state;
    enum { N = 16 * RATE, CHANGE = 8 * RATE };
    float *playback = malloc(sizeof *playback * N), *out = malloc(sizeof *out * N), room[ROOM];
    uint64_t seed = 1;
    for (int n = 0; n < N; n++) playback[n] = 0.3f * noise(&seed);
    make_room(room, 5);
    float *mic = heard(playback, N, room);
    make_room(room, 6);
    float *after = heard(playback, N, room);
    memcpy(mic + CHANGE, after + CHANGE, sizeof *mic * (N - CHANGE));
    wt_echo *echo = echo_of(&(wt_echo_config){.rate_hz = RATE});
    const int latency = wt_echo_latency_frames(echo);
    assert_int_equal(latency, 160);
    wt_echo_process(echo, (const float *[]){mic}, playback, (float *[]){out}, N);
    for (int s = 0; s < 15; s++) { // the microphone's own noise lies 39 dB below the echo
        const double down_db = second_db(mic, s) - second_db(out + latency, s);
        const double want_db = s < 2 || s == 8 ? -1 : s == 9 ? 18 : s == 2 || s == 10 ? 30 : 34;
        if (!(down_db >= want_db)) fail_msg("second %d: echo %.1f dB down, want %.0f", s, down_db, want_db);
    }
    wt_echo_destroy(echo);
    free(playback), free(out), free(mic), free(after);
}

static void speech_echo_falls_and_the_near_end_is_kept(void **state)
{
    (void)state;
    wt_audio far_end = speech("audio/speech/jfk.wav"), near_end = speech("audio/speech/1089-134686-0000.flac");
    const int turn = (int)far_end.n_frames, n_frames = 2 * turn; // the far end speaks twice, the second time both do
    float *playback = malloc(sizeof *playback * (size_t)n_frames), *out = malloc(sizeof *out * (size_t)n_frames);
    float room[ROOM];
    assert_true(near_end.n_frames >= turn - RATE);
    memcpy(playback, far_end.samples, sizeof *playback * (size_t)turn);
    memcpy(playback + turn, far_end.samples, sizeof *playback * (size_t)turn);
    make_room(room, 7);
    float *mic = heard(playback, n_frames, room);
    const double near_db = power_db(near_end.samples, turn - RATE), echo_db = power_db(mic + turn, turn - RATE);
    const float gain = (float)pow(10, (echo_db - near_db) / 20); // as loud as the echo
    for (int n = 0; n < turn - RATE; n++) near_end.samples[n] *= gain, mic[turn + n] += near_end.samples[n];
    wt_echo *echo = echo_of(&(wt_echo_config){.rate_hz = RATE});
    const int latency = wt_echo_latency_frames(echo);
    wt_echo_process(echo, (const float *[]){mic}, playback, (float *[]){out}, n_frames);
    for (int s = 0; s < 11; s++) { // never louder; 25 dB after six seconds, two of which the speaker paused
        const double down_db = second_db(mic, s) - second_db(out + latency, s), want_db = s < 6 ? 0 : 25;
        if (!(down_db >= want_db)) fail_msg("second %d: echo %.1f dB down, want %.0f", s, down_db, want_db);
    }
    // As loud as each other, so 0 dB before; 21.5 dB measured, of which the room learnt so far is the limit.
    assert_snr_db(near_end.samples, out + turn + latency, (size_t)(turn - RATE), 20);
    const int last = n_frames - RATE; // the near end has just stopped: the filter has not been led astray
    assert_true(power_db(mic + last, RATE - latency) - power_db(out + last + latency, RATE - latency) > 20);
    wt_echo_destroy(echo);
    free(playback), free(out), free(mic);
    wt_audio_free(&far_end), wt_audio_free(&near_end);
}

static void silent_playback_passes_the_microphone(void **state)
{
    (void)state;
    enum { N = 2 * RATE };
    static float playback[N], x[N], y[N];
    uint64_t seed = 3;
    for (int n = 0; n < N; n++) x[n] = noise(&seed), playback[n] = n < RATE / 2 ? noise(&seed) : 0;
    wt_echo *echo = echo_of(&(wt_echo_config){.rate_hz = RATE});
    wt_echo_process(echo, (const float *[]){x}, playback, (float *[]){y}, N);
    const int latency = wt_echo_latency_frames(echo), from = RATE; // the tail has left the filter by then
    assert_snr_db(x + from, y + from + latency, (size_t)(N - from - latency), 120); // the sums of zero are zero
    wt_echo_destroy(echo);
}

static void bad_samples_are_left_behind(void **state)
{
    (void)state;
    enum { N = 3 * RATE };
    static float playback[N], x[N], y[N];
    uint64_t seed = 4;
    for (int n = 0; n < N; n++) playback[n] = 0.3f * noise(&seed), x[n] = n ? 0.5f * playback[n - 1] : 0;
    x[1000] = NAN, x[1001] = INFINITY, playback[2000] = NAN, playback[3000] = -INFINITY;
    wt_echo *echo = echo_of(&(wt_echo_config){.rate_hz = RATE, .tail_ms = 32});
    wt_echo_process(echo, (const float *[]){x}, playback, (float *[]){y}, N);
    for (int n = 0; n < N; n++) assert_true(isfinite(y[n]));
    // 46 dB measured, without any noise: what a filter that always reckons with a change of the room leaves.
    assert_true(second_db(x, 1) - second_db(y + wt_echo_latency_frames(echo), 1) > 40);
    wt_echo_destroy(echo);
}

static void blocks_and_neighbours_do_not_matter(void **state)
{
    (void)state;
    enum { N = 10000 };
    static float a[N], b[N], playback[N], whole[2][N], parts[2][N], alone[N];
    const int sizes[] = {1, 63, 64, 65, 253, 1000};
    uint64_t seed = 5;
    for (int n = 0; n < N; n++) {
        playback[n] = noise(&seed);
        a[n] = n > 99 ? 0.5f * playback[n - 99] + 0.01f * noise(&seed) : 0;
        b[n] = n > 500 ? 0.2f * playback[n - 500] : 0;
    }
    wt_echo *echo = echo_of(&(wt_echo_config){.channels = 2, .tail_ms = 50});
    wt_echo *one = echo_of(&(wt_echo_config){.tail_ms = 50});
    wt_echo_process(echo, (const float *[]){a, b}, playback, (float *[]){whole[0], whole[1]}, N);
    wt_echo_process(one, (const float *[]){b}, playback, (float *[]){alone}, N);
    wt_echo_reset(echo);
    memcpy(parts[0], a, sizeof a), memcpy(parts[1], b, sizeof b);
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 6] < N - at ? sizes[turn % 6] : N - at;
        RT_SECTION
        {
            wt_echo_process(echo, (const float *[]){parts[0] + at, parts[1] + at}, playback + at,
                            (float *[]){parts[0] + at, parts[1] + at}, n);
        }
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    assert_memory_equal(whole[1], alone, sizeof alone);
    wt_echo_destroy(echo), wt_echo_destroy(one);
}

static wt_status create_echo(void *user) { return wt_echo_create(&(wt_echo_config){0}, user); }

static void destroy_echo(void *user) { wt_echo_destroy(*(wt_echo **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_echo *echo = NULL;
    assert_true(assert_survives_failing_alloc(create_echo, destroy_echo, &echo) >= 4);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    wt_echo *echo = NULL;
    assert_fails(wt_echo_create(&(wt_echo_config){.rate_hz = 1}, &echo), WT_ERR_BAD_ARG,
                 "echo: rate 1 Hz, want 8000..192000");
    assert_fails(wt_echo_create(&(wt_echo_config){.channels = 65}, &echo), WT_ERR_BAD_ARG,
                 "echo: 65 channels, want 1..64");
    assert_fails(wt_echo_create(&(wt_echo_config){.tail_ms = 3000}, &echo), WT_ERR_BAD_ARG,
                 "echo: tail 3000 ms, want 10..2000");
    assert_fails(wt_echo_create(&(wt_echo_config){.latency_ms = NAN}, &echo), WT_ERR_BAD_ARG,
                 "echo: latency nan ms, want 2..100");
    assert_null(echo);
}

// ---- many signals on a stream

typedef struct plan_case {
    wt_echo_config config;
    int signals, max_frames;
    size_t n;
} plan_case;

// The microphones' rows, then those of the playback, as the plan takes them.
static size_t rows_of(const plan_case *k, int signals) { return (size_t)(signals * (k->config.channels + 1)); }

static wt_status reset_plan(void *op, wt_stream *stream) { return wt_echo_plan_reset(op, stream); }

// The number of microphones is that of the rows that go out.
static size_t n_mics;

static wt_status enqueue_plan(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out)
{
    return wt_echo_plan_enqueue(op, stream, in, 0, in, n_mics * (size_t)n * sizeof(float), n, out, 0);
}

// Playback of noise, with a pause and a NaN in the last signal; microphones hear it late, filtered, from the middle on
// otherwise, and speech of their own now and then.
static float *many_rooms(const plan_case *k)
{
    const size_t channels = (size_t)k->config.channels, signals = (size_t)k->signals, n = k->n;
    float *x = floats(signals * (channels + 1) * n), *played = x + signals * channels * n;
    uint64_t seed = 31;
    for (size_t i = 0; i < signals * n; i++) played[i] = 0.3f * noise(&seed);
    memset(played + (signals - 1) * n + n / 4, 0, n / 8 * sizeof *x);
    played[(signals - 1) * n + n / 3] = NAN;
    for (size_t line = 0; line < signals * channels; line++)
        for (size_t f = 0; f < n; f++) {
            const float *from = played + line / channels * n;
            float sum = 0;
            for (size_t d = 40; d < 90 && d <= f; d++)
                if (from[f - d] == from[f - d])
                    sum += from[f - d] * sinf((float)(d * (line + (f < n / 2 ? 1 : 2)))) * 0.2f;
            const bool speaks = f / 3000 % 4 == 2;
            x[line * n + f] =
                sum + (speaks ? 0.1f * sinf((float)f * 0.05f * (float)(line + 1)) : 0) + 1e-4f * noise(&seed);
        }
    x[n / 5] = INFINITY;
    return x;
}

static void run_plan(wt_device *device, const plan_case *k, int signals, const float *x, bool in_blocks, float *out)
{
    static const int sizes[] = {1, 63, 64, 65, 253, 2999};
    wt_echo_plan *plan;
    const wt_echo_plan_config config = {k->config, signals, k->max_frames};
    assert_ok(wt_echo_plan_create(device, &config, &plan));
    n_mics = (size_t)(signals * k->config.channels);
    const block_op op = {device, plan, rows_of(k, signals), n_mics, reset_plan, enqueue_plan};
    run_in_blocks(&op, x, k->n, in_blocks ? sizes : &k->max_frames, in_blocks ? 6 : 1, out);
    wt_echo_plan_destroy(plan);
}

static void check_plan(wt_device *device, const plan_case *k, double bound)
{
    const size_t channels = (size_t)k->config.channels, lines = (size_t)k->signals * channels, n = k->n;
    float *x = many_rooms(k), *want = floats(lines * n), *got = floats(lines * n), *cut = floats(lines * n);
    float *one = floats((channels + 1) * n);
    wt_echo *echo = echo_of(&k->config);
    for (size_t i = 0; i < (size_t)k->signals; i++) {
        const float *mic[8];
        float *out[8];
        for (size_t c = 0; c < channels; c++)
            mic[c] = x + (i * channels + c) * n, out[c] = want + (i * channels + c) * n;
        wt_echo_reset(echo);
        wt_echo_process(echo, mic, x + (lines + i) * n, out, (int)n);
    }
    run_plan(device, k, k->signals, x, false, got);
    assert_near_peak(want, got, lines * n, bound, "echo");
    run_plan(device, k, k->signals, x, true, cut);
    assert_memory_equal(got, cut, lines * n * sizeof *got);
    memcpy(one, x, channels * n * sizeof *x), memcpy(one + channels * n, x + lines * n, n * sizeof *x);
    run_plan(device, k, 1, one, true, cut);
    assert_memory_equal(got, cut, channels * n * sizeof *got);
    wt_echo_destroy(echo);
    free(x), free(want), free(got), free(cut), free(one);
}

static void check_plans(wt_device *device, double bound)
{
    // On a GPU a line has four thread blocks, two or one by how many lines there are, and alone it has four. The last
    // has transforms of two warps, and more weights than shared memory holds.
    static const plan_case cases[] = {
        {{.rate_hz = 8000, .channels = 2, .tail_ms = 40}, 2, 30000, 12001},
        {{.rate_hz = 8000, .channels = 2, .tail_ms = 50}, 25, 1000, 1000},
        {{.rate_hz = 8000, .channels = 2, .tail_ms = 30}, 70, 1000, 1000},
        {{.rate_hz = 11025, .channels = 1, .tail_ms = 64, .latency_ms = 9.16}, 3, 4000, 9000}, // a block of 101 frames
        {{.rate_hz = 16000, .channels = 1, .tail_ms = 10, .latency_ms = 5.0625}, 1, 9000, 9000}, // 81: half of a pair
        {{.channels = 1}, 2, 9000, 9000},
        {{.rate_hz = 96000, .channels = 1, .tail_ms = 2000}, 1, 9000, 9000},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_plan(device, &cases[k], bound);
    wt_echo_plan *plan = NULL;
    assert_fails(wt_echo_plan_create(NULL, &(wt_echo_plan_config){.max_frames = 1}, &plan), WT_ERR_BAD_ARG,
                 "echo: a plan without a device");
    assert_fails(wt_echo_plan_create(device, &(wt_echo_plan_config){.n_signals = -1, .max_frames = 1}, &plan),
                 WT_ERR_BAD_ARG, "echo: -1 signals, want 1..33554431");
    assert_fails(wt_echo_plan_create(device, &(wt_echo_plan_config){.n_signals = 1}, &plan), WT_ERR_BAD_ARG,
                 "echo: max_frames 0, want 1..536870911");
    assert_fails(wt_echo_plan_create(device, &(wt_echo_plan_config){{.tail_ms = 1}, 1, 1}, &plan), WT_ERR_BAD_ARG,
                 "echo: tail 1 ms, want 10..2000");
    assert_null(plan);
    wt_device_close(device);
}

static void plans_on_a_cpu_are_each_signals(void **state)
{
    (void)state;
    check_plans(cpu_device(), 0);
}

static void plans_on_a_gpu_are_the_cpus(void **state)
{
    (void)state;
    check_plans(gpu_device(), 2e-6);
}

// What a checker of races gets through.
static void short_plans_on_a_gpu(void **state)
{
    static const plan_case cases[] = {{{.channels = 1, .tail_ms = 30}, 1, 1500, 1500},
                                      {{.rate_hz = 8000, .channels = 2, .tail_ms = 30}, 70, 170, 170}};
    (void)state;
    wt_device *device = gpu_device();
    for (int k = 0; k < 2; k++) check_plan(device, &cases[k], 2e-6);
    wt_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_echo_falls_by_25_db_and_a_changed_room_is_learnt),
        cmocka_unit_test(speech_echo_falls_and_the_near_end_is_kept),
        cmocka_unit_test(silent_playback_passes_the_microphone),
        cmocka_unit_test(bad_samples_are_left_behind),
        cmocka_unit_test(blocks_and_neighbours_do_not_matter),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(plans_on_a_cpu_are_each_signals),
        cmocka_unit_test(plans_on_a_gpu_are_the_cpus),
        cmocka_unit_test(short_plans_on_a_gpu),
    };
    return cmocka_run_group_tests_name("echo", tests, NULL, NULL);
}
