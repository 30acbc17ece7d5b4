// Operations on arrays on the CPU. Elements go through small buffers of one type, so that what is done with them is a
// plain loop.
#include "array_internal.h"

#include <stdlib.h>
#include <warptone/simd.h>

enum { RUN = 256, MAP_ITEM = 16384, LINE_ITEM_ELEMENTS = 16384, REDUCE_ITEM_ELEMENTS = 65536 };

// ---- elements to and from buffers

#define LOAD(T, name)                                                                                                  \
    WT_CLONES static void load_##name(const array_operand *x, long long at, long long stride, int n, T *out)           \
    {                                                                                                                  \
        if (!x->data)                                                                                                  \
            for (int k = 0; k < n; k++) out[k] = (T)x->value;                                                          \
        else if (x->type == ARRAY_F32)                                                                                 \
            for (int k = 0; k < n; k++) out[k] = (T)((const float *)x->data)[at + k * stride];                         \
        else if (x->type == ARRAY_BF16)                                                                                \
            for (int k = 0; k < n; k++)                                                                                \
                out[k] = (T)array_read_small(ARRAY_BF16, ((const unsigned short *)x->data)[at + k * stride]);          \
        else                                                                                                           \
            for (int k = 0; k < n; k++) out[k] = array_get_##name(x->type, x->data, at + k * stride);                  \
    }
LOAD(float, float)
LOAD(double, double)
#undef LOAD

static void load_integer(const array_operand *x, long long at, long long stride, int n, long long *out)
{
    for (int k = 0; k < n; k++)
        out[k] = x->data ? array_get_integer(x->type, x->data, at + k * stride) : (long long)x->value;
}

#define STORE(T, name)                                                                                                 \
    WT_CLONES static void store_##name(const array_operand *x, long long at, long long stride, int n, const T *in)     \
    {                                                                                                                  \
        if (x->type == ARRAY_F32)                                                                                      \
            for (int k = 0; k < n; k++) ((float *)x->data)[at + k * stride] = (float)in[k];                            \
        else                                                                                                           \
            for (int k = 0; k < n; k++) array_put_##name(x->type, x->data, at + k * stride, in[k]);                    \
    }
STORE(float, float)
STORE(double, double)
STORE(long long, integer)
#undef STORE

// ---- elementwise

#define UNARY(name, op)                                                                                                \
    case op:                                                                                                           \
        for (int k = 0; k < n; k++) y[k] = array_unary_##name(op, x[0][k]);                                            \
        break;
#define BINARY(name, op)                                                                                               \
    case ARRAY_BINARY + op:                                                                                            \
        for (int k = 0; k < n; k++) y[k] = array_binary_##name(op, x[0][k], x[1][k]);                                  \
        break;
#define EACH_UNARY(name)                                                                                               \
    UNARY(name, U_COPY)                                                                                                \
    UNARY(name, U_NEG) UNARY(name, U_ABS) UNARY(name, U_SIGN) UNARY(name, U_SQUARE) UNARY(name, U_RECIPROCAL)          \
        UNARY(name, U_SQRT) UNARY(name, U_RSQRT) UNARY(name, U_EXP) UNARY(name, U_EXPM1) UNARY(name, U_LOG)            \
            UNARY(name, U_LOG1P) UNARY(name, U_SIN) UNARY(name, U_COS) UNARY(name, U_TANH) UNARY(name, U_ERF)          \
                UNARY(name, U_SIGMOID) UNARY(name, U_RELU) UNARY(name, U_RELU2) UNARY(name, U_SILU)                    \
                    UNARY(name, U_GELU) UNARY(name, U_GELU_TANH) UNARY(name, U_FLOOR) UNARY(name, U_CEIL)              \
                        UNARY(name, U_RINT) UNARY(name, U_IS_NAN) UNARY(name, U_NOT)
