// Products of matrices on a GPU: those of Qwen3-8B with 1 .. 64 rows of x against the speed at which a plain kernel
// reads, and large ones; the median of several replays. Other forms: bench_matmul_forms.c.
//
//   bench_matmul [skinny|large|sweep|wgmma|layer] [filter]     rows whose name contains `filter`
//
// `large` goes through the library, then through matmul_wgmma (on compute capability 9.0), then through matmul_tiles.
// `wgmma` gives the times of the large products for rows of W a block and stages of matmul_wgmma.
// `sweep` gives the times of the five products with eight rows of x for warps, tiles at a time and blocks an SM of
// matmul_few, launches overlapping.
// `layer` gives the times of the five products with eight rows of x in two parts and in one, as guesses are verified,
// of bf16 or the type that `filter` names, and what 36 layers and the head come to.
//
//   read     4651 GB/s
//   skinny   qkv 6144 x 4096 bf16 m=1      13.20 us   3813 GB/s   0.82   matmul_skinny
//   large    4096 x 4096 x 4096 bf16      190.1 us    723 TFLOP/s        library
// (The figures above only show the form. Of few rows with matmul_wgmma where it takes them, then without; launches
// overlap.)

#include "support/matmul_bench.h"

#include <stdio.h>
#include <string.h>

enum { SWEEP_ROWS = 8, LAYERS = 36, HEAD = N_SHAPES - 1 }; // of Qwen3-8B

static double skinny_us(bench *b, int f, int s, int m, const char **kernel)
{
    wt_matmul_args args = product(b, &formats[f], shapes[s].rows, shapes[s].columns, m, shapes[s].gated);
    args.overlap = true;
    const double bytes = formats[f].bytes * shapes[s].rows * shapes[s].columns;
    *kernel = wt_matmul_kernel(b->matmul, &args);
    return launch_us(b, &args, (size_t)(bytes / args.n_parts));
}

static void skinny_one(bench *b, int f, int s, int m)
{
    char name[96];
    snprintf(name, sizeof name, "%s %d x %d %s m=%d ", shapes[s].name, shapes[s].rows, shapes[s].columns,
             formats[f].name, m);
    if (!strstr(name, b->filter)) return;
    printf("skinny   %-36s", name);
    for (int without = 0; without < 2; without++) {
        const char *kernel;
        need(wt_matmul_create(
            &(wt_matmul_config){.device = b->device, .no_library = true, .no_wgmma = without, .wgmma_least = 1},
            &b->matmul));
        const double us = skinny_us(b, f, s, m, &kernel);
        const double gbps = formats[f].bytes * shapes[s].rows * shapes[s].columns / us / 1e3;
        printf(" %8.2f us   %5.0f GB/s   %.2f   %-14s", us, gbps, gbps / b->read_gbps, kernel);
        wt_matmul_destroy(b->matmul);
        if (strcmp(kernel, "matmul_wgmma") != 0) break;
    }
    printf("\n");
}

static void skinny(bench *b)
{
    for (int f = 0; f < N_FORMATS; f++)
        for (int s = 0; s < N_SHAPES; s++)
            for (int m = 1; m <= 64; m *= 2) skinny_one(b, f, s, m);
}

static void sweep_one(bench *b, int f, const wt_matmul_config *config)
{
    need(wt_matmul_create(config, &b->matmul));
    printf("sweep %s warps %d tiles %d blocks %d ", formats[f].name, config->skinny_warps, config->skinny_steps,
           config->skinny_blocks);
    for (int s = 0; s < N_SHAPES; s++) {
        const char *kernel;
        printf(" %s %.2f", shapes[s].name, skinny_us(b, f, s, SWEEP_ROWS, &kernel));
    }
    printf(" us\n");
    wt_matmul_destroy(b->matmul);
}

/// Of the stages there are as many as shared memory has room for.
static void sweep(bench *b)
{
    static const int forms[][3] = {{8, 4, 1}, {8, 4, 2}, {8, 2, 1}, {8, 2, 2}, {16, 1, 1}, {16, 2, 1}};
    for (int f = 0; f < N_FORMATS; f++)
        for (int k = 0; k < 6 && strstr(formats[f].name, b->filter); k++)
            sweep_one(b, f,
                      &(wt_matmul_config){.device = b->device,
                                          .no_wgmma = true,
                                          .skinny_warps = forms[k][0],
                                          .skinny_steps = forms[k][1],
                                          .skinny_blocks = forms[k][2]});
}

static void layer_one(bench *b, int f, bool two_parts)
{
    double all = 0;
    printf("layer    %s in %s ", formats[f].name, two_parts ? "two parts" : "one part");
    for (int s = 0; s < N_SHAPES; s++) {
        wt_matmul_args args = product(b, &formats[f], shapes[s].rows, shapes[s].columns, SWEEP_ROWS, shapes[s].gated);
        const double bytes = formats[f].bytes * shapes[s].rows * shapes[s].columns;
        args.overlap = true;
        args.two_parts = two_parts;
        const double us = launch_us(b, &args, (size_t)(bytes / args.n_parts));
        printf(" %s %.2f", shapes[s].name, us);
        all += s < HEAD ? LAYERS * us : us;
    }
    printf(" us, all %.0f us\n", all);
}

