#include "support/realtime.h"
#include "support/spectral_check.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stft.h>
#include <warptone/stft_stream.h>

typedef struct stft_case {
    int n, n_frames, length, n_back;
    uint64_t seed;
    const double *spectrum, *back;
    wt_stft_config config;
} stft_case;

#include "golden/stft_golden.h"

static float *noise_block(size_t count, uint64_t seed)
{
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = noise(&seed);
    return x;
}

static void assert_near(const double *want, const float *got, size_t count, double bound, const char *what)
{
    double peak = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        peak = fmax(peak, fabs(want[i]));
        double off = fabs(got[i] - want[i]);
        if (!(off <= worst)) worst = off; // also when it is not a number
    }
    if (!(worst <= bound * peak)) fail_msg("%s: %.2g of the peak, want %.2g", what, worst / peak, bound);
}

// What a way back gives is divided by what the frames' squared windows add up to. Where that is 0.1 and more a bound
// holds as it is; below, a frame's error counts by the root of it: so many times the bound each sample has. Caller
// frees.
static float *rooms(const wt_stft_config *c, int64_t n_frames, size_t length)
{
    const int n_fft = c->n_fft ? c->n_fft : 2048, n = c->win_length ? c->win_length : n_fft, before = (n_fft - n) / 2;
    const int hop = c->hop ? c->hop : n / 4, margin = c->no_center ? 0 : n_fft / 2;
    const int64_t used = ((int64_t)length + 2 * margin + hop - 1) / hop; // frames behind the samples add nothing
    float *window = floats((size_t)n_fft), *room = floats(length);
    wt_window_config shape = c->window;
    shape.n = n;
    assert_ok(wt_window_fill(&shape, window + before));
    for (size_t i = 0; i < length; i++) {
        double cover = 0;
        for (int64_t t = 0; t < n_frames && t < used; t++) {
            const int64_t at = (int64_t)i + margin - t * hop;
            if (at >= 0 && at < n_fft) cover += (double)window[at] * window[at];
        }
        room[i] = cover == 0 ? 0 : cover < 0.1 ? (float)sqrt(0.1 / cover) : 1;
    }
    free(window);
    return room;
}

// Bounds: a few roundings of float next to the peak (window, product, transform); the engine wants 1e-6.
static void assert_back(const stft_case *k, const float *back)
{
    float *room = rooms(&k->config, k->n_frames, (size_t)k->n_back);
    double peak = 0;
    for (int i = 0; i < k->n_back; i++) peak = fmax(peak, fabs(k->back[i]));
    for (int i = 0; i < k->n_back; i++)
        if (!(fabs(back[i] - k->back[i]) <= 5e-7 * peak * room[i]))
            fail_msg("inverse, n_fft %d: sample %d is off by %.2g of the peak, want %.2g", k->config.n_fft, i,
                     fabs(back[i] - k->back[i]) / peak, 5e-7 * room[i]);
    free(room);
}

static void spectra_and_signals_equal_librosas(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stft_cases / sizeof *stft_cases; i++) {
        const stft_case *k = &stft_cases[i];
        wt_stft *stft;
        assert_ok(wt_stft_create(&k->config, &stft));
        float *x = noise_block((size_t)k->n, k->seed);
        size_t floats = 2 * (size_t)k->n_frames * (size_t)wt_stft_bins(stft);
        float *spectrum = malloc(floats * sizeof *spectrum), *back = malloc((size_t)k->n_back * sizeof *back);
        assert_int_equal(wt_stft_frames(stft, k->n), k->n_frames);
        assert_int_equal(wt_stft_forward(stft, x, k->n, spectrum), WT_OK);
        assert_near(k->spectrum, spectrum, floats, 2e-7, "forward");
        if (!k->length) assert_int_equal(wt_stft_samples(stft, k->n_frames), k->n_back);
        assert_int_equal(wt_stft_inverse(stft, spectrum, k->n_frames, k->length, back), WT_OK);
        assert_back(k, back);
        wt_stft_destroy(stft);
        free(x), free(spectrum), free(back);
    }
}

