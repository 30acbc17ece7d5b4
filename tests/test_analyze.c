// `warptone analyze` as people and scripts use it: real files in, and what stands in the outputs.
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/picture.h"
#include "support/testing.h"

#include "../hosts/axes.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/mel.h>
#include <warptone/pitch.h>
#include <warptone/stretch.h>

enum { RATE_HZ = ANALYZE_RATE_HZ, FRAMES = ANALYZE_FRAMES };

static void npy_holds_what_the_op_gives(void **state)
{
    wt_mel *mel;
    npy a;
    float *x = analyze_tones();
    assert_analyze("-f logmel --n-mels 40 %s %s", analyze_tones_file(state, "in.wav"), test_path(state, "mel.npy"));
    assert_ok(wt_mel_create(
        NULL,
        &(wt_mel_config){
            .n_samples = FRAMES, .stft = {.hop = 512, .precise = true}, .bank = {.n_mels = 40}, .scale = WT_MEL_DB},
        &mel));
    const size_t n_frames = (size_t)wt_mel_frames(mel);
    float *want = malloc(sizeof(float) * 40 * n_frames);
    wt_mel_run(mel, x, want);
    assert_ok(npy_read(test_path(state, "mel.npy"), &a));
    assert_int_equal(a.kind, 'f');
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.shape[0], 40);
    assert_int_equal(a.shape[1], n_frames);
    assert_memory_equal(a.data, want, sizeof(float) * 40 * n_frames);
    npy_free(&a);
    wt_mel_destroy(mel);
    free(want), free(x);
}

static void spectra_lie_as_librosa_has_them(void **state)
{
    npy a;
    float *x = analyze_tones(), *want;
    wt_stft *stft;
    assert_analyze("-f stft --n-fft 400 --hop 160 %s %s", analyze_tones_file(state, "in.wav"),
                   test_path(state, "stft.npy"));
    assert_ok(wt_stft_create(&(wt_stft_config){.n_fft = 400, .hop = 160}, &stft));
    const size_t n_frames = (size_t)wt_stft_frames(stft, FRAMES), bins = 201;
    want = malloc(sizeof(float) * 2 * bins * n_frames);
    assert_int_equal(wt_stft_forward(stft, x, FRAMES, want), WT_OK);
    assert_ok(npy_read(test_path(state, "stft.npy"), &a));
    assert_int_equal(a.kind, 'c');
    assert_int_equal(a.shape[0], bins);
    assert_int_equal(a.shape[1], n_frames);
    const float *got = a.data;
    for (size_t k = 0; k < bins; k++)
        for (size_t t = 0; t < n_frames; t++)
            assert_memory_equal(got + 2 * (k * n_frames + t), want + 2 * (t * bins + k), 2 * sizeof *got);
    npy_free(&a);
    wt_stft_destroy(stft);
    free(want), free(x);
}

static uint32_t little(const char *bytes, int n)
{
    uint32_t value = 0;
    for (int k = n - 1; k >= 0; k--) value = value << 8 | (unsigned char)bytes[k];
    return value;
}