static void layer(bench *b)
{
    need(wt_matmul_create(&(wt_matmul_config){.device = b->device, .no_library = true, .no_wgmma = true}, &b->matmul));
    for (int f = 0; f < N_FORMATS; f++) {
        if (strcmp(formats[f].name, *b->filter ? b->filter : "bf16") != 0) continue;
        layer_one(b, f, true);
        layer_one(b, f, false);
    }
    wt_matmul_destroy(b->matmul);
}

static void large_one(bench *b, const char *type, int n, int m, wt_matmul_args *args)
{
    char name[96];
    snprintf(name, sizeof name, "%d x %d x %d %s ", m, n, n, type);
    const char *kernel = wt_matmul_kernel(b->matmul, args);
    if (!strstr(name, b->filter) || (!strncmp(kernel, "matmul_any", 10) && m > 512)) return; // minutes
    const double us = launch_us(b, args, wt_dtype_bytes(args->parts[0].weight.dtype, (int64_t)n * n));
    printf("large    %-36s %8.1f us   %6.1f TFLOP/s   %s\n", name, us, 2.0 * m * n * n / us / 1e6, kernel);
}

/// Both factors of the same type; those of 8 bits with a scale a tensor (fp8) or a row (int8).
static void squares(bench *b, bool tf32)
{
    const struct {
        const char *name;
        wt_dtype type, y;
        wt_scaling scaling;
    } types[] = {{"bf16", WT_DTYPE_BF16, WT_DTYPE_BF16, WT_SCALING_NONE},
                 {"f16", WT_DTYPE_F16, WT_DTYPE_F16, WT_SCALING_NONE},
                 {"fp8", WT_DTYPE_F8_E4M3, WT_DTYPE_BF16, WT_SCALING_TENSOR},
                 {"int8", WT_DTYPE_I8, WT_DTYPE_BF16, WT_SCALING_ROW},
                 {tf32 ? "tf32" : "f32", WT_DTYPE_F32, WT_DTYPE_F32, WT_SCALING_NONE}};
    for (int k = tf32 ? 4 : 0; k < 5; k++)
        for (int n = 2048; n <= 8192; n *= 2) {
            const format f = {types[k].name, {.dtype = types[k].type, .scaling = types[k].scaling}, 0};
            wt_matmul_args args = product(b, &f, n, n, n, false);
            args.x_dtype = types[k].type;
            args.y_dtype = types[k].y;
            if (types[k].scaling == WT_SCALING_ROW) args.x_scales = wt_buffer_address(b->scales);
            large_one(b, types[k].name, n, n, &args);
        }
}

static void large_with(bench *b, const wt_matmul_config *config)
{
    need(wt_matmul_create(config, &b->matmul));
    squares(b, config->tf32);
    const int rows[] = {32, 64, 128, 256, 512};
    for (int f = 0; f < 4 && !config->tf32; f++)
        for (int k = 0; k < 5; k++) { // bf16 activations, as a prompt's
            char name[32];
            wt_matmul_args args = product(b, &formats[f], 4096, 4096, rows[k], false);
            snprintf(name, sizeof name, "bf16 by %s", formats[f].name);
            large_one(b, name, 4096, rows[k], &args);
        }
    for (int k = 0; k < 5; k++) {
        const format f = {config->tf32 ? "tf32" : "f32", {.dtype = WT_DTYPE_F32}, 4};
        wt_matmul_args args = product(b, &f, 4096, 4096, rows[k], false);
        args.x_dtype = args.y_dtype = WT_DTYPE_F32;
        large_one(b, f.name, 4096, rows[k], &args);
    }
    wt_matmul_destroy(b->matmul);
}

static void large(bench *b)
{
    large_with(b, &(wt_matmul_config){.device = b->device});
    large_with(b, &(wt_matmul_config){.device = b->device, .no_library = true});
    large_with(b, &(wt_matmul_config){.device = b->device, .no_library = true, .no_wgmma = true});
    for (int own = 0; own < 2; own++)
        large_with(b, &(wt_matmul_config){.device = b->device, .no_library = own, .tf32 = true});
}

static void sweep_wgmma(bench *b)
{
    for (int columns = 128; columns <= 256; columns += 128)
        for (int stages = columns == 256 ? 3 : 5; stages <= (columns == 256 ? 4 : 6); stages++) {
            const wt_matmul_config config = {
                .device = b->device, .no_library = true, .wgmma_columns = columns, .wgmma_stages = stages};
            need(wt_matmul_create(&config, &b->matmul));
            printf("wgmma    %d columns, %d stages\n", columns, stages);
            squares(b, false);
            wt_matmul_destroy(b->matmul);
        }
}

int main(int argc, char **argv)
{
    static const mode modes[] = {
        {"skinny", skinny}, {"large", large}, {"sweep", sweep}, {"wgmma", sweep_wgmma}, {"layer", layer}};
    return run_modes(argc, argv, modes, argc > 1 ? 5 : 2);
}
