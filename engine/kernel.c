// Modules and launches on the CUDA backend.
#include "graph_internal.h"
#include "kernel_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, PLAIN_SHARED_BYTES = 48 * 1024, MAX_GRID_YZ = 65535, FIRST_TO_OVERLAP = 12030 };

struct wt_kernel {
    wt_module *module;
    CUfunction function;
    wt_kernel_info info;
    atomic_size_t opted_bytes; ///< dynamic shared memory opted in to so far
    int n_params;              ///< -1 where the driver does not tell (before 12.4)
    size_t param_bytes[WT_MAX_PARAMS];
    wt_kernel *next;
    char name[];
};

struct wt_module {
    wt__aside aside;
    wt__cuda_device *device;
    CUmodule module;
    wt_compiled compiled;  ///< until it is loaded
    pthread_mutex_t mutex; ///< guards the list
    wt_kernel *kernels;
    char name[NAME_BYTES];
};

// ---- modules

static wt_status refuse_cpu(const wt_device *device, const char *name)
{
    if (device->info.backend == WT_BACKEND_CUDA) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED, "%s: CUDA kernels need a GPU; this device is the CPU", name);
}

static const char *name_of(const wt_module_config *config) { return config->name ? config->name : "kernel"; }

wt_status wt_module_prepare(wt_device *device, const wt_module_config *config, wt_module **module)
{
    *module = NULL;
    const char *name = name_of(config);
    wt_status status = refuse_cpu(device, name);
    if (status) return status;
    wt_module *m = calloc(1, sizeof *m);
    if (!m) return wt_fail(WT_ERR_NO_MEMORY, "%s: no memory for a handle", name);
    m->device = wt__cuda_device_of(device);
    snprintf(m->name, sizeof m->name, "%s", name);
    pthread_mutex_init(&m->mutex, NULL);
    const wt_device_info *info = &device->info;
    status = wt_kernel_compile(config, info->compute_major * 10 + info->compute_minor, &m->compiled);
    if (status) {
        wt_module_destroy(m);
        return status;
    }
    *module = m;
    return WT_OK;
}

wt_status wt_module_load(wt_module *m)
{
    wt__cuda_device *d = m->device;
    const wt_device_info *info = &d->base.info;
    wt_status status = m->module ? WT_OK : wt__cuda_enter(d);
    if (status || m->module) return status;
    status = wt__cu(d->cuda, d->cuda->ModuleLoadData(&m->module, m->compiled.image),
                    "%s: load into %s (the driver is CUDA %d.%d; it may refuse what a newer NVRTC made)", m->name,
                    info->name, info->driver_version / 1000, info->driver_version % 1000 / 10);
    if (status) return status;
    free(m->compiled.image);
    m->compiled.image = NULL;
    return WT_OK;
}

wt_status wt_module_create(wt_device *device, const wt_module_config *config, wt_module **module)
{
    *module = NULL;
    wt_status status = refuse_cpu(device, name_of(config));
    if (!status) status = wt__guard_check(device->guard, WT_ARM_MODULE_LOAD, name_of(config));
    if (status) return status;      // before compiling for nothing
    wt__guard_leave(device->guard); // the entry of the table holds it when it comes to loading
    status = wt_module_prepare(device, config, module);
    if (!status) status = wt_module_load(*module);
    if (!status || !*module) return status;
    wt_module_destroy(*module);
    *module = NULL;
    return status;
}

static void destroy_module(wt_module *module)
{
    if (module->module && wt__cuda_enter_to_free(module->device)) module->device->cuda->ModuleUnload(module->module);
    while (module->kernels) {
        wt_kernel *next = module->kernels->next;
        free(module->kernels);
        module->kernels = next;
    }
    pthread_mutex_destroy(&module->mutex);
    free(module->compiled.image);
    free(module);
}

static void release_module(wt_device *device, wt__aside *aside)
{
    wt_module *module = (wt_module *)aside; // its first member
    module->device = wt__cuda_device_of(device);
    destroy_module(module);
}

