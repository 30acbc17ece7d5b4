/// What the tests of spectral ops share: configs from golden parameters, batches, layouts.
#ifndef WT_TEST_SPECTRAL_CHECK_H
#define WT_TEST_SPECTRAL_CHECK_H

#include "golden.h"
#include "testing.h"

#include <warptone/mel.h>
#include <warptone/pitch.h>

/// n_fft, hop_length, win_length, center, window and pad_mode of a case, with librosa's defaults.
wt_stft_config golden_stft_config(const golden_case *g);
/// sr, n_mels, fmin, fmax, htk and norm of a case.
wt_mel_bank_config golden_bank_config(const golden_case *g);
/// sr, fmin, fmax, frame_length, hop_length, pad_mode and center of a case of YIN or pYIN, for signals of n samples.
wt_pitch_frames golden_pitch_frames(const golden_case *g, size_t n);
/// [rows][columns] turned to a new [columns][rows] of elements of `width` floats; caller frees.
float *turned(const float *x, size_t rows, size_t columns, size_t width);
/// A float array that fails the test when there is no memory; zeroed; caller frees.
float *floats(size_t count);
/// `count` floats of noise() from `seed`; caller frees.
float *noise_floats(size_t count, uint64_t seed);
/// Fail unless every |got - want| is at most `bound` times the largest |want|.
void assert_near_peak(const float *want, const float *got, size_t count, double bound, const char *what);
/// An open device: the CPU's with two threads, or the first GPU; skips the test when there is none.
wt_device *cpu_device(void);
wt_device *gpu_device(void);

/// An op that reads one buffer and writes another, on a stream of a device.
typedef struct stream_call {
    wt_device *device;
    wt_status (*enqueue)(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset);
    void *op;
} stream_call;

/// Upload, enqueue, download.
void run_on_stream(const stream_call *call, const float *in, size_t n_in, float *out, size_t n_out);

/// An op that goes on from block to block on a stream of a device: rows of n samples in, rows of n samples out.
typedef struct block_op {
    wt_device *device;
    void *op;
    size_t in_rows, out_rows;
    wt_status (*reset)(void *op, wt_stream *stream);
    wt_status (*enqueue)(void *op, wt_stream *stream, const wt_buffer *in, int n, wt_buffer *out);
} block_op;

/// Reset, and `n` samples of [in_rows][n] in blocks of sizes[0], sizes[1] ..., again and again, to [out_rows][n].
void run_in_blocks(const block_op *op, const float *in, size_t n, const int *sizes, int n_sizes, float *out);

#endif
