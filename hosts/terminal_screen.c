// A signal handler has no argument for its own data, so what it has to put back is a global.
#include "terminal_screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { ESCAPE = 27, SEQUENCE_MS = 20 };

static const int ending_signals[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_SIGNALS = (int)(sizeof ending_signals / sizeof *ending_signals) };

static const char to_screen[] = "\033[?1049h\033[?25l", from_screen[] = "\033[0m\033[?25h\033[?1049l";
static volatile sig_atomic_t entered;
static struct termios before;
static struct sigaction actions_before[N_SIGNALS];

/// Only what a signal handler may call.
static void put_back(void)
{
    if (!entered) return;
    entered = 0;
    ssize_t written = write(STDOUT_FILENO, from_screen, sizeof from_screen - 1);
    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/// SA_RESETHAND put back the default, so the second time the signal ends the process, with its own exit status.
static void on_end(int number)
{
    put_back();
    raise(number);
}

bool terminal_screen_enter(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb")) return false;
    if (tcgetattr(STDIN_FILENO, &before)) return false;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw)) return false;
    const struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESETHAND};
    entered = 1;
    for (int k = 0; k < N_SIGNALS; k++) sigaction(ending_signals[k], &end, &actions_before[k]);
    fputs(to_screen, stdout);
    return true;
}

void terminal_screen_leave(void)
{
    if (!entered) return;
    fflush(stdout);
    put_back();
    for (int k = 0; k < N_SIGNALS; k++) sigaction(ending_signals[k], &actions_before[k], NULL);
}

void terminal_screen_size(int *columns, int *rows)
{
    struct winsize size = {0};
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

static bool key_is_there(int timeout_ms)
{
    struct pollfd keys = {.fd = entered ? STDIN_FILENO : -1, .events = POLLIN};
    return poll(&keys, 1, timeout_ms) > 0;
}

/// The byte of a key that is there; KEY_END at the end of the input.
static int read_byte(void)
{
    unsigned char byte;
    return read(STDIN_FILENO, &byte, 1) == 1 ? byte : KEY_END;
}

int terminal_screen_key(int timeout_ms)
{
    if (!key_is_there(timeout_ms)) return KEY_NONE;
    int key = read_byte();
    if (key != ESCAPE || !key_is_there(SEQUENCE_MS)) return key;
    int kind = read_byte(); // arrows are ESC [ A or, in another mode, ESC O A
    if ((kind != '[' && kind != 'O') || !key_is_there(SEQUENCE_MS)) return KEY_NONE;
    int last = read_byte();
    while (last != KEY_END && last < '@' && key_is_there(SEQUENCE_MS)) last = read_byte(); // numbers of other keys
    switch (last) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'C':
        return KEY_RIGHT;
    case 'D':
        return KEY_LEFT;
    default:
        return KEY_NONE;
    }
}