static void a_signal_comes_back(void **state)
{
    (void)state;
    static const wt_stft_config configs[] = {{.n_fft = 2048},
                                             {.n_fft = 400, .hop = 160},
                                             {.n_fft = 1024, .hop = 512, .win_length = 800},
                                             {.n_fft = 63, .hop = 9}};
    const int n = 22050;
    float *x = noise_block(2 * (size_t)n, 3), *back = malloc(2 * (size_t)n * sizeof *back);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        wt_stft_config config = configs[i];
        config.channels = 2;
        wt_stft *stft;
        assert_ok(wt_stft_create(&config, &stft));
        int64_t n_frames = wt_stft_frames(stft, n);
        float *spectrum = malloc((size_t)n_frames * (size_t)wt_stft_bins(stft) * 4 * sizeof *spectrum);
        assert_int_equal(wt_stft_forward(stft, x, n, spectrum), WT_OK);
        assert_int_equal(wt_stft_inverse(stft, spectrum, n_frames, n, back), WT_OK);
        assert_snr_db(x, back, 2 * (size_t)n, 130); // two transforms of 130 dB and more each, averaged by the overlap
        wt_stft_destroy(stft);
        free(spectrum);
    }
    free(x), free(back);
}

// ---- the golden set

static void the_golden_spectra(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("stft", g));) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        wt_stft_config c = golden_stft_config(g);
        wt_stft *stft;
        assert_ok(wt_stft_create(&c, &stft));
        const size_t frames = (size_t)wt_stft_frames(stft, (int64_t)n), bins = (size_t)wt_stft_bins(stft);
        float *out = floats(2 * frames * bins);
        assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, out), WT_OK);
        float *rows = turned(out, frames, bins, 2);
        golden_check(g, rows, bins, frames);
        wt_stft_destroy(stft);
        free(rows);
        c.precise = true;
        assert_ok(wt_stft_create(&c, &stft));
        assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, out), WT_OK);
        rows = turned(out, frames, bins, 2);
        assert_true(golden_error(g, rows, bins, frames) <= g->goal); // one rounding: 6e-8 of each bin
        wt_stft_destroy(stft);
        free(out), free(rows);
    }
}

// Lengths of Bluestein's algorithm among them; and of a loud and a quiet bin each has its own digits.
static void sizes_are_those_of_the_spectra(void **state)
{
    (void)state;
    static const int lengths[] = {400, 37, 74, 1021, 2048};
    enum { N = 5000 };
    float *x = floats(N);
    uint64_t seed = 5;
    for (int i = 0; i < N; i++) x[i] = noise(&seed);
    for (int i = 0; i < 5 * 4; i++) {
        const bool precise = i / 5 % 2, powers = i / 10;
        wt_stft *stft, *exact;
        wt_stft_config c = {.n_fft = lengths[i % 5], .hop = 100, .precise = precise};
        assert_ok(wt_stft_create(&c, &stft));
        c.precise = !precise;
        assert_ok(wt_stft_create(&c, &exact));
        const size_t count = (size_t)wt_stft_frames(stft, N) * (size_t)wt_stft_bins(stft);
        float *sizes = floats(count), *spectra = floats(2 * count);
        double peak = 0;
        assert_int_equal(wt_stft_forward_real(stft, x, N, powers, sizes), WT_OK);
        assert_int_equal(wt_stft_forward(exact, x, N, spectra), WT_OK);
        for (size_t k = 0; k < count; k++) peak = fmax(peak, fabs(sizes[k]));
        for (size_t k = 0; k < count; k++) {
            const double size = hypot(spectra[2 * k], spectra[2 * k + 1]), want = powers ? size * size : size;
            if (!(fabs(sizes[k] - want) <= 1e-6 * peak))
                fail_msg("n_fft %d, precise %d, [%zu]: %.9g, want %.9g of %g", c.n_fft, precise, k, (double)sizes[k],
                         want, peak);
        }
        assert_int_equal(wt_stft_forward_real(stft, x, 0, powers, sizes), WT_ERR_LENGTH);
        wt_stft_destroy(stft), wt_stft_destroy(exact);
        free(sizes), free(spectra);
    }
    free(x);
}

