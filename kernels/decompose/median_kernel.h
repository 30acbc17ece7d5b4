/// Arguments of the median filter.
#ifndef WT_MEDIAN_KERNEL_H
#define WT_MEDIAN_KERNEL_H

#define WT_MEDIAN_COLUMNS 32 ///< outputs across, of a block
#define WT_MEDIAN_ROWS    8  ///< and down

typedef struct wt_median_args {
    const float *in; ///< [lines][rows][columns]
    float *out;
    int rows, columns;
    int across, down; ///< blocks of an image
} wt_median_args;

/// Rectangles of any size.
typedef struct wt_median_long_args {
    const float *in; ///< [lines][rows][columns]
    float *out;
    long long n_out; ///< in all
    int rows, columns, kernel_rows, kernel_columns;
} wt_median_long_args;
#endif
