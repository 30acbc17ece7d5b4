// Products of many rows of x on a GPU that bench_matmul.c has not: with what follows them, of experts, and cuBLASLt
// through us against the library called straight.
//
//   bench_matmul_forms [ends|rows|straight] [filter]     rows whose name contains `filter`
//
// `ends` has products with scales, biases, activations and gates, through the library and without it.
// `rows` has bf16 products of 24 to 512 rows of x, plain, gated and of experts, through the library, without it, and
// through matmul_wgmma with 128 and 256 rows of W a block.
// `straight` compares what goes through us, to cuBLASLt but for 64 rows of 16 bits, with the library called straight,
// in turn; the median of five.

#include "support/matmul_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what follows a product: the library's sums finished by a kernel of ours against one kernel that does all

static void ends_one(bench *b, const char *what, int rows, int columns, int m, wt_matmul_args *args)
{
    char name[96];
    const char *kernel = wt_matmul_kernel(b->matmul, args);
    snprintf(name, sizeof name, "%d x %d x %d %s ", m, rows, columns, what);
    if (!strstr(name, b->filter)) return;
    const double us = launch_us(
        b, args, wt_dtype_bytes(args->parts[0].weight.dtype, (int64_t)rows * columns) / (size_t)args->n_parts);
    printf("ends     %-40s %8.1f us   %6.1f TFLOP/s   %s\n", name, us, 2.0 * m * rows * columns / us / 1e6, kernel);
}

/// Of Qwen3-8B's sides: gated in bf16, biased with an activation, FP8 with scales of rows and of blocks, I8.
static void ends(bench *b)
{
    static const struct {
        const char *name;
        wt_dtype type;
        wt_scaling scaling;
    } eight[] = {{"fp8, scales of rows", WT_DTYPE_F8_E4M3, WT_SCALING_ROW},
                 {"fp8, scales of blocks", WT_DTYPE_F8_E4M3, WT_SCALING_BLOCK},
                 {"int8, scales of rows", WT_DTYPE_I8, WT_SCALING_ROW}};
    for (int m = 256; m <= 4096; m *= 4) {
        wt_matmul_args args = product(b, &formats[FORMAT_BF16], 24576, 4096, m, true);
        ends_one(b, "bf16 gated", 24576, 4096, m, &args);
        args = product(b, &formats[FORMAT_BF16], 4096, 4096, m, false);
        args.activation = WT_ACTIVATION_GELU;
        args.parts[0].bias = wt_buffer_address(b->scales);
        ends_one(b, "bf16, bias, gelu", 4096, 4096, m, &args);
        for (int k = 0; k < 3; k++)
            for (int gated = 0; gated < 2; gated++) {
                const format f = {"", {.dtype = eight[k].type, .scaling = eight[k].scaling}, 1};
                const int rows = gated ? 24576 : 4096;
                char name[64];
                snprintf(name, sizeof name, "%s%s", eight[k].name, gated ? ", gated" : "");
                args = product(b, &f, rows, 4096, m, gated);
                args.x_dtype = eight[k].type;
                args.x_scales = wt_buffer_address(b->scales);
                ends_one(b, name, rows, 4096, m, &args);
            }
    }
}

static void sweep_ends(bench *b)
{
    for (int own = 0; own < 2; own++) {
        need(wt_matmul_create(&(wt_matmul_config){.device = b->device, .no_library = own}, &b->matmul));
        ends(b);
        wt_matmul_destroy(b->matmul);
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
    char name[96];
    int32_t offsets[129];
    wt_matmul_args args = product(b, &formats[FORMAT_BF16], e->rows, e->columns, each * e->n, e->gated);
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
    static const int rows[] = {24, 64, 96, 128, 256, 512};
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < 6; k++) {
            char name[96];
            wt_matmul_args args =
                product(b, &formats[FORMAT_BF16], shapes[s].rows, shapes[s].columns, rows[k], shapes[s].gated);
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
    static const int sides[][3] = {{2048, 2048, 2048},  {4096, 4096, 4096}, {512, 6144, 4096},
                                   {2048, 4096, 12288}, {64, 4096, 4096},   {64, 4096, 12288}};
    need(wt_matmul_create(&(wt_matmul_config){.device = b->device}, &b->matmul));
    for (int type = 0; type < 5; type++)
        for (int k = 0; k < 6; k++) straight_one(b, type, sides[k][0], sides[k][1], sides[k][2]);
    wt_matmul_destroy(b->matmul);
}

int main(int argc, char **argv)
{
    static const mode modes[] = {{"ends", sweep_ends}, {"rows", sweep_rows}, {"straight", compare_straight}};
    return run_modes(argc, argv, modes, 3);
}
