// Products of matrices on a GPU: those of Qwen3-8B with 1 .. 16 rows of x against the speed at which a plain kernel
// reads, and large ones. Weights are random and rotate over 512 MB or more, so that no cache holds them; launches are
// replayed from a graph, as a decoder does; the median of several replays.
//
//   bench_matmul [skinny|large|sweep|wgmma|rows|straight] [filter]     rows whose name contains `filter`
//
// `large` goes through the library, then through matmul_wgmma (on compute capability 9.0), then through matmul_tiles.
// `straight` compares what goes through us and cuBLASLt with the library called straight, in turn; the median of five.
// `rows` has bf16 products of 24 to 512 rows of x, plain, gated and of experts, through the library, without it, and
// through matmul_wgmma with 128 and 256 rows of W a block.
// `wgmma` gives the times of the large products for rows of W a block, blocks a cluster and stages of matmul_wgmma.
// `sweep` gives the times of the five products with one row of x for warps, steps and stages of
// matmul_skinny.
//
//   read     4651 GB/s
//   skinny   qkv 6144 x 4096 bf16 m=1      13.20 us   3813 GB/s   0.82   matmul_skinny
//   large    4096 x 4096 x 4096 bf16      190.1 us    723 TFLOP/s        library
// (The figures above only show the form.)

#include "support/straight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/graph.h>
#include <warptone/matmul.h>

enum { POOL_BYTES = 1 << 29, SEED_BYTES = 1 << 24, N_REPLAYS = 15, MAX_LAUNCHES = 256 };

typedef struct bench {
    wt_device *device;
    wt_stream *stream;
    wt_matmul *matmul;
    wt_buffer *weights, *scales, *x, *y;
    size_t pool_bytes;
    wt_event *begin, *end;
    const char *filter;
    double read_gbps;
} bench;

/// How weights are kept.
typedef struct format {
    const char *name;
    wt_matrix matrix; ///< type, packing and scaling
    double bytes;     ///< an element, scales included
} format;

