// The line protocol: one table of commands. It is a superset of mod-host's for what a chain from a preset has; the
// names and the form of the answers ("resp 0 VALUE", "resp -1 SENTENCE") are those of mod-host's public documentation.
#include "control_internal.h"
#include "live_report.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

enum { MAX_WORDS = 12 };

typedef struct call {
    control_caller *caller;
    live_session *session;
    int argc;
    char *argv[MAX_WORDS + 1]; ///< argv[0] is the command
} call;

typedef struct command {
    const char *name, *usage, *summary;
    int min_args, max_args;
    wt_status (*run)(call *c);
} command;

// ---- text

void control_put(control_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->bytes + text->used, text->size - text->used, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < text->size - text->used)
        text->used += (size_t)n;
    else
        text->full = true;
}

// A NUL cannot be printed, so it is put where control_put left a line's end.
void control_end(control_caller *caller)
{
    control_put(&caller->out, "%c", '\n');
    if (!caller->out.full) caller->out.bytes[caller->out.used - 1] = caller->end;
}

static void answer(call *c, const char *format, ...) WT_PRINTF(2, 3);
static void answer(call *c, const char *format, ...)
{
    char value[512];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    control_put(&c->caller->out, "resp 0%s%s", *value ? " " : "", value);
    control_end(c->caller);
}

void control_refuse(control_caller *caller, const char *sentence)
{
    size_t begin = caller->out.used;
    control_put(&caller->out, "resp -1 %s", sentence);
    for (size_t k = begin; k < caller->out.used; k++)
        if (iscntrl((unsigned char)caller->out.bytes[k])) caller->out.bytes[k] = ' ';
    control_end(caller);
}

static float db_of(float level) { return 20 * log10f(level); }

static void put_side(control_text *text, live_session *session, bool output)
{
    float peak[CONTROL_CHANNELS], rms[CONTROL_CHANNELS];
    int n = live_session_levels(session, output, peak, rms, CONTROL_CHANNELS);
    control_put(text, output ? " out" : " in");
    for (int c = 0; c < n; c++) control_put(text, " %.1f %.1f", (double)db_of(peak[c]), (double)db_of(rms[c]));
}

void control_put_levels(control_text *text, live_session *session)
{
    put_side(text, session, false);
    put_side(text, session, true);
}

void control_put_stats(control_text *text, live_session *session)
{
    json_t *stats = live_report_json(session);
    char *line = json_dumps(stats, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    control_put(text, " %s", line ? line : "{}");
    free(line);
    json_decref(stats);
}

/// As `split` reads it back; what is no text becomes '?'.
static void put_word(control_text *text, const char *word)
{
    bool quoted = !*word || strpbrk(word, " \t\"");
    if (quoted) control_put(text, "\"");
    for (; *word; word++) {
        if (quoted && (*word == '"' || *word == '\\')) control_put(text, "\\");
        control_put(text, "%c", iscntrl((unsigned char)*word) ? '?' : *word);
    }
    if (quoted) control_put(text, "\"");
}

void control_put_change(control_caller *caller, const char *name, float value)
{
    const char *slash = strchr(name, '/');
    live_session_stats stats;
    if (slash)
        control_put(&caller->out, "param_set %.*s %s %.6g", (int)(slash - name), name, slash + 1, (double)value);
    else if (!strcmp(name, "preset")) {
        live_session_get_stats(caller->session, &stats);
        control_put(&caller->out, "preset_load ");
        put_word(&caller->out, stats.preset);
    } else
        control_put(&caller->out, "%s %.9g", name, (double)value);
    control_end(caller);
}

// ---- arguments

static wt_status number_of(const char *text, const char *what, double min, double max, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end || !isfinite(*value) || *value < min || *value > max)
        return wt_fail(WT_ERR_BAD_ARG, "%s is \"%s\", want a number in %.9g..%.9g", what, text, min, max);
    return WT_OK;
}

static wt_status integer_of(const char *text, const char *what, int min, int max, int *value)
{
    double number;
    wt_status status = number_of(text, what, min, max, &number);
    if (status) return status;
    *value = (int)number;
    return *value == number ? WT_OK : wt_fail(WT_ERR_BAD_ARG, "%s is \"%s\", want a whole number", what, text);
}

