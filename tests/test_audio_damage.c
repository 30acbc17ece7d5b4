// Files that are not as they should be, and targets that cannot be written: one sentence, nothing lost, nothing hung.
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/testing.h"
#include "../hosts/interrupt.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/// "PATH: sentence", for comparison.
static const char *sentence(const char *path, const char *text)
{
    static char line[8192];
    snprintf(line, sizeof line, "%s: %s", path, text);
    return line;
}

static void assert_refused(const char *path, int rate_hz, wt_status status, const char *text)
{
    wt_audio_reader *reader = (wt_audio_reader *)&path;
    assert_fails(wt_audio_reader_open(path, &(wt_audio_reader_config){.rate_hz = rate_hz}, &reader), status,
                 sentence(path, text));
    assert_null(reader);
}

static void assert_unwritable(const char *path, const wt_audio_writer_config *config, wt_status status,
                              const char *text)
{
    wt_audio_writer *writer = (wt_audio_writer *)&path;
    assert_fails(wt_audio_writer_open(path, config, &writer), status, sentence(path, text));
    assert_null(writer);
}

/// A 16-bit mono WAV of n_frames, as bytes to spoil. free() it.
static char *wav_bytes(void **state, int n_frames, size_t *size)
{
    float *in = test_noise(1, n_frames, 0.5f);
    const char *path = test_path(state, "whole.wav");
    test_write(path, &(wt_audio_writer_config){.rate_hz = 16000, .channels = 1, .sample = WT_SAMPLE_S16}, in, n_frames,
               n_frames);
    free(in);
    return test_slurp(path, size);
}

static void what_is_no_audio_file_is_refused(void **state)
{
    assert_refused(test_path(state, "missing.wav"), 0, WT_ERR_FILE, "cannot be opened: No such file or directory");
    assert_refused(*state, 0, WT_ERR_FILE, "is a folder, want an audio file");
    assert_refused("/dev/zero", 0, WT_ERR_FILE, "is a device or socket, want a regular file");

    const char *path = test_path(state, "fifo.wav");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(5); // a reader that waits for the FIFO's writer dies here
    assert_refused(path, 0, WT_ERR_FILE, "is a FIFO, want a regular file; raw PCM is read from standard input");
    alarm(0);

    path = test_path(state, "empty.wav");
    test_spill(path, "", 0);
    assert_refused(path, 0, WT_ERR_FORMAT, "is empty");
    path = test_path(state, "text.wav");
    test_spill(path, "Dear diary, today I recorded nothing at all.", 44);
    assert_refused(path, 0, WT_ERR_FORMAT, "is not an audio file that libsndfile can read");
    path = test_path(state, "one-byte.flac");
    test_spill(path, "f", 1);
    assert_refused(path, 0, WT_ERR_FORMAT, "is not an audio file that libsndfile can read");

    wt_audio_reader *reader;
    assert_fails(wt_audio_reader_open("", NULL, &reader), WT_ERR_BAD_ARG, "audio file: the path is empty");
    assert_refused("-", 0, WT_ERR_BAD_ARG, "raw PCM needs a sample format, a rate and a channel count");
}

static void headers_without_sense_are_refused(void **state)
{
    static const struct {
        int at, size; // in the WAV header: 22 channels (u16), 24 rate (u32)
        uint32_t value;
        const char *sentence;
    } cases[] = {{22, 2, 0, "0 channels, want 1..64"},
                 {22, 2, 65, "65 channels, want 1..64"},
                 {22, 2, 65535, "65535 channels, want 1..64"},
                 {24, 4, 0, "rate 0 Hz, want 1000..768000"},
                 {24, 4, 999, "rate 999 Hz, want 1000..768000"},
                 {24, 4, 768001, "rate 768001 Hz, want 1000..768000"},
                 {24, 4, 4294967295, "rate 4294967295 Hz, want 1000..768000"}};
    size_t size;
    char *bytes = wav_bytes(state, 1000, &size);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char saved[4];
        memcpy(saved, bytes + cases[k].at, 4);
        for (int b = 0; b < cases[k].size; b++) bytes[cases[k].at + b] = (char)(cases[k].value >> 8 * b);
        const char *path = test_path(state, "header.wav");
        test_spill(path, bytes, size);
        assert_refused(path, 0, WT_ERR_FORMAT, cases[k].sentence);
        memcpy(bytes + cases[k].at, saved, 4);
    }
    const char *path = test_path(state, "header-only.wav");
    test_spill(path, bytes, 44);
    assert_refused(path, 0, WT_ERR_FORMAT, "has a header and no audio");
    test_spill(path, bytes, 30);
    assert_refused(path, 0, WT_ERR_FORMAT,
                   "its WAVE header is damaged, cut short, or of a kind libsndfile does not read");
    test_spill(path, bytes, size);
    assert_refused(path, 999, WT_ERR_BAD_ARG, "rate 999 Hz, want 1000..768000");
    assert_refused(path, -1, WT_ERR_BAD_ARG, "rate -1 Hz, want 1000..768000");
    free(bytes);
}