/// CRC-32 (ISO 3309) bit by bit.
static uint32_t crc_of(const char *bytes, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t k = 0; k < n; k++) {
        crc ^= (unsigned char)bytes[k];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/// Names in a ZIP's central directory, with a space behind each; every member is stored and where it is said to be.
static void zip_names(const char *bytes, size_t size, char *names)
{
    const char *end = bytes + size - 22, *entry = bytes + little(end + 16, 4);
    assert_int_equal(little(end, 4), 0x06054b50);
    assert_int_equal(entry + little(end + 12, 4) - bytes, end - bytes);
    *names = 0;
    for (uint32_t k = 0; k < little(end + 10, 2); k++) {
        const uint32_t length = little(entry + 28, 2), offset = little(entry + 42, 4);
        assert_int_equal(little(entry, 4), 0x02014b50);
        assert_int_equal(little(entry + 20, 4), little(entry + 24, 4));
        assert_int_equal(little(bytes + offset, 4), 0x04034b50);
        assert_memory_equal(bytes + offset + 30, entry + 46, length);
        assert_memory_equal(bytes + offset + 14, entry + 16, 12); // check sum and sizes
        assert_memory_equal(bytes + offset + 30 + length, "\x93NUMPY", 6);
        assert_int_equal(crc_of(bytes + offset + 30 + length, little(entry + 20, 4)), little(entry + 16, 4));
        strncat(names, entry + 46, length);
        strcat(names, " ");
        entry += 46 + length;
    }
}

static void npz_holds_every_array(void **state)
{
    char names[1000];
    size_t size;
    assert_analyze("-f mfcc,mfcc_delta,pyin,beats,rms %s %s", analyze_tones_file(state, "in.wav"),
                   test_path(state, "all.npz"));
    char *bytes = test_slurp(test_path(state, "all.npz"), &size);
    zip_names(bytes, size, names);
    assert_string_equal(names, "mfcc.npy mfcc_delta.npy f0.npy voiced.npy voiced_prob.npy beats.npy beat_tempo.npy "
                               "rms.npy ");
    free(bytes);
}

static void csv_has_a_row_a_frame(void **state)
{
    wt_yin *yin;
    float *x = analyze_tones(), time_s, got;
    int n_rows = 0;
    assert_analyze("-f yin --quiet --format csv %s %s", analyze_tones_file(state, "in.wav"), "-");
    const wt_pitch_frames frames = {.fmin_hz = 65.40639132514966, .fmax_hz = 2093.004522404789, .n_samples = FRAMES};
    assert_ok(wt_yin_create(NULL, &(wt_yin_config){.frames = frames}, &yin));
    float *want = malloc(sizeof(float) * (size_t)wt_yin_n_frames(yin));
    wt_yin_run(yin, x, want);
    assert_int_equal(strncmp(analyze_out, "time_s,yin\r\n", 12), 0);
    for (char *line = strstr(analyze_out, "\r\n") + 2; *line; line = strstr(line, "\r\n") + 2, n_rows++) {
        assert_int_equal(sscanf(line, "%f,%f", &time_s, &got), 2);
        assert_true(fabsf(time_s - (float)n_rows * 512 / RATE_HZ) < 1e-5f);
        assert_true(got == want[n_rows]); // nine digits are enough for a float
    }
    assert_int_equal(n_rows, wt_yin_n_frames(yin));
    wt_yin_destroy(yin);
    free(want), free(x);
}

static void csv_is_one_table(void **state)
{
    assert_int_equal(
        analyze_runf("-f rms,tempo %s %s", analyze_tones_file(state, "in.wav"), test_path(state, "two.csv")), 2);
    assert_non_null(strstr(analyze_out, "csv holds one table, rms and tempo make two"));
    assert_int_equal(access(test_path(state, "two.csv"), F_OK), -1);
    assert_analyze("-f tempo,loudness --quiet --format csv %s %s", analyze_tones_file(state, "in.wav"), "-");
    assert_int_equal(strncmp(analyze_out, "name,unit,value\r\ntempo,BPM,", 27), 0);
}

// What the page of features says of each: shares, magnitudes, decibels but of linear contrast.
static void units_are_those_of_the_numbers(void **state)
{
    static const char *const cases[][2] = {{"zcr", "\"zcr\": {\"unit\": \"share\""},
                                           {"flux", "\"flux\": {\"unit\": \"magnitude\""},
                                           {"pyin", "\"voiced_prob\": {\"unit\": \"share\""},
                                           {"mel", "\"mel\": {\"unit\": \"power\""},
                                           {"mel --power 1", "\"mel\": {\"unit\": \"magnitude\""},
                                           {"mfcc_to_mel --power 1", "\"mfcc_to_mel\": {\"unit\": \"magnitude\""},
                                           {"mel --power 1.5", "\"mel\": {\"unit\": \"magnitude^p\""},
                                           {"contrast", "\"contrast\": {\"unit\": \"dB\""},
                                           {"contrast --linear", "\"contrast\": {\"unit\": \"magnitude\""}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_analyze("-f %s --quiet --format json %s -", cases[k][0], analyze_tones_file(state, "in.wav"));
        if (!strstr(analyze_out, cases[k][1])) fail_msg("%s: %.200s", cases[k][0], analyze_out);
    }
}

static void json_tells_times_and_units(void **state)
{
    json_error_t error;
    assert_analyze("-f onsets,mel,pyin,split --n-mels 8 --quiet --format json %s %s",
                   analyze_tones_file(state, "in.wav"), "-");
    json_t *root = json_loads(analyze_out, 0, &error);
    if (!root) fail_msg("not JSON: %s", error.text);
    const json_t *features = json_object_get(root, "features"), *mel = json_object_get(features, "mel");
    const json_t *onsets = json_object_get(features, "onsets"), *times = json_object_get(onsets, "time_s");
    assert_int_equal(json_integer_value(json_object_get(root, "rate_hz")), RATE_HZ);
    assert_int_equal(json_array_size(json_object_get(mel, "values")), 8);
    assert_int_equal(json_array_size(json_object_get(mel, "row_hz")), 8);
    assert_int_equal(json_array_size(json_array_get(json_object_get(mel, "values"), 0)), FRAMES / 512 + 1);
    assert_true(json_array_size(times) >= 3);
    for (size_t k = 0; k < json_array_size(times); k++) { // onsets stand at multiples of half a second, within 50 ms
        const double t = json_real_value(json_array_get(times, k)) * 2;
        assert_true(fabs(t - round(t)) < 0.1);
    }
    json_decref(root);
}

static void pictures_are_written(void **state)
{
    size_t size;
    assert_analyze("-f logmel,pyin,beats,cqt,chroma,split,hpss --height 300 --width 1000 %s %s",
                   analyze_tones_file(state, "in.wav"), test_path(state, "all.png"));
    char *bytes = test_slurp(test_path(state, "all.png"), &size);
    assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n", 8);
    assert_memory_equal(bytes + 16, "\x00\x00\x03\xe8\x00\x00\x0a\xb8", 8); // 1000 wide, 44 + 9 * 300 high
    assert_true(size > 50000);                                              // an empty frame makes 10 KB
    free(bytes);
    assert_int_equal(analyze_runf("-f tempo %s %s", analyze_tones_file(state, "in.wav"), test_path(state, "none.png")),
                     2);
    assert_non_null(strstr(analyze_out, "tempo has no time, png draws what changes with it: want csv or json"));
}

/// Numbers, ticks, labels and units beside a panel are those of the axes that it claims to have, pixel by pixel, and a
/// tone of 1 kHz that begins in the middle stands where they say.
static void pictures_have_axes_with_units(void **state)
{
    enum { N = 2 * RATE_HZ, WIDTH = 900, HEIGHT = 360, LEFT = 95, TOP = 78, RIGHT = 115, BELOW = 58 };
    const wt_axes axes = {.left = LEFT,
                          .top = TOP,
                          .width = WIDTH - LEFT - RIGHT,
                          .height = HEIGHT - TOP + 44 - BELOW,
                          .x = {.high = 2, .label = "time (s)"},
                          .y = {.low = 20, .high = RATE_HZ / 2.0, .logarithmic = true, .label = "frequency (Hz)"}};
    float *x = test_sine(1, N, RATE_HZ, 1000, 0.5f);
    memset(x, 0, N / 2 * sizeof *x);
    test_write(test_path(state, "late.wav"),
               &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x, N, 1000);
    free(x);
    assert_analyze("-f spectrogram --width 900 --height 360 %s %s", test_path(state, "late.wav"),
                   test_path(state, "late.png"));
    wt_canvas *canvas;
    int width, height, same_width, same_height;
    assert_ok(wt_canvas_create(WIDTH, HEIGHT + 44, 0xffffff, &canvas));
    wt_axes_draw_frame(canvas, &axes);
    assert_ok(wt_canvas_write_png(canvas, test_path(state, "axes.png")));
    wt_canvas_destroy(canvas);
    unsigned char *got = picture_read(test_path(state, "late.png"), &width, &height);
    unsigned char *want = picture_read(test_path(state, "axes.png"), &same_width, &same_height);
    assert_true(width == WIDTH && height == HEIGHT + 44 && same_width == width && same_height == height);
    int inked = 0;
    const int bottom = TOP + (int)axes.height;
    for (int row = TOP; row < height; row++)
        for (int column = 0; column < WIDTH - RIGHT; column++) {
            if (row <= bottom && column >= LEFT - 1) continue; // the frame and what is in it
            const size_t at = 3 * (size_t)(row * width + column);
            if (memcmp(got + at, want + at, 3)) fail_msg("pixel %d, %d is not that of the axes", column, row);
            inked += want[at] < 128;
        }
    assert_true(inked > 500);
    for (int early = 0; early < 2; early++) { // the brightest of a column a quarter and three quarters on
        const int column = LEFT + (int)axes.width * (early ? 1 : 3) / 4;
        int most = -1, row = 0;
        for (int y = TOP; y < bottom; y++) {
            const unsigned char *p = got + 3 * (size_t)(y * width + column);
            if (p[0] + p[1] + p[2] > most) most = p[0] + p[1] + p[2], row = y;
        }
        if (early)
            assert_true(most < 150); // silence: the darkest colour
        else if (fabs(row + 0.5 - wt_axes_y(&axes, 1000)) > 2)
            fail_msg("1 kHz at row %d", row);
    }
    free(got), free(want);
}

static void parts_of_hpss_add_up(void **state)
{
    int64_t n_frames;
    float *x = analyze_tones();
    assert_analyze("-f hpss %s %s", analyze_tones_file(state, "in.wav"), test_path(state, "part.wav"));
    float *harmonic = test_read(test_path(state, "part-harmonic.wav"), NULL, 4096, &n_frames);
    assert_int_equal(n_frames, FRAMES);
    float *percussive = test_read(test_path(state, "part-percussive.wav"), NULL, 4096, &n_frames);
    for (int t = 0; t < FRAMES; t++) harmonic[t] += percussive[t];
    assert_snr_db(x, harmonic, FRAMES, 100); // two files of 24 bits with dither: noise at -138 dB, the tone at -30
    free(x), free(harmonic), free(percussive);
}

static void whispers_front_end_is_the_ops(void **state)
{
    npy a;
    float *x = analyze_tones();
    const wt_mel_config config = wt_mel_whisper(80, 16000);
    wt_mel *mel;
    assert_ok(wt_mel_create(NULL, &config, &mel));
    float *want = calloc((size_t)(80 * wt_mel_frames(mel)), sizeof *want);
    wt_mel_run(mel, x, want);
    test_write(test_path(state, "speech.wav"),
               &(wt_audio_writer_config){.rate_hz = 16000, .channels = 1, .sample = WT_SAMPLE_F32}, x, 16000, 1000);
    assert_analyze("-f whisper --rate 16000 --n-fft 400 --hop 160 %s %s", test_path(state, "speech.wav"),
                   test_path(state, "w.npy"));
    assert_ok(npy_read(test_path(state, "w.npy"), &a));
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.shape[0], 80);
    assert_int_equal(a.shape[1], 100);
    assert_memory_equal(a.data, want, sizeof *want * 8000);
    npy_free(&a);
    wt_mel_destroy(mel);
    free(x), free(want);
}