static void the_golden_signals(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("istft", g));) {
        size_t n;
        const float *x = golden_input(g, 0, &n);
        wt_stft_config c = golden_stft_config(g);
        const int zero_every = golden_int(g, "zero_every", 0), length = golden_int(g, "length", 0);
        wt_stft *stft;
        assert_ok(wt_stft_create(&c, &stft));
        const int64_t frames = wt_stft_frames(stft, (int64_t)n), bins = wt_stft_bins(stft);
        float *spectrum = floats((size_t)(2 * frames * bins));
        assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, spectrum), WT_OK);
        for (int64_t i = 0; i < frames * bins && zero_every; i++)
            if (i % bins % zero_every == 0) spectrum[2 * i] = spectrum[2 * i + 1] = 0;
        const int64_t n_back = length ? length : wt_stft_samples(stft, frames);
        float *back = floats((size_t)n_back);
        assert_int_equal(wt_stft_inverse(stft, spectrum, frames, length, back), WT_OK);
        golden_check(g, back, 1, (size_t)n_back);
        wt_stft_destroy(stft);
        free(spectrum), free(back);
    }
}

// ---- plans

enum { N = 9001, SIGNALS = 3, CHANNELS = 2, LINES = SIGNALS * CHANNELS };

static const wt_stft_plan_config shapes[] = {
    {.stft = {.n_fft = 2048}},
    {.stft = {.n_fft = 400, .hop = 160, .pad = WT_STFT_PAD_REFLECT}, .length = 9000},
    {.stft = {.n_fft = 512, .hop = 100, .win_length = 401, .pad = WT_STFT_PAD_EDGE}},
    {.stft = {.n_fft = 1000, .hop = 250, .window = {.kind = WT_WINDOW_HAMMING}, .no_center = true}},
    {.stft = {.n_fft = 63, .hop = 9, .pad = WT_STFT_PAD_RAMP}},
    {.stft = {.n_fft = 8192, .hop = 1000, .pad = WT_STFT_PAD_SYMMETRIC}},
    {.stft = {.n_fft = 2048}, .output = WT_STFT_MAGNITUDE},
    {.stft = {.n_fft = 2048}, .output = WT_STFT_POWER},
    {.stft = {.n_fft = 90, .hop = 30, .precise = true}},
    {.stft = {.n_fft = 2048, .precise = true}, .output = WT_STFT_MAGNITUDE},
    {.stft = {.n_fft = 1021, .hop = 200, .precise = true}, .length = 8000}, // Bluestein's algorithm
    {.stft = {.n_fft = 16384, .hop = 4000, .pad = WT_STFT_PAD_REFLECT}}, // on a GPU by memory from here on
    {.stft = {.n_fft = 1021, .hop = 200, .win_length = 800, .pad = WT_STFT_PAD_RAMP}, .length = 8000},
    {.stft = {.n_fft = 34, .hop = 17, .no_center = true, .window = {.kind = WT_WINDOW_RECTANGULAR}}},
    {.stft = {.n_fft = 16384, .pad = WT_STFT_PAD_SYMMETRIC}, .output = WT_STFT_POWER},
    {.stft = {.n_fft = 1, .hop = 1}, .output = WT_STFT_MAGNITUDE},
    {.stft = {.n_fft = 4099, .hop = 1000}, .output = WT_STFT_MAGNITUDE},
    {.stft = {.n_fft = 10240, .hop = 2000, .win_length = 10000}},
    {.stft = {.n_fft = 20011, .hop = 1000}},
    {.stft = {.n_fft = 65536, .hop = 200}}, // more than one tile
};

static wt_status enqueue_forward(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    return wt_stft_plan_forward(op, stream, in, in_offset, out, out_offset);
}

static wt_status enqueue_inverse(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    return wt_stft_plan_inverse(op, stream, in, in_offset, out, out_offset);
}

