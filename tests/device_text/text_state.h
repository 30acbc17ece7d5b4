// What a test tells the program that plays a chain's device text on threads of the CPU: a file with this at its
// beginning, then an instance's memory, the plans, the places, and n_blocks times the frames (int), the input and the
// output of the CPU's chain, [channels][frames] each.
#ifndef WT_TEXT_STATE_H
#define WT_TEXT_STATE_H

typedef struct text_state {
    long long instance_bytes, plans_bytes;
    int n_nodes, n_blocks, n_buffers, buffer_channels, output;
    int shared_floats; // of buffers and scratch
} text_state;

#endif
