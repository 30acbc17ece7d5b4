#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/spectral_check.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/stft.h>
#include <warptone/tuning.h>

// Golden results are rows by frames, ours frames by rows.
static void check_within(const golden_case *g, const float *x, size_t n_frames, size_t rows, double bound)
{
    double *y = malloc(n_frames * rows * sizeof *y);
    assert_non_null(y);
    for (size_t t = 0; t < n_frames; t++)
        for (size_t r = 0; r < rows; r++) y[r * n_frames + t] = x[t * rows + r];
    golden_check_within(g, y, rows, n_frames, bound);
    free(y);
}

static void check_turned(const golden_case *g, const float *x, size_t n_frames, size_t rows)
{
    check_within(g, x, n_frames, rows, g->bound);
}

typedef struct spectrogram {
    float *x; // [n_frames][bins]
    int64_t n_frames;
    int n_fft, bins;
} spectrogram;

static spectrogram spectrogram_of(const golden_case *g, int power)
{
    spectrogram s = {.n_fft = golden_int(g, "n_fft", 2048)};
    size_t n;
    const float *x = golden_input(g, 0, &n);
    const int hop = golden_int(g, "hop_length", strncmp(g->op, "chroma", 6) ? s.n_fft / 4 : 512);
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = s.n_fft, .hop = hop}, &stft));
    s.n_frames = wt_stft_frames(stft, (int64_t)n), s.bins = wt_stft_bins(stft);
    const size_t area = (size_t)s.n_frames * (size_t)s.bins;
    float *z = floats(2 * area);
    s.x = floats(area);
    assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, z), WT_OK);
    for (size_t i = 0; i < area; i++) {
        const float square = z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1];
        s.x[i] = power == 2 ? square : sqrtf(square);
    }
    wt_stft_destroy(stft);
    free(z);
    return s;
}

// ---- tuning

static wt_piptrack_config pitch_config(const golden_case *g, int n_fft)
{
    return (wt_piptrack_config){.rate_hz = golden_double(g, "sr", 22050),
                                .n_fft = n_fft,
                                .fmin_hz = golden_double(g, "fmin", 0),
                                .fmax_hz = golden_double(g, "fmax", 0),
                                .threshold = golden_double(g, "threshold", 0)};
}

static void peaks_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("piptrack", g));) {
        spectrogram s = spectrogram_of(g, 1);
        const size_t area = (size_t)s.n_frames * (size_t)s.bins;
        float *hz = floats(area), *height = floats(area);
        const wt_piptrack_config c = pitch_config(g, s.n_fft);
        assert_ok(wt_piptrack(&c, s.x, s.n_frames, hz, height));
        check_turned(g, strstr(g->name, "_pitches") ? hz : height, (size_t)s.n_frames, (size_t)s.bins);
        free(s.x), free(hz), free(height);
    }
}

static void tunings_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("estimate_tuning", g));) {
        spectrogram s = spectrogram_of(g, 1);
        double tuning;
        const wt_piptrack_config c = pitch_config(g, s.n_fft);
        assert_ok(wt_tuning_estimate(&c, s.x, s.n_frames, golden_int(g, "bins_per_octave", 0),
                                     golden_double(g, "resolution", 0), &tuning));
        golden_check_double(g, &tuning, 1, 1);
        free(s.x);
    }
}

// In parts of several lengths, three times: the same bits, of one peak too, and of none.
static void tunings_in_parts_are_those_of_the_whole(void **state)
{
    enum { BINS = 513, FRAMES = 60 };
    static float x[FRAMES * BINS];
    const wt_piptrack_config c = {.n_fft = 1024};
    uint64_t seed = 9;
    (void)state;
    for (int i = 0; i < FRAMES * BINS; i++) x[i] = (float)fabs(noise(&seed));
    for (int n_frames = FRAMES; n_frames >= 0; n_frames -= n_frames > 2 ? 29 : 1) {
        wt_tuning_walk *walk;
        double want, got = 0;
        if (n_frames == 1) memset(x, 0, BINS * sizeof *x), x[30] = 1;
        assert_ok(wt_tuning_estimate(&c, x, n_frames, 36, 0, &want));
        assert_ok(wt_tuning_walk_create(&c, 36, 0, &walk));
        for (int pass = 0; pass < WT_TUNING_PASSES; pass++) {
            for (int t = 0, n = 1; t < n_frames; t += n, n += 3)
                wt_tuning_walk_add(walk, x + t * BINS, n_frames - t < n ? n_frames - t : n);
            got = wt_tuning_walk_end_pass(walk);
        }
        if (got != want) fail_msg("%d frames: %.17g, want %.17g", n_frames, got, want);
        wt_tuning_walk_destroy(walk);
    }
    wt_tuning_walk *walk;
    assert_fails(wt_tuning_walk_create(&c, -1, 0, &walk), WT_ERR_BAD_ARG,
                 "tuning: -1 bins an octave in steps of 0.01, want 1 or more, and 1e-6..1");
    assert_null(walk);
}

