// Operations on arrays, shared by the CPU and the GPU: arguments, types of elements, and what is done with each.
//
// Values are computed as float, double or long long (ARRAY_FLOAT ..), whichever `klass` says; elements are read from
// and written to their own types here, to the same bits on both backends.
#ifndef WT_ARRAY_KERNEL_H
#define WT_ARRAY_KERNEL_H
#include "fastmath_kernel.h"
#include "philox_kernel.h"

#define ARRAY_MAX_RANK 8
#define ARRAY_INPUTS   3

// Types: the order of wt_dtype's first twelve, and its three of 4 bits, two a byte, the first in the low nibble.
enum { ARRAY_F32, ARRAY_F64, ARRAY_F16, ARRAY_BF16, ARRAY_E4M3, ARRAY_E5M2, ARRAY_I64, ARRAY_I32, ARRAY_I16, ARRAY_I8,
       ARRAY_U8, ARRAY_BOOL, ARRAY_I4 = 16, ARRAY_U4, ARRAY_F4 };
enum { ARRAY_INTEGER, ARRAY_FLOAT, ARRAY_DOUBLE }; // klass

// Of array_map: the unary operations have their own numbers, then the binary ones, then these.
#define ARRAY_BINARY  32
#define ARRAY_WHERE   64
#define ARRAY_CLAMP   65
#define ARRAY_ARANGE  66
#define ARRAY_UNIFORM 67
#define ARRAY_NORMAL  68
#define ARRAY_BITS    69

// The orders of wt_unary, wt_binary and wt_reduce.
enum { U_COPY, U_NEG, U_ABS, U_SIGN, U_SQUARE, U_RECIPROCAL, U_SQRT, U_RSQRT, U_EXP, U_EXPM1, U_LOG, U_LOG1P, U_SIN,
       U_COS, U_TANH, U_ERF, U_SIGMOID, U_RELU, U_RELU2, U_SILU, U_GELU, U_GELU_TANH, U_FLOOR, U_CEIL, U_RINT,
       U_IS_NAN, U_NOT, U_END };
enum { B_ADD, B_SUB, B_MUL, B_DIV, B_MOD, B_POW, B_MIN, B_MAX, B_ATAN2, B_EQ, B_NE, B_LT, B_LE, B_GT, B_GE, B_AND,
       B_OR, B_XOR, B_END };
enum { R_SUM, R_MEAN, R_PROD, R_MAX, R_MIN, R_ARGMAX, R_ARGMIN, R_ANY, R_ALL, R_END };

typedef struct array_operand {
    void *data; // NULL = the constant
    long long strides[ARRAY_MAX_RANK];
    double value;
    int type;
} array_operand;

typedef struct array_map_args {
    array_operand in[ARRAY_INPUTS], out;
    long long shape[ARRAY_MAX_RANK];
    long long n; // elements
    double first, step; // arange
    unsigned long long seed, count; // random
    int rank, op, klass;
} array_map_args;

// Each of n_out results goes over n_in elements; pieces of `piece` elements are put together afterwards, in order.
typedef struct array_reduce_args {
    array_operand in, out;
    void *partials; // [n_out][n_pieces] of array_partial; NULL with one piece
    long long shape[ARRAY_MAX_RANK], over[ARRAY_MAX_RANK]; // of the results; of what each goes over
    long long over_strides[ARRAY_MAX_RANK];                // of `in`; in.strides are those along `shape`
    long long n_out, n_in, piece;
    int rank, over_rank, n_pieces, op, klass; // klass: ARRAY_INTEGER or ARRAY_DOUBLE
} array_reduce_args;

typedef struct array_partial {
    double value;     // or, of integers, their bits
    long long place; // of the extreme
} array_partial;

// Lines along one axis: softmax, running sums, the largest k.
typedef struct array_line_args {
    array_operand in, out, places;
    long long shape[ARRAY_MAX_RANK]; // without the axis
    long long n_lines, n, in_stride, out_stride, places_stride;
    int rank, k, klass, logarithm;
} array_line_args;

// out[o][j][i] = in[o][indices[j]][i] (gather), out[o][indices[j]][i] = in[o][j][i] (scatter).
typedef struct array_index_args {
    array_operand in, out, indices;
    long long shape[ARRAY_MAX_RANK]; // without the axis
    long long n_lines, n, n_limit;   // positions of j; the axis's length on the other side
    long long in_stride, out_stride, index_stride;
    int rank, add, scatter, klass;
} array_index_args;