#define EACH_BINARY(name)                                                                                              \
    BINARY(name, B_ADD)                                                                                                \
    BINARY(name, B_SUB) BINARY(name, B_MUL) BINARY(name, B_DIV) BINARY(name, B_MOD) BINARY(name, B_POW)                \
        BINARY(name, B_MIN) BINARY(name, B_MAX) BINARY(name, B_ATAN2) BINARY(name, B_EQ) BINARY(name, B_NE)            \
            BINARY(name, B_LT) BINARY(name, B_LE) BINARY(name, B_GT) BINARY(name, B_GE)

#define APPLY(T, name, more)                                                                                           \
    WT_CLONES static void apply_##name(int op, int n, const T(*restrict x)[RUN], T *restrict y)                        \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
            EACH_UNARY(name)                                                                                           \
            EACH_BINARY(name)                                                                                          \
            more /* those of integers alone */                                                                         \
                case ARRAY_WHERE : for (int k = 0; k < n; k++) y[k] = x[0][k] != 0 ? x[1][k] : x[2][k];                \
            break;                                                                                                     \
        default:                                                                                                       \
            for (int k = 0; k < n; k++)                                                                                \
                y[k] = array_binary_##name(B_MIN, array_binary_##name(B_MAX, x[0][k], x[1][k]), x[2][k]);              \
        }                                                                                                              \
    }
#define NO_MORE
APPLY(float, float, NO_MORE)
APPLY(double, double, NO_MORE)
APPLY(long long, integer, BINARY(integer, B_AND) BINARY(integer, B_OR) BINARY(integer, B_XOR))

static double random_double(const array_map_args *a, unsigned long long n)
{
    return a->op == ARRAY_UNIFORM ? wt_philox_uniform(a->seed, n) : array_normal(a->seed, n);
}

static long long random_bits(const array_map_args *a, unsigned long long n)
{
    unsigned w0, w1;
    wt_philox(a->seed, n, &w0, &w1);
    return (long long)(((unsigned long long)w0 << 32 | w1) >> 1);
}

static float random_float(const array_map_args *a, unsigned long long n)
{
    unsigned w0, w1;
    if (a->op != ARRAY_UNIFORM) return (float)random_double(a, n);
    wt_philox(a->seed, n, &w0, &w1);
    return array_uniform_float(a->out.type, w0);
}

#define MADE_UP(T, name, number)                                                                                       \
    static void made_up_##name(const array_map_args *a, long long first, int n, T *y)                                  \
    {                                                                                                                  \
        for (int k = 0; k < n; k++)                                                                                    \
            y[k] = a->op == ARRAY_ARANGE ? (T)(a->first + a->step * (double)(first + k))                               \
                   : a->op == ARRAY_BITS ? (T)random_bits(a, a->count + (unsigned long long)(first + k))               \
                                         : (T)number(a, a->count + (unsigned long long)(first + k));                   \
    }
MADE_UP(float, float, random_float)
MADE_UP(double, double, random_double)
MADE_UP(long long, integer, random_double)

// One run along the last dimension.
#define MAP_RUN(T, name)                                                                                               \
    static void run_##name(const array_map_args *a, long long k, int n, const long long *at, int last)                 \
    {                                                                                                                  \
        T x[ARRAY_INPUTS][RUN], y[RUN];                                                                                \
        const int n_in = a->op >= ARRAY_ARANGE ? 0 : a->op >= ARRAY_WHERE ? 3 : a->op >= ARRAY_BINARY ? 2 : 1;         \
        for (int i = 0; i < n_in; i++) load_##name(&a->in[i], at[i], last < 0 ? 0 : a->in[i].strides[last], n, x[i]);  \
        if (n_in)                                                                                                      \
            apply_##name(a->op, n, (const T(*)[RUN])x, y);                                                             \
        else                                                                                                           \
            made_up_##name(a, k, n, y);                                                                                \
        store_##name(&a->out, at[ARRAY_INPUTS], last < 0 ? 0 : a->out.strides[last], n, y);                            \
    }
