#include "matmul_bench.h"
#include "read_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_BYTES = 1 << 29, SEED_BYTES = 1 << 24, N_REPLAYS = 15, MAX_LAUNCHES = 256 };

const format formats[N_FORMATS] = {
    {"bf16", {.dtype = WT_DTYPE_BF16}, 2},
    {"fp8", {.dtype = WT_DTYPE_F8_E4M3, .scaling = WT_SCALING_BLOCK}, 1},
    {"int8", {.dtype = WT_DTYPE_I8, .scaling = WT_SCALING_ROW}, 1},
    {"int4",
     {.dtype = WT_DTYPE_U8,
      .packing = WT_PACKING_U4,
      .scaling = WT_SCALING_GROUP,
      .group = 128,
      .scale_dtype = WT_DTYPE_F16},
     0.5 + 3 / 128.0},
    {"int4g32",
     {.dtype = WT_DTYPE_U8,
      .packing = WT_PACKING_U4,
      .scaling = WT_SCALING_GROUP,
      .group = 32,
      .scale_dtype = WT_DTYPE_F16},
     0.5 + 2 / 32.0},
    {"nvfp4",
     {.dtype = WT_DTYPE_U8,
      .packing = WT_PACKING_E2M1,
      .scaling = WT_SCALING_GROUP,
      .group = 16,
      .scale_dtype = WT_DTYPE_F8_E4M3},
     0.5 + 1 / 16.0},
    {"q4_k", {.dtype = WT_DTYPE_Q4_K}, 144 / 256.0},
};

const shape shapes[N_SHAPES] = {{"qkv", 6144, 4096, false},
                                {"o", 4096, 4096, false},
                                {"gate+up", 24576, 4096, true},
                                {"down", 4096, 12288, false},
                                {"head", 151936, 4096, false}};

void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_matmul: %s\n", wt_last_error());
    exit(1);
}

int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/// Median time of a replay, after two to warm up.
static double replay_us(bench *b, wt_graph *graph)
{
    double us[N_REPLAYS];
    for (int k = -2; k < N_REPLAYS; k++) {
        need(wt_event_record(b->begin, b->stream));
        need(wt_graph_launch(graph, b->stream));
        need(wt_event_record(b->end, b->stream));
        need(wt_stream_synchronize(b->stream));
        if (k >= 0) need(wt_event_elapsed_us(b->begin, b->end, &us[k]));
    }
    qsort(us, N_REPLAYS, sizeof *us, by_value);
    return us[N_REPLAYS / 2];
}

// ---- reading

static void measure_reading(bench *b)
{
    need(bench_read_rate(b->device, b->stream, wt_device_get_info(b->device)->n_sms, wt_buffer_address(b->weights),
                         b->pool_bytes, &b->read_gbps));
    printf("read     %.0f GB/s\n", b->read_gbps);
}

// ---- products

wt_matmul_args product(const bench *b, const format *f, int rows, int columns, int m, bool gated)
{
    wt_matmul_args args = {.n_parts = gated ? 2 : 1,
                           .x = wt_buffer_address(b->x),
                           .x_dtype = WT_DTYPE_BF16,
                           .m = m,
                           .y_dtype = WT_DTYPE_BF16,
                           .gated = gated,
                           .activation = gated ? WT_ACTIVATION_SILU : WT_ACTIVATION_NONE};
    for (int k = 0; k < args.n_parts; k++) {
        args.parts[k] = (wt_matmul_part){.weight = f->matrix, .y = wt_buffer_address(b->y)};
        wt_matrix *w = &args.parts[k].weight;
        w->rows = rows / args.n_parts;
        w->columns = columns;
        w->data = wt_buffer_address(b->weights);
        if (w->scaling) w->scales = wt_buffer_address(b->scales);
        if (w->packing == WT_PACKING_U4) w->zeros = w->group == 128 ? wt_buffer_address(b->scales) : 0;
    }
    return args;
}

