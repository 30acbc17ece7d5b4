// warptone chat: a conversation with a language model in the terminal, or through pipes, a line a message.
#include "chat_audio.h"
#include "chat_history.h"
#include "command.h"
#include "interrupt.h"
#include "kept_text.h"
#include "language_model.h"
#include "terminal_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum thinking { THINKING_DIM, THINKING_SHOW, THINKING_HIDE, N_THINKING } thinking;

static const char *const thinking_names[N_THINKING] = {"dim", "show", "hide"};

typedef struct chat {
    language_options o;
    const char *template_path, *history_path, *system, *thinking_name, *preset;
    bool no_thinking, stats, jack;
    live_session *audio; ///< NULL = none
    bool audio_ended;    ///< and that was told
    thinking thinking;
    bool terminal; ///< both ends are one
    language_model model;
    chat_history *history;
    int32_t *ids;         ///< [n_positions]
    kept_text said;       ///< the answer so far
    bool dimmed, thought; ///< the terminal is dim now; something was thought in this answer
    bool done;
    int n_refused; ///< messages without an answer
    wt_generation report; ///< of the last answer
} chat;

static int print_help(const wt_option *options, int n)
{
    printf("usage: warptone chat --model PATH [options]\n\n"
           "Talk with a language model that has a chat template. Each line is a message; Ctrl-C stops an answer, a\n"
           "second one ends the program. /help lists what else can be typed. Without a terminal, lines come from\n"
           "standard input and answers go to standard output, each with a newline.\n");
    wt_options_print(stdout, options, n);
    return EXIT_OK;
}

// ---- showing an answer

static void set_dim(chat *c, bool dim)
{
    if (dim != c->dimmed && c->thinking == THINKING_DIM && c->terminal) fputs(dim ? "\033[2m" : "\033[22m", stdout);
    c->dimmed = dim;
}

static void show_thinking(chat *c, const char *text, size_t n)
{
    if (!n || c->thinking == THINKING_HIDE) return;
    set_dim(c, true);
    fwrite(text, 1, n, stdout);
    c->thought = true;
}

static void show_answer(chat *c, const char *text, size_t n)
{
    if (!n) return;
    if (c->thought && !c->said.n) fputs("\n", stdout);
    set_dim(c, false);
    fwrite(text, 1, n, stdout);
    kept_text_add(&c->said, text, n);
}

static bool show(void *user, const wt_generated *token)
{
    chat *c = user;
    show_thinking(c, token->text.thinking, token->text.n_thinking);
    show_answer(c, token->text.answer, token->text.n_answer);
    fflush(stdout);
    return true;
}

static void print_stats(const chat *c)
{
    const wt_generation *r = &c->report;
    const double speed = r->decode_s > 0 && r->n_tokens > 1 ? (r->n_tokens - 1) / r->decode_s : 0;
    fprintf(stderr, "[%d + %d tokens, %d reused, first after %.2f s, %.1f tok/s, %s", r->n_prompt, r->n_tokens,
            r->n_reused, r->prefill_s, speed, wt_finish_name(r->finish));
    if (r->n_guessed) fprintf(stderr, "; %d of %d guesses right", r->n_correct, r->n_guessed);
    fprintf(stderr, "]\n");
    char text[512];
    if (c->audio) fprintf(stderr, "[%s]\n", chat_audio_describe(c->audio, text));
}

// ---- a turn

/// The prompt's tokens, without as many of the oldest turns as leave a quarter of the context for the answer.
static wt_status prepare(chat *c, int *n_ids, bool *thinks)
{
    const int most = c->model.n_positions - c->model.n_positions / 4, before = chat_history_left_out(c->history);
    for (int n = before;;) {
        char *prompt;
        wt_status status = chat_history_render(c->history, c->no_thinking, &prompt, thinks);
        if (!status) {
            status = language_model_encode(&c->model, prompt, strlen(prompt), false, c->ids, most, n_ids);
            free(prompt);
        }
        if (status == WT_ERR_LENGTH && chat_history_leave_out(c->history, n + 1)) {
            n++;
            continue;
        }
        if (status)
            (void)chat_history_leave_out(c->history, before); // the last message alone is too long
        else if (n > before)
            fprintf(stderr, "(the context is full: the model no longer sees the first %d question%s)\n", n,
                    n > 1 ? "s" : "");
        return status;
    }
}