void wt_module_destroy(wt_module *module)
{
    if (!module) return;
    wt__guard *guard = module->device->base.guard;
    module->aside.release = release_module;
    if (!wt__guard_enter_or_put_aside(guard, &module->aside)) return;
    destroy_module(module);
    wt__guard_leave(guard);
}

// ---- kernels

static wt_status read_facts(const wt__cuda *cuda, wt_kernel *k)
{
    const struct {
        int attribute, *value;
    } facts[] = {
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &k->info.n_registers},
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &k->info.shared_bytes},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &k->info.local_bytes},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &k->info.max_threads},
    };
    for (int n = 0; n < 4; n++) {
        wt_status status = wt__cu(cuda, cuda->FuncGetAttribute(facts[n].value, facts[n].attribute, k->function),
                                  "%s: facts of %s", k->module->name, k->name);
        if (status) return status;
    }
    k->n_params = -1;
    if (!cuda->FuncGetParamInfo) return WT_OK;
    size_t offset_bytes;
    for (k->n_params = 0; k->n_params < WT_MAX_PARAMS; k->n_params++)
        if (cuda->FuncGetParamInfo(k->function, (size_t)k->n_params, &offset_bytes, &k->param_bytes[k->n_params]))
            break;
    return WT_OK;
}

static wt_status find_kernel(wt_module *m, const char *function, wt_kernel **kernel)
{
    const wt__cuda *cuda = m->device->cuda;
    if (!m->module) return wt_fail(WT_ERR_STATE, "%s: is not loaded", m->name);
    wt_status status = wt__cuda_enter(m->device);
    if (status) return status;
    size_t name_bytes = strlen(function) + 1;
    wt_kernel *k = calloc(1, sizeof *k + name_bytes);
    if (!k) return wt_fail(WT_ERR_NO_MEMORY, "%s: no memory for a handle", m->name);
    k->module = m;
    memcpy(k->name, function, name_bytes);
    CUresult result = cuda->ModuleGetFunction(&k->function, m->module, function);
    if (result == CUDA_ERROR_NOT_FOUND)
        status =
            wt_fail(WT_ERR_NOT_FOUND, "%s: has no function %s; is it `extern \"C\" __global__`?", m->name, function);
    else
        status = wt__cu(cuda, result, "%s: find %s", m->name, function);
    if (!status && cuda->FuncLoad) // now, not at the first launch, also when the user chose lazy loading
        status = wt__cu(cuda, cuda->FuncLoad(k->function), "%s: load %s", m->name, function);
    if (!status) status = read_facts(cuda, k);
    if (status) {
        free(k);
        return status;
    }
    k->next = m->kernels;
    *kernel = m->kernels = k;
    return WT_OK;
}

wt_status wt_module_get_kernel(wt_module *module, const char *function, wt_kernel **kernel)
{
    *kernel = NULL;
    wt_status status = WT_OK;
    pthread_mutex_lock(&module->mutex);
    for (wt_kernel *k = module->kernels; k && !*kernel; k = k->next)
        if (!strcmp(k->name, function)) *kernel = k;
    if (!*kernel) status = find_kernel(module, function, kernel);
    pthread_mutex_unlock(&module->mutex);
    return status;
}

wt_kernel_info wt_kernel_get_info(const wt_kernel *kernel) { return kernel->info; }

// ---- launches

static wt_status check_shape(const wt_kernel *k, const int grid[3], const int block[3])
{
    const char *name = k->name;
    for (int a = 0; a < 3; a++)
        if (grid[a] < 1 || block[a] < 1 || (a && grid[a] > MAX_GRID_YZ))
            return wt_fail(WT_ERR_BAD_ARG,
                           "launch of %s: grid %d x %d x %d, blocks of %d x %d x %d; want 1 or more, "
                           "and at most %d blocks along y and z",
                           name, grid[0], grid[1], grid[2], block[0], block[1], block[2], MAX_GRID_YZ);
    long long threads = (long long)block[0] * block[1];
    if (threads > k->info.max_threads || threads * block[2] > k->info.max_threads)
        return wt_fail(WT_ERR_BAD_ARG, "launch of %s: blocks of %d x %d x %d threads, want at most %d together", name,
                       block[0], block[1], block[2], k->info.max_threads);
    return WT_OK;
}