/// What a plan of the same settings makes, to the bit in arrays; audio goes to the file that was named.
static void signals_are_stretched_and_shifted(void **state)
{
    npy a;
    float *x = analyze_tones(), *want = calloc(2 * FRAMES, sizeof *want);
    int64_t n_frames;
    wt_stretch *stretch;
    wt_pitch_shift *shift;
    assert_ok(wt_stretch_create(NULL, &(wt_stretch_config){.rate = 0.8, .n_samples = FRAMES}, &stretch));
    wt_stretch_run(stretch, x, want);
    const int64_t n_out = wt_stretch_n_out(stretch);
    wt_stretch_destroy(stretch);
    analyze_tones_file(state, "in.wav");
    assert_analyze("-f time_stretch --speed 0.8 %s %s", test_path(state, "in.wav"), test_path(state, "a.npy"));
    assert_ok(npy_read(test_path(state, "a.npy"), &a));
    assert_int_equal(a.n_dims, 1);
    assert_int_equal(a.shape[0], n_out);
    assert_memory_equal(a.data, want, sizeof *want * (size_t)n_out);
    npy_free(&a);
    assert_analyze("-f time_stretch --speed 0.8 %s %s", test_path(state, "in.wav"), test_path(state, "slow.wav"));
    float *slow = test_read(test_path(state, "slow.wav"), NULL, 4096, &n_frames);
    assert_int_equal(n_frames, n_out);
    assert_snr_db(want, slow, (size_t)n_out, 100); // 24 bits with dither

    const wt_pitch_shift_config config = {
        .rate_hz = RATE_HZ, .n_steps = -3, .mode = WT_STRETCH_LIBROSA, .n_samples = FRAMES};
    assert_ok(wt_pitch_shift_create(NULL, &config, &shift));
    wt_pitch_shift_run(shift, x, want);
    wt_pitch_shift_destroy(shift);
    assert_analyze("-f pitch_shift --steps -3 --vocoder librosa %s %s", test_path(state, "in.wav"),
                   test_path(state, "b.npy"));
    assert_ok(npy_read(test_path(state, "b.npy"), &a));
    assert_int_equal(a.count, FRAMES);
    assert_memory_equal(a.data, want, sizeof *want * FRAMES);
    npy_free(&a);
    free(x), free(want), free(slow);
}

