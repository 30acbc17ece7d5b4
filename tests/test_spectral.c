// Features of spectrograms, levels and silence, deltas and PCEN: the golden cases, what they refuse, silence and NaN.
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/delta.h>
#include <warptone/pcen.h>
#include <warptone/silence.h>
#include <warptone/spectral.h>

// Magnitudes [n_frames][bins] of a case's signal, by precise spectra: its bounds are of librosa's in double.
static float *magnitudes(const golden_case *g, wt_spectral_shape *shape)
{
    size_t n;
    const float *x = golden_input(g, 0, &n);
    wt_stft_config c = golden_stft_config(g);
    c.precise = true;
    wt_stft *stft;
    assert_ok(wt_stft_create(&c, &stft));
    *shape = (wt_spectral_shape){golden_int(g, "sr", 22050), c.n_fft, wt_stft_frames(stft, (int64_t)n)};
    const size_t count = (size_t)(shape->n_frames * wt_stft_bins(stft));
    float *s = floats(2 * count);
    assert_int_equal(wt_stft_forward(stft, x, (int64_t)n, s), WT_OK);
    for (size_t i = 0; i < count; i++) s[i] = (float)hypot(s[2 * i], s[2 * i + 1]);
    wt_stft_destroy(stft);
    return s;
}

static wt_status run_feature(const golden_case *g, const wt_spectral_shape *shape, const float *s, float *out)
{
    if (!strcmp(g->op, "spectral_centroid")) return wt_spectral_centroid(shape, s, out);
    if (!strcmp(g->op, "spectral_bandwidth"))
        return wt_spectral_bandwidth(shape, s, golden_double(g, "p", 0), !golden_int(g, "norm", 1), out);
    if (!strcmp(g->op, "spectral_rolloff"))
        return wt_spectral_rolloff(shape, s, golden_double(g, "roll_percent", 0), out);
    if (!strcmp(g->op, "spectral_flatness"))
        return wt_spectral_flatness(shape, s, golden_double(g, "power", 0), golden_double(g, "amin", 0), out);
    if (!strcmp(g->op, "poly_features")) return wt_spectral_polynomial(shape, s, golden_int(g, "order", 1), out);
    const wt_spectral_contrast_config c = {golden_double(g, "fmin", 0), golden_int(g, "n_bands", 0),
                                           golden_double(g, "quantile", 0), golden_int(g, "linear", 0)};
    return wt_spectral_contrast(shape, s, &c, out);
}

static void features_equal_librosas(void **state)
{
    (void)state;
    static const char *const ops[] = {"spectral_centroid", "spectral_bandwidth", "spectral_rolloff",
                                      "spectral_flatness", "spectral_contrast",  "poly_features"};
    for (int k = 0; k < 6; k++)
        for (const golden_case *g = NULL; (g = golden_next(ops[k], g));) {
            wt_spectral_shape shape;
            float *s = magnitudes(g, &shape), *out = floats(g->rows * g->columns);
            assert_int_equal(shape.n_frames, g->columns);
            assert_ok(run_feature(g, &shape, s, out));
            golden_check(g, out, g->rows, g->columns);
            free(s), free(out);
        }
}

static void levels_equal_librosas(void **state)
{
    (void)state;
    static const char *const names[] = {"rms_default", "rms_reflect_1000", "zcr_speech", "zcr_nocenter"};
    for (int k = 0; k < 4; k++) {
        const golden_case *g = golden_find(names[k]);
        size_t n;
        const float *x = golden_input(g, 0, &n);
        const wt_level_config c = {.frame_length = golden_int(g, "frame_length", 0),
                                   .hop = golden_int(g, "hop_length", 0),
                                   .no_center = !golden_int(g, "center", 1),
                                   .pad = k == 1 ? WT_STFT_PAD_REFLECT : WT_STFT_PAD_ZERO};
        float *out = floats(g->columns), *energy = floats(g->columns);
        assert_int_equal(wt_level_frames(&c, (int64_t)n), g->columns);
        assert_ok((k < 2 ? wt_level_rms : wt_level_zero_crossings)(&c, x, (int64_t)n, out));
        golden_check(g, out, 1, g->columns);
        assert_ok(wt_level_energy(&c, x, (int64_t)n, energy));
        for (size_t t = 0; t < g->columns && k < 2; t++)
            assert_float_equal(energy[t], out[t] * out[t], 4e-7 * energy[t]); // two roundings, squared
        free(out), free(energy);
    }
}

