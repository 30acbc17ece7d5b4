#include "support/audio_files.h"
#include "support/testing.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int test_folder_create(void **state)
{
    const char *parent = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/warptone-test-XXXXXX", parent ? parent : "/tmp") < 0) return -1;
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

int test_folder_remove(void **state)
{
    char *folder = *state, path[4096];
    DIR *list = opendir(folder);
    if (!list) return -1;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path)) rmdir(path);
    }
    closedir(list);
    int failed = rmdir(folder);
    free(folder);
    return failed;
}

const char *test_path(void **state, const char *name)
{
    static char paths[8][4096];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", (const char *)*state, name);
    return path;
}

int test_folder_count(void **state, const char *prefix)
{
    int count = 0;
    DIR *list = opendir(*state);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) count += !strncmp(entry->d_name, prefix, strlen(prefix));
    closedir(list);
    return count;
}

float *test_sine(int channels, int n_frames, double rate_hz, double frequency_hz, float amplitude)
{
    float *samples = malloc(sizeof(float) * (size_t)channels * (size_t)n_frames);
    assert_non_null(samples);
    for (int c = 0; c < channels; c++)
        for (int n = 0; n < n_frames; n++)
            samples[c * n_frames + n] = amplitude * (float)sin(2 * 3.14159265358979 * frequency_hz * n / rate_hz + c);
    return samples;
}

float *test_noise(int channels, int n_frames, float amplitude)
{
    float *samples = malloc(sizeof(float) * (size_t)channels * (size_t)n_frames);
    assert_non_null(samples);
    uint64_t seed = 1;
    for (int k = 0; k < channels * n_frames; k++) samples[k] = amplitude * noise(&seed);
    return samples;
}

void test_write(const char *path, const wt_audio_writer_config *config, const float *in, int n_frames, int block)
{
    wt_audio_writer *writer;
    assert_ok(wt_audio_writer_open(path, config, &writer));
    for (int at = 0; at < n_frames; at += block)
        assert_ok(
            wt_audio_writer_write(writer, in + at, n_frames - at < block ? n_frames - at : block, (size_t)n_frames));
    assert_ok(wt_audio_writer_commit(writer));
}

float *test_read(const char *path, const wt_audio_reader_config *config, int block, int64_t *n_frames)
{
    wt_audio_reader *reader;
    assert_ok(wt_audio_reader_open(path, config, &reader));
    const wt_audio_info info = wt_audio_reader_get_info(reader);
    const size_t room = (size_t)info.n_frames;
    float *out = malloc(sizeof(float) * room * (size_t)info.channels);
    assert_non_null(out);
    *n_frames = 0;
    for (int n_read = 1; n_read > 0; *n_frames += n_read) {
        int64_t left = info.n_frames - *n_frames;
        if (left > 0) {
            assert_ok(wt_audio_reader_read(reader, out + *n_frames, left < block ? (int)left : block, room, &n_read));
            continue;
        }
        float beyond[WT_AUDIO_MAX_CHANNELS];
        assert_ok(wt_audio_reader_read(reader, beyond, 1, 0, &n_read));
        assert_int_equal(n_read, 0);
    }
    wt_audio_reader_close(reader);
    return out;
}

char *test_slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

void test_spill(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}
