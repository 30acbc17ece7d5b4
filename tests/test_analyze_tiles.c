// `warptone analyze` of files longer than a tile: what comes out is what the whole signal gives.
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include "../hosts/analyze_write.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warptone/device.h>

enum { RATE_HZ = 22050 };

static char program[4096], out[1 << 16];

static int run(const char *backend, const char *options, const char *in, const char *to)
{
    char command[32768];
    if (access(program, X_OK)) {
        print_message("skipped: %s is not built\n", program);
        skip();
    }
    snprintf(command, sizeof command, "'%s' analyze --backend %s %s '%s' '%s' 2>&1", program, backend, options, in, to);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t length = fread(out, 1, sizeof out - 1, pipe);
    out[length] = 0;
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

typedef struct outputs {
    char in[4096], whole[4096], tiled[4096];
} outputs;

/// The same from the whole signal and from tiles.
static void run_both(void **state, const char *backend, const char *options, const char *name, outputs *o)
{
    char tiled[9000];
    snprintf(o->whole, sizeof o->whole, "%s", test_path(state, name));
    snprintf(o->tiled, sizeof o->tiled, "%s", test_path(state, "tiled"));
    strcat(o->tiled, strrchr(name, '.'));
    snprintf(tiled, sizeof tiled, "%s --tile 1000", options);
    if (run(backend, options, o->in, o->whole)) fail_msg("%s", out);
    if (run(backend, tiled, o->in, o->tiled)) fail_msg("%s", out);
}

static void assert_same_files(const char *a, const char *b, const char *what)
{
    size_t n_a, n_b;
    char *x = test_slurp(a, &n_a), *y = test_slurp(b, &n_b);
    if (n_a != n_b || memcmp(x, y, n_a)) fail_msg("%s: other bytes than of the whole signal", what);
    free(x), free(y);
}

static void assert_input_tiled(void **state, const char *backend, const char *input, const char *options,
                               const char *name)
{
    outputs o;
    snprintf(o.in, sizeof o.in, "%s", test_path(state, input));
    run_both(state, backend, options, name, &o);
    assert_same_files(o.whole, o.tiled, options);
}

static void assert_tiled(void **state, const char *options, const char *name)
{
    assert_input_tiled(state, "cpu", "long.wav", options, name);
}

/// Each value within `bound` of the whole signal's peak.
static void assert_near(void **state, const char *backend, const char *input, const char *feature, double bound)
{
    outputs o;
    npy want, got;
    char options[256];
    snprintf(o.in, sizeof o.in, "%s", test_path(state, input));
    snprintf(options, sizeof options, "-f %s", feature);
    run_both(state, backend, options, "whole.npy", &o);
    assert_ok(npy_read(o.whole, &want));
    assert_ok(npy_read(o.tiled, &got));
    assert_true(want.n_dims == got.n_dims && want.count == got.count);
    const size_t count = want.count * (want.kind == 'c' ? 2 : 1);
    double *w = npy_doubles(&want), *g = npy_doubles(&got), peak = 0;
    for (size_t i = 0; i < count; i++) peak = fmax(peak, fabs(w[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs(w[i] - g[i]) <= bound * peak))
            fail_msg("%s on %s, value %zu: %.9g, want %.9g, peak %.9g", feature, backend, i, g[i], w[i], peak);
    free(w), free(g);
    npy_free(&want), npy_free(&got);
}

static void columns_have_the_bytes_of_the_whole_signal(void **state)
{
    const char *every = "-f stft,spectrogram,mel,logmel,yin,centroid,bandwidth,rolloff,flatness,flux,rms,zcr";
    char options[256];
    assert_tiled(state, every, "whole.npz");
    snprintf(options, sizeof options, "%s --channels --n-fft 1000 --hop 333", every);
    assert_tiled(state, options, "whole.npz");
    assert_tiled(state, "-f logmel --rate 0 --n-fft 400 --hop 500", "whole.npy");
    assert_tiled(state, "-f rms,flux,logmel", "whole.csv");
}

/// Of 4 GiB and more sizes and places stand in 64 bits, as python's zipfile reads them.
static void archives_may_be_larger_than_4_gib(void **state)
{
    enum { ROWS = 1025, COLUMNS = 1 << 20, FEW = 1000 };
    const analyze_options options = {.format = ANALYZE_NPZ};
    static float zeros[FEW];
    static analyze_result all;
    static analyze_numpy archive;
    const analyze_report report = {.options = &options, .result = &all};
    const char *path = test_path(state, "wide.npz");
    all.n_arrays = 2;
    all.arrays[0] = (analyze_array){.name = "spectrogram", .n_dims = 2, .shape = {ROWS, COLUMNS}};
    all.arrays[1] = (analyze_array){.name = "rms", .n_dims = 1, .shape = {FEW}, .data = zeros};
    assert_ok(analyze_numpy_lay(&report, &archive));
    assert_true(archive.wide && archive.members[1].offset == 4299161793);
    all.arrays[0] = (analyze_array){.name = "rms2", .n_dims = 1, .shape = {FEW}, .data = zeros};
    assert_ok(analyze_numpy_lay(&report, &archive)); // it stays wide
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    for (int k = 0; k < 2; k++) assert_ok(analyze_numpy_put_whole(&archive, fd, &all, k));
    assert_ok(analyze_numpy_finish(&archive, fd, &all));
    close(fd);
    char command[9000];
    snprintf(command, sizeof command,
             "python3 -c \"import zipfile,sys; z=zipfile.ZipFile(sys.argv[1]); "
             "print([(m.filename, m.file_size, m.header_offset, m.extract_version) for m in z.infolist()], "
             "z.testzip())\" '%s' 2>&1", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = 0;
    const int status = pclose(pipe);
    if (WEXITSTATUS(status) == 127) skip(); // there is no python3
    if (strcmp(out, "[('rms2.npy', 4128, 0, 45), ('rms.npy', 4128, 4186, 45)] None\n")) fail_msg("%s", out);
}

/// What needs the loudest band, a tuning, a state, or frames far beside its own.
static void columns_that_need_more_have_the_same_bytes(void **state)
{
    assert_tiled(state, "-f pcen,chroma,contrast,onset_strength,tempogram,hpss,mel", "whole.npz");
    assert_tiled(state, "-f mfcc,mfcc_delta,mfcc_delta2,mfcc_to_mel --lifter 22", "whole.npz");
    assert_tiled(state, "-f spectrogram_db,logmel,mfcc,mfcc_to_mel --ref max", "whole.npz");
    assert_tiled(state, "-f reassigned", "whole.npz");
    assert_tiled(state, "-f reassigned --channels --no-clip --fill-nan --no-center --n-fft 1000 --hop 333", "whole.npz");
    assert_tiled(state, "-f pcen,contrast,onset_strength --channels --fmin 100 --htk", "whole.npz");
}

/// Onset strength is of centred frames also when others are not: an impulse at the very beginning is its loudest.
static void the_loudest_frame_is_a_centred_one(void **state)
{
    enum { N = RATE_HZ };
    float *x = test_noise(1, N, 1e-5f);
    x[0] = 1;
    test_write(test_path(state, "begin.wav"),
               &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_F32}, x, N, 1000);
    free(x);
    assert_near(state, "cpu", "begin.wav", "onset_strength --no-center", 1e-6);
}

static void what_is_gathered_has_the_same_bytes(void **state)
{
    assert_tiled(state, "-f onsets,tempo,beats,plp,pyin,tuning,trim,split,vad,loudness --backtrack", "whole.npz");
    assert_tiled(state, "-f beats,mel,tuning,split,rms", "whole.npz");
    assert_tiled(state, "-f beats,tuning,split", "whole.json");
    assert_tiled(state, "-f time_stretch,pitch_shift,poly --speed 1.1 --steps 2", "whole.npz");
    assert_tiled(state, "-f time_stretch --speed 1.5", "whole.wav");
    assert_tiled(state, "-f time_stretch,pitch_shift --speed 0.7 --vocoder librosa --keep-formants", "whole.npz");
    assert_tiled(state, "-f time_stretch,pitch_shift --speed 3 --steps -5 --vocoder locked --channels", "whole.npz");
    assert_tiled(state, "-f time_stretch,pitch_shift --speed 1.3 --steps 9 --vocoder wsola", "whole.npz");
    assert_tiled(state, "-f nmf,griffin_lim,mel_to_audio,mfcc_to_audio --iterations 3 --channels", "whole.npz");
    assert_tiled(state, "-f whisper --rate 16000 --n-fft 400 --hop 160", "whole.npy");
    assert_tiled(state, "-f vad", "whole.csv");
}

static void separated_parts_have_the_same_samples(void **state)
{
    static const char *const parts[] = {"harmonic", "percussive"};
    outputs o;
    snprintf(o.in, sizeof o.in, "%s", test_path(state, "long.wav"));
    run_both(state, "cpu", "-f hpss", "whole.wav", &o);
    for (int k = 0; k < 2; k++) {
        char a[4200], b[4200];
        snprintf(a, sizeof a, "%.*s-%s.wav", (int)strlen(o.whole) - 4, o.whole, parts[k]);
        snprintf(b, sizeof b, "%.*s-%s.wav", (int)strlen(o.tiled) - 4, o.tiled, parts[k]);
        assert_same_files(a, b, parts[k]);
        unlink(a), unlink(b);
    }
}

/// What has a state goes on from tile to tile, what is late is given what lies behind.
static void effects_have_the_same_bytes(void **state)
{
    char options[8600];
    assert_tiled(state,
                 "-f filter,fir,preemphasis,deemphasis,savgol,istft,resample,filtfilt,insgt --edges 1000 --taps 301",
                 "whole.npz");
    assert_tiled(state, "-f agc,denoise,filter --channels --edges 300,3400 --band pass", "whole.npz");
    assert_tiled(state, "-f denoise --noise 0.2,0.6 --channels", "whole.wav");
    assert_tiled(state, "-f agc --rate 16000 --quality fast", "whole.wav");
    snprintf(options, sizeof options, "-f convolve,echo_cancel --impulse '%s' --playback '%s'",
             test_path(state, "short.wav"), test_path(state, "short.wav"));
    assert_tiled(state, options, "whole.npz");
    assert_tiled(state, "-f rms_delta,tempogram_delta,logmel_delta2,plp_delta", "whole.npz");
}

/// The level is measured on a walk before, by RMS each channel by itself, as of the whole.
static void levels_are_those_of_the_whole_signal(void **state)
{
    assert_tiled(state, "-f normalize,rms --channels", "whole.npz");
    assert_tiled(state, "-f normalize --dual-mono --no-true-peak --target -3", "whole.npy");
    assert_tiled(state, "-f normalize --by rms --channels", "whole.npy");
    assert_tiled(state, "-f normalize --by rms", "whole.npy");
    assert_tiled(state, "-f normalize --by peak --channels", "whole.npy");
}

/// Halvings are transforms of blocks: a tile's lie where the whole's do, for which it begins a block of the lowest rate
/// before its own frames. Several tiles each.
static const char *const constant_q[] = {
    "-f vqt,hybrid_cqt,pseudo_cqt --rate 0 --channels --n-bins 60 --fmin 100 --hop 256",
    "-f icqt --rate 0 --channels --n-bins 48 --fmin 100 --hop 256",
    "-f chroma_cqt,chroma_cens,tonnetz --rate 0 --fmin 100 --n-octaves 5",
    "-f chroma_cqt,tonnetz --cqt-mode hybrid --rate 0 --fmin 100 --n-octaves 5",
};
static const char *const of_seven_octaves[] = {
    "-f cqt,icqt --rate 0",
    "-f cqt --rate 0 --n-bins 24 --hop 1024 --padding reflect", // halved early
};

static void constant_q_is_that_of_the_whole_signal(void **state)
{
    for (size_t k = 0; k < sizeof constant_q / sizeof *constant_q; k++)
        assert_input_tiled(state, "cpu", "longer.wav", constant_q[k], "whole.npz");
    for (size_t k = 0; k < sizeof of_seven_octaves / sizeof *of_seven_octaves; k++)
        assert_input_tiled(state, "cpu", "longest.wav", of_seven_octaves[k], "whole.npz");
}

/// A file that ends before its header says: the columns are those of what there is.
static void tiles_end_where_the_file_does(void **state)
{
    enum { N = 3 * RATE_HZ };
    outputs o;
    size_t size;
    float *x = test_noise(1, N, 0.3f);
    snprintf(o.in, sizeof o.in, "%s", test_path(state, "cut.flac"));
    test_write(o.in, &(wt_audio_writer_config){.rate_hz = RATE_HZ, .channels = 1}, x, N, 1000);
    char *bytes = test_slurp(o.in, &size);
    test_spill(o.in, bytes, size * 2 / 3);
    free(bytes), free(x);
    run_both(state, "cpu", "-f logmel,zcr", "whole.npz", &o);
    assert_same_files(o.whole, o.tiled, "columns");
    run_both(state, "cpu", "-f pcen,onsets,hpss,tuning", "whole.npz", &o);
    assert_same_files(o.whole, o.tiled, "what needs more");
}

/// Formats that are not written tile by tile, and slopes of what goes on from tile to tile: from files between.
static void formats_of_the_whole_signal_have_the_same_bytes(void **state)
{
    assert_tiled(state, "-f mel,pcen,rms,beats,tempo", "whole.json");
    assert_tiled(state, "-f stft,hpss,rms --channels --n-fft 512", "whole.json");
    assert_tiled(state, "-f logmel,beats,yin,hpss,split --width 600 --height 200", "whole.png");
    assert_tiled(state, "-f resample,tuning,loudness --width 600 --height 200", "whole.png");
    assert_tiled(state, "-f filter --edges 1000 --width 600 --height 200", "whole.png");
    assert_tiled(state, "-f pyin,rms", "whole.csv");
    assert_tiled(state, "-f pcen_delta2,pcen,pcen_delta,rms", "whole.npz");
    assert_tiled(state, "-f pcen_delta --channels", "whole.npy");
}

static void what_no_table_holds_is_refused(void **state)
{
    char in[4096];
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    assert_int_equal(run("cpu", "-f mel,beats --tile 500", in, test_path(state, "x.csv")), 2);
    assert_non_null(strstr(out, "csv holds one table, mel and beats make two"));
    assert_int_equal(run("cpu", "-f mel --channels --tile 500", in, test_path(state, "x.png")), 2);
    assert_non_null(strstr(out, "png draws one channel, not 2"));
}

/// Slopes of what is made in tiles do not see a signal's other end; those of what is made of the whole do.
static void slopes_that_wrap_are_refused(void **state)
{
    char in[4096];
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    assert_int_equal(run("cpu", "-f mel,mel_delta --delta-mode wrap --tile 500", in, test_path(state, "x.npz")), 4);
    assert_non_null(strstr(out, "mel_delta: --delta-mode wrap wants a signal's end beside its beginning"));
    assert_int_equal(run("cpu", "-f mfcc_delta --delta-mode wrap --tile 500", in, test_path(state, "x.npz")), 4);
    assert_tiled(state, "-f mel,plp_delta --delta-mode wrap", "whole.npz");
}

/// A tile has room for the filters of octaves that there are, not of those that are refused.
static void octaves_that_do_not_exist_are_refused(void **state)
{
    char in[4096];
    snprintf(in, sizeof in, "%s", test_path(state, "long.wav"));
    assert_int_equal(run("cpu", "-f vqt --bins-per-octave 2 --tile 500", in, test_path(state, "x.npz")), 2);
    assert_non_null(strstr(out, "Hz, want 11025.0 or less (half the rate)"));
}

/// The same on a GPU, tiles against the whole there: what is not the same bits is rounding of sums in another order, on
/// an H200 within 1e-6 of the peak.
static void cuda_gives_the_same_in_tiles(void **state)
{
    static const char *const of_long[] = {
        "spectrogram", "logmel", "mfcc", "pcen", "chroma", "yin", "flux", "onset_strength", "contrast", "tempogram",
        "tempo_ratios", "fourier_tempogram", "residual --margin 2", "median_spectrogram --kernel 9",
        "spectrogram_db --channels", "onset_strength --channels", "pcen --channels", "contrast --channels",
        "filter --edges 1000", "filtfilt --edges 1000", "fir --edges 1000", "savgol", "preemphasis", "deemphasis",
        "normalize --channels", "agc --channels", "denoise", "istft", "resample --rate 16000", "rms_delta"};
    static const char *const numbers[] = {"tuning", "tempo", "tempos"};
    static const char *const integers[] = {"split", "trim", "vad"};
    if (wt_device_count() < 1) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    for (size_t k = 0; k < sizeof of_long / sizeof *of_long; k++)
        assert_near(state, "cuda", "long.wav", of_long[k], 2e-6);
    for (size_t k = 0; k < sizeof constant_q / sizeof *constant_q; k++)
        assert_input_tiled(state, "cuda", "longer.wav", constant_q[k], "whole.npz");
    for (size_t k = 0; k < sizeof of_seven_octaves / sizeof *of_seven_octaves; k++)
        assert_input_tiled(state, "cuda", "longest.wav", of_seven_octaves[k], "whole.npz");
    for (size_t k = 0; k < 3; k++) {
        assert_near(state, "cuda", "long.wav", numbers[k], 1e-9);
        assert_near(state, "cuda", "long.wav", integers[k], 0);
    }
    assert_near(state, "cuda", "long.wav", "median --kernel 31", 0);
    assert_near(state, "cuda", "long.wav", "nsgt", 0); // all samples at once, as of the whole
    assert_near(state, "cuda", "long.wav", "insgt", 0);
    assert_near(state, "cuda", "long.wav", "time_stretch --speed 1.25", 0);
    assert_near(state, "cuda", "long.wav", "pitch_shift --steps 3 --keep-formants", 0);
    assert_near(state, "cuda", "long.wav", "griffin_lim --iterations 3", 0);
    assert_near(state, "cuda", "long.wav", "mel_to_audio --iterations 3", 0);
    outputs o; // pyin: all samples at once, as of the whole
    snprintf(o.in, sizeof o.in, "%s", test_path(state, "long.wav"));
    run_both(state, "cuda", "-f pyin", "whole.npz", &o);
    assert_same_files(o.whole, o.tiled, "pyin");
    run_both(state, "cuda", "-f rms,beats,pyin", "whole.json", &o);
    assert_same_files(o.whole, o.tiled, "what is gathered for json");
}

/// Two channels at another rate, with a remainder by every hop, so that tiles begin within the resampler's blocks;
/// tones that begin anew over noise that comes and goes.
static void make_file(const char *path, int rate_hz, int n)
{
    float *x = test_noise(2, n, 0.1f);
    for (int i = 0; i < 2 * n; i++) {
        const float t = (float)(i % n) / (float)rate_hz, from = fmodf(t, 0.4f);
        x[i] *= 1e-2f + fabsf(sinf(t * 1.7f));
        x[i] += 0.3f * expf(-5 * from) * sinf(6.2831853f * 447.3f * t);
    }
    test_write(path, &(wt_audio_writer_config){.rate_hz = rate_hz, .channels = 2, .sample = WT_SAMPLE_F32}, x, n, 1000);
    free(x);
}

static int create(void **state)
{
    if (test_folder_create(state)) return -1;
    make_file(test_path(state, "long.wav"), 44100, 3 * 44100 + 77);
    make_file(test_path(state, "longer.wav"), 10000, 60 * 10000 + 77);
    make_file(test_path(state, "longest.wav"), 10000, 220 * 10000 + 77);
    make_file(test_path(state, "short.wav"), 16000, 8000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_the_bytes_of_the_whole_signal),
        cmocka_unit_test(archives_may_be_larger_than_4_gib),
        cmocka_unit_test(columns_that_need_more_have_the_same_bytes),
        cmocka_unit_test(the_loudest_frame_is_a_centred_one),
        cmocka_unit_test(what_is_gathered_has_the_same_bytes),
        cmocka_unit_test(separated_parts_have_the_same_samples),
        cmocka_unit_test(effects_have_the_same_bytes),
        cmocka_unit_test(levels_are_those_of_the_whole_signal),
        cmocka_unit_test(constant_q_is_that_of_the_whole_signal),
        cmocka_unit_test(tiles_end_where_the_file_does),
        cmocka_unit_test(formats_of_the_whole_signal_have_the_same_bytes),
        cmocka_unit_test(what_no_table_holds_is_refused),
        cmocka_unit_test(slopes_that_wrap_are_refused),
        cmocka_unit_test(octaves_that_do_not_exist_are_refused),
        cmocka_unit_test(cuda_gives_the_same_in_tiles),
    };
    if (!find_program(program, sizeof program)) return 1;
    return cmocka_run_group_tests_name("analyze tiles", tests, create, test_folder_remove);
}
