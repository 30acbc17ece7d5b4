// PortAudio. The stream is opened without a block length: the device then cuts as suits it, ALSA's often into a period
// and a few frames that had come since. Our own adapter makes blocks of one length of that, whose latency is known to
// the frame: a GPU has a part of each block's duration to answer in, and of four frames that is next to nothing.
//
// Whether the device is still there is seen from a thread of its own: a stream that is no longer active, though nobody
// stopped it. PortAudio's own end of a stream whose JACK server died waits ten minutes for an answer of the dead
// (19.6), so that stream, and PortAudio with it, is left alone.
#include "audio_host.h"

#ifdef WT_HAVE_PORTAUDIO
#    include "block_adapter.h"
#    include "optional_library.h"
#    include "portaudio_api.h"

#    include <ctype.h>
#    include <pthread.h>
#    include <stdatomic.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <time.h>
#    include <warptone/names.h>

enum { MAX_CHANNELS = 64, STANDARD_BLOCK = 64, MAX_PIECE = 1024, WATCH_MS = 100, LEAVE_MS = 1000 };

typedef struct portaudio_host {
    audio_host base;
    const portaudio_api *pa;
    audio_callbacks call;
    PaStream *stream;
    block_adapter *adapter; ///< NULL = blocks as they come, cut at MAX_PIECE frames
    int channels, out_channels;
    int device_in, device_out; ///< channels of the stream: one input may stand for all, one output go to two
    int block_frames; ///< that the adapter makes; 0 = none
    double rate_hz;
    bool is_jack, is_alsa;
    char name[128], why[256];
    float silence[MAX_PIECE]; ///< stands for an input that has nothing
    // written by the callback, read by any; relaxed
    atomic_ullong n_xruns, n_in_overflow, n_in_underflow, n_out_overflow, n_out_underflow;
    atomic_bool lost, running, has_thread;
    atomic_bool left, inside; ///< left: the host is closed though the stream is not; inside: in the callback
    pthread_t thread; ///< of the callback, valid behind has_thread (release)
    live_processor processor;
    // the watcher
    pthread_t watcher;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping, watched;
} portaudio_host;

/// A stream of a dead JACK server was left behind, and PortAudio's only JACK client with it.
static atomic_bool jack_died;

// ---- the callback

static void count_flags(portaudio_host *h, PaStreamCallbackFlags flags)
{
    const struct {
        PaStreamCallbackFlags flag;
        atomic_ullong *count;
    } counts[] = {{paInputOverflow, &h->n_in_overflow},
                  {paInputUnderflow, &h->n_in_underflow},
                  {paOutputOverflow, &h->n_out_overflow},
                  {paOutputUnderflow, &h->n_out_underflow}};
    for (int k = 0; k < 4; k++)
        if (flags & counts[k].flag) atomic_fetch_add_explicit(counts[k].count, 1, memory_order_relaxed);
    const PaStreamCallbackFlags any = paInputOverflow | paInputUnderflow | paOutputOverflow | paOutputUnderflow;
    if (!(flags & any)) return;
    atomic_fetch_add_explicit(&h->n_xruns, 1, memory_order_relaxed);
    if (h->call.xrun) h->call.xrun(h->call.user);
}

static void process_piece(portaudio_host *h, const float *const *input, float *const *output, int at, int n)
{
    const float *in[MAX_CHANNELS];
    float *out[MAX_CHANNELS];
    for (int c = 0; c < h->channels; c++) in[c] = input ? input[h->device_in == 1 ? 0 : c] + at : h->silence;
    for (int c = 0; c < h->out_channels; c++) out[c] = output[c] + at;
    if (h->adapter)
        block_adapter_process(h->adapter, in, out, n);
    else
        h->call.process(h->call.user, in, out, n);
    if (h->device_out > h->out_channels) memcpy(output[1] + at, output[0] + at, sizeof(float) * (size_t)n);
}

static void run(portaudio_host *h, const void *input, void *output, unsigned long n_frames, PaStreamCallbackFlags flags)
{
    if (!atomic_load_explicit(&h->has_thread, memory_order_relaxed)) {
        h->thread = pthread_self();
        atomic_store_explicit(&h->has_thread, true, memory_order_release);
    }
    count_flags(h, flags);
    for (int at = 0, n; at < (int)n_frames; at += n) {
        n = (int)n_frames - at < MAX_PIECE ? (int)n_frames - at : MAX_PIECE;
        process_piece(h, input, output, at, n);
    }
}

static int on_audio(const void *input, void *output, unsigned long n_frames, const PaStreamCallbackTimeInfo *time,
                    PaStreamCallbackFlags flags, void *user)
{
    (void)time;
    portaudio_host *h = user;
    atomic_store(&h->inside, true);
    const bool left = atomic_load(&h->left);
    if (!left) run(h, input, output, n_frames, flags);
    atomic_store(&h->inside, false);
    return left ? paAbort : paContinue;
}