/// Time of one launch, of a graph of many over different weights; through `s` unless that is NULL.
double launch_us_of(bench *b, wt_matmul_args *args, size_t matrix_bytes, const straight *s)
{
    wt_graph *graph;
    const size_t stride = (matrix_bytes + 255) / 256 * 256, n_places = b->pool_bytes / (stride * (size_t)args->n_parts);
    const int n = n_places < 8 ? 8 : n_places > MAX_LAUNCHES ? MAX_LAUNCHES : (int)n_places;
    if (!s) need(wt_matmul_prepare(b->matmul, args));
    need(wt_graph_begin(b->stream, &graph));
    for (int k = 0; k < n; k++) {
        for (int p = 0; p < args->n_parts; p++)
            args->parts[p].weight.data =
                wt_buffer_address(b->weights) + stride * ((size_t)k % n_places * (size_t)args->n_parts + (size_t)p);
        need(s ? straight_enqueue(s, b->stream, args->parts[0].weight.data, args->x, args->parts[0].y)
               : wt_matmul_enqueue(b->matmul, b->stream, args));
    }
    need(wt_graph_end(graph));
    const double us = replay_us(b, graph) / n;
    wt_graph_destroy(graph);
    return us;
}

double launch_us(bench *b, wt_matmul_args *args, size_t matrix_bytes)
{
    return launch_us_of(b, args, matrix_bytes, NULL);
}

// ---- set up

/// Random bytes whose bit 6 is 0: finite in every type. Copied on, doubling.
static void fill(bench *b, wt_buffer *buffer, unsigned seed)
{
    const size_t bytes = wt_buffer_size_bytes(buffer);
    size_t have = bytes < SEED_BYTES ? bytes : SEED_BYTES;
    unsigned char *random = malloc(have);
    if (!random) exit(1);
    for (size_t k = 0; k < have; k++) {
        seed = seed * 1664525 + 1013904223;
        random[k] = seed >> 24 & 0xbf;
    }
    need(wt_stream_upload(b->stream, buffer, 0, random, have));
    need(wt_stream_synchronize(b->stream));
    free(random);
    for (; have < bytes; have *= 2)
        need(wt_stream_copy(b->stream, buffer, have, buffer, 0, have < bytes - have ? have : bytes - have));
}

static void open_all(bench *b)
{
    b->pool_bytes = (size_t)3 * POOL_BYTES; // the head in bf16 is 1.2 GB
    need(wt_stream_create(b->device, NULL, &b->stream));
    need(wt_event_create(b->device, &b->begin));
    need(wt_event_create(b->device, &b->end));
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, b->pool_bytes, &b->weights));
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, 1 << 27, &b->scales));
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, 1 << 28, &b->x));
    need(wt_buffer_create(b->device, WT_MEMORY_DEVICE, 1 << 28, &b->y));
    fill(b, b->weights, 1);
    fill(b, b->scales, 2);
    fill(b, b->x, 3);
    need(wt_stream_synchronize(b->stream));
}

int run_modes(int argc, char **argv, const mode *modes, int n_modes)
{
    bench b = {.filter = argc > 2 ? argv[2] : ""};
    const char *what = argc > 1 ? argv[1] : "";
    if (!wt_device_count() || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &b.device)) {
        printf("skipped: %s\n", wt_last_error());
        return 0;
    }
    open_all(&b);
    measure_reading(&b);
    for (int k = 0; k < n_modes; k++)
        if (!*what || !strcmp(what, modes[k].name)) modes[k].run(&b);
    wt_buffer_destroy(b.weights);
    wt_buffer_destroy(b.scales);
    wt_buffer_destroy(b.x);
    wt_buffer_destroy(b.y);
    wt_event_destroy(b.begin);
    wt_event_destroy(b.end);
    wt_stream_destroy(b.stream);
    wt_device_close(b.device);
    return 0;
}
