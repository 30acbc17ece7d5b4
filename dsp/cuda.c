#include "cuda_kernel.h"
#include "node_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1.0e6f)
enum { MAX_TEXT = 1 << 20 };

static const wt_param_info params[CUDA_PARAMS] = {
    {"p1", "", -MOST, MOST, 0, 0, "p[0] of the text"}, {"p2", "", -MOST, MOST, 0, 0, "p[1] of the text"},
    {"p3", "", -MOST, MOST, 0, 0, "p[2] of the text"}, {"p4", "", -MOST, MOST, 0, 0, "p[3] of the text"},
    {"p5", "", -MOST, MOST, 0, 0, "p[4] of the text"}, {"p6", "", -MOST, MOST, 0, 0, "p[5] of the text"},
    {"p7", "", -MOST, MOST, 0, 0, "p[6] of the text"}, {"p8", "", -MOST, MOST, 0, 0, "p[7] of the text"},
};

static const wt_option_info options[] = {
    {"text", NULL, "", "CUDA text that defines `process` (docs/user-kernels.md)"},
    {"file", NULL, "", "or a file that holds it"},
    {"state_floats", NULL, "0", "floats of state, zero at reset"},
};

static wt_status read_text(const char *path, char **text)
{
    FILE *file = fopen(path, "rb");
    if (!file) return wt_fail(WT_ERR_FILE, "file '%s' cannot be opened", path);
    *text = malloc(MAX_TEXT + 1);
    size_t length = *text ? fread(*text, 1, MAX_TEXT + 1, file) : 0;
    fclose(file);
    if (!*text) return wt_fail(WT_ERR_NO_MEMORY, "no memory for the text");
    if (length > MAX_TEXT) return wt_fail(WT_ERR_FORMAT, "file '%s' is longer than %d bytes", path, MAX_TEXT);
    (*text)[length] = 0;
    return WT_OK;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    const char *text = wt_setup_text(setup, "text"), *file = wt_setup_text(setup, "file");
    double state_floats;
    wt_status status = wt_setup_number(setup, "state_floats", 0, 1 << 24, &state_floats);
    if (status) return status;
    if (!*text == !*file)
        return wt_fail(WT_ERR_BAD_ARG, "has %s, want either text or file", *text ? "text and file" : "neither");
    status = *file ? read_text(file, &out->cuda_text) : WT_OK;
    if (!*file) out->cuda_text = strdup(text);
    if (!status && !out->cuda_text) status = wt_fail(WT_ERR_NO_MEMORY, "no memory for the text");
    if (!status) status = wt__plan_alloc(out, sizeof(cuda_plan));
    if (status) return status;
    ((cuda_plan *)out->plan)->state_floats = (int)state_floats;
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(cuda_coeffs);
    out->state_bytes = sizeof(float) * (size_t)state_floats;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    cuda_design(plan, v0, v1, coeffs);
}

const wt_node_type wt__node_cuda = {
    .name = "cuda",
    .summary = "your own CUDA text; needs a GPU",
    .params = params,
    .n_params = CUDA_PARAMS,
    .options = options,
    .n_options = 3,
    .flags = WT_NODE_CUDA_ONLY,
    .plan = plan,
    .design = design,
};