MAP_RUN(float, float)
MAP_RUN(double, double)
MAP_RUN(long long, integer)

static void map_item(const void *args, int item)
{
    const array_map_args *a = args;
    const int last = a->rank - 1;
    const long long end = (item + 1LL) * MAP_ITEM < a->n ? (item + 1LL) * MAP_ITEM : a->n;
    for (long long k = (long long)item * MAP_ITEM; k < end;) {
        const long long left = last < 0 ? 1 : a->shape[last] - k % a->shape[last];
        long long n = left < RUN ? left : RUN, at[ARRAY_INPUTS + 1];
        if (n > end - k) n = end - k;
        for (int i = 0; i < ARRAY_INPUTS; i++) at[i] = array_offset(a->shape, a->rank, a->in[i].strides, k);
        at[ARRAY_INPUTS] = array_offset(a->shape, a->rank, a->out.strides, k);
        if (a->klass == ARRAY_INTEGER)
            run_integer(a, k, (int)n, at, last);
        else if (a->klass == ARRAY_DOUBLE)
            run_double(a, k, (int)n, at, last);
        else
            run_float(a, k, (int)n, at, last);
        k += n;
    }
}

wt_status wt__array_cpu_map(wt_stream *stream, const array_map_args *args)
{
    return wt_stream_run(stream, map_item, args, sizeof *args, (int)((args->n + MAP_ITEM - 1) / MAP_ITEM));
}

// ---- reductions

typedef struct part {
    double value;
    long long integer, place;
} part;

static void start(const array_reduce_args *a, part *p)
{
    const int one = a->op == R_PROD || a->op == R_ALL;
    *p = (part){one, one, -1};
}

#define JOIN(T, name, field, beats)                                                                                    \
    WT_CLONES static void join_##name(int op, part *p, int n, const T *x, long long place)                             \
    {                                                                                                                  \
        T sum = p->field;                                                                                              \
        switch (op) {                                                                                                  \
        case R_SUM:                                                                                                    \
        case R_MEAN:                                                                                                   \
            for (int k = 0; k < n; k++) sum = array_binary_##name(B_ADD, sum, x[k]);                                   \
            break;                                                                                                     \
        case R_PROD:                                                                                                   \
            for (int k = 0; k < n; k++) sum = array_binary_##name(B_MUL, sum, x[k]);                                   \
            break;                                                                                                     \
        case R_ANY:                                                                                                    \
            for (int k = 0; k < n; k++) sum = sum != 0 || x[k] != 0;                                                   \
            break;                                                                                                     \
        case R_ALL:                                                                                                    \
            for (int k = 0; k < n; k++) sum = sum != 0 && x[k] != 0;                                                   \
            break;                                                                                                     \
        default:                                                                                                       \
            for (int k = 0; k < n; k++)                                                                                \
                if (p->place < 0 || beats(op, sum, x[k])) {                                                            \
                    sum = x[k];                                                                                        \
                    p->place = place + k;                                                                              \
                }                                                                                                      \
        }                                                                                                              \
        p->field = sum;                                                                                                \
    }
JOIN(double, double, value, array_beats)
JOIN(long long, integer, integer, array_beats_integer)
#undef JOIN

static void finish(const array_reduce_args *a, long long out, const part *p)
{
    const long long at = array_offset(a->shape, a->rank, a->out.strides, out);
    const bool integer = a->klass == ARRAY_INTEGER;
    if (a->op == R_ARGMAX || a->op == R_ARGMIN)
        array_put_integer(a->out.type, a->out.data, at, p->place);
    else if (a->op == R_MEAN)
        array_put_double(a->out.type, a->out.data, at, (integer ? (double)p->integer : p->value) / (double)a->n_in);
    else if (integer)
        array_put_integer(a->out.type, a->out.data, at, p->integer);
    else
        array_put_double(a->out.type, a->out.data, at, p->value);
}

