// Operations on arrays on both backends against plain loops in double, over types, broadcasts and views.
#include "support/device_check.h"
#include "support/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/array.h>
#include <warptone/graph.h>

enum { MAX_BUFFERS = 64 };

typedef struct rig {
    wt_device *device;
    wt_stream *stream;
    wt_arrays *arrays;
    wt_buffer *buffers[MAX_BUFFERS];
    int n_buffers;
} rig;

static rig *rig_of(void **state)
{
    static rig r;
    r = (rig){.device = device_of(state)};
    assert_ok(wt_stream_create(r.device, NULL, &r.stream));
    assert_ok(wt_arrays_create(&(wt_arrays_config){.device = r.device}, &r.arrays));
    return &r;
}

static void end(rig *r)
{
    assert_ok(wt_stream_synchronize(r->stream));
    wt_arrays_destroy(r->arrays);
    for (int k = 0; k < r->n_buffers; k++) wt_buffer_destroy(r->buffers[k]);
    wt_stream_destroy(r->stream);
}

#define SHAPE(...)                                                                                                     \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define TAKE(r, t, ...) take(r, t, SHAPE(__VA_ARGS__))

static wt_array take(rig *r, wt_dtype dtype, int rank, const int64_t *shape)
{
    wt_array a = wt_array_of(16, dtype, rank, shape);
    const size_t bytes = wt_dtype_bytes(dtype, wt_array_elements(&a));
    assert_true(r->n_buffers < MAX_BUFFERS);
    assert_ok(wt_buffer_create(r->device, WT_MEMORY_DEVICE, bytes ? bytes : 1, &r->buffers[r->n_buffers]));
    a.data = wt_buffer_address(r->buffers[r->n_buffers++]);
    return a;
}

static wt_buffer *buffer_of(const rig *r, const wt_array *a)
{
    for (int k = 0; k < r->n_buffers; k++)
        if (wt_buffer_address(r->buffers[k]) == a->data) return r->buffers[k];
    fail_msg("the array is no buffer's begin");
    return NULL;
}

// Values that a type holds, dense arrays: F64, F32 and integers.
static void put(rig *r, const wt_array *a, const double *x)
{
    const int64_t n = wt_array_elements(a);
    const size_t bytes = wt_dtype_bytes(a->dtype, n);
    unsigned char *p = malloc(bytes + 8);
    for (int64_t k = 0; k < n; k++) switch (a->dtype) {
        case WT_DTYPE_F64:
            memcpy(p + 8 * k, &x[k], 8);
            break;
        case WT_DTYPE_F32:
            memcpy(p + 4 * k, &(float){(float)x[k]}, 4);
            break;
        case WT_DTYPE_I64:
            memcpy(p + 8 * k, &(int64_t){(int64_t)x[k]}, 8);
            break;
        case WT_DTYPE_I32:
            memcpy(p + 4 * k, &(int32_t){(int32_t)x[k]}, 4);
            break;
        case WT_DTYPE_I16:
            memcpy(p + 2 * k, &(int16_t){(int16_t)x[k]}, 2);
            break;
        default:
            p[k] = (unsigned char)(int)x[k];
        }
    assert_ok(wt_stream_upload(r->stream, buffer_of(r, a), 0, p, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    free(p);
}

static void get(rig *r, const wt_array *a, double *x)
{
    const int64_t n = wt_array_elements(a);
    const size_t bytes = wt_dtype_bytes(a->dtype, n);
    unsigned char *p = malloc(bytes + 8);
    float *f = malloc(sizeof *f * (size_t)(n + 1));
    assert_ok(wt_stream_download(r->stream, p, buffer_of(r, a), 0, bytes));
    assert_ok(wt_stream_synchronize(r->stream));
    wt_tensor_to_f32(&(wt_tensor){.data = p, .dtype = a->dtype}, 0, n, f);
    for (int64_t k = 0; k < n; k++) {
        int64_t integer = 0;
        x[k] = (double)f[k];
        if (a->dtype == WT_DTYPE_F64) memcpy(&x[k], p + 8 * k, 8);
        if (a->dtype == WT_DTYPE_I64) {
            memcpy(&integer, p + 8 * k, 8);
            x[k] = (double)integer;
        }
    }
    free(p), free(f);
}

static uint64_t seed = 1;
static double uniform(double low, double high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(seed >> 11) * 0x1p-53;
}

static double *values(int64_t n, double low, double high, wt_dtype dtype)
{
    double *x = malloc(sizeof *x * (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        x[k] = uniform(low, high);
        if (dtype == WT_DTYPE_F32) x[k] = (double)(float)x[k];
        if (dtype != WT_DTYPE_F32 && dtype != WT_DTYPE_F64) x[k] = rint(x[k]);
    }
    return x;
}

static void assert_close(const char *what, int64_t at, double got, double want, double bound)
{
    if (isnan(want) && isnan(got)) return;
    if (!(fabs(got - want) <= bound * fmax(fabs(want), 1e-30)) && got != want)
        fail_msg("%s: element %lld is %.17g, want %.17g", what, (long long)at, got, want);
}

// ---- types

static void every_number_of_a_small_type_comes_back(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3, WT_DTYPE_F8_E5M2};
    rig *r = rig_of(state);
    for (int t = 0; t < 4; t++) {
        const int bytes = (int)wt_dtype_bytes(types[t], 1), n = bytes == 2 ? 65536 : 256;
        wt_array small = TAKE(r, types[t], n), wide = TAKE(r, WT_DTYPE_F32, n), again = TAKE(r, types[t], n);
        unsigned char *bits = malloc((size_t)(n * bytes)), *got = malloc((size_t)(n * bytes));
        double *x = malloc(sizeof *x * (size_t)n);
        float *want = malloc(sizeof *want * (size_t)n);
        for (int k = 0; k < n; k++) {
            bits[k * bytes] = (unsigned char)k;
            if (bytes == 2) bits[2 * k + 1] = (unsigned char)(k >> 8);
        }
        wt_tensor_to_f32(&(wt_tensor){.data = bits, .dtype = types[t]}, 0, n, want);
        assert_ok(wt_stream_upload(r->stream, buffer_of(r, &small), 0, bits, (size_t)(n * bytes)));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &small, &wide));
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &wide, &again));
        get(r, &wide, x);
        assert_ok(wt_stream_download(r->stream, got, buffer_of(r, &again), 0, (size_t)(n * bytes)));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < n; k++) {
            if (isnan(want[k])) {
                assert_true(isnan(x[k]));
                continue;
            }
            assert_true(x[k] == (double)want[k]);
            const bool infinite_fp8 = isinf(want[k]) && bytes == 1; // becomes the largest
            if (!infinite_fp8 && memcmp(got + k * bytes, bits + k * bytes, (size_t)bytes))
                fail_msg("%s: bits %#x come back as %#x", wt_dtype_name(types[t]), (unsigned)k, got[k * bytes]);
        }
        free(bits), free(got), free(x), free(want);
    }
    end(r);
}