// Parseval of a windowed spectrum: the frames are weighted by the window.
static void rms_of_spectra_equals_librosas(void **state)
{
    (void)state;
    const golden_case *g = golden_find("rms_spectrum");
    wt_spectral_shape shape;
    float *s = magnitudes(g, &shape), *out = floats(g->columns);
    assert_ok(wt_spectral_rms(&shape, s, out));
    golden_check(g, out, 1, g->columns);
    free(s), free(out);
}

static void silence_is_cut_as_librosa_does(void **state)
{
    (void)state;
    static const char *const ops[] = {"trim", "split"};
    for (int k = 0; k < 2; k++)
        for (const golden_case *g = NULL; (g = golden_next(ops[k], g));) {
            size_t n;
            const float *x = golden_input(g, 0, &n);
            const wt_level_config c = {.frame_length = golden_int(g, "frame_length", 0),
                                       .hop = golden_int(g, "hop_length", 0)};
            const double top_db = golden_double(g, "top_db", 0);
            wt_span spans[64];
            int64_t count = 1;
            if (k) assert_ok(wt_silence_split(&c, top_db, x, 1, (int64_t)n, spans, 64, &count));
            else assert_ok(wt_silence_trim(&c, top_db, x, 1, (int64_t)n, spans));
            int got[128];
            for (int64_t i = 0; i < count; i++) got[2 * i] = (int)spans[i].begin, got[2 * i + 1] = (int)spans[i].end;
            golden_check_int(g, got, k ? (size_t)count : 1, 2);
        }
}

static void deltas_equal_librosas(void **state)
{
    (void)state;
    static const char *const modes[] = {"interp", "nearest", "mirror", "constant", "wrap"};
    for (const golden_case *g = NULL; (g = golden_next("delta", g));) {
        size_t n, shape[2];
        const float *x = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        wt_delta_config c = {golden_int(g, "width", 0), golden_int(g, "order", 0), 0, golden_double(g, "cval", 0)};
        for (int k = 0; k < 5; k++)
            if (!strcmp(golden_text(g, "mode", "interp"), modes[k])) c.mode = k;
        float *out = floats(n);
        assert_ok(wt_delta_run(&c, x, (int64_t)shape[0], (int64_t)shape[1], out));
        golden_check(g, out, shape[0], shape[1]);
        free(out);
    }
}

static void pcen_equals_librosas(void **state)
{
    (void)state;
    for (const golden_case *g = NULL; (g = golden_next("pcen", g));) {
        size_t n, shape[2];
        const float *x = golden_input(g, 0, &n);
        golden_input_shape(g, 0, shape);
        wt_pcen_config c = wt_pcen_defaults();
        c.rate_hz = golden_int(g, "sr", 0), c.hop = golden_int(g, "hop_length", 0);
        c.gain = golden_double(g, "gain", c.gain), c.bias = golden_double(g, "bias", c.bias);
        c.power = golden_double(g, "power", c.power), c.eps = golden_double(g, "eps", 0);
        c.time_constant_s = golden_double(g, "time_constant", 0);
        c.b = golden_double(g, "b", 0), c.max_size = golden_int(g, "max_size", 0);
        float *out = floats(n);
        assert_ok(wt_pcen_run(&c, x, (int64_t)shape[0], (int64_t)shape[1], NULL, false, out));
        golden_check(g, out, shape[0], shape[1]);
        free(out);
    }
}

static void pcen_goes_on_where_it_stopped(void **state)
{
    (void)state;
    const wt_pcen_config c = wt_pcen_defaults();
    float x[40], whole[40], parts[40];
    double memory;
    uint64_t seed = 1;
    for (int i = 0; i < 40; i++) x[i] = 1e6f * (1 + noise(&seed));
    assert_ok(wt_pcen_run(&c, x, 1, 40, NULL, false, whole));
    assert_ok(wt_pcen_run(&c, x, 1, 13, &memory, false, parts));
    assert_ok(wt_pcen_run(&c, x + 13, 1, 27, &memory, true, parts + 13));
    assert_memory_equal(whole, parts, sizeof whole);
}

