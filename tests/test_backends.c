// The same preset on the CPU and on a GPU, on real speech and music; and a user's own CUDA text.
#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>
#include <warptone/preset.h>

static wt_device *gpu;

static int open_gpu(void **state)
{
    (void)state;
    setenv("WARPTONE_PRESETS", "presets", 0);
    gpu = test_gpu();
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    wt_device_close(gpu);
    return 0;
}

// All of `x` ([channels][n]) through instance 0 on the GPU, in launches of odd lengths.
static float *run_on_gpu(wt_chain *chain, const float *x, int channels, int n)
{
    size_t in_bytes = sizeof(float) * (size_t)channels * (size_t)n;
    size_t out_bytes = sizeof(float) * (size_t)wt_chain_out_channels(chain) * (size_t)n;
    wt_buffer *in, *out;
    wt_stream *stream;
    float *y = malloc(out_bytes);
    assert_ok(wt_buffer_create(gpu, WT_MEMORY_DEVICE, in_bytes, &in));
    assert_ok(wt_buffer_create(gpu, WT_MEMORY_DEVICE, out_bytes, &out));
    assert_ok(wt_stream_create(gpu, NULL, &stream));
    assert_ok(wt_stream_upload(stream, in, 0, x, in_bytes));
    for (int done = 0, step; done < n; done += step) {
        step = n - done < 50001 ? n - done : 50001;
        const wt_chain_job job = {.in = in, .in_offset = sizeof(float) * (size_t)done, .in_stride = n, .out = out,
                                  .out_offset = sizeof(float) * (size_t)done, .out_stride = n, .n_frames = step};
        assert_ok(wt_chain_enqueue(chain, stream, &job, 1));
    }
    assert_ok(wt_stream_download(stream, y, out, 0, out_bytes));
    assert_ok(wt_stream_synchronize(stream));
    wt_stream_destroy(stream), wt_buffer_destroy(in), wt_buffer_destroy(out);
    return y;
}

static void compare(const wt_preset *preset, const wt_audio *audio)
{
    const wt_chain_config config = {.rate_hz = audio->rate_hz, .channels = audio->channels};
    wt_chain_config gpu_config = config;
    wt_chain *on_cpu, *on_gpu;
    int n = (int)audio->n_frames;
    gpu_config.device = gpu;
    if (wt_preset_channels(preset) && wt_preset_channels(preset) != audio->channels) return;
    assert_ok(wt_preset_build(preset, &config, &on_cpu));
    assert_ok(wt_preset_build(preset, &gpu_config, &on_gpu));
    int out_channels = wt_chain_out_channels(on_cpu);
    assert_int_equal(wt_chain_latency_frames(on_cpu), wt_chain_latency_frames(on_gpu));
    float *expected = calloc((size_t)out_channels * (size_t)n, sizeof *expected);
    const float *in[WT_AUDIO_MAX_CHANNELS];
    float *out[WT_AUDIO_MAX_CHANNELS];
    for (int c = 0; c < audio->channels; c++) in[c] = audio->samples + (size_t)c * (size_t)n;
    for (int c = 0; c < out_channels; c++) out[c] = expected + (size_t)c * (size_t)n;
    assert_int_equal(wt_chain_process(on_cpu, in, out, n), WT_OK);
    float *got = run_on_gpu(on_gpu, audio->samples, audio->channels, n);
    double snr = snr_db(expected, got, (size_t)out_channels * (size_t)n);
    printf("%-18s %d Hz, %d channels: %.1f dB\n", wt_preset_name(preset), audio->rate_hz, audio->channels, snr);
    if (snr < 90) fail_msg("%s: CPU and GPU agree to %.1f dB, want 90", wt_preset_name(preset), snr);
    free(expected), free(got);
    wt_chain_destroy(on_cpu), wt_chain_destroy(on_gpu);
}

// 90 dB: float rounding through recursive filters and detectors, sums in another order.
static void every_preset_agrees_on_speech_and_music(void **state)
{
    (void)state;
    char **names;
    int n_names;
    wt_audio speech, music;
    if (!gpu) skip();
    assert_ok(wt_audio_load("tests/data/jfk.flac", 0, &speech));
    assert_ok(wt_audio_load("tests/data/hungarian-dance-5.flac", 0, &music));
    assert_ok(wt_preset_names(&names, &n_names));
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        assert_ok(wt_preset_load(names[k], &preset));
        if (!wt_preset_needs_gpu(preset)) {
            compare(preset, &speech);
            compare(preset, &music);
        }
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
    wt_audio_free(&speech), wt_audio_free(&music);
}

