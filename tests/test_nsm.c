// A client of the New Session Manager against a small manager on this machine, over liblo.
#include "fake_session.h"
#include "support/jack_server.h"
#include "support/testing.h"

#include "../hosts/control.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WT_HAVE_LIBLO
#    include "osc_text.h"

enum { WAIT_S = 60, MAX_MESSAGES = 64 }; // until a test gives up; a loaded machine may take long

typedef struct manager {
    lo_server_thread thread;
    lo_address client; ///< who announced
    char url[64], folder[64], project[96];
    const char *refusal; ///< NULL = announces are welcome
    pthread_mutex_t lock;
    pthread_cond_t came;
    char messages[MAX_MESSAGES][512]; ///< address and arguments
    int n_messages, n_read;
} manager;

static void note(manager *m, const char *path, const char *types, lo_arg **argv, int argc)
{
    pthread_mutex_lock(&m->lock);
    int k = m->n_messages < MAX_MESSAGES - 1 ? m->n_messages++ : m->n_messages;
    osc_text_of(path, types, argv, argc, m->messages[k], sizeof m->messages[k]);
    pthread_cond_signal(&m->came);
    pthread_mutex_unlock(&m->lock);
}

static int on_any(const char *path, const char *types, lo_arg **argv, int argc, lo_message message, void *user)
{
    manager *m = user;
    note(m, path, types, argv, argc);
    if (strcmp(path, "/nsm/server/announce")) return 0;
    lo_server server = lo_server_thread_get_server(m->thread);
    lo_address from = lo_message_get_source(message);
    m->client = lo_address_new(lo_address_get_hostname(from), lo_address_get_port(from));
    if (m->refusal) {
        lo_send_from(m->client, server, LO_TT_IMMEDIATE, "/error", "sis", path, -2, m->refusal);
        return 0;
    }
    lo_send_from(m->client, server, LO_TT_IMMEDIATE, "/reply", "ssss", path, "welcome", "test", ":server-control:");
    lo_send_from(m->client, server, LO_TT_IMMEDIATE, "/nsm/client/open", "sss", m->project, "Song", "warptone.nABC");
    return 0;
}

static void open_manager(manager *m, const char *refusal)
{
    *m = (manager){.refusal = refusal};
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->came, &monotonic);
    pthread_condattr_destroy(&monotonic);
    strcpy(m->folder, "/tmp/wt_nsm.XXXXXX");
    assert_non_null(mkdtemp(m->folder));
    snprintf(m->project, sizeof m->project, "%s/warptone.nABC", m->folder);
    m->thread = lo_server_thread_new(NULL, NULL);
    assert_non_null(m->thread);
    lo_server_thread_add_method(m->thread, NULL, NULL, on_any, m);
    snprintf(m->url, sizeof m->url, "osc.udp://127.0.0.1:%d/", lo_server_thread_get_port(m->thread));
    assert_int_equal(lo_server_thread_start(m->thread), 0);
}

static void close_manager(manager *m)
{
    char command[128];
    lo_server_thread_stop(m->thread);
    lo_server_thread_free(m->thread);
    lo_address_free(m->client);
    snprintf(command, sizeof command, "rm -r '%s'", m->folder);
    assert_int_equal(system(command), 0);
}

/// The next message that came, "" after a long time.
static const char *next(manager *m)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&m->lock);
    int error = 0;
    while (m->n_read == m->n_messages && !error) error = pthread_cond_timedwait(&m->came, &m->lock, &until);
    const char *text = m->n_read < m->n_messages ? m->messages[m->n_read++] : "";
    pthread_mutex_unlock(&m->lock);
    return text;
}

static void assert_begins(const char *text, const char *begin)
{
    if (strncmp(text, begin, strlen(begin))) fail_msg("\"%s\", want \"%s...\"", text, begin);
}

static void tell(manager *m, const char *path)
{
    lo_send_from(m->client, lo_server_thread_get_server(m->thread), LO_TT_IMMEDIATE, path, "");
}

