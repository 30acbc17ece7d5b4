#include "command.h"
#include "control.h"
#include "interrupt.h"
#include "live_report.h"
#include "live_rights.h"
#include "live_session.h"
#include "live_view.h"
#include "midi_port.h"
#include "options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { MAX_PATTERNS = 16, STEP_MS = 50 };

typedef struct arguments {
    live_session_config session;
    const char *host, *connect, *mode, *path, *record, *midi, *processor;
    char *connect_copy;
    const char *patterns[MAX_PATTERNS];
    double seconds;
    bool jack, no_auto_connect, no_watch, json, quiet;
    control_config control;
    nsm *nsm; ///< NULL = no session manager
} arguments;

static int print_help(const wt_option *options, int n)
{
    printf(
        "usage: warptone live -p PRESET [options]\n\n"
        "Play through a preset's chain: audio comes in, is processed block by block, and goes out, through PortAudio\n"
        "or as a JACK client. On a GPU the chain runs in its own partition, else in the audio thread. The preset and\n"
        "the files it names are watched: save one, and the new chain is faded in.\n");
    wt_options_print(stdout, options, n);
    printf("\nexamples:\n"
           "  warptone live -p vocal-live\n"
           "  warptone live -p guitar --jack --connect 'system:'\n"
           "  warptone live -p voice-clean --jack --json --quiet --duration 60\n"
           "  warptone live -p hall --record take.flac\n");
    return EXIT_OK;
}

// ---- arguments

/// The session manager's address, NULL = none.
static const char *manager(void)
{
    const char *url = getenv("NSM_URL");
    return url && *url ? url : NULL;
}

static wt_status choose_host(arguments *a)
{
    const char *name = a->jack || (manager() && !a->host) ? "jack" : a->host;
    if (a->jack && a->host && strcmp(a->host, "jack"))
        return wt_fail(WT_ERR_BAD_ARG, "--jack and --host %s are given, want one", a->host);
    a->session.host_type = audio_host_find(name ? name : "portaudio");
    if (!name && !a->session.host_type) a->session.host_type = audio_host_find("jack");
    if (a->session.host_type) return WT_OK;
    if (name && strcmp(name, "jack") && strcmp(name, "portaudio"))
        return wt_fail(WT_ERR_BAD_ARG, "--host is '%s', want jack or portaudio", name);
    return wt_fail(WT_ERR_UNSUPPORTED, "this build has no %s; `warptone info` says what to install",
                   name ? name : "audio host");
}

static wt_status choose_names(arguments *a)
{
    wt_status status = WT_OK;
    a->session.path = wt_options_word("gpu-path", a->path, "auto resident graph", &status);
    a->session.mode = wt_options_word("mode", a->mode, "immediate pipelined", &status);
    return status;
}

static wt_status split_patterns(arguments *a)
{
    audio_host_config *host = &a->session.host;
    host->connect = a->patterns;
    if (!a->connect) return WT_OK;
    if (!(a->connect_copy = strdup(a->connect))) return wt_fail(WT_ERR_NO_MEMORY, "live: arguments");
    for (char *rest = a->connect_copy, *one; (one = strsep(&rest, ",")) != NULL;) {
        if (!*one) // JACK would take it for any port
            return wt_fail(WT_ERR_BAD_ARG, "--connect has an empty pattern, want PATTERN,...");
        if (host->n_connect == MAX_PATTERNS)
            return wt_fail(WT_ERR_BAD_ARG, "--connect has more than %d patterns", MAX_PATTERNS);
        a->patterns[host->n_connect++] = one;
    }
    return WT_OK;
}

/// An option that would do nothing is refused.
static wt_status check_use(const arguments *a)
{
    const audio_host_config *h = &a->session.host;
    const bool jack = !strcmp(a->session.host_type->name, "jack");
    if (jack && (h->latency_ms > 0 || h->input_device || h->no_adapter))
        return wt_fail(WT_ERR_BAD_ARG, "--%s is for PortAudio, want it without --jack",
                       h->input_device ? "input-device"
                       : h->no_adapter ? "no-adapter"
                                       : "latency");
    if (h->no_adapter && h->block_frames)
        return wt_fail(WT_ERR_BAD_ARG, "--no-adapter and --block %d are given, want one", h->block_frames);
    if (!jack && (a->connect || a->no_auto_connect))
        return wt_fail(WT_ERR_BAD_ARG, "--%s is for JACK, want --jack with it",
                       a->connect ? "connect" : "no-auto-connect");
    if (a->session.n_workers && a->session.n_streams < 2)
        return wt_fail(WT_ERR_BAD_ARG, "--workers shares out the copies of --streams, want 2 or more of them");
    if (a->control.bind && !a->control.tcp_port && !a->control.osc_port)
        return wt_fail(WT_ERR_BAD_ARG, "--bind is given alone, want --tcp or --osc with it");
    return WT_OK;
}

