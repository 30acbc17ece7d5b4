// libebur128 as a second opinion on loudness, and what a meter promises besides; test_loudness_ebu.c has the EBU's
// signals.
#include "support/failing_alloc.h"
#include "support/loudness_check.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <warptone/loudness.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loudness_kernel.h"

enum { MAX_BLOCK = 4800 };

static void true_peak_oversamples_twice_to_192_khz_and_no_further(void **state)
{
    (void)state;
    static float sine[4096]; // rate / 4 with samples 45 degrees off the crest: 3.01 dB to find
    for (int n = 0; n < 4096; n++) sine[n] = (float)(fmin(n / 1024.0, 1) * sin(2 * M_PI * n / 4 + M_PI / 4));
    const int rates[] = {96000, 96001, 192000, 192001};
    const double expected[] = {0, 0, 0, -3.0103};
    for (int k = 0; k < 4; k++) {
        wt_loudness *meter = loudness_meter(rates[k], 1);
        wt_loudness_process(meter, (const float *[]){sine}, 4096);
        assert_near(loudness_now(meter).sample_peak_db, -3.0103, 0.001);
        assert_near(loudness_now(meter).true_peak_db, expected[k], 0.1);
        wt_loudness_destroy(meter);
    }
}

// ITU-R BS.1770-4, Annex 1, tables 1 and 2: what the analogue prototypes must give at 48 kHz.
static void weighting_at_48_khz_is_the_recommendations_table(void **state)
{
    (void)state;
    loudness_weighting w;
    wt__loudness_weighting(48000, &w);
    const double want[2][5] = {
        {1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585},
        {1, -2, 1, -1.99004745483398, 0.99007225036621}};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++) assert_near(w.b[i][k], want[i][k], 1e-11);
        for (int k = 0; k < 2; k++) assert_near(w.a[i][k + 1], want[i][k + 3], 1e-11);
    }
}

// Coloured noise whose level jumps every 0.7 s, block sizes drawn from `sizes`.
static void play_noise(wt_loudness *meter, int rate_hz, int channels, int64_t n_frames, const int *sizes, int n_sizes)
{
    static float block[64][MAX_BLOCK];
    const float *in[64];
    uint64_t seed = 7;
    float low[64] = {0}, gain = 0;
    for (int c = 0; c < channels; c++) in[c] = block[c];
    for (int64_t at = 0, turn = 0; at < n_frames; turn++) {
        int n = sizes[turn % n_sizes];
        if (n > n_frames - at) n = (int)(n_frames - at);
        for (int k = 0; k < n; k++) {
            if ((at + k) % (rate_hz * 7 / 10) == 0) gain = powf(10, -1.5f + noise(&seed));
            for (int c = 0; c < channels; c++) {
                low[c] += 0.1f * (noise(&seed) - low[c]);
                block[c][k] = gain * low[c];
            }
        }
        wt_loudness_process(meter, in, n);
        at += n;
    }
}

// libebur128 1.2.6 on the same noise: EBUR128_MODE_I, LRA, M, S and SAMPLE_PEAK, maxima read every 10 ms.
// 0.01 LU: that meter keeps every block, ours counts them in bins of 0.01 LU with exact means.
static void agrees_with_libebur128(void **state)
{
    (void)state;
    static const struct {
        int rate_hz, channels;
        int64_t seconds;
        double integrated, range, momentary, short_term, max_momentary, max_short_term, sample_peak;
    } cases[] = {
        {48000, 2, 20, -30.02195, 13.36248, -59.05633, -43.05227, -24.08525, -27.47265, -15.2514},
        {44100, 1, 20, -36.28479, 10.20923, -51.06326, -52.90983, -27.14279, -33.43033, -16.0556},
        {96000, 2, 10, -28.67013, 14.15378, -24.03026, -27.62747, -23.25217, -27.62747, -15.2514},
        {8000, 6, 60, -29.13632, 16.49304, -61.14117, -42.83996, -21.49463, -24.92822, -15.6513},
        {192000, 1, 8, -34.04860, 12.85699, -45.12670, -44.04431, -25.52204, -31.18732, -16.0556},
        {22050, 5, 20, -27.29271, 7.14251, -28.45783, -35.40431, -20.44447, -26.62479, -15.7324},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_loudness *meter = loudness_meter(cases[k].rate_hz, cases[k].channels);
        play_noise(meter, cases[k].rate_hz, cases[k].channels, cases[k].rate_hz * cases[k].seconds, (int[]){1024}, 1);
        wt_loudness_values v = loudness_now(meter);
        assert_near(v.integrated_lufs, cases[k].integrated, 0.01);
        assert_near(v.range_lu, cases[k].range, 0.01);
        assert_near(v.momentary_lufs, cases[k].momentary, 0.01);
        assert_near(v.short_term_lufs, cases[k].short_term, 0.01);
        assert_near(v.max_momentary_lufs, cases[k].max_momentary, 0.01);
        assert_near(v.max_short_term_lufs, cases[k].max_short_term, 0.01);
        assert_near(v.sample_peak_db, cases[k].sample_peak, 0.001);
        wt_loudness_destroy(meter);
    }
}