static double tuning_of(const golden_case *g, int bins_per_octave)
{
    double tuning;
    if (golden_has(g, "tuning")) return golden_double(g, "tuning", 0);
    size_t n;
    const float *x = golden_input(g, 0, &n);
    wt_stft *stft;
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = 2048}, &stft));
    const int64_t n_frames = wt_stft_frames(stft, (int64_t)n);
    float *z = floats((size_t)n_frames * 2 * 1025);
    assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, z), WT_OK);
    for (int64_t i = 0; i < n_frames * 1025; i++) z[i] = hypotf(z[2 * i], z[2 * i + 1]);
    assert_ok(wt_tuning_estimate(&(wt_piptrack_config){.rate_hz = golden_double(g, "sr", 22050)}, z, n_frames,
                                 bins_per_octave, 0, &tuning));
    wt_stft_destroy(stft);
    free(z);
    return tuning;
}

// A transform that is tuned to its signal.
static void a_tuned_transform_equals_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("cqt_tuning_auto");
    size_t n;
    const float *x = golden_input(g, 0, &n);
    wt_cqt *cqt;
    assert_ok(wt_cqt_create(NULL, &(wt_cqt_config){.fmin_hz = 110, .n_bins = 60, .tuning = tuning_of(g, 12)}, 0, &cqt));
    const size_t frames = (size_t)wt_cqt_frames(cqt, (int64_t)n);
    float *z = floats(frames * 120), *turned = floats(frames * 120);
    assert_int_equal(wt_cqt_run(cqt, x, (int64_t)n, z), WT_OK);
    for (size_t t = 0; t < frames; t++)
        for (size_t k = 0; k < 60; k++) memcpy(turned + (k * frames + t) * 2, z + (t * 60 + k) * 2, 2 * sizeof(float));
    golden_check(g, turned, 60, frames);
    wt_cqt_destroy(cqt);
    free(z), free(turned);
}

// ---- chroma

static void banks_equal_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("chroma_filter", g));) {
        wt_chroma *chroma;
        const int n_fft = golden_int(g, "n_fft", 2048), n_chroma = golden_int(g, "n_chroma", 12);
        assert_ok(wt_chroma_create(NULL, &(wt_chroma_config){.n_fft = n_fft, .n_chroma = n_chroma,
                                                       .tuning = golden_double(g, "tuning", 0),
                                                       .centre_octave = golden_double(g, "ctroct", 0),
                                                       .octave_width = golden_double(g, "octwidth", 0),
                                                       .bank_norm = golden_int(g, "norm", 2) == 1 ? WT_CHROMA_NORM_1
                                                                                                  : WT_CHROMA_NORM_2,
                                                       .begin_at_a = !golden_int(g, "base_c", 1)}, &chroma));
        golden_check(g, wt_chroma_bank(chroma), (size_t)n_chroma, (size_t)n_fft / 2 + 1);
        wt_chroma_destroy(chroma);
    }
}

