// A copy of a chain's description in one piece of memory: written twice, first only to count the bytes.
#include "live_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct packer {
    unsigned char *base; // NULL while counting
    size_t used;
} packer;

static void *pack(packer *p, const void *from, size_t bytes)
{
    if (!from) return NULL;
    unsigned char *to = p->base ? p->base + p->used : NULL;
    p->used += (bytes + 15) & ~(size_t)15;
    if (to && bytes) memcpy(to, from, bytes);
    return to;
}

static char *pack_text(packer *p, const char *text) { return text ? pack(p, text, strlen(text) + 1) : NULL; }

static void pack_node(packer *p, const wt_node_desc *from, wt_node_desc *to)
{
    const char **inputs = pack(p, from->inputs, sizeof *from->inputs * (size_t)from->n_inputs);
    wt_setting *settings = pack(p, from->settings, sizeof *from->settings * (size_t)from->n_settings);
    for (int k = 0; k < from->n_inputs; k++) {
        const char *input = pack_text(p, from->inputs[k]);
        if (inputs) inputs[k] = input;
    }
    for (int k = 0; k < from->n_settings; k++) {
        const char *name = pack_text(p, from->settings[k].name), *text = pack_text(p, from->settings[k].text);
        if (settings) settings[k].name = name, settings[k].text = text;
    }
    const wt_node_desc packed = {.type = pack_text(p, from->type),
                                 .id = pack_text(p, from->id),
                                 .inputs = inputs,
                                 .n_inputs = from->n_inputs,
                                 .side = pack_text(p, from->side),
                                 .settings = settings,
                                 .n_settings = from->n_settings};
    if (to) *to = packed;
}

static void pack_desc(packer *p, const wt_chain_desc *from)
{
    live_desc *to = pack(p, &(live_desc){*from}, sizeof *to);
    wt_node_desc *nodes = pack(p, from->nodes, sizeof *nodes * (size_t)from->n_nodes);
    for (int k = 0; k < from->n_nodes; k++) pack_node(p, &from->nodes[k], nodes ? &nodes[k] : NULL);
    const wt_chain_desc packed = {.name = pack_text(p, from->name),
                                  .nodes = nodes,
                                  .n_nodes = from->n_nodes,
                                  .output = pack_text(p, from->output)};
    if (to) to->desc = packed;
}

live_desc *wt__live_desc_copy(const wt_chain_desc *desc)
{
    packer p = {0};
    pack_desc(&p, desc);
    p = (packer){.base = malloc(p.used)};
    if (p.base) pack_desc(&p, desc);
    return (live_desc *)p.base;
}
