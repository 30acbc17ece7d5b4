// What products of plain weights with one vector have in common, launched one by one (llm_matvec.cu) or in a step's one
// kernel (llm_step.cu): the vector in shared memory as floats, weights times it. THREADS: of a block.
#include "llm_types.cuh"

struct nibbles {
    unsigned char bits; // two
};
typedef signed char i8;

// Elements of 16 bytes.
template <class T> static constexpr int OF_CHUNK = 16 / (int)sizeof(T);
template <> constexpr int OF_CHUNK<nibbles> = 32;

// The chunk's word `w` as floats; nibbles q as 1 + q / 16.
static __device__ __forceinline__ void widen_word(unsigned w, const float *, float *x) { x[0] = __uint_as_float(w); }
static __device__ __forceinline__ void widen_word(unsigned w, const bf16 *, float *x)
{
    x[0] = __uint_as_float(w << 16);
    x[1] = __uint_as_float(w & 0xffff0000u);
}
static __device__ __forceinline__ void widen_word(unsigned w, const f16 *, float *x)
{
    x[0] = widen(f16{(unsigned short)w});
    x[1] = widen(f16{(unsigned short)(w >> 16)});
}

static __device__ __forceinline__ void widen_word(unsigned w, const e4m3 *, float *x)
{
#if __CUDA_ARCH__ >= 890
    unsigned halves[2];
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h; }"
        : "=r"(halves[0]), "=r"(halves[1])
        : "r"(w));
    widen_word(halves[0], (const f16 *)0, x);
    widen_word(halves[1], (const f16 *)0, x + 2);
#else
    for (int k = 0; k < 4; k++) x[k] = widen(e4m3{(unsigned char)(w >> 8 * k)});
#endif
}
// The bits of 128 + x as the last ones of a float of 2^23 and more.
static __device__ __forceinline__ void widen_word(unsigned w, const i8 *, float *x)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        x[k] = __uint_as_float(__byte_perm(w ^ 0x80808080u, 0x4b000000u, 0x7540u + k)) - 8388736.0f;
}
static __device__ __forceinline__ void widen_word(unsigned w, const nibbles *, float *x)
{
#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = __uint_as_float(((k < 5 ? w << (19 - 4 * k) : w >> (4 * k - 19)) & 0x00780000u) | 0x3f800000u);
}

// ---- the vector: float4 q of chunk c lies at [q][c], so that lanes that read chunks side by side meet no bank twice

template <class T> static __device__ __forceinline__ int place_of(int k, int n_chunks)
{
    return (k % OF_CHUNK<T> / 4 * n_chunks + k / OF_CHUNK<T>) * 4 + k % 4;
}

static __device__ __forceinline__ float dot4(float4 a, float4 b, float sum)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    return sum + a.w * b.w;
}

// Elements k .. k + 3; beyond the columns zeros.
template <bool WHOLE> static __device__ __forceinline__ float4 load4(const float *p, int k, int columns)
{
    if (WHOLE) return *(const float4 *)(p + k);
    float x[4];
    for (int i = 0; i < 4; i++) x[i] = k + i < columns ? p[k + i] : 0;
    return {x[0], x[1], x[2], x[3]};
}

// The norm's weights to the places of the elements that this thread stages.
template <class T, bool WHOLE>
static __device__ __forceinline__ void stage_weights(const wt_llm_matvec_args &a, int n_chunks, float4 *shared)
{
    for (int c = threadIdx.x; c < n_chunks; c += THREADS)
#pragma unroll
        for (int q = 0; q < OF_CHUNK<T> / 4; q++)
            shared[q * n_chunks + c] = load4<WHOLE>(a.norm_weight, c * OF_CHUNK<T> + 4 * q, a.columns);
}

// LayerNorm of what is staged.
template <class T>
static __device__ void centre(const wt_llm_matvec_args &a, int n_chunks, float4 *shared, float *scratch)
{
    float *flat = (float *)shared, mean = 0, squares = 0;
    sync_workers(); // others staged these elements
    for (int k = threadIdx.x; k < a.columns; k += THREADS) mean += flat[place_of<T>(k, n_chunks)];
    mean = block_sum(mean, scratch) / (float)a.columns;
    for (int k = threadIdx.x; k < a.columns; k += THREADS) {
        const float x = flat[place_of<T>(k, n_chunks)] - mean;
        squares += x * x;
    }
    const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps);
    for (int k = threadIdx.x; k < a.columns; k += THREADS) {
        float *x = flat + place_of<T>(k, n_chunks);
        *x = (*x - mean) * scale * a.norm_weight[k] + a.norm_bias[k];
    }
}

// The vector, times the norm's weights if there are. Returns what sums are multiplied with: an RMSNorm's scale. All
// threads of the block; `scratch` is [32]. AT_ONCE chunks of a thread are on their way together.
template <class T, bool WHOLE, int AT_ONCE>
static __device__ __forceinline__ float stage(const wt_llm_matvec_args &a, int n_chunks, float4 *shared, float *scratch)
{
    const bool weighed = a.norm_weight && !a.norm_bias;
    float squares = 0;
    for (int first = threadIdx.x; first < n_chunks; first += AT_ONCE * THREADS) {
        float4 x[AT_ONCE][OF_CHUNK<T> / 4];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int q = 0; q < OF_CHUNK<T> / 4; q++)
                if (first + k * THREADS < n_chunks)
                    x[k][q] = load4<WHOLE>(a.x, (first + k * THREADS) * OF_CHUNK<T> + 4 * q, a.columns);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int q = 0; q < OF_CHUNK<T> / 4; q++) {
                if (first + k * THREADS >= n_chunks) continue;
                float4 *to = shared + q * n_chunks + first + k * THREADS, y = x[k][q];
                if (weighed) {
                    squares = dot4(y, y, squares);
                    y = {y.x * to->x, y.y * to->y, y.z * to->z, y.w * to->w};
                }
                *to = y;
            }
    }
    if (a.norm_bias) centre<T>(a, n_chunks, shared, scratch);
    if (weighed) return 1 / sqrtf(block_sum(squares, scratch) / (float)a.columns + a.eps); // all are past their stores
    sync_workers();
    return 1;
}

// ---- the weights

// What the matrices are: one, several whose rows follow each other, or a gated product's two.
enum { ONE, SEVERAL, GATED };

// The part that has a row, which becomes the row's number there.
template <int KIND> static __device__ __forceinline__ int part_of(const wt_llm_matvec_args &a, int *row)
{
    if (KIND != SEVERAL) return 0;
    const int first = a.parts[0].rows, second = first + a.parts[1].rows;
    const int part = *row < first ? 0 : *row < second ? 1 : 2;
    *row -= part == 0 ? 0 : part == 1 ? first : second;
    return part;
}

template <class T> static __device__ __forceinline__ float multiply(uint4 w, const float4 *x, float sum)
{
    const unsigned words[4] = {w.x, w.y, w.z, w.w};
    float y[OF_CHUNK<T>];
#pragma unroll
    for (int k = 0; k < 4; k++) widen_word(words[k], (const T *)0, y + k * OF_CHUNK<T> / 4);
#pragma unroll
    for (int q = 0; q < OF_CHUNK<T> / 4; q++) sum = dot4({y[4 * q], y[4 * q + 1], y[4 * q + 2], y[4 * q + 3]}, x[q], sum);
    return sum;
}
