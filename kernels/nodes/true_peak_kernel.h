// True peak between samples: three points behind each frame. Meters use the interpolator of loudness_kernel.h (12 taps,
// the Recommendation's count); the limiter, which must not miss what a better ear finds, uses 24 taps and a parabola
// through each three neighbouring points.
#ifndef WT_TRUE_PEAK_KERNEL_H
#define WT_TRUE_PEAK_KERNEL_H
#include "fastmath_kernel.h"
#include "loudness_kernel.h"

// Row p estimates x(n + (p + 1) / 4) from x[n-11] .. x[n+12]. Designed as loudness_interpolator, over 0 .. 0.46:
//   k = arange(-11, 13); solve(0.92 * sinc(0.92 * (k[:,None] - k)), 0.92 * sinc(0.92 * (k - d)))     (numpy 2.2.6)
// Within 0.1 dB to 0.39 of the rate, 0.2 dB to 0.455. A parabola reads a sine of a quarter of the rate within 0.02 dB
// (the points alone: up to 0.17 dB low).
#define TRUE_PEAK_TAPS 24
// clang-format off
LOUDNESS_TABLE float true_peak_interpolator[3][TRUE_PEAK_TAPS] = {
    {-0.00388943288f, 0.00610466301f, -0.00896895397f, 0.0126431072f, -0.0173660982f, 0.0235225335f,
     -0.0317877531f, 0.0434781276f, -0.0615478829f, 0.0942431167f, -0.176291808f, 0.898632109f,
     0.299676627f, -0.126090646f, 0.0772807375f, -0.0535107963f, 0.0390628539f, -0.0291739535f,
     0.0219172016f, -0.0163679048f, 0.0120269461f, -0.00859894324f, 0.00589433499f, -0.00378172193f},
    {-0.00541888783f, 0.00847511739f, -0.0124068353f, 0.0174193904f, -0.0238133948f, 0.0320647098f,
     -0.0429924205f, 0.0581512526f, -0.0808963776f, 0.120002508f, -0.207755432f, 0.635126233f,
     0.635126233f, -0.207755432f, 0.120002508f, -0.0808963776f, 0.0581512526f, -0.0429924205f,
     0.0320647098f, -0.0238133948f, 0.0174193904f, -0.0124068353f, 0.00847511739f, -0.00541888783f},
    {-0.00378172193f, 0.00589433499f, -0.00859894324f, 0.0120269461f, -0.0163679048f, 0.0219172016f,
     -0.0291739535f, 0.0390628539f, -0.0535107963f, 0.0772807375f, -0.126090646f, 0.299676627f,
     0.898632109f, -0.176291808f, 0.0942431167f, -0.0615478829f, 0.0434781276f, -0.0317877531f,
     0.0235225335f, -0.0173660982f, 0.0126431072f, -0.00896895397f, 0.00610466301f, -0.00388943288f},
};
// clang-format on

// Top of the parabola through three equally spaced points whose middle one is the highest in magnitude, else |b|.
WT_SHARED_FN float true_peak_top(float a, float b, float c)
{
    float flip = b < 0.0f ? -1.0f : 1.0f, top = b * flip, left = top - a * flip, right = top - c * flip;
    float bend = left + right, tilt = left - right; // both differences are >= 0 at a maximum
    float more = wt_divide(tilt * tilt, 8.0f * wt_max(bend, 1e-30f));
    return top + (wt_min(left, right) >= 0.0f ? more : 0.0f);
}
#endif
