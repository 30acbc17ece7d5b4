// warptone info: gather the facts once as JSON, then print either that or a page for people from it.
#include "cmd_info.h"
#include "command.h"
#include "options.h"

#include <jansson.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/device.h>
#include <warptone/kernel.h>

enum {
#ifdef WT_HAVE_JACK
    HAVE_JACK = 1,
#else
    HAVE_JACK = 0,
#endif
#ifdef WT_HAVE_PORTAUDIO
    HAVE_PORTAUDIO = 1,
#else
    HAVE_PORTAUDIO = 0,
#endif
#ifdef WT_HAVE_RTMIDI
    HAVE_RTMIDI = 1,
#else
    HAVE_RTMIDI = 0,
#endif
#ifdef WT_HAVE_LIBLO
    HAVE_LIBLO = 1,
#else
    HAVE_LIBLO = 0,
#endif
};

typedef struct part {
    const char *name, *feature, *package;
    bool built_in;
} part;

static const part parts[] = {
    {"JACK", "live audio through JACK", "libjack-jackd2-dev", HAVE_JACK},
    {"PortAudio", "live audio through PortAudio", "portaudio19-dev", HAVE_PORTAUDIO},
    {"RtMidi", "MIDI ports beside the audio host's", "librtmidi-dev", HAVE_RTMIDI},
    {"liblo", "OSC control and session management", "liblo-dev", HAVE_LIBLO},
};

// ---- gathering

static void add_absent(json_t *absent, const char *name, const char *why)
{
    json_array_append_new(absent, json_pack("{s:s, s:s}", "name", name, "why", why));
}

static json_t *device_json(const wt_device_info *d)
{
    bool cuda = d->backend == WT_BACKEND_CUDA;
    json_t *device = json_pack("{s:s, s:i, s:s, s:i, s:I, s:I, s:I}", "backend", cuda ? "cuda" : "cpu", "ordinal",
                               d->ordinal, "name", d->name, cuda ? "sms" : "processors", d->n_sms, "memory_bytes",
                               (json_int_t)d->memory_bytes, "memory_free_bytes", (json_int_t)d->memory_free_bytes,
                               cuda ? "l2_bytes" : "last_level_cache_bytes", (json_int_t)d->l2_bytes);
    if (!cuda) return device;
    json_t *more = json_pack("{s:i, s:i, s:b, s:I, s:i, s:i, s:s}", "compute_major", d->compute_major, "compute_minor",
                             d->compute_minor, "usable", d->compute_major >= 8, "shared_bytes_per_block",
                             (json_int_t)d->shared_bytes, "partition_sms", d->partition_sms, "partition_align_sms",
                             d->partition_align_sms, "pci_bus_id", d->pci_bus_id);
    json_object_update(device, more);
    json_decref(more);
    return device;
}

/// All devices; the driver's version comes with them. Devices that are too old are listed and named under `absent`.
static json_t *devices_json(json_t *absent, int *driver_version)
{
    json_t *devices = json_array();
    wt_device_info d;
    wt_status status = wt_device_query(0, &d);
    if (status) add_absent(absent, "CUDA device", wt_last_error());
    for (int k = 0; !status; status = wt_device_query(++k, &d)) {
        *driver_version = d.driver_version;
        json_array_append_new(devices, device_json(&d));
        char why[512];
        if (d.compute_major < 8) {
            snprintf(why, sizeof why, "%s has compute capability %d.%d, want 8.0 or newer; it is not used", d.name,
                     d.compute_major, d.compute_minor);
            add_absent(absent, "CUDA device", why);
        } else if (!d.partition_sms) {
            snprintf(
                why, sizeof why,
                "%s: the driver offers no green contexts (CUDA 12.4 and newer), so partitions share its SMs; update "
                "the NVIDIA driver",
                d.name);
            add_absent(absent, "green contexts", why);
        }
    }
    if (!wt_device_query(-1, &d))
        json_array_append_new(devices, device_json(&d));
    else
        add_absent(absent, "CPU", wt_last_error());
    return devices;
}

