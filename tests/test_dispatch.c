#include "support/dispatch_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static void a_launch_lives_from_queued_to_completed(void **state)
{
    rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 1});
    wt_dispatch_ticket gate, note;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0], .timed = true}, &gate));
    assert_ok(submit_note(&r, 7, (wt_dispatch_request){.lane = r.lanes[0], .priority = 3, .task = "song"}, &note));
    assert_int_equal(info_of_ticket(&r, gate).state, WT_DISPATCH_LAUNCHED);
    wt_dispatch_info queued = info_of_ticket(&r, note);
    assert_int_equal(queued.state, WT_DISPATCH_QUEUED);
    assert_int_equal(queued.launched_ns, 0);
    assert_string_equal(queued.name, "note");
    assert_string_equal(queued.task, "song");
    assert_int_equal(wt_dispatch_wait(r.dispatch, note, 2000), WT_ERR_TIMEOUT);
    await_gate(&r);
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    open_gate(&r);
    assert_ok(wt_dispatch_wait(r.dispatch, note, -1));
    assert_ok(wt_dispatch_wait(r.dispatch, note, -1)); // twice is the same answer
    wt_dispatch_info first = info_of_ticket(&r, gate), second = info_of_ticket(&r, note);
    assert_int_equal(first.state, WT_DISPATCH_COMPLETED);
    assert_int_equal(second.state, WT_DISPATCH_COMPLETED);
    assert_true(first.device_us >= 5000 && first.device_us < 5e6); // the gate was shut for 5 ms at least
    assert_true(second.device_us == 0);                            // not asked for
    assert_true(second.submitted_ns <= second.launched_ns && second.launched_ns <= second.ended_ns);
    assert_log(&r, (int[]){7}, 1);
    wt_dispatch_stats stats;
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_launched, 2);
    assert_int_equal(stats.n_completed, 2);
    assert_int_equal(stats.n_in_flight + stats.n_queued, 0);
    rig_free(&r);
}

static void limits_hold_and_the_queue_fills(void **state)
{
    rig r = rig_on(device_of(state), &(wt_dispatch_config){.max_queued = 3, .max_in_flight = 5},
                   &(wt_dispatch_stream_config){.max_in_flight = 4});
    wt_dispatch_ticket gate, last;
    wt_dispatch_stats stats;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, &gate));
    for (int k = 0; k < 6; k++) assert_ok(submit_note(&r, k, (wt_dispatch_request){.lane = r.lanes[0]}, &last));
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_in_flight, 4);
    assert_int_equal(stats.n_queued, 3);
    assert_fails(submit_note(&r, 6, (wt_dispatch_request){.lane = r.lanes[0]}, NULL), WT_ERR_FULL,
                 "dispatch work: note for task \"test\": 3 launches are queued already");
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_log(&r, (int[]){0, 1, 2, 3, 4, 5}, 6);
    assert_ok(wt_dispatch_wait(r.dispatch, last, 0));
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_refused, 1);
    rig_free(&r);
}

static void higher_priority_leaves_the_queue_first(void **state)
{
    rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 1});
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    const int priorities[] = {0, 1, 0, 2, 1};
    for (int k = 0; k < 5; k++)
        assert_ok(submit_note(&r, k, (wt_dispatch_request){.lane = r.lanes[0], .priority = priorities[k]}, NULL));
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_log(&r, (int[]){3, 1, 4, 0, 2}, 5);
    rig_free(&r);
}

static void priority_counts_between_streams_too(void **state)
{
    rig r = rig_on(device_of(state), &(wt_dispatch_config){.max_in_flight = 1}, NULL);
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[1], .priority = 1}, NULL));
    assert_ok(submit_note(&r, 3, (wt_dispatch_request){.lane = r.lanes[1]}, NULL));
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_log(&r, (int[]){2, 1, 3}, 3);
    rig_free(&r);
}

static void nothing_is_dispatched_into_a_recording(void **state)
{
    rig r = rig_on(device_of(state), NULL, NULL);
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(r.streams[0], &graph));
    assert_fails(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL), WT_ERR_STATE,
                 "dispatch work: note for task \"test\": a graph is being recorded on stream 0");
    wt_graph_destroy(graph);
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(wt_dispatch_drain(r.dispatch));
    rig_free(&r);
}

