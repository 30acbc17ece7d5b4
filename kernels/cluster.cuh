// Clusters of blocks along x (compute capability 9.0 and newer): CLUSTER_n before a kernel's bounds, meetings of all
// their threads, and each other's shared memory.
#if __CUDA_ARCH__ >= 900
#    define CLUSTER_1
#    define CLUSTER_2 __cluster_dims__(2, 1, 1)
#    define CLUSTER_3 __cluster_dims__(3, 1, 1)
#    define CLUSTER_4 __cluster_dims__(4, 1, 1)
#    define CLUSTER_8 __cluster_dims__(8, 1, 1)
static __device__ __forceinline__ void cluster_meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// What lies there in the shared memory of block `rank` of the cluster.
static __device__ __forceinline__ float4 load_from(const float *address, int rank)
{
    unsigned there;
    float4 x;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((unsigned)__cvta_generic_to_shared(address)), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(there)
                 : "memory");
    return x;
}
#else // never launched there
#    define CLUSTER_1
#    define CLUSTER_2
#    define CLUSTER_3
#    define CLUSTER_4
#    define CLUSTER_8
static __device__ __forceinline__ void cluster_meet() { __syncthreads(); }
static __device__ __forceinline__ float4 load_from(const float *address, int) { return *(const float4 *)address; }
#endif
