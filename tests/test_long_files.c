// Long files take no more memory than short ones: the program's largest resident set, of 30 minutes against 3. What is
// held all the same lies in files, and the system takes it back: memory of the program's own is limited.
#include "support/audio_files.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RATE_HZ = 8000, SHORT_S = 180, LONG_S = 1800 };

#ifdef WT_SANITIZED
enum { MEASURED = 0 }; // a sanitizer keeps what was given back, and its shadow passes any limit
#else
enum { MEASURED = 1 };
#endif

static char program[4096];

// Minutes of silence after noise, 16 bits.
static void make_file(const char *path, int rate_hz, int seconds)
{
    enum { BLOCK = 8000 };
    wt_audio_writer *writer;
    const wt_audio_writer_config config = {
        .rate_hz = rate_hz, .channels = 1, .sample = WT_SAMPLE_S16, .no_dither = true};
    float *noise = test_noise(1, BLOCK, 0.3f), *silence = calloc(BLOCK, sizeof *silence);
    assert_ok(wt_audio_writer_open(path, &config, &writer));
    for (int t = 0; t < seconds; t++)
        assert_ok(wt_audio_writer_write(writer, t / 60 % 2 ? silence : noise, rate_hz, BLOCK));
    assert_ok(wt_audio_writer_commit(writer));
    free(noise), free(silence);
}

// A file of 16 bits made longer by silence that takes no room on the disk.
static void prolong(const char *path, uint32_t data_bytes)
{
    const uint32_t riff_bytes = data_bytes + 36;
    FILE *file = fopen(path, "r+b");
    char head[44];
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    assert_memory_equal(head + 36, "data", 4);
    memcpy(head + 4, &riff_bytes, 4), memcpy(head + 40, &data_bytes, 4);
    rewind(file);
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(path, 44 + (off_t)data_bytes), 0);
}