static void flux_counts_what_bins_gain(void **state)
{
    (void)state;
    const float s[] = {1, 2, 3, 4, 1, 5, 0, 0, 0};
    float out[3];
    assert_ok(wt_spectral_flux(&(wt_spectral_shape){.n_fft = 4, .n_frames = 3}, s, out));
    assert_true(out[0] == 0 && out[1] == 5 && out[2] == 0);
}

static void silence_and_nan_have_defined_results(void **state)
{
    (void)state;
    float s[2 * 1025] = {0}, x[3000] = {0}, out[16 * 3];
    const wt_spectral_shape shape = {.n_frames = 2};
    for (int nan = 0; nan < 2; nan++) {
        if (nan) s[1025 + 7] = x[2999] = NAN;
        assert_ok(wt_spectral_centroid(&shape, s, out));
        assert_true(out[0] == 0 && isnan(out[1]) == nan);
        assert_ok(wt_spectral_bandwidth(&shape, s, 0, false, out));
        assert_true(out[0] == 0 && isnan(out[1]) == nan);
        assert_ok(wt_spectral_rolloff(&shape, s, 0, out));
        assert_true(out[0] == 0 && isnan(out[1]) == nan);
        assert_ok(wt_spectral_flatness(&shape, s, 0, 0, out));
        assert_float_equal(out[0], 1, 1e-6);
        assert_true(isnan(out[1]) == nan);
        assert_ok(wt_spectral_polynomial(&shape, s, 2, out));
        assert_true(out[0] == 0 && isnan(out[1]) == nan);
        assert_ok(wt_level_rms(NULL, x, 3000, out)); // 6 frames; the last two hold the last sample
        assert_true(out[0] == 0 && isnan(out[5]) == nan);
    }
    wt_span span;
    assert_ok(wt_silence_trim(NULL, 0, x, 1, 2000, &span)); // nothing is below the loudest: librosa keeps it all
    assert_true(span.begin == 0 && span.end == 2000);
    assert_ok(wt_level_rms(NULL, x, 1, out));
}

// ---- many signals on a stream

static wt_status enqueue_feature(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    return wt_spectral_enqueue(op, stream, in, in_offset, out, out_offset);
}

// Noise that falls with frequency, a silent frame, a frame of one bin; each signal louder than the one before.
static float *stream_magnitudes(int n_signals, int n_frames, int bins)
{
    float *m = noise_floats((size_t)n_signals * (size_t)n_frames * (size_t)bins, 9);
    for (int f = 0; f < n_signals * n_frames; f++)
        for (int k = 0; k < bins; k++) {
            float *x = m + (size_t)f * (size_t)bins + k;
            *x = fabsf(*x) * (float)(1 + f / n_frames) / (1 + 0.05f * (float)k);
            if (f % n_frames == 2 || (f % n_frames == 4 && k != 17)) *x = 0;
        }
    return m;
}

static void contrast_parts(const wt_spectral_shape *shape, const float *magnitude,
                           const wt_spectral_contrast_config *config, float *out)
{
    const int64_t count = 7 * shape->n_frames;
    assert_ok(wt_spectral_contrast_parts(shape, magnitude, config, out, out + count));
    for (int64_t k = 0; k < 2 * count && !config->linear; k++) out[k] = 10 * log10f(fmaxf(out[k], 1e-10f));
}