/// Stereo at 44.1 kHz becomes mono at 22.05 kHz: ceil(n / 2) samples, of the same pitch.
static void other_rates_are_resampled(void **state)
{
    enum { N = 44101 };
    npy a;
    float *x = test_sine(2, N, 44100, 330, 0.4f);
    test_write(test_path(state, "fast.wav"),
               &(wt_audio_writer_config){.rate_hz = 44100, .channels = 2, .sample = WT_SAMPLE_F32}, x, N, 1000);
    free(x);
    assert_analyze("-f yin %s %s", test_path(state, "fast.wav"), test_path(state, "fast.npy"));
    assert_ok(npy_read(test_path(state, "fast.npy"), &a));
    assert_int_equal(a.n_dims, 1);
    assert_int_equal(a.shape[0], (N + 1) / 2 / 512 + 1);
    for (size_t t = 4; t + 4 < a.count; t++) // the ends see zeros; YIN's parabola strays by 0.14 % here
        assert_true(fabsf(((const float *)a.data)[t] - 330) < 0.002f * 330);
    npy_free(&a);
    assert_analyze("-f rms --rate 0 --json %s %s", test_path(state, "fast.wav"), test_path(state, "fast.npy"));
    assert_non_null(strstr(analyze_out, "\"rate_hz\": 44100"));
}

