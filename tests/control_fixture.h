/// A control on a session without audio, its socket in a folder of its own.
#ifndef WT_TEST_CONTROL_FIXTURE_H
#define WT_TEST_CONTROL_FIXTURE_H

#include "fake_session.h"
#include "support/testing.h"

#include "../hosts/control_internal.h"

#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 60000 }; // until a test gives up; a loaded machine may take long

typedef struct fixture {
    live_session session;
    control *control;
    char folder[64], path[96];
} fixture;

static void open_control(fixture *f, const control_config *more)
{
    fake_session_init(&f->session);
    strcpy(f->folder, "/tmp/wt_control.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/control.sock", f->folder);
    control_config config = more ? *more : (control_config){0};
    config.session = &f->session;
    config.socket_path = f->path;
    assert_ok(control_open(&config, &f->control));
}

static void close_control(fixture *f)
{
    control_close(f->control);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(rmdir(f->folder), 0);
    for (int k = 0; k < FAKE_LISTENERS; k++) assert_null(f->session.listeners[k]);
}

#endif
