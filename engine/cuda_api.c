#include "cuda_api.h"
#include "cuda_guard.h"
#include "cuda_lost.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Filled once by open_driver, read only afterwards.
static wt__cuda table;
static wt_status table_status;
static char table_why[512];

enum need { OPTIONAL, REQUIRED };

/// The first required symbol that the driver lacks, or NULL.
static const char *load_symbols(void *library)
{
    const char *missing = NULL;
#define LOAD(need, name, symbol, arguments)                                                                            \
    *(void **)&table.name = dlsym(library, symbol);                                                                    \
    if (need == REQUIRED && !missing && !table.name) missing = symbol;
    WT__CUDA_LIST(LOAD)
#undef LOAD
    return missing;
}

static void open_driver(void)
{
    table_status = WT_ERR_NO_GPU;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(table_why, sizeof table_why,
                 "CUDA driver not detected: %s; install the NVIDIA driver, or work on the CPU", dlerror());
        return;
    }
    const char *missing = load_symbols(library);
    if (missing) {
        snprintf(
            table_why, sizeof table_why,
            "CUDA driver not detected: libcuda.so.1 lacks %s, so it is older than CUDA 11; update the NVIDIA driver",
            missing);
        dlclose(library);
        return;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    CUresult result = table.Init(0);
    if (result == CUDA_ERROR_NO_DEVICE) {
        snprintf(
            table_why, sizeof table_why,
            "No GPU devices found: the driver is there but offers no device; see what nvidia-smi lists and whether "
            "CUDA_VISIBLE_DEVICES hides it");
    } else if (result) {
        const char *name = "an unknown error", *text = "";
        table.GetErrorName(result, &name);
        table.GetErrorString(result, &text);
        snprintf(
            table_why, sizeof table_why,
            "CUDA driver not detected: it does not start, cuInit gives %s (%s); reload or reinstall the NVIDIA driver",
            name, text);
    } else {
        table.DriverGetVersion(&table.driver_version);
        wt__cuda_guard_table(&table);
        table_status = WT_OK;
    }
}

wt_status wt__cuda_open(const wt__cuda **cuda)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    *cuda = table_status ? NULL : &table;
    return table_status ? wt_fail(table_status, "%s", table_why) : WT_OK;
}

static wt_status status_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return WT_ERR_NO_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
        return WT_ERR_NO_GPU;
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return WT_ERR_DEVICE_LOST;
    default:
        return WT_ERR_CUDA;
    }
}

wt_status wt__cu(const wt__cuda *cuda, CUresult result, const char *what, ...)
{
    if (result == CUDA_SUCCESS) return WT_OK;
    char call[512];
    va_list args;
    va_start(args, what);
    vsnprintf(call, sizeof call, what, args);
    va_end(args);

    if (result >= WT_CUDA_REFUSED && result < WT_CUDA_REFUSED + WT_N_ARM_CALLS)
        return wt__guard_refusal((wt_arm_call)(result - WT_CUDA_REFUSED), call);
    const char *name = NULL, *text = NULL;
    cuda->GetErrorName(result, &name);
    cuda->GetErrorString(result, &text);
    wt_status status = status_of(result);
    wt_fail(status, "%s: %s (%d): %s%s", call, name ? name : "unknown CUDA error", result, text ? text : "",
            status == WT_ERR_DEVICE_LOST ? "; the device is lost until all handles of it are closed" : "");
    if (status == WT_ERR_DEVICE_LOST) wt__cuda_note_lost(wt_last_error());
    return status;
}