static void put_state(const manager *m, const char *text)
{
    char path[128];
    mkdir(m->project, 0700);
    snprintf(path, sizeof path, "%s/session.json", m->project);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static nsm *join(manager *m)
{
    nsm *n = NULL;
    char announced[128];
    assert_ok(nsm_join(m->url, "/usr/bin/warptone", WAIT_S, &n));
    snprintf(announced, sizeof announced,
             "/nsm/server/announce ,sssiii Warptone :dirty:progress:message: warptone 1 1 %d", (int)getpid());
    assert_string_equal(next(m), announced);
    assert_string_equal(nsm_client_id(n), "warptone.nABC");
    return n;
}

static void assert_opened(manager *m)
{
    assert_string_equal(next(m), "/nsm/client/progress ,f 1");
    assert_string_equal(next(m), "/reply ,ss /nsm/client/open the preset plays");
}

/// A session of that manager, attached as far as the first word of its progress; `saved`: its state, NULL = none.
typedef struct member {
    manager m;
    live_session s;
    nsm *n;
    control *c;
} member;

static void open_member(member *b, const char *saved)
{
    open_manager(&b->m, NULL);
    fake_session_init(&b->s);
    if (saved) put_state(&b->m, saved);
    b->n = join(&b->m);
    assert_ok(control_open(&(control_config){.session = &b->s, .no_socket = true, .nsm = b->n}, &b->c));
    assert_string_equal(next(&b->m), "/nsm/client/progress ,f 0.5");
}

static void close_member(member *b)
{
    control_close(b->c);
    nsm_leave(b->n);
    close_manager(&b->m);
}

static void a_session_is_opened_changed_and_saved(void **state)
{
    (void)state;
    member b;
    char path[128];
    open_member(&b, NULL);
    assert_null(nsm_preset(b.n));
    assert_opened(&b.m);
    assert_ok(live_session_set(&b.s, "gain/gain_db", 3.25f));
    assert_string_equal(next(&b.m), "/nsm/client/is_dirty ,");
    live_session_set_bypass(&b.s, true); // it is dirty already, so nothing more is said
    tell(&b.m, "/nsm/client/session_is_loaded");
    tell(&b.m, "/nsm/client/save");
    assert_string_equal(next(&b.m), "/nsm/client/is_clean ,");
    assert_string_equal(next(&b.m), "/reply ,ss /nsm/client/save saved");
    snprintf(path, sizeof path, "%s/session.json", b.m.project);
    json_t *saved = json_load_file(path, 0, NULL), *params = json_object_get(saved, "params");
    assert_string_equal(json_string_value(json_object_get(saved, "preset")), "voice");
    assert_true(json_is_true(json_object_get(saved, "bypass")));
    assert_int_equal(json_object_size(params), FAKE_PARAMS);
    assert_true(json_real_value(json_object_get(params, "gain/gain_db")) == 3.25);
    json_decref(saved);
    tell(&b.m, "/nsm/client/save"); // again, and clean already
    assert_string_equal(next(&b.m), "/reply ,ss /nsm/client/save saved");
    tell(&b.m, "/nsm/client/open");
    assert_string_equal(next(&b.m),
                        "/error ,sis /nsm/client/open -8 a project is open already; start another warptone");
    close_member(&b);
}

static void a_preset_that_is_a_file_is_saved_with_its_whole_path(void **state)
{
    (void)state;
    member b;
    open_member(&b, "{\"preset\": \"x\", \"params\": {}}");
    assert_int_equal(chdir(b.m.project), 0);
    strcpy(b.s.preset, "session.json"); // any file will do
    assert_opened(&b.m);
    tell(&b.m, "/nsm/client/save");
    assert_string_equal(next(&b.m), "/reply ,ss /nsm/client/save saved");
    json_t *saved = json_load_file("session.json", 0, NULL);
    assert_int_equal(json_string_value(json_object_get(saved, "preset"))[0], '/');
    json_decref(saved);
    assert_int_equal(chdir("/"), 0);
    close_member(&b);
}

static void a_saved_session_comes_back(void **state)
{
    (void)state;
    member b;
    open_member(&b, "{\"preset\": \"other\", \"bypass\": true, \"params\": {\"gain/gain_db\": -12.5, \"gone/x\": 1, "
                    "\"low_cut/frequency_hz\": \"high\", \"gain/balance\": 0.5}}");
    assert_string_equal(nsm_preset(b.n), "other");
    assert_string_equal(next(&b.m), "/nsm/client/message ,is 2 no parameter \"gone/x\"");
    assert_string_equal(next(&b.m),
                        "/nsm/client/message ,is 2 nsm: the saved value of low_cut/frequency_hz is no number");
    assert_opened(&b.m);
    assert_true(b.s.bypass && b.s.params[1].value == -12.5f && b.s.params[2].value == 0.5f);
    assert_true(b.s.params[0].value == 80);
    close_member(&b);
}

static void a_damaged_state_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{\"preset\": 3, \"params\": {}}", "want a text \"preset\" and an object \"params\""},
        {"{\"preset\": \"x\"}", "want a text \"preset\" and an object \"params\""},
        {"[]", "want a text \"preset\" and an object \"params\""},
        {"{\n\"preset\": \"x", "session.json:2: "},
        {"", "session.json:1: "},
    };
    manager m;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        open_manager(&m, NULL);
        put_state(&m, cases[k].text);
        nsm *n = NULL;
        assert_int_equal(nsm_join(m.url, "warptone", WAIT_S, &n), WT_ERR_FORMAT);
        assert_null(n);
        assert_non_null(strstr(wt_last_error(), cases[k].sentence));
        next(&m); // the announce
        const char *told = next(&m);
        assert_begins(told, "/error ,sis /nsm/client/open -1 ");
        assert_non_null(strstr(told, cases[k].sentence));
        close_manager(&m);
    }
}

