/// Arguments of the tempogram, tempo and beat kernels, and what both compilers must agree on.
#ifndef WT_TEMPO_KERNEL_H
#define WT_TEMPO_KERNEL_H

#ifdef __CUDACC__
#    define WT_TEMPO_FN static __device__ inline
#else
#    include <math.h>
#    define WT_TEMPO_FN static inline
#endif

#define WT_TEMPO_TILE 64 ///< rows whose spectra a block adds up
#define WT_TEMPO_SAMPLES(n_fft)                                                                                        \
    (WT_TEMPO_TILE + (n_fft) / 2) ///< of the envelope under them: windows are n_fft / 2 at most

typedef struct wt_tempogram_args {
    const float *envelope; ///< [n_signals][n_frames]
    const float *window;   ///< [n_fft], zeros behind `length`
    const float *twiddles;
    float *out;   ///< tempogram: [n_signals][n_rows][length]
    double *sums; ///< tempo: [n_signals][tiles][bins] power over energy, summed over a tile's rows
    long long n_frames, n_rows;
    int length, begin; ///< row t begins at frame t - begin
    int no_norm;
} wt_tempogram_args;

/// How a lag is chosen.
typedef struct wt_tempo_choice {
    const double *prior;  ///< [length] logarithm, -inf where the tempo is too high
    const double *window; ///< [length] the window's autocorrelation
    double rate_hz;
    int hop, length, fine;
} wt_tempo_choice;

typedef struct wt_tempo_args {
    const double *sums;
    const double *cosines; ///< [n_fft] of one turn
    double *bpm;           ///< [n_signals]
    wt_tempo_choice choice;
    long long n_rows;
    int n_fft, tiles;
} wt_tempo_args;

typedef struct wt_tempo_rows_args {
    const float *rows; ///< [n_rows][choice.length]
    double *bpm;       ///< [n_rows]
    wt_tempo_choice choice;
    long long n_rows; ///< of all signals
} wt_tempo_rows_args;

#define WT_TEMPO_MULTIPLES 13

typedef struct wt_tempo_ratios_args {
    const float *rows; ///< [n_rows][length]
    const double *bpm; ///< [n_rows]
    float *ratios;     ///< [n_rows][WT_TEMPO_MULTIPLES]
    double unit;       ///< lag k is the tempo unit / k
    long long n_rows;  ///< of all signals
    int length;
} wt_tempo_ratios_args;

/// wt_beats of warptone/tempo.h.
typedef struct wt_beat_found {
    double bpm;
    long long n_beats;
} wt_beat_found;

typedef struct wt_beat_args {
    const float *envelope; ///< [n_signals][n_frames]
    int *frames;           ///< [n_signals][n_frames]
    wt_beat_found *found;  ///< [n_signals]
    const double *bpm;     ///< [n_signals]; NULL = `known_bpm`
    const double *bumps;   ///< of period p the taps 0 .. p, from p (p + 1) / 2 - 1: one period after the other, from 1
    const double *logs;    ///< [2 max_period + 1] of 0, 1 ...: the first is not read
    double *score, *sum, *scaled; ///< [n_signals][n_frames] local, cumulative, envelope divided by its deviation
    int *link;                    ///< [n_signals][n_frames]
    double known_bpm, frames_per_minute, tightness;
    long long n_frames;
    int max_period, no_trim;
} wt_beat_args;

WT_TEMPO_FN double wt__tempo_bpm(const wt_tempo_choice *c, double lag) { return 60.0 * c->rate_hz / (c->hop * lag); }

/// The peak within two lags of `near`, between the lags by a parabola; 0 when there is none. The window's own
/// autocorrelation, which tilts the peaks, is divided out.
WT_TEMPO_FN double wt__tempo_peak(const wt_tempo_choice *c, const float *lags, double near)
{
    int at = (int)lrint(near);
    if (at < 3) return 0;
    for (int k = at - 2, middle = at; k <= middle + 2; k++)
        if (lags[k] / c->window[k] > lags[at] / c->window[at]) at = k;
    const double before = lags[at - 1] / c->window[at - 1], here = lags[at] / c->window[at];
    const double after = lags[at + 1] / c->window[at + 1], a = before + after - 2 * here, b = (after - before) / 2;
    return fabs(b) < fabs(a) ? at - b / a : 0;
}

/// The lag between the lags: from the peak of two, four, eight ... beats, as far as the window goes, since the same error
/// in frames is that part of a beat; then the line from 0 through the peaks of all numbers of beats from half as many
/// on (least squares), each of which lies differently between its lags.
WT_TEMPO_FN double wt__tempo_refine(const wt_tempo_choice *c, const float *lags, int lag)
{
    const double room = 0.75 * c->length - 3;
    double best = lag, sum = 0, squares = 0;
    for (int beats = 1; best * beats < room; beats *= 2) {
        const double peak = wt__tempo_peak(c, lags, best * beats);
        if (!(peak > 0)) return best;
        best = peak / beats;
    }
    const int most = (int)(room / best);
    for (int beats = most / 2 + 1; beats <= most; beats++) {
        const double peak = wt__tempo_peak(c, lags, best * beats);
        if (!(peak > 0)) continue;
        sum += beats * peak, squares += (double)beats * beats;
    }
    return squares > 0 ? sum / squares : best;
}

/// A row's strength at multiple `i` of a tempo: on the line between the tempi of two lags, 0 beyond them.
WT_TEMPO_FN float wt__tempo_ratio(const float *row, int length, double unit, double bpm, int i)
{
    const double multiples[WT_TEMPO_MULTIPLES] = {4,       8.0 / 3, 3,       2,       4.0 / 3, 1.5, 1,
                                                  2.0 / 3, 3.0 / 4, 1.0 / 2, 1.0 / 3, 3.0 / 8, 0.25};
    const double wanted = bpm * multiples[i];
    if (!(wanted <= unit) || wanted < unit / (length - 1)) return 0;
    int k = (int)(unit / wanted); // unit / k >= wanted > unit / (k + 1)
    if (k > length - 2) k = length - 2;
    const double high = unit / k, low = unit / (k + 1);
    return (float)(row[k + 1] + (wanted - low) / (high - low) * ((double)row[k] - row[k + 1]));
}

#endif
