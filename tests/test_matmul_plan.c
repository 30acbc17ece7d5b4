// Which kernel takes which product on which chip: docs/matmul.md, Types, in words. Nothing is compiled or run, so chips
// that are not here are asked for too, by what the device tells of itself.
#include "../models/matmul_plan.h"
#include "support/testing.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <warptone/device.h>

enum { SIDE = 4096, CONSTANT = INT_MAX, TF32 = 1, N_CHIPS = 4 };

static const struct {
    int major, minor;
    size_t shared_bytes; // of a block; CUDA Programming Guide, Compute Capabilities
} chips[N_CHIPS] = {{8, 0, 166912}, {9, 0, 232448}, {10, 0, 232448}, {12, 0, 101376}};

typedef struct combination {
    const char *name;
    int w, x;
    int scale_rows, scale_columns; // of a scale, 0 = there are none
    int tf32;
    int library;              // rows of x from which cuBLASLt could take it, 0 = never
    const char *own[N_CHIPS]; // rows of x from which a kernel of ours takes it; NULL = as the chip before
} combination;

static const combination combinations[] = {
    {"bf16",
     WT_MM_BF16,
     WT_MM_BF16,
     0,
     0,
     0,
     17,
     {"1 skinny, 129 tiles", "1 few, 9 wgmma", "1 few, 17 skinny, 129 tiles", "1 skinny, 9 few, 17 skinny, 129 tiles"}},
    {"bf16 by row",
     WT_MM_BF16,
     WT_MM_BF16,
     1,
     CONSTANT,
     0,
     0,
     {"1 skinny, 129 tiles", "1 few, 9 wgmma", "1 few, 17 skinny, 129 tiles", "1 skinny, 9 few, 17 skinny, 129 tiles"}},
    {"bf16 by block",
     WT_MM_BF16,
     WT_MM_BF16,
     128,
     128,
     0,
     0,
     {"1 skinny, 129 tiles", "1 few, 17 skinny, 129 tiles", NULL, "1 skinny, 9 few, 17 skinny, 129 tiles"}},
    {"int8",
     WT_MM_I8,
     WT_MM_BF16,
     1,
     CONSTANT,
     0,
     64,
     {"1 skinny, 129 tiles", "1 few, 17 skinny, 129 tiles", NULL, "1 skinny, 129 tiles"}},
    {"int8 of groups of 32", WT_MM_I8, WT_MM_BF16, 1, 32, 0, 64, {"1 skinny, 129 tiles"}},
    {"fp8",
     WT_MM_E4M3,
     WT_MM_BF16,
     1,
     CONSTANT,
     0,
     64,
     {"1 thin, 17 skinny, 129 tiles", NULL, NULL, "1 thin, 9 skinny, 129 tiles"}},
    {"fp8 by block",
     WT_MM_E4M3,
     WT_MM_BF16,
     128,
     128,
     0,
     64,
     {"1 thin, 17 skinny, 129 tiles", NULL, NULL, "1 thin, 9 skinny, 129 tiles"}},
    {"fp8 of groups of 32", WT_MM_E4M3, WT_MM_BF16, 1, 32, 0, 64, {"1 skinny, 129 tiles"}},
    {"e5m2",
     WT_MM_E5M2,
     WT_MM_BF16,
     1,
     CONSTANT,
     0,
     64,
     {"1 thin, 17 skinny, 129 tiles", NULL, NULL, "1 thin, 9 skinny, 129 tiles"}},
    {"int4 of groups of 128", WT_MM_U4, WT_MM_BF16, 1, 128, 0, 33, {"1 skinny, 129 tiles"}},
    {"int4 of groups of 16", WT_MM_U4, WT_MM_BF16, 1, 16, 0, 33, {"1 skinny, 129 tiles"}},
    {"nvfp4", WT_MM_E2M1, WT_MM_BF16, 1, 16, 0, 64, {"1 skinny, 129 tiles"}},
    {"nvfp4 by nvfp4", WT_MM_E2M1, WT_MM_E2M1, 1, 16, 0, 0, {"1 any", NULL, NULL, "1 fp4"}},
    {"Q4_K", WT_MM_Q4_K, WT_MM_BF16, 0, 0, 0, 17, {"1 skinny"}},
    {"Q8_0", WT_MM_Q8_0, WT_MM_BF16, 0, 0, 0, 17, {"1 any"}},
    {"int8 by int8",
     WT_MM_I8,
     WT_MM_I8,
     1,
     CONSTANT,
     0,
     17,
     {"1 skinny, 129 tiles", "1 skinny, 129 wgmma", "1 skinny, 129 tiles"}},
    {"fp8 by fp8", WT_MM_E4M3, WT_MM_E4M3, 1, CONSTANT, 0, 17, {"1 any", "1 skinny, 129 wgmma", "1 skinny, 129 tiles"}},
    {"fp8 by fp8, blocks", WT_MM_E4M3, WT_MM_E4M3, 128, 128, 0, 0, {"1 any", "1 skinny, 129 wgmma", "1 skinny"}},
    {"fp8 by fp8, groups", WT_MM_E4M3, WT_MM_E4M3, 1, 32, 0, 0, {"1 any"}},
    {"f32",
     WT_MM_F32,
     WT_MM_F32,
     0,
     0,
     0,
     9,
     {"1 any, 17 slices, 65 tiles", NULL, NULL, "1 any, 17 slices, 129 tiles"}},
    {"f32 as tf32",
     WT_MM_F32,
     WT_MM_F32,
     0,
     0,
     TF32,
     9,
     {"1 any, 17 slices, 129 tiles", "1 any, 9 wgmma", "1 any, 17 slices, 129 tiles"}},
    {"f16 by bf16", WT_MM_F16, WT_MM_BF16, 0, 0, 0, 64, {"1 any"}},
    {"int8 by f32", WT_MM_I8, WT_MM_F32, 1, CONSTANT, 0, 0, {"1 any"}},
};

