// What the kernels of attention share: which keys a query may look at, masks, and where rows lie.
// Grid: heads; tiles of queries, of all heads the last and longest first; n.
#include "nn.cuh"

#include "overlap.cuh"

#define NOTHING (-1e30f)
#define LOG2_E  1.44269504f

// Keys that query i may look at are first .. end - 1.
struct span {
    int first, end;
};

static __device__ __forceinline__ span span_of(const nn_attend_args &a, int query)
{
    const int end = a.causal ? min(query + a.keys - a.queries + 1, a.keys) : a.keys;
    const int last = a.causal ? query + a.keys - a.queries : a.keys - 1;
    span s = {a.window ? max(last - a.window + 1, 0) : 0, max(end, 0)};
    return s;
}

// Keys that all of the queries first .. last look at, but for a mask.
static __device__ __forceinline__ span common_of(const nn_attend_args &a, int first, int last)
{
    span s = {span_of(a, min(last, a.queries - 1)).first, span_of(a, first).end};
    return s;
}

// Tiles of keys that any query of first .. last looks at: begin, rounded down, and end.
static __device__ __forceinline__ span tiles_of(const nn_attend_args &a, int first, int last, int keys_a_tile)
{
    span s = {span_of(a, first).first / keys_a_tile * keys_a_tile, span_of(a, min(last, a.queries - 1)).end};
    return s;
}

static __device__ __forceinline__ long long mask_row_of(const nn_attend_args &a, int head, int query)
{
    return blockIdx.z * a.mask_strides[0] + head * a.mask_strides[1] + query * a.mask_strides[2];
}

// A score in units of log2 under the mask, if it is one of a key that the query may look at.
static __device__ __forceinline__ void masked(const nn_attend_args &a, long long row, int key, float *x)
{
    if (*x == NOTHING) return;
    const long long at = row + key * a.mask_strides[3];
    if (a.mask_type != NN_BOOL)
        *x = fmaxf(*x + load(a.mask, a.mask_type, at) * LOG2_E, NOTHING);
    else if (!((const unsigned char *)a.mask)[at])
        *x = NOTHING;
}

static __device__ __forceinline__ long long row_of(const nn_strided &x, int head, long long position)
{
    return blockIdx.z * x.strides[0] + head * x.strides[1] + position * x.strides[2];
}