// What the immediate calls give for all lines.
static float *forward_of(const wt_stft_plan_config *c, const float *x, int64_t *frames, int *bins)
{
    wt_stft_config config = c->stft;
    config.channels = LINES;
    wt_stft *stft;
    assert_ok(wt_stft_create(&config, &stft));
    *frames = wt_stft_frames(stft, N), *bins = wt_stft_bins(stft);
    const size_t count = (size_t)(LINES * *frames * *bins);
    float *out = floats(2 * count);
    assert_int_equal(wt_stft_forward(stft, x, N, out), WT_OK);
    for (size_t i = 0; i < count && c->output; i++) {
        float power = out[2 * i] * out[2 * i] + out[2 * i + 1] * out[2 * i + 1];
        out[i] = c->output == WT_STFT_POWER ? power : sqrtf(power);
    }
    wt_stft_destroy(stft);
    return out;
}

static void assert_near_where_covered(const wt_stft_config *c, int64_t n_frames, const float *want, const float *got,
                                      size_t length, double bound)
{
    float *room = rooms(c, n_frames, length);
    double peak = 0;
    for (size_t i = 0; i < LINES * length; i++) peak = fmax(peak, fabs(want[i]));
    for (size_t i = 0; i < LINES * length; i++) {
        const double off = fabs((double)want[i] - got[i]), here = bound * room[i % length];
        if (!(off <= here * peak))
            fail_msg("inverse, n_fft %d: sample %zu is off by %.2g of the peak, want %.2g", c->n_fft, i % length,
                     off / peak, here);
    }
    free(room);
}

static void check_plans(wt_device *device, double bound)
{
    float *x = noise_floats(LINES * N, 6);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        wt_stft_plan_config c = shapes[k];
        int64_t frames;
        int bins;
        float *spectra = forward_of(&c, x, &frames, &bins);
        c.n_samples = N, c.n_signals = SIGNALS, c.stft.channels = CHANNELS;
        wt_stft_plan *plan;
        assert_ok(wt_stft_plan_create(device, &c, &plan));
        const size_t n_out = (size_t)(LINES * frames * bins) * (c.output ? 1 : 2);
        const size_t length = (size_t)wt_stft_plan_length(plan);
        assert_int_equal(wt_stft_plan_frames(plan), frames);
        float *got = floats(n_out), *want = floats(LINES * length), *back = floats(LINES * length);
        run_on_stream(&(stream_call){device, enqueue_forward, plan}, x, LINES * N, got, n_out);
        // the squares here and there are contracted otherwise
        assert_near_peak(spectra, got, n_out, c.output && bound < 2e-7 ? 2e-7 : bound, "forward");
        if (!c.output) {
            wt_stft *stft;
            wt_stft_config config = c.stft;
            config.channels = LINES;
            assert_ok(wt_stft_create(&config, &stft));
            assert_int_equal(wt_stft_inverse(stft, spectra, frames, c.length, want), WT_OK);
            run_on_stream(&(stream_call){device, enqueue_inverse, plan}, spectra, n_out, back, LINES * length);
            assert_near_where_covered(&c.stft, frames, want, back, length, bound);
            wt_stft_destroy(stft);
        }
        wt_stft_plan_destroy(plan);
        free(spectra), free(got), free(want), free(back);
    }
    free(x);
    wt_device_close(device);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *many; // more threads than lines, which share them
    check_plans(cpu_device(), 0);
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = LINES + 3}, &many));
    check_plans(many, 0);
}

static void cuda_equals_the_cpu(void **state)
{
    (void)state;
    check_plans(gpu_device(), 2e-6);
}

