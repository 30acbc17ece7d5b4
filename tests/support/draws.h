/// Settings at random: defaults, small, odd, prime and round sizes; of a wild source now and then what is out of
/// bounds.
#ifndef WT_TEST_DRAWS_H
#define WT_TEST_DRAWS_H

#include "signal_ops.h"

#include <warptone/stft.h>

typedef struct draws {
    uint64_t seed;
    bool wild;
} draws;

int draw_below(draws *d, int n);                       ///< 0 .. n - 1
int draw_size(draws *d, int least, int most);          ///< as many small ones as large ones
int draw_field(draws *d, int least, int most);         ///< a size, or 0 for the default; wild: outside
double draw_real(draws *d, double least, double most); ///< likewise; wild: also no number, or none that is finite
bool draw_bool(draws *d);
/// Windows, lengths and hops of n_fft 2 .. 2500, from a 16th of it on; `channels` 1 .. 2.
wt_stft_config draw_stft(draws *d);

/// Rows whose create() takes its settings from op->draws, in the two tables of the drawn ops.
int drawn_ops_count(void);
const signal_op *drawn_op_at(int k);

#endif
