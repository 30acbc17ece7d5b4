#include "support/failing_alloc.h"
#include "support/golden.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/stretch.h>

// librosa's STFT by its definition, in double, rounded once: a transform in float gives weak bins phases of noise,
// which a vocoder keeps until the bins are strong.
static void exact_stft(const float *pcm, int64_t n, int n_fft, int hop, int64_t n_frames, float *out)
{
    double *wave = malloc(sizeof *wave * 2 * (size_t)n_fft), *x = malloc(sizeof *x * (size_t)n_fft);
    assert_true(wave && x);
    for (int i = 0; i < n_fft; i++) {
        wave[2 * i] = cos(6.283185307179586477 * i / n_fft);
        wave[2 * i + 1] = -sin(6.283185307179586477 * i / n_fft);
    }
    for (int64_t t = 0; t < n_frames; t++) {
        for (int i = 0; i < n_fft; i++) {
            const int64_t at = t * hop - n_fft / 2 + i;
            x[i] = at >= 0 && at < n ? (0.5 - 0.5 * wave[2 * i]) * pcm[at] : 0;
        }
        for (int k = 0; k <= n_fft / 2; k++) {
            double re = 0, im = 0;
            for (int i = 0, turn = 0; i < n_fft; i++, turn = (turn + k) & (n_fft - 1)) {
                re += x[i] * wave[2 * turn];
                im += x[i] * wave[2 * turn + 1];
            }
            *out++ = (float)re;
            *out++ = (float)im;
        }
    }
    free(wave), free(x);
}

static void spectra_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("phase_vocoder", g)); n_cases++) {
        size_t n;
        const float *pcm = golden_input(g, 0, &n);
        const int n_fft = golden_int(g, "n_fft", 2048), hop = golden_int(g, "hop_length", 512);
        const int64_t n_in = 1 + (int64_t)n / hop;
        const size_t bins = (size_t)n_fft / 2 + 1;
        wt_phase_vocoder *vocoder;
        assert_ok(wt_phase_vocoder_create(NULL, &(wt_phase_vocoder_config){(int)bins, golden_double(g, "rate", 1)},
                                          &vocoder));
        const size_t n_out = (size_t)wt_phase_vocoder_frames(vocoder, n_in);
        float *in = malloc((size_t)n_in * bins * 2 * sizeof *in), *out = malloc(n_out * bins * 2 * sizeof *out),
              *turned = malloc(n_out * bins * 2 * sizeof *turned);
        assert_true(in && out && turned);
        exact_stft(pcm, (int64_t)n, n_fft, hop, n_in, in);
        wt_phase_vocoder_run(vocoder, in, n_in, out);
        for (size_t t = 0; t < n_out; t++)
            for (size_t k = 0; k < bins; k++) memcpy(turned + 2 * (k * n_out + t), out + 2 * (t * bins + k), 8);
        golden_check(g, turned, bins, n_out);
        wt_phase_vocoder_destroy(vocoder);
        free(in), free(out), free(turned);
    }
    assert_int_equal(n_cases, 3);
}

static void stretched_signals_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("time_stretch", g)); n_cases++) {
        size_t n;
        const float *pcm = golden_input(g, 0, &n);
        wt_stretch *plan;
        assert_ok(wt_stretch_create(NULL,
                                    &(wt_stretch_config){.mode = WT_STRETCH_LIBROSA,
                                                         .rate = golden_double(g, "rate", 1),
                                                         .n_fft = golden_int(g, "n_fft", 0),
                                                         .hop = golden_int(g, "hop_length", 0),
                                                         .n_samples = (int64_t)n},
                                    &plan));
        float *out = malloc((size_t)wt_stretch_n_out(plan) * sizeof *out);
        assert_non_null(out);
        RT_SECTION wt_stretch_run(plan, pcm, out);
        golden_check(g, out, 1, (size_t)wt_stretch_n_out(plan));
        wt_stretch_destroy(plan);
        free(out);
    }
    assert_int_equal(n_cases, 3);
}