static long long bytes_of_row(int type)
{
    switch (type) {
    case WT_MM_F32:
        return 4ll * SIDE;
    case WT_MM_F16:
    case WT_MM_BF16:
        return 2ll * SIDE;
    case WT_MM_U4:
    case WT_MM_E2M1:
        return SIDE / 2;
    case WT_MM_Q4_K:
        return SIDE / 256 * 144;
    case WT_MM_Q8_0:
        return SIDE / 32 * 34;
    default:
        return SIDE;
    }
}

/// y of m rows, all of it aligned.
static wt_mm_args args_of(const combination *c, int m)
{
    const void *there = (const void *)(uintptr_t)4096;
    const bool scaled = c->scale_rows;
    wt_mm_args a = {.x = there,
                    .x_groups = c->x == WT_MM_E2M1 ? there : NULL,
                    .x_stride = SIDE,
                    .row_bytes = bytes_of_row(c->w),
                    .n_parts = 1,
                    .columns = SIDE,
                    .m = m,
                    .n_batches = 1,
                    .x_repeat = 1,
                    .scale_rows = scaled ? c->scale_rows : 1,
                    .scale_columns = scaled ? c->scale_columns : CONSTANT,
                    .w_type = c->w,
                    .x_type = c->x,
                    .y_type = c->x == WT_MM_F32 ? WT_MM_F32 : WT_MM_BF16,
                    .scale_type = WT_MM_F32};
    a.scale_shift = a.scale_columns == CONSTANT ? -1 : __builtin_ctz((unsigned)a.scale_columns);
    a.parts[0] = (wt_mm_part){.w = there,
                              .scales = scaled ? there : NULL,
                              .y = (void *)(uintptr_t)4096,
                              .rows = SIDE,
                              .y_stride = SIDE,
                              .w_next = SIDE * a.row_bytes};
    return a;
}

/// "1 few, 9 wgmma": from how many rows of x on which of our kernels takes it.
static void write_own(wt_device *device, const combination *c, char *text, size_t size)
{
    const wt__mm_site site = {.config = {.device = device, .tf32 = c->tf32}, .n_sms = 132};
    char last[64] = "";
    *text = 0;
    for (int m = 1; m <= 4096; m += m < 140 ? 1 : 500) {
        wt_mm_args a = args_of(c, m);
        wt__mm_plan p;
        wt__mm_choose(&site, &a, &p);
        const char *name = p.function + strlen("matmul_");
        if (!strcmp(name, last)) continue;
        snprintf(last, sizeof last, "%s", name);
        snprintf(text + strlen(text), size - strlen(text), "%s%d %s", *text ? ", " : "", m, name);
    }
}

static void kernels_of_ours_take_what_the_table_says(void **state)
{
    wt_device *device;
    (void)state;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    wt_device_info *told = (wt_device_info *)(uintptr_t)wt_device_get_info(device);
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const combination *c = &combinations[i];
        const char *want = NULL;
        for (int k = 0; k < N_CHIPS; k++) {
            char met[256];
            if (c->own[k]) want = c->own[k];
            told->compute_major = chips[k].major;
            told->compute_minor = chips[k].minor;
            told->shared_bytes = chips[k].shared_bytes;
            told->driver_version = 13000;
            write_own(device, c, met, sizeof met);
            if (strcmp(met, want))
                fail_msg("%s on %d.%d: %s, want %s", c->name, chips[k].major, chips[k].minor, met, want);
        }
    }
    wt_device_close(device);
}

static void the_library_takes_what_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const combination *c = &combinations[i];
        int least = 0;
        for (int m = 1; m <= 4096 && !least; m++) {
            const wt_mm_args a = args_of(c, m);
            if (wt__mm_library_takes(&a)) least = m;
        }
        if (least != c->library) fail_msg("%s: the library from %d rows on, want %d", c->name, least, c->library);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_ours_take_what_the_table_says),
        cmocka_unit_test(the_library_takes_what_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
