// Files that are as they should be: what is written comes back, in any block size, format and rate. Refusals and damage
// are in test_audio_damage.c.
#include "support/audio_files.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RATE = 48000 };

static void every_format_gives_back_what_it_was_given(void **state)
{
    // Bounds: a sine of amplitude 0.5 stands 6.02 (bits - 1) + 1.8 dB above rounding noise, 2 to 6 dB less is asked
    // (float has 24 bits of its own); float is exact; lossy encoders keep the waveform of a slow sine to 10 dB or more;
    // MP3 shifts it by the encoder's delay (0: not compared).
    static const struct {
        const char *name;
        wt_sample_format sample;
        const char *format;
        double bound_db;
    } cases[] = {
        {"a.wav", WT_SAMPLE_S16, "wav", 85},
        {"a.wav", WT_SAMPLE_S8, "wav", 37},
        {"a.wav", WT_SAMPLE_S24, "wav", 133},
        {"a.wav", WT_SAMPLE_S32, "wav", 150},
        {"a.wav", WT_SAMPLE_F32, "wav", 300},
        {"a.wav", WT_SAMPLE_F64, "wav", 300},
        {"a.flac", WT_SAMPLE_S16, "flac", 85},
        {"a.FLAC", 0, "flac", 133},
        {"a.aiff", 0, "aiff", 133},
        {"a.w64", WT_SAMPLE_F32, "w64", 300},
        {"a.caf", 0, "caf", 133},
        {"a.au", WT_SAMPLE_S16, "au", 85},
        {"a.ogg", 0, "ogg", 25},
        {"a.opus", 0, "ogg", 10},
        {"a.mp3", 0, "mp3", 0},
    };
    enum { N = 20000 };
    float *sine = test_sine(2, N, RATE, 440, 0.5f);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = test_path(state, cases[k].name);
        const wt_audio_writer_config config = {
            .rate_hz = RATE, .channels = 2, .sample = cases[k].sample, .no_dither = true};
        test_write(path, &config, sine, N, 777);
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        assert_string_equal(audio.info.format, cases[k].format);
        assert_int_equal(audio.rate_hz, RATE);
        assert_int_equal(audio.channels, 2);
        assert_false(audio.info.truncated);
        if (cases[k].bound_db > 30) assert_int_equal(audio.n_frames, N); // encoders pad to their own frames
        assert_true(audio.n_frames >= N);
        if (cases[k].bound_db > 0)
            for (int c = 0; c < 2; c++)
                assert_snr_db(sine + c * N, audio.samples + c * audio.n_frames, N, cases[k].bound_db);
        wt_audio_free(&audio);
    }
    free(sine);
}

static void results_do_not_depend_on_the_block_size(void **state)
{
    enum { N = 9973, CHANNELS = 11 };
    static const int blocks[] = {1, 63, 64, 65, 253, 4096, 4097, N};
    float *in = test_noise(CHANNELS, N, 0.7f), *first = NULL;
    char *first_file = NULL;
    size_t first_size = 0;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        const char *path = test_path(state, "blocks.wav");
        test_write(path, &(wt_audio_writer_config){.rate_hz = 44100, .channels = CHANNELS, .sample = WT_SAMPLE_S16}, in,
                   N, blocks[k]);
        size_t size;
        char *file = test_slurp(path, &size);
        int64_t n_frames;
        float *out =
            test_read(path, &(wt_audio_reader_config){.rate_hz = 48000, .medium_quality = true}, blocks[k], &n_frames);
        assert_int_equal(n_frames, llround(N * 48000.0 / 44100));
        if (!first) {
            first = out;
            first_file = file;
            first_size = size;
            continue;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(file, first_file, size); // dither belongs to the sample, not to the call
        assert_memory_equal(out, first, sizeof(float) * CHANNELS * (size_t)n_frames);
        free(out);
        free(file);
    }
    free(first);
    free(first_file);
    free(in);
}

