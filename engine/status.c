#include <warptone/names.h>
#include <warptone/status.h>

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

const char *wt_status_text(wt_status status)
{
    static const char *const texts[] = {
#define WT_STATUS_TEXT(code, text) text,
        WT_STATUS_LIST(WT_STATUS_TEXT)
#undef WT_STATUS_TEXT
    };
    return (unsigned)status < WT_N_STATUS ? texts[status] : "unknown status";
}

const char *wt_last_error(void) { return message; }

wt_status wt_fail(wt_status status, const char *format, ...)
{
    char text[sizeof message]; // arguments may point into the old message
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // names in it may hold control characters; a compiler's words have lines
    if (status == WT_ERR_COMPILE) snprintf(message, sizeof message, "%s", text);
    else wt_show_text(text, message, sizeof message);
    return status;
}
