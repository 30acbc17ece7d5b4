#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <warptone/resample.h>

#include <math.h>
#include <stdlib.h>

#include "../dsp/filter/fir_design_internal.h"
#include "../dsp/filter/resample_table.h"
#include "golden/filters/soxr.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

// One channel, whole, drained; *n_out is set and the caller frees the frames.
static float *resample(const wt_resample_config *config, const float *in, int n_in, int *n_out)
{
    wt_resample *resampler = NULL;
    assert_ok(wt_resample_create(config, &resampler));
    const int expected = (int)wt_resample_out_frames(config, n_in);
    float *out = calloc((size_t)expected + 8, sizeof *out);
    int n_used, n_first, n_rest;
    wt_resample_process(resampler, &in, n_in, &n_used, &out, expected, &n_first);
    assert_int_equal(n_used, n_in);
    float *rest = out + n_first;
    wt_resample_drain(resampler, &rest, expected + 8 - n_first, &n_rest);
    assert_int_equal(n_first + n_rest, expected);
    *n_out = expected;
    wt_resample_destroy(resampler);
    return out;
}

// A sine of `frequency` (1 = the lower Nyquist frequency of the two rates) through the resampler, against the same sine
// read at the output's times; the ends, where the signal begins and stops, are left out.
static double sine_snr_db(const wt_resample_config *config, double frequency)
{
    const double lower_hz = fmin(config->in_hz, config->out_hz), hz = frequency * lower_hz / 2;
    const int n_edge = (int)(600 * config->in_hz / lower_hz);
    const int n_in = 2 * n_edge + (int)(1500 * config->in_hz / lower_hz);
    float *in = malloc(sizeof *in * (size_t)n_in);
    int n_out;
    for (int n = 0; n < n_in; n++) in[n] = (float)sin(2 * M_PI * fmod(hz / config->in_hz * n, 1));
    float *out = resample(config, in, n_in, &n_out);
    double signal = 0, error = 0;
    for (int n = 0; n < n_out; n++) {
        const double t = (double)n * config->in_hz / config->out_hz;
        if (t < n_edge || t > n_in - n_edge) continue;
        const double want = sin(2 * M_PI * fmod(hz * n / config->out_hz, 1));
        signal += want * want;
        error += (out[n] - want) * (out[n] - want);
    }
    free(in);
    free(out);
    return 10 * log10(signal / error);
}

// Rates with exact phases, ratios of libsamplerate's tests (3, .6, .3, 1.33, 1.9999), and one with 47999 phases.
static const int rates[][2] = {{44100, 48000}, {48000, 44100}, {48000, 16000}, {16000, 48000}, {22050, 16000},
                               {1000, 3000},   {1000, 600},    {1000, 300},    {300, 399},     {10000, 19999},
                               {44101, 47999}, {47999, 44101}};

// 144 dB is libsamplerate's floor for its best converter; ours measures gain and delay too, not the noise alone.
static void best_passes_sines_at_144_db(void **state)
{
    (void)state;
    const double frequencies[] = {0.022, 0.7, 0.86, 0.95};
    for (int i = 0; i < LENGTH(rates); i++)
        for (int k = 0; k < LENGTH(frequencies); k++) {
            const wt_resample_config config = {rates[i][0], rates[i][1], 1, WT_RESAMPLE_BEST, false};
            const double snr = sine_snr_db(&config, frequencies[k]);
            if (!(snr >= 144)) fail_msg("%d to %d Hz at %g: %.1f dB", rates[i][0], rates[i][1], frequencies[k], snr);
        }
}

static void fast_passes_sines_at_105_db(void **state)
{
    (void)state;
    const double frequencies[] = {0.022, 0.7, 0.9};
    for (int i = 0; i < LENGTH(rates); i++)
        for (int k = 0; k < LENGTH(frequencies); k++) {
            const wt_resample_config config = {rates[i][0], rates[i][1], 1, WT_RESAMPLE_FAST, false};
            const double snr = sine_snr_db(&config, frequencies[k]);
            if (!(snr >= 105)) fail_msg("%d to %d Hz at %g: %.1f dB", rates[i][0], rates[i][1], frequencies[k], snr);
        }
}