// No neighbour is nearer, and of two as near the even one is taken.
static void floats_are_rounded_to_the_nearest(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3, WT_DTYPE_F8_E5M2};
    enum { N = 4096 };
    rig *r = rig_of(state);
    double x[N];
    for (int t = 0; t < 4; t++) {
        const int bytes = (int)wt_dtype_bytes(types[t], 1), largest = bytes == 2 ? 0x7b00 : t == 2 ? 0x7d : 0x7a;
        wt_array wide = TAKE(r, WT_DTYPE_F32, N), small = TAKE(r, types[t], N);
        unsigned char bits[2 * N];
        for (int k = 0; k < N; k++) { // numbers between neighbours, every fourth in the middle
            float two[2];
            const unsigned low = (unsigned)uniform(0, largest);
            const uint16_t pair16[2] = {(uint16_t)low, (uint16_t)(low + 1)};
            const uint8_t pair8[2] = {(uint8_t)low, (uint8_t)(low + 1)};
            wt_tensor_to_f32(&(wt_tensor){.data = bytes == 2 ? (const void *)pair16 : pair8, .dtype = types[t]}, 0, 2,
                             two);
            const double share = k % 4 ? uniform(0, 1) : 0.5;
            x[k] = (double)(float)((double)two[0] + share * ((double)two[1] - (double)two[0]));
            if (k % 3 == 0) x[k] = -x[k];
        }
        put(r, &wide, x);
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &wide, &small));
        assert_ok(wt_stream_download(r->stream, bits, buffer_of(r, &small), 0, (size_t)(N * bytes)));
        assert_ok(wt_stream_synchronize(r->stream));
        for (int k = 0; k < N; k++) {
            const unsigned own = bytes == 2 ? (unsigned)bits[2 * k] | (unsigned)bits[2 * k + 1] << 8 : bits[k];
            const unsigned m = own & (bytes == 2 ? 0x7fff : 0x7f);
            for (int side = -1; side <= 1; side += 2) {
                if (!m && side < 0) continue;
                const uint16_t near16[2] = {(uint16_t)m, (uint16_t)(m + (unsigned)side)};
                const uint8_t near8[2] = {(uint8_t)m, (uint8_t)(m + (unsigned)side)};
                float near[2];
                wt_tensor_to_f32(&(wt_tensor){.data = bytes == 2 ? (const void *)near16 : near8, .dtype = types[t]}, 0,
                                 2, near);
                const double mine = fabs(fabs(x[k]) - (double)near[0]), other = fabs(fabs(x[k]) - (double)near[1]);
                if (mine > other || (mine == other && m & 1))
                    fail_msg("%s: %.9g becomes %#x", wt_dtype_name(types[t]), x[k], own);
            }
        }
    }
    end(r);
}