static void tell_waiting(const char *why) { fprintf(stderr, "warptone live: %s; waiting for it\n", why); }

static wt_status resolve(arguments *a)
{
    live_session_config *s = &a->session;
    if (!s->preset && !manager())
        return wt_fail(WT_ERR_BAD_ARG, "no preset was named, want -p PRESET (`warptone live --help`)");
    if (a->record && s->record_out) return wt_fail(WT_ERR_BAD_ARG, "--record and --record-out are the same, want one");
    if (a->record) s->record_out = a->record;
    if (s->record_in && s->record_out && !strcmp(s->record_in, s->record_out))
        return wt_fail(WT_ERR_BAD_ARG, "input and output are to be recorded to %s, want two files", s->record_in);
    s->watch = !a->no_watch;
    s->waiting = tell_waiting;
    s->host.midi = true;
    s->host.auto_connect = !a->no_auto_connect && !a->connect;
    wt_status status = choose_host(a);
    if (!status) status = choose_names(a);
    if (!status) status = check_use(a);
    if (!status) status = split_patterns(a);
    return status;
}

// ---- playing

static void print_line(live_session *session, const char *kind)
{
    json_t *line = live_report_json(session);
    json_object_set_new(line, "line", json_string(kind));
    char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    printf("%s\n", text ? text : "{}");
    fflush(stdout); // whoever reads along sees it now
    free(text);
    json_decref(line);
}

/// Without a view: until the time is over, a signal comes, or the session ends.
static void wait_and_print(live_session *session, const arguments *a)
{
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    int64_t next_ns = begin_ns + 1000000000;
    while (!wt_interrupted() && !live_session_ended(session, NULL)) {
        const int64_t now_ns = wt_clock_now_ns(NULL);
        if (a->seconds > 0 && (double)(now_ns - begin_ns) * 1e-9 >= a->seconds) return;
        if (a->json && !a->quiet && now_ns >= next_ns) {
            print_line(session, "second");
            next_ns += 1000000000;
        }
        nanosleep(&(struct timespec){0, STEP_MS * 1000000L}, NULL);
    }
}

static void hear(void *session, const uint8_t *bytes, int n_bytes) { live_session_midi(session, bytes, n_bytes); }

static wt_status open_midi(live_session *session, const arguments *a, midi_port **port)
{
    *port = NULL;
    if (!a->midi) return WT_OK;
    const bool is_virtual = !strcmp(a->midi, "virtual");
    const midi_port_config config = {.client_name = a->session.host.client_name,
                                     .port = is_virtual ? NULL : a->midi,
                                     .user = session,
                                     .message = hear};
    return midi_port_open(&config, port);
}

/// Its name, and what was saved there. Where nobody answers, live plays without a manager.
static wt_status join_manager(arguments *a)
{
    if (!manager()) return WT_OK;
    wt_status status = nsm_join(manager(), "warptone", 0, &a->nsm);
    if (status == WT_ERR_TIMEOUT || status == WT_ERR_NO_LIBRARY) {
        fprintf(stderr, "warptone live: %s\n", wt_last_error());
        status = WT_OK;
    }
    if (a->nsm) {
        a->session.host.client_name = nsm_client_id(a->nsm);
        if (nsm_preset(a->nsm)) a->session.preset = nsm_preset(a->nsm);
        a->quiet = a->quiet || !isatty(STDOUT_FILENO);
    }
    if (!a->session.preset) a->session.preset = "vocal-live";
    return status;
}

/// A standard socket that another session has, or for which there is no folder, is no reason not to play.
static wt_status open_control(live_session *session, const arguments *a, control **control)
{
    control_config config = a->control;
    config.session = session;
    config.name = a->session.host.client_name;
    config.nsm = a->nsm;
    wt_status status = control_open(&config, control);
    if ((status != WT_ERR_STATE && status != WT_ERR_FILE) || config.socket_path || config.no_socket) return status;
    char why[512];
    snprintf(why, sizeof why, "%s", wt_last_error());
    config.no_socket = true;
    status = control_open(&config, control); // fails as before where it was not the socket
    if (!status) fprintf(stderr, "warptone live: %s; choose another path with --control\n", why);
    return status;
}