// Level of what is left of a sine above the output's Nyquist frequency, dB below the sine.
static double alias_db(const wt_resample_config *config, double frequency)
{
    enum { N_IN = 30000 };
    static float in[N_IN];
    int n_out;
    for (int n = 0; n < N_IN; n++) in[n] = (float)sin(M_PI * fmod(frequency * config->out_hz / config->in_hz * n, 2));
    float *out = resample(config, in, N_IN, &n_out);
    double power = 0;
    for (int n = n_out / 4; n < n_out * 3 / 4; n++) power += (double)out[n] * out[n];
    free(out);
    return 10 * log10(power / (n_out / 2) * 2);
}

static void nothing_above_the_nyquist_frequency_comes_through(void **state)
{
    (void)state;
    const double frequencies[] = {1.001, 1.05, 1.4, 1.9};
    for (int k = 0; k < LENGTH(frequencies); k++) {
        const wt_resample_config ways[] = {{48000, 22050, 1, WT_RESAMPLE_BEST, false},
                                           {48000, 22050, 1, WT_RESAMPLE_FAST, false},
                                           {44100, 22050, 1, WT_RESAMPLE_SOXR_HQ, false}};
        const double best = alias_db(&ways[0], frequencies[k]), fast = alias_db(&ways[1], frequencies[k]),
                     soxr = alias_db(&ways[2], frequencies[k]);
        if (!(best <= -150 && fast <= -100 && soxr <= -120))
            fail_msg("at %g: best %.1f, fast %.1f, soxr_hq %.1f dB", frequencies[k], best, fast, soxr);
    }
}

static double gain_db(const wt_resample_config *config, double frequency)
{
    enum { N_IN = 20000 };
    static float in[N_IN];
    int n_out;
    const double lower_hz = fmin(config->in_hz, config->out_hz);
    for (int n = 0; n < N_IN; n++) in[n] = (float)sin(M_PI * fmod(frequency * lower_hz / config->in_hz * n, 2));
    float *out = resample(config, in, N_IN, &n_out);
    double sine = 0, cosine = 0;
    const int first = n_out / 4, last = n_out * 3 / 4;
    for (int n = first; n < last; n++) {
        const double window = 1 - cos(2 * M_PI * (n - first) / (last - first));
        sine += window * out[n] * sin(M_PI * frequency * lower_hz / config->out_hz * n);
        cosine += window * out[n] * cos(M_PI * frequency * lower_hz / config->out_hz * n);
    }
    free(out);
    return 20 * log10(hypot(sine, cosine) * 2 / (last - first));
}

static void best_keeps_97_percent_of_the_band(void **state)
{
    (void)state;
    const wt_resample_config ways[] = {{44100, 48000, 1, 0, false}, {48000, 44100, 1, 0, false}};
    for (int k = 0; k < 2; k++) {
        assert_true(gain_db(&ways[k], 0.97) >= -3.01);
        assert_true(fabs(gain_db(&ways[k], 0.955)) < 0.001);
    }
}

static void check_soxr(int n_in, int in_hz, int out_hz, const double *want, int n_want)
{
    float x[901];
    uint64_t seed = 1;
    double peak = 0, largest = 0;
    int n_out;
    for (int n = 0; n < n_in; n++) x[n] = noise(&seed);
    float *y = resample(&(wt_resample_config){in_hz, out_hz, 1, WT_RESAMPLE_SOXR_HQ, false}, x, n_in, &n_out);
    assert_int_equal(n_out, n_want);
    for (int n = 0; n < n_out; n++) {
        peak = fmax(peak, fabs(want[n]));
        largest = fmax(largest, fabs(y[n] - want[n]));
    }
    if (!(largest <= 5e-7 * peak)) fail_msg("%d to %d: off by %g of the peak", in_hz, out_hz, largest / peak);
    free(y);
}

// Noise that begins and ends at once: with 5e-7 every sample there too.
static void soxr_hq_is_soxrs_within_5e_7(void **state)
{
    (void)state;
    check_soxr(501, 2, 1, golden_soxr_hq, LENGTH(golden_soxr_hq));
    check_soxr(900, 48000, 16000, golden_soxr_third, LENGTH(golden_soxr_third));
    check_soxr(150, 11025, 22050, golden_soxr_doubled, LENGTH(golden_soxr_doubled));
    check_soxr(120, 16000, 48000, golden_soxr_tripled, LENGTH(golden_soxr_tripled));
}