static void chroma_of_spectra_equals_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("chroma_stft", g));) {
        spectrogram s = spectrogram_of(g, 2);
        double tuning = golden_double(g, "tuning", 0);
        const wt_piptrack_config c = {.n_fft = s.n_fft};
        if (!golden_has(g, "tuning")) assert_ok(wt_tuning_estimate(&c, s.x, s.n_frames, 0, 0, &tuning));
        wt_chroma *chroma;
        wt_chroma_config config = {.n_fft = s.n_fft,
                                   .tuning = tuning,
                                   .n_chroma = golden_int(g, "n_chroma", 12),
                                   .bank_norm = WT_CHROMA_NORM_2};
        if (golden_int(g, "norm", 0) == 1) config.norm = WT_CHROMA_NORM_1;
        if (golden_int(g, "norm", 0) == 2) config.norm = WT_CHROMA_NORM_2;
        if (strstr(g->params, "norm=none")) config.norm = WT_CHROMA_NORM_NONE;
        assert_ok(wt_chroma_create(NULL, &config, &chroma));
        float *out = floats((size_t)s.n_frames * (size_t)config.n_chroma);
        assert_int_equal(wt_chroma_run(chroma, s.x, s.n_frames, out), WT_OK);
        check_turned(g, out, (size_t)s.n_frames, (size_t)config.n_chroma);
        wt_chroma_destroy(chroma);
        free(s.x), free(out);
    }
}

// [n_frames][12] of a case's signal, or of its given matrix.
static float *chroma_of(const golden_case *g, wt_chroma_norm norm, size_t *n_frames)
{
    size_t n, shape[2];
    const float *x = golden_input(g, 0, &n);
    golden_input_shape(g, 0, shape);
    const int bpo = golden_int(g, "bins_per_octave", 36);
    wt_chroma_cqt_config fold = {.bins_per_octave = bpo, .n_bins = bpo * golden_int(g, "n_octaves", 7), .norm = norm,
                                 .threshold = (float)golden_double(g, "threshold", 0)};
    float *magnitude, *out;
    if (shape[0] > 1) {
        *n_frames = shape[1], fold.n_bins = (int)shape[0], fold.bins_per_octave = 12;
        magnitude = floats(n);
        for (size_t i = 0; i < n; i++) magnitude[i % shape[1] * shape[0] + i / shape[1]] = x[i];
    } else {
        wt_cqt *cqt;
        assert_ok(wt_cqt_create(NULL, &(wt_cqt_config){.bins_per_octave = bpo, .n_bins = fold.n_bins,
                                                       .tuning = tuning_of(g, bpo), .magnitude = true}, 0, &cqt));
        *n_frames = (size_t)wt_cqt_frames(cqt, (int64_t)n);
        magnitude = floats(*n_frames * (size_t)fold.n_bins);
        assert_int_equal(wt_cqt_run(cqt, x, (int64_t)n, magnitude), WT_OK);
        wt_cqt_destroy(cqt);
    }
    out = floats(*n_frames * 12);
    assert_ok(wt_chroma_fold(&fold, magnitude, (int64_t)*n_frames, out));
    free(magnitude);
    return out;
}

static void chroma_of_constant_q_equals_librosas(void **state)
{
    (void)state;
    size_t n;
    for (const golden_case *g = NULL; (g = golden_next("chroma_cqt", g));) {
        float *out = chroma_of(g, golden_int(g, "norm", 0) == 2 ? WT_CHROMA_NORM_2 : WT_CHROMA_NORM_MAX, &n);
        check_turned(g, out, n, 12);
        free(out);
    }
    for (const golden_case *g = NULL; (g = golden_next("chroma_cens", g));) {
        float *chroma = chroma_of(g, WT_CHROMA_NORM_NONE, &n), *out = floats(n * 12);
        const bool max = golden_has(g, "norm") && !strncmp(golden_text(g, "norm", ""), "inf", 3);
        assert_ok(wt_chroma_cens(chroma, (int64_t)n, 12, golden_int(g, "win_len_smooth", 0),
                                 max ? WT_CHROMA_NORM_MAX : WT_CHROMA_NORM_2, out));
        check_turned(g, out, n, 12);
        free(chroma), free(out);
    }
    for (const golden_case *g = NULL; (g = golden_next("tonnetz", g));) {
        float *chroma = chroma_of(g, WT_CHROMA_NORM_MAX, &n), *out = floats(n * 6);
        assert_ok(wt_tonnetz(chroma, (int64_t)n, 12, out));
        check_turned(g, out, n, 6);
        free(chroma), free(out);
    }
}

