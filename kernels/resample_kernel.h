/// Arguments of the resampling kernels and of their judge.
#ifndef WT_RESAMPLE_KERNEL_H
#define WT_RESAMPLE_KERNEL_H

#define WT_RESAMPLE_THREADS 128
#define WT_RESAMPLE_REPEAT  8 ///< outputs a thread makes with the same taps

/// Output n of a line lies `phase` / denominator behind input frame f = n * numerator / denominator (whole), and is the
/// sum over k of tap k times input frame f - before + k; outside a line there is silence.
typedef struct wt_resample_args {
    const float *in;  ///< [n_lines][n_in]
    float *out;       ///< [n_lines][n_out]
    const void *taps; ///< [n_taps][n_columns] float or double. Exact phases: column n % denominator, as outputs come.
                      ///< Interpolated: column p + 1 is phase p / n_phases, p = -1 .. n_phases + 1
    long long numerator, denominator;
    long long stride; ///< exact phases: the outputs of a thread lie this far apart, a multiple of the denominator
    int n_taps, before, n_columns, n_phases;
    int n_in, n_out, n_lines;
} wt_resample_args;

#ifndef __CUDACC__
/// One output in double, straight from the words above. `wide`: the taps are double; `interpolated`: by a cubic
/// (Lagrange) through the columns at -1, 0, 1 and 2 phases.
double wt__resample_ref(const wt_resample_args *args, int wide, int interpolated, int line, int n);
#endif

#endif