// ---- places

// Offsets of position `at` of a row-major shape, for one operand.
WT_SHARED_FN long long array_offset(const long long *shape, int rank, const long long *strides, long long at)
{
    long long offset = 0;
    for (int d = rank - 1; d > 0; d--) {
        const long long rest = at / shape[d];
        offset += (at - rest * shape[d]) * strides[d];
        at = rest;
    }
    return rank ? offset + at * strides[0] : 0;
}

// ---- small floating-point types: IEEE 754 binary16, bfloat16, OCP FP8 1.0, OCP MX E2M1

WT_SHARED_FN float array_pow2(int exponent) { return wt_from_bits((exponent + 127) << 23); }

// A magnitude's bits with so many bits of mantissa and such a bias, as a float.
WT_SHARED_FN float array_widen(unsigned m, int n_mantissa, int bias)
{
    if (m >> n_mantissa) return wt_from_bits((int)((m << (23 - n_mantissa)) + ((unsigned)(127 - bias) << 23)));
    return (float)m * array_pow2(1 - bias - n_mantissa);
}

// The nearest magnitude, halves to even; what is beyond the largest bit pattern comes out larger than it.
WT_SHARED_FN unsigned array_narrow(float x, int n_mantissa, int bias)
{
    const unsigned bits = (unsigned)wt_bits(x) & 0x7fffffffu;
    const int shift = 23 - n_mantissa, smallest = (127 - bias + 1) << 23;
    if ((int)bits < smallest) // subnormal there: in steps of the smallest
        return (unsigned)rintf(wt_from_bits((int)bits) * array_pow2(bias + n_mantissa - 1));
    const unsigned even = bits >> shift & 1;
    return (bits + (1u << (shift - 1)) - 1 + even - ((unsigned)(127 - bias) << 23)) >> shift;
}

WT_SHARED_FN float array_read_small(int type, unsigned bits)
{
    if (type == ARRAY_F4) return (bits & 8 ? -1.0f : 1.0f) * array_widen(bits & 7, 1, 1);
    const float sign = bits >> (type == ARRAY_F16 || type == ARRAY_BF16 ? 15 : 7) ? -1.0f : 1.0f;
    if (type == ARRAY_BF16) return wt_from_bits((int)(bits << 16));
    if (type == ARRAY_E4M3)
        return (bits & 0x7f) == 0x7f ? wt_from_bits(0x7fc00000) : sign * array_widen(bits & 0x7f, 3, 7);
    if (type == ARRAY_E5M2) bits = bits << 8; // binary16 with a short mantissa
    const unsigned m = bits & 0x7fff;
    if (m >= 0x7c00) return sign * wt_from_bits((int)(0x7f800000u | (m & 0x3ff) << 13));
    return sign * array_widen(m, 10, 15);
}

WT_SHARED_FN unsigned array_write_small(int type, float x)
{
    const unsigned bits = (unsigned)wt_bits(x), m = bits & 0x7fffffffu, sign = bits >> 31;
    const int is_nan = m > 0x7f800000u;
    unsigned y;
    switch (type) {
    case ARRAY_BF16:
        return is_nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    case ARRAY_F16:
        y = is_nan ? 0x7e00 : array_narrow(x, 10, 15);
        return sign << 15 | (is_nan || y < 0x7c00 ? y : 0x7c00);
    case ARRAY_F4: // has no NaN
        y = is_nan ? 0 : array_narrow(x, 1, 1);
        return is_nan ? 0 : sign << 3 | (y < 7 ? y : 7);
    case ARRAY_E4M3:
        y = is_nan ? 0x7f : array_narrow(x, 3, 7);
        return sign << 7 | (is_nan || y < 0x7e ? y : 0x7e);
    default:
        y = is_nan ? 0x7f : array_narrow(x, 2, 15);
        return sign << 7 | (is_nan || y < 0x7b ? y : 0x7b);
    }
}

// ---- elements

WT_SHARED_FN unsigned array_get_nibble(const void *p, long long at)
{
    return (unsigned)((const unsigned char *)p)[at >> 1] >> (at & 1) * 4 & 15;
}

