/// Running `warptone analyze`, and comparing what it makes on a GPU with what it makes on the CPU.
#ifndef WT_TEST_ANALYZE_CHECK_H
#define WT_TEST_ANALYZE_CHECK_H

#include "npy.h"

#include <stdbool.h>

enum { ANALYZE_RATE_HZ = 22050, ANALYZE_FRAMES = 2 * ANALYZE_RATE_HZ };

extern char analyze_program[4096]; ///< find_program's
extern char analyze_out[1 << 18];  ///< what the last run wrote

/// Run `warptone analyze ARGUMENTS`, stderr behind stdout when `with_errors`; returns the exit code. Skips where the
/// program is not built.
int analyze_run(const char *arguments, bool with_errors);
int analyze_runf(const char *format, const char *a, const char *b); ///< The same, with errors.
void assert_analyze(const char *format, const char *a, const char *b);

/// A 440 Hz tone that begins anew, with a click, every half second: [ANALYZE_FRAMES]; caller frees.
float *analyze_tones(void);
const char *analyze_tones_file(void **state, const char *name); ///< in the test's folder; returns its path

/// Array k of what options make of a file on the CPU; free with npy_free.
npy analyze_array_of(void **state, const char *options, const char *input, int k);
/// [rows][columns], to the bit the transpose of `want` [columns][rows]. Frees the array.
void analyze_assert_turned(npy a, const float *want, size_t rows, size_t columns);

typedef struct analyze_refusal {
    const char *options, *sentence;
} analyze_refusal;

/// Each is refused on the CPU with this exit code and a sentence that holds this one, and leaves no file.
void analyze_assert_refused(void **state, const char *input, int code, const analyze_refusal *cases, int n_cases);

typedef struct analyze_case {
    const char *feature; ///< and its options
    double bound;        ///< of the peak
    const char *input;   ///< "in", tones, or "clicks", which ring over noise 40 dB below
} analyze_case;

/// Every array of every feature from a GPU as from the CPU; skips without one. Options may name files in $TEST_FOLDER.
void analyze_compare(void **state, const analyze_case *cases, int n_cases);

#endif