// Where phases are read between soxr counts time in 2^-32 frames: 7e-5 frames early by then, 1e-4 of the peak of noise.
static void soxr_hq_keeps_soxrs_time(void **state)
{
    (void)state;
    enum { N = 1500000, AT = 1600000 };
    float *x = malloc(sizeof *x * N), *y;
    uint64_t seed = 1;
    int n_out;
    for (int n = 0; n < N; n++) x[n] = noise(&seed);
    y = resample(&(wt_resample_config){44101, 48000, 1, WT_RESAMPLE_SOXR_HQ, false}, x, N, &n_out);
    for (int n = 0; n < LENGTH(golden_soxr_late); n++) {
        const double off = fabs(y[AT + n] - golden_soxr_late[n]);
        if (!(off <= 1e-6)) fail_msg("frame %d: off by %g", AT + n, off);
    }
    free(x), free(y);
}

static void every_block_size_and_channel_count_gives_the_same_bits(void **state)
{
    (void)state;
    enum { N = 5000, CHANNELS = 11, ROOM = 21000 };
    static float x[CHANNELS][N], y[CHANNELS][ROOM];
    const int sizes[] = {1, 63, 64, 65, 253, 1000, 0, 7};
    const wt_resample_config ways[] = {{44100, 48000, CHANNELS, 0, false},
                                       {48000, 16000, CHANNELS, WT_RESAMPLE_FAST, false},
                                       {44101, 47999, CHANNELS, WT_RESAMPLE_FAST, false},
                                       {44100, 22050, CHANNELS, WT_RESAMPLE_SOXR_HQ, false},
                                       {44100, 24000, CHANNELS, WT_RESAMPLE_SOXR_HQ, false},
                                       {48000, 44101, CHANNELS, WT_RESAMPLE_SOXR_HQ, false},
                                       {1, 4, CHANNELS, 0, true}};
    uint64_t seed = 5;
    for (int c = 0; c < CHANNELS; c++)
        for (int n = 0; n < N; n++) x[c][n] = noise(&seed);
    for (int k = 0; k < LENGTH(ways); k++) {
        wt_resample *resampler = NULL;
        assert_ok(wt_resample_create(&ways[k], &resampler));
        int done = 0, at = 0;
        for (int turn = 0; at < N; turn++) { // blocks of both sides, unrelated
            const float *in[CHANNELS];
            float *out[CHANNELS];
            int n_used, n_out;
            const int n_in = sizes[turn % 8] < N - at ? sizes[turn % 8] : N - at;
            for (int c = 0; c < CHANNELS; c++) in[c] = x[c] + at, out[c] = y[c] + done;
            wt_resample_process(resampler, in, n_in, &n_used, out, sizes[turn * 3 % 8] + 20, &n_out);
            at += n_used;
            done += n_out;
        }
        for (int n_out = 1; n_out > 0; done += n_out) {
            float *out[CHANNELS];
            for (int c = 0; c < CHANNELS; c++) out[c] = y[c] + done;
            wt_resample_drain(resampler, out, 37, &n_out);
        }
        wt_resample_destroy(resampler);
        for (int c = 0; c < CHANNELS; c += 5) {
            wt_resample_config mono = ways[k];
            mono.channels = 1;
            int n_alone;
            float *alone = resample(&mono, x[c], N, &n_alone);
            assert_int_equal(done, n_alone);
            assert_memory_equal(alone, y[c], sizeof(float) * (size_t)n_alone);
            free(alone);
        }
    }
}