static void the_tail_of_the_last_block_is_silent(void **state)
{
    enum { N = 100 };
    float *in = test_noise(2, N, 0.5f);
    const char *path = test_path(state, "tail.wav");
    test_write(path, &(wt_audio_writer_config){.rate_hz = RATE, .channels = 2, .sample = WT_SAMPLE_F32}, in, N, N);
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(path, NULL, &reader));
    float out[2][256];
    int n_read;
    for (int k = 0; k < 2 * 256; k++) (&out[0][0])[k] = 9;
    assert_ok(wt_audio_reader_read(reader, &out[0][0], 128, 256, &n_read));
    assert_int_equal(n_read, N);
    for (int c = 0; c < 2; c++) {
        assert_memory_equal(out[c], in + c * N, sizeof(float) * N);
        for (int n = N; n < 128; n++) assert_true(out[c][n] == 0);
        assert_true(out[c][128] == 9);
    }
    assert_ok(wt_audio_reader_read(reader, &out[0][0], 128, 256, &n_read));
    assert_int_equal(n_read, 0);
    wt_audio_reader_close(reader);
    free(in);
}

static void resampling_keeps_time_and_gives_the_exact_length(void **state)
{
    // libsamplerate states 144 dB for its best converter, 121 dB for the medium one, at the worst of many ratios. We
    // ask 10 dB less, away from the ends, where the file stops as a step. A delay of a thousandth of a frame gives 100
    // dB.
    static const struct {
        int from, to, n_frames;
        bool medium;
        double bound_db;
    } cases[] = {{44100, 48000, 30000, false, 130}, {48000, 16000, 30001, false, 130},
                 {16000, 48000, 9001, false, 130},  {48000, 44100, 30000, true, 108},
                 {8000, 96000, 4000, true, 108},    {48000, 48000, 5000, false, 140}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int from = cases[k].from, to = cases[k].to, n = cases[k].n_frames;
        float *in = test_sine(2, n, from, 1000, 0.5f);
        const char *path = test_path(state, "rate.wav");
        test_write(path, &(wt_audio_writer_config){.rate_hz = from, .channels = 2, .sample = WT_SAMPLE_F32}, in, n, n);
        int64_t n_out;
        float *out =
            test_read(path, &(wt_audio_reader_config){.rate_hz = to, .medium_quality = cases[k].medium}, 1024, &n_out);
        assert_int_equal(n_out, llround((double)n * to / from));
        float *want = test_sine(2, (int)n_out, to, 1000, 0.5f);
        int edge = to / 20 < n_out / 3 ? to / 20 : (int)n_out / 3;
        for (int c = 0; c < 2; c++)
            assert_snr_db(want + c * n_out + edge, out + c * n_out + edge, (size_t)(n_out - 2 * edge),
                          cases[k].bound_db);
        free(in);
        free(out);
        free(want);
    }
}

static void one_frame_survives_every_rate(void **state)
{
    const float frame[2] = {0.5f, -0.25f};
    const char *path = test_path(state, "one.wav");
    test_write(path,
               &(wt_audio_writer_config){.rate_hz = RATE, .channels = 2, .sample = WT_SAMPLE_S16, .no_dither = true},
               frame, 1, 1);
    static const int rates[] = {0, 16000, 44100, 192000};
    static const int want[] = {1, 1, 1, 4};
    for (int k = 0; k < 4; k++) {
        wt_audio audio;
        assert_ok(wt_audio_load(path, rates[k], &audio));
        assert_int_equal(audio.n_frames, want[k]);
        assert_int_equal(audio.info.n_frames, want[k]);
        if (!k) assert_memory_equal(audio.samples, frame, sizeof frame);
        wt_audio_free(&audio);
    }
}

static void dither_makes_the_error_independent_of_the_signal(void **state)
{
    // A constant of 0.3 LSB: rounding alone loses it, TPDF dither keeps it as the mean. Error power of TPDF dither and
    // rounding is 3/12 LSB^2 for any signal; 100000 samples give both to about 0.5 %, so 2 % are four deviations.
    enum { N = 100000 };
    const double lsb = 0x1p-15;
    float *in = malloc(sizeof(float) * N);
    assert_non_null(in);
    for (int n = 0; n < N; n++) in[n] = (float)(0.3 * lsb);
    for (int dither = 0; dither < 2; dither++) {
        const char *path = test_path(state, "dither.wav");
        test_write(
            path,
            &(wt_audio_writer_config){.rate_hz = RATE, .channels = 1, .sample = WT_SAMPLE_S16, .no_dither = !dither},
            in, N, N);
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        double mean = 0, power = 0;
        for (int n = 0; n < N; n++) {
            mean += audio.samples[n] / lsb / N;
            power += pow((audio.samples[n] - in[n]) / lsb, 2) / N;
        }
        assert_true(fabs(mean - (dither ? 0.3 : 0)) < 0.006);
        assert_true(fabs(power - (dither ? 0.25 : 0.09)) < 0.005);
        wt_audio_free(&audio);
    }
    free(in);
}

