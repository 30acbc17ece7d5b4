// libcyaml tells people what is wrong in log lines: one with the cause, then a backtrace with lines from inside out.
#include "yaml_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_complaint(cyaml_log_t level, void *user, const char *format, va_list args)
{
    yaml_complaint *c = user;
    char text[512];
    const char *at;
    if (level < CYAML_LOG_ERROR) return;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    if ((at = strstr(text, "line: ")) != NULL) {
        if (!c->line) c->line = atoi(at + 6);
    } else if (!c->cause[0] && !strstr(text, "Backtrace")) {
        snprintf(c->cause, sizeof c->cause, "%s", strncmp(text, "Load: ", 6) ? text : text + 6);
    }
}

cyaml_config_t yaml_config(yaml_complaint *complaint)
{
    return (cyaml_config_t){.log_fn = keep_complaint, .log_ctx = complaint, .log_level = CYAML_LOG_ERROR,
                            .mem_fn = cyaml_mem, .flags = CYAML_CFG_NO_ALIAS};
}

const char *yaml_unknown_key(const yaml_complaint *complaint)
{
    static const char unexpected[] = "Unexpected key: ";
    const char *key = strstr(complaint->cause, unexpected);
    return key ? key + strlen(unexpected) : NULL;
}

wt_status yaml_refuse(const char *path, const yaml_complaint *complaint, cyaml_err_t error)
{
    return wt_fail(WT_ERR_FORMAT, "%s:%d: %s", path, complaint->line ? complaint->line : 1,
                   complaint->cause[0] ? complaint->cause : cyaml_strerror(error));
}
