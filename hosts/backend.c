#include "backend.h"

#include <string.h>

wt_status backend_open(const char *name, wt_device **device)
{
    static const char *const names[] = {"auto", "cuda", "cpu"};
    wt_device_config config = {.backend = WT_BACKEND_AUTO};
    *device = NULL;
    for (int k = 0; name && k < 3; k++)
        if (strcmp(name, names[k]) == 0) config.backend = (wt_backend)k;
    if (name && strcmp(name, names[config.backend]))
        return wt_fail(WT_ERR_BAD_ARG, "--backend is '%s', want auto, cuda or cpu", name);
    wt_status status = wt_device_open(&config, device);
    if (status || wt_device_get_info(*device)->backend == WT_BACKEND_CUDA) return status;
    wt_device_close(*device);
    *device = NULL;
    return WT_OK;
}