/// 13000 as "13.0"; null when it is 0, and then the last message says why.
static json_t *version_json(int version, const char *name, json_t *absent)
{
    if (!version && name) add_absent(absent, name, wt_last_error());
    return version ? json_sprintf("%d.%d", version / 1000, version % 1000 / 10) : json_null();
}

/// "1.2.0" of "libsndfile-1.2.0".
static const char *sndfile_version(void)
{
    const char *dash = strchr(sf_version_string(), '-');
    return dash ? dash + 1 : sf_version_string();
}

static json_t *versions_json(json_t *absent, int driver_version)
{
    json_t *versions = json_object();
    json_object_set_new(versions, "cuda_driver", version_json(driver_version, NULL, absent)); // said with the devices
    json_object_set_new(versions, "nvrtc", version_json(wt_nvrtc_version(), "NVRTC", absent));
    json_object_set_new(versions, "cublaslt", version_json(wt_cublaslt_version(), "cuBLASLt", absent));
    json_object_set_new(versions, "libsndfile", json_string(sndfile_version()));
    return versions;
}

static json_t *parts_json(json_t *absent)
{
    json_t *list = json_array();
    for (int k = 0; k < (int)(sizeof parts / sizeof *parts); k++) {
        const part *p = &parts[k];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:b}", "name", p->name, "feature", p->feature, "built_in", p->built_in));
        if (p->built_in) continue;
        char why[256];
        snprintf(why, sizeof why,
                 "%s is left out: %s was not there when Warptone was built; install it and build again", p->feature,
                 p->package);
        add_absent(absent, p->name, why);
    }
    return list;
}

static json_t *cache_json(json_t *absent)
{
    wt_kernel_cache_info cache;
    if (wt_kernel_cache_query(&cache)) {
        add_absent(absent, "kernel cache", wt_last_error());
        return json_null();
    }
    return json_pack("{s:s, s:i, s:I, s:I}", "folder", cache.folder, "entries", cache.n_entries, "size_bytes",
                     (json_int_t)cache.size_bytes, "limit_bytes", (json_int_t)cache.limit_bytes);
}

/// What a program started now would work on: found by opening it.
static json_t *backend_json(void)
{
    wt_device *device = NULL;
    wt_status status = wt_device_open(NULL, &device);
    if (status) return json_pack("{s:n, s:s}", "name", "why", wt_last_error());
    bool cuda = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    const char *asked = getenv("WARPTONE_BACKEND");
    bool fell_back = !cuda && (!asked || !*asked || !strcmp(asked, "auto"));
    json_t *backend = json_pack("{s:s, s:s}", "name", cuda ? "cuda" : "cpu", "why",
                                fell_back ? wt_last_error()
                                : cuda    ? "a usable GPU is there"
                                          : "WARPTONE_BACKEND=cpu");
    wt_device_close(device);
    return backend;
}

static json_t *gather(void)
{
    int driver_version = 0;
    json_t *all = json_object(), *absent = json_array();
    json_object_set_new(all, "version", json_string(WARPTONE_VERSION));
    json_object_set_new(all, "backend", backend_json());
    json_object_set_new(all, "devices", devices_json(absent, &driver_version));
    json_object_set_new(all, "versions", versions_json(absent, driver_version));
    json_object_set_new(all, "parts", parts_json(absent));
    json_object_set_new(all, "kernel_cache", cache_json(absent));
    json_object_set_new(all, "absent", absent);
    return all;
}

