// Fourier transforms inside a thread block, for any kernel: T threads transform N points in registers and shared
// memory.
//
// Stockham's autosort, as in dsp/fft/fft_passes.h: a pass of radix R on what is left of N, S neighbours to a twiddle
// group,
//
//     y[q + S (R p + j)] = w^(p j)  sum over k of w_R^(j k) x[q + S p + k N / R]
//
// Thread t takes butterflies t, t + T, ...: reads are contiguous across threads, writes R S apart, spread over the
// banks by one float of padding in 32. The first pass reads through `load(i)`, the last writes through `store(k, v)`,
// so the ends of a transform fuse with whatever surrounds it. All threads that meet must call together. Twiddle
// tables, made in double by dsp/fft/fft_cuda.c: pass by pass [R - 1][N / (R S)] pairs, in the order of
// wt__fft_block_radix.
#pragma once
#ifndef WT_FFT_CUH
#    define WT_FFT_CUH
#    include "fft_kernel.h"

// Of float2 or double2.
template <class V> __device__ __forceinline__ V fft_add(V a, V b) { return V{a.x + b.x, a.y + b.y}; }
template <class V> __device__ __forceinline__ V fft_sub(V a, V b) { return V{a.x - b.x, a.y - b.y}; }
template <class V> __device__ __forceinline__ V fft_add_i(V a, V b) { return V{a.x - b.y, a.y + b.x}; }
template <class V> __device__ __forceinline__ V fft_sub_i(V a, V b) { return V{a.x + b.y, a.y - b.x}; }
template <class V> __device__ __forceinline__ V fft_mul(V a, V b)
{
    return V{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
template <class V> __device__ __forceinline__ V fft_conj(V a) { return V{a.x, -a.y}; }
template <class V> __device__ __forceinline__ V fft_swap(V a) { return V{a.y, a.x}; }
template <class V> __device__ __forceinline__ V fft_scale(V a, decltype(V::x) by) { return V{a.x * by, a.y * by}; }
__device__ __forceinline__ int fft_pad(int i) { return i + (i >> 5); }

// cos and sin of 2 pi k / R, k < R, as constants after unrolling.
template <int R, class V> __device__ __forceinline__ V fft_root(int k)
{
    using T = decltype(V::x);
    const T turn3[] = {-0.5, 0.866025403784438647};
    const T turn5[] = {0.309016994374947424, 0.951056516295153572, -0.809016994374947424, 0.587785252292473129};
    const T turn7[] = {0.623489801858733531, 0.781831482468029809,  -0.222520933956314404,
                       0.974927912181823607, -0.900968867902419126, 0.433883739117558120};
    const T turn11[] = {0.841253532831181169,  0.540640817455597582, 0.415415013001886426,  0.909631995354518371,
                        -0.142314838273285140, 0.989821441880932732, -0.654860733945285064, 0.755749574354258283,
                        -0.959492973614497390, 0.281732556841429697};
    const T turn13[] = {0.885456025653209895,  0.464723172043768546, 0.568064746731155782,  0.822983865893656348,
                        0.120536680255323011,  0.992708874098054028, -0.354604887042535623, 0.935016242685414803,
                        -0.748510748171101129, 0.663122658240795219, -0.970941817426052017, 0.239315664287557721};
    const T *turn = R == 3 ? turn3 : R == 5 ? turn5 : R == 7 ? turn7 : R == 11 ? turn11 : turn13;
    int at = k <= R / 2 ? k : R - k;
    return at ? V{turn[2 * at - 2], k <= R / 2 ? turn[2 * at - 1] : -turn[2 * at - 1]} : V{1, 0};
}

template <class V> __device__ __forceinline__ void fft_dft4(V &a, V &b, V &c, V &d)
{
    V even = fft_add(a, c), even_less = fft_sub(a, c), odd = fft_add(b, d), odd_less = fft_sub(b, d);
    a = fft_add(even, odd);
    b = fft_sub_i(even_less, odd_less);
    c = fft_sub(even, odd);
    d = fft_add_i(even_less, odd_less);
}

template <class V> __device__ __forceinline__ void fft_dft8(V *a)
{
    fft_dft4(a[0], a[2], a[4], a[6]);
    fft_dft4(a[1], a[3], a[5], a[7]);
    const decltype(V::x) c = 0.707106781186547524;
    V o1 = V{c * (a[3].x + a[3].y), c * (a[3].y - a[3].x)}, o2 = a[5];
    V o3 = V{c * (a[7].y - a[7].x), -c * (a[7].x + a[7].y)}, o0 = a[1];
    V e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6];
    a[0] = fft_add(e0, o0), a[4] = fft_sub(e0, o0);
    a[1] = fft_add(e1, o1), a[5] = fft_sub(e1, o1);
    a[2] = fft_sub_i(e2, o2), a[6] = fft_add_i(e2, o2);
    a[3] = fft_add(e3, o3), a[7] = fft_sub(e3, o3);
}

template <class V> __device__ __forceinline__ void fft_dft16(V *a)
{
    using T = decltype(V::x);
    const T cosines[] = {1,  0.923879532511286756,  0.707106781186547524,  0.382683432365089772,
                         0,  -0.382683432365089772, -0.707106781186547524, -0.923879532511286756,
                         -1, -0.923879532511286756};
#    pragma unroll
    for (int k = 0; k < 4; k++) fft_dft4(a[k], a[k + 4], a[k + 8], a[k + 12]);
#    pragma unroll
    for (int j = 1; j < 4; j++)
#    pragma unroll
        for (int k = 1; k < 4; k++) {
            int turn = j * k; // sixteenths: sin(x) = cos(x - 4 sixteenths)
            if (turn == 4)
                a[4 * j + k] = V{a[4 * j + k].y, -a[4 * j + k].x};
            else
                a[4 * j + k] = fft_mul(a[4 * j + k], V{cosines[turn], -cosines[turn < 4 ? 4 - turn : turn - 4]});
        }
    V turned[16];
#    pragma unroll
    for (int j = 0; j < 4; j++) {
        fft_dft4(a[4 * j], a[4 * j + 1], a[4 * j + 2], a[4 * j + 3]);
#    pragma unroll
        for (int k = 0; k < 4; k++) turned[j + 4 * k] = a[4 * j + k];
    }
#    pragma unroll
    for (int j = 0; j < 16; j++) a[j] = turned[j];
}

template <int R, class V> __device__ __forceinline__ void fft_dft_odd(V *a)
{
    V sum[R / 2], difference[R / 2], first = a[0];
#    pragma unroll
    for (int k = 1; k <= R / 2; k++) {
        sum[k - 1] = fft_add(a[k], a[R - k]);
        difference[k - 1] = fft_sub(a[k], a[R - k]);
        a[0] = fft_add(a[0], sum[k - 1]);
    }
#    pragma unroll
    for (int j = 1; j <= R / 2; j++) {
        V even = first, odd = V{0, 0};
#    pragma unroll
        for (int k = 1; k <= R / 2; k++) {
            const V w = fft_root<R, V>(j * k % R);
            even.x += sum[k - 1].x * w.x, even.y += sum[k - 1].y * w.x;
            odd.x += difference[k - 1].x * w.y, odd.y += difference[k - 1].y * w.y;
        }
        a[j] = fft_sub_i(even, odd);
        a[R - j] = fft_add_i(even, odd);
    }
}

// Twenty points as five times four (Good and Thomas): no roots between.
template <class V> __device__ __forceinline__ void fft_dft20(V *a)
{
    V turned[20];
#    pragma unroll
    for (int b = 0; b < 5; b++) fft_dft4(a[4 * b], a[(4 * b + 5) % 20], a[(4 * b + 10) % 20], a[(4 * b + 15) % 20]);
#    pragma unroll
    for (int j = 0; j < 4; j++) {
        V some[5];
#    pragma unroll
        for (int b = 0; b < 5; b++) some[b] = a[(4 * b + 5 * j) % 20];
        fft_dft_odd<5>(some);
#    pragma unroll
        for (int b = 0; b < 5; b++) turned[(5 * j + 16 * b) % 20] = some[b];
    }
#    pragma unroll
    for (int j = 0; j < 20; j++) a[j] = turned[j];
}

template <int R, class V> __device__ __forceinline__ void fft_butterfly(V *a)
{
    if constexpr (R == 2) {
        V sum = fft_add(a[0], a[1]);
        a[1] = fft_sub(a[0], a[1]);
        a[0] = sum;
    } else if constexpr (R == 4) {
        fft_dft4(a[0], a[1], a[2], a[3]);
    } else if constexpr (R == 8) {
        fft_dft8(a);
    } else if constexpr (R == 16) {
        fft_dft16(a);
    } else if constexpr (R == 20) {
        fft_dft20(a);
    } else {
        fft_dft_odd<R>(a);
    }
}

// How the threads of a transform meet: all of the block, unless told otherwise.
struct fft_all {
    __device__ __forceinline__ void operator()() const { __syncthreads(); }
};

template <int N, int T, int S, class Load, class Store, class Meet>
__device__ __forceinline__ void fft_passes(int t, float *shared, const float2 *twiddles, Load load, Store store,
                                           Meet meet)
{
    constexpr int R = wt__fft_block_radix(N / S), B = N / R, M = B / S, E = (B + T - 1) / T;
    float *re = shared, *im = shared + wt__fft_shared_floats(N) / 2;
    float2 v[E][R] = {}; // in threads without a butterfly too: else it would live on from loop to loop
#    pragma unroll
    for (int e = 0; e < E; e++) {
        int b = t + e * T;
        if (b >= B) break;
#    pragma unroll
        for (int k = 0; k < R; k++) {
            int at = b + k * B;
            if constexpr (S == 1)
                v[e][k] = load(at);
            else
                v[e][k] = make_float2(re[fft_pad(at)], im[fft_pad(at)]);
        }
    }
    meet();
#    pragma unroll
    for (int e = 0; e < E; e++) {
        int b = t + e * T, p = b / S, q = b % S;
        if (b >= B) break;
        fft_butterfly<R>(v[e]);
#    pragma unroll
        for (int j = 0; j < R; j++) {
            int to = q + S * (R * p + j);
            if (M > 1 && j) v[e][j] = fft_mul(v[e][j], twiddles[(j - 1) * M + p]);
            if constexpr (M == 1)
                store(to, v[e][j]);
            else
                re[fft_pad(to)] = v[e][j].x, im[fft_pad(to)] = v[e][j].y;
        }
    }
    if constexpr (M > 1) {
        meet();
        fft_passes<N, T, S * R>(t, shared, twiddles + (R - 1) * M, load, store, meet);
    }
}

/// Transform N points by threads t = 0 .. T - 1; `shared` has wt__fft_shared_floats(N) floats for this sequence.
/// `load` and `store` may use the same shared memory as fft_shared_get and fft_shared_put do.
template <int N, int T, class Load, class Store, class Meet = fft_all>
__device__ __forceinline__ void fft_block(int t, float *shared, const float *twiddles, Load load, Store store,
                                          Meet meet = {})
{
    if constexpr (N > 1) {
        fft_passes<N, T, 1>(t, shared, (const float2 *)twiddles, load, store, meet);
    } else {
        float2 v = t == 0 ? load(0) : make_float2(0, 0);
        meet();
        if (t == 0) store(0, v);
    }
}

template <int N> __device__ __forceinline__ float2 fft_shared_get(const float *shared, int i)
{
    return make_float2(shared[fft_pad(i)], shared[wt__fft_shared_floats(N) / 2 + fft_pad(i)]);
}

template <int N> __device__ __forceinline__ void fft_shared_put(float *shared, int i, float2 v)
{
    shared[fft_pad(i)] = v.x;
    shared[wt__fft_shared_floats(N) / 2 + fft_pad(i)] = v.y;
}

// ---- real signals as complex ones of half the length h (dsp/fft/fft_passes.h has the algebra); w = w_2h^k

/// Bin k of a real signal from its packed transform: z = Z[k mod h], mirror = Z[(h - k) mod h].
__device__ __forceinline__ float2 fft_real_bin(float2 z, float2 mirror, float2 w)
{
    float2 even = make_float2(0.5f * (z.x + mirror.x), 0.5f * (z.y - mirror.y));
    float2 odd = make_float2(0.5f * (z.y + mirror.y), 0.5f * (mirror.x - z.x));
    return fft_add(even, fft_mul(odd, w));
}

/// Point k of the packed transform, times 2, from bins X[k] and mirror = X[h - k].
__device__ __forceinline__ float2 fft_real_fold(float2 x, float2 mirror, float2 w)
{
    float2 even = make_float2(x.x + mirror.x, x.y - mirror.y), less = make_float2(x.x - mirror.x, x.y + mirror.y);
    return fft_add_i(even, fft_mul(less, fft_conj(w)));
}
#endif