static void shifted_signals_equal_librosas(void **state)
{
    (void)state;
    int n_cases = 0;
    for (const golden_case *g = NULL; (g = golden_next("pitch_shift", g)); n_cases++) {
        size_t n;
        const float *pcm = golden_input(g, 0, &n);
        wt_pitch_shift *plan;
        assert_ok(wt_pitch_shift_create(NULL,
                                        &(wt_pitch_shift_config){.mode = WT_STRETCH_LIBROSA,
                                                                 .rate_hz = golden_double(g, "sr", 22050),
                                                                 .n_steps = golden_double(g, "n_steps", 0),
                                                                 .bins_per_octave = golden_int(g, "bins_per_octave", 0),
                                                                 .scale = golden_int(g, "scale", 0) != 0,
                                                                 .n_samples = (int64_t)n},
                                        &plan));
        float *out = malloc(n * sizeof *out);
        assert_non_null(out);
        wt_pitch_shift_run(plan, pcm, out);
        golden_check(g, out, 1, n);
        wt_pitch_shift_destroy(plan);
        free(out);
    }
    assert_int_equal(n_cases, 9);
}

static void a_batch_gives_what_each_signal_gives(void **state)
{
    (void)state;
    enum { N = 9001, SIGNALS = 3 };
    wt_device *device;
    wt_stretch *one, *many;
    wt_stretch_config config = {.rate = 0.9, .n_fft = 400, .hop = 100, .n_samples = N};
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &device));
    assert_ok(wt_stretch_create(NULL, &config, &one));
    config.n_signals = SIGNALS;
    assert_ok(wt_stretch_create(device, &config, &many));
    const size_t n_out = (size_t)wt_stretch_n_out(one);
    assert_int_equal(n_out, 10001);
    float *pcm = malloc(sizeof *pcm * N * SIGNALS), *want = malloc(n_out * sizeof *want),
          *got = malloc(n_out * sizeof *got * SIGNALS);
    assert_true(pcm && want && got);
    uint64_t seed = 3;
    for (int i = 0; i < N * SIGNALS; i++) pcm[i] = noise(&seed);
    wt_stream *stream;
    wt_buffer *in, *out;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof *pcm * N * SIGNALS, &in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, n_out * sizeof *got * SIGNALS, &out));
    assert_ok(wt_stream_upload(stream, in, 0, pcm, sizeof *pcm * N * SIGNALS));
    assert_ok(wt_stretch_enqueue(many, stream, in, 0, out, 0));
    assert_ok(wt_stream_download(stream, got, out, 0, n_out * sizeof *got * SIGNALS));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < SIGNALS; s++) {
        wt_stretch_run(one, pcm + s * N, want);
        assert_memory_equal(want, got + (size_t)s * n_out, n_out * sizeof *want);
    }
    wt_buffer_destroy(in), wt_buffer_destroy(out), wt_stream_destroy(stream);
    wt_stretch_destroy(one), wt_stretch_destroy(many);
    wt_device_close(device);
    free(pcm), free(want), free(got);
}

// ---- on streams

static wt_status enqueue_stretch(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    return wt_stretch_enqueue(op, stream, in, in_offset, out, out_offset);
}

static wt_status enqueue_shift(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_pitch_shift_enqueue(op, stream, in, in_offset, out, out_offset);
}

typedef struct vocoder_call {
    wt_phase_vocoder *vocoder;
    int64_t n_frames;
    int n_lines;
} vocoder_call;

static wt_status enqueue_vocoder(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                                 size_t out_offset)
{
    const vocoder_call *c = op;
    return wt_phase_vocoder_enqueue(c->vocoder, stream, in, in_offset, c->n_frames, c->n_lines, out, out_offset);
}

