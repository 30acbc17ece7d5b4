/// The terminal as a screen: its other page, no cursor, keys as they are typed; put back on every way out.
#ifndef WT_TERMINAL_SCREEN_H
#define WT_TERMINAL_SCREEN_H

#include <stdbool.h>

/// Keys that are no character.
enum { KEY_NONE = 0, KEY_END = -1, KEY_UP = 256, KEY_DOWN, KEY_LEFT, KEY_RIGHT };

/// False, and nothing done, where standard input or output is no terminal or TERM is "dumb". A signal that ends the
/// process (SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) puts the terminal back first; SIGINT, SIGTERM and SIGHUP
/// are the program's to watch (interrupt.h). Ctrl-Z is off: a stopped process plays no audio.  [main]
bool terminal_screen_enter(void);
void terminal_screen_leave(void); ///< Does nothing when not entered.  [main]

/// The present size; 80 by 24 where it is not known.  [main]
void terminal_screen_size(int *columns, int *rows);

/// The next key, or KEY_NONE after `timeout_ms` or when a signal came; KEY_END when there will be none any more.
/// Without a screen it only waits.  [main]
int terminal_screen_key(int timeout_ms);

#endif