static void casts_saturate_and_wrap(void **state)
{
    rig *r = rig_of(state);
    const double floats[] = {1.9, -1.9, 300, -300, 1e10, -1e10, NAN, INFINITY}, integers[] = {257, -1, 70000, 3};
    const double as_i8[] = {1, -1, 127, -128, 127, -128, 0, 127}, as_u8[] = {1, 0, 255, 0, 255, 0, 0, 255};
    const double wrapped[] = {1, 255, 112, 3}, as_e4m3[] = {1.875, -1.875, 288, -288, 448, -448, NAN, 448};
    wt_array f = TAKE(r, WT_DTYPE_F32, 8), i = TAKE(r, WT_DTYPE_I32, 4);
    const struct {
        const wt_array *from;
        wt_dtype to;
        const double *want;
    } cases[] = {{&f, WT_DTYPE_I8, as_i8},
                 {&f, WT_DTYPE_U8, as_u8},
                 {&i, WT_DTYPE_U8, wrapped},
                 {&f, WT_DTYPE_F8_E4M3, as_e4m3}};
    put(r, &f, floats);
    put(r, &i, integers);
    for (int k = 0; k < 4; k++) {
        double got[8];
        wt_array to = take(r, cases[k].to, 1, cases[k].from->shape);
        assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, cases[k].from, &to));
        get(r, &to, got);
        for (int n = 0; n < (int)to.shape[0]; n++)
            assert_close(wt_dtype_name(to.dtype), n, got[n], cases[k].want[n], 0);
    }
    end(r);
}

// ---- elementwise

static double unary(wt_unary op, double x)
{
    switch (op) {
    case WT_UNARY_COPY:
        return x;
    case WT_UNARY_NEG:
        return -x;
    case WT_UNARY_ABS:
        return fabs(x);
    case WT_UNARY_SIGN:
        return (x > 0) - (x < 0);
    case WT_UNARY_SQUARE:
        return x * x;
    case WT_UNARY_RECIPROCAL:
        return 1 / x;
    case WT_UNARY_SQRT:
        return sqrt(x);
    case WT_UNARY_RSQRT:
        return pow(x, -0.5);
    case WT_UNARY_EXP:
        return exp(x);
    case WT_UNARY_EXPM1:
        return expm1(x);
    case WT_UNARY_LOG:
        return log(x);
    case WT_UNARY_LOG1P:
        return log1p(x);
    case WT_UNARY_SIN:
        return sin(x);
    case WT_UNARY_COS:
        return cos(x);
    case WT_UNARY_TANH:
        return tanh(x);
    case WT_UNARY_ERF:
        return erf(x);
    case WT_UNARY_SIGMOID:
        return 1 / (1 + exp(-x));
    case WT_UNARY_RELU:
        return fmax(x, 0);
    case WT_UNARY_RELU2:
        return fmax(x, 0) * fmax(x, 0);
    case WT_UNARY_SILU:
        return x / (1 + exp(-x));
    case WT_UNARY_GELU:
        return x * erfc(-x / sqrt(2)) / 2;
    case WT_UNARY_GELU_TANH:
        return x * (1 + tanh(sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x))) / 2;
    case WT_UNARY_FLOOR:
        return floor(x);
    case WT_UNARY_CEIL:
        return ceil(x);
    case WT_UNARY_RINT:
        return nearbyint(x);
    case WT_UNARY_IS_NAN:
        return isnan(x) != 0;
    default:
        return x == 0;
    }
}

static bool needs_positive(wt_unary op)
{
    return op == WT_UNARY_SQRT || op == WT_UNARY_RSQRT || op == WT_UNARY_LOG || op == WT_UNARY_LOG1P;
}

static void unary_operations_are_those_of_the_library(void **state)
{
    enum { N = 3000 };
    rig *r = rig_of(state);
    for (int t = 0; t < 3; t++) {
        const wt_dtype type = (wt_dtype[]){WT_DTYPE_F32, WT_DTYPE_F64, WT_DTYPE_I32}[t];
        double got[N], *any = values(N, -3, 3, type), *positive = values(N, 0.1, 30, type);
        wt_array x = TAKE(r, type, N), out = TAKE(r, t == 2 ? WT_DTYPE_F64 : type, N);
        for (int op = 0; op < WT_N_UNARY; op++) {
            const double *in = needs_positive((wt_unary)op) ? positive : any;
            put(r, &x, in);
            assert_ok(wt_array_unary(r->arrays, r->stream, (wt_unary)op, &x, &out));
            get(r, &out, got);
            // near -3 gelu's 1 + erf cancels; its bound is that of x
            const double bound = t ? 4e-15 : 4e-7;
            for (int k = 0; k < N; k++) {
                const double want = unary((wt_unary)op, in[k]);
                const bool cancels = op == WT_UNARY_GELU || op == WT_UNARY_GELU_TANH;
                if (cancels ? fabs(got[k] - want) > bound * fabs(in[k]) : false)
                    fail_msg("%d: %.17g gives %.17g, want %.17g", op, in[k], got[k], want);
                if (!cancels) assert_close("unary", op * 10000 + k, got[k], want, bound);
            }
        }
        free(any), free(positive);
    }
    end(r);
}

static double modulo(double a, double b) { return a - b * floor(a / b); }

