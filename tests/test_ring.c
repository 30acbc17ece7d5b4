#include "support/failing_alloc.h"
#include "support/model_check.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <warptone/ring.h>

// A ring with one lap and a bit behind it, so that what follows wraps at every position in turn.
static wt_ring *ring_at(size_t capacity, size_t element_bytes, size_t n_before)
{
    wt_ring *ring = NULL;
    assert_ok(wt_ring_create(&(wt_ring_config){.capacity = capacity, .element_bytes = element_bytes}, &ring));
    unsigned char element[64] = {0};
    for (size_t n = 0; n < n_before; n++) {
        assert_int_equal(wt_ring_push(ring, element, 1), 1);
        assert_int_equal(wt_ring_pop(ring, element, 1), 1);
    }
    return ring;
}

static void ring_refuses_bad_sizes(void **state)
{
    (void)state;
    wt_ring *ring = (wt_ring *)state; // not NULL
    assert_fails(wt_ring_create(&(wt_ring_config){0}, &ring), WT_ERR_BAD_ARG, "ring: capacity 0, want 1 or more");
    assert_null(ring);
    assert_fails(wt_ring_create(&(wt_ring_config){.capacity = SIZE_MAX, .element_bytes = 3}, &ring), WT_ERR_BAD_ARG,
                 "ring: 18446744073709551615 elements of 3 bytes, want 2^48 bytes or less in all");
    assert_null(ring);
    wt_ring_destroy(NULL);
}

static void ring_keeps_batches_in_order_at_every_position(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 3, 63, 64, 65, 253};
    for (size_t k = 0; k < sizeof capacities / sizeof *capacities; k++) {
        size_t capacity = capacities[k];
        for (size_t before = 0; before < 2 * capacity; before += 1 + capacity / 8) {
            wt_ring *ring = ring_at(capacity, 0, before);
            float in[256], out[256];
            for (size_t n = 0; n < 256; n++) in[n] = (float)(before * 1000 + n);
            for (size_t batch = 1; batch <= capacity; batch += 1 + batch / 3) {
                assert_int_equal(wt_ring_push(ring, in, batch), batch);
                assert_int_equal(wt_ring_ready(ring), batch);
                assert_int_equal(wt_ring_space(ring), capacity - batch);
                assert_int_equal(wt_ring_pop(ring, out, batch), batch);
                assert_memory_equal(in, out, batch * sizeof *in);
            }
            wt_ring_destroy(ring);
        }
    }
}

static void ring_takes_what_fits_and_gives_what_is_there(void **state)
{
    (void)state;
    wt_ring *ring = ring_at(5, 0, 6);
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
    assert_int_equal(wt_ring_capacity(ring), 5);
    assert_int_equal(wt_ring_pop(ring, out, 8), 0);
    assert_int_equal(wt_ring_push(ring, in, 0), 0);
    assert_int_equal(wt_ring_push(ring, in, 3), 3);
    assert_int_equal(wt_ring_push(ring, in + 3, 5), 2); // full at 5, although there are 8 slots
    assert_int_equal(wt_ring_push(ring, in, 1), 0);
    assert_int_equal(wt_ring_space(ring), 0);
    assert_int_equal(wt_ring_pop(ring, out, 8), 5);
    assert_memory_equal(in, out, 5 * sizeof *in);
    assert_int_equal(wt_ring_ready(ring), 0);
    wt_ring_destroy(ring);
}

static void ring_moves_elements_of_any_size_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 4, 24, 63, 64};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        wt_ring *ring = ring_at(7, sizes[k], 5);
        unsigned char in[7 * 64], out[7 * 64 + 1];
        for (size_t b = 0; b < sizeof in; b++) in[b] = (unsigned char)(b * 37 + 1);
        memset(out, 0xEE, sizeof out);
        assert_int_equal(wt_ring_push(ring, in, 7), 7);
        assert_int_equal(wt_ring_pop(ring, out, 7), 7);
        assert_memory_equal(in, out, 7 * sizes[k]);
        assert_int_equal(out[7 * sizes[k]], 0xEE); // and no byte more
        wt_ring_destroy(ring);
    }
}

static void ring_lends_its_slots(void **state)
{
    (void)state;
    wt_ring *ring = ring_at(8, sizeof(int), 6);
    void *room;
    const void *there;
    assert_int_equal(wt_ring_reserve(ring, 5, &room), 2); // up to the end of the slots
    memcpy(room, (int[]){10, 11}, 2 * sizeof(int));
    assert_int_equal(wt_ring_ready(ring), 0); // nothing yet
    wt_ring_commit(ring, 2);
    assert_int_equal(wt_ring_reserve(ring, 8, &room), 6);
    memcpy(room, (int[]){12, 13, 14}, 3 * sizeof(int));
    wt_ring_commit(ring, 3); // fewer than reserved
    assert_int_equal(wt_ring_ready(ring), 5);

    assert_int_equal(wt_ring_peek(ring, 8, &there), 2);
    assert_memory_equal(there, ((int[]){10, 11}), 2 * sizeof(int));
    wt_ring_release(ring, 1);
    assert_int_equal(wt_ring_peek(ring, 8, &there), 1);
    assert_int_equal(*(const int *)there, 11);
    wt_ring_release(ring, 1);
    assert_int_equal(wt_ring_peek(ring, 2, &there), 2);
    assert_memory_equal(there, ((int[]){12, 13}), 2 * sizeof(int));
    wt_ring_release(ring, 2);
    assert_int_equal(wt_ring_space(ring), 7);
    wt_ring_destroy(ring);
}