static void channels_lead_when_kept(void **state)
{
    npy a;
    float *x = test_noise(2, 8192, 0.25f);
    test_write(test_path(state, "two.wav"),
               &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 2, .sample = WT_SAMPLE_F32}, x, 8192, 1000);
    free(x);
    assert_analyze("-f mfcc --channels %s %s", test_path(state, "two.wav"), test_path(state, "two.npy"));
    assert_ok(npy_read(test_path(state, "two.npy"), &a));
    assert_int_equal(a.n_dims, 3);
    assert_int_equal(a.shape[0], 2);
    assert_int_equal(a.shape[1], 20);
    assert_int_equal(a.shape[2], 17);
    npy_free(&a);
    assert_int_equal(
        analyze_runf("-f onsets --channels %s %s", test_path(state, "two.wav"), test_path(state, "two.npz")), 2);
    assert_non_null(strstr(analyze_out, "onsets: lists of 2 channels may differ in length; leave --channels out"));
}

static void folders_are_mirrored(void **state)
{
    char folder[4096], arguments[9000];
    mkdir(test_path(state, "many"), 0777);
    mkdir(test_path(state, "many/deep"), 0777);
    analyze_tones_file(state, "many/a.wav");
    analyze_tones_file(state, "many/deep/b.wav");
    test_spill(test_path(state, "many/broken.wav"), "RIFF", 4);
    test_spill(test_path(state, "many/notes.txt"), "no audio", 8);
    snprintf(folder, sizeof folder, "%s", test_path(state, "many"));
    snprintf(arguments, sizeof arguments, "-f rms,zcr -j 3 --json %s %s", folder, test_path(state, "results"));
    assert_int_equal(analyze_run(arguments, false), 1); // one file failed
    json_t *root = json_loads(analyze_out, 0, NULL);
    if (!root) fail_msg("no JSON: %s", analyze_out);
    assert_int_equal(json_integer_value(json_object_get(root, "done")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "failed")), 1);
    assert_int_equal(json_array_size(json_object_get(root, "files")), 3);
    const json_t *stages = json_object_get(root, "stages_s");
    static const char *const spent[] = {"look", "read", "compute", "write"};
    for (int k = 0; k < 4; k++) assert_true(json_number_value(json_object_get(stages, spent[k])) > 0);
    json_decref(root);
    assert_int_equal(access(test_path(state, "results/a.npz"), F_OK), 0);
    assert_int_equal(access(test_path(state, "results/deep/b.npz"), F_OK), 0);
    assert_int_equal(access(test_path(state, "results/broken.npz"), F_OK), -1);
    snprintf(arguments, sizeof arguments, "-f rms,zcr --resume --json %s %s", folder, test_path(state, "results"));
    assert_int_equal(analyze_run(arguments, false), 1);
    assert_non_null(strstr(analyze_out, "\"skipped\": 2"));
}

