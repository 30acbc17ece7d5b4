/// What the parts of the table of signal ops share.
#ifndef WT_TEST_SIGNAL_OP_ROWS_H
#define WT_TEST_SIGNAL_OP_ROWS_H

#include "op_plans.h"

#include <string.h>

enum { RATE_HZ = 22050, N_FFT = 512, HOP = 128, BINS = N_FFT / 2 + 1, BANDS = 40 };
enum { SAMPLES = 8000, FRAMES = 100 }; // where not another length says more

typedef struct signal_op_table {
    const signal_op *rows;
    int n_rows;
} signal_op_table;

extern const signal_op_table signal_ops_spectra, signal_ops_notes, signal_ops_samples;

/// One part more of the result.
void signal_op_gives(made_op *op, op_type type, int64_t count);

#define ROW(title, length, made, noun) .name = title, .n = length, .create = create_##made, .destroy = op_destroy_##noun
#define RUN(noun)                      .enqueue = op_enqueue_##noun

#endif