// ---- devices

static int channels_of(const portaudio_api *pa, int device, bool output)
{
    const PaDeviceInfo *info = pa->Pa_GetDeviceInfo(device);
    return output ? info->maxOutputChannels : info->maxInputChannels;
}

/// "ALSA: HDA Intel": a name may be asked for with its host interface or without.
static void full_name(const portaudio_api *pa, int device, char name[256])
{
    const PaDeviceInfo *info = pa->Pa_GetDeviceInfo(device);
    snprintf(name, 256, "%.60s: %.190s", pa->Pa_GetHostApiInfo(info->hostApi)->name, info->name);
}

static wt_status refuse_name(const portaudio_api *pa, const char *wanted, bool output)
{
    const char *names[256];
    int n = 0;
    for (int k = 0; k < pa->Pa_GetDeviceCount() && n < 256; k++)
        if (channels_of(pa, k, output) > 0) names[n++] = pa->Pa_GetDeviceInfo(k)->name;
    const char *side = output ? "output" : "input";
    if (!n) return wt_fail(WT_ERR_NOT_FOUND, "portaudio: there is no %s device", side);
    return wt_fail(WT_ERR_NOT_FOUND,
                   "portaudio: no %s device '%s'; the nearest is '%s' (`warptone info --audio` lists all)", side,
                   wanted, wt_nearest_name(wanted, names, n));
}

static wt_status find_number(const portaudio_api *pa, const char *wanted, bool output, int *device)
{
    const int n = pa->Pa_GetDeviceCount(), number = atoi(wanted);
    if (strlen(wanted) > 6 || number >= n)
        return wt_fail(WT_ERR_NOT_FOUND, "portaudio: no device %s, there are %d (`warptone info --audio` lists them)",
                       wanted, n > 0 ? n : 0);
    if (!channels_of(pa, number, output))
        return wt_fail(WT_ERR_NOT_FOUND, "portaudio: device %d, '%s', has no %s", number,
                       pa->Pa_GetDeviceInfo(number)->name, output ? "output" : "input");
    *device = number;
    return WT_OK;
}

/// By number, by its whole name, or by a part of it, whatever the case; the first that fits.
static wt_status find_device(const portaudio_api *pa, const char *wanted, bool output, int *device)
{
    int partly = -1;
    char name[256];
    if (*wanted && wanted[strspn(wanted, "0123456789")] == 0) return find_number(pa, wanted, output, device);
    for (*device = 0; *device < pa->Pa_GetDeviceCount(); ++*device) {
        if (!channels_of(pa, *device, output)) continue;
        full_name(pa, *device, name);
        if (!strcasecmp(wanted, pa->Pa_GetDeviceInfo(*device)->name) || !strcasecmp(wanted, name)) return WT_OK;
        if (partly < 0 && strcasestr(name, wanted)) partly = *device;
    }
    *device = partly;
    return partly >= 0 ? WT_OK : refuse_name(pa, wanted, output);
}

/// The input is the one named, else the output's own device, else the default.
static wt_status choose_devices(const portaudio_api *pa, const audio_host_config *config, int *in, int *out)
{
    wt_status status = WT_OK;
    *out = pa->Pa_GetDefaultOutputDevice();
    if (config->device) status = find_device(pa, config->device, true, out);
    if (!status && *out < 0) status = refuse_name(pa, "", true);
    if (status) return status;
    *in = config->device && channels_of(pa, *out, false) ? *out : pa->Pa_GetDefaultInputDevice();
    if (config->input_device) status = find_device(pa, config->input_device, false, in);
    if (!status && *in < 0) status = refuse_name(pa, "", false);
    if (status) return status;
    char a[256], b[256];
    full_name(pa, *in, a), full_name(pa, *out, b);
    return pa->Pa_GetDeviceInfo(*in)->hostApi == pa->Pa_GetDeviceInfo(*out)->hostApi
               ? WT_OK
               : wt_fail(WT_ERR_UNSUPPORTED, "portaudio: input '%s' and output '%s' want one host interface", a, b);
}

// ---- open

static wt_status fit_channels(portaudio_host *h, const audio_host_config *config, int in, int out)
{
    const int in_max = channels_of(h->pa, in, false), out_max = channels_of(h->pa, out, true);
    h->channels = config->channels ? config->channels : 2;
    h->out_channels = config->out_channels ? config->out_channels : h->channels;
    if (h->channels < 1 || h->channels > MAX_CHANNELS || h->out_channels < 1 || h->out_channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "portaudio: %d channels in, %d out, want 1..%d", h->channels, h->out_channels,
                       MAX_CHANNELS);
    h->device_in = in_max == 1 ? 1 : h->channels;
    h->device_out = h->out_channels == 1 && out_max > 1 ? 2 : h->out_channels;
    if (h->device_in > in_max)
        return wt_fail(WT_ERR_UNSUPPORTED, "portaudio: input '%s' has %d channels, want %d",
                       h->pa->Pa_GetDeviceInfo(in)->name, in_max, h->channels);
    if (h->device_out > out_max)
        return wt_fail(WT_ERR_UNSUPPORTED, "portaudio: output '%s' has %d channel%s, want %d",
                       h->pa->Pa_GetDeviceInfo(out)->name, out_max, out_max == 1 ? "" : "s", h->out_channels);
    return WT_OK;
}

