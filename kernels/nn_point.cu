// nn_point: out = activation(x + bias) * up + residual; a thread four neighbouring elements where all lies so, else one,
// and on by the grid. Reads and writes each array once. Judge: the CPU's (models/nn_point.c), and torch.
#include "nn.cuh"

template <int N> static __device__ __forceinline__ void point(const nn_point_args &a)
{
    const long long n = a.rows * a.width / N, step = (long long)gridDim.x * 256;
    const bool narrow = a.rows * a.width <= 0xffffffffll; // division by 64 bits takes longer than the rest
    for (long long k = (long long)blockIdx.x * 256 + threadIdx.x; k < n; k += step) {
        const long long row = narrow ? (unsigned)(k * N) / (unsigned)a.width : k * N / a.width;
        const long long column = k * N - row * a.width;
        const long long channel = a.row_channels ? row % a.row_channels : column;
        float x[N], other[N];
        load_some<N>(a.x, row * a.x.stride + column, x);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const long long c = a.row_channels ? channel : channel + i;
            x[i] = after(a.after, x[i] + load_or(a.bias, c, 0), c);
        }
        if (a.up.data) {
            load_some<N>(a.up, row * a.up.stride + column, other);
#pragma unroll
            for (int i = 0; i < N; i++) x[i] *= other[i];
        }
        if (a.residual.data) {
            load_some<N>(a.residual, row * a.residual.stride + column, other);
#pragma unroll
            for (int i = 0; i < N; i++) x[i] += other[i];
        }
        store_some<N>(a.out, row * a.out.stride + column, x);
    }
}

extern "C" __global__ void __launch_bounds__(256) nn_point(nn_point_args a)
{
    if (a.packs) point<4>(a);
    else point<1>(a);
}