// Whether `warptone ARGUMENTS` did it after what the shell did before, and its largest resident set in KB.
static bool runs(const char *before, const char *arguments, const char *in, const char *out, long *resident_kb)
{
    char command[16384];
    struct rusage usage;
    int status;
    snprintf(command, sizeof command, "%s WARPTONE_BACKEND=cpu TMPDIR='%.*s' exec '%s' %s '%s' '%s' >/dev/null", before,
             (int)(strrchr(in, '/') - in), in, program, arguments, in, out);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    *resident_kb = usage.ru_maxrss;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static long resident_kb(const char *arguments, const char *in, const char *out)
{
    long kb;
    if (!runs("", arguments, in, out, &kb)) fail_msg("%s", arguments);
    return kb;
}

static void need_program(void)
{
    if (!access(program, X_OK)) return;
    print_message("skipped: %s is not built\n", program);
    skip();
}

static void assert_bounded(void **state, const char *arguments, const char *name)
{
    char in[4096], out[4096];
    need_program();
    snprintf(out, sizeof out, "%s", test_path(state, name));
    snprintf(in, sizeof in, "%s", test_path(state, "short.wav"));
    const long few = resident_kb(arguments, in, out);
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    const long many = resident_kb(arguments, in, out);
    // the samples alone of the longer one take 50 MB more
    if (MEASURED && many > few + 8192)
        fail_msg("%s: %ld KB of %d s, %ld KB of %d s", arguments, many, LONG_S, few, SHORT_S);
}

static void features_of_long_files_go_in_tiles(void **state)
{
    assert_bounded(state, "analyze -q -j 1 --rate 0 --tile 65536 -f logmel,mfcc,rms,centroid", "f.npz");
}

static void signals_of_long_files_flow(void **state)
{
    assert_bounded(state, "analyze -q -j 1 --rate 0 --tile 65536 -f denoise", "d.wav");
    assert_bounded(state, "analyze -q -j 1 --rate 0 --tile 65536 --edges 1000 -f filter,fir,savgol,agc,normalize",
                   "s.npz");
    assert_bounded(state, "analyze -q -j 1 --rate 11025 --tile 65536 -f resample", "r.wav");
}

// Ten hours, and one, at the lowest rate there is and long hops; what is asked for at once would be 144 MB of samples.
static void ten_hours_go_in_tiles(void **state)
{
    enum { SHORT_H = 1, LONG_H = 10, LOW_RATE_HZ = 1000 };
    static const char *const arguments[] = {
        "analyze -q -j 1 --rate 0 --tile 262144 --hop 16384 -f pcen,chroma,rms",
        "analyze -q -j 1 --rate 0 --tile 262144 --hop 2000 -f onsets,beats,split",
        "analyze -q -j 1 --rate 0 --tile 262144 --n-fft 512 -f stft",              // 145 MB
        "analyze -q -j 1 --rate 0 --tile 262144 --edges 100 -f filter,median",     // 288 MB
        "analyze -q -j 1 --rate 0 --tile 262144 --hop 4000 -f tempo_ratios,tempos,fourier_tempogram,plp",
    };
    char in[2][4096], out[4096];
    need_program();
    for (int k = 0; k < 2; k++) {
        snprintf(in[k], sizeof in[k], "%s", test_path(state, k ? "ten.wav" : "one.wav"));
        make_file(in[k], LOW_RATE_HZ, 600);
        prolong(in[k], 2u * LOW_RATE_HZ * 3600 * (k ? LONG_H : SHORT_H));
    }
    snprintf(out, sizeof out, "%s", test_path(state, "ten.npz"));
    for (size_t k = 0; k < sizeof arguments / sizeof *arguments; k++) {
        const long few = resident_kb(arguments[k], in[0], out), many = resident_kb(arguments[k], in[1], out);
        if (MEASURED && many > few + 8192)
            fail_msg("%s: %ld KB of 10 hours, %ld KB of one", arguments[k], many, few);
    }
}

/// Of a signal of 58 MB: whole signals, and formats that are not written tile by tile, in 48 MB.
static void what_is_held_lies_in_files(void **state)
{
    const char *limit = MEASURED ? "ulimit -s 512; ulimit -d 49152;" : ""; // KB; a stack a processor counts too
    static const struct {
        const char *arguments, *name;
    } cases[] = {
        {"-f filtfilt --edges 1000", "f.wav"},
        {"-f insgt", "i.npy"},
        {"-f spectrogram,beats", "s.png"},
        {"-f spectrogram --format npz", "-"},
        {"-f pcen_delta,nsgt", "p.npz"},
        {"-f rms,beats,flux", "r.json"},
        {"-f plp,rms", "r.csv"},
        {"-f time_stretch --speed 1.25", "t.wav"},
        {"-f time_stretch --speed 0.8 --vocoder librosa", "t.npy"},
        {"-f time_stretch --speed 2 --vocoder locked", "t.npz"},
        {"-f time_stretch --speed 1.5 --vocoder wsola --n-fft 256", "t.wav"},
        {"-f pitch_shift --steps 12", "t.wav"},
        {"-f pitch_shift --steps -12 --keep-formants --vocoder librosa", "t.wav"},
        {"-f griffin_lim --iterations 9", "g.wav"},
        {"-f mel_to_audio --iterations 2 --n-mels 16 --n-fft 256 --hop 256", "g.wav"},
        {"-f mfcc_to_audio --iterations 2 --n-mels 16 --n-mfcc 13 --n-fft 256 --hop 256", "g.wav"},
        {"-f nmf --iterations 2", "n.npz"},
    };
    char in[4096], out[4096], arguments[512];
    long kb;
    need_program();
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const bool to_stdout = !strcmp(cases[k].name, "-");
        snprintf(out, sizeof out, "%s", to_stdout ? "-" : test_path(state, cases[k].name));
        snprintf(arguments, sizeof arguments, "analyze -q -j 1 --rate 0 --tile 65536 %s", cases[k].arguments);
        if (!runs(limit, arguments, in, out, &kb)) fail_msg("%s", arguments);
    }
    snprintf(out, sizeof out, "%s", test_path(state, "none.npz")); // it is a limit: held whole, it is passed
    assert_int_equal(!runs(limit, "analyze -q -j 1 --rate 0 -f filtfilt --edges 1000", in, out, &kb), MEASURED);
    assert_int_equal(test_folder_count(state, "none.npz"), !MEASURED);
    assert_int_equal(test_folder_count(state, "warptone-"), 0);
}