static wt_status refuse_stream(const portaudio_host *h, PaError error)
{
    const PaHostErrorInfo *host = error == paUnanticipatedHostError ? h->pa->Pa_GetLastHostErrorInfo() : NULL;
    return wt_fail(WT_ERR_UNSUPPORTED, "portaudio: '%s' does not open: %s%s%s", h->name, h->pa->Pa_GetErrorText(error),
                   host && host->errorText ? ": " : "", host && host->errorText ? host->errorText : "");
}

/// At the rate that is wanted, else at that of the output, else of the input.
static wt_status open_stream(portaudio_host *h, const audio_host_config *config, int in, int out)
{
    const PaDeviceInfo *from = h->pa->Pa_GetDeviceInfo(in), *to = h->pa->Pa_GetDeviceInfo(out);
    const double latency_s = 1e-3 * config->latency_ms,
                 rates[] = {config->rate_hz, to->defaultSampleRate, from->defaultSampleRate};
    const PaStreamParameters input = {.device = in,
                                      .channelCount = h->device_in,
                                      .sampleFormat = paFloat32 | paNonInterleaved,
                                      .suggestedLatency = latency_s > 0 ? latency_s : from->defaultLowInputLatency};
    const PaStreamParameters output = {.device = out,
                                       .channelCount = h->device_out,
                                       .sampleFormat = paFloat32 | paNonInterleaved,
                                       .suggestedLatency = latency_s > 0 ? latency_s : to->defaultLowOutputLatency};
    PaError error = paInvalidSampleRate;
    for (int k = 0; k < 3 && error == paInvalidSampleRate; k++) {
        if (rates[k] <= 0) continue;
        error = h->pa->Pa_OpenStream(&h->stream, &input, &output, rates[k], paFramesPerBufferUnspecified,
                                     paClipOff | paDitherOff, on_audio, h);
        h->rate_hz = rates[k];
    }
    if (error) {
        h->stream = NULL;
        return refuse_stream(h, error);
    }
    if (h->is_alsa && h->pa->PaAlsa_EnableRealtimeScheduling) h->pa->PaAlsa_EnableRealtimeScheduling(h->stream, 1);
    return WT_OK;
}

static wt_status open_devices(portaudio_host *h, const audio_host_config *config)
{
    int in, out;
    wt_status status = choose_devices(h->pa, config, &in, &out);
    if (status) return status;
    const PaHostApiTypeId type = h->pa->Pa_GetHostApiInfo(h->pa->Pa_GetDeviceInfo(out)->hostApi)->type;
    h->is_jack = type == paJACK;
    h->is_alsa = type == paALSA;
    snprintf(h->name, sizeof h->name, "%s", h->pa->Pa_GetDeviceInfo(out)->name);
    if (h->is_jack && atomic_load(&jack_died))
        return wt_fail(WT_ERR_STATE, "portaudio: its JACK server died, and it cannot open another in this process; "
                                     "the jack host can");
    status = fit_channels(h, config, in, out);
    if (!status && h->block_frames)
        status = block_adapter_create(&(block_adapter_config){.channels = h->channels,
                                                              .out_channels = h->out_channels,
                                                              .block_frames = h->block_frames,
                                                              .user = h->call.user,
                                                              .process = h->call.process},
                                      &h->adapter);
    if (status) return status;
    quiet_begin();
    status = open_stream(h, config, in, out);
    quiet_end();
    return status;
}

/// Nobody joins the thread of a stream that is left behind: it is seen out of the session, and what is the host's stays
/// with it.
static void leave_stream(portaudio_host *h)
{
    atomic_store(&jack_died, true);
    atomic_store(&h->left, true);
    for (int k = 0; k < LEAVE_MS && atomic_load(&h->inside); k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void portaudio_host_close(audio_host *host)
{
    portaudio_host *h = (portaudio_host *)host;
    if (!h) return;
    if (h->is_jack && atomic_load(&h->lost)) {
        leave_stream(h);
        return;
    }
    quiet_begin();
    if (h->stream) (void)h->pa->Pa_CloseStream(h->stream);
    quiet_end();
    if (h->pa) portaudio_api_close();
    block_adapter_destroy(h->adapter);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    free(h);
}

static wt_status portaudio_host_open(const audio_host_config *config, audio_host **host)
{
    *host = NULL;
    portaudio_host *h = calloc(1, sizeof *h);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "portaudio: handle");
    h->base.type = &portaudio_host_type;
    h->call = config->callbacks;
    if (!config->no_adapter) h->block_frames = config->block_frames ? config->block_frames : STANDARD_BLOCK;
    h->processor = config->processor;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&h->lock, NULL);
    wt_status status = portaudio_api_open(config->client_name, &h->pa);
    if (!status) status = open_devices(h, config);
    if (status) {
        portaudio_host_close(&h->base);
        return status;
    }
    *host = &h->base;
    return WT_OK;
}