static void check_features(wt_device *device)
{
    enum { SIGNALS = 3, FRAMES = 13, N_FFT = 600, BINS = 301 };
    const wt_spectral_shape shape = {.n_fft = N_FFT, .n_frames = FRAMES};
    const wt_spectral_config configs[] = {{.kind = WT_SPECTRAL_CENTROID},
                                          {.kind = WT_SPECTRAL_BANDWIDTH},
                                          {.kind = WT_SPECTRAL_BANDWIDTH, .p = 3, .no_norm = true},
                                          {.kind = WT_SPECTRAL_ROLLOFF},
                                          {.kind = WT_SPECTRAL_ROLLOFF, .percent = 0.1},
                                          {.kind = WT_SPECTRAL_FLATNESS},
                                          {.kind = WT_SPECTRAL_FLATNESS, .power = 1, .amin = 1e-6},
                                          {.kind = WT_SPECTRAL_FLUX},
                                          {.kind = WT_SPECTRAL_RMS},
                                          {.kind = WT_SPECTRAL_POLYNOMIAL, .order = 1},
                                          {.kind = WT_SPECTRAL_POLYNOMIAL, .order = 5},
                                          {.kind = WT_SPECTRAL_CONTRAST},
                                          {.kind = WT_SPECTRAL_CONTRAST, .contrast = {.quantile = 0.2, .linear = true}},
                                          {.kind = WT_SPECTRAL_CONTRAST_PARTS},
                                          {.kind = WT_SPECTRAL_CONTRAST_PARTS, .contrast = {.linear = true}}};
    float *m = stream_magnitudes(SIGNALS, FRAMES, BINS);
    for (size_t k = 0; k < sizeof configs / sizeof *configs; k++) {
        wt_spectral_config c = configs[k];
        c.shape = shape;
        wt_spectral *many, *one;
        assert_ok(wt_spectral_create(NULL, &c, &one));
        c.n_signals = SIGNALS;
        assert_ok(wt_spectral_create(device, &c, &many));
        const size_t rows = (size_t)wt_spectral_rows(many), count = rows * FRAMES;
        assert_int_equal(wt_spectral_rows(one), rows);
        float *got = floats(SIGNALS * count), *want = floats(count);
        run_on_stream(&(stream_call){device, enqueue_feature, many}, m, SIGNALS * FRAMES * BINS, got, SIGNALS * count);
        for (int s = 0; s < SIGNALS; s++) {
            char what[64];
            snprintf(what, sizeof what, "case %zu, signal %d", k, s);
            const float *in = m + (size_t)s * FRAMES * BINS;
            switch (c.kind) {
            case WT_SPECTRAL_CENTROID: assert_ok(wt_spectral_centroid(&shape, in, want)); break;
            case WT_SPECTRAL_BANDWIDTH: assert_ok(wt_spectral_bandwidth(&shape, in, c.p, c.no_norm, want)); break;
            case WT_SPECTRAL_ROLLOFF: assert_ok(wt_spectral_rolloff(&shape, in, c.percent, want)); break;
            case WT_SPECTRAL_FLATNESS: assert_ok(wt_spectral_flatness(&shape, in, c.power, c.amin, want)); break;
            case WT_SPECTRAL_FLUX: assert_ok(wt_spectral_flux(&shape, in, want)); break;
            case WT_SPECTRAL_RMS: assert_ok(wt_spectral_rms(&shape, in, want)); break;
            case WT_SPECTRAL_POLYNOMIAL: assert_ok(wt_spectral_polynomial(&shape, in, c.order, want)); break;
            case WT_SPECTRAL_CONTRAST: assert_ok(wt_spectral_contrast(&shape, in, &c.contrast, want)); break;
            case WT_SPECTRAL_CONTRAST_PARTS:
                contrast_parts(&shape, in, &c.contrast, want);
                break;
            }
            for (size_t row = 0; row < rows; row++) // a polynomial's coefficients have peaks of their own
                assert_near_peak(want + row * FRAMES, got + (size_t)s * count + row * FRAMES, FRAMES,
                                 c.kind == WT_SPECTRAL_ROLLOFF ? 0 : 2e-6, what);
        }
        wt_spectral_destroy(one), wt_spectral_destroy(many);
        free(got), free(want);
    }
    free(m);
}

static wt_status enqueue_delta(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_delta_enqueue(op, stream, in, in_offset, out, out_offset);
}

