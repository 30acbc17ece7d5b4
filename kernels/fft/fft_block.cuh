// Complex Fourier transforms by one team of threads, a warp, some warps or a whole thread block, in shared memory:
// Stockham's autosort passes of radix 4, one of radix 2 at the end of odd powers. One thread a butterfly.
#pragma once

// So many threads, whole warps, meet at a barrier of theirs.
static __device__ __noinline__ void fft_meet(int barrier, int size)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(size) : "memory");
}

struct fft_team {
    int rank, size;
    bool warp;       // the calling warp, else
    int barrier = 0; // the whole block, or the whole warps that meet at this barrier, 1 .. 15
    __device__ void sync() const
    {
        if (warp) __syncwarp();
        else if (barrier) fft_meet(barrier, size);
        else __syncthreads();
    }
};

struct fft_planes {
    float *re, *im;
};

static __device__ __forceinline__ void fft_store(fft_planes y, int at, float re, float im, float2 w)
{
    y.re[at] = re * w.x - im * w.y;
    y.im[at] = re * w.y + im * w.x;
}

// One pass over s interleaved transforms of n points.
static __device__ __forceinline__ void fft_pass4(const fft_team &team, fft_planes x, fft_planes y, int n, int s,
                                                 const float2 *roots, int n_roots)
{
    const int log2_s = 31 - __clz(s), quarter = s * (n / 4), step = n_roots >> (31 - __clz(n)); // all powers of two
#pragma unroll 1
    for (int i = team.rank; i < quarter; i += team.size) {
        const int p = i >> log2_s, at = (i & (s - 1)) + 4 * s * p;
        const float2 w1 = roots[p * step], w2 = roots[2 * p * step], w3 = roots[3 * p * step];
        float a_re = x.re[i], a_im = x.im[i], b_re = x.re[i + quarter], b_im = x.im[i + quarter];
        float c_re = x.re[i + 2 * quarter], c_im = x.im[i + 2 * quarter];
        float d_re = x.re[i + 3 * quarter], d_im = x.im[i + 3 * quarter];
        float ac_re = a_re + c_re, ac_im = a_im + c_im, bd_re = b_re + d_re, bd_im = b_im + d_im;
        float ca_re = a_re - c_re, ca_im = a_im - c_im, j_re = d_im - b_im, j_im = b_re - d_re; // j (b - d)
        y.re[at] = ac_re + bd_re, y.im[at] = ac_im + bd_im;
        fft_store(y, at + s, ca_re - j_re, ca_im - j_im, w1);
        fft_store(y, at + 2 * s, ac_re - bd_re, ac_im - bd_im, w2);
        fft_store(y, at + 3 * s, ca_re + j_re, ca_im + j_im, w3);
    }
    team.sync();
}

// Forward transform of n points (a power of two) in x; y is as large. `roots`: e^(-2 pi i k / n_roots), n_roots a
// multiple of n. Exchange re and im of x, and of the result, for the inverse times n. Returns the planes that hold the
// result, x or y. The team has written x and met at a barrier before.
static __device__ fft_planes fft_block(const fft_team &team, fft_planes x, fft_planes y, int n, const float2 *roots,
                                       int n_roots)
{
    int s = 1;
    for (; n > 2; n /= 4, s *= 4) {
        fft_pass4(team, x, y, n, s, roots, n_roots);
        fft_planes t = x;
        x = y, y = t;
    }
    if (n == 1) return x;
#pragma unroll 1
    for (int i = team.rank; i < s; i += team.size) {
        float a_re = x.re[i], a_im = x.im[i], b_re = x.re[i + s], b_im = x.im[i + s];
        y.re[i] = a_re + b_re, y.im[i] = a_im + b_im;
        y.re[i + s] = a_re - b_re, y.im[i + s] = a_im - b_im;
    }
    team.sync();
    return y;
}