static void lengths_are_exact_and_ratios_reach_256(void **state)
{
    (void)state;
    const int lengths[] = {0, 1, 2, 3, 63, 255, 256, 257, 1000};
    const int ways[][2] = {{1, 256}, {256, 1}, {44100, 48000}, {100000000, 99999999}, {2, 1}};
    static float x[1000];
    for (int n = 0; n < 1000; n++) x[n] = 1;
    for (int i = 0; i < LENGTH(ways); i++)
        for (int k = 0; k < LENGTH(lengths); k++) {
            int n_out;
            const int64_t expected = ((int64_t)lengths[k] * ways[i][1] + ways[i][0] - 1) / ways[i][0];
            const wt_resample_config config = {ways[i][0], ways[i][1], 1, WT_RESAMPLE_FAST, false};
            float *y = resample(&config, x, lengths[k], &n_out);
            assert_int_equal(n_out, expected);
            for (int n = 0; n < n_out; n++) assert_true(fabsf(y[n]) < 1.3f); // two ones meet at 2 sinc(0.5)
            if (lengths[k] == 1000 && i != 1) assert_true(fabsf(y[n_out / 2] - 1) < 1e-4f);
            free(y);
        }
    const wt_resample_config hour = {44100, 48000, 1, 0, false};
    assert_int_equal(wt_resample_out_frames(&hour, (int64_t)44100 * 1000000000), (int64_t)48000 * 1000000000);
}

static void a_frame_comes_as_soon_as_the_latency_behind_it_is_known(void **state)
{
    (void)state;
    static const wt_resample_config ways[] = {{44100, 48000, 1, WT_RESAMPLE_BEST, false},
                                              {48000, 44100, 1, WT_RESAMPLE_FAST, false},
                                              {3, 1, 1, WT_RESAMPLE_SOXR_HQ, false},
                                              {2, 3, 1, WT_RESAMPLE_POLYPHASE, false}};
    for (int k = 0; k < LENGTH(ways); k++) {
        wt_resample *r;
        const float x = 1;
        float y;
        int n_in = 0, n_used, n_out = 0;
        assert_ok(wt_resample_create(&ways[k], &r));
        for (; !n_out && n_in < 100000; n_in += n_used)
            wt_resample_process(r, (const float *[]){&x}, 1, &n_used, (float *[]){&y}, 1, &n_out);
        assert_int_equal(n_in, wt_resample_latency_frames(r) + 1); // itself, and those behind
        wt_resample_destroy(r);
    }
}

static void steering_bends_time_smoothly(void **state)
{
    (void)state;
    enum { N = 40000, RAMP = 8000 };
    static float x[N], y[N];
    wt_resample *resampler = NULL;
    int n_used, n_first, n_rest;
    for (int n = 0; n < N; n++) x[n] = (float)sin(0.3 * n);
    assert_ok(wt_resample_create(&(wt_resample_config){48000, 48000, 1, 0, true}, &resampler));
    wt_resample_process(resampler, (const float *[]){x}, N, &n_used, (float *[]){y}, 5000, &n_first);
    assert_int_equal(wt_resample_steer(resampler, 1.05, RAMP), WT_OK);
    assert_int_equal(wt_resample_steer(resampler, 1.2, RAMP), WT_ERR_BAD_ARG);
    wt_resample_process(resampler, (const float *[]){x + n_used}, N - n_used, &n_used, (float *[]){y + n_first},
                        N - n_first, &n_rest);
    double t = 0, step = 1, error = 0;
    for (int n = 0; n < n_first + n_rest; n++) {
        if (n > 1000) error = fmax(error, fabs(y[n] - sin(0.3 * t)));
        t += step;
        if (n >= 5000 && step < 1.05) step = fmin(1.05, step + 0.05 / RAMP);
    }
    assert_true(n_first + n_rest > 37000);
    if (!(error < 1e-5)) fail_msg("off by %g", error); // the ramp's 2^-40 steps sum up to 4e-7 frames
    wt_resample_reset(resampler);
    assert_int_equal(wt_resample_steer(resampler, 1.1, 0), WT_OK); // at once
    wt_resample_process(resampler, (const float *[]){x}, N, &n_used, (float *[]){y}, N, &n_first);
    assert_in_range(n_first, (N - 1000) * 10 / 11, N * 10 / 11);
    wt_resample_destroy(resampler);

    assert_ok(wt_resample_create(&(wt_resample_config){48000, 44100, 1, 0, false}, &resampler));
    assert_int_equal(wt_resample_steer(resampler, 1, 0), WT_ERR_STATE);
    wt_resample_destroy(resampler);
}

// ---- plans

enum { LINES = 35, PLAN_IN = 2503 }; // a warp of blends has 32 lines