static wt_status check_args(const wt_kernel *k, const wt_arg *args, int n_args, void **params)
{
    if (n_args < 0 || n_args > WT_MAX_PARAMS || (k->n_params >= 0 && n_args != k->n_params))
        return wt_fail(WT_ERR_BAD_ARG, "launch of %s: %d arguments, want %d", k->name, n_args,
                       k->n_params >= 0 ? k->n_params : WT_MAX_PARAMS);
    size_t total_bytes = 0;
    for (int n = 0; n < n_args; n++) {
        if (k->n_params >= 0 && args[n].size_bytes != k->param_bytes[n])
            return wt_fail(WT_ERR_BAD_ARG, "launch of %s: argument %d has %zu bytes, want %zu", k->name, n,
                           args[n].size_bytes, k->param_bytes[n]);
        if (args[n].size_bytes > WT_MAX_ARGS_BYTES - total_bytes)
            return wt_fail(WT_ERR_BAD_ARG, "launch of %s: more than %d bytes of arguments", k->name, WT_MAX_ARGS_BYTES);
        total_bytes += args[n].size_bytes;
        params[n] = (void *)args[n].data; // the driver's type; it reads only
    }
    return WT_OK;
}

/// Above 48 KB a function must be told once how much dynamic shared memory it may get. Where launches overlap, an SM
/// that is parted in shared memory and cache for one cannot take the next one's blocks when they want it parted
/// otherwise: so all of those want as much shared memory as there is.
static wt_status opt_in(wt_kernel *k, size_t shared_bytes, bool overlap)
{
    const wt__cuda_device *d = k->module->device;
    size_t fixed_bytes = (size_t)k->info.shared_bytes, most_bytes = d->base.info.shared_bytes;
    if (shared_bytes > most_bytes || shared_bytes + fixed_bytes > most_bytes)
        return wt_fail(WT_ERR_BAD_ARG, "launch of %s: %zu + %zu bytes of shared memory, want at most %zu", k->name,
                       shared_bytes, fixed_bytes, most_bytes);
    if (shared_bytes + fixed_bytes <= PLAIN_SHARED_BYTES || shared_bytes <= atomic_load(&k->opted_bytes)) return WT_OK;
    pthread_mutex_lock(&k->module->mutex); // two launches must not lower each other's size
    wt_status status = WT_OK;
    if (shared_bytes > atomic_load(&k->opted_bytes))
        status = wt__cu(
            d->cuda,
            d->cuda->FuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes),
            "launch of %s: %zu bytes of shared memory", k->name, shared_bytes);
    if (!status && overlap)
        status = wt__cu(d->cuda,
                        d->cuda->FuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
                        "launch of %s: all of an SM's shared memory", k->name);
    if (!status && shared_bytes > atomic_load(&k->opted_bytes)) atomic_store(&k->opted_bytes, shared_bytes);
    pthread_mutex_unlock(&k->module->mutex);
    return status;
}

/// All of a call but its arguments.
static wt_status shape_call(const wt_kernel *kernel, const wt_device *device, const wt_launch *launch,
                            wt__kernel_call *call)
{
    const wt__cuda_device *d = kernel->module->device;
    if (device != &d->base)
        return wt_fail(WT_ERR_BAD_ARG, "launch of %s: the stream belongs to another device", kernel->name);
    for (int a = 0; a < 3; a++) {
        call->grid[a] = launch->grid[a] ? launch->grid[a] : 1;
        call->block[a] = launch->block[a] ? launch->block[a] : 1;
    }
    call->shared_bytes = launch->shared_bytes;
    call->cooperative = launch->cooperative;
    call->overlap = launch->overlap && d->cuda->LaunchKernelEx && d->base.info.compute_major >= 9 &&
                    d->cuda->driver_version >= FIRST_TO_OVERLAP;
    call->apart = launch->apart && d->cuda->LaunchKernelEx && d->has_domains;
    return check_shape(kernel, call->grid, call->block);
}

