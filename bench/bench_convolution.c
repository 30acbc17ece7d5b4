// Convolution of many channels on one core in blocks of 64 frames at 48 kHz, each block timed.
//
//   bench_convolution [seconds [channels [taps [row]]]]
//
//   convolution  129600 taps x 300 channels, 64 512 4096   min 35.8  mean 39.6  cpu 39.6  p50 39.5  p99 43.7  max ...
//   % of 1333 us
//
// Channels come as chains of 60 that share one response, with staggers 0, 1, 2 ...; the input is noise. One row a
// choice of partitions, `row` alone when given. Blocks that another process interrupted stand in the maximum; the 10
// worst are listed so that one can tell. `cpu` is the processor time of all threads. Where zita-convolver is installed
// it runs last, with the same response and input; its threads may use other cores.

#include "peer_zita.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/chain.h>
#include <warptone/clock.h>

enum { BLOCK = 64, A_CHAIN = 60, MAX_CHAINS = 32 };
#define RATE 48000.0

// A chain, or a peer's equal.
typedef struct unit {
    void *object;
    void (*process)(void *object, const float *const *in, float *const *out);
} unit;

typedef struct figures {
    double *us; // [blocks] rising
    int blocks;
    double mean_us, cpu_us;
} figures;

static int channels_of(int unit, int channels)
{
    return channels - unit * A_CHAIN < A_CHAIN ? channels - unit * A_CHAIN : A_CHAIN;
}

static wt_chain *build(const char *partitions, int taps, int channels, int stagger)
{
    const wt_setting settings[] = {{"synthetic_ms", NULL, taps * 1e3 / RATE},
                                   {"synthetic_channels", NULL, 1},
                                   {"max_ms", NULL, 60000},
                                   {"partitions", partitions, 0}};
    const wt_node_desc node = {.type = "convolution", .settings = settings, .n_settings = 4};
    wt_chain *chain = NULL;
    if (wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels, .stagger = stagger},
                        &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain)) {
        fprintf(stderr, "bench_convolution: %s\n", wt_last_error());
        exit(1);
    }
    return chain;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static figures time_blocks(const unit *units, int n_units, int blocks)
{
    static float x[A_CHAIN][4096 + BLOCK], y[A_CHAIN][BLOCK];
    const float *in[A_CHAIN];
    float *out[A_CHAIN];
    unsigned seed = 1;
    figures f = {malloc(sizeof(double) * (size_t)blocks), blocks, 0, 0};
    for (int c = 0; c < A_CHAIN; c++)
        for (int n = 0; n < 4096 + BLOCK; n++)
            x[c][n] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
    f.cpu_us = -cpu_us();
    for (int b = 0; b < blocks; b++) {
        for (int c = 0; c < A_CHAIN; c++) in[c] = x[c] + b * 61 % 4096, out[c] = y[c];
        int64_t begin = wt_clock_now_ns(NULL);
        for (int k = 0; k < n_units; k++) units[k].process(units[k].object, in, out);
        f.us[b] = (double)(wt_clock_now_ns(NULL) - begin) * 1e-3;
        f.mean_us += f.us[b] / blocks;
    }
    f.cpu_us = (f.cpu_us + cpu_us()) / blocks;
    qsort(f.us, (size_t)blocks, sizeof *f.us, rising);
    return f;
}

// Prints one row and returns the processor time of a block.
static double report(const char *name, int taps, int channels, const unit *units, int n_units, int blocks)
{
    const double percent = 100 / (BLOCK / RATE * 1e6);
    free(time_blocks(units, n_units, blocks < 1024 ? blocks : 1024).us); // warm
    figures f = time_blocks(units, n_units, blocks);
    printf("convolution  %6d taps x %3d channels, %-18s min %5.1f  mean %5.1f  cpu %5.1f  p50 %5.1f  p99 %5.1f  max "
           "%5.1f %% of %.0f us\n",
           taps, channels, name, percent * f.us[0], percent * f.mean_us, percent * f.cpu_us,
           percent * f.us[blocks / 2], percent * f.us[blocks * 99 / 100], percent * f.us[blocks - 1], 100 / percent);
    printf("  the worst:");
    for (int b = blocks < 10 ? 0 : blocks - 10; b < blocks; b++) printf(" %.1f", percent * f.us[b]);
    printf("\n");
    fflush(stdout);
    free(f.us);
    return f.cpu_us;
}

static void process_chain(void *chain, const float *const *in, float *const *out)
{
    (void)!wt_chain_process(chain, in, out, BLOCK);
}

static double bench(const char *partitions, int taps, int channels, int blocks)
{
    unit units[MAX_CHAINS] = {0};
    int n = 0;
    for (; n * A_CHAIN < channels; n++)
        units[n] = (unit){build(partitions, taps, channels_of(n, channels), n), process_chain};
    const double us = report(partitions, taps, channels, units, n, blocks);
    for (int k = 0; k < n; k++) wt_chain_destroy(units[k].object);
    return us;
}

#ifdef WT_HAVE_ZITA
static void process_zita(void *peer, const float *const *in, float *const *out)
{
    peer_zita_process(peer, in, out);
}

// The response, as an impulse shows it.
static float *response_of(int taps)
{
    wt_chain *chain = build("64 512 4096", taps, 1, 0);
    float *h = malloc(sizeof *h * (size_t)(taps + BLOCK)), x[BLOCK] = {1};
    for (int n = 0; n < taps; n += BLOCK, x[0] = 0)
        (void)!wt_chain_process(chain, (const float *const[]){x}, (float *const[]){h + n}, BLOCK);
    wt_chain_destroy(chain);
    return h;
}

static void bench_zita(int taps, int channels, int blocks, double best_us)
{
    unit units[MAX_CHAINS] = {0};
    float *h = response_of(taps);
    int n = 0;
    for (; n * A_CHAIN < channels; n++) {
        units[n] = (unit){peer_zita_create(h, taps, channels_of(n, channels), BLOCK), process_zita};
        if (!units[n].object) break;
    }
    if (n * A_CHAIN < channels) printf("convolution  zita-convolver refuses %d taps\n", taps);
    else
        printf("convolution  zita-convolver takes %.2f times our least processor time\n",
               report("zita-convolver", taps, channels, units, n, blocks) / best_us);
    for (int k = 0; k < n; k++) peer_zita_destroy(units[k].object);
    free(h);
}
#endif

int main(int argc, char **argv)
{
    static const char *const partitions[] = {"64 512 4096",  "64 512 2048 8192", "64 512 8192", "64 1024 8192",
                                             "128 1024 8192", "128 1024 4096",    "128 4096",    "256 4096"};
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    int channels = argc > 2 ? atoi(argv[2]) : 300, taps = argc > 3 ? atoi(argv[3]) : 129600;
    if (seconds < 0.1 || channels < 1 || channels > A_CHAIN * MAX_CHAINS || taps < 1) {
        fprintf(stderr, "bench_convolution: want seconds >= 0.1, 1..%d channels, 1 or more taps\n",
                A_CHAIN * MAX_CHAINS);
        return 1;
    }
    const int blocks = (int)(seconds * RATE / BLOCK);
    double best_us = HUGE_VAL;
    for (size_t k = 0; k < sizeof partitions / sizeof *partitions; k++)
        if (argc < 5 || (int)k == atoi(argv[4])) best_us = fmin(best_us, bench(partitions[k], taps, channels, blocks));
#ifdef WT_HAVE_ZITA
    bench_zita(taps, channels, blocks, best_us);
#endif
    return 0;
}
