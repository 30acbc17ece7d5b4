// OSC over real sockets on this machine, on a session without audio.
#include "control_fixture.h"

#ifdef WT_HAVE_LIBLO
#    include "osc_text.h"

typedef struct heard {
    char text[256]; ///< address, types and arguments of the last message
    int n;
} heard;

static int remember(const char *path, const char *types, lo_arg **argv, int argc, lo_message message, void *user)
{
    (void)message;
    heard *h = user;
    osc_text_of(path, types, argv, argc, h->text, sizeof h->text);
    h->n++;
    return 0;
}

typedef struct osc_peer {
    fixture f;
    lo_server server; ///< ours, which the answers come to
    lo_address to;
    heard heard;
} osc_peer;

static void open_osc(osc_peer *p)
{
    char port[16];
    p->heard = (heard){.n = 0};
    open_control(&p->f, &(control_config){.osc_port = -1});
    assert_true(control_osc_port(p->f.control) > 0);
    snprintf(port, sizeof port, "%d", control_osc_port(p->f.control));
    p->to = lo_address_new("127.0.0.1", port);
    p->server = lo_server_new(NULL, NULL);
    assert_non_null(p->server);
    lo_server_add_method(p->server, NULL, NULL, remember, &p->heard);
}

static void close_osc(osc_peer *p)
{
    lo_server_free(p->server);
    lo_address_free(p->to);
    close_control(&p->f);
}

static const char *hear(osc_peer *p)
{
    assert_true(lo_server_recv_noblock(p->server, WAIT_MS) > 0);
    return p->heard.text;
}

#    define tell(p, path, ...) assert_true(lo_send_from((p)->to, (p)->server, LO_TT_IMMEDIATE, path, __VA_ARGS__) > 0)

static void osc_turns_and_asks(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    tell(&p, "/warptone/gain/gain_db", "f", 2.5);
    tell(&p, "/warptone/gain/gain_db", "");
    assert_string_equal(hear(&p), "/warptone/gain/gain_db ,f 2.5");
    tell(&p, "/warptone/gain/gain_db", "i", -4); // any number
    tell(&p, "/warptone/gain/gain_db", "");
    assert_string_equal(hear(&p), "/warptone/gain/gain_db ,f -4");
    tell(&p, "/warptone/gain/bypass", "T");
    tell(&p, "/warptone/gain/bypass", "");
    assert_string_equal(hear(&p), "/warptone/gain/bypass ,f 1");
    tell(&p, "/warptone/gain/bypass", "F");
    tell(&p, "/warptone/bypass", "T");
    tell(&p, "/warptone/bypass", "");
    assert_string_equal(hear(&p), "/warptone/bypass ,f 1");
    tell(&p, "/warptone/preset", "s", "other");
    tell(&p, "/warptone/preset", "");
    assert_string_equal(hear(&p), "/warptone/preset ,s other");
    tell(&p, "/warptone/list", "");
    assert_string_equal(hear(&p), "/warptone/list/answer ,sffffsi /warptone/low_cut/frequency_hz 80 10 20000 100 Hz 1");
    assert_string_equal(hear(&p), "/warptone/list/answer ,sffffsi /warptone/gain/gain_db -4 -60 24 0 dB 0");
    assert_string_equal(hear(&p), "/warptone/list/answer ,sffffsi /warptone/gain/balance 0 -1 1 0  0");
    assert_string_equal(hear(&p), "/warptone/list/answer ,sffffsi /warptone/gain/bypass 0 0 1 0  0");
    assert_string_equal(hear(&p), "/warptone/list/answer ,i 4");
    tell(&p, "/warptone/levels", "");
    assert_string_equal(hear(&p), "/warptone/levels/answer ,sffff in 1 0.5 0 0");
    assert_string_equal(hear(&p), "/warptone/levels/answer ,sffff out 0.5 0.25 0.5 0.25");
    tell(&p, "/warptone/stats", "");
    assert_memory_equal(hear(&p), "/warptone/stats/answer ,s {\"seconds\":1.5,", 41);
    tell(&p, "/warptone/save", "s", "/tmp/y.yaml");
    assert_string_equal(hear(&p), "/warptone/save/answer ,");
    pthread_mutex_lock(&p.f.session.lock);
    assert_string_equal(p.f.session.saved, "/tmp/y.yaml");
    pthread_mutex_unlock(&p.f.session.lock);
    tell(&p, "/warptone/gain/*", "f", 0.5); // a pattern stands for all that match
    tell(&p, "/warptone/gain/*", "");
    assert_string_equal(hear(&p), "/warptone/gain/gain_db ,f 0.5");
    assert_string_equal(hear(&p), "/warptone/gain/balance ,f 0.5");
    close_osc(&p);
}

