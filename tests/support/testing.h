/// Helpers of every test: cmocka with what it needs, comparison in decibels, shared data. With WARPTONE_TEST=PATTERN in
/// its environment a program runs only the tests whose names match it (* and ?).
#ifndef WT_TESTING_H
#define WT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <warptone/status.h>

#define assert_ok(call)                                                        \
    do {                                                                       \
        wt_status assert_ok_status = (call);                                   \
        if (assert_ok_status) fail_msg("%s: %s", #call, wt_last_error());      \
    } while (0)

#define assert_fails(call, expected_status, expected_sentence)                 \
    do {                                                                       \
        assert_int_equal((call), (expected_status));                           \
        assert_string_equal(wt_last_error(), (expected_sentence));             \
    } while (0)

/// Signal-to-noise ratio of `got` against `reference`, in dB; 300 when equal, -300 when `got` is not finite.
double snr_db(const float *reference, const float *got, size_t count);

#define assert_snr_db(reference, got, count, bound_db)                                                   \
    do {                                                                                                 \
        double assert_snr = snr_db((reference), (got), (count));                                         \
        if (!(assert_snr >= (bound_db)))                                                                 \
            fail_msg("%s against %s: %.1f dB, want %.1f", #got, #reference, assert_snr, (double)(bound_db)); \
    } while (0)

/// Path of a file below the shared data folder (WARPTONE_TEST_DATA, else ../shared/data beside the checkout), or NULL
/// when this machine has none; then the test skips and says so. The string is reused by the next call.
const char *shared_data(const char *relative);

/// Run a shell command, its standard output to `out`, cut at its end; returns the exit code. A signal fails the test.
int run_command(char *out, size_t out_bytes, const char *format, ...) WT_PRINTF(3, 4);

/// The program `warptone` that was built with the tests: .../tests/../warptone. False = this test's own path is not
/// told.
bool find_program(char *program, size_t size);

/// Deterministic uniform noise in [-1, 1): a 64-bit linear congruential generator (Knuth, MMIX).
float noise(uint64_t *seed);

#endif
