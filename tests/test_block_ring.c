#include "support/testing.h"
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/model_check.h"
#include "support/realtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <warptone/block_ring.h>

enum { SLOTS = 4, WORDS = 33 };

static wt_block_ring *ring_of(wt_device *device)
{
    wt_block_ring *ring = NULL;
    assert_ok(
        wt_block_ring_create(&(wt_block_ring_config){.device = device, .n_slots = SLOTS, .slot_words = WORDS}, &ring));
    return ring;
}

static void block_ring_refuses_bad_sizes(void **state)
{
    wt_block_ring *ring;
    wt_block_ring_config config = {.device = device_of(state), .n_slots = 3, .slot_words = 1};
    assert_fails(wt_block_ring_create(&config, &ring), WT_ERR_BAD_ARG, "block ring: 3 slots, want a power of two");
    config.n_slots = 4, config.slot_words = 0;
    assert_fails(wt_block_ring_create(&config, &ring), WT_ERR_BAD_ARG,
                 "block ring: slots of 0 words, want 1..2^40 in all");
    assert_null(ring);
    wt_block_ring_destroy(NULL);
}

static void a_word_is_there_with_its_turn_only(void **state)
{
    wt_block_ring *ring = ring_of(device_of(state));
    wt_block_slot *slot = wt_block_ring_slot(ring, 7);
    float x[4] = {1, -2, 0.5f, 1e-42f}, y[4] = {0};
    uint32_t data;
    assert_false(wt_block_here(slot, 7, &data)); // fresh memory says turn 0, which is nobody's
    wt_block_put(slot + 1, x, 3, 7);
    assert_int_equal(wt_block_get(slot + 1, y, 4, 7), 3);
    assert_memory_equal(x, y, 3 * sizeof *x);
    wt_block_put(slot + 4, x + 3, 1, 7);
    assert_int_equal(wt_block_get(slot + 1, y, 4, 7), 4);
    assert_memory_equal(x, y, sizeof x);
    wt_block_ring_bell(slot, 99, 7);
    assert_true(wt_block_here(slot, 7, &data));
    assert_int_equal(data, 99);
    assert_false(wt_block_here(slot, 7 + SLOTS, &data)); // the next in that slot
    assert_int_equal(wt_block_get(slot + 1, y, 4, 7 + SLOTS), 0);
    assert_ptr_equal(slot, wt_block_ring_slot(ring, 7 + SLOTS));
    assert_int_equal(wt_block_turn_after(1), 2);
    assert_int_equal(wt_block_turn_after(UINT32_MAX), 1);
    wt_block_ring_destroy(ring);
}

// ---- two sides

enum { BLOCKS = 20000 };

typedef struct sides {
    wt_block_ring *down, *up;
    uint32_t first;
    atomic_bool failed;
} sides;

static uint32_t turn_number(uint32_t first, int n)
{
    for (int k = 0; k < n; k++) first = wt_block_turn_after(first);
    return first;
}

static bool read_all(const wt_block_slot *words, float *x, int n, uint32_t turn, const sides *s)
{
    for (int done = 0; done < n;) {
        done += wt_block_get(words + done, x + done, n - done, turn);
        if (done < n && atomic_load(&s->failed)) return false;
        if (done < n) sched_yield();
    }
    return true;
}

// Answers each block with its doubles, words in another order than they came.
static void *answer(void *user)
{
    sides *s = user;
    float x[WORDS];
    uint32_t turn = s->first;
    for (int k = 0; k < BLOCKS; k++, turn = wt_block_turn_after(turn)) {
        const wt_block_slot *down = wt_block_ring_slot(s->down, turn);
        wt_block_slot *up = wt_block_ring_slot(s->up, turn);
        if (!read_all(down, x, WORDS, turn, s)) break;
        for (int n = 0; n < WORDS; n++) x[n] *= 2;
        for (int n = WORDS - 1; n >= 0; n--) wt_block_put(up + n, &x[n], 1, turn);
    }
    return NULL;
}