static void every_block_size_gives_the_same_bits(void **state)
{
    (void)state;
    const int rates[] = {44100, 11025, 7919}; // the last two have no whole number of frames in 10 ms
    const int channels[] = {2, 1, 11};
    for (int k = 0; k < 3; k++) {
        wt_loudness_values expected;
        float peaks[64];
        for (int turn = 0; turn < 4; turn++) {
            const int sizes[4][5] = {{4800, 4800, 4800, 4800, 4800}, {64, 64, 64, 64, 64}, {1, 63, 65, 253, 0}, {441}};
            wt_loudness *meter = loudness_meter(rates[k], channels[k]);
            play_noise(meter, rates[k], channels[k], rates[k] * 4, sizes[turn], turn == 3 ? 1 : 5);
            wt_loudness_values v = loudness_now(meter);
            float got[64];
            wt_loudness_peaks(meter, NULL, got);
            if (turn == 0) {
                expected = v;
                memcpy(peaks, got, sizeof peaks);
                assert_true(isfinite(v.integrated_lufs) && v.range_lu >= 0);
            }
            assert_memory_equal(&expected, &v, sizeof v);
            assert_memory_equal(peaks, got, sizeof(float) * (size_t)channels[k]);
            wt_loudness_destroy(meter);
        }
    }
}

static void merged_meters_are_an_album(void **state)
{
    (void)state;
    wt_loudness *album = loudness_meter(48000, 2), *second = loudness_meter(48000, 2), *mono = loudness_meter(44100, 1);
    loudness_stereo(album, -30, 20);
    loudness_stereo(second, -20, 20);
    loudness_tone(mono, (double[]){-1}, 1, 0.1); // too short for a block: only its peak and frames count
    wt_loudness_merge(album, second);
    wt_loudness_merge(album, mono);
    wt_loudness_values v = loudness_now(album);
    // both halves lie above the relative gate: mean power of 197 blocks each
    assert_near(v.integrated_lufs, 10 * log10((pow(10, -3) + pow(10, -2)) / 2), 0.02);
    assert_near(v.range_lu, 10, 0.1);
    assert_near(v.true_peak_db, -1, 0.05);
    assert_near(v.momentary_lufs, -30, 0.1);
    assert_int_equal(v.n_frames, 2 * 20 * 48000 + 4800);
    wt_loudness_destroy(album);
    wt_loudness_destroy(second);
    wt_loudness_destroy(mono);
}

static void silence_has_no_loudness_and_no_gain(void **state)
{
    (void)state;
    wt_loudness_values v = LOUDNESS_PROGRAMME({-INFINITY, 5});
    assert_true(v.integrated_lufs == -INFINITY && v.momentary_lufs == -INFINITY && v.true_peak_db == -INFINITY);
    assert_true(v.range_lu == 0);
    assert_true(wt_loudness_gain_db(&v, -16, -1) == 0);
}

static void gain_reaches_the_target_or_the_ceiling(void **state)
{
    (void)state;
    wt_loudness_values v = LOUDNESS_PROGRAMME({-23, 5});
    assert_near(wt_loudness_gain_db(&v, -33, -1), -10, 0.1);
    assert_near(wt_loudness_gain_db(&v, 0, -1), 22, 0.1); // the sine's peak is at -23
}

static void bad_samples_are_counted_and_do_no_harm(void **state)
{
    (void)state;
    static float block[4800];
    wt_loudness *meter = loudness_meter(48000, 1);
    block[10] = NAN;
    block[11] = INFINITY;
    block[12] = -INFINITY;
    wt_loudness_process(meter, (const float *[]){block}, 4800);
    loudness_tone(meter, (double[]){-20}, 1, 5);
    assert_int_equal(loudness_now(meter).n_bad, 3);
    assert_near(loudness_now(meter).short_term_lufs, -23.01, 0.1);
    block[10] = FLT_MAX;
    wt_loudness_process(meter, (const float *[]){block}, 4800);
    assert_false(isnan(loudness_now(meter).integrated_lufs) || isnan(loudness_now(meter).momentary_lufs));

    wt_loudness_reset(meter);
    assert_int_equal(loudness_now(meter).n_bad, 0);
    loudness_tone(meter, (double[]){-20}, 1, 5);
    assert_near(loudness_now(meter).integrated_lufs, -23.01, 0.1);
    wt_loudness_destroy(meter);
}

