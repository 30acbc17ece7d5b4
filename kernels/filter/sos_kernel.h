/// Arguments of the kernels that filter rows by second-order sections.
#ifndef WT_SOS_KERNEL_H
#define WT_SOS_KERNEL_H

#define WT_SOS_RUN     8   ///< frames of a thread
#define WT_SOS_THREADS 256 ///< of a block
#define WT_SOS_PIECE   256 ///< frames of a warp
#define WT_SOS_POWERS  6   ///< of a section's matrix: to WT_SOS_RUN times 1, 2, 4 .. 32

/// A section, and what WT_SOS_RUN frames of silence and their doublings do to its states (row by row).
typedef struct wt_sos_section {
    double b0, b1, b2, a1, a2;
    double power[WT_SOS_POWERS][4];
} wt_sos_section;

typedef struct wt_sos_args {
    const float *in;
    float *out;                     ///< [n_rows][n_frames]
    const wt_sos_section *sections; ///< [n_sections]
    long long n_frames;
    int n_sections;
} wt_sos_args;

/// Rows that go on from block to block; n_frames are the block's.
typedef struct wt_sos_stream_args {
    wt_sos_args rows;
    double *states; ///< [n_rows][n_sections][2] behind the last whole piece
    float *held;    ///< [n_rows][WT_SOS_PIECE] frames since, `at` of them
    int at;
} wt_sos_stream_args;

/// States of rows that have held their levels for ever.
typedef struct wt_sos_settle_args {
    const double *zi;   ///< [n_sections][2] states of a level of 1
    const float *level; ///< [n_rows]
    double *states;     ///< [n_rows][n_sections][2]
    long long n_rows;
    int n_sections;
} wt_sos_settle_args;

/// Forward and backward over rows that are turned about both their ends for `pad` frames.
typedef struct wt_sos_filtfilt_args {
    wt_sos_args rows;
    const double *zi; ///< [n_sections][2] states of a level of 1
    double *work;     ///< [rows][n_frames + 2 pad]
    int pad;
} wt_sos_filtfilt_args;

#endif
