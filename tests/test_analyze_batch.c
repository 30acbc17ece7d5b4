// `warptone analyze` of folders on a GPU: files in batches give the bytes that each gives by itself, whatever their
// lengths, rates, channels and encodings, and a broken one costs a sentence.
#include "support/audio_files.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warptone/device.h>

enum { RATE_HZ = 22050 };

static char program[4096], out[1 << 16];

static int run(const char *arguments)
{
    return run_command(out, sizeof out, "'%s' analyze %s 2>&1", program, arguments);
}

static const struct {
    const char *name;
    int rate_hz, channels, n_frames;
    wt_sample_format sample;
} files[] = {
    {"a.wav", RATE_HZ, 1, 33000, WT_SAMPLE_S16}, {"b.wav", RATE_HZ, 1, 33000, WT_SAMPLE_S16},
    {"c.wav", RATE_HZ, 1, 33000, WT_SAMPLE_S16}, {"d.wav", RATE_HZ, 1, 32001, WT_SAMPLE_S16},
    {"e.wav", RATE_HZ, 1, 33000, WT_SAMPLE_F32}, {"f.wav", 44100, 2, 50000, WT_SAMPLE_S16},
    {"g.flac", 44100, 2, 50000, WT_SAMPLE_S16},  {"h.wav", 44100, 2, 49000, WT_SAMPLE_S16},
    {"i.flac", 44100, 2, 50000, WT_SAMPLE_S24},  {"j.wav", 16000, 3, 20000, WT_SAMPLE_S16},
    {"k.wav", RATE_HZ, 1, 6000, WT_SAMPLE_S16},
};

enum { N_FILES = sizeof files / sizeof *files };

/// Tones that begin anew every half second, other ones in each file, and noise far below.
static void make_files(const char *folder)
{
    for (int k = 0; k < N_FILES; k++) {
        char path[4200];
        const int n = files[k].n_frames, channels = files[k].channels;
        float *x = test_noise(channels, n, 0.003f);
        for (int i = 0; i < channels * n; i++) {
            const float t = (float)(i % n) / (float)files[k].rate_hz, from = fmodf(t, 0.5f);
            x[i] += 0.3f * expf(-6 * from) * sinf(6.2831853f * (220 + 40 * (float)k) * t);
        }
        snprintf(path, sizeof path, "%s/%s", folder, files[k].name);
        test_write(path,
                   &(wt_audio_writer_config){
                       .rate_hz = files[k].rate_hz, .channels = channels, .sample = files[k].sample, .no_dither = true},
                   x, n, 1000);
        free(x);
    }
}

static void need_a_gpu(void)
{
    if (wt_device_count() > 0 && !access(program, X_OK)) return;
    print_message("skipped: no CUDA device, or %s is not built\n", program);
    skip();
}

static void assert_same(const char *a, const char *b, const char *what)
{
    size_t n_a, n_b;
    char *x = test_slurp(a, &n_a), *y = test_slurp(b, &n_b);
    if (n_a != n_b) fail_msg("%s: %zu bytes in a batch, %zu alone", what, n_a, n_b);
    for (size_t k = 0; k < n_a; k++)
        if (x[k] != y[k]) fail_msg("%s: byte %zu of %zu is another", what, k, n_a);
    free(x), free(y);
}

static void assert_batches_are_files(void **state, const char *features)
{
    char folder[4096], together[4200], arguments[12000];
    snprintf(folder, sizeof folder, "%s", test_path(state, "in"));
    snprintf(together, sizeof together, "%s", test_path(state, "together"));
    snprintf(arguments, sizeof arguments, "-f %s --backend cuda -j 2 --format npz '%s' '%s/'", features, folder,
             together);
    if (run(arguments)) fail_msg("%s", out);
    for (int k = 0; k < N_FILES; k++) {
        char batched[4300], what[200];
        const char *alone = test_path(state, "alone.npz");
        snprintf(arguments, sizeof arguments, "-f %s --backend cuda '%s/%s' '%s'", features, folder, files[k].name,
                 alone);
        if (run(arguments)) fail_msg("%s", out);
        snprintf(batched, sizeof batched, "%s/%.*s.npz", together, (int)strcspn(files[k].name, "."), files[k].name);
        snprintf(what, sizeof what, "%.100s of %s", features, files[k].name);
        assert_same(batched, alone, what);
    }
}

static void batches_of_any_length_are_files(void **state)
{
    need_a_gpu();
    assert_batches_are_files(state, "spectrogram,logmel,mfcc_delta,pcen,yin,centroid,flatness,poly,flux,rms,energy");
}

static void batches_of_one_length_are_files(void **state)
{
    need_a_gpu();
    assert_batches_are_files(state,
                             "cqt,vqt,chroma,tuning,hpss,time_stretch,pitch_shift,onsets,beats,tempogram,contrast,"
                             "zcr,trim,split,vad,loudness --speed 1.25 --steps 4");
}

