#include "live_far.h"

int wt__live_far_run(live_far *far, const float *const *in, float *const *wet, int out_channels, int n_frames)
{
    (void)far, (void)in, (void)wet, (void)out_channels, (void)n_frames;
    return WT_LIVE_MISS_LOST;
}

wt_live_path wt__live_far_path(const live_far *far)
{
    (void)far;
    return WT_LIVE_CPU;
}

wt_status wt_live_move(wt_live *live, bool to_cpu)
{
    (void)live, (void)to_cpu;
    return wt_fail(WT_ERR_STATE, "live: the chain has no device to be moved from or to");
}
