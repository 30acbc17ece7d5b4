/// What the parts of the remote control share: one command line, the text it answers with, and OSC beside it.
#ifndef WT_CONTROL_INTERNAL_H
#define WT_CONTROL_INTERNAL_H

#include "control.h"

#include <stdint.h>

enum {
    CONTROL_LINE_BYTES = 4096, ///< of a line with its end
    CONTROL_NAME_BYTES = 160,  ///< "node/param", as live_param holds them
    CONTROL_CHANNELS = 64,     ///< of the levels of a side
};

/// Text that grows up to `size` bytes; what does not fit sets `full` and is left out.
typedef struct control_text {
    char *bytes;
    size_t size, used;
    bool full;
} control_text;

void control_put(control_text *text, const char *format, ...) WT_PRINTF(2, 3);
void control_put_levels(control_text *text, live_session *session); ///< " in PEAK RMS ... out PEAK RMS ...", in dB
void control_put_stats(control_text *text, live_session *session);  ///< JSON

/// What a client asked to be told. Intervals are nanoseconds, 0 = not asked for.
typedef struct control_wishes {
    bool params;
    int64_t levels_ns, levels_due_ns;
    int64_t stats_ns, stats_due_ns;
} control_wishes;

/// One client of the line protocol, as the commands see it.
typedef struct control_caller {
    live_session *session;
    control_wishes wishes;
    control_text out;
    char end;   ///< of its lines and our answers: '\n' or 0
    bool leave; ///< close the connection after the answer
} control_caller;

/// Carry out one line, [length] without its end and with room for a NUL, which is changed; answers go to caller->out.
/// Any bytes are allowed.  [any but rt]
void control_line(control_caller *caller, char *line, size_t length);
void control_end(control_caller *caller); ///< the end of a line or an answer
/// Answer "resp -1 SENTENCE", in one line whatever the sentence holds.
void control_refuse(control_caller *caller, const char *sentence);
/// Tell that `name` (a parameter, "bypass" or "preset") changed, as the command that would do it.
void control_put_change(control_caller *caller, const char *name, float value);

// ---- OSC, one thread

typedef struct control_osc control_osc;

wt_status control_osc_open(live_session *session, const char *bind, int port, control_osc **osc);
void control_osc_close(control_osc *osc); ///< NULL is allowed, as in all that follows
int control_osc_fd(const control_osc *osc);
int control_osc_udp_port(const control_osc *osc);
void control_osc_receive(control_osc *osc); ///< one datagram, when there is one
void control_osc_changed(control_osc *osc, const char *name, float value);

#endif