/// A node as it was named, of `length` bytes. mod-host numbers its instances: where no node is called so, a number
/// stands for the node at that place of the chain, from 0 on.
static void node_of(live_session *session, const char *word, size_t length, char node[CONTROL_NAME_BYTES])
{
    char numbered[CONTROL_NAME_BYTES] = "", before[CONTROL_NAME_BYTES] = "";
    live_param p;
    snprintf(node, CONTROL_NAME_BYTES, "%.*s", (int)length, word);
    if (!*node || node[strspn(node, "0123456789")]) return;
    const long wanted = strtol(node, NULL, 10);
    long place = -1;
    for (int k = 0; !live_session_param(session, k, &p); k++) {
        if (!strcmp(p.node, node)) return;
        place += strcmp(p.node, before) != 0; // each has one parameter at least
        if (place == wanted) snprintf(numbered, sizeof numbered, "%s", p.node);
        snprintf(before, sizeof before, "%s", p.node);
    }
    if (*numbered) snprintf(node, CONTROL_NAME_BYTES, "%s", numbered);
}

/// "node/param" as one word or two; *next is the word after it. `wanted` more words must follow, `more` may.
static wt_status name_of(call *c, int wanted, int more, char name[CONTROL_NAME_BYTES], int *next)
{
    char node[CONTROL_NAME_BYTES];
    const char *slash = strchr(c->argv[1], '/'), *end = slash ? slash : c->argv[1] + strlen(c->argv[1]);
    *next = slash ? 2 : 3;
    int left = c->argc - *next;
    if (left < wanted || left > wanted + more)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d words after the parameter, want %d%s", c->argv[0], left < 0 ? 0 : left,
                       wanted,
                       more == 1 ? " or one more"
                       : more    ? " or two more"
                                 : "");
    node_of(c->session, c->argv[1], (size_t)(end - c->argv[1]), node);
    int n = snprintf(name, CONTROL_NAME_BYTES, "%s/%s", node, slash ? slash + 1 : c->argv[2]);
    return n < CONTROL_NAME_BYTES ? WT_OK
                                  : wt_fail(WT_ERR_NOT_FOUND, "%s: no parameter has so long a name", c->argv[0]);
}

// ---- commands

