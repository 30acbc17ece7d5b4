#include "support/failing_alloc.h"
#include "support/device_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <warptone/arm.h>
#include <warptone/kernel.h>
#include <warptone/partition.h>

static void sleep_us(long us) { nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL); }

// ---- both backends

static void a_layout_tells_what_its_partitions_got(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_partition *audio = wt_layout_find(layout, "audio"), *llm = wt_layout_find(layout, "llm");
    assert_ptr_equal(wt_layout_at(layout, 1), llm);
    assert_null(wt_layout_at(layout, 2));
    assert_null(wt_layout_find(layout, "speech"));
    wt_partition_info a = info_of(audio), b = info_of(llm);
    wt_layout_info all = facts_of(layout);
    assert_int_equal(all.n_sms, wt_device_get_info(device)->n_sms);
    assert_int_equal(a.n_sms + b.n_sms, all.n_sms);
    assert_int_equal(a.n_sms % all.unit_sms, 0);
    assert_int_equal(all.unassigned_sms, 0);
    assert_true(a.priority == 1 && b.priority == -1 && a.max_streams == 2 && b.max_streams == 16);
    assert_ok(wt_layout_destroy(layout));
    assert_ok(wt_layout_destroy(NULL));
}

static void presets_that_fit_are_made_as_planned(void **state)
{
    wt_device *device = wide_device_of(state);
    static const char *const names[] = {"audio+speech+llm", "audio+llm", "all"};
    int n_made = 0;
    for (int k = 0; k < 3; k++) {
        wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
        wt_layout_config config;
        wt_status status = wt_layout_preset(names[k], wt_device_get_info(device), partitions, &config);
        if (status == WT_ERR_QUOTA) continue; // three partitions want three processors
        assert_ok(status);
        wt_layout *layout = layout_of(device, &config);
        int n_sms = 0;
        for (int p = 0; p < config.n_partitions; p++) {
            wt_partition_info info = info_of(wt_layout_at(layout, p));
            assert_string_equal(info.name, partitions[p].name);
            assert_true(info.n_sms >= partitions[p].n_sms);
            assert_int_equal(info.memory_quota_bytes, partitions[p].memory_quota_bytes);
            n_sms += info.n_sms;
        }
        assert_int_equal(n_sms, facts_of(layout).n_sms);
        assert_ok(wt_layout_destroy(layout));
        n_made++;
    }
    assert_true(n_made >= 2);
}

static void streams_are_limited_and_hold_the_layout(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_partition *audio = wt_layout_find(layout, "audio");
    wt_stream *first = stream_of(audio), *second = stream_of(audio), *third = NULL;
    assert_fails(wt_partition_stream_create(audio, NULL, &third), WT_ERR_FULL,
                 "partition audio: 2 streams exist, want at most 2");
    assert_null(third);
    assert_int_equal(wt_partition_stream_create(audio, &(wt_stream_config){2}, &third), WT_ERR_BAD_ARG);
    wt_stream_destroy(first);
    assert_fails(wt_layout_destroy(layout), WT_ERR_STATE,
                 "layout: destroy: 1 streams of partition audio exist; destroy them first");
    assert_ok(wt_device_arm(device));
    assert_int_equal(wt_layout_destroy(layout), WT_ERR_ARMED);
    assert_int_equal(wt_layout_resize(layout, &two_config), WT_ERR_ARMED);
    assert_int_equal(wt_layout_create(device, &two_config, &(wt_layout *){NULL}), WT_ERR_ARMED);
    assert_ok(wt_device_disarm(device));
    wt_stream_destroy(second);
    assert_ok(wt_layout_destroy(layout));
}

static void streams_of_a_partition_copy_and_fill_as_any(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_stream *stream = stream_of(wt_layout_find(layout, "llm"));
    wt_buffer *buffer = NULL;
    unsigned char got[1000] = {0};
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof got, &buffer));
    assert_ok(wt_stream_fill(stream, buffer, 0, 7, sizeof got));
    assert_ok(wt_stream_download(stream, got, buffer, 0, sizeof got));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(got[999], 7);
    assert_false(wt_partition_is_busy(wt_layout_find(layout, "llm")));
    wt_buffer_destroy(buffer);
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