// Tiles with and without their taps in shared memory, of several groups, two to a line; blends; what has no tile.
static const wt_resample_config plan_ways[] = {
    {44100, 48000, 1, WT_RESAMPLE_BEST, false},      {48000, 44100, 1, WT_RESAMPLE_FAST, false},
    {44101, 47999, 1, WT_RESAMPLE_BEST, false},      {47999, 16001, 1, WT_RESAMPLE_FAST, false},
    {44100, 22050, 1, WT_RESAMPLE_SOXR_HQ, false},   {48000, 16000, 1, WT_RESAMPLE_SOXR_HQ, false},
    {8000, 24000, 1, WT_RESAMPLE_SOXR_HQ, false},    {22050, 16000, 1, WT_RESAMPLE_POLYPHASE, false},
    {44101, 47999, 1, WT_RESAMPLE_POLYPHASE, false}, {48000, 16000, 1, WT_RESAMPLE_FAST, false},
    {22050, 16000, 1, WT_RESAMPLE_FAST, false},      {1000, 3000, 1, WT_RESAMPLE_BEST, false},
    {48000, 1000, 1, WT_RESAMPLE_BEST, false},       {1009, 1013, 1, WT_RESAMPLE_FAST, false},
    {44100, 48000, 1, WT_RESAMPLE_SOXR_HQ, false},   {44100, 24000, 1, WT_RESAMPLE_SOXR_HQ, false},
    {16000, 22050, 1, WT_RESAMPLE_SOXR_HQ, false},   {44100, 8000, 1, WT_RESAMPLE_SOXR_HQ, false},
    {44101, 48000, 1, WT_RESAMPLE_SOXR_HQ, false},   {48000, 44101, 1, WT_RESAMPLE_SOXR_HQ, false},
    {75167221, 47352382, 1, WT_RESAMPLE_SOXR_HQ, 0}, {44100, 44100, 1, WT_RESAMPLE_SOXR_HQ, false}};

static float *plan_input(void)
{
    float *in = malloc(sizeof *in * LINES * PLAN_IN);
    uint64_t seed = 11;
    for (int n = 0; n < LINES * PLAN_IN; n++) in[n] = noise(&seed);
    return in;
}

// All lines through a plan; the caller frees them.
static float *run_plan(wt_device *device, const wt_resample_config *way, const float *in, int *n_out)
{
    wt_resample_plan *plan = NULL;
    wt_stream *stream = NULL;
    wt_buffer *from = NULL, *to = NULL;
    const wt_resample_plan_config config = {way->in_hz, way->out_hz, way->quality, LINES, PLAN_IN};
    assert_ok(wt_resample_plan_create(device, &config, &plan));
    *n_out = wt_resample_plan_out_frames(plan);
    const size_t in_bytes = sizeof(float) * LINES * PLAN_IN, out_bytes = sizeof(float) * LINES * (size_t)*n_out;
    float *out = malloc(out_bytes);
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, in_bytes, &from));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, out_bytes, &to));
    assert_ok(wt_stream_upload(stream, from, 0, in, in_bytes));
    for (int turn = 0; turn < 2; turn++) assert_ok(wt_resample_plan_enqueue(plan, stream, from, 0, to, 0));
    assert_ok(wt_stream_download(stream, out, to, 0, out_bytes));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(wt_resample_plan_enqueue(plan, stream, from, 4, to, 0), WT_ERR_BAD_ARG);
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
    wt_stream_destroy(stream);
    wt_resample_plan_destroy(plan);
    return out;
}

// 140 dB: taps and sums in double, rounded to float once. 110 dB: float sums of hundreds of taps in another order.
static double plan_bound_db(const wt_resample_config *way)
{
    return way->quality == WT_RESAMPLE_BEST ? 140 : 110;
}