static void reduce_one(const array_reduce_args *a, long long out)
{
    const long long base = array_offset(a->shape, a->rank, a->in.strides, out);
    const int last = a->over_rank - 1;
    const long long length = last < 0 ? 1 : a->over[last], stride = last < 0 ? 0 : a->over_strides[last];
    union {
        double doubles[RUN];
        long long integers[RUN];
    } x;
    part p;
    start(a, &p);
    for (long long k = 0; k < a->n_in;) {
        const long long at = base + array_offset(a->over, a->over_rank, a->over_strides, k), left = length - k % length;
        const int n = (int)(left < RUN ? left : RUN);
        if (a->klass == ARRAY_INTEGER) {
            load_integer(&a->in, at, stride, n, x.integers);
            join_integer(a->op, &p, n, x.integers, k);
        } else {
            load_double(&a->in, at, stride, n, x.doubles);
            join_double(a->op, &p, n, x.doubles, k);
        }
        k += n;
    }
    finish(a, out, &p);
}

// The results of one item, as many as are worth a thread's waking.
static long long results_an_item(const array_reduce_args *a)
{
    return a->n_in >= REDUCE_ITEM_ELEMENTS ? 1 : REDUCE_ITEM_ELEMENTS / (a->n_in + 1) + 1;
}

static void reduce_item(const void *args, int item)
{
    const array_reduce_args *a = args;
    const long long n = results_an_item(a), end = (item + 1LL) * n < a->n_out ? (item + 1LL) * n : a->n_out;
    for (long long out = item * n; out < end; out++) reduce_one(a, out);
}

wt_status wt__array_cpu_reduce(wt_stream *stream, const array_reduce_args *args)
{
    const long long n = results_an_item(args);
    return wt_stream_run(stream, reduce_item, args, sizeof *args, (int)((args->n_out + n - 1) / n));
}

// ---- lines

typedef struct line {
    const array_line_args *a;
    long long in, out, places;
} line;

static double get(const line *l, long long k)
{
    return array_get_double(l->a->in.type, l->a->in.data, l->in + k * l->a->in_stride);
}

static void put(const line *l, long long k, double x)
{
    array_put_double(l->a->out.type, l->a->out.data, l->out + k * l->a->out_stride, x);
}

static void softmax_line(const line *l)
{
    double most = -INFINITY, sum = 0;
    for (long long k = 0; k < l->a->n; k++)
        if (array_beats(R_MAX, most, get(l, k))) most = get(l, k);
    for (long long k = 0; k < l->a->n; k++) sum += exp(get(l, k) - most);
    const double log_sum = log(sum);
    for (long long k = 0; k < l->a->n; k++) {
        const double x = get(l, k) - most;
        put(l, k, l->a->logarithm ? x - log_sum : exp(x) / sum);
    }
}

static void cumsum_line(const line *l)
{
    const array_line_args *a = l->a;
    double sum = 0;
    unsigned long long integers = 0;
    for (long long k = 0; k < a->n; k++)
        if (a->klass == ARRAY_INTEGER) {
            integers += (unsigned long long)array_get_integer(a->in.type, a->in.data, l->in + k * a->in_stride);
            array_put_integer(a->out.type, a->out.data, l->out + k * a->out_stride, (long long)integers);
        } else {
            sum += get(l, k);
            put(l, k, sum);
        }
}

// Does element j of the line come before element k: larger, or as large and first?
static bool precedes(const line *l, long long j, long long k)
{
    const array_line_args *a = l->a;
    if (a->klass == ARRAY_INTEGER) {
        const long long x = array_get_integer(a->in.type, a->in.data, l->in + j * a->in_stride);
        const long long y = array_get_integer(a->in.type, a->in.data, l->in + k * a->in_stride);
        return x != y ? x > y : j < k;
    }
    const double x = get(l, j), y = get(l, k);
    return array_beats(R_MAX, y, x) || (!array_beats(R_MAX, x, y) && j < k);
}