static void steps_take_turns_and_refuse_disorder(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &lending_config);
    wt_partition *speech = wt_layout_find(layout, "speech"), *llm = wt_layout_find(layout, "llm");
    wt_partition_step step;
    assert_int_equal(wt_partition_n_variants(llm), 2);
    assert_int_equal(wt_partition_n_variants(speech), 1);
    assert_non_null(wt_partition_variant_stream(llm, 1));
    assert_null(wt_partition_variant_stream(llm, 2));
    assert_int_equal(wt_partition_step_begin(speech, &step), WT_ERR_BAD_ARG);
    assert_int_equal(wt_partition_step_end(llm), WT_ERR_STATE);
    assert_int_equal(wt_partition_idle(llm, true), WT_ERR_BAD_ARG);
    assert_ok(wt_partition_step_begin(llm, &step));
    assert_true(step.variant == 0 && step.n_sms == info_of(llm).n_sms);
    assert_int_equal(wt_partition_step_begin(llm, &step), WT_ERR_STATE);
    assert_fails(wt_layout_resize(layout, &lending_config), WT_ERR_STATE,
                 "layout: resize: a step of partition llm is open");
    assert_ok(wt_partition_idle(speech, true));
    assert_false(info_of(speech).lent); // the open step began before
    assert_ok(wt_partition_step_end(llm));
    assert_ok(wt_partition_step_begin(llm, &step));
    assert_true(step.variant == 1 && step.n_sms == facts_of(layout).n_sms);
    assert_ptr_equal(step.stream, wt_partition_variant_stream(llm, 1));
    assert_true(info_of(speech).lent);
    assert_ok(wt_partition_idle(speech, false));
    assert_true(info_of(speech).lent); // until this step ends
    assert_ok(wt_partition_step_end(llm));
    assert_ok(wt_partition_step_begin(llm, &step));
    assert_int_equal(step.variant, 0);
    assert_ok(wt_partition_step_end(llm));
    assert_ok(wt_stream_synchronize(step.stream));
    assert_false(info_of(speech).lent);
    assert_ok(wt_layout_destroy(layout));
}

// ---- the CPU: which processors ran the items

enum { MAX_CPUS = 1024 };

typedef struct visit {
    atomic_int cpus[MAX_CPUS];
    atomic_int nice, n_allowed; ///< of the thread that ran the last item
    atomic_bool *gate;          ///< items wait until it opens; NULL = none
} visit;

static void visit_item(const void *args, int item)
{
    (void)item;
    visit *v = *(visit *const *)args;
    while (v->gate && !atomic_load(v->gate)) sleep_us(100);
    int cpu = sched_getcpu();
    if (cpu >= 0 && cpu < MAX_CPUS) atomic_fetch_add(&v->cpus[cpu], 1);
    atomic_store(&v->nice, getpriority(PRIO_PROCESS, 0));
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed)) atomic_store(&v->n_allowed, CPU_COUNT(&allowed));
    sleep_us(200); // so that every thread gets some
}

static visit *visit_on(wt_stream *stream, visit *v)
{
    assert_ok(wt_stream_run(stream, visit_item, &v, sizeof v, 40));
    return v;
}

static int n_cpus_of(const visit *v)
{
    int n = 0;
    for (int k = 0; k < MAX_CPUS; k++) n += atomic_load(&v->cpus[k]) > 0;
    return n;
}

static bool overlap(const visit *a, const visit *b)
{
    for (int k = 0; k < MAX_CPUS; k++)
        if (atomic_load(&a->cpus[k]) && atomic_load(&b->cpus[k])) return true;
    return false;
}