/// Answer the last message of the user's.
static wt_status answer(chat *c)
{
    int n;
    bool thinks;
    wt_status status = prepare(c, &n, &thinks);
    if (status) return status;
    c->said.n = 0;
    c->thought = false;
    wt_generator_start_thinking(c->model.generator, thinks);
    status = wt_generator_run(c->model.generator, c->ids, n, &c->report);
    set_dim(c, false);
    fputs("\n", stdout);
    fflush(stdout);
    if (wt_interrupted()) { // SIGINT ends no more than the answer
        const wt_status cleared = wt_interrupt_clear();
        if (!status) status = cleared;
    }
    if (!status && c->stats) print_stats(c);
    return status ? status : chat_history_add(c->history, "assistant", c->said.at ? c->said.at : "", c->said.n);
}

/// A message that has no answer is taken back.
static wt_status say(chat *c, const char *text, size_t n)
{
    wt_status status = strlen(text) < n ? wt_fail(WT_ERR_FORMAT, "chat: the message has a byte of zero")
                                        : chat_history_add(c->history, "user", text, n);
    if (!status && (status = answer(c))) chat_history_undo(c->history);
    c->n_refused += status != WT_OK;
    return status;
}

// ---- commands

static wt_status do_help(chat *c, const char *rest);

static wt_status do_quit(chat *c, const char *rest)
{
    (void)rest;
    c->done = true;
    return WT_OK;
}

static wt_status do_clear(chat *c, const char *rest)
{
    (void)rest;
    chat_history_clear(c->history);
    return WT_OK;
}

static wt_status do_system(chat *c, const char *rest) { return chat_history_set_system(c->history, rest); }

static wt_status do_retry(chat *c, const char *rest)
{
    (void)rest;
    char *before;
    wt_status status = chat_history_take_answer(c->history, &before);
    if (status) return status;
    status = answer(c);
    if (status && chat_history_add(c->history, "assistant", before, strlen(before))) status = WT_ERR_NO_MEMORY;
    free(before);
    return status;
}

static wt_status do_undo(chat *c, const char *rest)
{
    (void)rest;
    return chat_history_undo(c->history) ? WT_OK : wt_fail(WT_ERR_BAD_ARG, "there is nothing to take back");
}

static wt_status do_history(chat *c, const char *rest)
{
    (void)rest;
    for (int k = 0; k < chat_history_count(c->history); k++) {
        const char *role, *text;
        chat_history_at(c->history, k, &role, &text);
        printf("%s: %s\n", role, text);
    }
    return WT_OK;
}

static wt_status do_thinking(chat *c, const char *rest)
{
    for (int k = 0; k < N_THINKING; k++)
        if (!strcmp(rest, thinking_names[k])) {
            c->thinking = (thinking)k;
            return WT_OK;
        }
    return wt_fail(WT_ERR_BAD_ARG, "thinking is \"%.40s\", want dim, show or hide", rest);
}

static wt_status do_stats(chat *c, const char *rest)
{
    (void)rest;
    c->stats = !c->stats;
    return WT_OK;
}

static wt_status do_save(chat *c, const char *rest)
{
    return rest[0] ? chat_history_save(c->history, rest) : wt_fail(WT_ERR_BAD_ARG, "/save wants a FILE");
}

static wt_status do_load(chat *c, const char *rest)
{
    return rest[0] ? chat_history_load(c->history, rest) : wt_fail(WT_ERR_BAD_ARG, "/load wants a FILE");
}

