/// Loudness meters fed with 1 kHz tones at 48 kHz.
#ifndef WT_LOUDNESS_CHECK_H
#define WT_LOUDNESS_CHECK_H

#include "testing.h"

#include <math.h>
#include <warptone/loudness.h>

wt_loudness *loudness_meter(int rate_hz, int channels);
wt_loudness_values loudness_now(const wt_loudness *meter);

/// `seconds` of the tone, `peak_db` of full scale in each of `channels`, 8 at most (-INFINITY = silence).
void loudness_tone(wt_loudness *meter, const double *peak_db, int channels, double seconds);
void loudness_stereo(wt_loudness *meter, double peak_db, double seconds);

typedef struct loudness_part {
    double peak_db, seconds;
} loudness_part;

/// What a stereo meter says after all parts.
wt_loudness_values loudness_programme(const loudness_part *parts, int n_parts);
#define LOUDNESS_PROGRAMME(...)                                                                                        \
    loudness_programme((loudness_part[]){__VA_ARGS__},                                                                 \
                       (int)(sizeof(loudness_part[]){__VA_ARGS__} / sizeof(loudness_part)))

#define assert_near(got, want, tolerance)                                                                              \
    do {                                                                                                               \
        double assert_got = (got);                                                                                     \
        if (!(fabs(assert_got - (want)) <= (tolerance)))                                                               \
            fail_msg("%s is %.4f, want %.4f +-%g", #got, assert_got, (double)(want), (double)(tolerance));             \
    } while (0)

#endif
