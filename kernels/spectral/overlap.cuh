// For kernels that are launched with wt_launch.overlap. What a kernel does before wait_for_earlier must not depend on
// any kernel before it in the stream that may still run, and every block waits, so that waiting for the last one is
// waiting for all. Nothing happens before 9.0, nor without the launch's overlap.

// The next kernel's blocks may come as soon as all of this one's have said so, and there is room for them.
static __device__ __forceinline__ void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the kernels before are done and what they wrote can be read.
static __device__ __forceinline__ void wait_for_earlier()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Ask for memory to come to the L2 cache: address and size in multiples of 16.
static __device__ __forceinline__ void ask_for(const void *from, unsigned bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                 ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
#endif
}