// Frames side by side share a transform on a GPU: loud, silent, 300 dB below, not finite.
static void a_quiet_frame_keeps_its_digits_on_cuda(void **state)
{
    (void)state;
    enum { N_FFT = 512, FRAMES = 9, BINS = N_FFT / 2 + 1 };
    const float levels[FRAMES] = {1, 0, 1e-15f, 1e5f, NAN, 1, 1e-15f, INFINITY, 1e-3f};
    const wt_stft_config c = {.n_fft = N_FFT, .hop = N_FFT, .no_center = true, .precise = true};
    wt_device *device = gpu_device();
    float *x = noise_floats(FRAMES * N_FFT, 3), *want = floats(FRAMES * BINS), *got = floats(FRAMES * BINS);
    for (int i = 0; i < FRAMES * N_FFT; i++) x[i] *= levels[i / N_FFT];
    wt_stft *stft;
    wt_stft_plan *plan;
    assert_ok(wt_stft_create(&c, &stft));
    assert_int_equal(wt_stft_forward_real(stft, x, FRAMES * N_FFT, false, want), WT_OK);
    assert_ok(wt_stft_plan_create(
        device, &(wt_stft_plan_config){.stft = c, .n_samples = FRAMES * N_FFT, .output = WT_STFT_MAGNITUDE}, &plan));
    run_on_stream(&(stream_call){device, enqueue_forward, plan}, x, FRAMES * N_FFT, got, FRAMES * BINS);
    for (int t = 0; t < FRAMES; t++)
        for (int k = 0; k < BINS; k++) {
            const float w = want[t * BINS + k], g = got[t * BINS + k];
            if (isfinite(levels[t]) ? !(fabsf(g - w) <= 1e-6f * fabsf(w)) : !isnan(g) || !isnan(w))
                fail_msg("frame %d, bin %d: %.9g, want %.9g", t, k, (double)g, (double)w);
        }
    wt_stft_plan_destroy(plan);
    wt_stft_destroy(stft);
    free(x), free(want), free(got);
    wt_device_close(device);
}

static void plans_refuse_bad_shapes(void **state)
{
    (void)state;
    wt_device *device = cpu_device();
    wt_stft_plan *plan = NULL;
    assert_fails(wt_stft_plan_create(NULL, &(wt_stft_plan_config){.n_samples = 9}, &plan), WT_ERR_BAD_ARG,
                 "stft: a plan without a device");
    assert_fails(wt_stft_plan_create(device, &(wt_stft_plan_config){.n_samples = 0}, &plan), WT_ERR_BAD_ARG,
                 "stft: 0 samples, length 0, 0 frames, want samples or frames, none below 0");
    assert_fails(
        wt_stft_plan_create(device, &(wt_stft_plan_config){.n_samples = 9, .stft = {.no_center = true}}, &plan),
        WT_ERR_LENGTH, "stft: 0 frames of 9 samples, want 1..1073741823 (n_fft 2048)");
    assert_fails(wt_stft_plan_create(device, &(wt_stft_plan_config){.n_samples = 9, .n_signals = -2}, &plan),
                 WT_ERR_BAD_ARG, "stft: -2 signals, want 1 or more");
    assert_fails(wt_stft_plan_create(device, &(wt_stft_plan_config){.n_samples = 9, .output = 7}, &plan),
                 WT_ERR_BAD_ARG, "stft: output 7, want 0..3");
    assert_null(plan);
    wt_stft_plan_destroy(NULL);
    wt_device_close(device);
}

// ---- streams

static void run_stream(wt_stft_stream *s, const float *x, float *y, int n, const int *blocks, int n_blocks)
{
    for (int done = 0, k = 0; done < n; k++) {
        int count = blocks[k % n_blocks] < n - done ? blocks[k % n_blocks] : n - done;
        const float *in[2] = {x + done, x + n + done};
        float *out[2] = {y + done, y + n + done};
        wt_stft_stream_process(s, in, count, out, NULL, NULL);
        done += count;
    }
}

static void streams_give_the_delayed_input_for_any_blocks(void **state)
{
    (void)state;
    static const wt_stft_config configs[] = {{.n_fft = 512, .hop = 128, .channels = 2},
                                             {.n_fft = 400, .hop = 160, .channels = 2},
                                             {.n_fft = 63, .hop = 9, .win_length = 40, .channels = 2}};
    static const int one[] = {1}, odd[] = {64, 63, 253, 1, 65}, all[] = {1 << 20};
    for (int k = 0; k < 3; k++) {
        wt_stft_stream *s;
        float *x = noise_floats(2 * N, 4), *y[3];
        assert_ok(wt_stft_stream_create(&configs[k], &s));
        for (int i = 0; i < 3; i++) {
            y[i] = floats(2 * N);
            wt_stft_stream_reset(s);
            run_stream(s, x, y[i], N, i == 0 ? one : i == 1 ? odd : all, i == 1 ? 5 : 1);
            assert_memory_equal(y[0], y[i], 2 * N * sizeof(float));
        }
        const int latency = wt_stft_stream_latency_frames(s);
        for (int c = 0; c < 2; c++) {
            for (int i = 0; i < latency; i++) assert_float_equal(y[0][c * N + i], 0, 1e-6); // roundings
            assert_snr_db(x + c * N, y[0] + c * N + latency, (size_t)(N - latency), 130);   // see a_signal_comes_back
        }
        wt_stft_stream_destroy(s);
        free(x), free(y[0]), free(y[1]), free(y[2]);
    }
}

