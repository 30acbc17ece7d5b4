// What bench_roundtrip says of slow blocks: whose time it was, from what the engine and the device told of them.
#include "support/testing.h"

#include "../bench/support/late_blocks.c"
#include "../dsp/live/live_internal.h"

#include <string.h>

// A block that began at 1 s, whose doorbell was rung 500 ns later: the device saw it 1 us later, took 4 us, and the
// answer was found after 1.5 more.
static slow_block even_block(void)
{
    return (slow_block){.start_ns = 1000000000,
                        .took_ns = 7500,
                        .times = {.rung_ns = 1000000500,
                                  .heard_ns = 1000007000,
                                  .round_trip_ns = 6500,
                                  .device_ns = 4000,
                                  .away_ns = 100,
                                  .hole_ns = 1000}};
}

// The same, `late_ns` longer on the way from the doorbell to the answer.
static slow_block longer_block(int64_t late_ns)
{
    slow_block b = even_block();
    b.took_ns += late_ns, b.times.heard_ns += late_ns, b.times.round_trip_ns += late_ns;
    return b;
}

static void a_slow_block_is_whose_time_it_took(void **state)
{
    (void)state;
    slow_block b = even_block();
    b.took_ns += 150000, b.times.rung_ns += 150000, b.times.heard_ns += 150000;
    assert_string_equal(late_blocks_whose(&b), "the thread's before the doorbell");
    b = even_block();
    b.took_ns += 90000;
    assert_string_equal(late_blocks_whose(&b), "the thread's behind the answer");
    b = longer_block(1020000);
    b.times.away_ns = 1019000; // its answer was there long before, and would count as under way
    assert_string_equal(late_blocks_whose(&b), "the thread's, away while it waited");
    b = longer_block(1020000);
    b.seen_ns = 1020000, b.times.hole_ns = 1030000;
    assert_string_equal(late_blocks_whose(&b), "the device's, which did not look");
    b.times.hole_ns = 5000;
    assert_string_equal(late_blocks_whose(&b), "the way's to the device");
    b = longer_block(30000);
    b.times.device_ns += 30000;
    assert_string_equal(late_blocks_whose(&b), "the device's work");
    b.times.look_ns += 25000; // it had begun to look before
    assert_string_equal(late_blocks_whose(&b), "the way's to the device");
    b = longer_block(30000);
    assert_string_equal(late_blocks_whose(&b), "the way's back");
    b.times.device_ns = -1;
    b.times.away_ns = 29000;
    assert_string_equal(late_blocks_whose(&b), "the thread's, away while it waited");
    b.times.heard_ns = 0;
    assert_string_equal(late_blocks_whose(&b), "nobody's known: no answer");
}

// A device that sees every bell so long after it was rung, by its own clock, that one that did not look stands out.
static void the_slowest_are_kept_with_their_times(void **state)
{
    (void)state;
    late_blocks w = {.n_missed = 0};
    static wt_live live;
    const uint32_t ahead_ns = 4000000000u; // the device's clock, which goes round in between
    assert_ok(late_blocks_open(&w));
    late_blocks_begin(&w);
    for (int k = 0; k < 1000; k++) {
        const int64_t late_ns = k == 700 ? 1020000 : k % 100 == 50 ? 1000 * (k / 100) + 30000 : 0;
        slow_block b = longer_block(late_ns);
        const int64_t begin_ns = k * 1333333;
        b.number = k, b.start_ns += begin_ns, b.times.rung_ns += begin_ns, b.times.heard_ns += begin_ns;
        b.times.seen_ns = ahead_ns + (uint32_t)b.times.rung_ns + 1000;
        if (k == 700) b.times.seen_ns += 1020000, b.times.hole_ns = 1021000;
        live.times = b.times;
        memset(&b.times, 0, sizeof b.times);
        late_blocks_note(&w, &b, &live);
    }
    assert_int_equal(w.slowest[0].number, 700);
    assert_int_equal(w.slowest[0].seen_ns, 1020000);
    assert_string_equal(late_blocks_whose(&w.slowest[0]), "the device's, which did not look");
    for (int k = 1; k < LATE_SLOWEST; k++) assert_int_equal(w.slowest[k].number, 1050 - 100 * k);
    assert_int_equal(w.n_long, 11);
    assert_int_equal(w.n_device_holes, 1);
    late_blocks_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_block_is_whose_time_it_took),
        cmocka_unit_test(the_slowest_are_kept_with_their_times),
    };
    return cmocka_run_group_tests_name("late blocks", tests, NULL, NULL);
}