static void a_truncated_file_gives_what_is_there(void **state)
{
    enum { N = 100000 };
    static const char *const names[] = {"cut.wav", "cut.aiff", "cut.flac", "cut.ogg"};
    float *in = test_noise(1, N, 0.5f);
    for (int k = 0; k < 4; k++) {
        const char *path = test_path(state, names[k]);
        test_write(path, &(wt_audio_writer_config){.rate_hz = 16000, .channels = 1}, in, N, N);
        size_t size;
        char *bytes = test_slurp(path, &size);
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        assert_false(audio.info.truncated);
        wt_audio_free(&audio);

        path = test_path(state, names[k]);
        test_spill(path, bytes, size * 6 / 10);
        assert_ok(wt_audio_load(path, 0, &audio));
        print_message("%s: %lld of %d frames\n", names[k], (long long)audio.n_frames, N);
        assert_in_range(audio.n_frames, N / 5, N * 6 / 10 + 100);
        if (k < 3) assert_true(audio.info.truncated);                             // an Ogg file promises no length
        if (k < 3) assert_snr_db(in, audio.samples, (size_t)audio.n_frames, 100); // 24 bits
        wt_audio_free(&audio);
        free(bytes);
    }
    free(in);
}

static void a_recording_that_was_never_closed_is_read(void **state)
{
    size_t size;
    char *bytes = wav_bytes(state, 1000, &size);
    // RIFF and data sizes as a recorder leaves them that was killed or that writes into a pipe
    static const uint32_t sizes[][2] = {{8, 0}, {0xffffffff, 0xffffffff}, {0x7ffff024, 0x7ffff000}, {36, 0}};
    for (int k = 0; k < 4; k++) {
        for (int b = 0; b < 4; b++) {
            bytes[4 + b] = (char)(sizes[k][0] >> 8 * b);
            bytes[40 + b] = (char)(sizes[k][1] >> 8 * b);
        }
        const char *path = test_path(state, "unclosed.wav");
        test_spill(path, bytes, size);
        if (k == 3) {
            assert_refused(path, 0, WT_ERR_FORMAT,
                           "its header was never finished and promises no audio, but 2000 bytes follow it");
            continue;
        }
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        assert_int_equal(audio.n_frames, 1000);
        assert_false(audio.info.truncated);
        wt_audio_free(&audio);
    }
    free(bytes);
}

static void a_flac_of_unknown_length_is_read(void **state)
{
    enum { N = 9000 };
    float *in = test_noise(1, N, 0.5f);
    const char *path = test_path(state, "stream.flac");
    test_write(path, &(wt_audio_writer_config){.rate_hz = 16000, .channels = 1}, in, N, N);
    size_t size;
    char *bytes = test_slurp(path, &size);
    bytes[21] &= (char)0xf0; // STREAMINFO: 36 bits of total samples, 0 = unknown
    memset(bytes + 22, 0, 4);
    test_spill(path, bytes, size);
    wt_audio audio;
    assert_ok(wt_audio_load(path, 0, &audio));
    assert_int_equal(audio.n_frames, N);
    assert_false(audio.info.truncated);
    assert_snr_db(in, audio.samples, N, 100);
    wt_audio_free(&audio);
    free(bytes);
    free(in);
}

