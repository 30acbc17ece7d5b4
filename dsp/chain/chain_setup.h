/// What a node's plan() sees, and how its settings are checked.
#ifndef WT_CHAIN_SETUP_H
#define WT_CHAIN_SETUP_H

#include <warptone/chain.h>
#include "node_types.h"

struct wt_node_setup {
    const wt_chain_config *config;
    const char *chain, *id; // for messages
    const wt_node_type *type;
    const wt_setting *settings;
    int n_settings;
    int n_inputs;
    const int *input_channels;
    int side_channels;
    int stagger;
    float values[WT_MAX_NODE_PARAMS]; // of the type's parameters, checked
    bool bypassed;
    const char *fault;                // the setting a refusal is about
};

/// Every setting names a parameter or an option of the type, numbers are numbers within range, choices exist and
/// required options are there; fills `values`. Errors: WT_ERR_BAD_ARG, WT_ERR_NOT_FOUND.
WT_CHECKED wt_status wt__setup_check(wt_node_setup *setup);

/// Put "chain: node: " before the message that a plan() left.
void wt__setup_prefix(const wt_node_setup *setup);

#endif
