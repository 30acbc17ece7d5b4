// Drawing tokens on a GPU: memory and launches.
#include "gpu_sample.h"

enum {
    THREADS = 1024,
    ALIGN = 256,
    CLUSTER_SMS = 16, ///< fewer processors have no room for every cluster
    OWN_BYTES = 48 << 10
}; ///< what a block has in shared memory besides, at most

wt_status wt__gpu_drawer_create(wt_device *device, wt__gpu_drawer *drawer)
{
    static const char *const names[] = {"llm_draw_1", "llm_draw_2", "llm_draw_4", "llm_draw_8"};
    const wt_device_info *info = wt_device_get_info(device);
    drawer->has_clusters = info->compute_major >= 9;
    drawer->most_bytes = info->shared_bytes - OWN_BYTES;
    wt_status status =
        wt_module_create(device, &(wt_module_config){.name = "kernels/llm/llm_sample.cu"}, &drawer->module);
    for (int k = 0; k < 4 && !status; k++) status = wt_module_get_kernel(drawer->module, names[k], &drawer->draw[k]);
    return status;
}

void wt__gpu_drawer_destroy(wt__gpu_drawer *drawer) { wt_module_destroy(drawer->module); }

static void *lay(uintptr_t base, size_t *at, size_t bytes)
{
    void *here = base ? (void *)(base + *at) : NULL;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return here;
}

size_t wt__gpu_draw_layout(int n_rows, int n_tallies, int vocab_size, uintptr_t base, wt_llm_sample_args *args,
                           size_t *n_zeroed)
{
    const size_t vocab = (size_t)vocab_size;
    size_t at = 0;
    args->arrived = lay(base, &at, sizeof *args->arrived);
    *n_zeroed = at;
    args->values = lay(base, &at, (size_t)n_rows * vocab * sizeof *args->values);
    args->tallies = lay(base, &at, (size_t)n_tallies * vocab * sizeof *args->tallies);
    args->vocab_size = vocab_size;
    return at;
}

/// Of 2 to `form` blocks a row.
static wt_launch shape_of(const wt__gpu_drawer *drawer, int vocab_size, int n_rows, int form)
{
    const size_t bytes = sizeof(unsigned) * (size_t)wt_llm_draw_share(vocab_size, 1 << form);
    return (wt_launch){.grid = {1 << form, n_rows},
                       .block = {THREADS},
                       .shared_bytes = bytes <= drawer->most_bytes ? bytes : 0,
                       .overlap = true};
}

/// As many blocks a row as there are processors for, but at least as many as have its tokens in shared memory, of
/// clusters for which there is room.
wt_status wt__gpu_draw(const wt__gpu_drawer *drawer, wt_stream *stream, const wt_llm_sample_args *args, int n_rows,
                       int n_sms)
{
    wt_llm_sample_args a = *args;
    wt_launch shape = shape_of(drawer, a.vocab_size, n_rows, 0);
    int form = 0;
    bool more = drawer->has_clusters && n_sms >= CLUSTER_SMS;
    while (more && 2 << form <= WT_LLM_DRAW_BLOCKS && (!shape.shared_bytes || n_rows * (2 << form) <= n_sms)) {
        const wt_launch larger = shape_of(drawer, a.vocab_size, n_rows, form + 1);
        wt_status status = wt_kernel_has_room(drawer->draw[form + 1], stream, &larger, &more);
        if (status) return status;
        if (!more) break;
        shape = larger;
        form++;
    }
    if (shape.shared_bytes) a.values = NULL;
    const wt_arg arg = {&a, sizeof a};
    return wt_kernel_launch(drawer->draw[form], stream, &shape, &arg, 1);
}
