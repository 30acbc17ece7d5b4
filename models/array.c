// Arrays: views, and operations checked and written as the kernels' arguments, once for both backends.
#include "array_internal.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = INT_MAX };

static_assert((int)WT_DTYPE_BOOL == ARRAY_BOOL && (int)WT_DTYPE_BF16 == ARRAY_BF16 && (int)WT_DTYPE_I64 == ARRAY_I64 &&
                  (int)WT_DTYPE_I4 == ARRAY_I4 && (int)WT_DTYPE_U4 == ARRAY_U4 && (int)WT_DTYPE_F4 == ARRAY_F4,
              "the orders of types are the same");
static_assert((int)WT_N_UNARY == U_END && (int)WT_N_BINARY == B_END && (int)WT_N_REDUCE == R_END,
              "the orders of operations are the same");
static_assert(WT_TENSOR_MAX_RANK == ARRAY_MAX_RANK && U_END <= ARRAY_BINARY, "the kernels have room");

// ---- views

wt_array wt_array_of(uintptr_t data, wt_dtype dtype, int rank, const int64_t *shape)
{
    wt_array a = {.data = data, .dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0 && rank <= WT_TENSOR_MAX_RANK; d--) {
        a.shape[d] = shape[d];
        a.strides[d] = stride;
        stride *= shape[d];
    }
    return a;
}

wt_array wt_array_constant(wt_dtype dtype, double value) { return (wt_array){.dtype = dtype, .value = value}; }

int64_t wt_array_elements(const wt_array *array)
{
    int64_t n = 1;
    for (int d = 0; d < array->rank; d++) n *= array->shape[d];
    return n;
}

static const char *shape_of(const wt_array *a, char text[96]) { return wt_shape_describe(a->rank, a->shape, text); }

static wt_status check_axis(const char *what, const wt_array *a, int axis)
{
    if (axis >= 0 && axis < a->rank) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "array: %s along axis %d of %d, want 0..%d", what, axis, a->rank, a->rank - 1);
}

/// Of 4 bits, two a byte?
static bool is_packed(wt_dtype dtype) { return dtype == WT_DTYPE_I4 || dtype == WT_DTYPE_U4 || dtype == WT_DTYPE_F4; }

static int64_t bytes_of(const wt_array *a, int64_t n) // 4 bits: of an even number
{
    return is_packed(a->dtype) ? n / 2 : n * (int64_t)wt_dtype_bytes(a->dtype, 1);
}

wt_status wt_array_slice(const wt_array *array, int axis, int64_t begin, int64_t end, int64_t step, wt_array *view)
{
    wt_status status = check_axis("a slice", array, axis);
    if (status) return status;
    const int64_t n = array->shape[axis], first = begin < 0 ? begin + n : begin, last = end < 0 ? end + n : end;
    if (!step || step == INT64_MIN || first < 0 || last > n || last < first)
        return wt_fail(WT_ERR_BAD_ARG, "array: elements %lld..%lld in steps of %lld of %lld, want a range in it",
                       (long long)begin, (long long)end, (long long)step, (long long)n);
    const int64_t kept = last == first ? 0 : (last - first - 1) / (step < 0 ? -step : step) + 1;
    const int64_t offset = kept ? (step < 0 ? last - 1 : first) * array->strides[axis] : 0;
    if (is_packed(array->dtype) && offset % 2)
        return wt_fail(WT_ERR_BAD_ARG,
                       "array: a slice of %s begins %lld elements on, within a byte, want an even number",
                       wt_dtype_name(array->dtype), (long long)offset);
    *view = *array;
    view->data += (uintptr_t)bytes_of(array, offset);
    view->shape[axis] = kept;
    if (kept > 1) view->strides[axis] *= step;
    return WT_OK;
}

wt_status wt_array_transpose(const wt_array *array, const int *order, wt_array *view)
{
    const wt_array from = *array;
    unsigned seen = 0;
    *view = from;
    for (int d = 0; d < from.rank; d++) {
        if (order[d] < 0 || order[d] >= from.rank || seen >> order[d] & 1)
            return wt_fail(WT_ERR_BAD_ARG, "array: axis %d is %d of %d, want each once", d, order[d], from.rank);
        seen |= 1u << order[d];
        view->shape[d] = from.shape[order[d]];
        view->strides[d] = from.strides[order[d]];
    }
    return WT_OK;
}

