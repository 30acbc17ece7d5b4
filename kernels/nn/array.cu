// Operations on arrays:
//
//   array_map           a thread an element (two of 4 bits), any operation on up to three operands, or numbers made up
//   array_reduce_short  a thread a result, for few elements each
//   array_reduce        a block a piece of a result; array_reduce_finish puts the pieces together, in order
//   array_softmax       a block a line
//   array_cumsum        a block a line, 1024 elements at a time
//   array_topk          a block a line, one round a place
//   array_index         gather and scatter: a thread a line, positions in order where they may meet
//
// Sums run in double, in an order that depends on the shape alone. Judge: the CPU's (models/array_cpu.c), and NumPy.
#include "array_kernel.h"

#define THREADS 256
#define HUGE_VALUE __longlong_as_double(0x7ff0000000000000LL)

template <class T> struct value;
template <> struct value<float> {
    static __device__ float get(const array_operand &x, long long at)
    {
        return x.data ? array_get_float(x.type, x.data, at) : (float)x.value;
    }
    static __device__ void put(const array_operand &x, long long at, float y)
    {
        array_put_float(x.type, x.data, at, y);
    }
    static __device__ float unary(int op, float x) { return array_unary_float(op, x); }
    static __device__ float binary(int op, float a, float b) { return array_binary_float(op, a, b); }
};
template <> struct value<double> {
    static __device__ double get(const array_operand &x, long long at)
    {
        return x.data ? array_get_double(x.type, x.data, at) : x.value;
    }
    static __device__ void put(const array_operand &x, long long at, double y)
    {
        array_put_double(x.type, x.data, at, y);
    }
    static __device__ double unary(int op, double x) { return array_unary_double(op, x); }
    static __device__ double binary(int op, double a, double b) { return array_binary_double(op, a, b); }
};
template <> struct value<long long> {
    static __device__ long long get(const array_operand &x, long long at)
    {
        return x.data ? array_get_integer(x.type, x.data, at) : (long long)x.value;
    }
    static __device__ void put(const array_operand &x, long long at, long long y)
    {
        array_put_integer(x.type, x.data, at, y);
    }
    static __device__ long long unary(int op, long long x) { return array_unary_integer(op, x); }
    static __device__ long long binary(int op, long long a, long long b) { return array_binary_integer(op, a, b); }
};

// ---- elementwise

template <class T> static __device__ T made_up(const array_map_args &a, long long k)
{
    unsigned w0, w1;
    const unsigned long long n = a.count + (unsigned long long)k;
    switch (a.op) {
    case ARRAY_ARANGE: return (T)(a.first + a.step * (double)k);
    case ARRAY_UNIFORM: return (T)wt_philox_uniform(a.seed, n);
    case ARRAY_NORMAL: return (T)array_normal(a.seed, n);
    default:
        wt_philox(a.seed, n, &w0, &w1);
        return (T)(long long)(((unsigned long long)w0 << 32 | w1) >> 1);
    }
}

template <> __device__ float made_up<float>(const array_map_args &a, long long k)
{
    unsigned w0, w1;
    if (a.op != ARRAY_UNIFORM) return (float)made_up<double>(a, k);
    wt_philox(a.seed, a.count + (unsigned long long)k, &w0, &w1);
    return array_uniform_float(a.out.type, w0);
}

