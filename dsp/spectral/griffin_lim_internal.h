/// Shared by griffin_lim.c, which makes the plan, and griffin_lim_float.c and griffin_lim_double.c, which run it.
#ifndef WT_GRIFFIN_LIM_INTERNAL_H
#define WT_GRIFFIN_LIM_INTERNAL_H

#include "griffin_lim_cuda.h"
#include "stft_internal.h"

#include <warptone/griffin_lim.h>

enum { WT__GRIFFIN_LIM_AT_ONCE = 8 }; // iterations

// The padded signal of one iteration, or of the phases it begins with, as far as it is needed.
typedef struct wt__griffin_lim_stage {
    float *samples; // [room] sums of frames, and then y
    float *next;    // [room] y - c y_before, of which the next iteration makes spectra
    int64_t origin; // of both in the padded signal, whole hops
} wt__griffin_lim_stage;

// What one thread needs. R and A in double [tiles][2][bins][16].
typedef struct wt__griffin_lim_slot {
    wt_stft *stft;
    uint64_t *seeds; // [bins]
    wt_fft *inverse;
    float *re, *im, *frame;
    float *next, *own; // [length] y - c y_before where one run of stages ended; NULL or the same
    wt__griffin_lim_stage stages[WT__GRIFFIN_LIM_AT_ONCE + 1]; // the last ones' source first
    double *a64, *before64, *padded, *x, *work;                // padded [n_padded], x and work [n_fft][2][8]
} wt__griffin_lim_slot;

struct wt_griffin_lim {
    wt_griffin_lim_config config; // defaults resolved
    wt_device *device;
    int bins, n_slots, n_fft, hop, margin;
    float c;                                          // m / (1 + m)
    size_t row;                                       // floats of bins
    int64_t n_lines, n_tiles, length, used, n_padded; // used: frames that count for the length
    int64_t lag, room;                                // frames between two iterations, samples of a stage
    int64_t head, tail; // samples of the padded signal before `head` and from `tail` on are in the tables; else they
                        // repeat: so do the squares where all frames are there that can reach a sample
    wt__griffin_lim_slot *slots;
    wt__fft64 *fft;
    double *window;  // [n_fft]
    double *squares; // [n_squares] reciprocals of the windows' squares
    float *squares32;
    wt__griffin_lim_cuda *cuda;
};

// Of the generator of the first phases:
static const uint64_t WT__GRIFFIN_LIM_FACTOR = 6364136223846793005u,
                      WT__GRIFFIN_LIM_TERM = 1442695040888963407u; // Knuth, MMIX
/// The generator runs bin after bin: each bin's begins n_frames steps behind the one before.
void wt__griffin_lim_seed(const wt_griffin_lim *plan, uint64_t *seeds);

/// One line, magnitude [n_frames][bins] to out [length].
WT_RT void wt__griffin_lim_run_float(const wt_griffin_lim *plan, wt__griffin_lim_slot *slot, const float *magnitude,
                                     float *out);
WT_RT void wt__griffin_lim_run_double(const wt_griffin_lim *plan, wt__griffin_lim_slot *slot, const float *magnitude,
                                      float *out);

#endif
