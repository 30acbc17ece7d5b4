// Barriers in shared memory that copies in the background tell of, from compute capability 9.0 on: a phase ends with
// `count` arrivals and the bytes that were expected. Source: PTX ISA 8.0, "mbarrier", "cp.async.bulk".

static __device__ __forceinline__ unsigned shared_of(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static __device__ __forceinline__ void barrier_create(unsigned long long *barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_of(barrier)), "r"(count) : "memory");
}

// After all were created, by the thread that did; the block's barrier follows.
static __device__ __forceinline__ void barriers_created()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "fence.proxy.async.shared::cta;" ::
                     : "memory");
}

static __device__ __forceinline__ void barrier_arrive(unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_of(barrier)) : "memory");
}

static __device__ __forceinline__ void barrier_expect(unsigned long long *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_of(barrier)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ bool barrier_passed(unsigned long long *barrier, unsigned parity)
{
    unsigned passed;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(passed)
                 : "r"(shared_of(barrier)), "r"(parity)
                 : "memory");
    return passed;
}

// Until the phase of that parity is over; of a new barrier the one of parity 1 is.
static __device__ __forceinline__ void barrier_wait(unsigned long long *barrier, unsigned parity)
{
    while (!barrier_passed(barrier, parity)) {}
}

// Bytes, a multiple of 16, from and to multiples of 16; the barrier is told.
static __device__ __forceinline__ void copy_bulk(void *to, const void *from, int bytes, unsigned long long *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_of(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_of(barrier))
                 : "memory");
}