typedef struct keeper {
    float *frames;
    int64_t n;
    int bins;
} keeper;

static void keep(void *user, int64_t t, float *spectrum)
{
    keeper *k = user;
    assert_int_equal(t, k->n++);
    memcpy(k->frames + t * 2 * k->bins, spectrum, 2 * (size_t)k->bins * sizeof *spectrum);
}

static void stream_frames_are_those_of_the_whole_signal(void **state)
{
    (void)state;
    const wt_stft_config config = {.n_fft = 512, .hop = 128, .no_center = true};
    float *x = noise_floats(384 + N, 4);
    memset(x, 0, 384 * sizeof *x);
    wt_stft *stft;
    assert_ok(wt_stft_create(&config, &stft));
    const int64_t frames = wt_stft_frames(stft, 384 + N);
    keeper k = {floats((size_t)frames * 2 * 257), 0, 257};
    float *want = floats((size_t)frames * 2 * 257);
    assert_int_equal(wt_stft_forward(stft, x, 384 + N, want), WT_OK);
    wt_stft_stream *s;
    assert_ok(wt_stft_stream_create(&config, &s));
    const float *in = x + 384;
    RT_SECTION { wt_stft_stream_process(s, &in, N, NULL, keep, &k); }
    assert_int_equal(k.n, frames);
    assert_near_peak(want, k.frames, (size_t)frames * 2 * 257, 2e-7, "stream");
    wt_stft_stream_destroy(s);
    wt_stft_destroy(stft);
    free(x), free(want), free(k.frames);
}

static void streams_refuse_lost_samples(void **state)
{
    (void)state;
    wt_stft_stream *s = NULL;
    assert_fails(wt_stft_stream_create(&(wt_stft_config){.n_fft = 64, .hop = 65}, &s), WT_ERR_BAD_ARG,
                 "stft stream: hop 65, want at most n_fft 64");
    assert_fails(wt_stft_stream_create(&(wt_stft_config){.n_fft = 64, .hop = 64}, &s), WT_ERR_BAD_ARG,
                 "stft stream: hop 64 leaves sample 0 of it under no window of 64"); // a periodic Hann begins with 0
    assert_null(s);
    wt_stft_stream_destroy(NULL);
}