template <class T> static __device__ void map_one(const array_map_args &a, long long k)
{
    typedef value<T> v;
    long long at[ARRAY_INPUTS + 1] = {};
    for (long long rest = k, d = a.rank - 1; d >= 0; d--) {
        const long long next = d ? rest / a.shape[d] : 0, place = rest - next * a.shape[d];
        for (int i = 0; i < ARRAY_INPUTS; i++) at[i] += place * a.in[i].strides[d];
        at[ARRAY_INPUTS] += place * a.out.strides[d];
        rest = next;
    }
    T y;
    if (a.op >= ARRAY_ARANGE) y = made_up<T>(a, k);
    else {
        const T x = v::get(a.in[0], at[0]);
        if (a.op < ARRAY_BINARY) y = v::unary(a.op, x);
        else if (a.op < ARRAY_WHERE) y = v::binary(a.op - ARRAY_BINARY, x, v::get(a.in[1], at[1]));
        else if (a.op == ARRAY_WHERE) y = x != 0 ? v::get(a.in[1], at[1]) : v::get(a.in[2], at[2]);
        else y = v::binary(B_MIN, v::binary(B_MAX, x, v::get(a.in[1], at[1])), v::get(a.in[2], at[2]));
    }
    v::put(a.out, at[ARRAY_INPUTS], y);
}

// With a result of 4 bits a thread has two neighbours, which share a byte.
template <class T> static __device__ void map(const array_map_args &a)
{
    const int each = a.out.type >= ARRAY_I4 ? 2 : 1;
    const long long step = (long long)gridDim.x * THREADS * each;
    for (long long k = ((long long)blockIdx.x * THREADS + threadIdx.x) * each; k < a.n; k += step)
#pragma unroll 1
        for (int j = 0; j < each; j++) map_one<T>(a, k + j);
}

extern "C" __global__ void __launch_bounds__(THREADS) array_map(array_map_args a)
{
    if (a.klass == ARRAY_INTEGER) map<long long>(a);
    else if (a.klass == ARRAY_DOUBLE) map<double>(a);
    else map<float>(a);
}

// ---- reductions: T is double or long long

template <class T> struct part {
    T value;
    long long place;
};

static __device__ int beats(int op, double a, double b) { return array_beats(op, a, b); }
static __device__ int beats(int op, long long a, long long b) { return array_beats_integer(op, a, b); }

template <class T> static __device__ part<T> nothing(int op)
{
    return {(T)(op == R_PROD || op == R_ALL), -1}; // an extreme's place says that there is none
}

template <class T> static __device__ void join(int op, part<T> &a, const part<T> &b)
{
    switch (op) {
    case R_SUM:
    case R_MEAN: a.value += b.value; break;
    case R_PROD: a.value *= b.value; break;
    case R_ANY: a.value = a.value != 0 || b.value != 0; break;
    case R_ALL: a.value = a.value != 0 && b.value != 0; break;
    default:
        if (b.place < 0) return;
        if (a.place < 0 || beats(op, a.value, b.value) || (!beats(op, b.value, a.value) && b.place < a.place)) a = b;
    }
}

template <class T> static __device__ void finish(const array_reduce_args &a, long long out, part<T> p)
{
    const long long at = array_offset(a.shape, a.rank, a.out.strides, out);
    if (a.op == R_ARGMAX || a.op == R_ARGMIN) value<long long>::put(a.out, at, p.place);
    else if (a.op == R_MEAN) value<double>::put(a.out, at, (double)p.value / (double)a.n_in);
    else value<T>::put(a.out, at, p.value);
}

// Elements first, first + step .. before end of one result.
template <class T>
static __device__ part<T> gather_part(const array_reduce_args &a, long long out, long long first, long long end,
                                      int step)
{
    const long long base = array_offset(a.shape, a.rank, a.in.strides, out);
    part<T> sum = nothing<T>(a.op);
    for (long long k = first; k < end; k += step) {
        const part<T> one = {value<T>::get(a.in, base + array_offset(a.over, a.over_rank, a.over_strides, k)), k};
        join(a.op, sum, one);
    }
    return sum;
}

template <class T> static __device__ void reduce_short(const array_reduce_args &a)
{
    const long long out = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (out < a.n_out) finish(a, out, gather_part<T>(a, out, 0, a.n_in, 1));
}

extern "C" __global__ void __launch_bounds__(THREADS) array_reduce_short(array_reduce_args a)
{
    if (a.klass == ARRAY_INTEGER) reduce_short<long long>(a);
    else reduce_short<double>(a);
}

