#include "chain_wire.h"

#include <warptone/names.h>

#include <stdio.h>
#include <string.h>

wt_status wt__wiring_blame(const wiring *w, int node, const char *setting, wt_status status)
{
    if (w->fault) *w->fault = (wt_chain_fault){node, setting};
    return status;
}

static wt_status resolve_types(wiring *w)
{
    for (int k = 0; k < w->desc->n_nodes; k++) {
        const char *name = w->desc->nodes[k].type ? w->desc->nodes[k].type : "";
        w->types[k] = wt_node_type_find(name);
        if (w->types[k] && !(w->types[k]->flags & WT_NODE_INTERNAL)) continue;
        const char *names[128];
        int n = 0;
        for (int t = 0; t < wt_n_node_types && n < 128; t++)
            if (!(wt_node_types[t]->flags & WT_NODE_INTERNAL)) names[n++] = wt_node_types[t]->name;
        wt_fail(WT_ERR_NOT_FOUND, "%s: node %d has the unknown type '%s'; the nearest is '%s'", chain_name(w), k + 1,
                name, wt_nearest_name(name, names, n));
        return wt__wiring_blame(w, k, "type", WT_ERR_NOT_FOUND);
    }
    return WT_OK;
}

static int find_id(const wiring *w, const char *id)
{
    for (int k = 0; k < w->desc->n_nodes; k++)
        if (w->ids[k] && strcmp(w->ids[k], id) == 0) return k;
    return NOT_CONNECTED;
}

static wt_status resolve_ids(wiring *w)
{
    for (int k = 0; k < w->desc->n_nodes; k++) {
        const char *id = w->desc->nodes[k].id;
        if (!id) continue;
        if (!*id || strcmp(id, "in") == 0) {
            wt_fail(WT_ERR_BAD_ARG, "%s: node %d has the id '%s', want a name other than 'in'", chain_name(w), k + 1,
                    id);
            return wt__wiring_blame(w, k, "id", WT_ERR_BAD_ARG);
        }
        if (find_id(w, id) >= 0) {
            wt_fail(WT_ERR_BAD_ARG, "%s: two nodes have the id '%s', want one each", chain_name(w), id);
            return wt__wiring_blame(w, k, "id", WT_ERR_BAD_ARG);
        }
        if (!(w->ids[k] = strdup(id))) return wt_fail(WT_ERR_NO_MEMORY, "%s: node names", chain_name(w));
    }
    for (int k = 0; k < w->desc->n_nodes; k++) {
        char id[128];
        if (w->ids[k]) continue;
        snprintf(id, sizeof id, "%s", w->types[k]->name);
        for (int number = 2; find_id(w, id) >= 0; number++) snprintf(id, sizeof id, "%s%d", w->types[k]->name, number);
        if (!(w->ids[k] = strdup(id))) return wt_fail(WT_ERR_NO_MEMORY, "%s: node names", chain_name(w));
    }
    return WT_OK;
}

static wt_status resolve_source(wiring *w, int node, const char *field, const char *id, int *source)
{
    if (strcmp(id, "in") == 0) {
        *source = FROM_INPUT;
        return WT_OK;
    }
    *source = find_id(w, id);
    if (*source >= 0) return WT_OK;
    const char *names[MAX_NODES + 1] = {"in"};
    for (int k = 0; k < w->desc->n_nodes; k++) names[k + 1] = w->ids[k];
    wt_fail(WT_ERR_NOT_FOUND, "%s: %s: %s names '%s', which is no node; the nearest is '%s'", chain_name(w),
            node < 0 ? "chain" : w->ids[node], field, id, wt_nearest_name(id, names, w->desc->n_nodes + 1));
    return wt__wiring_blame(w, node, field, WT_ERR_NOT_FOUND);
}

static wt_status resolve_wires(wiring *w)
{
    for (int k = 0; k < w->desc->n_nodes; k++) {
        const wt_node_desc *d = &w->desc->nodes[k];
        int most = w->types[k]->flags & WT_NODE_MANY_INPUTS ? WT_MAX_NODE_INPUTS : 1;
        w->side[k] = NOT_CONNECTED;
        w->n_inputs[k] = d->n_inputs ? d->n_inputs : 1;
        w->inputs[k][0] = k - 1; // the node before; FROM_INPUT for the first
        if (w->n_inputs[k] > most) {
            wt_fail(WT_ERR_BAD_ARG, "%s: %s has %d inputs, a %s takes %s%d", chain_name(w), w->ids[k], d->n_inputs,
                    w->types[k]->name, most > 1 ? "up to " : "", most);
            return wt__wiring_blame(w, k, "inputs", WT_ERR_BAD_ARG);
        }
        if (d->side && !(w->types[k]->flags & WT_NODE_SIDE_CHAIN)) {
            wt_fail(WT_ERR_BAD_ARG, "%s: %s has a side chain, a %s takes none", chain_name(w), w->ids[k],
                    w->types[k]->name);
            return wt__wiring_blame(w, k, "side", WT_ERR_BAD_ARG);
        }
        for (int i = 0; i < d->n_inputs; i++) {
            wt_status status = resolve_source(w, k, "inputs", d->inputs[i], &w->inputs[k][i]);
            if (status) return status;
        }
        wt_status status = d->side ? resolve_source(w, k, "side", d->side, &w->side[k]) : WT_OK;
        if (status) return status;
    }
    w->output = w->desc->n_nodes - 1;
    return w->desc->output ? resolve_source(w, -1, "output", w->desc->output, &w->output) : WT_OK;
}

static bool ready(const wiring *w, const bool *placed, int k)
{
    for (int i = 0; i < w->n_inputs[k]; i++)
        if (w->inputs[k][i] >= 0 && !placed[w->inputs[k][i]]) return false;
    return w->side[k] < 0 || placed[w->side[k]];
}

// Nodes in an order where sources come first, otherwise as described.
static wt_status sort_nodes(wiring *w)
{
    bool placed[MAX_NODES] = {false};
    for (int n = 0; n < w->desc->n_nodes; n++) {
        int k = 0;
        while (k < w->desc->n_nodes && (placed[k] || !ready(w, placed, k))) k++;
        if (k == w->desc->n_nodes) {
            for (k = 0; placed[k];) k++;
            wt_fail(WT_ERR_BAD_ARG, "%s: %s stands in a cycle, want a graph without feedback between nodes",
                    chain_name(w), w->ids[k]);
            return wt__wiring_blame(w, k, "inputs", WT_ERR_BAD_ARG);
        }
        placed[k] = true;
        w->order[n] = k;
    }
    return WT_OK;
}

wt_status wt__wire(wiring *w, const wt_chain_desc *desc, wt_chain_fault *fault)
{
    w->desc = desc;
    w->fault = fault;
    if (fault) *fault = (wt_chain_fault){-1, NULL};
    wt_status status = resolve_types(w);
    if (!status) status = resolve_ids(w);
    if (!status) status = resolve_wires(w);
    if (!status) status = sort_nodes(w);
    return status;
}
