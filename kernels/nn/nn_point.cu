// nn_point: out = activation(x + bias) * up + residual; a thread 16 bytes of neighbours where all are of one type and
// lie so, else four elements or one, and on by the grid. Reads and writes each array once; all of a thread's reads are
// on their way before the first is used. Judge: the CPU's (models/nn_point.c), and torch.
#include "nn.cuh"

#include "overlap.cuh"

// after_all with all activations in line.
template <int N>
static __device__ __forceinline__ void activate(const nn_after &a, float *x, long long channel, bool one)
{
#define EACH(kind)                                                                                                     \
    case kind:                                                                                                         \
        _Pragma("unroll") for (int i = 0; i < N; i++) x[i] = nn_activate(kind, x[i], a.slope);                         \
        break;
    switch (a.kind) {
        EACH(NN_RELU)
        EACH(NN_SILU)
        EACH(NN_GELU)
        EACH(NN_GELU_TANH)
        EACH(NN_SIGMOID)
        EACH(NN_TANH)
        EACH(NN_RELU2)
    default:
        after_all<N>(a, x, channel, one);
        break;
    }
#undef EACH
}

template <class T, int N> static __device__ __forceinline__ void point(const nn_point_args &a)
{
    const long long n = a.rows * a.width / N, step = (long long)gridDim.x * 256;
    const bool narrow = a.rows * a.width <= 0xffffffffll; // division by 64 bits takes longer than the rest
    for (long long k = (long long)blockIdx.x * 256 + threadIdx.x; k < n; k += step) {
        const long long row = narrow ? (unsigned)(k * N) / (unsigned)a.width : k * N / a.width;
        const long long column = k * N - row * a.width;
        const long long channel = a.row_channels ? row % a.row_channels : column;
        held<T, N> x, up, residual;
        x.take(a.x, row * a.x.stride + column);
        if (a.up.data) up.take(a.up, row * a.up.stride + column);
        if (a.residual.data) residual.take(a.residual, row * a.residual.stride + column);
        float y[N];
#pragma unroll
        for (int i = 0; i < N; i++) y[i] = x.get(i);
        if (a.bias.data && a.row_channels) {
            const float bias = load(a.bias.data, a.bias.type, channel);
#pragma unroll
            for (int i = 0; i < N; i++) y[i] += bias;
        } else if (a.bias.data) {
            float bias[N];
            load_some<N>({(void *)a.bias.data, 0, a.bias.type}, channel, bias);
#pragma unroll
            for (int i = 0; i < N; i++) y[i] += bias[i];
        }
        activate<N>(a.after, y, channel, a.row_channels != 0);
        if (a.up.data) {
#pragma unroll
            for (int i = 0; i < N; i++) y[i] *= up.get(i);
        }
        if (a.residual.data) {
#pragma unroll
            for (int i = 0; i < N; i++) y[i] += residual.get(i);
        }
        held<T, N>::give(a.out, row * a.out.stride + column, y);
    }
}

extern "C" __global__ void __launch_bounds__(256) nn_point(nn_point_args a)
{
    let_next_begin();
    wait_for_earlier();
    switch (a.access) {
    case NN_PACKS_F32:
        point<float, 4>(a);
        break;
    case NN_PACKS_F16:
        point<f16, 8>(a);
        break;
    case NN_PACKS_BF16:
        point<bf16, 8>(a);
        break;
    case NN_PACKS:
        point<any_type, 4>(a);
        break;
    default:
        point<any_type, 1>(a);
        break;
    }
}
