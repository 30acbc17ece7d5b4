// Log-linear buckets as in G. Tene's HdrHistogram: 64 to each doubling of the value. A bucket from `low` spans at most
// low / 64, and its middle stands for it, so a percentile errs by 1 / 128 = 0.79 % at most.
//
//   value  0 .. 127      buckets   0 .. 127, one a value
//          128 .. 255              128 .. 191, two values each
//          256 .. 511              192 .. 255, four each, and so on to 2^63 - 1 in bucket 3711
//
// Memory order, once: the writer is alone and adds by a relaxed load and store. It stores `count` last, with release,
// and readers load it first, with acquire: whatever a reader counts is in the buckets, the sum and the maximum it sees.
// Percentiles rank by a total of the buckets themselves, loaded just before, which only grow meanwhile.
#include <warptone/histogram.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STEP_BITS = 6, STEPS = 1 << STEP_BITS, N_BUCKETS = (63 - STEP_BITS + 1) * STEPS, LINE_BYTES = 64 };

struct wt_histogram {
    alignas(LINE_BYTES) _Atomic uint64_t count;
    _Atomic uint64_t max;
    _Atomic double sum;
    alignas(LINE_BYTES) _Atomic uint64_t buckets[N_BUCKETS];
};

// The left shift that a value of this bucket lost: 0 below 2 * STEPS, then one more each doubling.
static int shift_of(int bucket) { return bucket < STEPS ? 0 : bucket / STEPS - 1; }

static int bucket_of(uint64_t value)
{
    int top = 63 - __builtin_clzll(value | 1); // the highest bit set
    int shift = top > STEP_BITS ? top - STEP_BITS : 0;
    return shift * STEPS + (int)(value >> shift);
}

static uint64_t middle_of(int bucket)
{
    int shift = shift_of(bucket);
    uint64_t low = (uint64_t)(bucket - shift * STEPS) << shift;
    return low + (shift ? (uint64_t)1 << (shift - 1) : 0);
}

static uint64_t load(const _Atomic uint64_t *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, load(counter) + value, memory_order_relaxed);
}

// Publish `count` more values of this sum and maximum, whose buckets are already raised.
static void publish(wt_histogram *histogram, uint64_t count, double sum, uint64_t max)
{
    double old_sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    atomic_store_explicit(&histogram->sum, old_sum + sum, memory_order_relaxed);
    if (max > load(&histogram->max)) atomic_store_explicit(&histogram->max, max, memory_order_relaxed);
    atomic_store_explicit(&histogram->count, load(&histogram->count) + count, memory_order_release);
}

wt_status wt_histogram_create(wt_histogram **histogram)
{
    *histogram = aligned_alloc(LINE_BYTES, sizeof **histogram);
    if (!*histogram) return wt_fail(WT_ERR_NO_MEMORY, "histogram: %zu bytes", sizeof **histogram);
    wt_histogram_reset(*histogram);
    return WT_OK;
}

void wt_histogram_destroy(wt_histogram *histogram) { free(histogram); }

WT_RT void wt_histogram_record(wt_histogram *histogram, int64_t value)
{
    uint64_t v = value > 0 ? (uint64_t)value : 0;
    add(&histogram->buckets[bucket_of(v)], 1);
    publish(histogram, 1, (double)v, v);
}

// The values below which the shares `quantiles` [n], ascending, of all lie, into `values` [n].
static void find_quantiles(const wt_histogram *histogram, const double *quantiles, int64_t *values, int n)
{
    uint64_t total = 0, max = load(&histogram->max), seen = 0;
    for (int b = 0; b < N_BUCKETS; b++) total += load(&histogram->buckets[b]);

    int q = 0;
    for (int b = 0; b < N_BUCKETS && q < n && total > 0; b++) {
        seen += load(&histogram->buckets[b]);
        uint64_t middle = middle_of(b);
        while (q < n && seen > 0 && (double)seen >= quantiles[q] * (double)total)
            values[q++] = (int64_t)(middle < max ? middle : max);
    }
    while (q < n) values[q++] = (int64_t)max; // nothing recorded, or a reset meanwhile
}

WT_RT void wt_histogram_summarize(const wt_histogram *histogram, wt_histogram_summary *summary)
{
    static const double quantiles[] = {0.5, 0.99, 0.999, 0.9999};
    int64_t values[4];
    *summary = (wt_histogram_summary){0};
    uint64_t count = atomic_load_explicit(&histogram->count, memory_order_acquire);
    if (count == 0) return;
    double sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    find_quantiles(histogram, quantiles, values, 4);
    *summary = (wt_histogram_summary){
        .count = count,
        .mean = sum / (double)count,
        .p50 = values[0],
        .p99 = values[1],
        .p99_9 = values[2],
        .p99_99 = values[3],
        .max = (int64_t)load(&histogram->max),
    };
}

WT_RT int64_t wt_histogram_quantile(const wt_histogram *histogram, double quantile)
{
    double clamped = quantile > 0 ? (quantile < 1 ? quantile : 1) : 0;
    int64_t value;
    find_quantiles(histogram, &clamped, &value, 1);
    return value;
}

WT_RT double wt_histogram_share(const wt_histogram *histogram, int64_t value)
{
    uint64_t total = 0, below = 0;
    int last = value < 0 ? -1 : bucket_of((uint64_t)value);
    for (int b = 0; b < N_BUCKETS; b++) {
        uint64_t n = load(&histogram->buckets[b]);
        total += n;
        if (b <= last) below += n;
    }
    return total ? (double)below / (double)total : 0;
}

WT_RT void wt_histogram_merge(wt_histogram *into, const wt_histogram *from)
{
    uint64_t count = atomic_load_explicit(&from->count, memory_order_acquire), merged = 0;
    double sum = atomic_load_explicit(&from->sum, memory_order_relaxed);
    for (int b = 0; b < N_BUCKETS; b++) {
        uint64_t n = load(&from->buckets[b]);
        add(&into->buckets[b], n);
        merged += n;
    }
    // The buckets may hold newer values than count and sum: those count with the mean of the others.
    double mean = count ? sum / (double)count : 0;
    publish(into, merged, mean * (double)merged, load(&from->max));
}

WT_RT void wt_histogram_reset(wt_histogram *histogram)
{
    atomic_store_explicit(&histogram->count, 0, memory_order_release);
    atomic_store_explicit(&histogram->sum, 0, memory_order_relaxed);
    atomic_store_explicit(&histogram->max, 0, memory_order_relaxed);
    for (int b = 0; b < N_BUCKETS; b++) atomic_store_explicit(&histogram->buckets[b], 0, memory_order_relaxed);
}