static void samples_beyond_full_scale_are_held_and_counted(void **state)
{
    const float in[] = {1.0f, -1.0f, 1.5f, -2.0f, NAN, INFINITY, 0.5f, 1e-40f};
    const char *path = test_path(state, "clip.wav");
    wt_audio_writer *writer;
    assert_ok(wt_audio_writer_open(
        path, &(wt_audio_writer_config){.rate_hz = RATE, .channels = 1, .sample = WT_SAMPLE_S16, .no_dither = true},
        &writer));
    assert_ok(wt_audio_writer_write(writer, in, 8, 0));
    wt_audio_info info = wt_audio_writer_get_info(writer);
    assert_int_equal(info.n_clipped_samples, 2);
    assert_int_equal(info.n_repaired_samples, 2);
    assert_ok(wt_audio_writer_commit(writer));
    const float want[] = {32767 / 32768.f, -1, 32767 / 32768.f, -1, 0, 0, 0.5f, 0};
    wt_audio audio;
    assert_ok(wt_audio_load(path, 0, &audio));
    assert_memory_equal(audio.samples, want, sizeof want);
    wt_audio_free(&audio);
}

static void the_source_lends_rate_channels_encoding_and_limits(void **state)
{
    float *in = test_noise(3, 500, 0.5f);
    const char *path = test_path(state, "source.wav");
    test_write(path, &(wt_audio_writer_config){.rate_hz = 22050, .channels = 3, .sample = WT_SAMPLE_S16}, in, 500, 500);
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(path, NULL, &reader));
    wt_audio_writer *writer;
    assert_ok(
        wt_audio_writer_open(test_path(state, "copy.flac"), &(wt_audio_writer_config){.source = reader}, &writer));
    wt_audio_info info = wt_audio_writer_get_info(writer);
    assert_int_equal(info.rate_hz, 22050);
    assert_int_equal(info.channels, 3);
    assert_int_equal(info.sample, WT_SAMPLE_S16);
    assert_string_equal(info.format, "flac");
    wt_audio_writer_discard(writer);
    wt_audio_reader_close(reader);

    // five sparse gigabytes: the copy needs RF64's 64-bit sizes
    path = test_path(state, "huge.raw");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 5ll << 30), 0);
    fclose(file);
    assert_ok(wt_audio_reader_open(
        path, &(wt_audio_reader_config){.raw_sample = WT_SAMPLE_S16, .raw_rate_hz = RATE, .raw_channels = 2}, &reader));
    assert_ok(wt_audio_writer_open(test_path(state, "huge.wav"), &(wt_audio_writer_config){.source = reader}, &writer));
    assert_string_equal(wt_audio_writer_get_info(writer).format, "rf64");
    wt_audio_writer_discard(writer);
    wt_audio_reader_close(reader);
    unlink(path);
    free(in);
}

static void raw_pcm_of_every_kind_comes_back(void **state)
{
    static const struct {
        wt_sample_format sample;
        int bytes;
        double bound_db;
    } cases[] = {{WT_SAMPLE_S16, 2, 85}, {WT_SAMPLE_S24, 3, 133}, {WT_SAMPLE_S32, 4, 150}, {WT_SAMPLE_F32, 4, 300}};
    enum { N = 5000 };
    float *in = test_sine(2, N, RATE, 440, 0.5f);
    for (int k = 0; k < 4; k++) {
        const char *path = test_path(state, "a.raw");
        test_write(
            path,
            &(wt_audio_writer_config){.rate_hz = RATE, .channels = 2, .sample = cases[k].sample, .no_dither = true}, in,
            N, 999);
        struct stat what;
        assert_int_equal(stat(path, &what), 0);
        assert_int_equal(what.st_size, 2 * N * cases[k].bytes);
        int64_t n_frames;
        float *out = test_read(
            path, &(wt_audio_reader_config){.raw_sample = cases[k].sample, .raw_rate_hz = RATE, .raw_channels = 2}, 500,
            &n_frames);
        assert_int_equal(n_frames, N);
        assert_snr_db(in, out, 2 * N, cases[k].bound_db);
        free(out);
    }
    assert_int_equal(wt_sample_format_of_name("s24"), WT_SAMPLE_S24);
    assert_int_equal(wt_sample_format_of_name("s25"), WT_SAMPLE_DEFAULT);
    free(in);
}

