// Voice activity by energy: from the power of a window to the decision. dsp/voice/vad.c, batches and the vad node run
// the same text.
//
// A window's power is the mean square behind a first-order high-pass at 80 Hz (hum and offset are not speech). It is
// smoothed over about 50 ms; the floor is the smallest smoothed power of the last 2 s, kept as the minima of 8 parts
// of 25 windows, times what the minimum of noise lies below its mean. Speech leaves a gap of 50 ms in 2 s, steady
// noise does not; noise that grows is background 2 s later.
#ifndef WT_VAD_KERNEL_H
#define WT_VAD_KERNEL_H
#include "chain_kernel.h"

#define VAD_PARTS         8
#define VAD_PART_WINDOWS  25
#define VAD_ENTER_WINDOWS 2
// Smoothing over 50 ms: exp(-10 / 50). Bias: the minimum of 200 such values of white noise lies 0.4 dB below the mean;
// that of room and street noise, whose power wanders, about 2 dB; between the two.
#define VAD_SMOOTHING 0.8187307530779818
#define VAD_BIAS      1.3
#define VAD_HIGH_HZ   80.0

typedef struct vad_rules {
    double enter, leave, min_power; // power ratios to the floor, power
    int hangover, unused;           // windows
} vad_rules;

typedef struct vad_voice {
    double in_before, high; // of the high-pass
    double sum;             // of squares in the present window
    double power, smoothed, floor;
    double minima[VAD_PARTS]; // of the smoothed power; part 0 is the present one
    int n_loud, hangover;     // windows
    int active, unused;
} vad_voice;

// Where the windows stand: a window has ended since reset, and how many of the present part have.
typedef struct vad_count {
    int started, n_windows;
} vad_count;

// The next n samples of the present window, in order.
WT_SHARED_FN void vad_hear(vad_voice *s, double pole, const float *in, int n)
{
    for (int k = 0; k < n; k++) {
        const double x = in[k];
        s->high = pole * (s->high + x - s->in_before);
        s->in_before = x;
        s->sum += s->high * s->high;
    }
}

WT_SHARED_FN void vad_count_on(vad_count *n)
{
    n->started = 1;
    n->n_windows = (n->n_windows + 1) % VAD_PART_WINDOWS;
}

WT_SHARED_FN void vad_track_floor(const vad_count *n, vad_voice *s)
{
    if (!n->started) {
        s->smoothed = s->power;
        for (int k = 0; k < VAD_PARTS; k++) s->minima[k] = s->power;
    }
    s->smoothed = VAD_SMOOTHING * s->smoothed + (1 - VAD_SMOOTHING) * s->power;
    if (n->n_windows == 0) { // a part begins, the oldest is forgotten
        for (int k = VAD_PARTS - 1; k > 0; k--) s->minima[k] = s->minima[k - 1];
        s->minima[0] = s->smoothed;
    }
    s->minima[0] = fmin(s->minima[0], s->smoothed);
    s->floor = s->minima[0];
    for (int k = 1; k < VAD_PARTS; k++) s->floor = fmin(s->floor, s->minima[k]);
    s->floor *= VAD_BIAS;
}

WT_SHARED_FN void vad_decide(const vad_rules *r, vad_voice *s)
{
    const int loud = s->power > fmax((s->active ? r->leave : r->enter) * s->floor, r->min_power);
    s->n_loud = loud ? s->n_loud + (s->n_loud < VAD_ENTER_WINDOWS) : 0;
    if (s->active && loud)
        s->hangover = r->hangover;
    else if (s->active && s->hangover-- <= 0)
        s->active = 0;
    if (!s->active && s->n_loud == VAD_ENTER_WINDOWS) {
        s->active = 1;
        s->hangover = r->hangover;
    }
}

// A window of `frames` has ended.
WT_SHARED_FN void vad_end_window(const vad_rules *r, const vad_count *n, vad_voice *s, int frames)
{
    const int finite = s->sum <= 1e300;
    s->power = finite ? s->sum / frames : 0;
    if (finite)
        vad_track_floor(n, s);
    else
        s->in_before = s->high = 0;
    vad_decide(r, s);
    s->sum = 0;
}
#endif
