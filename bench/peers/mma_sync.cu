// What mma.sync can reach on a GPU, for which matmul_tiles is measured there: loops of it, and cuBLASLt's own kernels
// of it (its algorithms whose tiles can be chosen; on compute capability 9.0 those are CUTLASS's for 8.0, which ncu
// names). 256 rows of W by 128 of x a block, eight warps of 64 by 64, as matmul_tiles has.
//
//   nvcc -O3 -arch=native -o build/mma_sync bench/peers/mma_sync.cu -lcublasLt
//   mma_sync [loops|library] [bf16|f16|int8|tf32|f32]
//
//   loops    registers         643.3 TFLOP/s    6.02 cycles a product
//   library  4096 bf16        311.0 us   442.0 TFLOP/s   algorithm 21, tile 24, stages 12
//
// (The figures only show the form.) Cycles are those of a quarter of an SM, a product is 16 x 8 x 16. Of the library
// the two fastest algorithms, each with its fastest tile and stages; a graph of products is replayed whose weights
// rotate over 1 GB, the median of 15, as in bench_matmul.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

enum { THREADS = 256, STAGES = 3, STEP_PIECES = 8, ROWS = 384, N_TIMES = 15 };
enum { STAGE_BYTES = ROWS * STEP_PIECES * 16, STEPS = 4000, PLACES = 512 };
enum { REGISTERS, FRAGMENTS, COPIES, BARRIERS };

static void need(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "mma_sync: %s\n", what);
    exit(1);
}

// ---- loops: a step is four products of 16 columns of each fragment