// Both nibbles of a byte are written by one thread.
WT_SHARED_FN void array_put_nibble(void *p, long long at, unsigned bits)
{
    unsigned char *byte = (unsigned char *)p + (at >> 1);
    *byte = (unsigned char)(at & 1 ? (*byte & 15) | (bits & 15) << 4 : (*byte & 240) | (bits & 15));
}

WT_SHARED_FN long long array_get_integer(int type, const void *p, long long at)
{
    switch (type) {
    case ARRAY_I64: return ((const long long *)p)[at];
    case ARRAY_I32: return ((const int *)p)[at];
    case ARRAY_I16: return ((const short *)p)[at];
    case ARRAY_I8: return ((const signed char *)p)[at];
    case ARRAY_I4: return (long long)(array_get_nibble(p, at) ^ 8) - 8;
    case ARRAY_U4: return array_get_nibble(p, at);
    default: return ((const unsigned char *)p)[at];
    }
}

WT_SHARED_FN double array_get_double(int type, const void *p, long long at)
{
    switch (type) {
    case ARRAY_F64: return ((const double *)p)[at];
    case ARRAY_F32: return ((const float *)p)[at];
    case ARRAY_F16:
    case ARRAY_BF16: return array_read_small(type, ((const unsigned short *)p)[at]);
    case ARRAY_E4M3:
    case ARRAY_E5M2: return array_read_small(type, ((const unsigned char *)p)[at]);
    case ARRAY_F4: return array_read_small(type, array_get_nibble(p, at));
    default: return (double)array_get_integer(type, p, at);
    }
}

WT_SHARED_FN float array_get_float(int type, const void *p, long long at)
{
    switch (type) {
    case ARRAY_F64: return (float)((const double *)p)[at];
    case ARRAY_F32: return ((const float *)p)[at];
    case ARRAY_F16:
    case ARRAY_BF16: return array_read_small(type, ((const unsigned short *)p)[at]);
    case ARRAY_E4M3:
    case ARRAY_E5M2: return array_read_small(type, ((const unsigned char *)p)[at]);
    case ARRAY_F4: return array_read_small(type, array_get_nibble(p, at));
    default: return (float)array_get_integer(type, p, at);
    }
}

WT_SHARED_FN void array_put_integer(int type, void *p, long long at, long long x);

// Towards zero, not beyond the type's ends.
WT_SHARED_FN long long array_integer_of(int type, double x)
{
    double low = -9223372036854775808.0, high = 9223372036854774784.0;
    if (type == ARRAY_I32) low = -2147483648.0, high = 2147483647.0;
    if (type == ARRAY_I16) low = -32768, high = 32767;
    if (type == ARRAY_I8) low = -128, high = 127;
    if (type == ARRAY_U8) low = 0, high = 255;
    if (type == ARRAY_I4) low = -8, high = 7;
    if (type == ARRAY_U4) low = 0, high = 15;
    if (x != x) return 0;
    if (type == ARRAY_I64 && x > high) return 0x7fffffffffffffffLL;
    return (long long)(x < low ? low : x > high ? high : x);
}

// A float that is rounded to a smaller type as x itself would be: x, or of its two neighbours the one with an odd last
// bit (Boldo and Melquiond, 2008). The nearest could be a tie of the smaller type that x is not.
WT_SHARED_FN float array_odd(double x)
{
    const float near = (float)x;
    const int bits = wt_bits(near);
    if ((double)near == x || x != x || bits & 1) return near;
    return wt_from_bits(fabs((double)near) > fabs(x) ? bits - 1 : bits + 1);
}

WT_SHARED_FN void array_put_float(int type, void *p, long long at, float x)
{
    switch (type) {
    case ARRAY_F64: ((double *)p)[at] = x; break;
    case ARRAY_F32: ((float *)p)[at] = x; break;
    case ARRAY_F16:
    case ARRAY_BF16: ((unsigned short *)p)[at] = (unsigned short)array_write_small(type, x); break;
    case ARRAY_E4M3:
    case ARRAY_E5M2: ((unsigned char *)p)[at] = (unsigned char)array_write_small(type, x); break;
    case ARRAY_F4: array_put_nibble(p, at, array_write_small(type, x)); break;
    case ARRAY_BOOL: ((unsigned char *)p)[at] = x != 0; break;
    default: array_put_integer(type, p, at, array_integer_of(type, (double)x));
    }
}

