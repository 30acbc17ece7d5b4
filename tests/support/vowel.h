/// A synthetic vowel, and where its formants are found after something was done to it.
#ifndef WT_VOWEL_H
#define WT_VOWEL_H

#include <stdint.h>

enum { VOWEL_FORMANTS = 4, VOWEL_HARMONICS = 40 };

/// The first three of the vowel of "head", men's: G. Peterson and H. Barney, Control methods used in a study of the
/// vowels, 1952.
extern const double vowel_formants_hz[VOWEL_FORMANTS];

/// Harmonics of f0_hz up to 10.5 kHz, added to x.
void vowel_signal(float *x, int n, double f0_hz, double rate_hz);

/// Amplitude of a frequency in the middle of a signal of more than 16384 frames, under a Hann window.
double amplitude_at(const float *x, int64_t n, double hz, double rate_hz);

/// By what factor the vowel's frequencies must be moved to fit harmonics between two frequencies best, in dB with any
/// level, each weighed by its amplitude. `amplitudes` [VOWEL_HARMONICS], of harmonic m at m.
double vowel_moved_by(const double *amplitudes, double f0_hz, double low_hz, double high_hz);

#endif