static void dual_mono_counts_twice(void **state)
{
    (void)state;
    wt_loudness *meter = NULL;
    assert_ok(wt_loudness_create(&(wt_loudness_config){.channels = 1, .dual_mono = true}, &meter));
    loudness_tone(meter, (double[]){-23}, 1, 5);
    assert_near(loudness_now(meter).integrated_lufs, -23, 0.1);
    wt_loudness_destroy(meter);
}

static void refuses_what_it_cannot_meter(void **state)
{
    (void)state;
    wt_loudness *meter = NULL;
    assert_fails(wt_loudness_create(&(wt_loudness_config){.rate_hz = 3999}, &meter), WT_ERR_BAD_ARG,
                 "loudness: rate 3999 Hz, want 4000..1536000");
    assert_fails(wt_loudness_create(&(wt_loudness_config){.channels = 65}, &meter), WT_ERR_BAD_ARG,
                 "loudness: 65 channels, want 1..64");
    assert_fails(wt_loudness_create(&(wt_loudness_config){.dual_mono = true}, &meter), WT_ERR_BAD_ARG,
                 "loudness: dual mono with 2 channels, want 1");
    const float weights[2] = {1, -1};
    assert_fails(wt_loudness_create(&(wt_loudness_config){.weights = weights}, &meter), WT_ERR_BAD_ARG,
                 "loudness: weight -1 of channel 1, want 0 or more");
    assert_null(meter);
}

static wt_status create_meter(void *user) { return wt_loudness_create(&(wt_loudness_config){0}, user); }

static void destroy_meter(void *user) { wt_loudness_destroy(*(wt_loudness **)user); }

static wt_status create_batch(void *user)
{
    return wt_loudness_batch_create(NULL, &(wt_loudness_batch_config){.n_frames = 9}, user);
}

static void destroy_batch(void *user) { wt_loudness_batch_destroy(*(wt_loudness_batch **)user); }

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_loudness *meter = NULL;
    wt_loudness_batch *batch = NULL;
    assert_true(assert_survives_failing_alloc(create_meter, destroy_meter, &meter) >= 1);
    assert_true(assert_survives_failing_alloc(create_batch, destroy_batch, &batch) >= 3);
}

static void meters_in_the_audio_thread(void **state)
{
    (void)state;
    static float block[2][1000];
    wt_loudness *meter = loudness_meter(48000, 2);
    wt_loudness_values values;
    float peaks[2];
    RT_SECTION
    {
        for (int k = 0; k < 50; k++) wt_loudness_process(meter, (const float *[]){block[0], block[1]}, 1000);
        wt_loudness_query(meter, &values);
        wt_loudness_peaks(meter, peaks, peaks);
        wt_loudness_reset(meter);
    }
    wt_loudness_destroy(meter);
}

// ---- many programmes at once

typedef struct batch_case {
    wt_loudness_config meter;
    int64_t n_frames;
} batch_case;

// Noise that swells and fades, a pause, a click, and in the second programme samples that are no numbers.
static float *programmes(int n_signals, int channels, int64_t n_frames)
{
    const size_t area = (size_t)channels * (size_t)n_frames;
    float *x = noise_floats((size_t)n_signals * area, 41);
    for (int s = 0; s < n_signals; s++)
        for (size_t i = 0; i < area; i++) {
            const double t = (double)(i % (size_t)n_frames) / (double)n_frames;
            x[(size_t)s * area + i] *= (float)(0.3 / (1 + s) * (1.01 + sin(20 * t + (double)(i / (size_t)n_frames)))) *
                                       (t > 0.4 && t < 0.5 ? 1e-3f : 1);
        }
    x[area / 3] = 0.99f;
    if (n_signals > 1 && area > 9) x[area + 5] = NAN, x[area + 7] = INFINITY;
    return x;
}