static double binary(wt_binary op, double a, double b, bool integer)
{
    switch (op) {
    case WT_BINARY_ADD:
        return a + b;
    case WT_BINARY_SUB:
        return a - b;
    case WT_BINARY_MUL:
        return a * b;
    case WT_BINARY_DIV:
        return integer ? (b == 0 ? 0 : trunc(a / b)) : a / b;
    case WT_BINARY_MOD:
        return integer && b == 0 ? 0 : modulo(a, b);
    case WT_BINARY_POW:
        return integer ? trunc(pow(a, b)) : pow(a, b);
    case WT_BINARY_MIN:
        return fmin(a, b);
    case WT_BINARY_MAX:
        return fmax(a, b);
    case WT_BINARY_ATAN2:
        return atan2(a, b);
    case WT_BINARY_EQ:
        return a == b;
    case WT_BINARY_NE:
        return a != b;
    case WT_BINARY_LT:
        return a < b;
    case WT_BINARY_LE:
        return a <= b;
    case WT_BINARY_GT:
        return a > b;
    case WT_BINARY_GE:
        return a >= b;
    case WT_BINARY_AND:
        return (double)((int64_t)a & (int64_t)b);
    case WT_BINARY_OR:
        return (double)((int64_t)a | (int64_t)b);
    default:
        return (double)((int64_t)a ^ (int64_t)b);
    }
}

// a [4][1][30] seen transposed, b [5][30] every second column of 60, out [4][5][30] seen from [30][4][5].
static void binary_operations_broadcast_over_views(void **state)
{
    rig *r = rig_of(state);
    for (int t = 0; t < 3; t++) {
        const wt_dtype type = (wt_dtype[]){WT_DTYPE_F32, WT_DTYPE_F64, WT_DTYPE_I64}[t];
        const bool integer = t == 2;
        wt_array a = TAKE(r, type, 30, 4), b = TAKE(r, type, 5, 60), out = TAKE(r, type, 30, 4, 5), ta, tb, to;
        double *x = values(120, -4, 4, type), *y = values(300, 0.5, 4, type), got[600];
        put(r, &a, x);
        put(r, &b, y);
        assert_ok(wt_array_transpose(&a, (const int[]){1, 0}, &ta));
        assert_ok(wt_array_reshape(&ta, SHAPE(4, 1, 30), &ta));
        assert_ok(wt_array_slice(&b, 1, 0, 60, 2, &tb));
        assert_ok(wt_array_transpose(&out, (const int[]){1, 2, 0}, &to));
        for (int op = 0; op < WT_N_BINARY; op++) {
            if (!integer && op >= WT_BINARY_AND) continue;
            if (integer && op == WT_BINARY_ATAN2) continue;
            assert_ok(wt_array_binary(r->arrays, r->stream, (wt_binary)op, &ta, &tb, &to));
            get(r, &out, got);
            for (int k = 0; k < 600; k++) {
                const int column = k / 20, row = k / 5 % 4, middle = k % 5;
                const double p = x[column * 4 + row], q = y[middle * 60 + 2 * column];
                if (!integer && op == WT_BINARY_POW && p < 0) {
                    assert_true(isnan(got[k]) || q == rint(q));
                    continue;
                }
                // a remainder near 0 keeps the rounding of the operands
                const double slack = op == WT_BINARY_MOD && !integer ? (t ? 1e-14 : 1e-6) : 0;
                const double want = binary((wt_binary)op, p, q, integer);
                if (fabs(got[k] - want) > slack && fabs(fabs(got[k] - want) - q) > slack)
                    assert_close("binary", op * 1000 + k, got[k], want, t ? 1e-14 : 5e-7);
            }
        }
        free(x), free(y);
    }
    end(r);
}

static void numbers_that_are_none_are_kept(void **state)
{
    rig *r = rig_of(state);
    const double x[] = {NAN, 1, NAN, 5}, y[] = {2, NAN, NAN, 4};
    double got[4];
    wt_array a = TAKE(r, WT_DTYPE_F32, 4), b = TAKE(r, WT_DTYPE_F32, 4), out = TAKE(r, WT_DTYPE_F32, 4);
    put(r, &a, x);
    put(r, &b, y);
    for (int op = WT_BINARY_MIN; op <= WT_BINARY_MAX; op++) {
        assert_ok(wt_array_binary(r->arrays, r->stream, (wt_binary)op, &a, &b, &out));
        get(r, &out, got);
        assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]) && got[3] == (op == WT_BINARY_MIN ? 4 : 5));
    }
    const wt_array low = wt_array_constant(WT_DTYPE_F32, 0), high = wt_array_constant(WT_DTYPE_F32, 2);
    assert_ok(wt_array_clamp(r->arrays, r->stream, &a, &low, &high, &out));
    get(r, &out, got);
    assert_true(isnan(got[0]) && got[1] == 1 && got[3] == 2);
    assert_ok(wt_array_where(r->arrays, r->stream, &b, &high, &a, &out)); // a NaN is not 0
    get(r, &out, got);
    assert_true(got[0] == 2 && got[1] == 2 && got[3] == 2);
    end(r);
}

static void arange_and_constants_fill(void **state)
{
    rig *r = rig_of(state);
    double got[12];
    wt_array out = TAKE(r, WT_DTYPE_F32, 3, 4), t, one = wt_array_constant(WT_DTYPE_F32, 1.5);
    assert_ok(wt_array_transpose(&out, (const int[]){1, 0}, &t));
    assert_ok(wt_array_arange(r->arrays, r->stream, 2, -0.5, &t));
    get(r, &out, got);
    for (int k = 0; k < 12; k++) assert_true(got[k] == 2 - 0.5 * (k % 4 * 3 + k / 4));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &one, &out));
    get(r, &out, got);
    for (int k = 0; k < 12; k++) assert_true(got[k] == 1.5);
    wt_array nothing = TAKE(r, WT_DTYPE_F32, 0, 4);
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &one, &nothing));
    end(r);
}

