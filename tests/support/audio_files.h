/// A scratch folder for a group of tests, signals, and whole files in one call.
#ifndef WT_AUDIO_FILES_H
#define WT_AUDIO_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/audio_file.h>

/// Group setup and teardown: a fresh folder below TMPDIR, removed with what is in it.
int test_folder_create(void **state);
int test_folder_remove(void **state);
/// A path in that folder. One of eight strings that are used in turn.
const char *test_path(void **state, const char *name);
/// How many entries does it hold whose names begin with `prefix`?
int test_folder_count(void **state, const char *prefix);

/// [channels][n_frames]; caller frees with free().
float *test_sine(int channels, int n_frames, double rate_hz, double frequency_hz, float amplitude);
float *test_noise(int channels, int n_frames, float amplitude);

/// Write and commit a file in blocks, read one in blocks ([channels][*n_frames], free()), or its bytes; fail the test
/// on any error.
void test_write(const char *path, const wt_audio_writer_config *config, const float *in, int n_frames, int block);
float *test_read(const char *path, const wt_audio_reader_config *config, int block, int64_t *n_frames);
char *test_slurp(const char *path, size_t *size);
void test_spill(const char *path, const void *bytes, size_t size);

#endif