static void threads_stay_on_their_processors_also_after_a_resize(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_stream *audio = stream_of(wt_layout_find(layout, "audio")), *llm = stream_of(wt_layout_find(layout, "llm"));
    static visit a, b, after_a, after_b;
    memset(&a, 0, sizeof a), memset(&b, 0, sizeof b), memset(&after_a, 0, sizeof a), memset(&after_b, 0, sizeof b);
    visit_on(audio, &a), visit_on(llm, &b);
    assert_ok(wt_device_synchronize(device));
    assert_false(overlap(&a, &b));
    assert_int_equal(a.n_allowed, info_of(wt_layout_find(layout, "audio")).n_sms); // it ran on some of these
    assert_in_range(n_cpus_of(&a), 1, a.n_allowed);

    wt_partition_config changed[] = {two_config.partitions[0], two_config.partitions[1]}; // now llm asks first
    changed[0].sm_share = 0;
    changed[1].n_sms = 1;
    assert_ok(wt_layout_resize(layout, &(wt_layout_config){.partitions = changed, .n_partitions = 2}));
    assert_int_equal(facts_of(layout).generation, 2);
    assert_int_equal(info_of(wt_layout_find(layout, "llm")).generation, 2);
    assert_int_equal(info_of(wt_layout_find(layout, "llm")).n_sms, 1);
    visit_on(audio, &after_a), visit_on(llm, &after_b);
    assert_ok(wt_device_synchronize(device));
    assert_false(overlap(&after_a, &after_b));
    assert_int_equal(after_a.n_allowed, info_of(wt_layout_find(layout, "audio")).n_sms);
    if (wt_device_get_info(device)->n_sms == 2) assert_false(overlap(&a, &after_a)); // of two the other one
    assert_int_equal(after_b.n_allowed, 1);
    assert_int_equal(n_cpus_of(&after_b), 1);
    wt_stream_destroy(audio);
    wt_stream_destroy(llm);
    assert_ok(wt_layout_destroy(layout));
}

/// What another thread makes, which was pinned or lowered after the device was opened.
typedef struct made {
    wt_device *device;
    wt_layout *layout;
    wt_stream *stream;
    int nice;
} made;

static void *make_on_one_processor(void *user)
{
    made *p = user;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    p->layout = layout_of(p->device, &two_config);
    assert_ok(wt_stream_create(p->device, NULL, &p->stream));
    return NULL;
}

// Of a thread that was pinned after the device was opened.
static void layouts_and_streams_have_the_processors_of_the_device(void **state)
{
    made p = {.device = wide_device_of(state)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_on_one_processor, &p), 0);
    pthread_join(thread, NULL);
    const int n = wt_device_get_info(p.device)->n_sms;
    assert_int_equal(info_of(wt_layout_at(p.layout, 0)).n_sms + info_of(wt_layout_at(p.layout, 1)).n_sms, n);
    static visit v;
    memset(&v, 0, sizeof v);
    visit_on(p.stream, &v);
    assert_ok(wt_stream_synchronize(p.stream));
    assert_int_equal(atomic_load(&v.n_allowed), n);
    wt_stream_destroy(p.stream);
    assert_ok(wt_layout_destroy(p.layout));
}

static void best_effort_threads_are_nice(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &two_config);
    wt_stream *stream = stream_of(wt_layout_find(layout, "llm"));
    static visit v;
    memset(&v, 0, sizeof v);
    visit_on(stream, &v);
    assert_ok(wt_stream_synchronize(stream));
    int own = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(atomic_load(&v.nice), own > 10 ? own : 10); // lowering oneself is always permitted
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

static void *make_in_a_nice_thread(void *user)
{
    made *p = user;
    p->nice = setpriority(PRIO_PROCESS, 0, 15) ? getpriority(PRIO_PROCESS, 0) : 15; // this thread's
    p->layout = layout_of(p->device, &two_config);
    p->stream = stream_of(wt_layout_find(p->layout, "llm"));
    return NULL;
}

// Who may raise threads, as root may, would have raised these.
static void best_effort_threads_of_a_nicer_program_stay_so(void **state)
{
    made p = {.device = wide_device_of(state)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_in_a_nice_thread, &p), 0);
    pthread_join(thread, NULL);
    static visit v;
    memset(&v, 0, sizeof v);
    visit_on(p.stream, &v);
    assert_ok(wt_stream_synchronize(p.stream));
    assert_int_equal(atomic_load(&v.nice), p.nice > 10 ? p.nice : 10);
    wt_stream_destroy(p.stream);
    assert_ok(wt_layout_destroy(p.layout));
}

