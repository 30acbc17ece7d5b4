// What the resident kernel says in PTX: the clock that all SMs share, and copies from the host's memory to shared
// memory that come in groups, in passing.
#pragma once
#include "block_ring_kernel.h"

static __device__ __forceinline__ long long resident_now()
{
    long long now_ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now_ns));
    return now_ns;
}

// Two words; nobody waits for them before the group that they are in.
static __device__ __forceinline__ void resident_ask(wt_block_word *to, const wt_block_word *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
static __device__ __forceinline__ void resident_asked() { asm volatile("cp.async.commit_group;" : : : "memory"); }
static __device__ __forceinline__ void resident_await_others()
{
    asm volatile("cp.async.wait_group 1;" : : : "memory");
}
static __device__ __forceinline__ void resident_await_all() { asm volatile("cp.async.wait_all;" : : : "memory"); }
