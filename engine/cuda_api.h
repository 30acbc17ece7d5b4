/// The CUDA Driver API as this engine sees it: types, values and one table of entry points, filled by dlopen.
///
/// Declared after NVIDIA's public reference ("CUDA Driver API", 12.4 and 13.0); names are the driver's own, so that its
/// documentation applies. No CUDA header is ever included and nothing links to CUDA. Every call in this engine goes
/// through the table, so a guard can stand in one place.
#ifndef WT_CUDA_API_H
#define WT_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef void (*CUhostFn)(void *user);

enum { // CUresult, those that are told apart here
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
};

enum { // CUdevice_attribute
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT = 126,
};

enum { // CUfunction_attribute
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
};

enum { // flags of several calls
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_CTX_SCHED_SPIN = 1,
    CU_CTX_SCHED_BLOCKING_SYNC = 4,
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
};

enum { // CUmemPool_attribute; the first three are int, the others uint64_t
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
};

typedef struct CUmemPoolProps {
    int allocType;   ///< 1 = CU_MEM_ALLOCATION_TYPE_PINNED, the only one
    int handleTypes; ///< 0 = no export
    struct {
        int type; ///< 1 = CU_MEM_LOCATION_TYPE_DEVICE
        int id;   ///< CUdevice
    } location;
    void *win32SecurityAttributes;
    size_t maxSize; ///< 0 = the system's limit (12.2 and newer; reserved before)
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

enum { // green contexts
    CU_DEV_RESOURCE_TYPE_SM = 1,
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1,
    CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2,
    CU_GREEN_CTX_DEFAULT_STREAM = 1,
};

typedef struct CUdevResource {
    int type;
    unsigned char internal[92];
    union {
        struct {
            unsigned int smCount;
            unsigned int minSmPartitionSize;     ///< 13.0 and newer, 0 before
            unsigned int smCoscheduledAlignment; ///< likewise
        } sm;
        unsigned char oversize[48];
    };
} CUdevResource;

typedef struct CUDA_KERNEL_NODE_PARAMS { // _v2
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUtensorMap {
    uint64_t opaque[16];
} __attribute__((aligned(64))) CUtensorMap;

enum { // of tensor maps
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0, ///< zeros
};

enum { // CUlaunchAttributeID
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
};

typedef struct CUlaunchAttribute {
    int id;
    char padding[4];
    union {
        char oversize[64];
        int cooperative;
        struct {
            unsigned int x, y, z;
        } clusterDim;
        int programmaticStreamSerializationAllowed;
        int priority;
        int memSyncDomain; ///< 0 = the default one, 1 = the remote one
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

// clang-format off
/// X(need, field, symbol, arguments): REQUIRED ones are in every driver of CUDA 11.0 and newer; OPTIONAL ones are NULL
/// in older drivers and are to be tested before a call.
#define WT__CUDA_LIST(X)                                                                                               \
    X(REQUIRED, Init, "cuInit", (unsigned int flags))                                                                  \
    X(REQUIRED, DriverGetVersion, "cuDriverGetVersion", (int *version))                                                \
    X(REQUIRED, GetErrorName, "cuGetErrorName", (CUresult result, const char **name))                                  \
    X(REQUIRED, GetErrorString, "cuGetErrorString", (CUresult result, const char **text))                              \
    X(REQUIRED, DeviceGetCount, "cuDeviceGetCount", (int *count))                                                      \
    X(REQUIRED, DeviceGet, "cuDeviceGet", (CUdevice *device, int ordinal))                                             \
    X(REQUIRED, DeviceGetName, "cuDeviceGetName", (char *name, int length, CUdevice device))                           \
    X(REQUIRED, DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))              \
    X(REQUIRED, DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))                               \
    X(REQUIRED, DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *id, int length, CUdevice device))                     \
    X(REQUIRED, DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *context, CUdevice device))             \
    X(REQUIRED, DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                            \
    X(REQUIRED, DevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", (CUdevice device, unsigned int flags))      \
    X(REQUIRED, DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState",                                                \
      (CUdevice device, unsigned int *flags, int *active))                                                             \
    X(REQUIRED, CtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                                 \
    X(REQUIRED, CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *context))                                                \
    X(REQUIRED, CtxGetDevice, "cuCtxGetDevice", (CUdevice *device))                                                    \
    X(REQUIRED, CtxSynchronize, "cuCtxSynchronize", (void))                                                            \
    X(REQUIRED, CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *lowest, int *highest))                 \
    X(REQUIRED, MemGetInfo, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total_bytes))                              \
    X(REQUIRED, MemAlloc, "cuMemAlloc_v2", (CUdeviceptr *address, size_t bytes))                                       \
    X(REQUIRED, MemFree, "cuMemFree_v2", (CUdeviceptr address))                                                        \
    X(REQUIRED, MemHostAlloc, "cuMemHostAlloc", (void **host, size_t bytes, unsigned int flags))                       \
    X(REQUIRED, MemFreeHost, "cuMemFreeHost", (void *host))                                                            \
    X(REQUIRED, MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                               \
      (CUdeviceptr *address, void *host, unsigned int flags))                                                          \
    X(REQUIRED, MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                               \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                                               \
    X(REQUIRED, MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream))  \
    X(REQUIRED, MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                               \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                                               \
    X(REQUIRED, MemcpyAsync, "cuMemcpyAsync", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))       \
    X(REQUIRED, MemsetD8Async, "cuMemsetD8Async",                                                                      \
      (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                                            \
    X(REQUIRED, StreamCreateWithPriority, "cuStreamCreateWithPriority",                                                \
      (CUstream *stream, unsigned int flags, int priority))                                                            \
    X(REQUIRED, StreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                \
    X(REQUIRED, StreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                           \
    X(REQUIRED, StreamQuery, "cuStreamQuery", (CUstream stream))                                                       \
    X(REQUIRED, StreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned int flags))            \
    X(REQUIRED, StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                            \
    X(REQUIRED, StreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph *graph))                             \
    X(REQUIRED, StreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, int *status))                              \
    X(REQUIRED, EventCreate, "cuEventCreate", (CUevent *event, unsigned int flags))                                    \
    X(REQUIRED, EventDestroy, "cuEventDestroy_v2", (CUevent event))                                                    \
    X(REQUIRED, EventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                        \
    X(REQUIRED, EventQuery, "cuEventQuery", (CUevent event))                                                           \
    X(REQUIRED, EventSynchronize, "cuEventSynchronize", (CUevent event))                                               \
    X(REQUIRED, EventElapsedTime, "cuEventElapsedTime", (float *milliseconds, CUevent begin, CUevent end))             \
    X(REQUIRED, ModuleLoadData, "cuModuleLoadData", (CUmodule *module, const void *image))                             \
    X(REQUIRED, ModuleUnload, "cuModuleUnload", (CUmodule module))                                                     \
    X(REQUIRED, ModuleGetFunction, "cuModuleGetFunction", (CUfunction *function, CUmodule module, const char *name))   \
    X(REQUIRED, ModuleGetGlobal, "cuModuleGetGlobal_v2",                                                               \
      (CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name))                                        \
    X(REQUIRED, FuncGetAttribute, "cuFuncGetAttribute", (int *value, int attribute, CUfunction function))              \
    X(REQUIRED, FuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))               \
    X(REQUIRED, OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",              \
      (int *n_blocks, CUfunction function, int block, size_t shared_bytes))                                            \
    X(REQUIRED, LaunchKernel, "cuLaunchKernel",                                                                        \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,       \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,          \
       void **extra))                                                                                                  \
    X(REQUIRED, LaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                                  \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,       \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params))         \
    X(REQUIRED, LaunchHostFunc, "cuLaunchHostFunc", (CUstream stream, CUhostFn function, void *user))                  \
    X(REQUIRED, GraphLaunch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))                                     \
    X(REQUIRED, GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec exec))                                            \
    X(REQUIRED, GraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                       \
    X(REQUIRED, GraphGetNodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode *nodes, size_t *n_nodes))                \
    X(REQUIRED, GraphNodeGetType, "cuGraphNodeGetType", (CUgraphNode node, int *type))                                 \
    X(OPTIONAL, DevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", (CUdevice device))                                \
    X(OPTIONAL, GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                              \
      (CUgraphExec *exec, CUgraph graph, unsigned long long flags))                                                    \
    X(OPTIONAL, GraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2",                                             \
      (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params))                                                             \
    X(OPTIONAL, GraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                                     \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))                                     \
    X(OPTIONAL, StreamWriteValue32, "cuStreamWriteValue32_v2",                                                         \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags))                                      \
    X(OPTIONAL, LaunchKernelEx, "cuLaunchKernelEx",                                                                    \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))                                \
    X(OPTIONAL, OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                            \
      (int *n_clusters, CUfunction function, const CUlaunchConfig *config))                                            \
    X(OPTIONAL, FuncGetParamInfo, "cuFuncGetParamInfo",                                                                \
      (CUfunction function, size_t index, size_t *offset, size_t *bytes))                                              \
    X(OPTIONAL, TensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                        \
      (CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,       \
       const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle, int l2_promotion,            \
       int fill))                                                                                                      \
    X(OPTIONAL, FuncLoad, "cuFuncLoad", (CUfunction function))                                                         \
    X(OPTIONAL, MemAllocAsync, "cuMemAllocAsync", (CUdeviceptr *address, size_t bytes, CUstream stream))               \
    X(OPTIONAL, MemFreeAsync, "cuMemFreeAsync", (CUdeviceptr address, CUstream stream))                                \
    X(OPTIONAL, MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                                      \
      (CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream))                                        \
    X(OPTIONAL, MemPoolCreate, "cuMemPoolCreate", (CUmemoryPool *pool, const CUmemPoolProps *props))                   \
    X(OPTIONAL, MemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool pool))                                               \
    X(OPTIONAL, MemPoolSetAttribute, "cuMemPoolSetAttribute", (CUmemoryPool pool, int attribute, void *value))         \
    X(OPTIONAL, MemPoolGetAttribute, "cuMemPoolGetAttribute", (CUmemoryPool pool, int attribute, void *value))         \
    X(OPTIONAL, MemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool pool, size_t keep_bytes))                              \
    X(OPTIONAL, DeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (CUmemoryPool *pool, CUdevice device))           \
    X(OPTIONAL, DeviceGetDevResource, "cuDeviceGetDevResource", (CUdevice device, CUdevResource *resource, int type))  \
    X(OPTIONAL, DevSmResourceSplitByCount, "cuDevSmResourceSplitByCount",                                              \
      (CUdevResource *groups, unsigned int *n_groups, const CUdevResource *input, CUdevResource *remaining,            \
       unsigned int flags, unsigned int min_count))                                                                    \
    X(OPTIONAL, DevResourceGenerateDesc, "cuDevResourceGenerateDesc",                                                  \
      (CUdevResourceDesc *desc, CUdevResource *resources, unsigned int n_resources))                                   \
    X(OPTIONAL, GreenCtxCreate, "cuGreenCtxCreate",                                                                    \
      (CUgreenCtx *context, CUdevResourceDesc desc, CUdevice device, unsigned int flags))                              \
    X(OPTIONAL, GreenCtxDestroy, "cuGreenCtxDestroy", (CUgreenCtx context))                                            \
    X(OPTIONAL, GreenCtxStreamCreate, "cuGreenCtxStreamCreate",                                                        \
      (CUstream *stream, CUgreenCtx context, unsigned int flags, int priority))                                        \
    X(OPTIONAL, GreenCtxGetDevResource, "cuGreenCtxGetDevResource",                                                    \
      (CUgreenCtx context, CUdevResource *resource, int type))                                                         \
    X(OPTIONAL, GreenCtxRecordEvent, "cuGreenCtxRecordEvent", (CUgreenCtx context, CUevent event))                     \
    X(OPTIONAL, GreenCtxWaitEvent, "cuGreenCtxWaitEvent", (CUgreenCtx context, CUevent event))
// clang-format on

typedef struct wt__cuda {
#define WT__CUDA_FIELD(need, name, symbol, arguments) CUresult(*name) arguments;
    WT__CUDA_LIST(WT__CUDA_FIELD)
#undef WT__CUDA_FIELD
    int driver_version; ///< 13000 = CUDA 13.0
} wt__cuda;

/// Open libcuda and call cuInit, once in a process (CUDA_MODULE_LOADING=EAGER is set first unless the user set it:
/// a kernel that loads lazily at its first launch would stall beside a resident kernel).
/// Errors: WT_ERR_NO_GPU, "CUDA driver not detected: ..." or "No GPU devices found: ...".  [any but rt]
WT_CHECKED wt_status wt__cuda_open(const wt__cuda **cuda);

/// Turn a CUDA result into a status: "<what>: CUDA_ERROR_X (700): text". Errors after which the context answers nothing
/// else (illegal address, launch failure, uncorrectable memory ...) give WT_ERR_DEVICE_LOST; what the guard refused
/// (cuda_guard.h) gives WT_ERR_ARMED.  [any but rt]
wt_status wt__cu(const wt__cuda *cuda, CUresult result, const char *what, ...) WT_PRINTF(3, 4);

#endif