static void what_is_queued_can_be_cancelled_and_takes_others_along(void **state)
{
    rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 1});
    wt_dispatch_ticket gate, first, second, third;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, &gate));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, &first));
    assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[0]}, &second));
    assert_ok(submit_note(&r, 3, (wt_dispatch_request){.lane = r.lanes[1], .after = &first, .n_after = 1}, &third));
    assert_fails(wt_dispatch_cancel(r.dispatch, gate), WT_ERR_STATE,
                 "dispatch work: gate is launched and cannot be cancelled");
    assert_ok(wt_dispatch_cancel(r.dispatch, first));
    assert_int_equal(wt_dispatch_cancel(r.dispatch, first), WT_ERR_STATE);
    open_gate(&r);
    assert_int_equal(wt_dispatch_wait(r.dispatch, first, -1), WT_ERR_CANCELLED);
    assert_int_equal(wt_dispatch_wait(r.dispatch, third, -1), WT_ERR_CANCELLED);
    assert_ok(wt_dispatch_wait(r.dispatch, second, -1));
    assert_log(&r, (int[]){2}, 1);
    rig_free(&r);
}

// A ticket is forgotten when enough others have ended; not so what became of it, for those that wait for it.
static void a_cancelled_launch_takes_others_along_however_late_they_look(void **state)
{
    const wt_dispatch_config config = {.no_thread = true, .history = 1, .max_queued = 2, .max_in_flight = 4};
    rig r = rig_on(device_of(state), &config, &(wt_dispatch_stream_config){.max_in_flight = 1});
    wt_dispatch_ticket first, second;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, &first));
    assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[0], .after = &first, .n_after = 1}, &second));
    assert_ok(wt_dispatch_cancel(r.dispatch, first));
    for (int k = 0; k < 20; k++) { // launched at once: nothing looks at the queue
        assert_ok(submit_note(&r, 3, (wt_dispatch_request){.lane = r.lanes[1]}, NULL));
        assert_ok(wt_stream_synchronize(r.streams[1]));
    }
    open_gate(&r);
    assert_int_equal(wt_dispatch_wait(r.dispatch, second, -1), WT_ERR_CANCELLED);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_int_equal(wt_dispatch_wait(r.dispatch, first, -1), WT_ERR_NOT_FOUND); // else this has not tried it
    assert_int_equal(atomic_load(log_of(&r)), 20);
    rig_free(&r);
}

static void a_launch_waits_for_launches_of_another_stream(void **state)
{
    rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 2});
    wt_dispatch_ticket gate, behind, last, other;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, &gate));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[0]}, &behind)); // queued
    assert_ok(submit_note(&r, 3, (wt_dispatch_request){.lane = r.lanes[1], .after = &behind, .n_after = 1}, &last));
    assert_ok(submit_note(&r, 4, (wt_dispatch_request){.lane = r.lanes[1]}, &other));
    assert_ok(wt_dispatch_wait(r.dispatch, other, -1)); // it overtakes
    open_gate(&r);
    assert_ok(wt_dispatch_wait(r.dispatch, last, -1));
    assert_log(&r, (int[]){4, 1, 2, 3}, 4);
    rig_free(&r);
}

static void an_event_holds_a_launch(void **state)
{
    rig r = rig_on(device_of(state), NULL, NULL);
    wt_event *event = NULL;
    assert_ok(wt_event_create(r.device, &event));
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(wt_event_record(event, r.streams[0]));
    assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[1], .wait = event}, NULL));
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_log(&r, (int[]){1, 2}, 2);
    wt_event_destroy(event);
    rig_free(&r);
}

static atomic_int n_barks;
static void bark(void *user, wt_dispatch_ticket ticket, const wt_dispatch_info *info)
{
    (void)ticket;
    if (!strcmp(info->name, user) && info->overdue) atomic_fetch_add(&n_barks, 1);
}

static void the_watchdog_reports_what_runs_long_once(void **state)
{
    atomic_store(&n_barks, 0);
    rig r = rig_on(device_of(state), &(wt_dispatch_config){.on_watchdog = bark, .user = "gate"}, NULL);
    wt_dispatch_ticket gate, note;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0], .watchdog_us = 5000}, &gate));
    // behind the gate: its own time has not begun, whatever the gate takes
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0], .watchdog_us = 1000000}, &note));
    for (int k = 0; k < 2000 && !atomic_load(&n_barks); k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    assert_int_equal(atomic_load(&n_barks), 1);
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_true(info_of_ticket(&r, gate).overdue);
    assert_false(info_of_ticket(&r, note).overdue);
    assert_int_equal(info_of_ticket(&r, gate).state, WT_DISPATCH_COMPLETED);
    rig_free(&r);
}

