// Decoding on the CPU: a step reads every weight once, so its speed is the memory's. Matrices of 256 MB, larger than
// most caches, times one vector, and times 64, through the device's threads; the ceiling is the same bytes summed by
// the same threads in the same run, in memory's order or by four streams as products read, whichever was quicker. One
// row a case:
//   read, in order         17.0 GB/s    8.5 a processor second
//   read, four streams     20.0 GB/s   10.0 a processor second
//   BF16         x 1       18.0 GB/s    9.0 a processor second,  90 % of read
//   BF16         x 64       100 GFLOP/s
// "exact" are weights times vectors that stay floats; several with BF16 go by AMX where that is there, as a prompt's do.
// Shares are of processor time, which other work on the machine does not change much: bytes a second of a thread that
// runs.
#include "../models/llm/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/simd.h>

enum { COLUMNS = 4096, ITEM_ROWS = 512, REPEATS = 4, VECTORS = 64, MEGABYTES = 256 };

typedef struct job {
    wt__product product;
    int64_t rows;
    float *sums; ///< [items]
} job;

/// Of `bytes` at each of n_streams places, `apart` bytes from another.
WT_INLINE float sum_streams(const unsigned char *data, size_t bytes, const int n_streams, size_t apart)
{
    enum { SUMS = 8, AHEAD = 1024 };
    const int each = SUMS / n_streams;
    wt_f32x8 sums[SUMS] = {{0}}, v;
    for (size_t at = 0; at + (size_t)each * sizeof v <= bytes; at += (size_t)each * sizeof v)
        for (int k = 0; k < SUMS; k++) {
            const unsigned char *from = data + (size_t)(k / each) * apart + at + (size_t)(k % each) * sizeof v;
            if (n_streams > 1 && k % each == 0) __builtin_prefetch(from + AHEAD, 0, 2);
            memcpy(&v, from, sizeof v);
            sums[k] += v;
        }
    for (int k = 1; k < SUMS; k++) sums[0] += sums[k];
    return sums[0][0];
}

WT_CLONES static void sum_in_order(const void *args, int item)
{
    const job *j = args;
    const size_t bytes = wt__row_bytes(j->product.linear) * ITEM_ROWS;
    const unsigned char *data = j->product.linear->weight.data;
    j->sums[item] = sum_streams(data + bytes * (size_t)item, bytes, 1, 0);
}

WT_CLONES static void sum_four_streams(const void *args, int item)
{
    const job *j = args;
    const size_t bytes = wt__row_bytes(j->product.linear) * ITEM_ROWS;
    const unsigned char *data = j->product.linear->weight.data;
    j->sums[item] = sum_streams(data + bytes * (size_t)item, bytes / 4, 4, bytes / 4);
}

static void multiply_item(const void *args, int item)
{
    const job *j = args;
    wt__product p = j->product;
    p.rows += 4 * COLUMNS * (size_t)item;
    wt__multiply(&p, (int64_t)item * ITEM_ROWS, ITEM_ROWS);
}

static void lay_item(const void *args, int item) { wt__amx_lay(&((const job *)args)->product, item); }

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct times {
    double wall_s, processor_s; ///< the least of REPEATS; negative on an error
} times;

static times best_of(wt_stream *stream, wt_cpu_function function, const job *j)
{
    times best = {1e30, 1e30};
    for (int k = 0; k < REPEATS; k++) {
        const int64_t begin = wt_clock_now_ns(NULL);
        const double spent = processor_seconds();
        wt_status status = WT_OK;
        if (j->product.laid) status = wt_stream_run(stream, lay_item, j, sizeof *j, wt__amx_blocks(VECTORS));
        if (!status) status = wt_stream_run(stream, function, j, sizeof *j, (int)(j->rows / ITEM_ROWS));
        if (status || wt_stream_synchronize(stream)) return (times){-1, -1};
        best.wall_s = fmin(best.wall_s, (double)(wt_clock_now_ns(NULL) - begin) * 1e-9);
        best.processor_s = fmin(best.processor_s, processor_seconds() - spent);
    }
    return best;
}

typedef struct row {
    const char *name;
    wt_dtype dtype;
    bool scales, nibbles, exact;
} row;

static const row cases[] = {
    {"F32", WT_DTYPE_F32, false, false, false},
    {"BF16", WT_DTYPE_BF16, false, false, false},
    {"F16", WT_DTYPE_F16, false, false, false},
    {"BF16 exact", WT_DTYPE_BF16, false, false, true},
    {"Q8_0", WT_DTYPE_Q8_0, false, false, false},
    {"Q6_K", WT_DTYPE_Q6_K, false, false, false},
    {"Q4_K", WT_DTYPE_Q4_K, false, false, false},
    {"Q4_0", WT_DTYPE_Q4_0, false, false, false},
    {"fp8, 128x128", WT_DTYPE_F8_E4M3, true, false, false},
    {"int8, row", WT_DTYPE_I8, true, false, false},
    {"int4, 128", WT_DTYPE_U8, true, true, false},
    {"Q8_0 exact", WT_DTYPE_Q8_0, false, false, true},
};

