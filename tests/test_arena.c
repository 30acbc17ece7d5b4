#include "support/failing_alloc.h"
#include "support/testing.h"

#include <string.h>
#include <warptone/arena.h>

static void arena_refuses_bad_sizes(void **state)
{
    (void)state;
    wt_arena *arena;
    assert_fails(wt_arena_create(0, &arena), WT_ERR_BAD_ARG, "arena: 0 bytes, want 1 .. 2^48 - 1");
    assert_null(arena);
    assert_fails(wt_arena_create(SIZE_MAX, &arena), WT_ERR_BAD_ARG,
                 "arena: 18446744073709551615 bytes, want 1 .. 2^48 - 1");
    assert_null(arena);
    wt_arena_destroy(NULL);
}

static void arena_aligns_what_it_hands_out(void **state)
{
    (void)state;
    wt_arena *arena;
    assert_ok(wt_arena_create(1 << 20, &arena));
    unsigned char *end = NULL;
    for (size_t align = 1; align <= WT_ARENA_MAX_ALIGN; align *= 2)
        for (size_t size = 0; size < 200; size += 33) {
            void *memory;
            assert_ok(wt_arena_alloc(arena, size, align, &memory));
            assert_int_equal((uintptr_t)memory % align, 0);
            if (end) assert_in_range((unsigned char *)memory - end, 0, align - 1); // behind the last, no hole above
            end = (unsigned char *)memory + size;
        }
    void *memory;
    assert_ok(wt_arena_alloc(arena, 1, 0, &memory));
    assert_int_equal((uintptr_t)memory % 64, 0);
    wt_arena_destroy(arena);
}

static void arena_refuses_odd_alignments(void **state)
{
    (void)state;
    wt_arena *arena;
    void *memory = &arena;
    assert_ok(wt_arena_create(100, &arena));
    assert_fails(wt_arena_alloc(arena, 1, 48, &memory), WT_ERR_BAD_ARG,
                 "arena: alignment 48, want a power of two up to 4096");
    assert_null(memory);
    assert_fails(wt_arena_alloc(arena, 1, 8192, &memory), WT_ERR_BAD_ARG,
                 "arena: alignment 8192, want a power of two up to 4096");
    wt_arena_destroy(arena);
}

static void arena_gives_all_it_has_and_no_more(void **state)
{
    (void)state;
    wt_arena *arena;
    void *memory;
    assert_ok(wt_arena_create(100, &arena));
    assert_int_equal(wt_arena_capacity_bytes(arena), 100);
    assert_fails(wt_arena_alloc(arena, 101, 1, &memory), WT_ERR_NO_MEMORY,
                 "arena: 101 bytes aligned to 1, 100 of 100 are left");
    assert_ok(wt_arena_alloc(arena, 90, 1, &memory));
    assert_fails(wt_arena_alloc(arena, 4, 64, &memory), WT_ERR_NO_MEMORY, // 128 lies behind the end
                 "arena: 4 bytes aligned to 64, 10 of 100 are left");
    assert_null(memory);
    assert_int_equal(wt_arena_alloc(arena, SIZE_MAX, 1, &memory), WT_ERR_NO_MEMORY);
    assert_int_equal(wt_arena_alloc(arena, SIZE_MAX - 80, 1, &memory), WT_ERR_NO_MEMORY);
    assert_ok(wt_arena_alloc(arena, 10, 1, &memory)); // the refusals took nothing
    assert_ok(wt_arena_alloc(arena, 0, 1, &memory));
    assert_int_equal(wt_arena_alloc(arena, 1, 1, &memory), WT_ERR_NO_MEMORY);
    wt_arena_destroy(arena);
}

static void arena_takes_back_to_a_mark_and_zeroes_again(void **state)
{
    (void)state;
    wt_arena *arena;
    void *first, *second, *again;
    static const unsigned char zeros[300];
    assert_ok(wt_arena_create(1000, &arena));
    assert_ok(wt_arena_alloc(arena, 10, 0, &first));
    memset(first, 1, 10);
    size_t mark = wt_arena_mark(arena);
    assert_ok(wt_arena_alloc(arena, 300, 0, &second));
    assert_memory_equal(second, zeros, 300);
    memset(second, 2, 300);
    assert_ok(wt_arena_release(arena, mark));
    assert_ok(wt_arena_alloc(arena, 300, 0, &again));
    assert_ptr_equal(again, second);
    assert_memory_equal(again, zeros, 300);
    assert_int_equal(*(unsigned char *)first, 1); // below the mark, untouched

    assert_ok(wt_arena_release(arena, 0));
    assert_fails(wt_arena_release(arena, mark), WT_ERR_BAD_ARG, "arena: mark 10, want at most the 0 bytes in use");
    wt_arena_destroy(arena);
}

static wt_status create_arena(void *user)
{
    wt_status status = wt_arena_create(1000, user);
    if (status) assert_null(*(wt_arena **)user);
    return status;
}

static void destroy_arena(void *user) { wt_arena_destroy(*(wt_arena **)user); }

static void arena_survives_failing_allocations(void **state)
{
    (void)state;
    wt_arena *arena;
    assert_int_equal(assert_survives_failing_alloc(create_arena, destroy_arena, &arena), 2);
}

static void arena_allocates_only_at_create(void **state)
{
    (void)state;
    wt_arena *arena;
    void *memory;
    assert_ok(wt_arena_create(1000, &arena));
    failing_alloc_start(-1);
    for (int k = 0; k < 20; k++) (void)!wt_arena_alloc(arena, 100, 0, &memory); // past the end, with its sentence
    failing_alloc_counts counts = failing_alloc_stop();
    assert_int_equal(counts.n_allocations, 0);
    wt_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_refuses_bad_sizes),
        cmocka_unit_test(arena_aligns_what_it_hands_out),
        cmocka_unit_test(arena_refuses_odd_alignments),
        cmocka_unit_test(arena_gives_all_it_has_and_no_more),
        cmocka_unit_test(arena_takes_back_to_a_mark_and_zeroes_again),
        cmocka_unit_test(arena_survives_failing_allocations),
        cmocka_unit_test(arena_allocates_only_at_create),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