/// The last of some axes of both shapes that have as many elements each.
static bool reshape_part(const wt_array *from, int f0, int f1, wt_array *to, int t0, int t1)
{
    int64_t stride = 1;
    int last = -1;
    for (int d = f1; d >= f0; d--) { // the old axes must be as one
        if (from->shape[d] == 1) continue;
        if (last >= 0 && from->strides[d] != from->strides[last] * from->shape[last]) return false;
        if (last < 0) stride = from->strides[d];
        last = d;
    }
    for (int d = t1; d >= t0; d--) {
        to->strides[d] = stride;
        stride *= to->shape[d];
    }
    return true;
}

wt_status wt_array_reshape(const wt_array *array, int rank, const int64_t *shape, wt_array *view)
{
    const wt_array from = *array;
    const int64_t n = wt_array_elements(&from);
    char a[96], b[96];
    if (rank < 0 || rank > WT_TENSOR_MAX_RANK)
        return wt_fail(WT_ERR_BAD_ARG, "array: rank %d, want 0..%d", rank, WT_TENSOR_MAX_RANK);
    wt_array to = wt_array_of(from.data, from.dtype, rank, shape);
    int64_t known = 1;
    int open = -1;
    for (int d = 0; d < rank; d++)
        if (shape[d] == -1 && open < 0)
            open = d;
        else
            known *= shape[d];
    if (open >= 0 && known > 0 && n % known == 0) {
        to.shape[open] = n / known;
        to = wt_array_of(from.data, from.dtype, rank, to.shape);
    }
    if (wt_array_elements(&to) != n || (open >= 0 && to.shape[open] < 0))
        return wt_fail(WT_ERR_BAD_ARG, "array: %s as %s, want as many elements", shape_of(&from, a),
                       wt_shape_describe(rank, shape, b));
    int f = 0, t = 0;
    while (n && f < from.rank && t < rank) { // groups of axes with as many elements on both sides
        int f1 = f, t1 = t;
        int64_t nf = from.shape[f], nt = to.shape[t];
        while (nf != nt)
            if (nf < nt)
                nf *= from.shape[++f1];
            else
                nt *= to.shape[++t1];
        if (!reshape_part(&from, f, f1, &to, t, t1))
            return wt_fail(WT_ERR_BAD_ARG, "array: %s as %s: its strides allow no such view, want a copy",
                           shape_of(&from, a), shape_of(&to, b));
        f = f1 + 1, t = t1 + 1;
    }
    to.value = from.value;
    *view = to;
    return WT_OK;
}

wt_status wt_array_broadcast(const wt_array *array, int rank, const int64_t *shape, wt_array *view)
{
    const wt_array from = *array;
    char a[96], b[96];
    bool fits = rank >= from.rank && rank <= WT_TENSOR_MAX_RANK;
    *view = from;
    view->rank = rank;
    for (int d = 0; d < rank && fits; d++) {
        const int own = d - (rank - from.rank);
        const int64_t n = own < 0 ? 1 : from.shape[own];
        fits = n == shape[d] || n == 1;
        view->shape[d] = shape[d];
        view->strides[d] = n == 1 ? 0 : from.strides[own];
    }
    if (fits) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "array: %s does not broadcast to %s", shape_of(&from, a),
                   wt_shape_describe(rank, shape, b));
}

// ---- operands

