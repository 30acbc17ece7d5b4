#include "backend.h"
#include "options.h"

wt_status backend_open(const char *name, wt_device **device)
{
    wt_device_config config = {.backend = WT_BACKEND_AUTO};
    *device = NULL;
    wt_status status = wt_options_backend(name, &config.backend);
    if (!status) status = wt_device_open(&config, device);
    if (status || wt_device_get_info(*device)->backend == WT_BACKEND_CUDA) return status;
    wt_device_close(*device);
    *device = NULL;
    return WT_OK;
}
