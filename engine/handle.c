// A hash table of the live objects of the process, chained through the objects themselves. It belongs to the process
// because a stale pointer says nothing of the device it was made on.
#include "handle.h"

#include <pthread.h>
#include <stdint.h>

enum { N_BUCKETS = 256 };

typedef struct bucket {
    pthread_mutex_t mutex;
    wt__handle *first;
} bucket;

#define EMPTY                                                                                                          \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, NULL                                                                                \
    }
#define EMPTY_4  EMPTY, EMPTY, EMPTY, EMPTY
#define EMPTY_16 EMPTY_4, EMPTY_4, EMPTY_4, EMPTY_4
#define EMPTY_64 EMPTY_16, EMPTY_16, EMPTY_16, EMPTY_16
static bucket buckets[N_BUCKETS] = {EMPTY_64, EMPTY_64, EMPTY_64, EMPTY_64};

static bucket *bucket_of(const void *object)
{
    return &buckets[(uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u >> 56]; // Fibonacci hashing, Knuth vol. 3
}

static wt__handle **find(bucket *b, const void *object, wt__kind kind)
{
    wt__handle **link = &b->first;
    while (*link && ((*link)->object != object || (*link)->kind != kind)) link = &(*link)->next;
    return *link ? link : NULL;
}

static wt_status refuse(wt__kind kind)
{
    static const char *const names[WT__N_HANDLE_KINDS] = {"buffer",   "stream",   "layout", "pool",
                                                          "transfer", "dispatch", "graph"};
    return wt_fail(WT_ERR_BAD_ARG, "%s: this handle was destroyed already, or is not one of a %s", names[kind],
                   names[kind]);
}

void wt__handle_open(wt__handle *handle, const void *object, wt__kind kind)
{
    bucket *b = bucket_of(object);
    handle->object = object;
    handle->kind = kind;
    pthread_mutex_lock(&b->mutex);
    handle->next = b->first;
    b->first = handle;
    pthread_mutex_unlock(&b->mutex);
}

wt_status wt__handle_close(const void *object, wt__kind kind)
{
    bucket *b = bucket_of(object);
    pthread_mutex_lock(&b->mutex);
    wt__handle **link = find(b, object, kind);
    if (link) *link = (*link)->next;
    pthread_mutex_unlock(&b->mutex);
    return link ? WT_OK : refuse(kind);
}

wt_status wt__handle_check(const void *object, wt__kind kind)
{
    bucket *b = bucket_of(object);
    pthread_mutex_lock(&b->mutex);
    bool live = find(b, object, kind) != NULL;
    pthread_mutex_unlock(&b->mutex);
    return live ? WT_OK : refuse(kind);
}
