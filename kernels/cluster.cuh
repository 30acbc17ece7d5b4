// Clusters of blocks along x (compute capability 9.0 and newer): CLUSTER_n before a kernel's bounds, meetings of all
// their threads, and each other's shared memory.
#if __CUDA_ARCH__ >= 900
#    define CLUSTER_1
#    define CLUSTER_2 __cluster_dims__(2, 1, 1)
#    define CLUSTER_3 __cluster_dims__(3, 1, 1)
#    define CLUSTER_4 __cluster_dims__(4, 1, 1)
#    define CLUSTER_8 __cluster_dims__(8, 1, 1)

// A meeting in two parts, with the barriers that were created before it; other memory is not seen by it.
static __device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
static __device__ __forceinline__ void cluster_meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The place of `address` in the shared memory of block `rank` of the cluster.
static __device__ __forceinline__ unsigned place_in(const void *address, int rank)
{
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((unsigned)__cvta_generic_to_shared(address)), "r"(rank));
    return there;
}

// What lies there in the shared memory of block `rank` of the cluster.
static __device__ __forceinline__ float4 load_from(const float *address, int rank)
{
    const unsigned there = place_in(address, rank);
    float4 x;
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(there)
                 : "memory");
    return x;
}

// *address = x there.
static __device__ __forceinline__ void store_in(float *address, int rank, float x)
{
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(place_in(address, rank)), "f"(x) : "memory");
}

// To there, as 16 bytes that a barrier of that block expects (barrier.cuh): barrier_wait_in_cluster sees them.
static __device__ __forceinline__ void send_to(float4 *address, int rank, float4 x, unsigned long long *barrier)
{
    const unsigned there = place_in(address, rank), barrier_there = place_in(barrier, rank);
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(there),
        "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(barrier_there)
        : "memory");
}
static __device__ __forceinline__ void send_to(float2 *address, int rank, float2 x, unsigned long long *barrier)
{
    const unsigned there = place_in(address, rank), barrier_there = place_in(barrier, rank);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(there),
                 "f"(x.x), "f"(x.y), "r"(barrier_there)
                 : "memory");
}

// Arrive at the barrier of block `rank`: who waits there in the cluster sees what was done before.
static __device__ __forceinline__ void barrier_arrive_at(unsigned long long *barrier, int rank)
{
    const unsigned there = place_in(barrier, rank);
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}
#else // never launched there
#    define CLUSTER_1
#    define CLUSTER_2
#    define CLUSTER_3
#    define CLUSTER_4
#    define CLUSTER_8
static __device__ __forceinline__ void cluster_arrive() {}
static __device__ __forceinline__ void cluster_wait() {}
static __device__ __forceinline__ void cluster_meet() { __syncthreads(); }
static __device__ __forceinline__ float4 load_from(const float *address, int) { return *(const float4 *)address; }
static __device__ __forceinline__ void store_in(float *address, int, float x) { *address = x; }
static __device__ __forceinline__ void send_to(float4 *address, int, float4 x, unsigned long long *) { *address = x; }
static __device__ __forceinline__ void send_to(float2 *address, int, float2 x, unsigned long long *) { *address = x; }
static __device__ __forceinline__ void barrier_arrive_at(unsigned long long *, int) {}
#endif