static void a_session_that_cannot_start_is_told(void **state)
{
    (void)state;
    manager m;
    open_manager(&m, NULL);
    nsm *n = join(&m);
    (void)wt_fail(WT_ERR_STATE, "no JACK server runs");
    nsm_leave(n);
    assert_string_equal(next(&m), "/error ,sis /nsm/client/open -1 no JACK server runs");
    close_manager(&m);
}

static void a_state_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    member b;
    open_member(&b, NULL);
    assert_opened(&b.m);
    FILE *file = fopen(b.m.project, "w"); // a file where the folder should be
    fclose(file);
    tell(&b.m, "/nsm/client/save");
    assert_begins(next(&b.m), "/error ,sis /nsm/client/save -1 ");
    close_member(&b);
}

static void strangers_are_not_heard(void **state)
{
    (void)state;
    member b;
    open_member(&b, NULL);
    assert_opened(&b.m);
    const struct sockaddr_in client = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)atoi(lo_address_get_port(b.m.client))),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char message[24] = "/nsm/client/save\0\0\0\0,";
    int fd = socket(AF_INET, SOCK_DGRAM, 0); // with a port that is not the manager's
    assert_int_equal(sendto(fd, message, sizeof message, 0, (const struct sockaddr *)&client, sizeof client), 24);
    close(fd);
    tell(&b.m, "/nsm/client/open");
    assert_begins(next(&b.m), "/error ,sis /nsm/client/open -8 "); // and nothing before it
    assert_int_equal(access(b.m.project, F_OK), -1);
    close_member(&b);
}

static void managers_that_refuse_or_are_not_there_are_told(void **state)
{
    (void)state;
    manager m;
    nsm *n = NULL;
    open_manager(&m, "your API is too new");
    assert_fails(nsm_join(m.url, "warptone", WAIT_S, &n), WT_ERR_REJECTED,
                 "nsm: the manager refuses: your API is too new");
    assert_null(n);
    close_manager(&m);
    assert_fails(nsm_join("osc.udp://127.0.0.1:9/", "warptone", 0.1, &n), WT_ERR_TIMEOUT,
                 "nsm: no session manager answers at osc.udp://127.0.0.1:9/");
    static const char *const urls[] = {"", "nonsense", "osc.tcp://127.0.0.1:99/", "osc.udp://127.0.0.1/"};
    for (size_t k = 0; k < sizeof urls / sizeof *urls; k++) {
        assert_int_equal(nsm_join(urls[k], "warptone", 0.1, &n), WT_ERR_BAD_ARG);
        assert_non_null(strstr(wt_last_error(), "want osc.udp://HOST:PORT/"));
        assert_null(n);
    }
}

// ---- the program, as a manager starts it