static void check_sides(wt_device *device, uint32_t first)
{
    sides s = {.down = ring_of(device), .up = ring_of(device), .first = first};
    pthread_t thread;
    float x[WORDS], y[WORDS];
    uint32_t posted = first, heard = first;
    assert_int_equal(pthread_create(&thread, NULL, answer, &s), 0);
    for (int n_posted = 0, n_heard = 0; n_heard < BLOCKS && !atomic_load(&s.failed);) {
        if (n_posted < BLOCKS && n_posted - n_heard < SLOTS - 1) {
            for (int n = 0; n < WORDS; n++) x[n] = (float)(n_posted * 7 % 1000 + n);
            wt_block_put(wt_block_ring_slot(s.down, posted), x, WORDS, posted);
            posted = wt_block_turn_after(posted), n_posted++;
            continue;
        }
        if (!read_all(wt_block_ring_slot(s.up, heard), y, WORDS, heard, &s)) break;
        for (int n = 0; n < WORDS; n++)
            if (y[n] != (float)(2 * (n_heard * 7 % 1000 + n))) atomic_store(&s.failed, true);
        heard = wt_block_turn_after(heard), n_heard++;
    }
    pthread_join(thread, NULL);
    assert_false(atomic_load(&s.failed));
    assert_int_equal(heard, turn_number(first, BLOCKS));
    wt_block_ring_destroy(s.down);
    wt_block_ring_destroy(s.up);
}

static void blocks_cross_and_are_answered_whole(void **state) { check_sides(device_of(state), 1); }

static void turns_wrap_around(void **state) { check_sides(device_of(state), UINT32_MAX - BLOCKS / 2); }

static void block_ring_is_clean_in_a_real_time_section(void **state)
{
    wt_block_ring *ring = ring_of(device_of(state));
    float x[WORDS] = {0};
    uint32_t data;
    RT_SECTION
    {
        for (uint32_t turn = 1; turn < 20; turn++) {
            wt_block_slot *slot = wt_block_ring_slot(ring, turn);
            wt_block_put(slot + 1, x, WORDS - 1, turn);
            wt_block_ring_bell(slot, WORDS, turn);
            (void)wt_block_here(slot, turn, &data);
            (void)wt_block_get(slot + 1, x, WORDS - 1, turn);
        }
    }
    wt_block_ring_destroy(ring);
}

typedef struct made {
    wt_device *device;
    wt_block_ring *ring;
} made;

static wt_status create_ring(void *user)
{
    made *m = user;
    return wt_block_ring_create(&(wt_block_ring_config){.device = m->device, .n_slots = SLOTS, .slot_words = WORDS},
                                &m->ring);
}

static void destroy_ring(void *user) { wt_block_ring_destroy(((made *)user)->ring); }

static void block_ring_survives_failing_allocations(void **state)
{
    made m = {.device = device_of(state)};
    (void)assert_survives_failing_alloc(create_ring, destroy_ring, &m);
}

static void the_model_holds_and_fails_when_it_is_broken(void **state)
{
    (void)state;
    skip_without_spin("block_ring.pml");
    assert_true(model_says("block_ring.pml", "BROKEN=0", false, "errors: 0"));
    assert_true(model_says("block_ring.pml", "BROKEN=1", true, "assertion violated"));
    assert_true(model_says("block_ring.pml", "BROKEN=2", false, "invalid end state (at"));
}

// What the first of several thread blocks tells the others (kernels/chain/resident_wait.cuh).
static void the_relay_s_model_holds_and_fails_when_it_is_broken(void **state)
{
    (void)state;
    skip_without_spin("relay.pml");
    assert_true(model_says("relay.pml", "BROKEN=0", false, "errors: 0"));
    assert_true(model_says("relay.pml", "BROKEN=1", false, "errors: 1"));
    assert_true(model_says("relay.pml", "BROKEN=2", false, "invalid end state (at"));
    assert_true(model_says("relay.pml", "BROKEN=3", false, "assertion violated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_ring_refuses_bad_sizes),
        cmocka_unit_test(a_word_is_there_with_its_turn_only),
        cmocka_unit_test(blocks_cross_and_are_answered_whole),
        cmocka_unit_test(turns_wrap_around),
        cmocka_unit_test(block_ring_is_clean_in_a_real_time_section),
        cmocka_unit_test(block_ring_survives_failing_allocations),
        cmocka_unit_test(the_model_holds_and_fails_when_it_is_broken),
        cmocka_unit_test(the_relay_s_model_holds_and_fails_when_it_is_broken),
    };
    return cmocka_run_group_tests_name("block ring", tests, open_cpu, close_device);
}