static __device__ void multiply(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ void load_fragment(unsigned *r, unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

// `What` the loop does: products of what is in registers; fragments from shared memory besides; copies to it, of
// memory that the L2 cache holds; and a barrier a step.
template <int What>
static __global__ void __launch_bounds__(THREADS, 1) loop(const uint4 *from, float *out, long long *cycles)
{
    extern __shared__ __align__(1024) uint4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned base = (unsigned)__cvta_generic_to_shared(shared), exchange = lane % 8 * 16;
    const unsigned w = base + (warp % 4 * 64 + lane % 16) * 128, w_half = lane / 16 * 16;
    const unsigned x = base + (256 + warp / 4 * 64 + lane / 16 * 8 + lane % 8) * 128, x_half = lane / 8 % 2 * 16;
    float d[4][8][4] = {};
    unsigned a[2][4][4], b[2][4][4];
    for (int k = threadIdx.x; k < STAGES * STAGE_BYTES / 16; k += THREADS) shared[k] = from[k];
    for (int k = 0; k < 32; k++) {
        a[k / 16][k / 4 % 4][k % 4] = ((const unsigned *)from)[k * THREADS + threadIdx.x];
        b[k / 16][k / 4 % 4][k % 4] = ((const unsigned *)from)[(k + 32) * THREADS + threadIdx.x];
    }
    __syncthreads();
    const long long begin = clock64();
    for (int k = 0; k < STEPS; k++) {
        const unsigned stage = k % STAGES * STAGE_BYTES, fill = base + (k + 2) % STAGES * STAGE_BYTES;
        const uint4 *source = from + (size_t)((k * gridDim.x + blockIdx.x) % PLACES) * (STAGE_BYTES / 16);
        if (What >= BARRIERS) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
#pragma unroll
            for (int i = 0; i < 4 && What >= FRAGMENTS; i++) {
                load_fragment(a[1 - q % 2][i], w + stage + i * 2048 + (q * 32 + w_half ^ exchange));
                load_fragment(b[1 - q % 2][i], x + stage + i * 2048 + (q * 32 + x_half ^ exchange));
            }
#pragma unroll
            for (int i = 0; i < 3 && What >= COPIES; i++) {
                const int at = (q * 3 + i) * THREADS + threadIdx.x;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(fill + (at ^ at / 8 % 8) * 16),
                             "l"(source + at));
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    multiply(d[i][j], a[q % 2][i], b[q % 2][j / 2][j % 2 * 2], b[q % 2][j / 2][j % 2 * 2 + 1]);
        }
        if (What >= COPIES) asm volatile("cp.async.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    float sum = 0;
    for (int k = 0; k < 128; k++) sum += d[k / 32][k / 4 % 8][k % 4];
    if (threadIdx.x == 0 && blockIdx.x == 0) *cycles = clock64() - begin;
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// Bytes whose bit 6 is 0 are finite in every type, as in bench_matmul.
static void *random_bytes(size_t bytes)
{
    const size_t some = std::min(bytes, (size_t)1 << 24);
    std::vector<unsigned char> random(some);
    unsigned seed = 1;
    for (unsigned char &byte : random) byte = (seed = seed * 1664525 + 1013904223) >> 24 & 0xbf;
    char *all;
    need(!cudaMalloc(&all, bytes), "no memory on the GPU");
    for (size_t at = 0; at < bytes; at += some)
        cudaMemcpy(all + at, random.data(), std::min(some, bytes - at), cudaMemcpyDefault);
    return all;
}

template <class F> static float median_us(F run)
{
    cudaEvent_t begin, end;
    float us[N_TIMES];
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int k = -2; k < N_TIMES; k++) {
        float ms;
        cudaEventRecord(begin);
        run();
        cudaEventRecord(end);
        need(!cudaEventSynchronize(end), "a launch failed");
        cudaEventElapsedTime(&ms, begin, end);
        if (k >= 0) us[k] = ms * 1e3f;
    }
    std::sort(us, us + N_TIMES);
    return us[N_TIMES / 2];
}

static void loops(void)
{
    const struct {
        const char *name;
        void (*kernel)(const uint4 *, float *, long long *);
    } all[] = {{"registers", loop<REGISTERS>},
               {"and fragments", loop<FRAGMENTS>},
               {"and copies", loop<COPIES>},
               {"and barriers", loop<BARRIERS>}};
    int sms;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    const uint4 *from = (const uint4 *)random_bytes((size_t)PLACES * STAGE_BYTES);
    float *out = (float *)random_bytes(sizeof(float) * THREADS * sms);
    long long *cycles, n;
    cudaMalloc(&cycles, sizeof n);
    for (const auto &one : all) {
        cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * STAGE_BYTES);
        const float us = median_us([&] { one.kernel<<<sms, THREADS, STAGES * STAGE_BYTES>>>(from, out, cycles); });
        cudaMemcpy(&n, cycles, sizeof n, cudaMemcpyDefault);
        const double products = 128.0 * STEPS; // of a warp; a quarter of an SM has two
        printf("loops    %-14s %8.1f TFLOP/s   %5.2f cycles a product\n", one.name,
               sms * (THREADS / 32) * products * 4096 / us / 1e6, n / (2 * products));
    }
}

// ---- cuBLASLt's kernels: y = x W^T

struct type {
    const char *name;
    cublasComputeType_t compute;
    cudaDataType_t scale, in, out;
    int bytes, out_bytes;
};

struct product {
    const type *t;
    int n, places;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t in, out;
    char *w, *x, *y, *workspace;
    size_t workspace_bytes;
};

static bool multiply_with(const product &p, const cublasLtMatmulAlgo_t *algo, int place, cudaStream_t stream)
{
    const float one = 1, zero = 0;
    const int whole_one = 1, whole_zero = 0;
    const bool whole = p.t->scale == CUDA_R_32I;
    return !cublasLtMatmul(p.handle, p.desc, whole ? (const void *)&whole_one : &one,
                           p.w + (size_t)place * p.n * p.n * p.t->bytes, p.in, p.x, p.in,
                           whole ? (const void *)&whole_zero : &zero, p.y, p.out, p.y, p.out, algo, p.workspace,
                           p.workspace_bytes, stream);
}

// Of a product, of a graph of one for each place.
static float us_of(const product &p, const cublasLtMatmulAlgo_t *algo)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int k = 0; k < p.places; k++) need(multiply_with(p, algo, k, stream), "cuBLASLt refuses what it had checked");
    cudaStreamEndCapture(stream, &graph);
    need(!cudaGraphInstantiate(&ready, graph, 0), "no graph");
    const float us = median_us([&] { cudaGraphLaunch(ready, 0); }) / p.places;
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return us;
}

static std::vector<unsigned> choices(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoCapAttributes_t of)
{
    size_t bytes = 0;
    cublasLtMatmulAlgoCapGetAttribute(algo, of, NULL, 0, &bytes);
    std::vector<unsigned> all(std::max((size_t)1, bytes / sizeof(unsigned)));
    if (bytes) cublasLtMatmulAlgoCapGetAttribute(algo, of, all.data(), bytes, &bytes);
    return all;
}