static const format formats[] = {
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
enum { N_FORMATS = sizeof formats / sizeof *formats };

static void need(wt_status status)
{
    if (!status) return;
    fprintf(stderr, "bench_matmul: %s\n", wt_last_error());
    exit(1);
}

static int by_value(const void *a, const void *b)
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

static const char read_text[] =
    "extern \"C\" __global__ void __launch_bounds__(1024) read_all(const uint4 *p, unsigned long long n, unsigned "
    "*out)\n"
    "{\n"
    "    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n"
    "    unsigned sum = 0;\n"
    "    for (unsigned long long k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += 4 * step) {\n"
    "        uint4 v[4];\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < 4; i++) v[i] = k + i * step < n ? p[k + i * step] : uint4{0, 0, 0, 0};\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < 4; i++) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;\n"
    "    }\n"
    "    if (sum == 0x12345678) *out = sum;\n"
    "}\n";

static void measure_reading(bench *b)
{
    wt_module *module;
    wt_kernel *kernel;
    wt_graph *graph;
    need(wt_module_create(b->device, &(wt_module_config){.name = "read.cu", .source = read_text}, &module));
    need(wt_module_get_kernel(module, "read_all", &kernel));
    uintptr_t p = wt_buffer_address(b->weights), out = wt_buffer_address(b->y);
    unsigned long long n = b->pool_bytes / 16;
    const wt_launch launch = {.grid = {2 * wt_device_get_info(b->device)->n_sms}, .block = {1024}};
    need(wt_graph_begin(b->stream, &graph));
    for (int k = 0; k < 4; k++)
        need(wt_kernel_launch(kernel, b->stream, &launch, (wt_arg[]){WT_ARG(p), WT_ARG(n), WT_ARG(out)}, 3));
    need(wt_graph_end(graph));
    b->read_gbps = 4 * (double)b->pool_bytes / replay_us(b, graph) / 1e3;
    printf("read     %.0f GB/s\n", b->read_gbps);
    wt_graph_destroy(graph);
    wt_module_destroy(module);
}

// ---- products

static wt_matmul_args product(const bench *b, const format *f, int rows, int columns, int m, bool gated)
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
static double launch_us_of(bench *b, wt_matmul_args *args, size_t matrix_bytes, const straight *s)
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

static double launch_us(bench *b, wt_matmul_args *args, size_t matrix_bytes)
{
    return launch_us_of(b, args, matrix_bytes, NULL);
}

static const struct {
    const char *name;
    int rows, columns;
    bool gated;
} shapes[] = {{"qkv", 6144, 4096, false},
              {"o", 4096, 4096, false},
              {"gate+up", 24576, 4096, true},
              {"down", 4096, 12288, false},
              {"head", 151936, 4096, false}};
enum { N_SHAPES = 5 };

static double skinny_us(bench *b, int f, int s, int m, const char **kernel)
{
    wt_matmul_args args = product(b, &formats[f], shapes[s].rows, shapes[s].columns, m, shapes[s].gated);
    const double bytes = formats[f].bytes * shapes[s].rows * shapes[s].columns;
    *kernel = wt_matmul_kernel(b->matmul, &args);
    return launch_us(b, &args, (size_t)(bytes / args.n_parts));
}

static void skinny(bench *b)
{
    for (int f = 0; f < N_FORMATS; f++)
        for (int s = 0; s < N_SHAPES; s++)
            for (int m = 1; m <= 16; m *= 2) {
                char name[96];
                const char *kernel;
                snprintf(name, sizeof name, "%s %d x %d %s m=%d ", shapes[s].name, shapes[s].rows, shapes[s].columns,
                         formats[f].name, m);
                if (!strstr(name, b->filter)) continue;
                const double us = skinny_us(b, f, s, m, &kernel);
                const double gbps = formats[f].bytes * shapes[s].rows * shapes[s].columns / us / 1e3;
                printf("skinny   %-36s %8.2f us   %5.0f GB/s   %.2f   %s\n", name, us, gbps, gbps / b->read_gbps,
                       kernel);
            }
}

static void sweep_one(bench *b, int f, int warps, int steps, int stages)
{
    need(wt_matmul_create(
        &(wt_matmul_config){.device = b->device, .skinny_warps = warps, .skinny_steps = steps, .skinny_stages = stages},
        &b->matmul));
    printf("sweep %s warps %d steps %d stages %d  ", formats[f].name, warps, steps, stages);
    for (int s = 0; s < N_SHAPES; s++) {
        const char *kernel;
        printf(" %s %.2f", shapes[s].name, skinny_us(b, f, s, 1, &kernel));
    }
    printf(" us\n");
    wt_matmul_destroy(b->matmul);
}

/// Of stages that shared memory (227 KB) holds also for a gated product.
static void sweep(bench *b)
{
    for (int f = 0; f < N_FORMATS; f++)
        for (int steps = 2; steps <= 8 && strstr(formats[f].name, b->filter); steps *= 2)
            for (int stages = 2; stages <= 4; stages++)
                for (int warps = 4; warps <= 16; warps *= 2)
                    if (warps * steps * stages * 2 * 1088 <= 227 * 1024) sweep_one(b, f, warps, steps, stages);
}

static void large_one(bench *b, const char *type, int n, int m, wt_matmul_args *args)
{
    char name[96];
    snprintf(name, sizeof name, "%d x %d x %d %s ", m, n, n, type);
    const char *kernel = wt_matmul_kernel(b->matmul, args);
    if (!strstr(name, b->filter) || !strncmp(kernel, "matmul_any", 10)) return; // minutes
    const double us = launch_us(b, args, wt_dtype_bytes(args->parts[0].weight.dtype, (int64_t)n * n));
    printf("large    %-36s %8.1f us   %6.1f TFLOP/s   %s\n", name, us, 2.0 * m * n * n / us / 1e6, kernel);
}

/// Both factors of the same type; those of 8 bits with a scale a tensor (fp8) or a row (int8).
static void squares(bench *b)
{
    static const struct {
        const char *name;
        wt_dtype type, y;
        wt_scaling scaling;
    } types[] = {{"bf16", WT_DTYPE_BF16, WT_DTYPE_BF16, WT_SCALING_NONE},
                 {"f16", WT_DTYPE_F16, WT_DTYPE_F16, WT_SCALING_NONE},
                 {"fp8", WT_DTYPE_F8_E4M3, WT_DTYPE_BF16, WT_SCALING_TENSOR},
                 {"int8", WT_DTYPE_I8, WT_DTYPE_BF16, WT_SCALING_ROW},
                 {"f32", WT_DTYPE_F32, WT_DTYPE_F32, WT_SCALING_NONE}};
    for (int k = 0; k < 5; k++)
        for (int n = 2048; n <= 8192; n *= 2) {
            const format f = {types[k].name, {.dtype = types[k].type, .scaling = types[k].scaling}, 0};
            wt_matmul_args args = product(b, &f, n, n, n, false);
            args.x_dtype = types[k].type;
            args.y_dtype = types[k].y;
            if (types[k].scaling == WT_SCALING_ROW) args.x_scales = wt_buffer_address(b->scales);
            large_one(b, types[k].name, n, n, &args);
        }
}

static void large(bench *b)
{
    squares(b);
    const int rows[] = {32, 64, 128, 256, 512};
    for (int f = 0; f < 4; f++)
        for (int k = 0; k < 5; k++) { // bf16 activations, as a prompt's
            char name[32];
            wt_matmul_args args = product(b, &formats[f], 4096, 4096, rows[k], false);
            snprintf(name, sizeof name, "bf16 by %s", formats[f].name);
            large_one(b, name, 4096, rows[k], &args);
        }
}

// ---- from few rows of x to many

typedef struct expert_shape {
    int n, rows, columns;
    bool gated;
} expert_shape;

static double rows_us(bench *b, const wt_matmul_config *config, wt_matmul_args *args, const char **kernel)
{
    const wt_matrix *w = &args->parts[0].weight;
    const int n_stack = args->n_experts ? args->n_experts : 1;
    need(wt_matmul_create(config, &b->matmul));
    *kernel = wt_matmul_kernel(b->matmul, args);
    const double us = launch_us(b, args, wt_dtype_bytes(w->dtype, (int64_t)n_stack * w->rows * w->columns));
    wt_matmul_destroy(b->matmul);
    return us;
}

/// One product through the library, the kernel that we choose without it, and matmul_wgmma with both widths.
static void rows_one(bench *b, const char *name, wt_matmul_args *args)
{
    const wt_matmul_config configs[] = {{.device = b->device},
                                        {.device = b->device, .no_library = true, .no_wgmma = true},
                                        {.device = b->device, .no_library = true, .wgmma_columns = 128},
                                        {.device = b->device, .no_library = true, .wgmma_columns = 256}};
    if (!strstr(name, b->filter)) return;
    printf("rows     %-32s", name);
    for (int k = 0; k < 4; k++) {
        const char *kernel;
        const double us = rows_us(b, &configs[k], args, &kernel);
        printf(" %8.1f us %-13s", us, kernel);
    }
    printf("\n");
}

/// Equal numbers of rows an expert, whose offsets go to `b->scales`.
static void expert_rows(bench *b, const expert_shape *e, int each)
{
    static const format bf16 = {"bf16", {.dtype = WT_DTYPE_BF16}, 2};
    char name[96];
    int32_t offsets[129];
    wt_matmul_args args = product(b, &bf16, e->rows, e->columns, each * e->n, e->gated);
    for (int k = 0; k <= e->n; k++) offsets[k] = k * each;
    need(wt_stream_upload(b->stream, b->scales, 0, offsets, sizeof *offsets * (size_t)(e->n + 1)));
    need(wt_stream_synchronize(b->stream));
    args.offsets = wt_buffer_address(b->scales);
    args.n_experts = e->n;
    snprintf(name, sizeof name, "%d experts %d x %d m=%d each ", e->n, e->rows, e->columns, each);
    rows_one(b, name, &args);
}

/// bf16: the products of Qwen3-8B, and experts as of Qwen3-30B-A3B and Mixtral 8x7B.
static void sweep_rows(bench *b)
{
    static const expert_shape experts[] = {
        {128, 1536, 2048, true}, {128, 2048, 768, false}, {8, 28672, 4096, true}, {8, 4096, 14336, false}};
    static const int rows[] = {24, 48, 96, 128, 256, 512};
    static const format bf16 = {"bf16", {.dtype = WT_DTYPE_BF16}, 2};
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < 6; k++) {
            char name[96];
            wt_matmul_args args = product(b, &bf16, shapes[s].rows, shapes[s].columns, rows[k], shapes[s].gated);
            snprintf(name, sizeof name, "%s %d x %d m=%d ", shapes[s].name, shapes[s].rows, shapes[s].columns, rows[k]);
            rows_one(b, name, &args);
        }
    for (int e = 0; e < 4; e++)
        for (int k = 0; k < 6; k++)
            if (rows[k] * experts[e].n <= 1 << 15) expert_rows(b, &experts[e], rows[k]);
}