// What a meter shows after the same music, on both backends.
static void a_meter_shows_the_same_on_both(void **state)
{
    (void)state;
    const wt_node_desc meter = {.type = "meter"};
    const wt_chain_desc desc = {.nodes = &meter, .n_nodes = 1};
    float seen[2][16];
    wt_chain *chain;
    wt_audio music;
    if (!gpu) skip();
    assert_ok(wt_audio_load("tests/data/hungarian-dance-5.flac", 0, &music));
    int n = (int)music.n_frames, count = 0;
    for (int k = 0; k < 2; k++) {
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = music.rate_hz, .channels = 2, .device = k ? gpu : NULL},
                                  &desc, &chain));
        float *y = malloc(sizeof *y * 2 * (size_t)n);
        if (!k) process_blocks(chain, music.samples, y, n, 64, n);
        else free(y), y = run_on_gpu(chain, music.samples, 2, n);
        count = wt_chain_readings(chain, 0, seen[k], 16);
        free(y);
        wt_chain_destroy(chain);
    }
    assert_true(count >= 6);
    for (int r = 0; r < count; r++)
        if (!(fabsf(seen[0][r] - seen[1][r]) < 0.01f))
            fail_msg("%s: %g on the CPU, %g on the GPU", wt_node_type_find("meter")->readings[r], (double)seen[0][r],
                     (double)seen[1][r]);
    assert_true(seen[1][5] > -30 && seen[1][5] < -10); // integrated loudness of real music
    wt_audio_free(&music);
}

static wt_status build_kernel(const char *text, wt_chain **chain)
{
    const wt_setting settings[] = {{"text", text, 0}, {"p1", NULL, 3}, {"state_floats", NULL, 2}};
    const wt_node_desc node = {.type = "cuda", .id = "mine", .settings = settings, .n_settings = 3};
    return wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 2, .device = gpu},
                           &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, chain);
}

// y = p1 x + frames counted in the state so far: parameters and state reach the user's text.
static void a_users_kernel_runs(void **state)
{
    (void)state;
    enum { N = 1000 };
    wt_chain *chain;
    if (!gpu) skip();
    assert_ok(build_kernel("static __device__ void process(const wt_node_io *io, const float *p, float *state)\n"
                           "{\n"
                           "    for_each_sample(io, [&](int c, int n) {\n"
                           "        int at = c * io->stride + n;\n"
                           "        io->out[at] = p[0] * io->in[0][at] + state[0] + n;\n"
                           "    });\n"
                           "    __syncthreads();\n"
                           "    if (threadIdx.x == 0) state[0] += io->n_frames;\n"
                           "}\n", &chain));
    float *x = noise_signal(2 * N, 3), *y = run_on_gpu(chain, x, 2, N);
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < N; n++) assert_true(fabsf(y[c * N + n] - (3 * x[c * N + n] + (float)n)) < 1e-3f);
    free(x), free(y);
    wt_chain_destroy(chain);
}

static void a_users_mistake_comes_back_with_the_compilers_words(void **state)
{
    (void)state;
    wt_chain *chain;
    if (!gpu) skip();
    assert_int_equal(build_kernel("static __device__ void process(const wt_node_io *io, const float *p, float *)\n"
                                  "{ io->out[0] = nonsense; }\n", &chain), WT_ERR_COMPILE);
    assert_null(chain);
    assert_non_null(strstr(wt_last_error(), "nonsense"));
    assert_non_null(strstr(wt_last_error(), "mine(2)")); // the node's id and the line of its text
}

static void a_users_kernel_is_refused_on_the_cpu(void **state)
{
    (void)state;
    const wt_setting text = {"text", "x", 0};
    const wt_node_desc node = {.type = "cuda", .settings = &text, .n_settings = 1};
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = 48000, .channels = 1},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_UNSUPPORTED, "chain: cuda: a cuda runs on a GPU only, this chain is built for the CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_agrees_on_speech_and_music),
        cmocka_unit_test(a_meter_shows_the_same_on_both),
        cmocka_unit_test(a_users_kernel_runs),
        cmocka_unit_test(a_users_mistake_comes_back_with_the_compilers_words),
        cmocka_unit_test(a_users_kernel_is_refused_on_the_cpu),
    };
    return cmocka_run_group_tests_name("backends", tests, open_gpu, close_gpu);
}