static wt_status check_array(const char *what, const wt_array *a, bool is_result)
{
    if ((unsigned)a->dtype > WT_DTYPE_BOOL && !is_packed(a->dtype))
        return wt_fail(WT_ERR_UNSUPPORTED, "array: %s of type %s, want F32 .. BOOL, I4, U4 or F4", what,
                       wt_dtype_name(a->dtype));
    if (a->rank < 0 || a->rank > WT_TENSOR_MAX_RANK)
        return wt_fail(WT_ERR_BAD_ARG, "array: %s of rank %d, want 0..%d", what, a->rank, WT_TENSOR_MAX_RANK);
    for (int d = 0; d < a->rank; d++)
        if (a->shape[d] < 0)
            return wt_fail(WT_ERR_BAD_ARG, "array: %s has %lld elements along axis %d", what, (long long)a->shape[d],
                           d);
    const bool is_constant = !is_result && a->rank == 0;
    if ((!a->data && !is_constant) || a->data % (uintptr_t)bytes_of(a, is_packed(a->dtype) ? 2 : 1))
        return wt_fail(WT_ERR_BAD_ARG, "array: %s lies at %#llx, want an address aligned to its type", what,
                       (unsigned long long)a->data);
    return WT_OK;
}

static wt_status check_result(const wt_array *out)
{
    wt_status status = check_array("the result", out, true);
    for (int d = 0; d < out->rank && !status; d++)
        if (out->shape[d] > 1 && !out->strides[d])
            status =
                wt_fail(WT_ERR_BAD_ARG, "array: the result repeats along axis %d, want a place for each element", d);
    return status;
}

/// Threads of most operations write single elements, so not two of a byte.
static wt_status check_whole(const wt_array *out)
{
    wt_status status = check_result(out);
    if (status || !is_packed(out->dtype)) return status;
    return wt_fail(WT_ERR_UNSUPPORTED,
                   "array: a result of type %s, which only elementwise operations write; want a copy",
                   wt_dtype_name(out->dtype));
}

/// Elementwise, neighbours in row-major order share a byte.
static wt_status check_pairs(const wt_array *out)
{
    wt_status status = check_result(out);
    if (status || !is_packed(out->dtype)) return status;
    int last = out->rank - 1;
    while (last >= 0 && out->shape[last] == 1) last--;
    bool whole = last >= 0 && out->strides[last] == 1 && out->shape[last] % 2 == 0;
    for (int d = 0; d < last; d++) whole &= out->shape[d] == 1 || out->strides[d] % 2 == 0;
    if (whole || !wt_array_elements(out)) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG,
                   "array: the result of type %s has odd lines or gaps in them, want pairs in whole bytes",
                   wt_dtype_name(out->dtype));
}

static bool is_float(wt_dtype dtype) { return dtype <= WT_DTYPE_F8_E5M2 || dtype == WT_DTYPE_F4; }

static int klass_of(const wt_array *const *arrays, int n)
{
    int klass = ARRAY_INTEGER;
    for (int k = 0; k < n; k++) {
        const int own = arrays[k]->dtype == WT_DTYPE_F64 ? ARRAY_DOUBLE
                        : is_float(arrays[k]->dtype)     ? ARRAY_FLOAT
                                                         : ARRAY_INTEGER;
        if (own > klass) klass = own;
    }
    return klass;
}

static array_operand operand_of(const wt_array *a)
{
    array_operand o = {.data = (void *)a->data, .value = a->value, .type = (int)a->dtype};
    for (int d = 0; d < a->rank; d++) o.strides[d] = a->strides[d];
    return o;
}

// ---- elementwise

/// Axes of one element go, and axes that lie behind each other for every operand become one.
static void collapse(array_map_args *m)
{
    int rank = 0;
    array_operand *all[] = {&m->in[0], &m->in[1], &m->in[2], &m->out};
    for (int d = 0; d < m->rank; d++) {
        if (m->shape[d] == 1) continue;
        bool joins = rank > 0;
        for (int i = 0; i < 4 && joins; i++) joins = all[i]->strides[rank - 1] == all[i]->strides[d] * m->shape[d];
        if (!joins) rank++;
        m->shape[rank - 1] = joins ? m->shape[rank - 1] * m->shape[d] : m->shape[d];
        for (int i = 0; i < 4; i++) all[i]->strides[rank - 1] = all[i]->strides[d];
    }
    m->rank = rank;
}