// ---- printing

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "none";
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_device(const json_t *d)
{
    bool cuda = !strcmp(text_of(d, "backend"), "cuda");
    const double gib = 1 << 30, mib = 1 << 20;
    if (cuda)
        printf("  cuda %-2.0f %s", number_of(d, "ordinal"), text_of(d, "name"));
    else
        printf("  cpu     %s", text_of(d, "name"));
    printf("\n          %.0f %s, %.1f GiB memory (%.1f free), %.1f MiB %s\n", number_of(d, cuda ? "sms" : "processors"),
           cuda ? "SMs" : "processors", number_of(d, "memory_bytes") / gib, number_of(d, "memory_free_bytes") / gib,
           number_of(d, cuda ? "l2_bytes" : "last_level_cache_bytes") / mib, cuda ? "L2" : "last-level cache");
    if (!cuda) return;
    printf("          compute capability %.0f.%.0f, %.0f KiB shared memory a block, PCI %s\n",
           number_of(d, "compute_major"), number_of(d, "compute_minor"), number_of(d, "shared_bytes_per_block") / 1024,
           text_of(d, "pci_bus_id"));
    if (number_of(d, "partition_sms") > 0)
        printf("          partitions of %.0f SMs or more, in steps of %.0f\n", number_of(d, "partition_sms"),
               number_of(d, "partition_align_sms"));
}

static void print_page(const json_t *all)
{
    size_t k;
    const json_t *item, *backend = json_object_get(all, "backend"), *cache = json_object_get(all, "kernel_cache");
    printf("Warptone %s\n\nbackend   %s\n          %s\n\ndevices\n", text_of(all, "version"), text_of(backend, "name"),
           text_of(backend, "why"));
    json_array_foreach(json_object_get(all, "devices"), k, item) print_device(item);

    static const char *const versions[][2] = {
        {"cuda_driver", "CUDA driver"}, {"nvrtc", "NVRTC"}, {"cublaslt", "cuBLASLt"}, {"libsndfile", "libsndfile"}};
    printf("\nversions\n");
    for (k = 0; k < 4; k++)
        printf("  %-12s %s\n", versions[k][1], text_of(json_object_get(all, "versions"), versions[k][0]));
    printf("\nparts\n");
    json_array_foreach(json_object_get(all, "parts"), k, item)
        printf("  %-12s %s: %s\n", text_of(item, "name"), text_of(item, "feature"),
               json_is_true(json_object_get(item, "built_in")) ? "built in" : "left out");
    if (json_is_object(cache))
        printf("\nkernel cache\n  %s: %.0f entries, %.1f of %.0f MiB\n", text_of(cache, "folder"),
               number_of(cache, "entries"), number_of(cache, "size_bytes") / (1 << 20),
               number_of(cache, "limit_bytes") / (1 << 20));
    if (json_array_size(json_object_get(all, "absent"))) printf("\nabsent\n");
    json_array_foreach(json_object_get(all, "absent"), k, item)
        printf("  %s\n      %s\n", text_of(item, "name"), text_of(item, "why"));
}

int cmd_info(int argc, char **argv)
{
    bool json = false, audio = false, midi = false, help;
    const wt_option options[] = {
        {.name = "audio", .value = &audio, .help = "list PortAudio's devices instead"},
        {.name = "midi", .value = &midi, .help = "list the MIDI ports instead"},
        {.name = "json", .value = &json, .help = "one JSON object on stdout"},
    };
    enum { N_OPTIONS = sizeof options / sizeof *options };
    wt_status status = wt_options_parse(options, N_OPTIONS, &argc, argv, &help);
    if (!status && !help && argc > 1)
        status = wt_fail(WT_ERR_BAD_ARG, "\"%s\" is not expected; info takes no arguments", argv[1]);
    if (status) return command_fail("info", status);
    if (help) {
        printf("usage: warptone info [--audio] [--midi] [--json]\n\nShow devices, versions and optional parts, and for "
               "what is absent why and what to do.\n");
        wt_options_print(stdout, options, N_OPTIONS);
        return EXIT_OK;
    }
    if (audio || midi) return info_ports(audio, midi, json);
    json_t *all = gather();
    if (json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    } else
        print_page(all);
    json_decref(all);
    return EXIT_OK;
}
