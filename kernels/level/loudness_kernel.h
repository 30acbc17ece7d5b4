/// What a loudness meter needs on either side: the K-weighting filter and the true-peak interpolator.
#ifndef WT_LOUDNESS_KERNEL_H
#define WT_LOUDNESS_KERNEL_H

/// Two second-order sections, a[0] = 1: the shelf (head) and then the high-pass (RLB) of ITU-R BS.1770-4, Annex 1.
typedef struct loudness_weighting {
    double b[2][3]; ///< feed-forward
    double a[2][3]; ///< feed-back, y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2]
} loudness_weighting;

#define LOUDNESS_MIN_RATE_HZ 4000 ///< the shelf's corner, 1682 Hz, must lie below the Nyquist frequency

/// Interpolator of the true-peak meter (BS.1770-4, Annex 2: 48 taps, four phases of 12; phase 0 passes the sample).
/// Row p estimates x(n + (p + 1) / 4) from x[n-5] .. x[n+6]; 2x oversampling uses row 1 alone.
/// Design: least squares, flat weight, |H(f) - exp(j 2 pi f d)| over 0 .. 0.40 of the rate:
///   k = arange(-5, 7); solve(0.8 * sinc(0.8 * (k[:,None] - k)), 0.8 * sinc(0.8 * (k - d)))      (numpy 2.2.6)
/// It is within 0.05 dB to rate / 4, 0.1 dB to 0.40, and never reads more than 0.1 dB high; the coefficients printed in
/// the Recommendation read 0.22 dB high on the same band.
#define LOUDNESS_TAPS 12
#if defined(__CUDACC__)
#    define LOUDNESS_TABLE static __device__ const
#else
#    define LOUDNESS_TABLE static const
#endif
// clang-format off
LOUDNESS_TABLE float loudness_interpolator[3][LOUDNESS_TAPS] = {
    {-0.00656176866f, 0.0172067947f, -0.0366598901f, 0.0733257371f, -0.161662452f, 0.891930178f,
     0.297786602f, -0.116037184f, 0.0604978972f, -0.0321660266f, 0.0156634827f, -0.00614097672f},
    {-0.00893839802f, 0.0231039154f, -0.0482767832f, 0.0934041715f, -0.190341614f, 0.629064667f,
     0.629064667f, -0.190341614f, 0.0934041715f, -0.0482767832f, 0.0231039154f, -0.00893839802f},
    {-0.00614097672f, 0.0156634827f, -0.0321660266f, 0.0604978972f, -0.116037184f, 0.297786602f,
     0.891930178f, -0.161662452f, 0.0733257371f, -0.0366598901f, 0.0172067947f, -0.00656176866f},
};
// clang-format on

#if !defined(__CUDACC__)
/// K-weighting at any rate of LOUDNESS_MIN_RATE_HZ or more. At 48 kHz it is the Recommendation's table.
/// Source: the analogue prototypes behind that table, B. De Man, "Evaluation of Implementations of the EBU R128
/// Loudness Measurement", AES 145, 2018, equations 5 to 11; bilinear transform, warped at the corner.
void wt__loudness_weighting(double rate_hz, loudness_weighting *weighting);
#endif

#endif