static void damaged_bytes_never_hang_or_crash(void **state)
{
    static const char *const names[] = {"bits.wav", "bits.flac", "bits.ogg", "bits.mp3", "bits.aiff", "bits.caf"};
    float *in = test_noise(2, 3000, 0.5f);
    uint64_t seed = 7;
    int n_opened = 0;
    for (int k = 0; k < 6; k++) {
        const char *path = test_path(state, names[k]);
        test_write(path, &(wt_audio_writer_config){.rate_hz = 16000, .channels = 2}, in, 3000, 3000);
        size_t size;
        char *bytes = test_slurp(path, &size), *spoiled = malloc(size);
        assert_non_null(spoiled);
        alarm(20);
        for (int round = 0; round < 40; round++) {
            memcpy(spoiled, bytes, size);
            for (int hit = 0; hit < 8; hit++) // half of them in the first 200 bytes
                spoiled[(size_t)((noise(&seed) * 0.5f + 0.5f) * (float)(hit & 1 ? size - 1 : 200))] ^=
                    (char)(1 + 255 * fabsf(noise(&seed)));
            path = test_path(state, names[k]);
            test_spill(path, spoiled, size);
            wt_audio_reader *reader;
            if (wt_audio_reader_open(path, NULL, &reader)) {
                assert_int_equal(strncmp(wt_last_error(), path, strlen(path)), 0);
                continue;
            }
            n_opened++;
            static float block[WT_AUDIO_MAX_CHANNELS * 512];
            int n_read = 1;
            for (int at = 0; at < 100 && n_read > 0; at++) {
                if (wt_audio_reader_read(reader, block, 512, 0, &n_read)) break; // a header, and nothing to decode
                for (int n = 0; n < 512; n++) assert_true(isfinite(block[n]));
            }
            wt_audio_reader_close(reader);
        }
        alarm(0);
        free(bytes);
        free(spoiled);
    }
    print_message("%d of 240 spoiled files could be opened\n", n_opened);
    free(in);
}

static void numbers_that_are_none_become_zero(void **state)
{
    union {
        float f[6];
        unsigned char bytes[24];
    } pcm = {.f = {0.5f, NAN, -INFINITY, INFINITY, 1e-40f, -0.5f}};
    const char *path = test_path(state, "nan.raw");
    test_spill(path, pcm.bytes, sizeof pcm);
    const wt_audio_reader_config config = {.raw_sample = WT_SAMPLE_F32, .raw_rate_hz = 48000, .raw_channels = 1};
    const float want[] = {0.5f, 0, 0, 0, 0, -0.5f};
    wt_audio_reader *reader;
    float out[6];
    int n_read;
    assert_ok(wt_audio_reader_open(path, &config, &reader));
    assert_ok(wt_audio_reader_read(reader, out, 6, 0, &n_read));
    assert_memory_equal(out, want, sizeof want);
    assert_int_equal(wt_audio_reader_get_info(reader).n_repaired_samples, 3);
    wt_audio_reader_close(reader);

    wt_audio_reader_config resampled = config; // no NaN reaches the resampler's memory
    resampled.rate_hz = 96000;
    int64_t n_frames;
    float *samples = test_read(path, &resampled, 64, &n_frames);
    assert_int_equal(n_frames, 12);
    for (int n = 0; n < 12; n++) assert_true(isfinite(samples[n]));
    free(samples);
}