/// Of a folder, and of a single file: 3 says that an input is too short, 2 that the command line fits none.
static void a_file_that_is_too_short_stops_no_other(void **state)
{
    static const struct {
        const char *options, *in;
        int code;
    } cases[] = {
        {"-f mfcc_delta", "lengths", 1},       // two of three
        {"-f mfcc_delta", "lengths/c.wav", 3}, // alone
        {"-f mfcc_delta", "lengths/short", 3}, // two, both too short
        {"-f rms", "lengths", 0},
        {"-f whisper", "lengths", 2}, // at this rate no file has it
        {"-f whisper", "lengths/a.wav", 2},
    };
    static const float x[100] = {0.5f};
    mkdir(test_path(state, "lengths"), 0777);
    mkdir(test_path(state, "lengths/short"), 0777);
    analyze_tones_file(state, "lengths/a.wav");
    analyze_tones_file(state, "lengths/b.wav");
    static const char *const names[] = {"lengths/c.wav", "lengths/short/d.wav", "lengths/short/e.wav"};
    for (int k = 0; k < 3; k++)
        test_write(test_path(state, names[k]), &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1}, x, 100,
                   100);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char arguments[256], in[4096];
        snprintf(in, sizeof in, "%s", test_path(state, cases[k].in));
        snprintf(arguments, sizeof arguments, "--backend cpu --format npz %s %%s %%s", cases[k].options);
        const int code = analyze_runf(arguments, in, test_path(state, strstr(in, ".wav") ? "one.npz" : "made"));
        if (code != cases[k].code)
            fail_msg("%s %s: %d, want %d: %s", cases[k].options, in, code, cases[k].code, analyze_out);
        if (k) continue;
        assert_non_null(strstr(analyze_out, "c.wav: delta: 1 frames, want 9 or more"));
        assert_non_null(strstr(analyze_out, "2 done, 0 skipped, 3 failed (3 of them too short or too long)"));
        assert_int_equal(access(test_path(state, "made/a.npz"), F_OK), 0);
        assert_int_equal(access(test_path(state, "made/b.npz"), F_OK), 0);
        assert_int_equal(access(test_path(state, "made/c.npz"), F_OK), -1);
    }
}

