// soxr's HQ recipe, librosa's default, for any ratio: the chain of filters that it makes of one, and the one filter a
// phase that the chain comes to.
#ifndef WT_DSP_SOXR_HQ_H
#define WT_DSP_SOXR_HQ_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/status.h>

enum { WT_SOXR_MAX_LINKS = 12 };

// A sinc under Kaiser's window.
typedef struct wt__soxr_shape {
    double half_transition, cut, beta; // the first two of the Nyquist frequency of the taps' rate
    double edge, gain;                 // taps by which the window goes on beyond the last; of the sum
    int n_taps;                        // at first as many as the attenuation needs
} wt__soxr_shape;

// Output k of a link is the sum over its input frames i of tap (k step - i) scale + centre times frame i. Between taps
// (order 1, 2) a polynomial goes through that tap and the next `order`.
typedef struct wt__soxr_link {
    double step;  // input frames an output
    int scale;    // taps an input frame,
    int down;     // and an output of a whole link
    double *taps; // [n_taps + 2], the last two 0
    int n_taps;
    double centre;
    wt__soxr_shape shape;
    int order;  // 0: outputs meet taps
    bool whole; // a filter of whole frames, whose taps do not move with a phase: all links but one
} wt__soxr_link;

typedef struct wt__soxr_chain {
    wt__soxr_link links[WT_SOXR_MAX_LINKS];
    int n_links;
    int64_t numerator,
        denominator; // input frames an output of the chain, by soxr's clock of 32 bits where phases are read
    int n_phases;    // rows an input frame between which phases are read, 0: none
    int order;       // of that reading, 2 as the link's own, 3 finer than any link's; 0: none
    int reach;       // input frames to each side of an output's time
} wt__soxr_chain;

// What one output is of the input: the sum of weights[k] times frame first + k.
typedef struct wt__soxr_row {
    int64_t first;
    int n, room;
    double *weights, *spare; // [room]
    bool cut;                // frames of a link before the signal's start were wanted
} wt__soxr_row;

/// The chain for in_hz to out_hz, links from the input on.
/// Source: the stages, their edges, attenuations and clock as libsoxr 0.1.3 chooses them for SOXR_HQ; its windows by J.
/// Kaiser.  Judge: python-soxr 1.1.0 in float64, 5e-7 of the peak.
WT_CHECKED wt_status wt__soxr_chain_create(int in_hz, int out_hz, wt__soxr_chain *chain);
/// One filter of 1:2 behind the other, n times.
WT_CHECKED wt_status wt__soxr_doublings_create(int n, wt__soxr_chain *chain);
void wt__soxr_chain_destroy(wt__soxr_chain *chain);

WT_CHECKED wt_status wt__soxr_row_create(const wt__soxr_chain *chain, wt__soxr_row *row);
void wt__soxr_row_destroy(wt__soxr_row *row);
/// The row of an output `shift` outputs behind output n. `started`: what links would give before the signal's start is
/// lost, as in soxr, and cut says whether that was wanted.
void wt__soxr_row_of(const wt__soxr_chain *chain, int64_t n, double shift, bool started, wt__soxr_row *row);

enum { WT_SOXR_HALF = 200 };
/// Half of the symmetric filter of halving `index`, from 0, of those that soxr does in one go: tap k lies k frames of
/// the higher rate before and after the output. Of several halvings the last one's goes on a little: below 2e-8, cut.
WT_CHECKED wt_status wt__soxr_half(int n_halvings, int index, double *taps);

#endif
