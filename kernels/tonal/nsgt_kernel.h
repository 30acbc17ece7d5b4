/// What the invertible constant-Q transform shares between the CPU and the GPU.
#ifndef WT_NSGT_KERNEL_H
#define WT_NSGT_KERNEL_H

// One row: bins first .. first + length - 1 of a slice's spectrum, laid into n_points by their index modulo n_points.
typedef struct wt_nsgt_place {
    int first, length, n_points;
    int window;               // index of its bump in the windows
    long long offset, stride; // of its points, in complex numbers: [lines][stride]
} wt_nsgt_place;

typedef struct wt_nsgt_args {
    const wt_nsgt_place *rows;         // [n_rows]
    const float *slice_window;         // [slice] sums to one with its neighbours
    const float *analysis, *synthesis; // the rows' bumps, and their duals
    const int *rows_at;                // [slice / 2 + 1][2] first and last row that covers a bin
    const float *pcm;                  // [channels][n]
    float *out_pcm;
    float *slices;      // [lines][slice]
    float *spectra;     // [lines][slice / 2 + 1][2]
    float *points;      // the coefficients
    long long n, first; // samples; the first slice
    int slice, n_slices, n_rows, channels;
} wt_nsgt_args;

#endif