// ---- running

static void *watch(void *user)
{
    portaudio_host *h = user;
    bool gone = false, placed = false;
    pthread_mutex_lock(&h->lock);
    while (!h->stopping && !gone) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += WATCH_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&h->wake, &h->lock, &until);
        gone = !h->stopping && h->pa->Pa_IsStreamActive(h->stream) != 1;
        if (placed || gone || !atomic_load_explicit(&h->has_thread, memory_order_acquire)) continue;
        live_processor_place(&h->processor, h->thread, true);
        placed = true;
    }
    pthread_mutex_unlock(&h->lock);
    if (!gone) return NULL;
    snprintf(h->why, sizeof h->why, "portaudio: device '%s' stopped: it or its server is gone", h->name);
    atomic_store(&h->running, false);
    atomic_store(&h->lost, true);
    if (h->call.lost) h->call.lost(h->call.user, h->why);
    return NULL;
}

static void portaudio_host_stop(audio_host *host)
{
    portaudio_host *h = (portaudio_host *)host;
    if (!h->watched) return;
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->watcher, NULL);
    h->watched = false;
    if (h->pa->Pa_IsStreamActive(h->stream) != 1) atomic_store(&h->lost, true); // since the watcher last looked
    if (!atomic_load(&h->lost)) {
        quiet_begin();
        (void)h->pa->Pa_StopStream(h->stream);
        quiet_end();
    }
    atomic_store(&h->running, false);
}

static wt_status portaudio_host_start(audio_host *host)
{
    portaudio_host *h = (portaudio_host *)host;
    atomic_store(&h->has_thread, false); // of an earlier start: it has ended
    quiet_begin();
    const PaError error = h->pa->Pa_StartStream(h->stream);
    quiet_end();
    if (error) return refuse_stream(h, error);
    atomic_store(&h->running, true);
    h->stopping = false;
    h->watched = pthread_create(&h->watcher, NULL, watch, h) == 0;
    if (h->watched) return WT_OK;
    quiet_begin();
    (void)h->pa->Pa_StopStream(h->stream);
    quiet_end();
    atomic_store(&h->running, false);
    return wt_fail(WT_ERR_NO_MEMORY, "portaudio: no thread can be started");
}

static bool is_realtime(const portaudio_host *h)
{
    struct sched_param param;
    int policy = SCHED_OTHER;
    if (atomic_load_explicit(&h->has_thread, memory_order_acquire) && atomic_load(&h->running))
        pthread_getschedparam(h->thread, &policy, &param);
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

static void portaudio_host_stats(const audio_host *host, audio_host_stats *stats)
{
    const portaudio_host *h = (const portaudio_host *)host;
    const PaStreamInfo *info = h->pa->Pa_GetStreamInfo(h->stream);
    const int added = h->adapter ? block_adapter_latency_frames(h->adapter) : 0;
    *stats = (audio_host_stats){.rate_hz = info ? info->sampleRate : h->rate_hz,
                                .block_frames = h->block_frames,
                                .block_latency_frames = added,
                                .n_xruns = atomic_load(&h->n_xruns),
                                .n_in_overflow = atomic_load(&h->n_in_overflow),
                                .n_in_underflow = atomic_load(&h->n_in_underflow),
                                .n_out_overflow = atomic_load(&h->n_out_overflow),
                                .n_out_underflow = atomic_load(&h->n_out_underflow),
                                .in_latency_ms = info ? 1e3 * info->inputLatency : 0,
                                .out_latency_ms = info ? 1e3 * info->outputLatency : 0,
                                .running = atomic_load(&h->running),
                                .realtime = is_realtime(h)};
    if (stats->running) stats->cpu_load = h->pa->Pa_GetStreamCpuLoad(h->stream);
}

static void portaudio_host_latency_changed(audio_host *host) { (void)host; } // nobody there asks for it

const audio_host_type portaudio_host_type = {
    .name = "portaudio",
    .open = portaudio_host_open,
    .start = portaudio_host_start,
    .stop = portaudio_host_stop,
    .close = portaudio_host_close,
    .stats = portaudio_host_stats,
    .latency_changed = portaudio_host_latency_changed,
};
#endif
