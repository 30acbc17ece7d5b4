#include "jack_api.h"
#include <warptone/status.h>

#ifdef WT_HAVE_JACK
#    include <dlfcn.h>
#    include <pthread.h>
#    include <stdio.h>

static jack_api table;
static char why[512]; // the library is missing; "" = it is there
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void hush(const char *message) { (void)message; } // what fails is said by the one who called

static void fill(void)
{
    void *library = dlopen("libjack.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, sizeof why, "%s", dlerror());
        return;
    }
#    define JACK_API_FILL(name)                                                                                        \
        *(void **)&table.name = dlsym(library, "jack_" #name);                                                         \
        if (!table.name) snprintf(why, sizeof why, "libjack.so.0 lacks jack_" #name);
    JACK_API_LIST(JACK_API_FILL)
#    undef JACK_API_FILL
    if (why[0]) return;
    table.set_error_function(hush);
    table.set_info_function(hush);
}

wt_status jack_api_open(const jack_api **api)
{
    pthread_once(&once, fill);
    *api = why[0] ? NULL : &table;
    return why[0] ? wt_fail(WT_ERR_NO_LIBRARY, "jack: %s; install JACK (Debian: libjack-jackd2-0)", why) : WT_OK;
}
#endif
