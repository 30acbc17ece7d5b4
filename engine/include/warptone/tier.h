/// Tiers: how strong a promise a partition, or a task in it, has.
#ifndef WARPTONE_TIER_H
#define WARPTONE_TIER_H

typedef enum wt_tier {
    WT_TIER_BEST_EFFORT, ///< reserves nothing but memory; runs when nothing else is ready
    WT_TIER_BURSTABLE,   ///< reserves memory, bandwidth and, when periodic, time; waits in a queue where it must
    WT_TIER_GUARANTEED,  ///< reserves everything at once or is rejected; runs before the others
    WT_N_TIERS
} wt_tier;

#endif
