#include "loudness_check.h"

#include <math.h>

enum { MAX_BLOCK = 4800 };

wt_loudness *loudness_meter(int rate_hz, int channels)
{
    wt_loudness *meter = NULL;
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = rate_hz, .channels = channels}, &meter));
    return meter;
}

wt_loudness_values loudness_now(const wt_loudness *meter)
{
    wt_loudness_values values;
    wt_loudness_query(meter, &values);
    return values;
}

// `seconds` of a 1 kHz sine at 48 kHz, `peak_db` of full scale in each of `channels` (-INFINITY = silence).
void loudness_tone(wt_loudness *meter, const double *peak_db, int channels, double seconds)
{
    static float sine[8][MAX_BLOCK];
    const float *in[8];
    for (int c = 0; c < channels; c++) {
        const double peak = pow(10, peak_db[c] / 20);
        for (int n = 0; n < MAX_BLOCK; n++) sine[c][n] = (float)(peak * sin(2 * M_PI * (n % 48) / 48));
        in[c] = sine[c];
    }
    for (int left = (int)lround(seconds * 48000); left > 0; left -= MAX_BLOCK)
        wt_loudness_process(meter, in, left < MAX_BLOCK ? left : MAX_BLOCK);
}

void loudness_stereo(wt_loudness *meter, double peak_db, double seconds)
{
    loudness_tone(meter, (double[]){peak_db, peak_db}, 2, seconds);
}

wt_loudness_values loudness_programme(const loudness_part *parts, int n_parts)
{
    wt_loudness *meter = loudness_meter(48000, 2);
    for (int k = 0; k < n_parts; k++) loudness_stereo(meter, parts[k].peak_db, parts[k].seconds);
    wt_loudness_values values = loudness_now(meter);
    wt_loudness_destroy(meter);
    return values;
}
