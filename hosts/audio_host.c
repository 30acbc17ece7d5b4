#include "audio_host.h"

#include <string.h>

const audio_host_type *const audio_host_types[] = {
#ifdef WT_HAVE_JACK
    &jack_host_type,
#endif
#ifdef WT_HAVE_PORTAUDIO
    &portaudio_host_type,
#endif
    NULL,
};

const audio_host_type *audio_host_find(const char *name)
{
    for (int k = 0; audio_host_types[k]; k++)
        if (!strcmp(audio_host_types[k]->name, name)) return audio_host_types[k];
    return NULL;
}
