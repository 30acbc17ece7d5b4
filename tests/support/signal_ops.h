/// Every signal op that runs on streams, as a table: how it is made for any number of signals of any length, what it
/// takes and gives. Tests walk it on both backends.
#ifndef WT_TEST_SIGNAL_OPS_H
#define WT_TEST_SIGNAL_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>

typedef enum op_type { OP_F32, OP_F64, OP_I32, OP_I64 } op_type;

/// What an op does with a NaN among what it is given (docs/dsp-ops.md).
typedef enum op_nan {
    OP_NAN_LOCAL,  ///< what is made of the frames that hold it is NaN, and what lies far from it is as without it
    OP_NAN_ONWARD, ///< what lies before it is as without it
    OP_NAN_WHOLE,  ///< all of that signal's result may be NaN
    OP_NAN_NONE,   ///< nothing is NaN that would not be without it: it is no peak, no candidate, counts as 0
} op_nan;

enum { OP_MAX_PARTS = 3 };

/// An op made for signals of `n`: samples of a signal, frames of a spectrogram or an envelope.
typedef struct made_op {
    int n, n_signals;
    struct draws *draws; ///< that a row of drawn settings takes them from (draws.h)
    void *plan;
    size_t in_floats; ///< of a signal
    int n_parts;      ///< of the result, [part][n_signals][count]
    struct {
        op_type type;
        size_t count; ///< of a signal
    } parts[OP_MAX_PARTS];
    size_t at[OP_MAX_PARTS]; ///< bytes, of each part in the result
    size_t out_bytes;
} made_op;

typedef struct signal_op {
    const char *name;
    int n;           ///< a length at which there is something to see
    bool magnitudes; ///< it takes what is 0 or more
    op_nan nan;
    int band_rows;       ///< part 0 is [band_rows][frames][frame_rows]; 0 = 1
    int frame_rows;      ///< 0 = 1
    bool bands_in;       ///< it takes [bands][n]; else what comes first is early
    bool nan_in_silence; ///< a result of nothing is NaN: said so in its header
    /// Sets plan, in_floats and parts. Whatever it returns, destroy(plan) is called.
    wt_status (*create)(wt_device *device, made_op *op);
    void (*destroy)(void *plan);
    wt_status (*enqueue)(const made_op *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out);
    /// What of the result [part][count] of one signal is not defined becomes 0; NULL = all is.
    void (*clear)(const made_op *op, void *const *parts);
    /// One signal's part of a result that is not [part][n_signals][count]; NULL = it is.
    void (*pick)(const made_op *op, const void *result, int signal, void *own);
} signal_op;

int signal_ops_count(void);
const signal_op *signal_op_at(int k);

/// Create; sets at and out_bytes too. Errors are the op's.
wt_status signal_op_make(const signal_op *row, wt_device *device, int n, int n_signals, made_op *op);
/// Bytes of a part of one signal.
size_t signal_op_bytes(const made_op *op, int part);
/// One signal's own part of a result, [part][count], each part a multiple of 8 bytes long.
void signal_op_pick(const signal_op *row, const made_op *op, const void *result, int signal, void *own);
size_t signal_op_own_bytes(const made_op *op);
/// Upload, enqueue, download; fails the test on an error. `out` [out_bytes] begins as zeros.
void signal_op_run(const signal_op *row, const made_op *op, wt_device *device, const float *in, void *out);

/// [n_signals][in_floats] that differ from signal to signal: tones with attacks, or their magnitudes. Caller frees.
float *signal_op_input(const signal_op *row, const made_op *op, int n_signals);

#endif
