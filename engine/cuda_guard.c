#include "cuda_guard.h"

enum { MAX_DEVICES = 64 };

// Filled once by wt__cuda_guard_table, read only afterwards.
static wt__cuda driver;
// One for each GPU of the process, however many handles it has: the state of the hardware, not of an object.
static wt__guard guards[MAX_DEVICES];

wt__guard *wt__cuda_guard_of(CUdevice device)
{
    return device >= 0 && device < MAX_DEVICES ? &guards[device] : NULL;
}

/// Without a current context the driver's call fails by itself, so it may go on.
static wt__guard *current_guard(void)
{
    CUdevice device;
    return driver.CtxGetDevice(&device) ? NULL : wt__cuda_guard_of(device);
}

// X(code, entry, parameters, arguments, guard of the call)
#define GUARDED_LIST(X)                                                                                                \
    X(WT_ARM_CTX_SYNCHRONIZE, CtxSynchronize, (void), (), current_guard())                                             \
    X(WT_ARM_MODULE_LOAD, ModuleLoadData, (CUmodule * module, const void *image), (module, image), current_guard())    \
    X(WT_ARM_MODULE_UNLOAD, ModuleUnload, (CUmodule module), (module), current_guard())                                \
    X(WT_ARM_FUNC_LOAD, FuncLoad, (CUfunction function), (function), current_guard())                                  \
    X(WT_ARM_MEM_FREE, MemFree, (CUdeviceptr address), (address), current_guard())                                     \
    X(WT_ARM_MEM_FREE_HOST, MemFreeHost, (void *host), (host), current_guard())                                        \
    X(WT_ARM_MEM_POOL_DESTROY, MemPoolDestroy, (CUmemoryPool pool), (pool), current_guard())                           \
    X(WT_ARM_MEM_POOL_TRIM, MemPoolTrimTo, (CUmemoryPool pool, size_t keep_bytes), (pool, keep_bytes),                 \
      current_guard())                                                                                                 \
    X(WT_ARM_GREEN_CTX_CREATE, GreenCtxCreate,                                                                         \
      (CUgreenCtx * context, CUdevResourceDesc desc, CUdevice device, unsigned int flags),                             \
      (context, desc, device, flags), wt__cuda_guard_of(device))                                                       \
    X(WT_ARM_GREEN_CTX_DESTROY, GreenCtxDestroy, (CUgreenCtx context), (context), current_guard())

#define DEFINE(code, entry, parameters, arguments, guard_of_call)                                                      \
    static CUresult guarded_##entry parameters                                                                         \
    {                                                                                                                  \
        wt__guard *guard = guard_of_call;                                                                              \
        if (guard && !wt__guard_enter(guard, code)) return WT_CUDA_REFUSED + (int)code;                                \
        CUresult result = driver.entry arguments;                                                                      \
        if (guard) wt__guard_leave(guard);                                                                             \
        return result;                                                                                                 \
    }
GUARDED_LIST(DEFINE)
#undef DEFINE

void wt__cuda_guard_table(wt__cuda *table)
{
    driver = *table;
    for (int k = 0; k < MAX_DEVICES; k++) wt__guard_init(&guards[k]);
#define REPLACE(code, entry, parameters, arguments, guard_of_call)                                                     \
    if (table->entry) table->entry = guarded_##entry;
    GUARDED_LIST(REPLACE)
#undef REPLACE
}