static void mistakes_give_a_sentence(void **state)
{
    static const struct {
        const char *arguments, *sentence;
        int code;
    } cases[] = {
        {"-f mell %s x.npy", "warptone analyze: unknown feature \"mell\"; the nearest is \"mel\"", 2},
        {"-f mel,mel %s x.npz", "warptone analyze: feature \"mel\" is named twice", 2},
        {"-f mel %s x.doc",
         "x.doc: format \"doc\", want npy, npz, csv, json, png, or an audio format for a feature that is audio", 2},
        {"-f mel %s x.wav",
         "x.wav: wav holds audio, want one feature that makes signals, as hpss, filter or griffin_lim do", 2},
        {"-f whisper %s x.npy",
         "whisper: 22050 Hz in frames of 2048 every 512, want --rate 16000 --n-fft 400 --hop 160", 2},
        {"-f pitch_shift --vocoder phase %s x.npy", "--vocoder is \"phase\", want transient, locked, librosa or wsola",
         2},
        {"-f time_stretch --speed 2 %s x.png", "time_stretch: 22050 samples of 44100, and a picture has one time axis",
         2},
        {"-f mel %s", "an input or the output is missing, want -f FEATURE IN... OUT", 2},
        {"%s x.npy", "no feature was named, want -f FEATURE IN... OUT", 2},
        {"-f mel %s -", "- as OUT needs --format npy, npz, csv or json", 2},
        {"-f mel --format png %s -", "- as OUT takes npy, npz, csv or json, not png", 2},
        {"-f mel,rms %s x.npy", "npy holds one array, these features make 2: want npz", 2},
        {"-f mel --hop 0 %s x.npy", "--hop", 2},
        {"-f mel --n-fft 1024 --win-length 2048 %s x.npy", "win_length", 2},
        {"-f mel --fmin 9000 --fmax 100 %s x.npy", "in.wav: mel", 2},
        {"-f yin --fmin 5 %s x.npy", "in.wav: ", 2},
        {"-f cqt --n-bins 200 %s x.npy", "in.wav: cqt", 2},
        {"-f mel %s x", "x: no extension says the format, want npy, npz, csv, json or png", 2},
        {"-f mel %s.missing x.npy", "in.wav.missing", 1},
        {"-f mel %s nowhere/x.npy", "nowhere", 1},
    };
    const char *in = analyze_tones_file(state, "in.wav");
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        const int code = analyze_runf(cases[k].arguments, in, "");
        if (code != cases[k].code || !strstr(analyze_out, cases[k].sentence))
            fail_msg("%s: %d, want %d; %s", cases[k].arguments, code, cases[k].code, analyze_out);
        assert_int_equal(strchr(analyze_out, '\n') - analyze_out, (ptrdiff_t)strlen(analyze_out) - 1); // one line
    }
}

// By its name, by a link to it, and as another format than its name says; whole and in tiles.
static void the_input_is_never_written_over(void **state)
{
    static const char *const cases[] = {"-f normalize %s %s", "-f mel --format npy %s %s",
                                        "-f normalize --tile 65536 %s %s", "-f rms --tile 4096 --format npy %s %s"};
    char in[4096], link[4096];
    size_t size, size_after;
    snprintf(in, sizeof in, "%s", analyze_tones_file(state, "kept.wav"));
    snprintf(link, sizeof link, "%s", test_path(state, "link.wav"));
    assert_int_equal(symlink("kept.wav", link), 0);
    char *before = test_slurp(in, &size);
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        assert_int_equal(analyze_runf(cases[k / 2], in, k % 2 ? link : in), 2);
        assert_non_null(strstr(analyze_out, "is the input itself, want another output"));
        char *after = test_slurp(in, &size_after);
        assert_int_equal(size, size_after);
        assert_memory_equal(before, after, size);
        free(after);
    }
    free(before);
    assert_int_equal(unlink(link), 0);
}