static void raw_pcm_flows_from_standard_input_to_standard_output(void **state)
{
    // 3 channels and a part of a frame, through two pipes: this process is its own neighbour on both sides
    enum { N = 2000 };
    float *in = test_noise(3, N, 0.5f), out[3 * N];
    int to_us[2], from_us[2], saved_in = dup(0), saved_out = dup(1);
    assert_int_equal(pipe(to_us) | pipe(from_us), 0);
    fflush(stdout);
    dup2(to_us[0], 0);
    dup2(from_us[1], 1);
    wt_audio_writer *writer;
    wt_status write_status = wt_audio_writer_open(
        "-", &(wt_audio_writer_config){.rate_hz = RATE, .channels = 3, .sample = WT_SAMPLE_F32}, &writer);
    if (!write_status) write_status = wt_audio_writer_write(writer, in, N, 0);
    if (!write_status) write_status = wt_audio_writer_commit(writer);
    dup2(saved_out, 1);
    close(from_us[1]);
    assert_ok(write_status);

    char bytes[sizeof out];
    size_t n_bytes = 0;
    for (ssize_t got; (got = read(from_us[0], bytes + n_bytes, sizeof bytes - n_bytes)) > 0;) n_bytes += (size_t)got;
    assert_int_equal(n_bytes, sizeof out);
    assert_int_equal(write(to_us[1], bytes, n_bytes - 1), (ssize_t)n_bytes - 1); // a pipe holds 64 KiB
    close(to_us[1]);
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(
        "-", &(wt_audio_reader_config){.raw_sample = WT_SAMPLE_F32, .raw_rate_hz = RATE, .raw_channels = 3}, &reader));
    assert_int_equal(wt_audio_reader_get_info(reader).n_frames, -1);
    int n_read;
    assert_ok(wt_audio_reader_read(reader, out, N, 0, &n_read));
    assert_int_equal(n_read, N - 1);
    assert_int_equal(wt_audio_reader_get_info(reader).n_frames, N - 1);
    assert_true(wt_audio_reader_get_info(reader).truncated);
    for (int c = 0; c < 3; c++) assert_memory_equal(out + c * N, in + c * N, sizeof(float) * (N - 1));
    wt_audio_reader_close(reader);
    dup2(saved_in, 0);
    close(saved_in);
    close(saved_out);
    close(to_us[0]);
    close(from_us[0]);
    free(in);
    (void)state;
}

static void names_of_audio_files_are_known(void **state)
{
    (void)state;
    static const char *const known[] = {"a.wav", "A.WAV",  "x/y.z/b.Flac", "c.mp3",
                                        "d.ogg", "e.opus", "f.aif",        ".g.w64"};
    static const char *const unknown[] = {"a", "wav", "a.wav.txt", "a.wav/b", "m.mat", "n.mpc", "o.raw", "", "p."};
    for (int k = 0; k < 8; k++) assert_true(wt_audio_name_known(known[k]));
    for (int k = 0; k < 9; k++) assert_false(wt_audio_name_known(unknown[k]));
}