WT_SHARED_FN void array_put_double(int type, void *p, long long at, double x)
{
    switch (type) {
    case ARRAY_F64: ((double *)p)[at] = x; break;
    case ARRAY_F32: ((float *)p)[at] = (float)x; break;
    case ARRAY_F16:
    case ARRAY_BF16:
    case ARRAY_E4M3:
    case ARRAY_E5M2:
    case ARRAY_F4: array_put_float(type, p, at, array_odd(x)); break;
    case ARRAY_BOOL: ((unsigned char *)p)[at] = x != 0; break;
    default: array_put_integer(type, p, at, array_integer_of(type, x));
    }
}

WT_SHARED_FN void array_put_integer(int type, void *p, long long at, long long x)
{
    switch (type) {
    case ARRAY_I64: ((long long *)p)[at] = x; break;
    case ARRAY_I32: ((int *)p)[at] = (int)x; break;
    case ARRAY_I16: ((short *)p)[at] = (short)x; break;
    case ARRAY_I8: ((signed char *)p)[at] = (signed char)x; break;
    case ARRAY_U8: ((unsigned char *)p)[at] = (unsigned char)x; break;
    case ARRAY_I4:
    case ARRAY_U4: array_put_nibble(p, at, (unsigned)x); break;
    case ARRAY_BOOL: ((unsigned char *)p)[at] = x != 0; break;
    case ARRAY_F64: ((double *)p)[at] = (double)x; break;
    default: array_put_float(type, p, at, (float)x);
    }
}

// ---- what is done with values

#define ARRAY_FLOATING(T, name, f)                                                                                     \
    WT_SHARED_FN T array_unary_##name(int op, T x)                                                                     \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case U_NEG: return -x;                                                                                         \
        case U_ABS: return f(fabs)(x);                                                                                 \
        case U_SIGN: return x != x ? x : (T)((x > 0) - (x < 0));                                                       \
        case U_SQUARE: return x * x;                                                                                   \
        case U_RECIPROCAL: return 1 / x;                                                                               \
        case U_SQRT: return f(sqrt)(x);                                                                                \
        case U_RSQRT: return 1 / f(sqrt)(x);                                                                           \
        case U_EXP: return f(exp)(x);                                                                                  \
        case U_EXPM1: return f(expm1)(x);                                                                              \
        case U_LOG: return f(log)(x);                                                                                  \
        case U_LOG1P: return f(log1p)(x);                                                                              \
        case U_SIN: return f(sin)(x);                                                                                  \
        case U_COS: return f(cos)(x);                                                                                  \
        case U_TANH: return f(tanh)(x);                                                                                \
        case U_ERF: return f(erf)(x);                                                                                  \
        case U_SIGMOID: return 1 / (1 + f(exp)(-x));                                                                   \
        case U_RELU: return x < 0 ? 0 : x;                                                                             \
        case U_RELU2: return x < 0 ? 0 : x * x;                                                                        \
        case U_SILU: return x / (1 + f(exp)(-x));                                                                      \
        case U_GELU: return x / 2 * (1 + f(erf)(x * (T)0.70710678118654752));                                          \
        case U_GELU_TANH:                                                                                              \
            return x / 2 * (1 + f(tanh)((T)0.79788456080286536 * (x + (T)0.044715 * x * x * x)));                      \
        case U_FLOOR: return f(floor)(x);                                                                              \
        case U_CEIL: return f(ceil)(x);                                                                                \
        case U_RINT: return f(rint)(x);                                                                                \
        case U_IS_NAN: return x != x;                                                                                  \
        case U_NOT: return x == 0;                                                                                     \
        default: return x;                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    WT_SHARED_FN T array_mod_##name(T a, T b)                                                                          \
    {                                                                                                                  \
        const T rest = f(fmod)(a, b);                                                                                  \
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                                                   \
    }                                                                                                                  \
    WT_SHARED_FN T array_binary_##name(int op, T a, T b)                                                               \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case B_ADD: return a + b;                                                                                      \
        case B_SUB: return a - b;                                                                                      \
        case B_MUL: return a * b;                                                                                      \
        case B_DIV: return a / b;                                                                                      \
        case B_MOD: return array_mod_##name(a, b);                                                                     \
        case B_POW: return f(pow)(a, b);                                                                               \
        case B_MIN: return a < b || a != a ? a : b;                                                                    \
        case B_MAX: return a > b || a != a ? a : b;                                                                    \
        case B_ATAN2: return f(atan2)(a, b);                                                                           \
        case B_EQ: return a == b;                                                                                      \
        case B_NE: return a != b;                                                                                      \
        case B_LT: return a < b;                                                                                       \
        case B_LE: return a <= b;                                                                                      \
        case B_GT: return a > b;                                                                                       \
        default: return a >= b;                                                                                        \
        }                                                                                                              \
    }