static void a_broken_file_costs_a_sentence(void **state)
{
    char folder[4096], path[4200], arguments[9000];
    size_t size;
    need_a_gpu();
    snprintf(folder, sizeof folder, "%s", test_path(state, "in"));
    snprintf(path, sizeof path, "%s/a.wav", folder);
    char *bytes = test_slurp(path, &size);
    snprintf(path, sizeof path, "%s/cut.wav", folder); // promises more than there is
    test_spill(path, bytes, size / 2);
    snprintf(path, sizeof path, "%s/bad.wav", folder);
    test_spill(path, "RIFF", 4);
    free(bytes);
    snprintf(arguments, sizeof arguments, "-f logmel,beats --backend cuda --format npz '%s' '%s/'", folder,
             test_path(state, "broken"));
    assert_int_equal(run(arguments), 1);
    assert_non_null(strstr(out, "bad.wav: "));
    snprintf(path, sizeof path, "%d done, 0 skipped, 1 failed", N_FILES + 1);
    if (!strstr(out, path)) fail_msg("want \"%s\" in: %s", path, out);
    snprintf(path, sizeof path, "%s", test_path(state, "broken/cut.npz"));
    assert_int_equal(access(path, R_OK), 0);
    snprintf(path, sizeof path, "%s/cut.wav", folder), unlink(path);
    snprintf(path, sizeof path, "%s/bad.wav", folder), unlink(path);
}

/// What one file of a batch is too short for, the others are given.
static void a_short_file_costs_a_sentence(void **state)
{
    char folder[4096], path[4200], arguments[9000];
    need_a_gpu();
    float *x = test_noise(1, 4000, 0.3f);
    snprintf(folder, sizeof folder, "%s", test_path(state, "short"));
    assert_int_equal(mkdir(folder, 0777), 0);
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%d.wav", folder, k);
        test_write(path, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_S16}, x,
                   k == 1 ? 500 : 4000, 1000);
    }
    snprintf(arguments, sizeof arguments, "-f mfcc_delta --hop 256 --backend cuda -j 1 --format npz '%s' '%s/'", folder,
             test_path(state, "results"));
    assert_int_equal(run(arguments), 1);
    assert_non_null(strstr(out, "1.wav: delta: 2 frames, want 9 or more"));
    assert_non_null(strstr(out, "2 done, 0 skipped, 1 failed"));
    free(x);
}

/// One sample, silence, and what is no number: as many numbers as on the CPU, and an exit code of 0.
static void hard_files_work(void **state)
{
    static const char *const every =
        "-f stft,spectrogram,mel,logmel,mfcc,pcen,cqt,chroma,chroma_cqt,chroma_cens,tonnetz,tuning,hpss,yin,pyin,"
        "onset_strength,onsets,tempo,beats,tempogram,plp,centroid,bandwidth,rolloff,flatness,contrast,flux,rms,zcr,"
        "trim,"
        "split,vad,loudness";
    static const int lengths[] = {1, RATE_HZ / 2, RATE_HZ / 2};
    need_a_gpu();
    float *x = calloc(RATE_HZ, sizeof *x);
    for (int k = 0; k < 3; k++) {
        char in[4096], arguments[9000];
        size_t n_cpu, n_cuda;
        for (int t = 0; t < lengths[k]; t++) x[t] = k == 0 ? 0.5f : k == 1 ? 0 : NAN;
        snprintf(in, sizeof in, "%s", test_path(state, "hard.wav"));
        test_write(in, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x,
                   lengths[k], 1000);
        snprintf(arguments, sizeof arguments, "%s --backend cpu '%s' '%s'", every, in, test_path(state, "cpu.npz"));
        if (run(arguments)) fail_msg("%s", out);
        snprintf(arguments, sizeof arguments, "%s --backend cuda '%s' '%s'", every, in, test_path(state, "cuda.npz"));
        if (run(arguments)) fail_msg("%s", out);
        free(test_slurp(test_path(state, "cpu.npz"), &n_cpu)), free(test_slurp(test_path(state, "cuda.npz"), &n_cuda));
        if (n_cpu != n_cuda) fail_msg("case %d: %zu bytes, want %zu", k, n_cuda, n_cpu);
    }
    free(x);
}

static int make_folder(void **state)
{
    if (test_folder_create(state) || mkdir(test_path(state, "in"), 0777)) return 1;
    make_files(test_path(state, "in"));
    return 0;
}

static int remove_folder(void **state)
{
    char command[9000];
    snprintf(command, sizeof command, "cd '%s' && rm -rf in together broken short results", test_path(state, "."));
    return system(command) || test_folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_any_length_are_files),
        cmocka_unit_test(batches_of_one_length_are_files),
        cmocka_unit_test(a_broken_file_costs_a_sentence),
        cmocka_unit_test(a_short_file_costs_a_sentence),
        cmocka_unit_test(hard_files_work),
    };
    if (!find_program(program, sizeof program)) return 1;
    return cmocka_run_group_tests_name("analyze batch", tests, make_folder, remove_folder);
}