static void hundreds_of_files_are_open_at_once(void **state)
{
    enum { N_FILES = 400 };
    float *in = test_noise(1, 1000, 0.5f);
    char source[4096];
    snprintf(source, sizeof source, "%s", test_path(state, "many.flac"));
    test_write(source, &(wt_audio_writer_config){.rate_hz = RATE, .channels = 1}, in, 1000, 1000);
    static wt_audio_reader *readers[N_FILES];
    static wt_audio_writer *writers[N_FILES];
    char name[32];
    float block[100];
    int n_read;
    for (int k = 0; k < N_FILES; k++) {
        assert_ok(wt_audio_reader_open(source, NULL, &readers[k]));
        snprintf(name, sizeof name, "many-%d.wav", k);
        assert_ok(
            wt_audio_writer_open(test_path(state, name), &(wt_audio_writer_config){.source = readers[k]}, &writers[k]));
    }
    for (int at = 0; at < 1000; at += 100)
        for (int k = 0; k < N_FILES; k++) {
            assert_ok(wt_audio_reader_read(readers[k], block, 100, 0, &n_read));
            assert_ok(wt_audio_writer_write(writers[k], block, n_read, 0));
        }
    for (int k = 0; k < N_FILES; k++) {
        wt_audio_reader_close(readers[k]);
        assert_ok(wt_audio_writer_commit(writers[k]));
    }
    wt_audio audio;
    assert_ok(wt_audio_load(test_path(state, "many-399.wav"), 0, &audio));
    assert_int_equal(audio.n_frames, 1000);
    wt_audio_free(&audio);
    free(in);
}

static void the_recordings_of_the_repository_are_whole(void **state)
{
    // sums of all samples as 16-bit integers, so that a bit that changes in the file or in the decoder is seen
    static const struct {
        const char *path;
        int rate_hz, channels;
        int64_t n_frames, sum;
    } cases[] = {{"tests/data/jfk.flac", 16000, 1, 176000, 446210374},
                 {"tests/data/hungarian-dance-5.flac", 44100, 2, 264600, 956316815}};
    for (int k = 0; k < 2; k++) {
        wt_audio audio;
        assert_ok(wt_audio_load(cases[k].path, 0, &audio));
        assert_int_equal(audio.rate_hz, cases[k].rate_hz);
        assert_int_equal(audio.channels, cases[k].channels);
        assert_int_equal(audio.n_frames, cases[k].n_frames);
        int64_t sum = 0;
        for (int64_t n = 0; n < audio.n_frames * audio.channels; n++) sum += lrintf(fabsf(audio.samples[n]) * 32768);
        assert_int_equal(sum, cases[k].sum);
        wt_audio_free(&audio);
    }
    (void)state;
}

static void recordings_of_every_kind_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int rate_hz, channels;
    } cases[] = {{"audio/speech/1272-128104-0007.mp3", 16000, 1},
                 {"audio/speech/1089-134691-0000.flac", 16000, 1},
                 {"audio/music/hungarian-dance-5.ogg", 44100, 2},
                 {"audio/noisy/noisy_snr0.wav", 48000, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = shared_data(cases[k].path);
        if (!path) {
            print_message("skipped: no shared audio\n");
            skip();
        }
        wt_audio_reader *reader;
        assert_ok(wt_audio_reader_open(path, NULL, &reader));
        wt_audio_info info = wt_audio_reader_get_info(reader);
        print_message("%s: %s, %s, %d Hz, %d channels, %lld frames\n", path, info.format, info.encoding, info.rate_hz,
                      info.channels, (long long)info.n_frames);
        assert_int_equal(info.rate_hz, cases[k].rate_hz);
        assert_int_equal(info.channels, cases[k].channels);
        wt_audio_reader_close(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_back_what_it_was_given),
        cmocka_unit_test(results_do_not_depend_on_the_block_size),
        cmocka_unit_test(the_tail_of_the_last_block_is_silent),
        cmocka_unit_test(resampling_keeps_time_and_gives_the_exact_length),
        cmocka_unit_test(one_frame_survives_every_rate),
        cmocka_unit_test(dither_makes_the_error_independent_of_the_signal),
        cmocka_unit_test(samples_beyond_full_scale_are_held_and_counted),
        cmocka_unit_test(the_source_lends_rate_channels_encoding_and_limits),
        cmocka_unit_test(raw_pcm_of_every_kind_comes_back),
        cmocka_unit_test(raw_pcm_flows_from_standard_input_to_standard_output),
        cmocka_unit_test(names_of_audio_files_are_known),
        cmocka_unit_test(hundreds_of_files_are_open_at_once),
        cmocka_unit_test(the_recordings_of_the_repository_are_whole),
        cmocka_unit_test(recordings_of_every_kind_are_read),
    };
    return cmocka_run_group_tests_name("audio_file", tests, test_folder_create, test_folder_remove);
}
