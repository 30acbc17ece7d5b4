#include "align_kernel.h"
#include "node_types.h"

static const wt_option_info options[] = {
    {"frames", NULL, NULL, "delay"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double frames;
    wt_status status = wt_setup_number(setup, "frames", 1, 1 << 24, &frames);
    if (status) return status;
    if ((status = wt__plan_alloc(out, sizeof(align_plan)))) return status;
    align_plan *p = out->plan;
    p->delay_frames = (int)frames;
    p->ring_frames = p->delay_frames + WT_CHAIN_BLOCK;
    out->out_channels = wt_setup_channels(setup, 0);
    out->state_bytes = sizeof(align_state) + sizeof(float) * (size_t)(p->ring_frames * out->out_channels);
    out->latency_frames = p->delay_frames;
    out->tail_frames = p->delay_frames;
    return WT_OK;
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)coeffs;
    const align_plan *p = plan;
    int write = (int)(io->position % p->ring_frames);
    for (int c = 0; c < io->out_channels; c++) {
        float *ring = ((align_state *)state)->ring + (size_t)c * (size_t)p->ring_frames;
        int at = write, read = write - p->delay_frames + (write < p->delay_frames ? p->ring_frames : 0);
        for (int n = 0; n < io->n_frames; n++) {
            ring[at] = io->in[0][c * io->stride + n];
            io->out[c * io->stride + n] = ring[read];
            if (++at == p->ring_frames) at = 0;
            if (++read == p->ring_frames) read = 0;
        }
    }
}

const wt_node_type wt__node_align = {
    .name = "align",
    .summary = "fixed delay that evens out parallel paths",
    .options = options,
    .n_options = 1,
    .flags = WT_NODE_INTERNAL,
    .plan = plan,
    .process = process,
};