static void targets_that_cannot_be_are_refused(void **state)
{
    const wt_audio_writer_config config = {.rate_hz = 48000, .channels = 1};
    assert_unwritable(test_path(state, "a.xyz"), &config, WT_ERR_BAD_ARG,
                      "'xyz' is no audio format, want wav, flac, ogg, mp3, aiff, ...");
    assert_unwritable(test_path(state, "a"), &config, WT_ERR_BAD_ARG,
                      "no extension says the format, want wav, flac, ogg, mp3, aiff, ...");
    assert_unwritable(test_path(state, "none/a.wav"), &config, WT_ERR_FILE,
                      "cannot be created: No such file or directory");
    assert_unwritable("/dev/full", &(wt_audio_writer_config){.rate_hz = 48000, .channels = 1, .format = "wav"},
                      WT_ERR_FILE, "is no regular file and is not written over");
    assert_unwritable(test_path(state, "a.flac"),
                      &(wt_audio_writer_config){.rate_hz = 48000, .channels = 1, .sample = WT_SAMPLE_F32},
                      WT_ERR_BAD_ARG, "flac cannot hold 1 channels at 48000 Hz as f32");
    assert_unwritable(test_path(state, "a.flac"), &(wt_audio_writer_config){.rate_hz = 48000, .channels = 9},
                      WT_ERR_BAD_ARG, "flac cannot hold 9 channels at 48000 Hz as any encoding libsndfile writes");
    assert_unwritable(test_path(state, "a.wav"), &(wt_audio_writer_config){.rate_hz = 48000}, WT_ERR_BAD_ARG,
                      "0 channels, want 1..64");
    assert_unwritable(test_path(state, "a.wav"), &(wt_audio_writer_config){.channels = 2}, WT_ERR_BAD_ARG,
                      "rate 0 Hz, want 1000..768000");
    assert_unwritable(test_path(state, "a.opus"), &(wt_audio_writer_config){.rate_hz = 44100, .channels = 2},
                      WT_ERR_BAD_ARG, "libsndfile does not write ogg (Opus) with 2 channels at 44100 Hz, want 8000, "
                      "12000, 16000, 24000 or 48000 Hz");
    assert_unwritable(test_path(state, "a.mp3"), &(wt_audio_writer_config){.rate_hz = 96000, .channels = 2},
                      WT_ERR_BAD_ARG, "libsndfile does not write mp3 (MPEG Layer III) with 2 channels at 96000 Hz, want "
                      "8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 or 48000 Hz");
    assert_int_equal(test_folder_count(state, ".a."), 0);

    const char *folder = test_path(state, "folder.wav");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_unwritable(folder, &config, WT_ERR_FILE, "is a folder, want a file to write");
    assert_int_equal(chmod(folder, 0500), 0);
    const char *inside = test_path(state, "folder.wav/a.wav");
    const bool root = geteuid() == 0; // whom no mode holds back
    if (root) assert_int_equal(chmod(*state, 0755) | seteuid(65534), 0);
    wt_audio_writer *writer;
    wt_status status = wt_audio_writer_open(inside, &config, &writer);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_fails(status, WT_ERR_FILE, sentence(inside, "cannot be created: Permission denied"));
}

static void the_input_is_never_written_over(void **state)
{
    size_t size, size_after;
    char *bytes = wav_bytes(state, 1000, &size), input[4096];
    snprintf(input, sizeof input, "%s", test_path(state, "whole.wav"));
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(input, NULL, &reader));
    const char *const others[] = {test_path(state, "hard.wav"), test_path(state, "soft.wav"), test_path(state, "../"),
                                  input};
    assert_int_equal(link(input, others[0]) | symlink("whole.wav", others[1]), 0);
    for (int k = 0; k < 4; k++)
        if (k != 2)
            assert_unwritable(others[k], &(wt_audio_writer_config){.source = reader}, WT_ERR_BAD_ARG,
                              "is the input itself, want another output");
    wt_audio_reader_close(reader);
    char *after = test_slurp(input, &size_after);
    assert_int_equal(size_after, size);
    assert_memory_equal(after, bytes, size);
    free(bytes);
    free(after);
}