static void without_a_thread_calls_move_the_queue(void **state)
{
    rig r = rig_on(device_of(state), &(wt_dispatch_config){.no_thread = true},
                   &(wt_dispatch_stream_config){.max_in_flight = 1});
    wt_dispatch_ticket note;
    wt_dispatch_stats stats;
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, &note));
    open_gate(&r);
    assert_ok(wt_stream_synchronize(r.streams[0]));
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_queued, 1);
    assert_ok(wt_dispatch_poll(r.dispatch));
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_queued, 0);
    assert_ok(wt_dispatch_wait(r.dispatch, note, -1));
    rig_free(&r);
}

static void misuse_is_told(void **state)
{
    rig r = rig_on(device_of(state), &(wt_dispatch_config){.history = 1, .max_queued = 1, .max_in_flight = 1}, NULL);
    wt_dispatch_ticket ticket, foreign, none = {0};
    wt_dispatch_request empty = {.lane = r.lanes[0], .task = "x"};
    assert_fails(wt_dispatch_submit(r.dispatch, &empty, &ticket), WT_ERR_BAD_ARG,
                 "dispatch work: function for task \"x\": want one of kernel, function and graph");
    assert_int_equal(ticket.generation, 0);
    assert_fails(submit_note(&r, 1, (wt_dispatch_request){.lane = 9}, NULL), WT_ERR_BAD_ARG,
                 "dispatch work: note for task \"test\": no stream 9");
    assert_int_equal(submit_note(&r, 1, (wt_dispatch_request){.watchdog_us = -1}, NULL), WT_ERR_BAD_ARG);
    assert_int_equal(submit_note(&r, 1, (wt_dispatch_request){.n_after = 5}, NULL), WT_ERR_BAD_ARG);
    assert_int_equal(submit_note(&r, 1, (wt_dispatch_request){.after = &none, .n_after = 1}, NULL), WT_ERR_BAD_ARG);
    assert_fails(wt_dispatch_wait(r.dispatch, none, -1), WT_ERR_BAD_ARG,
                 "dispatch work: this ticket is not one of its own");
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, &ticket));
    assert_ok(wt_dispatch_wait(r.dispatch, ticket, -1));
    foreign = ticket;
    foreign.dispatch++;
    assert_int_equal(wt_dispatch_wait(r.dispatch, foreign, -1), WT_ERR_BAD_ARG);
    foreign = ticket;
    foreign.generation += 5;
    assert_int_equal(wt_dispatch_cancel(r.dispatch, foreign), WT_ERR_BAD_ARG);
    for (int k = 0; k < 4; k++) {
        assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[k % 2]}, NULL));
        assert_ok(wt_dispatch_drain(r.dispatch));
    }
    assert_int_equal(wt_dispatch_wait(r.dispatch, ticket, -1), WT_ERR_NOT_FOUND);
    assert_int_equal(wt_dispatch_remove_stream(r.dispatch, 5), WT_ERR_BAD_ARG);
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_int_equal(wt_dispatch_remove_stream(r.dispatch, r.lanes[0]), WT_ERR_STATE);
    open_gate(&r);
    assert_ok(wt_dispatch_drain(r.dispatch));
    assert_ok(wt_dispatch_remove_stream(r.dispatch, r.lanes[0]));
    assert_int_equal(wt_dispatch_remove_stream(r.dispatch, r.lanes[0]), WT_ERR_BAD_ARG);
    wt_dispatch *dispatch = NULL;
    assert_int_equal(wt_dispatch_create(r.device, &(wt_dispatch_config){.history = -1}, &dispatch), WT_ERR_BAD_ARG);
    assert_null(dispatch);
    wt_dispatch_destroy(NULL);
    rig_free(&r);
}

static void *open_later(void *user)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    open_gate(user);
    return NULL;
}

