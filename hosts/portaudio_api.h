/// libportaudio, opened when it is first needed, and its devices.
#ifndef WT_PORTAUDIO_API_H
#define WT_PORTAUDIO_API_H

#include <stdbool.h>
#include <warptone/status.h>

/// A device, as `warptone info --audio` lists it.
typedef struct portaudio_device {
    int number;
    char name[128], api[64];
    int in_channels, out_channels;
    double rate_hz;
    double in_latency_ms, out_latency_ms; ///< low ones
    bool default_in, default_out;
} portaudio_device;

/// All devices of all host interfaces; caller frees with free(). With a JACK server, its clients are devices.
/// Errors: WT_ERR_NO_LIBRARY, WT_ERR_UNSUPPORTED (not built in, or PortAudio does not start), WT_ERR_NO_MEMORY.
/// [any but rt]
WT_CHECKED wt_status portaudio_devices(portaudio_device **devices, int *n_devices);

#ifdef WT_HAVE_PORTAUDIO
#    include <pa_jack.h>
#    include <pa_linux_alsa.h>
#    include <portaudio.h>

// clang-format off
#    define PORTAUDIO_API_LIST(X)                                                                            \
        X(Pa_Initialize) X(Pa_Terminate) X(Pa_GetErrorText) X(Pa_GetLastHostErrorInfo) X(Pa_GetHostApiInfo)   \
        X(Pa_GetDeviceCount) X(Pa_GetDeviceInfo) X(Pa_GetDefaultInputDevice) X(Pa_GetDefaultOutputDevice)     \
        X(Pa_OpenStream) X(Pa_CloseStream) X(Pa_StartStream) X(Pa_StopStream) X(Pa_IsStreamActive)            \
        X(Pa_GetStreamInfo) X(Pa_GetStreamCpuLoad)                                                            \
        X(PaAlsa_EnableRealtimeScheduling) X(PaJack_SetClientName) // NULL where it was built without ALSA or JACK
// clang-format on

typedef struct portaudio_api {
#    define PORTAUDIO_API_FIELD(name) __typeof__(name) *name;
    PORTAUDIO_API_LIST(PORTAUDIO_API_FIELD)
#    undef PORTAUDIO_API_FIELD
} portaudio_api;

/// The table, with PortAudio initialized once more; end with portaudio_api_close. What it prints on the way is kept
/// from the terminal. `client_name` is how it calls itself at a JACK server when this is the first open; NULL =
/// "warptone".  [any but rt]
WT_CHECKED wt_status portaudio_api_open(const char *client_name, const portaudio_api **api);
void portaudio_api_close(void);
#endif
#endif