// ---- reductions

static double reduced(wt_reduce op, const double *x, const int64_t *places, int n)
{
    double y = op == WT_REDUCE_PROD || op == WT_REDUCE_ALL;
    int at = 0;
    for (int k = 0; k < n; k++) {
        const double v = x[places[k]];
        if (op == WT_REDUCE_SUM || op == WT_REDUCE_MEAN) y += v;
        if (op == WT_REDUCE_PROD) y *= v;
        if (op == WT_REDUCE_ANY) y = y != 0 || v != 0;
        if (op == WT_REDUCE_ALL) y = y != 0 && v != 0;
        if ((op == WT_REDUCE_MAX || op == WT_REDUCE_ARGMAX) && v > x[places[at]]) at = k;
        if ((op == WT_REDUCE_MIN || op == WT_REDUCE_ARGMIN) && v < x[places[at]]) at = k;
    }
    if (op == WT_REDUCE_MAX || op == WT_REDUCE_MIN) return x[places[at]];
    if (op == WT_REDUCE_ARGMAX || op == WT_REDUCE_ARGMIN) return at;
    return op == WT_REDUCE_MEAN ? y / n : y;
}

static void reductions_over_any_axes(void **state)
{
    enum { A = 3, B = 70, C = 2, D = 5, N = A * B * C * D };
    static const int extents[] = {A, B, C, D}, strides[] = {B * C * D, C * D, D, 1};
    rig *r = rig_of(state);
    double got[N];
    int64_t places[N];
    for (int t = 0; t < 2; t++) {
        const wt_dtype type = t ? WT_DTYPE_I32 : WT_DTYPE_F32;
        double *x = values(N, t ? -2 : 0.95, t ? 3 : 1.05, type);
        wt_array in = TAKE(r, type, A, B, C, D);
        put(r, &in, x);
        for (unsigned axes = 1; axes < 16; axes++) {
            int64_t shape[4];
            int n_out = 1, n_in = 1, rank = 0;
            for (int d = 0; d < 4; d++)
                if (axes >> d & 1)
                    n_in *= extents[d];
                else
                    n_out *= extents[d], shape[rank++] = extents[d];
            for (int op = 0; op < WT_N_REDUCE; op++) {
                if (t && op == WT_REDUCE_PROD) continue; // overflows
                r->n_buffers = t + 1;                    // of earlier results nothing is needed
                wt_array out = take(r, op == WT_REDUCE_MEAN || !t ? WT_DTYPE_F64 : WT_DTYPE_I64, rank, shape);
                assert_ok(wt_array_reduce(r->arrays, r->stream, (wt_reduce)op, &in, axes, &out));
                get(r, &out, got);
                wt_buffer_destroy(r->buffers[--r->n_buffers]);
                for (int o = 0; o < n_out; o++) {
                    for (int k = 0; k < n_in; k++) {
                        int64_t at = 0;
                        for (int d = 3, ro = o, ri = k; d >= 0; d--) {
                            int *rest = axes >> d & 1 ? &ri : &ro;
                            at += *rest % extents[d] * strides[d];
                            *rest /= extents[d];
                        }
                        places[k] = at;
                    }
                    assert_close("reduction", op * 100 + (int)axes, got[o], reduced((wt_reduce)op, x, places, n_in),
                                 1e-12);
                }
            }
        }
        free(x);
    }
    end(r);
}

static void long_reductions_and_their_nans(void **state)
{
    enum { N = 1000003 };
    rig *r = rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, N), sum = take(r, WT_DTYPE_F64, 0, NULL),
             place = take(r, WT_DTYPE_I64, 0, NULL);
    double *x = values(N, -1, 1, WT_DTYPE_F32), want = 0, got;
    for (int k = 0; k < N; k++) want += x[k];
    put(r, &in, x);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &in, 0, &sum));
    get(r, &sum, &got);
    assert_true(fabs(got - want) < 1e-9);
    x[777777] = 2;
    x[777778] = 2; // the first of equals
    put(r, &in, x);
    assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_ARGMAX, &in, 0, &place));
    get(r, &place, &got);
    assert_true(got == 777777);
    x[900000] = x[5000] = NAN;
    put(r, &in, x);
    for (int op = WT_REDUCE_MAX; op <= WT_REDUCE_ARGMIN; op++) {
        const bool is_place = op >= WT_REDUCE_ARGMAX;
        assert_ok(wt_array_reduce(r->arrays, r->stream, (wt_reduce)op, &in, 0, is_place ? &place : &sum));
        get(r, is_place ? &place : &sum, &got);
        assert_true(is_place ? got == 5000 : isnan(got));
    }
    free(x);
    end(r);
}

// ---- lines