static void destroying_with_work_in_flight_waits_and_cancels(void **state)
{
    rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 2});
    assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    for (int k = 1; k <= 9; k++) assert_ok(submit_note(&r, k, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    pthread_t opener;
    assert_int_equal(pthread_create(&opener, NULL, open_later, &r), 0);
    wt_dispatch_destroy(r.dispatch);
    pthread_join(opener, NULL);
    r.dispatch = NULL;
    assert_log(&r, (int[]){1}, 1); // what was in flight has run, the rest was cancelled
    rig_free(&r);
}

static void a_graph_is_dispatched_like_a_kernel(void **state)
{
    rig r = rig_on(device_of(state), NULL, NULL);
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(r.streams[0], &graph));
    uintptr_t address = wt_buffer_address(r.memory);
    int tag = 5;
    note_args a = {log_of(&r), tag};
    const wt_arg args[] = {WT_ARG(address), WT_ARG(tag)};
    for (int k = 0; k < 3; k++)
        assert_ok(r.note ? wt_kernel_launch(r.note, r.streams[0], &(wt_launch){0}, args, 2)
                         : wt_stream_run(r.streams[0], note_item, &a, sizeof a, 1));
    assert_ok(wt_graph_end(graph));
    wt_dispatch_ticket ticket;
    const wt_dispatch_request bad = {.lane = r.lanes[1], .graph = graph, .args = args, .n_args = 2, .task = "test"};
    assert_fails(wt_dispatch_submit(r.dispatch, &bad, &ticket), WT_ERR_BAD_ARG,
                 "dispatch work: graph for task \"test\": 2 arguments, a graph takes none");
    assert_ok(wt_dispatch_submit(r.dispatch, &(wt_dispatch_request){.lane = r.lanes[1], .graph = graph, .timed = true},
                                 &ticket));
    assert_ok(wt_dispatch_wait(r.dispatch, ticket, -1));
    assert_string_equal(info_of_ticket(&r, ticket).name, "graph");
    assert_true(info_of_ticket(&r, ticket).device_us > 0);
    assert_log(&r, (int[]){5, 5, 5}, 3);
    wt_graph_destroy(graph);
    rig_free(&r);
}

// ---- the CPU alone

enum { BIG_BYTES = 4096, N_BIG = 40 }; // more than twice what a stream holds

static void add_one_item(const void *args, int item)
{
    (void)item;
    atomic_fetch_add(*(atomic_int *const *)args, 1);
}

/// A launch, or a graph of them, with more arguments than a full stream takes.
static wt_status submit_big(const rig *r, wt_graph *graph, wt_dispatch_ticket *ticket)
{
    unsigned char bytes[BIG_BYTES] = {0};
    memcpy(bytes, &(atomic_int *){log_of(r)}, sizeof(atomic_int *));
    const wt_arg big = {bytes, sizeof bytes};
    const wt_dispatch_request one = {.function = add_one_item, .n_items = 1, .args = &big, .n_args = 1, .timed = true},
                              all = {.graph = graph, .timed = true};
    return wt_dispatch_submit(r->dispatch, graph ? &all : &one, ticket);
}

static wt_graph *big_graph(const rig *r)
{
    unsigned char bytes[BIG_BYTES] = {0};
    memcpy(bytes, &(atomic_int *){log_of(r)}, sizeof(atomic_int *));
    wt_graph *graph = NULL;
    assert_ok(wt_graph_begin(r->streams[1], &graph));
    for (int k = 0; k < N_BIG; k++) assert_ok(wt_stream_run(r->streams[1], add_one_item, bytes, sizeof bytes, 1));
    assert_ok(wt_graph_end(graph));
    return graph;
}

// A call that waited in a full stream had the dispatch's mutex, and nobody could ask, or launch elsewhere.
static void a_full_stream_holds_nobody(void **state)
{
    for (int of_graph = 0; of_graph < 2; of_graph++) {
        rig r = rig_on(device_of(state), NULL, NULL);
        wt_graph *graph = of_graph ? big_graph(&r) : NULL;
        wt_dispatch_ticket gate, other, big[N_BIG];
        assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, &gate));
        for (int k = 0; k < N_BIG; k++) assert_ok(submit_big(&r, graph, &big[k]));
        assert_ok(submit_note(&r, 0, (wt_dispatch_request){.lane = r.lanes[1]}, &other));
        assert_ok(wt_dispatch_wait(r.dispatch, other, -1));
        assert_int_equal(wt_dispatch_wait(r.dispatch, big[0], 1000), WT_ERR_TIMEOUT);
        assert_int_equal(info_of_ticket(&r, gate).state, WT_DISPATCH_LAUNCHED); // else it gave up, after 5 s
        open_gate(&r);
        assert_ok(wt_dispatch_drain(r.dispatch));
        assert_int_equal(atomic_load(log_of(&r)), 1 + N_BIG * (of_graph ? N_BIG : 1));
        for (int k = 0; k < N_BIG; k++) assert_true(info_of_ticket(&r, big[k]).device_us > 0);
        wt_graph_destroy(graph);
        rig_free(&r);
    }
}

