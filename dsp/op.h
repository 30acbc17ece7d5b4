/// Private to dsp/: what every op that runs on a stream needs.
#ifndef WT_OP_H
#define WT_OP_H

#include "places_kernel.h"

#include <stdatomic.h>
#include <stdint.h>
#include <warptone/kernel.h>

/// True on a GPU; NULL, no device, is the CPU.
bool wt__op_on_gpu(const wt_device *device);

/// A field of a config, of which 0 is what most want.
static inline double wt__op_setting(double value, double otherwise) { return value != 0 ? value : otherwise; }

/// Workers among which a CPU device shares `n_tiles` of work: 1 without one.
int wt__op_slots(const wt_device *device, int64_t n_tiles);

/// Tile `slot` of `n_slots` equal parts of 0 .. n_tiles - 1.
static inline int64_t wt__op_begin(int64_t n_tiles, int slot, int n_slots)
{
    return n_tiles * slot / n_slots;
}

/// Channels of one signal of planes [n_signals][channels][n_frames], in and out.
static inline void wt__op_channels(const float *in, float *out, int64_t signal, int channels, int n_frames,
                                   const float **ins, float **outs)
{
    for (int k = 0; k < channels; k++) {
        const int64_t at = (signal * channels + k) * n_frames;
        ins[k] = in + at;
        outs[k] = out + at;
    }
}

/// Work that the slots of a call take as they come, so that one which is woken late or disturbed does less. A plan's
/// own; at rest all of it is 0.
typedef struct wt__op_share {
    _Atomic int64_t next;
    _Atomic int n_done;
} wt__op_share;

/// The next tiles for a slot, *begin .. *end - 1 of 0 .. n_tiles - 1: a quarter of an equal part of what is left,
/// `most` at most, so that all end together. False when none are left, which each of the `n_slots` must hear once: the
/// last one brings the share to rest.  [rt]
WT_RT bool wt__op_take(wt__op_share *share, int64_t n_tiles, int64_t most, int n_slots, int64_t *begin, int64_t *end);

/// `floats` at `offset` bytes of `buffer` must exist; `op` and `side` name them in the sentence.
WT_CHECKED wt_status wt__op_range(const char *op, const char *side, const wt_buffer *buffer, size_t offset,
                                  size_t floats);
/// The stream must belong to the plan's device.
WT_CHECKED wt_status wt__op_stream(const char *op, const wt_device *device, const wt_stream *stream);
/// A new buffer that holds `bytes` of data.
WT_CHECKED wt_status wt__op_upload(wt_device *device, const void *data, size_t bytes, wt_buffer **buffer);
/// The module of one embedded text, specialised by `n_options` of 48 characters each.
WT_CHECKED wt_status wt__op_module(wt_device *device, const char *name, char options[][48], int n_options,
                                   wt_module **module);
/// A module whose sums have the CPU's bits: products are rounded before they are added.
WT_CHECKED wt_status wt__op_exact_module(wt_device *device, const char *name, wt_module **module);
/// Room in memory for blocks of a kernel that shared memory does not hold, `bytes` each, as many at a time as 1 GB or
/// the device takes: sets places and launch->grid; the kernel is to be compiled with PLACES (kernels/places.cuh).
WT_CHECKED wt_status wt__op_places(wt_device *device, int64_t across, int64_t down, size_t bytes, wt_places *places,
                                   wt_launch *launch, wt_buffer **memory);

#endif
