#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/stft_stream.h>

enum { N = 13000, MOST = 1500 };

static const wt_stft_stream_plan_config configs[] = {
    {{.n_fft = 512, .hop = 128, .channels = 2}, 3, MOST},
    {{.n_fft = 400, .hop = 160}, 2, MOST},
    {{.n_fft = 63, .hop = 9, .win_length = 40}, 1, MOST},
    {{.n_fft = 2048}, 2, MOST},
    // on a GPU what no thread block holds
    {{.n_fft = 401, .hop = 100}, 2, MOST},
    {{.n_fft = 4099, .hop = 1000, .channels = 2}, 1, MOST},
    {{.n_fft = 10240, .hop = 1024}, 1, MOST},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

typedef struct sizes {
    size_t lines, bins, frames; // of N samples
} sizes;

static sizes sizes_of(const wt_stft_stream_plan_config *c)
{
    const size_t channels = c->stft.channels ? (size_t)c->stft.channels : 1, n_fft = (size_t)c->stft.n_fft;
    const size_t hop = c->stft.hop ? (size_t)c->stft.hop : n_fft / 4;
    return (sizes){channels * (size_t)c->n_signals, n_fft / 2 + 1, N / hop};
}

typedef struct bench {
    wt_stream *stream;
    wt_buffer *in, *frames, *out;
    float *block, *spectra; // on the host
} bench;

static bench open_bench(wt_device *device, const sizes *z)
{
    bench b;
    const size_t samples = z->lines * MOST, spectra = z->lines * (z->frames + 1) * z->bins * 2;
    assert_ok(wt_stream_create(device, NULL, &b.stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, samples * sizeof(float), &b.in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, samples * sizeof(float), &b.out));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, spectra * sizeof(float), &b.frames));
    b.block = floats(samples), b.spectra = floats(spectra);
    return b;
}

static void close_bench(bench *b)
{
    wt_buffer_destroy(b->in), wt_buffer_destroy(b->frames), wt_buffer_destroy(b->out);
    wt_stream_destroy(b->stream);
    free(b->block), free(b->spectra);
}

// One block of all lines, from x [lines][N] at `done`: its frames behind the t that there were in `frames`
// [lines][n_frames][bins][2], its samples to y. Returns the frames.
static size_t pass_block(wt_stft_stream_plan *plan, const bench *b, const sizes *z, const float *x, size_t done,
                         size_t n, size_t t, float *frames, float *y)
{
    const size_t count = (size_t)wt_stft_stream_plan_frames(plan, (int)n), row = z->bins * 2;
    for (size_t i = 0; i < z->lines; i++) memcpy(b->block + i * n, x + i * N + done, n * sizeof *x);
    assert_ok(wt_stream_upload(b->stream, b->in, 0, b->block, z->lines * n * sizeof *x));
    assert_ok(wt_stft_stream_plan_forward(plan, b->stream, b->in, 0, (int)n, b->frames, 0));
    if (count) assert_ok(wt_stream_download(b->stream, b->spectra, b->frames, 0, z->lines * count * row * sizeof *x));
    assert_ok(wt_stft_stream_plan_inverse(plan, b->stream, b->frames, 0, b->out, 0));
    assert_ok(wt_stream_synchronize(b->stream));
    assert_ok(wt_stream_download(b->stream, b->block, b->out, 0, z->lines * n * sizeof *x));
    assert_ok(wt_stream_synchronize(b->stream));
    for (size_t i = 0; i < z->lines; i++) {
        assert_true(t + count <= z->frames);
        memcpy(frames + (i * z->frames + t) * row, b->spectra + i * count * row, count * row * sizeof *x);
        memcpy(y + i * N + done, b->block + i * n, n * sizeof *x);
    }
    return count;
}

static void pass(wt_stft_stream_plan *plan, const bench *b, const sizes *z, const float *x, const int *blocks,
                 int n_blocks, float *frames, float *y)
{
    assert_ok(wt_stft_stream_plan_reset(plan, b->stream));
    size_t t = 0;
    for (size_t done = 0, k = 0, n; done < N; done += n, k++) {
        n = (size_t)blocks[k % (size_t)n_blocks];
        if (n > N - done) n = N - done;
        t += pass_block(plan, b, z, x, done, n, t, frames, y);
    }
    assert_int_equal(t, z->frames);
}

typedef struct keeper {
    float *frames;
    size_t bins;
} keeper;

static void keep(void *user, int64_t t, float *spectrum)
{
    const keeper *k = user;
    memcpy(k->frames + (size_t)t * k->bins * 2, spectrum, k->bins * 2 * sizeof *spectrum);
}

// The frames and samples of a stream of one channel, line after line.
static void stream_lines(const wt_stft_stream_plan_config *c, const sizes *z, const float *x, float *frames, float *y)
{
    wt_stft_stream *s;
    wt_stft_config one = c->stft;
    one.channels = 1;
    assert_ok(wt_stft_stream_create(&one, &s));
    for (size_t i = 0; i < z->lines; i++) {
        keeper k = {frames + i * z->frames * z->bins * 2, z->bins};
        const float *in = x + i * N;
        float *out = y + i * N;
        wt_stft_stream_reset(s);
        wt_stft_stream_process(s, &in, N, &out, keep, &k);
    }
    wt_stft_stream_destroy(s);
}