static void work_in_flight_refuses_resize_destroy_and_idling(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &lending_config);
    wt_partition *speech = wt_layout_find(layout, "speech");
    wt_stream *stream = stream_of(speech);
    atomic_bool gate = false;
    static visit v;
    memset(&v, 0, sizeof v);
    v.gate = &gate;
    visit_on(stream, &v);
    assert_true(wt_partition_is_busy(speech));
    assert_fails(wt_layout_resize(layout, &lending_config), WT_ERR_STATE,
                 "layout: resize: partition speech has work in flight; synchronise its streams first");
    assert_fails(wt_layout_destroy(layout), WT_ERR_STATE,
                 "layout: destroy: partition speech has work in flight; synchronise its streams first");
    assert_fails(wt_partition_idle(speech, true), WT_ERR_STATE,
                 "partition speech: it has work in flight, so it is not idle");
    atomic_store(&gate, true);
    assert_ok(wt_stream_synchronize(stream));
    assert_ok(wt_partition_idle(speech, true));
    assert_ok(wt_layout_resize(layout, &lending_config));
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

static void resizing_cannot_change_who_is_who(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &two_config);
    wt_partition_config other[] = {two_config.partitions[0], two_config.partitions[1]};
    wt_layout_config config = {.partitions = other, .n_partitions = 2};
    other[1].name = "decode";
    assert_int_equal(wt_layout_resize(layout, &config), WT_ERR_BAD_ARG);
    other[1] = two_config.partitions[1];
    other[0].tier = WT_TIER_BURSTABLE;
    assert_int_equal(wt_layout_resize(layout, &config), WT_ERR_BAD_ARG);
    other[0] = two_config.partitions[0];
    other[0].sm_share = 1; // nothing left for llm: the old layout stays
    assert_int_equal(wt_layout_resize(layout, &config), WT_ERR_QUOTA);
    assert_int_equal(facts_of(layout).generation, 1);
    assert_ok(wt_layout_destroy(layout));
}

static void a_borrower_runs_on_idle_processors_and_leaves_within_a_step(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &lending_config);
    wt_partition *speech = wt_layout_find(layout, "speech"), *llm = wt_layout_find(layout, "llm");
    const int all = facts_of(layout).n_sms, own = info_of(llm).n_sms;
    wt_stream *stream = stream_of(speech);
    static visit lender, wide, narrow;
    memset(&lender, 0, sizeof lender), memset(&wide, 0, sizeof wide), memset(&narrow, 0, sizeof narrow);
    visit_on(stream, &lender);
    assert_ok(wt_stream_synchronize(stream));

    atomic_bool gate = false;
    wide.gate = &gate;
    wt_partition_step step;
    assert_ok(wt_partition_idle(speech, true));
    assert_ok(wt_partition_step_begin(llm, &step));
    assert_int_equal(step.n_sms, all);
    visit_on(step.stream, &wide);
    assert_ok(wt_partition_step_end(llm));
    assert_ok(wt_partition_idle(speech, false));
    assert_true(info_of(speech).lent);
    assert_ok(wt_partition_step_begin(llm, &step));
    assert_int_equal(step.n_sms, own);
    visit_on(step.stream, &narrow); // waits for the wide step, although its stream is another
    assert_ok(wt_partition_step_end(llm));
    assert_true(info_of(speech).lent);
    sleep_us(5000);
    assert_int_equal(n_cpus_of(&narrow), 0);
    atomic_store(&gate, true);
    assert_ok(wt_stream_synchronize(step.stream));
    assert_false(info_of(speech).lent);
    assert_int_equal(atomic_load(&wide.n_allowed), all); // where it ran of these is the system's choice
    assert_int_equal(atomic_load(&narrow.n_allowed), own);
    assert_false(overlap(&narrow, &lender));
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

static wt_status create_lending(void *user)
{
    void **both = user;
    return wt_layout_create(both[0], &lending_config, (wt_layout **)&both[1]);
}

static void destroy_lending(void *user) { assert_ok(wt_layout_destroy(((void **)user)[1])); }

static void every_failing_allocation_is_told_and_leaks_nothing(void **state)
{
    void *both[2] = {wide_device_of(state), NULL};
    assert_survives_failing_alloc(create_lending, destroy_lending, both);
}

typedef struct user {
    wt_layout *layout;
    int number;
    atomic_int *n_wrong;
} user;

static void nothing(const void *args, int item)
{
    (void)args;
    (void)item;
}