/// What lies in files is what lies in memory: 15 MB of a signal, more than that of spectra.
static void what_lies_in_files_is_the_same(void **state)
{
    static const char *const features[] = {"time_stretch --speed 1.25", "pitch_shift --steps 12 --keep-formants",
                                           "griffin_lim --iterations 9", "nmf --iterations 2",
                                           "mel_to_audio --iterations 2 --n-mels 16 --n-fft 256 --hop 256",
                                           "mfcc_to_audio --iterations 2 --n-mels 16 --n-mfcc 13 --n-fft 256 --hop 256"};
    char in[4096], whole[4096], tiled[4096], arguments[512];
    need_program();
    snprintf(in, sizeof in, "%s", test_path(state, "middle.wav"));
    make_file(in, RATE_HZ, 480);
    snprintf(whole, sizeof whole, "%s", test_path(state, "whole.npz"));
    snprintf(tiled, sizeof tiled, "%s", test_path(state, "tiled.npz"));
    for (size_t k = 0; k < sizeof features / sizeof *features; k++) {
        size_t n_whole, n_tiled;
        snprintf(arguments, sizeof arguments, "analyze -q -j 1 --rate 0 -f %s", features[k]);
        resident_kb(arguments, in, whole);
        strcat(arguments, " --tile 65536");
        resident_kb(arguments, in, tiled);
        char *a = test_slurp(whole, &n_whole), *b = test_slurp(tiled, &n_tiled);
        if (n_whole != n_tiled || memcmp(a, b, n_whole)) fail_msg("%s: other bytes than of the whole", features[k]);
        free(a), free(b);
    }
}

/// Nothing stays: no half file, no file with another name.
static void a_full_disk_is_told_and_leaves_nothing(void **state)
{
    static const char limit[] = "trap '' XFSZ; ulimit -f 4000; exec 2>%s;"; // blocks of 512 or 1024 bytes
    static const struct {
        const char *arguments, *name;
    } cases[] = {
        {"-f spectrogram", "full.npz"}, {"-f spectrogram", "full.csv"},          {"-f filter --edges 1000", "full.wav"},
        {"-f spectrogram", "full.png"}, {"-f filtfilt --edges 1000", "full.npy"}, {"-f pcen_delta", "full.npz"},
    };
    char in[4096], out[4096], arguments[512], before[4200];
    long kb;
    need_program();
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    snprintf(before, sizeof before, limit, test_path(state, "said"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t size;
        snprintf(out, sizeof out, "%s", test_path(state, cases[k].name));
        snprintf(arguments, sizeof arguments, "analyze -q -j 1 --rate 0 --tile 65536 %s", cases[k].arguments);
        const int n_before = test_folder_count(state, "");
        if (runs(before, arguments, in, out, &kb)) fail_msg("%s %s did not fail", arguments, cases[k].name);
        char *said = test_slurp(test_path(state, "said"), &size);
        if (!memmem(said, size, "File too large", 14)) fail_msg("%s: %.*s", arguments, (int)size, said);
        free(said);
        assert_int_equal(unlink(test_path(state, "said")), 0);
        assert_int_equal(test_folder_count(state, ""), n_before);
    }
}

static void chains_stream_long_files(void **state)
{
    assert_bounded(state, "process -q -j 1 --no-loudness -p telephone", "p.wav");
}

static int create(void **state)
{
    if (test_folder_create(state)) return -1;
    make_file(test_path(state, "short.wav"), RATE_HZ, SHORT_S);
    make_file(test_path(state, "long.wav"), RATE_HZ, LONG_S);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_of_long_files_go_in_tiles),
        cmocka_unit_test(signals_of_long_files_flow),
        cmocka_unit_test(ten_hours_go_in_tiles),
        cmocka_unit_test(what_is_held_lies_in_files),
        cmocka_unit_test(what_lies_in_files_is_the_same),
        cmocka_unit_test(a_full_disk_is_told_and_leaves_nothing),
        cmocka_unit_test(chains_stream_long_files),
    };
    if (!find_program(program, sizeof program)) return 1;
    setenv("WARPTONE_PRESETS", "presets", 0);
    return cmocka_run_group_tests_name("long_files", tests, create, test_folder_remove);
}
