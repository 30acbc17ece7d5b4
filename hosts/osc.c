#include "osc.h"

#include <stdint.h> // here, because a file may not be empty

#ifdef WT_HAVE_LIBLO

#    include <arpa/inet.h>
#    include <math.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/socket.h>

enum { MAX_BYTES = 65536, MAX_DEPTH = 4, BUNDLE_HEAD_BYTES = 16 };

typedef struct reader {
    void (*handle)(void *user, const osc_message *message);
    void *user;
    struct sockaddr_in from;
} reader;

static void read_message(const reader *r, char *data, size_t size)
{
    lo_message m = lo_message_deserialise(data, size, NULL);
    if (!m) return;
    r->handle(r->user, &(osc_message){.path = data, // it was seen to have an end
                                      .types = lo_message_get_types(m),
                                      .args = lo_message_get_argv(m),
                                      .n_args = lo_message_get_argc(m),
                                      .from = r->from});
    lo_message_free(m);
}

/// A bundle is "#bundle", a time, and elements: a size and a message or a bundle.
static void read_packet(const reader *r, char *data, size_t size, int depth)
{
    if (size < BUNDLE_HEAD_BYTES || memcmp(data, "#bundle", 8)) {
        read_message(r, data, size);
        return;
    }
    for (size_t at = BUNDLE_HEAD_BYTES; depth < MAX_DEPTH && size - at > 4;) {
        uint32_t length;
        memcpy(&length, data + at, sizeof length);
        length = ntohl(length);
        at += 4;
        if (length > size - at || length % 4) return;
        read_packet(r, data + at, length, depth + 1);
        at += length;
    }
}

void osc_receive(int fd, void (*handle)(void *user, const osc_message *message), void *user)
{
    _Alignas(8) char data[MAX_BYTES];
    reader r = {.handle = handle, .user = user};
    socklen_t from_size = sizeof r.from;
    ssize_t n = recvfrom(fd, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&r.from, &from_size);
    if (n > 0 && r.from.sin_family == AF_INET) read_packet(&r, data, (size_t)n, 0);
}

void osc_send(int fd, const struct sockaddr_in *to, const char *path, lo_message message)
{
    size_t size;
    lo_message m = message ? message : lo_message_new();
    void *data = m ? lo_message_serialise(m, path, NULL, &size) : NULL;
    if (data) {
        ssize_t sent = sendto(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to, sizeof *to);
        (void)sent;
    }
    free(data);
    lo_message_free(m);
}

bool osc_number(const osc_message *m, int k, float *value)
{
    if (k >= m->n_args) return false;
    char type = m->types[k];
    if (type == 'T' || type == 'F')
        *value = type == 'T';
    else if (lo_is_numerical_type((lo_type)type))
        *value = (float)lo_hires_val((lo_type)type, m->args[k]);
    else
        return false;
    return isfinite(*value);
}

// An argument is aligned to 4 bytes and lo_arg wants 8, so no member of it is named.
const char *osc_text(const osc_message *m, int k)
{
    bool text = k < m->n_args && (m->types[k] == 's' || m->types[k] == 'S');
    return text ? (const char *)m->args[k] : NULL;
}

#endif