/// PortAudio takes the device's rate where it cannot have the one that was wanted.
static void tell_rate(live_session *session, double wanted_hz)
{
    live_session_stats stats;
    live_session_get_stats(session, &stats);
    if (wanted_hz > 0 && stats.host.rate_hz != wanted_hz)
        fprintf(stderr, "warptone live: the device plays at %g Hz, not at %g\n", stats.host.rate_hz, wanted_hz);
}

static wt_status play(live_session *session, const arguments *a)
{
    char sentence[512];
    const char *why;
    midi_port *midi = NULL;
    control *control = NULL;
    wt_status status = open_midi(session, a, &midi);
    if (!status) status = live_session_start(session);
    if (!status) status = open_control(session, a, &control);
    if (status) {
        midi_port_close(midi);
        return status;
    }
    tell_rate(session, a->session.host.rate_hz);
    if (!live_rights(sentence, sizeof sentence) && !a->quiet) fprintf(stderr, "warptone live: %s\n", sentence);
    if (a->json || a->quiet)
        wait_and_print(session, a);
    else
        status = live_view_run(session, a->seconds);
    control_close(control);
    midi_port_close(midi);
    if (a->json) print_line(session, "total");
    if (!status && live_session_failed(session) && live_session_ended(session, &why))
        status = wt_fail(WT_ERR_STATE, "%s", why);
    if (!status && a->nsm && wt_interrupt_signal() == SIGTERM) status = nsm_save(a->nsm);
    return status;
}

/// Before any thread is made: all others keep off it.
static wt_status take_processor(arguments *a)
{
    live_processor *p = &a->session.host.processor;
    wt_status status = live_processor_choose(a->processor, p);
    if (!status && p->lost >= 0 && !a->quiet)
        fprintf(stderr, "warptone live: audio has processor %d: %.2f %% of the time lost, on the worst %.2f\n",
                p->cpu, 100 * p->lost, 100 * p->most_lost);
    return status;
}

static int run_command(arguments *a)
{
    live_session *session = NULL;
    wt_status status = resolve(a);
    if (!status) status = wt_interrupt_install();
    if (!status && a->processor) status = take_processor(a);
    if (!status) status = join_manager(a);
    if (!status) status = live_session_open(&a->session, &session);
    if (!status) status = play(session, a);
    int code = status ? command_fail("live", status) : EXIT_OK;
    nsm_leave(a->nsm);
    wt_status recorded = live_session_close(session);
    if (recorded && code == EXIT_OK) code = command_fail("live", recorded);
    free(a->connect_copy);
    return code;
}

