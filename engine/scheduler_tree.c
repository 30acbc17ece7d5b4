// A treap (Seidel & Aragon 1996): a search tree by order, a heap by a number hashed from the serial. Its shape
// depends on nothing but the members, so the same inputs give the same work; expected depth 1.39 log2 n.
// Every node carries size and cost of its subtree: a queue position or the work before a task is one descent.
#include "scheduler_internal.h"

bool wt__node_less(const wt__node *a, const wt__node *b)
{
    if (a->rank != b->rank) return a->rank < b->rank;
    if (a->key != b->key) return a->key < b->key;
    return a->serial < b->serial;
}

// Finaliser of splitmix64 (Steele, Lea & Flood 2014).
static uint32_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

static void sum_up(wt__node *nodes, int32_t at)
{
    wt__node *node = &nodes[at];
    node->count = 1, node->sum_ns = node->cost_ns, node->n_unknown = node->cost_ns == 0;
    for (int side = 0; side < 2; side++) {
        int32_t child = side ? node->right : node->left;
        if (child == WT__NONE) continue;
        node->count += nodes[child].count;
        node->sum_ns += nodes[child].sum_ns;
        node->n_unknown += nodes[child].n_unknown;
    }
}

// Part the subtree `at` into what sorts before `node` and the rest.
static void split(wt__node *nodes, int32_t at, const wt__node *node, int32_t *before, int32_t *after)
{
    if (at == WT__NONE) {
        *before = *after = WT__NONE;
        return;
    }
    if (wt__node_less(&nodes[at], node)) {
        *before = at;
        split(nodes, nodes[at].right, node, &nodes[at].right, after);
    } else {
        *after = at;
        split(nodes, nodes[at].left, node, before, &nodes[at].left);
    }
    sum_up(nodes, at);
}

static int32_t join(wt__node *nodes, int32_t before, int32_t after)
{
    if (before == WT__NONE) return after;
    if (after == WT__NONE) return before;
    int32_t top;
    if (nodes[before].heap > nodes[after].heap) {
        top = before;
        nodes[before].right = join(nodes, nodes[before].right, after);
    } else {
        top = after;
        nodes[after].left = join(nodes, before, nodes[after].left);
    }
    sum_up(nodes, top);
    return top;
}

void wt__tree_insert(wt__node *nodes, int32_t *root, int32_t slot)
{
    wt__node *node = &nodes[slot];
    node->heap = mix(node->serial);
    int32_t *link = root;
    while (*link != WT__NONE && nodes[*link].heap >= node->heap) {
        wt__node *above = &nodes[*link];
        above->count++, above->sum_ns += node->cost_ns, above->n_unknown += node->cost_ns == 0;
        link = wt__node_less(node, above) ? &above->left : &above->right;
    }
    split(nodes, *link, node, &node->left, &node->right);
    sum_up(nodes, slot);
    *link = slot;
}

void wt__tree_remove(wt__node *nodes, int32_t *root, int32_t slot)
{
    wt__node *node = &nodes[slot];
    int32_t *link = root;
    while (*link != slot) {
        wt__node *above = &nodes[*link];
        above->count--, above->sum_ns -= node->cost_ns, above->n_unknown -= node->cost_ns == 0;
        link = wt__node_less(node, above) ? &above->left : &above->right;
    }
    *link = join(nodes, node->left, node->right);
}

int32_t wt__tree_first(const wt__node *nodes, int32_t root)
{
    if (root == WT__NONE) return WT__NONE;
    while (nodes[root].left != WT__NONE) root = nodes[root].left;
    return root;
}

int32_t wt__tree_at(const wt__node *nodes, int32_t root, int k)
{
    while (root != WT__NONE) {
        int32_t left = nodes[root].left;
        int n_left = left == WT__NONE ? 0 : nodes[left].count;
        if (k == n_left) return root;
        root = k < n_left ? left : nodes[root].right;
        if (k > n_left) k -= n_left + 1;
    }
    return WT__NONE;
}

wt__before wt__tree_before(const wt__node *nodes, int32_t root, const wt__node *node)
{
    wt__before before = {0};
    for (int32_t at = root; at != WT__NONE;) {
        if (!wt__node_less(&nodes[at], node)) {
            at = nodes[at].left;
            continue;
        }
        int32_t left = nodes[at].left;
        before.count += 1, before.sum_ns += nodes[at].cost_ns, before.n_unknown += nodes[at].cost_ns == 0;
        if (left != WT__NONE) {
            before.count += nodes[left].count;
            before.sum_ns += nodes[left].sum_ns;
            before.n_unknown += nodes[left].n_unknown;
        }
        at = nodes[at].right;
    }
    return before;
}

int wt__tree_list(const wt__node *nodes, int32_t root, int32_t *slots)
{
    if (root == WT__NONE) return 0;
    int n = wt__tree_list(nodes, nodes[root].left, slots);
    slots[n++] = root;
    return n + wt__tree_list(nodes, nodes[root].right, slots + n);
}