// Harmonics of a gliding voice, each signal another one, over a little noise.
static float *voices(int n_signals, int64_t n)
{
    float *pcm = floats((size_t)(n_signals * n));
    uint64_t seed = 5;
    for (int s = 0; s < n_signals; s++) {
        double phase = 0;
        for (int64_t i = 0; i < n; i++) {
            phase += 6.283185307179586477 * (180 + 40 * s) * (1 + 0.2 * sin(2.0 * (double)i / 22050)) / 22050;
            const double tone = 0.3 * sin(phase) + 0.2 * sin(2 * phase) + 0.1 * sin(5 * phase);
            pcm[s * n + i] = (float)tone + 0.01f * noise(&seed);
        }
    }
    return pcm;
}

// Phases are unit vectors in double on both sides and never lose more than 1e-10: what is left is the rounding of the
// way back, however long the spectrogram. 20000 frames here: four minutes of audio at hop 256.
static void compare_vocoders(wt_device *device, double bound)
{
    enum { BINS = 65, LINES = 3 };
    static const struct {
        double rate;
        int64_t n_frames;
    } cases[] = {{1.3, 1}, {0.7, 101}, {2, 64}, {0.9, 20000}, {37.5, 90}};
    for (int i = 0; i < 5; i++) {
        wt_phase_vocoder *vocoder;
        const size_t row = (size_t)cases[i].n_frames * BINS * 2;
        assert_ok(wt_phase_vocoder_create(device, &(wt_phase_vocoder_config){BINS, cases[i].rate}, &vocoder));
        const size_t n_out = (size_t)wt_phase_vocoder_frames(vocoder, cases[i].n_frames) * BINS * 2;
        float *in = noise_floats(LINES * row, 7), *want = floats(LINES * n_out), *got = floats(LINES * n_out);
        memset(in + row / 2 / 2 * 2, 0, row / 4 / 2 * 2 * sizeof *in); // silence on the way: its angle is 0
        for (int s = 0; s < LINES; s++)
            wt_phase_vocoder_run(vocoder, in + (size_t)s * row, cases[i].n_frames, want + (size_t)s * n_out);
        vocoder_call call = {vocoder, cases[i].n_frames, LINES};
        run_on_stream(&(stream_call){device, enqueue_vocoder, &call}, in, LINES * row, got, LINES * n_out);
        assert_near_peak(want, got, LINES * n_out, bound, "phase vocoder");
        wt_phase_vocoder_destroy(vocoder);
        free(in), free(want), free(got);
    }
}

// Both transform in double and round once, and what vocoders keep from frame to frame is in double: what is left is the
// rounding of the way back. Attacks, and where pieces are taken, are the same samples.
static void check_stretch(wt_device *gpu, wt_stretch_config c)
{
    wt_stretch *plan, *one;
    assert_ok(wt_stretch_create(gpu, &c, &plan));
    const size_t n_signals = (size_t)c.n_signals, n = (size_t)c.n_samples, n_out = (size_t)wt_stretch_n_out(plan);
    float *pcm = voices(c.n_signals, c.n_samples), *want = floats(n_signals * n_out), *got = floats(n_signals * n_out),
          *alone = floats(n_out);
    char what[64];
    snprintf(what, sizeof what, "mode %d, rate %g, n_fft %d, hop %d", (int)c.mode, c.rate, c.n_fft, c.hop);
    for (size_t s = 0; s < n_signals && c.mode != WT_STRETCH_LOCKED; s++) // clicks: one alone, two near one another
        pcm[s * n + n / 5 + 7 * s] += 0.9f, pcm[s * n + n / 2] += 0.7f, pcm[s * n + n / 2 + (size_t)c.n_fft] -= 0.8f;
    wt_stretch_run(plan, pcm, want);
    run_on_stream(&(stream_call){gpu, enqueue_stretch, plan}, pcm, n_signals * n, got, n_signals * n_out);
    assert_near_peak(want, got, n_signals * n_out, 2e-6, what);
    c.n_signals = 1;
    assert_ok(wt_stretch_create(gpu, &c, &one));
    run_on_stream(&(stream_call){gpu, enqueue_stretch, one}, pcm + n, n, alone, n_out);
    assert_memory_equal(got + n_out, alone, n_out * sizeof *alone); // whatever the batch
    run_on_stream(&(stream_call){gpu, enqueue_stretch, one}, pcm + n, n, want, n_out);
    assert_memory_equal(want, alone, n_out * sizeof *alone); // and every time
    wt_stretch_destroy(plan), wt_stretch_destroy(one);
    free(pcm), free(want), free(got), free(alone);
}