static wt_status enqueue_pcen(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    return wt_pcen_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_deltas(wt_device *device)
{
    enum { ROWS = 7, FRAMES = 75, COUNT = ROWS * FRAMES };
    float *x = noise_floats(COUNT, 4), *want = floats(COUNT), *got = floats(COUNT);
    for (int mode = WT_DELTA_INTERP; mode <= WT_DELTA_WRAP; mode++)
        for (int order = 1; order < 3; order++) {
            const wt_delta_config c = {
                .width = mode ? 9 : 13, .order = order, .mode = (wt_delta_mode)mode, .constant = 2};
            wt_delta *plan;
            assert_ok(wt_delta_create(device, &c, ROWS, FRAMES, &plan));
            assert_ok(wt_delta_run(&c, x, ROWS, FRAMES, want));
            run_on_stream(&(stream_call){device, enqueue_delta, plan}, x, COUNT, got, COUNT);
            assert_near_peak(want, got, COUNT, 2e-6, "delta");
            wt_delta_destroy(plan);
        }
    free(x), free(want), free(got);
}

static void check_pcen(wt_device *device)
{
    enum { SIGNALS = 2, ROWS = 5, FRAMES = 101, AREA = ROWS * FRAMES };
    const wt_pcen_config configs[] = {{.gain = 0.98, .bias = 2, .power = 0.5},
                                      {.gain = 0.8, .bias = 0, .power = 0.3, .time_constant_s = 2},
                                      {.gain = 0.98, .bias = 2, .power = 0, .b = 1, .max_size = 4}};
    float *x = noise_floats(SIGNALS * AREA, 6), *want = floats(AREA), *got = floats(SIGNALS * AREA);
    for (int i = 0; i < SIGNALS * AREA; i++) x[i] *= x[i] * (i % FRAMES < 10 ? 1e-9f : 1e3f);
    for (int k = 0; k < 3; k++) {
        wt_pcen *plan;
        assert_ok(wt_pcen_create(device, &configs[k], SIGNALS, ROWS, FRAMES, &plan));
        run_on_stream(&(stream_call){device, enqueue_pcen, plan}, x, SIGNALS * AREA, got, SIGNALS * AREA);
        for (int s = 0; s < SIGNALS; s++) {
            assert_ok(wt_pcen_run(&configs[k], x + s * AREA, ROWS, FRAMES, NULL, false, want));
            assert_near_peak(want, got + s * AREA, AREA, 2e-6, "pcen");
        }
        wt_pcen_destroy(plan);
    }
    free(x), free(want), free(got);
}

static wt_status enqueue_pcen_parts(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                    size_t out_offset)
{
    static const int64_t ends[] = {1, 1, 33, 97, 101};
    wt_buffer *state;
    assert_ok(wt_buffer_create(wt_stream_device(stream), WT_MEMORY_DEVICE, 8 + 10 * sizeof(double), &state));
    wt_pcen_part part = {0};
    wt_status status = WT_OK;
    for (int k = 0; k < 5 && !status; k++) {
        part.n_frames = ends[k] - part.from;
        status = wt_pcen_enqueue_part(op, stream, in, in_offset, &part, state, 8, out, out_offset);
        part.from = ends[k], part.continued = true;
    }
    if (!status) status = wt_stream_synchronize(stream);
    wt_buffer_destroy(state);
    return status;
}

/// Two signals of five bands in parts, one of them empty, as the whole.
static void check_pcen_parts(wt_device *device)
{
    enum { SIGNALS = 2, ROWS = 5, FRAMES = 101, AREA = ROWS * FRAMES };
    wt_pcen_config c = wt_pcen_defaults();
    float *x = noise_floats(SIGNALS * AREA, 7), *want = floats(AREA), *got = floats(SIGNALS * AREA);
    for (int i = 0; i < SIGNALS * AREA; i++) x[i] *= x[i] * 1e6f;
    for (c.max_size = 1; c.max_size < 4; c.max_size += 2) {
        wt_pcen *plan;
        assert_ok(wt_pcen_create(device, &c, SIGNALS, ROWS, FRAMES, &plan));
        run_on_stream(&(stream_call){device, enqueue_pcen_parts, plan}, x, SIGNALS * AREA, got, SIGNALS * AREA);
        for (int s = 0; s < SIGNALS; s++) {
            assert_ok(wt_pcen_run(&c, x + s * AREA, ROWS, FRAMES, NULL, false, want));
            assert_near_peak(want, got + s * AREA, AREA, 2e-6, "pcen in parts");
        }
        wt_pcen_destroy(plan);
    }
    free(x), free(want), free(got);
}

static void check_device(wt_device *device)
{
    check_pcen_parts(device);
    check_deltas(device);
    check_pcen(device);
    check_features(device);
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
    float s[1025] = {0}, out[64];
    const wt_spectral_shape one = {.n_frames = 1};
    assert_fails(wt_spectral_centroid(&(wt_spectral_shape){.n_fft = -4}, s, out), WT_ERR_BAD_ARG,
                 "spectral: rate 22050 Hz, n_fft -4, 0 frames, want 1, 1 and 0 or more");
    assert_fails(wt_spectral_rolloff(&one, s, 1.5, out), WT_ERR_BAD_ARG,
                 "spectral: roll-off at 1.5, want between 0 and 1");
    assert_fails(wt_spectral_bandwidth(&one, s, -1, false, out), WT_ERR_BAD_ARG,
                 "spectral: bandwidth of order -1, want more than 0");
    assert_fails(wt_spectral_contrast(&one, s, &(wt_spectral_contrast_config){.n_bands = 7}, out), WT_ERR_BAD_ARG,
                 "spectral: contrast band from 12800 Hz, want all below 11025");
    wt_spectral *plan = NULL;
    assert_fails(wt_spectral_create(NULL, &(wt_spectral_config){.shape = one, .p = -2, .kind = WT_SPECTRAL_BANDWIDTH},
                                    &plan), WT_ERR_BAD_ARG,
                 "spectral: bandwidth of order -2, want more than 0");
    assert_fails(wt_spectral_create(NULL, &(wt_spectral_config){.kind = WT_SPECTRAL_FLUX}, &plan), WT_ERR_BAD_ARG,
                 "spectral: 1 signals of 0 frames, want 1 or more");
    assert_null(plan);
    assert_fails(wt_spectral_polynomial(&one, s, 11, out), WT_ERR_BAD_ARG,
                 "spectral: order 11 of 1025 bins, want 0..10");
    assert_fails(wt_level_rms(&(wt_level_config){.hop = -1}, s, 100, out), WT_ERR_BAD_ARG,
                 "level: hop -1, want 1 or more");
    assert_fails(wt_level_rms(&(wt_level_config){.no_center = true}, s, 100, out), WT_ERR_LENGTH,
                 "level: no frame of 2048 in 100 samples");
    assert_fails(wt_level_rms(NULL, s, 0, out), WT_ERR_LENGTH, "level: no frame of 2048 in 0 samples");
    assert_fails(wt_delta_run(NULL, s, 1, 8, out), WT_ERR_LENGTH,
                 "delta: 8 frames, want 9 or more (the width, in mode interp)");
    assert_fails(wt_delta_run(&(wt_delta_config){.width = 4}, s, 1, 8, out), WT_ERR_BAD_ARG,
                 "delta: width 4, want an odd one of 3..1023");
    assert_fails(wt_pcen_run(&(wt_pcen_config){.hop = -1}, s, 1, 1, NULL, false, out), WT_ERR_BAD_ARG,
                 "pcen: rate 22050 Hz, hop -1, want 1 or more");
    assert_fails(wt_pcen_run(&(wt_pcen_config){.b = 2}, s, 1, 1, NULL, false, out), WT_ERR_BAD_ARG,
                 "pcen: b 2, want 0..1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_equal_librosas),
        cmocka_unit_test(levels_equal_librosas),
        cmocka_unit_test(rms_of_spectra_equals_librosas),
        cmocka_unit_test(silence_is_cut_as_librosa_does),
        cmocka_unit_test(deltas_equal_librosas),
        cmocka_unit_test(pcen_equals_librosas),
        cmocka_unit_test(pcen_goes_on_where_it_stopped),
        cmocka_unit_test(flux_counts_what_bins_gain),
        cmocka_unit_test(silence_and_nan_have_defined_results),
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
    };
    return cmocka_run_group_tests_name("spectral", tests, NULL, NULL);
}