static void silence_is_no_nan(void **state)
{
    (void)state;
    float x[4 * 1025] = {0}, out[4 * 12], centroid[4 * 6];
    double tuning;
    wt_chroma *chroma;
    assert_ok(wt_chroma_create(NULL, &(wt_chroma_config){0}, &chroma));
    assert_int_equal(wt_chroma_run(chroma, x, 4, out), WT_OK);
    for (int i = 0; i < 4 * 12; i++) assert_true(out[i] == 0);
    assert_ok(wt_chroma_cens(x, 4, 12, 0, WT_CHROMA_NORM_2, out));
    assert_fails(wt_chroma_cens(x, 4, 12, INT_MAX, WT_CHROMA_NORM_2, out), WT_ERR_BAD_ARG,
                 "chroma: window of 16777218 frames, want fewer");
    for (int i = 0; i < 4 * 12; i++) assert_true(out[i] == 0);
    assert_ok(wt_tonnetz(x, 4, 12, centroid));
    for (int i = 0; i < 4 * 6; i++) assert_true(centroid[i] == 0);
    assert_ok(wt_tuning_estimate(&(wt_piptrack_config){0}, x, 4, 0, 0, &tuning));
    assert_true(tuning == 0);
    wt_chroma_destroy(chroma);
}

// ---- many signals on a stream

enum { SIGNALS = 3, FRAMES = 21 };

static wt_status enqueue_chroma(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                size_t out_offset)
{
    return wt_chroma_enqueue(op, stream, in, in_offset, FRAMES, out, out_offset);
}