typedef struct memory {
    unsigned char *weights;         ///< [MEGABYTES << 20]
    float *x, *out, *scales, *room; ///< room: [items][4][COLUMNS]
    void *laid;                     ///< room for the vectors, for AMX
} memory;

static int bench_type(wt_stream *stream, const row *c, const memory *m, double *ceiling)
{
    const wt__linear probe = {.weight = {.dtype = c->dtype, .rank = 2, .shape = {1, COLUMNS}}, .nibbles = c->nibbles};
    const size_t row_bytes = wt__row_bytes(&probe);
    const int64_t rows = (int64_t)(((size_t)MEGABYTES << 20) / row_bytes) / ITEM_ROWS * ITEM_ROWS;
    const bool row_scale = c->dtype == WT_DTYPE_I8;
    const wt__linear w = {.weight = {m->weights, c->dtype, 2, {rows, COLUMNS}},
                          .scales = c->scales ? m->scales : NULL,
                          .scale_rows = c->dtype == WT_DTYPE_F8_E4M3 ? 128 : 1,
                          .scale_columns = row_scale ? COLUMNS : 128,
                          .nibbles = c->nibbles};
    job j = {.product = {.linear = &w,
                         .x = m->x,
                         .out = m->out,
                         .rows = m->room,
                         .x_stride = COLUMNS,
                         .out_stride = rows,
                         .n = 1,
                         .exact = c->exact},
             .rows = rows,
             .sums = m->out};
    const double gigabytes = (double)row_bytes * (double)rows * 1e-9;
    if (!*ceiling) {
        static const wt_cpu_function sums[] = {sum_in_order, sum_four_streams};
        static const char *const names[] = {"read, in order", "read, four streams"};
        for (int k = 0; k < 2; k++) {
            const times read = best_of(stream, sums[k], &j);
            if (read.wall_s < 0) return 1;
            *ceiling = fmax(*ceiling, gigabytes / read.processor_s);
            printf("%-18s %8.1f GB/s  %5.1f a processor second\n", names[k], gigabytes / read.wall_s,
                   gigabytes / read.processor_s);
        }
    }
    const times one = best_of(stream, multiply_item, &j);
    j.product.n = VECTORS;
    j.product.laid = wt__suits_amx(&w) ? m->laid : NULL;
    j.rows = rows / 2 / ITEM_ROWS * ITEM_ROWS;
    const times many = best_of(stream, multiply_item, &j);
    if (one.wall_s < 0 || many.wall_s < 0) return 1;
    printf("%-12s x 1  %8.1f GB/s  %5.1f a processor second, %3.0f %% of read\n", c->name, gigabytes / one.wall_s,
           gigabytes / one.processor_s, 100 * gigabytes / one.processor_s / *ceiling);
    printf("%-12s x %-3d %7.0f GFLOP/s\n", c->name, VECTORS, 2e-9 * (double)j.rows * COLUMNS * VECTORS / many.wall_s);
    return 0;
}

/// Bytes of 0x3c .. 0x3f: of every type ordinary numbers, neither tiny nor large.
static int fill(memory *m)
{
    const size_t bytes = (size_t)MEGABYTES << 20, most_rows = bytes / (COLUMNS / 2);
    enum { ALIGN = 64 }; // as a session's
    *m = (memory){malloc(bytes), aligned_alloc(ALIGN, sizeof(float) * COLUMNS * VECTORS),
                  calloc(most_rows * VECTORS, sizeof(float)), malloc(sizeof(float) * most_rows * (COLUMNS / 128)),
                  aligned_alloc(ALIGN, sizeof(float) * 4 * COLUMNS * (most_rows / ITEM_ROWS)),
                  aligned_alloc(ALIGN, wt__amx_bytes(COLUMNS, VECTORS))};
    if (!m->laid || !m->weights || !m->x || !m->out || !m->scales || !m->room) return 1;
    for (size_t k = 0; k < bytes; k++) m->weights[k] = (unsigned char)((k * 2654435761u >> 16 & 3) | 0x3c);
    for (size_t k = 0; k < COLUMNS * VECTORS; k++) m->x[k] = (float)(k * 2654435761u >> 16 & 255) / 128 - 1;
    for (size_t k = 0; k < most_rows * (COLUMNS / 128); k++) m->scales[k] = 0.01f;
    return 0;
}

int main(int argc, char **argv)
{
    wt_device *device = NULL;
    wt_stream *stream = NULL;
    memory m = {0};
    int failed = fill(&m) || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &device) ||
                 wt_stream_create(device, NULL, &stream);
    double ceiling = 0;
    for (size_t k = 0; !failed && k < sizeof cases / sizeof *cases; k++)
        if (argc < 2 || strstr(cases[k].name, argv[1])) failed = bench_type(stream, &cases[k], &m, &ceiling);
    if (failed) fprintf(stderr, "bench_llm: %s\n", wt_last_error());
    wt_stream_destroy(stream);
    wt_device_close(device);
    free(m.weights), free(m.x), free(m.out), free(m.scales), free(m.room), free(m.laid);
    return failed;
}