static const struct {
    const char *name, *argument, *help;
    wt_status (*run)(chat *c, const char *rest);
} commands[] = {
    {"help", "", "this list", do_help},
    {"clear", "", "forget the conversation", do_clear},
    {"system", "[TEXT]", "set or take away the system's message", do_system},
    {"retry", "", "another answer to the last message", do_retry},
    {"undo", "", "take back the last message and its answer", do_undo},
    {"history", "", "what was said", do_history},
    {"thinking", "dim|show|hide", "how thinking is shown", do_thinking},
    {"stats", "", "tokens and speed after each answer, or not", do_stats},
    {"save", "FILE", "the conversation as JSON", do_save},
    {"load", "FILE", "a saved conversation", do_load},
    {"quit", "", "end, as Ctrl-D does", do_quit},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static wt_status do_help(chat *c, const char *rest)
{
    (void)c;
    (void)rest;
    for (int k = 0; k < N_COMMANDS; k++) {
        const int n = fprintf(stderr, "  /%s %s", commands[k].name, commands[k].argument);
        fprintf(stderr, "%*s%s\n", n < 28 ? 28 - n : 1, "", commands[k].help);
    }
    return WT_OK;
}

static wt_status run_command(chat *c, const char *line)
{
    const size_t n = strcspn(line, " ");
    for (int k = 0; k < N_COMMANDS; k++)
        if (strlen(commands[k].name) == n && !strncmp(commands[k].name, line, n))
            return commands[k].run(c, line + n + strspn(line + n, " "));
    return wt_fail(WT_ERR_BAD_ARG, "/%.*s is not known; /help lists what is", (int)(n < 40 ? n : 40), line);
}

// ---- the conversation

static bool is_fatal(wt_status status)
{
    return status && status != WT_ERR_BAD_ARG && status != WT_ERR_FULL && status != WT_ERR_LENGTH && status != WT_ERR_FILE &&
           status != WT_ERR_FORMAT;
}

/// A server that went away ends the audio, not the conversation.
static void tell_end_of_audio(chat *c)
{
    char text[512];
    if (!c->audio || c->audio_ended || !live_session_ended(c->audio, NULL)) return;
    c->audio_ended = true;
    fprintf(stderr, "[%s]\n", chat_audio_describe(c->audio, text));
}

/// After each turn, so that nothing is lost whatever ends the program.
static wt_status keep(const chat *c)
{
    return c->history_path ? chat_history_save(c->history, c->history_path) : WT_OK;
}

/// Errors of one message or command are told, and the conversation goes on.
static wt_status talk(chat *c)
{
    char *line = NULL;
    size_t size = 0;
    wt_status status = WT_OK;
    setvbuf(stdin, NULL, _IONBF, 0); // what stands in a buffer cannot be waited for
    while (!c->done && !is_fatal(status)) {
        tell_end_of_audio(c);
        if (c->terminal) fputs("> ", stdout), fflush(stdout);
        if (!wt_interrupt_wait_input(STDIN_FILENO)) break;
        ssize_t n = getline(&line, &size, stdin);
        if (n < 0) break;
        while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
        if (!n) continue;
        status = line[0] == '/' ? run_command(c, line + 1) : say(c, line, (size_t)n);
        if (!status) status = keep(c);
        if (status) fprintf(stderr, "%s\n", wt_last_error());
    }
    free(line);
    if (c->terminal && !c->done) fputs("\n", stdout);
    return is_fatal(status) ? status : WT_OK;
}

/// --template's file, or the tokenizer's.
static wt_status open_history(chat *c)
{
    const wt_tokenizer *t = c->model.tokenizer;
    if (!t) return wt_fail(WT_ERR_UNSUPPORTED, "%s has no tokenizer.json, which chat wants", c->o.model);
    const int32_t bos = wt_tokenizer_bos(t), eos = wt_tokenizer_eos(t);
    const char *text = wt_tokenizer_chat_template(t), *first = bos < 0 ? NULL : wt_tokenizer_token(t, bos);
    const char *last = eos < 0 ? NULL : wt_tokenizer_token(t, eos);
    char *file = NULL;
    size_t size = 0;
    if (c->template_path) {
        FILE *f = fopen(c->template_path, "rb");
        const bool got = f && getdelim(&file, &size, 0, f) >= 0;
        if (f) fclose(f);
        if (!got) {
            free(file);
            return wt_fail(WT_ERR_FILE, "the template %s cannot be read", c->template_path);
        }
        text = file;
    }
    wt_status status =
        text ? chat_history_create(text, first, last, &c->history)
             : wt_fail(WT_ERR_NOT_FOUND, "%s has no chat template, want --template FILE", c->o.model);
    free(file);
    if (!status && c->history_path && access(c->history_path, F_OK) == 0)
        status = chat_history_load(c->history, c->history_path);
    if (!status && c->system) status = chat_history_set_system(c->history, c->system);
    return status ? status : keep(c); // what cannot be written is told before anything is said
}

static wt_status open_model(void *user)
{
    chat *c = user;
    return language_model_open(&c->o,
                               &(language_use){.text = {.split_thinking = true},
                                               .on_token = show,
                                               .partition = c->audio ? chat_audio_partition(c->audio) : NULL,
                                               .progress = terminal_model_progress,
                                               .user = c},
                               &c->model);
}

/// A model that does not find a partition beside the audio runs on the CPU.
static wt_status open_beside_audio(chat *c)
{
    wt_status status = chat_audio_open(c->preset, c->jack, c->o.backend, &c->audio);
    if (status) return status;
    if (!chat_audio_partition(c->audio)) c->o.backend = "cpu";
    return chat_audio_quiesce(c->audio, open_model, c);
}

static wt_status open_all(chat *c)
{
    wt_status status = c->thinking_name ? do_thinking(c, c->thinking_name) : WT_OK;
    if (!status) status = c->preset ? open_beside_audio(c) : open_model(c);
    if (status) return status;
    if (!(c->ids = calloc((size_t)c->model.n_positions, sizeof *c->ids)))
        return wt_fail(WT_ERR_NO_MEMORY, "chat: %d tokens", c->model.n_positions);
    status = open_history(c);
    return status || !c->audio ? status : live_session_start(c->audio);
}

static wt_status close_model(void *user)
{
    language_model_close(&((chat *)user)->model);
    return WT_OK;
}

/// The partition is given back before the audio ends.
static void close_all(chat *c)
{
    char text[512];
    if (c->audio && !c->audio_ended) fprintf(stderr, "[%s]\n", chat_audio_describe(c->audio, text));
    const wt_status closed = c->audio ? chat_audio_quiesce(c->audio, close_model, c) : close_model(c);
    if (closed) fprintf(stderr, "warptone chat: %s\n", wt_last_error());
    const wt_status unused = live_session_close(c->audio);
    (void)unused; // nothing is recorded
    chat_history_destroy(c->history);
    free(c->ids);
    free(c->said.at);
}

int cmd_chat(int argc, char **argv)
{
    chat c = {.o = {.temperature = -1, .top_k = -1, .top_p = -1, .min_p = -1, .typical_p = -1, .repetition = -1},
              .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    c.thinking = c.terminal ? THINKING_DIM : THINKING_HIDE;
    c.stats = c.terminal;
    bool help;
    const wt_option options[] = {
        LANGUAGE_OPTIONS(&c.o),
        OPTION_TEXT("live", 0, &c.preset, "PRESET", "play through a preset meanwhile, in this process"),
        OPTION_FLAG("jack", 0, &c.jack, "as a JACK client, with --live"),
        OPTION_TEXT("system", 0, &c.system, "TEXT", "the system's message"),
        OPTION_TEXT("history", 0, &c.history_path, "FILE",
                    "go on with this conversation, and save it after each turn"),
        OPTION_TEXT("template", 0, &c.template_path, "FILE", "a chat template, instead of the model's"),
        OPTION_TEXT("thinking", 0, &c.thinking_name, "HOW", "dim (terminals), show or hide (pipes)"),
        OPTION_FLAG("no-thinking", 0, &c.no_thinking, "ask the template for none (enable_thinking)"),
    };
    enum { N_OPTIONS = sizeof options / sizeof *options };
    wt_status status = wt_options_parse(options, N_OPTIONS, &argc, argv, &help);
    if (status) return command_fail("chat", status);
    if (help) return print_help(options, N_OPTIONS);
    if (!c.o.model)
        return command_fail("chat", wt_fail(WT_ERR_BAD_ARG, "no model was named, want --model PATH "
                                                            "(`warptone chat --help`)"));
    if (argc != 1)
        return command_fail("chat",
                            wt_fail(WT_ERR_BAD_ARG, "\"%s\" is not expected, want messages on standard input", argv[1]));
    if (c.jack && !c.preset)
        return command_fail("chat", wt_fail(WT_ERR_BAD_ARG, "--jack is given alone, want --live PRESET with it"));
    status = wt_interrupt_install();
    if (!status) status = open_all(&c);
    if (!status) status = talk(&c);
    const wt_status ended = wt_interrupted() ? WT_ERR_CANCELLED : WT_OK;
    int code = status ? command_fail("chat", status) : exit_code_of(ended);
    if (!code && c.n_refused && !c.terminal) code = EXIT_FAILED; // nobody has read why
    close_all(&c);
    return code;
}