static void need_program(char program[4096])
{
    assert_true(find_program(program, 4096));
    if (!access(program, X_OK)) return;
    print_message("skipped: %s is not built\n", program);
    skip();
}

static pid_t start_program(const char *program, const manager *m, const jack_server *server)
{
    pid_t pid = fork();
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NSM_URL", m->url, 1);
    setenv("JACK_DEFAULT_SERVER", server->name, 1);
    setenv("XDG_RUNTIME_DIR", m->folder, 1);
    setenv("WARPTONE_BACKEND", "cpu", 1);
    execl(program, "warptone", NULL);
    _exit(127);
}

static void set_ceiling(const manager *m, int db)
{
    char line[64];
    const int length = snprintf(line, sizeof line, "param_set limiter ceiling_db %d\n", db);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/warptone.nABC.sock", m->folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = WAIT_S}, sizeof(struct timeval));
    assert_int_equal(send(fd, line, (size_t)length, MSG_NOSIGNAL), length);
    char answer[7];
    assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
    assert_memory_equal(answer, "resp 0\n", sizeof answer);
    close(fd);
}

/// What the project's state says of the preset and of its limiter.
static void check_saved(const manager *m, double ceiling_db)
{
    char path[128];
    snprintf(path, sizeof path, "%s/session.json", m->project);
    json_t *saved = json_load_file(path, 0, NULL), *params = json_object_get(saved, "params");
    assert_string_equal(json_string_value(json_object_get(saved, "preset")), "vocal-live");
    assert_true(json_number_value(json_object_get(params, "limiter/ceiling_db")) == ceiling_db);
    json_decref(saved);
}

/// Wait for the end of a program, for as long as for a message.
static int end_of(pid_t pid)
{
    int status;
    for (int k = 0; k < WAIT_S * 100; k++) {
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    kill(pid, SIGKILL);
    fail_msg("the program does not end");
    return -1;
}

static void the_program_is_a_client(void **state)
{
    (void)state;
    manager m;
    jack_server server = {.pid = 0};
    char announced[128], program[4096];
    need_program(program);
    jack_server_start(&server, 1024); // or skips
    open_manager(&m, NULL);
    pid_t pid = start_program(program, &m, &server);
    snprintf(announced, sizeof announced,
             "/nsm/server/announce ,sssiii Warptone :dirty:progress:message: warptone 1 1 %d", (int)pid);
    assert_string_equal(next(&m), announced);
    assert_string_equal(next(&m), "/nsm/client/progress ,f 0.5");
    assert_opened(&m);
    set_ceiling(&m, -2);
    assert_string_equal(next(&m), "/nsm/client/is_dirty ,");
    tell(&m, "/nsm/client/save");
    assert_string_equal(next(&m), "/nsm/client/is_clean ,");
    assert_string_equal(next(&m), "/reply ,ss /nsm/client/save saved");
    check_saved(&m, -2);
    set_ceiling(&m, -3); // which nobody asks to save
    assert_string_equal(next(&m), "/nsm/client/is_dirty ,");
    assert_int_equal(kill(pid, SIGTERM), 0); // as the manager ends its clients
    const int status = end_of(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_saved(&m, -3);
    close_manager(&m);
    jack_server_stop(&server);
}

int main(void)
{
    char presets[4096];
    if (realpath("presets", presets)) setenv("WARPTONE_PRESETS", presets, 0); // whole: a test leaves this folder
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_opened_changed_and_saved),
        cmocka_unit_test(a_preset_that_is_a_file_is_saved_with_its_whole_path),
        cmocka_unit_test(a_saved_session_comes_back),
        cmocka_unit_test(a_damaged_state_is_told),
        cmocka_unit_test(a_session_that_cannot_start_is_told),
        cmocka_unit_test(a_state_that_cannot_be_written_is_told),
        cmocka_unit_test(strangers_are_not_heard),
        cmocka_unit_test(the_program_is_a_client),
        cmocka_unit_test(managers_that_refuse_or_are_not_there_are_told),
    };
    return cmocka_run_group_tests_name("nsm", tests, NULL, NULL);
}

#else

int main(void)
{
    printf("nsm: skipped, the build has no liblo\n");
    return 0;
}

#endif
