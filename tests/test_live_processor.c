// A processor of its own for the audio thread.
#include "support/testing.h"

#include "../hosts/live_processor.h"

#include <stdio.h>
#include <string.h>

static int first_of(const cpu_set_t *set)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, set)) return cpu;
    return -1;
}

static cpu_set_t own_set(void)
{
    cpu_set_t set;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    return set;
}

/// Each test in a thread: where that stands is forgotten with it.
static void *in_thread(void *test)
{
    ((void (*)(void))(uintptr_t)test)();
    return NULL;
}

static void apart(void (*test)(void))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)test), 0);
    pthread_join(thread, NULL);
}

static void choose_and_place(const char *text)
{
    const cpu_set_t all = own_set();
    live_processor p;
    if (live_processor_choose(text, &p)) { // one processor, or one core
        assert_non_null(strstr(wt_last_error(), "there is none for other threads"));
        cpu_set_t now = own_set();
        assert_true(CPU_EQUAL(&now, &all));
        print_message("not tried: %s\n", wt_last_error());
        return;
    }
    assert_true(p.chosen && CPU_ISSET((size_t)p.cpu, &all));
    cpu_set_t now = own_set();
    assert_true(CPU_EQUAL(&now, &p.others) && !CPU_ISSET((size_t)p.cpu, &now));
    live_processor_place(&p, pthread_self(), true);
    assert_int_equal(sched_getcpu(), p.cpu);
    now = own_set();
    assert_int_equal(CPU_COUNT(&now), 1);
    live_processor_place(&p, pthread_self(), false);
    assert_int_not_equal(sched_getcpu(), p.cpu);
}

static void a_number(void)
{
    const cpu_set_t all = own_set();
    char text[16];
    snprintf(text, sizeof text, "%d", first_of(&all));
    choose_and_place(text);
}

static void the_quietest(void) { choose_and_place("quiet"); }

static void the_caller_leaves_it_to_the_audio_thread(void **state)
{
    (void)state;
    apart(a_number);
    apart(the_quietest);
}

static void measures(void)
{
    const cpu_set_t all = own_set();
    double lost[CPU_SETSIZE];
    const int least = live_processor_measure(&all, lost);
    assert_true(least >= 0 && CPU_ISSET((size_t)least, &all));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &all)) continue;
        assert_true(lost[cpu] >= lost[least] && lost[cpu] <= 1);
    }
    cpu_set_t none;
    CPU_ZERO(&none);
    assert_true(live_processor_measure(&none, lost) < 0);
}

static void the_least_is_lost_on_the_one_that_is_chosen(void **state)
{
    (void)state;
    apart(measures);
}

static void one_processor_is_not_given_away(void)
{
    cpu_set_t one, all = own_set();
    CPU_ZERO(&one);
    CPU_SET((size_t)first_of(&all), &one);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    live_processor p;
    assert_int_equal(live_processor_choose("quiet", &p), WT_ERR_UNSUPPORTED);
    assert_false(p.chosen);
    live_processor_place(&p, pthread_self(), false); // nothing
    all = own_set();
    assert_true(CPU_EQUAL(&all, &one));
}

static void refusals_say_what_is_wanted(void **state)
{
    (void)state;
    live_processor p;
    static const char *const words[] = {"", "loud", "1x", "quiet "};
    char wanted[128];
    for (int k = 0; k < 4; k++) {
        snprintf(wanted, sizeof wanted, "--processor is '%s', want a processor's number or quiet", words[k]);
        assert_fails(live_processor_choose(words[k], &p), WT_ERR_BAD_ARG, wanted);
    }
    static const char *const numbers[] = {"-1", "1024", "99999999999999"};
    for (int k = 0; k < 3; k++) assert_int_equal(live_processor_choose(numbers[k], &p), WT_ERR_BAD_ARG);
    apart(one_processor_is_not_given_away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caller_leaves_it_to_the_audio_thread),
        cmocka_unit_test(the_least_is_lost_on_the_one_that_is_chosen),
        cmocka_unit_test(refusals_say_what_is_wanted),
    };
    return cmocka_run_group_tests_name("live processor", tests, NULL, NULL);
}
