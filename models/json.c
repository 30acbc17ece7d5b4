#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 256 << 20 };

// jansson 2.14 reports most refusals of memory as wrong text, or without a sentence: text that is right when it is
// read again was not wrong.
static bool right_again(const char *text, size_t size, size_t flags)
{
    json_t *json = json_loadb(text, size, flags, NULL);
    json_decref(json);
    return json != NULL;
}

wt_status wt__json_load(const char *what, const char *text, size_t size, size_t flags, json_t **json)
{
    json_error_t error;
    // Where memory ends within a string, jansson 2.14 drops a byte of it; errno tells, unless a number comes later,
    // which sets it back.
    errno = 0;
    *json = json_loadb(text, size, flags, &error);
    const bool refused = errno == ENOMEM;
    if (*json && !refused) return WT_OK;
    if (*json || refused || !*error.text || json_error_code(&error) == json_error_out_of_memory ||
        right_again(text, size, flags)) {
        json_decref(*json);
        *json = NULL;
        return wt_fail(WT_ERR_NO_MEMORY, "%s: JSON of %zu bytes", what, size);
    }
    return wt_fail(WT_ERR_FORMAT, "%s: JSON line %d column %d: %s", what, error.line, error.column, error.text);
}

wt_status wt__json_parse(const char *file, const char *text, size_t size, json_t **object)
{
    wt_status status = wt__json_load(file, text, size, JSON_REJECT_DUPLICATES, object);
    if (status || json_is_object(*object)) return status;
    status = wt_fail(WT_ERR_FORMAT, "%s: the JSON is %s, want an object", file, wt__json_kind(*object));
    json_decref(*object);
    *object = NULL;
    return status;
}

static wt_status read_all(const char *path, int fd, char **text, size_t *size)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) return wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return wt_fail(WT_ERR_FILE, "%s is not a regular file", path);
    if (info.st_size > MAX_BYTES)
        return wt_fail(WT_ERR_FORMAT, "%s has %lld bytes, want %d or less", path, (long long)info.st_size, MAX_BYTES);
    *size = (size_t)info.st_size;
    *text = malloc(*size + 1);
    if (!*text) return wt_fail(WT_ERR_NO_MEMORY, "%s: %zu bytes", path, *size);
    for (size_t at = 0; at < *size;) {
        ssize_t n = read(fd, *text + at, *size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return wt_fail(WT_ERR_FILE, "%s: reading it: %s", path, n ? strerror(errno) : "it was shortened");
        at += (size_t)n;
    }
    return WT_OK;
}

wt_status wt__json_read(const char *path, json_t **object)
{
    char *text = NULL;
    size_t size = 0;
    *object = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    wt_status status = read_all(path, fd, &text, &size);
    if (fd >= 0) close(fd);
    if (!status) status = wt__json_parse(path, text, size, object);
    free(text);
    return status;
}

const char *wt__json_kind(const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array",     [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    return value ? kinds[json_typeof(value)] : "nothing";
}