static wt_status map(wt_arrays *arrays, wt_stream *stream, array_map_args *m, const wt_array *const *in, int n_in,
                     const wt_array *out)
{
    const wt_array *all[ARRAY_INPUTS + 1] = {out};
    wt_status status = check_pairs(out);
    m->n = status ? 0 : wt_array_elements(out);
    m->rank = out->rank;
    for (int i = 0; i < n_in && !status; i++) {
        wt_array view;
        status = check_array("an operand", in[i], false);
        if (!status) status = wt_array_broadcast(in[i], out->rank, out->shape, &view);
        if (!status) m->in[i] = operand_of(&view);
        all[i + 1] = in[i];
    }
    if (status || !m->n) return status;
    if (klass_of(all, n_in + 1) > m->klass) m->klass = klass_of(all, n_in + 1);
    m->out = operand_of(out);
    for (int d = 0; d < out->rank; d++) m->shape[d] = out->shape[d];
    collapse(m);
    return arrays->cuda ? wt__array_cuda_map(arrays, stream, m) : wt__array_cpu_map(stream, m);
}

wt_status wt_array_unary(wt_arrays *arrays, wt_stream *stream, wt_unary op, const wt_array *x, const wt_array *out)
{
    if ((unsigned)op >= WT_N_UNARY)
        return wt_fail(WT_ERR_BAD_ARG, "array: unary operation %d, want 0..%d", (int)op, WT_N_UNARY - 1);
    const wt_array *all[] = {x, out};
    array_map_args m = {.op = (int)op};
    if (klass_of(all, 2) == ARRAY_INTEGER && array_unary_wants_double((int)op)) m.klass = ARRAY_DOUBLE;
    return map(arrays, stream, &m, all, 1, out);
}

wt_status wt_array_binary(wt_arrays *arrays, wt_stream *stream, wt_binary op, const wt_array *a, const wt_array *b,
                          const wt_array *out)
{
    const wt_array *all[] = {a, b, out};
    if ((unsigned)op >= WT_N_BINARY)
        return wt_fail(WT_ERR_BAD_ARG, "array: binary operation %d, want 0..%d", (int)op, WT_N_BINARY - 1);
    if (op >= WT_BINARY_AND && klass_of(all, 3) != ARRAY_INTEGER)
        return wt_fail(WT_ERR_UNSUPPORTED, "array: bits of %s and %s to %s, want integers", wt_dtype_name(a->dtype),
                       wt_dtype_name(b->dtype), wt_dtype_name(out->dtype));
    array_map_args m = {.op = ARRAY_BINARY + (int)op};
    if (klass_of(all, 3) == ARRAY_INTEGER && array_binary_wants_double((int)op)) m.klass = ARRAY_DOUBLE;
    return map(arrays, stream, &m, all, 2, out);
}

wt_status wt_array_where(wt_arrays *arrays, wt_stream *stream, const wt_array *condition, const wt_array *a,
                         const wt_array *b, const wt_array *out)
{
    return map(arrays, stream, &(array_map_args){.op = ARRAY_WHERE}, (const wt_array *[]){condition, a, b}, 3, out);
}

wt_status wt_array_clamp(wt_arrays *arrays, wt_stream *stream, const wt_array *x, const wt_array *low,
                         const wt_array *high, const wt_array *out)
{
    return map(arrays, stream, &(array_map_args){.op = ARRAY_CLAMP}, (const wt_array *[]){x, low, high}, 3, out);
}

wt_status wt_array_arange(wt_arrays *arrays, wt_stream *stream, double first, double step, const wt_array *out)
{
    array_map_args m = {.op = ARRAY_ARANGE, .first = first, .step = step};
    return map(arrays, stream, &m, NULL, 0, out);
}

wt_status wt_array_random(wt_arrays *arrays, wt_stream *stream, wt_random kind, uint64_t seed, uint64_t first,
                          const wt_array *out)
{
    if ((unsigned)kind > WT_RANDOM_BITS)
        return wt_fail(WT_ERR_BAD_ARG, "array: random numbers of kind %d, want 0..%d", (int)kind, WT_RANDOM_BITS);
    if ((kind == WT_RANDOM_BITS) == is_float(out->dtype))
        return wt_fail(WT_ERR_UNSUPPORTED, "array: random %s of type %s, want %s",
                       kind == WT_RANDOM_BITS ? "bits" : "numbers", wt_dtype_name(out->dtype),
                       kind == WT_RANDOM_BITS ? "integers" : "floats");
    array_map_args m = {.op = ARRAY_UNIFORM + (int)kind, .seed = seed, .count = first};
    return map(arrays, stream, &m, NULL, 0, out);
}