// What is left of a recording is worth its features, and a word.
static void a_truncated_file_is_told(void **state)
{
    static const char *const cases[] = {"-f rms %s %s", "-f rms --tile 4096 %s %s"};
    char in[4096], sentence[128];
    snprintf(in, sizeof in, "%s", analyze_tones_file(state, "cut.wav"));
    struct stat facts;
    assert_int_equal(stat(in, &facts), 0);
    assert_int_equal(analyze_runf("-f rms %s %s", in, test_path(state, "cut.npy")), 0);
    assert_null(strstr(analyze_out, "truncated"));
    assert_int_equal(truncate(in, facts.st_size - 4 * (FRAMES / 2)), 0);
    snprintf(sentence, sizeof sentence, "cut.wav: the input is truncated: %d frames are there", FRAMES / 2);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(analyze_runf(cases[k], in, test_path(state, "cut.npy")), 0);
        if (!strstr(analyze_out, sentence)) fail_msg("want %s: %s", sentence, analyze_out);
    }
}

/// Everything at once of signals that are hard: one sample, silence.
static void short_and_silent_files_work(void **state)
{
    const char *every = "-f stft,spectrogram,mel,logmel,mfcc,cqt,chroma,chroma_cqt,chroma_cens,tonnetz,tuning,hpss,yin,"
                        "pyin,onset_strength,onsets,tempo,beats,tempogram,plp,centroid,bandwidth,rolloff,flatness,"
                        "contrast,poly,flux,rms,energy,zcr,trim,split,vad,pcen,vqt,time_stretch,pitch_shift,loudness "
                        "--steps 1 %s %s";
    static const int lengths[] = {1, RATE_HZ / 2};
    char small[1024]; // forty panels take their time
    float *x = calloc(RATE_HZ, sizeof *x);
    for (int k = 0; k < 2; k++) {
        x[0] = k == 0 ? 0.5f : 0;
        test_write(test_path(state, "hard.wav"),
                   &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x, lengths[k],
                   1000);
        assert_analyze(every, test_path(state, "hard.wav"), test_path(state, "hard.npz"));
        assert_analyze(every, test_path(state, "hard.wav"), test_path(state, "hard.json"));
        snprintf(small, sizeof small, "--width 600 --height 200 %s", every);
        assert_analyze(small, test_path(state, "hard.wav"), test_path(state, "hard.png"));
    }
    free(x);
}

static int remove_folders(void **state)
{
    char command[9000];
    snprintf(command, sizeof command, "cd '%s' && rm -rf many results lengths made", test_path(state, "."));
    return system(command) || test_folder_remove(state);
}

static void a_backend_must_be_one(void **state)
{
    assert_int_equal(
        analyze_runf("-f tempo --backend gpu %s %s", analyze_tones_file(state, "in.wav"), test_path(state, "x.csv")),
        2);
    assert_non_null(strstr(analyze_out, "--backend is \"gpu\", want auto, cuda or cpu"));
    if (wt_device_count() > 0) return;
    assert_int_equal(
        analyze_runf("-f tempo --backend cuda %s %s", test_path(state, "in.wav"), test_path(state, "x.csv")), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_holds_what_the_op_gives),
        cmocka_unit_test(spectra_lie_as_librosa_has_them),
        cmocka_unit_test(npz_holds_every_array),
        cmocka_unit_test(csv_has_a_row_a_frame),
        cmocka_unit_test(csv_is_one_table),
        cmocka_unit_test(units_are_those_of_the_numbers),
        cmocka_unit_test(json_tells_times_and_units),
        cmocka_unit_test(pictures_are_written),
        cmocka_unit_test(pictures_have_axes_with_units),
        cmocka_unit_test(parts_of_hpss_add_up),
        cmocka_unit_test(signals_are_stretched_and_shifted),
        cmocka_unit_test(whispers_front_end_is_the_ops),
        cmocka_unit_test(channels_lead_when_kept),
        cmocka_unit_test(folders_are_mirrored),
        cmocka_unit_test(a_file_that_is_too_short_stops_no_other),
        cmocka_unit_test(mistakes_give_a_sentence),
        cmocka_unit_test(the_input_is_never_written_over),
        cmocka_unit_test(a_truncated_file_is_told),
        cmocka_unit_test(short_and_silent_files_work),
        cmocka_unit_test(other_rates_are_resampled),
        cmocka_unit_test(a_backend_must_be_one),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze", tests, test_folder_create, remove_folders);
}