static void plans_on_the_cpu_agree_with_their_judge(void **state)
{
    (void)state;
    wt_device *device = NULL;
    float *in = plan_input();
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &device));
    for (int i = 0; i < LENGTH(plan_ways); i++) {
        wt__resample_table table;
        size_t size_bytes;
        int n_out;
        float *out = run_plan(device, &plan_ways[i], in, &n_out), *want = malloc(sizeof *want * (size_t)n_out);
        assert_ok(wt__resample_table_create(&plan_ways[i], &table));
        wt_resample_args args = wt__resample_args_of(&table, LINES, PLAN_IN, n_out);
        void *taps = wt__resample_turned_taps(&table, &size_bytes);
        args.in = in;
        args.taps = taps;
        for (int line = 0; line < LINES; line += LINES - 1) {
            for (int n = 0; n < n_out; n++)
                want[n] = (float)wt__resample_ref(&args, table.wide, table.interpolated, line, n);
            assert_snr_db(want, out + (size_t)line * (size_t)n_out, (size_t)n_out, plan_bound_db(&plan_ways[i]));
        }
        free(taps);
        free(want);
        free(out);
        wt__resample_table_destroy(&table);
    }
    free(in);
    wt_device_close(device);
}

// One tap after the other by its definition. 1e-13: 640 taps of a row are divided by their sum.
static void taps_are_kaisers_window_of_a_sinc(void **state)
{
    (void)state;
    const wt_resample_config config = {22050, 16000, 1, WT_RESAMPLE_BEST, false};
    const double shrink = 16000.0 / 22050, half = ceil((158 - 8) / (2.285 * M_PI * (1 - 0.955)) / shrink / 2),
                 cutoff = shrink * (1 + 0.955) / 2, beta = 0.1102 * (158 - 8.7);
    wt__resample_table t;
    assert_ok(wt__resample_table_create(&config, &t));
    assert_int_equal(t.n_phases, 320);
    for (int row = 0; row < t.n_phases; row += 29) {
        double want[1024], sum = 0;
        assert_true(t.n_taps <= 1024);
        for (int k = 0; k < t.n_taps; k++) {
            const double at = t.before - k + row / 320.0, x = M_PI * cutoff * at, share = at / half;
            want[k] = fabs(share) >= 1 ? 0
                                       : (at == 0 ? 1 : sin(x) / x) * wt__bessel_i0(beta * sqrt(1 - share * share));
            sum += want[k];
        }
        for (int k = 0; k < t.n_taps; k++) assert_true(fabs(t.taps[row * t.n_taps + k] - want[k] / sum) < 1e-13);
    }
    wt__resample_table_destroy(&t);
}

static void plans_on_a_gpu_agree_with_the_cpu(void **state)
{
    (void)state;
    wt_device *cpu = NULL, *gpu = NULL;
    if (!wt_device_count()) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    float *in = plan_input();
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &cpu));
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &gpu));
    for (int i = 0; i < LENGTH(plan_ways); i++) {
        int n_cpu, n_gpu;
        float *want = run_plan(cpu, &plan_ways[i], in, &n_cpu), *got = run_plan(gpu, &plan_ways[i], in, &n_gpu);
        assert_int_equal(n_cpu, n_gpu);
        assert_snr_db(want, got, (size_t)LINES * (size_t)n_cpu, plan_bound_db(&plan_ways[i]));
        free(want);
        free(got);
    }
    free(in);
    wt_device_close(cpu);
    wt_device_close(gpu);
}

static void plans_refuse_what_they_cannot_do(void **state)
{
    (void)state;
    wt_device *device = NULL;
    wt_resample_plan *plan = NULL;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &device));
    const wt_resample_plan_config empty = {.in_hz = 2, .out_hz = 1}, long_one = {1, 256, WT_RESAMPLE_FAST, 1, 1 << 30};
    assert_fails(wt_resample_plan_create(device, &empty, &plan), WT_ERR_BAD_ARG,
                 "resample: 0 lines of 0 frames, want 0..65535 of 1 or more");
    assert_fails(wt_resample_plan_create(device, &long_one, &plan), WT_ERR_BAD_ARG,
                 "resample: 274877906944 output frames a line, want 1073741823 at most");
    assert_null(plan);
    wt_device_close(device);
}