static void a_gpu_stretches_as_the_cpu_does(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    for (wt_stretch_mode mode = WT_STRETCH_TRANSIENT; mode <= WT_STRETCH_LIBROSA; mode++) {
        check_stretch(gpu, (wt_stretch_config){mode, 1.25, 2048, 512, 22050, 3, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 0.6, 400, 100, 9001, 2, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 1.7, 256, 100, 5000, 2, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 2, 8192, 2048, 12000, 2, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 3, 64, 32, 200, 2, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 1.5, 401, 100, 5000, 2, 0}); // what no block holds
        check_stretch(gpu, (wt_stretch_config){mode, 0.8, 10240, 2560, 30000, 2, 0});
        check_stretch(gpu, (wt_stretch_config){mode, 1.3, 4099, 1024, 20000, 2, 0});
    }
    check_stretch(gpu, (wt_stretch_config){WT_STRETCH_WSOLA, 1.25, 1024, 512, 22050, 3, 0});
    check_stretch(gpu, (wt_stretch_config){WT_STRETCH_WSOLA, 0.6, 400, 100, 9001, 2, 0});
    check_stretch(gpu, (wt_stretch_config){WT_STRETCH_WSOLA, 1, 253, 127, 5000, 2, 0});
    check_stretch(gpu, (wt_stretch_config){WT_STRETCH_WSOLA, 0.5, 65, 80, 300, 2, 0});
    // what shared memory does not hold
    check_stretch(gpu, (wt_stretch_config){WT_STRETCH_WSOLA, 1.5, 9001, 4500, 30000, 2, 0});
    wt_device_close(gpu);
}

static void compare_shifts(wt_device *device, bool keep_formants, double bound)
{
    enum { N = 15000, SIGNALS = 2 };
    static const double steps[] = {4, -7, 12, -3};
    float *pcm = voices(SIGNALS, N), *want = floats(SIGNALS * N), *got = floats(SIGNALS * N);
    for (int i = 0; i < 4; i++) {
        wt_pitch_shift *plan;
        const wt_pitch_shift_config config = {.mode = WT_STRETCH_LIBROSA,
                                              .n_steps = steps[i],
                                              .scale = i == 1,
                                              .n_fft = i == 3 ? 1009 : keep_formants && i == 1 ? 400 : 0,
                                              .n_samples = N,
                                              .n_signals = SIGNALS,
                                              .keep_formants = keep_formants,
                                              .formant_order = i == 2 ? 60 : 0};
        assert_ok(wt_pitch_shift_create(device, &config, &plan));
        wt_pitch_shift_run(plan, pcm, want);
        run_on_stream(&(stream_call){device, enqueue_shift, plan}, pcm, SIGNALS * N, got, SIGNALS * N);
        assert_near_peak(want, got, SIGNALS * N, bound, keep_formants ? "kept formants" : "pitch shift");
        wt_pitch_shift_destroy(plan);
    }
    free(pcm), free(want), free(got);
}

static void streams_give_the_same_bits(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    compare_vocoders(cpu, 0);
    compare_shifts(cpu, false, 0);
    compare_shifts(cpu, true, 0);
    wt_device_close(cpu);
}

static void a_gpu_vocodes_and_shifts_as_the_cpu_does(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    compare_vocoders(gpu, 2e-6);
    compare_shifts(gpu, false, 2e-6);
    // librosa's vocoder gives weak bins, here noise 40 dB down, phases that hang on their last digit, and keeps them:
    // white noise of half a unit of the last place added to its input moves what comes out by 1.2e-5 of the peak. So
    // all before it runs in double and is rounded once: both sides hand it the same floats but for ties
    compare_shifts(gpu, true, 2e-6);
    wt_device_close(gpu);
}

