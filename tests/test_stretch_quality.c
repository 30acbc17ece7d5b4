// What stretching and shifting leave of sines, impulses, periodic signals and vowels.
#include "support/realtime.h"
#include "support/spectral_check.h"
#include "support/vowel.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/stretch.h>

// What of y is not the best-fitting sine of that frequency, in dB below it; away from the ends.
static double sine_snr_db(const float *y, int64_t n, double hz)
{
    const int64_t begin = 8192, end = n - 8192;
    double c = 0, s = 0, noise_power = 0, power = 0;
    const double w = 6.283185307179586477 * hz / 22050;
    double cc = 0, ss = 0, cs = 0;
    for (int64_t i = begin; i < end; i++) {
        const double a = cos(w * (double)i), b = sin(w * (double)i);
        c += a * y[i], s += b * y[i], cc += a * a, ss += b * b, cs += a * b;
    }
    const double det = cc * ss - cs * cs, p = (c * ss - s * cs) / det, q = (s * cc - c * cs) / det;
    for (int64_t i = begin; i < end; i++) {
        const double fit = p * cos(w * (double)i) + q * sin(w * (double)i);
        power += fit * fit;
        noise_power += (y[i] - fit) * (y[i] - fit);
    }
    return 10 * log10(power / noise_power);
}

static void a_sine_stays_a_sine(void **state)
{
    (void)state;
    enum { N = 66150 };
    float *pcm = malloc(N * sizeof *pcm), *out = malloc(2 * N * sizeof *out);
    assert_true(pcm && out);
    for (int i = 0; i < N; i++) pcm[i] = (float)(0.5 * sin(6.283185307179586477 * 440 * i / 22050));
    const double rates[] = {0.5, 0.8, 1, 1.25, 1.7};
    for (int k = 0; k < 10; k++) {
        wt_stretch *plan;
        assert_ok(wt_stretch_create(NULL,
                                    &(wt_stretch_config){.mode = k < 5 ? WT_STRETCH_TRANSIENT : WT_STRETCH_LOCKED,
                                                         .rate = rates[k % 5],
                                                         .n_samples = N},
                                    &plan));
        wt_stretch_run(plan, pcm, out);
        const double snr = sine_snr_db(out, wt_stretch_n_out(plan), 440);
        if (!(snr >= 80)) fail_msg("case %d, rate %g: %.1f dB, want 80", k, rates[k % 5], snr);
        wt_stretch_destroy(plan);
    }
    const double steps[] = {7, -12, -5, 1, 12};
    for (int k = 0; k < 5; k++) {
        wt_pitch_shift *shift;
        assert_ok(wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.n_steps = steps[k], .n_samples = N}, &shift));
        wt_pitch_shift_run(shift, pcm, out);
        const double snr = sine_snr_db(out, N, 440 * exp2(steps[k] / 12));
        if (!(snr >= 80)) fail_msg("%g steps: %.1f dB, want 80", steps[k], snr);
        wt_pitch_shift_destroy(shift);
    }
    free(pcm), free(out);
}

// ---- attacks

static float *stretched(wt_stretch_config c, const float *pcm, int64_t *n_out)
{
    wt_stretch *plan;
    assert_ok(wt_stretch_create(NULL, &c, &plan));
    *n_out = wt_stretch_n_out(plan);
    float *out = floats((size_t)*n_out + 1);
    RT_SECTION wt_stretch_run(plan, pcm, out);
    wt_stretch_destroy(plan);
    return out;
}

static float tallest(const float *x, int64_t begin, int64_t end, int64_t *at)
{
    float most = 0;
    for (int64_t i = begin; i < end; i++)
        if (fabsf(x[i]) > most) most = fabsf(x[i]), *at = i;
    return most;
}

// Impulses over a soft sine. Where an impulse is, the bins that it does not rule may turn by up to half a circle: those
// of the sine, three or four of a window's thousand.
static void impulses_keep_their_place_and_height(void **state)
{
    (void)state;
    enum { N = 44100, IMPULSES = 4, REACH = 1500 };
    static const int places[IMPULSES] = {5000, 12345, 21011, 33333};
    static const double rates[] = {0.5, 0.8, 1, 1.3, 1.6};
    float *pcm = floats(N);
    for (int with_sine = 0; with_sine < 2; with_sine++)
        for (int k = 0; k < 10; k++) {
            const wt_stretch_mode mode = k < 5 ? WT_STRETCH_TRANSIENT : WT_STRETCH_WSOLA;
            const double rate = rates[k % 5];
            for (int i = 0; i < N; i++)
                pcm[i] = (float)(with_sine * 0.05 * sin(6.283185307179586477 * 440 * i / 22050));
            for (int i = 0; i < IMPULSES; i++) pcm[places[i]] = 1;
            int64_t n_out, at = 0;
            float *out = stretched((wt_stretch_config){.mode = mode, .rate = rate, .n_samples = N}, pcm, &n_out);
            for (int i = 0; i < IMPULSES; i++) {
                const double want = places[i] / rate;
                const float height = tallest(out, (int64_t)want - REACH, (int64_t)want + REACH, &at);
                if (!(fabs((double)at - want) <= 64 && height > 0.9f && height < 1.1f))
                    fail_msg("mode %d, rate %g: an impulse of %g at %lld, want 1 at %.0f", (int)mode, rate,
                             (double)height, (long long)at, want);
                out[at] = 0;
            }
            const float rest = tallest(out, 0, n_out, &at), bound = with_sine ? 0.15f : 1e-5f;
            if (!(rest < bound))
                fail_msg("mode %d, rate %g: %g is left at %lld, want %g", (int)mode, rate, (double)rest, (long long)at,
                         (double)bound);
            free(out);
        }
    free(pcm);
}

