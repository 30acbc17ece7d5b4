#include "cmd_info.h"
#include "command.h"
#include "midi_port.h"
#include "portaudio_api.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *audio_json(const portaudio_device *devices, int n)
{
    json_t *list = json_array();
    for (int k = 0; k < n; k++) {
        const portaudio_device *d = &devices[k];
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:b, s:b}", "number", d->number,
                                              "name", d->name, "interface", d->api, "in_channels", d->in_channels,
                                              "out_channels", d->out_channels, "rate_hz", d->rate_hz, "in_latency_ms",
                                              d->in_latency_ms, "out_latency_ms", d->out_latency_ms, "default_in",
                                              d->default_in, "default_out", d->default_out));
    }
    return list;
}

static void print_audio(const portaudio_device *devices, int n)
{
    if (!n) printf("no audio device; a JACK server's clients would be listed too\n");
    for (int k = 0; k < n; k++) {
        const portaudio_device *d = &devices[k];
        printf("%3d  %s: %s\n     %d in, %d out, %g Hz, latency from %.1f ms in, %.1f ms out%s%s\n", d->number, d->api,
               d->name, d->in_channels, d->out_channels, d->rate_hz, d->in_latency_ms, d->out_latency_ms,
               d->default_in ? ", default input" : "", d->default_out ? ", default output" : "");
    }
}

static json_t *midi_json(const midi_port_info *ports, int n)
{
    json_t *list = json_array();
    for (int k = 0; k < n; k++)
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:s}", "number", k, "name", ports[k].name, "interface", ports[k].api));
    return list;
}

static void print_midi(const midi_port_info *ports, int n)
{
    if (!n) printf("no MIDI port\n");
    for (int k = 0; k < n; k++) printf("%3d  %s: %s\n", k, ports[k].api, ports[k].name);
}

int info_ports(bool audio, bool midi, bool json)
{
    portaudio_device *devices = NULL;
    midi_port_info *ports = NULL;
    int n_devices = 0, n_ports = 0;
    wt_status status = audio ? portaudio_devices(&devices, &n_devices) : WT_OK;
    if (!status && midi) status = midi_ports(&ports, &n_ports);
    if (!status && json) {
        json_t *all = json_object();
        if (audio) json_object_set_new(all, "audio", audio_json(devices, n_devices));
        if (midi) json_object_set_new(all, "midi", midi_json(ports, n_ports));
        json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(all);
    } else if (!status) {
        if (audio) print_audio(devices, n_devices);
        if (midi) print_midi(ports, n_ports);
    }
    free(devices);
    free(ports);
    return status ? command_fail("info", status) : EXIT_OK;
}