// ---- reductions

/// The result's own axis for each axis that stays; the reduced ones are left out or are ones.
static wt_status match_result(const wt_array *x, unsigned axes, const wt_array *out, array_reduce_args *r)
{
    int own = 0;
    const bool keeps = out->rank == x->rank;
    bool fits = true;
    for (int d = 0; d < x->rank; d++) {
        const bool reduced = axes >> d & 1;
        if (reduced) {
            r->over[r->over_rank] = x->shape[d];
            r->over_strides[r->over_rank++] = x->strides[d];
            if (keeps) fits &= out->shape[own++] == 1;
            continue;
        }
        if (own >= out->rank || out->shape[own] != x->shape[d]) {
            fits = false;
            break;
        }
        r->shape[r->rank] = x->shape[d];
        r->in.strides[r->rank] = x->strides[d];
        r->out.strides[r->rank++] = out->strides[own++];
    }
    char a[96], b[96];
    if (fits && own == out->rank) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "array: %s reduced over axes %#x into %s, want the extents that are left",
                   shape_of(x, a), axes, shape_of(out, b));
}

wt_status wt_array_reduce(wt_arrays *arrays, wt_stream *stream, wt_reduce op, const wt_array *x, unsigned axes,
                          const wt_array *out)
{
    array_reduce_args r = {.op = (int)op, .n_out = 1, .n_in = 1};
    if ((unsigned)op >= WT_N_REDUCE)
        return wt_fail(WT_ERR_BAD_ARG, "array: reduction %d, want 0..%d", (int)op, WT_N_REDUCE - 1);
    wt_status status = check_array("the operand", x, true);
    if (!status) status = check_whole(out);
    if (status) return status;
    if (!axes) axes = (1u << x->rank) - 1;
    if (axes >> x->rank) return wt_fail(WT_ERR_BAD_ARG, "array: axes %#x of %d", axes, x->rank);
    r.in = (array_operand){.data = (void *)x->data, .type = (int)x->dtype};
    r.out = (array_operand){.data = (void *)out->data, .type = (int)out->dtype};
    status = match_result(x, axes, out, &r);
    if (status) return status;
    for (int d = 0; d < r.rank; d++) r.n_out *= r.shape[d];
    for (int d = 0; d < r.over_rank; d++) r.n_in *= r.over[d];
    if (!r.n_in && op >= WT_REDUCE_MAX && op <= WT_REDUCE_ARGMIN)
        return wt_fail(WT_ERR_BAD_ARG, "array: the extreme of no elements");
    if (!r.n_out) return WT_OK;
    if (r.n_out > MAX_LINES) return wt_fail(WT_ERR_BAD_ARG, "array: %lld results, want at most %d", r.n_out, MAX_LINES);
    const bool is_sum = op <= WT_REDUCE_PROD;
    r.klass = is_float(x->dtype) || (is_sum && is_float(out->dtype)) ? ARRAY_DOUBLE : ARRAY_INTEGER;
    return arrays->cuda ? wt__array_cuda_reduce(arrays, stream, &r) : wt__array_cpu_reduce(stream, &r);
}

// ---- lines

static wt_status same_shape(const wt_array *a, const wt_array *b, int but)
{
    char left[96], right[96];
    bool same = a->rank == b->rank;
    for (int d = 0; d < a->rank && same; d++) same = d == but || a->shape[d] == b->shape[d];
    if (same) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "array: %s and %s, want equal shapes%s", shape_of(a, left), shape_of(b, right),
                   but < 0 ? "" : " but for the axis");
}

/// An operand without the axis.
static array_operand without(const wt_array *a, int axis, long long *stride)
{
    array_operand o = {.data = (void *)a->data, .type = (int)a->dtype};
    for (int d = 0, own = 0; d < a->rank; d++)
        if (d != axis) o.strides[own++] = a->strides[d];
    *stride = a->strides[axis];
    return o;
}