int cmd_live(int argc, char **argv)
{
    arguments a = {.jack = false};
    live_session_config *s = &a.session;
    audio_host_config *h = &s->host;
    bool help;
    const wt_option options[] = {
        {"preset", 'p', WT_OPTION_TEXT, &s->preset, "NAME", "preset by name or a YAML file", 0, 0},
        {"jack", 0, WT_OPTION_FLAG, &a.jack, NULL, "be a JACK client, as --host jack", 0, 0},
        {"host", 0, WT_OPTION_TEXT, &a.host, "NAME", "jack or portaudio; PortAudio if left out and built in", 0, 0},
        {"device", 'd', WT_OPTION_TEXT, &h->device, "NAME", "JACK: the server; PortAudio: name or number", 0, 0},
        {"input-device", 0, WT_OPTION_TEXT, &h->input_device, "NAME", "PortAudio: another for the input", 0, 0},
        {"name", 'n', WT_OPTION_TEXT, &h->client_name, "NAME", "of the JACK client, \"warptone\" if left out", 0, 0},
        {"connect", 0, WT_OPTION_TEXT, &a.connect, "PATTERN,...", "JACK: to these ports (regular expressions)", 0, 0},
        {"no-auto-connect", 0, WT_OPTION_FLAG, &a.no_auto_connect, NULL, "JACK: not to the physical ports", 0, 0},
        {"channels", 0, WT_OPTION_INT, &h->channels, "N", "of the input; the preset's, else 2", 1, 64},
        {"out-channels", 0, WT_OPTION_INT, &h->out_channels, "N", "of the output; the chain's", 1, 64},
        {"streams", 0, WT_OPTION_INT, &s->n_streams, "N", "copies of the chain, each with such channels of its own", 1,
         64},
        {"workers", 0, WT_OPTION_INT, &s->n_workers, "N", "threads that help with them on the CPU, none if left out", 0,
         64},
        {"rate", 0, WT_OPTION_NUMBER, &h->rate_hz, "HZ", "the host's if left out", 1000, 768000},
        {"block", 0, WT_OPTION_INT, &h->block_frames, "FRAMES", "of a block; JACK's own if left out, PortAudio: 64", 1,
         8192},
        {"no-adapter", 0, WT_OPTION_FLAG, &h->no_adapter, NULL, "PortAudio: blocks as the device cuts them", 0, 0},
        {"latency", 0, WT_OPTION_NUMBER, &h->latency_ms, "MS", "PortAudio: wanted of the device", 0.1, 2000},
        {"mode", 0, WT_OPTION_TEXT, &a.mode, "MODE", "immediate (standard), or on a GPU pipelined: a block late", 0, 0},
        {"backend", 0, WT_OPTION_TEXT, &s->backend, "WHICH", "auto, cuda or cpu", 0, 0},
        {"gpu-path", 0, WT_OPTION_TEXT, &a.path, "PATH", "auto, resident or graph", 0, 0},
        {"audio-sms", 0, WT_OPTION_INT, &s->audio_sms, "N", "of the GPU's audio partition, 8 if left out", 1, 256},
        {"midi", 0, WT_OPTION_TEXT, &a.midi, "PORT", "hear this port (`warptone info --midi`), or \"virtual\"", 0, 0},
        {"control", 0, WT_OPTION_TEXT, &a.control.socket_path, "PATH", "of the control socket (docs/control.md)", 0, 0},
        {"no-control", 0, WT_OPTION_FLAG, &a.control.no_socket, NULL, "make no control socket", 0, 0},
        {"tcp", 0, WT_OPTION_INT, &a.control.tcp_port, "PORT", "control by TCP as well, from this machine", 1, 65535},
        {"osc", 0, WT_OPTION_INT, &a.control.osc_port, "PORT", "and by OSC over UDP", 1, 65535},
        {"bind", 0, WT_OPTION_TEXT, &a.control.bind, "ADDRESS", "of both, where others may reach it; 127.0.0.1", 0, 0},
        {"record", 0, WT_OPTION_TEXT, &a.record, "FILE", "record the output, as --record-out", 0, 0},
        {"record-in", 0, WT_OPTION_TEXT, &s->record_in, "FILE", "record the input", 0, 0},
        {"record-out", 0, WT_OPTION_TEXT, &s->record_out, "FILE", "record the output", 0, 0},
        {"duration", 0, WT_OPTION_NUMBER, &a.seconds, "SECONDS", "end by itself", 0.01, 1e9},
        {"awake", 0, WT_OPTION_FLAG, &s->awake, NULL, "let no processor sleep meanwhile: fewer xruns, more power", 0,
         0},
        {"processor", 0, WT_OPTION_TEXT, &a.processor, "N", "the audio thread's own; \"quiet\": the best by measure", 0,
         0},
        {"wait", 0, WT_OPTION_FLAG, &s->wait, NULL, "wait for a server, also when it dies", 0, 0},
        {"no-watch", 0, WT_OPTION_FLAG, &a.no_watch, NULL, "do not reload files that change", 0, 0},
        {"json", 0, WT_OPTION_FLAG, &a.json, NULL, "figures as JSON: a line a second, then the totals", 0, 0},
        {"quiet", 'q', WT_OPTION_FLAG, &a.quiet, NULL, "no view; with --json only the totals", 0, 0},
    };
    const int n_options = sizeof options / sizeof *options;
    wt_status status = wt_options_parse(options, n_options, &argc, argv, &help);
    if (status) return command_fail("live", status);
    if (help) return print_help(options, n_options);
    if (argc > 1) {
        wt_fail(WT_ERR_BAD_ARG, "\"%s\" is not expected, want options only (`warptone live --help`)", argv[1]);
        return command_fail("live", WT_ERR_BAD_ARG);
    }
    return run_command(&a);
}