static void lines_along_each_axis(void **state)
{
    enum { A = 3, B = 1500, C = 4, N = A * B * C };
    rig *r = rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, A, B, C), out = TAKE(r, WT_DTYPE_F64, A, B, C);
    double *x = values(N, -5, 5, WT_DTYPE_F32), *got = malloc(sizeof *got * N);
    static const int extents[] = {A, B, C}, strides[] = {B * C, C, 1};
    put(r, &in, x);
    for (int axis = 0; axis < 3; axis++)
        for (int kind = 0; kind < 3; kind++) { // softmax, its logarithm, sums
            assert_ok(kind < 2 ? wt_array_softmax(r->arrays, r->stream, &in, axis, kind == 1, &out)
                               : wt_array_cumsum(r->arrays, r->stream, &in, axis, &out));
            get(r, &out, got);
            for (int k = 0; k < N; k++) {
                const int step = strides[axis], first = k - k / step % extents[axis] * step;
                double sum = 0;
                for (int j = 0; j < extents[axis]; j++) {
                    const int at = first + j * step;
                    if (kind < 2)
                        sum += exp(x[at]);
                    else if (at <= k)
                        sum += x[at];
                }
                const double want = kind == 0 ? exp(x[k]) / sum : kind == 1 ? x[k] - log(sum) : sum;
                if (fabs(got[k] - want) > 1e-11) fail_msg("axis %d, %d: %.17g, want %.17g", axis, k, got[k], want);
            }
        }
    wt_array integers = TAKE(r, WT_DTYPE_I32, N), sums = TAKE(r, WT_DTYPE_I64, N);
    for (int k = 0; k < N; k++) x[k] = rint(x[k] * 1e6);
    put(r, &integers, x);
    assert_ok(wt_array_cumsum(r->arrays, r->stream, &integers, 0, &sums));
    get(r, &sums, got);
    double sum = 0;
    for (int k = 0; k < N; k++) assert_true(got[k] == (sum += x[k]));
    free(x), free(got);
    end(r);
}

static void the_largest_come_first_and_the_first_of_equals(void **state)
{
    enum { LINES = 3, N = 1000, K = 20 };
    rig *r = rig_of(state);
    wt_array in = TAKE(r, WT_DTYPE_F32, LINES, N), top = TAKE(r, WT_DTYPE_F32, LINES, K),
             at = TAKE(r, WT_DTYPE_I32, LINES, K);
    double *x = values(LINES * N, -100, 100, WT_DTYPE_I32), got[LINES * K], places[LINES * K]; // integers: many equals
    put(r, &in, x);
    assert_ok(wt_array_topk(r->arrays, r->stream, &in, K, &top, &at));
    get(r, &top, got);
    get(r, &at, places);
    for (int l = 0; l < LINES; l++)
        for (int k = 0; k < K; k++) {
            const int own = (int)places[l * K + k];
            int before = 0; // how many come before it
            for (int j = 0; j < N; j++)
                before += x[l * N + j] > x[l * N + own] || (x[l * N + j] == x[l * N + own] && j < own);
            assert_int_equal(before, k);
            assert_true(got[l * K + k] == x[l * N + own]);
        }
    free(x);
    end(r);
}

// ---- indices, pieces

static void gather_and_scatter_are_each_others_ways_back(void **state)
{
    enum { A = 4, B = 300, C = 7, M = 50 };
    rig *r = rig_of(state);
    wt_array table = TAKE(r, WT_DTYPE_F32, A, B, C), picked = TAKE(r, WT_DTYPE_F32, A, M, C),
             index = TAKE(r, WT_DTYPE_I64, M);
    wt_array sums = TAKE(r, WT_DTYPE_F32, A, B, C), zero = wt_array_constant(WT_DTYPE_F32, 0);
    double *x = values(A * B * C, -1, 1, WT_DTYPE_F32), *got = malloc(sizeof *got * A * B * C),
           *want = calloc(A * B * C, sizeof *want);
    double at[M];
    for (int k = 0; k < M; k++) at[k] = rint(uniform(0, B / 10)); // some more than once
    at[3] = -1, at[4] = B;
    put(r, &table, x);
    put(r, &index, at);
    assert_ok(wt_array_gather(r->arrays, r->stream, &table, 1, &index, &picked));
    get(r, &picked, got);
    for (int k = 0; k < A * M * C; k++) {
        const int m = k / C % M, a = k / C / M, c = k % C;
        assert_true(got[k] == (m == 3 || m == 4 ? 0 : x[(a * B + (int)at[m]) * C + c]));
        if (m != 3 && m != 4) want[(a * B + (int)at[m]) * C + c] += (float)got[k];
    }
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &zero, &sums));
    assert_ok(wt_array_scatter(r->arrays, r->stream, &picked, 1, &index, true, &sums));
    get(r, &sums, got);
    for (int k = 0; k < A * B * C; k++) assert_true(fabs(got[k] - want[k]) < 1e-5);
    free(x), free(got), free(want);
    end(r);
}