template <class T> static __device__ void reduce(const array_reduce_args &a)
{
    __shared__ part<T> parts[THREADS];
    const long long out = blockIdx.x, first = (long long)blockIdx.y * a.piece;
    const long long end = first + a.piece < a.n_in ? first + a.piece : a.n_in;
    parts[threadIdx.x] = gather_part<T>(a, out, first + threadIdx.x, end, THREADS);
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) join(a.op, parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    if (threadIdx.x) return;
    if (a.n_pieces == 1) finish(a, out, parts[0]);
    else ((part<T> *)a.partials)[out * a.n_pieces + blockIdx.y] = parts[0];
}

extern "C" __global__ void __launch_bounds__(THREADS) array_reduce(array_reduce_args a)
{
    if (a.klass == ARRAY_INTEGER) reduce<long long>(a);
    else reduce<double>(a);
}

template <class T> static __device__ void reduce_finish(const array_reduce_args &a)
{
    const long long out = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (out >= a.n_out) return;
    part<T> sum = nothing<T>(a.op);
    for (int k = 0; k < a.n_pieces; k++) join(a.op, sum, ((const part<T> *)a.partials)[out * a.n_pieces + k]);
    finish(a, out, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) array_reduce_finish(array_reduce_args a)
{
    if (a.klass == ARRAY_INTEGER) reduce_finish<long long>(a);
    else reduce_finish<double>(a);
}

// ---- lines

static __device__ long long line_base(const array_line_args &a, const array_operand &x)
{
    return array_offset(a.shape, a.rank, x.strides, blockIdx.x);
}

// Of all threads, for all threads; the larger of two, a NaN above all.
template <bool LARGEST> static __device__ double block_join(double x)
{
    __shared__ double parts[THREADS];
    __syncthreads(); // the last call's result has been read
    parts[threadIdx.x] = x;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const double other = parts[threadIdx.x + half], mine = parts[threadIdx.x];
            parts[threadIdx.x] = LARGEST ? (array_beats(R_MAX, mine, other) ? other : mine) : mine + other;
        }
    }
    __syncthreads();
    return parts[0];
}

extern "C" __global__ void __launch_bounds__(THREADS) array_softmax(array_line_args a)
{
    const long long in = line_base(a, a.in), out = line_base(a, a.out);
    double most = -HUGE_VALUE, sum = 0;
    for (long long k = threadIdx.x; k < a.n; k += THREADS) {
        const double x = value<double>::get(a.in, in + k * a.in_stride);
        if (array_beats(R_MAX, most, x)) most = x;
    }
    most = block_join<true>(most);
    for (long long k = threadIdx.x; k < a.n; k += THREADS)
        sum += exp(value<double>::get(a.in, in + k * a.in_stride) - most);
    sum = block_join<false>(sum);
    const double log_sum = log(sum);
    for (long long k = threadIdx.x; k < a.n; k += THREADS) {
        const double x = value<double>::get(a.in, in + k * a.in_stride) - most;
        value<double>::put(a.out, out + k * a.out_stride, a.logarithm ? x - log_sum : exp(x) / sum);
    }
}