static void topk_line(const line *l)
{
    const array_line_args *a = l->a;
    for (long long round = 0, last = -1, best; round < a->k; round++, last = best) {
        best = -1;
        for (long long k = 0; k < a->n; k++)
            if ((last < 0 || precedes(l, last, k)) && k != last && (best < 0 || precedes(l, k, best))) best = k;
        const long long from = l->in + best * a->in_stride, to = l->out + round * a->out_stride;
        if (a->places.data)
            array_put_integer(a->places.type, a->places.data, l->places + round * a->places_stride, best);
        if (!a->out.data) continue;
        if (a->klass == ARRAY_INTEGER)
            array_put_integer(a->out.type, a->out.data, to, array_get_integer(a->in.type, a->in.data, from));
        else
            array_put_double(a->out.type, a->out.data, to, get(l, best));
    }
}

typedef struct line_call {
    array_line_args args;
    array_line_op op;
    long long lines_an_item;
} line_call;

static void line_item(const void *args, int item)
{
    static void (*const functions[])(const line *) = {softmax_line, cumsum_line, topk_line};
    const line_call *c = args;
    const array_line_args *a = &c->args;
    long long end = (item + 1) * c->lines_an_item;
    if (end > a->n_lines) end = a->n_lines;
    for (long long k = item * c->lines_an_item; k < end; k++) {
        const line l = {.a = a,
                        .in = array_offset(a->shape, a->rank, a->in.strides, k),
                        .out = array_offset(a->shape, a->rank, a->out.strides, k),
                        .places = array_offset(a->shape, a->rank, a->places.strides, k)};
        functions[c->op](&l);
    }
}

wt_status wt__array_cpu_line(wt_stream *stream, array_line_op op, const array_line_args *args)
{
    const line_call c = {.args = *args, .op = op, .lines_an_item = LINE_ITEM_ELEMENTS / (args->n + 1) + 1};
    return wt_stream_run(stream, line_item, &c, sizeof c,
                         (int)((args->n_lines + c.lines_an_item - 1) / c.lines_an_item));
}

// ---- gather and scatter

static void index_one(const array_index_args *a, long long line, long long j)
{
    const long long at = array_offset(a->shape, a->rank, a->indices.strides, line) + j * a->index_stride;
    const long long index = array_get_integer(a->indices.type, a->indices.data, at);
    const bool inside = index >= 0 && index < a->n_limit, integer = a->klass == ARRAY_INTEGER;
    long long in = array_offset(a->shape, a->rank, a->in.strides, line) + (a->scatter ? j : index) * a->in_stride;
    const long long out =
        array_offset(a->shape, a->rank, a->out.strides, line) + (a->scatter ? index : j) * a->out_stride;
    if (a->scatter && !inside) return;
    if (integer) {
        unsigned long long x = inside ? (unsigned long long)array_get_integer(a->in.type, a->in.data, in) : 0;
        if (a->add) x += (unsigned long long)array_get_integer(a->out.type, a->out.data, out);
        array_put_integer(a->out.type, a->out.data, out, (long long)x);
    } else {
        double x = inside ? array_get_double(a->in.type, a->in.data, in) : 0;
        if (a->add) x += array_get_double(a->out.type, a->out.data, out);
        array_put_double(a->out.type, a->out.data, out, x);
    }
}

static void index_item(const void *args, int item)
{
    const array_index_args *a = args;
    const long long n = LINE_ITEM_ELEMENTS / (a->n + 1) + 1;
    long long end = (item + 1) * n;
    if (end > a->n_lines) end = a->n_lines;
    for (long long line = item * n; line < end; line++)
        for (long long j = 0; j < a->n; j++) index_one(a, line, j);
}

wt_status wt__array_cpu_index(wt_stream *stream, const array_index_args *args)
{
    const long long n = LINE_ITEM_ELEMENTS / (args->n + 1) + 1;
    return wt_stream_run(stream, index_item, args, sizeof *args, (int)((args->n_lines + n - 1) / n));
}