wt_status wt__kernel_prepare(wt_kernel *kernel, const wt_device *device, const wt_launch *launch, const wt_arg *args,
                             int n_args, wt__kernel_call *call)
{
    wt_status status = shape_call(kernel, device, launch, call);
    if (!status) status = check_args(kernel, args, n_args, call->params);
    if (!status) status = wt__cuda_enter(kernel->module->device);
    return status ? status : opt_in(kernel, launch->shared_bytes, call->overlap);
}

/// As the driver wants it; without attributes.
static CUlaunchConfig config_of(const wt__kernel_call *call, CUstream stream)
{
    return (CUlaunchConfig){.gridDimX = (unsigned)call->grid[0],
                            .gridDimY = (unsigned)call->grid[1],
                            .gridDimZ = (unsigned)call->grid[2],
                            .blockDimX = (unsigned)call->block[0],
                            .blockDimY = (unsigned)call->block[1],
                            .blockDimZ = (unsigned)call->block[2],
                            .sharedMemBytes = (unsigned)call->shared_bytes,
                            .hStream = stream};
}

static CUresult launch_with_attributes(const wt__cuda *cuda, CUfunction function, CUstream stream,
                                       wt__kernel_call *call)
{
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = config_of(call, stream);
    config.attrs = attributes;
    if (call->overlap)
        attributes[config.numAttrs++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                            .value.programmaticStreamSerializationAllowed = 1};
    if (call->apart)
        attributes[config.numAttrs++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, .value.memSyncDomain = 1};
    return cuda->LaunchKernelEx(&config, function, call->params, NULL);
}

wt_status wt_kernel_has_room(wt_kernel *kernel, wt_stream *stream, const wt_launch *launch, bool *has_room)
{
    const wt__cuda *cuda = kernel->module->device->cuda;
    wt__kernel_call call;
    int n_clusters = 1;
    *has_room = false;
    wt_status status = shape_call(kernel, stream->device, launch, &call);
    if (!status) status = wt__cuda_enter(kernel->module->device);
    if (!status) status = opt_in(kernel, launch->shared_bytes, call.overlap);
    if (status) return status;
    const CUlaunchConfig config = config_of(&call, wt__cuda_stream_of(stream));
    const CUresult result = cuda->OccupancyMaxActiveClusters
                                ? cuda->OccupancyMaxActiveClusters(&n_clusters, kernel->function, &config)
                                : CUDA_SUCCESS;
    *has_room = !result && n_clusters > 0;
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE) return WT_OK;
    return wt__cu(cuda, result, "room for %s (%s)", kernel->name, kernel->module->name);
}

/// Hand it to the driver.
static wt_status issue_call(wt_kernel *kernel, wt_stream *stream, wt__kernel_call *call)
{
    const wt__cuda *cuda = kernel->module->device->cuda;
    const int *grid = call->grid, *block = call->block;
    atomic_store_explicit(&stream->last_kernel, kernel->name, memory_order_relaxed);
    const unsigned g[] = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};
    const unsigned b[] = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};
    const unsigned shared = (unsigned)call->shared_bytes;
    const CUstream to = wt__cuda_stream_of(stream);
    CUresult result;
    if (call->cooperative)
        result = cuda->LaunchCooperativeKernel(kernel->function, g[0], g[1], g[2], b[0], b[1], b[2], shared, to,
                                               call->params);
    else if (call->overlap || call->apart)
        result = launch_with_attributes(cuda, kernel->function, to, call);
    else
        result =
            cuda->LaunchKernel(kernel->function, g[0], g[1], g[2], b[0], b[1], b[2], shared, to, call->params, NULL);
    return wt__cu(cuda, result, "launch of %s (%s)", kernel->name, kernel->module->name);
}

wt_status wt_kernel_launch(wt_kernel *kernel, wt_stream *stream, const wt_launch *launch, const wt_arg *args,
                           int n_args)
{
    wt__kernel_call call;
    wt_status status = wt__kernel_prepare(kernel, stream->device, launch, args, n_args, &call);
    if (status) return status;
    if (stream->recording) {
        status = wt__record_kernel(stream->recording, kernel, launch, args, n_args);
        if (status) return status;
    }
    return issue_call(kernel, stream, &call);
}

const char *wt__kernel_name(const wt_kernel *kernel) { return kernel->name; }