static void assert_values_near(const wt_loudness_values *got, const wt_loudness_values *want, const char *what)
{
    const double *g = &got->momentary_lufs, *w = &want->momentary_lufs;
    static const char *const names[] = {"momentary",  "short-term", "highest momentary", "highest short-term",
                                        "integrated", "range",      "sample peak",       "true peak"};
    for (int k = 0; k < 8; k++)
        if (!(fabs(g[k] - w[k]) <= 1e-6) && !(isinf(g[k]) && g[k] == w[k]))
            fail_msg("%s, %s: %.12g, want %.12g", what, names[k], g[k], w[k]);
    if (got->n_frames != want->n_frames || got->n_bad != want->n_bad)
        fail_msg("%s: %lld frames, %lld bad, want %lld and %lld", what, (long long)got->n_frames, (long long)got->n_bad,
                 (long long)want->n_frames, (long long)want->n_bad);
}

static wt_status enqueue_batch(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_loudness_batch_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_batch(wt_device *device, const batch_case *c)
{
    enum { SIGNALS = 3, FLOATS = sizeof(wt_loudness_values) / sizeof(float) };
    const int channels = c->meter.channels;
    const size_t area = (size_t)channels * (size_t)c->n_frames;
    float *x = programmes(SIGNALS, channels, c->n_frames);
    wt_loudness_values got[2][SIGNALS], alone;
    wt_loudness_batch *batch, *one;
    wt_loudness_batch_config config = {c->meter, c->n_frames, SIGNALS};
    assert_ok(wt_loudness_batch_create(device, &config, &batch));
    config.n_signals = 1;
    assert_ok(wt_loudness_batch_create(device, &config, &one));
    const stream_call all = {device, enqueue_batch, batch}, single = {device, enqueue_batch, one};
    for (int repeat = 0; repeat < 2; repeat++)
        run_on_stream(&all, x, SIGNALS * area, (float *)got[repeat], SIGNALS * FLOATS);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    for (int s = 0; s < SIGNALS; s++) {
        char what[64];
        snprintf(what, sizeof what, "%d Hz, %d channels, %lld frames, programme %d", c->meter.rate_hz, channels,
                 (long long)c->n_frames, s);
        const float *in[8];
        wt_loudness *meter;
        assert_ok(wt_loudness_create(&c->meter, &meter));
        for (int k = 0; k < channels; k++) in[k] = x + (size_t)s * area + (size_t)(k * c->n_frames);
        wt_loudness_process(meter, in, (int)c->n_frames);
        const wt_loudness_values want = loudness_now(meter);
        wt_loudness_destroy(meter);
        assert_values_near(&got[0][s], &want, what);
        run_on_stream(&single, x + (size_t)s * area, area, (float *)&alone, FLOATS);
        assert_memory_equal(&alone, &got[0][s], sizeof alone); // whatever it is batched with
        wt_loudness_batch_run(one, x + (size_t)s * area, &alone);
        assert_memory_equal(&alone, &want, sizeof alone);
    }
    wt_loudness_batch_destroy(batch), wt_loudness_batch_destroy(one);
    free(x);
}

static void check_batches(wt_device *device)
{
    static const float weights[3] = {1, 0, 0.5f};
    const batch_case cases[] = {
        {{.rate_hz = 48000, .channels = 2}, 48000 * 4 + 777},
        {{.rate_hz = 44100, .channels = 1, .dual_mono = true}, 44100 * 3},
        {{.rate_hz = 8000, .channels = 6}, 8000 * 12 + 1},                     // range and gates
        {{.rate_hz = 7919, .channels = 3, .weights = weights}, 7919 * 5 + 41}, // no whole number of frames in 10 ms
        {{.rate_hz = 176400, .channels = 1}, 176400},                          // twice oversampled
        {{.rate_hz = 22050, .channels = 1, .no_true_peak = true}, 22050},
        {{.rate_hz = 48000, .channels = 2}, 479}, // no step
        {{.rate_hz = 48000, .channels = 1}, 481}, // one step, no block
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_batch(device, &cases[k]);
    wt_loudness_batch *batch;
    wt_stream *stream;
    wt_buffer *buffer;
    const wt_loudness_batch_config config = {.n_frames = 10, .n_signals = 2};
    assert_ok(wt_loudness_batch_create(device, &config, &batch));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 164, &buffer));
    assert_fails(wt_loudness_batch_enqueue(batch, stream, buffer, 8, buffer, 0), WT_ERR_BAD_ARG,
                 "loudness: pcm takes 160 bytes at 8, the buffer has 164");
    assert_fails(wt_loudness_batch_enqueue(batch, stream, buffer, 0, buffer, 8), WT_ERR_BAD_ARG,
                 "loudness: values takes 160 bytes at 8, the buffer has 164");
    assert_fails(wt_loudness_batch_enqueue(batch, stream, buffer, 0, buffer, 4), WT_ERR_BAD_ARG,
                 "loudness: values offset 4, want a multiple of 8");
    wt_loudness_batch_destroy(batch), wt_stream_destroy(stream), wt_buffer_destroy(buffer);
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_meter_gives(void **state)
{
    (void)state;
    check_batches(cpu_device());
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_batches(gpu_device());
}

// ---- streams

enum { SIGNALS_OF_STREAM = 3 };

// What all programmes, [n_signals][channels][n_frames], are found to be when they come in blocks of these sizes.
static void stream_in_blocks(wt_device *device, const batch_case *c, const float *x, int n_signals, const int *sizes,
                             int n_sizes, wt_loudness_values *values)
{
    const int lines = n_signals * c->meter.channels;
    const size_t bytes = sizeof(float) * (size_t)lines * (size_t)c->n_frames,
                 out_bytes = sizeof *values * (size_t)n_signals;
    float *block = floats((size_t)lines * (size_t)c->n_frames);
    wt_loudness_plan *plan;
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_loudness_plan_create(device, &c->meter, n_signals, &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, out_bytes, &out));
    for (int pass = 0; pass < 2; pass++) { // after a reset too
        assert_ok(wt_loudness_plan_reset(plan, stream));
        int64_t at = 0;
        for (int k = 0; at < c->n_frames; k++) {
            const int64_t left = c->n_frames - at, n = sizes[k % n_sizes] < left ? sizes[k % n_sizes] : left;
            for (int i = 0; i < lines; i++) memcpy(block + i * n, x + i * c->n_frames + at, sizeof(float) * (size_t)n);
            assert_ok(wt_stream_upload(stream, in, 0, block, sizeof(float) * (size_t)(lines * n)));
            assert_ok(wt_loudness_plan_enqueue(plan, stream, in, 0, (int)n));
            if (k % 5 == 4) assert_ok(wt_loudness_plan_query(plan, stream, out, 0)); // looking changes nothing
            assert_ok(wt_stream_synchronize(stream));
            at += n;
        }
    }
    assert_ok(wt_loudness_plan_query(plan, stream, out, 0));
    assert_ok(wt_stream_download(stream, values, out, 0, out_bytes));
    assert_ok(wt_stream_synchronize(stream));
    wt_loudness_plan_destroy(plan);
    wt_stream_destroy(stream), wt_buffer_destroy(in), wt_buffer_destroy(out);
    free(block);
}

