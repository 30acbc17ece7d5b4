#include "witness.h"

#include <stdio.h>
#include <string.h>
#include <warptone/clock.h>

enum { WARPS = 2, HOLES = 32 };
static const int64_t START_NS = 1000000000; // within which it begins

// A warp's record: how many holes, its first and last reading of the clock, then begin and length of each. `quit` is
// the host's. Numbers are as in the enumerations.
typedef struct warp_record {
    volatile int64_t n, first_ns, last_ns;
    int64_t holes[HOLES][2];
} warp_record;

typedef struct witness_record {
    warp_record warps[WARPS];
    volatile int64_t quit;
} witness_record;

static const char text[] =
    "struct warp_record { long long n, first_ns, last_ns, holes[32][2]; };\n"
    "struct witness_record { warp_record warps[2]; long long quit; };\n"
    "static __device__ long long now()\n"
    "{\n"
    "    long long now_ns;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now_ns));\n"
    "    return now_ns;\n"
    "}\n"
    "extern \"C\" __global__ void witness(volatile witness_record *r)\n"
    "{\n"
    "    __shared__ volatile int over;\n"
    "    if (threadIdx.x == 0) over = 0;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x % 32) return;\n"
    "    const bool asks = threadIdx.x != 0;\n"
    "    volatile warp_record *mine = &r->warps[asks];\n"
    "    long long n = 0, before = now(), after = before;\n"
    "    mine->first_ns = before;\n"
    "    while (!over) {\n"
    "        if (asks) {\n"
    "            __nanosleep(4000);\n"
    "            before = now();\n"
    "            if (r->quit) over = 1;\n"
    "        }\n"
    "        after = now();\n"
    "        if (after - before > 20000) {\n"
    "            if (n < 32) mine->holes[n][0] = before, mine->holes[n][1] = after - before;\n"
    "            mine->n = ++n;\n"
    "        }\n"
    "        before = after;\n"
    "    }\n"
    "    mine->last_ns = after;\n"
    "}\n";

static witness_record *record_of(const witness *w) { return wt_buffer_host(w->record); }

wt_status witness_open(witness *w, wt_device *device, wt_stream *stream)
{
    *w = (witness){.stream = stream};
    wt_status status = wt_module_create(device, &(wt_module_config){.name = "witness.cu", .source = text}, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "witness", &w->kernel);
    return status ? status : wt_buffer_create(device, WT_MEMORY_MAPPED, sizeof(witness_record), &w->record);
}

void witness_close(witness *w)
{
    wt_buffer_destroy(w->record);
    wt_stream_destroy(w->stream);
    wt_module_destroy(w->module);
}

// Until both warps have said so; `at_ns` is when.
static wt_status wait_for(const volatile int64_t *first, const volatile int64_t *second, int64_t *at_ns)
{
    const int64_t end_ns = wt_clock_now_ns(NULL) + START_NS;
    do {
        *at_ns = wt_clock_now_ns(NULL);
        if (*first && *second) return WT_OK;
    } while (*at_ns < end_ns);
    return wt_fail(WT_ERR_TIMEOUT, "witness: its kernel has not begun or not ended");
}

wt_status witness_start(witness *w)
{
    witness_record *r = record_of(w);
    const uintptr_t at = wt_buffer_address(w->record);
    memset(r, 0, sizeof *r);
    wt_status status = wt_kernel_launch(w->kernel, w->stream, &(wt_launch){.block = {32 * WARPS}, .apart = true},
                                        &WT_ARG(at), 1);
    return status ? status : wait_for(&r->warps[0].first_ns, &r->warps[1].first_ns, &w->begin_ns);
}

wt_status witness_stop(witness *w)
{
    witness_record *r = record_of(w);
    r->quit = 1;
    wt_status status = wait_for(&r->warps[0].last_ns, &r->warps[1].last_ns, &w->end_ns);
    return status ? status : wt_stream_synchronize(w->stream);
}

void witness_print(const witness *w)
{
    static const char *const what[WARPS] = {"its clock alone", "a word of the host's"};
    const witness_record *r = record_of(w);
    for (int k = 0; k < WARPS; k++) {
        const warp_record *m = &r->warps[k];
        const double rate = (double)(w->end_ns - w->begin_ns) / (double)(m->last_ns - m->first_ns);
        printf("roundtrip    witness on another SM, %s: stood still %lld times for more than 20 us", what[k],
               (long long)m->n);
        for (int i = 0; i < m->n && i < HOLES; i++)
            printf("%s %.1f us at %.6f s", i ? "," : ":", (double)m->holes[i][1] * 1e-3,
                   ((double)w->begin_ns + rate * (double)(m->holes[i][0] - m->first_ns)) * 1e-9);
        printf("\n");
    }
}