static void silence_stays_silent(void **state)
{
    (void)state;
    float pcm[3000] = {0}, out[6000];
    wt_stretch *plan;
    assert_ok(wt_stretch_create(NULL, &(wt_stretch_config){.rate = 0.5, .n_samples = 3000}, &plan));
    wt_stretch_run(plan, pcm, out);
    for (int i = 0; i < 6000; i++) assert_true(out[i] == 0);
    wt_stretch_destroy(plan);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_stretch *stretch = NULL;
    wt_pitch_shift *shift = NULL;
    wt_phase_vocoder *vocoder = NULL;
    assert_fails(wt_stretch_create(NULL, &(wt_stretch_config){.rate = -1, .n_samples = 9}, &stretch), WT_ERR_BAD_ARG,
                 "stretch: rate -1, want 1/256..256");
    assert_fails(wt_stretch_create(NULL, &(wt_stretch_config){.rate = 2}, &stretch), WT_ERR_BAD_ARG,
                 "stretch: signals of 0 samples, want 1 or more");
    assert_fails(wt_stretch_create(NULL, &(wt_stretch_config){.mode = 4, .n_samples = 9}, &stretch), WT_ERR_BAD_ARG,
                 "stretch: mode 4, want 0..3");
    assert_fails(wt_stretch_create(NULL, &(wt_stretch_config){.n_samples = 9, .hop = -1}, &stretch), WT_ERR_BAD_ARG,
                 "stretch: hop -1, want 1 or more");
    assert_fails(wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.n_steps = 100, .n_samples = 9}, &shift),
                 WT_ERR_BAD_ARG, "pitch_shift: 100 steps, want at most 8 octaves");
    assert_fails(wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.formant_order = -1, .n_samples = 9}, &shift),
                 WT_ERR_BAD_ARG, "pitch_shift: formant_order -1, want 0 or more");
    assert_fails(wt_phase_vocoder_create(NULL, &(wt_phase_vocoder_config){0, 1}, &vocoder), WT_ERR_BAD_ARG,
                 "phase_vocoder: 0 bins, want 1 or more");
    assert_true(!stretch && !shift && !vocoder);
}

static wt_status create(void *user)
{
    return wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.n_steps = 1, .n_samples = 3000}, user);
}

static wt_status create_transient(void *user)
{
    return wt_pitch_shift_create(
        NULL, &(wt_pitch_shift_config){.mode = WT_STRETCH_TRANSIENT, .n_steps = 1, .n_samples = 3000}, user);
}

static wt_status create_formants(void *user)
{
    return wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.n_steps = 1, .n_samples = 3000, .keep_formants = true},
                                 user);
}

static wt_status create_wsola(void *user)
{
    return wt_pitch_shift_create(
        NULL, &(wt_pitch_shift_config){.mode = WT_STRETCH_WSOLA, .n_steps = 1, .n_samples = 3000}, user);
}

static void destroy(void *user) { wt_pitch_shift_destroy(*(wt_pitch_shift **)user); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_pitch_shift *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
    assert_survives_failing_alloc(create_transient, destroy, &plan);
    assert_survives_failing_alloc(create_formants, destroy, &plan);
    assert_survives_failing_alloc(create_wsola, destroy, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_equal_librosas),          cmocka_unit_test(stretched_signals_equal_librosas),
        cmocka_unit_test(shifted_signals_equal_librosas),  cmocka_unit_test(a_batch_gives_what_each_signal_gives),
        cmocka_unit_test(streams_give_the_same_bits),      cmocka_unit_test(a_gpu_vocodes_and_shifts_as_the_cpu_does),
        cmocka_unit_test(a_gpu_stretches_as_the_cpu_does), cmocka_unit_test(silence_stays_silent),
        cmocka_unit_test(bad_input_gets_a_sentence),       cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("stretch", tests, NULL, NULL);
}