static void refuses_what_it_cannot_resample(void **state)
{
    (void)state;
    wt_resample *resampler = NULL;
    assert_fails(wt_resample_create(&(wt_resample_config){.in_hz = 48000}, &resampler), WT_ERR_BAD_ARG,
                 "resample: 48000 to 0 Hz, want rates of 1..100000000");
    assert_fails(wt_resample_create(&(wt_resample_config){257, 1, 1, 0, false}, &resampler), WT_ERR_BAD_ARG,
                 "resample: 257 to 1 Hz, want a ratio within 1/256..256");
    assert_fails(wt_resample_create(&(wt_resample_config){2, 1, 1025, 0, false}, &resampler), WT_ERR_BAD_ARG,
                 "resample: 1025 channels, want 1..1024");
    assert_fails(wt_resample_create(&(wt_resample_config){2, 1, 1, WT_RESAMPLE_POLYPHASE, true}, &resampler),
                 WT_ERR_BAD_ARG, "resample: polyphase is not variable, want best or fast");
    assert_fails(wt_resample_create(&(wt_resample_config){2, 1, 1, 4, false}, &resampler), WT_ERR_BAD_ARG,
                 "resample: quality 4, want 0..3");
    assert_fails(wt_resample_create(&(wt_resample_config){2, 1, 1, WT_RESAMPLE_SOXR_HQ, true}, &resampler),
                 WT_ERR_BAD_ARG, "resample: soxr_hq is not variable, want best or fast");
    assert_null(resampler);
}

static wt_status create_resampler(void *user)
{
    return wt_resample_create(&(wt_resample_config){2, 3, 2, WT_RESAMPLE_FAST, false}, user);
}

static wt_status create_chain(void *user)
{
    return wt_resample_create(&(wt_resample_config){44101, 8000, 1, WT_RESAMPLE_SOXR_HQ, false}, user);
}

static void destroy_resampler(void *user)
{
    wt_resample_destroy(*(wt_resample **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_resample *resampler = NULL;
    assert_true(assert_survives_failing_alloc(create_resampler, destroy_resampler, &resampler) >= 5);
    assert_true(assert_survives_failing_alloc(create_chain, destroy_resampler, &resampler) >= 12);
}

static void resamples_in_the_audio_thread(void **state)
{
    (void)state;
    static float in[3000], out[9000];
    const wt_resample_config ways[] = {{2, 3, 1, 0, false}, {48000, 48000, 1, WT_RESAMPLE_FAST, true},
                                       {2, 1, 1, WT_RESAMPLE_SOXR_HQ, false},
                                       {44100, 24000, 1, WT_RESAMPLE_SOXR_HQ, false}};
    for (int k = 0; k < LENGTH(ways); k++) {
        wt_resample *resampler = NULL;
        int n_used, n_out;
        assert_ok(wt_resample_create(&ways[k], &resampler));
        RT_SECTION
        {
            if (ways[k].variable) wt_resample_steer(resampler, 1.01, 100);
            wt_resample_process(resampler, (const float *[]){in}, 3000, &n_used, (float *[]){out}, 9000, &n_out);
            wt_resample_drain(resampler, (float *[]){out}, 9000, &n_out);
            wt_resample_reset(resampler);
        }
        wt_resample_destroy(resampler);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_passes_sines_at_144_db),
        cmocka_unit_test(fast_passes_sines_at_105_db),
        cmocka_unit_test(nothing_above_the_nyquist_frequency_comes_through),
        cmocka_unit_test(best_keeps_97_percent_of_the_band),
        cmocka_unit_test(soxr_hq_is_soxrs_within_5e_7),
        cmocka_unit_test(soxr_hq_keeps_soxrs_time),
        cmocka_unit_test(every_block_size_and_channel_count_gives_the_same_bits),
        cmocka_unit_test(lengths_are_exact_and_ratios_reach_256),
        cmocka_unit_test(a_frame_comes_as_soon_as_the_latency_behind_it_is_known),
        cmocka_unit_test(steering_bends_time_smoothly),
        cmocka_unit_test(plans_on_the_cpu_agree_with_their_judge),
        cmocka_unit_test(taps_are_kaisers_window_of_a_sinc),
        cmocka_unit_test(plans_on_a_gpu_agree_with_the_cpu),
        cmocka_unit_test(plans_refuse_what_they_cannot_do),
        cmocka_unit_test(refuses_what_it_cannot_resample),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(resamples_in_the_audio_thread),
    };
    return cmocka_run_group_tests_name("resample", tests, NULL, NULL);
}
