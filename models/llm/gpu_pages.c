// Pages of a GPU's cache between steps.
#include "gpu.h"

static wt_status launch(wt_llm_session *s, int kernel, wt_launch shape, const void *args, size_t bytes)
{
    return wt_kernel_launch(s->gpu->kernels[kernel], s->stream, &shape, &(wt_arg){args, bytes}, 1);
}

wt_status wt__gpu_copy_page(wt_llm_session *s, int from, int to)
{
    const long long n = (long long)(wt__cache_bytes(s, 1) / 16);
    const wt_llm_copy_args a = {.keys = s->keys, .values = s->values, .from = n * from, .to = n * to, .n = (int)n};
    return launch(s, WT__LLM_COPY_PAGE, (wt_launch){.grid = {(int)((n + 255) / 256), 2}, .block = {256}}, &a, sizeof a);
}

wt_status wt__gpu_shift(wt_llm_session *s, int sequence, int first, int end, int n_drop)
{
    const wt__gpu *g = s->gpu;
    const wt_model_config *c = &s->llm->config;
    const int half = c->rope.n_dims / 2;
    const wt_llm_shift_args a = {
        .cache = {.keys = s->keys,
                  .values = s->values,
                  .pages = (const int *)(g->io_address + g->pages_at),
                  .page_stride = (long long)c->n_layers * c->n_kv_heads * WT__LLM_PAGE * c->d_head,
                  .n_pages = s->n_pages},
        .frequencies = (const float *)(g->io_address + g->frequencies_at) + (int64_t)sequence * half,
        .sequence = sequence,
        .first = first,
        .end = end,
        .n_drop = n_drop,
        .n_dims = c->rope.n_dims,
        .interleaved = c->rope.interleaved};
    wt_status status = wt__gpu_push_tables(s);
    if (!status)
        status = launch(s, WT__LLM_SHIFT, (wt_launch){.grid = {c->n_layers * c->n_kv_heads, 2}, .block = {256}}, &a,
                        sizeof a);
    const wt_status ran = wt_stream_synchronize(s->stream);
    return status ? status : ran;
}
