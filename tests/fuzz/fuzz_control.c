// Any bytes as lines of the control protocol. Nothing may crash, hang or leak, and every answer is one of the two
// forms.
#include "../fake_session.h"

#include "../../hosts/control.c"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[1 << 16];
    live_session session;
    fake_session_init(&session);
    control_caller caller = {.session = &session, .out = {.bytes = out, .size = sizeof out}, .end = '\n'};
    for (size_t at = 0; at < size;) {
        char line[CONTROL_LINE_BYTES];
        size_t length = 0;
        for (; at + length < size && data[at + length] != '\n' && length < sizeof line - 1; length++)
            line[length] = (char)data[at + length];
        at += length + 1;
        caller.out.used = 0;
        *out = 0;
        control_line(&caller, line, length);
        assert(!caller.out.full);
        assert(!caller.out.used || !strncmp(out, "resp 0", 6) || !strncmp(out, "resp -1 ", 8));
        assert(!caller.out.used || out[caller.out.used - 1] == '\n');
        assert(strncmp(out, "resp -1 ", 8) || strchr(out, '\n') == out + caller.out.used - 1);
    }
    pthread_mutex_destroy(&session.lock);
    pthread_mutex_destroy(&session.listen);
    return 0;
}
