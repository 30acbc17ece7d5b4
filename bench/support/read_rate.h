/// The rate at which a plain kernel reads memory of a GPU: what products with few vectors can reach.
#ifndef WT_BENCH_READ_RATE_H
#define WT_BENCH_READ_RATE_H

#include <warptone/device.h>

/// GB/s, the best of five launches of 2 blocks a processor over `bytes` at `address`.
WT_CHECKED wt_status bench_read_rate(wt_device *device, wt_stream *stream, int n_sms, uintptr_t address, size_t bytes,
                                     double *rate);

#endif
