/// Many signals at a launch: places on a GPU, what they keep, and the batches that go there (analyze_gpu.c).
#ifndef WT_ANALYZE_GPU_H
#define WT_ANALYZE_GPU_H

#include "analyze.h"
#include "analyze_clock.h"

#include <warptone/device.h>
#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ANALYZE_MAX_KEPT = 64, ANALYZE_ROOMS = 6 };

/// Files of one kind as they are in memory: [n_files][n][channels].
typedef struct analyze_packed {
    bool integers; ///< int16, else float
    int rate_hz, channels;
    int64_t n;
} analyze_packed;

/// A place on a GPU; device NULL = none. Plans and memory stay from batch to batch.
struct analyze_place {
    analyze_clock *clock; // of the worker that is there
    wt_device *device;
    wt_stream *stream;
    wt_buffer *packed, *pcm, *rooms[ANALYZE_ROOMS]; // on the device
    wt_buffer *read, *fetched;                      // page-locked
    bool maps;                                      // what is fetched is large: in `mapped`, of so many bytes
    void *mapped;
    size_t mapped_bytes;
    struct analyze_kept {
        void *plan;
        void (*destroy)(void *plan);
        int variant, rate_hz, n_signals;
        int64_t n;
        analyze_packed packed;
    } kept[ANALYZE_MAX_KEPT]; // the last used last
    int n_kept;
};

/// Signals of one length on a worker's GPU: files of one kind, or the channels of one.
struct analyze_batch {
    analyze_signal signal;     ///< each: options, place, rate and n; the rest is not looked at
    int n_used, n_signals;     ///< signals, and signals of the plans: silence behind those that there are
    int channels;              ///< of a file that are signals of their own
    const int64_t *lengths;    ///< [n_used] what is not silence of them; NULL = all
    analyze_whole *whole;      ///< [n_used] as a signal's; NULL = no tiles
    const char *const *paths;  ///< [n_used / channels]
    analyze_packed packed;     ///< the files in place->packed; channels 0 = they are not there
    float *host;               ///< the signals for the calling thread, once one has asked for them
};

/// A place on the first GPU; the CPU leaves it empty. Errors: those of wt_device_open.  [worker]
WT_CHECKED wt_status analyze_place_open(wt_backend backend, analyze_place *place);
void analyze_place_close(analyze_place *place); ///< An empty one is allowed.  [worker]
/// A buffer of at least so many bytes; what lay in a smaller one is lost.
WT_CHECKED wt_status analyze_grow(analyze_place *place, wt_memory memory, size_t bytes, wt_buffer **buffer);
/// A length that many signals share, up to an eighth more than `n`; and whether all features allow it.
int64_t analyze_shared_length(int64_t n);
bool analyze_any_length(const analyze_options *options);

/// All features of the signals in place->pcm; what a GPU refuses the calling thread does.
///
///   results   [n_used / channels]   empty; caller frees, also after an error
WT_CHECKED wt_status analyze_batch_compute(analyze_batch *batch, analyze_result *results);
/// analyze_compute on the signal's place: its channels as a batch.
WT_CHECKED wt_status analyze_compute_on_gpu(const analyze_signal *signal, int channels, analyze_result *result);

/// One feature of one channel on the signal's place. Errors: also WT_ERR_UNSUPPORTED and WT_ERR_NO_MEMORY, after which
/// the calling thread may do it; the result is then empty.
WT_CHECKED wt_status analyze_feature_on_gpu(const analyze_signal *signal, const analyze_feature *feature,
                                            analyze_result *result);

/// How to make a plan for a batch; each variant of it has its own.
typedef struct analyze_maker {
    wt_status (*create)(const analyze_batch *batch, int variant, void **plan);
    void (*destroy)(void *plan);
} analyze_maker;
/// The place's plan of this kind, made when it is not there yet; the place keeps it.
WT_CHECKED wt_status analyze_kept_plan(const analyze_batch *batch, const analyze_maker *maker, int variant,
                                       void **plan);
/// Samples of the files in place->packed to planar float; variant 1: to the mean of their channels.
extern const analyze_maker analyze_pcm_maker;
/// Memory `k` of the place's on the device, whatever lay in it.
WT_CHECKED wt_status analyze_room(const analyze_batch *batch, int k, size_t bytes, wt_buffer **room);
/// Copy to the host and wait; `data` is borrowed until the next call.
WT_CHECKED wt_status analyze_fetch(const analyze_batch *batch, const wt_buffer *from, size_t bytes, const void **data);
/// Floats [n_signals][rows][columns] to [n_signals][columns][rows], by the calling thread; `to` may be `from`. All are
/// given to `change` on the way, NULL = as they are. `name`: the feature, for errors.
WT_CHECKED wt_status analyze_turn_on_host(const analyze_batch *batch, const char *name, const wt_buffer *from,
                                          int64_t rows, int64_t columns, void (*change)(float *x, int64_t count),
                                          wt_buffer *to);
/// Each signal's own columns of [n_signals][n_rows][n_made], or, turned, of [n_signals][n_made][n_rows].
WT_CHECKED wt_status analyze_give(const analyze_batch *batch, analyze_result *parts, const analyze_array *like,
                                  const void *data, int64_t n_rows, int64_t n_made, bool turned);
/// The place's plan of spectra, and of the way back to signals as long as the batch's.
WT_CHECKED wt_status analyze_stft_on_gpu(const analyze_batch *batch, wt_stft_output output, bool precise,
                                         wt_stft_plan **plan);
/// Magnitudes or whatever output of all signals' spectra, frame by frame, in room 0; `precise`: by transforms in
/// double.
WT_CHECKED wt_status analyze_spectra_on_gpu(const analyze_batch *batch, wt_stft_output output, bool precise,
                                            wt_buffer **spectra, int64_t *n_frames);

#ifdef __cplusplus
}
#endif
#endif