static void silence_gives_silence(void **state)
{
    (void)state;
    float x[100] = {0}, spectrum[2 * 33 * 10], back[100];
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = 64, .hop = 16}, &stft));
    assert_int_equal(wt_stft_frames(stft, 100), 7);
    assert_int_equal(wt_stft_forward(stft, x, 100, spectrum), WT_OK);
    assert_int_equal(wt_stft_inverse(stft, spectrum, 7, 100, back), WT_OK);
    for (int i = 0; i < 2 * 33 * 7; i++) assert_true(spectrum[i] == 0);
    assert_memory_equal(x, back, sizeof x);
    wt_stft_destroy(stft);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_stft *stft = NULL;
    float x[8] = {0}, out[64];
    assert_fails(wt_stft_create(&(wt_stft_config){.n_fft = -1}, &stft), WT_ERR_BAD_ARG,
                 "stft: n_fft -1, want 1..4194304");
    assert_fails(wt_stft_create(&(wt_stft_config){.n_fft = 8, .win_length = 9}, &stft), WT_ERR_BAD_ARG,
                 "stft: win_length 9, want 1..8 (n_fft)");
    assert_fails(wt_stft_create(&(wt_stft_config){.n_fft = 8, .hop = -3}, &stft), WT_ERR_BAD_ARG,
                 "stft: hop -3, want 1..16777216");
    assert_fails(wt_stft_create(&(wt_stft_config){.n_fft = 3}, &stft), WT_ERR_BAD_ARG, "stft: hop 0, want 1..16777216");
    assert_fails(wt_stft_create(&(wt_stft_config){.hop = INT_MAX}, &stft), WT_ERR_BAD_ARG,
                 "stft: hop 2147483647, want 1..16777216");
    assert_fails(wt_stft_create(&(wt_stft_config){.channels = -1}, &stft), WT_ERR_BAD_ARG,
                 "stft: -1 channels, want 1 or more");
    assert_fails(wt_stft_create(&(wt_stft_config){.pad = 5}, &stft), WT_ERR_BAD_ARG, "stft: pad 5, want 0..4");
    assert_fails(wt_stft_create(&(wt_stft_config){.window = {.kind = WT_WINDOW_CUSTOM}}, &stft), WT_ERR_BAD_ARG,
                 "window: custom without samples");
    assert_null(stft);
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = 16, .no_center = true}, &stft));
    assert_int_equal(wt_stft_frames(stft, 8), 0);
    assert_int_equal(wt_stft_forward(stft, x, 8, out), WT_ERR_LENGTH);
    assert_int_equal(wt_stft_inverse(stft, out, 0, 8, x), WT_ERR_BAD_ARG);
    wt_stft_destroy(stft);
    wt_stft_destroy(NULL);
}

// More than 4 MiB of spectra go past the caches, from any address on, a few lines with each block of the next frame's
// passes: of radix 3 and 5 on 16 lanes, or 5 and 7 on 8, a block's share is no whole number of lines.
static void check_many_spectra(int n_fft, int hop)
{
    const int64_t bins = n_fft / 2 + 1, frames = (5 << 20) / (8 * bins), n = n_fft + (frames - 1) * hop;
    const size_t row = 2 * (size_t)bins, all = row * (size_t)frames;
    float *x = noise_block((size_t)n, 5), *many = calloc(all + 4, sizeof *many), *one = floats(row);
    assert_non_null(many);
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = n_fft, .hop = hop, .no_center = true}, &stft));
    for (int shift = 0; shift < 3; shift++) {
        float *y = many + shift;
        assert_int_equal(wt_stft_frames(stft, n), frames);
        assert_int_equal(wt_stft_forward(stft, x, n, y), WT_OK);
        for (int64_t t = 0; t < frames; t++) {
            assert_int_equal(wt_stft_forward(stft, x + t * hop, n_fft, one), WT_OK);
            assert_memory_equal(one, y + (size_t)t * row, row * sizeof *one);
        }
        assert_true(y[all] == 0); // nothing behind them was written
        memset(many, 0, (all + 4) * sizeof *many);
    }
    wt_stft_destroy(stft);
    free(x), free(many), free(one);
}

static void many_spectra_are_those_of_their_frames(void **state)
{
    (void)state;
    static const int n_ffts[] = {1200, 1536, 1792, 2048, 2400, 2816, 3000, 3328, 140000};
    for (size_t i = 0; i < sizeof n_ffts / sizeof *n_ffts; i++) check_many_spectra(n_ffts[i], n_ffts[i] / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_and_signals_equal_librosas),
        cmocka_unit_test(a_signal_comes_back),
        cmocka_unit_test(many_spectra_are_those_of_their_frames),
        cmocka_unit_test(the_golden_spectra),
        cmocka_unit_test(sizes_are_those_of_the_spectra),
        cmocka_unit_test(the_golden_signals),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(cuda_equals_the_cpu),
        cmocka_unit_test(a_quiet_frame_keeps_its_digits_on_cuda),
        cmocka_unit_test(plans_refuse_bad_shapes),
        cmocka_unit_test(streams_give_the_delayed_input_for_any_blocks),
        cmocka_unit_test(stream_frames_are_those_of_the_whole_signal),
        cmocka_unit_test(streams_refuse_lost_samples),
        cmocka_unit_test(silence_gives_silence),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("stft", tests, NULL, NULL);
}