static wt_status run_lines(wt_arrays *arrays, wt_stream *stream, array_line_op op, array_line_args *l,
                           const wt_array *x, int axis, const wt_array *out, const wt_array *places)
{
    l->in = without(x, axis, &l->in_stride);
    if (out) l->out = without(out, axis, &l->out_stride);
    if (places) l->places = without(places, axis, &l->places_stride);
    l->n = x->shape[axis];
    l->n_lines = 1;
    l->klass = is_float(x->dtype) || (out && is_float(out->dtype)) ? ARRAY_DOUBLE : ARRAY_INTEGER;
    for (int d = 0; d < x->rank; d++)
        if (d != axis) {
            l->shape[l->rank++] = x->shape[d];
            l->n_lines *= x->shape[d];
        }
    if (!l->n || !l->n_lines) return WT_OK;
    if (l->n_lines > MAX_LINES)
        return wt_fail(WT_ERR_BAD_ARG, "array: %lld lines, want at most %d", l->n_lines, MAX_LINES);
    return arrays->cuda ? wt__array_cuda_line(arrays, stream, op, l) : wt__array_cpu_line(stream, op, l);
}

static wt_status line_op(wt_arrays *arrays, wt_stream *stream, array_line_op op, const char *name, const wt_array *x,
                         int axis, bool logarithm, const wt_array *out)
{
    array_line_args l = {.logarithm = logarithm};
    wt_status status = check_array("the operand", x, true);
    if (!status) status = check_whole(out);
    if (!status) status = check_axis(name, x, axis);
    if (!status) status = same_shape(x, out, -1);
    return status ? status : run_lines(arrays, stream, op, &l, x, axis, out, NULL);
}

wt_status wt_array_softmax(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis, bool logarithm,
                           const wt_array *out)
{
    return line_op(arrays, stream, ARRAY_SOFTMAX, "softmax", x, axis, logarithm, out);
}

wt_status wt_array_cumsum(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis, const wt_array *out)
{
    return line_op(arrays, stream, ARRAY_CUMSUM, "sums", x, axis, false, out);
}

wt_status wt_array_topk(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int k, const wt_array *values,
                        const wt_array *indices)
{
    const int axis = x->rank - 1;
    array_line_args l = {.k = k};
    wt_status status = check_array("the operand", x, true);
    if (!status) status = check_axis("the largest", x, axis);
    if (!status && (k < 1 || k > x->shape[axis]))
        status = wt_fail(WT_ERR_BAD_ARG, "array: the largest %d of %lld", k, (long long)x->shape[axis]);
    const wt_array *results[] = {values, indices};
    for (int i = 0; i < 2 && !status; i++) {
        if (!results[i]) continue;
        status = check_whole(results[i]);
        if (!status) status = same_shape(x, results[i], axis);
        if (!status && results[i]->shape[axis] != k)
            status = wt_fail(WT_ERR_BAD_ARG, "array: room for %lld of the largest %d",
                             (long long)results[i]->shape[axis], k);
    }
    if (!status && indices && indices->dtype != WT_DTYPE_I32 && indices->dtype != WT_DTYPE_I64)
        status =
            wt_fail(WT_ERR_UNSUPPORTED, "array: places of type %s, want I32 or I64", wt_dtype_name(indices->dtype));
    return status ? status : run_lines(arrays, stream, ARRAY_TOPK, &l, x, axis, values, indices);
}

// ---- gather, scatter, concat