static void indices_of_each_line_of_their_own(void **state)
{
    rig *r = rig_of(state);
    const double x[] = {10, 11, 12, 20, 21, 22}, at[] = {2, 0, 1, 1};
    double got[6];
    wt_array in = TAKE(r, WT_DTYPE_I16, 2, 3), index = TAKE(r, WT_DTYPE_I32, 2, 2), out = TAKE(r, WT_DTYPE_I16, 2, 2);
    put(r, &in, x);
    put(r, &index, at);
    assert_ok(wt_array_gather(r->arrays, r->stream, &in, 1, &index, &out));
    get(r, &out, got);
    assert_true(got[0] == 12 && got[1] == 10 && got[2] == 21 && got[3] == 21);
    assert_ok(wt_array_scatter(r->arrays, r->stream, &out, 1, &index, false, &in));
    get(r, &in, got); // 12 goes to place 2, 10 to 0; the last of equals stays
    assert_true(got[0] == 10 && got[1] == 11 && got[2] == 12 && got[4] == 21);
    end(r);
}

static void pieces_are_put_together_and_cut_again(void **state)
{
    rig *r = rig_of(state);
    double *x = values(24, -9, 9, WT_DTYPE_F32), got[24];
    wt_array a = TAKE(r, WT_DTYPE_F32, 2, 3, 2), b = TAKE(r, WT_DTYPE_F32, 2, 1, 2),
             out = TAKE(r, WT_DTYPE_F32, 2, 4, 2), part;
    wt_array again = TAKE(r, WT_DTYPE_F32, 2, 1, 2);
    put(r, &a, x);
    put(r, &b, x + 12);
    assert_ok(wt_array_concat(r->arrays, r->stream, (const wt_array[]){a, b}, 2, 1, &out));
    get(r, &out, got);
    for (int k = 0; k < 16; k++) {
        const int row = k / 2 % 4, outer = k / 8, c = k % 2;
        assert_true(got[k] == (row < 3 ? x[outer * 6 + row * 2 + c] : x[12 + outer * 2 + c]));
    }
    assert_ok(wt_array_slice(&out, 1, -1, 4, 1, &part));
    assert_ok(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &part, &again));
    get(r, &again, got);
    for (int k = 0; k < 4; k++) assert_true(got[k] == x[12 + k]);
    free(x);
    end(r);
}

// ---- random numbers

// The first words of counter 0 and key 0 are those of Random123's known answers.
static void random_numbers_are_philox(void **state)
{
    enum { N = 200000 };
    rig *r = rig_of(state);
    double *x = malloc(sizeof *x * N), mean = 0, square = 0, got[4];
    wt_array bits = TAKE(r, WT_DTYPE_I64, 1), u = TAKE(r, WT_DTYPE_F64, N), two = TAKE(r, WT_DTYPE_F64, 2, 2), view;
    int64_t first;
    assert_ok(wt_array_random(r->arrays, r->stream, WT_RANDOM_BITS, 0, 0, &bits));
    assert_ok(wt_stream_download(r->stream, &first, buffer_of(r, &bits), 0, sizeof first));
    assert_ok(wt_stream_synchronize(r->stream));
    assert_true(first == (int64_t)(0x6627e8d5e169c58dull >> 1));
    for (int kind = WT_RANDOM_UNIFORM; kind <= WT_RANDOM_NORMAL; kind++) {
        assert_ok(wt_array_random(r->arrays, r->stream, (wt_random)kind, 42, 1000, &u));
        get(r, &u, x);
        mean = square = 0;
        for (int k = 0; k < N; k++) {
            mean += x[k] / N, square += x[k] * x[k] / N;
            if (kind == WT_RANDOM_UNIFORM) assert_true(x[k] >= 0 && x[k] < 1);
        }
        // five standard deviations of the mean and of the mean square
        assert_true(fabs(mean - (kind ? 0 : 0.5)) < 5 * (kind ? 1 : 0.289) / sqrt(N));
        assert_true(fabs(square - (kind ? 1 : 1.0 / 3)) < 5 * (kind ? 1.42 : 0.299) / sqrt(N));
        assert_ok(wt_array_transpose(&two, (const int[]){1, 0}, &view));
        assert_ok(wt_array_random(r->arrays, r->stream, (wt_random)kind, 42, 1005, &view));
        get(r, &two, got);
        assert_true(got[0] == x[5] && got[2] == x[6] && got[1] == x[7] && got[3] == x[8]);
    }
    wt_array f = TAKE(r, WT_DTYPE_F32, N);
    assert_ok(wt_array_random(r->arrays, r->stream, WT_RANDOM_UNIFORM, 7, 0, &f));
    get(r, &f, x);
    for (int k = 0; k < N; k++) assert_true(x[k] >= 0 && x[k] < 1);
    free(x);
    end(r);
}

// ---- views, graphs, refusals

static void a_graph_gives_the_same_again(void **state)
{
    enum { N = 5000 };
    rig *r = rig_of(state);
    wt_array x = TAKE(r, WT_DTYPE_F32, N), sum = TAKE(r, WT_DTYPE_F32, 1), out = TAKE(r, WT_DTYPE_F32, N);
    double direct[N], replayed[N], *in = values(N, -1, 1, WT_DTYPE_F32);
    wt_graph *graph = NULL;
    put(r, &x, in);
    for (int turn = 0; turn < 2; turn++) {
        if (turn) assert_ok(wt_graph_begin(r->stream, &graph));
        assert_ok(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &x, 1, &sum));
        assert_ok(wt_array_binary(r->arrays, r->stream, WT_BINARY_DIV, &x, &sum, &out));
        if (turn) assert_ok(wt_graph_end(graph));
        if (turn) assert_ok(wt_graph_launch(graph, r->stream));
        get(r, &out, turn ? replayed : direct);
    }
    assert_memory_equal(direct, replayed, sizeof direct);
    wt_graph_destroy(graph);
    free(in);
    end(r);
}

