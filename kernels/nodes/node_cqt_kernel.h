// cqt: levels of 84 notes, C1 to B7, and of the 12 pitch classes, of the mean of all channels; audio passes unchanged.
//
// A note is a bank of CQT_STAGES complex one-pole resonators in a row, all at its frequency: a constant-Q transform
// whose kernel is e^(i w n) under a gamma window, n^3 e^(-b n), that reaches backwards only. So it has no frames and no
// heavy moments, and high notes answer within milliseconds. b makes the -3 dB band a semitone wide; a semitone beside
// the centre is 9.8 dB down, a whole tone 24, an octave 81. Each stage takes the one before a frame late, so that all
// go at once. Levels are mean squares: a sine of full scale at a note has -3.01 dB.
// Source: gammatone of order 4, R. Patterson and others, 1992; its one-pole form: V. Hohmann, Acustica 88, 2002.
#ifndef WT_NODE_CQT_KERNEL_H
#define WT_NODE_CQT_KERNEL_H
#include "spectral_node_kernel.h"

#define CQT_NOTES      84
#define CQT_LANES      96 // CQT_NOTES rounded up to whole vectors
#define CQT_CLASSES    12
#define CQT_STAGES     4
#define CQT_N_READINGS (CQT_NOTES + CQT_CLASSES)

typedef struct node_cqt_plan {
    int channels, hop;
    float pole_re[CQT_LANES], pole_im[CQT_LANES];
    float gain[CQT_LANES]; // of the first stage's input; 0 = the note lies too high for the rate
} node_cqt_plan;

typedef struct node_cqt_state {
    float re[CQT_STAGES][CQT_LANES], im[CQT_STAGES][CQT_LANES];
    WT_ALIGNED(16) long long heard; // frames that the resonators have heard
    int known;                      // 1 once levels have been shown
    float x[WT_CHAIN_BLOCK];        // GPU: frames by position that they are still to hear
} node_cqt_state;

// A reading: a note, or behind them a pitch class, the sum of its notes.
WT_SHARED_FN float cqt_level(const node_cqt_state *s, int r)
{
    float power = 0.0f;
    for (int k = r < CQT_NOTES ? r : r - CQT_NOTES; k < CQT_NOTES; k += CQT_CLASSES) {
        const float re = s->re[CQT_STAGES - 1][k], im = s->im[CQT_STAGES - 1][k];
        power += re * re + im * im;
        if (r < CQT_NOTES) break;
    }
    return spectral_db(power);
}
#endif