// ---- against the library called straight

static const struct {
    const char *name;
    wt_dtype w, y;
    int cuda_w, cuda_y;
} straight_types[] = {{"bf16", WT_DTYPE_BF16, WT_DTYPE_BF16, CUDA_R_16BF, CUDA_R_16BF},
                      {"f16", WT_DTYPE_F16, WT_DTYPE_F16, CUDA_R_16F, CUDA_R_16F},
                      {"fp8", WT_DTYPE_F8_E4M3, WT_DTYPE_BF16, CUDA_R_8F_E4M3, CUDA_R_16BF},
                      {"int8", WT_DTYPE_I8, WT_DTYPE_I32, CUDA_R_8I, CUDA_R_32I},
                      {"f32", WT_DTYPE_F32, WT_DTYPE_F32, CUDA_R_32F, CUDA_R_32F}};

static void straight_one(bench *b, int type, int m, int rows, int columns)
{
    enum { N_TURNS = 5 };
    char name[96];
    snprintf(name, sizeof name, "%d x %d x %d %s ", m, rows, columns, straight_types[type].name);
    if (!strstr(name, b->filter)) return;
    const bool scaled = straight_types[type].w == WT_DTYPE_F8_E4M3;
    const format f = {
        "", {.dtype = straight_types[type].w, .scaling = scaled ? WT_SCALING_TENSOR : WT_SCALING_NONE}, 0};
    wt_matmul_args args = product(b, &f, rows, columns, m, false);
    args.x_dtype = straight_types[type].w;
    args.y_dtype = straight_types[type].y;
    const size_t bytes = wt_dtype_bytes(args.x_dtype, (int64_t)rows * columns);
    double ours[N_TURNS], theirs[N_TURNS];
    straight s;
    need(straight_create(b->device, straight_types[type].cuda_w, straight_types[type].cuda_y, rows, columns, m,
                         scaled ? args.parts[0].weight.scales : 0, &s));
    for (int k = 0; k < N_TURNS; k++) {
        ours[k] = launch_us(b, &args, bytes);
        theirs[k] = launch_us_of(b, &args, bytes, &s);
    }
    straight_destroy(&s);
    qsort(ours, N_TURNS, sizeof *ours, by_value);
    qsort(theirs, N_TURNS, sizeof *theirs, by_value);
    const double our = ours[N_TURNS / 2], their = theirs[N_TURNS / 2];
    printf("straight %-30s through us %8.1f us, straight %8.1f us, ratio %.3f   %s\n", name, our, their, our / their,
           wt_matmul_kernel(b->matmul, &args));
}

