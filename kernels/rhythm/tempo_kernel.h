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
    wt_tempogram_args rows; ///< of the signals
    wt_tempo_choice choice;
    long long n_rows;
    int n_fft, tiles;
} wt_tempo_args;

typedef struct wt_tempo_rows_args {
    const float *rows; ///< [n_rows][choice.length]
    double *bpm;       ///< [n_rows]
    wt_tempo_choice choice;
    long long n_rows;            ///< of all signals
    wt_tempogram_args tempogram; ///< its rows
    int in_double;               ///< rows are by transforms in double, so that no lag is to be summed anew
    int unused;
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
    const float *envelope;        ///< [n_signals][n_frames]
    int *frames;                  ///< [n_signals][n_frames]
    wt_beat_found *found;         ///< [n_signals]
    const double *bpm;            ///< [n_signals]; NULL = `known_bpm`
    double *bumps;                ///< [n_signals][max_period + 1] taps of the signal's period
    const double *logs;           ///< [2 max_period + 1] of 0, 1 ...: the first is not read
    double *score, *sum, *scaled; ///< [n_signals][n_frames] local, cumulative, envelope divided by its deviation
    int *link;                    ///< [n_signals][n_frames]
    double known_bpm, frames_per_minute, tightness;
    long long n_frames;
    int max_period, no_trim;
} wt_beat_args;

#define WT_BEAT_SHARED 2048 ///< longest period whose penalties lie in shared memory; longer ones' are made in place

/// exp(x), x in -700 .. 0, to 1 ulp and of the same bits everywhere: nothing is left that a compiler could fuse.
/// Taylor's series around the nearest multiple of log 2, whose two parts are fdlibm's.
WT_TEMPO_FN double wt__beat_exp(double x)
{
    const double n = rint(x * 1.4426950408889634);
    const double r = fma(-n, 1.90821492927058770002e-10, fma(-n, 6.93147180369123816490e-01, x));
    double sum = 1.0 / 6227020800; // 13!
    const double factorials[12] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                   1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                   1.0 / 24,        1.0 / 6,        0.5,           1.0};
    for (int k = 0; k < 12; k++) sum = fma(sum, r, factorials[k]);
    return ldexp(fma(sum, r, 1.0), (int)n);
}

/// Tap k of the bump that smooths the envelope for beats of `period` frames: a Gaussian a 32nd of a beat wide. Its far
/// taps are tiny, but decide where a score is not 0.
WT_TEMPO_FN double wt__beat_bump(int k, int period)
{
    const double away = k * 32.0 / period;
    return wt__beat_exp(-0.5 * away * away);
}

#define WT_TEMPO_SLACK 1e-6 ///< what transforms in float may be off, of lag 0

/// What decides between lags: of nothing at lag k it is the prior alone.
WT_TEMPO_FN double wt__tempo_worth(const wt_tempo_choice *c, double lag, int k)
{
    return log1p(1e6 * lag) + c->prior[k];
}

/// What a lag is worth at most that is worth `here` by a transform in float: logarithms lie below their tangents.
WT_TEMPO_FN double wt__tempo_most(const wt_tempo_choice *c, double here, double lag, int k)
{
    const double scaled = 1e6 * lag;
    return scaled > -0.5 ? here + 1e6 * WT_TEMPO_SLACK / (1 + scaled) : wt__tempo_worth(c, lag + WT_TEMPO_SLACK, k);
}

/// What the best lag is worth at least.
WT_TEMPO_FN double wt__tempo_sure(const wt_tempo_choice *c, double lag, int k)
{
    const double least = 1e6 * (lag - WT_TEMPO_SLACK);
    return least > -1 ? log1p(least) + c->prior[k] : -1e300;
}

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

/// The lag between the lags: from the peak of two, four, eight ... beats, as far as the window goes, since the same
/// error in frames is that part of a beat; then the line from 0 through the peaks of all numbers of beats from half as
/// many on (least squares), each of which lies differently between its lags.
WT_TEMPO_FN double wt__tempo_refine(const wt_tempo_choice *c, const float *lags, int lag)
{
    const double room = 0.75 * c->length - 3;
    double best = lag, sum = 0, squares = 0;
    for (int beats = 1; best * beats < room; beats *= 2) {
        const double peak = wt__tempo_peak(c, lags, best * beats);
        if (!(peak > 0.5 * lag * beats)) return best; // none, or short lags that walked away from their tempo
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