// Impulses of a click track nearer than a window: each is still found at its place, and what lies between is lower.
static void near_impulses_keep_their_places(void **state)
{
    (void)state;
    enum { N = 30000, GAP = 1500 };
    float *pcm = floats(N);
    for (int i = 3000; i < N; i += GAP) pcm[i] = 1;
    for (int k = 0; k < 4; k++) {
        const double rate = k % 2 ? 1.25 : 0.75;
        const wt_stretch_mode mode = k < 2 ? WT_STRETCH_TRANSIENT : WT_STRETCH_WSOLA;
        int64_t n_out, at = 0;
        float *out = stretched((wt_stretch_config){.mode = mode, .rate = rate, .n_samples = N}, pcm, &n_out);
        for (int i = 3000; i + GAP < N; i += GAP) {
            const float height = tallest(out, (int64_t)(i / rate) - GAP / 2, (int64_t)(i / rate) + GAP / 2, &at);
            if (!(fabs((double)at - i / rate) <= 64 && height > 0.7f && height < 1.1f))
                fail_msg("mode %d, rate %g: an impulse of %g at %lld, want 1 at %.0f", (int)mode, rate, (double)height,
                         (long long)at, i / rate);
        }
        free(out);
    }
    free(pcm);
}

// A shift is a stretch and a change of rate back: an impulse becomes the resampler's, at its place.
static void shifted_impulses_keep_their_places(void **state)
{
    (void)state;
    enum { N = 44100, IMPULSES = 4, REACH = 1500 };
    static const int places[IMPULSES] = {5000, 12345, 21011, 33333};
    float *pcm = floats(N), *out = floats(N);
    for (int i = 0; i < IMPULSES; i++) pcm[places[i]] = 1;
    for (double steps = -12; steps <= 12; steps += 4) {
        wt_pitch_shift *shift;
        int64_t at = 0;
        assert_ok(wt_pitch_shift_create(NULL, &(wt_pitch_shift_config){.n_steps = steps, .n_samples = N}, &shift));
        wt_pitch_shift_run(shift, pcm, out);
        for (int i = 0; i < IMPULSES; i++) {
            const float height = tallest(out, places[i] - REACH, places[i] + REACH, &at);
            if (!(llabs(at - places[i]) <= 64 && height > 0.4f))
                fail_msg("%g steps: an impulse of %g at %lld, want it at %d", steps, (double)height, (long long)at,
                         places[i]);
        }
        wt_pitch_shift_destroy(shift);
    }
    free(pcm), free(out);
}

// ---- WSOLA

// Pulses of 137 samples' period through a decay, whose attacks are too near one another to be any: the output repeats
// with the same period, whatever the rate. A piece may be taken half a sample wrong: 1 % of the power.
static void a_periodic_signal_keeps_its_period(void **state)
{
    (void)state;
    enum { N = 30000, PERIOD = 137 };
    float *pcm = floats(N);
    for (int i = 0; i < N; i++) pcm[i] = (float)(0.5 * exp(-0.03 * (i % PERIOD)) * sin(0.3 * (i % PERIOD)));
    const double rates[] = {0.5, 0.77, 1.3, 2};
    for (int k = 0; k < 4; k++) {
        int64_t n_out;
        float *out =
            stretched((wt_stretch_config){.mode = WT_STRETCH_WSOLA, .rate = rates[k], .n_samples = N}, pcm, &n_out);
        assert_int_equal(n_out, llrint(N / rates[k]));
        double power = 0, error = 0;
        for (int64_t i = 2048; i + 2048 + PERIOD < n_out; i++) {
            power += (double)out[i] * out[i];
            error += pow((double)out[i] - (double)out[i + PERIOD], 2);
        }
        if (!(power > 0 && error < 0.01 * power))
            fail_msg("rate %g: what does not repeat is %g of the power, want 0.01", rates[k], error / power);
        free(out);
    }
    free(pcm);
}

