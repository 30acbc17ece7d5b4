// Decoding on the CPU: a step reads every weight once, so its speed is the memory's. Matrices of 256 MB, larger than
// most caches, times one vector, and times 64, through the device's threads; the ceiling is the same bytes summed by
// the same threads in the same run. One row a case:
//   read                 20.0 GB/s
//   BF16   x 1           15.0 GB/s   75 % of read
//   BF16   x 64           100 GFLOP/s
#include "../models/llm/llm_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>
#include <warptone/simd.h>

enum { COLUMNS = 4096, ITEM_ROWS = 64, REPEATS = 6, VECTORS = 64, MEGABYTES = 256 };

typedef struct job {
    wt__product product;
    int64_t rows;
    float *sums; ///< [items]
} job;

WT_CLONES static void sum_item(const void *args, int item)
{
    const job *j = args;
    const size_t bytes = wt_dtype_bytes(j->product.linear->weight.dtype, COLUMNS) * ITEM_ROWS;
    const unsigned char *data = (const unsigned char *)j->product.linear->weight.data + bytes * (size_t)item;
    wt_f32x16 sums[4] = {{0}}, v;
    for (size_t at = 0; at + 4 * sizeof v <= bytes; at += 4 * sizeof v)
        for (size_t k = 0; k < 4; k++) {
            memcpy(&v, data + at + k * sizeof v, sizeof v);
            sums[k] += v;
        }
    sums[0] += sums[1] + sums[2] + sums[3];
    j->sums[item] = sums[0][0];
}

static void multiply_item(const void *args, int item)
{
    const job *j = args;
    wt__multiply(&j->product, (int64_t)item * ITEM_ROWS, ITEM_ROWS);
}

/// The fastest of REPEATS, in seconds; negative on an error.
static double best_of(wt_stream *stream, wt_cpu_function function, const job *j)
{
    double best = 1e30;
    for (int k = 0; k < REPEATS; k++) {
        const int64_t begin = wt_clock_now_ns(NULL);
        if (wt_stream_run(stream, function, j, sizeof *j, (int)(j->rows / ITEM_ROWS)) || wt_stream_synchronize(stream))
            return -1;
        const double seconds = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
        if (seconds < best) best = seconds;
    }
    return best;
}

static int bench_type(wt_stream *stream, wt_dtype dtype, const void *data, float *x, float *out, double *ceiling)
{
    const size_t row_bytes = wt_dtype_bytes(dtype, COLUMNS);
    const int64_t rows = (int64_t)(((size_t)MEGABYTES << 20) / row_bytes) / ITEM_ROWS * ITEM_ROWS;
    const wt__linear w = {.weight = {data, dtype, 2, {rows, COLUMNS}}};
    job j = {{&w, x, out, NULL, COLUMNS, rows, 1, false}, rows, out};
    const double gigabytes = (double)row_bytes * (double)rows * 1e-9;
    if (!*ceiling) {
        const double read = best_of(stream, sum_item, &j);
        if (read < 0) return 1;
        *ceiling = gigabytes / read;
        printf("%-16s %8.1f GB/s\n", "read", *ceiling);
    }
    const double one = best_of(stream, multiply_item, &j);
    j.product.n = VECTORS;
    const double many = best_of(stream, multiply_item, &j);
    if (one < 0 || many < 0) return 1;
    printf("%-6s x 1       %8.1f GB/s  %3.0f %% of read\n", wt_dtype_name(dtype), gigabytes / one,
           100 * gigabytes / one / *ceiling);
    printf("%-6s x %-7d %8.0f GFLOP/s\n", wt_dtype_name(dtype), VECTORS,
           2e-9 * (double)rows * COLUMNS * VECTORS / many);
    return 0;
}

int main(void)
{
    static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_BF16, WT_DTYPE_F16, WT_DTYPE_Q8_0};
    const size_t bytes = (size_t)MEGABYTES << 20;
    wt_device *device = NULL;
    wt_stream *stream = NULL;
    unsigned char *data = malloc(bytes);
    float *x = calloc((size_t)COLUMNS * VECTORS, sizeof *x), *out = calloc(bytes / COLUMNS * VECTORS, sizeof *out);
    int failed = !data || !x || !out || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &device) ||
                 wt_stream_create(device, NULL, &stream);
    for (size_t k = 0; !failed && k < bytes; k++) data[k] = (unsigned char)(k * 2654435761u >> 16) & 0x3f;
    double ceiling = 0;
    for (size_t k = 0; !failed && k < sizeof types / sizeof *types; k++)
        failed = bench_type(stream, types[k], data, x, out, &ceiling);
    if (failed) fprintf(stderr, "bench_llm: %s\n", wt_last_error());
    wt_stream_destroy(stream);
    wt_device_close(device);
    free(data), free(x), free(out);
    return failed;
}