static void check_stream(wt_device *device, const batch_case *c, bool same_bits)
{
    static const int odd[] = {1, 63, 480, 5000, 11, 12, 481}, whole[] = {1 << 30};
    const size_t area = (size_t)c->meter.channels * (size_t)c->n_frames;
    float *x = programmes(SIGNALS_OF_STREAM, c->meter.channels, c->n_frames);
    wt_loudness_values cut[SIGNALS_OF_STREAM], uncut[SIGNALS_OF_STREAM], alone;
    stream_in_blocks(device, c, x, SIGNALS_OF_STREAM, odd, sizeof odd / sizeof *odd, cut);
    stream_in_blocks(device, c, x, SIGNALS_OF_STREAM, whole, 1, uncut);
    assert_memory_equal(cut, uncut, sizeof cut);
    stream_in_blocks(device, c, x + area, 1, odd + 3, 2, &alone);
    assert_memory_equal(&alone, &cut[1], sizeof alone); // whatever it is beside
    for (int s = 0; s < SIGNALS_OF_STREAM; s++) {
        char what[64];
        const float *in[8];
        wt_loudness *meter;
        snprintf(what, sizeof what, "%d Hz in blocks, programme %d", c->meter.rate_hz, s);
        assert_ok(wt_loudness_create(&c->meter, &meter));
        for (int k = 0; k < c->meter.channels; k++) in[k] = x + (size_t)s * area + (size_t)(k * c->n_frames);
        wt_loudness_process(meter, in, (int)c->n_frames);
        const wt_loudness_values want = loudness_now(meter);
        wt_loudness_destroy(meter);
        assert_values_near(&cut[s], &want, what);
        if (same_bits) assert_memory_equal(&cut[s], &want, sizeof want);
    }
    free(x);
}

