#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <warptone/histogram.h>

// Half of a bucket against its lower end: 1 / 128 (engine/histogram.c).
#define MAX_ERROR (1.0 / 128)

static wt_histogram *empty(void)
{
    wt_histogram *histogram;
    assert_ok(wt_histogram_create(&histogram));
    return histogram;
}

static wt_histogram_summary summary_of(const wt_histogram *histogram)
{
    wt_histogram_summary summary;
    wt_histogram_summarize(histogram, &summary);
    return summary;
}

static void assert_near(int64_t got, int64_t want)
{
    double error = fabs((double)got - (double)want);
    if (error > MAX_ERROR * (double)want) fail_msg("%lld, want %lld within 1/128", (long long)got, (long long)want);
}

static void an_empty_histogram_is_all_zero(void **state)
{
    (void)state;
    wt_histogram *histogram = empty();
    wt_histogram_summary s = summary_of(histogram);
    assert_true(s.count == 0 && s.mean == 0 && s.p50 == 0 && s.p99 == 0 && s.p99_9 == 0 && s.p99_99 == 0 && s.max == 0);
    assert_int_equal(wt_histogram_quantile(histogram, 0.5), 0);
    wt_histogram_destroy(histogram);
    wt_histogram_destroy(NULL);
}

static void every_value_comes_back_within_its_bound(void **state)
{
    (void)state;
    wt_histogram *histogram = empty();
    for (int shift = 0; shift < 63; shift++)
        for (int step = -2; step <= 2; step++) {
            int64_t value = (int64_t)((uint64_t)1 << shift) + step * (int64_t)((uint64_t)1 << shift >> 3) + step;
            if (value < 0) continue;
            wt_histogram_reset(histogram);
            wt_histogram_record(histogram, value);
            wt_histogram_record(histogram, INT64_MAX); // so that the maximum does not correct the middle of the bucket
            assert_near(wt_histogram_quantile(histogram, 0.5), value);
            if (value < 128) assert_int_equal(wt_histogram_quantile(histogram, 0.5), value);
            assert_true(summary_of(histogram).max == INT64_MAX);
        }
    wt_histogram_destroy(histogram);
}