static void compare_straight(bench *b)
{
    static const int sides[][3] = {{2048, 2048, 2048}, {4096, 4096, 4096}, {512, 6144, 4096}, {2048, 4096, 12288}};
    need(wt_matmul_create(&(wt_matmul_config){.device = b->device}, &b->matmul));
    for (int type = 0; type < 5; type++)
        for (int k = 0; k < 4; k++) straight_one(b, type, sides[k][0], sides[k][1], sides[k][2]);
    wt_matmul_destroy(b->matmul);
}

static void sweep_wgmma(bench *b)
{
    for (int columns = 128; columns <= 256; columns += 128)
        for (int cluster = 1; cluster <= 2; cluster++)
            for (int stages = columns == 256 ? 3 : 5; stages <= (columns == 256 ? 4 : 6); stages++) {
                const wt_matmul_config config = {.device = b->device,
                                                 .no_library = true,
                                                 .wgmma_columns = columns,
                                                 .wgmma_cluster = cluster,
                                                 .wgmma_stages = stages};
                need(wt_matmul_create(&config, &b->matmul));
                printf("wgmma    %d columns, blocks in %ds, %d stages\n", columns, cluster, stages);
                squares(b);
                wt_matmul_destroy(b->matmul);
            }
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

int main(int argc, char **argv)
{
    bench b = {.filter = argc > 2 ? argv[2] : ""};
    const char *what = argc > 1 ? argv[1] : "";
    if (!wt_device_count() || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &b.device)) {
        printf("skipped: %s\n", wt_last_error());
        return 0;
    }
    open_all(&b);
    measure_reading(&b);
    static const struct {
        const char *name;
        void (*run)(bench *b);
    } modes[] = {{"sweep", sweep}, {"wgmma", sweep_wgmma}, {"rows", sweep_rows}, {"straight", compare_straight}};
    bool plain = true;
    for (int k = 0; k < 4; k++)
        if (!strcmp(what, modes[k].name)) {
            modes[k].run(&b);
            plain = false;
        }
    for (int own = 0; own < 3 && plain; own++) { // with the library, then without, then also without wgmma
        need(wt_matmul_create(&(wt_matmul_config){.device = b.device, .no_library = own > 0, .no_wgmma = own > 1},
                              &b.matmul));
        if (own == 1 && strcmp(what, "large")) skinny(&b);
        if (strcmp(what, "skinny")) large(&b);
        wt_matmul_destroy(b.matmul);
    }
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
