/// The golden set of tests/golden/dsp: librosa's float64 results for many settings of every op (make_dsp.py).
///
///     const golden_case *g = golden_find("stft_512_128_reflect");
///     size_t       n;
///     const float *y = golden_input(g, 0, &n);
///     int          n_fft = golden_int(g, "n_fft", 2048);
///     ... compute out [rows][columns], complex values interleaved ...
///     golden_check(g, out, rows, columns);          // fails the cmocka test with the error, the peak and the bound
///
/// or every case of an op:  for (const golden_case *g = NULL; (g = golden_next("mel", g));) ...
/// Parameters bear librosa's (SciPy's, NumPy's) own names; what a case does not name has librosa's default.
/// Everything fails the running cmocka test, with a sentence, on a missing name or file. Arrays live until the program
/// ends. Not for threads.
#ifndef WT_TEST_GOLDEN_H
#define WT_TEST_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>

enum { GOLDEN_MAX_INPUTS = 4 };

typedef struct golden_case {
    const char *name, *op;
    const char *inputs[GOLDEN_MAX_INPUTS]; ///< file names, NULL after the last
    const char *params;                    ///< "key=value;key=value", "-" for none
    const char *output, *sums;             ///< file names; sums NULL when the output is stored whole
    int         n_dims;                    ///< 1 or 2: of the whole result
    size_t      rows, columns;             ///< of the whole result; rows 1 when n_dims is 1
    char        kind;                      ///< 'f' real, 'c' complex, 'i' integer
    size_t      row_step, column_step;     ///< stored are rows 0, row_step ... and columns 0, column_step ...
    double      peak;                      ///< largest finite magnitude of the whole result; 1 when all is 0
    double      floor;                     ///< librosa's own float32 error / peak
    double      bound;                     ///< largest error / peak that passes; 0 for integers
    double      goal;                      ///< what the project aims at; at most the bound
} golden_case;

int                golden_count(void);
const golden_case *golden_at(int index);
const golden_case *golden_find(const char *name);                          ///< by full name, never NULL
const golden_case *golden_next(const char *op, const golden_case *before); ///< before NULL: the first; NULL at the end

/// Input k: [count] float32, or [shape[0]][shape[1]] of golden_input_shape (shape[0] is 1 for a signal).
const float *golden_input(const golden_case *g, int k, size_t *count);
void         golden_input_shape(const golden_case *g, int k, size_t shape[2]);

/// A parameter; `otherwise` when the case does not name it or says "none". Text is reused by the next golden_text.
bool        golden_has(const golden_case *g, const char *key); ///< named, and not "none"
int         golden_int(const golden_case *g, const char *key, int otherwise);
double      golden_double(const golden_case *g, const char *key, double otherwise); ///< reads inf too
const char *golden_text(const golden_case *g, const char *key, const char *otherwise);
int         golden_list(const golden_case *g, const char *key, double *values, int room); ///< "1.5,3.0": returns count

/// The stored values, [rows / row_step rounded up][columns / column_step rounded up], complex interleaved.
const double *golden_values(const golden_case *g);
size_t        golden_stored_count(const golden_case *g); ///< a complex value is one

/// Largest |got - golden| / peak of a whole result [rows][columns] over the stored values; a NaN must meet a NaN.
/// What is not stored is judged by the sums: weighted by cos(row), their error counts relative to the sum of
/// |cos(row)| * peak, so it never exceeds the largest error of an element. HUGE_VAL when shape or a NaN differs.
double golden_error(const golden_case *g, const float *got, size_t rows, size_t columns);
double golden_error_double(const golden_case *g, const double *got, size_t rows, size_t columns);

/// Fail the test when the shape differs or the error is above the bound. A 1-D result has rows 1.
void golden_check(const golden_case *g, const float *got, size_t rows, size_t columns);
void golden_check_double(const golden_case *g, const double *got, size_t rows, size_t columns);
void golden_check_within(const golden_case *g, const double *got, size_t rows, size_t columns, double bound);
void golden_check_int(const golden_case *g, const int *got, size_t rows, size_t columns); ///< identical, all of them

#endif
