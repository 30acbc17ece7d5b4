/// Where blocks keep what shared memory does not hold (places.cuh).
#ifndef WT_PLACES_KERNEL_H
#define WT_PLACES_KERNEL_H

typedef struct wt_places {
    unsigned char *memory;         ///< `bytes` for each block; NULL: shared memory
    long long bytes, across, down; ///< tiles in all: across * down
} wt_places;

#endif