/// `many`: the side that has a position for each index.
static wt_status index_op(wt_arrays *arrays, wt_stream *stream, array_index_args *g, const wt_array *x, int axis,
                          const wt_array *indices, const wt_array *out)
{
    const wt_array *many = g->scatter ? x : out, *limit = g->scatter ? out : x;
    wt_status status = check_array("the operand", x, true);
    if (!status) status = check_array("indices", indices, true);
    if (!status) status = check_whole(out);
    if (!status) status = check_axis("indices", x, axis);
    if (!status && (is_float(indices->dtype) || indices->dtype == WT_DTYPE_BOOL))
        status = wt_fail(WT_ERR_UNSUPPORTED, "array: indices of type %s, want integers", wt_dtype_name(indices->dtype));
    if (!status) status = same_shape(x, out, axis);
    wt_array every = *indices;
    if (!status && indices->rank == 1 && many->rank > 1) { // the same for all lines
        if (indices->shape[0] != many->shape[axis])
            return wt_fail(WT_ERR_BAD_ARG, "array: %lld indices for %lld positions", (long long)indices->shape[0],
                           (long long)many->shape[axis]);
        every = *many;
        memset(every.strides, 0, sizeof every.strides);
        every.strides[axis] = indices->strides[0];
        every.data = indices->data, every.dtype = indices->dtype;
    }
    if (!status) status = same_shape(&every, many, -1);
    if (status) return status;
    g->in = without(x, axis, &g->in_stride);
    g->out = without(out, axis, &g->out_stride);
    g->indices = without(&every, axis, &g->index_stride);
    g->n = many->shape[axis];
    g->n_limit = limit->shape[axis];
    g->n_lines = 1;
    g->klass = is_float(x->dtype) || is_float(out->dtype) ? ARRAY_DOUBLE : ARRAY_INTEGER;
    for (int d = 0; d < x->rank; d++)
        if (d != axis) {
            g->shape[g->rank++] = x->shape[d];
            g->n_lines *= x->shape[d];
        }
    if (!g->n || !g->n_lines) return WT_OK;
    return arrays->cuda ? wt__array_cuda_index(arrays, stream, g) : wt__array_cpu_index(stream, g);
}

wt_status wt_array_gather(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis, const wt_array *indices,
                          const wt_array *out)
{
    return index_op(arrays, stream, &(array_index_args){0}, x, axis, indices, out);
}

wt_status wt_array_scatter(wt_arrays *arrays, wt_stream *stream, const wt_array *x, int axis, const wt_array *indices,
                           bool add, const wt_array *out)
{
    return index_op(arrays, stream, &(array_index_args){.scatter = 1, .add = add}, x, axis, indices, out);
}

wt_status wt_array_concat(wt_arrays *arrays, wt_stream *stream, const wt_array *xs, int n_xs, int axis,
                          const wt_array *out)
{
    int64_t at = 0;
    wt_status status = check_axis("pieces", out, axis);
    for (int k = 0; k < n_xs && !status; k++) {
        status = same_shape(&xs[k], out, axis);
        if (!status) at += xs[k].shape[axis];
    }
    if (!status && at != out->shape[axis])
        status = wt_fail(WT_ERR_BAD_ARG, "array: pieces of %lld elements in all, want %lld", (long long)at,
                         (long long)out->shape[axis]);
    at = 0;
    for (int k = 0; k < n_xs && !status; k++) {
        wt_array place;
        status = wt_array_slice(out, axis, at, at + xs[k].shape[axis], 1, &place);
        if (!status) status = wt_array_unary(arrays, stream, WT_UNARY_COPY, &xs[k], &place);
        at += xs[k].shape[axis];
    }
    return status;
}

// ---- create, destroy

wt_status wt_arrays_create(const wt_arrays_config *config, wt_arrays **arrays)
{
    *arrays = NULL;
    if (!config->device) return wt_fail(WT_ERR_BAD_ARG, "arrays: no device");
    wt_arrays *a = calloc(1, sizeof *a);
    if (!a) return wt_fail(WT_ERR_NO_MEMORY, "arrays: handle");
    const wt_device_info *info = wt_device_get_info(config->device);
    a->device = config->device;
    a->n_sms = info->n_sms;
    if (config->partition) {
        wt_partition_info partition;
        wt_partition_get_info(config->partition, &partition);
        if (partition.n_sms) a->n_sms = partition.n_sms;
    }
    wt_status status = info->backend == WT_BACKEND_CUDA ? wt__array_cuda_create(config->device, &a->cuda) : WT_OK;
    if (status) {
        wt_arrays_destroy(a);
        return status;
    }
    *arrays = a;
    return WT_OK;
}

void wt_arrays_destroy(wt_arrays *arrays)
{
    if (!arrays) return;
    wt__array_cuda_destroy(arrays->cuda);
    free(arrays);
}