static void negative_values_count_as_zero(void **state)
{
    (void)state;
    wt_histogram *histogram = empty();
    wt_histogram_record(histogram, -5);
    wt_histogram_record(histogram, INT64_MIN);
    wt_histogram_summary s = summary_of(histogram);
    assert_true(s.count == 2 && s.mean == 0 && s.max == 0 && s.p50 == 0);
    wt_histogram_destroy(histogram);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// The judge: sort everything, take the smallest value with that share at or below it.
static int64_t sorted_quantile(const int64_t *sorted, int n, double quantile)
{
    int rank = (int)ceil(quantile * n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static void percentiles_agree_with_a_sorted_list(void **state)
{
    (void)state;
    enum { N = 100000 };
    static int64_t values[N];
    wt_histogram *histogram = empty();
    uint64_t seed = 3;
    double sum = 0;
    for (int n = 0; n < N; n++) { // 10 us with a long tail, as block times have
        values[n] = (int64_t)(10000 * exp(1.5 * noise(&seed) + 4 * pow(noise(&seed), 31)));
        wt_histogram_record(histogram, values[n]);
        sum += (double)values[n];
    }
    qsort(values, N, sizeof *values, by_value);
    wt_histogram_summary s = summary_of(histogram);
    assert_true(s.count == N);
    assert_true(s.max == values[N - 1]);
    assert_true(fabs(s.mean - sum / N) <= 1e-12 * sum); // N roundings of a double
    assert_near(s.p50, sorted_quantile(values, N, 0.5));
    assert_near(s.p99, sorted_quantile(values, N, 0.99));
    assert_near(s.p99_9, sorted_quantile(values, N, 0.999));
    assert_near(s.p99_99, sorted_quantile(values, N, 0.9999));
    for (double q = -0.1; q <= 1.1; q += 0.01)
        assert_near(wt_histogram_quantile(histogram, q), sorted_quantile(values, N, q < 0 ? 0 : q > 1 ? 1 : q));
    wt_histogram_destroy(histogram);
}

static double sorted_share(const int64_t *sorted, int n, double value)
{
    int below = 0;
    while (below < n && (double)sorted[below] <= value) below++;
    return (double)below / n;
}

static void shares_agree_with_a_sorted_list(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int64_t values[N];
    wt_histogram *histogram = empty();
    uint64_t seed = 5;
    assert_true(wt_histogram_share(histogram, 1000) == 0);
    for (int n = 0; n < N; n++) wt_histogram_record(histogram, values[n] = (int64_t)(10000 * exp(noise(&seed))));
    qsort(values, N, sizeof *values, by_value);
    for (double at = 3000; at < 30000; at *= 1.01) { // a bucket spans 1/64 of its values at most
        double share = wt_histogram_share(histogram, (int64_t)at);
        assert_true(share >= sorted_share(values, N, at) && share <= sorted_share(values, N, at * (1 + 1.0 / 64)));
    }
    assert_true(wt_histogram_share(histogram, values[N - 1]) == 1);
    assert_true(wt_histogram_share(histogram, INT64_MAX) == 1);
    assert_true(wt_histogram_share(histogram, -1) == 0);
    wt_histogram_destroy(histogram);
}

static void merging_equals_recording_together(void **state)
{
    (void)state;
    wt_histogram *a = empty(), *b = empty(), *both = empty();
    uint64_t seed = 4;
    for (int n = 0; n < 3000; n++) {
        int64_t value = (int64_t)(1000000 * fabsf(noise(&seed)));
        wt_histogram_record(n % 3 ? a : b, value);
        wt_histogram_record(both, value);
    }
    wt_histogram_merge(a, b);
    wt_histogram_summary s = summary_of(a), want = summary_of(both);
    assert_true(s.count == want.count && s.max == want.max && s.p50 == want.p50 && s.p99 == want.p99);
    assert_true(s.p99_9 == want.p99_9 && s.p99_99 == want.p99_99);
    assert_true(fabs(s.mean - want.mean) <= 1e-12 * want.mean); // the same sum in another order
    assert_true(summary_of(b).count == 1000);                   // and `from` is left alone
    wt_histogram_destroy(a);
    wt_histogram_destroy(b);
    wt_histogram_destroy(both);
}

static void reset_forgets_everything(void **state)
{
    (void)state;
    wt_histogram *histogram = empty();
    for (int n = 0; n < 1000; n++) wt_histogram_record(histogram, n * 1000);
    wt_histogram_reset(histogram);
    assert_true(summary_of(histogram).count == 0);
    wt_histogram_record(histogram, 7);
    wt_histogram_summary s = summary_of(histogram);
    assert_true(s.count == 1 && s.mean == 7 && s.p50 == 7 && s.p99_99 == 7 && s.max == 7);
    wt_histogram_destroy(histogram);
}

// ---- a writer and a reader

enum { N_CONCURRENT = 200000 };

typedef struct concurrent {
    wt_histogram *histogram;
    _Atomic int done;
} concurrent;

static void *record_rising(void *user)
{
    concurrent *c = user;
    for (int n = 1; n <= N_CONCURRENT; n++) wt_histogram_record(c->histogram, n);
    atomic_store(&c->done, 1);
    return NULL;
}

static void a_reader_sees_whole_values_while_another_records(void **state)
{
    (void)state;
    concurrent c = {.histogram = empty()};
    wt_histogram *copy = empty();
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, record_rising, &c), 0);
    uint64_t last = 0;
    int wrong = 0;
    do { // the values are 1, 2, 3, ...: with `count` seen, the maximum is at least that and the mean about its half
        wt_histogram_summary s = summary_of(c.histogram);
        wrong += s.count < last || s.max < (int64_t)s.count || s.p99_99 > s.max || s.p50 > s.p99;
        wrong += s.count > 0 && s.mean < (double)(s.count + 1) / 2 * (1 - 1e-9);
        last = s.count;
        wt_histogram_reset(copy);
        wt_histogram_merge(copy, c.histogram);
        wrong += summary_of(copy).count < last;
    } while (!atomic_load(&c.done));
    pthread_join(writer, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(summary_of(c.histogram).count, N_CONCURRENT);
    wt_histogram_destroy(c.histogram);
    wt_histogram_destroy(copy);
}

static wt_status create_histogram(void *user)
{
    wt_status status = wt_histogram_create(user);
    if (status) assert_null(*(wt_histogram **)user);
    return status;
}

static void destroy_histogram(void *user) { wt_histogram_destroy(*(wt_histogram **)user); }

static void histogram_survives_failing_allocations(void **state)
{
    (void)state;
    wt_histogram *histogram;
    assert_int_equal(assert_survives_failing_alloc(create_histogram, destroy_histogram, &histogram), 1);
}

static void histogram_is_clean_in_a_real_time_section(void **state)
{
    (void)state;
    wt_histogram *a = empty(), *b = empty();
    wt_histogram_summary summary;
    RT_SECTION
    {
        for (int n = 0; n < 1000; n++) wt_histogram_record(a, n * n);
        wt_histogram_merge(b, a);
        wt_histogram_summarize(b, &summary);
        wt_histogram_quantile(b, 0.9);
        wt_histogram_reset(a);
    }
    wt_histogram_destroy(a);
    wt_histogram_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_histogram_is_all_zero),
        cmocka_unit_test(every_value_comes_back_within_its_bound),
        cmocka_unit_test(negative_values_count_as_zero),
        cmocka_unit_test(percentiles_agree_with_a_sorted_list),
        cmocka_unit_test(shares_agree_with_a_sorted_list),
        cmocka_unit_test(merging_equals_recording_together),
        cmocka_unit_test(reset_forgets_everything),
        cmocka_unit_test(a_reader_sees_whole_values_while_another_records),
        cmocka_unit_test(histogram_survives_failing_allocations),
        cmocka_unit_test(histogram_is_clean_in_a_real_time_section),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