// ---- the GPU alone

static void a_kernel_too_large_is_refused_with_its_name(void **state)
{
    rig r = rig_on(device_of(state), NULL, NULL);
    wt_dispatch_request big = {.lane = r.lanes[0], .launch = {.block = {4096}}};
    assert_int_equal(submit_note(&r, 1, big, NULL), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "dispatch work: note for task \"test\": launch of note: blocks of 4096"));
    assert_ok(submit_note(&r, 1, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
    assert_ok(wt_dispatch_drain(r.dispatch));
    rig_free(&r);
}

// ---- memory

static wt_status create_one(void *user)
{
    void **at = user;
    return wt_dispatch_create(at[0], &(wt_dispatch_config){.no_thread = true}, (wt_dispatch **)&at[1]);
}

static void destroy_one(void *user) { wt_dispatch_destroy(((void **)user)[1]); }

static wt_status add_one(void *user)
{
    void **at = user;
    int lane;
    return wt_dispatch_add_stream(at[1], at[2], NULL, &lane);
}

static void keep(void *user) { (void)user; }

static void every_failing_allocation_is_told(void **state)
{
    void *at[3] = {device_of(state)};
    assert_true(assert_survives_failing_alloc(create_one, destroy_one, at) >= 4);
    assert_ok(create_one(at));
    assert_ok(wt_stream_create(at[0], NULL, (wt_stream **)&at[2]));
    assert_true(assert_survives_failing_alloc(add_one, keep, at) >= 65); // the ring and 2 * 32 events
    destroy_one(at);
    wt_stream_destroy(at[2]);
}

static void ten_thousand_of_them_leave_nothing(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = NULL;
    assert_ok(wt_stream_create(device, NULL, &stream));
    failing_alloc_start(-1);
    for (int k = 0; k < 10000; k++) {
        wt_dispatch *dispatch = NULL;
        int lane;
        assert_ok(wt_dispatch_create(
            device, &(wt_dispatch_config){.no_thread = true, .max_queued = 1, .max_in_flight = 4, .history = 1},
            &dispatch));
        assert_ok(wt_dispatch_add_stream(dispatch, stream, &(wt_dispatch_stream_config){.max_in_flight = 2}, &lane));
        wt_dispatch_destroy(dispatch);
    }
    failing_alloc_counts counts = failing_alloc_stop();
    wt_stream_destroy(stream);
    assert_int_equal(counts.n_live, 0);
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(a_launch_lives_from_queued_to_completed), cmocka_unit_test(limits_hold_and_the_queue_fills),      \
        cmocka_unit_test(higher_priority_leaves_the_queue_first),                                                      \
        cmocka_unit_test(priority_counts_between_streams_too),                                                         \
        cmocka_unit_test(nothing_is_dispatched_into_a_recording),                                                      \
        cmocka_unit_test(what_is_queued_can_be_cancelled_and_takes_others_along),                                      \
        cmocka_unit_test(a_cancelled_launch_takes_others_along_however_late_they_look),                                \
        cmocka_unit_test(a_launch_waits_for_launches_of_another_stream), cmocka_unit_test(an_event_holds_a_launch),    \
        cmocka_unit_test(the_watchdog_reports_what_runs_long_once),                                                    \
        cmocka_unit_test(without_a_thread_calls_move_the_queue), cmocka_unit_test(misuse_is_told),                     \
        cmocka_unit_test(destroying_with_work_in_flight_waits_and_cancels),                                            \
        cmocka_unit_test(a_graph_is_dispatched_like_a_kernel)

int main(void)
{
    const struct CMUnitTest cpu[] = {BOTH_BACKENDS, cmocka_unit_test(a_full_stream_holds_nobody),
                                     cmocka_unit_test(every_failing_allocation_is_told),
                                     cmocka_unit_test(ten_thousand_of_them_leave_nothing)};
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS, cmocka_unit_test(a_kernel_too_large_is_refused_with_its_name)};
    return cmocka_run_group_tests_name("dispatch: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("dispatch: CUDA", cuda, open_cuda, close_device);
}