static void refusals_name_what_was_met(void **state)
{
    rig *r = rig_of(state);
    wt_array a = TAKE(r, WT_DTYPE_F32, 2, 3), b = TAKE(r, WT_DTYPE_F32, 4), i = TAKE(r, WT_DTYPE_I32, 3), v, odd = a;
    assert_fails(wt_array_binary(r->arrays, r->stream, WT_BINARY_ADD, &a, &b, &a), WT_ERR_BAD_ARG,
                 "array: [4] does not broadcast to [2][3]");
    assert_fails(wt_array_binary(r->arrays, r->stream, WT_BINARY_AND, &a, &a, &a), WT_ERR_UNSUPPORTED,
                 "array: bits of F32 and F32 to F32, want integers");
    assert_fails(wt_array_unary(r->arrays, r->stream, (wt_unary)99, &a, &a), WT_ERR_BAD_ARG,
                 "array: unary operation 99, want 0..26");
    assert_fails(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &a, 2, &b), WT_ERR_BAD_ARG,
                 "array: [2][3] reduced over axes 0x2 into [4], want the extents that are left");
    assert_fails(wt_array_reduce(r->arrays, r->stream, WT_REDUCE_SUM, &a, 8, &b), WT_ERR_BAD_ARG,
                 "array: axes 0x8 of 2");
    assert_fails(wt_array_softmax(r->arrays, r->stream, &a, 2, false, &a), WT_ERR_BAD_ARG,
                 "array: softmax along axis 2 of 2, want 0..1");
    assert_fails(wt_array_topk(r->arrays, r->stream, &a, 4, &a, NULL), WT_ERR_BAD_ARG, "array: the largest 4 of 3");
    assert_fails(wt_array_gather(r->arrays, r->stream, &a, 1, &b, &a), WT_ERR_UNSUPPORTED,
                 "array: indices of type F32, want integers");
    assert_fails(wt_array_random(r->arrays, r->stream, WT_RANDOM_NORMAL, 0, 0, &i), WT_ERR_UNSUPPORTED,
                 "array: random numbers of type I32, want floats");
    assert_fails(wt_array_reshape(&a, SHAPE(4, -1), &v), WT_ERR_BAD_ARG,
                 "array: [2][3] as [4][-1], want as many elements");
    assert_ok(wt_array_transpose(&a, (const int[]){1, 0}, &v));
    assert_fails(wt_array_reshape(&v, SHAPE(6), &v), WT_ERR_BAD_ARG,
                 "array: [3][2] as [6]: its strides allow no such view, want a copy");
    assert_fails(wt_array_slice(&a, 1, 2, 1, 1, &v), WT_ERR_BAD_ARG,
                 "array: elements 2..1 in steps of 1 of 3, want a range in it");
    assert_fails(wt_array_transpose(&a, (const int[]){0, 0}, &v), WT_ERR_BAD_ARG,
                 "array: axis 1 is 0 of 2, want each once");
    assert_ok(wt_array_broadcast(&b, SHAPE(3, 4), &v));
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &v, &v), WT_ERR_BAD_ARG,
                 "array: the result repeats along axis 0, want a place for each element");
    odd.data += 2;
    assert_int_equal(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "want an address aligned to its type"));
    odd.data = 0;
    assert_int_equal(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_BAD_ARG);
    odd = a;
    odd.dtype = WT_DTYPE_Q8_0;
    assert_fails(wt_array_unary(r->arrays, r->stream, WT_UNARY_COPY, &odd, &a), WT_ERR_UNSUPPORTED,
                 "array: an operand of type Q8_0, want F32 .. BOOL");
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_small_type_comes_back),
        cmocka_unit_test(floats_are_rounded_to_the_nearest),
        cmocka_unit_test(casts_saturate_and_wrap),
        cmocka_unit_test(unary_operations_are_those_of_the_library),
        cmocka_unit_test(binary_operations_broadcast_over_views),
        cmocka_unit_test(numbers_that_are_none_are_kept),
        cmocka_unit_test(arange_and_constants_fill),
        cmocka_unit_test(reductions_over_any_axes),
        cmocka_unit_test(long_reductions_and_their_nans),
        cmocka_unit_test(lines_along_each_axis),
        cmocka_unit_test(the_largest_come_first_and_the_first_of_equals),
        cmocka_unit_test(gather_and_scatter_are_each_others_ways_back),
        cmocka_unit_test(indices_of_each_line_of_their_own),
        cmocka_unit_test(pieces_are_put_together_and_cut_again),
        cmocka_unit_test(random_numbers_are_philox),
        cmocka_unit_test(a_graph_gives_the_same_again),
        cmocka_unit_test(refusals_name_what_was_met),
    };
    int failed = cmocka_run_group_tests_name("array on the CPU", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("array on a GPU", tests, open_cuda, close_device);
}