static void a_full_disk_is_reported_and_leaves_the_old_file(void **state)
{
    // A limit on the size of files stands for the disk: the write that meets it fails. 100 kB pass at once, so each
    // format meets it somewhere else: in a write, or in what its encoder writes when it is closed.
    enum { N = 50000 };
    static const char *const names[] = {"full.wav", "full.flac", "full.ogg", "full.mp3", "full.raw", "full.caf"};
    float *in = test_noise(2, N, 0.9f);
    struct rlimit saved;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
    for (int k = 0; k < 6; k++)
        for (int limit = 0; limit <= 8192; limit += 4096) {
            const char *path = test_path(state, names[k]);
            test_spill(path, "old", 3);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limit, saved.rlim_max});
            wt_audio_writer *writer = NULL;
            wt_status status =
                wt_audio_writer_open(path, &(wt_audio_writer_config){.rate_hz = 48000, .channels = 2}, &writer);
            if (!status) {
                status = wt_audio_writer_write(writer, in, N, 0);
                wt_status commit = wt_audio_writer_commit(writer);
                assert_int_equal(commit, WT_ERR_FILE);
                if (!status) status = commit;
            }
            setrlimit(RLIMIT_FSIZE, &saved);
            assert_fails(status, WT_ERR_FILE, sentence(path, "cannot be written: File too large"));
            assert_int_equal(test_folder_count(state, ".full"), 0);
            size_t size;
            char *bytes = test_slurp(path, &size);
            assert_int_equal(size, 3);
            assert_memory_equal(bytes, "old", 3);
            free(bytes);
        }
    free(in);
}

// As the test above, but nobody can play it again.
static void a_full_disk_keeps_what_was_recorded_before(void **state)
{
    enum { N = 50000, BLOCK = 1000 };
    static const char *const names[] = {"take.wav", "take.flac", "take.ogg"};
    static const int limits[] = {100001, 100001, 20001}; // in the middle of a sample
    float *in = test_noise(2, N, 0.5f);
    struct rlimit saved;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
    for (int k = 0; k < 3; k++) {
        const char *path = test_path(state, names[k]);
        const wt_audio_writer_config config = {.rate_hz = 48000, .channels = 2, .recording = true};
        wt_audio_writer *writer;
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limits[k], saved.rlim_max});
        assert_ok(wt_audio_writer_open(path, &config, &writer));
        wt_status status = WT_OK;
        for (int at = 0; at < N && !status; at += BLOCK) status = wt_audio_writer_write(writer, in + at, BLOCK, N);
        const wt_status commit = wt_audio_writer_commit(writer);
        setrlimit(RLIMIT_FSIZE, &saved);
        if (k < 2) assert_int_equal(status, WT_ERR_FILE); // Vorbis meets the limit in its end
        assert_fails(commit, WT_ERR_FILE, sentence(path, "cannot be written: File too large; what came before is kept"));
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        print_message("%s: %lld of %d frames\n", names[k], (long long)audio.n_frames, N);
        assert_true(audio.n_frames > 10000 && audio.n_frames < N);
        for (int c = 0; c < 2 && k < 2; c++)
            assert_snr_db(in + c * N, audio.samples + c * audio.n_frames, 10000, 100); // 24 bits
        wt_audio_free(&audio);
    }
    free(in);
}

static void a_recording_that_is_short_is_a_wav(void **state)
{
    enum { N = 1000 };
    float *in = test_noise(3, N, 0.5f);
    const char *path = test_path(state, "short.wav");
    for (int channels = 2; channels <= 3; channels++) {
        const wt_audio_writer_config config = {.rate_hz = 48000, .channels = channels, .recording = true};
        test_write(path, &config, in, N, N);
        size_t size;
        char *bytes = test_slurp(path, &size);
        assert_memory_equal(bytes, "RIFF", 4);
        assert_memory_equal(bytes + 8, "WAVE", 4);
        if (channels == 2) assert_memory_equal(bytes + 12, "fmt \x10\0\0\0\1\0", 10); // PCM's plain header
        wt_audio audio;
        assert_ok(wt_audio_load(path, 0, &audio));
        assert_int_equal(audio.n_frames, N);
        assert_snr_db(in, audio.samples, (size_t)(channels * N), 100);
        wt_audio_free(&audio);
        free(bytes);
    }
    free(in);
}