static wt_status param_set(call *c)
{
    char name[CONTROL_NAME_BYTES];
    int at;
    double value;
    wt_status status = name_of(c, 1, 0, name, &at);
    if (!status) status = number_of(c->argv[at], name, -3.4e38, 3.4e38, &value);
    if (!status) status = live_session_set(c->session, name, (float)value);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status param_get(call *c)
{
    char name[CONTROL_NAME_BYTES];
    int at;
    float value;
    wt_status status = name_of(c, 0, 0, name, &at);
    if (!status) status = live_session_get(c->session, name, &value);
    if (!status) answer(c, "%.6g", (double)value);
    return status;
}

static bool is_number(const char *text)
{
    char *end;
    (void)strtod(text, &end);
    return end != text && !*end;
}

static wt_status bypass_node(call *c)
{
    char node[CONTROL_NAME_BYTES], name[CONTROL_NAME_BYTES];
    float is_on;
    int on;
    node_of(c->session, c->argv[1], strlen(c->argv[1]), node);
    if (snprintf(name, sizeof name, "%s/bypass", node) >= CONTROL_NAME_BYTES)
        return wt_fail(WT_ERR_NOT_FOUND, "bypass: no node has so long a name");
    wt_status status = c->argc > 2 ? integer_of(c->argv[2], name, 0, 1, &on) : WT_OK;
    if (!status)
        status =
            c->argc > 2 ? live_session_set(c->session, name, (float)on) : live_session_get(c->session, name, &is_on);
    if (status) return status;
    if (c->argc > 2)
        answer(c, "%s", "");
    else
        answer(c, "%d", is_on != 0);
    return WT_OK;
}

/// Of a node, or of the whole chain where no word but a number comes.
static wt_status bypass(call *c)
{
    live_session_stats stats;
    int on;
    if (c->argc > 1 && !(c->argc == 2 && is_number(c->argv[1]))) return bypass_node(c);
    if (c->argc == 1) {
        live_session_get_stats(c->session, &stats);
        answer(c, "%d", stats.live.bypass);
        return WT_OK;
    }
    wt_status status = integer_of(c->argv[1], "bypass", 0, 1, &on);
    if (status) return status;
    live_session_set_bypass(c->session, on);
    answer(c, "%s", "");
    return WT_OK;
}

static wt_status monitor(call *c)
{
    char name[CONTROL_NAME_BYTES];
    int at;
    float value;
    if (c->argc == 1) {
        control_put(&c->caller->out, "resp 0");
        control_put_levels(&c->caller->out, c->session);
        control_end(c->caller);
        return WT_OK;
    }
    wt_status status = name_of(c, 0, 0, name, &at);
    if (!status) status = live_session_reading(c->session, name, &value);
    if (!status) answer(c, "%.6g", (double)value);
    return status;
}

static wt_status with_name(call *c, wt_status (*act)(live_session *session, const char *name))
{
    char name[CONTROL_NAME_BYTES];
    int at;
    wt_status status = name_of(c, 0, 0, name, &at);
    if (!status) status = act(c->session, name);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status midi_learn(call *c)
{
    char name[CONTROL_NAME_BYTES];
    int at;
    double min = NAN, max = NAN;
    wt_status status = name_of(c, 0, 2, name, &at);
    if (!status && c->argc == at + 1) status = wt_fail(WT_ERR_BAD_ARG, "midi_learn: a minimum alone, want both ends");
    if (!status && c->argc > at) status = number_of(c->argv[at], "midi_learn: minimum", -3.4e38, 3.4e38, &min);
    if (!status && c->argc > at) status = number_of(c->argv[at + 1], "midi_learn: maximum", -3.4e38, 3.4e38, &max);
    if (!status) status = live_session_midi_learn(c->session, name, (float)min, (float)max);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status midi_unmap(call *c) { return with_name(c, live_session_midi_unmap); }

/// mod-host's channels count from 0; the session's from 1, and 0 is any.
static wt_status channel_of(const char *text, int *channel)
{
    *channel = -1;
    wt_status status = strcmp(text, "any") ? integer_of(text, "midi_map: channel", 0, 15, channel) : WT_OK;
    ++*channel;
    return status;
}

static wt_status midi_map(call *c)
{
    char name[CONTROL_NAME_BYTES];
    int at, channel, controller;
    double min, max;
    wt_status status = name_of(c, 4, 1, name, &at);
    if (!status) status = channel_of(c->argv[at], &channel);
    if (!status) status = integer_of(c->argv[at + 1], "midi_map: controller", 0, 131, &controller);
    if (!status) status = number_of(c->argv[at + 2], "midi_map: minimum", -3.4e38, 3.4e38, &min);
    if (!status) status = number_of(c->argv[at + 3], "midi_map: maximum", -3.4e38, 3.4e38, &max);
    const char *curve = !status && c->argc > at + 4 ? c->argv[at + 4] : "linear";
    if (!status) status = live_session_midi_map(c->session, name, channel, controller, (float)min, (float)max, curve);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status preset_load(call *c)
{
    wt_status status = live_session_load(c->session, c->argv[1]);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status preset_save(call *c)
{
    wt_status status = live_session_save(c->session, c->argc > 1 ? c->argv[1] : NULL);
    if (!status) answer(c, "%s", "");
    return status;
}

static wt_status cpu_load(call *c)
{
    live_session_stats stats;
    live_session_get_stats(c->session, &stats);
    answer(c, "%.4f", stats.live.load * 100);
    return WT_OK;
}

static wt_status max_cpu_load(call *c)
{
    live_session_stats stats;
    live_session_get_stats(c->session, &stats);
    const wt_live_stats *l = &stats.live;
    const double block_s = l->rate_hz > 0 ? l->block_frames / l->rate_hz : 0;
    answer(c, "%.4f", block_s > 0 ? 100e-9 * (double)l->process_ns.max / block_s : 0.0);
    return WT_OK;
}

static wt_status list(call *c)
{
    control_text *out = &c->caller->out;
    int n = live_session_n_params(c->session);
    control_put(out, "resp 0 %d", n);
    for (int k = 0; k < n; k++) {
        live_param p = {.node = "?", .name = "?"}; // where a preset with fewer was loaded meanwhile
        float value = 0;
        if (!live_session_param(c->session, k, &p)) value = p.value;
        control_put(out, "\n%s %s %.6g %.6g %.6g %.6g %s %s", p.node, p.name, (double)value, (double)p.min,
                    (double)p.max, (double)p.standard, p.logarithmic ? "log" : "linear", *p.unit ? p.unit : "-");
    }
    control_end(c->caller);
    return WT_OK;
}

static wt_status stats(call *c)
{
    if (c->argc > 1 && strcmp(c->argv[1], "json"))
        return wt_fail(WT_ERR_BAD_ARG, "stats: \"%s\" is no format, want json", c->argv[1]);
    control_put(&c->caller->out, "resp 0");
    control_put_stats(&c->caller->out, c->session);
    control_end(c->caller);
    return WT_OK;
}

static wt_status subscribe(call *c)
{
    control_wishes *w = &c->caller->wishes;
    bool levels = !strcmp(c->argv[1], "levels"), stats = !strcmp(c->argv[1], "stats");
    double seconds = levels ? 0.1 : 1;
    wt_status status = WT_OK;
    if (c->argc > 2 && (levels || stats)) status = number_of(c->argv[2], "subscribe: interval", 0.02, 3600, &seconds);
    if (status) return status;
    if (levels)
        w->levels_ns = (int64_t)(seconds * 1e9), w->levels_due_ns = 0;
    else if (stats)
        w->stats_ns = (int64_t)(seconds * 1e9), w->stats_due_ns = 0;
    else if (!strcmp(c->argv[1], "params") && c->argc == 2)
        w->params = true;
    else
        return wt_fail(WT_ERR_BAD_ARG, "subscribe: \"%s\", want params, levels [SECONDS] or stats [SECONDS]",
                       c->argv[1]);
    answer(c, "%s", "");
    return WT_OK;
}

static wt_status unsubscribe(call *c)
{
    control_wishes *w = &c->caller->wishes;
    bool all = c->argc == 1;
    bool params = all || !strcmp(c->argv[1], "params"), levels = all || !strcmp(c->argv[1], "levels"),
         stats = all || !strcmp(c->argv[1], "stats");
    if (!params && !levels && !stats)
        return wt_fail(WT_ERR_BAD_ARG, "unsubscribe: \"%s\", want params, levels or stats", c->argv[1]);
    if (params) w->params = false;
    if (levels) w->levels_ns = 0;
    if (stats) w->stats_ns = 0;
    answer(c, "%s", "");
    return WT_OK;
}

static wt_status help(call *c);

static wt_status close_connection(call *c)
{
    c->caller->leave = true;
    answer(c, "%s", "");
    return WT_OK;
}

static wt_status quit(call *c)
{
    live_session_end(c->session, "asked for by the control protocol");
    return close_connection(c);
}

static const command commands[] = {
    {"param_set", "NODE PARAM VALUE", "turn a parameter", 2, 3, param_set},
    {"param_get", "NODE PARAM", "its present value", 1, 2, param_get},
    {"bypass", "[NODE] [0|1]", "input to output, or back, of a node or of all; without a number: is it so?", 0, 2,
     bypass},
    {"monitor", "[NODE READING]", "levels in dB, peak and RMS a channel; or what a node shows", 0, 2, monitor},
    {"midi_learn", "NODE PARAM [MIN MAX]", "map the next controller that moves", 1, 4, midi_learn},
    {"midi_map", "NODE PARAM CHANNEL CONTROLLER MIN MAX [CURVE]",
     "map a controller; channel 0..15 or any; controller 131 = pitch wheel", 5, 7, midi_map},
    {"midi_unmap", "NODE PARAM", "forget its controllers", 1, 2, midi_unmap},
    {"preset_load", "PRESET", "play another preset, by name or path", 1, 1, preset_load},
    {"preset_save", "[PATH]", "write the preset with the present values", 0, 1, preset_save},
    {"cpu_load", "", "time in the audio callback, percent of the block's duration", 0, 0, cpu_load},
    {"max_cpu_load", "", "the longest so far, likewise", 0, 0, max_cpu_load},
    {"list", "", "NODE PARAM VALUE MIN MAX STANDARD linear|log UNIT, a line each", 0, 0, list},
    {"stats", "[json]", "all figures as one line of JSON", 0, 1, stats},
    {"subscribe", "params | levels [SECONDS] | stats [SECONDS]", "be told", 1, 2, subscribe},
    {"unsubscribe", "[params | levels | stats]", "be told no more", 0, 1, unsubscribe},
    {"help", "[COMMAND]", "this list, a line each", 0, 1, help},
    {"close", "", "end this connection", 0, 0, close_connection},
    {"quit", "", "end the session", 0, 0, quit},
};

enum { N_COMMANDS = (int)(sizeof commands / sizeof *commands) };

/// What else mod-host has, and where a chain from a preset has it.
static const struct {
    const char *names, *answer; ///< names between blanks
} elsewhere[] = {
    {" add remove preload activate multi_add multi_remove multi_activate multi_preload bundle_add bundle_remove ",
     "the preset has the nodes: preset_load, or edit its file, which is watched"},
    {" connect connect_matching connect_safe disconnect disconnect_all disconnect_safe ",
     "the nodes are connected by the preset, the client's ports by JACK's own tools"},
    {" params_flush pre_run multi_param_set multi_params_flush multi_pre_run ", "param_set, once for each"},
    {" multi_bypass ", "bypass, once for each"},
    {" param_monitor monitor_output monitor_output_off output_data_ready monitor_audio_levels monitor_midi_control "
     "monitor_midi_program ",
     "there is no feedback port: subscribe, on this connection"},
    {" cc_map cc_unmap cc_value_set cv_map cv_unmap ", "midi_map, or OSC"},
    {" set_bpm set_bpb transport transport_sync ", "JACK's transport is followed, never led"},
    {" feature_enable ", "JACK's freewheel mode is followed, never switched"},
    {" patch_set patch_get licensee preset_show ", "belongs to LV2 plugins"},
    {" load save ", "preset_load and preset_save"},
    {" wait_audio_cycle ", "answers wait for no audio"},
};

static const char *elsewhere_of(const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %.61s ", name);
    for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++)
        if (strstr(elsewhere[k].names, word)) return elsewhere[k].answer;
    return NULL;
}

static const command *find(const char *name)
{
    const char *names[N_COMMANDS], *where = elsewhere_of(name);
    for (int k = 0; k < N_COMMANDS; k++)
        if (!strcmp((names[k] = commands[k].name), name)) return &commands[k];
    if (where)
        (void)wt_fail(WT_ERR_NOT_FOUND, "%s is not here: %s", name, where);
    else
        (void)wt_fail(WT_ERR_NOT_FOUND, "no command is named \"%.60s\"; the nearest is %s", name,
                      wt_nearest_name(name, names, N_COMMANDS));
    return NULL;
}

static wt_status help(call *c)
{
    control_text *out = &c->caller->out;
    const command *only = c->argc > 1 ? find(c->argv[1]) : NULL;
    if (c->argc > 1 && !only) return WT_ERR_NOT_FOUND;
    control_put(out, "resp 0 %d", only ? 1 : N_COMMANDS);
    for (const command *k = only ? only : commands; k < (only ? only + 1 : commands + N_COMMANDS); k++)
        control_put(out, "\n%s%s%s: %s", k->name, *k->usage ? " " : "", k->usage, k->summary);
    control_end(c->caller);
    return WT_OK;
}

// ---- lines

/// Cut the line into words in place: between blanks, or between double quotes with \" and \\ in them.
static wt_status split(call *c, char *line)
{
    for (char *at = line;;) {
        while (*at == ' ' || *at == '\t') at++;
        if (!*at) return WT_OK;
        if (c->argc == MAX_WORDS) return wt_fail(WT_ERR_BAD_ARG, "the line has more than %d words", MAX_WORDS);
        bool quoted = *at == '"';
        char *to = at += quoted;
        c->argv[c->argc++] = to;
        for (; *at && (quoted ? *at != '"' : *at != ' ' && *at != '\t'); at++) {
            if (quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\')) at++;
            *to++ = *at;
        }
        if (quoted && !*at) return wt_fail(WT_ERR_BAD_ARG, "a quote has no end");
        bool last = !*at;
        *to = 0;
        if (last) return WT_OK;
        at++;
    }
}

static wt_status check_bytes(const char *line, size_t length)
{
    for (size_t k = 0; k < length; k++)
        if (iscntrl((unsigned char)line[k]) && line[k] != '\t')
            return wt_fail(WT_ERR_BAD_ARG, "the line has byte 0x%02x, want text", (unsigned char)line[k]);
    return WT_OK;
}

static wt_status run(call *c)
{
    const command *found = find(c->argv[0]);
    if (!found) return WT_ERR_NOT_FOUND;
    int n_args = c->argc - 1;
    if (n_args < found->min_args || n_args > found->max_args)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d words after it, want: %s%s%s", found->name, n_args, found->name,
                       *found->usage ? " " : "", found->usage);
    return found->run(c);
}

void control_line(control_caller *caller, char *line, size_t length)
{
    call c = {.caller = caller, .session = caller->session};
    if (length && line[length - 1] == '\r') length--;
    line[length] = 0;
    wt_status status = check_bytes(line, length);
    if (!status) status = split(&c, line);
    if (!status && !c.argc) return; // an empty line has no answer
    if (!status) status = run(&c);
    if (status) control_refuse(caller, wt_last_error());
}
