/// Wiring: a description's names resolved to indices, its nodes in an order where sources come first.
#ifndef WT_CHAIN_WIRE_H
#define WT_CHAIN_WIRE_H

#include <warptone/chain.h>
#include "chain_kernel.h"

#define MAX_NODES 256
enum { FROM_INPUT = -1, NOT_CONNECTED = -2 }; // sources that are no node: the chain's own input, none

// A description with its names resolved: sources are indices of descriptions or FROM_INPUT.
typedef struct wiring {
    const wt_chain_desc *desc;
    wt_chain_fault *fault;
    char *ids[MAX_NODES];
    const wt_node_type *types[MAX_NODES];
    int inputs[MAX_NODES][WT_MAX_NODE_INPUTS], n_inputs[MAX_NODES], side[MAX_NODES];
    int order[MAX_NODES];
    int output;
} wiring;

static inline const char *chain_name(const wiring *w) { return w->desc->name ? w->desc->name : "chain"; }

/// Say which part of the description a refusal is about; returns `status`.
wt_status wt__wiring_blame(const wiring *w, int node, const char *setting, wt_status status);

/// Fill `w`, which is zeroed; its ids are the caller's to free, also after an error.
/// Errors: WT_ERR_NOT_FOUND with the nearest name, WT_ERR_BAD_ARG (ids, inputs, cycles), WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__wire(wiring *w, const wt_chain_desc *desc, wt_chain_fault *fault);

#endif
