// A signal has no other place to write to than a global. It is a lock-free atomic, so threads may read it too (relaxed:
// it carries no data with it).
#include "interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int received;

static void remember(int number)
{
    int none = 0;
    if (number == SIGINT) // it may be forgotten (wt_interrupt_clear), so it hides no other
        atomic_compare_exchange_strong_explicit(&received, &none, number, memory_order_relaxed, memory_order_relaxed);
    else
        atomic_store_explicit(&received, number, memory_order_relaxed);
}

wt_status wt_interrupt_install(void)
{
    // Without SA_RESTART a blocking read or write returns EINTR; SA_RESETHAND makes the second signal final.
    const struct sigaction stop = {.sa_handler = remember, .sa_flags = SA_RESETHAND};
    // A terminal that closes is told by the kernel and again by its shell, so a second SIGHUP is not final.
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, hang_up = {.sa_handler = remember};
    struct sigaction now;
    if (sigaction(SIGINT, &stop, NULL) || sigaction(SIGTERM, &stop, NULL) || sigaction(SIGPIPE, &ignore, NULL) ||
        sigaction(SIGXFSZ, &ignore, NULL) || sigaction(SIGHUP, NULL, &now) ||
        (now.sa_handler != SIG_IGN && sigaction(SIGHUP, &hang_up, NULL))) // ignored: by nohup
        return wt_fail(WT_ERR_STATE, "interrupt: signal handlers cannot be installed: %s", strerror(errno));
    return WT_OK;
}

bool wt_interrupted(void)
{
    return wt_interrupt_signal() != 0;
}

int wt_interrupt_signal(void)
{
    return atomic_load_explicit(&received, memory_order_relaxed);
}

wt_status wt_interrupt_clear(void)
{
    int interrupt = SIGINT;
    atomic_compare_exchange_strong_explicit(&received, &interrupt, 0, memory_order_relaxed, memory_order_relaxed);
    return wt_interrupt_install();
}

bool wt_interrupt_wait_input(int fd)
{
    const int looks_ms = 50; // how late a signal of another thread is seen
    struct pollfd input = {.fd = fd, .events = POLLIN};
    while (!wt_interrupted()) {
        const int n = poll(&input, 1, looks_ms);
        if (n > 0 || (n < 0 && errno != EINTR)) return true;
    }
    return false;
}