struct choice {
    float us;
    int id;
    unsigned tile, stages;
    cublasLtMatmulAlgo_t algo;
};

// The fastest tile and stages of an algorithm, by a few launches each; false for none.
static bool best_of(const product &p, int id, choice *best)
{
    const type *t = p.t;
    choice c = {1e9f, id};
    best->us = c.us;
    if (cublasLtMatmulAlgoInit(p.handle, t->compute, t->scale, t->in, t->in, t->out, t->out, id, &c.algo)) return false;
    for (unsigned tile : choices(&c.algo, CUBLASLT_ALGO_CAP_TILE_IDS))
        for (unsigned stages : choices(&c.algo, CUBLASLT_ALGO_CAP_STAGES_IDS)) {
            cublasLtMatmulHeuristicResult_t result;
            c.tile = tile;
            c.stages = stages;
            cublasLtMatmulAlgoConfigSetAttribute(&c.algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile);
            cublasLtMatmulAlgoConfigSetAttribute(&c.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof stages);
            if (cublasLtMatmulAlgoCheck(p.handle, p.desc, p.in, p.in, p.out, p.out, &c.algo, &result) ||
                result.workspaceSize > p.workspace_bytes)
                continue;
            cudaEvent_t begin, end;
            cudaEventCreate(&begin);
            cudaEventCreate(&end);
            multiply_with(p, &c.algo, 0, 0);
            cudaEventRecord(begin);
            for (int k = 0; k < 3; k++) multiply_with(p, &c.algo, k % p.places, 0);
            cudaEventRecord(end);
            need(!cudaEventSynchronize(end), "a kernel of cuBLASLt failed");
            cudaEventElapsedTime(&c.us, begin, end);
            if (c.us < best->us) *best = c;
        }
    return best->us < 1e9f;
}

static void library(const type *t, int n)
{
    const size_t w_bytes = (size_t)n * n * t->bytes;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    product p = {t, n, (int)std::max((size_t)4, ((size_t)1 << 30) / w_bytes)};
    p.workspace_bytes = 32 << 20;
    p.w = (char *)random_bytes(w_bytes * p.places);
    p.x = (char *)random_bytes(w_bytes);
    p.y = (char *)random_bytes((size_t)n * n * t->out_bytes);
    p.workspace = (char *)random_bytes(p.workspace_bytes);
    need(!cublasLtCreate(&p.handle) && !cublasLtMatmulDescCreate(&p.desc, t->compute, t->scale), "no cuBLASLt");
    cublasLtMatmulDescSetAttribute(p.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    cublasLtMatrixLayoutCreate(&p.in, t->in, n, n, n);
    cublasLtMatrixLayoutCreate(&p.out, t->out, n, n, n);
    int ids[256], n_ids = 0;
    cublasLtMatmulAlgoGetIds(p.handle, t->compute, t->scale, t->in, t->in, t->out, t->out, 256, ids, &n_ids);
    std::vector<choice> all;
    for (int k = 0; k < n_ids; k++) {
        choice best;
        if (best_of(p, ids[k], &best)) all.push_back(best);
    }
    std::sort(all.begin(), all.end(), [](const choice &a, const choice &b) { return a.us < b.us; });
    for (size_t k = 0; k < all.size() && k < 2; k++) {
        const float us = us_of(p, &all[k].algo);
        printf("library  %d %-6s %10.1f us %7.1f TFLOP/s   algorithm %d, tile %u, stages %u\n", n, t->name, us,
               2.0 * n * n * n / us / 1e6, all[k].id, all[k].tile, all[k].stages);
    }
    for (char *memory : {p.w, p.x, p.y, p.workspace}) cudaFree(memory);
}

int main(int argc, char **argv)
{
    static const type types[] = {{"bf16", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, 2, 2},
                                 {"f16", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, 2, 2},
                                 {"int8", CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I, 1, 4},
                                 {"tf32", CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 4, 4},
                                 {"f32", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 4, 4}};
    if (argc < 2 || !strcmp(argv[1], "loops")) loops();
    for (const type &t : types)
        for (int n = 2048; n <= 8192 && (argc < 2 || !strcmp(argv[1], "library")); n *= 2)
            if (argc < 3 || !strcmp(argv[2], t.name)) library(&t, n);
}