static wt_status create_ring(void *user)
{
    wt_status status = wt_ring_create(&(wt_ring_config){.capacity = 100}, user);
    if (status) assert_null(*(wt_ring **)user);
    return status;
}

static void destroy_ring(void *user) { wt_ring_destroy(*(wt_ring **)user); }

static void ring_survives_failing_allocations(void **state)
{
    (void)state;
    wt_ring *ring = NULL;
    assert_int_equal(assert_survives_failing_alloc(create_ring, destroy_ring, &ring), 2);
}

static void ring_is_clean_in_a_real_time_section(void **state)
{
    (void)state;
    wt_ring *ring = ring_at(100, 0, 0);
    float block[64] = {0};
    void *room;
    const void *there;
    RT_SECTION
    {
        for (int n = 0; n < 10; n++) {
            wt_ring_push(ring, block, 64);
            wt_ring_push(ring, block, 64);
            wt_ring_pop(ring, block, 64);
            wt_ring_commit(ring, wt_ring_reserve(ring, 10, &room));
            wt_ring_release(ring, wt_ring_peek(ring, wt_ring_ready(ring), &there));
            wt_ring_pop(ring, block, wt_ring_capacity(ring) - wt_ring_space(ring) > 64 ? 64 : 1);
        }
    }
    wt_ring_destroy(ring);
}

// ---- two threads

#ifdef WT_SANITIZED
enum { STRESS_ELEMENTS = 100000 }; // a sanitizer's run is some ten times slower
#else
enum { STRESS_ELEMENTS = 1000000 };
#endif

enum { MAX_BATCH = 17 };

// 24 bytes: torn or stale elements differ from what their number says.
typedef struct element {
    uint64_t number, inverse, again;
} element;

typedef struct stress {
    wt_ring *ring;
    bool lend; // by reserve and peek instead of push and pop
    _Atomic bool failed;
} stress;

static size_t batch_of(uint64_t *seed) { return 1 + (size_t)((noise(seed) + 1) * 0.5f * (MAX_BATCH - 1)); }

static void *push_all(void *user)
{
    stress *s = user;
    uint64_t seed = 1, pushed = 0;
    while (pushed < STRESS_ELEMENTS && !atomic_load_explicit(&s->failed, memory_order_relaxed)) {
        element batch[MAX_BATCH];
        void *room = batch;
        size_t n = batch_of(&seed), left = STRESS_ELEMENTS - (size_t)pushed;
        if (n > left) n = left;
        if (s->lend) n = wt_ring_reserve(s->ring, n, &room);
        for (size_t k = 0; k < n; k++) ((element *)room)[k] = (element){pushed + k, ~(pushed + k), pushed + k};
        if (s->lend)
            wt_ring_commit(s->ring, n);
        else
            n = wt_ring_push(s->ring, batch, n);
        pushed += n;
        if (n == 0) sched_yield(); // both may share one core
    }
    return NULL;
}

static uint64_t pop_all(stress *s)
{
    uint64_t seed = 2, popped = 0;
    while (popped < STRESS_ELEMENTS) {
        element batch[MAX_BATCH];
        const void *there = batch;
        size_t n = batch_of(&seed);
        n = s->lend ? wt_ring_peek(s->ring, n, &there) : wt_ring_pop(s->ring, batch, n);
        for (size_t k = 0; k < n; k++, popped++) {
            const element *e = &((const element *)there)[k];
            if (e->number != popped || e->inverse != ~popped || e->again != popped) return popped;
        }
        if (s->lend) wt_ring_release(s->ring, n);
        if (n == 0) sched_yield();
    }
    return popped;
}

static void two_threads(size_t capacity, bool lend)
{
    stress s = {.ring = ring_at(capacity, sizeof(element), 0), .lend = lend};
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, push_all, &s), 0);
    uint64_t popped = pop_all(&s);
    atomic_store(&s.failed, popped != STRESS_ELEMENTS);
    pthread_join(producer, NULL);
    wt_ring_destroy(s.ring);
    if (popped != STRESS_ELEMENTS)
        fail_msg("capacity %zu: element %llu is wrong", capacity, (unsigned long long)popped);
}

static void ring_keeps_order_between_two_threads(void **state)
{
    (void)state;
    static const size_t capacities[] = {3, 16, 100};
    for (size_t k = 0; k < 3; k++)
        for (int lend = 0; lend < 2; lend++) two_threads(capacities[k], lend);
}

// ---- the model

static void the_model_of_the_ring_holds(void **state)
{
    (void)state;
    skip_without_spin("ring.pml");
    assert_true(model_says("ring.pml", "RELAXED=0", false, "errors: 0"));
}

static void the_model_fails_when_any_order_is_relaxed(void **state)
{
    (void)state;
    skip_without_spin("ring.pml");
    static const char *const relaxed[] = {"RELAXED=1", "RELAXED=2", "RELAXED=3", "RELAXED=4"};
    for (int k = 0; k < 4; k++)
        if (!model_says("ring.pml", relaxed[k], true, "assertion violated")) fail_msg("%s is not caught", relaxed[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_refuses_bad_sizes),
        cmocka_unit_test(ring_keeps_batches_in_order_at_every_position),
        cmocka_unit_test(ring_takes_what_fits_and_gives_what_is_there),
        cmocka_unit_test(ring_moves_elements_of_any_size_whole),
        cmocka_unit_test(ring_lends_its_slots),
        cmocka_unit_test(ring_survives_failing_allocations),
        cmocka_unit_test(ring_is_clean_in_a_real_time_section),
        cmocka_unit_test(ring_keeps_order_between_two_threads),
        cmocka_unit_test(the_model_of_the_ring_holds),
        cmocka_unit_test(the_model_fails_when_any_order_is_relaxed),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