static void osc_says_what_is_wrong(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    tell(&p, "/warptone/gain/loudness", "f", 1.0);
    assert_string_equal(hear(&p), "/warptone/error ,ss /warptone/gain/loudness no parameter \"gain/loudness\"");
    tell(&p, "/warptone/gain/gain_db", "s", "loud");
    assert_string_equal(hear(&p), "/warptone/error ,ss /warptone/gain/gain_db gain/gain_db: want a number");
    tell(&p, "/else/where", "");
    assert_string_equal(hear(&p), "/warptone/error ,ss /else/where want an address below /warptone/");
    tell(&p, "/warptone/preset", "s", "broken");
    assert_memory_equal(hear(&p), "/warptone/error ,ss /warptone/preset broken.yaml:3:", 50);
    tell(&p, "/warptone/*/*/*/*", "");
    assert_string_equal(hear(&p), "/warptone/error ,ss /warptone/*/*/*/* more than 3 * in an address");
    tell(&p, "/warptone/x*", "");
    assert_string_equal(hear(&p), "/warptone/error ,ss /warptone/x* no parameter matches");
    close_osc(&p);
}

static void osc_bundles_are_carried_out_in_order(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    lo_bundle bundle = lo_bundle_new(LO_TT_IMMEDIATE), inner = lo_bundle_new(LO_TT_IMMEDIATE);
    lo_message set = lo_message_new(), query = lo_message_new();
    lo_message_add_float(set, 7);
    lo_bundle_add_message(inner, "/warptone/gain/gain_db", set);
    lo_bundle_add_bundle(bundle, inner);
    lo_bundle_add_message(bundle, "/warptone/gain/gain_db", query);
    assert_true(lo_send_bundle_from(p.to, p.server, bundle) > 0);
    assert_string_equal(hear(&p), "/warptone/gain/gain_db ,f 7");
    lo_bundle_free_recursive(bundle);
    close_osc(&p);
}

static void osc_subscribers_are_told_until_their_time_is_over(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    tell(&p, "/warptone/subscribe", "");
    assert_string_equal(hear(&p), "/warptone/subscribe/answer ,f 60");
    assert_ok(live_session_set(&p.f.session, "gain/balance", -1));
    assert_string_equal(hear(&p), "/warptone/gain/balance ,f -1");
    assert_ok(live_session_load(&p.f.session, "third"));
    assert_string_equal(hear(&p), "/warptone/preset ,s third");
    tell(&p, "/warptone/unsubscribe", "");
    assert_string_equal(hear(&p), "/warptone/unsubscribe/answer ,");
    assert_ok(live_session_set(&p.f.session, "gain/balance", 1));
    tell(&p, "/warptone/subscribe", "f", 0.01);
    assert_string_equal(hear(&p), "/warptone/subscribe/answer ,f 0.01"); // nothing of what came between
    usleep(20000);
    assert_ok(live_session_set(&p.f.session, "gain/balance", 0));
    tell(&p, "/warptone/bypass", "");
    assert_string_equal(hear(&p), "/warptone/bypass ,f 0"); // the time was over before
    tell(&p, "/warptone/subscribe", "f", 0.0);
    assert_string_equal(hear(&p), "/warptone/error ,ss /warptone/subscribe subscribe: want seconds in 0.01..86400");
    close_osc(&p);
}

// With a forged sender an answer would come in at another session, whose answer would come in here, and so on.
static void osc_answers_no_answer(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    tell(&p, "/warptone/error", "ss", "/warptone/x", "no parameter");
    tell(&p, "/warptone/stats/answer", "s", "{}");
    tell(&p, "/warptone/save/answer", "");
    tell(&p, "/warptone/list/answer", "i", 4);
    tell(&p, "/warptone/gain/gain_db", "f", 3.0);
    tell(&p, "/warptone/bypass", "");
    assert_string_equal(hear(&p), "/warptone/bypass ,f 0"); // and nothing before it
    pthread_mutex_lock(&p.f.session.lock);
    assert_string_equal(p.f.session.saved, "");
    pthread_mutex_unlock(&p.f.session.lock);
    close_osc(&p);
}

static void osc_survives_any_bytes(void **state)
{
    (void)state;
    osc_peer p;
    open_osc(&p);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)control_osc_port(p.f.control)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint64_t seed = 1;
    for (int k = 0; k < 2000; k++) {
        unsigned char bytes[64] = "#bundle\0\0\0\0\0\0\0\0\1\0\0\0\x10/warptone/gain\0,f";
        for (int i = 0; i < 8; i++) bytes[(int)(32 + 32 * noise(&seed))] = (unsigned char)(128 + 128 * noise(&seed));
        if (k % 2) memcpy(bytes, "/warptone/g\0,ff\0", 16);
        size_t size = (size_t)(32 + 32 * noise(&seed));
        (void)!sendto(fd, bytes, size, 0, (struct sockaddr *)&address, sizeof address);
    }
    for (int k = 0; k < 100; k++) { // a datagram that finds no room is lost, so ask more than once
        tell(&p, "/warptone/bypass", "");
        if (lo_server_recv_noblock(p.server, 1000) > 0) break;
        assert_true(k < 99);
    }
    assert_string_equal(p.heard.text, "/warptone/bypass ,f 0");
    close(fd);
    close_osc(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(osc_turns_and_asks),
        cmocka_unit_test(osc_says_what_is_wrong),
        cmocka_unit_test(osc_bundles_are_carried_out_in_order),
        cmocka_unit_test(osc_subscribers_are_told_until_their_time_is_over),
        cmocka_unit_test(osc_answers_no_answer),
        cmocka_unit_test(osc_survives_any_bytes),
    };
    return cmocka_run_group_tests_name("control by OSC", tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: built without liblo\n");
    return 0;
}
#endif