#define ARRAY_F(function) function##f
#define ARRAY_D(function) function
ARRAY_FLOATING(float, float, ARRAY_F)
ARRAY_FLOATING(double, double, ARRAY_D)
#undef ARRAY_F
#undef ARRAY_D
#undef ARRAY_FLOATING

WT_SHARED_FN long long array_unary_integer(int op, long long x)
{
    switch (op) {
    case U_NEG: return (long long)(0 - (unsigned long long)x);
    case U_ABS: return x < 0 ? (long long)(0 - (unsigned long long)x) : x;
    case U_SIGN: return (x > 0) - (x < 0);
    case U_RELU2: return x < 0 ? 0 : (long long)((unsigned long long)x * (unsigned long long)x);
    case U_SQUARE: return (long long)((unsigned long long)x * (unsigned long long)x);
    case U_RELU: return x < 0 ? 0 : x;
    case U_IS_NAN: return 0;
    case U_NOT: return x == 0;
    default: return x; // copies, and what rounds
    }
}

WT_SHARED_FN long long array_power(long long a, long long b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    unsigned long long y = 1, base = (unsigned long long)a;
    for (; b; b >>= 1, base *= base)
        if (b & 1) y *= base;
    return (long long)y;
}

WT_SHARED_FN long long array_binary_integer(int op, long long a, long long b)
{
    const unsigned long long ua = (unsigned long long)a, ub = (unsigned long long)b;
    switch (op) {
    case B_ADD: return (long long)(ua + ub);
    case B_SUB: return (long long)(ua - ub);
    case B_MUL: return (long long)(ua * ub);
    case B_DIV: return b == 0 ? 0 : b == -1 ? (long long)(0 - ua) : a / b;
    case B_MOD: {
        const long long rest = b == 0 || b == -1 ? 0 : a % b;
        return rest && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case B_POW: return array_power(a, b);
    case B_MIN: return a < b ? a : b;
    case B_MAX: return a > b ? a : b;
    case B_EQ: return a == b;
    case B_NE: return a != b;
    case B_LT: return a < b;
    case B_LE: return a <= b;
    case B_GT: return a > b;
    case B_GE: return a >= b;
    case B_AND: return a & b;
    case B_OR: return a | b;
    default: return a ^ b;
    }
}

// Are the values of a unary (binary) operation on integers alone computed in double, as no integers would do?
WT_SHARED_FN int array_unary_wants_double(int op)
{
    return (op >= U_RECIPROCAL && op <= U_SIGMOID) || (op >= U_SILU && op <= U_GELU_TANH);
}

WT_SHARED_FN int array_binary_wants_double(int op) { return op == B_ATAN2; }

// A uniform number of a word's first bits: as many as a float, or the smaller type it goes to, holds below 1, where
// rounding could make 1.
WT_SHARED_FN float array_uniform_float(int type, unsigned word)
{
    const int n_bits = type == ARRAY_F16    ? 11
                       : type == ARRAY_BF16 ? 8
                       : type == ARRAY_E4M3 ? 4
                       : type == ARRAY_E5M2 ? 3
                       : type == ARRAY_F4   ? 1
                                            : 24;
    return (float)(word >> (32 - n_bits)) * array_pow2(-n_bits);
}

// Box and Muller (1958).
WT_SHARED_FN double array_normal(unsigned long long seed, unsigned long long n)
{
    unsigned a, b;
    wt_philox(seed, n, &a, &b);
    const double radius = sqrt(-2 * log(((double)a + 0.5) * 2.3283064365386963e-10)); // 2^-32
    return radius * cos(2 * WT_PI * 2.3283064365386963e-10 * (double)b);
}

// ---- reductions

// Is b to take a's place as the extreme?
WT_SHARED_FN int array_beats(int op, double a, double b)
{
    if (a != a || b != b) return a == a && b != b;
    return op == R_MAX || op == R_ARGMAX ? b > a : b < a;
}

WT_SHARED_FN int array_beats_integer(int op, long long a, long long b)
{
    return op == R_MAX || op == R_ARGMAX ? b > a : b < a;
}
#endif