// Sums of threads 0 .. own, by doubling distances.
template <class T> static __device__ void cumsum(const array_line_args &a)
{
    __shared__ T sums[2][THREADS];
    const long long in = line_base(a, a.in), out = line_base(a, a.out);
    T before = 0;
    for (long long first = 0; first < a.n; first += THREADS * 4) {
        T own[4], total = 0;
        for (int j = 0; j < 4; j++) {
            const long long k = first + threadIdx.x * 4 + j;
            total += k < a.n ? value<T>::get(a.in, in + k * a.in_stride) : 0;
            own[j] = total;
        }
        int turn = 0;
        sums[0][threadIdx.x] = total;
        for (int distance = 1; distance < THREADS; distance *= 2, turn ^= 1) {
            __syncthreads();
            const T left = threadIdx.x >= distance ? sums[turn][threadIdx.x - distance] : 0;
            sums[turn ^ 1][threadIdx.x] = sums[turn][threadIdx.x] + left;
        }
        __syncthreads();
        const T left = before + (threadIdx.x ? sums[turn][threadIdx.x - 1] : 0);
        before += sums[turn][THREADS - 1];
        for (int j = 0; j < 4; j++) {
            const long long k = first + threadIdx.x * 4 + j;
            if (k < a.n) value<T>::put(a.out, out + k * a.out_stride, left + own[j]);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) array_cumsum(array_line_args a)
{
    if (a.klass == ARRAY_INTEGER) cumsum<long long>(a);
    else cumsum<double>(a);
}

// Each round finds the largest that comes after the last one found, in the order of value and place.
template <class T> static __device__ void topk(const array_line_args &a)
{
    __shared__ part<T> parts[THREADS];
    const long long in = line_base(a, a.in), out = a.out.data ? line_base(a, a.out) : 0;
    const long long places = a.places.data ? line_base(a, a.places) : 0;
    part<T> last = {0, -1};
    for (int round = 0; round < a.k; round++) {
        part<T> best = {0, -1};
        for (long long k = threadIdx.x; k < a.n; k += THREADS) {
            const part<T> one = {value<T>::get(a.in, in + k * a.in_stride), k};
            const int comes_after = last.place < 0 || beats(R_MAX, one.value, last.value) ||
                                    (!beats(R_MAX, last.value, one.value) && k > last.place);
            if (comes_after) join(R_MAX, best, one);
        }
        __syncthreads(); // the last round's result has been read
        parts[threadIdx.x] = best;
        for (int half = THREADS / 2; half; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) join(R_MAX, parts[threadIdx.x], parts[threadIdx.x + half]);
        }
        __syncthreads();
        last = parts[0];
        if (threadIdx.x) continue;
        if (a.out.data) value<T>::put(a.out, out + round * a.out_stride, last.value);
        if (a.places.data) value<long long>::put(a.places, places + round * a.places_stride, last.place);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) array_topk(array_line_args a)
{
    if (a.klass == ARRAY_INTEGER) topk<long long>(a);
    else topk<double>(a);
}

// ---- gather and scatter

template <class T> static __device__ void index_one(const array_index_args &a, long long line, long long j)
{
    const long long index =
        value<long long>::get(a.indices, array_offset(a.shape, a.rank, a.indices.strides, line) + j * a.index_stride);
    const long long in = array_offset(a.shape, a.rank, a.in.strides, line);
    const long long out = array_offset(a.shape, a.rank, a.out.strides, line);
    const bool inside = index >= 0 && index < a.n_limit;
    if (!a.scatter) {
        value<T>::put(a.out, out + j * a.out_stride, inside ? value<T>::get(a.in, in + index * a.in_stride) : 0);
    } else if (inside) {
        const long long to = out + index * a.out_stride;
        const T x = value<T>::get(a.in, in + j * a.in_stride);
        value<T>::put(a.out, to, a.add ? value<T>::get(a.out, to) + x : x);
    }
}

template <class T> static __device__ void index_all(const array_index_args &a)
{
    const long long n = a.scatter ? a.n_lines : a.n_lines * a.n, step = (long long)gridDim.x * THREADS;
    for (long long k = (long long)blockIdx.x * THREADS + threadIdx.x; k < n; k += step)
        if (!a.scatter) index_one<T>(a, k % a.n_lines, k / a.n_lines);
        else
            for (long long j = 0; j < a.n; j++) index_one<T>(a, k, j);
}

extern "C" __global__ void __launch_bounds__(THREADS) array_index(array_index_args a)
{
    if (a.klass == ARRAY_INTEGER) index_all<long long>(a);
    else index_all<double>(a);
}
