#include "cuda_libs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/kernel.h>

enum { PATH_BYTES = 4096 };

typedef struct symbol {
    void *slot; ///< address of the function pointer to fill
    const char *name;
} symbol;

/// One library: what is tried, and what became of it. Filled once.
typedef struct library {
    const char *stem;     ///< "libnvrtc.so"
    const char *variable; ///< environment variable that names the file
    const char *title;    ///< first words of the sentence when it is absent
    const char *advice;
    char why[1024];
} library;

static void *open_file(const char *folder, const char *stem, int version)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s%s.%d", folder, *folder ? "/" : "", stem, version);
    return length < PATH_BYTES ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/// 13, or 12 beside a driver of CUDA 12, which would refuse what version 13 makes.
static int preferred_version(void)
{
    const wt__cuda *cuda;
    return !wt__cuda_open(&cuda) && cuda->driver_version < 13000 ? 12 : 13;
}

static void *search(library *l)
{
    const char *path = getenv(l->variable);
    if (path && *path) {
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle) snprintf(l->why, sizeof l->why, "%s: %s is set, but %s", l->title, l->variable, dlerror());
        return handle;
    }
    char folders[5][PATH_BYTES] = {"", "", "", "/usr/local/cuda/lib64", ""};
    const char *cuda_path = getenv("CUDA_PATH"), *cuda_home = getenv("CUDA_HOME");
    if (cuda_path) snprintf(folders[1], PATH_BYTES, "%.4000s/lib64", cuda_path);
    if (cuda_home) snprintf(folders[2], PATH_BYTES, "%.4000s/lib64", cuda_home);
    ssize_t length = readlink("/proc/self/exe", folders[4], PATH_BYTES - 1);
    char *slash = length > 0 ? strrchr(folders[4], '/') : NULL;
    if (slash) *slash = 0;

    const int first = preferred_version(), versions[] = {first, 25 - first}; // 13, 12 or 12, 13
    for (int v = 0; v < 2; v++)
        for (int k = 0; k < 5; k++) {
            if (k && !folders[k][0]) continue;
            void *handle = open_file(folders[k], l->stem, versions[v]);
            if (handle) return handle;
        }
    snprintf(l->why, sizeof l->why,
             "%s: neither %s.13 nor .12 is on the loader's path, in $CUDA_PATH, $CUDA_HOME, /usr/local/cuda/lib64 or "
             "beside the program; %s, or name the file in %s",
             l->title, l->stem, l->advice, l->variable);
    return NULL;
}

static bool open_library(library *l, const symbol *symbols, int n_symbols)
{
    void *handle = search(l);
    if (!handle) return false;
    for (int k = 0; k < n_symbols; k++) {
        *(void **)symbols[k].slot = dlsym(handle, symbols[k].name);
        if (*(void **)symbols[k].slot) continue;
        snprintf(l->why, sizeof l->why, "%s: the library found lacks %s; %s", l->title, symbols[k].name, l->advice);
        dlclose(handle);
        return false;
    }
    return true;
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

// Written once by the functions below.
static wt__nvrtc nvrtc_table;
static bool nvrtc_open;
static library nvrtc_library = {.stem = "libnvrtc.so",
                                .variable = "WARPTONE_NVRTC",
                                .title = "NVRTC JIT compiler not available",
                                .advice = "install NVRTC of CUDA 12 or 13, bring kernels with `warptone kernels pack`"};

static void open_nvrtc(void)
{
    wt__nvrtc *n = &nvrtc_table;
    const symbol symbols[] = {
        {&n->Version, "nvrtcVersion"},
        {&n->GetErrorString, "nvrtcGetErrorString"},
        {&n->GetNumSupportedArchs, "nvrtcGetNumSupportedArchs"},
        {&n->GetSupportedArchs, "nvrtcGetSupportedArchs"},
        {&n->CreateProgram, "nvrtcCreateProgram"},
        {&n->DestroyProgram, "nvrtcDestroyProgram"},
        {&n->CompileProgram, "nvrtcCompileProgram"},
        {&n->GetCUBINSize, "nvrtcGetCUBINSize"},
        {&n->GetCUBIN, "nvrtcGetCUBIN"},
        {&n->GetProgramLogSize, "nvrtcGetProgramLogSize"},
        {&n->GetProgramLog, "nvrtcGetProgramLog"},
    };
    if (!open_library(&nvrtc_library, symbols, COUNT(symbols))) return;
    int major = 0, minor = 0;
    n->Version(&major, &minor);
    n->version = major * 1000 + minor * 10;
    nvrtc_open = true;
}

wt_status wt__nvrtc_open(const wt__nvrtc **nvrtc)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_nvrtc);
    *nvrtc = nvrtc_open ? &nvrtc_table : NULL;
    return nvrtc_open ? WT_OK : wt_fail(WT_ERR_NO_NVRTC, "%s", nvrtc_library.why);
}

static wt__cublaslt cublaslt_table;
static bool cublaslt_open;
static library cublaslt_library = {.stem = "libcublasLt.so",
                                   .variable = "WARPTONE_CUBLASLT",
                                   .title = "cuBLASLt not available",
                                   .advice = "install cuBLAS of CUDA 12 or 13"};

static void open_cublaslt(void)
{
    wt__cublaslt *c = &cublaslt_table;
    const symbol symbols[] = {
        {&c->GetVersion, "cublasLtGetVersion"},
        {&c->Create, "cublasLtCreate"},
        {&c->Destroy, "cublasLtDestroy"},
        {&c->MatmulDescCreate, "cublasLtMatmulDescCreate"},
        {&c->MatmulDescDestroy, "cublasLtMatmulDescDestroy"},
        {&c->MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute"},
        {&c->MatrixLayoutCreate, "cublasLtMatrixLayoutCreate"},
        {&c->MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy"},
        {&c->MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute"},
        {&c->MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate"},
        {&c->MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy"},
        {&c->MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute"},
        {&c->MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic"},
        {&c->Matmul, "cublasLtMatmul"},
    };
    if (!open_library(&cublaslt_library, symbols, COUNT(symbols))) return;
    size_t version = c->GetVersion(); // 130100 = 13.1.0
    c->version = (int)(version / 10000 * 1000 + version / 100 % 100 * 10);
    cublaslt_open = true;
}

wt_status wt__cublaslt_open(const wt__cublaslt **cublaslt)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_cublaslt);
    *cublaslt = cublaslt_open ? &cublaslt_table : NULL;
    return cublaslt_open ? WT_OK : wt_fail(WT_ERR_NO_LIBRARY, "%s", cublaslt_library.why);
}

int wt_nvrtc_version(void)
{
    const wt__nvrtc *nvrtc;
    return wt__nvrtc_open(&nvrtc) ? 0 : nvrtc->version;
}

int wt_cublaslt_version(void)
{
    const wt__cublaslt *cublaslt;
    return wt__cublaslt_open(&cublaslt) ? 0 : cublaslt->version;
}
