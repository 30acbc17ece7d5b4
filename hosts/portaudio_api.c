#include "portaudio_api.h"

#include <stdlib.h>

#ifdef WT_HAVE_PORTAUDIO
#    include "optional_library.h"
#    include <pthread.h>
#    include <stdio.h>

#    define PORTAUDIO_API_NAME(name) #    name,
static portaudio_api table;
static const char *const files[] = {"libportaudio.so.2", NULL};
static const char *const names[] = {PORTAUDIO_API_LIST(PORTAUDIO_API_NAME)};
enum { N_NAMES = sizeof names / sizeof *names, N_OF_INTERFACES = 2 };
static optional_library library = {.who = "portaudio",
                                   .files = files,
                                   .install = "install PortAudio (Debian: libportaudio2)",
                                   .names = names,
                                   .n_names = N_NAMES,
                                   .n_required = N_NAMES - N_OF_INTERFACES,
                                   .table = &table};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // PortAudio takes calls of one thread at a time
static int n_open;
static char jack_name[64]; // PortAudio keeps the pointer

wt_status portaudio_api_open(const char *client_name, const portaudio_api **api)
{
    *api = NULL;
    wt_status status = optional_library_open(&library);
    if (status) return status;
    pthread_mutex_lock(&lock);
    quiet_begin();
    if (n_open == 0) {
        snprintf(jack_name, sizeof jack_name, "%s", client_name ? client_name : "warptone");
        if (table.PaJack_SetClientName) (void)table.PaJack_SetClientName(jack_name);
    }
    const PaError error = table.Pa_Initialize();
    n_open += error == paNoError;
    quiet_end();
    pthread_mutex_unlock(&lock);
    if (error) return wt_fail(WT_ERR_UNSUPPORTED, "portaudio: it does not start: %s", table.Pa_GetErrorText(error));
    *api = &table;
    return WT_OK;
}

void portaudio_api_close(void)
{
    pthread_mutex_lock(&lock);
    quiet_begin();
    (void)table.Pa_Terminate();
    n_open--;
    quiet_end();
    pthread_mutex_unlock(&lock);
}

wt_status portaudio_devices(portaudio_device **devices, int *n_devices)
{
    const portaudio_api *pa;
    *devices = NULL, *n_devices = 0;
    wt_status status = portaudio_api_open(NULL, &pa);
    if (status) return status;
    const int n = pa->Pa_GetDeviceCount();
    portaudio_device *all = calloc(n > 0 ? (size_t)n : 1, sizeof *all);
    for (int k = 0; all && k < n; k++) {
        const PaDeviceInfo *info = pa->Pa_GetDeviceInfo(k);
        all[k] = (portaudio_device){.number = k,
                                    .in_channels = info->maxInputChannels,
                                    .out_channels = info->maxOutputChannels,
                                    .rate_hz = info->defaultSampleRate,
                                    .in_latency_ms = 1e3 * info->defaultLowInputLatency,
                                    .out_latency_ms = 1e3 * info->defaultLowOutputLatency,
                                    .default_in = k == pa->Pa_GetDefaultInputDevice(),
                                    .default_out = k == pa->Pa_GetDefaultOutputDevice()};
        snprintf(all[k].name, sizeof all[k].name, "%s", info->name);
        snprintf(all[k].api, sizeof all[k].api, "%s", pa->Pa_GetHostApiInfo(info->hostApi)->name);
    }
    portaudio_api_close();
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "portaudio: devices");
    *devices = all;
    *n_devices = n > 0 ? n : 0;
    return WT_OK;
}

#else

wt_status portaudio_devices(portaudio_device **devices, int *n_devices)
{
    *devices = NULL, *n_devices = 0;
    return wt_fail(WT_ERR_UNSUPPORTED, "portaudio: this build lacks it; install portaudio19-dev and build again");
}

#endif