static void *use_partitions(void *data)
{
    user *u = data;
    wt_partition *speech = wt_layout_find(u->layout, "speech"), *llm = wt_layout_find(u->layout, "llm");
    for (int round = 0; round < 20; round++) {
        wt_stream *stream = NULL;
        wt_partition_step step;
        wt_partition_info info;
        if (wt_partition_stream_create(u->number % 2 ? speech : llm, NULL, &stream) ||
            wt_stream_run(stream, nothing, NULL, 0, 4) || wt_stream_synchronize(stream))
            atomic_fetch_add(u->n_wrong, 1);
        wt_status idled = wt_partition_idle(speech, round % 2), begun = wt_partition_step_begin(llm, &step);
        if ((idled && idled != WT_ERR_STATE) || (begun && begun != WT_ERR_STATE)) atomic_fetch_add(u->n_wrong, 1);
        if (!begun && (wt_stream_run(step.stream, nothing, NULL, 0, 4) || wt_partition_step_end(llm)))
            atomic_fetch_add(u->n_wrong, 1);
        wt_partition_get_info(speech, &info);
        wt_stream_destroy(stream);
    }
    return NULL;
}

static void eight_threads_share_a_layout(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &lending_config);
    atomic_int n_wrong = 0;
    user users[8];
    pthread_t threads[8];
    for (int k = 0; k < 8; k++) {
        users[k] = (user){layout, k, &n_wrong};
        pthread_create(&threads[k], NULL, use_partitions, &users[k]);
    }
    for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    assert_int_equal(atomic_load(&n_wrong), 0);
    assert_ok(wt_device_synchronize(wt_partition_device(wt_layout_at(layout, 0))));
    assert_int_equal(info_of(wt_layout_at(layout, 0)).n_streams, 0);
    assert_ok(wt_layout_destroy(layout));
}

// ---- running

typedef struct asking {
    wt_layout *layout;
    atomic_bool over;
    atomic_int n_asked;
} asking;

static void *ask(void *user)
{
    asking *a = user;
    while (!atomic_load(&a->over)) {
        wt_partition *speech = wt_layout_find(a->layout, "speech"), *llm = wt_layout_find(a->layout, "llm");
        if (!speech || !llm || wt_partition_n_variants(llm) != 2 || info_of(speech).n_sms < 1 ||
            wt_partition_idle(speech, true) || wt_partition_idle(llm, true) != WT_ERR_BAD_ARG)
            return a;
        atomic_fetch_add(&a->n_asked, 1);
    }
    return NULL;
}

// Names, who lends and who borrows are asked without a lock: no resize writes them (tsan=1 tells).
static void a_layout_may_be_asked_while_it_is_resized(void **state)
{
    asking a = {.layout = layout_of(wide_device_of(state), &lending_config)};
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, ask, &a), 0);
    for (int k = 0; k < 20 || !atomic_load(&a.n_asked); k++) {
        assert_ok(wt_layout_resize(a.layout, &lending_config));
        sleep_us(100);
    }
    atomic_store(&a.over, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(facts_of(a.layout).n_partitions, lending_config.n_partitions);
    assert_ok(wt_layout_destroy(a.layout));
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(a_layout_tells_what_its_partitions_got), cmocka_unit_test(presets_that_fit_are_made_as_planned),  \
        cmocka_unit_test(streams_are_limited_and_hold_the_layout),                                                     \
        cmocka_unit_test(streams_of_a_partition_copy_and_fill_as_any),                                                 \
        cmocka_unit_test(steps_take_turns_and_refuse_disorder), cmocka_unit_test(resizing_cannot_change_who_is_who)

int main(void)
{
    const struct CMUnitTest cpu[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(threads_stay_on_their_processors_also_after_a_resize),
        cmocka_unit_test(layouts_and_streams_have_the_processors_of_the_device),
        cmocka_unit_test(best_effort_threads_are_nice),
        cmocka_unit_test(best_effort_threads_of_a_nicer_program_stay_so),
        cmocka_unit_test(work_in_flight_refuses_resize_destroy_and_idling),
        cmocka_unit_test(a_borrower_runs_on_idle_processors_and_leaves_within_a_step),
        cmocka_unit_test(every_failing_allocation_is_told_and_leaks_nothing),
        cmocka_unit_test(eight_threads_share_a_layout),
        cmocka_unit_test(a_layout_may_be_asked_while_it_is_resized),
    };
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS};
    return cmocka_run_group_tests_name("partition: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("partition: CUDA", cuda, open_cuda, close_device);
}