static wt_status enqueue_tonal(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_tonal_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Positive noise with a silent frame.
static float *stream_input(size_t n_in)
{
    float *x = noise_floats(SIGNALS * FRAMES * n_in, 17);
    for (size_t i = 0; i < SIGNALS * FRAMES * n_in; i++) x[i] = i / n_in % FRAMES == 5 ? 0 : x[i] * x[i] * x[i] * x[i];
    return x;
}

static void check_chroma(wt_device *device, wt_chroma_norm norm, int n_chroma)
{
    const wt_chroma_config c = {.n_fft = 1024, .n_chroma = n_chroma, .norm = norm, .channels = SIGNALS};
    const size_t n_in = 513, n_out = (size_t)n_chroma * FRAMES * SIGNALS;
    float *x = stream_input(n_in), *want = floats(n_out), *got = floats(n_out);
    wt_chroma *one, *many;
    assert_ok(wt_chroma_create(NULL, &c, &one));
    assert_ok(wt_chroma_create(device, &c, &many));
    assert_int_equal(wt_chroma_run(one, x, FRAMES, want), WT_OK);
    run_on_stream(&(stream_call){device, enqueue_chroma, many}, x, n_in * FRAMES * SIGNALS, got, n_out);
    assert_near_peak(want, got, n_out, 2e-6, "chroma of spectra");
    wt_chroma_destroy(one), wt_chroma_destroy(many);
    free(x), free(want), free(got);
}

static void check_tonal(wt_device *device, const wt_tonal_config *config, size_t n_in, size_t n_out, const char *what)
{
    wt_tonal_config c = *config;
    c.n_frames = FRAMES, c.n_signals = SIGNALS;
    float *x = stream_input(n_in), *want = floats(n_out * FRAMES), *got = floats(n_out * FRAMES * SIGNALS);
    wt_tonal *many;
    assert_ok(wt_tonal_create(device, &c, &many));
    run_on_stream(&(stream_call){device, enqueue_tonal, many}, x, n_in * FRAMES * SIGNALS, got,
                  n_out * FRAMES * SIGNALS);
    for (size_t s = 0; s < SIGNALS; s++) {
        const float *in = x + s * n_in * FRAMES;
        if (c.kind == WT_TONAL_FOLD) assert_ok(wt_chroma_fold(&c.fold, in, FRAMES, want));
        if (c.kind == WT_TONAL_CENS) assert_ok(wt_chroma_cens(in, FRAMES, (int)n_in, c.smooth, c.norm, want));
        if (c.kind == WT_TONAL_TONNETZ) assert_ok(wt_tonnetz(in, FRAMES, (int)n_in, want));
        assert_near_peak(want, got + s * n_out * FRAMES, n_out * FRAMES, 2e-6, what);
    }
    wt_tonal_destroy(many);
    free(x), free(want), free(got);
}

// Noise, then pure tones a little sharp, a frame of them not a number, silence, and one tone alone: A440 in its bin.
static float *tuned_spectra(int n_signals, int n_frames, int bins)
{
    float *x = noise_floats((size_t)n_signals * (size_t)n_frames * (size_t)bins, 23);
    for (int f = 0; f < n_signals * n_frames; f++)
        for (int k = 0; k < bins; k++) {
            float *m = x + (size_t)f * (size_t)bins + k;
            const double away = fmod(k + 0.1 * f, 17) - 8;
            const float bump = (float)exp(-away * away);
            const int signal = f / n_frames;
            *m = signal == 0 ? *m * *m : signal == 1 ? bump + 1e-3f * *m * *m : 0;
            if (signal == 3 && k == 40) *m = 1;
            if (signal == 1 && f % n_frames == 3 && k > 100) *m = NAN;
            if (signal == 1 && f % n_frames == 4 && k == 0) *m = NAN;
        }
    return x;
}

static void check_tunings(wt_device *device, const wt_tuning_config *config)
{
    enum { N = 4, N_FRAMES = 19 };
    wt_tuning_config c = *config;
    c.n_frames = N_FRAMES, c.n_signals = N;
    const size_t bins = (size_t)c.peaks.n_fft / 2 + 1, area = bins * N_FRAMES, bytes = N * area * sizeof(float);
    float *x = tuned_spectra(N, N_FRAMES, (int)bins), *got = floats(2 * N * area);
    float *want[] = {floats(area), floats(area)};
    double tunings[2][N], tuning;
    wt_tuning *plan;
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_tuning_create(device, &c, &plan));
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * bytes, &out));
    assert_ok(wt_stream_upload(stream, in, 0, x, bytes));
    for (int repeat = 0; repeat < 2; repeat++) {
        assert_ok(wt_tuning_enqueue(plan, stream, in, 0, out, 8));
        assert_ok(wt_stream_download(stream, tunings[repeat], out, 8, sizeof tunings[0]));
    }
    assert_ok(wt_tuning_enqueue_peaks(plan, stream, in, 0, out, 0, out, bytes));
    assert_ok(wt_stream_download(stream, got, out, 0, 2 * bytes));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < N; s++) {
        assert_ok(wt_tuning_estimate(&c.peaks, x + s * area, N_FRAMES, c.bins_per_octave, c.resolution, &tuning));
        if (tunings[0][s] != tuning || tunings[1][s] != tuning)
            fail_msg("signal %d: tunings %.17g and %.17g, want %.17g", s, tunings[0][s], tunings[1][s], tuning);
        assert_ok(wt_piptrack(&c.peaks, x + s * area, N_FRAMES, want[0], want[1]));
        for (size_t i = 0; i < 2 * area; i++) {
            const float w = want[i / area][i % area], g = got[(i / area * N + (size_t)s) * area + i % area];
            if (g != w && !(isnan(g) && isnan(w)))
                fail_msg("signal %d, frame %zu, bin %zu, %s: %.9g, want %.9g", s, i % area / bins, i % bins,
                         i < area ? "hz" : "height", g, w);
        }
    }
    assert_fails(wt_tuning_enqueue(plan, stream, in, 0, out, 4), WT_ERR_BAD_ARG,
                 "tuning: tuning offset 4, want a multiple of 8");
    assert_int_equal(wt_tuning_enqueue_peaks(plan, stream, in, 4, out, 0, out, bytes), WT_ERR_BAD_ARG);
    assert_int_equal(wt_tuning_enqueue_peaks(plan, stream, in, 0, out, 0, out, bytes + 4), WT_ERR_BAD_ARG);
    wt_tuning_destroy(plan), wt_stream_destroy(stream);
    wt_buffer_destroy(in), wt_buffer_destroy(out);
    free(x), free(want[0]), free(want[1]), free(got);
}

