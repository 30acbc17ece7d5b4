/// Spectral envelopes through harmonics: the arguments of the kernels, and what both compilers must do alike.
#ifndef WT_FORMANTS_KERNEL_H
#define WT_FORMANTS_KERNEL_H
#include "spectrum_kernel.h"

#define WT_FORMANTS_VOICED 0.1 ///< cepstral peak of a voice, natural logarithm of amplitudes; noise has 0.06
#define WT_FORMANTS_SHARE  0.8 ///< of the largest peak: the first so large is the period
#define WT_FORMANTS_LEAST  4.0 ///< bins between harmonics that a Hann window tells apart

typedef struct wt_formants_args {
    float *spectra;         ///< [n_lines][n_held][bins][2], rounded from double; changed in place, at last to the
                            ///< frames' windowed samples
    double *knots;          ///< [n_rows][3][room] of envelopes, NULL = in shared memory
    double *cepstra;        ///< [n_lines][n_held][last - first + 3] from quefrency first - 1 on
    const double *twiddles; ///< of n_fft points in double
    const double *window;   ///< [n_fft]
    float *out;             ///< [n_lines][n_samples]
    long long n_rows;       ///< n_lines n_held
    long long n_samples;
    long long from, count; ///< samples of each signal that formants_add gives
    double ratio;    ///< frequencies of the envelope are divided by it
    double spacing;  ///< bins between peaks; 0 = the frame's pitch
    double unvoiced; ///< bins between the peaks of a frame that has none
    int n_fft, n_frames, hop;
    int first_frame, n_held; ///< frames of a signal that are held, of its n_frames
    int first, last;         ///< quefrencies that may be a period, none when last < first
    int unused;
} wt_formants_args;

/// Peaks of an envelope, at rising bins, the first and last at its ends.
typedef struct wt_formants_knots {
    double *x, *y, *slope; ///< [wt__formants_room] bin, logarithm, and what follows
    int n;
} wt_formants_knots;

/// Knots that an envelope may have: searches begin two bins behind the peak before.
WT_SPECTRUM_BOTH int wt__formants_room(int n_fft) { return (n_fft / 2 + 1) / 2 + 4; }

/// Of a bin in float: exact but for one sum.
WT_SHARED_FN double wt__formants_power(const float *x) { return (double)x[0] * x[0] + (double)x[1] * x[1]; }

/// Logarithm of an amplitude, no deeper than 100 dB below the frame's largest power; 0 for silence and what is no
/// number.
WT_SHARED_FN double wt__formants_log(double power, double most)
{
    const double level = 0.5 * log(power + 1e-10 * most);
    return most > 0 && level == level ? level : 0;
}

/// Where between bins k - 1 and k + 1 a parabola through three levels peaks, from k; 0 when the middle is no peak.
WT_SHARED_FN double wt__formants_peak(double before, double here, double after)
{
    const double bend = before - 2 * here + after;
    return here >= before && here >= after && bend < 0 ? 0.5 * (before - after) / bend : 0;
}

/// A search behind a peak at bin `at`: its first bin, and its last.
WT_SHARED_FN int wt__formants_begin(int at, double spacing) { return (int)ceil(at + spacing / 2); }
WT_SHARED_FN int wt__formants_end(int at, double spacing) { return (int)floor(at + 1.5 * spacing); }

/// Add the peak at bin k of a frame x, 0 < k < bins - 1.
WT_SHARED_FN void wt__formants_add(wt_formants_knots *knots, const float *x, int k, double most)
{
    const double before = wt__formants_log(wt__formants_power(x + 2 * k - 2), most),
                 here = wt__formants_log(wt__formants_power(x + 2 * k), most),
                 after = wt__formants_log(wt__formants_power(x + 2 * k + 2), most);
    const double by = wt__formants_peak(before, here, after);
    knots->x[knots->n] = k + by;
    knots->y[knots->n++] = here - 0.25 * (before - after) * by;
}

/// Slope of the envelope at knot i: that of a parabola through it and its neighbours, 0 at the ends.
WT_SHARED_FN double wt__formants_slope(const wt_formants_knots *k, int i)
{
    if (i < 1 || i + 1 >= k->n) return 0;
    const double left = k->x[i] - k->x[i - 1], right = k->x[i + 1] - k->x[i];
    return ((k->y[i] - k->y[i - 1]) / left * right + (k->y[i + 1] - k->y[i]) / right * left) / (left + right);
}

/// The envelope at bin x between knots `low` and the next: a cubic (E. Catmull and R. Rom, A class of local
/// interpolating splines, 1974, with the slopes of parabolas since knots are uneven).
WT_SHARED_FN double wt__formants_at(const wt_formants_knots *k, int low, double x)
{
    const double wide = k->x[low + 1] - k->x[low], t = (x - k->x[low]) / wide, u = 1 - t;
    return u * u * ((1 + 2 * t) * k->y[low] + t * wide * k->slope[low]) +
           t * t * ((1 + 2 * u) * k->y[low + 1] - u * wide * k->slope[low + 1]);
}

/// The bin whose level bin k gets.
WT_SHARED_FN double wt__formants_from(const wt_formants_args *a, int k)
{
    const double last = a->n_fft / 2;
    return a->ratio * k < last ? a->ratio * k : last;
}

/// What a bin is multiplied with for a difference of levels, within 40 dB. In double and rounded: expf differs from one
/// library to another.
WT_SHARED_FN float wt__formants_gain(double lift) { return (float)exp(lift < -4.6 ? -4.6 : lift > 4.6 ? 4.6 : lift); }

/// Sample n of the signal that a line's frames of windowed samples, n_fft / 2 + 1 pairs apart, add up to; those that
/// reach it are held.
WT_SHARED_FN float wt__formants_sample(const wt_formants_args *a, const float *frames, long long n)
{
    const long long at = n + a->n_fft / 2, row = 2 * (a->n_fft / 2 + 1);
    long long t = at < a->n_fft ? 0 : (at - a->n_fft) / a->hop + 1;
    double sum = 0, squares = 0;
    for (; t < a->n_frames && t * a->hop <= at; t++) {
        const double w = a->window[at - t * a->hop];
        sum += frames[(t - a->first_frame) * row + at - t * a->hop];
        squares += w * w;
    }
    return (float)(squares > 1.1754943508222875e-38 ? sum / squares : sum);
}
#endif
