// Eight threads make calls of every noun of engine/ together, at random from a table, on things that they share and on
// things of their own. Every answer must be one that the header names; nothing may crash, hang or leak. The point is
// the run under ThreadSanitizer (scons tsan=1) and AddressSanitizer.
//   WARPTONE_ALL_CALLS=100000 ...       calls of each thread, default 600
//   WARPTONE_ALL_CALLS_SEED=7 ...       another order
#include "all_calls_device.h"
#include "all_calls_tasks.h"

static void (*const calls[])(worker *) = {
    open_a_device,
    synchronize,
    use_a_buffer,
    copy,
    use_a_stream,
    run,
    use_events,
    ask_the_compiler,
    ask_the_layout,
    use_a_partition_stream,
    lend,
    step,
    use_a_layout,
    take_a_block,
    use_a_block,
    free_a_block,
    ask_the_pool,
    use_a_pool_arena,
    use_a_pool,
    transfer,
    launch,
    ask_the_dispatch,
    drain_the_dispatch,
    use_a_graph,
    use_the_graph,
    submit,
    submit_to_device,
    ask_about_a_task,
    change_a_task,
    ask_the_scheduler,
    use_a_scheduler_partition,
    use_an_executor,
    use_telemetry,
    arm,
    use_small_things,
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static void *work(void *user)
{
    worker *me = user;
    for (int k = 0; k < me->w->n_calls && !me->failure[0]; k++) calls[pick(me, N_CALLS)](me);
    return NULL;
}

static void eight_threads_make_every_call(void **state)
{
    static world w;
    static worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    const char *seed = getenv("WARPTONE_ALL_CALLS_SEED");
    make_world(&w, wide_device_of(state));
    for (int k = 0; k < N_THREADS; k++) {
        workers[k] = (worker){.w = &w, .index = k, .seed = (seed ? strtoull(seed, NULL, 10) : 1) * 1000 + (uint64_t)k};
        assert_ok(wt_stream_create(w.device, NULL, &workers[k].stream));
        assert_ok(wt_buffer_create(w.device, WT_MEMORY_DEVICE, BYTES, &workers[k].buffer));
        workers[k].host = calloc(BYTES, 1);
        assert_non_null(workers[k].host);
    }
    for (int k = 0; k < N_THREADS; k++) assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    for (int k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
    end_tasks(&w);
    for (int k = 0; k < N_THREADS; k++) assert_ok(wt_pool_detach_stream(w.pool, workers[k].stream));
    end_world(&w);
    for (int k = 0; k < N_THREADS; k++) {
        wt_buffer_destroy(workers[k].buffer);
        wt_stream_destroy(workers[k].stream);
        free(workers[k].host);
    }
    for (int k = 0; k < N_THREADS; k++)
        if (workers[k].failure[0]) fail_msg("thread %d: %s", k, workers[k].failure);
    assert_true(atomic_load(&w.n_work) > 0);
}

int main(void)
{
    const struct CMUnitTest cpu[] = {cmocka_unit_test(eight_threads_make_every_call)};
    return cmocka_run_group_tests_name("all calls: CPU", cpu, open_cpu, close_device);
}
