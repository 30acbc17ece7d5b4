// Barriers in shared memory that tell of arrivals and copies. Source: PTX ISA 8.0, "mbarrier", "cp.async.bulk",
// "cp.async.bulk.tensor". Copies of rows and boxes, and what a barrier expects of them, are for compute capability 9.0
// and newer; before it they are nothing.

static __device__ __forceinline__ unsigned shared_of(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// ---- a phase ends with `count` arrivals and the bytes that were expected

static __device__ __forceinline__ void barrier_create(unsigned long long *barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_of(barrier)), "r"(count) : "memory");
}

// After all were created, by the thread that did; the block's barrier follows.
static __device__ __forceinline__ void barriers_created()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "fence.proxy.async.shared::cta;" ::
                     : "memory");
#endif
}

static __device__ __forceinline__ void barrier_arrive(unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_of(barrier)) : "memory");
}

// A warp gives back what copies of rows or boxes write next. `loaded` has a word of each load of it, or what was
// made of them: an arrival alone does not wait for loads on their way, and a copy came before one (matmul_few's x, one
// step of seven of a small model; H200). So the arrival's address needs the word: blocks are one thread high, which the
// compiler does not know. What the PTX ISA has for it, fence.proxy.async, takes 1 % of matmul_few, 1.5 % of llm_quant.
static __device__ __forceinline__ void warp_gives_back(unsigned long long *barrier, unsigned loaded)
{
    const unsigned at = shared_of(barrier) + (loaded & (blockDim.y - 1));
    __syncwarp();
    if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

// Arrive, and have the phase wait for so many bytes of copies.
static __device__ __forceinline__ void barrier_expect(unsigned long long *barrier, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_of(barrier)), "r"(bytes)
                 : "memory");
#endif
}

// Whether the phase of that parity is over: barrier_passed stays for a while where the chip can, barrier_over never.
// What those who arrived did before is seen then: of the block's threads, with `scope` of the cluster's.
#define BARRIER_QUESTION(name, wait, scope)                                                                            \
    static __device__ __forceinline__ bool name(unsigned long long *barrier, unsigned parity)                          \
    {                                                                                                                  \
        unsigned over;                                                                                                 \
        asm volatile("{\n"                                                                                             \
                     ".reg .pred p;\n"                                                                                 \
                     "mbarrier." wait ".parity" scope ".shared::cta.b64 p, [%1], %2;\n"                                \
                     "selp.u32 %0, 1, 0, p;\n"                                                                         \
                     "}"                                                                                               \
                     : "=r"(over)                                                                                      \
                     : "r"(shared_of(barrier)), "r"(parity)                                                            \
                     : "memory");                                                                                      \
        return over;                                                                                                   \
    }
#if __CUDA_ARCH__ >= 900
BARRIER_QUESTION(barrier_passed, "try_wait", "")
BARRIER_QUESTION(barrier_passed_in_cluster, "try_wait", ".acquire.cluster")
#else
BARRIER_QUESTION(barrier_passed, "test_wait", "")
BARRIER_QUESTION(barrier_passed_in_cluster, "test_wait", "")
#endif
BARRIER_QUESTION(barrier_over, "test_wait", "")
#undef BARRIER_QUESTION

// Until the phase of that parity is over; of a new barrier the one of parity 1 is.
static __device__ __forceinline__ void barrier_wait(unsigned long long *barrier, unsigned parity)
{
    while (!barrier_passed(barrier, parity)) {
    }
}

// The same where other blocks of the cluster arrive or send.
static __device__ __forceinline__ void barrier_wait_in_cluster(unsigned long long *barrier, unsigned parity)
{
    while (!barrier_passed_in_cluster(barrier, parity)) {
    }
}

// The thread's copy_async_* until here arrive, as one of those that the barrier counts, when they are there.
static __device__ __forceinline__ void barrier_arrive_copied(unsigned long long *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_of(barrier)) : "memory");
}

// Bytes that a barrier expects: addresses and size in multiples of 16.
static __device__ __forceinline__ void copy_bulk(void *to, const void *from, int bytes, unsigned long long *barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_of(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_of(barrier))
        : "memory");
#endif
}

// The box of a tensor map (wt_tensor_map_create) that begins at column, row, matrix, to 1024-byte aligned shared
// memory (128-byte aligned where it is not swizzled).
static __device__ __forceinline__ void copy_box(void *to, const void *map, int column, int row, int matrix,
                                                unsigned long long *barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_of(to)),
                 "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(shared_of(barrier))
                 : "memory");
#endif
}

static __device__ __forceinline__ void prefetch_map(const void *map)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}