// Every cut gives the same bits, they are near those of the CPU's stream, and the signal comes back late and whole.
static void check_device(wt_device *device, double bound)
{
    static const int odd[] = {64, 63, 253, 1, 65, 1500}, one[] = {MOST}, small[] = {100};
    static const struct {
        const int *sizes;
        int n;
    } cuts[] = {{one, 1}, {odd, 6}, {small, 1}};
    for (int k = 0; k < CONFIGS; k++) {
        const sizes z = sizes_of(&configs[k]);
        const size_t spectra = z.lines * z.frames * z.bins * 2, samples = z.lines * N;
        float *x = noise_floats(samples, 4), *frames[2] = {floats(spectra), floats(spectra)},
              *y[2] = {floats(samples), floats(samples)};
        wt_stft_stream_plan *plan;
        assert_ok(wt_stft_stream_plan_create(device, &configs[k], &plan));
        bench b = open_bench(device, &z);
        for (int i = 0; i < 3; i++) {
            pass(plan, &b, &z, x, cuts[i].sizes, cuts[i].n, frames[i > 0], y[i > 0]);
            if (!i) continue;
            assert_memory_equal(frames[0], frames[1], spectra * sizeof(float));
            assert_memory_equal(y[0], y[1], samples * sizeof(float));
        }
        stream_lines(&configs[k], &z, x, frames[1], y[1]);
        assert_near_peak(frames[1], frames[0], spectra, bound, "frames");
        assert_near_peak(y[1], y[0], samples, bound, "samples");
        const size_t late = (size_t)configs[k].stft.n_fft;
        for (size_t i = 0; i < z.lines; i++) // 130 dB: as of a whole signal there and back
            assert_snr_db(x + i * N, y[0] + i * N + late, N - late, 130);
        wt_stft_stream_plan_destroy(plan);
        close_bench(&b);
        for (int i = 0; i < 2; i++) free(frames[i]), free(y[i]);
        free(x);
    }
}

static void a_cpus_streams_are_the_one(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    check_device(cpu, 0);
    wt_device_close(cpu);
}

static void a_gpu_streams_as_the_cpu_does(void **state)
{
    (void)state;
    wt_device *gpu = gpu_device();
    check_device(gpu, 2e-6);
    wt_device_close(gpu);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    wt_stft_stream_plan *plan = NULL;
    assert_fails(wt_stft_stream_plan_create(NULL, &configs[0], &plan), WT_ERR_BAD_ARG,
                 "stft stream: a plan without a device");
    assert_fails(
        wt_stft_stream_plan_create(cpu, &(wt_stft_stream_plan_config){.n_signals = -1, .max_samples = 9}, &plan),
        WT_ERR_BAD_ARG, "stft stream: -1 signals of 0 channels, want 1..2147483647 lines");
    assert_fails(wt_stft_stream_plan_create(cpu, &(wt_stft_stream_plan_config){.n_signals = 1}, &plan), WT_ERR_BAD_ARG,
                 "stft stream: max_samples 0, want 1..536870911");
    assert_null(plan);
    wt_stream *stream;
    wt_buffer *buffer;
    assert_ok(wt_stream_create(cpu, NULL, &stream));
    assert_ok(wt_buffer_create(cpu, WT_MEMORY_DEVICE, 64, &buffer));
    assert_ok(wt_stft_stream_plan_create(
        cpu, &(wt_stft_stream_plan_config){.stft = {.n_fft = 16, .hop = 4}, .max_samples = 9}, &plan));
    assert_fails(wt_stft_stream_plan_inverse(plan, stream, buffer, 0, buffer, 0), WT_ERR_BAD_ARG,
                 "stft stream: no block whose way back was not queued before");
    assert_fails(wt_stft_stream_plan_forward(plan, stream, buffer, 0, 10, buffer, 0), WT_ERR_BAD_ARG,
                 "stft stream: a block of 10 samples, want 1..9");
    assert_fails(wt_stft_stream_plan_forward(plan, stream, buffer, 0, 4, buffer, 0), WT_ERR_BAD_ARG,
                 "stft stream: frames takes 72 bytes at 0, the buffer has 64");
    assert_int_equal(wt_stft_stream_plan_frames(plan, 3), 0);
    assert_int_equal(wt_stft_stream_plan_frames(plan, 4), 1);
    assert_int_equal(wt_stft_stream_plan_frames(plan, 9), 2);
    wt_stft_stream_plan_destroy(plan), wt_stft_stream_plan_destroy(NULL);
    wt_buffer_destroy(buffer), wt_stream_destroy(stream);
    wt_device_close(cpu);
}

static wt_device *alloc_device;

static wt_status create(void *user) { return wt_stft_stream_plan_create(alloc_device, &configs[2], user); }

static void destroy(void *user) { wt_stft_stream_plan_destroy(*(wt_stft_stream_plan **)user); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_stft_stream_plan *plan = NULL;
    alloc_device = cpu_device();
    assert_survives_failing_alloc(create, destroy, &plan);
    wt_device_close(alloc_device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cpus_streams_are_the_one),
        cmocka_unit_test(a_gpu_streams_as_the_cpu_does),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("stft stream", tests, NULL, NULL);
}