static void at_rate_1_nothing_changes(void **state)
{
    (void)state;
    enum { N = 20011 };
    float *pcm = noise_floats(N, 3);
    int64_t n_out;
    float *out = stretched((wt_stretch_config){.mode = WT_STRETCH_WSOLA, .n_samples = N}, pcm, &n_out);
    assert_int_equal(n_out, N);
    for (int i = 0; i < N; i++) // windows add up to 1 but for rounding
        if (!(fabsf(out[i] - pcm[i]) <= 1e-6f)) fail_msg("sample %d: %g, want %g", i, (double)out[i], (double)pcm[i]);
    free(pcm), free(out);
}

// Signals shorter than a window, windows of two samples.
static void pieces_of_any_size_fit(void **state)
{
    (void)state;
    static const int sizes[][3] = {{1, 1, 1}, {63, 2, 1}, {253, 65, 30}, {5000, 1024, 512}, {100, 4096, 1000}};
    for (int k = 0; k < 10; k++) {
        const int *size = sizes[k / 2], n = size[0];
        float *pcm = noise_floats((size_t)n, 3);
        int64_t n_out;
        float *out = stretched((wt_stretch_config){.mode = k % 2 ? WT_STRETCH_WSOLA : WT_STRETCH_TRANSIENT,
                                                   .rate = 0.7,
                                                   .n_fft = size[1],
                                                   .hop = size[2],
                                                   .n_samples = n},
                               pcm, &n_out);
        assert_int_equal(n_out, llrint(n / 0.7));
        for (int64_t i = 0; i < n_out; i++) assert_true(isfinite(out[i]));
        free(pcm), free(out);
    }
}

// ---- formants

enum { VOWEL = 44100 };

// `each`: the pitch too, and each formant by itself, which with few harmonics is found less surely than all together.
static void check_vowel(wt_pitch_shift_config config, const float *pcm, double f0_hz, bool each)
{
    wt_pitch_shift *plan;
    assert_ok(wt_pitch_shift_create(NULL, &config, &plan));
    float *out = floats(VOWEL);
    RT_SECTION wt_pitch_shift_run(plan, pcm, out);
    double best = 0, most = 0, got[VOWEL_HARMONICS] = {0};
    for (int tenths = -100; tenths <= 100 && each; tenths++) { // of a cent, by a harmonic near the first formant
        const double f = f0_hz * exp2(tenths / 12000.0), a = amplitude_at(out, VOWEL, 4 * f, 22050);
        if (a > most) most = a, best = f;
    }
    if (each && !(fabs(best / f0_hz - 1) < 1e-4))
        fail_msg("%g steps: f0 %.3f Hz, want %.3f", config.n_steps, best, f0_hz);
    for (int m = 1; m < VOWEL_HARMONICS; m++) got[m] = amplitude_at(out, VOWEL, m * f0_hz, 22050);
    for (int i = 0; i < 3 && each && config.keep_formants; i++) {
        const double by = vowel_moved_by(got, f0_hz, vowel_formants_hz[i] - 300, vowel_formants_hz[i] + 300);
        if (!(fabs(by - 1) <= 0.03))
            fail_msg("%g steps: a formant at %.0f Hz, want %.0f", config.n_steps, by * vowel_formants_hz[i],
                     vowel_formants_hz[i]);
    }
    const double by = vowel_moved_by(got, f0_hz, 100, 4000),
                 want = config.keep_formants ? 1 : exp2(config.n_steps / 12);
    if (!(fabs(by / want - 1) <= 0.01))
        fail_msg("%g steps, keep %d: formants moved by %.3f, want %.3f", config.n_steps, config.keep_formants, by,
                 want);
    wt_pitch_shift_destroy(plan);
    free(out);
}

static void a_vowels_formants_stay(void **state)
{
    (void)state;
    static const double f0s_hz[] = {90, 110, 125, 80, 100, 140, 160, 200};
    for (int v = 0; v < 8; v++) {
        float *pcm = floats(VOWEL);
        vowel_signal(pcm, VOWEL, f0s_hz[v], 22050);
        for (double steps = -5; steps <= 5; steps += 10) {
            const double f0_hz = f0s_hz[v] * exp2(steps / 12);
            wt_pitch_shift_config config = {.n_steps = steps, .n_samples = VOWEL, .keep_formants = true};
            check_vowel(config, pcm, f0_hz, v < 3);
            config.keep_formants = false;
            if (v == 1) check_vowel(config, pcm, f0_hz, true);
        }
        free(pcm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sine_stays_a_sine),
        cmocka_unit_test(impulses_keep_their_place_and_height),
        cmocka_unit_test(near_impulses_keep_their_places),
        cmocka_unit_test(shifted_impulses_keep_their_places),
        cmocka_unit_test(a_periodic_signal_keeps_its_period),
        cmocka_unit_test(at_rate_1_nothing_changes),
        cmocka_unit_test(pieces_of_any_size_fit),
        cmocka_unit_test(a_vowels_formants_stay),
    };
    return cmocka_run_group_tests_name("stretch: quality", tests, NULL, NULL);
}