static void nothing_is_left_of_a_discarded_file(void **state)
{
    const float in[64] = {0};
    const char *path = test_path(state, "kept.wav");
    test_spill(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    wt_audio_writer *writer;
    const wt_audio_writer_config config = {.rate_hz = 48000, .channels = 1};
    assert_ok(wt_audio_writer_open(path, &config, &writer));
    assert_ok(wt_audio_writer_write(writer, in, 64, 0));
    assert_int_equal(test_folder_count(state, ".kept.wav."), 1);
    wt_audio_writer_discard(writer);
    wt_audio_writer_discard(NULL);
    assert_int_equal(test_folder_count(state, ".kept.wav."), 0);
    struct stat what;
    assert_int_equal(stat(path, &what), 0);
    assert_int_equal(what.st_size, 3);

    // a commit takes the old file's place and mode, and leaves a link a link
    const char *link = test_path(state, "link.wav");
    assert_int_equal(symlink("kept.wav", link), 0);
    test_write(link, &(wt_audio_writer_config){.rate_hz = 48000, .channels = 1, .sync = true}, in, 64, 64);
    assert_int_equal(test_folder_count(state, ".kept.wav."), 0);
    assert_int_equal(stat(path, &what), 0);
    assert_true(what.st_size > 100);
    assert_int_equal(what.st_mode & 0777, 0640);
    assert_int_equal(lstat(link, &what), 0);
    assert_true(S_ISLNK(what.st_mode));
}

static void a_signal_ends_the_wait_for_standard_input(void **state)
{
    (void)state;
    int ends[2], saved = dup(0);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[0], 0);
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(
        "-", &(wt_audio_reader_config){.raw_sample = WT_SAMPLE_S16, .raw_rate_hz = 48000, .raw_channels = 1}, &reader));
    assert_ok(wt_interrupt_install());
    assert_false(wt_interrupted());
    raise(SIGINT);
    assert_int_equal(wt_interrupt_signal(), SIGINT);
    float out[64];
    int n_read;
    alarm(5);
    assert_fails(wt_audio_reader_read(reader, out, 64, 0, &n_read), WT_ERR_CANCELLED, "-: interrupted");
    alarm(0);
    assert_ok(wt_interrupt_clear());
    assert_false(wt_interrupted());
    wt_audio_reader_close(reader);
    dup2(saved, 0);
    close(saved);
    close(ends[0]);
    close(ends[1]);
}

typedef struct open_files {
    const char *in, *out;
    wt_audio_reader *reader;
    wt_audio_writer *writer;
} open_files;

static wt_status open_both(void *user)
{
    open_files *files = user;
    wt_status status = wt_audio_reader_open(
        files->in,
        &(wt_audio_reader_config){
            .rate_hz = 44100, .raw_sample = WT_SAMPLE_S16, .raw_rate_hz = 48000, .raw_channels = 3},
        &files->reader);
    if (status) return status;
    status = wt_audio_writer_open(files->out, &(wt_audio_writer_config){.source = files->reader}, &files->writer);
    if (status) wt_audio_reader_close(files->reader);
    return status;
}

static void close_both(void *user)
{
    open_files *files = user;
    wt_audio_writer_discard(files->writer);
    wt_audio_reader_close(files->reader);
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    // raw on both sides: libsndfile does not say when its own memory ran out
    open_files files = {.in = test_path(state, "in.raw"), .out = test_path(state, "out.raw")};
    test_spill(files.in, "123456123456", 12);
    const long n_allocations = assert_survives_failing_alloc(open_both, close_both, &files);
    assert_in_range(n_allocations, 12, 40);
    assert_int_equal(test_folder_count(state, ".out.raw"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_audio_file_is_refused),
        cmocka_unit_test(headers_without_sense_are_refused),
        cmocka_unit_test(a_truncated_file_gives_what_is_there),
        cmocka_unit_test(a_recording_that_was_never_closed_is_read),
        cmocka_unit_test(a_flac_of_unknown_length_is_read),
        cmocka_unit_test(damaged_bytes_never_hang_or_crash),
        cmocka_unit_test(numbers_that_are_none_become_zero),
        cmocka_unit_test(targets_that_cannot_be_are_refused),
        cmocka_unit_test(the_input_is_never_written_over),
        cmocka_unit_test(a_full_disk_is_reported_and_leaves_the_old_file),
        cmocka_unit_test(a_full_disk_keeps_what_was_recorded_before),
        cmocka_unit_test(a_recording_that_is_short_is_a_wav),
        cmocka_unit_test(nothing_is_left_of_a_discarded_file),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(a_signal_ends_the_wait_for_standard_input),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("audio_damage", tests, test_folder_create, test_folder_remove);
}