static void check_device(wt_device *device)
{
    // A bin is 11 Hz, A440 the 40th.
    check_tunings(device, &(wt_tuning_config){.peaks = {.n_fft = 1024, .rate_hz = 11264}});
    check_tunings(device, &(wt_tuning_config){.peaks = {.n_fft = 601, .fmin_hz = 1, .fmax_hz = 1e5, .threshold = 0.5},
                                              .bins_per_octave = 36,
                                              .resolution = 0.003});
    check_chroma(device, WT_CHROMA_NORM_MAX, 12);
    check_chroma(device, WT_CHROMA_NORM_1, 12);
    check_chroma(device, WT_CHROMA_NORM_2, 36);
    check_chroma(device, WT_CHROMA_NORM_NONE, 12);
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_FOLD, .fold = {.threshold = 0.1f}}, 252, 12, "fold");
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_FOLD, .fold = {.fmin_hz = 55, .n_bins = 75,
                                           .bins_per_octave = 24, .n_chroma = 24}}, 75, 24, "fold to 24");
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_CENS, .norm = WT_CHROMA_NORM_2}, 12, 12, "cens");
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_CENS, .smooth = -1}, 12, 12, "cens, not smoothed");
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_TONNETZ}, 12, 6, "tonnetz");
    check_tonal(device, &(wt_tonal_config){.kind = WT_TONAL_TONNETZ, .n_chroma = 36}, 36, 6, "tonnetz of 36");
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(cpu_device());
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device());
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_chroma *chroma = NULL;
    float x[12] = {0}, out[12];
    double tuning;
    assert_fails(wt_chroma_create(NULL, &(wt_chroma_config){.n_chroma = -1}, &chroma), WT_ERR_BAD_ARG,
                 "chroma: -1 rows, want 1..1024");
    assert_fails(wt_chroma_create(NULL, &(wt_chroma_config){.n_fft = 1}, &chroma), WT_ERR_BAD_ARG,
                 "chroma: n_fft 1, want 4..4194304");
    assert_null(chroma);
    assert_fails(wt_chroma_fold(&(wt_chroma_cqt_config){.n_bins = 12, .bins_per_octave = 13}, x, 1, out),
                 WT_ERR_BAD_ARG, "chroma: 12 bins, 13 an octave from 32.7032 Hz, want 1 or more, a multiple of 12, "
                                 "above 0");
    assert_fails(wt_tonnetz(x, -1, 12, out), WT_ERR_BAD_ARG, "chroma: -1 frames, want 0 or more");
    assert_fails(wt_tuning_estimate(&(wt_piptrack_config){0}, x, 0, -1, 0, &tuning), WT_ERR_BAD_ARG,
                 "tuning: -1 bins an octave in steps of 0.01, want 1 or more, and 1e-6..1");
    assert_fails(wt_piptrack(&(wt_piptrack_config){.n_fft = 1}, x, 1, out, out), WT_ERR_BAD_ARG,
                 "piptrack: n_fft 1, want 2..4194304");
    wt_tuning *plan;
    assert_fails(wt_tuning_create(NULL, &(wt_tuning_config){.n_signals = 2}, &plan), WT_ERR_BAD_ARG,
                 "tuning: 2 signals of 0 frames, want 1 or more");
    assert_fails(wt_tuning_create(NULL, &(wt_tuning_config){.n_frames = 1, .resolution = 2}, &plan), WT_ERR_BAD_ARG,
                 "tuning: 12 bins an octave in steps of 2, want 1 or more, and 1e-6..1");
    assert_null(plan);
    wt_chroma_destroy(NULL);
}

static wt_status create_chroma(void *user)
{
    return wt_chroma_create(NULL, &(wt_chroma_config){0}, (wt_chroma **)user);
}

static void destroy_chroma(void *user)
{
    wt_chroma_destroy(*(wt_chroma **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_chroma *chroma;
    assert_true(assert_survives_failing_alloc(create_chroma, destroy_chroma, &chroma) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_equal_librosas),
        cmocka_unit_test(tunings_equal_librosas),
        cmocka_unit_test(tunings_in_parts_are_those_of_the_whole),
        cmocka_unit_test(a_tuned_transform_equals_librosas),
        cmocka_unit_test(banks_equal_librosas),
        cmocka_unit_test(chroma_of_spectra_equals_librosas),
        cmocka_unit_test(chroma_of_constant_q_equals_librosas),
        cmocka_unit_test(silence_is_no_nan),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("chroma", tests, NULL, NULL);
}