static void check_streams(wt_device *device, bool same_bits)
{
    static const float weights[3] = {1, 0, 0.5f};
    const batch_case cases[] = {
        {{.rate_hz = 48000, .channels = 2}, 48000 * 4 + 777},
        {{.rate_hz = 8000, .channels = 6}, 8000 * 12 + 1},                     // range and gates
        {{.rate_hz = 7919, .channels = 3, .weights = weights}, 7919 * 5 + 41}, // no whole number of frames in 10 ms
        {{.rate_hz = 176400, .channels = 1}, 50000},                           // twice oversampled
        {{.rate_hz = 48000, .channels = 1, .dual_mono = true}, 479},           // no step
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_stream(device, &cases[k], same_bits);
    wt_loudness_plan *plan;
    wt_stream *stream;
    wt_buffer *buffer;
    assert_fails(wt_loudness_plan_create(NULL, &(wt_loudness_config){0}, 1, &plan), WT_ERR_BAD_ARG,
                 "loudness: a plan without a device");
    assert_fails(wt_loudness_plan_create(device, &(wt_loudness_config){0}, 0, &plan), WT_ERR_BAD_ARG,
                 "loudness: 0 programmes, want 1 or more");
    assert_null(plan);
    assert_ok(wt_loudness_plan_create(device, &(wt_loudness_config){.channels = 1}, 2, &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 164, &buffer));
    assert_fails(wt_loudness_plan_enqueue(plan, stream, buffer, 0, 21), WT_ERR_BAD_ARG,
                 "loudness: input takes 168 bytes at 0, the buffer has 164");
    assert_fails(wt_loudness_plan_enqueue(plan, stream, buffer, 0, 0), WT_ERR_BAD_ARG,
                 "loudness: a block of 0 frames, want 1 or more");
    assert_fails(wt_loudness_plan_query(plan, stream, buffer, 8), WT_ERR_BAD_ARG,
                 "loudness: values takes 160 bytes at 8, the buffer has 164");
    assert_fails(wt_loudness_plan_query(plan, stream, buffer, 4), WT_ERR_BAD_ARG,
                 "loudness: values offset 4, want a multiple of 8");
    wt_loudness_plan_destroy(plan), wt_stream_destroy(stream), wt_buffer_destroy(buffer);
    wt_device_close(device);
}

static void streams_on_a_cpu_give_what_each_meter_gives(void **state)
{
    (void)state;
    check_streams(cpu_device(), true);
}

static void streams_on_a_gpu_give_what_the_cpu_gives(void **state)
{
    (void)state;
    check_streams(gpu_device(), false);
}

static void digital_silence_has_no_loudness_in_a_batch(void **state)
{
    (void)state;
    enum { N = 48000 * 2 };
    float *x = floats(2 * N);
    wt_loudness_values v;
    wt_loudness_batch *batch;
    assert_ok(wt_loudness_batch_create(NULL, &(wt_loudness_batch_config){.n_frames = N}, &batch));
    wt_loudness_batch_run(batch, x, &v);
    assert_true(v.integrated_lufs == -INFINITY && v.true_peak_db == -INFINITY && v.range_lu == 0 && v.n_frames == N);
    wt_loudness_batch_destroy(batch);
    free(x);
    assert_fails(wt_loudness_batch_create(NULL, &(wt_loudness_batch_config){.n_signals = 2}, &batch), WT_ERR_BAD_ARG,
                 "loudness: 2 programmes of 0 frames, want 1 or more");
    assert_null(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(true_peak_oversamples_twice_to_192_khz_and_no_further),
        cmocka_unit_test(weighting_at_48_khz_is_the_recommendations_table),
        cmocka_unit_test(agrees_with_libebur128),
        cmocka_unit_test(every_block_size_gives_the_same_bits),
        cmocka_unit_test(merged_meters_are_an_album),
        cmocka_unit_test(silence_has_no_loudness_and_no_gain),
        cmocka_unit_test(gain_reaches_the_target_or_the_ceiling),
        cmocka_unit_test(bad_samples_are_counted_and_do_no_harm),
        cmocka_unit_test(dual_mono_counts_twice),
        cmocka_unit_test(refuses_what_it_cannot_meter),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(meters_in_the_audio_thread),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_meter_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(streams_on_a_cpu_give_what_each_meter_gives),
        cmocka_unit_test(streams_on_a_gpu_give_what_the_cpu_gives),
        cmocka_unit_test(digital_silence_has_no_loudness_in_a_batch),
    };
    return cmocka_run_group_tests_name("loudness", tests, NULL, NULL);
}
