#include "apart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void move_apart(bench_processors *p)
{
    char path[96];
    p->cpu = CPU_SETSIZE - 1, p->siblings[0] = 0;
    if (sched_getaffinity(0, sizeof p->others, &p->others)) p->cpu = -1;
    while (p->cpu >= 0 && !CPU_ISSET(p->cpu, &p->others)) p->cpu--;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", p->cpu);
    FILE *file = p->cpu >= 0 ? fopen(path, "r") : NULL;
    if (!file || !fgets(p->siblings, sizeof p->siblings, file)) snprintf(p->siblings, sizeof p->siblings, "%d", p->cpu);
    if (file) fclose(file);
    for (char *at = p->siblings, *end; *at >= '0' && *at <= '9'; at = *end ? end + 1 : end) { // "3,7" or "2-3"
        const long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long k = first; k <= last && k < CPU_SETSIZE; k++) CPU_CLR((int)k, &p->others);
    }
    CPU_ZERO(&p->own);
    if (p->cpu >= 0) CPU_SET(p->cpu, &p->own);
    p->apart = p->cpu >= 0 && CPU_COUNT(&p->others) > 0 && !sched_setaffinity(0, sizeof p->others, &p->others);
    p->siblings[strcspn(p->siblings, "\n")] = 0;
}

void use_processors(const bench_processors *p, bool own)
{
    const cpu_set_t *which = own ? &p->own : &p->others;
    if (p->apart) (void)sched_setaffinity(0, sizeof *which, which);
}
