/// What benches of products share: large memory of random contents, launches replayed from a graph, the products of
/// Qwen3-8B.
///
/// Weights rotate over 512 MB or more, so that no cache holds them. A failure ends the program.
#ifndef WT_BENCH_MATMUL_BENCH_H
#define WT_BENCH_MATMUL_BENCH_H

#include "straight.h"

#include <warptone/graph.h>
#include <warptone/matmul.h>

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    wt_matmul *matmul;
    wt_buffer *weights, *scales, *x, *y;
    size_t pool_bytes;
    wt_event *begin, *end;
    const char *filter; ///< rows whose name contains it are measured
    double read_gbps;
} bench;

/// How weights are kept.
typedef struct format {
    const char *name;
    wt_matrix matrix; ///< type, packing and scaling
    double bytes;     ///< an element, scales included
} format;

enum { FORMAT_BF16, N_FORMATS = 7, N_SHAPES = 5 };
extern const format formats[N_FORMATS];

typedef struct shape {
    const char *name;
    int rows, columns;
    bool gated;
} shape;
extern const shape shapes[N_SHAPES]; ///< Qwen3-8B

typedef struct mode {
    const char *name;
    void (*run)(bench *b);
} mode;

/// Open the first GPU, print how fast a plain kernel reads, run the mode that is asked for first (or all), with the
/// second argument as filter. Returns the program's status; 0 with a sentence when there is no GPU.
int run_modes(int argc, char **argv, const mode *modes, int n_modes);

void need(wt_status status);
int by_value(const void *a, const void *b); ///< doubles, for qsort

/// The product of random weights with bf16, in the bench's memory.
wt_matmul_args product(const bench *b, const format *f, int rows, int columns, int m, bool gated);
/// Time of one launch, of a graph of many over different weights.
double launch_us(bench *b, wt_matmul_args *args, size_t matrix_bytes);
/// Likewise through `s` unless that is NULL.
double launch_us_of(bench *b, wt_matmul_args *args, size_t matrix_bytes, const straight *s);

#endif
